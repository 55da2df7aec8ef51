//! Publishing: a night is whole or not there, once or not at all, and what is published never changes.

use std::process::Stdio;

use crate::support::{Dataset, all_files, bytes_of, texts, write_pages};
use gpuledger::exit::Exit;

const AT: &str = "2026-10-30T18:00:00Z";

/// A folder of files for `--from`, and its name for the command line.
fn pages() -> (tempfile::TempDir, String) {
    let folder = tempfile::tempdir().expect("there is room for a folder");
    let name = folder.path().to_str().expect("a temporary folder's name is text").to_owned();
    (folder, name)
}

#[tokio::test(flavor = "multi_thread")]
async fn the_same_night_collected_twice_is_published_once() {
    let dataset = Dataset::new();
    let first = dataset.collect(&["--recorded"]).await.expect("the night is collected");
    let (files, offers, log) = (dataset.files("offers"), dataset.offers().await, dataset.logged("offers"));
    let second = dataset.collect(&["--recorded"]).await.expect("the night is collected again");
    assert_eq!((first.exit, first.record.outcome), (Exit::Good, "published"));
    assert_eq!((second.exit, second.record.outcome), (Exit::Good, "already_published"));
    assert_eq!(first.record.offers, second.record.offers);
    assert_eq!(dataset.files("offers"), files);
    assert_eq!(dataset.logged("offers"), log);
    let again = dataset.offers().await;
    assert_eq!((offers.len(), again.len()), (1, 1));
    assert!(offers[0].equals_missing(&again[0]));
}

#[test]
fn the_program_says_that_a_night_was_there_already() {
    let dataset = Dataset::new();
    let first = dataset.run(&["collect", "--recorded"]);
    let second = dataset.run(&["collect", "--recorded"]);
    assert_eq!((first.exit, second.exit), (Some(0), Some(0)), "{}", second.talk);
    let listed = dataset.run(&["snapshots", "--format", "json"]);
    assert_eq!(versions(&listed.data), [1]);
}

#[test]
fn the_same_night_with_other_rows_is_refused() {
    let dataset = Dataset::new();
    let (folder, from) = pages();
    let same_name = |_: usize, name: &str| name.to_owned();
    write_pages(folder.path(), "lambda", same_name, |text| text);
    let first = dataset.run(&["collect", "--from", &from, "--at", AT]);
    assert_eq!(first.exit, Some(0), "{}", first.talk);
    let (files, log) = (dataset.files("offers"), all_files(&dataset.root().join("offers")));
    write_pages(folder.path(), "lambda", same_name, |text| {
        assert!(text.contains("$3.29"), "the page has the price that is changed here");
        text.replace("$3.29", "$3.39")
    });
    let second = dataset.run(&["collect", "--from", &from, "--at", AT]);
    assert_eq!(second.exit, Some(11), "{}", second.talk);
    assert!(second.talk.contains("2026-10-30T18-00-00Z"), "{}", second.talk);
    assert_eq!(dataset.files("offers"), files);
    assert_eq!(all_files(&dataset.root().join("offers")), log);
}

/// Versions in a list of snapshots as JSON.
fn versions(json: &str) -> Vec<u64> {
    let list: Vec<serde_json::Value> = serde_json::from_str(json).unwrap_or_else(|error| panic!("{error}: {json}"));
    list.iter().map(|snapshot| snapshot["version"].as_u64().expect("a version is a number")).collect()
}

#[test]
fn a_second_writer_is_turned_away_and_told_who_writes() {
    let dataset = Dataset::new();
    let lock = gpuledger::lock::take(&dataset.root()).expect("nobody else writes");
    let said = dataset.run(&["collect", "--recorded"]);
    assert_eq!(said.exit, Some(13), "{}", said.talk);
    assert!(said.talk.contains(&format!("locked by process {}", std::process::id())), "{}", said.talk);
    assert_eq!(dataset.files("offers"), []);
    drop(lock);
    // The owner's name stays in the file; the lock does not.
    let said = dataset.run(&["collect", "--recorded"]);
    assert_eq!(said.exit, Some(0), "{}{}", said.data, said.talk);
}

#[test]
fn two_runs_at_once_publish_one_night() {
    let dataset = Dataset::new();
    let start = || {
        let mut command = dataset.command(&["collect", "--recorded"]);
        command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("the program starts")
    };
    let children = [start(), start(), start()];
    let exits = children.map(|mut child| child.wait().expect("the child is ours").code());
    assert!(exits.contains(&Some(0)), "{exits:?}");
    assert!(exits.iter().all(|exit| [Some(0), Some(13)].contains(exit)), "{exits:?}");
    let listed = dataset.run(&["snapshots", "--format", "json"]);
    assert_eq!(versions(&listed.data), [1]);
    assert_eq!((dataset.files("offers").len(), dataset.logged("offers").len()), (1, 1));
}

