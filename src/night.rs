//! A night's identity: its time, to the second, in UTC, and which correction of it this is.

use std::fmt;
use std::str::FromStr;

use chrono::{DateTime, NaiveDate, NaiveDateTime, SecondsFormat, SubsecRound as _, Utc};

const FORM: &str = "%Y-%m-%dT%H-%M-%SZ";

/// What stands between the time of a night and the number of its correction.
const REVISION_MARK: &str = "-r";

/// Most corrections of one night: with one digit, ids in order as text are in order.
const REVISIONS_MAX: u8 = 9;

/// The id of a snapshot. `2026-10-30T18-00-00Z`, and `2026-10-30T18-00-00Z-r1` for its first correction.
///
/// In order, a correction comes right after what it corrects, as a value and as text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SnapshotId {
    at: DateTime<Utc>,
    revision: u8,
}

/// An instant as the program says it, to the second. `2026-11-30T02:00:00Z`
#[must_use]
pub fn second(at: DateTime<Utc>) -> String {
    at.to_rfc3339_opts(SecondsFormat::Secs, true)
}

/// A text that is no id of a snapshot.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("an id is a time such as 2026-10-30T18-00-00Z, with -r1 to -r9 behind it for a correction")]
pub struct NoSnapshotId;

impl SnapshotId {
    /// The id of the night that started at an instant.
    #[must_use]
    pub fn at(instant: DateTime<Utc>) -> Self {
        Self { at: instant.trunc_subsecs(0), revision: 0 }
    }

    /// When the night started. A correction is of the same time.
    #[must_use]
    pub const fn instant(self) -> DateTime<Utc> {
        self.at
    }

    /// The day of the night, in UTC: the partition of its rows.
    #[must_use]
    pub fn date(self) -> NaiveDate {
        self.at.date_naive()
    }

    /// Whether both are of the same night: itself, or corrections of it.
    #[must_use]
    pub fn is_same_night(self, other: Self) -> bool {
        self.at == other.at
    }

    /// The night as it was published first.
    #[must_use]
    pub const fn original(self) -> Self {
        Self { at: self.at, revision: 0 }
    }

    /// What this corrects; `None` for a night as it was published first.
    #[must_use]
    pub fn corrects(self) -> Option<Self> {
        self.revision.checked_sub(1).map(|revision| Self { at: self.at, revision })
    }

    /// The id of the correction of this; `None` after the last that there can be.
    #[must_use]
    pub fn next_correction(self) -> Option<Self> {
        (self.revision < REVISIONS_MAX).then_some(Self { at: self.at, revision: self.revision + 1 })
    }
}

impl fmt::Display for SnapshotId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.at.format(FORM))?;
        if self.revision > 0 { write!(f, "{REVISION_MARK}{}", self.revision) } else { Ok(()) }
    }
}

impl FromStr for SnapshotId {
    type Err = NoSnapshotId;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let (time, revision) = match text.split_once(REVISION_MARK) {
            None => (text, 0),
            Some((time, digits)) => (time, digits.parse().map_err(|_| NoSnapshotId)?),
        };
        let at = NaiveDateTime::parse_from_str(time, FORM).map_err(|_| NoSnapshotId)?.and_utc();
        let id = Self { at, revision };
        // One spelling for each id: a file is found again by the name that it was given.
        if revision <= REVISIONS_MAX && id.to_string() == text { Ok(id) } else { Err(NoSnapshotId) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_correction_comes_after_its_night_and_before_the_next_as_a_value_and_as_text() {
        let texts = ["2026-10-30T18-00-00Z", "2026-10-30T18-00-00Z-r1", "2026-10-30T18-00-00Z-r2", "2026-10-30T18-00-01Z"];
        let ids: Vec<SnapshotId> = texts.iter().map(|text| text.parse().expect("an id")).collect();
        assert!(ids.is_sorted() && texts.is_sorted());
        assert_eq!(ids.iter().map(SnapshotId::to_string).collect::<Vec<_>>(), texts);
        assert_eq!(ids[2].corrects(), Some(ids[1]));
        assert_eq!(ids[0].corrects(), None);
        assert_eq!(ids[2].original(), ids[0]);
        assert_eq!(ids[0].next_correction(), Some(ids[1]));
        assert!(ids[0].is_same_night(ids[2]) && !ids[0].is_same_night(ids[3]));
    }

    #[test]
    fn an_id_has_one_spelling_and_nine_corrections_at_most() {
        for text in [
            "2026-10-30T18-00-00Z-r0",
            "2026-10-30T18-00-00Z-r01",
            "2026-10-30T18-00-00Z-r10",
            "2026-10-30T18-00-00Z-r",
            "2026-10-30",
        ] {
            assert_eq!(text.parse::<SnapshotId>(), Err(NoSnapshotId), "{text}");
        }
        let ninth: SnapshotId = "2026-10-30T18-00-00Z-r9".parse().expect("an id");
        assert_eq!(ninth.next_correction(), None);
    }
}
