//! `hardware`: what is in a machine, from the tables beside the scrapers. Asks no dataset and no network.

use gpuledger_scrapers::ALL;
use gpuledger_scrapers::hardware::KnownMachine;
use gpuledger_scrapers::manifest::Manifest;
use polars::prelude::*;
use rust_decimal::Decimal;

use crate::cli::Hardware;
use crate::frame::Columns;
use crate::normalise::gpu::{GpuModel, GpuModels};
use crate::normalise::scaled_count;
use crate::print::{Heading, heading};
use crate::query::{QueryError, is_model};

/// Columns of the list on the terminal.
pub const HEADINGS: [Heading; 10] = [
    heading("provider", "provider"),
    heading("instance_type", "machine"),
    heading("gpu_model", "GPU"),
    heading("gpu_count", "GPUs"),
    heading("gpu_memory_gb", "GB/GPU"),
    heading("memory_bandwidth_gb_per_s", "GB/s"),
    heading("dense_fp16_tflops", "FP16 TFLOPS"),
    heading("interconnect", "links"),
    heading("vcpus", "vCPUs"),
    heading("system_memory_gib", "GiB"),
];

/// Machines named when one that does not exist is asked for.
const NEAR_MAX: usize = 4;

/// A machine, its provider and the model of its cards.
struct Row {
    manifest: &'static Manifest,
    machine: KnownMachine,
    model: Option<&'static GpuModel>,
    memory_gb: Option<Decimal>,
}

/// The machines that are asked for.
///
/// # Errors
/// When there is none of a name: names those near it.
pub fn hardware(args: &Hardware) -> Result<DataFrame, QueryError> {
    let mut rows: Vec<Row> = Vec::new();
    for scraper in ALL {
        let manifest = scraper.manifest();
        if args.provider.is_empty() || args.provider.contains(&manifest.provider) {
            rows.extend(scraper.machines().into_iter().map(|machine| row(manifest, machine)));
        }
    }
    if let Some(typed) = &args.gpu {
        let wanted = is_model(typed)?;
        rows.retain(|row| row.model.is_some_and(|model| wanted.contains(&model.name.as_str())));
    }
    if let Some(typed) = &args.instance_type {
        let names: Vec<String> = rows.iter().map(|row| row.machine.instance_type.clone()).collect();
        rows.retain(|row| row.machine.instance_type.eq_ignore_ascii_case(typed));
        if rows.is_empty() {
            return Err(QueryError::UnknownMachine { typed: typed.clone(), near: near(&names, typed) });
        }
    }
    Ok(frame(&rows)?)
}

fn row(manifest: &'static Manifest, machine: KnownMachine) -> Row {
    let gpu = &machine.gpu;
    let is_fraction = gpu.count.is_some_and(|count| !count.is_integer());
    let resolved = gpu.label.as_ref().and_then(|label| {
        GpuModels::built_in().resolve(label, &manifest.labels, gpu.memory_gb, gpu.form_factor.as_deref(), is_fraction).ok()
    });
    let memory_gb = resolved.as_ref().map_or(gpu.memory_gb, |resolved| resolved.memory_gb);
    Row { manifest, model: resolved.map(|resolved| resolved.model), memory_gb, machine }
}

/// The names nearest to a typed one: alike by the Jaro measure, and from the beginning.
#[must_use]
pub fn near(names: &[String], typed: &str) -> String {
    let typed = typed.to_lowercase();
    // Besides being alike in all, machines of one family begin alike.
    let likeness = |name: &str| {
        let shared = name.chars().zip(typed.chars()).take_while(|(a, b)| a == b).count();
        strsim::jaro(name, &typed) + shared as f64 / typed.chars().count().max(1) as f64
    };
    let mut names: Vec<(f64, &String)> = names.iter().map(|name| (likeness(&name.to_lowercase()), name)).collect();
    names.sort_by(|(a, name), (b, other)| b.total_cmp(a).then(name.cmp(other)));
    names.dedup();
    names.iter().take(NEAR_MAX).map(|(_, name)| name.as_str()).collect::<Vec<_>>().join(", ")
}

fn frame(rows: &[Row]) -> PolarsResult<DataFrame> {
    let gpus = || rows.iter().map(|row| &row.machine.gpu);
    let machines = || rows.iter().map(|row| &row.machine.machine);
    let whole = |number: Option<u32>| number.and_then(|number| i32::try_from(number).ok());
    let mut columns = Columns::new(rows.len());
    columns.texts("provider", rows.iter().map(|row| Some(row.manifest.provider.as_str())));
    columns.texts("instance_type", rows.iter().map(|row| Some(row.machine.instance_type.as_str())));
    columns.texts("gpu_model", rows.iter().map(|row| row.model.map(|model| model.name.as_str())));
    columns.texts("gpu_label", gpus().map(|gpu| gpu.label.as_deref()));
    columns.scaled("gpu_count", gpus().map(|gpu| gpu.count.map(scaled_count)));
    columns.decimals("gpu_memory_gb", rows.iter().map(|row| row.memory_gb))?;
    columns.decimals("memory_bandwidth_gb_per_s", rows.iter().map(|row| row.model?.memory_bandwidth_gb_per_s))?;
    columns.decimals("dense_fp16_tflops", rows.iter().map(|row| row.model?.dense_fp16_tflops))?;
    columns.decimals("dense_fp8_tflops", rows.iter().map(|row| row.model?.dense_fp8_tflops))?;
    columns.texts("interconnect", gpus().map(|gpu| gpu.interconnect.as_deref()));
    columns.wholes("fabric_gbit_per_s", gpus().map(|gpu| whole(gpu.fabric_gbit_per_s)));
    columns.decimals("vcpus", machines().map(|machine| machine.vcpus))?;
    columns.decimals("system_memory_gib", machines().map(|machine| machine.system_memory_gib))?;
    columns.decimals("local_disk_gb", machines().map(|machine| machine.local_disk_gb))?;
    columns.wholes("released_year", rows.iter().map(|row| row.model?.released_year.map(i32::from)));
    columns.texts("source", rows.iter().map(|row| Some(row.machine.source.as_str())));
    columns.texts("gpu_source", rows.iter().map(|row| row.model.map(|model| model.source.as_str())));
    columns.finish()
}
