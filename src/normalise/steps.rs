//! From a published amount to its comparable prices once more, one step at a time, for a person who checks them.
//!
//! In: what the published row and the `rates` table say. Out: each step with its numbers, and the prices that follow. Exact
//! throughout: the only rounding is the last one, to the nearest float.

use gpuledger_scrapers::contract::{PricePer, PriceUnit};
use num_rational::Ratio;
use num_traits::{CheckedAdd as _, CheckedDiv as _, CheckedMul as _, ToPrimitive as _};
use serde::Serialize;

use crate::frame::print_scaled;
use crate::normalise::scaled_count;
use crate::normalise::unit::{Exact, HOURS_PER_MONTH, HOURS_PER_YEAR, UnitError, hours};
use crate::offer::DECIMAL_SCALE;

/// Largest number of parts of a card that a count is a multiple of.
const PARTS_MAX: u32 = 1_000;

/// What the steps start from.
#[derive(Debug, Clone)]
pub struct Given {
    /// The recurring amount.
    pub amount: Exact,
    /// What is paid once at the start of the term.
    pub upfront: Option<Exact>,
    /// ISO 4217 code of both.
    pub currency_code: String,
    /// The time the amount pays for.
    pub unit: PriceUnit,
    /// The thing the amount pays for.
    pub per: PricePer,
    /// Months of the term.
    pub months: Option<u32>,
    /// Hours of a month where the source states its own basis.
    pub hours_per_month: Option<u32>,
    /// GPUs of the machine, exactly.
    pub gpus: Option<Ratio<u32>>,
    /// Whether a price of a whole GPU follows: not from a share that the source does not state.
    pub has_gpu_price: bool,
    /// Units of US dollar and of the currency for one euro; `None` where there is no rate, and not needed for dollars.
    pub per_eur: Option<(Exact, Exact)>,
}

/// One step.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Step {
    /// What is done. `÷ 730 hours of a month`
    pub step: String,
    /// What comes of it, to the twelfth digit after the point; `…` where there would be more.
    pub gives: String,
    /// In what. `USD an hour, whole machine`
    pub unit: String,
    /// The same as an exact fraction.
    pub exactly: String,
}

/// The steps and where they lead.
#[derive(Debug, Clone)]
pub struct Steps {
    /// In order.
    pub steps: Vec<Step>,
    /// The machine for an hour, in its own currency.
    pub native_per_hour: Exact,
    /// One whole GPU for an hour, in its own currency.
    pub native_per_gpu_hour: Option<Exact>,
    /// The machine for an hour, in US dollars.
    pub usd_per_hour: Option<Exact>,
    /// One whole GPU for an hour, in US dollars.
    pub usd_per_gpu_hour: Option<Exact>,
    /// Dollars for one unit of the currency.
    pub usd_per_native: Option<Exact>,
}

