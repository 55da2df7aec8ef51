//! One writer at a time on a dataset.
//!
//! The lock is the operating system's, on a file that names its owner: it goes away with the process that holds it, so a
//! dead owner never has to be recognised, and what stands in the file never decides anything. Where a disk keeps no locks,
//! or machines do not see each other's, the Delta log decides.

use std::fs::{File, OpenOptions, TryLockError};
use std::io::{Read as _, Seek as _, Write as _};
use std::path::Path;

use chrono::Utc;

use crate::archive::ArchiveError;
use crate::night::second;
use crate::remote;
use crate::snapshot::SnapshotError;

/// Name of the file, below the dataset.
pub const LOCK_FILE: &str = ".lock";

/// A held lock; dropping it lets go.
#[derive(Debug)]
pub struct WriterLock {
    _file: File,
}

/// Takes the dataset's lock.
///
/// # Errors
/// When somebody else holds it: says who. When the folder cannot be made or written.
pub fn take(output: &Path) -> Result<WriterLock, SnapshotError> {
    let folder = |source| SnapshotError::Disk(ArchiveError::Io { path: output.to_owned(), source });
    std::fs::create_dir_all(output).map_err(folder)?;
    let path = output.join(LOCK_FILE);
    let io = |source| SnapshotError::Disk(ArchiveError::Io { path: path.clone(), source });
    let mut file = OpenOptions::new().read(true).write(true).create(true).truncate(false).open(&path).map_err(io)?;
    match file.try_lock() {
        Ok(()) => {}
        Err(TryLockError::WouldBlock) => return Err(SnapshotError::Locked { owner: owner(&mut file) }),
        Err(TryLockError::Error(error)) if error.kind() == std::io::ErrorKind::Unsupported => {}
        Err(TryLockError::Error(error)) => return Err(io(error)),
    }
    file.set_len(0).and_then(|()| file.rewind()).and_then(|()| file.write_all(this_run().as_bytes())).map_err(io)?;
    Ok(WriterLock { _file: file })
}

/// Who holds the dataset's lock; `None` when nobody does. Takes nothing and writes nothing.
///
/// # Errors
/// When the file is there and cannot be opened.
pub fn holder(output: &Path) -> std::io::Result<Option<String>> {
    let mut file = match File::open(output.join(LOCK_FILE)) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        opened => opened?,
    };
    // A shared lock is refused while a writer holds its own, and lets go at once.
    match file.try_lock_shared() {
        Err(TryLockError::WouldBlock) => Ok(Some(owner(&mut file))),
        Ok(()) | Err(TryLockError::Error(_)) => Ok(None),
    }
}

/// This process in the words that others are told. `process 4711 on collector-1 since 2026-10-30T18:00:00Z`
#[must_use]
pub fn this_run() -> String {
    let since = second(Utc::now());
    format!("process {} on {} since {since}", std::process::id(), host())
}

/// Who writes to a dataset, so that runs whose locks are seen are told from others: this machine, and on an object store the
/// working copy too.
#[must_use]
pub fn writer(output: &Path) -> String {
    remote::at(output).map_or_else(host, |remote| remote.writer())
}

/// Name of this machine, as far as it can be told without asking a name server.
#[must_use]
pub fn host() -> String {
    let named = std::fs::read_to_string("/proc/sys/kernel/hostname").ok();
    let named = named.or_else(|| std::env::var("HOSTNAME").ok()).or_else(|| std::env::var("COMPUTERNAME").ok());
    named.map(|name| name.trim().to_owned()).filter(|name| !name.is_empty()).unwrap_or_else(|| "this machine".to_owned())
}

/// What the file says of its owner, if it is words that can be printed.
fn owner(file: &mut File) -> String {
    let mut bytes = Vec::new();
    let mut start = file.take(200);
    let is_read = start.read_to_end(&mut bytes).is_ok();
    let text = String::from_utf8_lossy(&bytes);
    let text = text.trim();
    if is_read && text.starts_with("process ") && !text.contains(|letter: char| letter.is_control() || letter == '\u{fffd}') {
        text.to_owned()
    } else {
        "a run that does not say who it is".to_owned()
    }
}
