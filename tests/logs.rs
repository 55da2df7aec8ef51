//! What a run tells on standard error, to people and to programs, and what `runs` tells of it on another day.

use crate::support;
use crate::support::Said;
use crate::support::nightly::Nights;
use serde_json::{Value, json};

const AT: &str = "2026-11-14T02:00:00Z";

/// A night in which one provider is down, told in a form.
fn night(nights: &Nights, form: &str) -> Said {
    nights.is_broken("modal");
    nights.dataset.run(&["collect", "--at", AT, "--from", nights.from(), "--log", form])
}

fn lines(talk: &str) -> Vec<Value> {
    talk.lines().map(|line| serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}"))).collect()
}

#[test]
fn where_nobody_watches_there_is_one_line_for_each_provider_and_one_for_the_night() {
    let said = night(&Nights::new(), "plain");
    assert_eq!(said.exit, Some(10), "{}", said.talk);
    let told: Vec<&str> = said.talk.lines().collect();
    assert_eq!(told.len(), 5, "{}", said.talk);
    assert!(told[0].starts_with("night 2026-11-14T02-00-00Z begins, into "), "{}", told[0]);
    let begin = [
        "ecb: complete, 29 rates, 0 skipped, 0 held back, 1/1 scopes, 0 requests (0 again), ",
        "lambda: complete, 22 offers, ",
        "modal: failed, 0 offers, ",
    ];
    for (line, begin) in told[1..4].iter().zip(begin) {
        assert!(line.starts_with(begin) && line.contains(" s"), "{line}");
    }
    assert!(told[3].contains(" s; "), "it says why: {}", told[3]);
    assert!(told[4].starts_with("night 2026-11-14T02-00-00Z: published, 22 offers, 2 of 3 providers complete, "), "{}", told[4]);
    assert!(told[4].ends_with("exit code 10"), "{}", told[4]);
}

#[test]
fn with_log_json_every_line_is_an_object_with_names_that_stay() {
    let said = night(&Nights::new(), "json");
    let told = lines(&said.talk);
    let events: Vec<&str> = told.iter().filter_map(|line| line["event"].as_str()).collect();
    assert_eq!(events, ["night_began", "provider", "provider", "provider", "night"]);
    for (line, raw) in told.iter().zip(said.talk.lines()) {
        assert!(
            raw.starts_with("{\"ts\":\"") && chrono::DateTime::parse_from_rfc3339(line["ts"].as_str().expect("a time")).is_ok()
        );
        assert!(["info", "warn", "error"].contains(&line["level"].as_str().expect("a level")), "{raw}");
        assert_eq!(line["snapshot_id"], json!("2026-11-14T02-00-00Z"));
    }
    let names = |line: &Value| line.as_object().expect("an object").keys().cloned().collect::<Vec<_>>();
    let of_provider = [
        "bytes",
        "event",
        "held_back",
        "input",
        "level",
        "network_bytes",
        "offers",
        "provider",
        "rates",
        "reason",
        "requests",
        "retries",
        "scopes",
        "scopes_complete",
        "scraper_version",
        "seconds",
        "skipped",
        "snapshot_id",
        "status",
        "ts",
    ];
    assert_eq!(names(&told[1]), of_provider);
    let of_night = [
        "event",
        "exit_code",
        "findings",
        "level",
        "offers",
        "outcome",
        "program_version",
        "providers",
        "providers_complete",
        "rates",
        "schema_version",
        "seconds",
        "snapshot_id",
        "ts",
    ];
    assert_eq!(names(&told[4]), of_night);
    let lambda = &told[2];
    assert_eq!((&lambda["status"], &lambda["offers"], &lambda["level"]), (&json!("complete"), &json!(22), &json!("info")));
    assert_eq!((&told[1]["offers"], &told[1]["rates"]), (&json!(0), &json!(29)));
    assert_eq!((&told[3]["status"], &told[3]["level"]), (&json!("failed"), &json!("warn")));
    assert!(told[3]["reason"].as_str().is_some_and(|reason| !reason.is_empty()), "{}", told[3]);
    assert_eq!((&told[4]["exit_code"], &told[4]["outcome"]), (&json!(10), &json!("published")));
    let readme = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/schedules/README.md")).expect("it reads");
    for name in of_provider.iter().chain(&of_night) {
        assert!(readme.contains(&format!("`{name}`")), "schedules/README.md does not say what {name} is");
    }
}

