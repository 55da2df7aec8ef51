//! Reads the histories.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::path::{Path, PathBuf};

use chrono::{DateTime, NaiveDate, Utc};
use gpuledger::night::SnapshotId;
use gpuledger_scrapers::contract::{PricePer, PriceUnit, PricingModel};
use num_rational::Ratio;
use rust_decimal::Decimal;
use serde_json::Value;

use super::{History, Night, Price, card, files, read};

/// The folder of the histories; `None` where it is not there.
pub fn shared() -> Option<PathBuf> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../shared");
    if !path.is_dir() {
        eprintln!("skipped: ../shared is not beside this checkout");
        return None;
    }
    Some(path)
}

/// Every history that is read.
pub fn all(shared: &Path) -> Vec<History> {
    let of = |name: &str| shared.join("data/history").join(name);
    vec![
        one_site(&of("gpurentalprices")),
        many_sites(&of("getdeploying-multi")),
        aws(&of("aws-ondemand-karpenter")),
        azure(&of("azure-ondemand-karpenter")),
        azure_captures(&of("azure-radar/snapshots")),
        gcp(&of("gcp-gcosts")),
        averages(&of("tier-averages-daily")),
    ]
}

fn midnight(day: &str) -> DateTime<Utc> {
    let day: NaiveDate = day.parse().unwrap_or_else(|error| panic!("{day}: {error}"));
    day.and_time(chrono::NaiveTime::MIN).and_utc()
}

fn decimal(text: &str) -> Decimal {
    text.parse().or_else(|_| Decimal::from_scientific(text)).unwrap_or_else(|error| panic!("{text}: {error}"))
}

/// Nights from prices by their time, in order. Several tables of one day are minutes apart.
fn nights(by_time: BTreeMap<(DateTime<Utc>, String), Vec<Price>>) -> Vec<Night> {
    let mut seen: HashMap<DateTime<Utc>, i64> = HashMap::new();
    let night = |((at, _), prices): (_, Vec<Price>)| {
        let minutes = seen.entry(at).and_modify(|minutes| *minutes += 1).or_insert(0);
        Night { id: SnapshotId::at(at + chrono::Duration::minutes(*minutes)), prices: told_apart(prices) }
    };
    by_time.into_iter().map(night).collect()
}

/// One price of each thing that the history tells apart: of several, the lowest, as a person would take it.
fn told_apart(mut prices: Vec<Price>) -> Vec<Price> {
    prices.sort_by(|a, b| a.key().cmp(&b.key()).then(a.amount.cmp(&b.amount)));
    prices.dedup_by_key(|price| price.key());
    prices
}

pub fn by_the_hour(provider: &str, region: Option<&str>, machine: &str, card: &str, amount: Decimal) -> Price {
    Price {
        provider: provider.to_owned(),
        scope: region.unwrap_or("all").to_owned(),
        region: region.map(str::to_owned),
        machine: machine.to_owned(),
        card: card.to_owned(),
        gpus: Ratio::from_integer(1),
        pricing_model: PricingModel::OnDemand,
        plan: None,
        months: None,
        amount,
        currency: "USD".to_owned(),
        unit: PriceUnit::Hour,
        per: PricePer::Instance,
    }
}

/// A folder's name without what a provider's name may not have.
fn plain(name: &str) -> String {
    name.replace(['.', ' ', '\''], "-")
}

/// A tracker of many sellers, one file a day.
fn one_site(folder: &Path) -> History {
    let mut by_time = BTreeMap::new();
    for file in files(folder, ".json.gz") {
        let day: Value = serde_json::from_str(&read(&file)).expect("it is JSON");
        let prices = day["offers"].as_array().expect("a list").iter().filter_map(|offer| {
            let (label, kind) = (offer["gpu"].as_str()?, offer["kind"].as_str()?);
            let machine = format!("{label} {}", offer["vram_gb"]);
            let amount = decimal(&offer["usd_hr"].to_string());
            let mut price = by_the_hour(&plain(offer["provider"].as_str()?), None, &machine, card(label)?, amount);
            price.plan = (kind != "on-demand").then(|| kind.to_owned());
            if kind == "spot" {
                price.pricing_model = PricingModel::Spot;
            }
            Some(price)
        });
        by_time.insert((midnight(day["date"].as_str().expect("a day")), String::new()), prices.collect());
    }
    History { name: "gpurentalprices", nights: nights(by_time), is_long: false }
}

