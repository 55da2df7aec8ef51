//! Takes back what a run that died had put in place of a night that is not published, and finishes what it had left to do of
//! one that is.

use std::path::Path;

use crate::archive::{Sidecar, drafts, write_whole};
use crate::night::SnapshotId;
use crate::offer::{COVERAGE, OFFERS, RATES};
use crate::remote;
use crate::snapshot::SnapshotError;
use crate::snapshot::journal::{self, Journal, Plan};
use crate::snapshot::log::{Committed, Log, LoggedFile};

/// Clears what runs that died left on their lists. Only the holder of the dataset's lock may do so.
///
/// # Errors
/// When a log cannot be read or written, or the disk refuses.
pub async fn clear_uncommitted(output: &Path) -> Result<(), SnapshotError> {
    for left in journal::left(output, None)? {
        if left.is_held {
            continue;
        }
        let is_done = match &left.plan {
            Some(plan) => take_back(output, plan, None).await?,
            // Lists appear whole, so what cannot be read was never one of ours.
            None => true,
        };
        if is_done {
            journal::remove(&left.path)?;
        }
    }
    Ok(())
}

/// Takes back what a list names and is part of no published night. False when another run is at the same night and the list
/// has to stay.
///
/// # Errors
/// When a log cannot be read or written, or the disk refuses.
pub(super) async fn take_back(output: &Path, plan: &Plan, own: Option<&Journal>) -> Result<bool, SnapshotError> {
    let others = journal::left(output, own)?;
    if others.iter().any(|other| other.is_held && other.plan.as_ref().is_some_and(|other| other.snapshot == plan.snapshot)) {
        return Ok(false);
    }
    let id: Option<SnapshotId> = plan.snapshot.parse().ok();
    let published = match Log::open(output, &OFFERS).await? {
        Some(log) => log.files()?.into_iter().find(|file| file.snapshot == id),
        None => None,
    };
    for name in &plan.files {
        let tables = [&OFFERS, &COVERAGE, &RATES];
        let Some((table, path)) = name.split_once('/') else { continue };
        let Some(table) = tables.into_iter().find(|known| known.name == table) else { continue };
        if take_back_file(output, table, path, published.is_some()).await? {
            let file = output.join(name);
            journal::remove(&file)?;
            // The day's folder goes with its only file; where it holds others it stays.
            let _ = file.parent().filter(|folder| *folder != output.join(table.name)).map(std::fs::remove_dir);
        }
    }
    // Another run may have published the same rows, and what stands beside them is then its own.
    let is_own = |published: &LoggedFile| match &published.run {
        Some(run) => *run == plan.run,
        None => plan.files.iter().any(|name| name.strip_prefix("offers/") == Some(published.path.as_str())),
    };
    if published.as_ref().is_some_and(is_own) {
        write_sidecars(output, &plan.sidecars)?;
    }
    Ok(true)
}

/// Takes a file out of its table's log, unless its night is published. Whether the file itself is to go.
async fn take_back_file(
    output: &Path,
    table: &'static crate::offer::Table,
    path: &str,
    is_published: bool,
) -> Result<bool, SnapshotError> {
    let Some(mut log) = Log::open(output, table).await? else { return Ok(true) };
    loop {
        let Some(logged) = log.files()?.into_iter().find(|file| file.path == path) else { return Ok(true) };
        if is_published {
            return Ok(false);
        }
        if log.take_back(&[logged]).await? == Committed::Done {
            return Ok(true);
        }
    }
}

/// Writes what belongs beside a published night, where it is not there as it should be.
///
/// # Errors
/// When the disk refuses.
pub fn write_sidecars(output: &Path, sidecars: &[Sidecar]) -> Result<(), SnapshotError> {
    for sidecar in sidecars {
        let path = output.join(&sidecar.path);
        // What another machine put over it on a store is not seen here.
        let may_differ = remote::at(&path).is_some();
        if may_differ || std::fs::read(&path).ok().as_deref() != Some(sidecar.text.as_bytes()) {
            write_whole(&drafts(output), &path, sidecar.text.as_bytes())?;
        }
    }
    Ok(())
}
