//! A row of a zone's answer → as many offers as it has prices.
//!
//! What the row says of the machine stands above the table; the table adds only the cards. Where the two contradict each
//! other there is no offer.

use super::{HARDWARE, MANIFEST, price};
use crate::contract::{
    Availability, GpuShare, Machine, Page, Parsed, Place, PublishedGpu, PublishedOffer, SCOPE_ALL, SkipReason, UNKNOWN_HARDWARE,
};
use crate::hardware;
use crate::json::{Object, Value};

pub(super) fn take(page: &Page, value: &Value, parsed: &mut Parsed) {
    let place = value.place();
    let row = match value.object() {
        Ok(row) => row,
        Err(error) => return parsed.take("a row", place, Err(error.into())),
    };
    let label = match row.text("InstanceType") {
        Ok(text) => text.into_owned(),
        Err(_) => "a row without InstanceType".to_owned(),
    };
    match offers(page, &row, &place, parsed) {
        Ok(offers) => offers.into_iter().for_each(|offer| parsed.take(label.clone(), place.clone(), offer)),
        Err(reason) => parsed.take(label, place, Err(reason)),
    }
}

fn offers(
    page: &Page,
    row: &Object,
    place: &Place,
    parsed: &mut Parsed,
) -> Result<Vec<Result<PublishedOffer, SkipReason>>, SkipReason> {
    let instance_type = row.text("InstanceType")?;
    if !has_gpu(row, &instance_type) {
        return Err(SkipReason::OutOfScope("not a GPU machine"));
    }
    let (zone, region) = zone_and_region(page, row)?;
    let (gpu, machine) = hardware_of(row, &instance_type)?;
    let is_unknown = HARDWARE.find(&instance_type).is_none();
    let availability = availability(row, parsed)?;
    let charge_type = row.text("InstanceChargeType")?;
    let price = row.field("Price")?.object()?;
    let prices = price::of(&charge_type, &price, availability == Some(Availability::SoldOut))?;
    for object in [row, &price] {
        object.report_unread(&MANIFEST.ignored_fields, &mut parsed.unread_fields);
    }
    let offer = |price: price::Price| {
        let mut flags = price.flags;
        if gpu.label.is_none() {
            flags.insert("card_not_named");
        }
        if is_unknown {
            flags.insert(UNKNOWN_HARDWARE);
        }
        if gpu.share == GpuShare::Derived {
            flags.insert("derived_share");
        }
        let mut terms = price.terms;
        terms.availability = availability;
        PublishedOffer {
            site: None,
            sku: Some(format!("{zone}:{instance_type}:{charge_type}")),
            instance_type: Some(instance_type.to_string()),
            offer_label: None,
            region: Some(region.clone()),
            zone: Some(zone.clone()),
            gpu: gpu.clone(),
            machine: machine.clone(),
            terms,
            price: price.price,
            place: place.clone(),
            flags,
        }
    };
    Ok(prices.into_iter().map(|price| price.map(offer)).collect())
}

/// Whether the row is of a machine with GPUs. A count that cannot be read is taken for one, so that it is reported.
fn has_gpu(row: &Object, instance_type: &str) -> bool {
    let counts = |name| !matches!(row.optional_decimal(name), Ok(count) if count.is_none_or(|count| count.is_zero()));
    counts("GpuCount") || counts("Gpu") || HARDWARE.find(instance_type).is_some()
}

/// The zone, and the region that was asked for, with which its code begins. `ap-guangzhou-6`, `ap-guangzhou`
fn zone_and_region(page: &Page, row: &Object) -> Result<(String, String), SkipReason> {
    let zone = row.text("Zone")?;
    let contradiction = |what: &str| SkipReason::Contradiction(format!("a row of zone {zone} in the answer for {what}"));
    if page.scope != SCOPE_ALL && page.scope != zone {
        return Err(contradiction(&page.scope));
    }
    let region_of = |zone: &str| {
        let (region, number) = zone.rsplit_once('-')?;
        (!number.is_empty() && number.chars().all(|c| c.is_ascii_digit())).then(|| region.to_owned())
    };
    let region = region_of(&zone).ok_or_else(|| SkipReason::UnknownWord { what: "zone", word: zone.to_string() })?;
    match page.url.split(['?', '&']).find_map(|part| part.strip_prefix("region=")) {
        Some(asked) if asked != region => Err(contradiction(asked)),
        _ => Ok((zone.to_string(), region)),
    }
}

