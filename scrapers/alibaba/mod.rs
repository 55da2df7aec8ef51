//! Alibaba Cloud ECS: the static price files behind the pricing pages <https://www.alibabacloud.com/en/product/ecs/pricing>
//! and <https://www.aliyun.com/price/ecs/ecs-pricing/zh>, one list for each of the two sites.
//!
//! In: the source of both pricing pages, which only lead on, and one JSON file for each site. Out: prices by the hour,
//! by the month, and the totals of one to five years, for Linux and Windows. Never a card's name that the vendor does not
//! give, never a price of one site worked out from the other's, and never one of a build that is no longer maintained.
//!
//! Quirks, as documented up to 2026-09:
//! - The addresses hold a build number (`2.0.421`). Old builds answer for ever with their old prices, 2.0.7 with those of
//!   2018, so the newest number is read from the pricing page, and a file that says it is old is refused.
//! - The regions of mainland China stand in both lists, in USD and in CNY, and the two are no conversion of each other.
//! - The price of a year is the total of so many years: `period` 3 is paid once for three. Months have been seen with the
//!   period 1 alone, so a price of several months is kept and not decoded. Spot prices are not published.
//! - Hourly prices are of the machine alone: disk, bandwidth and image cost extra.
//! - The files name types and nothing of their hardware. The letters are no generations of a card: gn6i is T4, gn7 A100,
//!   gn7e A100 with 80 GB, gn7i A10, gn7s A30. Many newer types (gn8v, gn9g, most of ebmgn) are missing from the files
//!   and are sold all the same; sold-out and retired ones keep their prices.
//! - Entries of the classic network, and those without optimised disks, repeat a machine at older prices.

mod builds;
mod list;
mod machines;
#[cfg(test)]
mod oracles;
#[cfg(test)]
mod tests;

use std::sync::LazyLock;

use crate::contract::{Page, PageRequest, Parsed, SCOPE_INDEX, ScrapeError, Scraper, Site};
use crate::hardware::{Hardware, KnownMachine};
use crate::json;
use crate::manifest::Manifest;
use list::PriceList;

/// The source.
pub struct Alibaba;

static MANIFEST: LazyLock<Manifest> =
    LazyLock::new(|| Manifest::parse(include_str!("manifest.toml")).expect("the manifest beside this file reads"));

static HARDWARE: LazyLock<Hardware> =
    LazyLock::new(|| Hardware::parse(include_str!("hardware.toml")).expect("the hardware table beside this file reads"));

impl Scraper for Alibaba {
    fn manifest(&self) -> &'static Manifest {
        &MANIFEST
    }

    fn machines(&self) -> Vec<KnownMachine> {
        HARDWARE.machines()
    }

    fn follow(&self, page: &Page) -> Result<Vec<PageRequest>, ScrapeError> {
        if page.scope == SCOPE_INDEX { builds::requests(page) } else { Ok(Vec::new()) }
    }

    fn scope(&self, page: &Page) -> Result<Option<String>, ScrapeError> {
        if page.text()?.trim_start().starts_with('<') {
            return builds::requests(page).map(|_| Some(SCOPE_INDEX.to_owned()));
        }
        let document = json::document(page)?;
        Ok(Some(list::site(page, &document)?.word().to_owned()))
    }

    fn parse(&self, pages: &[Page]) -> Result<Parsed, ScrapeError> {
        let mut parsed = Parsed::default();
        let mut sites: Vec<Site> = Vec::new();
        for page in pages {
            let list = PriceList::read(page)?;
            if sites.contains(&list.site()) {
                return Err(changed(page, "/currency", "one file for each site", format!("a second one of `{}`", list.site())));
            }
            sites.push(list.site());
            list.take(&mut parsed)?;
        }
        Ok(parsed)
    }
}

fn changed(page: &Page, at: impl Into<String>, expected: impl Into<String>, found: impl Into<String>) -> ScrapeError {
    ScrapeError::ShapeChanged { page: page.name.clone(), at: at.into(), expected: expected.into(), found: found.into() }
}
