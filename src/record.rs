//! What a run leaves beside the tables: `runs/<snapshot_id>.json` for people and `runs/<snapshot_id>.findings.parquet`.
//!
//! Written for every night, also a refused one, so that "what happened on the 14th" has an answer.

use std::collections::BTreeMap;
use std::path::Path;

use chrono::{DateTime, Utc};
use polars::prelude::*;
use serde::{Deserialize, Serialize};

use crate::archive::{ArchiveError, Sidecar, drafts, write_new, write_whole};
use crate::fetch::Traffic;
use crate::frame::Columns;
use crate::night::SnapshotId;
use crate::offer::FINDINGS;
use crate::snapshot::publish::parquet_bytes;
use crate::validate::{Finding, ScopeCoverage, Severity};

/// Folder of the records, below the dataset.
pub const RUNS: &str = "runs";

/// One run.
#[derive(Debug, Serialize)]
pub struct RunRecord {
    /// The snapshot it made, or would have made.
    pub snapshot_id: String,
    /// The snapshot that it corrects; absent for a night as it was published first.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub corrects: Option<String>,
    /// The schedule that the night was due by; absent for a night that somebody started by hand.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub scheduled: Option<Scheduled>,
    /// published, already_published or refused.
    pub outcome: &'static str,
    /// When the run started; differs from the snapshot's time for back-dated input.
    pub started_at: DateTime<Utc>,
    /// When it ended.
    pub ended_at: DateTime<Utc>,
    /// Version of the program.
    pub program_version: &'static str,
    /// Version of the tables.
    pub schema_version: u32,
    /// Offers published.
    pub offers: usize,
    /// Exchange rates that were read.
    pub rates: usize,
    /// Each provider.
    pub providers: Vec<ProviderRecord>,
    /// Findings by severity and rule.
    pub findings: Vec<FindingCount>,
}

/// Which due night a run was.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Scheduled {
    /// Name of the schedule.
    pub name: String,
    /// When the night was due.
    pub due_at: DateTime<Utc>,
    /// Whether it started later than a due night may: it had been missed.
    pub is_late: bool,
}

/// One provider of a run.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ProviderRecord {
    /// Short name.
    pub provider: String,
    /// complete, partial, failed or skipped.
    pub status: &'static str,
    /// live, recorded, typed, files, history or import.
    pub input: &'static str,
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
    /// Requests, tries again and bytes of the network; all 0 where nothing was fetched.
    pub network: Traffic,
    /// Scopes in the snapshot, of all.
    pub scopes_complete: usize,
    /// All scopes.
    pub scopes: usize,
    /// The first reason of what is missing.
    pub reason: Option<String>,
}

/// How often a rule found something.
#[derive(Debug, Serialize)]
pub struct FindingCount {
    /// What it does.
    pub severity: &'static str,
    /// The rule.
    pub rule: String,
    /// How often.
    pub count: usize,
}

/// Sums scopes up to providers. `network` says what each was asked for.
#[must_use]
pub fn providers(coverage: &[ScopeCoverage], network: &BTreeMap<String, Traffic>) -> Vec<ProviderRecord> {
    let mut records: Vec<ProviderRecord> = Vec::new();
    for scope in coverage {
        if records.last().is_none_or(|record| record.provider != scope.provider) {
            records.push(ProviderRecord {
                provider: scope.provider.clone(),
                status: "",
                input: scope.input,
                scraper_version: scope.scraper_version,
                rows: 0,
                skipped: 0,
                quarantined: 0,
                bytes: 0,
                seconds: 0.0,
                network: network.get(&scope.provider).copied().unwrap_or_default(),
                scopes_complete: 0,
                scopes: 0,
                reason: None,
            });
        }
        let record = records.last_mut().expect("one was just added");
        record.rows += scope.rows;
        record.skipped += scope.skipped;
        record.quarantined += scope.quarantined;
        record.bytes += scope.bytes;
        record.seconds += scope.seconds;
        record.scopes += 1;
        record.scopes_complete += usize::from(scope.status.word() == "complete");
        if record.reason.is_none() {
            record.reason = scope
                .reason
                .as_ref()
                .map(|reason| if scope.scope == "all" { reason.clone() } else { format!("{}: {reason}", scope.scope) });
        }
        record.status = match (record.scopes_complete, record.scopes) {
            (complete, all) if complete == all => "complete",
            (0, _) if scope.status.word() == "skipped" => "skipped",
            (0, _) => "failed",
            _ => "partial",
        };
    }
    records
}

