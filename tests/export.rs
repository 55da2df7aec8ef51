//! A snapshot as other programs read it, written by the program itself: what stands in a catalogue is what `offers` says, what
//! cannot be said there is counted, and what is imported again has the same prices. `readers/catalogues.py` reads the same
//! files with gpuhunt and SkyPilot themselves.

use std::collections::{BTreeMap, BTreeSet};
use std::io::Read as _;
use std::path::{Path, PathBuf};

use crate::support::{Dataset, Said, all_files, bytes_of};
use serde_json::Value;

/// A dataset with a night, and a folder beside it.
struct Night {
    dataset: Dataset,
    folder: tempfile::TempDir,
}

impl Night {
    fn recorded() -> Self {
        let dataset = Dataset::new();
        let said = dataset.run(&["collect", "--recorded"]);
        assert!(matches!(said.exit, Some(0 | 10)), "{}{}", said.data, said.talk);
        Self { dataset, folder: tempfile::tempdir().expect("there is room for a folder") }
    }

    fn place(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn export(&self, format: &str, name: &str, more: &[&str]) -> Said {
        let place = self.place(name);
        self.dataset.run(&[&["export", "--format", format, place.to_str().expect("text")], more].concat())
    }

    fn offers(&self) -> Vec<Value> {
        rows(&self.dataset, &["offers", "--limit", "100000"])
    }
}

fn rows(dataset: &Dataset, args: &[&str]) -> Vec<Value> {
    let said = dataset.run(&[args, &["--format", "json"]].concat());
    serde_json::from_str(&said.data).unwrap_or_else(|error| panic!("{error}: {}{}", said.data, said.talk))
}

fn table(path: &Path) -> Vec<BTreeMap<String, String>> {
    let mut reader = csv::Reader::from_path(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    reader.deserialize().map(|row| row.expect("the table reads")).collect()
}

fn number(text: &str) -> f64 {
    text.parse().unwrap_or_else(|error| panic!("{text}: {error}"))
}

/// Machine, region, cards and way to buy, with the price in thousand millionths of a dollar.
type Prices = BTreeSet<(String, String, i64, String, i64)>;

#[expect(clippy::cast_possible_truncation, reason = "prices and counts are small")]
fn price(machine: &str, region: &str, gpus: f64, way: &str, usd: f64) -> (String, String, i64, String, i64) {
    (machine.to_owned(), region.to_owned(), gpus as i64, way.to_owned(), (usd * 1e9).round() as i64)
}

fn prices_of(offers: &[Value], provider: &str) -> Prices {
    let text = |row: &Value, name: &str| row[name].as_str().unwrap_or_default().to_owned();
    let of_row = |row: &Value| {
        let (gpus, usd) = (row["gpu_count"].as_f64(), row["price_usd_per_hour"].as_f64());
        Some(price(&text(row, "instance_type"), &text(row, "region"), gpus?, &text(row, "pricing_model"), usd?))
    };
    offers.iter().filter(|row| row["provider"] == provider).filter_map(of_row).collect()
}

fn of_gpuhunt(path: &Path) -> Prices {
    let way = |spot: &str| if spot == "True" { "spot" } else { "on_demand" };
    let of_row = |row: &BTreeMap<String, String>| {
        price(&row["instance_name"], &row["location"], number(&row["gpu_count"]), way(&row["spot"]), number(&row["price"]))
    };
    table(path).iter().map(of_row).collect()
}

fn of_skypilot(path: &Path) -> Prices {
    let mut prices = Prices::new();
    for row in table(path) {
        for (column, way) in [("Price", "on_demand"), ("SpotPrice", "spot")] {
            if !row[column].is_empty() {
                let (machine, region) = (&row["InstanceType"], &row["Region"]);
                prices.insert(price(machine, region, number(&row["AcceleratorCount"]), way, number(&row[column])));
            }
        }
    }
    prices
}

/// Sellers with a table, by their name in the catalogue and ours.
const GPUHUNT: [(&str, &str); 4] = [("aws", "aws"), ("azure", "azure"), ("gcp", "gcp"), ("cloudrift", "cloudrift")];

#[test]
fn a_price_in_a_catalogue_is_the_price_in_the_list_of_offers() {
    let night = Night::recorded();
    let offers = night.offers();
    let said = night.export("gpuhunt", "hunt", &[]);
    assert_eq!(said.exit, Some(0), "{}{}", said.data, said.talk);
    let said = night.export("skypilot", "sky", &[]);
    assert_eq!(said.exit, Some(0), "{}{}", said.data, said.talk);
    for (theirs, ours) in GPUHUNT {
        let hunt = of_gpuhunt(&night.place("hunt").join(format!("{theirs}.csv")));
        // A machine whose cards are chosen apart is called by its name without them.
        let plain = |(machine, region, gpus, way, usd): &(String, String, i64, String, i64)| {
            (machine.split('+').next().expect("a first part").to_owned(), region.clone(), *gpus, way.clone(), *usd)
        };
        let listed: Prices = prices_of(&offers, ours).iter().map(plain).collect();
        assert!(!hunt.is_empty() && hunt.is_subset(&listed), "{ours}: {:?}", hunt.difference(&listed).next());
    }
    for cloud in ["aws", "azure", "gcp"] {
        let sky = of_skypilot(&night.place("sky").join(cloud).join("vms.csv"));
        let listed = prices_of(&offers, cloud);
        assert!(!sky.is_empty() && sky.is_subset(&listed), "{cloud}: {:?}", sky.difference(&listed).next());
    }
    let p5 = table(&night.place("hunt/aws.csv")).into_iter().find(|row| row["instance_name"] == "p5.48xlarge");
    let p5 = p5.expect("the recorded night has it");
    let said = ["price", "cpu", "gpu_count", "gpu_name", "gpu_memory", "gpu_vendor", "cpu_arch", "provider_data"];
    assert_eq!(said.map(|name| p5[name].as_str()), ["55.04", "192", "8", "H100", "80.0", "nvidia", "x86", "{}"]);
}

#[test]
fn every_row_is_in_the_catalogue_or_counted_with_its_reason() {
    let night = Night::recorded();
    let all = night.offers().len();
    let counted = |said: &Said| -> (usize, Vec<String>) {
        let lines = said.talk.lines().skip_while(|line| !line.starts_with("left out:"));
        let lines = lines.take_while(|line| line.starts_with("left out:") || line.starts_with("          "));
        let lines: Vec<String> = lines.map(|line| line.trim_start_matches("left out:").trim().to_owned()).collect();
        let sum = lines.iter().map(|line| line.split(' ').next().expect("a number").parse::<usize>().expect("a number")).sum();
        (sum, lines)
    };
    let said = night.export("gpuhunt", "hunt", &[]);
    let written: usize = GPUHUNT.iter().map(|(name, _)| table(&night.place("hunt").join(format!("{name}.csv"))).len()).sum();
    let (left_out, lines) = counted(&said);
    assert_eq!(written + left_out, all, "{written} written: {}", said.talk);
    for words in ["neither on demand nor spot", "of a part of a card", "of Trainium, for which gpuhunt has no name", "region"] {
        assert!(lines.iter().any(|line| line.contains(words)), "{words}: {}", said.talk);
    }
    let said = night.export("skypilot", "sky", &[]);
    let clouds: Vec<PathBuf> = all_files(&night.place("sky")).into_iter().filter(|path| path.ends_with("vms.csv")).collect();
    let written: usize = clouds.iter().map(|path| of_skypilot(path).len()).sum();
    assert_eq!(written + counted(&said).0, all, "{written} written: {}", said.talk);
}

#[test]
fn what_is_exported_and_imported_again_has_the_same_prices() {
    let night = Night::recorded();
    for (format, name) in [("gpuhunt", "hunt"), ("skypilot", "sky")] {
        assert_eq!(night.export(format, name, &[]).exit, Some(0));
        for (seller, _) in GPUHUNT.iter().filter(|(seller, _)| format == "gpuhunt" || *seller != "cloudrift") {
            let place = night.place(name);
            let file = if format == "gpuhunt" { place.join(format!("{seller}.csv")) } else { place.join(seller).join("vms.csv") };
            let written = if format == "gpuhunt" { of_gpuhunt(&file) } else { of_skypilot(&file) };
            let again = Dataset::new();
            let path = file.to_str().expect("text");
            let said = again.run(&["import", "--form", format, "--provider", seller, "--at", "2026-11-01", path]);
            assert_eq!(said.exit, Some(0), "{format} {seller}: {}{}", said.data, said.talk);
            let offers = rows(&again, &["offers", "--limit", "100000"]);
            assert_eq!(prices_of(&offers, seller), written, "{format} {seller}");
        }
    }
}

#[test]
fn an_export_is_the_same_bytes_again_and_replaces_only_an_export() {
    let night = Night::recorded();
    let bytes = |name: &str| -> Vec<(PathBuf, Vec<u8>)> {
        let place = night.place(name);
        all_files(&place).iter().map(|path| (path.strip_prefix(&place).expect("below").to_owned(), bytes_of(path))).collect()
    };
    for format in ["gpuhunt", "skypilot", "csv", "ndjson"] {
        assert_eq!(night.export(format, "one", &[]).exit, Some(0), "into a new folder, or in the place of another export");
        assert_eq!(night.export(format, &format!("other-{format}"), &[]).exit, Some(0));
        assert!(bytes("one") == bytes(&format!("other-{format}")), "{format}");
    }
    let names: Vec<PathBuf> = bytes("one").into_iter().map(|(path, _)| path).collect();
    assert_eq!(names, [PathBuf::from("export.json"), PathBuf::from("offers.ndjson")], "nothing of earlier exports is left");
    std::fs::write(night.place("one/notes.txt"), "mine").expect("there is room");
    let before = bytes("one");
    let said = night.export("csv", "one", &[]);
    assert_eq!(said.exit, Some(2), "{}", said.talk);
    assert!(said.talk.contains("notes.txt") && bytes("one") == before, "{}", said.talk);
    std::fs::create_dir(night.place("theirs")).expect("there is room");
    std::fs::write(night.place("theirs/aws.csv"), "instance_name\n").expect("there is room");
    assert_eq!(night.export("gpuhunt", "theirs", &[]).exit, Some(2));
    assert_eq!(std::fs::read_to_string(night.place("theirs/aws.csv")).expect("it is there"), "instance_name\n");
    let hidden = std::fs::read_dir(night.folder.path())
        .expect("it reads")
        .filter(|entry| entry.as_ref().is_ok_and(|entry| entry.file_name().to_string_lossy().starts_with('.')));
    assert_eq!(hidden.count(), 0, "no draft is left");
}

#[test]
fn a_catalogue_that_is_fetched_holds_the_same_table() {
    let night = Night::recorded();
    night.export("gpuhunt", "hunt", &[]);
    let version = std::fs::read_to_string(night.place("hunt/aws/version")).expect("it is there");
    let label: Value = serde_json::from_slice(&bytes_of(&night.place("hunt/export.json"))).expect("it is JSON");
    assert_eq!(label["snapshot_id"].as_str(), Some(version.trim()));
    let file = std::fs::File::open(night.place("hunt/aws").join(version.trim()).join("catalog.zip")).expect("it is there");
    let mut archive = zip::ZipArchive::new(file).expect("it is a ZIP");
    let mut text = Vec::new();
    archive.by_name("aws.csv").expect("the table is in it").read_to_end(&mut text).expect("it inflates");
    assert!(text == bytes_of(&night.place("hunt/aws.csv")));
    // It opens the files of all sellers that it knows; one who sells nothing here has an empty one.
    let empty = std::fs::read_to_string(night.place("hunt/runpod.csv")).expect("it is there");
    assert!(empty.starts_with("instance_name,location,price,") && empty.lines().count() == 1);
    assert!(!night.place("hunt/runpod").exists());
}

#[test]
fn whole_rows_are_every_row_of_the_snapshot() {
    let night = Night::recorded();
    let (all, said) = (night.offers(), night.export("csv", "rows", &[]));
    assert_eq!(said.exit, Some(0), "{}{}", said.data, said.talk);
    let ids: BTreeSet<String> = table(&night.place("rows/offers.csv")).into_iter().map(|row| row["offer_id"].clone()).collect();
    let listed: BTreeSet<String> = all.iter().map(|row| row["offer_id"].as_str().expect("an id").to_owned()).collect();
    assert_eq!(ids, listed);
    night.export("ndjson", "lines", &[]);
    let text = std::fs::read_to_string(night.place("lines/offers.ndjson")).expect("it is there");
    let lines: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    assert_eq!(lines.len(), all.len());
    for line in lines {
        assert!(all.contains(&line), "{line}");
    }
}

const MAPPING: &str = "name = 'kept'\nsource = 'kept'\nhomepage = 'https://kept.example'\nversion = 1\nform = 'csv'\n\
    [night]\ncolumn = 'day'\n[seller]\nname = 'aws'\nours = { aws = 'aws' }\n[machine]\ntype = 'machine'\nregion = 'region'\n[gpu]\n\
    of_machine_type = true\n[terms]\nos = 'linux'\n[[price]]\ncolumn = 'usd'\ncurrency = 'USD'\nunit = 'hour'\n\
    per = 'instance'\npricing_model = 'on_demand'\n";

#[test]
fn an_imported_night_is_never_the_newest_unless_it_is_named() {
    let night = Night::recorded();
    let collected = rows(&night.dataset, &["snapshots"])[0]["snapshot_id"].as_str().expect("an id").to_owned();
    let (mapping, file) = (night.place("kept.toml"), night.place("kept.csv"));
    std::fs::write(&mapping, MAPPING).expect("there is room");
    std::fs::write(&file, "day,machine,region,usd\n2030-01-01,p5.48xlarge,us-east-1,8.00\n").expect("there is room");
    let args = ["import", "--mapping", mapping.to_str().expect("text"), file.to_str().expect("text")];
    let only_imports = Dataset::new();
    for dataset in [&night.dataset, &only_imports] {
        assert_eq!(dataset.run(&args).exit, Some(0));
    }
    let listed = prices_of(&night.offers(), "aws");
    assert!(listed.len() > 10 && !listed.contains(&price("p5.48xlarge", "us-east-1", 8.0, "on_demand", 8.0)), "{listed:?}");
    let cheapest = rows(&night.dataset, &["cheapest", "--gpu", "h100", "--now", "2030-01-02T00:00:00Z"]);
    assert!(cheapest.len() > 1 && cheapest.iter().all(|row| row["source_kind"] != "import"), "{cheapest:?}");
    let said = night.export("gpuhunt", "hunt", &[]);
    assert!(said.exit == Some(0) && said.talk.contains(&collected), "{}", said.talk);
    let said = night.export("gpuhunt", "hunt", &["--snapshot", "2030-01-01"]);
    assert!(said.exit == Some(0) && said.talk.contains("imported: its prices"), "{}", said.talk);
    assert_eq!(table(&night.place("hunt/aws.csv"))[0]["price"], "8.0");
    let place = night.place("none");
    let said = only_imports.run(&["export", "--format", "csv", place.to_str().expect("text")]);
    assert_eq!(said.exit, Some(2), "{}", said.talk);
    assert!(!place.exists() && said.talk.contains("--snapshot"), "{}", said.talk);
}
