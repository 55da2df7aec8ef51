//! What no recording shows: the requests that the menus lead to, whose list a page is of, and the tables.

use std::collections::BTreeSet;
use std::path::Path;

use num_rational::Ratio;

use super::card::{self, Card};
use super::*;
use crate::contract::{GpuShare, Method, Os, PublishedOffer, SkipReason};
use crate::recordings;

fn recorded(name: &str) -> Page {
    let pages = recordings::newest("huawei").expect("a dated recording").pages;
    pages.into_iter().find(|page| page.name == name).expect("a page of this name")
}

fn page(like: &str, body: &str) -> Page {
    Page { body: body.as_bytes().to_vec(), ..recorded(like) }
}

#[test]
fn each_menu_leads_to_the_regions_of_its_own_site() {
    let requests = Huawei.follow(&recorded("menu-cn")).expect("the menu reads");
    let names: Vec<_> = requests.iter().map(|request| (request.name.as_str(), request.scope.as_str())).collect();
    assert_eq!(names, [("cn-ap-southeast-1", "cn-ap-southeast-1"), ("cn-cn-north-4", "cn-cn-north-4")]);
    let base = "https://portal.huaweicloud.com/api/calculator/rest/cbc/portalcalculatornodeservice/v4/api/productInfo";
    let asked = "?urlPath=ecs&tag=general.online.portal&region=cn-north-4&tab=calc&sign=common&language=zh-cn";
    assert_eq!(requests[1].url, format!("{base}{asked}"));
    assert_eq!((requests[1].method, &requests[1].body, requests[1].with_key), (Method::Get, &None, false));
    let requests = Huawei.follow(&recorded("menu-intl")).expect("the menu reads");
    assert_eq!(requests.len(), 1);
    assert_eq!(requests[0].scope, "intl-ap-southeast-1");
    assert!(requests[0].url.starts_with("https://portal-intl.huaweicloud.com/"), "{}", requests[0].url);
    assert!(requests[0].url.ends_with("&language=en-us"), "{}", requests[0].url);
}

