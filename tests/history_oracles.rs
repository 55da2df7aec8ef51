//! Histories of other people, imported and walked from end to end: differences of neighbouring nights and trends are those
//! that follow from the files, read a second time and in another way (`tests/oracles`). Each difference has its rule.
//!
//! The histories lie beside the checkout; without them the tests say so and pass. They take some nights of each, and every night
//! with `GPULEDGER_LONG_HISTORIES=1`, or every night up to a day if that stands there: then the figures are held against
//! `tests/oracles/README.md`. With `GPULEDGER_HISTORIES_AT=DIR` the datasets stay there, and a run that was cut off goes on.

use crate::oracles;
use crate::support::blessed;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::oracles::trends::{self, Card};
use crate::oracles::{Source, sources, walk};
use serde_json::Value;

/// Where a history's dataset is: in a folder that goes away, or in one that stays.
struct Place {
    scratch: tempfile::TempDir,
    root: PathBuf,
}

impl Place {
    fn of(name: &str) -> Self {
        let scratch = tempfile::tempdir().expect("there is room for a folder");
        let kept = std::env::var_os("GPULEDGER_HISTORIES_AT").filter(|_| is_long());
        let root = kept.map_or_else(|| scratch.path().join("output"), |kept| Path::new(&kept).join(name));
        Self { scratch, root }
    }

    fn run(&self, args: &[&str]) -> (Option<i32>, String, String) {
        let done = Command::new(env!("CARGO_BIN_EXE_gpuledger")).args(args).arg("--output").arg(&self.root).output();
        let done = done.expect("the program starts");
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).expect("it prints text");
        (done.status.code(), text(done.stdout), text(done.stderr))
    }

    fn rows(&self, args: &[&str]) -> Vec<Value> {
        let (_, data, talk) = self.run(&[args, &["--format", "json"]].concat());
        serde_json::from_str(&data).unwrap_or_else(|error| panic!("{error}: {data}{talk}"))
    }
}

fn is_long() -> bool {
    std::env::var_os("GPULEDGER_LONG_HISTORIES").is_some()
}

/// The day up to which nights are taken: of a long run the last one, or that which it names.
fn until(short: &str) -> String {
    match std::env::var("GPULEDGER_LONG_HISTORIES") {
        Ok(day) if day.len() == "2030-01-01".len() => day,
        Ok(_) => "2030-01-01".to_owned(),
        Err(_) => short.to_owned(),
    }
}

/// Imports a history, walks it, and holds its trends against the file.
fn account(source: &Source, place: &Place, cards: &[Card]) -> walk::Account {
    let import: Vec<&str> = source.import.iter().map(String::as_str).collect();
    let (exit, data, talk) = place.run(&[&["import"], import.as_slice()].concat());
    assert!(matches!(exit, Some(0 | 10 | 12)), "{}: {data}{talk}", source.name);
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    let (walked, published) = walk::walk(source, &place.root, &runtime);
    let mut text = walked.words(source.name);
    for card in cards {
        let compared = trends::compare(source, &place.root, &published, card);
        assert!(compared.agree > 0, "{} {}: no day agrees", source.name, card.typed);
        text.push_str(&compared.words(card));
    }
    eprintln!("{text}");
    if is_long() {
        hold(source.name, &text);
    }
    walked
}

/// Holds a history's part of the page against what was found.
fn hold(name: &str, part: &str) {
    // Several histories are walked at once, and each writes its part of one page.
    static PAGE: std::sync::Mutex<()> = std::sync::Mutex::new(());
    let _one = PAGE.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    let page = std::fs::read_to_string(blessed::root().join("tests/oracles/README.md")).expect("there is a page");
    let (begin, end) = (format!("<!-- {name}:begin -->"), format!("<!-- {name}:end -->"));
    let (before, rest) = page.split_once(&begin).expect("the page has the mark");
    let (_, after) = rest.split_once(&end).expect("the page has the closing mark");
    blessed::hold("tests/oracles/README.md", &format!("{before}{begin}\n{part}\n{end}{after}"));
}

