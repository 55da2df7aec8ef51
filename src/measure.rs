//! Rows and the rates of a dataset → their prices in a currency; how they are worked out is [`crate::normalise::measure`].

use std::path::Path;

use polars::prelude::*;

pub use crate::normalise::measure::{Amount, Currency, Measure, Over, Price, Unpriced, with_prices};
use crate::normalise::measure::{Pricing, Rates};
use crate::query::QueryError;
use crate::report::Failed;
use crate::snapshot::read;

/// The price of each row.
///
/// # Errors
/// When nobody has published a rate of the currency on any of the rows' days, or the rates cannot be read.
pub async fn prices(output: &Path, rows: &DataFrame, measure: &Measure, amount: Amount) -> Result<Vec<Price>, Failed> {
    let pricing = Pricing::of(rows, measure, amount)?;
    let days = pricing.days();
    let (Some(first), Some(last)) = (days.iter().min(), days.iter().max()) else { return Ok(pricing.prices(&Rates::default())) };
    let rates = Rates::of(&read::rates(output, *first, *last).await?)?;
    if !rates.has(&measure.currency, &days) {
        let known = rates.currencies().join(", ");
        let known = if known.is_empty() { "none at all".to_owned() } else { known };
        return Err(QueryError::NoRate { code: measure.currency.to_string(), first: *first, last: *last, known }.into());
    }
    Ok(pricing.prices(&rates))
}
