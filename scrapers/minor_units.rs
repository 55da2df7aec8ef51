//! Amounts printed in cents and other minor units. Which field is in them is a fact of the source that its parser writes down
//! by calling this; nothing is told from the size of a number.

use iso_currency::Currency;
use rust_decimal::Decimal;

use crate::contract::SkipReason;

/// An amount in the currency's minor unit as an amount in the currency: 412 US cents are 4.12 dollars, 412 yen are 412 yen.
///
/// # Errors
/// When ISO 4217 does not list the currency or knows no minor unit of it, or when the amount has more digits than a decimal
/// keeps. Nothing is rounded.
pub fn in_currency(amount_minor: Decimal, currency_code: &str) -> Result<Decimal, SkipReason> {
    let unknown = || SkipReason::UnknownWord { what: "currency", word: currency_code.to_owned() };
    let digits = Currency::from_code(currency_code).and_then(Currency::exponent).ok_or_else(unknown)?;
    let scale = amount_minor.scale() + u32::from(digits);
    let amount = Decimal::try_from_i128_with_scale(amount_minor.mantissa(), scale);
    amount.map(|amount| amount.normalize()).map_err(|_| SkipReason::PriceUnreadable { text: amount_minor.to_string() })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::money::{decimal, positive};

    #[test]
    fn cents_are_hundredths_of_a_dollar_and_a_yen_has_none() {
        let read = |text: &str, code: &str| in_currency(decimal(text).expect("a number"), code);
        for (text, code, amount) in [
            ("412", "USD", "4.12"),
            ("87", "USD", "0.87"),
            ("1", "EUR", "0.01"),
            ("412.5", "USD", "4.125"),
            ("412", "JPY", "412"),
            ("4120", "KWD", "4.12"),
        ] {
            assert_eq!(read(text, code), Ok(Decimal::from_str_exact(amount).expect("a decimal")), "{text} {code}");
        }
        assert_eq!(read("0", "USD").and_then(|amount| positive(amount, "0")), Err(SkipReason::PriceZero));
        for code in ["RMB", "", "usd", "XXX"] {
            assert!(matches!(read("412", code), Err(SkipReason::UnknownWord { .. })), "{code}");
        }
        let long = Decimal::from_i128_with_scale(1, 28);
        assert!(matches!(in_currency(long, "USD"), Err(SkipReason::PriceUnreadable { .. })));
    }
}
