//! The program as a person meets it: words, formats, exit codes.

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

fn run(output: &Path, args: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_gpuledger"));
    command.args(args).env("GPULEDGER_OUTPUT", output).env_remove("GPULEDGER_CONTACT").output().expect("the program runs")
}

fn stdout(output: &Output) -> String {
    String::from_utf8(output.stdout.clone()).expect("it prints text")
}

fn stderr(output: &Output) -> String {
    String::from_utf8(output.stderr.clone()).expect("it prints text")
}

fn code(output: &Output) -> Option<i32> {
    output.status.code()
}

fn recorded() -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let output = run(folder.path(), &["collect", "--recorded"]);
    assert_eq!(code(&output), Some(0), "{}", stderr(&output));
    folder
}

#[test]
fn a_recorded_night_says_what_is_typed_and_shows_the_cheapest_offers() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let text = stdout(&run(folder.path(), &["collect", "--recorded"]));
    for words in [
        "No network was used",
        "Typed by hand from documented answers: alibaba",
        "not of today",
        "H100 SXM",
        "A100",
        "L40S",
        "USD/GPU-hour",
    ] {
        assert!(text.contains(words), "no `{words}` in\n{text}");
    }
}

#[test]
fn every_format_holds_the_same_rows() {
    let folder = recorded();
    let rows =
        |format: &str| stdout(&run(folder.path(), &["offers", "--gpu", "H100 SXM", "--limit", "1000", "--format", format]));
    let list: Vec<serde_json::Value> = serde_json::from_str(&rows("json")).expect("it is JSON");
    let lines: Vec<serde_json::Value> =
        rows("ndjson").lines().map(|line| serde_json::from_str(line).expect("a line is JSON")).collect();
    assert_eq!(list, lines);
    let csv = rows("csv");
    let mut reader = csv::Reader::from_reader(csv.as_bytes());
    let ids: Vec<String> = reader.records().map(|row| row.expect("a row")[6].to_owned()).collect();
    let expected: Vec<&str> = list.iter().filter_map(|row| row["offer_id"].as_str()).collect();
    assert_eq!(ids, expected);
    assert!(!ids.is_empty());
}

#[test]
fn filters_let_through_what_they_say() {
    let folder = recorded();
    let rows = |args: &[&str]| -> Vec<serde_json::Value> {
        let output = run(folder.path(), &[&["offers", "--format", "json", "--limit", "1000"], args].concat());
        assert_eq!(code(&output), Some(0), "{}", stderr(&output));
        serde_json::from_str(&stdout(&output)).expect("it is JSON")
    };
    let all = rows(&[]).len();
    for (args, column, value) in [
        (["--provider", "oci"], "provider", "oci"),
        (["--pricing-model", "spot"], "pricing_model", "spot"),
        (["--region", "westeurope"], "region", "westeurope"),
        (["--country", "cn"], "country", "CN"),
        (["--os", "windows"], "os", "windows"),
    ] {
        let found = rows(&args);
        assert!(!found.is_empty() && found.len() < all && found.iter().all(|row| row[column] == value), "{args:?}");
    }
    assert!(rows(&["--min-gpu-memory", "100"]).iter().all(|row| row["gpu_memory_gb"].as_f64() >= Some(100.0)));
    let cheap = rows(&["--max-price", "2", "--sort", "-price"]);
    let prices: Vec<f64> = cheap.iter().filter_map(|row| row["price_usd_per_gpu_hour"].as_f64()).collect();
    assert!(!prices.is_empty() && prices.is_sorted_by(|a, b| a >= b) && prices[0] <= 2.0);
}

#[test]
fn what_does_not_exist_is_named_with_what_does() {
    let folder = recorded();
    for (args, words) in [
        (vec!["offers", "--gpu", "h1000"], "H100"),
        (vec!["offers", "--pricing-model", "free"], "on_demand"),
        (vec!["offers", "--sort", "beauty"], "provider"),
        (vec!["offers", "--snapshot", "2020-01-01"], "there is one snapshot"),
        (vec!["collect", "--recorded", "--providers", "acme"], ", ecb, "),
        (vec!["diff", "1", "7"], "there is one snapshot"),
        (vec!["parse", "acme", "x"], ", ecb, "),
    ] {
        let output = run(folder.path(), &args);
        assert_eq!(code(&output), Some(2), "{args:?}");
        assert!(stderr(&output).contains(words), "{args:?}: {}", stderr(&output));
        assert!(stdout(&output).is_empty(), "{args:?} printed data");
    }
}

