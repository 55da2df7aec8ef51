//! Together AI's prices held against two trackers.

use crate::contract::PricingModel::OnDemand;

use crate::oracles::{Comparison, Oracle};
use crate::readings::{DEPLOYMENTS, RENTALS, deployments, hold, ours, recorded, rentals};

inventory::submit!(Oracle(compare));

/// Every comparison with a source about Together AI.
fn compare() -> Vec<Option<Comparison>> {
    vec![tracker()]
}

fn tracker() -> Option<Comparison> {
    let what = "Prices on demand of six weeks, against the clusters of our typed recording of 2026-09-15. Nothing of the other \
                tracker's is equal: it ends in May, before all prices rose.";
    let mut comparison = Comparison::with("together", RENTALS, what)?;
    let offers: Vec<_> = recorded("together", "2026-09-15").into_iter().filter(|offer| offer.terms.plan.is_none()).collect();
    for reading in rentals("together") {
        let label = match reading.gpu.as_str() {
            "b200" => "NVIDIA HGX B200",
            "h100" => "NVIDIA HGX H100",
            "h200" => "NVIDIA HGX H200",
            other => other,
        };
        hold(&mut comparison, &reading, ours(&offers, label, OnDemand), |_| None);
    }
    if Comparison::with("together", DEPLOYMENTS, "").is_some() {
        let last = deployments("together").into_iter().map(|reading| reading.day).max();
        assert!(last.is_some_and(|day| day.as_str() < "2026-06-01"), "their readings go on, and can be held against ours");
    }
    Some(comparison)
}
