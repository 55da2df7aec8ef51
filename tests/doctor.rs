//! `doctor` on datasets that are damaged in every way it knows: each has its line, with the command that mends it.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::LazyLock;

use crate::support::whole::Ground;

const BEFORE: &str = "2026-10-29T18:00:00Z";
const AT: &str = "2026-10-30T18:00:00Z";

fn id(at: &str) -> String {
    at.replace(':', "-")
}

/// A dataset of two nights, made once and copied.
fn two_nights() -> Ground {
    static MADE: LazyLock<Ground> = LazyLock::new(|| {
        let ground = Ground::new();
        for at in [BEFORE, AT] {
            let (exit, said) = ground.night(at);
            assert_eq!(exit, Some(0), "{said}");
        }
        ground
    });
    MADE.copy()
}

/// What the doctor says: exit code and lines as check, state, says, mend.
fn doctor(ground: &Ground, args: &[&str]) -> (Option<i32>, Vec<[String; 4]>) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_gpuledger"));
    command.args(["doctor", "--format", "json"]).args(args).arg("--output").arg(ground.root());
    let output = command.env("NO_COLOR", "1").env("GCP_API_KEY", "not-to-be-shown").output().expect("the program starts");
    let text = String::from_utf8(output.stdout).expect("it prints text");
    assert!(!text.contains("not-to-be-shown"), "{text}");
    let lines: Vec<serde_json::Value> = serde_json::from_str(&text).unwrap_or_else(|error| panic!("{error}: {text}"));
    let field = |line: &serde_json::Value, name: &str| line[name].as_str().unwrap_or_default().to_owned();
    (output.status.code(), lines.iter().map(|line| ["check", "state", "says", "mend"].map(|name| field(line, name))).collect())
}

/// The one line of a check that is not fine must be of this state, say these words and mend it with these.
fn expect(ground: &Ground, args: &[&str], check: &str, state: &str, says: &str, mend: &str) {
    let (exit, lines) = doctor(ground, args);
    let found: Vec<_> = lines.iter().filter(|line| line[0] == check && line[1] != "ok").collect();
    assert!(!found.is_empty(), "nothing is said of {check}: {lines:#?}");
    assert!(found.iter().any(|line| line[1] == state && line[2].contains(says) && line[3].contains(mend)), "{check}: {found:#?}");
    let has_problem = lines.iter().any(|line| line[1] == "problem");
    assert_eq!(exit, Some(if has_problem { 14 } else { 0 }), "{lines:#?}");
}

fn newest(folder: &Path) -> PathBuf {
    let mut files: Vec<PathBuf> = Vec::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(&folder).expect("the folder can be listed") {
            let path = entry.expect("the entry reads").path();
            let is_log = path.file_name().is_some_and(|name| name == "_delta_log");
            if path.is_dir() && !is_log {
                folders.push(path)
            } else if path.is_file() {
                files.push(path)
            }
        }
    }
    files.sort();
    files.pop().expect("there is a file")
}

#[test]
fn a_whole_dataset_has_no_problem_and_a_mended_one_neither() {
    let ground = two_nights();
    let (exit, lines) = doctor(&ground, &["--all"]);
    assert!(lines.iter().all(|line| line[1] != "problem" || line[0] == "disk"), "{lines:#?}");
    assert!(exit == Some(0) || lines.iter().any(|line| line[0] == "disk" && line[1] == "problem"), "{lines:#?}");
    for check in ["folder", "lock", "offers log", "rates files", "coverage strays", "offers columns", "archive", "records"] {
        assert!(lines.iter().any(|line| line[0] == check && line[1] == "ok"), "{check}: {lines:#?}");
    }
    assert!(lines.iter().any(|line| line[0] == "keys" && line[2].contains("GCP_API_KEY is set")), "{lines:#?}");
    assert_eq!(ground.check().len(), 2, "the doctor changed something");
}

#[test]
fn the_lines_for_people_have_the_command_below() {
    let ground = two_nights();
    let stray = ground.root().join("offers/2026-10-30/stray.parquet");
    std::fs::write(&stray, b"x").expect("there is room for a file");
    let output = Command::new(env!("CARGO_BIN_EXE_gpuledger")).args(["doctor", "--output"]).arg(ground.root()).output();
    let text = String::from_utf8(output.expect("the program starts").stdout).expect("it prints text");
    let line = text.lines().position(|line| line.starts_with("problem  offers strays")).expect("there is the line");
    let next = text.lines().nth(line + 1).expect("there is one more");
    assert_eq!(next.trim(), format!("→ rm {}", stray.display()));
}

