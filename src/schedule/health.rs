//! `runs/health.json`: whether the service on a dataset is alive, for monitors and probes.
//!
//! Written whole, so that who reads it never sees half of it. Never read by this program.

use std::path::{Path, PathBuf};

use chrono::{DateTime, Utc};
use serde::Serialize;

use super::ledger::{Ledger, LedgerNight};
use crate::archive::{ArchiveError, drafts, write_whole_here};
use crate::record::RUNS;

/// Version of the file.
const VERSION: u32 = 1;

/// What a monitor is told.
#[derive(Debug, Serialize)]
pub struct Health {
    version: u32,
    /// When this was written: a service that is well writes at least every two minutes.
    alive_at: DateTime<Utc>,
    /// Who writes it.
    process: String,
    program_version: &'static str,
    schedules: Vec<ScheduleHealth>,
}

/// One schedule.
#[derive(Debug, Serialize)]
struct ScheduleHealth {
    name: String,
    /// When its next night starts.
    next_at: Option<DateTime<Utc>>,
    /// Since when a night of it runs here.
    running_since: Option<DateTime<Utc>>,
    /// The last night that is written down.
    last: Option<LedgerNight>,
}

impl Health {
    /// The health of a service that has no schedules yet.
    #[must_use]
    pub fn new(now: DateTime<Utc>, process: &str) -> Self {
        let (process, program_version) = (process.to_owned(), env!("CARGO_PKG_VERSION"));
        Self { version: VERSION, alive_at: now, process, program_version, schedules: Vec::new() }
    }

    /// Adds a schedule.
    pub fn add(&mut self, ledger: Ledger, next_at: Option<DateTime<Utc>>, running_since: Option<DateTime<Utc>>) {
        let Ledger { name, mut nights, .. } = ledger;
        self.schedules.push(ScheduleHealth { name, next_at, running_since, last: nights.pop() });
    }

    /// Writes it.
    ///
    /// # Errors
    /// When the disk refuses.
    pub fn keep(&self, output: &Path) -> Result<(), ArchiveError> {
        let text = serde_json::to_vec_pretty(self).expect("words about a service are plain data");
        // A service is this machine's, wherever the dataset is.
        write_whole_here(&drafts(&output.join(RUNS).join("schedules")), &path(output), &text)
    }
}

/// Where it stands.
#[must_use]
pub fn path(output: &Path) -> PathBuf {
    output.join(RUNS).join("health.json")
}
