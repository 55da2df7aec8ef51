//! The price list of a region: on-demand prices and reservations.
//!
//! In: the CSV of one region, or of all. Out: offers of accelerated machines under Linux and under Windows with its licence,
//! shared and dedicated. A row is an offer only if every word that decides what it is for says so.

use std::sync::LazyLock;

use chrono::{DateTime, Datelike, NaiveDate, NaiveTime, Utc};
use rust_decimal::Decimal;

use super::lines::{HEAD_LINES, List, Row};
use super::machines::{self, Found, Offered, Stated};
use super::reservations::Reservations;
use super::{MANIFEST, places};
use crate::contract::{
    Os, Page, Parsed, Place, PricingModel, PublishedOffer, SCOPE_ALL, ScrapeError, SkipReason, Tenancy, Terms,
};
use crate::money;
use crate::sieve::Sieve;

/// Rises whenever other lines are kept.
pub(super) const SIEVE_NAME: &str = "aws-prices-1";

/// Keeps the rows of accelerated machines. Every value of the list is quoted.
pub(super) static SIEVE: LazyLock<Sieve> = LazyLock::new(|| {
    let needles = machines::needles('"');
    Sieve::new(SIEVE_NAME, HEAD_LINES, &needles.iter().map(String::as_str).collect::<Vec<_>>())
});

/// Name of the offer in the list.
const OFFER_CODE: &str = "AmazonEC2";

/// From this year on a list without a region code, a capacity status or a market option is not what it should be.
const COMPLETE_SINCE: i32 = 2025;

/// Shortest time billed for a machine by use.
const MIN_BILLING_SECONDS: u32 = 60;

macro_rules! slots {
    ($($slot:ident = $column:literal),+ $(,)?) => {
        /// The columns that are read.
        #[derive(Clone, Copy)]
        pub(super) enum Slot { $($slot),+ }
        const COLUMNS: &[&str] = &[$($column),+];
    };
}

slots! {
    Sku = "SKU", OfferTerm = "OfferTermCode", TermType = "TermType", EffectiveDate = "EffectiveDate", Unit = "Unit",
    Price = "PricePerUnit", Currency = "Currency", Lease = "LeaseContractLength", Purchase = "PurchaseOption",
    Class = "OfferingClass", Family = "Product Family", LocationType = "Location Type", InstanceType = "Instance Type",
    Vcpus = "vCPU", Memory = "Memory", Storage = "Storage", Tenancy = "Tenancy", Os = "Operating System",
    Licence = "License Model", Usage = "usageType", Operation = "operation", Capacity = "CapacityStatus", Gpus = "GPU",
    Market = "MarketOption", Software = "Pre Installed S/W", Region = "Region Code",
}

const WIDTH: usize = Slot::Region as usize + 1;

/// Columns of the price; the others are the product's and the same in all its rows.
const PRICE: [Slot; 10] = [
    Slot::Sku,
    Slot::OfferTerm,
    Slot::TermType,
    Slot::EffectiveDate,
    Slot::Unit,
    Slot::Price,
    Slot::Currency,
    Slot::Lease,
    Slot::Purchase,
    Slot::Class,
];

/// Columns that lists of earlier years lack.
const LATER: [Slot; 4] = [Slot::Class, Slot::Capacity, Slot::Market, Slot::Region];

/// The fields of a row, by slot.
#[derive(Clone, Copy)]
pub(super) struct Fields<'a>([&'a [u8]; WIDTH]);

impl<'a> Fields<'a> {
    pub fn bytes(&self, slot: Slot) -> &'a [u8] {
        self.0[slot as usize]
    }

    pub fn text(&self, slot: Slot) -> Result<&'a str, SkipReason> {
        std::str::from_utf8(self.bytes(slot)).map_err(|_| SkipReason::FieldUnreadable {
            field: COLUMNS[slot as usize].to_owned(),
            expected: "UTF-8 text",
            found: "other bytes".to_owned(),
        })
    }

    pub fn word(&self, slot: Slot, what: &'static str) -> SkipReason {
        SkipReason::UnknownWord { what, word: String::from_utf8_lossy(self.bytes(slot)).into_owned() }
    }
}

