//! Raw answers, kept before anything reads them.
//!
//! Named by the SHA-256 of their bytes, compressed with zstd, written once and never changed. Each answer of each night
//! has a receipt that says where and when it came from. Pages are read back from here, and their hash is checked: an
//! object that does not hold what its name says is never trusted. Of a bulk file only the sieved lines are kept; the
//! receipt then has the hash and size of the whole.

use std::fs::{self, File};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

use chrono::{DateTime, Utc};
use gpuledger_scrapers::contract::{Method, Page};
use gpuledger_scrapers::sha256;
use serde::{Deserialize, Serialize};

use crate::fetch::Validators;
use crate::night::SnapshotId;
use crate::remote;

/// Compression level, zstd's own default. At 9 a price list takes a third less room and seven times as long, which is then
/// the longest step of its way from the server to the archive.
const ZSTD_LEVEL: i32 = zstd::DEFAULT_COMPRESSION_LEVEL;

/// Folder of the archive, below the dataset.
pub(crate) const RAW: &str = "raw";

/// The archive of a dataset.
#[derive(Debug, Clone)]
pub struct Archive {
    root: PathBuf,
    drafts: PathBuf,
}

/// An answer that is not archived yet.
#[derive(Debug, Clone)]
pub struct Answer {
    /// Name of the page within the provider.
    pub page: String,
    /// Scope of the page.
    pub scope: String,
    /// Where it came from.
    pub url: String,
    /// How it was asked for.
    pub method: Method,
    /// SHA-256 of what was sent along; `None` when nothing was.
    pub request_body_sha256: Option<String>,
    /// HTTP status; `None` for a file or recording.
    pub http_status: Option<u16>,
    /// When it was read.
    pub observed_at: DateTime<Utc>,
    /// The bytes, after removing the transfer's compression and nothing else; of a bulk file, the lines its sieve kept.
    pub body: Vec<u8>,
    /// The whole of a bulk file; `None` when `body` is the whole.
    pub whole: Option<Whole>,
}

/// A bulk file of which only the sieved lines are kept.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Whole {
    /// Name and version of the sieve. `aws-accelerated-1`
    pub sieve: String,
    /// SHA-256 of the whole file.
    pub sha256: String,
    /// Number of its bytes.
    pub bytes: u64,
}

/// What is known of an archived answer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Receipt {
    /// Name of the page within the provider.
    pub page: String,
    /// Scope of the page.
    pub scope: String,
    /// Where it came from.
    pub url: String,
    /// How it was asked for.
    pub method: Method,
    /// SHA-256 of what was sent along.
    pub request_body_sha256: Option<String>,
    /// HTTP status; `None` for a file or recording.
    pub http_status: Option<u16>,
    /// When it was read; of an earlier night, when it was published.
    pub observed_at: DateTime<Utc>,
    /// When it was read, where that is not when it was published.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub read_at: Option<DateTime<Utc>>,
    /// SHA-256 of the bytes.
    pub sha256: String,
    /// Number of the bytes.
    pub bytes: u64,
    /// The whole of a bulk file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub whole: Option<Whole>,
    /// When the bytes were first read, where the source said tonight that they are still the same.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unchanged_since: Option<DateTime<Utc>>,
}

/// The last answer of an address, kept so that an unchanged one need not be sent again.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct LastAnswer {
    /// The receipt of that answer.
    pub receipt: Receipt,
    /// What the server needs to see whether it changed.
    pub validators: Validators,
}

/// A text that belongs beside a published night, such as its record.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sidecar {
    /// Path below the dataset. `runs/2026-10-30T18-00-00Z.json`
    pub path: String,
    /// What stands in it.
    pub text: String,
}

/// What can go wrong with the archive.
#[derive(Debug, thiserror::Error)]
pub enum ArchiveError {
    /// The disk said no.
    #[error("use {}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// What it said.
        source: io::Error,
    },
    /// An object does not hold what its name says.
    #[error("trust archived object {sha256}: its bytes hash to {found}")]
    Damaged {
        /// The name.
        sha256: String,
        /// What the bytes hash to.
        found: String,
    },
}

