//! Rows into the order of their file.
//!
//! The order is that of the table's columns and then of everything that can still differ. Rows that were worked out in it
//! already stay as they are.

use std::cmp::Ordering;

use polars::prelude::*;

use crate::offer::OFFERS;
use crate::sorted::{Keys, nulls_last};

/// What still tells rows apart whose columns of the table's order are equal.
const LAST: [&str; 4] = ["published_amount", "sku", "raw_sha256", "raw_place"];

/// So many columns are put in order beside each other.
const COLUMNS_AT_ONCE: usize = 4;

/// The one column of the table's order that is another for nearly every row, and its last.
const ID: &str = "offer_id";

/// Rows in file order. Rows that agree in all of it keep their order.
///
/// # Errors
/// Only on a fault of the program.
pub fn in_file_order(rows: DataFrame) -> PolarsResult<DataFrame> {
    let mut keys = Keys::of(rows.height());
    for name in OFFERS.order.iter().filter(|name| **name != ID) {
        let column = rows.column(name)?;
        match column.dtype() {
            DataType::String => keys.then(column.str()?.iter()),
            DataType::Boolean => keys.then(column.bool()?.iter()),
            DataType::Int32 => keys.then(column.i32()?.iter()),
            DataType::Decimal(..) => keys.then(column.decimal()?.physical().iter()),
            other => polars_bail!(ComputeError: "{name} of type {other} is in no order"),
        }
    }
    if !keys.has_room() {
        return by_columns(&rows);
    }
    let last = Last::of(&rows)?;
    let order = keys.order(|a, b| last.compare(a, b));
    drop(last);
    if order.iter().zip(0..).all(|(at, row)| *at == row) {
        return Ok(rows);
    }
    taken(rows, &IdxCa::from_vec("order".into(), order))
}

/// Rows in an order, a few columns at a time: the whole of a large night is never there twice.
fn taken(rows: DataFrame, order: &IdxCa) -> PolarsResult<DataFrame> {
    let height = rows.height();
    let mut unsorted = rows.into_columns().into_iter();
    let mut sorted = Vec::with_capacity(unsorted.len());
    loop {
        let few: Vec<Column> = unsorted.by_ref().take(COLUMNS_AT_ONCE).collect();
        if few.is_empty() {
            return DataFrame::new(height, sorted);
        }
        sorted.extend(DataFrame::new(height, few)?.take(order)?.into_columns());
    }
}

/// The same by the columns themselves.
fn by_columns(rows: &DataFrame) -> PolarsResult<DataFrame> {
    let order: Vec<Expr> = OFFERS.order.iter().chain(&LAST).map(|name| col(*name)).collect();
    let options = SortMultipleOptions::default().with_nulls_last(true).with_maintain_order(true);
    rows.clone().lazy().sort_by_exprs(order, options).collect()
}

/// The columns that are compared where all others are equal.
struct Last {
    id: StringChunked,
    amount: Int128Chunked,
    texts: [StringChunked; 3],
}

impl Last {
    fn of(rows: &DataFrame) -> PolarsResult<Self> {
        let text = |name: &str| Ok::<_, PolarsError>(rows.column(name)?.str()?.rechunk().into_owned());
        let amount = rows.column(LAST[0])?.decimal()?.physical().rechunk().into_owned();
        Ok(Self { id: text(ID)?, amount, texts: [text(LAST[1])?, text(LAST[2])?, text(LAST[3])?] })
    }

    fn compare(&self, a: IdxSize, b: IdxSize) -> Ordering {
        let (a, b) = (a as usize, b as usize);
        let texts = || {
            let differs = |texts: &StringChunked| Some(nulls_last(texts.get(a), texts.get(b))).filter(|order| order.is_ne());
            self.texts.iter().find_map(differs).unwrap_or(Ordering::Equal)
        };
        nulls_last(self.id.get(a), self.id.get(b))
            .then_with(|| nulls_last(self.amount.get(a), self.amount.get(b)))
            .then_with(texts)
    }
}

