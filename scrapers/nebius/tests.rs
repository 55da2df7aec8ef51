//! Checks against stored pages, and of the columns that may be read.

use std::path::Path;

use chrono::{DateTime, TimeZone as _, Utc};

use super::*;
use crate::contract::SCOPE_ALL;
use crate::recordings;

const SAMPLES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../shared/samples/nebius/");

fn stored(file: &str, observed_at: DateTime<Utc>) -> Option<Page> {
    let path = format!("{SAMPLES}{file}");
    if !Path::new(&path).exists() {
        eprintln!("skipped: ../shared is not beside this checkout");
        return None;
    }
    let body = std::fs::read(&path).expect("the page reads");
    let sha256 = crate::sha256(&body);
    Some(Page {
        name: "prices".to_owned(),
        scope: SCOPE_ALL.to_owned(),
        url: MANIFEST.pages[0].url.clone(),
        observed_at,
        sha256,
        body,
    })
}

fn day(year: i32, month: u32, day: u32) -> DateTime<Utc> {
    Utc.with_ymd_and_hms(year, month, day, 0, 0, 0).single().expect("a day")
}

fn lines(parsed: &Parsed) -> Vec<String> {
    let line = |offer: &PublishedOffer| {
        format!("{} {} {}", offer.offer_label.as_deref().unwrap_or_default(), offer.terms.pricing_model, offer.price.text)
    };
    parsed.offers.iter().map(line).collect()
}

#[test]
fn the_page_of_july_gives_five_cards_each_on_demand_and_preemptible_and_no_floor() {
    let Some(page) = stored("nebius_20260712235400.html", day(2026, 7, 12)) else { return };
    let parsed = Nebius.parse(&[page]).expect("the page parses");
    assert_eq!(
        lines(&parsed),
        [
            "NVIDIA HGX B300 spot $4.30",
            "NVIDIA HGX B200 spot $3.95",
            "NVIDIA HGX H200 spot $2.45",
            "NVIDIA HGX H100 spot $2.15",
            "NVIDIA RTX PRO 6000 spot $0.95",
            "NVIDIA HGX B300 on_demand $7.85",
            "NVIDIA HGX B200 on_demand $7.15",
            "NVIDIA HGX H200 on_demand $4.50",
            "NVIDIA HGX H100 on_demand $3.85",
            "NVIDIA RTX PRO 6000 on_demand $1.80",
        ]
    );
    let mut reasons: Vec<_> = parsed.skipped.iter().map(|row| row.reason.code()).collect();
    reasons.sort_unstable();
    assert_eq!(
        reasons,
        ["price_not_exact", "price_not_exact", "price_not_exact", "price_not_exact", "price_on_request", "price_on_request"]
    );
    assert_eq!(parsed.out_of_scope["not sold this way, by a dash"], 2);
}

#[test]
fn the_page_of_september_gives_the_prices_of_the_day_it_is_read_on() {
    let prices = |at| {
        let page = stored("nebius_prices_2026-09_rebuilt.html", at)?;
        let parsed = Nebius.parse(&[page]).expect("the page parses");
        let floors = parsed.skipped.iter().filter(|row| row.reason.code() == "price_not_exact").count();
        assert_eq!(floors, 9, "two on demand and seven preemptible");
        Some(parsed.offers.iter().map(|offer| offer.price.text.clone()).collect::<Vec<_>>().join(" "))
    };
    let Some(before) = prices(day(2026, 9, 30)) else { return };
    assert_eq!(before, "$7.85 $7.15 $4.50 $3.85 $1.80");
    assert_eq!(prices(day(2026, 10, 1)).as_deref(), Some("$9.50 $8.50 $5.40 $4.50 $1.80"));
}

#[test]
fn a_price_of_a_column_with_a_day_holds_from_that_day() {
    let mut page = recordings::newest("nebius").expect("a recording").pages[0].clone();
    page.observed_at = day(2026, 10, 1);
    let parsed = Nebius.parse(&[page]).expect("the page parses");
    assert!(parsed.offers.iter().all(|offer| offer.terms.valid_from == Some(day(2026, 10, 1))));
    assert_eq!(effective("GPU-hour (Effective October 1, 2026)"), NaiveDate::from_ymd_opt(2026, 10, 1));
    assert_eq!(effective("GPU-hour (Effective soon)"), None);
}

#[test]
fn no_address_has_a_question_mark_because_robots_txt_bars_those() {
    assert!(MANIFEST.start(false).iter().all(|request| !request.url.contains('?')));
}

#[test]
fn a_catalogue_of_2025_has_the_prices_of_before_the_rise() {
    let path = format!("{SAMPLES}skypilot_catalog_2025.csv");
    let Ok(text) = std::fs::read_to_string(path) else { return eprintln!("skipped: ../shared is not beside this checkout") };
    let recording = recordings::newest("nebius").expect("a recording");
    let parsed = Nebius.parse(&recording.pages).expect("the recording parses");
    let ours = |label: &str| {
        let offer = parsed.offers.iter().find(|offer| offer.offer_label.as_deref() == Some(label)).expect("the card");
        offer.price.text.trim_start_matches('$').to_owned()
    };
    for (machine, then, label) in [
        ("gpu-h100-sxm_1gpu-16vcpu-200gb", "2.95", "NVIDIA HGX H100"),
        ("gpu-h200-sxm_1gpu-16vcpu-200gb", "3.50", "NVIDIA HGX H200"),
    ] {
        let row = text.lines().find(|line| line.starts_with(machine)).expect("the machine is in the catalogue");
        assert!(row.contains(&format!(",{then},")), "{row}");
        assert!(ours(label).as_str() > then, "{label} has risen since");
    }
}
