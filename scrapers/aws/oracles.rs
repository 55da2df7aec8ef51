//! AWS held against instance type answers, price histories and copies of its pages.

use std::collections::{BTreeMap, HashMap};
use std::io::Read as _;
use std::process::Command;

use crate::contract::{Os, Page, Parsed, PricingModel, PublishedOffer, SCOPE_ALL, Scraper, Tenancy, Upfront};
use crate::{find, money, read, recordings};
use rust_decimal::Decimal;
use serde_json::{Value, json};

use crate::oracles::{Comparison, Oracle, shared};

#[path = "oracle_hardware.rs"]
mod hardware;

inventory::submit!(Oracle(compare));

fn compare() -> Vec<Option<Comparison>> {
    vec![
        hardware::instance_types(),
        hardware::neuron_types(),
        hardware::spare_cores(),
        on_demand_of_the_generator(),
        on_demand_of_the_recording(),
        on_demand_by_location(),
        price_list_rows(),
        reservations(),
        p5_day_by_day(),
        capacity_blocks(),
        regions(),
    ]
}

fn aws() -> &'static dyn Scraper {
    find("aws").expect("the provider is registered")
}

fn page(name: &str, body: Vec<u8>) -> Page {
    let observed_at = "2026-09-02T02:00:00Z".parse().expect("a literal time");
    Page { name: name.to_owned(), scope: SCOPE_ALL.to_owned(), url: name.to_owned(), observed_at, sha256: String::new(), body }
}

/// A file, inflated where it is compressed.
fn text(path: &str) -> String {
    let bytes = std::fs::read(shared(path)).expect("the file is beside the checkout");
    if !path.ends_with(".gz") {
        return String::from_utf8(bytes).expect("the file is text");
    }
    let mut text = String::new();
    flate2::read::GzDecoder::new(bytes.as_slice()).read_to_string(&mut text).expect("the file inflates");
    text
}

fn document(path: &str) -> Value {
    serde_json::from_str(&text(path)).expect("the file is JSON")
}

fn decimal(value: &Value) -> Option<Decimal> {
    money::decimal(&value.as_str().map_or_else(|| value.to_string(), str::to_owned))
}

/// The offers of the newest recording.
fn recorded() -> Vec<PublishedOffer> {
    let recording = recordings::newest("aws").expect("there is a dated recording");
    read(aws(), recording.pages).into_values().flat_map(|parsed| parsed.expect("the recording reads").offers).collect()
}

/// On-demand prices of shared machines under Linux, by region and type.
fn plain(offers: &[PublishedOffer]) -> HashMap<(&str, &str), Decimal> {
    let is_plain = |offer: &&PublishedOffer| {
        offer.terms.pricing_model == PricingModel::OnDemand
            && offer.terms.os == Os::Linux
            && offer.terms.tenancy == Some(Tenancy::Shared)
    };
    let entry = |offer| {
        let offer: &PublishedOffer = offer;
        Some(((offer.region.as_deref()?, offer.instance_type.as_deref()?), offer.price.amount))
    };
    offers.iter().filter(is_plain).filter_map(entry).collect()
}

/// The newest prices of each region, of all machines.
fn karpenter(path: &str) -> BTreeMap<(String, String), (String, Decimal)> {
    let mut newest = BTreeMap::new();
    for line in text(path).lines().skip(1) {
        let cells: Vec<&str> = line.split(',').collect();
        if let [date, .., region, instance_type, price, _] = cells.as_slice()
            && let Some(price) = money::decimal(price)
        {
            newest.insert(((*region).to_owned(), (*instance_type).to_owned()), ((*date).to_owned(), price));
        }
    }
    newest
}

