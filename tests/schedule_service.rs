//! The service as it runs for months, in as many minutes as you like: a night every minute with all recorded providers on an
//! internet of the tests' own that fails at random, nights and the service itself killed on the way.
//!
//! `GPULEDGER_SERVICE_MINUTES=60` serves for an hour and prints one line of figures for `schedules/README.md`. Without it a
//! minute or two, the providers that are quick, and the service is killed within the first night.

use crate::support::service;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use crate::support::internet::{Request, internet, reply};
use crate::support::service::Ground;
use crate::support::webhook::Webhook;
use chrono::TimeDelta;
use gpuledger::schedule::ledger::Ledger;
use gpuledger_scrapers::{ALL, recordings};
use serde_json::Value;

/// Of so many minutes the last two have a network on which no page is to be had, when it serves for longer.
const DARK: u64 = 8;

/// For so many minutes a price of Lambda holds, then another.
const PRICE_MINUTES: u64 = 4;

/// A night is killed every so many seconds.
const KILL_S: u64 = 250;

/// A service that was started so many seconds ago is as large as it is going to be.
const SETTLED_S: usize = 120;

/// What the service may gain by then and by the end, most of it pages of the program's own file.
const GROWTH_MIB: f64 = 4.0;

/// The same of a service that has hardly begun when it ends.
const SHORT_GROWTH_MIB: f64 = 16.0;

/// Providers whose nights take seconds at the pace that they ask for.
const QUICK: &str = r#"["aws", "cloudrift", "digitalocean", "ecb", "hetzner", "hyperstack", "jarvislabs", "lambda", "modal", "nebius", "oci", "scaleway", "seeweb", "together", "verda"]"#;

/// What every provider's newest recordings have for their addresses.
fn pages() -> HashMap<String, Vec<u8>> {
    let recordings = ALL.iter().filter_map(|scraper| recordings::newest(&scraper.manifest().provider));
    recordings.flat_map(|recording| recording.pages).map(|page| (page.url, page.body)).collect()
}

