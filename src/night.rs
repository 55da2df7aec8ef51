//! A night's identity: its time, to the second, in UTC.

use std::fmt;
use std::str::FromStr;

use chrono::{DateTime, NaiveDate, NaiveDateTime, SubsecRound as _, Utc};

const FORM: &str = "%Y-%m-%dT%H-%M-%SZ";

/// The id of a snapshot. `2026-10-30T18-00-00Z`
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SnapshotId(DateTime<Utc>);

impl SnapshotId {
    /// The id of the night that started at an instant.
    #[must_use]
    pub fn at(instant: DateTime<Utc>) -> Self {
        Self(instant.trunc_subsecs(0))
    }

    /// When the night started.
    #[must_use]
    pub const fn instant(self) -> DateTime<Utc> {
        self.0
    }

    /// The day of the night, in UTC: the partition of its rows.
    #[must_use]
    pub fn date(self) -> NaiveDate {
        self.0.date_naive()
    }
}

impl fmt::Display for SnapshotId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0.format(FORM))
    }
}

impl FromStr for SnapshotId {
    type Err = chrono::ParseError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        NaiveDateTime::parse_from_str(text, FORM).map(|at| Self(at.and_utc()))
    }
}
