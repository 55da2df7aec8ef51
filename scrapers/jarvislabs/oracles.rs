//! JarvisLabs' prices held against a tracker.

use crate::contract::PricingModel::OnDemand;

use crate::oracles::{Comparison, Oracle};
use crate::readings::{RENTALS, hold, ours, recorded, rentals};

inventory::submit!(Oracle(compare));

/// Every comparison with a source about JarvisLabs.
fn compare() -> Vec<Option<Comparison>> {
    let what = "Prices on demand of six weeks, against our typed recording of 2026-08-22.";
    let Some(mut comparison) = Comparison::with("jarvislabs", RENTALS, what) else { return Vec::new() };
    let offers = recorded("jarvislabs", "2026-08-22");
    for reading in rentals("jarvislabs") {
        let label = match reading.gpu.as_str() {
            "a100" => "A100-80GB",
            "a100-sxm-40" => "A100",
            "h100-sxm" => "H100 SXM",
            "h200" => "H200 SXM",
            "l4" => "L4",
            "rtx-pro-6000" => "RTX PRO 6000",
            other => other,
        };
        hold(&mut comparison, &reading, ours(&offers, label, OnDemand), |reading| {
            (reading.gpu == "h200" && reading.day.as_str() < "2026-07-13").then_some("the price rose on 2026-07-13")
        });
    }
    vec![Some(comparison)]
}
