//! One SKU: a part, a plan, regions and a rate.
//!
//! In: a SKU as JSON. Out: its rate as whole billionths of a dollar. Never a rate in a unit, a currency or a step of a scale
//! that was not expected, and never a number that passed through a float.

use std::sync::LazyLock;

use chrono::{DateTime, TimeDelta, Utc};
use memchr::memmem::Finder;

use super::words::{self, Part, Plan};
use crate::contract::{Parsed, Place, SkipReason};
use crate::json::{Object, Value};

/// The service whose SKUs these are. Another id answers with another list, or with none.
const SERVICE: &str = "services/6F81-5844-456A/skus/";

/// What a part costs.
#[derive(Debug, Clone)]
pub(super) struct Rate {
    pub part: Part,
    pub plan: Plan,
    pub sku: String,
    /// The regions the rate is for.
    pub regions: Vec<String>,
    /// How many places the SKU is for, those included that are no regions.
    pub reach: usize,
    /// Billionths of a dollar for one unit.
    pub nanos: i128,
    /// Whether the unit is of a month and not of an hour.
    pub is_per_month: bool,
    pub place: Place,
}

static GROUP: LazyLock<Finder> = LazyLock::new(|| Finder::new("\"resourceGroup\""));
static DESCRIPTION: LazyLock<Finder> = LazyLock::new(|| Finder::new("\"description\""));
static USAGE: LazyLock<Finder> = LazyLock::new(|| Finder::new("\"usageType\""));

/// A SKU's words, told from its characters alone: nearly all SKUs are of no interest and need not be read any further.
///
/// `None` when the words are written in a way that only a whole reading understands.
pub(super) fn peek(characters: &str) -> Option<Result<(Part, Plan), SkipReason>> {
    let group = value_of(characters, &GROUP)?;
    if !words::may_be_part(group) {
        return Some(Err(SkipReason::OutOfScope(words::NOT_A_PART)));
    }
    let description = value_of(characters, &DESCRIPTION)?;
    let usage = value_of(characters, &USAGE)?;
    Some(words::read(description, group, usage))
}

/// The text behind the first field of this name. A text with an escape in it is left to a whole reading.
fn value_of<'a>(characters: &'a str, name: &Finder<'_>) -> Option<&'a str> {
    let mut rest = characters;
    loop {
        rest = &rest[name.find(rest.as_bytes())? + name.needle().len()..];
        // A value may be written like a name, and is followed by something else.
        let Some(after) = rest.trim_start().strip_prefix(':') else { continue };
        let text = after.trim_start().strip_prefix('"')?;
        let end = memchr::memchr2(b'"', b'\\', text.as_bytes())?;
        return (text.as_bytes()[end] == b'"').then(|| &text[..end]);
    }
}

/// What a SKU calls itself.
pub(super) fn label(characters: &str) -> String {
    value_of(characters, &DESCRIPTION).map_or_else(|| "a SKU without a plain description".to_owned(), str::to_owned)
}

/// Reads a SKU.
pub(super) fn read(
    item: &Value<'_>,
    observed_at: DateTime<Utc>,
    ignored: &[String],
    parsed: &mut Parsed,
) -> Result<Rate, SkipReason> {
    let place = item.place();
    let sku = item.object()?;
    let category = sku.field("category")?.object()?;
    if category.text("serviceDisplayName")? != "Compute Engine" || !sku.text("name")?.starts_with(SERVICE) {
        return Err(SkipReason::UnknownWord { what: "service", word: sku.text("name")?.into_owned() });
    }
    let description = sku.text("description")?;
    let (part, plan) = words::read(&description, &category.text("resourceGroup")?, &category.text("usageType")?)?;
    let places = sku.field("serviceRegions")?.list()?;
    let reach = places.len();
    let mut regions = Vec::with_capacity(reach);
    for name in places {
        let name = name.text()?;
        if is_region(&name) {
            regions.push(name.into_owned());
        }
    }
    if regions.is_empty() {
        return Err(SkipReason::OutOfScope("for no single region"));
    }
    let info = current(&sku, observed_at)?;
    let expression = info.field("pricingExpression")?.object()?;
    let (nanos, is_per_month) = rate(&info, &expression, part)?;
    let id = sku.text("skuId")?.into_owned();
    for object in [&sku, &category, &info, &expression] {
        object.report_unread(ignored, &mut parsed.unread_fields);
    }
    Ok(Rate { part, plan, sku: id, regions, reach, nanos, is_per_month, place })
}

