//! The files that `schedule install` prints: the examples in the tree are what it prints, and systemd, sh and kubectl
//! themselves read them. What a tool says is missing where the tool is.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use crate::support::blessed::{hold, root};
use serde_json::{Value, json};
use wiremock::matchers::path;
use wiremock::{Mock, MockServer, ResponseTemplate};

const STARTERS: [(&str, &str, &[&str]); 4] = [
    ("--systemd", "systemd", &["gpuledger-nightly.service", "gpuledger-nightly.timer"]),
    ("--crontab", "crontab", &["gpuledger-nightly"]),
    ("--github-actions", "github-actions", &["gpuledger-nightly.yml"]),
    ("--kubernetes", "kubernetes", &["gpuledger-nightly.yaml"]),
];

fn install(args: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_gpuledger"));
    command
        .args(["schedule", "install"])
        .args(args)
        .current_dir(root())
        .env("NO_COLOR", "1")
        .output()
        .expect("the program starts")
}

/// The files as they are written into a folder.
fn written(args: &[&str]) -> (tempfile::TempDir, Vec<PathBuf>) {
    let folder = tempfile::tempdir().expect("there is room for a folder");
    let into = folder.path().to_str().expect("a temporary folder's name is text").to_owned();
    let output = install(&[args, &["--into", &into]].concat());
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let said = String::from_utf8(output.stdout).expect("it prints text");
    let left: Vec<_> = fs::read_dir(folder.path()).expect("it can be listed").collect();
    assert_eq!(left.len(), said.lines().count(), "nothing but the files is left: {left:?}");
    (folder, said.lines().map(PathBuf::from).collect())
}

fn text(path: &Path) -> String {
    fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// Another schedule than the one in the tree.
fn schedule(folder: &Path, changes: &[(&str, &str)]) -> String {
    let nightly = text(&root().join("schedules/nightly.toml"));
    let changed = changes.iter().fold(nightly, |text, (from, to)| {
        assert!(text.contains(from), "{from}");
        text.replace(from, to)
    });
    let path = folder.join("other.toml");
    fs::write(&path, changed).expect("there is room for a file");
    path.to_str().expect("a temporary folder's name is text").to_owned()
}

/// A program that says what it was asked and ends with a code.
fn stub(folder: &Path, name: &str, script: &str) -> String {
    let path = folder.join(name);
    fs::write(&path, format!("#!/bin/sh\n{script}\n")).expect("there is room for a file");
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).expect("it can be made a program");
    path.to_str().expect("a temporary folder's name is text").to_owned()
}

fn has(program: &str) -> bool {
    let is_there = Command::new(program).arg("--help").output().is_ok();
    if !is_there {
        eprintln!("skipped: {program} is not on this machine");
    }
    is_there
}

#[test]
fn the_examples_are_what_the_command_prints() {
    for (starter, folder, names) in STARTERS {
        let (_folder, files) = written(&[starter, "schedules/nightly.toml"]);
        let named: Vec<&str> = files.iter().filter_map(|path| path.file_name()?.to_str()).collect();
        assert_eq!(named, names);
        for path in &files {
            let name = path.file_name().and_then(|name| name.to_str()).expect("it has a name");
            hold(&format!("schedules/examples/{folder}/{name}"), &text(path));
            assert!(!text(path).contains("@UNIT@") && !text(path).contains("@ZONE@"), "{name}");
        }
        let printed = String::from_utf8(install(&[starter, "schedules/nightly.toml"]).stdout).expect("it prints text");
        for path in &files {
            assert!(printed.contains(&text(path)), "{starter}");
        }
    }
}

