//! When a night is due: `schedules/*.toml`, a cron expression in a time zone.
//!
//! In: a file and a clock. Out: instants. Never starts a night, and never guesses what a key means: one that is not known is
//! refused with its place.

pub mod due;
pub mod install;
pub mod next;

use std::path::{Path, PathBuf};

use serde::Deserialize;

use due::{Due, DueError};

/// A schedule file.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Schedule {
    /// What it is called.
    pub name: String,
    /// Five fields of a crontab, or a nickname such as `@daily`.
    pub cron: String,
    /// IANA name of the zone whose clock the expression means. `Europe/Berlin`
    pub time_zone: String,
    /// Which providers are asked.
    pub providers: Providers,
    /// Root of the dataset.
    pub output: PathBuf,
    /// Minutes after which a night is ended.
    pub longest_minutes: u32,
}

/// Which providers a schedule asks.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(untagged, expecting = "`providers` is \"all\" or a list of names")]
pub enum Providers {
    /// One word.
    Word(Every),
    /// Their names.
    Named(Vec<String>),
}

/// All providers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Every {
    /// Every one that needs no agreement.
    All,
}

/// Why a schedule file cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum ScheduleError {
    /// The disk said no.
    #[error("read schedule {}", path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// What it said.
        #[source]
        source: std::io::Error,
    },
    /// It is not what a schedule looks like.
    #[error("read schedule {}: {reason}", path.display())]
    NotASchedule {
        /// The file.
        path: PathBuf,
        /// Line, column and reason.
        reason: String,
    },
    /// The expression or the zone cannot be used.
    #[error("use `{field}` of schedule {}", path.display())]
    NeverDue {
        /// The file.
        path: PathBuf,
        /// The key.
        field: &'static str,
        /// Why.
        #[source]
        source: DueError,
    },
}

/// Reads a schedule file.
///
/// # Errors
/// When it cannot be read, has an unknown key, or is never due.
pub fn read(path: &Path) -> Result<(Schedule, Due), ScheduleError> {
    let text = std::fs::read_to_string(path).map_err(|source| ScheduleError::Unreadable { path: path.to_owned(), source })?;
    parse(&text, path)
}

/// Reads the text of a schedule file.
///
/// # Errors
/// As [`read`].
pub fn parse(text: &str, path: &Path) -> Result<(Schedule, Due), ScheduleError> {
    let schedule: Schedule = toml::from_str(text)
        .map_err(|error| ScheduleError::NotASchedule { path: path.to_owned(), reason: in_one_line(&error) })?;
    let due = Due::new(&schedule.cron, &schedule.time_zone).map_err(|source| ScheduleError::NeverDue {
        path: path.to_owned(),
        field: if matches!(source, DueError::UnknownZone { .. }) { "time_zone" } else { "cron" },
        source,
    })?;
    Ok((schedule, due))
}

/// Place and reason, without the picture between them.
fn in_one_line(error: &toml::de::Error) -> String {
    let told = error.to_string();
    told.lines().filter(|line| !line.contains(" |")).collect::<Vec<_>>().join(": ")
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const NIGHTLY: &str = include_str!("../../schedules/nightly.toml");

    fn parsed(text: &str) -> Result<(Schedule, Due), ScheduleError> {
        parse(text, Path::new("schedules/nightly.toml"))
    }

    fn error(text: &str) -> String {
        let error = parsed(text).expect_err("it cannot be used");
        std::error::Error::source(&error).map_or_else(|| error.to_string(), |source| format!("{error}: {source}"))
    }

    #[test]
    fn the_schedule_in_the_tree_is_every_night_at_two() {
        let (schedule, due) = parsed(NIGHTLY).expect("it is a schedule");
        assert_eq!(schedule.providers, Providers::Word(Every::All));
        let after = "2026-11-30T12:00:00Z".parse().expect("an instant");
        assert_eq!(due.after(after).map(|at| at.to_rfc3339()), Some("2026-12-01T02:00:00+00:00".to_owned()));
    }

    #[test]
    fn a_key_that_nobody_knows_is_refused_with_its_line() {
        let text = NIGHTLY.replace("longest_minutes", "longest_seconds");
        let line = text.lines().position(|line| line.starts_with("longest")).expect("it is there") + 1;
        let told = error(&text);
        assert!(told.contains(&format!("line {line}, column 1")) && told.contains("longest_seconds"), "{told}");
    }

    proptest! {
        #[test]
        fn any_text_is_a_schedule_or_refused(lines in prop::collection::vec("(name|cron|time_zone|providers|output|longest_minutes|[a-z]{0,4}) ?=? ?(\"[-0-9*/ a-zA-Z@]{0,12}\"|[0-9-]{0,12}|\\[\"a\"\\]|\\PC{0,8})", 0..8)) {
            let _ = parsed(&lines.join("\n"));
        }
    }

    #[test]
    fn a_zone_or_an_expression_that_does_not_exist_is_named() {
        let told = error(&NIGHTLY.replace("\"UTC\"", "\"Europe/Atlantis\""));
        assert!(told.contains("`time_zone`") && told.contains("Europe/Atlantis"), "{told}");
        let told = error(&NIGHTLY.replace("0 2 * * *", "0 25 * * *"));
        assert!(told.contains("`cron`") && told.contains("0 25 * * *"), "{told}");
        let told = error(&NIGHTLY.replace("\"all\"", "\"some\""));
        assert!(told.contains("line 5, column 13") && told.contains("\"all\" or a list of names"), "{told}");
    }
}