/// `us-central1` is a region; `us`, `nam4` and `global` are not.
pub(super) fn is_region(name: &str) -> bool {
    let area = name.trim_end_matches(|c: char| c.is_ascii_digit());
    area.len() < name.len() && area.contains('-') && area.chars().all(|c| c.is_ascii_lowercase() || c == '-')
}

/// How far a clock may be behind the catalog's. A price of tomorrow is announced and does not hold yet.
const CLOCK_BEHIND: TimeDelta = TimeDelta::minutes(15);

/// The last price that holds. The list is in order of time and may end with one that is announced. The time of the price
/// that holds is that of the answer itself, so a clock that is a little behind must not make it a later one.
fn current<'a>(sku: &Object<'a>, observed_at: DateTime<Utc>) -> Result<Object<'a>, SkipReason> {
    let mut current = None;
    for info in sku.field("pricingInfo")?.list()? {
        let info = info.object()?;
        let from = info.text("effectiveTime")?;
        let at: DateTime<Utc> = from.parse().map_err(|_| SkipReason::FieldUnreadable {
            field: "effectiveTime".to_owned(),
            expected: "a time",
            found: from.clone().into_owned(),
        })?;
        if at <= observed_at + CLOCK_BEHIND {
            current = Some(info);
        }
    }
    current.ok_or(SkipReason::PriceMissing)
}

/// Billionths of a dollar for one unit, and whether the unit is of a month.
fn rate(info: &Object<'_>, expression: &Object<'_>, part: Part) -> Result<(i128, bool), SkipReason> {
    let unit = expression.text("usageUnit")?;
    let is_per_month = match (part, unit.as_ref()) {
        (Part::Core(_) | Part::Gpu(_), "h") | (Part::Ram(_) | Part::LocalSsd, "GiBy.h") => false,
        (Part::LocalSsd, "GiBy.mo") => true,
        _ => return Err(SkipReason::UnknownWord { what: "unit", word: format!("{unit} for {}", part.name()) }),
    };
    if info.optional_decimal("currencyConversionRate")?.is_some_and(|rate| !rate.is_integer() || rate != 1.into()) {
        return Err(SkipReason::Contradiction("the amount was converted from another currency".to_owned()));
    }
    let tiers = expression.field("tieredRates")?.list()?;
    let [tier] = tiers.as_slice() else {
        return Err(SkipReason::Contradiction(format!("{} steps of a scale where there is one rate", tiers.len())));
    };
    let tier = tier.object()?;
    if !tier.decimal("startUsageAmount")?.is_zero() {
        return Err(SkipReason::Contradiction("the rate does not start at the first hour".to_owned()));
    }
    let price = tier.field("unitPrice")?.object()?;
    let currency = price.text("currencyCode")?;
    if currency != "USD" {
        return Err(SkipReason::UnknownWord { what: "currency", word: currency.into_owned() });
    }
    let nanos = money(&price)?;
    match nanos {
        0 => Err(SkipReason::PriceZero),
        1..=NANOS_MAX => Ok((nanos, is_per_month)),
        _ => Err(SkipReason::PriceUnreadable { text: nanos.to_string() }),
    }
}

/// A million dollars, which no part of a machine costs an hour or a month. Below it no sum of parts overflows.
const NANOS_MAX: i128 = 1_000_000 * 1_000_000_000;

/// Whole units and billionths together. One of the two is left out when it is zero, and neither is the price alone.
fn money(price: &Object<'_>) -> Result<i128, SkipReason> {
    // A part under another name would be missing from the amount.
    if let Some(other) = price.names().find(|name| !["currencyCode", "units", "nanos"].contains(name)) {
        return Err(SkipReason::UnknownWord { what: "part of an amount", word: other.to_owned() });
    }
    let (units, nanos) = (price.optional("units"), price.optional("nanos"));
    if units.is_none() && nanos.is_none() {
        return Err(SkipReason::PriceMissing);
    }
    let whole = |value: Option<Value<'_>>, field: &str| match value {
        None => Ok(0),
        Some(value) => value.characters().trim_matches('"').parse::<i64>().map_err(|_| SkipReason::FieldUnreadable {
            field: field.to_owned(),
            expected: "a whole number",
            found: value.characters().to_owned(),
        }),
    };
    let (units, nanos) = (whole(units, "units")?, whole(nanos, "nanos")?);
    if nanos.abs() >= 1_000_000_000 || (units > 0 && nanos < 0) || (units < 0 && nanos > 0) {
        return Err(SkipReason::PriceUnreadable { text: format!("{units} units and {nanos} nanos") });
    }
    Ok(i128::from(units) * 1_000_000_000 + i128::from(nanos))
}
