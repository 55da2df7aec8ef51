//! The words of a SKU: which part of a machine it prices, and how that part is bought.
//!
//! In: description, resource group and usage type. Out: a part and a plan. Every description is read in full: what is left
//! over after the known words is unknown, never overlooked.

use crate::contract::SkipReason;

/// How a part is bought.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) enum Plan {
    OnDemand,
    Spot,
    OneYear,
    ThreeYears,
    /// Dynamic Workload Scheduler, flex-start: a queue, then up to seven days. The catalog says `DWS Defined Duration`.
    FlexStart,
    /// Dynamic Workload Scheduler, calendar mode: days reserved in advance.
    Calendar,
}

/// A series of machines whose cores and memory have SKUs of their own.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) enum Series {
    A2,
    A3,
    A3Plus,
    A3Ultra,
    G2,
    G4,
    N1,
}

/// A card as the catalog prices it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) enum Card {
    A100,
    A100Of80,
    H100,
    H100Mega,
    H200,
    /// One card of an A4 machine with its share of cores, memory and disks.
    B200Slice,
    L4,
    Rtx6000,
    /// A whole machine with an eighth of an RTX PRO 6000, and so on.
    Rtx6000Eighth,
    Rtx6000Quarter,
    Rtx6000Half,
    T4,
    V100,
    P100,
    P4,
    K80,
}

/// A part of a machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) enum Part {
    Core(Series),
    Ram(Series),
    Gpu(Card),
    LocalSsd,
}

const SERIES: [(&str, Series); 7] = [
    ("A2", Series::A2),
    ("A3", Series::A3),
    ("A3Plus", Series::A3Plus),
    ("A3Ultra", Series::A3Ultra),
    ("G2", Series::G2),
    ("G4", Series::G4),
    ("N1 Predefined", Series::N1),
];

/// Names of cards, in full. `Nvidia Tesla A100 GPU` is the one with 40 GB, which its name does not say.
const CARDS: [(&str, Card); 18] = [
    ("Nvidia Tesla A100 80GB GPU", Card::A100Of80),
    ("Nvidia Tesla A100 GPU", Card::A100),
    ("Nvidia H100 80GB GPU", Card::H100),
    ("Nvidia H100 80GB Plus GPU", Card::H100Mega),
    ("Nvidia H100 80GB Mega GPU", Card::H100Mega),
    ("Nvidia H100 Mega 80GB GPU", Card::H100Mega),
    ("H200 141GB GPU", Card::H200),
    ("A4 Nvidia B200 (1 gpu slice)", Card::B200Slice),
    ("Nvidia L4 GPU", Card::L4),
    ("RTX 6000 96GB", Card::Rtx6000),
    ("1/8 vGPU no lssd", Card::Rtx6000Eighth),
    ("1/4 vGPU no lssd", Card::Rtx6000Quarter),
    ("1/2 vGPU no lssd", Card::Rtx6000Half),
    ("Nvidia Tesla T4 GPU", Card::T4),
    ("Nvidia Tesla V100 GPU", Card::V100),
    ("Nvidia Tesla P100 GPU", Card::P100),
    ("Nvidia Tesla P4 GPU", Card::P4),
    ("Nvidia Tesla K80 GPU", Card::K80),
];

/// Words of products that are not a plain machine.
const OTHER_PRODUCTS: [&str; 5] = ["Sole Tenancy", "Custom", "Premium", "Suspended", "Virtual Workstation"];

/// Words that say how something is bought. None may be left over once the plan is known.
const PLAN_WORDS: [&str; 10] =
    ["Commitment", "Reserved", "Spot", "Preemptible", "DWS", "Defined Duration", "Calendar", "attached", "Year", "Flex"];

/// Why nearly all SKUs are left out.
pub(super) const NOT_A_PART: &str = "not a part of a GPU machine";

const ON_FLEX_START: &str = " attached to DWS Defined Duration VMs";
const ON_SPOT: &str = " attached to Spot Preemptible VMs";
const LOCAL_SSD: &str = "SSD backed Local Storage";

