//! Azure held against on-demand prices that another project took from the same service, and against a list of hardware.
//!
//! Captures that a third project made of five regions are read by our parser. They keep no `armSkuName`, so it is made
//! from the SKU's name, and machines are matched by what the spellings have in common.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io::Read as _;
use std::sync::LazyLock;

use crate::contract::{Os, Page, Parsed, PricingModel, PublishedOffer};
use crate::{find, recordings};
use flate2::read::GzDecoder;
use rust_decimal::Decimal;
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use crate::oracles::{Comparison, Oracle, shared};

const CATALOGUE: &str = "data/catalogs/azure_ondemand_all_skus_2026-06-18.csv.gz";
const HISTORY: &str = "data/history/azure-ondemand-karpenter";
const SERVERS: &str = "data/catalogs/sparecores_gpu_servers_2026-01-31.json.gz";
const SAMPLE: &str = "samples/azure/retail_radar_gpu_eu-west.json";
const SNAPSHOTS: &str = "data/history/azure-radar/snapshots";
/// Of each region captured, the capture that is nearest to the day of the catalogue.
const CAPTURES: [(&str, &str); 5] = [
    ("westeurope", "2026-07-15T1741_vm-eu-west"),
    ("belgiumcentral", "2026-07-25T0531_vm-belgium"),
    ("francecentral", "2026-07-25T1546_vm-francecentral"),
    ("northeurope", "2026-07-25T1546_vm-northeurope"),
    ("swedencentral", "2026-07-26T2140_vm-swedencentral"),
];
const NEWEST: &str = "2026-06-18";

/// Prices by region and machine.
type Prices = BTreeMap<(String, String), Decimal>;

inventory::submit!(Oracle(compare));

/// Every comparison with a source about Azure.
fn compare() -> Vec<Option<Comparison>> {
    vec![catalogue(), history(), typed(), sample(), servers()]
}

fn catalogue() -> Option<Comparison> {
    let mut comparison = Comparison::with(
        "azure",
        CATALOGUE,
        "On-demand Linux prices of the N-series, one region at a time, against captures a month younger of five regions.",
    )?;
    let (ours, windows) = (captured(Os::Linux), captured(Os::Windows));
    let regions: BTreeSet<&str> = CAPTURES.iter().map(|(region, _)| *region).collect();
    let theirs: Prices = rows(CATALOGUE)
        .into_iter()
        .filter(|row| regions.contains(&row[2]) && is_n_series(&row[3]))
        .map(|row| ((row[2].to_owned(), plain(&row[3])), decimal(&row[4])))
        .collect();
    for (key, price) in &theirs {
        let example = || format!("`{}` in {}: {price}", key.1, key.0);
        match ours.get(key) {
            Some(found) if found == price => comparison.agree(),
            Some(found) if windows.get(key) == Some(price) => {
                comparison.differ("theirs is the Windows price: they do not know `Win`", format!("{}, ours {found}", example()));
            }
            Some(found) => panic!("{}, ours {found}", example()),
            None if key.1.ends_with("promo") => comparison.differ("a promotion, which we leave out", example()),
            None if key.1.starts_with("np") => comparison.differ("an FPGA machine, which we leave out", example()),
            None if key.1.starts_with("nm") => comparison.differ("a machine with media cards, which we leave out", example()),
            None if key.1.ends_with("type1") => comparison.differ("a whole host, which is no machine", example()),
            None => panic!("{}, ours none", example()),
        }
    }
    for key in ours.keys().filter(|key| !theirs.contains_key(key)) {
        assert!(key.1.ends_with("nu"), "{key:?} is ours alone");
        comparison.differ(
            "a second meter of a machine, which our captures give a name of its own for want of `armSkuName`",
            format!("`{}` in {}", key.1, key.0),
        );
    }
    Some(comparison)
}

