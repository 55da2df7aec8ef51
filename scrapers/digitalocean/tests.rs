//! Checks against a stored excerpt of the page and a stored list, and that both call the same the same.

use std::collections::BTreeMap;
use std::path::Path;

use chrono::{DateTime, Utc};

use super::*;
use crate::contract::{Availability, PricingModel};
use crate::{assign_scopes, read, recordings};

const EXCERPT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../shared/samples/digitalocean/digitalocean_20250707231929.html");
const SIZES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../shared/samples/digitalocean/gpuhunt_sizes_response.json");
const URL: &str = "https://api.digitalocean.com/v2/sizes?per_page=500";

fn page(url: &str, body: impl Into<Vec<u8>>) -> Page {
    let body = body.into();
    let page = Page {
        name: "sizes".to_owned(),
        scope: "all".to_owned(),
        url: url.to_owned(),
        observed_at: DateTime::<Utc>::UNIX_EPOCH,
        sha256: crate::sha256(&body),
        body,
    };
    let (mut pages, refused) = assign_scopes(&Digitalocean, vec![page]);
    assert!(refused.is_empty());
    pages.remove(0)
}

fn stored(path: &str) -> Option<String> {
    if !Path::new(path).exists() {
        eprintln!("skipped: ../shared is not beside this checkout");
        return None;
    }
    Some(std::fs::read_to_string(path).expect("the file reads"))
}

fn dec(text: &str) -> Decimal {
    crate::money::decimal(text).expect("a literal decimal")
}

fn lines(parsed: &Parsed) -> Vec<String> {
    let line = |offer: &PublishedOffer| {
        let name = offer.sku.as_deref().or(offer.offer_label.as_deref()).expect("a name");
        let memory_gb = offer.gpu.memory_gb.expect("a memory");
        let marks: Vec<_> = offer.flags.iter().copied().collect();
        let label = offer.gpu.label.as_deref().expect("a card");
        format!("{name} {}: {} × {label} of {memory_gb} GB {marks:?}", offer.price.text, offer.gpu.count.expect("a count"))
    };
    parsed.offers.iter().map(line).collect()
}

#[test]
fn the_excerpt_gives_seven_prices_on_demand_and_no_struck_out_or_reserved_one() {
    let Some(text) = stored(EXCERPT) else { return };
    let parsed = Digitalocean.parse(&[page(EXCERPT, text)]).expect("the excerpt parses");
    assert_eq!(
        lines(&parsed),
        [
            "gpu-h100x8-640gb $2.99: 8 × NVIDIA H100 of 80 GB []",
            "gpu-mi300x8-1536gb $1.99: 8 × AMD Instinct™ MI300X of 192 GB []",
            "gpu-h100x1-80gb $3.39: 1 × NVIDIA H100 of 80 GB [\"reduced_from_a_struck_out_price\"]",
            "gpu-mi300x1-192gb $1.99: 1 × AMD Instinct™ MI300X of 192 GB []",
            "gpu-rtx4000x1-20gb $0.76: 1 × NVIDIA RTX 4000 Ada Generation of 20 GB []",
            "gpu-rtx6000x1-48gb $1.57: 1 × NVIDIA RTX 6000 Ada Generation of 48 GB []",
            "1x L40S $1.57: 1 × NVIDIA L40S of 48 GB []",
        ]
    );
    let skipped: Vec<_> = parsed.skipped.iter().map(|row| (row.label.as_str(), row.reason.code())).collect();
    assert_eq!(skipped, [("NVIDIA H100x8", "price_on_request"), ("AMD Instinct™ MI300Xx8", "price_on_request")]);
    let (eight, small) = (&parsed.offers[0].machine, &parsed.offers[4].machine);
    assert_eq!((eight.vcpus, eight.system_memory_gib), (Some(dec("160")), Some(dec("1920"))));
    assert_eq!(eight.local_disk_gb, Some(gb(dec("43008"))));
    assert_eq!(small.local_disk_gb, Some(gb(dec("500"))), "a dash is no scratch disk");
    assert!(parsed.offers.iter().all(|offer| offer.price.per == PricePer::Gpu));
}

#[test]
fn the_stored_list_is_three_of_147_sizes_and_no_night() {
    let Some(text) = stored(SIZES) else { return };
    let refused = Digitalocean.parse(&[page(URL, text)]).expect_err("it is refused").to_string();
    assert_eq!(refused, "page `sizes` changed shape at /meta/total: expected 147 sizes, found 3");
}

