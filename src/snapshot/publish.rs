//! Writes a judged night: files first, then one commit a table, `offers` last.
//!
//! Killed at any moment, the last good snapshot stays whole: a file without a commit is part of nothing and is removed by
//! the next run, and what a night left in `rates` and `coverage` without reaching `offers` is replaced by the next run of
//! that night.

use std::path::Path;

use chrono::NaiveDate;
use gpuledger_scrapers::sha256;
use polars::prelude::*;

use crate::archive::{ArchiveError, drafts, write_whole};
use crate::frame::{self, Cell, Columns};
use crate::night::SnapshotId;
use crate::normalise::currency::{Rate, rates_frame};
use crate::offer::{COVERAGE, Kind, OFFERS, RATES, Table};
use crate::snapshot::log::{Log, LoggedFile, NewFile};
use crate::snapshot::{SnapshotError, read, schema};
use crate::validate::{ScopeCoverage, Validated};

/// Rows of a row group: small enough that a reader of one GPU passes most of them over.
const ROW_GROUP_ROWS: usize = 20_000;

/// What publishing did.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Published {
    /// The snapshot exists now.
    New,
    /// It existed already with the same rows.
    Already,
}

/// Publishes a night.
///
/// # Errors
/// When the disk or the log refuses, or the snapshot exists with other rows. What was published stays as it was.
pub async fn publish(output: &Path, snapshot: SnapshotId, night: &Validated, rates: &[Rate]) -> Result<Published, SnapshotError> {
    let offers = in_order(night.offers(), &OFFERS)?;
    let mut offers_log = Log::open_or_create(output, &OFFERS).await?;
    let draft = Draft::of(&OFFERS, snapshot, &offers)?;
    if let Some(existing) = offers_log.files()?.into_iter().find(|file| file.snapshot == Some(snapshot)) {
        let is_same = existing.path == draft.path;
        return if is_same {
            Ok(Published::Already)
        } else {
            Err(SnapshotError::ExistsOtherwise { snapshot: snapshot.to_string() })
        };
    }

    let new_rates = only_new(output, rates).await?;
    if !new_rates.is_empty() {
        let rates = rates_frame(&snapshot.to_string(), &new_rates).map_err(|source| parquet_error(output, &RATES, source))?;
        commit(output, &RATES, snapshot, &rates).await?;
    }
    let coverage = coverage_frame(snapshot, night.coverage()).map_err(|source| parquet_error(output, &COVERAGE, source))?;
    commit(output, &COVERAGE, snapshot, &coverage).await?;

    add(output, &mut offers_log, draft, snapshot, &[]).await?;
    Ok(Published::New)
}

/// A night's offers in the order of their file, and the bytes of that file.
///
/// # Errors
/// When polars cannot write them.
pub fn offers_file(night: &Validated) -> Result<(DataFrame, Vec<u8>), SnapshotError> {
    let offers = in_order(night.offers(), &OFFERS)?;
    let bytes = parquet_bytes(&OFFERS, &offers).map_err(|source| parquet_error(Path::new(""), &OFFERS, source))?;
    Ok((offers, bytes))
}

/// The name of the file that says which Parquet file is on its way into its table's log.
const ON_ITS_WAY: &str = ".on-its-way";

/// Writes a file and commits it. Between the two it is named in a file of its own, so that a run that dies there leaves
/// nothing that a reader of plain files could take for published.
async fn add(
    output: &Path,
    log: &mut Log,
    draft: Draft,
    snapshot: SnapshotId,
    replaced: &[LoggedFile],
) -> Result<(), SnapshotError> {
    let marker = output.join(ON_ITS_WAY);
    write_whole(&drafts(output), &marker, format!("{}/{}", log.table().name, draft.path).as_bytes())?;
    let file = draft.write(output, log.table())?;
    log.commit(snapshot, file, replaced).await?;
    remove(&marker)
}

/// Removes the file that a run wrote and did not live to commit. Only the holder of the dataset's lock may do so.
///
/// # Errors
/// When the log cannot be read or the disk refuses.
pub async fn clear_uncommitted(output: &Path) -> Result<(), SnapshotError> {
    let marker = output.join(ON_ITS_WAY);
    let Ok(name) = std::fs::read_to_string(&marker) else { return Ok(()) };
    let tables = [&OFFERS, &COVERAGE, &RATES];
    if let Some((table, path)) = name.split_once('/')
        && let Some(table) = tables.into_iter().find(|known| known.name == table)
    {
        let is_committed = match Log::open(output, table).await? {
            Some(log) => log.files()?.iter().any(|file| file.path == path),
            None => false,
        };
        if !is_committed {
            remove(&output.join(table.name).join(path))?;
        }
    }
    remove(&marker)
}

