//! A published night → the real price changes in it, and the providers that have been missing for long.
//!
//! What the difference of two snapshots calls a change of price, and nothing else: no exchange rate, no other reading of the
//! same page, no offer that came or went. Each offer is compared with the newest night before in which it was seen, so a
//! change behind a night in which its provider failed is not lost. Recordings are compared with recordings only. Reads a
//! bounded number of snapshots, all published before the night itself, so the answer for a night stays what it was.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::path::Path;

use chrono::Days;
use gpuledger_scrapers::ALL;
use polars::prelude::*;

use crate::diff::{self, List};
use crate::earlier::{DAYS_LOOKED_BACK, SNAPSHOTS_LOOKED_BACK, is_sample};
use crate::frame::Cell;
use crate::night::SnapshotId;
use crate::snapshot::SnapshotError;
use crate::snapshot::read::{self, Snapshot};

/// Nights that are looked through, beside those that must be missing, for one that has the provider.
const NIGHTS_LOOKED_BACK: usize = 30;

/// A price that its source changed.
#[derive(Debug, Clone, PartialEq)]
pub struct PriceChange {
    /// Who sells.
    pub provider: String,
    /// Machine type, or label where there is none.
    pub offer: String,
    /// Region as published; empty where there is none. The texts below likewise.
    pub region: String,
    /// Canonical name of the card.
    pub gpu_model: String,
    /// Number of cards.
    pub gpu_count: String,
    /// Operating system.
    pub os: String,
    /// on_demand, spot, reserved …
    pub pricing_model: String,
    /// Plan as published.
    pub plan: String,
    /// Months of a promise.
    pub commitment_months: String,
    /// Currency that the price is published in now.
    pub currency_code: String,
    /// What the amount is for. `hour`
    pub unit: String,
    /// Amount before, exactly as published.
    pub amount_before: String,
    /// Amount now.
    pub amount_now: String,
    /// Change of the price of the machine for an hour, in percent; `None` where both cannot be compared, as in two currencies.
    pub change_percent: Option<f64>,
    /// The offer.
    pub offer_id: String,
    /// The night that it is compared with.
    pub before: SnapshotId,
}

/// A provider that was there and has been missing since.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Missing {
    /// The provider.
    pub provider: String,
    /// Published nights without it, up to and with the night that was asked about.
    pub nights: usize,
    /// The last night that has it.
    pub last_seen: SnapshotId,
    /// Why it is missing in the night that was asked about.
    pub reason: String,
}

/// The price changes of a night, in order of provider, place and offer.
///
/// # Errors
/// When the dataset cannot be read.
pub async fn of_night(output: &Path, snapshots: &[Snapshot], night: &Snapshot) -> Result<Vec<PriceChange>, SnapshotError> {
    let window = looked_back(snapshots, night);
    let coverage = read::coverage(output, &window).await?;
    let unreadable = |source| SnapshotError::Parquet { path: output.to_owned(), source };
    let samples = samples(&coverage).map_err(unreadable)?;
    let mut changes = Vec::new();
    let mut to_be_found: Option<BTreeSet<String>> = None;
    for before in window[..window.len() - 1].iter().rev() {
        let offers = to_be_found.as_ref();
        if offers.is_some_and(BTreeSet::is_empty) {
            break;
        }
        let diff = diff::of_offers(output, &window, before, night, offers).await?;
        let found = Found::of(&diff.rows, before.id, |provider| {
            let is_sample = |id: SnapshotId| samples.get(&(id.to_string(), provider.to_owned()));
            is_sample(before.id) == is_sample(night.id)
        });
        let found = found.map_err(unreadable)?;
        changes.extend(found.changes);
        to_be_found = Some(found.not_comparable);
    }
    changes.sort_by(|a, b| order(a).cmp(&order(b)));
    Ok(changes)
}

