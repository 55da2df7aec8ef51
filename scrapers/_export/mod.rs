//! Names of other people's catalogues: what they call the sellers, makers and cards that this program knows.
//!
//! In: the tables beside this file. Out: their names. What a table does not have has no name there; nothing is derived from
//! ours.

use std::collections::BTreeMap;

use serde::Deserialize;

/// The names of a catalogue.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Names {
    /// What the catalogue is called. `gpuhunt`
    pub name: String,
    /// Who keeps it.
    pub homepage: String,
    /// Sellers by our name.
    pub sellers: BTreeMap<String, String>,
    /// Makers by our name.
    pub makers: BTreeMap<String, String>,
    /// Cards by our name.
    pub cards: BTreeMap<String, String>,
    /// Cards by our name, at sellers (by our name) where they are called otherwise.
    #[serde(default)]
    pub cards_of: BTreeMap<String, BTreeMap<String, String>>,
    /// Processors of the machines of a card, where they are not x86.
    #[serde(default)]
    pub processors: BTreeMap<String, String>,
    /// Marks of a seller's spot offers.
    #[serde(default)]
    pub spot_flags: BTreeMap<String, String>,
    /// By seller, what ends the name of the machine.
    #[serde(default)]
    pub machine_ends_before: BTreeMap<String, String>,
    /// By seller, what no name of a machine has.
    #[serde(default)]
    pub no_machine_with: BTreeMap<String, String>,
}

impl Names {
    /// Names of gpuhunt's catalogue.
    ///
    /// # Panics
    /// When the built-in table does not read, which a test excludes.
    #[must_use]
    pub fn gpuhunt() -> Self {
        toml::from_str(include_str!("gpuhunt.toml")).expect("the built-in table reads")
    }

    /// Names of SkyPilot's catalogues.
    ///
    /// # Panics
    /// As [`Names::gpuhunt`].
    #[must_use]
    pub fn skypilot() -> Self {
        toml::from_str(include_str!("skypilot.toml")).expect("the built-in table reads")
    }

    /// What a card is called at a seller, both by our names.
    #[must_use]
    pub fn card(&self, seller: &str, card: &str) -> Option<&str> {
        let own = self.cards_of.get(seller).and_then(|cards| cards.get(card));
        own.or_else(|| self.cards.get(card)).map(String::as_str)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_seller_of_a_catalogue_is_ours_and_has_one_name_there() {
        for names in [Names::gpuhunt(), Names::skypilot()] {
            let mut theirs: Vec<&String> = names.sellers.values().collect();
            theirs.sort();
            theirs.dedup();
            assert_eq!(theirs.len(), names.sellers.len(), "{}", names.name);
            let of_others = [&names.spot_flags, &names.machine_ends_before, &names.no_machine_with];
            let named = of_others.iter().flat_map(|table| table.keys()).chain(names.cards_of.keys());
            for seller in names.sellers.keys().chain(named) {
                assert!(crate::find(seller).is_some() && names.sellers.contains_key(seller), "{}: {seller}", names.name);
            }
        }
    }
}
