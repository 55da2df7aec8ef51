//! JarvisLabs' price page, <https://jarvislabs.ai/pricing>, or its API's answer about servers: prices of one GPU for an hour, in US
//! dollars before tax. Storage is billed apart.
//!
//! - The page has tables; one of GPUs has the headers `GPU`, `VRAM` and a price of an hour. Cards repeat some of it and are not read.
//! - The answer has a row for each card, region and kind of workload. Containers and virtual machines cost the same and become one
//!   offer, which is available if either is. Rows spell one card in several ways, so offers have the manifest's name of it.
//!   Spot is for containers only, also where the row of a virtual machine names such a price.
//! - Memory and the number of GPUs are texts in the answer, and the latter may be absent.

use std::collections::HashSet;
use std::sync::LazyLock;

use rust_decimal::Decimal;
use scraper::{ElementRef, Html};

use crate::contract::{
    Availability, Page, Parsed, Place, PricingModel, PublishedGpu, PublishedOffer, PublishedPrice, ScrapeError, Scraper,
    SkipReason, Terms,
};
use crate::grid::{self, Grid, Row};
use crate::html;
use crate::json::{self, Object};
use crate::manifest::Manifest;
use crate::money;
use crate::plain::number;
use crate::spot::{self, Piece};

#[cfg(test)]
mod oracles;
#[cfg(test)]
mod tests;

/// The source.
pub struct Jarvislabs;

static MANIFEST: LazyLock<Manifest> =
    LazyLock::new(|| Manifest::parse(include_str!("manifest.toml")).expect("the manifest beside this file reads"));

/// How a cell may say that it is a price of an hour, which its header says too.
const ENDINGS: [&str; 4] = ["/hr", "/ hr", "/hour", "/ hour"];

impl Scraper for Jarvislabs {
    fn manifest(&self) -> &'static Manifest {
        &MANIFEST
    }

    fn pieces(&self, page: &Page, at: &str) -> Option<Vec<Piece>> {
        if at.starts_with('/') {
            return spot::pieces(page, at);
        }
        let document = html::document(page).ok()?;
        grid::pieces(page, &document, &tables(&document), at)
    }

    fn parse(&self, pages: &[Page]) -> Result<Parsed, ScrapeError> {
        let mut parsed = Parsed::default();
        for page in pages {
            if page.text()?.trim_start().starts_with('{') {
                read_answer(page, &mut parsed)?;
            } else {
                read_page(page, &mut parsed)?;
            }
        }
        state_what_is_available_in_any_row(&mut parsed.offers);
        Ok(parsed.with_one_price_each(key))
    }
}

/// What makes two rows the same offer.
fn key(offer: &PublishedOffer) -> (Option<String>, Option<String>, PricingModel) {
    (offer.offer_label.clone(), offer.region.clone(), offer.terms.pricing_model)
}

/// A card that is free as a container or as a virtual machine is to be had, whichever row stands first.
fn state_what_is_available_in_any_row(offers: &mut [PublishedOffer]) {
    let is_available = |offer: &&PublishedOffer| offer.terms.availability == Some(Availability::Available);
    let available: HashSet<_> = offers.iter().filter(is_available).map(key).collect();
    for offer in offers.iter_mut().filter(|offer| available.contains(&key(offer))) {
        offer.terms.availability = Some(Availability::Available);
    }
}

/// The card's name in offers: the canonical one where the manifest has the spelling, so that no order of rows decides it.
fn name(label: &str) -> &str {
    MANIFEST.labels.get(label).map_or(label, String::as_str)
}

fn read_page(page: &Page, parsed: &mut Parsed) -> Result<(), ScrapeError> {
    html::ends(page)?;
    let document = html::document(page)?;
    let mut tables = 0_usize;
    for (name, rows) in self::tables(&document) {
        let grid = Grid::of(page, &name, &rows, "th, td")?;
        let named = |is_it: &dyn Fn(&str) -> bool| -> Vec<usize> {
            let headers = grid.headers().iter().enumerate();
            headers.filter(|(_, header)| is_it(&header.to_lowercase())).map(|(column, _)| column).collect()
        };
        let (cards, memories) = (named(&|header| header == "gpu"), named(&|header| header.contains("vram")));
        let prices = named(&|header| ["/hr", "/hour", "per hour"].iter().any(|hour| header.contains(hour)));
        let ([0], [memory], [price]) = (&cards[..], &memories[..], &prices[..]) else {
            if cards.is_empty() {
                grid.rows().for_each(|_| parsed.leave_out("not a price of GPUs"));
                continue;
            }
            let found = format!("`{}`", grid.headers().join("`, `"));
            return Err(ScrapeError::changed(page, "header of a table of GPUs", "`GPU`, `VRAM` and one price of an hour", found));
        };
        tables += 1;
        for row in grid.rows() {
            parsed.take(row.label(), row.place(*price), page_offer(row, *memory, *price));
        }
    }
    if tables == 0 {
        return Err(ScrapeError::changed(page, "`table`", "a table of GPUs with prices of an hour", "none"));
    }
    Ok(())
}

