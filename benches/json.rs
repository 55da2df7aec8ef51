//! How fast JSON price lists are read, beside the same bytes merely walked through by the JSON reader underneath.
//!
//! The pages lie outside the project: `GPULEDGER_BULK_AZURE`, `GPULEDGER_BULK_GCP` and `GPULEDGER_BULK_OCI` each name a
//! folder of pages. A list that is not named, or whose provider does not exist, is left out of the table.

#![expect(clippy::print_stdout, reason = "the table is what the bench is for")]

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use gpuledger_scrapers::contract::{Page, SCOPE_ALL, SCOPE_INDEX, Scraper};
use gpuledger_scrapers::{assign_scopes, find};
use serde::de::IgnoredAny;

const LISTS: [(&str, &str); 3] =
    [("azure", "GPULEDGER_BULK_AZURE"), ("gcp", "GPULEDGER_BULK_GCP"), ("oci", "GPULEDGER_BULK_OCI")];
/// Every measurement is the fastest of this many.
const ROUNDS: usize = 15;
/// What a parser must reach on one core, in million bytes a second.
const BUDGET_MB_PER_S: f64 = 300.0;

fn main() {
    println!("{:8} {:>9} {:>7} {:>8} {:>12} {:>12} {:>7}", "list", "MB", "pages", "offers", "parse MB/s", "walk MB/s", "share");
    for (provider, variable) in LISTS {
        let (Some(scraper), Some(folder)) = (find(provider), std::env::var_os(variable)) else {
            println!("{provider:8} left out: no such provider, or {variable} is not set");
            continue;
        };
        measure(scraper, Path::new(&folder));
    }
}

fn measure(scraper: &dyn Scraper, folder: &Path) {
    let (pages, refused) = assign_scopes(scraper, pages(folder));
    for (page, error) in refused {
        println!("{} {}: {error}", scraper.manifest().provider, page.name);
    }
    let mut scopes: BTreeMap<String, Vec<Page>> = BTreeMap::new();
    for page in pages.into_iter().filter(|page| page.scope != SCOPE_INDEX) {
        scopes.entry(page.scope.clone()).or_default().push(page);
    }
    let bytes: usize = scopes.values().flatten().map(|page| page.body.len()).sum();
    let (mut offers, mut parse, mut walk) = (0, Duration::MAX, Duration::MAX);
    for _ in 0..ROUNDS {
        offers = 0;
        // The two take turns, so that whatever else the machine does falls on both.
        parse = parse.min(time(|| {
            for (scope, pages) in &scopes {
                match scraper.parse(pages) {
                    Ok(parsed) => offers += parsed.offers.len(),
                    Err(error) => panic!("{} {scope}: {error}", scraper.manifest().provider),
                }
            }
        }));
        walk = walk.min(time(|| {
            for page in scopes.values().flatten() {
                serde_json::from_slice::<IgnoredAny>(&page.body).expect("what parses is JSON");
            }
        }));
    }
    let (parse, walk) = (mb_per_s(bytes, parse), mb_per_s(bytes, walk));
    println!(
        "{:8} {:>9.1} {:>7} {offers:>8} {parse:>12.0} {walk:>12.0} {:>6.0}%{}",
        scraper.manifest().provider,
        bytes as f64 / 1e6,
        scopes.values().map(Vec::len).sum::<usize>(),
        parse / walk * 100.0,
        if parse < BUDGET_MB_PER_S { "  below the budget" } else { "" },
    );
}

fn time(work: impl FnOnce()) -> Duration {
    let start = Instant::now();
    work();
    start.elapsed()
}

fn mb_per_s(bytes: usize, time: Duration) -> f64 {
    bytes as f64 / 1e6 / time.as_secs_f64()
}

/// The JSON files of a folder as pages, in order of their names.
fn pages(folder: &Path) -> Vec<Page> {
    let entries = fs::read_dir(folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    let mut files: Vec<PathBuf> = entries.map(|entry| entry.expect("the folder can be read").path()).collect();
    files.retain(|file| file.extension().is_some_and(|end| end == "json"));
    files.sort();
    files.iter().map(|file| page(file)).collect()
}

fn page(file: &Path) -> Page {
    let body = fs::read(file).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
    Page {
        name: file.file_stem().expect("a file has a name").to_string_lossy().into_owned(),
        scope: SCOPE_ALL.to_owned(),
        url: file.display().to_string(),
        observed_at: "2026-12-01T00:00:00Z".parse().expect("a literal time"),
        sha256: String::new(),
        body,
    }
}
