//! The real price list, and what no recording shows: lists of several pages.

use super::shapes::TABLE;
use super::*;
use crate::recordings::{self, Recording};

const PRICE_LIST: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../shared/samples/oci/products_gpu_usd_2026-08-22.json");
const CPU_SHAPES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../shared/samples/oci/estimator_shapes_excerpt.json");

/// USD for one GPU and hour by part, as documented for 2026-08-22.
const AMOUNTS: [(&str, &str, &str); 16] = [
    ("B88517", "P100", "1.275"),
    ("B88518", "P100", "1.275"),
    ("B89734", "V100 SXM2 16GB", "2.95"),
    ("B92740", "A100 SXM 40GB", "3.05"),
    ("B95907", "A100 SXM 80GB", "4"),
    ("B95909", "A10", "2"),
    ("B109479", "L40S", "3.5"),
    ("B98415", "H100 SXM", "10"),
    ("B110519", "H200 SXM", "10"),
    ("B109485", "MI300X", "6"),
    ("B111758", "MI355X", "8.6"),
    ("B110978", "B200", "14"),
    ("B112237", "B300", "15"),
    ("B110979", "GB200", "16"),
    ("B112140", "GB300", "18"),
    ("B112613", "RTX PRO 6000 Server", "4.5"),
];

fn newest() -> Recording {
    recordings::newest("oci").expect("a dated recording")
}

fn page(name: &str, url: &str, body: &str) -> Page {
    Page { name: name.to_owned(), url: url.to_owned(), body: body.as_bytes().to_vec(), ..newest().pages[0].clone() }
}

/// A page from a real file, or `None` where the folder is not there.
fn real(path: &str) -> Option<Page> {
    let Ok(body) = std::fs::read_to_string(path) else {
        eprintln!("skipped: ../shared is not beside this checkout");
        return None;
    };
    Some(page("a file", path, &body))
}

/// Amounts and GPU labels by part, each once.
fn amounts(parsed: &Parsed) -> std::collections::BTreeSet<(String, String, String)> {
    let row = |offer: &crate::contract::PublishedOffer| {
        let (sku, label) = (offer.sku.clone().expect("a part"), offer.gpu.label.clone().expect("a card"));
        (sku, label, offer.price.amount.to_string())
    };
    parsed.offers.iter().map(row).collect()
}

fn expected_amounts() -> std::collections::BTreeSet<(String, String, String)> {
    AMOUNTS.iter().map(|(part, gpu, amount)| ((*part).to_owned(), (*gpu).to_owned(), (*amount).to_owned())).collect()
}

#[test]
fn the_real_price_list_has_the_documented_amounts() {
    let Some(page) = real(PRICE_LIST) else { return };
    let parsed = Oci.parse(&[page]).expect("the real list reads");
    assert_eq!(amounts(&parsed), expected_amounts());
    assert_eq!((parsed.offers.len(), parsed.skipped.len()), (21, 0));
    let left_out: Vec<_> = parsed.out_of_scope.iter().map(|(reason, rows)| (*reason, *rows)).collect();
    let expected = [("licence added to a GPU", 8), ("not in category Compute - GPU", 10), ("twin part, shape not confirmed", 1)];
    assert_eq!(left_out, expected);
    assert!(parsed.unread_fields.is_empty(), "{:?}", parsed.unread_fields);
    let h100 = parsed.offers.iter().find(|offer| offer.instance_type.as_deref() == Some("BM.GPU.H100.8")).expect("H100");
    assert_eq!((h100.price.text.as_str(), h100.gpu.count.expect("a count").to_string()), ("10", "8".to_owned()));
}

#[test]
fn real_shapes_without_gpus_are_no_offers_and_no_empty_night() {
    let (Some(products), Some(shapes)) = (real(PRICE_LIST), real(CPU_SHAPES)) else { return };
    assert_eq!(Oci.parse(&[products, shapes]).expect_err("no GPU shape").code(), "nothing_found");
}

#[test]
fn the_recording_has_the_documented_amounts_in_any_order_of_its_pages() {
    let mut pages = newest().pages;
    let parsed = Oci.parse(&pages).expect("the recording reads");
    assert_eq!(amounts(&parsed), expected_amounts());
    pages.reverse();
    let reversed = Oci.parse(&pages).expect("the recording reads");
    assert_eq!(parsed.offers, reversed.offers);
}

#[test]
fn every_part_and_shape_of_the_table_stands_once_and_ends_in_its_number_of_gpus() {
    let mut numbers: Vec<_> = TABLE.parts.iter().map(|part| part.number.as_str()).collect();
    let mut names: Vec<_> = TABLE.parts.iter().flat_map(|part| &part.shapes).map(|shape| shape.name.as_str()).collect();
    let (parts, shapes) = (numbers.len(), names.len());
    numbers.sort_unstable();
    numbers.dedup();
    names.sort_unstable();
    names.dedup();
    assert_eq!((numbers.len(), names.len()), (parts, shapes));
    for shape in TABLE.parts.iter().flat_map(|part| &part.shapes) {
        let offer = shape.offer();
        assert!(offer.name.ends_with(&format!(".{}", offer.gpus)), "{}", offer.name);
        assert!(offer.name.starts_with(if offer.is_bare_metal { "BM." } else { "VM." }), "{}", offer.name);
    }
}

#[test]
fn a_list_of_two_pages_is_followed_and_read_as_one() {
    let item = |number: &str, name: &str, value: &str| {
        format!(
            r#"{{"partNumber":"{number}","displayName":"Compute - GPU - {name}","metricName":"GPU Per Hour","serviceCategory":"Compute - GPU","currencyCodeLocalizations":[{{"currencyCode":"USD","prices":[{{"model":"PAY_AS_YOU_GO","value":{value}}}]}}]}}"#
        )
    };
    let start = MANIFEST.pages[0].url.clone();
    let body = format!(
        r#"{{"items":[{}],"links":[{{"rel":"self","href":"/x"}},{{"rel":"next","href":"/x?page=2"}}]}}"#,
        item("B98415", "H100", "10")
    );
    let first = page("products", &start, &body);
    let requests = Oci.follow(&first).expect("the list reads");
    let next = &requests[0];
    assert_eq!((next.name.as_str(), next.url.as_str()), ("products-2", "https://apexapps.oracle.com/x?page=2"));
    assert_eq!(Oci.parse(std::slice::from_ref(&first)).expect_err("a page is missing").code(), "page_missing");

    let second = page(&next.name, &next.url, &format!(r#"{{"items":[{}]}}"#, item("B109479", "L40S", "3.5")));
    assert_eq!(Oci.follow(&second), Ok(Vec::new()));
    let parsed = Oci.parse(&[first, second]).expect("both pages read");
    let shapes: Vec<_> = parsed.offers.iter().filter_map(|offer| offer.instance_type.as_deref()).collect();
    assert_eq!(shapes, ["BM.GPU.H100.8", "BM.GPU.L40S.4"]);
}

#[test]
fn a_next_page_on_another_host_or_the_same_page_is_refused() {
    for href in ["https://apexapps.oracle.com.example/x", "http://apexapps.oracle.com/x", MANIFEST.pages[0].url.as_str()] {
        let body = format!(r#"{{"items":[{{"currencyCodeLocalizations":[]}}],"links":[{{"rel":"next","href":"{href}"}}]}}"#);
        let first = page("products", &MANIFEST.pages[0].url, &body);
        assert_eq!(Oci.follow(&first).expect_err("refused").code(), "shape_changed", "{href}");
    }
}
