//! Price histories of other people, imported by the program itself: what becomes of a file, that it commits once, and that no
//! night of a provider takes it for the provider's own word.
//!
//! Whole histories lie beside the checkout; without them those tests say so and pass. They take some nights of each, and every
//! night with `GPULEDGER_LONG_HISTORIES=1`.

use crate::support;
use std::collections::{BTreeMap, BTreeSet};
use std::io::Read as _;
use std::path::{Path, PathBuf};

use crate::support::{Dataset, Said};
use serde_json::Value;

const MAPPING: &str = r#"
name = "shop"
source = "what a shop kept"
homepage = "https://shop.example"
version = 1
form = "csv"
[night]
column = "day"
[seller]
column = "seller"
ours = { lambdalabs = "lambda" }
[machine]
type = "machine"
region = "region"
[gpu]
label = "card"
count = "cards"
[terms]
os = "linux"
[[price]]
column = "price"
currency = "USD"
unit = "hour"
per = "instance"
pricing_model = "on_demand"
"#;

const HEAD: &str = "day,seller,machine,region,card,cards,price\n";

/// A dataset, and a folder for files beside it.
struct Shop {
    dataset: Dataset,
    files: tempfile::TempDir,
}

impl Shop {
    fn new() -> Self {
        Self { dataset: Dataset::new(), files: tempfile::tempdir().expect("there is room for a folder") }
    }

    fn file(&self, name: &str, text: &str) -> String {
        let path = self.files.path().join(name);
        std::fs::write(&path, text).expect("there is room for a file");
        path.to_str().expect("a temporary folder's name is text").to_owned()
    }

    fn import(&self, mapping: &str, text: &str, more: &[&str]) -> Said {
        let (mapping, file) = (self.file("shop.toml", mapping), self.file("shop.csv", text));
        self.dataset.run(&[&["import", "--mapping", &mapping, &file], more].concat())
    }

    fn rows(&self, args: &[&str]) -> Vec<Value> {
        let said = self.dataset.run(&[args, &["--format", "json"]].concat());
        serde_json::from_str(&said.data).unwrap_or_else(|error| panic!("{error}: {}{}", said.data, said.talk))
    }
}

fn days(text: &str) -> String {
    let line = |day: &str| format!("2026-03-0{day},lambdalabs,gpu_1x_h100,us-east-1,H100 SXM,1,3.{day}9\n");
    text.split(' ').map(line).collect()
}

#[test]
fn the_same_file_twice_commits_once_and_a_longer_one_goes_on_oldest_first() {
    let shop = Shop::new();
    let first = shop.import(MAPPING, &format!("{HEAD}{}", days("3 1")), &[]);
    assert_eq!(first.exit, Some(0), "{}{}", first.data, first.talk);
    assert!(first.data.starts_with("2 nights: 0 were there before and stay as they are, 2 published now"), "{}", first.data);
    let told: Vec<&str> = first.talk.lines().filter_map(|line| line.get(..20)).collect();
    assert_eq!(told, ["2026-03-01T12-00-00Z", "2026-03-03T12-00-00Z"]);
    let before = (shop.dataset.files("offers"), shop.dataset.files("coverage"));
    let again = shop.import(MAPPING, &format!("{HEAD}{}", days("3 1")), &[]);
    assert_eq!(again.exit, Some(12), "{}{}", again.data, again.talk);
    assert!(before == (shop.dataset.files("offers"), shop.dataset.files("coverage")), "nothing is written twice");
    let longer = shop.import(MAPPING, &format!("{HEAD}{}", days("3 1 2 4")), &["--until", "2026-03-03"]);
    assert!(longer.data.starts_with("3 nights: 2 were there before and stay as they are, 1 published now"), "{}", longer.data);
    assert_eq!(shop.rows(&["snapshots"]).len(), 3);
}

