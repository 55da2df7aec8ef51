//! Modal's prices held against a tracker.

use crate::contract::PricingModel::OnDemand;
use rust_decimal::Decimal;

use crate::oracles::{Comparison, Oracle};
use crate::readings::{RENTALS, hold, ours, recorded, rentals};

inventory::submit!(Oracle(compare));

/// Every comparison with a source about Modal.
fn compare() -> Vec<Option<Comparison>> {
    let what = "Prices of an hour of six weeks, against 3,600 times those of a second in our typed recording of 2026-08-22.";
    let Some(mut comparison) = Comparison::with("modal", RENTALS, what) else { return Vec::new() };
    let offers = recorded("modal", "2026-08-22");
    for reading in rentals("modal") {
        let label = match reading.gpu.as_str() {
            "a10" => "Nvidia A10",
            "a100" => "Nvidia A100, 80 GB",
            "a100-pcie-40" => "Nvidia A100, 40 GB",
            "b200" => "Nvidia B200",
            "b300" => "Nvidia B300",
            "h100" | "h100-sxm" => "Nvidia H100",
            "h200" => "Nvidia H200",
            "l4" => "Nvidia L4",
            "l40s" => "Nvidia L40S",
            "rtx-pro-6000" => "Nvidia RTX PRO 6000",
            "t4" => "Nvidia T4",
            other => other,
        };
        let hour = ours(&offers, label, OnDemand).map(|second| (second * Decimal::from(3600)).normalize());
        hold(&mut comparison, &reading, hour, |_| None);
    }
    vec![Some(comparison)]
}
