//! The rows of a published night beside those that today's code derives from the same pages.
//!
//! In: two tables of offers of one night. Out: a row for each offer that is on one side only or differs in a column. Every
//! difference is one of method: the pages are the same.

use polars::prelude::*;

use crate::frame::{Cell, Columns};
use crate::offer::OFFERS;
use crate::print::{Heading, heading};

/// What every difference comes from.
const CAUSE: &str = "method";

/// Columns that say which night and parser a row is of, and not what the offer is.
const OF_THE_RUN: [&str; 3] = ["snapshot_id", "snapshot_date", "scraper_version"];

/// Columns that go along as they are.
const TEXTS: [&str; 13] = [
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
    "published_currency_code",
    "published_unit",
    "offer_id",
];

/// Columns of the list on the terminal.
pub const HEADINGS: [Heading; 12] = [
    heading("list", "list"),
    heading("cause", "cause"),
    heading("provider", "provider"),
    heading("region", "region"),
    heading("offer", "offer"),
    heading("pricing_model", "model"),
    heading("amount_published", "published"),
    heading("amount_again", "again"),
    heading("published_currency_code", "currency"),
    heading("usd_per_gpu_hour_published", "USD/GPU-hour"),
    heading("usd_per_gpu_hour_again", "again"),
    heading("fields", "fields that differ"),
];

/// What differs.
#[derive(Debug)]
pub struct Compared {
    /// One row an offer that differs: added, removed, then changed.
    pub rows: DataFrame,
    /// Offers of only the second side.
    pub added: usize,
    /// Offers of only the first side.
    pub removed: usize,
    /// Offers of both that differ in a column.
    pub changed: usize,
}

impl Compared {
    /// Whether nothing differs.
    #[must_use]
    pub const fn is_same(&self) -> bool {
        self.added + self.removed + self.changed == 0
    }
}

/// One offer that differs.
struct Line {
    list: &'static str,
    fields: Option<String>,
    row: usize,
    side: &'static str,
}

/// Compares a night as published with the same night derived again.
///
/// # Errors
/// Only on a fault of the program.
pub fn compare(published: LazyFrame, again: LazyFrame) -> PolarsResult<Compared> {
    let compared: Vec<&str> = OFFERS
        .columns
        .iter()
        .map(|column| column.name)
        .filter(|name| *name != "offer_id" && !OF_THE_RUN.contains(name))
        .collect();
    let side = |offers: LazyFrame, suffix: &str| {
        let named = |name: &str| col(name).alias(format!("{name}_{suffix}"));
        offers.select([col("offer_id")].into_iter().chain(compared.iter().map(|name| named(name))).collect::<Vec<_>>())
    };
    let args = JoinArgs::new(JoinType::Full).with_coalesce(JoinCoalesce::CoalesceColumns);
    let both = side(published, "a").join(side(again, "b"), [col("offer_id")], [col("offer_id")], args);
    let differs = |name: &&str| col(format!("{name}_a")).neq_missing(col(format!("{name}_b")));
    let any_differs = compared.iter().map(differs).reduce(Expr::or).expect("there are columns to compare");
    let both = both.filter(any_differs).collect()?;

    let mut lines = Vec::with_capacity(both.height());
    for row in 0..both.height() {
        let is_in = |side: &str| Cell::at(&both, &format!("provider_{side}"), row).map(|cell| cell != Cell::Null);
        lines.push(match (is_in("a")?, is_in("b")?) {
            (false, _) => Line { list: "added", fields: None, row, side: "b" },
            (true, false) => Line { list: "removed", fields: None, row, side: "a" },
            (true, true) => Line { list: "changed", fields: Some(fields(&both, row, &compared)?), row, side: "b" },
        });
    }
    let count = |list: &str| lines.iter().filter(|line| line.list == list).count();
    let (added, removed, changed) = (count("added"), count("removed"), count("changed"));
    Ok(Compared { rows: frame(&both, &lines)?, added, removed, changed })
}

/// Names of the columns that differ.
fn fields(both: &DataFrame, row: usize, compared: &[&str]) -> PolarsResult<String> {
    let mut names = Vec::new();
    for name in compared {
        if Cell::at(both, &format!("{name}_a"), row)? != Cell::at(both, &format!("{name}_b"), row)? {
            names.push(*name);
        }
    }
    Ok(names.join(" "))
}

fn frame(both: &DataFrame, lines: &[Line]) -> PolarsResult<DataFrame> {
    let mut columns = Columns::new(lines.len());
    let cells = |name: &str, side: Option<&str>| -> PolarsResult<Vec<Option<String>>> {
        let cell = |line: &Line| {
            let column = if name == "offer_id" { name.to_owned() } else { format!("{name}_{}", side.unwrap_or(line.side)) };
            Cell::at(both, &column, line.row).map(|cell| if cell == Cell::Null { None } else { Some(cell.text()) })
        };
        lines.iter().map(cell).collect()
    };
    columns.texts("list", lines.iter().map(|line| Some(line.list)));
    columns.texts("cause", lines.iter().map(|_| Some(CAUSE)));
    for name in TEXTS {
        columns.strings(name, cells(name, None)?.into_iter());
    }
    let names = cells("instance_type", None)?.into_iter().zip(cells("offer_label", None)?);
    columns.strings("offer", names.map(|(instance_type, label)| instance_type.or(label)));
    let decimal = |text: Option<String>| text.and_then(|text| rust_decimal::Decimal::from_str_exact(&text).ok());
    let decimals = [
        ("gpu_count", "gpu_count", None),
        ("amount_published", "published_amount", Some("a")),
        ("amount_again", "published_amount", Some("b")),
    ];
    for (name, of, side) in decimals {
        columns.decimals(name, cells(of, side)?.into_iter().map(decimal))?;
    }
    let months = cells("commitment_months", None)?;
    columns.wholes("commitment_months", months.into_iter().map(|text| text.and_then(|text| text.parse().ok())));
    for (name, side) in [("usd_per_gpu_hour_published", "a"), ("usd_per_gpu_hour_again", "b")] {
        let prices = cells("price_usd_per_gpu_hour", Some(side))?;
        columns.floats(name, prices.into_iter().map(|text| text.and_then(|text| text.parse().ok())));
    }
    columns.strings("fields", lines.iter().map(|line| line.fields.clone()));
    let rows = columns.finish()?;
    let order = ["list", "provider", "region", "offer", "pricing_model", "offer_id"];
    rows.lazy().sort(order, SortMultipleOptions::default().with_nulls_last(true)).collect()
}
