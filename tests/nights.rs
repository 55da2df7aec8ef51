//! The night after many nights opens as few files as the night after few.

use std::collections::BTreeSet;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Instant;

use crate::support::whole::{Ground, block_on};
use chrono::{Days, NaiveDate};
use gpuledger::night::SnapshotId;
use gpuledger::offer::{COVERAGE, OFFERS, RATES, Table};
use gpuledger::snapshot::log::{Committed, Log, NewFile};

const AT: &str = "2026-10-30T18:00:00Z";

/// Puts nights before the one that is there: copies of its files under earlier names, and of its entry in each log.
async fn add_history(root: &Path, nights: u64) {
    let last: SnapshotId = AT.replace(':', "-").parse().expect("it is an id");
    for table in [&OFFERS, &COVERAGE, &RATES] {
        let table: &'static Table = table;
        let log = Log::open(root, table).await.expect("the log reads").expect("there is one");
        let file = log.files().expect("the log reads").remove(0);
        let bytes = std::fs::read(&file.file).expect("the file reads");
        let entries = root.join(table.name).join("_delta_log");
        let entry = std::fs::read_to_string(entries.join(format!("{:020}.json", 1))).expect("the entry reads");
        for night in 1..=nights {
            let day = last.date().checked_sub_days(Days::new(night)).expect("there was a day");
            let name = format!("{day}T18-00-00Z-0123456789abcdef.parquet");
            let path = if table.is_partitioned { format!("{day}/{name}") } else { name };
            let place = root.join(table.name).join(&path);
            std::fs::create_dir_all(place.parent().expect("it stands in a folder")).expect("there is room for a folder");
            std::fs::write(&place, &bytes).expect("there is room for a file");
            let version = night + 1;
            let text: String = entry.lines().map(|line| changed(line, table, &path, day, version)).collect();
            std::fs::write(entries.join(format!("{version:020}.json")), text).expect("there is room for an entry");
        }
        // The program's own commit, which puts the log together in a checkpoint.
        let mut log = Log::open(root, table).await.expect("the log reads").expect("there is one");
        let before = last.date().checked_sub_days(Days::new(nights + 1)).expect("there was a day");
        let path = format!("{before}T18-00-00Z-0123456789abcdef.parquet");
        std::fs::write(root.join(table.name).join(&path), &bytes).expect("there is room for a file");
        let new = NewFile { path, bytes: file.bytes, stats: stats(table, before), is_import: false };
        let id = format!("{before}T18-00-00Z").parse().expect("it is an id");
        assert_eq!(log.commit("test", id, &new, &[]).await.expect("the log is written"), Committed::Done);
        assert!(entries.join("_last_checkpoint").is_file(), "{} has no checkpoint", table.name);
    }
}

/// An action of an entry as it would be on another day.
fn changed(line: &str, table: &Table, path: &str, day: NaiveDate, version: u64) -> String {
    let mut action: serde_json::Value = serde_json::from_str(line).expect("the log is JSON");
    if let Some(add) = action.get_mut("add") {
        add["path"] = path.into();
        add["stats"] = stats(table, day).into();
        add["tags"]["gpuledger.version"] = version.to_string().into();
        if table.is_partitioned {
            add["partitionValues"]["snapshot_date"] = day.to_string().into();
        }
    }
    if let Some(transaction) = action.get_mut("txn") {
        transaction["appId"] = format!("gpuledger/{day}T18-00-00Z").into();
    }
    action.to_string() + "\n"
}

fn stats(table: &Table, day: NaiveDate) -> String {
    let bounds =
        if table.name == RATES.name { serde_json::json!({ "rate_date": day.to_string() }) } else { serde_json::json!({}) };
    serde_json::json!({ "numRecords": 22, "minValues": bounds, "maxValues": bounds, "nullCount": {} }).to_string()
}

/// Files of the dataset that a night opens, each once, however often it is read from; `None` without strace.
fn opened_by_a_night(ground: &Ground, at: &str) -> Option<BTreeSet<String>> {
    let log = ground.root().with_extension("trace");
    let mut command = Command::new("strace");
    command.args(["-f", "-qq", "-e", "trace=openat", "-e", "status=successful", "-o"]).arg(&log);
    command.arg(env!("CARGO_BIN_EXE_gpuledger")).args(ground.args(at));
    let ended = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).status();
    if !ended.is_ok_and(|ended| ended.success()) {
        assert!(std::env::var_os("GPULEDGER_STRACE").is_none(), "strace is not here or may not watch a process");
        return None;
    }
    let text = std::fs::read_to_string(&log).expect("strace writes its log");
    let root = ground.root().display().to_string();
    let paths = text.lines().filter_map(|line| line.split('"').nth(1)).filter_map(|path| path.strip_prefix(&root));
    Some(paths.filter(|path| path.contains('.') && !path.starts_with("/.drafts")).map(str::to_owned).collect())
}

#[test]
fn a_night_after_many_opens_as_few_files_as_a_night_after_few() {
    let many = if std::env::var_os("GPULEDGER_STRACE").is_some() { 365 } else { 140 };
    let one_night = Ground::new();
    assert_eq!(one_night.night(AT).0, Some(0));
    assert_eq!(one_night.check().len(), 1);
    let mut counts = Vec::new();
    for nights in [40, many] {
        let ground = one_night.copy();
        block_on(add_history(&ground.root(), nights));
        let started = Instant::now();
        assert_eq!(ground.night("2026-10-31T18:00:00Z").0, Some(0));
        eprintln!("the night after {nights} nights took {:.2} s", started.elapsed().as_secs_f64());
        let Some(opened) = opened_by_a_night(&ground, "2026-11-01T18:00:00Z") else {
            eprintln!("skipped: strace is not here or may not watch a process");
            return;
        };
        let of = |part: &str| opened.iter().filter(|path| path.contains(part)).count();
        let (logs, files) = (of("/_delta_log/"), opened.len() - of("/_delta_log/"));
        eprintln!("the night after {nights} nights opened {logs} entries of logs and {files} other files");
        counts.push((logs, files));
    }
    assert_eq!(counts[0], counts[1], "entries of logs and other files opened after 40 nights and after {many}");
}
