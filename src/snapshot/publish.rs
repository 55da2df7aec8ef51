//! Writes a judged night: files first, then one commit a table, `offers` last.
//!
//! Killed at any moment, the last good snapshot stays whole: before the first file is in its place a list of all of them is
//! on the disk, and the next run takes back what the list names of a night that did not reach `offers`. Two runs that do not
//! see each other's lock are told apart by the log: each commit is for one version of it, and who is overtaken looks again.

use std::collections::BTreeSet;
use std::path::Path;
use std::time::Duration;

use polars::prelude::*;

use crate::archive::{Sidecar, draft_name};
use crate::frame::Cell;
use crate::lock;
use crate::night::SnapshotId;
use crate::normalise::currency::{Rate, rates_frame};
use crate::offer::{COVERAGE, OFFERS, RATES, Table};
pub use crate::snapshot::file::parquet_bytes;
use crate::snapshot::file::{Draft, coverage_frame, in_columns, in_order};
use crate::snapshot::journal::{self, Journal, Plan};
use crate::snapshot::log::{Committed, Log, LoggedFile};
use crate::snapshot::recover::{take_back, write_sidecars};
use crate::snapshot::{SnapshotError, read, schema};
use crate::validate::Validated;

/// How often a night is tried while other runs put something into the log.
const ATTEMPTS_MAX: u32 = 20;

/// How often a run that is publishing the same night is waited for, and how long each time.
const WAITS_MAX: u32 = 50;
const WAIT: Duration = Duration::from_millis(200);

/// What publishing did.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Published {
    /// The snapshot exists now.
    New,
    /// It existed already with the same rows.
    Already,
}

/// Publishes a night, and writes what belongs beside it.
///
/// # Errors
/// When the disk or the log refuses, the snapshot exists with other rows, or the dataset's columns are not this program's.
/// What was published stays as it was.
pub async fn publish(
    output: &Path,
    snapshot: SnapshotId,
    night: &Validated,
    rates: &[Rate],
    sidecars: &[Sidecar],
) -> Result<Published, SnapshotError> {
    fit_all(output).await?;
    let offers = Draft::of(&OFFERS, snapshot, &in_file_order(night)?)?;
    let coverage = coverage_frame(snapshot, night.coverage()).map_err(|source| rows_error(&COVERAGE, source))?;
    let coverage = Draft::of(&COVERAGE, snapshot, &in_order(&coverage, &COVERAGE)?)?;
    let night = Drafts { output, run: draft_name(), snapshot, offers, coverage, rates, sidecars };
    let (mut journal, mut waits) = (None, 0);
    for attempt in 0..ATTEMPTS_MAX + WAITS_MAX {
        match night.attempt(&mut journal).await {
            Ok(None) => {}
            // Once the other run is done it is plain whether it published the same rows.
            Err(SnapshotError::BeingPublished { .. }) if waits < WAITS_MAX => {
                waits += 1;
                tokio::time::sleep(WAIT).await;
            }
            Ok(Some(published)) => {
                // An earlier try may have put files in place that no log names. While another run is still at this night
                // they stay, and so does the list: the next run takes them back.
                let is_done = match &journal {
                    Some((journal, plan)) if attempt > 0 => take_back(output, plan, Some(journal)).await?,
                    _ => true,
                };
                if is_done {
                    end(journal)?;
                }
                return Ok(published);
            }
            Err(error) => {
                // What cannot be taken back now is taken back by the next run, for the list stays.
                if let Some((journal, plan)) = journal
                    && !matches!(error, SnapshotError::Unfinished { .. })
                    && take_back(output, &plan, Some(&journal)).await.is_ok_and(|is_done| is_done)
                {
                    let _ = journal.end();
                }
                return Err(error);
            }
        }
    }
    Err(SnapshotError::Overtaken { snapshot: snapshot.to_string(), attempts: ATTEMPTS_MAX })
}

/// A night's offers as their file has them. Judging has sorted them, and to sort a million rows again costs seconds.
fn in_file_order(night: &Validated) -> Result<DataFrame, SnapshotError> {
    in_columns(night.offers().clone().lazy(), &OFFERS)
}

/// A night's offers in the order of their file, and the bytes of that file.
///
/// # Errors
/// When polars cannot write them.
pub fn offers_file(night: &Validated) -> Result<(DataFrame, Vec<u8>), SnapshotError> {
    let offers = in_file_order(night)?;
    let bytes = parquet_bytes(&OFFERS, &offers).map_err(|source| rows_error(&OFFERS, source))?;
    Ok((offers, bytes))
}

