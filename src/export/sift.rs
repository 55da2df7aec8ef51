//! Rows of a snapshot → what a catalogue of machines can say truthfully.
//!
//! In: rows of the `offers` table, and a catalogue's names. Out: whole machines with a number of cards, by the hour on demand or
//! on spot, with Linux, in US dollars; and how many rows are left out, by reason. Never guesses what a row does not state, and
//! never chooses between two prices of one thing.

use std::collections::{BTreeMap, BTreeSet};

use gpuledger_scrapers::contract::{Os, PricingModel, SourceKind};
use gpuledger_scrapers::export::Names;
use num_traits::ToPrimitive as _;
use polars::prelude::*;
use rust_decimal::Decimal;

use crate::answer::LeftOut;
use crate::frame::Row;

/// One price of one kind of machine in one place.
#[derive(Debug, Clone, PartialEq)]
pub struct Item {
    /// The seller, in the catalogue's words.
    pub seller: String,
    /// The machine, as its seller calls it.
    pub machine: String,
    /// Region as published.
    pub region: String,
    /// Zone as published.
    pub zone: Option<String>,
    /// GPUs of the machine.
    pub gpus: u32,
    /// The card, in the catalogue's words.
    pub card: String,
    /// Marketed memory of one card in GB.
    pub card_memory_gb: Decimal,
    /// Maker of the card, in the catalogue's words.
    pub maker: String,
    /// Processor, in the catalogue's words, where the card's machines are not x86.
    pub processor: Option<String>,
    /// Virtual CPUs of the machine.
    pub vcpus: Decimal,
    /// Main memory of the machine in GiB.
    pub memory_gib: Decimal,
    /// Local disks that are in the price, in GB.
    pub disk_gb: Option<Decimal>,
    /// Whether it may be taken away.
    pub is_spot: bool,
    /// Mark of the seller's spot offers.
    pub flag: Option<String>,
    /// The whole machine, in USD per hour.
    pub usd_per_hour: f64,
}

impl Item {
    /// What it is, without its price.
    fn key(&self) -> (&str, &str, &str, Option<&str>, &str, u32, bool) {
        (&self.seller, &self.machine, &self.region, self.zone.as_deref(), &self.card, self.gpus, self.is_spot)
    }
}

/// Why a row is not in a catalogue.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Why {
    /// The catalogue has no file of the seller.
    Seller,
    /// A copy of a vendor's price, or the middle of many listings.
    NotOneSeller,
    /// Bought for a term, or in another way that the catalogue has no word for.
    WayToBuy,
    /// Another operating system, or a licence, is in the price.
    System,
    /// A plan of the seller's own, a promotion, or tax in the price.
    Condition,
    /// A host or machine of one's own, which has the same name as the shared one.
    Dedicated,
    /// A part of a card.
    Fraction,
    /// Nobody has read how many cards, or which, or with how much memory.
    CardNotStated,
    /// The catalogue has no name for the card or its maker.
    NoName(String),
    /// The machine has no type by which it could be asked for.
    NoMachine,
    /// The row holds everywhere, or nobody has read where.
    NoRegion,
    /// vCPUs or main memory are not stated, or no whole vCPUs.
    SizeNotStated,
    /// The price is not in US dollars, and there is no exchange rate of its day.
    NoRate,
}

impl Why {
    /// The words behind a number of rows.
    #[must_use]
    pub fn words(&self, names: &Names) -> String {
        match self {
            Self::Seller => format!("of sellers of whom {} reads no catalogue from a file", names.name),
            Self::NotOneSeller => "that are the middle of many listings, or somebody's copy of a vendor's price".to_owned(),
            Self::WayToBuy => "that are neither on demand nor spot".to_owned(),
            Self::System => "with another system than Linux, or a licence, in the price".to_owned(),
            Self::Condition => "under a plan of the seller's own, a promotion, or with tax in the price".to_owned(),
            Self::Dedicated => "on hardware of one's own, under the name of the shared machine".to_owned(),
            Self::Fraction => "of a part of a card".to_owned(),
            Self::CardNotStated => "whose card, its memory or the number of cards is not stated".to_owned(),
            Self::NoName(card) => format!("of {card}, for which {} has no name", names.name),
            Self::NoMachine => "without a machine type by which it could be asked for".to_owned(),
            Self::NoRegion => "whose region is not stated".to_owned(),
            Self::SizeNotStated => "whose vCPUs or main memory are not stated".to_owned(),
            Self::NoRate => "without an exchange rate of their day".to_owned(),
        }
    }
}

/// What a catalogue gets, in order, and what is left out.
#[derive(Debug, Default)]
pub struct Sifted {
    /// The items, in order of seller, machine, region, zone, card, number and way to buy.
    pub items: Vec<Item>,
    /// How many rows are left out, by reason.
    pub left_out: LeftOut,
    /// The rows that the items were made of.
    pub rows: DataFrame,
}

