//! `hardware.toml` beside a scraper whose source names machines and not their cards.

use std::collections::HashMap;

use num_rational::Ratio;
use rust_decimal::Decimal;
use serde::{Deserialize, Deserializer, de::Error as _};

use crate::contract::{GpuShare, Machine, PublishedGpu, SkipReason};

/// A provider's machine types.
#[derive(Debug)]
pub struct Hardware {
    by_type: HashMap<String, MachineType>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct HardwareFile {
    /// Where the lines without a source of their own were read.
    source: Option<String>,
    machine: Vec<MachineType>,
}

/// One line of the table.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
struct MachineType {
    /// Names of the machine as published.
    types: Vec<String>,
    /// Card; absent when the provider does not name it.
    gpu: Option<String>,
    /// `8`, or `1/6` for a fixed share of a card.
    gpu_count: String,
    gpu_memory_gb: Option<u32>,
    form_factor: Option<String>,
    interconnect: Option<String>,
    fabric_gbit_per_s: Option<u32>,
    vcpus: Option<u32>,
    #[serde(default, deserialize_with = "decimal")]
    system_memory_gib: Option<Decimal>,
    local_disk_gb: Option<u32>,
    is_bare_metal: Option<bool>,
    /// Where this line was read, if not where the rest of the file was.
    source: Option<String>,
}

/// A whole number, or a text with a decimal in it: `"30.5"`. Never a float.
fn decimal<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Decimal>, D::Error> {
    #[derive(Deserialize)]
    #[serde(untagged)]
    enum Written {
        Whole(u32),
        Text(String),
    }
    match Written::deserialize(deserializer)? {
        Written::Whole(whole) => Ok(Some(Decimal::from(whole))),
        Written::Text(text) => text.parse().map(Some).map_err(D::Error::custom),
    }
}

impl Hardware {
    /// Reads the table.
    ///
    /// # Errors
    /// When the text is not TOML, has an unknown key, a count that is none, a line without a source, or the same type twice.
    pub fn parse(text: &str) -> Result<Self, String> {
        let file: HardwareFile = toml::from_str(text).map_err(|error| error.to_string())?;
        let mut by_type = HashMap::new();
        for mut machine in file.machine {
            machine.source = machine.source.or_else(|| file.source.clone());
            count(&machine.gpu_count).ok_or_else(|| format!("{:?}: count `{}`", machine.types, machine.gpu_count))?;
            if machine.source.is_none() {
                return Err(format!("{:?}: no `source` says where it was read", machine.types));
            }
            for name in &machine.types {
                if by_type.insert(key(name), machine.clone()).is_some() {
                    return Err(format!("machine type `{name}` stands twice"));
                }
            }
        }
        Ok(Self { by_type })
    }

    /// Cards and machine of a type. Upper and lower case do not matter within one provider.
    ///
    /// # Errors
    /// When the table does not have the type.
    pub fn of(&self, instance_type: &str) -> Result<(PublishedGpu, Machine), SkipReason> {
        let unknown = || SkipReason::UnknownMachine { instance_type: instance_type.to_owned() };
        let machine = self.by_type.get(&key(instance_type)).ok_or_else(unknown)?;
        machine.read().ok_or_else(unknown)
    }

    /// The same for a machine that certainly has an accelerator: `None` stands for a type that the table does not have, which
    /// is published with [`PublishedGpu::unknown`] and the flag [`crate::contract::UNKNOWN_HARDWARE`].
    #[must_use]
    pub fn find(&self, instance_type: &str) -> Option<(PublishedGpu, Machine)> {
        self.of(instance_type).ok()
    }

    /// Every type of the table, in no order.
    pub fn types(&self) -> impl Iterator<Item = &str> {
        self.by_type.values().flat_map(|machine| machine.types.iter().map(String::as_str))
    }