fn table(text: &str) -> Vec<HashMap<String, String>> {
    csv::Reader::from_reader(text.as_bytes()).deserialize().map(|row| row.expect("the table reads")).collect()
}

/// A tracker of many sellers, one table.
fn many_sites(folder: &Path) -> History {
    let mut by_time: BTreeMap<_, Vec<Price>> = BTreeMap::new();
    for row in table(&read(&files(folder, ".csv.gz")[0])) {
        let Some(card) = card(&row["gpu_model"]) else { continue };
        let mut price = by_the_hour(&plain(&row["provider"]), None, &row["gpu_model"], card, decimal(&row["price_median_usd"]));
        price.region = Some(row["region"].clone());
        price.gpus = Ratio::from_integer(row["gpu_count"].parse().expect("a count"));
        if row["rental_type"] == "spot" {
            price.pricing_model = PricingModel::Spot;
        }
        // Since this day the tracker gives the price of one GPU.
        if row["date"].as_str() >= PER_GPU_SINCE {
            price.per = PricePer::Gpu;
        }
        by_time.entry((midnight(&row["date"]), String::new())).or_default().push(price);
    }
    History { name: MANY_SITES, nights: nights(by_time), is_long: true }
}

/// The tracker of many sellers in one table.
pub const MANY_SITES: &str = "getdeploying-multi";

/// The day on which a tracker changed from prices of machines to prices of one GPU, without a word.
pub const PER_GPU_SINCE: &str = "2026-02-19";

/// The cards of a provider's machines, from its own table.
fn cards(provider: &str) -> HashMap<String, (String, Ratio<u32>)> {
    let machines = gpuledger_scrapers::find(provider).expect("it is there").machines();
    let known = |machine: gpuledger_scrapers::hardware::KnownMachine| {
        Some((machine.instance_type, (machine.gpu.label?, machine.gpu.count?)))
    };
    machines.into_iter().filter_map(known).collect()
}

fn of_machine(
    provider: &str,
    region: &str,
    machine: &str,
    cards: &HashMap<String, (String, Ratio<u32>)>,
    amount: &str,
) -> Option<Price> {
    let (label, gpus) = cards.get(machine)?;
    Some(Price { gpus: *gpus, ..by_the_hour(provider, Some(region), machine, label, decimal(amount)) })
}

fn aws(folder: &Path) -> History {
    let (cards, mut by_time) = (cards("aws"), BTreeMap::<_, Vec<Price>>::new());
    let mut seen = BTreeSet::new();
    for row in table(&read(&files(folder, ".csv.gz")[0])) {
        let Some(mut price) = of_machine("aws", &row["region"], &row["instance_type"], &cards, &row["usd_or_cny_per_hour"])
        else {
            continue;
        };
        price.currency.clone_from(&row["currency"]);
        let at = row["snapshot_date"].clone();
        if seen.insert((at.clone(), price.region.clone(), price.machine.clone())) {
            by_time.entry((midnight(&at), String::new())).or_default().push(price);
        }
    }
    History { name: "aws-ondemand-karpenter", nights: nights(by_time), is_long: false }
}

fn azure(folder: &Path) -> History {
    let (cards, mut by_time) = (cards("azure"), BTreeMap::<_, Vec<Price>>::new());
    for row in table(&read(&files(folder, ".csv.gz")[0])) {
        if let Some(price) = of_machine("azure", &row["region"], &row["sku"], &cards, &row["usd_per_hour"]) {
            by_time.entry((midnight(&row["snapshot_date"]), String::new())).or_default().push(price);
        }
    }
    History { name: "azure-ondemand-karpenter", nights: nights(by_time), is_long: false }
}

