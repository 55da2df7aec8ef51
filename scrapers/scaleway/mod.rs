//! Scaleway's public product catalogue,
//! <https://api.scaleway.com/product-catalog/v2alpha1/public-catalog/products?page_size=1000&page=1>: what a machine costs in
//! each zone, before tax.
//!
//! - GPU machines are priced by the **minute**, the others by the hour. The unit stands on the row, and again in the words of
//!   its description; a row on which the two differ is skipped.
//! - A price is `units` and `nanos` together; each may be left out.
//! - Rows of machines that are no longer rented stay in the catalogue, at an old price or at zero: `status` tells them apart.
//! - The row names card and count; form and memory follow from the type's name, which `hardware.toml` reads. `80G` in
//!   `H100-2-80G` is one card's memory and the 2 is the count. A row that contradicts the table is skipped.
//! - `total_count` is of the whole catalogue, so pages that hold fewer rows are refused.

#[cfg(test)]
mod oracles;
#[cfg(test)]
mod tests;

use std::collections::BTreeSet;
use std::sync::LazyLock;

use num_rational::Ratio;
use rust_decimal::Decimal;

use crate::contract::{
    GpuShare, Machine, Page, PageRequest, Parsed, Place, PricePer, PriceUnit, PricingModel, PublishedGpu, PublishedOffer,
    PublishedPrice, ScrapeError, Scraper, SkipReason, Terms, UNKNOWN_HARDWARE,
};
use crate::hardware::{Hardware, KnownMachine};
use crate::json::{self, Object, Value};
use crate::manifest::Manifest;
use crate::money;
use crate::spot::{self, Spot};

/// The source.
pub struct Scaleway;

static MANIFEST: LazyLock<Manifest> =
    LazyLock::new(|| Manifest::parse(include_str!("manifest.toml")).expect("the manifest beside this file reads"));
static HARDWARE: LazyLock<Hardware> =
    LazyLock::new(|| Hardware::parse(include_str!("hardware.toml")).expect("the hardware table beside this file reads"));

/// Rows of a page, as asked for in the address.
const PAGE_SIZE: u32 = 1000;
const LIST: &str = "products";

impl Scraper for Scaleway {
    fn manifest(&self) -> &'static Manifest {
        &MANIFEST
    }

    fn machines(&self) -> Vec<KnownMachine> {
        HARDWARE.machines()
    }

    fn follow(&self, page: &Page) -> Result<Vec<PageRequest>, ScrapeError> {
        let (document, rows) = json::document_and_list(page, LIST)?;
        let total = document.field("total_count")?.whole()?;
        let (before, number) = page
            .url
            .rsplit_once("page=")
            .and_then(|(before, number)| Some((before, number.parse::<u32>().ok()?)))
            .ok_or_else(|| changed(page, "its address", "the number of the page at its end", &page.url))?;
        if rows.is_empty() || number.saturating_mul(PAGE_SIZE) >= total {
            return Ok(Vec::new());
        }
        let next = number + 1;
        Ok(vec![PageRequest::get(format!("{LIST}-{next}"), page.scope.as_str(), format!("{before}page={next}"))])
    }

    fn spots(&self, _: &[Page], place: &Place, _: Option<&str>, text: &str) -> Vec<Spot> {
        vec![spot::numbers(place, text)]
    }

    fn parse(&self, pages: &[Page]) -> Result<Parsed, ScrapeError> {
        let mut parsed = Parsed::default();
        let (mut rows_read, mut last_total) = (0, None);
        for page in pages {
            let (document, rows) = json::document_and_list(page, LIST)?;
            if rows.is_empty() {
                return Err(ScrapeError::NothingFound { page: page.name.clone(), at: format!("/{LIST}") });
            }
            rows_read += rows.len();
            last_total = Some((page, document.field("total_count")?.whole()?));
            for row in rows {
                read_row(&row, &mut parsed);
            }
        }
        match last_total {
            Some((page, total)) if usize::try_from(total) != Ok(rows_read) => {
                Err(changed(page, "/total_count", &format!("{total} rows in all"), &rows_read.to_string()))
            }
            _ => {
                let key = |offer: &PublishedOffer| (offer.instance_type.clone(), offer.region.clone());
                Ok(parsed.with_one_price_each(key))
            }
        }
    }
}

fn read_row(value: &Value<'_>, parsed: &mut Parsed) {
    let row = match value.object() {
        Ok(row) => row,
        Err(error) => return parsed.take("a row", value.place(), Err(error.into())),
    };
    let label = match row.text("product") {
        Ok(product) => product.into_owned(),
        Err(error) => return parsed.take("a row without `product`", row.place(), Err(error.into())),
    };
    let offer = offer(&row, &label, parsed);
    parsed.take(label, row.place(), offer);
}

