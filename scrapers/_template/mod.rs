//! https://example.com/api/prices: what it publishes, and its dated quirks.

use std::collections::BTreeSet;
use std::sync::LazyLock;

use crate::contract::{
    GpuShare, Machine, Page, Parsed, PricePer, PriceUnit, PricingModel, PublishedGpu, PublishedOffer, PublishedPrice, ScrapeError,
    Scraper, SkipReason, Terms,
};
use crate::json::{self, Object};
use crate::manifest::Manifest;
use crate::{hardware, money};

/// The provider's list of machines.
pub struct Template;

static MANIFEST: LazyLock<Manifest> =
    LazyLock::new(|| Manifest::parse(include_str!("manifest.toml")).expect("the manifest beside this file reads"));

impl Scraper for Template {
    fn manifest(&self) -> &'static Manifest {
        &MANIFEST
    }

    fn parse(&self, pages: &[Page]) -> Result<Parsed, ScrapeError> {
        let mut parsed = Parsed::default();
        for page in pages {
            let rows = json::document(page)?.field("machines")?.list()?;
            if rows.is_empty() {
                return Err(ScrapeError::NothingFound { page: page.name.clone(), at: "/machines".to_owned() });
            }
            for row in rows {
                let object = row.object();
                let label = object.as_ref().ok().and_then(|row| row.text("name").ok()).map_or_else(String::new, Into::into);
                let offer = object.map_err(SkipReason::from).and_then(|object| {
                    let offer = offer(&object)?;
                    object.report_unread(&MANIFEST.ignored_fields, &mut parsed.unread_fields);
                    Ok(offer)
                });
                parsed.take(label, row.place(), offer);
            }
        }
        Ok(parsed)
    }
}

fn offer(row: &Object<'_>) -> Result<PublishedOffer, SkipReason> {
    let count = row.text("gpu_count")?;
    let price = row.field("price")?;
    Ok(PublishedOffer {
        site: None,
        sku: None,
        instance_type: Some(row.text("name")?.into_owned()),
        offer_label: None,
        region: row.optional_text("region")?.map(Into::into),
        zone: None,
        gpu: PublishedGpu {
            label: Some(row.text("gpu")?.into_owned()),
            count: Some(hardware::count(&count).ok_or_else(|| SkipReason::UnknownWord { what: "GPU count", word: count.into_owned() })?),
            share: GpuShare::Whole,
            memory_gb: row.optional_decimal("gpu_memory_gb")?,
            form_factor: None,
            interconnect: None,
            fabric_gbit_per_s: None,
        },
        machine: Machine { vcpus: row.optional_decimal("vcpus")?, ..Machine::default() },
        terms: Terms::of(PricingModel::OnDemand),
        price: PublishedPrice {
            amount: money::positive(price.decimal()?, price.characters())?,
            upfront_amount: None,
            currency_code: money::currency_code(&MANIFEST.published().currency_code)?,
            unit: PriceUnit::Hour,
            per: PricePer::Instance,
            text: price.characters().to_owned(),
            tax_included: MANIFEST.published().tax_included,
            listings: None,
        },
        place: row.place(),
        flags: BTreeSet::new(),
    })
}
