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
    for header in ["Reserved 7–30 days", "7-30 days", "Reserved for 7–30 days /hr"] {
        assert_eq!(of(header), Some((PricingModel::Reserved, Some("reserved_7_to_30_days".to_owned()))), "{header}");
    }
    for header in ["Reserved", "Reserved 30 days", "Price", "days", "a–b days"] {
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
fn no_price_of_tokens_is_ever_taken() {
    let parsed = Together.parse(&[newest()]).expect("it parses");
    assert!(parsed.offers.iter().all(|offer| offer.offer_label.as_deref().is_some_and(|label| !label.contains("Llama"))));
    assert_eq!(parsed.out_of_scope["not a price of GPUs"], 2);
}
