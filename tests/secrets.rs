//! A key, and the program itself: run with the key in its environment, against servers that repeat the key in every way, it
//! leaves the key in no file and says it in no word.

use crate::support;
use std::path::Path;
use std::process::Stdio;

use crate::support::internet::{Internet, Request, internet, recorded, reply};
use crate::support::{Dataset, all_files, bytes_of};
use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use gpuledger::frame::Cell;
use polars::prelude::*;

/// Has every character that is written otherwise somewhere: in an address, in JSON, in a page.
const KEY: &str = "AIza/Sy+Test&Key=93-x7Q";

/// Ways of writing the key that are looked for, each made here and not by the program.
fn ways() -> Vec<String> {
    let percent: String = KEY.bytes().map(|byte| format!("%{byte:02X}")).collect();
    let base64 = [KEY.to_owned(), format!("{KEY}:"), format!("key:{KEY}"), format!("Bearer {KEY}")];
    let base64 = base64.iter().flat_map(|text| [STANDARD.encode(text), URL_SAFE_NO_PAD.encode(text)]);
    let mut ways: Vec<String> = base64.map(|text| text.trim_end_matches('=').to_owned()).collect();
    ways.extend([
        KEY.to_owned(),
        "AIza%2FSy%2BTest%26Key%3D93-x7Q".to_owned(),
        "AIza%252FSy%252BTest".to_owned(),
        "AIza\\/Sy+Test".to_owned(),
        "Test&amp;Key".to_owned(),
        // Even a piece of it.
        "Key=93-x7Q".to_owned(),
        percent,
    ]);
    ways.into_iter().map(|way| way.to_lowercase()).collect()
}

/// What stands in a file, also inside archived objects and tables.
fn text_of(path: &Path) -> String {
    let bytes = bytes_of(path);
    let mut text = String::from_utf8_lossy(&bytes).into_owned();
    if let Ok(unpacked) = zstd::decode_all(bytes.as_slice()) {
        text += &String::from_utf8_lossy(&unpacked);
    }
    if path.extension().is_some_and(|extension| extension == "parquet") {
        let path = path.to_str().expect("a temporary folder's name is text");
        let rows = LazyFrame::scan_parquet(PlRefPath::new(path), ScanArgsParquet::default()).expect("the table opens");
        let rows = rows.collect().expect("the table reads");
        for column in rows.get_column_names() {
            for row in 0..rows.height() {
                text += &Cell::at(&rows, column, row).expect("the cell is there").text();
                text.push('\n');
            }
        }
    }
    text.to_lowercase()
}

/// Where the key stands, in files below a folder and in what was said.
fn places(folder: &Path, said: &[&str]) -> Vec<String> {
    let files = all_files(folder).into_iter().map(|path| (path.display().to_string(), text_of(&path)));
    let texts = files.chain(said.iter().map(|text| (format!("said: {text}"), text.to_lowercase())));
    texts.filter(|(_, text)| ways().iter().any(|way| text.contains(way.as_str()))).map(|(place, _)| place).collect()
}

/// A night of two providers, of which one has a key and a server that answers as told.
struct Night {
    dataset: Dataset,
    exit: Option<i32>,
    data: String,
    talk: String,
}

fn world(of_key: impl Fn(&Request) -> Vec<u8> + Send + Sync + 'static) -> Internet {
    internet(move |request| match request.host.as_str() {
        "cloudbilling.googleapis.com" => of_key(request),
        _ => recorded("lambda", request),
    })
}

fn collect(world: &Internet, key: &std::ffi::OsStr) -> Night {
    collect_told(world, key, "plain")
}

fn collect_told(world: &Internet, key: &std::ffi::OsStr, log: &str) -> Night {
    let dataset = Dataset::new();
    let mut command = dataset.command(&["collect", "--providers", "gcp,lambda", "--log", log]);
    world.lead(&mut command);
    let output = command.env("GCP_API_KEY", key).stdin(Stdio::null()).output().expect("the program starts");
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    Night { dataset, exit: output.status.code(), data: text(&output.stdout), talk: text(&output.stderr) }
}

/// Collects against a server that repeats the key, and holds that the key got there and is nowhere here.
fn holds(code: &str, of_key: impl Fn(&Request) -> Vec<u8> + Send + Sync + 'static) -> Night {
    let world = world(of_key);
    let night = collect(&world, KEY.as_ref());
    let sent = world.asked().into_iter().filter(|request| request.host == "cloudbilling.googleapis.com");
    let sent: Vec<Request> = sent.collect();
    assert!(!sent.is_empty() && sent[0].head.contains(&format!("x-goog-api-key: {KEY}")), "the key was not sent: {}", night.talk);
    assert!(world.asked().iter().all(|request| request.host == "cloudbilling.googleapis.com" || !request.head.contains(KEY)));
    assert_eq!(night.exit, Some(10), "{}\n{}", night.data, night.talk);
    assert_eq!(places(&night.dataset.root(), &[&night.data, &night.talk]), Vec::<String>::new());
    assert!(findings(&night).contains(&code.to_owned()), "{:?}\n{}", findings(&night), night.data);
    night
}

