//! A dataset of small nights, and whether all of it is as it should be: tables, archive and records.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::LazyLock;

use gpuledger::archive::{Archive, Receipt};
use gpuledger::frame::Cell;
use gpuledger::offer::{COVERAGE, OFFERS, RATES, Table};
use gpuledger::snapshot::log::Log;
use gpuledger::snapshot::read;
use gpuledger_scrapers::recordings;
use polars::prelude::DataFrame;
use tempfile::TempDir;
use tokio::runtime::Runtime;

/// Offers of the small night.
pub const OFFERS_A_NIGHT: usize = 22;

/// A dataset, and pages of one provider and of exchange rates to make its nights from.
pub struct Ground {
    folder: TempDir,
}

impl Ground {
    pub fn new() -> Self {
        let ground = Self { folder: tempfile::tempdir().expect("there is room for a folder") };
        ground.write_pages(|text| text);
        ground
    }

    /// Writes the pages that the next night is made from.
    pub fn write_pages(&self, change: impl Fn(String) -> String) {
        for (provider, wanted) in [("lambda", "pricing"), ("ecb", "daily")] {
            let recording = recordings::newest(provider).expect("it has a recording");
            let page = recording.pages.into_iter().find(|page| page.name == wanted).expect("the recording has the page");
            let folder = self.pages().join(provider);
            std::fs::create_dir_all(&folder).expect("there is room for a folder");
            let body = String::from_utf8(page.body).expect("the page is text");
            let body = if provider == "lambda" { change(body) } else { body };
            std::fs::write(folder.join(wanted), body).expect("there is room for a page");
        }
    }

    /// Another dataset that is the same to the byte.
    pub fn copy(&self) -> Self {
        let copy = Self::new();
        copy_all(&self.root(), &copy.root());
        copy
    }

    pub fn root(&self) -> PathBuf {
        self.folder.path().join("output")
    }

    pub fn pages(&self) -> PathBuf {
        self.folder.path().join("pages")
    }

    /// The arguments of a night of a time.
    pub fn args(&self, at: &str) -> Vec<String> {
        let text = |path: PathBuf| path.to_str().expect("a temporary folder's name is text").to_owned();
        ["collect", "--at", at, "--from", &text(self.pages()), "--output", &text(self.root())].map(str::to_owned).to_vec()
    }

    pub fn command(&self, at: &str) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_gpuledger"));
        command.args(self.args(at)).env("NO_COLOR", "1").stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
        command
    }

    /// Collects a night: the exit code, and what was said of it.
    pub fn night(&self, at: &str) -> (Option<i32>, String) {
        let ended = self.command(at).output().expect("the program starts");
        (ended.status.code(), String::from_utf8_lossy(&ended.stderr).into_owned())
    }

    /// The published snapshots, oldest first, each with all its rows.
    pub fn snapshots(&self) -> Vec<String> {
        let root = self.root();
        let snapshots = block_on(read::snapshots(&root)).expect("the log reads");
        for snapshot in &snapshots {
            let rows = read::offers(snapshot).expect("the file opens").collect().expect("the rows read");
            assert_eq!((rows.height(), snapshot.rows()), (OFFERS_A_NIGHT, Some(OFFERS_A_NIGHT)), "{}", snapshot.id);
        }
        snapshots.iter().map(|snapshot| snapshot.id.to_string()).collect()
    }

    /// Everything that must hold after a run that was left alone; the ids of the snapshots.
    pub fn check(&self) -> Vec<String> {
        let root = self.root();
        let ids = self.snapshots();
        let published: BTreeSet<&str> = ids.iter().map(String::as_str).collect();
        assert_eq!(published.len(), ids.len(), "a snapshot is there twice: {ids:?}");
        for table in [&OFFERS, &COVERAGE, &RATES] {
            let (on_disk, logged) = (parquet_below(&root, table), logged(&root, table));
            assert_eq!(on_disk, logged, "files of {} on the disk and in the log", table.name);
            for path in all_below(&root.join(table.name).join("_delta_log")) {
                let name = path.file_name().expect("a file has a name").to_string_lossy().into_owned();
                let is_known = name == "_last_checkpoint" || name.ends_with(".checkpoint.parquet") || name.ends_with(".json");
                assert!(is_known && !name.contains('#'), "{name}");
            }
        }
        let snapshots = block_on(read::snapshots(&root)).expect("the log reads");
        let coverage = block_on(read::coverage(&root, &snapshots)).expect("the coverage reads");
        let covered = unique(&coverage, &["snapshot_id", "provider", "scope"]);
        assert_eq!(covered.len(), ids.len() * 2, "two providers a night");
        let day = |text: &str| text.parse().expect("it is a day");
        let rates = block_on(read::rates(&root, day("1999-01-01"), day("2100-01-01"))).expect("the rates read");
        assert_eq!(unique(&rates, &["rate_date", "currency_code"]).is_empty(), ids.is_empty());
        for id in texts(&rates, "snapshot_id") {
            assert!(published.contains(id.as_str()), "rates of {id}, which is not published");
        }
        self.check_beside(&ids);
        ids
    }

    /// Archive, records, and nothing left over.
    fn check_beside(&self, ids: &[String]) {
        let root = self.root();
        let archive = Archive::below(&root);
        for id in ids {
            let receipts = all_below(&root.join("raw/receipts").join(id));
            assert_eq!(receipts.len(), 2, "{id}: {receipts:?}");
            for path in receipts {
                let text = std::fs::read_to_string(&path).expect("the receipts read");
                for receipt in serde_json::from_str::<Vec<Receipt>>(&text).expect("they are receipts") {
                    archive.page(&receipt).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
                }
            }
            let record = std::fs::read_to_string(root.join(format!("runs/{id}.json"))).expect("there is a record");
            assert!(record.contains("\"published\"") && record.contains(id), "{record}");
            assert!(root.join(format!("runs/{id}.findings.parquet")).is_file(), "{id}");
        }
        assert_eq!(all_below(&root.join(".drafts")), Vec::<PathBuf>::new());
        let lists =
            std::fs::read_dir(&root).expect("the dataset can be listed").map(|entry| entry.expect("an entry").file_name());
        let lists: Vec<_> = lists.filter(|name| name.to_string_lossy().starts_with(".on-its-way")).collect();
        assert_eq!(lists.len(), 0, "{lists:?}");
    }
}

