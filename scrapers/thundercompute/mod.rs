//! Thunder Compute's price page, <https://www.thundercompute.com/pricing>: prices of one GPU for an hour, in US dollars before tax.
//!
//! - A card says `H100 PCIe VRAM 80 GB vCPUs 4 GPU/hr (*) $3.19`; class names say nothing, so a card is the innermost element that
//!   has these words. The star is of the unit and leads to a footnote on what is included.
//! - Four processors are included, and some machines have at least eight: an offer carries the flag `processors_billed_apart` unless
//!   its card says `vCPUs 4 included`.
//! - The same GPU is sold in two modes at very different prices, `prototyping` and `production`, named by a heading. The mode is
//!   part of the offer; where the page names none, the offer says so.
//! - The page holds the prices again for search engines (JSON-LD), without the mode and sometimes older. They are never taken: a
//!   price that differs from its card marks the offer.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use rust_decimal::Decimal;
use scraper::{ElementRef, Html};

use crate::contract::{
    Page, Parsed, Place, PricingModel, PublishedGpu, PublishedOffer, PublishedPrice, ScrapeError, Scraper, SkipReason, Tenancy,
    Terms,
};
use crate::manifest::Manifest;
use crate::money;
use crate::plain::{PROCESSORS_BILLED_APART, number};
use crate::spot::{self, Piece};
use crate::{cut, html};

#[cfg(test)]
mod oracles;
#[cfg(test)]
mod tests;

/// The source.
pub struct Thundercompute;

static MANIFEST: LazyLock<Manifest> =
    LazyLock::new(|| Manifest::parse(include_str!("manifest.toml")).expect("the manifest beside this file reads"));

/// The only site, which the page does not name.
const REGION: &str = "ca-quebec";
/// Flag of an offer of a page that names no mode.
const MODE_NOT_STATED: &str = "mode_not_stated";
/// Flag of an offer for which the page's data for search engines has another price.
const DATA_DIFFERS: &str = "page_data_differs";
const MEMORY: &str = " VRAM ";
const UNIT: &str = "GPU/hr";

impl Scraper for Thundercompute {
    fn manifest(&self) -> &'static Manifest {
        &MANIFEST
    }

    fn pieces(&self, page: &Page, at: &str) -> Option<Vec<Piece>> {
        let document = html::document(page).ok()?;
        let (card, _) = cards(&document).into_iter().nth(spot::index(at, "card")?)?;
        Some(vec![cut::element("card", page.text().ok()?, &document, card)])
    }

    fn parse(&self, pages: &[Page]) -> Result<Parsed, ScrapeError> {
        let mut parsed = Parsed::default();
        for page in pages {
            read_page(page, &mut parsed)?;
        }
        Ok(parsed.with_one_price_each(|offer| (offer.offer_label.clone(), offer.terms.plan.clone())))
    }
}

fn read_page(page: &Page, parsed: &mut Parsed) -> Result<(), ScrapeError> {
    html::ends(page)?;
    let document = html::document(page)?;
    let data = data(page, &document)?;
    let cards = cards(&document);
    if cards.is_empty() {
        return Err(ScrapeError::changed(page, "cards", "an element such as `H100 PCIe VRAM 80 GB … GPU/hr (*) $3.19`", "none"));
    }
    let mut mode = None;
    let mut found = 0_usize;
    for element in document.select(&html::selector("*")) {
        if is_heading(element) {
            mode = mode_of(&html::visible_text(element)).or(mode.filter(|_| element.value().name() != "h2"));
        }
        let Some((_, text)) = cards.iter().find(|(card, _)| card.id() == element.id()) else { continue };
        found += 1;
        let place = Place { page: page.name.clone(), at: format!("card {found}, {}", mode.unwrap_or("no mode")) };
        parsed.take(text.split(MEMORY).next().unwrap_or_default(), place.clone(), offer(text, mode, &data, place));
    }
    Ok(())
}

/// The cards of the page, and their texts.
fn cards(document: &Html) -> Vec<(ElementRef<'_>, String)> {
    html::innermost(document.root_element(), &["VRAM", UNIT])
}

