//! OVHcloud held against two trackers, another project's run of the catalogue, and machines that somebody looked into.

use std::io::Read as _;

use crate::contract::{PricingModel, PublishedOffer};
use crate::{find, money};
use rust_decimal::Decimal;

use crate::oracles::{Comparison, Oracle, shared};
use crate::trackers;

inventory::submit!(Oracle(compare));

fn compare() -> Vec<Option<Comparison>> {
    vec![days(), site(), euros(), machines()]
}

/// Dollars of one card and hour of the machine with a card and a number of them.
fn usd(offers: &[PublishedOffer], gpu: &str, count: u32) -> Option<Decimal> {
    let label = match gpu {
        "a10" => "A10",
        "a100" | "A100_SXM_80GB" => "A100 PCIe 80GB",
        "h100" | "H100_SXM" => "H100 PCIe",
        "h200" => "H200",
        "l4" => "L4",
        "l40s" | "L40S" => "L40S",
        "quadro-rtx-5000" => "Quadro RTX 5000",
        "v100" => "V100 PCIe 16GB",
        _ => return None,
    };
    let count = if gpu == "h200" { 8 } else { count };
    let is_it = |offer: &&PublishedOffer| {
        offer.gpu.label.as_deref() == Some(label)
            && offer.gpu.count == Some(count.into())
            && offer.price.currency_code == "USD"
            && offer.terms.pricing_model == PricingModel::OnDemand
    };
    offers.iter().find(is_it).and_then(trackers::per_gpu_hour)
}

fn days() -> Option<Comparison> {
    let what = "Dollars per card of the recording against a tracker's 42 days, July to August. The recording was typed from the last of them.";
    let mut comparison = Comparison::with("ovhcloud", trackers::DAILY, what)?;
    let offers = trackers::recorded("ovhcloud");
    let ours = |reading: &trackers::Reading| usd(&offers, &reading.gpu, 1);
    trackers::hold(&mut comparison, &trackers::daily("ovh"), ours, |reading, ours| panic!("{reading:?} {ours:?}"));
    Some(comparison)
}

fn site() -> Option<Comparison> {
    let what = "Dollars per card of the recording's machines of one, two and four cards against a comparison site, February to July 2026.";
    let mut comparison = Comparison::with("ovhcloud", trackers::DEPLOYING, what)?;
    let offers = trackers::recorded("ovhcloud");
    let ours = |reading: &trackers::Reading| usd(&offers, &reading.gpu, reading.gpu_count.unwrap_or(1));
    trackers::hold(&mut comparison, &trackers::deploying("ovh"), ours, |reading, ours| {
        let machine = ours.unwrap_or_default() * Decimal::from(reading.gpu_count.unwrap_or(1));
        assert_eq!(machine, reading.usd, "{reading:?}");
        "the same price, of the whole machine"
    });
    Some(comparison)
}

fn euros() -> Option<Comparison> {
    let what = "Euros by the hour and by the month, processors, memory and disks of the machines that another project read from the catalogue on 2026-08-14. The recording was typed from it.";
    let mut comparison = Comparison::with("ovhcloud", "samples/ovhcloud/mixxor_prices_2026-08-14.json", what)?;
    let text = std::fs::read_to_string(shared(comparison.source)).expect("the file reads");
    let file: serde_json::Value = serde_json::from_str(&text).expect("the file is JSON");
    let offers = trackers::recorded("ovhcloud");
    for theirs in file["instances"].as_array().expect("machines").iter().filter(|machine| machine["category"] == "gpu") {
        let name = theirs["id"].as_str().expect("a machine has a name");
        for (model, field) in [(PricingModel::OnDemand, "price_hourly"), (PricingModel::Subscription, "price_monthly")] {
            let is_it = |offer: &&PublishedOffer| {
                offer.instance_type.as_deref() == Some(name)
                    && offer.terms.pricing_model == model
                    && offer.price.currency_code == "EUR"
            };
            let ours = offers.iter().find(is_it).unwrap_or_else(|| panic!("{name} by {model}"));
            let theirs = |field: &str| money::decimal(&theirs[field].to_string());
            assert_eq!(Some(ours.price.amount), theirs(field), "{name}");
            let (machine, gpu) = (&ours.machine, &ours.gpu);
            let facts = [(machine.vcpus, "vcpu"), (machine.system_memory_gib, "ram_gb"), (machine.local_disk_gb, "disk_gb")];
            for (ours, field) in facts {
                assert_eq!(ours, theirs(field), "{name}");
                comparison.agree();
            }
            assert_eq!(gpu.count.map(|count| count.to_integer().into()), theirs("gpu"), "{name}");
            comparison.agree();
            comparison.agree();
        }
    }
    Some(comparison)
}

fn machines() -> Option<Comparison> {
    let what = "Number of cards, their memory and what their driver prints, of every flavour that somebody listed or started, as dumped on 2026-01-31, against our table.";
    let mut comparison = Comparison::with("ovhcloud", "data/catalogs/sparecores_gpu_servers_2026-01-31.json.gz", what)?;
    let bytes = std::fs::read(shared(comparison.source)).expect("the file reads");
    let mut text = String::new();
    flate2::read::GzDecoder::new(bytes.as_slice()).read_to_string(&mut text).expect("the file inflates");
    let servers: Vec<serde_json::Value> = serde_json::from_str(&text).expect("the file is JSON");
    let known = find("ovhcloud").expect("the provider is registered").machines();
    for theirs in servers.iter().filter(|server| server["vendor_id"] == "ovh") {
        let name = theirs["api_reference"].as_str().expect("a server has a name");
        let Some(ours) = known.iter().find(|machine| machine.instance_type == name) else {
            assert!(name.starts_with('g') && theirs["status"] == "INACTIVE", "{name}");
            comparison.differ("a flavour that is no longer sold", name);
            continue;
        };
        let count = theirs["gpu_count"].as_f64().expect("a count");
        let memory_mib = theirs["gpu_memory_min"].as_u64().map(|mib| Decimal::from(mib) / Decimal::from(1024));
        assert_eq!(ours.gpu.count.map(|count| f64::from(count.to_integer())), Some(count), "{name}");
        assert_eq!(ours.gpu.memory_gb, memory_mib, "{name}");
        comparison.agree();
        comparison.agree();
        let Some(driver) = theirs["gpus"][0]["model"].as_str() else { continue };
        let words = |text: &str| -> Vec<String> { text.to_lowercase().split([' ', '-']).map(str::to_owned).collect() };
        let printed = words(driver);
        let label = ours.gpu.label.as_deref().expect("every line has a card");
        assert!(words(label).iter().all(|word| printed.contains(word)), "{name}: {label}, printed {driver}");
        comparison.agree();
    }
    Some(comparison)
}
