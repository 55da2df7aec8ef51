//! Filters over the offers of a snapshot.

use chrono::{DateTime, NaiveDate, Utc};
use polars::prelude::*;

use crate::cli::Filter;
use crate::machines::near;
use crate::normalise::gpu::GpuModels;
use crate::normalise::region::Regions;
use crate::print::{Heading, heading};

/// Why a filter cannot be.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum QueryError {
    /// No GPU of this name.
    #[error("find a GPU called `{typed}`{near}")]
    UnknownGpu {
        /// What was typed.
        typed: String,
        /// Names that are near.
        near: String,
    },
    /// No machine of this name.
    #[error("find a machine type `{typed}`; near it are {near}")]
    UnknownMachine {
        /// What was typed.
        typed: String,
        /// Names that are near.
        near: String,
    },
    /// No value of this name.
    #[error("find {what} `{typed}`; there are {known}")]
    UnknownValue {
        /// What it should be. `pricing model`
        what: &'static str,
        /// What was typed.
        typed: String,
        /// What there is.
        known: String,
    },
    /// No exchange rate of the currency.
    #[error("find an exchange rate of {code} from {first} to {last}; there are {known}")]
    NoRate {
        /// What was asked for.
        code: String,
        /// First day of the prices.
        first: NaiveDate,
        /// Last day of the prices.
        last: NaiveDate,
        /// Currencies that have one.
        known: String,
    },
    /// The rows could not be read.
    #[error("read the offers: {0}")]
    Unreadable(String),
}

impl From<PolarsError> for QueryError {
    fn from(error: PolarsError) -> Self {
        Self::Unreadable(error.to_string())
    }
}

/// Columns of a list of offers on the terminal.
pub const HEADINGS: [Heading; 14] = [
    heading("provider", "provider"),
    heading("gpu_model", "GPU"),
    heading("gpu_count", "GPUs"),
    heading("gpu_memory_gb", "GB/GPU"),
    heading("pricing_model", "model"),
    heading("plan", "plan"),
    heading("commitment_months", "months"),
    heading("os", "os"),
    heading("region", "region"),
    heading("instance_type", "machine"),
    heading("price_usd_per_gpu_hour", "USD/GPU-hour"),
    heading("published_amount", "published"),
    heading("published_upfront_amount", "up front"),
    heading("published_currency_code", "currency"),
];

/// What a machine is called: by its provider, or by the page where it has no type.
pub fn machine() -> Expr {
    col("instance_type").fill_null(col("offer_label"))
}

/// When a filter's ages are counted to.
#[must_use]
pub fn now(filter: &Filter) -> DateTime<Utc> {
    filter.now.unwrap_or_else(Utc::now)
}

/// Rows that a filter lets through.
///
/// # Errors
/// When the filter names something that does not exist.
pub fn filtered(all: &LazyFrame, filter: &Filter) -> Result<LazyFrame, QueryError> {
    let mut rows = one_of(all, all.clone(), "provider", "provider", &lower_case(&filter.provider))?;
    if let Some(typed) = &filter.instance_type {
        rows = of_machine(all, rows, typed)?;
    }
    if !filter.gpu.is_empty() {
        let meant = filter.gpu.iter().map(|typed| is_gpu(typed)).collect::<Result<Vec<_>, _>>()?;
        rows = rows.filter(any(meant));
    }
    let number = |column: &str| col(column).cast(DataType::Float64);
    if let Some(gb) = filter.min_gpu_memory {
        rows = rows.filter(number("gpu_memory_gb").gt_eq(lit(gb)));
    }
    if let Some(gb) = filter.min_total_memory {
        // The memory of a slice is that of all the machine has of a card.
        let cards = when(col("is_fractional")).then(lit(1.0)).otherwise(number("gpu_count"));
        rows = rows.filter((cards * number("gpu_memory_gb")).gt_eq(lit(gb)));
    }
    if !filter.gpu_count.is_empty() {
        rows = rows.filter(any(filter.gpu_count.iter().map(|count| number("gpu_count").eq(lit(*count))).collect()));
    }
    rows = one_of(all, rows, "region", "region", &filter.region)?;
    rows = one_of(all, rows, "country", "country", &countries(&filter.country))?;
    rows = one_of(all, rows, "continent", "continent", &underscored(&filter.continent))?;
    rows = one_of(all, rows, "pricing_model", "pricing model", &underscored(&filter.pricing_model))?;
    let months = || col("commitment_months").fill_null(lit(0));
    if !filter.commitment_months.is_empty() {
        rows = rows.filter(any(filter.commitment_months.iter().map(|wanted| months().eq(lit(*wanted))).collect()));
    }
    if let Some(most) = filter.max_commitment_months {
        rows = rows.filter(months().lt_eq(lit(most)));
    }
    if let Some(os) = &filter.os {
        rows = one_of(all, rows, "os", "operating system", &[os.to_lowercase()])?;
    }
    Ok(rows)
}

