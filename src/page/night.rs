//! A snapshot's coverage → what of each provider is in it: complete, partial, failed or skipped, why, and how old it is.
//!
//! Judges nothing anew: a scope's status is the one of the `coverage` table. Never looks at a clock; ages are counted to the
//! snapshot's own time.

use std::collections::{BTreeMap, HashMap};

use chrono::{DateTime, Utc};
use gpuledger_scrapers::{ALL, recordings};
use polars::prelude::*;

use super::text::Text;
use super::values::{integers, link, shown, texts};
use crate::answer;
use crate::earlier::is_sample;
use crate::gather::Input;
use crate::night::SnapshotId;
use crate::validate::ScopeStatus;

/// How much of a provider is in a snapshot. The worst comes first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) enum Status {
    Failed,
    Partial,
    Skipped,
    Complete,
}

impl Status {
    pub(super) const ALL: [Self; 4] = [Self::Complete, Self::Partial, Self::Failed, Self::Skipped];

    /// For the class of a cell, and never shown.
    pub(super) const fn class(self) -> &'static str {
        match self {
            Self::Failed => "failed",
            Self::Partial => "partial",
            Self::Skipped => "skipped",
            Self::Complete => "complete",
        }
    }
}

/// One provider of the night.
#[derive(Debug, Clone)]
pub(super) struct Provider {
    /// Short name.
    pub id: String,
    /// Full name; the short one where the program does not know the provider.
    pub name: String,
    /// Its page.
    pub link: Option<String>,
    pub status: Status,
    /// Word of the `coverage` table. `live`
    pub input: String,
    /// Whether some of its prices are made up to show the shape.
    pub has_made_up_prices: bool,
    pub rows: i64,
    /// Whether its rows are exchange rates.
    pub is_of_rates: bool,
    pub held_back: i64,
    pub not_understood: i64,
    pub scopes_complete: usize,
    pub scopes: usize,
    /// When the oldest page of it was read that is in the snapshot.
    pub seen: Option<DateTime<Utc>>,
    /// The last earlier night that has it, where this one has nothing.
    pub last_had: Option<SnapshotId>,
    /// Why something is missing, in the words of the record.
    pub reason: Option<String>,
}

/// The providers of a night, those that miss something first.
///
/// # Errors
/// Only on a fault of the program.
pub(super) fn providers(
    coverage: &DataFrame,
    night: SnapshotId,
    offers: &DataFrame,
    rates: &DataFrame,
) -> PolarsResult<Vec<Provider>> {
    let [ids, names, states, inputs, reasons] =
        ["snapshot_id", "provider", "status", "input", "reason"].map(|column| texts(coverage, column));
    let (ids, names, states, inputs, reasons) = (ids?, names?, states?, inputs?, reasons?);
    let [rows, held_back, skipped] = ["rows", "quarantined", "skipped"].map(|column| integers(coverage, column));
    let (rows, held_back, skipped) = (rows?, held_back?, skipped?);
    let mut seen = oldest(offers)?;
    seen.extend(newest_rates(rates, night)?);
    let mut providers: BTreeMap<&str, Provider> = BTreeMap::new();
    let mut skipped_scopes: HashMap<&str, usize> = HashMap::new();
    let mut last_had: HashMap<&str, SnapshotId> = HashMap::new();
    let id = night.to_string();
    for row in 0..coverage.height() {
        let (name, is_complete) = (names[row].as_str(), states[row] == ScopeStatus::Complete.word());
        if ids[row] != id {
            // An imported night is somebody else's word, and no night of the provider.
            let is_import = inputs[row] == Input::Import.word();
            let Ok(other) = ids[row].parse::<SnapshotId>() else { continue };
            if is_complete && !is_import && other < night {
                last_had.entry(name).and_modify(|last| *last = other.max(*last)).or_insert(other);
            }
            continue;
        }
        let provider = providers.entry(name).or_insert_with(|| Provider::named(name, &inputs[row]));
        provider.scopes += 1;
        provider.scopes_complete += usize::from(is_complete);
        *skipped_scopes.entry(name).or_insert(0) += usize::from(states[row] == ScopeStatus::Skipped.word());
        provider.rows += rows[row];
        provider.held_back += held_back[row];
        provider.not_understood += skipped[row];
        if !is_complete && provider.reason.is_none() && !reasons[row].is_empty() {
            provider.reason = Some(shown(&reasons[row]));
        }
    }
    let mut providers: Vec<Provider> = providers.into_values().collect();
    for provider in &mut providers {
        let name = provider.id.as_str();
        provider.status = match (provider.scopes_complete, provider.scopes) {
            (complete, all) if complete == all => Status::Complete,
            (0, all) if skipped_scopes.get(name) == Some(&all) => Status::Skipped,
            (0, _) => Status::Failed,
            _ => Status::Partial,
        };
        provider.seen = seen.get(name).copied();
        provider.last_had = last_had.get(name).copied().filter(|_| provider.scopes_complete == 0);
    }
    providers.sort_by(|a, b| (a.status, &a.name).cmp(&(b.status, &b.name)));
    Ok(providers)
}

