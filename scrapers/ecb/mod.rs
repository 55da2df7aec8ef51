//! The European Central Bank's euro reference rates: <https://www.ecb.europa.eu/stats/eurofxref/eurofxref-daily.xml> and
//! `eurofxref-hist-90d.xml` beside it. A rate is units of another currency for one euro.
//!
//! - Five forms are read, told apart by content: XML of one day or of many; the history as CSV (`Date,USD,…`, ISO dates,
//!   a comma at the end of every line); the CSV of one day (blanks after commas, `30 October 2026`); and either CSV in a ZIP.
//! - `N/A` is a day without a rate, and never one.
//! - There is no row for weekends and a few holidays. Nothing is filled in here: a day without a rate has none.
//! - Columns of currencies that the euro replaced stay in the history for ever; see [`HISTORICAL`].
//! - A day that two pages hold is taken once if they agree. If they do not, no rate is taken at all.

use std::collections::HashMap;
use std::io::{Cursor, Read as _};
use std::sync::LazyLock;

use chrono::NaiveDate;
use rust_decimal::Decimal;

use crate::contract::{Page, PageRequest, Parsed, Place, PublishedRate, SCOPE_ALL, ScrapeError, Scraper, SkipReason, Skipped};
use crate::json::start_of;
use crate::manifest::Manifest;
use crate::money;
use crate::spot::{self, Piece};

#[cfg(test)]
mod tests;

/// The source.
pub struct Ecb;

static MANIFEST: LazyLock<Manifest> =
    LazyLock::new(|| Manifest::parse(include_str!("manifest.toml")).expect("the manifest beside this file reads"));

/// Codes in the history that today's list of currencies no longer has.
const HISTORICAL: [&str; 9] = ["CYP", "EEK", "LTL", "LVL", "MTL", "ROL", "SIT", "SKK", "TRL"];
/// The bank prints five digits after the point, or four; the dataset keeps twelve of an exact decimal and rounds none.
const DIGITS_MAX: u32 = 12;
/// The whole history is 2 MB.
const LARGEST_CSV_BYTES: u64 = 64 * 1024 * 1024;

impl Scraper for Ecb {
    fn manifest(&self) -> &'static Manifest {
        &MANIFEST
    }

    fn history_index(&self) -> Vec<PageRequest> {
        vec![PageRequest::get("history", SCOPE_ALL, "https://www.ecb.europa.eu/stats/eurofxref/eurofxref-hist.zip")]
    }

    fn pieces(&self, page: &Page, at: &str) -> Option<Vec<Piece>> {
        if page.body.starts_with(b"PK") {
            let lines = spot::line(&unzipped(page).ok()?, at.strip_prefix("line ")?.split(',').next()?.parse().ok()?, 1)?;
            return Some(lines.into_iter().map(|piece| Piece::unpacked(piece.is, piece.text)).collect());
        }
        let Some((time, code)) = at.strip_prefix("Cube time='").and_then(|rest| rest.split_once("', currency='")) else {
            return spot::pieces(page, at);
        };
        let (text, code) = (page.text().ok()?, code.strip_suffix('\'')?);
        let document = roxmltree::Document::parse(text).ok()?;
        let day = document.descendants().find(|node| node.attribute("time") == Some(time))?;
        let cube = day.children().find(|node| node.attribute("currency") == Some(code))?;
        let start = day.range().start;
        let of_day = start..start + text.get(start..)?.find('>')? + 1;
        Some(vec![Piece::of("day", text, of_day)?, Piece::of("value", text, cube.range())?])
    }

    fn parse(&self, pages: &[Page]) -> Result<Parsed, ScrapeError> {
        let mut rates = Rates::default();
        for page in pages {
            let before = rates.days;
            if page.body.starts_with(b"PK") {
                read_csv(page, &unzipped(page)?, &mut rates)?;
            } else {
                let text = page.text()?;
                match text.trim_start_matches(['\u{feff}', ' ', '\r', '\n']).get(..4) {
                    Some("Date") => read_csv(page, text.trim_start_matches('\u{feff}'), &mut rates)?,
                    _ => read_xml(page, text, &mut rates)?,
                }
            }
            if rates.days == before {
                return Err(ScrapeError::NothingFound { page: page.name.clone(), at: "days".to_owned() });
            }
        }
        Ok(rates.parsed)
    }
}

