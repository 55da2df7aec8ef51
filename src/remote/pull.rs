//! What is brought from a store into its working copy before it is read: small files, entries of the logs, the lists of runs
//! that are publishing. Nothing is brought that would make the copy's log have a gap.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Arc, PoisonError};

use chrono::{DateTime, Utc};
use deltalake_core::logstore::object_store::path::Path as Key;
use deltalake_core::logstore::object_store::{ObjectMeta, ObjectStore as _};
use futures::TryStreamExt as _;

use super::copy::Remote;
use crate::archive::{ArchiveError, drafts, write_new_here};
use crate::offer::{COVERAGE, OFFERS, RATES, Table};
use crate::record::RUNS;
use crate::snapshot::journal;

/// Folders of small files that are brought before any verb: records, what was removed from the archive, alerts.
const SMALL: [&str; 3] = [RUNS, "raw/pruned", "alerts"];

/// A file of the store.
#[derive(Debug, Clone)]
pub struct Stored {
    /// Where it stands in the working copy, or would.
    pub path: PathBuf,
    /// Its size.
    pub bytes: u64,
    /// When it was put.
    pub written_at: DateTime<Utc>,
}

/// The version that a log's entry is of. `00000000000000000007.json`
fn version_of(name: &str) -> Option<u64> {
    let digits = name.strip_suffix(".json")?;
    (digits.len() == 20).then(|| digits.parse().ok())?
}

impl Remote {
    /// Makes the working copy and brings its small files up to date.
    ///
    /// # Errors
    /// When the store cannot be read, or the disk refuses.
    pub fn prepare(&self) -> Result<(), ArchiveError> {
        self.make()?;
        for folder in SMALL {
            self.pull_below(folder)?;
        }
        let (store, root) = (Arc::clone(&self.store), self.folder().to_owned());
        let beside = self.ask(&root, async move { store.list_with_delimiter(None).await })?;
        // Lists of runs are brought where they are asked for.
        self.bring(beside.objects, |path| path.file_name().is_some_and(|name| name == "feed.xml"))
    }

    /// Brings the files below a folder up to date, unless their bytes never change and they are there.
    ///
    /// # Errors
    /// When the store cannot be read, or the disk refuses.
    pub fn pull_below(&self, folder: &str) -> Result<(), ArchiveError> {
        self.bring(self.objects(folder)?, |_| true)
    }

    /// Brings everything beside the tables, archived pages included; of the tables what their logs name is brought with them.
    ///
    /// # Errors
    /// When the store cannot be read, or the disk refuses.
    pub fn pull_everything(&self) -> Result<(), ArchiveError> {
        let is_kept = |path: &Path| {
            let name = path.strip_prefix(self.folder()).unwrap_or(path).to_string_lossy().into_owned();
            let is_table = [&OFFERS, &COVERAGE, &RATES].iter().any(|table| name.starts_with(&format!("{}/", table.name)));
            !name.starts_with('.') && !is_table
        };
        self.bring(self.objects("")?, is_kept)
    }

    /// The files of the store below a folder.
    ///
    /// # Errors
    /// When the store cannot be read.
    pub fn stored(&self, folder: &str) -> Result<Vec<Stored>, ArchiveError> {
        let objects = self.objects(folder)?.into_iter();
        let stored = objects.filter_map(|object| {
            let path = self.place(&object.location)?;
            Some(Stored { path, bytes: object.size, written_at: object.last_modified })
        });
        Ok(stored.collect())
    }

    fn objects(&self, folder: &str) -> Result<Vec<ObjectMeta>, ArchiveError> {
        let (store, key) = (Arc::clone(&self.store), Key::from(folder));
        let listed = async move { store.list(Some(&key).filter(|key| !key.as_ref().is_empty())).try_collect().await };
        self.ask(&self.folder().join(folder), listed)
    }

    fn bring(&self, objects: Vec<ObjectMeta>, is_wanted: impl Fn(&Path) -> bool) -> Result<(), ArchiveError> {
        let mut wanted = Vec::new();
        for object in objects {
            let Some(path) = self.place(&object.location).filter(|path| is_wanted(path)) else { continue };
            if !path.exists() || (!self.is_immutable(&path) && self.tag(&path) != object.e_tag) {
                wanted.push(path);
            }
        }
        self.fetch(wanted, |path, fetched| self.keep(path, &fetched))
    }

