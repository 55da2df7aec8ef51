//! Histories that are CSV files: cut into nights, and read row by row.

use std::collections::{BTreeSet, HashMap};

use chrono::{DateTime, Duration, NaiveDate, NaiveDateTime, NaiveTime, Utc};
use csv::{ByteRecord, ReaderBuilder, StringRecord};
use rust_decimal::Decimal;

use super::mapping::{GpuColumns, MachineColumns, Mapping, NightColumns, PriceColumn, TermsColumns};
use super::{AMOUNT_ROUNDED, History, HistoryNight, Importer, provider_of};
use crate::contract::{
    GpuShare, Machine, Page, Parsed, Place, PublishedGpu, PublishedOffer, PublishedPrice, ScrapeError, SkipReason, Skipped, Terms,
};
use crate::hardware::count_of;
use crate::listings::Listings;
use crate::{money, plain};

/// The places of a file's columns.
struct Header {
    at: HashMap<String, usize>,
}

impl Header {
    fn of(page: &Page, names: &StringRecord) -> Result<Self, ScrapeError> {
        let mut at = HashMap::new();
        for (index, name) in names.iter().enumerate() {
            if at.insert(name.trim_start_matches('\u{feff}').trim().to_owned(), index).is_some() {
                return Err(ScrapeError::changed(page, "line 1", "columns of different names", format!("`{name}` twice")));
            }
        }
        Ok(Self { at })
    }

    /// The place of a column that must be there.
    fn column(&self, page: &Page, name: &str) -> Result<usize, ScrapeError> {
        let missing = || ScrapeError::changed(page, "line 1", format!("a column `{name}`"), "none of that name");
        self.at.get(name).copied().ok_or_else(missing)
    }

    fn optional(&self, page: &Page, name: Option<&String>) -> Result<Option<usize>, ScrapeError> {
        name.map(|name| self.column(page, name)).transpose()
    }
}

fn unreadable(page: &Page, error: &dyn std::error::Error) -> ScrapeError {
    ScrapeError::WrongFormat { page: page.name.clone(), expected: "a CSV of UTF-8 text".to_owned(), found: error.to_string() }
}

/// Cuts a table into nights.
pub(super) fn history(
    mapping: &Mapping,
    page: &Page,
    at: Option<DateTime<Utc>>,
    seller: Option<&str>,
) -> Result<History, ScrapeError> {
    let unsaid = |what: &str| ScrapeError::changed(page, "the mapping and the command line", what, "nothing");
    let mut reader = ReaderBuilder::new().flexible(true).from_reader(page.body.as_slice());
    let header = Header::of(page, &reader.headers().map_err(|error| unreadable(page, &error))?.clone())?;
    let names = named(mapping, page, &header, seller)?;
    // A column that is not there would refuse each night by itself.
    Columns::of(mapping, page, &header)?;
    let Some(night) = &mapping.night else {
        let at = at.ok_or_else(|| unsaid("a time with `--at`"))?;
        let mut sellers = BTreeSet::new();
        for row in reader.records() {
            let row = row.map_err(|error| unreadable(page, &error))?;
            sellers.extend(names.of(&row));
        }
        let nights = if sellers.is_empty() { Vec::new() } else { vec![HistoryNight { at, sellers, body: None }] };
        return Ok(History { nights, undated: Vec::new() });
    };
    let (day, table) = (header.column(page, &night.column)?, header.optional(page, night.table.as_ref())?);
    let first = usize::try_from(reader.position().byte()).expect("a file fits in memory");
    let mut cut = Cut { head: &page.body[..first], nights: Vec::new(), of: HashMap::new(), tables: HashMap::new() };
    let mut undated = Vec::new();
    let mut row = ByteRecord::new();
    loop {
        let (start, line) = (reader.position().byte(), line_of(&page.body, reader.position()));
        if !reader.read_byte_record(&mut row).map_err(|error| unreadable(page, &error))? {
            break;
        }
        let end = reader.position().byte();
        let place = |byte: u64| usize::try_from(byte).expect("a file fits in memory");
        let row = StringRecord::from_byte_record(row.clone()).map_err(|error| unreadable(page, &error))?;
        let text = row.get(day).unwrap_or_default();
        match seen_at(night, text) {
            Some(at) => cut.add(at, table.and_then(|table| row.get(table)), names.of(&row), &page.body[place(start)..place(end)]),
            None => undated.push((line, text.to_owned())),
        }
    }
    Ok(History { nights: cut.nights, undated })
}

/// Who a row's seller is.
enum Names {
    One(String),
    Column { at: usize, mapping: Box<Mapping>, known: std::cell::RefCell<HashMap<String, String>> },
}

