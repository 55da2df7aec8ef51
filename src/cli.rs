//! The command line: types only, no logic.

use std::path::PathBuf;
use std::time::Duration;

use chrono::{DateTime, NaiveDate, Utc};
use clap::{Args, Parser, Subcommand};

use crate::log::LogForm;
use crate::print::Format;
pub use prices::{Cheapest, Destination, Filter, Offers, Priced};

use crate::record::Scheduled;
use crate::schedule::args::{ScheduleCheck, ScheduleNight, ScheduleRun, ScheduleStatus};

mod prices;

/// A ledger of published GPU prices: every night's pages kept, made comparable, and added as one version of a Parquet
/// dataset.
#[derive(Debug, Parser)]
#[command(version, propagate_version = true)]
pub struct Cli {
    /// How a run tells on standard error what it does: lines for people, or one JSON object a line
    #[arg(long, global = true, value_enum, default_value_t, env = "GPULEDGER_LOG", value_name = "FORM")]
    pub log: LogForm,
    /// What to do.
    #[command(subcommand)]
    pub verb: Verb,
}

/// What to do.
#[derive(Debug, Subcommand)]
pub enum Verb {
    /// Collect tonight's prices and publish them as a snapshot
    Collect(Collect),
    /// List the published snapshots
    Snapshots(Listing),
    /// Filter and list offers of a snapshot
    Offers(Offers),
    /// Show the cheapest offers of a GPU or a memory need: a ladder for each way to buy
    Cheapest(Cheapest),
    /// Show what changed between two snapshots
    Diff(crate::diff::show::DiffArgs),
    /// Show how prices of a GPU moved, day by day
    Trend(crate::trend::Trend),
    /// Make one HTML page of a night: changes, trends, the cheapest, what it covers, and every offer
    Report(crate::page::Report),
    /// List the providers: what is read, terms, and their last status
    Providers(Listing),
    /// Read pages of a provider from files and show the offers; publishes nothing
    Parse(Parse),
    /// Fetch a provider's pages politely and store them as a dated recording
    Record(Record),
    /// Show what is in a machine: GPUs, memory, links, and where it was read
    Hardware(Hardware),
    /// List what the rules found in a night, also in one that was refused
    Findings(Findings),
    /// Tell what happened: all runs, or those of a day with every provider, also of a night that was refused
    Runs(Runs),
    /// Derive a published night again from the archive and compare; asks no network
    Replay(Replay),
    /// Show where a price stands in the archived page, and each step from there to USD per GPU-hour
    Explain(Explain),
    /// Look after the archive of pages
    #[command(subcommand)]
    Archive(ArchiveVerb),
    /// Publish the earlier nights that a provider still names, each as a snapshot of its own time
    Backfill(Backfill),
    /// Look whether the dataset is whole and tonight's night can run; names the command that mends each problem
    Doctor(Doctor),
    /// Publish price histories that other people keep, each night as a snapshot of its own time
    Import(crate::import::Import),
    /// Write a snapshot into a folder as gpuhunt, SkyPilot or any other program reads it
    Export(crate::export::Export),
    /// Run nights when they are due, and say when that is
    #[command(subcommand)]
    Schedule(ScheduleVerb),
    /// Print what makes a shell complete this program's verbs and options
    Completions(Completions),
    /// Print the manual, or write a page of it for each verb
    Man(Man),
}

impl Verb {
    /// The dataset that the command line names; none where a schedule or nothing says it.
    pub const fn dataset_mut(&mut self) -> Option<&mut Dataset> {
        Some(match self {
            Self::Collect(args) => &mut args.dataset,
            Self::Snapshots(args) | Self::Providers(args) => &mut args.dataset,
            Self::Offers(args) => &mut args.dataset,
            Self::Cheapest(args) => &mut args.dataset,
            Self::Diff(args) => &mut args.dataset,
            Self::Trend(args) => &mut args.dataset,
            Self::Findings(args) => &mut args.dataset,
            Self::Runs(args) => &mut args.dataset,
            Self::Replay(args) => &mut args.dataset,
            Self::Explain(args) => &mut args.dataset,
            Self::Archive(ArchiveVerb::Prune(args)) => &mut args.dataset,
            Self::Backfill(args) => &mut args.dataset,
            Self::Doctor(args) => &mut args.dataset,
            Self::Import(args) => &mut args.dataset,
            Self::Report(args) => &mut args.dataset,
            Self::Export(args) => &mut args.dataset,
            Self::Parse(_) | Self::Record(_) | Self::Hardware(_) => return None,
            Self::Schedule(_) | Self::Completions(_) | Self::Man(_) => return None,
        })
    }
}

