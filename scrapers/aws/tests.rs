//! Every trap of the source, the sieve, the indexes, and the full-size list where it can be made.

mod blocks;
mod bulk;
mod traps;

use std::collections::BTreeSet;

use super::*;
use crate::contract::{PricingModel, PublishedOffer, SCOPE_ALL, Site};
use crate::recordings::{self, Recording};

/// A page seen in the night of the dated case.
fn page(name: &str, scope: &str, url: &str, body: impl Into<Vec<u8>>) -> Page {
    let observed_at = "2026-09-02T02:00:00Z".parse().expect("a literal time");
    let url = url.to_owned();
    Page { name: name.to_owned(), scope: scope.to_owned(), url, observed_at, sha256: String::new(), body: body.into() }
}

fn recording(case: &str) -> Recording {
    recordings::of("aws").into_iter().find(|recording| recording.case == case).expect("a case of this name")
}

/// The page of a case, with its text changed.
fn changed_page(case: &str, name: &str, change: impl Fn(&str) -> String) -> Page {
    let mut page = recording(case).pages.into_iter().find(|page| page.name == name).expect("a page of this name");
    page.body = change(page.text().expect("fixtures are text")).into_bytes();
    page
}

fn offers(case: &str) -> Vec<PublishedOffer> {
    let read = crate::read(&Aws, recording(case).pages);
    read.into_values().flat_map(|parsed| parsed.expect("the scope reads").offers).collect()
}

fn amounts(offers: &[PublishedOffer], instance_type: &str, model: PricingModel) -> Vec<String> {
    let is_of =
        |offer: &&PublishedOffer| offer.instance_type.as_deref() == Some(instance_type) && offer.terms.pricing_model == model;
    offers.iter().filter(is_of).map(|offer| offer.price.amount.to_string()).collect()
}

#[test]
fn no_two_offers_of_a_night_are_of_the_same_thing() {
    let mut seen = BTreeSet::new();
    for offer in offers("2026-09-02") {
        let terms = &offer.terms;
        let key = format!(
            "{:?} {:?} {:?} {:?} {:?} {:?} {:?} {:?} {:?}",
            offer.region,
            offer.instance_type,
            terms.os,
            terms.tenancy,
            terms.pricing_model,
            terms.commitment_months,
            terms.upfront,
            terms.plan,
            offer.site
        );
        assert!(seen.insert(key.clone()), "{key}");
    }
    assert!(seen.len() > 40, "{}", seen.len());
}

#[test]
fn the_index_of_offers_leads_to_regions_and_savings_plans_of_its_partition() {
    let urls = |name: &str| {
        let index = recording("2026-09-02").pages.into_iter().find(|page| page.name == name).expect("the index");
        let requests = Aws.follow(&index).expect("the index reads");
        requests.into_iter().map(|request| (request.name, request.scope, request.url, request.is_immutable)).collect::<Vec<_>>()
    };
    let host = "https://pricing.us-east-1.amazonaws.com";
    let entry = |name: &str, scope: &str, url: String, is_fixed| (name.to_owned(), scope.to_owned(), url, is_fixed);
    assert_eq!(
        urls("offers"),
        [
            entry("regions", "index", format!("{host}/offers/v1.0/aws/AmazonEC2/current/region_index.json"), false),
            entry(
                "savings",
                "index",
                format!("{host}/savingsPlan/v1.0/aws/AWSComputeSavingsPlan/current/region_index.json"),
                false
            ),
        ]
    );
    let china = "https://pricing.cn-north-1.amazonaws.com.cn/offers/v1.0/cn/AmazonEC2";
    assert_eq!(urls("offers-cn"), [entry("regions-cn", "index", format!("{china}/current/region_index.json"), false)]);
    assert_eq!(
        urls("regions-cn"),
        [entry("prices-cn-north-1", "cn-north-1", format!("{china}/20260901201142/cn-north-1/index.csv"), true)]
    );
    assert_eq!(urls("regions").len(), 5);
    assert_eq!(
        urls("savings"),
        [entry(
            "plans-us-east-1",
            "us-east-1@plans",
            format!("{host}/savingsPlan/v1.0/aws/AWSComputeSavingsPlan/20260831184447/us-east-1/index.csv"),
            true
        )]
    );
}

