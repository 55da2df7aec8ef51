//! Values of rows on their way to a page: text that cannot turn words around, addresses that lead only to the web, numbers as
//! people read them.

use polars::prelude::*;
use url::Url;

use crate::frame::Cell;
use crate::harmless::cut;

/// Characters of the longest text of a cell.
const LONGEST: usize = 300;

/// Digits after the point of a price per hour.
const DIGITS: usize = 4;

/// A text of somebody else as the page shows it. It is escaped later, as all text is.
pub(super) fn shown(text: &str) -> String {
    cut(text, LONGEST).into_owned()
}

/// An address that a reader may be led to: one of the web, in the form in which a browser reads it, or none.
pub(super) fn link(address: &str) -> Option<String> {
    let url = Url::parse(address).ok()?;
    let is_web =
        matches!(url.scheme(), "http" | "https") && url.has_host() && url.username().is_empty() && url.password().is_none();
    is_web.then(|| url.to_string())
}

/// A price in dollars for an hour. `12.2900`
pub(super) fn dollars(usd: f64) -> String {
    format!("{usd:.DIGITS$}")
}

/// A count with its thousands apart by a thin space, as both languages write it. `20 000`
pub(super) fn count(number: impl TryInto<i64>) -> String {
    let number = number.try_into().unwrap_or(i64::MAX);
    let digits = number.unsigned_abs().to_string();
    let mut text = String::from(if number < 0 { "−" } else { "" });
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push('\u{202f}');
        }
        text.push(digit);
    }
    text
}

/// A column as text, null as nothing.
///
/// # Errors
/// When there is no such column.
pub(super) fn texts(rows: &DataFrame, column: &str) -> PolarsResult<Vec<String>> {
    let column = rows.select([column])?;
    let name = column.get_column_names()[0].clone();
    (0..column.height()).map(|row| Cell::at(&column, &name, row).map(|cell| cell.text())).collect()
}

/// A column of floats.
///
/// # Errors
/// When there is no such column.
pub(super) fn floats(rows: &DataFrame, column: &str) -> PolarsResult<Vec<Option<f64>>> {
    let numbers = rows.column(column)?.cast(&DataType::Float64)?;
    Ok(numbers.f64()?.iter().collect())
}

/// A column of whole numbers, null as none of whatever is counted.
///
/// # Errors
/// When there is no such column.
pub(super) fn integers(rows: &DataFrame, column: &str) -> PolarsResult<Vec<i64>> {
    let numbers = rows.column(column)?.cast(&DataType::Int64)?;
    Ok(numbers.i64()?.iter().map(Option::unwrap_or_default).collect())
}

/// JSON that may stand in a script of a page: nothing in it ends the script, begins another, or is an end of a line for an
/// old reader of scripts. It says the same.
pub(super) fn json_in_script(json: &str) -> String {
    let mut safe = String::with_capacity(json.len() + json.len() / 50);
    for c in json.chars() {
        match c {
            '<' => safe.push_str("\\u003c"),
            '>' => safe.push_str("\\u003e"),
            '&' => safe.push_str("\\u0026"),
            '\u{2028}' => safe.push_str("\\u2028"),
            '\u{2029}' => safe.push_str("\\u2029"),
            c => safe.push(c),
        }
    }
    safe
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_leads_to_the_web_or_nowhere() {
        for (address, leads_to) in [
            ("https://lambda.ai/pricing", Some("https://lambda.ai/pricing")),
            ("http://a.example/?q=\"<b>", Some("http://a.example/?q=%22%3Cb%3E")),
            ("javascript:alert(1)", None),
            (" \tjava\nscript:alert(1)", None),
            ("data:text/html,<script>", None),
            ("file:///etc/passwd", None),
            ("//a.example/", None),
            ("https://user:word@a.example/", None),
            ("", None),
        ] {
            assert_eq!(link(address).as_deref(), leads_to, "{address:?}");
        }
    }

    #[test]
    fn json_in_a_script_cannot_end_it_and_says_the_same() {
        let text = "</script><script>alert(1)</script><!-- & \u{2028} \u{2029} \" \\";
        let json = serde_json::to_string(text).expect("a text is JSON");
        let safe = json_in_script(&json);
        assert!(!safe.contains(['<', '>', '&', '\u{2028}', '\u{2029}']), "{safe}");
        assert_eq!(serde_json::from_str::<String>(&safe).expect("it is JSON"), text);
    }

    #[test]
    fn thousands_stand_apart() {
        assert_eq!(
            [0, 12, 999, 1_000, 20_000, 1_234_567].map(count),
            ["0", "12", "999", "1\u{202f}000", "20\u{202f}000", "1\u{202f}234\u{202f}567"]
        );
        assert_eq!(count(-1_000), "−1\u{202f}000");
    }
}
