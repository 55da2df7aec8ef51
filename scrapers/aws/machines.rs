//! Machines: which types have accelerators, what they have, and that no two prices are of the same thing.
//!
//! In: types and what rows state about them. Out: the parts of an offer. Never a family by a prefix that another shares:
//! types are looked up whole.

use std::collections::{BTreeSet, HashMap};
use std::sync::LazyLock;

use rust_decimal::Decimal;

use crate::contract::{
    Machine, Parsed, Place, PricePer, PriceUnit, PricingModel, PublishedGpu, PublishedOffer, PublishedPrice, ScrapeError, Site,
    SkipReason, Tenancy, Terms, UNKNOWN_HARDWARE, Upfront,
};
use crate::hardware::Hardware;
use crate::money;

use super::places;

pub(super) static HARDWARE: LazyLock<Hardware> =
    LazyLock::new(|| Hardware::parse(include_str!("hardware.toml")).expect("the hardware table beside this file reads"));

/// How the families of accelerated machines begin, before the number of their generation.
const FAMILIES: [&str; 9] = ["p", "g", "gr", "dl", "inf", "trn", "cg", "u-p", "u-trn"];

/// Families whose chips are no GPUs, and UltraServers, which are several machines. What their rows say in the column `GPU`
/// is not reliable.
const NO_GPU_COLUMN: [&str; 4] = ["dl", "inf", "trn", "u-"];

/// What a sieve looks for: the beginnings of accelerated families after the mark that opens a field. Later generations are
/// among them, so that a new family is not lost.
pub(super) fn needles(mark: char) -> Vec<String> {
    let numbered = ["p", "g"].iter().flat_map(|family| (1..=9).map(move |generation| format!("{family}{generation}")));
    let others = ["gr", "dl", "inf", "trn", "cg1", "u-p", "u-trn"].map(str::to_owned);
    numbered.chain(others).map(|beginning| format!("{mark}{beginning}")).collect()
}

/// Whether a machine type is accelerated, by its name. FPGAs (`f`) and video encoders (`vt`) are not.
pub(super) fn is_accelerated(instance_type: &[u8]) -> bool {
    let is_of = |family: &str| {
        instance_type.strip_prefix(family.as_bytes()).is_some_and(|rest| rest.first().is_some_and(u8::is_ascii_digit))
    };
    matches!(instance_type.first(), Some(b'p' | b'g' | b'd' | b'i' | b't' | b'c' | b'u')) && FAMILIES.iter().any(|f| is_of(f))
}

/// What a row states about its machine; nothing where the source states nothing.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Stated<'a> {
    pub vcpus: &'a str,
    pub memory: &'a str,
    pub storage: &'a str,
    pub gpus: &'a str,
}

/// The parts of an offer that the machine type and the row decide.
#[derive(Debug, Clone)]
pub(super) struct Found {
    pub gpu: PublishedGpu,
    pub machine: Machine,
    pub flags: BTreeSet<&'static str>,
}

/// Cards and machine of an accelerated type. What a row states goes before the table, except that a count of GPUs that
/// is another than the table's makes the row doubtful.
pub(super) fn find(instance_type: &str, stated: Stated<'_>) -> Result<Found, SkipReason> {
    let mut flags = BTreeSet::new();
    let (gpu, mut machine) = HARDWARE.find(instance_type).unwrap_or_else(|| {
        flags.insert(UNKNOWN_HARDWARE);
        let machine = Machine { local_disk_gb: local_disk_gb(stated.storage), ..Machine::default() };
        (PublishedGpu::unknown(), machine)
    });
    let is_stated = !NO_GPU_COLUMN.iter().any(|family| instance_type.starts_with(family));
    if let Some(count) = gpu.count.filter(|count| is_stated && count.is_integer())
        && let Ok(stated) = stated.gpus.parse::<u32>()
        && stated >= 1
        && count.to_integer() != stated
    {
        return Err(SkipReason::Contradiction(format!("the row states {stated} GPUs, the hardware table {count}")));
    }
    machine.vcpus = money::decimal(stated.vcpus).or(machine.vcpus);
    machine.system_memory_gib = memory_gib(stated.memory).or(machine.system_memory_gib);
    machine.is_bare_metal = Some(instance_type.split_once('.').is_some_and(|(_, size)| size.starts_with("metal")));
    Ok(Found { gpu, machine, flags })
}

/// `1,152 GiB` → 1152.
fn memory_gib(text: &str) -> Option<Decimal> {
    money::decimal(&text.strip_suffix(" GiB")?.replace(',', ""))
}