/// Looks whether the dataset's columns are this program's, before anything is written, and adds those that it lacks.
///
/// # Errors
/// When a column has another type, or a newer program made the dataset.
pub async fn fit_all(output: &Path) -> Result<(), SnapshotError> {
    let mut behind = Vec::new();
    for table in [&RATES, &COVERAGE, &OFFERS] {
        let Some(log) = Log::open(output, table).await? else { continue };
        if !is_fit(&log)? {
            behind.push(log);
        }
    }
    for mut log in behind {
        while log.add_columns().await? == Committed::Overtaken {
            if is_fit(&log)? {
                break;
            }
        }
    }
    Ok(())
}

/// Whether a table has every column of this program; an error when it is not this program's to write to.
fn is_fit(log: &Log) -> Result<bool, SnapshotError> {
    let (table, columns) = (log.table(), log.columns()?);
    if let Some(schema::OtherType { column, found, expected }) = schema::other_type(table, &columns) {
        return Err(SnapshotError::OtherType { table: table.name, column, found, expected });
    }
    let newer = |difference: String| SnapshotError::Newer { table: table.name, difference };
    if let Some(version) = log.schema_version()?.filter(|version| *version > crate::offer::SCHEMA_VERSION) {
        let own = crate::offer::SCHEMA_VERSION;
        return Err(newer(format!("whose columns are version {version}; this one's are version {own}")));
    }
    let unknown = schema::unknown(table, &columns);
    if !unknown.is_empty() {
        return Err(newer(format!("with columns that this one does not know: {}", unknown.join(", "))));
    }
    Ok(schema::missing(table, &columns).is_empty())
}

/// A night on its way into the tables.
struct Drafts<'a> {
    output: &'a Path,
    /// What the logs call this run.
    run: String,
    snapshot: SnapshotId,
    offers: Draft,
    coverage: Draft,
    rates: &'a [Rate],
    sidecars: &'a [Sidecar],
}

/// This run's list, and what it says.
type Held = Option<(Journal, Plan)>;

fn end(journal: Held) -> Result<(), SnapshotError> {
    Ok(journal.map_or(Ok(()), |(journal, _)| journal.end())?)
}