fn named(mapping: &Mapping, page: &Page, header: &Header, seller: Option<&str>) -> Result<Names, ScrapeError> {
    if let Some(column) = &mapping.seller.column {
        let at = header.column(page, column)?;
        return Ok(Names::Column { at, mapping: Box::new(mapping.clone()), known: std::cell::RefCell::default() });
    }
    let name = mapping.seller.name.as_deref().or(seller);
    let unsaid = || ScrapeError::changed(page, "the mapping and the command line", "a seller with `--provider`", "nothing");
    Ok(Names::One(provider_of(mapping, name.ok_or_else(unsaid)?)))
}

impl Names {
    fn of(&self, row: &StringRecord) -> Option<String> {
        match self {
            Self::One(name) => Some(name.clone()),
            Self::Column { at, mapping, known } => {
                let theirs = row.get(*at).filter(|name| !name.trim().is_empty())?;
                let mut known = known.borrow_mut();
                Some(known.entry(theirs.to_owned()).or_insert_with(|| provider_of(mapping, theirs)).clone())
            }
        }
    }
}

/// A file on its way into nights.
struct Cut<'a> {
    head: &'a [u8],
    nights: Vec<HistoryNight>,
    /// Place of each night by its time and table.
    of: HashMap<(DateTime<Utc>, String), usize>,
    /// Tables seen of each time.
    tables: HashMap<DateTime<Utc>, i64>,
}

impl Cut<'_> {
    fn add(&mut self, at: DateTime<Utc>, table: Option<&str>, seller: Option<String>, line: &[u8]) {
        let key = (at, table.unwrap_or_default().to_owned());
        let place = *self.of.entry(key).or_insert_with(|| {
            let earlier = self.tables.entry(at).and_modify(|tables| *tables += 1).or_insert(0);
            let at = at + Duration::minutes(*earlier);
            let mut body = Vec::new();
            push_line(&mut body, self.head);
            self.nights.push(HistoryNight { at, sellers: BTreeSet::new(), body: Some(body) });
            self.nights.len() - 1
        });
        let night = &mut self.nights[place];
        night.sellers.extend(seller);
        let body = night.body.as_mut().expect("a cut file has a body for each night");
        push_line(body, line);
    }
}

/// The line of a row, counted from 1. The reader stands before the second half of `\r\n` and before empty lines.
fn line_of(body: &[u8], position: &csv::Position) -> u64 {
    let rest = usize::try_from(position.byte()).ok().and_then(|start| body.get(start..)).unwrap_or_default();
    let ends = rest.iter().take_while(|byte| matches!(byte, b'\r' | b'\n')).filter(|byte| **byte == b'\n').count();
    position.line() + u64::try_from(ends).expect("a file fits in memory")
}

/// Adds a line with its end. The reader counts the second half of `\r\n` to the line after, and the last line of a file may have
/// no end.
fn push_line(body: &mut Vec<u8>, line: &[u8]) {
    let start = line.iter().position(|byte| !matches!(byte, b'\r' | b'\n')).unwrap_or(line.len());
    body.extend_from_slice(&line[start..]);
    if !body.ends_with(b"\n") {
        body.push(b'\n');
    }
}

/// When a row's prices were seen. A day is its noon in UTC, which is of that day in every zone where prices are published.
fn seen_at(night: &NightColumns, text: &str) -> Option<DateTime<Utc>> {
    let text = text.trim();
    if let Ok(day) = text.parse::<NaiveDate>() {
        return Some(day.and_time(NaiveTime::from_hms_opt(12, 0, 0).expect("noon is a time")).and_utc());
    }
    if let Ok(at) = DateTime::parse_from_rfc3339(text) {
        return Some(at.with_timezone(&Utc));
    }
    text.parse::<NaiveDateTime>().ok().filter(|_| night.is_utc).map(|at| at.and_utc())
}

/// Places of the columns that are read.
struct Columns<'a> {
    machine: &'a MachineColumns,
    gpu: &'a GpuColumns,
    terms: &'a TermsColumns,
    seller: Option<usize>,
    machine_type: Option<usize>,
    label: Vec<usize>,
    region: Option<usize>,
    vcpus: Option<usize>,
    memory_gib: Option<usize>,
    gpu_label: Option<usize>,
    gpu_count: Option<usize>,
    gpu_memory_gb: Option<usize>,
    pricing_model: Option<usize>,
    plan: Option<usize>,
    prices: Vec<Priced<'a>>,
}

/// Places of one price and its listings: how many, lowest, highest.
struct Priced<'a> {
    price: &'a PriceColumn,
    amount: usize,
    listings: Option<[usize; 3]>,
}