/// What to do with schedules.
#[derive(Debug, Subcommand)]
pub enum ScheduleVerb {
    /// List the next due nights
    Next(ScheduleNext),
    /// Say in words what each schedule does, and refuse what cannot be
    Check(ScheduleCheck),
    /// Run one night as a schedule says, for a timer of the machine
    Night(ScheduleNight),
    /// Wait in the foreground and run each night when it is due
    Run(ScheduleRun),
    /// List the last nights of each schedule, those that are missing, and the next one
    Status(ScheduleStatus),
    /// Print ready files with which systemd, cron, GitHub Actions or Kubernetes starts the nights
    Install(ScheduleInstall),
}

/// Arguments of `schedule install`.
#[derive(Debug, Args)]
pub struct ScheduleInstall {
    /// What starts the nights.
    #[command(flatten)]
    pub on: Starter,
    /// The schedule file, with the path that it has for the one who starts it; one that is not whole begins at --directory
    pub file: PathBuf,
    /// Write the files into this folder instead of printing them
    #[arg(long, value_name = "DIR")]
    pub into: Option<PathBuf>,
    /// Where the program is
    #[arg(long, value_name = "PATH", default_value = "/usr/local/bin/gpuledger")]
    pub program: PathBuf,
    /// Where it runs: what the schedule's paths begin at
    #[arg(long, value_name = "DIR", default_value = "/var/lib/gpuledger")]
    pub directory: PathBuf,
    /// File with the environment: contact, keys of providers, addresses of webhooks
    #[arg(long, value_name = "PATH", default_value = "/etc/gpuledger/environment")]
    pub environment: PathBuf,
    /// User that it runs as
    #[arg(long, default_value = "gpuledger")]
    pub user: String,
    /// Image that has the program, for Kubernetes
    #[arg(long, default_value = concat!("gpuledger:", env!("CARGO_PKG_VERSION")))]
    pub image: String,
}

/// What starts the nights: one of these.
#[derive(Debug, Args)]
#[group(required = true, multiple = false)]
pub struct Starter {
    /// A service and a timer of systemd
    #[arg(long)]
    pub systemd: bool,
    /// A file for /etc/cron.d
    #[arg(long)]
    pub crontab: bool,
    /// A workflow of GitHub Actions
    #[arg(long)]
    pub github_actions: bool,
    /// A CronJob of Kubernetes, with its volume and its schedule
    #[arg(long)]
    pub kubernetes: bool,
}

/// Arguments of `schedule next`.
#[derive(Debug, Args)]
pub struct ScheduleNext {
    /// Schedule files
    #[arg(default_value = "schedules/nightly.toml")]
    pub files: Vec<PathBuf>,
    /// So many nights of each
    #[arg(short = 'n', long, value_name = "NIGHTS", default_value_t = 10, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    pub count: u32,
    /// Nights after this time [default: now]
    #[arg(long, value_name = "TIME", value_parser = instant)]
    pub after: Option<DateTime<Utc>>,
    /// The form.
    #[command(flatten)]
    pub printing: Printing,
}

/// Where the dataset is.
#[derive(Debug, Clone, Args)]
pub struct Dataset {
    /// Root of the dataset: a folder, or s3://BUCKET/PREFIX where object stores are built in
    #[arg(long, value_name = "DIR", default_value = "output", env = "GPULEDGER_OUTPUT")]
    pub output: PathBuf,
}

/// How rows are printed.
#[derive(Debug, Clone, Args)]
pub struct Printing {
    /// How rows are printed
    #[arg(long, value_enum, default_value_t)]
    pub format: Format,
}

/// A list without filters.
#[derive(Debug, Args)]
pub struct Listing {
    /// The dataset.
    #[command(flatten)]
    pub dataset: Dataset,
    /// The form.
    #[command(flatten)]
    pub printing: Printing,
}

