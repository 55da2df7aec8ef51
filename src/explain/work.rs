//! The prices of a row worked out once more from what was published.

use std::path::Path;

use chrono::NaiveDate;
use gpuledger_scrapers::contract::{PricePer, PriceUnit};
use gpuledger_scrapers::manifest::Manifest;
use num_traits::ToPrimitive as _;
use polars::prelude::*;
use serde::Serialize;

use crate::frame::{Cell, Row};
use crate::normalise::steps::{Given, Step, exact_count, shown, steps};
use crate::normalise::unit::Exact;
use crate::offer::DECIMAL_SCALE;
use crate::report::Failed;
use crate::snapshot::read;

/// An exchange rate that was used, and where it was published.
#[derive(Debug, Clone, Serialize)]
pub struct RateUsed {
    /// ISO 4217 code.
    pub currency_code: String,
    /// Units of it for one euro.
    pub units_per_eur: String,
    /// The day it is of.
    pub rate_date: String,
    /// Who publishes it.
    pub rate_source: String,
    /// The answer that it stands in.
    pub source_url: String,
    /// SHA-256 of that answer.
    pub raw_sha256: String,
    /// Place in it.
    pub raw_place: String,
    /// When it was read.
    pub observed_at: String,
    /// The night whose run published it.
    pub snapshot_id: String,
    #[serde(skip)]
    exact: Exact,
}

/// A stored number beside what is worked out.
#[derive(Debug, Clone, Serialize)]
pub struct Check {
    /// The column.
    pub column: &'static str,
    /// What is stored.
    pub stored: Option<String>,
    /// What is worked out.
    pub worked_out: Option<String>,
    /// Whether they are the same, to the last bit.
    pub is_equal: bool,
}

/// The steps, the rates, and whether the stored numbers follow.
#[derive(Debug, Clone, Serialize)]
pub struct Work {
    /// In order.
    pub steps: Vec<Step>,
    /// Rates that were used; none for a price in US dollars.
    pub rates: Vec<RateUsed>,
    /// Each stored number.
    pub checks: Vec<Check>,
    /// Why there is no price in US dollars per GPU-hour, or no steps; `None` where there is one.
    pub note: Option<String>,
}

impl Work {
    /// Whether every stored number follows from what was published.
    #[must_use]
    pub fn is_borne_out(&self) -> bool {
        !self.checks.is_empty() && self.checks.iter().all(|check| check.is_equal)
    }
}

/// Works the prices of a row out again.
pub(super) async fn work(output: &Path, manifest: &Manifest, row: &Row<'_>) -> Result<Work, Failed> {
    let currency_code = row.text("published_currency_code")?;
    let rates = rates(output, row, &currency_code).await?;
    let of = |code: &str| -> Option<Exact> {
        if code == "EUR" {
            Some(Exact::from_integer(1))
        } else {
            Some(rates.iter().find(|rate| rate.currency_code == code)?.exact)
        }
    };
    let units = (word::<PriceUnit>(&row.text("published_unit")?), word::<PricePer>(&row.text("published_per")?));
    let (Some(amount), (Some(unit), Some(per))) = (row.scaled("published_amount")?.map(from_scaled), units) else {
        let note = "the row has an amount, unit or thing that this program does not know".to_owned();
        return Ok(Work { steps: Vec::new(), rates, checks: Vec::new(), note: Some(note) });
    };
    let gpus = row.scaled("gpu_count")?.and_then(exact_count);
    let given = Given {
        amount,
        upfront: row.scaled("published_upfront_amount")?.map(from_scaled),
        unit,
        per,
        months: row.optional("commitment_months")?.and_then(|months| months.parse().ok()),
        hours_per_month: manifest.published.as_ref().and_then(|published| published.hours_per_month),
        gpus,
        has_gpu_price: row.float("price_native_per_gpu_hour")?.is_some(),
        per_eur: of("USD").zip(of(&currency_code)),
        currency_code,
    };
    let worked = match steps(&given) {
        Ok(worked) => worked,
        Err(error) => return Ok(Work { steps: Vec::new(), rates, checks: Vec::new(), note: Some(error.to_string()) }),
    };
    let float = |column, exact: Option<Exact>| -> Result<Check, Failed> {
        let (stored, worked_out) = (row.float(column)?, exact.and_then(|exact| exact.to_f64()));
        let is_equal = stored.map(f64::to_bits) == worked_out.map(f64::to_bits);
        Ok(Check { column, stored: stored.map(|v| v.to_string()), worked_out: worked_out.map(|v| v.to_string()), is_equal })
    };
    let mut checks = vec![
        float("price_native_per_hour", Some(worked.native_per_hour))?,
        float("price_native_per_gpu_hour", worked.native_per_gpu_hour)?,
        float("price_usd_per_hour", worked.usd_per_hour)?,
        float("price_usd_per_gpu_hour", worked.usd_per_gpu_hour)?,
    ];
    let stored = row.optional("usd_per_native")?;
    // The stored rate is cut at the dataset's last digit; prices were worked out with the whole of it.
    let worked_out = worked.usd_per_native.map(|rate| shown(rate).trim_end_matches('…').to_owned());
    checks.push(Check { column: "usd_per_native", is_equal: stored == worked_out, stored, worked_out });
    let note = note(row, &given)?;
    Ok(Work { steps: worked.steps, rates, checks, note })
}

