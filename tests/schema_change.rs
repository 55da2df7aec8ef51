//! Datasets of earlier and of newer programs: what is read of them, and what is never written over.

use crate::support::whole;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::process::Command;
use std::sync::LazyLock;

use crate::support::whole::{Ground, block_on};
use gpuledger::archive::ArchiveError;
use gpuledger::offer::{Column, Kind, OFFERS, SCHEMA_VERSION, Table};
use gpuledger::snapshot::file::Draft;
use gpuledger::snapshot::log::{Committed, Log};
use gpuledger::snapshot::read;
use polars::prelude::*;

const BEFORE: &str = "2026-10-29T18:00:00Z";
const AT: &str = "2026-10-30T18:00:00Z";

/// A dataset with one night whose offers another program wrote, with its own columns.
fn written_by_another(columns: Vec<Column>, change: impl Fn(LazyFrame) -> LazyFrame) -> Ground {
    let ground = Ground::new();
    let (exit, said) = ground.night(BEFORE);
    assert_eq!(exit, Some(0), "{said}");
    let (root, id) = (ground.root(), BEFORE.replace(':', "-").parse().expect("it is an id"));
    let snapshots = block_on(read::snapshots(&root)).expect("the log reads");
    let rows = change(read::offers(&snapshots[0]).expect("the file opens")).collect().expect("the rows read");
    std::fs::remove_dir_all(root.join("offers")).expect("the table can be taken away");
    // Another program's table lives as long as the test.
    let table: &'static Table = Box::leak(Box::new(Table { columns: columns.leak(), ..OFFERS }));
    let draft = Draft::of(table, id, &rows).expect("the rows are a file");
    let file = draft.write(&root, table).expect("there is room for a file");
    let mut log = block_on(Log::open_or_create(&root, table)).expect("the log is made");
    assert_eq!(block_on(log.commit("test", id, &file, &[])).expect("the log is written"), Committed::Done);
    ground
}

fn without(name: &str) -> Vec<Column> {
    OFFERS.columns.iter().filter(|column| column.name != name).copied().collect()
}

/// A dataset with a column that comes some day, made once and copied.
fn with_a_new_one() -> Ground {
    static MADE: LazyLock<Ground> = LazyLock::new(made_with_a_new_one);
    MADE.copy()
}

fn made_with_a_new_one() -> Ground {
    let new =
        Column { name: "watts_per_gpu", kind: Kind::Float, unit: "W", meaning: "Power that one GPU draws.", example: "700" };
    let columns = OFFERS.columns.iter().copied().chain([new]).collect();
    written_by_another(columns, |rows| rows.with_column(lit(700.0).alias("watts_per_gpu")))
}

/// The program with a verb: exit code, standard output, standard error without line breaks.
fn run(ground: &Ground, args: &[&str]) -> (Option<i32>, String, String) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_gpuledger"));
    let output = command.args(args).arg("--output").arg(ground.root()).env("NO_COLOR", "1").output().expect("it starts");
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let said = text(&output.stderr).replace('│', " ").split_whitespace().collect::<Vec<_>>().join(" ");
    (output.status.code(), text(&output.stdout), said)
}

/// Every file of the tables and the archive with its bytes.
fn everything(ground: &Ground) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut files = BTreeMap::new();
    for folder in ["offers", "coverage", "rates", "raw", "runs"] {
        let mut folders = vec![ground.root().join(folder)];
        while let Some(folder) = folders.pop() {
            for entry in std::fs::read_dir(&folder).expect("the folder can be listed") {
                let path = entry.expect("the entry reads").path();
                if path.is_dir() {
                    folders.push(path);
                } else {
                    files.insert(path.clone(), std::fs::read(&path).expect("the file reads"));
                }
            }
        }
    }
    files
}

fn field(json: &str, column: &str) -> Vec<serde_json::Value> {
    let rows: Vec<serde_json::Value> = serde_json::from_str(json).unwrap_or_else(|error| panic!("{error}: {json}"));
    rows.iter().map(|row| row.get(column).unwrap_or_else(|| panic!("no {column} in {row}")).clone()).collect()
}

