//! A run killed at every step and at any moment: what was published stays whole, and the next run leaves no trace of it.
//!
//! `GPULEDGER_KILLS=N` kills N times at random moments, `GPULEDGER_KILL_SEED` sets the moments, and `GPULEDGER_STRACE=1`
//! takes every step instead of every ninth and makes the absence of strace a failure.

use std::process::{Command, Stdio};
use std::sync::Mutex;
use std::time::{Duration, Instant};

use crate::support::whole::Ground;

const FIRST: &str = "2026-10-29T18:00:00Z";
const KILLED: &str = "2026-10-30T18:00:00Z";
const LATER: &str = "2026-10-31T18:00:00Z";

/// Everything that puts a name or bytes onto the disk for good. A process is killed before the call is made, so killing at
/// each call is killing after the one before it.
const STEPS: &str = "mkdir,rename,renameat,renameat2,link,linkat,fsync,fdatasync,unlink,unlinkat,rmdir,ftruncate";

fn is_thorough() -> bool {
    std::env::var_os("GPULEDGER_STRACE").is_some()
}

/// Whether strace can watch a process here; without it the steps cannot be told apart.
fn has_strace() -> bool {
    let works = Command::new("strace").args(["-f", "-qq", "-e", "trace=none", "true"]).stderr(Stdio::null()).status();
    let works = works.is_ok_and(|status| status.success());
    assert!(works || !is_thorough(), "strace is not here or may not watch a process");
    if !works {
        eprintln!("skipped: strace is not here or may not watch a process");
    }
    works
}

/// The program under strace, with everything that strace says thrown away unless it goes to `log`.
fn traced(ground: &Ground, at: &str, rules: &[String], log: &std::path::Path) -> Command {
    let mut command = Command::new("strace");
    command.args(["-f", "-qq", "-o"]).arg(log);
    for rule in rules {
        command.args(["-e", rule]);
    }
    command.arg(env!("CARGO_BIN_EXE_gpuledger")).args(ground.args(at));
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    command
}

/// The calls of a night in their order, each with how many of its kind it is.
fn steps_of(ground: &Ground) -> Vec<(String, usize)> {
    let log = ground.root().with_extension("trace");
    let rules = [format!("trace={STEPS}")];
    assert!(traced(ground, KILLED, &rules, &log).status().expect("strace starts").success());
    let mut counts = std::collections::HashMap::new();
    let text = std::fs::read_to_string(&log).expect("strace writes its log");
    let calls = text.lines().filter_map(|line| line.split_once(' ')?.1.trim_start().split_once('(').map(|(name, _)| name));
    let mut number = |name: &str| {
        let count = counts.entry(name.to_owned()).or_insert(0);
        *count += 1;
        (name.to_owned(), *count)
    };
    calls.map(&mut number).collect()
}

/// Does each piece of work on one of two threads.
fn side_by_side<T: Sync>(work: &[T], each: impl Fn(usize, &T) + Sync) {
    let next = Mutex::new(0);
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                loop {
                    let index = {
                        let mut next = next.lock().expect("the other thread did not panic while it counted");
                        *next += 1;
                        *next - 1
                    };
                    let Some(piece) = work.get(index) else { break };
                    each(index, piece);
                }
            });
        }
    });
}

/// Kills a night at each step over a dataset, and lets the same night or a later one follow.
fn kill_at_each_step(before: &Ground, good: &[&str]) -> usize {
    let steps = steps_of(&before.copy());
    assert!(steps.len() > 30, "{steps:?}");
    let every = if is_thorough() { 1 } else { 9 };
    let chosen: Vec<_> = steps.into_iter().enumerate().filter(|(index, _)| index % every == 0).collect();
    side_by_side(&chosen, |_, (index, (call, number))| {
        let ground = before.copy();
        let log = ground.root().with_extension("trace");
        let rules = [format!("trace={call}"), format!("inject={call}:signal=KILL:when={number}")];
        let ended = traced(&ground, KILLED, &rules, &log).status().expect("strace starts");
        assert!(!ended.success(), "the run was not killed at {call} {number}");
        let what = format!("killed at step {index}, {call} {number}");
        check_after(&ground, good, if index % 2 == 0 { KILLED } else { LATER }, &what);
    });
    chosen.len()
}

