//! Seeweb's GPU servers, in euros before tax: the open page <https://www.seeweb.it/en/products/cloud-server-gpu>, or with a key
//! the list <https://api.seeweb.it/ecs/v2/plans>.
//!
//! - The page prices **one card** for an hour, on demand and for 3, 6 and 12 months; the list prices a **plan** on demand.
//! - Both call the same machine the same: so many cards of a model. The plan's name is no part of it, for its digits are size
//!   steps (`ECS3GPU2` has four cards).
//! - Euros are not labelled. Another sign beside a price refuses it, and so does a decimal comma: it is the Italian page's.
//! - The list prices a plan the same in every place; where it can be had says only whether it can be had.
//! - The page does not say whether memory and disk are of one card or of all, so they are left open.

#[cfg(test)]
mod oracles;
mod page;
mod plans;
#[cfg(test)]
mod tests;

use std::collections::BTreeSet;
use std::sync::LazyLock;

use num_rational::Ratio;
use rust_decimal::Decimal;

use crate::contract::{
    GpuShare, Machine, Page, Parsed, Place, PricePer, PriceUnit, PublishedGpu, PublishedOffer, PublishedPrice, ScrapeError,
    Scraper, Terms,
};
use crate::manifest::Manifest;
use crate::spot::{self, Piece};

/// The source.
pub struct Seeweb;

static MANIFEST: LazyLock<Manifest> =
    LazyLock::new(|| Manifest::parse(include_str!("manifest.toml")).expect("the manifest beside this file reads"));

impl Scraper for Seeweb {
    fn manifest(&self) -> &'static Manifest {
        &MANIFEST
    }

    fn scope(&self, page: &Page) -> Result<Option<String>, ScrapeError> {
        Ok(Some(if is_markup(page)? { "page" } else { "api" }.to_owned()))
    }

    fn pieces(&self, page: &Page, at: &str) -> Option<Vec<Piece>> {
        if at.starts_with('/') {
            return spot::pieces(page, at);
        }
        page::pieces(page, at)
    }

    fn parse(&self, pages: &[Page]) -> Result<Parsed, ScrapeError> {
        let mut parsed = Parsed::default();
        for page in pages {
            match page.scope.as_str() {
                "page" => page::read(page, &mut parsed)?,
                _ => plans::read(page, &mut parsed)?,
            }
        }
        let key = |offer: &PublishedOffer| {
            (offer.offer_label.clone(), offer.terms.os, offer.terms.pricing_model, offer.terms.commitment_months)
        };
        Ok(parsed.with_one_price_each(key))
    }
}

fn is_markup(page: &Page) -> Result<bool, ScrapeError> {
    Ok(page.text()?.trim_start().starts_with('<'))
}

/// What page and list say of one price.
struct Found {
    label: String,
    count: u32,
    sku: Option<String>,
    machine: Machine,
    terms: Terms,
    amount: Decimal,
    text: String,
    per: PricePer,
    place: Place,
}

/// The offer, called by the card's canonical name where the manifest has the spelling, so that both sources call it the same.
fn offer(found: Found) -> PublishedOffer {
    let model = MANIFEST.labels.get(&found.label).unwrap_or(&found.label);
    PublishedOffer {
        site: None,
        sku: found.sku,
        instance_type: None,
        offer_label: Some(format!("{}x {model}", found.count)),
        region: None,
        zone: None,
        gpu: PublishedGpu {
            label: Some(found.label),
            count: Some(Ratio::from(found.count)),
            share: GpuShare::Whole,
            memory_gb: None,
            form_factor: None,
            interconnect: None,
            fabric_gbit_per_s: None,
        },
        machine: found.machine,
        terms: found.terms,
        price: PublishedPrice {
            amount: found.amount,
            upfront_amount: None,
            currency_code: MANIFEST.published().currency_code.clone(),
            unit: PriceUnit::Hour,
            per: found.per,
            text: found.text,
            tax_included: MANIFEST.published().tax_included,
            listings: None,
        },
        place: found.place,
        flags: BTreeSet::new(),
    }
}