/// Arguments of `collect`.
#[derive(Debug, Args)]
pub struct Collect {
    /// The dataset.
    #[command(flatten)]
    pub dataset: Dataset,
    /// Use the recordings built into the program instead of the network
    #[arg(long, conflicts_with = "from")]
    pub recorded: bool,
    /// Use files DIR/PROVIDER/ANY-NAME instead of the network
    #[arg(long, value_name = "DIR")]
    pub from: Option<PathBuf>,
    /// Collect as of this time, for back-dated input [default: now; with --recorded, the time of the recordings]
    #[arg(long, value_name = "TIME", value_parser = instant)]
    pub at: Option<DateTime<Utc>>,
    /// Only these providers [default: all]
    #[arg(long, value_name = "A,B", value_delimiter = ',')]
    pub providers: Vec<String>,
    /// Also read these providers whose terms restrict reading by machine
    #[arg(long, value_name = "A,B", value_delimiter = ',')]
    pub accept_terms: Vec<String>,
    /// Address or mail that a provider can write to; stands in the User-Agent
    #[arg(long, env = "GPULEDGER_CONTACT")]
    pub contact: Option<String>,
    /// Longest time for fetching, in minutes; what is not had by then is missing tonight. Each provider has a limit of its own
    /// beside [default: none]
    #[arg(long, value_name = "MINUTES", value_parser = minutes)]
    pub max_minutes: Option<Duration>,
    /// The due night that this is; only a schedule says so.
    #[arg(skip)]
    pub scheduled: Option<Scheduled>,
}

/// Minutes, also parts of one, as a length of time.
fn minutes(text: &str) -> Result<Duration, String> {
    let minutes: f64 = text.parse().map_err(|_| "not a number of minutes".to_owned())?;
    Duration::try_from_secs_f64(minutes * 60.0)
        .ok()
        .filter(|time| !time.is_zero())
        .ok_or_else(|| "a number of minutes above 0 is needed".to_owned())
}

/// Arguments of `completions`.
#[derive(Debug, Args)]
pub struct Completions {
    /// The shell
    pub shell: clap_complete::Shell,
}

/// Arguments of `man`.
#[derive(Debug, Args)]
pub struct Man {
    /// Write a page for each verb into this folder [default: the first page, to standard output]
    pub folder: Option<PathBuf>,
}

/// Arguments of `hardware`.
#[derive(Debug, Args)]
pub struct Hardware {
    /// The machine, exactly as its provider names it [default: all]
    pub instance_type: Option<String>,
    /// Only these providers
    #[arg(long, value_name = "A,B", value_delimiter = ',')]
    pub provider: Vec<String>,
    /// Only machines of this GPU, as people type it
    #[arg(long)]
    pub gpu: Option<String>,
    /// The form.
    #[command(flatten)]
    pub printing: Printing,
}

/// Arguments of `findings`.
#[derive(Debug, Args)]
pub struct Findings {
    /// The dataset.
    #[command(flatten)]
    pub dataset: Dataset,
    /// The form.
    #[command(flatten)]
    pub printing: Printing,
    /// The night, published or refused: id, date, version, `latest` or `previous`
    #[arg(value_name = "SNAPSHOT-OR-RUN", default_value = "latest")]
    pub night: String,
    /// Only these severities: note, quarantine_row, refuse_scope, refuse_provider, refuse_night
    #[arg(long, value_name = "A,B", value_delimiter = ',')]
    pub severity: Vec<String>,
    /// Only findings of these rules
    #[arg(long, value_name = "A,B", value_delimiter = ',')]
    pub rule: Vec<String>,
    /// Only these providers
    #[arg(long, value_name = "A,B", value_delimiter = ',')]
    pub provider: Vec<String>,
    /// At most so many rows; 0 for all
    #[arg(long, default_value_t = 50)]
    pub limit: usize,
}

/// Arguments of `runs`.
#[derive(Debug, Args)]
pub struct Runs {
    /// The dataset.
    #[command(flatten)]
    pub dataset: Dataset,
    /// The form.
    #[command(flatten)]
    pub printing: Printing,
    /// The night, published or refused: its day, its id, `latest` or `previous` [default: one line for every run]
    #[arg(value_name = "DAY-OR-RUN")]
    pub night: Option<String>,
}

/// Arguments of `backfill`.
#[derive(Debug, Args)]
pub struct Backfill {
    /// The dataset.
    #[command(flatten)]
    pub dataset: Dataset,
    /// The provider
    pub provider: String,
    /// From this day on
    #[arg(long, value_name = "DATE")]
    pub since: NaiveDate,
    /// To this day [default: the newest night]
    #[arg(long, value_name = "DATE")]
    pub until: Option<NaiveDate>,
    /// Only these scopes, such as regions [default: all]
    #[arg(long, value_name = "A,B", value_delimiter = ',')]
    pub scopes: Vec<String>,
    /// Also read a provider whose terms restrict reading by machine
    #[arg(long, value_name = "A,B", value_delimiter = ',')]
    pub accept_terms: Vec<String>,
    /// Address or mail that the provider can write to; stands in the User-Agent
    #[arg(long, env = "GPULEDGER_CONTACT")]
    pub contact: Option<String>,
}

