//! One store and its working copy: what is written goes into the store first, what is missing is fetched.
//!
//! A file of the working copy is in the store, or was. Bytes that never change (the tables' files, archived pages, entries
//! of a log) are put only where nothing stands; everything else is put over what was there, so of two writers the last one's
//! `feed.xml` or schedule's ledger stays.

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use deltalake_core::logstore::object_store::path::Path as Key;
use deltalake_core::logstore::object_store::{Error, GetOptions, ObjectStore, ObjectStoreExt as _, PutMode, PutOptions};
use futures::future::BoxFuture;
use futures::{FutureExt as _, StreamExt as _};
use serde::{Deserialize, Serialize};

use super::wait::wait;
use crate::archive::{ArchiveError, draft_name, drafts, read_json_here, write_new_here, write_whole_here};
use crate::lock;
use crate::offer::{COVERAGE, OFFERS, RATES};

/// The file that says whose working copy a folder is.
const MARK: &str = ".remote.json";

/// Where it is noted which version of a file the copy has.
const TAGS: &str = ".tags";

/// So many requests are on their way at once.
pub(super) const AT_ONCE: usize = 16;

/// What stands in a working copy's mark.
#[derive(Debug, Serialize, Deserialize)]
struct Mark {
    url: String,
    /// Tells this copy from others on the same machine.
    copy: String,
}

/// A dataset on a store, with its working copy.
#[derive(Debug)]
pub struct Remote {
    pub(super) store: Arc<dyn ObjectStore>,
    url: String,
    folder: PathBuf,
    copy: OnceLock<String>,
    /// Set once the store is known to put nothing over what is there when it is asked not to.
    holds_back: OnceLock<()>,
    /// Logs of which it is known that the copy's entries are the store's.
    pub(super) same_logs: Mutex<BTreeSet<&'static str>>,
}

/// Bytes of a file in the store.
pub(super) struct Fetched {
    pub bytes: Vec<u8>,
    pub tag: Option<String>,
    pub changed_at: std::time::SystemTime,
}

/// The address that a folder is the working copy of.
pub(super) fn url_of(folder: &Path) -> Option<String> {
    read_json_here::<Mark>(&folder.join(MARK)).ok().flatten().map(|mark| mark.url)
}

/// What a store said, in one line and without what a server wrote into its page of errors, where its own words for the
/// caller's name and signature stand.
pub(super) fn told(error: &Error) -> String {
    let text = match error {
        Error::PermissionDenied { .. } => "it refuses these credentials (403)".to_owned(),
        Error::Unauthenticated { .. } => "it asks for credentials (401)".to_owned(),
        Error::NotFound { .. } => "it is not there (404)".to_owned(),
        other => other.to_string(),
    };
    let text = text.split('<').next().unwrap_or_default().replace('\n', " ");
    text.trim_end_matches([' ', ':']).to_owned()
}

impl Remote {
    /// A store below its prefix, and the folder of its working copy.
    #[must_use]
    pub fn new(store: Arc<dyn ObjectStore>, url: &str, folder: PathBuf) -> Self {
        Self {
            store,
            url: url.to_owned(),
            folder,
            copy: OnceLock::new(),
            holds_back: OnceLock::new(),
            same_logs: Mutex::default(),
        }
    }

    /// The working copy.
    #[must_use]
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// The address.
    #[must_use]
    pub fn url(&self) -> &str {
        &self.url
    }

    /// This working copy, as other writers are told of it.
    #[must_use]
    pub fn writer(&self) -> String {
        let copy = self.copy.get().map_or("", String::as_str);
        format!("{} (working copy {copy})", lock::host())
    }

    /// Makes the working copy if there is none.
    ///
    /// # Errors
    /// When the disk refuses, or it is the copy of something else.
    pub(super) fn make(&self) -> Result<(), ArchiveError> {
        let path = self.folder.join(MARK);
        let read = || -> Result<Option<Mark>, ArchiveError> { read_json_here(&path) };
        if read()?.is_none() {
            let copy = gpuledger_scrapers::sha256(format!("{}\n{}", lock::host(), draft_name()).as_bytes())[..12].to_owned();
            let mark = serde_json::to_vec(&Mark { url: self.url.clone(), copy }).expect("a mark is plain data");
            // Another process may have made it meanwhile.
            let made = write_new_here(&drafts(&self.folder), &path, &mark);
            if made.is_err() && read()?.is_none() {
                return made;
            }
        }
        match read()? {
            Some(mark) if mark.url == self.url => {
                let _ = self.copy.set(mark.copy);
                Ok(())
            }
            _ => Err(ArchiveError::Io { path, source: io::Error::other(format!("it is no working copy of {}", self.url)) }),
        }
    }

