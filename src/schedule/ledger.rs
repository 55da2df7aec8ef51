//! Which nights of a schedule were run: `runs/schedules/NAME/nights.json`, below the dataset.
//!
//! In and out: one small file a schedule, written whole. It is written before a night starts and when it has ended, so that a
//! night that left no run record (its process died, or it could not even begin) is known too. The run records say the same of
//! every night that came to an outcome: where the file is missing or damaged it is made again from them. Never decides
//! anything.

use std::path::{Path, PathBuf};

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};

use crate::archive::{ArchiveError, drafts, read_json, write_whole};
use crate::exit::Exit;
use crate::night::SnapshotId;
use crate::record::{self, RUNS, Scheduled};

/// Version of the file.
const VERSION: u32 = 1;

/// So many nights are kept; of older ones it is only known that they are past.
const NIGHTS_MAX: usize = 1_000;

/// What is noted behind the outcome of a night whose process could not note it itself.
const DIED_AFTER: &str = "; its process died after that";

/// What is known of a schedule's nights.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ledger {
    /// Version of this form.
    pub version: u32,
    /// Name of the schedule.
    pub name: String,
    /// Nights that were due before are nobody's business: nobody had looked at the schedule then.
    pub since: DateTime<Utc>,
    /// The nights, in the order in which they were first started.
    pub nights: Vec<LedgerNight>,
}

/// One night.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LedgerNight {
    /// When it was due; absent for one that was started without being due.
    pub due_at: Option<DateTime<Utc>>,
    /// Whether it started later than a night may.
    pub is_late: bool,
    /// When it was started; the last time, if it had to be started again.
    pub started_at: DateTime<Utc>,
    /// How often it was started.
    pub starts: u32,
    /// When it ended; absent while it runs, and of one whose process died.
    pub ended_at: Option<DateTime<Utc>>,
    /// How it ended, as an exit code; absent where there was none.
    pub exit: Option<u8>,
    /// The snapshot that it made or would have made.
    pub snapshot_id: String,
    /// What else is to be said. `ended by force after 60 minutes`
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
}

impl LedgerNight {
    /// Whether it came to an end.
    #[must_use]
    pub const fn is_over(&self) -> bool {
        self.ended_at.is_some()
    }
}

/// As much of a run record as is needed here.
#[derive(Debug, Deserialize)]
struct KnownRun {
    snapshot_id: String,
    scheduled: Option<Scheduled>,
    outcome: String,
    started_at: DateTime<Utc>,
    ended_at: DateTime<Utc>,
}

/// The folder of a schedule's file and lock.
#[must_use]
pub fn folder(output: &Path, name: &str) -> PathBuf {
    output.join(RUNS).join("schedules").join(name)
}

impl Ledger {
    /// The first words about a schedule.
    #[must_use]
    pub fn begun(name: &str, since: DateTime<Utc>) -> Self {
        Self { version: VERSION, name: name.to_owned(), since, nights: Vec::new() }
    }

    /// What is written down; made again from the run records where it is missing or does not read. `now` is since when the
    /// schedule counts where there is nothing at all.
    #[must_use]
    pub fn read(output: &Path, name: &str, now: DateTime<Utc>) -> Self {
        let known: Result<Option<Self>, ArchiveError> = read_json(&path(output, name));
        match known {
            Ok(Some(ledger)) if ledger.version <= VERSION && ledger.name == name => ledger,
            _ => Self::of_records(output, name, now),
        }
    }

    /// Writes it down.
    ///
    /// # Errors
    /// When the disk refuses.
    pub fn keep(&self, output: &Path) -> Result<(), ArchiveError> {
        let text = serde_json::to_vec_pretty(self).expect("a list of nights is plain data");
        // Drafts of the dataset belong to whoever holds its lock; these are of the schedule's own.
        write_whole(&drafts(&folder(output, &self.name)), &path(output, &self.name), &text)
    }

    /// The night of a due instant.
    #[must_use]
    pub fn of(&self, due_at: DateTime<Utc>) -> Option<&LedgerNight> {
        self.nights.iter().rev().find(|night| night.due_at == Some(due_at))
    }

