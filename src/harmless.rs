//! Text of other people on a terminal: nothing that a terminal obeys or that turns the order of words around comes through.

use std::fmt::Write as _;

/// Whether a character does more than stand there: controls, marks of direction, marks without a width, tags.
#[must_use]
pub fn is_harmful(c: char) -> bool {
    c.is_control()
        || matches!(
            c,
            '\u{ad}'
                | '\u{61c}'
                | '\u{180e}'
                | '\u{200b}'..='\u{200f}'
                | '\u{2028}'..='\u{202e}'
                | '\u{2060}'..='\u{206f}'
                | '\u{fe00}'..='\u{fe0f}'
                | '\u{feff}'
                | '\u{fff9}'..='\u{fffb}'
                | '\u{e0000}'..='\u{e0fff}'
        )
}

/// The text in one line, each harmful character as its code: `\u{1b}`.
#[must_use]
pub fn line(text: &str) -> String {
    escaped(text, |_| false)
}

/// The same, with ends of lines and tabs as they are.
#[must_use]
pub fn lines(text: &str) -> String {
    escaped(text, |c| c == '\n' || c == '\t')
}

fn escaped(text: &str, may_stay: impl Fn(char) -> bool) -> String {
    let mut safe = String::with_capacity(text.len());
    for c in text.chars() {
        if is_harmful(c) && !may_stay(c) {
            let _ = write!(safe, "\\u{{{:x}}}", u32::from(c));
        } else {
            safe.push(c);
        }
    }
    safe
}

/// JSON with its harmful characters written as JSON writes codes. They stand in texts only, so it says the same.
#[must_use]
pub fn json(json: &str) -> String {
    let mut safe = String::with_capacity(json.len());
    for c in json.chars() {
        if is_harmful(c) && !c.is_ascii() || c == '\u{7f}' {
            for unit in c.encode_utf16(&mut [0; 2]) {
                let _ = write!(safe, "\\u{unit:04x}");
            }
        } else {
            safe.push(c);
        }
    }
    safe
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOSTILE: &str = "a\u{1b}[2J\u{9b}1m\u{202e}99.1$\u{200b}\r\nb\u{e0041}\u{7f}";

    #[test]
    fn nothing_that_a_terminal_obeys_comes_through() {
        assert_eq!(line(HOSTILE), r"a\u{1b}[2J\u{9b}1m\u{202e}99.1$\u{200b}\u{d}\u{a}b\u{e0041}\u{7f}");
        assert!(lines(HOSTILE).contains("\\u{d}\nb"));
        assert_eq!(line("价格 9,80 € ü"), "价格 9,80 € ü");
    }

    #[test]
    fn json_says_the_same_without_them() {
        let text = serde_json::to_string(HOSTILE).expect("a text is JSON");
        let safe = json(&text);
        assert!(!safe.chars().any(is_harmful), "{safe}");
        assert_eq!(serde_json::from_str::<String>(&safe).expect("it is JSON"), HOSTILE);
    }
}
