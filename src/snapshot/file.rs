//! Rows of a table as one Parquet file: in the table's order, with a name that says what it holds.
//!
//! In: judged rows. Out: bytes, and rows and bounds for the log. The same rows give the same bytes.

use std::path::Path;

use chrono::NaiveDate;
use gpuledger_scrapers::contract::SourceKind;
use gpuledger_scrapers::sha256;
use polars::io::parquet::write::KeyValueMetadata;
use polars::prelude::*;

use crate::archive::{drafts, write_whole};
use crate::frame::{self, Cell, Columns};
use crate::night::SnapshotId;
use crate::offer::{Kind, Table};
use crate::snapshot::log::NewFile;
use crate::snapshot::{SnapshotError, schema};
use crate::validate::ScopeCoverage;

/// Rows of a row group: small enough that a reader of one GPU passes most of them over.
const ROW_GROUP_ROWS: usize = 20_000;

/// What a night covers, as rows of the `coverage` table.
///
/// # Errors
/// Only on a fault of the program.
pub fn coverage_frame(snapshot: SnapshotId, coverage: &[ScopeCoverage]) -> PolarsResult<DataFrame> {
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
pub(super) fn in_order(rows: &DataFrame, table: &Table) -> Result<DataFrame, SnapshotError> {
    let order: Vec<Expr> = table.order.iter().map(|name| col(*name)).collect();
    let options = SortMultipleOptions::default().with_nulls_last(true).with_maintain_order(true);
    in_columns(rows.clone().lazy().sort_by_exprs(order, options), table)
}

/// Columns in the table's order, of rows that are in it already.
pub(super) fn in_columns(rows: LazyFrame, table: &Table) -> Result<DataFrame, SnapshotError> {
    let columns: Vec<Expr> = table.columns.iter().map(|column| col(column.name).cast(frame::data_type(column.kind))).collect();
    rows.select(columns).collect().map_err(|source| SnapshotError::Rows { table: table.name, source })
}

/// A file before it is on the disk.
pub struct Draft {
    /// Path below the table.
    pub path: String,
    bytes: Vec<u8>,
    stats: String,
    is_import: bool,
}

impl Draft {
    /// The file's bytes, and a name that says its night and what it holds: the same rows give the same name.
    ///
    /// # Errors
    /// Only on a fault of the program.
    pub fn of(table: &Table, snapshot: SnapshotId, rows: &DataFrame) -> Result<Self, SnapshotError> {
        let bytes = parquet_bytes(table, rows)
            .and_then(|bytes| is_of_table(table, rows, &bytes).map(|()| bytes))
            .map_err(|source| SnapshotError::Rows { table: table.name, source })?;
        let stats = stats(table, rows).map_err(|source| SnapshotError::Rows { table: table.name, source })?;
        let name = format!("{snapshot}-{}.parquet", &sha256(&bytes)[..16]);
        // The day stands in each row, so the folder needs no `key=value` name: with one, some readers would see the
        // column twice and in two types.
        let path = if table.is_partitioned { format!("{}/{name}", snapshot.date()) } else { name };
        let is_import = rows
            .column("source_kind")
            .and_then(|kinds| kinds.str())
            .is_ok_and(|kinds| !kinds.is_empty() && kinds.iter().all(|kind| kind == Some(SourceKind::Import.word())));
        Ok(Self { path, bytes, stats, is_import })
    }

    /// Puts the file in its place.
    ///
    /// # Errors
    /// When the disk refuses.
    pub fn write(&self, output: &Path, table: &Table) -> Result<NewFile, SnapshotError> {
        write_whole(&drafts(output), &output.join(table.name).join(&self.path), &self.bytes)?;
        let bytes = i64::try_from(self.bytes.len()).expect("a file fits in memory");
        Ok(NewFile { path: self.path.clone(), bytes, stats: self.stats.clone(), is_import: self.is_import })
    }
}

/// Rows as the bytes of a Parquet file. The same rows give the same bytes.
///
/// # Errors
/// When polars cannot write them.
pub fn parquet_bytes(table: &Table, rows: &DataFrame) -> PolarsResult<Vec<u8>> {
    written(rows, schema::parquet_metadata(table))
}

/// Rows that are no table's, such as an answer to a question, as the bytes of a Parquet file that opens in every reader.
///
/// # Errors
/// When a column is of a type that the dataset has not, or polars cannot write them.
pub fn bytes_of_rows(rows: &DataFrame) -> PolarsResult<Vec<u8>> {
    let metadata = schema::rows_metadata(rows).map_err(|column| polars_err!(ComputeError: "write the column {column}"))?;
    written(rows, metadata)
}

fn written(rows: &DataFrame, metadata: KeyValueMetadata) -> PolarsResult<Vec<u8>> {
    let mut bytes = Vec::new();
    ParquetWriter::new(&mut bytes)
        .with_compression(ParquetCompression::Zstd(None))
        .with_statistics(StatisticsOptions::default())
        .with_row_group_size(Some(ROW_GROUP_ROWS))
        .with_key_value_metadata(Some(metadata))
        .finish(&mut rows.clone())?;
    Ok(bytes)
}

/// Nothing is published that is not the table's: its columns, in its types, and as many rows as the file says when it is read
/// back.
fn is_of_table(table: &Table, rows: &DataFrame, bytes: &[u8]) -> PolarsResult<()> {
    let columns: Vec<_> = table.columns.iter().map(|column| (column.name.into(), frame::data_type(column.kind))).collect();
    let found: Vec<(PlSmallStr, DataType)> =
        rows.columns().iter().map(|column| (column.name().clone(), column.dtype().clone())).collect();
    polars_ensure!(found == columns, SchemaMismatch: "the columns are {found:?} and should be {columns:?}");
    let mut reader = ParquetReader::new(std::io::Cursor::new(bytes));
    let facts = reader.get_metadata()?;
    let named: Vec<&str> = facts.schema_descr.fields().iter().map(|field| field.name()).collect();
    let names: Vec<&str> = table.columns.iter().map(|column| column.name).collect();
    polars_ensure!(facts.num_rows == rows.height() && named == names, ComputeError: "{} of {} rows were written, in columns {named:?}", facts.num_rows, rows.height());
    Ok(())
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
