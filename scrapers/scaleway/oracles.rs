//! Scaleway held against a tracker, and against another project's run of the same catalogue.

use crate::contract::PublishedOffer;
use rust_decimal::Decimal;

use crate::oracles::{Comparison, Oracle, shared};
use crate::trackers;

inventory::submit!(Oracle(compare));

fn compare() -> Vec<Option<Comparison>> {
    vec![days(), euros()]
}

/// Euros for one card and hour of the smallest machine with a card, as we read the recording.
fn eur(offers: &[PublishedOffer], gpu: &str) -> Option<Decimal> {
    let label = match gpu {
        "b300" => "B300-SXM",
        "h100" => "H100 PCIe",
        "h100-sxm" => "H100 SXM",
        "l4" => "L4",
        "l40s" => "L40S",
        _ => return None,
    };
    offers.iter().find(|offer| offer.gpu.label.as_deref() == Some(label)).and_then(trackers::per_gpu_hour)
}

fn days() -> Option<Comparison> {
    let what = "Euros of the recording, times the central bank's rate of the day before, against dollars of 28 days.";
    let mut comparison = Comparison::with("scaleway", trackers::DAILY, what)?;
    let (offers, rate) = (trackers::recorded("scaleway"), trackers::usd_per_eur());
    let ours = |reading: &trackers::Reading| Some(eur(&offers, &reading.gpu)? * rate(reading.date));
    trackers::hold(&mut comparison, &trackers::daily("scaleway"), ours, |reading, ours| {
        assert!(
            reading.gpu == "h100-sxm" && reading.date.to_string().as_str() < "2026-07-24" && ours.is_some(),
            "{reading:?} {ours:?}"
        );
        "the price rose on 2026-07-24, and the recording is of a month later"
    });
    Some(comparison)
}

fn euros() -> Option<Comparison> {
    let what = "Euros an hour of the GPU machine in fr-par-1, from another project's run of the catalogue on 2026-08-14. The recording was typed from it.";
    let mut comparison = Comparison::with("scaleway", "samples/scaleway/mixxor_prices_fr-par-1_2026-08-14.json", what)?;
    let text = std::fs::read_to_string(shared(comparison.source)).expect("the file reads");
    let file: serde_json::Value = serde_json::from_str(&text).expect("the file is JSON");
    let offers = trackers::recorded("scaleway");
    for theirs in file["instances"].as_array().expect("machines").iter().filter(|machine| machine["category"] == "gpu") {
        let name = theirs["id"].as_str().expect("a machine has a name");
        let ours = offers.iter().find(|offer| offer.instance_type.as_deref() == Some(name));
        let ours = ours.and_then(trackers::per_gpu_hour).map(|eur| eur.to_string());
        if ours == Some(theirs["price_hourly"].to_string()) {
            comparison.agree();
        } else {
            comparison.differ("not equal", name);
        }
    }
    Some(comparison)
}
