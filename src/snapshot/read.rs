//! Reads published snapshots: which there are, their rows, what they cover, the rates.

use std::path::Path;

use chrono::NaiveDate;
use polars::prelude::*;

use crate::frame;
use crate::night::SnapshotId;
use crate::offer::{COVERAGE, OFFERS, RATES, Table};
use crate::snapshot::SnapshotError;
use crate::snapshot::log::{Log, LoggedFile};

/// A published snapshot.
#[derive(Debug, Clone)]
pub struct Snapshot {
    /// Its id.
    pub id: SnapshotId,
    /// Its number, counted from 1 in the order of publishing: a night published later for an earlier time changes no number.
    pub version: usize,
    /// Its offers' file.
    file: LoggedFile,
}

impl Snapshot {
    /// Offers in it, as the log says; `None` when it does not.
    #[must_use]
    pub const fn rows(&self) -> Option<usize> {
        self.file.rows
    }
}

/// Every published snapshot, oldest first.
///
/// # Errors
/// When the log cannot be read.
pub async fn snapshots(output: &Path) -> Result<Vec<Snapshot>, SnapshotError> {
    let Some(log) = Log::open(output, &OFFERS).await? else { return Ok(Vec::new()) };
    let mut files: Vec<(SnapshotId, LoggedFile)> =
        log.files()?.into_iter().filter_map(|file| Some((file.snapshot?, file))).collect();
    files.sort_by_key(|(id, file)| (file.committed_at_ms, *id));
    let mut snapshots: Vec<Snapshot> =
        files.into_iter().enumerate().map(|(index, (id, file))| Snapshot { id, version: index + 1, file }).collect();
    snapshots.sort_by_key(|snapshot| snapshot.id);
    Ok(snapshots)
}

/// The snapshot a person means: an id, a version, a date (its last), `latest` or `previous`.
///
/// # Errors
/// When there is none.
pub fn choose<'a>(snapshots: &'a [Snapshot], wanted: &str) -> Result<&'a Snapshot, SnapshotError> {
    let found = match wanted {
        "latest" => snapshots.last(),
        "previous" => snapshots.len().checked_sub(2).and_then(|index| snapshots.get(index)),
        _ => {
            if let Ok(id) = wanted.parse::<SnapshotId>() {
                snapshots.iter().find(|snapshot| snapshot.id == id)
            } else if let Ok(date) = wanted.parse::<NaiveDate>() {
                snapshots.iter().rfind(|snapshot| snapshot.id.date() == date)
            } else if let Ok(version) = wanted.parse::<usize>() {
                snapshots.iter().find(|snapshot| snapshot.version == version)
            } else {
                None
            }
        }
    };
    found.ok_or_else(|| SnapshotError::NotFound { wanted: wanted.to_owned(), help: what_there_is(snapshots) })
}

fn what_there_is(snapshots: &[Snapshot]) -> String {
    match (snapshots.first(), snapshots.last()) {
        (Some(first), Some(last)) if snapshots.len() > 1 => {
            format!("there are {} snapshots, from {} to {} (versions 1 to {})", snapshots.len(), first.id, last.id, last.version)
        }
        (Some(only), _) => format!("there is one snapshot, {} (version 1)", only.id),
        _ => "nothing has been published yet; `gpuledger collect` publishes the first snapshot".to_owned(),
    }
}

/// Rows of one snapshot, to be filtered before they are read.
///
/// # Errors
/// When the file cannot be opened.
pub fn offers(snapshot: &Snapshot) -> Result<LazyFrame, SnapshotError> {
    scan(std::slice::from_ref(&snapshot.file))
}

/// What every night covers: all rows of the `coverage` table of published snapshots.
///
/// # Errors
/// When the table cannot be read.
pub async fn coverage(output: &Path, snapshots: &[Snapshot]) -> Result<DataFrame, SnapshotError> {
    let wanted = |file: &LoggedFile| snapshots.iter().any(|snapshot| Some(snapshot.id) == file.snapshot);
    rows(output, &COVERAGE, wanted).await
}

/// Exchange rates of the days from `first` to `last`.
///
/// # Errors
/// When the table cannot be read.
pub async fn rates(output: &Path, first: NaiveDate, last: NaiveDate) -> Result<DataFrame, SnapshotError> {
    let rows = rows(output, &RATES, |_| true).await?;
    let between = col("rate_date").gt_eq(lit(first)).and(col("rate_date").lt_eq(lit(last)));
    rows.lazy().filter(between).collect().map_err(|source| parquet_error(output, source))
}

async fn rows(output: &Path, table: &'static Table, is_wanted: impl Fn(&LoggedFile) -> bool) -> Result<DataFrame, SnapshotError> {
    let Some(log) = Log::open(output, table).await? else { return Ok(frame::empty(table)) };
    let files: Vec<LoggedFile> = log.files()?.into_iter().filter(|file| is_wanted(file)).collect();
    if files.is_empty() {
        return Ok(frame::empty(table));
    }
    scan(&files)?.collect().map_err(|source| parquet_error(output, source))
}

fn scan(files: &[LoggedFile]) -> Result<LazyFrame, SnapshotError> {
    let paths: Vec<PlRefPath> = files.iter().map(|file| PlRefPath::new(file.file.to_string_lossy())).collect();
    let options = ScanArgsParquet { glob: false, hive_options: HiveOptions::new_disabled(), ..ScanArgsParquet::default() };
    let first = files.first().map_or_else(|| Path::new("").to_owned(), |file| file.file.clone());
    LazyFrame::scan_parquet_files(paths.into(), options).map_err(|source| SnapshotError::Parquet { path: first, source })
}

fn parquet_error(output: &Path, source: PolarsError) -> SnapshotError {
    SnapshotError::Parquet { path: output.to_owned(), source }
}
