//! Lambda's prices held against two trackers.

use rust_decimal::Decimal;

use crate::contract::PublishedOffer;
use crate::oracles::{Comparison, Oracle, shared};
use crate::readings::{RENTALS, hold, recorded, rentals};
use crate::trackers::inflated;

inventory::submit!(Oracle(compare));

/// Folder of a tracker that wrote down every row of the page, with the words of its other columns.
const ROWS: &str = "data/history/lambda-runpod-daily";

fn compare() -> Vec<Option<Comparison>> {
    vec![cheapest(), rows()]
}

/// Our cheapest price of a card with so much memory, whatever the number of cards.
fn ours(offers: &[PublishedOffer], label: &str, memory_gb: u32) -> Option<Decimal> {
    let is_it = |offer: &&PublishedOffer| {
        offer.gpu.label.as_deref() == Some(label) && offer.gpu.memory_gb == Some(Decimal::from(memory_gb))
    };
    offers.iter().filter(is_it).map(|offer| offer.price.amount).min()
}

fn cheapest() -> Option<Comparison> {
    let what = "The cheapest price of each card in six weeks, against our typed recording of 2026-08-22.";
    let mut comparison = Comparison::with("lambda", RENTALS, what)?;
    let offers = recorded("lambda", "2026-08-22");
    for reading in rentals("lambda") {
        let (label, memory_gb) = match reading.gpu.as_str() {
            "a10" => ("NVIDIA A10", 24),
            "a100-pcie-40" => ("NVIDIA A100 PCIe", 40),
            "a100-pcie-80" => ("NVIDIA A100 PCIe", 80),
            "a100-sxm-80" => ("NVIDIA A100 SXM", 80),
            "b200" => ("NVIDIA B200 SXM6", 180),
            "gh200" => ("NVIDIA GH200", 96),
            "h100-pcie" => ("NVIDIA H100 PCIe", 80),
            "h100-sxm" => ("NVIDIA H100 SXM", 80),
            "quadro-rtx-6000" => ("RTX 6000", 24),
            "rtx-a6000" => ("NVIDIA A6000", 48),
            "v100" => ("Tesla V100", 16),
            other => panic!("their card {other} has no name of ours"),
        };
        hold(&mut comparison, &reading, ours(&offers, label, memory_gb), |reading| {
            let is_first_day = reading.day == "2026-07-05" && reading.gpu.starts_with("a100");
            is_first_day.then_some("on their first day they took the 40 GB cards for 80 GB; the next day they no longer did")
        });
    }
    Some(comparison)
}

fn rows() -> Option<Comparison> {
    let what = "Every row of the page on 54 days, found by its card, memory and processors, against our typed recording of \
                2026-08-22. A row that says the same every day counts once.";
    let mut comparison = Comparison::with("lambda", ROWS, what)?;
    let offers = recorded("lambda", "2026-08-22");
    let text = inflated(&shared(ROWS).join("gpu_prices_2026-06-29_2026-08-22.csv.gz"));
    let mut seen = std::collections::BTreeSet::new();
    for row in csv::Reader::from_reader(text.as_bytes()).into_records() {
        let row = row.expect("a row reads");
        if &row[1] != "Lambda" || !seen.insert((row[4].to_owned(), row[7].to_owned())) {
            continue;
        }
        let theirs: Decimal = row[4].parse().expect("an amount");
        let is_it = |offer: &&PublishedOffer| {
            let (Some(label), Some(memory), Some(vcpus)) = (offer.gpu.label.as_deref(), offer.gpu.memory_gb, offer.machine.vcpus)
            else {
                return false;
            };
            row[7].starts_with(&format!("{label} {memory} GB {vcpus} "))
        };
        let ours = offers.iter().find(is_it).map(|offer| offer.price.amount);
        assert_eq!(ours, Some(theirs), "{}", &row[7]);
        comparison.agree();
    }
    assert_eq!(seen.len(), offers.len(), "each of our rows is one of theirs");
    Some(comparison)
}
