//! A disk that says no: full, broken, read-only, not a folder. What was published stays, and the error says where it was and
//! what to do next.

use crate::support::whole;
use std::path::Path;
use std::process::{Command, Stdio};

use crate::support::whole::Ground;

const BEFORE: &str = "2026-10-29T18:00:00Z";
const AT: &str = "2026-10-30T18:00:00Z";

fn id(at: &str) -> String {
    at.replace(':', "-")
}

/// A dataset with one night.
fn one_night() -> Ground {
    let ground = Ground::new();
    let (exit, said) = ground.night(BEFORE);
    assert_eq!(exit, Some(0), "{said}");
    ground
}

/// Runs a command of the system with the program's night as its last words; `None` where it cannot be had here.
fn night_under(ground: &Ground, at: &str, words: &[&str]) -> Option<(Option<i32>, String)> {
    let (first, rest) = words.split_first().expect("there is a command");
    let mut command = Command::new(first);
    command.args(rest).arg(env!("CARGO_BIN_EXE_gpuledger")).args(ground.args(at)).env("NO_COLOR", "1");
    let output = command.stdin(Stdio::null()).output().ok()?;
    Some((output.status.code(), String::from_utf8_lossy(&output.stderr).split_whitespace().collect::<Vec<_>>().join(" ")))
}

/// Whether strace can break a call of a process here.
fn has_strace() -> bool {
    let works = Command::new("strace").args(["-f", "-qq", "-e", "trace=none", "true"]).stderr(Stdio::null()).status();
    let works = works.is_ok_and(|status| status.success());
    assert!(works || std::env::var_os("GPULEDGER_STRACE").is_none(), "strace is not here or may not watch a process");
    if !works {
        eprintln!("skipped: strace is not here or may not watch a process");
    }
    works
}

/// Breaks the calls of a night from the n-th on, for every n up to a night that is not disturbed.
fn break_calls(call: &str, error: &str, words: &[&str]) {
    let before = one_night();
    let step = if std::env::var_os("GPULEDGER_STRACE").is_some() { 1 } else { 4 };
    let mut broken = 0;
    for from in (1..).step_by(step) {
        let ground = before.copy();
        let root = ground.root();
        let log = root.with_extension("trace");
        let rule = format!("inject={call}:error={error}:when={from}+");
        let (log, trace) = (log.to_str().expect("text"), format!("trace={call}"));
        let (exit, said) =
            night_under(&ground, AT, &["strace", "-f", "-qq", "-o", log, "-e", &trace, "-e", &rule]).expect("strace starts");
        let was_broken = std::fs::read_to_string(log).expect("strace writes its log").contains("(INJECTED)");
        if !was_broken {
            assert_eq!(exit, Some(0), "{said}");
            break;
        }
        broken += 1;
        let seen = ground.snapshots();
        let what = format!("{call} from {from} on: exit {exit:?}: {said}");
        match exit {
            Some(11) => assert_eq!(seen, [id(BEFORE)], "{what}"),
            // The night is there and something beside it is not: the next run writes it.
            Some(10) => assert!(seen == [id(BEFORE), id(AT)] && said.contains("which is published"), "{what}"),
            // What could not be written was not needed, or only a draft or a list could not be taken away.
            Some(0) => assert_eq!(seen, [id(BEFORE), id(AT)], "{what}"),
            _ => panic!("{what}"),
        }
        if exit != Some(0) {
            assert!(said.contains(root.to_str().expect("text")), "the error names no file: {what}");
            assert!(words.iter().any(|word| said.contains(word)), "the error does not say what to do: {what}");
        }
        let (exit, said) = ground.night(AT);
        assert_eq!(exit, Some(0), "after {what}: {said}");
        assert_eq!(ground.check(), [id(BEFORE), id(AT)], "after {what}");
    }
    assert!(broken > 3, "{call}: {broken}");
}

#[test]
fn a_disk_that_is_full_from_any_write_on_costs_the_night_and_nothing_else() {
    if has_strace() {
        // The standard streams are written to by others; only files of the dataset are full.
        break_calls("ftruncate,mkdir,rename,link,linkat", "ENOSPC", &["make room on the disk"]);
    }
}

