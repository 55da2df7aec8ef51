//! Checks of the amounts and of what is no price of a GPU.

use rust_decimal::Decimal;

use super::*;
use crate::contract::{PricePer, PriceUnit};
use crate::{money, recordings};

fn recorded() -> (Page, Parsed) {
    let page = recordings::newest("modal").expect("a recording").pages[0].clone();
    let parsed = Modal.parse(std::slice::from_ref(&page)).expect("it parses");
    (page, parsed)
}

fn changed(from: &str, to: &str) -> Result<Parsed, ScrapeError> {
    let (mut page, _) = recorded();
    let text = page.text().expect("text").to_owned();
    assert!(text.contains(from), "{from}");
    page.body = text.replace(from, to).into_bytes();
    Modal.parse(&[page])
}

#[test]
fn a_price_of_a_second_keeps_its_digits_and_its_unit() {
    let (_, parsed) = recorded();
    assert_eq!(parsed.offers.len(), 11);
    let h100 = parsed.offers.iter().find(|offer| offer.offer_label.as_deref() == Some("Nvidia H100")).expect("the card");
    assert_eq!((h100.price.unit, h100.price.per), (PriceUnit::Second, PricePer::Gpu));
    assert_eq!(h100.price.amount * Decimal::from(3600), money::decimal("3.9492").expect("a number"));
}

#[test]
fn a_price_is_of_the_gpu_alone_and_says_so() {
    let (_, parsed) = recorded();
    for offer in &parsed.offers {
        assert!(offer.flags.contains(GPU_PART_ONLY) && offer.flags.contains(PREEMPTIBLE_BY_DEFAULT), "{offer:?}");
        assert_eq!((offer.machine.vcpus, offer.machine.system_memory_gib), (None, None));
    }
    assert_eq!(parsed.out_of_scope["processors and memory, which are billed apart"], 6, "three sets of two");
}

#[test]
fn a_comma_in_a_name_tells_two_memory_sizes_apart() {
    let (_, parsed) = recorded();
    let price = |label: &str| {
        parsed.offers.iter().find(|offer| offer.offer_label.as_deref() == Some(label)).map(|offer| offer.price.text.clone())
    };
    assert_eq!(price("Nvidia A100, 80 GB").as_deref(), Some("$0.000694 / sec"));
    assert_eq!(price("Nvidia A100, 40 GB").as_deref(), Some("$0.000583 / sec"));
}

#[test]
fn digits_with_an_exponent_are_not_guessed_at() {
    let parsed = changed("$0.001097 / sec", "$1.097e-3 / sec").expect("it parses");
    assert_eq!((parsed.offers.len(), parsed.skipped.len()), (10, 1));
    assert_eq!(parsed.skipped[0].reason.code(), "price_unreadable");
}

#[test]
fn a_page_that_shows_hours_only_is_refused() {
    assert!(matches!(changed(" / sec", " / h"), Err(ScrapeError::NothingFound { .. })));
}
