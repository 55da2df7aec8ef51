//! Alibaba Cloud: the hardware table against the vendor's own answers as another project dumped them, and the one recorded
//! excerpt of a price file against a second reading of it.

use std::collections::BTreeMap;
use std::io::Read as _;

use crate::contract::{GpuShare, Page, PriceUnit, PricingModel, PublishedOffer, SCOPE_ALL};
use rust_decimal::Decimal;
use serde_json::Value;

use crate::oracles::{Comparison, Oracle, shared};

const SERVERS: &str = "data/catalogs/sparecores_gpu_servers_2026-01-31.json.gz";
const EXCERPT: &str = "samples/alibaba/instancePrice_excerpt_2018-10-08.json";

inventory::submit!(Oracle(compare));

fn compare() -> Vec<Option<Comparison>> {
    vec![hardware(), prices()]
}

/// What the scraper makes of a price file.
fn read(body: String, observed_at: &str) -> Vec<PublishedOffer> {
    let page = Page {
        name: "prices".to_owned(),
        scope: SCOPE_ALL.to_owned(),
        url: "prices.json".to_owned(),
        observed_at: observed_at.parse().expect("a literal time"),
        sha256: String::new(),
        body: body.into_bytes(),
    };
    let scraper = crate::find("alibaba").expect("the scraper is registered");
    scraper.parse(&[page]).expect("a file of the documented shape reads").offers
}

