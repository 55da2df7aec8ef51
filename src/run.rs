//! The conductor: the only file that knows all rooms.
//!
//! Due → fetch → archive → parse → normalise → validate → publish → record. A failing provider never stops the others; a
//! refused night leaves its record and findings, and no data.

use std::path::Path;

use chrono::{DateTime, Utc};
use gpuledger_scrapers::ALL;
use gpuledger_scrapers::contract::Scraper;
use gpuledger_scrapers::recordings;
use polars::prelude::PolarsError;

use crate::archive::{Archive, ArchiveError, clear_drafts};
use crate::cli::Collect;
use crate::deliver::deliver;
use crate::earlier;
use crate::exit::Exit;
use crate::gather::{Delivery, Gathered, gather};
use crate::night::SnapshotId;
use crate::normalise::currency::{RATE_AGE_DAYS_MAX, Rate, newest_rate_day, rates_frame};
use crate::normalise::{Observed, normalise};
use crate::offer::SCHEMA_VERSION;
use crate::record::{self, RunRecord};
use crate::snapshot::publish::{Published, clear_uncommitted, publish};
use crate::snapshot::{SnapshotError, read};
use crate::source::SourceError;
use crate::validate::{Verdict, validate};
use crate::{lock, validate::Finding};

/// What can stop a run before it has an outcome.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// The command line names a provider that does not exist.
    #[error("find provider `{name}`; there are {known}")]
    UnknownProvider {
        /// What was typed.
        name: String,
        /// What there is.
        known: String,
    },
    /// The HTTP client could not be set up.
    #[error("set up the HTTP client: {0}")]
    Client(String),
    /// The dataset could not be used.
    #[error("use the dataset")]
    Snapshot(#[from] SnapshotError),
    /// The archive could not be used.
    #[error("use the archive")]
    Archive(#[from] ArchiveError),
    /// Files could not be read.
    #[error("take the files")]
    Source(#[from] SourceError),
    /// A computation failed that never should.
    #[error("compute the night's table, which is a fault of this program")]
    Table(#[from] PolarsError),
}

/// The outcome of a night.
#[derive(Debug)]
pub struct Night {
    /// Its id.
    pub snapshot: SnapshotId,
    /// How the run ends.
    pub exit: Exit,
    /// What it leaves in `runs/`.
    pub record: RunRecord,
    /// Everything the rules found.
    pub findings: Vec<Finding>,
}

/// The providers a command line means, in order of name.
///
/// # Errors
/// When it names one that does not exist.
pub fn providers(names: &[String]) -> Result<Vec<&'static dyn Scraper>, RunError> {
    let known = || ALL.iter().map(|scraper| scraper.manifest().provider.as_str()).collect::<Vec<_>>().join(", ");
    if let Some(name) = names.iter().find(|name| gpuledger_scrapers::find(name).is_none()) {
        return Err(RunError::UnknownProvider { name: name.clone(), known: known() });
    }
    let is_meant = |scraper: &&&'static dyn Scraper| names.is_empty() || names.contains(&scraper.manifest().provider);
    Ok(ALL.iter().filter(is_meant).copied().collect())
}

/// Collects and publishes one night.
///
/// # Errors
/// When the dataset, the archive or the given files cannot be used. A provider's failure is no error.
pub async fn collect(args: &Collect) -> Result<Night, RunError> {
    let started_at = Utc::now();
    let scrapers = providers(&args.providers)?;
    providers(&args.accept_terms)?;
    let snapshot = SnapshotId::at(time_of(args, &scrapers, started_at));
    let output = args.dataset.output.as_path();
    let _lock = open_for_writing(output).await?;
    let archive = Archive::below(output);
    let deliveries = deliver(args, &scrapers, snapshot, &archive).await?;
    judge_and_publish(output, &archive, snapshot, started_at, deliveries, &[]).await
}

/// Takes the dataset's lock and clears what a run that died left.
///
/// # Errors
/// When another run holds the lock, or the disk refuses.
pub async fn open_for_writing(output: &Path) -> Result<lock::WriterLock, RunError> {
    let lock = lock::take(output)?;
    clear_drafts(output)?;
    clear_uncommitted(output).await?;
    Ok(lock)
}

/// From a night's pages to its snapshot. `more_rates` are exchange rates beside those of the pages.
///
/// # Errors
/// When the dataset or the archive cannot be used.
pub async fn judge_and_publish(
    output: &Path,
    archive: &Archive,
    snapshot: SnapshotId,
    started_at: DateTime<Utc>,
    deliveries: Vec<Delivery>,
    more_rates: &[Rate],
) -> Result<Night, RunError> {
    let published = read::snapshots(output).await?;
    let is_published = published.iter().any(|known| known.id == snapshot);
    // A published night keeps the receipts of the pages that it was made of.
    for delivery in deliveries.iter().filter(|_| !is_published) {
        archive.keep_receipts(snapshot, &delivery.scraper.manifest().provider, &delivery.pages)?;
    }
    let gathered: Vec<Gathered> = deliveries.into_iter().map(|delivery| gather(delivery, archive)).collect();
    let observed: Vec<Observed> = gathered.iter().flat_map(Gathered::offers).collect();
    let rates: Vec<Rate> = gathered.iter().flat_map(Gathered::rates).chain(more_rates.iter().cloned()).collect();
    let known_rates = known_rates(output, snapshot, &observed, &rates).await?;
    let normalised = normalise(snapshot, &observed, &known_rates)?;
    let tonight = gathered.iter().map(|of| (of.manifest.provider.clone(), of.input())).collect();
    let earlier = earlier::before(output, &published, snapshot, &tonight).await?;
    let verdict = validate(snapshot, &normalised, &gathered, &earlier)?;
    conclude(output, snapshot, started_at, verdict, &rates, is_published).await
}

/// The time a night is of: as asked, or that of the recordings, or now.
fn time_of(args: &Collect, scrapers: &[&'static dyn Scraper], now: DateTime<Utc>) -> DateTime<Utc> {
    let recorded = || {
        scrapers
            .iter()
            .filter_map(|scraper| recordings::newest(&scraper.manifest().provider))
            .map(|recording| recording.receipt.observed_at)
            .max()
    };
    args.at.or_else(|| if args.recorded { recorded() } else { None }).unwrap_or(now)
}

/// Tonight's rates and those of earlier nights that may hold for tonight's prices.
async fn known_rates(
    output: &Path,
    snapshot: SnapshotId,
    observed: &[Observed],
    rates: &[Rate],
) -> Result<polars::frame::DataFrame, RunError> {
    let first = observed.iter().map(|observed| newest_rate_day(observed.observed_at)).min().unwrap_or(snapshot.date());
    let last = observed.iter().map(|observed| newest_rate_day(observed.observed_at)).max().unwrap_or(snapshot.date());
    // Older rates than a week are not used; one week more is read so that they are told apart from missing ones.
    let first = first - chrono::Days::new(2 * RATE_AGE_DAYS_MAX);
    let known = read::rates(output, first, last).await?;
    let tonight: Vec<Rate> = rates.iter().filter(|rate| (first..=last).contains(&rate.date)).cloned().collect();
    let tonight = rates_frame(&snapshot.to_string(), &tonight)?;
    Ok(known.vstack(&tonight)?.unique_stable(
        Some(&["rate_date".to_owned(), "currency_code".to_owned()]),
        polars::prelude::UniqueKeepStrategy::First,
        None,
    )?)
}

async fn conclude(
    output: &Path,
    snapshot: SnapshotId,
    started_at: DateTime<Utc>,
    verdict: Verdict,
    rates: &[Rate],
    is_published: bool,
) -> Result<Night, RunError> {
    let providers = record::providers(&verdict.coverage);
    // A provider whose every foreign price lacks a rate is there, and yet nobody can compare it.
    let is_whole = providers.iter().all(|provider| provider.status == "complete") && verdict.without_rates.is_empty();
    let (exit, outcome) = match &verdict.night {
        None => (Exit::Refused, "refused"),
        Some(night) => {
            let outcome = match publish(output, snapshot, night, rates).await? {
                Published::New => "published",
                Published::Already => "already_published",
            };
            (if is_whole { Exit::Good } else { Exit::Partial }, outcome)
        }
    };
    let record = RunRecord {
        snapshot_id: snapshot.to_string(),
        outcome,
        started_at,
        ended_at: Utc::now(),
        program_version: env!("CARGO_PKG_VERSION"),
        schema_version: SCHEMA_VERSION,
        offers: verdict.night.as_ref().map_or(0, |night| night.offers().height()),
        rates: rates.len(),
        providers,
        findings: record::count(&verdict.findings),
    };
    // A night that was there already keeps the record of the run that published it, unless that run died before it wrote one.
    if !is_published || (outcome == "already_published" && !record::is_kept(output, snapshot)) {
        record::keep(output, snapshot, &record, &verdict.findings)?;
    }
    Ok(Night { snapshot, exit, record, findings: verdict.findings })
}
