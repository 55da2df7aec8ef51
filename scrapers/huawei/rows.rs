//! One row of a region's answer → its offers.
//!
//! Never converted: a year's total stays a total, and a month stays a month.

use std::borrow::Cow;
use std::collections::BTreeSet;

use rust_decimal::Decimal;

use super::card::{self, Accelerators};
use super::{MANIFEST, PriceList};
use crate::contract::{
    Os, Parsed, PriceUnit, PricingModel, PublishedOffer, PublishedPrice, Site, SkipReason, Skipped, Terms, UNKNOWN_HARDWARE,
    Upfront,
};
use crate::json::{Object, Value};
use crate::money;

const RESERVED: &str = "RI";
/// The measure of an hour.
const HOUR: u32 = 4;
const MACHINE: &str = "hws.resource.type.vm";
/// The site of Huawei's own cloud, in plans and requests.
const OWN_SITE: &str = "HWC";
/// Ends the code of a machine whose licence the customer brings.
const OWN_LICENCE: &str = ".byol";
const NOT_ON_SALE: SkipReason = SkipReason::OutOfScope("not on sale");
const RESERVED_PARTS: SkipReason = SkipReason::Undecoded("parts of the prices of reserved instances, which nobody has decoded");

/// Codes of units, with how many of one make a whole one of ours. The singular stands after 1.
const CORES: [(&str, u32); 3] = [("BSSUNIT.pluralUnit.23", 1), ("BSSUNIT.unit.23", 1), ("dataInfo_36_", 1)];
const GIBIBYTES: [(&str, u32); 3] = [("BSSUNIT.pluralUnit.102", 1), ("BSSUNIT.unit.102", 1), ("BSSUNIT.pluralUnit.21", 1024)];

/// Takes the rows of one answer, and counts those of machines with accelerators.
pub(super) fn take(list: &PriceList, region: &str, machines: &[Value], parsed: &mut Parsed) -> usize {
    let mut accelerated = 0;
    for machine in machines {
        let row = match machine.object() {
            Ok(row) => row,
            Err(error) => {
                parsed.take("a row", machine.place(), Err(error.into()));
                continue;
            }
        };
        let label = row.text("resourceSpecCode").map_or_else(|_| "a row without resourceSpecCode".to_owned(), Into::into);
        match base(list, region, &row, parsed) {
            Ok(base) => {
                accelerated += 1;
                if let Err(reason) = plans(list, &row, &base, &label, parsed) {
                    parsed.take(label, row.place(), Err(reason));
                }
                row.report_unread(&MANIFEST.ignored_fields, &mut parsed.unread_fields);
            }
            Err(reason) => parsed.take(label, row.place(), Err(reason)),
        }
    }
    accelerated
}

/// Whether skipped rows alone tell why no machine has a price: the region sells by reservation only, or rows were not
/// understood, which is counted elsewhere.
pub(super) fn is_explained(skipped: &[Skipped]) -> bool {
    let is_reserved = |row: &Skipped| row.reason == RESERVED_PARTS;
    skipped.iter().any(|row| !row.reason.is_stated_by_source()) || (!skipped.is_empty() && skipped.iter().all(is_reserved))
}