    /// Brings the entries of a table's log that the copy has not, in their order. One that is missing ends it: what comes
    /// after it is of no use.
    ///
    /// # Errors
    /// When the store cannot be read, the disk refuses, or the copy has entries that the store has not.
    pub fn pull_log(&self, table: &'static Table) -> Result<(), ArchiveError> {
        let folder = self.folder().join(table.name).join("_delta_log");
        let newest = newest_in(&folder);
        if let Some(newest) = newest.filter(|_| !self.is_same_log(table.name)) {
            self.compare(&folder.join(entry(newest)))?;
        }
        self.same_logs.lock().unwrap_or_else(PoisonError::into_inner).insert(table.name);
        let (store, log) = (Arc::clone(&self.store), Key::from(format!("{}/_delta_log", table.name)));
        let after = newest.map(|newest| log.clone().join(entry(newest).as_str()));
        let listed = async move {
            match after {
                Some(after) => store.list_with_offset(Some(&log), &after).try_collect::<Vec<_>>().await,
                None => store.list(Some(&log)).try_collect().await,
            }
        };
        let listed = self.ask(&folder, listed)?;
        let names: Vec<String> = listed.iter().filter_map(|object| object.location.filename().map(str::to_owned)).collect();
        let mut versions: Vec<u64> = names.iter().filter_map(|name| version_of(name)).collect();
        versions.sort_unstable();
        let first = newest.map_or(0, |newest| newest + 1);
        let in_order = versions.into_iter().zip(first..).take_while(|(version, wanted)| version == wanted);
        let mut paths: Vec<PathBuf> = in_order.map(|(version, _)| folder.join(entry(version))).collect();
        // Entries put together, which make opening quicker, come after the entries themselves.
        paths.extend(names.iter().filter(|name| name.ends_with(".checkpoint.parquet")).map(|name| folder.join(name)));
        self.fetch(paths, |path, fetched| match write_new_here(&drafts(self.folder()), path, &fetched.bytes) {
            // Another process has the same copy.
            Err(ArchiveError::Io { source, .. }) if source.kind() == std::io::ErrorKind::AlreadyExists => Ok(()),
            written => written,
        })
    }

    /// Whether an entry of the copy is the store's: a store that was emptied and filled again is another dataset.
    fn compare(&self, path: &Path) -> Result<(), ArchiveError> {
        let own = fs::read(path).map_err(|source| ArchiveError::Io { path: path.to_owned(), source })?;
        let is_same = std::cell::Cell::new(false);
        self.fetch(vec![path.to_owned()], |_, fetched| {
            is_same.set(fetched.bytes == own);
            Ok(())
        })?;
        if is_same.get() {
            return Ok(());
        }
        let words = format!("it is not what {} has: remove {}, which is a copy", self.url(), self.folder().display());
        Err(ArchiveError::Io { path: path.to_owned(), source: std::io::Error::other(words) })
    }

    /// Brings the lists of runs that are publishing, and takes away those of others that are done.
    ///
    /// # Errors
    /// When the store cannot be read, or the disk refuses.
    pub fn pull_lists(&self) -> Result<(), ArchiveError> {
        let (store, root) = (Arc::clone(&self.store), self.folder().to_owned());
        let beside = self.ask(&root, async move { store.list_with_delimiter(None).await })?;
        let places = beside.objects.iter().filter_map(|object| self.place(&object.location));
        let there: Vec<PathBuf> = places.filter(|path| journal::is_list(path)).collect();
        let missing = there.iter().filter(|path| !path.exists()).cloned().collect();
        self.fetch(missing, |path, fetched| {
            match write_new_here(&drafts(self.folder()), path, &fetched.bytes) {
                // Another process has the same copy.
                Err(ArchiveError::Io { source, .. }) if source.kind() == std::io::ErrorKind::AlreadyExists => return Ok(()),
                written => written?,
            }
            let file = fs::File::options().write(true).open(path);
            // How long it counts as held goes by the time at which it was put.
            file.and_then(|file| file.set_modified(fetched.changed_at))
                .map_err(|source| ArchiveError::Io { path: path.to_owned(), source })
        })?;
        journal::forget_others(self.folder(), &self.writer(), &there)
    }
}

fn entry(version: u64) -> String {
    format!("{version:020}.json")
}

/// The newest entry of a log in the working copy.
fn newest_in(folder: &Path) -> Option<u64> {
    let entries = fs::read_dir(folder).ok()?;
    entries.filter_map(|entry| version_of(entry.ok()?.file_name().to_str()?)).max()
}