#[test]
fn files_of_a_table_that_are_gone_cut_changed_or_unknown_are_named() {
    let ground = two_nights();
    let file = newest(&ground.root().join("offers"));
    let whole = std::fs::read(&file).expect("the file reads");
    let path = file.display().to_string();

    std::fs::remove_file(&file).expect("the file can be taken away");
    expect(&ground, &[], "offers files", "problem", "the log names it", &path);
    std::fs::write(&file, &whole[..whole.len() / 2]).expect("the file can be cut");
    expect(&ground, &[], "offers files", "problem", "bytes and the log says", "cp -p BACKUP/offers/");
    let mut changed = whole.clone();
    changed[whole.len() / 2] ^= 1;
    std::fs::write(&file, &changed).expect("the file can be changed");
    expect(&ground, &[], "offers files", "problem", "not those that were published", "cp -p BACKUP/offers/");
    std::fs::write(&file, &whole).expect("the file can be mended");

    for table in ["offers", "coverage", "rates"] {
        let stray = ground.root().join(table).join("2026-10-30T18-00-00Z-0123456789abcdef.parquet");
        std::fs::write(&stray, &whole).expect("there is room for a file");
        expect(&ground, &[], &format!("{table} strays"), "problem", "is in no log", &format!("rm {}", stray.display()));
        std::fs::remove_file(&stray).expect("what the doctor says can be done");
    }
    assert_eq!(ground.check().len(), 2);
}

#[test]
fn a_log_that_does_not_read_is_named() {
    let ground = two_nights();
    for table in ["offers", "coverage", "rates"] {
        let entry = ground.root().join(table).join("_delta_log/00000000000000000001.json");
        let whole = std::fs::read(&entry).expect("the log reads");
        std::fs::write(&entry, b"{\"add\":").expect("the log can be damaged");
        expect(&ground, &[], &format!("{table} log"), "problem", "log of table", "cp -rp BACKUP/");
        std::fs::write(&entry, whole).expect("the log can be mended");
    }
}

#[test]
fn what_a_dead_run_left_is_named_and_goes_with_the_next_night() {
    let ground = two_nights();
    let drafts = ground.root().join(".drafts");
    std::fs::create_dir_all(&drafts).expect("there is room for a folder");
    std::fs::write(drafts.join("1-1"), b"half").expect("there is room for a draft");
    expect(&ground, &[], "left over", "warning", "1 drafts", "gpuledger collect");
    let left = "offers/2026-10-31/2026-10-31T18-00-00Z-0123456789abcdef.parquet";
    std::fs::create_dir_all(ground.root().join("offers/2026-10-31")).expect("there is room for a folder");
    std::fs::write(ground.root().join(left), b"whole").expect("there is room for a file");
    std::fs::write(ground.root().join(".on-its-way"), left).expect("there is room for a name");
    expect(&ground, &[], "left over", "warning", "2026-10-31T18-00-00Z", "gpuledger collect");
    expect(&ground, &[], "offers strays", "warning", "a run that died left it", "gpuledger collect");
    assert_eq!(ground.night("2026-11-01T18:00:00Z").0, Some(0));
    assert_eq!(ground.check().len(), 3);
}

#[test]
fn coverage_that_does_not_go_with_the_offers_is_named() {
    let ground = two_nights();
    let last = |table: &str| ground.root().join(table).join("_delta_log/00000000000000000002.json");
    let hidden = ground.root().join("kept.json");
    std::fs::rename(last("coverage"), &hidden).expect("the entry can be taken away");
    expect(&ground, &[], "coverage and offers", "problem", &id(AT), "BACKUP/coverage");
    std::fs::rename(&hidden, last("coverage")).expect("the entry can be brought back");
    std::fs::rename(last("offers"), &hidden).expect("the entry can be taken away");
    expect(&ground, &[], "coverage and offers", "warning", "no offers", &format!("collect --at {AT}"));
}