impl<'a> Columns<'a> {
    fn of(mapping: &'a Mapping, page: &Page, header: &Header) -> Result<Self, ScrapeError> {
        let machine = mapping.machine.as_ref().expect("the mapping of a CSV has machines");
        let gpu = mapping.gpu.as_ref().expect("the mapping of a CSV has GPUs");
        let terms = mapping.terms.as_ref().expect("the mapping of a CSV has terms");
        let optional = |name: &Option<String>| header.optional(page, name.as_ref());
        let priced = |price: &'a PriceColumn| {
            let listings = price.listings.as_ref().map(|listings| {
                let column = |name: &str| header.column(page, name);
                Ok::<_, ScrapeError>([column(&listings.count)?, column(&listings.min)?, column(&listings.max)?])
            });
            Ok(Priced { price, amount: header.column(page, &price.column)?, listings: listings.transpose()? })
        };
        Ok(Self {
            machine,
            gpu,
            terms,
            seller: optional(&mapping.seller.column)?,
            machine_type: optional(&machine.machine_type)?,
            label: machine.label.iter().map(|name| header.column(page, name)).collect::<Result<_, _>>()?,
            region: optional(&machine.region)?,
            vcpus: optional(&machine.vcpus)?,
            memory_gib: optional(&machine.memory_gib)?,
            gpu_label: optional(&gpu.label)?,
            gpu_count: optional(&gpu.count)?,
            gpu_memory_gb: optional(&gpu.memory_gb)?,
            pricing_model: optional(&terms.pricing_model.as_ref().map(|words| words.column.clone()))?,
            plan: optional(&terms.plan)?,
            prices: mapping.prices.iter().map(priced).collect::<Result<_, ScrapeError>>()?,
        })
    }
}

/// Reads the rows of the importer's seller.
pub(super) fn read(importer: &Importer, page: &Page, parsed: &mut Parsed) -> Result<(), ScrapeError> {
    let mut reader = ReaderBuilder::new().flexible(true).from_reader(page.body.as_slice());
    let header = Header::of(page, &reader.headers().map_err(|error| unreadable(page, &error))?.clone())?;
    let columns = Columns::of(&importer.mapping, page, &header)?;
    let mut sellers: HashMap<String, bool> = HashMap::new();
    let mut is_of_seller = |row: &StringRecord| {
        let Some(theirs) = columns.seller.map(|at| row.get(at).unwrap_or_default()) else { return true };
        *sellers.entry(theirs.to_owned()).or_insert_with(|| importer.sells_as(theirs))
    };
    for row in reader.records() {
        let row = row.map_err(|error| unreadable(page, &error))?;
        if is_of_seller(&row) {
            let line = row.position().map_or(0, |position| line_of(&page.body, position));
            Row { importer, page, columns: &columns, row: &row, line }.read(parsed);
        }
    }
    Ok(())
}

struct Row<'a> {
    importer: &'a Importer,
    page: &'a Page,
    columns: &'a Columns<'a>,
    row: &'a StringRecord,
    line: u64,
}

