//! How prices of a GPU moved, day by day: `trend`.
//!
//! In: the published snapshots. Out: median, quartiles, minimum and count of a day's prices of one whole GPU for an hour, as
//! rows, as a line of blocks, and as a chart. A day without a snapshot is a gap and never a line. Opens only the files of the
//! days and only the columns that it needs. What is no plain price of a whole card is left out unless asked for, and counted.

mod chart;
mod rows;
mod series;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::path::PathBuf;

use chrono::NaiveDate;

use crate::archive::ArchiveError;
use crate::cli::{Dataset, Printing};
use crate::exit::Exit;
use crate::print::{self, Data, Format};
use crate::report::{Failed, Said};
use crate::snapshot::SnapshotError;
use crate::snapshot::read::{self, Snapshot};
use rows::Prices;
pub use series::INDEX_METHOD;
use series::Trends;

/// Arguments of `trend`.
#[derive(Debug, clap::Args)]
pub struct Trend {
    /// The dataset.
    #[command(flatten)]
    pub dataset: Dataset,
    /// The form.
    #[command(flatten)]
    pub printing: Printing,
    /// The GPU, as people type it: h100, "H100 SXM", a100-80, 4090
    #[arg(long, required_unless_present = "index")]
    pub gpu: Option<String>,
    /// The index of a GPU: of each provider the median of its on-demand prices, and of those the median
    #[arg(long, value_name = "GPU", conflicts_with_all = ["gpu", "by", "pricing_model"])]
    pub index: Option<String>,
    /// Only these providers
    #[arg(long, value_name = "A,B", value_delimiter = ',')]
    pub provider: Vec<String>,
    /// A line for each
    #[arg(long, value_enum)]
    pub by: Option<By>,
    /// From this day on
    #[arg(long, value_name = "DATE")]
    pub since: Option<NaiveDate>,
    /// To this day
    #[arg(long, value_name = "DATE")]
    pub until: Option<NaiveDate>,
    /// Only these pricing models [default: on_demand, and all with `--by pricing_model`]
    #[arg(long, value_name = "A,B", value_delimiter = ',')]
    pub pricing_model: Vec<String>,
    /// Also draw a chart of the medians
    #[arg(long, value_name = "FILE")]
    pub svg: Option<PathBuf>,
    /// Also what was imported from histories that other people keep, each as a line of its own
    #[arg(long)]
    pub include_imports: bool,
    /// Also people who copy vendors' prices
    #[arg(long)]
    pub include_aggregators: bool,
    /// Also parts of a card that are a fixed share of one
    #[arg(long)]
    pub include_fractions: bool,
    /// Also plans, which have conditions of their own
    #[arg(long)]
    pub include_plans: bool,
    /// Also machines with a Windows licence in the price
    #[arg(long)]
    pub include_windows: bool,
    /// So many of the newest days of each line in a table; 0 for all
    #[arg(long, default_value_t = 30)]
    pub limit: usize,
}

/// What a line is of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
#[value(rename_all = "snake_case")]
pub enum By {
    /// One provider.
    Provider,
    /// One region of one provider.
    Region,
    /// One pricing model.
    PricingModel,
}

/// Shows how prices moved.
///
/// # Errors
/// When the arguments name what there is not, or the dataset or the chart cannot be used.
pub async fn trend(args: &Trend) -> Result<Said, Failed> {
    let output = args.dataset.output.as_path();
    let snapshots = read::snapshots(output).await?;
    if snapshots.is_empty() {
        return Err(SnapshotError::NotFound {
            wanted: "latest".to_owned(),
            help: "nothing has been published yet; `gpuledger collect` publishes the first snapshot".to_owned(),
        }
        .into());
    }
    let coverage = read::coverage(output, &snapshots).await?;
    let nights = Nights::chosen(args, &snapshots, &coverage)?;
    let prices = Prices::read(args, &nights)?;
    let trends = if args.index.is_some() { Trends::index(&prices) } else { Trends::of(&prices) };
    if let Some(path) = &args.svg {
        let title = chart::Title { gpu: prices.gpu.clone(), is_index: args.index.is_some() };
        let svg = chart::svg(&trends, &title).map_err(|error| Failed::new(Exit::Bug, "draw the chart", &*error))?;
        let failed = |source| ArchiveError::Io { path: path.clone(), source };
        std::fs::write(path, &svg).map_err(|error| Failed::new(Exit::Refused, "write the chart", &failed(error)))?;
    }
    let is_table = args.printing.format == Format::Table;
    let limit = if is_table && args.limit > 0 { args.limit } else { usize::MAX };
    let rows = trends.rows(limit)?;
    let data = if is_table {
        let table = print::table(&rows, trends.headings())?;
        Data::from(chart::lines(&trends) + &table)
    } else {
        print::rows(&rows, trends.headings(), args.printing.format)?
    };
    let mut talk = String::new();
    let days: usize = trends.lines.iter().map(|line| line.days.len()).sum();
    if days == 0 {
        let _ = writeln!(talk, "no day has such a price of {}", prices.gpu);
    }
    let shown: usize = trends.lines.iter().map(|line| line.days.len().min(limit)).sum();
    if shown < days {
        let _ = writeln!(talk, "the table has the newest {limit} days of each line, {shown} of {days}; --limit 0 shows all");
    }
    talk.push_str(&prices.left_out(&nights));
    Ok(Said { data, talk: Some(talk), exit: Exit::Good })
}

