//! `schedule install`: a schedule file → ready files for systemd, cron, GitHub Actions or Kubernetes.
//!
//! In: a schedule file, and where the program and the dataset are. Out: texts, each with the place that it belongs to. The
//! templates stand beside this file. All of them wake the program more often than a night is due and leave the decision to
//! `schedule night --if-due`, so the schedule stands in one place and a change of the clock, a machine that was off and a
//! night that found the dataset locked are all dealt with by the program. What goes into a text for a shell or a manager is
//! held against a short list of characters; nothing is quoted and nothing is guessed.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::path::Path;

use chrono::{DateTime, Days, TimeDelta, Timelike as _, Utc};

use super::due::Due;
use super::{Schedule, ScheduleError, read};
use crate::archive::{ArchiveError, write_whole};
use crate::cli::ScheduleInstall;
use crate::exit::Exit;
use crate::remote;
use crate::report::{Failed, Said};

/// Minutes that a night may take beyond the longest that its schedule gives to fetching: for waiting, reading, publishing.
const MINUTES_BEYOND: u32 = 120;

/// Longest name of a unit, so that what a manager adds to it still fits into its own limits.
const NAME_MAX: usize = 40;

/// Minutes after a due time at which GitHub is asked to start: at full hours it leaves runs out.
const ACTIONS_DELAY_MINUTES: i64 = 7;

/// Hours until GitHub is asked once more.
const ACTIONS_AGAIN_HOURS: i64 = 3;

/// Longest that GitHub lets a job run.
const ACTIONS_MINUTES_MAX: u32 = 360;

/// A file to put in place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ready {
    /// The folder that it belongs into.
    pub folder: &'static str,
    /// Its name.
    pub name: String,
    /// What stands in it.
    pub text: String,
}