fn on_demand_of_the_generator() -> Option<Comparison> {
    const SOURCE: &str = "data/history/aws-ondemand-karpenter/aws_ondemand_all_types.csv.gz";
    let what = "On-demand prices of us-east-1, read from a list that a generator fills with the real ones, against the newest of a price history.";
    let mut comparison = Comparison::with("aws", SOURCE, what)?;
    let folder = std::env::temp_dir().join(format!("gpuledger-aws-oracle-{}", std::process::id()));
    let made = Command::new("python3")
        .arg(shared("tools/make_bulk.py"))
        .args(["aws-csv", "--mb", "9", "--regions", "1", "--out"])
        .arg(&folder)
        .output();
    if !made.is_ok_and(|made| made.status.success()) {
        eprintln!("skipped: python3 is not here or does not run the generator");
        return None;
    }
    let body = std::fs::read(folder.join("index.csv")).expect("the generator wrote a list");
    std::fs::remove_dir_all(&folder).expect("the folder is ours");
    let parsed: Parsed = aws().parse(&[page("prices-all", body)]).expect("the list reads");
    let ours = plain(&parsed.offers);
    let theirs = karpenter(SOURCE);
    for ((region, instance_type), price) in ours.iter().collect::<BTreeMap<_, _>>() {
        if *region != "us-east-1" {
            continue;
        }
        match theirs.get(&((*region).to_owned(), (*instance_type).to_owned())) {
            Some((_, there)) if there == price => comparison.agree(),
            Some((date, there)) => {
                comparison.differ("the generator's own price", format!("{instance_type}: {price}, there {there} on {date}"));
            }
            None => {
                comparison.differ("no price there: the generator made up an on-demand price", format!("{instance_type}: {price}"))
            }
        }
    }
    Some(comparison)
}

fn on_demand_of_the_recording() -> Option<Comparison> {
    const SOURCE: &str = "data/history/aws-ondemand-karpenter";
    let what = "On-demand prices of the dated recording against the newest of a price history, in USD and CNY.";
    let mut comparison = Comparison::with("aws", SOURCE, what)?;
    let offers = recorded();
    let theirs = karpenter("data/history/aws-ondemand-karpenter/aws_ondemand_all_types.csv.gz");
    for ((region, instance_type), price) in plain(&offers).into_iter().collect::<BTreeMap<_, _>>() {
        match theirs.get(&(region.to_owned(), instance_type.to_owned())) {
            Some((_, there)) if *there == price => comparison.agree(),
            Some((date, there)) => {
                comparison.differ("the price differs", format!("{region} {instance_type}: {price}, there {there} on {date}"))
            }
            None => comparison.differ("a region that is not there", format!("{region} {instance_type}")),
        }
    }
    Some(comparison)
}

fn on_demand_by_location() -> Option<Comparison> {
    const SOURCE: &str = "data/history/aws-ec2-processed";
    let what = "On-demand prices of the dated recording against 2025-06-13, by the names that the price list gives its regions; and that every accelerated machine priced there is in the hardware table.";
    let mut comparison = Comparison::with("aws", SOURCE, what)?;
    let places = [
        ("us-east-1", "US East (N. Virginia)"),
        ("us-west-2", "US West (Oregon)"),
        ("us-west-2-lax-1", "US West (Los Angeles)"),
        ("eu-west-1", "EU (Ireland)"),
        ("us-gov-west-1", "AWS GovCloud (US)"),
        ("cn-north-1", "China (Beijing)"),
    ];
    let prices = document("data/history/aws-ec2-processed/2025-06-13T2327_ec2.json.gz");
    let prices: BTreeMap<String, &Value> = prices
        .as_object()
        .expect("an object of machines")
        .iter()
        .filter_map(|(name, prices)| Some((name.strip_prefix("OnDemand Linux-instancetype-")?.to_owned(), prices)))
        .collect();
    let offers = recorded();
    for ((region, instance_type), price) in plain(&offers).into_iter().collect::<BTreeMap<_, _>>() {
        let place = places.iter().find(|(code, _)| *code == region).map(|(_, place)| *place).unwrap_or_default();
        match prices.get(instance_type).and_then(|prices| decimal(&prices[place])) {
            Some(there) if there == price => comparison.agree(),
            Some(there) => comparison.differ("the price differs", format!("{region} {instance_type}: {price}, there {there}")),
            None => comparison.differ("the copy has no price of the machine there", format!("{region} {instance_type}")),
        }
    }
    let ours = hardware::of(&prices.keys().map(String::as_str).collect::<Vec<_>>());
    for (instance_type, offer) in &ours {
        if offer.gpu.label.is_some() {
            comparison.agree();
        } else {
            comparison.differ("an accelerated machine that is not in the hardware table", instance_type.as_str());
        }
    }
    Some(comparison)
}

