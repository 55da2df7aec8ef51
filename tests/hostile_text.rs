//! Hostile text on a page: the real program on files of a provider whose regions and names are written to harm whoever
//! looks at them, and the bytes that it prints in each format.

use crate::support;
use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use gpuledger_scrapers::recordings;
use serde_json::Value;

use crate::support::{Dataset, all_files};

/// The machine whose regions are hostile.
const MACHINE: &str = "vcg-a100-12c-120g-80vram";

/// Regions as a hostile page names them.
fn hostile() -> Vec<String> {
    let texts = [
        "=HYPERLINK(\"http://example.com/?\"&A1,\"x\")",
        "+1+1",
        "-2+3",
        "@SUM(A1:A9)",
        "\t=1+1",
        "\r=1+1",
        "=cmd|' /C calc'!A0",
        "<script>alert(1)</script>",
        "\u{1b}[2J\u{1b}[31mred\u{1b}[0m",
        "\u{1b}]8;;http://example.com\u{1b}\\click\u{1b}]8;;\u{1b}\\",
        "\u{9b}31m",
        "\u{202e}tsew-su",
        "\u{2066}us\u{2069}-\u{200b}west\u{feff}",
        "two\nlines\r\nof\u{b}text\u{2028}or more",
        "../../../escaped",
        "/tmp/escaped",
        "nul\u{0}byte",
        "bell\u{7}\u{8}\u{7f}",
    ];
    texts.into_iter().map(str::to_owned).chain(["x".repeat(5_000)]).collect()
}

/// The provider's recording with hostile regions, and a file name that is as bad as a file name can be.
fn write_hostile_pages(into: &Path) {
    let folder = into.join("vultr");
    fs::create_dir_all(&folder).expect("there is room for a folder");
    for page in recordings::newest("vultr").expect("it has a recording").pages {
        let mut answer: Value = serde_json::from_slice(&page.body).expect("the page is JSON");
        if let Some(plans) = answer.get_mut("plans").and_then(Value::as_array_mut) {
            let plan = plans.iter_mut().find(|plan| plan["id"] == MACHINE).expect("the machine is there");
            plan["locations"] = hostile().into();
            // A row that is not understood, and a field that nobody reads, are named as they stand.
            let bad =
                plans.iter_mut().find(|plan| plan["id"] != MACHINE && plan["gpu_type"].is_string()).expect("another machine");
            bad["invoice_type"] = "\u{1b}[31m\u{202e}monthly".into();
        }
        answer["\u{1b}]0;title\u{7}"] = 1.into();
        let name = format!("=1\u{1b}[31m\u{202e}{}.json", page.name);
        fs::write(folder.join(name), serde_json::to_vec(&answer).expect("it is JSON")).expect("there is room for a page");
    }
}

/// What a terminal would obey, or nobody would see.
fn obeyed(text: &str) -> String {
    let is_bad = |c: &char| {
        (c.is_control() && *c != '\n')
            || matches!(c, '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{2069}' | '\u{feff}')
    };
    text.chars().filter(is_bad).collect()
}

fn hostile_night() -> (Dataset, String) {
    let dataset = Dataset::new();
    let pages = dataset.root().with_file_name("pages");
    write_hostile_pages(&pages);
    let said = dataset.run(&["collect", "--from", &pages.display().to_string(), "--at", "2026-11-01T00:00:00Z"]);
    assert!(matches!(said.exit, Some(0 | 10)), "{}{}", said.data, said.talk);
    assert_eq!(obeyed(&said.data), "", "{}", said.data);
    assert_eq!(obeyed(&said.talk), "", "{}", said.talk);
    (dataset, pages.display().to_string())
}

#[test]
fn a_table_shows_hostile_text_and_obeys_none_of_it() {
    let (dataset, _) = hostile_night();
    for args in [
        &["offers", "--limit", "1000"][..],
        &["cheapest", "--gpu", "a100", "--all", "--limit", "0"],
        &["snapshots"],
        &["providers"],
        &["diff", "latest", "latest"],
    ] {
        let said = dataset.run(args);
        assert_eq!(said.exit, Some(0), "{args:?}: {}", said.talk);
        assert_eq!((obeyed(&said.data), obeyed(&said.talk)), (String::new(), String::new()), "{args:?}");
    }
    let table = dataset.run(&["offers", "--limit", "1000"]).data;
    for shown in ["\\u{1b}[2J\\u{1b}[31mred", "\\u{202e}tsew-su", "two\\nlines\\r\\nof", "nul\\0byte", "\\u{9b}31m"] {
        assert!(table.contains(shown), "{shown} in\n{table}");
    }
    let widest = table.lines().map(|line| line.chars().count()).max();
    assert!(widest < Some(500), "one long name makes the table {widest:?} wide");
}