#[cfg(not(feature = "cloud"))]
#[test]
fn an_object_store_that_is_not_built_in_is_refused_with_what_builds_it_in_and_no_folder_is_made() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    for address in ["s3://bucket/prefix", "S3://bucket/prefix", "gs://bucket/prefix", "az://bucket/prefix"] {
        for verb in [&["collect", "--recorded"][..], &["offers"], &["doctor"]] {
            let mut command = Command::new(env!("CARGO_BIN_EXE_gpuledger"));
            let output =
                command.args(verb).env("GPULEDGER_OUTPUT", address).current_dir(&folder).output().expect("the program runs");
            assert_eq!(code(&output), Some(2), "{address} {verb:?}");
            let words = stderr(&output).split_whitespace().collect::<Vec<_>>().join(" ");
            assert!(words.contains("feature `cloud`") && words.contains("cargo build --release --features cloud"), "{words}");
        }
    }
    for address in ["s3:bucket", "s3:/bucket/prefix", "http://127.0.0.1/prefix", "file:///tmp/prefix"] {
        let mut command = Command::new(env!("CARGO_BIN_EXE_gpuledger"));
        let output = command.args(["collect", "--recorded", "--output", address]).current_dir(&folder).output();
        assert_eq!(code(&output.expect("the program runs")), Some(2), "{address}");
    }
    let schedule = folder.path().join("nightly.toml");
    let text = include_str!("../schedules/nightly.toml").replace("output = \"output\"", "output = \"s3://bucket/prefix\"");
    std::fs::write(&schedule, text).expect("there is room for a schedule");
    for verb in ["check", "status", "night", "run"] {
        let mut command = Command::new(env!("CARGO_BIN_EXE_gpuledger"));
        let output = command.args(["schedule", verb]).arg(&schedule).current_dir(&folder).output().expect("the program runs");
        let said = stdout(&output) + &stderr(&output);
        assert!(code(&output) == Some(2) && said.contains("`cloud`"), "{verb}: {said}");
    }
    let entries = std::fs::read_dir(folder.path()).expect("it can be listed").count();
    assert_eq!(entries, 1, "something was made beside the schedule");
}

#[test]
fn an_empty_dataset_says_how_to_fill_it() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let output = run(folder.path(), &["offers"]);
    assert_eq!(code(&output), Some(2));
    assert!(stderr(&output).contains("gpuledger collect"), "{}", stderr(&output));
    assert_eq!(stdout(&run(folder.path(), &["snapshots", "--format", "json"])), "[]\n");
}

#[test]
fn a_failing_provider_is_named_and_the_others_are_published() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let pages = folder.path().join("pages");
    for (provider, case, file) in
        [("azure", "2026-08-19", None), ("vultr", "", Some("<html><title>Just a moment...</title></html>"))]
    {
        let to = pages.join(provider);
        fs::create_dir_all(&to).expect("the folder can be made");
        match file {
            Some(text) => fs::write(to.join("plans.json"), text).expect("the file can be written"),
            None => copy_recording(provider, case, &to),
        }
    }
    let from = pages.display().to_string();
    let output = run(folder.path(), &["collect", "--from", &from, "--at", "2026-08-20T00:00:00Z"]);
    assert_eq!(code(&output), Some(10), "{}", stderr(&output));
    let text = stdout(&output);
    assert!(text.contains("vultr") && text.contains("failed") && text.contains("markup"), "{text}");
    let snapshots = stdout(&run(folder.path(), &["snapshots"]));
    assert!(snapshots.contains("2026-08-20T00-00-00Z") && snapshots.contains("vultr"), "{snapshots}");
}

