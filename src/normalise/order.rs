//! The order of a night's file, worked out before its rows are made.
//!
//! The same order as `validate::sorted` gives, of offers and what was worked out of them. Where the two differed, that one would
//! sort once more.

use gpuledger_scrapers::contract::PublishedOffer;
use polars::prelude::IdxSize;

use super::{Facts, Observed, scaled_count};
use crate::frame::to_scaled;
use crate::sorted::{Keys, nulls_last};

/// Places of the offers in the order of their file. Where it cannot be had here, their own order.
pub(super) fn file_order(observed: &[Observed], facts: &[Facts]) -> Vec<IdxSize> {
    let offers = || observed.iter().map(|observed| observed.offer);
    let terms = || offers().map(|offer| &offer.terms);
    let mut keys = Keys::of(observed.len());
    keys.then(facts.iter().map(|facts| facts.gpu_model.map(|model| model.name.as_str())));
    keys.then(observed.iter().map(|observed| Some(observed.manifest.provider.as_str())));
    keys.then(observed.iter().map(|observed| Some(observed.offer.site.unwrap_or(observed.manifest.site).word())));
    keys.then(offers().map(|offer| offer.region.as_deref()));
    keys.then(offers().map(|offer| offer.zone.as_deref()));
    keys.then(offers().map(|offer| offer.instance_type.as_deref()));
    keys.then(offers().map(|offer| offer.offer_label.as_deref()));
    keys.then(terms().map(|terms| Some(terms.os.word())));
    keys.then(terms().map(|terms| Some(terms.pricing_model.word())));
    keys.then(terms().map(|terms| terms.plan.as_deref()));
    keys.then(terms().map(|terms| terms.commitment_months.and_then(|months| i32::try_from(months).ok())));
    keys.then(terms().map(|terms| terms.upfront.map(|upfront| upfront.word())));
    keys.then(terms().map(|terms| Some(terms.is_promotion)));
    keys.then(offers().map(|offer| offer.gpu.count.map(scaled_count)));
    if !keys.has_room() {
        return (0..).take(observed.len()).collect();
    }
    let amount = |offer: &PublishedOffer| to_scaled(offer.price.amount);
    keys.order(|a, b| {
        let (a, b) = (a as usize, b as usize);
        let (of_a, of_b) = (&observed[a], &observed[b]);
        facts[a]
            .offer_id
            .cmp(&facts[b].offer_id)
            .then_with(|| nulls_last(amount(of_a.offer), amount(of_b.offer)))
            .then_with(|| nulls_last(of_a.offer.sku.as_deref(), of_b.offer.sku.as_deref()))
            .then_with(|| of_a.raw_sha256.cmp(of_b.raw_sha256))
            .then_with(|| of_a.offer.place.at.cmp(&of_b.offer.place.at))
    })
}
