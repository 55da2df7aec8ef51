//! Every exit code and its meaning. Scripts and schedulers rely on them.

/// How a run ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum Exit {
    /// All good.
    Good = 0,
    /// A fault of the program.
    Bug = 1,
    /// The command line asks for something that cannot be.
    Usage = 2,
    /// A snapshot was published, and some provider is not complete in it, or none of its foreign prices could be converted.
    Partial = 10,
    /// What was asked for was refused, or something outside the program stood in its way, such as a full disk or a damaged file:
    /// nothing was published, the last snapshot stays the latest.
    Refused = 11,
    /// Nothing was due: no night of a schedule, no new night for `backfill`, or nothing that a replay would correct.
    NothingDue = 12,
    /// Another run is writing to the dataset; nothing was done.
    Locked = 13,
    /// `doctor` found something that has to be mended.
    Unwell = 14,
    /// The archive does not bear out what was published: a night derived again differs, or bytes are damaged or gone.
    NotBorneOut = 15,
    /// `diff --exit-code` found that an offer changed its price or name, came or went.
    Differs = 16,
}

impl Exit {
    /// The meaning in words.
    #[must_use]
    pub const fn meaning(self) -> &'static str {
        match self {
            Self::Good => "all good",
            Self::Bug => "a fault of the program",
            Self::Usage => "the command line or the schedule asks for something that cannot be",
            Self::Partial => "published, and some provider is not complete",
            Self::Refused => "refused, or the disk or a damaged file stood in the way",
            Self::NothingDue => "nothing was due",
            Self::Locked => "another run is writing to the dataset",
            Self::Unwell => "doctor found something to mend",
            Self::NotBorneOut => "the archive does not bear out what was published",
            Self::Differs => "the two snapshots differ",
        }
    }
}

impl From<Exit> for std::process::ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(exit as u8)
    }
}
