//! Which files a run is putting into the tables right now.
//!
//! Written before the first of them and taken away after the last, so that a run that dies in between leaves a list of what
//! the next one has to take back. A run that is alive holds the operating system's lock on its list; between machines that
//! do not see each other's locks, a list counts as held for an hour.

use std::fs::{self, File, TryLockError};
use std::io::{self, Write as _};
use std::path::{Component, Path, PathBuf};
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::archive::{ArchiveError, Sidecar, draft_name, drafts, sync_folder};
use crate::lock;
use crate::night::SnapshotId;
use crate::remote;

/// How the names of these lists begin, in the root of a dataset.
const ON_ITS_WAY: &str = ".on-its-way";

/// How long the list of a run on another machine counts as held.
const OTHER_HOST_HOLDS: Duration = Duration::from_secs(3_600);

/// What a list says.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Plan {
    /// The snapshot.
    pub snapshot: String,
    /// The machine of the run.
    pub host: String,
    /// The run, as the logs name it; empty where an earlier program did not write it down.
    #[serde(default)]
    pub run: String,
    /// Files below the dataset, `offers` last. `coverage/2026-10-30/2026-10-30T18-00-00Z-0123456789abcdef.parquet`
    pub files: Vec<String>,
    /// What is written once the night is published.
    pub sidecars: Vec<Sidecar>,
}

/// The list of this run, held until it is dropped.
#[derive(Debug)]
pub struct Journal {
    path: PathBuf,
    _held: File,
}

/// The list of another run.
#[derive(Debug)]
pub struct Left {
    /// Where it is.
    pub path: PathBuf,
    /// What it says; `None` when it cannot be read.
    pub plan: Option<Plan>,
    /// Whether the run is still at it.
    pub is_held: bool,
}

impl Journal {
    /// Writes a list and holds it.
    ///
    /// # Errors
    /// When the disk refuses.
    pub fn begin(output: &Path, plan: &Plan) -> Result<Self, ArchiveError> {
        let name = draft_name();
        let path = output.join(format!("{ON_ITS_WAY}.{name}"));
        let text = serde_json::to_vec(plan).expect("a plan is plain data");
        let held =
            hold(&drafts(output), &name, &path, &text).map_err(|source| ArchiveError::Io { path: path.clone(), source })?;
        if let Some(remote) = remote::at(&path)
            && let Err(error) = remote.put(&path, &text)
        {
            // Nothing is in its place yet, so a list that stays is of no harm.
            let _ = fs::remove_file(&path);
            return Err(error);
        }
        Ok(Self { path, _held: held })
    }

    /// Takes the list away: there is nothing to take back any more.
    ///
    /// # Errors
    /// When the disk refuses.
    pub fn end(self) -> Result<(), ArchiveError> {
        remove(&self.path)
    }

    /// Where it is.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }
}

/// The lock is taken on the draft, so that the list is never seen without it.
fn hold(drafts: &Path, name: &str, path: &Path, text: &[u8]) -> io::Result<File> {
    fs::create_dir_all(drafts)?;
    let draft = drafts.join(name);
    let mut file = File::create(&draft)?;
    let write = |file: &mut File| -> io::Result<()> {
        match file.try_lock() {
            Err(TryLockError::Error(error)) if error.kind() != io::ErrorKind::Unsupported => return Err(error),
            _ => {}
        }
        file.write_all(text)?;
        file.sync_all()?;
        fs::rename(&draft, path)?;
        sync_folder(path.parent().unwrap_or(Path::new(".")))
    };
    if let Err(error) = write(&mut file) {
        // The draft is of no use to anybody; that it cannot be removed adds nothing to the first error.
        let _ = fs::remove_file(&draft);
        return Err(error);
    }
    Ok(file)
}

