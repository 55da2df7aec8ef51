//! The open page: a card in the layout for each GPU, with a price of one GPU and a list of sizes.
//!
//! - Class names end in a hash of the build; nothing is found by a whole class name.
//! - An old price stands struck out before the new one. Every other price is wrapped in the same `StyledStrikeThrough`, so the
//!   name alone strikes nothing: where there are two prices, the one outside of it counts, and the offer is marked.
//! - A reserved price is a floor, "as low as", to be asked of the sales team: it is no price.
//! - The slug stands in the link for signing up; one of the links says `undefined`. It has to say the same way of buying as the
//!   words below the price.

use std::collections::BTreeSet;

use rust_decimal::Decimal;
use scraper::ElementRef;

use super::{Found, changed, gb, offer, slug};
use crate::contract::{Machine, Page, Parsed, Place, PricePer, PricingModel, PublishedOffer, ScrapeError, SkipReason, Terms};
use crate::money::{self, NumberFormat};
use crate::spot::{self, Piece};
use crate::{cut, html};

const CARD: &str = "[class*=StyledCardPricingCard]";
const PRICES: &str = "[class*=StyledPriceContainer]";
const UNIT: &str = "/GPU/hour";
const COUNT: &str = "GPUs per Droplet";

/// Reads the page.
///
/// # Errors
/// When it is no markup, was cut off, has no cards of the layout, or none of them is sold on demand.
pub(super) fn read(page: &Page, parsed: &mut Parsed) -> Result<(), ScrapeError> {
    let document = html::document(page)?;
    let text = page.text()?.to_ascii_lowercase();
    let is_page = text.contains("<html") || text.contains("<!doctype");
    if is_page && !text.contains("</html>") {
        return Err(changed(page, "its end", "`</html>`", "a page that was cut off"));
    }
    let cards = html::some(page, document.root_element(), CARD)?;
    let before = parsed.offers.len();
    for (index, card) in cards.into_iter().enumerate() {
        let at = format!("card {}", index + 1);
        let name = html::visible_text(html::one(page, card, "h3")?);
        let price = html::one(page, card, PRICES)?;
        let place = Place { page: page.name.clone(), at };
        match offers(card, price, &name, &place) {
            Ok(offers) => offers.into_iter().for_each(|row| parsed.take(name.as_str(), place.clone(), row)),
            Err(reason) => parsed.take(name, place, Err(reason)),
        }
    }
    if parsed.offers.len() == before && parsed.skipped.iter().all(|row| row.reason.is_stated_by_source()) {
        return Err(ScrapeError::NothingFound { page: page.name.clone(), at: format!("`{CARD}`, on demand") });
    }
    Ok(())
}

/// The card that a place names.
pub(super) fn pieces(page: &Page, at: &str) -> Option<Vec<Piece>> {
    let document = html::document(page).ok()?;
    let card = document.select(&html::selector(CARD)).nth(spot::index(at, "card")?)?;
    Some(vec![cut::element("card", page.text().ok()?, &document, card)])
}

type Row = Result<PublishedOffer, SkipReason>;

/// One offer for each number of GPUs: `8`, or `1 or 8`.
fn offers(card: ElementRef<'_>, price: ElementRef<'_>, name: &str, place: &Place) -> Result<Vec<Row>, SkipReason> {
    let model = model(price)?;
    let (text, is_reduced) = price_text(price)?;
    let sizes = sizes(card)?;
    let said = sizes.iter().find(|(name, _)| name == COUNT).map(|(_, text)| text.as_str());
    let said = said.ok_or(SkipReason::FieldMissing { field: COUNT.to_owned() })?;
    let unknown = || SkipReason::UnknownWord { what: "number of GPUs", word: said.to_owned() };
    let counts: Vec<u32> =
        said.split(" or ").map(|count| count.trim().parse::<u32>()).collect::<Result<_, _>>().map_err(|_| unknown())?;
    if counts.is_empty() || counts.contains(&0) {
        return Err(unknown());
    }
    let amount = money::positive(money::printed(&text, NumberFormat::PointDecimal, &["$"])?, &text)?;
    let name_of_size = linked_slug(card);
    let plan = match &name_of_size {
        None => None,
        Some(name) => {
            let said = slug::read(name)?.terms;
            if said.pricing_model != model {
                return Err(SkipReason::Contradiction(format!("`{name}` under the words of another way of buying")));
            }
            said.plan
        }
    };
    let one = |count: &u32| -> Row {
        let count = *count;
        // Sizes and link are of the one number that the card is about; where there are several, nothing says of which.
        let is_only = counts.len() == 1;
        let (label, in_name) = label(name);
        if in_name.is_some_and(|in_name| in_name != count) {
            return Err(SkipReason::Contradiction(format!("`{name}` has {count} GPUs")));
        }
        let size = |wanted: &str, units: &[(&str, Decimal)]| -> Result<Option<Decimal>, SkipReason> {
            let found = sizes.iter().find(|(name, _)| is_only && name == wanted);
            found.map(|(_, text)| quantity(text, units)).transpose().map(Option::flatten)
        };
        let tib = Decimal::from(1024);
        let disk = [("GiB NVMe", Decimal::ONE), ("TiB NVMe", tib)];
        let (boot, scratch) = (size("Boot Disk", &disk)?, size("Scratch Disk", &disk)?);
        let memory = size("GPU Memory", &[("GB", Decimal::ONE)])?;
        Ok(offer(Found {
            slug: name_of_size.clone().filter(|_| is_only),
            label: label.to_owned(),
            count,
            memory_gb: memory.map(|total| (total / Decimal::from(count)).normalize()),
            machine: Machine {
                vcpus: size("Droplet vCPUs", &[("", Decimal::ONE)])?,
                system_memory_gib: size("Droplet Memory", &[("GiB", Decimal::ONE), ("TiB", tib)])?,
                local_disk_gb: boot.map(|boot| gb(boot + scratch.unwrap_or_default())),
                is_bare_metal: None,
            },
            terms: Terms { plan: plan.clone(), ..Terms::of(model) },
            amount,
            text: text.clone(),
            per: PricePer::Gpu,
            place: place.clone(),
            flags: if is_reduced { BTreeSet::from(["reduced_from_a_struck_out_price"]) } else { BTreeSet::new() },
        }))
    };
    Ok(counts.iter().map(one).collect())
}

