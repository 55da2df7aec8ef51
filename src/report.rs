//! Verbs → what is said: rows on standard output, talk on standard error, an exit code.

use std::collections::{BTreeSet, HashMap};
use std::fmt::Write as _;
use std::path::Path;

use chrono::Utc;
use gpuledger_scrapers::recordings;
use polars::prelude::*;
use serde_json::json;

use crate::backfill::{self, BackfillError};
use crate::cli::{ArchiveVerb, Backfill, Cli, Collect, Listing, ScheduleVerb, Verb};
use crate::diff;
use crate::exit::Exit;
pub use crate::failed::Failed;
use crate::fetch::Traffic;
use crate::frame::Columns;
use crate::gather::Input;
use crate::night::SnapshotId;
use crate::print::{self, Data, Heading, heading};
use crate::record::ProviderRecord;
use crate::recorder::RecordError;
use crate::run::{self, Night};
use crate::schedule;
use crate::snapshot::{SnapshotError, read};
use crate::validate::rules::provider::NO_RATES_AT_ALL;
use crate::{
    catalogue, cheapest, doctor, explain, export, findings, import, log, machines, manual, offers, page, parse, prune, recorder,
    remote, replay, runs, trend,
};

/// What a verb says.
#[derive(Debug)]
pub struct Said {
    /// For standard output.
    pub data: Data,
    /// For standard error.
    pub talk: Option<String>,
    /// How it ends.
    pub exit: Exit,
}

/// Does what the command line asks for.
///
/// # Errors
/// When it cannot be done.
pub async fn run(mut cli: Cli) -> Result<Said, Failed> {
    if let Some(dataset) = cli.verb.dataset_mut() {
        dataset.output = remote::folder_of(&dataset.output)?;
        remote::prepare(&dataset.output).map_err(SnapshotError::Disk)?;
    }
    match cli.verb {
        Verb::Collect(args) => collect(&args).await,
        Verb::Snapshots(args) => snapshots(&args).await,
        Verb::Offers(args) => offers::offers(&args).await,
        Verb::Cheapest(args) => cheapest::cheapest(&args).await,
        Verb::Diff(args) => diff::show::difference(&args).await,
        Verb::Trend(args) => trend::trend(&args).await,
        Verb::Report(args) => page::report(&args).await,
        Verb::Providers(args) => catalogue::providers(&args).await,
        Verb::Parse(args) => parse::parse(&args),
        Verb::Hardware(args) => Ok(good(print::rows(&machines::hardware(&args)?, &machines::HEADINGS, args.printing.format)?)),
        Verb::Findings(args) => findings::findings(&args).await,
        Verb::Runs(args) => runs::runs(&args),
        Verb::Backfill(args) => backfill(&args).await,
        Verb::Import(args) => import::run(&args).await,
        Verb::Export(args) => export::export(&args).await,
        Verb::Schedule(verb) => scheduled(verb).await,
        Verb::Doctor(args) => doctor::doctor(&args).await,
        Verb::Replay(args) => replay::replay(&args).await,
        Verb::Explain(args) => explain::explain(&args).await,
        Verb::Archive(ArchiveVerb::Prune(args)) => prune::prune(&args).await,
        Verb::Completions(args) => Ok(good(manual::completions(&args))),
        Verb::Man(args) => manual::man(&args).map(good),
        Verb::Record(args) => {
            let told = recorder::record(&args).await.map_err(|error| match error {
                RecordError::Run(error) => error.into(),
                error => Failed::new(Exit::Refused, "", &error),
            })?;
            Ok(good(told))
        }
    }
}

async fn scheduled(verb: ScheduleVerb) -> Result<Said, Failed> {
    match verb {
        ScheduleVerb::Next(args) => {
            let nights = schedule::next::next(&args, Utc::now())?;
            Ok(good(print::rows(&nights, &schedule::next::HEADINGS, args.printing.format)?))
        }
        ScheduleVerb::Install(args) => schedule::install::install(&args, Utc::now()),
        ScheduleVerb::Check(args) => schedule::check::check(&args, Utc::now()),
        ScheduleVerb::Night(args) => schedule::night::night(&args).await,
        ScheduleVerb::Run(args) => schedule::keeper::run(&args).await,
        ScheduleVerb::Status(args) => schedule::status::status(&args, Utc::now()),
    }
}