#[test]
fn every_template_is_filled_whatever_the_schedule_says() {
    let folder = tempfile::tempdir().expect("there is room for a folder");
    let changes = [
        ("\"UTC\"", "\"Europe/Berlin\""),
        ("\"0 2 * * *\"", "\"30 2 * * 1-5\""),
        ("name = \"nightly\"", "name = \"Big-Clouds_2\""),
    ];
    let other = schedule(folder.path(), &changes);
    for starter in ["--systemd", "--crontab", "--kubernetes"] {
        let (_folder, files) = written(&[starter, &other]);
        for path in files {
            let text = text(&path);
            let left = text.match_indices('@').filter(|(at, _)| {
                let word: String =
                    text[at + 1..].chars().take_while(|letter| letter.is_ascii_uppercase() || *letter == '_').collect();
                text[at + 1 + word.len()..].starts_with('@') && !word.is_empty()
            });
            assert_eq!(left.count(), 0, "{text}");
            assert!(text.contains("Europe/Berlin") && text.contains("30 2 * * 1-5"), "{text}");
            let name = path.file_name().and_then(|name| name.to_str()).expect("it has a name");
            assert!(name.starts_with("gpuledger-big-clouds-2"), "{name}");
        }
    }
}

#[test]
fn what_another_program_would_obey_is_refused() {
    let folder = tempfile::tempdir().expect("there is room for a folder");
    let output = schedule(folder.path(), &[("output = \"output\"", "output = \"out; rm -rf /\"")]);
    for args in [
        vec!["--systemd", output.as_str()],
        vec!["--crontab", "schedules/nightly.toml", "--user", "root; id"],
        vec!["--kubernetes", "schedules/nightly.toml", "--image", "a\nb"],
        vec!["--github-actions", folder.path().join("other.toml").to_str().expect("text")],
        vec!["--systemd", "schedules/nightly.toml", "--program", "/opt/my programs/gpuledger"],
    ] {
        let refused = install(&args);
        assert_eq!((refused.status.code(), refused.stdout.len()), (Some(2), 0), "{args:?}");
    }
    let absolute = root().join("schedules/nightly.toml");
    let refused = install(&["--github-actions", absolute.to_str().expect("text")]);
    assert_eq!(refused.status.code(), Some(2));
    for args in
        [vec!["schedules/nightly.toml"], vec!["--systemd", "--crontab", "schedules/nightly.toml"], vec!["--systemd", "none.toml"]]
    {
        assert_eq!(install(&args).status.code(), Some(2), "{args:?}");
    }
}

#[test]
fn systemd_itself_finds_nothing_wrong_with_the_units() {
    if !has("systemd-analyze") {
        return;
    }
    let (folder, files) =
        written(&["--systemd", "schedules/nightly.toml", "--program", env!("CARGO_BIN_EXE_gpuledger"), "--user", "root"]);
    let output = Command::new("systemd-analyze").arg("verify").args(&files).output().expect("it starts");
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    let ours =
        said.lines().filter(|line| line.contains("gpuledger-nightly") || line.contains(folder.path().to_str().expect("text")));
    assert_eq!(ours.collect::<Vec<_>>(), Vec::<&str>::new(), "{said}");
    let timer = text(&files[1]);
    let when = timer.lines().find_map(|line| line.strip_prefix("OnCalendar=")).expect("it has a time");
    let calendar = Command::new("systemd-analyze").args(["calendar", "--iterations", "2", when]).output().expect("it starts");
    let said = String::from_utf8_lossy(&calendar.stdout).into_owned();
    assert!(calendar.status.success() && said.contains("Normalized form: *-*-* *:00/5:00"), "{said}");
    let service = text(&files[0]);
    for line in [
        "SuccessExitStatus=10 12",
        "TimeoutStartSec=180min",
        "ProtectSystem=strict",
        "ReadWritePaths=/var/lib/gpuledger",
        "KillSignal=SIGTERM",
    ] {
        assert!(service.lines().any(|found| found == line), "{line}");
    }
}