/// A night and those before it that it is compared with, oldest first.
fn looked_back(snapshots: &[Snapshot], night: &Snapshot) -> Vec<Snapshot> {
    let first = SnapshotId::at(night.id.instant() - Days::new(DAYS_LOOKED_BACK));
    let mut window = up_to(snapshots, night, SNAPSHOTS_LOOKED_BACK + 1);
    window.retain(|snapshot| snapshot.id >= first);
    window
}

/// Whether there is a night before with which prices of a night are compared at all: without one, no change is no news.
///
/// # Errors
/// When the dataset cannot be read.
pub async fn is_compared(output: &Path, snapshots: &[Snapshot], night: &Snapshot) -> Result<bool, SnapshotError> {
    let window = looked_back(snapshots, night);
    let coverage = read::coverage(output, &window).await?;
    let unreadable = |source| SnapshotError::Parquet { path: output.to_owned(), source };
    let samples = samples(&coverage).map_err(unreadable)?;
    let nights = nights_of(&coverage).map_err(unreadable)?;
    let is_had = |provider: &str, id: SnapshotId| {
        nights.get(provider).is_some_and(|nights| nights.iter().any(|(other, reason)| *other == id && reason.is_none()))
    };
    // A source of exchange rates has no prices to compare.
    let has_prices = |provider: &str| {
        !ALL.iter().map(|scraper| scraper.manifest()).any(|known| known.provider == provider && known.published.is_none())
    };
    let is_alike = |provider: &String, before: &Snapshot| {
        let is_sample = |id: SnapshotId| samples.get(&(id.to_string(), provider.clone()));
        has_prices(provider)
            && is_had(provider, before.id)
            && is_had(provider, night.id)
            && is_sample(before.id) == is_sample(night.id)
    };
    Ok(window[..window.len() - 1].iter().any(|before| nights.keys().any(|provider| is_alike(provider, before))))
}

fn order(change: &PriceChange) -> [&str; 6] {
    let PriceChange { provider, region, offer, os, pricing_model, offer_id, .. } = change;
    [provider, region, offer, os, pricing_model, offer_id]
}

/// The last nights up to one, oldest first, as they were known when that one was published.
fn up_to(snapshots: &[Snapshot], night: &Snapshot, nights: usize) -> Vec<Snapshot> {
    let is_known = |snapshot: &&Snapshot| snapshot.id <= night.id && snapshot.version <= night.version;
    let known: Vec<Snapshot> = snapshots.iter().filter(is_known).cloned().collect();
    let newest = read::newest_of_each_night(&known);
    newest[newest.len().saturating_sub(nights)..].iter().copied().cloned().collect()
}

/// Whether a provider's pages were samples in a night.
fn samples(coverage: &DataFrame) -> PolarsResult<HashMap<(String, String), bool>> {
    let mut samples = HashMap::new();
    for row in 0..coverage.height() {
        let cell = |name: &str| Cell::at(coverage, name, row).map(|cell| cell.text());
        samples.insert((cell("snapshot_id")?, cell("provider")?), is_sample(&cell("input")?));
    }
    Ok(samples)
}

/// What one comparison says.
struct Found {
    changes: Vec<PriceChange>,
    /// Offers of the night that the other side does not have, or has from pages of another kind.
    not_comparable: BTreeSet<String>,
}

impl Found {
    fn of(rows: &DataFrame, before: SnapshotId, is_alike: impl Fn(&str) -> bool) -> PolarsResult<Self> {
        let mut found = Self { changes: Vec::new(), not_comparable: BTreeSet::new() };
        for row in 0..rows.height() {
            let text = |name: &str| Cell::at(rows, name, row).map(|cell| cell.text());
            let list = text("list")?;
            if list == List::Changed.word() && is_alike(&text("provider")?) {
                if text("cause")? == diff::PRICE_CAUSE {
                    found.changes.push(change(rows, row, before)?);
                }
            } else if list == List::Changed.word() || text("missing_in")? == "a" {
                found.not_comparable.insert(text("offer_id")?);
            }
        }
        Ok(found)
    }
}

