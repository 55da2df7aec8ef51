//! The archived answer of a row, and the very bytes at its place.

use std::ops::Range;

use chrono::{DateTime, Utc};
use gpuledger_scrapers::contract::{Page, Place, Scraper};
use gpuledger_scrapers::spot::{Piece, Spot};
use serde::Serialize;

use crate::archive::{Archive, ArchiveError, Receipt, Whole};
use crate::frame::Row;
use crate::night::SnapshotId;
use crate::prune::when_pruned;
use crate::report::Failed;

/// Most bytes of a piece that are shown.
const SHOWN_BYTES: usize = 2_000;

/// Bytes before the printed text where a piece is cut.
const BEFORE_BYTES: usize = 700;

/// How an archived answer is found.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case", tag = "state")]
pub enum State {
    /// The archived bytes have the hash that the row names.
    Verified,
    /// They have another.
    Damaged {
        /// What is wrong.
        reason: String,
    },
    /// They were removed by `archive prune`.
    Pruned {
        /// When.
        at: DateTime<Utc>,
    },
    /// They are not there, and nobody says why.
    Missing,
}

/// The archived answer that a price stands in.
#[derive(Debug, Serialize)]
pub struct Proof {
    /// Where it came from.
    pub source_url: String,
    /// When it was observed; of an earlier night, when it was published.
    pub observed_at: String,
    /// What the receipt says besides; `None` where there is no receipt.
    pub receipt: Option<Receipt>,
    /// SHA-256 of the archived bytes, as the row has it.
    pub raw_sha256: String,
    /// The whole of a bulk file of which only some lines are kept.
    pub whole: Option<Whole>,
    /// Whether the bytes are there and have that hash.
    #[serde(flatten)]
    pub state: State,
    /// Place in the page, as the row has it.
    pub raw_place: String,
    /// What was printed, as the row has it.
    pub published_text: String,
    /// The bytes, at each place that the price was read from.
    pub spots: Vec<Seen>,
}

/// One place and its bytes.
#[derive(Debug, Serialize)]
pub struct Seen {
    /// Name of the page.
    pub page: String,
    /// Place in it.
    pub at: String,
    /// What it gave to the price.
    pub gives: String,
    /// The bytes, what is around first, the place last; empty where they could not be found.
    pub pieces: Vec<SeenPiece>,
    /// Whether all that was printed stands in them.
    pub is_printed_there: bool,
}

/// A piece of a page as it is shown.
#[derive(Debug, Serialize)]
pub struct SeenPiece {
    /// What it is. `value`, `parent object`, `header`, `row`
    pub is: &'static str,
    /// Where the piece begins in the page, in bytes; `None` for text that is packed or escaped in the page.
    pub starts_at: Option<usize>,
    /// Size of the whole piece in bytes.
    pub bytes: usize,
    /// Bytes left out before and after what is shown.
    pub left_out: (usize, usize),
    /// The characters that are shown.
    pub text: String,
    /// Where what was printed stands in `text`, in bytes from its beginning.
    pub marked: Vec<(usize, usize)>,
}

impl Proof {
    /// Whether the bytes are there, have their hash, and hold what was printed.
    #[must_use]
    pub fn is_borne_out(&self) -> bool {
        self.state == State::Verified && !self.spots.is_empty() && self.spots.iter().all(|spot| spot.is_printed_there)
    }
}

/// Finds the answer of a row and cuts the bytes out.
pub(super) fn prove(archive: &Archive, night: SnapshotId, scraper: &'static dyn Scraper, row: &Row<'_>) -> Result<Proof, Failed> {
    let (url, sha256) = (row.text("source_url")?, row.text("raw_sha256")?);
    let receipts = archive
        .receipts(night, &row.text("provider")?)
        .map_err(|error| Failed::new(crate::exit::Exit::Bug, "read the receipts", &error))?
        .unwrap_or_default();
    let receipt = receipts.iter().find(|receipt| receipt.sha256 == sha256 && receipt.url == url);
    let state = match archive.read(&sha256) {
        Ok(_) => State::Verified,
        Err(error) => state_of(archive, &sha256, &error),
    };
    let (raw_place, text) = (row.text("raw_place")?, row.text("published_text")?);
    let mut spots = Vec::new();
    if let Some(receipt) = receipt.filter(|_| state == State::Verified) {
        let place = Place { page: receipt.page.clone(), at: raw_place.clone() };
        let of_scope: Vec<&Receipt> = receipts.iter().filter(|other| other.scope == receipt.scope).collect();
        spots = seen(archive, scraper, &of_scope, &place, row.optional("sku")?.as_deref(), &text);
    }
    Ok(Proof {
        source_url: url,
        observed_at: row.text("observed_at")?,
        whole: receipt.and_then(|receipt| receipt.whole.clone()),
        receipt: receipt.cloned(),
        raw_sha256: sha256,
        state,
        raw_place,
        published_text: text,
        spots,
    })
}

