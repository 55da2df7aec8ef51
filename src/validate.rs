//! Judges a whole night: one small function per rule, each giving findings.
//!
//! In: comparable rows and what was gathered. Out: the rows that may be published, the rows held back with reasons, and
//! what each scope covers. Only this room can make a [`Validated`], and nothing else can be published. Never mends a row.

use std::collections::{BTreeMap, BTreeSet};

use gpuledger_scrapers::contract::UNKNOWN_HARDWARE;
use polars::prelude::*;

use crate::frame::Cell;
use crate::gather::Gathered;
use crate::normalise::{HELD_BACK, Normalised};
use crate::offer::OFFERS;

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
    /// live, recorded, typed, files or history.
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
}

/// Share of a provider's rows above which held-back rows refuse the provider, in percent: what is left is no longer a
/// fair picture of it.
const HELD_BACK_PERCENT_MAX: usize = 20;

/// Judges a night.
///
/// # Errors
/// Only on a fault of the program.
pub fn validate(night: &Normalised, gathered: &[Gathered]) -> PolarsResult<Verdict> {
    let mut findings: Vec<Finding> = gathered.iter().flat_map(|provider| provider.findings()).collect();
    let rows = drop_repeated(&night.0)?;
    let (rows, held_back) = quarantine(rows, &mut findings)?;
    let mut coverage: Vec<ScopeCoverage> = gathered.iter().flat_map(Gathered::coverage).collect();
    for scope in &mut coverage {
        scope.quarantined = held_back.get(&(scope.provider.clone(), scope.scope.clone())).map_or(0, |rows| *rows);
        if let Some(counted) = rows_of(&rows, scope)? {
            scope.rows = counted;
        }
    }
    unknown_hardware(&rows, &mut findings)?;
    for provider in gathered {
        judge_provider(provider, &mut coverage, &mut findings);
    }
    let offers = keep_complete(rows, &coverage)?;
    if offers.height() == 0 {
        findings.push(Finding {
            severity: Severity::RefuseNight,
            rule: "nothing_complete".to_owned(),
            provider: String::new(),
            scope: String::new(),
            label: String::new(),
            raw_sha256: String::new(),
            raw_place: String::new(),
            reason: "no provider has a complete scope with an offer in it".to_owned(),
        });
    }
    let is_refused = findings.iter().any(|finding| finding.severity == Severity::RefuseNight);
    let night = (!is_refused).then(|| Validated { offers, coverage: coverage.clone() });
    Ok(Verdict { night, coverage, findings })
}

/// Rows of one offer at one price are one row: pages overlap, and one price can stand under two ids of the provider.
fn drop_repeated(rows: &DataFrame) -> PolarsResult<DataFrame> {
    const SAME_PRICE: [&str; 7] = [
        "offer_id",
        "published_amount",
        "published_upfront_amount",
        "published_currency_code",
        "published_unit",
        "published_per",
        HELD_BACK,
    ];
    rows.clone()
        .lazy()
        .sort_by_exprs(file_order(), SortMultipleOptions::default().with_nulls_last(true).with_maintain_order(true))
        .unique_stable(Some(by_name(SAME_PRICE, true, false)), UniqueKeepStrategy::First)
        .collect()
}

/// Order of the file: the table's order, then everything that can still differ, so that the same rows in any order give
/// the same bytes.
fn file_order() -> Vec<Expr> {
    OFFERS.order.iter().chain(&["published_amount", "sku", "raw_sha256", "raw_place"]).map(|name| col(*name)).collect()
}

type HeldBack = BTreeMap<(String, String), usize>;

/// Takes out the rows that cannot be published and says why.
fn quarantine(rows: DataFrame, findings: &mut Vec<Finding>) -> PolarsResult<(DataFrame, HeldBack)> {
    let ids = rows.column("offer_id")?.str()?.clone();
    let mut seen: BTreeMap<&str, Vec<usize>> = BTreeMap::new();
    for (row, id) in ids.iter().enumerate() {
        seen.entry(id.expect("every row has an id")).or_default().push(row);
    }
    let conflicting: BTreeSet<usize> = seen.into_values().filter(|rows| rows.len() > 1).flatten().collect();
    let reasons = rows.column(HELD_BACK)?.str()?.clone();
    let mut held_back = HeldBack::new();
    let mut keep = Vec::with_capacity(rows.height());
    for row in 0..rows.height() {
        let reason = match (reasons.get(row), conflicting.contains(&row)) {
            (Some(reason), _) => Some(reason.to_owned()),
            (None, true) => Some("key_conflict: another row of the same offer has another price or other terms".to_owned()),
            (None, false) => None,
        };
        keep.push(reason.is_none());
        if let Some(reason) = reason {
            let cell = |name: &str| Cell::at(&rows, name, row).map(|cell| cell.text());
            let finding = Finding {
                severity: Severity::QuarantineRow,
                rule: reason.split(':').next().map_or_else(String::new, str::to_owned),
                provider: cell("provider")?,
                scope: cell("scope")?,
                label: label_of(&rows, row)?,
                raw_sha256: cell("raw_sha256")?,
                raw_place: cell("raw_place")?,
                reason: format!("{reason} (published {} {})", cell("published_text")?, cell("published_currency_code")?),
            };
            *held_back.entry((finding.provider.clone(), finding.scope.clone())).or_insert(0) += 1;
            findings.push(finding);
        }
    }
    let kept = rows.filter(&BooleanChunked::from_slice("keep".into(), &keep))?.drop(HELD_BACK)?;
    Ok((kept, held_back))
}

