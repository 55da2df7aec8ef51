//! Checks against a stored list of plans and another project's catalogue, and that page and list call the same the same.

use std::collections::BTreeMap;
use std::path::Path;

use chrono::{DateTime, Utc};

use super::*;
use crate::contract::{Availability, Os, PricingModel};
use crate::{assign_scopes, read, recordings};

const PLANS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../shared/samples/seeweb/gpuhunt_plans.json");
const CATALOGUE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../shared/samples/seeweb/skypilot_catalog_2026.csv");

fn is_there(path: &str) -> bool {
    if !Path::new(path).exists() {
        eprintln!("skipped: ../shared is not beside this checkout");
    }
    Path::new(path).exists()
}

fn of_case(case: &str) -> Vec<PublishedOffer> {
    let recording =
        recordings::of("seeweb").into_iter().find(|recording| recording.case == case).expect("the recording is there");
    read(&Seeweb, recording.pages).into_values().flat_map(|parsed| parsed.expect("the recording reads").offers).collect()
}

#[test]
fn the_stored_plans_give_three_machines_at_the_price_of_the_plan() {
    if !is_there(PLANS) {
        return;
    }
    let body = std::fs::read(PLANS).expect("the answer reads");
    let page = Page {
        name: "plans".to_owned(),
        scope: "all".to_owned(),
        url: PLANS.to_owned(),
        observed_at: DateTime::<Utc>::UNIX_EPOCH,
        sha256: crate::sha256(&body),
        body,
    };
    let (pages, refused) = assign_scopes(&Seeweb, vec![page]);
    assert!(refused.is_empty() && pages[0].scope == "api");
    let parsed = Seeweb.parse(&pages).expect("the answer parses");
    let line = |offer: &PublishedOffer| {
        let label = offer.offer_label.as_deref().expect("a label");
        format!("{label} {} {}", offer.sku.as_deref().expect("a plan"), offer.price.amount)
    };
    let lines: Vec<_> = parsed.offers.iter().map(line).collect();
    assert_eq!(lines, ["1x L40S ECS1GPU7 0.85", "2x A100 80GB ECS2GPU3 1.98", "1x MI300X ECS1GPU9 1.6"]);
    assert!(parsed.skipped.is_empty() && parsed.unread_fields.is_empty(), "{parsed:?}");
    let pair = &parsed.offers[1];
    assert_eq!((pair.price.per, pair.price.currency_code.as_str()), (PricePer::Instance, "EUR"));
    assert_eq!((pair.machine.vcpus, pair.machine.system_memory_gib), (Some(Decimal::from(32)), Some(Decimal::from(240))));
    assert_eq!(pair.terms.availability, Some(Availability::Available));
}

/// What makes the id of an offer, as far as this provider's offers differ in it, and its price of one card.
fn identities(offers: &[PublishedOffer]) -> BTreeMap<String, Decimal> {
    let identity = |offer: &PublishedOffer| {
        let (gpu, terms) = (&offer.gpu, &offer.terms);
        let count = gpu.count.expect("a count");
        let model = MANIFEST.labels.get(gpu.label.as_deref().expect("a card")).expect("a known card");
        let parts = (&offer.site, &offer.region, &offer.zone, &offer.instance_type, &offer.offer_label, model, count);
        let terms = (terms.os, &terms.licence, &terms.plan, terms.tenancy, terms.pricing_model, terms.commitment_months);
        let of_one = match offer.price.per {
            PricePer::Gpu => offer.price.amount,
            PricePer::Instance => offer.price.amount / Decimal::from(count.to_integer()),
        };
        (format!("{parts:?} {terms:?}"), of_one)
    };
    offers.iter().map(identity).collect()
}

#[test]
fn page_and_list_give_the_same_thing_the_same_id_and_the_same_price() {
    let (page, list) = (identities(&of_case("2026-08-22")), identities(&of_case("with-key")));
    assert!(list.len() > 5);
    for (identity, of_one) in &list {
        assert_eq!(page.get(identity), Some(of_one), "{identity}");
    }
}

#[test]
fn the_page_is_asked_without_a_key_and_the_list_with_one() {
    let names = |has_key| MANIFEST.start(has_key).iter().map(|page| (page.scope.clone(), page.with_key)).collect::<Vec<_>>();
    assert_eq!(names(false), [("page".to_owned(), false)]);
    assert_eq!(names(true), [("api".to_owned(), true)]);
}

#[test]
fn every_card_of_another_projects_catalogue_has_its_price_on_the_page_in_euros() {
    if !is_there(CATALOGUE) {
        return;
    }
    let mut by_card = BTreeMap::new();
    for offer in of_case("2026-08-22").into_iter().filter(|offer| offer.terms.pricing_model == PricingModel::OnDemand) {
        let label = offer.gpu.label.expect("a card");
        let model = MANIFEST.labels.get(&label).cloned().expect("a known card");
        by_card.insert((model, offer.gpu.count.expect("a count").to_integer()), offer.price.amount);
        assert_eq!((offer.price.currency_code.as_str(), offer.terms.os), ("EUR", Os::Linux));
    }
    let mut rows = csv::Reader::from_path(CATALOGUE).expect("the catalogue opens");
    let mut compared = 0;
    for row in rows.records().map(|row| row.expect("a row reads")).filter(|row| !row[1].is_empty()) {
        let model = MANIFEST.labels.get(&row[1]).cloned().unwrap_or_else(|| panic!("`{}` is a known card", &row[1]));
        let count: u32 = row[2].parse().expect("a count");
        let plan = crate::money::decimal(&row[5]).expect("a price");
        assert_eq!(by_card.get(&(model, count)).map(|of_one| of_one * Decimal::from(count)), Some(plan), "{row:?}");
        compared += 1;
    }
    assert_eq!(compared, 27);
}

#[test]
fn a_page_cut_anywhere_is_refused() {
    let recording = recordings::newest("seeweb").expect("there is a dated recording");
    let whole = recording.pages[0].clone();
    let end = whole.text().expect("the page is text").find("</html>").expect("the page ends");
    for length in (1..=end).step_by(97).filter(|length| std::str::from_utf8(&whole.body[..*length]).is_ok()) {
        let cut = Page { body: whole.body[..length].to_vec(), ..whole.clone() };
        assert!(read(&Seeweb, vec![cut]).values().all(Result::is_err), "cut at {length}");
    }
}