#[test]
fn the_crontab_is_silent_when_nothing_was_due_and_tells_what_is_not_as_it_should_be() {
    let folder = tempfile::tempdir().expect("there is room for a folder");
    let (home, log) = (folder.path().join("home"), folder.path().join("log"));
    fs::create_dir(&home).expect("there is room for a folder");
    let environment = folder.path().join("environment");
    fs::write(&environment, "CODE_TO_END_WITH='0'\nGPULEDGER_CONTACT='a b&c'\n").expect("there is room for a file");
    stub(folder.path(), "logger", &format!("cat >> '{}'", log.display()));
    let program = stub(
        folder.path(),
        "gpuledger",
        "echo table; echo \"line of $GPULEDGER_CONTACT in $(pwd): $*\" >&2; exit ${CODE_TO_END_WITH}",
    );
    let word = |path: &Path| path.to_str().expect("text").to_owned();
    let (_files, files) = written(&[
        "--crontab",
        "schedules/nightly.toml",
        "--program",
        &program,
        "--directory",
        &word(&home),
        "--environment",
        &word(&environment),
    ]);
    let crontab = text(&files[0]);
    let line = crontab.lines().last().expect("it has lines");
    assert!(!line.contains('%'), "a crontab ends a command there: {line}");
    let command = line.strip_prefix("*/5 * * * * gpuledger ").expect("time and user come first");
    let path = format!("{}:/usr/bin:/bin", folder.path().display());
    for (code, is_mailed, is_logged) in
        [(0, false, true), (12, false, false), (10, true, true), (11, true, true), (13, true, true)]
    {
        fs::write(&environment, format!("CODE_TO_END_WITH='{code}'\nGPULEDGER_CONTACT='a b&c'\n")).expect("there is room");
        let _ = fs::remove_file(&log);
        let output = Command::new("/bin/sh").args(["-c", command]).env_clear().env("PATH", &path).output().expect("it starts");
        let mail = String::from_utf8_lossy(&output.stdout).into_owned();
        assert!(output.stderr.is_empty(), "{}", String::from_utf8_lossy(&output.stderr));
        assert_eq!((!mail.is_empty(), log.exists()), (is_mailed, is_logged), "{code}: {mail}");
        if is_mailed {
            assert!(mail.contains(&format!("exit code {code}")) && !mail.contains("table"), "{mail}");
        }
        if is_logged {
            let line = format!("line of a b&c in {}: schedule night schedules/nightly.toml --if-due\n", home.display());
            assert_eq!(text(&log), line);
        }
    }
}

/// The lines of a block of YAML that begins with a key, without their indentation.
fn block(yaml: &str, key: &str) -> String {
    let mut lines = yaml.lines().skip_while(|line| !line.ends_with(key) || !line.contains('|')).skip(1).peekable();
    let depth = lines.peek().map_or(0, |line| line.len() - line.trim_start().len());
    let is_within = |line: &&str| line.trim().is_empty() || line.len() - line.trim_start().len() >= depth;
    lines.take_while(is_within).map(|line| line.get(depth..).unwrap_or_default().to_owned() + "\n").collect()
}

#[test]
fn a_workflow_and_a_job_end_well_where_the_program_did() {
    let folder = tempfile::tempdir().expect("there is room for a folder");
    let home = folder.path().join(".cargo/bin");
    fs::create_dir_all(&home).expect("there is room for a folder");
    for (starter, ends) in [
        ("--github-actions", [(0, 0), (10, 0), (12, 0), (11, 11), (13, 13), (1, 1)]),
        ("--kubernetes", [(0, 0), (10, 0), (12, 0), (11, 11), (13, 13), (1, 1)]),
    ] {
        let program = stub(&home, "gpuledger", "echo \"$*\" >&2; exit ${CODE_TO_END_WITH}");
        let (_files, files) = written(&[starter, "schedules/nightly.toml", "--program", &program]);
        let yaml = text(&files[0]);
        let key = if starter == "--kubernetes" { "- |" } else { "run: |" };
        let script = block(&yaml, key);
        assert!(script.starts_with("code=0\n") && script.contains("esac"), "{script}");
        for (code, ended) in ends {
            let output = Command::new("bash")
                .args(["-e", "-c", &script])
                .env("CODE_TO_END_WITH", code.to_string())
                .env("HOME", folder.path())
                .env("GITHUB_OUTPUT", folder.path().join("outputs"))
                .env("GITHUB_WORKSPACE", "/repository")
                .output()
                .expect("it starts");
            let said = String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned();
            assert_eq!(output.status.code(), Some(ended), "{starter} {code}: {said}");
            assert!(said.contains("schedule night ") && said.contains(" --if-due --log json"), "{said}");
            assert!(code != 10 || said.contains("some provider is not complete"), "{said}");
        }
    }
}

