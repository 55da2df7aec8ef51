//! The tables: logs that read, files that are there and whole, columns that are this program's.

use std::collections::BTreeSet;
use std::fs::File;
use std::path::Path;

use gpuledger_scrapers::sha256;
use polars::prelude::{ParquetReader, SerReader as _};

use super::{Lines, causes, dataset, files_below, restore, word};
use crate::night::{SnapshotId, second};
use crate::offer::{COVERAGE, OFFERS, RATES, SCHEMA_VERSION, Table};
use crate::remote;
use crate::snapshot::log::{Log, LoggedFile};
use crate::snapshot::schema;

/// So many of a table's newest files are read in full when not all are asked for.
const NEWEST: usize = 10;

/// Looks at the three tables; the snapshots that are published.
pub(super) async fn tables(output: &Path, all: bool, lines: &mut Lines) -> BTreeSet<SnapshotId> {
    let mut published = BTreeSet::new();
    let mut covered = None;
    for table in [&OFFERS, &COVERAGE, &RATES] {
        let of = format!("{} log", table.name);
        let log = match Log::open(output, table).await {
            Ok(Some(log)) => log,
            Ok(None) => {
                if table.name == OFFERS.name {
                    lines.good(&of, "nothing has been published yet");
                }
                unnamed(output, table, &[], lines);
                continue;
            }
            Err(error) => {
                let folder = output.join(table.name).join("_delta_log");
                lines.problem(&of, causes(&error), restore(output, &folder).replacen("cp -p", "cp -rp", 1));
                continue;
            }
        };
        columns(output, &log, lines);
        match log.files() {
            Ok(files) => {
                lines.good(&of, format!("reads, version {}, {} files", log.version().unwrap_or(0), files.len()));
                whole(output, table, &files, all, lines);
                unnamed(output, table, &files, lines);
                let ids: BTreeSet<SnapshotId> = files.iter().filter_map(|file| file.snapshot).collect();
                match table.name {
                    "offers" => published = ids,
                    "coverage" => covered = Some(ids),
                    _ => {}
                }
            }
            Err(error) => lines.problem(&of, causes(&error), restore(output, &output.join(table.name))),
        }
    }
    together(output, &published, covered.as_ref(), lines);
    published
}

/// Whether the columns are this program's.
fn columns(output: &Path, log: &Log, lines: &mut Lines) {
    let (table, of) = (log.table(), format!("{} columns", log.table().name));
    let Ok(columns) = log.columns() else { return };
    let version = log.schema_version().ok().flatten();
    let (missing, unknown) = (schema::missing(table, &columns), schema::unknown(table, &columns));
    let elsewhere = "gpuledger collect --output ANOTHER-FOLDER".to_owned();
    if let Some(schema::OtherType { column, found, expected }) = schema::other_type(table, &columns) {
        lines.problem(&of, format!("`{column}` is {found} in the dataset and {expected} in this program"), elsewhere);
    } else if version.is_some_and(|version| version > SCHEMA_VERSION) || !unknown.is_empty() {
        let names = if unknown.is_empty() { String::new() } else { format!(" ({})", unknown.join(", ")) };
        let says = format!("a newer program made the dataset{names}: it can be read and not written");
        lines.problem(&of, says, "cargo install --path . --force  # in a newer checkout");
    } else if missing.is_empty() {
        lines.good(&of, format!("{} columns, as in this program (version {SCHEMA_VERSION})", table.columns.len()));
    } else {
        let says = format!("an earlier program made the dataset: {} come with the next night, null before", missing.join(", "));
        lines.warning(&of, says, format!("gpuledger collect --output {}", dataset(output)));
    }
}

