//! The conductor: the only file that knows all rooms.
//!
//! Due → fetch → archive → parse → normalise → validate → publish → record. A failing provider never stops the others; a
//! refused night leaves its record and findings, and no data.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use chrono::{DateTime, Utc};
use gpuledger_scrapers::ALL;
use gpuledger_scrapers::contract::Scraper;
use gpuledger_scrapers::recordings;
use polars::prelude::PolarsError;

use crate::archive::{Archive, ArchiveError, Sidecar, clear_drafts};
use crate::cli::Collect;
use crate::deliver::deliver;
use crate::earlier;
use crate::exit::Exit;
use crate::failed::Failed;
use crate::fetch::Traffic;
use crate::gather::{Delivery, Gathered, gather};
use crate::kept;
use crate::night::SnapshotId;
use crate::normalise::currency::{RATE_AGE_DAYS_MAX, Rate, newest_rate_day, rates_frame};
use crate::normalise::{Observed, normalise_in_file_order};
use crate::offer::SCHEMA_VERSION;
use crate::record::{self, RunRecord, Scheduled};
use crate::snapshot::publish::{Published, fit_all, publish};
use crate::snapshot::recover::{clear_uncommitted, write_sidecars};
use crate::snapshot::{SnapshotError, read};
use crate::source::SourceError;
use crate::validate::{ScopeCoverage, ScopeStatus, Verdict, validate};
use crate::{feed, lock, log, remote, validate::Finding};

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
    log::night_began(&snapshot.to_string(), output);
    let deliveries = deliver(args, &scrapers, snapshot, &archive).await?;
    let night = judge_and_publish(output, &archive, snapshot, (started_at, args.scheduled.clone()), deliveries, &[]).await?;
    let published = (night.record.outcome == "published").then_some(snapshot);
    // The night is published and stays so, whatever becomes of its feed; the next night tells what this one could not.
    if let Err(error) = feed::bring_up_to_date(output, published).await {
        log::warn("feed_failed", &Failed::new(night.exit, "", &error).to_string());
    }
    log::night_ended(&night);
    Ok(night)
}

/// Takes the dataset's lock and clears what a run that died left.
///
/// # Errors
/// When another run holds the lock, or the disk refuses.
pub async fn open_for_writing(output: &Path) -> Result<lock::WriterLock, RunError> {
    let lock = lock::take(output)?;
    clear_drafts(output)?;
    clear_uncommitted(output).await?;
    // Whether the dataset is this program's to write to is known before anything is fetched for it.
    fit_all(output).await?;
    Ok(lock)
}

/// From a night's pages to its snapshot. `started` is when the run started, and the due night that it is. `more_rates` are
/// exchange rates beside those of the pages.
///
/// # Errors
/// When the dataset or the archive cannot be used.
pub async fn judge_and_publish(
    output: &Path,
    archive: &Archive,
    snapshot: SnapshotId,
    started: (DateTime<Utc>, Option<Scheduled>),
    deliveries: Vec<Delivery>,
    more_rates: &[Rate],
) -> Result<Night, RunError> {
    let published = read::snapshots(output).await?;
    let is_published = published.iter().any(|known| known.id == snapshot);
    // A published night keeps the receipts of the pages that it was made of.
    let sidecars = if is_published { Vec::new() } else { kept::beside(snapshot, &deliveries) };
    // On an object store they would stand over those of another machine's run that is quicker.
    if remote::at(output).is_none() {
        write_sidecars(output, &sidecars)?;
    }
    let gathered: Vec<Gathered> = deliveries.into_iter().map(|delivery| gather(delivery, archive)).collect();
    let judged = judge(output, snapshot, &gathered, more_rates, None).await?;
    let (started_at, scheduled) = started;
    conclude(output, Started { snapshot, started_at, scheduled, is_published, sidecars }, judged).await
}

/// A night that was judged and is not published.
#[derive(Debug)]
pub struct Judged {
    /// What the rules say.
    pub verdict: Verdict,
    /// The exchange rates of its own pages.
    pub rates: Vec<Rate>,
    /// What each provider was asked for over the network.
    pub network: BTreeMap<String, Traffic>,
}

