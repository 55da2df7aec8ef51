//! A rule of a whole column: a page whose columns moved shows one price for many kinds of card.

use std::collections::{BTreeMap, BTreeSet};

use crate::validate::rows::Rows;
use crate::validate::thresholds::Thresholds;
use crate::validate::{HeldBack, Refusal};

/// Kinds of card of a scope that are sold in one way, and their prices.
#[derive(Default)]
struct Column<'a> {
    families: BTreeSet<&'a str>,
    prices: BTreeSet<u64>,
}

/// A scope with several kinds of card and far fewer prices: the column that was read is not that of the prices.
pub fn one_price_for_many_cards(rows: &Rows, thresholds: &Thresholds, held: &HeldBack) -> Vec<Refusal> {
    let mut columns: BTreeMap<(usize, Option<&str>), Column<'_>> = BTreeMap::new();
    for row in (0..rows.count()).filter(|&row| !held.has(row) && is_plain(rows, row)) {
        if let (Some(model), Some(price)) = (rows.model(row), rows.native_per_gpu_hour.get(row)) {
            let column = columns.entry((rows.scope_of[row], rows.pricing_model.get(row))).or_default();
            column.families.insert(&model.family);
            column.prices.insert(price.to_bits());
        }
    }
    let mut refusals = Vec::new();
    for ((scope, _), column) in columns {
        let (families, prices) = (column.families.len(), column.prices.len());
        if families >= thresholds.one_price_families_min.value
            && prices * 100 <= families * thresholds.one_price_distinct_percent_max.value
        {
            let reason = format!("{families} kinds of card and {prices} prices in all: the columns of the page have moved");
            refusals.push(Refusal { scope, rule: "one_price_for_many_cards", reason });
        }
    }
    refusals
}

/// Prices of whole cards by the hour: on demand, or spot.
fn is_plain(rows: &Rows, row: usize) -> bool {
    matches!(rows.pricing_model.get(row), Some("on_demand" | "spot")) && rows.is_fractional.get(row) == Some(false)
}