/// The cards from the table, and what the row says of the rest, once the row does not contradict the table. A type that
/// the table lacks has the cards' number from the row, and nothing else about them.
fn hardware_of(row: &Object, instance_type: &str) -> Result<(PublishedGpu, Machine), SkipReason> {
    let family = row.text("InstanceFamily")?;
    let (mut gpu, mut machine) = match HARDWARE.find(instance_type) {
        Some((gpu, machine)) => {
            check(row, &gpu)?;
            (gpu, machine)
        }
        None => (unknown(row)?, Machine::default()),
    };
    // Virtual workstations have a profile of a card, also where the profile is as large as the card.
    if family.ends_with("vw") && gpu.share != GpuShare::Derived {
        gpu.share = GpuShare::FixedSlice;
    }
    machine.vcpus = Some(row.decimal("Cpu")?);
    machine.system_memory_gib = Some(row.decimal("Memory")?);
    machine.is_bare_metal = Some(family.starts_with("BM") || family.starts_with("HCC"));
    Ok((gpu, machine))
}

/// The count of a type that the table lacks. That a fraction is a fixed share of the card is documented only for the types
/// of the table: 0.33 is a third that was rounded, and no price of a whole card follows from such a row.
fn unknown(row: &Object) -> Result<PublishedGpu, SkipReason> {
    let count = row.optional_decimal("GpuCount")?.and_then(hardware::count_of);
    let share = if count.is_none_or(|count| count.is_integer()) { GpuShare::Whole } else { GpuShare::Derived };
    Ok(PublishedGpu { count, share, ..PublishedGpu::unknown() })
}

fn check(row: &Object, gpu: &PublishedGpu) -> Result<(), SkipReason> {
    let count = row.decimal("GpuCount")?;
    if hardware::count_of(count) != gpu.count {
        let known = gpu.count.map_or_else(|| "none".to_owned(), |count| count.to_string());
        let text = format!("GpuCount is {count}, the hardware table has {known}");
        return Err(SkipReason::Contradiction(text));
    }
    let remark = row.optional_text("Remark")?;
    if let (Some(named), Some(label)) = (remark.as_deref().and_then(card_in), gpu.label.as_deref())
        && label.split(' ').next().is_some_and(|card| !card.eq_ignore_ascii_case(named))
    {
        return Err(SkipReason::Contradiction(format!("Remark names {named}, the hardware table {label}")));
    }
    Ok(())
}

/// The card that a remark such as `8 * NVIDIA Tesla V100-NVLink-32G` names; `None` where it plainly names none.
pub(super) fn card_in(remark: &str) -> Option<&str> {
    let (_, after) = remark.split_once("NVIDIA")?;
    let words = after.split(|c: char| !c.is_ascii_alphanumeric()).filter(|word| !word.is_empty() && *word != "Tesla");
    words.take(1).find(|word| word.starts_with(|c: char| c.is_ascii_uppercase()) && word.contains(|c: char| c.is_ascii_digit()))
}

/// Whether the machine can be had. A machine on sale keeps its price where the word for its stock is not known: that word is
/// reported, and nothing is said of the stock.
fn availability(row: &Object, parsed: &mut Parsed) -> Result<Option<Availability>, SkipReason> {
    let (status, stock) = (row.text("Status")?, row.optional_text("StatusCategory")?);
    match (status.as_ref(), stock.as_deref()) {
        ("SOLD_OUT", _) | ("SELL", Some("WithoutStock")) => Ok(Some(Availability::SoldOut)),
        ("SELL", Some("UnderStock")) => Ok(Some(Availability::Low)),
        ("SELL", None | Some("EnoughStock" | "NormalStock")) => Ok(Some(Availability::Available)),
        ("SELL", Some(word)) => {
            parsed.unread_fields.insert(format!("StatusCategory={word}"));
            Ok(None)
        }
        (word, _) => Err(SkipReason::UnknownWord { what: "availability", word: word.to_owned() }),
    }
}
