//! Checks of the two modes, and of the second reading that the page holds of itself.

use super::*;
use crate::recordings;

fn recorded(case: &str) -> Parsed {
    let recording = recordings::of("thundercompute").into_iter().find(|recording| recording.case == case).expect("the recording");
    Thundercompute.parse(&recording.pages).expect("it parses")
}

#[test]
fn the_two_modes_of_a_card_are_two_offers() {
    let parsed = recorded("2026-06-21");
    let of_l40: Vec<_> = parsed.offers.iter().filter(|offer| offer.offer_label.as_deref() == Some("L40")).collect();
    let lines: Vec<_> =
        of_l40.iter().map(|offer| (offer.terms.plan.as_deref(), offer.price.text.as_str(), offer.terms.tenancy)).collect();
    assert_eq!(lines, [(Some("prototyping"), "$0.89", Some(Tenancy::Shared)), (Some("production"), "$1.39", None)]);
}

#[test]
fn a_page_without_modes_says_so_on_every_offer() {
    let parsed = recorded("2026-08-22");
    assert_eq!(parsed.offers.len(), 4);
    assert!(parsed.offers.iter().all(|offer| offer.terms.plan.is_none() && offer.flags.contains(MODE_NOT_STATED)));
}

#[test]
fn a_rise_of_more_than_double_is_read_and_not_dropped() {
    let price = |case: &str| {
        let parsed = recorded(case);
        let h100 = parsed.offers.iter().find(|offer| offer.offer_label.as_deref() == Some("H100 PCIe")).expect("the card");
        h100.price.amount
    };
    assert!(price("2026-08-22") > price("2026-06-21") * Decimal::TWO);
}

#[test]
fn the_data_for_search_engines_is_compared_and_never_taken() {
    let parsed = recorded("data-lags");
    let h100 = parsed.offers.iter().find(|offer| offer.offer_label.as_deref() == Some("H100 PCIe")).expect("the card");
    assert_eq!((h100.price.text.as_str(), h100.flags.contains(DATA_DIFFERS)), ("$3.19", true));
    assert_eq!(parsed.offers.iter().filter(|offer| offer.flags.contains(DATA_DIFFERS)).count(), 1);
}

#[test]
fn a_page_whose_data_is_in_another_currency_is_refused() {
    let mut page = recordings::newest("thundercompute").expect("a recording").pages.remove(0);
    page.body = page.text().expect("it is text").replace("\"priceCurrency\": \"USD\"", "\"priceCurrency\": \"CAD\"").into_bytes();
    let error = Thundercompute.parse(&[page]).map(|_| ()).expect_err("the dollars may be Canadian");
    assert!(error.to_string().contains("`USD`, found `CAD`"), "{error}");
}

#[test]
fn a_card_that_does_not_say_that_its_processors_are_included_says_that_they_are_billed_apart() {
    let of_a100 = |case: &str| {
        let parsed = recorded(case);
        let a100 = parsed.offers.into_iter().find(|offer| offer.offer_label.as_deref() == Some("A100 80GB")).expect("the card");
        (a100.price.text, a100.machine.vcpus, a100.flags.contains(PROCESSORS_BILLED_APART))
    };
    let read = |vcpus: u32, is_marked: bool| ("$1.09".to_owned(), Some(Decimal::from(vcpus)), is_marked);
    assert_eq!(of_a100("2026-08-22"), read(4, true));
    assert_eq!(of_a100("eight-processors"), read(8, true));
    assert_eq!(of_a100("processors-included"), read(4, false));
}

#[test]
fn processors_in_other_words_are_no_number_and_are_not_taken_for_included() {
    for said in ["80 GB", "80 GB vCPUs 4–18", "80 GB vCPUs up to 18", "80 GB vCPUs not included", "80 GB vCPUs 0"] {
        let read = processors(said);
        assert!(read.count.is_none() && !read.are_included, "{said}");
    }
}
