//! Builders for tests of a whole night: a dataset in a folder of its own, `collect` through the library and through the
//! program, and what stands in the dataset afterwards.

pub mod blessed;
pub mod internet;
pub mod nightly;
pub mod rough;
pub mod service;
pub mod shop;
pub mod webhook;
pub mod whole;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use clap::Parser as _;
use gpuledger::cli::{Cli, Verb};
use gpuledger::run::{self, Night, RunError};
use gpuledger::snapshot::read;
use gpuledger_scrapers::recordings;
use polars::prelude::DataFrame;
use tempfile::TempDir;

/// A dataset that goes away with the test.
pub struct Dataset {
    folder: TempDir,
}

impl Dataset {
    pub fn new() -> Self {
        Self { folder: tempfile::tempdir().expect("there is room for a folder") }
    }

    pub fn root(&self) -> PathBuf {
        self.folder.path().join("output")
    }

    /// `collect` through the library.
    pub async fn collect(&self, args: &[&str]) -> Result<Night, RunError> {
        let root = self.root();
        let output = root.to_str().expect("a temporary folder's name is text");
        let line = [&["gpuledger", "collect", "--output", output], args].concat();
        match Cli::try_parse_from(line).expect("the command line reads").verb {
            Verb::Collect(collect) => run::collect(&collect).await,
            other => unreachable!("{other:?} is not what was typed"),
        }
    }

    /// The program with a verb on this dataset.
    pub fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_gpuledger"));
        command.args(args).arg("--output").arg(self.root()).env("NO_COLOR", "1");
        command
    }

    pub fn run(&self, args: &[&str]) -> Said {
        Said::of(&self.command(args).output().expect("the program starts"))
    }

    /// The rows of the snapshots, oldest first.
    pub async fn offers(&self) -> Vec<DataFrame> {
        let snapshots = read::snapshots(&self.root()).await.expect("the log reads");
        let rows = |snapshot| read::offers(snapshot).expect("the file opens").collect().expect("the rows read");
        snapshots.iter().map(rows).collect()
    }

    /// Parquet files of a table below its folder, whether the log knows them or not, with their bytes.
    pub fn files(&self, table: &str) -> Vec<(PathBuf, Vec<u8>)> {
        let root = self.root().join(table);
        let is_data = |path: &PathBuf| path.extension().is_some_and(|extension| extension == "parquet");
        let paths = all_files(&root).into_iter().filter(is_data);
        paths.map(|path| (path.strip_prefix(&root).expect("it is below").to_owned(), bytes_of(&path))).collect()
    }

    /// Paths that the log of a table has ever added, in the log's own words.
    pub fn logged(&self, table: &str) -> BTreeSet<PathBuf> {
        let log = all_files(&self.root().join(table).join("_delta_log"));
        let text: String = log.iter().map(|path| String::from_utf8_lossy(&bytes_of(path)).into_owned()).collect();
        let actions = text.lines().filter_map(|line| serde_json::from_str::<serde_json::Value>(line).ok());
        actions.filter_map(|action| Some(PathBuf::from(action["add"]["path"].as_str()?))).collect()
    }
}

/// What the program said.
pub struct Said {
    pub exit: Option<i32>,
    pub data: String,
    pub talk: String,
}

impl Said {
    pub fn of(output: &Output) -> Self {
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        Self { exit: output.status.code(), data: text(&output.stdout), talk: text(&output.stderr) }
    }
}

/// Every file below a folder, in order of its path; none where there is no folder.
pub fn all_files(folder: &Path) -> Vec<PathBuf> {
    let Ok(entries) = std::fs::read_dir(folder) else { return Vec::new() };
    let mut files = Vec::new();
    for entry in entries {
        let path = entry.expect("the folder can be listed").path();
        if path.is_dir() {
            files.extend(all_files(&path));
        } else {
            files.push(path);
        }
    }
    files.sort();
    files
}

pub fn bytes_of(path: &Path) -> Vec<u8> {
    std::fs::read(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// Writes the pages of a provider's newest recording as files `PROVIDER/NAME`, for `--from`.
pub fn write_pages(into: &Path, provider: &str, name: impl Fn(usize, &str) -> String, change: impl Fn(String) -> String) {
    let recording = recordings::newest(provider).expect("it has a recording");
    let folder = into.join(provider);
    std::fs::create_dir_all(&folder).expect("there is room for a folder");
    for (index, page) in recording.pages.into_iter().enumerate() {
        let body = change(String::from_utf8(page.body).expect("the page is text"));
        std::fs::write(folder.join(name(index, &page.name)), body).expect("there is room for a page");
    }
}

/// A column as text, null as nothing.
pub fn texts(rows: &DataFrame, column: &str) -> Vec<String> {
    let cell = |row| gpuledger::frame::Cell::at(rows, column, row).expect("the column exists").text();
    (0..rows.height()).map(cell).collect()
}