#[test]
fn a_history_is_nobodys_own_word() {
    let shop = Shop::new();
    assert_eq!(shop.dataset.run(&["collect", "--recorded"]).exit, Some(0));
    let collected = shop.rows(&["snapshots"])[0]["snapshot_id"].as_str().expect("an id").to_owned();
    let day = &collected[..10];
    // Cheaper than everybody, on the collected night's own day and after it, under the name of a provider of ours.
    let line = |day: &str| format!("{day},lambdalabs,gpu_1x_h100_sxm5,us-east-1,H100 SXM,1,0.99\n");
    let text = format!("{HEAD}{}{}{}", line("2026-01-01"), line(day), line("2026-12-24"));
    let said = shop.import(MAPPING, &text, &[]);
    assert_eq!(said.exit, Some(0), "{}{}", said.data, said.talk);
    let imported = shop.rows(&["offers", "--snapshot", "2026-12-24"]);
    assert_eq!(imported.len(), 1);
    assert_eq!((&imported[0]["provider"], &imported[0]["source_kind"]), (&"lambda".into(), &"import".into()));
    assert_eq!((&imported[0]["scope"], imported[0]["published_text"].as_str()), (&"import-shop".into(), Some("0.99")));
    // What a person means by the latest night, or that of a day, is what was collected.
    for meant in ["latest", day] {
        let offers = shop.rows(&["offers", "--snapshot", meant, "--limit", "100000"]);
        assert!(offers.len() > 100 && offers.iter().all(|row| row["source_kind"] != "import"), "{meant}: {}", offers.len());
    }
    let lambda = shop.rows(&["providers"]).into_iter().find(|row| row["provider"] == "lambda").expect("it is listed");
    assert_eq!(lambda["last_snapshot"].as_str(), Some(collected.as_str()));
    // The night after is judged against the collected one: the offers are the same, and nothing jumped or shrank.
    let later = shop.dataset.run(&["collect", "--recorded", "--providers", "lambda,ecb", "--at", "2026-12-25"]);
    assert!(later.data.contains("lambda") && !later.data.contains("0.99"), "{}", later.data);
    let lambda = shop.rows(&["findings", "2026-12-25", "--provider", "lambda"]);
    assert!(lambda.iter().all(|finding| finding["rule"] == "typed_by_hand" || finding["severity"] == "note"), "{lambda:?}");
    let moved = ["price_jumped", "scope_grew", "scope_shrank", "scope_gone"];
    assert!(lambda.iter().all(|finding| !moved.contains(&finding["rule"].as_str().expect("a rule"))), "{lambda:?}");
}

#[test]
fn a_seller_who_is_not_ours_for_certain_keeps_a_name_that_is_not_ours() {
    let shop = Shop::new();
    let text = format!("{HEAD}2026-03-01,lambda,a,,L40S,1,1.5\n2026-03-01,Massed Compute,a,,L40S,1,1.6\n");
    assert_eq!(shop.import(MAPPING, &text, &[]).exit, Some(0));
    let sellers: BTreeSet<String> =
        shop.rows(&["offers"]).iter().map(|row| row["provider"].as_str().expect("a name").to_owned()).collect();
    assert_eq!(sellers, BTreeSet::from(["lambda-shop".to_owned(), "massed-compute".to_owned()]));
}

#[test]
fn a_label_that_nobody_knows_is_held_back_with_its_reason_and_its_line() {
    let shop = Shop::new();
    let known: String =
        (1..=6).map(|cards| format!("2026-03-01,lambdalabs,m{cards},us-east-1,H100 SXM,{cards},{cards}.5\n")).collect();
    let said = shop.import(MAPPING, &format!("{HEAD}{known}2026-03-01,lambdalabs,odd,us-east-1,Q900,1,1\n"), &[]);
    assert_eq!(said.exit, Some(0), "{}{}", said.data, said.talk);
    let held = shop.rows(&["findings", "2026-03-01", "--severity", "quarantine_row"]);
    assert_eq!(held.len(), 1);
    assert_eq!((&held[0]["rule"], &held[0]["raw_place"]), (&"unknown_gpu_label".into(), &"line 8, price".into()));
    assert!(held[0]["reason"].as_str().expect("a reason").contains("Q900"));
    assert_eq!(shop.rows(&["offers"]).len(), 6);
}

