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
//! - Names are decorated, `BM.GPU.GB200.4 (NVL72)`. Hidden and retired shapes are in the list.

mod products;
mod shapes;
#[cfg(test)]
mod tests;

use std::collections::HashMap;
use std::sync::LazyLock;

use chrono::{DateTime, Utc};

use crate::contract::{Page, PageRequest, Parsed, ScrapeError, Scraper, SkipReason};
use crate::json::{self, Object, Value};
use crate::manifest::Manifest;

/// The source.
pub struct Oci;

static MANIFEST: LazyLock<Manifest> =
    LazyLock::new(|| Manifest::parse(include_str!("manifest.toml")).expect("the manifest beside this file reads"));

const HOST: &str = "https://apexapps.oracle.com";
const OTHER_CATEGORY: SkipReason = SkipReason::OutOfScope("not in category Compute - GPU");

/// One document, by what its elements have: names of pages from files say nothing.
enum Document<'a> {
    Products { version: Option<DateTime<Utc>>, next: Option<String>, items: Vec<Value<'a>> },
    Shapes { items: Vec<Value<'a>> },
}

impl Scraper for Oci {
    fn manifest(&self) -> &'static Manifest {
        &MANIFEST
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
        for (_, document) in &documents {
            if let Document::Products { items, .. } = document {
                parts.extend(items.iter().filter_map(products::part_number));
            }
        }
        let listed = shapes::listed(&documents, &parts, &mut parsed)?;
        for (page, document) in &documents {
            let Document::Products { version, items, .. } = document else { continue };
            for item in items {
                products::take(page, item, *version, listed.as_ref(), &mut amounts, &mut parsed)?;
            }
        }
        Ok(parsed)
    }
}

fn shape_changed(page: &Page, at: String, expected: &str, found: String) -> ScrapeError {
    ScrapeError::ShapeChanged { page: page.name.clone(), at, expected: expected.to_owned(), found }
}

fn document(page: &Page) -> Result<Document<'_>, ScrapeError> {
    let document = json::document(page)?;
    let list = document.field("items")?;
    let items = list.list()?;
    if items.is_empty() {
        return Err(ScrapeError::NothingFound { page: page.name.clone(), at: list.place().at });
    }
    let any_has = |field| items.iter().any(|item| item.object().is_ok_and(|item| item.has(field)));
    match (any_has("currencyCodeLocalizations"), any_has("shapeType")) {
        (true, false) => Ok(Document::Products { version: version(page, &document)?, next: next(page, &document)?, items }),
        (false, true) => Ok(Document::Shapes { items }),
        (_, found) => {
            let found = if found { "both" } else { "neither" };
            Err(shape_changed(page, list.place().at, "products, or shapes", found.to_owned()))
        }
    }
}

/// The list's version, from which its prices hold. Lists of earlier years do not have it.
fn version(page: &Page, document: &Object) -> Result<Option<DateTime<Utc>>, ScrapeError> {
    let Some(value) = document.optional("lastUpdated") else { return Ok(None) };
    match DateTime::parse_from_rfc3339(&value.text()?) {
        Ok(at) => Ok(Some(at.to_utc())),
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
