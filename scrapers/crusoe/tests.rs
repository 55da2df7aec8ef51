//! Checks against stored pages, of columns, and of what the layouts say of each other.

use std::path::Path;

use chrono::{DateTime, Utc};

use super::*;
use crate::contract::SCOPE_ALL;
use crate::{read, recordings};

const SAMPLES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../shared/samples/crusoe/");

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
    recordings::of("crusoe").into_iter().find(|recording| recording.case == case).expect("the recording").pages
}

fn recorded(case: &str) -> Parsed {
    Crusoe.parse(&pages(case)).expect("it parses")
}

fn lines(parsed: &Parsed) -> Vec<String> {
    let line = |offer: &PublishedOffer| {
        let label = offer.offer_label.as_deref().unwrap_or_default();
        let months = offer.terms.commitment_months.map(|months| format!(" {months} months")).unwrap_or_default();
        format!("{label} {}{months} {}", offer.terms.pricing_model, offer.price.amount)
    };
    parsed.offers.iter().map(line).collect()
}

#[test]
fn the_page_of_2026_gives_six_cards_on_demand_and_twelve_cells_on_request() {
    let Some(page) = stored("crusoe_pricing_2026_rebuilt.html") else { return };
    let parsed = Crusoe.parse(&[page]).expect("the page parses");
    assert_eq!(
        lines(&parsed),
        [
            "NVIDIA H200 141GB HGX on_demand 4.29",
            "NVIDIA H100 80GB HGX on_demand 3.9",
            "NVIDIA A100 80GB SXM on_demand 2.3",
            "NVIDIA A100 80GB PCIe on_demand 2",
            "NVIDIA L40S 48GB on_demand 1.5",
            "AMD MI300X 192GB on_demand 3.45",
        ]
    );
    assert!(parsed.skipped.iter().all(|row| matches!(row.reason, SkipReason::PriceOnRequest { .. })), "{:?}", parsed.skipped);
    assert_eq!(parsed.skipped.len(), 12);
    assert_eq!(lines(&parsed), lines(&recorded("2026-08-22")), "the typed recording says the same");
}

#[test]
fn the_excerpt_of_2025_12_gives_its_three_prices_and_its_broken_card_none() {
    let Some(page) = stored("crusoe_20251215002446.html") else { return };
    let parsed = Crusoe.parse(std::slice::from_ref(&page)).expect("the excerpt parses");
    assert_eq!(
        lines(&parsed),
        ["NVIDIA H200 141GB HGX on_demand 4.29", "NVIDIA H100 80GB HGX on_demand 3.9", "NVIDIA H100 80GB HGX spot 1.6"]
    );
    let broken: Vec<_> = parsed.skipped.iter().filter(|row| !row.reason.is_stated_by_source()).collect();
    assert!(broken.iter().all(|row| row.place.at == "card 5"), "{broken:?}");
    let refused = read(&Crusoe, vec![page]).remove(SCOPE_ALL).expect("a scope").expect_err("an excerpt is no night");
    assert_eq!(refused.to_string(), "1 of 4 rows were not understood, first `NVIDIA A100`: field `tag of the memory` is missing");
}

#[test]
fn a_column_is_known_by_its_header_alone() {
    let of = |header| terms(header).map(|terms| (terms.pricing_model, terms.commitment_months));
    for header in ["On-demand", "On-Demand", "on demand"] {
        assert_eq!(of(header), Some((PricingModel::OnDemand, None)), "{header}");
    }
    assert_eq!(of("Current spot"), Some((PricingModel::Spot, None)));
    for (header, months) in [
        ("6-month", 6),
        ("6-month reserved", 6),
        ("1-year", 12),
        ("1 year reserved", 12),
        ("3-year reserved", 36),
        ("Reserved 3 years", 36),
    ] {
        assert_eq!(of(header), Some((PricingModel::Reserved, Some(months))), "{header}");
    }
    for header in ["Reserved", "year", "0-month", "1-year spot", "On-demand from", "1-week", "99-year", "4294967295-year", ""] {
        assert_eq!(of(header), None, "{header}");
    }
}