impl Drafts<'_> {
    /// One try; `None` when another run was quicker somewhere.
    async fn attempt(&self, journal: &mut Held) -> Result<Option<Published>, SnapshotError> {
        let mut log = Log::open_or_create(self.output, &OFFERS).await?;
        if let Some(existing) = log.files()?.into_iter().find(|file| file.snapshot == Some(self.snapshot)) {
            return if existing.path == self.offers.path {
                Ok(Some(Published::Already))
            } else {
                Err(SnapshotError::ExistsOtherwise { snapshot: self.snapshot.to_string() })
            };
        }
        // Which rates are new is true of one version of their log, and they are committed to the next one or not at all.
        let rates_log = Log::open_or_create(self.output, &RATES).await?;
        let rates = self.new_rates(&rates_log)?;
        self.plan(journal, rates.as_ref())?;
        if !self.settle_coverage(journal).await? || !self.settle_rates(rates_log, rates.as_ref()).await? {
            return Ok(None);
        }
        let file = self.offers.write(self.output, &OFFERS)?;
        if log.commit(&self.run, self.snapshot, &file, &[]).await? == Committed::Overtaken {
            return Ok(None);
        }
        let unfinished = |error| SnapshotError::Unfinished { snapshot: self.snapshot.to_string(), source: Box::new(error) };
        self.look_again(journal).await.map_err(unfinished)?;
        write_sidecars(self.output, self.sidecars).map_err(unfinished)?;
        Ok(Some(Published::New))
    }

    /// Once the night exists: a run that did not see this one may have taken back what stands beside it.
    async fn look_again(&self, journal: &Held) -> Result<(), SnapshotError> {
        for _ in 0..ATTEMPTS_MAX {
            let log = Log::open_or_create(self.output, &RATES).await?;
            let rates = self.new_rates(&log)?;
            if self.settle_coverage(journal).await? && self.settle_rates(log, rates.as_ref()).await? {
                return Ok(());
            }
        }
        Err(SnapshotError::Overtaken { snapshot: self.snapshot.to_string(), attempts: ATTEMPTS_MAX })
    }

    /// Writes the list of what is about to be put in place, in place of an earlier one.
    fn plan(&self, journal: &mut Held, rates: Option<&Draft>) -> Result<(), SnapshotError> {
        let below = |table: &Table, draft: &Draft| format!("{}/{}", table.name, draft.path);
        let mut files = vec![below(&COVERAGE, &self.coverage)];
        files.extend(rates.map(|rates| below(&RATES, rates)));
        files.push(below(&OFFERS, &self.offers));
        // What an earlier try put in place and this one does not want stays on the list until it is taken back.
        let before = journal.take();
        let earlier = before.iter().flat_map(|(_, plan)| &plan.files).filter(|file| !files.contains(file)).cloned();
        let files = earlier.collect::<Vec<_>>().into_iter().chain(files.clone()).collect();
        let (run, sidecars) = (self.run.clone(), self.sidecars.to_vec());
        let plan = Plan { snapshot: self.snapshot.to_string(), host: lock::writer(self.output), run, files, sidecars };
        *journal = Some((Journal::begin(self.output, &plan)?, plan));
        end(before)
    }

    /// Puts the coverage into its table, in place of what an earlier try of the same night left there. False when another run
    /// was quicker.
    async fn settle_coverage(&self, journal: &Held) -> Result<bool, SnapshotError> {
        let mut log = Log::open_or_create(self.output, &COVERAGE).await?;
        let left: Vec<_> = log.files()?.into_iter().filter(|file| file.snapshot == Some(self.snapshot)).collect();
        if left.iter().any(|file| file.path == self.coverage.path) {
            return Ok(true);
        }
        if !left.is_empty() && self.is_being_published(journal)? {
            return Err(SnapshotError::BeingPublished { snapshot: self.snapshot.to_string() });
        }
        // What is there may be of a run that has published the night meanwhile, and is that night's then.
        if !left.is_empty() && self.is_published_by_another().await? {
            return Ok(false);
        }
        let file = self.coverage.write(self.output, &COVERAGE)?;
        if log.commit(&self.run, self.snapshot, &file, &left).await? == Committed::Overtaken {
            return Ok(false);
        }
        for old in left {
            journal::remove(&old.file)?;
        }
        Ok(true)
    }

    /// Puts the new rates into their table. False when another run was quicker: some of them may be there now.
    async fn settle_rates(&self, mut log: Log, rates: Option<&Draft>) -> Result<bool, SnapshotError> {
        let Some(rates) = rates else { return Ok(true) };
        let file = rates.write(self.output, &RATES)?;
        Ok(log.commit(&self.run, self.snapshot, &file, &[]).await? == Committed::Done)
    }

    async fn is_published_by_another(&self) -> Result<bool, SnapshotError> {
        let Some(log) = Log::open(self.output, &OFFERS).await? else { return Ok(false) };
        let is_anothers = |file: &LoggedFile| file.run.as_deref() != Some(self.run.as_str());
        Ok(log.files()?.iter().any(|file| file.snapshot == Some(self.snapshot) && is_anothers(file)))
    }

    fn is_being_published(&self, journal: &Held) -> Result<bool, SnapshotError> {
        let others = journal::left(self.output, journal.as_ref().map(|(journal, _)| journal))?;
        let id = self.snapshot.to_string();
        Ok(others.iter().any(|other| other.is_held && other.plan.as_ref().is_some_and(|plan| plan.snapshot == id)))
    }

    /// The rates that the dataset does not have yet. A rate that is there stays as it was first seen.
    fn new_rates(&self, log: &Log) -> Result<Option<Draft>, SnapshotError> {
        let days = self.rates.iter().map(|rate| rate.date);
        let (Some(first), Some(last)) = (days.clone().min(), days.max()) else { return Ok(None) };
        let known = read::rates_in(log, first, last)?;
        let mut keys = BTreeSet::new();
        for row in 0..known.height() {
            let cell =
                |name: &str| Cell::at(&known, name, row).map(|cell| cell.text()).map_err(|source| rows_error(&RATES, source));
            keys.insert((cell("rate_date")?, cell("currency_code")?));
        }
        let is_new = |rate: &&Rate| keys.insert((rate.date.to_string(), rate.currency_code.clone()));
        let new: Vec<Rate> = self.rates.iter().filter(is_new).cloned().collect();
        if new.is_empty() {
            return Ok(None);
        }
        let rows = rates_frame(&self.snapshot.to_string(), &new).map_err(|source| rows_error(&RATES, source))?;
        Draft::of(&RATES, self.snapshot, &in_order(&rows, &RATES)?).map(Some)
    }
}

fn rows_error(table: &Table, source: PolarsError) -> SnapshotError {
    SnapshotError::Rows { table: table.name, source }
}
