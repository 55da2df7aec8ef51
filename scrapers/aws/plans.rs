//! The savings plans of a region: hourly rates that replace a machine's own price for those who promise to spend.
//!
//! In: the CSV of one region. Out: offers. A rate says itself what it is for: its machine type and region, and by usage and
//! operation the tenancy and the system. A rate of any other use is none of ours.

use std::sync::LazyLock;

use chrono::DateTime;

use super::lines::{HEAD_LINES, List};
use super::machines::{self, Offered, Stated};
use super::prices::{plain_operation, usage_kind};
use super::reservations::upfront;
use super::{MANIFEST, indexes, places};
use crate::contract::{
    Page, Parsed, Place, PricingModel, PublishedOffer, SCOPE_ALL, SCOPE_PART, ScrapeError, SkipReason, Tenancy, Terms,
};
use crate::money;
use crate::sieve::Sieve;

/// Rises whenever other lines are kept.
pub(super) const SIEVE_NAME: &str = "aws-plans-1";

/// Keeps the rates of accelerated machines. No value of the list is quoted.
pub(super) static SIEVE: LazyLock<Sieve> = LazyLock::new(|| {
    let needles = machines::needles(',');
    Sieve::new(SIEVE_NAME, HEAD_LINES, &needles.iter().map(String::as_str).collect::<Vec<_>>())
});

/// The part of a region's scope that its savings plans are: their format may change without that of its prices.
const PART: &str = "plans";

/// Name of the offer in the list.
const OFFER_CODE: &str = "AmazonComputeSavingsPlan";

const COLUMNS: [&str; 12] = [
    "RateCode",
    "Unit",
    "EffectiveDate",
    "DiscountedRate",
    "Currency",
    "DiscountedServiceCode",
    "DiscountedUsageType",
    "DiscountedOperation",
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

/// The scope of the savings plans of a region.
pub(super) fn scope_of(region: &str) -> String {
    format!("{region}{SCOPE_PART}{PART}")
}

/// The scope of a list, told from its rates; none when it holds several regions.
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
    let region = region.map(|region| String::from_utf8_lossy(region).into_owned()).or_else(|| indexes::region_in(&page.url));
    Ok(region.map(|region| scope_of(&region)))
}

/// Reads a list.
pub(super) fn read(page: &Page, parsed: &mut Parsed) -> Result<(), ScrapeError> {
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
        let mut texts = [""; WIDTH];
        for (text, slot) in texts.iter_mut().zip(slots) {
            *text = std::str::from_utf8(slot).map_err(|_| row.changed("UTF-8 text", "other bytes"))?;
        }
        parsed.take(texts[INSTANCE_TYPE], row.place(), rate(page, &texts, row.place()));
    }
    Ok(())
}

fn rate(page: &Page, texts: &[&str; WIDTH], place: Place) -> Result<PublishedOffer, SkipReason> {
    let [
        rate_code,
        unit,
        effective,
        rate,
        currency,
        service,
        usage,
        operation,
        purchase,
        length,
        length_unit,
        family,
        region,
        instance_type,
    ] = *texts;
    let unknown = |what, word: &str| Err(SkipReason::UnknownWord { what, word: word.to_owned() });
    if service != "AmazonEC2" {
        return Err(SkipReason::OutOfScope("savings plan for another service"));
    }
    let tenancy = match usage_kind(usage) {
        "BoxUsage" => Tenancy::Shared,
        "DedicatedUsage" => Tenancy::Dedicated,
        "UnusedBox" | "UnusedDed" | "Reservation" | "DedicatedRes" => {
            return Err(SkipReason::OutOfScope("savings plan for a capacity reservation"));
        }
        "HostUsage" | "HostBoxUsage" => return Err(SkipReason::OutOfScope("savings plan for a dedicated host")),
        _ => return Err(SkipReason::OutOfScope("savings plan for another usage")),
    };
    let Some(os) = plain_operation(operation) else {
        return Err(SkipReason::OutOfScope("savings plan for another operation than running plain machines"));
    };
    let valid_from = DateTime::parse_from_rfc3339(effective).map_err(|_| SkipReason::FieldUnreadable {
        field: "EffectiveDate".to_owned(),
        expected: "a time with its zone",
        found: format!("`{effective}`"),
    })?;
    if valid_from > page.observed_at {
        return Err(SkipReason::OutOfScope("price announced for later"));
    }
    if usage.split_once(':').map(|(_, machine)| machine) != Some(instance_type) {
        return Err(SkipReason::Contradiction(format!("a rate for {instance_type} of the usage {usage}")));
    }
    let own = page.scope.split(SCOPE_PART).next().unwrap_or(&page.scope);
    if own != SCOPE_ALL && region != own && !places::is_zone_of(region.as_bytes(), own.as_bytes()) {
        return Err(SkipReason::Contradiction(format!("a rate for `{region}` in the list of {own}")));
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
    let amount = money::decimal(rate).ok_or_else(|| SkipReason::PriceUnreadable { text: rate.to_owned() })?;
    let offered = Offered {
        sku: rate_code.to_owned(),
        instance_type: instance_type.to_owned(),
        region: region.to_owned(),
        found: machines::find(instance_type, Stated::default())?,
        terms: Terms {
            commitment_months: Some(months),
            upfront: Some(upfront(purchase)?),
            os,
            plan: Some(plan.to_owned()),
            tenancy: Some(tenancy),
            valid_from: Some(valid_from.to_utc()),
            ..Terms::of(PricingModel::SavingsPlan)
        },
        amount: money::positive(amount, rate)?,
        upfront_amount: None,
        currency_code: money::currency_code(currency)?,
        text: rate.to_owned(),
        place,
    };
    Ok(offered.into())
}
