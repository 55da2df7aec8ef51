//! The machine: the folder and who may write there, the lock, the clock, the disk, the keys in the environment.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use chrono::{DateTime, Utc};
use gpuledger_scrapers::{ALL, recordings};

use super::{Lines, dataset, word};
use crate::fetch::Key;
use crate::lock::{self, LOCK_FILE};
use crate::night::{SnapshotId, second};
use crate::schedule;

/// Below this a night may not fit: one takes up to 60 MB, and much more the first time.
const SPACE_MIN_BYTES: u64 = 500_000_000;

/// Below this it is time to think of a larger disk.
const SPACE_LOW_BYTES: u64 = 5_000_000_000;

/// Whether the dataset's folder is one, and this user may write to what is in it.
pub(super) fn folder(output: &Path, lines: &mut Lines) {
    let (before, of) = (lines.count(), "folder");
    match std::fs::metadata(output) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            let says = format!("{} is not there; the first night makes it", output.display());
            lines.warning(of, says, format!("gpuledger collect --output {}", dataset(output)));
            return;
        }
        Err(error) => lines.problem(of, format!("{}: {error}", output.display()), format!("ls -ld {}", word(output))),
        Ok(facts) if !facts.is_dir() => {
            let says = format!("{} is a file and should be a folder", output.display());
            lines.problem(of, says, "gpuledger collect --output ANOTHER-FOLDER");
        }
        Ok(_) => {
            let parts = ["", "offers", "coverage", "rates", "runs", "raw", "raw/objects", "raw/receipts"];
            let logs = ["offers/_delta_log", "coverage/_delta_log", "rates/_delta_log"];
            for part in parts.into_iter().chain(logs).map(|part| output.join(part)).filter(|part| part.exists()) {
                if let Err(error) = may_write(&part) {
                    let says = format!("cannot write to {}: {error}", part.display());
                    lines.problem(
                        of,
                        says,
                        format!("chmod u+rwx {0}  # or chown it; `ls -ld {0}` shows whose it is", word(&part)),
                    );
                }
            }
        }
    }
    lines.good_since(before, of, format!("{} can be written", output.display()));
}

/// Writes a file and removes it: nothing else tells for sure.
fn may_write(folder: &Path) -> std::io::Result<()> {
    if !folder.is_dir() {
        return Err(std::io::Error::new(std::io::ErrorKind::NotADirectory, "it is a file and should be a folder"));
    }
    let path = folder.join(format!(".doctor-{}", std::process::id()));
    std::fs::write(&path, b"")?;
    std::fs::remove_file(&path)
}

/// Who holds the lock.
pub(super) fn lock(output: &Path, lines: &mut Lines) {
    let path = output.join(LOCK_FILE);
    if path.is_dir() {
        lines.problem("lock", format!("{} is a folder", path.display()), format!("rmdir {}", word(&path)));
        return;
    }
    match lock::holder(output) {
        Ok(None) => lines.good("lock", "nobody is writing"),
        Ok(Some(owner)) => lines.good("lock", format!("held by {owner}")),
        Err(_) if !output.is_dir() => {}
        Err(error) => lines.problem("lock", format!("{}: {error}", path.display()), format!("chmod u+rw {}", word(&path))),
    }
}

/// Whether the clock can be right: nights are named by it.
pub(super) fn clock(published: &BTreeSet<SnapshotId>, lines: &mut Lines) {
    let (before, now) = (lines.count(), Utc::now());
    let mend = "sudo timedatectl set-ntp true";
    if let Some(newest) = published.last().filter(|newest| newest.instant() > now) {
        lines.warning("clock", format!("it is {} and the newest snapshot is {newest}", second(now)), mend);
    }
    let recordings = ALL.iter().filter_map(|scraper| recordings::newest(&scraper.manifest().provider));
    let newest = recordings.map(|recording| recording.receipt.observed_at).max();
    if let Some(newest) = newest.filter(|newest| *newest > now) {
        let says = format!("it is {} and the recordings in this program are of {}", second(now), second(newest));
        lines.warning("clock", says, mend);
    }
    lines.good_since(before, "clock", format!("it is {}, after every snapshot and recording", second(now)));
}

/// Room on the disk.
pub(super) fn space(output: &Path, lines: &mut Lines) {
    let there = std::path::absolute(output).unwrap_or_else(|_| PathBuf::from("."));
    let there = there.ancestors().find(|folder| folder.is_dir()).unwrap_or(Path::new("."));
    match fs4::available_space(there) {
        Ok(bytes) => {
            let says = format!("{:.1} GB free", gigabytes(bytes));
            let mend = format!("du -xh -d 2 {} | sort -h | tail", word(there));
            if bytes < SPACE_MIN_BYTES {
                lines.problem("disk", says, mend);
            } else if bytes < SPACE_LOW_BYTES {
                lines.warning("disk", says, mend);
            } else {
                lines.good("disk", says);
            }
        }
        Err(error) => {
            lines.warning("disk", format!("nobody can say how much is free: {error}"), format!("df -h {}", word(there)))
        }
    }
}

fn gigabytes(bytes: u64) -> f64 {
    num_traits::ToPrimitive::to_f64(&bytes).unwrap_or(f64::INFINITY) / 1e9
}

/// Which keys are in the environment. Their values are nobody's business.
pub(super) fn keys(lines: &mut Lines) {
    for manifest in ALL.iter().map(|scraper| scraper.manifest()) {
        let Some(name) = &manifest.fetch.key_env else { continue };
        let (of, provider) = ("keys", &manifest.provider);
        match Key::of(manifest) {
            Ok(Some(_)) => lines.good(of, format!("{name} is set, for {provider}")),
            Ok(None) if manifest.fetch.key_optional => {
                lines.good(of, format!("{name} is not set; {provider} is read without it"));
            }
            Ok(None) => lines.warning(of, format!("{name} is not set: {provider} is skipped"), format!("export {name}=…")),
            Err(error) => lines.problem(of, format!("{error}: {provider} fails"), format!("export {name}=…")),
        }
    }
}

/// When the schedules of a folder are due. No folder is no fault: something else may start the nights.
pub(super) fn schedules(folder: &Path, now: DateTime<Utc>, lines: &mut Lines) {
    let of = "schedule";
    let Ok(entries) = std::fs::read_dir(folder) else {
        lines.good(of, format!("there is no folder {}; something else starts the nights", folder.display()));
        return;
    };
    let mut files: Vec<PathBuf> = entries.filter_map(Result::ok).map(|entry| entry.path()).collect();
    files.retain(|path| path.extension().is_some_and(|extension| extension == "toml"));
    files.sort();
    for path in files {
        match schedule::read(&path) {
            Ok((schedule, due)) => {
                let next = due.after(now).map_or_else(|| "never".to_owned(), second);
                lines.good(of, format!("{} is due next at {next}", schedule.name));
            }
            Err(error) => {
                let why = std::error::Error::source(&error).map_or_else(String::new, |source| format!(": {source}"));
                lines.problem(of, format!("{error}{why}"), format!("gpuledger schedule next {}", word(&path)));
            }
        }
    }
}
