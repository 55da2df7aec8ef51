//! From the rates of parts to the price of machines.
//!
//! In: rates. Out: one price for each machine, region and plan that has all its parts. Never a smaller sum because a part is
//! missing, and never a choice between two rates that say different things of the same part.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use rust_decimal::Decimal;

use super::machines::{self, Disk, Family, Shape};
use super::skus::Rate;
use super::words::{Card, Part, Plan};
use crate::contract::{Parsed, Place, PriceUnit, PublishedOffer, SkipReason, Skipped};

/// Flag of a price that is the sum of parts, which is how the source publishes it.
pub(super) const COMPOSED: &str = "composed";

/// Hours of a month, for disks that are priced by the month.
const HOURS_PER_MONTH: i128 = 730;

/// Amounts are kept to the twelfth decimal. Only a month of disks, divided by its hours, does not end before.
const DECIMALS: u32 = 12;

/// Rates by what they are for.
pub(super) struct Rates<'a> {
    by_key: HashMap<(Plan, Part, &'a str), Vec<&'a Rate>>,
}

/// The parts of a machine and how much of each it has.
type Sum<'a> = Vec<(Decimal, &'static str, &'a Rate)>;

impl<'a> Rates<'a> {
    fn of(rates: &'a [Rate]) -> Self {
        let mut by_key: HashMap<_, Vec<&Rate>> = HashMap::new();
        for rate in rates {
            for region in &rate.regions {
                by_key.entry((rate.plan, rate.part, region.as_str())).or_default().push(rate);
            }
        }
        Self { by_key }
    }

    /// The rate of a part. One for a region alone goes before one for several; two that differ are a contradiction.
    fn one(&self, plan: Plan, part: Part, region: &str) -> Result<Option<&'a Rate>, SkipReason> {
        let Some(rates) = self.by_key.get(&(plan, part, region)) else { return Ok(None) };
        let own: Vec<&Rate> = rates.iter().filter(|rate| rate.reach == 1).copied().collect();
        let rates = if own.is_empty() { rates } else { &own };
        let first = rates.iter().min_by_key(|rate| &rate.sku).copied();
        match first {
            Some(first) => match rates.iter().find(|rate| (rate.nanos, rate.is_per_month) != (first.nanos, first.is_per_month)) {
                Some(other) => Err(SkipReason::Contradiction(format!(
                    "{} is {} in SKU {} and {} in SKU {}",
                    part.name(),
                    dollars(first.nanos),
                    first.sku,
                    dollars(other.nanos),
                    other.sku
                ))),
                None => Ok(Some(first)),
            },
            None => Ok(None),
        }
    }
}

/// Adds up every machine whose card has a rate, in the order of the cards' SKUs.
pub(super) fn compose(rates: &[Rate], parsed: &mut Parsed) {
    let index = Rates::of(rates);
    let mut done = HashSet::new();
    for rate in rates {
        let Part::Gpu(card) = rate.part else { continue };
        for region in &rate.regions {
            if done.insert((rate.plan, card, region)) {
                machines_of(&index, card, rate, region, parsed);
            }
        }
    }
    // Cores and memory of machines with a GPU that has no price under the same terms say nothing of a machine.
    let mut lone = BTreeSet::new();
    for rate in rates {
        if let Part::Core(series) = rate.part {
            let has_card = |region: &String| {
                let of_series = |family: &&Family| family.series == Some(series);
                let mut cards = machines::FAMILIES.iter().filter(of_series).map(|family| family.card);
                cards.any(|card| done.contains(&(rate.plan, card, region)))
            };
            lone.extend(rate.regions.iter().filter(|region| !has_card(region)).map(|region| (rate.plan, series, region)));
        }
    }
    for _ in lone {
        parsed.leave_out("cores of a machine whose GPU has no price on the same terms there");
    }
}

