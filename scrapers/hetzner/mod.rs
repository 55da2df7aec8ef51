//! Hetzner's server auction, <https://www.hetzner.com/_resources/app/data/app/live_data_sb_EUR.json>: single dedicated machines,
//! by the hour and by the month, in euros before tax. Hetzner's cloud has no GPU; of the standard line of dedicated machines
//! nobody has seen the feed's shape, so it is not read.
//!
//! - A card is a line of the description, `GPU - GeForce GTX 1080`, and nothing else names it. Its memory is not stated. A bare
//!   line `GPU` says that there is one, as the mark among `specials` does, and names none.
//! - `price` is of a month and caps the bill; `hourly_price` is paid until the cap. Both are published as what they are. A month
//!   that is not some 600 to 750 hours of the hourly price is in another unit, and the machine is skipped.
//! - Each row is one machine. Of machines that are alike in one place the cheapest is the offer; its number is no part of it.
//! - A fee for setting up is not in the price; such an offer carries the flag `setup_fee`. An address
//!   that costs something on top is not in it either; then the flag is `ip_address_billed_apart`.

#[cfg(test)]
mod tests;

use std::collections::BTreeSet;
use std::sync::LazyLock;

use num_rational::Ratio;
use rust_decimal::Decimal;

use crate::contract::{
    Availability, GpuShare, Machine, Page, Parsed, PricePer, PriceUnit, PricingModel, PublishedGpu, PublishedOffer,
    PublishedPrice, ScrapeError, Scraper, SkipReason, Tenancy, Terms,
};
use crate::json::{self, Object, Value};
use crate::manifest::Manifest;
use crate::money;

/// The source.
pub struct Hetzner;

static MANIFEST: LazyLock<Manifest> =
    LazyLock::new(|| Manifest::parse(include_str!("manifest.toml")).expect("the manifest beside this file reads"));

const LIST: &str = "server";
const GPU_LINE: &str = "GPU - ";
/// What says that there is a card and does not name it.
const GPU_MARK: &str = "GPU";
/// Hours of the hourly price that the cap of a month may be. Seen: 624.
const CAP_HOURS: std::ops::RangeInclusive<u32> = 600..=750;

impl Scraper for Hetzner {
    fn manifest(&self) -> &'static Manifest {
        &MANIFEST
    }

    fn parse(&self, pages: &[Page]) -> Result<Parsed, ScrapeError> {
        let mut parsed = Parsed::default();
        for page in pages {
            let (document, rows) = json::document_and_list(page, LIST)?;
            let count = document.field("serverCount")?.whole()?;
            if rows.is_empty() {
                return Err(ScrapeError::NothingFound { page: page.name.clone(), at: format!("/{LIST}") });
            }
            if usize::try_from(count) != Ok(rows.len()) {
                return Err(ScrapeError::ShapeChanged {
                    page: page.name.clone(),
                    at: "/serverCount".to_owned(),
                    expected: format!("{count} machines"),
                    found: rows.len().to_string(),
                });
            }
            for row in rows {
                read_row(&row, &mut parsed);
            }
        }
        Ok(with_the_cheapest_of_each_kind(parsed))
    }
}

/// Machines of one kind in one place differ in nothing but price; the cheapest is what such a machine costs now.
fn with_the_cheapest_of_each_kind(mut parsed: Parsed) -> Parsed {
    let mut kept: Vec<PublishedOffer> = Vec::new();
    for offer in std::mem::take(&mut parsed.offers) {
        let is_same = |other: &&mut PublishedOffer| {
            other.offer_label == offer.offer_label
                && other.zone == offer.zone
                && other.terms.pricing_model == offer.terms.pricing_model
        };
        match kept.iter_mut().find(is_same) {
            None => kept.push(offer),
            Some(first) => {
                parsed.leave_out("another machine of the same kind, not cheaper");
                if offer.price.amount < first.price.amount {
                    *first = offer;
                }
            }
        }
    }
    parsed.offers = kept;
    parsed
}

fn read_row(value: &Value<'_>, parsed: &mut Parsed) {
    let row = match value.object() {
        Ok(row) => row,
        Err(error) => return parsed.take("a row", value.place(), Err(error.into())),
    };
    let label = row.field("id").map_or_else(|_| "a row without id".to_owned(), |id| id.characters().to_owned());
    match offers(&row) {
        Ok(offers) => parsed.offers.extend(offers),
        Err(reason) => return parsed.take(label, row.place(), Err(reason)),
    }
    row.report_unread(&MANIFEST.ignored_fields, &mut parsed.unread_fields);
}

