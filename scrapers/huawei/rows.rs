//! One row of a region's answer → its offers.
//!
//! Never converted: a year's total stays a total, and a month stays a month.

use std::collections::{BTreeSet, HashMap, HashSet};

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

/// Codes of units, with how many of one make a whole one of ours. The singular stands after 1.
const CORES: [(&str, u32); 3] = [("BSSUNIT.pluralUnit.23", 1), ("BSSUNIT.unit.23", 1), ("dataInfo_36_", 1)];
const GIBIBYTES: [(&str, u32); 3] = [("BSSUNIT.pluralUnit.102", 1), ("BSSUNIT.unit.102", 1), ("BSSUNIT.pluralUnit.21", 1024)];

/// Takes the rows of one answer.
pub(super) fn take(list: &PriceList, region: &str, machines: &[Value], parsed: &mut Parsed) {
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
                if let Err(reason) = plans(list, &row, &base, &label, parsed) {
                    parsed.take(label, row.place(), Err(reason));
                }
                row.report_unread(&MANIFEST.ignored_fields, &mut parsed.unread_fields);
            }
            Err(reason) => parsed.take(label, row.place(), Err(reason)),
        }
    }
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
    Ok(PublishedOffer {
        site: (list.site != MANIFEST.site).then_some(list.site),
        sku: None,
        instance_type: Some(spec.into_owned()),
        offer_label: None,
        region: Some(region.to_owned()),
        zone: None,
        gpu,
        machine,
        terms: Terms { os: os(row)?, ..Terms::of(PricingModel::OnDemand) },
        price: PublishedPrice {
            amount: Decimal::ZERO,
            upfront_amount: None,
            currency_code: list.currency_code.to_owned(),
            unit: PriceUnit::Hour,
            per: MANIFEST.published().per,
            text: String::new(),
            tax_included: MANIFEST.published().tax_included,
        },
        place: row.place(),
        flags: if is_known { BTreeSet::new() } else { BTreeSet::from([UNKNOWN_HARDWARE]) },
    })
}

/// The offers of a row, one for each plan. The rows of reserved instances are kept as one skipped row.
fn plans(list: &PriceList, row: &Object, base: &PublishedOffer, label: &str, parsed: &mut Parsed) -> Result<(), SkipReason> {
    let (mut reserved, mut offers) = (0_usize, Vec::new());
    let plans = row.field("planList")?;
    for value in plans.list()? {
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
        let offer = offer(list, row, &plan, base);
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
        let reason = SkipReason::Undecoded("parts of the prices of reserved instances, which nobody has decoded");
        parsed.take(format!("{label}, rows of reserved instances: {reserved}"), plans.place(), Err(reason));
    }
    Ok(())
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
        "ONDEMAND" => match plan.field("usageMeasureId")?.whole()? {
            HOUR => (PriceUnit::Hour, PricingModel::OnDemand, None),
            measure => return Err(SkipReason::UnknownWord { what: "measure of use", word: measure.to_string() }),
        },
        "MONTHLY" => match plan.optional("periodNum").map(|number| number.whole()).transpose()? {
            None | Some(1) => (PriceUnit::Month, PricingModel::Subscription, Some(1)),
            Some(months) => return Err(SkipReason::UnknownWord { what: "number of months", word: months.to_string() }),
        },
        // The amount is of the whole period, be it one year or several.
        "YEARLY" => {
            let years = plan.field("periodNum")?.whole()?;
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

/// The operating system, which a field and the end of the code both state.
fn os(row: &Object) -> Result<Os, SkipReason> {
    let code = row.text("resourceSpecCode")?;
    let ending = code.rsplit('.').next().filter(|ending| ["linux", "win"].contains(ending));
    let stated = row.optional_text("imageSpec")?;
    match (stated.as_deref(), ending) {
        (Some(word), Some(ending)) if word != ending => {
            Err(SkipReason::Contradiction(format!("imageSpec is {word}, and the code ends in {ending}")))
        }
        (Some("linux"), _) | (None, Some("linux")) => Ok(Os::Linux),
        (Some("win"), _) | (None, Some("win")) => Ok(Os::Windows),
        (Some(word), _) => Err(SkipReason::UnknownWord { what: "operating system", word: word.to_owned() }),
        (None, _) => Err(SkipReason::FieldMissing { field: "imageSpec".to_owned() }),
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

type Key = (Site, Option<String>, Option<String>, Os, PricingModel, Option<u32>);

/// The same offer twice is one, and two prices for it are none.
pub(super) fn without_repeats(mut parsed: Parsed) -> Parsed {
    let key = |offer: &PublishedOffer| -> Key {
        let terms = &offer.terms;
        let site = offer.site.unwrap_or(MANIFEST.site);
        (site, offer.region.clone(), offer.instance_type.clone(), terms.os, terms.pricing_model, terms.commitment_months)
    };
    let mut amounts: HashMap<Key, BTreeSet<Decimal>> = HashMap::new();
    for offer in &parsed.offers {
        amounts.entry(key(offer)).or_default().insert(offer.price.amount);
    }
    let mut taken = HashSet::new();
    for offer in std::mem::take(&mut parsed.offers) {
        let key = key(&offer);
        let prices = amounts.get(&key).map_or(0, BTreeSet::len);
        if prices > 1 {
            let reason = SkipReason::Contradiction(format!("{prices} prices for the same machine, region and terms"));
            let label = offer.sku.or(offer.instance_type).unwrap_or_default();
            parsed.skipped.push(Skipped { place: offer.place, label, reason });
        } else if taken.insert(key) {
            parsed.offers.push(offer);
        } else {
            parsed.leave_out("repeated price");
        }
    }
    parsed
}