#[test]
fn an_index_that_leads_elsewhere_or_nowhere_is_refused() {
    let follow = |name: &str, from: &str, to: &str| {
        let page = changed_page("2026-09-02", name, |text| text.replace(from, to));
        assert!(page.body != changed_page("2026-09-02", name, str::to_owned).body, "{from}");
        Aws.follow(&page).map_err(|error| error.code()).map(drop)
    };
    assert_eq!(follow("offers", "/offers/v1.0/aws/AmazonEC2/current/region", "https://example.net/region"), Err("shape_changed"));
    assert_eq!(follow("offers", "/offers/v1.0/aws/AmazonEC2/current/region", "//example.net/region"), Err("shape_changed"));
    assert_eq!(follow("offers", "currentSavingsPlanIndexUrl", "savings"), Err("shape_changed"));
    assert_eq!(follow("offers", "\"AmazonEC2\": {", "\"AmazonEC3\": {"), Err("shape_changed"));
    assert_eq!(follow("regions", "currentVersionUrl", "versionUrl"), Err("shape_changed"));
    assert_eq!(follow("regions", "/index.json", "/index.parquet"), Err("shape_changed"));
    let empty = page("regions", SCOPE_INDEX, "https://pricing.us-east-1.amazonaws.com/x", r#"{"regions": {}}"#);
    assert_eq!(Aws.follow(&empty).map_err(|error| error.code()), Err("nothing_found"));
    // Pages with prices lead nowhere.
    for page in recording("2026-09-02").pages.iter().filter(|page| page.scope != SCOPE_INDEX) {
        assert_eq!(Aws.follow(page), Ok(Vec::new()), "{}", page.name);
    }
}

#[test]
fn an_index_that_lacks_the_address_of_one_list_leads_to_the_newest() {
    let host = "https://pricing.us-east-1.amazonaws.com";
    let follow = |name: &str, from: &str, to: &str| {
        let page = changed_page("2026-09-02", name, |text| {
            let other = r#"{"regionCode": "eu-west-1", "versionUrl": "/savingsPlan/20260831184447/eu-west-1/index.json"},"#;
            text.replacen("\"regions\": [", &format!("\"regions\": [{other}"), 1).replacen(from, to, 1)
        });
        Aws.follow(&page).map_err(|error| error.code())
    };
    let prices = follow("regions", "currentVersionUrl", "currentVersionURL").expect("the index reads");
    let odd = PageRequest::get(
        "prices-us-east-1",
        "us-east-1",
        format!("{host}/offers/v1.0/aws/AmazonEC2/current/us-east-1/index.csv"),
    );
    assert_eq!((prices.len(), prices.last()), (5, Some(&odd)));
    assert!(prices[..4].iter().all(|request| request.is_immutable));
    let plans = follow("savings", "/us-east-1/index.json", "/us-east-1/index.parquet").expect("the index reads");
    let odd = PageRequest::get(
        "plans-us-east-1",
        "us-east-1@plans",
        format!("{host}/savingsPlan/v1.0/aws/AWSComputeSavingsPlan/current/us-east-1/index.csv"),
    );
    assert_eq!((plans.len(), plans.last()), (2, Some(&odd)));
    // A list without an address and without a region may be any.
    assert_eq!(follow("savings", "\"regionCode\": \"us-east-1\"", "\"region\": \"us-east-1\""), Err("shape_changed"));
}

#[test]
fn pages_from_files_tell_their_scope() {
    for mut page in recording("2026-09-02").pages {
        let scope = std::mem::replace(&mut page.scope, SCOPE_ALL.to_owned());
        assert_eq!(Aws.scope(&page), Ok(Some(scope)), "{}", page.name);
    }
    let list = recording("no-accelerated-machine").pages.remove(0);
    assert_eq!(Aws.scope(&list), Ok(Some("us-west-2-lax-1".to_owned())));
    assert_eq!(Aws.scope(&recording("another-region").pages.remove(0)), Ok(None));
    assert!(Aws.scope(&page("x", SCOPE_ALL, "x", "hello")).is_err());
    assert!(Aws.scope(&page("x", SCOPE_ALL, "x", r#"{"message": "Forbidden"}"#)).is_err());
}

#[test]
fn lists_of_several_regions_are_read_together() {
    let mut list = recording("another-region").pages.remove(0);
    SCOPE_ALL.clone_into(&mut list.scope);
    let parsed = Aws.parse(&[list]).expect("a list of all regions");
    let regions: BTreeSet<_> = parsed.offers.into_iter().filter_map(|offer| offer.region).collect();
    assert_eq!(regions.into_iter().collect::<Vec<_>>(), ["eu-west-1", "us-east-1"]);
}

#[test]
fn the_sieve_keeps_what_the_parser_reads_and_drops_the_rest() {
    for (head, other, ours) in [
        (super::PRICES_HEAD, "\"A\",\"m5.large\",\"c6i\",\"t3.micro\",\"inf\"\n", "\"A\",\"p7x.48xlarge\",\"B\"\n"),
        (super::PLANS_HEAD, "A,m5.large,c6i,t3.micro,p\n", "A,B,g9q.large\n"),
    ] {
        let sieve = Aws.sieve(head).expect("lists pass a sieve");
        assert!(Aws.sieves().contains(&sieve.name));
        let mut sifting = sieve.start();
        let text = format!("1\n2\n3\n4\n5\n6\n{}{ours}", other.replace("\"inf\"", "\"Inf\""));
        sifting.push(text.as_bytes()).expect("short lines");
        assert_eq!(String::from_utf8(sifting.finish()), Ok(format!("1\n2\n3\n4\n5\n6\n{ours}")));
    }
    for page in recording("2026-09-02").pages.iter() {
        if !page.scope.contains('-') || page.scope == SCOPE_BLOCKS {
            assert!(Aws.sieve(&page.body).is_none(), "{}", page.name);
            continue;
        }
        let mut sifting = Aws.sieve(&page.body).expect("lists pass a sieve").start();
        sifting.push(&page.body).expect("short lines");
        assert_eq!(sifting.finish(), page.body, "{}", page.name);
    }
}

#[test]
fn the_index_of_versions_names_the_nights_oldest_first() {
    let [request] = Aws.history_index().try_into().expect("one index");
    let path =
        std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../shared/data/samples/aws/aws_ec2_version_index_2025-09.json");
    let Ok(body) = std::fs::read(path) else {
        eprintln!("skipped: ../shared is not beside this checkout");
        return;
    };
    let nights = Aws.history(&page("versions", SCOPE_INDEX, &request.url, body)).expect("the real index reads");
    assert_eq!(nights.len(), 110);
    assert!(nights.is_sorted_by_key(|night| night.published_at));
    assert_eq!(nights[0].published_at.to_string(), "2015-12-09 14:45:27 UTC");
    let newest = nights.last().expect("110 nights");
    let first = newest.pages.iter().find(|page| page.scope == "us-east-1").expect("a known region");
    assert_eq!(first.name, "prices-us-east-1");
    assert_eq!(first.url, "https://pricing.us-east-1.amazonaws.com/offers/v1.0/aws/AmazonEC2/20250912225308/us-east-1/index.csv");
    assert!(
        newest.pages.iter().all(|page| page.is_immutable
            && page.may_be_missing
            && !page.scope.starts_with("cn-")
            && !places::is_zone(&page.scope))
    );
    assert_eq!(newest.pages.len(), 36);
}

#[test]
fn partitions_are_sites() {
    assert_eq!(places::site("cn-northwest-1"), Some(Site::Cn));
    assert_eq!(places::site("us-gov-west-1"), Some(Site::Gov));
    assert_eq!(places::site("us-east-1"), None);
    for offer in offers("2026-09-02") {
        let region = offer.region.as_deref().expect("every offer has a region");
        assert_eq!(offer.site, places::site(region));
        assert_eq!(offer.price.currency_code == "CNY", offer.site == Some(Site::Cn), "{region}");
        assert_eq!(offer.price.tax_included.is_none(), offer.site == Some(Site::Cn), "{region}");
    }
}

#[test]
fn quotes_and_commas_within_a_field_move_no_column_and_a_wrong_number_of_fields_is_refused() {
    let read = |from: &str, to: &str| {
        let page = changed_page("2026-09-02", "prices-us-west-2", |text| text.replacen(from, to, 1));
        Aws.parse(&[page]).map(|parsed| parsed.offers.len()).map_err(|error| error.code())
    };
    assert_eq!(read("per Linux, p4d", "per \"\"Linux\"\", p4d"), Ok(2));
    assert_eq!(read(",\"Shared\",", ",\"Shared\",,"), Err("shape_changed"));
    assert_eq!(read(",\"Shared\",", ",\"Shared,"), Err("shape_changed"));
    assert_eq!(read("\"v1.0\"", "\"v2.0\""), Err("shape_changed"));
    assert_eq!(read("\"AmazonEC2\"", "\"AmazonRDS\""), Err("wrong_format"));
    let windows_lines = changed_page("2026-09-02", "prices-us-west-2", |text| text.replace('\n', "\r\n"));
    assert_eq!(Aws.parse(&[windows_lines]).map(|parsed| parsed.offers.len()), Ok(2));
}
