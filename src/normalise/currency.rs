//! Exchange rates: which rate holds for a price, by the rules of the European Central Bank's reference rates.
//!
//! The rate of a price is of the newest day whose rates had been published when the price was seen. A rate of a later
//! day is never used, an old one never silently, and a missing one never becomes 1.

use chrono::{DateTime, Days, NaiveDate, NaiveTime, TimeZone as _, Utc};
use chrono_tz::Europe::Berlin;
use polars::prelude::*;
use rust_decimal::Decimal;

use crate::frame;
use crate::offer::RATES;

/// Oldest rate that is still used, in days.
pub const RATE_AGE_DAYS_MAX: u64 = 7;

/// The ECB publishes at about 16:00 local time; before that the day has no rate yet.
const PUBLISHED_AT: NaiveTime = NaiveTime::from_hms_opt(16, 0, 0).expect("four in the afternoon is a time");

/// Source of all rates so far.
pub const RATE_SOURCE_ECB: &str = "ecb";

/// One exchange rate and its proof: a row of the `rates` table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rate {
    /// The day it is of.
    pub date: NaiveDate,
    /// ISO 4217 code.
    pub currency_code: String,
    /// Units of the currency for one euro, exactly as published.
    pub units_per_eur: Decimal,
    /// When the page was read.
    pub observed_at: DateTime<Utc>,
    /// Where the page came from.
    pub source_url: String,
    /// The archived page.
    pub raw_sha256: String,
    /// Place in it.
    pub raw_place: String,
}

/// The newest day whose rates had been published at an instant.
#[must_use]
pub fn newest_rate_day(observed_at: DateTime<Utc>) -> NaiveDate {
    let local = Berlin.from_utc_datetime(&observed_at.naive_utc());
    if local.time() >= PUBLISHED_AT { local.date_naive() } else { local.date_naive() - Days::new(1) }
}

/// Rates as rows of the `rates` table.
///
/// # Errors
/// When a rate has more digits than the table keeps.
pub fn rates_frame(snapshot_id: &str, rates: &[Rate]) -> PolarsResult<DataFrame> {
    let mut columns = frame::Columns::new(rates.len());
    columns.dates("rate_date", rates.iter().map(|rate| Some(rate.date)));
    columns.texts("currency_code", rates.iter().map(|rate| Some(rate.currency_code.as_str())));
    columns.decimals("units_per_eur", rates.iter().map(|rate| Some(rate.units_per_eur)))?;
    columns.texts("rate_source", rates.iter().map(|_| Some(RATE_SOURCE_ECB)));
    columns.instants("observed_at", rates.iter().map(|rate| Some(rate.observed_at)));
    columns.texts("source_url", rates.iter().map(|rate| Some(rate.source_url.as_str())));
    columns.texts("raw_sha256", rates.iter().map(|rate| Some(rate.raw_sha256.as_str())));
    columns.texts("raw_place", rates.iter().map(|rate| Some(rate.raw_place.as_str())));
    columns.texts("snapshot_id", rates.iter().map(|_| Some(snapshot_id)));
    columns.finish()?.select(RATES.columns.iter().map(|column| column.name))
}

/// Adds the rates of each row, all of one day.
///
/// They are `units_per_eur` of its currency, `usd_per_eur`, `cny_per_eur`, and their `rate_date`. The frame needs the
/// columns `published_currency_code`, `_rate_day` and `_row`.
///
/// # Errors
/// Only when a column is missing, which is a bug.
pub fn join_rates(frame: DataFrame, rates: DataFrame) -> PolarsResult<DataFrame> {
    let one_currency = |code: &str, name: &str| {
        rates
            .clone()
            .lazy()
            .filter(col("currency_code").eq(lit(code)))
            .select([col("rate_date"), col("units_per_eur").alias(name)])
    };
    let euro = one_currency("USD", "units_per_eur").select([
        col("rate_date"),
        lit("EUR").alias("currency_code"),
        lit(1).cast(frame::DECIMAL).alias("units_per_eur"),
    ]);
    let published = rates.clone().lazy().select([col("rate_date"), col("currency_code"), col("units_per_eur")]);
    let on_date = |left: LazyFrame, right: LazyFrame| {
        left.join(right, [col("rate_date")], [col("rate_date")], JoinArgs::new(JoinType::Left))
    };
    let rates = concat([published, euro], UnionArgs::default())?;
    let rates = on_date(on_date(rates, one_currency("USD", "usd_per_eur")), one_currency("CNY", "cny_per_eur"))
        .filter(col("usd_per_eur").is_not_null())
        .sort(["rate_date"], SortMultipleOptions::default())
        .collect()?;

    let frame = frame.lazy().sort(["_rate_day"], SortMultipleOptions::default()).collect()?;
    let joined = frame.join_asof_by(
        &rates,
        "_rate_day",
        "rate_date",
        ["published_currency_code"],
        ["currency_code"],
        AsofStrategy::Backward,
        None,
        true,
        false,
    )?;
    joined.lazy().sort(["_row"], SortMultipleOptions::default()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(text: &str) -> DateTime<Utc> {
        text.parse().expect("an instant")
    }

    fn day(text: &str) -> NaiveDate {
        text.parse().expect("a day")
    }

    #[test]
    fn a_days_rate_holds_from_four_in_the_afternoon_in_frankfurt() {
        assert_eq!(newest_rate_day(at("2026-10-30T14:59:59Z")), day("2026-10-29"));
        assert_eq!(newest_rate_day(at("2026-10-30T15:00:00Z")), day("2026-10-30"));
        assert_eq!(newest_rate_day(at("2026-07-27T13:59:59Z")), day("2026-07-26"));
        assert_eq!(newest_rate_day(at("2026-07-27T14:00:00Z")), day("2026-07-27"));
        assert_eq!(newest_rate_day(at("2026-11-01T02:00:00Z")), day("2026-10-31"));
    }
}