fn change(rows: &DataFrame, row: usize, before: SnapshotId) -> PolarsResult<PriceChange> {
    let text = |name: &str| Cell::at(rows, name, row).map(|cell| cell.text());
    Ok(PriceChange {
        provider: text("provider")?,
        offer: text("offer")?,
        region: text("region")?,
        gpu_model: text("gpu_model")?,
        gpu_count: text("gpu_count")?,
        os: text("os")?,
        pricing_model: text("pricing_model")?,
        plan: text("plan")?,
        commitment_months: text("commitment_months")?,
        currency_code: text("currency_code")?,
        unit: text("unit")?,
        amount_before: text("amount_a")?,
        amount_now: text("amount_b")?,
        change_percent: text("change_percent")?.parse().ok(),
        offer_id: text("offer_id")?,
        before,
    })
}

/// Providers that an earlier night has and the last `nights_min` that asked for them have not, in order of name.
///
/// # Errors
/// When the dataset cannot be read.
pub async fn missing(
    output: &Path,
    snapshots: &[Snapshot],
    night: &Snapshot,
    nights_min: usize,
) -> Result<Vec<Missing>, SnapshotError> {
    let window = up_to(snapshots, night, nights_min.saturating_add(NIGHTS_LOOKED_BACK));
    let coverage = read::coverage(output, &window).await?;
    let nights = nights_of(&coverage).map_err(|source| SnapshotError::Parquet { path: output.to_owned(), source })?;
    let mut missing = Vec::new();
    for (provider, nights) in nights {
        let Some((_, reason)) = nights.last().filter(|(id, _)| *id == night.id) else { continue };
        let Some(reason) = reason.clone() else { continue };
        let gone = nights.iter().rev().take_while(|(_, reason)| reason.is_some()).count();
        if let Some((last_seen, _)) = nights.iter().rev().nth(gone).filter(|_| gone >= nights_min) {
            missing.push(Missing { provider, nights: gone, last_seen: *last_seen, reason });
        }
    }
    Ok(missing)
}

/// Each provider's nights, oldest first: why nothing of it is in the snapshot, or `None` where something is.
type Nights = BTreeMap<String, Vec<(SnapshotId, Option<String>)>>;

fn nights_of(coverage: &DataFrame) -> PolarsResult<Nights> {
    let mut by_night: BTreeMap<(String, SnapshotId), Option<String>> = BTreeMap::new();
    for row in 0..coverage.height() {
        let cell = |name: &str| Cell::at(coverage, name, row).map(|cell| cell.text());
        let Ok(id) = cell("snapshot_id")?.parse::<SnapshotId>() else { continue };
        let is_complete = cell("status")? == "complete";
        let reason = by_night.entry((cell("provider")?, id)).or_insert(Some(cell("reason")?));
        if is_complete {
            *reason = None;
        }
    }
    let mut nights = Nights::new();
    for ((provider, id), reason) in by_night {
        nights.entry(provider).or_default().push((id, reason));
    }
    Ok(nights)
}

impl PriceChange {
    /// Whether the price is one of a market, which moves every night: told after those that somebody decided to change.
    #[must_use]
    pub fn is_of_market(&self) -> bool {
        self.pricing_model == "spot"
    }

    /// What is sold, in words. `gpu_8x_h100 us-east-1, 8 × H100 SXM, on_demand, linux`
    #[must_use]
    pub fn what(&self) -> String {
        let gpus = match (self.gpu_count.as_str(), self.gpu_model.as_str()) {
            (_, "") => String::new(),
            ("" | "1", model) => model.to_owned(),
            (count, model) => format!("{count} × {model}"),
        };
        let months = if self.commitment_months.is_empty() { String::new() } else { format!("{} months", self.commitment_months) };
        let place = if self.region.is_empty() { self.offer.clone() } else { format!("{} {}", self.offer, self.region) };
        let parts = [place, gpus, self.pricing_model.clone(), self.plan.clone(), months, self.os.clone()];
        parts.into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join(", ")
    }

