//! Every published price leads back to its bytes, and every stored number follows from what is printed there.

#[allow(dead_code, reason = "each test uses its own part of the builders")]
use std::collections::BTreeSet;

use crate::support::{Dataset, Said, all_files, bytes_of, write_pages};
use gpuledger::explain::{self, State};
use gpuledger::harmless::is_seen;
use gpuledger::snapshot::read;
use gpuledger_scrapers::{ALL, recordings, sha256};
use polars::prelude::*;

const AT: &str = "2026-10-30T18:00:00Z";
const NOT_BORNE_OUT: i32 = gpuledger::exit::Exit::NotBorneOut as i32;

fn recorded() -> Dataset {
    let dataset = Dataset::new();
    assert_eq!(dataset.run(&["collect", "--recorded"]).exit, Some(0));
    dataset
}

/// A dataset of one provider's recording, its pages changed, each file named for its page.
fn collected(provider: &str, change: impl Fn(String) -> String) -> Dataset {
    let (dataset, folder) = (Dataset::new(), tempfile::tempdir().expect("there is room for a folder"));
    write_pages(folder.path(), provider, |_, name| name.to_owned(), change);
    let from = folder.path().to_str().expect("a temporary folder's name is text");
    let said = dataset.run(&["collect", "--from", from, "--at", AT, "--providers", provider]);
    assert!(matches!(said.exit, Some(0 | 10)), "{} {}", said.data, said.talk);
    dataset
}

/// The id of the first offer that these arguments of `offers` let through.
fn an_offer(dataset: &Dataset, args: &[&str]) -> String {
    let said = dataset.run(&[&["offers", "--limit", "1", "--format", "ndjson"], args].concat());
    let row: serde_json::Value = serde_json::from_str(&said.data).unwrap_or_else(|error| panic!("{error}: {}", said.talk));
    row["offer_id"].as_str().expect("an id").to_owned()
}

fn explained(dataset: &Dataset, id: &str) -> Said {
    dataset.run(&["explain", id])
}

fn json(said: &Said) -> serde_json::Value {
    serde_json::from_str(&said.data).unwrap_or_else(|error| panic!("{error}: {} {}", said.data, said.talk))
}

#[tokio::test(flavor = "multi_thread")]
async fn every_offer_of_the_recorded_night_leads_to_its_bytes_and_its_numbers_follow() {
    let dataset = recorded();
    let snapshots = read::snapshots(&dataset.root()).await.expect("the log reads");
    let rows = read::offers(&snapshots[0]).expect("the file opens").collect().expect("the rows read");
    let mut providers = BTreeSet::new();
    for row in 0..rows.height() {
        let explained = explain::of_row(&dataset.root(), &snapshots[0], &rows, row, &gpuledger_scrapers::find)
            .await
            .expect("it is explained");
        assert_eq!(explained.proof.state, State::Verified);
        assert!(explained.is_borne_out, "{}", explain::text(&explained));
        let place = |piece: &explain::SeenPiece| piece.marked.len();
        assert!(
            explained.proof.spots.iter().all(|spot| spot.pieces.last().map_or(0, place) > 0 || spot.pieces.len() > 1),
            "{}",
            explain::text(&explained)
        );
        providers.insert(explained.row["provider"].as_str().expect("a name").to_owned());
    }
    let with_prices = ALL.iter().filter(|scraper| scraper.manifest().published.is_some()).count();
    assert_eq!(providers.len(), with_prices, "{providers:?}");
}