#[test]
fn a_night_of_which_nothing_reads_is_refused_and_leaves_its_record() {
    let folder = recorded();
    let before = stdout(&run(folder.path(), &["snapshots"]));
    let pages = folder.path().join("pages");
    fs::create_dir_all(pages.join("azure")).expect("the folder can be made");
    fs::write(pages.join("azure/page.json"), "{\"Items\":[],\"NextPageLink\":null,\"Count\":0}")
        .expect("the file can be written");
    let output = run(folder.path(), &["collect", "--from", &pages.display().to_string(), "--at", "2026-11-01"]);
    assert_eq!(code(&output), Some(11), "{}", stderr(&output));
    assert!(stdout(&output).contains("Nothing was published"), "{}", stdout(&output));
    assert_eq!(stdout(&run(folder.path(), &["snapshots"])), before);
    let record = fs::read_to_string(folder.path().join("runs/2026-11-01T00-00-00Z.json")).expect("a refused night has a record");
    assert!(
        record.contains("\"outcome\": \"refused\"") && folder.path().join("runs/2026-11-01T00-00-00Z.findings.parquet").is_file()
    );
}

#[test]
fn a_cut_off_gzip_file_is_an_error_that_names_the_file() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let mut whole = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
    std::io::Write::write_all(&mut whole, b"{\"Items\": [], \"padding\": \"............................\"}").expect("it packs");
    let mut bytes = whole.finish().expect("it packs");
    bytes.truncate(bytes.len() - 10);
    let file = folder.path().join("page.json.gz");
    fs::write(&file, bytes).expect("the file can be written");
    let output = run(folder.path(), &["parse", "azure", &file.display().to_string()]);
    assert_eq!(code(&output), Some(2));
    assert!(stderr(&output).replace(['\n', ' ', '|'], "").contains("page.json.gz"), "{}", stderr(&output));
}

#[test]
fn the_help_names_every_verb() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let help = stdout(&run(folder.path(), &["--help"]));
    for verb in ["collect", "snapshots", "offers", "diff", "providers", "parse", "record", "findings"] {
        assert!(help.contains(verb), "{verb}");
    }
}

#[test]
fn the_next_nights_are_listed_through_a_change_of_clocks() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("berlin.toml");
    let text = std::fs::read_to_string("schedules/nightly.toml").expect("the schedule reads");
    std::fs::write(&file, text.replace("\"0 2 * * *\"", "\"30 2 * * *\"").replace("\"UTC\"", "\"Europe/Berlin\""))
        .expect("it is written");
    let path = file.to_str().expect("a plain path");
    let next = run(folder.path(), &["schedule", "next", path, "-n", "3", "--after", "2026-03-27T12:00:00Z", "--format", "csv"]);
    assert_eq!(code(&next), Some(0), "{}", stderr(&next));
    assert_eq!(
        stdout(&next),
        "schedule,due_at,due_local,time_zone\n\
         nightly,2026-03-28T01:30:00Z,Sat 2026-03-28 02:30 CET,Europe/Berlin\n\
         nightly,2026-03-29T01:00:00Z,Sun 2026-03-29 03:00 CEST,Europe/Berlin\n\
         nightly,2026-03-30T00:30:00Z,Mon 2026-03-30 02:30 CEST,Europe/Berlin\n"
    );
    std::fs::write(&file, "name = \"x\"\nwhen = 1\n").expect("it is written");
    let wrong = run(folder.path(), &["schedule", "next", path]);
    assert_eq!(code(&wrong), Some(2));
    assert!(stderr(&wrong).contains("line 2, column 1") && stderr(&wrong).contains("when"), "{}", stderr(&wrong));
}

fn copy_recording(provider: &str, case: &str, to: &Path) {
    let from = Path::new(env!("CARGO_MANIFEST_DIR")).join("scrapers").join(provider).join("fixtures").join(case);
    for entry in fs::read_dir(&from).expect("there is a recording") {
        let path = entry.expect("the entry can be read").path();
        let name = path.file_name().expect("a file has a name");
        if name != "receipt.toml" {
            fs::copy(&path, to.join(name)).expect("the file can be copied");
        }
    }
}
