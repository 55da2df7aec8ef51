//! Inputs of the fuzzer → pages, and the laws that must hold of them.
//!
//! An input of the provider target is the number of a recording in two bytes, and the bodies of its pages with a mark
//! between them; pages without a body stand as recorded. An input without any body is therefore the recording itself, so
//! that no corpus has to be kept: the first change spells it out.

#[path = "laws.rs"]
pub mod laws;
#[path = "mutations.rs"]
pub mod mutations;

use std::sync::LazyLock;

use gpuledger_scrapers::ALL;
use gpuledger_scrapers::contract::{Page, Scraper};
use gpuledger_scrapers::recordings::{self, Recording};

use mutations::{Chance, mutate};

/// The allocator of every target. Ceiling: ARCHITECTURE.md promises no parser's memory, 512 MiB is what a body may be.
#[macro_export]
macro_rules! limited_memory {
    () => {
        #[global_allocator]
        static MEMORY: cap::Cap<std::alloc::System> = cap::Cap::new(std::alloc::System, 512 * 1024 * 1024);
    };
}

/// Between two bodies of an input. No UTF-8 text holds it.
const MARK: &[u8] = b"\xff\xfe--page--\xfe\xff";

/// The provider that is fuzzed, named by `FUZZ_PROVIDER`.
pub static PROVIDER: LazyLock<&'static dyn Scraper> = LazyLock::new(|| {
    let names = || ALL.iter().map(|scraper| scraper.manifest().provider.as_str()).collect::<Vec<_>>().join(", ");
    let wanted = std::env::var("FUZZ_PROVIDER").unwrap_or_default();
    gpuledger_scrapers::find(&wanted).unwrap_or_else(|| panic!("FUZZ_PROVIDER must be one of {}", names()))
});

static RECORDINGS: LazyLock<Vec<Recording>> = LazyLock::new(|| recordings::of(&PROVIDER.manifest().provider));

/// Every page of every recording of every provider.
static BODIES: LazyLock<Vec<Vec<u8>>> = LazyLock::new(|| {
    let recordings = ALL.iter().flat_map(|scraper| recordings::of(&scraper.manifest().provider));
    recordings.flat_map(|recording| recording.pages).map(|page| page.body).collect()
});

/// The pages of an input.
pub fn pages_of(data: &[u8]) -> Vec<Page> {
    let [low, high, rest @ ..] = data else { return Vec::new() };
    let recording = &RECORDINGS[usize::from(u16::from_le_bytes([*low, *high])) % RECORDINGS.len()];
    let mut pages = recording.pages.clone();
    if !rest.is_empty() {
        for (page, body) in pages.iter_mut().zip(split(rest)) {
            page.body = body.to_vec();
        }
    }
    pages
}

fn split(mut rest: &[u8]) -> Vec<&[u8]> {
    let mut bodies = Vec::new();
    while let Some(at) = rest.windows(MARK.len()).position(|window| window == MARK) {
        bodies.push(&rest[..at]);
        rest = &rest[at + MARK.len()..];
    }
    bodies.push(rest);
    bodies
}

/// An input of the provider target with one to four changes.
pub fn mutate_pages(data: &mut [u8], size: usize, max_size: usize, seed: u32) -> usize {
    let mut chance = Chance::new(u64::from(seed));
    // Now and then another recording is taken up, so that one run sees them all.
    let is_fresh = size <= 2 || chance.below(64) == 0;
    let number = if is_fresh { chance.below(RECORDINGS.len()) } else { usize::from(u16::from_le_bytes([data[0], data[1]])) };
    let number = u16::try_from(number).unwrap_or_default().to_le_bytes();
    let bodies = if is_fresh {
        let pages = pages_of(&number);
        pages.iter().map(|page| page.body.as_slice()).collect::<Vec<_>>().join(MARK)
    } else {
        data[2..size].to_vec()
    };
    let mut bodies: Vec<Vec<u8>> = split(&bodies).into_iter().map(<[u8]>::to_vec).collect();
    for _ in 0..=chance.below(4) {
        let page = chance.below(bodies.len());
        mutate(&mut bodies[page], &mut chance, max_size);
    }
    let mut input = number.to_vec();
    input.extend(bodies.join(MARK));
    hand_over(&input, data, max_size)
}

/// An input of a kit target with one to four changes, begun from any page there is, or from one of the texts given.
pub fn mutate_text(data: &mut [u8], size: usize, max_size: usize, seed: u32, texts: &[&str]) -> usize {
    let mut chance = Chance::new(u64::from(seed));
    let mut text = if size > 0 && chance.below(64) > 0 {
        data[..size].to_vec()
    } else if texts.is_empty() {
        BODIES[chance.below(BODIES.len())].clone()
    } else {
        texts[chance.below(texts.len())].as_bytes().to_vec()
    };
    for _ in 0..=chance.below(4) {
        mutate(&mut text, &mut chance, max_size);
    }
    hand_over(&text, data, max_size)
}

fn hand_over(input: &[u8], data: &mut [u8], max_size: usize) -> usize {
    let size = input.len().min(max_size).min(data.len());
    data[..size].copy_from_slice(&input[..size]);
    size
}

/// A page of nobody, for the kit.
pub fn page(body: &[u8]) -> Page {
    Page {
        name: "page".to_owned(),
        scope: "all".to_owned(),
        url: "https://example.com/page".to_owned(),
        observed_at: std::time::UNIX_EPOCH.into(),
        sha256: String::new(),
        body: body.to_vec(),
    }
}