/// What all offers of a row have in common; the price is filled in for each plan.
fn base(list: &PriceList, region: &str, row: &Object, parsed: &mut Parsed) -> Result<PublishedOffer, SkipReason> {
    let spec = row.text("spec")?;
    let text = row.optional_text(card::FIELD)?;
    let card = card::read(text.as_deref())?;
    let is_said_to_have = row.optional_text("performType")?.is_some_and(|kind| kind.contains("GPU") || kind.contains("AI"));
    let Some(accelerators) = card::accelerators(&spec, &card, is_said_to_have)? else {
        return Err(SkipReason::OutOfScope("not a GPU or NPU machine"));
    };
    if card == card::Card::Unreadable {
        parsed.unread_fields.insert(card::FIELD.to_owned());
    }
    if let Some(kind) = row.optional_text("resourceType")?
        && kind != MACHINE
    {
        return Err(SkipReason::UnknownWord { what: "type of resource", word: kind.into_owned() });
    }
    currency(list, row)?;
    let Accelerators { gpu, mut machine, is_known } = accelerators;
    let stated = [("cpu", CORES, machine.vcpus), ("mem", GIBIBYTES, machine.system_memory_gib)];
    for (name, units, known) in stated {
        let amount = quantity(name, &row.text(name)?, &units)?;
        if known.is_some_and(|known| known != amount) {
            let text = format!("{spec}: {name} is {amount}, the hardware table has {}", known.unwrap_or_default());
            return Err(SkipReason::Contradiction(text));
        }
        *(if name == "cpu" { &mut machine.vcpus } else { &mut machine.system_memory_gib }) = Some(amount);
    }
    machine.local_disk_gb = local_disk(row, parsed)?;
    machine.is_bare_metal = Some(spec.starts_with("physical."));
    let location = row.optional_text("locationCode")?.filter(|code| !code.is_empty() && code != region);
    let (os, licence) = os(row, &spec)?;
    Ok(PublishedOffer {
        site: (list.site != MANIFEST.site).then_some(list.site),
        sku: None,
        instance_type: Some(spec.into_owned()),
        offer_label: None,
        region: Some(region.to_owned()),
        zone: location.map(Into::into),
        gpu,
        machine,
        terms: Terms { os, licence: licence.map(str::to_owned), ..Terms::of(PricingModel::OnDemand) },
        price: PublishedPrice {
            amount: Decimal::ZERO,
            upfront_amount: None,
            currency_code: list.currency_code.to_owned(),
            unit: PriceUnit::Hour,
            per: MANIFEST.published().per,
            text: String::new(),
            tax_included: MANIFEST.published().tax_included,
            listings: None,
        },
        place: row.place(),
        flags: if is_known { BTreeSet::new() } else { BTreeSet::from([UNKNOWN_HARDWARE]) },
    })
}

/// The offers of a row, one for each plan. The rows of reserved instances are kept as one skipped row.
fn plans(list: &PriceList, row: &Object, base: &PublishedOffer, label: &str, parsed: &mut Parsed) -> Result<(), SkipReason> {
    let (mut reserved, mut offers) = (0_usize, Vec::new());
    let list_of_plans = row.field("planList")?;
    let plans = list_of_plans.list()?;
    if plans.is_empty() {
        return Err(NOT_ON_SALE);
    }
    let is_own =
        |value: &Value| value.object().is_ok_and(|plan| site(row, &plan).is_ok_and(|site| site.as_deref() == Some(OWN_SITE)));
    let has_own = plans.iter().any(is_own);
    for value in plans {
        let plan = match value.object() {
            Ok(plan) => plan,
            Err(error) => {
                offers.push((value.place(), Err(error.into())));
                continue;
            }
        };
        if plan.text("billingMode").is_ok_and(|mode| mode == RESERVED) {
            reserved += 1;
            continue;
        }
        let offer = of_own_site(row, &plan, has_own).and_then(|()| offer(list, row, &plan, base));
        if offer.is_ok() {
            plan.report_unread(&MANIFEST.ignored_fields, &mut parsed.unread_fields);
        }
        offers.push((plan.place(), offer));
    }
    let is_month = |offer: &&PublishedOffer| offer.terms.commitment_months == Some(1);
    let month = offers.iter().filter_map(|(_, offer)| offer.as_ref().ok()).find(is_month).map(|offer| offer.price.amount);
    for (place, offer) in offers {
        parsed.take(label, place, offer.and_then(|offer| total(offer, month)));
    }
    if reserved > 0 {
        parsed.take(format!("{label}, rows of reserved instances: {reserved}"), list_of_plans.place(), Err(RESERVED_PARTS));
    }
    Ok(())
}

/// The site that a plan is of, where it or its row states one.
fn site<'a>(row: &Object<'a>, plan: &Object<'a>) -> Result<Option<Cow<'a, str>>, SkipReason> {
    Ok(plan.optional_text("siteCode")?.or(row.optional_text("siteCode")?))
}

