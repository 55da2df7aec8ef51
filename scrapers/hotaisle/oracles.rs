//! Hot Aisle's price held against a tracker.

use crate::contract::PricingModel::OnDemand;

use crate::oracles::{Comparison, Oracle};
use crate::readings::{RENTALS, hold, ours, recorded, rentals};

inventory::submit!(Oracle(compare));

/// Every comparison with a source about Hot Aisle.
fn compare() -> Vec<Option<Comparison>> {
    let what = "Prices of four weeks, against the virtual machines of our typed recording of 2026-08-22. The other tracker ends in \
                May, with the $1.99 that older customers keep.";
    let Some(mut comparison) = Comparison::with("hotaisle", RENTALS, what) else { return Vec::new() };
    let offers = recorded("hotaisle", "2026-08-22");
    for reading in rentals("hotaisle") {
        hold(&mut comparison, &reading, ours(&offers, "VM Small 1x MI300x", OnDemand), |_| None);
    }
    vec![Some(comparison)]
}
