//! Azure: <https://prices.azure.com/api/retail/prices>, the public list of retail prices, region by region.
//!
//! In: pages of up to 1,000 rows of one region's N-series. Out: on-demand, spot and low-priority prices by the hour, savings
//! plans by the hour, reservations by the term. Never a hardware fact that is not in `hardware.toml`, but for the number of
//! virtual CPUs in a machine's name, and never an hourly price worked out from a reservation.
//!
//! Quirks, as of 2026-08:
//! - A reservation's amount is for the whole term, though its unit says `1 Hour`: 551221.0 is a year of a machine of 98.32.
//! - Low priority is not spot and is often below it in the list; both stand only in `meterName` and `skuName`.
//! - Windows is the last word of `productName`, spelled `Windows` or `Win`; Linux is ` Linux`, or nothing at all.
//! - `DevTestConsumption` repeats a row at a price for licence holders.
//! - `armSkuName` may end in blanks and may name a host; `armRegionName` once came as `WestUS3`.
//! - The list moves while it is paged. Rows that move down are repeated on the next page, and count once. Rows that move
//!   up are lost between two pages, which no page shows: the next night's list has them again. Regions are walked one by
//!   one, which keeps a walk short.
//! - A page that is shorter than its `Count` or its link to the next one says is looked at a second time, see `pages.rs`.
//! - A row may stand twice with different start dates, or be dated in the future.
//! - Families of FPGAs (NP) and of media cards (NM) begin with N and have no GPU.
//! - Some machines say in their name which card they have, and nothing says how much of it (`NC8ads_A10_v4`). They are
//!   published without a number of GPUs, marked `unknown_hardware`, as is every machine that is not in `hardware.toml`.
//! - A plain `?armRegionName=` is no filter: the whole list comes back.

mod names;
#[cfg(test)]
mod oracles;
mod pages;
mod rows;
#[cfg(test)]
mod tests;
#[cfg(test)]
mod traps;

use std::collections::BTreeSet;
use std::sync::LazyLock;

use crate::contract::{Page, PageRequest, Parsed, SCOPE_ALL, ScrapeError, Scraper, SkipReason};
use crate::hardware::KnownMachine;
use crate::manifest::Manifest;
use pages::Envelope;

/// The source.
pub struct Azure;

static MANIFEST: LazyLock<Manifest> =
    LazyLock::new(|| Manifest::parse(include_str!("manifest.toml")).expect("the manifest beside this file reads"));

impl Scraper for Azure {
    fn manifest(&self) -> &'static Manifest {
        &MANIFEST
    }

    fn machines(&self) -> Vec<KnownMachine> {
        rows::HARDWARE.machines()
    }

    fn follow(&self, page: &Page) -> Result<Vec<PageRequest>, ScrapeError> {
        pages::follow(page)
    }

    fn scope(&self, page: &Page) -> Result<Option<String>, ScrapeError> {
        let mut regions = BTreeSet::new();
        let mut rest = page.text()?;
        while let Some((region, after)) = rows::REGION.peek(rest) {
            regions.insert(region.trim().to_ascii_lowercase());
            rest = after;
        }
        // Without a region the page is empty, an error or something else altogether, and reading it tells which.
        if regions.is_empty() && Envelope::read(page)?.items.is_empty() {
            return Err(pages::nothing(page));
        }
        regions.remove("");
        Ok(regions.first().filter(|_| regions.len() == 1).cloned())
    }

    fn parse(&self, pages: &[Page]) -> Result<Parsed, ScrapeError> {
        let mut parsed = Parsed::default();
        let envelopes = pages.iter().map(Envelope::read).collect::<Result<Vec<_>, _>>()?;
        let envelopes = pages::in_order(pages::whole(envelopes)?)?;
        let mut candidates = Vec::new();
        for envelope in &envelopes {
            let page = envelope.page;
            envelope.document.report_unread(&MANIFEST.ignored_fields, &mut parsed.unread_fields);
            for item in &envelope.items {
                match rows::screen(item, page.observed_at) {
                    Ok(row) if page.scope == SCOPE_ALL || row.region == page.scope => candidates.push(row),
                    Ok(row) => return Err(pages::another_region(page, item, &row.region)),
                    Err(SkipReason::OutOfScope(reason)) => parsed.leave_out(reason),
                    Err(reason) => parsed.take(rows::label(item), item.place(), Err(reason)),
                }
            }
        }
        rows::resolve(&candidates, &MANIFEST.ignored_fields, &mut parsed);
        // The site at times loses whole families for days. A region of which nothing is left is a failure, not an empty night.
        match pages.first() {
            Some(page) if parsed.offers.is_empty() && parsed.skipped.is_empty() => Err(pages::nothing(page)),
            _ => Ok(parsed),
        }
    }
}