/// A plan of another site beside one of our own is not ours; one that stands alone is of a site nobody has read about.
fn of_own_site(row: &Object, plan: &Object, has_own: bool) -> Result<(), SkipReason> {
    match site(row, plan)? {
        Some(word) if word != OWN_SITE && has_own => Err(SkipReason::OutOfScope("price of another site")),
        Some(word) if word != OWN_SITE => Err(SkipReason::UnknownWord { what: "site", word: word.into_owned() }),
        _ => Ok(()),
    }
}

/// A price of years is the total, and so above the price of one month.
fn total(offer: PublishedOffer, month: Option<Decimal>) -> Result<PublishedOffer, SkipReason> {
    match (offer.terms.commitment_months, month) {
        (Some(months), Some(month)) if months > 1 && offer.price.amount <= month => {
            let text = format!("{months} months for {}, and one month for {month}", offer.price.amount);
            Err(SkipReason::Contradiction(text))
        }
        _ => Ok(offer),
    }
}

fn offer(list: &PriceList, row: &Object, plan: &Object, base: &PublishedOffer) -> Result<PublishedOffer, SkipReason> {
    currency(list, plan)?;
    let mode = plan.text("billingMode")?;
    let (unit, model, months) = match mode.as_ref() {
        "ONDEMAND" => match plan.optional("usageMeasureId").map(|measure| measure.whole()) {
            Some(Ok(HOUR)) => (PriceUnit::Hour, PricingModel::OnDemand, None),
            _ => return Err(SkipReason::Undecoded("a price on demand that is not said to be for an hour")),
        },
        "MONTHLY" => match plan.optional("periodNum").map(|number| number.whole()).transpose()? {
            None | Some(1) => (PriceUnit::Month, PricingModel::Subscription, Some(1)),
            Some(months) => return Err(SkipReason::UnknownWord { what: "number of months", word: months.to_string() }),
        },
        // The amount is of the whole period, be it one year or several.
        "YEARLY" => {
            let Some(years) = plan.optional("periodNum") else {
                return Err(SkipReason::Undecoded("a price of years that does not say of how many"));
            };
            let years = years.whole()?;
            match years.checked_mul(12).filter(|months| *months > 0) {
                Some(months) => (PriceUnit::Term, PricingModel::Subscription, Some(months)),
                None => return Err(SkipReason::UnknownWord { what: "number of years", word: years.to_string() }),
            }
        }
        word => return Err(SkipReason::UnknownWord { what: "way of paying", word: word.to_owned() }),
    };
    let amount = plan.field("amount")?;
    if amount.is_null() {
        return Err(SkipReason::PriceMissing);
    }
    let text = amount.characters();
    let number = amount.decimal().map_err(|_| SkipReason::PriceUnreadable { text: text.to_owned() })?;
    if number.is_zero() {
        return Err(NOT_ON_SALE);
    }
    let product = plan.optional_text("productId")?.or(row.optional_text("productId")?);
    let code = row.text("resourceSpecCode")?;
    Ok(PublishedOffer {
        sku: Some(product.map_or_else(|| code.to_string(), |product| format!("{code}:{product}"))),
        terms: Terms {
            pricing_model: model,
            commitment_months: months,
            upfront: months.map(|_| Upfront::All),
            ..base.terms.clone()
        },
        price: PublishedPrice { amount: money::positive(number, text)?, unit, text: text.to_owned(), ..base.price.clone() },
        place: plan.place(),
        ..base.clone()
    })
}

