//! `schedule night`: one night as a schedule file says, for the timers of machines and for the service, which runs each night
//! as a process of its own.
//!
//! In: a schedule file and the clock. Out: a night as `collect` makes it, and a word about it in the schedule's ledger before
//! and after. Two of them on one dataset never run the same due night: the second finds the schedule's lock, or that the
//! night is over. Never lasts longer than the schedule says and a little more.

use std::path::Path;
use std::time::Duration;

use chrono::{DateTime, Utc};

use super::after::{Ended, after, after_death};
use super::args::ScheduleNight;
use super::decide::{Decision, Rules};
use super::ledger::{self, Ledger};
use super::{Schedule, Usable, read};
use crate::archive::{ArchiveError, clear_drafts};
use crate::cli::{Collect, Dataset};
use crate::exit::Exit;
use crate::failed::Failed;
use crate::night::{SnapshotId, second};
use crate::record::Scheduled;
use crate::report::{self, Said};
use crate::run::open_for_writing;
use crate::snapshot::{SnapshotError, journal, read as published};
use crate::{lock, log, remote};

/// After fetching has ended, what was had is read, judged and published; a night that needs longer than this for it is ended.
pub const GRACE_MINUTES: u64 = 10;

/// What a night that cannot be finished in time says.
#[derive(Debug, thiserror::Error)]
#[error("finish the night of schedule {name} within {minutes} minutes; it was ended, and nothing was published")]
struct TooLong {
    name: String,
    minutes: u64,
}

/// A night that is asked to end while it is being published gets so long for it.
pub const PUBLISHING: Duration = Duration::from_secs(45);

/// What a night that is asked to end says.
#[derive(Debug, thiserror::Error)]
#[error("finish the night of schedule {name}: it was asked to end, nothing was published, and it is still due")]
struct AskedToEnd {
    name: String,
}

/// How a night came to its end.
enum Came {
    /// By itself, or because it took too long.
    ToItsEnd(Result<Said, Failed>),
    /// To nothing: it is still due.
    ToNothing(Failed),
}

/// Runs one night.
///
/// # Errors
/// When the schedule cannot be used, another run holds the dataset, or the night cannot be run.
pub async fn night(args: &ScheduleNight) -> Result<Said, Failed> {
    let (schedule, due) = read(&args.file)?;
    let usable = Usable { path: args.file.clone(), schedule, due };
    let (schedule, output) = (&usable.schedule, usable.output());
    remote::prepare(&output).map_err(SnapshotError::Disk)?;
    let rules = Rules::of(schedule, usable.due.clone());
    let folder = ledger::folder(&output, &schedule.name);
    let lock = lock::take(&folder)?;
    clear_drafts(&folder).map_err(SnapshotError::Disk)?;
    let mut ledger = Ledger::read(&output, &schedule.name, Utc::now());
    if ledger.nights.iter().any(|night| !night.is_over()) {
        let snapshots = published::snapshots(&output).await?;
        ledger.settle(&output, &snapshots.iter().map(|snapshot| snapshot.id).collect::<Vec<_>>());
    }
    // Since when the schedule counts is written down even if nothing is due.
    ledger.keep(&output).map_err(SnapshotError::Disk)?;
    // Whoever holds the schedule's lock knows that no process runs a night of it, so one without an end has died.
    if ledger.last_untold().is_some() && !rules.is_to_be_run_again(&ledger, Utc::now()) {
        after_death(schedule, &output, &ledger).await;
    }
    if args.only_tell {
        return Ok(Said { data: String::new().into(), talk: None, exit: Exit::NothingDue });
    }
    let due = loop {
        match rules.decide(&ledger, Utc::now()) {
            Decision::Run { due_at, is_late } => break Some((due_at, is_late)),
            Decision::Wait { until } => pause_until(until).await,
            decision if args.if_due => return Ok(nothing_due(schedule, &rules, decision)),
            Decision::Nothing | Decision::Skipped { .. } => break None,
        }
    };
    let started_at = Utc::now();
    let snapshot = SnapshotId::at(started_at);
    let scheduled = due.map(|(due_at, is_late)| Scheduled { name: schedule.name.clone(), due_at, is_late });
    let is_late = due.is_some_and(|(_, is_late)| is_late);
    ledger.start(due.map(|(due_at, _)| due_at), is_late, started_at, &snapshot.to_string());
    ledger.keep(&output).map_err(SnapshotError::Disk)?;
    let night = match collected(schedule, &output, args.contact.clone(), snapshot, scheduled.clone()).await {
        Came::ToItsEnd(night) => night,
        Came::ToNothing(failed) => {
            ledger.take_back();
            ledger.keep(&output).map_err(SnapshotError::Disk)?;
            return Err(failed);
        }
    };
    let exit = night.as_ref().map_or_else(|failed| failed.exit, |said| said.exit);
    ledger.end(exit as u8, Utc::now());
    ledger.keep(&output).map_err(SnapshotError::Disk)?;
    drop(lock);
    let record = ledger::record_path(&output, snapshot);
    let (scheduled_as, record) = (scheduled.as_ref(), record.as_deref());
    let reason = night.as_ref().err().map(ToString::to_string);
    let reason = reason.as_deref();
    let talk = after(&Ended { schedule, output: &output, scheduled: scheduled_as, exit, snapshot, record, reason }).await;
    let mut said = night?;
    let late = scheduled.filter(|scheduled| scheduled.is_late);
    let late = late.map(|of| format!("late: this night was due at {}\n", second(of.due_at)));
    said.talk = Some([said.talk, late, talk].into_iter().flatten().collect::<String>()).filter(|talk| !talk.is_empty());
    Ok(said)
}

