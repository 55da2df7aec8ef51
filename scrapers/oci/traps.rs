//! Each way in which this list is known to mislead, and what must come of it, on the newest dated recording.

use std::collections::BTreeMap;

use rust_decimal::Decimal;

use super::*;
use crate::contract::{GpuShare, PricePer, PriceUnit, PricingModel, PublishedOffer};
use crate::recordings;

fn pages() -> Vec<Page> {
    recordings::newest("oci").expect("a dated recording").pages
}

fn parsed() -> Parsed {
    Oci.parse(&pages()).expect("the recording reads")
}

/// The recording with some text of its list replaced.
fn changed(from: &str, to: &str) -> Result<Parsed, ScrapeError> {
    let mut pages = pages();
    let body = String::from_utf8(pages[0].body.clone()).expect("the list is text");
    assert!(body.contains(from), "{from}");
    pages[0].body = body.replace(from, to).into_bytes();
    Oci.parse(&pages)
}

fn shape<'a>(parsed: &'a Parsed, name: &str) -> &'a PublishedOffer {
    parsed.offers.iter().find(|offer| offer.instance_type.as_deref() == Some(name)).unwrap_or_else(|| panic!("no {name}"))
}

/// Trap 1: the amount is for one GPU, never for the machine and never for a core.
#[test]
fn a_machine_of_eight_costs_eight_times_the_amount() {
    let parsed = parsed();
    for (name, count, machine) in [("BM.GPU.H100.8", 8, "80"), ("BM.GPU.L40S.4", 4, "14.0"), ("VM.GPU.A10.2", 2, "4")] {
        let offer = shape(&parsed, name);
        assert_eq!((offer.price.per, offer.price.unit, offer.gpu.share), (PricePer::Gpu, PriceUnit::Hour, GpuShare::Whole));
        assert_eq!(offer.gpu.count.map(|gpus| gpus.to_integer()), Some(count));
        assert_eq!(offer.price.amount * Decimal::from(count), machine.parse().expect("a literal decimal"), "{name}");
    }
}

/// Traps 2, 3, 5 and 7: what stands beside the GPUs and is none of them.
#[test]
fn licences_and_other_services_are_counted_and_not_published() {
    let parsed = parsed();
    let others: BTreeMap<_, _> = parsed.out_of_scope.iter().map(|(reason, rows)| (*reason, *rows)).collect();
    assert_eq!((others["licence added to a GPU"], others[OTHER_CATEGORY]), (3, 7));
    let sold: Vec<&str> = parsed.offers.iter().filter_map(|offer| offer.sku.as_deref()).collect();
    // NVIDIA AI Enterprise, Cloud@Customer, VMware, Roving Edge, H100T, WebCenter Imaging.
    for part in ["B111824", "B111826", "B111828", "B110965", "B111454", "B111463", "B108806", "B109493", "B109480", "B108776"] {
        assert!(!sold.contains(&part), "{part}");
    }
}

/// Traps 4 and 6: cards by part number, whatever the name is like.
#[test]
fn parts_are_known_by_number_and_the_name_is_a_check() {
    let parsed = parsed();
    let cards: BTreeMap<&str, &str> =
        parsed.offers.iter().filter_map(|offer| Some((offer.sku.as_deref()?, offer.gpu.label.as_deref()?))).collect();
    let expected = [
        ("B110978", "B200"),
        ("B110979", "GB200"),
        ("B112237", "B300"),
        ("B112140", "GB300"),
        ("B111758", "MI355X"),
        ("B95909", "A10"),
        ("B89734", "V100 SXM2 16GB"),
        ("B92740", "A100 SXM 40GB"),
        ("B95907", "A100 SXM 80GB"),
        ("B88517", "P100"),
    ];
    for (part, card) in expected {
        assert_eq!(cards.get(part), Some(&card), "{part}");
    }
    let swapped = changed("OCI - Compute - GPU - B200", "OCI - Compute - GPU - GB200").expect("the list reads");
    assert!(swapped.skipped.iter().any(|row| row.reason.code() == "contradiction"));
}

/// Trap 8: the list of shapes decides what is on sale and the table what a shape has.
#[test]
fn shapes_have_the_sizes_of_the_table_where_the_list_has_none_or_others() {
    let parsed = parsed();
    let gb200 = shape(&parsed, "BM.GPU.GB200.4");
    assert_eq!((gb200.machine.vcpus, gb200.gpu.memory_gb), (Some(Decimal::from(144)), Some(Decimal::from(192))));
    assert!(gb200.flags.contains("machine_size_disputed"));
    let b300 = shape(&parsed, "BM.GPU.B300.8");
    assert_eq!((b300.machine.vcpus, b300.machine.system_memory_gib), (Some(Decimal::from(256)), Some(Decimal::from(4096))));
    assert_eq!(shape(&parsed, "BM.GPU.MI355X.8").gpu.memory_gb, Some(Decimal::from(288)));
}

/// Traps 9, 10 and 11.
#[test]
fn one_price_in_dollars_whole_or_with_decimals() {
    let parsed = parsed();
    let text = |name| shape(&parsed, name).price.text.clone();
    assert_eq!((text("BM.GPU.H100.8"), text("BM.GPU2.2")), ("10".to_owned(), "1.275".to_owned()));
    let model = r#"{"model": "PAY_AS_YOU_GO", "value": 1.275}"#;
    let two = changed(model, &format!("{model}, {model}"));
    assert_eq!(two.map(drop).map_err(|error| error.code()), Err("shape_changed"));
    let euros = changed("\"USD\"", "\"EUR\"").expect("the list reads");
    assert!(euros.offers.is_empty() && euros.skipped.iter().all(|row| row.reason.code() == "unknown_word"));
    assert!(MANIFEST.pages[0].url.ends_with("?currencyCode=USD"));
}

/// Trap 12: the list's date is that of its last change, of whatever product, and says nothing of one price.
#[test]
fn the_date_of_the_list_is_checked_and_is_no_start_of_a_price() {
    assert!(parsed().offers.iter().all(|offer| offer.terms.valid_from.is_none()));
    let date = "2026-08-14T09:09:55.872Z";
    assert_eq!(changed(date, "last Friday").map(drop).map_err(|error| error.code()), Err("shape_changed"));
}

#[test]
fn nothing_is_sold_but_what_the_list_states() {
    let parsed = parsed();
    // Preemptible machines cost half by rule, and the list has no such price.
    assert!(parsed.offers.iter().all(|offer| offer.terms.pricing_model == PricingModel::OnDemand && offer.region.is_none()));
    let mut shapes: Vec<_> = parsed.offers.iter().map(|offer| offer.instance_type.clone()).collect();
    shapes.sort();
    shapes.dedup();
    assert_eq!(shapes.len(), parsed.offers.len());
}
