//! Text → text that somebody hostile, or a broken server, might have sent instead.
//!
//! In: the bytes of a page and a source of chance. Out: the same bytes with one change that keeps most of the page
//! readable: a number becomes a hostile one, a word another word, a bracket's content goes away or stands twice. Never looks
//! at what the text means, so it fits JSON, HTML, XML and CSV alike.

use std::ops::Range;

/// Chance that can be had again from its seed.
#[derive(Debug, Clone)]
pub struct Chance(u64);

impl Chance {
    /// Chance from a seed.
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// The next number, by SplitMix64.
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A number below a limit; zero where the limit is zero.
    pub fn below(&mut self, limit: usize) -> usize {
        let limit = u64::try_from(limit).expect("a length fits").max(1);
        usize::try_from(self.next() % limit).expect("it is below a length")
    }

    fn one_of<'a>(&mut self, words: &'a [&'a str]) -> &'a str {
        words[self.below(words.len())]
    }
}

/// Numbers that are none, or are too long, too large, negative, or written in another script.
const NUMBERS: [&str; 26] = [
    "0",
    "-0",
    "-1",
    "00012",
    "1e308",
    "1e-28",
    "1E+28",
    "1e400",
    "-1e-7",
    "0.1e1",
    "1.",
    ".5",
    "+1",
    "0x10",
    "１２",
    "٣",
    "1,234.56",
    "1.234,56",
    "79228162514264337593543950335",
    "79228162514264337593543950336",
    "0.0000000000000000000000000001",
    "0.12345678901234567890123456789",
    "4294967295",
    "4294967296",
    "NaN",
    "Infinity",
];

/// Words that mean something to somebody: a parser, a terminal, a spreadsheet, a file system.
const WORDS: [&str; 26] = [
    "null",
    "true",
    "\"\"",
    "[]",
    "{}",
    "\\u0000",
    "\\ud800",
    "\\\"",
    "\u{feff}",
    "\u{0}",
    "\u{202e}",
    "\u{200b}",
    "\u{1b}[31m",
    "=HYPERLINK(1)",
    "../../x",
    "zyx",
    "<b>",
    "</td>",
    "<!--",
    "&lt;",
    "&#0;",
    "]]>",
    "\r\n",
    "\"",
    ",",
    "'",
];

/// Bytes that no text begins with, or that are no text at all.
const BYTES: [&[u8]; 7] =
    [b"\xef\xbb\xbf", b"\xff", b"\x1f\x8b\x08\x00", b"\xc0\x80", b"PK\x03\x04", b"\0\0\0\0", b"\xed\xa0\x80"];

/// Makes one change. The text may become longer than `longest` by a few bytes, which are then cut off.
pub fn mutate(text: &mut Vec<u8>, chance: &mut Chance, longest: usize) {
    match chance.below(16) {
        0..=2 => replace_number(text, chance),
        3 => {
            let token = token(text, chance);
            let word = chance.one_of(&WORDS).as_bytes().to_vec();
            text.splice(token, word);
        }
        4 | 5 => {
            let (token, other) = (token(text, chance), token(text, chance));
            let other = text[other].to_vec();
            text.splice(token, other);
        }
        6 | 7 => {
            let span = span(text, chance);
            let twice = text[span.clone()].to_vec();
            text.splice(span.end..span.end, twice);
        }
        8 | 9 => {
            let span = span(text, chance);
            text.drain(span);
        }
        10 => {
            let (span, other) = (span(text, chance), span(text, chance));
            let other = text[other].to_vec();
            text.splice(span, other);
        }
        11 => {
            let at = chance.below(text.len());
            if let Some(byte) = text.get_mut(at) {
                *byte ^= 1 << chance.below(8);
            }
        }
        12 => {
            let range = range(text, chance, 64);
            text.drain(range);
        }
        13 => text.truncate(chance.below(text.len() + 1)),
        14 => {
            let at = if chance.below(2) == 0 { 0 } else { chance.below(text.len() + 1) };
            text.splice(at..at, BYTES[chance.below(BYTES.len())].iter().copied());
        }
        _ => {
            let range = range(text, chance, 32);
            let times = 1 << chance.below(10);
            let many = text[range.clone()].repeat(times);
            text.splice(range, many);
        }
    }
    text.truncate(longest);
}

fn replace_number(text: &mut Vec<u8>, chance: &mut Chance) {
    let from = chance.below(text.len());
    let Some(start) = text[from..].iter().position(u8::is_ascii_digit).map(|at| from + at) else { return };
    let is_number = |byte: &u8| byte.is_ascii_digit() || *byte == b'.';
    let end = text[start..].iter().position(|byte| !is_number(byte)).map_or(text.len(), |at| start + at);
    let number = chance.one_of(&NUMBERS).as_bytes().to_vec();
    text.splice(start..end, number);
}

/// A word, a number, or one sign.
fn token(text: &[u8], chance: &mut Chance) -> Range<usize> {
    if text.is_empty() {
        return 0..0;
    }
    let at = chance.below(text.len());
    let is_word = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'.' | b'-' | 0x80..);
    if !is_word(&text[at]) {
        return at..at + 1;
    }
    let start = text[..at].iter().rposition(|byte| !is_word(byte)).map_or(0, |before| before + 1);
    let end = text[at..].iter().position(|byte| !is_word(byte)).map_or(text.len(), |after| at + after);
    start..end
}

/// An object, list or element with what is in it, a line, or a field up to the next comma.
fn span(text: &[u8], chance: &mut Chance) -> Range<usize> {
    let from = chance.below(text.len());
    let Some(start) = text[from..].iter().position(|byte| b"{[<\n,".contains(byte)).map(|at| from + at) else { return 0..0 };
    let close = match text[start] {
        b'{' => b'}',
        b'[' => b']',
        b'<' => b'>',
        sign => sign,
    };
    let mut depth = 0_usize;
    for (at, byte) in text[start..].iter().enumerate() {
        if *byte == close && (depth == 1 || close == text[start] && at > 0) {
            return start..start + at + usize::from(close != text[start]);
        }
        depth = if *byte == text[start] {
            depth + 1
        } else if *byte == close {
            depth - 1
        } else {
            depth
        };
    }
    start..text.len()
}

fn range(text: &[u8], chance: &mut Chance, longest: usize) -> Range<usize> {
    let start = chance.below(text.len());
    start..(start + 1 + chance.below(longest)).min(text.len())
}
