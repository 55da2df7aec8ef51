//! Crusoe Cloud's price page, <https://www.crusoe.ai/cloud/pricing>: prices of one GPU for an hour, in US dollars before tax.
//!
//! - Since the end of 2025 a row of headers stands above cards, and a card has a cell for each way of buying, in their order. A cell
//!   that says `Contact sales` keeps its place.
//! - Cards of processors, storage and tokens look the same. A price of a GPU ends in `/GPU-hr`.
//! - A100 stands twice or more: a card is its name and both tags, memory and form. `HGX` is the board of SXM cards.
//! - The class of a card is misspelt, and a part inside it has a class of its own: either is enough.
//! - Earlier the page had a table with the same columns and reservations of 6, 12 and 36 months; there a price ends in `/hr`.
//! - Neither says where a machine stands or how many GPUs it has.

use std::sync::LazyLock;

use scraper::{ElementRef, Html};

use crate::contract::{
    Page, Parsed, Place, PricingModel, PublishedGpu, PublishedOffer, PublishedPrice, ScrapeError, Scraper, SkipReason, Terms,
};
use crate::grid::{self, Grid, is_blank};
use crate::manifest::Manifest;
use crate::plain::{MACHINE_NOT_STATED, number};
use crate::spot::{self, Piece, Spot};
use crate::{cut, html};

#[cfg(test)]
mod oracles;
#[cfg(test)]
mod tests;

/// The source.
pub struct Crusoe;

static MANIFEST: LazyLock<Manifest> =
    LazyLock::new(|| Manifest::parse(include_str!("manifest.toml")).expect("the manifest beside this file reads"));

const MODEL: &str = "GPU model";
/// How a price on a card says that it is of a GPU.
const UNIT: &str = "/GPU-hr";
/// How a price in a table says that it is of an hour.
const UNIT_IN_TABLES: &str = "/hr";
/// Words in the units of what is no GPU.
const OTHER_UNITS: [&str; 4] = ["vCPU", "GB", "GiB", "token"];
const NOT_GPUS: &str = "not a price of GPUs";

impl Scraper for Crusoe {
    fn manifest(&self) -> &'static Manifest {
        &MANIFEST
    }

    fn spots(&self, _: &[Page], place: &Place, _: Option<&str>, text: &str) -> Vec<Spot> {
        // Sign, number and unit may be elements of their own.
        let printed = text.trim_matches(|letter: char| !letter.is_ascii_digit()).to_owned();
        vec![Spot { place: place.clone(), gives: "price".to_owned(), printed: vec![printed] }]
    }

    fn pieces(&self, page: &Page, at: &str) -> Option<Vec<Piece>> {
        let document = html::document(page).ok()?;
        let Some(index) = spot::index(at, "card") else { return grid::pieces(page, &document, &tables(&document), at) };
        let (heading, card) = cards(&document).into_iter().nth(index)?;
        Some(cut::rows(page.text().ok()?, &document, heading, card))
    }

    fn parse(&self, pages: &[Page]) -> Result<Parsed, ScrapeError> {
        let mut parsed = Parsed::default();
        for page in pages {
            read_page(page, &mut parsed)?;
        }
        let key = |offer: &PublishedOffer| (offer.offer_label.clone(), offer.terms.pricing_model, offer.terms.commitment_months);
        Ok(parsed.with_one_price_each(key))
    }
}

fn read_page(page: &Page, parsed: &mut Parsed) -> Result<(), ScrapeError> {
    html::ends(page)?;
    let document = html::document(page)?;
    let mut gpus = 0_usize;
    for (index, (heading, card)) in cards(&document).into_iter().enumerate() {
        let headers = heading.map(headers).unwrap_or_default();
        if is_of_gpus(&headers) {
            gpus += usize::from(read_card(page, &format!("card {}", index + 1), &headers, card, parsed)?);
        } else if html::visible_text(card).contains(UNIT) {
            let found = format!("`{}`", headers.join("`, `"));
            return Err(ScrapeError::changed(
                page,
                format!("headers above card {}", index + 1),
                format!("`{MODEL}` first"),
                found,
            ));
        } else {
            parsed.leave_out(NOT_GPUS);
        }
    }
    let tables = tables(&document);
    match (gpus, tables.is_empty()) {
        (0, true) => Err(nothing(page, &document)),
        (0, false) => tables.iter().try_for_each(|(name, rows)| read_table(page, name, rows, parsed)),
        (_, true) => Ok(()),
        (_, false) => Err(ScrapeError::changed(page, tables[0].0.as_str(), "cards or a table of GPUs", "both")),
    }
}

