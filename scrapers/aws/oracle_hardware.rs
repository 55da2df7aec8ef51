//! The hardware table held against instance type answers and a catalogue.

use std::collections::BTreeMap;

use crate::contract::PublishedOffer;
use rust_decimal::Decimal;
use serde_json::{Value, json};

use super::{aws, decimal, document, page};
use crate::oracles::Comparison;

/// The hardware table as offers show it: a spot feed of these machines.
pub fn of(types: &[&str]) -> BTreeMap<String, PublishedOffer> {
    let size = |name: &&str| json!({"size": name, "valueColumns": [{"name": "linux", "prices": {"USD": "1"}}]});
    let sizes: Vec<_> = types.iter().map(size).collect();
    let feed = json!({"config": {"regions": [{"region": "us-east", "instanceTypes": [{"type": "x", "sizes": sizes}]}]}});
    let parsed = aws().parse(&[page("spot", feed.to_string().into_bytes())]).expect("the feed reads");
    parsed.offers.into_iter().filter_map(|offer| Some((offer.instance_type.clone()?, offer))).collect()
}

/// Compares a figure of a machine.
fn figure(comparison: &mut Comparison, name: &str, what: &str, ours: Option<Decimal>, theirs: Decimal, reason: &'static str) {
    if ours == Some(theirs) {
        comparison.agree();
    } else {
        let ours = ours.map_or_else(|| "nothing".to_owned(), |ours| ours.to_string());
        comparison.differ(reason, format!("{name}: {what} {ours}, there {theirs}"));
    }
}

fn whole(ratio: Option<num_rational::Ratio<u32>>) -> Option<Decimal> {
    ratio.map(|ratio| Decimal::from(*ratio.numer()) / Decimal::from(*ratio.denom()))
}

const MEMORY: &str = "the table has the marketed figure, the answer what the driver leaves of it";
const FRACTION: &str = "the answer counts 0 cards for a fraction of one";
const NAME: &str = "another name of the same card";
const SIZES: &str = "the machine's sizes differ";

pub fn instance_types() -> Option<Comparison> {
    const SOURCE: &str = "data/aws/gpu_instance_types.json";
    let what =
        "Cards, count, memory, processors, main memory and disks of every GPU machine against answers of DescribeInstanceTypes.";
    let mut comparison = Comparison::with("aws", SOURCE, what)?;
    let types = document(SOURCE);
    let types = types.as_object().expect("an object of types");
    let ours = of(&types.keys().map(String::as_str).collect::<Vec<_>>());
    for (name, about) in types {
        let Some(offer) = ours.get(name) else {
            comparison.differ("not in the hardware table", name.as_str());
            continue;
        };
        let gpu = &about["GpuInfo"]["Gpus"][0];
        let count = decimal(&gpu["Count"]).unwrap_or_default();
        let label = offer.gpu.label.as_deref().unwrap_or_default();
        let theirs = gpu["Name"].as_str().unwrap_or_default();
        if label.starts_with(theirs) {
            comparison.agree()
        } else {
            comparison.differ(NAME, format!("{name}: {label}, there {theirs}"))
        }
        if count.is_zero() {
            let size = decimal(&gpu["GpuPartitionSize"]).unwrap_or_default();
            figure(&mut comparison, name, "share", whole(offer.gpu.count), size, "the share differs");
            comparison.differ(FRACTION, name.as_str());
        } else {
            figure(&mut comparison, name, "count", whole(offer.gpu.count), count, "the count differs");
        }
        let memory = decimal(&gpu["MemoryInfo"]["SizeInMiB"]).unwrap_or_default() / Decimal::from(1024);
        figure(&mut comparison, name, "card memory", offer.gpu.memory_gb, memory.normalize(), MEMORY);
        let vcpus = decimal(&about["VCpuInfo"]["DefaultVCpus"]).unwrap_or_default();
        figure(&mut comparison, name, "vCPU", offer.machine.vcpus, vcpus, SIZES);
        let main = decimal(&about["MemoryInfo"]["SizeInMiB"]).unwrap_or_default() / Decimal::from(1024);
        figure(&mut comparison, name, "GiB", offer.machine.system_memory_gib, main.normalize(), SIZES);
        if let Some(disks) = decimal(&about["InstanceStorageInfo"]["TotalSizeInGB"]) {
            figure(&mut comparison, name, "disk", offer.machine.local_disk_gb, disks, SIZES);
        }
        let is_metal = about["BareMetal"].as_bool();
        if offer.machine.is_bare_metal == is_metal { comparison.agree() } else { comparison.differ(SIZES, name.as_str()) }
    }
    Some(comparison)
}

