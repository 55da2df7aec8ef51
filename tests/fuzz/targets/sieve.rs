//! A sieve: whatever the chunks, it keeps what a plain look at the lines keeps.
#![no_main]

use std::sync::LazyLock;

use gpuledger_fuzz::{limited_memory, mutate_text};
use gpuledger_scrapers::sieve::Sieve;
use libfuzzer_sys::{fuzz_mutator, fuzz_target, fuzzer_mutate};

limited_memory!();

const HEAD_LINES: usize = 2;
const NEEDLES: [&str; 3] = ["\"p4", "\"g6", "\"trn1"];

static SIEVE: LazyLock<Sieve> = LazyLock::new(|| Sieve::new("fuzz-1", HEAD_LINES, &NEEDLES));

const TEXTS: &[&str] =
    &["head\r\nnames\r\n1,\"m5\"\r\n2,\"p4d\",\"p4\"\r\n3,p4\r\n4,\"g6\"", "\n\n\"p4\n\"g6\n\"trn1\n\"\"p4\"", "a\nb\n\"p\n4\"g\n6"];

fuzz_target!(|data: &[u8]| {
    let [first, second, text @ ..] = data else { return };
    let sizes = [usize::from(*first) + 1, usize::from(*second) % 7 + 1];
    let mut sifting = SIEVE.start();
    let (mut rest, mut turn) = (text, 0);
    while !rest.is_empty() {
        let (chunk, after) = rest.split_at(sizes[turn % 2].min(rest.len()));
        sifting.push(chunk).expect("the lines are short");
        (rest, turn) = (after, turn + 1);
    }
    let is_kept = |line: &[u8]| NEEDLES.iter().any(|needle| line.windows(needle.len()).any(|window| window == needle.as_bytes()));
    let lines = text.split_inclusive(|byte| *byte == b'\n').enumerate();
    let plain: Vec<u8> = lines.filter(|(at, line)| *at < HEAD_LINES || is_kept(line)).flat_map(|(_, line)| line.to_vec()).collect();
    assert_eq!(sifting.finish(), plain);
});

fuzz_mutator!(|data: &mut [u8], size: usize, max_size: usize, seed: u32| {
    if seed % 2 == 0 && size > 0 { fuzzer_mutate(data, size, max_size) } else { mutate_text(data, size, max_size, seed, TEXTS) }
});
