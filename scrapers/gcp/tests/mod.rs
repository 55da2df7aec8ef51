//! What the traps, the lists of words and the pages are tested with.

use std::path::{Path, PathBuf};

use rust_decimal::Decimal;

use super::*;
use crate::contract::{PricingModel, PublishedOffer};

mod kinds;
mod lists;
mod pages;
mod traps;

const BASE: &str = "https://cloudbilling.googleapis.com/v1/services/6F81-5844-456A/skus?currencyCode=USD&pageSize=5000";

fn shared(path: &str) -> Option<PathBuf> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../shared").join(path);
    if path.exists() {
        return Some(path);
    }
    eprintln!("skipped: ../shared is not beside this checkout");
    None
}

fn dec(text: &str) -> Decimal {
    Decimal::from_str_exact(text).expect("a literal decimal")
}

fn page(name: &str, url: &str, body: impl Into<Vec<u8>>) -> Page {
    let observed_at = "2026-07-30T06:13:17Z".parse().expect("a literal time");
    Page {
        name: name.to_owned(),
        scope: SCOPE_ALL.to_owned(),
        url: url.to_owned(),
        observed_at,
        sha256: String::new(),
        body: body.into(),
    }
}

/// A SKU as the catalog writes it.
fn sku(description: &str, group: &str, usage: &str, regions: &[&str], unit: &str, money: &str) -> String {
    let id: u32 =
        description.bytes().chain(money.bytes()).fold(7, |sum, byte| sum.wrapping_mul(31).wrapping_add(u32::from(byte)));
    let regions = regions.iter().map(|region| format!("\"{region}\"")).collect::<Vec<_>>().join(", ");
    format!(
        r#"{{"name": "services/6F81-5844-456A/skus/{id:08X}", "skuId": "{id:08X}", "description": "{description}",
        "category": {{"serviceDisplayName": "Compute Engine", "resourceFamily": "Compute", "resourceGroup": "{group}", "usageType": "{usage}"}},
        "serviceRegions": [{regions}], "pricingInfo": [{{"summary": "", "pricingExpression": {{"usageUnit": "{unit}",
        "tieredRates": [{{"startUsageAmount": 0, "unitPrice": {{"currencyCode": "USD", {money}}}}}]}}, "currencyConversionRate": 1,
        "effectiveTime": "2026-07-30T06:12:44.101Z"}}]}}"#
    )
}

fn parse(skus: &[String]) -> Parsed {
    let body = format!(r#"{{"skus": [{}], "nextPageToken": ""}}"#, skus.join(", "));
    Gcp.parse(&[page("skus-0001", BASE, body)]).expect("the page reads")
}

fn price<'a>(parsed: &'a Parsed, machine: &str, region: &str, model: PricingModel) -> Option<&'a PublishedOffer> {
    let is_it = |offer: &&PublishedOffer| {
        offer.instance_type.as_deref() == Some(machine)
            && offer.region.as_deref() == Some(region)
            && offer.terms.pricing_model == model
    };
    parsed.offers.iter().find(is_it)
}

/// The three parts of A2 on demand.
fn a2(regions: &[&str]) -> Vec<String> {
    vec![
        sku("Nvidia Tesla A100 GPU running in Americas", "GPU", "OnDemand", regions, "h", r#""units": "2", "nanos": 933908000"#),
        sku("A2 Instance Core running in Americas", "CPU", "OnDemand", regions, "h", r#""nanos": 31611000"#),
        sku("A2 Instance Ram running in Americas", "RAM", "OnDemand", regions, "GiBy.h", r#""units": "0", "nanos": 4237000"#),
    ]
}
