//! Two snapshots → what changed between them.
//!
//! Compares amounts as published, in their own currency: a move of an exchange rate is no change of a price and is told
//! apart. An offer is called removed or added only where its scope was complete on the other side; and where one crawl
//! alone lacks it, it is called unconfirmed, because lists lose rows for a night. What only another reading of the same
//! bytes moved is called a change of method and not of price.

mod aligned;
mod renamed;
pub mod show;

#[cfg(test)]
mod laws;

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::path::Path;

use polars::prelude::*;

use crate::frame::{Cell, Columns};
use crate::offer::COVERAGE;
use crate::snapshot::SnapshotError;
use crate::snapshot::read::{self, Snapshot};

/// Columns that say what an offer costs.
const PRICE: [&str; 6] = [
    "published_amount",
    "published_upfront_amount",
    "published_currency_code",
    "published_unit",
    "published_per",
    "tax_included",
];

/// Columns that say what an offer is.
const WHAT: [&str; 17] = [
    "provider",
    "site",
    "scope",
    "region",
    "zone",
    "instance_type",
    "offer_label",
    "gpu_model",
    "gpu_count",
    "os",
    "licence",
    "tenancy",
    "pricing_model",
    "plan",
    "commitment_months",
    "upfront",
    "is_promotion",
];

/// Columns that say what else is in an offer: one under another name agrees in them too.
const ALONG_WHAT: [&str; 5] = ["vcpus", "system_memory_gib", "local_disk_gb", "gpu_memory_gb", "form_factor"];

/// Columns that go along.
const ALONG: [&str; 6] =
    ["price_native_per_hour", "price_usd_per_gpu_hour", "scraper_version", "raw_sha256", "raw_place", "published_text"];

/// Cause of a difference that is one of reading, not of the source.
const METHOD: &str = "method";

/// Cause of a difference that is one of the source.
pub const PRICE_CAUSE: &str = "price";

/// The five lists, and exchange rates.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum List {
    /// The offer is on both sides and its price differs.
    Changed,
    /// The offer has another name on the second side, and the same everything else.
    Renamed,
    /// The offer is on the second side only.
    Added,
    /// The offer is on the first side only.
    Removed,
    /// The offer is on one side only, and its scope was not complete on the other: nobody knows.
    NotObserved,
    /// An exchange rate that differs; no offer.
    ExchangeRate,
}

impl List {
    /// The word in the output.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Changed => "changed",
            Self::Renamed => "renamed",
            Self::Added => "added",
            Self::Removed => "removed",
            Self::NotObserved => "not_observed",
            Self::ExchangeRate => "exchange_rate",
        }
    }
}

/// Columns of a difference, in output order.
pub const COLUMNS: [&str; 24] = [
    "list",
    "is_unconfirmed",
    "cause",
    "provider",
    "region",
    "zone",
    "offer",
    "gpu_model",
    "gpu_count",
    "os",
    "licence",
    "tenancy",
    "pricing_model",
    "plan",
    "commitment_months",
    "upfront",
    "currency_code",
    "unit",
    "amount_a",
    "amount_b",
    "change_percent",
    "missing_in",
    "offer_id",
    "renamed_from",
];

/// The difference of two snapshots: one row an offer, in the columns of [`COLUMNS`].
#[derive(Debug, Clone)]
pub struct Diff {
    /// Rows by list, then by offer.
    pub rows: DataFrame,
}

impl Diff {
    /// Rows of one list.
    ///
    /// # Errors
    /// Only on a fault of the program.
    pub fn list(&self, list: List) -> PolarsResult<DataFrame> {
        self.rows.clone().lazy().filter(col("list").eq(lit(list.word()))).collect()
    }
}

/// Compares two snapshots.
///
/// # Errors
/// When the dataset cannot be read.
pub async fn diff(output: &Path, snapshots: &[Snapshot], a: &Snapshot, b: &Snapshot) -> Result<Diff, SnapshotError> {
    of_offers(output, snapshots, a, b, None).await
}

