//! Checks of what is complete, of cards and hosts, and against stored listings and a stored catalogue.

use std::collections::BTreeMap;
use std::path::Path;

use chrono::{DateTime, Utc};
use num_rational::Ratio;
use rust_decimal::Decimal;
use serde_json::{Value, json};

use super::*;
use crate::contract::PublishedOffer;
use crate::manifest::TermsOfUse;
use crate::recordings;

const SHARED: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../shared/");

fn page(name: &str, scope: &str, body: impl Into<Vec<u8>>) -> Page {
    let body = body.into();
    Page {
        name: name.to_owned(),
        scope: scope.to_owned(),
        url: URL.to_owned(),
        observed_at: DateTime::<Utc>::UNIX_EPOCH,
        sha256: crate::sha256(&body),
        body,
    }
}

fn stored(file: &str) -> Option<String> {
    let path = format!("{SHARED}{file}");
    if !Path::new(&path).exists() {
        eprintln!("skipped: ../shared is not beside this checkout");
        return None;
    }
    Some(std::fs::read_to_string(path).expect("the file reads"))
}

/// A listing of one RTX 4090 with all that is read; other fields are set by the test.
fn listing(id: u32, dph_total: &str) -> Value {
    json!({
        "id": id, "gpu_name": "RTX 4090", "num_gpus": 1, "gpu_ram": 24564, "gpu_frac": 1.0, "dph_total": dph_total, "min_bid": "0.1",
        "reliability2": 0.99, "verification": "verified", "rentable": true, "geolocation": "Poland, PL",
        "cpu_cores_effective": 16, "cpu_ram": 65536
    })
}

fn with(mut listing: Value, fields: &Value) -> Value {
    let fields = fields.as_object().expect("fields");
    listing.as_object_mut().expect("a listing").extend(fields.clone());
    listing
}

fn answer(name: &str, listings: &[Value]) -> Page {
    page(name, "RTX 4090", json!({ "offers": listings }).to_string())
}

fn one(fields: Value) -> Parsed {
    Vastai.parse(&[answer("on-demand-cheapest-RTX 4090", &[with(listing(1, "0.3"), &fields)])]).expect("the answer parses")
}

/// Listings of these numbers, each at its number of cents.
fn cents(ids: impl IntoIterator<Item = u32>) -> Vec<Value> {
    ids.into_iter().map(|id| listing(id, &Decimal::new(id.into(), 2).to_string())).collect()
}

fn refusal(pages: &[Page]) -> String {
    Vastai.parse(pages).expect_err("it is refused").to_string()
}

#[test]
fn the_stored_listings_are_cut_to_four_fields_and_refused_for_the_first_that_is_missing() {
    let Some(text) = stored("samples/vastai/offers_slim_2026.json") else { return };
    let bare = refusal(&[page("on-demand-all-H200", "all", text.as_str())]);
    assert!(bare.contains("changed shape at /: expected an object"), "{bare}");
    let wrapped = page("on-demand-all-H200", "all", format!("{{\"offers\":{text}}}"));
    let reason = crate::read(&Vastai, vec![wrapped]).remove("all").expect("it is read").expect_err("it is refused").to_string();
    assert!(reason.starts_with("138 of 138 rows were not understood"), "{reason}");
    assert!(reason.ends_with("field `rentable` is missing"), "{reason}");
}

