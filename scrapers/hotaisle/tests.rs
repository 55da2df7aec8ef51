//! Checks of how a card is cut, and of what is no card.

use super::*;
use crate::recordings;

fn recorded(case: &str) -> Parsed {
    let recording = recordings::of("hotaisle").into_iter().find(|recording| recording.case == case).expect("the recording");
    Hotaisle.parse(&recording.pages).expect("it parses")
}

#[test]
fn a_card_is_cut_alike_whatever_stands_between_its_parts() {
    for text in ["VM Small – 1x MI300x – $2.99/GPU/hr", "VM Small 1x MI300x $2.99/GPU/hr", "VM Small - 1x MI300x - $2.99 /GPU/hr"]
    {
        let expected = Card { name: "VM Small", counts: vec![1], gpu: "MI300x", price: "$2.99", note: "" };
        assert_eq!(card(text), Ok(expected), "{text}");
    }
    for text in
        ["VM Small – MI300x – $2.99/GPU/hr", "VM Small – 0x MI300x – $2.99/GPU/hr", "VM $2.99/GPU/hr", "VM Small – 1x MI300x"]
    {
        assert!(card(text).is_err(), "{text}");
    }
}

#[test]
fn a_card_of_two_sizes_is_two_offers() {
    let parsed = recorded("2026-08-22");
    let lines: Vec<_> = parsed.offers.iter().map(|offer| offer.offer_label.clone().unwrap_or_default()).collect();
    assert_eq!(lines, ["VM Small 1x MI300x", "VM Medium 2x MI300x", "VM Medium 4x MI300x", "Bare metal Large 8x MI300x"]);
}

#[test]
fn bare_metal_is_for_a_month_and_dearer() {
    let parsed = recorded("2026-08-22");
    let (small, metal) = (&parsed.offers[0], &parsed.offers[3]);
    assert_eq!((metal.terms.pricing_model, metal.terms.commitment_months), (PricingModel::Subscription, Some(1)));
    assert_eq!((small.machine.is_bare_metal, metal.machine.is_bare_metal), (Some(false), Some(true)));
    assert!(metal.price.amount > small.price.amount);
}

#[test]
fn a_rate_of_older_customers_in_a_text_is_never_taken() {
    let parsed = recorded("2026-08-22");
    assert!(parsed.offers.iter().all(|offer| offer.price.text != "$1.99"));
    assert_eq!(parsed.out_of_scope["a price in a text"], 1);
}
