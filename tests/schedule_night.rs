//! Nights as a schedule runs them: the program itself, started by timers that ask twice, side by side, late, or never again
//! after they were killed, and the service that is asked to stop.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use crate::support::internet::{Internet, internet, recorded, reply};
use crate::support::service::{Ground, Service, signal};
use chrono::{DateTime, TimeDelta, Utc};
use gpuledger::lock;
use wiremock::matchers::method;
use wiremock::{Mock, MockServer, ResponseTemplate};

const ONE: &str = "[\"lambda\"]";

fn minutes(minutes: i64) -> TimeDelta {
    TimeDelta::minutes(minutes)
}

/// Every day at the minute that an instant is in.
fn daily(at: DateTime<Utc>) -> String {
    at.format("%-M %-H * * *").to_string()
}

/// A schedule that was due so many minutes ago, and was looked at the day before.
fn due_ago(ago: i64, missed: &str) -> Ground {
    let ground = Ground::new(&daily(Utc::now() - minutes(ago)), ONE, missed);
    ground.keep_ledger(Utc::now() - TimeDelta::days(3));
    ground
}

/// An internet of one provider, each of its pages after a while.
fn world(pause: Duration) -> Internet {
    internet(move |request| {
        std::thread::sleep(pause);
        recorded("lambda", request)
    })
}

/// The run records of a dataset.
fn records(root: &Path) -> Vec<serde_json::Value> {
    let Ok(entries) = std::fs::read_dir(root.join("runs")) else { return Vec::new() };
    let mut paths: Vec<PathBuf> = entries.filter_map(|entry| Some(entry.ok()?.path())).collect();
    paths.retain(|path| path.extension().is_some_and(|ending| ending == "json") && !path.ends_with("health.json"));
    paths.sort();
    let read =
        |path: &PathBuf| serde_json::from_slice(&std::fs::read(path).expect("the record is there")).expect("the record reads");
    paths.iter().map(read).collect()
}

