//! What of the archive is kept for how long: `archive prune`. Retention is a command; nothing removes a page by itself.
//!
//! In: the archive, the receipts of the nights, the published tables. Out: objects that are not needed any more are gone, and
//! a record in `raw/pruned/` says which and when, so that a page that is missing can be told from one that was removed.
//! Never removes a row, a receipt, or a page that a younger night shares.

mod need;

use std::fmt::Write as _;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use chrono::{DateTime, TimeDelta, Utc};
use serde::{Deserialize, Serialize};

use crate::archive::{Archive, ArchiveError, read_json};
use crate::cli::Prune;
use crate::exit::Exit;
use crate::lock;
use crate::remote::{self, Remote};
use crate::report::{Failed, Said};
use crate::run;
use crate::snapshot::{SnapshotError, journal};
use need::Needs;

/// Version of the record.
const VERSION: u32 = 1;

const MB: f64 = 1_000_000.0;

/// What was removed at one time.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct PruneRecord {
    /// Version of this form.
    pub version: u32,
    /// When it was removed.
    pub pruned_at: DateTime<Utc>,
    /// Pages of the last so many days were kept.
    pub keep_days: u32,
    /// Whether pages of published nights were removed too.
    pub published_too: bool,
    /// Objects that were removed.
    pub files: usize,
    /// Their size on the disk, in bytes.
    pub bytes: u64,
    /// SHA-256 of each.
    pub objects: Vec<String>,
}

/// An object of the archive.
#[derive(Debug, Clone)]
struct Object {
    sha256: String,
    path: PathBuf,
    bytes: u64,
    written_at: DateTime<Utc>,
}

/// Removes what is kept long enough, or says what would go.
///
/// # Errors
/// When another run holds the dataset, or the disk refuses.
pub async fn prune(args: &Prune) -> Result<Said, Failed> {
    prune_at(args, Utc::now()).await
}

/// The same as of a time.
///
/// # Errors
/// As [`prune`].
pub async fn prune_at(args: &Prune, now: DateTime<Utc>) -> Result<Said, Failed> {
    let output = args.dataset.output.as_path();
    if !output.is_dir() {
        let error = ArchiveError::Io { path: output.to_owned(), source: std::io::ErrorKind::NotFound.into() };
        return Err(Failed::new(Exit::Usage, "prune the archive", &error).with_help("--output names the dataset's folder"));
    }
    // A dry run changes nothing, not even what a run that died left.
    let _lock = if args.dry_run { lock::take(output)? } else { run::open_for_writing(output).await? };
    let archive = Archive::below(output);
    let failed = |error: ArchiveError| Failed::new(Exit::Refused, "prune the archive", &error);
    // A number of days before all time keeps everything.
    let since = TimeDelta::try_days(i64::from(args.keep_days)).and_then(|days| now.checked_sub_signed(days));
    let since = since.unwrap_or(DateTime::<Utc>::MIN_UTC);
    let remote = remote::at(output);
    if let Some(remote) = &remote {
        remote.pull_below("raw/receipts").map_err(failed)?;
        let others = journal::left(output, None).map_err(failed)?;
        if let Some(plan) = others.into_iter().filter(|other| other.is_held).find_map(|other| other.plan) {
            return Err(SnapshotError::Locked { owner: plan.host }.into());
        }
    }
    let needs = Needs::read(output, &archive, since, args.published_too).await?;
    let (objects, strangers) = match &remote {
        Some(remote) => stored(remote, &archive).map_err(failed)?,
        None => objects(&archive).map_err(failed)?,
    };
    let kept = objects.len();
    let going: Vec<Object> = objects.into_iter().filter(|object| needs.may_go(&object.sha256, object.written_at)).collect();
    let record = PruneRecord {
        version: VERSION,
        pruned_at: now,
        keep_days: args.keep_days,
        published_too: args.published_too,
        files: going.len(),
        bytes: going.iter().map(|object| object.bytes).sum(),
        objects: going.iter().map(|object| object.sha256.clone()).collect(),
    };
    let mut data = words(args, &record, kept - going.len());
    if strangers > 0 {
        let _ = writeln!(data, "{strangers} files in raw/objects have no name of an object and were left alone");
    }
    if args.dry_run || going.is_empty() {
        return Ok(Said { data: data.into(), talk: None, exit: Exit::Good });
    }
    // The record comes first: a page that is gone is never without a word about it. It is asked only about pages that are
    // not there, so one that was not removed because the run died is no lie.
    let name = format!("{}.json", now.format("%Y-%m-%dT%H-%M-%S%.6fZ"));
    let text = serde_json::to_vec_pretty(&record).expect("a record is plain data");
    archive.write(&folder(&archive).join(&name), &text).map_err(failed)?;
    for object in &going {
        if let Some(remote) = &remote {
            remote.remove(&object.path).map_err(failed)?;
        }
        remove(&object.path).map_err(failed)?;
    }
    let _ = writeln!(data, "written down in raw/pruned/{name}");
    Ok(Said { data: data.into(), talk: None, exit: Exit::Good })
}

