//! DigitalOcean's GPU Droplets, in US dollars before tax: the open page <https://www.digitalocean.com/pricing/gpu-droplets>, or
//! with a key the list <https://api.digitalocean.com/v2/sizes?per_page=500>.
//!
//! - The page prices **one card** for an hour, the list a **Droplet**.
//! - Both call the same Droplet the same: so many cards of a model. The slug is no part of it, for the page has not got it of
//!   every card: a link says `undefined`, and a card that is sold alone or by eight has one link.
//! - Memory of the cards is of all together in both.
//! - The list prices a size the same in every region; where it can be had says only whether it can be had.
//! - Paperspace is a brand of its own and is not here.

#[cfg(test)]
mod oracles;
mod page;
mod sizes;
mod slug;
#[cfg(test)]
mod tests;

use std::collections::BTreeSet;
use std::sync::LazyLock;

use num_rational::Ratio;
use rust_decimal::Decimal;

use crate::contract::{
    GpuShare, Machine, Page, PageRequest, Parsed, Place, PricePer, PriceUnit, PublishedGpu, PublishedOffer, PublishedPrice,
    ScrapeError, Scraper, Terms,
};
use crate::manifest::Manifest;
use crate::spot::{self, Piece};

/// The source.
pub struct Digitalocean;

static MANIFEST: LazyLock<Manifest> =
    LazyLock::new(|| Manifest::parse(include_str!("manifest.toml")).expect("the manifest beside this file reads"));

impl Scraper for Digitalocean {
    fn manifest(&self) -> &'static Manifest {
        &MANIFEST
    }

    fn scope(&self, page: &Page) -> Result<Option<String>, ScrapeError> {
        let is_markup = page.text()?.trim_start().starts_with('<');
        Ok(Some(if is_markup { "page" } else { "api" }.to_owned()))
    }

    fn follow(&self, page: &Page) -> Result<Vec<PageRequest>, ScrapeError> {
        if page.scope == "page" { Ok(Vec::new()) } else { sizes::follow(page) }
    }

    fn pieces(&self, page: &Page, at: &str) -> Option<Vec<Piece>> {
        if at.starts_with('/') {
            return spot::pieces(page, at);
        }
        page::pieces(page, at)
    }

    fn parse(&self, pages: &[Page]) -> Result<Parsed, ScrapeError> {
        let mut parsed = Parsed::default();
        let (open, list): (Vec<_>, Vec<_>) = pages.iter().partition(|page| page.scope == "page");
        for page in open {
            page::read(page, &mut parsed)?;
        }
        sizes::read(&list, &mut parsed)?;
        let key = |offer: &PublishedOffer| (offer.offer_label.clone(), offer.terms.pricing_model, offer.terms.plan.clone());
        Ok(parsed.with_one_price_each(key))
    }
}

/// What page and list say of one price.
struct Found {
    slug: Option<String>,
    label: String,
    count: u32,
    memory_gb: Option<Decimal>,
    machine: Machine,
    terms: Terms,
    amount: Decimal,
    text: String,
    per: PricePer,
    place: Place,
    flags: BTreeSet<&'static str>,
}

/// The offer, called by the card's canonical name where the manifest has the spelling, so that both sources call it the same.
fn offer(found: Found) -> PublishedOffer {
    let model = MANIFEST.labels.get(&found.label).unwrap_or(&found.label);
    PublishedOffer {
        site: None,
        sku: found.slug,
        instance_type: None,
        offer_label: Some(format!("{}x {model}", found.count)),
        region: None,
        zone: None,
        gpu: PublishedGpu {
            label: Some(found.label),
            count: Some(Ratio::from(found.count)),
            share: GpuShare::Whole,
            memory_gb: found.memory_gb,
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
        flags: found.flags,
    }
}

/// Decimal GB of a size in GiB.
fn gb(gib: Decimal) -> Decimal {
    (gib * Decimal::new(1_073_741_824, 9)).normalize()
}

fn changed(page: &Page, at: &str, expected: &str, found: &str) -> ScrapeError {
    ScrapeError::ShapeChanged {
        page: page.name.clone(),
        at: at.to_owned(),
        expected: expected.to_owned(),
        found: found.to_owned(),
    }
}
