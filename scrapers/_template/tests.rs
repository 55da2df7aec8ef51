//! Checks of what a recording does not show by itself: each trap of the source has one here or a crafted recording.

use super::*;

/// A list as the source documents it.
const LIST: &str = r#"{"machines": [
    {"name": "gpu-8", "gpu": "NVIDIA H100 SXM5", "gpu_count": "8", "gpu_memory_gb": 80, "vcpus": 192, "region": "eu-1", "price": 19.92}
]}"#;

fn parsed(list: &str) -> Result<Parsed, ScrapeError> {
    Template.parse(&[Page {
        name: "prices".to_owned(),
        scope: "all".to_owned(),
        url: "prices.json".to_owned(),
        observed_at: chrono::DateTime::UNIX_EPOCH,
        sha256: crate::sha256(list.as_bytes()),
        body: list.as_bytes().to_vec(),
    }])
}

#[test]
fn a_price_is_of_the_whole_machine() {
    let offer = &parsed(LIST).expect("it parses").offers[0];
    assert_eq!((offer.price.text.as_str(), offer.price.per), ("19.92", crate::contract::PricePer::Instance));
    assert_eq!(offer.place.at.as_str(), "/machines/0");
}

#[test]
fn a_list_without_machines_is_refused() {
    let error = parsed(r#"{"machines": []}"#).expect_err("it is no night");
    assert_eq!(error.code(), "nothing_found");
}
