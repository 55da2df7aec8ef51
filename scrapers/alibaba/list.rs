//! One site's price file: an entry for each region, type, network, system and kind of disk, with lists of prices in it.
//!
//! In: the file. Out: an offer for each price of a GPU machine. Never an hourly price worked out from a total, and never a
//! price whose period is not known.

use std::borrow::Cow;
use std::collections::HashSet;

use chrono::{DateTime, Days, NaiveDate};
use rust_decimal::Decimal;

use crate::contract::{
    Os, Page, Parsed, PricePer, PriceUnit, PricingModel, PublishedOffer, PublishedPrice, ScrapeError, Site, SkipReason, Terms,
    Upfront,
};
use crate::json::{self, Object, Value};
use crate::money::{self, NumberFormat};

use super::{MANIFEST, builds, changed, machines};

/// Oldest file that is believed. Builds come about every week; the address of an abandoned one answers for ever.
const DAYS_MAX: u64 = 30;
const ENTRIES: &str = "pricingInfo";
const HOURS: &str = "hours";

/// A price file that is of its site and of tonight.
pub(super) struct PriceList<'a> {
    page: &'a Page,
    document: Object<'a>,
    site: Site,
}

/// What the name of an entry says, once it is one of ours.
struct Key<'a> {
    region: &'a str,
    instance_type: &'a str,
    os: Os,
}

/// The site of a file, which its currency tells: every amount of a list is in one, in regions of other countries too.
pub(super) fn site(page: &Page, document: &Object<'_>) -> Result<Site, ScrapeError> {
    let currency = document.text("currency")?;
    match currency.as_ref() {
        "USD" => Ok(Site::Intl),
        "CNY" => Ok(Site::Cn),
        _ => Err(changed(
            page,
            "/currency",
            "`USD` of the international site or `CNY` of the Chinese one",
            format!("`{currency}`"),
        )),
    }
}

impl<'a> PriceList<'a> {
    /// Reads what the file says of itself.
    pub(super) fn read(page: &'a Page) -> Result<Self, ScrapeError> {
        let document = json::document(page)?;
        let site = site(page, &document)?;
        let other = if site == Site::Intl { Site::Cn } else { Site::Intl };
        if page.scope == other.word() || page.url.contains(&format!("/{}", builds::folder(other))) {
            let expected = format!("the currency of the site `{other}`");
            return Err(changed(page, "/currency", expected, format!("`{}`", document.text("currency")?)));
        }
        check_age(page, &document)?;
        Ok(Self { page, document, site })
    }

    /// The site it is of.
    pub(super) const fn site(&self) -> Site {
        self.site
    }

    /// Adds everything it publishes.
    pub(super) fn take(&self, parsed: &mut Parsed) -> Result<(), ScrapeError> {
        let entries = self.document.field(ENTRIES)?.object()?;
        self.document.report_unread(&MANIFEST.ignored_fields, &mut parsed.unread_fields);
        // An entry may do without hourly prices, but they are not gone from all entries at once.
        let has_hours = |entry: &Value| entry.object().is_ok_and(|entry| entry.optional(HOURS).is_some());
        if entries.names().next().is_some() && !entries.values().any(|(_, entry)| has_hours(&entry)) {
            return Err(changed(self.page, format!("/{ENTRIES}"), format!("entries with `{HOURS}`"), "none in the whole file"));
        }
        let (mut names, offers, skipped) = (HashSet::new(), parsed.offers.len(), parsed.skipped.len());
        for (name, entry) in entries.values() {
            match key(name) {
                Ok(key) => {
                    if !names.insert(name) {
                        return Err(changed(self.page, entry.place().at, "an entry of every name", "a second one of this name"));
                    }
                    self.entry(name, &key, &entry, parsed);
                }
                Err(reason) => parsed.take(name, entry.place(), Err(reason)),
            }
        }
        // A list without any price of a GPU machine is a failure; rows that were not understood speak for themselves.
        if parsed.offers.len() == offers && parsed.skipped[skipped..].iter().all(|row| row.reason.is_stated_by_source()) {
            return Err(ScrapeError::NothingFound { page: self.page.name.clone(), at: format!("/{ENTRIES}") });
        }
        Ok(())
    }