#[test]
fn a_dataset_of_before_a_column_is_read_with_nulls_and_gets_the_column_with_the_next_night() {
    let ground = written_by_another(without("plan"), |rows| rows.drop(by_name(["plan"], true, false)));
    let (exit, list, said) = run(&ground, &["offers", "--format", "json", "--limit", "1000"]);
    assert_eq!(exit, Some(0), "{said}");
    assert_eq!(field(&list, "plan"), vec![serde_json::Value::Null; whole::OFFERS_A_NIGHT]);
    assert_eq!(run(&ground, &["snapshots"]).0, Some(0));

    let (exit, said) = ground.night(AT);
    assert_eq!(exit, Some(0), "{said}");
    assert_eq!(ground.check().len(), 2);
    let log = block_on(Log::open(&ground.root(), &OFFERS)).expect("the log reads").expect("there is one");
    let columns = log.columns().expect("the log has columns");
    assert!(columns.field("plan").is_some());
    assert_eq!(log.schema_version().expect("the log reads"), Some(SCHEMA_VERSION));

    for snapshot in ["latest", "previous"] {
        let (exit, list, said) = run(&ground, &["offers", "--snapshot", snapshot, "--format", "json", "--limit", "1000"]);
        assert_eq!(exit, Some(0), "{said}");
        assert_eq!(field(&list, "plan").len(), whole::OFFERS_A_NIGHT);
    }
    let (exit, changes, said) = run(&ground, &["diff", "--format", "json"]);
    assert_eq!((exit, changes.as_str()), (Some(0), "[]\n"), "{said}");
    // The column came with a version of its own, so the second night is version 3.
    let (_, listed, _) = run(&ground, &["snapshots", "--format", "json"]);
    assert_eq!(field(&listed, "version"), [1, 3]);
    // A second night does not add it again.
    assert_eq!(ground.night("2026-10-31T18:00:00Z").0, Some(0));
    let (_, listed, _) = run(&ground, &["snapshots", "--format", "json"]);
    assert_eq!(field(&listed, "version"), [1, 3, 4]);
}

#[test]
fn thirty_nights_of_before_a_column_and_one_of_after_it_are_one_scan() {
    let ground = written_by_another(without("plan"), |rows| rows.drop(by_name(["plan"], true, false)));
    assert_eq!(ground.night(AT).0, Some(0));
    let files: Vec<PathBuf> = everything(&ground)
        .into_keys()
        .filter(|path| {
            path.starts_with(ground.root().join("offers/2026-10-29")) || path.starts_with(ground.root().join("offers/2026-10-30"))
        })
        .collect();
    let paths: Vec<PlRefPath> = files.iter().rev().map(|file| PlRefPath::new(file.to_string_lossy())).collect();
    // As in the examples of output/README.md: newest first, missing columns are null.
    let options = ScanArgsParquet { allow_missing_columns: true, ..ScanArgsParquet::default() };
    let rows = LazyFrame::scan_parquet_files(paths.into(), options).expect("the files open").collect().expect("they read");
    assert_eq!(rows.height(), 2 * whole::OFFERS_A_NIGHT);
    assert_eq!(rows.column("plan").expect("it is there").dtype(), &DataType::String);
}

#[test]
fn a_newer_dataset_is_read_with_its_unknown_column_and_not_written_to() {
    let ground = with_a_new_one();
    let first = ground.root().join("offers/_delta_log/00000000000000000000.json");
    let text = std::fs::read_to_string(&first).expect("the log reads");
    let (own, newer) = (format!("\"gpuledger.schema_version\":\"{SCHEMA_VERSION}\""), "\"gpuledger.schema_version\":\"99\"");
    assert!(text.contains(&own), "{text}");
    std::fs::write(&first, text.replace(&own, newer)).expect("the log can be changed");

    let (exit, list, said) = run(&ground, &["offers", "--format", "json", "--limit", "1000"]);
    assert_eq!(exit, Some(0), "{said}");
    assert_eq!(field(&list, "watts_per_gpu"), vec![serde_json::json!(700); whole::OFFERS_A_NIGHT]);
    assert_eq!(run(&ground, &["snapshots"]).0, Some(0));
    assert_eq!(run(&ground, &["diff", "1", "1"]).0, Some(0));

    let before = everything(&ground);
    let (exit, said) = ground.night(AT);
    assert_eq!(exit, Some(11), "{said}");
    assert!(said.contains("newer program") && said.contains("99"), "{said}");
    assert_eq!(everything(&ground), before, "something was written");
}

#[test]
fn a_column_that_the_program_does_not_know_is_never_left_out_by_writing() {
    let ground = with_a_new_one();
    let before = everything(&ground);
    let (exit, said) = ground.night(AT);
    assert_eq!(exit, Some(11), "{said}");
    assert!(said.contains("watts_per_gpu"), "{said}");
    assert_eq!(everything(&ground), before, "something was written");
}