/// At once: what was published reads whole. After the next run: everything is as if nobody had been killed.
fn check_after(ground: &Ground, good: &[&str], next: &str, what: &str) {
    let seen = if ground.root().is_dir() { ground.snapshots() } else { Vec::new() };
    let id = |at: &str| at.replace(':', "-");
    let is_killed_there = seen.contains(&id(KILLED));
    let rest: Vec<&String> = seen.iter().filter(|seen| **seen != id(KILLED)).collect();
    assert_eq!(rest, good.iter().map(|at| id(at)).collect::<Vec<_>>().iter().collect::<Vec<_>>(), "{what}");
    let (exit, said) = ground.night(next);
    assert_eq!(exit, Some(0), "{what}: {said}");
    let mut wanted: Vec<String> = good.iter().map(|at| id(at)).chain([id(next)]).collect();
    if is_killed_there && next != KILLED {
        wanted.push(id(KILLED));
    }
    wanted.sort();
    assert_eq!(ground.check(), wanted, "{what}");
}

#[test]
fn a_night_killed_at_any_step_leaves_the_last_snapshot_whole_and_the_next_run_no_trace_of_it() {
    if !has_strace() {
        return;
    }
    let started = Instant::now();
    let ground = Ground::new();
    assert_eq!(ground.night(FIRST).0, Some(0));
    let killed = kill_at_each_step(&ground, &[FIRST]);
    eprintln!("{killed} steps of a night in {:.1} s", started.elapsed().as_secs_f64());
}

#[test]
fn a_first_night_killed_at_any_step_leaves_nothing_or_a_snapshot() {
    if !has_strace() {
        return;
    }
    let started = Instant::now();
    let killed = kill_at_each_step(&Ground::new(), &[]);
    eprintln!("{killed} steps of a first night in {:.1} s", started.elapsed().as_secs_f64());
}

/// The next of a row of numbers that look random and are the same for the same seed.
fn next_random(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9E37_79B9_7F4A_7C15);
    let mixed = (*state ^ (*state >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    mixed ^ (mixed >> 31)
}

#[test]
fn a_night_killed_again_and_again_at_random_moments_is_published_once_by_the_run_that_is_left_alone() {
    let number = |name: &str, otherwise: u64| {
        std::env::var(name).map_or(otherwise, |text| text.parse().unwrap_or_else(|_| panic!("{name}={text} is no number")))
    };
    let (kills, seed) = (number("GPULEDGER_KILLS", 8), number("GPULEDGER_KILL_SEED", 20_261_030));
    eprintln!("{kills} kills, GPULEDGER_KILL_SEED={seed}");
    let before = Ground::new();
    assert_eq!(before.night(FIRST).0, Some(0));
    let undisturbed = before.copy();
    let started = Instant::now();
    assert_eq!(undisturbed.night(KILLED).0, Some(0));
    let time = started.elapsed();
    // Four kills on one dataset before a run is left alone: what they leave comes on top of each other.
    let rounds: Vec<u64> = (0..kills.div_ceil(4)).collect();
    let started = Instant::now();
    side_by_side(&rounds, |_, round| {
        let ground = before.copy();
        let mut state = seed.wrapping_add(*round);
        let mut moments = Vec::new();
        for _ in 0..4.min(kills - round * 4) {
            // Up to a tenth longer than a run takes.
            let moment =
                Duration::from_micros(next_random(&mut state) % u64::try_from(time.as_micros() * 11 / 10).expect("a short time"));
            let mut child = ground.command(KILLED).stderr(Stdio::null()).spawn().expect("the program starts");
            std::thread::sleep(moment);
            // On Unix this is SIGKILL. A run that is over already is not disturbed by it.
            child.kill().expect("the child is ours");
            child.wait().expect("the child is ours");
            moments.push(moment);
        }
        let next = if round % 2 == 0 { KILLED } else { LATER };
        check_after(&ground, &[FIRST], next, &format!("seed {seed}, round {round}, killed after {moments:?}"));
    });
    eprintln!("{kills} kills in {:.1} s, one night takes {:.2} s", started.elapsed().as_secs_f64(), time.as_secs_f64());
}
