//! The real rows kept beside the checkout, and a list at its real size from the generator there.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::*;
use crate::contract::{Os, Tenancy};

fn shared(path: &str) -> Option<PathBuf> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../shared").join(path);
    if !path.exists() {
        eprintln!("skipped: ../shared is not beside this checkout");
        return None;
    }
    Some(path)
}

#[test]
fn the_real_rows_are_read_and_none_is_ours() {
    let Some(path) = shared("data/samples/aws/aws_ec2_offer_csv_sample_2025-09-12.csv") else { return };
    let list = page("prices-all", SCOPE_ALL, "sample.csv", std::fs::read(path).expect("the file was there a moment ago"));
    let parsed = Aws.parse(&[list]).expect("the real rows read");
    // One of the 44 is of an accelerated machine: an unused reservation of a g5.48xlarge under SUSE.
    assert!(parsed.offers.is_empty() && parsed.skipped.is_empty() && parsed.unread_fields.is_empty(), "{parsed:?}");
    assert_eq!(parsed.out_of_scope.into_iter().collect::<Vec<_>>(), [("Linux with a licence", 1)]);
}

#[test]
fn the_real_rows_are_ours_when_they_are_of_an_accelerated_machine() {
    let Some(path) = shared("data/samples/aws/aws_ec2_offer_csv_sample_2025-09-12.csv") else { return };
    let text = std::fs::read_to_string(path).expect("the file was there a moment ago");
    // The 21 rows of a Windows machine with a database, as if it were a GPU machine without one.
    let text = text
        .replace("c6i.large", "g5.2xlarge")
        .replace("\"SQL Web\"", "\"NA\"")
        .replace("RunInstances:0202", "RunInstances:0002");
    let parsed = Aws.parse(&[page("prices-all", SCOPE_ALL, "sample.csv", text)]).expect("the rows read");
    let tokyo: Vec<_> = parsed.offers.iter().filter(|offer| offer.region.as_deref() == Some("ap-northeast-1")).collect();
    assert_eq!(tokyo.len(), 13);
    assert!(tokyo.iter().all(|offer| offer.terms.os == Os::Windows && offer.terms.tenancy == Some(Tenancy::Dedicated)));
    let texts: Vec<_> = tokyo.iter().map(|offer| offer.price.text.as_str()).collect();
    for text in ["0.2773000000", "0.1046300000 + 2750", "0.0000000000 + 2033", "0.2372200000", "0.2208700000"] {
        assert!(texts.contains(&text), "{text}: {texts:?}");
    }
}

#[test]
fn the_real_savings_plans_are_read() {
    let Some(path) = shared("data/samples/aws/aws_savings_plan_ap-east-2_sample_2025-09-11.csv") else { return };
    let body = std::fs::read(path).expect("the file was there a moment ago");
    let list = page("plans-ap-east-2", "ap-east-2@plans", "https://x/y/20250911184447/ap-east-2/index.csv", body);
    assert_eq!(Aws.scope(&list), Ok(Some("ap-east-2@plans".to_owned())));
    let parsed = Aws.parse(&[list]).expect("the real list reads");
    assert!(parsed.offers.is_empty() && parsed.skipped.is_empty() && parsed.unread_fields.is_empty(), "{parsed:?}");
}

#[test]
fn the_real_savings_plans_are_ours_when_they_are_of_an_accelerated_machine() {
    let Some(path) = shared("data/samples/aws/aws_savings_plan_ap-east-2_sample_2025-09-11.csv") else { return };
    let text = std::fs::read_to_string(path).expect("the file was there a moment ago").replace("r7g", "g5");
    let parsed = Aws.parse(&[page("plans", "ap-east-2@plans", "x", text)]).expect("the real list reads");
    let mut found: Vec<_> = parsed
        .offers
        .iter()
        .map(|offer| (offer.instance_type.as_deref().unwrap_or_default(), offer.terms.tenancy, offer.terms.os))
        .collect();
    found.sort_unstable_by_key(|(instance_type, ..)| *instance_type);
    // Four of the 44 are of plain machines; the others are of reservations, of a host or of other systems.
    assert_eq!(
        found,
        [
            ("g5.12xlarge", Some(Tenancy::Shared), Os::Linux),
            ("g5.16xlarge", Some(Tenancy::Dedicated), Os::Linux),
            ("g5.2xlarge", Some(Tenancy::Shared), Os::Linux),
            ("g5.xlarge", Some(Tenancy::Dedicated), Os::Linux),
        ]
    );
    assert!(parsed.skipped.is_empty(), "{:?}", parsed.skipped);
}