impl Row<'_> {
    fn text(&self, at: Option<usize>) -> Option<&str> {
        at.and_then(|at| self.row.get(at)).map(str::trim).filter(|text| !text.is_empty())
    }

    fn name(&self) -> String {
        let label: Vec<&str> = self.columns.label.iter().filter_map(|at| self.text(Some(*at))).collect();
        self.text(self.columns.machine_type).map_or_else(|| label.join(" "), str::to_owned)
    }

    fn read(&self, parsed: &mut Parsed) {
        if self.columns.gpu_label.is_some() && self.text(self.columns.gpu_label).is_none() {
            parsed.leave_out("a machine without a GPU");
            return;
        }
        let name = self.name();
        let shared = self.gpu().and_then(|(gpu, machine)| Ok((gpu, machine, self.terms()?)));
        for priced in &self.columns.prices {
            let printed = self.row.get(priced.amount).unwrap_or_default().trim();
            if priced.price.none.iter().any(|none| none == printed) {
                parsed.leave_out("no price of this kind");
                continue;
            }
            let place = Place { page: self.page.name.clone(), at: format!("line {}, {}", self.line, priced.price.column) };
            let offer =
                shared.clone().and_then(|(gpu, machine, terms)| self.offer(priced, printed, (gpu, machine), terms, &place));
            match offer {
                Ok(offer) => parsed.offers.push(offer),
                Err(reason) => parsed.skipped.push(Skipped { place, label: name.clone(), reason }),
            }
        }
    }

    fn offer(
        &self,
        priced: &Priced<'_>,
        printed: &str,
        (gpu, machine): (PublishedGpu, Machine),
        terms: Terms,
        place: &Place,
    ) -> Result<PublishedOffer, SkipReason> {
        let model = PublishedPrice {
            amount: Decimal::ZERO,
            upfront_amount: None,
            currency_code: priced.price.currency.clone(),
            unit: priced.price.unit,
            per: priced.price.per_on(self.page.observed_at.date_naive()),
            text: String::new(),
            tax_included: priced.price.tax_included,
            listings: None,
        };
        let (mut price, is_rounded) = self.importer.price(printed, model)?;
        price.listings = self.listings(priced, price.amount)?;
        let terms = Terms {
            pricing_model: priced.price.pricing_model.unwrap_or(terms.pricing_model),
            commitment_months: priced.price.commitment_months,
            ..terms
        };
        let is_part = gpu.share == GpuShare::Derived;
        let mut offer = PublishedOffer::plain(gpu, terms, price, place.clone());
        offer.machine = machine;
        offer.instance_type = self.text(self.columns.machine_type).map(str::to_owned);
        if offer.instance_type.is_none() {
            offer = offer.called(self.name());
        }
        let is_somewhere = |region: &&str| !self.columns.machine.everywhere.iter().any(|word| word == region);
        offer.region = self.text(self.columns.region).filter(is_somewhere).map(str::to_owned);
        if is_part {
            offer = offer.marked("derived_share");
        }
        Ok(if is_rounded { offer.marked(AMOUNT_ROUNDED) } else { offer })
    }

    fn listings(&self, priced: &Priced<'_>, amount_median: Decimal) -> Result<Option<Listings>, SkipReason> {
        let Some([count, min, max]) = priced.listings else { return Ok(None) };
        let amount = |at: usize, field: &str| {
            let text = self.text(Some(at)).unwrap_or_default();
            let amount = money::decimal(text).ok_or_else(|| SkipReason::unreadable(field, "an amount", text))?;
            Ok::<_, SkipReason>(self.importer.mapping.digits.map_or(amount, |digits| amount.round_dp(digits)))
        };
        let printed = self.text(Some(count)).unwrap_or_default();
        let count = printed.parse().map_err(|_| SkipReason::unreadable("listings", "a count", printed))?;
        Ok(Some(Listings { count, amount_min: amount(min, "lowest")?, amount_median, amount_max: amount(max, "highest")? }))
    }

    fn gpu(&self) -> Result<(PublishedGpu, Machine), SkipReason> {
        if self.columns.gpu.of_machine_type {
            let instance_type = self.text(self.columns.machine_type).unwrap_or_default().to_owned();
            let known = self.importer.machines.get(&instance_type.to_lowercase());
            let known = known.ok_or(SkipReason::UnknownMachine { instance_type })?;
            return Ok((known.gpu.clone(), known.machine.clone()));
        }
        let number = |at: Option<usize>, field: &str| self.text(at).map(|text| plain::number(text, field)).transpose();
        let count = match self.columns.gpu.count_of_every_row {
            Some(count) => Decimal::from(count),
            None => {
                number(self.columns.gpu_count, "GPUs")?.ok_or_else(|| SkipReason::FieldMissing { field: "GPUs".to_owned() })?
            }
        };
        let count = count_of(count).ok_or_else(|| SkipReason::unreadable("GPUs", "a count of cards", &count.to_string()))?;
        let gpu = PublishedGpu {
            label: self.text(self.columns.gpu_label).map(str::to_owned),
            count: Some(count),
            // A table of decimals does not say which part of a card 0.167 is.
            share: if count.is_integer() { GpuShare::Whole } else { GpuShare::Derived },
            memory_gb: number(self.columns.gpu_memory_gb, "GPU memory")?,
            ..PublishedGpu::unknown()
        };
        let machine = Machine {
            vcpus: number(self.columns.vcpus, "vCPUs")?,
            system_memory_gib: number(self.columns.memory_gib, "memory")?,
            ..Machine::default()
        };
        Ok((gpu, machine))
    }

    fn terms(&self) -> Result<Terms, SkipReason> {
        let model = match &self.columns.terms.pricing_model {
            Some(words) => {
                let word = self.text(self.columns.pricing_model).unwrap_or_default();
                let unknown = || SkipReason::UnknownWord { what: "way to buy", word: word.to_owned() };
                *words.words.get(word).ok_or_else(unknown)?
            }
            // Each price says it; this one is replaced.
            None => self.columns.prices[0].price.pricing_model.expect("a mapping says how each price is bought"),
        };
        let plan = self.text(self.columns.plan).map(str::to_owned);
        Ok(Terms { os: self.columns.terms.os, plan, ..Terms::of(model) })
    }
}
