//! A published night as one page: `report`.
//!
//! In: a snapshot, those before it, and the coverage of all. Out: one HTML file that needs no network, in a language: the night
//! in a sentence, the biggest price changes, prices over time, the cheapest of each GPU, what the night covers, and a table of
//! every offer. A function of the dataset alone: no clock goes in, ages are counted to the night. An imported night is history:
//! it is drawn over time and never told as a night.

mod best;
mod charts;
mod chinese;
mod english;
mod html;
mod moves;
mod night;
mod offers;
mod sections;
mod text;
mod values;

use std::path::PathBuf;

use chrono::Days;
use polars::prelude::DataFrame;

use crate::answer;
use crate::changes;
use crate::cli::Dataset;
use crate::exit::Exit;
use crate::print::Data;
use crate::report::{Failed, Said};
use crate::snapshot::read::{self, Snapshot};
use crate::trend::{self, Index};
pub use text::Lang;

/// GPUs that have a chart.
const CHARTS_MAX: usize = 9;

/// Days before a night in which its newest exchange rates are looked for.
const DAYS_OF_RATES: u64 = 14;

/// Arguments of `report`.
#[derive(Debug, clap::Args)]
pub struct Report {
    /// The dataset.
    #[command(flatten)]
    pub dataset: Dataset,
    /// Snapshot: id, version, date, `latest` or `previous`
    #[arg(long, default_value = "latest")]
    pub snapshot: String,
    /// Language of the page: English or Chinese
    #[arg(long, value_enum, default_value_t)]
    pub lang: Lang,
    /// Write the page into this file, whole or not at all, instead of to standard output
    #[arg(long, value_name = "FILE")]
    pub to: Option<PathBuf>,
}

/// Makes the page.
///
/// # Errors
/// When there is no such night, the night is an imported one, the dataset cannot be read, or the file cannot be written.
pub async fn report(args: &Report) -> Result<Said, Failed> {
    let output = args.dataset.output.as_path();
    let snapshots = read::snapshots(output).await?;
    let snapshot = read::choose(&snapshots, &args.snapshot)?;
    if snapshot.is_import() {
        return Err(not_a_night(snapshot));
    }
    let coverage = read::coverage(output, &snapshots).await?;
    let rows = read::offers(snapshot)?.collect()?;
    let text = args.lang.text();
    let day = snapshot.id.date();
    let rates = read::rates(output, day - Days::new(DAYS_OF_RATES), day).await?;
    let providers = night::providers(&coverage, snapshot.id, &rows, &rates)?;
    let best = best::cheapest(output, &rows, snapshot.id, &providers, text).await?;
    let known: Vec<Snapshot> = snapshots.iter().filter(|other| other.id <= snapshot.id).cloned().collect();
    let indices = indices(&known, &coverage, &best)?;
    // A history that somebody else keeps is no night before.
    let collected: Vec<Snapshot> = known.iter().filter(|other| !other.is_import()).cloned().collect();
    let changes = if changes::is_compared(output, &collected, snapshot).await? {
        Some(changes::of_night(output, &collected, snapshot).await?)
    } else {
        None
    };
    let offers = offers::offers(&rows, snapshot.id, &providers, text)?;
    let parts = html::Parts { snapshot: snapshot.id, providers, best, indices, changes, offers, text };
    let page = html::page(&parts)?;
    let Some(file) = &args.to else { return Ok(Said { data: Data::Text(page), talk: None, exit: Exit::Good }) };
    answer::write(file, page.as_bytes())?;
    let talk = format!("the page of snapshot {} is in {}, {} bytes\n", snapshot.id, file.display(), page.len());
    Ok(Said { data: Data::Text(String::new()), talk: Some(talk), exit: Exit::Good })
}

fn not_a_night(snapshot: &Snapshot) -> Failed {
    let what =
        format!("make a page of snapshot {}: it was imported from a history, and is no night that was collected", snapshot.id);
    Failed::of(&what).with_help("`gpuledger collect` publishes a night; `gpuledger trend --include-imports` shows histories")
}

/// The index of the GPUs that most providers sell by the hour.
fn indices(known: &[Snapshot], coverage: &DataFrame, best: &best::Cheapest) -> Result<Vec<(String, Index)>, Failed> {
    let mut gpus: Vec<&best::Gpu> = best.gpus.iter().filter(|gpu| gpu.providers_on_demand > 0).collect();
    gpus.sort_by(|a, b| b.providers_on_demand.cmp(&a.providers_on_demand).then_with(|| a.name.cmp(&b.name)));
    let index = |gpu: &&best::Gpu| Ok::<_, Failed>((gpu.name.clone(), trend::index(known, coverage, &gpu.name)?));
    gpus.iter().take(CHARTS_MAX).map(index).collect()
}

impl From<html::PageError> for Failed {
    fn from(error: html::PageError) -> Self {
        Self::new(Exit::Bug, "", &error)
    }
}