/// When the oldest page of each provider was read.
fn oldest(offers: &DataFrame) -> PolarsResult<HashMap<String, DateTime<Utc>>> {
    let mut oldest: HashMap<String, DateTime<Utc>> = HashMap::new();
    for (provider, seen) in texts(offers, "provider")?.into_iter().zip(answer::seen(offers)?) {
        let Some(seen) = seen else { continue };
        oldest.entry(provider).and_modify(|oldest| *oldest = seen.min(*oldest)).or_insert(seen);
    }
    Ok(oldest)
}

/// When the newest rates of each source were read that a night knew.
fn newest_rates(rates: &DataFrame, night: SnapshotId) -> PolarsResult<HashMap<String, DateTime<Utc>>> {
    let (sources, nights) = (texts(rates, "rate_source")?, texts(rates, "snapshot_id")?);
    let mut newest: HashMap<String, DateTime<Utc>> = HashMap::new();
    for ((source, known), seen) in sources.into_iter().zip(nights).zip(answer::seen(rates)?) {
        let is_known = known.parse::<SnapshotId>().is_ok_and(|known| known <= night);
        let Some(seen) = seen.filter(|_| is_known) else { continue };
        newest.entry(source).and_modify(|newest| *newest = seen.max(*newest)).or_insert(seen);
    }
    Ok(newest)
}

impl Provider {
    fn named(id: &str, input: &str) -> Self {
        let manifest = ALL.iter().map(|scraper| scraper.manifest()).find(|manifest| manifest.provider == id);
        let is_made_up = || recordings::newest(id).is_some_and(|recording| recording.receipt.has_made_up_prices);
        Self {
            id: shown(id),
            name: manifest.map_or_else(|| shown(id), |manifest| manifest.name.clone()),
            link: manifest.and_then(|manifest| link(&manifest.homepage)),
            status: Status::Failed,
            input: input.to_owned(),
            has_made_up_prices: is_sample(input) && is_made_up(),
            rows: 0,
            is_of_rates: manifest.is_some_and(|manifest| manifest.published.is_none()),
            held_back: 0,
            not_understood: 0,
            scopes_complete: 0,
            scopes: 0,
            seen: None,
            last_had: None,
            reason: None,
        }
    }

    /// How old what is there of it is, in words.
    pub(super) fn age(&self, text: &Text, night: SnapshotId) -> String {
        match (self.seen, self.last_had) {
            (Some(seen), _) => text.seen(seen, night.instant()),
            (None, Some(last)) => text.last_had(last.instant(), night.instant()),
            (None, None) => String::new(),
        }
    }

    /// How many scopes more than the one whose reason is told are missing.
    pub(super) const fn more_missing(&self) -> usize {
        (self.scopes - self.scopes_complete).saturating_sub(1)
    }
}

/// Names of the providers with some property, in order.
pub(super) fn named(providers: &[Provider], is_meant: impl Fn(&Provider) -> bool) -> Vec<&str> {
    let mut names: Vec<&str> =
        providers.iter().filter(|provider| is_meant(provider)).map(|provider| provider.name.as_str()).collect();
    names.sort_unstable();
    names
}
