//! The archive keeps each page once and whole, and lets go of it only when somebody says so.

#[allow(dead_code, reason = "each test uses its own part of the builders")]
use std::path::PathBuf;
use std::time::{Duration, SystemTime};

use crate::support::{Dataset, all_files, bytes_of, write_pages};
use gpuledger_scrapers::{recordings, sha256};

const OLD: &str = "2024-10-30T18:00:00Z";
const OLD_NIGHT: &str = "2024-10-30T18-00-00Z";
const LATER: &str = "2024-12-30T18:00:00Z";
const DAY: Duration = Duration::from_secs(86_400);

struct Folder(tempfile::TempDir);

impl Folder {
    fn new() -> Self {
        Self(tempfile::tempdir().expect("there is room for a folder"))
    }

    fn with(self, provider: &str, change: impl Fn(String) -> String) -> Self {
        write_pages(self.0.path(), provider, |_, name| name.to_owned(), change);
        self
    }

    fn collect(&self, dataset: &Dataset, at: &str) -> Option<i32> {
        let from = self.0.path().to_str().expect("a temporary folder's name is text");
        dataset.run(&["collect", "--from", from, "--at", at]).exit
    }
}

fn objects(dataset: &Dataset) -> Vec<PathBuf> {
    all_files(&dataset.root().join("raw/objects"))
}

fn object(dataset: &Dataset, body: &[u8]) -> PathBuf {
    let name = sha256(body);
    dataset.root().join(format!("raw/objects/{}/{}.zst", &name[..2], &name[2..]))
}

/// The body of the only page of a provider's recording.
fn page(provider: &str) -> Vec<u8> {
    recordings::newest(provider).expect("it has a recording").pages.remove(0).body
}

/// Sets when every object was written.
fn written(dataset: &Dataset, days_ago: u32) {
    for path in objects(dataset) {
        let file = std::fs::File::options().write(true).open(&path).expect("it is ours");
        file.set_modified(SystemTime::now() - DAY * days_ago).expect("the time can be set");
    }
}

#[test]
fn the_same_page_of_two_nights_is_kept_once() {
    let dataset = Dataset::new();
    let pages = Folder::new().with("lambda", |text| text);
    assert_eq!(pages.collect(&dataset, OLD), Some(0));
    let once = objects(&dataset);
    assert_eq!(pages.collect(&dataset, LATER), Some(0));
    assert_eq!((once.len(), objects(&dataset)), (1, once));
}

#[test]
fn half_an_object_is_never_trusted_and_is_written_again() {
    let dataset = Dataset::new();
    let pages = Folder::new().with("lambda", |text| text);
    assert_eq!(pages.collect(&dataset, OLD), Some(0));
    let path = object(&dataset, &page("lambda"));
    let whole = bytes_of(&path);
    for half in [&whole[..0], &whole[..whole.len() / 2], &whole[..whole.len() - 1]] {
        std::fs::write(&path, half).expect("there is room");
        assert_eq!(dataset.run(&["replay", OLD_NIGHT]).exit, Some(15));
        assert_eq!(pages.collect(&dataset, OLD), Some(0), "the night is there already");
        assert_eq!(bytes_of(&path), whole);
        assert_eq!(dataset.run(&["replay", OLD_NIGHT]).exit, Some(0));
    }
    let other = zstd::encode_all(&b"another page"[..], 3).expect("it packs");
    std::fs::write(&path, other).expect("there is room");
    assert_eq!(dataset.run(&["replay", OLD_NIGHT]).exit, Some(15), "a whole object of other bytes is damaged too");
}

#[test]
fn what_a_longer_earlier_run_of_the_night_left_is_never_read_again() {
    let dataset = Dataset::new();
    // The first try of the night has three pages of azure and two of vultr, none of which reads.
    let pages = Folder::new().with("azure", |_| "no page".to_owned()).with("vultr", |_| "no page either".to_owned());
    assert_eq!(pages.collect(&dataset, OLD), Some(11));
    let left = |provider: &str| {
        let path = dataset.root().join(format!("raw/receipts/{OLD_NIGHT}/{provider}.json"));
        serde_json::from_slice::<Vec<serde_json::Value>>(&bytes_of(&path)).expect("receipts").len()
    };
    assert_eq!((left("azure"), left("vultr")), (3, 2));

    // The second try has two pages, and no vultr.
    let pages = Folder::new().with("azure", |text| text);
    std::fs::remove_file(pages.0.path().join("azure/retail-eastus-0001")).expect("it was there");
    assert_eq!(pages.collect(&dataset, OLD), Some(0));
    assert_eq!((left("azure"), left("vultr")), (2, 2), "one file is of this try, the other is what the first left");
    let said = dataset.run(&["replay", OLD_NIGHT]);
    assert_eq!((said.exit, said.talk.contains("identical")), (Some(0), true), "{}", said.talk);
    // A night of before it was kept what it was made of is told from its coverage.
    std::fs::remove_dir_all(dataset.root().join("raw/nights")).expect("it was there");
    let said = dataset.run(&["replay", OLD_NIGHT]);
    assert_eq!((said.exit, said.talk.contains("identical")), (Some(0), true), "{}", said.talk);
}

/// A dataset with an old night of two providers, a later one that shares a page, and a refused one.
fn dataset() -> Dataset {
    let dataset = Dataset::new();
    assert_eq!(Folder::new().with("lambda", |text| text).with("vultr", |text| text).collect(&dataset, OLD), Some(0));
    assert_eq!(Folder::new().with("lambda", |text| text).with("oci", |text| text).collect(&dataset, LATER), Some(0));
    assert_eq!(Folder::new().with("lambda", |_| "refused".to_owned()).collect(&dataset, "2024-11-30T18:00:00Z"), Some(11));
    dataset
}

