//! The rules of this house that a machine can check.
//!
//! With `GPULEDGER_BLESS=1` in the environment the generated files and tables are written instead of compared.

#[path = "support/blessed.rs"]
mod blessed;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use blessed::{hold, root};
use gpuledger::normalise::gpu::GpuModels;
use gpuledger::normalise::region::Regions;
use gpuledger::offer::TABLES;
use gpuledger_scrapers::ALL;

/// The README with a generated part between its marks.
fn hold_in_readme(mark: &str, part: &str) {
    let readme = fs::read_to_string(root().join("README.md")).expect("there is a README");
    let (begin, end) = (format!("<!-- {mark}:begin -->"), format!("<!-- {mark}:end -->"));
    let (before, rest) = readme.split_once(&begin).expect("the README has the mark");
    let (_, after) = rest.split_once(&end).expect("the README has the closing mark");
    hold("README.md", &format!("{before}{begin}\n{part}{end}{after}"));
}

fn files_below(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).expect("the folder can be read") {
        let path = entry.expect("the entry can be read").path();
        let name = path.file_name().expect("an entry has a name").to_string_lossy().into_owned();
        if path.is_dir() && name != "target" && !name.starts_with('.') {
            files_below(&path, found);
        } else if path.is_file() {
            found.push(path);
        }
    }
}

#[test]
fn the_schema_files_say_what_the_program_says() {
    for table in TABLES {
        hold(&format!("output/schema/{}.v1.toml", table.name), &table.schema_toml());
    }
}

#[test]
fn every_column_has_a_unit_a_meaning_and_an_example() {
    for table in TABLES {
        for column in table.columns {
            assert!(
                !column.unit.is_empty() && column.meaning.ends_with('.') && !column.example.is_empty(),
                "{} {}",
                table.name,
                column.name
            );
        }
        for name in table.order.iter().chain(table.bounds) {
            assert!(table.columns.iter().any(|column| column.name == *name), "{} has no column {name}", table.name);
        }
    }
}

/// Providers whose H100 has prices in the recordings that somebody has published.
const PROVIDERS_OF_THE_SAMPLE: &str = "azure,hyperstack,jarvislabs,lambda,scaleway,seeweb,together,verda,vultr";

#[test]
fn the_readme_lists_the_providers_of_the_manifests_and_ten_rows_of_the_recorded_night() {
    let mut table = String::from(
        "| provider | name | what is read | key | terms | pricing models | currency | recording |\n|---|---|---|---|---|---|---|---|\n",
    );
    for scraper in ALL {
        let manifest = scraper.manifest();
        let currency = match manifest.published.as_ref().map_or("–", |published| published.currency_code.as_str()) {
            "row" => "as each row says",
            code => code,
        };
        let key = match (&manifest.fetch.key_env, manifest.fetch.key_optional) {
            (None, _) => "not needed".to_owned(),
            (Some(name), true) => format!("`{name}`, if there is one"),
            (Some(name), false) => format!("`{name}`"),
        };
        let terms = match manifest.terms_checked_on {
            Some(date) => format!("{}, read {date}", manifest.terms.word()),
            None => manifest.terms.word().to_owned(),
        };
        let models = manifest.published.as_ref().map_or(&[][..], |published| &published.pricing_models);
        let models = if models.is_empty() { "–".to_owned() } else { join(models) };
        let recording = gpuledger_scrapers::recordings::newest(&manifest.provider).expect("every provider has a recording");
        let mut origin = format!("{:?}", recording.receipt.origin).to_lowercase();
        if recording.receipt.has_made_up_prices {
            origin += ", some prices made up";
        }
        let name = format!("`{}` | [{}]({})", manifest.provider, manifest.name, manifest.homepage);
        let (source, case) = (&manifest.source, recording.case);
        table += &format!("| {name} | {source} | {key} | {terms} | {models} | {currency} | {origin}, {case} |\n");
    }
    hold_in_readme("providers", &table);

    let folder = tempfile::tempdir().expect("a temporary folder");
    let run = |args: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_gpuledger"));
        let output = command.args(args).arg("--output").arg(folder.path()).output().expect("the program runs");
        String::from_utf8(output.stdout).expect("it prints text")
    };
    run(&["collect", "--recorded"]);
    let models = "on_demand,spot,reserved";
    let asked = ["offers", "--provider", PROVIDERS_OF_THE_SAMPLE, "--gpu", "h100", "--os", "linux", "--pricing-model", models];
    let rows = run(&[&asked[..], &["--limit", "10"]].concat());
    hold_in_readme("sample", &format!("```text\n{rows}```\n"));

    let mut command = Command::new(env!("CARGO_BIN_EXE_gpuledger"));
    command.args(["cheapest", "--gpu", "h100", "--pricing-model", "on-demand,spot", "--now", "2026-10-31T06:00:00Z"]);
    command.args(["--provider", PROVIDERS_OF_THE_SAMPLE]);
    let output = command.arg("--output").arg(folder.path()).output().expect("the program runs");
    let said = [output.stdout, output.stderr].map(|bytes| String::from_utf8(bytes).expect("it prints text"));
    hold_in_readme("cheapest", &format!("```text\n{}\n{}```\n", said[0], said[1]));
}

