//! Verda's public list of instance types, <https://api.datacrunch.io/v1/instance-types>: the price of a machine for an hour, on
//! demand and as spot, in US dollars before tax. The company was called DataCrunch until 2025.
//!
//! - Prices are texts, and the currency is written in lower case.
//! - `gpu_memory` is of all cards together. It is held against the memory in the card's name, so that a list that began to give
//!   the memory of one card is not read as cards of an eighth of their size.
//! - The list names no place and no stock: a type that is sold out stays in it.
//! - The spot price is a fixed share of the price on demand, and no market makes it; those offers carry the flag
//!   `administered_discount`. A third kind of price, which changes daily, is not in the list.
//! - Disks are rented apart. The oldest types alone have one that is included.

#[cfg(test)]
mod oracles;
#[cfg(test)]
mod tests;

use std::collections::BTreeSet;
use std::sync::LazyLock;

use num_rational::Ratio;
use rust_decimal::Decimal;

use crate::contract::{
    GpuShare, Machine, Page, Parsed, PricePer, PriceUnit, PricingModel, PublishedGpu, PublishedOffer, PublishedPrice,
    ScrapeError, Scraper, SkipReason, Terms,
};
use crate::json::{self, Object, Value};
use crate::manifest::Manifest;
use crate::money;

/// The source.
pub struct Verda;

static MANIFEST: LazyLock<Manifest> =
    LazyLock::new(|| Manifest::parse(include_str!("manifest.toml")).expect("the manifest beside this file reads"));

impl Scraper for Verda {
    fn manifest(&self) -> &'static Manifest {
        &MANIFEST
    }

    fn parse(&self, pages: &[Page]) -> Result<Parsed, ScrapeError> {
        let mut parsed = Parsed::default();
        for page in pages {
            for row in rows(page)? {
                read_row(&row, &mut parsed);
            }
        }
        Ok(parsed.with_one_price_each(|offer| (offer.instance_type.clone(), offer.terms.pricing_model)))
    }
}

/// The rows of the list; an object in its place is an error that the source states.
fn rows(page: &Page) -> Result<Vec<Value<'_>>, ScrapeError> {
    let root = json::root(page)?;
    let is_error = |object: &Object<'_>| object.has("message") || object.has("error") || object.has("code");
    if root.object().is_ok_and(|object| is_error(&object)) {
        let text = json::start_of(root.characters());
        return Err(ScrapeError::ErrorAnswer { page: page.name.clone(), at: "/".to_owned(), text });
    }
    let rows = root.list()?;
    if rows.is_empty() {
        return Err(ScrapeError::NothingFound { page: page.name.clone(), at: "/".to_owned() });
    }
    Ok(rows)
}

fn read_row(value: &Value<'_>, parsed: &mut Parsed) {
    let row = match value.object() {
        Ok(row) => row,
        Err(error) => return parsed.take("a row", value.place(), Err(error.into())),
    };
    let label = match row.text("instance_type") {
        Ok(name) => name.into_owned(),
        Err(error) => return parsed.take("a row without `instance_type`", row.place(), Err(error.into())),
    };
    let machine = match machine(&row, parsed) {
        Ok(machine) => machine,
        Err(reason) => return parsed.take(label, row.place(), Err(reason)),
    };
    for (model, field) in [(PricingModel::OnDemand, "price_per_hour"), (PricingModel::Spot, "spot_price")] {
        let offer = offer(&row, &label, &machine, model, field);
        parsed.take(format!("{label} {model}"), row.place(), offer);
    }
    row.report_unread(&MANIFEST.ignored_fields, &mut parsed.unread_fields);
}

fn machine(row: &Object<'_>, parsed: &mut Parsed) -> Result<(PublishedGpu, Machine), SkipReason> {
    let card = row.field("gpu")?.object()?;
    let count = card.field("number_of_gpus")?.whole()?;
    if count == 0 {
        return Err(SkipReason::OutOfScope("not a GPU machine"));
    }
    let (memory, cpu) = (row.field("gpu_memory")?.object()?, row.field("cpu")?.object()?);
    let (ram, storage) = (row.field("memory")?.object()?, row.field("storage")?.object()?);
    let said = card.text("description")?;
    let Some(label) = said.strip_prefix(&format!("{count}x ")) else {
        return Err(SkipReason::Contradiction(format!("the row counts {count} cards, and says `{said}`")));
    };
    let one_gb = (memory.decimal("size_in_gigabytes")? / Decimal::from(count)).normalize();
    if !fits(label, one_gb) {
        return Err(SkipReason::Contradiction(format!("{count} × `{label}` do not have {one_gb} GB each")));
    }
    let p2p = row.optional_text("p2p")?.map(|text| text.trim().to_owned());
    let gpu = PublishedGpu {
        label: Some(label.to_owned()),
        count: Some(Ratio::from(count)),
        share: GpuShare::Whole,
        memory_gb: Some(one_gb),
        form_factor: None,
        interconnect: p2p.filter(|text| !text.is_empty() && text != "/"),
        fabric_gbit_per_s: None,
    };
    let machine = Machine {
        vcpus: cpu.optional_decimal("number_of_cores")?,
        system_memory_gib: ram.optional_decimal("size_in_gigabytes")?,
        local_disk_gb: storage.optional_decimal("size_in_gigabytes")?,
        is_bare_metal: None,
    };
    for object in [&card, &memory, &cpu, &ram, &storage] {
        object.report_unread(&MANIFEST.ignored_fields, &mut parsed.unread_fields);
    }
    Ok((gpu, machine))
}

/// Whether a size is the one in a card's name, such as the 80 of `H100 SXM5 80GB`. One card's memory is counted in several ways
/// that differ by a few percent (a B300 has 262, 262.5 or 268 GB). A name without a size fits any.
fn fits(label: &str, one_gb: Decimal) -> bool {
    let named = label.rsplit(' ').next().and_then(|word| word.strip_suffix("GB")).and_then(money::decimal);
    named.is_none_or(|named| (one_gb - named).abs() * Decimal::from(100) <= named * Decimal::from(7))
}

fn offer(
    row: &Object<'_>,
    instance_type: &str,
    (gpu, machine): &(PublishedGpu, Machine),
    model: PricingModel,
    field: &str,
) -> Result<PublishedOffer, SkipReason> {
    let value = row.field(field)?;
    if value.is_null() {
        return Err(match model {
            PricingModel::Spot => SkipReason::OutOfScope("not sold as spot"),
            _ => SkipReason::PriceMissing,
        });
    }
    let text = value.characters().trim_matches('"');
    let amount = money::positive(value.decimal()?, text)?;
    let currency = row.text("currency")?;
    let is_lower = currency.chars().all(|c| c.is_ascii_lowercase());
    let currency_code = money::currency_code(&if is_lower { currency.to_uppercase() } else { currency.into_owned() })?;
    let is_spot = model == PricingModel::Spot;
    Ok(PublishedOffer {
        site: None,
        sku: Some(instance_type.to_owned()),
        instance_type: Some(instance_type.to_owned()),
        offer_label: None,
        region: None,
        zone: None,
        gpu: gpu.clone(),
        machine: machine.clone(),
        terms: Terms::of(model),
        price: PublishedPrice {
            amount,
            upfront_amount: None,
            currency_code,
            unit: PriceUnit::Hour,
            per: PricePer::Instance,
            text: text.to_owned(),
            tax_included: MANIFEST.published().tax_included,
            listings: None,
        },
        place: value.place(),
        flags: if is_spot { BTreeSet::from(["administered_discount"]) } else { BTreeSet::new() },
    })
}
