//! Oracle's price list held against itself two years apart, and against what four other projects took from it.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::Read as _;

use crate::contract::{Page, PublishedOffer};
use crate::{find, recordings};
use flate2::read::GzDecoder;
use rust_decimal::Decimal;
use serde_json::Value;

use crate::oracles::{Comparison, Oracle, shared};

const LIST: &str = "samples/oci/products_gpu_usd_2026-08-22.json";
const OLD_LIST: &str = "data/samples/oci/oci_products_usd_full.json.gz";
const INDIA: &str = "data/history/hyperscaler-india-daily";
const DEPLOYING: &str = "data/history/getdeploying-multi";
const RUPEES: &str = "data/history/inr-dashboard/prices_20260822T205401Z.json.gz";
const BY_HAND: &str = "data/history/fsdl-cloud-gpus/cloud-gpus_2025-03-07.csv.gz";

inventory::submit!(Oracle(compare));

/// Every comparison with a source about Oracle's cloud.
fn compare() -> Vec<Option<Comparison>> {
    vec![list(), old_list(), india(), deploying(), rupees(), by_hand()]
}

fn list() -> Option<Comparison> {
    let mut comparison = Comparison::with(
        "oci",
        LIST,
        "Every product of the price list of 2026-08-22 with a word about GPUs, against the parts and amounts of our typed recording.",
    )?;
    let ours = by_part(&recorded());
    let text = std::fs::read_to_string(shared(LIST)).expect("the list can be read");
    let list: Value = serde_json::from_str(&text).expect("the list is JSON");
    for item in list["items"].as_array().expect("products") {
        let (part, name) = (text_of(item, "partNumber"), text_of(item, "displayName"));
        let amount = decimal(&item["currencyCodeLocalizations"][0]["prices"][0]["value"].to_string());
        let example = format!("{part} `{name}`: {amount}");
        match ours.get(part) {
            Some(found) if *found == amount => comparison.agree(),
            Some(found) => panic!("{example}, ours {found}"),
            None if name.contains("NVIDIA AI Enterprise") => {
                comparison.differ("a licence that is added to a GPU, in its category and unit", example);
            }
            None if text_of(item, "serviceCategory") != "Compute - GPU" => {
                comparison.differ("another service, by its category", example);
            }
            None if part == "B93544" => comparison.differ("a twin part that no documented shape is billed by", example),
            None => panic!("{example}, ours none"),
        }
    }
    Some(comparison)
}

fn old_list() -> Option<Comparison> {
    let mut comparison = Comparison::with(
        "oci",
        OLD_LIST,
        "The whole price list of early 2024, read by our parser, against the list of 2026-08-22 part by part.",
    )?;
    let parsed = find("oci").expect("oci is a provider").parse(&[page(unpacked(OLD_LIST))]).expect("the old list reads");
    let newer = by_part(&recorded());
    for (part, amount) in by_part(&parsed.offers) {
        // That the amounts are the same also shows that the newer list's date is not the one its prices hold from.
        match newer.get(&part) {
            Some(found) if *found == amount => comparison.agree(),
            Some(found) => comparison.differ("the price has changed between the lists", format!("{part}: {amount}, now {found}")),
            None => comparison.differ("the part has left the list", format!("{part}: {amount}")),
        }
    }
    let others = parsed.out_of_scope.get("not in category Compute - GPU").copied();
    assert_eq!((others, parsed.skipped.len()), (Some(443), 0), "450 products, seven of which are GPU parts");
    Some(comparison)
}