fn words(args: &Prune, record: &PruneRecord, kept: usize) -> String {
    let whose = if args.published_too { "pages of nights" } else { "pages that no published night needs" };
    let what = if args.dry_run { "would free" } else { "freed" };
    #[expect(clippy::cast_precision_loss, reason = "a size for people")]
    let size = record.bytes as f64 / MB;
    format!("{what} {} files, {size:.1} MB: {whose} older than {} days; {kept} files stay\n", record.files, args.keep_days)
}

/// When an object was removed; `None` when nobody removed it. Anything unreadable is as good as nothing.
#[must_use]
pub fn when_pruned(archive: &Archive, sha256: &str) -> Option<DateTime<Utc>> {
    let mut paths: Vec<PathBuf> = fs::read_dir(folder(archive)).ok()?.filter_map(|entry| Some(entry.ok()?.path())).collect();
    // The newest first: a page may have been archived again, and removed again.
    paths.sort();
    paths.iter().rev().find_map(|path| {
        let record: PruneRecord = read_json(path).ok().flatten()?;
        record.objects.iter().any(|removed| removed == sha256).then_some(record.pruned_at)
    })
}

fn folder(archive: &Archive) -> PathBuf {
    archive.root().join("pruned")
}

/// Every object of the archive, and how many files beside them have no such name.
fn objects(archive: &Archive) -> Result<(Vec<Object>, usize), ArchiveError> {
    let (mut objects, mut strangers) = (Vec::new(), 0);
    for folder in listed(&archive.root().join("objects"))? {
        for path in listed(&folder)? {
            match sha256_of(&path) {
                Some(sha256) if path == archive.object(&sha256) => {
                    let io = |source| ArchiveError::Io { path: path.clone(), source };
                    let about = fs::metadata(&path).map_err(io)?;
                    let written_at = about.modified().unwrap_or_else(|_| SystemTime::now()).into();
                    objects.push(Object { sha256, bytes: about.len(), written_at, path });
                }
                _ => strangers += 1,
            }
        }
    }
    Ok((objects, strangers))
}

/// The same of an object store, as it lists them.
fn stored(remote: &Remote, archive: &Archive) -> Result<(Vec<Object>, usize), ArchiveError> {
    let (mut objects, mut strangers) = (Vec::new(), 0);
    for stored in remote.stored("raw/objects")? {
        match sha256_of(&stored.path) {
            Some(sha256) if stored.path == archive.object(&sha256) => {
                objects.push(Object { sha256, bytes: stored.bytes, written_at: stored.written_at, path: stored.path });
            }
            _ => strangers += 1,
        }
    }
    Ok((objects, strangers))
}

/// The hash that a file's place says.
fn sha256_of(path: &Path) -> Option<String> {
    let name = path.file_name()?.to_str()?.strip_suffix(".zst")?;
    let sha256 = format!("{}{name}", path.parent()?.file_name()?.to_str()?);
    let is_hash = sha256.len() == 64 && sha256.bytes().all(|byte| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte));
    is_hash.then_some(sha256)
}

/// What stands in a folder, in order; nothing where there is no folder.
fn listed(folder: &Path) -> Result<Vec<PathBuf>, ArchiveError> {
    let io = |source| ArchiveError::Io { path: folder.to_owned(), source };
    if !folder.is_dir() {
        return Ok(Vec::new());
    }
    let mut paths = Vec::new();
    for entry in fs::read_dir(folder).map_err(io)? {
        paths.push(entry.map_err(io)?.path());
    }
    paths.sort();
    Ok(paths)
}

fn remove(path: &Path) -> Result<(), ArchiveError> {
    match fs::remove_file(path) {
        Err(source) if source.kind() != io::ErrorKind::NotFound => Err(ArchiveError::Io { path: path.to_owned(), source }),
        _ => Ok(()),
    }
}
