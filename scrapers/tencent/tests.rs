//! What no recording shows: the requests that the list of zones leads to, and scopes of pages from files.

use num_rational::Ratio;

use super::*;
use crate::contract::GpuShare;
use crate::recordings;

fn page(body: &str) -> Page {
    let recording = recordings::newest("tencent").expect("a dated recording");
    Page { body: body.as_bytes().to_vec(), ..recording.pages[0].clone() }
}

fn recorded(name: &str) -> Page {
    let pages = recordings::newest("tencent").expect("a dated recording").pages;
    pages.into_iter().find(|page| page.name == name).expect("a page of this name")
}

#[test]
fn the_list_of_zones_leads_to_one_request_for_each_zone() {
    let requests = Tencent.follow(&recorded("zones")).expect("the list of zones reads");
    let names: Vec<_> = requests.iter().map(|request| (request.name.as_str(), request.scope.as_str())).collect();
    assert_eq!(names, [("zone-ap-guangzhou-6", "ap-guangzhou-6"), ("zone-ap-shanghai-2", "ap-shanghai-2")]);
    let first = &requests[0];
    assert_eq!(first.method, Method::Post);
    let host = "https://workbench.cloud.tencent.com";
    assert_eq!(first.url, format!("{host}/cgi/api?i=cvm/DescribeZoneInstanceConfigInfos&uin=&region=ap-guangzhou"));
    let body: serde_json::Value = serde_json::from_str(first.body.as_deref().expect("a body")).expect("a body of JSON");
    let expected = serde_json::json!({
        "serviceType": "cvm", "action": "DescribeZoneInstanceConfigInfos", "region": "ap-guangzhou", "cgiName": "api",
        "data": { "Version": "2017-03-12", "Platform": "LINUX", "Filters": [
            { "Name": "zone", "Values": ["ap-guangzhou-6"] },
            { "Name": "instance-charge-type", "Values": ["PREPAID", "POSTPAID_BY_HOUR", "SPOTPAID"] },
        ] },
    });
    assert_eq!(body, expected);
}

#[test]
fn a_zone_answer_leads_nowhere() {
    assert_eq!(Tencent.follow(&recorded("zone-ap-guangzhou-6")), Ok(Vec::new()));
}

#[test]
fn a_list_of_zones_that_is_an_error_or_empty_or_odd_leads_nowhere_loudly() {
    let set = |regions: &str| page(&format!(r#"{{"code":0,"data":{{"Response":{{"RegionSet":{regions}}}}}}}"#));
    let code = |page: &Page| Tencent.follow(page).expect_err("no requests").code();
    assert_eq!(code(&page(r#"{"code":7,"data":{}}"#)), "error_answer");
    assert_eq!(code(&set("[]")), "nothing_found");
    assert_eq!(code(&set(r#"[{"region":"ap-x\"}","zones":[{"zone":"ap-x-1"}]}]"#)), "shape_changed");
    assert_eq!(code(&set(r#"[{"region":"ap-x","zones":[{"id":1}]}]"#)), "shape_changed");
}

#[test]
fn a_zone_named_twice_is_asked_once() {
    let zones = r#"[{"region":"ap-x","zones":[{"zone":"ap-x-1"},{"zone":"ap-x-1"}]}]"#;
    let list = page(&format!(r#"{{"code":0,"data":{{"Response":{{"RegionSet":{zones}}}}}}}"#));
    assert_eq!(Tencent.follow(&list).expect("the list of zones reads").len(), 1);
}

#[test]
fn the_scope_is_told_from_the_content() {
    assert_eq!(Tencent.scope(&recorded("zones")), Ok(Some(SCOPE_INDEX.to_owned())));
    assert_eq!(Tencent.scope(&recorded("zone-ap-shanghai-2")), Ok(Some("ap-shanghai-2".to_owned())));
    let both = recordings::of("tencent").into_iter().find(|recording| recording.case == "tiered").expect("the case");
    assert_eq!(Tencent.scope(&both.pages[0]), Ok(None));
}

#[test]
fn a_quarter_of_a_card_is_exact() {
    let (gpu, _) = HARDWARE.of("GN7.LARGE20").expect("in the table");
    assert_eq!((gpu.count, gpu.share), (Some(Ratio::new(1, 4)), GpuShare::FixedSlice));
    let (gpu, _) = HARDWARE.of("gn10xp.20xlarge320").expect("in the table");
    assert_eq!((gpu.count, gpu.label.as_deref()), (Some(Ratio::new(8, 1)), Some("V100 SXM2 32GB")));
    assert!(HARDWARE.of("GN10X.20XLARGE320").is_err(), "a type that does not exist");
}

#[test]
fn a_remark_names_a_card_or_plainly_none() {
    for (remark, card) in [
        ("1 * NVIDIA T4", Some("T4")),
        ("8 * NVIDIA A100", Some("A100")),
        ("4 颗 NVIDIA T4", Some("T4")),
        ("8 * NVIDIA Tesla V100-NVLink-32G", Some("V100")),
        ("1 * NVIDIA T4显卡", Some("T4")),
        ("1 * NVIDIA GPU", None),
        ("1 * NVIDIA vGPU T4", None),
        ("", None),
    ] {
        assert_eq!(card_in(remark), card, "{remark}");
    }
}
