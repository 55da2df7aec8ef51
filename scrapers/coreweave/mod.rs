//! CoreWeave's price page, <https://www.coreweave.com/pricing>: prices of whole machines for an hour, in US dollars before tax.
//!
//! - A table for each region stands below its heading, `REGION: EUROPE`. The same table may stand again below another heading; then
//!   each price is taken once.
//! - A row has its cells and, among them, a copy for phones. The copy is not read, but has to say the same prices.
//! - A machine is known by `data-product`. Where nothing is sold on demand the cell is empty beside a link `Contact sales`, and the
//!   cell of the spot price keeps its place.
//! - `4^1` is four GPUs with a footnote. A mark that is glued to the number makes another number, so that only the sizes that
//!   machines come in are believed.
//! - Memory is that of one GPU; a disk of a TB has 1,000 GB. The machines are bare metal.
//! - The last column is of one GPU for inference, another product, and is left out.
//! - Until 2024 the page priced components, without processors and memory. Such a page is refused.

use std::collections::{BTreeSet, HashSet};
use std::sync::LazyLock;

use rust_decimal::Decimal;
use scraper::{ElementRef, Html};

use crate::contract::{
    Machine, Page, Parsed, Place, PricingModel, PublishedGpu, PublishedOffer, PublishedPrice, ScrapeError, Scraper, SkipReason,
    Skipped, Terms,
};
use crate::grid::{self, Grid, Row, is_blank};
use crate::html;
use crate::manifest::Manifest;
use crate::plain::number;
use crate::spot::Piece;

#[cfg(test)]
mod oracles;
#[cfg(test)]
mod tests;

/// The source.
pub struct Coreweave;

static MANIFEST: LazyLock<Manifest> =
    LazyLock::new(|| Manifest::parse(include_str!("manifest.toml")).expect("the manifest beside this file reads"));

const TABLE: &str = ".table-v2.gpu-pricing";
const REGION: &str = "REGION:";
const MODEL: &str = "GPU Model";
const COUNT: &str = "GPU Count";
const MEMORY: &str = "VRAM (GB)";
const VCPUS: &str = "vCPUs";
const SYSTEM_MEMORY: &str = "System RAM (GB)";
const DISK: &str = "Local Storage (TB)";
const ON_DEMAND: &str = "On-Demand Price (Per Hour)";
const SPOT: &str = "Spot Price (Per Hour)";
/// How the header of the column that is left out begins; a footnote follows.
const INFERENCE: &str = "Inference Single GPU Price";
const HEADERS: [&str; 8] = [MODEL, COUNT, MEMORY, VCPUS, SYSTEM_MEMORY, DISK, ON_DEMAND, SPOT];
/// Numbers of GPUs that the machines have.
const COUNTS: [u32; 4] = [1, 2, 4, 8];
/// What the tables of 2021 to 2024 were headed.
const COMPONENTS: &str = "Component Cost Per Hour";

impl Scraper for Coreweave {
    fn manifest(&self) -> &'static Manifest {
        &MANIFEST
    }

    fn pieces(&self, page: &Page, at: &str) -> Option<Vec<Piece>> {
        let document = html::document(page).ok()?;
        let tables: Vec<_> = tables(&document).into_iter().map(|table| (table.name, table.rows)).collect();
        grid::pieces(page, &document, &tables, at)
    }

    fn parse(&self, pages: &[Page]) -> Result<Parsed, ScrapeError> {
        let mut parsed = Parsed::default();
        for page in pages {
            read_page(page, &mut parsed)?;
        }
        Ok(without_copies_of_no_region(parsed).with_one_price_each(key))
    }
}

/// What makes two rows the same offer.
fn key(offer: &PublishedOffer) -> (Option<String>, Option<String>, PricingModel) {
    (offer.instance_type.clone(), offer.region.clone(), offer.terms.pricing_model)
}

