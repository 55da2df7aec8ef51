//! Nebius' prices held against two trackers and a list kept by hand.

use crate::contract::PricingModel::{OnDemand, Spot};
use rust_decimal::Decimal;
use serde_json::Value;

use crate::oracles::{Comparison, Oracle, shared};
use crate::readings::{DEPLOYMENTS, RENTALS, deployments, hold, ours, recorded, rentals};

const BY_HAND: &str = "samples/nebius/mixxor_component_prices_2026-05-20.json";
const RISEN: &str = "the prices rose at the end of May 2026, and ours are of July";
const PARTS: &str = "L40S is sold in parts, and this is the part without processors and memory";

inventory::submit!(Oracle(compare));

/// Every comparison with a source about Nebius.
fn compare() -> Vec<Option<Comparison>> {
    vec![tracker(), deploying(), by_hand()]
}

fn tracker() -> Option<Comparison> {
    let what = "Prices on demand of six weeks, against our typed recording of 2026-07-12.";
    let mut comparison = Comparison::with("nebius", RENTALS, what)?;
    let offers = recorded("nebius", "2026-07-12");
    for reading in rentals("nebius") {
        let label = match reading.gpu.as_str() {
            "b200" => "NVIDIA HGX B200",
            "b300" => "NVIDIA HGX B300",
            // Until 2026-07-25 they called the HGX boards NVL.
            "h100" | "h100-nvl" => "NVIDIA HGX H100",
            "h200" | "h200-nvl" => "NVIDIA HGX H200",
            "rtx-pro-6000" => "NVIDIA RTX PRO 6000",
            other => other,
        };
        hold(&mut comparison, &reading, ours(&offers, label, OnDemand), |_| (reading.gpu == "l40s").then_some(PARTS));
    }
    Some(comparison)
}

fn deploying() -> Option<Comparison> {
    let what = "Prices of 2026-02-11 to 2026-07-20, against our typed recording of 2026-07-12. What they call `on_demand` in `eu` \
                since May is the preemptible price, and is held against ours.";
    let mut comparison = Comparison::with("nebius", DEPLOYMENTS, what)?;
    let offers = recorded("nebius", "2026-07-12");
    for reading in deployments("nebius") {
        let label = match reading.gpu.split_once("x ").expect("a count").1 {
            "B200" => "NVIDIA HGX B200",
            "H100_SXM" | "H100_NVL" => "NVIDIA HGX H100",
            "H200" => "NVIDIA HGX H200",
            other => other,
        };
        let prices = [ours(&offers, label, OnDemand), ours(&offers, label, Spot)];
        let nearest = prices.into_iter().find(|price| *price == Some(reading.amount)).flatten().or(prices[0]);
        hold(&mut comparison, &reading, nearest, |reading| {
            let is_floor = reading.gpu.contains("L40S");
            if is_floor {
                Some("a price from which L40S starts, and no exact one")
            } else {
                Some(RISEN).filter(|_| reading.day.as_str() < "2026-05-31")
            }
        });
    }
    Some(comparison)
}

fn by_hand() -> Option<Comparison> {
    let what = "Prices of 2026-05-20 kept by hand, on demand and preemptible, against our typed recording of 2026-07-12.";
    let mut comparison = Comparison::with("nebius", BY_HAND, what)?;
    let offers = recorded("nebius", "2026-07-12");
    let list: Value = serde_json::from_str(&std::fs::read_to_string(shared(BY_HAND)).expect("it reads")).expect("it is JSON");
    for card in list["gpu_pricing"]["gpus"].as_array().expect("cards") {
        let id = card["id"].as_str().expect("an id");
        let label = match id {
            "b300-nvlink" => "NVIDIA HGX B300",
            "b200-nvlink" | "b200-nvlink-a" => "NVIDIA HGX B200",
            "h200-nvlink" => "NVIDIA HGX H200",
            "h100-nvlink" => "NVIDIA HGX H100",
            "rtx-pro-6000" => "NVIDIA RTX PRO 6000",
            other => other,
        };
        for (model, field) in [(OnDemand, "price_per_gpu_hour_usd"), (Spot, "preemptible_price_per_gpu_hour_usd")] {
            let theirs: Decimal = card[field].to_string().parse().expect("an amount");
            let our = ours(&offers, label, model);
            let example = format!("{id} {model} {theirs}");
            match our {
                Some(our) if our == theirs.normalize() => comparison.agree(),
                Some(_) => comparison.differ(RISEN, example),
                None if id.starts_with("l40s") => comparison.differ(PARTS, example),
                None => panic!("{example}, ours none"),
            }
        }
    }
    Some(comparison)
}