#[test]
fn the_stored_sizes_give_two_droplets_whose_memory_is_of_all_cards() {
    let Some(text) = stored(SIZES) else { return };
    let parsed = Digitalocean.parse(&[page(URL, text.replace("147", "3"))]).expect("the list parses");
    assert_eq!(
        lines(&parsed),
        ["gpu-h100x8-640gb 23.92: 8 × nvidia_h100 of 80 GB []", "gpu-mi300x8-1536gb 15.92: 8 × amd_mi300x of 192 GB []",]
    );
    assert!(parsed.skipped.is_empty() && parsed.unread_fields.is_empty(), "{parsed:?}");
    let h100 = &parsed.offers[0];
    assert_eq!((h100.price.per, h100.terms.availability), (PricePer::Instance, Some(Availability::Available)));
    assert_eq!((h100.machine.vcpus, h100.machine.system_memory_gib), (Some(dec("160")), Some(dec("1920"))));
    assert_eq!(h100.machine.local_disk_gb, Some(gb(dec("43006"))));
}

fn of_case(case: &str) -> Vec<PublishedOffer> {
    let recording =
        recordings::of("digitalocean").into_iter().find(|recording| recording.case == case).expect("the recording is there");
    read(&Digitalocean, recording.pages).into_values().flat_map(|parsed| parsed.expect("the recording reads").offers).collect()
}

/// What makes the id of an offer, as far as this provider's offers differ in it, and its price of one card.
fn identities(offers: &[PublishedOffer]) -> BTreeMap<String, Decimal> {
    let identity = |offer: &PublishedOffer| {
        let (gpu, terms) = (&offer.gpu, &offer.terms);
        let count = gpu.count.expect("a count");
        let model = MANIFEST.labels.get(gpu.label.as_deref().expect("a card")).expect("a known card");
        let parts = (&offer.site, &offer.region, &offer.zone, &offer.instance_type, &offer.offer_label, model, count);
        let terms = (terms.os, &terms.licence, &terms.plan, terms.tenancy, terms.pricing_model, terms.is_promotion);
        let of_one = match offer.price.per {
            PricePer::Gpu => offer.price.amount,
            PricePer::Instance => offer.price.amount / Decimal::from(count.to_integer()),
        };
        (format!("{parts:?} {terms:?}"), of_one)
    };
    offers.iter().map(identity).collect()
}

#[test]
fn page_and_list_give_the_same_droplet_the_same_id_and_the_same_price() {
    let (page, list) = (identities(&of_case("2026-08-22")), identities(&of_case("with-key")));
    assert_eq!(list.len(), 7);
    assert!(list.keys().any(|identity| identity.contains("1x L40S")), "also the card whose link has no slug");
    for (identity, of_one) in &list {
        assert_eq!(page.get(identity), Some(of_one), "{identity}");
    }
}

#[test]
fn a_size_that_is_not_available_or_in_no_region_is_sold_out_and_keeps_its_price() {
    let sold_out: Vec<_> = of_case("with-key")
        .into_iter()
        .filter(|offer| offer.terms.availability == Some(Availability::SoldOut))
        .map(|offer| (offer.sku.expect("a slug"), offer.price.text, offer.terms.pricing_model))
        .collect();
    let expected = [("gpu-mi300x1-192gb", "2.59"), ("gpu-6000adax1-48gb", "1.57")];
    assert_eq!(sold_out, expected.map(|(slug, text)| (slug.to_owned(), text.to_owned(), PricingModel::OnDemand)));
}

#[test]
fn the_list_leads_on_with_the_key_and_never_to_another_host() {
    let answer = |next: &str| format!(r#"{{"sizes":[],"links":{{"pages":{{"next":"{next}"}}}},"meta":{{"total":0}}}}"#);
    let second = "https://api.digitalocean.com/v2/sizes?page=2&per_page=500";
    let next = Digitalocean.follow(&page(URL, answer(second))).expect("the page leads on");
    assert_eq!((next[0].name.as_str(), next[0].url.as_str(), next[0].with_key), ("sizes-2", second, true));
    assert_eq!(next[0].scope, "api");
    assert_eq!(Digitalocean.follow(&page(URL, r#"{"sizes":[],"links":{},"meta":{"total":0}}"#)), Ok(Vec::new()));
    for wrong in [URL, "https://example.com/v2/sizes?page=2"] {
        assert!(Digitalocean.follow(&page(URL, answer(wrong))).is_err(), "{wrong}");
    }
    assert_eq!(Digitalocean.follow(&page("page.html", "<p>a page</p>")), Ok(Vec::new()));
}

#[test]
fn a_page_cut_anywhere_is_refused() {
    let recording = recordings::newest("digitalocean").expect("there is a dated recording");
    let whole = recording.pages[0].clone();
    let end = whole.text().expect("the page is text").find("</html>").expect("the page ends");
    for length in (1..=end).step_by(211).filter(|length| std::str::from_utf8(&whole.body[..*length]).is_ok()) {
        let cut = Page { body: whole.body[..length].to_vec(), ..whole.clone() };
        assert!(read(&Digitalocean, vec![cut]).values().all(Result::is_err), "cut at {length}");
    }
}
