//! `gpuledger runs`: what happened on a night, published or refused, told from the records in `runs/`.
//!
//! In: `runs/<id>.json` and `runs/<id>.alerts.json`. Out: rows, a run or a provider of a run each. Reads no table and judges
//! nothing; what an earlier program did not record yet is empty.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use chrono::{DateTime, NaiveDate, Utc};
use polars::prelude::*;
use serde::Deserialize;

use crate::alerts::Delivered;
use crate::archive::{ArchiveError, read_json};
use crate::cli::Runs;
use crate::exit::Exit;
use crate::frame::Columns;
use crate::night::SnapshotId;
use crate::print::{self, Data, Format, Heading, harmless, heading};
use crate::record::RUNS;
use crate::report::{Failed, Said};

/// The record of a run, as it stands in the dataset.
#[derive(Debug, Clone, Deserialize)]
pub struct KeptRun {
    /// The snapshot it made, or would have made.
    pub snapshot_id: String,
    /// published, already_published or refused.
    pub outcome: String,
    /// When the run started.
    pub started_at: DateTime<Utc>,
    /// When it ended.
    pub ended_at: DateTime<Utc>,
    /// Version of the program.
    pub program_version: String,
    /// Version of the tables.
    pub schema_version: u32,
    /// Offers published.
    pub offers: usize,
    /// Exchange rates that were read.
    #[serde(default)]
    pub rates: usize,
    /// Each provider.
    pub providers: Vec<KeptProvider>,
    /// Findings by severity and rule.
    #[serde(default)]
    pub findings: Vec<KeptFindings>,
}

/// One provider of a run.
#[derive(Debug, Clone, Deserialize)]
pub struct KeptProvider {
    /// Short name.
    pub provider: String,
    /// complete, partial, failed or skipped.
    pub status: String,
    /// live, recorded, typed, files or history.
    pub input: String,
    /// Version of the parser.
    pub scraper_version: u32,
    /// Offers or rates published.
    pub rows: usize,
    /// Rows not understood.
    pub skipped: usize,
    /// Rows understood and held back.
    pub quarantined: usize,
    /// Size of the pages.
    pub bytes: u64,
    /// Time spent.
    pub seconds: f64,
    /// What it was asked for over the network.
    #[serde(default)]
    pub network: KeptTraffic,
    /// Scopes in the snapshot.
    pub scopes_complete: usize,
    /// All scopes.
    pub scopes: usize,
    /// The first reason of what is missing.
    pub reason: Option<String>,
}

/// What a provider was asked for over the network.
#[derive(Debug, Clone, Copy, Default, Deserialize)]
pub struct KeptTraffic {
    /// Requests sent.
    #[serde(default)]
    pub requests: u64,
    /// Of these, tries again.
    #[serde(default)]
    pub retries: u64,
    /// Bytes that arrived.
    #[serde(default)]
    pub bytes: u64,
}

/// How often a rule found something.
#[derive(Debug, Clone, Deserialize)]
pub struct KeptFindings {
    /// What it does.
    pub severity: String,
    /// The rule.
    pub rule: String,
    /// How often.
    pub count: usize,
}