/// Counts findings by severity and rule, the gravest first.
#[must_use]
pub fn count(findings: &[Finding]) -> Vec<FindingCount> {
    let mut counts: BTreeMap<(std::cmp::Reverse<Severity>, &str), usize> = BTreeMap::new();
    for finding in findings {
        *counts.entry((std::cmp::Reverse(finding.severity), finding.rule.as_str())).or_insert(0) += 1;
    }
    counts
        .into_iter()
        .map(|((severity, rule), count)| FindingCount { severity: severity.0.word(), rule: rule.to_owned(), count })
        .collect()
}

/// Writes the record of a night.
///
/// # Errors
/// When the disk refuses.
pub fn keep(output: &Path, record: &RunRecord) -> Result<(), ArchiveError> {
    let Sidecar { path, text } = sidecar(record);
    write_whole(&drafts(output), &output.join(path), text.as_bytes())
}

/// The same, unless there is one.
///
/// # Errors
/// When the disk refuses.
pub fn keep_if_new(output: &Path, record: &RunRecord) -> Result<(), ArchiveError> {
    let Sidecar { path, text } = sidecar(record);
    match write_new(&drafts(output), &output.join(path), text.as_bytes()) {
        Err(ArchiveError::Io { source, .. }) if source.kind() == std::io::ErrorKind::AlreadyExists => Ok(()),
        written => written,
    }
}

/// The record of a night as it stands in the dataset.
#[must_use]
pub fn sidecar(record: &RunRecord) -> Sidecar {
    let text = serde_json::to_string_pretty(record).expect("a run record is plain data");
    Sidecar { path: format!("{RUNS}/{}.json", record.snapshot_id), text }
}

/// Writes the findings of a night.
///
/// # Errors
/// When the disk refuses.
pub fn keep_findings(output: &Path, snapshot: SnapshotId, findings: &[Finding]) -> Result<(), ArchiveError> {
    let table = findings_bytes(snapshot, findings).expect("findings are a table of texts");
    write_whole(&drafts(output), &output.join(RUNS).join(format!("{snapshot}.findings.parquet")), &table)
}

/// Whether a night's record is there. It is written last, so a run that died may have left none.
#[must_use]
pub fn is_kept(output: &Path, snapshot: SnapshotId) -> bool {
    output.join(RUNS).join(format!("{snapshot}.json")).exists()
}

fn findings_bytes(snapshot: SnapshotId, findings: &[Finding]) -> PolarsResult<Vec<u8>> {
    let id = snapshot.to_string();
    let mut columns = Columns::new(findings.len());
    columns.texts("snapshot_id", findings.iter().map(|_| Some(id.as_str())));
    columns.texts("severity", findings.iter().map(|finding| Some(finding.severity.word())));
    columns.texts("rule", findings.iter().map(|finding| Some(finding.rule.as_str())));
    columns.texts("provider", findings.iter().map(|finding| Some(finding.provider.as_str())));
    columns.texts("scope", findings.iter().map(|finding| Some(finding.scope.as_str())));
    columns.texts("label", findings.iter().map(|finding| Some(finding.label.as_str())));
    columns.texts("raw_sha256", findings.iter().map(|finding| Some(finding.raw_sha256.as_str())));
    columns.texts("raw_place", findings.iter().map(|finding| Some(finding.raw_place.as_str())));
    columns.texts("reason", findings.iter().map(|finding| Some(finding.reason.as_str())));
    parquet_bytes(&FINDINGS, &columns.finish()?)
}