/// Removes a file; one that is not there is removed already.
fn remove(path: &Path) -> Result<(), SnapshotError> {
    match std::fs::remove_file(path) {
        Err(source) if source.kind() != std::io::ErrorKind::NotFound => {
            Err(SnapshotError::Disk(ArchiveError::Io { path: path.to_owned(), source }))
        }
        _ => Ok(()),
    }
}

/// Commits a night's file of a table that is not `offers`, in place of what an earlier try of the same night left.
async fn commit(output: &Path, table: &'static Table, snapshot: SnapshotId, rows: &DataFrame) -> Result<(), SnapshotError> {
    let rows = in_order(rows, table)?;
    let mut log = Log::open_or_create(output, table).await?;
    let draft = Draft::of(table, snapshot, &rows)?;
    let left: Vec<_> = log.files()?.into_iter().filter(|file| file.snapshot == Some(snapshot)).collect();
    if left.iter().any(|file| file.path == draft.path) {
        return Ok(());
    }
    // Only rates that no file has yet come here, so what an earlier try of the night left belongs to them and stays.
    let replaced = if table.name == RATES.name { &[][..] } else { &left };
    add(output, &mut log, draft, snapshot, replaced).await
}

/// The rates that the dataset does not have yet. A rate that is there stays as it was first seen.
async fn only_new(output: &Path, rates: &[Rate]) -> Result<Vec<Rate>, SnapshotError> {
    let (Some(first), Some(last)) = (rates.iter().map(|rate| rate.date).min(), rates.iter().map(|rate| rate.date).max()) else {
        return Ok(Vec::new());
    };
    let known = read::rates(output, first, last).await?;
    let known = known
        .lazy()
        .select([col("rate_date"), col("currency_code")])
        .collect()
        .map_err(|source| parquet_error(output, &RATES, source))?;
    let mut keys = std::collections::BTreeSet::new();
    for row in 0..known.height() {
        let cell = |name: &str| {
            Cell::at(&known, name, row).map(|cell| cell.text()).map_err(|source| parquet_error(output, &RATES, source))
        };
        keys.insert((cell("rate_date")?, cell("currency_code")?));
    }
    let mut new: Vec<Rate> = Vec::new();
    for rate in rates {
        if keys.insert((rate.date.to_string(), rate.currency_code.clone())) {
            new.push(rate.clone());
        }
    }
    Ok(new)
}

fn coverage_frame(snapshot: SnapshotId, coverage: &[ScopeCoverage]) -> PolarsResult<DataFrame> {
    let id = snapshot.to_string();
    let date: NaiveDate = snapshot.date();
    let count = |number: usize| i64::try_from(number).ok();
    let mut columns = Columns::new(coverage.len());
    columns.texts("snapshot_id", coverage.iter().map(|_| Some(id.as_str())));
    columns.dates("snapshot_date", coverage.iter().map(|_| Some(date)));
    columns.texts("provider", coverage.iter().map(|scope| Some(scope.provider.as_str())));
    columns.texts("scope", coverage.iter().map(|scope| Some(scope.scope.as_str())));
    columns.texts("status", coverage.iter().map(|scope| Some(scope.status.word())));
    columns.longs("rows", coverage.iter().map(|scope| count(scope.rows)));
    columns.longs("skipped", coverage.iter().map(|scope| count(scope.skipped)));
    columns.longs("quarantined", coverage.iter().map(|scope| count(scope.quarantined)));
    columns.longs("left_out", coverage.iter().map(|scope| i64::try_from(scope.left_out).ok()));
    columns.longs("bytes", coverage.iter().map(|scope| i64::try_from(scope.bytes).ok()));
    columns.floats("seconds", coverage.iter().map(|scope| Some(scope.seconds)));
    columns.texts("reason", coverage.iter().map(|scope| scope.reason.as_deref()));
    columns.texts("input", coverage.iter().map(|scope| Some(scope.input)));
    columns.wholes("scraper_version", coverage.iter().map(|scope| i32::try_from(scope.scraper_version).ok()));
    columns.finish()
}