/// `8 x 1000 SSD` or `1 x 250 NVMe SSD` → the gigabytes of all disks. A size with a fraction is in terabytes, whatever the
/// text calls it, and then the number is a rounded one: `8 x 1.9 NVMe SSD` has no figure here.
fn local_disk_gb(text: &str) -> Option<Decimal> {
    let mut words = text.split(' ');
    let (disks, by, size) = (words.next()?, words.next()?, words.next()?);
    let is_ssd = words.next_back() == Some("SSD");
    let size = money::decimal(size).filter(|size| size.is_integer())?;
    if by == "x" && is_ssd { money::decimal(disks)?.checked_mul(size) } else { None }
}

/// An offer of a machine.
pub(super) struct Offered {
    pub sku: String,
    pub instance_type: String,
    pub region: String,
    pub found: Found,
    pub terms: Terms,
    pub amount: Decimal,
    pub upfront_amount: Option<Decimal>,
    pub currency_code: String,
    pub text: String,
    pub place: Place,
}

impl From<Offered> for PublishedOffer {
    fn from(offered: Offered) -> Self {
        let site = places::site(&offered.region);
        let mut flags = offered.found.flags;
        if places::is_zone(&offered.region) {
            flags.insert(places::LOCAL_ZONE);
        }
        Self {
            site,
            sku: Some(offered.sku),
            instance_type: Some(offered.instance_type),
            offer_label: None,
            region: Some(offered.region),
            zone: None,
            gpu: offered.found.gpu,
            machine: offered.found.machine,
            terms: offered.terms,
            price: PublishedPrice {
                amount: offered.amount,
                upfront_amount: offered.upfront_amount,
                currency_code: offered.currency_code,
                unit: PriceUnit::Hour,
                per: PricePer::Instance,
                text: offered.text,
                // Nobody has read whether the Chinese list holds value-added tax.
                tax_included: if site == Some(Site::Cn) { None } else { super::MANIFEST.published().tax_included },
                listings: None,
            },
            place: offered.place,
            flags,
        }
    }
}

/// Leaves one of several rows that say the same of the same thing.
///
/// The strict filter leaves exactly one on-demand price of a machine in a region. Should it leave two that differ, something
/// about the list is new, and none of its prices is safe. Of other prices that differ, neither is taken.
pub(super) fn drop_repeated(parsed: &mut Parsed) -> Result<(), ScrapeError> {
    #[derive(Clone, Copy, PartialEq)]
    enum Fate {
        Kept,
        Repeated,
        Contradicted,
    }
    let mut first: HashMap<Key<'_>, usize> = HashMap::with_capacity(parsed.offers.len());
    let mut fates = vec![Fate::Kept; parsed.offers.len()];
    for (index, offer) in parsed.offers.iter().enumerate() {
        let other = *first.entry(key(offer)).or_insert(index);
        if other == index {
            continue;
        }
        if is_same_price(&parsed.offers[other].price, &offer.price) {
            fates[index] = Fate::Repeated;
        } else if offer.terms.pricing_model == PricingModel::OnDemand {
            let other = &parsed.offers[other];
            return Err(ScrapeError::ShapeChanged {
                page: offer.place.page.clone(),
                at: offer.place.at.clone(),
                expected: format!(
                    "one price of {} on the same terms, {} of {}",
                    offer.instance_type.as_deref().unwrap_or_default(),
                    other.price.text,
                    other.place.at
                ),
                found: offer.price.text.clone(),
            });
        } else {
            fates[index] = Fate::Contradicted;
            fates[other] = Fate::Contradicted;
        }
    }
    if fates.iter().all(|fate| *fate == Fate::Kept) {
        return Ok(());
    }
    for (offer, fate) in std::mem::take(&mut parsed.offers).into_iter().zip(fates) {
        match fate {
            Fate::Kept => parsed.offers.push(offer),
            Fate::Repeated => parsed.leave_out("repeated row"),
            Fate::Contradicted => {
                let reason = SkipReason::Contradiction(format!("another price than {} on the same terms", offer.price.text));
                parsed.take(offer.instance_type.unwrap_or_default(), offer.place, Err(reason));
            }
        }
    }
    Ok(())
}

/// Whether two prices are the same, however they are printed.
fn is_same_price(one: &PublishedPrice, other: &PublishedPrice) -> bool {
    (one.amount, one.upfront_amount, &one.currency_code, one.unit, one.per)
        == (other.amount, other.upfront_amount, &other.currency_code, other.unit, other.per)
}

/// What no two offers may share.
type Key<'a> = (
    Option<&'a str>,
    Option<&'a str>,
    &'static str,
    Option<&'static str>,
    &'static str,
    Option<u32>,
    Option<&'static str>,
    Option<&'a str>,
);

fn key(offer: &PublishedOffer) -> Key<'_> {
    let terms = &offer.terms;
    (
        offer.region.as_deref(),
        offer.instance_type.as_deref(),
        terms.os.word(),
        terms.tenancy.map(Tenancy::word),
        terms.pricing_model.word(),
        terms.commitment_months,
        terms.upfront.map(Upfront::word),
        terms.plan.as_deref(),
    )
}
