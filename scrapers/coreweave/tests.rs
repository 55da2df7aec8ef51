//! Checks against stored pages, of numbers with footnotes, and of copies.

use std::path::Path;

use chrono::{DateTime, Utc};
use num_rational::Ratio;

use super::*;
use crate::contract::{PricePer, SCOPE_ALL};
use crate::{read, recordings};

const SAMPLES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../shared/samples/coreweave/");

fn stored(file: &str) -> Option<Page> {
    let path = format!("{SAMPLES}{file}");
    if !Path::new(&path).exists() {
        eprintln!("skipped: ../shared is not beside this checkout");
        return None;
    }
    let body = std::fs::read(&path).expect("the page reads");
    let (sha256, observed_at) = (crate::sha256(&body), DateTime::<Utc>::UNIX_EPOCH);
    Some(Page { name: "pricing".to_owned(), scope: SCOPE_ALL.to_owned(), url: String::new(), observed_at, sha256, body })
}

fn pages(case: &str) -> Vec<Page> {
    recordings::of("coreweave").into_iter().find(|recording| recording.case == case).expect("the recording").pages
}

fn recorded(case: &str) -> Parsed {
    Coreweave.parse(&pages(case)).expect("it parses")
}

fn lines(parsed: &Parsed) -> Vec<String> {
    let line = |offer: &PublishedOffer| {
        let (product, region) = (offer.instance_type.as_deref().unwrap_or_default(), offer.region.as_deref().unwrap_or_default());
        let count = offer.gpu.count.unwrap_or_default();
        format!("{product} {region} {count} {} {}", offer.terms.pricing_model, offer.price.text)
    };
    parsed.offers.iter().map(line).collect()
}

#[test]
fn the_page_of_2026_gives_nine_prices_on_demand_and_nine_of_spot_in_north_america() {
    let Some(page) = stored("coreweave_pricing_2026_na_excerpt.html") else { return };
    let parsed = Coreweave.parse(&[page]).expect("the page parses");
    assert_eq!(
        lines(&parsed),
        [
            "nvidia-gb200-nvl72 NORTH AMERICA 4 on_demand $42.00",
            "nvidia-b300 NORTH AMERICA 8 spot $35.84",
            "nvidia-b200 NORTH AMERICA 8 on_demand $68.80",
            "nvidia-b200 NORTH AMERICA 8 spot $34.11",
            "nvidia-rtx-pro-6000-blackwell-server-edition NORTH AMERICA 8 on_demand $20.00",
            "nvidia-rtx-pro-6000-blackwell-server-edition NORTH AMERICA 8 spot $11.09",
            "nvidia-rtx-pro-6000-blackwell-server-edition-standard-memory NORTH AMERICA 8 spot $9.56",
            "nvidia-gh200 NORTH AMERICA 1 on_demand $6.50",
            "hgx-h100 NORTH AMERICA 8 on_demand $49.24",
            "hgx-h100 NORTH AMERICA 8 spot $19.71",
            "nvidia-l40 NORTH AMERICA 8 on_demand $10.00",
            "nvidia-l40 NORTH AMERICA 8 spot $6.27",
            "hgx-h200 NORTH AMERICA 8 on_demand $50.44",
            "hgx-h200 NORTH AMERICA 8 spot $20.93",
            "nvidia-l40s NORTH AMERICA 8 on_demand $18.00",
            "nvidia-l40s NORTH AMERICA 8 spot $7.88",
            "nvidia-a100 NORTH AMERICA 8 on_demand $21.60",
            "nvidia-a100 NORTH AMERICA 8 spot $9.65",
        ]
    );
    assert!(parsed.skipped.iter().all(|row| matches!(row.reason, SkipReason::PriceOnRequest { .. })), "{:?}", parsed.skipped);
    assert_eq!(parsed.skipped.len(), 4, "three machines in North America and one in Europe are on request");
    assert_eq!(parsed.out_of_scope["a price of one GPU for inference"], 9);
    assert!(parsed.unread_fields.is_empty(), "{:?}", parsed.unread_fields);
    let typed = recorded("2026-08-22");
    let content = |parsed: &Parsed| parsed.offers.iter().map(|offer| format!("{offer:?}")).collect::<Vec<_>>();
    assert_eq!(content(&parsed), content(&typed), "the typed recording says the same, sizes and places too");
}

