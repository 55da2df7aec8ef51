//! Rules of rows that speak of the same thing: one offer at two prices, one price for one card and for eight, a month and an
//! hour that do not fit.
//!
//! Which of the rows is right nobody knows, so all of them are held back.

use std::collections::{BTreeMap, HashSet};

use polars::prelude::*;

use crate::frame::print_scaled;
use crate::offer::DECIMAL_SCALE;
use crate::validate::HeldBack;
use crate::validate::rows::Rows;
use crate::validate::thresholds::Thresholds;

/// One offer at two prices, or under two terms.
///
/// # Errors
/// Only on a fault of the program.
pub fn key_conflict(rows: &Rows, held: &mut HeldBack) -> PolarsResult<()> {
    let ids = rows.frame.column("offer_id")?;
    if ids.n_unique()? == rows.count() {
        return Ok(());
    }
    let by_id = rows.frame.select(["offer_id"])?.lazy().group_by([col("offer_id")]).agg([len().alias("rows")]);
    let several = by_id.filter(col("rows").gt(lit(1_u32))).collect()?;
    let several: HashSet<&str> = several.column("offer_id")?.str()?.iter().flatten().collect();
    for (row, id) in ids.str()?.iter().enumerate() {
        if id.is_some_and(|id| several.contains(id)) {
            held.hold(row, || "key_conflict: another row of the same offer has another price or other terms".to_owned());
        }
    }
    Ok(())
}

/// One list price of the machine for one card and for several: the price is that of one card. In a market one card of a dear
/// seller may cost what four of a cheap one do.
pub fn one_price_for_any_count(rows: &Rows, thresholds: &Thresholds, held: &mut HeldBack) {
    let mut found = Vec::new();
    for place in rows.places().filter(|place| place.len() > 1) {
        let mut by_price: BTreeMap<(u64, Option<&str>), Vec<usize>> = BTreeMap::new();
        for row in place.filter(|row| !held.has(*row) && rows.model_of[*row].is_some() && !rows.is_market(*row)) {
            if let Some(price) = rows.native_per_hour.get(row) {
                by_price.entry((price.to_bits(), rows.pricing_model.get(row))).or_default().push(row);
            }
        }
        for same_price in by_price.into_values().filter(|same_price| same_price.len() > 1) {
            found.extend(counts_that_differ(rows, &same_price, thresholds));
        }
    }
    for (row, count, other) in found {
        let print = |count| print_scaled(count, DECIMAL_SCALE);
        held.hold(row, || {
            format!("one_price_for_any_count: {} GPUs at the price of the machine with {}", print(count), print(other))
        });
    }
}

/// Rows under the same terms with another number of GPUs at the same price: the row, its number and the other's.
fn counts_that_differ(rows: &Rows, same_price: &[usize], thresholds: &Thresholds) -> Vec<(usize, i128, i128)> {
    let is_alike = |a: usize, b: usize| {
        rows.os.get(a) == rows.os.get(b)
            && rows.currency.get(a) == rows.currency.get(b)
            && rows.tenancy.get(a) == rows.tenancy.get(b)
            && rows.licence.get(a) == rows.licence.get(b)
            && rows.plan.get(a) == rows.plan.get(b)
            && rows.months.get(a) == rows.months.get(b)
            && rows.upfront.get(a) == rows.upfront.get(b)
            && rows.is_promotion.get(a) == rows.is_promotion.get(b)
    };
    let factor_min = thresholds.same_machine_price_gpus_factor_min.value;
    let mut found = Vec::new();
    // Most prices stand on machines of one size only, and then there is nothing to compare.
    let counts = || same_price.iter().filter_map(|row| rows.gpu_count.get(*row));
    if counts().min().zip(counts().max()).is_none_or(|(low, high)| ratio(high, low) < factor_min) {
        return found;
    }
    for &row in same_price {
        let Some(count) = rows.gpu_count.get(row) else { continue };
        let differs = |&&other: &&usize| {
            let Some(others) = rows.gpu_count.get(other) else { return false };
            let (low, high) = (count.min(others), count.max(others));
            is_alike(row, other) && ratio(high, low) >= factor_min
        };
        if let Some(other) = same_price.iter().find(differs).and_then(|&other| rows.gpu_count.get(other)) {
            found.push((row, count, other));
        }
    }
    found
}

#[expect(clippy::cast_precision_loss, reason = "a comparison with a threshold needs no last digit")]
fn ratio(a: i128, b: i128) -> f64 {
    a as f64 / b as f64
}

/// A machine by the hour and by the month whose prices do not fit: an hourly figure in a monthly field, or the reverse.
pub fn month_and_hour(rows: &Rows, thresholds: &Thresholds, held: &mut HeldBack) {
    let (min, max) = (thresholds.month_hours_min.value, thresholds.month_hours_max.value);
    let is_whole_offer = |row: usize| {
        matches!(rows.pricing_model.get(row), Some("on_demand" | "subscription"))
            && rows.months.get(row).is_none_or(|months| months == 1)
            && rows.is_promotion.get(row) != Some(true)
    };
    let mut found = Vec::new();
    for machine in rows.machines().filter(|machine| machine.len() > 1) {
        let of_unit = |unit: &'static str| {
            machine
                .clone()
                .filter(move |&row| rows.unit.get(row) == Some(unit))
                .filter(|&row| !held.has(row) && is_whole_offer(row))
        };
        for hour in of_unit("hour") {
            for month in of_unit("month") {
                let is_alike = rows.gpu_count.get(hour) == rows.gpu_count.get(month)
                    && rows.currency.get(hour) == rows.currency.get(month)
                    && rows.tenancy.get(hour) == rows.tenancy.get(month)
                    && rows.licence.get(hour) == rows.licence.get(month);
                if let (true, Some(by_hour), Some(by_month)) =
                    (is_alike, rows.native_per_hour.get(hour), rows.native_per_hour.get(month))
                {
                    let hours = by_month * f64::from(crate::normalise::unit::HOURS_PER_MONTH) / by_hour;
                    if !(min..=max).contains(&hours) {
                        found.extend([(hour, hours), (month, hours)]);
                    }
                }
            }
        }
    }
    for (row, hours) in found {
        held.hold(row, || format!("month_and_hour: a month costs {hours:.1} hours, plausible from {min} to {max}"));
    }
}
