//! Seeweb held against another project's catalogue of its plans.

use crate::money;
use rust_decimal::Decimal;

use crate::oracles::{Comparison, Oracle, shared};
use crate::trackers;

inventory::submit!(Oracle(compare));

fn compare() -> Vec<Option<Comparison>> {
    vec![plans()]
}

fn plans() -> Option<Comparison> {
    let what = "Euros an hour of every plan with a card in a catalogue made from the keyed list in 2026, against the page's price of one card times the cards. The catalogue takes its euros for dollars; the page was typed from the same price list.";
    let mut comparison = Comparison::with("seeweb", "samples/seeweb/skypilot_catalog_2026.csv", what)?;
    let offers = trackers::recorded("seeweb");
    let mut rows = csv::Reader::from_path(shared(comparison.source)).expect("the catalogue opens");
    for row in rows.records().map(|row| row.expect("a row reads")).filter(|row| !row[1].is_empty()) {
        let (name, count) = (row[1].to_owned(), row[2].parse::<u32>().expect("a count"));
        // The plans write two cards in another way than the page.
        let card = match name.as_str() {
            "RTXA6000" => "RTX A6000",
            "RTX PRO 6000 96GB" => "RTX PRO 6000",
            "A100" => "A100 80GB",
            other => other,
        };
        let is_it = |offer: &&crate::contract::PublishedOffer| {
            offer.gpu.label.as_deref() == Some(card) && offer.gpu.count == Some(count.into())
        };
        let ours = offers.iter().find(is_it).and_then(trackers::per_gpu_hour).map(|eur| eur * Decimal::from(count));
        assert_eq!(ours, money::decimal(&row[5]), "{row:?}");
        comparison.agree();
    }
    Some(comparison)
}