/// Notes the machines that nobody has read about: they are published with their price and without GPUs.
fn unknown_hardware(rows: &DataFrame, findings: &mut Vec<Finding>) -> PolarsResult<()> {
    let (flags, mut offers) = (rows.column("flags")?.str()?, BTreeMap::<(String, String), usize>::new());
    for (row, flags) in flags.iter().enumerate() {
        if flags.is_some_and(|flags| flags.split(',').any(|flag| flag == UNKNOWN_HARDWARE)) {
            let cell = |name: &str| Cell::at(rows, name, row).map(|cell| cell.text());
            *offers.entry((cell("provider")?, cell("instance_type")?)).or_insert(0) += 1;
        }
    }
    for ((provider, machine), offers) in offers {
        let reason = format!("{offers} offers of `{machine}`, which is not in the hardware table: published without GPUs");
        findings.push(Finding { label: machine, ..about_provider(Severity::Note, UNKNOWN_HARDWARE, &provider, reason) });
    }
    Ok(())
}

/// What a row calls itself.
fn label_of(rows: &DataFrame, row: usize) -> PolarsResult<String> {
    let mut parts = Vec::new();
    for name in
        ["instance_type", "offer_label", "gpu_label", "region", "zone", "os", "pricing_model", "plan", "commitment_months"]
    {
        let text = Cell::at(rows, name, row)?.text();
        if !text.is_empty() {
            parts.push(text);
        }
    }
    Ok(parts.join(" "))
}

/// Offers of a scope; `None` for a scope of exchange rates.
fn rows_of(rows: &DataFrame, scope: &ScopeCoverage) -> PolarsResult<Option<usize>> {
    if scope.status != ScopeStatus::Complete
        || gpuledger_scrapers::find(&scope.provider).is_some_and(|scraper| scraper.manifest().published.is_none())
    {
        return Ok(None);
    }
    let of_scope = rows
        .clone()
        .lazy()
        .filter(col("provider").eq(lit(scope.provider.as_str())).and(col("scope").eq(lit(scope.scope.as_str()))))
        .select([col("offer_id")])
        .collect()?;
    Ok(Some(of_scope.height()))
}

/// The rules over one provider.
fn judge_provider(provider: &Gathered, coverage: &mut [ScopeCoverage], findings: &mut Vec<Finding>) {
    let name = provider.manifest.provider.as_str();
    let complete = || coverage.iter().filter(|scope| scope.provider == name && scope.status == ScopeStatus::Complete);
    let (rows, held_back): (usize, usize) =
        (complete().map(|scope| scope.rows).sum(), complete().map(|scope| scope.quarantined).sum());
    let is_whole = coverage.iter().filter(|scope| scope.provider == name).all(|scope| scope.status == ScopeStatus::Complete);
    let refusal = if held_back * 100 > (rows + held_back) * HELD_BACK_PERCENT_MAX {
        Some(("too_many_held_back", format!("{held_back} of {} rows had to be held back", rows + held_back)))
    } else if let Some(expect) = provider.manifest.expect
        && provider.is_live()
        && is_whole
        && rows < expect.offers_min
    {
        let reason = format!("{rows} offers, fewer than the {} that its manifest expects of a healthy night", expect.offers_min);
        Some(("too_few_offers", reason))
    } else {
        None
    };
    if let Some(expect) = provider.manifest.expect
        && rows > expect.offers_max
    {
        let reason = format!("{rows} offers, more than the {} that its manifest expects", expect.offers_max);
        findings.push(about_provider(Severity::Note, "more_offers_than_expected", name, reason));
    }
    if let Some((rule, reason)) = refusal {
        for scope in coverage.iter_mut().filter(|scope| scope.provider == name && scope.status == ScopeStatus::Complete) {
            scope.status = ScopeStatus::Failed;
            scope.rows = 0;
            scope.reason = Some(reason.clone());
        }
        findings.push(about_provider(Severity::RefuseProvider, rule, name, reason));
    }
}

fn about_provider(severity: Severity, rule: &str, provider: &str, reason: String) -> Finding {
    Finding {
        severity,
        rule: rule.to_owned(),
        provider: provider.to_owned(),
        scope: String::new(),
        label: String::new(),
        raw_sha256: String::new(),
        raw_place: String::new(),
        reason,
    }
}

/// Only rows of complete scopes enter a snapshot.
fn keep_complete(rows: DataFrame, coverage: &[ScopeCoverage]) -> PolarsResult<DataFrame> {
    let complete: BTreeSet<(&str, &str)> = coverage
        .iter()
        .filter(|scope| scope.status == ScopeStatus::Complete)
        .map(|scope| (scope.provider.as_str(), scope.scope.as_str()))
        .collect();
    let (providers, scopes) = (rows.column("provider")?.str()?.clone(), rows.column("scope")?.str()?.clone());
    let keep: BooleanChunked = providers
        .iter()
        .zip(scopes.iter())
        .map(|(provider, scope)| provider.zip(scope).is_some_and(|key| complete.contains(&key)))
        .collect();
    rows.filter(&keep)
}