#[test]
fn table_and_cards_call_the_same_thing_by_the_same_name() {
    let (table, cards) = (recorded("2025-05-15"), recorded("2026-03-06"));
    let on_demand = |parsed: &Parsed| {
        let of = parsed.offers.iter().filter(|offer| offer.terms.pricing_model == PricingModel::OnDemand);
        of.map(|offer| (offer.offer_label.clone(), offer.price.amount)).collect::<std::collections::BTreeSet<_>>()
    };
    assert_eq!(on_demand(&table), on_demand(&cards), "no price on demand changed between them");
}

#[test]
fn an_a100_is_its_name_and_both_tags() {
    let parsed = recorded("2026-03-06");
    let cards: Vec<_> = parsed.offers.iter().filter(|offer| offer.gpu.label.as_deref() == Some("NVIDIA A100")).collect();
    let names: std::collections::BTreeSet<_> = cards.iter().filter_map(|offer| offer.offer_label.as_deref()).collect();
    assert_eq!((cards.len(), names.len()), (6, 3), "{names:?}");
    let sxm = cards.iter().find(|offer| offer.offer_label.as_deref() == Some("NVIDIA A100 80GB SXM")).expect("the card");
    assert_eq!((sxm.gpu.form_factor.as_deref(), sxm.gpu.memory_gb), (Some("SXM"), Some(80.into())));
}

#[test]
fn either_class_of_a_card_is_enough_and_a_cell_on_request_keeps_its_place() {
    let whole = recorded("2026-08-22");
    for case in ["class-spelled-right", "inner-class-gone"] {
        assert_eq!(recorded(case).offers, whole.offers, "{case}");
    }
    let months = |parsed: &Parsed, label: &str| {
        let of = parsed.offers.iter().filter(|offer| offer.offer_label.as_deref() == Some(label));
        of.map(|offer| (offer.terms.commitment_months, offer.price.text.clone())).collect::<Vec<_>>()
    };
    let text = |price: &str| price.to_owned();
    assert_eq!(
        months(&recorded("reservations-on-cards"), "NVIDIA H200 141GB HGX"),
        [(None, text("$4.29/GPU-hr")), (Some(6), text("$3.43/GPU-hr")), (Some(36), text("$2.79/GPU-hr"))]
    );
    assert_eq!(
        months(&recorded("table-on-demand-on-request"), "AMD MI300X 192GB"),
        [(None, text("$ 0.95/hr")), (Some(6), text("$ 2.76/hr")), (Some(12), text("$ 2.59/hr")), (Some(36), text("$ 2.24/hr"))]
    );
}

#[test]
fn nothing_but_a_price_of_a_gpu_is_ever_taken() {
    for recording in recordings::of("crusoe") {
        let Ok(parsed) = Crusoe.parse(&recording.pages) else { continue };
        for offer in parsed.offers {
            let text = &offer.price.text;
            assert!(text.ends_with(UNIT) || recording.pages[0].text().is_ok_and(|page| page.contains("<table>")), "{text}");
            assert!(offer.flags.contains(MACHINE_NOT_STATED) && offer.region.is_none(), "{offer:?}");
        }
    }
    assert_eq!(recorded("other-cards-below-the-gpus").offers, recorded("2026-08-22").offers);
}

#[test]
fn a_page_cut_anywhere_is_refused() {
    let whole = pages("2026-08-22").remove(0);
    let end = whole.text().expect("the page is text").find("</html>").expect("the page ends");
    for length in (1..=end).step_by(211) {
        let cut = Page { body: whole.body[..length].to_vec(), ..whole.clone() };
        assert!(read(&Crusoe, vec![cut]).values().all(Result::is_err), "cut at {length}");
    }
}
