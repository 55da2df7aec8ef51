//! A night that is over → what is told of it.
//!
//! Every published night since the last one that was told is looked at, so a run that died after it published, or a night
//! that somebody collected by hand, is told too. Only real price changes count: see [`crate::changes`].

use super::NightEnd;
use super::config::{Alerts, Kind};
use super::message::{Alert, ChangeData, LINES_MAX};
use super::spool::{Spool, SpoolError};
use crate::changes::{self, PriceChange};
use crate::exit::Exit;
use crate::night::{SnapshotId, second};
use crate::runs;
use crate::snapshot::SnapshotError;
use crate::snapshot::read::{self, Snapshot};

/// Most nights whose price changes are told at once.
const NIGHTS_MAX: usize = 7;

/// Why a night could not be told.
#[derive(Debug, thiserror::Error)]
pub enum AlertsError {
    /// The list of what waits could not be used.
    #[error("tell the night")]
    Spool(#[from] SpoolError),
    /// The tables could not be read.
    #[error("find out what changed in the night")]
    Dataset(#[from] SnapshotError),
    /// The HTTP client could not be set up.
    #[error("set up the HTTP client for alerts: {0}")]
    Client(String),
}

/// What is to be told of a night. The spool remembers it as told.
pub(super) async fn out(alerts: &Alerts, night: &NightEnd, spool: &mut Spool) -> Result<Vec<Alert>, AlertsError> {
    let mut told = Vec::new();
    if alerts.tells(Kind::FailedNight) && has_failed(night.exit) {
        let id = format!("gpuledger/{}/{}/failed_night", night.schedule, second(night.due_at));
        if spool.is_first(&id) {
            told.push(failed(night, id));
        }
    }
    match of_tables(alerts, night, spool).await {
        Ok(more) => told.extend(more),
        // A night fails because the dataset cannot be read; that must not keep anybody from being told so.
        Err(error) if told.is_empty() => return Err(error),
        Err(error) => crate::log::warn("alerts_failed", &crate::failed::Failed::new(night.exit, "", &error).to_string()),
    }
    Ok(told)
}

/// Whether nothing came of a night that should have.
const fn has_failed(exit: Exit) -> bool {
    !matches!(exit, Exit::Good | Exit::Partial | Exit::NothingDue)
}

async fn of_tables(alerts: &Alerts, night: &NightEnd, spool: &mut Spool) -> Result<Vec<Alert>, AlertsError> {
    // Histories that somebody else kept are no news.
    let snapshots = read::collected(&night.output).await?;
    let nights = to_tell(&snapshots, spool.told_through(), night.snapshot);
    let Some(newest) = nights.last() else { return Ok(Vec::new()) };
    let mut told = Vec::new();
    if alerts.tells(Kind::PriceChanges) {
        for snapshot in &nights {
            let changes = changes::of_night(&night.output, &snapshots, snapshot).await?;
            told.extend(price_changes(alerts, &night.schedule, snapshot.id, changes));
        }
    }
    if alerts.tells(Kind::MissingProvider) {
        let missing = changes::missing(&night.output, &snapshots, newest, alerts.missing_nights.0).await?;
        let mut lines = Vec::new();
        for gone in missing {
            // Once for each time that it stays away.
            if spool.is_first(&format!("missing/{}/{}", gone.provider, gone.last_seen.original())) {
                let (provider, nights, last) = (gone.provider, gone.nights, gone.last_seen);
                lines.push(format!("{provider}: not in the last {nights} nights, last in {last}: {}", gone.reason));
            }
        }
        if !lines.is_empty() {
            let title = match lines.len() {
                1 => format!("a provider is missing since {} nights or more", alerts.missing_nights.0),
                several => format!("{several} providers are missing since {} nights or more", alerts.missing_nights.0),
            };
            let id = format!("gpuledger/{}/{}/missing_provider", night.schedule, newest.id);
            told.push(Alert::new(id, Kind::MissingProvider, (&night.schedule, &newest.id.to_string()), &title, lines));
        }
    }
    spool.told_through = Some(newest.id.to_string());
    Ok(told)
}

/// The nights that were not told yet, oldest first; of a schedule that tells for the first time, tonight alone.
fn to_tell(snapshots: &[Snapshot], told_through: Option<SnapshotId>, tonight: Option<SnapshotId>) -> Vec<Snapshot> {
    let is_new = |snapshot: &&&Snapshot| match told_through {
        Some(through) => snapshot.id > through && !snapshot.id.is_same_night(through),
        None => tonight.is_some_and(|tonight| snapshot.id.is_same_night(tonight)),
    };
    let newest = read::newest_of_each_night(snapshots);
    let nights: Vec<Snapshot> = newest.iter().filter(is_new).map(|night| (*night).clone()).collect();
    nights[nights.len().saturating_sub(NIGHTS_MAX)..].to_vec()
}

fn price_changes(alerts: &Alerts, schedule: &str, night: SnapshotId, changes: Vec<PriceChange>) -> Option<Alert> {
    let is_told = |change: &PriceChange| {
        // What cannot be compared is no small change.
        change.change_percent.is_none_or(|percent| percent.abs() >= alerts.threshold_percent(&change.provider, &change.gpu_model))
    };
    let mut changes: Vec<PriceChange> = changes.into_iter().filter(is_told).collect();
    let first = changes.first()?.clone();
    let size = |change: &PriceChange| change.change_percent.map_or(f64::INFINITY, f64::abs);
    // Those of a market move every night and come last. The sort is stable: equals stay in order of provider and place.
    changes.sort_by(|a, b| a.is_of_market().cmp(&b.is_of_market()).then(size(b).total_cmp(&size(a))));
    let lines: Vec<String> =
        changes.iter().map(|change| format!("{}: {}: {}", change.provider, change.what(), change.how())).collect();
    let count = |is: fn(f64) -> bool| changes.iter().filter(|change| change.change_percent.is_some_and(is)).count();
    let (down, up) = (count(|percent| percent < 0.0), count(|percent| percent > 0.0));
    let title = match changes.len() {
        1 => format!("one price of {} changed in the night of {night}", first.provider),
        several => format!("{several} prices changed in the night of {night}: {down} down, {up} up"),
    };
    let id = format!("gpuledger/{schedule}/{night}/price_changes");
    let mut alert = Alert::new(id, Kind::PriceChanges, (schedule, &night.to_string()), &title, lines);
    alert.changes = changes.iter().take(LINES_MAX).map(ChangeData::of).collect();
    Some(alert)
}

fn failed(night: &NightEnd, id: String) -> Alert {
    let due = second(night.due_at);
    let title = format!("the night of schedule {} that was due at {due} published nothing", night.schedule);
    let mut lines = vec![format!("exit code {}: {}", night.exit as u8, night.exit.meaning())];
    lines.extend(night.reason.clone());
    let run = night.snapshot.and_then(|id| runs::read(&night.output, id).ok().flatten()).filter(|run| run.outcome == "refused");
    for provider in run.iter().flat_map(|run| &run.providers).filter(|provider| provider.status != "complete") {
        let reason = provider.reason.as_deref().unwrap_or("no reason recorded");
        lines.push(format!("{}: {}: {reason}", provider.provider, provider.status));
    }
    let about = night.snapshot.map_or(due, |id| id.to_string());
    Alert::new(id, Kind::FailedNight, (&night.schedule, &about), &title, lines)
}