fn good(data: impl Into<Data>) -> Said {
    Said { data: data.into(), talk: None, exit: Exit::Good }
}

/// What `collect` says.
///
/// # Errors
/// When there is no outcome.
pub(crate) async fn collect(args: &Collect) -> Result<Said, Failed> {
    let night = run::collect(args).await?;
    let output = args.dataset.output.as_path();
    let mut data = print::table(&provider_rows(&night.record.providers)?, &PROVIDER_HEADINGS)?;
    for provider in night.record.providers.iter().filter(|provider| provider.reason.is_some()) {
        let reason = print::harmless(provider.reason.as_deref().unwrap_or_default());
        let more = match provider.scopes - provider.scopes_complete {
            0 | 1 => String::new(),
            missing => format!(" ({missing} scopes missing)"),
        };
        let _ = writeln!(data, "{}: {}{more}", provider.provider, reason);
    }
    for finding in night.findings.iter().filter(|finding| finding.rule == NO_RATES_AT_ALL) {
        let _ = writeln!(data, "{}: {}", finding.provider, finding.reason);
    }
    let _ = writeln!(data, "\n{}", conclusion(&night, output, args.recorded));
    if night.exit != Exit::Refused {
        data.push_str(&best_offers(output, night.snapshot).await?);
    }
    Ok(Said { data: data.into(), talk: None, exit: night.exit })
}

async fn backfill(args: &Backfill) -> Result<Said, Failed> {
    let told = |snapshot: SnapshotId, ended: Result<&Night, &str>| match ended {
        Ok(night) => {
            let (offers, findings, outcome) = (night.record.offers, night.findings.len(), night.record.outcome);
            let fields =
                json!({ "snapshot_id": snapshot.to_string(), "outcome": outcome, "offers": offers, "findings": findings });
            let plain = format!("{snapshot}  {outcome:17}  {offers} offers, {findings} findings");
            log::say(log::Level::Info, "backfilled", &plain, &fields);
        }
        Err(reason) => {
            let reason = print::harmless(reason);
            let fields = json!({ "snapshot_id": snapshot.to_string(), "outcome": "not_published", "reason": reason });
            log::say(log::Level::Warn, "backfilled", &format!("{snapshot}  {:17}  {reason}", "not published"), &fields);
        }
    };
    let filled = backfill::backfill(args, &told).await.map_err(|error| match error {
        BackfillError::Run(error) => error.into(),
        BackfillError::NotAsked { .. } => Failed::new(Exit::Usage, "", &error),
        BackfillError::NoIndex { .. } | BackfillError::NoRates { .. } => Failed::new(Exit::Refused, "", &error),
    })?;
    let published = filled.nights.iter().filter(|night| night.exit != Exit::Refused).count();
    let data = format!(
        "{}: {} nights since {}: {} were there before and keep the scopes they have, {} are since the first live night and were \
         left alone, {published} published now, {} refused, {} could not be had whole and are asked for again next time\n",
        args.provider,
        filled.named,
        args.since,
        filled.there_before,
        filled.since_live,
        filled.nights.len() - published,
        filled.not_had.len()
    );
    let is_whole = filled.not_had.is_empty() && filled.nights.iter().all(|night| night.exit == Exit::Good);
    let exit = match (published, is_whole) {
        (0, true) => Exit::NothingDue,
        (0, false) => Exit::Refused,
        (_, true) => Exit::Good,
        (_, false) => Exit::Partial,
    };
    Ok(Said { data: data.into(), talk: None, exit })
}