#[test]
fn an_amount_takes_the_exchange_rate_of_its_own_day() {
    let shop = Shop::new();
    let rates = shop.file("rates.csv", "Date,USD,CNY,\n2026-03-03,1.2,8,\n2026-03-02,1.1,8,\n2026-02-27,1.5,8,\n");
    let line = |day: &str| format!("{day},lambdalabs,m,,H100 SXM,1,2\n");
    let text = format!("{HEAD}{}{}{}", line("2026-03-02"), line("2026-03-03"), line("2026-03-30"));
    let said = shop.import(&MAPPING.replace("\"USD\"", "\"EUR\""), &text, &["--rates", &rates]);
    assert_eq!(said.exit, Some(10), "the last night has no rate: {}{}", said.data, said.talk);
    let usd = |day: &str| shop.rows(&["offers", "--snapshot", day])[0]["price_usd_per_gpu_hour"].as_f64();
    // A day's rate is published in the afternoon, and a history's day is taken to be its noon.
    assert_eq!((usd("2026-03-02"), usd("2026-03-03"), usd("2026-03-30")), (Some(3.0), Some(2.2), None));
}

#[test]
fn an_imported_night_is_derived_again_from_the_archive_and_each_price_is_explained() {
    let shop = Shop::new();
    shop.import(MAPPING, &format!("{HEAD}{}", days("1 2 3")), &[]);
    std::fs::remove_dir_all(shop.files.path()).expect("the files are not needed any more");
    let again = shop.dataset.run(&["replay", "2026-03-02"]);
    assert_eq!(again.exit, Some(0), "{}{}", again.data, again.talk);
    assert!(again.talk.contains("byte for byte"), "{}", again.talk);
    let id = shop.rows(&["offers", "--snapshot", "2026-03-02"])[0]["offer_id"].as_str().expect("an id").to_owned();
    let explained = shop.dataset.run(&["explain", &id, "--snapshot", "2026-03-02"]);
    assert_eq!(explained.exit, Some(0), "{}{}", explained.data, explained.talk);
    assert!(explained.data.contains("⟦3.29⟧"), "{}", explained.data);
    let whole = shop.dataset.run(&["doctor", "--all"]);
    assert!(!whole.data.contains("problem"), "{}{}", whole.data, whole.talk);
}

#[test]
fn what_cannot_be_imported_is_said_and_nothing_is_written() {
    let shop = Shop::new();
    for (mapping, text, more, words) in [
        (MAPPING.replace("unit = \"hour\"", "unit = \"fortnight\""), HEAD.to_owned(), vec![], "fortnight"),
        (MAPPING.to_owned(), "day,seller\n2026-03-01,a\n".to_owned(), vec![], "machine"),
        (MAPPING.replace("[night]\ncolumn = \"day\"\n", ""), format!("{HEAD}{}", days("1")), vec![], "--at"),
    ] {
        let said = shop.import(&mapping, &text, &more);
        let talk = said.talk.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(said.exit == Some(2), "{words}: {:?} {talk}", said.exit);
        assert!(talk.contains(words), "{words}: {talk}{}", said.data);
        assert!(shop.dataset.files("offers").is_empty());
    }
    let said = shop.dataset.run(&["import", "--form", "skypilet", "x.csv"]);
    assert!(said.exit == Some(2) && said.talk.contains("skypilot, gpuhunt, gpurentalprices"), "{}", said.talk);
}