#[test]
fn differences_and_trends_of_a_cost_calculator_are_those_of_its_files() {
    let Some(source) = sources::gcosts(&until("2022-03-08")) else { return };
    let place = Place::of("gcosts");
    let is_a100 = |key: &oracles::Key| key[1].starts_with("a2-") && !key[1].starts_with("a2-ultragpu");
    let mut cards = vec![Card { typed: "a100 sxm 40gb", by: "region", is_of: is_a100 }];
    if is_long() {
        cards.push(Card { typed: "l4", by: "region", is_of: |key| key[1].starts_with("g2-") });
        cards.push(Card { typed: "h100", by: "region", is_of: |key| key[1].starts_with("a3-") });
    }
    let walked = account(&source, &place, &cards);
    assert!(walked.prices > 1_000 && walked.agree.contains_key("changed"), "{walked:?}");
}

#[test]
fn differences_and_trends_of_one_clouds_machines_are_those_of_its_tables() {
    let place = Place::of("karpenter");
    // The few nights that are taken are those around the cut of June 2025.
    let days = if is_long() { ("2022-01-01", "2030-01-01") } else { ("2025-04-10", "2025-07-10") };
    let Some(source) = sources::karpenter("aws-ondemand-karpenter", "aws", days, place.scratch.path()) else {
        return;
    };
    let cards = [
        Card { typed: "a100 sxm 40gb", by: "region", is_of: |key| key[1].starts_with("p4d.") },
        Card { typed: "h100", by: "region", is_of: |key| key[1].starts_with("p5.") },
        Card { typed: "t4", by: "region", is_of: |key| key[1].starts_with("g4dn.") },
    ];
    let walked = account(&source, &place, &cards);
    let nights: Vec<String> = source.nights.keys().cloned().collect();
    let amount = |night: &str, machine: &str| {
        let rows = place.rows(&["offers", "--snapshot", night, "--instance-type", machine]);
        assert_eq!(rows.len(), 1, "{night} {machine}");
        rows[0]["published_amount"].to_string()
    };
    let cut = nights.iter().position(|night| night.as_str() >= "2025-06-23").expect("it is there");
    let (last, first) = (&nights[cut - 1], &nights[cut]);
    for (machine, before, after) in [
        ("p4d.24xlarge", "32.7726", "21.957642"),
        ("p4de.24xlarge", "40.96575", "27.44705"),
        ("p5.48xlarge", "98.32", "55.04"),
        ("p5en.48xlarge", "84.8", "63.296"),
    ] {
        assert_eq!((amount(last, machine).as_str(), amount(first, machine).as_str()), (before, after), "{machine}");
        assert_eq!(amount(nights.last().expect("a night"), machine), after, "{machine}: it stays so");
    }
    // In four years nothing else moved.
    assert!(walked.agree["changed"] < 20, "{walked:?}");
}

#[test]
fn differences_and_trends_of_a_comparison_site_are_those_of_its_table() {
    let Some(source) = sources::getdeploying(&until("2026-02-24")) else { return };
    let place = Place::of("getdeploying");
    let cards = [
        Card { typed: "h100", by: "provider", is_of: |key| key[1].starts_with("H100") },
        Card { typed: "l40s", by: "provider", is_of: |key| key[1].starts_with("L40S ") },
    ];
    let walked = account(&source, &place, &cards);
    assert!(walked.prices > 1_000, "{walked:?}");
}

#[test]
fn differences_and_trends_of_a_tracker_are_those_of_its_daily_files() {
    let Some(source) = sources::gpurentalprices(if is_long() { usize::MAX } else { 6 }) else { return };
    let place = Place::of("gpurentalprices");
    let cards = [
        Card { typed: "h100", by: "provider", is_of: |key| key[1].starts_with("h100") },
        Card { typed: "b200", by: "provider", is_of: |key| key[1].starts_with("b200") },
    ];
    let walked = account(&source, &place, &cards);
    assert!(walked.prices > 300, "{walked:?}");
}
