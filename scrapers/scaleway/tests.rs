//! Checks against a stored answer of the catalogue, and of pages that lead on.

use std::path::Path;

use chrono::{DateTime, Utc};

use super::*;
use crate::contract::SCOPE_ALL;
use crate::{read, recordings};

const ANSWER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../shared/samples/scaleway/product_catalog_fixture.json");
const URL: &str = "https://api.scaleway.com/product-catalog/v2alpha1/public-catalog/products?page_size=1000&page=1";

fn page(name: &str, url: &str, body: impl Into<Vec<u8>>) -> Page {
    let body = body.into();
    Page {
        name: name.to_owned(),
        scope: SCOPE_ALL.to_owned(),
        url: url.to_owned(),
        observed_at: DateTime::<Utc>::UNIX_EPOCH,
        sha256: crate::sha256(&body),
        body,
    }
}

fn stored() -> Option<String> {
    if !Path::new(ANSWER).exists() {
        eprintln!("skipped: ../shared is not beside this checkout");
        return None;
    }
    Some(std::fs::read_to_string(ANSWER).expect("the answer reads"))
}

#[test]
fn seventeen_of_5452_rows_are_no_night() {
    let Some(text) = stored() else { return };
    let results = read(&Scaleway, vec![page("products", URL, text)]);
    let refused = results[SCOPE_ALL].as_ref().expect_err("an excerpt is no night");
    assert_eq!(refused.to_string(), "page `products` changed shape at /total_count: expected 5452 rows in all, found 17");
}

#[test]
fn the_stored_rows_give_one_machine_of_60_euros_an_hour_by_the_minute() {
    let Some(text) = stored() else { return };
    let total = Decimal::from(5452).to_string();
    assert!(text.contains(&total), "the answer states its total");
    let parsed = Scaleway.parse(&[page("products", URL, text.replace(&total, "17"))]).expect("the answer parses");
    let [offer] = parsed.offers.as_slice() else { panic!("{parsed:?}") };
    assert_eq!(offer.instance_type.as_deref(), Some("B300-SXM-8-288G"));
    assert_eq!(offer.region.as_deref(), Some("fr-par-2"));
    assert_eq!(offer.sku.as_deref(), Some("/compute/b300_sxm_8_288g/run_fr-par-2"));
    assert_eq!((offer.price.amount, offer.price.unit, offer.price.per), (Decimal::ONE, PriceUnit::Minute, PricePer::Instance));
    assert_eq!(offer.price.currency_code, "EUR");
    assert_eq!((offer.gpu.count, offer.gpu.memory_gb), (Some(Ratio::from(8)), Some(Decimal::from(288))));
    assert_eq!((offer.machine.vcpus, offer.machine.system_memory_gib), (Some(Decimal::from(224)), Some(Decimal::from(3840))));
    assert!(parsed.skipped.is_empty() && parsed.unread_fields.is_empty(), "{parsed:?}");
    assert_eq!(parsed.out_of_scope.values().sum::<u32>(), 16);
}

#[test]
fn memory_in_a_name_is_of_one_card_and_the_count_stands_before_it() {
    let recording = recordings::newest("scaleway").expect("there is a dated recording");
    let parsed = Scaleway.parse(&recording.pages).expect("the recording parses");
    let pair = parsed.offers.iter().find(|offer| offer.instance_type.as_deref() == Some("H100-2-80G")).expect("the machine");
    assert_eq!((pair.gpu.count, pair.gpu.memory_gb), (Some(Ratio::from(2)), Some(Decimal::from(80))));
    for offer in &parsed.offers {
        let name = offer.instance_type.as_deref().expect("every offer has a type");
        let is_by_the_minute = offer.price.unit == PriceUnit::Minute;
        assert_eq!(is_by_the_minute, name != "RENDER-S", "{name}");
    }
}

#[test]
fn pages_lead_on_until_the_total_is_reached() {
    let answer = |total: u32| format!(r#"{{"products":[{{"product":"x"}}],"total_count":{total}}}"#);
    let next = |url: &str, total| Scaleway.follow(&page("products", url, answer(total))).expect("the page leads on");
    assert_eq!(next(URL, 1000), []);
    let second = next(URL, 1001);
    assert_eq!((second[0].name.as_str(), second[0].url.as_str()), ("products-2", URL.replace("&page=1", "&page=2").as_str()));
    assert_eq!(next(&second[0].url, 2001)[0].name, "products-3");
    assert_eq!(next(&second[0].url, 2000), []);
    let empty = page("products", URL, r#"{"products":[],"total_count":5000}"#);
    assert_eq!(Scaleway.follow(&empty), Ok(Vec::new()), "an empty page ends the list and is then refused");
    assert!(Scaleway.follow(&page("products", "products.json", answer(5000))).is_err(), "an address without a page");
}
