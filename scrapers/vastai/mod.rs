//! Vast.ai's marketplace, asked of <https://console.vast.ai/api/v0/bundles/>: what hosts want for their machines for an hour,
//! on demand and as spot, in US dollars. One offer for each card, number of cards, country and way of buying, at the middle
//! price of its listings.
//!
//! - A price is of the whole listing and not of one GPU. `dph_total` has a small disk in it, which nobody can rent without.
//! - The numbers of listings, machines and hosts are no identity: tomorrow the same machine is listed under others.
//! - Without a key an answer has the 64 cheapest listings and no more. So each card is asked for by name, and where an answer is
//!   full, the dearest as well. Where the two do not meet there are listings between them that nobody has seen, and the middle
//!   of the others would be a number of our own: the card is refused for that night. With a key one answer has all.
//! - Spot prices are the bids that win now (`min_bid`), of a question for spot: the answer itself never says which it is.
//! - A card's memory decides between forms of one name (`A100 SXM4`), and comes in MiB as drivers count them.
//! - Hosts that are not verified, or not reliable enough, are left out and counted, and so are machines that are taken.
//! - Amounts are binary fractions printed with all their digits, and are read to eleven: the ledger keeps twelve, and the mean
//!   of two takes one more than they have.

mod answer;
mod listing;
#[cfg(test)]
mod tests;

use std::collections::BTreeSet;
use std::sync::LazyLock;

use answer::{Answer, Asked, Part};

use crate::contract::{Method, Page, PageRequest, Parsed, Place, PricingModel, SCOPE_ALL, SCOPE_PART, ScrapeError, Scraper};
use crate::listings;
use crate::manifest::Manifest;
use crate::spot::Spot;

/// The source.
pub struct Vastai;

static MANIFEST: LazyLock<Manifest> =
    LazyLock::new(|| Manifest::parse(include_str!("manifest.toml")).expect("the manifest beside this file reads"));

const URL: &str = "https://console.vast.ai/api/v0/bundles/";

/// Spot prices of a card are complete or not by themselves.
const SPOT_PART: &str = "bid";

impl Scraper for Vastai {
    fn manifest(&self) -> &'static Manifest {
        &MANIFEST
    }

    /// A full answer leads to the dearest of the same question, and the question on demand to the same for spot.
    fn follow(&self, page: &Page) -> Result<Vec<PageRequest>, ScrapeError> {
        let answer = Answer::of(page)?;
        let Asked { model, part, .. } = answer.asked;
        let card = card(&page.scope).unwrap_or(answer.asked.card);
        let mut requests = Vec::new();
        if part == Part::Cheapest && answer.is_full() {
            requests.push(request(card, model, Part::Dearest));
        }
        if model == PricingModel::OnDemand && part != Part::Dearest {
            requests.push(request(card, PricingModel::Spot, part));
        }
        Ok(requests)
    }

    fn scope(&self, page: &Page) -> Result<Option<String>, ScrapeError> {
        let answer = Answer::of(page)?;
        let mut cards = BTreeSet::new();
        for row in &answer.rows {
            if let Ok(name) = row.object().and_then(|row| row.text("gpu_name").map(|name| name.into_owned())) {
                cards.insert(name);
            }
        }
        Ok(if cards.len() == 1 { cards.pop_first().map(|card| scope_of(&card, answer.asked.model)) } else { None })
    }

    fn spots(&self, pages: &[Page], place: &Place, _: Option<&str>, _: &str) -> Vec<Spot> {
        let Ok(listings) = read(pages) else { return Vec::new() };
        let behind = listings::behind(&listings.offers, place);
        let spot = |(index, listing): (usize, &&crate::contract::PublishedOffer)| Spot {
            place: listing.place.clone(),
            gives: format!("listing {} of {}", index + 1, behind.len()),
            printed: vec![listing.price.text.clone()],
        };
        behind.iter().enumerate().map(spot).collect()
    }

    fn parse(&self, pages: &[Page]) -> Result<Parsed, ScrapeError> {
        let mut parsed = read(pages)?;
        let (offers, skipped) = listings::together(std::mem::take(&mut parsed.offers));
        parsed.offers = offers;
        parsed.skipped.extend(skipped);
        Ok(parsed)
    }
}

/// Every listing of the pages once, once it is known that there are no others.
fn read(pages: &[Page]) -> Result<Parsed, ScrapeError> {
    let mut answers = pages.iter().map(Answer::of).collect::<Result<Vec<_>, _>>()?;
    // Of a listing on two pages the same is kept in any order of them.
    answers.sort_by(|a, b| a.page.name.cmp(&b.page.name));
    answer::are_all_there_is(&answers)?;
    let mut parsed = Parsed::default();
    for answer in &answers {
        for row in &answer.rows {
            listing::take(row, answer.asked.model, card(&answer.page.scope), &mut parsed);
        }
    }
    let mut parsed = parsed.with_one_price_each(|listing| (listing.sku.clone(), listing.terms.pricing_model));
    for listing in &mut parsed.offers {
        listing.sku = None;
    }
    Ok(parsed)
}

/// The card that pages of a scope were asked for; `None` for pages of several.
fn card(scope: &str) -> Option<&str> {
    let card = scope.split(SCOPE_PART).next().unwrap_or(scope);
    (card != SCOPE_ALL).then_some(card)
}

fn scope_of(card: &str, model: PricingModel) -> String {
    if model == PricingModel::Spot { format!("{card}{SCOPE_PART}{SPOT_PART}") } else { card.to_owned() }
}

/// A question for one card. It is the body itself: wrapped into a `q` it is refused.
fn request(card: &str, model: PricingModel, part: Part) -> PageRequest {
    let asked = Asked { model, part, card };
    let body = serde_json::json!({
        "rentable": {"eq": true},
        "verified": {"eq": true},
        "gpu_name": {"in": [card]},
        "type": if model == PricingModel::Spot { "bid" } else { "on-demand" },
        "order": [["dph_total", if part == Part::Dearest { "desc" } else { "asc" }]],
        "limit": part.listings_max(),
    });
    PageRequest {
        method: Method::Post,
        body: Some(body.to_string()),
        with_key: part == Part::All,
        ..PageRequest::get(asked.page_name(), scope_of(card, model), URL)
    }
}
