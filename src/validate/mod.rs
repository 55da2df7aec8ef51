//! Judges a whole night: one small function per rule, each giving findings.
//!
//! In: comparable rows, what was gathered, and what earlier nights held. Out: the rows that may be published, the rows held
//! back with reasons, and what each scope covers. Only this room can make a [`Validated`], and nothing else can be published.
//! Never mends a row, and never lets a row depend on another night: earlier nights give notes and refusals only.

pub mod rows;
pub mod rules;
mod sorted;
pub mod thresholds;

use std::collections::{BTreeMap, BTreeSet};

use polars::prelude::*;

use crate::earlier::Earlier;
use crate::gather::Gathered;
use crate::night::SnapshotId;
use crate::normalise::{HELD_BACK, Normalised};
use rows::Rows;
use rules::{column, count, moves, order, provider, row, same};
use sorted::in_file_order;
use thresholds::Thresholds;

/// What a finding does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Severity {
    /// Is told.
    Note,
    /// Holds one row back.
    QuarantineRow,
    /// Makes a scope absent tonight.
    RefuseScope,
    /// Makes a provider absent tonight.
    RefuseProvider,
    /// Nothing is published tonight.
    RefuseNight,
}

impl Severity {
    /// The word in the findings file.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Note => "note",
            Self::QuarantineRow => "quarantine_row",
            Self::RefuseScope => "refuse_scope",
            Self::RefuseProvider => "refuse_provider",
            Self::RefuseNight => "refuse_night",
        }
    }
}

/// Something a rule found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// What it does.
    pub severity: Severity,
    /// The rule, or the reason's code. `key_conflict`
    pub rule: String,
    /// The provider.
    pub provider: String,
    /// The scope; empty for a whole provider or night.
    pub scope: String,
    /// What the row calls itself; empty where it is about more than a row.
    pub label: String,
    /// The archived page; empty where it is about more than a row.
    pub raw_sha256: String,
    /// Place in the page.
    pub raw_place: String,
    /// For people.
    pub reason: String,
}

impl Finding {
    /// About a provider, or with an empty name about the night.
    #[must_use]
    pub fn about_provider(severity: Severity, rule: &str, provider: &str, reason: String) -> Self {
        Self::about_scope(severity, rule, provider, "", reason)
    }

    /// About a scope.
    #[must_use]
    pub fn about_scope(severity: Severity, rule: &str, provider: &str, scope: &str, reason: String) -> Self {
        Self {
            severity,
            rule: rule.to_owned(),
            provider: provider.to_owned(),
            scope: scope.to_owned(),
            label: String::new(),
            raw_sha256: String::new(),
            raw_place: String::new(),
            reason,
        }
    }

    /// About a row: with its page and its place in it.
    fn about_row(severity: Severity, rule: &str, rows: &Rows, row: usize, reason: String) -> PolarsResult<Self> {
        Ok(Self {
            label: rows.label(row)?,
            raw_sha256: rows.cell("raw_sha256", row)?,
            raw_place: rows.cell("raw_place", row)?,
            ..Self::about_scope(severity, rule, &rows.cell("provider", row)?, &rows.cell("scope", row)?, reason)
        })
    }
}

/// Whether a scope is in tonight's snapshot.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ScopeStatus {
    /// It is, whole.
    Complete,
    /// It is not: something went wrong.
    Failed,
    /// It was not tried.
    Skipped,
}

impl ScopeStatus {
    /// The word in the `coverage` table.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Complete => "complete",
            Self::Failed => "failed",
            Self::Skipped => "skipped",
        }
    }
}

/// One row of the `coverage` table.
#[derive(Debug, Clone)]
pub struct ScopeCoverage {
    /// The provider.
    pub provider: String,
    /// The scope.
    pub scope: String,
    /// Whether it is in the snapshot.
    pub status: ScopeStatus,
    /// Offers or rates published.
    pub rows: usize,
    /// Rows not understood.
    pub skipped: usize,
    /// Rows held back.
    pub quarantined: usize,
    /// Rows that are deliberately not offers.
    pub left_out: u64,
    /// Size of the pages.
    pub bytes: u64,
    /// Time spent on fetching and reading.
    pub seconds: f64,
    /// Why it is not complete.
    pub reason: Option<String>,
    /// live, recorded, typed, files, history or import.
    pub input: &'static str,
    /// Version of the parser.
    pub scraper_version: u32,
}

/// A night that may be published.
#[derive(Debug)]
pub struct Validated {
    offers: DataFrame,
    coverage: Vec<ScopeCoverage>,
}

impl Validated {
    /// Rows of the `offers` table, in file order.
    #[must_use]
    pub const fn offers(&self) -> &DataFrame {
        &self.offers
    }

