//! `schedule run`: the service in the foreground, on the machine's clock, with each night as a process of its own.
//!
//! In: schedule files. Out: nights, lines on standard error, and `runs/health.json`. A night that crashes, leaks or hangs is a
//! process that ends; the service is small and goes on. Schedules of one dataset share a thread and run one night at a time;
//! those of different datasets do not wait for each other.

use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant};

use chrono::{DateTime, TimeDelta, Utc};
use serde_json::json;

use super::args::ScheduleRun;
use super::decide::Rules;
use super::health::Health;
use super::ledger::Ledger;
use super::night::{GRACE_MINUTES, PUBLISHING, is_publishing, write_off};
use super::service::{Waited, World, serve};
use super::{Usable, read_all};
use crate::archive::clear_drafts;
use crate::exit::Exit;
use crate::failed::Failed;
use crate::lock;
use crate::log::{self, Level, LogForm};
use crate::night::second;
use crate::record::RUNS;
use crate::remote;
use crate::report::Said;
use crate::run::open_for_writing;
use crate::snapshot::SnapshotError;

/// The clock is looked at at least so often: a clock that was set shows within this time.
const TICK: Duration = Duration::from_secs(30);

/// Health is written at least so often.
const HEALTH: Duration = Duration::from_secs(60);

/// Telling of a night whose process died may take so long; whatever has not arrived is told with the next night.
const TELLING: Duration = Duration::from_secs(150);

/// A night's process is looked at so often.
const LOOK: Duration = Duration::from_millis(200);

/// A clock that gains as much in one wait has jumped.
const JUMP: TimeDelta = TimeDelta::minutes(2);

/// How often the service was asked to stop.
#[derive(Debug, Default)]
struct Stop {
    times: Mutex<u32>,
    asked: Condvar,
}

impl Stop {
    fn ask(&self) {
        *self.times.lock().unwrap_or_else(PoisonError::into_inner) += 1;
        self.asked.notify_all();
    }

    /// How often it was asked by the end of a while, or sooner if it is asked more than `before` times.
    fn wait(&self, length: Duration, before: u32) -> u32 {
        let times = self.times.lock().unwrap_or_else(PoisonError::into_inner);
        let waited = self.asked.wait_timeout_while(times, length, |times| *times <= before);
        *waited.unwrap_or_else(PoisonError::into_inner).0
    }
}

/// The schedules of one dataset, the machine's clock, and processes.
struct Machine {
    program: PathBuf,
    /// This service in the words of its health.
    process: String,
    output: PathBuf,
    schedules: Vec<Usable>,
    stop: Arc<Stop>,
    runtime: tokio::runtime::Handle,
    next: Vec<Option<DateTime<Utc>>>,
    /// The night that runs here, and since when.
    running: Option<(usize, DateTime<Utc>)>,
    told_at: Option<Instant>,
}

/// Serves until the program is asked to stop.
///
/// # Errors
/// When a schedule cannot be used.
pub async fn run(args: &ScheduleRun) -> Result<Said, Failed> {
    let mut datasets: BTreeMap<PathBuf, Vec<Usable>> = BTreeMap::new();
    for usable in read_all(&args.files)? {
        datasets.entry(usable.output()).or_default().push(usable);
    }
    for output in datasets.keys() {
        remote::prepare(output).map_err(SnapshotError::Disk)?;
    }
    // The path as it is now: after the program is replaced, its nights are those of the new one.
    let program = std::env::current_exe().map_err(|error| Failed::new(Exit::Bug, "find this program", &error))?;
    let stop = Arc::new(Stop::default());
    listen(&stop)?;
    let mut threads = Vec::new();
    for (output, schedules) in datasets {
        let (stop, program, runtime) = (Arc::clone(&stop), program.clone(), tokio::runtime::Handle::current());
        let (process, next) = (lock::this_run(), vec![None; schedules.len()]);
        let machine = Machine { program, process, output, schedules, stop, runtime, next, running: None, told_at: None };
        threads.push(tokio::task::spawn_blocking(move || machine.keep()));
    }
    for thread in threads {
        thread.await.map_err(|error| Failed::new(Exit::Bug, "keep the schedules", &error))?;
    }
    Ok(Said { data: String::new().into(), talk: Some("stopped\n".to_owned()), exit: Exit::Good })
}