/// Leaves out the rows of a table without a region that repeat one with a region, and skips the others.
fn without_copies_of_no_region(mut parsed: Parsed) -> Parsed {
    let priced = |offer: &PublishedOffer| (offer.instance_type.clone(), offer.terms.pricing_model, offer.price.amount);
    let (placed, loose): (Vec<_>, Vec<_>) = parsed.offers.into_iter().partition(|offer| offer.region.is_some());
    let known: HashSet<_> = placed.iter().map(priced).collect();
    parsed.offers = placed;
    for offer in loose {
        if known.contains(&priced(&offer)) {
            parsed.leave_out("repeated price");
        } else {
            let reason = SkipReason::Contradiction("the table does not say of which region it is".to_owned());
            let label = offer.instance_type.unwrap_or_default();
            parsed.skipped.push(Skipped { place: offer.place, label, reason });
        }
    }
    parsed
}

/// A table of machines.
struct Table<'a> {
    name: String,
    /// As published, without the word before it; `None` where no heading says it.
    region: Option<String>,
    /// The headers first.
    rows: Vec<ElementRef<'a>>,
}

fn read_page(page: &Page, parsed: &mut Parsed) -> Result<(), ScrapeError> {
    html::ends(page)?;
    let document = html::document(page)?;
    let tables = tables(&document);
    if tables.is_empty() {
        let is_older = html::visible_text(document.root_element()).contains(COMPONENTS);
        let found = if is_older { "prices of components, without processors and memory" } else { "none" };
        return Err(ScrapeError::changed(page, format!("`{TABLE}`"), "tables of machines and their prices", found));
    }
    tables.iter().try_for_each(|table| read_table(page, table, parsed))
}

/// The tables of the page. A heading of a region is of the next table in its section and of no other: where the heading of a second
/// is gone, nobody knows its region.
fn tables(document: &Html) -> Vec<Table<'_>> {
    let (mut region, mut tables) = (None, Vec::new());
    let (parts, row) = (html::selector("h2, h4, h5, h6, .table-v2.gpu-pricing"), html::selector(".table-grid"));
    for part in document.select(&parts).filter(|part| html::is_seen(*part)) {
        if part.value().classes().any(|class| class == "table-v2") {
            let name = format!("table {}", tables.len() + 1);
            tables.push(Table { name, region: region.take(), rows: part.select(&row).collect() });
            continue;
        }
        let heading = html::visible_text(part);
        match heading.strip_prefix(REGION).map(str::trim) {
            Some(name) => region = Some(name.to_owned()).filter(|name| !name.is_empty()),
            None if part.value().name() == "h2" => region = None,
            None => {}
        }
    }
    tables
}

fn read_table(page: &Page, table: &Table<'_>, parsed: &mut Parsed) -> Result<(), ScrapeError> {
    let grid = Grid::of(page, &table.name, &table.rows, ".table-grid > .table-v2-cell")?;
    for header in HEADERS {
        grid.column(header)?;
    }
    let is_inference = |header: &str| header.starts_with(INFERENCE);
    let is_read = |header: &str| HEADERS.contains(&header) || is_inference(header);
    parsed.unread_fields.extend(grid.headers().iter().filter(|header| !is_read(header)).cloned());
    let model = grid.column(MODEL)?;
    let columns = [
        (PricingModel::OnDemand, grid.column(ON_DEMAND)?, ".instance-price .item-value"),
        (PricingModel::Spot, grid.column(SPOT)?, ".spot-price .item-value"),
    ];
    let inference = grid.headers().iter().position(|header| is_inference(header));
    let elements = table.rows.iter().filter(|row| html::is_seen(**row)).skip(1);
    for (row, element) in grid.rows().zip(elements) {
        let machine = match machine(&grid, row, *element) {
            Ok(machine) => machine,
            Err(reason) => {
                parsed.take(row.label(), row.place(model), Err(reason));
                continue;
            }
        };
        for (model, column, copy) in columns {
            let read = price(row, column, *element, copy).map(|price| offer(table, &machine, model, price, row.place(column)));
            parsed.take(machine.product.as_str(), row.place(column), read);
        }
        if inference.and_then(|column| row.cell(column).ok()).is_some_and(|cell| cell.starts_with('$')) {
            parsed.leave_out("a price of one GPU for inference");
        }
    }
    Ok(())
}