#[test]
fn a_disk_that_fails_to_keep_what_was_written_costs_the_night_and_nothing_else() {
    if has_strace() {
        break_calls("fsync", "EIO", &["gpuledger doctor"]);
    }
}

/// Whether a part of the file system can be made that this test alone sees.
fn has_namespace() -> bool {
    let works = Command::new("unshare").args(["-rm", "true"]).stderr(Stdio::null()).status().is_ok_and(|status| status.success());
    if !works {
        eprintln!("skipped: no disk of one's own can be made here");
    }
    works
}

/// A script in a file system of its own; `$0` is the dataset, the rest the program's night.
fn mounted(ground: &Ground, at: &str, script: &str) -> (Option<i32>, String) {
    let root = ground.root();
    let root = root.to_str().expect("text");
    night_under(ground, at, &["unshare", "-rm", "bash", "-euc", script, root]).expect("unshare starts")
}

#[test]
fn a_small_disk_that_fills_up_leaves_the_last_snapshot_and_a_night_that_can_be_run_again() {
    if !has_namespace() {
        return;
    }
    // From too small for the pages to large enough for the night, which takes about 130 KB.
    for free_kib in [16, 40, 64, 88, 112, 136, 400] {
        let ground = one_night();
        let script = format!(
            r#"cp -a "$0" "$0.full"; used=$(du -sk "$0" | cut -f1); mount -t tmpfs -o size=$((used + {free_kib}))k tmpfs "$0"
            cp -a "$0.full/." "$0"; code=0; "$@" || code=$?; rm -rf "$0.full"; cp -a "$0" "$0.full"; exit $code"#
        );
        let (exit, said) = mounted(&ground, AT, &script);
        // What stood on the small disk comes back onto the large one.
        std::fs::remove_dir_all(ground.root()).expect("the dataset can be taken away");
        std::fs::rename(ground.root().with_file_name("output.full"), ground.root()).expect("the copy is there");
        let seen = ground.snapshots();
        assert_eq!(seen[0], id(BEFORE));
        assert!([Some(0), Some(10), Some(11)].contains(&exit), "{free_kib}: {exit:?}: {said}");
        assert_eq!(seen.len(), if exit == Some(11) { 1 } else { 2 }, "{free_kib}: {exit:?}: {said}");
        assert!(exit == Some(0) || said.contains("make room on the disk"), "{free_kib}: {said}");
        assert_eq!(ground.night(AT).0, Some(0));
        assert_eq!(ground.check(), [id(BEFORE), id(AT)]);
    }
}

#[test]
fn a_disk_mounted_read_only_is_named_with_what_to_do() {
    if !has_namespace() {
        return;
    }
    let ground = one_night();
    let script = r#"mount --bind "$0" "$0"; mount -o remount,bind,ro "$0"; "$@""#;
    let (exit, said) = mounted(&ground, AT, script);
    assert_eq!(exit, Some(11), "{said}");
    assert!(said.contains(".lock") && said.contains("read-only") && said.contains("--output"), "{said}");
    assert_eq!(ground.check(), [id(BEFORE)]);
}

#[test]
fn an_output_that_is_a_file_is_named_with_what_to_do() {
    let ground = Ground::new();
    std::fs::write(ground.root(), b"not a folder").expect("there is room for a file");
    let (exit, said) = ground.night(AT);
    assert_eq!(exit, Some(11), "{said}");
    let said = said.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(said.contains("name another one with --output") && said.contains("output"), "{said}");
    assert_eq!(std::fs::read(ground.root()).expect("the file is there"), b"not a folder");
}