/// The tables of the page, each with its name and its rows.
fn tables(document: &Html) -> Vec<(String, Vec<ElementRef<'_>>)> {
    let (row, table) = (html::selector("tr"), html::selector("table"));
    let seen = document.select(&table).filter(|table| html::is_seen(*table));
    seen.enumerate().map(|(index, table)| (format!("table {}", index + 1), table.select(&row).collect())).collect()
}

fn page_offer(row: Row<'_>, memory: usize, price: usize) -> Result<PublishedOffer, SkipReason> {
    let memory_text = row.cell(memory)?;
    let memory_gb = number(memory_text.strip_suffix("GB").unwrap_or(memory_text), "VRAM")?;
    let found = PublishedPrice::dollars(&MANIFEST, row.cell(price)?, &ENDINGS)?;
    let gpu = PublishedGpu::plain(name(row.label()), 1).of_memory(memory_gb);
    Ok(PublishedOffer::plain(gpu, Terms::of(PricingModel::OnDemand), found, row.place(price)).called(name(row.label())))
}

fn read_answer(page: &Page, parsed: &mut Parsed) -> Result<(), ScrapeError> {
    let document = json::document(page)?;
    let rows = document.field("server_meta")?.list()?;
    if rows.is_empty() {
        return Err(ScrapeError::NothingFound { page: page.name.clone(), at: "/server_meta".to_owned() });
    }
    for row in rows {
        let row = row.object()?;
        let label = row.text("gpu_type")?;
        parsed.take(label.clone(), row.place(), on_demand(&row, &label));
        parsed.take(label.clone(), row.place(), spot(&row, &label));
        row.report_unread(&MANIFEST.ignored_fields, &mut parsed.unread_fields);
    }
    document.report_unread(&MANIFEST.ignored_fields, &mut parsed.unread_fields);
    Ok(())
}

fn on_demand(row: &Object<'_>, label: &str) -> Result<PublishedOffer, SkipReason> {
    answer_offer(row, label, PricingModel::OnDemand, "price_per_hour", "num_free_devices")
}

fn spot(row: &Object<'_>, label: &str) -> Result<PublishedOffer, SkipReason> {
    // Both are read in any case: a row without a spot price has them too.
    let (workload, _) = (row.optional_text("workload_type")?, row.field("spot_num_free_devices")?);
    if row.field("spot_price")?.is_null() {
        return Err(SkipReason::OutOfScope("not sold as spot, by a null"));
    }
    match workload.as_deref() {
        Some("container") => answer_offer(row, label, PricingModel::Spot, "spot_price", "spot_num_free_devices"),
        Some("vm") => Err(SkipReason::OutOfScope("spot of a virtual machine, which is for containers only")),
        other => {
            Err(SkipReason::UnknownWord { what: "kind of workload with a spot price", word: other.unwrap_or("null").to_owned() })
        }
    }
}

fn answer_offer(
    row: &Object<'_>,
    label: &str,
    model: PricingModel,
    price: &str,
    free: &str,
) -> Result<PublishedOffer, SkipReason> {
    let value = row.field(price)?;
    let text = value.characters().trim_matches('"');
    let amount = money::positive(value.decimal()?, text)?;
    let availability = if row.field(free)?.whole()? > 0 { Availability::Available } else { Availability::SoldOut };
    let gpu = PublishedGpu::plain(name(label), 1).of_memory(row.decimal("vram")?);
    let terms = Terms { availability: Some(availability), ..Terms::of(model) };
    let place: Place = row.place();
    let mut offer = PublishedOffer::plain(gpu, terms, PublishedPrice::plain(&MANIFEST, amount, text), place).called(name(label));
    offer.region = Some(row.text("region")?.into_owned());
    offer.machine.vcpus = row.optional_decimal("cpus_per_gpu")?.filter(|cpus| *cpus > Decimal::ZERO);
    Ok(offer)
}
