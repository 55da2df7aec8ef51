//! Which machine types have an accelerator, and what is known of them.
//!
//! In: the name of a type. Out: its kind, and its hardware where the table has it. Never a count or a card from the name:
//! the grammar of the names has changed twice, and `ecs.gn7i.8xlarge`, which it would explain, does not exist.

use std::collections::BTreeSet;

use crate::contract::{Machine, PublishedGpu, SkipReason, UNKNOWN_HARDWARE};

use super::HARDWARE;

/// Flag of an offer whose card the vendor only calls by a code of its own, or not at all.
const CARD_NOT_NAMED: &str = "card_not_named";

/// Families by the letters before their first digit. Those of NVIDIA cards end in `gn` (gn7i, vgn6i, sccgn7ex), those of
/// the vendor's own chips in `gp`; the others are AMD's (ga, ebmga), Intel's (ebmgi), the vendor's NPU (ebman) and av8m.
const OTHER_FAMILIES: [&str; 5] = ["ga", "ebmga", "ebmgi", "ebman", "av"];

/// Says why a type is not ours; nothing when it has an accelerator.
pub(super) fn check(instance_type: &str) -> Result<(), SkipReason> {
    let family = instance_type.strip_prefix("ecs.").unwrap_or(instance_type);
    let letters = &family[..family.find(|c: char| !c.is_ascii_lowercase()).unwrap_or(family.len())];
    let digit_follows = family[letters.len()..].starts_with(|c: char| c.is_ascii_digit());
    if family.starts_with("poc-test") {
        Err(SkipReason::OutOfScope("a test type that is not sold"))
    } else if letters == "f" && digit_follows {
        Err(SkipReason::OutOfScope("an FPGA machine"))
    } else if digit_follows && (letters.ends_with("gn") || letters.ends_with("gp") || OTHER_FAMILIES.contains(&letters)) {
        Ok(())
    } else {
        Err(SkipReason::OutOfScope("not a GPU machine"))
    }
}

/// What is known of a type that has an accelerator, and the marks a reader must know.
pub(super) fn hardware(instance_type: &str) -> (PublishedGpu, Machine, BTreeSet<&'static str>) {
    let mut flags = BTreeSet::new();
    let (gpu, mut machine) = HARDWARE.find(instance_type).unwrap_or_else(|| {
        flags.insert(UNKNOWN_HARDWARE);
        (PublishedGpu::unknown(), Machine::default())
    });
    if gpu.count.is_some() && gpu.label.is_none() {
        flags.insert(CARD_NOT_NAMED);
    }
    // The two prefixes are documented as bare metal, alone and in a cluster; all others are virtual machines.
    machine.is_bare_metal = Some(instance_type.starts_with("ecs.ebm") || instance_type.starts_with("ecs.scc"));
    (gpu, machine, flags)
}
