//! Oracle Cloud Infrastructure: the public price list
//! <https://apexapps.oracle.com/pls/apex/cetools/api/v1/products/?currencyCode=USD>, and the shapes of the cost
//! estimator <https://www.oracle.com/a/ocom/docs/cloudestimator2/data/shapes.json>.
//!
//! In: the list's products, with USD for one GPU and hour, and the shapes, with the part each is billed by. Out: an
//! offer for each shape of a GPU part, at the amount for one GPU as printed. One row holds in all commercial regions.
//! Where the shapes are not among the pages, the documented ones of `shapes.toml` stand in, marked `shape_from_table`.
//! Never a preemptible price: it is half the list price by rule, and the list does not state it.
//!
//! Quirks, as of 2026-08-22:
//! - Licences (`NVIDIA AI Enterprise`) have the category and the unit of GPUs, at a fraction of the price. Other
//!   services have the unit only: Compute Cloud@Customer, H100T (category `Compute - GPU - Other`); VMware nodes and
//!   Roving Edge have neither.
//! - Display names are irregular (`OCI- Compute - GPU - MI355X`, `Compute  - GPU - A10`, `E3` for an A100), and B200 is
//!   the end of GB200. Parts are known by number, and the name's last words are a check.
//! - In a GPU shape the part of type `ocpu` is the GPU part, but its `qty` counts cores. Cores and memory are null for
//!   the newest shapes, and 128 instead of 144 cores for GB200: where the list and `shapes.toml` differ the table
//!   stands, and the row is marked `machine_size_disputed`.
//! - The list is dated by its last change of any product, which is not the start of a price: no offer has one.
//! - A GPU part that the table lacks is published with the number of GPUs that a shape states and without a card, marked
//!   `unknown_hardware`. Without such a shape it is skipped: nothing says that it is sold.
//! - Other currencies are lists of their own. Only dollars are asked for.
//! - Names are decorated, `BM.GPU.GB200.4 (NVL72)`. Hidden and retired shapes are in the list.

#[cfg(test)]
mod oracles;
mod products;
mod shapes;
#[cfg(test)]
mod tests;
#[cfg(test)]
mod traps;

use std::collections::HashMap;
use std::sync::LazyLock;

use chrono::DateTime;

use crate::contract::{Page, PageRequest, Parsed, ScrapeError, Scraper};
use crate::hardware::KnownMachine;
use crate::json::{self, FieldName, Object, Value};
use crate::manifest::Manifest;

/// The source.
pub struct Oci;

static MANIFEST: LazyLock<Manifest> =
    LazyLock::new(|| Manifest::parse(include_str!("manifest.toml")).expect("the manifest beside this file reads"));

static PRICES: LazyLock<FieldName> = LazyLock::new(|| FieldName::new("currencyCodeLocalizations"));
static SHAPE_TYPE: LazyLock<FieldName> = LazyLock::new(|| FieldName::new("shapeType"));

const HOST: &str = "https://apexapps.oracle.com";
const OTHER_CATEGORY: &str = "not in category Compute - GPU";

/// One document, by what its elements have: names of pages from files say nothing.
enum Document<'a> {
    Products { next: Option<String>, items: Vec<Value<'a>> },
    Shapes { items: Vec<Value<'a>> },
}

impl Scraper for Oci {
    fn manifest(&self) -> &'static Manifest {
        &MANIFEST
    }

    fn machines(&self) -> Vec<KnownMachine> {
        shapes::TABLE.machines()
    }

    fn follow(&self, page: &Page) -> Result<Vec<PageRequest>, ScrapeError> {
        let Document::Products { next: Some(url), .. } = document(page)? else {
            return Ok(Vec::new());
        };
        let number = page.name.rsplit_once('-').and_then(|(_, number)| number.parse::<u32>().ok());
        let name = format!("products-{}", number.map_or(2, |number| number.saturating_add(1)));
        Ok(vec![PageRequest::get(name, page.scope.as_str(), url)])
    }

    fn parse(&self, pages: &[Page]) -> Result<Parsed, ScrapeError> {
        let documents: Vec<_> = pages.iter().map(|page| Ok((page, document(page)?))).collect::<Result<_, ScrapeError>>()?;
        demand_all_pages(pages, &documents)?;
        let mut parsed = Parsed::default();
        let (mut parts, mut amounts) = (HashMap::new(), HashMap::new());
        // What is on the list matters only to shapes that ask for it.
        if documents.iter().any(|(_, document)| matches!(document, Document::Shapes { .. })) {
            for (_, document) in &documents {
                if let Document::Products { items, .. } = document {
                    parts.extend(items.iter().filter_map(products::part_number));
                }
            }
        }
        let listed = shapes::listed(&documents, &parts, &mut parsed)?;
        for (page, document) in &documents {
            let Document::Products { items, .. } = document else { continue };
            for item in items {
                products::take(page, item, listed.as_ref(), &mut amounts, &mut parsed)?;
            }
        }
        Ok(parsed)
    }
}