/// Has the signals that ask a service to stop counted.
fn listen(stop: &Arc<Stop>) -> Result<(), Failed> {
    #[cfg(unix)]
    {
        use tokio::signal::unix::{SignalKind, signal};
        for kind in [SignalKind::terminate(), SignalKind::interrupt()] {
            let mut signals = signal(kind).map_err(|error| Failed::new(Exit::Bug, "listen for signals", &error))?;
            let stop = Arc::clone(stop);
            tokio::spawn(async move {
                while signals.recv().await.is_some() {
                    stop.ask();
                }
            });
        }
    }
    #[cfg(not(unix))]
    {
        let stop = Arc::clone(stop);
        tokio::spawn(async move {
            while tokio::signal::ctrl_c().await.is_ok() {
                stop.ask();
            }
        });
    }
    Ok(())
}

/// A line for whoever reads the service's log.
fn say(words: &str) {
    let plain = format!("{}  {words}", second(Utc::now()));
    log::say(Level::Info, "service", &plain, &json!({ "text": words }));
}

impl Machine {
    /// Serves until it is asked to stop. A fault of the service itself costs a minute and nothing else.
    fn keep(mut self) {
        let rules: Vec<Rules> = self.schedules.iter().map(|usable| Rules::of(&usable.schedule, usable.due.clone())).collect();
        let folder = self.output.join(RUNS).join("schedules");
        // What a service that died was writing.
        let _ = clear_drafts(&folder);
        for (usable, rules) in self.schedules.iter().zip(&rules) {
            let next = rules.next_start(Utc::now()).map_or_else(|| "never".to_owned(), second);
            say(&format!("{}: {}, next at {next}", usable.schedule.name, usable.path.display()));
            // Since when the schedule counts is written down at once; somebody who holds it has done so.
            if let Err(error) = write_off(usable, |_| ()).map_err(Failed::from)
                && error.exit != Exit::Locked
            {
                say(&format!("{}: {error}", usable.schedule.name));
            }
        }
        while catch_unwind(AssertUnwindSafe(|| serve(&mut self, &rules))).is_err() {
            self.running = None;
            if self.stop.wait(TICK * 2, 0) > 0 {
                return;
            }
        }
    }

    fn keep_health(&mut self) {
        if self.told_at.is_some_and(|told_at| told_at.elapsed() < HEALTH) {
            return;
        }
        self.told_at = Some(Instant::now());
        let now = Utc::now();
        let mut health = Health::new(now, &self.process);
        for (index, usable) in self.schedules.iter().enumerate() {
            let since = self.running.filter(|(of, _)| *of == index).map(|(_, since)| since);
            health.add(Ledger::read(&self.output, &usable.schedule.name, now), self.next[index], since);
        }
        if let Err(error) = health.keep(&self.output) {
            say(&Failed::new(Exit::Refused, "write the health file", &error).to_string());
        }
    }

    fn start(&self, schedule: usize) -> std::io::Result<Child> {
        self.command(&["--if-due"], &self.schedules[schedule].path).spawn()
    }

    /// Waits for a night's process to end, and ends it if it lasts too long or the service is asked to stop.
    fn watch(&mut self, schedule: usize, mut child: Child) -> std::io::Result<Watched> {
        let started = Instant::now();
        let minutes = u64::from(self.schedules[schedule].schedule.longest_minutes) + 2 * GRACE_MINUTES;
        let mut asked_at: Option<Instant> = None;
        loop {
            if let Some(status) = child.try_wait()? {
                return Ok(Watched::Ended(status));
            }
            // Once it is asked to stop, only being asked again ends the pause before the next look.
            let times = self.stop.wait(LOOK, u32::from(asked_at.is_some()));
            if times > 0 {
                let asked_at = *asked_at.get_or_insert_with(Instant::now);
                // Publishing takes a moment, and the night is then whole.
                if times > 1 || !is_publishing(&self.output) || asked_at.elapsed() > PUBLISHING {
                    child.kill()?;
                    child.wait()?;
                    return Ok(Watched::GivenUp { is_at_once: times > 1 });
                }
            } else if started.elapsed() > Duration::from_secs(60 * minutes) {
                child.kill()?;
                child.wait()?;
                return Ok(Watched::TooLong { minutes });
            }
            self.keep_health();
        }
    }

