//! What a row's price is in a currency: for an hour of one GPU, of one PFLOPS of it, or of one GB of its memory.
//!
//! In: rows of the `offers` table, and the rates of their days. Out: a price each, or why there is none. A price that the
//! dataset has is taken as it is; any other is worked out again from the published amount, exactly, and rounded once. A row
//! whose stored price does not follow from its published amount gets none. Never uses a rate of another day than the row's.

use std::collections::HashMap;
use std::fmt;
use std::str::FromStr;

use chrono::NaiveDate;
use gpuledger_scrapers::contract::{PricePer, PriceUnit};
use num_traits::{CheckedDiv as _, CheckedMul as _, ToPrimitive as _};
use polars::prelude::*;
use rust_decimal::Decimal;
use serde::de::DeserializeOwned;

use super::from_scaled;
use super::gpu::GpuModels;
use super::steps::{Given, Steps, exact_count, steps};
use super::unit::{Exact, exact};
use crate::frame::{DECIMAL, day_from};
use crate::offer::OFFERS;

/// An ISO 4217 code. `EUR`
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Currency(String);

impl FromStr for Currency {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        if text.len() == 3 && text.bytes().all(|byte| byte.is_ascii_alphabetic()) {
            Ok(Self(text.to_ascii_uppercase()))
        } else {
            Err("an ISO 4217 code is needed, such as USD, EUR or CNY".to_owned())
        }
    }
}

impl fmt::Display for Currency {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// What a price is divided by.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, clap::ValueEnum)]
pub enum Over {
    /// One GPU for one hour.
    #[default]
    Hour,
    /// One dense FP16 PFLOPS of the GPU for one hour.
    Pflop,
    /// One GB of the GPU's memory for one hour.
    Gb,
}

/// A price to compare by.
#[derive(Debug, Clone)]
pub struct Measure {
    /// The currency.
    pub currency: Currency,
    /// Over what.
    pub over: Over,
}

impl Measure {
    /// The column of such prices. `price_eur_per_gpu_hour`
    #[must_use]
    pub fn column(&self) -> String {
        let code = self.currency.0.to_ascii_lowercase();
        match self.over {
            Over::Hour => format!("price_{code}_per_gpu_hour"),
            Over::Pflop => format!("{code}_per_pflop_hour"),
            Over::Gb => format!("{code}_per_gpu_gb_hour"),
        }
    }

    /// The unit of such prices. `EUR/GPU-hour`
    #[must_use]
    pub fn unit(&self) -> String {
        let thing = match self.over {
            Over::Hour => "GPU-hour",
            Over::Pflop => "PFLOPS-hour",
            Over::Gb => "GB-hour",
        };
        format!("{}/{thing}", self.currency)
    }

    /// Digits after the point that such prices are shown with: a GB costs cents.
    #[must_use]
    pub const fn digits(&self) -> usize {
        match self.over {
            Over::Hour | Over::Pflop => 4,
            Over::Gb => 6,
        }
    }

    /// Whether the dataset has such prices.
    fn is_stored(&self) -> bool {
        let column = self.column();
        OFFERS.columns.iter().any(|known| known.name == column)
    }
}

/// Which amount of a row counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Amount {
    /// The published one; of a marketplace the middle one.
    Published,
    /// The published one; of a marketplace its lowest listing.
    Lowest,
}

/// Why a row has no price.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Unpriced {
    /// The share of a card is not a fixed one, or nobody has read how many GPUs there are.
    NoWholeGpu,
    /// There is no exchange rate of the row's day.
    NoRate,
    /// The card's dense FP16 rate is not known.
    NoFp16,
    /// The card's memory is not known.
    NoMemory,
    /// The stored price does not follow from the published amount by what this program knows.
    NotBorneOut,
}

impl Unpriced {
    /// For people.
    #[must_use]
    pub const fn words(self) -> &'static str {
        match self {
            Self::NoWholeGpu => "without a price of a whole GPU: its share of a card, or the number of GPUs, is not stated",
            Self::NoRate => "without an exchange rate of their day",
            Self::NoFp16 => "of a card whose dense FP16 rate is not published",
            Self::NoMemory => "of a card whose memory is not known",
            Self::NotBorneOut => "whose price cannot be worked out again from the published amount",
        }
    }
}

/// A row's price, or why there is none.
pub type Price = Result<f64, Unpriced>;

/// Rows whose prices are on their way.
pub struct Pricing {
    measure: Measure,
    /// Prices that the dataset has.
    ready: Vec<Option<f64>>,
    /// What the rows without one say, in order.
    open: Published,
    /// Whether the lowest listing of such a row counts.
    is_lowest: Vec<bool>,
}

