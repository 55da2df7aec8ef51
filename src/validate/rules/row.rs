//! Rules of one row by itself: each says why the row is held back, or nothing.

use gpuledger_scrapers::contract::UNKNOWN_HARDWARE;

use crate::frame::print_scaled;
use crate::offer::DECIMAL_SCALE;
use crate::validate::rows::Rows;
use crate::validate::thresholds::Thresholds;

/// A rule of one row. The reason begins with the rule's code and a colon.
pub type RowRule = fn(&Rows, &Thresholds, usize) -> Option<String>;

/// All rules of one row; the first that finds something gives the reason.
pub const RULES: [RowRule; 7] = [
    not_comparable,
    zero_price,
    negative_price,
    fraction_not_marked,
    price_of_derived_share,
    gpu_price_out_of_bounds,
    machine_price_out_of_bounds,
];

/// What could not be made comparable says so itself: an unknown label, an amount without its unit.
fn not_comparable(rows: &Rows, _: &Thresholds, row: usize) -> Option<String> {
    rows.not_comparable.get(row).map(str::to_owned)
}

/// A price of zero is a placeholder: of a preview, of a size that cannot be had, of a field that is for something else.
fn zero_price(rows: &Rows, _: &Thresholds, row: usize) -> Option<String> {
    let is_zero = rows.amount.get(row) == Some(0) && rows.upfront_amount.get(row).is_none_or(|upfront| upfront == 0);
    is_zero.then(|| "zero_price: the price is zero, a placeholder".to_owned())
}

/// Nothing that is rented has a price below zero.
fn negative_price(rows: &Rows, _: &Thresholds, row: usize) -> Option<String> {
    let is_negative = [rows.amount.get(row), rows.upfront_amount.get(row)].into_iter().flatten().any(|amount| amount < 0);
    is_negative.then(|| "negative_price: the price is below zero".to_owned())
}

/// A part of a card must say that it is one, or it would be compared with whole cards.
fn fraction_not_marked(rows: &Rows, _: &Thresholds, row: usize) -> Option<String> {
    let count = rows.gpu_count.get(row)?;
    let one = 10_i128.pow(u32::try_from(DECIMAL_SCALE).expect("the scale is small"));
    let is_unmarked = count % one != 0 && rows.is_fractional.get(row) != Some(true);
    is_unmarked
        .then(|| format!("fraction_not_marked: {} GPUs, and not marked as a part of a card", print_scaled(count, DECIMAL_SCALE)))
}

/// From a share that was worked out of sizes no price of a whole card follows.
fn price_of_derived_share(rows: &Rows, _: &Thresholds, row: usize) -> Option<String> {
    let has_price = rows.has_flag(row, "derived_share") && rows.native_per_gpu_hour.get(row).is_some();
    has_price.then(|| "price_of_derived_share: a price per GPU from a share of a card that is not a fixed slice".to_owned())
}

/// A price of one GPU far from everything that is asked for such a card is a wrong unit, currency or card.
fn gpu_price_out_of_bounds(rows: &Rows, thresholds: &Thresholds, row: usize) -> Option<String> {
    let usd = rows.usd_per_gpu_hour.get(row)?;
    let class = thresholds.class_of(rows.model_of[row]);
    let (min, max) = if rows.is_market(row) {
        (class.market_usd_per_gpu_hour_min, class.market_usd_per_gpu_hour_max)
    } else {
        (class.list_usd_per_gpu_hour_min, class.list_usd_per_gpu_hour_max)
    };
    let is_out = !(min..=max).contains(&usd);
    is_out.then(|| format!("price_out_of_bounds: {usd:.6} USD per GPU-hour, of {} plausible from {min} to {max}", class.name))
}

/// The same of a machine whose GPUs have no price of their own.
fn machine_price_out_of_bounds(rows: &Rows, thresholds: &Thresholds, row: usize) -> Option<String> {
    if rows.usd_per_gpu_hour.get(row).is_some() {
        return None;
    }
    let usd = rows.usd_per_hour.get(row)?;
    let (min, max) = (thresholds.machine_usd_per_hour_min.value, thresholds.machine_usd_per_hour_max.value);
    let is_out = !(min..=max).contains(&usd);
    is_out.then(|| format!("price_out_of_bounds: {usd:.6} USD per hour, of a machine plausible from {min} to {max}"))
}

/// Whether nobody has read about the machine: it is published with its price and without GPUs.
pub fn is_unknown_hardware(rows: &Rows, row: usize) -> bool {
    rows.has_flag(row, UNKNOWN_HARDWARE)
}
