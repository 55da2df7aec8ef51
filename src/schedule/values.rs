//! What a key of a schedule file may be set to. A value that cannot be is refused where it stands.

use gpuledger_scrapers::ALL;
use gpuledger_scrapers::manifest::{Manifest, TermsOfUse};
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
        if let Err(reason) = nobody_agrees_to(scraper.manifest()) {
            return refused(reason);
        }
    }
    Ok(providers)
}

/// Whether a schedule may name a provider: nobody is there at night who could agree to terms.
fn nobody_agrees_to(manifest: &Manifest) -> Result<(), String> {
    if manifest.terms != TermsOfUse::Restricted {
        return Ok(());
    }
    Err(format!(
        "the terms of `{}` restrict reading by machine ({}), so no schedule reads it: somebody has to name it in `gpuledger collect \
         --accept-terms` each time",
        manifest.provider, manifest.terms_note
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_schedule_names_a_provider_whose_terms_restrict_reading_by_machine() {
        let mut manifest = ALL[0].manifest().clone();
        for (terms, is_refused) in [(TermsOfUse::Open, false), (TermsOfUse::Unchecked, false), (TermsOfUse::Restricted, true)] {
            manifest.terms = terms;
            assert_eq!(nobody_agrees_to(&manifest).is_err(), is_refused, "{terms:?}");
        }
        let named = |provider: &str| {
            format!(
                "name = \"a\"\ncron = \"0 2 * * *\"\ntime_zone = \"UTC\"\nproviders = [\"{provider}\"]\noutput = \"o\"\nlongest_minutes = 9\n"
            )
        };
        for manifest in ALL.iter().map(|scraper| scraper.manifest()) {
            let parsed = crate::schedule::parse(&named(&manifest.provider), std::path::Path::new("a.toml"));
            assert_eq!(parsed.is_ok(), manifest.terms != TermsOfUse::Restricted, "{}", manifest.provider);
        }
    }

    #[test]
    fn a_schedule_has_no_key_that_agrees_to_terms() {
        let text = format!("{}accept_terms = []\n", include_str!("../../schedules/nightly.toml"));
        let error = crate::schedule::parse(&text, std::path::Path::new("a.toml")).expect_err("it cannot be used").to_string();
        assert!(error.contains("unknown field `accept_terms`"), "{error}");
    }
}