/// How it is bought, as the words below the price say.
fn model(price: ElementRef<'_>) -> Result<PricingModel, SkipReason> {
    let words: Vec<_> = price.select(&html::selector("p")).map(html::visible_text).collect();
    match words.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["On-Demand Price"] => Ok(PricingModel::OnDemand),
        ["Spot Price"] => Ok(PricingModel::Spot),
        [words] if is_reserved(words) => {
            Err(SkipReason::PriceOnRequest { text: format!("{}, as low as", html::visible_text(price)) })
        }
        _ => Err(SkipReason::UnknownWord { what: "kind of price", word: words.join(", ") }),
    }
}

/// Whether the words are of a reserved price: `Reserved Price`, or `12 Month Reserved Price*` with a number of months.
fn is_reserved(words: &str) -> bool {
    let bare = words.strip_suffix('*').unwrap_or(words);
    let months = bare.strip_suffix(" Month Reserved Price");
    bare == "Reserved Price" || months.is_some_and(|months| months.parse::<u32>().is_ok_and(|months| months > 0))
}

/// The price that counts, and whether another is struck out beside it.
fn price_text(price: ElementRef<'_>) -> Result<(String, bool), SkipReason> {
    let mut groups = Vec::new();
    for group in price.child_elements().filter(|child| child.value().name() == "span") {
        let parts: Vec<_> = group.child_elements().map(html::visible_text).collect();
        let [amount, unit] = parts.as_slice() else {
            return Err(SkipReason::PriceUnreadable { text: html::visible_text(group) });
        };
        if unit.trim_end_matches('*') != UNIT {
            return Err(SkipReason::UnknownWord { what: "unit", word: unit.clone() });
        }
        let is_wrapped = group.attr("class").is_some_and(|class| class.contains("StyledStrikeThrough"));
        groups.push((amount.clone(), is_wrapped));
    }
    match groups.as_slice() {
        [] => Err(SkipReason::PriceMissing),
        [(amount, _)] => Ok((amount.clone(), false)),
        [(_, true), (amount, false)] => Ok((amount.clone(), true)),
        _ => {
            let amounts: Vec<_> = groups.iter().map(|(amount, _)| amount.as_str()).collect();
            Err(SkipReason::Contradiction(format!("nothing says which of {} counts", amounts.join(", "))))
        }
    }
}

/// The list of sizes: what, and how much.
fn sizes(card: ElementRef<'_>) -> Result<Vec<(String, String)>, SkipReason> {
    let mut sizes = Vec::new();
    for line in card.select(&html::selector("ul[class*=SpecList] li")) {
        let parts: Vec<_> = line.child_elements().map(html::visible_text).collect();
        let [what, how_much] = parts.as_slice() else {
            return Err(SkipReason::FieldUnreadable {
                field: "a size".to_owned(),
                expected: "a name and a quantity",
                found: html::visible_text(line),
            });
        };
        sizes.push((what.clone(), how_much.clone()));
    }
    Ok(sizes)
}

/// Card and number from `NVIDIA H100x8`.
fn label(name: &str) -> (&str, Option<u32>) {
    match name.rsplit_once('x').and_then(|(label, count)| Some((label, count.parse().ok()?))) {
        Some((label, count)) if label.ends_with(|c: char| c.is_ascii_alphanumeric()) => (label, Some(count)),
        _ => (name, None),
    }
}

/// The slug in the link for signing up.
fn linked_slug(card: ElementRef<'_>) -> Option<String> {
    let links: BTreeSet<_> = card
        .select(&html::selector("a[href]"))
        .filter_map(|link| link.attr("href"))
        .filter_map(|href| href.split("size%3D").nth(1))
        .map(|rest| rest.split(['&', '%']).next().unwrap_or(rest))
        .filter(|slug| slug.starts_with("gpu-"))
        .collect();
    (links.len() == 1).then(|| links.first().map(|slug| (*slug).to_owned())).flatten()
}

/// A number and its unit, `1,920 GiB`; `None` where nothing or a dash stands.
fn quantity(text: &str, factor_by_unit: &[(&str, Decimal)]) -> Result<Option<Decimal>, SkipReason> {
    let (number, unit) = text.split_once(' ').unwrap_or((text, ""));
    let amount = match money::printed(number, NumberFormat::PointDecimal, &[]) {
        Err(SkipReason::PriceMissing) => return Ok(None),
        amount => amount.map_err(|_| SkipReason::UnknownWord { what: "size", word: text.to_owned() })?,
    };
    match factor_by_unit.iter().find(|(known, _)| *known == unit) {
        Some((_, factor)) => Ok(Some((amount * factor).normalize())),
        None => Err(SkipReason::UnknownWord { what: "size", word: text.to_owned() }),
    }
}
