//! Filters over the offers of a snapshot.

use gpuledger_scrapers::contract::SourceKind;
use polars::prelude::*;

use crate::cli::Offers;
use crate::machines::near;
use crate::normalise::gpu::GpuModels;
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

/// Rows that a filter lets through, in order.
///
/// # Errors
/// When the filter names something that does not exist.
pub fn offers(rows: LazyFrame, filter: &Offers) -> Result<DataFrame, QueryError> {
    let mut rows = rows.with_column(col("instance_type").fill_null(col("offer_label")).alias("instance_type"));
    if !filter.provider.is_empty() {
        rows = one_of(rows, "provider", "provider", &filter.provider)?;
    }
    if let Some(typed) = &filter.instance_type {
        rows = of_machine(rows, typed)?;
    }
    if let Some(typed) = &filter.gpu {
        rows = rows.filter(is_gpu(typed)?);
    }
    if let Some(gb) = filter.min_gpu_memory {
        rows = rows.filter(col("gpu_memory_gb").cast(DataType::Float64).gt_eq(lit(gb)));
    }
    if let Some(region) = &filter.region {
        rows = one_of(rows, "region", "region", std::slice::from_ref(region))?;
    }
    if let Some(country) = &filter.country {
        rows = one_of(rows, "country", "country", &[country.to_uppercase()])?;
    }
    if !filter.pricing_model.is_empty() {
        let words: Vec<String> = filter.pricing_model.iter().map(|word| word.replace('-', "_")).collect();
        rows = one_of(rows, "pricing_model", "pricing model", &words)?;
    }
    if let Some(os) = &filter.os {
        rows = one_of(rows, "os", "operating system", std::slice::from_ref(os))?;
    }
    if let Some(usd) = filter.max_price {
        rows = rows.filter(col("price_usd_per_gpu_hour").lt_eq(lit(usd)));
    }
    let (is_descending, by) = filter.sort.strip_prefix('-').map_or((false, filter.sort.as_str()), |by| (true, by));
    let by = match by {
        "price" => "price_usd_per_gpu_hour",
        "memory" => "gpu_memory_gb",
        other => other,
    };
    let columns = rows.collect_schema()?;
    if columns.get(by).is_none() {
        let known = columns.iter_names().map(|name| name.as_str()).collect::<Vec<_>>().join(", ");
        return Err(QueryError::UnknownValue { what: "column", typed: by.to_owned(), known });
    }
    let order = SortMultipleOptions::default().with_nulls_last(true).with_order_descending_multi([is_descending, false]);
    Ok(rows.sort([by, "offer_id"], order).limit(filter.limit).collect()?)
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
fn of_machine(rows: LazyFrame, typed: &str) -> Result<LazyFrame, QueryError> {
    let present = rows.clone().select([col("instance_type").unique().sort(SortOptions::default())]).collect()?;
    let present: Vec<String> = present.column("instance_type")?.str()?.iter().flatten().map(str::to_owned).collect();
    let names: Vec<&String> = present.iter().filter(|name| name.eq_ignore_ascii_case(typed)).collect();
    if names.is_empty() {
        return Err(QueryError::UnknownMachine { typed: typed.to_owned(), near: near(&present, typed) });
    }
    let is_one = names.into_iter().map(|name| col("instance_type").eq(lit(name.clone()))).reduce(Expr::or);
    Ok(rows.filter(is_one.expect("there is at least one name")))
}

/// Rows with one of the words in a column; a word that no row has is an error, never an empty list.
fn one_of(rows: LazyFrame, column: &'static str, what: &'static str, words: &[String]) -> Result<LazyFrame, QueryError> {
    let present = rows.clone().select([col(column).unique().sort(SortOptions::default())]).collect()?;
    let present: Vec<String> = present.column(column)?.str()?.iter().flatten().map(str::to_owned).collect();
    for word in words {
        if !present.contains(word) {
            return Err(QueryError::UnknownValue { what, typed: word.clone(), known: present.join(", ") });
        }
    }
    let is_one = words.iter().map(|word| col(column).eq(lit(word.clone()))).reduce(Expr::or);
    Ok(rows.filter(is_one.expect("there is at least one word")))
}

/// The cheapest whole-GPU on-demand Linux offers of a GPU, one a provider.
///
/// # Errors
/// When there is no such GPU.
pub fn cheapest_on_demand(rows: LazyFrame, typed: &str) -> Result<DataFrame, QueryError> {
    let rows = rows
        .filter(is_gpu(typed)?)
        .filter(col("pricing_model").eq(lit("on_demand")).and(col("os").eq(lit("linux"))))
        // Somebody's copy of a vendor's price is neither another provider nor another price, and a history is not of tonight.
        .filter(col("source_kind").neq(lit(SourceKind::Aggregator.word())))
        .filter(col("source_kind").neq(lit(SourceKind::Import.word())))
        // A plan has conditions of its own, such as the first 96 hours being paid at the full price.
        .filter(col("plan").is_null())
        .filter(col("is_fractional").not().and(col("price_usd_per_gpu_hour").is_not_null()))
        .with_column(col("instance_type").fill_null(col("offer_label")).alias("instance_type"))
        .sort(["price_usd_per_gpu_hour", "offer_id"], SortMultipleOptions::default())
        .unique_stable(Some(by_name(["provider"], true, false)), UniqueKeepStrategy::First)
        .collect()?;
    Ok(rows)
}