/// Where the columns of a list stand, in two parts: the first decides for most rows that they are not ours.
struct Columns {
    early: Vec<(usize, usize)>,
    late: Vec<(usize, usize)>,
    /// Those that differ between the rows of a product.
    price: Vec<(usize, usize)>,
    is_sku_first: bool,
    has_region: bool,
}

impl Columns {
    fn of(list: &List<'_>) -> Result<Self, ScrapeError> {
        let mut wanted = Vec::new();
        for (slot, name) in COLUMNS.iter().enumerate() {
            let may_lack = list.published_at.year() < COMPLETE_SINCE && LATER.iter().any(|later| *later as usize == slot);
            match list.optional(name) {
                None if may_lack => {}
                _ => wanted.push((list.column(name)?, slot)),
            }
        }
        wanted.sort_unstable();
        let decides = [Slot::TermType, Slot::Family, Slot::InstanceType, Slot::Tenancy, Slot::Os, Slot::Licence];
        let last = wanted.iter().rposition(|(_, slot)| decides.iter().any(|d| *d as usize == *slot)).map_or(0, |at| at + 1);
        let has_region = wanted.iter().any(|(_, slot)| *slot == Slot::Region as usize);
        let is_sku_first = wanted.first() == Some(&(0, Slot::Sku as usize));
        let is_price = |wanted: &&(usize, usize)| PRICE.iter().any(|slot| *slot as usize == wanted.1);
        let price = wanted.iter().filter(is_price).copied().collect();
        let late = wanted.split_off(last);
        Ok(Self { early: wanted, late, price, is_sku_first, has_region })
    }
}

/// The region of a list, told from its rows, of which some may be of its zones; none when it holds several regions.
pub(super) fn scope(page: &Page) -> Result<Option<String>, ScrapeError> {
    let list = List::open(page, OFFER_CODE)?;
    let columns = Columns::of(&list)?;
    let mut region: Option<&[u8]> = None;
    for mut row in list.rows().filter(|_| columns.has_region) {
        let mut slots = [&[][..]; WIDTH];
        row.fill(&columns.early, &mut slots)?;
        // The few rows of other kinds that a whole list holds may name other regions.
        if !machines::is_accelerated(slots[Slot::InstanceType as usize]) {
            continue;
        }
        row.fill(&columns.late, &mut slots)?;
        let found = slots[Slot::Region as usize];
        region = match region {
            Some(known) if places::is_zone_of(found, known) => Some(known),
            Some(known) if known != found && !places::is_zone_of(known, found) => return Ok(None),
            _ => Some(found),
        };
    }
    Ok(region.map(|region| String::from_utf8_lossy(region).into_owned()).or_else(|| super::indexes::region_in(&page.url)))
}