#[test]
fn what_could_not_be_done_is_one_json_line_too() {
    let said = Nights::new().dataset.run(&["collect", "--recorded", "--providers", "acme", "--log", "json"]);
    let told = lines(&said.talk);
    assert_eq!((said.exit, told.len(), &told[0]["event"], &told[0]["exit_code"]), (Some(2), 1, &json!("failed"), &json!(2)));
    assert!(told[0]["reason"].as_str().is_some_and(|reason| reason.contains("`acme`")), "{}", said.talk);
    assert!(told[0]["help"].as_str().is_some_and(|help| help.contains("gpuledger providers")), "{}", said.talk);
}

#[test]
fn runs_says_what_happened_on_a_day_published_or_refused() {
    let nights = Nights::new();
    night(&nights, "plain");
    nights.is_broken("lambda");
    let refused = nights.dataset.run(&["collect", "--at", "2026-11-15T02:00:00Z", "--from", nights.from()]);
    assert_eq!(refused.exit, Some(11), "{}", refused.talk);
    let all = nights.dataset.run(&["runs"]);
    assert!(all.data.contains("2026-11-14T02-00-00Z") && all.data.contains("2026-11-15T02-00-00Z"), "{}", all.data);
    let told = nights.dataset.run(&["runs", "2026-11-15"]).data;
    for words in ["night 2026-11-15T02-00-00Z: refused, 0 offers", "with gpuledger 0.1.0 and schema 1", "lambda: ", "found: "] {
        assert!(told.contains(words), "{words}: {told}");
    }
    assert!(!told.contains("2026-11-14"), "{told}");
    let json = nights.dataset.run(&["runs", "2026-11-14", "--format", "json"]);
    let rows: Vec<Value> = serde_json::from_str(&json.data).expect("it is JSON");
    let lambda = rows.iter().find(|row| row["provider"] == "lambda").expect("it was asked");
    for (name, value) in
        [("outcome", json!("published")), ("status", json!("complete")), ("rows", json!(22)), ("retries", json!(0))]
    {
        assert_eq!(lambda[name], value, "{name}");
    }
    for name in
        ["started_at", "ended_at", "seconds", "bytes", "program_version", "schema_version", "scraper_version", "run_findings"]
    {
        assert!(!lambda[name].is_null(), "{name}");
    }
    assert_eq!(nights.dataset.run(&["runs", "latest"]).data, told);
    let none = nights.dataset.run(&["runs", "2026-11-16"]);
    assert_eq!(none.exit, Some(2));
    assert!(none.talk.contains("there are 2 runs"), "{}", none.talk);
}

#[test]
fn a_record_of_an_earlier_program_or_a_damaged_one_is_no_fault_of_this_one() {
    let nights = Nights::new();
    night(&nights, "plain");
    let path = nights.file("runs/2026-11-14T02-00-00Z.json");
    let mut record: Value = serde_json::from_slice(&support::bytes_of(&path)).expect("it is JSON");
    for provider in record["providers"].as_array_mut().expect("there are providers") {
        provider.as_object_mut().expect("an object").remove("network");
    }
    std::fs::write(&path, record.to_string()).expect("there is room for a file");
    assert_eq!(nights.dataset.run(&["runs", "2026-11-14"]).exit, Some(0));
    std::fs::write(&path, "{").expect("there is room for a file");
    let said = nights.dataset.run(&["runs", "2026-11-14"]);
    assert_eq!(said.exit, Some(11), "{}", said.talk);
}
