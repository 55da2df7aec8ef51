//! Is the dataset whole, and can tonight's night run?
//!
//! Looks and says; it mends nothing itself. Each line is fine, a warning or a problem, and the last two come with the command
//! that mends them. It writes nothing but a file that it removes at once, to see whether it may.

mod beside;
mod machine;
mod tables;

use std::fmt::Write as _;
use std::path::Path;

use chrono::Utc;
use polars::prelude::{DataFrame, PolarsResult};

use crate::cli::Doctor;
use crate::exit::Exit;
use crate::failed::Failed;
use crate::frame::Columns;
use crate::print::{self, Format};
use crate::remote;
use crate::report::Said;
use crate::snapshot::SnapshotError;

/// How grave a line is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum State {
    /// Nothing to do.
    Good,
    /// Something to know, or that the next run mends by itself.
    Warning,
    /// Something that somebody has to mend.
    Problem,
}

impl State {
    /// Its name.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Good => "ok",
            Self::Warning => "warning",
            Self::Problem => "problem",
        }
    }
}

/// One line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Line {
    /// What was looked at. `offers log`
    pub of: String,
    /// How it is.
    pub state: State,
    /// What was seen.
    pub says: String,
    /// The command that mends it.
    pub mend: Option<String>,
}

/// The lines of a visit.
#[derive(Debug, Default)]
pub struct Lines {
    lines: Vec<Line>,
}

impl Lines {
    fn good(&mut self, of: &str, says: impl Into<String>) {
        self.lines.push(Line { of: of.to_owned(), state: State::Good, says: says.into(), mend: None });
    }

    fn warning(&mut self, of: &str, says: impl Into<String>, mend: impl Into<String>) {
        self.lines.push(Line { of: of.to_owned(), state: State::Warning, says: says.into(), mend: Some(mend.into()) });
    }

    fn problem(&mut self, of: &str, says: impl Into<String>, mend: impl Into<String>) {
        self.lines.push(Line { of: of.to_owned(), state: State::Problem, says: says.into(), mend: Some(mend.into()) });
    }

    /// Says that all is well if nothing else was said of it since `before`.
    fn good_since(&mut self, before: usize, of: &str, says: impl Into<String>) {
        if self.lines.len() == before {
            self.good(of, says);
        }
    }

    const fn count(&self) -> usize {
        self.lines.len()
    }
}

/// What `doctor` says.
///
/// # Errors
/// When an object store cannot be read, and on a fault of the program: what is wrong with the dataset is a line.
pub async fn doctor(args: &Doctor) -> Result<Said, Failed> {
    if let Some(remote) = remote::at(&args.dataset.output) {
        remote.pull_everything().map_err(SnapshotError::Disk)?;
    }
    let lines = examine(&args.dataset.output, args.all, &args.schedules).await;
    let problems = lines.iter().filter(|line| line.state == State::Problem).count();
    let warnings = lines.iter().filter(|line| line.state == State::Warning).count();
    let data = match args.printing.format {
        Format::Table => text(&lines).into(),
        format => print::rows(&rows(&lines)?, &[], format)?,
    };
    let talk = Some(format!("{} looked at: {problems} problems, {warnings} warnings\n", lines.len()));
    Ok(Said { data, talk, exit: if problems == 0 { Exit::Good } else { Exit::Unwell } })
}

/// Looks at everything. With `all`, every archived object and every file is read, not only some and the newest.
pub async fn examine(output: &Path, all: bool, schedules: &Path) -> Vec<Line> {
    let mut lines = Lines::default();
    machine::folder(output, &mut lines);
    machine::lock(output, &mut lines);
    if output.is_dir() {
        let ids = tables::tables(output, all, &mut lines).await;
        beside::left_over(output, &mut lines);
        beside::archive(output, all, &mut lines);
        beside::records(output, &ids, &mut lines);
        machine::clock(&ids, &mut lines);
    }
    machine::space(output, &mut lines);
    machine::keys(&mut lines);
    machine::schedules(schedules, Utc::now(), &mut lines);
    lines.lines
}

fn rows(lines: &[Line]) -> PolarsResult<DataFrame> {
    let mut columns = Columns::new(lines.len());
    columns.texts("check", lines.iter().map(|line| Some(line.of.as_str())));
    columns.texts("state", lines.iter().map(|line| Some(line.state.word())));
    columns.texts("says", lines.iter().map(|line| Some(line.says.as_str())));
    columns.texts("mend", lines.iter().map(|line| line.mend.as_deref()));
    columns.finish()
}

fn text(lines: &[Line]) -> String {
    let width = lines.iter().map(|line| line.of.len()).max().unwrap_or(0);
    let mut text = String::new();
    for line in lines {
        let _ = writeln!(text, "{:7}  {:width$}  {}", line.state.word(), line.of, line.says);
        if let Some(mend) = &line.mend {
            let _ = writeln!(text, "{:7}  {:width$}  → {mend}", "", "");
        }
    }
    text
}

/// A path as a word of a shell command.
fn word(path: &Path) -> String {
    let text = path.display().to_string();
    let is_plain = text.chars().all(|letter| letter.is_ascii_alphanumeric() || "/._-+=:,@".contains(letter));
    if is_plain { text } else { format!("'{}'", text.replace('\'', r"'\''")) }
}

/// The dataset as one writes it after `--output`.
fn dataset(output: &Path) -> String {
    word(Path::new(&remote::shown(output)))
}

/// An error with its causes, in one line.
fn causes(error: &(dyn std::error::Error + 'static)) -> String {
    Failed::new(Exit::Refused, "", error).to_string().trim_start_matches("failed to ").replace('\n', " ")
}

/// The command that brings a file back from a backup.
fn restore(output: &Path, path: &Path) -> String {
    if remote::at(output).is_some() {
        // What is gone from the working copy is fetched again.
        return format!("rm -r {}", word(path));
    }
    let below = path.strip_prefix(output).unwrap_or(path);
    format!("cp -p {} {}", word(&Path::new("BACKUP").join(below)), word(path))
}

/// The files below a folder, in order.
fn files_below(folder: &Path) -> std::io::Result<Vec<std::path::PathBuf>> {
    let mut files = Vec::new();
    let entries = match std::fs::read_dir(folder) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(files),
        entries => entries?,
    };
    for entry in entries {
        let path = entry?.path();
        if path.is_dir() { files.extend(files_below(&path)?) } else { files.push(path) }
    }
    files.sort();
    Ok(files)
}