/// Every machine with a card, in one region under one plan.
fn machines_of(index: &Rates<'_>, card: Card, rate: &Rate, region: &str, parsed: &mut Parsed) {
    let plan = rate.plan;
    let mut skipped = BTreeMap::new();
    for (family, shapes) in machines::families().filter(|(family, _)| family.card == card) {
        for shape in shapes.iter().filter(|shape| shape.is_known_to_be_sold()) {
            match sum(index, family, shape, plan, region) {
                Ok((sum, place)) => parsed.offers.push(offer(&sum, shape, plan, region, place)),
                // What is wrong with one machine is wrong with all of its family, so it is told once.
                Err(reason) => {
                    skipped.entry(reason.to_string()).or_insert((shape.name.as_str(), reason));
                }
            }
        }
    }
    for (name, reason) in skipped.into_values() {
        let label = format!("{name} in {region}, {}", plan.name());
        parsed.skipped.push(Skipped { place: rate.place.clone(), label, reason });
    }
}

fn sum<'a>(index: &Rates<'a>, family: &Family, shape: &Shape, plan: Plan, region: &str) -> Result<(Sum<'a>, Place), SkipReason> {
    let mut wanted = Vec::new();
    if let Some(series) = family.series {
        let size = |size: Option<Decimal>| size.ok_or_else(|| SkipReason::UnknownMachine { instance_type: shape.name.clone() });
        wanted.push((size(shape.machine.vcpus)?, "vCPU", Part::Core(series)));
        wanted.push((size(shape.machine.system_memory_gib)?, "GiB", Part::Ram(series)));
    }
    let whole = if family.series.is_some() { "GPU" } else { "slice" };
    wanted.push((Decimal::from(shape.cards), whole, Part::Gpu(family.card)));
    if matches!(family.disk, Disk::Priced(_)) {
        wanted.push((Decimal::from(shape.priced_disk_gib), "GiB SSD", Part::LocalSsd));
    }
    let mut sum = Vec::with_capacity(wanted.len());
    let mut missing = Vec::new();
    let mut place = None;
    for (quantity, unit, part) in wanted {
        match index.one(plan, part, region)? {
            Some(rate) => {
                if matches!(part, Part::Gpu(_)) {
                    place = Some(rate.place.clone());
                }
                sum.push((quantity, unit, rate));
            }
            None => missing.push(part.name()),
        }
    }
    match place {
        Some(place) if missing.is_empty() => Ok((sum, place)),
        _ => Err(SkipReason::FieldMissing { field: missing.join("` and `") }),
    }
}

fn offer(sum: &Sum<'_>, shape: &Shape, plan: Plan, region: &str, place: Place) -> PublishedOffer {
    let texts = sum.iter().map(|(quantity, unit, rate)| {
        let per = if rate.is_per_month { " / 730" } else { "" };
        format!("{quantity} {unit} × {}{per}", dollars(rate.nanos))
    });
    let text = texts.collect::<Vec<_>>().join(" + ");
    let parts = (shape.name.as_str(), shape.gpu.clone(), shape.machine.clone());
    let mut offer = machines::offer(parts, region, machines::terms(plan), (amount(sum), PriceUnit::Hour, text), place);
    let skus: BTreeSet<&str> = sum.iter().map(|(_, _, rate)| rate.sku.as_str()).collect();
    offer.sku = Some(skus.into_iter().collect::<Vec<_>>().join("+"));
    offer.flags.insert(COMPOSED);
    offer
}

/// The exact sum, rounded once where a month of disks has no end. It is kept as a whole number of parts of a billionth:
/// quantities have up to two decimals, and rates of a month one of 730 hours.
fn amount(sum: &Sum<'_>) -> Decimal {
    const DIVISOR: i128 = 100 * HOURS_PER_MONTH;
    let parts: i128 = sum
        .iter()
        .map(|(quantity, _, rate)| {
            let hundredths = (*quantity * Decimal::ONE_HUNDRED).normalize();
            assert_eq!(hundredths.scale(), 0, "quantities come from our own table, which has no finer ones");
            hundredths.mantissa() * rate.nanos * if rate.is_per_month { 1 } else { HOURS_PER_MONTH }
        })
        .sum();
    let scaled = parts * 10_i128.pow(DECIMALS - 9);
    Decimal::from_i128_with_scale((2 * scaled + DIVISOR) / (2 * DIVISOR), DECIMALS).normalize()
}

/// Billionths of a dollar as dollars.
pub(super) fn dollars(nanos: i128) -> Decimal {
    Decimal::from_i128_with_scale(nanos, 9).normalize()
}