#[test]
fn the_stored_listings_with_hosts_and_a_place_give_the_middle_of_each_card_and_count() {
    let Some(text) = stored("samples/vastai/offers_slim_2026.json") else { return };
    // Added: a number, a host and a place for each, the same of all.
    let mut rows: Vec<Value> = serde_json::from_str(&text).expect("the listings are JSON");
    let added = |id: usize| json!({"id": id, "rentable": true, "verification": "verified", "reliability2": 0.98, "geolocation": "Sweden, SE"});
    rows = rows.into_iter().enumerate().map(|(id, row)| with(row, &added(id))).collect();
    let parsed = Vastai.parse(&[page("on-demand-all-x", "all", json!({ "offers": rows }).to_string())]).expect("it parses");
    assert!(parsed.skipped.is_empty() && parsed.unread_fields.is_empty(), "{:?}", parsed.skipped);
    // The same worked out apart: sizes by a list of what drivers show, and prices in whole numbers of 1e-11 dollars.
    let sizes =
        [(39_936, 40), (40_960, 40), (46_068, 48), (81_559, 80), (81_920, 80), (95_830, 94), (143_771, 141), (183_359, 180)];
    let mut expected: BTreeMap<(String, i64, i64), Vec<i128>> = BTreeMap::new();
    for row in &rows {
        let shown = row["gpu_ram"].as_i64().expect("a size");
        let size = sizes.iter().find(|(mib, _)| *mib == shown).expect("a size of the list").1;
        let key = (row["gpu_name"].as_str().expect("a name").to_owned(), size, row["num_gpus"].as_i64().expect("a count"));
        let (whole, fraction) =
            row["dph_total"].to_string().split_once('.').map(|(a, b)| (a.to_owned(), format!("{b:0<20}"))).expect("a price");
        let twenty: i128 = format!("{whole}{}", &fraction[..20]).parse().expect("digits");
        let billion = 1_000_000_000;
        expected.entry(key).or_default().push((twenty + billion / 2) / billion);
    }
    assert_eq!((parsed.offers.len(), expected.len()), (36, 36));
    let mut total = 0;
    for offer in &parsed.offers {
        let gpu = &offer.gpu;
        let gb = gpu.memory_gb.expect("a memory").to_string().parse().expect("a whole number");
        let count = i64::from(gpu.count.expect("a count").to_integer());
        let prices = expected.get_mut(&(gpu.label.clone().expect("a card"), gb, count)).expect("the same bucket");
        prices.sort_unstable();
        let said = offer.price.listings.expect("it has listings");
        let twice = prices[(prices.len() - 1) / 2] + prices[prices.len() / 2];
        let units = |amount: Decimal, digits: u32| (amount * Decimal::from(10_u64.pow(digits))).normalize();
        assert_eq!(units(said.amount_median, 11) * Decimal::TWO, Decimal::from(twice), "{offer:?}");
        assert_eq!((units(said.amount_min, 11), units(said.amount_max, 11)), (prices[0].into(), prices[prices.len() - 1].into()));
        assert_eq!((said.count as usize, offer.price.amount), (prices.len(), said.amount_median));
        total += said.count;
    }
    let of_memory = |gb: u32| -> u32 {
        let is_it =
            |offer: &&PublishedOffer| offer.gpu.label.as_deref() == Some("A100 SXM4") && offer.gpu.memory_gb == Some(gb.into());
        parsed.offers.iter().filter(is_it).filter_map(|offer| offer.price.listings).map(|listings| listings.count).sum()
    };
    assert_eq!((total, of_memory(40), of_memory(80)), (138, 29, 12));
}

#[test]
fn the_memory_of_every_machine_of_a_catalogue_is_a_size_that_its_card_is_sold_with() {
    let Some(text) = stored("data/catalogs/skypilot_v8/vast_680a69b15e68.csv") else { return };
    let refused = refusal(&[page("on-demand-all-x", "all", text.as_str())]);
    assert!(refused.contains("is not JSON"), "{refused}");
    let mut seen = 0;
    for row in csv::Reader::from_reader(text.as_bytes()).records().map(|row| row.expect("a row")) {
        let total_mib =
            row[5].rsplit_once("'TotalGpuMemoryInMiB': ").and_then(|(_, rest)| rest.trim_end_matches('}').parse::<u32>().ok());
        let count: u32 = row[2].parse().expect("a count");
        let one_mib = Decimal::from(total_mib.expect("a memory")) / Decimal::from(count);
        let sold: &[u32] = match &row[1] {
            "A100" => &[40, 80],
            "A40" | "L40S" | "RTX6000-Ada" | "RTXA6000" => &[48],
            "B200" => &[180],
            "H100" => &[80, 94],
            "H200" => &[141],
            "RTX3060" => &[12],
            "RTX3070" => &[8],
            "RTX3090" | "RTXA5000" => &[24],
            // Also rebuilt with twice the memory.
            "RTX4090" => &[24, 48],
            "RTX5090" => &[32],
            "RTXPRO6000WS" => &[96],
            "V100" => &[16, 32],
            card => panic!("{card} is not in this table"),
        };
        let ours = listing::sold_gb(one_mib).unwrap_or_else(|| panic!("{} has {one_mib} MiB", &row[1]));
        assert!(sold.iter().any(|gb| Decimal::from(*gb) == ours), "{} has {ours}", &row[1]);
        seen += 1;
    }
    assert_eq!(seen, 63);
}

