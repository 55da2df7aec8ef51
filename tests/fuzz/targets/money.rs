//! Printed prices and plain numbers: what is read prints as what was read, and nothing is guessed.
#![no_main]

use gpuledger_fuzz::{limited_memory, mutate_text};
use gpuledger_scrapers::money::{self, NumberFormat};
use gpuledger_scrapers::{hardware, sha256};
use libfuzzer_sys::{fuzz_mutator, fuzz_target, fuzzer_mutate};

limited_memory!();

const TEXTS: &[&str] = &["98.32", "1.5e-05", "$2,345.678", "1.234,56 €", "1'234,56 CHF", "¥34.53", "Contact sales", "1/6", "0.000", "CNY"];

fuzz_target!(|data: &[u8]| {
    let Ok(text) = std::str::from_utf8(data) else { return };
    if let Some(amount) = money::decimal(text) {
        assert!(text.contains(|c: char| c.is_ascii_digit()) && text.is_ascii(), "{text:?}");
        assert_eq!(money::decimal(&amount.to_string()), Some(amount.normalize()), "{text:?}");
        // No float is exact; one that is far away is another number.
        let float: f64 = text.parse().expect("what is a decimal is a float");
        let same = rust_decimal::Decimal::to_string(&amount).parse::<f64>().expect("a decimal is a float");
        assert!((float - same).abs() <= float.abs() * 1e-12, "{text:?} became {amount}");
        if let Some(count) = hardware::count_of(amount) {
            assert!(*count.numer() > 0 && !amount.is_sign_negative(), "{text:?}");
        }
        if money::positive(amount, text).is_ok() {
            assert!(amount.is_sign_positive() && !amount.is_zero(), "{text:?}");
        }
    }
    for (format, symbols) in [(NumberFormat::PointDecimal, &["$", "¥", "USD"][..]), (NumberFormat::CommaDecimal, &["€", "CHF"][..])] {
        if let Ok(amount) = money::printed(text, format, symbols) {
            assert!(!amount.is_sign_negative(), "{text:?} became {amount}");
            let digits = |text: &str| text.chars().filter(char::is_ascii_digit).collect::<String>().trim_matches('0').to_owned();
            assert_eq!(digits(text), digits(&amount.to_string()), "{text:?} became {amount}");
        }
    }
    if let Ok(code) = money::currency_code(text) {
        assert!(code.len() == 3 && code.bytes().all(|byte| byte.is_ascii_uppercase()), "{text:?}");
    }
    if let Some(count) = hardware::count(text) {
        assert!(*count.numer() > 0, "{text:?}");
    }
    assert_eq!(sha256(data).len(), 64);
});

fuzz_mutator!(|data: &mut [u8], size: usize, max_size: usize, seed: u32| {
    if seed % 2 == 0 && size > 0 { fuzzer_mutate(data, size, max_size) } else { mutate_text(data, size, max_size, seed, TEXTS) }
});