/// The same for some offers, by id; for all with `None`.
///
/// # Errors
/// As [`diff`].
pub async fn of_offers(
    output: &Path,
    snapshots: &[Snapshot],
    a: &Snapshot,
    b: &Snapshot,
    offer_ids: Option<&BTreeSet<String>>,
) -> Result<Diff, SnapshotError> {
    let coverage = read::coverage(output, snapshots).await?;
    let history = History::of(snapshots, &coverage, a.is_import()).map_err(|source| failed(output, source))?;
    let (mut offers_a, mut offers_b) = (read::offers(a)?, read::offers(b)?);
    if let Some(ids) = offer_ids {
        let is_wanted = is_one_of(ids.iter().map(String::as_str));
        (offers_a, offers_b) = (offers_a.filter(is_wanted.clone()), offers_b.filter(is_wanted));
    }
    compare(offers_a, offers_b, a, b, &history).map_err(|source| failed(output, source))
}

/// Whether an offer is one of these. Its own set, because polars would make one for every part of a file.
fn is_one_of<'a>(ids: impl Iterator<Item = &'a str>) -> Expr {
    let ids: HashSet<String> = ids.map(str::to_owned).collect();
    let is_one = move |offers: Column| {
        let found = offers.str()?.iter().map(|id| id.is_some_and(|id| ids.contains(id)));
        Ok(BooleanChunked::from_iter_values(offers.name().clone(), found).into_column())
    };
    col("offer_id").map(is_one, |_, field| Ok(Field::new(field.name().clone(), DataType::Boolean)))
}

fn failed(output: &Path, source: PolarsError) -> SnapshotError {
    SnapshotError::Parquet { path: output.join(COVERAGE.name), source }
}

fn compare(offers_a: LazyFrame, offers_b: LazyFrame, a: &Snapshot, b: &Snapshot, history: &History<'_>) -> PolarsResult<Diff> {
    let rates = rate_moves(&offers_a, &offers_b)?;
    let side = |offers: LazyFrame, columns: &[&str], suffix: &str| {
        let named = columns.iter().map(|name| col(*name).alias(format!("{name}_{suffix}")));
        offers.select([col("offer_id")].into_iter().chain(named).collect::<Vec<_>>())
    };
    let both = |a: LazyFrame, b: LazyFrame| {
        let args = JoinArgs::new(JoinType::Full).with_coalesce(JoinCoalesce::CoalesceColumns);
        a.join(b, [col("offer_id")], [col("offer_id")], args)
    };
    // Few offers differ, so which they are is asked of the columns of the price alone, and the rest is read of those only.
    let ids = aligned::ids_that_differ(offers_a.clone(), offers_b.clone(), &PRICE)?;
    let is_one = is_one_of(ids.iter().flatten());
    history.asks_only_for(&is_one);
    let columns: Vec<&str> = PRICE.iter().chain(&WHAT).chain(&ALONG_WHAT).chain(&ALONG).copied().collect();
    let whole = |offers: LazyFrame, suffix| side(offers.filter(is_one.clone()), &columns, suffix);
    let rows = both(whole(offers_a, "a"), whole(offers_b, "b")).sort(["offer_id"], SortMultipleOptions::default()).collect()?;

    let mut lines = Vec::with_capacity(rows.height());
    let rows = Sides::of(&rows, &columns)?;
    for row in 0..rows.ids.len() {
        lines.push(Line::of(&rows, row, a, b, history)?);
    }
    let mut lines = renamed::pair(lines);
    lines.extend(rates);
    // What a line is sorted by is looked up once, and not for every comparison.
    let mut sorted: Vec<_> = lines.iter().map(|line| (line.order(), line)).collect();
    sorted.sort_by(|(x, _), (y, _)| x.cmp(y));
    let sorted: Vec<&Line> = sorted.into_iter().map(|(_, line)| line).collect();
    Ok(Diff { rows: lines_frame(&sorted)? })
}

/// The two sides of the offers that differ, each column found once and not for every row.
struct Sides<'a> {
    ids: &'a Column,
    columns: HashMap<&'a str, [&'a Column; 2]>,
}

