//! The closed sets of words: a word of a set is itself, and everything else is no word.
#![no_main]

use gpuledger_fuzz::{limited_memory, mutate_text};
use gpuledger_scrapers::words::{Availability, Os, PricePer, PriceUnit, PricingModel, Site, SourceKind, Tenancy, Upfront};
use libfuzzer_sys::{fuzz_mutator, fuzz_target, fuzzer_mutate};

limited_memory!();

macro_rules! hold {
    ($text:expr, $($set:ty),+) => {
        $(match serde_json::from_value::<$set>($text.into()) {
            Ok(word) => assert_eq!(word.word(), $text),
            Err(_) => assert!(<$set>::ALL.iter().all(|word| word.word() != $text)),
        })+
    };
}

const TEXTS: &[&str] = &["hour", "month", "term", "instance", "gpu", "linux", "on_demand", "spot", "none", "all", "sold_out", "cn"];

fuzz_target!(|data: &[u8]| {
    let Ok(text) = std::str::from_utf8(data) else { return };
    hold!(text, Availability, Os, PricePer, PriceUnit, PricingModel, Site, SourceKind, Tenancy, Upfront);
});

fuzz_mutator!(|data: &mut [u8], size: usize, max_size: usize, seed: u32| {
    if seed % 2 == 0 && size > 0 { fuzzer_mutate(data, size, max_size) } else { mutate_text(data, size, max_size, seed, TEXTS) }
});