fn history() -> Option<Comparison> {
    let mut comparison = Comparison::with(
        "azure",
        HISTORY,
        "On-demand Linux prices at eight dates since 2023-10-27, against the captures of 2026-07 of the same five regions.",
    )?;
    let (ours, rows) = (captured(Os::Linux), rows(&format!("{HISTORY}/azure_ondemand_gpu_all_regions.csv.gz")));
    let newest: Prices =
        rows.iter().filter(|row| &row[0] == NEWEST).map(|row| ((row[2].to_owned(), plain(&row[3])), decimal(&row[4]))).collect();
    for row in &rows {
        let (key, price) = ((row[2].to_owned(), plain(&row[3])), decimal(&row[4]));
        let Some(found) = ours.get(&key) else { continue };
        let example = format!("`{}` in {} on {}: {price}, ours {found}", key.1, key.0, &row[0]);
        match newest.get(&key) {
            _ if *found == price => comparison.agree(),
            Some(newest) if newest == found => {
                comparison.differ("the price has changed since: their newest one is ours", example)
            }
            Some(newest) if *newest == price => comparison.differ("theirs is the Windows price: they do not know `Win`", example),
            Some(_) => comparison.differ("the price has changed since, and their newest one is the Windows price", example),
            None => panic!("{example}"),
        }
    }
    Some(comparison)
}

fn typed() -> Option<Comparison> {
    let mut comparison = Comparison::with(
        "azure",
        CATALOGUE,
        "The on-demand Linux prices of our newest dated recording, which was typed from other sources.",
    )?;
    let pages = recordings::newest("azure").map(|recording| recording.pages).unwrap_or_default();
    let scopes = crate::read(scraper(), pages);
    let ours = on_demand(scopes.into_values().filter_map(Result::ok).flat_map(|parsed| parsed.offers), Os::Linux);
    let theirs: Prices = rows(CATALOGUE).into_iter().map(|row| ((row[2].to_owned(), plain(&row[3])), decimal(&row[4]))).collect();
    for (key, price) in &ours {
        match theirs.get(key) {
            Some(found) if found == price => comparison.agree(),
            Some(found) => comparison.differ(
                "theirs is the Windows price: they do not know `Win`",
                format!("`{}` in {}: {found}, ours {price}", key.1, key.0),
            ),
            None => panic!("{key:?} is ours alone"),
        }
    }
    Some(comparison)
}

/// Every row of a capture, by the provider's own ids: none may be lost or read as another price.
fn sample() -> Option<Comparison> {
    let mut comparison = Comparison::with(
        "azure",
        SAMPLE,
        "Every row of a capture of West Europe's GPU machines by its SKU and meter: on demand, spot and low priority.",
    )?;
    let text = std::fs::read_to_string(shared(SAMPLE)).expect("the sample can be read");
    let capture = of_capture(&text);
    let parsed = parse(&page(&capture));
    let of_sku = |sku: &str| {
        parsed
            .offers
            .iter()
            .find(|offer| offer.sku.as_deref() == Some(sku) && offer.terms.pricing_model != PricingModel::SavingsPlan)
    };
    for (key, row) in &capture {
        let sku = key.split('|').take(2).collect::<Vec<_>>().join("|");
        let example = format!("`{}`, {}", row.sku_name, row.product_name);
        match of_sku(&sku) {
            Some(offer) if offer.price.text == row.retail_price.get() => comparison.agree(),
            Some(offer) => panic!("{example}: {} and {}", offer.price.text, row.retail_price),
            None if row.product_name.contains("Promo") => comparison.differ("a promotion, which we leave out", example),
            None if row.product_name.contains("Dedicated Host") => {
                comparison.differ("a whole host, which is no machine", example)
            }
            None if row.sku_name.ends_with("Expired") => comparison.differ("a meter that has expired", example),
            None if plain(row.sku_name).starts_with("np") => comparison.differ("an FPGA machine, which we leave out", example),
            None if plain(row.sku_name).starts_with("nm") => {
                comparison.differ("a machine with media cards, which we leave out", example);
            }
            None => panic!("{example}: ours none"),
        }
    }
    Some(comparison)
}

