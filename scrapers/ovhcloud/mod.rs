//! OVHcloud's order catalogue of the Public Cloud, <https://api.ovh.com/1.0/order/catalog/public/cloud?ovhSubsidiary=FR>: what a
//! machine costs by the hour and by the month, before tax. The subsidiary sets the currency and the host, so each list is a scope.
//!
//! - A price is a whole number of hundred-millionths: 275000000 is 2.75. The rounded price printed beside it is held against it.
//! - A machine stands in several rows, told apart by the end of `planCode`: by the hour, by the month, in regions of three zones
//!   (`3AZ`) and in local zones (`LZ.…`), where prices differ. Names of machines may hold dots themselves.
//! - The price of a month is another way to buy, and is never taken for 730 hours on demand.
//! - The list names no regions; an offer without one holds in all that are neither `3AZ` nor `LZ`.
//! - Machines that are no longer sold stay in the list without the tag `active`. Those that are announced and have a price carry the
//!   flag `coming_soon`.
//! - Cards are not named on every row, so `hardware.toml` does it; a row that names them and disagrees is skipped.

#[cfg(test)]
mod oracles;
mod price;
#[cfg(test)]
mod tests;

use std::collections::BTreeSet;
use std::sync::LazyLock;

use num_rational::Ratio;
use rust_decimal::Decimal;

use crate::contract::{
    GpuShare, Machine, Page, Parsed, Place, PricePer, PricingModel, PublishedGpu, PublishedOffer, PublishedPrice, ScrapeError,
    Scraper, SkipReason, Terms, UNKNOWN_HARDWARE,
};
use crate::hardware::{Hardware, KnownMachine};
use crate::json::{self, Object, Value};
use crate::manifest::Manifest;
use crate::money;
use crate::spot::{self, Spot};

/// The source.
pub struct Ovhcloud;

static MANIFEST: LazyLock<Manifest> =
    LazyLock::new(|| Manifest::parse(include_str!("manifest.toml")).expect("the manifest beside this file reads"));
static HARDWARE: LazyLock<Hardware> =
    LazyLock::new(|| Hardware::parse(include_str!("hardware.toml")).expect("the hardware table beside this file reads"));

const LIST: &str = "addons";
/// Tag of a machine that is announced, and flag of its offers: the price is published, and the machine may not be to be had yet.
const COMING_SOON: &str = "coming_soon";

impl Scraper for Ovhcloud {
    fn manifest(&self) -> &'static Manifest {
        &MANIFEST
    }

    fn machines(&self) -> Vec<KnownMachine> {
        HARDWARE.machines()
    }

    fn scope(&self, page: &Page) -> Result<Option<String>, ScrapeError> {
        let locale = json::document(page)?.field("locale")?.object()?;
        Ok(Some(locale.text("subsidiary")?.into_owned()))
    }

    fn spots(&self, _: &[Page], place: &Place, _: Option<&str>, text: &str) -> Vec<Spot> {
        vec![spot::numbers(place, text)]
    }

    fn parse(&self, pages: &[Page]) -> Result<Parsed, ScrapeError> {
        let mut parsed = Parsed::default();
        for page in pages {
            let (document, rows) = json::document_and_list(page, LIST)?;
            let locale = document.field("locale")?.object()?;
            let subsidiary = locale.text("subsidiary")?;
            if subsidiary != page.scope {
                return Err(ScrapeError::ShapeChanged {
                    page: page.name.clone(),
                    at: "/locale/subsidiary".to_owned(),
                    expected: format!("the list `{}`", page.scope),
                    found: format!("`{subsidiary}`"),
                });
            }
            let currency_code = locale.text("currencyCode")?;
            let list = List { subsidiary: &subsidiary, currency_code: &currency_code };
            if rows.is_empty() {
                return Err(ScrapeError::NothingFound { page: page.name.clone(), at: format!("/{LIST}") });
            }
            for row in rows {
                read_row(list, &row, &mut parsed);
            }
        }
        let key = |offer: &PublishedOffer| {
            (offer.instance_type.clone(), offer.region.clone(), offer.terms.pricing_model, offer.terms.plan.clone())
        };
        Ok(parsed.with_one_price_each(key))
    }
}

/// What all rows of a list have in common.
#[derive(Debug, Clone, Copy)]
struct List<'a> {
    subsidiary: &'a str,
    currency_code: &'a str,
}

fn read_row(list: List<'_>, value: &Value<'_>, parsed: &mut Parsed) {
    let row = match value.object() {
        Ok(row) => row,
        Err(error) => return parsed.take("a row", value.place(), Err(error.into())),
    };
    let label = match row.text("planCode") {
        Ok(code) => code.into_owned(),
        Err(error) => return parsed.take("a row without `planCode`", row.place(), Err(error.into())),
    };
    let offer = offer(list, &row, &label, parsed);
    parsed.take(label, row.place(), offer);
}

