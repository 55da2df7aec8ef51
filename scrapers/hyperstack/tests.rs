//! Checks against stored pages, and that page and pricebook are the same offers.

use std::path::Path;

use chrono::{DateTime, Utc};

use super::*;
use crate::contract::SCOPE_ALL;
use crate::recordings;

const SAMPLES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../shared/samples/hyperstack/");

fn page(name: &str, body: Vec<u8>) -> Page {
    let sha256 = crate::sha256(&body);
    let observed_at = DateTime::<Utc>::UNIX_EPOCH;
    Page { name: name.to_owned(), scope: SCOPE_ALL.to_owned(), url: String::new(), observed_at, sha256, body }
}

fn stored(file: &str) -> Option<Page> {
    let path = format!("{SAMPLES}{file}");
    if !Path::new(&path).exists() {
        eprintln!("skipped: ../shared is not beside this checkout");
        return None;
    }
    Some(page("pricing", std::fs::read(&path).expect("the page reads")))
}

fn lines(parsed: &Parsed) -> Vec<String> {
    let line = |offer: &PublishedOffer| {
        let (label, memory) = (offer.offer_label.as_deref().unwrap_or_default(), offer.gpu.memory_gb.unwrap_or_default());
        format!("{label} {memory} GB {} {}", offer.terms.pricing_model, offer.price.amount)
    };
    parsed.offers.iter().map(line).collect()
}

fn recorded(case: &str) -> Parsed {
    let recording = recordings::of("hyperstack").into_iter().find(|recording| recording.case == case).expect("the recording");
    Hyperstack.parse(&recording.pages).expect("it parses")
}

#[test]
fn the_page_of_2026_gives_thirteen_cards_on_demand_five_as_spot_and_no_floor() {
    let Some(page) = stored("hyperstack_pricing_2026_rebuilt.html") else { return };
    let parsed = Hyperstack.parse(&[page]).expect("the page parses");
    assert_eq!(
        lines(&parsed),
        [
            "NVIDIA B300 288 GB on_demand 7.4",
            "NVIDIA B200 192 GB on_demand 6",
            "NVIDIA H200 SXM 141 GB on_demand 3.99",
            "NVIDIA H100 SXM 80 GB on_demand 3.2",
            "NVIDIA H100 NVLink 80 GB on_demand 2.6",
            "NVIDIA H100 80 GB on_demand 2.5",
            "NVIDIA RTX Pro 6000 SE 96 GB on_demand 1.85",
            "NVIDIA A100 SXM 80 GB on_demand 1.6",
            "NVIDIA A100 NVLink 80 GB on_demand 1.4",
            "NVIDIA A100 80 GB on_demand 1.35",
            "NVIDIA L40 48 GB on_demand 1",
            "NVIDIA A6000 48 GB on_demand 0.5",
            "NVIDIA A4000 16 GB on_demand 0.15",
            "NVIDIA H100 80 GB spot 2",
            "NVIDIA RTX Pro 6000 SE 96 GB spot 1.48",
            "NVIDIA A100 80 GB spot 1.08",
            "NVIDIA L40 48 GB spot 0.8",
            "NVIDIA A6000 48 GB spot 0.4",
        ]
    );
    assert!(parsed.skipped.is_empty(), "{:?}", parsed.skipped);
    assert_eq!(parsed.out_of_scope["a price from which reservations start"], 12);
}

#[test]
fn the_page_of_2024_is_refused_at_the_place_that_it_lacks() {
    let Some(page) = stored("hyperstack_20240822101707.html") else { return };
    let error = Hyperstack.parse(&[page]).expect_err("another layout").to_string();
    assert_eq!(error, "page `pricing` changed shape at `#cloud-pricing`: expected exactly one element, found 0");
}