/// Reads a list.
pub(super) fn read(page: &Page, parsed: &mut Parsed) -> Result<(), ScrapeError> {
    let list = List::open(page, OFFER_CODE)?;
    let columns = Columns::of(&list)?;
    let is_unread = |name: &&&str| !COLUMNS.contains(*name) && !MANIFEST.ignored_fields.iter().any(|known| known == **name);
    parsed.unread_fields.extend(list.columns().iter().filter(is_unread).map(|name| (*name).to_owned()));
    let reader = Reader { scope: &page.scope, today: page.observed_at.date_naive(), has_region: columns.has_region };
    let mut reservations = Reservations::default();
    // The columns of the product are the same in all rows of a SKU, which come one after the other: a product is read once,
    // whether it was turned away or not. The last line is always read, for it shows whether the list was cut off.
    let mut turned_away: Option<(&[u8], &'static str)> = None;
    let mut product: Option<Product<'_>> = None;
    let mut has_any = false;
    for mut row in list.rows() {
        if let Some((sku, reason)) = turned_away
            && columns.is_sku_first
            && row.begins_with(sku)
        {
            if row.is_last {
                row.end()?;
            }
            parsed.leave_out(reason);
            continue;
        }
        let mut fields = Fields([&[]; WIDTH]);
        if let Some(known) = &product
            && columns.is_sku_first
            && row.begins_with(known.sku)
        {
            row.fill(&columns.price, &mut fields.0)?;
            if row.is_last {
                row.end()?;
            }
            reader.take(&row, &fields, known, &mut reservations, parsed);
            continue;
        }
        row.fill(&columns.early, &mut fields.0)?;
        let is_ours = machines::is_accelerated(fields.bytes(Slot::InstanceType));
        let early = if is_ours { early(&fields) } else { None };
        if row.is_last || is_ours && early.is_none() {
            row.fill(&columns.late, &mut fields.0)?;
            row.end()?;
        }
        if !is_ours {
            continue;
        }
        has_any = true;
        let sku = fields.bytes(Slot::Sku);
        let known = match early {
            Some(reason) => Err(SkipReason::OutOfScope(reason)),
            None => reader.product(&row, &fields)?,
        };
        match known {
            Ok(known) => {
                reader.take(&row, &fields, &known, &mut reservations, parsed);
                product = Some(known);
            }
            Err(reason) => {
                turned_away = Some((
                    sku,
                    match reason {
                        SkipReason::OutOfScope(reason) => reason,
                        _ => "another price of a product that was not understood",
                    },
                ));
                parsed.take(label(&fields), row.place(), Err(reason));
            }
        }
    }
    if !has_any {
        parsed.leave_out("list without accelerated machines");
    }
    reservations.finish(parsed);
    Ok(())
}

/// Why most rows of accelerated machines are not ours, by the columns that come first.
fn early(fields: &Fields<'_>) -> Option<&'static str> {
    if fields.bytes(Slot::Family) == b"Dedicated Host" || fields.bytes(Slot::Tenancy) == b"Host" {
        return Some("dedicated host");
    }
    match fields.bytes(Slot::Os) {
        b"RHEL" | b"Red Hat Enterprise Linux with HA" | b"SUSE" | b"Ubuntu Pro" => return Some("Linux with a licence"),
        _ => {}
    }
    (fields.bytes(Slot::Licence) == b"Bring your own license").then_some("licence of the buyer")
}

fn label(fields: &Fields<'_>) -> String {
    String::from_utf8_lossy(fields.bytes(Slot::InstanceType)).into_owned()
}

struct Reader<'a> {
    /// The region, or all of them.
    scope: &'a str,
    today: NaiveDate,
    has_region: bool,
}

/// A machine to use, under one system and tenancy in one region.
pub(super) struct Product<'a> {
    sku: &'a [u8],
    instance_type: &'a str,
    region: &'a str,
    os: Os,
    tenancy: Tenancy,
    found: Found,
}

