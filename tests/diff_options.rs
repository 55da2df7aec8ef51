//! What a person asks of a difference: only large moves, only one GPU or provider, as Markdown, as an exit code; and an offer
//! under another name.

use std::path::Path;

use crate::support::{Dataset, Said};
use serde_json::Value;

const MAPPING: &str = "name = 'kept'\nsource = 'kept'\nhomepage = 'https://kept.example'\nversion = 1\nform = 'csv'\n\
    [night]\ncolumn = 'day'\n[seller]\ncolumn = 'seller'\n[machine]\ntype = 'machine'\n[gpu]\nlabel = 'card'\ncount = 'cards'\n\
    [terms]\nos = 'linux'\n[[price]]\ncolumn = 'usd'\ncurrency = 'USD'\nunit = 'hour'\nper = 'instance'\n\
    pricing_model = 'on_demand'\n";

const NIGHTS: &str = "day,seller,machine,card,cards,usd\n\
    2026-08-21,one,small,H100 SXM,1,2.00\n2026-08-21,one,large,H100 SXM,2,4.00\n2026-08-21,one,a|b,A100 80GB,1,1.5\n\
    2026-08-21,two,still,L40S,1,1\n2026-08-21,two,gone,L40S,2,2.5\n\
    2026-08-22,one,small,H100 SXM,1,2.01\n2026-08-22,one,large,H100 SXM,2,5.00\n2026-08-22,one,a|c,A100 80GB,1,1.5\n\
    2026-08-22,two,still,L40S,1,1\n";

fn two_nights() -> Dataset {
    let dataset = Dataset::new();
    let folder = tempfile::tempdir().expect("there is room for a folder");
    let (mapping, file) = (folder.path().join("kept.toml"), folder.path().join("kept.csv"));
    std::fs::write(&mapping, MAPPING).expect("there is room");
    std::fs::write(&file, NIGHTS).expect("there is room");
    let text = |path: &Path| path.to_str().expect("text").to_owned();
    let said = dataset.run(&["import", "--mapping", &text(&mapping), &text(&file)]);
    assert_eq!(said.exit, Some(0), "{}{}", said.data, said.talk);
    dataset
}

fn diff(dataset: &Dataset, args: &[&str]) -> Said {
    dataset.run(&[&["diff", "2026-08-21", "2026-08-22"], args].concat())
}

fn lines(said: &Said) -> Vec<String> {
    let rows: Vec<Value> = serde_json::from_str(&said.data).unwrap_or_else(|error| panic!("{error}: {}{}", said.data, said.talk));
    let line = |row: &Value| format!("{} {}", row["list"].as_str().expect("a list"), row["offer"].as_str().expect("an offer"));
    rows.iter().map(line).collect()
}

#[test]
fn an_offer_under_another_name_is_one_line_and_not_two() {
    let dataset = two_nights();
    let said = diff(&dataset, &["--format", "json"]);
    assert_eq!(lines(&said), ["changed large", "changed small", "renamed a|c", "removed gone"]);
    let rows: Vec<Value> = serde_json::from_str(&said.data).expect("rows");
    assert_eq!(rows[2]["renamed_from"], "a|b");
    let back = dataset.run(&["diff", "2026-08-22", "2026-08-21", "--format", "json"]);
    assert_eq!(lines(&back), ["changed large", "changed small", "renamed a|b", "added gone"]);
    let text = diff(&dataset, &[]).data;
    assert!(text.contains("renamed, and the same in everything else"), "{text}");
}

#[test]
fn only_what_is_asked_for_is_listed() {
    let dataset = two_nights();
    let large = diff(&dataset, &["--min-change", "1%", "--format", "json"]);
    assert_eq!(lines(&large), ["changed large", "renamed a|c", "removed gone"]);
    assert!(large.talk.contains("left out, changes of less than 1 %: 1"), "{}", large.talk);
    assert_eq!(lines(&diff(&dataset, &["--gpu", "h100", "--format", "json"])), ["changed large", "changed small"]);
    assert_eq!(lines(&diff(&dataset, &["--provider", "two", "--format", "json"])), ["removed gone"]);
    for (args, words) in
        [(["--gpu", "q900"], "q900"), (["--provider", "nobody"], "nobody"), (["--min-change", "-3%"], "0 or more")]
    {
        let said = diff(&dataset, &[&format!("{}={}", args[0], args[1])]);
        assert!(said.exit == Some(2) && said.talk.contains(words), "{args:?}: {}", said.talk);
    }
}

#[test]
fn the_exit_code_says_whether_an_offer_differs_when_asked_to() {
    let dataset = two_nights();
    for (args, exit) in [
        (&[][..], 0),
        (&["--exit-code"], 16),
        (&["--exit-code", "--gpu", "a100"], 16),
        (&["--exit-code", "--gpu", "h100", "--min-change", "30"], 0),
        (&["--exit-code", "--gpu", "mi300x"], 0),
    ] {
        assert_eq!(diff(&dataset, args).exit, Some(exit), "{args:?}");
    }
    assert_eq!(dataset.run(&["diff", "2026-08-22", "2026-08-22", "--exit-code"]).exit, Some(0));
}

#[test]
fn every_form_has_the_same_lines_and_markdown_keeps_a_pages_words_as_words() {
    let dataset = two_nights();
    let json = lines(&diff(&dataset, &["--format", "json"]));
    let ndjson = diff(&dataset, &["--format", "ndjson"]).data;
    assert_eq!(ndjson.lines().count(), json.len());
    assert_eq!(diff(&dataset, &["--format", "csv"]).data.lines().count(), json.len() + 1);
    let markdown = diff(&dataset, &["--format", "markdown"]).data;
    assert!(markdown.contains("### changed: 2\n\n| provider | region | offer |"), "{markdown}");
    assert!(markdown.contains("| one |  | a\\|b | a\\|c | A100 80GB |"), "{markdown}");
    // In each table every row has as many cells as the line of names.
    let cells = |line: &str| line.replace("\\|", "").matches('|').count();
    for table in markdown.split("\n\n").filter(|part| part.starts_with('|')) {
        let counts: Vec<usize> = table.lines().filter(|line| line.starts_with('|')).map(cells).collect();
        assert!(counts.len() > 2 && counts.iter().all(|count| *count == counts[0]), "{table}");
    }
}

#[test]
fn a_history_and_a_collected_night_are_not_compared() {
    let dataset = two_nights();
    assert_eq!(dataset.run(&["collect", "--recorded", "--providers", "lambda,ecb"]).exit, Some(0));
    let said = dataset.run(&["diff", "2026-08-21", "latest"]);
    assert_eq!(said.exit, Some(2), "{}", said.data);
    assert!(said.talk.contains("--include-imports") && said.data.is_empty(), "{}", said.talk);
}
