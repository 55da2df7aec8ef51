//! Checks against a stored excerpt of the page, and of what is refused.

use std::path::Path;

use chrono::{DateTime, Utc};

use super::*;
use crate::contract::{PricePer, SCOPE_ALL};
use crate::{read, recordings};

const EXCERPT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../shared/samples/lambda/lambda_20260109103934.html");

fn page(body: Vec<u8>) -> Page {
    Page {
        name: "pricing".to_owned(),
        scope: SCOPE_ALL.to_owned(),
        url: "https://lambda.ai/pricing".to_owned(),
        observed_at: DateTime::<Utc>::UNIX_EPOCH,
        sha256: crate::sha256(&body),
        body,
    }
}

fn dec(text: &str) -> Decimal {
    money::decimal(text).expect("a literal decimal")
}

fn excerpt() -> Option<Page> {
    if !Path::new(EXCERPT).exists() {
        eprintln!("skipped: ../shared is not beside this checkout");
        return None;
    }
    Some(page(std::fs::read(EXCERPT).expect("the excerpt reads")))
}

fn newest() -> String {
    let recording = recordings::newest("lambda").expect("there is a dated recording");
    recording.pages[0].text().expect("the recording is text").to_owned()
}

fn refusal(html: &str) -> String {
    Lambda.parse(&[page(html.as_bytes().to_vec())]).expect_err("the page is refused").to_string()
}

#[test]
fn the_excerpt_gives_its_five_rows_and_names_the_three_tables_it_lacks() {
    let Some(page) = excerpt() else { return };
    let parsed = Lambda.parse(&[page]).expect("the excerpt parses");
    let expected = [
        ("8x NVIDIA B200 SXM6", "180", "4.99", "39.92", "208", "2900", "24189.255811072", "$4.99"),
        ("8x NVIDIA H100 SXM", "80", "2.99", "23.92", "208", "1800", "24189.255811072", "$2.99"),
        ("8x NVIDIA A100 SXM", "80", "1.79", "14.32", "240", "1800", "21440.476741632", "$1.79"),
        ("8x NVIDIA A100 SXM", "40", "1.29", "10.32", "124", "1800", "6377.1674411008", "$1.29"),
        ("8x NVIDIA Tesla V100", "16", "0.55", "4.40", "88", "448", "6377.1674411008", "$0.55"),
    ];
    assert_eq!(parsed.offers.len(), expected.len());
    for (offer, (label, memory_gb, per_gpu, per_instance, vcpus, system_memory_gib, local_disk_gb, text)) in
        parsed.offers.iter().zip(expected)
    {
        assert_eq!(offer.offer_label.as_deref(), Some(label));
        assert_eq!(offer.gpu.memory_gb, Some(dec(memory_gb)), "{label}");
        assert_eq!(offer.price.amount, dec(per_gpu), "{label}");
        assert_eq!(offer.price.per, PricePer::Gpu, "{label}");
        assert_eq!(offer.price.amount * Decimal::from(*offer.gpu.count.expect("a count").numer()), dec(per_instance), "{label}");
        assert_eq!(offer.machine.vcpus, Some(dec(vcpus)), "{label}");
        assert_eq!(offer.machine.system_memory_gib, Some(dec(system_memory_gib)), "{label}");
        assert_eq!(offer.machine.local_disk_gb, Some(dec(local_disk_gb)), "{label}");
        assert_eq!(offer.price.text, text);
        assert_eq!(offer.price.tax_included, Some(false), "{label}");
    }
    let skipped: Vec<_> =
        parsed.skipped.iter().map(|row| (row.label.as_str(), row.reason.to_string(), row.place.at.as_str())).collect();
    assert_eq!(
        skipped,
        [
            ("tab 4x", "tab `4x` has no table".to_owned(), "#tabpanel-1"),
            ("tab 2x", "tab `2x` has no table".to_owned(), "#tabpanel-2"),
            ("tab 1x", "tab `1x` has no table".to_owned(), "#tabpanel-3"),
        ]
    );
}

#[test]
fn a_night_refuses_the_excerpt() {
    let Some(page) = excerpt() else { return };
    let results = read(&Lambda, vec![page]);
    let refused = results[SCOPE_ALL].as_ref().expect_err("an excerpt is no night");
    assert_eq!(refused.to_string(), "3 of 8 rows were not understood, first `tab 4x`: tab `4x` has no table");
}

#[test]
fn an_excerpt_that_lacks_one_table_is_refused_too() {
    let whole = newest();
    let start = whole.find("<div class=\"_tabsContainer").expect("the tabs begin");
    let end = whole.find("<div role=\"tabpanel\" id=\"tabpanel-3\"").expect("the last panel begins");
    assert_eq!(
        refusal(&whole[start..end]),
        "page `pricing` changed shape at tab `1x`: expected a panel `#tabpanel-3` with a table, found no such panel"
    );
}

#[test]
fn a_page_cut_anywhere_is_refused() {
    let whole = newest();
    let end = whole.find("</html>").expect("the page ends");
    for length in (1..=end).step_by(97).filter(|length| whole.is_char_boundary(*length)) {
        let cut = page(whole.as_bytes()[..length].to_vec());
        assert!(read(&Lambda, vec![cut]).values().all(Result::is_err), "cut at {length}");
    }
}

#[test]
fn the_22_rows_of_a_full_page_multiply_to_whole_instances() {
    let recording = recordings::newest("lambda").expect("there is a dated recording");
    let parsed = Lambda.parse(&recording.pages).expect("the recording parses");
    let rows = |count: u32| parsed.offers.iter().filter(|offer| offer.gpu.count == Some(Ratio::from(count))).count();
    assert_eq!((parsed.offers.len(), rows(8), rows(4), rows(2), rows(1)), (22, 5, 4, 4, 9));
    let b200 = &parsed.offers[0];
    assert_eq!(b200.price.amount * Decimal::from(*b200.gpu.count.expect("a count").numer()), dec("53.52"));
}