impl<'a> Sides<'a> {
    fn of(rows: &'a DataFrame, names: &[&'a str]) -> PolarsResult<Self> {
        let side = |name: &str, side: &str| rows.column(&format!("{name}_{side}"));
        let columns = names.iter().map(|name| Ok((*name, [side(name, "a")?, side(name, "b")?])));
        Ok(Self { ids: rows.column("offer_id")?, columns: columns.collect::<PolarsResult<_>>()? })
    }

    fn cell(&self, name: &str, side: &str, row: usize) -> PolarsResult<Cell> {
        let [a, b] = self.columns[name];
        Cell::of(if side == "a" { a } else { b }, row)
    }
}

/// One row of the difference.
#[derive(Debug, Clone)]
struct Line {
    list: List,
    is_unconfirmed: bool,
    cause: Option<&'static str>,
    missing_in: Option<&'static str>,
    change_percent: Option<f64>,
    texts: BTreeMap<&'static str, String>,
}

impl Line {
    fn of(rows: &Sides, row: usize, a: &Snapshot, b: &Snapshot, history: &History<'_>) -> PolarsResult<Self> {
        let cell = |name: &str, side: &str| rows.cell(name, side, row);
        let is_in = |side: &str| cell("published_currency_code", side).map(|cell| cell != Cell::Null);
        let (in_a, in_b) = (is_in("a")?, is_in("b")?);
        let known = if in_b { "b" } else { "a" };
        let mut texts: BTreeMap<&'static str, String> = BTreeMap::new();
        for name in WHAT.iter().chain(&PRICE).chain(&ALONG_WHAT) {
            texts.insert(*name, cell(name, known)?.text());
        }
        texts.insert("offer_id", Cell::of(rows.ids, row)?.text());
        texts.insert("currency_code", cell("published_currency_code", known)?.text());
        texts.insert("unit", cell("published_unit", known)?.text());
        for (name, side) in [("amount_a", "a"), ("amount_b", "b")] {
            texts.insert(name, cell("published_amount", side)?.text());
        }
        let mut line =
            Self { list: List::Changed, is_unconfirmed: false, cause: None, missing_in: None, change_percent: None, texts };
        if in_a && in_b {
            let differs = |name: &str| -> PolarsResult<bool> { Ok(cell(name, "a")? != cell(name, "b")?) };
            // The same characters in the same place of the same bytes were only read otherwise. The place alone does not say
            // so: a price that is added up from parts names the place of one.
            let is_same_print = !differs("raw_sha256")? && !differs("raw_place")? && !differs("published_text")?;
            let is_method = a.id.is_same_night(b.id) || differs("scraper_version")? || is_same_print;
            line.cause = Some(if is_method { METHOD } else { PRICE_CAUSE });
            if !differs("published_currency_code")? {
                let float =
                    |side: &str| -> PolarsResult<Option<f64>> { Ok(cell("price_native_per_hour", side)?.text().parse().ok()) };
                line.change_percent = change_percent(float("a")?, float("b")?);
            }
            return Ok(line);
        }
        let (missing, name) = if in_a { (b, "b") } else { (a, "a") };
        line.missing_in = Some(name);
        // A night and its correction are one crawl, read twice.
        line.cause = a.id.is_same_night(b.id).then_some(METHOD);
        let place = ScopePlace {
            provider: line.text("provider"),
            scope: line.text("scope"),
            region: line.text("region"),
            zone: line.text("zone"),
        };
        let (list, is_unconfirmed) = if history.covers(missing, &place) {
            let list = if in_a { List::Removed } else { List::Added };
            let is_confirmed = line.cause.is_some() || history.confirms_absence(missing, &place, line.text("offer_id"))?;
            (list, !is_confirmed)
        } else {
            (List::NotObserved, false)
        };
        Ok(Self { list, is_unconfirmed, ..line })
    }

    fn text(&self, name: &str) -> &str {
        self.texts.get(name).map_or("", String::as_str)
    }

    fn offer(&self) -> &str {
        if self.text("instance_type").is_empty() { self.text("offer_label") } else { self.text("instance_type") }
    }

