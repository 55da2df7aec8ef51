//! Google Cloud: <https://cloudbilling.googleapis.com/v1/services/6F81-5844-456A/skus>, the catalog of Compute Engine, with a
//! free key; without one <https://cloud.google.com/products/compute/pricing/accelerator-optimized>, a page for people.
//!
//! In: every page of the catalog, or that one page. Out: prices of machines by the hour: on demand, spot, committed for one
//! and three years, flex-start and calendar mode. Never a machine with a part missing, never the price of a GPU alone as if
//! it were a machine's, and never a share of a card's price for a machine with a share of a card.
//!
//! Quirks, as of 2026-08:
//! - The catalog prices parts and names no machine: core, RAM, GPU, local disks. A machine is their sum under one plan in one
//!   region. A4 and the sizes of G4 with a share of a card are slices that hold everything: `1/8 vGPU` in Iowa is 15 % above
//!   an eighth of a whole G4, so such a size is never worked out from the whole one.
//! - `Nvidia Tesla A100 GPU` is the one with 40 GB. The H100 of the mega size has three names: `80GB Plus`, `80GB Mega` and
//!   `Mega 80GB`.
//! - Flex-start (`DWS Defined Duration`) and calendar mode are listed under `OnDemand`, and so are spot slices of A4 and spot
//!   disks: the words decide, and the usage type must not contradict them. There is no usage type `Spot`.
//! - `Reserved …` without `in Calendar Mode` is what a reservation holds, often at a price of zero.
//! - A price is `units` and `nanos` together; each is left out when it is zero. Disks are priced by the month.
//! - One SKU is for several regions, and a region may have two SKUs for one part: its own goes before a wider one.
//! - `effectiveTime` is when the catalog was made and not since when a price holds: all SKUs of a capture of 2023-03-24 have
//!   the same moment. So no offer says since when it holds.
//! - Machines of which nobody says where they are sold (`a3-edgegpu-8g`, the sizes without disks) are in the hardware table,
//!   and no sum is made for them.
//! - A wrong service answers 200 with an empty list.
//! - The catalog lists prices where a machine is not sold, and on demand what is sold in other ways only.

mod catalog;
mod compose;
mod cut;
mod machines;
#[cfg(test)]
mod oracles;
mod page;
mod region;
mod skus;
mod spots;
#[cfg(test)]
mod tests;
mod words;

use std::collections::HashSet;
use std::sync::LazyLock;

use crate::contract::{Page, PageRequest, Parsed, Place, SCOPE_ALL, ScrapeError, Scraper, SkipReason};
use crate::hardware::KnownMachine;
use crate::json;
use crate::manifest::Manifest;
use crate::spot::{Piece, Spot};
use catalog::Envelope;

/// The source.
pub struct Gcp;

static MANIFEST: LazyLock<Manifest> =
    LazyLock::new(|| Manifest::parse(include_str!("manifest.toml")).expect("the manifest beside this file reads"));

impl Scraper for Gcp {
    fn manifest(&self) -> &'static Manifest {
        &MANIFEST
    }

    fn machines(&self) -> Vec<KnownMachine> {
        machines::HARDWARE.machines()
    }

    fn follow(&self, page: &Page) -> Result<Vec<PageRequest>, ScrapeError> {
        if page::is_page(page)? { Ok(Vec::new()) } else { catalog::follow(page) }
    }

    fn scope(&self, page: &Page) -> Result<Option<String>, ScrapeError> {
        // The page for people has less of one region, so a night without a key says nothing of the rest.
        Ok(Some(if page::is_page(page)? { page::SCOPE } else { SCOPE_ALL }.to_owned()))
    }

    fn spots(&self, pages: &[Page], place: &Place, sku: Option<&str>, text: &str) -> Vec<Spot> {
        spots::of_sum(pages, place, sku, text)
    }

    fn pieces(&self, page: &Page, at: &str) -> Option<Vec<Piece>> {
        spots::pieces(page, at)
    }

    fn parse(&self, pages: &[Page]) -> Result<Parsed, ScrapeError> {
        if let [page] = pages
            && page::is_page(page)?
        {
            return page::parse(page);
        }
        let mut parsed = Parsed::default();
        let envelopes = pages.iter().map(Envelope::read).collect::<Result<Vec<_>, _>>()?;
        catalog::check_chain(pages, &envelopes)?;
        if let Some(page) = pages.first()
            && envelopes.iter().all(|envelope| envelope.skus.is_empty())
        {
            return Err(ScrapeError::NothingFound { page: page.name.clone(), at: "/skus".to_owned() });
        }
        let mut rates = Vec::new();
        let mut seen = HashSet::new();
        for (page, envelope) in pages.iter().zip(&envelopes) {
            let known = |name: &&String| ["skus", "nextPageToken"].contains(&name.as_str());
            parsed.unread_fields.extend(envelope.names.iter().filter(|name| !known(name)).cloned());
            for (number, characters) in envelope.skus.iter().enumerate() {
                match skus::peek(characters) {
                    Some(Err(SkipReason::OutOfScope(reason))) => {
                        parsed.leave_out(reason);
                        continue;
                    }
                    Some(Err(reason)) => {
                        let place = Place { page: page.name.clone(), at: format!("/skus/{number}") };
                        parsed.take(skus::label(characters), place, Err(reason));
                        continue;
                    }
                    Some(Ok(_)) | None => {}
                }
                let item = json::element(page, "skus", number, characters)?;
                match skus::read(&item, page.observed_at, &MANIFEST.ignored_fields, &mut parsed) {
                    // The list moves while it is paged, so a SKU may come again.
                    Ok(rate) if !seen.insert((rate.sku.clone(), rate.nanos)) => parsed.leave_out("a SKU that came before"),
                    Ok(rate) => rates.push(rate),
                    Err(reason) => parsed.take(skus::label(characters), item.place(), Err(reason)),
                }
            }
        }
        if let Some(page) = pages.first()
            && rates.is_empty()
            && parsed.skipped.is_empty()
        {
            return Err(ScrapeError::NothingFound { page: page.name.clone(), at: "a SKU of a GPU machine".to_owned() });
        }
        compose::compose(&rates, &mut parsed);
        Ok(parsed)
    }
}
