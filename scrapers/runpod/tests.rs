//! Checks of clouds, placeholders and slices, and against a stored answer and a stored page.

use std::collections::BTreeSet;
use std::path::Path;

use chrono::{DateTime, Utc};
use num_rational::Ratio;

use super::*;
use crate::contract::{Method, SCOPE_ALL};
use crate::manifest::TermsOfUse;
use crate::{read, recordings};

const SAMPLES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../shared/samples/runpod/");

fn page(body: impl Into<Vec<u8>>) -> Page {
    let body = body.into();
    Page {
        name: "gpu-types".to_owned(),
        scope: SCOPE_ALL.to_owned(),
        url: "https://api.runpod.io/graphql".to_owned(),
        observed_at: DateTime::<Utc>::UNIX_EPOCH,
        sha256: crate::sha256(&body),
        body,
    }
}

fn stored(file: &str) -> Option<String> {
    let path = format!("{SAMPLES}{file}");
    if !Path::new(&path).exists() {
        eprintln!("skipped: ../shared is not beside this checkout");
        return None;
    }
    Some(std::fs::read_to_string(path).expect("the answer reads"))
}

fn refusal(text: String) -> String {
    read(&Runpod, vec![page(text)]).remove(SCOPE_ALL).expect("the scope is read").expect_err("it is refused").to_string()
}

/// Reads one type with these fields beside its id, its memory and the clouds' prices.
fn type_with(fields: &str) -> Parsed {
    let row = format!(
        r#"{{"data":{{"gpuTypes":[{{"id":"NVIDIA L40S","memoryInGb":48,"securePrice":0.93,"communityPrice":0.71,{fields}}}]}}}}"#
    );
    Runpod.parse(&[page(row)]).expect("the list parses")
}

#[test]
fn the_stored_answer_says_not_which_cloud_has_a_type_and_is_refused() {
    let Some(text) = stored("graphql_gputypes_2026.json") else { return };
    let reason = refusal(text);
    assert!(reason.starts_with("47 of 47 rows were not understood"), "{reason}");
    assert!(reason.ends_with("field `secureCloud` is missing"), "{reason}");
}

#[test]
fn the_stored_answer_with_both_clouds_stated_gives_each_price_once_and_no_placeholder() {
    let Some(text) = stored("graphql_gputypes_2026.json") else { return };
    // Added: a cloud has a type if its price is none of those that stand for no market. And each is said to be in both.
    let stated = |says_both: bool| {
        let mut answer: serde_json::Value = serde_json::from_str(&text).expect("the answer is JSON");
        for row in answer["data"]["gpuTypes"].as_array_mut().expect("a list") {
            for cloud in [&SECURE, &COMMUNITY] {
                let amount = row[cloud.on_demand].to_string();
                row[cloud.is_there] = (says_both || !["0", "0.5", "1"].contains(&amount.as_str())).into();
                row[cloud.stock] = serde_json::json!({"stockStatus": null});
            }
        }
        Runpod.parse(&[page(answer.to_string())]).expect("the answer parses")
    };
    for says_both in [false, true] {
        let parsed = stated(says_both);
        let of = |plan: &str| parsed.offers.iter().filter(|offer| offer.terms.plan.as_deref() == Some(plan)).count();
        assert_eq!((of("secure_cloud"), of("community_cloud"), parsed.offers.len()), (35, 39, 74), "{says_both}");
        assert_eq!(parsed.out_of_scope["the row of no card"], 1);
        let is_slice = |offer: &&PublishedOffer| offer.gpu.share == GpuShare::FixedSlice;
        let slices: BTreeSet<_> = parsed.offers.iter().filter(is_slice).map(|offer| offer.gpu.count).collect();
        assert_eq!(slices, BTreeSet::from([Some(Ratio::new(1, 4)), Some(Ratio::new(1, 2))]));
        // A zero in a cloud that is said to have the type is no price either, and is told.
        let zeros = parsed.skipped.iter().filter(|row| row.reason == SkipReason::PriceZero).count();
        assert_eq!((zeros, parsed.skipped.len()), if says_both { (6, 6) } else { (0, 0) });
    }
}

#[test]
fn the_page_of_2025_whose_prices_a_script_fills_in_is_refused() {
    let Some(text) = stored("runpod_20250909131230.html") else { return };
    let reason = refusal(text);
    assert!(reason.starts_with("page `gpu-types` is not JSON: markup"), "{reason}");
}

