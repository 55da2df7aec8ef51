//! Several runs on one dataset: one at a time where they see each other's lock, and the log decides where they do not.

use crate::support::whole;
use std::process::{Child, Stdio};
use std::sync::Barrier;
use std::time::Duration;

use crate::support::whole::Ground;
use gpuledger::offer::OFFERS;
use gpuledger::snapshot::log::Log;

const BEFORE: &str = "2026-10-29T18:00:00Z";
const AT: &str = "2026-10-30T18:00:00Z";

fn id(at: &str) -> String {
    at.replace(':', "-")
}

/// The exit code of a run that was started, and what it said.
fn ended(child: Child) -> (Option<i32>, String) {
    let output = child.wait_with_output().expect("the child is ours");
    (output.status.code(), String::from_utf8_lossy(&output.stderr).into_owned())
}

fn start(ground: &Ground, at: &str) -> Child {
    ground.command(at).stderr(Stdio::piped()).spawn().expect("the program starts")
}

/// How often two runs are started at once: the full number where there is time for it.
fn times() -> usize {
    if std::env::var_os("GPULEDGER_STRACE").is_some() { 20 } else { 4 }
}

#[test]
fn of_two_runs_within_50_ms_one_publishes_and_the_other_is_turned_away_or_changes_nothing() {
    let before = Ground::new();
    assert_eq!(before.night(BEFORE).0, Some(0));
    for time in 0..times() {
        let ground = before.copy();
        let is_same_night = time % 2 == 0;
        let other = if is_same_night { AT } else { "2026-10-31T18:00:00Z" };
        let first = start(&ground, AT);
        std::thread::sleep(Duration::from_millis(u64::try_from(time).expect("a small number") * 50 / 20));
        let ends = [first, start(&ground, other)].map(ended);
        for (exit, said) in &ends {
            assert!(*exit == Some(0) || (*exit == Some(13) && said.contains("locked by ")), "{exit:?}: {said}");
        }
        let published = ends.iter().filter(|(exit, _)| *exit == Some(0)).count();
        assert!(published > 0, "{ends:?}");
        let ids = ground.check();
        assert_eq!(ids.len(), if is_same_night { 2 } else { 1 + published }, "{ids:?}");
    }
}

#[test]
fn a_run_does_not_mind_the_lock_of_a_dead_one_nor_what_stands_in_the_file() {
    let ground = Ground::new();
    let mut child = start(&ground, BEFORE);
    std::thread::sleep(Duration::from_millis(30));
    child.kill().expect("the child is ours");
    child.wait().expect("the child is ours");
    for (day, rubbish) in
        [&b"process 1 on nowhere since 1999"[..], b"\xff\xfe\x00rubbish\x1b[31m", &[b'x'; 100_000]].into_iter().enumerate()
    {
        std::fs::create_dir_all(ground.root()).expect("there is room for a folder");
        std::fs::write(ground.root().join(".lock"), rubbish).expect("the lock file can be written");
        let (exit, said) = ground.night(&format!("2026-11-0{}T18:00:00Z", day + 1));
        assert_eq!(exit, Some(0), "{said}");
    }
    assert_eq!(ground.check().len(), 3);
}

#[test]
fn rubbish_in_the_lock_file_of_a_run_that_is_alive_is_not_printed() {
    let ground = Ground::new();
    let _held = gpuledger::lock::take(&ground.root()).expect("nobody else writes");
    std::fs::write(ground.root().join(".lock"), b"\x1b[31mred").expect("the lock file can be written");
    let (exit, said) = ground.night(AT);
    assert_eq!(exit, Some(13), "{said}");
    assert!(said.contains("locked by a run that does not say who it is") && !said.contains("[31m"), "{said}");
}

