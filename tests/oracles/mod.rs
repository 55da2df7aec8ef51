//! Histories of other people, read a second time: what they say of each night, straight from their files.
//!
//! Nothing here goes through the importer: no mapping, no cutting into nights. Only names are brought together, by the rules
//! that are written out here.

pub mod sources;
pub mod trends;
pub mod walk;

use std::collections::{BTreeMap, BTreeSet};

/// Seller, machine or label, region, cards, and way to buy with its months or plan.
pub type Key = [String; 5];

/// A price as a whole number of thousand millionths, and whether it is that of one card.
pub type Price = (i64, bool);

/// What a file says of one night.
#[derive(Debug, Default, Clone)]
pub struct SourceNight {
    /// Prices by what they are of. Several of one thing are told apart by nothing that the file says.
    pub prices: BTreeMap<Key, BTreeSet<Price>>,
}

impl SourceNight {
    /// The one price of a thing.
    pub fn price(&self, key: &Key) -> Option<Price> {
        self.prices.get(key).filter(|prices| prices.len() == 1).and_then(|prices| prices.first().copied())
    }
}

/// A history: its name, and its nights by the id of the snapshot that they become.
pub struct Source {
    pub name: &'static str,
    pub nights: BTreeMap<String, SourceNight>,
    /// What the program is told to import.
    pub import: Vec<String>,
    /// What the mapping's name adds to a seller's name that is not certainly ours.
    pub suffix: &'static str,
}

/// A price as a whole number of thousand millionths, which is as exact as the mappings are.
pub fn nano(text: &str) -> i64 {
    let price: f64 = text.parse().unwrap_or_else(|error| panic!("{text}: {error}"));
    #[expect(clippy::cast_possible_truncation, reason = "prices are small")]
    let nano = (price * 1e9).round() as i64;
    nano
}

/// A number as it prints without an end of zeros.
pub fn plain(text: &str) -> String {
    text.parse::<f64>().map_or_else(|_| text.to_owned(), |number| number.to_string())
}

/// A seller's name in letters that a provider's name has.
pub fn seller(theirs: &str) -> String {
    let plain = theirs.trim().to_lowercase();
    plain.split(|c: char| !c.is_ascii_alphanumeric()).filter(|part| !part.is_empty()).collect::<Vec<_>>().join("-")
}

/// A provider's name back in the words of a history.
pub fn theirs(provider: &str, suffix: &str) -> String {
    let name = provider.strip_suffix(suffix).unwrap_or(provider);
    let renamed = match (suffix, name) {
        ("-getdeploying", "oci") => "oracle",
        ("-getdeploying", "thundercompute") => "thunder",
        (_, "ovhcloud") => "ovh",
        ("-gpurentalprices", "verda") => "datacrunch",
        (_, name) => name,
    };
    renamed.to_owned()
}
