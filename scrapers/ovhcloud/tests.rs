//! Checks against stored rows of the catalogue, and of what a plan's code says.

use std::path::Path;

use chrono::{DateTime, Utc};

use super::*;
use crate::contract::PriceUnit;
use crate::{assign_scopes, read, recordings};

const ROWS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../shared/samples/ovhcloud/order_catalog_addons_fixture.json");
const OTHERS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../shared/samples/ovhcloud/mixxor_prices_2026-08-14.json");

fn page(scope: &str, body: impl Into<Vec<u8>>) -> Page {
    let body = body.into();
    Page {
        name: "catalog".to_owned(),
        scope: scope.to_owned(),
        url: "https://api.ovh.com/1.0/order/catalog/public/cloud?ovhSubsidiary=DE".to_owned(),
        observed_at: DateTime::<Utc>::UNIX_EPOCH,
        sha256: crate::sha256(&body),
        body,
    }
}

fn stored(path: &str) -> Option<String> {
    if !Path::new(path).exists() {
        eprintln!("skipped: ../shared is not beside this checkout");
        return None;
    }
    Some(std::fs::read_to_string(path).expect("the answer reads"))
}

#[test]
fn rows_without_a_list_around_them_have_no_currency_and_are_refused() {
    let Some(text) = stored(ROWS) else { return };
    let results = read(&Ovhcloud, vec![page("DE", text)]);
    let refused = results["DE"].as_ref().expect_err("rows are no catalogue").to_string();
    assert!(refused.starts_with("page `catalog` changed shape at /locale"), "{refused}");
}

#[test]
fn the_stored_rows_give_an_a100_by_the_hour_and_by_the_month() {
    let Some(text) = stored(ROWS) else { return };
    let locale = r#"{"locale":{"currencyCode":"EUR","subsidiary":"DE","taxRate":19},"#;
    let text = text.replacen('{', locale, 1);
    let (pages, refused) = assign_scopes(&Ovhcloud, vec![page("all", text)]);
    assert!(refused.is_empty() && pages[0].scope == "DE");
    let parsed = Ovhcloud.parse(&pages).expect("the rows parse");
    let [month, hour] = parsed.offers.as_slice() else { panic!("{parsed:?}") };
    assert_eq!((hour.price.amount, hour.price.unit), (Decimal::new(275, 2), PriceUnit::Hour));
    assert_eq!((month.price.amount, month.price.unit), (Decimal::from(1100), PriceUnit::Month));
    assert_eq!((hour.terms.pricing_model, hour.terms.commitment_months), (PricingModel::OnDemand, None));
    assert_eq!((month.terms.pricing_model, month.terms.commitment_months), (PricingModel::Subscription, Some(1)));
    for offer in &parsed.offers {
        assert_eq!(offer.instance_type.as_deref(), Some("a100-180"));
        assert_eq!((offer.gpu.count, offer.gpu.memory_gb), (Some(Ratio::from(1)), Some(Decimal::from(80))));
        assert_eq!((offer.machine.vcpus, offer.machine.system_memory_gib), (Some(Decimal::from(15)), Some(Decimal::from(180))));
        assert_eq!((offer.machine.local_disk_gb, offer.price.tax_included), (Some(Decimal::from(300)), Some(false)));
    }
    assert!(parsed.skipped.is_empty() && parsed.unread_fields.is_empty(), "{parsed:?}");
    assert_eq!(parsed.out_of_scope["not a GPU machine"], 11);
}

#[test]
fn every_gpu_machine_that_the_live_catalogue_had_and_still_sells_is_in_the_table() {
    let Some(text) = stored(OTHERS) else { return };
    let file: serde_json::Value = serde_json::from_str(&text).expect("the file is JSON");
    let names = file["unknown_plan_codes"].as_array().expect("a list of codes").iter().filter_map(|name| name.as_str());
    let is_gpu = |name: &&str| ["a10", "h100", "h200", "l4", "rtx", "t1", "t2"].iter().any(|card| name.starts_with(card));
    let unknown: Vec<_> = names.filter(is_gpu).filter(|name| HARDWARE.find(name).is_none()).collect();
    assert!(unknown.is_empty(), "{unknown:?}");
}

#[test]
fn the_end_of_a_code_says_what_is_bought_and_where() {
    for (code, flavour, model, area) in [
        ("a100-180.consumption", "a100-180", PricingModel::OnDemand, None),
        ("a100-180.monthly.postpaid", "a100-180", PricingModel::Subscription, None),
        ("a100-180.consumption.3AZ", "a100-180", PricingModel::OnDemand, Some("3AZ")),
        ("metal.eg-256.consumption", "metal.eg-256", PricingModel::OnDemand, None),
        ("l4-90.consumption.LZ.EUROZONE", "l4-90", PricingModel::OnDemand, Some("LZ.EUROZONE")),
        ("l4-90.monthly.postpaid.LZ.EU", "l4-90", PricingModel::Subscription, Some("LZ.EU")),
    ] {
        let plan = price::plan(code, flavour).expect("the code reads");
        assert_eq!((plan.model, plan.area.as_deref()), (model, area), "{code}");
    }
    for (code, flavour) in [
        ("a100-180.consumption.LZ.", "a100-180"),
        ("a100-180.consumptions", "a100-180"),
        ("a100-180", "a100-180"),
        ("a100-1800.consumption", "a100-180"),
        ("a100-180.hourly", "a100-180"),
    ] {
        assert!(price::plan(code, flavour).is_err(), "{code}");
    }
}

#[test]
fn a_month_is_never_an_hour_on_demand() {
    let recording = recordings::newest("ovhcloud").expect("there is a dated recording");
    for parsed in read(&Ovhcloud, recording.pages).into_values() {
        for offer in parsed.expect("the recording reads").offers {
            let is_month = offer.price.unit == PriceUnit::Month;
            assert_eq!(is_month, offer.terms.pricing_model == PricingModel::Subscription, "{:?}", offer.sku);
        }
    }
}

#[test]
fn each_list_is_asked_for_at_its_own_host_and_is_its_own_scope() {
    let pages = MANIFEST.start(false);
    let asked: Vec<_> = pages.iter().map(|page| (page.name.as_str(), page.scope.as_str(), page.url.as_str())).collect();
    let path = "/1.0/order/catalog/public/cloud?ovhSubsidiary=";
    let urls = [format!("https://api.ovh.com{path}FR"), format!("https://ca.api.ovh.com{path}WE")];
    assert_eq!(asked, [("catalog-FR", "FR", urls[0].as_str()), ("catalog-WE", "WE", urls[1].as_str())]);
}

#[test]
fn an_announced_machine_that_has_a_price_is_an_offer_that_says_so() {
    let recording =
        recordings::of("ovhcloud").into_iter().find(|recording| recording.case == "coming-soon").expect("the recording");
    let offers = Ovhcloud.parse(&recording.pages).expect("it parses").offers;
    let announced: Vec<_> =
        offers.iter().filter(|offer| offer.flags.contains(COMING_SOON)).map(|offer| offer.sku.as_deref()).collect();
    assert_eq!(announced, [Some("a100-180.consumption"), Some("a100-180.monthly.postpaid")]);
}
