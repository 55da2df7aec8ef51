//! Printed price → exact decimal. The decimal mark is a fact of the source, never guessed from the digits.

use iso_currency::Currency;
use rust_decimal::Decimal;

use crate::contract::SkipReason;
use crate::grid::is_blank;

/// How a source writes numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NumberFormat {
    /// `2,345.678`
    PointDecimal,
    /// `2.345,678`, also with blanks or apostrophes between thousands.
    CommaDecimal,
}

/// Nothing that is counted or paid in a price list is as large, in any currency or unit; and what is smaller can be multiplied
/// by another such number without an overflow.
const LARGEST: Decimal = Decimal::from_parts(276_447_232, 23_283, 0, false, 0);

/// An exact decimal from the characters of a plain number, with or without an exponent. `1.5e-05`
///
/// `None` when it is no number, has more digits than a decimal keeps, or is a hundred trillion or more; nothing is rounded.
#[must_use]
pub fn decimal(text: &str) -> Option<Decimal> {
    exact(text).filter(|amount| amount.abs() < LARGEST)
}

fn exact(text: &str) -> Option<Decimal> {
    let Some((mantissa, exponent)) = text.split_once(['e', 'E']) else { return plain(text) };
    let mantissa = plain(mantissa)?;
    let exponent: i32 = exponent.parse().ok()?;
    let scale = i32::try_from(mantissa.scale()).ok()?.checked_sub(exponent)?;
    if scale >= 0 {
        Decimal::try_from_i128_with_scale(mantissa.mantissa(), u32::try_from(scale).ok()?).ok().map(|amount| amount.normalize())
    } else {
        let power = 10_i128.checked_pow(scale.unsigned_abs())?;
        Decimal::try_from_i128_with_scale(mantissa.mantissa().checked_mul(power)?, 0).ok()
    }
}

/// Digits with at most one point among them, which the decimal type's own reader would let stand beside other signs.
fn plain(text: &str) -> Option<Decimal> {
    let unsigned = text.strip_prefix('-').unwrap_or(text);
    let is_plain = unsigned.starts_with(|c: char| c.is_ascii_digit()) && unsigned.chars().all(|c| c.is_ascii_digit() || c == '.');
    if is_plain { Decimal::from_str_exact(text).ok().map(|amount| amount.normalize()) } else { None }
}

/// The amount in a printed price such as `$2.99`, `1.234,56 €` or `¥34.53`.
///
/// Only the symbols given may stand around the number: a currency is stated by the source's manifest, and a symbol
/// that is not expected is a different price.
///
/// # Errors
/// Says why there is no amount: none printed, on request, sold out, or characters that do not fit the format.
pub fn printed(text: &str, format: NumberFormat, symbols: &[&str]) -> Result<Decimal, SkipReason> {
    let trimmed = text.trim();
    let lower = trimmed.to_lowercase();
    if is_blank(trimmed) || ["n/a", "nan", "null"].contains(&lower.as_str()) {
        return Err(SkipReason::PriceMissing);
    }
    if ["contact", "request", "talk to", "tbd", "inquire"].iter().any(|word| lower.contains(word)) {
        return Err(SkipReason::PriceOnRequest { text: trimmed.to_owned() });
    }
    if lower.contains("sold out") {
        return Err(SkipReason::SoldOut);
    }
    let has_digit = lower.contains(|c: char| c.is_ascii_digit());
    let is_floor = ["from ", "starts ", "starting ", "as low as ", "up to "].iter().any(|word| lower.starts_with(word));
    if has_digit && (is_floor || lower.ends_with(['*', '†', '‡', '¹', '²', '³', '+'])) {
        return Err(SkipReason::PriceNotExact { text: trimmed.to_owned() });
    }
    let unreadable = || SkipReason::PriceUnreadable { text: trimmed.to_owned() };
    let mut number = trimmed;
    for symbol in symbols {
        number = number.strip_prefix(symbol).or_else(|| number.strip_suffix(symbol)).unwrap_or(number).trim();
    }
    let (groups, mark): (&[char], char) = match format {
        NumberFormat::PointDecimal => (&[','], '.'),
        NumberFormat::CommaDecimal => (&['.', ' ', '\u{a0}', '\u{202f}', '\''], ','),
    };
    let (whole, fraction) = number.split_once(mark).unwrap_or((number, ""));
    let parts: Vec<&str> = whole.split(groups).collect();
    let grouped_well = parts.len() == 1 || parts.iter().skip(1).all(|part| part.len() == 3) && (1..=3).contains(&parts[0].len());
    let digits = |part: &str| part.chars().all(|c| c.is_ascii_digit());
    if !grouped_well || !parts.iter().all(|part| !part.is_empty() && digits(part)) || !digits(fraction) {
        return Err(unreadable());
    }
    let plain = if fraction.is_empty() { parts.concat() } else { format!("{}.{fraction}", parts.concat()) };
    decimal(&plain).ok_or_else(unreadable)
}

