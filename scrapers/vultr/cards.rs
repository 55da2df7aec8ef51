//! The cards of a plan: which, how many, and whether the source says so.
//!
//! A stated count is checked against the memory the plan has in all, so that a slice that calls itself one card is never
//! taken for a cheap card. A count that is not stated is worked out from memory; then no price of a whole card follows.

use std::sync::LazyLock;

use num_rational::Ratio;
use rust_decimal::Decimal;

use crate::contract::{GpuShare, PublishedGpu, SkipReason};
use crate::hardware::{self, Hardware};
use crate::json::Object;

pub(super) static HARDWARE: LazyLock<Hardware> =
    LazyLock::new(|| Hardware::parse(include_str!("hardware.toml")).expect("the hardware table beside this file reads"));

/// Memory of one card in GB by `gpu_type`. The first figure is the card that slices are cut from: this provider's A100 has
/// 80 GB, and 40 GB of an `NVIDIA_A100` are half of one.
const MEMORY_GB_BY_TYPE: [(&str, &[u32]); 12] = [
    ("NVIDIA_A100", &[80, 40]),
    ("NVIDIA_A100_PCIE", &[80, 40]),
    ("NVIDIA_A100_SXM", &[80, 40]),
    ("NVIDIA_A16", &[16]),
    ("NVIDIA_A40", &[48]),
    ("NVIDIA_L40S", &[48]),
    ("NVIDIA_H100", &[80, 94]),
    ("NVIDIA_GH200", &[96, 144]),
    ("NVIDIA_B200", &[192, 180]),
    ("AMD_MI300X", &[192]),
    ("AMD_MI325X", &[256]),
    ("AMD_MI355X", &[288]),
];

/// Machines whose count in `hardware.toml` follows from the memory in their id alone. This one's 1536 GB are six cards of
/// 256 GB, while boards with this card have eight.
const COUNT_FROM_MEMORY: [&str; 1] = ["vcg-mi325x-252c-2872g-1536vram"];

/// The cards of a plan.
pub(super) struct Cards {
    /// The cards.
    pub(super) gpu: PublishedGpu,
    /// Whether the share or the count follows from memory sizes alone.
    pub(super) is_worked_out: bool,
}

/// The cards of a row.
///
/// # Errors
/// When the machine or the card is not known where it has to be, or count and memory contradict each other.
pub(super) fn of(row: &Object<'_>, id: &str) -> Result<Cards, SkipReason> {
    let label = row.optional_text("gpu_type")?.filter(|name| !name.is_empty());
    let memory_gb = row.optional("gpu_vram_gb").map(|value| value.whole()).transpose()?.filter(|memory_gb| *memory_gb > 0);
    let stated = stated_count(row)?;
    let known = HARDWARE.of(id);
    if let (Some(stated), Ok((known, _))) = (stated, &known)
        && let Some(count) = known.count
        && stated != count
        && !COUNT_FROM_MEMORY.contains(&id)
    {
        return Err(SkipReason::Contradiction(format!("`{id}` has {} cards, and the row says {stated}", count)));
    }
    let mut cards = match (label, stated) {
        (Some(label), Some(count)) => with_stated_count(&label, count, memory_gb)?,
        (Some(label), None) => {
            with_memory_alone(&label, memory_gb.ok_or(SkipReason::FieldMissing { field: "gpu_vram_gb".to_owned() })?)?
        }
        (None, stated) => from_table(known?.0, stated, memory_gb)?,
    };
    if stated.is_none() && COUNT_FROM_MEMORY.contains(&id) {
        cards.gpu.share = GpuShare::Derived;
        cards.is_worked_out = true;
    }
    Ok(cards)
}

fn from_table(mut gpu: PublishedGpu, stated: Option<Ratio<u32>>, memory_gb: Option<u32>) -> Result<Cards, SkipReason> {
    gpu.count = stated.or(gpu.count);
    match (memory_gb.map(Decimal::from), gpu.memory_gb, gpu.count) {
        (Some(total_gb), Some(one_gb), Some(count)) if total_gb != one_gb * Decimal::from(count.to_integer()) => {
            Err(SkipReason::Contradiction(format!("{count} cards of {one_gb} GB do not have {total_gb} GB in all")))
        }
        _ => Ok(Cards { gpu, is_worked_out: false }),
    }
}

/// `"1/8"`, `"8"` or 8.
fn stated_count(row: &Object<'_>) -> Result<Option<Ratio<u32>>, SkipReason> {
    let Some(value) = row.optional("gpu_count") else { return Ok(None) };
    let text = if value.characters().starts_with('"') { value.text()?.into_owned() } else { value.characters().to_owned() };
    if text.is_empty() {
        return Ok(None);
    }
    let count = hardware::count(&text).filter(|count| count.is_integer() || *count < Ratio::from(1));
    count.map(Some).ok_or(SkipReason::FieldUnreadable {
        field: "gpu_count".to_owned(),
        expected: "a number of cards or a fraction of one",
        found: text,
    })
}

fn with_stated_count(label: &str, count: Ratio<u32>, memory_gb: Option<u32>) -> Result<Cards, SkipReason> {
    if !count.is_integer() {
        // The slice's own memory. How memory and fraction go together is the source's business.
        return Ok(cards(label, count, GpuShare::FixedSlice, memory_gb.map(Decimal::from)));
    }
    let one_gb = memory_gb.map(|total_gb| Decimal::from(total_gb) / Decimal::from(count.to_integer()));
    if let (Some(one_gb), Some(known_gb)) = (one_gb, memory_of(label))
        && !known_gb.iter().any(|known_gb| Decimal::from(*known_gb) == one_gb)
    {
        return Err(SkipReason::Contradiction(format!(
            "`{label}` does not have {one_gb} GB, so the plan does not have {count} of them"
        )));
    }
    Ok(cards(label, count, GpuShare::Whole, one_gb))
}

fn with_memory_alone(label: &str, memory_gb: u32) -> Result<Cards, SkipReason> {
    let unknown = || SkipReason::UnknownWord { what: "GPU", word: label.to_owned() };
    let one_gb = *memory_of(label).and_then(<[u32]>::first).ok_or_else(unknown)?;
    if memory_gb.is_multiple_of(one_gb) {
        let count = hardware::believed(Ratio::from(memory_gb / one_gb)).ok_or_else(unknown)?;
        return Ok(cards(label, count, GpuShare::Whole, Some(Decimal::from(one_gb))));
    }
    if memory_gb > one_gb {
        return Err(SkipReason::Contradiction(format!("{memory_gb} GB are no whole number of `{label}` with {one_gb} GB")));
    }
    let share = cards(label, Ratio::new(memory_gb, one_gb), GpuShare::Derived, Some(Decimal::from(memory_gb)));
    Ok(Cards { is_worked_out: true, ..share })
}

fn memory_of(label: &str) -> Option<&'static [u32]> {
    MEMORY_GB_BY_TYPE.iter().find(|(name, _)| *name == label).map(|(_, memory_gb)| *memory_gb)
}

fn cards(label: &str, count: Ratio<u32>, share: GpuShare, memory_gb: Option<Decimal>) -> Cards {
    let gpu = PublishedGpu {
        label: Some(label.to_owned()),
        count: Some(count),
        share,
        memory_gb,
        form_factor: None,
        interconnect: None,
        fabric_gbit_per_s: None,
    };
    Cards { gpu, is_worked_out: false }
}
