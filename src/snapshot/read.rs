//! Reads published snapshots: which there are, their rows, what they cover, the rates.
//!
//! A night that was corrected is there more than once. Who asks for a night by its date or its turn gets the newest of
//! them; an id or a version names exactly one.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;

use chrono::NaiveDate;
use polars::prelude::*;

use crate::frame;
use crate::night::SnapshotId;
use crate::offer::{COVERAGE, OFFERS, RATES};
use crate::remote;
use crate::snapshot::log::{Log, LoggedFile};
use crate::snapshot::{SnapshotError, schema};

/// A published snapshot.
#[derive(Debug, Clone)]
pub struct Snapshot {
    /// Its id.
    pub id: SnapshotId,
    /// The version of the `offers` log that added it: a night published later for an earlier time, or by a machine whose clock
    /// went back, changes no number.
    pub version: usize,
    /// Its offers' file.
    file: LoggedFile,
    /// Columns of the files.
    columns: SchemaRef,
}

impl Snapshot {
    /// A snapshot of no file, for tests that never open one.
    #[cfg(test)]
    pub(crate) fn without_file(id: SnapshotId, version: usize) -> Self {
        Self { id, version, file: LoggedFile::without_file(id), columns: Arc::new(Schema::default()) }
    }

    /// Offers in it, as the log says; `None` when it does not.
    #[must_use]
    pub const fn rows(&self) -> Option<usize> {
        self.file.rows
    }

    /// Whether it is of a price history that somebody else keeps: no word of a provider, and compared with none.
    #[must_use]
    pub const fn is_import(&self) -> bool {
        self.file.is_import
    }

    /// The file of its offers.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.file.file
    }
}

/// The newest snapshot of each night: itself, or its last correction. Oldest night first.
#[must_use]
pub fn newest_of_each_night(snapshots: &[Snapshot]) -> Vec<&Snapshot> {
    let is_newest = |snapshot: &&Snapshot| newest_of_night(snapshots, snapshot.id).is_some_and(|newest| newest.id == snapshot.id);
    snapshots.iter().filter(is_newest).collect()
}

/// The newest snapshot of the night that an id is of.
#[must_use]
pub fn newest_of_night(snapshots: &[Snapshot], id: SnapshotId) -> Option<&Snapshot> {
    // They are in order, and a correction comes right after what it corrects.
    let after = snapshots.partition_point(|known| known.id.instant() <= id.instant());
    snapshots[..after].last().filter(|known| known.id.is_same_night(id))
}

/// Every published snapshot, oldest first.
///
/// # Errors
/// When the log cannot be read.
pub async fn snapshots(output: &Path) -> Result<Vec<Snapshot>, SnapshotError> {
    let Some(log) = Log::open(output, &OFFERS).await? else { return Ok(Vec::new()) };
    let columns = columns(&log)?;
    let mut files: Vec<(SnapshotId, LoggedFile)> =
        log.files()?.into_iter().filter_map(|file| Some((file.snapshot?, file))).collect();
    // Files without a version are those of earlier programs, which came first and left nothing but the time.
    files.sort_by_key(|(id, file)| (file.version.unwrap_or(0), file.committed_at_ms, *id));
    let numbered = files.into_iter().enumerate().map(|(index, (id, file))| {
        let version = file.version.map_or(index + 1, |version| usize::try_from(version).expect("few versions"));
        Snapshot { id, version, file, columns: columns.clone() }
    });
    let mut snapshots: Vec<Snapshot> = numbered.collect();
    snapshots.sort_by_key(|snapshot| snapshot.id);
    Ok(snapshots)
}

/// The snapshots that were collected, without the imported ones, oldest version first.
///
/// # Errors
/// As [`snapshots`].
pub async fn collected(output: &Path) -> Result<Vec<Snapshot>, SnapshotError> {
    let mut all = snapshots(output).await?;
    all.retain(|snapshot| !snapshot.is_import());
    Ok(all)
}

/// The snapshot a person means: an id, a version, a date (its last night), `latest` or `previous`.
///
/// The last three mean a night, and of a corrected one the newest correction; an imported night is meant by them only where none
/// was collected.
///
/// # Errors
/// When there is none.
pub fn choose<'a>(snapshots: &'a [Snapshot], wanted: &str) -> Result<&'a Snapshot, SnapshotError> {
    let all_nights = newest_of_each_night(snapshots);
    // What somebody else's history says is no night that was collected: it is meant where there is nothing else.
    let collected: Vec<&Snapshot> = all_nights.iter().copied().filter(|snapshot| !snapshot.is_import()).collect();
    let nights = if collected.is_empty() { all_nights.clone() } else { collected };
    let found = match wanted {
        "latest" => nights.last().copied(),
        "previous" => nights.len().checked_sub(2).and_then(|index| nights.get(index)).copied(),
        _ => {
            if let Ok(id) = wanted.parse::<SnapshotId>() {
                snapshots.iter().find(|snapshot| snapshot.id == id)
            } else if let Ok(date) = wanted.parse::<NaiveDate>() {
                let is_of_day = |snapshot: &&&Snapshot| snapshot.id.date() == date;
                nights.iter().rfind(is_of_day).or_else(|| all_nights.iter().rfind(is_of_day)).copied()
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
            let versions = snapshots.iter().map(|snapshot| snapshot.version);
            let (low, high) = (versions.clone().min().unwrap_or_default(), versions.max().unwrap_or_default());
            format!("there are {} snapshots, from {} to {} (versions {low} to {high})", snapshots.len(), first.id, last.id)
        }
        (Some(only), _) => format!("there is one snapshot, {} (version {})", only.id, only.version),
        _ => "nothing has been published yet; `gpuledger collect` publishes the first snapshot".to_owned(),
    }
}

