//! Which archived pages are needed, and since when the others are not.

use std::collections::{HashMap, HashSet};
use std::path::Path;

use chrono::{DateTime, NaiveDate, Utc};
use polars::prelude::*;

use super::listed;
use crate::archive::{Archive, Receipt, read_json};
use crate::exit::Exit;
use crate::frame::Cell;
use crate::night::SnapshotId;
use crate::report::Failed;
use crate::snapshot::read::{self, Snapshot};

/// What the nights need.
pub(super) struct Needs {
    since: DateTime<Utc>,
    /// Pages that stay, however old they are.
    kept: HashSet<String>,
    /// Pages of published nights that are old enough, where these may go too.
    released: HashSet<String>,
    /// When a page was last read by a night that was not published.
    last_read: HashMap<String, DateTime<Utc>>,
}

impl Needs {
    /// Reads the receipts of all nights and the pages that published rows name.
    pub async fn read(output: &Path, archive: &Archive, since: DateTime<Utc>, published_too: bool) -> Result<Self, Failed> {
        let snapshots = read::snapshots(output).await?;
        let mut needs = Self { since, kept: HashSet::new(), released: HashSet::new(), last_read: HashMap::new() };
        for snapshot in &snapshots {
            let pages = pages_of_rows(snapshot)?;
            needs.add(published_too && snapshot.id.instant() < since, pages);
        }
        for (night, sha256) in pages_of_rates(output).await? {
            needs.add(published_too && night.is_some_and(|night| night.instant() < since), [sha256]);
        }
        for folder in
            listed(&archive.root().join("receipts")).map_err(|error| Failed::new(Exit::Bug, "list the receipts", &error))?
        {
            let night = folder.file_name().and_then(|name| name.to_str()?.parse::<SnapshotId>().ok());
            let published = night.filter(|night| snapshots.iter().any(|snapshot| snapshot.id == *night));
            for path in listed(&folder).map_err(|error| Failed::new(Exit::Bug, "list the receipts", &error))? {
                // Receipts that do not read could name any page, so nothing is removed until somebody has looked at them.
                let receipts: Vec<Receipt> = read_json(&path)
                    .map_err(|error| Failed::new(Exit::NotBorneOut, "read receipts, and removed nothing", &error))?
                    .unwrap_or_default();
                match published {
                    Some(night) => {
                        let is_old = published_too && night.instant() < since;
                        needs.add(is_old, receipts.into_iter().map(|receipt| receipt.sha256));
                    }
                    None => needs.read_by_nobody(receipts),
                }
            }
        }
        Ok(needs)
    }

    fn add(&mut self, may_go: bool, pages: impl IntoIterator<Item = String>) {
        let pages = pages.into_iter();
        if may_go { self.released.extend(pages) } else { self.kept.extend(pages) }
    }

    /// Takes down when a night that was not published read its pages last.
    fn read_by_nobody(&mut self, receipts: Vec<Receipt>) {
        for receipt in receipts {
            let at = receipt.read_at.unwrap_or(receipt.observed_at);
            let last = self.last_read.entry(receipt.sha256).or_insert(at);
            *last = at.max(*last);
        }
    }

    /// Whether a page may be removed. One that no published night has goes by when it was written or read last; one of a
    /// published night goes by the time of the night.
    pub fn may_go(&self, sha256: &str, written_at: DateTime<Utc>) -> bool {
        if self.kept.contains(sha256) {
            return false;
        }
        let was_read_lately = self.last_read.get(sha256).is_some_and(|at| *at >= self.since);
        !was_read_lately && (self.released.contains(sha256) || written_at < self.since)
    }
}

/// Pages that the offers of a snapshot name.
fn pages_of_rows(snapshot: &Snapshot) -> Result<Vec<String>, Failed> {
    let rows = read::offers(snapshot)?.select([col("raw_sha256").unique()]).collect()?;
    Ok(rows.column("raw_sha256")?.str()?.iter().flatten().map(str::to_owned).collect())
}

/// Before the first exchange rate of the euro, and after the last of anybody's.
const FIRST_DAY: NaiveDate = NaiveDate::from_ymd_opt(1990, 1, 1).expect("new year is a day");
const LAST_DAY: NaiveDate = NaiveDate::from_ymd_opt(9999, 12, 31).expect("new year's eve is a day");

/// Pages that exchange rates name, each with the night that published them.
async fn pages_of_rates(output: &Path) -> Result<Vec<(Option<SnapshotId>, String)>, Failed> {
    let rates = read::rates(output, FIRST_DAY, LAST_DAY).await?;
    let rates = rates.lazy().select([col("snapshot_id"), col("raw_sha256")]).unique(None, UniqueKeepStrategy::Any).collect()?;
    let mut pages = Vec::with_capacity(rates.height());
    for row in 0..rates.height() {
        let cell = |name: &str| Cell::at(&rates, name, row).map(|cell| cell.text());
        pages.push((cell("snapshot_id")?.parse().ok(), cell("raw_sha256")?));
    }
    Ok(pages)
}
