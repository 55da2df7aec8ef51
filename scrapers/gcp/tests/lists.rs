//! The chain of pages and the key, what is the same with a key and without, tables of words and machines, and a full list.

use std::collections::{BTreeMap, BTreeSet};
use std::process::Command;
use std::time::Duration;

use super::super::words::{self, Card, Part, Plan, Series};
use super::*;
use crate::contract::Skipped;
use crate::manifest::KeyPlace;
use crate::recordings;

fn list(url: &str, name: &str, skus: &[String], token: &str) -> Page {
    page(name, url, format!(r#"{{"skus": [{}], "nextPageToken": "{token}"}}"#, skus.join(", ")))
}

#[test]
fn the_next_page_is_asked_for_with_the_key_which_stands_in_no_address() {
    let first = MANIFEST.start(true).remove(0);
    assert!(first.with_key && first.url == BASE && first.scope == SCOPE_ALL);
    assert_eq!(MANIFEST.start(true).len(), 1);
    let second = Gcp.follow(&list(BASE, &first.name, &a2(&["us-central1"]), "AJ4/x+y=")).expect("a link").remove(0);
    assert_eq!(second.url, format!("{BASE}&pageToken=AJ4%2Fx%2By%3D"));
    assert_eq!((second.name.as_str(), second.scope.as_str(), second.with_key), ("skus-0002", SCOPE_ALL, true));
    let third = Gcp.follow(&list(&second.url, &second.name, &[], "AJ5")).expect("a link").remove(0);
    assert_eq!((third.name.as_str(), third.url.clone()), ("skus-0003", format!("{BASE}&pageToken=AJ5")));
    assert_eq!(Gcp.follow(&list(&third.url, "skus-0003", &[], "")), Ok(Vec::new()));
    assert_eq!(Gcp.follow(&list(&second.url, "skus-0002", &[], "AJ4/x+y=")).map_err(|error| error.code()), Err("shape_changed"));
    assert_eq!(MANIFEST.fetch.key_env.as_deref(), Some("GCP_API_KEY"));
    assert_eq!(MANIFEST.fetch.key_in, Some(KeyPlace::Header("X-Goog-Api-Key".to_owned())));
    assert!(MANIFEST.fetch.key_optional);
}

#[test]
fn without_a_key_the_page_for_people_is_asked_for_and_is_a_scope_of_its_own() {
    let pages = MANIFEST.start(false);
    assert_eq!(pages.len(), 1);
    assert!(!pages[0].with_key && pages[0].scope == page::SCOPE);
    let recording = recordings::of("gcp").into_iter().find(|case| case.case == "without-key").expect("the case");
    assert_eq!(Gcp.scope(&recording.pages[0]), Ok(Some(page::SCOPE.to_owned())));
    assert_eq!(Gcp.follow(&recording.pages[0]), Ok(Vec::new()));
    assert_eq!(Gcp.scope(&list("p.json", "p", &[], "")), Ok(Some(SCOPE_ALL.to_owned())));
}

#[test]
fn a_list_with_a_page_missing_doubled_or_of_another_kind_is_refused() {
    let read = |pages: &[Page]| Gcp.parse(pages).map(|parsed| parsed.offers.len()).map_err(|error| error.code());
    let skus = a2(&["us-central1"]);
    let second = format!("{BASE}&pageToken=T2");
    let third = format!("{BASE}&pageToken=T3");
    let chain = [list(BASE, "a", &skus[..1], "T2"), list(&second, "b", &skus[1..2], "T3"), list(&third, "c", &skus[2..], "")];
    assert_eq!(read(&chain), Ok(5));
    let mut turned = chain.clone();
    turned.reverse();
    assert_eq!(read(&turned), Ok(5));
    for missing in 0..3 {
        let mut pages = chain.to_vec();
        pages.remove(missing);
        assert_eq!(read(&pages), Err("page_missing"), "{missing}");
    }
    let circle = [list(BASE, "a", &skus, "T2"), list(&second, "b", &[], "T2")];
    assert_eq!(read(&circle), Err("shape_changed"));
    let doubled = [list(BASE, "a", &skus, ""), list(BASE, "b", &skus, "")];
    assert_eq!(read(&doubled), Err("shape_changed"));
    let files = [list("1.json", "1", &skus[..2], "T2"), list("2.json", "2", &skus[2..], "")];
    assert_eq!(read(&files), Ok(5));
    assert_eq!(read(&files[..1]), Err("page_missing"));
    let error = page("b", &second, "<!doctype html><title>Just a moment...</title>");
    assert_eq!(read(&[chain[0].clone(), error]), Err("wrong_format"));
    assert_eq!(read(&[list(BASE, "a", &[], "")]), Err("nothing_found"));
}

/// What a price is known by, without the price.
fn identity(offer: &PublishedOffer) -> String {
    let (gpu, terms) = (&offer.gpu, &offer.terms);
    let who = (offer.site, &offer.region, &offer.zone, &offer.instance_type, &offer.offer_label);
    let what = (&gpu.label, gpu.count, terms.os, &terms.licence, terms.tenancy);
    format!(
        "{who:?} {what:?} {} {:?} {:?} {:?} {}",
        terms.pricing_model, terms.commitment_months, terms.upfront, terms.plan, terms.is_promotion
    )
}

#[test]
fn no_two_offers_of_a_case_are_known_by_the_same() {
    for recording in recordings::of("gcp") {
        for parsed in crate::read(&Gcp, recording.pages).into_values().flatten() {
            let mut seen = BTreeSet::new();
            for offer in &parsed.offers {
                assert!(seen.insert(identity(offer)), "{}: {}", recording.case, identity(offer));
                assert!(MANIFEST.regions.contains_key(offer.region.as_deref().expect("a region")), "{:?}", offer.region);
            }
        }
    }
}

#[test]
fn a_price_is_known_by_the_same_with_a_key_and_without_and_is_the_same_but_for_rounding() {
    let offers = |case: &str| {
        let recording = recordings::of("gcp").into_iter().find(|recording| recording.case == case).expect("the case");
        Gcp.parse(&recording.pages).expect("it reads").offers
    };
    let catalog: BTreeMap<_, _> = offers("2026-07-30").into_iter().map(|offer| (identity(&offer), offer)).collect();
    let mut both = 0;
    for printed in offers("without-key") {
        let Some(composed) = catalog.get(&identity(&printed)) else { continue };
        assert_eq!((&composed.gpu, &composed.machine, &composed.terms), (&printed.gpu, &printed.machine, &printed.terms));
        // The page works with rates of its own that differ in the eighth digit.
        let off = (composed.price.amount - printed.price.amount).abs() / printed.price.amount;
        assert!(off < dec("0.0001"), "{}: {} and {}", identity(&printed), composed.price.amount, printed.price.amount);
        both += 1;
    }
    assert_eq!(both, 16);
}

#[test]
fn every_mapped_description_is_read_as_it_was_mapped() {
    let Some(path) = shared("data/samples/gcp/gcp_sku_mapping.csv") else { return };
    let mut rows = csv::ReaderBuilder::new().flexible(true).from_path(path).expect("the file reads");
    let mut read = 0;
    for row in rows.records() {
        let row = row.expect("a row");
        let (mapping, group, pattern) = (row[0].to_owned(), &row[3], &row[4]);
        let mut names = mapping.split('.').skip(2);
        let (Some(kind), Some(of)) = (names.next(), names.next()) else { continue };
        let is_ours = match kind {
            "cpu" | "ram" => ["a2", "a3", "g2", "g4", "n1"].contains(&of) && !mapping.contains("custom"),
            "gpu" => true,
            "ssd" => mapping.starts_with("gce.storage.ssd.local") && !mapping.contains(".c4"),
            _ => false,
        };
        // What a reservation holds is no price of a machine.
        if !is_ours || mapping.ends_with("reserved") {
            continue;
        }
        let (plan, usage) = match mapping.rsplit('.').next() {
            Some("1y") => (Plan::OneYear, "Commit1Yr"),
            Some("3y") => (Plan::ThreeYears, "Commit3Yr"),
            Some("spot") => (Plan::Spot, "Preemptible"),
            _ => (Plan::OnDemand, "OnDemand"),
        };
        let part = match (kind, of) {
            ("ssd", _) => Part::LocalSsd,
            ("gpu", _) => Part::Gpu(card(&mapping)),
            (_, of) => {
                let series = match of {
                    "a2" => Series::A2,
                    "a3" => Series::A3,
                    "g2" => Series::G2,
                    "g4" => Series::G4,
                    _ => Series::N1,
                };
                if kind == "cpu" { Part::Core(series) } else { Part::Ram(series) }
            }
        };
        let description = described(pattern, kind, plan);
        assert_eq!(words::read(&description, group, usage), Ok((part, plan)), "{mapping}: {description}");
        read += 1;
    }
    assert_eq!(read, 88);
}

fn card(mapping: &str) -> Card {
    let name = ["1y", "3y", "spot"].iter().fold(mapping, |name, end| name.strip_suffix(&format!(".{end}")).unwrap_or(name));
    match name.trim_start_matches("gce.compute.gpu.") {
        "a100" => Card::A100,
        "a100.80gb" => Card::A100Of80,
        "k80" => Card::K80,
        "l4" => Card::L4,
        "rtx6000" => Card::Rtx6000,
        "p100" => Card::P100,
        "p4" => Card::P4,
        "t4" => Card::T4,
        "v100" => Card::V100,
        "h100.80gb" => Card::H100,
        "h100.80gb.mega" => Card::H100Mega,
        other => panic!("a card `{other}`"),
    }
}

/// A pattern of the mapping, filled as the catalog fills it.
fn described(pattern: &str, kind: &str, plan: Plan) -> String {
    let unit = if kind == "cpu" { "Core" } else { "Ram" };
    let is_gpu = kind == "gpu";
    match plan {
        Plan::OneYear | Plan::ThreeYears => {
            let (start, end) = pattern.split_once('%').expect("a pattern");
            let unit = if kind == "cpu" { "Cpu" } else { "Ram" };
            let start = start.trim_end();
            let thing = if is_gpu && !start.ends_with("GPU") && !start.ends_with("96GB") {
                format!("{start} GPU running")
            } else {
                start.to_owned()
            };
            let thing = if matches!(kind, "cpu" | "ram") && !start.ends_with(unit) { format!("{start} {unit}") } else { thing };
            format!("{thing} in Americas for {}", end.trim_end_matches('%'))
        }
        _ if is_gpu => {
            let start = pattern
                .trim_end_matches('%')
                .trim_end_matches(" in")
                .trim_end_matches(" attached to Spot")
                .trim_end_matches(" attached")
                .trim_end_matches(" running");
            let attached = if plan == Plan::Spot { " attached to Spot Preemptible VMs" } else { "" };
            format!("{start}{attached} running in Americas")
        }
        _ => {
            let start = pattern.trim_end_matches('%');
            match kind {
                "ssd" if plan == Plan::Spot => format!("{start} VMs in Paris"),
                "ssd" => start.to_owned(),
                _ if start.ends_with("Instance") => format!("{start} {unit} running in Americas"),
                _ => format!("{start} running in Americas"),
            }
        }
    }
}

#[test]
fn the_place_of_a_commitment_is_written_in_two_ways() {
    let read = |text: &str, group, usage| words::read(text, group, usage).map_err(|error| error.code());
    for text in ["Commitment v1: Local SSD In Frankfurt for 1 Year", "Commitment v1: Local SSD in Frankfurt for 1 Year"] {
        assert_eq!(read(text, "LocalSSD", "Commit1Yr"), Ok((Part::LocalSsd, Plan::OneYear)), "{text}");
    }
    let three = "Commitment v1: Local SSD In Salt Lake City for 3 Years";
    assert_eq!(read(three, "LocalSSD", "Commit3Yr"), Ok((Part::LocalSsd, Plan::ThreeYears)));
    let spot = "SSD backed Local Storage attached to Spot Preemptible VMs In Paris";
    assert_eq!(read(spot, "LocalSSD", "Preemptible"), Ok((Part::LocalSsd, Plan::Spot)));
    for text in [
        "Commitment v1: Local SSD In  for 1 Year",
        "Commitment v1: Local SSD IN Paris for 1 Year",
        "Commitment v1: Local SSD In for 1 Year",
    ] {
        assert_eq!(read(text, "LocalSSD", "Commit1Yr"), Err("unknown_word"), "{text}");
    }
}

#[test]
fn words_that_are_left_over_are_never_overlooked() {
    let read = |text: &str| words::read(text, "GPU", "OnDemand").map_err(|error| error.code());
    let l4 = Part::Gpu(Card::L4);
    for (text, plan) in [
        ("Nvidia L4 GPU running in Americas", Plan::OnDemand),
        ("Nvidia L4 GPU running in Sao Paulo", Plan::OnDemand),
        ("Nvidia L4 GPU running in Americas attached to DWS Defined Duration VMs", Plan::FlexStart),
        ("Nvidia L4 GPU attached to DWS Defined Duration VMs running in Salt Lake City", Plan::FlexStart),
        ("DWS Calendar Mode Nvidia L4 GPU running in Americas", Plan::Calendar),
        ("Reserved Nvidia L4 GPU in Americas in Calendar Mode", Plan::Calendar),
        ("Spot Preemptible Nvidia L4 GPU running in Americas", Plan::Spot),
    ] {
        assert_eq!(read(text), Ok((l4, plan)), "{text}");
    }
    for text in [
        "Nvidia L4 GPU",
        "Nvidia L4 GPU running in ",
        "Nvidia L4 GPU running in Americas attached to Spot VMs",
        "Nvidia L4 GPU attached to Preemptible VMs running in Americas",
        "Nvidia L4 GPU running in Americas for 1 Year",
        "Nvidia L4 GPU running in Americas in Calendar Mode",
        "Spot Preemptible Nvidia L4 GPU attached to DWS Defined Duration VMs running in Americas",
        "DWS Weekend Nvidia L4 GPU running in Americas",
        "DWS Flex Start Nvidia L4 GPU running in Americas",
        "Commitment v1: Nvidia L4 GPU running in Americas",
        "Commitment v1: Nvidia L4 GPU running in Americas for 5 Years",
        "Commitment v2: Nvidia L4 GPU running in Americas for 1 Year",
        "Nvidia L4 GPU running in a place of more than four words",
    ] {
        assert_eq!(read(text), Err("unknown_word"), "{text}");
    }
    assert_eq!(read("Reserved Nvidia L4 GPU in Americas"), Err("out_of_scope"));
}

#[test]
fn every_card_has_a_family_and_every_label_a_model() {
    let of_families: BTreeSet<Card> = machines::FAMILIES.iter().map(|family| family.card).collect();
    assert_eq!(of_families.len(), 16);
    let models = std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("../src/normalise/gpu_models.toml"));
    let Ok(models) = models else { return eprintln!("skipped: the models are not beside this crate") };
    for (_, shapes) in machines::families() {
        for shape in shapes {
            let label = shape.gpu.label.as_deref().expect("a label");
            assert!(models.contains(&format!("name = \"{label}\"")), "{label} of {}", shape.name);
        }
    }
}

#[test]
fn a_full_list_is_read_to_the_last_sku() {
    let Some(tool) = shared("tools/make_bulk.py") else { return };
    let out = std::env::temp_dir().join(format!("gpuledger-gcp-{}", std::process::id()));
    let run = Command::new("python3").arg(tool).args(["gcp-skus", "--rows", "10500", "--out"]).arg(&out).output();
    match run {
        Ok(output) if output.status.success() => {}
        _ => return eprintln!("skipped: there is no python3 to make a list with"),
    }
    let read = |file: &Path| std::fs::read(file).expect("the file reads");
    let mut pages: Vec<Page> = (0..3)
        .map(|number| {
            let name = format!("page-{number:05}.json");
            page(&name, &name, read(&out.join("gcp").join(&name)))
        })
        .collect();
    let manifest: serde_json::Value = serde_json::from_slice(&read(&out.join("gcp.manifest.json"))).expect("the manifest reads");
    std::fs::remove_dir_all(&out).expect("the folder can be removed");
    assert_eq!(Gcp.parse(&pages[..2]).map(drop).map_err(|error| error.code()), Err("page_missing"));
    pages.rotate_left(1);
    for page in &mut pages {
        page.observed_at += Duration::from_secs(86_400);
    }
    let parsed = Gcp.parse(&pages).expect("the list reads");
    let rows: u32 = parsed.out_of_scope.iter().filter(|(reason, _)| !reason.starts_with("cores of")).map(|(_, rows)| rows).sum();
    assert!(rows > 7_000, "{rows}");
    // Every GPU rate of the list is in the price of a machine, or named as one that lacks another part.
    let expected = manifest["gpu_offers"].as_array().expect("a list of offers");
    assert!(expected.len() > 200);
    let descriptions = descriptions(&pages);
    let described = |place: &Place| descriptions[&(place.page.clone(), place.at.clone())].as_str();
    for offer in expected {
        let text = |column: usize| offer[column].as_str().expect("a text");
        let (region, description, amount, id) = (text(0), text(1), dec(text(2)).normalize(), text(3));
        let priced = parsed.offers.iter().find(|offer| {
            offer.region.as_deref() == Some(region)
                && offer.terms.pricing_model == PricingModel::OnDemand
                && offer.sku.as_deref().is_some_and(|skus| skus.split('+').any(|sku| sku == id))
        });
        match priced {
            Some(offer) => {
                let ways = ["GPU", "slice"].map(|unit| format!("{unit} × {amount}"));
                assert!(ways.iter().any(|way| offer.price.text.contains(way)), "{description}: {}", offer.price.text);
            }
            // The list has no disks and not all cores, and the tool drops a SKU here and there.
            None => {
                let of_it = |row: &&Skipped| described(&row.place) == description && row.label.contains(region);
                let row = parsed.skipped.iter().find(of_it).unwrap_or_else(|| panic!("{description} in {region} is nowhere"));
                assert_eq!(row.reason.code(), "field_missing", "{description}: {}", row.reason);
            }
        }
    }
}

/// The description at each place of a list.
fn descriptions(pages: &[Page]) -> BTreeMap<(String, String), String> {
    let mut descriptions = BTreeMap::new();
    for page in pages {
        for (number, characters) in Envelope::read(page).expect("the page reads").skus.into_iter().enumerate() {
            descriptions.insert((page.name.clone(), format!("/skus/{number}")), skus::label(characters));
        }
    }
    descriptions
}