impl Receipt {
    /// The page that these bytes are.
    pub(crate) fn page_of(&self, body: Vec<u8>) -> Page {
        Page {
            name: self.page.clone(),
            scope: self.scope.clone(),
            url: self.url.clone(),
            observed_at: self.observed_at,
            sha256: self.sha256.clone(),
            body,
        }
    }
}

impl Archive {
    /// The archive below the root of a dataset.
    #[must_use]
    pub fn below(output: &Path) -> Self {
        Self { root: output.join(RAW), drafts: drafts(output) }
    }

    /// Stores an answer and reads it back as a page. The same bytes are stored once.
    ///
    /// # Errors
    /// When the disk refuses.
    pub fn keep(&self, answer: Answer) -> Result<(Receipt, Page), ArchiveError> {
        let sha256 = sha256(&answer.body);
        let path = self.object(&sha256);
        // A damaged object is written again: the bytes at hand are those that its name says. One that another machine has
        // removed from a store is put there again.
        let is_kept = self.read_here(&sha256).is_ok() && remote::at(&path).map_or(Ok(true), |remote| remote.has(&path))?;
        if !is_kept {
            let packed = zstd::encode_all(answer.body.as_slice(), ZSTD_LEVEL)
                .map_err(|source| ArchiveError::Io { path: path.clone(), source })?;
            write_whole(&self.drafts, &path, &packed)?;
        }
        let receipt = Receipt {
            page: answer.page.clone(),
            scope: answer.scope.clone(),
            url: answer.url.clone(),
            method: answer.method,
            request_body_sha256: answer.request_body_sha256,
            http_status: answer.http_status,
            observed_at: answer.observed_at,
            read_at: None,
            bytes: u64::try_from(answer.body.len()).expect("a page fits in memory"),
            sha256,
            whole: answer.whole,
            unchanged_since: None,
        };
        let page = receipt.page_of(answer.body);
        Ok((receipt, page))
    }

    /// The bytes of an object, checked against its name.
    ///
    /// # Errors
    /// When it is not there, cannot be inflated, or holds other bytes.
    pub fn read(&self, sha: &str) -> Result<Vec<u8>, ArchiveError> {
        remote::have(&self.object(sha))?;
        self.read_here(sha)
    }

    /// The same of what is on this disk.
    fn read_here(&self, sha: &str) -> Result<Vec<u8>, ArchiveError> {
        let path = self.object(sha);
        let io = |source| ArchiveError::Io { path: path.clone(), source };
        let body = zstd::decode_all(File::open(&path).map_err(io)?).map_err(io)?;
        let found = sha256(&body);
        if found == sha { Ok(body) } else { Err(ArchiveError::Damaged { sha256: sha.to_owned(), found }) }
    }

    /// Writes the receipts of one provider's night.
    ///
    /// # Errors
    /// When the disk refuses.
    pub fn keep_receipts(&self, snapshot: SnapshotId, provider: &str, receipts: &[Receipt]) -> Result<(), ArchiveError> {
        write_whole(&self.drafts, &self.receipts_path(snapshot, provider), receipts_text(receipts).as_bytes())
    }

    /// The receipts of one provider's night as they stand in the dataset.
    #[must_use]
    pub fn receipts_beside(snapshot: SnapshotId, provider: &str, receipts: &[Receipt]) -> Sidecar {
        Sidecar { path: format!("{RAW}/receipts/{snapshot}/{provider}.json"), text: receipts_text(receipts) }
    }

    /// The receipts of one provider's night; `None` when there are none.
    ///
    /// # Errors
    /// When they cannot be read.
    pub fn receipts(&self, snapshot: SnapshotId, provider: &str) -> Result<Option<Vec<Receipt>>, ArchiveError> {
        read_json(&self.receipts_path(snapshot, provider))
    }

    fn receipts_path(&self, snapshot: SnapshotId, provider: &str) -> PathBuf {
        self.root.join("receipts").join(snapshot.to_string()).join(format!("{provider}.json"))
    }

    /// The folder of the archive.
    pub(crate) fn root(&self) -> &Path {
        &self.root
    }

    /// Writes a file of the archive whole.
    pub(crate) fn write(&self, path: &Path, bytes: &[u8]) -> Result<(), ArchiveError> {
        write_whole(&self.drafts, path, bytes)
    }