/// Works the prices out again.
///
/// # Errors
/// When the length of the term or the number of GPUs is missing where it is needed, or digits do not fit.
pub fn steps(given: &Given) -> Result<Steps, UnitError> {
    let fits = |value: Option<Exact>| value.ok_or(UnitError::TooManyDigits);
    let (code, months) = (given.currency_code.as_str(), given.months);
    let basis = given.hours_per_month.unwrap_or(HOURS_PER_MONTH);
    let thing = match given.per {
        PricePer::Instance => "whole machine",
        PricePer::Gpu => "one GPU",
    };
    let mut steps = vec![step("amount as published", given.amount, &format!("{code} per {}, {thing}", given.unit))];
    let of_unit = hours(given.unit, basis, months)?;
    let mut price = fits(given.amount.checked_div(&of_unit))?;
    steps.push(step(&format!("÷ {}", words_of(given.unit, of_unit, given)), price, &format!("{code} an hour, {thing}")));
    if let Some(upfront) = given.upfront {
        let of_term = hours(PriceUnit::Term, basis, months)?;
        let spread = fits(upfront.checked_div(&of_term))?;
        price = fits(price.checked_add(&spread))?;
        let words = format!("+ {} up front ÷ {}", shown(upfront), words_of(PriceUnit::Term, of_term, given));
        steps.push(step(&words, price, &format!("{code} an hour, {thing}")));
    }
    let count = given.gpus.map(|gpus| Exact::new(i128::from(*gpus.numer()), i128::from(*gpus.denom())));
    let (per_hour, per_gpu_hour) = match (given.per, count) {
        (PricePer::Instance, count) => (price, count.map(|count| fits(price.checked_div(&count))).transpose()?),
        (PricePer::Gpu, Some(count)) => (fits(price.checked_mul(&count))?, Some(price)),
        (PricePer::Gpu, None) => return Err(UnitError::PerGpuWithoutCount),
    };
    let per_gpu_hour = per_gpu_hour.filter(|_| given.has_gpu_price);
    if let (Some(count), Some(per_gpu), PricePer::Instance) = (count, per_gpu_hour, given.per) {
        steps.push(step(&format!("÷ {}", gpus(count)), per_gpu, &format!("{code} an hour, one GPU")));
    }
    let rate = match (code, given.per_eur) {
        ("USD", _) => Some(Exact::from_integer(1)),
        (_, Some((usd, units))) => Some(fits(usd.checked_div(&units))?),
        (_, None) => None,
    };
    let in_usd = |price: Option<Exact>| price.zip(rate).and_then(|(price, rate)| price.checked_mul(&rate));
    let (usd_per_hour, usd_per_gpu_hour) = (in_usd(Some(per_hour)), in_usd(per_gpu_hour));
    let (value, of) = if per_gpu_hour.is_some() { (usd_per_gpu_hour, "one GPU") } else { (usd_per_hour, thing) };
    if let (Some(value), Some((usd, units))) = (value, given.per_eur.filter(|_| code != "USD")) {
        let words = format!("× {} USD per EUR ÷ {} {code} per EUR", shown(usd), shown(units));
        steps.push(step(&words, value, &format!("USD an hour, {of}")));
    }
    if let (Some(price), PricePer::Gpu, Some(count)) = (usd_per_hour, given.per, count) {
        let words = format!("beside it: × {}", gpus(count));
        steps.push(step(&words, price, "USD an hour, whole machine"));
    }
    Ok(Steps {
        steps,
        native_per_hour: per_hour,
        native_per_gpu_hour: per_gpu_hour,
        usd_per_hour,
        usd_per_gpu_hour,
        usd_per_native: rate,
    })
}

/// The hours of a unit, and where they are from.
fn words_of(unit: PriceUnit, hours: Exact, given: &Given) -> String {
    let month = match given.hours_per_month {
        Some(hours) => format!("{hours} hours a month, which is the source's own basis"),
        None => format!("{HOURS_PER_MONTH} hours a month: a year of {HOURS_PER_YEAR} hours in twelve parts"),
    };
    let hours = ratio(hours);
    match unit {
        PriceUnit::Month => month,
        PriceUnit::Term => {
            let months = given.months.map_or_else(|| "?".to_owned(), |months| months.to_string());
            format!("{hours} hours of a term of {months} months ({month})")
        }
        PriceUnit::Year => format!("{hours} hours of a year of 365 days"),
        PriceUnit::Hour => format!("{hours}: the amount is for an hour"),
        PriceUnit::Second | PriceUnit::Minute | PriceUnit::Day => format!("{hours} hours of a {unit}"),
    }
}

fn step(words: &str, value: Exact, unit: &str) -> Step {
    Step { step: words.to_owned(), gives: shown(value), unit: unit.to_owned(), exactly: ratio(value) }
}

/// `8 GPUs`
fn gpus(count: Exact) -> String {
    if count == Exact::from_integer(1) { "1 GPU".to_owned() } else { format!("{} GPUs", ratio(count)) }
}

/// `3/4`, or `3` for a whole number.
fn ratio(value: Exact) -> String {
    if value.is_integer() { value.numer().to_string() } else { format!("{}/{}", value.numer(), value.denom()) }
}

