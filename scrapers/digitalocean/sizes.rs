//! The list of sizes, with a key: what a Droplet costs for an hour, on demand or as spot, which the size's name
//! says. `vram` is of all cards together.

use std::collections::BTreeSet;

use rust_decimal::Decimal;

use super::{Found, MANIFEST, changed, gb, offer, slug};
use crate::contract::{Availability, Machine, Page, PageRequest, Parsed, PricePer, PublishedOffer, ScrapeError, SkipReason};
use crate::json::{self, Object, Value};
use crate::money;

/// The page that follows.
///
/// # Errors
/// When the page is not the list, or leads to itself or to another host.
pub(super) fn follow(page: &Page) -> Result<Vec<PageRequest>, ScrapeError> {
    let Some(next) = next(&json::document(page)?)? else { return Ok(Vec::new()) };
    if next == page.url || !next.starts_with("https://api.digitalocean.com/v2/sizes?") {
        return Err(changed(page, "/links/pages/next", "another page of the list", &next));
    }
    let (base, number) =
        page.name.rsplit_once('-').and_then(|(base, n)| Some((base, n.parse::<u32>().ok()?))).unwrap_or((&page.name, 1));
    Ok(vec![PageRequest::get(format!("{base}-{}", number + 1), page.scope.as_str(), next).keyed()])
}

fn next(document: &Object<'_>) -> Result<Option<String>, ScrapeError> {
    let links = document.optional("links").map(|links| links.object()).transpose()?;
    let pages = links.and_then(|links| links.optional("pages")).map(|pages| pages.object()).transpose()?;
    let next = pages.map(|pages| pages.optional_text("next")).transpose()?.flatten();
    Ok(next.map(std::borrow::Cow::into_owned).filter(|next| !next.is_empty()))
}

/// Reads the list's pages, which have to hold as many sizes as the list says it has.
///
/// # Errors
/// When a page is not the list or has no sizes, or sizes are missing.
pub(super) fn read(pages: &[&Page], parsed: &mut Parsed) -> Result<(), ScrapeError> {
    let (mut rows_read, mut total) = (0, None);
    for page in pages {
        let document = json::document(page)?;
        if let (false, Some(text)) = (document.has("sizes"), document.optional("message")) {
            let text = json::start_of(text.characters());
            return Err(ScrapeError::ErrorAnswer { page: page.name.clone(), at: "/message".to_owned(), text });
        }
        let rows = document.field("sizes")?.list()?;
        if rows.is_empty() {
            return Err(ScrapeError::NothingFound { page: page.name.clone(), at: "/sizes".to_owned() });
        }
        total = Some((*page, document.field("meta")?.object()?.field("total")?.whole()?));
        rows_read += rows.len();
        for row in rows {
            read_size(&row, parsed);
        }
    }
    match total {
        Some((page, total)) if usize::try_from(total) != Ok(rows_read) => {
            Err(changed(page, "/meta/total", &format!("{total} sizes"), &rows_read.to_string()))
        }
        _ => Ok(()),
    }
}

fn read_size(value: &Value<'_>, parsed: &mut Parsed) {
    let size = match value.object() {
        Ok(size) => size,
        Err(error) => return parsed.take("a size", value.place(), Err(error.into())),
    };
    match size.text("slug") {
        Ok(slug) => {
            let row = price(&size, &slug);
            if row.is_ok() {
                size.report_unread(&MANIFEST.ignored_fields, &mut parsed.unread_fields);
            }
            parsed.take(slug, size.place(), row);
        }
        Err(error) => parsed.take("a size without slug", size.place(), Err(error.into())),
    }
}

fn price(size: &Object<'_>, name: &str) -> Result<PublishedOffer, SkipReason> {
    let Some(card) = size.optional("gpu_info") else {
        return Err(if name.starts_with("gpu-") {
            SkipReason::FieldMissing { field: "gpu_info".to_owned() }
        } else {
            SkipReason::OutOfScope("not a GPU machine")
        });
    };
    let card = card.object()?;
    let count = card.field("count")?.whole()?;
    if count == 0 {
        return Err(SkipReason::OutOfScope("not a GPU machine"));
    }
    let slug::Slug { count: count_in_name, mut terms } = slug::read(name)?;
    if count_in_name != count {
        return Err(SkipReason::Contradiction(format!("`{name}` has {count} GPUs")));
    }
    let memory = card.field("vram")?.object()?;
    let memory_gb = (gib(&memory)? / Decimal::from(count)).normalize();
    let cost = size.field("price_hourly")?;
    if cost.is_null() {
        return Err(SkipReason::PriceMissing);
    }
    let mut disks = Decimal::ZERO;
    for disk in size.field("disk_info")?.list()? {
        disks += gib(&disk.object()?.field("size")?.object()?)?;
    }
    let regions = size.field("regions")?.list()?;
    let is_there = size.field("available")?.truth()? && !regions.is_empty();
    terms.availability = Some(if is_there { Availability::Available } else { Availability::SoldOut });
    Ok(offer(Found {
        slug: Some(name.to_owned()),
        label: card.text("model")?.into_owned(),
        count,
        memory_gb: Some(memory_gb),
        machine: Machine {
            vcpus: size.optional_decimal("vcpus")?,
            system_memory_gib: size.optional_decimal("memory")?.map(|mb| (mb / Decimal::from(1024)).normalize()),
            local_disk_gb: Some(gb(disks)).filter(|disks| !disks.is_zero()),
            is_bare_metal: None,
        },
        terms,
        amount: money::positive(cost.decimal()?, cost.characters())?,
        text: cost.characters().to_owned(),
        per: PricePer::Instance,
        place: cost.place(),
        flags: BTreeSet::new(),
    }))
}

/// An amount in `gib`. What the source calls GiB of a card is its marketed GB.
fn gib(amount: &Object<'_>) -> Result<Decimal, SkipReason> {
    let unit = amount.text("unit")?;
    if unit != "gib" {
        return Err(SkipReason::UnknownWord { what: "unit of a size", word: unit.into_owned() });
    }
    Ok(amount.decimal("amount")?)
}
