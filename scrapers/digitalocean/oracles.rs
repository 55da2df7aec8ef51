//! DigitalOcean held against two trackers.

use crate::contract::{Page, PublishedOffer};
use crate::{find, read};
use rust_decimal::Decimal;

use crate::oracles::{Comparison, Oracle, shared};
use crate::trackers;

/// From this day on the prices that the recording has.
const RISE: &str = "2026-08-02";

/// Cards of the tracker that are compared with nothing. Its price of the B300 is the spot price by DigitalOcean's documentation of
/// that day, which sells the card on demand by contract only, and its price of the MI350X on demand stands nowhere else.
const NOT_COMPARED: [&str; 2] = ["b300", "mi350x"];

inventory::submit!(Oracle(compare));

fn compare() -> Vec<Option<Comparison>> {
    vec![days(), site()]
}

/// Dollars of one card and hour of a card by a tracker's name.
fn usd(offers: &[PublishedOffer], gpu: &str, count: Option<u32>) -> Option<Decimal> {
    let label = match gpu {
        "h100" | "H100_SXM" | "H100_NVL" => "NVIDIA H100",
        "h200" | "H200" => "NVIDIA H200",
        "l40s" | "L40S" => "NVIDIA L40S",
        "mi300x" | "MI300X" => "AMD Instinct™ MI300X",
        "mi325x" => "AMD Instinct™ MI325X",
        "rtx-6000-ada" => "NVIDIA RTX 6000 Ada Generation",
        _ => return None,
    };
    let is_it = |offer: &&PublishedOffer| {
        let is_count = count.is_none_or(|count| offer.gpu.count == Some(count.into()));
        offer.gpu.label.as_deref() == Some(label) && is_count
    };
    offers.iter().find(is_it).and_then(trackers::per_gpu_hour)
}

fn days() -> Option<Comparison> {
    let what = "Dollars per card of the recording against a tracker's 28 days, July to August. The recording was typed from the last of them. The B300 and MI350X are left out: the one price is of spot, and the other stands nowhere else.";
    let mut comparison = Comparison::with("digitalocean", trackers::DAILY, what)?;
    let offers = trackers::recorded("digitalocean");
    let ours = |reading: &trackers::Reading| usd(&offers, &reading.gpu, None);
    let mut readings = trackers::daily("digitalocean");
    readings.retain(|reading| !NOT_COMPARED.contains(&reading.gpu.as_str()));
    trackers::hold(&mut comparison, &readings, ours, |reading, ours| {
        assert!(reading.date.to_string().as_str() < RISE && ours.is_some(), "{reading:?} {ours:?}");
        "the price before the rise of 2026-08-01"
    });
    Some(comparison)
}

fn site() -> Option<Comparison> {
    let what = "Dollars per card of a stored excerpt of the page of 2025-07, which nobody here typed, against a comparison site, February to July 2026: the prices stood still for a year.";
    let mut comparison = Comparison::with("digitalocean", trackers::DEPLOYING, what)?;
    let body = std::fs::read(shared("samples/digitalocean/digitalocean_20250707231929.html")).expect("the excerpt reads");
    let page = Page {
        name: "gpu-droplets".to_owned(),
        scope: "page".to_owned(),
        url: "https://www.digitalocean.com/pricing/gpu-droplets".to_owned(),
        observed_at: "2025-07-07T23:19:29Z".parse().expect("a literal time"),
        sha256: String::new(),
        body,
    };
    let scraper = find("digitalocean").expect("the provider is registered");
    let parsed = read(scraper, vec![page]).remove("page").expect("the page is a scope").expect("the excerpt reads");
    let ours = |reading: &trackers::Reading| usd(&parsed.offers, &reading.gpu, reading.gpu_count);
    trackers::hold(&mut comparison, &trackers::deploying("digitalocean"), ours, |reading, ours| match ours {
        Some(usd) => {
            assert_eq!(usd * Decimal::from(reading.gpu_count.unwrap_or(1)), reading.usd, "{reading:?}");
            "the same price, of the whole Droplet"
        }
        None => {
            assert_eq!(reading.gpu, "H200", "{reading:?}");
            "a card that the page did not have yet"
        }
    });
    Some(comparison)
}