/// Starts runs that do not see each other's lock, as on machines that share a disk without sharing its locks: the file is
/// taken away from under each.
fn blind(ground: &Ground, nights: &[(&str, bool)]) -> Vec<(Option<i32>, String)> {
    let mut children = Vec::new();
    for (at, is_changed) in nights {
        ground.write_pages(|text| if *is_changed { text.replace("$3.29", "$3.39") } else { text });
        let child = start(ground, at);
        // Long enough that the run has its lock and its pages, and short enough that it has published nothing.
        let lock = ground.root().join(".lock");
        while !lock.exists() {
            std::thread::sleep(Duration::from_millis(1));
        }
        let receipts = ground.root().join("raw/receipts").join(id(at));
        while !receipts.join("lambda.json").exists() {
            std::thread::sleep(Duration::from_millis(1));
        }
        std::fs::remove_file(&lock).expect("the lock file can be taken away");
        children.push(child);
    }
    children.into_iter().map(ended).collect()
}

#[test]
fn of_two_equal_runs_that_do_not_see_each_other_the_second_commits_nothing() {
    let before = Ground::new();
    assert_eq!(before.night(BEFORE).0, Some(0));
    for _ in 0..times() {
        let ground = before.copy();
        for (exit, said) in blind(&ground, &[(AT, false), (AT, false)]) {
            assert_eq!(exit, Some(0), "{said}");
        }
        assert_eq!(ground.night(AT).0, Some(0));
        assert_eq!(ground.check(), [id(BEFORE), id(AT)]);
    }
}

#[test]
fn of_two_unequal_runs_of_a_night_that_do_not_see_each_other_one_is_refused() {
    let before = Ground::new();
    assert_eq!(before.night(BEFORE).0, Some(0));
    for _ in 0..times() {
        let ground = before.copy();
        let ends = blind(&ground, &[(AT, false), (AT, true)]);
        let published = ends.iter().filter(|(exit, _)| *exit == Some(0)).count();
        let refused = ends.iter().filter(|(exit, said)| *exit == Some(11) && said.contains("with other rows")).count();
        assert_eq!((published, refused), (1, 1), "{ends:?}");
        // Whatever the loser left is cleared by the next, and receipts and record are the winner's.
        assert_eq!(ground.night("2026-10-31T18:00:00Z").0, Some(0));
        assert_eq!(ground.check().len(), 3);
    }
}

#[test]
fn a_log_that_several_create_at_once_is_one_log_and_whoever_looks_meanwhile_sees_it_or_none() {
    for _ in 0..10 * times() {
        let ground = Ground::new();
        let (root, start) = (ground.root(), Barrier::new(4));
        let ids: Vec<_> = std::thread::scope(|scope| {
            let writers = [(); 2].map(|()| {
                scope.spawn(|| {
                    start.wait();
                    whole::block_on(Log::open_or_create(&root, &OFFERS)).expect("it is created or there").id()
                })
            });
            let readers = [(); 2].map(|()| {
                scope.spawn(|| {
                    start.wait();
                    while whole::block_on(Log::open(&root, &OFFERS)).expect("it is whole or not there").is_none() {}
                })
            });
            readers.into_iter().for_each(|reader| reader.join().expect("a reader reads"));
            writers.into_iter().map(|writer| writer.join().expect("a writer writes").expect("the log says it")).collect()
        });
        assert!(ids[0].is_some() && ids[0] == ids[1], "{ids:?}");
    }
}

#[test]
fn nights_of_runs_that_do_not_see_each_other_are_all_published_and_no_rate_twice() {
    let ground = Ground::new();
    let nights = ["2026-10-30T18:00:00Z", "2026-10-31T18:00:00Z", "2026-11-01T18:00:00Z"];
    for (exit, said) in blind(&ground, &nights.map(|at| (at, false))) {
        assert_eq!(exit, Some(0), "{said}");
    }
    assert_eq!(ground.night("2026-11-02T18:00:00Z").0, Some(0));
    assert_eq!(ground.check().len(), 4);
    let snapshots = whole::block_on(gpuledger::snapshot::read::snapshots(&ground.root())).expect("the log reads");
    let mut versions: Vec<usize> = snapshots.iter().map(|snapshot| snapshot.version).collect();
    versions.sort_unstable();
    assert_eq!(versions, [1, 2, 3, 4]);
}
