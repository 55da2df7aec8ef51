//! Checks of what is one machine, one card and one price.

use std::path::Path;

use chrono::{DateTime, Utc};

use super::*;
use crate::contract::SCOPE_ALL;
use crate::{read, recordings};

const CLOUD: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../shared/samples/hetzner/mixxor_cloud_2026-08-17.json");

fn recorded() -> Parsed {
    let recording = recordings::newest("hetzner").expect("there is a dated recording");
    Hetzner.parse(&recording.pages).expect("the recording parses")
}

#[test]
fn a_list_of_the_cloud_has_no_gpu_and_is_not_the_feed() {
    if !Path::new(CLOUD).exists() {
        eprintln!("skipped: ../shared is not beside this checkout");
        return;
    }
    let body = std::fs::read(CLOUD).expect("the file reads");
    let page = Page {
        name: "auction".to_owned(),
        scope: SCOPE_ALL.to_owned(),
        url: CLOUD.to_owned(),
        observed_at: DateTime::<Utc>::UNIX_EPOCH,
        sha256: crate::sha256(&body),
        body,
    };
    let results = read(&Hetzner, vec![page]);
    let refused = results[SCOPE_ALL].as_ref().expect_err("it is refused").to_string();
    assert!(refused.starts_with("page `auction` changed shape at /server"), "{refused}");
}

#[test]
fn machines_that_are_alike_are_one_offer_at_the_lowest_price() {
    let parsed = recorded();
    let monthly: Vec<_> = parsed
        .offers
        .iter()
        .filter(|offer| offer.terms.pricing_model == PricingModel::Subscription)
        .map(|offer| (offer.zone.as_deref().expect("a data centre"), offer.price.text.as_str()))
        .collect();
    assert_eq!(monthly, [("FSN1-DC7", "38.0"), ("NBG1-DC3", "40.0"), ("FSN1-DC1", "39.0"), ("FSN1-DC20", "184.0")]);
    assert_eq!(parsed.out_of_scope["another machine of the same kind, not cheaper"], 2);
}

#[test]
fn a_month_and_an_hour_are_two_ways_to_buy_and_no_number_of_a_machine_is_in_an_offer() {
    let parsed = recorded();
    for pair in parsed.offers.chunks(2) {
        let [hour, month] = pair else { panic!("two ways to buy") };
        assert_eq!((hour.price.unit, hour.terms.pricing_model), (PriceUnit::Hour, PricingModel::OnDemand));
        assert_eq!((month.price.unit, month.terms.pricing_model), (PriceUnit::Month, PricingModel::Subscription));
        assert_eq!(hour.offer_label, month.offer_label);
        let label = hour.offer_label.as_deref().expect("a label");
        assert!(!label.contains("25110") && hour.sku.is_none(), "{label}");
    }
}

#[test]
fn the_number_of_cards_is_the_number_of_lines_or_what_a_line_says() {
    let read = |lines: &[&str]| card(&lines.iter().map(|line| (*line).to_owned()).collect::<Vec<_>>());
    assert_eq!(read(&["GPU - GeForce GTX 1080"]), Ok(("GeForce GTX 1080".to_owned(), 1)));
    assert_eq!(read(&["GPU - GeForce GTX 1080", "GPU - GeForce GTX 1080"]), Ok(("GeForce GTX 1080".to_owned(), 2)));
    assert_eq!(read(&["GPU - 2x NVIDIA RTX PRO 6000"]), Ok(("NVIDIA RTX PRO 6000".to_owned(), 2)));
    for lines in [&["GPU"][..], &["GPU - "], &["GPU: T4"], &["GPU - A", "GPU - B"], &[], &["GPU - 0x T4"]] {
        assert!(read(lines).is_err(), "{lines:?}");
    }
}

#[test]
fn a_bare_line_marks_a_gpu_machine_and_is_no_card() {
    let of = |case: &str| {
        let recording = recordings::of("hetzner").into_iter().find(|recording| recording.case == case).expect("the recording");
        Hetzner.parse(&recording.pages).expect("it parses")
    };
    let (beside, alone, apart) = (of("bare-line-beside-the-card"), of("bare-line-alone"), of("address-billed-apart"));
    assert_eq!(beside.offers, recorded().offers);
    assert!(alone.offers.len() == 6 && alone.skipped.len() == 1, "{alone:?}");
    let marked = apart.offers.iter().filter(|offer| offer.flags.contains("ip_address_billed_apart"));
    assert_eq!(marked.map(|offer| offer.price.text.as_str()).collect::<Vec<_>>(), ["0.2949", "184.0"]);
    assert!(apart.unread_fields.is_empty(), "{apart:?}");
}
