//! Items → SkyPilot's catalogues, `CLOUD/vms.csv`: a line for each machine in each region, with both its prices.
//!
//! Its reader takes one size and one kind of card for a machine's name, wherever it stands, so a machine that is not the same
//! everywhere is left out. `GpuInfo` counts a marketed GB as 1024 MiB, as all of its own catalogues do. There is no column of
//! zones: a price holds in all zones of its region.

use std::collections::BTreeMap;

use super::ExportError;
use super::folder::Files;
use super::sift::{Item, sellers};
use crate::answer::LeftOut;

/// The columns, in the order that most of its catalogues have.
const COLUMNS: [&str; 9] =
    ["InstanceType", "AcceleratorName", "AcceleratorCount", "vCPUs", "MemoryGiB", "Price", "Region", "GpuInfo", "SpotPrice"];

/// The files of the catalogues; what is left out is counted.
///
/// # Errors
/// Only on a fault of the program.
pub fn files(items: &[Item], left_out: &mut LeftOut) -> Result<Files, ExportError> {
    let mut files = Files::default();
    for seller in sellers(items) {
        let mut writer = csv::Writer::from_writer(Vec::new());
        writer.write_record(COLUMNS)?;
        let mut machines: BTreeMap<&str, Vec<&Item>> = BTreeMap::new();
        for item in items.iter().filter(|item| item.seller == seller) {
            machines.entry(&item.machine).or_default().push(item);
        }
        let mut lines = 0;
        for (machine, items) in machines {
            let (of_zones, items): (Vec<&Item>, Vec<&Item>) = items.into_iter().partition(|item| item.zone.is_some());
            left_out.add(of_zones.len(), format!("of one zone of {seller}"));
            if items.iter().any(|item| hardware(item) != hardware(items[0])) {
                left_out.add(items.len(), format!("of {seller} {machine}, which is not the same machine everywhere"));
                continue;
            }
            for in_region in items.chunk_by(|a, b| a.region == b.region) {
                writer.write_record(line(in_region))?;
                lines += 1;
            }
        }
        let csv = writer.into_inner().map_err(|error| ExportError::Form(error.to_string()))?;
        if lines > 0 {
            files.add(format!("{seller}/vms.csv"), Some(lines), csv);
        }
    }
    Ok(files)
}

/// What its reader takes to be the same wherever the machine is.
fn hardware(item: &Item) -> impl PartialEq {
    (item.vcpus, item.memory_gib, item.card.clone(), item.gpus, item.card_memory_gb)
}

/// The line of a machine in a region.
fn line(items: &[&Item]) -> [String; 9] {
    let item = items[0];
    let price = |is_spot: bool| {
        let found = items.iter().find(|item| item.is_spot == is_spot);
        found.map(|item| format!("{:?}", item.usd_per_hour)).unwrap_or_default()
    };
    [
        item.machine.clone(),
        item.card.clone(),
        item.gpus.to_string(),
        item.vcpus.to_string(),
        item.memory_gib.to_string(),
        price(false),
        item.region.clone(),
        gpu_info(item),
        price(true),
    ]
}

/// The cards in the words of a Python dictionary, which is what its reader evaluates.
fn gpu_info(item: &Item) -> String {
    let mib = (item.card_memory_gb * rust_decimal::Decimal::from(1024)).normalize();
    let all_mib = (mib * rust_decimal::Decimal::from(item.gpus)).normalize();
    format!(
        "{{'Gpus': [{{'Name': '{}', 'Manufacturer': '{}', 'Count': {}, 'MemoryInfo': {{'SizeInMiB': {mib}}}}}], \
         'TotalGpuMemoryInMiB': {all_mib}}}",
        item.card, item.maker, item.gpus
    )
}