fn is_heading(element: ElementRef<'_>) -> bool {
    ["h1", "h2", "h3", "h4"].contains(&element.value().name())
}

fn mode_of(heading: &str) -> Option<&'static str> {
    let heading = heading.to_lowercase();
    let is = |mode: &&str| heading.contains(*mode);
    ["prototyping", "production"].into_iter().find(is)
}

fn offer(text: &str, mode: Option<&str>, data: &BTreeMap<String, Decimal>, place: Place) -> Result<PublishedOffer, SkipReason> {
    let (label, rest) = text.split_once(MEMORY).ok_or_else(|| SkipReason::FieldMissing { field: "VRAM".to_owned() })?;
    let memory = rest.split_once(" GB").ok_or_else(|| SkipReason::unreadable("VRAM", "a size in GB", rest))?.0;
    let memory_gb = number(memory, "VRAM")?;
    let (machine, printed) = rest.split_once(UNIT).ok_or_else(|| SkipReason::FieldMissing { field: UNIT.to_owned() })?;
    let price = PublishedPrice::dollars(&MANIFEST, printed.trim().trim_start_matches("(*)"), &[])?;
    let terms = Terms {
        plan: mode.map(str::to_owned),
        // GPUs for prototyping are lent over a network to several.
        tenancy: (mode == Some("prototyping")).then_some(Tenancy::Shared),
        ..Terms::of(PricingModel::OnDemand)
    };
    let differs = data.get(label).is_some_and(|amount| *amount != price.amount);
    let mut offer = PublishedOffer::plain(PublishedGpu::plain(label, 1).of_memory(memory_gb), terms, price, place).called(label);
    offer.region = Some(REGION.to_owned());
    let processors = processors(machine);
    offer.machine.vcpus = processors.count;
    if !processors.are_included {
        offer = offer.marked(PROCESSORS_BILLED_APART);
    }
    if mode.is_none() {
        offer = offer.marked(MODE_NOT_STATED);
    }
    Ok(if differs { offer.marked(DATA_DIFFERS) } else { offer })
}

/// What a card says of processors.
struct Processors {
    /// How many one GPU comes with; `None` where the card says it in other words or not at all.
    count: Option<Decimal>,
    /// Whether the card says that the price holds them.
    are_included: bool,
}

/// Reads `80 GB vCPUs 4`, the part of a card between memory and price.
fn processors(machine: &str) -> Processors {
    let said = machine.split_once("vCPUs ").map_or("", |(_, said)| said).trim();
    let bare = said.strip_suffix("(included)").or_else(|| said.strip_suffix("included"));
    let count = number(bare.unwrap_or(said).trim(), "vCPUs").ok().filter(|count| *count > Decimal::ZERO);
    Processors { count, are_included: bare.is_some() && count.is_some() }
}

/// Prices of the data for search engines, by the name of the card. What cannot be read is not there: nothing is published of it.
///
/// # Errors
/// When they are in another currency: then nobody knows of which the dollar signs of the cards are.
fn data(page: &Page, document: &Html) -> Result<BTreeMap<String, Decimal>, ScrapeError> {
    let mut prices = BTreeMap::new();
    for script in document.select(&html::selector("script[type='application/ld+json']")) {
        let text: String = script.text().collect();
        let Ok(value) = serde_json::from_str::<serde_json::Value>(&text) else { continue };
        let products = value.as_array().cloned().unwrap_or_else(|| vec![value]);
        for product in products.iter().filter(|product| product["@type"] == "Product") {
            if let Some(other) = product["offers"]["priceCurrency"].as_str().filter(|currency| *currency != "USD") {
                return Err(ScrapeError::changed(page, "currency of the data for search engines", "`USD`", format!("`{other}`")));
            }
            let name = product["name"].as_str().and_then(|name| name.strip_suffix(" GPU Cloud"));
            let price = product["offers"]["price"].as_str().and_then(money::decimal);
            prices.extend(name.map(str::to_owned).zip(price));
        }
    }
    Ok(prices)
}