    /// How the price moved, in words. `23.92 → 21.52 USD per hour (−10.0 %)`
    #[must_use]
    pub fn how(&self) -> String {
        let (before, now, currency, unit) = (&self.amount_before, &self.amount_now, &self.currency_code, &self.unit);
        match self.change_percent {
            Some(percent) if before == now => {
                format!("{now} {currency} per {unit} as before, on other terms ({})", signed(percent))
            }
            Some(percent) => format!("{before} → {now} {currency} per {unit} ({})", signed(percent)),
            None => format!("{before} → {now} {currency} per {unit}, not in the same currency or unit as before"),
        }
    }
}

/// A change in percent with its sign. `+12.5 %`
fn signed(percent: f64) -> String {
    // Rounded to nothing, a change has no direction.
    let shown = format!("{percent:+.1} %");
    if shown == "-0.0 %" || shown == "+0.0 %" { "0.0 %".to_owned() } else { shown.replace('-', "−") }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::frame::Columns;

    #[test]
    fn only_what_a_source_changed_is_a_price_change() {
        let rows = [
            ("changed", "price", "acme", None),
            ("changed", "method", "acme", None),
            ("changed", "price", "samples", None),
            ("added", "", "acme", Some("a")),
            ("removed", "", "acme", Some("b")),
            ("not_observed", "", "acme", Some("a")),
            ("exchange_rate", "rate", "", None),
        ];
        let mut columns = Columns::new(rows.len());
        columns.texts("list", rows.iter().map(|row| Some(row.0)));
        columns.texts("cause", rows.iter().map(|row| Some(row.1)));
        columns.texts("provider", rows.iter().map(|row| Some(row.2)));
        columns.texts("missing_in", rows.iter().map(|row| row.3));
        columns.strings("offer_id", (0..rows.len()).map(|index| Some(index.to_string())));
        let others = ["offer", "region", "gpu_model", "gpu_count", "os", "pricing_model", "plan", "commitment_months"];
        for name in others.iter().chain(&["currency_code", "unit", "amount_a", "amount_b", "change_percent"]) {
            columns.texts(name, rows.iter().map(|_| None));
        }
        let rows = columns.finish().expect("the columns are of one length");
        let before = "2026-11-01T02-00-00Z".parse().expect("an id");
        let found = Found::of(&rows, before, |provider| provider == "acme").expect("the columns are there");
        assert_eq!(found.changes.iter().map(|change| change.offer_id.as_str()).collect::<Vec<_>>(), ["0"]);
        // These are looked for in an earlier night: what is not there, and what is of another kind of page.
        assert_eq!(found.not_comparable.iter().map(String::as_str).collect::<Vec<_>>(), ["2", "3", "5"]);
    }

    #[test]
    fn a_move_is_told_with_its_sign_and_what_cannot_be_compared_without() {
        let change = PriceChange {
            provider: "acme".to_owned(),
            offer: "x8".to_owned(),
            region: "eu".to_owned(),
            gpu_model: "H100 SXM".to_owned(),
            gpu_count: "8".to_owned(),
            os: String::new(),
            pricing_model: "reserved".to_owned(),
            plan: String::new(),
            commitment_months: "12".to_owned(),
            currency_code: "USD".to_owned(),
            unit: "hour".to_owned(),
            amount_before: "23.92".to_owned(),
            amount_now: "21.52".to_owned(),
            change_percent: Some(-10.033),
            offer_id: "1".to_owned(),
            before: "2026-11-01T02-00-00Z".parse().expect("an id"),
        };
        assert_eq!(change.what(), "x8 eu, 8 × H100 SXM, reserved, 12 months");
        assert_eq!(change.how(), "23.92 → 21.52 USD per hour (−10.0 %)");
        let upfront = PriceChange { amount_now: "23.92".to_owned(), change_percent: Some(4.26), ..change.clone() };
        assert_eq!(upfront.how(), "23.92 USD per hour as before, on other terms (+4.3 %)");
        let euros = PriceChange { change_percent: None, currency_code: "EUR".to_owned(), ..change };
        assert_eq!(euros.how(), "23.92 → 21.52 EUR per hour, not in the same currency or unit as before");
    }
}
