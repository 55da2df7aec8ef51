//! Together AI's price page, <https://www.together.ai/pricing>: prices of one GPU for an hour, in US dollars before tax. Prices of
//! tokens stand in lists of the same look and are another product.
//!
//! - A list or table stands below the heading of its section, and its first row has the headers. One of GPUs begins with
//!   `Hardware`.
//! - The columns of `GPU Clusters` come and go: preemptible, on demand, and reservations for a number of days. Each is known by its
//!   header. A node of `HGX` has eight GPUs; of a rack such as `NVL72` the list
//!   does not say what can be rented. A reservation is paid in advance; its days are no whole months, so they are the offer's plan.
//! - Dedicated inference is a machine with a model server on it: a plan of its own.
//! - `/hr` stands in the cell or in the header; a number without it is no price of an hour.

use std::sync::LazyLock;

use scraper::{ElementRef, Html};

use crate::contract::{
    Page, Parsed, PricingModel, PublishedGpu, PublishedOffer, PublishedPrice, ScrapeError, Scraper, SkipReason, Terms, Upfront,
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
pub struct Together;

static MANIFEST: LazyLock<Manifest> =
    LazyLock::new(|| Manifest::parse(include_str!("manifest.toml")).expect("the manifest beside this file reads"));

const HARDWARE: &str = "Hardware";
/// A cell of a list, and of a table.
const CELL: &str = ".pricing_content-cell, th, td";
/// How a label says that its nodes are machines of eight GPUs.
const HGX: &str = "HGX";
const GPUS_OF_HGX: u32 = 8;
/// How a cell says that it is a price of an hour.
const ENDINGS: [&str; 4] = ["/hr", "/ hr", "/hour", "/ hour"];

/// What a list is of, told from the heading above it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Section {
    Clusters,
    Dedicated,
    Other,
}

impl Scraper for Together {
    fn manifest(&self) -> &'static Manifest {
        &MANIFEST
    }

    fn pieces(&self, page: &Page, at: &str) -> Option<Vec<Piece>> {
        let document = html::document(page).ok()?;
        let lists: Vec<_> = lists(&document).into_iter().map(|(heading, rows)| (name(&heading), rows)).collect();
        grid::pieces(page, &document, &lists, at)
    }

    fn parse(&self, pages: &[Page]) -> Result<Parsed, ScrapeError> {
        let mut parsed = Parsed::default();
        for page in pages {
            read_page(page, &mut parsed)?;
        }
        Ok(parsed.with_one_price_each(|offer| (offer.offer_label.clone(), offer.terms.pricing_model, offer.terms.plan.clone())))
    }
}

fn read_page(page: &Page, parsed: &mut Parsed) -> Result<(), ScrapeError> {
    html::ends(page)?;
    let document = html::document(page)?;
    let mut has_clusters = false;
    for (heading, rows) in lists(&document) {
        let section = section_of(&heading);
        if rows.is_empty() && section == Section::Other {
            continue;
        }
        let grid = Grid::of(page, &name(&heading), &rows, CELL);
        let is_hardware = rows.first().is_some_and(|row| begins_with_hardware(*row));
        let grid = match grid {
            // Of what else there is nobody needs to know the columns.
            Err(_) if section == Section::Other && !is_hardware => {
                rows.iter().for_each(|_| parsed.leave_out("not a price of GPUs"));
                continue;
            }
            grid => grid?,
        };
        match section {
            Section::Clusters => {
                has_clusters = true;
                read_clusters(page, &grid, parsed)?;
            }
            Section::Dedicated => read_dedicated(page, &grid, parsed)?,
            Section::Other if is_hardware => {
                let expected = "`GPU Clusters` or dedicated inference";
                return Err(ScrapeError::changed(page, "heading of a list of hardware", expected, format!("`{heading}`")));
            }
            Section::Other => grid.rows().for_each(|_| parsed.leave_out("not a price of GPUs")),
        }
    }
    if has_clusters {
        return Ok(());
    }
    Err(ScrapeError::changed(page, "headings", "a list below `GPU Clusters`", "none"))
}

/// The lists of the page, each with the heading above it and its rows.
fn lists(document: &Html) -> Vec<(String, Vec<ElementRef<'_>>)> {
    let (mut heading, mut lists) = (String::new(), Vec::new());
    let is_shown = |part: &ElementRef<'_>| html::is_seen(*part) && !is_in_hidden_twin(*part);
    for part in document.select(&html::selector("h1, h2, h3, h4, ul.pricing-list, table")).filter(is_shown) {
        match part.value().name() {
            "ul" => lists.push((heading.clone(), part.select(&html::selector("li.pricing_content-row")).collect())),
            "table" => lists.push((heading.clone(), part.select(&html::selector("tr")).collect())),
            _ => heading = html::visible_text(part),
        }
    }
    lists
}