/// Rows of one snapshot, to be filtered before they are read. Columns that the file does not have are null in it; columns that
/// only a newer program knows come last.
///
/// # Errors
/// When the file cannot be opened.
pub fn offers(snapshot: &Snapshot) -> Result<LazyFrame, SnapshotError> {
    scan(std::slice::from_ref(&snapshot.file), &snapshot.columns)
}

/// The same of several snapshots, in one scan.
///
/// # Errors
/// When a file cannot be opened, or there is no snapshot.
pub fn offers_of(snapshots: &[&Snapshot]) -> Result<LazyFrame, SnapshotError> {
    let files: Vec<LoggedFile> = snapshots.iter().map(|snapshot| snapshot.file.clone()).collect();
    let columns = snapshots.first().map_or_else(|| Arc::new(Schema::default()), |snapshot| snapshot.columns.clone());
    scan(&files, &columns)
}

/// What every night covers: all rows of the `coverage` table of published snapshots.
///
/// # Errors
/// When the table cannot be read.
pub async fn coverage(output: &Path, snapshots: &[Snapshot]) -> Result<DataFrame, SnapshotError> {
    let ids: BTreeSet<SnapshotId> = snapshots.iter().map(|snapshot| snapshot.id).collect();
    let Some(log) = Log::open(output, &COVERAGE).await? else { return Ok(frame::empty(&COVERAGE)) };
    rows(&log, |file| file.snapshot.is_some_and(|id| ids.contains(&id)))
}

/// Exchange rates of the days from `first` to `last`. Files that the log says have no such day are not opened.
///
/// # Errors
/// When the table cannot be read.
pub async fn rates(output: &Path, first: NaiveDate, last: NaiveDate) -> Result<DataFrame, SnapshotError> {
    rates_known(output, first, last, None).await
}

/// The same; with `known`, only those that these nights published.
///
/// # Errors
/// When the table cannot be read.
pub async fn rates_known(
    output: &Path,
    first: NaiveDate,
    last: NaiveDate,
    known: Option<&BTreeSet<SnapshotId>>,
) -> Result<DataFrame, SnapshotError> {
    let Some(log) = Log::open(output, &RATES).await? else { return Ok(frame::empty(&RATES)) };
    rates_of(&log, first, last, known)
}

/// The same, of one version of the log.
///
/// # Errors
/// As [`rates`].
pub fn rates_in(log: &Log, first: NaiveDate, last: NaiveDate) -> Result<DataFrame, SnapshotError> {
    rates_of(log, first, last, None)
}

fn rates_of(
    log: &Log,
    first: NaiveDate,
    last: NaiveDate,
    known: Option<&BTreeSet<SnapshotId>>,
) -> Result<DataFrame, SnapshotError> {
    let is_of_days = |file: &LoggedFile| file.rate_days.is_none_or(|(low, high)| low <= last && first <= high);
    let is_known = |file: &LoggedFile| known.is_none_or(|nights| file.snapshot.is_some_and(|id| nights.contains(&id)));
    let rows = rows(log, |file| is_of_days(file) && is_known(file))?;
    let between = col("rate_date").gt_eq(lit(first)).and(col("rate_date").lt_eq(lit(last)));
    rows.lazy().filter(between).collect().map_err(|source| parquet_error(log, source))
}

/// Rows of a table without the columns that this program does not know.
fn rows(log: &Log, is_wanted: impl Fn(&LoggedFile) -> bool) -> Result<DataFrame, SnapshotError> {
    let table = log.table();
    let files: Vec<LoggedFile> = log.files()?.into_iter().filter(|file| is_wanted(file)).collect();
    if files.is_empty() {
        return Ok(frame::empty(table));
    }
    let known: Vec<Expr> = table.columns.iter().map(|column| col(column.name)).collect();
    let mut rows = scan(&files, &columns(log)?)?.select(known).collect().map_err(|source| parquet_error(log, source))?;
    // One piece a file otherwise, and who asks for the value of a row goes through the pieces.
    rows.rechunk_mut_par();
    Ok(rows)
}

/// The columns that a table's files may have, of whatever program.
fn columns(log: &Log) -> Result<SchemaRef, SnapshotError> {
    let (table, columns) = (log.table(), log.columns()?);
    if let Some(schema::OtherType { column, found, expected }) = schema::other_type(table, &columns) {
        return Err(SnapshotError::OtherType { table: table.name, column, found, expected });
    }
    let unreadable = |column| SnapshotError::Newer {
        table: table.name,
        difference: format!("with a column of a type that this one does not know: {column}"),
    };
    schema::for_polars(table, &columns).map(Arc::new).map_err(unreadable)
}

fn scan(files: &[LoggedFile], columns: &SchemaRef) -> Result<LazyFrame, SnapshotError> {
    if let Some(remote) = files.first().and_then(|file| remote::at(&file.file)) {
        remote.have(&files.iter().map(|file| file.file.as_path()).collect::<Vec<_>>())?;
    }
    let paths: Vec<PlRefPath> = files.iter().map(|file| PlRefPath::new(file.file.to_string_lossy())).collect();
    let options = ScanArgsParquet {
        glob: false,
        hive_options: HiveOptions::new_disabled(),
        schema: Some(columns.clone()),
        allow_missing_columns: true,
        ..ScanArgsParquet::default()
    };
    let first = files.first().map_or_else(|| Path::new("").to_owned(), |file| file.file.clone());
    LazyFrame::scan_parquet_files(paths.into(), options).map_err(|source| SnapshotError::Parquet { path: first, source })
}

fn parquet_error(log: &Log, source: PolarsError) -> SnapshotError {
    SnapshotError::Parquet { path: log.folder().to_owned(), source }
}