    /// Whether a night ran at an instant.
    #[must_use]
    pub fn was_busy_at(&self, at: DateTime<Utc>) -> bool {
        self.nights.iter().any(|night| night.started_at <= at && night.ended_at.is_some_and(|ended_at| at < ended_at))
    }

    /// Writes down that a night starts.
    pub fn start(&mut self, due_at: Option<DateTime<Utc>>, is_late: bool, now: DateTime<Utc>, snapshot_id: &str) {
        let before = due_at.and_then(|due_at| self.nights.iter().position(|night| night.due_at == Some(due_at)));
        let starts = before.map_or(0, |index| self.nights.remove(index).starts) + 1;
        let snapshot_id = snapshot_id.to_owned();
        self.nights.push(LedgerNight {
            due_at,
            is_late,
            started_at: now,
            starts,
            ended_at: None,
            exit: None,
            snapshot_id,
            note: None,
        });
        while self.nights.len() > NIGHTS_MAX {
            let oldest = self.nights.remove(0);
            self.since = oldest.due_at.map_or(self.since, |due_at| self.since.max(due_at));
        }
    }

    /// Writes down how the last one that was started ended.
    pub fn end(&mut self, exit: u8, now: DateTime<Utc>) {
        if let Some(night) = self.nights.last_mut() {
            (night.ended_at, night.exit) = (Some(now), Some(exit));
        }
    }

    /// The last one, if nothing came of it and its process could tell nobody: it died, or was ended by force.
    #[must_use]
    pub fn last_untold(&self) -> Option<&LedgerNight> {
        let night = self.nights.last()?;
        let has_died_after = |outcome: &str| night.note.as_ref().is_some_and(|note| *note == format!("{outcome}{DIED_AFTER}"));
        (has_died_after("refused") || night.exit.is_none() && !has_died_after("published")).then_some(night)
    }

    /// Writes down that the last one was ended without an exit code.
    pub fn end_by_force(&mut self, now: DateTime<Utc>, note: &str) {
        if let Some(night) = self.nights.last_mut().filter(|night| !night.is_over()) {
            (night.ended_at, night.note) = (Some(now), Some(note.to_owned()));
        }
    }

    /// Takes back that the last one was started: it never began, or was given up so that it can be run another time.
    pub fn take_back(&mut self) {
        if let Some(night) = self.nights.pop().filter(|night| night.starts > 1) {
            // It had been started before, and that stays known.
            self.nights.push(LedgerNight { starts: night.starts - 1, ..night });
        }
    }

    /// Of a night whose process died: whether it had come to an outcome by then. `published` are the ids of the snapshots.
    pub fn settle(&mut self, output: &Path, published: &[SnapshotId]) {
        for night in self.nights.iter_mut().filter(|night| !night.is_over()) {
            let Ok(id) = night.snapshot_id.parse::<SnapshotId>() else { continue };
            let is_published = published.contains(&id);
            let record: Option<KnownRun> = read_json(&output.join(RUNS).join(format!("{id}.json"))).unwrap_or_default();
            if is_published || record.is_some() {
                night.ended_at = Some(record.map_or(night.started_at, |record| record.ended_at));
                night.exit = (!is_published).then_some(Exit::Refused as u8);
                let outcome = if is_published { "published" } else { "refused" };
                night.note = Some(format!("{outcome}{DIED_AFTER}"));
            }
        }
    }

    /// The run records' words about a schedule.
    fn of_records(output: &Path, name: &str, now: DateTime<Utc>) -> Self {
        let mut ledger = Self::begun(name, now);
        for (run, scheduled) in runs(output).into_iter().filter_map(|mut run| run.scheduled.take().map(|of| (run, of))) {
            if scheduled.name != name {
                continue;
            }
            ledger.since = ledger.since.min(scheduled.due_at);
            ledger.nights.push(LedgerNight {
                due_at: Some(scheduled.due_at),
                is_late: scheduled.is_late,
                started_at: run.started_at,
                starts: 1,
                ended_at: Some(run.ended_at),
                exit: (run.outcome == "refused").then_some(Exit::Refused as u8),
                snapshot_id: run.snapshot_id,
                note: Some(run.outcome),
            });
        }
        ledger.nights.sort_by_key(|night| night.started_at);
        ledger
    }
}

