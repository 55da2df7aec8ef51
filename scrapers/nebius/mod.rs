//! Nebius' price page, <https://nebius.com/prices>: prices of one GPU for an hour, in US dollars before tax.
//!
//! - A table stands below a title; the title `NVIDIA GPU Instances` has the prices on demand, and until 2026-07 also a column of
//!   preemptible ones, which have a table of their own since.
//! - Since 2026-09 two columns may stand side by side, one with the day from which it holds. The newest column that holds on the
//!   day of reading is read, whatever the order; a later one is announced and no price yet.
//! - `from $0.99` and `$0.74**` are floors and not prices. A dash keeps the column's place.
//! - The columns of processors and memory are shares of one GPU, and for L40S ranges that have been swapped between rows by
//!   mistake. Nothing hangs on them, and which machines there are is not said.
//! - The layout of 2024-11 had prices of whole machines in other elements and is refused.

use std::sync::LazyLock;

use chrono::NaiveDate;
use scraper::{ElementRef, Html};

use crate::contract::{
    Page, Parsed, PricingModel, PublishedGpu, PublishedOffer, PublishedPrice, ScrapeError, Scraper, SkipReason, Terms,
};
use crate::grid::{self, Grid, Row, is_blank};
use crate::html;
use crate::manifest::Manifest;
use crate::plain::MACHINE_NOT_STATED;
use crate::spot::Piece;

#[cfg(test)]
mod oracles;
#[cfg(test)]
mod tests;

/// The source.
pub struct Nebius;

static MANIFEST: LazyLock<Manifest> =
    LazyLock::new(|| Manifest::parse(include_str!("manifest.toml")).expect("the manifest beside this file reads"));

const ON_DEMAND: &str = "NVIDIA GPU Instances";
const PREEMPTIBLE: &str = "Preemptible NVIDIA GPU Instances";
const ITEM: &str = "Item";
/// Columns that are shares of one GPU.
const SHARES: [&str; 2] = ["vCPUs", "RAM, GB"];
/// What the header of every price says.
const PER: &str = "GPU-hour";

/// A column of prices.
struct PriceColumn {
    index: usize,
    model: PricingModel,
    valid_from: Option<NaiveDate>,
}

impl Scraper for Nebius {
    fn manifest(&self) -> &'static Manifest {
        &MANIFEST
    }

    fn pieces(&self, page: &Page, at: &str) -> Option<Vec<Piece>> {
        let document = html::document(page).ok()?;
        let tables: Vec<_> = tables(&document).into_iter().map(|(title, rows)| (name(&title), rows)).collect();
        grid::pieces(page, &document, &tables, at)
    }

    fn parse(&self, pages: &[Page]) -> Result<Parsed, ScrapeError> {
        let mut parsed = Parsed::default();
        for page in pages {
            read_page(page, &mut parsed)?;
        }
        Ok(parsed.with_one_price_each(|offer| (offer.offer_label.clone(), offer.terms.pricing_model)))
    }
}

fn read_page(page: &Page, parsed: &mut Parsed) -> Result<(), ScrapeError> {
    html::ends(page)?;
    let document = html::document(page)?;
    let mut models_found = Vec::new();
    for (title, rows) in tables(&document) {
        let grid = Grid::of(page, &name(&title), &rows, ".pc-highlight-table-block__cell")?;
        match title.as_str() {
            ON_DEMAND => models_found.extend(read_table(page, &grid, PricingModel::OnDemand, parsed)?),
            PREEMPTIBLE => models_found.extend(read_table(page, &grid, PricingModel::Spot, parsed)?),
            // Somebody has renamed a table, or there is a new one.
            _ if grid.headers().iter().any(|header| header.contains(PER)) => {
                return Err(ScrapeError::changed(
                    page,
                    "title of a table of GPU prices",
                    format!("`{ON_DEMAND}`"),
                    format!("`{title}`"),
                ));
            }
            _ => {}
        }
    }
    for (model, expected) in [(PricingModel::OnDemand, ON_DEMAND), (PricingModel::Spot, PREEMPTIBLE)] {
        if !models_found.contains(&model) {
            return Err(ScrapeError::changed(page, "titles and headers", format!("prices of `{expected}`"), "none"));
        }
    }
    Ok(())
}

