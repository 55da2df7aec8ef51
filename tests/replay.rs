//! A published night again from the archive: the same bytes with the same code, a correction with newer code, and never a
//! word that the night did not know.

use crate::support::{Dataset, Said, all_files, bytes_of, texts, write_pages};
#[allow(dead_code, reason = "each test uses its own part of the builders")]
use clap::Parser as _;
use gpuledger::cli::{Cli, Verb};
use gpuledger::exit::Exit;
use gpuledger::replay::replay_with;
use gpuledger::report::{Failed, Said as Told};
use gpuledger_scrapers::contract::{Page, Parsed, ScrapeError, Scraper};
use gpuledger_scrapers::manifest::Manifest;
use gpuledger_scrapers::sha256;
use rust_decimal::Decimal;

const AT: &str = "2026-10-30T18:00:00Z";
const NIGHT: &str = "2026-10-30T18-00-00Z";
const CORRECTION: &str = "2026-10-30T18-00-00Z-r1";
const NOT_BORNE_OUT: i32 = gpuledger::exit::Exit::NotBorneOut as i32;

/// A later version of a parser: it doubles one price, loses one offer and finds one more.
struct Later {
    now: &'static dyn Scraper,
    manifest: &'static Manifest,
}

impl Later {
    /// Whether whoever changed the parser also raised its version is another matter.
    fn of(provider: &str, raised_by: u32) -> &'static Self {
        let now = gpuledger_scrapers::find(provider).expect("the scraper is there");
        let manifest = Manifest { scraper_version: now.manifest().scraper_version + raised_by, ..now.manifest().clone() };
        Box::leak(Box::new(Self { now, manifest: Box::leak(Box::new(manifest)) }))
    }
}

impl Scraper for Later {
    fn manifest(&self) -> &'static Manifest {
        self.manifest
    }

    fn parse(&self, pages: &[Page]) -> Result<Parsed, ScrapeError> {
        let mut parsed = self.now.parse(pages)?;
        let mut more = parsed.offers.remove(0);
        more.offer_label = Some("9x NVIDIA H100 SXM".to_owned());
        parsed.offers[0].price.amount *= Decimal::TWO;
        parsed.offers.push(more);
        Ok(parsed)
    }
}

/// A folder of the pages of these providers' recordings, for `--from`.
fn pages_of(providers: &[&str]) -> (tempfile::TempDir, String) {
    let folder = tempfile::tempdir().expect("there is room for a folder");
    for provider in providers {
        write_pages(folder.path(), provider, |_, name| name.to_owned(), |text| text);
    }
    let name = folder.path().to_str().expect("a temporary folder's name is text").to_owned();
    (folder, name)
}

fn collected(providers: &[&str]) -> Dataset {
    collected_ending(providers, 0)
}

fn collected_ending(providers: &[&str], exit: i32) -> Dataset {
    let dataset = Dataset::new();
    let (_folder, from) = pages_of(providers);
    let said = dataset.run(&["collect", "--from", &from, "--at", AT]);
    assert_eq!(said.exit, Some(exit), "{}", said.talk);
    dataset
}

async fn replay_later(dataset: &Dataset, provider: &'static str, args: &[&str]) -> Result<Told, Failed> {
    replay_as(dataset, Later::of(provider, 1), args).await
}

async fn replay_as(dataset: &Dataset, later: &'static Later, args: &[&str]) -> Result<Told, Failed> {
    let output = dataset.root().display().to_string();
    let line = [&["gpuledger", "replay", "--output", &output, "--format", "ndjson"], args].concat();
    let Verb::Replay(args) = Cli::try_parse_from(line).expect("the command line reads").verb else {
        unreachable!("it is a replay")
    };
    let provider = later.manifest.provider.as_str();
    replay_with(&args, &|name| if name == provider { Some(later as &dyn Scraper) } else { gpuledger_scrapers::find(name) }).await
}

fn lines(text: &str) -> Vec<serde_json::Value> {
    text.lines().map(|line| serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}"))).collect()
}

fn json(said: &Said) -> Vec<serde_json::Value> {
    serde_json::from_str(&said.data).unwrap_or_else(|error| panic!("{error}: {} {}", said.data, said.talk))
}