/// An amount that may be published: above zero.
///
/// # Errors
/// Zero is a placeholder, and a price below zero is unreadable.
pub fn positive(amount: Decimal, text: &str) -> Result<Decimal, SkipReason> {
    if amount.is_zero() {
        Err(SkipReason::PriceZero)
    } else if amount.is_sign_negative() {
        Err(SkipReason::PriceUnreadable { text: text.to_owned() })
    } else {
        Ok(amount)
    }
}

/// A currency code, if ISO 4217 lists it.
///
/// # Errors
/// When it does not.
pub fn currency_code(code: &str) -> Result<String, SkipReason> {
    match Currency::from_code(code) {
        Some(_) => Ok(code.to_owned()),
        None => Err(SkipReason::UnknownWord { what: "currency", word: code.to_owned() }),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn dec(text: &str) -> Decimal {
        Decimal::from_str_exact(text).expect("a literal decimal")
    }

    #[test]
    fn a_plain_number_is_read_from_its_characters() {
        for (text, value) in
            [("98.32", "98.32"), ("551221.0", "551221"), ("3", "3"), ("1.5e-05", "0.000015"), ("1E3", "1000"), ("2.5e+2", "250")]
        {
            assert_eq!(decimal(text), Some(dec(value)), "{text}");
        }
        for text in ["", "NaN", "abc", ".", "1.2.3", "1e", "--1", "+1", "0x10", "1e400", "0.12345678901234567890123456789012345"]
        {
            assert_eq!(decimal(text), None, "{text}");
        }
        for text in
            ["1e-2147483648", "1e2147483647", "1e-99999999999", "1_0e1", "1_0", "1e1e1", "1e", "e1", "１２", "٣", " 1", "1e 1"]
        {
            assert_eq!(decimal(text), None, "{text}");
        }
    }

    #[test]
    fn what_is_larger_than_anything_that_is_counted_is_no_number() {
        assert_eq!(LARGEST, dec("100000000000000"));
        assert_eq!(decimal("99999999999999.99"), Some(dec("99999999999999.99")));
        for text in ["100000000000000", "-100000000000000", "1e14", "1e28", "79228162514264337593543950335"] {
            assert_eq!(decimal(text), None, "{text}");
        }
        let nearly = dec("99999999999999.99999999999999");
        assert!(nearly.checked_mul(nearly).is_some(), "two of them multiply");
    }

    #[test]
    fn three_decimals_are_not_thousands() {
        for (text, value) in
            [("$2.499", "2.499"), ("$12.290", "12.29"), ("0.0778", "0.0778"), ("2,345.678", "2345.678"), ("$0.7523", "0.7523")]
        {
            assert_eq!(printed(text, NumberFormat::PointDecimal, &["$"]), Ok(dec(value)), "{text}");
        }
    }

    #[test]
    fn a_decimal_comma_is_read_where_the_source_writes_one() {
        for (text, value) in
            [("1.234,56 €", "1234.56"), ("0,89 €", "0.89"), ("1\u{a0}234,56 €", "1234.56"), ("1'234,56 €", "1234.56")]
        {
            assert_eq!(printed(text, NumberFormat::CommaDecimal, &["€"]), Ok(dec(value)), "{text}");
        }
        assert_eq!(
            printed("1'234.56 CHF", NumberFormat::CommaDecimal, &["CHF"]),
            Err(SkipReason::PriceUnreadable { text: "1'234.56 CHF".to_owned() })
        );
    }

    #[test]
    fn a_symbol_that_the_source_does_not_state_is_another_price() {
        for text in ["¥34.53", "￥34.53"] {
            assert_eq!(printed(text, NumberFormat::PointDecimal, &["¥", "￥"]), Ok(dec("34.53")), "{text}");
            assert!(printed(text, NumberFormat::PointDecimal, &["$"]).is_err(), "{text}");
        }
        for text in ["6,00 € inkl. 20% MwSt.", "1.234.56 €", "1,234,56 €", "١,٥ €", "１２ €"] {
            assert!(printed(text, NumberFormat::CommaDecimal, &["€"]).is_err(), "{text}");
        }
        assert_eq!(printed("1,600.00 CAD", NumberFormat::PointDecimal, &["CAD"]), Ok(dec("1600")));
    }

    #[test]
    fn a_text_that_is_no_price_says_why() {
        let read = |text| printed(text, NumberFormat::PointDecimal, &["$"]);
        assert_eq!(read("-"), Err(SkipReason::PriceMissing));
        assert_eq!(read("N/A"), Err(SkipReason::PriceMissing));
        assert_eq!(read("Sold out"), Err(SkipReason::SoldOut));
        assert_eq!(read("Contact sales"), Err(SkipReason::PriceOnRequest { text: "Contact sales".to_owned() }));
        for text in ["€2.99", "$1,23", "12,3456.7", "2.99 / 3.99", "$", "from"] {
            assert_eq!(read(text), Err(SkipReason::PriceUnreadable { text: text.to_owned() }), "{text}");
        }
    }

    #[test]
    fn a_floor_or_a_price_with_a_footnote_is_no_exact_price() {
        for text in ["from $0.99", "From $1.55", "Starting at $2", "as low as $1.5", "$0.74**", "2.24*", "$10+"] {
            let read = printed(text, NumberFormat::PointDecimal, &["$"]);
            assert_eq!(read, Err(SkipReason::PriceNotExact { text: text.to_owned() }), "{text}");
        }
        assert_eq!(printed("––", NumberFormat::PointDecimal, &["$"]), Err(SkipReason::PriceMissing));
    }

    #[test]
    fn zero_and_less_are_no_prices() {
        assert_eq!(positive(dec("0.000"), "0.000"), Err(SkipReason::PriceZero));
        assert!(matches!(positive(dec("-1"), "-1"), Err(SkipReason::PriceUnreadable { .. })));
    }

    #[test]
    fn only_listed_currencies_pass() {
        assert_eq!(currency_code("CNY"), Ok("CNY".to_owned()));
        assert!(currency_code("RMB").is_err());
        assert!(currency_code("").is_err());
    }

    proptest! {
        #[test]
        fn printing_then_reading_a_price_is_identity(units in 0_i64..=9_999_999_999, scale in 0_u32..=9) {
            let amount = Decimal::new(units, scale);
            prop_assert_eq!(decimal(&amount.to_string()), Some(amount.normalize()));
            prop_assert_eq!(printed(&format!("${amount}"), NumberFormat::PointDecimal, &["$"]), Ok(amount.normalize()));
            let comma = amount.to_string().replace('.', ",");
            prop_assert_eq!(printed(&format!("{comma} €"), NumberFormat::CommaDecimal, &["€"]), Ok(amount.normalize()));
        }
    }
}
