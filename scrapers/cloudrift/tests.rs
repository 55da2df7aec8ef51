//! Checks of units, places and stock.

use chrono::{DateTime, Utc};

use super::*;
use crate::contract::{Method, SCOPE_ALL};
use crate::recordings;

/// Reads one variant with these fields beside the usual ones.
fn variant_with(fields: &str) -> Parsed {
    let body = format!(
        r#"{{"data":{{"instance_types":[{{"name":"rtx49","brand_short":"RTX 4090","manufacturer":"NVIDIA","variants":[{{"name":"rtx49-7c-kn.1",
            "cpu_count":7,"logical_cpu_count":14,"dram":51539607552,"disk":536870912000,"vram":25769803776,{fields}}}]}}]}}}}"#
    )
    .into_bytes();
    let page = Page {
        name: "instance-types".to_owned(),
        scope: SCOPE_ALL.to_owned(),
        url: "list.json".to_owned(),
        observed_at: DateTime::<Utc>::UNIX_EPOCH,
        sha256: crate::sha256(&body),
        body,
    };
    Cloudrift.parse(&[page]).expect("the page parses")
}

#[test]
fn cents_become_dollars_and_bytes_become_sizes() {
    let parsed = variant_with(r#""gpu_count":2,"cost_per_hour":39,"nodes_per_dc":{"us-east-nc-nr-1":4},"available_nodes":1"#);
    let [offer] = parsed.offers.as_slice() else { panic!("{parsed:?}") };
    assert_eq!(offer.price.amount, Decimal::new(39, 2));
    assert_eq!((offer.price.text.as_str(), offer.price.unit, offer.price.per), ("39 cents", PriceUnit::Hour, PricePer::Instance));
    assert_eq!((offer.gpu.count, offer.gpu.memory_gb), (Some(Ratio::from(2)), Some(Decimal::from(24))), "memory is of one card");
    assert_eq!((offer.machine.vcpus, offer.machine.system_memory_gib), (Some(Decimal::from(7)), Some(Decimal::from(48))));
    assert_eq!(offer.machine.local_disk_gb, Some(Decimal::new(536_870_912, 6)));
    assert!(parsed.unread_fields.is_empty(), "{parsed:?}");
}

#[test]
fn each_data_centre_is_an_offer_and_stock_is_said_only_where_it_is_known() {
    let stock = |nodes: &str, free: &str| {
        let parsed = variant_with(&format!(r#""gpu_count":1,"cost_per_hour":39,"nodes_per_dc":{nodes}{free}"#));
        parsed.offers.iter().map(|offer| (offer.region.clone().expect("a place"), offer.terms.availability)).collect::<Vec<_>>()
    };
    let (a, b) = ("a".to_owned(), "b".to_owned());
    assert_eq!(stock(r#"{"a":4}"#, r#","available_nodes":1"#), [(a.clone(), Some(Availability::Available))]);
    assert_eq!(stock(r#"{"a":4}"#, r#","available_nodes":0"#), [(a.clone(), Some(Availability::SoldOut))]);
    assert_eq!(stock(r#"{"a":4}"#, ""), [(a.clone(), None)]);
    assert_eq!(stock(r#"{"a":4,"b":0}"#, r#","available_nodes":1"#), [(a, None), (b, Some(Availability::SoldOut))]);
    assert_eq!(stock("{}", r#","available_nodes":0"#), []);
}

#[test]
fn the_request_states_the_version_whose_fields_are_read() {
    let start = MANIFEST.start(false);
    assert_eq!((start.len(), start[0].method), (1, Method::Post));
    assert!(start[0].body.as_deref().is_some_and(|body| body.contains(r#""version":"2025-03-21""#)));
}

#[test]
fn the_typed_recording_says_that_its_prices_are_made_up() {
    let recording = recordings::newest("cloudrift").expect("there is a dated recording");
    assert!(recording.receipt.has_made_up_prices);
}