/// The lists in a dataset, but for one's own.
///
/// # Errors
/// When the dataset cannot be listed.
pub fn left(output: &Path, own: Option<&Journal>) -> Result<Vec<Left>, ArchiveError> {
    if let Some(remote) = remote::at(output) {
        remote.pull_lists()?;
    }
    lists(output, own)
}

/// Whether a path is that of a list.
pub(crate) fn is_list(path: &Path) -> bool {
    path.file_name().is_some_and(|name| name.to_string_lossy().starts_with(ON_ITS_WAY))
}

/// Takes away the lists of other working copies that are not `there`, in their store, any more.
///
/// # Errors
/// When the disk refuses.
pub(crate) fn forget_others(output: &Path, writer: &str, there: &[PathBuf]) -> Result<(), ArchiveError> {
    let is_others = |left: &Left| left.plan.as_ref().is_some_and(|plan| plan.host != writer);
    for left in lists(output, None)?.iter().filter(|left| is_others(left) && !there.contains(&left.path)) {
        fs::remove_file(&left.path).or_else(gone).map_err(|source| ArchiveError::Io { path: left.path.clone(), source })?;
    }
    Ok(())
}

fn lists(output: &Path, own: Option<&Journal>) -> Result<Vec<Left>, ArchiveError> {
    let io = |source| ArchiveError::Io { path: output.to_owned(), source };
    let mut found = Vec::new();
    for entry in fs::read_dir(output).map_err(io)? {
        let entry = entry.map_err(io)?;
        let path = entry.path();
        if is_list(&path) && own.is_none_or(|own| own.path != path) {
            // One that is gone meanwhile was taken away by its run.
            let Ok(text) = fs::read_to_string(&path) else { continue };
            let plan = read(&text);
            let is_held = is_held(&path, plan.as_ref());
            found.push(Left { path, plan, is_held });
        }
    }
    found.sort_by(|a, b| a.path.cmp(&b.path));
    Ok(found)
}

fn read(text: &str) -> Option<Plan> {
    let plan = serde_json::from_str::<Plan>(text).ok().or_else(|| one_name(text))?;
    let is_below = |path: &str| Path::new(path).components().all(|part| matches!(part, Component::Normal(_)));
    let paths = plan.files.iter().chain(plan.sidecars.iter().map(|sidecar| &sidecar.path));
    paths.into_iter().all(|path| is_below(path)).then_some(plan)
}

/// Earlier programs left the name of one file.
fn one_name(text: &str) -> Option<Plan> {
    let name = text.trim();
    let snapshot: SnapshotId = name.rsplit('/').next()?.get(..20)?.parse().ok()?;
    Some(Plan {
        snapshot: snapshot.to_string(),
        host: lock::host(),
        run: String::new(),
        files: vec![name.to_owned()],
        sidecars: Vec::new(),
    })
}

fn is_held(path: &Path, plan: Option<&Plan>) -> bool {
    let Ok(file) = File::open(path) else { return false };
    if matches!(file.try_lock_shared(), Err(TryLockError::WouldBlock)) {
        return true;
    }
    let age = file.metadata().and_then(|facts| facts.modified()).ok().and_then(|at| at.elapsed().ok());
    plan.is_some_and(|plan| plan.host != lock::writer(path)) && age.is_none_or(|age| age < OTHER_HOST_HOLDS)
}

/// Removes a file; one that is not there is removed already.
///
/// From an object store only a list goes: a file of a table that no log names is nobody's there, and one that another run is
/// about to name must not be lost.
///
/// # Errors
/// When the disk refuses.
pub fn remove(path: &Path) -> Result<(), ArchiveError> {
    if let Some(remote) = remote::at(path).filter(|_| is_list(path)) {
        remote.remove(path)?;
    }
    fs::remove_file(path).or_else(gone).map_err(|source| ArchiveError::Io { path: path.to_owned(), source })
}

fn gone(error: io::Error) -> io::Result<()> {
    if error.kind() == io::ErrorKind::NotFound { Ok(()) } else { Err(error) }
}