#[test]
fn a_recorded_night_derived_again_is_the_same_byte_for_byte() {
    let dataset = Dataset::new();
    assert_eq!(dataset.run(&["collect", "--recorded"]).exit, Some(0));
    let before = all_files(&dataset.root());
    let said = dataset.run(&["replay", "latest"]);
    assert_eq!(said.exit, Some(0), "{}", said.talk);
    let files = dataset.files("offers");
    assert!(said.talk.contains("identical") && said.talk.contains(&sha256(&files[0].1)), "{}", said.talk);
    assert_eq!(all_files(&dataset.root()), before, "it only reads");
}

#[test]
fn an_identical_replay_is_nothing_to_correct() {
    let dataset = collected(&["lambda"]);
    let said = dataset.run(&["replay", NIGHT, "--publish"]);
    assert_eq!(said.exit, Some(12), "{}", said.talk);
    assert!(said.talk.contains("nothing to correct"), "{}", said.talk);
    assert_eq!(dataset.files("offers").len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_later_parser_shows_each_offer_that_differs_old_and_new_as_method() {
    let dataset = collected(&["lambda"]);
    let told = replay_later(&dataset, "lambda", &["latest"]).await.expect("it is derived again");
    assert_eq!(told.exit, Exit::NotBorneOut);
    let rows = lines(told.data.text().expect("lines are text"));
    assert_eq!(rows.iter().map(|row| row["list"].as_str().expect("a list")).collect::<Vec<_>>(), ["added", "changed", "removed"]);
    assert!(rows.iter().all(|row| row["cause"] == "method"));
    let changed = &rows[1];
    let amount = |name: &str| changed[name].as_f64().expect("an amount");
    assert!((amount("amount_published") * 2.0 - amount("amount_again")).abs() < 1e-9, "{changed}");
    assert!((amount("usd_per_gpu_hour_published") * 2.0 - amount("usd_per_gpu_hour_again")).abs() < 1e-9, "{changed}");
    assert!(changed["fields"].as_str().expect("names").contains("published_amount"), "{changed}");
    let talk = told.talk.expect("it says how it went");
    assert!(talk.contains("1 added, 1 removed, 1 changed"), "{talk}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_correction_is_a_snapshot_of_its_own_and_changes_nothing_that_is_published() {
    let dataset = collected(&["lambda"]);
    let (files, log) = (dataset.files("offers"), all_files(&dataset.root().join("offers/_delta_log")));
    let told = replay_later(&dataset, "lambda", &["latest", "--publish"]).await.expect("it is corrected");
    assert_eq!(told.exit, Exit::Good);
    assert!(told.talk.expect("it says so").contains(CORRECTION));

    let now = dataset.files("offers");
    assert!(
        now.len() == 2 && now[..1] == files[..],
        "the first file is as it was, and its name sorts before that of its correction"
    );
    for path in log {
        assert!(path.exists(), "{} is gone", path.display());
    }
    let record = String::from_utf8(bytes_of(&dataset.root().join(format!("runs/{CORRECTION}.json")))).expect("text");
    assert!(record.contains(&format!("\"corrects\": \"{NIGHT}\"")), "{record}");
    let raw = dataset.root().join("raw");
    let receipts = |night: &str| bytes_of(&raw.join(format!("receipts/{night}/lambda.json")));
    assert_eq!(receipts(NIGHT), receipts(CORRECTION), "the correction is of the same archived pages");
    let kept = String::from_utf8(bytes_of(&raw.join(format!("nights/{CORRECTION}.json")))).expect("text");
    assert!(kept.contains(&format!("\"corrects\": \"{NIGHT}\"")), "{kept}");
    let logged: String = all_files(&dataset.root().join("offers/_delta_log"))
        .iter()
        .map(|path| String::from_utf8_lossy(&bytes_of(path)).into_owned())
        .collect();
    assert!(logged.contains(&format!("\"gpuledger.corrects\":\"{NIGHT}\"")), "{logged}");

    let listed = json(&dataset.run(&["snapshots", "--format", "json"]));
    let seen: Vec<_> =
        listed.iter().map(|row| (row["snapshot_id"].as_str(), row["corrects"].as_str(), row["version"].as_u64())).collect();
    assert_eq!(seen, [(Some(NIGHT), None, Some(1)), (Some(CORRECTION), Some(NIGHT), Some(2))]);
    let of = |snapshot: &str| dataset.run(&["offers", "--snapshot", snapshot, "--limit", "1"]).talk;
    for corrected in ["latest", "2026-10-30", "2", CORRECTION] {
        assert!(of(corrected).contains(CORRECTION), "{corrected}: {}", of(corrected));
    }
    for first in [NIGHT, "1"] {
        assert!(!of(first).contains(CORRECTION), "{first}: {}", of(first));
    }
    assert_eq!(dataset.run(&["offers", "--snapshot", "previous"]).exit, Some(2), "a correction is no other night");

    let again = replay_later(&dataset, "lambda", &["latest"]).await.expect("the correction is derived again");
    assert!(again.talk.expect("it says so").contains("identical"));
    let again = replay_later(&dataset, "lambda", &["latest", "--publish"]).await.expect("there is nothing to do");
    assert_eq!(again.exit, Exit::NothingDue);
    let superseded = replay_later(&dataset, "lambda", &[NIGHT, "--publish"]).await.expect_err("it is corrected already");
    assert_eq!(superseded.exit, Exit::Usage);
    assert_eq!(dataset.files("offers").len(), 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_correction_moves_is_called_method_in_both_directions() {
    let dataset = collected(&["lambda"]);
    replay_later(&dataset, "lambda", &["latest", "--publish"]).await.expect("it is corrected");
    let diff = |a: &str, b: &str| {
        let mut rows = json(&dataset.run(&["diff", a, b, "--format", "json"]));
        // An offer under another name has another id on the way back.
        rows.sort_by_key(|row| row["list"].to_string());
        rows
    };
    let (there, back) = (diff(NIGHT, CORRECTION), diff(CORRECTION, NIGHT));
    let lists = |rows: &[serde_json::Value]| rows.iter().map(|row| row["list"].to_string()).collect::<Vec<_>>();
    assert_eq!(lists(&there), [r#""changed""#, r#""renamed""#]);
    assert_eq!(lists(&there), lists(&back));
    for (one, other) in there.iter().zip(&back) {
        assert_eq!((one["cause"].as_str(), other["cause"].as_str()), (Some("method"), Some("method")), "{one}");
        assert_eq!((&other["list"], &other["amount_b"]), (&one["list"], &one["amount_a"]));
        assert_eq!(one["is_unconfirmed"], false, "nothing was crawled twice");
    }
    assert_eq!(diff(CORRECTION, CORRECTION), Vec::<serde_json::Value>::new());
    assert_eq!(diff("latest", "2026-10-30"), Vec::<serde_json::Value>::new());
}

#[test]
fn the_night_after_a_correction_is_compared_with_the_correction() {
    let dataset = collected(&["lambda"]);
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    let same_version = Later::of("lambda", 0);
    runtime.block_on(replay_as(&dataset, same_version, &["latest", "--publish"])).expect("it is corrected");
    let (_folder, from) = pages_of(&["lambda"]);
    assert_eq!(dataset.run(&["collect", "--from", &from, "--at", "2026-10-31T18:00:00Z"]).exit, Some(0));
    let said = dataset.run(&["diff"]);
    assert!(said.data.starts_with(&format!("a = {CORRECTION}, b = 2026-10-31T18-00-00Z")), "{}", said.data);
    let rows = json(&dataset.run(&["diff", "--format", "json"]));
    let changed: Vec<_> = rows.iter().filter(|row| row["list"] == "changed").collect();
    assert_eq!(changed.len(), 1);
    assert_eq!(changed[0]["cause"], "method", "the same print of the same page was read otherwise: {}", changed[0]);
}

#[test]
fn scopes_that_could_not_be_had_are_the_same_ones_again() {
    let dataset = Dataset::new();
    let (folder, from) = pages_of(&["lambda", "azure"]);
    std::fs::write(folder.path().join("azure/broken.json"), "no page").expect("there is room for a page");
    let said = dataset.run(&["collect", "--from", &from, "--at", AT, "--providers", "azure,lambda,vultr"]);
    assert_eq!(said.exit, Some(10), "{} {}", said.data, said.talk);
    let said = dataset.run(&["replay", NIGHT]);
    assert_eq!(said.exit, Some(0), "{}", said.talk);
    assert!(said.talk.contains("identical") && !said.talk.contains("scope "), "{}", said.talk);

    // A night of before it was kept what could not be had.
    std::fs::remove_dir_all(dataset.root().join("raw/nights")).expect("it was there");
    let said = dataset.run(&["replay", NIGHT]);
    assert_eq!(said.exit, Some(0), "{}", said.talk);
    assert!(said.talk.contains("identical") && said.talk.contains("stay out"), "{}", said.talk);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_exchange_rate_that_was_published_later_does_not_leak_into_the_night() {
    // A night of which no price can be converted is published and partial.
    let dataset = collected_ending(&["tencent"], 10);
    let without_rates = dataset.offers().await.remove(0);
    assert!(texts(&without_rates, "price_usd_per_gpu_hour").iter().all(String::is_empty), "there was no rate then");
    let (_folder, from) = pages_of(&["tencent", "ecb"]);
    let said = dataset.run(&["collect", "--from", &from, "--at", "2026-10-30T19:00:00Z"]);
    assert_eq!(said.exit, Some(0), "{}", said.talk);
    let with_rates = dataset.offers().await.remove(1);
    assert!(texts(&with_rates, "price_usd_per_gpu_hour").iter().any(|price| !price.is_empty()), "the rate would hold for both");
    let same_again = |when: &str| {
        for night in [NIGHT, "2026-10-30T19-00-00Z"] {
            let said = dataset.run(&["replay", night]);
            assert_eq!((said.exit, said.talk.contains("identical")), (Some(0), true), "{night} {when}: {}", said.talk);
        }
    };
    same_again("with the times as they were");
    // What a night knew is told by the versions of the log and not by the clock, which may have gone back.
    for log in ["offers", "rates"] {
        for entry in all_files(&dataset.root().join(log).join("_delta_log"))
            .iter()
            .filter(|path| path.extension().is_some_and(|end| end == "json"))
        {
            let text = String::from_utf8(bytes_of(entry)).expect("a log is text");
            let Some(at) = text.find("\"modificationTime\":") else { continue };
            let digits = at + "\"modificationTime\":".len();
            let end = digits + text[digits..].find(',').expect("more follows");
            let time = if log == "offers" { "1000" } else { "2000" };
            std::fs::write(entry, format!("{}{time}{}", &text[..digits], &text[end..])).expect("it is written");
        }
    }
    same_again("with a clock that went back");
}

#[test]
fn a_damaged_and_a_missing_page_are_named_with_the_command_that_helps() {
    let dataset = Dataset::new();
    assert_eq!(dataset.run(&["collect", "--recorded", "--providers", "lambda,vultr"]).exit, Some(0));
    let night = json(&dataset.run(&["snapshots", "--format", "json"]))[0]["snapshot_id"].as_str().expect("an id").to_owned();
    let object = |provider: &str| {
        let receipts = bytes_of(&dataset.root().join(format!("raw/receipts/{night}/{provider}.json")));
        let receipts: Vec<serde_json::Value> = serde_json::from_slice(&receipts).expect("receipts");
        let name = receipts[0]["sha256"].as_str().expect("a hash").to_owned();
        dataset.root().join(format!("raw/objects/{}/{}.zst", &name[..2], &name[2..]))
    };
    let half = bytes_of(&object("lambda"));
    std::fs::write(object("lambda"), &half[..half.len() / 2]).expect("there is room");
    std::fs::remove_file(object("vultr")).expect("it was there");
    let said = dataset.run(&["replay", "latest"]);
    assert_eq!(said.exit, Some(NOT_BORNE_OUT), "{}", said.talk);
    let words = unwrapped(&said.talk);
    for part in ["pricing of lambda", "is damaged", "of vultr", "is missing", "gpuledger collect --recorded --at"] {
        assert!(words.contains(part), "no `{part}` in {words}");
    }
    assert_eq!(dataset.run(&["collect", "--recorded", "--providers", "lambda,vultr"]).exit, Some(0));
    assert_eq!(dataset.run(&["replay", "latest"]).exit, Some(0), "the command has helped");
}

/// What was said without the ends of lines and the strokes beside them.
fn unwrapped(talk: &str) -> String {
    talk.split_whitespace().filter(|word| !["│", "|"].contains(word)).collect::<Vec<_>>().join(" ")
}
