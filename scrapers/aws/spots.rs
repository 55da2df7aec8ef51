//! From a price back to the lines of a list, or to the row of the page of Capacity Blocks.

use super::lines::HEAD_LINES;
use super::{PRICES_HEAD, blocks};
use crate::contract::{Page, Place};
use crate::spot::{self, Piece, Spot};

/// The line of a price, and the line of its upfront fee where it has one: both begin with the same SKU and offer term.
pub(super) fn of_price(pages: &[Page], place: &Place, text: &str) -> Vec<Spot> {
    let alone = || vec![spot::one(place, text)];
    let Some(number) = number_of(&place.at) else { return alone() };
    let page = pages.iter().find(|page| page.name == place.page && page.body.starts_with(PRICES_HEAD));
    let (Some((hourly, fee)), Some(Ok(lines))) = (text.split_once(" + "), page.map(Page::text)) else { return alone() };
    let key = |line: &'_ str| line.match_indices("\",").nth(1).map(|(end, _)| line[..end].to_owned());
    let Some(own) = spot::range_of_line(lines, number).and_then(|range| key(&lines[range])) else { return alone() };
    let mut spots = Vec::new();
    for (index, line) in lines.lines().enumerate().filter(|(_, line)| line.starts_with(&own)) {
        let (gives, printed) = if line.contains("\"Quantity\"") { ("upfront fee", fee) } else { ("price by the hour", hourly) };
        let place = Place { page: place.page.clone(), at: format!("line {}", index + 1) };
        spots.push(Spot { place, gives: gives.to_owned(), printed: vec![printed.to_owned()] });
    }
    spots
}

/// The bytes at a place of a list or of the page.
pub(super) fn pieces(page: &Page, at: &str) -> Option<Vec<Piece>> {
    match number_of(at) {
        Some(number) => spot::line(page.text().ok()?, number, HEAD_LINES),
        None if at.starts_with("table ") => blocks::pieces(page, at),
        None => spot::pieces(page, at),
    }
}

fn number_of(at: &str) -> Option<usize> {
    at.strip_prefix("line ")?.parse().ok()
}
