//! `acceleratorCard` of a row, such as `1 * NVIDIA T4 / 1 * 16G` → cards, checked against the hardware table.
//!
//! Never guesses: a text that is not of the known form names no card.

use std::sync::LazyLock;

use num_rational::Ratio;
use rust_decimal::Decimal;

use super::HARDWARE;
use crate::contract::{GpuShare, Machine, PublishedGpu, SkipReason};
use crate::hardware::{self, Hardware};
use crate::money;

/// The field.
pub(super) const FIELD: &str = "acceleratorCard";

/// Shares of cards by name and memory of the share, as the vendor documents them: `A40-8`, with the letter of the
/// licence left out.
static SLICES: LazyLock<Hardware> =
    LazyLock::new(|| Hardware::parse(include_str!("slices.toml")).expect("the table of shares beside this file reads"));

/// What a text says.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Card<'a> {
    /// Nothing is there.
    Absent,
    /// `0`: no accelerator.
    None,
    /// So many of a card.
    Named { count: u32, model: &'a str, memory_gb: Option<Decimal> },
    /// Something of another form.
    Unreadable,
}

/// What a row's accelerators turn out to be.
pub(super) struct Accelerators {
    pub(super) gpu: PublishedGpu,
    /// What the hardware table says of the rest of the machine.
    pub(super) machine: Machine,
    pub(super) is_known: bool,
}

/// Reads the text.
pub(super) fn read(text: Option<&str>) -> Result<Card<'_>, SkipReason> {
    let text = match text.map(str::trim) {
        None | Some("") => return Ok(Card::Absent),
        Some("0") => return Ok(Card::None),
        Some(text) => text,
    };
    let (cards, memories) = text.split_once('/').map_or((text, None), |(cards, memories)| (cards, Some(memories)));
    let Some((count, model)) = counted(cards) else { return Ok(Card::Unreadable) };
    let memory_gb = match memories.map(counted) {
        None => None,
        Some(None) => return Ok(Card::Unreadable),
        Some(Some((other, _))) if other != count => {
            return Err(SkipReason::Contradiction(format!("{FIELD} `{text}` counts {count} and {other}")));
        }
        Some(Some((_, memory))) => match memory.strip_suffix('G').and_then(money::decimal) {
            Some(memory) => Some(memory),
            None => return Ok(Card::Unreadable),
        },
    };
    let model = ["NVIDIA", "Tesla"].iter().fold(model, |model, brand| without(brand, model));
    let is_model = model.chars().any(|c| c.is_ascii_alphabetic()) && model.chars().any(|c| c.is_ascii_digit());
    Ok(if is_model { Card::Named { count, model, memory_gb } } else { Card::Unreadable })
}

/// The name without the brand before it, which is written in any case: `NVIDIA T4`, `NvidiaT4`.
fn without<'a>(brand: &str, model: &'a str) -> &'a str {
    match model.split_at_checked(brand.len()) {
        Some((start, rest)) if start.eq_ignore_ascii_case(brand) => rest.trim_start(),
        _ => model,
    }
}

/// `2 * NVIDIA T4`
fn counted(text: &str) -> Option<(u32, &str)> {
    let (count, what) = text.split_once('*')?;
    let count = hardware::count(count).filter(|count| count.is_integer())?.to_integer();
    Some((count, what.trim()))
}

/// The accelerators of a machine type. `None` where neither the row nor the table knows of any.
pub(super) fn accelerators(spec: &str, card: &Card, is_said_to_have: bool) -> Result<Option<Accelerators>, SkipReason> {
    let known = HARDWARE.find(spec);
    let (gpu, machine) = match (known, card) {
        (Some((gpu, machine)), Card::Named { count, model, memory_gb }) => {
            agree(spec, &gpu, *count, model, *memory_gb)?;
            (gpu, machine)
        }
        (Some(_), Card::None) => {
            return Err(SkipReason::Contradiction(format!("{spec}: {FIELD} says none, the hardware table knows some")));
        }
        (Some(known), Card::Absent | Card::Unreadable) => known,
        (None, Card::Named { count, model, memory_gb }) => match named(*count, model, *memory_gb)? {
            Some(gpu) => (gpu, Machine::default()),
            None => {
                let gpu = PublishedGpu { share: GpuShare::Derived, ..PublishedGpu::unknown() };
                return Ok(Some(Accelerators { gpu, ..unknown() }));
            }
        },
        (None, Card::Unreadable) => return Ok(Some(unknown())),
        (None, Card::None | Card::Absent) => return Ok(is_said_to_have.then(unknown)),
    };
    Ok(Some(Accelerators { gpu, machine, is_known: true }))
}

fn unknown() -> Accelerators {
    Accelerators { gpu: PublishedGpu::unknown(), machine: Machine::default(), is_known: false }
}

fn agree(spec: &str, known: &PublishedGpu, count: u32, model: &str, memory_gb: Option<Decimal>) -> Result<(), SkipReason> {
    let name = |text: &str| text.split([' ', '-']).next().unwrap_or_default().to_ascii_uppercase();
    let is_card = known.label.as_deref().is_some_and(|label| name(label) == name(model)) && profile(model).is_none();
    let is_memory = memory_gb.is_none() || known.memory_gb.is_none() || memory_gb == known.memory_gb;
    if is_card && is_memory && known.count == Some(Ratio::from_integer(count)) {
        return Ok(());
    }
    let memory = memory_gb.map_or_else(String::new, |memory| format!(" of {memory} GB"));
    let table = format!("{} × {}", known.count.unwrap_or_default(), known.label.as_deref().unwrap_or("an unnamed card"));
    Err(SkipReason::Contradiction(format!("{spec}: {FIELD} is {count} × {model}{memory}, the hardware table has {table}")))
}

/// Cards that only the row names. `None` for a share of a card that nobody has read about.
fn named(count: u32, model: &str, memory_gb: Option<Decimal>) -> Result<Option<PublishedGpu>, SkipReason> {
    let Some(profile) = profile(model) else {
        let gpu = PublishedGpu { label: Some(model.to_owned()), count: Some(count.into()), memory_gb, ..PublishedGpu::unknown() };
        return Ok(Some(gpu));
    };
    let Some((slice, _)) = SLICES.find(profile) else { return Ok(None) };
    if memory_gb.is_some() && memory_gb != slice.memory_gb {
        return Err(SkipReason::Contradiction(format!("{FIELD}: a share {model} with another memory than its name says")));
    }
    let count = slice.count.map(|share| share * count);
    let share = if count.is_some_and(|count| count.is_integer()) { GpuShare::Whole } else { slice.share };
    Ok(Some(PublishedGpu { count, share, ..slice }))
}

/// Card and memory of a share: `A40-8` of `A40-8Q`.
fn profile(model: &str) -> Option<&str> {
    let profile = model.strip_suffix(['A', 'B', 'C', 'Q'])?;
    let (_, memory) = profile.rsplit_once('-')?;
    (!memory.is_empty() && memory.chars().all(|c| c.is_ascii_digit())).then_some(profile)
}