fn begins_with_hardware(row: ElementRef<'_>) -> bool {
    row.select(&html::selector(CELL)).next().is_some_and(|cell| html::visible_text(cell) == HARDWARE)
}

/// Whether an element stands in a copy for another screen, which the page's class `hide` takes away.
fn is_in_hidden_twin(element: ElementRef<'_>) -> bool {
    let around = element.ancestors().filter_map(ElementRef::wrap);
    std::iter::once(element).chain(around).any(|element| element.value().classes().any(|class| class == "hide"))
}

fn name(heading: &str) -> String {
    format!("list below `{heading}`")
}

fn section_of(heading: &str) -> Section {
    let heading = heading.to_lowercase();
    if heading.contains("gpu cluster") {
        Section::Clusters
    } else if heading.contains("dedicated") {
        Section::Dedicated
    } else {
        Section::Other
    }
}

fn read_clusters(page: &Page, grid: &Grid, parsed: &mut Parsed) -> Result<(), ScrapeError> {
    grid.column(HARDWARE)?;
    for (index, header) in grid.headers().iter().enumerate().filter(|(_, header)| *header != HARDWARE) {
        let terms = terms(header).ok_or_else(|| {
            let expected = "a way of buying, such as `On-demand` or `Reserved 7–30 days`";
            ScrapeError::changed(page, "header of GPU clusters", expected, format!("`{header}`"))
        })?;
        for row in grid.rows() {
            let read = if row.label().split_whitespace().any(|word| word == HGX) {
                offer(row, index, header, &terms, GPUS_OF_HGX)
            } else {
                offer(row, index, header, &terms, 1).map(|offer| offer.marked(MACHINE_NOT_STATED))
            };
            parsed.take(row.label(), row.place(index), read);
        }
    }
    Ok(())
}

fn read_dedicated(page: &Page, grid: &Grid, parsed: &mut Parsed) -> Result<(), ScrapeError> {
    let hardware = grid.column(HARDWARE)?;
    let others: Vec<_> = (0..grid.headers().len()).filter(|index| *index != hardware).collect();
    let [price] = others[..] else {
        let found = format!("{} columns beside it", others.len());
        return Err(ScrapeError::changed(page, "header of dedicated inference", "`Hardware` and one price", found));
    };
    let terms = Terms { plan: Some("dedicated_inference".to_owned()), ..Terms::of(PricingModel::OnDemand) };
    for row in grid.rows() {
        let count = row.label().split_once('x').and_then(|(count, _)| count.trim().parse::<u32>().ok());
        if count.is_some_and(|count| count != 1) {
            let reason = SkipReason::Contradiction("several GPUs where the price of one is due".to_owned());
            parsed.take(row.label(), row.place(price), Err(reason));
            continue;
        }
        let read = offer(row, price, &grid.headers()[price], &terms, 1).map(|offer| offer.marked(MACHINE_NOT_STATED));
        parsed.take(row.label(), row.place(price), read);
    }
    Ok(())
}

/// What a column of GPU clusters is: preemptible, on demand, or reserved for a number of days.
fn terms(header: &str) -> Option<Terms> {
    let header = header.to_lowercase();
    if header.contains("preemptible") {
        return Some(Terms::of(PricingModel::Spot));
    }
    if header.contains("on-demand") || header.contains("on demand") {
        return Some(Terms::of(PricingModel::OnDemand));
    }
    let words: Vec<_> = header.split_whitespace().collect();
    let at = words.iter().position(|word| word.trim_end_matches(',') == "days")?;
    let days = words.get(at.checked_sub(1)?)?;
    let plan = if let Some(from) = days.strip_suffix('+') {
        format!("reserved_{}_days_and_more", from.parse::<u32>().ok()?)
    } else {
        let (from, to) = days.split_once(['-', '–'])?;
        format!("reserved_{}_to_{}_days", from.parse::<u32>().ok()?, to.parse::<u32>().ok()?)
    };
    Some(Terms { plan: Some(plan), upfront: Some(Upfront::All), ..Terms::of(PricingModel::Reserved) })
}

fn offer(row: Row<'_>, column: usize, header: &str, terms: &Terms, gpus: u32) -> Result<PublishedOffer, SkipReason> {
    let text = row.cell(column)?;
    if is_blank(text) {
        return Err(SkipReason::OutOfScope("not sold this way, by a dash"));
    }
    let price = PublishedPrice::dollars(&MANIFEST, text, &ENDINGS)?;
    if !ENDINGS.iter().any(|ending| text.ends_with(ending) || header.to_lowercase().contains(ending)) {
        return Err(SkipReason::UnknownWord { what: "unit", word: text.to_owned() });
    }
    let gpu = PublishedGpu::plain(row.label(), gpus);
    Ok(PublishedOffer::plain(gpu, terms.clone(), price, row.place(column)).called(row.label()))
}
