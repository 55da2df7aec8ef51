//! `schedule next`: when each schedule is due next, in UTC and on its own clock.

use chrono::{DateTime, Utc};
use polars::prelude::*;

use super::{ScheduleError, read};
use crate::cli::ScheduleNext;
use crate::frame::Columns;
use crate::print::{Heading, heading};

/// Columns of the list on the terminal.
pub const HEADINGS: [Heading; 4] = [
    heading("schedule", "schedule"),
    heading("due_at", "due (UTC)"),
    heading("due_local", "on its clock"),
    heading("time_zone", "time zone"),
];

/// The next due nights of each schedule, the soonest first.
///
/// # Errors
/// When a schedule cannot be used.
pub fn next(args: &ScheduleNext, now: DateTime<Utc>) -> Result<DataFrame, ScheduleError> {
    let mut nights = Vec::new();
    for path in &args.files {
        let (schedule, due) = read(path)?;
        let mut from = args.after.unwrap_or(now);
        for _ in 0..args.count {
            let Some(at) = due.after(from) else { break };
            let local = at.with_timezone(&due.zone()).format("%a %Y-%m-%d %H:%M %Z").to_string();
            nights.push((at, schedule.name.clone(), local, due.zone().name()));
            from = at;
        }
    }
    nights.sort();
    let mut columns = Columns::new(nights.len());
    columns.texts("schedule", nights.iter().map(|(_, name, _, _)| Some(name.as_str())));
    columns.instants("due_at", nights.iter().map(|(at, _, _, _)| Some(*at)));
    columns.texts("due_local", nights.iter().map(|(_, _, local, _)| Some(local.as_str())));
    columns.texts("time_zone", nights.iter().map(|(_, _, _, zone)| Some(*zone)));
    Ok(columns.finish().expect("four columns of one length"))
}