#[test]
fn a_spreadsheet_computes_nothing_of_a_csv_and_its_numbers_stay_numbers() {
    let (dataset, _) = hostile_night();
    let csv = dataset.run(&["offers", "--limit", "1000", "--format", "csv"]).data;
    let mut reader = csv::Reader::from_reader(csv.as_bytes());
    let headers = reader.headers().expect("a header").clone();
    let column = |name: &str| headers.iter().position(|header| header == name).expect("the column is there");
    let (region, amount) = (column("region"), column("published_amount"));
    let rows: Vec<csv::StringRecord> = reader.records().collect::<Result<_, _>>().expect("it is CSV");
    let mut regions = BTreeSet::new();
    for row in &rows {
        assert!(row[amount].parse::<f64>().is_ok_and(|amount| amount > 0.0), "{row:?}");
        for cell in row {
            let is_formula = cell.starts_with(['=', '+', '-', '@', '\t', '\r']) && cell.parse::<f64>().is_err();
            assert!(!is_formula, "{cell:?}");
        }
        regions.insert(row[region].to_owned());
    }
    for text in hostile() {
        let is_formula = text.starts_with(['=', '+', '-', '@', '\t', '\r']);
        assert!(regions.contains(&if is_formula { format!("'{text}") } else { text.clone() }), "{text:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn json_and_parquet_hold_the_characters_of_the_page() {
    let (dataset, _) = hostile_night();
    let list: Vec<Value> =
        serde_json::from_str(&dataset.run(&["offers", "--limit", "1000", "--format", "json"]).data).expect("it is JSON");
    let lines = dataset.run(&["offers", "--limit", "1000", "--format", "ndjson"]).data;
    let lines: Vec<Value> = lines.lines().map(|line| serde_json::from_str(line).expect("a line is JSON")).collect();
    assert_eq!(list, lines);
    let of = |rows: &[Value]| rows.iter().filter_map(|row| Some(row["region"].as_str()?.to_owned())).collect::<BTreeSet<_>>();
    let published: BTreeSet<String> = support::texts(&dataset.offers().await[0], "region").into_iter().collect();
    for text in hostile() {
        assert!(of(&list).contains(&text) && published.contains(&text), "{text:?}");
    }
}

#[test]
fn no_name_of_a_page_or_region_becomes_a_path() {
    let (dataset, pages) = hostile_night();
    let root = dataset.root();
    let beside: Vec<_> = fs::read_dir(root.parent().expect("it has one")).expect("it can be listed").collect();
    assert_eq!(beside.len(), 2, "the dataset and the pages stand there, and nothing else: {beside:?}");
    for file in all_files(&root) {
        let name = file.strip_prefix(&root).expect("it is below").display().to_string();
        let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_./".contains(c);
        assert!(name.chars().all(is_plain) && !name.contains("escaped"), "{name}");
    }
    assert!(!Path::new("/tmp/escaped").exists() && Path::new(&pages).exists());
    assert!(all_files(&root.join(".drafts")).is_empty(), "no draft is left");
}

#[test]
fn what_is_said_of_a_hostile_page_is_harmless_too() {
    let dataset = Dataset::new();
    let pages = dataset.root().with_file_name("pages");
    write_hostile_pages(&pages);
    let files = all_files(&pages);
    let names: Vec<String> = files.iter().map(|file| file.display().to_string()).collect();
    let parse = |files: &[&str]| {
        let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_gpuledger"));
        let output = command.args(["parse", "vultr"]).args(files).env("NO_COLOR", "1").output().expect("the program starts");
        let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).expect("it prints text");
        (output.status.code(), text(&output.stdout), text(&output.stderr))
    };
    let (exit, data, talk) = parse(&names.iter().map(String::as_str).collect::<Vec<_>>());
    assert_eq!(exit, Some(0), "{talk}");
    assert_eq!((obeyed(&data), obeyed(&talk)), (String::new(), String::new()), "{talk}");
    assert!(talk.contains("\\u{1b}[31m\\u{202e}monthly"), "{talk}");

    let refused = pages.join("refused.json");
    fs::write(&refused, "{\"error\": \"\u{9b}31m\u{202e}\u{1b}]8;;http://x\", \"plans\": \"\u{9b}2J\u{202e}\"}")
        .expect("there is room");
    let (exit, _, talk) = parse(&[refused.to_str().expect("a temporary folder's name is text")]);
    assert_eq!(exit, Some(11), "{talk}");
    assert_eq!(obeyed(&talk), "", "{talk}");
    let (exit, _, talk) = parse(&["/nowhere/\u{1b}[31m\u{202e}x"]);
    assert_eq!((exit, obeyed(&talk)), (Some(2), String::new()), "{talk}");
}
