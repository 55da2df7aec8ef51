//! Raw answers, kept before anything reads them.
//!
//! Named by the SHA-256 of their bytes, compressed with zstd, written once and never changed. Each answer of each night
//! has a receipt that says where and when it came from. Pages are read back from here, and their hash is checked: an
//! object that does not hold what its name says is never trusted.

use std::fs::{self, File};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use chrono::{DateTime, Utc};
use gpuledger_scrapers::contract::{Method, Page};
use gpuledger_scrapers::sha256;
use serde::{Deserialize, Serialize};

use crate::night::SnapshotId;

/// Compression level: archiving must not slow a night down.
const ZSTD_LEVEL: i32 = 9;

/// The archive of a dataset.
#[derive(Debug, Clone)]
pub struct Archive {
    root: PathBuf,
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
    /// The bytes, after removing the transfer's compression and nothing else.
    pub body: Vec<u8>,
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
    /// When it was read.
    pub observed_at: DateTime<Utc>,
    /// SHA-256 of the bytes.
    pub sha256: String,
    /// Number of the bytes.
    pub bytes: u64,
}

/// What can go wrong with the archive.
#[derive(Debug, thiserror::Error)]
pub enum ArchiveError {
    /// The disk said no.
    #[error("use the archive file {}", path.display())]
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

impl Archive {
    /// The archive below the root of a dataset.
    #[must_use]
    pub fn below(output: &Path) -> Self {
        Self { root: output.join("raw") }
    }

    /// Stores an answer and reads it back as a page. The same bytes are stored once.
    ///
    /// # Errors
    /// When the disk refuses, or an object of this name holds other bytes.
    pub fn keep(&self, answer: Answer) -> Result<(Receipt, Page), ArchiveError> {
        let sha256 = sha256(&answer.body);
        let path = self.object(&sha256);
        if path.exists() {
            self.read(&sha256)?;
        } else {
            let packed = zstd::encode_all(answer.body.as_slice(), ZSTD_LEVEL)
                .map_err(|source| ArchiveError::Io { path: path.clone(), source })?;
            write_whole(&path, &packed)?;
        }
        let receipt = Receipt {
            page: answer.page.clone(),
            scope: answer.scope.clone(),
            url: answer.url.clone(),
            method: answer.method,
            request_body_sha256: answer.request_body_sha256,
            http_status: answer.http_status,
            observed_at: answer.observed_at,
            bytes: u64::try_from(answer.body.len()).expect("a page fits in memory"),
            sha256: sha256.clone(),
        };
        let page = Page {
            name: answer.page,
            scope: answer.scope,
            url: answer.url,
            observed_at: answer.observed_at,
            sha256,
            body: answer.body,
        };
        Ok((receipt, page))
    }

    /// The bytes of an object, checked against its name.
    ///
    /// # Errors
    /// When it is not there, cannot be inflated, or holds other bytes.
    pub fn read(&self, sha: &str) -> Result<Vec<u8>, ArchiveError> {
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
        let path = self.root.join("receipts").join(snapshot.to_string()).join(format!("{provider}.json"));
        let text = serde_json::to_vec_pretty(receipts).expect("a receipt is plain data");
        write_whole(&path, &text)
    }

    fn object(&self, sha256: &str) -> PathBuf {
        self.root.join("objects").join(&sha256[..2]).join(format!("{}.zst", &sha256[2..]))
    }
}

/// Removes the drafts that a run left when it died. Only the holder of the dataset's lock may do so.
///
/// # Errors
/// When the disk refuses.
pub fn clear_drafts(folder: &Path) -> Result<(), ArchiveError> {
    let io = |source| ArchiveError::Io { path: folder.to_owned(), source };
    for entry in fs::read_dir(folder).map_err(io)? {
        let entry = entry.map_err(io)?;
        let (path, name) = (entry.path(), entry.file_name());
        let name = name.to_string_lossy();
        if entry.file_type().map_err(io)?.is_dir() {
            clear_drafts(&path)?;
        } else if name.starts_with('.') && name.ends_with(".part") {
            fs::remove_file(&path).map_err(|source| ArchiveError::Io { path: path.clone(), source })?;
        }
    }
    Ok(())
}

/// Writes a file so that it is whole or not there: to a neighbour first, onto the disk, then in place.
///
/// # Errors
/// When the disk refuses.
pub fn write_whole(path: &Path, bytes: &[u8]) -> Result<(), ArchiveError> {
    let io = |source| ArchiveError::Io { path: path.to_owned(), source };
    let folder = path.parent().expect("files of a dataset stand in folders");
    fs::create_dir_all(folder).map_err(io)?;
    let name = path.file_name().expect("a file has a name").to_string_lossy();
    let draft = folder.join(format!(".{name}.{}.part", std::process::id()));
    let write = || -> io::Result<()> {
        let mut file = File::create(&draft)?;
        file.write_all(bytes)?;
        file.sync_all()?;
        fs::rename(&draft, path)
    };
    write().map_err(|source| {
        // The draft is of no use to anybody; that it cannot be removed adds nothing to the first error.
        let _ = fs::remove_file(&draft);
        io(source)
    })
}
