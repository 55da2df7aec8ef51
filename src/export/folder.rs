//! Files → a folder, whole or not at all.
//!
//! The files are written beside the folder, brought onto the disk, and moved into its place together: whoever looks finds an
//! export of one night, never parts of two. A folder that holds anything that no export wrote is left alone.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

/// The file that says what an export is of.
pub const LABEL: &str = "export.json";

/// Why a folder was not written. It is as it was before.
#[derive(Debug, thiserror::Error)]
pub enum FolderError {
    /// The disk said no.
    #[error("write {}", path.display())]
    Disk {
        /// What was being written.
        path: PathBuf,
        /// What it said.
        source: io::Error,
    },
    /// It holds other things.
    #[error("replace {}, which holds {found} and not only an export", path.display())]
    NotAnExport {
        /// The folder.
        path: PathBuf,
        /// Something in it that no export wrote.
        found: String,
    },
    /// It has no name of its own.
    #[error("write into {}: a folder with a name of its own is needed", path.display())]
    NoName {
        /// What was asked for.
        path: PathBuf,
    },
}

/// The files of an export by their path below its folder.
#[derive(Debug, Default)]
pub struct Files(BTreeMap<String, (Option<usize>, Vec<u8>)>);

impl Files {
    /// Adds a file, with the number of its rows if it is a table.
    pub fn add(&mut self, path: String, rows: Option<usize>, bytes: Vec<u8>) {
        self.0.insert(path, (rows, bytes));
    }

    /// The tables with rows, in order of path.
    pub fn tables(&self) -> impl Iterator<Item = (&str, usize)> {
        self.0.iter().filter_map(|(path, (rows, _))| Some((path.as_str(), rows.filter(|rows| *rows > 0)?)))
    }
}

/// What stands in [`LABEL`].
#[derive(Debug, Serialize, Deserialize)]
struct Label {
    exported_by: String,
    format: String,
    snapshot_id: String,
    files: BTreeSet<String>,
}

/// Puts an export into a folder, in the place of an earlier one.
///
/// # Errors
/// When the disk refuses, or the folder holds other things.
pub fn write(folder: &Path, format: &str, snapshot_id: &str, files: &Files) -> Result<(), FolderError> {
    let name = folder.file_name().ok_or_else(|| FolderError::NoName { path: folder.to_owned() })?.to_string_lossy().into_owned();
    let above = Path::new(".").join(folder).parent().map_or_else(|| PathBuf::from("."), Path::to_owned);
    let was_there = is_replaceable(folder)?;
    let beside = |what: &str| above.join(format!(".{name}.{what}-{}", std::process::id()));
    let (draft, before) = (beside("draft"), beside("before"));
    let label = Label {
        exported_by: "gpuledger".to_owned(),
        format: format.to_owned(),
        snapshot_id: snapshot_id.to_owned(),
        files: files.0.keys().cloned().collect(),
    };
    let done = write_draft(&draft, &label, files).and_then(|()| {
        let disk = |source| FolderError::Disk { path: folder.to_owned(), source };
        if was_there {
            fs::rename(folder, &before).map_err(disk)?;
        }
        if let Err(error) = fs::rename(&draft, folder) {
            if was_there {
                fs::rename(&before, folder).map_err(disk)?;
            }
            return Err(disk(error));
        }
        File::open(&above).and_then(|above| above.sync_all()).map_err(disk)
    });
    // What cannot be removed does no harm: its name begins with a dot.
    let _ = fs::remove_dir_all(if done.is_ok() { &before } else { &draft });
    done
}

/// Whether there is an earlier export, or an empty folder; anything else may not be replaced.
fn is_replaceable(folder: &Path) -> Result<bool, FolderError> {
    let disk = |source| FolderError::Disk { path: folder.to_owned(), source };
    let not_ours = |found: String| FolderError::NotAnExport { path: folder.to_owned(), found };
    match fs::symlink_metadata(folder) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(false),
        Err(error) => return Err(disk(error)),
        Ok(found) if !found.is_dir() => return Err(not_ours("something that is no folder".to_owned())),
        Ok(_) => {}
    }
    let label = fs::read(folder.join(LABEL)).ok().and_then(|text| serde_json::from_slice::<Label>(&text).ok());
    let mut known = label.map(|label| label.files).unwrap_or_default();
    if !known.is_empty() {
        known.insert(LABEL.to_owned());
    }
    let mut paths = vec![folder.to_owned()];
    while let Some(path) = paths.pop() {
        for entry in fs::read_dir(&path).map_err(disk)? {
            let entry = entry.map_err(disk)?;
            let below = entry.path().strip_prefix(folder).unwrap_or(&path).to_string_lossy().replace('\\', "/");
            if entry.file_type().map_err(disk)?.is_dir() {
                paths.push(entry.path());
            } else if !known.contains(&below) {
                return Err(not_ours(format!("`{below}`")));
            }
        }
    }
    Ok(true)
}

fn write_draft(draft: &Path, label: &Label, files: &Files) -> Result<(), FolderError> {
    let text = serde_json::to_string_pretty(label).expect("a label of text is JSON") + "\n";
    let all = files.0.iter().map(|(path, (_, bytes))| (path.as_str(), bytes.as_slice()));
    for (path, bytes) in all.chain([(LABEL, text.as_bytes())]) {
        let path = draft.join(path);
        let write = || -> io::Result<()> {
            fs::create_dir_all(path.parent().unwrap_or(draft))?;
            let mut file = File::create(&path)?;
            file.write_all(bytes)?;
            file.sync_all()
        };
        write().map_err(|source| FolderError::Disk { path: path.clone(), source })?;
    }
    Ok(())
}