#[test]
fn every_folder_of_the_collection_is_registered() {
    let registered: Vec<&str> = ALL.iter().map(|scraper| scraper.manifest().provider.as_str()).collect();
    for entry in fs::read_dir(root().join("scrapers")).expect("the collection can be read") {
        let path = entry.expect("the entry can be read").path();
        let name = path.file_name().expect("an entry has a name").to_string_lossy().into_owned();
        if path.is_dir() && !name.starts_with('_') && name != "target" {
            assert!(registered.contains(&name.as_str()), "scrapers/{name} is not in the registry");
        }
    }
}

#[test]
fn what_the_guide_quotes_from_a_file_stands_in_that_file() {
    let guide = fs::read_to_string(root().join("CONTRIBUTING.md")).expect("there is a guide");
    let mut quotes = 0;
    for block in guide.split("```").skip(1).step_by(2) {
        let (head, quoted) = block.split_once('\n').expect("a block has a head");
        if let Some((_, path)) = head.split_once(' ') {
            let file = fs::read_to_string(root().join(path)).unwrap_or_else(|error| panic!("{path}: {error}"));
            assert!(file.contains(quoted), "{path} no longer says\n{quoted}");
            quotes += 1;
        }
    }
    assert!(quotes > 9, "the guide quotes {quotes} times");
}

#[test]
fn the_template_has_a_manifest_that_reads() {
    let text = fs::read_to_string(root().join("scrapers/_template/manifest.toml")).expect("there is a template");
    gpuledger_scrapers::manifest::Manifest::parse(&text).expect("the template's manifest reads");
}

#[test]
fn every_label_and_region_of_a_manifest_leads_somewhere() {
    for scraper in ALL {
        let manifest = scraper.manifest();
        for target in manifest.labels.values() {
            assert!(GpuModels::built_in().get(target).is_some(), "{}: label target `{target}` is no model", manifest.provider);
        }
        for (region, code) in &manifest.regions {
            assert!(Regions::built_in().place(code).is_some(), "{}: {region} = `{code}` is no place", manifest.provider);
        }
    }
}

#[test]
fn the_collection_knows_no_network_runtime_or_data_frame() {
    let output = Command::new(env!("CARGO"))
        .args(["tree", "--package", "gpuledger-scrapers", "--edges", "normal", "--prefix", "none", "--offline"])
        .current_dir(root())
        .output()
        .expect("cargo runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let tree = String::from_utf8(output.stdout).expect("cargo prints text");
    for line in tree.lines() {
        let name = line.split(' ').next().expect("a line has a first word");
        assert!(
            !["reqwest", "hyper", "tokio", "clap", "anyhow", "ureq"].contains(&name) && !name.starts_with("polars"),
            "{name}"
        );
    }
}

#[test]
fn no_provider_is_named_in_the_pipeline() {
    let mut files = Vec::new();
    files_below(&root().join("src"), &mut files);
    for file in files.iter().filter(|file| file.extension().is_some_and(|ending| ending == "rs")) {
        // The examples of columns are documentation; rates have one source, which is the rule itself.
        let name = file.file_name().expect("a file has a name").to_string_lossy().into_owned();
        if name == "offer.rs" {
            continue;
        }
        let text = fs::read_to_string(file).expect("the file can be read");
        let code = text.split("#[cfg(test)]").next().expect("a text has a first part");
        for line in code.lines().filter(|line| !line.trim_start().starts_with("//")) {
            for scraper in ALL.iter().filter(|scraper| scraper.manifest().published.is_some()) {
                let quoted = format!("\"{}\"", scraper.manifest().provider);
                assert!(!line.contains(&quoted), "{} names {quoted}", file.display());
            }
        }
    }
}

#[test]
fn no_source_file_is_longer_than_500_lines() {
    let mut files = Vec::new();
    files_below(root(), &mut files);
    for file in files.iter().filter(|file| file.extension().is_some_and(|ending| ending == "rs")) {
        let lines = fs::read_to_string(file).expect("the file can be read").lines().count();
        assert!(lines <= 500, "{} has {lines} lines", file.display());
    }
}

/// Words, one after another.
fn join(words: &[impl ToString]) -> String {
    words.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
}