/// Sifts the rows of a snapshot.
///
/// # Errors
/// Only on a fault of the program.
pub fn sift(rows: &DataFrame, names: &Names) -> PolarsResult<Sifted> {
    let mut left_out: BTreeMap<Why, usize> = BTreeMap::new();
    let (mut items, mut is_taken) = (Vec::new(), Vec::with_capacity(rows.height()));
    for row in 0..rows.height() {
        let made = item(&Row { rows, row }, names)?;
        is_taken.push(made.is_ok());
        match made {
            Ok(item) => items.push(item),
            Err(why) => *left_out.entry(why).or_insert(0) += 1,
        }
    }
    let is_taken: BooleanChunked = is_taken.into_iter().collect();
    let mut sifted = Sifted { rows: rows.filter(&is_taken)?, ..Sifted::default() };
    for (why, rows) in left_out {
        sifted.left_out.add(rows, why.words(names));
    }
    items.sort_by(|a, b| a.key().cmp(&b.key()).then(a.usd_per_hour.total_cmp(&b.usd_per_hour)));
    let (mut repeated, mut disputed) = (0, 0);
    for same in items.chunk_by(|a, b| a.key() == b.key()) {
        if same.iter().all(|item| item == &same[0]) {
            repeated += same.len() - 1;
            sifted.items.push(same[0].clone());
        } else {
            disputed += same.len();
        }
    }
    sifted.left_out.add(repeated, "that say the same as another row");
    sifted.left_out.add(disputed, "of a machine that has several prices or sizes in one place under the same terms");
    Ok(sifted)
}

/// A number above zero; `None` for anything else.
fn number(row: &Row, column: &str) -> PolarsResult<Option<Decimal>> {
    let number = row.optional(column)?.and_then(|text| text.parse::<Decimal>().ok());
    Ok(number.map(|number| number.normalize()).filter(|number| *number > Decimal::ZERO))
}

/// The item of a row, or why there is none.
fn item(row: &Row, names: &Names) -> PolarsResult<Result<Item, Why>> {
    let provider = row.text("provider")?;
    let Some(seller) = names.sellers.get(&provider) else { return Ok(Err(Why::Seller)) };
    if row.is("source_kind", SourceKind::Aggregator.word())? || row.optional("listing_count")?.is_some() {
        return Ok(Err(Why::NotOneSeller));
    }
    let is_spot = row.is("pricing_model", PricingModel::Spot.word())?;
    let is_for_a_term = row.optional("commitment_months")?.is_some() || row.optional("published_upfront_amount")?.is_some();
    if is_for_a_term || !is_spot && !row.is("pricing_model", PricingModel::OnDemand.word())? {
        return Ok(Err(Why::WayToBuy));
    }
    if !row.is("os", Os::Linux.word())? || row.optional("licence")?.is_some() {
        return Ok(Err(Why::System));
    }
    if row.optional("plan")?.is_some() || row.is("is_promotion", "true")? || row.is("tax_included", "true")? {
        return Ok(Err(Why::Condition));
    }
    if row.is("tenancy", "dedicated")? {
        return Ok(Err(Why::Dedicated));
    }
    if row.is("is_fractional", "true")? {
        return Ok(Err(Why::Fraction));
    }
    let (model, vendor) = (row.optional("gpu_model")?, row.optional("gpu_vendor")?);
    let gpus = number(row, "gpu_count")?.filter(Decimal::is_integer).and_then(|gpus| gpus.to_u32());
    let (Some(model), Some(vendor), Some(gpus), Some(card_memory_gb)) = (model, vendor, gpus, number(row, "gpu_memory_gb")?)
    else {
        return Ok(Err(Why::CardNotStated));
    };
    let (Some(card), Some(maker)) = (names.card(&provider, &model), names.makers.get(&vendor)) else {
        return Ok(Err(Why::NoName(model)));
    };
    let Some(machine) = row.optional("instance_type")?.and_then(|machine| machine_name(names, &provider, machine)) else {
        return Ok(Err(Why::NoMachine));
    };
    let Some(region) = row.optional("region")? else { return Ok(Err(Why::NoRegion)) };
    let sizes = (number(row, "vcpus")?.filter(Decimal::is_integer), number(row, "system_memory_gib")?);
    let (Some(vcpus), Some(memory_gib)) = sizes else { return Ok(Err(Why::SizeNotStated)) };
    let price = row.rows.column("price_usd_per_hour")?.f64()?.get(row.row);
    let Some(usd_per_hour) = price.filter(|price| price.is_finite() && *price > 0.0) else { return Ok(Err(Why::NoRate)) };
    Ok(Ok(Item {
        seller: seller.clone(),
        machine,
        region,
        zone: row.optional("zone")?,
        gpus,
        card: card.to_owned(),
        card_memory_gb,
        maker: maker.clone(),
        processor: names.processors.get(&model).cloned(),
        vcpus,
        memory_gib,
        disk_gb: number(row, "local_disk_gb")?,
        is_spot,
        flag: names.spot_flags.get(&provider).filter(|_| is_spot).cloned(),
        usd_per_hour,
    }))
}

/// What the catalogue calls a machine.
fn machine_name(names: &Names, provider: &str, machine: String) -> Option<String> {
    if names.no_machine_with.get(provider).is_some_and(|mark| machine.contains(mark.as_str())) {
        return None;
    }
    match names.machine_ends_before.get(provider) {
        Some(mark) => machine.split(mark.as_str()).next().filter(|name| !name.is_empty()).map(str::to_owned),
        None => Some(machine),
    }
}

/// Sellers that a catalogue's items are of.
#[must_use]
pub fn sellers(items: &[Item]) -> BTreeSet<&str> {
    items.iter().map(|item| item.seller.as_str()).collect()
}