/// What a row says of its machine.
struct Named {
    product: String,
    gpu: PublishedGpu,
    machine: Machine,
}

fn machine(grid: &Grid, row: Row<'_>, element: ElementRef<'_>) -> Result<Named, SkipReason> {
    let cell = |header: &str| match grid.optional(header) {
        Some(column) => row.cell(column),
        None => Err(SkipReason::FieldMissing { field: header.to_owned() }),
    };
    let size = |header: &'static str| number(cell(header)?, header);
    let name = cell(MODEL)?;
    let names = html::selector(".table-model-name");
    let products: BTreeSet<_> = element.select(&names).filter_map(|name| name.attr("data-product")).collect();
    let product = match products.into_iter().collect::<Vec<_>>()[..] {
        [product] if !product.trim().is_empty() => product.to_owned(),
        [] | [_] => return Err(SkipReason::FieldMissing { field: "data-product".to_owned() }),
        ref several => return Err(SkipReason::Contradiction(format!("a row of {} products", several.len()))),
    };
    let machine = Machine {
        vcpus: Some(size(VCPUS)?),
        system_memory_gib: Some(size(SYSTEM_MEMORY)?),
        local_disk_gb: Some((size(DISK)? * Decimal::from(1_000)).normalize()),
        is_bare_metal: Some(true),
    };
    let gpu = PublishedGpu::plain(name, count(cell(COUNT)?)?).of_memory(size(MEMORY)?);
    Ok(Named { product, gpu, machine })
}

/// The number of GPUs before a footnote: 4 from `4^1`.
fn count(text: &str) -> Result<u32, SkipReason> {
    let is_mark = |mark: &str| !mark.is_empty() && mark.bytes().all(|byte| byte.is_ascii_digit());
    let bare = text.split_once('^').filter(|(_, mark)| is_mark(mark)).map_or(text, |(count, _)| count);
    let bare = bare.trim_end_matches(['¹', '²', '³', '*', '†']).trim();
    let found = COUNTS.into_iter().find(|count| count.to_string() == bare);
    found.ok_or_else(|| SkipReason::unreadable(COUNT, "1, 2, 4 or 8, perhaps with a footnote", text))
}

/// The price in a cell, with which the copy for phones has to agree.
fn price(row: Row<'_>, column: usize, element: ElementRef<'_>, copy: &'static str) -> Result<PublishedPrice, SkipReason> {
    let cell = row.cell(column)?;
    let price = PublishedPrice::dollars(&MANIFEST, cell, &[]);
    for copy in element.select(&html::selector(copy)).map(html::visible_text) {
        if copy != if copy.is_empty() && price.is_err() { "" } else { cell } {
            return Err(SkipReason::Contradiction(format!("`{cell}` in the table and `{copy}` in its copy for phones")));
        }
    }
    if cell == "N/A" || !cell.is_empty() && is_blank(cell) {
        return Err(SkipReason::OutOfScope("not sold this way, by `N/A` or a dash"));
    }
    price
}

fn offer(table: &Table<'_>, named: &Named, model: PricingModel, price: PublishedPrice, place: Place) -> PublishedOffer {
    let mut offer = PublishedOffer::plain(named.gpu.clone(), Terms::of(model), price, place);
    offer.sku = table.region.as_deref().map(|region| format!("{}/{region}", named.product));
    offer.instance_type = Some(named.product.clone());
    offer.offer_label.clone_from(&named.gpu.label);
    offer.region.clone_from(&table.region);
    offer.machine = named.machine.clone();
    offer
}
