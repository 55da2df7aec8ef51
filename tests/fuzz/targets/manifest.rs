//! The two TOML files of a provider: they read or say why not, and what reads can be asked for its pages.
#![no_main]

use gpuledger_fuzz::{limited_memory, mutate_text};
use gpuledger_scrapers::hardware::Hardware;
use gpuledger_scrapers::manifest::Manifest;
use libfuzzer_sys::{fuzz_mutator, fuzz_target, fuzzer_mutate};

limited_memory!();

const TEXTS: &[&str] = &[
    include_str!("../../../scrapers/_template/manifest.toml"),
    include_str!("../../../scrapers/gcp/manifest.toml"),
    include_str!("../../../scrapers/azure/manifest.toml"),
    include_str!("../../../scrapers/gcp/hardware.toml"),
    include_str!("../../../scrapers/oci/manifest.toml"),
];

fuzz_target!(|data: &[u8]| {
    let Ok(text) = std::str::from_utf8(data) else { return };
    if let Ok(manifest) = Manifest::parse(text) {
        for has_key in [false, true] {
            for request in manifest.start(has_key) {
                assert!(!request.with_key || has_key, "a page that needs the key is asked for without it");
            }
        }
    }
    if let Ok(hardware) = Hardware::parse(text) {
        for name in hardware.types() {
            let (gpu, machine) = hardware.of(name).expect("a type of the table is in the table");
            assert!(gpu.count.is_some_and(|count| *count.numer() > 0));
            let sizes = [gpu.memory_gb, machine.vcpus, machine.system_memory_gib, machine.local_disk_gb];
            assert!(sizes.into_iter().flatten().all(|size| !size.is_sign_negative()), "{name}");
        }
        assert!(hardware.machines().len() <= hardware.types().count().max(1) * 2);
    }
});

fuzz_mutator!(|data: &mut [u8], size: usize, max_size: usize, seed: u32| {
    if seed % 4 == 0 && size > 0 { fuzzer_mutate(data, size, max_size) } else { mutate_text(data, size, max_size, seed, TEXTS) }
});
