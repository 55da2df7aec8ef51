//! `feed.xml`: real price changes, refused nights and providers that stay away, as Atom (RFC 4287).
//!
//! In: the published tables and the records of refused nights. Out: one file, written whole, with a bounded number of
//! entries, the newest first. The same dataset gives the same bytes: no clock is looked at. Each entry keeps its id for good.
//! A night adds its own entries to those that are there; a feed that is gone, damaged or of another dataset is made anew from
//! the last nights. Never changes a table, and a night never fails by it.

mod entries;

use std::path::Path;

use atom_syndication::{Category, Entry, Feed, FixedDateTime, Generator, Person, Text};
use chrono::{DateTime, Utc};
use polars::prelude::*;

use crate::archive::{ArchiveError, drafts, write_whole};
use crate::changes;
use crate::frame::Cell;
use crate::gather::Input;
use crate::night::SnapshotId;
use crate::offer::OFFERS;
use crate::runs;
use crate::snapshot::SnapshotError;
use crate::snapshot::log::Log;
use crate::snapshot::read::{self, Snapshot};

/// Name of the file, below the dataset.
pub const FEED_FILE: &str = "feed.xml";

/// Most entries of the feed.
pub const ENTRIES_MAX: usize = 100;

/// Most nights that are told at once: of a feed that is made anew, or was not written for long.
pub const NIGHTS_MAX: usize = 14;

/// Nights in a row without a provider after which the feed says so.
pub const MISSING_NIGHTS: usize = 3;

/// Name of the mark that says up to which night the feed tells.
const TOLD_THROUGH: &str = "tag:gpuledger.invalid,2026:told-through";