    /// Path below the dataset, with `/` between its parts.
    fn below(&self, path: &Path) -> String {
        let parts = path.strip_prefix(&self.folder).unwrap_or(path).components();
        parts.map(|part| part.as_os_str().to_string_lossy().into_owned()).collect::<Vec<_>>().join("/")
    }

    fn key(&self, path: &Path) -> Key {
        Key::from(self.below(path))
    }

    /// Where a file of the store stands in the working copy; `None` for a name that no dataset has.
    pub(super) fn place(&self, key: &Key) -> Option<PathBuf> {
        let is_plain = |part: &str| !part.is_empty() && part != "." && part != ".." && !part.contains(['\\', '\0']);
        let name = key.as_ref();
        name.split('/').all(is_plain).then(|| self.folder.join(name))
    }

    /// An error of the store about a path, in the words of the disk's.
    pub(super) fn error(&self, path: &Path, error: &Error) -> ArchiveError {
        let kind = match error {
            Error::NotFound { .. } => io::ErrorKind::NotFound,
            Error::AlreadyExists { .. } | Error::Precondition { .. } => io::ErrorKind::AlreadyExists,
            _ => io::ErrorKind::Other,
        };
        let path = PathBuf::from(format!("{}/{}", self.url, self.below(path)));
        ArchiveError::Io { path, source: io::Error::new(kind, told(error)) }
    }

