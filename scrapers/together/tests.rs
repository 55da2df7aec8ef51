//! Checks of the columns, and of what is no price of a GPU.

use num_rational::Ratio;

use super::*;
use crate::recordings;

fn newest() -> Page {
    recordings::newest("together").expect("a recording").pages[0].clone()
}

#[test]
fn a_column_is_known_by_its_header_alone() {
    let of = |header| terms(header).map(|terms| (terms.pricing_model, terms.plan));
    assert_eq!(of("Preemptible"), Some((PricingModel::Spot, None)));
    assert_eq!(of("On-demand /hr"), Some((PricingModel::OnDemand, None)));
    assert_eq!(of("ON-Demand"), Some((PricingModel::OnDemand, None)));
    assert_eq!(of("181+ days"), Some((PricingModel::Reserved, Some("reserved_181_days_and_more".to_owned()))));
    for header in ["Reserved 7–30 days", "7-30 days", "Reserved for 7–30 days /hr"] {
        assert_eq!(of(header), Some((PricingModel::Reserved, Some("reserved_7_to_30_days".to_owned()))), "{header}");
    }
    for header in ["Reserved", "Reserved 30 days", "Price", "days", "a–b days", "+ days"] {
        assert_eq!(of(header), None, "{header}");
    }
}

#[test]
fn a_cluster_is_priced_by_the_gpu_and_its_nodes_have_eight() {
    let parsed = Together.parse(&[newest()]).expect("it parses");
    let of_clusters = parsed.offers.iter().filter(|offer| offer.terms.plan.as_deref() != Some("dedicated_inference"));
    assert!(of_clusters.clone().count() == 11 && of_clusters.clone().all(|offer| offer.gpu.count == Some(Ratio::from(8))));
    assert!(parsed.offers.iter().all(|offer| offer.price.per == crate::contract::PricePer::Gpu));
}

#[test]
fn a_rack_is_no_machine_of_eight() {
    let whole = newest();
    for label in ["NVIDIA GB200 NVL72", "NVIDIA B200", "HGXB200"] {
        let body = whole.text().expect("the page is text").replace("NVIDIA HGX B200", label).into_bytes();
        let parsed = Together.parse(&[Page { body, ..whole.clone() }]).expect("it parses");
        let racks: Vec<_> = parsed.offers.iter().filter(|offer| offer.gpu.label.as_deref() == Some(label)).collect();
        assert_eq!(racks.len(), 5, "{label}");
        let is_one =
            |offer: &&&PublishedOffer| offer.gpu.count == Some(Ratio::from(1)) && offer.flags.contains(MACHINE_NOT_STATED);
        assert!(racks.iter().all(|offer| is_one(&offer)), "{label}");
    }
}

#[test]
fn no_price_of_tokens_is_ever_taken() {
    let parsed = Together.parse(&[newest()]).expect("it parses");
    assert!(parsed.offers.iter().all(|offer| offer.offer_label.as_deref().is_some_and(|label| !label.contains("Llama"))));
    assert_eq!(parsed.out_of_scope["not a price of GPUs"], 2);
}
