//! CloudRift's list of instance types, asked of <https://api.cloudrift.ai/api/v1/instance-types/list>: what a virtual machine
//! costs for an hour in each data centre, in US dollars before tax.
//!
//! - Prices are whole **cents** for a machine and hour. An amount that is no whole number is in another unit and is not read.
//! - Memory and disks are in bytes, and `vram` is of one card.
//! - A variant that stands in no data centre is not on offer. Nodes are counted by data centre, free ones over all of them.
//! - An error may come as a bare text with status 200.

#[cfg(test)]
mod tests;

use std::collections::BTreeSet;
use std::sync::LazyLock;

use num_rational::Ratio;
use rust_decimal::Decimal;

use crate::contract::{
    Availability, GpuShare, Machine, Page, Parsed, Place, PricePer, PriceUnit, PricingModel, PublishedGpu, PublishedOffer,
    PublishedPrice, ScrapeError, Scraper, SkipReason, Terms,
};
use crate::json::{self, Object, Value};
use crate::manifest::Manifest;
use crate::money;
use crate::spot::{self, Spot};

/// The source.
pub struct Cloudrift;

static MANIFEST: LazyLock<Manifest> =
    LazyLock::new(|| Manifest::parse(include_str!("manifest.toml")).expect("the manifest beside this file reads"));

const BYTES_PER_GIB: u64 = 1 << 30;
const BYTES_PER_GB: u64 = 1_000_000_000;

impl Scraper for Cloudrift {
    fn manifest(&self) -> &'static Manifest {
        &MANIFEST
    }

    fn spots(&self, _: &[Page], place: &Place, _: Option<&str>, text: &str) -> Vec<Spot> {
        vec![spot::numbers(place, text)]
    }

    fn parse(&self, pages: &[Page]) -> Result<Parsed, ScrapeError> {
        let mut parsed = Parsed::default();
        for page in pages {
            let root = json::root(page)?;
            let is_error = root.object().is_ok_and(|object| object.has("error") || object.has("message"));
            if root.text().is_ok() || is_error {
                let text = json::start_of(root.characters());
                return Err(ScrapeError::ErrorAnswer { page: page.name.clone(), at: "/".to_owned(), text });
            }
            let types = root.object()?.field("data")?.object()?.field("instance_types")?.list()?;
            if types.is_empty() {
                return Err(ScrapeError::NothingFound { page: page.name.clone(), at: "/data/instance_types".to_owned() });
            }
            for value in types {
                let kind = value.object()?;
                // Marked as read even where no variant has a card.
                let _ = kind.optional("brand_short");
                for variant in kind.field("variants")?.list()? {
                    read_variant(&kind, &variant, &mut parsed);
                }
                kind.report_unread(&MANIFEST.ignored_fields, &mut parsed.unread_fields);
            }
        }
        Ok(parsed.with_one_price_each(|offer| (offer.instance_type.clone(), offer.region.clone())))
    }
}

fn read_variant(kind: &Object<'_>, value: &Value<'_>, parsed: &mut Parsed) {
    let variant = match value.object() {
        Ok(variant) => variant,
        Err(error) => return parsed.take("a variant", value.place(), Err(error.into())),
    };
    let name = match variant.text("name") {
        Ok(name) => name.into_owned(),
        Err(error) => return parsed.take("a variant without name", variant.place(), Err(error.into())),
    };
    match offers(kind, &variant, &name) {
        Ok(offers) => parsed.offers.extend(offers),
        Err(reason) => return parsed.take(name, variant.place(), Err(reason)),
    }
    variant.report_unread(&MANIFEST.ignored_fields, &mut parsed.unread_fields);
}

/// One offer for each data centre that has nodes of the variant.
fn offers(kind: &Object<'_>, variant: &Object<'_>, name: &str) -> Result<Vec<PublishedOffer>, SkipReason> {
    let count = variant.field("gpu_count")?.whole()?;
    if count == 0 {
        return Err(SkipReason::OutOfScope("not a GPU machine"));
    }
    let nodes = variant.field("nodes_per_dc")?.object()?;
    let mut nodes_by_place = Vec::new();
    for (place, nodes) in nodes.values() {
        nodes_by_place.push((place.to_owned(), nodes.whole()?));
    }
    if nodes_by_place.is_empty() {
        return Err(SkipReason::OutOfScope("in no data centre"));
    }
    let free = variant.optional("available_nodes").map(|nodes| nodes.whole()).transpose()?;
    let size = |field: &str, unit: u64| -> Result<Decimal, SkipReason> {
        Ok((variant.decimal(field)? / Decimal::from(unit)).normalize())
    };
    let gpu = PublishedGpu {
        label: Some(kind.text("brand_short")?.into_owned()),
        count: Some(Ratio::from(count)),
        share: GpuShare::Whole,
        memory_gb: Some(size("vram", BYTES_PER_GIB)?),
        form_factor: None,
        interconnect: None,
        fabric_gbit_per_s: None,
    };
    let machine = Machine {
        vcpus: variant.optional_decimal("cpu_count")?,
        system_memory_gib: Some(size("dram", BYTES_PER_GIB)?),
        local_disk_gb: Some(size("disk", BYTES_PER_GB)?),
        is_bare_metal: None,
    };
    let cost = variant.field("cost_per_hour")?;
    if cost.is_null() {
        return Err(SkipReason::PriceMissing);
    }
    let amount = money::positive(Decimal::new(i64::from(cost.whole()?), 2).normalize(), cost.characters())?;
    let is_only_place = nodes_by_place.len() == 1;
    let offer = |(place, nodes): (String, u32)| {
        let mut terms = Terms::of(PricingModel::OnDemand);
        terms.availability = match (nodes, free) {
            (0, _) | (_, Some(0)) => Some(Availability::SoldOut),
            // Where there are several places, nothing says which of them has the free nodes.
            (_, Some(_)) if is_only_place => Some(Availability::Available),
            _ => None,
        };
        PublishedOffer {
            site: None,
            sku: Some(name.to_owned()),
            instance_type: Some(name.to_owned()),
            offer_label: None,
            region: Some(place),
            zone: None,
            gpu: gpu.clone(),
            machine: machine.clone(),
            terms,
            price: PublishedPrice {
                amount,
                upfront_amount: None,
                currency_code: MANIFEST.published().currency_code.clone(),
                unit: PriceUnit::Hour,
                per: PricePer::Instance,
                text: format!("{} cents", cost.characters()),
                tax_included: MANIFEST.published().tax_included,
                listings: None,
            },
            place: cost.place(),
            flags: BTreeSet::new(),
        }
    };
    Ok(nodes_by_place.into_iter().map(offer).collect())
}