/// The machine by the hour and by the month.
fn offers(row: &Object<'_>) -> Result<Vec<PublishedOffer>, SkipReason> {
    let (description, information) = (texts(row, "description")?, texts(row, "information")?);
    let specials = texts(row, "specials")?;
    let is_marked = description.iter().chain(&information).chain(&specials).any(|mark| mark == GPU_MARK);
    let (lines, repeated) = (lines_of_cards(description), lines_of_cards(information));
    if lines.is_empty() && repeated.is_empty() && !is_marked {
        return Err(SkipReason::OutOfScope("without a GPU"));
    }
    if !repeated.is_empty() && repeated != lines {
        let said = format!("the description has `{}`, the information `{}`", lines.join(", "), repeated.join(", "));
        return Err(SkipReason::Contradiction(said));
    }
    let (card, count) = card(&lines)?;
    let (cpu, ram_gib) = (row.text("cpu")?, row.field("ram_size")?.decimal()?);
    let disks = texts(row, "hdd_arr")?.join(", ");
    let datacenter = row.text("datacenter")?;
    let (region, _) = datacenter
        .split_once('-')
        .ok_or_else(|| SkipReason::UnknownWord { what: "data centre", word: datacenter.clone().into_owned() })?;
    let setup_fee = row.optional_decimal("setup_price")?.unwrap_or_default();
    let marks = [(!setup_fee.is_zero(), "setup_fee"), (is_ip_address_billed_apart(row)?, "ip_address_billed_apart")];
    let flags: BTreeSet<_> = marks.into_iter().filter(|(is_so, _)| *is_so).map(|(_, flag)| flag).collect();
    let (month, hour) = (row.field("price")?, row.optional("hourly_price"));
    let monthly = priced(&month)?;
    let hourly = hour.as_ref().map(priced).transpose()?;
    if let Some(hourly) = hourly
        && !CAP_HOURS.contains(&u32::try_from((monthly / hourly).round().mantissa()).unwrap_or(u32::MAX))
    {
        return Err(SkipReason::Contradiction(format!("{monthly} for a month and {hourly} for an hour do not go together")));
    }
    let offer = |model: PricingModel, unit: PriceUnit, amount: Decimal, value: &Value<'_>| {
        let mut terms = Terms::of(model);
        terms.tenancy = Some(Tenancy::Dedicated);
        terms.availability = Some(Availability::Available);
        terms.commitment_months = (unit == PriceUnit::Month).then_some(1);
        PublishedOffer {
            site: None,
            sku: None,
            instance_type: None,
            offer_label: Some(format!("server auction: {cpu}, {ram_gib} GB, {disks}, {count}x {card}")),
            region: Some(region.to_owned()),
            zone: Some(datacenter.clone().into_owned()),
            gpu: PublishedGpu {
                label: Some(card.clone()),
                count: Some(Ratio::from(count)),
                share: GpuShare::Whole,
                memory_gb: None,
                form_factor: None,
                interconnect: None,
                fabric_gbit_per_s: None,
            },
            machine: Machine {
                vcpus: None,
                system_memory_gib: Some(ram_gib),
                local_disk_gb: disks_gb(row),
                is_bare_metal: Some(true),
            },
            terms,
            price: PublishedPrice {
                amount,
                upfront_amount: None,
                currency_code: MANIFEST.published().currency_code.clone(),
                unit,
                per: PricePer::Instance,
                text: value.characters().to_owned(),
                tax_included: MANIFEST.published().tax_included,
                listings: None,
            },
            place: value.place(),
            flags: flags.clone(),
        }
    };
    let mut offers = Vec::new();
    if let (Some(hour), Some(hourly)) = (&hour, hourly) {
        offers.push(offer(PricingModel::OnDemand, PriceUnit::Hour, hourly, hour));
    }
    offers.push(offer(PricingModel::Subscription, PriceUnit::Month, monthly, &month));
    Ok(offers)
}

fn priced(value: &Value<'_>) -> Result<Decimal, SkipReason> {
    if value.is_null() {
        return Err(SkipReason::PriceMissing);
    }
    money::positive(value.decimal()?, value.characters())
}

/// Whether an address costs something on top: anything in `ip_price` that is not a zero.
fn is_ip_address_billed_apart(row: &Object<'_>) -> Result<bool, SkipReason> {
    let Some(price) = row.optional("ip_price") else { return Ok(false) };
    let Ok(amounts) = price.object() else { return Ok(!price.decimal()?.is_zero()) };
    let amounts = [amounts.optional_decimal("Monthly")?, amounts.optional_decimal("Hourly")?];
    Ok(amounts.iter().flatten().next().is_none() || amounts.iter().flatten().any(|amount| !amount.is_zero()))
}

/// The texts of a list; none where it is absent.
fn texts(row: &Object<'_>, field: &str) -> Result<Vec<String>, SkipReason> {
    let Some(list) = row.optional(field) else { return Ok(Vec::new()) };
    list.list()?.iter().map(|line| Ok(line.text()?.trim().to_owned())).collect()
}

fn lines_of_cards(mut lines: Vec<String>) -> Vec<String> {
    // A line of another form stays, so that the machine is skipped aloud.
    lines.retain(|line| line.starts_with(GPU_MARK) && line != GPU_MARK);
    lines
}

/// The card and its number: as many as there are lines, which all name the same, or as a line says itself.
fn card(lines: &[String]) -> Result<(String, u32), SkipReason> {
    let Some(first) = lines.first() else {
        return Err(SkipReason::Contradiction("the machine is marked as one with a GPU, and no line names it".to_owned()));
    };
    if lines.iter().any(|line| line != first) {
        return Err(SkipReason::Contradiction(format!("two cards: `{}`", lines.join("`, `"))));
    }
    let unknown = || SkipReason::UnknownWord { what: "line of a GPU", word: first.clone() };
    let said = first.strip_prefix(GPU_LINE).map(str::trim).filter(|said| !said.is_empty()).ok_or_else(unknown)?;
    let lines = u32::try_from(lines.len()).map_err(|_| unknown())?;
    let counted = said.split_once("x ").and_then(|(count, card)| Some((card.trim(), count.trim().parse::<u32>().ok()?)));
    match counted {
        Some((_, 0)) => Err(unknown()),
        Some((card, count)) => Ok((card.to_owned(), count * lines)),
        None => Ok((said.to_owned(), lines)),
    }
}

/// All disks together in GB; `None` where the feed does not list them by size.
fn disks_gb(row: &Object<'_>) -> Option<Decimal> {
    let kinds = row.optional("serverDiskData")?.object().ok()?;
    let mut total = Decimal::ZERO;
    for kind in ["nvme", "sata", "hdd"] {
        for disk in kinds.optional(kind)?.list().ok()? {
            total += disk.decimal().ok()?;
        }
    }
    Some(total).filter(|total| !total.is_zero())
}