/// Our table of machines, through prices of 1 that it is read with.
fn servers() -> Option<Comparison> {
    let mut comparison = Comparison::with(
        "azure",
        SERVERS,
        "Virtual CPUs, main memory in GiB, number of GPUs and memory of a card of each machine in both.",
    )?;
    let servers: Vec<Value> = serde_json::from_str(&unpacked(SERVERS)).expect("the servers are JSON");
    for server in servers.iter().filter(|server| server["vendor_id"] == "azure") {
        let name = server["api_reference"].as_str().expect("a server has a name");
        let offer = machine(name);
        let gib = |mib: &Value| mib.as_u64().map(|mib| Decimal::from(mib) / Decimal::from(1024));
        let count = offer.gpu.count.map(|count| Decimal::from(*count.numer()) / Decimal::from(*count.denom()));
        let their_count = server["gpu_count"].as_u64().map(Decimal::from);
        let facts = [
            ("vCPU", offer.machine.vcpus, server["vcpus"].as_u64().map(Decimal::from)),
            ("GiB", offer.machine.system_memory_gib, gib(&server["memory_amount"])),
            ("GPUs", count, their_count),
            ("GB a card", offer.gpu.memory_gb, gib(&server["gpu_memory_min"])),
        ];
        for (what, ours, theirs) in facts {
            let Some(theirs) = theirs else { continue };
            let example = format!("`{name}`: {theirs} {what}");
            let Some(ours) = ours else {
                assert!(!offer.flags.is_empty(), "{example}, ours none");
                let reason = "not in our table: no price of it is on the list, or its share of a card is not confirmed";
                comparison.differ(reason, example);
                continue;
            };
            let example = format!("{example}, ours {}", ours.normalize());
            if ours == theirs {
                comparison.agree();
            } else {
                comparison.differ(why(what, name, ours, theirs), example);
            }
        }
    }
    Some(comparison)
}

/// Why a fact of a machine differs; a difference that nobody has looked into ends the test.
fn why(what: &str, name: &str, ours: Decimal, theirs: Decimal) -> &'static str {
    let is_m60_or_slice = name.starts_with("Standard_NV") || name.starts_with("Standard_NG");
    match what {
        "GPUs" if ours < Decimal::ONE => "a fixed share of a card, which their source counts as one",
        "GPUs" if name.ends_with("V710_v5") => "one card by the size table, two by the capability list",
        "GPUs" if is_m60_or_slice && ours > theirs => "dies of an M60 by the size table, less by the capability list",
        "GiB" if name == "Standard_ND96amsr_A100_v4" => "sold with 1,900 GiB, 1,800 by the capability list",
        "GB a card" if name == "Standard_NC40ads_H100_v5" => "what a driver shows, in GiB, of a card sold with 94 GB",
        _ => panic!("{name}: {theirs} {what}, ours {ours}"),
    }
}

fn scraper() -> &'static dyn crate::contract::Scraper {
    find("azure").expect("azure is a provider")
}

/// On-demand prices of all captures.
fn captured(os: Os) -> Prices {
    static OFFERS: LazyLock<Vec<PublishedOffer>> = LazyLock::new(|| {
        let of_region = |(_, name): &(&str, &str)| {
            let text = unpacked(&format!("{SNAPSHOTS}/{name}.json.gz"));
            let rows = of_capture(&text);
            // Belgium has no machine of the N-series, which the parser would rightly take for a failure.
            if rows.is_empty() { Vec::new() } else { parse(&page(&rows)).offers }
        };
        CAPTURES.iter().flat_map(of_region).collect()
    });
    on_demand(OFFERS.iter().cloned(), os)
}

fn on_demand(offers: impl Iterator<Item = PublishedOffer>, os: Os) -> Prices {
    let mut prices = Prices::new();
    for offer in offers.filter(|offer| offer.terms.pricing_model == PricingModel::OnDemand && offer.terms.os == os) {
        let (region, machine) = (offer.region.expect("a region"), offer.instance_type.expect("a machine"));
        let earlier = prices.insert((region, plain(&machine)), offer.price.amount);
        assert!(earlier.is_none_or(|earlier| earlier == offer.price.amount), "{machine}: two prices");
    }
    prices
}

fn parse(page: &Page) -> Parsed {
    scraper().parse(std::slice::from_ref(page)).expect("the page reads")
}

/// A row of a capture. The characters of a price stay as they are.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Row<'a> {
    arm_region_name: &'a str,
    meter_name: &'a str,
    product_name: &'a str,
    sku_name: &'a str,
    unit_of_measure: &'a str,
    #[serde(borrow)]
    retail_price: &'a RawValue,
    #[serde(borrow)]
    savings_plan_price: Option<&'a RawValue>,
}