    fn order(&self) -> impl Ord + '_ {
        let texts = ["provider", "region", "zone"].map(|name| self.text(name));
        (
            self.list,
            self.is_unconfirmed,
            texts,
            self.offer(),
            self.text("os"),
            self.text("pricing_model"),
            self.text("commitment_months"),
            self.text("offer_id"),
            // Lines of exchange rates differ in nothing else.
            self.text("currency_code"),
        )
    }
}

/// The change in percent of the first price; `None` where that is no number to divide by.
fn change_percent(a: Option<f64>, b: Option<f64>) -> Option<f64> {
    let (a, b) = (a?, b?);
    (a > 0.0).then(|| (b - a) / a * 100.0)
}

/// Exchange rates that differ between the two sides, one line a currency.
fn rate_moves(offers_a: &LazyFrame, offers_b: &LazyFrame) -> PolarsResult<Vec<Line>> {
    let rates = |offers: &LazyFrame, name: &str| {
        // All rows of a currency and day have one rate, and there are few of either.
        let by_day = offers.clone().filter(col("usd_per_native").is_not_null());
        let by_day = by_day.group_by([col("published_currency_code"), col("rate_date")]).agg([col("usd_per_native").last()]);
        let newest = col("usd_per_native").sort_by([col("rate_date")], SortMultipleOptions::default()).last();
        by_day.group_by([col("published_currency_code")]).agg([newest.alias(name)])
    };
    let currency = [col("published_currency_code")];
    let joined = rates(offers_a, "a").join(rates(offers_b, "b"), currency.clone(), currency, JoinArgs::new(JoinType::Inner));
    let moved = joined.filter(col("a").neq(col("b"))).collect()?;
    let mut lines = Vec::new();
    for row in 0..moved.height() {
        let cell = |name: &str| Cell::at(&moved, name, row).map(|cell| cell.text());
        let (a, b) = (cell("a")?, cell("b")?);
        let texts = BTreeMap::from([
            ("currency_code", cell("published_currency_code")?),
            ("unit", "usd_per_native".to_owned()),
            ("amount_a", a.clone()),
            ("amount_b", b.clone()),
        ]);
        let change_percent = change_percent(a.parse().ok(), b.parse().ok());
        lines.push(Line {
            list: List::ExchangeRate,
            is_unconfirmed: false,
            cause: Some("rate"),
            missing_in: None,
            change_percent,
            texts,
        });
    }
    Ok(lines)
}

fn lines_frame(lines: &[&Line]) -> PolarsResult<DataFrame> {
    let mut columns = Columns::new(lines.len());
    let filled = |text: &str| if text.is_empty() { None } else { Some(text.to_owned()) };
    columns.texts("list", lines.iter().map(|line| Some(line.list.word())));
    columns.truths("is_unconfirmed", lines.iter().map(|line| Some(line.is_unconfirmed)));
    columns.texts("cause", lines.iter().map(|line| line.cause));
    columns.texts("missing_in", lines.iter().map(|line| line.missing_in));
    columns.floats("change_percent", lines.iter().map(|line| line.change_percent));
    columns.strings("offer", lines.iter().map(|line| filled(line.offer())));
    const TEXTS: [&str; 14] = [
        "provider",
        "region",
        "zone",
        "gpu_model",
        "os",
        "licence",
        "tenancy",
        "pricing_model",
        "plan",
        "upfront",
        "currency_code",
        "unit",
        "offer_id",
        "renamed_from",
    ];
    for name in TEXTS {
        columns.strings(name, lines.iter().map(|line| filled(line.text(name))));
    }
    for name in ["gpu_count", "amount_a", "amount_b"] {
        let decimal = |line: &&Line| rust_decimal::Decimal::from_str_exact(line.text(name)).ok();
        columns.decimals(name, lines.iter().map(decimal))?;
    }
    columns.wholes("commitment_months", lines.iter().map(|line| line.text("commitment_months").parse().ok()));
    columns.finish()?.select(COLUMNS)
}

/// Where an offer stands, for asking whether it could have been seen.
struct ScopePlace<'a> {
    provider: &'a str,
    scope: &'a str,
    region: &'a str,
    zone: &'a str,
}