impl Pricing {
    /// Takes the prices that the dataset has, and what the others will be worked out from.
    ///
    /// # Errors
    /// Only on a fault of the program.
    pub fn of(rows: &DataFrame, measure: &Measure, amount: Amount) -> PolarsResult<Self> {
        let stored = if measure.is_stored() { Some(rows.column(&measure.column())?.f64()?.clone()) } else { None };
        let listings = rows.column("listing_count")?.is_not_null();
        let counts_lowest = |row: usize| amount == Amount::Lowest && listings.get(row) == Some(true);
        let price = |row: usize| stored.as_ref().and_then(|stored| stored.get(row)).filter(|_| !counts_lowest(row));
        let ready: Vec<Option<f64>> = (0..rows.height()).map(price).collect();
        let open = || ready.iter().enumerate().filter(|(_, price)| price.is_none()).map(|(row, _)| row);
        let is_lowest = open().map(counts_lowest).collect();
        let open: IdxCa = open().map(|row| IdxSize::try_from(row).ok()).collect();
        Ok(Self { measure: measure.clone(), open: Published::of(&rows.take(&open)?)?, ready, is_lowest })
    }

    /// Days whose exchange rates are needed.
    #[must_use]
    pub fn days(&self) -> Vec<NaiveDate> {
        let code = self.measure.currency.0.as_str();
        let foreign = self.open.currency.iter().zip(&self.open.rate_day).filter(|(of, _)| of.as_deref() != Some(code));
        foreign.filter_map(|(_, day)| *day).collect()
    }

    /// The price of each row.
    #[must_use]
    pub fn prices(&self, rates: &Rates) -> Vec<Price> {
        let mut open = self.is_lowest.iter().enumerate();
        let mut work = || {
            let (row, is_lowest) = open.next().expect("every row without a price is open");
            self.open.price(row, &self.measure, *is_lowest, rates)
        };
        self.ready.iter().map(|price| price.map_or_else(&mut work, Ok)).collect()
    }
}

/// Exchange rates by day and currency: units for one euro, exactly.
#[derive(Debug, Default)]
pub struct Rates(HashMap<(NaiveDate, String), Exact>);

impl Rates {
    /// Those of rows of the `rates` table.
    ///
    /// # Errors
    /// Only on a fault of the program.
    pub fn of(table: &DataFrame) -> PolarsResult<Self> {
        let mut rates = HashMap::new();
        let (day, currency) = (table.column("rate_date")?.date()?, table.column("currency_code")?.str()?);
        let units = table.column("units_per_eur")?.decimal()?;
        for row in 0..table.height() {
            if let (Some(day), Some(currency), Some(units)) =
                (day.physical().get(row).and_then(day_from), currency.get(row), units.physical().get(row))
            {
                rates.insert((day, currency.to_owned()), from_scaled(units));
                rates.insert((day, "EUR".to_owned()), Exact::from_integer(1));
            }
        }
        Ok(Self(rates))
    }

    /// Whether there is a rate of a currency on one of these days.
    #[must_use]
    pub fn has(&self, currency: &Currency, days: &[NaiveDate]) -> bool {
        days.iter().any(|day| self.0.contains_key(&(*day, currency.0.clone())))
    }

    /// Currencies that have a rate, in order.
    #[must_use]
    pub fn currencies(&self) -> Vec<&str> {
        let mut known: Vec<&str> = self.0.keys().map(|(_, code)| code.as_str()).collect();
        known.sort_unstable();
        known.dedup();
        known
    }

    /// Units of one currency for a unit of another, both of one day.
    fn rate(&self, of: &str, to: &str, day: Option<NaiveDate>) -> Option<Exact> {
        if of == to {
            return Some(Exact::from_integer(1));
        }
        let per_eur = |code: &str| self.0.get(&(day?, code.to_owned())).copied();
        per_eur(to)?.checked_div(&per_eur(of)?)
    }
}

/// What the rows say of their prices.
struct Published {
    provider: Vec<Option<String>>,
    currency: Vec<Option<String>>,
    unit: Vec<Option<PriceUnit>>,
    per: Vec<Option<PricePer>>,
    months: Vec<Option<i64>>,
    amount: Vec<Option<i128>>,
    upfront: Vec<Option<i128>>,
    lowest: Vec<Option<i128>>,
    count: Vec<Option<i128>>,
    memory_gb: Vec<Option<i128>>,
    model: Vec<Option<String>>,
    is_fraction: Vec<bool>,
    rate_day: Vec<Option<NaiveDate>>,
    native_per_hour: Vec<Option<f64>>,
    has_gpu_price: Vec<bool>,
}