fn india() -> Option<Comparison> {
    let mut comparison = Comparison::with(
        "oci",
        INDIA,
        "Prices for one GPU by part number, from thirteen days of 2026-05 and 2026-06, against our typed recording.",
    )?;
    let ours = by_part(&recorded());
    let mut files: Vec<_> =
        std::fs::read_dir(shared(INDIA)).expect("the folder can be read").map(|entry| entry.expect("an entry").path()).collect();
    files.retain(|file| file.to_string_lossy().ends_with("_raw.csv.gz"));
    files.sort();
    for file in files {
        for row in rows(&unpacked(file.strip_prefix(shared("")).expect("it is in the folder").to_str().expect("a name"))) {
            if row.get("provider").map(String::as_str) != Some("OCI") {
                continue;
            }
            let (label, part, amount) = (&row["gpu_type"], &row["sku"], decimal(&row["per_gpu_hourly_usd"]));
            let example = format!("{part}, which they call {label}: {amount}");
            match ours.get(part) {
                Some(found) if *found != amount => panic!("{example}, ours {found}"),
                Some(_) if part == "B110979" || part == "B112140" => {
                    comparison.differ("the amount is ours, but GB200 and GB300 are not B200 and B300", example);
                }
                Some(_) => comparison.agree(),
                None if part == "B109480" => comparison.differ("an H100T, in a category of its own, is no H100", example),
                None if ["B110965", "B111454", "B111455"].contains(&part.as_str()) => {
                    comparison.differ("Compute Cloud@Customer, a machine in the customer's own rooms", example);
                }
                None => panic!("{example}, ours none"),
            }
        }
    }
    Some(comparison)
}

fn deploying() -> Option<Comparison> {
    let mut comparison = Comparison::with(
        "oci",
        DEPLOYING,
        "Prices from 2026-02-11 to 2026-07-20: of a whole machine until 2026-02-18, of one GPU of it since.",
    )?;
    let offers = recorded();
    for row in rows(&unpacked(&format!("{DEPLOYING}/observations_2026-02-11_2026-07-20.csv.gz"))) {
        if row["provider"] != "oracle" {
            continue;
        }
        let (count, amount) = (decimal(&row["gpu_count"]), decimal(&row["price_median_usd"]));
        let example = format!("{count} × {} on {}: {amount}", row["gpu_model"], row["date"]);
        let (label, reason) = match (row["gpu_model"].as_str(), row["gpu_count"].as_str()) {
            ("A100_SXM_40GB", _) => ("A100 SXM 40GB", None),
            ("A100_SXM_80GB", _) => ("A100 SXM 80GB", None),
            ("H100_SXM", _) => ("H100 SXM", None),
            ("H200", _) => ("H200 SXM", None),
            ("H100_NVL", "8") => ("H100 SXM", Some("the amount is ours, but the machine has H100 SXM and not H100 NVL")),
            ("B200", "4") => ("GB200", Some("the amount is ours, but GB200 is not B200")),
            (label, _) => (label, None),
        };
        let matches = |offer: &&PublishedOffer| offer.gpu.label.as_deref() == Some(label) && gpus(offer) == count;
        let ours = offers.iter().find(matches).unwrap_or_else(|| panic!("{example}, ours none")).price.amount;
        assert!(amount == ours || amount == ours * count, "{example}, ours {ours} for one");
        match reason {
            Some(reason) => comparison.differ(reason, example),
            None => comparison.agree(),
        }
    }
    Some(comparison)
}

fn rupees() -> Option<Comparison> {
    let mut comparison =
        Comparison::with("oci", RUPEES, "Prices for one GPU of 2026-08-22 by name of the card, against our typed recording.")?;
    let offers = recorded();
    let list: Value = serde_json::from_str(&unpacked(RUPEES)).expect("the list is JSON");
    for row in list["prices"].as_array().expect("prices").iter().filter(|row| row["source"] == "oci") {
        let label = match text_of(row, "gpu_label") {
            "A100 80GB" => "A100 SXM 80GB",
            "RTX 6000 Pro (Blackwell)" => "RTX PRO 6000 Server",
            "H100" => "H100 SXM",
            "H200 SXM" => "H200 SXM",
            label => label.split(" (").next().unwrap_or(label),
        };
        let amount = decimal(&row["usd_per_hr"].to_string());
        match offers.iter().find(|offer| offer.gpu.label.as_deref() == Some(label)) {
            Some(offer) if offer.price.amount == amount => comparison.agree(),
            Some(offer) => panic!("{label}: {amount}, ours {}", offer.price.amount),
            None => panic!("{label}: {amount}, ours none"),
        }
    }
    Some(comparison)
}

