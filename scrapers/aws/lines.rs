//! The CSV of the price lists: five lines about the file, a line of column names, and a price a line.
//!
//! In: a page that went through a sieve, or a whole one. Out: fields, borrowed, of the columns asked for by name. Never
//! takes a line with another number of fields than there are columns for a row.

use chrono::{DateTime, Utc};
use memchr::memchr;

use super::{changed, wrong_format};
use crate::contract::{Page, Place, ScrapeError};
use crate::json::start_of;

/// Lines before the rows: they pass every sieve.
pub(super) const HEAD_LINES: usize = 6;

/// What the first five lines are called.
const HEAD: [&str; HEAD_LINES - 1] = ["FormatVersion", "Disclaimer", "Publication Date", "Version", "OfferCode"];

/// A list, opened.
pub(super) struct List<'a> {
    page: &'a Page,
    pub published_at: DateTime<Utc>,
    columns: Vec<&'a str>,
    rows: &'a [u8],
}

impl<'a> List<'a> {
    /// Reads the head of a list of this offer.
    pub fn open(page: &'a Page, offer_code: &str) -> Result<Self, ScrapeError> {
        let mut rest = page.body.as_slice();
        let mut about = [""; HEAD.len()];
        for (number, (name, value)) in HEAD.iter().zip(&mut about).enumerate() {
            let fields = head_fields(page, number, &mut rest)?;
            match fields.as_slice() {
                [found, text] if found == name => *value = text,
                _ => return Err(changed(page, line(number), format!("`{name}` and its value"), format!("{fields:?}"))),
            }
        }
        let [format, _, published_at, _, code] = about;
        if format != "v1.0" {
            return Err(changed(page, line(0), "format v1.0", start_of(format)));
        }
        if code != offer_code {
            return Err(wrong_format(page, &format!("a list of {offer_code}"), start_of(code)));
        }
        let published_at = match DateTime::parse_from_rfc3339(published_at) {
            Ok(instant) => instant.to_utc(),
            Err(_) => return Err(changed(page, line(2), "a time with its zone", start_of(published_at))),
        };
        let columns = head_fields(page, HEAD.len(), &mut rest)?;
        Ok(Self { page, published_at, columns, rows: rest })
    }

    /// Where a column stands.
    pub fn column(&self, name: &str) -> Result<usize, ScrapeError> {
        self.optional(name).ok_or_else(|| changed(self.page, line(HEAD.len()), format!("a column `{name}`"), "no such column"))
    }

    /// Where a column stands, if there is one.
    pub fn optional(&self, name: &str) -> Option<usize> {
        self.columns.iter().position(|column| *column == name)
    }

    /// The columns' names.
    pub fn columns(&self) -> &[&'a str] {
        &self.columns
    }

    /// The rows, each a line with its number in the page.
    pub fn rows(&self) -> impl Iterator<Item = Row<'a>> + use<'a> {
        let (page, width) = (self.page, self.columns.len());
        let mut rest = self.rows;
        let mut number = HEAD_LINES - 1;
        std::iter::from_fn(move || {
            if rest.is_empty() {
                return None;
            }
            number += 1;
            Some(Row { page, number, width, rest: next_line(&mut rest), column: 0, is_last: rest.is_empty(), has_more: true })
        })
    }
}

fn head_fields<'a>(page: &'a Page, number: usize, rest: &mut &'a [u8]) -> Result<Vec<&'a str>, ScrapeError> {
    if memchr(b'\n', rest).is_none() {
        return Err(changed(page, line(number), "a line with an end", format!("the last {} bytes", rest.len())));
    }
    let bytes = next_line(rest);
    let mut row = Row { page, number, width: 0, rest: bytes, column: 0, is_last: false, has_more: true };
    let mut fields = Vec::new();
    while row.has_more {
        let field = row.next()?;
        let text = std::str::from_utf8(field).map_err(|_| changed(page, line(number), "UTF-8 text", "other bytes"))?;
        fields.push(text);
    }
    Ok(fields)
}

fn next_line<'a>(rest: &mut &'a [u8]) -> &'a [u8] {
    let (bytes, after) = match memchr(b'\n', rest) {
        Some(end) => (&rest[..end], &rest[end + 1..]),
        None => (*rest, &rest[rest.len()..]),
    };
    *rest = after;
    bytes.strip_suffix(b"\r").unwrap_or(bytes)
}

fn line(number: usize) -> String {
    format!("line {}", number + 1)
}

/// A line that is read from left to right, as far as it has to be.
pub(super) struct Row<'a> {
    page: &'a Page,
    number: usize,
    width: usize,
    rest: &'a [u8],
    column: usize,
    /// Whether it is the last line of the page, where a page that was cut off shows it.
    pub is_last: bool,
    has_more: bool,
}

impl<'a> Row<'a> {
    /// Reads on and fills the slots of these columns, which rise.
    #[inline]
    pub fn fill<const N: usize>(&mut self, wanted: &[(usize, usize)], slots: &mut [&'a [u8]; N]) -> Result<(), ScrapeError> {
        for &(column, slot) in wanted {
            loop {
                let at = self.column;
                let field = self.next()?;
                if at == column {
                    slots[slot] = field;
                    break;
                }
            }
        }
        Ok(())
    }

    /// Whether the first field, which is quoted, is this.
    #[inline]
    pub fn begins_with(&self, field: &[u8]) -> bool {
        let quoted = self.rest.strip_prefix(b"\"").and_then(|rest| rest.strip_prefix(field));
        quoted.is_some_and(|rest| rest.starts_with(b"\""))
    }

    /// Reads the rest, which shows whether the line is whole.
    #[inline]
    pub fn end(&mut self) -> Result<(), ScrapeError> {
        while self.has_more {
            self.next()?;
        }
        if self.column == self.width { Ok(()) } else { Err(self.wrong_width()) }
    }

    #[cold]
    fn wrong_width(&self) -> ScrapeError {
        changed(self.page, line(self.number), format!("{} fields", self.width), self.column.to_string())
    }

    #[inline]
    fn next(&mut self) -> Result<&'a [u8], ScrapeError> {
        if !self.has_more {
            return Err(self.wrong_width());
        }
        self.column += 1;
        if let Some(quoted) = self.rest.strip_prefix(b"\"") {
            let mut from = 0;
            loop {
                let Some(quote) = memchr(b'"', &quoted[from..]) else { return Err(self.open_quote()) };
                let end = from + quote;
                match quoted.get(end + 1) {
                    Some(b',') => self.rest = &quoted[end + 2..],
                    None => self.has_more = false,
                    // Two quotes stand for one within the text.
                    Some(b'"') => {
                        from = end + 2;
                        continue;
                    }
                    Some(_) => return Err(self.open_quote()),
                }
                return Ok(&quoted[..end]);
            }
        }
        if let Some(after) = self.rest.strip_prefix(b",") {
            self.rest = after;
            return Ok(&[]);
        }
        if let Some(end) = memchr(b',', self.rest) {
            let field = &self.rest[..end];
            self.rest = &self.rest[end + 1..];
            Ok(field)
        } else {
            self.has_more = false;
            Ok(self.rest)
        }
    }

    #[cold]
    fn open_quote(&self) -> ScrapeError {
        changed(self.page, line(self.number), "a quoted field with an end", format!("field {} without", self.column))
    }

    /// Where the row stands.
    pub fn place(&self) -> Place {
        Place { page: self.page.name.clone(), at: line(self.number) }
    }

    /// The page is not what it should be here.
    pub fn changed(&self, expected: impl Into<String>, found: impl Into<String>) -> ScrapeError {
        changed(self.page, line(self.number), expected, found)
    }
}