#[test]
fn a_driver_s_mib_become_the_size_a_card_is_sold_with_and_what_is_near_none_is_not_read() {
    let shown = [
        (24_564, 24),
        (23_034, 24),
        (32_607, 32),
        (40_960, 40),
        (39_936, 40),
        (46_068, 48),
        (81_559, 80),
        (81_920, 80),
        (95_830, 94),
        (97_887, 96),
        (143_771, 141),
        (183_359, 180),
        (275_040, 288),
        (15_360, 16),
    ];
    for (mib, gb) in shown {
        assert_eq!(listing::sold_gb(Decimal::from(mib)), Some(Decimal::from(gb)), "{mib}");
    }
    for mib in [0, 24, 22_528, 163_118, 652_472, 1_000_000] {
        assert_eq!(listing::sold_gb(Decimal::from(mib)), None, "{mib}");
    }
}

#[test]
fn the_price_is_of_the_whole_listing_and_of_the_question() {
    let row = with(listing(1, "4.718148148148148"), &json!({"num_gpus": 2, "gpu_frac": 0.25, "min_bid": 2.1, "is_bid": false}));
    let read = |name: &str, scope: &str| {
        let mut parsed = Vastai.parse(&[page(name, scope, json!({ "offers": [row] }).to_string())]).expect("it parses");
        assert_eq!(parsed.offers.len(), 1, "{parsed:?}");
        parsed.offers.remove(0)
    };
    let (ask, bid) = (read("on-demand-cheapest-RTX 4090", "RTX 4090"), read("bid-cheapest-RTX 4090", "RTX 4090@bid"));
    assert_eq!((ask.terms.pricing_model, bid.terms.pricing_model), (PricingModel::OnDemand, PricingModel::Spot));
    assert_eq!((ask.price.amount, bid.price.amount), (Decimal::new(471_814_814_815, 11), Decimal::new(21, 1)));
    assert_eq!((ask.price.text.as_str(), ask.price.per), ("4.718148148148148", crate::contract::PricePer::Instance));
    assert_eq!((ask.gpu.count, ask.sku), (Some(Ratio::from(2)), None), "no number of a listing is kept");
    assert_eq!(ask.machine.system_memory_gib, None, "the memory is of four times as much as is rented");
}

#[test]
fn processors_that_are_not_stated_are_not_none() {
    for cores in [json!(null), json!(0)] {
        let parsed = one(json!({ "cpu_cores_effective": cores }));
        assert_eq!(parsed.offers.iter().map(|offer| offer.machine.vcpus).collect::<Vec<_>>(), [None], "{parsed:?}");
    }
}

#[test]
fn hosts_that_are_not_verified_or_not_reliable_are_left_out_with_a_reason() {
    let left_out = |fields: Value| {
        let parsed = one(fields);
        assert!(parsed.offers.is_empty() && parsed.skipped.is_empty(), "{parsed:?}");
        parsed.out_of_scope.into_keys().collect::<Vec<_>>()
    };
    assert_eq!(left_out(json!({"verification": "unverified"})), ["a host that is not verified"]);
    assert_eq!(left_out(json!({"verification": "deverified"})), ["a host that is not verified"]);
    assert_eq!(left_out(json!({"reliability2": 0.8999})), ["a host that is less reliable than 0.9"]);
    assert_eq!(left_out(json!({"rentable": false})), ["not for rent now"]);
    assert_eq!(one(json!({"reliability2": 0.9})).offers.len(), 1);
}

