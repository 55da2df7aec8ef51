//! One writer at a time on a dataset.
//!
//! The lock is the operating system's, on a file that names its owner: it goes away with the process that holds it, so a
//! dead owner never has to be recognised.

use std::fs::{File, OpenOptions, TryLockError};
use std::io::{Read as _, Seek as _, Write as _};
use std::path::Path;

use chrono::{SecondsFormat, Utc};

use crate::archive::ArchiveError;
use crate::snapshot::SnapshotError;

/// A held lock; dropping it lets go.
#[derive(Debug)]
pub struct WriterLock {
    _file: File,
}

/// Takes the dataset's lock.
///
/// # Errors
/// When somebody else holds it: says who.
pub fn take(output: &Path) -> Result<WriterLock, SnapshotError> {
    let path = output.join(".lock");
    let io = |source| SnapshotError::Disk(ArchiveError::Io { path: path.clone(), source });
    std::fs::create_dir_all(output).map_err(io)?;
    let mut file = OpenOptions::new().read(true).write(true).create(true).truncate(false).open(&path).map_err(io)?;
    match file.try_lock() {
        Ok(()) => {}
        Err(TryLockError::WouldBlock) => {
            let mut owner = String::new();
            file.read_to_string(&mut owner).map_err(io)?;
            return Err(SnapshotError::Locked { owner: format!("another run is writing ({})", owner.trim()) });
        }
        Err(TryLockError::Error(error)) => return Err(io(error)),
    }
    let owner = format!("process {} since {}", std::process::id(), Utc::now().to_rfc3339_opts(SecondsFormat::Secs, true));
    file.set_len(0).and_then(|()| file.rewind()).and_then(|()| file.write_all(owner.as_bytes())).map_err(io)?;
    Ok(WriterLock { _file: file })
}