    fn entry(&self, name: &str, key: &Key<'_>, entry: &Value<'_>, parsed: &mut Parsed) {
        match entry.object().map_err(SkipReason::from).and_then(|entry| prices(&entry, parsed)) {
            Ok(prices) if prices.is_empty() => parsed.leave_out("a GPU machine without a price"),
            Ok(prices) => {
                for (value, price) in prices {
                    let offer = price.map(|price| self.offer(name, key, &value, price));
                    parsed.take(name, value.place(), offer);
                }
            }
            Err(reason) => parsed.take(name, entry.place(), Err(reason)),
        }
    }

    fn offer(&self, name: &str, key: &Key<'_>, value: &Value<'_>, price: Price) -> PublishedOffer {
        let (gpu, machine, flags) = machines::hardware(key.instance_type);
        let (currency_code, tax_included) = match self.site {
            // List prices to which the tax of the buyer's country is added.
            Site::Intl => ("USD", Some(false)),
            // Nobody has read whether the Chinese figures hold the tax that their invoices show.
            _ => ("CNY", None),
        };
        PublishedOffer {
            site: Some(self.site),
            sku: Some(name.to_owned()),
            instance_type: Some(key.instance_type.to_owned()),
            offer_label: None,
            region: Some(key.region.to_owned()),
            zone: None,
            gpu,
            machine,
            terms: Terms { os: key.os, ..price.terms },
            price: PublishedPrice {
                amount: price.amount,
                upfront_amount: None,
                currency_code: currency_code.to_owned(),
                unit: price.unit,
                per: PricePer::Instance,
                text: price.text,
                tax_included,
                listings: None,
            },
            place: value.place(),
            flags,
        }
    }
}

/// Refuses a file that says it is old, or that it is of a day which has not come.
fn check_age(page: &Page, document: &Object<'_>) -> Result<(), ScrapeError> {
    let text = document.text("publicationDate")?;
    let day = day(&text).ok_or_else(|| changed(page, "/publicationDate", "a date", json::start_of(&text)))?;
    let tonight = page.observed_at.date_naive();
    // The vendor's day begins up to eight hours before that of UTC.
    let (oldest, newest) = (tonight - Days::new(DAYS_MAX), tonight + Days::new(1));
    if (oldest..=newest).contains(&day) {
        return Ok(());
    }
    Err(changed(page, "/publicationDate", format!("a day from {oldest} to {newest}"), format!("{day}, a build of another time")))
}

/// The day of a date in one of the forms that can only be read in one way; seen are `2018-10-08` and `2018-10-08T08:15:52Z`.
fn day(text: &str) -> Option<NaiveDate> {
    let shape: String = text.chars().map(|c| if c.is_ascii_digit() { '0' } else { c }).collect();
    let format = match shape.as_str() {
        "0000-00-00" => "%Y-%m-%d",
        "0000/00/00" => "%Y/%m/%d",
        "00000000" => "%Y%m%d",
        "0000-00-00 00:00:00" => "%Y-%m-%d %H:%M:%S",
        "0000-00-00T00:00:00" => "%Y-%m-%dT%H:%M:%S",
        "0000-00-00T00:00Z" => "%Y-%m-%dT%H:%MZ",
        _ if shape.starts_with("0000-00-00T") => {
            return DateTime::parse_from_rfc3339(text).ok().map(|at| at.to_utc().date_naive());
        }
        _ => return None,
    };
    NaiveDate::parse_from_str(text, format).ok()
}

/// Splits the name of an entry: region, type, network, system, disks. `us-east-1::ecs.gn7i-c8g1.2xlarge::vpc::linux::optimized`
fn key(name: &str) -> Result<Key<'_>, SkipReason> {
    let unknown = |what, word: &str| Err(SkipReason::UnknownWord { what, word: word.to_owned() });
    let parts: Vec<&str> = name.split("::").collect();
    let [region, instance_type, network, system, disks] = parts[..] else { return unknown("entry", name) };
    machines::check(instance_type)?;
    match network {
        "vpc" => {}
        "classic" => return Err(SkipReason::OutOfScope("the classic network repeats the machine")),
        word => return unknown("network", word),
    }
    match disks {
        "optimized" => {}
        "none" => return Err(SkipReason::OutOfScope("without optimised disks the machine is repeated")),
        word => return unknown("kind of disks", word),
    }
    let os = match system {
        "linux" => Os::Linux,
        "windows" => Os::Windows,
        word => return unknown("operating system", word),
    };
    if region.is_empty() {
        return unknown("region", region);
    }
    Ok(Key { region, instance_type, os })
}