/// The rates of all pages, each day and currency once.
#[derive(Default)]
struct Rates {
    parsed: Parsed,
    seen: HashMap<(NaiveDate, String), (Decimal, Place)>,
    days: usize,
}

impl Rates {
    /// Takes the rates of a day, written as `(currency, rate, place)`.
    fn add_day<'a>(
        &mut self,
        page: &Page,
        date: NaiveDate,
        cells: impl Iterator<Item = (&'a str, &'a str, String)>,
    ) -> Result<(), ScrapeError> {
        self.days += 1;
        let mut has_dollar = false;
        for (code, text, at) in cells {
            let place = Place { page: page.name.clone(), at };
            match rate(code, text) {
                Ok(None) => {}
                Ok(Some(units_per_eur)) => {
                    has_dollar |= code == "USD";
                    self.add(PublishedRate { date, currency_code: code.to_owned(), units_per_eur, place })?;
                }
                Err(reason) => self.parsed.skipped.push(Skipped { place, label: format!("{code} of {date}"), reason }),
            }
        }
        // Every day has one, and nothing could be converted without it.
        if has_dollar { Ok(()) } else { Err(changed(page, &date.to_string(), "a rate of USD", "none")) }
    }

    fn add(&mut self, rate: PublishedRate) -> Result<(), ScrapeError> {
        let key = (rate.date, rate.currency_code.clone());
        if let Some((first, place)) = self.seen.get(&key) {
            if *first == rate.units_per_eur {
                return Ok(());
            }
            return Err(ScrapeError::ShapeChanged {
                page: rate.place.page,
                at: rate.place.at,
                expected: format!("{first} {}, as in `{}` at {}", rate.currency_code, place.page, place.at),
                found: rate.units_per_eur.to_string(),
            });
        }
        self.seen.insert(key, (rate.units_per_eur, rate.place.clone()));
        self.parsed.rates.push(rate);
        Ok(())
    }
}

/// A rate as printed; `None` where the bank has none that day.
fn rate(code: &str, text: &str) -> Result<Option<Decimal>, SkipReason> {
    if text == "N/A" {
        return Ok(None);
    }
    if !HISTORICAL.contains(&code) {
        money::currency_code(code)?;
    }
    let unreadable =
        || SkipReason::FieldUnreadable { field: code.to_owned(), expected: "a rate or `N/A`", found: start_of(text) };
    let rate = money::decimal(text).filter(|rate| rate.scale() <= DIGITS_MAX).ok_or_else(unreadable)?;
    money::positive(rate, text).map(Some)
}

fn read_xml(page: &Page, text: &str, rates: &mut Rates) -> Result<(), ScrapeError> {
    let not_xml = |found: String| ScrapeError::WrongFormat {
        page: page.name.clone(),
        expected: "XML, CSV or a ZIP of rates".to_owned(),
        found,
    };
    let document = roxmltree::Document::parse(text).map_err(|error| not_xml(format!("{error}, in {}", start_of(text))))?;
    let envelope = document.root_element();
    if envelope.tag_name().name() != "Envelope" {
        return Err(not_xml(format!("an element `{}`", envelope.tag_name().name())));
    }
    for (name, expected) in [("subject", "Reference rates"), ("name", "European Central Bank")] {
        let found = envelope.descendants().find(|node| node.has_tag_name(("http://www.gesmes.org/xml/2002-08-01", name)));
        let found = found.and_then(|node| node.text()).map(str::trim);
        if found != Some(expected) {
            return Err(changed(page, &format!("`gesmes:{name}`"), &format!("`{expected}`"), found.unwrap_or("no such element")));
        }
    }
    for outer in envelope.children().filter(|node| node.tag_name().name() == "Cube") {
        for day in outer.children().filter(roxmltree::Node::is_element) {
            let time = day.attribute("time").ok_or_else(|| changed(page, "`Cube` of a day", "`time`", "no such attribute"))?;
            let date = iso(time).ok_or_else(|| changed(page, "`Cube` of a day", "a day such as 2026-10-30", time))?;
            let mut cells = Vec::new();
            for cube in day.children().filter(roxmltree::Node::is_element) {
                let attribute = |name| {
                    cube.attribute(name)
                        .ok_or_else(|| changed(page, &format!("`Cube` of {time}"), &format!("`{name}`"), "no such attribute"))
                };
                let (code, text) = (attribute("currency")?, attribute("rate")?);
                cells.push((code, text, format!("Cube time='{time}', currency='{code}'")));
            }
            rates.add_day(page, date, cells.into_iter())?;
        }
    }
    Ok(())
}