/// A GPU's index of each source that has one: the figures of its days in USD for one GPU and hour, with the providers that each
/// is of, oldest first.
pub(crate) type Index = Vec<(Source, BTreeMap<NaiveDate, (f64, usize)>)>;

/// The index of one model of a GPU in the given snapshots, as `trend --index GPU --include-imports` has it where the typed name
/// means that model only.
///
/// # Errors
/// When a snapshot cannot be read.
pub(crate) fn index(snapshots: &[Snapshot], coverage: &polars::prelude::DataFrame, model: &str) -> Result<Index, Failed> {
    let args = Trend {
        dataset: Dataset { output: PathBuf::new() },
        printing: Printing { format: Format::Json },
        gpu: None,
        index: Some(model.to_owned()),
        provider: Vec::new(),
        by: None,
        since: None,
        until: None,
        pricing_model: Vec::new(),
        svg: None,
        include_imports: true,
        include_aggregators: false,
        include_fractions: false,
        include_plans: false,
        include_windows: false,
        limit: 0,
    };
    let nights = Nights::chosen(&args, snapshots, coverage)?;
    let is_model = polars::prelude::col("gpu_model").eq(polars::prelude::lit(model.to_owned()));
    let trends = Trends::index(&Prices::of(&args, &nights, model.to_owned(), is_model)?);
    let days = |line: &series::Line| line.days.iter().map(|(day, figures)| (*day, (figures.median, figures.count))).collect();
    Ok(trends.lines.iter().map(|line| (line.source.clone(), days(line))).collect())
}

/// Where a line's prices are from: the program's own nights, or a history that somebody else keeps.
pub(crate) type Source = String;

/// The source of what was collected.
pub(crate) const COLLECTED: &str = "collected";

/// The snapshots that the days are read from.
struct Nights<'a> {
    files: Vec<&'a Snapshot>,
    /// Day, source and provider → the last snapshot of that day in which the provider is.
    last: BTreeMap<(NaiveDate, Source, String), String>,
    /// Imported nights of these days that are left out.
    imports_left_out: usize,
}

impl<'a> Nights<'a> {
    /// Of each day and provider the last night that has a complete scope of it.
    fn chosen(args: &Trend, snapshots: &'a [Snapshot], coverage: &polars::prelude::DataFrame) -> Result<Self, Failed> {
        let is_of_time =
            |day: NaiveDate| args.since.is_none_or(|since| since <= day) && args.until.is_none_or(|until| day <= until);
        let of_time = read::newest_of_each_night(snapshots).into_iter().filter(|night| is_of_time(night.id.date()));
        let (wanted, left): (Vec<_>, Vec<_>) = of_time.partition(|night| args.include_imports || !night.is_import());
        let by_id: BTreeMap<String, &Snapshot> = wanted.into_iter().map(|night| (night.id.to_string(), night)).collect();
        let mut last: BTreeMap<(NaiveDate, Source, String), String> = BTreeMap::new();
        let mut providers = BTreeSet::new();
        let text = |name: &str| Ok::<_, Failed>(coverage.column(name)?.str()?.clone());
        let (ids, names, scopes, states) = (text("snapshot_id")?, text("provider")?, text("scope")?, text("status")?);
        for (((id, provider), scope), state) in ids.iter().zip(names.iter()).zip(scopes.iter()).zip(states.iter()) {
            let (Some(id), Some(provider), Some(scope)) = (id, provider, scope) else { continue };
            let Some(night) = by_id.get(id) else { continue };
            providers.insert(provider.to_owned());
            let is_meant = args.provider.is_empty() || args.provider.iter().any(|meant| meant == provider);
            if state != Some("complete") || !is_meant {
                continue;
            }
            let source = if night.is_import() { scope } else { COLLECTED };
            let newest = last.entry((night.id.date(), source.to_owned(), provider.to_owned())).or_default();
            if newest.as_str() < id {
                id.clone_into(newest);
            }
        }
        if let Some(typed) = args.provider.iter().find(|typed| !providers.contains(*typed)) {
            let known = providers.into_iter().collect::<Vec<_>>().join(", ");
            return Err(crate::query::QueryError::UnknownValue { what: "provider", typed: typed.clone(), known }.into());
        }
        let ids: BTreeSet<&String> = last.values().collect();
        let files = by_id.iter().filter(|(id, _)| ids.contains(id)).map(|(_, night)| *night).collect();
        Ok(Self { files, last, imports_left_out: left.len() })
    }
}