/// The rows of a capture that the filter of the live request would let through.
fn of_capture(capture: &str) -> BTreeMap<&str, Row<'_>> {
    let mut rows: BTreeMap<&str, Row<'_>> = serde_json::from_str(capture).expect("the capture is JSON");
    rows.retain(|_, row| is_n_series(row.sku_name));
    rows
}

/// A capture as a page of the provider's answer.
fn page(rows: &BTreeMap<&str, Row<'_>>) -> Page {
    let item = |(key, row): (&&str, &Row<'_>)| {
        let parts: Vec<&str> = key.split('|').collect();
        let ends = [" Spot", " Low Priority", " Expired"];
        let machine = ends.iter().fold(row.sku_name, |name, end| name.strip_suffix(end).unwrap_or(name));
        let machine = machine.trim().replace(' ', "_");
        let mut item = json!({
            "currencyCode": "USD", "armRegionName": row.arm_region_name, "meterId": parts[1], "meterName": row.meter_name,
            "skuId": parts[0], "productName": row.product_name, "skuName": row.sku_name, "serviceName": "Virtual Machines",
            "unitOfMeasure": row.unit_of_measure, "type": parts[2], "isPrimaryMeterRegion": true, "retailPrice": "PRICE",
            "armSkuName": if machine.starts_with("Standard_") { machine } else { format!("Standard_{machine}") },
        });
        if row.savings_plan_price.is_some() {
            item["savingsPlan"] = json!([{ "retailPrice": "PLAN", "term": "1 Year" }]);
        }
        let plan = row.savings_plan_price.map_or("", RawValue::get);
        item.to_string().replace("\"PRICE\"", row.retail_price.get()).replace("\"PLAN\"", plan)
    };
    answer(&rows.iter().map(item).collect::<Vec<_>>())
}

fn answer(items: &[String]) -> Page {
    Page {
        name: "page".to_owned(),
        scope: "all".to_owned(),
        url: "page.json".to_owned(),
        observed_at: "2026-08-20T00:00:00Z".parse().expect("a literal time"),
        sha256: String::new(),
        body: format!(r#"{{"NextPageLink":null,"Items":[{}]}}"#, items.join(",")).into_bytes(),
    }
}

/// What our table has of a machine.
fn machine(name: &str) -> PublishedOffer {
    let item = json!({
        "currencyCode": "USD", "armRegionName": "eastus", "meterId": "m", "meterName": "v1", "skuId": "s", "productName": "Series",
        "skuName": "v1", "unitOfMeasure": "1 Hour", "type": "Consumption", "retailPrice": 1, "armSkuName": name,
    });
    parse(&answer(&[item.to_string()])).offers.remove(0)
}

fn is_n_series(name: &str) -> bool {
    plain(name).starts_with('n')
}

/// A machine's name without what its spellings differ in.
fn plain(name: &str) -> String {
    let mut plain = name.trim().to_ascii_lowercase().replace("standard_", "").replace(['_', ' '], "");
    for (long, short) in [("rtxpro6000bse", "rtx6k"), ("flex", "fl"), ("noib", "nib"), ("v620v1", "v620")] {
        plain = plain.replace(long, short);
    }
    match plain.as_str() {
        "nd96asrv4" => "nd96asra100v4".to_owned(),
        "ndmr40sv2" => "nd40sv2".to_owned(),
        _ => plain,
    }
}

fn decimal(text: &str) -> Decimal {
    text.parse::<Decimal>().expect("a price is a number").normalize()
}

fn unpacked(path: &str) -> String {
    let mut text = String::new();
    let file = File::open(shared(path)).unwrap_or_else(|error| panic!("{path}: {error}"));
    GzDecoder::new(file).read_to_string(&mut text).expect("it inflates");
    text
}

/// Lines of a table below its head.
fn rows(path: &str) -> Vec<csv::StringRecord> {
    let text = unpacked(path);
    csv::Reader::from_reader(text.as_bytes()).into_records().map(|row| row.expect("a line")).collect()
}