impl Part {
    /// The part in words. `RAM of A3Plus`
    pub fn name(self) -> String {
        let series = |wanted| SERIES.iter().find(|(_, series)| *series == wanted).map_or("", |(name, _)| *name);
        match self {
            Self::Core(of) => format!("core of {}", series(of)),
            Self::Ram(of) => format!("RAM of {}", series(of)),
            Self::Gpu(of) => CARDS.iter().find(|(_, card)| *card == of).map_or("", |(name, _)| *name).to_owned(),
            Self::LocalSsd => "local SSD".to_owned(),
        }
    }
}

impl Plan {
    /// The plan in words, for people who read why something was skipped.
    pub const fn name(self) -> &'static str {
        match self {
            Self::OnDemand => "on demand",
            Self::Spot => "spot",
            Self::OneYear => "1 year",
            Self::ThreeYears => "3 years",
            Self::FlexStart => "flex-start",
            Self::Calendar => "calendar mode",
        }
    }
}

/// Reads a SKU's words.
///
/// # Errors
/// Out of scope for another product or machine; an unknown word for a machine of ours that is described in a new way.
pub(super) fn read(description: &str, group: &str, usage: &str) -> Result<(Part, Plan), SkipReason> {
    if !is_of_ours(description, group) {
        return Err(SkipReason::OutOfScope(NOT_A_PART));
    }
    if OTHER_PRODUCTS.iter().any(|word| description.contains(word)) {
        return Err(SkipReason::OutOfScope("sole tenancy, custom, premium, suspended or workstation"));
    }
    let (thing, plan) = plan(description)?;
    let usages: &[&str] = match plan {
        Plan::OnDemand => &["OnDemand"],
        // The spot slices of A4 and the spot disks stand under `OnDemand`; their words leave no doubt.
        Plan::Spot | Plan::FlexStart | Plan::Calendar => &["OnDemand", "Preemptible"],
        Plan::OneYear => &["Commit1Yr"],
        Plan::ThreeYears => &["Commit3Yr"],
    };
    if !usages.contains(&usage) {
        return Err(SkipReason::UnknownWord { what: "usage type", word: usage.to_owned() });
    }
    Ok((part(thing, group, plan)?, plan))
}

/// Whether the SKUs of a resource group can be parts of a machine with a GPU.
pub(super) fn may_be_part(group: &str) -> bool {
    matches!(group, "GPU" | "CPU" | "RAM" | "N1Standard" | "LocalSSD")
}

/// Whether a SKU can be a part of a machine with a GPU: told before it is read, because nearly all are not.
fn is_of_ours(description: &str, group: &str) -> bool {
    let names_series = || description.split(' ').any(|word| ["A2", "A3", "A4", "G2", "G4"].iter().any(|s| word.starts_with(s)));
    match group {
        "GPU" => true,
        "CPU" | "RAM" | "N1Standard" => {
            names_series()
                || description.contains("N1 Predefined")
                || description.starts_with("Commitment v1: Cpu in ")
                || description.starts_with("Commitment v1: Ram in ")
        }
        "LocalSSD" => names_series() || description.contains(LOCAL_SSD) || description.contains(": Local SSD"),
        _ => false,
    }
}

