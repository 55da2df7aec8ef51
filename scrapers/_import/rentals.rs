//! The daily JSON of gpurentalprices: a list of offers, each the price of one GPU for an hour in dollars.

use std::collections::HashMap;

use chrono::{DateTime, Utc};
use rust_decimal::Decimal;
use serde::Deserialize;
use serde_json::value::RawValue;

use super::{AMOUNT_ROUNDED, History, HistoryNight, Importer, provider_of};
use crate::contract::{
    Page, Parsed, Place, PricePer, PriceUnit, PricingModel, PublishedGpu, PublishedOffer, PublishedPrice, ScrapeError,
    SkipReason, Skipped, Terms,
};
use crate::import::mapping::Mapping;
use crate::money;
use crate::plain::MACHINE_NOT_STATED;

#[derive(Deserialize)]
struct Day<'a> {
    generated_at: DateTime<Utc>,
    #[serde(borrow)]
    offers: Vec<Offer<'a>>,
    #[serde(default)]
    providers: HashMap<String, Seller>,
}

/// How the tracker's reading of a seller went.
#[derive(Deserialize)]
struct Seller {
    #[serde(default)]
    stale: bool,
}

#[derive(Deserialize)]
struct Offer<'a> {
    provider: String,
    gpu: String,
    #[serde(borrow)]
    vram_gb: Option<&'a RawValue>,
    #[serde(borrow)]
    usd_hr: &'a RawValue,
    kind: String,
    #[serde(borrow)]
    min_gpus: Option<&'a RawValue>,
}

impl Day<'_> {
    /// Whether the tracker says that it repeats an earlier day of a seller.
    fn is_stale(&self, seller: &str) -> bool {
        self.providers.get(seller).is_some_and(|seller| seller.stale)
    }
}

fn day(page: &Page) -> Result<Day<'_>, ScrapeError> {
    serde_json::from_str(page.text()?).map_err(|error| ScrapeError::WrongFormat {
        page: page.name.clone(),
        expected: "a day of gpurentalprices in JSON".to_owned(),
        found: error.to_string(),
    })
}

/// The one night of a file.
pub(super) fn history(mapping: &Mapping, page: &Page) -> Result<History, ScrapeError> {
    let day = day(page)?;
    // Of a seller that the tracker could not read that day nobody knows anything: it is not there, which is no empty list.
    let was_read = |offer: &&Offer<'_>| !day.is_stale(&offer.provider);
    let sellers = day.offers.iter().filter(was_read).map(|offer| provider_of(mapping, &offer.provider)).collect();
    Ok(History { nights: vec![HistoryNight { at: day.generated_at, sellers, body: None }], undated: Vec::new() })
}

/// Reads the offers of the importer's seller.
pub(super) fn read(importer: &Importer, page: &Page, parsed: &mut Parsed) -> Result<(), ScrapeError> {
    let day = day(page)?;
    for (index, offer) in day.offers.iter().enumerate().filter(|(_, offer)| importer.sells_as(&offer.provider)) {
        if day.is_stale(&offer.provider) {
            parsed.leave_out("the tracker says that it repeats an earlier day");
            continue;
        }
        let place = Place { page: page.name.clone(), at: format!("/offers/{index}/usd_hr") };
        match read_offer(importer, offer, &place) {
            Ok(offer) => parsed.offers.push(offer),
            Err(reason) => parsed.skipped.push(Skipped { place, label: format!("{} {}", offer.gpu, offer.kind), reason }),
        }
    }
    Ok(())
}

fn read_offer(importer: &Importer, offer: &Offer<'_>, place: &Place) -> Result<PublishedOffer, SkipReason> {
    let (model, plan) = match offer.kind.as_str() {
        "on-demand" => (PricingModel::OnDemand, None),
        "spot" => (PricingModel::Spot, None),
        // Ways to buy of one seller's own, each on demand under its own terms.
        plan @ ("serverless" | "secure" | "community") => (PricingModel::OnDemand, Some(plan.to_owned())),
        word => return Err(SkipReason::UnknownWord { what: "kind", word: word.to_owned() }),
    };
    let printed = PublishedPrice {
        amount: Decimal::ZERO,
        upfront_amount: None,
        currency_code: "USD".to_owned(),
        unit: PriceUnit::Hour,
        per: PricePer::Gpu,
        text: String::new(),
        tax_included: None,
        listings: None,
    };
    let (price, is_rounded) = importer.price(offer.usd_hr.get(), printed)?;
    let number = |raw: &RawValue, field: &str| {
        money::decimal(raw.get()).ok_or_else(|| SkipReason::unreadable(field, "a number", raw.get()))
    };
    let memory = offer.vram_gb.filter(|raw| raw.get() != "null").map(|raw| number(raw, "vram_gb")).transpose()?;
    let least = offer.min_gpus.filter(|raw| raw.get() != "null").map(|raw| number(raw, "min_gpus")).transpose()?;
    let gpu = PublishedGpu { memory_gb: memory, ..PublishedGpu::plain(offer.gpu.clone(), 1) };
    let mut label = offer.gpu.clone();
    label.extend(memory.map(|gb| format!(" {gb} GB")));
    label.extend(least.map(|least| format!(", at least {least}")));
    let terms = Terms { plan, ..Terms::of(model) };
    let offer = PublishedOffer::plain(gpu, terms, price, place.clone()).called(label).marked(MACHINE_NOT_STATED);
    Ok(if is_rounded { offer.marked(AMOUNT_ROUNDED) } else { offer })
}
