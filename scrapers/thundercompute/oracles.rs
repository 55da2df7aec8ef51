//! Thunder Compute's prices held against two trackers and a list of plans.

use crate::contract::PricingModel::OnDemand;
use crate::contract::PublishedOffer;
use rust_decimal::Decimal;

use crate::oracles::{Comparison, Oracle, shared};
use crate::readings::{DEPLOYMENTS, RENTALS, deployments, hold, ours, recorded, rentals};

const PLANS: &str = "samples/thundercompute/plans_pricing.yml";

inventory::submit!(Oracle(compare));

/// Every comparison with a source about Thunder Compute.
fn compare() -> Vec<Option<Comparison>> {
    vec![tracker(), deploying(), plans()]
}

fn tracker() -> Option<Comparison> {
    let what = "Prices of six weeks, against our typed recording of 2026-08-22.";
    let mut comparison = Comparison::with("thundercompute", RENTALS, what)?;
    let offers = recorded("thundercompute", "2026-08-22");
    for reading in rentals("thundercompute") {
        let label = match reading.gpu.as_str() {
            "a100" => "A100 80GB",
            "h100-pcie" => "H100 PCIe",
            "l40" => "L40",
            "rtx-a6000" => "RTX A6000",
            other => other,
        };
        hold(&mut comparison, &reading, ours(&offers, label, OnDemand), |reading| {
            (reading.gpu == "h100-pcie").then_some("the price rose between 2026-08-15, where they end, and 2026-08-22")
        });
    }
    Some(comparison)
}

/// Our price of a card in one of its modes that is theirs.
fn either(offers: &[PublishedOffer], labels: &[&str], theirs: Decimal) -> Option<Decimal> {
    let is_it = |offer: &&PublishedOffer| offer.offer_label.as_deref().is_some_and(|label| labels.contains(&label));
    offers.iter().filter(is_it).map(|offer| offer.price.amount).find(|amount| *amount == theirs)
}

fn deploying() -> Option<Comparison> {
    let what = "Prices of 2026-02-11 to 2026-05-08, against our typed recording of 2026-06-21. They do not tell the modes apart, and \
                call bridged cards SXM and NVL.";
    let mut comparison = Comparison::with("thundercompute", DEPLOYMENTS, what)?;
    let offers = recorded("thundercompute", "2026-06-21");
    for reading in deployments("thunder") {
        let labels: &[&str] = match reading.gpu.split_once("x ").expect("a count").1 {
            "A100_PCIE_80GB" | "A100_SXM_80GB" => &["A100 80GB", "A100 80GB NVLink"],
            "H100_PCIE" | "H100_SXM" | "H100_NVL" => &["H100 PCIe", "H100 PCIe NVLink"],
            _ => &[],
        };
        hold(&mut comparison, &reading, either(&offers, labels, reading.amount), |reading| match reading.gpu.as_str() {
            "1x L40S" => Some("a card that was on the page for some days of May"),
            "1x H100_SXM" => Some("a price that was gone by 2026-02-13"),
            _ => None,
        });
    }
    Some(comparison)
}

fn plans() -> Option<Comparison> {
    let what = "A list of plans of 2026-06-21, against our typed recording of that day.";
    let mut comparison = Comparison::with("thundercompute", PLANS, what)?;
    let offers = recorded("thundercompute", "2026-06-21");
    let text = std::fs::read_to_string(shared(PLANS)).expect("the list reads");
    let (mut mode, mut label) = ("", "");
    for line in text.lines().map(str::trim) {
        if let Some(plan) = line.strip_prefix("- id: thundercompute-") {
            mode = if plan == "development" { "prototyping" } else { plan };
        } else if let Some(name) = line.strip_prefix("- label: ") {
            label = name;
        } else if let Some(price) = line.strip_prefix("price: $").and_then(|price| price.strip_suffix(" per GPU/hour")) {
            let bare = label.replace(" (48GB)", "").replace(" (80GB)", "");
            let is_it = |offer: &&PublishedOffer| {
                offer.offer_label.as_deref() == Some(&bare) && offer.terms.plan.as_deref() == Some(mode)
            };
            let ours = offers.iter().find(is_it).map(|offer| offer.price.amount);
            assert_eq!(ours, price.parse::<Decimal>().ok().map(|price| price.normalize()), "{label} {mode}");
            comparison.agree();
        }
    }
    Some(comparison)
}