/// One price of an entry.
struct Price {
    terms: Terms,
    amount: Decimal,
    unit: PriceUnit,
    text: String,
}

/// A row of a list of prices, and what it turned out to be.
type PriceRow<'a> = (Value<'a>, Result<Price, SkipReason>);

/// Every price of an entry, with its place.
fn prices<'a>(entry: &Object<'a>, parsed: &mut Parsed) -> Result<Vec<PriceRow<'a>>, SkipReason> {
    let mut lists = Vec::new();
    for name in [HOURS, "months", "years"] {
        if let Some(list) = entry.optional(name) {
            lists.push((name, list.list()?));
        }
    }
    if lists.is_empty() {
        return Err(SkipReason::FieldMissing { field: HOURS.to_owned() });
    }
    let weeks = entry.optional("weeks").map_or_else(|| Ok(Vec::new()), |list| list.list())?;
    weeks.iter().for_each(|_| parsed.leave_out("a subscription by the week"));
    entry.report_unread(&MANIFEST.ignored_fields, &mut parsed.unread_fields);
    let mut prices = Vec::new();
    for (list, values) in lists {
        let periods: Vec<_> = values.iter().map(period).collect();
        for (value, period) in values.into_iter().zip(&periods) {
            let is_doubled = period.is_ok() && periods.iter().filter(|other| *other == period).count() > 1;
            let price = match period {
                Ok(period) if is_doubled => Err(SkipReason::Contradiction(format!("{list}: several prices of period {period}"))),
                Ok(period) => price(list, period, &value, parsed),
                Err(reason) => Err(reason.clone()),
            };
            prices.push((value, price));
        }
    }
    Ok(prices)
}

/// The period of a price, in the unit of its list.
fn period(value: &Value<'_>) -> Result<String, SkipReason> {
    let period = value.object()?.field("period")?;
    Ok(if period.characters().starts_with('"') { period.text()?.into_owned() } else { period.characters().to_owned() })
}

fn price(list: &'static str, period: &str, value: &Value<'_>, parsed: &mut Parsed) -> Result<Price, SkipReason> {
    let (terms, unit) = terms(list, period)?;
    let row = value.object()?;
    row.field("period")?;
    let field = row.field("price")?;
    row.report_unread(&MANIFEST.ignored_fields, &mut parsed.unread_fields);
    if field.is_null() {
        return Err(SkipReason::PriceMissing);
    }
    let (text, amount) = if field.characters().starts_with('"') {
        let text = field.text()?;
        let amount = money::printed(&text, NumberFormat::PointDecimal, &[])?;
        (text, amount)
    } else {
        (Cow::Borrowed(field.characters()), field.decimal()?)
    };
    Ok(Price { terms, amount: money::positive(amount, &text)?, unit, text: text.into_owned() })
}

/// What a list and a period within it mean. The price of some years is their total, paid at the start.
fn terms(list: &'static str, period: &str) -> Result<(Terms, PriceUnit), SkipReason> {
    let subscription =
        |months| Terms { commitment_months: Some(months), upfront: Some(Upfront::All), ..Terms::of(PricingModel::Subscription) };
    let years = ["1", "2", "3", "4", "5"].into_iter().zip([12, 24, 36, 48, 60]).find(|(years, _)| *years == period);
    match (list, period, years) {
        (HOURS, "1", _) => Ok((Terms::of(PricingModel::OnDemand), PriceUnit::Hour)),
        ("months", "1", _) => Ok((subscription(1), PriceUnit::Month)),
        // Nobody has seen such a row, so nothing tells whether its amount is for one month or for all of them.
        ("months", count, _) if count.parse::<u32>().is_ok_and(|count| count > 1) => {
            Err(SkipReason::Undecoded("a subscription of several months"))
        }
        ("years", _, Some((_, months))) => Ok((subscription(months), PriceUnit::Term)),
        _ => Err(SkipReason::UnknownWord { what: "period", word: format!("{period} {list}") }),
    }
}
