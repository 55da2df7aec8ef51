//! The conductor: the only file that knows all rooms.
//!
//! Due → fetch → archive → parse → normalise → validate → publish → record. A failing provider never stops the others; a
//! refused night leaves its record and findings, and no data.

use std::path::Path;
use std::sync::Arc;

use chrono::{DateTime, Utc};
use gpuledger_scrapers::ALL;
use gpuledger_scrapers::contract::{SCOPE_ALL, Scraper};
use gpuledger_scrapers::manifest::TermsOfUse;
use gpuledger_scrapers::recordings;
use polars::prelude::PolarsError;

use crate::archive::{Archive, ArchiveError, clear_drafts};
use crate::cli::Collect;
use crate::exit::Exit;
use crate::fetch::{Client, Turns, fetch_provider};
use crate::gather::{Delivery, Failure, Gathered, Input, gather};
use crate::night::SnapshotId;
use crate::normalise::currency::{RATE_AGE_DAYS_MAX, Rate, newest_rate_day, rates_frame};
use crate::normalise::{Observed, normalise};
use crate::offer::SCHEMA_VERSION;
use crate::progress::Bars;
use crate::record::{self, RunRecord};
use crate::snapshot::publish::{Published, publish};
use crate::snapshot::{SnapshotError, read};
use crate::source::{self, SourceError};
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
    let _lock = lock::take(output)?;
    clear_drafts(output)?;
    let archive = Archive::below(output);
    let is_published = read::snapshots(output).await?.iter().any(|known| known.id == snapshot);

    let deliveries = deliver(args, &scrapers, snapshot, &archive).await?;
    // A published night keeps the receipts of the pages that it was made of.
    for delivery in deliveries.iter().filter(|_| !is_published) {
        let receipts: Vec<_> = delivery.pages.iter().map(|(receipt, _)| receipt.clone()).collect();
        archive.keep_receipts(snapshot, &delivery.scraper.manifest().provider, &receipts)?;
    }
    let gathered: Vec<Gathered> = deliveries.into_iter().map(gather).collect();
    let observed: Vec<Observed> = gathered.iter().flat_map(Gathered::offers).collect();
    let rates: Vec<Rate> = gathered.iter().flat_map(Gathered::rates).collect();
    let known_rates = known_rates(output, snapshot, &observed, &rates).await?;
    let normalised = normalise(snapshot, &observed, &known_rates)?;
    let verdict = validate(&normalised, &gathered)?;
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

async fn deliver(
    args: &Collect,
    scrapers: &[&'static dyn Scraper],
    snapshot: SnapshotId,
    archive: &Archive,
) -> Result<Vec<Delivery>, RunError> {
    if let Some(folder) = &args.from {
        let mut deliveries = Vec::new();
        for scraper in scrapers {
            let of_provider = folder.join(&scraper.manifest().provider);
            if of_provider.is_dir() {
                deliveries.push(source::from_files(*scraper, &of_provider, snapshot.instant(), archive)?);
            } else if !args.providers.is_empty() {
                deliveries.push(skipped(*scraper, Input::Files, format!("there is no folder {}", of_provider.display())));
            }
        }
        return Ok(deliveries);
    }
    let client = Client::new(args.contact.as_deref()).map_err(RunError::Client)?;
    let (turns, bars) = (Turns::default(), Arc::new(Bars::new(!args.recorded)));
    let mut deliveries = Vec::new();
    let mut tasks = tokio::task::JoinSet::new();
    for (index, scraper) in scrapers.iter().copied().enumerate() {
        if args.recorded {
            deliveries.push((index, source::recorded(scraper, archive)?));
        } else if let Some(reason) = why_not(scraper, &args.accept_terms) {
            deliveries.push((index, skipped(scraper, Input::Live, reason)));
        } else {
            let (client, turns, archive, bars) = (client.clone(), turns.clone(), archive.clone(), Arc::clone(&bars));
            tasks.spawn(async move {
                let bar = bars.provider(&scraper.manifest().provider);
                let delivery =
                    fetch_provider(&client, &turns, &archive, scraper, &|done, known, bytes| bar.update(done, known, bytes))
                        .await;
                bar.finish(&delivery);
                (index, delivery)
            });
        }
    }
    deliveries.extend(tasks.join_all().await);
    deliveries.sort_by_key(|(index, _)| *index);
    Ok(deliveries.into_iter().map(|(_, delivery)| delivery).collect())
}

/// Why a provider is not asked at all; `None` when it is.
#[must_use]
pub fn why_not(scraper: &dyn Scraper, accepted: &[String]) -> Option<String> {
    let manifest = scraper.manifest();
    if manifest.terms == TermsOfUse::Restricted && !accepted.contains(&manifest.provider) {
        return Some(format!(
            "its terms restrict reading by machine: {}; name it in --accept-terms to read it",
            manifest.terms_note
        ));
    }
    let key = manifest.fetch.key_env.as_ref()?;
    std::env::var_os(key).is_none().then(|| format!("it needs a key in the environment variable {key}"))
}

fn skipped(scraper: &'static dyn Scraper, input: Input, reason: String) -> Delivery {
    let failure = Failure { scope: SCOPE_ALL.to_owned(), code: "not_asked".to_owned(), reason, is_skip: true };
    Delivery { scraper, input, pages: Vec::new(), failures: vec![failure], seconds: 0.0 }
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
    let is_whole = providers.iter().all(|provider| provider.status == "complete");
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
