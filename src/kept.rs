//! What a night was made of, kept beside the receipts so that it can be made again.
//!
//! In: the deliveries of a night. Out: `raw/nights/<snapshot>.json`, which names its providers, where their pages came from
//! and the scopes that could not be had, and one file of receipts a provider. A file of receipts that is not named there is
//! what an earlier try of the same night left, and nobody's. Never holds a page.

use chrono::{DateTime, Utc};
use gpuledger_scrapers::contract::Scraper;
use polars::prelude::*;
use serde::{Deserialize, Serialize};

use crate::archive::{Archive, ArchiveError, RAW, Receipt, Sidecar, read_json};
use crate::frame::Cell;
use crate::gather::{Delivery, Failure, Input};
use crate::import;
use crate::night::SnapshotId;

/// Version of the file.
const VERSION: u32 = 1;

/// What a night was made of.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct KeptNight {
    /// Version of this form.
    pub version: u32,
    /// The night.
    pub snapshot_id: String,
    /// The snapshot that it corrects.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub corrects: Option<String>,
    /// When this was written.
    pub kept_at: DateTime<Utc>,
    /// Version of the program that read the pages.
    pub program_version: String,
    /// Its providers.
    pub providers: Vec<KeptProvider>,
}

/// One provider of a night.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct KeptProvider {
    /// Short name.
    pub provider: String,
    /// Where its pages came from.
    pub input: Input,
    /// Version of the parser that read them, where it is known.
    pub scraper_version: Option<u32>,
    /// Scopes that could not be had.
    pub failures: Vec<Failure>,
    /// Time spent on getting the pages.
    pub seconds: f64,
}

/// Why it is not known what a night was made of.
#[derive(Debug, thiserror::Error)]
pub enum KeptError {
    /// The archive could not be read.
    #[error("read what night {night} was made of")]
    Archive {
        /// The night.
        night: SnapshotId,
        /// Why.
        source: ArchiveError,
    },
    /// The file is of a later program.
    #[error("read what night {night} was made of: the file has version {version}, and this program knows {VERSION}")]
    NewerVersion {
        /// The night.
        night: SnapshotId,
        /// What it has.
        version: u32,
    },
    /// A provider's receipts are not there.
    #[error("find the receipts of {provider} in night {night}: raw/receipts/{night}/{provider}.json is not there")]
    NoReceipts {
        /// The night.
        night: SnapshotId,
        /// The provider.
        provider: String,
    },
    /// There is no source of that name any more.
    #[error("read the pages of {provider} in night {night}: this program has no parser of it")]
    NoScraper {
        /// The night.
        night: SnapshotId,
        /// The provider.
        provider: String,
    },
    /// An imported night's mapping cannot be read any more.
    #[error("read the pages of {provider} in imported night {night}: {reason}")]
    NoMapping {
        /// The night.
        night: SnapshotId,
        /// The provider.
        provider: String,
        /// Why.
        reason: String,
    },
    /// A table could not be read, which is a fault of this program.
    #[error("read what night {night} covers")]
    Coverage {
        /// The night.
        night: SnapshotId,
        /// Why.
        source: PolarsError,
    },
}

/// The deliveries of a past night.
pub struct Again {
    /// One a provider.
    pub deliveries: Vec<Delivery>,
    /// Whether the scopes that could not be had are told from the night's coverage: of a night before they were kept. Then a
    /// scope that is not in the snapshot stays out of it.
    pub is_from_coverage: bool,
}

/// The receipts of a night's pages and what could not be had, as they stand in the dataset. A page that was turned away has
/// its receipt too; its scope is one of those that could not be had.
#[must_use]
pub fn beside(night: SnapshotId, deliveries: &[Delivery]) -> Vec<Sidecar> {
    let mut sidecars: Vec<Sidecar> = Vec::with_capacity(deliveries.len() + 1);
    for delivery in deliveries {
        let receipts = [delivery.pages.as_slice(), &delivery.turned_away].concat();
        sidecars.push(Archive::receipts_beside(night, &delivery.scraper.manifest().provider, &receipts));
    }
    let providers = deliveries.iter().map(|delivery| KeptProvider {
        provider: delivery.scraper.manifest().provider.clone(),
        input: delivery.input,
        scraper_version: Some(delivery.scraper.manifest().scraper_version),
        failures: delivery.failures.clone(),
        seconds: delivery.seconds,
    });
    let kept = KeptNight {
        version: VERSION,
        snapshot_id: night.to_string(),
        corrects: night.corrects().map(|corrected| corrected.to_string()),
        kept_at: Utc::now(),
        program_version: env!("CARGO_PKG_VERSION").to_owned(),
        providers: providers.collect(),
    };
    let text = serde_json::to_string_pretty(&kept).expect("a kept night is plain data");
    sidecars.push(Sidecar { path: format!("{RAW}/{}", name(night)), text });
    sidecars
}

