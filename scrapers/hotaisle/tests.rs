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
        let card = card(text).expect("it is cut");
        assert_eq!((card.name.as_str(), card.gpu.as_str(), card.price.as_str()), ("VM Small", "MI300x", "$2.99"), "{text}");
        assert_eq!((card.counts, card.is_for_a_month, card.note.as_str()), (vec![1], false, ""), "{text}");
    }
    for text in
        ["VM Small – MI300x – $2.99/GPU/hr", "VM Small – 0x MI300x – $2.99/GPU/hr", "VM $2.99/GPU/hr", "VM Small – 1x MI300x"]
    {
        assert!(card(text).is_err(), "{text}");
    }
}

#[test]
fn a_name_is_a_kind_and_one_word_and_nothing_else_gets_into_it() {
    for text in [
        "VM Small promo 1x MI300x $2.99/GPU/hr",
        "VM – 1x MI300x – $2.99/GPU/hr",
        "VM 2x 1x MI300x $2.99/GPU/hr",
        "VM Small 1x MI300x from $2.99/GPU/hr",
        "VM Small 1x AMD MI300x $2.99/GPU/hr",
        "Bare metal Large InfiniBand 8x MI300x $3.39/GPU/hr (1 month minimum)",
        "Bare Metal Large 8x MI300x $3.39/GPU/hr (1 month minimum)",
        "Bare metal 8x MI300x $3.39/GPU/hr (1 month minimum)",
    ] {
        assert!(is_card(text) && card(text).is_err(), "{text}");
    }
}

#[test]
fn sizes_are_parted_by_a_stroke_or_by_and() {
    for sizes in ["2x/4x", "2x / 4x", "2x & 4x", "2x&4x"] {
        let text = format!("VM Medium – {sizes} MI300x – $2.99/GPU/hr");
        assert_eq!(card(&text).map(|card| (card.name, card.counts)), Ok(("VM Medium".to_owned(), vec![2, 4])), "{sizes}");
    }
}

#[test]
fn bare_metal_has_to_say_that_it_is_for_a_month_wherever_it_says_it() {
    let terms = |text: &str| {
        let card = card(text).expect("it is cut");
        let place = Place { page: "pricing".to_owned(), at: "card 1".to_owned() };
        offer(&card, 8, "a card", place).map(|offer| (offer.terms.pricing_model, offer.terms.commitment_months))
    };
    for text in [
        "Bare metal Large 8x MI300x $3.39/GPU/hr (1 month minimum)",
        "Bare metal Large 8x MI300x $3.39/GPU/hr One-month minimum",
        "Bare metal Large 8x MI300x – 1 month minimum – $3.39/GPU/hr",
        "Bare metal Large (one-month minimum) 8x MI300x $3.39/GPU/hr",
    ] {
        assert_eq!(terms(text), Ok((PricingModel::Subscription, Some(1))), "{text}");
    }
    for text in [
        "Bare metal Large 8x MI300x $3.39/GPU/hr",
        "Bare metal Large 8x MI300x $3.39/GPU/hr (11 month minimum)",
        "Bare metal Large 8x MI300x $3.39/GPU/hr (3 month minimum)",
        "VM Small 1x MI300x $2.99/GPU/hr (3 month minimum)",
    ] {
        assert!(matches!(terms(text), Err(SkipReason::UnknownWord { .. })), "{text}");
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