/// Whether every file that the log names is there, with the size, the rows and the bytes it was published with.
fn whole(output: &Path, table: &Table, files: &[LoggedFile], all: bool, lines: &mut Lines) {
    let (before, of) = (lines.count(), format!("{} files", table.name));
    if let Some(remote) = remote::at(output)
        && let Err(error) = remote.have(&files.iter().map(|file| file.file.as_path()).collect::<Vec<_>>())
    {
        lines.problem(&of, causes(&error), format!("gpuledger doctor --output {}", remote.url()));
    }
    let first_read = if all { 0 } else { files.len().saturating_sub(NEWEST) };
    for (index, file) in files.iter().enumerate() {
        if let Some(says) = damage(file, index >= first_read) {
            lines.problem(&of, format!("{}: {says}", file.path), restore(output, &file.file));
        }
    }
    let read = files.len() - first_read;
    lines.good_since(before, &of, format!("all {} are there, {read} read and as they were published", files.len()));
}

fn damage(file: &LoggedFile, is_read: bool) -> Option<String> {
    let facts = match std::fs::metadata(&file.file) {
        Ok(facts) => facts,
        Err(error) => return Some(format!("the log names it and it cannot be had: {error}")),
    };
    if i64::try_from(facts.len()) != Ok(file.bytes) {
        return Some(format!("it has {} bytes and the log says {}", facts.len(), file.bytes));
    }
    if !is_read {
        return None;
    }
    let bytes = match std::fs::read(&file.file) {
        Ok(bytes) => bytes,
        Err(error) => return Some(error.to_string()),
    };
    // The end of a file's name is the start of its hash.
    let stem = file.file.file_stem()?.to_string_lossy().into_owned();
    let named = stem.rsplit('-').next().filter(|hash| hash.len() == 16)?;
    if !sha256(&bytes).starts_with(named) {
        return Some("its bytes are not those that were published".to_owned());
    }
    let rows = File::open(&file.file).ok().and_then(|open| ParquetReader::new(open).num_rows().ok());
    match (rows, file.rows) {
        (None, _) => Some("it does not read as Parquet".to_owned()),
        (Some(found), Some(logged)) if found != logged => Some(format!("it has {found} rows and the log says {logged}")),
        _ => None,
    }
}

/// Files that readers of plain files see and no log names.
fn unnamed(output: &Path, table: &Table, files: &[LoggedFile], lines: &mut Lines) {
    let of = format!("{} strays", table.name);
    let folder = output.join(table.name);
    let found = match files_below(&folder) {
        Ok(found) => found,
        Err(error) => {
            lines.problem(&of, format!("{}: {error}", folder.display()), format!("ls -lR {}", word(&folder)));
            return;
        }
    };
    let before = lines.count();
    let logged: BTreeSet<&Path> = files.iter().map(|file| file.file.as_path()).collect();
    for path in found.iter().filter(|path| !path.starts_with(folder.join("_delta_log")) && !logged.contains(path.as_path())) {
        let says = format!("{} is in no log, and readers of plain files see it", path.display());
        if super::beside::is_on_its_way(output, path) {
            lines.warning(&of, format!("{says}; a run that died left it"), super::beside::clear(output));
        } else {
            lines.problem(&of, says, format!("rm {}", word(path)));
        }
    }
    lines.good_since(before, &of, "no file but those of the log");
}

/// Whether the nights of `coverage` are those of `offers`.
fn together(output: &Path, published: &BTreeSet<SnapshotId>, covered: Option<&BTreeSet<SnapshotId>>, lines: &mut Lines) {
    let (before, of) = (lines.count(), "coverage and offers");
    let none = BTreeSet::new();
    let covered = covered.unwrap_or(&none);
    for id in published.difference(covered) {
        let says = format!("{id} has offers and no coverage: nobody can tell what is missing in it from what is gone");
        lines.problem(of, says, restore(output, &output.join(COVERAGE.name)).replacen("cp -p", "cp -rp", 1));
    }
    for id in covered.difference(published) {
        let at = second(id.instant());
        let says = format!("{id} has coverage and no offers: a run died before it published them");
        lines.warning(of, says, format!("gpuledger collect --at {at} --output {}", dataset(output)));
    }
    if !published.is_empty() {
        lines.good_since(before, of, format!("the same {} nights in both", published.len()));
    }
}
