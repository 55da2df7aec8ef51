//! A product of the price list → an offer for each of its shapes.
//!
//! Never picks one of several prices: a GPU part with two of them refuses the list.

use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::LazyLock;

use num_rational::Ratio;
use rust_decimal::Decimal;

use super::shapes::{Part, ShapeOffer, TABLE};
use super::{MANIFEST, OTHER_CATEGORY, shape_changed};
use crate::contract::{
    Machine, Page, Parsed, Place, PricingModel, PublishedGpu, PublishedOffer, PublishedPrice, ScrapeError, SkipReason, Terms,
};
use crate::json::{FieldError, FieldName, Object, Value};
use crate::manifest::Published;
use crate::money;

const CATEGORY: &str = "Compute - GPU";
static PART_NUMBER: LazyLock<FieldName> = LazyLock::new(|| FieldName::new("partNumber"));
static SERVICE_CATEGORY: LazyLock<FieldName> = LazyLock::new(|| FieldName::new("serviceCategory"));
const NOT_ON_SALE: SkipReason = SkipReason::OutOfScope("GPU part without a shape on sale");
const TWIN: SkipReason = SkipReason::OutOfScope("twin part, shape not confirmed");
/// Bare-metal machines are billed for an hour at least.
const BARE_METAL_MIN_BILLING_SECONDS: u32 = 3_600;

/// A GPU part that is sold.
struct Sold {
    number: String,
    /// What the table has of it.
    part: Option<&'static Part>,
}

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
pub(super) fn part_number<'a>(item: &Value<'a>) -> Option<(Cow<'a, str>, bool)> {
    if let (Some((number, _)), Some(category)) = (PART_NUMBER.peek(item.characters()), peeked_category(item)) {
        return Some((Cow::Borrowed(number), category == CATEGORY));
    }
    let item = item.object().ok()?;
    Some((item.text("partNumber").ok()?, item.text("serviceCategory").ok()? == CATEGORY))
}

/// The category as far as the characters of the product tell it.
fn peeked_category<'a>(item: &Value<'a>) -> Option<&'a str> {
    SERVICE_CATEGORY.peek(item.characters()).map(|(category, _)| category)
}

/// Adds what one product offers. `listed` are the shapes on sale, if a list of them is there; `amounts` are those of the
/// products before.
pub(super) fn take(
    page: &Page,
    value: &Value,
    listed: Option<&HashMap<String, Vec<ShapeOffer>>>,
    amounts: &mut HashMap<String, Decimal>,
    parsed: &mut Parsed,
) -> Result<(), ScrapeError> {
    // Nearly all products are of other categories, and are not read any further.
    if peeked_category(value).is_some_and(|category| category != CATEGORY) {
        parsed.leave_out(OTHER_CATEGORY);
        return Ok(());
    }
    let place = value.place();
    let (sold, price) = match part_and_price(page, value, listed, amounts, parsed) {
        Ok(found) => found,
        Err(Refusal::Row(reason)) => {
            parsed.take(label(value), place, Err(reason));
            return Ok(());
        }
        Err(Refusal::Page(error)) => return Err(error),
    };
    let shapes = match (listed, sold.part) {
        (Some(listed), _) => listed.get(&sold.number).cloned().unwrap_or_default(),
        (None, Some(part)) => part.shapes.iter().map(|shape| shape.offer()).collect(),
        (None, None) => Vec::new(),
    };
    if shapes.is_empty() {
        let is_twin = sold.part.is_some_and(|part| part.shapes.is_empty());
        parsed.take(label(value), place.clone(), Err(if is_twin { TWIN } else { NOT_ON_SALE }));
    }
    for shape in shapes {
        parsed.take(shape.name.clone(), place.clone(), Ok(offer(&sold, shape, price.clone(), place.clone())));
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
    listed: Option<&HashMap<String, Vec<ShapeOffer>>>,
    amounts: &mut HashMap<String, Decimal>,
    parsed: &mut Parsed,
) -> Result<(Sold, PublishedPrice), Refusal> {
    let item = value.object()?;
    let sold = part(&item, listed)?;
    let price = price(page, &item, parsed)?;
    match amounts.insert(sold.number.clone(), price.amount) {
        Some(earlier) if earlier != price.amount => {
            let found = format!("{earlier} and {} for part {}", price.amount, sold.number);
            Err(Refusal::Page(shape_changed(page, value.place().at, "one price for a part", found)))
        }
        Some(_) => Err(Refusal::Row(SkipReason::OutOfScope("repeated product"))),
        None => {
            item.report_unread(&MANIFEST.ignored_fields, &mut parsed.unread_fields);
            Ok((sold, price))
        }
    }
}

/// The GPU part that a product is, by the rule of category, name and unit. A part that the table lacks is sold where the
/// list of shapes has a machine that is billed by it.
fn part(item: &Object, listed: Option<&HashMap<String, Vec<ShapeOffer>>>) -> Result<Sold, SkipReason> {
    if item.text("serviceCategory")? != CATEGORY {
        return Err(SkipReason::OutOfScope(OTHER_CATEGORY));
    }
    let name = item.text("displayName")?.split_whitespace().collect::<Vec<_>>().join(" ");
    if name.contains("NVIDIA AI Enterprise") {
        return Err(SkipReason::OutOfScope("licence added to a GPU"));
    }
    let metric = item.text("metricName")?;
    if metric != "GPU Per Hour" {
        return Err(SkipReason::UnknownWord { what: "unit", word: metric.into_owned() });
    }
    let number = item.text("partNumber")?.into_owned();
    let part = TABLE.part(&number);
    match part {
        None if !listed.is_some_and(|listed| listed.contains_key(&number)) => {
            Err(SkipReason::UnknownMachine { instance_type: format!("{number} {name}") })
        }
        Some(part) if !name.ends_with(&format!(" - {}", part.listed_as)) => {
            Err(SkipReason::Contradiction(format!("part {number} is listed as `{name}`, the table has {}", part.listed_as)))
        }
        _ => Ok(Sold { number, part }),
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
        listings: None,
    })
}

fn offer(sold: &Sold, shape: ShapeOffer, price: PublishedPrice, place: Place) -> PublishedOffer {
    let mut terms = Terms::of(PricingModel::OnDemand);
    terms.min_billing_seconds = shape.is_bare_metal.then_some(BARE_METAL_MIN_BILLING_SECONDS);
    PublishedOffer {
        site: None,
        sku: Some(sold.number.clone()),
        instance_type: Some(shape.name),
        offer_label: None,
        region: None,
        zone: None,
        gpu: match sold.part {
            Some(part) => part.gpus(shape.gpus, shape.fabric_gbit_per_s),
            None => PublishedGpu {
                count: Some(Ratio::from_integer(shape.gpus)),
                fabric_gbit_per_s: shape.fabric_gbit_per_s,
                ..PublishedGpu::unknown()
            },
        },
        machine: Machine {
            // Cores have one thread or two, which only the table says.
            vcpus: shape.ocpus.zip(sold.part).map(|(ocpus, part)| ocpus * Decimal::from(part.vcpus_per_ocpu)),
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
