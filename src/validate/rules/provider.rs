//! Rules of a provider as a whole: how much of it was held back, how much there should be, how old its pages are, whether its
//! prices could be converted.

use std::collections::BTreeMap;

use chrono::{DateTime, Utc};
use polars::prelude::*;

use crate::gather::{Gathered, Input};
use crate::validate::rows::Rows;
use crate::validate::rules::row::is_unknown_hardware;
use crate::validate::thresholds::Thresholds;
use crate::validate::{Finding, HeldBack, Refusal, ScopeCoverage, ScopeStatus, Severity};
use gpuledger_scrapers::contract::UNKNOWN_HARDWARE;

/// Too many rows of a scope were held back or not understood: what is left is no fair picture of it.
pub fn scope_held_back(provider: &Gathered, coverage: &[ScopeCoverage], thresholds: &Thresholds) -> Vec<Refusal> {
    let mut refusals = Vec::new();
    for (scope, of) in complete(provider, coverage) {
        let lost = of.quarantined + provider.not_understood(&of.scope);
        let rows = of.rows + lost;
        if lost >= thresholds.scope_held_back_rows_min.value && lost * 100 > rows * thresholds.held_back_percent_max.value {
            let reason = format!("{lost} of {rows} rows had to be held back or were not understood");
            refusals.push(Refusal { scope, rule: "too_many_held_back", reason });
        }
    }
    refusals
}

/// Why a provider is refused as a whole.
pub fn refusal(provider: &Gathered, coverage: &[ScopeCoverage], thresholds: &Thresholds) -> Option<(&'static str, String)> {
    let scopes = || complete(provider, coverage).map(|(_, scope)| scope);
    let rows: usize = scopes().map(|scope| scope.rows).sum();
    let lost: usize = scopes().map(|scope| scope.quarantined + provider.not_understood(&scope.scope)).sum();
    if lost * 100 > (rows + lost) * thresholds.held_back_percent_max.value {
        return Some((
            "too_many_held_back",
            format!("{lost} of {} rows had to be held back or were not understood", rows + lost),
        ));
    }
    let name = provider.manifest.provider.as_str();
    let is_whole = coverage.iter().filter(|scope| scope.provider == name).all(|scope| scope.status == ScopeStatus::Complete);
    let expect = provider.manifest.expect.filter(|expect| provider.is_live() && is_whole && rows < expect.offers_min)?;
    let reason = format!("{rows} offers, fewer than the {} that its manifest expects of a healthy night", expect.offers_min);
    Some(("too_few_offers", reason))
}

/// More offers than the manifest expects.
pub fn more_than_expected(provider: &Gathered, coverage: &[ScopeCoverage]) -> Option<Finding> {
    let rows: usize = complete(provider, coverage).map(|(_, scope)| scope.rows).sum();
    let expect = provider.manifest.expect.filter(|expect| rows > expect.offers_max)?;
    let reason = format!("{rows} offers, more than the {} that its manifest expects", expect.offers_max);
    Some(Finding::about_provider(Severity::Note, "more_offers_than_expected", &provider.manifest.provider, reason))
}

/// Pages that were read long before the night they are said to be of.
pub fn old_answers(
    provider: &Gathered,
    night: DateTime<Utc>,
    coverage: &[ScopeCoverage],
    thresholds: &Thresholds,
) -> Vec<Refusal> {
    let mut refusals = Vec::new();
    for (scope, of) in complete(provider, coverage).filter(|_| provider.is_live()) {
        let oldest = provider.pages(&of.scope).map(|page| page.observed_at).min();
        if let Some(oldest) = oldest.filter(|at| (night - *at).num_hours() >= thresholds.answer_age_hours_max.value) {
            let reason = format!("a page was read {} hours before the night, at {oldest}", (night - oldest).num_hours());
            refusals.push(Refusal { scope, rule: "old_answer", reason });
        }
    }
    refusals
}

/// Answers that a server has called unchanged for very long.
pub fn unchanged_for_long(
    provider: &Gathered,
    night: DateTime<Utc>,
    coverage: &[ScopeCoverage],
    thresholds: &Thresholds,
) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (_, of) in complete(provider, coverage) {
        let since = provider.pages(&of.scope).filter_map(|page| page.unchanged_since).min();
        if let Some(since) = since.filter(|at| (night - *at).num_days() >= thresholds.unchanged_days_noted_min.value) {
            let reason =
                format!("the server says that a page is unchanged since {since}, for {} days", (night - since).num_days());
            findings.push(Finding::about_scope(Severity::Note, "unchanged_for_long", &of.provider, &of.scope, reason));
        }
    }
    findings
}

/// Prices typed by a person go stale unseen: says how old they are.
pub fn typed_by_hand(provider: &Gathered, night: DateTime<Utc>, coverage: &[ScopeCoverage]) -> Option<Finding> {
    let scopes = complete(provider, coverage).filter(|(_, scope)| scope.input == Input::Typed.word());
    let oldest = scopes.flat_map(|(_, scope)| provider.pages(&scope.scope)).map(|page| page.observed_at).min()?;
    let reason = format!("typed by hand as of {oldest}, {} days before the night", (night - oldest).num_days());
    Some(Finding::about_provider(Severity::Note, "typed_by_hand", &provider.manifest.provider, reason))
}