/// Arguments of `doctor`.
#[derive(Debug, Args)]
pub struct Doctor {
    /// The dataset.
    #[command(flatten)]
    pub dataset: Dataset,
    /// The form.
    #[command(flatten)]
    pub printing: Printing,
    /// Read every file and every archived page, not only the newest and some
    #[arg(long)]
    pub all: bool,
    /// Schedules to look at
    #[arg(long, value_name = "DIR", default_value = "schedules")]
    pub schedules: PathBuf,
}

/// Arguments of `parse`.
#[derive(Debug, Args)]
pub struct Parse {
    /// The provider
    pub provider: String,
    /// Its pages
    #[arg(required = true)]
    pub files: Vec<PathBuf>,
    /// When the pages were read [default: now]
    #[arg(long, value_name = "TIME", value_parser = instant)]
    pub at: Option<DateTime<Utc>>,
    /// The form.
    #[command(flatten)]
    pub printing: Printing,
}

/// Arguments of `record`.
#[derive(Debug, Args)]
pub struct Record {
    /// The provider
    pub provider: String,
    /// Where to put PROVIDER/fixtures/DATE/
    #[arg(long, value_name = "DIR", default_value = "recordings")]
    pub into: PathBuf,
    /// Address or mail that the provider can write to; stands in the User-Agent
    #[arg(long, env = "GPULEDGER_CONTACT")]
    pub contact: Option<String>,
    /// Also read a provider whose terms restrict reading by machine
    #[arg(long, value_name = "A,B", value_delimiter = ',')]
    pub accept_terms: Vec<String>,
}

/// Arguments of `replay`.
#[derive(Debug, Args)]
pub struct Replay {
    /// The dataset.
    #[command(flatten)]
    pub dataset: Dataset,
    /// The form.
    #[command(flatten)]
    pub printing: Printing,
    /// Snapshot: id, version, date, `latest` or `previous`
    pub snapshot: String,
    /// Publish what differs as a correction: a new snapshot of the same time; nothing that is published changes
    #[arg(long)]
    pub publish: bool,
}

/// Arguments of `explain`.
#[derive(Debug, Args)]
pub struct Explain {
    /// The dataset.
    #[command(flatten)]
    pub dataset: Dataset,
    /// The offer's id, or its first characters
    pub offer_id: String,
    /// Snapshot: id, version, date, `latest` or `previous`
    #[arg(long, default_value = "latest")]
    pub snapshot: String,
    /// How it is shown
    #[arg(long, value_enum, default_value_t)]
    pub format: ExplainFormat,
}

/// How one offer is explained.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, clap::ValueEnum)]
pub enum ExplainFormat {
    /// Lines for people.
    #[default]
    Text,
    /// One JSON object.
    Json,
}

/// What can be done with the archive.
#[derive(Debug, Subcommand)]
pub enum ArchiveVerb {
    /// Remove pages that are kept long enough; nothing removes them by itself
    Prune(Prune),
}

/// Arguments of `archive prune`.
#[derive(Debug, Args)]
pub struct Prune {
    /// The dataset.
    #[command(flatten)]
    pub dataset: Dataset,
    /// Pages of the last so many days stay
    #[arg(long, value_name = "N")]
    pub keep_days: u32,
    /// Say what would go, and remove nothing
    #[arg(long)]
    pub dry_run: bool,
    /// Also the pages of published nights; their rows stay, and cannot be explained or derived again any more
    #[arg(long)]
    pub published_too: bool,
}

/// A time with its zone, or a day, which is its midnight in UTC.
pub(crate) fn instant(text: &str) -> Result<DateTime<Utc>, String> {
    if let Ok(at) = DateTime::parse_from_rfc3339(text) {
        return Ok(at.with_timezone(&Utc));
    }
    match text.parse::<chrono::NaiveDate>() {
        Ok(day) => Ok(day.and_time(chrono::NaiveTime::MIN).and_utc()),
        Err(_) => Err("not a time; write 2026-10-30T18:00:00Z, or 2026-10-30 for its midnight in UTC".to_owned()),
    }
}