/// What a night was made of; its scopes that could not be had are told from `coverage` where they were not kept.
///
/// # Errors
/// When something of it is missing or of a later program.
pub fn again(
    archive: &Archive,
    night: SnapshotId,
    coverage: &DataFrame,
    find: &dyn Fn(&str) -> Option<&'static dyn Scraper>,
) -> Result<Again, KeptError> {
    let kept: Option<KeptNight> = read_json(&path(archive, night)).map_err(|source| KeptError::Archive { night, source })?;
    let is_from_coverage = kept.is_none();
    let providers = match kept {
        Some(kept) if kept.version > VERSION => return Err(KeptError::NewerVersion { night, version: kept.version }),
        Some(kept) => kept.providers,
        None => of_coverage(night, coverage).map_err(|source| KeptError::Coverage { night, source })?,
    };
    let mut deliveries = Vec::with_capacity(providers.len());
    for kept in providers {
        let receipts = archive.receipts(night, &kept.provider).map_err(|source| KeptError::Archive { night, source })?;
        let pages: Vec<Receipt> = receipts.ok_or_else(|| KeptError::NoReceipts { night, provider: kept.provider.clone() })?;
        let no_scraper = || KeptError::NoScraper { night, provider: kept.provider.clone() };
        // Rows of a history are never read by the parser of the provider's own pages.
        let scraper = match kept.input {
            Input::Import => import::reader(archive, &kept.provider, &pages).map_err(|reason| {
                let provider = kept.provider.clone();
                KeptError::NoMapping { night, provider, reason }
            })?,
            _ => find(&kept.provider).ok_or_else(no_scraper)?,
        };
        let known = Delivery { pages, failures: kept.failures, seconds: kept.seconds, ..Delivery::of(scraper, kept.input) };
        deliveries.push(known);
    }
    Ok(Again { deliveries, is_from_coverage })
}

/// The providers of a night as its coverage has them. Whether a scope failed while it was fetched or while it was read is not
/// known then, so what is not complete is taken as not had.
fn of_coverage(night: SnapshotId, coverage: &DataFrame) -> PolarsResult<Vec<KeptProvider>> {
    let rows = coverage.clone().lazy().filter(col("snapshot_id").eq(lit(night.to_string())));
    let rows = rows.sort(["provider", "scope"], SortMultipleOptions::default()).collect()?;
    let mut providers: Vec<KeptProvider> = Vec::new();
    for row in 0..rows.height() {
        let cell = |name: &str| Cell::at(&rows, name, row).map(|cell| cell.text());
        let (provider, word) = (cell("provider")?, cell("input")?);
        let input = Input::ALL
            .into_iter()
            .find(|input| input.word() == word)
            .ok_or_else(|| polars_err!(ComputeError: "`{word}` is no input of a night"))?;
        if providers.last().is_none_or(|last| last.provider != provider) {
            let scraper_version = cell("scraper_version")?.parse().ok();
            providers.push(KeptProvider { provider, input, scraper_version, failures: Vec::new(), seconds: 0.0 });
        }
        let last = providers.last_mut().expect("one was just added");
        last.seconds += cell("seconds")?.parse::<f64>().unwrap_or_default();
        let status = cell("status")?;
        if status != "complete" {
            last.failures.push(Failure {
                scope: cell("scope")?,
                code: "not_complete_then".to_owned(),
                reason: cell("reason")?,
                is_skip: status == "skipped",
            });
        }
    }
    Ok(providers)
}

fn path(archive: &Archive, night: SnapshotId) -> std::path::PathBuf {
    archive.root().join(name(night))
}

fn name(night: SnapshotId) -> String {
    format!("nights/{night}.json")
}