    /// What follows a night whose process could not see to it itself: it is started again soon, or it is told that nothing
    /// came of it.
    fn follow_up(&self, usable: &Usable) -> &'static str {
        let (schedule, now) = (&usable.schedule, Utc::now());
        let ledger = Ledger::read(&self.output, &schedule.name, now);
        if Rules::of(schedule, usable.due.clone()).is_to_be_run_again(&ledger, now) {
            return "; it is started again";
        }
        // In a process of its own, as everything that reads tables or asks a server: the service stays small.
        let told = self.command(&["--only-tell"], &usable.path).spawn().and_then(|mut child| {
            let started = Instant::now();
            while child.try_wait()?.is_none() && started.elapsed() < TELLING && self.stop.wait(LOOK, 0) == 0 {}
            child.kill()?;
            child.wait()
        });
        if let Err(error) = told {
            say(&Failed::new(Exit::Bug, "start a process that tells of it", &error).to_string());
        }
        ""
    }

    /// `schedule night` with these options, in the log's own form, out of reach of a terminal's Ctrl-C.
    fn command(&self, options: &[&str], file: &Path) -> Command {
        let mut command = Command::new(&self.program);
        if log::form() == LogForm::Json {
            command.args(["--log", "json"]);
        }
        command.args(["schedule", "night"]).args(options).arg(file).stdin(Stdio::null());
        // Ctrl-C in a terminal is for the service, which decides what becomes of the night.
        #[cfg(unix)]
        std::os::unix::process::CommandExt::process_group(&mut command, 0);
        command
    }

    /// What becomes of a night that has ended in one way or another.
    fn settle(&self, schedule: usize, watched: &Watched) -> Result<String, Failed> {
        let usable = &self.schedules[schedule];
        match watched {
            Watched::Ended(status) => Ok(match status.code() {
                Some(0) => "published, all providers complete".to_owned(),
                Some(10) => "published, some providers not complete".to_owned(),
                Some(11) => "nothing was published; the last snapshot stays the latest".to_owned(),
                Some(12) => "somebody else has run it".to_owned(),
                Some(13) => "another run writes to the dataset; tried again soon".to_owned(),
                Some(1 | 2) => "it failed".to_owned(),
                _ => {
                    format!("its process failed ({status}){}", self.follow_up(usable))
                }
            }),
            Watched::TooLong { minutes } => {
                let note = format!("ended by force after {minutes} minutes");
                write_off(usable, |ledger| ledger.end_by_force(Utc::now(), &note))?;
                self.follow_up(usable);
                Ok(note)
            }
            Watched::GivenUp { is_at_once } => {
                let mut said = "given up, because the service is asked to stop; it is due again when the service runs".to_owned();
                if !is_at_once {
                    // What the night left behind goes now and not with the next one.
                    self.runtime.block_on(open_for_writing(&self.output))?;
                    write_off(usable, |ledger| {
                        if ledger.nights.last().is_some_and(|night| !night.is_over()) {
                            ledger.take_back();
                        }
                    })?;
                } else {
                    said.push_str(", which also takes back what it left");
                }
                Ok(said)
            }
        }
    }
}

/// How the watch over a night's process ended.
#[derive(Debug)]
enum Watched {
    /// It came to an end by itself.
    Ended(ExitStatus),
    /// It was ended because it lasted too long.
    TooLong { minutes: u64 },
    /// It was ended because the service is asked to stop.
    GivenUp { is_at_once: bool },
}

impl World for Machine {
    fn now(&self) -> DateTime<Utc> {
        Utc::now()
    }

    fn wait(&mut self, until: DateTime<Utc>) -> Waited {
        let (from, started) = (Utc::now(), Instant::now());
        let left = (until - from).to_std().unwrap_or_default().clamp(Duration::from_millis(1), TICK);
        if self.stop.wait(left, 0) > 0 {
            return Waited::Stopped;
        }
        let passed = TimeDelta::from_std(started.elapsed()).unwrap_or(TimeDelta::MAX);
        if (Utc::now() - from) - passed > JUMP { Waited::Jumped } else { Waited::Passed }
    }

    fn ledger(&mut self, schedule: usize) -> Ledger {
        Ledger::read(&self.output, &self.schedules[schedule].schedule.name, Utc::now())
    }

    fn night(&mut self, schedule: usize, due_at: DateTime<Utc>) -> Waited {
        let name = self.schedules[schedule].schedule.name.clone();
        say(&format!("{name}: the night due at {} starts", second(due_at)));
        self.running = Some((schedule, Utc::now()));
        self.told_at = None;
        self.keep_health();
        let started = Instant::now();
        let watched = self.start(schedule).and_then(|child| self.watch(schedule, child));
        self.running = None;
        self.told_at = None;
        let said = match &watched {
            Ok(watched) => self.settle(schedule, watched).unwrap_or_else(|failed| failed.to_string()),
            Err(error) => Failed::new(Exit::Bug, "start a process for it", error).to_string(),
        };
        say(&format!("{name}: after {} s: {said}", started.elapsed().as_secs()));
        if self.stop.wait(Duration::ZERO, 0) > 0 { Waited::Stopped } else { Waited::Passed }
    }

    fn tell(&mut self, next: &[Option<DateTime<Utc>>]) {
        if self.next != next {
            self.next = next.to_vec();
            self.told_at = None;
        }
        self.keep_health();
    }
}
