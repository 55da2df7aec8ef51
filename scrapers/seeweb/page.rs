//! The open page: one box for each card, with its price by the hour in four terms and the numbers it can be had in.

use scraper::ElementRef;

use super::{Found, offer};
use crate::contract::{Machine, Page, Parsed, Place, PricePer, PricingModel, ScrapeError, SkipReason, Terms};
use crate::money::{self, NumberFormat};
use crate::spot::{self, Piece};
use crate::{cut, html};

const BOX: &str = "div.cont-table.config div.cardType";
/// Class of a price and the months it is promised for.
const TERMS: [(&str, Option<u32>); 4] = [
    ("p.hourly span", None),
    ("p.hourly_3mnths span", Some(3)),
    ("p.hourly_6mnths span", Some(6)),
    ("p.hourly_12mnths span", Some(12)),
];

/// Reads the page.
///
/// # Errors
/// When it is no markup, was cut off, has no boxes, or a box lacks its name, its numbers or a place for a price.
pub(super) fn read(page: &Page, parsed: &mut Parsed) -> Result<(), ScrapeError> {
    let document = html::document(page)?;
    if !page.text()?.to_ascii_lowercase().contains("</html>") {
        return Err(changed(page, "its end", "`</html>`", "a page that was cut off"));
    }
    let boxes = html::some(page, document.root_element(), BOX)?;
    for (index, card) in boxes.into_iter().enumerate() {
        read_box(page, &format!("card {}", index + 1), card, parsed)?;
    }
    Ok(())
}

/// The box that a place names, and the price in it.
pub(super) fn pieces(page: &Page, at: &str) -> Option<Vec<Piece>> {
    let (text, document) = (page.text().ok()?, html::document(page).ok()?);
    let card = document.select(&html::selector(BOX)).nth(spot::index(at, "card")?)?;
    let (css, _) = TERMS.iter().find(|(css, _)| at.ends_with(&format!("`{css}`")))?;
    let price = html::one(page, card, css).ok()?;
    Some(vec![cut::element("card", text, &document, card), cut::element("price", text, &document, price)])
}

fn read_box(page: &Page, at: &str, card: ElementRef<'_>, parsed: &mut Parsed) -> Result<(), ScrapeError> {
    let label = html::visible_text(html::one(page, card, ".card-header .cardname")?);
    if label.is_empty() {
        return Err(changed(page, at, "the name of a card", "an empty text"));
    }
    let mut counts = Vec::new();
    for option in html::some(page, card, "select.gpu-params option")? {
        let text = html::visible_text(option);
        let count = text.parse::<u32>().ok().filter(|count| *count > 0);
        let count = count.ok_or_else(|| changed(page, at, "a number of cards", &format!("`{text}`")))?;
        if counts.contains(&count) {
            return Err(changed(page, at, "each number of cards once", &text));
        }
        counts.push(count);
    }
    // A term that a card is not sold for has an empty price; a page where no card has one is another page.
    for (css, months) in TERMS {
        let cell = html::one(page, card, css)?;
        let text = html::visible_text(cell);
        let place = Place { page: page.name.clone(), at: format!("{at}, `{css}`") };
        for count in &counts {
            let row = price(&text, months).map(|amount| {
                let mut terms = Terms::of(months.map_or(PricingModel::OnDemand, |_| PricingModel::Subscription));
                terms.commitment_months = months;
                offer(Found {
                    label: label.clone(),
                    count: *count,
                    sku: None,
                    machine: Machine::default(),
                    terms,
                    amount,
                    text: text.clone(),
                    per: PricePer::Gpu,
                    place: place.clone(),
                })
            });
            parsed.take(format!("{count}x {label}"), place.clone(), row);
        }
    }
    Ok(())
}

fn price(text: &str, months: Option<u32>) -> Result<rust_decimal::Decimal, SkipReason> {
    match money::printed(text, NumberFormat::PointDecimal, &["€"]) {
        Err(SkipReason::PriceMissing) if months.is_some() => Err(SkipReason::OutOfScope("not sold for this term")),
        amount => money::positive(amount?, text),
    }
}

fn changed(page: &Page, at: &str, expected: &str, found: &str) -> ScrapeError {
    ScrapeError::ShapeChanged {
        page: page.name.clone(),
        at: at.to_owned(),
        expected: expected.to_owned(),
        found: found.to_owned(),
    }
}
