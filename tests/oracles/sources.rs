//! The files themselves.

use std::collections::{BTreeMap, BTreeSet};
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

use super::{Key, Price, Source, SourceNight, nano, plain, seller};

/// A folder of the histories; `None` where they are not there.
fn folder(name: &str) -> Option<PathBuf> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../shared/data/history").join(name);
    if !path.is_dir() {
        eprintln!("skipped: ../shared is not beside this checkout");
        return None;
    }
    Some(path)
}

fn inflated(path: &Path) -> String {
    let mut text = String::new();
    let file = std::fs::File::open(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    flate2::read::GzDecoder::new(file).read_to_string(&mut text).expect("it inflates");
    text
}

fn table(text: &str) -> Vec<BTreeMap<String, String>> {
    csv::Reader::from_reader(text.as_bytes()).deserialize().map(|row| row.expect("the table reads")).collect()
}

fn mapping(name: &str) -> [String; 2] {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/mappings").join(name);
    ["--mapping".to_owned(), path.to_str().expect("text").to_owned()]
}

fn add(night: &mut SourceNight, key: Key, price: Price) {
    night.prices.entry(key).or_default().insert(price);
}

/// Ids of nights that are days: the first table of a day is its noon, and each further one a minute later.
#[derive(Default)]
struct Days {
    tables: BTreeMap<String, Vec<String>>,
}

impl Days {
    fn id(&mut self, day: &str, table: &str) -> String {
        let tables = self.tables.entry(day.to_owned()).or_default();
        let at = tables.iter().position(|known| known == table).unwrap_or_else(|| {
            tables.push(table.to_owned());
            tables.len() - 1
        });
        format!("{day}T12-{at:02}-00Z")
    }
}

/// Every version of a cost calculator's prices of one cloud.
pub fn gcosts(until: &str) -> Option<Source> {
    let file = folder("gcp-gcosts")?.join("gcp_gpu_machine_prices.csv.gz");
    let (mut nights, mut days) = (BTreeMap::<String, SourceNight>::new(), Days::default());
    for row in table(&inflated(&file)).iter().filter(|row| row["snapshot_date"].as_str() <= until) {
        let night = nights.entry(days.id(&row["snapshot_date"], &row["commit"])).or_default();
        let cards = cards_of_gcp(&row["machine_type"]);
        for (column, way) in
            [("hour", "on_demand"), ("hour_spot", "spot"), ("month_1y", "reserved 12"), ("month_3y", "reserved 36")]
        {
            if !row[column].is_empty() {
                let key = ["gcp", &row["machine_type"], &row["region"], &cards, way].map(str::to_owned);
                add(night, key, (nano(&row[column]), false));
            }
        }
    }
    let [option, path] = mapping("gcosts.toml");
    let import = vec![option, path, "--until".to_owned(), until.to_owned(), file.to_str().expect("text").to_owned()];
    Some(Source { name: "gcp-gcosts", nights, import, suffix: "-gcosts" })
}

/// The cards of a machine, as its name says.
fn cards_of_gcp(machine: &str) -> String {
    let (family, size) = machine.rsplit_once('-').unwrap_or((machine, ""));
    let by_vcpus = |sizes: &[(&str, &str)]| sizes.iter().find(|(of, _)| *of == size).map(|(_, cards)| (*cards).to_owned());
    let named = match family {
        "g2-standard" => by_vcpus(&[("24", "2"), ("48", "4"), ("96", "8")]).or_else(|| Some("1".to_owned())),
        "g4-standard" => {
            by_vcpus(&[("6", "0.125"), ("12", "0.25"), ("24", "0.5"), ("48", "1"), ("96", "2"), ("192", "4"), ("384", "8")])
        }
        _ => size.strip_suffix('g').map(str::to_owned),
    };
    named.unwrap_or_else(|| panic!("{machine}"))
}

/// Every version of a generated table of one cloud's prices on demand; of a partition and of days.
pub fn karpenter(name: &'static str, partition: &str, days_asked_for: (&str, &str), scratch: &Path) -> Option<Source> {
    let file = folder("aws-ondemand-karpenter")?.join("aws_ondemand_all_types.csv.gz");
    let known = Command::new(env!("CARGO_BIN_EXE_gpuledger"))
        .args(["hardware", "--provider", "aws", "--format", "json"])
        .output()
        .expect("the program starts");
    let known: Vec<Value> = serde_json::from_slice(&known.stdout).expect("it is JSON");
    let cards: BTreeMap<&str, String> =
        known.iter().filter_map(|row| Some((row["instance_type"].as_str()?, plain(&row["gpu_count"].to_string())))).collect();
    // Of more than a thousand machines those with cards; the others are none of the program's business.
    let text = inflated(&file);
    let (mut kept, mut nights, mut days) =
        (text.lines().next().map(|head| format!("{head}\n"))?, BTreeMap::<String, SourceNight>::new(), Days::default());
    for (row, line) in table(&text).iter().zip(text.lines().skip(1)) {
        let day = row["snapshot_date"].as_str();
        let is_asked_for = row["partition"] == partition && (days_asked_for.0..=days_asked_for.1).contains(&day);
        if let Some(cards) = cards.get(row["instance_type"].as_str()).filter(|_| is_asked_for) {
            let night = nights.entry(days.id(&row["snapshot_date"], &row["commit"])).or_default();
            let key = ["aws", &row["instance_type"], &row["region"], cards, "on_demand"].map(str::to_owned);
            add(night, key, (nano(&row["usd_or_cny_per_hour"]), false));
            kept.push_str(line);
            kept.push('\n');
        }
    }
    let path = scratch.join(format!("{name}.csv"));
    std::fs::write(&path, kept).expect("there is room");
    let [option, of] = mapping("karpenter.toml");
    let import = vec![option, of, path.to_str().expect("text").to_owned()];
    Some(Source { name, nights, import, suffix: "-karpenter" })
}

/// Since this day the tracker gives the price of one card.
const PER_CARD_SINCE: &str = "2026-02-19";

/// A tracker of many sellers in one table.
pub fn getdeploying(until: &str) -> Option<Source> {
    let file = folder("getdeploying-multi")?.join("observations_2026-02-11_2026-07-20.csv.gz");
    let mut nights = BTreeMap::<String, SourceNight>::new();
    for row in table(&inflated(&file)).iter().filter(|row| row["date"].as_str() <= until) {
        let night = nights.entry(format!("{}T12-00-00Z", row["date"])).or_default();
        let region = if ["global", "any"].contains(&row["region"].as_str()) { "" } else { &row["region"] };
        let label = format!("{} {}", row["gpu_model"], row["gpu_count"]);
        let key = [&seller(&row["provider"]), &label, region, &plain(&row["gpu_count"]), row["rental_type"].as_str()];
        add(night, key.map(str::to_owned), (nano(&row["price_median_usd"]), row["date"].as_str() >= PER_CARD_SINCE));
    }
    let [option, path] = mapping("getdeploying.toml");
    let import = vec![option, path, "--until".to_owned(), until.to_owned(), file.to_str().expect("text").to_owned()];
    Some(Source { name: "getdeploying-multi", nights, import, suffix: "-getdeploying" })
}

/// A tracker of many sellers, one file a day.
pub fn gpurentalprices(days: usize) -> Option<Source> {
    let folder = folder("gpurentalprices")?;
    let entries = std::fs::read_dir(folder).expect("the folder reads");
    let mut files: Vec<PathBuf> = entries.map(|entry| entry.expect("an entry").path()).collect();
    files.retain(|path| path.extension().is_some_and(|ending| ending == "gz"));
    files.sort();
    files.truncate(days);
    let mut nights = BTreeMap::new();
    let mut import = vec!["--form".to_owned(), "gpurentalprices".to_owned()];
    for file in files {
        let day: Value = serde_json::from_str(&inflated(&file)).expect("it is JSON");
        let at = day["generated_at"].as_str().expect("a time");
        let id = format!("{}Z", at[..19].replace(':', "-"));
        let mut night = SourceNight::default();
        let stale: BTreeSet<&String> = day["providers"]
            .as_object()
            .into_iter()
            .flatten()
            .filter(|(_, of)| of["stale"] == true)
            .map(|(name, _)| name)
            .collect();
        for offer in day["offers"].as_array().expect("a list") {
            let text = |field: &str| offer[field].as_str().unwrap_or_else(|| panic!("{field} of {offer}")).to_owned();
            if stale.contains(&text("provider")) {
                continue;
            }
            let mut label = text("gpu");
            if !offer["vram_gb"].is_null() {
                label.push_str(&format!(" {} GB", offer["vram_gb"]));
            }
            if !offer["min_gpus"].is_null() {
                label.push_str(&format!(", at least {}", offer["min_gpus"]));
            }
            let way = match text("kind").as_str() {
                "on-demand" => "on_demand".to_owned(),
                "spot" => "spot".to_owned(),
                plan => format!("on_demand {plan}"),
            };
            let key = [seller(&text("provider")), label, String::new(), "1".to_owned(), way];
            add(&mut night, key, (nano(&offer["usd_hr"].to_string()), true));
        }
        nights.insert(id, night);
        import.push(file.to_str().expect("text").to_owned());
    }
    Some(Source { name: "gpurentalprices", nights, import, suffix: "-gpurentalprices" })
}