const PROVIDER_HEADINGS: [Heading; 10] = [
    heading("provider", "provider"),
    heading("status", "status"),
    heading("input", "input"),
    heading("scopes", "scopes"),
    heading("rows", "offers or rates"),
    heading("skipped", "skipped"),
    heading("quarantined", "held back"),
    heading("requests", "requests"),
    heading("bytes", "bytes"),
    heading("seconds", "seconds"),
];

fn provider_rows(providers: &[ProviderRecord]) -> PolarsResult<DataFrame> {
    let count = |number: usize| i64::try_from(number).ok();
    let mut columns = Columns::new(providers.len());
    columns.texts("provider", providers.iter().map(|record| Some(record.provider.as_str())));
    columns.texts("status", providers.iter().map(|record| Some(record.status)));
    columns.texts("input", providers.iter().map(|record| Some(record.input)));
    columns.strings("scopes", providers.iter().map(|record| Some(format!("{}/{}", record.scopes_complete, record.scopes))));
    columns.longs("rows", providers.iter().map(|record| count(record.rows)));
    columns.longs("skipped", providers.iter().map(|record| count(record.skipped)));
    columns.longs("quarantined", providers.iter().map(|record| count(record.quarantined)));
    columns.strings("requests", providers.iter().map(|record| requests(record.network)));
    columns.longs("bytes", providers.iter().map(|record| i64::try_from(record.bytes).ok()));
    columns.floats("seconds", providers.iter().map(|record| Some(record.seconds)));
    columns.finish()
}

/// Requests, and how many of them were tries again; nothing where nothing was fetched.
fn requests(network: Traffic) -> Option<String> {
    match network {
        Traffic { requests: 0, .. } => None,
        Traffic { requests, retries: 0, .. } => Some(requests.to_string()),
        Traffic { requests, retries, .. } => Some(format!("{requests}, {retries} again")),
    }
}

fn conclusion(night: &Night, output: &Path, is_recorded: bool) -> String {
    let mut text = match night.record.outcome {
        "refused" => {
            let why = night
                .findings
                .iter()
                .find(|finding| finding.rule == "nothing_complete")
                .map_or("", |finding| finding.reason.as_str());
            format!("Nothing was published: {}. What was there stays as it was.", print::harmless(why))
        }
        "already_published" => {
            format!("Snapshot {} is published already, with the same rows: nothing was changed.", night.snapshot)
        }
        _ => format!("Published snapshot {}: {} offers, in {}.", night.snapshot, night.record.offers, remote::shown(output)),
    };
    if is_recorded {
        let of = |input: Input| {
            let names: Vec<_> = night
                .record
                .providers
                .iter()
                .filter(|record| record.input == input.word())
                .map(|record| record.provider.as_str())
                .collect();
            if names.is_empty() { "none".to_owned() } else { names.join(", ") }
        };
        let _ = write!(
            text,
            "\nNo network was used. Recorded from the source: {}. Typed by hand from documented answers: {}.\nThese are the prices of the recordings' dates, not of today.",
            of(Input::Recorded),
            of(Input::Typed)
        );
        let is_made_up = |record: &&ProviderRecord| {
            recordings::newest(&record.provider).is_some_and(|recording| recording.receipt.has_made_up_prices)
        };
        let made_up: Vec<_> = night.record.providers.iter().filter(is_made_up).map(|record| record.provider.as_str()).collect();
        if !made_up.is_empty() {
            let _ = write!(
                text,
                "\nSome prices among them are made up to show the shape, because nobody has a real one; the receipt says which: {}.",
                made_up.join(", ")
            );
        }
    }
    let held = night.findings.iter().filter(|finding| finding.severity == crate::validate::Severity::QuarantineRow).count();
    if held > 0 {
        let _ = write!(
            text,
            "\n{held} rows were not published; `gpuledger findings {}` lists them with their reasons.",
            night.snapshot
        );
    }
    text
}

/// The GPUs that most people ask for first.
const ASKED_FIRST: [&str; 3] = ["h100", "a100", "l40s"];