    /// Every machine of the table, in order of its name.
    #[must_use]
    pub fn machines(&self) -> Vec<KnownMachine> {
        let known = |name: &String, line: &MachineType| {
            let (gpu, machine) = line.read()?;
            Some(KnownMachine { instance_type: name.clone(), gpu, machine, source: line.source.clone()? })
        };
        let lines = self.by_type.values();
        let mut machines: Vec<_> = lines.flat_map(|line| line.types.iter().filter_map(move |name| known(name, line))).collect();
        machines.sort_by(|a, b| a.instance_type.cmp(&b.instance_type));
        // A line stands under each of its names, and names each of them.
        machines.dedup_by(|a, b| a.instance_type == b.instance_type);
        machines
    }
}

/// A machine that somebody has read about.
#[derive(Debug, Clone, PartialEq)]
pub struct KnownMachine {
    /// Name as published.
    pub instance_type: String,
    /// The GPUs.
    pub gpu: PublishedGpu,
    /// The rest of the machine.
    pub machine: Machine,
    /// Where it was read.
    pub source: String,
}

impl MachineType {
    fn read(&self) -> Option<(PublishedGpu, Machine)> {
        let machine = self;
        let count = count(&machine.gpu_count)?;
        let gpu = PublishedGpu {
            label: machine.gpu.clone(),
            count: Some(count),
            share: if count.is_integer() { GpuShare::Whole } else { GpuShare::FixedSlice },
            memory_gb: machine.gpu_memory_gb.map(Decimal::from),
            form_factor: machine.form_factor.clone(),
            interconnect: machine.interconnect.clone(),
            fabric_gbit_per_s: machine.fabric_gbit_per_s,
        };
        let rest = Machine {
            vcpus: machine.vcpus.map(Decimal::from),
            system_memory_gib: machine.system_memory_gib,
            local_disk_gb: machine.local_disk_gb.map(Decimal::from),
            is_bare_metal: machine.is_bare_metal,
        };
        Some((gpu, rest))
    }
}

/// More cards than any machine has.
const CARDS_MAX: u32 = 10_000;

/// A count as written: `8` or `1/6`. `None` when it is neither, zero, or more than any machine has.
#[must_use]
pub fn count(text: &str) -> Option<Ratio<u32>> {
    let (top, bottom) = text.split_once('/').unwrap_or((text, "1"));
    let (top, bottom) = (top.trim().parse().ok()?, bottom.trim().parse().ok()?);
    if top == 0 || bottom == 0 { None } else { believed(Ratio::new(top, bottom)) }
}

/// A count that a machine may have.
#[must_use]
pub fn believed(count: Ratio<u32>) -> Option<Ratio<u32>> {
    Some(count).filter(|count| count.to_integer() <= CARDS_MAX)
}

/// An exact decimal as a count: 0.25 is 1/4. `None` for zero, for less, for more than any machine has, and for what is no
/// count.
#[must_use]
pub fn count_of(amount: Decimal) -> Option<Ratio<u32>> {
    let amount = amount.normalize();
    let top = u32::try_from(amount.mantissa()).ok()?;
    let bottom = 10_u32.checked_pow(amount.scale())?;
    if top == 0 { None } else { believed(Ratio::new(top, bottom)) }
}

fn key(name: &str) -> String {
    name.trim().to_ascii_lowercase()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_count_is_a_whole_number_or_a_fraction() {
        assert_eq!(count("8"), Some(Ratio::new(8, 1)));
        assert_eq!(count("1/8"), Some(Ratio::new(1, 8)));
        assert_eq!(count_of(Decimal::new(25, 2)), Some(Ratio::new(1, 4)));
        for text in ["", "0", "1/0", "x", "-1", "0.5", "4294967295", "10001", "4294967296"] {
            assert_eq!(count(text), None, "{text}");
        }
        assert_eq!(count_of(Decimal::ZERO), None);
        assert_eq!(count_of(Decimal::new(-1, 0)), None);
    }
}