/// The night itself, ended when it takes too long.
async fn collected(
    schedule: &Schedule,
    output: &Path,
    contact: Option<String>,
    snapshot: SnapshotId,
    scheduled: Option<Scheduled>,
) -> Came {
    let longest = Duration::from_secs(60 * u64::from(schedule.longest_minutes));
    let args = Collect {
        dataset: Dataset { output: output.to_owned() },
        recorded: false,
        from: None,
        at: Some(snapshot.instant()),
        providers: schedule.providers.names().to_vec(),
        // Nobody is there who could agree to anything.
        accept_terms: Vec::new(),
        contact,
        max_minutes: Some(longest),
        scheduled,
    };
    // A task of its own, so that one that computes without end can be told from here that it is over.
    let mut night = tokio::spawn(async move { report::collect(&args).await });
    let limit = longest + Duration::from_secs(60 * GRACE_MINUTES);
    let ended = tokio::select! {
        ended = &mut night => Some(ended),
        () = tokio::time::sleep(limit) => None,
        () = asked_to_end(output) => {
            night.abort();
            let _ = tokio::time::timeout(Duration::from_secs(2), night).await;
            // What the night left behind goes now, if that can be, and else with the next one.
            let _ = open_for_writing(output).await;
            return Came::ToNothing(Failed::new(Exit::Refused, "", &AskedToEnd { name: schedule.name.clone() }));
        }
    };
    Came::ToItsEnd(match ended {
        // Another run writes to the dataset: this night never began.
        Some(Ok(Err(failed))) if failed.exit == Exit::Locked => return Came::ToNothing(failed),
        Some(Ok(night)) => night,
        Some(Err(error)) => Err(Failed::new(Exit::Bug, "run the night", &error)),
        None => {
            let minutes = u64::from(schedule.longest_minutes) + GRACE_MINUTES;
            Err(Failed::new(Exit::Refused, "", &TooLong { name: schedule.name.clone(), minutes }))
        }
    })
}

/// Comes back when the process is asked to end and may: a night that is being published is given a while to be whole.
async fn asked_to_end(output: &Path) {
    asked().await;
    let publishing = async {
        while is_publishing(output) {
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    };
    let _ = tokio::time::timeout(PUBLISHING, publishing).await;
}

/// Whether a list of files on the disk says that a run is publishing.
#[must_use]
pub fn is_publishing(output: &Path) -> bool {
    journal::left(output, None).is_ok_and(|left| left.iter().any(|list| list.is_held))
}

/// Comes back when a signal asks the process to end.
async fn asked() {
    #[cfg(unix)]
    {
        use tokio::signal::unix::{SignalKind, signal};
        let (Ok(mut terminate), Ok(mut interrupt)) = (signal(SignalKind::terminate()), signal(SignalKind::interrupt())) else {
            return std::future::pending().await;
        };
        tokio::select! { _ = terminate.recv() => {}, _ = interrupt.recv() => {} }
    }
    #[cfg(not(unix))]
    if tokio::signal::ctrl_c().await.is_err() {
        std::future::pending::<()>().await;
    }
}

/// Waits for a part of the way: the clock may be set meanwhile.
async fn pause_until(until: DateTime<Utc>) {
    let left = (until - Utc::now()).to_std().unwrap_or_default();
    tokio::time::sleep(left.clamp(Duration::from_millis(1), Duration::from_secs(30))).await;
}

fn nothing_due(schedule: &Schedule, rules: &Rules, decision: Decision) -> Said {
    let why = match decision {
        Decision::Skipped { due_at } => format!("the night that was due at {} was missed and is skipped", second(due_at)),
        _ => "nothing is due".to_owned(),
    };
    let next = rules.due.after(Utc::now()).map_or_else(|| "never".to_owned(), second);
    let said = format!("{}: {why}; the next night is due at {next}\n", schedule.name);
    // A timer asks hundreds of times a day, and nobody wants to read that; `schedule status` lists what was missed.
    Said { data: String::new().into(), talk: log::is_watched().then_some(said), exit: Exit::NothingDue }
}

/// Ends the words about a night whose process is gone, by whoever saw it go.
///
/// # Errors
/// When somebody else holds the schedule, or the disk refuses.
pub fn write_off(usable: &Usable, change: impl FnOnce(&mut Ledger)) -> Result<(), SnapshotError> {
    let (output, name) = (usable.output(), &usable.schedule.name);
    let _lock = lock::take(&ledger::folder(&output, name))?;
    let mut ledger = Ledger::read(&output, name, Utc::now());
    change(&mut ledger);
    let kept: Result<(), ArchiveError> = ledger.keep(&output);
    kept.map_err(SnapshotError::Disk)
}