#[test]
fn page_and_pricebook_are_the_same_offers() {
    let (page, book) = (recorded("2026-08-22"), recorded("pricebook"));
    assert_eq!(lines(&page), lines(&book));
    for (of_page, of_book) in page.offers.iter().zip(&book.offers) {
        // All that an offer's id is made of, and what stands beside it.
        assert_eq!((&of_page.gpu, &of_page.terms, &of_page.flags), (&of_book.gpu, &of_book.terms, &of_book.flags));
        assert_eq!(
            (&of_page.region, &of_page.instance_type, &of_page.offer_label),
            (&of_book.region, &of_book.instance_type, &of_book.offer_label)
        );
    }
    assert_eq!(
        recorded("pricebook-discount").offers,
        book.offers
            .iter()
            .map(|offer| {
                let text = if offer.price.text == "2.50" && offer.terms.pricing_model == PricingModel::OnDemand {
                    "2.5"
                } else {
                    &offer.price.text
                };
                PublishedOffer { price: PublishedPrice { text: text.to_owned(), ..offer.price.clone() }, ..offer.clone() }
            })
            .collect::<Vec<_>>(),
        "a discount of the account changes no price"
    );
}

#[test]
fn a_key_asks_for_the_pricebook_and_no_key_for_the_page() {
    let names = |has_key| MANIFEST.start(has_key).into_iter().map(|request| request.name).collect::<Vec<_>>();
    assert_eq!((names(false), names(true)), (vec!["pricing".to_owned()], vec!["pricebook".to_owned()]));
}

#[test]
fn a_catalogue_agrees_card_by_card_where_prices_have_not_risen() {
    let path = format!("{SAMPLES}skypilot_catalog.csv");
    let Ok(text) = std::fs::read_to_string(path) else { return eprintln!("skipped: ../shared is not beside this checkout") };
    let offers = recorded("pricebook").offers;
    let (mut agree, mut risen) = (0, Vec::new());
    for row in csv::Reader::from_reader(text.as_bytes()).records().map(|row| row.expect("a row")) {
        let (card, count, price) = (&row[1], number(&row[2], "count"), number(&row[6], "price"));
        let (count, price) = (count.expect("a count"), price.expect("a price"));
        let label = pricebook::label(card).unwrap_or_else(|| panic!("{card} is not in the table of names"));
        let ours = offers.iter().find(|offer| offer.offer_label.as_deref() == Some(label)).expect("the card").price.amount;
        if ours * count == price { agree += 1 } else { risen.push((card.to_owned(), price / count < ours)) }
    }
    assert_eq!((agree, risen.len()), (18, 7));
    // The catalogue is of before the rise of the H100 in 2026, and has nothing dearer than we do.
    assert!(risen.iter().all(|(card, is_cheaper)| card.starts_with("H100-") && *is_cheaper), "{risen:?}");
}

#[test]
fn spot_prices_in_two_columns_are_those_of_five_without_their_memory() {
    let (five, two) = (recorded("2026-08-22"), recorded("spot-in-two-columns"));
    let essence = |offer: &PublishedOffer| (offer.offer_label.clone(), offer.terms.pricing_model, offer.price.clone());
    assert!(five.offers.iter().map(essence).eq(two.offers.iter().map(essence)));
    for offer in &two.offers {
        assert_eq!(offer.gpu.memory_gb.is_none(), offer.terms.pricing_model == PricingModel::Spot, "{offer:?}");
    }
}

#[test]
fn a_card_of_spot_prices_with_other_headers_is_refused() {
    for (from, to) in [
        ("Spot VM</span></div></div>", "Pricing</span></div></div>"),
        (
            "GPU Model</span></div><div class=\"page-price_card_row_item_col2\"><span>Spot VM",
            "GPU Model</span></div><div class=\"page-price_card_row_item_col2\"><span>Memory</span></div><div class=\"page-price_card_row_item_col3\"><span>Spot VM",
        ),
    ] {
        let cases = recordings::of("hyperstack");
        let mut page =
            cases.into_iter().find(|recording| recording.case == "spot-in-two-columns").expect("the recording").pages.remove(0);
        let text = page.text().expect("it is text");
        assert!(text.contains(from), "{from}");
        page.body = text.replace(from, to).into_bytes();
        assert!(Hyperstack.parse(&[page]).is_err(), "{to}");
    }
}