/// From what was gathered to the verdict. With `nights`, of the published exchange rates only those count
/// that these nights published: a night that is derived again knows no more than it did.
///
/// # Errors
/// When the dataset cannot be used.
pub async fn judge(
    output: &Path,
    snapshot: SnapshotId,
    gathered: &[Gathered],
    more_rates: &[Rate],
    nights: Option<&BTreeSet<SnapshotId>>,
) -> Result<Judged, RunError> {
    let observed: Vec<Observed> = gathered.iter().flat_map(Gathered::offers).collect();
    let published = read::snapshots(output).await?;
    let tonight = gathered.iter().map(|of| (of.manifest.provider.clone(), of.input())).collect();
    let earlier = earlier::before(output, &published, snapshot, &tonight).await?;
    let network = gathered.iter().map(|gathered| (gathered.manifest.provider.clone(), gathered.traffic)).collect();
    let mut refused: BTreeSet<&str> = BTreeSet::new();
    loop {
        let trusted = gathered.iter().filter(|of| !refused.contains(of.manifest.provider.as_str()));
        let rates: Vec<Rate> = trusted.flat_map(Gathered::rates).chain(more_rates.iter().cloned()).collect();
        let known_rates = known_rates(output, snapshot, &observed, &rates, nights).await?;
        let normalised = normalise_in_file_order(snapshot, &observed, &known_rates)?;
        let verdict = validate(snapshot, normalised, gathered, &earlier)?;
        // Rates of a source that is refused convert no price and are not published: the night is worked out without them.
        let is_refused = |of: &&Gathered| {
            let is_failed = |scope: &ScopeCoverage| scope.provider == of.manifest.provider && scope.status == ScopeStatus::Failed;
            of.manifest.published.is_none() && of.rates().next().is_some() && verdict.coverage.iter().any(is_failed)
        };
        let before = refused.len();
        refused.extend(gathered.iter().filter(is_refused).map(|of| of.manifest.provider.as_str()));
        if refused.len() == before {
            return Ok(Judged { verdict, rates, network });
        }
    }
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
    observed: &[Observed<'_>],
    rates: &[Rate],
    nights: Option<&BTreeSet<SnapshotId>>,
) -> Result<polars::frame::DataFrame, RunError> {
    let first = observed.iter().map(|observed| newest_rate_day(observed.observed_at)).min().unwrap_or(snapshot.date());
    let last = observed.iter().map(|observed| newest_rate_day(observed.observed_at)).max().unwrap_or(snapshot.date());
    // Older rates than a week are not used; one week more is read so that they are told apart from missing ones.
    let first = first - chrono::Days::new(2 * RATE_AGE_DAYS_MAX);
    let known = read::rates_known(output, first, last, nights).await?;
    let tonight: Vec<Rate> = rates.iter().filter(|rate| (first..=last).contains(&rate.date)).cloned().collect();
    let tonight = rates_frame(&snapshot.to_string(), &tonight)?;
    Ok(known.vstack(&tonight)?.unique_stable(
        Some(&["rate_date".to_owned(), "currency_code".to_owned()]),
        polars::prelude::UniqueKeepStrategy::First,
        None,
    )?)
}

/// What is known of a night before it is judged.
#[derive(Debug)]
pub struct Started {
    /// Its id.
    pub snapshot: SnapshotId,
    /// When the run started.
    pub started_at: DateTime<Utc>,
    /// The due night that it is.
    pub scheduled: Option<Scheduled>,
    /// Whether it was there already.
    pub is_published: bool,
    /// What it was made of, which belongs beside a published night as its record does: a run that dies once the night is
    /// published leaves it to the next.
    pub sidecars: Vec<Sidecar>,
}

/// Publishes a judged night if it may be, and leaves its record.
///
/// # Errors
/// When the dataset cannot be used, or has the snapshot with other rows.
pub async fn conclude(output: &Path, started: Started, judged: Judged) -> Result<Night, RunError> {
    let Started { snapshot, started_at, scheduled, is_published, mut sidecars } = started;
    // A run that does not see this one's lock may have published the night since.
    let is_published = is_published || read::snapshots(output).await?.iter().any(|known| known.id == snapshot);
    let Judged { verdict, rates, network } = judged;
    let providers = record::providers(&verdict.coverage, &network);
    // A provider whose every foreign price lacks a rate is there, and yet nobody can compare it.
    let is_whole = providers.iter().all(|provider| provider.status == "complete") && verdict.without_rates.is_empty();
    let mut record = RunRecord {
        snapshot_id: snapshot.to_string(),
        corrects: snapshot.corrects().map(|corrected| corrected.to_string()),
        scheduled,
        outcome: "refused",
        started_at,
        ended_at: Utc::now(),
        program_version: env!("CARGO_PKG_VERSION"),
        schema_version: SCHEMA_VERSION,
        offers: verdict.night.as_ref().map_or(0, |night| night.offers().height()),
        rates: rates.len(),
        providers,
        findings: record::count(&verdict.findings),
    };
    if !is_published {
        record::keep_findings(output, snapshot, &verdict.findings)?;
    }
    let Some(night) = &verdict.night else {
        if !is_published {
            if remote::at(output).is_some() {
                write_sidecars(output, &sidecars)?;
            }
            record::keep(output, &record)?;
        }
        return Ok(Night { snapshot, exit: Exit::Refused, record, findings: verdict.findings });
    };
    record.outcome = "published";
    sidecars.push(record::sidecar(&record));
    if publish(output, snapshot, night, &rates, &sidecars).await? == Published::Already {
        record.outcome = "already_published";
        // The record of the run that published it stays, unless that run died before it wrote one; it may be writing it now.
        if !record::is_kept(output, snapshot) {
            record::keep_findings(output, snapshot, &verdict.findings)?;
            record::keep_if_new(output, &record)?;
        }
    }
    let exit = if is_whole { Exit::Good } else { Exit::Partial };
    Ok(Night { snapshot, exit, record, findings: verdict.findings })
}