fn price_list_rows() -> Option<Comparison> {
    const SOURCE: &str = "samples/aws/price_list_rows_gpu_2026-09-01.json";
    let what = "SKUs, prices and regions of the dated recording against rows of the price list of the day before.";
    let mut comparison = Comparison::with("aws", SOURCE, what)?;
    let offers = recorded();
    for row in document(SOURCE)["rows"].as_array().expect("a list of rows") {
        let sku = format!("{}.JRTCKXETXF", row["sku"].as_str().unwrap_or_default());
        let label = format!("{} {}", row["regionCode"], row["instanceType"]);
        match offers.iter().find(|offer| offer.sku.as_deref() == Some(&sku)) {
            Some(offer)
                if offer.region.as_deref() == row["regionCode"].as_str()
                    && offer.instance_type.as_deref() == row["instanceType"].as_str()
                    && Some(offer.price.amount) == decimal(&row["usd_per_hour"]) =>
            {
                comparison.agree();
            }
            Some(offer) => comparison.differ("the row differs", format!("{label}: {}", offer.price.amount)),
            None => comparison.differ("not among the few rows of the recording", label),
        }
    }
    Some(comparison)
}

fn reservations() -> Option<Comparison> {
    const SOURCE: &str = "samples/_trackers/sooddvs_gpu_pricing_raw_2026-06-15.csv";
    let what =
        "Standard reservations without upfront payment of the dated recording against those a tracker read with an account.";
    let mut comparison = Comparison::with("aws", SOURCE, what)?;
    let offers = recorded();
    for line in text(SOURCE).lines().filter(|line| line.contains(",AWS EC2,")) {
        let cells: Vec<&str> = line.split(',').collect();
        let [_, _, tier, _, price, region, _, sku, _] = cells.as_slice() else { continue };
        let months = match *tier {
            "12mo" => Some(12),
            "36mo" => Some(36),
            _ => None,
        };
        let is_same = |offer: &&PublishedOffer| {
            let terms = &offer.terms;
            offer.region.as_deref() == Some(region)
                && offer.instance_type.as_deref() == Some(sku)
                && terms.commitment_months == months
                && match months {
                    None => {
                        terms.pricing_model == PricingModel::OnDemand
                            && terms.os == Os::Linux
                            && terms.tenancy == Some(Tenancy::Shared)
                    }
                    Some(_) => {
                        terms.pricing_model == PricingModel::Reserved
                            && terms.upfront == Some(Upfront::None)
                            && terms.plan.as_deref() == Some("standard")
                    }
                }
        };
        match offers.iter().find(is_same) {
            Some(offer) if Some(offer.price.amount.round_dp(4)) == money::decimal(price) => comparison.agree(),
            Some(offer) => comparison.differ("the price differs", format!("{sku} {tier}: {}, there {price}", offer.price.amount)),
            None => comparison.differ("not among the few rows of the recording", format!("{region} {sku} {tier}")),
        }
    }
    Some(comparison)
}

fn p5_day_by_day() -> Option<Comparison> {
    const SOURCE: &str = "data/history/aws-p5-daily";
    let what = "The on-demand price of p5.48xlarge in the dated recording against one that was read day by day.";
    let mut comparison = Comparison::with("aws", SOURCE, what)?;
    let offers = recorded();
    let ours = plain(&offers)[&("us-east-1", "p5.48xlarge")];
    for line in text("data/history/aws-p5-daily/gpu_prices_2025-04-23_2026-08-22.csv.gz").lines().skip(1) {
        let mut cells = line.split(',');
        let (Some(date), Some(_), Some(price)) = (cells.next(), cells.next(), cells.next()) else { continue };
        match money::decimal(price) {
            None => comparison.differ("a day without a price there", date),
            Some(price) if price == ours => comparison.agree(),
            Some(price) if date < "2025-06-06" => {
                comparison.differ("before the price was cut in June 2025", format!("{price} on {date}"))
            }
            Some(price) => comparison.differ("the price differs", format!("{price} on {date}")),
        }
    }
    Some(comparison)
}

