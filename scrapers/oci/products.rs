//! A product of the price list → an offer for each of its shapes.
//!
//! Never picks one of several prices: a GPU part with two of them refuses the list.

use std::collections::HashMap;

use chrono::{DateTime, Utc};
use num_rational::Ratio;
use rust_decimal::Decimal;

use super::shapes::{Part, ShapeOffer, TABLE};
use super::{MANIFEST, OTHER_CATEGORY, shape_changed};
use crate::contract::{
    GpuShare, Machine, Page, Parsed, Place, PricingModel, PublishedGpu, PublishedOffer, PublishedPrice, ScrapeError, SkipReason,
    Terms,
};
use crate::json::{FieldError, Object, Value};
use crate::manifest::Published;
use crate::money;

const CATEGORY: &str = "Compute - GPU";
const NOT_ON_SALE: SkipReason = SkipReason::OutOfScope("GPU part without a shape on sale");
const TWIN: SkipReason = SkipReason::OutOfScope("twin part, shape not confirmed");
/// Bare-metal machines are billed for an hour at least.
const BARE_METAL_MIN_BILLING_SECONDS: u32 = 3_600;

/// What a product costs when it is not understood: itself, or the whole list.
enum Refusal {
    Row(SkipReason),
    Page(ScrapeError),
}

impl From<FieldError> for Refusal {
    fn from(error: FieldError) -> Self {
        Self::Row(error.into())
    }
}

impl From<SkipReason> for Refusal {
    fn from(reason: SkipReason) -> Self {
        Self::Row(reason)
    }
}

/// A product's part number, and whether it is in the category of GPUs.
pub(super) fn part_number(item: &Value) -> Option<(String, bool)> {
    let item = item.object().ok()?;
    Some((item.text("partNumber").ok()?.into_owned(), item.text("serviceCategory").ok()? == CATEGORY))
}

/// Adds what one product offers. `listed` are the shapes on sale, if a list of them is there; `amounts` are those of the
/// products before.
pub(super) fn take(
    page: &Page,
    value: &Value,
    version: Option<DateTime<Utc>>,
    listed: Option<&HashMap<String, Vec<ShapeOffer>>>,
    amounts: &mut HashMap<String, Decimal>,
    parsed: &mut Parsed,
) -> Result<(), ScrapeError> {
    let place = value.place();
    let (part, price) = match part_and_price(page, value, amounts, parsed) {
        Ok(found) => found,
        Err(Refusal::Row(reason)) => {
            parsed.take(label(value), place, Err(reason));
            return Ok(());
        }
        Err(Refusal::Page(error)) => return Err(error),
    };
    let shapes = match listed {
        Some(listed) => listed.get(&part.number).cloned().unwrap_or_default(),
        None => part.shapes.iter().map(|shape| shape.offer()).collect(),
    };
    if shapes.is_empty() {
        parsed.take(label(value), place.clone(), Err(if part.shapes.is_empty() { TWIN } else { NOT_ON_SALE }));
    }
    for shape in shapes {
        parsed.take(shape.name.clone(), place.clone(), Ok(offer(part, shape, version, price.clone(), place.clone())));
    }
    Ok(())
}

/// What a product calls itself, for reports.
fn label(value: &Value) -> String {
    let text = |name| value.object().and_then(|item| item.text(name).map(|text| text.into_owned()));
    match (text("partNumber"), text("displayName")) {
        (Ok(number), Ok(name)) => format!("{number} {name}"),
        (Ok(one), Err(_)) | (Err(_), Ok(one)) => one,
        (Err(_), Err(_)) => "a product without a name".to_owned(),
    }
}

fn part_and_price(
    page: &Page,
    value: &Value,
    amounts: &mut HashMap<String, Decimal>,
    parsed: &mut Parsed,
) -> Result<(&'static Part, PublishedPrice), Refusal> {
    let item = value.object()?;
    let part = part(&item)?;
    let price = price(page, &item, parsed)?;
    match amounts.insert(part.number.clone(), price.amount) {
        Some(earlier) if earlier != price.amount => {
            let found = format!("{earlier} and {} for part {}", price.amount, part.number);
            Err(Refusal::Page(shape_changed(page, value.place().at, "one price for a part", found)))
        }
        Some(_) => Err(Refusal::Row(SkipReason::OutOfScope("repeated product"))),
        None => {
            item.report_unread(&MANIFEST.ignored_fields, &mut parsed.unread_fields);
            Ok((part, price))
        }
    }
}