impl Published {
    fn of(rows: &DataFrame) -> PolarsResult<Self> {
        let texts = |name: &str| -> PolarsResult<Vec<Option<String>>> {
            Ok(rows.column(name)?.str()?.iter().map(|text| text.map(str::to_owned)).collect())
        };
        let scaled = |name: &str| -> PolarsResult<Vec<Option<i128>>> {
            Ok(rows.column(name)?.cast(&DECIMAL)?.decimal()?.physical().iter().collect())
        };
        let floats = |name: &str| -> PolarsResult<Vec<Option<f64>>> { Ok(rows.column(name)?.f64()?.iter().collect()) };
        Ok(Self {
            provider: texts("provider")?,
            currency: texts("published_currency_code")?,
            unit: words(&texts("published_unit")?),
            per: words(&texts("published_per")?),
            months: rows.column("commitment_months")?.cast(&DataType::Int64)?.i64()?.iter().collect(),
            amount: scaled("published_amount")?,
            upfront: scaled("published_upfront_amount")?,
            lowest: scaled("listing_amount_min")?,
            count: scaled("gpu_count")?,
            memory_gb: scaled("gpu_memory_gb")?,
            model: texts("gpu_model")?,
            is_fraction: rows.column("is_fractional")?.bool()?.iter().map(|is| is == Some(true)).collect(),
            rate_day: rows.column("rate_date")?.date()?.physical().iter().map(|day| day.and_then(day_from)).collect(),
            native_per_hour: floats("price_native_per_hour")?,
            has_gpu_price: floats("price_native_per_gpu_hour")?.iter().map(Option::is_some).collect(),
        })
    }

    /// The price of a row, worked out from its amount.
    fn price(&self, row: usize, measure: &Measure, is_lower: bool, rates: &Rates) -> Price {
        let steps = self.steps(row, is_lower).ok_or(Unpriced::NotBorneOut)?;
        let of_gpu = steps.native_per_gpu_hour.ok_or(Unpriced::NoWholeGpu);
        let native = match measure.over {
            Over::Hour => of_gpu?,
            Over::Pflop => {
                let model = self.model[row].as_deref().and_then(|name| GpuModels::built_in().get(name));
                let tflops: Decimal = model.and_then(|model| model.dense_fp16_tflops).ok_or(Unpriced::NoFp16)?;
                over(of_gpu?, exact(tflops) / Exact::from_integer(1_000))?
            }
            Over::Gb => {
                let memory = self.memory_gb[row].map(from_scaled).ok_or(Unpriced::NoMemory)?;
                // A slice's memory is the slice's own, so its price per GB is that of the machine.
                over(if self.is_fraction[row] { steps.native_per_hour } else { of_gpu? }, memory)?
            }
        };
        let of = self.currency[row].as_deref().unwrap_or_default();
        let rate = rates.rate(of, &measure.currency.0, self.rate_day[row]).ok_or(Unpriced::NoRate)?;
        native.checked_mul(&rate).and_then(|price| price.to_f64()).ok_or(Unpriced::NotBorneOut)
    }

    /// The prices of an hour, if those of the published amount are the stored ones.
    fn steps(&self, row: usize, is_lower: bool) -> Option<Steps> {
        let manifest = gpuledger_scrapers::find(self.provider[row].as_deref()?).map(|scraper| scraper.manifest());
        let mut given = Given {
            amount: from_scaled(self.amount[row]?),
            upfront: self.upfront[row].map(from_scaled),
            currency_code: self.currency[row].clone()?,
            unit: self.unit[row]?,
            per: self.per[row]?,
            months: self.months[row].and_then(|months| u32::try_from(months).ok()),
            hours_per_month: manifest.and_then(|manifest| manifest.published.as_ref()?.hours_per_month),
            gpus: self.count[row].and_then(exact_count),
            has_gpu_price: self.has_gpu_price[row],
            per_eur: None,
        };
        let published = steps(&given).ok()?;
        if published.native_per_hour.to_f64().map(f64::to_bits) != self.native_per_hour[row].map(f64::to_bits) {
            return None;
        }
        if !is_lower {
            return Some(published);
        }
        given.amount = from_scaled(self.lowest[row]?);
        steps(&given).ok()
    }
}

fn over(price: Exact, size: Exact) -> Result<Exact, Unpriced> {
    price.checked_div(&size).ok_or(Unpriced::NotBorneOut)
}

fn words<T: DeserializeOwned>(texts: &[Option<String>]) -> Vec<Option<T>> {
    let word = |text: &Option<String>| serde_json::from_value(serde_json::Value::from(text.as_deref()?)).ok();
    texts.iter().map(word).collect()
}

/// Rows with a column of prices, in place of one of that name.
///
/// # Errors
/// Only on a fault of the program.
pub fn with_prices(rows: &DataFrame, column: &str, prices: &[Price]) -> PolarsResult<DataFrame> {
    let mut rows = rows.clone();
    let values = Float64Chunked::from_iter_options(column.into(), prices.iter().map(|price| price.ok()));
    rows.with_column(values.into_column())?;
    Ok(rows)
}