fn offer(list: List<'_>, row: &Object<'_>, code: &str, parsed: &mut Parsed) -> Result<PublishedOffer, SkipReason> {
    if row.text("product")? != "publiccloud-instance" {
        return Err(SkipReason::OutOfScope("not a machine of the Public Cloud"));
    }
    let flavour = row.text("invoiceName")?;
    let blobs = row.optional("blobs").map(|blobs| blobs.object()).transpose()?;
    let part = |name: &str| blobs.as_ref().and_then(|blobs| blobs.optional(name)).map(|part| part.object()).transpose();
    let (commercial, technical) = (part("commercial")?, part("technical")?);
    let brick = commercial.as_ref().map(|commercial| commercial.optional_text("brick")).transpose()?.flatten();
    let card = technical.as_ref().and_then(|technical| technical.optional("gpu")).map(|gpu| gpu.object()).transpose()?;
    let linux_name = flavour.strip_prefix("win-").unwrap_or(&flavour);
    if card.is_none() && brick.as_deref() != Some("gpu") && HARDWARE.find(linux_name).is_none() {
        return Err(SkipReason::OutOfScope("not a GPU machine"));
    }
    if linux_name != flavour {
        return Err(SkipReason::OutOfScope("the same machine with Windows"));
    }
    let tags = blobs.as_ref().and_then(|blobs| blobs.optional("tags")).map(|tags| tags.list()).transpose()?.unwrap_or_default();
    let mut words = Vec::new();
    for tag in tags {
        words.push(tag.text()?.into_owned());
    }
    let is_coming = words.iter().any(|word| word == COMING_SOON);
    if !is_coming && !words.iter().any(|word| word == "active") {
        return Err(SkipReason::OutOfScope("no longer sold"));
    }
    let (Some(technical), Some(commercial)) = (technical, commercial) else {
        return Err(SkipReason::FieldMissing { field: "technical".to_owned() });
    };
    if let Some(os) = technical.optional("os") {
        let family = os.object()?.text("family")?;
        if family != "linux" {
            return Err(SkipReason::UnknownWord { what: "operating system", word: family.into_owned() });
        }
    }
    let gpu = gpu(&flavour, card.as_ref())?;
    let plan = price::plan(code, &flavour)?;
    let (pricing, price) = price::of(row, plan.model, &commercial)?;
    let mut terms = Terms::of(plan.model);
    terms.plan = Some(list.subsidiary.to_owned());
    if plan.model == PricingModel::Subscription {
        terms.commitment_months = Some(1);
    }
    let marks = [(gpu.label.is_none(), UNKNOWN_HARDWARE), (is_coming, COMING_SOON)];
    let flags: BTreeSet<_> = marks.into_iter().filter(|(is_so, _)| *is_so).map(|(_, flag)| flag).collect();
    let offer = PublishedOffer {
        site: None,
        sku: Some(code.to_owned()),
        instance_type: Some(flavour.clone().into_owned()),
        offer_label: None,
        region: plan.area,
        zone: None,
        gpu,
        machine: machine(&technical)?,
        terms,
        price: PublishedPrice {
            amount: price.amount,
            upfront_amount: None,
            currency_code: money::currency_code(list.currency_code)?,
            unit: price.unit,
            per: PricePer::Instance,
            text: price.text,
            tax_included: MANIFEST.published().tax_included,
            listings: None,
        },
        place: pricing.place(),
        flags,
    };
    for object in [row, &pricing, &technical, &commercial].into_iter().chain(&blobs).chain(&card) {
        object.report_unread(&MANIFEST.ignored_fields, &mut parsed.unread_fields);
    }
    Ok(offer)
}

/// The table's cards, if it has the flavour and the row agrees; else what the row says.
fn gpu(flavour: &str, card: Option<&Object<'_>>) -> Result<PublishedGpu, SkipReason> {
    let stated = match card {
        Some(card) => {
            let memory = card.optional("memory").map(|memory| memory.object()).transpose()?;
            let memory_gb = memory.map(|memory| memory.decimal("size")).transpose()?;
            Some((card.text("model")?, card.field("number")?.whole()?, memory_gb))
        }
        None => None,
    };
    match (HARDWARE.find(flavour), stated) {
        (Some((known, _)), Some((model, number, memory_gb))) => {
            let is_same_memory = memory_gb.is_none_or(|memory_gb| known.memory_gb == Some(memory_gb));
            if known.count != Some(Ratio::from(number)) || !is_same_memory {
                let memory = memory_gb.map_or_else(String::new, |memory_gb| format!(" of {memory_gb} GB"));
                let said = format!("`{flavour}` is not known to have {number} × `{model}`{memory}");
                return Err(SkipReason::Contradiction(said));
            }
            Ok(known)
        }
        (Some((known, _)), None) => Ok(known),
        (None, Some((model, number, memory_gb))) if number > 0 => Ok(PublishedGpu {
            label: Some(model.into_owned()),
            count: Some(Ratio::from(number)),
            share: GpuShare::Whole,
            memory_gb,
            form_factor: None,
            interconnect: None,
            fabric_gbit_per_s: None,
        }),
        (None, Some((model, number, _))) => Err(SkipReason::Contradiction(format!("`{flavour}` has {number} × `{model}`"))),
        (None, None) => Ok(PublishedGpu::unknown()),
    }
}

/// Processors, memory and disks. The source's GB of memory are GiB.
fn machine(technical: &Object<'_>) -> Result<Machine, SkipReason> {
    let mut disks_gb = Decimal::ZERO;
    for kind in ["storage", "nvme"] {
        let Some(kind) = technical.optional(kind) else { continue };
        let Some(disks) = kind.object()?.optional("disks") else { continue };
        for disk in disks.list()? {
            let disk = disk.object()?;
            disks_gb += disk.decimal("capacity")? * disk.optional_decimal("number")?.unwrap_or(Decimal::ONE);
        }
    }
    Ok(Machine {
        vcpus: technical.field("cpu")?.object()?.optional_decimal("cores")?,
        system_memory_gib: technical.field("memory")?.object()?.optional_decimal("size")?,
        local_disk_gb: Some(disks_gb).filter(|disks_gb| !disks_gb.is_zero()),
        is_bare_metal: None,
    })
}