/// Why there is no price of a GPU-hour in dollars.
fn note(row: &Row<'_>, given: &Given) -> Result<Option<String>, Failed> {
    if row.float("price_usd_per_gpu_hour")?.is_some() {
        return Ok(None);
    }
    let flags = row.text("flags")?;
    let reason = if row.float("price_usd_per_hour")?.is_none() {
        "there was no exchange rate of the last seven days".to_owned()
    } else if given.gpus.is_none() {
        "nobody has read how many GPUs the machine has".to_owned()
    } else {
        "the machine's share of a card is worked out from memory sizes, and no price of a whole card follows from it".to_owned()
    };
    Ok(Some(format!("no price of a GPU-hour in US dollars: {reason} (flags: {flags})")))
}

/// The rates of the row's day in its own currency and in US dollars, with their proof.
async fn rates(output: &Path, row: &Row<'_>, currency_code: &str) -> Result<Vec<RateUsed>, Failed> {
    let day: Option<NaiveDate> = row.optional("rate_date")?.and_then(|day| day.parse().ok());
    let Some(day) = day.filter(|_| currency_code != "USD") else { return Ok(Vec::new()) };
    let rows = read::rates(output, day, day).await?;
    let is_used = col("currency_code").eq(lit("USD")).or(col("currency_code").eq(lit(currency_code)));
    let rows = rows.lazy().filter(is_used).sort(["currency_code"], SortMultipleOptions::default()).collect()?;
    let mut rates = Vec::new();
    for number in 0..rows.height() {
        let cell = |name: &str| Cell::at(&rows, name, number).map(|cell| cell.text());
        let scaled = rows.column("units_per_eur")?.decimal()?.physical().get(number);
        let Some(exact) = scaled.map(from_scaled) else { continue };
        rates.push(RateUsed {
            currency_code: cell("currency_code")?,
            units_per_eur: cell("units_per_eur")?,
            rate_date: cell("rate_date")?,
            rate_source: cell("rate_source")?,
            source_url: cell("source_url")?,
            raw_sha256: cell("raw_sha256")?,
            raw_place: cell("raw_place")?,
            observed_at: cell("observed_at")?,
            snapshot_id: cell("snapshot_id")?,
            exact,
        });
    }
    Ok(rates)
}

fn from_scaled(scaled: i128) -> Exact {
    Exact::new(scaled, 10_i128.pow(u32::try_from(DECIMAL_SCALE).expect("the scale is small")))
}

/// A word of a closed set.
fn word<T: serde::de::DeserializeOwned>(text: &str) -> Option<T> {
    serde_json::from_value(serde_json::Value::from(text)).ok()
}
