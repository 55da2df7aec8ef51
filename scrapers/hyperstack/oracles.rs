//! Hyperstack's prices held against two trackers.

use crate::contract::PricingModel::{OnDemand, Spot};

use crate::oracles::{Comparison, Oracle};
use crate::readings::{DEPLOYMENTS, RENTALS, deployments, hold, ours, recorded, rentals};

inventory::submit!(Oracle(compare));

/// Every comparison with a source about Hyperstack.
fn compare() -> Vec<Option<Comparison>> {
    vec![tracker(), deploying()]
}

fn tracker() -> Option<Comparison> {
    let what = "Prices on demand of six weeks, against our typed recording of 2026-08-22.";
    let mut comparison = Comparison::with("hyperstack", RENTALS, what)?;
    let offers = recorded("hyperstack", "2026-08-22");
    for reading in rentals("hyperstack") {
        let label = match reading.gpu.as_str() {
            "a100" => "NVIDIA A100",
            "a100-sxm-80" => "NVIDIA A100 SXM",
            "b200" => "NVIDIA B200",
            "b300" => "NVIDIA B300",
            "h100" => "NVIDIA H100",
            // A bridged pair of PCIe cards, which is no H100 NVL.
            "h100-nvl" => "NVIDIA H100 NVLink",
            "h100-sxm" => "NVIDIA H100 SXM",
            "h200" => "NVIDIA H200 SXM",
            "l40" => "NVIDIA L40",
            "rtx-a4000" => "NVIDIA A4000",
            "rtx-a6000" => "NVIDIA A6000",
            "rtx-pro-6000" => "NVIDIA RTX Pro 6000 SE",
            other => other,
        };
        hold(&mut comparison, &reading, ours(&offers, label, OnDemand), |_| None);
    }
    Some(comparison)
}

fn deploying() -> Option<Comparison> {
    let what = "Prices of 2026-02-11 to 2026-05-08, against our typed recording of 2026-08-22.";
    let mut comparison = Comparison::with("hyperstack", DEPLOYMENTS, what)?;
    let offers = recorded("hyperstack", "2026-08-22");
    for reading in deployments("hyperstack") {
        let model = if reading.kind == "spot" { Spot } else { OnDemand };
        let labels: &[&str] = match reading.gpu.as_str() {
            // They call every card of the page SXM, and its lowest price is that of the PCIe card.
            "1x A100_PCIE_80GB" | "1x A100_SXM_80GB" => &["NVIDIA A100", "NVIDIA A100 SXM"],
            "1x H100_PCIE" | "1x H100_SXM" => &["NVIDIA H100", "NVIDIA H100 SXM"],
            "1x H100_NVL" => &["NVIDIA H100 NVLink"],
            "1x H200" => &["NVIDIA H200 SXM"],
            _ => &[],
        };
        let prices: Vec<_> = labels.iter().filter_map(|label| ours(&offers, label, model)).collect();
        let nearest = prices.iter().find(|price| **price == reading.amount).or(prices.first()).copied();
        hold(&mut comparison, &reading, nearest, |reading| {
            reading
                .gpu
                .contains("H100")
                .then_some("the price rose between May and July 2026")
                .or_else(|| reading.gpu.contains("H200").then_some("the price rose between May and July 2026"))
        });
    }
    Some(comparison)
}