/// A number with the dataset's digits after the point; `…` behind it where it has more.
#[must_use]
pub fn shown(value: Exact) -> String {
    let power = 10_i128.pow(u32::try_from(DECIMAL_SCALE).expect("the scale is small"));
    let whole = value.trunc();
    match value.fract().numer().checked_mul(&power).zip(whole.numer().checked_mul(&power)) {
        Some((fraction, whole)) => {
            let is_exact = fraction % value.denom() == 0;
            let digits = print_scaled(whole + fraction / value.denom(), DECIMAL_SCALE);
            if is_exact { digits } else { format!("{digits}…") }
        }
        None => value.to_f64().map_or_else(|| ratio(value), |float| format!("{float}…")),
    }
}

/// The exact count of a stored one, which is cut at its last digit: 0.166666666666 is 1/6.
#[must_use]
pub fn exact_count(stored: i128) -> Option<Ratio<u32>> {
    let power = 10_i128.pow(u32::try_from(DECIMAL_SCALE).expect("the scale is small"));
    (1..=PARTS_MAX).find_map(|parts| {
        // The stored number is at most one last digit below the exact one.
        let top = (stored * i128::from(parts) + power - 1) / power;
        let count = Ratio::new(u32::try_from(top).ok().filter(|top| *top > 0)?, parts);
        (scaled_count(count) == stored).then_some(count)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn given() -> Given {
        Given {
            amount: Exact::new(9_000, 1),
            upfront: None,
            currency_code: "CNY".to_owned(),
            unit: PriceUnit::Month,
            per: PricePer::Instance,
            months: None,
            hours_per_month: None,
            gpus: Some(Ratio::from_integer(8)),
            has_gpu_price: true,
            per_eur: Some((Exact::new(5, 4), Exact::new(8, 1))),
        }
    }

    #[test]
    fn a_month_in_yuan_becomes_a_gpu_hour_in_dollars() {
        let steps = steps(&given()).expect("everything is known");
        assert_eq!(steps.usd_per_gpu_hour, Some(Exact::new(9_000, 730 * 8) * Exact::new(5, 32)));
        let words: Vec<&str> = steps.steps.iter().map(|step| step.step.as_str()).collect();
        assert_eq!(
            words,
            [
                "amount as published",
                "÷ 730 hours a month: a year of 8760 hours in twelve parts",
                "÷ 8 GPUs",
                "× 1.25 USD per EUR ÷ 8 CNY per EUR"
            ]
        );
    }

    #[test]
    fn a_fee_is_spread_over_the_term_and_a_price_per_gpu_is_not_divided() {
        let given = Given {
            amount: Exact::from_integer(1),
            upfront: Some(Exact::from_integer(8_760)),
            currency_code: "USD".to_owned(),
            unit: PriceUnit::Hour,
            per: PricePer::Gpu,
            months: Some(12),
            per_eur: None,
            ..given()
        };
        let steps = steps(&given).expect("everything is known");
        assert_eq!(steps.usd_per_gpu_hour, Some(Exact::from_integer(2)));
        assert_eq!(steps.usd_per_hour, Some(Exact::from_integer(16)));
    }

    #[test]
    fn without_a_rate_there_is_no_price_in_dollars() {
        let steps = steps(&Given { per_eur: None, ..given() }).expect("everything is known");
        assert_eq!((steps.usd_per_hour, steps.usd_per_gpu_hour), (None, None));
        assert_eq!(steps.native_per_hour, Exact::new(9_000, 730));
    }

    #[test]
    fn a_stored_count_gives_the_exact_one_back() {
        for count in
            [Ratio::new(1, 6), Ratio::new(1, 3), Ratio::new(2, 3), Ratio::from_integer(8), Ratio::new(1, 4), Ratio::new(5, 24)]
        {
            assert_eq!(exact_count(scaled_count(count)), Some(count), "{count}");
        }
        assert_eq!(exact_count(123_456_789_123), None);
    }

    #[test]
    fn numbers_are_shown_whole_or_say_that_they_go_on() {
        assert_eq!(shown(Exact::new(9_832, 100)), "98.32");
        assert_eq!(shown(Exact::new(1, 3)), "0.333333333333…");
        assert_eq!(shown(Exact::from_integer(7)), "7");
    }
}