/// The GPU part that a product is, by the rule of category, name and unit.
fn part(item: &Object) -> Result<&'static Part, SkipReason> {
    if item.text("serviceCategory")? != CATEGORY {
        return Err(OTHER_CATEGORY);
    }
    let name = item.text("displayName")?.split_whitespace().collect::<Vec<_>>().join(" ");
    if name.contains("NVIDIA AI Enterprise") {
        return Err(SkipReason::OutOfScope("licence added to a GPU"));
    }
    let metric = item.text("metricName")?;
    if metric != "GPU Per Hour" {
        return Err(SkipReason::UnknownWord { what: "unit", word: metric.into_owned() });
    }
    let number = item.text("partNumber")?;
    let part = TABLE.part(&number).ok_or_else(|| SkipReason::UnknownMachine { instance_type: format!("{number} {name}") })?;
    if name.ends_with(&format!(" - {}", part.listed_as)) {
        Ok(part)
    } else {
        Err(SkipReason::Contradiction(format!("part {number} is listed as `{name}`, the table has {}", part.listed_as)))
    }
}

/// The one price in USD. Two of them are another kind of list, and that refuses the page.
fn price(page: &Page, item: &Object, parsed: &mut Parsed) -> Result<PublishedPrice, Refusal> {
    let Published { currency_code, unit: Some(unit), per, tax_included, .. } = MANIFEST.published() else {
        unreachable!("the manifest beside this file states the unit");
    };
    let (localizations, mut prices, mut other) = (item.field("currencyCodeLocalizations")?, Vec::new(), None);
    for localization in localizations.list()? {
        let localization = localization.object()?;
        let code = localization.text("currencyCode")?;
        if code == *currency_code {
            prices.extend(localization.field("prices")?.list()?);
            localization.report_unread(&MANIFEST.ignored_fields, &mut parsed.unread_fields);
        } else {
            other = Some(code.into_owned());
        }
    }
    let price = match (prices.as_slice(), other) {
        ([price], _) => price.object()?,
        ([], Some(word)) => return Err(Refusal::Row(SkipReason::UnknownWord { what: "currency", word })),
        ([], None) => return Err(Refusal::Row(SkipReason::PriceMissing)),
        (more, _) => {
            let found = format!("{} of them", more.len());
            return Err(Refusal::Page(shape_changed(page, localizations.place().at, "one price in USD", found)));
        }
    };
    let (model, value) = (price.text("model")?, price.field("value")?);
    price.report_unread(&MANIFEST.ignored_fields, &mut parsed.unread_fields);
    if model != "PAY_AS_YOU_GO" {
        return Err(Refusal::Row(SkipReason::UnknownWord { what: "pricing model", word: model.into_owned() }));
    }
    if value.is_null() {
        return Err(Refusal::Row(SkipReason::PriceMissing));
    }
    let text = value.characters().to_owned();
    let amount = value.decimal().map_err(|_| SkipReason::PriceUnreadable { text: text.clone() })?;
    Ok(PublishedPrice {
        amount: money::positive(amount, &text)?,
        upfront_amount: None,
        currency_code: currency_code.clone(),
        unit: *unit,
        per: *per,
        text,
        tax_included: *tax_included,
    })
}

fn offer(part: &Part, shape: ShapeOffer, version: Option<DateTime<Utc>>, price: PublishedPrice, place: Place) -> PublishedOffer {
    let mut terms = Terms::of(PricingModel::OnDemand);
    terms.valid_from = version;
    terms.min_billing_seconds = shape.is_bare_metal.then_some(BARE_METAL_MIN_BILLING_SECONDS);
    PublishedOffer {
        site: None,
        sku: Some(part.number.clone()),
        instance_type: Some(shape.name),
        offer_label: None,
        region: None,
        zone: None,
        gpu: PublishedGpu {
            label: Some(part.gpu.clone()),
            count: Some(Ratio::from_integer(shape.gpus)),
            share: GpuShare::Whole,
            memory_gb: Some(Decimal::from(part.gpu_memory_gb)),
            form_factor: None,
            interconnect: part.interconnect.clone(),
            fabric_gbit_per_s: shape.fabric_gbit_per_s,
        },
        machine: Machine {
            vcpus: shape.ocpus.map(|ocpus| ocpus * Decimal::from(part.vcpus_per_ocpu)),
            system_memory_gib: shape.system_memory_gib,
            local_disk_gb: shape.local_disk_gb,
            is_bare_metal: Some(shape.is_bare_metal),
        },
        terms,
        price,
        place,
        flags: shape.flags,
    }
}
