//! The rules of this house that a machine can check.
//!
//! With `GPULEDGER_BLESS=1` in the environment the generated files and tables are written instead of compared.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::support::blessed::{hold, root};
use gpuledger::normalise::gpu::GpuModels;
use gpuledger::normalise::region::Regions;
use gpuledger::offer::TABLES;
use gpuledger_scrapers::ALL;

/// A README with a generated part between its marks.
fn hold_in(readme: &str, mark: &str, part: &str) {
    let text = fs::read_to_string(root().join(readme)).expect("there is a README");
    let (begin, end) = (format!("<!-- {mark}:begin -->"), format!("<!-- {mark}:end -->"));
    let (before, rest) = text.split_once(&begin).expect("the README has the mark");
    let (_, after) = rest.split_once(&end).expect("the README has the closing mark");
    hold(readme, &format!("{before}{begin}\n{part}{end}{after}"));
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

const README: &str = "README.md";
const README_ZH: &str = "README.zh-CN.md";

/// Providers whose H100 has prices in the recordings that somebody has published.
const PROVIDERS_OF_THE_SAMPLE: &str = "azure,hyperstack,jarvislabs,lambda,scaleway,seeweb,together,verda,vultr";

/// The words of the table of providers in a language.
struct Words {
    head: &'static str,
    by_row: &'static str,
    no_key: &'static str,
    optional_key: &'static str,
    read: &'static str,
    made_up: &'static str,
}

const ENGLISH: Words = Words {
    head: "| provider | name | what is read | key | terms | pricing models | currency | recording |",
    by_row: "as each row says",
    no_key: "not needed",
    optional_key: ", if there is one",
    read: ", read ",
    made_up: ", some prices made up",
};

const CHINESE: Words = Words {
    head: "| 厂商 | 名称 | 读什么 | 密钥 | 条款 | 购买方式 | 货币 | 录制 |",
    by_row: "以每行为准",
    no_key: "不需要",
    optional_key: "（有则用）",
    read: "，读于 ",
    made_up: "，有些价格是编的",
};

fn providers(words: &Words) -> String {
    let mut table = format!("{}\n|---|---|---|---|---|---|---|---|\n", words.head);
    for scraper in ALL {
        let manifest = scraper.manifest();
        let currency = match manifest.published.as_ref().map_or("–", |published| published.currency_code.as_str()) {
            "row" => words.by_row,
            code => code,
        };
        let key = match (&manifest.fetch.key_env, manifest.fetch.key_optional) {
            (None, _) => words.no_key.to_owned(),
            (Some(name), true) => format!("`{name}`{}", words.optional_key),
            (Some(name), false) => format!("`{name}`"),
        };
        let terms = match manifest.terms_checked_on {
            Some(date) => format!("{}{}{date}", manifest.terms.word(), words.read),
            None => manifest.terms.word().to_owned(),
        };
        let models = manifest.published.as_ref().map_or(&[][..], |published| &published.pricing_models);
        let models = if models.is_empty() { "–".to_owned() } else { join(models) };
        let recording = gpuledger_scrapers::recordings::newest(&manifest.provider).expect("every provider has a recording");
        let mut origin = format!("{:?}", recording.receipt.origin).to_lowercase();
        if recording.receipt.has_made_up_prices {
            origin += words.made_up;
        }
        let name = format!("`{}` | [{}]({})", manifest.provider, manifest.name, manifest.homepage);
        let (source, case) = (&manifest.source, recording.case);
        table += &format!("| {name} | {source} | {key} | {terms} | {models} | {currency} | {origin}, {case} |\n");
    }
    table
}

#[test]
fn both_readmes_list_the_providers_of_the_manifests_and_show_the_recorded_night() {
    hold_in(README, "providers", &providers(&ENGLISH));
    hold_in(README_ZH, "providers", &providers(&CHINESE));

    let folder = tempfile::tempdir().expect("a temporary folder");
    let run = |args: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_gpuledger"));
        let output = command.args(args).arg("--output").arg(folder.path()).output().expect("the program runs");
        [output.stdout, output.stderr].map(|bytes| String::from_utf8(bytes).expect("it prints text"))
    };
    run(&["collect", "--recorded"]);
    // What the READMEs say that it is the output of is what is run.
    for readme in [README, README_ZH] {
        let text = fs::read_to_string(root().join(readme)).expect("there is a README");
        for mark in ["sample", "cheapest"] {
            let (before, _) = text.split_once(&format!("<!-- {mark}:begin -->")).expect("the README has the mark");
            let (_, command) = before.rsplit_once("`gpuledger ").expect("the command stands before it");
            let (command, _) = command.split_once('`').expect("the command ends");
            assert!(command.contains(&format!("--provider {PROVIDERS_OF_THE_SAMPLE}")), "{readme}: {command}");
            let [rows, talk] = run(&command.split(' ').collect::<Vec<_>>());
            let said = if mark == "sample" { rows } else { format!("{rows}\n{talk}") };
            hold_in(readme, mark, &format!("```text\n{said}```\n"));
        }
    }
}

#[test]
fn both_readmes_have_the_same_commands_chapters_verbs_and_exit_codes() {
    let [english, chinese] = [README, README_ZH].map(|name| fs::read_to_string(root().join(name)).expect("there is a README"));
    let commands = |text: &str| {
        let blocks = text.split("```sh\n").skip(1).map(|block| block.split("```").next().unwrap_or_default().to_owned());
        blocks.collect::<Vec<_>>()
    };
    assert_eq!(commands(&english), commands(&chinese));
    let chapters = |text: &str| text.lines().filter(|line| line.starts_with("## ")).count();
    assert_eq!(chapters(&english), chapters(&chinese));
    let verbs = |text: &str| {
        let lines = text.lines().filter_map(|line| line.strip_prefix("gpuledger "));
        lines.map(|line| line.split([' ', '…']).next().unwrap_or_default().to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(verbs(&english), verbs(&chinese));
    let codes = |text: &str| {
        let rows = text.lines().filter_map(|line| line.strip_prefix("| ")?.split(' ').next());
        rows.filter(|cell| cell.bytes().all(|byte| byte.is_ascii_digit())).map(str::to_owned).collect::<Vec<_>>()
    };
    assert_eq!(codes(&english), codes(&chinese));
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
fn every_file_of_tests_is_part_of_the_one_program() {
    let listed = fs::read_to_string(root().join("tests/main.rs")).expect("there is a program of tests");
    for entry in fs::read_dir(root().join("tests")).expect("there are tests") {
        let path = entry.expect("the entry can be read").path();
        let name = path.file_stem().expect("an entry has a name").to_string_lossy().into_owned();
        if path.extension().is_some_and(|extension| extension == "rs") && name != "main" {
            assert!(
                listed.lines().any(|line| line == format!("mod {name};")),
                "tests/main.rs lacks `mod {name};`: no test of it is run"
            );
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