#[test]
fn an_offer_in_yuan_for_a_term_shows_each_step_to_dollars() {
    let dataset = recorded();
    let id = an_offer(&dataset, &["--provider", "volcengine", "--pricing-model", "subscription"]);
    let said = explained(&dataset, &id);
    assert_eq!(said.exit, Some(0), "{}", said.data);
    for words in [
        "read from  https://www.volcengine.com/",
        "verified: the archived bytes have this hash",
        "place      /Result/TableList/",
        "parent object, from byte",
        "⟦\"98000\"⟧",
        "98000 CNY per term, whole machine",
        "÷ 26280 hours of a term of 36 months (730 hours a month: a year of 8760 hours in twelve parts)",
        "÷ 1 GPU",
        "× 1.1485 USD per EUR ÷ 7.7539 CNY per EUR",
        "rate of 2026-07-31: 1 EUR = 7.7539 CNY, published by ecb in https://www.ecb.europa.eu/",
        "price_usd_per_gpu_hour: 0.5523463883437221 is stored, and equals what is worked out",
        "hardware table of volcengine, read in",
    ] {
        assert!(said.data.contains(words), "no `{words}` in\n{}", said.data);
    }
}

#[test]
fn a_price_that_is_added_up_shows_every_part_of_the_sum() {
    let dataset = recorded();
    let id = an_offer(&dataset, &["--provider", "gcp", "--instance-type", "n1-standard-1+4xnvidia-tesla-t4"]);
    let said = dataset.run(&["explain", &id, "--format", "json"]);
    let explained = json(&said);
    let spots = explained["proof"]["spots"].as_array().expect("places");
    let gives: BTreeSet<&str> = spots.iter().filter_map(|spot| spot["gives"].as_str()?.split(',').next()).collect();
    let text = explained["proof"]["published_text"].as_str().expect("a text");
    assert_eq!(gives, text.split(" + ").collect(), "{}", said.data);
    assert!(spots.iter().all(|spot| spot["is_printed_there"] == true));
}

#[test]
fn an_upfront_fee_is_shown_on_its_own_line_and_spread_over_the_term() {
    let dataset = recorded();
    let id = an_offer(&dataset, &["--provider", "aws", "--pricing-model", "reserved", "--sort", "-published_upfront_amount"]);
    let said = explained(&dataset, &id);
    assert_eq!(said.exit, Some(0), "{}", said.data);
    let lines = said.data.lines().filter(|line| line.contains(": line ") && line.contains("of page")).count();
    assert_eq!(lines, 2, "{}", said.data);
    for words in ["price by the hour: line", "upfront fee: line", "header, from byte", "up front ÷"] {
        assert!(said.data.contains(words), "no `{words}` in\n{}", said.data);
    }
}

#[test]
fn a_sieved_bulk_file_is_named_with_the_hash_and_size_of_the_whole() {
    let dataset = collected("aws", |text| text);
    let id = an_offer(&dataset, &["--provider", "aws", "--pricing-model", "on_demand", "--region", "us-east-1"]);
    let said = dataset.run(&["explain", &id, "--format", "json"]);
    let whole = &json(&said)["proof"]["whole"];
    let recording = recordings::newest("aws").expect("there is a recording");
    let page = recording.pages.iter().find(|page| page.name == "prices-us-east-1").expect("it has the region");
    assert_eq!((&whole["sha256"], &whole["bytes"]), (&sha256(&page.body).into(), &page.body.len().into()));
    let said = explained(&dataset, &id);
    assert!(said.data.contains(&format!("kept by sieve {}", whole["sieve"].as_str().expect("a name"))), "{}", said.data);
}

