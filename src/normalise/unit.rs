//! Published amount → exact price of an hour. Every conversion of a time base stands here and nowhere else.

use gpuledger_scrapers::contract::{GpuShare, PricePer, PriceUnit, PublishedOffer};
use num_rational::Ratio;
use num_traits::{CheckedAdd, CheckedDiv, CheckedMul};
use rust_decimal::Decimal;

/// An exact number: numerator and denominator.
pub type Exact = Ratio<i128>;

/// Hours of a month where the source states no basis of its own: a year of 365 days in twelve parts.
pub const HOURS_PER_MONTH: u32 = 730;

/// Hours of a year of 365 days.
pub const HOURS_PER_YEAR: u32 = 8_760;

/// The exact prices that follow from a published amount, in its own currency.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HourPrices {
    /// The whole machine for one hour, with the up-front part spread over the term.
    pub per_hour: Exact,
    /// One whole GPU for one hour; `None` where the machine's share of a card is not a fixed one, or nobody has read how many
    /// GPUs it has.
    pub per_gpu_hour: Option<Exact>,
}

/// Why there is no price of an hour.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum UnitError {
    /// The amount is for a term and the term's length is not known.
    #[error("an amount for a term without the months of the term")]
    TermWithoutMonths,
    /// A price of one GPU, of a machine with nobody knows how many.
    #[error("an amount per GPU without the number of GPUs")]
    PerGpuWithoutCount,
    /// More digits than can be computed with exactly.
    #[error("an amount of more digits than can be computed with exactly")]
    TooManyDigits,
}

/// Hours that one unit of time pays for, exactly.
///
/// # Errors
/// When the unit is a term and its months are not known.
pub fn hours(unit: PriceUnit, hours_per_month: u32, commitment_months: Option<u32>) -> Result<Exact, UnitError> {
    let whole = |hours: u32| Exact::from_integer(i128::from(hours));
    Ok(match unit {
        PriceUnit::Second => Exact::new(1, 3_600),
        PriceUnit::Minute => Exact::new(1, 60),
        PriceUnit::Hour => whole(1),
        PriceUnit::Day => whole(24),
        PriceUnit::Month => whole(hours_per_month),
        PriceUnit::Year => whole(HOURS_PER_YEAR),
        PriceUnit::Term => {
            let months = commitment_months.filter(|months| *months > 0).ok_or(UnitError::TermWithoutMonths)?;
            whole(months) * whole(hours_per_month)
        }
    })
}

/// An exact decimal as a ratio.
#[must_use]
pub fn exact(amount: Decimal) -> Exact {
    let amount = amount.normalize();
    // A decimal has at most 28 digits after the point, and ten to the 28th fits.
    Exact::new(amount.mantissa(), 10_i128.pow(amount.scale()))
}

