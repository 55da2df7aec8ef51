//! What no recording shows: the requests that the price pages lead to, and the table of hardware.

use std::collections::BTreeSet;
use std::path::Path;

use num_rational::Ratio;

use super::*;
use crate::contract::{PublishedOffer, UNKNOWN_HARDWARE};
use crate::recordings;

fn recorded(name: &str) -> Page {
    let pages = recordings::newest("volcengine").expect("a dated recording").pages;
    pages.into_iter().find(|page| page.name == name).expect("a page of this name")
}

fn page(like: &str, body: &str) -> Page {
    Page { body: body.as_bytes().to_vec(), ..recorded(like) }
}

#[test]
fn a_price_page_leads_to_a_template_and_its_table() {
    let requests = Volcengine.follow(&recorded("page-gpu-server")).expect("the page reads");
    let names: Vec<_> = requests.iter().map(|request| (request.name.as_str(), request.scope.as_str())).collect();
    assert_eq!(names, [("template-gpu-server", "gpu-server"), ("table-gpu-server", "gpu-server")]);
    let base = "https://www.volcengine.com/anonymous-api/trade/price";
    let code = "CLT7310571628986405999";
    assert_eq!(requests[0].url, format!("{base}?Action=ListTemplate&Version=2020-01-01&TemplateCode={code}"));
    assert_eq!((requests[0].method, &requests[0].body), (Method::Get, &None));
    assert_eq!(requests[1].url, format!("{base}?Action=GetTable&Version=2020-01-01"));
    assert_eq!(requests[1].method, Method::Post);
    assert_eq!(requests[1].body.as_deref(), Some(r#"{"TemplateCode":"CLT7310571628986405999"}"#));
}

#[test]
fn a_price_page_of_ecs_that_names_no_template_leads_to_the_last_known_one_and_says_so() {
    let none = r#"{"activeProductInfo": {"TemplateInfoList": []}}"#;
    let empty = r#"{"activeProductInfo": {"TemplateInfoList": [{"TemplateCode": "CLT1", "Type": 1, "TableCodeList": []}]}}"#;
    for body in [none, empty, r#"{"activeProductInfo": null}"#, r#"{"activeProductInfo": {}}"#] {
        let requests = Volcengine.follow(&page("page-ecs", body)).expect("the last known template");
        let names: Vec<_> = requests.iter().map(|request| (request.name.as_str(), request.scope.as_str())).collect();
        assert_eq!(names, [("template-ecs-last-known", "ecs"), ("table-ecs-last-known", "ecs")], "{body}");
        assert!(requests[0].url.ends_with(LAST_KNOWN_ECS));
        let refused = Volcengine.follow(&page("page-gpu-server", body)).expect_err("no template is known");
        assert_eq!(refused.code(), "nothing_found", "{body}");
    }
}

#[test]
fn what_is_no_price_page_fails_and_leads_to_no_last_known_template() {
    let error = r#"{"ResponseMetadata": {"Error": {"Code": "Busy"}}}"#;
    for (body, code) in [
        ("{}", "shape_changed"),
        ("<!doctype html>", "wrong_format"),
        ("", "wrong_format"),
        (error, "error_answer"),
        (r#"{"activeProductInfo": "none"}"#, "shape_changed"),
        (r#"{"activeProductInfo": {"TemplateInfoList": {}}}"#, "shape_changed"),
        (r#"{"activeProductInfo": {"TemplateInfoList": [{"Type": 1}]}}"#, "shape_changed"),
        (r#"{"activeProductInfo": {"TemplateInfoList": [{"TemplateCode": "a&b"}]}}"#, "shape_changed"),
    ] {
        for name in ["page-ecs", "page-gpu-server"] {
            assert_eq!(Volcengine.follow(&page(name, body)).expect_err("no requests").code(), code, "{name} {body}");
        }
    }
}

#[test]
fn the_template_is_the_one_of_the_prices() {
    let with = |code: &str, kind: u32, tables: &str| format!(r#"{{"TemplateCode": "{code}", "Type": {kind}{tables}}}"#);
    let (some, none, null) = (r#", "TableCodeList": ["T1"]"#, r#", "TableCodeList": []"#, r#", "TableCodeList": null"#);
    for (templates, code) in [
        ([with("A", 2, some), with("B", 1, none), with("C", 1, some)], "C"),
        ([with("A", 1, null), with("B", 2, some), with("C", 3, some)], "B"),
        ([with("A", 1, ""), with("B", 2, some), with("C", 1, none)], "B"),
        ([with("A", 2, ""), with("B", 1, ""), with("C", 1, "")], "B"),
        ([with("A", 2, ""), with("B", 3, ""), with("C", 1, none)], "A"),
    ] {
        let body = format!(r#"{{"activeProductInfo": {{"TemplateInfoList": [{}]}}}}"#, templates.join(", "));
        let requests = Volcengine.follow(&page("page-ecs", &body)).expect("a template");
        assert_eq!(requests[1].body, Some(format!(r#"{{"TemplateCode":"{code}"}}"#)), "{body}");
    }
}

#[test]
fn a_product_is_its_price_page_its_template_and_its_table() {
    let start = Volcengine.manifest().start(false);
    let scopes: Vec<_> = start.iter().map(|request| (request.name.as_str(), request.scope.as_str())).collect();
    assert_eq!(scopes, [("page-ecs", "ecs"), ("page-gpu-server", "gpu-server")]);
    let refused = Volcengine.parse(&[recorded("page-gpu-server")]).expect_err("nothing but its price page");
    assert_eq!(refused.code(), "page_missing");
}

#[test]
fn templates_and_tables_lead_nowhere() {
    for name in ["template-ecs", "table-ecs"] {
        assert_eq!(Volcengine.follow(&recorded(name)), Ok(Vec::new()), "{name}");
    }
}

#[test]
fn nothing_in_a_file_tells_its_product_so_all_are_read_together() {
    let index = Some(SCOPE_INDEX.to_owned());
    for (name, scope) in [("page-ecs", index), ("template-ecs", None), ("table-gpu-server", None)] {
        let page = Page { name: "file".to_owned(), url: "file.json".to_owned(), ..recorded(name) };
        assert_eq!(Volcengine.scope(&page), Ok(scope), "{name}");
    }
    let (pages, refused) = crate::assign_scopes(&Volcengine, recordings::newest("volcengine").expect("a recording").pages);
    assert!(refused.is_empty());
    let read = crate::read(&Volcengine, pages);
    let parsed = read["all"].as_ref().expect("the pages read");
    assert_eq!((read.len(), parsed.out_of_scope["repeated price"]), (1, 1));
}

#[test]
fn the_order_of_pages_and_their_names_do_not_matter() {
    let pages = recordings::newest("volcengine").expect("a dated recording").pages;
    let amounts = |pages: &[Page]| -> BTreeSet<String> {
        let parsed = Volcengine.parse(pages).expect("the pages read");
        let line = |offer: &PublishedOffer| format!("{:?} {:?} {:?}", offer.sku, offer.terms, offer.price.amount);
        parsed.offers.iter().map(line).collect()
    };
    let turned: Vec<_> = pages.iter().rev().map(|page| Page { name: "x".to_owned(), ..page.clone() }).collect();
    assert_eq!(amounts(&pages), amounts(&turned));
}

#[test]
fn a_price_is_no_promise_of_stock() {
    let pages = recordings::newest("volcengine").expect("a dated recording").pages;
    let offers = Volcengine.parse(&pages).expect("the pages read").offers;
    assert!(offers.iter().all(|offer| offer.terms.availability.is_none()));
}

#[test]
fn twelve_months_are_the_total_that_is_paid() {
    let pages = recordings::newest("volcengine").expect("a dated recording").pages;
    let offers = Volcengine.parse(&pages).expect("the pages read").offers;
    let years = offers.iter().filter(|offer| offer.terms.commitment_months.is_some_and(|months| months > 1));
    assert!(years.clone().count() > 0);
    assert!(years.into_iter().all(|offer| offer.price.unit == crate::contract::PriceUnit::Term));
}

#[test]
fn other_numbers_of_months_are_kept_and_refuse_nothing() {
    let table = String::from_utf8(recorded("table-ecs").body).expect("text");
    for months in ["2", "11", "48"] {
        let changed = table.replace(r#""Times": 12"#, &format!(r#""Times": {months}"#));
        let pages = [recorded("template-ecs"), page("table-ecs", &changed)];
        let parsed = Volcengine.parse(&pages).expect("the pages read");
        let codes: BTreeSet<_> = parsed.skipped.iter().map(|row| row.reason.code()).collect();
        assert_eq!((codes, parsed.skipped.len()), (BTreeSet::from(["undecoded"]), 2), "{months}");
    }
}

#[test]
fn a_tree_that_does_not_end_is_refused() {
    let text = format!("{}{}", "[".repeat(100), "]".repeat(100));
    let template = page("template-ecs", &format!(r#"{{"Result": {{"List": [{{"Template": "{text}"}}]}}}}"#));
    let refused = Volcengine.parse(&[template, recorded("table-ecs")]).expect_err("a deep tree");
    assert_eq!(refused.code(), "shape_changed");
}

#[test]
fn families_are_as_read_and_none_is_invented() {
    for (name, label, count) in [
        ("ecs.pni2.28xlarge", Some("A100 80GB"), 8),
        ("ecs.pni2l.7xlarge", Some("A800 80GB"), 2),
        ("ecs.pni3ln.4xlarge", Some("H20"), 1),
        ("ecs.hpcpni3ln.45xlarge", Some("H20"), 8),
        ("ecs.gni3cgd.22xlarge", Some("L20"), 4),
        ("ecs.xni3c.45xlarge", Some("RTX 4090"), 8),
        ("ecs.pni3l.12xlarge", None, 2),
    ] {
        let (gpu, _) = HARDWARE.of(name).expect("in the table");
        assert_eq!((gpu.label.as_deref(), gpu.count), (label, Some(Ratio::from(count))), "{name}");
    }
    for invented in ["ecs.gn1l.xlarge", "ecs.gn2l.xlarge", "ecs.gn2o.4xlarge"] {
        assert!(HARDWARE.find(invented).is_none(), "{invented}");
    }
}

#[test]
fn a_machine_whose_card_is_not_confirmed_is_no_unknown_machine() {
    let pages = recordings::newest("volcengine").expect("a dated recording").pages;
    let offers = Volcengine.parse(&pages).expect("the pages read").offers;
    let flags = |name: &str| {
        let offer = offers.iter().find(|offer| offer.instance_type.as_deref() == Some(name)).expect("the machine");
        (offer.gpu.label.is_some(), offer.gpu.count, offer.flags.clone())
    };
    assert_eq!(flags("ecs.pni3l.48xlarge"), (false, Some(Ratio::from(8)), BTreeSet::new()));
    assert_eq!(flags("ecs.g1ve.2xlarge"), (false, None, BTreeSet::from([UNKNOWN_HARDWARE])));
}

#[test]
fn every_named_card_of_the_table_is_a_known_model_with_that_memory() {
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
        let Some(label) = gpu.label else { continue };
        let model = models.model.iter().find(|model| model.name == label).unwrap_or_else(|| panic!("{label} is no model"));
        assert!(model.memory_gb.iter().any(|memory| gpu.memory_gb == Some((*memory).into())), "{name}");
    }
}

#[test]
fn every_named_card_of_the_table_is_in_the_list_of_names_with_that_memory() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../shared/gpu-names.md");
    let Ok(names) = std::fs::read_to_string(path) else {
        eprintln!("skipped: ../shared is not beside this checkout");
        return;
    };
    for name in HARDWARE.types() {
        let (gpu, _) = HARDWARE.of(name).expect("in the table");
        let (Some(label), Some(memory)) = (gpu.label, gpu.memory_gb) else { continue };
        let (card, memory) = (label.trim_end_matches(" 80GB"), memory.to_string());
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
        let terms = &offer.terms;
        let machine = (offer.region.clone(), offer.instance_type.clone(), offer.gpu.label.clone(), offer.gpu.count);
        format!("{:?}", (machine, terms.os, terms.pricing_model, terms.commitment_months, terms.upfront))
    };
    for recording in recordings::of("volcengine") {
        for (scope, parsed) in crate::read(&Volcengine, recording.pages) {
            let Ok(parsed) = parsed else { continue };
            let keys: BTreeSet<_> = parsed.offers.iter().map(key).collect();
            assert_eq!(keys.len(), parsed.offers.len(), "{} {scope}", recording.case);
        }
    }
}