#[test]
fn a_folder_of_somebody_else_is_named_with_what_to_do() {
    let ground = one_night();
    let words = ["setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups"];
    let folder = ground.root();
    let folder = folder.parent().expect("the dataset stands in a folder");
    Command::new("chmod").arg("-R").arg("go+rX").arg(folder).status().expect("chmod starts");
    let is_root = Command::new("id").arg("-u").output().is_ok_and(|said| said.stdout.starts_with(b"0"));
    let can_run = |words: &[&str]| {
        let mut command = Command::new(words[0]);
        command.args(&words[1..]).arg(env!("CARGO_BIN_EXE_gpuledger")).arg("--version");
        command.stdout(Stdio::null()).stderr(Stdio::null()).status().is_ok_and(|status| status.success())
    };
    if !is_root || !can_run(&words) {
        eprintln!("skipped: this user cannot become another, or the other cannot start the program");
        return;
    }
    let (exit, said) = night_under(&ground, AT, &words).expect("setpriv starts");
    assert_eq!(exit, Some(11), "{said}");
    assert!(said.contains("ermission denied") && said.contains("ls -ld"), "{said}");
    assert_eq!(ground.check(), [id(BEFORE)]);
}

#[test]
fn a_damaged_log_is_called_damaged_and_not_a_bug() {
    let ground = one_night();
    let log = ground.root().join("offers/_delta_log/00000000000000000001.json");
    std::fs::write(&log, b"{\"add\":").expect("the log can be damaged");
    let (exit, said) = ground.night(AT);
    assert_eq!(exit, Some(11), "{said}");
    assert!(said.contains("doctor") && !said.contains("fault of this program"), "{said}");
    let listed = Command::new(env!("CARGO_BIN_EXE_gpuledger")).args(["offers", "--output"]).arg(ground.root()).output();
    assert_eq!(listed.expect("the program starts").status.code(), Some(11));
    // A log without its beginning is not begun anew over what is there.
    std::fs::remove_file(ground.root().join("offers/_delta_log/00000000000000000000.json")).expect("it can be taken away");
    let (exit, said) = ground.night(AT);
    assert_eq!(exit, Some(11), "{said}");
}

#[test]
fn a_clock_that_went_back_changes_no_number_of_a_version() {
    let ground = one_night();
    assert_eq!(ground.night(AT).0, Some(0));
    // A night of an earlier time, by a machine whose clock is hours behind the one that published the others.
    let library = ["faketime", "-f", "-5h"];
    let can_fake = Command::new("faketime").args(["-f", "-5h", "true"]).status().is_ok_and(|status| status.success());
    let earlier = "2026-10-28T18:00:00Z";
    if can_fake {
        assert_eq!(night_under(&ground, earlier, &library).expect("faketime starts").0, Some(0));
    } else {
        set_commit_times_back(&ground.root());
        assert_eq!(ground.night(earlier).0, Some(0));
    }
    let snapshots = whole::block_on(gpuledger::snapshot::read::snapshots(&ground.root())).expect("the log reads");
    let numbered: Vec<(String, usize)> = snapshots.iter().map(|snapshot| (snapshot.id.to_string(), snapshot.version)).collect();
    assert_eq!(numbered, [(id(earlier), 3), (id(BEFORE), 1), (id(AT), 2)]);
}

/// As if what is published had been so by a clock that was a day ahead.
fn set_commit_times_back(root: &Path) {
    let log = root.join("offers/_delta_log");
    for (version, ahead) in [(1, 90_000_000_000_000_u64), (2, 80_000_000_000_000)] {
        let path = log.join(format!("{version:020}.json"));
        let text = std::fs::read_to_string(&path).expect("the log reads");
        let change = |line: &str| {
            let mut action: serde_json::Value = serde_json::from_str(line).expect("the log is JSON");
            if let Some(time) = action.pointer_mut("/add/modificationTime") {
                *time = ahead.into();
            }
            action.to_string() + "\n"
        };
        std::fs::write(&path, text.lines().map(change).collect::<String>()).expect("the log can be changed");
    }
}

#[test]
fn two_nights_of_the_same_second_are_one() {
    let ground = one_night();
    assert_eq!(ground.night("2026-10-29T18:00:00.750Z").0, Some(0));
    assert_eq!(ground.check(), [id(BEFORE)]);
}