/// Which scopes were complete in which snapshot.
struct History<'a> {
    /// The newest of each night: a night that was corrected is no second crawl.
    nights: Vec<&'a Snapshot>,
    complete: HashMap<String, BTreeSet<(String, String)>>,
    /// Ids of the only offers that are asked for; of all without them.
    wanted: RefCell<Option<Expr>>,
    ids: RefCell<HashMap<usize, HashSet<String>>>,
}

impl<'a> History<'a> {
    /// With `is_import`, of the imported nights; otherwise of those that were collected.
    fn of(snapshots: &'a [Snapshot], coverage: &DataFrame, is_import: bool) -> PolarsResult<Self> {
        let complete_rows = coverage.clone().lazy().filter(col("status").eq(lit("complete"))).collect()?;
        let mut complete: HashMap<String, BTreeSet<(String, String)>> = HashMap::new();
        let texts = |name: &str| -> PolarsResult<StringChunked> { Ok(complete_rows.column(name)?.str()?.clone()) };
        let (ids, providers, scopes) = (texts("snapshot_id")?, texts("provider")?, texts("scope")?);
        for ((id, provider), scope) in ids.iter().zip(providers.iter()).zip(scopes.iter()) {
            if let (Some(id), Some(provider), Some(scope)) = (id, provider, scope) {
                complete.entry(id.to_owned()).or_default().insert((provider.to_owned(), scope.to_owned()));
            }
        }
        let nights = read::newest_of_each_night(snapshots).into_iter().filter(|night| night.is_import() == is_import).collect();
        Ok(Self { nights, complete, wanted: RefCell::default(), ids: RefCell::default() })
    }

    /// Says which offers may be asked for: of a large night few, and to keep the ids of all costs more than to compare it.
    fn asks_only_for(&self, is_one: &Expr) {
        *self.wanted.borrow_mut() = Some(is_one.clone());
        self.ids.borrow_mut().clear();
    }

    /// Whether an offer of this place would have been seen in a snapshot. A provider is read by region on one night and
    /// as a whole on another; either way the place is covered.
    fn covers(&self, snapshot: &Snapshot, place: &ScopePlace<'_>) -> bool {
        let Some(complete) = self.complete.get(&snapshot.id.to_string()) else { return false };
        let has = |scope: &str| !scope.is_empty() && complete.contains(&(place.provider.to_owned(), scope.to_owned()));
        has(place.scope) || has("all") || place.scope == "all" && (has(place.region) || has(place.zone))
    }

    /// Whether a second complete crawl, before or after, lacks the offer too. The first crawl of a place needs no second:
    /// nothing earlier says otherwise.
    fn confirms_absence(&self, snapshot: &Snapshot, place: &ScopePlace<'_>, offer_id: &str) -> PolarsResult<bool> {
        let covered = |other: &&Snapshot| self.covers(other, place);
        let at = snapshot.id.instant();
        let before = self.nights.iter().copied().rev().filter(|other| other.id.instant() < at).find(covered);
        let after = self.nights.iter().copied().filter(|other| other.id.instant() > at).find(covered);
        let Some(before) = before else { return Ok(true) };
        if !self.has_offer(before, offer_id)? {
            return Ok(true);
        }
        after.map_or(Ok(false), |after| Ok(!self.has_offer(after, offer_id)?))
    }

    fn has_offer(&self, snapshot: &Snapshot, offer_id: &str) -> PolarsResult<bool> {
        if !self.ids.borrow().contains_key(&snapshot.version) {
            let offers = read::offers(snapshot).map_err(|error| polars_err!(ComputeError: "{error}"))?;
            let wanted = self.wanted.borrow().clone();
            let offers = wanted.map_or_else(|| offers.clone(), |wanted| offers.clone().filter(wanted));
            let ids = offers.select([col("offer_id")]).collect()?;
            let ids = ids.column("offer_id")?.str()?.iter().flatten().map(str::to_owned).collect();
            self.ids.borrow_mut().insert(snapshot.version, ids);
        }
        Ok(self.ids.borrow().get(&snapshot.version).is_some_and(|ids| ids.contains(offer_id)))
    }
}
