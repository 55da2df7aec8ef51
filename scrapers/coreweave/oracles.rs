//! CoreWeave's prices held against two trackers.

use crate::contract::{PricingModel::OnDemand, PublishedOffer};
use rust_decimal::Decimal;

use crate::oracles::{Comparison, Oracle};
use crate::readings::{DEPLOYMENTS, RENTALS, deployments, hold, recorded, rentals};
use crate::trackers::per_gpu_hour;

inventory::submit!(Oracle(compare));

/// Every comparison with a source about CoreWeave.
fn compare() -> Vec<Option<Comparison>> {
    vec![tracker(), deploying()]
}

/// Our price of one GPU of a machine on demand.
fn ours(offers: &[PublishedOffer], product: &str) -> Option<Decimal> {
    let is_it =
        |offer: &&PublishedOffer| offer.instance_type.as_deref() == Some(product) && offer.terms.pricing_model == OnDemand;
    offers.iter().find(is_it).and_then(per_gpu_hour).map(|amount| amount.normalize())
}

fn tracker() -> Option<Comparison> {
    let what = "Prices of one GPU on demand of six weeks, against those of whole machines in our typed recording of 2026-08-22 by their \
                GPUs.";
    let mut comparison = Comparison::with("coreweave", RENTALS, what)?;
    let offers = recorded("coreweave", "2026-08-22");
    for reading in rentals("coreweave") {
        let product = match reading.gpu.as_str() {
            "a100" => "nvidia-a100",
            "b200" => "nvidia-b200",
            "gh200" => "nvidia-gh200",
            "h100" => "hgx-h100",
            "h200" => "hgx-h200",
            "l40" => "nvidia-l40",
            "l40s" => "nvidia-l40s",
            "rtx-pro-6000" | "rtx-pro-6000-server" => "nvidia-rtx-pro-6000-blackwell-server-edition",
            other => other,
        };
        hold(&mut comparison, &reading, ours(&offers, product), |_| None);
    }
    Some(comparison)
}

fn deploying() -> Option<Comparison> {
    let what = "Prices on demand of 2026-02-11 to 2026-05-08, of whole machines until 2026-02-18 and of one GPU since, against our typed \
                recording of 2026-08-22.";
    let mut comparison = Comparison::with("coreweave", DEPLOYMENTS, what)?;
    let offers = recorded("coreweave", "2026-08-22");
    for reading in deployments("coreweave") {
        let (_, card) = reading.gpu.split_once("x ").expect("a count and a card");
        let product = match card {
            "A100_SXM_80GB" => "nvidia-a100",
            "B200" => "nvidia-b200",
            // They call the same machine both.
            "H100_SXM" | "H100_NVL" => "hgx-h100",
            "H200" => "hgx-h200",
            "L40S" => "nvidia-l40s",
            other => other,
        };
        let ours = ours(&offers, product);
        hold(&mut comparison, &reading, ours, |reading| {
            let amount = ours?;
            let is_rounded = (amount - reading.amount).abs() < Decimal::new(1, 2);
            let is_machine = amount * Decimal::from(8) == reading.amount;
            let reasons =
                [(is_rounded, "the same price, rounded to cents"), (is_machine, "the same price, of the whole machine")];
            reasons.into_iter().find(|(holds, _)| *holds).map(|(_, reason)| reason)
        });
    }
    Some(comparison)
}