pub fn neuron_types() -> Option<Comparison> {
    const SOURCE: &str = "data/aws/describe_instance_types_accelerated.json.gz";
    let what =
        "Chips, count and memory of the machines with Trainium, Inferentia and AI 100 against answers of DescribeInstanceTypes.";
    let mut comparison = Comparison::with("aws", SOURCE, what)?;
    let types = document(SOURCE);
    let types = types.as_object().expect("an object of types");
    let ours = of(&types.keys().map(String::as_str).collect::<Vec<_>>());
    for (name, about) in types {
        let neuron = &about["NeuronInfo"]["NeuronDevices"][0];
        let device = if neuron.is_null() { &about["InferenceAcceleratorInfo"]["Accelerators"][0] } else { neuron };
        if device.is_null() {
            if about["GpuInfo"].is_null() {
                comparison.differ("an FPGA or a video encoder, which is no accelerator of this kind", name.as_str());
            }
            continue;
        }
        let Some(offer) = ours.get(name) else {
            comparison.differ("not in the hardware table", name.as_str());
            continue;
        };
        let (label, theirs) = (offer.gpu.label.as_deref().unwrap_or_default(), device["Name"].as_str().unwrap_or_default());
        if label == theirs {
            comparison.agree()
        } else {
            comparison.differ(NAME, format!("{name}: {label}, there {theirs}"))
        }
        figure(
            &mut comparison,
            name,
            "count",
            whole(offer.gpu.count),
            decimal(&device["Count"]).unwrap_or_default(),
            "the count differs",
        );
        let memory = decimal(&device["MemoryInfo"]["SizeInMiB"]).unwrap_or_default() / Decimal::from(1024);
        let reason = if label == "Trainium2" {
            "16 chips have 1.5 TB together, and the answer gives 512 GiB to each"
        } else {
            "16,000 MiB is the marketed 16 GB"
        };
        figure(&mut comparison, name, "memory", offer.gpu.memory_gb, memory.normalize(), reason);
        figure(
            &mut comparison,
            name,
            "vCPU",
            offer.machine.vcpus,
            decimal(&about["VCpuInfo"]["DefaultVCpus"]).unwrap_or_default(),
            SIZES,
        );
    }
    Some(comparison)
}

pub fn spare_cores() -> Option<Comparison> {
    const SOURCE: &str = "data/catalogs/sparecores_gpu_servers_2026-01-31.json.gz";
    let what = "Count, processors, main memory and disks of every machine with cards against a catalogue of servers.";
    let mut comparison = Comparison::with("aws", SOURCE, what)?;
    let servers = document(SOURCE);
    let servers: Vec<&Value> = servers.as_array().expect("a list").iter().filter(|server| server["vendor_id"] == "aws").collect();
    let ours = of(&servers.iter().filter_map(|server| server["name"].as_str()).collect::<Vec<_>>());
    for server in servers {
        let name = server["name"].as_str().unwrap_or_default();
        let Some(offer) = ours.get(name) else {
            comparison.differ("an FPGA or a video encoder, which is no accelerator of this kind", name);
            continue;
        };
        let count = decimal(&server["gpu_count"]).unwrap_or_default();
        let reason =
            if whole(offer.gpu.count).is_some_and(|count| count < Decimal::ONE) { FRACTION } else { "the count differs" };
        figure(&mut comparison, name, "count", whole(offer.gpu.count), count, reason);
        figure(&mut comparison, name, "vCPU", offer.machine.vcpus, decimal(&server["vcpus"]).unwrap_or_default(), SIZES);
        let main = decimal(&server["memory_amount"]).unwrap_or_default() / Decimal::from(1024);
        figure(&mut comparison, name, "GiB", offer.machine.system_memory_gib, main.normalize(), SIZES);
        let disks = decimal(&server["storage_size"]).unwrap_or_default();
        if !disks.is_zero() {
            figure(&mut comparison, name, "disk", offer.machine.local_disk_gb, disks, SIZES);
        }
    }
    Some(comparison)
}
