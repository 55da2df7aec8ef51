//! AWS: <https://pricing.us-east-1.amazonaws.com/offers/v1.0/aws/index.json>, the bulk price lists of EC2, and its pages.
//!
//! In: one list of prices and one of savings plans for each region, the feed of spot prices, and the page of Capacity Blocks.
//! Out: on-demand prices, reservations, savings plans, spot prices and Capacity Blocks. Never a price of zero, never a
//! price of a capacity reservation, and never a licence that the machine's own price does not hold.
//!
//! Quirks, as of 2026-09:
//! - A list is some 300 MB of CSV of which less than a hundredth is ours. It passes a sieve while it arrives, so a region
//!   without accelerated machines is a list of six lines, and no fault.
//! - The indexes name JSON files; each has a CSV beside it that is smaller and has a price a line. Versions never change.
//! - Every machine of the P and Trn families stands there once more at zero, with the market option `CapacityBlock`.
//! - Capacity reservations repeat a machine: unused ones at its price, allocated ones at zero. Hosts are at zero too.
//! - Windows under the buyer's licence costs what Linux costs. It is left out: its price holds no Windows.
//! - A reservation has a row by the hour and, unless it is without upfront payment, a row `Quantity` for the upfront fee.
//! - Columns come and go: lists before 2021 have no region code, and older ones neither capacity nor market.
//! - Zones are rows of their region's list, and have lists of their own beside it. Both are read, each row under its own code.
//! - Savings plans are other files of another format. Those of a region are a scope of their own, `us-east-1@plans`, so that a
//!   change of one format costs nothing of the other, and each rate is read by its own words, without the list of prices.
//! - The spot feed gives the cheapest zone of each region, and `N/A*` where there is none.
//! - Capacity Blocks stand in JSON within the page. UltraServers once had the rate of one accelerator in place of their own.
//! - China is another partition with its own host and CNY; it is a site of its own here.

mod blocks;
mod indexes;
mod lines;
mod machines;
#[cfg(test)]
mod oracles;
mod places;
mod plans;
mod prices;
mod reservations;
mod spot;
mod spots;
#[cfg(test)]
mod tests;

use std::sync::LazyLock;

use crate::contract::{Page, PageRequest, Parsed, PastNight, Place, SCOPE_INDEX, ScrapeError, Scraper};
use crate::hardware::KnownMachine;
use crate::json;
use crate::manifest::Manifest;
use crate::sieve::Sieve;
use crate::spot::{Piece, Spot};

/// The source.
pub struct Aws;

static MANIFEST: LazyLock<Manifest> =
    LazyLock::new(|| Manifest::parse(include_str!("manifest.toml")).expect("the manifest beside this file reads"));

/// How a list of prices begins, and one of savings plans.
const PRICES_HEAD: &[u8] = b"\"FormatVersion\"";
const PLANS_HEAD: &[u8] = b"FormatVersion,";

/// The scope of the spot feed.
const SCOPE_SPOT: &str = "spot";

/// The scope of the page of Capacity Blocks.
const SCOPE_BLOCKS: &str = "capacity-blocks";

impl Scraper for Aws {
    fn manifest(&self) -> &'static Manifest {
        &MANIFEST
    }

    fn follow(&self, page: &Page) -> Result<Vec<PageRequest>, ScrapeError> {
        match Kind::of(page)? {
            Kind::Index => indexes::follow(page),
            _ => Ok(Vec::new()),
        }
    }

    fn sieve(&self, head: &[u8]) -> Option<&'static Sieve> {
        match head {
            _ if head.starts_with(PRICES_HEAD) => Some(&prices::SIEVE),
            _ if head.starts_with(PLANS_HEAD) => Some(&plans::SIEVE),
            _ => None,
        }
    }

    fn sieves(&self) -> &'static [&'static str] {
        &[prices::SIEVE_NAME, plans::SIEVE_NAME]
    }

    fn machines(&self) -> Vec<KnownMachine> {
        machines::HARDWARE.machines()
    }

    fn history_index(&self) -> Vec<PageRequest> {
        vec![indexes::versions()]
    }

    fn history(&self, index: &Page) -> Result<Vec<PastNight>, ScrapeError> {
        indexes::history(index, &MANIFEST)
    }

    fn scope(&self, page: &Page) -> Result<Option<String>, ScrapeError> {
        match Kind::of(page)? {
            Kind::Prices => prices::scope(page),
            Kind::Plans => plans::scope(page),
            Kind::Spot => Ok(Some(SCOPE_SPOT.to_owned())),
            Kind::Blocks => Ok(Some(SCOPE_BLOCKS.to_owned())),
            Kind::Index => Ok(Some(SCOPE_INDEX.to_owned())),
        }
    }

    fn spots(&self, pages: &[Page], place: &Place, _sku: Option<&str>, text: &str) -> Vec<Spot> {
        spots::of_price(pages, place, text)
    }

    fn pieces(&self, page: &Page, at: &str) -> Option<Vec<Piece>> {
        spots::pieces(page, at)
    }

    fn parse(&self, pages: &[Page]) -> Result<Parsed, ScrapeError> {
        let mut parsed = Parsed::default();
        for page in pages {
            match Kind::of(page)? {
                Kind::Prices => prices::read(page, &mut parsed)?,
                Kind::Plans => plans::read(page, &mut parsed)?,
                Kind::Spot => spot::read(page, &mut parsed)?,
                Kind::Blocks => blocks::read(page, &mut parsed)?,
                Kind::Index => return Err(wrong_format(page, "a page with prices", "an index".to_owned())),
            }
        }
        machines::drop_repeated(&mut parsed)?;
        Ok(parsed)
    }
}

/// What a page is, told from its content.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Prices,
    Plans,
    Spot,
    Blocks,
    Index,
}

impl Kind {
    fn of(page: &Page) -> Result<Self, ScrapeError> {
        let body = page.body.trim_ascii_start();
        match body {
            _ if body.starts_with(PRICES_HEAD) => Ok(Self::Prices),
            _ if body.starts_with(PLANS_HEAD) => Ok(Self::Plans),
            [b'<', ..] => Ok(Self::Blocks),
            [b'{', ..] => {
                let document = json::document(page)?;
                if document.has("config") {
                    return Ok(Self::Spot);
                }
                if ["offers", "regions", "versions"].iter().any(|name| document.has(name)) {
                    return Ok(Self::Index);
                }
                let names: Vec<_> = document.names().take(5).collect();
                Err(wrong_format(page, "an index or the spot feed", format!("an object of {names:?}")))
            }
            [] => Err(ScrapeError::NothingFound { page: page.name.clone(), at: "the first byte".to_owned() }),
            _ => {
                let text = page.text()?;
                Err(wrong_format(page, "a price list, an index, the spot feed or a page", json::start_of(text)))
            }
        }
    }
}

fn wrong_format(page: &Page, expected: &str, found: String) -> ScrapeError {
    ScrapeError::WrongFormat { page: page.name.clone(), expected: expected.to_owned(), found }
}

fn changed(page: &Page, at: impl Into<String>, expected: impl Into<String>, found: impl Into<String>) -> ScrapeError {
    ScrapeError::ShapeChanged { page: page.name.clone(), at: at.into(), expected: expected.into(), found: found.into() }
}