#[test]
fn catalogues_of_skypilot_and_gpuhunt_are_read_as_they_are_written() {
    let shop = Shop::new();
    let sky = shop.file(
        "verda.csv",
        "InstanceType,AcceleratorName,AcceleratorCount,vCPUs,MemoryGiB,Price,SpotPrice,Region,GpuInfo\n\
         1H100.80S.30V,H100,1.0,30.0,120.0,2.29,0.8015,FIN-01,\"{\"\"Gpus\"\": []}\"\nCPU.4V,,,4,16,0.0279,,FIN-01,\n\
         2B300.60V,B300,2.0,60.0,550.0,,4.893,FIN-03,\n",
    );
    let said = shop.dataset.run(&["import", "--form", "skypilot", "--provider", "datacrunch", "--at", "2026-01-10", &sky]);
    assert_eq!(said.exit, Some(0), "{}{}", said.data, said.talk);
    let offers = |at: &str| {
        let rows = shop.rows(&["offers", "--snapshot", at, "--sort", "instance_type"]);
        let text = |row: &Value, name: &str| row[name].to_string().trim_matches('"').to_owned();
        rows.iter()
            .map(|row| {
                ["provider", "instance_type", "gpu_count", "pricing_model", "published_amount"]
                    .map(|name| text(row, name))
                    .join(" ")
            })
            .collect::<BTreeSet<_>>()
    };
    assert_eq!(
        offers("2026-01-10").into_iter().collect::<Vec<_>>(),
        ["verda 1H100.80S.30V 1 on_demand 2.29", "verda 1H100.80S.30V 1 spot 0.8015", "verda 2B300.60V 2 spot 4.893"]
    );
    let hunt = shop.file(
        "lambdalabs.csv",
        "instance_name,location,price,cpu,memory,gpu_count,gpu_name,gpu_memory,spot,disk_size\n\
         gpu_8x_a100,us-east-1,10.32,124,1800.0,8,A100,40.0,False,6144.0\ngpu_1x_a10,us-west-1,0.75,30,200.0,1,A10,24.0,True,\n",
    );
    let said = shop.dataset.run(&["import", "--form", "gpuhunt", "--provider", "lambdalabs", "--at", "2026-01-11", &hunt]);
    assert_eq!(said.exit, Some(0), "{}{}", said.data, said.talk);
    assert_eq!(
        offers("2026-01-11").into_iter().collect::<Vec<_>>(),
        ["lambda gpu_1x_a10 1 spot 0.75", "lambda gpu_8x_a100 8 on_demand 10.32"]
    );
}

/// A folder of the histories; `None` where they are not there.
fn histories(name: &str) -> Option<PathBuf> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../shared/data/history").join(name);
    if !path.is_dir() {
        eprintln!("skipped: ../shared is not beside this checkout");
        return None;
    }
    Some(path)
}

fn is_long() -> bool {
    std::env::var_os("GPULEDGER_LONG_HISTORIES").is_some()
}

fn mapping(name: &str) -> String {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/mappings").join(name).to_str().expect("a path of text").to_owned()
}

fn inflated(path: &Path) -> String {
    let mut text = String::new();
    let file = std::fs::File::open(path).expect("the file opens");
    flate2::read::GzDecoder::new(file).read_to_string(&mut text).expect("it inflates");
    text
}

fn csv_rows(path: &Path) -> Vec<BTreeMap<String, String>> {
    csv::Reader::from_reader(inflated(path).as_bytes()).deserialize().map(|row| row.expect("the table reads")).collect()
}

/// A price as a whole number of thousand millionths, which is as exact as the mappings are.
fn nano(text: &str) -> i64 {
    let price: f64 = text.parse().unwrap_or_else(|error| panic!("{text}: {error}"));
    #[expect(clippy::cast_possible_truncation, reason = "prices are small")]
    let nano = (price * 1e9).round() as i64;
    nano
}