#[test]
fn a_country_is_the_end_of_a_place_of_two_parts() {
    let regions = |place: &str| {
        one(json!({ "geolocation": place })).offers.into_iter().map(|offer| offer.region.expect("a place")).collect::<Vec<_>>()
    };
    assert_eq!(regions("Sweden, SE"), ["SE"]);
    assert_eq!(regions("US"), ["US"]);
    for unknown in ["Michigan, US, NA", "Sweden", "Sweden, se", "Sweden, SWE"] {
        assert!(regions(unknown).is_empty(), "{unknown}");
    }
}

#[test]
fn a_full_answer_without_a_key_is_all_only_where_the_dearest_meet_the_cheapest() {
    let cheapest = |ids: std::ops::Range<u32>| answer("on-demand-cheapest-RTX 4090", &cents(ids));
    let dearest = |ids: std::ops::Range<u32>| answer("on-demand-dearest-RTX 4090", &cents(ids));
    let count = |pages: &[Page]| -> Option<u32> {
        let parsed = Vastai.parse(pages).ok()?;
        Some(parsed.offers.iter().filter_map(|offer| offer.price.listings).map(|listings| listings.count).sum())
    };
    assert_eq!(count(&[cheapest(1..64)]), Some(63), "an answer that is not full is all there is");
    assert_eq!(count(&[cheapest(1..65)]), None);
    assert_eq!(count(&[dearest(1..65)]), None);
    assert_eq!(count(&[cheapest(1..65), dearest(30..94)]), Some(93));
    assert_eq!(count(&[cheapest(1..65), dearest(63..127)]), Some(126), "two listings are in both");
    assert_eq!(count(&[cheapest(1..65), dearest(64..128)]), None, "one listing is in both: others may cost as much");
    assert_eq!(count(&[cheapest(1..65), dearest(65..129)]), None);
    assert_eq!(count(&[cheapest(1..65), cheapest(1..65)]), None);
    assert_eq!(count(&[cheapest(1..65), dearest(1..65)]), None, "a server that forgets the order answers the same twice");
    // Neither is the other's end: 10 to 74 are not the dearest of what has 1 to 64 and 100 to 163.
    let mixed = [cents(10..42), cents(100..132)].concat();
    assert_eq!(count(&[answer("on-demand-cheapest-RTX 4090", &mixed), dearest(10..74)]), None);
    let reason = refusal(&[cheapest(1..65), dearest(87..151)]);
    assert!(reason.ends_with("leads to `the listings between 0.64 and 0.87 dollars`, which is not among the pages"), "{reason}");
    assert_eq!(count(&[answer("on-demand-all-RTX 4090", &cents(1..65))]), Some(64), "with a key 64 are 64");
    assert_eq!(
        count(&[answer("on-demand-all-RTX 4090", &cents(1..5_001))]),
        None,
        "and as many as were asked for may not be all"
    );
}

#[test]
fn answers_lead_to_the_dearest_where_they_are_full_and_from_on_demand_to_spot() {
    let led = |name: &str, scope: &str, listings: u32| {
        let page = page(name, scope, json!({ "offers": cents(1..=listings) }).to_string());
        let requests = Vastai.follow(&page).expect("the answer reads");
        requests.into_iter().map(|request| (request.name, request.scope, request.with_key)).collect::<Vec<_>>()
    };
    let led_to = |name: &str, scope: &str, with_key: bool| (name.to_owned(), scope.to_owned(), with_key);
    let (card, spot) = ("RTX 4090", "RTX 4090@bid");
    let bid = led_to("bid-cheapest-RTX 4090", spot, false);
    assert_eq!(led("on-demand-cheapest-RTX 4090", card, 63), std::slice::from_ref(&bid));
    assert_eq!(led("on-demand-cheapest-RTX 4090", card, 64), [led_to("on-demand-dearest-RTX 4090", card, false), bid]);
    assert_eq!(led("bid-cheapest-RTX 4090", spot, 64), [led_to("bid-dearest-RTX 4090", spot, false)]);
    assert_eq!(led("on-demand-all-RTX 4090", card, 64), [led_to("bid-all-RTX 4090", spot, true)]);
    for name in ["on-demand-dearest-RTX 4090", "bid-dearest-RTX 4090", "bid-all-RTX 4090"] {
        assert_eq!(led(name, card, 64), []);
    }
}

