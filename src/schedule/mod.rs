//! Nights that nobody watches: `schedules/*.toml`, a cron expression in a time zone, and the programs that run them.
//!
//! In: a file, a clock, and what is written down of earlier nights. Out: instants, and one night for each of them. Never
//! guesses what a key means: one that is not known is refused with its place. Never runs a provider whose terms restrict
//! reading by machine: nobody is there who could agree.

pub mod after;
pub mod args;
pub mod check;
pub mod decide;
pub mod due;
pub mod health;
pub mod install;
pub mod keeper;
pub mod ledger;
pub mod next;
pub mod night;
pub mod service;
pub mod status;
mod values;
pub mod words;

use std::path::{Path, PathBuf};

use chrono::{DateTime, TimeDelta, Utc};
use serde::Deserialize;

use crate::alerts::Alerts;
use crate::remote::{self, AddressError};
use due::{Due, DueError};

/// So many due instants are looked at to know how close to each other they come: more than there are in an hour.
const LOOKED_AT: usize = 100;

/// A schedule file.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Schedule {
    /// What it is called: letters, digits, `-` and `_`. Its nights are written down under this name.
    #[serde(deserialize_with = "values::name")]
    pub name: String,
    /// Five fields of a crontab, or a nickname such as `@daily`.
    pub cron: String,
    /// IANA name of the zone whose clock the expression means. `Europe/Berlin`
    pub time_zone: String,
    /// Which providers are asked.
    #[serde(deserialize_with = "values::providers")]
    pub providers: Providers,
    /// Root of the dataset.
    pub output: PathBuf,
    /// Minutes after which fetching ends; the night itself is ended a little later.
    #[serde(deserialize_with = "values::minutes")]
    pub longest_minutes: u32,
    /// A night starts up to so many minutes after it is due, so that not everybody asks at the same second.
    #[serde(default)]
    pub jitter_minutes: u32,
    /// What is done about a night that was not run when it was due.
    #[serde(default)]
    pub missed: Missed,
    /// How long pages are kept.
    #[serde(default)]
    pub retention: Retention,
    /// Who is told.
    #[serde(default)]
    pub alerts: Alerts,
}

/// What is done about a night that was not run when it was due.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Missed {
    /// One night is run as soon as that is possible, however many were missed, and marked late.
    #[default]
    RunOnce,
    /// Nothing; the next night is the next due one.
    Skip,
}

/// How long pages are kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Retention {
    /// After a published night, pages older than so many days go, unless a published row points to them.
    #[serde(default, deserialize_with = "values::days")]
    pub keep_archive_days: Option<u32>,
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

impl Providers {
    /// The names for `collect`, which takes none for all.
    #[must_use]
    pub fn names(&self) -> &[String] {
        match self {
            Self::Word(Every::All) => &[],
            Self::Named(names) => names,
        }
    }
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
    /// The dataset cannot be had.
    #[error("use `output` of schedule {}", path.display())]
    NoDataset {
        /// The file.
        path: PathBuf,
        /// Why.
        #[source]
        source: AddressError,
    },
    /// A night could start only after the next one is due.
    #[error("use `jitter_minutes` of schedule {}: nights are due as close as {gap_minutes} minutes, so fewer than that", path.display())]
    JitterTooLong {
        /// The file.
        path: PathBuf,
        /// Shortest time between two due nights.
        gap_minutes: i64,
    },
    /// There is no schedule to be had.
    #[error("find a schedule in {}: there is no *.toml", folder.display())]
    NoneThere {
        /// The folder.
        folder: PathBuf,
    },
    /// Two schedules would write their nights down in one place.
    #[error("tell schedules {} and {} apart: both are called `{name}` and write to {}", first.display(), second.display(), output.display())]
    SameName {
        /// One file.
        first: PathBuf,
        /// The other.
        second: PathBuf,
        /// Their name.
        name: String,
        /// Their dataset.
        output: PathBuf,
    },
}

impl From<ScheduleError> for crate::failed::Failed {
    fn from(error: ScheduleError) -> Self {
        let failed = Self::new(crate::exit::Exit::Usage, "", &error);
        match error {
            ScheduleError::NoDataset { source, .. } => failed.with_help(&source.help()),
            _ => failed,
        }
    }
}

/// A schedule that can be used.
#[derive(Debug, Clone)]
pub struct Usable {
    /// Where it stands.
    pub path: PathBuf,
    /// What it says.
    pub schedule: Schedule,
    /// When it is due.
    pub due: Due,
}

/// The schedule files that a command line means: files as they are, and of folders what ends in `.toml`, in order.
///
/// # Errors
/// When a folder cannot be read or has none.
pub fn files(named: &[PathBuf]) -> Result<Vec<PathBuf>, ScheduleError> {
    let mut files = Vec::new();
    for path in named {
        if !path.is_dir() {
            files.push(path.clone());
            continue;
        }
        let unreadable = |source| ScheduleError::Unreadable { path: path.clone(), source };
        let entries = std::fs::read_dir(path).and_then(Iterator::collect::<Result<Vec<_>, _>>).map_err(unreadable)?;
        let mut found: Vec<PathBuf> = entries.into_iter().map(|entry| entry.path()).collect();
        found.retain(|path| path.extension().is_some_and(|extension| extension == "toml"));
        found.sort();
        if found.is_empty() {
            return Err(ScheduleError::NoneThere { folder: path.clone() });
        }
        files.extend(found);
    }
    Ok(files)
}