impl<'a> Reader<'a> {
    /// What a row is the price of, if that is a machine to use.
    fn product(&self, row: &Row<'a>, fields: &Fields<'a>) -> Result<Result<Product<'a>, SkipReason>, ScrapeError> {
        let region = match self.region(fields) {
            Ok(region) => region,
            Err(reason) => return Ok(Err(reason)),
        };
        if self.scope != SCOPE_ALL && region != self.scope && !places::is_zone_of(region.as_bytes(), self.scope.as_bytes()) {
            return Err(row.changed(format!("rows of the region `{}`", self.scope), format!("`{region}`")));
        }
        Ok(product(fields, region))
    }

    /// The row's own region. Lists of early years name it only in their address.
    fn region(&self, fields: &Fields<'a>) -> Result<&'a str, SkipReason> {
        let missing = || SkipReason::FieldMissing { field: COLUMNS[Slot::Region as usize].to_owned() };
        if self.has_region {
            return fields.text(Slot::Region).and_then(|region| if region.is_empty() { Err(missing()) } else { Ok(region) });
        }
        if self.scope == SCOPE_ALL {
            return Err(missing());
        }
        match fields.bytes(Slot::LocationType) {
            b"AWS Region" => Ok(self.scope),
            _ => Err(SkipReason::OutOfScope("row of a zone that the list does not name")),
        }
    }

    /// Takes a price of a product.
    fn take(
        &self,
        row: &Row<'a>,
        fields: &Fields<'a>,
        product: &Product<'a>,
        reservations: &mut Reservations<'a>,
        parsed: &mut Parsed,
    ) {
        let outcome = self.valid_from(fields).and_then(|valid_from| match fields.bytes(Slot::TermType) {
            b"OnDemand" => on_demand(fields, product, valid_from, row.place()).map(Some),
            b"Reserved" => reservations.add(fields, product, valid_from, row).map(|()| None),
            _ => Err(fields.word(Slot::TermType, "term type")),
        });
        match outcome {
            Ok(None) => {}
            Ok(Some(offer)) => parsed.offers.push(offer),
            Err(reason) => parsed.take(product.instance_type, row.place(), Err(reason)),
        }
    }

    fn valid_from(&self, fields: &Fields<'_>) -> Result<DateTime<Utc>, SkipReason> {
        let text = fields.text(Slot::EffectiveDate)?;
        let date: NaiveDate = text.parse().map_err(|_| SkipReason::FieldUnreadable {
            field: COLUMNS[Slot::EffectiveDate as usize].to_owned(),
            expected: "a date",
            found: format!("`{text}`"),
        })?;
        if date > self.today {
            return Err(SkipReason::OutOfScope("price announced for later"));
        }
        Ok(date.and_time(NaiveTime::MIN).and_utc())
    }
}

/// Whether the words of a product say that it is a machine to use, and which.
fn product<'a>(fields: &Fields<'a>, region: &'a str) -> Result<Product<'a>, SkipReason> {
    let out = |reason| Err(SkipReason::OutOfScope(reason));
    match fields.bytes(Slot::Family) {
        b"Compute Instance" | b"Compute Instance (bare metal)" => {}
        _ => return Err(fields.word(Slot::Family, "product family")),
    }
    match fields.bytes(Slot::Market) {
        b"OnDemand" | b"" => {}
        b"CapacityBlock" => return out("use of a Capacity Block"),
        _ => return Err(fields.word(Slot::Market, "market option")),
    }
    match fields.bytes(Slot::Capacity) {
        b"Used" | b"" => {}
        b"UnusedCapacityReservation" | b"AllocatedCapacityReservation" => return out("capacity reservation"),
        _ => return Err(fields.word(Slot::Capacity, "capacity status")),
    }
    if !matches!(fields.bytes(Slot::Software), b"NA" | b"") {
        return out("pre-installed software");
    }
    let tenancy = match fields.bytes(Slot::Tenancy) {
        b"Shared" => Tenancy::Shared,
        b"Dedicated" => Tenancy::Dedicated,
        _ => return Err(fields.word(Slot::Tenancy, "tenancy")),
    };
    let os = match (fields.bytes(Slot::Os), fields.bytes(Slot::Licence)) {
        (b"Linux", b"No License required") => Os::Linux,
        (b"Windows", b"No License required" | b"License Included") => Os::Windows,
        (b"Linux" | b"Windows", _) => return Err(fields.word(Slot::Licence, "licence model")),
        _ => return Err(fields.word(Slot::Os, "operating system")),
    };
    usage(fields, tenancy, os)?;
    if !matches!(fields.bytes(Slot::LocationType), b"AWS Region" | b"AWS Local Zone" | b"AWS Wavelength Zone") {
        return Err(fields.word(Slot::LocationType, "location type"));
    }
    let instance_type = fields.text(Slot::InstanceType)?;
    let stated = Stated {
        vcpus: fields.text(Slot::Vcpus)?,
        memory: fields.text(Slot::Memory)?,
        storage: fields.text(Slot::Storage)?,
        gpus: fields.text(Slot::Gpus)?,
    };
    let found = machines::find(instance_type, stated)?;
    Ok(Product { sku: fields.bytes(Slot::Sku), instance_type, region, os, tenancy, found })
}