/// Why a page without a card or table of GPUs is refused.
fn nothing(page: &Page, document: &Html) -> ScrapeError {
    let headings: Vec<_> = document.select(&html::selector(".pricing-table-heading")).map(headers).collect();
    if headings.iter().any(|headers| is_of_gpus(headers)) {
        return ScrapeError::NothingFound { page: page.name.clone(), at: format!("the cards below `{MODEL}`") };
    }
    let found = headings.first().map_or("none".to_owned(), |headers| format!("`{}`", headers.join("`, `")));
    ScrapeError::changed(page, "`.pricing-table-heading`", format!("`{MODEL}` above cards, or a table of GPUs"), found)
}

fn is_of_gpus(headers: &[String]) -> bool {
    headers.len() > 1 && headers[0].eq_ignore_ascii_case(MODEL)
}

/// The cards of the page, each with the row of headers above it.
fn cards(document: &Html) -> Vec<(Option<ElementRef<'_>>, ElementRef<'_>)> {
    let has = |part: ElementRef<'_>, name: &str| part.value().classes().any(|class| class == name);
    let is_card = |part: ElementRef<'_>| has(part, "prixing-item") || has(part, "pricing_gpu-item");
    let (mut heading, mut cards) = (None, Vec::new());
    let parts = html::selector(".pricing-table-heading, .prixing-item, .pricing_gpu-item");
    for part in document.select(&parts).filter(|part| html::is_seen(*part)) {
        if has(part, "pricing-table-heading") {
            heading = Some(part);
        } else if !part.ancestors().filter_map(ElementRef::wrap).any(is_card) {
            cards.push((heading, part));
        }
    }
    cards
}

fn headers(heading: ElementRef<'_>) -> Vec<String> {
    texts(heading, ".pricing-heading")
}

/// The texts of the parts that a person sees, in their order.
fn texts(from: ElementRef<'_>, css: &'static str) -> Vec<String> {
    from.select(&html::selector(css)).filter(|part| html::is_seen(*part)).map(html::visible_text).collect()
}

/// Reads a card below the headers of GPUs, and says whether it is one of a GPU.
fn read_card(page: &Page, at: &str, headers: &[String], card: ElementRef<'_>, parsed: &mut Parsed) -> Result<bool, ScrapeError> {
    let cells = texts(card, ".pricing-rich");
    let is_of_something_else = |cell: &String| cell.split_once('/').is_some_and(|(_, unit)| is_other(unit));
    if cells.iter().any(is_of_something_else) && !cells.iter().any(|cell| cell.contains(UNIT)) {
        parsed.leave_out(NOT_GPUS);
        return Ok(false);
    }
    let place = |at: String| Place { page: page.name.clone(), at };
    let ways = headers.len() - 1;
    let counted = (cells.len() == ways).then_some(cells.iter());
    let doubt = || SkipReason::Contradiction(format!("{} prices under {ways} ways of buying", cells.len()));
    match gpu(card).and_then(|gpu| Ok((gpu, counted.ok_or_else(doubt)?))) {
        Err(reason) => {
            // Not one of its prices is known, which is one row that was not understood.
            headers.iter().skip(1).try_for_each(|header| known_terms(page, header).map(|_| ()))?;
            parsed.take(texts(card, ".pricing-item-heading").join(" "), place(at.to_owned()), Err(reason));
        }
        Ok(((label, gpu), cells)) => {
            for (header, cell) in headers.iter().skip(1).zip(cells) {
                let (terms, place) = (known_terms(page, header)?, place(format!("{at}, `{header}`")));
                parsed.take(label.as_str(), place.clone(), offer(&label, gpu.clone(), cell, UNIT, terms, place));
            }
        }
    }
    Ok(true)
}

fn is_other(unit: &str) -> bool {
    OTHER_UNITS.iter().any(|other| unit.contains(other))
}

