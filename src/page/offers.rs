//! Every offer of a snapshot as the page's table has it: as data for its script, and the first rows as they are read without
//! one.
//!
//! The data is columns of numbers that point into lists of words, since twenty thousand offers share few words. A number is
//! rounded as it is shown, and nowhere else.

use std::collections::HashMap;

use chrono::{DateTime, Utc};
use gpuledger_scrapers::contract::{Availability, SourceKind};
use polars::prelude::*;
use serde::Serialize;

use super::night::Provider;
use super::text::Text;
use super::values::{dollars, floats, integers, json_in_script, link, shown, texts};
use crate::answer;
use crate::night::{SnapshotId, second};

/// Rows that stand in the page for a reader without a script.
const ROWS_WITHOUT_SCRIPT: usize = 100;

/// What a reader must know before holding an offer's price against the others.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Note {
    PartOfACard,
    Promotion,
    TaxIncluded,
    SoldOut,
    FewLeft,
    Copy,
}

/// One offer as the page shows it.
#[derive(Debug, Clone)]
pub(super) struct Offer {
    pub gpu: String,
    pub count: String,
    pub memory: String,
    pub provider: String,
    pub machine: String,
    pub region: String,
    /// Word of the pricing model.
    pub model: String,
    pub way: String,
    pub os: String,
    pub usd: Option<f64>,
    pub amount: String,
    pub unit: String,
    /// Age, counted to the night.
    pub seen: String,
    pub seen_at: Option<DateTime<Utc>>,
    pub link: Option<String>,
    pub remarks: String,
    id: String,
}

impl Offer {
    /// The price as it is shown; nothing where there is none.
    pub(super) fn price(&self) -> String {
        self.usd.map_or_else(String::new, dollars)
    }

    /// The operating system, and what is to be known of the offer.
    pub(super) fn system_and_remarks(&self) -> String {
        [self.os.as_str(), &self.remarks].into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join("; ")
    }

    /// When it was seen, for machines.
    pub(super) fn seen_second(&self) -> String {
        self.seen_at.map_or_else(String::new, second)
    }
}

/// The offers, the cheapest first and those without a price last.
///
/// # Errors
/// Only on a fault of the program.
pub(super) fn offers(rows: &DataFrame, night: SnapshotId, providers: &[Provider], text: &Text) -> PolarsResult<Vec<Offer>> {
    let of = |column: &str| texts(rows, column);
    let (ids, models, labels, counts) = (of("offer_id")?, of("gpu_model")?, of("gpu_label")?, of("gpu_count")?);
    let (memories, sellers, machines, names) = (of("gpu_memory_gb")?, of("provider")?, of("instance_type")?, of("offer_label")?);
    let (regions, zones, systems) = (of("region")?, of("zone")?, of("os")?);
    let (ways, plans, months, upfront) = (of("pricing_model")?, of("plan")?, of("commitment_months")?, of("upfront")?);
    let (amounts, once, currencies) = (of("published_amount")?, of("published_upfront_amount")?, of("published_currency_code")?);
    let (units, per, urls) = (of("published_unit")?, of("published_per")?, of("source_url")?);
    let usd = floats(rows, "price_usd_per_gpu_hour")?;
    let (seen, notes) = (answer::seen(rows)?, remarks(rows, text)?);
    let full_names: HashMap<&str, &str> =
        providers.iter().map(|provider| (provider.id.as_str(), provider.name.as_str())).collect();
    let first_of = |a: &str, b: &str| shown(if a.is_empty() { b } else { a });
    let mut offers: Vec<Offer> = (0..rows.height())
        .map(|row| Offer {
            gpu: first_of(&models[row], &labels[row]),
            count: counts[row].clone(),
            memory: memories[row].clone(),
            provider: full_names.get(sellers[row].as_str()).map_or_else(|| shown(&sellers[row]), |name| (*name).to_owned()),
            machine: first_of(&machines[row], &names[row]),
            region: first_of(&regions[row], &zones[row]),
            model: ways[row].clone(),
            way: text.way(&ways[row], &plans[row], &months[row], &upfront[row]),
            os: shown(&systems[row]),
            usd: usd[row].filter(|usd| usd.is_finite()),
            amount: amounts[row].clone(),
            unit: text.unit(&currencies[row], &units[row], &per[row]) + &text.up_front(&once[row]),
            seen: seen[row].map_or_else(String::new, |seen| text.seen(seen, night.instant())),
            seen_at: seen[row],
            link: link(&urls[row]),
            remarks: notes[row].clone(),
            id: ids[row].clone(),
        })
        .collect();
    let price = |offer: &Offer| offer.usd.unwrap_or(f64::INFINITY);
    offers.sort_by(|a, b| {
        price(a).total_cmp(&price(b)).then_with(|| (&a.gpu, &a.provider, &a.id).cmp(&(&b.gpu, &b.provider, &b.id)))
    });
    Ok(offers)
}