#[test]
fn a_due_night_is_run_once_however_often_a_timer_asks() {
    let (ground, world) = (due_ago(0, "skip"), world(Duration::ZERO));
    assert_eq!(ground.night(&world), Some(0), "{}", ground.log());
    for _ in 0..2 {
        assert_eq!(ground.night(&world), Some(12), "{}", ground.log());
    }
    ground.check(1);
    let record = &records(&ground.root())[0];
    assert_eq!(record["scheduled"]["name"], "often");
    assert_eq!(record["scheduled"]["is_late"], false);
    assert!(record["scheduled"]["due_at"].as_str().is_some_and(|due_at| due_at.ends_with(":00Z")), "{record}");
    // Who asks for a night without a condition gets one, and it is no due one.
    let exit = ground.command(&world, &["night"]).status().expect("the program starts").code();
    assert_eq!(exit, Some(0), "{}", ground.log());
    assert!(records(&ground.root())[1].get("scheduled").is_none());
    ground.check(2);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_night_that_is_refused_is_told_once_to_whom_the_schedule_names() {
    let hook = MockServer::start().await;
    Mock::given(method("POST")).respond_with(ResponseTemplate::new(200)).mount(&hook).await;
    let (ground, closed) = (due_ago(0, "run_once"), internet(|_| reply(403, "", b"not today")));
    ground.also(&format!("[[alerts.webhooks]]\nurl = \"{}\"\nform = \"json\"\n", hook.uri()));
    for exit in [11, 12] {
        assert_eq!(ground.night(&closed), Some(exit), "{}", ground.log());
        let told = hook.received_requests().await.expect("they are kept");
        let [message] = &told[..] else { panic!("{} messages: {}", told.len(), ground.log()) };
        let message: serde_json::Value = message.body_json().expect("it is JSON");
        assert_eq!((&message["kind"], &message["schedule"]), (&"failed_night".into(), &"often".into()), "{message}");
        let text = message["text"].as_str().expect("it has a text");
        assert!(text.contains("exit code 11") && text.contains("lambda: failed: ") && text.contains("403"), "{text}");
    }
    // As if its process had died between its record and its words.
    std::fs::remove_dir_all(ground.root().join("alerts")).expect("it can be taken away");
    let mut ledger = ground.ledger();
    (ledger.nights[0].ended_at, ledger.nights[0].exit) = (None, None);
    ledger.keep(&ground.root()).expect("it can be written");
    for _ in 0..2 {
        assert_eq!(ground.night(&closed), Some(12), "{}", ground.log());
        assert_eq!(hook.received_requests().await.expect("they are kept").len(), 2, "{}", ground.log());
    }
}

#[test]
fn of_two_timers_at_once_one_runs_the_night() {
    let (ground, world) = (due_ago(0, "run_once"), world(Duration::from_millis(300)));
    let mut both = [0, 1].map(|_| ground.command(&world, &["night", "--if-due"]).spawn().expect("the program starts"));
    let mut exits = both.each_mut().map(|child| child.wait().expect("it can be waited for").code());
    exits.sort_unstable();
    assert!(matches!(exits, [Some(0), Some(12 | 13)]), "{exits:?}\n{}", ground.log());
    assert_eq!(ground.ledger().nights.len(), 1);
    ground.check(1);
}

#[test]
fn a_missed_night_is_run_once_and_marked_late_or_skipped() {
    let world = world(Duration::ZERO);
    let late = due_ago(120, "run_once");
    assert_eq!(late.night(&world), Some(0), "{}", late.log());
    assert!(late.log().contains("late: this night was due at "), "{}", late.log());
    assert_eq!(late.night(&world), Some(12));
    let record = &records(&late.root())[0];
    assert_eq!(record["scheduled"]["is_late"], true);
    assert_eq!(late.ledger().nights.len(), 1);
    // The two days before were missed as well, and stay a gap that is told.
    let file = late.file();
    let (exit, said) = late.said(&["schedule", "status", file.to_str().expect("it is text"), "--format", "ndjson"]);
    let lines = said.lines().filter_map(|line| serde_json::from_str::<serde_json::Value>(line).ok());
    let nights: Vec<_> = lines.map(|line| line["night"].clone()).collect();
    assert_eq!((exit, nights), (Some(0), vec!["none".into(), "none".into(), "published, late".into(), "next".into()]), "{said}");

    let skipped = due_ago(120, "skip");
    assert_eq!(skipped.night(&world), Some(12), "{}", skipped.log());
    // A timer that asks every few minutes fills no log with it.
    assert_eq!(skipped.log(), "");
    assert!(records(&skipped.root()).is_empty());
    // A schedule that nobody has looked at before has missed nothing.
    let new = Ground::new(&daily(Utc::now() - minutes(120)), ONE, "run_once");
    assert_eq!(new.night(&world), Some(12), "{}", new.log());
}

#[test]
fn a_night_that_is_killed_is_run_again_and_published_once_and_not_for_ever() {
    let (ground, slow) = (due_ago(30, "run_once"), world(Duration::from_secs(20)));
    for starts in 1..=3 {
        let mut night = ground.command(&slow, &["night", "--if-due"]).spawn().expect("the program starts");
        let is_started = || ground.ledger().nights.last().is_some_and(|night| night.starts == starts);
        ground.wait_until("the night has started", Duration::from_secs(20), is_started);
        night.kill().expect("it can be killed");
        night.wait().expect("it can be waited for");
        if starts == 2 {
            break;
        }
    }
    let fast = world(Duration::ZERO);
    assert_eq!(ground.night(&fast), Some(0), "{}", ground.log());
    assert_eq!(ground.night(&fast), Some(12));
    assert_eq!(ground.ledger().nights[0].starts, 3);
    ground.check(1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_night_whose_process_dies_is_told_once_and_only_when_it_is_not_started_again() {
    let hook = MockServer::start().await;
    Mock::given(method("POST")).respond_with(ResponseTemplate::new(200)).mount(&hook).await;
    let (ground, slow) = (due_ago(30, "run_once"), world(Duration::from_secs(20)));
    ground.also(&format!("[[alerts.webhooks]]\nurl = \"{}\"\nform = \"json\"\n", hook.uri()));
    for starts in 1..=3 {
        let mut night = ground.command(&slow, &["night", "--if-due"]).spawn().expect("the program starts");
        let is_started = || ground.ledger().nights.last().is_some_and(|night| night.starts == starts);
        ground.wait_until("the night has started", Duration::from_secs(20), is_started);
        night.kill().expect("it can be killed");
        night.wait().expect("it can be waited for");
        assert_eq!(hook.received_requests().await.expect("they are kept").len(), 0, "{}", ground.log());
    }
    // As the service has it told, and as a timer asks after that.
    for option in ["--only-tell", "--if-due"] {
        let exit = ground.command(&slow, &["night", option]).status().expect("the program starts").code();
        assert_eq!(exit, Some(12), "{}", ground.log());
        let told = hook.received_requests().await.expect("they are kept");
        let [message] = &told[..] else { panic!("{} messages: {}", told.len(), ground.log()) };
        let message: serde_json::Value = message.body_json().expect("it is JSON");
        assert_eq!(message["kind"], "failed_night", "{message}");
        assert!(message["text"].as_str().is_some_and(|text| text.contains("its process died")), "{message}");
    }
}

#[test]
fn a_night_that_died_after_it_was_published_is_not_run_again() {
    let (ground, world) = (due_ago(30, "run_once"), world(Duration::ZERO));
    assert_eq!(ground.night(&world), Some(0), "{}", ground.log());
    // As if its process had died before it could say how it ended.
    let mut ledger = ground.ledger();
    (ledger.nights[0].ended_at, ledger.nights[0].exit) = (None, None);
    ledger.keep(&ground.root()).expect("it can be written");
    assert_eq!(ground.night(&world), Some(12), "{}", ground.log());
    assert_eq!(ground.ledger().nights[0].note.as_deref(), Some("published; its process died after that"));
    // And where the whole list is gone, the run record still knows.
    std::fs::remove_dir_all(ground.root().join("runs/schedules")).expect("it can be taken away");
    assert_eq!(ground.night(&world), Some(12), "{}", ground.log());
    ground.check(1);
}

#[test]
fn a_night_that_finds_another_run_writing_is_still_due_after_it() {
    let (ground, world) = (due_ago(0, "run_once"), world(Duration::ZERO));
    let held = lock::take(&ground.root()).expect("nobody holds it");
    assert_eq!(ground.night(&world), Some(13), "{}", ground.log());
    assert!(ground.ledger().nights.is_empty());
    drop(held);
    assert_eq!(ground.night(&world), Some(0), "{}", ground.log());
    ground.check(1);
}

#[test]
fn a_refused_night_is_over_and_the_next_is_the_next_due_one() {
    let ground = due_ago(30, "run_once");
    let dark = internet(|_| reply(403, "", b"not for you"));
    assert_eq!(ground.night(&dark), Some(11), "{}", ground.log());
    assert_eq!(ground.night(&world(Duration::ZERO)), Some(12), "{}", ground.log());
    assert_eq!(ground.ledger().nights[0].exit, Some(11));
}

#[test]
fn pages_that_no_published_night_needs_go_after_as_many_days_as_the_schedule_says() {
    let (ground, world) = (due_ago(0, "run_once"), world(Duration::ZERO));
    let archive = gpuledger::archive::Archive::below(&ground.root());
    let page = |body: &[u8]| gpuledger::archive::Answer {
        page: "pricing".to_owned(),
        scope: "all".to_owned(),
        url: "https://example.org/".to_owned(),
        method: gpuledger_scrapers::contract::Method::Get,
        request_body_sha256: None,
        http_status: Some(200),
        observed_at: Utc::now(),
        body: body.to_vec(),
        whole: None,
    };
    let objects = [(b"old", 11), (b"new", 9)].map(|(body, days)| {
        let (receipt, _) = archive.keep(page(body)).expect("it can be kept");
        let path = archive.object(&receipt.sha256);
        let written_at = std::time::SystemTime::now() - Duration::from_secs(days * 86_400);
        let file = std::fs::File::options().write(true).open(&path).expect("it is there");
        file.set_modified(written_at).expect("its time can be set");
        path
    });
    ground.also("[retention]\nkeep_archive_days = 10\n");
    assert_eq!(ground.night(&world), Some(0), "{}", ground.log());
    assert_eq!(objects.map(|path| path.exists()), [false, true], "{}", ground.log());
    ground.check(1);
}

/// A service within a night, and the process of that night.
fn within_a_night(ground: &Ground, world: &Internet) -> (Service, u32) {
    let service = ground.serve(world);
    let is_started = || ground.ledger().nights.last().is_some_and(|night| !night.is_over()) && !world.asked().is_empty();
    ground.wait_until("the night has started", Duration::from_secs(30), is_started);
    let night = service.night_process().expect("it is a process");
    (service, night)
}

#[test]
fn a_service_that_is_asked_to_stop_gives_its_night_up_and_leaves_nothing_of_it() {
    let ground = due_ago(0, "run_once");
    let (service, night) = within_a_night(&ground, &world(Duration::from_secs(20)));
    let begun = Instant::now();
    assert_eq!(service.stop(), Some(0), "{}", ground.log());
    assert!(begun.elapsed() < Duration::from_secs(5), "{:?}", begun.elapsed());
    assert!(!Path::new(&format!("/proc/{night}")).exists(), "the night goes on");
    assert!(ground.log().contains("given up, because the service is asked to stop"), "{}", ground.log());
    assert!(ground.ledger().nights.is_empty() && !ground.root().join(".drafts").exists());
    // It is due again, and run.
    assert_eq!(ground.night(&world(Duration::ZERO)), Some(0), "{}", ground.log());
    ground.check(1);
}

#[test]
fn a_night_that_is_asked_to_end_leaves_nothing_and_is_still_due() {
    let (ground, slow) = (due_ago(0, "run_once"), world(Duration::from_secs(20)));
    let mut night = ground.command(&slow, &["night", "--if-due"]).spawn().expect("the program starts");
    ground.wait_until("the night has started", Duration::from_secs(20), || !slow.asked().is_empty());
    signal("TERM", night.id());
    assert_eq!(night.wait().expect("it can be waited for").code(), Some(11), "{}", ground.log());
    assert!(ground.ledger().nights.is_empty() && !ground.root().join(".drafts").exists(), "{}", ground.log());
    assert_eq!(ground.night(&world(Duration::ZERO)), Some(0), "{}", ground.log());
    ground.check(1);
}

#[test]
fn a_service_that_is_killed_loses_no_night_and_two_services_run_it_once() {
    let ground = due_ago(0, "run_once");
    let slow = world(Duration::from_secs(2));
    let (first, _) = within_a_night(&ground, &slow);
    let second = ground.serve(&slow);
    first.kill();
    // The night goes on without its service, and the other service finds it held, then over.
    ground
        .wait_until("the night is over", Duration::from_secs(60), || ground.ledger().nights.iter().all(|night| night.is_over()));
    std::thread::sleep(Duration::from_secs(1));
    let health = std::fs::read(ground.root().join("runs/health.json")).expect("there is a health file");
    let health: serde_json::Value = serde_json::from_slice(&health).expect("it reads");
    assert_eq!(health["schedules"][0]["name"], "often");
    assert!(
        health["process"].as_str().is_some_and(|process| process.starts_with(&format!("process {} ", second.id()))),
        "{health}"
    );
    assert_eq!(second.stop(), Some(0), "{}", ground.log());
    assert_eq!(ground.ledger().nights.len(), 1);
    ground.check(1);
}

#[test]
fn a_night_whose_process_crashes_does_not_end_the_service() {
    let ground = due_ago(0, "run_once");
    let (service, night) = within_a_night(&ground, &world(Duration::from_secs(20)));
    signal("ABRT", night);
    ground.wait_until("the service has noticed", Duration::from_secs(10), || ground.log().contains("its process failed (signal"));
    assert!(ground.log().contains("it is started again"), "{}", ground.log());
    assert!(service.night_process().is_none());
    assert_eq!(service.stop(), Some(0), "{}", ground.log());
    assert!(ground.ledger().nights.iter().all(|night| !night.is_over() && night.starts == 1));
}

#[test]
fn schedules_are_explained_in_words_and_what_cannot_be_is_refused_with_its_place() {
    let ground = Ground::new("0 2 * * *", ONE, "run_once");
    let folder = ground.file().parent().expect("it is in a folder").to_owned();
    let folder = folder.to_str().expect("it is text");
    let (exit, said) = ground.said(&["schedule", "check", folder]);
    assert_eq!(exit, Some(0), "{said}");
    for words in
        ["every night at 02:00, UTC time (`0 2 * * *`)", "1 provider: lambda", "1 minute at most", "runs once", "every page"]
    {
        assert!(said.contains(words), "{words}: {said}");
    }
    ground.also("lonely = true\n");
    let (exit, said) = ground.said(&["schedule", "check", folder]);
    assert_eq!(exit, Some(2), "{said}");
    assert!(said.contains("line 8, column 1") && said.contains("lonely") && said.contains("0 can be used, 1 cannot"), "{said}");
    let (exit, said) = ground.said(&["schedule", "check", "no such file.toml"]);
    assert_eq!((exit, said.contains("no such file.toml")), (Some(2), true), "{said}");
}
