//! The price object of a row → its prices, by way of paying.
//!
//! Never converted: a term's total stays a total, and twelve months are not a year.

use std::collections::BTreeSet;

use rust_decimal::Decimal;

use super::MANIFEST;
use crate::contract::{PriceUnit, PricingModel, PublishedPrice, SkipReason, Terms, Upfront};
use crate::json::{Object, Value};
use crate::money;

/// One price of a row.
pub(super) struct Price {
    pub(super) price: PublishedPrice,
    pub(super) terms: Terms,
    pub(super) flags: BTreeSet<&'static str>,
}

type Prices = Vec<Result<Price, SkipReason>>;

/// Prepaid terms in months, and the endings their fields have. The official names are in the singular; answers with
/// plural ones were seen.
const TERMS: [(u32, &[&str]); 4] =
    [(1, &[""]), (12, &["OneYear"]), (36, &["ThreeYear", "ThreeYears"]), (60, &["FiveYear", "FiveYears"])];

/// Steps of an hourly price: the plan, the field of the list price and that of the discounted one. The first step is the
/// price of the first 96 hours of continuous use, or of all hours where the others are absent, zero or the same.
const FIRST_STEP: Step = Step { plan: None, list: "UnitPrice", discount: "UnitPriceDiscount" };
const LATER_STEPS: [Step; 2] = [
    Step { plan: Some("after_96_hours"), list: "UnitPriceSecondStep", discount: "UnitPriceDiscountSecondStep" },
    Step { plan: Some("after_360_hours"), list: "UnitPriceThirdStep", discount: "UnitPriceDiscountThirdStep" },
];

struct Step {
    plan: Option<&'static str>,
    list: &'static str,
    discount: &'static str,
}

/// The prices of a row, by `InstanceChargeType`.
pub(super) fn of(charge_type: &str, price: &Object, is_sold_out: bool) -> Result<Prices, SkipReason> {
    if let Some(code) = price.optional_text("Currency")?
        && code != MANIFEST.published().currency_code
    {
        return Err(SkipReason::UnknownWord { what: "currency", word: code.into_owned() });
    }
    match charge_type {
        "POSTPAID_BY_HOUR" => on_demand(price, is_sold_out),
        "SPOTPAID" => spot(price, is_sold_out),
        "PREPAID" => Ok(prepaid(price, is_sold_out)),
        word => Err(SkipReason::UnknownWord { what: "way of paying", word: word.to_owned() }),
    }
}

fn on_demand(price: &Object, is_sold_out: bool) -> Result<Prices, SkipReason> {
    demand_hours(price)?;
    let list = price.field(FIRST_STEP.list)?;
    let amount = amount_of(&list, is_sold_out)?;
    let first = (amount, stated(price, FIRST_STEP.discount).unwrap_or(amount));
    let later: Prices = LATER_STEPS.iter().flat_map(|step| later_step(price, step, first, is_sold_out)).collect();
    let flag = (!later.is_empty()).then_some("tiered");
    let mut prices = hourly(&FIRST_STEP, &list, amount, price.optional(FIRST_STEP.discount), is_sold_out, flag);
    prices.extend(later);
    Ok(prices)
}

/// A later step, where it is one. It is a plan of its own: nobody gets its price by starting a machine.
fn later_step(price: &Object, step: &Step, first: (Decimal, Decimal), is_sold_out: bool) -> Prices {
    let Some(list) = price.optional(step.list) else { return Prices::new() };
    let amount = match amount_of(&list, is_sold_out) {
        Ok(amount) => amount,
        Err(SkipReason::PriceZero | SkipReason::SoldOut) => return Prices::new(),
        Err(reason) => return vec![Err(reason)],
    };
    if amount == first.0 && stated(price, step.discount).is_none_or(|lower| lower == first.1) {
        return Prices::new();
    }
    if amount > first.0 {
        let text = format!("{} is {amount}, above the first step of {}", step.list, first.0);
        return vec![Err(SkipReason::Contradiction(text))];
    }
    hourly(step, &list, amount, price.optional(step.discount), is_sold_out, Some("later_step"))
}

/// A price that is there and not zero.
fn stated(price: &Object, field: &str) -> Option<Decimal> {
    price.optional(field)?.decimal().ok().filter(|amount| !amount.is_zero())
}

/// The list price of a step, and the discounted one beside it.
fn hourly(
    step: &Step,
    list: &Value,
    amount: Decimal,
    lower: Option<Value>,
    is_sold_out: bool,
    flag: Option<&'static str>,
) -> Prices {
    let terms = Terms { plan: step.plan.map(str::to_owned), ..Terms::of(PricingModel::OnDemand) };
    let flags: BTreeSet<_> = flag.into_iter().collect();
    let mut prices =
        vec![Ok(Price { price: published(list, amount, PriceUnit::Hour), terms: terms.clone(), flags: flags.clone() })];
    if let Some(discount) = discount(lower, amount, is_sold_out) {
        prices.push(discount.map(|(value, amount)| Price {
            price: published(&value, amount, PriceUnit::Hour),
            terms: Terms { is_promotion: true, ..terms },
            flags,
        }));
    }
    prices
}

