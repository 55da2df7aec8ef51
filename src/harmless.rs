//! Text of other people on a terminal: nothing that a terminal obeys, or that turns the order of words around, comes through.

use std::borrow::Cow;

/// Characters of a text that are shown: more than a screen has.
const LONGEST: usize = 2_000;

/// Text from somebody else, safe to show on a terminal.
///
/// What cannot be seen, or moves the cursor, turns the direction of writing or breaks the line is spelled out, such as
/// `\u{1b}`, and a text longer than a screen is cut.
#[must_use]
pub fn harmless(text: &str) -> Cow<'_, str> {
    cut(text, LONGEST)
}

/// The same with a length of one's own, in characters.
#[must_use]
pub fn cut(text: &str, longest: usize) -> Cow<'_, str> {
    let end = text.char_indices().nth(longest).map_or(text.len(), |(end, _)| end);
    if end == text.len() && text.chars().all(is_seen) {
        return Cow::Borrowed(text);
    }
    let mut shown = spelled_out(&text[..end], |_| false);
    if end < text.len() {
        shown.push('…');
    }
    Cow::Owned(shown)
}

/// The whole text in one line.
#[must_use]
pub fn line(text: &str) -> String {
    spelled_out(text, |_| false)
}

/// The whole text, with ends of lines and tabs as they are.
#[must_use]
pub fn lines(text: &str) -> String {
    spelled_out(text, |c| c == '\n' || c == '\t')
}

/// JSON with its harmful characters written as JSON writes codes. They stand in texts only, so it says the same.
#[must_use]
pub fn json(json: &str) -> String {
    let mut safe = String::with_capacity(json.len());
    for c in json.chars() {
        if is_seen(c) || c == '\n' || c == '\t' {
            safe.push(c);
        } else {
            for unit in c.encode_utf16(&mut [0; 2]) {
                safe.push_str(&format!("\\u{unit:04x}"));
            }
        }
    }
    safe
}

/// Whether a character does nothing but stand there. What Rust spells out in a debug print is what has no picture of its own;
/// quotes and backslashes have one.
#[must_use]
pub fn is_seen(c: char) -> bool {
    matches!(c, '"' | '\'' | '\\') || c.escape_debug().len() == 1
}

fn spelled_out(text: &str, may_stay: impl Fn(char) -> bool) -> String {
    let mut shown = String::with_capacity(text.len());
    for c in text.chars() {
        if is_seen(c) || may_stay(c) { shown.push(c) } else { shown.extend(c.escape_debug()) }
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOSTILE: &str = "a\u{1b}[2J\u{9b}1m\u{202e}99.1$\u{200b}\r\nb\u{e0041}\u{7f}";

    #[test]
    fn what_would_upset_a_terminal_is_written_as_its_number() {
        assert_eq!(harmless("H100 “SXM” · 8 × 80 GB, 上海"), "H100 “SXM” · 8 × 80 GB, 上海");
        assert!(matches!(harmless("plain"), Cow::Borrowed(_)));
        assert_eq!(harmless("a\u{1b}[2Jb\r\nc\u{7}\u{9b}d"), "a\\u{1b}[2Jb\\r\\nc\\u{7}\\u{9b}d");
        assert_eq!(
            harmless("1\u{202e}00.1\u{2066}\u{200f}\u{2028}\u{feff}"),
            "1\\u{202e}00.1\\u{2066}\\u{200f}\\u{2028}\\u{feff}"
        );
    }

    #[test]
    fn a_terminal_obeys_nothing_that_a_page_says() {
        for (text, shown) in [
            ("8x H100 SXM (80 GB), 华北2 ¥3 \"é\" \\ 'x'", "8x H100 SXM (80 GB), 华北2 ¥3 \"é\" \\ 'x'"),
            ("\u{1b}[31mred\u{1b}[0m", "\\u{1b}[31mred\\u{1b}[0m"),
            ("\u{1b}]8;;http://x\u{7}link", "\\u{1b}]8;;http://x\\u{7}link"),
            ("\u{9b}2J", "\\u{9b}2J"),
            ("a\nb\tc\rd\u{8}", "a\\nb\\tc\\rd\\u{8}"),
            ("a\u{202e}b\u{2066}c\u{2069}d\u{200b}\u{feff}", "a\\u{202e}b\\u{2066}c\\u{2069}d\\u{200b}\\u{feff}"),
            ("a\u{0}\u{2028}\u{e0041}", "a\\0\\u{2028}\\u{e0041}"),
        ] {
            assert_eq!(harmless(text), shown);
        }
        assert!(matches!(harmless("plain"), Cow::Borrowed("plain")));
        assert_eq!(harmless(&"x".repeat(5_000)).chars().count(), 2_001);
    }

    #[test]
    fn ends_of_lines_stay_where_they_are_meant() {
        assert!(lines(HOSTILE).contains("\\r\nb"));
        assert!(line(HOSTILE).contains("\\r\\nb"));
    }

    #[test]
    fn json_says_the_same_without_them() {
        let text = serde_json::to_string(HOSTILE).expect("a text is JSON");
        let safe = json(&text);
        assert!(safe.chars().all(is_seen), "{safe}");
        assert_eq!(serde_json::from_str::<String>(&safe).expect("it is JSON"), HOSTILE);
    }
}
