//! From a price back to the SKUs that it was added up from, or to the row of the page.

use rust_decimal::Decimal;
use scraper::{ElementRef, Html};

use super::catalog::Envelope;
use super::{MANIFEST, compose, page, skus};
use crate::contract::{Page, Parsed, Place};
use crate::json;
use crate::spot::{self, Piece, Spot};
use crate::{cut, html};

/// What stands between the SKUs of a sum.
const BETWEEN: char = '+';

/// Every SKU of a sum, each with its part of it.
pub(super) fn of_sum(pages: &[Page], place: &Place, sku: Option<&str>, text: &str) -> Vec<Spot> {
    let Some(wanted) = sku.filter(|_| place.at.starts_with('/')) else { return vec![spot::one(place, text)] };
    let wanted: Vec<&str> = wanted.split(BETWEEN).collect();
    let mut spots: Vec<Spot> = Vec::new();
    for page in pages {
        let Ok(envelope) = Envelope::read(page) else { continue };
        for (number, characters) in envelope.skus.iter().enumerate() {
            if !wanted.iter().any(|sku| characters.contains(sku)) {
                continue;
            }
            let Ok(item) = json::element(page, "skus", number, characters) else { continue };
            let Ok(rate) = skus::read(&item, page.observed_at, &MANIFEST.ignored_fields, &mut Parsed::default()) else {
                continue;
            };
            let is_new = !spots.iter().any(|spot| spot.gives.ends_with(&rate.sku));
            if wanted.contains(&rate.sku.as_str()) && is_new {
                let dollars = compose::dollars(rate.nanos);
                let part = text.split(" + ").find(|part| rate_of(part) == Some(dollars)).unwrap_or_default();
                let gives = format!("{part}, from SKU {}", rate.sku);
                spots.push(Spot { place: rate.place, gives, printed: printed(rate.nanos) });
            }
        }
    }
    spots
}

/// `0.031611` of `12 vCPU × 0.031611`.
fn rate_of(part: &str) -> Option<Decimal> {
    let rate = part.split_once(" × ")?.1;
    rate.split(" / ").next()?.parse().ok()
}

/// The billionths as the SKU has them, or its whole units where there are none.
fn printed(nanos: i128) -> Vec<String> {
    const BILLION: i128 = 1_000_000_000;
    let number = if nanos % BILLION == 0 { nanos / BILLION } else { nanos % BILLION };
    vec![number.to_string()]
}

/// The row of the page that a place such as "table 2, row 3, `Price (USD)`" names.
pub(super) fn pieces(page: &Page, at: &str) -> Option<Vec<Piece>> {
    let Some(of_table) = at.strip_prefix("table ") else { return spot::pieces(page, at) };
    let (table, row) = of_table.split_once(", row ")?;
    let (table, row): (usize, usize) = (table.parse().ok()?, row.split(',').next()?.parse().ok()?);
    let document = html::document(page).ok()?;
    let (headings, row) = row_of(&document, table, row)?;
    Some(cut::rows(page.text().ok()?, &document, Some(headings), row))
}

/// A row of a table and the headings that it stands under, both counted from 1 as the reader of the page counts them.
fn row_of(document: &Html, table: usize, row: usize) -> Option<(ElementRef<'_>, ElementRef<'_>)> {
    let table = document.select(&html::selector("table")).nth(table.checked_sub(1)?)?;
    let (mut headings, mut number) = (None, 0);
    for element in table.select(&html::selector("tr")) {
        if page::is_heading(&page::cells(element)) {
            headings = Some(element);
        } else if let Some(headings) = headings {
            number += 1;
            if number == row {
                return Some((headings, element));
            }
        }
    }
    None
}