fn read_csv(page: &Page, text: &str, rates: &mut Rates) -> Result<(), ScrapeError> {
    // A row that is shorter or longer than the header is an error, which also finds a file that was cut off.
    let mut reader = csv::ReaderBuilder::new().trim(csv::Trim::All).from_reader(text.as_bytes());
    let broken = |error: csv::Error| changed(page, "CSV", "rows as long as the header", &error.to_string());
    let headers = reader.headers().map_err(broken)?.clone();
    if headers.get(0) != Some("Date") || headers.len() < 2 {
        return Err(changed(page, "line 1", "`Date` and currencies", &start_of(text)));
    }
    for record in reader.records() {
        let record = record.map_err(broken)?;
        let line = record.position().map_or(0, csv::Position::line);
        let written = record.get(0).unwrap_or_default();
        let date = iso(written).or_else(|| NaiveDate::parse_from_str(written, "%d %B %Y").ok());
        let date = date.ok_or_else(|| {
            changed(page, &format!("line {line}"), "a day such as 2026-10-30 or 30 October 2026", &format!("`{written}`"))
        })?;
        if let Some((_, found)) = headers.iter().zip(&record).find(|(code, text)| code.is_empty() && !text.is_empty()) {
            return Err(changed(page, &format!("line {line}"), "nothing below the empty header", &format!("`{found}`")));
        }
        let cells = headers.iter().zip(&record).skip(1).filter(|(code, _)| !code.is_empty());
        rates.add_day(page, date, cells.map(|(code, text)| (code, text, format!("line {line}, {code}"))))?;
    }
    Ok(())
}

/// The one CSV of a ZIP.
fn unzipped(page: &Page) -> Result<String, ScrapeError> {
    let not_zip =
        |found: String| ScrapeError::WrongFormat { page: page.name.clone(), expected: "a ZIP with one CSV".to_owned(), found };
    let mut archive = zip::ZipArchive::new(Cursor::new(&page.body)).map_err(|error| not_zip(error.to_string()))?;
    if archive.len() != 1 {
        return Err(not_zip(format!("{} files", archive.len())));
    }
    let file = archive.by_index(0).map_err(|error| not_zip(error.to_string()))?;
    let mut text = String::new();
    file.take(LARGEST_CSV_BYTES + 1).read_to_string(&mut text).map_err(|error| not_zip(error.to_string()))?;
    if u64::try_from(text.len()).is_ok_and(|bytes| bytes > LARGEST_CSV_BYTES) {
        return Err(not_zip(format!("more than {LARGEST_CSV_BYTES} bytes")));
    }
    Ok(text)
}

fn iso(text: &str) -> Option<NaiveDate> {
    NaiveDate::parse_from_str(text, "%Y-%m-%d").ok()
}

fn changed(page: &Page, at: &str, expected: &str, found: &str) -> ScrapeError {
    ScrapeError::ShapeChanged {
        page: page.name.clone(),
        at: at.to_owned(),
        expected: expected.to_owned(),
        found: found.to_owned(),
    }
}
