//! The machines: which parts the price of each consists of, and what each has.
//!
//! In: a machine type. Out: its hardware from `hardware.toml`, and the parts to add up. The catalog names parts and never
//! machines, so this list is where machine types come from.

use std::collections::BTreeSet;
use std::sync::LazyLock;

use num_rational::Ratio;
use rust_decimal::Decimal;

use super::MANIFEST;
use super::words::{Card, Plan, Series};
use crate::contract::{
    GpuShare, Machine, Place, PricePer, PriceUnit, PricingModel, PublishedGpu, PublishedOffer, PublishedPrice, Terms, Upfront,
};
use crate::hardware::Hardware;

pub(super) static HARDWARE: LazyLock<Hardware> =
    LazyLock::new(|| Hardware::parse(include_str!("hardware.toml")).expect("the hardware table beside this file reads"));

/// The disks inside a machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Disk {
    /// None that is part of the machine type.
    None,
    /// GiB for each card, with a price of their own.
    Priced(u32),
    /// GiB for each card, inside the price of the card.
    Included(u32),
}

/// Machines whose price consists of the same parts.
#[derive(Debug)]
pub(super) struct Family {
    /// The card whose SKU starts the sum.
    pub card: Card,
    /// Whose cores and memory are added; `None` where the card's price holds the whole machine.
    pub series: Option<Series>,
    /// The disks.
    pub disk: Disk,
    types: &'static [&'static str],
    /// For a card that is attached to N1: its name there, and the most cores that each number of cards allows.
    attached: Option<(&'static str, &'static [(u32, u32)])>,
}

/// One machine and what is added up for it.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Shape {
    /// The machine type. `a3-highgpu-8g`
    pub name: String,
    pub gpu: PublishedGpu,
    pub machine: Machine,
    /// How many of the card's SKU.
    pub cards: u32,
    /// GiB of disks with a price of their own.
    pub priced_disk_gib: u32,
}

const fn fixed(card: Card, series: Option<Series>, disk: Disk, types: &'static [&'static str]) -> Family {
    Family { card, series, disk, types, attached: None }
}

const fn attached(card: Card, name: &'static str, cores_max_by_count: &'static [(u32, u32)]) -> Family {
    Family { card, series: Some(Series::N1), disk: Disk::None, types: &[], attached: Some((name, cores_max_by_count)) }
}

/// Every family, the fixed machines first. Sizes of G4 with a share of a card are not a share of the sum: each is a SKU of
/// its own that holds the whole machine.
pub(super) static FAMILIES: [Family; 18] = [
    fixed(
        Card::A100,
        Some(Series::A2),
        Disk::None,
        &["a2-highgpu-1g", "a2-highgpu-2g", "a2-highgpu-4g", "a2-highgpu-8g", "a2-megagpu-16g"],
    ),
    fixed(
        Card::A100Of80,
        Some(Series::A2),
        Disk::Priced(375),
        &["a2-ultragpu-1g", "a2-ultragpu-2g", "a2-ultragpu-4g", "a2-ultragpu-8g"],
    ),
    fixed(
        Card::H100,
        Some(Series::A3),
        Disk::Priced(750),
        &["a3-highgpu-1g", "a3-highgpu-2g", "a3-highgpu-4g", "a3-highgpu-8g", "a3-edgegpu-8g"],
    ),
    fixed(Card::H100, Some(Series::A3), Disk::None, &["a3-edgegpu-8g-nolssd"]),
    fixed(Card::H100Mega, Some(Series::A3Plus), Disk::Priced(750), &["a3-megagpu-8g"]),
    fixed(Card::H200, Some(Series::A3Ultra), Disk::Priced(1500), &["a3-ultragpu-8g"]),
    fixed(Card::H200, Some(Series::A3Ultra), Disk::None, &["a3-ultragpu-8g-nolssd"]),
    fixed(Card::B200Slice, None, Disk::Included(1500), &["a4-highgpu-8g"]),
    fixed(
        Card::L4,
        Some(Series::G2),
        Disk::None,
        &[
            "g2-standard-4",
            "g2-standard-8",
            "g2-standard-12",
            "g2-standard-16",
            "g2-standard-24",
            "g2-standard-32",
            "g2-standard-48",
            "g2-standard-96",
        ],
    ),
    fixed(
        Card::Rtx6000,
        Some(Series::G4),
        Disk::None,
        &["g4-standard-48", "g4-standard-96", "g4-standard-192", "g4-standard-384"],
    ),
    fixed(Card::Rtx6000Eighth, None, Disk::None, &["g4-standard-6"]),
    fixed(Card::Rtx6000Quarter, None, Disk::None, &["g4-standard-12"]),
    fixed(Card::Rtx6000Half, None, Disk::None, &["g4-standard-24"]),
    attached(Card::T4, "nvidia-tesla-t4", &[(1, 48), (2, 48), (4, 96)]),
    attached(Card::V100, "nvidia-tesla-v100", &[(1, 12), (2, 24), (4, 48), (8, 96)]),
    attached(Card::P100, "nvidia-tesla-p100", &[(1, 16), (2, 32), (4, 64)]),
    attached(Card::P4, "nvidia-tesla-p4", &[(1, 24), (2, 48), (4, 96)]),
    attached(Card::K80, "nvidia-tesla-k80", &[(1, 8), (2, 16), (4, 32), (8, 64)]),
];

/// Cores of the standard sizes of N1. Each core has 3.75 GiB.
const N1_STANDARD: [u32; 8] = [1, 2, 4, 8, 16, 32, 64, 96];