    /// The page of a receipt, its bytes checked against their hash.
    ///
    /// # Errors
    /// When the object is not there, cannot be inflated, or holds other bytes.
    pub fn page(&self, receipt: &Receipt) -> Result<Page, ArchiveError> {
        Ok(receipt.page_of(self.read(&receipt.sha256)?))
    }

    /// Remembers the answer of an address.
    ///
    /// # Errors
    /// When the disk refuses.
    pub fn remember(&self, last: &LastAnswer) -> Result<(), ArchiveError> {
        let text = serde_json::to_vec_pretty(last).expect("a receipt is plain data");
        write_whole(&self.drafts, &self.address(&last.receipt.url), &text)
    }

    /// The last answer of an address and its bytes, if they are still whole. Anything doubtful is as good as nothing.
    #[must_use]
    pub fn recall(&self, url: &str) -> Option<(LastAnswer, Vec<u8>)> {
        let path = self.address(url);
        remote::have(&path).ok()?;
        let last: LastAnswer = serde_json::from_slice(&fs::read(path).ok()?).ok()?;
        let body = self.read(&last.receipt.sha256).ok().filter(|_| last.receipt.url == url)?;
        Some((last, body))
    }

    /// Forgets the answer of an address, so that it is asked for again: what it said was refused.
    ///
    /// # Errors
    /// When the disk refuses.
    pub fn forget(&self, url: &str) -> Result<(), ArchiveError> {
        let path = self.address(url);
        if let Some(remote) = remote::at(&path) {
            remote.remove(&path)?;
        }
        match fs::remove_file(&path) {
            Err(source) if source.kind() != io::ErrorKind::NotFound => Err(ArchiveError::Io { path, source }),
            _ => Ok(()),
        }
    }

    fn address(&self, url: &str) -> PathBuf {
        let name = sha256(url.as_bytes());
        self.root.join("addresses").join(&name[..2]).join(format!("{}.json", &name[2..]))
    }

    /// Where the bytes of a hash are kept, packed with zstd.
    #[must_use]
    pub fn object(&self, sha256: &str) -> PathBuf {
        self.root.join("objects").join(&sha256[..2]).join(format!("{}.zst", &sha256[2..]))
    }
}

fn receipts_text(receipts: &[Receipt]) -> String {
    serde_json::to_string_pretty(receipts).expect("a receipt is plain data")
}

/// A JSON file of a dataset; `None` when it is not there.
pub(crate) fn read_json<T: serde::de::DeserializeOwned>(path: &Path) -> Result<Option<T>, ArchiveError> {
    remote::have(path)?;
    read_json_here(path)
}

/// The same of what is on this disk.
pub(crate) fn read_json_here<T: serde::de::DeserializeOwned>(path: &Path) -> Result<Option<T>, ArchiveError> {
    let io = |source| ArchiveError::Io { path: path.to_owned(), source };
    match fs::read(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(io(error)),
        Ok(text) => serde_json::from_slice(&text).map(Some).map_err(|error| io(error.into())),
    }
}

/// Where files of a dataset are written before they are moved to their place.
#[must_use]
pub fn drafts(output: &Path) -> PathBuf {
    output.join(".drafts")
}

/// Removes the drafts that a run left when it died. Only the holder of the dataset's lock may do so.
///
/// # Errors
/// When the disk refuses.
pub fn clear_drafts(output: &Path) -> Result<(), ArchiveError> {
    let path = drafts(output);
    match fs::remove_dir_all(&path) {
        Err(source) if source.kind() != io::ErrorKind::NotFound => Err(ArchiveError::Io { path, source }),
        _ => Ok(()),
    }
}

/// Writes a file so that it is whole or not there: as a draft first, onto the disk, then in place, and its place onto the
/// disk. What was there before is replaced.
///
/// A dataset on an object store has it there before.
///
/// # Errors
/// When the disk refuses.
pub fn write_whole(drafts: &Path, path: &Path, bytes: &[u8]) -> Result<(), ArchiveError> {
    if let Some(remote) = remote::at(path) {
        remote.put(path, bytes)?;
    }
    write_whole_here(drafts, path, bytes)
}

