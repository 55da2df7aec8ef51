//! The Atom feed beside the tables, read by another XML parser: what is an entry in it and what is not, and that it harms
//! nobody, whatever becomes of its file.

use crate::support;
use std::collections::BTreeSet;

use crate::support::nightly::Nights;
use chrono::DateTime;
use gpuledger::exit::Exit;
use gpuledger::feed::{ENTRIES_MAX, FEED_FILE};
use roxmltree::{Document, Node};

const ATOM: &str = "http://www.w3.org/2005/Atom";

/// An entry as a reader sees it.
#[derive(Debug, Clone, PartialEq)]
struct Entry {
    id: String,
    title: String,
    kind: String,
    updated: String,
    /// HTML.
    content: String,
}

fn child<'a>(node: Node<'a, 'a>, name: &str) -> Node<'a, 'a> {
    let found: Vec<Node> = node.children().filter(|child| child.has_tag_name((ATOM, name))).collect();
    assert_eq!(found.len(), 1, "{name}");
    found[0]
}

fn text(node: Node, name: &str) -> String {
    // Only a tree of this document is walked, so the lifetime is its own.
    node.children().find(|child| child.has_tag_name((ATOM, name))).and_then(|child| child.text()).unwrap_or_default().to_owned()
}

/// The entries of a feed, held against what RFC 4287 asks of every feed.
fn entries(nights: &Nights) -> Vec<Entry> {
    let xml = std::fs::read_to_string(nights.file(FEED_FILE)).expect("there is a feed");
    let document = Document::parse(&xml).unwrap_or_else(|error| panic!("{error}\n{xml}"));
    let feed = document.root_element();
    assert!(feed.has_tag_name((ATOM, "feed")), "{xml}");
    for (name, is_text) in [("id", true), ("title", true), ("updated", true), ("author", false)] {
        assert_eq!(child(feed, name).text().is_some_and(|text| !text.trim().is_empty()), is_text, "{name}\n{xml}");
    }
    assert!(!text(child(feed, "author"), "name").is_empty());
    let mut found = Vec::new();
    let mut ids = BTreeSet::from([text(feed, "id")]);
    let mut newest = text(feed, "updated");
    for node in feed.children().filter(|child| child.has_tag_name((ATOM, "entry"))) {
        let content = child(node, "content");
        assert_eq!(content.attribute("type"), Some("html"));
        let entry = Entry {
            id: text(node, "id"),
            title: text(node, "title"),
            kind: child(node, "category").attribute("term").expect("a category has a term").to_owned(),
            updated: text(node, "updated"),
            content: content.text().expect("it is not empty").to_owned(),
        };
        assert!(entry.id.starts_with("tag:gpuledger.invalid,2026:dataset/") && !entry.title.is_empty(), "{entry:?}");
        assert!(ids.insert(entry.id.clone()), "two with one id: {}", entry.id);
        assert!(DateTime::parse_from_rfc3339(&entry.updated).is_ok() && entry.updated <= newest, "{entry:?}");
        newest.clone_from(&entry.updated);
        found.push(entry);
    }
    found
}

fn kinds(nights: &Nights) -> Vec<String> {
    entries(nights).into_iter().map(|entry| entry.kind).collect()
}

