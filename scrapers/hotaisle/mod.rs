//! Hot Aisle's price page, <https://hotaisle.xyz/pricing/>: prices of one GPU for an hour, in US dollars before tax.
//!
//! - A card says `VM Small – 1x MI300x – $2.99/GPU/hr`, and may be of several sizes: `2x/4x`. Class names say nothing, so a card is
//!   the innermost element that has the GPU and the unit.
//! - A card of bare metal adds `(1 month minimum)`: a machine for a term of a month, and dearer than a virtual machine.
//! - The text around the cards names rates of older customers. A text that does not begin as a card does is not read.

use std::sync::LazyLock;

use scraper::{ElementRef, Html};

use crate::contract::{
    Page, Parsed, Place, PricingModel, PublishedGpu, PublishedOffer, PublishedPrice, ScrapeError, Scraper, SkipReason, Terms,
};
use crate::manifest::Manifest;
use crate::spot::{self, Piece};
use crate::{cut, html, json};

#[cfg(test)]
mod tests;

/// The source.
pub struct Hotaisle;

static MANIFEST: LazyLock<Manifest> =
    LazyLock::new(|| Manifest::parse(include_str!("manifest.toml")).expect("the manifest beside this file reads"));

/// The only site, which the page does not name.
const REGION: &str = "us-michigan-1";
const UNIT: &str = "/GPU/hr";
const VIRTUAL: &str = "VM ";
const METAL: &str = "Bare metal ";
const MONTH: &str = "(1 month minimum)";

/// What a card says.
#[derive(Debug, PartialEq, Eq)]
struct Card<'a> {
    name: &'a str,
    counts: Vec<u32>,
    gpu: &'a str,
    price: &'a str,
    note: &'a str,
}

impl Scraper for Hotaisle {
    fn manifest(&self) -> &'static Manifest {
        &MANIFEST
    }

    fn pieces(&self, page: &Page, at: &str) -> Option<Vec<Piece>> {
        let document = html::document(page).ok()?;
        let (card, _) = priced(&document).into_iter().filter(|(_, text)| is_card(text)).nth(spot::index(at, "card")?)?;
        Some(vec![cut::element("card", page.text().ok()?, &document, card)])
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
    let mut found = 0_usize;
    for (_, text) in priced(&document) {
        if !is_card(&text) {
            parsed.leave_out("a price in a text");
            continue;
        }
        found += 1;
        let place = Place { page: page.name.clone(), at: format!("card {found}, {}", json::start_of(&text)) };
        match card(&text) {
            Ok(card) => {
                for count in &card.counts {
                    let label = format!("{} {count}x {}", card.name, card.gpu);
                    parsed.take(label.clone(), place.clone(), offer(&card, *count, &label, place.clone()));
                }
            }
            Err(reason) => parsed.take(text.as_str(), place, Err(reason)),
        }
    }
    if found == 0 {
        return Err(ScrapeError::changed(page, "cards", "an element such as `VM Small – 1x MI300x – $2.99/GPU/hr`", "none"));
    }
    Ok(())
}

/// The innermost elements with a GPU and a price, and their texts.
fn priced(document: &Html) -> Vec<(ElementRef<'_>, String)> {
    html::innermost(document.root_element(), &["MI", "x ", UNIT])
}

fn is_card(text: &str) -> bool {
    text.starts_with(VIRTUAL) || text.starts_with(METAL)
}

/// Cuts a card: name, sizes, GPU, price, note. Dashes and line breaks between them are all the same.
fn card(text: &str) -> Result<Card<'_>, SkipReason> {
    let unreadable = || SkipReason::unreadable("card", "a name, `1x`, a GPU and a price", text);
    let (front, note) = text.split_once(UNIT).ok_or_else(unreadable)?;
    let (front, price) = front.trim_end().rsplit_once(' ').ok_or_else(unreadable)?;
    let is_between = |letter: char| letter.is_whitespace() || matches!(letter, '-' | '–' | '—' | '·');
    let (front, gpu) = front.trim_end_matches(is_between).rsplit_once(' ').ok_or_else(unreadable)?;
    let (name, sizes) = front.trim_end_matches(is_between).rsplit_once(' ').ok_or_else(unreadable)?;
    let count = |size: &str| size.strip_suffix('x')?.parse::<u32>().ok().filter(|count| *count > 0);
    let counts = sizes.split('/').map(count).collect::<Option<Vec<_>>>().ok_or_else(unreadable)?;
    Ok(Card { name: name.trim_end_matches(is_between), counts, gpu, price, note: note.trim() })
}

fn offer(card: &Card<'_>, count: u32, label: &str, place: Place) -> Result<PublishedOffer, SkipReason> {
    let is_metal = card.name.starts_with(METAL.trim_end());
    let terms = match card.note {
        "" => Terms::of(PricingModel::OnDemand),
        MONTH => Terms { commitment_months: Some(1), ..Terms::of(PricingModel::Subscription) },
        other => return Err(SkipReason::UnknownWord { what: "note on a price", word: other.to_owned() }),
    };
    let price = PublishedPrice::dollars(&MANIFEST, card.price, &[])?;
    let mut offer = PublishedOffer::plain(PublishedGpu::plain(card.gpu, count), terms, price, place).called(label);
    offer.region = Some(REGION.to_owned());
    offer.machine.is_bare_metal = Some(is_metal);
    Ok(offer)
}