fn complete<'a>(provider: &'a Gathered, coverage: &'a [ScopeCoverage]) -> impl Iterator<Item = (usize, &'a ScopeCoverage)> + 'a {
    let of_provider = |scope: &ScopeCoverage| scope.provider == provider.manifest.provider;
    coverage.iter().enumerate().filter(move |(_, scope)| of_provider(scope) && scope.status == ScopeStatus::Complete)
}

/// The rule that finds a provider of whose foreign prices not one could be converted.
pub const NO_RATES_AT_ALL: &str = "no_rates_at_all";

/// What rates were missing or too old for.
#[derive(Default)]
struct Unconverted<'a> {
    missing: usize,
    stale: usize,
    foreign: usize,
    without_usd: usize,
    currencies: std::collections::BTreeSet<&'a str>,
}

/// Counts the prices that could not be converted, and names the providers of which no foreign price could.
pub fn unconverted(rows: &Rows, held: &HeldBack) -> (Vec<Finding>, Vec<String>) {
    let mut providers: BTreeMap<&str, Unconverted<'_>> = BTreeMap::new();
    for row in (0..rows.count()).filter(|&row| !held.has(row)) {
        let currency = rows.currency.get(row).unwrap_or_default();
        let (is_missing, is_stale) = (rows.has_flag(row, "rate_missing"), rows.has_flag(row, "rate_stale"));
        if currency == "USD" && !is_missing && !is_stale {
            continue;
        }
        let of = providers.entry(rows.provider.get(row).unwrap_or_default()).or_default();
        of.missing += usize::from(is_missing);
        of.stale += usize::from(is_stale);
        if currency != "USD" {
            of.foreign += 1;
            if rows.usd_per_hour.get(row).is_none() {
                of.without_usd += 1;
                of.currencies.insert(currency);
            }
        }
    }
    let mut findings = Vec::new();
    let mut without_rates = Vec::new();
    for (provider, of) in providers {
        for (rule, count, what) in
            [("rate_missing", of.missing, "no exchange rate"), ("rate_stale", of.stale, "no fresh exchange rate")]
        {
            if count > 0 {
                let reason = format!("{count} offers have {what} for one of their comparable prices, which is left empty");
                findings.push(Finding::about_provider(Severity::Note, rule, provider, reason));
            }
        }
        if of.foreign > 0 && of.without_usd == of.foreign {
            let currencies = of.currencies.into_iter().collect::<Vec<_>>().join(", ");
            let reason = format!("none of {} offers in {currencies} has a price in USD", of.foreign);
            findings.push(Finding::about_provider(Severity::Note, NO_RATES_AT_ALL, provider, reason));
            without_rates.push(provider.to_owned());
        }
    }
    (findings, without_rates)
}

/// Notes the machines that nobody has read about: they are published with their price and without GPUs.
pub fn unknown_hardware(rows: &Rows, held: &HeldBack) -> Vec<Finding> {
    let mut offers: BTreeMap<(&str, &str), usize> = BTreeMap::new();
    for row in (0..rows.count()).filter(|&row| !held.has(row) && is_unknown_hardware(rows, row)) {
        let machine = (rows.provider.get(row).unwrap_or_default(), rows.instance_type.get(row).unwrap_or_default());
        *offers.entry(machine).or_insert(0) += 1;
    }
    let note = |((provider, machine), offers): ((&str, &str), usize)| {
        let reason = format!("{offers} offers of `{machine}`, which is not in the hardware table: published without GPUs");
        let finding = Finding::about_provider(Severity::Note, UNKNOWN_HARDWARE, provider, reason);
        Finding { label: machine.to_owned(), ..finding }
    };
    offers.into_iter().map(note).collect()
}

/// Rows that were read more than once at one price, and stand in the snapshot once.
///
/// # Errors
/// Only on a fault of the program.
pub fn repeated(read: &DataFrame, kept: &DataFrame) -> PolarsResult<Vec<Finding>> {
    if read.height() == kept.height() {
        return Ok(Vec::new());
    }
    let count = |rows: &DataFrame| -> PolarsResult<BTreeMap<(String, String), usize>> {
        let counted = rows.clone().lazy().group_by([col("provider"), col("scope")]).agg([len().alias("rows")]).collect()?;
        let (providers, scopes) = (counted.column("provider")?.str()?, counted.column("scope")?.str()?);
        let rows = counted.column("rows")?.cast(&DataType::UInt64)?;
        let keys = providers
            .iter()
            .zip(scopes.iter())
            .map(|(provider, scope)| (provider.unwrap_or_default().to_owned(), scope.unwrap_or_default().to_owned()));
        let rows = rows.u64()?.iter().map(|rows| rows.and_then(|rows| usize::try_from(rows).ok()).unwrap_or_default());
        Ok(keys.zip(rows).collect())
    };
    let (before, after) = (count(read)?, count(kept)?);
    let mut findings = Vec::new();
    for ((provider, scope), rows) in before {
        let dropped = rows - after.get(&(provider.clone(), scope.clone())).copied().unwrap_or_default();
        if dropped > 0 {
            let reason = format!("{dropped} of {rows} rows repeat an offer at the same price and stand there once");
            findings.push(Finding::about_scope(Severity::Note, "repeated_rows", &provider, &scope, reason));
        }
    }
    Ok(findings)
}