fn shape_changed(page: &Page, at: String, expected: &str, found: String) -> ScrapeError {
    ScrapeError::ShapeChanged { page: page.name.clone(), at, expected: expected.to_owned(), found }
}

fn document(page: &Page) -> Result<Document<'_>, ScrapeError> {
    let (document, items) = json::document_and_list(page, "items")?;
    if items.is_empty() {
        return Err(ScrapeError::NothingFound { page: page.name.clone(), at: "/items".to_owned() });
    }
    let any_has = |field: &FieldName| items.iter().any(|item| field.is_in(item.characters()));
    match (any_has(&PRICES), any_has(&SHAPE_TYPE)) {
        (true, false) => {
            check_version(page, &document)?;
            Ok(Document::Products { next: next(page, &document)?, items })
        }
        (false, true) => Ok(Document::Shapes { items }),
        (_, found) => {
            let found = if found { "both" } else { "neither" };
            Err(shape_changed(page, "/items".to_owned(), "products, or shapes", found.to_owned()))
        }
    }
}

/// Checks the list's version. Lists of earlier years do not have it.
///
/// It is the instant at which any of some 600 products last changed, not the one from which a price holds: an H100 cost
/// 10 on the list of early 2024 as on that of 2026-08-14. So no offer says since when it holds.
fn check_version(page: &Page, document: &Object) -> Result<(), ScrapeError> {
    let Some(value) = document.optional("lastUpdated") else { return Ok(()) };
    match DateTime::parse_from_rfc3339(&value.text()?) {
        Ok(_) => Ok(()),
        Err(_) => Err(shape_changed(page, value.place().at, "an instant", json::start_of(value.characters()))),
    }
}

/// The address of the list's next page, which has never been seen but is a custom of the host.
fn next(page: &Page, document: &Object) -> Result<Option<String>, ScrapeError> {
    let links = document.optional("links").map(|links| links.list()).transpose()?;
    for link in links.unwrap_or_default() {
        let link = link.object()?;
        if link.text("rel")? == "next" {
            let href = link.field("href")?;
            let text = href.text()?;
            let url = if text.starts_with('/') { format!("{HOST}{text}") } else { text.into_owned() };
            if url.starts_with(&format!("{HOST}/")) && url != page.url {
                return Ok(Some(url));
            }
            let found = json::start_of(href.characters());
            return Err(shape_changed(page, href.place().at, "a link to another page of the same host", found));
        }
    }
    Ok(None)
}

fn demand_all_pages(pages: &[Page], documents: &[(&Page, Document)]) -> Result<(), ScrapeError> {
    for (page, document) in documents {
        if let Document::Products { next: Some(next), .. } = document
            && !pages.iter().any(|page| page.url == *next)
        {
            return Err(ScrapeError::PageMissing { page: page.name.clone(), at: "/links".to_owned(), next: next.clone() });
        }
    }
    match documents.first() {
        Some((page, _)) if !documents.iter().any(|(_, document)| matches!(document, Document::Products { .. })) => {
            let next = MANIFEST.pages[0].url.clone();
            Err(ScrapeError::PageMissing { page: page.name.clone(), at: "/".to_owned(), next })
        }
        _ => Ok(()),
    }
}
