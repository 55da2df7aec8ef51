//! Earlier nights that a provider still publishes, each as a snapshot of its own time.
//!
//! In: the index of a provider's history. Out: one back-dated snapshot a night, oldest first, through the same rooms and
//! rules as tonight's. A night of which a page could not be had is not published, and asked for again by the next run; one
//! that is there is not. Nights since the first that was collected live are left alone: those were seen, and more than one
//! provider of them.

use chrono::{DateTime, NaiveDate, Utc};
use gpuledger_scrapers::ALL;
use gpuledger_scrapers::contract::{PageRequest, PastNight, SCOPE_PART, Scraper};

use crate::archive::{Archive, Receipt};
use crate::cli::Backfill;
use crate::deliver::why_not;
use crate::fetch::{Client, Turns, fetch_pages};
use crate::frame::Cell;
use crate::gather::{Delivery, Input, gather};
use crate::night::SnapshotId;
use crate::normalise::currency::{RATE_AGE_DAYS_MAX, Rate};
use crate::run::{self, Night, RunError};
use crate::snapshot::read;

/// Why there is no history.
#[derive(Debug, thiserror::Error)]
pub enum BackfillError {
    /// What is asked for cannot be.
    #[error("fill in {provider}: {reason}")]
    NotAsked {
        /// The provider.
        provider: String,
        /// Why.
        reason: String,
    },
    /// The index of the history could not be had or read.
    #[error("read which nights {provider} publishes: {reason}")]
    NoIndex {
        /// The provider.
        provider: String,
        /// Why.
        reason: String,
    },
    /// The exchange rates could not be had. Without them the nights would stay without comparable prices for ever.
    #[error("have the exchange rates of {provider}: {reason}")]
    NoRates {
        /// The source of rates.
        provider: String,
        /// Why.
        reason: String,
    },
    /// A night could not start.
    #[error(transparent)]
    Run(#[from] RunError),
}

/// What a run filled in.
#[derive(Debug, Default)]
pub struct Filled {
    /// Nights that the provider names in the time asked for.
    pub named: usize,
    /// Nights that were there before.
    pub there_before: usize,
    /// Nights since the first that was collected live: left alone.
    pub since_live: usize,
    /// The nights of this run, oldest first.
    pub nights: Vec<Night>,
    /// Nights of which a page could not be had, and why.
    pub not_had: Vec<(SnapshotId, String)>,
}

/// Told of each night as it ends: its id, and the night or why it could not be had.
pub type Told<'a> = &'a (dyn Fn(SnapshotId, Result<&Night, &str>) + Sync);

/// Fills in a provider's history.
///
/// # Errors
/// When there is no history to be had, or the dataset cannot be used. A night that is refused is no error.
pub async fn backfill(args: &Backfill, told: Told<'_>) -> Result<Filled, BackfillError> {
    let scraper = *run::providers(std::slice::from_ref(&args.provider))?.first().expect("the provider exists");
    let rates: Vec<_> = ALL.iter().filter(|scraper| scraper.manifest().published.is_none()).copied().collect();
    backfill_from(scraper, &rates, args, told).await
}

/// The same, of a given source and given sources of exchange rates.
///
/// # Errors
/// As [`backfill`].
pub async fn backfill_from(
    scraper: &'static dyn Scraper,
    rate_sources: &[&'static dyn Scraper],
    args: &Backfill,
    told: Told<'_>,
) -> Result<Filled, BackfillError> {
    let not_asked = |reason: String| BackfillError::NotAsked { provider: args.provider.clone(), reason };
    if scraper.history_index().is_empty() {
        return Err(not_asked("it publishes no history that can be read".to_owned()));
    }
    if let Some(reason) = why_not(scraper, &args.accept_terms) {
        return Err(not_asked(reason));
    }
    if let Some(until) = args.until.filter(|until| *until < args.since) {
        return Err(not_asked(format!("{until} is before {}", args.since)));
    }
    let output = args.dataset.output.as_path();
    let _lock = run::open_for_writing(output).await?;
    let archive = Archive::below(output);
    let client = Client::new(args.contact.as_deref()).map_err(RunError::Client)?;
    let room = Room { client, turns: Turns::default(), archive: &archive };
    let (index, mut nights) = room.index(scraper).await?;
    for scope in &args.scopes {
        if !nights.iter().flat_map(|night| &night.pages).any(|page| is_of(page, scope)) {
            return Err(not_asked(format!("no earlier night has a scope `{scope}`")));
        }
    }
    let is_asked_for = |night: &PastNight| {
        night.published_at.date_naive() >= args.since && args.until.is_none_or(|until| night.published_at.date_naive() <= until)
    };
    nights.retain(is_asked_for);
    nights.sort_by_key(|night| night.published_at);
    let mut filled = Filled { named: nights.len(), ..Filled::default() };
    let known = Known::read(output).await?;
    nights.retain(|night| known.first_live.is_none_or(|live| SnapshotId::at(night.published_at) < live));
    filled.since_live = filled.named - nights.len();
    let is_there = |night: &PastNight| known.ids.contains(&SnapshotId::at(night.published_at));
    nights.retain(|night| !is_there(night));
    filled.there_before = filled.named - filled.since_live - nights.len();
    let rates = if nights.is_empty() { Vec::new() } else { room.rates(rate_sources).await? };
    for night in nights {
        let started_at = Utc::now();
        let snapshot = SnapshotId::at(night.published_at);
        let is_meant = |page: &PageRequest| args.scopes.is_empty() || args.scopes.iter().any(|scope| is_of(page, scope));
        let pages = night.pages.into_iter().filter(is_meant).collect();
        let mut delivery = room.night(scraper, pages, night.published_at).await;
        if let Some(failure) = delivery.failures.first() {
            let reason = format!("{}: {}", failure.scope, failure.reason);
            told(snapshot, Err(&reason));
            filled.not_had.push((snapshot, reason));
            continue;
        }
        delivery.pages.splice(0..0, index.iter().cloned());
        for (source, receipts, _) in &rates {
            archive.keep_receipts(snapshot, source, receipts).map_err(RunError::from)?;
        }
        let rates: Vec<Rate> = rates.iter().flat_map(|(_, _, rates)| rates_of(rates, snapshot.date())).collect();
        let night = run::judge_and_publish(output, &archive, snapshot, (started_at, None), vec![delivery], &rates).await?;
        told(snapshot, Ok(&night));
        filled.nights.push(night);
    }
    Ok(filled)
}

/// Whether a page is of a scope, or of a part of it.
fn is_of(page: &PageRequest, scope: &str) -> bool {
    page.scope == scope || page.scope.split(SCOPE_PART).next() == Some(scope)
}

/// What the dataset has.
struct Known {
    ids: Vec<SnapshotId>,
    /// The first night that is not of a history, of files that somebody kept, or imported.
    first_live: Option<SnapshotId>,
}

impl Known {
    async fn read(output: &std::path::Path) -> Result<Self, RunError> {
        let snapshots = read::snapshots(output).await?;
        let coverage = read::coverage(output, &snapshots).await?;
        let mut first_live = None;
        for row in 0..coverage.height() {
            let cell = |name: &str| Cell::at(&coverage, name, row).map(|cell| cell.text());
            if ![Input::History, Input::Files, Input::Import].map(Input::word).contains(&cell("input")?.as_str())
                && let Ok(id) = cell("snapshot_id")?.parse::<SnapshotId>()
            {
                first_live = Some(first_live.map_or(id, |first: SnapshotId| first.min(id)));
            }
        }
        Ok(Self { ids: snapshots.iter().map(|snapshot| snapshot.id).collect(), first_live })
    }
}

/// What every request of a run shares.
struct Room<'a> {
    client: Client,
    turns: Turns,
    archive: &'a Archive,
}

impl Room<'_> {
    async fn pages(&self, scraper: &'static dyn Scraper, pages: Vec<PageRequest>) -> Delivery {
        fetch_pages(&self.client, &self.turns, self.archive, scraper, pages, &|_, _, _| {}).await
    }