#[test]
fn pages_that_no_published_night_needs_go_when_they_are_old_and_no_others() {
    let dataset = dataset();
    let all = objects(&dataset);
    let prune = |args: &[&str]| {
        let said = dataset.run(&[&["archive", "prune"], args].concat());
        assert_eq!(said.exit, Some(0), "{}", said.talk);
        said.data
    };
    assert!(prune(&["--keep-days", "30"]).starts_with("freed 0 files"), "they were written just now");
    written(&dataset, 31);
    assert!(prune(&["--keep-days", "32"]).starts_with("freed 0 files"));
    assert!(prune(&["--keep-days", "30", "--dry-run"]).starts_with("would free 1 files, 0.0 MB"));
    assert_eq!(objects(&dataset), all, "saying what would go removes nothing");
    assert!(!dataset.root().join("raw/pruned").exists());

    assert!(prune(&["--keep-days", "30"]).starts_with("freed 1 files"));
    let gone: Vec<_> = all.iter().filter(|path| !path.exists()).cloned().collect();
    assert_eq!(gone, [object(&dataset, b"refused")]);
    let records = all_files(&dataset.root().join("raw/pruned"));
    let record: serde_json::Value = serde_json::from_slice(&bytes_of(&records[0])).expect("a record");
    assert_eq!((&record["files"], &record["objects"][0]), (&1.into(), &sha256(b"refused").into()));
    for night in ["1", "2"] {
        assert_eq!(dataset.run(&["replay", night]).exit, Some(0));
    }
}

#[test]
fn a_page_that_a_published_row_names_stays_even_without_a_receipt() {
    let dataset = dataset();
    written(&dataset, 31);
    std::fs::remove_dir_all(dataset.root().join("raw/receipts")).expect("it was there");
    assert_eq!(dataset.run(&["archive", "prune", "--keep-days", "30"]).exit, Some(0));
    assert!(object(&dataset, &page("lambda")).exists() && object(&dataset, &page("vultr")).exists());
    assert!(!object(&dataset, b"refused").exists());
}

#[test]
fn pages_of_old_nights_go_only_if_asked_and_then_the_night_says_so() {
    let dataset = dataset();
    let rows = dataset.files("offers");
    // Days since a time between the two nights.
    let since: chrono::DateTime<chrono::Utc> = "2024-12-15T00:00:00Z".parse().expect("a time");
    let days = (chrono::Utc::now() - since).num_days().to_string();
    let said = dataset.run(&["archive", "prune", "--keep-days", &days, "--published-too"]);
    assert_eq!(said.exit, Some(0), "{}", said.talk);
    assert!(!object(&dataset, &page("vultr")).exists(), "{}", said.data);
    assert!(object(&dataset, &page("lambda")).exists(), "the younger night has the same page");
    assert!(object(&dataset, &page("oci")).exists());
    assert_eq!(dataset.files("offers"), rows, "rows stay");

    let said = dataset.run(&["doctor"]);
    assert_eq!(said.exit, Some(0), "what was removed on purpose is not missing: {}", said.data);
    let said = dataset.run(&["replay", OLD_NIGHT]);
    let words = unwrapped(&said.talk);
    assert_eq!(said.exit, Some(15), "{words}");
    assert!(words.contains("of vultr") && words.contains("was pruned on") && !words.contains("of lambda"), "{words}");
    assert_eq!(dataset.run(&["replay", "latest"]).exit, Some(0));
    let id = dataset.run(&["offers", "--snapshot", OLD_NIGHT, "--provider", "vultr", "--format", "ndjson", "--limit", "1"]);
    let row: serde_json::Value = serde_json::from_str(&id.data).expect("a row");
    let said = dataset.run(&["explain", row["offer_id"].as_str().expect("an id"), "--snapshot", OLD_NIGHT]);
    assert_eq!(said.exit, Some(15));
    assert!(said.data.contains("PRUNED on") && said.data.contains("equals what is worked out"), "{}", said.data);
}

#[test]
fn a_folder_that_is_no_dataset_is_not_made_one() {
    let folder = tempfile::tempdir().expect("there is room for a folder");
    let typo = folder.path().join("typo");
    let output = std::process::Command::new(env!("CARGO_BIN_EXE_gpuledger"))
        .args(["archive", "prune", "--keep-days", "30", "--dry-run", "--output"])
        .arg(&typo)
        .output()
        .expect("the program runs");
    assert_eq!(output.status.code(), Some(2));
    assert!(!typo.exists());
}

#[test]
fn nothing_goes_while_another_run_writes_or_a_receipt_cannot_be_read() {
    let dataset = dataset();
    written(&dataset, 31);
    let all = objects(&dataset);
    let lock = gpuledger::lock::take(&dataset.root()).expect("nobody holds it");
    assert_eq!(dataset.run(&["archive", "prune", "--keep-days", "30"]).exit, Some(13));
    drop(lock);
    std::fs::write(dataset.root().join(format!("raw/receipts/{OLD_NIGHT}/vultr.json")), "[{").expect("there is room");
    assert_eq!(dataset.run(&["archive", "prune", "--keep-days", "30"]).exit, Some(15));
    assert_eq!(objects(&dataset), all);
}

/// What was said without the ends of lines and the strokes beside them.
fn unwrapped(talk: &str) -> String {
    talk.split_whitespace().filter(|word| !["│", "|"].contains(word)).collect::<Vec<_>>().join(" ")
}
