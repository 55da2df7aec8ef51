//! A row of an answer in, one listing out.

use rust_decimal::Decimal;

use super::MANIFEST;
use crate::contract::{
    Availability, Machine, Parsed, PricingModel, PublishedGpu, PublishedOffer, PublishedPrice, SkipReason, Terms,
};
use crate::hardware;
use crate::json::{Object, Value};
use crate::money;

/// The one tier that is published.
const VERIFIED: &str = "verified";

/// A host is left out below this, as a share of one.
const RELIABILITY_MIN: Decimal = Decimal::from_parts(9, 0, 0, false, 1);

/// Digits after the point that are read of an amount: one less than the ledger keeps, because a mean of two takes one more.
const AMOUNT_DIGITS: u32 = 11;

/// Sizes that cards are sold with, in GB, of which a driver shows up to 7 % less: 22.5 of 24. A rebuilt card with 22 is no such
/// size, and a memory near to none of them is not read.
const SOLD_GB: &[u32] = &[4, 6, 8, 10, 11, 12, 16, 20, 24, 32, 40, 48, 64, 80, 94, 96, 141, 180, 192, 288];

/// MiB of a GiB.
const MIB_PER_GIB: u32 = 1_024;

/// Adds a row as what it turns out to be. `card` is the one that was asked for.
pub(super) fn take(value: &Value<'_>, model: PricingModel, card: Option<&str>, parsed: &mut Parsed) {
    let row = match value.object() {
        Ok(row) => row,
        Err(error) => return parsed.take("a listing", value.place(), Err(error.into())),
    };
    let name = match row.text("gpu_name") {
        Ok(name) => name.into_owned(),
        Err(error) => return parsed.take("a listing without `gpu_name`", row.place(), Err(error.into())),
    };
    let listing = match card {
        Some(card) if card != name => Err(SkipReason::Contradiction(format!("asked for `{card}`, answered `{name}`"))),
        _ => listing(&row, &name, model),
    };
    let is_read = listing.is_ok();
    parsed.take(name, row.place(), listing);
    if is_read {
        row.report_unread(&MANIFEST.ignored_fields, &mut parsed.unread_fields);
    }
}

fn listing(row: &Object<'_>, name: &str, model: PricingModel) -> Result<PublishedOffer, SkipReason> {
    if !row.field("rentable")?.truth()? {
        return Err(SkipReason::OutOfScope("not for rent now"));
    }
    let verification = row.text("verification")?;
    match verification.as_ref() {
        VERIFIED => {}
        "unverified" | "deverified" => return Err(SkipReason::OutOfScope("a host that is not verified")),
        word => return Err(SkipReason::UnknownWord { what: "verification", word: word.to_owned() }),
    }
    let reliability = row.decimal("reliability2")?;
    if reliability.is_sign_negative() || reliability > Decimal::ONE {
        return Err(SkipReason::unreadable("reliability2", "a share of one", &reliability.to_string()));
    }
    if reliability < RELIABILITY_MIN {
        return Err(SkipReason::OutOfScope("a host that is less reliable than 0.9"));
    }
    let region = country(row)?;
    let count = row.field("num_gpus")?.whole()?;
    let count = hardware::count(&count.to_string())
        .ok_or_else(|| SkipReason::unreadable("num_gpus", "a number of cards", &count.to_string()))?;
    let memory_gb = memory_gb(row)?;
    let gpu = PublishedGpu { count: Some(count), ..PublishedGpu::plain(name, 1) }.of_memory(memory_gb);
    let field = if model == PricingModel::Spot { "min_bid" } else { "dph_total" };
    // Every row has both prices, and each question reads its own.
    let _ = (row.optional("dph_total"), row.optional("min_bid"));
    let printed = row.field(field)?;
    if printed.is_null() {
        return Err(SkipReason::PriceMissing);
    }
    let text = printed.characters().trim_matches('"');
    let amount = money::positive(printed.decimal()?.round_dp(AMOUNT_DIGITS).normalize(), text)?;
    let terms = Terms { availability: Some(Availability::Available), plan: Some(VERIFIED.to_owned()), ..Terms::of(model) };
    let price = PublishedPrice::plain(&MANIFEST, amount, text);
    let mut offer = PublishedOffer::plain(gpu, terms, price, printed.place()).called(format!("{name} {memory_gb} GB"));
    offer.sku = Some(row.field("id")?.characters().to_owned());
    offer.region = Some(region);
    offer.machine = machine(row)?;
    Ok(offer)
}

/// The country's code at the end of a place such as `Sweden, SE`.
fn country(row: &Object<'_>) -> Result<String, SkipReason> {
    let Some(place) = row.optional_text("geolocation")?.filter(|place| !place.trim().is_empty()) else {
        return Err(SkipReason::OutOfScope("a host that does not say where it stands"));
    };
    let unknown = || SkipReason::UnknownWord { what: "place", word: place.to_string() };
    // With three parts the last is a continent, and `NA` is a country as well.
    let code = match place.split(',').map(str::trim).collect::<Vec<_>>()[..] {
        [code] | [_, code] => code,
        _ => return Err(unknown()),
    };
    let is_code = code.len() == 2 && code.bytes().all(|byte| byte.is_ascii_uppercase());
    if is_code { Ok(code.to_owned()) } else { Err(unknown()) }
}

/// The size that a card is sold with, from the MiB that its driver shows.
fn memory_gb(row: &Object<'_>) -> Result<Decimal, SkipReason> {
    let shown_mib = row.decimal("gpu_ram")?;
    sold_gb(shown_mib).ok_or_else(|| SkipReason::unreadable("gpu_ram", "the memory of one card in MiB", &shown_mib.to_string()))
}

/// The nearest size that cards are sold with, if it is within 7 %.
pub(super) fn sold_gb(shown_mib: Decimal) -> Option<Decimal> {
    let shown = shown_mib / Decimal::from(MIB_PER_GIB);
    let apart = |sold: &Decimal| (shown - *sold).abs();
    let nearest = SOLD_GB.iter().map(|gb| Decimal::from(*gb)).min_by_key(apart)?;
    (apart(&nearest) * Decimal::ONE_HUNDRED <= nearest * Decimal::from(7)).then_some(nearest)
}

/// Processors and memory that come with the cards. What is of the whole machine is stated only where all of it is rented.
fn machine(row: &Object<'_>) -> Result<Machine, SkipReason> {
    let known = |size: Option<Decimal>| size.filter(|size| !size.is_zero());
    let is_whole = row.optional_decimal("gpu_frac")? == Some(Decimal::ONE);
    let memory_gib = known(row.optional_decimal("cpu_ram")?).map(|mb| (mb / Decimal::from(MIB_PER_GIB)).normalize());
    Ok(Machine {
        vcpus: known(row.optional_decimal("cpu_cores_effective")?),
        system_memory_gib: memory_gib.filter(|_| is_whole),
        local_disk_gb: None,
        is_bare_metal: None,
    })
}