/// A card's GPU, and its name with both tags.
fn gpu(card: ElementRef<'_>) -> Result<(String, PublishedGpu), SkipReason> {
    let missing = |field: &str| SkipReason::FieldMissing { field: field.to_owned() };
    let names = texts(card, ".pricing-item-heading");
    let [name] = &names[..] else { return Err(missing("name of the card")) };
    let tags: Vec<_> = texts(card, ".pricing-tag").into_iter().filter(|tag| !tag.is_empty()).collect();
    let (memory, form) = match &tags[..] {
        [memory] => (memory, None),
        [memory, form] => (memory, Some(form)),
        [] => return Err(missing("tag of the memory")),
        _ => return Err(SkipReason::Contradiction(format!("{} tags", tags.len()))),
    };
    let size = memory.strip_suffix("GB").ok_or_else(|| SkipReason::unreadable("tag of the memory", "a number of GB", memory))?;
    let form_factor = match form.map(String::as_str) {
        None => None,
        Some("HGX") => Some("SXM"),
        Some(known @ ("SXM" | "PCIe" | "NVL72")) => Some(known),
        Some(other) => return Err(SkipReason::UnknownWord { what: "form of a card", word: other.to_owned() }),
    };
    let gpu = PublishedGpu {
        form_factor: form_factor.map(str::to_owned),
        ..PublishedGpu::plain(name.as_str(), 1).of_memory(number(size.trim(), "tag of the memory")?)
    };
    let words = [Some(name), Some(memory), form];
    Ok((words.into_iter().flatten().map(String::as_str).collect::<Vec<_>>().join(" "), gpu))
}

/// The tables of GPUs and their prices, each with its name and its rows.
fn tables(document: &Html) -> Vec<(String, Vec<ElementRef<'_>>)> {
    let (table, row) = (html::selector("table"), html::selector("tr"));
    let is_priced = |rows: &[ElementRef<'_>]| {
        let headers = rows.first().map(|row| texts(*row, "th, td")).unwrap_or_default();
        let is_of_gpus = headers.first().is_some_and(|header| header.to_lowercase().contains("gpu"));
        is_of_gpus && headers.iter().any(|header| terms(header).is_some())
    };
    let seen = document.select(&table).filter(|table| html::is_seen(*table));
    let named = seen.enumerate().map(|(index, table)| {
        let rows: Vec<_> = table.select(&row).filter(|row| html::is_seen(*row)).collect();
        (format!("table {}", index + 1), rows)
    });
    named.filter(|(_, rows)| is_priced(rows)).collect()
}

fn read_table(page: &Page, name: &str, rows: &[ElementRef<'_>], parsed: &mut Parsed) -> Result<(), ScrapeError> {
    let grid = Grid::of(page, name, rows, "th, td")?;
    for (index, header) in grid.headers().iter().enumerate().skip(1) {
        let terms = known_terms(page, header)?;
        for row in grid.rows() {
            let (label, place) = (row.label(), row.place(index));
            let read = row
                .cell(index)
                .and_then(|cell| offer(label, PublishedGpu::plain(label, 1), cell, UNIT_IN_TABLES, terms.clone(), place.clone()));
            parsed.take(label, place, read);
        }
    }
    Ok(())
}

fn known_terms(page: &Page, header: &str) -> Result<Terms, ScrapeError> {
    let expected = "a way of buying, such as `On-demand`, `Current spot` or `1-year reserved`";
    terms(header).ok_or_else(|| ScrapeError::changed(page, "headers above the prices of GPUs", expected, format!("`{header}`")))
}

/// What a column is: on demand, spot, or reserved for some months.
fn terms(header: &str) -> Option<Terms> {
    let header = header.to_lowercase();
    let words: Vec<_> =
        header.split(|letter: char| letter.is_whitespace() || letter == '-').filter(|word| !word.is_empty()).collect();
    let (number, unit) = match words[..] {
        ["on", "demand"] => return Some(Terms::of(PricingModel::OnDemand)),
        ["spot"] | ["current", "spot"] => return Some(Terms::of(PricingModel::Spot)),
        [number, unit] | [number, unit, "reserved"] | ["reserved", number, unit] => (number.parse::<u32>().ok()?, unit),
        _ => return None,
    };
    let months = match unit {
        "month" | "months" => number,
        "year" | "years" => number.checked_mul(12)?,
        _ => return None,
    };
    let months = Some(months).filter(|months| (1..=60).contains(months))?;
    Some(Terms { commitment_months: Some(months), ..Terms::of(PricingModel::Reserved) })
}

fn offer(
    label: &str,
    gpu: PublishedGpu,
    cell: &str,
    unit: &'static str,
    terms: Terms,
    place: Place,
) -> Result<PublishedOffer, SkipReason> {
    if !cell.is_empty() && is_blank(cell) {
        return Err(SkipReason::OutOfScope("not sold this way, by a dash"));
    }
    let price = PublishedPrice::dollars(&MANIFEST, cell, &[unit]);
    if cell.ends_with(unit) {
        return Ok(PublishedOffer::plain(gpu, terms, price?, place).called(label).marked(MACHINE_NOT_STATED));
    }
    match price {
        Ok(_) | Err(SkipReason::PriceUnreadable { .. }) => {
            Err(SkipReason::UnknownWord { what: "unit of a price", word: cell.to_owned() })
        }
        Err(reason) => Err(reason),
    }
}
