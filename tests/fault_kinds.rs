//! `tests/fault_kinds.toml` names the kinds of fault that programs of this sort are known for, what this one does about each,
//! and the tests that fail when it no longer does. This holds the list against the tests that there are, and
//! `tests/fault_kinds.md` against the list; with `GPULEDGER_BLESS=1` in the environment the latter is written.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::fs;

use crate::support::blessed::{hold, root};
use serde::Deserialize;

/// Kinds that there are.
const KINDS: std::ops::RangeInclusive<u32> = 1..=66;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct List {
    kind: Vec<Kind>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Kind {
    /// `K01`
    id: String,
    /// What goes wrong, in a few words.
    kind: String,
    /// What the program does about it, and where.
    rule: String,
    /// `FILE::FUNCTION`, or the folder of a recording, which has an expectation.
    tests: Vec<String>,
}

fn kinds() -> Vec<Kind> {
    let text = fs::read_to_string(root().join("tests/fault_kinds.toml")).expect("there is a list");
    toml::from_str::<List>(&text).expect("the list reads").kind
}

/// Why a name is not that of a test; `None` where it is.
fn fault_of(test: &str) -> Option<String> {
    let Some((file, function)) = test.split_once("::") else {
        let Some((provider, case)) = test.split_once("/fixtures/") else { return Some("names no test".to_owned()) };
        let expectation = root().join(provider).join("expected").join(format!("{case}.snap"));
        let is_case = root().join(test).join("receipt.toml").is_file() && expectation.is_file();
        return (!is_case).then(|| "is no recording with an expectation".to_owned());
    };
    let Ok(text) = fs::read_to_string(root().join(file)) else { return Some("is in a file that does not exist".to_owned()) };
    let lines: Vec<&str> = text.lines().map(str::trim_start).collect();
    if file.ends_with(".py") {
        let is_there = lines.iter().any(|line| line.starts_with(&format!("def {function}(")));
        return (!is_there).then(|| "is no function of that file".to_owned());
    }
    let is_it = |line: &&str| line.strip_prefix("async ").unwrap_or(line).starts_with(&format!("fn {function}("));
    let Some(at) = lines.iter().position(is_it) else { return Some("is no function of that file".to_owned()) };
    let above = lines[..at].iter().rev().take_while(|line| line.starts_with("#[") || line.starts_with("//"));
    let is_test = above.into_iter().any(|line| *line == "#[test]" || line.starts_with("#[tokio::test"));
    (!is_test).then(|| "is a function and no test".to_owned())
}

#[test]
fn every_kind_of_fault_is_listed_once_with_what_is_done_about_it() {
    let kinds = kinds();
    let ids: Vec<_> = kinds.iter().map(|kind| kind.id.clone()).collect();
    assert_eq!(ids, KINDS.map(|number| format!("K{number:02}")).collect::<Vec<_>>());
    let names: BTreeSet<_> = kinds.iter().map(|kind| kind.kind.as_str()).collect();
    assert_eq!(names.len(), kinds.len(), "two kinds have one name");
    for kind in &kinds {
        assert!(!kind.kind.is_empty() && kind.kind.len() <= 80 && !kind.kind.ends_with('.'), "{}: `{}`", kind.id, kind.kind);
        assert!(kind.rule.ends_with('.') && kind.rule.contains('`'), "{}: the rule says not what is done where", kind.id);
        assert!(!kind.rule.contains('|') && !kind.kind.contains('|'), "{} would break the table", kind.id);
    }
}

#[test]
fn every_kind_of_fault_has_tests_and_each_of_them_exists() {
    let mut faults = Vec::new();
    for kind in kinds() {
        if kind.tests.is_empty() {
            faults.push(format!("{} ({}) has no test", kind.id, kind.kind));
        }
        if kind.tests.iter().collect::<BTreeSet<_>>().len() != kind.tests.len() {
            faults.push(format!("{} names a test twice", kind.id));
        }
        faults.extend(kind.tests.iter().filter_map(|test| Some(format!("{}: {test} {}", kind.id, fault_of(test)?))));
    }
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

#[test]
fn a_name_that_is_no_test_is_found_out() {
    for (name, why) in [
        ("tests/fault_kinds.rs::kinds", Some("is a function and no test")),
        ("tests/fault_kinds.rs::no_such_test", Some("is no function of that file")),
        ("tests/no_such_file.rs::kinds", Some("is in a file that does not exist")),
        ("scrapers/azure/fixtures/no-such-case", Some("is no recording with an expectation")),
        ("scrapers/azure/fixtures/cloud-services", None),
        ("scrapers/listings.rs::listings_in_any_order_say_the_same_and_the_middle_lies_between", None),
        ("tests/fault_kinds.rs::a_name_that_is_no_test_is_found_out", None),
    ] {
        assert_eq!(fault_of(name).as_deref(), why, "{name}");
    }
    assert!(fault_of("nothing").is_some(), "a word alone is no test");
}

#[test]
fn the_table_of_fault_kinds_is_that_of_the_list() {
    let mut text = String::from(
        "# Kinds of fault\n\nWhat programs of this sort are known to get wrong, what this one does about it, and the tests that fail \
         when it no longer does. Generated from `fault_kinds.toml` by `fault_kinds.rs`.\n\n| | kind | rule | tests |\n|---|---|---|---|\n",
    );
    for kind in kinds() {
        let tests: Vec<_> = kind.tests.iter().map(|test| format!("`{test}`")).collect();
        let _ = writeln!(text, "| {} | {} | {} | {} |", kind.id, kind.kind, kind.rule, tests.join("<br>"));
    }
    hold("tests/fault_kinds.md", &text);
}
