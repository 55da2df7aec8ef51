//! The real answer kept beside the checkout, the chain of pages, and the hardware of every machine that has a price.

use std::path::Path;

use rust_decimal::Decimal;

use super::*;
use crate::contract::{Os, PriceUnit, PricingModel, PublishedOffer};

const ANSWER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../shared/samples/azure/retail_prices_eastus_nd_2026-07-27.json");

pub(super) fn page(name: &str, scope: &str, url: &str, body: &str) -> Page {
    let observed_at = "2026-08-20T02:00:00Z".parse().expect("a literal time");
    Page {
        name: name.to_owned(),
        scope: scope.to_owned(),
        url: url.to_owned(),
        observed_at,
        sha256: String::new(),
        body: body.as_bytes().to_vec(),
    }
}

pub(super) fn row(sku: u32, region: &str, price: &str) -> String {
    format!(
        r#"{{"currencyCode": "USD", "retailPrice": {price}, "armRegionName": "{region}", "meterId": "m", "meterName": "NC4as T4 v3",
        "skuId": "s/{sku}", "productName": "Virtual Machines NCasT4 v3 Series", "skuName": "NC4as T4 v3",
        "unitOfMeasure": "1 Hour", "type": "Consumption", "armSkuName": "Standard_NC4as_T4_v3"}}"#
    )
}