#[test]
fn the_questions_of_the_manifest_are_those_that_follow_and_both_ask_for_the_same_cards() {
    let same =
        |a: &str, b: &str| serde_json::from_str::<Value>(a).expect("JSON") == serde_json::from_str::<Value>(b).expect("JSON");
    let starts = [(false, Part::Cheapest), (true, Part::All)].map(|(has_key, part)| {
        let start = MANIFEST.start(has_key);
        for asked in &start {
            let ours = request(&asked.scope, PricingModel::OnDemand, part);
            assert!(same(asked.body.as_deref().unwrap_or_default(), ours.body.as_deref().unwrap_or_default()), "{asked:?}");
            let (asked_for, ours_for) =
                ((&asked.name, &asked.url, asked.method, asked.with_key), (&ours.name, &ours.url, ours.method, ours.with_key));
            assert_eq!(asked_for, ours_for);
        }
        start.into_iter().map(|request| request.scope).collect::<Vec<_>>()
    });
    assert_eq!(starts[0], starts[1]);
    assert!(starts[0].len() * 4 <= MANIFEST.fetch.max_pages, "four questions a card at most");
    let spot = request("A\"} ", PricingModel::Spot, Part::Dearest).body.expect("a body");
    let spot: Value = serde_json::from_str(&spot).expect("a name is never more than a name");
    assert_eq!((&spot["type"], &spot["order"][0][1], &spot["limit"]), (&json!("bid"), &json!("desc"), &json!(64)));
    assert!(spot.get("q").is_none(), "a question that is wrapped is refused");
}

#[test]
fn with_and_without_a_key_the_same_listings_are_the_same_offers() {
    let read = |pages: &[Page]| {
        let mut offers = Vastai.parse(pages).expect("it parses").offers;
        for offer in &mut offers {
            offer.place.page.clear();
            offer.place.at.clear();
        }
        offers
    };
    let without = [answer("on-demand-cheapest-RTX 4090", &cents(1..65)), answer("on-demand-dearest-RTX 4090", &cents(30..94))];
    assert_eq!(read(&without), read(&[answer("on-demand-all-RTX 4090", &cents(1..94))]));
}

#[test]
fn a_page_whose_name_does_not_say_what_was_asked_is_refused() {
    let reason = refusal(&[answer("offers", &cents(1..3))]);
    assert!(reason.contains("changed shape at the name of the page"), "{reason}");
    // A file may have more in front.
    assert!(Vastai.parse(&[answer("page-0007-on-demand-cheapest-RTX4090", &cents(1..3))]).is_ok());
}

#[test]
fn every_listing_behind_an_offer_can_be_looked_up() {
    let recording = recordings::newest("vastai").expect("there is a dated recording");
    let pages: Vec<Page> = recording.pages.into_iter().filter(|page| page.scope == "H100 SXM").collect();
    for offer in Vastai.parse(&pages).expect("it parses").offers {
        let spots = Vastai.spots(&pages, &offer.place, None, &offer.price.text);
        assert_eq!(Some(spots.len()), offer.price.listings.map(|listings| listings.count as usize));
        assert_eq!(spots[0].place, offer.place, "the lowest comes first");
        for spot in spots {
            let pieces = Vastai.pieces(&pages[0], &spot.place.at).expect("the place is there");
            assert_eq!(pieces.last().map(|piece| piece.text.as_str()), Some(spot.printed[0].as_str()));
        }
    }
}

#[test]
fn the_terms_forbid_it_so_it_runs_only_when_it_is_named_and_its_figures_are_made_up() {
    assert_eq!(MANIFEST.terms, TermsOfUse::Restricted);
    assert!(MANIFEST.terms_note.contains("2026-09-01"));
    for recording in recordings::of("vastai").into_iter().filter(recordings::Recording::is_dated) {
        assert!(recording.receipt.has_made_up_prices, "{}", recording.case);
    }
}