/// The operating system, which a field and the end of the code after the type both state, and the licence. The price of a
/// machine for a licence of one's own includes none, whatever runs on it.
fn os(row: &Object, spec: &str) -> Result<(Os, Option<&'static str>), SkipReason> {
    let code = row.text("resourceSpecCode")?;
    let unknown = |what, word: &str| SkipReason::UnknownWord { what, word: word.to_owned() };
    let end = code.strip_prefix(spec).filter(|end| end.is_empty() || end.starts_with('.'));
    let by_code = match end.ok_or_else(|| unknown("type in resourceSpecCode", &code))? {
        "" => None,
        ".linux" => Some(Os::Linux),
        end if end.starts_with(".win") => Some(Os::Windows),
        OWN_LICENCE => None,
        _ => return Err(unknown("end of resourceSpecCode", &code)),
    };
    let licence = code.ends_with(OWN_LICENCE).then_some("byol");
    let stated = row.optional_text("imageSpec")?;
    let by_field = match stated.as_deref() {
        Some("linux") => Some(Os::Linux),
        Some("win") => Some(Os::Windows),
        Some("byol") if licence.is_some() => None,
        Some(word) => return Err(unknown("operating system", word)),
        None => None,
    };
    match (by_field, by_code) {
        (Some(field), Some(code)) if field != code => {
            Err(SkipReason::Contradiction(format!("imageSpec is {field}, and the code is of {code}")))
        }
        (Some(os), _) | (None, Some(os)) => Ok((os, licence)),
        (None, None) if licence.is_some() => Ok((Os::Linux, licence)),
        (None, None) => Err(SkipReason::FieldMissing { field: "imageSpec".to_owned() }),
    }
}

/// A currency, where one is stated, must be the list's.
fn currency(list: &PriceList, object: &Object) -> Result<(), SkipReason> {
    match object.optional_text("currency")? {
        Some(code) if code != list.currency_code => Err(SkipReason::UnknownWord { what: "currency", word: code.into_owned() }),
        _ => Ok(()),
    }
}

/// `32BSSUNIT.pluralUnit.102` → 32.
fn quantity(field: &str, text: &str, units: &[(&str, u32)]) -> Result<Decimal, SkipReason> {
    let unreadable =
        || SkipReason::FieldUnreadable { field: field.to_owned(), expected: "a number and a known unit", found: text.to_owned() };
    let end = text.find(|c: char| !c.is_ascii_digit() && c != '.').ok_or_else(unreadable)?;
    let (number, unit) = text.split_at(end);
    let (_, parts) = units.iter().find(|(code, _)| *code == unit).ok_or_else(unreadable)?;
    let number = money::decimal(number).ok_or_else(unreadable)?;
    Ok((number / Decimal::from(*parts)).normalize())
}

/// `2*1.8T NVMe SSD` → 3600 GB. A text of another form is reported and tells no size.
fn local_disk(row: &Object, parsed: &mut Parsed) -> Result<Option<Decimal>, SkipReason> {
    let Some(text) = row.optional_text("localDisk")?.filter(|text| !["", "0"].contains(&text.as_ref())) else {
        return Ok(None);
    };
    let size = || {
        let (disks, size) = text.split(' ').next()?.split_once('*')?;
        let disks: u32 = disks.parse().ok()?;
        let (size, gigabytes) = size.strip_suffix('T').map(|size| (size, 1000)).or_else(|| Some((size.strip_suffix('G')?, 1)))?;
        Some((Decimal::from(disks) * money::decimal(size)? * Decimal::from(gigabytes)).normalize())
    };
    let size = size();
    if size.is_none() {
        parsed.unread_fields.insert("localDisk".to_owned());
    }
    Ok(size)
}

/// Where, what, and on what terms.
type Key = ((Site, Option<String>, Option<String>), Option<String>, (Os, Option<String>, PricingModel, Option<u32>));

/// The same offer twice is one, and two prices for it are none.
pub(super) fn without_repeats(parsed: Parsed) -> Parsed {
    let key = |offer: &PublishedOffer| -> Key {
        let terms = &offer.terms;
        let place = (offer.site.unwrap_or(MANIFEST.site), offer.region.clone(), offer.zone.clone());
        let terms = (terms.os, terms.licence.clone(), terms.pricing_model, terms.commitment_months);
        (place, offer.instance_type.clone(), terms)
    };
    parsed.with_one_price_each(key)
}
