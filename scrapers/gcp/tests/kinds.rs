//! Faults that lists of this form invite in any reader: money in two fields, SKUs of several regions, add-ons beside machines.

use std::collections::BTreeMap;

use super::*;
use crate::recordings;

#[test]
fn money_in_two_fields_is_always_both_of_them() {
    let slice =
        |money: &str| sku("A4 Nvidia B200 (1 gpu slice) running in Americas", "GPU", "OnDemand", &["us-east4"], "h", money);
    // A machine of eight slices.
    for (money, slice_usd) in [
        (r#""units": "2", "nanos": 978480000"#, Some("2.97848")),
        (r#""units": "0", "nanos": 77800000"#, Some("0.0778")),
        (r#""nanos": 500000000"#, Some("0.5")),
        (r#""units": "4""#, Some("4")),
        (r#""units": "0", "nanos": 0"#, None),
        (r#""units": "2", "nanos": 1000000000"#, None),
        (r#""units": "2", "nanos": -1"#, None),
        (r#""units": "2.5""#, None),
        (r#""amount": "2.5""#, None),
    ] {
        let parsed = parse(&[&a2(&["us-central1"])[..], &[slice(money)]].concat());
        let found = price(&parsed, "a4-highgpu-8g", "us-east4", PricingModel::OnDemand).map(|offer| offer.price.amount);
        assert_eq!(found, slice_usd.map(|usd| dec(usd) * dec("8")), "{money}");
        assert_eq!(parsed.skipped.len(), usize::from(slice_usd.is_none()), "{money}");
    }
}

#[test]
fn a_sku_of_three_regions_is_an_offer_in_each() {
    let regions = ["us-central1", "us-east1", "us-east4"];
    for listed in [regions, ["us-east4", "us-central1", "us-east1"]] {
        let parsed = parse(&a2(&listed));
        let found: BTreeMap<_, _> = parsed
            .offers
            .iter()
            .filter(|offer| offer.instance_type.as_deref() == Some("a2-highgpu-1g"))
            .map(|offer| (offer.region.as_deref().unwrap_or_default(), offer.price.amount))
            .collect();
        assert_eq!(found, regions.map(|region| (region, dec("3.673385"))).into());
    }
}

#[test]
fn disks_addresses_licences_and_traffic_are_in_no_price_of_a_machine() {
    let recording = recordings::newest("gcp").expect("a dated recording");
    let mut body = String::from_utf8(recording.pages[0].body.clone()).expect("the page is text");
    let add_on = |description: &str, group: &str, unit: &str| {
        sku(description, group, "OnDemand", &["us-central1", "europe-west4"], unit, r#""units": "900""#)
    };
    let add_ons = [
        add_on("Storage PD Capacity", "PDStandard", "GiBy.mo"),
        add_on("Hyperdisk Balanced Capacity", "SSD", "GiBy.mo"),
        add_on("External IP Charge on a Standard VM", "IpAddress", "h"),
        add_on("Licensing Fee for Windows Server 2022 Datacenter Edition (CPU cost)", "Google", "h"),
        add_on("Network Internet Egress from Americas to Americas", "PremiumInternetEgress", "GiBy"),
    ];
    let at = body.find(r#""skus""#).and_then(|at| body[at..].find('[').map(|bracket| at + bracket + 1)).expect("a list of SKUs");
    body.insert_str(at, &format!("{},", add_ons.join(", ")));
    let mut with = recording.pages.clone();
    with[0].body = body.into_bytes();
    let read = |pages: &[Page]| {
        let parsed = Gcp.parse(pages).expect("the list reads");
        let price = |offer: &PublishedOffer| (offer.instance_type.clone(), offer.region.clone(), offer.price.text.clone());
        (parsed.offers.iter().map(price).collect::<Vec<_>>(), parsed.skipped.len(), parsed.out_of_scope.values().sum::<u32>())
    };
    let (with, without) = (read(&with), read(&recording.pages));
    assert_eq!((with.0, with.1, with.2), (without.0, without.1, without.2 + 5), "each is counted as left out");
}