#[test]
fn the_real_indexes_lead_to_a_list_of_every_region() {
    let Some(offers) = shared("data/samples/aws/aws_offer_index_2025-09.json") else { return };
    let Some(savings) = shared("data/samples/aws/aws_savings_plan_region_index_2025-09-11.json") else { return };
    let read = |path: PathBuf| std::fs::read(path).expect("the file was there a moment ago");
    let host = "https://pricing.us-east-1.amazonaws.com/";
    let next = Aws.follow(&page("offers", SCOPE_INDEX, host, read(offers))).expect("the index reads");
    assert_eq!(next.iter().map(|request| request.name.as_str()).collect::<Vec<_>>(), ["regions", "savings"]);
    let lists = Aws.follow(&page("savings", SCOPE_INDEX, host, read(savings))).expect("the index reads");
    assert!(lists.len() > 100 && lists.iter().all(|request| request.is_immutable && request.url.ends_with("/index.csv")));
}

#[test]
fn every_gpu_offer_of_a_list_of_full_shape_is_found() {
    let Some(tool) = shared("tools/make_bulk.py") else { return };
    let folder = std::env::temp_dir().join(format!("gpuledger-aws-bulk-{}", std::process::id()));
    let made = Command::new("python3").arg(tool).args(["aws-csv", "--mb", "9", "--out"]).arg(&folder).output();
    if !made.is_ok_and(|made| made.status.success()) {
        eprintln!("skipped: python3 is not here or does not run the generator");
        return;
    }
    let body = std::fs::read(folder.join("index.csv")).expect("the generator wrote a list");
    let about = std::fs::read(folder.join("index.csv.manifest.json")).expect("the generator wrote a manifest");
    std::fs::remove_dir_all(&folder).expect("the folder is ours");
    let whole = page("prices-all", SCOPE_ALL, "index.csv", body);
    let mut sifting = Aws.sieve(&whole.body).expect("lists pass a sieve").start();
    for chunk in whole.body.chunks(100_000) {
        sifting.push(chunk).expect("short lines");
    }
    let kept = page("prices-all", SCOPE_ALL, "index.csv", sifting.finish());
    assert!(kept.body.len() < whole.body.len());
    let parsed = Aws.parse(&[kept]).expect("the list reads");
    let from_whole = Aws.parse(&[whole]).expect("the list reads");
    assert_eq!(parsed.offers.len(), from_whole.offers.len());
    assert_eq!((&parsed.out_of_scope, &parsed.skipped), (&from_whole.out_of_scope, &from_whole.skipped));
    assert!(parsed.skipped.is_empty(), "{:?}", parsed.skipped.first());
    let is_plain = |offer: &&PublishedOffer| {
        offer.terms.pricing_model == PricingModel::OnDemand
            && offer.terms.os == Os::Linux
            && offer.terms.tenancy == Some(Tenancy::Shared)
    };
    let found: HashMap<_, _> = parsed
        .offers
        .iter()
        .filter(is_plain)
        .map(|offer| ((offer.region.clone().unwrap_or_default(), offer.instance_type.clone().unwrap_or_default()), offer))
        .collect();
    let about = page("about", SCOPE_ALL, "manifest.json", about);
    let wanted = json::document(&about).and_then(|about| Ok(about.field("gpu_offers")?.list()?)).expect("a list of offers");
    assert!(wanted.len() > 50, "{}", wanted.len());
    for row in wanted {
        let row: Vec<String> = row
            .list()
            .expect("a row")
            .iter()
            .map(|cell| cell.text().map_or_else(|_| cell.characters().to_owned(), std::borrow::Cow::into_owned))
            .collect();
        let [region, instance_type, gpus, price, sku] = row.as_slice() else { panic!("{row:?}") };
        let offer = found.get(&(region.clone(), instance_type.clone())).unwrap_or_else(|| panic!("{row:?} is not found"));
        assert_eq!((&offer.price.text, offer.price.currency_code.as_str()), (price, "USD"), "{row:?}");
        assert!(offer.sku.as_deref().is_some_and(|found| found.starts_with(sku.as_str())), "{row:?}");
        assert!(!offer.flags.contains(crate::contract::UNKNOWN_HARDWARE), "{row:?}");
        if let Ok(gpus) = gpus.parse::<u32>() {
            assert_eq!(offer.gpu.count, Some(num_rational::Ratio::from_integer(gpus)), "{row:?}");
        }
    }
}