/// A number that looks random and is the same in every run.
fn mixed(number: u64) -> u64 {
    let number = (number ^ (number >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let number = (number ^ (number >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    number ^ (number >> 31)
}

/// An answer as strangers' servers give it: mostly the page, sometimes anything else.
fn answer(pages: &HashMap<String, Vec<u8>>, request: &Request, number: u64, has_dark: bool) -> Vec<u8> {
    let minute = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).map_or(0, |since| since.as_secs() / 60);
    if has_dark && minute % DARK >= DARK - 2 {
        return reply(503, "", b"nobody is here");
    }
    let Some(body) = pages.get(&format!("https://{}{}", request.host, request.path)) else {
        return reply(403, "", b"not in the recording");
    };
    let body =
        if request.host == "lambda.ai" && !(minute / PRICE_MINUTES).is_multiple_of(2) { cheaper(body) } else { body.clone() };
    let whole = reply(200, "", &body);
    match mixed(number) % 40 {
        0 | 1 => reply(503, "", b"later"),
        2 => reply(429, "retry-after: 1\r\n", b"too many"),
        3 => whole[..whole.len() - body.len() / 2].to_vec(),
        4 => Vec::new(),
        5 => reply(200, "content-type: text/html\r\n", b"<html><title>Just a moment...</title></html>"),
        6 => reply(200, "", b"{}"),
        7 => {
            std::thread::sleep(Duration::from_secs(3));
            whole
        }
        _ => whole,
    }
}

/// Lambda's page with another price of a card.
fn cheaper(body: &[u8]) -> Vec<u8> {
    String::from_utf8_lossy(body).replace("$3.99", "$3.59").into_bytes()
}

/// How many messages of each kind there are, in words.
fn by_kind(messages: &[Value]) -> String {
    let of = |kind: &str| messages.iter().filter(|message| message["kind"] == kind).count();
    let [changes, failed, missing] = ["price_changes", "failed_night", "missing_provider"].map(of);
    assert_eq!(changes + failed + missing, messages.len(), "{messages:#?}");
    format!("{} ({changes} of prices, {failed} of failed nights, {missing} of providers that stay away)", messages.len())
}

/// The shortest and the longest night, in seconds.
fn lasted(ledger: &Ledger) -> String {
    let seconds = ledger.nights.iter().filter_map(|night| Some((night.ended_at? - night.started_at).num_seconds()));
    let (least, most) = seconds.fold((i64::MAX, 0), |(least, most), seconds| (least.min(seconds), most.max(seconds)));
    format!("{least} to {most}")
}

fn minutes() -> u64 {
    std::env::var("GPULEDGER_SERVICE_MINUTES").map_or(1, |minutes| minutes.parse().expect("a number of minutes"))
}

#[test]
fn a_night_every_minute_survives_faults_and_kills_and_the_service_stays_as_small_as_it_was() {
    let minutes = minutes();
    let (pages, number) = (pages(), AtomicU64::new(1));
    let is_short = minutes <= 2;
    let world = internet(move |request| answer(&pages, request, number.fetch_add(1, Ordering::Relaxed), !is_short));
    let ground = Ground::new("* * * * *", if is_short { QUICK } else { "\"all\"" }, "run_once");
    let webhook = Webhook::new();
    ground.also(&webhook.lines());
    // The minute in which it starts is due as well.
    let from = ground.now() - TimeDelta::minutes(1);
    let mut service = ground.serve(&world);
    let (begun, length) = (Instant::now(), Duration::from_secs(60 * minutes));
    let (mut nights_killed, mut is_service_killed, mut sizes) = (0, false, Vec::new());
    let mut kill_night_at = Duration::from_secs(KILL_S);
    while begun.elapsed() < length || !is_service_killed {
        std::thread::sleep(Duration::from_secs(1));
        let running = service.night_process();
        if let (Some(_), false) = (running, is_service_killed || begun.elapsed() < length / 2 && !is_short) {
            // Its night goes on without it, and the new service finds that it does.
            service.kill();
            service = ground.serve(&world);
            is_service_killed = true;
            sizes.clear();
        } else if let (Some(process), true) = (running, begun.elapsed() >= kill_night_at) {
            service::signal("KILL", process);
            nights_killed += 1;
            kill_night_at += Duration::from_secs(KILL_S);
        }
        if is_service_killed {
            sizes.push(service.size());
        }
    }
    let is_over = || ground.ledger().nights.last().is_some_and(|night| night.is_over());
    ground.wait_until("the last night is over", Duration::from_secs(150), is_over);
    let last = service.size();
    assert_eq!(service.stop(), Some(0), "{}", ground.log());

    let ledger = ground.ledger();
    let newest = ledger.nights.iter().filter_map(|night| night.due_at).max().expect("nights were run");
    let due = ground.due_between(from, newest);
    let mut times: BTreeMap<_, u32> = BTreeMap::new();
    for due_at in ledger.nights.iter().map(|night| night.due_at) {
        *times.entry(due_at).or_insert(0) += 1;
    }
    assert!(times.values().all(|times| *times == 1), "{times:?}");
    assert!(times.keys().all(|due_at| due_at.is_some_and(|due_at| due.contains(&due_at))), "{times:?}");
    let ended = |exits: &[u8]| ledger.nights.iter().filter(|night| night.exit.is_some_and(|exit| exits.contains(&exit))).count();
    // One that was killed after it was published: nobody heard its exit code.
    let is_published = |note: &Option<String>| note.as_ref().is_some_and(|note| note.starts_with("published;"));
    let unheard = ledger.nights.iter().filter(|night| night.exit.is_none() && is_published(&night.note)).count();
    let (published, refused) = (ended(&[0, 10]) + unheard, ended(&[11]));
    let again: u32 = ledger.nights.iter().map(|night| night.starts - 1).sum();
    let died = ledger.nights.iter().filter(|night| !night.is_over()).count();
    // One that was killed is started again, unless the next was due by then.
    assert_eq!(published + refused + died, ledger.nights.len(), "{:#?}\n{}", ledger.nights, ground.log());
    assert!(published > 0 && died <= nights_killed, "{:#?}\n{}", ledger.nights, ground.log());
    ground.check(published);
    let messages = webhook.messages();
    let different: BTreeSet<_> = messages.iter().map(|message| message["id"].to_string()).collect();
    assert_eq!(different.len(), messages.len(), "nobody is told a thing twice: {messages:#?}");
    let failed = messages.iter().filter(|message| message["kind"] == "failed_night").count();
    assert!(failed >= refused, "{refused} nights were refused: {messages:#?}\n{}", ground.log());
    let first = sizes.get(SETTLED_S).or(sizes.get(10)).copied().unwrap_or(last);
    eprintln!(
        "| {minutes} minutes | {} | {} | {published} | {refused} | {nights_killed} killed, of them {died} followed by the next and {again} started \
         again; the service killed once | {} taken, {} turned away | {:.1} → {:.1} MiB, {} → {} open files | {} s |",
        due.len(),
        ledger.nights.len(),
        by_kind(&messages),
        webhook.turned_away(),
        first.mib,
        last.mib,
        first.files,
        last.files,
        lasted(&ledger)
    );
    let growth_mib = if is_short { SHORT_GROWTH_MIB } else { GROWTH_MIB };
    assert!(last.mib < first.mib + growth_mib && last.files <= first.files + 1, "{first:?} {last:?}");
}