fn offer(row: &Object<'_>, product: &str, parsed: &mut Parsed) -> Result<PublishedOffer, SkipReason> {
    if row.text("product_category")? != "Instance" {
        return Err(SkipReason::OutOfScope("not an instance"));
    }
    let properties = row.field("properties")?.object()?;
    let hardware = properties.field("hardware")?.object()?;
    let family = properties.field("instance")?.object()?;
    let card = hardware.optional("gpu").map(|gpu| gpu.object()).transpose()?;
    let is_gpu_range = family.text("range")? == "GPU";
    if card.is_none() && !is_gpu_range && HARDWARE.find(product).is_none() {
        return Err(SkipReason::OutOfScope("not a GPU machine"));
    }
    match row.text("status")?.as_ref() {
        "general_availability" | "public_beta" => {}
        "end_of_deployment" => return Err(SkipReason::OutOfScope("no longer rented anew")),
        "retired" => return Err(SkipReason::OutOfScope("retired")),
        word => return Err(SkipReason::UnknownWord { what: "status", word: word.to_owned() }),
    }
    let gpu = gpu(product, card.as_ref())?;
    let (unit, word) = unit(row)?;
    let price = row.field("price")?.object()?;
    let retail = price.field("retail_price")?.object()?;
    let currency_code = money::currency_code(&retail.text("currency_code")?)?;
    let (amount, text) = amount(&retail)?;
    let vcpus = hardware.field("cpu")?.object()?.field("virtual")?.object()?.optional_decimal("count")?;
    let memory = hardware.field("ram")?.object()?.optional_decimal("size")?;
    let flags = if gpu.label.is_none() { BTreeSet::from([UNKNOWN_HARDWARE]) } else { BTreeSet::new() };
    let offer = PublishedOffer {
        site: None,
        sku: Some(row.text("sku")?.into_owned()),
        instance_type: Some(product.to_owned()),
        offer_label: None,
        region: Some(row.field("locality")?.object()?.text("zone")?.into_owned()),
        zone: None,
        gpu,
        machine: Machine {
            vcpus,
            system_memory_gib: memory.map(|bytes| (bytes / Decimal::from(1_u64 << 30)).normalize()),
            local_disk_gb: None,
            is_bare_metal: None,
        },
        terms: Terms::of(PricingModel::OnDemand),
        price: PublishedPrice {
            amount,
            upfront_amount: None,
            currency_code,
            unit,
            per: PricePer::Instance,
            text: format!("{text} / {word}"),
            tax_included: MANIFEST.published().tax_included,
            listings: None,
        },
        place: price.place(),
        flags,
    };
    for object in [row, &properties, &hardware, &family, &price, &retail].into_iter().chain(&card) {
        object.report_unread(&MANIFEST.ignored_fields, &mut parsed.unread_fields);
    }
    Ok(offer)
}

/// The table's cards, if it has the type and the row agrees; else what the row says and its name spells out.
fn gpu(product: &str, card: Option<&Object<'_>>) -> Result<PublishedGpu, SkipReason> {
    let stated = match card {
        Some(card) => Some((card.text("type")?, card.field("count")?.whole()?, card.optional_text("description")?)),
        None => None,
    };
    match (HARDWARE.find(product), stated) {
        (Some((known, _)), Some((name, count, _))) => {
            let is_same_card = known.label.as_deref().is_some_and(|label| model_word(label) == model_word(&name));
            if known.count != Some(Ratio::from(count)) || !is_same_card {
                let stated = format!("`{product}` is not known to be {count} × `{name}`");
                return Err(SkipReason::Contradiction(stated));
            }
            Ok(known)
        }
        (Some((known, _)), None) => Ok(known),
        (None, Some((name, count, _))) if count > 0 => Ok(PublishedGpu {
            label: Some(name.into_owned()),
            count: Some(Ratio::from(count)),
            share: GpuShare::Whole,
            memory_gb: product.rsplit_once('-').and_then(|(_, memory)| memory.strip_suffix('G')?.parse().ok()),
            form_factor: None,
            interconnect: None,
            fabric_gbit_per_s: None,
        }),
        (None, Some((name, count, _))) => Err(SkipReason::Contradiction(format!("`{product}` has {count} × `{name}`"))),
        (None, None) => Ok(PublishedGpu::unknown()),
    }
}

/// The word of a card's name that has digits in it: `H100` of `H100-SXM`.
fn model_word(name: &str) -> Option<&str> {
    name.split(['-', ' ']).find(|word| word.contains(|c: char| c.is_ascii_digit()))
}

/// The time a price pays for, as the field says and the words of the description repeat.
fn unit(row: &Object<'_>) -> Result<(PriceUnit, String), SkipReason> {
    let measure = row.field("unit_of_measure")?.object()?;
    let word = measure.text("unit")?.into_owned();
    let unit = match word.as_str() {
        "minute" => PriceUnit::Minute,
        "hour" => PriceUnit::Hour,
        _ => return Err(SkipReason::UnknownWord { what: "unit", word }),
    };
    let size = measure.field("size")?.whole()?;
    if size != 1 {
        return Err(SkipReason::UnknownWord { what: "size of a unit", word: format!("{size} {word}") });
    }
    let description = row.optional_text("description")?;
    match description.as_deref().and_then(|text| text.rsplit_once(" per ")) {
        Some((_, said)) if said.trim_end_matches(')') != word => Err(SkipReason::Contradiction(format!(
            "priced by the {word}, and described as `{}`",
            description.unwrap_or_default()
        ))),
        _ => Ok((unit, word)),
    }
}

/// Whole units and billionths together, and the two as printed.
fn amount(retail: &Object<'_>) -> Result<(Decimal, String), SkipReason> {
    let part = |field: &str| retail.optional(field).map(|value| value.whole()).transpose();
    let (units, nanos) = match (part("units")?, part("nanos")?) {
        (None, None) => return Err(SkipReason::PriceMissing),
        (units, nanos) => (units.unwrap_or(0), nanos.unwrap_or(0)),
    };
    let text = format!("{units} units {nanos} nanos");
    if nanos >= 1_000_000_000 {
        return Err(SkipReason::PriceUnreadable { text });
    }
    let amount = (Decimal::from(units) + Decimal::new(i64::from(nanos), 9)).normalize();
    Ok((money::positive(amount, &text)?, text))
}

fn changed(page: &Page, at: &str, expected: &str, found: &str) -> ScrapeError {
    ScrapeError::ShapeChanged {
        page: page.name.clone(),
        at: at.to_owned(),
        expected: expected.to_owned(),
        found: found.to_owned(),
    }
}