/// Enough of a cluster for kubectl to know three kinds of things.
async fn cluster() -> MockServer {
    let server = MockServer::start().await;
    let resource = |name: &str, kind: &str| json!({ "name": name, "singularName": "", "namespaced": true, "kind": kind, "verbs": ["create", "get"] });
    let core = json!([resource("configmaps", "ConfigMap"), resource("persistentvolumeclaims", "PersistentVolumeClaim")]);
    let batch = json!({ "groupVersion": "batch/v1", "version": "v1" });
    let group = json!({ "name": "batch", "versions": [batch], "preferredVersion": batch });
    for (at, body) in [
        ("/api", json!({ "kind": "APIVersions", "versions": ["v1"] })),
        ("/apis", json!({ "kind": "APIGroupList", "apiVersion": "v1", "groups": [group] })),
        ("/api/v1", json!({ "kind": "APIResourceList", "groupVersion": "v1", "resources": core })),
        (
            "/apis/batch/v1",
            json!({ "kind": "APIResourceList", "groupVersion": "batch/v1", "resources": [resource("cronjobs", "CronJob")] }),
        ),
    ] {
        Mock::given(path(at)).respond_with(ResponseTemplate::new(200).set_body_json(body)).mount(&server).await;
    }
    server
}

#[tokio::test]
async fn kubectl_itself_reads_the_cronjob() {
    if !has("kubectl") {
        return;
    }
    let folder = tempfile::tempdir().expect("there is room for a folder");
    let other = schedule(folder.path(), &[("\"UTC\"", "\"Asia/Kolkata\""), ("\"0 2 * * *\"", "\"30 2 * * *\"")]);
    let (_files, files) = written(&["--kubernetes", &other]);
    let server = cluster().await;
    let mut command = Command::new("kubectl");
    command.args(["create", "--dry-run=client", "--validate=false", "-o", "json", "-s", &server.uri(), "-f"]).arg(&files[0]);
    command.env("HOME", folder.path());
    let output = tokio::task::spawn_blocking(move || command.output()).await.expect("it runs").expect("it starts");
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    let objects: Vec<Value> =
        serde_json::Deserializer::from_slice(&output.stdout).into_iter().map(|value| value.expect("JSON")).collect();
    let objects: Vec<Value> = match objects.as_slice() {
        [list] if list["kind"] == "List" => list["items"].as_array().cloned().unwrap_or_default(),
        _ => objects,
    };
    let of = |kind: &str| objects.iter().find(|object| object["kind"] == kind).unwrap_or_else(|| panic!("{kind}: {said}"));
    let job = &of("CronJob")["spec"];
    assert_eq!((&job["timeZone"], &job["schedule"]), (&json!("Asia/Kolkata"), &json!("30 * * * *")));
    assert_eq!((&job["concurrencyPolicy"], &job["startingDeadlineSeconds"]), (&json!("Forbid"), &json!(1_800)));
    let pod = &job["jobTemplate"]["spec"]["template"]["spec"];
    assert_eq!(pod["containers"][0]["command"][2].as_str().map(|script| script.contains("--if-due")), Some(true));
    assert_eq!(pod["volumes"][0]["persistentVolumeClaim"]["claimName"], of("PersistentVolumeClaim")["metadata"]["name"]);
    let kept = of("ConfigMap")["data"]["schedule.toml"].as_str().expect("it has the schedule").to_owned();
    assert_eq!(kept.trim_end(), text(Path::new(&other)).trim_end());
}