    /// What each scope covers.
    #[must_use]
    pub fn coverage(&self) -> &[ScopeCoverage] {
        &self.coverage
    }
}

/// The outcome of judging.
#[derive(Debug)]
pub struct Verdict {
    /// The night, if it may be published.
    pub night: Option<Validated>,
    /// What each scope covers, also of a refused night.
    pub coverage: Vec<ScopeCoverage>,
    /// Everything the rules found.
    pub findings: Vec<Finding>,
    /// Providers with foreign prices of which not one could be converted. They are published, and the night is not whole.
    pub without_rates: Vec<String>,
}

/// A scope that a rule refuses, by its place in the coverage.
pub struct Refusal {
    scope: usize,
    rule: &'static str,
    reason: String,
}

/// Rows that are held back, each with the first reason that was found.
pub struct HeldBack {
    is_held: Vec<bool>,
    reasons: BTreeMap<usize, String>,
}

impl HeldBack {
    fn none(rows: usize) -> Self {
        Self { is_held: vec![false; rows], reasons: BTreeMap::new() }
    }

    /// Whether a row is held back.
    #[must_use]
    pub fn has(&self, row: usize) -> bool {
        self.is_held[row]
    }

    fn hold(&mut self, row: usize, reason: impl FnOnce() -> String) {
        if !std::mem::replace(&mut self.is_held[row], true) {
            self.reasons.insert(row, reason());
        }
    }
}

/// Judges a night against what its scopes held before.
///
/// # Errors
/// Only on a fault of the program.
pub fn validate(snapshot: SnapshotId, night: Normalised, gathered: &[Gathered], earlier: &Earlier) -> PolarsResult<Verdict> {
    let thresholds = Thresholds::built_in();
    let mut findings: Vec<Finding> = gathered.iter().flat_map(Gathered::findings).collect();
    let mut coverage: Vec<ScopeCoverage> = gathered.iter().flat_map(Gathered::coverage).collect();
    let (frame, repeated) = drop_repeated(night)?;
    findings.extend(repeated);
    let rows = Rows::read(frame, &coverage)?;

    let mut held = HeldBack::none(rows.count());
    hold_back(&rows, thresholds, &mut held, &mut findings)?;
    for (row, reason) in &held.reasons {
        findings.push(held_row(&rows, *row, reason)?);
    }
    count_rows(&rows, &held, gathered, &mut coverage);

    findings.extend(provider::unknown_hardware(&rows, &held));
    let (notes, without_rates) = provider::unconverted(&rows, &held);
    findings.extend(notes);
    findings.extend(count::scope_grew(&coverage, earlier, thresholds));
    findings.extend(count::scope_gone(&coverage, earlier));
    findings.extend(gathered.iter().flat_map(|of| provider::unchanged_for_long(of, snapshot.instant(), &coverage, thresholds)));
    findings.extend(gathered.iter().filter_map(|of| provider::typed_by_hand(of, snapshot.instant(), &coverage)));
    findings.extend(gathered.iter().filter_map(|of| provider::more_than_expected(of, &coverage)));
    let moves = moves::moves(&rows, &coverage, earlier, thresholds, &held)?;
    findings.extend(moves.findings);

    // A provider is judged by what its scopes gave, before any of them is refused.
    let refused: Vec<_> = gathered.iter().map(|of| provider::refusal(of, &coverage, thresholds)).collect();
    let mut refusals = column::one_price_for_many_cards(&rows, thresholds, &held);
    refusals.extend(count::scope_shrank(&coverage, earlier, thresholds));
    refusals.extend(gathered.iter().flat_map(|of| provider::scope_held_back(of, &coverage, thresholds)));
    refusals.extend(gathered.iter().flat_map(|of| provider::old_answers(of, snapshot.instant(), &coverage, thresholds)));
    refusals.extend(moves.refusals);
    for refusal in refusals {
        refuse_scope(refusal, &mut coverage, &mut findings);
    }
    for (of, refusal) in gathered.iter().zip(refused) {
        if let Some((rule, reason)) = refusal {
            refuse_provider(&of.manifest.provider, rule, reason, &mut coverage, &mut findings);
        }
    }

    let offers = keep(rows, &held, &coverage)?;
    if offers.height() == 0 {
        let reason = "no provider has a complete scope with an offer in it".to_owned();
        findings.push(Finding::about_provider(Severity::RefuseNight, "nothing_complete", "", reason));
    }
    let is_refused = findings.iter().any(|finding| finding.severity == Severity::RefuseNight);
    let night = (!is_refused).then(|| Validated { offers, coverage: coverage.clone() });
    Ok(Verdict { night, coverage, findings, without_rates })
}