/// What is priced, and how it is bought.
fn plan(description: &str) -> Result<(&str, Plan), SkipReason> {
    let unknown = || SkipReason::UnknownWord { what: "way of buying", word: description.to_owned() };
    let (thing_and_place, plan) = if let Some(rest) = description.strip_prefix("Commitment v1: ") {
        let (rest, term) = rest.rsplit_once(" for ").ok_or_else(unknown)?;
        match term {
            "1 Year" | "1 Years" => (rest, Plan::OneYear),
            "3 Year" | "3 Years" => (rest, Plan::ThreeYears),
            _ => return Err(SkipReason::UnknownWord { what: "term of a commitment", word: description.to_owned() }),
        }
    } else if let Some(rest) = description.strip_prefix("Reserved ") {
        match rest.strip_suffix(" in Calendar Mode") {
            Some(rest) => (rest, Plan::Calendar),
            None => return Err(SkipReason::OutOfScope("held by a reservation")),
        }
    } else if let Some(rest) = description.strip_prefix("DWS Calendar Mode ") {
        (rest, Plan::Calendar)
    } else if let Some(rest) = description.strip_prefix("DWS Defined Duration ") {
        (rest, Plan::FlexStart)
    } else if let Some(rest) = description.strip_prefix("Spot Preemptible ") {
        (rest, Plan::Spot)
    } else if let Some(at) = description.find(ON_FLEX_START) {
        return thing(&description[..at], &description[at + ON_FLEX_START.len()..], Plan::FlexStart).ok_or_else(unknown);
    } else if let Some(at) = description.find(ON_SPOT) {
        return thing(&description[..at], &description[at + ON_SPOT.len()..], Plan::Spot).ok_or_else(unknown);
    } else {
        (description, Plan::OnDemand)
    };
    // Commitments for disks are written both ways: `Local SSD in Iowa` and `Local SSD In Iowa`.
    let in_place = || thing_and_place.rfind(" in ").max(thing_and_place.rfind(" In "));
    let end = thing_and_place.find(" running in ").or_else(in_place).unwrap_or(thing_and_place.len());
    thing(&thing_and_place[..end], &thing_and_place[end..], plan).ok_or_else(unknown)
}

/// The thing before the place, if nothing is left over in either that could change the plan. The words for the plan may
/// stand behind the thing or behind the place.
fn thing<'a>(thing: &'a str, place: &str, plan: Plan) -> Option<(&'a str, Plan)> {
    let (thing, place) = match thing.find(" running in ") {
        Some(end) if place.is_empty() => (&thing[..end], &thing[end..]),
        _ => (thing, place),
    };
    let name = [" running in ", " in ", " In "].iter().find_map(|start| place.strip_prefix(start));
    let is_clean = |text: &str| !PLAN_WORDS.iter().any(|word| text.contains(word));
    // Disks of the oldest regions are priced without naming a place.
    let is_place = match name {
        Some(name) => !name.is_empty() && name.split(' ').count() <= 4,
        None => place.is_empty() && thing == LOCAL_SSD,
    };
    (is_place && is_clean(thing) && is_clean(place)).then_some((thing, plan))
}

fn part(thing: &str, group: &str, plan: Plan) -> Result<Part, SkipReason> {
    let unknown = |what| Err(SkipReason::UnknownWord { what, word: thing.to_owned() });
    match group {
        "GPU" => match CARDS.iter().find(|(name, _)| *name == thing) {
            Some((_, card)) => Ok(Part::Gpu(*card)),
            None => unknown("GPU"),
        },
        "LocalSSD" if thing == LOCAL_SSD || thing == "Local SSD" => Ok(Part::LocalSsd),
        "LocalSSD" => unknown("local SSD"),
        _ => {
            // Commitments for N1 name no series.
            let is_commitment = matches!(plan, Plan::OneYear | Plan::ThreeYears);
            let (named, is_core) = match thing.rsplit_once(' ') {
                None if is_commitment && thing == "Cpu" => return Ok(Part::Core(Series::N1)),
                None if is_commitment && thing == "Ram" => return Ok(Part::Ram(Series::N1)),
                Some((named, "Core" | "Cpu")) => (named, true),
                Some((named, "Ram")) => (named, false),
                _ => return unknown("part of a machine"),
            };
            let named = named.strip_suffix(" Instance").unwrap_or(named);
            match SERIES.iter().find(|(name, _)| *name == named) {
                Some((_, series)) => Ok(if is_core { Part::Core(*series) } else { Part::Ram(*series) }),
                None if named == "A4" => Err(SkipReason::OutOfScope("core and RAM of A4, which its slices hold")),
                None => unknown("series of machines"),
            }
        }
    }
}