/// The run records that read.
fn runs(output: &Path) -> Vec<KnownRun> {
    let Ok(entries) = std::fs::read_dir(output.join(RUNS)) else { return Vec::new() };
    let is_record = |path: &PathBuf| path.extension().is_some_and(|extension| extension == "json");
    let paths = entries.filter_map(|entry| Some(entry.ok()?.path())).filter(is_record);
    paths.filter_map(|path| read_json(&path).ok().flatten()).collect()
}

/// The record of a night; `None` where it left none.
#[must_use]
pub fn record_path(output: &Path, snapshot: SnapshotId) -> Option<PathBuf> {
    record::is_kept(output, snapshot).then(|| output.join(RUNS).join(format!("{snapshot}.json")))
}

fn path(output: &Path, name: &str) -> PathBuf {
    folder(output, name).join("nights.json")
}

#[cfg(test)]
mod tests {
    use chrono::TimeDelta;

    use super::*;

    #[test]
    fn nights_are_written_down_and_a_damaged_list_is_made_again_from_the_run_records() {
        let folder = tempfile::tempdir().expect("there is room for a folder");
        let output = folder.path();
        let now: DateTime<Utc> = "2026-11-30T02:00:00Z".parse().expect("an instant");
        let mut ledger = Ledger::read(output, "nightly", now);
        assert_eq!(ledger, Ledger::begun("nightly", now));
        ledger.start(Some(now), false, now, "2026-11-30T02-00-00Z");
        ledger.end(10, now + TimeDelta::minutes(3));
        ledger.keep(output).expect("it can be written");
        assert_eq!(Ledger::read(output, "nightly", now + TimeDelta::days(1)), ledger);

        let record = serde_json::json!({
            "snapshot_id": "2026-11-30T02-00-00Z", "outcome": "published", "started_at": now, "ended_at": now + TimeDelta::minutes(3),
            "scheduled": { "name": "nightly", "due_at": now, "is_late": true },
        });
        std::fs::write(output.join("runs/2026-11-30T02-00-00Z.json"), record.to_string()).expect("there is room for a file");
        std::fs::write(path(output, "nightly"), b"{ \"version\": 1, \"na").expect("there is room for a file");
        let again = Ledger::read(output, "nightly", now + TimeDelta::days(1));
        let night = again.of(now).expect("the record knows it");
        assert!(night.is_over() && night.is_late && again.since == now);
        assert_eq!(Ledger::read(output, "hourly", now).nights, []);
    }

    #[test]
    fn the_oldest_nights_are_forgotten_and_not_run_again() {
        let mut ledger = Ledger::begun("nightly", DateTime::UNIX_EPOCH);
        for day in 1..=i64::try_from(NIGHTS_MAX).expect("a small number") + 5 {
            let due_at = DateTime::UNIX_EPOCH + TimeDelta::days(day);
            ledger.start(Some(due_at), false, due_at, "an id");
            ledger.end(0, due_at);
        }
        assert_eq!(ledger.nights.len(), NIGHTS_MAX);
        assert_eq!(ledger.since, DateTime::UNIX_EPOCH + TimeDelta::days(5));
    }

    #[test]
    fn a_start_that_is_taken_back_never_was() {
        let now = DateTime::UNIX_EPOCH;
        let mut ledger = Ledger::begun("nightly", now);
        ledger.start(Some(now), false, now, "an id");
        ledger.take_back();
        assert_eq!(ledger.nights, []);
        ledger.start(Some(now), false, now, "an id");
        ledger.start(Some(now), false, now, "an id");
        ledger.take_back();
        assert_eq!(ledger.nights[0].starts, 1);
    }
}
