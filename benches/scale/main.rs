//! What a large dataset costs: a night of a million rows, a thousand nights, and the questions asked of both.
//!
//! `GPULEDGER_SCALE_DIR` names a folder with room for the data (5 GB at full size), `GPULEDGER_SCALE_PYTHON` the Python that
//! has polars and duckdb. The data are published by the program's own rooms; then `benches/scale_peers.py` runs the program
//! itself beside polars and DuckDB on the same files, cold and warm, and compares the answers.

#![expect(clippy::print_stdout, reason = "the table is what the bench is for")]

mod synthetic;

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use gpuledger::exit::Exit;
use gpuledger::run::{Started, conclude, judge};
use gpuledger::validate::Finding;
use gpuledger_scrapers::contract::PublishedOffer;
use synthetic::Book;

/// Ticks a second of the times in `/proc/self/stat`, the same on every Linux that there is.
const TICKS_PER_SECOND: f64 = 100.0;

fn main() {
    let args: Vec<String> = std::env::args().skip(1).filter(|arg| arg != "--bench").collect();
    if let [part, output, first, nights, rows] = args.as_slice() {
        assert_eq!(part, "nights", "there is no other part");
        let number = |text: &str| text.parse::<u64>().expect("a number");
        publish_nights(Path::new(output), number(first)..number(first) + number(nights), rows.parse().expect("a number"));
        return;
    }
    let Some(folder) = std::env::var_os("GPULEDGER_SCALE_DIR").map(PathBuf::from) else {
        println!("left out: GPULEDGER_SCALE_DIR does not name a folder for the data");
        return;
    };
    let size = |name: &str, full: u64| std::env::var(name).ok().map_or(full, |text| text.parse().expect("a number"));
    let rows = size("GPULEDGER_SCALE_ROWS", 1_000_000);
    let (nights, night_rows) = (size("GPULEDGER_SCALE_NIGHTS", 1_000), size("GPULEDGER_SCALE_NIGHT_ROWS", 100_000));
    let (two, many) = (folder.join("two"), folder.join("many"));
    std::fs::create_dir_all(&folder).expect("the folder can be made");

    println!("two nights of {rows} rows, the first of a dataset and the one after it, a process each");
    for night in 0..2 {
        run(Command::new(own()).args(["nights", text(&two), &night.to_string(), "1", &rows.to_string()]));
    }
    println!("\n{nights} nights of {night_rows} rows, in one process");
    run(Command::new(own()).args(["nights", text(&many), "0", &nights.to_string(), &night_rows.to_string()]));

    match std::env::var_os("GPULEDGER_SCALE_PYTHON") {
        None => println!("the rest left out: GPULEDGER_SCALE_PYTHON does not name a Python that has polars and duckdb"),
        Some(python) => {
            let peers = Path::new(env!("CARGO_MANIFEST_DIR")).join("benches/scale_peers.py");
            run(Command::new(python).arg(peers).arg(env!("CARGO_BIN_EXE_gpuledger")).args([&two, &many]));
        }
    }
    if std::env::var_os("GPULEDGER_SCALE_KEEP").is_none() {
        for data in [two, many] {
            std::fs::remove_dir_all(data).expect("the data can be removed");
        }
    }
}

fn own() -> PathBuf {
    std::env::current_exe().expect("a process has a file")
}

fn text(path: &Path) -> &str {
    path.to_str().expect("the folder's name is text")
}

fn run(command: &mut Command) {
    assert!(command.status().expect("it starts").success(), "{command:?} failed");
}

