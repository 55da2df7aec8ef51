//! What no recording shows by itself: the requests that the list of zones leads to, scopes of pages from files, the documented
//! traps, and what holds for every recording at once.

use std::collections::HashSet;

use num_rational::Ratio;
use rust_decimal::Decimal;

use super::rows::card_in;
use super::*;
use crate::contract::{Availability, GpuShare, PriceUnit, PricingModel, PublishedOffer, UNKNOWN_HARDWARE};
use crate::{read, recordings};

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
    let zones = ["ap-guangzhou-3", "ap-guangzhou-6", "ap-shanghai-5", "ap-hongkong-2"];
    let expected = ["zone-ap-guangzhou-3", "zone-ap-guangzhou-6", "zone-ap-shanghai-5", "zone-ap-hongkong-2"];
    assert_eq!(names, expected.into_iter().zip(zones).collect::<Vec<_>>());
    let first = &requests[1];
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
    assert_eq!(code(&set(r#"[{"region":"ap-x","zones":[]}]"#)), "nothing_found");
    assert_eq!(code(&set(r#"[{"region":"ap-x\"}","zones":[{"zone":"ap-x-1"}]}]"#)), "shape_changed");
    assert_eq!(code(&set(r#"[{"region":"ap-x","zones":[{"id":1}]}]"#)), "shape_changed");
}

#[test]
fn a_region_without_zones_and_a_zone_without_a_name_cost_no_other_zone() {
    let list = |regions: &str| page(&format!(r#"{{"code":0,"data":{{"Response":{{"RegionSet":[{regions}]}}}}}}"#));
    let odd = [
        r#"{"region":"ap-nanjing"}"#,
        r#"{"region":"ap-nanjing","zones":null}"#,
        r#"{"region":"","zones":[]}"#,
        r#"{"region":"ap-nanjing","zones":[{"zone":""},{"zone":null}]}"#,
    ];
    let all = format!(r#"{},{{"region":"ap-x","zones":[{{"zone":""}},{{"zone":"ap-x-1"}}]}}"#, odd.join(","));
    let requests = Tencent.follow(&list(&all)).expect("one zone is left");
    assert_eq!(requests.iter().map(|request| request.scope.as_str()).collect::<Vec<_>>(), ["ap-x-1"]);
    for regions in odd.into_iter().chain([odd.join(",").as_str()]) {
        assert_eq!(Tencent.follow(&list(regions)).expect_err("no zone is left").code(), "nothing_found", "{regions}");
    }
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
    assert_eq!(Tencent.scope(&recorded("zone-ap-shanghai-5")), Ok(Some("ap-shanghai-5".to_owned())));
    let both = recordings::of("tencent").into_iter().find(|recording| recording.case == "tiered").expect("the case");
    assert_eq!(Tencent.scope(&both.pages[0]), Ok(None));
}

/// The offers of a crafted case that its change added: those of rows that the others do not have.
fn added(case: &str) -> Vec<PublishedOffer> {
    let recording = recordings::of("tencent").into_iter().find(|recording| recording.case == case).expect("the case");
    let scopes = read(&Tencent, recording.pages).into_values();
    let offers = scopes.flat_map(|scope| scope.expect("the case reads").offers);
    let number = |at: &str| at.rsplit('/').next().and_then(|number| number.parse::<u32>().ok()).expect("a row's number");
    offers.filter(|offer| number(&offer.place.at) >= 7).collect()
}

fn amounts(offers: &[PublishedOffer]) -> Vec<(String, bool, Option<&str>)> {
    let amount = |offer: &PublishedOffer| offer.price.amount.to_string();
    offers.iter().map(|offer| (amount(offer), offer.terms.is_promotion, offer.terms.plan.as_deref())).collect()
}

fn dated() -> Vec<PublishedOffer> {
    let recording = recordings::newest("tencent").expect("a dated recording");
    read(&Tencent, recording.pages).into_values().flat_map(|scope| scope.expect("the night reads").offers).collect()
}

fn of(instance_type: &str, model: PricingModel) -> Vec<PublishedOffer> {
    dated().into_iter().filter(|o| o.instance_type.as_deref() == Some(instance_type) && o.terms.pricing_model == model).collect()
}

/// One row of a zone in its own answer.
fn parsed(row: &str) -> Parsed {
    let body = format!(r#"{{"code":0,"data":{{"Response":{{"InstanceTypeQuotaSet":[{row}]}}}}}}"#);
    let page = Page { scope: "ap-guangzhou-6".to_owned(), ..page(&body) };
    Tencent.parse(&[page]).expect("the answer reads")
}

fn t4(price: &str) -> String {
    format!(
        r#"{{"Zone":"ap-guangzhou-6","InstanceType":"GN7.2XLARGE32","InstanceFamily":"GN7","InstanceChargeType":"POSTPAID_BY_HOUR",
        "Cpu":8,"Memory":32,"Gpu":1,"GpuCount":1,"Status":"SELL","Price":{price}}}"#
    )
}

#[test]
fn trap_1_the_list_price_stays_beside_the_discounted_one_and_spot_is_only_the_latter() {
    assert_eq!(amounts(&added("discounted")), [("8.68".to_owned(), false, None), ("6.944".to_owned(), true, None)]);
    let without = parsed(&t4(r#"{"ChargeUnit":"HOUR","UnitPrice":8.68}"#));
    assert_eq!(amounts(&without.offers), [("8.68".to_owned(), false, None)]);
    let spot = of("GN7.2XLARGE32", PricingModel::Spot);
    assert_eq!(amounts(&spot[..1]), [("1.736".to_owned(), false, None)]);
}

#[test]
fn a_discounted_price_of_zero_is_none_in_every_way_of_paying() {
    let hourly = |price: &str| parsed(&t4(price));
    let prepaid = |price: &str| parsed(&t4(price).replace("POSTPAID_BY_HOUR", "PREPAID"));
    let sold_out = |price: &str| parsed(&t4(price).replace("SELL", "SOLD_OUT"));
    let steps = r#"{"ChargeUnit":"HOUR","UnitPrice":8.68,"UnitPriceDiscount":0,"UnitPriceSecondStep":4.34,"UnitPriceDiscountSecondStep":0.0}"#;
    let months = r#"{"OriginalPrice":2500,"DiscountPrice":0,"OriginalPriceOneYear":30000,"DiscountPriceOneYear":"0"}"#;
    for (read, texts) in [
        (hourly(r#"{"ChargeUnit":"HOUR","UnitPrice":8.68,"UnitPriceDiscount":0}"#), &["8.68"][..]),
        (sold_out(r#"{"ChargeUnit":"HOUR","UnitPrice":8.68,"UnitPriceDiscount":0}"#), &["8.68"]),
        (hourly(steps), &["8.68", "4.34"]),
        (prepaid(months), &["2500", "30000"]),
    ] {
        assert_eq!(read.offers.iter().map(|offer| offer.price.text.as_str()).collect::<Vec<_>>(), texts);
        assert!(read.offers.iter().all(|offer| !offer.terms.is_promotion) && read.skipped.is_empty(), "{:?}", read.skipped);
    }
    let spot =
        parsed(&t4(r#"{"ChargeUnit":"HOUR","UnitPrice":8.68,"UnitPriceDiscount":0}"#).replace("POSTPAID_BY_HOUR", "SPOTPAID"));
    assert_eq!((spot.offers.len(), spot.skipped[0].reason.code()), (0, "price_zero"), "a spot price has no other field");
}

#[test]
fn trap_2_the_first_step_is_the_price_on_demand_and_the_others_are_plans_of_their_own() {
    let steps = added("tiered");
    let plans = [None, Some("after_96_hours"), Some("after_360_hours")];
    let expected: Vec<_> = ["8.68", "4.34", "2.9512"].map(str::to_owned).into_iter().zip(plans).collect();
    assert_eq!(amounts(&steps), expected.into_iter().map(|(amount, plan)| (amount, false, plan)).collect::<Vec<_>>());
    assert!(steps[0].flags.contains("tiered") && steps[1..].iter().all(|step| step.flags.contains("later_step")));
    assert_eq!(amounts(&added("tiered-same")).len(), 1, "three equal steps are none");
    let promotion = parsed(&t4(r#"{"ChargeUnit":"HOUR","UnitPrice":8.68,"UnitPriceDiscount":6.944,"UnitPriceSecondStep":8.68}"#));
    assert_eq!(amounts(&promotion.offers), amounts(&added("discounted")), "a list price that does not fall is no step");
    let unreadable = parsed(&t4(r#"{"ChargeUnit":"HOUR","UnitPrice":8.68,"UnitPriceSecondStep":"-"}"#));
    assert_eq!((unreadable.offers.len(), unreadable.skipped[0].reason.code()), (1, "price_unreadable"));
}

#[test]
fn trap_3_a_year_is_its_own_total_and_never_twelve_months() {
    let terms = of("GN7.2XLARGE32", PricingModel::Subscription);
    let found: Vec<_> = terms.iter().map(|o| (o.terms.commitment_months, o.price.unit, o.price.text.as_str())).collect();
    let (month, term) = (PriceUnit::Month, PriceUnit::Term);
    assert_eq!(found, [(Some(1), month, "2500.0"), (Some(12), term, "30000.0"), (Some(12), term, "24900.0")]);
    assert_eq!(terms.iter().map(|offer| offer.terms.is_promotion).collect::<Vec<_>>(), [false, false, true]);
    let months: Vec<_> = added("prepaid-plural").iter().filter_map(|offer| offer.terms.commitment_months).collect();
    assert_eq!(months, [1, 12, 12, 36, 36, 60]);
}

#[test]
fn trap_4_a_sold_out_machine_keeps_its_price_and_a_zero_is_none() {
    let sold_out = added("sold-out-zero");
    assert_eq!(amounts(&sold_out), [("1.736".to_owned(), false, None)]);
    assert_eq!(sold_out[0].terms.availability, Some(Availability::SoldOut));
}

#[test]
fn trap_5_every_zone_keeps_its_price() {
    let zones = |offers: &[PublishedOffer]| -> Vec<_> {
        offers.iter().map(|offer| (offer.zone.clone().unwrap_or_default(), offer.price.text.clone())).collect()
    };
    let row = |zone: &str, text: &str| (zone.to_owned(), text.to_owned());
    assert_eq!(zones(&added("zones-differ")), [row("ap-guangzhou-6", "8.68"), row("ap-guangzhou-7", "9.55")]);
    let same = zones(&of("GN7.2XLARGE32", PricingModel::OnDemand));
    assert_eq!(same, [row("ap-guangzhou-6", "8.68"), row("ap-shanghai-5", "8.68")]);
}

#[test]
fn trap_6_the_card_is_the_table_s_and_a_remark_names_none() {
    let a100 = &of("GT4.4XLARGE96", PricingModel::Subscription)[0].gpu;
    assert_eq!((a100.label.as_deref(), a100.memory_gb), (Some("A100 SXM 40GB"), Some(Decimal::from(40))));
    let hcc = &of("HCCG5v.24XLARGE384", PricingModel::Subscription)[0];
    assert_eq!((hcc.gpu.label.as_deref(), hcc.gpu.memory_gb, hcc.gpu.count), (None, None, Some(Ratio::from_integer(8))));
    assert!(hcc.flags.contains(UNKNOWN_HARDWARE) && hcc.machine.is_bare_metal == Some(true));
    for (instance_type, memory_gb) in [("PNV5b.8XLARGE96", 48), ("PNV6.4XLARGE160", 96)] {
        let (gpu, _) = HARDWARE.find(instance_type).expect("in the table");
        assert_eq!((gpu.label, gpu.memory_gb), (None, Some(Decimal::from(memory_gb))), "{instance_type}");
    }
    assert!(HARDWARE.types().all(|name| !name.starts_with("PTX2")), "nothing is known of its card");
    assert_eq!(added("count-not-stated")[0].gpu.count, None);
}

#[test]
fn trap_7_the_numbers_of_a_name_are_memory() {
    let row = &added("four-cards-in-a-name")[0];
    assert_eq!(row.gpu.count, Some(Ratio::from_integer(4)));
    assert_eq!((row.machine.vcpus, row.machine.system_memory_gib), (Some(Decimal::from(36)), Some(Decimal::from(160))));
    for instance_type in ["GN10X.18XLARGE320", "GN10Xp.20XLARGE320"] {
        let (gpu, _) = HARDWARE.find(instance_type).expect("in the table");
        let eight = (Some(Ratio::from_integer(8)), Some("V100 SXM2 32GB"), Some(Decimal::from(32)));
        assert_eq!((gpu.count, gpu.label.as_deref(), gpu.memory_gb), eight);
    }
    assert!(HARDWARE.of("GN10X.20XLARGE320").is_err(), "a type that does not exist");
}

#[test]
fn trap_8_gn7_is_the_t4() {
    let mut types: Vec<_> = HARDWARE.types().filter(|name| name.starts_with("GN7")).collect();
    types.sort_unstable();
    types.dedup();
    assert_eq!(types.len(), 13);
    for name in types {
        assert_eq!(HARDWARE.find(name).and_then(|(gpu, _)| gpu.label).as_deref(), Some("T4"), "{name}");
    }
}

#[test]
fn trap_9_a_share_of_a_card_is_exact() {
    for (instance_type, share, memory_gb) in
        [("GN7.LARGE20", Ratio::new(1, 4), 4), ("GN7.2XLARGE40", Ratio::new(1, 2), 8), ("GN10X.LARGE20", Ratio::new(1, 2), 16)]
    {
        let (gpu, _) = HARDWARE.find(instance_type).expect("in the table");
        let expected = (Some(share), GpuShare::FixedSlice, Some(Decimal::from(memory_gb)));
        assert_eq!((gpu.count, gpu.share, gpu.memory_gb), expected, "{instance_type}");
    }
    let half = &of("GN10X.LARGE20", PricingModel::OnDemand)[0];
    assert_eq!((half.gpu.count, half.price.text.as_str()), (Some(Ratio::new(1, 2)), "9.02"));
    assert!(added("virtual-workstation").iter().all(|offer| offer.gpu.share == GpuShare::FixedSlice));
    let quarter = t4(r#"{"ChargeUnit":"HOUR","UnitPrice":8.68}"#)
        .replace("GN7.2XLARGE32", "GN9.NEW")
        .replace("\"GpuCount\":1", "\"GpuCount\":0.25");
    for (count, family, expected) in [
        ("0.25", "GN9", (Some(Ratio::new(1, 4)), GpuShare::Derived)),
        ("0.33", "GN9", (Some(Ratio::new(33, 100)), GpuShare::Derived)),
        ("0.33", "GN9vw", (Some(Ratio::new(33, 100)), GpuShare::Derived)),
        ("1.5", "GN9", (Some(Ratio::new(3, 2)), GpuShare::Derived)),
        ("2", "GN9", (Some(Ratio::from_integer(2)), GpuShare::Whole)),
        ("1", "GN9vw", (Some(Ratio::from_integer(1)), GpuShare::FixedSlice)),
    ] {
        let row = quarter.replace("0.25", count).replace("\"GN7\"", &format!("\"{family}\""));
        let offer = &parsed(&row).offers[0];
        assert_eq!(((offer.gpu.count, offer.gpu.share), &offer.gpu.label), (expected, &None), "{count} {family}");
        assert_eq!(offer.flags.contains("derived_share"), expected.1 == GpuShare::Derived, "{count} {family}");
    }
}

#[test]
fn trap_10_a_family_sold_by_invitation_is_published_like_any_other() {
    let row = &added("card-not-named")[0];
    assert_eq!((row.instance_type.as_deref(), row.price.text.as_str()), (Some("PNV5b.8XLARGE96"), "8.68"));
}

#[test]
fn trap_11_a_host_that_wants_a_login_has_no_prices() {
    for (case, expected) in [("error-code", "error_answer"), ("error-in-200", "error_answer"), ("login-page", "wrong_format")] {
        let recording = recordings::of("tencent").into_iter().find(|recording| recording.case == case).expect("the case");
        let codes: Vec<_> =
            read(&Tencent, recording.pages).into_values().map(|scope| scope.map_err(|e| e.code()).err()).collect();
        assert_eq!(codes, [Some(expected)], "{case}");
    }
}

#[test]
fn trap_12_overseas_regions_of_the_china_site_are_in_its_currency() {
    let row = &added("overseas")[0];
    assert_eq!((row.region.as_deref(), row.price.currency_code.as_str(), row.site), (Some("ap-singapore"), "CNY", None));
    assert_eq!(MANIFEST.site, crate::contract::Site::Cn);
}

#[test]
fn no_two_offers_of_a_recording_are_the_same_offer() {
    for recording in recordings::of("tencent") {
        let mut keys = HashSet::new();
        for offer in read(&Tencent, recording.pages).into_values().filter_map(Result::ok).flat_map(|parsed| parsed.offers) {
            let (gpu, terms) = (&offer.gpu, &offer.terms);
            let what = (offer.region, offer.zone, offer.instance_type, gpu.label.clone(), gpu.count);
            let how = (terms.pricing_model, terms.commitment_months, terms.upfront, terms.plan.clone(), terms.is_promotion);
            assert!(keys.insert((what, how)), "{}: {} stands twice", recording.case, offer.place.at);
        }
    }
}

#[test]
fn a_word_for_the_stock_that_is_not_known_costs_no_price() {
    let row = |words: &str| t4(r#"{"ChargeUnit":"HOUR","UnitPrice":8.68}"#).replace(r#""Status":"SELL""#, words);
    for (words, availability, unread) in [
        (r#""Status":"SELL","StatusCategory":"PlentyStock""#, None, Some("StatusCategory=PlentyStock")),
        (r#""Status":"SELL","StatusCategory":"""#, None, Some("StatusCategory=")),
        (r#""Status":"SELL","StatusCategory":"UnderStock""#, Some(Availability::Low), None),
        (r#""Status":"SELL""#, Some(Availability::Available), None),
        (r#""Status":"SOLD_OUT","StatusCategory":"PlentyStock""#, Some(Availability::SoldOut), None),
    ] {
        let read = parsed(&row(words));
        assert_eq!((read.offers[0].terms.availability, read.offers[0].price.text.as_str()), (availability, "8.68"), "{words}");
        assert_eq!(read.unread_fields.into_iter().collect::<Vec<_>>(), Vec::from_iter(unread), "{words}");
    }
    assert_eq!(parsed(&row(r#""Status":"PAUSED""#)).skipped[0].reason.code(), "unknown_word");
}

#[test]
fn a_city_has_the_code_that_it_has_with_other_providers() {
    for (region, provider, other) in [
        ("ap-beijing", "aws", "cn-north-1"),
        ("ap-beijing-fsi", "aws", "cn-north-1"),
        ("ap-hongkong", "aws", "ap-east-1"),
        ("ap-taipei", "aws", "ap-east-2"),
        ("ap-singapore", "aws", "ap-southeast-1"),
        ("ap-bangkok", "gcp", "asia-southeast3"),
        ("ap-jakarta", "gcp", "asia-southeast2"),
        ("ap-mumbai", "azure", "westindia"),
        ("ap-seoul", "azure", "koreacentral"),
        ("ap-tokyo", "azure", "japaneast"),
        ("ap-osaka", "azure", "japanwest"),
        ("na-siliconvalley", "azure", "westus"),
        ("na-ashburn", "aws", "us-east-1"),
        ("na-toronto", "azure", "canadacentral"),
        ("sa-saopaulo", "gcp", "southamerica-east1"),
        ("eu-frankfurt", "gcp", "europe-west3"),
    ] {
        // A provider may be taken out of the collection.
        let Some(scraper) = crate::find(provider) else { continue };
        let place = scraper.manifest().regions.get(other);
        assert!(place.is_some() && MANIFEST.regions.get(region) == place, "{region}: {place:?}");
    }
}

#[test]
fn every_region_has_a_place_and_every_place_a_country() {
    for offer in dated() {
        assert!(MANIFEST.regions.contains_key(offer.region.as_deref().unwrap_or_default()), "{:?}", offer.region);
    }
    for (region, place) in &MANIFEST.regions {
        let is_code = |text: &str, length| text.len() == length && text.chars().all(|c| c.is_ascii_uppercase());
        assert!(place.split_once('-').is_some_and(|(country, metro)| is_code(country, 2) && is_code(metro, 3)), "{region}");
        let china = ["HK", "TW", "SG", "TH", "ID", "IN", "KR", "JP"].iter().all(|country| !place.starts_with(country));
        assert_eq!(region.starts_with("ap-") && china, place.starts_with("CN"), "{region}");
    }
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
