//! Earlier nights that a provider still publishes, each as a snapshot of its own time.
//!
//! In: the index of a provider's history. Out: one back-dated snapshot a night, oldest first, through the same rooms and
//! rules as tonight's. A night that is there is not asked for again, so a run that was cut off goes on where it stopped.

use chrono::{DateTime, NaiveDate, Utc};
use gpuledger_scrapers::ALL;
use gpuledger_scrapers::contract::{PageRequest, PastNight, SCOPE_PART, Scraper};

use crate::archive::Archive;
use crate::cli::Backfill;
use crate::deliver::why_not;
use crate::fetch::{Client, Turns, fetch_pages};
use crate::gather::{Delivery, Input, gather};
use crate::night::SnapshotId;
use crate::normalise::currency::{RATE_AGE_DAYS_MAX, Rate};
use crate::run::{self, Night, RunError};
use crate::snapshot::read;

/// Why there is no history.
#[derive(Debug, thiserror::Error)]
pub enum BackfillError {
    /// The provider publishes none, or is not to be read.
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
    /// The nights of this run, oldest first.
    pub nights: Vec<Night>,
}

/// Fills in a provider's history. `told` hears of each night as it ends.
///
/// # Errors
/// When there is no history to be had, or the dataset cannot be used. A night that is refused is no error.
pub async fn backfill(args: &Backfill, told: &(dyn Fn(&Night) + Sync)) -> Result<Filled, BackfillError> {
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
    told: &(dyn Fn(&Night) + Sync),
) -> Result<Filled, BackfillError> {
    let not_asked = |reason: String| BackfillError::NotAsked { provider: args.provider.clone(), reason };
    if scraper.history_index().is_empty() {
        return Err(not_asked("it publishes no history that can be read".to_owned()));
    }
    if let Some(reason) = why_not(scraper, &args.accept_terms) {
        return Err(not_asked(reason));
    }
    let output = args.dataset.output.as_path();
    let _lock = run::open_for_writing(output).await?;
    let archive = Archive::below(output);
    let room = Room {
        client: Client::new(args.contact.as_deref()).map_err(RunError::Client)?,
        turns: Turns::default(),
        archive: &archive,
    };
    let is_asked_for = |night: &PastNight| {
        night.published_at.date_naive() >= args.since && args.until.is_none_or(|until| night.published_at.date_naive() <= until)
    };
    let mut nights: Vec<PastNight> = room.index(scraper).await?.into_iter().filter(is_asked_for).collect();
    nights.sort_by_key(|night| night.published_at);
    let there = read::snapshots(output).await.map_err(RunError::from)?;
    let is_there = |night: &PastNight| there.iter().any(|known| known.id == SnapshotId::at(night.published_at));
    let mut filled = Filled { named: nights.len(), ..Filled::default() };
    nights.retain(|night| !is_there(night));
    filled.there_before = filled.named - nights.len();
    let rates = if nights.is_empty() { Vec::new() } else { room.rates(rate_sources).await };
    for night in nights {
        let started_at = Utc::now();
        let snapshot = SnapshotId::at(night.published_at);
        let is_meant = |page: &PageRequest| {
            let name = page.scope.split(SCOPE_PART).next().unwrap_or(&page.scope);
            args.scopes.is_empty() || args.scopes.iter().any(|scope| scope == name || *scope == page.scope)
        };
        let pages = night.pages.into_iter().filter(is_meant).collect();
        let delivery = room.night(scraper, pages, night.published_at).await;
        let rates = rates_of(&rates, snapshot.date());
        let night = run::judge_and_publish(output, &archive, snapshot, started_at, vec![delivery], &rates).await?;
        told(&night);
        filled.nights.push(night);
    }
    Ok(filled)
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

    /// The nights that the provider names.
    async fn index(&self, scraper: &'static dyn Scraper) -> Result<Vec<PastNight>, BackfillError> {
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
        Ok(nights)
    }

    /// The pages of a night, dated as of it.
    async fn night(&self, scraper: &'static dyn Scraper, pages: Vec<PageRequest>, published_at: DateTime<Utc>) -> Delivery {
        let mut delivery = self.pages(scraper, pages).await;
        delivery.input = Input::History;
        for receipt in &mut delivery.pages {
            receipt.observed_at = published_at;
        }
        delivery
    }

    /// Every exchange rate that the sources of rates still publish. Without them prices stay in their own currency.
    async fn rates(&self, sources: &[&'static dyn Scraper]) -> Vec<Rate> {
        let mut rates = Vec::new();
        for scraper in sources {
            let delivery = self.pages(*scraper, scraper.history_index()).await;
            rates.extend(gather(delivery, self.archive).rates());
        }
        rates
    }
}

/// The rates that may hold on a day, and as many before it that a stale one is told apart from a missing one.
fn rates_of(rates: &[Rate], day: NaiveDate) -> Vec<Rate> {
    let first = day - chrono::Days::new(2 * RATE_AGE_DAYS_MAX);
    rates.iter().filter(|rate| (first..=day).contains(&rate.date)).cloned().collect()
}