/// Publishes nights, and says what each costs.
fn publish_nights(output: &Path, nights: std::ops::Range<u64>, rows: usize) {
    let book = Book::of_recordings();
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().expect("a runtime");
    let mut costs = Vec::new();
    let count = nights.end - nights.start;
    for number in nights {
        let (gathered, rates) = (book.night(number, rows), book.rates(number));
        let snapshot = synthetic::id(number);
        let held_before = memory_mb("VmRSS");
        forget_peak();
        let (clock, cpu) = (Instant::now(), cpu_seconds());
        let judged = runtime.block_on(judge(output, snapshot, &gathered, &rates, None)).expect("it can be judged");
        let judging = clock.elapsed();
        let started =
            Started { snapshot, started_at: snapshot.instant(), scheduled: None, is_published: false, sidecars: Vec::new() };
        let night = runtime.block_on(conclude(output, started, judged)).expect("it can be published");
        let whole = clock.elapsed();
        let peak = memory_mb("VmHWM");
        let is_refusal = |finding: &&Finding| !["note", "quarantine_row"].contains(&finding.severity.word());
        let refusals: Vec<_> = night.findings.iter().filter(is_refusal).collect();
        assert!(night.exit == Exit::Good && refusals.is_empty(), "{:?}: {refusals:?}", night.exit);
        costs.push((whole, cpu_seconds() - cpu));
        if count == 1 {
            let held_back = night.findings.iter().filter(|finding| finding.severity.word() == "quarantine_row").count();
            println!("{} rows published, {held_back} held back, {} findings", night.record.offers, night.findings.len());
            println!("of {} offers of all recordings, each about {} bytes held", book.offers(), size_of::<PublishedOffer>());
            line("normalise and validate", judging);
            line("publish", whole - judging);
            line("together", whole);
            println!("user and system {:.2} s", cpu_seconds() - cpu);
            println!("most memory {peak:.0} MB, of which the offers as published were {held_before:.0} MB");
        }
    }
    if count > 1 {
        said("first ten nights", costs.iter().take(10));
        said("last ten nights", costs.iter().rev().take(10));
    }
    let (files, bytes) = parquet(&output.join("offers"));
    println!("{files} files of offers, {:.1} MB, {:.1} bytes a row", bytes as f64 / 1e6, bytes as f64 / (files * rows) as f64);
}

fn line(what: &str, time: Duration) {
    println!("{what:34} {:>9.0} ms", time.as_secs_f64() * 1e3);
}

/// The middle and the fastest of some nights, but for the first of all, which makes the tables.
fn said<'a>(what: &str, nights: impl Iterator<Item = &'a (Duration, f64)>) {
    let mut nights: Vec<_> = nights.collect();
    nights.sort_by_key(|(time, _)| *time);
    let (fastest, middle) = (nights[0], nights[nights.len() / 2]);
    println!(
        "{what:20} fastest {:>6.0} ms, {:.2} s of processor; middle {:>6.0} ms, {:.2} s",
        fastest.0.as_secs_f64() * 1e3,
        fastest.1,
        middle.0.as_secs_f64() * 1e3,
        middle.1
    );
}

fn parquet(folder: &Path) -> (usize, u64) {
    let entries = std::fs::read_dir(folder).expect("the folder reads").map(|entry| entry.expect("an entry").path());
    entries.fold((0, 0), |(files, bytes), path| {
        if path.is_dir() && !path.ends_with("_delta_log") {
            let below = parquet(&path);
            (files + below.0, bytes + below.1)
        } else if path.extension().is_some_and(|extension| extension == "parquet") {
            (files + 1, bytes + std::fs::metadata(&path).expect("a file has a size").len())
        } else {
            (files, bytes)
        }
    })
}

/// A figure of this process's memory.
fn memory_mb(name: &str) -> f64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
    line.and_then(|line| line.trim().trim_end_matches(" kB").parse::<f64>().ok()).map_or(0.0, |kib| kib * 1_024.0 / 1e6)
}

/// Starts the count of the most memory anew.
fn forget_peak() {
    let _ = std::fs::write("/proc/self/clear_refs", "5");
}

fn cpu_seconds() -> f64 {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let after_name = stat.rsplit_once(')').map_or("", |(_, rest)| rest);
    let ticks = |at: usize| after_name.split_whitespace().nth(at).and_then(|ticks| ticks.parse::<f64>().ok());
    (ticks(11).unwrap_or(0.0) + ticks(12).unwrap_or(0.0)) / TICKS_PER_SECOND
}