pub fn block_on<T>(future: impl Future<Output = T>) -> T {
    // polars reads with several threads or not at all.
    static RUNTIME: LazyLock<Runtime> = LazyLock::new(|| Runtime::new().expect("a runtime starts"));
    RUNTIME.block_on(future)
}

/// Different values of some columns; none may be there twice.
fn unique(rows: &DataFrame, columns: &[&str]) -> BTreeSet<Vec<String>> {
    let row = |row| columns.iter().map(|column| Cell::at(rows, column, row).expect("the column exists").text()).collect();
    let values: BTreeSet<Vec<String>> = (0..rows.height()).map(row).collect();
    assert_eq!(values.len(), rows.height(), "a row of {columns:?} is there twice");
    values
}

fn texts(rows: &DataFrame, column: &str) -> Vec<String> {
    (0..rows.height()).map(|row| Cell::at(rows, column, row).expect("the column exists").text()).collect()
}

/// Files that a table's log names, each with its size; they must be there.
fn logged(root: &Path, table: &'static Table) -> BTreeSet<(PathBuf, u64)> {
    let Some(log) = block_on(Log::open(root, table)).expect("the log opens") else { return BTreeSet::new() };
    let files = log.files().expect("the log reads");
    files.into_iter().map(|file| (file.file, u64::try_from(file.bytes).expect("a size is not negative"))).collect()
}

fn parquet_below(root: &Path, table: &Table) -> BTreeSet<(PathBuf, u64)> {
    let paths = all_below(&root.join(table.name)).into_iter();
    let data = paths.filter(|path| !path.components().any(|part| part.as_os_str() == "_delta_log"));
    data.map(|path| (path.clone(), std::fs::metadata(&path).expect("the file is there").len())).collect()
}

fn all_below(folder: &Path) -> Vec<PathBuf> {
    let Ok(entries) = std::fs::read_dir(folder) else { return Vec::new() };
    let mut files = Vec::new();
    for entry in entries {
        let path = entry.expect("the folder can be listed").path();
        if path.is_dir() { files.extend(all_below(&path)) } else { files.push(path) }
    }
    files
}

fn copy_all(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).expect("there is room for a folder");
    for path in all_below(from) {
        let copy = to.join(path.strip_prefix(from).expect("it is below"));
        std::fs::create_dir_all(copy.parent().expect("a file stands in a folder")).expect("there is room for a folder");
        std::fs::copy(&path, &copy).expect("there is room for a copy");
    }
}