/// Reads all schedules that a command line means.
///
/// # Errors
/// When one of them cannot be used, or two of one name write to one dataset.
pub fn read_all(named: &[PathBuf]) -> Result<Vec<Usable>, ScheduleError> {
    let mut all: Vec<Usable> = Vec::new();
    for path in files(named)? {
        let (schedule, due) = read(&path)?;
        let usable = Usable { path, schedule, due };
        usable.is_apart_from(&all)?;
        all.push(usable);
    }
    Ok(all)
}

impl Usable {
    /// The dataset's folder, the same for all who mean it.
    #[must_use]
    pub fn output(&self) -> PathBuf {
        std::path::absolute(&self.schedule.output).unwrap_or_else(|_| self.schedule.output.clone())
    }

    /// Whether no other schedule has its name and its dataset.
    ///
    /// # Errors
    /// When one has.
    pub fn is_apart_from(&self, others: &[Self]) -> Result<(), ScheduleError> {
        let is_same = |other: &&Self| other.schedule.name == self.schedule.name && other.output() == self.output();
        match others.iter().find(is_same) {
            None => Ok(()),
            Some(other) => Err(ScheduleError::SameName {
                first: other.path.clone(),
                second: self.path.clone(),
                name: self.schedule.name.clone(),
                output: self.output(),
            }),
        }
    }
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
    let mut schedule: Schedule = toml::from_str(text)
        .map_err(|error| ScheduleError::NotASchedule { path: path.to_owned(), reason: in_one_line(&error) })?;
    schedule.output =
        remote::folder_of(&schedule.output).map_err(|source| ScheduleError::NoDataset { path: path.to_owned(), source })?;
    let due = Due::new(&schedule.cron, &schedule.time_zone).map_err(|source| ScheduleError::NeverDue {
        path: path.to_owned(),
        field: if matches!(source, DueError::UnknownZone { .. }) { "time_zone" } else { "cron" },
        source,
    })?;
    if schedule.jitter_minutes > 0
        && let Some(gap) = shortest_gap(&due)
        && TimeDelta::minutes(i64::from(schedule.jitter_minutes)) >= gap
    {
        return Err(ScheduleError::JitterTooLong { path: path.to_owned(), gap_minutes: gap.num_minutes() });
    }
    Ok((schedule, due))
}

/// Shortest time between two of the due instants of a while.
fn shortest_gap(due: &Due) -> Option<TimeDelta> {
    let mut last = DateTime::<Utc>::UNIX_EPOCH + TimeDelta::days(20_000);
    let mut shortest: Option<TimeDelta> = None;
    for index in 0..LOOKED_AT {
        let next = due.after(last)?;
        if index > 0 {
            shortest = Some(shortest.map_or(next - last, |shortest| shortest.min(next - last)));
        }
        last = next;
    }
    shortest
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

    #[test]
    fn what_a_schedule_may_say_is_read_and_what_it_does_not_say_is_the_usual() {
        let (plain, _) = parsed(NIGHTLY).expect("it is a schedule");
        assert_eq!((plain.missed, plain.jitter_minutes, plain.retention.keep_archive_days), (Missed::RunOnce, 0, None));
        let text = format!("{NIGHTLY}jitter_minutes = 10\nmissed = \"skip\"\n[retention]\nkeep_archive_days = 90\n[alerts]\n");
        let (full, _) = parsed(&text).expect("it is a schedule");
        assert_eq!((full.missed, full.jitter_minutes, full.retention.keep_archive_days), (Missed::Skip, 10, Some(90)));
    }

    #[test]
    fn a_schedule_that_cannot_be_is_refused_with_its_place() {
        for (from, to, place, words) in [
            ("name = \"nightly\"", "name = \"../etc\"", "line 2, column 8", "letters of English"),
            ("longest_minutes = 60", "longest_minutes = 0", "line 7, column 19", "1 to 10080 minutes"),
            ("\"all\"", "[]", "line 5, column 13", "no provider is none"),
            ("\"all\"", "[\"acme\"]", "line 5, column 13", "no provider `acme`"),
            ("\"all\"", "[\"lambda\", \"lambda\"]", "line 5, column 13", "twice"),
            ("longest_minutes = 60", "longest_minutes = 60\nmissed = \"later\"", "line 8, column 10", "run_once"),
            (
                "longest_minutes = 60",
                "longest_minutes = 60\n[retention]\nkeep_archive_days = 0",
                "line 9, column 21",
                "1 day or more",
            ),
            ("longest_minutes = 60", "longest_minutes = 60\n[retention]\nkeep_days = 9", "line 9, column 1", "keep_days"),
        ] {
            let told = error(&NIGHTLY.replace(from, to));
            assert!(told.contains(place) && told.contains(words), "{told}");
        }
        let told = error(&NIGHTLY.replace("0 2 * * *", "*/15 * * * *").replace("60", "60\njitter_minutes = 15"));
        assert!(told.contains("`jitter_minutes`") && told.contains("as close as 15 minutes"), "{told}");
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