/// The remarks of each row, as one text.
///
/// # Errors
/// Only on a fault of the program.
pub(super) fn remarks(rows: &DataFrame, text: &Text) -> PolarsResult<Vec<String>> {
    let of = |column: &str| texts(rows, column);
    let (parts, promotions, taxes) = (of("is_fractional")?, of("is_promotion")?, of("tax_included")?);
    let (stock, kinds, licences, flags) = (of("availability")?, of("source_kind")?, of("licence")?, of("flags")?);
    let listings = integers(rows, "listing_count")?;
    let mut all = Vec::with_capacity(rows.height());
    for row in 0..rows.height() {
        let is_so = [
            (parts[row] == "true", Note::PartOfACard),
            (promotions[row] == "true", Note::Promotion),
            (taxes[row] == "true", Note::TaxIncluded),
            (stock[row] == Availability::SoldOut.word(), Note::SoldOut),
            (stock[row] == Availability::Low.word(), Note::FewLeft),
            (kinds[row] == SourceKind::Aggregator.word(), Note::Copy),
        ];
        let mut words: Vec<String> =
            is_so.into_iter().filter(|(is_so, _)| *is_so).map(|(_, note)| text.note(note).to_owned()).collect();
        if listings[row] > 1 {
            words.push(text.listings(listings[row]));
        }
        if !licences[row].is_empty() {
            words.push(shown(&licences[row]));
        }
        let told = ["", "fraction_of_a_card"];
        words.extend(flags[row].split(',').filter(|flag| !told.contains(flag)).map(|flag| shown(&flag.replace('_', " "))));
        all.push(words.join("; "));
    }
    Ok(all)
}

/// Offers that stand in the page for a reader without a script.
pub(super) fn first(offers: &[Offer]) -> &[Offer] {
    &offers[..offers.len().min(ROWS_WITHOUT_SCRIPT)]
}

/// Words, each once, in the order in which they came.
#[derive(Default)]
struct Words<'a> {
    places: HashMap<&'a str, usize>,
    words: Vec<&'a str>,
}

impl<'a> Words<'a> {
    fn place(&mut self, word: &'a str) -> usize {
        *self.places.entry(word).or_insert_with(|| {
            self.words.push(word);
            self.words.len() - 1
        })
    }
}

/// A column of texts: for each row the place of its word in the list.
#[derive(Serialize)]
struct Column<'a> {
    words: Vec<&'a str>,
    rows: Vec<usize>,
}

impl<'a> Column<'a> {
    fn of(offers: &'a [Offer], word: impl Fn(&'a Offer) -> &'a str) -> Self {
        let mut words = Words::default();
        let rows = offers.iter().map(|offer| words.place(word(offer))).collect();
        Self { words: words.words, rows }
    }
}

/// What the script reads.
#[derive(Serialize)]
struct Data<'a> {
    text: &'a Text,
    /// Seconds since 1970 of the night.
    night: i64,
    models: Vec<(&'a str, String)>,
    gpu: Column<'a>,
    count: Column<'a>,
    memory: Column<'a>,
    provider: Column<'a>,
    machine: Column<'a>,
    region: Column<'a>,
    model: Column<'a>,
    way: Column<'a>,
    os: Column<'a>,
    usd: Vec<Option<f64>>,
    amount: Column<'a>,
    unit: Column<'a>,
    seen: Column<'a>,
    /// Seconds since 1970, for the order.
    seen_at: Vec<Option<i64>>,
    link: Column<'a>,
    remarks: Column<'a>,
}

/// The offers as JSON that may stand in a script.
///
/// # Errors
/// Only on a fault of the program.
pub(super) fn data(offers: &[Offer], night: SnapshotId, text: &Text) -> serde_json::Result<String> {
    let model = Column::of(offers, |offer| &offer.model);
    let data = Data {
        text,
        night: night.instant().timestamp(),
        models: model.words.iter().map(|word| (*word, text.model_word(word))).collect(),
        gpu: Column::of(offers, |offer| &offer.gpu),
        count: Column::of(offers, |offer| &offer.count),
        memory: Column::of(offers, |offer| &offer.memory),
        provider: Column::of(offers, |offer| &offer.provider),
        machine: Column::of(offers, |offer| &offer.machine),
        region: Column::of(offers, |offer| &offer.region),
        model,
        way: Column::of(offers, |offer| &offer.way),
        os: Column::of(offers, |offer| &offer.os),
        // Rounded once, as it is shown: the script shows the same digits again.
        usd: offers.iter().map(|offer| offer.usd.and_then(|usd| dollars(usd).parse().ok())).collect(),
        amount: Column::of(offers, |offer| &offer.amount),
        unit: Column::of(offers, |offer| &offer.unit),
        seen: Column::of(offers, |offer| &offer.seen),
        seen_at: offers.iter().map(|offer| offer.seen_at.map(|at| at.timestamp())).collect(),
        link: Column::of(offers, |offer| offer.link.as_deref().unwrap_or_default()),
        remarks: Column::of(offers, |offer| &offer.remarks),
    };
    serde_json::to_string(&data).map(|json| json_in_script(&json))
}
