//! What a key of a schedule file may be set to. A value that cannot be is refused where it stands.

use gpuledger_scrapers::ALL;
use gpuledger_scrapers::manifest::TermsOfUse;
use serde::{Deserialize, Deserializer};

use super::Providers;

/// Longest a night may be given: a week, in minutes.
const MINUTES_MAX: u32 = 7 * 24 * 60;

pub(super) fn name<'de, D: Deserializer<'de>>(text: D) -> Result<String, D::Error> {
    let name = String::deserialize(text)?;
    let is_plain = |sign: char| sign.is_ascii_alphanumeric() || "-_".contains(sign);
    if (1..=64).contains(&name.len()) && name.chars().all(is_plain) {
        Ok(name)
    } else {
        Err(serde::de::Error::custom("a name has 1 to 64 letters of English, digits, `-` and `_`"))
    }
}

pub(super) fn minutes<'de, D: Deserializer<'de>>(number: D) -> Result<u32, D::Error> {
    let minutes = u32::deserialize(number)?;
    let is_possible = (1..=MINUTES_MAX).contains(&minutes);
    is_possible.then_some(minutes).ok_or_else(|| serde::de::Error::custom(format!("a night lasts 1 to {MINUTES_MAX} minutes")))
}

pub(super) fn days<'de, D: Deserializer<'de>>(number: D) -> Result<Option<u32>, D::Error> {
    let days = u32::deserialize(number)?;
    (days > 0).then_some(Some(days)).ok_or_else(|| serde::de::Error::custom("pages are kept for 1 day or more"))
}

pub(super) fn providers<'de, D: Deserializer<'de>>(list: D) -> Result<Providers, D::Error> {
    let providers = Providers::deserialize(list)?;
    let Providers::Named(names) = &providers else { return Ok(providers) };
    let refused = |reason: String| Err(serde::de::Error::custom(reason));
    if names.is_empty() {
        return refused("a night of no provider is none".to_owned());
    }
    for (index, name) in names.iter().enumerate() {
        let Some(scraper) = gpuledger_scrapers::find(name) else {
            let known: Vec<_> = ALL.iter().map(|scraper| scraper.manifest().provider.as_str()).collect();
            return refused(format!("there is no provider `{name}`; there are {}", known.join(", ")));
        };
        if names[..index].contains(name) {
            return refused(format!("provider `{name}` stands there twice"));
        }
        let manifest = scraper.manifest();
        if manifest.terms == TermsOfUse::Restricted {
            return refused(format!(
                "the terms of `{name}` restrict reading by machine ({}); no schedule reads it: somebody has to name it in \
                 `gpuledger collect --accept-terms` each time",
                manifest.terms_note
            ));
        }
    }
    Ok(providers)
}
