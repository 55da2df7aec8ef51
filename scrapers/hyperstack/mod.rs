//! Hyperstack's price page, <https://www.hyperstack.cloud/gpu-pricing>, or the pricebook of its API: prices of one GPU for an
//! hour, in US dollars before tax.
//!
//! - The page has one card for each `h3`: on demand, reservations, spot, and machines without GPUs. Only the title tells them
//!   apart, because the last has the headers of the first.
//! - The card of spot prices may have two columns, the model and `Spot VM`; then it states no memory.
//! - Reservations have a column `Starting from`: floors, and no prices.
//! - A bare `H100` is a PCIe card, and so is one with NVLink.
//! - Processors and memory are the most that one GPU can have; which machines there are is not said.
//! - The pricebook is a bare list of names and amounts. Its offers have the names of the page, so that both are the same offers.
//! - The layout of 2024 is a table with two cards in one row, and is refused.

use std::sync::LazyLock;

use scraper::{ElementRef, Html};

use crate::contract::{
    Page, Parsed, Place, PricingModel, PublishedGpu, PublishedOffer, PublishedPrice, ScrapeError, Scraper, SkipReason, Terms,
};
use crate::grid::{self, Grid, Row};
use crate::html;
use crate::manifest::Manifest;
use crate::plain::{MACHINE_NOT_STATED, number};
use crate::spot::{self, Piece, Spot};

#[cfg(test)]
mod oracles;
mod pricebook;
#[cfg(test)]
mod tests;

/// The source.
pub struct Hyperstack;

static MANIFEST: LazyLock<Manifest> =
    LazyLock::new(|| Manifest::parse(include_str!("manifest.toml")).expect("the manifest beside this file reads"));

const ON_DEMAND: &str = "On-Demand GPU Pricing";
const SPOT: &str = "Spot VM Pricing";
const RESERVATION: &str = "Reservation Pricing";
const WITHOUT_GPUS: &str = "On-Demand CPU Pricing";
const MODEL: &str = "GPU Model";
const MEMORY: &str = "VRAM (GB)";
const PRICE: &str = "Pricing Per Hour";
const SPOT_PRICE: &str = "Spot VM";
const FLOOR: &str = "Starting from";

impl Scraper for Hyperstack {
    fn manifest(&self) -> &'static Manifest {
        &MANIFEST
    }

    fn spots(&self, _: &[Page], place: &Place, _: Option<&str>, text: &str) -> Vec<Spot> {
        // Any white space may stand between the dollar sign and the number.
        vec![spot::numbers(place, text)]
    }

    fn pieces(&self, page: &Page, at: &str) -> Option<Vec<Piece>> {
        if at.starts_with('/') {
            return spot::pieces(page, at);
        }
        let document = html::document(page).ok()?;
        let cards: Vec<_> = cards(page, &document).ok()?.into_iter().map(|(title, rows)| (name(&title), rows)).collect();
        grid::pieces(page, &document, &cards, at)
    }

    fn parse(&self, pages: &[Page]) -> Result<Parsed, ScrapeError> {
        let mut parsed = Parsed::default();
        for page in pages {
            if page.text()?.trim_start().starts_with('[') {
                pricebook::read(page, &mut parsed)?;
            } else {
                read_page(page, &mut parsed)?;
            }
        }
        Ok(parsed.with_one_price_each(|offer| (offer.offer_label.clone(), offer.terms.pricing_model)))
    }
}