#[test]
fn a_column_never_changes_its_type_in_place() {
    let change =
        |column: &Column| Column { kind: if column.name == "commitment_months" { Kind::Long } else { column.kind }, ..*column };
    let columns = OFFERS.columns.iter().map(change).collect();
    let ground = written_by_another(columns, |rows| rows.with_column(col("commitment_months").cast(DataType::Int64)));
    let before = everything(&ground);
    for (exit, said) in [ground.night(AT), {
        let (exit, _, said) = run(&ground, &["offers"]);
        (exit, said)
    }] {
        assert_eq!(exit, Some(11), "{said}");
        assert!(said.contains("commitment_months") && said.contains("long") && said.contains("integer"), "{said}");
    }
    assert_eq!(everything(&ground), before, "something was written");
}

#[test]
fn rows_that_are_not_the_tables_are_never_made_a_file_of() {
    let ground = Ground::new();
    assert_eq!(ground.night(BEFORE).0, Some(0));
    let snapshots = block_on(read::snapshots(&ground.root())).expect("the log reads");
    let rows = read::offers(&snapshots[0]).expect("the file opens").collect().expect("the rows read");
    assert!(Draft::of(&OFFERS, snapshots[0].id, &rows).is_ok());
    let renamed = rows.clone().lazy().rename(["plan"], ["plans"], true).collect().expect("a column can be renamed");
    assert!(Draft::of(&OFFERS, snapshots[0].id, &renamed).is_err());
    let other =
        rows.lazy().with_column(col("published_amount").cast(DataType::Decimal(20, 5))).collect().expect("it can be cast");
    assert!(Draft::of(&OFFERS, snapshots[0].id, &other).is_err());
}

#[test]
fn every_file_says_which_version_of_the_columns_it_has_and_keeps_decimals_exact() {
    let ground = Ground::new();
    assert_eq!(ground.night(BEFORE).0, Some(0));
    let snapshots = block_on(read::snapshots(&ground.root())).expect("the log reads");
    let rows = read::offers(&snapshots[0]).expect("the file opens").collect().expect("the rows read");
    let amounts = ["9.99999", "143.20417", "525600.00"];
    for (day, amount) in amounts.iter().enumerate() {
        let amount_column = lit(*amount).cast(DataType::Decimal(38, 12)).alias("published_amount");
        let rows = rows.clone().lazy().with_column(amount_column).collect().expect("it is a decimal");
        let id = format!("2026-11-0{}T18-00-00Z", day + 1).parse().expect("it is an id");
        let file = Draft::of(&OFFERS, id, &rows).and_then(|draft| draft.write(&ground.root(), &OFFERS)).expect("it is written");
        let mut log = block_on(Log::open_or_create(&ground.root(), &OFFERS)).expect("the log opens");
        assert_eq!(block_on(log.commit("test", id, &file, &[])).expect("it is committed"), Committed::Done);
        let open = std::fs::File::open(ground.root().join("offers").join(&file.path)).expect("the file is there");
        let mut reader = ParquetReader::new(open);
        let facts = reader.get_metadata().expect("it is Parquet").key_value_metadata().clone().expect("it has facts");
        let version = facts.iter().find(|fact| fact.key == "gpuledger.schema_version").and_then(|fact| fact.value.clone());
        assert_eq!(version, Some(SCHEMA_VERSION.to_string()));
    }
    let snapshots = block_on(read::snapshots(&ground.root())).expect("the log reads");
    for (snapshot, amount) in snapshots.iter().skip(1).zip(["9.99999", "143.20417", "525600"]) {
        let rows = read::offers(snapshot).expect("the file opens").collect().expect("the rows read");
        assert_eq!(rows.column("published_amount").expect("it is there").dtype(), &DataType::Decimal(38, 12));
        let cell = gpuledger::frame::Cell::at(&rows, "published_amount", 0).expect("there is a row").text();
        assert_eq!(cell, amount);
    }
}

#[test]
fn a_file_that_is_there_is_never_replaced_by_one_that_must_be_new() {
    let folder = tempfile::tempdir().expect("there is room for a folder");
    let (drafts, path) = (folder.path().join(".drafts"), folder.path().join("a/b/c.json"));
    gpuledger::archive::write_new(&drafts, &path, b"first").expect("it is new");
    let Err(ArchiveError::Io { source, .. }) = gpuledger::archive::write_new(&drafts, &path, b"second") else {
        panic!("the file was replaced")
    };
    assert_eq!(source.kind(), std::io::ErrorKind::AlreadyExists);
    assert_eq!(std::fs::read(&path).expect("it is there"), b"first");
}
