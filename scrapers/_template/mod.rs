//! <https://example.com/api/prices>: what it publishes, and its dated quirks.

use std::sync::LazyLock;

use rust_decimal::Decimal;

use crate::contract::{
    Machine, Page, Parsed, PricingModel, PublishedGpu, PublishedOffer, PublishedPrice, ScrapeError, Scraper, SkipReason, Terms,
};
use crate::json::{self, Object};
use crate::manifest::Manifest;
use crate::{hardware, money};

#[cfg(test)]
mod tests;

/// The source.
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
    let (count, price) = (row.text("gpu_count")?, row.field("price")?);
    let believed = hardware::count(&count);
    let gpu = PublishedGpu {
        label: Some(row.text("gpu")?.into_owned()),
        count: Some(believed.ok_or_else(|| SkipReason::UnknownWord { what: "GPU count", word: count.into_owned() })?),
        memory_gb: row.optional_decimal("gpu_memory_gb")?,
        ..PublishedGpu::unknown()
    };
    let amount: Decimal = money::positive(price.decimal()?, price.characters())?;
    let price = PublishedPrice::plain(&MANIFEST, amount, price.characters());
    Ok(PublishedOffer {
        instance_type: Some(row.text("name")?.into_owned()),
        region: row.optional_text("region")?.map(Into::into),
        machine: Machine { vcpus: row.optional_decimal("vcpus")?, ..Machine::default() },
        ..PublishedOffer::plain(gpu, Terms::of(PricingModel::OnDemand), price, row.place())
    })
}