#[test]
fn every_field_that_is_read_is_asked_for() {
    let start = MANIFEST.start(false);
    assert_eq!((start.len(), start[0].method), (1, Method::Post));
    let body: serde_json::Value = serde_json::from_str(start[0].body.as_deref().expect("a body")).expect("the body is JSON");
    let query = body["query"].as_str().expect("a query");
    let asked: BTreeSet<&str> = query.split(|c: char| !c.is_ascii_alphanumeric()).collect();
    let clouds = [&SECURE, &COMMUNITY].into_iter().flat_map(|cloud| [cloud.is_there, cloud.on_demand, cloud.spot, cloud.stock]);
    let terms =
        TERMS.map(|(field, _)| field).into_iter().chain(["oneWeekPrice", "clusterPrice", "id", "memoryInGb", "stockStatus"]);
    for field in clouds.chain(terms) {
        assert!(asked.contains(field), "{field}");
    }
}

#[test]
fn a_cloud_s_price_is_one_only_where_the_cloud_has_the_type() {
    let prices = |fields: &str| {
        let parsed = type_with(fields);
        let line = |offer: &PublishedOffer| format!("{} {}", offer.terms.plan.as_deref().unwrap_or("-"), offer.price.amount);
        parsed.offers.iter().map(line).collect::<Vec<_>>()
    };
    assert_eq!(prices(r#""secureCloud":true,"communityCloud":false"#), ["secure_cloud 0.93"]);
    assert_eq!(prices(r#""secureCloud":false,"communityCloud":true"#), ["community_cloud 0.71"]);
    assert_eq!(prices(r#""secureCloud":true,"communityCloud":true"#), ["secure_cloud 0.93", "community_cloud 0.71"]);
    let nowhere = r#""secureCloud":false,"communityCloud":false,"oneMonthPrice":0.61,"clusterPrice":0.99"#;
    assert!(prices(nowhere).is_empty());
    let parsed = type_with(r#""secureCloud":"yes","communityCloud":true"#);
    assert!(parsed.offers.is_empty() && parsed.skipped.len() == 1, "a word is no yes: {parsed:?}");
}

#[test]
fn a_week_is_left_out_and_never_becomes_a_month() {
    let parsed = type_with(r#""secureCloud":true,"communityCloud":false,"oneWeekPrice":0.87,"threeMonthPrice":0.81"#);
    let months: Vec<_> = parsed.offers.iter().map(|offer| (offer.terms.commitment_months, offer.price.text.as_str())).collect();
    assert_eq!(months, [(None, "0.93"), (Some(3), "0.81")]);
    assert_eq!(parsed.out_of_scope["a term of a week, and terms are counted in months"], 1);
    let none = type_with(r#""secureCloud":true,"communityCloud":false,"oneWeekPrice":0"#);
    assert_eq!(none.out_of_scope.keys().copied().collect::<Vec<_>>(), ["not in the community cloud"]);
}

#[test]
fn the_clouds_are_never_mixed_and_nothing_is_called_a_listing() {
    for recording in recordings::of("runpod") {
        let Ok(parsed) = Runpod.parse(&recording.pages) else { continue };
        for offer in &parsed.offers {
            let field = offer.place.at.rsplit('/').next().expect("a place ends in a field");
            let plan = match field {
                "securePrice" | "secureSpotPrice" => Some("secure_cloud"),
                "communityPrice" | "communitySpotPrice" => Some("community_cloud"),
                "clusterPrice" => Some("cluster"),
                _ => None,
            };
            assert_eq!(offer.terms.plan.as_deref(), plan, "{} {offer:?}", recording.case);
            assert!(offer.price.listings.is_none(), "the price is RunPod's own");
        }
    }
}

#[test]
fn the_terms_forbid_it_so_it_runs_only_when_it_is_named_and_its_figures_are_made_up() {
    assert_eq!(MANIFEST.terms, TermsOfUse::Restricted);
    assert!(MANIFEST.terms_note.contains("2026-03-24"));
    for recording in recordings::of("runpod").into_iter().filter(recordings::Recording::is_dated) {
        assert!(recording.receipt.has_made_up_prices, "{}", recording.case);
    }
}
