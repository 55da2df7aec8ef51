//! What of a row does not stand in the printed price: whose word it is.

use gpuledger_scrapers::contract::Scraper;
use gpuledger_scrapers::hardware::KnownMachine;
use polars::prelude::PolarsResult;
use serde::Serialize;

use crate::frame::Row;
use crate::normalise::gpu::GpuModels;
use crate::normalise::scaled_count;

/// A field and where it is from.
#[derive(Debug, Clone, Serialize)]
pub struct FieldSource {
    /// Columns.
    pub fields: String,
    /// Their values.
    pub values: String,
    /// Where they are from.
    pub from: String,
}

/// The sources of a row's hardware, GPU model, place and currency.
pub(super) fn sources(scraper: &dyn Scraper, row: &Row<'_>) -> PolarsResult<Vec<FieldSource>> {
    let manifest = scraper.manifest();
    let provider = &manifest.provider;
    let mut sources = vec![hardware(scraper, row)?];
    if let (Some(model), Some(label)) = (row.optional("gpu_model")?, row.optional("gpu_label")?) {
        let from = match manifest.labels.get(&label) {
            Some(_) => format!("the label `{label}` by the manifest of {provider}"),
            None => format!("the label `{label}` by the table of GPU models"),
        };
        let read = GpuModels::built_in().get(&model).map(|model| format!("; the model is described in {}", model.source));
        sources.push(FieldSource { fields: "gpu_model".to_owned(), values: model, from: from + &read.unwrap_or_default() });
    }
    if let (Some(region), Some(code)) = (row.optional("region")?, row.optional("location_code")?) {
        let from = format!("the region `{region}` by the manifest of {provider}");
        sources.push(FieldSource { fields: "location_code".to_owned(), values: code, from });
    }
    if let Some(published) = &manifest.published {
        let code = row.text("published_currency_code")?;
        let from = if published.currency_code == "row" {
            "the archived pages".to_owned()
        } else {
            format!("the manifest of {provider}: the list is in one currency")
        };
        sources.push(FieldSource { fields: "published_currency_code".to_owned(), values: code, from });
        if let Some(hours) = published.hours_per_month {
            sources.push(FieldSource {
                fields: "hours of a month".to_owned(),
                values: hours.to_string(),
                from: format!("the manifest of {provider}: the source's own basis"),
            });
        }
    }
    let (stored, today) = (row.text("scraper_version")?, manifest.scraper_version.to_string());
    let now = if stored == today { String::new() } else { format!("; this program has version {today}") };
    sources.push(FieldSource {
        fields: "scraper_version".to_owned(),
        values: stored,
        from: format!("the parser of {provider}{now}"),
    });
    Ok(sources)
}

fn hardware(scraper: &dyn Scraper, row: &Row<'_>) -> PolarsResult<FieldSource> {
    let machines = scraper.machines();
    let values = format!(
        "{} GPUs, {} GB each",
        row.optional("gpu_count")?.unwrap_or_else(|| "unknown".to_owned()),
        row.optional("gpu_memory_gb")?.unwrap_or_else(|| "unknown".to_owned())
    );
    let from = match row.optional("instance_type")?.and_then(|name| line_of(&machines, &name)) {
        Some((line, is_own)) => {
            let count = row.scaled("gpu_count")?;
            let agrees = count.is_none() || !is_own || line.gpu.count.map(scaled_count) == count;
            let named = format!("line `{}` of the hardware table of {}", line.instance_type, scraper.manifest().provider);
            let note = if agrees { "" } else { ", which has another count today" };
            format!("{named}{note}, read in {}", line.source)
        }
        None => "the archived pages, as the parser reads them".to_owned(),
    };
    Ok(FieldSource { fields: "gpu_count, gpu_memory_gb".to_owned(), values, from })
}

/// The line of a machine, or of the card that its name ends with where cards are attached to plain machines.
fn line_of<'a>(machines: &'a [KnownMachine], name: &str) -> Option<(&'a KnownMachine, bool)> {
    let own = machines.iter().find(|machine| machine.instance_type.eq_ignore_ascii_case(name));
    let attached = || {
        let (_, card) = name.split_once('+')?.1.split_once('x')?;
        machines.iter().find(|machine| machine.instance_type == card)
    };
    own.map(|line| (line, true)).or_else(|| attached().map(|line| (line, false)))
}
