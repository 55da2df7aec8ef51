//! The end of a plan's code and the one price of its row: what is bought, for how long, and for how much.

use rust_decimal::Decimal;

use crate::contract::{PriceUnit, PricingModel, SkipReason};
use crate::json::Object;
use crate::money;

/// What the end of a plan's code says.
pub(super) struct Plan {
    /// By the hour or by the month.
    pub(super) model: PricingModel,
    /// Where, if not in every usual region: `3AZ`, `LZ.EU`.
    pub(super) area: Option<String>,
}

/// A price as read.
pub(super) struct Price {
    pub(super) amount: Decimal,
    pub(super) unit: PriceUnit,
    pub(super) text: String,
}

/// Reads the end of a code, behind the machine's name: names hold dots too.
///
/// # Errors
/// When the code does not begin with the name, or ends in something nobody has read.
pub(super) fn plan(code: &str, flavour: &str) -> Result<Plan, SkipReason> {
    let unknown = || SkipReason::UnknownWord { what: "end of a plan code", word: code.to_owned() };
    let end = code.strip_prefix(flavour).and_then(|end| end.strip_prefix('.')).ok_or_else(unknown)?;
    let kinds = [("monthly.postpaid", PricingModel::Subscription), ("consumption", PricingModel::OnDemand)];
    let (model, area) = kinds.iter().find_map(|(word, model)| Some((*model, end.strip_prefix(word)?))).ok_or_else(unknown)?;
    match area.strip_prefix('.') {
        None if area.is_empty() => Ok(Plan { model, area: None }),
        Some(area) if area == "3AZ" || area.strip_prefix("LZ.").is_some_and(|zone| !zone.is_empty()) => {
            Ok(Plan { model, area: Some(area.to_owned()) })
        }
        _ => Err(unknown()),
    }
}

/// The row's price: exactly one, without a promise and without a promotion.
///
/// # Errors
/// When there is another number of prices, when unit and plan disagree, when the amount is none, or when the printed price is
/// another one.
pub(super) fn of<'a>(row: &Object<'a>, model: PricingModel, commercial: &Object<'_>) -> Result<(Object<'a>, Price), SkipReason> {
    let pricings = row.field("pricings")?.list()?;
    let [pricing] = pricings.as_slice() else {
        return Err(match pricings.len() {
            0 => SkipReason::PriceMissing,
            prices => SkipReason::Contradiction(format!("{prices} prices on one row")),
        });
    };
    let pricing = pricing.object()?;
    let mode = pricing.text("mode")?;
    if mode != "default" {
        return Err(SkipReason::UnknownWord { what: "mode", word: mode.into_owned() });
    }
    let mut capacities = Vec::new();
    for capacity in pricing.field("capacities")?.list()? {
        capacities.push(capacity.text()?.into_owned());
    }
    if capacities != ["consumption"] {
        return Err(SkipReason::UnknownWord { what: "capacity", word: capacities.join(", ") });
    }
    let commitment = pricing.field("commitment")?.whole()?;
    if commitment != 0 {
        return Err(SkipReason::UnknownWord { what: "commitment", word: commitment.to_string() });
    }
    if let Some(promotions) = pricing.optional("promotions")
        && !promotions.list()?.is_empty()
    {
        return Err(SkipReason::Undecoded("a price with a promotion, which nobody has read yet"));
    }
    let (word, interval) = (pricing.text("intervalUnit")?, pricing.field("interval")?.whole()?);
    let unit = match (word.as_ref(), interval, model) {
        ("hour", 1, PricingModel::OnDemand) => PriceUnit::Hour,
        ("minute", 1, PricingModel::OnDemand) => PriceUnit::Minute,
        ("month", 1, PricingModel::Subscription) => PriceUnit::Month,
        _ => return Err(SkipReason::UnknownWord { what: "unit", word: format!("{interval} {word} of {model}") }),
    };
    let said = commercial.optional("price").map(|price| price.object()).transpose()?;
    let said = said.map(|price| price.optional_text("interval")).transpose()?.flatten();
    let is_same = |said: &str| match unit {
        PriceUnit::Minute => said == "PT1M",
        PriceUnit::Month => said == "P1M",
        _ => said == "PT1H",
    };
    if let Some(said) = said.filter(|said| !is_same(said)) {
        return Err(SkipReason::Contradiction(format!("priced by the {word}, and described as a price for {said}")));
    }
    let (amount, text) = amount(&pricing)?;
    Ok((pricing, Price { amount, unit, text }))
}

/// Hundred-millionths as an amount, held against the rounded price in words.
fn amount(pricing: &Object<'_>) -> Result<(Decimal, String), SkipReason> {
    let value = pricing.field("price")?;
    let text = value.characters().to_owned();
    let units: i64 = text.parse().map_err(|_| SkipReason::PriceUnreadable { text: text.clone() })?;
    let amount = money::positive(Decimal::new(units, 8).normalize(), &text)?;
    let Some(printed) = pricing.optional_text("formattedPrice")? else { return Ok((amount, text)) };
    let digits: String = printed.chars().filter(|c| c.is_ascii_digit() || *c == '.').collect();
    match money::decimal(&digits) {
        Some(said) if (said - amount).abs() <= Decimal::new(1, 2) => Ok((amount, format!("{text} ({printed})"))),
        _ => Err(SkipReason::Contradiction(format!("{text} hundred-millionths are {amount}, and printed is `{printed}`"))),
    }
}