#[test]
fn the_page_of_2023_prices_components_and_is_refused() {
    let Some(page) = stored("coreweave_20230921194906.html") else { return };
    let error = Coreweave.parse(&[page]).expect_err("components").to_string();
    let expected = "page `pricing` changed shape at `.table-v2.gpu-pricing`: expected tables of machines and their prices, found \
                    prices of components, without processors and memory";
    assert_eq!(error, expected);
}

#[test]
fn a_footnote_never_becomes_a_digit_of_a_count() {
    for (text, number) in [("4^1", 4), ("8^12", 8), ("4¹", 4), ("4*", 4), ("1", 1), ("2", 2), ("8", 8)] {
        assert_eq!(count(text), Ok(number), "{text}");
    }
    for text in ["41", "81", "11", "4 1", "4^", "^1", "4^a", "4^1^2", "", "0", "04", "+4", "four", "1/8", "0.5", "72"] {
        assert!(count(text).is_err(), "{text}");
    }
    let of = |case: &str| {
        let of_it = |offer: &PublishedOffer| offer.instance_type.as_deref() == Some("nvidia-gb200-nvl72");
        recorded(case).offers.into_iter().find(of_it).map(|offer| (offer.gpu.count, offer.price.per))
    };
    let four = Some((Some(Ratio::from(4)), PricePer::Instance));
    assert_eq!((of("2026-08-22"), of("footnote-as-a-sign"), of("footnote-as-an-element")), (four, four, None));
}

#[test]
fn copies_of_a_row_change_nothing_whatever_they_stand_below() {
    let whole = recorded("2026-08-22").offers;
    for case in ["copy-below-another-heading", "copy-without-a-region", "phone-copy-gone"] {
        assert_eq!(recorded(case).offers, whole, "{case}");
    }
    // A price of no region is no price of the region above it.
    for case in ["price-without-a-region", "second-region-missing"] {
        assert_eq!(recorded(case).offers, whole, "{case}");
    }
}

#[test]
fn no_price_of_inference_and_no_component_is_ever_taken() {
    let inference = ["$10.50", "$8.60", "$2.50", "$6.16", "$1.25", "$6.31", "$2.25", "$2.70", "$4.76", "$4.25", "$2.21"];
    for recording in recordings::of("coreweave") {
        let Ok(parsed) = Coreweave.parse(&recording.pages) else { continue };
        let taken = parsed.offers.iter().find(|offer| inference.contains(&offer.price.text.as_str()));
        assert!(taken.is_none(), "{}: {taken:?}", recording.case);
        assert!(parsed.offers.iter().all(|offer| offer.price.per == PricePer::Instance && offer.region.is_some()));
    }
}

#[test]
fn a_machine_of_the_high_memory_is_another_than_one_of_the_standard_memory() {
    let offers = recorded("2026-08-22").offers;
    let spot: Vec<_> = offers
        .iter()
        .filter(|offer| offer.instance_type.as_deref().is_some_and(|name| name.contains("rtx-pro")))
        .filter(|offer| offer.terms.pricing_model == PricingModel::Spot)
        .map(|offer| (offer.machine.system_memory_gib, offer.price.amount))
        .collect();
    assert_eq!(spot, [(Some(1_024.into()), Decimal::new(1_109, 2)), (Some(512.into()), Decimal::new(956, 2))]);
}

#[test]
fn a_page_cut_anywhere_is_refused() {
    let whole = pages("2026-08-22").remove(0);
    let end = whole.text().expect("the page is text").find("</html>").expect("the page ends");
    for length in (1..=end).step_by(499) {
        let cut = Page { body: whole.body[..length].to_vec(), ..whole.clone() };
        assert!(read(&Coreweave, vec![cut]).values().all(Result::is_err), "cut at {length}");
    }
}
