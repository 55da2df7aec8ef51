//! From a place back to the bytes that stand there.
//!
//! In: a page and a place in it. Out: the very bytes of the value and of what is around it. Never reads a price: it cuts out
//! what a person has to see to check one.

use std::collections::HashMap;
use std::ops::Range;

use serde_json::value::RawValue;

use crate::contract::{Page, Place};

/// One of the places that a price was read from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Spot {
    /// The place.
    pub place: Place,
    /// What it gave to the price. `price`, `rate of SKU 0A1B-2C3D`
    pub gives: String,
    /// The characters to look for there.
    pub printed: Vec<String>,
}

/// A piece of a page.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Piece {
    /// What it is. `value`, `parent object`, `header`, `row`
    pub is: &'static str,
    /// Where its first byte stands in the page; `None` where the bytes are packed or escaped in it, and the text was unpacked.
    pub starts_at: Option<usize>,
    /// The characters.
    pub text: String,
}

impl Piece {
    /// A piece of a page's text by its bytes; `None` where they are no piece of it.
    #[must_use]
    pub fn of(is: &'static str, text: &str, range: Range<usize>) -> Option<Self> {
        let piece = text.get(range.clone())?;
        Some(Self { is, starts_at: Some(range.start), text: piece.to_owned() })
    }

    /// Text that does not stand in the page as it is.
    #[must_use]
    pub fn unpacked(is: &'static str, text: String) -> Self {
        Self { is, starts_at: None, text }
    }
}

/// The one place of a price that is printed in one.
#[must_use]
pub fn one(place: &Place, text: &str) -> Spot {
    // Two amounts of one price, such as one by the hour and one at the start, are printed apart.
    Spot { place: place.clone(), gives: "price".to_owned(), printed: text.split(" + ").map(str::to_owned).collect() }
}

/// The one place of a price whose text puts words of our own beside the numbers that stand there: `39 cents`.
#[must_use]
pub fn numbers(place: &Place, text: &str) -> Spot {
    // A zero may stand for a field that the page leaves out.
    let words = text.split_whitespace().map(|word| word.trim_matches(['(', ')']));
    let printed = words.filter(|word| word.contains(|c: char| c.is_ascii_digit() && c != '0')).map(str::to_owned).collect();
    Spot { place: place.clone(), gives: "price".to_owned(), printed }
}

/// The number in a place such as `card 3, on demand`, counted from 0.
#[must_use]
pub fn index(at: &str, of: &str) -> Option<usize> {
    let rest = at.strip_prefix(of)?.strip_prefix(' ')?;
    rest[..rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len())].parse::<usize>().ok()?.checked_sub(1)
}

/// The pieces at a place that is a JSON pointer or a line: the place last, what is around it first.
#[must_use]
pub fn pieces(page: &Page, at: &str) -> Option<Vec<Piece>> {
    let text = page.text().ok()?;
    if at.starts_with('/') {
        return pointed(text, at);
    }
    line(text, at.strip_prefix("line ")?.split(',').next()?.parse().ok()?, 1)
}

/// A line by its number, and the line of the columns' names. Both are counted from 1.
#[must_use]
pub fn line(text: &str, number: usize, header: usize) -> Option<Vec<Piece>> {
    let named = Piece::of("header", text, range_of_line(text, header)?)?;
    let row = Piece::of("line", text, range_of_line(text, number)?)?;
    Some(vec![named, row])
}

/// The bytes of a line without its end.
#[must_use]
pub fn range_of_line(text: &str, number: usize) -> Option<Range<usize>> {
    let mut start = 0;
    for _ in 1..number {
        start += memchr::memchr(b'\n', &text.as_bytes()[start..])? + 1;
    }
    if start >= text.len() {
        return None;
    }
    let end = memchr::memchr(b'\n', &text.as_bytes()[start..]).map_or(text.len(), |length| start + length);
    Some(start..end)
}

/// The value that a JSON pointer names, and the nearest object around it that is less than the whole page.
fn pointed(text: &str, at: &str) -> Option<Vec<Piece>> {
    let root: &RawValue = serde_json::from_str(text).ok()?;
    let (mut parent, mut value) = (None, root.get());
    for (depth, token) in at.split('/').skip(1).filter(|_| at != "/").enumerate() {
        let inner = child(value, &token.replace("~1", "/").replace("~0", "~"))?;
        if depth > 0 && value.starts_with('{') {
            parent = Some(value);
        }
        value = inner;
    }
    let piece = |is, part: &str| {
        // Both are slices of the same text.
        let start = (part.as_ptr() as usize).checked_sub(text.as_ptr() as usize)?;
        Piece::of(is, text, start..start + part.len())
    };
    let mut pieces = Vec::new();
    if let Some(parent) = parent {
        pieces.push(piece("parent object", parent)?);
    }
    pieces.push(piece("value", value)?);
    Some(pieces)
}