fn findings(night: &Night) -> Vec<String> {
    let files = all_files(&night.dataset.root().join("runs"));
    let path = files.iter().find(|path| path.to_string_lossy().ends_with(".findings.parquet")).expect("there are findings");
    let path = path.to_str().expect("a temporary folder's name is text");
    let rows = LazyFrame::scan_parquet(PlRefPath::new(path), ScanArgsParquet::default()).expect("the table opens").collect();
    support::texts(&rows.expect("the table reads"), "rule")
}

#[test]
fn the_search_finds_a_key_wherever_it_is_hidden() {
    let folder = tempfile::tempdir().expect("there is room for a folder");
    let packed = zstd::encode_all(format!("{{\"error\": \"{KEY}\"}}").as_bytes(), 3).expect("memory takes it");
    std::fs::write(folder.path().join("object.zst"), packed).expect("there is room for a file");
    std::fs::write(folder.path().join("address.txt"), "https://a/?key=AIza%2FSy%2BTest%26Key%3D93-x7Q").expect("there is room");
    std::fs::write(folder.path().join("packed.txt"), STANDARD.encode(format!("key:{KEY}"))).expect("there is room");
    std::fs::write(folder.path().join("clean.txt"), "nothing").expect("there is room");
    assert_eq!(places(folder.path(), &[KEY, "nothing"]).len(), 4);
}

#[test]
fn an_answer_that_repeats_the_key_is_refused_and_not_kept() {
    let night = holds("echoes_key", |_| reply(200, "", format!("{{\"skus\": [], \"request\": \"key={KEY}\"}}").as_bytes()));
    assert!(night.data.contains("page `skus-0001`, tried once, repeats the key in its answer"), "{}", night.data);
}

#[test]
fn a_key_that_is_repeated_in_another_way_of_writing_is_known_again() {
    for text in [
        "{\"next\": \"https://a/?key=AIza%2fSy%2bTest%26Key%3d93-x7Q\"}".to_owned(),
        format!("{{\"debug\": \"{}\"}}", STANDARD.encode(format!("Bearer {KEY}"))),
        "{\"debug\": \"AIza\\/Sy+Test&Key=93-x7Q\"}".to_owned(),
        format!("{{\"debug\": \"{}\"}}", KEY.to_uppercase()),
    ] {
        holds("echoes_key", move |_| reply(200, "", text.as_bytes()));
    }
}

#[test]
fn a_refusal_that_repeats_the_key_is_told_without_it() {
    let night = holds("http_status", |_| {
        reply(403, &format!("x-debug: {KEY}\r\n"), format!("API key {KEY} is not valid for this project").as_bytes())
    });
    assert!(night.data.contains("answered 403; look at the key"), "{}", night.data);
}

#[test]
fn a_redirect_that_repeats_the_key_leads_nowhere_and_is_told_without_it() {
    let night = holds("led_astray", |_| {
        let hex: String = KEY.bytes().map(|byte| format!("{byte:02x}")).collect();
        reply(302, &format!("location: https://{hex}.example.com/?key={KEY}\r\n"), b"")
    });
    assert!(night.data.contains("redirected to another host"), "{}", night.data);
    let hex: String = KEY.bytes().map(|byte| format!("{byte:02x}")).collect();
    assert!(!night.data.contains(&hex), "{}", night.data);
}

#[test]
fn the_lines_for_programs_have_no_key_either() {
    let answer = |_: &Request| reply(403, &format!("x-debug: {KEY}\r\n"), format!("API key {KEY} is not valid").as_bytes());
    let night = collect_told(&world(answer), KEY.as_ref(), "json");
    assert!(night.talk.contains("\"provider\":\"gcp\"") && night.talk.contains("answered 403"), "{}", night.talk);
    assert_eq!(places(&night.dataset.root(), &[&night.data, &night.talk]), Vec::<String>::new());
}

#[test]
fn a_mark_of_the_answer_that_is_the_key_is_not_remembered() {
    holds("echoes_key", |_| reply(200, &format!("etag: \"{KEY}\"\r\n"), b"{\"skus\": []}"));
}

#[test]
fn a_key_that_cannot_be_sent_is_told_at_once_and_not_shown() {
    for (key, why) in [
        ("AIza-first-line\nAIza-second-line", "a line break"),
        ("AIza-schlüssel-1234", "cannot stand in a header"),
        ("AIza-1", "too short"),
    ] {
        let world = world(|_| reply(500, "", b""));
        let night = collect(&world, key.as_ref());
        assert_eq!(night.exit, Some(10), "{}\n{}", night.data, night.talk);
        assert!(world.asked().iter().all(|request| request.host != "cloudbilling.googleapis.com"), "it was asked for");
        assert!(findings(&night).contains(&"bad_key".to_owned()), "{:?}", findings(&night));
        assert!(night.data.contains("GCP_API_KEY") && night.data.contains(why), "{}", night.data);
        let told = [night.data.as_str(), night.talk.as_str()].concat();
        let files: String = all_files(&night.dataset.root()).iter().map(|path| text_of(path)).collect();
        assert!(!told.contains("AIza-") && !files.contains("aiza-"), "{told}");
    }
}

#[cfg(unix)]
#[test]
fn a_key_that_is_no_text_is_told_at_once() {
    use std::os::unix::ffi::OsStrExt as _;
    let world = world(|_| reply(500, "", b""));
    let night = collect(&world, std::ffi::OsStr::from_bytes(b"AIza-\xff\xfe-1234"));
    assert!(findings(&night).contains(&"bad_key".to_owned()) && night.data.contains("is not text"), "{}", night.data);
}
