//! Datasets on an object store, against a server of this machine: `tests/cloud/run.sh` starts it and names it here.
//!
//! A machine is a folder for working copies of its own. `GPULEDGER_KILLS=N` kills N times instead of six.

use crate::support::whole;
use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use crate::support::whole::Ground;
use tempfile::TempDir;

const FIRST: &str = "2026-10-29T18:00:00Z";
const AT: &str = "2026-10-30T18:00:00Z";
const LATER: &str = "2026-10-31T18:00:00Z";

fn id(at: &str) -> String {
    at.replace(':', "-")
}

fn environment(name: &str) -> String {
    std::env::var(name).unwrap_or_else(|_| panic!("{name} is not set: run tests/cloud/run.sh"))
}

/// An address that no other test has.
fn bucket() -> String {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    format!("s3://gpuledger-tests/{}/{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed))
}

/// The server fails for one of us at a time.
static FAULTS: Mutex<()> = Mutex::new(());

/// Has the server fail under an address; how often it did since the last time.
fn faults(url: &str, asked: &str) -> u32 {
    let under = url.strip_prefix("s3://gpuledger-tests/").expect("it is in our bucket");
    let server = environment("AWS_ENDPOINT_URL");
    let host = server.strip_prefix("http://").expect("the server is this machine's");
    let mut line = TcpStream::connect(host).expect("the server answers");
    write!(line, "GET /-/?under={under}/&{asked} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n")
        .expect("the server listens");
    let mut answer = String::new();
    line.read_to_string(&mut answer).expect("the server answers");
    answer.lines().last().and_then(|count| count.parse().ok()).unwrap_or_else(|| panic!("{answer}"))
}

/// A machine of its own.
struct Machine {
    cache: TempDir,
}

struct Said {
    exit: Option<i32>,
    data: String,
    talk: String,
}

impl Machine {
    fn new() -> Self {
        Self { cache: tempfile::tempdir().expect("there is room for a folder") }
    }

    fn command(&self, url: &str, args: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_gpuledger"));
        command.args(args).args(["--output", url]).env("NO_COLOR", "1").env("GPULEDGER_CACHE", self.cache.path());
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }

    fn run(&self, url: &str, args: &[&str]) -> Said {
        said(self.command(url, args).spawn().expect("the program starts"))
    }

    fn start(&self, url: &str, ground: &Ground, at: &str) -> Child {
        let pages = ground.pages();
        let pages = pages.to_str().expect("a temporary folder's name is text");
        self.command(url, &["collect", "--at", at, "--from", pages]).spawn().expect("the program starts")
    }

    fn night(&self, url: &str, ground: &Ground, at: &str) -> Said {
        said(self.start(url, ground, at))
    }

    /// The only working copy.
    fn copy(&self) -> PathBuf {
        let mut copies = std::fs::read_dir(self.cache.path()).expect("there is a cache");
        copies.next().expect("there is a working copy").expect("it can be listed").path()
    }
}

fn said(child: Child) -> Said {
    let output = child.wait_with_output().expect("the child is ours");
    let [data, talk] = [output.stdout, output.stderr].map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
    Said { exit: output.status.code(), data, talk }
}

/// Everything that must hold of the dataset, as a machine finds it that never saw it before; the ids of the snapshots.
fn check(url: &str) -> Vec<String> {
    let (machine, ground) = (Machine::new(), Ground::new());
    let looked = machine.run(url, &["doctor", "--all"]);
    assert_eq!(looked.exit, Some(0), "{}{}", looked.data, looked.talk);
    let copied = Command::new("cp").arg("-a").arg(machine.copy()).arg(ground.root()).status().expect("cp starts");
    assert!(copied.success());
    ground.check()
}

#[test]
fn a_recorded_night_on_a_store_is_read_by_another_machine_as_from_a_folder() {
    let (url, here, there) = (bucket(), Machine::new(), Machine::new());
    let folder = tempfile::tempdir().expect("there is room for a folder");
    let local = folder.path().join("output");
    let local = local.to_str().expect("a temporary folder's name is text");
    let on_disk = here.run(local, &["collect", "--recorded"]);
    let on_store = here.run(&url, &["collect", "--recorded"]);
    assert_eq!((on_disk.exit, on_store.exit), (on_disk.exit, on_disk.exit), "{}", on_store.talk);
    assert!(on_store.data.contains(&format!("in {url}.")) && on_disk.data.contains(local), "{}", on_store.data);
    let ids = there.run(&url, &["snapshots", "--format", "json"]);
    assert_eq!(ids.data, here.run(local, &["snapshots", "--format", "json"]).data, "{}", ids.talk);
    let asked = ["offers", "--gpu", "h100", "--format", "csv", "--limit", "1000"];
    let offers = there.run(&url, &asked);
    assert_eq!(offers.data, here.run(local, &asked).data, "{}", offers.talk);
    let head: Vec<&str> = offers.data.lines().next().expect("there is a head").split(',').collect();
    let column = head.iter().position(|name| *name == "offer_id").expect("an offer has an id");
    let offer = offers.data.lines().nth(1).expect("there is an H100").split(',').nth(column).expect("it has an id");
    let explained = there.run(&url, &["explain", offer]);
    assert_eq!((explained.exit, explained.data), (Some(0), here.run(local, &["explain", offer]).data), "{}", explained.talk);
    let again = there.run(&url, &["replay", "latest"]);
    assert!(again.exit == Some(0) && again.talk.contains("identical"), "{}", again.talk);
    // The bytes are those of a folder, and nothing was brought that was not asked for.
    let files = |root: &Path| {
        let mut files =
            list_of("cd \"$1\" && find offers -path '*_delta_log' -prune -o -name '*.parquet' -exec sha256sum {} +", root);
        files.sort();
        files
    };
    assert_eq!(files(&there.copy()), files(Path::new(local)));
    let pages = |root: &Path| list_of("find \"$1\"/raw/objects -type f", root).len();
    let another = Machine::new();
    assert_eq!(another.run(&url, &["explain", offer]).exit, Some(0));
    assert!(pages(&another.copy()) < pages(Path::new(local)) / 4, "{} pages", pages(&another.copy()));
}

/// The lines that a line of shell says about a folder.
fn list_of(script: &str, folder: &Path) -> Vec<String> {
    let output = Command::new("sh").args(["-c", script, "-"]).arg(folder).output().expect("a shell starts");
    String::from_utf8_lossy(&output.stdout).lines().map(str::to_owned).collect()
}

#[test]
fn two_nights_of_two_machines_are_compared_on_a_third() {
    let (url, ground) = (bucket(), Ground::new());
    assert_eq!(Machine::new().night(&url, &ground, FIRST).exit, Some(0));
    ground.write_pages(|text| text.replace("$3.29", "$3.39"));
    let second = Machine::new().night(&url, &ground, AT);
    assert_eq!(second.exit, Some(0), "{}", second.talk);
    let differ = Machine::new().run(&url, &["diff", "previous", "latest"]);
    assert!(differ.exit == Some(0) && differ.data.contains("3.39"), "{}{}", differ.data, differ.talk);
    assert_eq!(check(&url), [id(FIRST), id(AT)]);
    let feed = Machine::new();
    assert_eq!(feed.run(&url, &["runs"]).exit, Some(0));
    let feed = std::fs::read_to_string(feed.copy().join("feed.xml")).expect("the feed is brought");
    assert!(feed.contains("3.39"), "{feed}");
}

#[test]
fn of_two_equal_runs_on_two_machines_one_publishes_and_the_other_commits_nothing() {
    for _ in 0..2 {
        let (url, ground) = (bucket(), Ground::new());
        let machines = [Machine::new(), Machine::new()];
        let started = machines.each_ref().map(|machine| machine.start(&url, &ground, AT));
        let ended = started.map(said);
        for said in &ended {
            assert_eq!(said.exit, Some(0), "{}", said.talk);
        }
        let published = ended.iter().filter(|said| said.data.contains("Published snapshot")).count();
        let already = ended.iter().filter(|said| said.data.contains("is published already")).count();
        assert_eq!((published, already), (1, 1), "{}{}", ended[0].data, ended[1].data);
        // Whatever the second one could not take away its next run does.
        for machine in &machines {
            assert_eq!(machine.night(&url, &ground, AT).exit, Some(0));
        }
        assert_eq!(check(&url), [id(AT)]);
    }
}

#[test]
fn of_two_unequal_runs_of_a_night_on_two_machines_one_is_refused_and_what_the_other_published_stays() {
    for _ in 0..2 {
        let (url, grounds, machines) = (bucket(), [Ground::new(), Ground::new()], [Machine::new(), Machine::new()]);
        grounds[1].write_pages(|text| text.replace("$3.29", "$3.39"));
        let started = [0, 1].map(|which| machines[which].start(&url, &grounds[which], AT));
        let ended = started.map(said);
        let is_refused = |said: &Said| said.exit == Some(11) && said.talk.contains("with other rows");
        let talks = format!("{}{}", ended[0].talk, ended[1].talk);
        assert_eq!(ended.iter().filter(|said| said.exit == Some(0)).count(), 1, "{talks}");
        assert_eq!(ended.iter().filter(|said| is_refused(said)).count(), 1, "{talks}");
        for machine in &machines {
            assert_eq!(machine.night(&url, &grounds[0], LATER).exit, Some(0));
        }
        assert_eq!(check(&url), [id(AT), id(LATER)]);
        // The rows, the coverage and the receipts are of one run.
        let again = Machine::new().run(&url, &["replay", &id(AT)]);
        assert!(again.exit == Some(0) && again.talk.contains("identical"), "{}", again.talk);
    }
}

#[test]
fn nights_of_machines_that_publish_at_once_are_all_published_and_no_rate_twice() {
    let (url, ground) = (bucket(), Ground::new());
    let nights = [FIRST, AT, LATER];
    let machines = nights.map(|_| Machine::new());
    let started = [0, 1, 2].map(|which| machines[which].start(&url, &ground, nights[which]));
    for said in started.map(said) {
        assert_eq!(said.exit, Some(0), "{}", said.talk);
    }
    assert_eq!(check(&url), nights.map(id));
}

#[test]
fn a_run_that_is_killed_at_any_moment_leaves_a_table_that_reads_and_the_next_one_publishes() {
    let kills: u64 = std::env::var("GPULEDGER_KILLS").ok().and_then(|kills| kills.parse().ok()).unwrap_or(6);
    let (url, ground, machine) = (bucket(), Ground::new(), Machine::new());
    let started = Instant::now();
    assert_eq!(machine.night(&url, &ground, FIRST).exit, Some(0));
    let whole = started.elapsed();
    let mut nights = vec![id(FIRST)];
    for kill in 0..kills {
        let at = format!("2026-11-{:02}T18:00:00Z", 1 + kill % 28);
        // Spread over the whole night, each in another part of it.
        let moment = whole.mul_f64((kill as f64 + 0.6) / kills as f64);
        let mut child = machine.start(&url, &ground, &at);
        std::thread::sleep(moment);
        child.kill().expect("the child is ours");
        child.wait().expect("the child is ours");
        let read = Machine::new().run(&url, &["snapshots", "--format", "csv"]);
        assert_eq!(read.exit, Some(0), "killed after {moment:?}: {}", read.talk);
        let seen = read.data.lines().count() - 1;
        assert!((nights.len()..=nights.len() + 1).contains(&seen), "killed after {moment:?}: {}", read.data);
        let next = machine.night(&url, &ground, &at);
        assert_eq!(next.exit, Some(0), "killed after {moment:?}: {}", next.talk);
        nights.push(id(&at));
    }
    nights.dedup();
    assert_eq!(check(&url), nights);
}

#[test]
fn what_a_machine_left_that_never_came_back_is_in_nobodys_way() {
    let (url, ground) = (bucket(), Ground::new());
    let mut child = Machine::new().start(&url, &ground, FIRST);
    let deadline = Instant::now() + Duration::from_secs(120);
    // Killed while it publishes: its list is in the store, and its working copy is gone with it.
    let watcher = Machine::new();
    while Instant::now() < deadline && child.try_wait().expect("the child is ours").is_none() {
        let listed = watcher.run(&url, &["doctor"]);
        let is_list = |name: &String| name.starts_with(".on-its-way");
        if listed.exit == Some(0) && list_of("ls -A \"$1\"", &watcher.copy()).iter().any(is_list) {
            break;
        }
    }
    let _ = child.kill();
    child.wait().expect("the child is ours");
    let other = Machine::new().night(&url, &ground, AT);
    assert_eq!(other.exit, Some(0), "{}", other.talk);
    let read = Machine::new().run(&url, &["snapshots", "--format", "csv"]);
    assert!(read.exit == Some(0) && read.data.contains(&id(AT)), "{}{}", read.data, read.talk);
}

#[test]
fn a_server_that_fails_now_and_then_and_answers_that_are_lost_change_nothing_and_no_secret_is_told() {
    let _alone = FAULTS.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    let (url, ground, machine) = (bucket(), Ground::new(), Machine::new());
    faults(&url, "every=4");
    let failing = machine.night(&url, &ground, FIRST);
    let failed = faults(&url, "");
    assert!(failing.exit == Some(0) && failed > 5, "{failed} failures: {}", failing.talk);
    // The first entries are put and their answers lost: the run finds them to be its own.
    faults(&url, "lost=2");
    let unlucky = machine.night(&url, &ground, AT);
    assert_eq!(faults(&url, ""), 2);
    assert!(unlucky.exit == Some(0) && unlucky.data.contains("Published snapshot"), "{}{}", unlucky.data, unlucky.talk);
    assert_eq!(check(&url), [id(FIRST), id(AT)]);
    let mut command = machine.command(&url, &["snapshots"]);
    command.env("AWS_ENDPOINT_URL", format!("{}/nowhere", environment("AWS_ENDPOINT_URL")));
    let misled = said(command.spawn().expect("the program starts"));
    let secret = environment("AWS_SECRET_ACCESS_KEY");
    for said in [&failing, &unlucky, &misled] {
        assert!(!said.data.contains(&secret) && !said.talk.contains(&secret), "{}", said.talk);
    }
    let found = list_of("grep -rla -- \"$AWS_SECRET_ACCESS_KEY\" \"$1\"", machine.cache.path());
    assert_eq!(found, Vec::<String>::new());
}

#[test]
fn a_server_that_puts_over_what_is_there_is_refused_before_a_log_is_written() {
    let _alone = FAULTS.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    let (url, ground, machine) = (bucket(), Ground::new(), Machine::new());
    faults(&url, "deaf=1");
    let refused = machine.night(&url, &ground, FIRST);
    faults(&url, "");
    assert!(refused.exit == Some(11) && refused.talk.contains("it is asked not to"), "{}", refused.talk);
    let ids = Machine::new().run(&url, &["snapshots", "--format", "json"]);
    assert_eq!(ids.data, "[]\n", "{}", ids.talk);
}

#[test]
fn another_program_reads_the_table_from_the_store() {
    let (url, ground) = (bucket(), Ground::new());
    for at in [FIRST, AT] {
        assert_eq!(Machine::new().night(&url, &ground, at).exit, Some(0));
    }
    let mut python = Command::new(environment("GPULEDGER_CLOUD_PYTHON"));
    let read =
        python.arg(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/cloud/reads.py")).arg(&url).output().expect("python starts");
    let told = String::from_utf8_lossy(&read.stdout).into_owned();
    let rows = 2 * whole::OFFERS_A_NIGHT;
    assert_eq!(
        told.trim(),
        format!("{{\"version\": 2, \"files\": 2, \"rows\": {rows}}}"),
        "{}",
        String::from_utf8_lossy(&read.stderr)
    );
}

#[test]
fn an_archived_page_that_was_pruned_on_one_machine_is_known_as_pruned_on_another() {
    let (url, ground, machine) = (bucket(), Ground::new(), Machine::new());
    assert_eq!(machine.night(&url, &ground, FIRST).exit, Some(0));
    let pruned = Machine::new().run(&url, &["archive", "prune", "--keep-days", "0", "--published-too"]);
    assert!(pruned.exit == Some(0) && pruned.data.contains("freed 2 files"), "{}{}", pruned.data, pruned.talk);
    let again = Machine::new().run(&url, &["replay", "latest"]);
    assert!(again.exit == Some(15) && again.talk.contains("prune"), "{:?} {}", again.exit, again.talk);
    // A machine that still has the pages puts them there again with a night that needs them.
    assert_eq!(machine.night(&url, &ground, AT).exit, Some(0));
    let again = Machine::new().run(&url, &["replay", "latest"]);
    assert!(again.exit == Some(0) && again.talk.contains("identical"), "{}", again.talk);
}

#[test]
fn what_cannot_be_a_dataset_on_a_store_is_refused_before_anything_is_written() {
    let (url, ground, machine) = (bucket(), Ground::new(), Machine::new());
    let mut command = machine.command(&url, &["snapshots"]);
    let plain = said(command.env_remove("AWS_ALLOW_HTTP").spawn().expect("the program starts"));
    assert!(plain.exit == Some(2) && plain.talk.contains("AWS_ALLOW_HTTP=true"), "{}", plain.talk);
    for address in
        ["s3://key:secret@gpuledger-tests/p", "s3:gpuledger-tests", "http://127.0.0.1/p", "s3://gpuledger-tests/a/../b"]
    {
        let refused = machine.run(address, &["snapshots"]);
        assert!(refused.exit == Some(2) && !refused.talk.contains("key:secret"), "{address}: {}", refused.talk);
    }
    assert_eq!(machine.night(&url, &ground, FIRST).exit, Some(0));
    let copy = machine.copy();
    let past_it = machine.night(copy.to_str().expect("a temporary folder's name is text"), &ground, AT);
    assert!(past_it.exit == Some(2) && past_it.talk.contains(&format!("working copy of {url}")), "{}", past_it.talk);
    let schedule = machine.cache.path().join("nightly.toml");
    let text = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/schedules/nightly.toml")).expect("there is one");
    std::fs::write(&schedule, text.replace("output = \"output\"", &format!("output = \"{url}\""))).expect("there is room");
    let scheduled = |verb: &str| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_gpuledger"));
        command.args(["schedule", verb]).arg(&schedule).env("GPULEDGER_CACHE", machine.cache.path()).env("NO_COLOR", "1");
        if verb == "install" {
            command.arg("--systemd");
        }
        said(command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("the program starts"))
    };
    let (checked, status, installed) = (scheduled("check"), scheduled("status"), scheduled("install"));
    assert!(checked.exit == Some(0) && checked.data.contains(&url), "{}{}", checked.data, checked.talk);
    assert_eq!(status.exit, Some(0), "{}", status.talk);
    assert!(installed.exit == Some(2) && installed.talk.contains("schedule night"), "{}", installed.talk);
}