/// Rows in the table's order, columns in the table's order.
fn in_order(rows: &DataFrame, table: &Table) -> Result<DataFrame, SnapshotError> {
    let order: Vec<Expr> = table.order.iter().map(|name| col(*name)).collect();
    let sorted = rows
        .clone()
        .lazy()
        .sort_by_exprs(order, SortMultipleOptions::default().with_nulls_last(true).with_maintain_order(true))
        .select(table.columns.iter().map(|column| col(column.name).cast(frame::data_type(column.kind))).collect::<Vec<_>>())
        .collect();
    sorted.map_err(|source| parquet_error(Path::new(""), table, source))
}

/// A file before it is on the disk.
struct Draft {
    path: String,
    bytes: Vec<u8>,
    stats: String,
}

impl Draft {
    /// The file's bytes, and a name that says its night and what it holds: the same rows give the same name.
    fn of(table: &Table, snapshot: SnapshotId, rows: &DataFrame) -> Result<Self, SnapshotError> {
        let bytes = parquet_bytes(table, rows).map_err(|source| parquet_error(Path::new(""), table, source))?;
        let stats = stats(table, rows).map_err(|source| parquet_error(Path::new(""), table, source))?;
        let name = format!("{snapshot}-{}.parquet", &sha256(&bytes)[..16]);
        // The day stands in each row, so the folder needs no `key=value` name: with one, some readers would see the
        // column twice and in two types.
        let path = if table.is_partitioned { format!("{}/{name}", snapshot.date()) } else { name };
        Ok(Self { path, bytes, stats })
    }

    fn write(self, output: &Path, table: &Table) -> Result<NewFile, SnapshotError> {
        write_whole(&drafts(output), &output.join(table.name).join(&self.path), &self.bytes)?;
        let bytes = i64::try_from(self.bytes.len()).expect("a file fits in memory");
        Ok(NewFile { path: self.path, bytes, stats: self.stats })
    }
}

/// Rows as the bytes of a Parquet file. The same rows give the same bytes.
///
/// # Errors
/// When polars cannot write them.
pub fn parquet_bytes(table: &Table, rows: &DataFrame) -> PolarsResult<Vec<u8>> {
    let mut bytes = Vec::new();
    ParquetWriter::new(&mut bytes)
        .with_compression(ParquetCompression::Zstd(None))
        .with_statistics(StatisticsOptions::default())
        .with_row_group_size(Some(ROW_GROUP_ROWS))
        .with_key_value_metadata(Some(schema::parquet_metadata(table)))
        .finish(&mut rows.clone())?;
    Ok(bytes)
}

/// Rows and bounds of a file in Delta's form, so that readers pass whole files over.
fn stats(table: &Table, rows: &DataFrame) -> PolarsResult<String> {
    let (mut low, mut high, mut nulls) = (serde_json::Map::new(), serde_json::Map::new(), serde_json::Map::new());
    for name in table.bounds {
        let column = rows.column(name)?;
        nulls.insert((*name).to_owned(), column.null_count().into());
        let is_number = table.columns.iter().any(|known| known.name == *name && known.kind == Kind::Float);
        let bound = |frame: PolarsResult<DataFrame>| -> PolarsResult<serde_json::Value> {
            let cell = Cell::at(&frame?, name, 0)?;
            Ok(match cell {
                Cell::Null => serde_json::Value::Null,
                Cell::Number(number) if is_number => {
                    number.parse::<f64>().map_or(serde_json::Value::Null, serde_json::Value::from)
                }
                other => serde_json::Value::from(other.text()),
            })
        };
        low.insert((*name).to_owned(), bound(rows.clone().lazy().select([col(*name).min()]).collect())?);
        high.insert((*name).to_owned(), bound(rows.clone().lazy().select([col(*name).max()]).collect())?);
    }
    for bounds in [&mut low, &mut high] {
        bounds.retain(|_, value| !value.is_null());
    }
    Ok(serde_json::json!({ "numRecords": rows.height(), "minValues": low, "maxValues": high, "nullCount": nulls }).to_string())
}

fn parquet_error(output: &Path, table: &Table, source: PolarsError) -> SnapshotError {
    SnapshotError::Parquet { path: output.join(table.name), source }
}
