//! Checks against the stored history, and of the forms that no recording has.

use std::collections::BTreeSet;
use std::io::Write as _;
use std::path::Path;

use chrono::{DateTime, Datelike as _, Utc, Weekday};

use super::*;
use crate::contract::SCOPE_ALL;
use crate::recordings;

const HISTORY: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../shared/data/fx/eurofxref-hist_2023-01-02_2026-10-30.csv");
const ZIPPED: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../shared/data/fx/eurofxref-hist.zip");

fn page(body: Vec<u8>) -> Page {
    Page {
        name: "file".to_owned(),
        scope: SCOPE_ALL.to_owned(),
        url: "file".to_owned(),
        observed_at: DateTime::<Utc>::UNIX_EPOCH,
        sha256: crate::sha256(&body),
        body,
    }
}

fn stored(path: &str) -> Option<Parsed> {
    if !Path::new(path).exists() {
        eprintln!("skipped: ../shared is not beside this checkout");
        return None;
    }
    let page = page(std::fs::read(path).expect("the file reads"));
    Some(Ecb.parse(&[page]).expect("the file parses"))
}

fn day(text: &str) -> NaiveDate {
    iso(text).expect("a literal day")
}

fn of<'a>(parsed: &'a Parsed, date: &str, code: &str) -> Option<&'a PublishedRate> {
    parsed.rates.iter().find(|rate| rate.date == day(date) && rate.currency_code == code)
}

fn printed(parsed: &Parsed, date: &str, code: &str) -> Option<String> {
    of(parsed, date, code).map(|rate| rate.units_per_eur.to_string())
}

fn zipped(name: &str, text: &str) -> Page {
    let mut archive = zip::ZipWriter::new(Cursor::new(Vec::new()));
    archive.start_file(name, zip::write::SimpleFileOptions::default()).expect("a file starts");
    archive.write_all(text.as_bytes()).expect("the file is written");
    page(archive.finish().expect("the archive is finished").into_inner())
}

#[test]
fn the_stored_history_has_979_days_and_no_rate_where_the_bank_has_none() {
    let Some(parsed) = stored(HISTORY) else { return };
    let days: BTreeSet<_> = parsed.rates.iter().map(|rate| rate.date).collect();
    assert_eq!((days.len(), parsed.rates.len()), (979, 29_157));
    assert!(parsed.skipped.is_empty(), "{:?}", parsed.skipped);
    assert_eq!(printed(&parsed, "2026-10-30", "USD").as_deref(), Some("1.1172"));
    assert_eq!(printed(&parsed, "2026-10-30", "CNY").as_deref(), Some("7.4326"));
    assert_eq!(printed(&parsed, "2026-10-30", "ISK").as_deref(), Some("136"));
    assert_eq!(of(&parsed, "2026-10-30", "USD").map(|rate| rate.place.at.as_str()), Some("line 2, USD"));
    assert!(days.iter().all(|day| !matches!(day.weekday(), Weekday::Sat | Weekday::Sun)));
    for holiday in ["2026-01-01", "2026-04-03", "2026-04-06", "2026-05-01", "2025-12-25", "2025-12-26"] {
        assert!(!days.contains(&day(holiday)), "{holiday}");
    }
    // The euro replaced the lev on the first of January.
    assert_eq!(printed(&parsed, "2025-12-31", "BGN").as_deref(), Some("1.9558"));
    assert!(days.contains(&day("2026-01-02")) && of(&parsed, "2026-01-02", "BGN").is_none());
    let codes: BTreeSet<_> = parsed.rates.iter().map(|rate| rate.currency_code.as_str()).collect();
    assert!(codes.is_disjoint(&BTreeSet::from(["EUR", "HRK", "RUB", "CYP", "EEK", ""])), "{codes:?}");
}

#[test]
fn the_zipped_history_since_1999_agrees_with_the_stored_years() {
    let (Some(years), Some(whole)) = (stored(HISTORY), stored(ZIPPED)) else { return };
    assert_eq!(whole.rates.len(), 221_702);
    assert!(whole.skipped.is_empty(), "{:?}", whole.skipped.first());
    let value = |rate: &PublishedRate| ((rate.date, rate.currency_code.clone()), rate.units_per_eur);
    let by_key: HashMap<_, _> = whole.rates.iter().map(value).collect();
    for rate in &years.rates {
        assert_eq!(by_key.get(&(rate.date, rate.currency_code.clone())), Some(&rate.units_per_eur), "{rate:?}");
    }
    assert_eq!(whole.rates.iter().filter(|rate| rate.date >= day("2023-01-02")).count(), years.rates.len());
    assert_eq!(whole.rates.last().map(|rate| rate.date), Some(day("1999-01-04")));
    // Currencies that are no more, in their last days.
    for (code, date, units) in [
        ("EEK", "2010-12-31", "15.6466"),
        ("TRL", "2004-12-31", "1836200"),
        ("HRK", "2022-12-30", "7.5365"),
        ("SKK", "2008-12-31", "30.126"),
    ] {
        assert_eq!(printed(&whole, date, code).as_deref(), Some(units), "{code}");
    }
}