fn cheaper(text: String) -> String {
    assert!(text.contains("$3.99"));
    text.replace("$3.99", "$3.59")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_price_that_its_source_changed_is_an_entry_and_stays_one() {
    let nights = Nights::new();
    nights.night("2026-11-01T02:00:00Z").await;
    assert_eq!(entries(&nights), []);
    nights.publishes("lambda", cheaper);
    nights.night("2026-11-02T02:00:00Z").await;
    let told = entries(&nights);
    assert_eq!(told.len(), 1, "{told:?}");
    assert_eq!((told[0].kind.as_str(), told[0].updated.as_str()), ("price_changes", "2026-11-02T02:00:00+00:00"));
    assert!(told[0].id.ends_with("/night/2026-11-02T02-00-00Z/changes/lambda"), "{}", told[0].id);
    assert!(told[0].title.starts_with("lambda: ") && told[0].title.contains("3.99 → 3.59 USD per hour (−10.0 %)"), "{told:?}");
    assert!(told[0].content.contains("<li>") && told[0].content.contains("H100"), "{told:?}");
    // A night without a change leaves it as it is.
    nights.night("2026-11-03T02:00:00Z").await;
    assert_eq!(entries(&nights), told);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn exchange_rates_new_offers_and_lost_rows_are_no_entries() {
    let nights = Nights::new();
    // One that publishes in euros.
    nights.publishes("seeweb", |text| text);
    nights.night("2026-11-01T02:00:00Z").await;
    // The rate of one day moves, one offer is gone for a night, and then it is back.
    nights.publishes("ecb", |text| text.replace("rate='1.1172'", "rate='1.2172'"));
    nights.publishes("lambda", |text| text.replacen("$3.99", "Contact us", 1));
    let second = nights.night("2026-11-02T02:00:00Z").await;
    assert_ne!(second.exit, Exit::Refused, "{:?}", second.record);
    let offers = nights.dataset.offers().await;
    let usd = |night: usize| support::texts(&offers[night], "price_usd_per_gpu_hour");
    assert_ne!(usd(0), usd(1), "the rate moved the prices in dollars");
    nights.publishes("lambda", |text| text);
    nights.night("2026-11-03T02:00:00Z").await;
    assert_eq!(entries(&nights), []);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_change_behind_a_night_without_the_provider_is_told_when_it_is_back() {
    let nights = Nights::new();
    nights.night("2026-11-01T02:00:00Z").await;
    nights.is_broken("lambda");
    assert_eq!(nights.night("2026-11-02T02:00:00Z").await.exit, Exit::Partial);
    assert_eq!(entries(&nights), []);
    nights.publishes("lambda", cheaper);
    nights.night("2026-11-03T02:00:00Z").await;
    let told = entries(&nights);
    assert_eq!(told.len(), 1, "{told:?}");
    assert!(told[0].title.contains("3.99 → 3.59") && told[0].updated.starts_with("2026-11-03"), "{told:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn recordings_are_never_held_against_what_a_source_says() {
    let nights = Nights::new();
    nights.dataset.collect(&["--recorded", "--at", "2026-11-01T02:00:00Z"]).await.expect("the night runs");
    nights.publishes("lambda", cheaper);
    nights.night("2026-11-02T02:00:00Z").await;
    assert_eq!(entries(&nights), []);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_provider_that_stays_away_is_told_once_and_again_when_it_goes_again() {
    let nights = Nights::new();
    nights.night("2026-11-01T02:00:00Z").await;
    nights.is_broken("modal");
    for day in 2..=6 {
        nights.night(&format!("2026-11-0{day}T02:00:00Z")).await;
        let expected: &[&str] = if day < 4 { &[] } else { &["provider_missing"] };
        assert_eq!(kinds(&nights), expected, "day {day}");
    }
    let told = entries(&nights);
    assert_eq!(told[0].title, "modal: missing for 3 nights");
    assert!(told[0].content.contains("The last night that has it is 2026-11-01T02-00-00Z"), "{told:?}");
    nights.publishes("modal", |text| text);
    nights.night("2026-11-07T02:00:00Z").await;
    nights.is_broken("modal");
    for day in 8..=10 {
        nights.night(&format!("2026-11-{day:02}T02:00:00Z")).await;
    }
    assert_eq!(kinds(&nights), ["provider_missing", "provider_missing"]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_provider_that_is_not_asked_is_not_missing() {
    let nights = Nights::new();
    nights.night("2026-11-01T02:00:00Z").await;
    nights.is_away("modal");
    for day in 2..=5 {
        nights.night(&format!("2026-11-0{day}T02:00:00Z")).await;
    }
    assert_eq!(entries(&nights), []);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_refused_night_is_an_entry_until_it_is_published_after_all() {
    let nights = Nights::new();
    nights.night("2026-11-01T02:00:00Z").await;
    nights.is_broken("lambda");
    nights.is_broken("modal");
    assert_eq!(nights.night("2026-11-02T02:00:00Z").await.exit, Exit::Refused);
    let told = entries(&nights);
    assert_eq!((told.len(), told[0].kind.as_str()), (1, "night_refused"), "{told:?}");
    assert!(told[0].content.contains("<li>lambda: failed") && told[0].content.contains("<li>modal: failed"), "{told:?}");
    nights.publishes("lambda", cheaper);
    nights.publishes("modal", |text| text);
    assert_eq!(nights.night("2026-11-02T02:00:00Z").await.exit, Exit::Good);
    assert_eq!(kinds(&nights), ["price_changes"]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_feed_that_is_gone_damaged_or_of_another_dataset_is_made_anew_from_the_tables_byte_for_byte() {
    let nights = Nights::new();
    nights.night("2026-11-01T02:00:00Z").await;
    nights.publishes("lambda", cheaper);
    nights.is_broken("modal");
    for day in 2..=4 {
        nights.night(&format!("2026-11-0{day}T02:00:00Z")).await;
    }
    nights.is_broken("lambda");
    nights.night("2026-11-05T02:00:00Z").await;
    assert_eq!(kinds(&nights), ["night_refused", "provider_missing", "price_changes"]);
    let path = nights.file(FEED_FILE);
    let whole = std::fs::read(&path).expect("there is a feed");
    let other = Nights::new();
    other.night("2026-11-04T02:00:00Z").await;
    let of_other = std::fs::read(other.file(FEED_FILE)).expect("there is a feed");
    let damaged: [&[u8]; 5] = [b"", b"<feed", &whole[..whole.len() / 2], b"\xff\xfe\x00", &of_other];
    for bytes in damaged {
        std::fs::write(&path, bytes).expect("there is room for a file");
        // A night that is there already brings nothing but the feed.
        let again = nights.night("2026-11-04T02:00:00Z").await;
        assert!(again.record.outcome != "published", "{:?}", again.record.outcome);
        assert_eq!(String::from_utf8_lossy(&std::fs::read(&path).expect("it reads")), String::from_utf8_lossy(&whole));
    }
    std::fs::remove_file(&path).expect("it can be removed");
    nights.night("2026-11-04T02:00:00Z").await;
    assert_eq!(std::fs::read(&path).expect("it reads"), whole);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_night_that_died_before_its_feed_is_told_by_the_next() {
    let nights = Nights::new();
    nights.night("2026-11-01T02:00:00Z").await;
    let before = std::fs::read(nights.file(FEED_FILE)).expect("there is a feed");
    nights.publishes("lambda", cheaper);
    nights.night("2026-11-02T02:00:00Z").await;
    std::fs::write(nights.file(FEED_FILE), before).expect("there is room for a file");
    nights.night("2026-11-03T02:00:00Z").await;
    let told = entries(&nights);
    assert!(told.len() == 1 && told[0].updated.starts_with("2026-11-02"), "{told:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_feed_that_cannot_be_written_costs_a_line_and_not_the_night() {
    let nights = Nights::new();
    std::fs::create_dir_all(nights.file(FEED_FILE).join("in the way")).expect("there is room for a folder");
    let said = nights.dataset.run(&["collect", "--at", "2026-11-01T02:00:00Z", "--from", nights.from()]);
    assert_eq!(said.exit, Some(0), "{}", said.talk);
    assert!(said.talk.contains("write the feed") && said.talk.contains(FEED_FILE), "{}", said.talk);
    std::fs::remove_dir_all(nights.file(FEED_FILE)).expect("it can be removed");
    nights.night("2026-11-02T02:00:00Z").await;
    assert_eq!(entries(&nights), []);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_feed_keeps_a_bounded_number_of_entries_the_newest() {
    let nights = Nights::new();
    nights.night("2026-11-01T02:00:00Z").await;
    nights.publishes("lambda", cheaper);
    nights.night("2026-11-02T02:00:00Z").await;
    // More of them than there is room for, as the years bring them.
    let path = nights.file(FEED_FILE);
    let xml = std::fs::read_to_string(&path).expect("there is a feed");
    let (begin, end) = (xml.find("<entry>").expect("an entry"), xml.find("</entry>").expect("an entry") + "</entry>".len());
    let old = |year: usize| xml[begin..end].replace("2026-11-02", &format!("{year}-11-02"));
    let many: String = (0..ENTRIES_MAX).map(|index| old(1900 + index)).collect();
    std::fs::write(&path, format!("{}{many}{}", &xml[..end], &xml[end..])).expect("there is room for a file");
    nights.publishes("lambda", |text| text);
    nights.night("2026-11-03T02:00:00Z").await;
    let told = entries(&nights);
    assert_eq!(told.len(), ENTRIES_MAX);
    assert!(told[0].updated.starts_with("2026-11-03") && told[1].updated.starts_with("2026-11-02"), "{:?}", &told[..2]);
    assert!(told.last().is_some_and(|last| last.updated.starts_with("1902")), "{:?}", told.last());
}
