//! `schedule check`: what each schedule does, in words that a person can hold against what they meant.

use std::fmt::Write as _;

use chrono::{DateTime, Utc};
use gpuledger_scrapers::manifest::TermsOfUse;

use super::args::ScheduleCheck;
use super::decide::ON_TIME_MINUTES;
use super::due::Due;
use super::night::GRACE_MINUTES;
use super::words::words;
use super::{Missed, Schedule, Usable, files, read};
use crate::deliver::why_not;
use crate::exit::Exit;
use crate::failed::Failed;
use crate::night::second;
use crate::remote;
use crate::report::Said;
use crate::run;

/// Explains each schedule, and says of each that cannot be why; then the exit code is that of a wrong command line.
///
/// # Errors
/// When there is no schedule.
pub fn check(args: &ScheduleCheck, now: DateTime<Utc>) -> Result<Said, Failed> {
    let mut data = String::new();
    let mut usable: Vec<Usable> = Vec::new();
    let mut refused = 0;
    for path in files(&args.files)? {
        let checked = read(&path).and_then(|(schedule, due)| {
            let one = Usable { path: path.clone(), schedule, due };
            one.is_apart_from(&usable).map(|()| one)
        });
        match checked {
            Ok(one) => {
                data.push_str(&explained(&one, now)?);
                usable.push(one);
            }
            Err(error) => {
                let error = Failed::from(error);
                let _ = writeln!(data, "{}: refused: {error}", path.display());
                refused += 1;
            }
        }
    }
    let talk = Some(format!("{} can be used, {refused} cannot\n", usable.len()));
    Ok(Said { data: data.into(), talk, exit: if refused == 0 { Exit::Good } else { Exit::Usage } })
}

/// An instant on the clock of a zone, and in UTC where that is another. `Tue 2026-12-01 02:00 CET (2026-12-01T01:00:00Z)`
#[must_use]
pub fn on_its_clock(at: DateTime<Utc>, due: &Due) -> String {
    let local = at.with_timezone(&due.zone()).format("%a %Y-%m-%d %H:%M %Z");
    if due.zone() == chrono_tz::UTC { local.to_string() } else { format!("{local} ({})", second(at)) }
}

fn explained(usable: &Usable, now: DateTime<Utc>) -> Result<String, Failed> {
    let Usable { path, schedule, due } = usable;
    let mut text = format!("{}: {}\n", path.display(), schedule.name);
    let mut line = |of: &str, says: String| {
        let _ = writeln!(text, "  {of:8}{says}");
    };
    line("due", when(schedule));
    let next = due.after(now).map_or_else(|| "never in this century".to_owned(), |at| on_its_clock(at, due));
    let delay = match schedule.jitter_minutes {
        0 => String::new(),
        minutes => format!(", started up to {} later, each machine at a moment of its own", counted(minutes, "minute")),
    };
    line("next", format!("{next}{delay}"));
    for says in asked(schedule)? {
        line("asks", says);
    }
    line("writes", format!("to {}", remote::shown(&usable.output())));
    line(
        "lasts",
        format!(
            "{} at most; what was not had by then is missing that night; ended for good {GRACE_MINUTES} minutes later",
            counted(schedule.longest_minutes, "minute")
        ),
    );
    line(
        "missed",
        match schedule.missed {
            Missed::RunOnce => {
                "a missed night runs once as soon as it can and is marked late; of several that were missed only the newest"
                    .to_owned()
            }
            Missed::Skip => format!("a night that cannot start within {ON_TIME_MINUTES} minutes of its time is skipped"),
        },
    );
    line(
        "keeps",
        match schedule.retention.keep_archive_days {
            Some(days) => {
                format!("pages that no published night needs for {}; those of published nights always", counted(days, "day"))
            }
            None => "every page".to_owned(),
        },
    );
    Ok(text)
}

/// `1 minute`, `60 minutes`
fn counted(number: impl std::fmt::Display, of: &str) -> String {
    let number = number.to_string();
    let plural = if number == "1" { "" } else { "s" };
    format!("{number} {of}{plural}")
}

fn when(schedule: &Schedule) -> String {
    match words(&schedule.cron) {
        Some(words) => format!("{words}, {} time (`{}`)", schedule.time_zone, schedule.cron),
        None => format!("as `{}` says, {} time; `gpuledger schedule next` lists the nights", schedule.cron, schedule.time_zone),
    }
}

/// Who is asked, who would be if there were a key, and who is left out.
fn asked(schedule: &Schedule) -> Result<Vec<String>, Failed> {
    let scrapers = run::providers(schedule.providers.names())?;
    let (mut asked, mut without_key, mut left_out) = (Vec::new(), Vec::new(), Vec::new());
    for scraper in scrapers {
        let manifest = scraper.manifest();
        let name = manifest.provider.as_str();
        if manifest.terms == TermsOfUse::Restricted {
            left_out.push(name);
        } else if why_not(scraper, &[]).is_some() {
            without_key.push(format!("{name} ({})", manifest.fetch.key_env.as_deref().unwrap_or_default()));
        } else {
            asked.push(name);
        }
    }
    let mut lines = vec![format!("{}: {}", counted(asked.len(), "provider"), asked.join(", "))];
    if !without_key.is_empty() {
        lines.push(format!("with their keys, which are not in this environment, also: {}", without_key.join(", ")));
    }
    if !left_out.is_empty() {
        lines.push(format!("never, because their terms restrict reading by machine: {}", left_out.join(", ")));
    }
    Ok(lines)
}
