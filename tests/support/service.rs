//! The service on a dataset of its own: a schedule file, the program, its processes, and what is written down.

use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use chrono::{DateTime, Utc};
use gpuledger::schedule::due::Due;
use gpuledger::schedule::ledger::Ledger;
use tempfile::TempDir;

use super::internet::Internet;

pub struct Ground {
    folder: TempDir,
    cron: String,
}

/// How much a process holds.
#[derive(Debug, Clone, Copy)]
pub struct Size {
    pub mib: f64,
    pub files: usize,
}

pub struct Service {
    child: Child,
}

impl Ground {
    pub fn new(cron: &str, providers: &str, missed: &str) -> Self {
        let ground = Self { folder: tempfile::tempdir().expect("there is room for a folder"), cron: cron.to_owned() };
        let text = format!(
            "name = \"often\"\ncron = \"{cron}\"\ntime_zone = \"UTC\"\nproviders = {providers}\noutput = \"{}\"\nlongest_minutes = 1\nmissed = \"{missed}\"\n",
            ground.root().display()
        );
        std::fs::write(ground.file(), text).expect("there is room for a file");
        ground
    }

    pub fn root(&self) -> PathBuf {
        self.folder.path().join("output")
    }

    pub fn file(&self) -> PathBuf {
        self.folder.path().join("often.toml")
    }

    /// Adds lines to the schedule.
    pub fn also(&self, lines: &str) {
        let text = std::fs::read_to_string(self.file()).expect("the schedule is there");
        std::fs::write(self.file(), text + lines).expect("there is room for a file");
    }

    pub fn now(&self) -> DateTime<Utc> {
        Utc::now()
    }

    /// `schedule VERB … FILE` on this internet, everything that it says in one log.
    pub fn command(&self, world: &Internet, words: &[&str]) -> Command {
        let log =
            std::fs::File::options().create(true).append(true).open(self.folder.path().join("log")).expect("a log can be kept");
        let mut command = Command::new(env!("CARGO_BIN_EXE_gpuledger"));
        world.lead(&mut command);
        command.arg("schedule").args(words).arg(self.file()).env("NO_COLOR", "1").env_remove("GCP_API_KEY");
        command.stdin(Stdio::null()).stdout(log.try_clone().expect("a log has two ends")).stderr(log);
        command
    }

    pub fn serve(&self, world: &Internet) -> Service {
        Service { child: self.command(world, &["run"]).spawn().expect("the program starts") }
    }

    /// The exit code of `schedule night --if-due`.
    pub fn night(&self, world: &Internet) -> Option<i32> {
        self.command(world, &["night", "--if-due"]).status().expect("the program starts").code()
    }

    pub fn log(&self) -> String {
        std::fs::read_to_string(self.folder.path().join("log")).unwrap_or_default()
    }

    pub fn ledger(&self) -> Ledger {
        Ledger::read(&self.root(), "often", Utc::now())
    }

    pub fn keep_ledger(&self, since: DateTime<Utc>) {
        Ledger::begun("often", since).keep(&self.root()).expect("it can be written");
    }

    pub fn due_between(&self, from: DateTime<Utc>, to: DateTime<Utc>) -> Vec<DateTime<Utc>> {
        let due = Due::new(&self.cron, "UTC").expect("it is an expression");
        std::iter::successors(due.after(from), |last| due.after(*last)).take_while(|at| *at <= to).collect()
    }

    pub fn wait_until(&self, what: &str, longest: Duration, is_so: impl Fn() -> bool) {
        let begun = Instant::now();
        while !is_so() {
            assert!(begun.elapsed() < longest, "not so after {longest:?}: {what}\n{}", self.log());
            std::thread::sleep(Duration::from_millis(100));
        }
    }

    /// What the program says of the dataset with these words.
    pub fn said(&self, words: &[&str]) -> (Option<i32>, String) {
        let mut command = Command::new(env!("CARGO_BIN_EXE_gpuledger"));
        let ended = command.args(words).env("NO_COLOR", "1").output().expect("the program starts");
        let text = [ended.stdout, ended.stderr].concat();
        (ended.status.code(), String::from_utf8_lossy(&text).into_owned())
    }

    /// So many snapshots are there, and the dataset is whole.
    pub fn check(&self, snapshots: usize) {
        let root = self.root();
        let root = root.to_str().expect("a temporary folder's name is text");
        let (exit, list) = self.said(&["snapshots", "--output", root, "--format", "csv"]);
        assert_eq!((exit, list.lines().count()), (Some(0), snapshots + 1), "{list}\n{}", self.log());
        let (exit, said) = self.said(&["doctor", "--output", root, "--all", "--schedules", "no such folder"]);
        assert_eq!(exit, Some(0), "{said}");
    }
}

impl Service {
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// The process of the night that runs.
    pub fn night_process(&self) -> Option<u32> {
        let entries = std::fs::read_dir("/proc").ok()?;
        let ids = entries.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse::<u32>().ok());
        let mut of = ids.filter(|id| parent(*id) == Some(self.child.id()));
        of.next()
    }

    pub fn size(&self) -> Size {
        let id = self.child.id();
        let status = std::fs::read_to_string(format!("/proc/{id}/status")).expect("the service runs");
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).expect("its size is there");
        let kib: f64 = line.trim().trim_end_matches(" kB").parse().expect("a number");
        let files = std::fs::read_dir(format!("/proc/{id}/fd")).expect("the service runs").count();
        Size { mib: kib / 1024.0, files }
    }

    pub fn kill(mut self) {
        self.child.kill().expect("it can be killed");
        self.child.wait().expect("it can be waited for");
    }

    /// Asks it to stop; its exit code.
    pub fn stop(mut self) -> Option<i32> {
        signal("TERM", self.child.id());
        self.child.wait().expect("it can be waited for").code()
    }
}

pub fn signal(name: &str, process: u32) {
    let sent = Command::new("kill").args([format!("-{name}"), process.to_string()]).status().expect("there is a kill");
    assert!(sent.success(), "SIG{name} to {process}");
}

/// The parent of a process.
fn parent(id: u32) -> Option<u32> {
    let stat = std::fs::read_to_string(format!("/proc/{id}/stat")).ok()?;
    // The name stands in brackets and may hold anything.
    stat.rsplit_once(')')?.1.split_whitespace().nth(1)?.parse().ok()
}
