//! Vultr's prices held against a tracker.

use rust_decimal::Decimal;

use crate::contract::{PricingModel, PublishedOffer};
use crate::oracles::{Comparison, Oracle};
use crate::readings::{RENTALS, hold, recorded, rentals};

inventory::submit!(Oracle(compare));

fn compare() -> Vec<Option<Comparison>> {
    vec![tracker()]
}

/// Our price of one whole card in a type of machine.
fn ours(offers: &[PublishedOffer], machine: &str, model: PricingModel) -> Option<Decimal> {
    let is_it = |offer: &&PublishedOffer| offer.instance_type.as_deref() == Some(machine) && offer.terms.pricing_model == model;
    let offer = offers.iter().find(is_it)?;
    let count = offer.gpu.count.filter(|count| count.is_integer())?;
    Some(offer.price.amount / Decimal::from(*count.numer()))
}

fn tracker() -> Option<Comparison> {
    let what = "Prices of one card in six weeks, against our typed recording of 2026-08-22.";
    let mut comparison = Comparison::with("vultr", RENTALS, what)?;
    let offers = recorded("vultr", "2026-08-22");
    for reading in rentals("vultr") {
        let machine = match reading.gpu.as_str() {
            "a100" => "vcg-a100-12c-120g-80vram",
            "a100-sxm-80" => "vbm-112c-2048gb-8-a100-gpu",
            "a40" => "vcg-a40-24c-120g-48vram",
            "b200" => "vcg-b200-248c-2826g-1536vram",
            "h100" | "h100-sxm" => "vbm-112c-2048gb-8-h100-gpu",
            "l40s" => "vcg-l40s-16c-180g-48vram",
            "gh200" | "mi325x" | "mi355x" => "none in the recording",
            other => panic!("their card {other} has no machine of ours"),
        };
        let model = if reading.kind == "spot" { PricingModel::Spot } else { PricingModel::OnDemand };
        hold(&mut comparison, &reading, ours(&offers, machine, model), |reading| match reading.gpu.as_str() {
            "gh200" | "mi325x" | "mi355x" => Some("the card is not in the recording, which has some machines of each kind only"),
            "a100-sxm-80" | "b200" | "h100-sxm" if reading.day.as_str() <= "2026-07-17" => {
                Some("until 2026-07-17 they read the web page, which does not say how it is bought; since then the API, as we do")
            }
            _ => None,
        });
    }
    Some(comparison)
}