/// The tables of the page, each with the title above it and its rows.
fn tables(document: &Html) -> Vec<(String, Vec<ElementRef<'_>>)> {
    let (mut title, mut tables) = (String::new(), Vec::new());
    for part in document.select(&html::selector("span.pc-title-item__text, .pc-highlight-table-block__content")) {
        if part.value().name() == "span" {
            title = html::visible_text(part);
        } else {
            tables.push((title.clone(), part.select(&html::selector(".pc-highlight-table-block__row")).collect()));
        }
    }
    tables
}

fn name(title: &str) -> String {
    format!("table `{title}`")
}

/// Reads a table, and says which ways of buying it has.
fn read_table(page: &Page, grid: &Grid, model: PricingModel, parsed: &mut Parsed) -> Result<Vec<PricingModel>, ScrapeError> {
    grid.column(ITEM)?;
    let columns = columns(page, grid, model)?;
    let today = page.observed_at.date_naive();
    let models: Vec<_> = columns.iter().map(|column| column.model).collect();
    for column in &columns {
        let holds = |other: &&PriceColumn| other.model == column.model && other.valid_from.is_none_or(|from| from <= today);
        let newest = columns.iter().filter(holds).max_by_key(|other| other.valid_from).map(|other| other.index);
        for row in grid.rows() {
            match newest {
                Some(newest) if newest == column.index => {
                    parsed.take(row.label(), row.place(column.index), offer(row, column));
                }
                _ if column.valid_from.is_some_and(|from| from > today) => parsed.leave_out("announced for a later day"),
                _ => parsed.leave_out("a newer column holds"),
            }
        }
    }
    Ok(models)
}

fn columns(page: &Page, grid: &Grid, model: PricingModel) -> Result<Vec<PriceColumn>, ScrapeError> {
    let mut columns = Vec::new();
    for (index, header) in grid.headers().iter().enumerate() {
        if header == ITEM || SHARES.contains(&header.as_str()) {
            continue;
        }
        // The star leads to a footnote on how the market price moves; prices that it touches have stars of their own.
        let (model, valid_from) = match (header.trim_end_matches('*'), model) {
            ("On-demand, GPU-hour", PricingModel::OnDemand) => (model, None),
            ("Preemptible, GPU-hour", _) | ("Spot price, GPU-hour", PricingModel::Spot) => (PricingModel::Spot, None),
            (dated, _) => match effective(dated) {
                Some(from) => (model, Some(from)),
                None => {
                    let expected = "a way of buying and `GPU-hour`, or a day from which prices hold";
                    return Err(ScrapeError::changed(page, "header of a column", expected, format!("`{header}`")));
                }
            },
        };
        let is_same = |other: &PriceColumn| (other.model, other.valid_from) == (model, valid_from);
        if columns.iter().any(is_same) {
            return Err(ScrapeError::changed(page, "header of a column", "each way of buying once", format!("`{header}` too")));
        }
        columns.push(PriceColumn { index, model, valid_from });
    }
    Ok(columns)
}

/// The day in `GPU-hour (Effective October 1, 2026)`.
fn effective(header: &str) -> Option<NaiveDate> {
    let day = header.strip_prefix(PER)?.trim().strip_prefix("(Effective ")?.strip_suffix(')')?;
    NaiveDate::parse_from_str(day, "%B %d, %Y").ok()
}

fn offer(row: Row<'_>, column: &PriceColumn) -> Result<PublishedOffer, SkipReason> {
    let text = row.cell(column.index)?;
    if is_blank(text) {
        return Err(SkipReason::OutOfScope("not sold this way, by a dash"));
    }
    let price = PublishedPrice::dollars(&MANIFEST, text, &[])?;
    let midnight = column.valid_from.and_then(|day| day.and_hms_opt(0, 0, 0));
    let terms = Terms { valid_from: midnight.map(|at| at.and_utc()), ..Terms::of(column.model) };
    let gpu = PublishedGpu::plain(row.label(), 1);
    Ok(PublishedOffer::plain(gpu, terms, price, row.place(column.index)).called(row.label()).marked(MACHINE_NOT_STATED))
}
