//! Checks against stored answers of the list, and of what is not the list.

use std::path::Path;

use chrono::{DateTime, Utc};

use super::*;
use crate::contract::SCOPE_ALL;
use crate::{read, recordings};

const SAMPLES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../shared/samples/verda/");

fn page(body: impl Into<Vec<u8>>) -> Page {
    let body = body.into();
    Page {
        name: "instance-types".to_owned(),
        scope: SCOPE_ALL.to_owned(),
        url: "https://api.datacrunch.io/v1/instance-types".to_owned(),
        observed_at: DateTime::<Utc>::UNIX_EPOCH,
        sha256: crate::sha256(&body),
        body,
    }
}

fn stored(file: &str) -> Option<Page> {
    let path = format!("{SAMPLES}{file}");
    if !Path::new(&path).exists() {
        eprintln!("skipped: ../shared is not beside this checkout");
        return None;
    }
    Some(page(std::fs::read(path).expect("the answer reads")))
}

#[test]
fn the_stored_rows_give_three_machines_on_demand_and_as_spot() {
    let Some(page) = stored("gpuhunt_instance_types.json") else { return };
    let parsed = Verda.parse(&[page]).expect("the answer parses");
    let line = |offer: &PublishedOffer| {
        let gpu = &offer.gpu;
        let name = offer.instance_type.as_deref().unwrap_or_default();
        let label = gpu.label.as_deref().unwrap_or_default();
        let memory_gb = gpu.memory_gb.expect("every card has a memory");
        let count = gpu.count.expect("every machine has a count");
        format!("{name} {} {}: {count} × {label} of {memory_gb} GB", offer.terms.pricing_model, offer.price.amount)
    };
    assert_eq!(
        parsed.offers.iter().map(line).collect::<Vec<_>>(),
        [
            "1H100.80S.30V on_demand 3.95: 1 × H100 SXM5 80GB of 80 GB",
            "1H100.80S.30V spot 1.7: 1 × H100 SXM5 80GB of 80 GB",
            "2A6000.20V on_demand 1.98: 2 × RTX A6000 48GB of 48 GB",
            "2A6000.20V spot 0.7: 2 × RTX A6000 48GB of 48 GB",
            "1V100.6V on_demand 0.89: 1 × Tesla V100 16GB of 16 GB",
            "1V100.6V spot 0.25: 1 × Tesla V100 16GB of 16 GB",
        ]
    );
    assert!(parsed.skipped.is_empty() && parsed.unread_fields.is_empty(), "{parsed:?}");
    assert_eq!(parsed.out_of_scope["not a GPU machine"], 1);
    let (pair, old) = (&parsed.offers[2], &parsed.offers[4]);
    assert_eq!((pair.price.text.as_str(), pair.price.currency_code.as_str()), ("1.98", "USD"));
    assert_eq!(pair.gpu.interconnect.as_deref(), Some("50GB/s"));
    assert_eq!((pair.machine.vcpus, pair.machine.system_memory_gib), (Some(Decimal::from(20)), Some(Decimal::from(120))));
    assert_eq!((pair.machine.local_disk_gb, old.machine.local_disk_gb), (None, Some(Decimal::from(225))));
}

#[test]
fn the_page_for_people_and_other_lists_are_no_night() {
    for (file, reason) in [
        ("datacrunch_20250808081801.html", "page `instance-types` is not JSON: markup"),
        ("gpuhunt_locations.json", "3 of 3 rows were not understood"),
        ("gpuhunt_availabilities_spot.json", "2 of 2 rows were not understood"),
    ] {
        let Some(page) = stored(file) else { return };
        let results = read(&Verda, vec![page]);
        let refused = results[SCOPE_ALL].as_ref().expect_err("it is refused").to_string();
        assert!(refused.starts_with(reason), "{file}: {refused}");
    }
}

#[test]
fn every_spot_price_is_marked_as_a_share_of_the_price_on_demand() {
    for recording in recordings::of("verda").into_iter().filter(recordings::Recording::is_dated) {
        let parsed = Verda.parse(&recording.pages).expect("the recording parses");
        for pair in parsed.offers.chunks(2) {
            let [on_demand, spot] = pair else { panic!("a machine is sold both ways") };
            assert_eq!(on_demand.instance_type, spot.instance_type);
            assert!(on_demand.flags.is_empty() && spot.flags.contains("administered_discount"), "{spot:?}");
            let percent = (spot.price.amount / on_demand.price.amount * Decimal::from(100)).round();
            assert_eq!(percent, Decimal::from(35), "{:?}", spot.instance_type);
        }
    }
}
