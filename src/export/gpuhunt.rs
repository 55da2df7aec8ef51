//! Items → gpuhunt's catalogue, in both places where it looks for one: `SELLER.csv` for `GPUHUNT_CATALOG_DIR`, and
//! `SELLER/version` with `SELLER/VERSION/catalog.zip` for `GPUHUNT_CATALOG_URL`.
//!
//! Every seller that it knows has a CSV, of one who sells nothing here with nothing but the header: it opens the files of all
//! of them. Main memory is GiB, which is what its own readers of the large clouds write into that column.

use std::io::{Cursor, Write as _};

use gpuledger_scrapers::export::Names;
use num_traits::ToPrimitive as _;
use rust_decimal::Decimal;
use zip::write::SimpleFileOptions;
use zip::{CompressionMethod, DateTime, ZipWriter};

use super::ExportError;
use super::folder::Files;
use super::sift::Item;

/// Columns of its second form, in its order.
const COLUMNS: [&str; 14] = [
    "instance_name",
    "location",
    "price",
    "cpu",
    "memory",
    "gpu_count",
    "gpu_name",
    "gpu_memory",
    "spot",
    "disk_size",
    "gpu_vendor",
    "flags",
    "cpu_arch",
    "provider_data",
];

/// The files of a catalogue of a version.
///
/// # Errors
/// Only on a fault of the program.
pub fn files(items: &[Item], names: &Names, version: &str) -> Result<Files, ExportError> {
    let mut files = Files::default();
    for seller in names.sellers.values() {
        let of_seller: Vec<&Item> = items.iter().filter(|item| item.seller == *seller).collect();
        let csv = csv(&of_seller)?;
        if !of_seller.is_empty() {
            files.add(format!("{seller}/version"), None, format!("{version}\n").into_bytes());
            files.add(format!("{seller}/{version}/catalog.zip"), None, zipped(&format!("{seller}.csv"), &csv)?);
        }
        files.add(format!("{seller}.csv"), Some(of_seller.len()), csv);
    }
    Ok(files)
}

fn csv(items: &[&Item]) -> Result<Vec<u8>, ExportError> {
    let mut writer = csv::Writer::from_writer(Vec::new());
    writer.write_record(COLUMNS)?;
    for item in items {
        writer.write_record([
            item.machine.as_str(),
            item.zone.as_deref().unwrap_or(&item.region),
            &float(item.usd_per_hour),
            &item.vcpus.to_string(),
            &amount(item.memory_gib),
            &item.gpus.to_string(),
            &item.card,
            &amount(item.card_memory_gb),
            if item.is_spot { "True" } else { "False" },
            &item.disk_gb.map(amount).unwrap_or_default(),
            &item.maker,
            item.flag.as_deref().unwrap_or_default(),
            item.processor.as_deref().unwrap_or("x86"),
            "{}",
        ])?;
    }
    writer.into_inner().map_err(|error| ExportError::Form(error.to_string()))
}

/// A float in the digits that bring it back, with a point, as Python writes it.
fn float(number: f64) -> String {
    format!("{number:?}")
}

fn amount(number: Decimal) -> String {
    number.to_f64().map_or_else(|| number.to_string(), float)
}

/// One file as a ZIP that is the same whenever it is made.
fn zipped(name: &str, bytes: &[u8]) -> Result<Vec<u8>, ExportError> {
    let options = SimpleFileOptions::default()
        .compression_method(CompressionMethod::Deflated)
        .last_modified_time(DateTime::default())
        .unix_permissions(0o644);
    let mut writer = ZipWriter::new(Cursor::new(Vec::new()));
    let form = |error: &dyn std::fmt::Display| ExportError::Form(error.to_string());
    writer.start_file(name, options).map_err(|error| form(&error))?;
    writer.write_all(bytes).map_err(|error| form(&error))?;
    Ok(writer.finish().map_err(|error| form(&error))?.into_inner())
}
