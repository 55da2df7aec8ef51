//! What follows a night that a schedule ran, however it ended. Nothing here changes how it ended.

use std::path::Path;

use super::Schedule;
use super::ledger::{Ledger, record_path};
use crate::alerts::{NightEnd, after_night};
use crate::cli::{Dataset, Prune};
use crate::exit::Exit;
use crate::night::SnapshotId;
use crate::prune::prune;
use crate::record::Scheduled;

/// A night that a schedule ran and that has ended.
#[derive(Debug, Clone, Copy)]
pub struct Ended<'a> {
    /// The schedule.
    pub schedule: &'a Schedule,
    /// Root of the dataset.
    pub output: &'a Path,
    /// The due night that it was; `None` for one that was started without being due.
    pub scheduled: Option<&'a Scheduled>,
    /// How it ended; a fault of the program where its process died or had to be ended.
    pub exit: Exit,
    /// The snapshot that it made or would have made.
    pub snapshot: SnapshotId,
    /// Its run record; `None` where it came to no outcome.
    pub record: Option<&'a Path>,
    /// Why it came to no outcome, where somebody could say so.
    pub reason: Option<&'a str>,
}

impl Ended<'_> {
    /// Whether the night is a published snapshot.
    #[must_use]
    pub const fn is_published(&self) -> bool {
        matches!(self.exit, Exit::Good | Exit::Partial)
    }
}

/// Does what the schedule asks for after a night, and says what came of it: whoever wants to know is told, and old pages go.
pub async fn after(ended: &Ended<'_>) -> Option<String> {
    tell(ended).await;
    retained(ended).await
}

/// Sees to a night that nothing more will come of: its process died, or was ended, and it is not started again. Nothing where
/// the last night is no such one. Twice does no harm: it is told once.
pub async fn after_death(schedule: &Schedule, output: &Path, ledger: &Ledger) -> Option<String> {
    let night = ledger.last_untold()?;
    let snapshot = night.snapshot_id.parse().ok()?;
    let scheduled = night.due_at.map(|due_at| Scheduled { name: schedule.name.clone(), due_at, is_late: night.is_late });
    let record = record_path(output, snapshot);
    let (scheduled, record) = (scheduled.as_ref(), record.as_deref());
    let reason = Some("its process died, or was ended because it took too long");
    let exit = if night.exit.is_some() { Exit::Refused } else { Exit::Bug };
    after(&Ended { schedule, output, scheduled, exit, snapshot, record, reason }).await
}

/// How each message went is a line of the log, and stands beside the night's record.
async fn tell(ended: &Ended<'_>) {
    let night = NightEnd {
        output: ended.output.to_owned(),
        schedule: ended.schedule.name.clone(),
        due_at: ended.scheduled.map_or_else(|| ended.snapshot.instant(), |scheduled| scheduled.due_at),
        exit: ended.exit,
        snapshot: Some(ended.snapshot),
        reason: ended.reason.map(str::to_owned),
    };
    after_night(&ended.schedule.alerts, &night).await;
}

/// Removes pages that are kept long enough, after a published night; never one that a published row points to.
async fn retained(ended: &Ended<'_>) -> Option<String> {
    let keep_days = ended.schedule.retention.keep_archive_days.filter(|_| ended.is_published())?;
    let dataset = Dataset { output: ended.output.to_owned() };
    let said = prune(&Prune { dataset, keep_days, dry_run: false, published_too: false }).await;
    Some(match said {
        Ok(said) => said.data.text().unwrap_or_default().to_owned(),
        Err(failed) => format!("{failed}; the night itself is published\n"),
    })
}
