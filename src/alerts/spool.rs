//! What is still to be told, kept beside the dataset so that a night without a network loses nothing.
//!
//! `alerts/<schedule>.json`: the night up to which price changes were told, what was told once and is not told again, and the
//! messages that wait for their webhook. Bounded in number and age, written whole, without any address. One run at a time
//! uses it.

use std::fs::{File, OpenOptions, TryLockError};
use std::path::{Path, PathBuf};

use chrono::{DateTime, TimeDelta, Utc};
use gpuledger_scrapers::sha256;
use serde::{Deserialize, Serialize};

use super::message::Alert;
use crate::archive::{ArchiveError, drafts, read_json, write_whole};
use crate::night::SnapshotId;

/// Folder below the dataset.
pub const FOLDER: &str = "alerts";

/// Version of the file.
const VERSION: u32 = 1;

/// Most messages that wait.
pub const WAITING_MAX: usize = 100;

/// Days after which a message is of no use any more.
pub const AGE_DAYS_MAX: i64 = 7;

/// Most things that are remembered as told.
const TOLD_MAX: usize = 500;

/// A message that has not arrived at a webhook yet.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Waiting {
    /// The webhook's name; never its address.
    pub webhook: String,
    /// The message.
    pub alert: Alert,
}

/// What is still to be told of a schedule's nights.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Spool {
    version: u32,
    /// The newest night whose price changes are told or wait.
    pub told_through: Option<String>,
    /// What is told once, by id, the newest last.
    pub told: Vec<String>,
    /// Messages that have not arrived, the oldest first.
    pub waiting: Vec<Waiting>,
}

impl Default for Spool {
    fn default() -> Self {
        Self { version: VERSION, told_through: None, told: Vec::new(), waiting: Vec::new() }
    }
}

/// Why the spool cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum SpoolError {
    /// Another run is telling.
    #[error("another run tells the alerts of this schedule; it, or the next night, tells this one's too")]
    Busy,
    /// The disk refused.
    #[error("use the list of alerts")]
    Disk(#[from] ArchiveError),
}

/// The spool of one schedule, held by this run.
#[derive(Debug)]
pub struct Held {
    path: PathBuf,
    drafts: PathBuf,
    _lock: File,
    /// What stands in it.
    pub spool: Spool,
    /// Whether the file was there and could not be read: what waited is lost.
    pub was_damaged: bool,
}

impl Held {
    /// Takes the spool of a schedule.
    ///
    /// # Errors
    /// When another run holds it, or the disk refuses.
    pub fn take(output: &Path, schedule: &str) -> Result<Self, SpoolError> {
        let folder = output.join(FOLDER);
        let path = folder.join(format!("{}.json", name_of(schedule)));
        let io = |source| ArchiveError::Io { path: path.clone(), source };
        std::fs::create_dir_all(&folder).map_err(io)?;
        let lock = OpenOptions::new().write(true).create(true).truncate(false).open(path.with_extension("lock")).map_err(io)?;
        match lock.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => return Err(SpoolError::Busy),
            Err(TryLockError::Error(error)) if error.kind() == std::io::ErrorKind::Unsupported => {}
            Err(TryLockError::Error(error)) => return Err(io(error).into()),
        }
        let read: Result<Option<Spool>, _> = read_json(&path);
        let is_known = |spool: &Spool| spool.version == VERSION;
        let (spool, was_damaged) = match read {
            Ok(None) => (Spool::default(), false),
            Ok(Some(spool)) if is_known(&spool) => (spool, false),
            Ok(Some(_)) | Err(_) => (Spool::default(), true),
        };
        Ok(Self { drafts: drafts(output), _lock: lock, path, spool, was_damaged })
    }

    /// Writes the spool.
    ///
    /// # Errors
    /// When the disk refuses.
    pub fn save(&self) -> Result<(), SpoolError> {
        let text = serde_json::to_vec_pretty(&self.spool).expect("a spool is plain data");
        Ok(write_whole(&self.drafts, &self.path, &text)?)
    }
}

impl Spool {
    /// The night up to which price changes are told.
    #[must_use]
    pub fn told_through(&self) -> Option<SnapshotId> {
        self.told_through.as_ref()?.parse().ok()
    }

    /// Whether something was told already; remembers it as told.
    pub fn is_first(&mut self, id: &str) -> bool {
        if self.told.iter().any(|told| told == id) {
            return false;
        }
        self.told.push(id.to_owned());
        self.told.drain(..self.told.len().saturating_sub(TOLD_MAX));
        true
    }

    /// Puts a message at the end of a webhook's list.
    pub fn add(&mut self, webhook: &str, alert: &Alert) {
        let is_there = |waiting: &Waiting| waiting.webhook == webhook && waiting.alert.id == alert.id;
        if !self.waiting.iter().any(is_there) {
            self.waiting.push(Waiting { webhook: webhook.to_owned(), alert: alert.clone() });
        }
    }

    /// Takes out what is too old, too much, or for a webhook that the schedule does not name any more.
    pub fn give_up(&mut self, webhooks: &[String], now: DateTime<Utc>) -> Vec<(Waiting, String)> {
        let surplus = self.waiting.len().saturating_sub(WAITING_MAX);
        let mut given_up = Vec::new();
        let mut kept = Vec::with_capacity(self.waiting.len());
        for (index, waiting) in self.waiting.drain(..).enumerate() {
            let reason = if !webhooks.contains(&waiting.webhook) {
                "the schedule does not name this webhook any more".to_owned()
            } else if now - waiting.alert.at > TimeDelta::days(AGE_DAYS_MAX) {
                format!("it could not be told for {AGE_DAYS_MAX} days")
            } else if index < surplus {
                format!("more than {WAITING_MAX} messages wait")
            } else {
                kept.push(waiting);
                continue;
            };
            given_up.push((waiting, reason));
        }
        self.waiting = kept;
        given_up
    }

    /// Takes out a message that arrived.
    pub fn arrived(&mut self, webhook: &str, alert_id: &str) {
        self.waiting.retain(|waiting| waiting.webhook != webhook || waiting.alert.id != alert_id);
    }
}

/// A schedule's name as that of a file. One that no file can have gets a part of its hash.
fn name_of(schedule: &str) -> String {
    let is_plain = |letter: char| letter.is_ascii_lowercase() || letter.is_ascii_digit() || letter == '-' || letter == '_';
    if !schedule.is_empty() && schedule.len() <= 60 && schedule.chars().all(is_plain) {
        return schedule.to_owned();
    }
    let start: String = schedule.chars().map(|letter| if is_plain(letter) { letter } else { '_' }).take(40).collect();
    format!("x{start}.{}", &sha256(schedule.as_bytes())[..12])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_name_of_a_schedule_leads_out_of_its_folder_and_two_never_share_a_file() {
        assert_eq!(name_of("nightly"), "nightly");
        let names: Vec<String> = ["../../etc/passwd", "a/b", "a b", "", "Ä", "nightly\u{0}", "NIGHTLY", ".", &"x".repeat(4_000)]
            .into_iter()
            .map(name_of)
            .collect();
        for (index, name) in names.iter().enumerate() {
            assert!(!name.contains('/') && name.len() < 100 && !name.starts_with("."), "{name}");
            assert!(!names[..index].contains(name), "{name}");
        }
    }
}