    /// The nights that the provider names, and the receipts of the pages that name them.
    async fn index(&self, scraper: &'static dyn Scraper) -> Result<(Vec<Receipt>, Vec<PastNight>), BackfillError> {
        let no_index = |reason: String| BackfillError::NoIndex { provider: scraper.manifest().provider.clone(), reason };
        let delivery = self.pages(scraper, scraper.history_index()).await;
        if let Some(failure) = delivery.failures.first() {
            return Err(no_index(failure.reason.clone()));
        }
        let mut nights = Vec::new();
        for receipt in &delivery.pages {
            let page = self.archive.page(receipt).map_err(|error| no_index(error.to_string()))?;
            nights.extend(scraper.history(&page).map_err(|error| no_index(error.to_string()))?);
        }
        Ok((delivery.pages, nights))
    }

    /// The pages of a night, dated as of it. What the night did not have yet is no failure.
    async fn night(&self, scraper: &'static dyn Scraper, pages: Vec<PageRequest>, published_at: DateTime<Utc>) -> Delivery {
        let mut delivery = self.pages(scraper, pages).await;
        delivery.input = Input::History;
        delivery.failures.retain(|failure| !failure.is_skip);
        for receipt in &mut delivery.pages {
            receipt.read_at = Some(receipt.observed_at);
            receipt.observed_at = published_at;
        }
        delivery
    }

    /// Every exchange rate that the sources of rates still publish, and where each was read.
    async fn rates(&self, sources: &[&'static dyn Scraper]) -> Result<Vec<(String, Vec<Receipt>, Vec<Rate>)>, BackfillError> {
        let mut all = Vec::new();
        for scraper in sources {
            let provider = scraper.manifest().provider.clone();
            let no_rates = |reason: String| BackfillError::NoRates { provider: provider.clone(), reason };
            let delivery = self.pages(*scraper, scraper.history_index()).await;
            if let Some(failure) = delivery.failures.first() {
                return Err(no_rates(failure.reason.clone()));
            }
            let receipts = delivery.pages.clone();
            let gathered = gather(delivery, self.archive);
            let rates: Vec<Rate> = gathered.rates().collect();
            if let Some(reason) = gathered.coverage().find_map(|scope| scope.reason) {
                return Err(no_rates(reason));
            }
            all.push((provider, receipts, rates));
        }
        Ok(all)
    }
}

/// The rates that may hold on a day, and as many before it that a stale one is told apart from a missing one.
fn rates_of(rates: &[Rate], day: NaiveDate) -> impl Iterator<Item = Rate> + '_ {
    let first = day - chrono::Days::new(2 * RATE_AGE_DAYS_MAX);
    rates.iter().filter(move |rate| (first..=day).contains(&rate.date)).cloned()
}