/// The usage says once more what the price is for.
fn usage(fields: &Fields<'_>, tenancy: Tenancy, os: Os) -> Result<(), SkipReason> {
    match (usage_kind(fields.text(Slot::Usage)?), tenancy) {
        ("BoxUsage", Tenancy::Shared) | ("DedicatedUsage", Tenancy::Dedicated) => {}
        ("UnusedBox" | "Reservation" | "DedicatedRes" | "UnusedDed", _) => {
            return Err(SkipReason::OutOfScope("capacity reservation"));
        }
        _ => return Err(fields.word(Slot::Usage, "usage type")),
    }
    if plain_operation(fields.text(Slot::Operation)?) == Some(os) {
        Ok(())
    } else {
        Err(SkipReason::OutOfScope("another operation than running plain machines"))
    }
}

/// `USW2-BoxUsage:p5.48xlarge` → `BoxUsage`. The region before it is not to be trusted.
pub(super) fn usage_kind(usage: &str) -> &str {
    let kind = usage.split(':').next().unwrap_or(usage);
    kind.rsplit('-').next().unwrap_or(kind)
}

/// The system of an operation that runs machines without any other software.
pub(super) fn plain_operation(operation: &str) -> Option<Os> {
    match operation {
        "RunInstances" => Some(Os::Linux),
        "RunInstances:0002" => Some(Os::Windows),
        _ => None,
    }
}

pub(super) fn amount(fields: &Fields<'_>) -> Result<Decimal, SkipReason> {
    let text = fields.text(Slot::Price)?;
    if text.is_empty() {
        return Err(SkipReason::PriceMissing);
    }
    let amount = money::decimal(text).ok_or_else(|| SkipReason::PriceUnreadable { text: text.to_owned() })?;
    if amount.is_sign_negative() { Err(SkipReason::PriceUnreadable { text: text.to_owned() }) } else { Ok(amount) }
}

fn on_demand(
    fields: &Fields<'_>,
    product: &Product<'_>,
    valid_from: DateTime<Utc>,
    place: Place,
) -> Result<PublishedOffer, SkipReason> {
    if fields.bytes(Slot::Unit) != b"Hrs" {
        return Err(fields.word(Slot::Unit, "unit"));
    }
    let text = fields.text(Slot::Price)?;
    let amount = money::positive(amount(fields)?, text)?;
    let terms = Terms { min_billing_seconds: Some(MIN_BILLING_SECONDS), ..Terms::of(PricingModel::OnDemand) };
    let mut offer = offer(fields, product, valid_from, terms, place)?;
    offer.price.amount = amount;
    text.clone_into(&mut offer.price.text);
    Ok(offer)
}

/// An offer of a product, still without its price.
pub(super) fn offer(
    fields: &Fields<'_>,
    product: &Product<'_>,
    valid_from: DateTime<Utc>,
    terms: Terms,
    place: Place,
) -> Result<PublishedOffer, SkipReason> {
    let offered = Offered {
        sku: format!("{}.{}", fields.text(Slot::Sku)?, fields.text(Slot::OfferTerm)?),
        instance_type: product.instance_type.to_owned(),
        region: product.region.to_owned(),
        found: product.found.clone(),
        terms: Terms { os: product.os, tenancy: Some(product.tenancy), valid_from: Some(valid_from), ..terms },
        amount: Decimal::ZERO,
        upfront_amount: None,
        currency_code: money::currency_code(fields.text(Slot::Currency)?)?,
        text: String::new(),
        place,
    };
    Ok(offered.into())
}
