//! Verda held against two trackers and two catalogues of another project.

use std::collections::BTreeMap;

use crate::contract::{PricingModel, PublishedOffer};
use crate::money;
use rust_decimal::Decimal;

use crate::oracles::{Comparison, Oracle, shared};
use crate::trackers;

const SPRING: &str = "2026-03-06";
const SUMMER: &str = "2026-08-22";

inventory::submit!(Oracle(compare));

fn compare() -> Vec<Option<Comparison>> {
    vec![days(), site(), catalogue_of_spring(), catalogue_before()]
}

/// Dollars on demand for one card and hour of a card by a tracker's name.
fn usd(offers: &[PublishedOffer], gpu: &str) -> Option<Decimal> {
    let label = match gpu {
        "a100-sxm-40" => "A100 SXM4 40GB",
        "a100-sxm-80" | "A100_SXM_80GB" => "A100 SXM4 80GB",
        "b200" | "B200" => "B200 SXM6 180GB",
        "b300" => "B300 SXM6 268GB",
        "gb300" => "GB300 SXM6 288GB",
        "h100-sxm" | "H100_SXM" => "H100 SXM5 80GB",
        "h200" | "H200" => "H200 SXM5 141GB",
        "l40s" => "L40S 48GB",
        "rtx-6000-ada" => "RTX6000 Ada 48GB",
        "rtx-a6000" => "RTX A6000 48GB",
        "rtx-pro-6000" => "RTX PRO 6000 96GB",
        "v100" => "Tesla V100 16GB",
        _ => return None,
    };
    let is_it = |offer: &&PublishedOffer| {
        offer.gpu.label.as_deref() == Some(label) && offer.terms.pricing_model == PricingModel::OnDemand
    };
    offers.iter().find(is_it).and_then(trackers::per_gpu_hour)
}

fn days() -> Option<Comparison> {
    let what = "Dollars per card of the recording of 2026-08-22 against a tracker's 42 days, July to August. The recording was typed from the last of them.";
    let mut comparison = Comparison::with("verda", trackers::DAILY, what)?;
    let offers = trackers::recorded_on("verda", SUMMER);
    let ours = |reading: &trackers::Reading| usd(&offers, &reading.gpu);
    trackers::hold(&mut comparison, &trackers::daily("datacrunch"), ours, |reading, ours| panic!("{reading:?} {ours:?}"));
    Some(comparison)
}

fn site() -> Option<Comparison> {
    let what = "Dollars per card of the recording of 2026-03-06 against a comparison site, February to May 2026.";
    let mut comparison = Comparison::with("verda", trackers::DEPLOYING, what)?;
    let offers = trackers::recorded_on("verda", SPRING);
    let ours = |reading: &trackers::Reading| usd(&offers, &reading.gpu);
    trackers::hold(&mut comparison, &trackers::deploying("verda"), ours, |reading, ours| {
        let count = Decimal::from(reading.gpu_count.unwrap_or(1));
        match ours {
            None => "a card that this recording does not have",
            Some(usd) if usd * count == reading.usd => "the same price of the whole machine",
            Some(_) if reading.date.to_string().as_str() < "2026-02-19" => "the price before the rise of 2026-02-18",
            Some(_) => panic!("{reading:?} {ours:?}"),
        }
    });
    Some(comparison)
}

/// Rows of another project's catalogue by type: on demand, spot, cores, memory in GiB.
fn catalogue(path: &str) -> BTreeMap<String, [Option<Decimal>; 4]> {
    let text = std::fs::read_to_string(shared(path)).expect("the catalogue reads");
    let mut rows = csv::Reader::from_reader(text.as_bytes());
    let headers = rows.headers().expect("a header").clone();
    let column = |name: &str| headers.iter().position(|header| header == name).expect("the column is there");
    let columns = [column("Price"), column("SpotPrice"), column("vCPUs"), column("MemoryGiB")];
    let accelerator = column("AcceleratorName");
    let rows = rows.records().map(|row| row.expect("a row reads")).filter(|row| !row[accelerator].is_empty());
    let mut machines: BTreeMap<String, [Option<Decimal>; 4]> = BTreeMap::new();
    for row in rows {
        let found = columns.map(|column| money::decimal(&row[column]));
        // A type stands once for each place, and a price is blank where that place has none left.
        let known = machines.entry(row[0].to_owned()).or_insert(found);
        for (known, found) in known.iter_mut().zip(found) {
            *known = known.or(found);
        }
    }
    machines
}

fn against(comparison: &mut Comparison, prices_differ: Option<&'static str>) {
    let theirs = catalogue(comparison.source);
    let offers = trackers::recorded_on("verda", SPRING);
    for offer in &offers {
        let name = offer.instance_type.as_deref().expect("every offer has a type");
        let Some([on_demand, spot, cores, memory]) = theirs.get(name) else {
            comparison.differ("a type that they do not list", name);
            continue;
        };
        let price = if offer.terms.pricing_model == PricingModel::Spot { spot } else { on_demand };
        match (price, prices_differ) {
            (Some(price), _) if *price == offer.price.amount => comparison.agree(),
            (None, _) => comparison.differ("blank there: none in stock that day, not a price of zero", name),
            (Some(_), Some(reason)) => comparison.differ(reason, name),
            (Some(price), None) => panic!("{name}: {price}, ours {}", offer.price.amount),
        }
        for (ours, theirs) in [(offer.machine.vcpus, cores), (offer.machine.system_memory_gib, memory)] {
            assert_eq!(ours, *theirs, "{name}");
            comparison.agree();
        }
    }
}

fn catalogue_of_spring() -> Option<Comparison> {
    let what = "Prices, cores and memory of the recording of 2026-03-06, which was typed from such figures, against a catalogue made from the live list.";
    let mut comparison = Comparison::with("verda", "data/catalogs/skypilot_v8/verda_000c1d0bf246.csv", what)?;
    against(&mut comparison, None);
    Some(comparison)
}

fn catalogue_before() -> Option<Comparison> {
    let what = "The same against an older catalogue of the same project, when the prices were lower.";
    let mut comparison = Comparison::with("verda", "data/catalogs/skypilot_v8/verda_538675a09162.csv", what)?;
    against(&mut comparison, Some("an earlier price"));
    Some(comparison)
}