#[test]
fn the_zipped_file_of_one_day_agrees_with_the_xml_of_that_day() {
    let recording = recordings::newest("ecb").expect("there is a dated recording");
    let daily: Vec<_> = recording.pages.iter().filter(|page| page.name == "daily").cloned().collect();
    let from_xml = Ecb.parse(&daily).expect("the XML parses");
    let header = from_xml.rates.iter().map(|rate| format!(" {},", rate.currency_code)).collect::<String>();
    let values = from_xml.rates.iter().map(|rate| format!(" {},", rate.units_per_eur)).collect::<String>();
    let page = zipped("eurofxref.csv", &format!("Date,{header} \n30 October 2026,{values} \n"));
    let from_csv = Ecb.parse(&[page]).expect("the ZIP parses");
    let value = |rate: &PublishedRate| (rate.date, rate.currency_code.clone(), rate.units_per_eur);
    assert_eq!(from_csv.rates.iter().map(value).collect::<Vec<_>>(), from_xml.rates.iter().map(value).collect::<Vec<_>>());
    assert_eq!(from_csv.rates.len(), 29);
}

#[test]
fn an_archive_with_more_than_one_file_or_no_table_of_rates_is_refused() {
    let mut archive = zip::ZipWriter::new(Cursor::new(Vec::new()));
    for name in ["a.csv", "b.csv"] {
        archive.start_file(name, zip::write::SimpleFileOptions::default()).expect("a file starts");
    }
    let two = page(archive.finish().expect("the archive is finished").into_inner());
    assert!(matches!(Ecb.parse(&[two]), Err(ScrapeError::WrongFormat { .. })));
    assert!(matches!(Ecb.parse(&[zipped("a.csv", "Day,USD\n2026-10-30,1.1172\n")]), Err(ScrapeError::ShapeChanged { .. })));
    assert!(matches!(Ecb.parse(&[zipped("a.csv", "Date,USD,\n")]), Err(ScrapeError::NothingFound { .. })));
}

#[test]
fn a_history_cut_inside_a_row_is_refused() {
    let text = "Date,USD,JPY,\n2026-10-30,1.1172,175.68,\n2026-10-29,1.113,175.92,\n";
    assert_eq!(Ecb.parse(&[page(text.into())]).map(|parsed| parsed.rates.len()), Ok(4));
    for end in 1..text.len() {
        let is_end_of_row = text[..end].ends_with(",\n") || text[end..].starts_with('\n');
        let result = Ecb.parse(&[page(text[..end].into())]);
        assert!(result.is_err() || is_end_of_row, "cut at {end}: {result:?}");
    }
}

#[test]
fn a_value_below_the_empty_header_or_a_day_that_is_none_is_refused() {
    for text in [
        "Date,USD,\n2026-10-30,1.1172,7\n",
        "Date,USD,\n2026-13-30,1.1172,\n",
        "Date,USD,\n30.10.2026,1.1172,\n",
        "Date,JPY,\n2026-10-30,175.68,\n",
    ] {
        assert!(matches!(Ecb.parse(&[page(text.into())]), Err(ScrapeError::ShapeChanged { .. })), "{text}");
    }
}

#[test]
fn rates_of_zero_of_no_number_or_of_no_known_currency_are_skipped() {
    let text = "Date,USD,JPY,GBP,QQQ,CHF,SEK,\n2026-10-30,1.1172,0,-1,5.5,,soon,\n";
    let parsed = Ecb.parse(&[page(text.into())]).expect("the page parses");
    assert_eq!(parsed.rates.len(), 1);
    let codes: Vec<_> = parsed.skipped.iter().map(|row| (row.label.as_str(), row.reason.code())).collect();
    assert_eq!(
        codes,
        [
            ("JPY of 2026-10-30", "price_zero"),
            ("GBP of 2026-10-30", "price_unreadable"),
            ("QQQ of 2026-10-30", "unknown_word"),
            ("CHF of 2026-10-30", "field_unreadable"),
            ("SEK of 2026-10-30", "field_unreadable"),
        ]
    );
}