fn state_of(archive: &Archive, sha256: &str, error: &ArchiveError) -> State {
    match (error, when_pruned(archive, sha256)) {
        (ArchiveError::Damaged { .. }, _) => State::Damaged { reason: error.to_string() },
        (ArchiveError::Io { path, .. }, pruned) if !path.exists() => pruned.map_or(State::Missing, |at| State::Pruned { at }),
        (ArchiveError::Io { source, .. }, _) => State::Damaged { reason: source.to_string() },
    }
}

/// The bytes of each place. A page of the scope that is not there any more is left out: what it would show is not shown.
fn seen(
    archive: &Archive,
    scraper: &'static dyn Scraper,
    receipts: &[&Receipt],
    place: &Place,
    sku: Option<&str>,
    text: &str,
) -> Vec<Seen> {
    let pages: Vec<Page> = receipts.iter().filter_map(|receipt| archive.page(receipt).ok()).collect();
    let spots = scraper.spots(&pages, place, sku, text);
    let seen = |spot: Spot| {
        let page = pages.iter().find(|page| page.name == spot.place.page);
        let pieces = page.and_then(|page| scraper.pieces(page, &spot.place.at)).unwrap_or_default();
        let is_printed_there = spot.printed.iter().all(|text| pieces.iter().any(|piece| piece.text.contains(text.as_str())));
        Seen {
            page: spot.place.page,
            at: spot.place.at,
            gives: spot.gives,
            pieces: shown(pieces, &spot.printed),
            is_printed_there,
        }
    };
    spots.into_iter().map(seen).collect()
}

/// The pieces of a place as they are shown. What was printed is marked at the place only: the same number may stand around it
/// for something else.
fn shown(pieces: Vec<Piece>, printed: &[String]) -> Vec<SeenPiece> {
    let place = pieces.last().and_then(|place| place.starts_at.map(|start| start..start + place.text.len()));
    let last = pieces.len().saturating_sub(1);
    let within = |index: usize, piece: &Piece| match (index == last, piece.starts_at, &place) {
        (true, _, _) => Some(0..piece.text.len()),
        (false, Some(start), Some(place)) => {
            let (from, to) = (place.start.checked_sub(start)?, place.end.checked_sub(start)?);
            (to <= piece.text.len()).then_some(from..to)
        }
        (false, _, _) => None,
    };
    let pieces = pieces.into_iter().enumerate();
    pieces.map(|(index, piece)| (within(index, &piece), piece)).map(|(within, piece)| cut(piece, within, printed)).collect()
}

/// A piece cut to what fits on a screen, around what was printed.
fn cut(piece: Piece, within: Option<Range<usize>>, printed: &[String]) -> SeenPiece {
    let (text, bytes) = (piece.text.as_str(), piece.text.len());
    let within = within.unwrap_or(0..0);
    let mut marked: Vec<(usize, usize)> = Vec::new();
    for word in printed.iter().filter(|word| !word.is_empty()) {
        let found = text[within.clone()].match_indices(word.as_str()).map(|(at, _)| within.start + at);
        marked.extend(found.filter(|at| is_alone(text, *at, word)).map(|at| (at, at + word.len())));
    }
    marked.sort_unstable();
    marked.dedup_by(|later, earlier| later.0 < earlier.1);
    let near = |at: usize| (0..=at).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0);
    let first = marked.first().map_or(within.start, |(start, _)| *start);
    let start = if bytes <= SHOWN_BYTES { 0 } else { near(first.saturating_sub(BEFORE_BYTES)) };
    let end = near((start + SHOWN_BYTES).min(bytes));
    let is_shown = |(from, to): &(usize, usize)| *from >= start && *to <= end;
    let marked = marked.into_iter().filter(is_shown).map(|(from, to)| (from - start, to - start)).collect();
    let text = text[start..end].to_owned();
    SeenPiece { is: piece.is, starts_at: piece.starts_at, bytes, left_out: (start, bytes - end), text, marked }
}

/// Whether a word is not a part of a longer number or name.
fn is_alone(text: &str, at: usize, word: &str) -> bool {
    let joins = |c: char| c.is_alphanumeric() || c == '.';
    let ends = |c: Option<char>, of_word: Option<char>| !(c.is_some_and(joins) && of_word.is_some_and(char::is_alphanumeric));
    ends(text[..at].chars().next_back(), word.chars().next())
        && ends(text[at + word.len()..].chars().next(), word.chars().next_back())
}