#[test]
fn the_archive_and_the_records_are_looked_through() {
    let ground = two_nights();
    let object = newest(&ground.root().join("raw/objects"));
    let whole = std::fs::read(&object).expect("the object reads");
    let mut damaged = whole.clone();
    let middle = whole.len() / 2;
    damaged[middle] ^= 0x20;
    std::fs::write(&object, &damaged).expect("the object can be damaged");
    expect(&ground, &["--all"], "archive", "problem", &object.display().to_string(), "cp -p BACKUP/raw/objects/");
    std::fs::remove_file(&object).expect("the object can be taken away");
    expect(&ground, &[], "archive", "problem", "is not in the archive", "cp -p BACKUP/raw/objects/");
    std::fs::write(&object, &whole).expect("the object can be mended");

    let receipts = newest(&ground.root().join("raw/receipts"));
    let text = std::fs::read(&receipts).expect("the receipts read");
    std::fs::write(&receipts, b"[{").expect("the receipts can be damaged");
    expect(&ground, &[], "archive", "problem", "does not read as receipts", "BACKUP/raw/receipts/");
    std::fs::write(&receipts, text).expect("the receipts can be mended");

    let record = ground.root().join(format!("runs/{}.json", id(AT)));
    std::fs::write(&record, b"{").expect("the record can be damaged");
    expect(&ground, &[], "records", "warning", "does not read", "BACKUP/runs/");
    std::fs::remove_file(&record).expect("the record can be taken away");
    expect(&ground, &[], "records", "warning", "has no record", "BACKUP/runs/");
}

#[test]
fn the_holder_of_the_lock_is_named_and_a_lock_that_is_none() {
    let ground = two_nights();
    let held = gpuledger::lock::take(&ground.root()).expect("nobody else writes");
    let (exit, lines) = doctor(&ground, &[]);
    let owner = format!("held by process {}", std::process::id());
    assert!(lines.iter().any(|line| line[0] == "lock" && line[1] == "ok" && line[2].contains(&owner)), "{exit:?}: {lines:#?}");
    drop(held);
    std::fs::remove_file(ground.root().join(".lock")).expect("the file can be taken away");
    std::fs::create_dir(ground.root().join(".lock")).expect("there is room for a folder");
    expect(&ground, &[], "lock", "problem", "is a folder", "rmdir");
}

#[test]
fn a_folder_that_is_none_is_not_there_or_has_a_file_in_its_way_is_named() {
    let ground = Ground::new();
    expect(&ground, &[], "folder", "warning", "is not there", "gpuledger collect");
    std::fs::write(ground.root(), b"a file").expect("there is room for a file");
    expect(&ground, &[], "folder", "problem", "is a file", "--output");
    std::fs::remove_file(ground.root()).expect("the file can be taken away");
    assert_eq!(ground.night(AT).0, Some(0));
    std::fs::remove_dir_all(ground.root().join("runs")).expect("the records can be taken away");
    std::fs::write(ground.root().join("runs"), b"a file").expect("there is room for a file");
    expect(&ground, &[], "folder", "problem", "runs", "chmod");
}

#[test]
fn a_snapshot_of_the_future_puts_the_clock_in_doubt() {
    let ground = Ground::new();
    assert_eq!(ground.night("2126-10-30T18:00:00Z").0, Some(0));
    expect(&ground, &[], "clock", "warning", "2126-10-30", "set-ntp");
}

#[test]
fn a_schedule_that_is_never_due_is_named_and_one_that_is_says_when() {
    let ground = Ground::new();
    let folder = tempfile::tempdir().expect("there is room for a folder");
    let folder_words = ["--schedules", folder.path().to_str().expect("a temporary folder's name is text")];
    let text = std::fs::read_to_string("schedules/nightly.toml").expect("the schedule reads");
    std::fs::write(folder.path().join("a.toml"), &text).expect("there is room for a file");
    let (_, lines) = doctor(&ground, &folder_words);
    let said: Vec<_> = lines.iter().filter(|line| line[0] == "schedule").map(|line| line[2].as_str()).collect();
    assert!(said.len() == 1 && said[0].starts_with("nightly is due next at 2") && said[0].ends_with("T02:00:00Z"), "{said:?}");
    std::fs::write(folder.path().join("b.toml"), text.replace("0 2 * * *", "0 2 30 2 *")).expect("there is room for a file");
    expect(&ground, &folder_words, "schedule", "problem", "never comes", "gpuledger schedule next");
}

#[test]
fn keys_that_are_missing_are_named_without_any_that_is_there() {
    let ground = Ground::new();
    let (_, lines) = doctor(&ground, &[]);
    let missing: Vec<_> = lines.iter().filter(|line| line[0] == "keys" && line[1] == "warning").collect();
    for line in &missing {
        let name = line[2].split(' ').next().expect("a line has words");
        assert!(line[2].contains("is skipped") && line[3].starts_with(&format!("export {name}=")), "{line:?}");
    }
}
