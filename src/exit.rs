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
    /// The night was refused: nothing was published, the last snapshot stays the latest.
    Refused = 11,
    /// Nothing was due.
    NothingDue = 12,
}

impl From<Exit> for std::process::ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(exit as u8)
    }
}