/// The page as it is today, with the rates of a copy.
fn blocks_page(copy: &Value) -> Page {
    let mut html = String::from("<!doctype html><html><body>");
    for (instance_type, about) in copy["instance_types"].as_object().expect("an object of machines") {
        let row = |entry: &Value| {
            let rates =
                [&entry["hourly_rate_usd"], &entry["accelerator_hourly_rate_usd"]].map(decimal).map(Option::unwrap_or_default);
            let rate =
                if rates[1].is_zero() { format!("${} USD", rates[0]) } else { format!("${} USD (${} USD)", rates[0], rates[1]) };
            json!({"idProperty": "row1", "2": entry["region"], "3": rate, "4": format!("{} x", about["accelerator_count"])})
        };
        let rows: Vec<Value> = about["pricing"].as_array().expect("a list of prices").iter().map(row).collect();
        let columns = json!([
            {"Heading": "Instance Type", "accessor": "1"},
            {"Heading": "Region", "accessor": "2"},
            {"Heading": "Effective Hourly Rate", "accessor": "3"},
            {"Heading": "ACCELERATOR", "accessor": "4"},
        ]);
        let fields = json!({
            "itemHeading": instance_type,
            "itemTableColumns": columns.to_string(),
            "itemTableRowGroups": json!([{"id": "row1", "label": instance_type}]).to_string(),
            "itemTableData": Value::from(rows).to_string(),
        });
        html.push_str(&format!(
            r#"<script type="application/json">{}</script>"#,
            json!({"data": {"items": [{"fields": fields}]}})
        ));
    }
    html.push_str("</body></html>");
    page("capacity-blocks", html.into_bytes())
}

fn capacity_blocks() -> Option<Comparison> {
    const SOURCE: &str = "data/history/aws-capacity-blocks";
    let what = "Region codes and rates of four copies of the page of Capacity Blocks, put back into its present shape and read.";
    let mut comparison = Comparison::with("aws", SOURCE, what)?;
    for date in ["2026-01-31", "2026-02-01", "2026-03-01", "2026-07-22"] {
        let copy = document(&format!("{SOURCE}/{date}.json"));
        let parsed = aws().parse(&[blocks_page(&copy)]).expect("the page reads");
        for (instance_type, about) in copy["instance_types"].as_object().expect("an object of machines") {
            for entry in about["pricing"].as_array().expect("a list of prices") {
                let rate = decimal(&entry["hourly_rate_usd"]);
                let code = entry["region_code"].as_str().unwrap_or_default();
                let label = format!("{instance_type} in {} on {date}", entry["region"]);
                let of_type = |offer: &&PublishedOffer| {
                    offer.instance_type.as_deref() == Some(instance_type) && Some(offer.price.amount) == rate
                };
                let is_here = |offer: &PublishedOffer| offer.region.as_deref() == Some(code);
                if parsed.offers.iter().filter(of_type).any(is_here) {
                    comparison.agree();
                } else if entry["accelerator_hourly_rate_usd"].as_f64() == Some(0.0) {
                    comparison
                        .differ("one rate for a machine of many accelerators, which was that of one of them: not taken", label);
                } else if code == "unknown" && parsed.offers.iter().any(|offer| of_type(&offer)) {
                    comparison.differ("the copy does not know the region's code", label);
                } else {
                    comparison.differ("not read", label);
                }
            }
        }
    }
    Some(comparison)
}

fn regions() -> Option<Comparison> {
    const SOURCE: &str = "data/aws/regions_botocore.csv";
    let what = "Every region that the client library and the index of savings plans name against the places of the manifest.";
    let mut comparison = Comparison::with("aws", SOURCE, what)?;
    let regions = &aws().manifest().regions;
    let mut check = |code: &str| {
        if regions.contains_key(code) {
            comparison.agree();
        } else if code.starts_with("us-iso") || code.starts_with("eu-iso") || code.starts_with("eusc") {
            comparison.differ("a partition that publishes no prices", code);
        } else {
            comparison.differ("a zone whose city is not certain from its code", code);
        }
    };
    for line in text(SOURCE).lines().skip(1) {
        if let Some(code) = line.split(',').nth(1) {
            check(code);
        }
    }
    let index = document("data/samples/aws/aws_savings_plan_region_index_2025-09-11.json");
    for region in index["regions"].as_array().expect("a list of regions") {
        check(region["regionCode"].as_str().unwrap_or_default());
    }
    Some(comparison)
}