#[cfg(test)]
mod tests {
    use gpuledger_scrapers::contract::PublishedOffer;
    use gpuledger_scrapers::manifest::Manifest;
    use gpuledger_scrapers::recordings;
    use proptest::prelude::*;

    use super::*;
    use crate::frame::{self, Columns};
    use crate::night::SnapshotId;
    use crate::normalise::{Observed, normalise, normalise_in_file_order};

    /// A row of few values, so that many rows agree in some of them: which columns have which value.
    type Row = (Vec<Option<u8>>, Option<i8>);

    fn frame_of(rows: &[Row]) -> DataFrame {
        let mut columns = Columns::new(rows.len());
        let names: Vec<&str> = OFFERS.order.iter().chain(&LAST).copied().collect();
        for (at, name) in names.iter().enumerate() {
            let value =
                |row: &Row| row.0[at % row.0.len()].map(|value| value.wrapping_mul(u8::try_from(at + 1).unwrap_or(1)) % 5);
            let number = |row: &Row| row.1.map(i128::from).or_else(|| value(row).map(i128::from));
            match OFFERS.columns.iter().find(|column| column.name == *name).map(|column| frame::data_type(column.kind)) {
                Some(DataType::String) => {
                    columns.strings(name, rows.iter().map(|row| value(row).map(|value| "ä".repeat(value.into()))))
                }
                Some(DataType::Boolean) => columns.truths(name, rows.iter().map(|row| value(row).map(|value| value % 2 == 0))),
                Some(DataType::Int32) => columns.wholes(name, rows.iter().map(|row| value(row).map(i32::from))),
                _ => columns.scaled(name, rows.iter().map(number)),
            }
        }
        columns.longs("row", (0_i64..).take(rows.len()).map(Some));
        columns.finish().expect("the columns are of one length")
    }

    /// Offers of all recordings.
    fn recorded() -> Vec<(&'static Manifest, String, Vec<PublishedOffer>)> {
        let mut all = Vec::new();
        for scraper in gpuledger_scrapers::ALL {
            let Some(recording) = recordings::newest(&scraper.manifest().provider) else { continue };
            for (scope, parsed) in gpuledger_scrapers::read(*scraper, recording.pages) {
                all.push((scraper.manifest(), scope, parsed.map(|parsed| parsed.offers).unwrap_or_default()));
            }
        }
        all
    }

    #[test]
    fn rows_made_in_file_order_are_rows_sorted() {
        let recorded = recorded();
        let at = "2026-10-30T16:00:00Z".parse().expect("an instant");
        let rates = frame::empty(&crate::offer::RATES);
        let mut night = Vec::new();
        // Everything stands there twice, on two pages.
        for raw_sha256 in ["b", "a"] {
            for (manifest, scope, offers) in &recorded {
                let observed = |offer| Observed { manifest, scope, source_url: "", raw_sha256, observed_at: at, offer };
                night.extend(offers.iter().map(observed));
            }
        }
        assert!(night.len() > 1_000);
        for _ in 0..2 {
            let made = normalise_in_file_order(SnapshotId::at(at), &night, &rates).expect("it can be made").0;
            let sorted = in_file_order(normalise(SnapshotId::at(at), &night, &rates).expect("it can be made").0).expect("sorts");
            assert!(made.equals_missing(&sorted));
            night.reverse();
        }
    }

    proptest! {
        #[test]
        fn sorting_by_ranks_is_sorting_by_columns(
            rows in prop::collection::vec((prop::collection::vec(prop::option::of(0..4_u8), 5), prop::option::of(any::<i8>())), 0..60)
        ) {
            let rows = frame_of(&rows);
            let (by_ranks, by_columns) = (in_file_order(rows.clone()).expect("sorts"), by_columns(&rows).expect("sorts"));
            prop_assert!(by_ranks.equals_missing(&by_columns));
        }
    }
}