/// The prices of an hour that follow from an offer as published.
///
/// # Errors
/// When the term's length is missing, or the digits do not fit.
pub fn hour_prices(offer: &PublishedOffer, hours_per_month: Option<u32>) -> Result<HourPrices, UnitError> {
    let hours_per_month = hours_per_month.unwrap_or(HOURS_PER_MONTH);
    let months = offer.terms.commitment_months;
    let count = offer.gpu.count.map(|count| Exact::new(i128::from(*count.numer()), i128::from(*count.denom())));
    let fits = |value: Option<Exact>| value.ok_or(UnitError::TooManyDigits);

    let mut published = fits(exact(offer.price.amount).checked_div(&hours(offer.price.unit, hours_per_month, months)?))?;
    if let Some(upfront) = offer.price.upfront_amount {
        let spread = fits(exact(upfront).checked_div(&hours(PriceUnit::Term, hours_per_month, months)?))?;
        published = fits(published.checked_add(&spread))?;
    }
    let (per_hour, per_gpu_hour) = match offer.price.per {
        PricePer::Instance => (published, count.map(|count| fits(published.checked_div(&count))).transpose()?),
        PricePer::Gpu => {
            let count = count.ok_or(UnitError::PerGpuWithoutCount)?;
            (fits(published.checked_mul(&count))?, Some(published))
        }
    };
    let is_fixed = offer.gpu.share != GpuShare::Derived;
    Ok(HourPrices { per_hour, per_gpu_hour: per_gpu_hour.filter(|_| is_fixed) })
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use gpuledger_scrapers::contract::{Machine, Place, PricingModel, PublishedGpu, PublishedPrice, Terms};
    use num_traits::ToPrimitive;
    use proptest::prelude::*;

    use super::*;

    fn offer(amount: Decimal, unit: PriceUnit, per: PricePer, count: Ratio<u32>, share: GpuShare) -> PublishedOffer {
        PublishedOffer {
            site: None,
            sku: None,
            instance_type: None,
            offer_label: None,
            region: None,
            zone: None,
            gpu: PublishedGpu {
                label: None,
                count: Some(count),
                share,
                memory_gb: None,
                form_factor: None,
                interconnect: None,
                fabric_gbit_per_s: None,
            },
            machine: Machine::default(),
            terms: Terms::of(PricingModel::OnDemand),
            price: PublishedPrice {
                amount,
                upfront_amount: None,
                currency_code: "USD".to_owned(),
                unit,
                per,
                text: amount.to_string(),
                tax_included: None,
                listings: None,
            },
            place: Place { page: String::new(), at: String::new() },
            flags: BTreeSet::new(),
        }
    }

    fn eight() -> Ratio<u32> {
        Ratio::from_integer(8)
    }

    #[test]
    fn a_term_total_is_spread_over_the_hours_of_its_term() {
        let mut reserved = offer(Decimal::from(551_221), PriceUnit::Term, PricePer::Instance, eight(), GpuShare::Whole);
        assert_eq!(hour_prices(&reserved, None), Err(UnitError::TermWithoutMonths));
        reserved.terms.commitment_months = Some(12);
        let prices = hour_prices(&reserved, None).expect("it has a term");
        assert_eq!(prices.per_hour, Exact::new(551_221, 8_760));
        assert_eq!(prices.per_gpu_hour, Some(Exact::new(551_221, 70_080)));
    }

    #[test]
    fn an_upfront_part_is_added_to_the_recurring_one() {
        let mut reserved =
            offer(Decimal::new(125, 2), PriceUnit::Hour, PricePer::Instance, Ratio::from_integer(1), GpuShare::Whole);
        reserved.terms.commitment_months = Some(12);
        reserved.price.upfront_amount = Some(Decimal::from(10_950));
        assert_eq!(hour_prices(&reserved, None).map(|prices| prices.per_hour), Ok(Exact::new(5, 2)));
    }

    #[test]
    fn units_other_than_the_hour_are_exact() {
        let price = |amount: Decimal, unit| {
            hour_prices(&offer(amount, unit, PricePer::Instance, Ratio::from_integer(1), GpuShare::Whole), None)
                .map(|prices| prices.per_hour)
        };
        assert_eq!(price(Decimal::ONE, PriceUnit::Minute), Ok(Exact::from_integer(60)));
        assert_eq!(price(Decimal::new(1, 4), PriceUnit::Second), Ok(Exact::new(36, 100)));
        assert_eq!(price(Decimal::from(730), PriceUnit::Month), Ok(Exact::from_integer(1)));
        assert_eq!(price(Decimal::from(8_760), PriceUnit::Year), Ok(Exact::from_integer(1)));
        assert_eq!(price(Decimal::from(48), PriceUnit::Day), Ok(Exact::from_integer(2)));
    }

    #[test]
    fn a_fixed_slice_has_a_price_per_whole_gpu_and_a_derived_share_has_none() {
        let sixth = Ratio::new(1, 6);
        let slice = offer(Decimal::new(454, 3), PriceUnit::Hour, PricePer::Instance, sixth, GpuShare::FixedSlice);
        assert_eq!(hour_prices(&slice, None).map(|prices| prices.per_gpu_hour), Ok(Some(Exact::new(2_724, 1_000))));
        let derived = offer(Decimal::new(123, 3), PriceUnit::Hour, PricePer::Instance, Ratio::new(1, 20), GpuShare::Derived);
        assert_eq!(hour_prices(&derived, None).map(|prices| prices.per_gpu_hour), Ok(None));
    }

    #[test]
    fn a_machine_of_unknown_hardware_has_a_price_of_its_own_and_none_per_gpu() {
        let mut unknown = offer(Decimal::from(3), PriceUnit::Hour, PricePer::Instance, eight(), GpuShare::Whole);
        unknown.gpu = PublishedGpu::unknown();
        assert_eq!(hour_prices(&unknown, None), Ok(HourPrices { per_hour: Exact::from_integer(3), per_gpu_hour: None }));
        unknown.price.per = PricePer::Gpu;
        assert_eq!(hour_prices(&unknown, None), Err(UnitError::PerGpuWithoutCount));
    }

    proptest! {
        #[test]
        fn price_per_gpu_times_gpus_is_price_per_instance(units in 1_i64..=99_999_999_999, scale in 0_u32..=12, count in 1_u32..=64, per_gpu: bool) {
            let per = if per_gpu { PricePer::Gpu } else { PricePer::Instance };
            let offer = offer(Decimal::new(units, scale), PriceUnit::Hour, per, Ratio::from_integer(count), GpuShare::Whole);
            let prices = hour_prices(&offer, None).expect("these digits fit");
            let per_gpu = prices.per_gpu_hour.expect("whole cards have a price each");
            prop_assert_eq!(per_gpu * Exact::from_integer(i128::from(count)), prices.per_hour);
        }

        #[test]
        fn the_float_of_an_exact_decimal_is_the_nearest_one(units in 1_i64..=i64::MAX, scale in 0_u32..=12) {
            let amount = Decimal::new(units, scale);
            let nearest: f64 = amount.to_string().parse().expect("digits");
            prop_assert_eq!(exact(amount).to_f64().map(f64::to_bits), Some(nearest.to_bits()));
        }
    }
}
