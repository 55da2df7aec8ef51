//! The savings plans of a region: hourly rates that replace a machine's own price for those who promise to spend.
//!
//! In: the CSV of one region, and the machines of its price list. Out: offers. A rate is taken only with the SKU that it
//! lowers: what the rate is for stands there and not in the list of rates.

use std::sync::LazyLock;

use chrono::DateTime;

use super::lines::{HEAD_LINES, List};
use super::machines;
use super::prices::Priced;
use super::reservations::upfront;
use super::{MANIFEST, indexes};
use crate::contract::{Page, Parsed, Place, PricingModel, PublishedOffer, ScrapeError, SkipReason};
use crate::money;
use crate::sieve::Sieve;

/// Rises whenever other lines are kept.
pub(super) const SIEVE_NAME: &str = "aws-plans-1";

/// Keeps the rates of accelerated machines. No value of the list is quoted.
pub(super) static SIEVE: LazyLock<Sieve> = LazyLock::new(|| {
    let needles = machines::needles(',');
    Sieve::new(SIEVE_NAME, HEAD_LINES, &needles.iter().map(String::as_str).collect::<Vec<_>>())
});

/// Name of the offer in the list.
const OFFER_CODE: &str = "AmazonComputeSavingsPlan";

const COLUMNS: [&str; 11] = [
    "RateCode",
    "Unit",
    "EffectiveDate",
    "DiscountedRate",
    "Currency",
    "DiscountedSKU",
    "DiscountedServiceCode",
    "PurchaseOption",
    "LeaseContractLength",
    "LeaseContractLengthUnit",
    "Product Family",
];
const REGION: usize = COLUMNS.len();
const INSTANCE_TYPE: usize = REGION + 1;
const WIDTH: usize = INSTANCE_TYPE + 1;

fn columns(list: &List<'_>) -> Result<Vec<(usize, usize)>, ScrapeError> {
    let names = COLUMNS.iter().copied().chain(["DiscountedRegionCode", "DiscountedInstanceType"]);
    let mut wanted =
        names.enumerate().map(|(slot, name)| Ok((list.column(name)?, slot))).collect::<Result<Vec<_>, ScrapeError>>()?;
    wanted.sort_unstable();
    Ok(wanted)
}

/// The region of a list, told from its rates; none when it holds several.
pub(super) fn scope(page: &Page) -> Result<Option<String>, ScrapeError> {
    let list = List::open(page, OFFER_CODE)?;
    let columns = columns(&list)?;
    let mut region: Option<&[u8]> = None;
    for mut row in list.rows() {
        let mut slots = [&[][..]; WIDTH];
        row.fill(&columns, &mut slots)?;
        if !machines::is_accelerated(slots[INSTANCE_TYPE]) {
            continue;
        }
        if region.is_some_and(|region| region != slots[REGION]) {
            return Ok(None);
        }
        region = Some(slots[REGION]);
    }
    Ok(region.map(|region| String::from_utf8_lossy(region).into_owned()).or_else(|| indexes::region_in(&page.url)))
}

/// Reads a list.
pub(super) fn read(page: &Page, machines: &Priced, parsed: &mut Parsed) -> Result<(), ScrapeError> {
    let list = List::open(page, OFFER_CODE)?;
    let columns = columns(&list)?;
    let is_read = |name: &str| COLUMNS.contains(&name) || name == "DiscountedInstanceType";
    let is_unread = |name: &&&str| !is_read(name) && !MANIFEST.ignored_fields.iter().any(|known| known == **name);
    parsed.unread_fields.extend(list.columns().iter().filter(is_unread).map(|name| (*name).to_owned()));
    for mut row in list.rows() {
        let mut slots = [&[][..]; WIDTH];
        row.fill(&columns, &mut slots)?;
        row.end()?;
        if !machines::is_accelerated(slots[INSTANCE_TYPE]) {
            continue;
        }
        // Without the prices nothing says what a rate is for.
        if !machines.has_list {
            return Err(ScrapeError::PageMissing {
                page: page.name.clone(),
                at: row.place().at,
                next: format!("{}{}", indexes::PRICES, page.scope),
            });
        }
        let mut texts = [""; WIDTH];
        for (text, slot) in texts.iter_mut().zip(slots) {
            *text = std::str::from_utf8(slot).map_err(|_| row.changed("UTF-8 text", "other bytes"))?;
        }
        let sku = texts[5];
        match machines.of(sku) {
            None => parsed.leave_out("savings plan for another use of a machine"),
            Some(base) => parsed.take(texts[INSTANCE_TYPE], row.place(), rate(&texts, base, row.place())),
        }
    }
    Ok(())
}

fn rate(texts: &[&str; WIDTH], base: &PublishedOffer, place: Place) -> Result<PublishedOffer, SkipReason> {
    let [rate_code, unit, effective, rate, currency, _, service, purchase, length, length_unit, family, region, instance_type] =
        *texts;
    let unknown = |what, word: &str| Err(SkipReason::UnknownWord { what, word: word.to_owned() });
    if service != "AmazonEC2" {
        return Err(SkipReason::OutOfScope("savings plan for another service"));
    }
    if base.instance_type.as_deref() != Some(instance_type) || base.region.as_deref() != Some(region) {
        return Err(SkipReason::Contradiction(format!("a rate for {instance_type} in {region} with the SKU of another machine")));
    }
    if unit != "Hrs" {
        return unknown("unit", unit);
    }
    let plan = match family {
        "ComputeSavingsPlans" => "compute",
        "EC2InstanceSavingsPlans" => "instance",
        _ => return unknown("savings plan", family),
    };
    let months = match (length, length_unit) {
        ("1", "year") => 12,
        ("3", "year") => 36,
        _ => return unknown("term", &format!("{length} {length_unit}")),
    };
    let valid_from = DateTime::parse_from_rfc3339(effective).map_err(|_| SkipReason::FieldUnreadable {
        field: "EffectiveDate".to_owned(),
        expected: "a time with its zone",
        found: format!("`{effective}`"),
    })?;
    let amount = money::decimal(rate).ok_or_else(|| SkipReason::PriceUnreadable { text: rate.to_owned() })?;
    let mut offer = base.clone();
    offer.sku = Some(rate_code.to_owned());
    offer.terms.pricing_model = PricingModel::SavingsPlan;
    offer.terms.commitment_months = Some(months);
    offer.terms.upfront = Some(upfront(purchase)?);
    offer.terms.plan = Some(plan.to_owned());
    offer.terms.valid_from = Some(valid_from.to_utc());
    offer.terms.min_billing_seconds = None;
    offer.price.amount = money::positive(amount, rate)?;
    offer.price.currency_code = money::currency_code(currency)?;
    rate.clone_into(&mut offer.price.text);
    offer.place = place;
    Ok(offer)
}