#[test]
fn an_archived_object_that_is_damaged_is_not_trusted_and_mended_when_its_bytes_come_again() {
    let dataset = Dataset::new();
    assert_eq!(dataset.run(&["collect", "--recorded"]).exit, Some(0));
    let whole: Vec<_> = all_files(&dataset.root().join("raw/objects")).into_iter().map(|path| (bytes_of(&path), path)).collect();
    for (bytes, path) in &whole {
        let mut damaged = bytes.clone();
        let middle = damaged.len() / 2;
        damaged[middle] ^= 0x20;
        std::fs::write(path, &damaged).expect("the object can be damaged");
    }
    let said = dataset.run(&["collect", "--recorded", "--at", "2026-10-31T18:00:00Z"]);
    assert_eq!(said.exit, Some(0), "{}", said.talk);
    for (bytes, path) in &whole {
        assert!(bytes_of(path) == *bytes, "{} is still damaged", path.display());
    }
    let offers = |snapshot: &str| {
        let listed = dataset.run(&["offers", "--snapshot", snapshot, "--limit", "100000", "--format", "csv"]).data;
        listed.lines().filter_map(|line| Some(line.split_once(',')?.1.split_once(',')?.1.to_owned())).collect::<Vec<_>>()
    };
    assert!(offers("1").len() > 100);
    assert_eq!(offers("1"), offers("2"));
}

#[tokio::test(flavor = "multi_thread")]
async fn files_in_another_order_give_the_same_offers() {
    // The regions change places; the two pages of West Europe stay in the order in which one leads to the other.
    let names: [fn(usize, &str) -> String; 2] =
        [|index, _| format!("page-{index}.json"), |index, _| format!("page-{}.json", (index + 2) % 3)];
    let mut nights = Vec::new();
    for name in names {
        let dataset = Dataset::new();
        let (folder, from) = pages();
        write_pages(folder.path(), "azure", name, |text| text);
        let night = dataset.collect(&["--from", &from, "--at", AT]).await.expect("the night is collected");
        assert_eq!(night.exit, Exit::Good, "{:?}", night.findings);
        nights.push(dataset.offers().await.remove(0));
    }
    assert!(nights[0].height() > 20);
    for column in ["offer_id", "published_text", "price_usd_per_gpu_hour", "raw_sha256", "raw_place", "scope"] {
        assert_eq!(texts(&nights[0], column), texts(&nights[1], column), "{column}");
    }
}

#[test]
fn what_a_run_that_died_left_is_cleared_away_by_the_next() {
    let dataset = Dataset::new();
    assert_eq!(dataset.run(&["collect", "--recorded"]).exit, Some(0));
    let published = dataset.files("offers");
    // A draft, and a file that was in its place but not yet committed: what a kill at the two moments leaves.
    let drafts = dataset.root().join(".drafts");
    std::fs::create_dir_all(&drafts).expect("there is room for a folder");
    std::fs::write(drafts.join("4194305-0"), b"half").expect("there is room for a draft");
    let left = "offers/2026-10-31/2026-10-31T18-00-00Z-0123456789abcdef.parquet";
    std::fs::create_dir_all(dataset.root().join("offers/2026-10-31")).expect("there is room for a folder");
    std::fs::write(dataset.root().join(left), &published[0].1).expect("there is room for a file");
    std::fs::write(dataset.root().join(".on-its-way"), left).expect("there is room for a name");
    assert_eq!(dataset.files("offers").len(), 2);
    assert_eq!(dataset.run(&["collect", "--recorded"]).exit, Some(0));
    assert_eq!(dataset.files("offers"), published);
    assert!(!drafts.join("4194305-0").exists() && !dataset.root().join(".on-its-way").exists());
}

#[test]
fn a_committed_file_that_is_still_named_as_on_its_way_stays() {
    let dataset = Dataset::new();
    assert_eq!(dataset.run(&["collect", "--recorded"]).exit, Some(0));
    let published = dataset.files("offers");
    let path = format!("offers/{}", published[0].0.display());
    std::fs::write(dataset.root().join(".on-its-way"), path).expect("there is room for a name");
    assert_eq!(dataset.run(&["collect", "--recorded"]).exit, Some(0));
    assert_eq!(dataset.files("offers"), published);
}

#[test]
fn a_second_try_that_is_refused_leaves_receipts_and_record_of_the_published_night() {
    let dataset = Dataset::new();
    let (folder, from) = pages();
    let same_name = |_: usize, name: &str| name.to_owned();
    let kept = || {
        let paths = ["raw/receipts", "runs"].map(|folder| all_files(&dataset.root().join(folder))).concat();
        paths.into_iter().map(|path| (String::from_utf8_lossy(&bytes_of(&path)).into_owned(), path)).collect::<Vec<_>>()
    };
    write_pages(folder.path(), "lambda", same_name, |text| text);
    assert_eq!(dataset.run(&["collect", "--from", &from, "--at", AT]).exit, Some(0));
    let published = kept();
    assert_eq!(published.len(), 3);
    for change in [|text: String| text.replace("$3.29", "$3.39"), |_: String| "<!doctype html><title>Soon</title>".to_owned()] {
        write_pages(folder.path(), "lambda", same_name, change);
        let said = dataset.run(&["collect", "--from", &from, "--at", AT]);
        assert_eq!(said.exit, Some(11), "{}", said.talk);
        for (now, before) in kept().iter().zip(&published) {
            assert!(now == before, "{} was overwritten: {}", before.1.display(), now.0);
        }
    }
}

#[test]
fn a_run_that_died_before_its_record_gets_one_from_the_next() {
    let dataset = Dataset::new();
    assert_eq!(dataset.run(&["collect", "--recorded"]).exit, Some(0));
    let runs = dataset.root().join("runs");
    let records = all_files(&runs);
    assert_eq!(records.len(), 2);
    std::fs::remove_dir_all(&runs).expect("the records can be taken away");
    assert_eq!(dataset.run(&["collect", "--recorded"]).exit, Some(0));
    assert_eq!(all_files(&runs), records);
}
