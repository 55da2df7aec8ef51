//! Modal's price page, <https://modal.com/pricing>: prices of one GPU for a second, in US dollars before tax.
//!
//! - A price is a list item such as `Nvidia H100 $0.001097 / sec`. Class names say nothing, so an item is known by its text.
//! - Containers are billed by the second and share machines: a price is of the GPU alone, and the processors and memory beside it
//!   are items of their own (`/ core / sec`, `/ GiB / sec`), in three sets for three products.
//! - A switch shows the same prices for an hour, rounded. Those are never read.
//! - A container may be taken away, unless it pays three times as much; and a region that is asked for costs more. Both are
//!   factors in other pages and prose, and no prices.

use std::sync::LazyLock;

use scraper::{ElementRef, Html};

use crate::contract::{
    Page, Parsed, Place, PricingModel, PublishedGpu, PublishedOffer, PublishedPrice, ScrapeError, Scraper, SkipReason, Terms,
};
use crate::manifest::Manifest;
use crate::plain::GPU_PART_ONLY;
use crate::spot::{self, Piece};
use crate::{cut, html, json};

#[cfg(test)]
mod oracles;
#[cfg(test)]
mod tests;

/// The source.
pub struct Modal;

static MANIFEST: LazyLock<Manifest> =
    LazyLock::new(|| Manifest::parse(include_str!("manifest.toml")).expect("the manifest beside this file reads"));

/// Flag of an offer that can be taken away although it is the plain one.
const PREEMPTIBLE_BY_DEFAULT: &str = "preemptible_by_default";
/// How a price of one GPU ends.
const PER_SECOND: &str = " / sec";
/// How the rounded view of an hour ends.
const HOURLY: [&str; 3] = [" / h", " / hr", " / hour"];
/// How a place begins.
const ITEM: &str = "list item";
/// How the name of a card begins.
const MAKER: &str = "Nvidia ";

impl Scraper for Modal {
    fn manifest(&self) -> &'static Manifest {
        &MANIFEST
    }

    fn pieces(&self, page: &Page, at: &str) -> Option<Vec<Piece>> {
        let document = html::document(page).ok()?;
        let item = items(&document).into_iter().nth(spot::index(at, ITEM)?)?;
        Some(vec![cut::element("item", page.text().ok()?, &document, item)])
    }

    fn parse(&self, pages: &[Page]) -> Result<Parsed, ScrapeError> {
        let mut parsed = Parsed::default();
        for page in pages {
            read_page(page, &mut parsed)?;
        }
        Ok(parsed.with_one_price_each(|offer| offer.offer_label.clone()))
    }
}

fn read_page(page: &Page, parsed: &mut Parsed) -> Result<(), ScrapeError> {
    html::ends(page)?;
    let document = html::document(page)?;
    let mut priced = 0_usize;
    for (index, found) in items(&document).into_iter().enumerate() {
        let text = html::visible_text(found);
        let (label, price) = text.split_at(text.find(['$', '€', '£', '¥']).unwrap_or(text.len()));
        let label = label.trim();
        let place = Place {
            page: page.name.clone(),
            at: format!("{ITEM} {} of those without items, {}", index + 1, json::start_of(label)),
        };
        let is_card = label.starts_with(MAKER);
        if let Some(amount) = price.strip_suffix(PER_SECOND) {
            if amount.contains('/') {
                parsed.leave_out("processors and memory, which are billed apart");
            } else {
                priced += 1;
                parsed.take(label, place.clone(), offer(label, price, place));
            }
        } else if is_card && price.is_empty() && label.to_lowercase().contains("contact") {
            parsed.take(label, place, Err(SkipReason::PriceOnRequest { text: label.to_owned() }));
        } else if is_card && !price.is_empty() && !HOURLY.iter().any(|ending| price.ends_with(ending)) {
            parsed.take(label, place, Err(SkipReason::UnknownWord { what: "unit", word: price.to_owned() }));
        } else if !price.is_empty() {
            parsed.leave_out("a price of something else, or the hourly view");
        }
    }
    if priced == 0 {
        return Err(ScrapeError::NothingFound {
            page: page.name.clone(),
            at: "list items such as `Nvidia H100 $0.001 / sec`".to_owned(),
        });
    }
    Ok(())
}

/// The items that a person sees and that hold no items, as a menu does: such are no prices.
fn items(document: &Html) -> Vec<ElementRef<'_>> {
    let item = html::selector("li");
    document.select(&item).filter(|found| found.select(&item).next().is_none() && html::is_seen(*found)).collect()
}

fn offer(label: &str, price: &str, place: Place) -> Result<PublishedOffer, SkipReason> {
    if label.is_empty() {
        return Err(SkipReason::FieldMissing { field: "name of the card".to_owned() });
    }
    let price = PublishedPrice::dollars(&MANIFEST, price, &[PER_SECOND])?;
    let terms = Terms { plan: Some("serverless".to_owned()), ..Terms::of(PricingModel::OnDemand) };
    let offer = PublishedOffer::plain(PublishedGpu::plain(label, 1), terms, price, place);
    Ok(offer.called(label).marked(GPU_PART_ONLY).marked(PREEMPTIBLE_BY_DEFAULT))
}
