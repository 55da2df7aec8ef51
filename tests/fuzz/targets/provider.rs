//! Pages of one provider, named by `FUZZ_PROVIDER`: every law of parsers.
#![no_main]

use gpuledger_fuzz::{PROVIDER, laws, limited_memory, mutate_pages, pages_of};
use libfuzzer_sys::{fuzz_mutator, fuzz_target, fuzzer_mutate};

limited_memory!();

fuzz_target!(|data: &[u8]| laws::hold(*PROVIDER, &pages_of(data)));

fuzz_mutator!(|data: &mut [u8], size: usize, max_size: usize, seed: u32| {
    if seed % 8 == 0 && size > 2 { fuzzer_mutate(data, size, max_size) } else { mutate_pages(data, size, max_size, seed) }
});