#[test]
fn the_first_characters_of_an_id_are_enough_and_several_matches_are_listed() {
    let dataset = recorded();
    let id = an_offer(&dataset, &["--provider", "lambda"]);
    let said = explained(&dataset, &id[..12]);
    assert!(said.data.starts_with(&format!("offer {id} of snapshot")), "{}", said.data);
    let said = explained(&dataset, &id[..1]);
    assert_eq!(said.exit, Some(2));
    assert!(said.data.contains(&id) && said.talk.contains("offers begin with"), "{}", said.data);
    let said = explained(&dataset, "no-such-id");
    assert_eq!(said.exit, Some(2));
    assert!(said.talk.contains("offers --format csv"), "{}", said.talk);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stored_number_that_does_not_follow_is_told_aloud() {
    let dataset = collected("lambda", |text| text);
    let snapshots = read::snapshots(&dataset.root()).await.expect("the log reads");
    let rows = read::offers(&snapshots[0]).expect("the file opens");
    let wrong = rows.with_column((col("price_usd_per_gpu_hour") + lit(1e-15)).alias("price_usd_per_gpu_hour"));
    let wrong = wrong.with_column(lit("$9.99").alias("published_text")).collect().expect("the rows read");
    let explained =
        explain::of_row(&dataset.root(), &snapshots[0], &wrong, 0, &gpuledger_scrapers::find).await.expect("it is explained");
    assert!(!explained.is_borne_out);
    let text = explain::text(&explained);
    assert!(text.contains("WRONG: price_usd_per_gpu_hour") && text.contains("NOT THERE"), "{text}");
    assert!(text.contains("price_native_per_hour") && !text.contains("WRONG: price_native"), "{text}");
}

#[test]
fn damaged_and_missing_bytes_are_told_and_the_steps_still_shown() {
    let dataset = collected("lambda", |text| text);
    let id = an_offer(&dataset, &["--provider", "lambda"]);
    let object = all_files(&dataset.root().join("raw/objects")).remove(0);
    let whole = bytes_of(&object);
    std::fs::write(&object, &whole[..whole.len() / 2]).expect("there is room");
    let said = explained(&dataset, &id);
    assert_eq!(said.exit, Some(NOT_BORNE_OUT));
    assert!(said.data.contains("DAMAGED") && !said.data.contains("verified"), "{}", said.data);
    std::fs::remove_file(&object).expect("it was there");
    let said = explained(&dataset, &id);
    assert_eq!(said.exit, Some(NOT_BORNE_OUT));
    assert!(said.data.contains("MISSING") && said.data.contains("equals what is worked out"), "{}", said.data);
}

#[test]
fn what_a_hostile_page_says_is_harmless_on_the_terminal() {
    const HOSTILE: &str = "<!-- \u{1b}[2J\u{1b}]0;owned\u{7}\u{9b}31m\u{202e}99.0$\u{200b}\u{2066} -->";
    let dataset =
        collected("lambda", |text| text.replace("<td data-label=\"RAM\">", &format!("{HOSTILE}<td data-label=\"RAM\">")));
    let id = an_offer(&dataset, &["--provider", "lambda"]);
    let text = explained(&dataset, &id);
    assert_eq!(text.exit, Some(0), "{}", text.data);
    assert!(text.data.contains(r"\u{1b}[2J") && text.data.contains(r"\u{202e}99.0$"), "{}", text.data);
    let said = dataset.run(&["explain", &id, "--format", "json"]);
    for data in [&text.data, &said.data] {
        let found: Vec<char> = data.chars().filter(|c| *c != '\n' && !is_seen(*c)).collect();
        assert_eq!(found, Vec::<char>::new());
    }
    let row = json(&said)["proof"]["spots"][0]["pieces"][1]["text"].as_str().expect("a row").to_owned();
    assert!(row.contains(HOSTILE), "JSON says the same bytes: {row}");
}

#[test]
fn a_third_of_a_card_is_worked_out_with_the_exact_third() {
    let dataset = recorded();
    let all = dataset.run(&["offers", "--provider", "alibaba", "--limit", "1000", "--format", "ndjson"]).data;
    let third = all.lines().find(|line| line.contains("\"gpu_count\": 0.333333333333")).expect("a third of a card is sold");
    let row: serde_json::Value = serde_json::from_str(third).expect("a row");
    let said = explained(&dataset, row["offer_id"].as_str().expect("an id"));
    assert_eq!(said.exit, Some(0), "{}", said.data);
    assert!(said.data.contains("÷ 1/3 GPUs"), "{}", said.data);
}