fn hardware() -> Option<Comparison> {
    let mut comparison = Comparison::with(
        "alibaba",
        SERVERS,
        "Cards, their memory, vCPUs and main memory of every type in DescribeInstanceTypes, as dumped on 2026-01-31. The rows \
         of our table that name that answer as their only source agree by construction.",
    )?;
    let mut text = String::new();
    let file = std::fs::File::open(shared(SERVERS)).expect("the dump is there");
    flate2::read::GzDecoder::new(file).read_to_string(&mut text).expect("the dump inflates");
    let servers: Vec<Value> = serde_json::from_str(&text).expect("the dump is JSON");
    let servers: Vec<&Value> = servers.iter().filter(|server| server["vendor_id"] == "alicloud").collect();
    let entry = |server: &&Value| {
        let name = server["api_reference"].as_str().expect("every server has a name");
        format!(r#""us-east-1::{name}::vpc::linux::optimized": {{"hours": [{{"price": "1", "period": "1"}}]}}"#)
    };
    let entries: Vec<String> = servers.iter().map(entry).collect();
    let head = r#""currency": "USD", "publicationDate": "2026-01-31""#;
    let offers = read(format!("{{{head}, \"pricingInfo\": {{{}}}}}", entries.join(",")), "2026-01-31T00:00:00Z");
    let offers: BTreeMap<_, _> = offers.iter().map(|offer| (offer.instance_type.as_deref().unwrap_or_default(), offer)).collect();
    for server in servers {
        let name = server["api_reference"].as_str().expect("every server has a name");
        match offers.get(name) {
            Some(offer) if offer.gpu.count.is_some() => machine(&mut comparison, name, offer, server),
            Some(_) => unknown(&mut comparison, name, server),
            None if name.starts_with("ecs.poc-test.") => {
                comparison.differ("a test type that leaked into the answer and is not sold", name)
            }
            None if name.starts_with("ecs.f") => comparison.differ("an FPGA machine, which is not ours", name),
            None => comparison.differ("a machine that codes video and has no GPU", name),
        }
    }
    Some(comparison)
}

/// A type that our table deliberately does not have.
fn unknown(comparison: &mut Comparison, name: &str, server: &Value) {
    let card = server["gpu_model"].as_str().unwrap_or_default();
    let reason = match card {
        "M40" | "S7150" | "VG1000" | "intel SG1" => {
            "the ledger's list of cards does not have this one, so the machine is published without it"
        }
        "vGPU8" | "Lovelace" => "a share of a card, or a card, that the vendor names nowhere: published as unknown",
        "RTX 5880" | "5880" | "T4" => {
            "a share, or a type made for one customer, that no page of the vendor explains: published as unknown"
        }
        _ => "UNEXPLAINED",
    };
    comparison.differ(reason, format!("{name}: {card}"));
}

fn machine(comparison: &mut Comparison, name: &str, offer: &PublishedOffer, server: &Value) {
    let number = |field: &str| server[field].as_u64().map(Decimal::from);
    let gib = |field: &str| number(field).map(|mib| mib / Decimal::from(1024));
    let (gpu, theirs) = (&offer.gpu, server["gpu_model"].as_str().unwrap_or_default());
    let count = gpu.count.map(|count| count.to_string());
    match (gpu.share, number("gpu_count")) {
        (GpuShare::Whole, Some(their_count)) if count == Some(their_count.to_string()) => comparison.agree(),
        (GpuShare::FixedSlice, Some(one)) if one == Decimal::ONE => {
            comparison.differ("they count a share as one card; the vendor's page states the share", format!("{name}: {count:?}"));
        }
        (_, their_count) => comparison.differ("UNEXPLAINED count", format!("{name}: {count:?}, {their_count:?}")),
    }
    let plain = |label: &str| label.replace('-', "").to_lowercase();
    match gpu.label.as_deref() {
        Some(label) if plain(label).starts_with(&plain(theirs)) => comparison.agree(),
        Some(label @ "A16") if theirs == "GA107" => {
            comparison
                .differ("they print the chip; the vendor's page says that an A16 holds four of it", format!("{name}: {label}"));
        }
        Some(label @ "Hanguang 800") if theirs == "ALINPU 800" => {
            comparison.differ("the same chip under its maker's code", format!("{name}: {label}, {theirs}"));
        }
        Some(label) => comparison.differ("UNEXPLAINED card", format!("{name}: {label}, {theirs}")),
        None => comparison
            .differ("a code of the vendor's own, which is no name of a card: ours is empty", format!("{name}: {theirs}")),
    }
    match (gpu.memory_gb, gib("gpu_memory_min")) {
        (ours, theirs) if ours == theirs => comparison.agree(),
        (Some(ours), None) => {
            comparison.differ("they have no memory where the answer says 0; ours is the card's", format!("{name}: {ours}"))
        }
        (ours, theirs) => comparison.differ("UNEXPLAINED memory of a card", format!("{name}: {ours:?}, {theirs:?}")),
    }
    for (what, ours, theirs) in [
        ("UNEXPLAINED vCPUs", offer.machine.vcpus, number("vcpus")),
        ("UNEXPLAINED main memory", offer.machine.system_memory_gib, gib("memory_amount")),
    ] {
        if ours == theirs { comparison.agree() } else { comparison.differ(what, format!("{name}: {ours:?}, {theirs:?}")) }
    }
    // They store 0 for what is not stated.
    match (offer.machine.local_disk_gb, number("storage_size")) {
        (None, Some(zero)) if zero.is_zero() => {}
        (ours, theirs) if ours == theirs => comparison.agree(),
        (ours, theirs) => comparison.differ("UNEXPLAINED local disks", format!("{name}: {ours:?}, {theirs:?}")),
    }
}

fn prices() -> Option<Comparison> {
    let mut comparison = Comparison::with(
        "alibaba",
        EXCERPT,
        "Every price of two real entries of build 2.0.7, read once by the scraper and once by hand as plain JSON. The types have \
         no GPU, so the scraper reads them under the names of two that have.",
    )?;
    let text = std::fs::read_to_string(shared(EXCERPT)).expect("the excerpt is there");
    let text = text.replace("ecs.t5-c1m1.xlarge", "ecs.gn7i-c8g1.2xlarge").replace("ecs.r5.6xlarge", "ecs.gn6i-c4g1.xlarge");
    let document: Value = serde_json::from_str(&text).expect("the excerpt is JSON");
    let mut ours: BTreeMap<(String, &str, u32), String> = BTreeMap::new();
    for offer in read(text, "2018-10-09T00:00:00Z") {
        let months = offer.terms.commitment_months.unwrap_or(0);
        let list = match (offer.terms.pricing_model, offer.price.unit) {
            (PricingModel::OnDemand, PriceUnit::Hour) => "hours",
            (PricingModel::Subscription, PriceUnit::Month) => "months",
            (PricingModel::Subscription, PriceUnit::Term) => "years",
            other => panic!("an offer of {other:?}"),
        };
        let key = (offer.sku.expect("every offer has its entry's name"), list, months);
        assert!(ours.insert(key, offer.price.amount.to_string()).is_none(), "two offers of one price");
    }
    for (entry, lists) in document["pricingInfo"].as_object().expect("entries") {
        for (list, months) in [("hours", 0), ("months", 1), ("years", 12)] {
            for row in lists[list].as_array().into_iter().flatten() {
                let (price, period) = (row["price"].as_str().expect("a text"), row["period"].as_str().expect("a text"));
                let months = months * period.parse::<u32>().expect("a number");
                match ours.remove(&(entry.clone(), list, months)) {
                    Some(amount) if amount == price => comparison.agree(),
                    found => comparison.differ("UNEXPLAINED price", format!("{entry} {list} {period}: {price}, {found:?}")),
                }
            }
        }
    }
    for (key, amount) in ours {
        comparison.differ("UNEXPLAINED price of ours alone", format!("{key:?}: {amount}"));
    }
    Some(comparison)
}