/// A page of two rows of East US, told apart by their SKUs.
fn pair(url: &str, first_sku: u32, next: Option<&str>) -> Page {
    let next = next.map_or_else(|| "null".to_owned(), |next| format!("\"{next}\""));
    let rows = [row(first_sku, "eastus", "0.526"), row(first_sku + 1, "eastus", "0.526")].join(",");
    page(url, "eastus", url, &format!(r#"{{"Items": [{rows}], "NextPageLink": {next}, "Count": 2}}"#))
}

fn summary(offer: &PublishedOffer) -> (&str, PricingModel, Option<u32>, Os, String, PriceUnit) {
    let machine = offer.instance_type.as_deref().expect("every row names its machine");
    let terms = &offer.terms;
    (machine, terms.pricing_model, terms.commitment_months, terms.os, offer.price.amount.to_string(), offer.price.unit)
}

#[test]
fn the_real_answer_of_east_us_reads_as_it_is_published() {
    if !Path::new(ANSWER).exists() {
        eprintln!("skipped: ../shared is not beside this checkout");
        return;
    }
    let body = std::fs::read_to_string(ANSWER).expect("the file was there a moment ago");
    let answer = page("page-0001", SCOPE_ALL, ANSWER, &body);
    assert_eq!(Azure.scope(&answer), Ok(Some("eastus".to_owned())));
    let parsed = Azure.parse(&[answer]).expect("the answer reads");
    let summaries: Vec<_> = parsed.offers.iter().map(summary).collect();
    let expected = [
        ("Standard_ND96isr_H100_v5", PricingModel::OnDemand, None, Os::Linux, "98.32", PriceUnit::Hour),
        ("Standard_ND96isr_H100_v5", PricingModel::Reserved, Some(12), Os::Linux, "551221", PriceUnit::Term),
        ("Standard_ND96isr_H100_v5", PricingModel::Reserved, Some(36), Os::Linux, "1134310", PriceUnit::Term),
        ("Standard_ND96asr_v4", PricingModel::LowPriority, None, Os::Windows, "12.645", PriceUnit::Hour),
        ("Standard_ND40rs_v2", PricingModel::Spot, None, Os::Windows, "4.411546", PriceUnit::Hour),
        ("Standard_ND96amsr_A100_v4", PricingModel::LowPriority, None, Os::Linux, "6.554", PriceUnit::Hour),
        ("Standard_ND96asr_v4", PricingModel::Spot, None, Os::Linux, "5.98334", PriceUnit::Hour),
        ("Standard_ND96is_H100_v5", PricingModel::OnDemand, None, Os::Linux, "88.488", PriceUnit::Hour),
    ];
    assert_eq!(
        summaries,
        expected.map(|(machine, model, months, os, amount, unit)| (machine, model, months, os, amount.to_owned(), unit))
    );
    assert_eq!(parsed.out_of_scope.get("dev/test licence"), Some(&2));
    assert!(parsed.skipped.is_empty() && parsed.unread_fields.is_empty(), "{parsed:?}");
}

#[test]
fn a_live_page_leads_to_its_next_one_on_the_same_site() {
    let url = "https://prices.azure.com/api/retail/prices?a=b";
    let next = "https://prices.azure.com:443/api/retail/prices?a=b&$skip=2";
    let mut first = pair(url, 1, Some(next));
    first.name = "retail-eastus-0009".to_owned();
    let requests = Azure.follow(&first).expect("a good link");
    assert_eq!(requests.len(), 1);
    assert_eq!(requests[0].name, "retail-eastus-0010");
    assert_eq!(requests[0].scope, "eastus");
    assert_eq!(requests[0].url, "https://prices.azure.com/api/retail/prices?a=b&$skip=2");
    assert_eq!(Azure.follow(&pair(url, 1, None)), Ok(Vec::new()));
    assert_eq!(Azure.follow(&pair(url, 1, Some(""))), Ok(Vec::new()));
    let refused = [
        "https://prices.azure.com:443/api/retail/prices?a=b",
        "http://prices.azure.com/api/retail/prices?a=c",
        "https://prices.azure.com.example.net/?a=c",
        "https://prices.azure.com:443@example.net/?a=c",
        "/api/retail/prices?a=c",
    ];
    for link in refused {
        let result = Azure.follow(&pair(url, 1, Some(link)));
        assert_eq!(result.map_err(|error| error.code()), Err("shape_changed"), "{link}");
    }
}

#[test]
fn links_between_files_are_found_by_file_name_whatever_the_folder() {
    let pages = [pair("dir/page-0001.json", 1, Some("page-0002.json")), pair("dir/page-0002.json", 3, None)];
    assert_eq!(Azure.parse(&pages).map(|parsed| parsed.offers.len()), Ok(4));
    let elsewhere = [pair("a/page-0001.json", 1, Some("b/page-0002.json")), pair("c/page-0002.json", 3, None)];
    assert_eq!(Azure.parse(&elsewhere).map(|parsed| parsed.offers.len()), Ok(4));
    assert_eq!(Azure.parse(&pages[..1]).map_err(|error| error.code()).map(drop), Err("page_missing"));
}

#[test]
fn saved_pages_with_links_of_the_site_form_a_chain_by_their_first_rows() {
    let link = |skip| format!("https://prices.azure.com:443/api/retail/prices?a=b&$skip={skip}");
    let named = |names: [&str; 4]| {
        [
            pair(names[0], 1, Some(&link(2))),
            pair(names[1], 3, Some(&link(4))),
            pair(names[2], 5, Some(&link(6))),
            pair(names[3], 7, None),
        ]
    };
    let numbered = named(["d/page-0.json", "d/page-1.json", "d/page-2.json", "d/page-3.json"]);
    let names = [
        ["x.json", "b.json", "a.json", "c.json"],
        ["d/page-3.json", "d/page-2.json", "d/page-1.json", "d/page-0.json"],
        ["d/page-2.json", "d/page-0.json", "d/page-3.json", "d/page-1.json"],
        ["p-6.json", "p-4.json", "p-2.json", "p-0.json"],
        ["p-0.json", "p-2.json", "p-4.json", "p-6.json"],
        ["a1.json", "b2.json", "a7.json", "b9.json"],
        ["p-831.json", "p-17.json", "p-404.json", "p-52.json"],
    ];
    for pages in names.map(named).iter().chain([&numbered]) {
        let rows = |pages: &[Page]| {
            let parsed = Azure.parse(pages)?;
            Ok::<_, ScrapeError>(parsed.offers.into_iter().filter_map(|offer| offer.sku).collect::<Vec<_>>())
        };
        let mut reversed = pages.clone();
        reversed.reverse();
        for pages in [pages, &reversed] {
            let expected = (1..=8).map(|sku| format!("s/{sku}|m")).collect::<Vec<_>>();
            assert_eq!(rows(pages), Ok(expected), "{}", pages[0].name);
        }
    }
    for missing in 1..4 {
        let rest: Vec<Page> =
            numbered.iter().enumerate().filter(|(index, _)| *index != missing).map(|(_, page)| page.clone()).collect();
        assert_eq!(Azure.parse(&rest).map_err(|error| error.code()).map(drop), Err("page_missing"), "without page {missing}");
    }
    // From the site itself a link is an address and nothing else.
    let live = [pair("https://prices.azure.com/?a=b", 1, Some(&link(2))), pair("https://prices.azure.com/?a=b&$skip=3", 3, None)];
    assert_eq!(Azure.parse(&live).map_err(|error| error.code()).map(drop), Err("page_missing"));
}

#[test]
fn a_page_of_several_regions_has_no_scope_of_its_own() {
    let rows = [row(1, "eastus", "0.526"), row(2, "WestUS3", "0.526")].join(",");
    let mixed = page("p", SCOPE_ALL, "p.json", &format!(r#"{{"Items": [{rows}], "NextPageLink": null}}"#));
    assert_eq!(Azure.scope(&mixed), Ok(None));
    let regions =
        Azure.parse(&[mixed]).map(|parsed| parsed.offers.into_iter().filter_map(|offer| offer.region).collect::<Vec<_>>());
    assert_eq!(regions, Ok(vec!["eastus".to_owned(), "westus3".to_owned()]));
    let empty = page("p", SCOPE_ALL, "p.json", r#"{"Items": [], "NextPageLink": null}"#);
    assert_eq!(Azure.scope(&empty).map_err(|error| error.code()), Err("nothing_found"));
    let error = page("p", SCOPE_ALL, "p.json", r#"{"error": {"message": "armRegionName: no"}}"#);
    assert_eq!(Azure.scope(&error).map_err(|error| error.code()), Err("error_answer"));
}

#[test]
fn amounts_keep_their_digits_and_odd_values_are_not_guessed() {
    let read = |price: &str| {
        let body = format!(r#"{{"Items": [{}], "NextPageLink": null}}"#, row(1, "eastus", price));
        let parsed = Azure.parse(&[page("p", "eastus", "p.json", &body)]).expect("the page reads");
        parsed.offers.first().map(|offer| offer.price.amount).ok_or_else(|| parsed.skipped[0].reason.code())
    };
    for (text, amount) in [("0.49111600", "0.491116"), ("2e-3", "0.002"), ("\"3.50 \"", "3.5"), ("3", "3")] {
        assert_eq!(read(text), Ok(Decimal::from_str_exact(amount).expect("a literal decimal")), "{text}");
    }
    let odd = [("null", "price_missing"), ("-1", "price_unreadable"), ("0.0", "price_zero"), ("[3.5]", "field_unreadable")];
    for (text, code) in odd.into_iter().chain([("\"Contact sales\"", "price_on_request"), ("\"NaN\"", "price_missing")]) {
        assert_eq!(read(text), Err(code), "{text}");
    }
}

#[test]
fn a_row_without_a_machine_is_listed_only_if_it_is_of_the_n_series() {
    let nameless = row(1, "eastus", "0.5").replace("Standard_NC4as_T4_v3", "");
    let other = nameless.replace("NCasT4 v3 Series", "Dsv3 Series").replace("NC4as T4 v3", "D2s v3");
    let body = format!(r#"{{"Items": [{nameless}, {other}], "NextPageLink": null}}"#);
    let parsed = Azure.parse(&[page("p", "eastus", "p.json", &body)]).expect("the page reads");
    assert_eq!(parsed.skipped.iter().map(|row| row.place.at.as_str()).collect::<Vec<_>>(), ["/Items/0"]);
    assert_eq!(parsed.out_of_scope.get("not a GPU machine"), Some(&1));
}

#[test]
fn an_undated_row_beside_a_dated_one_of_another_price_is_a_contradiction() {
    let dated = row(1, "eastus", "0.6").replacen('{', r#"{"effectiveStartDate": "2026-01-01T00:00:00Z", "#, 1);
    let body = format!(r#"{{"Items": [{}, {dated}], "NextPageLink": null}}"#, row(1, "eastus", "0.5"));
    let parsed = Azure.parse(&[page("p", "eastus", "p.json", &body)]).expect("the page reads");
    assert!(parsed.offers.is_empty());
    assert!(parsed.skipped.iter().all(|row| row.reason.code() == "contradiction"), "{:?}", parsed.skipped);
}
