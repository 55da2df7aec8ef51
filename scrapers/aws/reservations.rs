//! Reservations, whose hourly price and upfront fee are two rows.
//!
//! In: rows of products that are machines to use. Out: an offer for each reservation, with both parts. Never one part alone:
//! a reservation that is paid upfront would cost nothing. Never one of two rows that contradict each other.

use std::collections::HashMap;

use chrono::{DateTime, Utc};
use rust_decimal::Decimal;

use super::lines::Row;
use super::prices::{Fields, Product, Slot, amount, offer};
use crate::contract::{Parsed, Place, PricingModel, PublishedOffer, SkipReason, Skipped, Terms, Upfront};
use crate::money;

/// Reservations, whose rows by the hour and upfront fees come one after the other or not.
#[derive(Default)]
pub(super) struct Reservations<'a> {
    /// By SKU and offer term.
    by_term: HashMap<(&'a [u8], &'a [u8]), usize>,
    all: Vec<Reservation<'a>>,
}

struct Reservation<'a> {
    fields: Fields<'a>,
    offer: PublishedOffer,
    upfront: Upfront,
    hourly: Option<(Decimal, &'a str)>,
    fee: Option<(Decimal, &'a str)>,
    /// Whether two of its rows contradict each other: then neither is safe.
    broken: bool,
}

impl<'a> Reservations<'a> {
    pub fn add(
        &mut self,
        fields: &Fields<'a>,
        product: &Product<'_>,
        valid_from: DateTime<Utc>,
        row: &Row<'a>,
    ) -> Result<(), SkipReason> {
        let part = (amount(fields)?, fields.text(Slot::Price)?);
        let key = (fields.bytes(Slot::Sku), fields.bytes(Slot::OfferTerm));
        let index = match self.by_term.get(&key) {
            Some(index) => *index,
            None => {
                self.all.push(Reservation::start(fields, product, valid_from, row.place())?);
                self.by_term.insert(key, self.all.len() - 1);
                self.all.len() - 1
            }
        };
        let reservation = &mut self.all[index];
        let terms = [Slot::Lease, Slot::Purchase, Slot::Class, Slot::Currency];
        if terms.iter().any(|slot| reservation.fields.bytes(*slot) != fields.bytes(*slot)) {
            reservation.broken = true;
            return Err(SkipReason::Contradiction("two rows of one reservation differ in their terms".to_owned()));
        }
        let slot = match fields.bytes(Slot::Unit) {
            b"Hrs" => &mut reservation.hourly,
            b"Quantity" => &mut reservation.fee,
            _ => return Err(fields.word(Slot::Unit, "unit")),
        };
        match slot.replace(part) {
            Some(other) if other.0 != part.0 => {
                reservation.broken = true;
                Err(SkipReason::Contradiction(format!("the same part of a reservation at {} and {}", other.1, part.1)))
            }
            _ => Ok(()),
        }
    }

    pub fn finish(self, parsed: &mut Parsed) {
        for reservation in self.all {
            let place = reservation.offer.place.clone();
            let label = reservation.offer.instance_type.clone().unwrap_or_default();
            match reservation.offer() {
                Ok(offer) => parsed.offers.push(offer),
                Err(reason) => parsed.skipped.push(Skipped { place, label, reason }),
            }
        }
    }
}

impl<'a> Reservation<'a> {
    fn start(fields: &Fields<'a>, product: &Product<'_>, valid_from: DateTime<Utc>, place: Place) -> Result<Self, SkipReason> {
        let months = match fields.bytes(Slot::Lease) {
            b"1yr" => 12,
            b"3yr" => 36,
            _ => return Err(fields.word(Slot::Lease, "term")),
        };
        let upfront = upfront(fields.text(Slot::Purchase)?)?;
        let plan = match fields.bytes(Slot::Class) {
            b"standard" => Some("standard".to_owned()),
            b"convertible" => Some("convertible".to_owned()),
            // Lists from before there were convertible ones.
            b"" => None,
            _ => return Err(fields.word(Slot::Class, "offering class")),
        };
        let terms = Terms { commitment_months: Some(months), upfront: Some(upfront), plan, ..Terms::of(PricingModel::Reserved) };
        let offer = offer(fields, product, valid_from, terms, place)?;
        Ok(Self { fields: *fields, offer, upfront, hourly: None, fee: None, broken: false })
    }

    /// Both parts together: a reservation that is paid upfront costs nothing by the hour, and only that one may.
    fn offer(mut self) -> Result<PublishedOffer, SkipReason> {
        if self.broken {
            return Err(SkipReason::Contradiction("another row of the reservation contradicts it".to_owned()));
        }
        let missing = |unit: &str| SkipReason::FieldMissing { field: unit.to_owned() };
        let (hourly, hourly_text) = self.hourly.ok_or_else(|| missing("Hrs"))?;
        if self.upfront != Upfront::All {
            money::positive(hourly, hourly_text)?;
        }
        self.offer.price.amount = hourly;
        hourly_text.clone_into(&mut self.offer.price.text);
        match (self.upfront, self.fee) {
            (Upfront::None, None) => {}
            (Upfront::None, Some((_, text))) => {
                return Err(SkipReason::Contradiction(format!("an upfront fee of {text} on a reservation without")));
            }
            (Upfront::Partial | Upfront::All, None) => return Err(missing("Quantity")),
            (Upfront::Partial | Upfront::All, Some((fee, text))) => {
                self.offer.price.upfront_amount = Some(money::positive(fee, text)?);
                self.offer.price.text = format!("{hourly_text} + {text}");
            }
        }
        Ok(self.offer)
    }
}

/// What is paid at the start, as reservations and savings plans call it.
pub(super) fn upfront(word: &str) -> Result<Upfront, SkipReason> {
    match word {
        "No Upfront" => Ok(Upfront::None),
        "Partial Upfront" => Ok(Upfront::Partial),
        "All Upfront" => Ok(Upfront::All),
        _ => Err(SkipReason::UnknownWord { what: "purchase option", word: word.to_owned() }),
    }
}