/// The same on this disk alone, for what comes from a store or is this machine's own.
pub(crate) fn write_whole_here(drafts: &Path, path: &Path, bytes: &[u8]) -> Result<(), ArchiveError> {
    place(drafts, path, bytes, |draft| fs::rename(draft, path))
}

/// The same for a file that must not be there yet: of two that write it, one is refused, and nothing is replaced.
///
/// # Errors
/// When the disk refuses; with [`io::ErrorKind::AlreadyExists`] when it is there.
pub fn write_new(drafts: &Path, path: &Path, bytes: &[u8]) -> Result<(), ArchiveError> {
    let Some(remote) = remote::at(path) else { return write_new_here(drafts, path, bytes) };
    remote.put_new(path, bytes)?;
    match write_new_here(drafts, path, bytes) {
        // Another process has brought it from the store since.
        Err(_) if fs::read(path).is_ok_and(|there| there == bytes) => Ok(()),
        written => written,
    }
}

/// The same on this disk alone.
pub(crate) fn write_new_here(drafts: &Path, path: &Path, bytes: &[u8]) -> Result<(), ArchiveError> {
    place(drafts, path, bytes, |draft| {
        fs::hard_link(draft, path)?;
        // The draft's second name is of no use any more; the next run removes it where this one cannot.
        let _ = fs::remove_file(draft);
        Ok(())
    })
}

/// How often a draft is written again that another run has cleared away.
const DRAFTS_MAX: u32 = 5;

fn place(drafts: &Path, path: &Path, bytes: &[u8], put: impl Fn(&Path) -> io::Result<()>) -> Result<(), ArchiveError> {
    let io = |source| ArchiveError::Io { path: path.to_owned(), source };
    let folder = path.parent().expect("files of a dataset stand in folders");
    let mut attempt = 1;
    loop {
        make_folder(folder).map_err(io)?;
        fs::create_dir_all(drafts).map_err(|source| ArchiveError::Io { path: drafts.to_owned(), source })?;
        let draft = drafts.join(draft_name());
        let write = || -> io::Result<()> {
            let mut file = File::create(&draft)?;
            file.write_all(bytes)?;
            file.sync_all()?;
            put(&draft)?;
            sync_folder(folder)
        };
        match write() {
            Ok(()) => return Ok(()),
            // A run that cannot see our lock has cleared the drafts away.
            Err(source) if source.kind() == io::ErrorKind::NotFound && attempt < DRAFTS_MAX => attempt += 1,
            Err(source) => {
                // The draft is of no use to anybody; that it cannot be removed adds nothing to the first error.
                let _ = fs::remove_file(&draft);
                return Err(io(source));
            }
        }
    }
}

/// A name that no other draft has, of whatever machine.
#[must_use]
pub fn draft_name() -> String {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    static STARTED_NS: OnceLock<i64> = OnceLock::new();
    let started = STARTED_NS.get_or_init(|| Utc::now().timestamp_nanos_opt().unwrap_or_default());
    format!("{}-{started:x}-{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed))
}

/// Makes a folder and those above it, each onto the disk before anything is put into it.
fn make_folder(folder: &Path) -> io::Result<()> {
    if folder.is_dir() {
        return Ok(());
    }
    let above = folder.parent().filter(|above| !above.as_os_str().is_empty());
    if let Some(above) = above {
        make_folder(above)?;
    }
    match fs::create_dir(folder) {
        // Another run was quicker.
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists && folder.is_dir() => Ok(()),
        Err(error) => Err(error),
        Ok(()) => sync_folder(above.unwrap_or(Path::new("."))),
    }
}

/// Puts the names in a folder onto the disk, so that a power cut does not lose a file whose bytes are there.
///
/// # Errors
/// When the disk refuses.
pub fn sync_folder(folder: &Path) -> io::Result<()> {
    if cfg!(not(unix)) {
        return Ok(());
    }
    match File::open(folder)?.sync_all() {
        // Some network disks keep no folders of their own and say so.
        Err(error) if [io::ErrorKind::InvalidInput, io::ErrorKind::Unsupported].contains(&error.kind()) => Ok(()),
        synced => synced,
    }
}