#[test]
fn a_menu_is_nested_at_any_depth() {
    let ecs = r#"{"urlPath": "ecs", "regionOnline": {"regionList": ["cn-east-3"]}}"#;
    for menu in [format!("[{ecs}]"), format!(r#"[{{"a": [[{{"subCategoryLists": [{ecs}]}}]]}}]"#), format!(r#"[{{"b": {ecs}}}]"#)]
    {
        let requests = Huawei.follow(&page("menu-cn", &format!(r#"{{"menuInfos": {menu}}}"#))).expect("the menu reads");
        assert_eq!(requests.len(), 1, "{menu}");
    }
}

#[test]
fn a_menu_that_is_an_error_or_without_regions_or_odd_leads_nowhere_loudly() {
    let code = |body: &str| Huawei.follow(&page("menu-cn", body)).expect_err("no requests").code();
    let ecs = |regions: &str| format!(r#"{{"menuInfos": [{{"urlPath": "ecs", "regionOnline": {{"regionList": {regions}}}}}]}}"#);
    assert_eq!(code(r#"{"error_code": "CBC.0999", "error_msg": "busy"}"#), "error_answer");
    assert_eq!(code(r#"{"menuInfos": []}"#), "nothing_found");
    assert_eq!(code(r#"{"menuInfos": [{"urlPath": "obs"}]}"#), "nothing_found");
    assert_eq!(code(&ecs("[]")), "nothing_found");
    assert_eq!(code(&ecs(r#"["cn-x&region=y"]"#)), "shape_changed");
    assert_eq!(code(r#"{"menuInfos": [{"urlPath": "ecs"}]}"#), "shape_changed");
    let deep = format!(r#"{{"menuInfos": {}{}}}"#, "[".repeat(80), "]".repeat(80));
    assert_eq!(code(&deep), "nothing_found");
}

#[test]
fn an_answer_of_a_region_leads_nowhere() {
    assert_eq!(Huawei.follow(&recorded("cn-cn-north-4")), Ok(Vec::new()));
}

#[test]
fn the_scope_is_told_from_address_and_content() {
    assert_eq!(Huawei.scope(&recorded("menu-intl")), Ok(Some(SCOPE_INDEX.to_owned())));
    assert_eq!(Huawei.scope(&recorded("cn-ap-southeast-1")), Ok(Some("cn-ap-southeast-1".to_owned())));
    assert_eq!(Huawei.scope(&recorded("intl-ap-southeast-1")), Ok(Some("intl-ap-southeast-1".to_owned())));
}

#[test]
fn whose_list_a_page_is_of_is_never_guessed() {
    let body = |currency: &str| format!(r#"{{"region": "ap-southeast-1", {currency} "product": {{}}}}"#);
    let scope = |url: &str, currency: &str| Huawei.scope(&Page { url: url.to_owned(), ..page("menu-cn", &body(currency)) });
    let both = "https://portal-intl.huaweicloud.com/x?region=ap-southeast-1";
    assert_eq!(scope(both, r#""currency": "USD","#), Ok(Some("intl-ap-southeast-1".to_owned())));
    assert_eq!(scope("/kept/portal.huaweicloud.com/a.json", ""), Ok(Some("cn-ap-southeast-1".to_owned())));
    assert_eq!(scope("a.json", r#""currency": "CNY","#), Ok(Some("cn-ap-southeast-1".to_owned())));
    // Another cloud that is built on the same software, the rating service of accounts, and nothing at all.
    for url in ["https://open-telekom-cloud.com/prices.json", "https://bss.myhuaweicloud.com/v2/bills/ratings", "a.json"] {
        assert_eq!(scope(url, "").expect_err("no site").code(), "shape_changed", "{url}");
    }
    assert_eq!(scope(both, r#""currency": "CNY","#).expect_err("the other site's currency").code(), "shape_changed");
    assert_eq!(scope("a.json", r#""currency": "EUR","#).expect_err("nobody's currency").code(), "shape_changed");
}

#[test]
fn the_international_site_is_marked_and_the_other_is_the_manifests() {
    for (name, site) in [("cn-ap-southeast-1", None), ("intl-ap-southeast-1", Some(Site::Intl))] {
        let offers = Huawei.parse(&[recorded(name)]).expect("the page reads").offers;
        assert!(offers.iter().all(|offer| offer.site == site), "{name}");
    }
}

#[test]
fn an_accelerator_text_names_cards_or_plainly_none() {
    let named = |count, model, memory: Option<u32>| Ok(Card::Named { count, model, memory_gb: memory.map(Into::into) });
    for (text, card) in [
        ("1 * NVIDIA T4 / 1 * 16G", named(1, "T4", Some(16))),
        ("1 * NVIDIAT4 / 1 * 16G", named(1, "T4", Some(16))),
        ("8*NVIDIA Tesla V100/8*32G", named(8, "V100", Some(32))),
        ("1 * Nvidia T4 / 1 * 16G", named(1, "T4", Some(16))),
        ("2 * nvidia tesla V100", named(2, "V100", None)),
        ("1 * NVIDIA A40-8Q", named(1, "A40-8Q", None)),
        ("2 * Ascend 310 / 2 * 8G", named(2, "Ascend 310", Some(8))),
        ("0", Ok(Card::None)),
        ("", Ok(Card::Absent)),
        ("1 * NVIDIA", Ok(Card::Unreadable)),
        ("0 * NVIDIA T4", Ok(Card::Unreadable)),
        ("1/2 * NVIDIA T4", Ok(Card::Unreadable)),
        ("1 * NVIDIA T4 / 1 * 16GiB", Ok(Card::Unreadable)),
        ("NVIDIA T4", Ok(Card::Unreadable)),
    ] {
        assert_eq!(card::read(Some(text)), card, "{text}");
    }
    assert_eq!(card::read(None), Ok(Card::Absent));
    assert!(matches!(card::read(Some("1 * NVIDIA T4 / 2 * 16G")), Err(SkipReason::Contradiction(_))));
}

#[test]
fn shares_are_those_the_vendor_documents() {
    let gpu = |model| {
        let card = Card::Named { count: 1, model, memory_gb: None };
        card::accelerators("g7v.x", &card, false).expect("no contradiction").expect("an accelerator").gpu
    };
    for (model, label, share) in [("T4-2B", "T4", (1, 8)), ("A40-8Q", "A40", (1, 6)), ("A40-16Q", "A40", (1, 3))] {
        let gpu = gpu(model);
        assert_eq!((gpu.label.as_deref(), gpu.count, gpu.share), (Some(label), Some(Ratio::from(share)), GpuShare::FixedSlice));
    }
    let undocumented = gpu("A40-12Q");
    assert_eq!((undocumented.label, undocumented.count, undocumented.share), (None, None, GpuShare::Derived));
}

#[test]
fn pi2_is_the_t4_and_no_v100() {
    let (gpu, _) = HARDWARE.of("pi2.8xlarge.4").expect("in the table");
    assert_eq!((gpu.label.as_deref(), gpu.count), (Some("T4"), Some(Ratio::from(4))));
}

#[test]
fn every_card_of_the_tables_is_a_known_model_with_that_memory() {
    #[derive(serde::Deserialize)]
    struct Models {
        model: Vec<Model>,
    }
    #[derive(serde::Deserialize)]
    struct Model {
        name: String,
        memory_gb: Vec<u32>,
    }
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../src/normalise/gpu_models.toml");
    let models: Models = toml::from_str(&std::fs::read_to_string(path).expect("the models")).expect("the models read");
    for name in HARDWARE.types() {
        let (gpu, _) = HARDWARE.of(name).expect("in the table");
        let label = gpu.label.expect("every card is named");
        let model = models.model.iter().find(|model| model.name == label).unwrap_or_else(|| panic!("{label} is no model"));
        assert!(model.memory_gb.iter().any(|memory| gpu.memory_gb == Some((*memory).into())), "{name}");
    }
}

#[test]
fn every_card_of_the_table_is_in_the_list_of_names_with_that_memory() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../shared/gpu-names.md");
    let Ok(names) = std::fs::read_to_string(path) else {
        eprintln!("skipped: ../shared is not beside this checkout");
        return;
    };
    for name in HARDWARE.types() {
        let (gpu, _) = HARDWARE.of(name).expect("in the table");
        let (label, memory) = (gpu.label.expect("a card"), gpu.memory_gb.expect("a memory").to_string());
        let card = label.split(' ').next().unwrap_or_default();
        let is_listed = names.lines().filter(|line| line.starts_with('|')).any(|line| {
            let mut cells = line.split('|').map(str::trim);
            let is_card = |cell: &str| cell == card || cell.strip_prefix(card).is_some_and(|rest| rest.starts_with(' '));
            cells.clone().take(3).any(is_card) && cells.any(|cell| cell.split([' ', ',']).any(|word| word == memory))
        });
        assert!(is_listed, "{name}: {label} with {memory} GB");
    }
}

#[test]
fn no_two_offers_of_a_recording_are_the_same_offer() {
    let key = |offer: &PublishedOffer| {
        let (gpu, terms) = (&offer.gpu, &offer.terms);
        let place = (offer.site, offer.region.clone(), offer.zone.clone());
        let machine = (offer.instance_type.clone(), gpu.label.clone(), gpu.count);
        (place, machine, terms.os, terms.licence.clone(), terms.pricing_model, terms.commitment_months, terms.upfront)
    };
    for recording in recordings::of("huawei") {
        for (scope, parsed) in crate::read(&Huawei, recording.pages) {
            let Ok(parsed) = parsed else { continue };
            let keys: BTreeSet<_> = parsed.offers.iter().map(|offer| format!("{:?}", key(offer))).collect();
            assert_eq!(keys.len(), parsed.offers.len(), "{} {scope}", recording.case);
        }
    }
}

#[test]
fn reserved_rows_are_kept_and_refuse_nothing() {
    let one = recordings::of("huawei").into_iter().find(|recording| recording.case == "reserved-in-parts").expect("the case");
    let parsed = Huawei.parse(&one.pages).expect("the page reads");
    let kept: Vec<_> = parsed.skipped.iter().map(|row| row.reason.code()).collect();
    assert_eq!(kept, ["undecoded"]);
    assert!(parsed.skipped.iter().all(|row| row.reason.is_stated_by_source()));
}

#[test]
fn the_end_of_a_code_tells_system_and_licence() {
    let body = String::from_utf8(recorded("cn-cn-north-4").body).expect("text");
    let (before, row) = body.split_once("ai1s.xlarge.4.linux").expect("the row");
    let read = |end: &str, stated: &str| {
        let label = format!("ai1s.xlarge.4{end}");
        let row = row.replacen(r#""imageSpec": "linux""#, stated, 1);
        let parsed = Huawei.parse(&[page("cn-cn-north-4", &format!("{before}{label}{row}"))]).expect("the page reads");
        let offer = parsed.offers.iter().find(|offer| offer.sku.as_ref() == Some(&label));
        let skipped = || parsed.skipped.iter().find(|row| row.label == label).map_or("none", |row| row.reason.code());
        offer.map(|offer| (offer.terms.os, offer.terms.licence.clone())).ok_or_else(skipped)
    };
    let (linux, win, byol) = (r#""imageSpec": "linux""#, r#""imageSpec": "win""#, r#""imageSpec": "byol""#);
    let absent = r#""arch": "x86""#;
    for (code, stated, expected) in [
        (".linux", linux, Ok((Os::Linux, None))),
        (".linux", absent, Ok((Os::Linux, None))),
        ("", linux, Ok((Os::Linux, None))),
        (".win2", win, Ok((Os::Windows, None))),
        (".byol", linux, Ok((Os::Linux, Some("byol".to_owned())))),
        (".byol", win, Ok((Os::Windows, Some("byol".to_owned())))),
        (".byol", byol, Ok((Os::Linux, Some("byol".to_owned())))),
        (".byol", absent, Ok((Os::Linux, Some("byol".to_owned())))),
        (".linux", byol, Err("unknown_word")),
        (".linux.byol", linux, Err("unknown_word")),
        (".suse", linux, Err("unknown_word")),
        ("linux", linux, Err("unknown_word")),
        ("", absent, Err("field_missing")),
    ] {
        assert_eq!(read(code, stated), expected, "{code} {stated}");
    }
}

#[test]
fn a_region_that_only_reserves_is_no_empty_one() {
    let body = String::from_utf8(recorded("cn-cn-north-4").body).expect("text");
    let body = body.replace(r#""amount": "#, r#""amount": 0, "was": "#);
    let parsed = Huawei.parse(&[page("cn-cn-north-4", &body)]).expect("a reserved instance is there");
    assert!(parsed.offers.is_empty());
    let without = body.replace(r#""billingMode": "RI""#, r#""billingMode": "MONTHLY""#);
    assert_eq!(Huawei.parse(&[page("cn-cn-north-4", &without)]).expect_err("nothing is left").code(), "nothing_found");
    // Prices that nobody can decode are no reservation: the machines are still sold.
    let undecoded = without.replace(r#""billingMode": "YEARLY", "periodNum": 1"#, r#""billingMode": "YEARLY""#);
    assert_eq!(Huawei.parse(&[page("cn-cn-north-4", &undecoded)]).expect_err("nothing is left").code(), "nothing_found");
}