/// Why no files can be made.
#[derive(Debug, thiserror::Error)]
pub enum InstallError {
    /// The schedule file cannot be used.
    #[error("read the schedule")]
    Schedule(#[from] ScheduleError),
    /// Something cannot be written into such a file as it is.
    #[error("write {what} `{value}` into a file for another program: it may have letters, digits and . _ - / @ + : alone")]
    NotPlain {
        /// What it is. `the path of the schedule`
        what: &'static str,
        /// What was given.
        value: String,
    },
    /// A path of this machine, where there is only a repository.
    #[error("write {what} `{value}` into a workflow: there it has to begin at the root of the repository, without a / in front")]
    NotInRepository {
        /// What it is.
        what: &'static str,
        /// What was given.
        value: String,
    },
    /// The templates know datasets on a disk alone.
    #[error("write files for a schedule whose dataset is {url}: they give their user a folder to write to")]
    OnStore {
        /// The dataset.
        url: String,
    },
    /// The disk refused.
    #[error("write the files")]
    Disk(#[from] ArchiveError),
}

impl From<InstallError> for Failed {
    fn from(error: InstallError) -> Self {
        let (exit, help) = match &error {
            InstallError::Schedule(_) => (Exit::Usage, "mend the schedule file first"),
            InstallError::NotPlain { .. } | InstallError::NotInRepository { .. } => (Exit::Usage, "name another path or user"),
            InstallError::OnStore { .. } => {
                (Exit::Usage, "have `gpuledger schedule night FILE --if-due` started with the store's keys in its environment")
            }
            InstallError::Disk(_) => (Exit::Refused, "leave --into out to print the files"),
        };
        Self::new(exit, "", &error).with_help(help)
    }
}

/// Prints the files, or writes them into a folder.
///
/// # Errors
/// When the schedule cannot be used, something cannot stand in such a file, or the disk refuses.
pub fn install(args: &ScheduleInstall, now: DateTime<Utc>) -> Result<Said, Failed> {
    let files = files(args, now)?;
    let mut data = String::new();
    for file in &files {
        match &args.into {
            Some(folder) => {
                let path = folder.join(&file.name);
                write_whole(&folder.join(".drafts"), &path, file.text.as_bytes()).map_err(InstallError::from)?;
                let _ = writeln!(data, "{}", path.display());
            }
            // One file is printed as it is, so that it can be sent where it belongs; of several each says where it begins.
            None if files.len() == 1 => data.push_str(&file.text),
            None => {
                let _ = write!(data, "# ----- {}/{} -----\n{}\n", file.folder, file.name, file.text);
            }
        }
    }
    if let Some(folder) = &args.into {
        // Drafts are of no use once the files are in place; a folder that cannot be removed harms nobody.
        let _ = std::fs::remove_dir(folder.join(".drafts"));
    }
    Ok(Said { data: data.into(), talk: None, exit: Exit::Good })
}

/// The files.
///
/// # Errors
/// As [`install`].
pub fn files(args: &ScheduleInstall, now: DateTime<Utc>) -> Result<Vec<Ready>, InstallError> {
    let (schedule, due) = read(&args.file)?;
    if let Some(remote) = remote::at(&schedule.output) {
        return Err(InstallError::OnStore { url: remote.url().to_owned() });
    }
    let filling = Filling::new(args, &schedule, &due, now)?;
    let unit = filling.unit.clone();
    let file = |folder, name: String, template: &str| Ready { folder, name, text: filling.fill(template) };
    let on = &args.on;
    if on.github_actions {
        for (what, path) in [("the path of the schedule", &args.file), ("the schedule's output", &schedule.output)] {
            if path.is_absolute() || path.starts_with("..") {
                return Err(InstallError::NotInRepository { what, value: path.display().to_string() });
            }
        }
    }
    Ok(if on.systemd {
        let folder = "/etc/systemd/system";
        vec![
            file(folder, format!("{unit}.service"), include_str!("systemd.service")),
            file(folder, format!("{unit}.timer"), include_str!("systemd.timer")),
        ]
    } else if on.crontab {
        vec![file("/etc/cron.d", unit, include_str!("crontab"))]
    } else if on.github_actions {
        vec![file(".github/workflows", format!("{unit}.yml"), include_str!("actions.yml"))]
    } else {
        vec![file(".", format!("{unit}.yaml"), include_str!("kubernetes.yaml"))]
    })
}

/// What goes into the templates, by name.
struct Filling {
    unit: String,
    values: Vec<(&'static str, String)>,
}

impl Filling {
    fn new(args: &ScheduleInstall, schedule: &Schedule, due: &Due, now: DateTime<Utc>) -> Result<Self, InstallError> {
        let path = |what, path: &Path| plain(what, &path.display().to_string());
        let directory = path("the directory", &args.directory)?;
        let output = path("the schedule's output", &schedule.output)?;
        let is_outside = schedule.output.is_absolute() && !schedule.output.starts_with(&args.directory);
        let writable = if is_outside { format!("{directory} {output}") } else { directory.clone() };
        let mount = if is_outside {
            format!("                - name: dataset\n                  mountPath: {output}\n                  subPath: output\n")
        } else {
            String::new()
        };
        let name = plain_name(&schedule.name);
        let text = std::fs::read_to_string(&args.file)
            .map_err(|source| ScheduleError::Unreadable { path: args.file.clone(), source })?;
        let indented: String = text.lines().map(|line| format!("    {line}").trim_end().to_owned() + "\n").collect();
        let minutes = schedule.longest_minutes.saturating_add(MINUTES_BEYOND);
        let times = times_in_utc(due, now);
        let values = vec![
            ("FILE", path("the path of the schedule", &args.file)?),
            ("PROGRAM", path("the path of the program", &args.program)?),
            ("DIRECTORY", directory),
            ("ENVIRONMENT", path("the path of the environment", &args.environment)?),
            ("USER", plain("the user", &args.user)?),
            ("IMAGE", plain("the image", &args.image)?),
            ("OUTPUT", output),
            ("WRITABLE", writable),
            ("MOUNT", mount),
            ("CRON", schedule.cron.split_whitespace().collect::<Vec<_>>().join(" ")),
            ("ZONE", due.zone().name().to_owned()),
            ("TIMEOUT_MINUTES", minutes.to_string()),
            ("ACTIONS_MINUTES", minutes.min(ACTIONS_MINUTES_MAX).to_string()),
            ("TIMEOUT_SECONDS", (u64::from(minutes) * 60).to_string()),
            ("MINUTES", minutes_of_clock(due, now)),
            ("CRONS", times.iter().map(|time| format!("    - cron: \"{time}\"\n")).collect()),
            ("UNIT", format!("gpuledger-{name}")),
            ("NAME", name.clone()),
            // Last: what a person wrote there is not looked through for names.
            ("SCHEDULE", indented),
        ];
        Ok(Self { unit: format!("gpuledger-{name}"), values })
    }

    fn fill(&self, template: &str) -> String {
        self.values.iter().fold(template.to_owned(), |text, (name, value)| text.replace(&format!("@{name}@"), value))
    }
}

/// A text that means nothing to a shell, to YAML or to systemd.
fn plain(what: &'static str, value: &str) -> Result<String, InstallError> {
    let is_plain = |letter: char| letter.is_ascii_alphanumeric() || "._-/@+:".contains(letter);
    let is_good = !value.is_empty() && value.chars().all(is_plain) && !value.starts_with(['-', '@', ':']);
    if is_good { Ok(value.to_owned()) } else { Err(InstallError::NotPlain { what, value: value.to_owned() }) }
}

/// A schedule's name as a part of a unit's: small letters, digits and single dashes.
fn plain_name(name: &str) -> String {
    let letters =
        name.to_lowercase().chars().map(|letter| if letter.is_ascii_alphanumeric() { letter } else { ' ' }).collect::<String>();
    let words: Vec<&str> = letters.split_whitespace().collect();
    let name: String = words.join("-").chars().take(NAME_MAX).collect();
    if name.is_empty() { "schedule".to_owned() } else { name.trim_end_matches('-').to_owned() }
}

/// Due instants of the next year, of which some hundred say all.
fn due_of_a_year(due: &Due, now: DateTime<Utc>) -> Vec<DateTime<Utc>> {
    let end = now + Days::new(370);
    let mut instants = Vec::new();
    let mut last = now;
    while let Some(next) = due.after(last).filter(|next| *next < end && instants.len() < 800) {
        instants.push(next);
        last = next;
    }
    instants
}

/// The minutes of an hour at which nights are due on the schedule's clock, as a field of a crontab.
fn minutes_of_clock(due: &Due, now: DateTime<Utc>) -> String {
    let minutes: BTreeSet<u32> = due_of_a_year(due, now).iter().map(|at| at.with_timezone(&due.zone()).minute()).collect();
    match minutes.len() {
        1..=6 => minutes.iter().map(u32::to_string).collect::<Vec<_>>().join(","),
        _ => "*/5".to_owned(),
    }
}

/// The times of a day in UTC, some minutes after those at which nights are due in some part of the year, and hours after them
/// once more; every hour where there are many.
fn times_in_utc(due: &Due, now: DateTime<Utc>) -> Vec<String> {
    let mut times = BTreeSet::new();
    for at in due_of_a_year(due, now) {
        for hours in [0, ACTIONS_AGAIN_HOURS] {
            let at = at + TimeDelta::minutes(ACTIONS_DELAY_MINUTES) + TimeDelta::hours(hours);
            times.insert((at.hour(), at.minute()));
        }
    }
    let minutes: BTreeSet<u32> = times.iter().map(|(_, minute)| *minute).collect();
    if times.len() <= 6 {
        times.iter().map(|(hour, minute)| format!("{minute} {hour} * * *")).collect()
    } else {
        minutes.iter().take(4).map(|minute| format!("{minute} * * * *")).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn due(cron: &str, zone: &str) -> Due {
        Due::new(cron, zone).expect("it is ever due")
    }

    #[test]
    fn a_zone_with_summer_time_is_two_times_in_utc_and_one_minute_of_its_own_clock() {
        let now = "2026-11-30T12:00:00Z".parse().expect("an instant");
        assert_eq!(times_in_utc(&due("0 2 * * *", "UTC"), now), ["7 2 * * *", "7 5 * * *"]);
        let berlin = due("0 2 * * *", "Europe/Berlin");
        assert_eq!(times_in_utc(&berlin, now), ["7 0 * * *", "7 1 * * *", "7 3 * * *", "7 4 * * *"]);
        assert_eq!(minutes_of_clock(&berlin, now), "0");
        assert_eq!(minutes_of_clock(&due("30 2 * * *", "Asia/Kolkata"), now), "30");
        assert_eq!(minutes_of_clock(&due("*/3 * * * *", "UTC"), now), "*/5");
    }

    #[test]
    fn what_a_shell_or_a_manager_would_read_is_refused() {
        for text in ["a b", "a;b", "$(a)", "a%b", "a\nb", "", "-rf", "a\"b", "a'b", "a#b", "a\\b", "a{b", "é"] {
            assert!(plain("the path", text).is_err(), "{text}");
        }
        assert_eq!(plain("the path", "/etc/gpuledger/nightly.toml").ok().as_deref(), Some("/etc/gpuledger/nightly.toml"));
        assert_eq!(plain_name("Every Night — 02:00 (UTC)\n"), "every-night-02-00-utc");
        assert_eq!(plain_name("…"), "schedule");
    }
}
