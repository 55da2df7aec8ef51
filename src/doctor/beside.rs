//! What stands beside the tables: what dead runs left, the archive, the records.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use super::{Lines, causes, dataset, files_below, restore, word};
use crate::archive::{Archive, Receipt, drafts};
use crate::lock;
use crate::night::SnapshotId;
use crate::prune::when_pruned;
use crate::record::{self, RUNS};
use crate::snapshot::journal;

/// So many archived objects are read when not all are asked for.
const SAMPLE: usize = 50;

/// The command whose start takes back what dead runs left.
pub(super) fn clear(output: &Path) -> String {
    format!("gpuledger collect --output {}", dataset(output))
}

/// Whether a file is on the list of a run.
pub(super) fn is_on_its_way(output: &Path, path: &Path) -> bool {
    let left = journal::left(output, None).unwrap_or_default();
    let plans = left.iter().filter_map(|left| left.plan.as_ref());
    plans.flat_map(|plan| &plan.files).any(|file| output.join(file) == path)
}

/// Drafts and lists that a run left when it died.
pub(super) fn left_over(output: &Path, lines: &mut Lines) {
    let (before, of) = (lines.count(), "left over");
    let is_writing = matches!(lock::holder(output), Ok(Some(_)));
    let found = files_below(&drafts(output)).unwrap_or_default();
    if !found.is_empty() && !is_writing {
        let says = format!("{} drafts of a run that died in {}", found.len(), drafts(output).display());
        lines.warning(of, says, clear(output));
    }
    match journal::left(output, None) {
        Ok(left) => {
            for left in left.iter().filter(|left| !left.is_held) {
                let name = left.path.display();
                let says = match &left.plan {
                    Some(plan) => {
                        format!("{name}: a run died while it published {}; the next one takes that back", plan.snapshot)
                    }
                    None => format!("{name} is no list that a run writes"),
                };
                lines.warning(of, says, clear(output));
            }
        }
        Err(error) => lines.problem(of, causes(&error), format!("ls -la {}", word(output))),
    }
    lines.good_since(before, of, "nothing of a run that died");
}

/// Receipts whose objects are missing, and objects that do not hold what their names say.
pub(super) fn archive(output: &Path, all: bool, lines: &mut Lines) {
    let (before, of) = (lines.count(), "archive");
    let objects = files_below(&output.join("raw/objects")).unwrap_or_default();
    let archive = Archive::below(output);
    let step = if all { 1 } else { objects.len().div_ceil(SAMPLE).max(1) };
    let mut read = 0;
    for path in objects.iter().step_by(step) {
        read += 1;
        let Some(name) = sha_of(path) else {
            lines.warning(of, format!("{} is no object of the archive", path.display()), format!("rm {}", word(path)));
            continue;
        };
        if let Err(error) = archive.read(&name) {
            lines.problem(of, format!("{}: {}", path.display(), causes(&error)), restore(output, path));
        }
    }
    let known: BTreeSet<String> = objects.iter().filter_map(|path| sha_of(path)).collect();
    let receipts = files_below(&output.join("raw/receipts")).unwrap_or_default();
    let mut missing = BTreeSet::new();
    for path in &receipts {
        let listed = std::fs::read(path).ok().and_then(|text| serde_json::from_slice::<Vec<Receipt>>(&text).ok());
        let Some(listed) = listed else {
            lines.problem(of, format!("{} does not read as receipts", path.display()), restore(output, path));
            continue;
        };
        for receipt in listed.iter().filter(|receipt| !known.contains(&receipt.sha256)) {
            // What `archive prune` removed is not missing.
            if missing.insert(receipt.sha256.clone()) && when_pruned(&archive, &receipt.sha256).is_none() {
                let object = object(output, &receipt.sha256);
                let says = format!("{}: the page `{}` is not in the archive", path.display(), receipt.page);
                lines.problem(of, says, restore(output, &object));
            }
        }
    }
    let says = format!("{} objects, {read} of them read and whole; {} lists of receipts", objects.len(), receipts.len());
    lines.good_since(before, of, says);
}

fn object(output: &Path, sha256: &str) -> PathBuf {
    let (start, rest) = sha256.split_at_checked(2).unwrap_or((sha256, ""));
    output.join("raw/objects").join(start).join(format!("{rest}.zst"))
}

/// The hash that an object's path says it has.
fn sha_of(path: &Path) -> Option<String> {
    let start = path.parent()?.file_name()?.to_str()?;
    let rest = path.file_name()?.to_str()?.strip_suffix(".zst")?;
    let name = format!("{start}{rest}");
    (name.len() == 64 && name.chars().all(|digit| digit.is_ascii_hexdigit())).then_some(name)
}

/// Published nights without a record, and records that do not read.
pub(super) fn records(output: &Path, published: &BTreeSet<SnapshotId>, lines: &mut Lines) {
    let (before, of) = (lines.count(), "records");
    for id in published {
        let path = output.join(RUNS).join(format!("{id}.json"));
        if !record::is_kept(output, *id) {
            lines.warning(of, format!("{id} is published and has no record"), restore(output, &path));
        } else if !reads_as_json(&path) {
            lines.warning(of, format!("{} does not read", path.display()), restore(output, &path));
        }
    }
    lines.good_since(before, of, format!("every one of {} nights has its record", published.len()));
}

fn reads_as_json(path: &Path) -> bool {
    std::fs::read(path).is_ok_and(|text| serde_json::from_slice::<serde_json::Value>(&text).is_ok())
}