/// Why runs cannot be told.
#[derive(Debug, thiserror::Error)]
pub enum RunsError {
    /// There is none of that day or name.
    #[error("find a run of `{wanted}`; {known}")]
    NoSuchRun {
        /// What was asked for.
        wanted: String,
        /// What there is.
        known: String,
    },
    /// A record does not read.
    #[error("read the record of a run")]
    Unreadable(#[from] ArchiveError),
}

impl From<RunsError> for Failed {
    fn from(error: RunsError) -> Self {
        match error {
            RunsError::NoSuchRun { .. } => Self::new(Exit::Usage, "", &error)
                .with_help("a run is named by its day, its id, `latest` or `previous`; a night on which nothing ran has none"),
            RunsError::Unreadable(_) => {
                Self::new(Exit::Refused, "", &error).with_help("`gpuledger doctor` says what is wrong with the dataset")
            }
        }
    }
}

/// The nights that left a record, oldest first, whether they were published or refused.
#[must_use]
pub fn ids(output: &Path) -> Vec<SnapshotId> {
    ids_with(output, "json")
}

/// The nights that left something with this ending, oldest first.
#[must_use]
pub fn ids_with(output: &Path, ending: &str) -> Vec<SnapshotId> {
    let Ok(entries) = std::fs::read_dir(output.join(RUNS)) else { return Vec::new() };
    let id = |entry: std::io::Result<std::fs::DirEntry>| {
        entry.ok()?.file_name().to_str()?.strip_suffix(ending)?.strip_suffix('.')?.parse().ok()
    };
    let mut ids: Vec<SnapshotId> = entries.filter_map(id).collect();
    ids.sort_unstable();
    ids
}

/// The record of a night; `None` when there is none.
///
/// # Errors
/// When it is there and does not read.
pub fn read(output: &Path, night: SnapshotId) -> Result<Option<KeptRun>, ArchiveError> {
    read_json(&path(output, night, "json"))
}

/// Where something that belongs to a run stands.
#[must_use]
pub fn path(output: &Path, night: SnapshotId, ending: &str) -> PathBuf {
    output.join(RUNS).join(format!("{night}.{ending}"))
}

/// Tells what happened.
///
/// # Errors
/// When there is no such run, or a record does not read.
pub fn runs(args: &Runs) -> Result<Said, Failed> {
    let output = args.dataset.output.as_path();
    let all = ids(output);
    let format = args.printing.format;
    let Some(wanted) = &args.night else {
        let mut runs = Vec::with_capacity(all.len());
        for id in all {
            runs.extend(read(output, id).map_err(RunsError::from)?);
        }
        return Ok(said(print::rows(&runs_frame(&runs)?, &RUN_HEADINGS, format)?));
    };
    let runs = chosen(output, &all, wanted)?;
    if format != Format::Table {
        return Ok(said(print::rows(&providers_frame(&runs)?, &[], format)?));
    }
    let mut text = String::new();
    for run in &runs {
        text.push_str(&told(output, run)?);
    }
    Ok(said(text))
}

fn said(data: impl Into<Data>) -> Said {
    Said { data: data.into(), talk: None, exit: Exit::Good }
}

/// The runs of a day, by the night or by the clock, or the one of a name.
fn chosen(output: &Path, all: &[SnapshotId], wanted: &str) -> Result<Vec<KeptRun>, RunsError> {
    let mut runs = Vec::new();
    match (wanted, wanted.parse::<SnapshotId>(), wanted.parse::<NaiveDate>()) {
        ("latest", ..) => runs.extend(all.last().map(|id| read(output, *id)).transpose()?.flatten()),
        ("previous", ..) => runs.extend(all.iter().nth_back(1).map(|id| read(output, *id)).transpose()?.flatten()),
        (_, Ok(id), _) => runs.extend(read(output, id)?),
        (_, _, Ok(day)) => {
            // A night of a back-dated time is also found on the day on which it ran, which only its record knows.
            for id in all {
                let is_of_day = |run: &KeptRun| id.date() == day || run.started_at.date_naive() == day;
                runs.extend(read(output, *id)?.filter(is_of_day));
            }
        }
        _ => {}
    }
    if runs.is_empty() {
        let known = match (all.first(), all.last()) {
            (Some(first), Some(last)) => format!("there are {} runs, from {first} to {last}", all.len()),
            _ => format!("there is none below {}", output.join(RUNS).display()),
        };
        return Err(RunsError::NoSuchRun { wanted: wanted.to_owned(), known });
    }
    Ok(runs)
}

const RUN_HEADINGS: [Heading; 11] = [
    heading("snapshot_id", "night"),
    heading("outcome", "outcome"),
    heading("started_at", "started"),
    heading("seconds", "seconds"),
    heading("offers", "offers"),
    heading("providers_complete", "complete"),
    heading("providers", "providers"),
    heading("requests", "requests"),
    heading("retries", "again"),
    heading("bytes", "bytes"),
    heading("findings", "findings"),
];

fn count(number: usize) -> Option<i64> {
    i64::try_from(number).ok()
}

fn sum(run: &KeptRun, of: impl Fn(&KeptProvider) -> u64) -> Option<i64> {
    i64::try_from(run.providers.iter().map(of).sum::<u64>()).ok()
}

fn runs_frame(runs: &[KeptRun]) -> PolarsResult<DataFrame> {
    let mut columns = Columns::new(runs.len());
    columns.texts("snapshot_id", runs.iter().map(|run| Some(run.snapshot_id.as_str())));
    columns.texts("outcome", runs.iter().map(|run| Some(run.outcome.as_str())));
    columns.instants("started_at", runs.iter().map(|run| Some(run.started_at)));
    columns.instants("ended_at", runs.iter().map(|run| Some(run.ended_at)));
    columns.floats("seconds", runs.iter().map(|run| Some((run.ended_at - run.started_at).as_seconds_f64())));
    columns.longs("offers", runs.iter().map(|run| count(run.offers)));
    let complete = |run: &KeptRun| count(run.providers.iter().filter(|provider| provider.status == "complete").count());
    columns.longs("providers_complete", runs.iter().map(complete));
    columns.longs("providers", runs.iter().map(|run| count(run.providers.len())));
    columns.longs("requests", runs.iter().map(|run| sum(run, |provider| provider.network.requests)));
    columns.longs("retries", runs.iter().map(|run| sum(run, |provider| provider.network.retries)));
    columns.longs("bytes", runs.iter().map(|run| sum(run, |provider| provider.bytes)));
    columns.longs("findings", runs.iter().map(|run| count(run.findings.iter().map(|found| found.count).sum())));
    columns.texts("program_version", runs.iter().map(|run| Some(run.program_version.as_str())));
    columns.longs("schema_version", runs.iter().map(|run| Some(i64::from(run.schema_version))));
    columns.finish()
}

const PROVIDER_HEADINGS: [Heading; 11] = [
    heading("provider", "provider"),
    heading("status", "status"),
    heading("scraper_version", "parser"),
    heading("scopes", "scopes"),
    heading("rows", "offers or rates"),
    heading("skipped", "skipped"),
    heading("held_back", "held back"),
    heading("requests", "requests"),
    heading("retries", "again"),
    heading("bytes", "bytes"),
    heading("seconds", "seconds"),
];

/// A row a provider and run, with what is known of the run in each.
fn providers_frame(runs: &[KeptRun]) -> PolarsResult<DataFrame> {
    let all: Vec<(&KeptRun, &KeptProvider)> =
        runs.iter().flat_map(|run| run.providers.iter().map(move |provider| (run, provider))).collect();
    let mut columns = Columns::new(all.len());
    let long = |number: u64| i64::try_from(number).ok();
    columns.texts("snapshot_id", all.iter().map(|(run, _)| Some(run.snapshot_id.as_str())));
    columns.texts("outcome", all.iter().map(|(run, _)| Some(run.outcome.as_str())));
    columns.instants("started_at", all.iter().map(|(run, _)| Some(run.started_at)));
    columns.instants("ended_at", all.iter().map(|(run, _)| Some(run.ended_at)));
    columns.texts("program_version", all.iter().map(|(run, _)| Some(run.program_version.as_str())));
    columns.longs("schema_version", all.iter().map(|(run, _)| Some(i64::from(run.schema_version))));
    columns.texts("provider", all.iter().map(|(_, provider)| Some(provider.provider.as_str())));
    columns.texts("status", all.iter().map(|(_, provider)| Some(provider.status.as_str())));
    columns.texts("input", all.iter().map(|(_, provider)| Some(provider.input.as_str())));
    columns.longs("scraper_version", all.iter().map(|(_, provider)| Some(i64::from(provider.scraper_version))));
    let scopes = |provider: &KeptProvider| format!("{}/{}", provider.scopes_complete, provider.scopes);
    columns.strings("scopes", all.iter().map(|(_, provider)| Some(scopes(provider))));
    columns.longs("rows", all.iter().map(|(_, provider)| count(provider.rows)));
    columns.longs("skipped", all.iter().map(|(_, provider)| count(provider.skipped)));
    columns.longs("held_back", all.iter().map(|(_, provider)| count(provider.quarantined)));
    columns.longs("requests", all.iter().map(|(_, provider)| long(provider.network.requests)));
    columns.longs("retries", all.iter().map(|(_, provider)| long(provider.network.retries)));
    columns.longs("network_bytes", all.iter().map(|(_, provider)| long(provider.network.bytes)));
    columns.longs("bytes", all.iter().map(|(_, provider)| long(provider.bytes)));
    columns.floats("seconds", all.iter().map(|(_, provider)| Some(provider.seconds)));
    columns.texts("reason", all.iter().map(|(_, provider)| provider.reason.as_deref()));
    let findings = |run: &KeptRun| run.findings.iter().map(|found| format!("{} {}", found.count, found.rule)).collect::<Vec<_>>();
    columns.strings("run_findings", all.iter().map(|(run, _)| Some(findings(run).join(", "))));
    columns.finish()
}

/// One run in words and a table.
fn told(output: &Path, run: &KeptRun) -> Result<String, Failed> {
    let seconds = (run.ended_at - run.started_at).as_seconds_f64();
    let mut text = format!(
        "night {}: {}, {} offers, {} rates\nran from {} to {}, {seconds:.1} s, with gpuledger {} and schema {}\n",
        run.snapshot_id,
        run.outcome,
        run.offers,
        run.rates,
        run.started_at.format("%Y-%m-%dT%H:%M:%SZ"),
        run.ended_at.format("%Y-%m-%dT%H:%M:%SZ"),
        run.program_version,
        run.schema_version
    );
    text.push_str(&print::table(&providers_frame(std::slice::from_ref(run))?, &PROVIDER_HEADINGS)?);
    for provider in &run.providers {
        if let Some(reason) = &provider.reason {
            let _ = writeln!(text, "{}: {}", provider.provider, harmless(reason));
        }
    }
    for found in &run.findings {
        let _ = writeln!(text, "found: {} × {} ({})", found.count, harmless(&found.rule), found.severity);
    }
    let night: Option<SnapshotId> = run.snapshot_id.parse().ok();
    let alerts: Option<Vec<Delivered>> = night
        .and_then(|night| read_json(&path(output, night, "alerts.json")).transpose())
        .transpose()
        .map_err(RunsError::from)?;
    for alert in alerts.iter().flatten() {
        let _ = writeln!(text, "{}", harmless(&alert.told()));
    }
    text.push('\n');
    Ok(text)
}