fn read_page(page: &Page, parsed: &mut Parsed) -> Result<(), ScrapeError> {
    html::ends(page)?;
    let document = html::document(page)?;
    let mut titles = Vec::new();
    for (title, rows) in cards(page, &document)? {
        let grid = Grid::of(page, &name(&title), &rows, "[class*=page-price_card_row_item_col]")?;
        match title.as_str() {
            ON_DEMAND => {
                let columns = Columns { memory: Some(grid.column(MEMORY)?), price: grid.column(PRICE)? };
                read_card(&grid, columns, PricingModel::OnDemand, parsed)?;
            }
            SPOT => read_card(&grid, spot_columns(page, &grid)?, PricingModel::Spot, parsed)?,
            RESERVATION => {
                grid.column(FLOOR)?;
                grid.rows().for_each(|_| parsed.leave_out("a price from which reservations start"));
            }
            WITHOUT_GPUS => grid.rows().for_each(|_| parsed.leave_out("not a GPU machine")),
            _ => {
                return Err(ScrapeError::changed(
                    page,
                    "`h3` of a card",
                    format!("`{ON_DEMAND}`, `{SPOT}` or the like"),
                    format!("`{title}`"),
                ));
            }
        }
        titles.push(title);
    }
    for expected in [ON_DEMAND, SPOT] {
        let found = titles.iter().filter(|title| *title == expected).count();
        if found != 1 {
            return Err(ScrapeError::changed(page, "`h3` of the cards", format!("`{expected}` once"), format!("{found} times")));
        }
    }
    Ok(())
}

/// The cards of the page, each with its title and its rows.
fn cards<'a>(page: &Page, document: &'a Html) -> Result<Vec<(String, Vec<ElementRef<'a>>)>, ScrapeError> {
    let section = html::one(page, document.root_element(), "#cloud-pricing")?;
    let card = |card: ElementRef<'a>| {
        let title = html::visible_text(html::one(page, card, "h3")?);
        Ok((title, card.select(&html::selector(".page-price_card_row_item")).collect()))
    };
    html::some(page, section, ".page-price_card")?.into_iter().map(card).collect()
}

fn name(title: &str) -> String {
    format!("card `{title}`")
}

/// Where memory and price stand on a card.
#[derive(Debug, Clone, Copy)]
struct Columns {
    /// `None` on a card that does not state it.
    memory: Option<usize>,
    price: usize,
}

/// The columns of the card of spot prices, of which there are two layouts.
fn spot_columns(page: &Page, grid: &Grid) -> Result<Columns, ScrapeError> {
    let price = match (grid.optional(PRICE), grid.optional(SPOT_PRICE)) {
        (Some(price), None) | (None, Some(price)) => price,
        _ => {
            let found = format!("`{}`", grid.headers().join("`, `"));
            let expected = format!("`{PRICE}` or `{SPOT_PRICE}`, and not both");
            return Err(ScrapeError::changed(page, format!("header of {}", name(SPOT)), expected, found));
        }
    };
    // With more columns than model and price there is one of memory, perhaps under a new name.
    let memory = if grid.headers().len() == 2 { None } else { Some(grid.column(MEMORY)?) };
    Ok(Columns { memory, price })
}

fn read_card(grid: &Grid, columns: Columns, model: PricingModel, parsed: &mut Parsed) -> Result<(), ScrapeError> {
    grid.column(MODEL)?;
    for row in grid.rows() {
        parsed.take(row.label(), row.place(columns.price), page_offer(row, columns, model));
    }
    Ok(())
}

fn page_offer(row: Row<'_>, columns: Columns, model: PricingModel) -> Result<PublishedOffer, SkipReason> {
    let label = row.label();
    if label.contains('/') {
        return Err(SkipReason::Contradiction(format!("one row for two cards, `{label}`")));
    }
    let memory_gb = columns.memory.map(|memory| number(row.cell(memory)?, MEMORY)).transpose()?;
    let price = PublishedPrice::dollars(&MANIFEST, row.cell(columns.price)?, &[])?;
    let gpu = PublishedGpu { memory_gb, ..gpu(label) };
    let place = row.place(columns.price);
    Ok(PublishedOffer::plain(gpu, Terms::of(model), price, place).called(label).marked(MACHINE_NOT_STATED))
}

/// One card under its name on the page.
fn gpu(label: &str) -> PublishedGpu {
    let interconnect = label.ends_with(" NVLink").then(|| "NVLink bridge".to_owned());
    PublishedGpu { interconnect, ..PublishedGpu::plain(label, 1) }
}
