//! The nights before this one, as far as the rules need them: what each scope held when it was last complete.
//!
//! Reads a bounded number of snapshots, so the thousandth night costs what the second did. A night that is judged again is
//! compared with the nights that were there when it was judged first: earlier ones, published before it.

use std::collections::{BTreeMap, HashSet};
use std::path::Path;

use chrono::Days;
use polars::prelude::*;

use crate::frame::{self, Cell};
use crate::gather::Input;
use crate::night::SnapshotId;
use crate::offer::OFFERS;
use crate::snapshot::SnapshotError;
use crate::snapshot::read::{self, Snapshot};

/// Snapshots that are looked through for the last complete night of a scope.
///
/// A scope that was refused so many times in a row has nothing to be compared with and is taken as it is: what stays changed is no fault of a night.
pub const SNAPSHOTS_LOOKED_BACK: usize = 7;

/// Days that are looked back, for the same reason: where every scope is refused there are no new snapshots to count.
pub const DAYS_LOOKED_BACK: u64 = 14;

/// Columns of an earlier night that the rules read.
const COLUMNS: [&str; 5] = ["provider", "scope", "offer_id", "published_currency_code", "price_native_per_hour"];

/// What a scope held when it was last complete.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EarlierScope {
    /// The night.
    pub snapshot: SnapshotId,
    /// Its offers.
    pub rows: usize,
    /// Version of the parser that read them.
    pub scraper_version: u32,
}

/// The last complete night of every scope, each scope's own.
#[derive(Debug, Clone)]
pub struct Earlier {
    scopes: BTreeMap<(String, String), EarlierScope>,
    rows: DataFrame,
}

impl Default for Earlier {
    fn default() -> Self {
        Self::none()
    }
}

impl Earlier {
    /// Nothing to compare with: the first night.
    #[must_use]
    pub fn none() -> Self {
        let rows = frame::empty(&OFFERS).select(COLUMNS).expect("the columns are the table's");
        Self { scopes: BTreeMap::new(), rows }
    }

    /// What a scope held.
    #[must_use]
    pub fn scope(&self, provider: &str, scope: &str) -> Option<&EarlierScope> {
        self.scopes.get(&(provider.to_owned(), scope.to_owned()))
    }

    /// Scopes of a provider.
    pub fn scopes_of<'a>(&'a self, provider: &'a str) -> impl Iterator<Item = (&'a str, &'a EarlierScope)> + 'a {
        self.scopes.iter().filter(move |((of, _), _)| of == provider).map(|((_, scope), earlier)| (scope.as_str(), earlier))
    }

    /// The offers: id, currency and price of the machine for an hour.
    #[must_use]
    pub const fn rows(&self) -> &DataFrame {
        &self.rows
    }

    /// Whether there is nothing to compare with.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.scopes.is_empty()
    }

    /// Puts a night over what is known: its complete scopes replace what was there of them.
    ///
    /// # Errors
    /// When a column is not there.
    pub fn over(&mut self, scopes: Vec<((String, String), EarlierScope)>, offers: &DataFrame) -> PolarsResult<()> {
        let new: HashSet<(&str, &str)> =
            scopes.iter().map(|((provider, scope), _)| (provider.as_str(), scope.as_str())).collect();
        let kept = of_scopes(&self.rows, |key| !new.contains(&key))?;
        self.rows = kept.vstack(&of_scopes(&offers.select(COLUMNS)?, |key| new.contains(&key))?)?;
        self.scopes.extend(scopes);
        Ok(())
    }
}

/// Rows of the scopes that are wanted.
fn of_scopes(rows: &DataFrame, is_wanted: impl Fn((&str, &str)) -> bool) -> PolarsResult<DataFrame> {
    let (providers, scopes) = (rows.column("provider")?.str()?, rows.column("scope")?.str()?);
    let keep: BooleanChunked =
        providers.iter().zip(scopes.iter()).map(|(provider, scope)| provider.zip(scope).is_some_and(&is_wanted)).collect();
    if keep.all() { Ok(rows.clone()) } else { rows.filter(&keep) }
}

/// What the rules compare a night with: of each provider's scopes, the newest complete night before it.
///
/// `tonight` says where each provider's pages come from: recordings, which are samples, are compared with recordings only.
///
/// # Errors
/// When the dataset cannot be read.
pub async fn before(
    output: &Path,
    published: &[Snapshot],
    night: SnapshotId,
    tonight: &BTreeMap<String, Input>,
) -> Result<Earlier, SnapshotError> {
    // A correction is compared with what the night that it corrects was compared with.
    let night = night.original();
    let own_version = published.iter().find(|snapshot| snapshot.id == night).map_or(usize::MAX, |snapshot| snapshot.version);
    let first = SnapshotId::at(night.instant() - Days::new(DAYS_LOOKED_BACK));
    // An imported night is compared with imported ones, and no collected night with those.
    let is_import = tonight.values().any(|input| *input == Input::Import);
    let is_before = |snapshot: &&Snapshot| {
        (first..night).contains(&snapshot.id) && snapshot.version < own_version && snapshot.is_import() == is_import
    };
    let mut candidates: Vec<Snapshot> = published.iter().filter(is_before).cloned().collect();
    candidates.sort_by_key(|snapshot| snapshot.id);
    candidates.drain(..candidates.len().saturating_sub(SNAPSHOTS_LOOKED_BACK));
    let coverage = read::coverage(output, &candidates).await?;
    let unreadable = |source| SnapshotError::Parquet { path: output.to_owned(), source };
    let newest = newest_complete(&coverage, tonight).map_err(unreadable)?;
    let mut earlier = Earlier::none();
    for snapshot in &candidates {
        let scopes: Vec<_> = newest.iter().filter(|(_, scope)| scope.snapshot == snapshot.id).cloned().collect();
        if !scopes.is_empty() {
            let rows = read::offers(snapshot)?.select(COLUMNS.map(col)).collect().map_err(unreadable)?;
            earlier.over(scopes, &rows).map_err(unreadable)?;
        }
    }
    Ok(earlier)
}

/// The newest night of each scope in which it was complete and its pages were of the same kind.
fn newest_complete(
    coverage: &DataFrame,
    tonight: &BTreeMap<String, Input>,
) -> PolarsResult<Vec<((String, String), EarlierScope)>> {
    let mut newest: BTreeMap<(String, String), EarlierScope> = BTreeMap::new();
    for row in 0..coverage.height() {
        let cell = |name: &str| Cell::at(coverage, name, row).map(|cell| cell.text());
        let key = (cell("provider")?, cell("scope")?);
        let is_alike =
            tonight.get(&key.0).is_some_and(|input| is_sample(input.word()) == cell("input").is_ok_and(|word| is_sample(&word)));
        if cell("status")? != "complete" || !is_alike {
            continue;
        }
        let scope = EarlierScope {
            snapshot: cell("snapshot_id")?.parse().expect("a published snapshot has an id"),
            rows: cell("rows")?.parse().expect("a count of rows is a number"),
            scraper_version: cell("scraper_version")?.parse().expect("a parser's version is a number"),
        };
        if newest.get(&key).is_none_or(|known| known.snapshot < scope.snapshot) {
            newest.insert(key, scope);
        }
    }
    Ok(newest.into_iter().collect())
}

/// Whether pages are a sample: a part of what a night has, kept to show its shape.
#[must_use]
pub fn is_sample(input: &str) -> bool {
    [Input::Recorded, Input::Typed].iter().any(|sample| sample.word() == input)
}
