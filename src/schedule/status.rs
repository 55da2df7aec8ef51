//! `schedule status`: the last nights of each schedule, the due instants that have none, and the next one.

use std::path::Path;

use chrono::{DateTime, Utc};
use serde::Deserialize;

use super::args::ScheduleStatus;
use super::decide::{ON_TIME_MINUTES, Rules};
use super::ledger::{self, Ledger, LedgerNight};
use super::{Usable, read_all};
use crate::archive::read_json;
use crate::exit::Exit;
use crate::failed::Failed;
use crate::frame::Columns;
use crate::lock;
use crate::print::{self, Heading, heading};
use crate::record::RUNS;
use crate::remote;
use crate::report::Said;
use crate::snapshot::SnapshotError;

/// Columns of the list on the terminal.
pub const HEADINGS: [Heading; 8] = [
    heading("schedule", "schedule"),
    heading("due_at", "due (UTC)"),
    heading("night", "night"),
    heading("started_at", "started"),
    heading("seconds", "seconds"),
    heading("exit", "exit"),
    heading("offers", "offers"),
    heading("snapshot_id", "snapshot"),
];

/// What is said of a due instant that has no night.
const GAP: &str = "none";

/// One line.
#[derive(Debug)]
struct Line {
    schedule: String,
    due_at: Option<DateTime<Utc>>,
    night: String,
    of: Option<LedgerNight>,
    offers: Option<i64>,
}

/// As much of a run record as is told here.
#[derive(Debug, Deserialize)]
struct Counted {
    offers: i64,
}

/// What `schedule status` says.
///
/// # Errors
/// When a schedule cannot be used.
pub fn status(args: &ScheduleStatus, now: DateTime<Utc>) -> Result<Said, Failed> {
    let count = usize::try_from(args.count).unwrap_or(usize::MAX);
    let schedules = read_all(&args.files)?;
    for usable in &schedules {
        remote::prepare(&usable.output()).map_err(SnapshotError::Disk)?;
    }
    let lines: Vec<Line> = schedules.iter().flat_map(|usable| lines(usable, count, now)).collect();
    let gaps = lines.iter().filter(|line| line.night == GAP).count();
    let mut columns = Columns::new(lines.len());
    let night = |line: &Line| line.of.clone();
    columns.texts("schedule", lines.iter().map(|line| Some(line.schedule.as_str())));
    columns.instants("due_at", lines.iter().map(|line| line.due_at));
    columns.texts("night", lines.iter().map(|line| Some(line.night.as_str())));
    columns.truths("is_late", lines.iter().map(|line| night(line).map(|night| night.is_late)));
    columns.instants("started_at", lines.iter().map(|line| night(line).map(|night| night.started_at)));
    columns.longs(
        "seconds",
        lines.iter().map(|line| night(line).and_then(|night| Some((night.ended_at? - night.started_at).num_seconds()))),
    );
    columns.longs("exit", lines.iter().map(|line| night(line).and_then(|night| night.exit).map(i64::from)));
    columns.longs("offers", lines.iter().map(|line| line.offers));
    columns.strings("snapshot_id", lines.iter().map(|line| line.offers.and(night(line)).map(|night| night.snapshot_id)));
    let data = print::rows(&columns.finish()?, &HEADINGS, args.printing.format)?;
    let talk = (gaps > 0).then(|| format!("{gaps} of the due instants have no night\n"));
    Ok(Said { data, talk, exit: Exit::Good })
}

/// The newest nights and gaps of a schedule, oldest first, and the next night.
fn lines(usable: &Usable, count: usize, now: DateTime<Utc>) -> Vec<Line> {
    let (output, name) = (usable.output(), usable.schedule.name.clone());
    let rules = Rules::of(&usable.schedule, usable.due.clone());
    let ledger = Ledger::read(&output, &name, now);
    let is_held = lock::holder(&ledger::folder(&output, &name)).is_ok_and(|holder| holder.is_some());
    let mut lines: Vec<Line> = ledger
        .nights
        .iter()
        .map(|night| Line {
            schedule: name.clone(),
            due_at: night.due_at,
            night: told(night, is_held),
            offers: offers(&output, &night.snapshot_id),
            of: Some(night.clone()),
        })
        .collect();
    let mut last = usable.due.last_until(now);
    for _ in 0..count {
        let Some(due_at) = last.filter(|due_at| *due_at > ledger.since) else { break };
        if ledger.of(due_at).is_none() {
            // The newest may still come.
            let is_to_come = now < rules.starts_at(due_at) + chrono::TimeDelta::minutes(ON_TIME_MINUTES);
            let night = if is_to_come { "due now" } else { GAP };
            lines.push(Line { schedule: name.clone(), due_at: Some(due_at), night: night.to_owned(), of: None, offers: None });
        }
        last = usable.due.last_until(due_at - chrono::TimeDelta::seconds(1));
    }
    lines.sort_by_key(|line| line.due_at.or_else(|| line.of.as_ref().map(|night| night.started_at)));
    lines.drain(..lines.len().saturating_sub(count));
    if let Some(next) = usable.due.after(now) {
        lines.push(Line { schedule: name, due_at: Some(next), night: "next".to_owned(), of: None, offers: None });
    }
    lines
}

/// How a night went, in a few words.
fn told(night: &LedgerNight, is_held: bool) -> String {
    let mut words = match (night.exit, &night.note) {
        _ if !night.is_over() && is_held => "runs now".to_owned(),
        _ if !night.is_over() && night.starts == 1 => "its process died".to_owned(),
        _ if !night.is_over() => format!("its process died {} times", night.starts),
        (_, Some(note)) => note.clone(),
        (Some(0), None) => "published".to_owned(),
        (Some(10), None) => "published, not complete".to_owned(),
        (Some(11), None) => "refused".to_owned(),
        (_, None) => "failed".to_owned(),
    };
    if night.is_late {
        words.push_str(", late");
    }
    if night.due_at.is_none() {
        words.push_str(", not due");
    }
    words
}

/// Offers that a night's record counts.
fn offers(output: &Path, snapshot_id: &str) -> Option<i64> {
    let counted: Option<Counted> = read_json(&output.join(RUNS).join(format!("{snapshot_id}.json"))).ok()?;
    counted.map(|counted| counted.offers)
}