    /// Waits for one request about a path.
    pub(super) fn ask<T: Send + 'static>(
        &self,
        path: &Path,
        request: impl Future<Output = Result<T, Error>> + Send + 'static,
    ) -> Result<T, ArchiveError> {
        let answer = wait(request).map_err(|source| ArchiveError::Io { path: path.to_owned(), source })?;
        answer.map_err(|error| self.error(path, &error))
    }

    /// Whether bytes of this name never change.
    pub(super) fn is_immutable(&self, path: &Path) -> bool {
        let name = self.below(path);
        let is_table = [&OFFERS, &COVERAGE, &RATES].iter().any(|table| name.starts_with(&format!("{}/", table.name)));
        name.starts_with("raw/objects/") || (is_table && !name.contains("/_delta_log/"))
    }

    /// Puts a file into the store, over what is there unless its bytes never change.
    ///
    /// # Errors
    /// When the store refuses.
    pub fn put(&self, path: &Path, bytes: &[u8]) -> Result<(), ArchiveError> {
        let is_immutable = self.is_immutable(path);
        let mode = if is_immutable { PutMode::Create } else { PutMode::Overwrite };
        match self.put_as(path, bytes, mode) {
            Err(ArchiveError::Io { source, .. }) if is_immutable && source.kind() == io::ErrorKind::AlreadyExists => Ok(()),
            put => put,
        }
    }

    /// Puts a file into the store where nothing stands.
    ///
    /// # Errors
    /// When the store refuses; with [`io::ErrorKind::AlreadyExists`] when something stands there.
    pub fn put_new(&self, path: &Path, bytes: &[u8]) -> Result<(), ArchiveError> {
        self.try_to_put_over()?;
        self.put_as(path, bytes, PutMode::Create)
    }

    /// Tries, once a process and with a draft, whether the store puts over what is there although it is asked not to. With
    /// one that does, two writers would lose each other's entries.
    fn try_to_put_over(&self) -> Result<(), ArchiveError> {
        if self.holds_back.get().is_some() {
            return Ok(());
        }
        let path = drafts(&self.folder).join(draft_name());
        let put = || match self.put_as(&path, b"draft", PutMode::Create) {
            Err(ArchiveError::Io { source, .. }) if source.kind() == io::ErrorKind::AlreadyExists => Ok(false),
            put => put.map(|()| true),
        };
        put()?;
        let is_put_over = put()?;
        self.remove(&path)?;
        if is_put_over {
            let words = "it puts over what is there although it is asked not to (If-None-Match): two writers would lose nights";
            return Err(ArchiveError::Io { path: PathBuf::from(&self.url), source: io::Error::other(words) });
        }
        let _ = self.holds_back.set(());
        Ok(())
    }

    fn put_as(&self, path: &Path, bytes: &[u8], mode: PutMode) -> Result<(), ArchiveError> {
        // What the copy has is not known to be the store's until both are written.
        let _ = fs::remove_file(self.note(path));
        let (store, key, bytes) = (Arc::clone(&self.store), self.key(path), bytes.to_vec());
        let request = async move { store.put_opts(&key, bytes.into(), PutOptions { mode, ..PutOptions::default() }).await };
        self.ask(path, request).map(|_| ())
    }

    /// Whether the store has a file.
    ///
    /// # Errors
    /// When the store does not answer.
    pub fn has(&self, path: &Path) -> Result<bool, ArchiveError> {
        let (store, key) = (Arc::clone(&self.store), self.key(path));
        match self.ask(path, async move { store.head(&key).await }) {
            Ok(_) => Ok(true),
            Err(ArchiveError::Io { source, .. }) if source.kind() == io::ErrorKind::NotFound => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Removes a file from the store; one that is not there is removed already.
    ///
    /// # Errors
    /// When the store refuses.
    pub fn remove(&self, path: &Path) -> Result<(), ArchiveError> {
        let (store, key) = (Arc::clone(&self.store), self.key(path));
        match self.ask(path, async move { store.delete(&key).await }) {
            Err(ArchiveError::Io { source, .. }) if source.kind() == io::ErrorKind::NotFound => Ok(()),
            removed => removed,
        }
    }

    /// Fetches those of these files that the working copy has not; what the store has not either stays away. Receipts are
    /// looked at again, for those of a night that was refused are written anew with the next try.
    ///
    /// # Errors
    /// When the store cannot be read, or the disk refuses.
    pub fn have(&self, paths: &[&Path]) -> Result<(), ArchiveError> {
        let may_change = |path: &Path| {
            let name = self.below(path);
            name.starts_with("raw/receipts/") || name.starts_with("raw/nights/")
        };
        let missing = paths.iter().filter(|path| may_change(path) || !path.exists());
        self.fetch(missing.map(|path| (*path).to_owned()).collect(), |path, fetched| self.keep(path, &fetched))
    }

    /// Fetches files, several at once, and has each kept in the order in which they are named. What is not there, or is
    /// there as it is noted, is passed over.
    pub(super) fn fetch(
        &self,
        paths: Vec<PathBuf>,
        keep: impl Fn(&Path, Fetched) -> Result<(), ArchiveError>,
    ) -> Result<(), ArchiveError> {
        for chunk in paths.chunks(AT_ONCE * 4) {
            let requests = chunk.iter().map(|path| {
                let (path, key, tag, store) = (path.clone(), self.key(path), self.tag(path), Arc::clone(&self.store));
                async move { (path, get(store, key, tag).await) }.boxed()
            });
            let requests: Vec<BoxFuture<'static, _>> = requests.collect();
            let answers = futures::stream::iter(requests).buffered(AT_ONCE).collect::<Vec<_>>();
            let answers = wait(answers).map_err(|source| ArchiveError::Io { path: self.folder.clone(), source })?;
            for (path, answer) in answers {
                match answer {
                    Ok(fetched) => keep(&path, fetched)?,
                    Err(Error::NotFound { .. } | Error::NotModified { .. }) => {}
                    Err(error) => return Err(self.error(&path, &error)),
                }
            }
        }
        Ok(())
    }

    /// Puts what was fetched into the working copy, and notes which version it is.
    pub(super) fn keep(&self, path: &Path, fetched: &Fetched) -> Result<(), ArchiveError> {
        write_whole_here(&drafts(&self.folder), path, &fetched.bytes)?;
        if self.is_immutable(path) {
            return Ok(());
        }
        let note = self.note(path);
        let io = |source| ArchiveError::Io { path: note.clone(), source };
        fs::create_dir_all(note.parent().expect("a note stands in a folder")).map_err(io)?;
        // A note that is lost or torn costs fetching once more.
        fs::write(&note, fetched.tag.as_deref().unwrap_or_default()).map_err(io)
    }

    fn note(&self, path: &Path) -> PathBuf {
        self.folder.join(TAGS).join(self.below(path))
    }

    /// Which version of a file the working copy has; `None` where that is not known.
    pub(super) fn tag(&self, path: &Path) -> Option<String> {
        let tag = fs::read_to_string(self.note(path)).ok()?;
        (path.exists() && !tag.is_empty()).then_some(tag)
    }

    /// Marks a log's entries as the store's own; whether they were already.
    pub(super) fn is_same_log(&self, table: &'static str) -> bool {
        self.same_logs.lock().unwrap_or_else(PoisonError::into_inner).contains(table)
    }
}

async fn get(store: Arc<dyn ObjectStore>, key: Key, tag: Option<String>) -> Result<Fetched, Error> {
    let answer = store.get_opts(&key, GetOptions { if_none_match: tag, ..GetOptions::default() }).await?;
    let (tag, changed_at) = (answer.meta.e_tag.clone(), answer.meta.last_modified.into());
    Ok(Fetched { bytes: answer.bytes().await?.to_vec(), tag, changed_at })
}
