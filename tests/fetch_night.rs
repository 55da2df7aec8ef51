//! The program itself on an internet of the tests' own: what a night with faults publishes, says and records.

use std::io::Read as _;
use std::net::TcpListener;
use std::process::Stdio;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::support::internet::{Internet, internet, recorded, reply};
use crate::support::{Dataset, all_files, bytes_of};

/// What the program said about a night.
struct Night {
    dataset: Dataset,
    exit: Option<i32>,
    data: String,
    record: serde_json::Value,
}

fn collect(world: &Internet, providers: &str) -> Night {
    let dataset = Dataset::new();
    let mut command = dataset.command(&["collect", "--providers", providers]);
    world.lead(&mut command);
    let output = command.env_remove("GCP_API_KEY").stdin(Stdio::null()).output().expect("the program starts");
    let data = String::from_utf8_lossy(&output.stdout).into_owned();
    let files = all_files(&dataset.root().join("runs"));
    let path = files.iter().find(|path| path.extension().is_some_and(|extension| extension == "json"));
    let path = path.unwrap_or_else(|| panic!("there is no record: {data}{}", String::from_utf8_lossy(&output.stderr)));
    let record = serde_json::from_slice(&bytes_of(path)).expect("the record reads");
    Night { dataset, exit: output.status.code(), data, record }
}

#[test]
fn the_record_and_the_table_say_what_each_provider_was_asked_for() {
    let times = Arc::new(AtomicUsize::new(0));
    let seen = Arc::clone(&times);
    let world = internet(move |request| match seen.fetch_add(1, Ordering::SeqCst) {
        0 => reply(503, "", b"later"),
        _ => recorded("lambda", request),
    });
    let night = collect(&world, "lambda");
    assert_eq!(night.exit, Some(0), "{}", night.data);
    let network = &night.record["providers"][0]["network"];
    let page = gpuledger_scrapers::recordings::newest("lambda").expect("it has a recording").pages[0].body.len();
    assert_eq!(*network, serde_json::json!({ "requests": 3, "retries": 1, "bytes": page }));
    assert!(night.data.contains("requests") && night.data.contains("3, 1 again"), "{}", night.data);
}

#[test]
fn a_provider_that_turns_the_program_away_is_absent_tonight_and_its_wall_is_kept() {
    let wall = "<html><head><title>Just a moment...</title></head></html>";
    let world = internet(move |request| match request.host.as_str() {
        "cloud.google.com" => reply(200, "content-type: text/html\r\n", wall.as_bytes()),
        _ => recorded("lambda", request),
    });
    let night = collect(&world, "gcp,lambda");
    assert_eq!(night.exit, Some(10), "{}", night.data);
    assert!(night.data.contains("page `accelerator-optimized`, tried 4 times, answered 200 with no page but a robot check"));
    let status = |index: usize| night.record["providers"][index]["status"].as_str().map(str::to_owned);
    assert_eq!((status(0).as_deref(), status(1).as_deref()), (Some("failed"), Some("complete")));
    let is_wall =
        |path: &std::path::PathBuf| zstd::decode_all(bytes_of(path).as_slice()).is_ok_and(|body| body == wall.as_bytes());
    assert!(all_files(&night.dataset.root().join("raw/objects")).iter().any(is_wall));
    let receipts = all_files(&night.dataset.root().join("raw/receipts"));
    let of_gcp = receipts.iter().find(|path| path.ends_with("gcp.json")).expect("there are receipts");
    assert!(String::from_utf8_lossy(&bytes_of(of_gcp)).contains("\"page\": \"accelerator-optimized\""));
}

#[test]
fn a_page_of_the_web_leads_into_no_private_network() {
    let inside = TcpListener::bind("127.0.0.1:0").expect("a port is free");
    inside.set_nonblocking(true).expect("it can be asked without waiting");
    let place = format!("http://{}", inside.local_addr().expect("it has an address"));
    for to in [place.as_str(), "http://169.254.169.254/latest", "https://10.0.0.1/", "http://[::1]/", "http://localhost/"] {
        let header = format!("location: {to}\r\n");
        let world = internet(move |_| reply(302, &header, b""));
        let night = collect(&world, "lambda");
        assert_eq!(night.exit, Some(11), "{}", night.data);
        assert!(night.data.contains("leads astray: it is redirected to a private address"), "{}", night.data);
        assert_eq!(world.asked().len(), 1);
    }
    assert!(inside.accept().map(|(mut stream, _)| stream.read(&mut [0; 1])).is_err(), "it was asked");
}

#[test]
fn a_night_with_a_limit_publishes_what_was_had_in_time() {
    let world = internet(|request| {
        if request.host == "cloud.google.com" {
            std::thread::sleep(std::time::Duration::from_secs(60));
        }
        recorded("lambda", request)
    });
    let dataset = Dataset::new();
    let mut command = dataset.command(&["collect", "--providers", "gcp,lambda", "--max-minutes", "0.3"]);
    world.lead(&mut command);
    let output = command.env_remove("GCP_API_KEY").stdin(Stdio::null()).output().expect("the program starts");
    let data = String::from_utf8_lossy(&output.stdout).into_owned();
    assert_eq!(output.status.code(), Some(10), "{data}");
    assert!(data.contains("the time that was given to the whole night is over"), "{data}");
    assert_eq!(dataset.files("offers").len(), 1);
}
