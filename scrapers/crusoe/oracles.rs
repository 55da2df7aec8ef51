//! Crusoe's prices held against two trackers.

use crate::contract::PricingModel::{OnDemand, Spot};

use crate::oracles::{Comparison, Oracle};
use crate::readings::{DEPLOYMENTS, RENTALS, deployments, hold, ours, recorded, rentals};

inventory::submit!(Oracle(compare));

/// Every comparison with a source about Crusoe Cloud.
fn compare() -> Vec<Option<Comparison>> {
    vec![tracker(), deploying()]
}

fn tracker() -> Option<Comparison> {
    let what = "Prices on demand of six weeks, against our typed recording of 2026-08-22.";
    let mut comparison = Comparison::with("crusoe", RENTALS, what)?;
    let offers = recorded("crusoe", "2026-08-22");
    for reading in rentals("crusoe") {
        let label = match reading.gpu.as_str() {
            "a100-pcie-80" => "NVIDIA A100 80GB PCIe",
            "a100-sxm-80" => "NVIDIA A100 80GB SXM",
            "h100" => "NVIDIA H100 80GB HGX",
            "h200" => "NVIDIA H200 141GB HGX",
            "l40s" => "NVIDIA L40S 48GB",
            "mi300x" => "AMD MI300X 192GB",
            other => other,
        };
        hold(&mut comparison, &reading, ours(&offers, label, OnDemand), |_| None);
    }
    Some(comparison)
}

fn deploying() -> Option<Comparison> {
    let what = "Prices of 2026-02-11 to 2026-07-20, against our typed recordings of 2026-03-06 and 2026-08-22. The spot prices of A100 \
                in the former are from this tracker.";
    let mut comparison = Comparison::with("crusoe", DEPLOYMENTS, what)?;
    let (before, after) = (recorded("crusoe", "2026-03-06"), recorded("crusoe", "2026-08-22"));
    for reading in deployments("crusoe") {
        let model = if reading.kind == "spot" { Spot } else { OnDemand };
        let (_, card) = reading.gpu.split_once("x ").expect("a count and a card");
        let labels: &[&str] = match card {
            "A100_PCIE_40GB" => &["NVIDIA A100 40GB PCIe"],
            "A100_PCIE_80GB" => &["NVIDIA A100 80GB PCIe"],
            // Until May they call every A100 an SXM.
            "A100_SXM_40GB" => &["NVIDIA A100 40GB PCIe"],
            "A100_SXM_80GB" => &["NVIDIA A100 80GB SXM", "NVIDIA A100 80GB PCIe", "NVIDIA A100 40GB PCIe"],
            "H100_SXM" => &["NVIDIA H100 80GB HGX"],
            "H200" => &["NVIDIA H200 141GB HGX"],
            "L40S" => &["NVIDIA L40S 48GB"],
            "MI300X" => &["AMD MI300X 192GB"],
            _ => &[],
        };
        let prices: Vec<_> = [&before, &after]
            .into_iter()
            .flat_map(|offers| labels.iter().filter_map(|label| ours(offers, label, model)))
            .collect();
        let nearest = prices.iter().find(|price| **price == reading.amount).or(prices.first()).copied();
        let of_machine =
            prices.iter().any(|price| reading.gpu.starts_with("8x ") && price * rust_decimal::Decimal::from(8) == reading.amount);
        hold(&mut comparison, &reading, nearest, |reading| match (card, reading.amount.to_string().as_str()) {
            _ if of_machine => Some("the same price, of the whole machine"),
            ("GB200", "4.29") => Some("the price of the H200; the page has none of the GB200"),
            ("MI355X" | "L40S", "3.45") => Some("the price of the MI300X under another card's name"),
            _ => None,
        });
    }
    Some(comparison)
}
