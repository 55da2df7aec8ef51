//! A verb that could not be done, in words: what failed, why, what to do next, and the exit code.
//!
//! The world's faults and this program's are told apart here: a full disk or a damaged file is never called a bug.

use std::fmt::Write as _;

use miette::Diagnostic;
use polars::prelude::PolarsError;

use crate::exit::Exit;
use crate::harmless::harmless;
use crate::query;
use crate::run::RunError;
use crate::snapshot::SnapshotError;
use crate::source::SourceError;

/// A verb that could not be done: what failed, why, and what to do next.
#[derive(Debug, thiserror::Error, Diagnostic)]
#[error("failed to {what}")]
pub struct Failed {
    what: String,
    #[help]
    help: Option<String>,
    /// The exit code.
    pub exit: Exit,
}

impl Failed {
    /// A failure with all its causes in one line.
    #[must_use]
    pub fn new(exit: Exit, what: &str, error: &(dyn std::error::Error + 'static)) -> Self {
        let mut text = what.to_owned();
        let mut cause = Some(error);
        while let Some(error) = cause {
            let words = harmless(&error.to_string()).into_owned();
            if !text.ends_with(&words) {
                let _ = write!(text, "{}{words}", if text.is_empty() { "" } else { ": " });
            }
            cause = error.source();
        }
        Self { what: text, help: None, exit }
    }

    /// What the command line asks for and cannot be, where no error says it.
    #[must_use]
    pub fn of(what: &str) -> Self {
        Self { what: harmless(what).into_owned(), help: None, exit: Exit::Usage }
    }

    /// The same with what to do next.
    #[must_use]
    pub fn with_help(mut self, help: &str) -> Self {
        self.help = Some(help.to_owned());
        self
    }
}

impl From<SnapshotError> for Failed {
    fn from(error: SnapshotError) -> Self {
        match &error {
            SnapshotError::NotFound { .. } => {
                Self::new(Exit::Usage, "", &error).with_help("`gpuledger snapshots` lists what there is")
            }
            SnapshotError::Locked { .. } => Self::new(Exit::Locked, "", &error)
                .with_help("wait until it is done; the lock goes away with the process that holds it"),
            SnapshotError::ExistsOtherwise { .. } => Self::new(Exit::Refused, "", &error)
                .with_help("a published snapshot never changes; collect as of another time with --at"),
            SnapshotError::BeingPublished { .. } | SnapshotError::Overtaken { .. } => {
                Self::new(Exit::Refused, "", &error).with_help("wait until the other run is done, then run again")
            }
            SnapshotError::Unfinished { .. } => {
                Self::new(Exit::Partial, "", &error).with_help(&format!("{} The next run finishes it.", what_next(&error)))
            }
            SnapshotError::OtherType { .. } => Self::new(Exit::Refused, "", &error)
                .with_help("a column never changes its type in place: collect into another folder with --output"),
            SnapshotError::Newer { .. } => Self::new(Exit::Refused, "", &error)
                .with_help("use the newer program for this dataset; this one can read it, and write into another --output"),
            SnapshotError::Rows { .. } => Self::new(Exit::Bug, "", &error),
            SnapshotError::BadPath { .. } => Self::new(Exit::Usage, "", &error).with_help("name another folder with --output"),
            SnapshotError::Log { .. } | SnapshotError::Parquet { .. } | SnapshotError::Disk(_) => {
                Self::new(Exit::Refused, "", &error).with_help(&what_next(&error))
            }
        }
    }
}

/// What a person does about something that the disk said, told from the cause deepest down.
fn what_next(error: &(dyn std::error::Error + 'static)) -> String {
    let mut cause = Some(error);
    let mut kind = None;
    while let Some(error) = cause {
        kind = error.downcast_ref::<std::io::Error>().map(std::io::Error::kind).or(kind);
        cause = error.source();
    }
    use std::io::ErrorKind as Io;
    match kind {
        Some(Io::StorageFull | Io::QuotaExceeded) => "make room on the disk that holds the dataset, then run again.",
        Some(Io::PermissionDenied) => {
            "let this user write there (`ls -ld` shows who may), or name another folder with --output, then run again."
        }
        Some(Io::ReadOnlyFilesystem) => {
            "the disk is mounted read-only: mount it for writing, or name another folder with --output."
        }
        Some(Io::NotADirectory | Io::AlreadyExists) => "a file stands where a folder should be: name another one with --output.",
        _ => "nothing that was published has changed; `gpuledger doctor` with the same --output says what is wrong.",
    }
    .to_owned()
}

impl From<RunError> for Failed {
    fn from(error: RunError) -> Self {
        match error {
            RunError::Snapshot(error) => error.into(),
            RunError::UnknownProvider { .. } => Self::new(Exit::Usage, "", &error).with_help("`gpuledger providers` lists them"),
            RunError::Client(_) => {
                Self::new(Exit::Usage, "", &error).with_help("look at --contact and GPULEDGER_CONTACT: it stands in a header")
            }
            RunError::Archive(_) | RunError::Source(SourceError::Archive(_)) => {
                Self::new(Exit::Refused, "", &error).with_help(&what_next(&error))
            }
            RunError::Source(_) => Self::new(Exit::Usage, "", &error).with_help("files are read from DIR/PROVIDER/ANY-NAME"),
            error => Self::new(Exit::Bug, "", &error),
        }
    }
}

impl From<query::QueryError> for Failed {
    fn from(error: query::QueryError) -> Self {
        match error {
            // What cannot be read is a file that is gone or damaged: the questions are the program's own.
            query::QueryError::Unreadable(_) => {
                Self::new(Exit::Refused, "", &error).with_help("`gpuledger doctor` says what is wrong with the dataset")
            }
            error => Self::new(Exit::Usage, "", &error),
        }
    }
}

impl From<PolarsError> for Failed {
    fn from(error: PolarsError) -> Self {
        // A file that is gone or damaged shows when its rows are computed.
        let is_of_file = matches!(&error, PolarsError::IO { .. })
            || matches!(&error, PolarsError::ComputeError(text) if text.to_lowercase().contains("parquet"));
        if is_of_file {
            return Self::new(Exit::Refused, "read the dataset", &error)
                .with_help("`gpuledger doctor` says what is wrong with it");
        }
        Self::new(Exit::Bug, "compute a table", &error)
    }
}