/// Rows that a filter does not let through only because they do not state what it asks for, with words for each kind.
///
/// # Errors
/// As [`filtered`].
pub fn not_stated(all: &LazyFrame, filter: &Filter) -> Result<Vec<(usize, &'static str)>, QueryError> {
    let is_null = |asked: &[(&str, bool)]| -> Vec<Expr> {
        asked.iter().filter(|(_, is_asked)| *is_asked).map(|(column, _)| col(*column).is_null()).collect()
    };
    let places = [
        ("region", !filter.region.is_empty()),
        ("country", !filter.country.is_empty()),
        ("continent", !filter.continent.is_empty()),
    ];
    let anywhere = Filter { region: Vec::new(), country: Vec::new(), continent: Vec::new(), ..filter.clone() };
    let memory = [("gpu_memory_gb", filter.min_gpu_memory.or(filter.min_total_memory).is_some())];
    let count = [("gpu_count", !filter.gpu_count.is_empty() || filter.min_total_memory.is_some())];
    let of_any_memory = Filter { min_gpu_memory: None, min_total_memory: None, ..filter.clone() };
    let of_any_count = Filter { gpu_count: Vec::new(), min_total_memory: None, ..filter.clone() };
    let mut counts = Vec::new();
    for (without, nulls, words) in [
        (anywhere, is_null(&places), "whose region, country or continent is not stated"),
        (of_any_memory, is_null(&memory), "whose memory of a GPU is not stated"),
        (of_any_count, is_null(&count), "whose number of GPUs is not stated"),
    ] {
        if !nulls.is_empty() {
            let rows = filtered(all, &without)?.filter(any(nulls)).select([col("provider")]).collect()?;
            counts.push((rows.height(), words));
        }
    }
    Ok(counts)
}

fn any(tests: Vec<Expr>) -> Expr {
    tests.into_iter().reduce(Expr::or).unwrap_or_else(|| lit(false))
}

fn lower_case(words: &[String]) -> Vec<String> {
    words.iter().map(|word| word.to_lowercase()).collect()
}

/// Words of a closed set as the dataset writes them: `on-demand` is `on_demand`.
fn underscored(words: &[String]) -> Vec<String> {
    words.iter().map(|word| word.trim().to_lowercase().replace(['-', ' '], "_")).collect()
}

/// Codes of countries; an English name becomes its code.
fn countries(typed: &[String]) -> Vec<String> {
    let code = |typed: &String| Regions::built_in().code_of(typed).map_or_else(|| typed.to_uppercase(), str::to_owned);
    typed.iter().map(code).collect()
}

/// Rows of the GPUs that a typed name means.
///
/// # Errors
/// When it means none: names near ones.
pub fn is_gpu(typed: &str) -> Result<Expr, QueryError> {
    let is_one = |name: &str| col("gpu_model").eq(lit(name.to_owned()));
    Ok(is_model(typed)?.into_iter().map(is_one).reduce(Expr::or).expect("at least one model matches"))
}

/// The models that a typed name means.
///
/// # Errors
/// When it means none: names near ones.
pub fn is_model(typed: &str) -> Result<Vec<&'static str>, QueryError> {
    let models = GpuModels::built_in().matching(typed);
    if models.is_empty() {
        let near = GpuModels::built_in().suggest(typed);
        let near = if near.is_empty() { String::new() } else { format!("; near it are {}", near.join(", ")) };
        return Err(QueryError::UnknownGpu { typed: typed.to_owned(), near });
    }
    Ok(models.iter().map(|model| model.name.as_str()).collect())
}

/// Rows of one machine type, exactly as the provider names it but for upper and lower case.
fn of_machine(all: &LazyFrame, rows: LazyFrame, typed: &str) -> Result<LazyFrame, QueryError> {
    let present = all.clone().select([machine().alias("machine").unique().sort(SortOptions::default())]).collect()?;
    let present: Vec<String> = present.column("machine")?.str()?.iter().flatten().map(str::to_owned).collect();
    let names: Vec<&String> = present.iter().filter(|name| name.eq_ignore_ascii_case(typed)).collect();
    if names.is_empty() {
        return Err(QueryError::UnknownMachine { typed: typed.to_owned(), near: near(&present, typed) });
    }
    let is_one = names.into_iter().map(|name| machine().eq(lit(name.clone()))).collect();
    Ok(rows.filter(any(is_one)))
}

/// Rows with one of the words in a column, all rows for no word; a word that no row of the snapshot has is an error. What
/// exists and does not go together is an empty list.
fn one_of(
    all: &LazyFrame,
    rows: LazyFrame,
    column: &'static str,
    what: &'static str,
    words: &[String],
) -> Result<LazyFrame, QueryError> {
    if words.is_empty() {
        return Ok(rows);
    }
    let present = all.clone().select([col(column).unique().sort(SortOptions::default())]).collect()?;
    let present: Vec<String> = present.column(column)?.str()?.iter().flatten().map(str::to_owned).collect();
    for word in words {
        if !present.contains(word) {
            let known = if present.len() > LISTED_MAX { format!("{}, …", near(&present, word)) } else { present.join(", ") };
            return Err(QueryError::UnknownValue { what, typed: word.clone(), known });
        }
    }
    Ok(rows.filter(any(words.iter().map(|word| col(column).eq(lit(word.clone()))).collect())))
}

/// Longest list of what there is; of a longer one the nearest are named.
const LISTED_MAX: usize = 40;