/// Listed on demand and not sold so: the catalog has a plain price, and the machine is had only as spot, by reservation or
/// through the workload scheduler.
const LISTED_NOT_SOLD: [&str; 6] =
    ["a3-highgpu-1g", "a3-highgpu-2g", "a3-highgpu-4g", "a3-ultragpu-8g", "a3-ultragpu-8g-nolssd", "a4-highgpu-8g"];

/// Machines that exist and of which nobody says where they are sold. The catalog names parts only, and theirs are those of
/// the sizes that are sold, so a sum for these would be made up.
const NOT_KNOWN_TO_BE_SOLD: [&str; 3] = ["a3-edgegpu-8g", "a3-edgegpu-8g-nolssd", "a3-ultragpu-8g-nolssd"];

/// Flag of an on-demand price of what is not sold so: a list price and no sign that it can be had.
pub(super) const ON_DEMAND_LISTED: &str = "on_demand_listed";

static SHAPES: LazyLock<Vec<Vec<Shape>>> = LazyLock::new(|| FAMILIES.iter().map(shapes_of).collect());

/// Every family with its machines.
pub(super) fn families() -> impl Iterator<Item = (&'static Family, &'static [Shape])> {
    FAMILIES.iter().zip(SHAPES.iter().map(Vec::as_slice))
}

impl Shape {
    /// Whether a region with prices of all its parts has the machine too, as far as anybody knows.
    pub fn is_known_to_be_sold(&self) -> bool {
        !NOT_KNOWN_TO_BE_SOLD.contains(&self.name.as_str())
    }
}

/// What a machine has; machines with attached cards are not among these.
pub(super) fn hardware(name: &str) -> Option<(PublishedGpu, Machine)> {
    let shape = SHAPES.iter().flatten().find(|shape| shape.name == name);
    shape.map(|shape| (shape.gpu.clone(), shape.machine.clone())).or_else(|| HARDWARE.find(name))
}

fn shapes_of(family: &Family) -> Vec<Shape> {
    let Some((card, cores_max_by_count)) = family.attached else {
        return family.types.iter().map(|name| fixed_shape(family, name)).collect();
    };
    let sizes = |&(count, cores_max): &(u32, u32)| {
        N1_STANDARD.iter().filter(move |cores| **cores <= cores_max).map(move |cores| attached_shape(card, count, *cores))
    };
    cores_max_by_count.iter().flat_map(sizes).collect()
}

fn fixed_shape(family: &Family, name: &str) -> Shape {
    let (gpu, mut machine) = HARDWARE.find(name).expect("every machine of a family is in the hardware table");
    let count = gpu.count.expect("the hardware table states every count");
    let cards = if family.series.is_none() && !count.is_integer() { 1 } else { count.to_integer() };
    let (disk_gib, priced_disk_gib) = match family.disk {
        Disk::None => (0, 0),
        Disk::Priced(each) => (each * cards, each * cards),
        Disk::Included(each) => (each * cards, 0),
    };
    // A size without disks says so in its name; for the others disks are a matter of choice, and not in the price.
    if disk_gib > 0 || name.ends_with("-nolssd") {
        machine.local_disk_gb = Some((Decimal::from(disk_gib) * Decimal::new(1_073_741_824, 9)).normalize());
    }
    Shape { name: name.to_owned(), gpu, machine, cards, priced_disk_gib }
}

fn attached_shape(card: &str, count: u32, cores: u32) -> Shape {
    let (one, _) = HARDWARE.find(card).expect("every attached card is in the hardware table");
    Shape {
        name: format!("n1-standard-{cores}+{count}x{card}"),
        gpu: PublishedGpu { count: Some(Ratio::from(count)), share: GpuShare::Whole, ..one },
        machine: Machine {
            vcpus: Some(Decimal::from(cores)),
            system_memory_gib: Some((Decimal::from(cores) * Decimal::new(375, 2)).normalize()),
            local_disk_gb: None,
            is_bare_metal: Some(false),
        },
        cards: count,
        priced_disk_gib: 0,
    }
}

/// What is agreed under a plan.
pub(super) fn terms(plan: Plan) -> Terms {
    let reserved =
        |months| Terms { commitment_months: Some(months), upfront: Some(Upfront::None), ..Terms::of(PricingModel::Reserved) };
    let scheduled = |plan: &str| Terms { plan: Some(plan.to_owned()), ..Terms::of(PricingModel::CapacityBlock) };
    match plan {
        Plan::OnDemand => Terms::of(PricingModel::OnDemand),
        Plan::Spot => Terms::of(PricingModel::Spot),
        Plan::OneYear => reserved(12),
        Plan::ThreeYears => reserved(36),
        Plan::FlexStart => scheduled("dws_flex_start"),
        Plan::Calendar => scheduled("dws_calendar"),
    }
}

/// An offer of a machine, the same whether its price was added up or printed on the page.
pub(super) fn offer(
    (name, gpu, machine): (&str, PublishedGpu, Machine),
    region: &str,
    terms: Terms,
    (amount, unit, text): (Decimal, PriceUnit, String),
    place: Place,
) -> PublishedOffer {
    let mut flags = BTreeSet::new();
    if terms.pricing_model == PricingModel::OnDemand && LISTED_NOT_SOLD.contains(&name) {
        flags.insert(ON_DEMAND_LISTED);
    }
    let published = MANIFEST.published();
    PublishedOffer {
        site: None,
        sku: None,
        instance_type: Some(name.to_owned()),
        offer_label: None,
        region: Some(region.to_owned()),
        zone: None,
        gpu,
        machine,
        terms,
        price: PublishedPrice {
            amount,
            upfront_amount: None,
            currency_code: published.currency_code.clone(),
            unit,
            per: PricePer::Instance,
            text,
            tax_included: published.tax_included,
            listings: None,
        },
        place,
        flags,
    }
}