#[test]
fn every_price_of_a_cost_calculators_history_is_published_as_it_stands_there() {
    let Some(folder) = histories("gcp-gcosts") else { return };
    let file = folder.join("gcp_gpu_machine_prices.csv.gz");
    let dataset = Dataset::new();
    let until = if is_long() { "2030-01-01" } else { "2022-04-01" };
    let path = file.to_str().expect("a path of text");
    let said = dataset.run(&["import", "--mapping", &mapping("gcosts.toml"), "--until", until, path]);
    assert!(matches!(said.exit, Some(0 | 10)), "{}{}", said.data, said.talk);
    eprintln!("gcosts: {}", said.data.trim());
    let mut source: BTreeMap<(String, String), BTreeMap<String, i64>> = BTreeMap::new();
    for row in csv_rows(&file).iter().filter(|row| row["snapshot_date"].as_str() <= until) {
        let ways = [("hour", "on_demand"), ("hour_spot", "spot"), ("month_1y", "reserved 12"), ("month_3y", "reserved 36")];
        for (column, way) in ways.into_iter().filter(|(column, _)| !row[*column].is_empty()) {
            let key = format!("{} {} {way}", row["machine_type"], row["region"]);
            source.entry((row["snapshot_date"].clone(), row["commit"].clone())).or_default().insert(key, nano(&row[column]));
        }
    }
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    let nights = runtime.block_on(dataset.offers());
    assert!(nights.len() >= if is_long() { 280 } else { 10 }, "{} of {} nights", nights.len(), source.len());
    let (mut seen, mut absent) = (0, 0);
    // Of several tables of a day the first is published at noon, and the others after it.
    let published: BTreeMap<String, BTreeMap<String, i64>> = nights.iter().map(rows_of).collect();
    let mut order: BTreeMap<String, u32> = BTreeMap::new();
    let mut commits: Vec<(String, String)> = Vec::new();
    for row in csv_rows(&file).iter().filter(|row| row["snapshot_date"].as_str() <= until) {
        let key = (row["snapshot_date"].clone(), row["commit"].clone());
        if commits.last() != Some(&key) && !commits.contains(&key) {
            commits.push(key);
        }
    }
    for (day, commit) in commits {
        let table = order.entry(day.clone()).and_modify(|table| *table += 1).or_insert(0);
        let id = format!("{day}T12-{table:02}-00Z");
        let prices = &source[&(day, commit)];
        match published.get(&id) {
            None => absent += prices.len(),
            Some(rows) => {
                for (key, price) in rows {
                    assert_eq!(prices.get(key), Some(price), "{id} {key}");
                }
                seen += rows.len();
                absent += prices.len() - rows.len();
            }
        }
    }
    eprintln!("gcosts: {seen} prices as they stand there, {absent} held back or refused");
    assert!(absent * 20 < seen, "{absent} of {seen}");
}

/// The id of a night, and its prices by machine, region and way to buy.
fn rows_of(rows: &polars::prelude::DataFrame) -> (String, BTreeMap<String, i64>) {
    let columns = ["instance_type", "region", "pricing_model", "commitment_months", "published_amount", "snapshot_id"];
    let texts = columns.map(|column| support::texts(rows, column));
    let key = |row: usize| format!("{} {} {} {}", texts[0][row], texts[1][row], texts[2][row], texts[3][row]).trim().to_owned();
    (texts[5][0].clone(), (0..rows.height()).map(|row| (key(row), nano(&texts[4][row]))).collect())
}

#[test]
fn a_tracker_of_many_sellers_is_imported_night_by_night() {
    let (Some(days), Some(table)) = (histories("gpurentalprices"), histories("getdeploying-multi")) else { return };
    let dataset = Dataset::new();
    let mut files: Vec<PathBuf> =
        std::fs::read_dir(&days).expect("the folder reads").map(|entry| entry.expect("an entry").path()).collect();
    files.retain(|path| path.extension().is_some_and(|ending| ending == "gz"));
    files.sort();
    let taken = if is_long() { files.len() } else { 5 };
    let paths: Vec<&str> = files[..taken].iter().map(|path| path.to_str().expect("text")).collect();
    let said = dataset.run(&[&["import", "--form", "gpurentalprices"], paths.as_slice()].concat());
    assert!(matches!(said.exit, Some(0 | 10)), "{}{}", said.data, said.talk);
    eprintln!("gpurentalprices: {}", said.data.trim());
    assert!(said.data.contains(&format!("{taken} published now")), "{}", said.data);
    let until = if is_long() { "2030-01-01" } else { "2026-02-20" };
    let table = table.join("observations_2026-02-11_2026-07-20.csv.gz");
    let said =
        dataset.run(&["import", "--mapping", &mapping("getdeploying.toml"), "--until", until, table.to_str().expect("text")]);
    assert!(matches!(said.exit, Some(0 | 10)), "{}{}", said.data, said.talk);
    eprintln!("getdeploying: {}", said.data.trim());
    // Two histories that overlap stand beside each other, and neither is compared with the other.
    let again =
        dataset.run(&["import", "--mapping", &mapping("getdeploying.toml"), "--until", until, table.to_str().expect("text")]);
    assert_eq!(again.exit, Some(12), "{}{}", again.data, again.talk);
}