/// Rows of one offer at one price are one row: pages overlap, and one price can stand under two ids of the provider. What
/// repeats is told.
fn drop_repeated(night: Normalised) -> PolarsResult<(DataFrame, Vec<Finding>)> {
    const SAME_PRICE: [&str; 7] = [
        "offer_id",
        "published_amount",
        "published_upfront_amount",
        "published_currency_code",
        "published_unit",
        "published_per",
        HELD_BACK,
    ];
    let sorted = in_file_order(night.0)?;
    // Most nights repeat nothing, and to compare ids is cheaper than to compare prices.
    if sorted.column("offer_id")?.n_unique()? == sorted.height() {
        return Ok((sorted, Vec::new()));
    }
    let once =
        sorted.clone().lazy().unique_stable(Some(by_name(SAME_PRICE, true, false)), UniqueKeepStrategy::First).collect()?;
    let told = provider::repeated(&sorted, &once)?;
    Ok((once, told))
}

/// Asks every rule that may hold rows back. The order decides which reason a row with several gets.
fn hold_back(rows: &Rows, thresholds: &Thresholds, held: &mut HeldBack, findings: &mut Vec<Finding>) -> PolarsResult<()> {
    for at in 0..rows.count() {
        if let Some(reason) = row::RULES.iter().find_map(|rule| rule(rows, thresholds, at)) {
            held.hold(at, || reason);
        }
    }
    same::key_conflict(rows, held)?;
    same::one_price_for_any_count(rows, thresholds, held);
    same::month_and_hour(rows, thresholds, held);
    order::order(rows, thresholds, held, findings)
}

/// A row that is held back, as a finding. The reason begins with the rule's code.
fn held_row(rows: &Rows, row: usize, reason: &str) -> PolarsResult<Finding> {
    let rule = reason.split(':').next().unwrap_or_default();
    let text = rows.cell("published_text", row)?;
    let reason = format!("{reason} (published {text} {})", rows.currency.get(row).unwrap_or_default());
    Finding::about_row(Severity::QuarantineRow, rule, rows, row, reason)
}

/// Counts each scope's rows. A source of exchange rates has none here and keeps the number of its rates.
fn count_rows(rows: &Rows, held: &HeldBack, gathered: &[Gathered], coverage: &mut [ScopeCoverage]) {
    let sells: BTreeSet<&str> =
        gathered.iter().filter(|of| of.manifest.published.is_some()).map(|of| of.manifest.provider.as_str()).collect();
    for scope in coverage.iter_mut().filter(|scope| sells.contains(scope.provider.as_str())) {
        scope.rows = 0;
    }
    for row in 0..rows.count() {
        let scope = &mut coverage[rows.scope_of[row]];
        if held.has(row) {
            scope.quarantined += 1;
        } else {
            scope.rows += 1;
        }
    }
}

/// Makes a scope absent tonight. What several rules refuse keeps the first reason, and each rule's finding.
fn refuse_scope(refusal: Refusal, coverage: &mut [ScopeCoverage], findings: &mut Vec<Finding>) {
    let Refusal { scope, rule, reason } = refusal;
    let scope = &mut coverage[scope];
    findings.push(Finding::about_scope(Severity::RefuseScope, rule, &scope.provider, &scope.scope, reason.clone()));
    if scope.status == ScopeStatus::Complete {
        scope.status = ScopeStatus::Failed;
        scope.rows = 0;
        scope.reason = Some(reason);
    }
}

/// Makes a provider absent tonight.
fn refuse_provider(name: &str, rule: &str, reason: String, coverage: &mut [ScopeCoverage], findings: &mut Vec<Finding>) {
    for scope in coverage.iter_mut().filter(|scope| scope.provider == name && scope.status == ScopeStatus::Complete) {
        scope.status = ScopeStatus::Failed;
        scope.rows = 0;
        scope.reason = Some(reason.clone());
    }
    findings.push(Finding::about_provider(Severity::RefuseProvider, rule, name, reason));
}

/// Only rows of complete scopes that nothing holds back enter a snapshot.
fn keep(rows: Rows, held: &HeldBack, coverage: &[ScopeCoverage]) -> PolarsResult<DataFrame> {
    let is_complete = |row: usize| coverage[rows.scope_of[row]].status == ScopeStatus::Complete;
    let keep: Vec<bool> = (0..rows.count()).map(|row| !held.has(row) && is_complete(row)).collect();
    if keep.iter().all(|is_kept| *is_kept) {
        return rows.frame.drop(HELD_BACK);
    }
    rows.frame.filter(&BooleanChunked::from_slice("keep".into(), &keep))?.drop(HELD_BACK)
}
