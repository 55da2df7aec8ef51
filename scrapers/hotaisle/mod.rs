//! Hot Aisle's price page, <https://hotaisle.xyz/pricing/>: prices of one GPU for an hour, in US dollars before tax.
//!
//! - A card says `VM Small – 1x MI300x – $2.99/GPU/hr`, and may be of several sizes: `2x/4x` or `2x & 4x`. Class names say nothing, so
//!   a card is the innermost element that has the GPU and the unit. Its name is `VM` or `Bare metal` and one word more.
//! - A card of bare metal says `1 month minimum`: a machine for a term of a month, and dearer than a virtual machine. One that does
//!   not say it is no price on demand.
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
mod oracles;
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
/// How a card says, in small letters, that it is for a month at least.
const MONTH: [&str; 4] = ["1 month minimum", "1-month minimum", "one-month minimum", "one month minimum"];

/// What a card says.
#[derive(Debug, PartialEq, Eq)]
struct Card {
    name: String,
    counts: Vec<u32>,
    gpu: String,
    price: String,
    is_for_a_month: bool,
    /// What else stands behind the price.
    note: String,
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

/// Whether a text begins as a card does, in letters of any size.
fn is_card(text: &str) -> bool {
    let begins = |with: &str| text.get(..with.len()).is_some_and(|start| start.eq_ignore_ascii_case(with));
    begins(VIRTUAL) || begins(METAL)
}

/// The text without the note of a month, and whether it had it. `11 month minimum` is another note.
fn without_month(text: &str) -> (String, bool) {
    let small = text.to_ascii_lowercase();
    let is_edge =
        |letter: Option<char>| letter.is_none_or(|letter| letter.is_whitespace() || matches!(letter, '(' | ')' | '.' | ','));
    for note in MONTH {
        for (start, _) in small.match_indices(note) {
            let (before, behind) = (&text[..start], &text[start + note.len()..]);
            if is_edge(before.chars().next_back()) && is_edge(behind.chars().next()) {
                let in_brackets = before.strip_suffix('(').zip(behind.strip_prefix(')'));
                let (before, behind) = in_brackets.unwrap_or((before, behind));
                return (format!("{before} {behind}").split_whitespace().collect::<Vec<_>>().join(" "), true);
            }
        }
    }
    (text.to_owned(), false)
}

/// Cuts a card: name, sizes, GPU, price, note. Dashes and line breaks between them are all the same.
fn card(text: &str) -> Result<Card, SkipReason> {
    let unreadable = || SkipReason::unreadable("card", "a name, `1x`, a GPU and a price", text);
    let (bare, is_for_a_month) = without_month(text);
    let is_between = |letter: char| letter.is_whitespace() || matches!(letter, '-' | '–' | '—' | '·');
    let (front, note) = bare.split_once(UNIT).ok_or_else(unreadable)?;
    let (front, price) = front.trim_end().rsplit_once(' ').ok_or_else(unreadable)?;
    let (front, gpu) = front.trim_end_matches(is_between).rsplit_once(' ').ok_or_else(unreadable)?;
    let kind = [VIRTUAL, METAL].into_iter().find(|kind| front.starts_with(kind)).ok_or_else(unreadable)?;
    let (class, sizes) = front[kind.len()..].split_once(' ').ok_or_else(unreadable)?;
    if class.is_empty() || !class.chars().all(char::is_alphabetic) {
        return Err(unreadable());
    }
    let count = |size: &str| size.trim().strip_suffix('x')?.parse::<u32>().ok().filter(|count| *count > 0);
    let sizes = sizes.trim_matches(is_between).split(['/', '&']);
    let counts = sizes.map(count).collect::<Option<Vec<_>>>().ok_or_else(unreadable)?;
    Ok(Card {
        name: format!("{kind}{class}"),
        counts,
        gpu: gpu.to_owned(),
        price: price.to_owned(),
        is_for_a_month,
        note: note.trim_matches(is_between).to_owned(),
    })
}

fn offer(card: &Card, count: u32, label: &str, place: Place) -> Result<PublishedOffer, SkipReason> {
    let is_metal = card.name.starts_with(METAL);
    let terms = match (card.note.as_str(), card.is_for_a_month) {
        ("", true) => Terms { commitment_months: Some(1), ..Terms::of(PricingModel::Subscription) },
        ("", false) if !is_metal => Terms::of(PricingModel::OnDemand),
        ("", false) => {
            return Err(SkipReason::UnknownWord { what: "term of bare metal", word: "none".to_owned() });
        }
        (other, _) => return Err(SkipReason::UnknownWord { what: "note on a price", word: other.to_owned() }),
    };
    let price = PublishedPrice::dollars(&MANIFEST, &card.price, &[])?;
    let mut offer = PublishedOffer::plain(PublishedGpu::plain(card.gpu.as_str(), count), terms, price, place).called(label);
    offer.region = Some(REGION.to_owned());
    offer.machine.is_bare_metal = Some(is_metal);
    Ok(offer)
}