/// A field of an object or an element of a list.
fn child<'a>(value: &'a str, token: &str) -> Option<&'a str> {
    if value.starts_with('[') {
        let elements: Vec<&'a RawValue> = serde_json::from_str(value).ok()?;
        return elements.get(token.parse::<usize>().ok()?).map(|element| element.get());
    }
    let fields: HashMap<String, &'a RawValue> = serde_json::from_str(value).ok()?;
    fields.get(token).map(|field| field.get())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::contract::SCOPE_ALL;
    use crate::{ALL, recordings};

    fn page(body: &str) -> Page {
        Page {
            name: "list".to_owned(),
            scope: SCOPE_ALL.to_owned(),
            url: String::new(),
            observed_at: chrono::DateTime::UNIX_EPOCH,
            sha256: String::new(),
            body: body.as_bytes().to_vec(),
        }
    }

    #[test]
    fn a_pointer_gives_the_very_bytes_and_those_around_it() {
        let page = page(r#" {"a/b": [ {"price" : 1.50}, 2 ]} "#);
        let pieces = pieces(&page, "/a~1b/0/price").expect("the place is there");
        assert_eq!((pieces[0].is, pieces[0].text.as_str()), ("parent object", r#"{"price" : 1.50}"#));
        assert_eq!((pieces[1].is, pieces[1].text.as_str()), ("value", "1.50"));
        let start = pieces[1].starts_at.expect("it stands in the page as it is");
        assert_eq!(&page.body[start..start + 4], b"1.50");
        for nowhere in ["/a~1b/2", "/a/b", "/a~1b/0/price/0"] {
            assert_eq!(super::pieces(&page, nowhere), None, "{nowhere}");
        }
    }

    #[test]
    fn a_line_comes_with_its_header() {
        let page = page("name,price\nx,1.50\ny,2\n");
        let pieces = pieces(&page, "line 2").expect("the place is there");
        assert_eq!(pieces.iter().map(|piece| piece.text.as_str()).collect::<Vec<_>>(), ["name,price", "x,1.50"]);
        assert_eq!(super::pieces(&page, "line 4"), None);
    }

    /// Every offer and rate of every recording, crafted cases among them: its places are there, and what was printed stands
    /// in one of them.
    #[test]
    fn every_place_of_every_recording_leads_to_the_printed_text() {
        let mut wrong = Vec::new();
        let mut seen = 0;
        for scraper in ALL {
            for recording in recordings::of(&scraper.manifest().provider) {
                let label = format!("{}/{}", recording.provider, recording.case);
                let pages = recording.pages.clone();
                for (scope, parsed) in crate::read(*scraper, recording.pages) {
                    let Ok(parsed) = parsed else { continue };
                    let of_scope: Vec<Page> = pages.iter().filter(|page| page.scope == scope).cloned().collect();
                    let find = |place: &Place| of_scope.iter().find(|page| page.name == place.page);
                    let pieces = |place: &Place| scraper.pieces(find(place)?, &place.at);
                    for offer in &parsed.offers {
                        seen += 1;
                        let text = &offer.price.text;
                        let spots = scraper.spots(&of_scope, &offer.place, offer.sku.as_deref(), text);
                        if spots.is_empty() {
                            wrong.push(format!("{label}: no spot for {:?}", offer.place));
                        }
                        for spot in spots {
                            match pieces(&spot.place) {
                                None => wrong.push(format!("{label}: nothing at {} {}", spot.place.page, spot.place.at)),
                                Some(found)
                                    if !spot.printed.iter().all(|text| found.iter().any(|piece| piece.text.contains(text))) =>
                                {
                                    let last = &found[found.len() - 1].text;
                                    wrong.push(format!("{label}: {:?} is not at {}: {:.300}", spot.printed, spot.place.at, last));
                                }
                                Some(_) => {}
                            }
                        }
                    }
                    for rate in &parsed.rates {
                        seen += 1;
                        let found = pieces(&rate.place).unwrap_or_default();
                        if !found.iter().any(|piece| piece.text.contains(&rate.units_per_eur.to_string())) {
                            wrong.push(format!("{label}: {} is not at {}", rate.units_per_eur, rate.place.at));
                        }
                    }
                }
            }
        }
        assert!(seen > 1_000, "{seen} places");
        assert!(wrong.is_empty(), "{} of {seen}:\n{}", wrong.len(), wrong.join("\n"));
    }
}