/// Whole captures of one provider's list, region by region.
fn azure_captures(folder: &Path) -> History {
    let (cards, mut by_time) = (cards("azure"), BTreeMap::<_, Vec<Price>>::new());
    for file in files(folder, ".json.gz") {
        let name = file.file_name().expect("a name").to_string_lossy().into_owned();
        let (time, region) = name.split_once("_vm-").expect("time and region");
        let at = format!("{}:{}:00Z", &time[..13], &time[13..]).parse().expect("a time");
        let capture: Value = serde_json::from_str(&read(&file)).expect("it is JSON");
        for row in capture.as_object().expect("an object").values() {
            let sku = row["skuName"].as_str().expect("a name");
            let product = row["productName"].as_str().expect("a name");
            let (model, sku) = match (sku.strip_suffix(" Spot"), sku.strip_suffix(" Low Priority")) {
                (Some(sku), _) => (PricingModel::Spot, sku),
                (_, Some(sku)) => (PricingModel::LowPriority, sku),
                _ => (PricingModel::OnDemand, sku),
            };
            let sku = sku.trim().replace(' ', "_");
            let machine = if sku.starts_with("Standard_") { sku } else { format!("Standard_{sku}") };
            let region = region.trim_end_matches(".json.gz");
            let amount = row["retailPrice"].to_string();
            if let Some(mut price) = of_machine("azure", region, &machine, &cards, &amount) {
                price.pricing_model = model;
                price.plan = Some(if product.contains("Windows") { "windows" } else { "linux" }.to_owned());
                by_time.entry((at, String::new())).or_default().push(price);
            }
        }
    }
    History { name: "azure-radar", nights: nights(by_time), is_long: false }
}

fn gcp(folder: &Path) -> History {
    let (cards, mut by_time) = (cards("gcp"), BTreeMap::<_, Vec<Price>>::new());
    for row in table(&read(&files(folder, ".csv.gz")[0])) {
        let ways = [
            ("hour", PricingModel::OnDemand, None, PriceUnit::Hour),
            ("hour_spot", PricingModel::Spot, None, PriceUnit::Hour),
            ("month_1y", PricingModel::Reserved, Some(12), PriceUnit::Month),
            ("month_3y", PricingModel::Reserved, Some(36), PriceUnit::Month),
        ];
        let is_there = |column: &str| !row[column].is_empty() && row["region"].starts_with("us-");
        for (column, model, months, unit) in ways.into_iter().filter(|(column, ..)| is_there(column)) {
            if let Some(price) = of_machine("gcp", &row["region"], &row["machine_type"], &cards, &row[column]) {
                let price = Price { pricing_model: model, months, unit, ..price };
                by_time.entry((midnight(&row["snapshot_date"]), row["commit"].clone())).or_default().push(price);
            }
        }
    }
    // All of 290 nights and 40 regions take minutes: nine regions are taken, of the nights every twelfth, and all of the weeks
    // with the largest moves.
    let is_taken = |(at, night): (usize, Night)| {
        let day = night.id.date().to_string();
        let is_lively = [("2022-09-25", "2022-10-20"), ("2023-05-05", "2023-05-12"), ("2024-08-15", "2024-08-20")]
            .iter()
            .any(|(first, last)| (*first..=*last).contains(&day.as_str()));
        (at % 12 == 0 || is_lively).then_some(night)
    };
    History { name: "gcp-gcosts", nights: nights(by_time).into_iter().enumerate().filter_map(is_taken).collect(), is_long: true }
}

/// Averages of two kinds of seller, day by day, with the days on which columns had moved.
fn averages(folder: &Path) -> History {
    let mut by_time = BTreeMap::new();
    for row in table(&read(&files(folder, ".csv.gz")[0])) {
        let prices = row.iter().filter(|(column, amount)| *column != "date" && !amount.is_empty()).map(|(column, amount)| {
            let (tier, label) = column.split_once('-').expect("kind and card");
            by_the_hour(tier, None, label, card(label).expect("the card is known"), decimal(amount))
        });
        let mut prices: Vec<Price> = prices.collect();
        prices.sort_by_key(Price::key);
        by_time.insert((midnight(&row["date"]), String::new()), prices);
    }
    History { name: "tier-averages-daily", nights: nights(by_time), is_long: false }
}