/// Why the feed was not written.
#[derive(Debug, thiserror::Error)]
pub enum FeedError {
    /// The tables could not be read.
    #[error("read the dataset for the feed")]
    Dataset(#[from] SnapshotError),
    /// The disk refused.
    #[error("write the feed")]
    Disk(#[from] ArchiveError),
    /// The library could not write what it was given, which is a fault of this program.
    #[error("write the feed as XML: {0}")]
    Xml(#[from] atom_syndication::Error),
}

/// Brings the feed up to date. `published` is the night that was published just now, if one was: a night of an earlier time
/// is told too, which would not be found by its turn.
///
/// # Errors
/// When the tables or records cannot be read, or the disk refuses.
pub async fn bring_up_to_date(output: &Path, published: Option<SnapshotId>) -> Result<(), FeedError> {
    let id = id_of(output).await?;
    let (mut entries, told_through) = match there(output, &id) {
        Some((feed, told_through)) => (feed.entries, Some(told_through)),
        None => (Vec::new(), None),
    };
    // Histories that somebody else kept are no news.
    let snapshots = read::collected(output).await?;
    let nights = to_tell(output, &snapshots, told_through, published).await?;
    for night in &nights {
        let changes = changes::of_night(output, &snapshots, night).await?;
        let missing = changes::missing(output, &snapshots, night, MISSING_NIGHTS).await?;
        let of_night = entries::of_night(&id, night.id, &changes, missing.iter().filter(|gone| gone.nights == MISSING_NIGHTS));
        // What was refused first and is published now is no refused night any more.
        let refused = entries::refused_id(&id, night.id.original());
        entries.retain(|known| known.id() != refused && of_night.iter().all(|new| new.id() != known.id()));
        entries.extend(of_night);
    }
    // Of a feed that is made anew, refused nights are told as far back as the others.
    let since = told_through.or_else(|| nights.first().map(|first| first.id));
    let runs = runs::ids(output);
    let newest_run = runs.last().copied();
    for night in runs.into_iter().rev().filter(|night| since.is_none_or(|since| *night > since)).take(NIGHTS_MAX) {
        // A record that does not read tells nothing; `doctor` names it.
        let run = runs::read(output, night).ok().flatten().filter(|run| run.outcome == "refused");
        let entry = run.map(|run| entries::refused(&id, night, &run));
        entries.extend(entry.filter(|entry| entries.iter().all(|known| known.id() != entry.id())));
    }
    entries.sort_by(|a, b| (b.updated(), a.id()).cmp(&(a.updated(), b.id())));
    entries.truncate(ENTRIES_MAX);
    let newest = snapshots.last().map(|snapshot| snapshot.id);
    let Some(through) = [told_through, newest, newest_run].into_iter().flatten().max() else { return Ok(()) };
    write(output, &feed(id, through, entries))
}

/// The nights whose entries are not in the feed yet, oldest first.
async fn to_tell(
    output: &Path,
    snapshots: &[Snapshot],
    told_through: Option<SnapshotId>,
    published: Option<SnapshotId>,
) -> Result<Vec<Snapshot>, SnapshotError> {
    let is_new =
        |snapshot: &&&Snapshot| told_through.is_none_or(|through| snapshot.id > through) || Some(snapshot.id) == published;
    let newest = read::newest_of_each_night(snapshots);
    let mut nights: Vec<Snapshot> = newest.iter().filter(is_new).map(|night| (*night).clone()).collect();
    nights.drain(..nights.len().saturating_sub(NIGHTS_MAX));
    let coverage = read::coverage(output, &nights).await?;
    let unreadable = |source| SnapshotError::Parquet { path: output.to_owned(), source };
    let mut is_live = Vec::with_capacity(nights.len());
    for night in &nights {
        is_live.push(!is_of_history(&coverage, night.id).map_err(unreadable)?);
    }
    let mut is_live = is_live.into_iter();
    nights.retain(|_| is_live.next() == Some(true));
    Ok(nights)
}

/// Whether a night was made of what providers still publish of earlier times: that is no news.
fn is_of_history(coverage: &DataFrame, night: SnapshotId) -> PolarsResult<bool> {
    let rows = coverage.clone().lazy().filter(col("snapshot_id").eq(lit(night.to_string()))).collect()?;
    let mut is_history = rows.height() > 0;
    for row in 0..rows.height() {
        is_history &= Cell::at(&rows, "input", row)?.text() == Input::History.word();
    }
    Ok(is_history)
}

/// The feed's id: that of the dataset's table of offers, which no other dataset has.
async fn id_of(output: &Path) -> Result<String, SnapshotError> {
    let log = Log::open(output, &OFFERS).await?;
    let id = log.map(|log| log.id()).transpose()?.flatten();
    Ok(format!("tag:gpuledger.invalid,2026:dataset/{}", id.unwrap_or_else(|| "unpublished".to_owned())))
}

/// The feed that is there, if it reads and is this dataset's, and the night up to which it tells.
fn there(output: &Path, id: &str) -> Option<(Feed, SnapshotId)> {
    let text = std::fs::read(output.join(FEED_FILE)).ok()?;
    let feed = Feed::read_from(text.as_slice()).ok().filter(|feed| feed.id() == id)?;
    let mark = feed.categories().iter().find(|category| category.scheme() == Some(TOLD_THROUGH))?;
    let through = mark.term().parse().ok()?;
    Some((feed, through))
}

fn feed(id: String, through: SnapshotId, entries: Vec<Entry>) -> Feed {
    let updated = entries.first().map_or_else(|| at(through.instant()), |entry| *entry.updated());
    let mark = Category { term: through.to_string(), scheme: Some(TOLD_THROUGH.to_owned()), label: None };
    let generator = Generator { value: "gpuledger".to_owned(), uri: None, version: Some(env!("CARGO_PKG_VERSION").to_owned()) };
    let mut feed = Feed::default();
    feed.set_id(id);
    feed.set_title(Text::plain("Published GPU prices: what changed"));
    feed.set_subtitle(Text::plain("Prices that their sources changed, nights that were refused, and providers that stay away."));
    feed.set_updated(updated);
    feed.set_authors(vec![Person { name: "gpuledger".to_owned(), ..Person::default() }]);
    feed.set_categories(vec![mark]);
    feed.set_generator(generator);
    feed.set_entries(entries);
    feed.set_lang(Some("en".to_owned()));
    feed
}

fn write(output: &Path, feed: &Feed) -> Result<(), FeedError> {
    let config = atom_syndication::WriteConfig { write_document_declaration: true, indent_size: Some(1) };
    let mut text = feed.write_with_config(Vec::new(), config)?;
    text.push(b'\n');
    let path = output.join(FEED_FILE);
    if std::fs::read(&path).is_ok_and(|there| there == text) {
        return Ok(());
    }
    Ok(write_whole(&drafts(output), &path, &text)?)
}

/// A time as the feed has it.
fn at(at: DateTime<Utc>) -> FixedDateTime {
    at.fixed_offset()
}
