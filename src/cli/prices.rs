//! The command line of the verbs that list prices: which offers, in which currency, over what. Types only, no logic.

use std::path::PathBuf;

use chrono::{DateTime, Utc};
use clap::{ArgGroup, Args};

use super::{Dataset, Printing, instant};
use crate::measure::{Currency, Over};

/// Which offers of a snapshot.
#[derive(Debug, Clone, Default, Args)]
pub struct Filter {
    /// Only these GPUs, as people type them: h100, "H100 SXM", a100-80, 4090, "h100 sxm 80gb"
    #[arg(long, value_name = "A,B", value_delimiter = ',', help_heading = "Which offers")]
    pub gpu: Vec<String>,
    /// At least this much memory on one GPU, in GB
    #[arg(long, value_name = "GB", value_parser = above_zero, help_heading = "Which offers")]
    pub min_gpu_memory: Option<f64>,
    /// At least this much memory on all GPUs of the machine together, in GB
    #[arg(long, value_name = "GB", value_parser = above_zero, help_heading = "Which offers")]
    pub min_total_memory: Option<f64>,
    /// Only machines with exactly so many GPUs
    #[arg(long, value_name = "A,B", value_delimiter = ',', value_parser = above_zero, help_heading = "Which offers")]
    pub gpu_count: Vec<f64>,
    /// Only these providers
    #[arg(long, value_name = "A,B", value_delimiter = ',', help_heading = "Which offers")]
    pub provider: Vec<String>,
    /// Only this machine, exactly as the provider names it
    #[arg(long, value_name = "TYPE", help_heading = "Which offers")]
    pub instance_type: Option<String>,
    /// Only these regions, as published
    #[arg(long, value_name = "A,B", value_delimiter = ',', help_heading = "Which offers")]
    pub region: Vec<String>,
    /// Only these countries: ISO codes such as DE, or English names
    #[arg(long, value_name = "A,B", value_delimiter = ',', help_heading = "Which offers")]
    pub country: Vec<String>,
    /// Only these continents: africa, asia, europe, north_america, oceania, south_america
    #[arg(long, value_name = "A,B", value_delimiter = ',', help_heading = "Which offers")]
    pub continent: Vec<String>,
    /// Only these pricing models: on_demand, spot, reserved …
    #[arg(long, value_name = "A,B", value_delimiter = ',', help_heading = "Which offers")]
    pub pricing_model: Vec<String>,
    /// Only these commitments, in months; 0 for none
    #[arg(long, value_name = "A,B", value_delimiter = ',', help_heading = "Which offers")]
    pub commitment_months: Vec<i32>,
    /// At most this commitment, in months
    #[arg(long, value_name = "MONTHS", value_parser = clap::value_parser!(i32).range(0..), help_heading = "Which offers")]
    pub max_commitment_months: Option<i32>,
    /// Only this operating system
    #[arg(long, help_heading = "Which offers")]
    pub os: Option<String>,
    /// Only prices seen at most so many days ago
    #[arg(long, value_name = "DAYS", value_parser = clap::value_parser!(u32).range(1..=100_000), help_heading = "Which offers")]
    pub max_age_days: Option<u32>,
    /// Count ages to this time [default: now]
    #[arg(long, value_name = "TIME", value_parser = instant, help_heading = "Which offers")]
    pub now: Option<DateTime<Utc>>,
}

/// In which currency prices are shown, and over what.
#[derive(Debug, Clone, Args)]
pub struct Priced {
    /// Currency of the prices, as ISO code; converted at the rate of each row's day
    #[arg(long, value_name = "CODE", default_value = "USD")]
    pub currency: Currency,
    /// What a price is divided by: the hour of one GPU, its dense FP16 PFLOPS, or its memory in GB
    #[arg(long, value_enum, default_value_t)]
    pub by: Over,
}

/// Where rows are written.
#[derive(Debug, Clone, Args)]
pub struct Destination {
    /// Write the rows into this file, whole or not at all, instead of to standard output
    #[arg(long, value_name = "FILE")]
    pub to: Option<PathBuf>,
}

/// Arguments of `offers`.
#[derive(Debug, Args)]
pub struct Offers {
    /// The dataset.
    #[command(flatten)]
    pub dataset: Dataset,
    /// The form.
    #[command(flatten)]
    pub printing: Printing,
    /// The file.
    #[command(flatten)]
    pub destination: Destination,
    /// Snapshot: id, version, date, `latest` or `previous`
    #[arg(long, default_value = "latest")]
    pub snapshot: String,
    /// Which.
    #[command(flatten)]
    pub filter: Filter,
    /// At most this price, in the currency and over what is chosen
    #[arg(long, value_name = "PRICE", help_heading = "Which offers")]
    pub max_price: Option<f64>,
    /// The price.
    #[command(flatten)]
    pub priced: Priced,
    /// Order: price, -price, memory, provider, region or any column
    #[arg(long, default_value = "price", allow_hyphen_values = true)]
    pub sort: String,
    /// At most so many rows
    #[arg(long, default_value_t = 50)]
    pub limit: u32,
}

/// Arguments of `cheapest`.
#[derive(Debug, Args)]
#[command(group = ArgGroup::new("need").args(["gpu", "min_gpu_memory", "min_total_memory"]).required(true).multiple(true))]
pub struct Cheapest {
    /// The dataset.
    #[command(flatten)]
    pub dataset: Dataset,
    /// The form.
    #[command(flatten)]
    pub printing: Printing,
    /// The file.
    #[command(flatten)]
    pub destination: Destination,
    /// Snapshot: id, version, date, `latest` or `previous`
    #[arg(long, default_value = "latest")]
    pub snapshot: String,
    /// Which.
    #[command(flatten)]
    pub filter: Filter,
    /// Also parts of a card, at the price of a whole one
    #[arg(long, help_heading = "Which offers")]
    pub fractions: bool,
    /// The price.
    #[command(flatten)]
    pub priced: Priced,
    /// Every offer, not the cheapest of each provider
    #[arg(long)]
    pub all: bool,
    /// At most so many lines of each ladder; 0 for all
    #[arg(long, default_value_t = 50)]
    pub limit: u32,
}

/// A number above zero.
fn above_zero(text: &str) -> Result<f64, String> {
    text.parse::<f64>()
        .ok()
        .filter(|number| number.is_finite() && *number > 0.0)
        .ok_or_else(|| "a number above 0 is needed".to_owned())
}
