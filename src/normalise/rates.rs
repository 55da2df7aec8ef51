//! The exchange rates of a night's rows: each row's currency on its day, looked up once for all rows that share both.
//!
//! In: observed offers and the `rates` table. Out: exact rates by row. Never a rate of a day later than the row's.

use std::collections::HashMap;

use chrono::{DateTime, NaiveDate, Utc};
use num_traits::CheckedDiv as _;
use polars::prelude::*;

use super::currency::{join_rates, newest_rate_day};
use super::unit::Exact;
use super::{Observed, from_scaled};
use crate::frame::{Columns, day_from};

/// The exchange rates of one row, exactly.
#[derive(Clone, Copy)]
pub(super) struct RowRates {
    pub usd_per_native: Option<Exact>,
    pub cny_per_native: Option<Exact>,
}

/// The exchange rates of one currency on one day, and the day that they are of.
pub(super) struct RatesOfDay {
    pub rates: RowRates,
    pub rate_date: Option<NaiveDate>,
}

/// The exchange rates of every row: those of its currency on its day. A night has few of either.
pub(super) struct RatesOfRows {
    days: Vec<RatesOfDay>,
    of_row: Vec<usize>,
}

impl RatesOfRows {
    pub fn of(observed: &[Observed<'_>], rates: &DataFrame) -> PolarsResult<Self> {
        let mut keys: HashMap<(&str, NaiveDate), usize> = HashMap::new();
        let mut in_order: Vec<(&str, NaiveDate)> = Vec::new();
        let mut last_day: Option<(DateTime<Utc>, NaiveDate)> = None;
        let mut of_row = Vec::with_capacity(observed.len());
        for observed in observed {
            let at = observed.observed_at;
            let day = last_day.filter(|(known, _)| *known == at).map_or_else(|| newest_rate_day(at), |(_, day)| day);
            last_day = Some((at, day));
            let key = (observed.offer.price.currency_code.as_str(), day);
            let place = *keys.entry(key).or_insert(in_order.len());
            if place == in_order.len() {
                in_order.push(key);
            }
            of_row.push(place);
        }
        let mut columns = Columns::new(in_order.len());
        columns.longs("_row", (0_i64..).take(in_order.len()).map(Some));
        columns.texts("published_currency_code", in_order.iter().map(|(currency, _)| Some(*currency)));
        columns.dates("_rate_day", in_order.iter().map(|(_, day)| Some(*day)));
        let joined = join_rates(columns.finish()?, rates.clone())?;
        let scaled = |name: &str| joined.column(name)?.decimal().map(|column| column.physical().clone());
        let (units_per_eur, usd_per_eur, cny_per_eur) =
            (scaled("units_per_eur")?, scaled("usd_per_eur")?, scaled("cny_per_eur")?);
        let rate_dates = joined.column("rate_date")?.date()?.physical().clone();
        let day = |(row, (currency, _)): (usize, &(&str, NaiveDate))| {
            let rate = |rates: &Int128Chunked| rates.get(row).map(from_scaled);
            RatesOfDay {
                rates: row_rates(currency, rate(&units_per_eur), rate(&usd_per_eur), rate(&cny_per_eur)),
                rate_date: rate_dates.get(row).and_then(day_from),
            }
        };
        Ok(Self { days: in_order.iter().enumerate().map(day).collect(), of_row })
    }

    pub fn of_row(&self, row: usize) -> &RatesOfDay {
        &self.days[self.of_row[row]]
    }
}

/// A dollar is a dollar without any rate; everything else needs the rates of one and the same day.
pub(super) fn row_rates(
    currency_code: &str,
    units_per_eur: Option<Exact>,
    usd_per_eur: Option<Exact>,
    cny_per_eur: Option<Exact>,
) -> RowRates {
    let one = Exact::from_integer(1);
    let over = |rate: Option<Exact>| rate?.checked_div(&units_per_eur?);
    RowRates {
        usd_per_native: if currency_code == "USD" { Some(one) } else { over(usd_per_eur) },
        cny_per_native: if currency_code == "CNY" { Some(one) } else { over(cny_per_eur) },
    }
}
