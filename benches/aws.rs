//! How fast an AWS price list is read, beside counting its lines and beside gpuhunt reading it.
//!
//! `GPULEDGER_BULK_AWS` names the list, `GPULEDGER_GPUHUNT_PYTHON` the Python that has gpuhunt. All read the same file from
//! the page cache in the same run, and take turns, so that whatever else the machine does falls on all.

#![expect(clippy::print_stdout, reason = "the table is what the bench is for")]

use std::fs::File;
use std::hint::black_box;
use std::io::{self, Read as _};
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use gpuledger_scrapers::contract::{Page, SCOPE_ALL, Scraper};
use gpuledger_scrapers::find;
use gpuledger_scrapers::sieve::{self, Sifting};
use sha2::{Digest as _, Sha256};

/// Every measurement is the fastest of this many.
const ROUNDS: usize = 7;

/// Bytes hashed at once.
const CHUNK_BYTES: usize = 1 << 18;

fn main() {
    let Some(path) = std::env::var_os("GPULEDGER_BULK_AWS") else {
        println!("left out: GPULEDGER_BULK_AWS does not name a price list");
        return;
    };
    let path = Path::new(&path);
    let scraper = find("aws").expect("the scraper is there");
    let bytes = std::fs::metadata(path).expect("the list is there").len();
    let (mut sieve, mut parse, mut hash, mut count) = (Duration::MAX, Duration::MAX, Duration::MAX, Duration::MAX);
    let (mut offers, mut kept_bytes) = (0, 0);
    for _ in 0..ROUNDS {
        let mut kept = Vec::new();
        sieve = sieve.min(time(|| kept = sieved(scraper, path)));
        kept_bytes = kept.len();
        let page = page(kept);
        parse = parse.min(time(|| offers = scraper.parse(std::slice::from_ref(&page)).expect("the list parses").offers.len()));
        hash = hash.min(time(|| drop(black_box(hashed(path)))));
        count = count.min(time(|| assert!(run(Command::new("wc").arg("-l").arg(path)).is_some(), "wc runs")));
    }
    let ours = sieve + parse;
    println!("{:34} {:>9} {:>9}  of {} MB", "", "ms", "MB/s", bytes / 1_000_000);
    line("sieve and parse", ours, bytes);
    line("  sieve", sieve, bytes);
    line("  parse of what it keeps", parse, bytes);
    line("SHA-256 of the whole, beside it", hash, bytes);
    line("wc -l", count, bytes);
    println!("offers {offers}, of every pricing model; kept {:.1} MB", kept_bytes as f64 / 1e6);
    println!(
        "sieve (read on a second thread) and parse take {:.1} times as long as wc -l",
        ours.as_secs_f64() / count.as_secs_f64()
    );
    peak();
    let Some(python) = std::env::var_os("GPULEDGER_GPUHUNT_PYTHON") else {
        println!("gpuhunt left out: GPULEDGER_GPUHUNT_PYTHON does not name a Python that has it");
        return;
    };
    let driver = Path::new(env!("CARGO_MANIFEST_DIR")).join("../benches/gpuhunt_aws.py");
    let said = run(Command::new(python).arg(driver).arg(path).arg("3")).expect("gpuhunt runs");
    let (seconds, found) = said.trim().split_once(' ').expect("seconds and offers");
    let gpuhunt = Duration::from_secs_f64(seconds.parse().expect("seconds"));
    line("gpuhunt, on-demand only", gpuhunt, bytes);
    println!(
        "gpuhunt finds {found} offers of any machine; ours are {:.1} times as fast",
        gpuhunt.as_secs_f64() / ours.as_secs_f64()
    );
}

fn sieved(scraper: &dyn Scraper, path: &Path) -> Vec<u8> {
    let file = File::open(path).expect("the list opens");
    let mut sifting: Option<Sifting> = None;
    let look = |chunk: &[u8]| {
        let start = || scraper.sieve(chunk).expect("it is a bulk file").start();
        sifting.get_or_insert_with(start).push(chunk).map_err(io::Error::other)
    };
    sieve::chunks(file, look).expect("the list reads");
    sifting.expect("the list is not empty").finish()
}

fn hashed(path: &Path) -> Vec<u8> {
    let (mut file, mut chunk, mut hash) = (File::open(path).expect("the list opens"), vec![0; CHUNK_BYTES], Sha256::new());
    loop {
        match file.read(&mut chunk).expect("the list reads") {
            0 => return hash.finalize().to_vec(),
            read => hash.update(&chunk[..read]),
        }
    }
}

fn page(body: Vec<u8>) -> Page {
    let observed_at = "2026-09-15T00:00:00Z".parse().expect("a time");
    Page {
        name: "prices-all".to_owned(),
        scope: SCOPE_ALL.to_owned(),
        url: "index.csv".to_owned(),
        observed_at,
        sha256: String::new(),
        body,
    }
}

fn time(work: impl FnOnce()) -> Duration {
    let started = Instant::now();
    work();
    started.elapsed()
}

fn line(what: &str, time: Duration, bytes: u64) {
    println!("{what:34} {:>9.1} {:>9.0}", time.as_secs_f64() * 1e3, bytes as f64 / 1e6 / time.as_secs_f64());
}

fn run(command: &mut Command) -> Option<String> {
    let output = command.output().ok().filter(|output| output.status.success())?;
    String::from_utf8(output.stdout).ok()
}

/// The most memory this process has held so far.
fn peak() {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    if let Some(line) = status.lines().find(|line| line.starts_with("VmHWM")) {
        println!("most memory held: {}", line.trim_start_matches("VmHWM:").trim());
    }
}