fn by_hand() -> Option<Comparison> {
    let mut comparison = Comparison::with(
        "oci",
        BY_HAND,
        "A table kept by hand until 2025-03-07: price, GPUs, memory of all GPUs, cores and main memory of each shape in both.",
    )?;
    let offers = recorded();
    for row in rows(&unpacked(BY_HAND)) {
        if row["Cloud"] != "Oracle Cloud" {
            continue;
        }
        let name = row["Name"].as_str();
        let shape = if name == "BM.GPU.A4.8" { "BM.GPU4.8" } else { name };
        let offer = offers.iter().find(|offer| offer.instance_type.as_deref() == Some(shape));
        let offer = offer.unwrap_or_else(|| panic!("{name}: ours none"));
        let count = gpus(offer);
        let facts = [
            ("USD an hour", "On-demand", Some(offer.price.amount * count)),
            ("GPUs", "GPUs", Some(count)),
            ("GB of all GPUs", "GPU RAM", offer.gpu.memory_gb.map(|memory_gb| memory_gb * count)),
            ("GiB", "RAM", offer.machine.system_memory_gib),
        ];
        for (what, column, ours) in facts {
            if row[column].is_empty() {
                continue;
            }
            let theirs = decimal(&row[column]);
            assert_eq!(ours.map(|ours| ours.normalize()), Some(theirs), "{name}: {what}");
            comparison.agree();
        }
        if !row["vCPUs"].is_empty() {
            let (theirs, ours) = (decimal(&row["vCPUs"]), offer.machine.vcpus.expect("cores"));
            assert_eq!(theirs * Decimal::TWO, ours, "{name}: cores");
            comparison.differ(
                "theirs are cores (OCPUs), of which each has two threads; ours are threads",
                format!("{name}: {theirs}, ours {ours}"),
            );
        }
    }
    Some(comparison)
}

/// The offers of our newest dated recording.
fn recorded() -> Vec<PublishedOffer> {
    let recording = recordings::newest("oci").expect("a dated recording");
    find("oci").expect("oci is a provider").parse(&recording.pages).expect("the recording reads").offers
}

fn by_part(offers: &[PublishedOffer]) -> BTreeMap<String, Decimal> {
    offers.iter().filter_map(|offer| Some((offer.sku.clone()?, offer.price.amount))).collect()
}

fn gpus(offer: &PublishedOffer) -> Decimal {
    Decimal::from(*offer.gpu.count.expect("every shape has a number of GPUs").numer())
}

fn page(body: String) -> Page {
    Page {
        name: "products".to_owned(),
        scope: "all".to_owned(),
        url: OLD_LIST.to_owned(),
        observed_at: "2024-03-01T00:00:00Z".parse().expect("a literal time"),
        sha256: String::new(),
        body: body.into_bytes(),
    }
}

fn text_of<'a>(value: &'a Value, name: &str) -> &'a str {
    value[name].as_str().unwrap_or_else(|| panic!("no {name}"))
}

fn decimal(text: &str) -> Decimal {
    text.parse::<Decimal>().unwrap_or_else(|error| panic!("{text}: {error}")).normalize()
}

fn unpacked(path: &str) -> String {
    let mut text = String::new();
    let file = File::open(shared(path)).unwrap_or_else(|error| panic!("{path}: {error}"));
    GzDecoder::new(file).read_to_string(&mut text).expect("it inflates");
    text
}

/// Lines of a table by the names in its head.
fn rows(text: &str) -> Vec<BTreeMap<String, String>> {
    csv::Reader::from_reader(text.as_bytes()).into_deserialize().map(|row| row.expect("a line")).collect()
}
