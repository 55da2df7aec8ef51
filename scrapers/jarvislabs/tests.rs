//! Checks against a stored answer, and of what page and answer say of each other.

use std::path::Path;

use chrono::{DateTime, Utc};

use super::*;
use crate::contract::SCOPE_ALL;
use crate::{read, recordings};

const ANSWER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../shared/samples/jarvislabs/gpuhunt_server_meta_response.json");
const CATALOGUE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../shared/samples/jarvislabs/skypilot_catalog_2026.csv");

fn page(body: Vec<u8>) -> Page {
    let sha256 = crate::sha256(&body);
    let observed_at = DateTime::<Utc>::UNIX_EPOCH;
    Page { name: "server-meta".to_owned(), scope: SCOPE_ALL.to_owned(), url: String::new(), observed_at, sha256, body }
}

#[test]
fn a_stored_answer_gives_each_card_once_in_a_region_and_spot_of_containers_only() {
    if !Path::new(ANSWER).exists() {
        return eprintln!("skipped: ../shared is not beside this checkout");
    }
    let parsed = read(&Jarvislabs, vec![page(std::fs::read(ANSWER).expect("the answer reads"))]).remove(SCOPE_ALL);
    let parsed = parsed.expect("a scope").expect("the answer parses");
    let line = |offer: &PublishedOffer| {
        let (label, region) = (offer.offer_label.as_deref().unwrap_or_default(), offer.region.as_deref().unwrap_or_default());
        format!("{label} {region} {} {}", offer.terms.pricing_model, offer.price.text)
    };
    let lines: Vec<_> = parsed.offers.iter().map(line).collect();
    assert_eq!(
        lines[..6],
        [
            "L4 india-noida-01 on_demand 0.44",
            "L4 india-noida-01 spot 0.29",
            "A100-80GB india-noida-01 on_demand 1.49",
            "RTX PRO 6000 india-chennai-01 on_demand 1.89",
            "RTX PRO 6000 india-noida-01 on_demand 1.89",
            "H100 europe-01 on_demand 2.99",
        ]
    );
    assert_eq!(parsed.out_of_scope["repeated price"], 1, "the virtual machine of the L4");
    assert_eq!(parsed.out_of_scope["spot of a virtual machine, which is for containers only"], 3);
    assert!(parsed.skipped.is_empty() && parsed.unread_fields.is_empty(), "{parsed:?}");
}

#[test]
fn two_spellings_of_a_card_in_one_region_are_one_offer_that_is_available_if_either_is() {
    let recordings = recordings::of("jarvislabs");
    let recording = recordings.iter().find(|recording| recording.case == "server-meta-two-spellings").expect("the recording");
    let offers = Jarvislabs.parse(&recording.pages).expect("it parses").offers;
    let of_the_card = |offer: &&PublishedOffer| offer.region.as_deref() == Some("india-chennai-01");
    let line = |offer: &PublishedOffer| (offer.offer_label.clone(), offer.terms.pricing_model, offer.terms.availability);
    let lines: Vec<_> = offers.iter().filter(of_the_card).map(line).collect();
    let read = |model| (Some("RTX PRO 6000".to_owned()), model, Some(Availability::Available));
    assert_eq!(lines, [read(PricingModel::OnDemand), read(PricingModel::Spot)]);
}

#[test]
fn page_and_answer_have_no_offer_in_common_because_the_page_names_no_region() {
    let recorded = |case: &str| {
        let recording = recordings::of("jarvislabs").into_iter().find(|recording| recording.case == case).expect("the recording");
        Jarvislabs.parse(&recording.pages).expect("it parses").offers
    };
    assert!(recorded("2026-08-22").iter().all(|offer| offer.region.is_none()));
    assert!(recorded("server-meta").iter().all(|offer| offer.region.is_some()));
    let scope = |has_key| MANIFEST.start(has_key).remove(0).scope;
    assert_eq!((scope(false).as_str(), scope(true).as_str()), ("all@page", "all"));
}

#[test]
fn a_catalogue_made_from_an_answer_multiplies_our_unit() {
    let Ok(text) = std::fs::read_to_string(CATALOGUE) else { return eprintln!("skipped: ../shared is not beside this checkout") };
    let mut by_card = std::collections::BTreeMap::new();
    for row in csv::Reader::from_reader(text.as_bytes()).records().map(|row| row.expect("a row")) {
        if !row[1].is_empty() {
            let (count, price) = (number(&row[2], "count").expect("a count"), number(&row[8], "price").expect("a price"));
            by_card.entry(row[1].to_owned()).or_insert_with(Vec::new).push(price / count);
        }
    }
    // Machines of one, two, four and eight GPUs cost as much for each GPU, so that a price of one says all.
    assert_eq!(by_card.len(), 4);
    assert!(by_card.values().all(|prices| prices.len() == 4 && prices.iter().all(|price| *price == prices[0])), "{by_card:?}");
}