/// The current spot price is in the discount field; `UnitPrice` repeats the list price of the type on demand, and its later
/// steps with it.
fn spot(price: &Object, is_sold_out: bool) -> Result<Prices, SkipReason> {
    demand_hours(price)?;
    let value = price.field(FIRST_STEP.discount)?;
    let amount = amount_of(&value, is_sold_out)?;
    let is_tiered = LATER_STEPS.iter().any(|step| stated(price, step.discount).is_some_and(|later| later != amount));
    let flags = is_tiered.then_some("tiered").into_iter().collect();
    Ok(vec![Ok(Price { price: published(&value, amount, PriceUnit::Hour), terms: Terms::of(PricingModel::Spot), flags })])
}

fn prepaid(price: &Object, is_sold_out: bool) -> Prices {
    let mut prices = Prices::new();
    for (months, endings) in TERMS {
        if let Err(reason) = prepaid_term(price, months, endings, is_sold_out, &mut prices) {
            prices.push(Err(reason));
        }
    }
    prices
}

fn prepaid_term(price: &Object, months: u32, endings: &[&str], is_sold_out: bool, prices: &mut Prices) -> Result<(), SkipReason> {
    let list = spelled(price, "OriginalPrice", endings)?;
    let lower = spelled(price, "DiscountPrice", endings)?;
    // The month is always sold; a longer term that is not sold is absent or zero in both fields.
    if months > 1 && is_nothing(list.as_ref())? && is_nothing(lower.as_ref())? {
        return Err(SkipReason::OutOfScope("prepaid term that is not sold"));
    }
    let field = || format!("OriginalPrice{}", endings.concat());
    let list = list.ok_or_else(|| SkipReason::FieldMissing { field: field() })?;
    let amount = amount_of(&list, is_sold_out)?;
    let unit = if months == 1 { PriceUnit::Month } else { PriceUnit::Term };
    let terms = Terms { commitment_months: Some(months), upfront: Some(Upfront::All), ..Terms::of(PricingModel::Subscription) };
    prices.push(Ok(Price { price: published(&list, amount, unit), terms: terms.clone(), flags: BTreeSet::new() }));
    if let Some(discount) = discount(lower, amount, is_sold_out) {
        let (value, amount) = discount?;
        let terms = Terms { is_promotion: true, ..terms };
        prices.push(Ok(Price { price: published(&value, amount, unit), terms, flags: BTreeSet::new() }));
    }
    Ok(())
}

/// The field under the one of its spellings that is there.
fn spelled<'a>(price: &Object<'a>, name: &str, endings: &[&str]) -> Result<Option<Value<'a>>, SkipReason> {
    let mut found: Option<Value<'a>> = None;
    for value in endings.iter().filter_map(|ending| price.optional(&format!("{name}{ending}"))) {
        if let Some(other) = &found
            && other.decimal()? != value.decimal()?
        {
            return Err(SkipReason::Contradiction(format!("two spellings of {name}{} differ", endings.concat())));
        }
        found = Some(value);
    }
    Ok(found)
}

fn is_nothing(value: Option<&Value>) -> Result<bool, SkipReason> {
    Ok(match value {
        None => true,
        Some(value) => value.decimal()?.is_zero(),
    })
}

/// The discounted price, where there is one below the list price. A discounted price of zero is none.
fn discount(value: Option<Value>, list: Decimal, is_sold_out: bool) -> Option<Result<(Value, Decimal), SkipReason>> {
    let value = value.filter(|value| !value.decimal().is_ok_and(|amount| amount.is_zero()))?;
    match amount_of(&value, is_sold_out) {
        Ok(amount) if amount == list => None,
        Ok(amount) if amount > list => {
            Some(Err(SkipReason::Contradiction(format!("a discounted price of {amount} above the list price of {list}"))))
        }
        Ok(amount) => Some(Ok((value, amount))),
        Err(reason) => Some(Err(reason)),
    }
}

fn demand_hours(price: &Object) -> Result<(), SkipReason> {
    let unit = price.text("ChargeUnit")?;
    if unit == "HOUR" { Ok(()) } else { Err(SkipReason::UnknownWord { what: "unit", word: unit.into_owned() }) }
}

/// The amount, which must be one. A sold-out machine may have none, and then the source says so.
fn amount_of(value: &Value, is_sold_out: bool) -> Result<Decimal, SkipReason> {
    let text = value.characters();
    if value.is_null() {
        return Err(if is_sold_out { SkipReason::SoldOut } else { SkipReason::PriceMissing });
    }
    let amount = value.decimal().map_err(|_| SkipReason::PriceUnreadable { text: text.to_owned() })?;
    match money::positive(amount, text) {
        Err(SkipReason::PriceZero) if is_sold_out => Err(SkipReason::SoldOut),
        other => other,
    }
}

fn published(value: &Value, amount: Decimal, unit: PriceUnit) -> PublishedPrice {
    let published = MANIFEST.published();
    PublishedPrice {
        amount,
        upfront_amount: None,
        currency_code: published.currency_code.clone(),
        unit,
        per: published.per,
        text: value.characters().to_owned(),
        tax_included: published.tax_included,
        listings: None,
    }
}