async fn best_offers(output: &Path, snapshot: SnapshotId) -> Result<String, Failed> {
    let snapshots = read::snapshots(output).await?;
    let snapshot = read::choose(&snapshots, &snapshot.to_string())?;
    let (rows, mut found) = (read::offers(snapshot)?, Vec::new());
    for gpu in ASKED_FIRST {
        found.push(cheapest::on_demand(output, &rows, gpu).await?.lazy());
    }
    let rows = concat(found, UnionArgs::default())?.collect()?;
    const CHEAPEST: [Heading; 9] = [
        heading("gpu_model", "cheapest on demand"),
        heading("provider", "provider"),
        heading("instance_type", "machine"),
        heading("gpu_count", "GPUs"),
        heading("region", "region"),
        heading("lowest_usd_per_gpu_hour", "USD/GPU-hour"),
        heading("published_amount", "published"),
        heading("published_currency_code", "currency"),
        heading("observed_at", "seen"),
    ];
    Ok(format!("\n{}", print::table(&rows, &CHEAPEST)?))
}

async fn snapshots(args: &Listing) -> Result<Said, Failed> {
    let output = args.dataset.output.as_path();
    let snapshots = read::snapshots(output).await?;
    let coverage = read::coverage(output, &snapshots).await?;
    let names = Names::of(&coverage)?;
    let mut columns = Columns::new(snapshots.len());
    let count = |number: usize| i64::try_from(number).ok();
    columns.longs("version", snapshots.iter().map(|snapshot| count(snapshot.version)));
    columns.strings("snapshot_id", snapshots.iter().map(|snapshot| Some(snapshot.id.to_string())));
    columns.strings("corrects", snapshots.iter().map(|snapshot| snapshot.id.corrects().map(|corrected| corrected.to_string())));
    columns.truths("is_import", snapshots.iter().map(|snapshot| Some(snapshot.is_import())));
    columns.longs("offers", snapshots.iter().map(|snapshot| snapshot.rows().and_then(count)));
    for (column, status) in [("providers_complete", "complete"), ("scopes_failed", "failed"), ("scopes_skipped", "skipped")] {
        columns.strings(column, snapshots.iter().map(|snapshot| names.list(&snapshot.id.to_string(), status)));
    }
    const HEADINGS: [Heading; 8] = [
        heading("version", "version"),
        heading("snapshot_id", "snapshot"),
        heading("corrects", "corrects"),
        heading("is_import", "imported"),
        heading("offers", "offers"),
        heading("providers_complete", "providers"),
        heading("scopes_failed", "failed"),
        heading("scopes_skipped", "skipped"),
    ];
    Ok(good(print::rows(&columns.finish()?, &HEADINGS, args.printing.format)?))
}

/// What stands in the coverage of each night, by status.
struct Names<'a>(HashMap<(&'a str, &'a str), BTreeSet<(&'a str, &'a str)>>);

impl<'a> Names<'a> {
    fn of(coverage: &'a DataFrame) -> PolarsResult<Self> {
        let text = |name: &str| Ok::<_, PolarsError>(coverage.column(name)?.str()?.iter());
        let mut names: HashMap<(&str, &str), BTreeSet<(&str, &str)>> = HashMap::new();
        let rows = text("snapshot_id")?.zip(text("status")?).zip(text("provider")?.zip(text("scope")?));
        for ((id, status), (provider, scope)) in rows {
            if let (Some(id), Some(status), Some(provider), Some(scope)) = (id, status, provider, scope) {
                names.entry((id, status)).or_default().insert((provider, scope));
            }
        }
        Ok(Self(names))
    }

    /// Providers with a scope of a status; with the scopes' names where they are not all of the provider. `None` for none.
    fn list(&self, snapshot: &str, status: &str) -> Option<String> {
        let name = |(provider, scope): &(&str, &str)| {
            if status == "complete" || *scope == "all" { (*provider).to_owned() } else { format!("{provider}/{scope}") }
        };
        let mut names: Vec<String> = self.0.get(&(snapshot, status))?.iter().map(name).collect();
        names.dedup();
        Some(names.join(", "))
    }
}
