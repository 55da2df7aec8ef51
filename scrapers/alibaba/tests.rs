//! One test for each trap of the source, the way from a pricing page to its file, and the recorded excerpt of 2018.

use std::collections::{BTreeSet, HashSet};
use std::path::Path;

use num_rational::Ratio;

use super::*;
use crate::contract::{GpuShare, Method, Os, PriceUnit, PricingModel, PublishedOffer, UNKNOWN_HARDWARE, Upfront};
use crate::{assign_scopes, recordings};

const EXCERPT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../shared/samples/alibaba/instancePrice_excerpt_2018-10-08.json");

fn page(scope: &str, url: &str, observed_at: &str, body: String) -> Page {
    let observed_at = format!("{observed_at}T02:00:00Z").parse().expect("a literal day");
    Page {
        name: "page".to_owned(),
        scope: scope.to_owned(),
        url: url.to_owned(),
        observed_at,
        sha256: String::new(),
        body: body.into(),
    }
}

fn index(url: &str, body: &str) -> Page {
    page(SCOPE_INDEX, url, "2026-09-15", body.to_owned())
}

fn file(currency: &str, date: &str, types: &[&str]) -> Page {
    let entry =
        |name: &&str| format!(r#""us-east-1::{name}::vpc::linux::optimized": {{"hours": [{{"price": "1.5", "period": "1"}}]}}"#);
    let entries: Vec<_> = types.iter().map(entry).collect();
    let body = format!(r#"{{"currency": "{currency}", "publicationDate": "{date}", "pricingInfo": {{{}}}}}"#, entries.join(","));
    page("all", "file.json", "2026-09-15", body)
}

/// The offers of a file that lists these types.
fn offers(types: &[&str]) -> Vec<PublishedOffer> {
    Alibaba.parse(&[file("USD", "2026-09-10", types)]).expect("the file reads").offers
}

fn dated() -> Vec<PublishedOffer> {
    let pages = recordings::newest("alibaba").expect("a dated recording").pages;
    crate::read(&Alibaba, pages).into_values().flat_map(|parsed| parsed.expect("a healthy night").offers).collect()
}

fn case(name: &str) -> Parsed {
    let recording = recordings::of("alibaba").into_iter().find(|recording| recording.case == name).expect("a case of this name");
    Alibaba.parse(&recording.pages).expect("the case reads")
}

#[test]
fn an_abandoned_build_is_refused_by_its_date_and_a_fresh_one_is_read() {
    let code =
        |date: &str| Alibaba.parse(&[file("USD", date, &["ecs.gn7i-c8g1.2xlarge"])]).map(|_| ()).map_err(|error| error.code());
    for fresh in ["2026-09-15", "2026-09-16", "2026-09-15T23:59:59Z", "2026-08-16T00:00:00Z", "2026-08-16"] {
        assert_eq!(code(fresh), Ok(()), "{fresh}");
    }
    for form in ["2026-08-16 10:00:00", "2026/08/16", "20260816"] {
        assert_eq!((code(form), code(&form.replace("16", "15"))), (Ok(()), Err("shape_changed")), "{form}");
    }
    for form in ["2026-09-15T10:00:00", "2026-09-15T10:00Z", "2026-09-15T10:00:00.000Z", "2026-09-15T10:00:00+08:00"] {
        assert_eq!((code(form), code(&form.replace("2026", "2018"))), (Ok(()), Err("shape_changed")), "{form}");
    }
    for unclear in ["09/10/2026", "10.09.2026", "2026-9-10", "2026-09", "2026091", "202609100", "2026-09-31", "1789000000"] {
        assert_eq!(code(unclear), Err("shape_changed"), "{unclear}");
    }
    for stale in ["2018-10-08", "2018-10-08T08:15:52Z", "2026-08-15", "2026-09-17", "", "yesterday"] {
        assert_eq!(code(stale), Err("shape_changed"), "{stale}");
    }
}

#[test]
fn a_region_in_both_lists_has_a_price_of_its_own_in_each() {
    let offers = dated();
    let hourly = |offer: &&PublishedOffer| {
        offer.region.as_deref() == Some("cn-hangzhou")
            && offer.instance_type.as_deref() == Some("ecs.gn7e-c16g1.4xlarge")
            && offer.price.unit == PriceUnit::Hour
    };
    let found: Vec<_> =
        offers.iter().filter(hourly).map(|o| (o.site, o.price.currency_code.as_str(), o.price.text.as_str())).collect();
    assert_eq!(found, [(Some(Site::Cn), "CNY", "34.742"), (Some(Site::Intl), "USD", "5.212")]);
    for offer in &offers {
        let (currency, tax) = if offer.site == Some(Site::Intl) { ("USD", Some(false)) } else { ("CNY", None) };
        assert_eq!((offer.price.currency_code.as_str(), offer.price.tax_included), (currency, tax), "{offer:?}");
    }
}

#[test]
fn a_discount_beside_the_price_is_reported_and_never_taken() {
    let parsed = case("new-field");
    assert!(parsed.unread_fields.contains("tradePrice"));
    assert!(parsed.offers.iter().all(|offer| !offer.terms.is_promotion && offer.price.text != "0.01"));
}

#[test]
fn the_price_of_some_years_is_their_total() {
    let years: Vec<_> = dated()
        .into_iter()
        .filter(|offer| offer.site == Some(Site::Cn))
        .filter(|offer| offer.sku.as_deref() == Some("cn-hangzhou::ecs.gn7e-c16g1.4xlarge::vpc::linux::optimized"))
        .map(|offer| {
            (offer.terms.pricing_model, offer.terms.commitment_months, offer.terms.upfront, offer.price.unit, offer.price.text)
        })
        .collect();
    let subscription =
        |months, unit, text: &str| (PricingModel::Subscription, Some(months), Some(Upfront::All), unit, text.to_owned());
    let expected = [
        (PricingModel::OnDemand, None, None, PriceUnit::Hour, "34.742".to_owned()),
        subscription(1, PriceUnit::Month, "16676"),
        subscription(12, PriceUnit::Term, "170095.2"),
        subscription(24, PriceUnit::Term, "280156.8"),
        subscription(36, PriceUnit::Term, "300168"),
        subscription(48, PriceUnit::Term, "400224"),
        subscription(60, PriceUnit::Term, "500280"),
    ];
    assert_eq!(years, expected);
}

/// A file of one machine, with these lists of prices.
fn lists(text: &str) -> Page {
    let file = file("USD", "2026-09-10", &["ecs.gn7i-c8g1.2xlarge"]);
    let body = file.text().expect("text").replace(r#""hours": [{"price": "1.5", "period": "1"}]"#, text);
    Page { body: body.into_bytes(), ..file }
}

#[test]
fn a_price_of_several_months_is_kept_and_not_decoded() {
    let row = |period: &str| format!(r#"{{"price": "2800", "period": {period}}}"#);
    for period in [r#""2""#, r#""3""#, r#""6""#, "9"] {
        let months = lists(&format!(r#""hours": [], "months": [{}, {}]"#, row(r#""1""#), row(period)));
        let read = crate::read(&Alibaba, vec![months]).remove("all").expect("the scope").expect("one row in two is decoded");
        let offers: Vec<_> = read.offers.iter().map(|o| (o.terms.commitment_months, o.price.unit)).collect();
        assert_eq!((offers, read.skipped[0].reason.code()), (vec![(Some(1), PriceUnit::Month)], "undecoded"), "{period}");
    }
    for period in ["\"0\"", "\"\"", "\"1.5\"", "\"-1\"", "\"half\""] {
        let read = Alibaba.parse(&[lists(&format!(r#""hours": [], "months": [{}]"#, row(period)))]).expect("the file reads");
        assert_eq!((read.offers.len(), read.skipped[0].reason.code()), (0, "unknown_word"), "{period}");
    }
}

#[test]
fn an_entry_without_hourly_prices_keeps_its_others() {
    let hourly = r#""hours": [{"price": "1.5", "period": "1"}]}, "us-east-1::ecs.gn6i-c4g1.xlarge::vpc::linux::optimized": {"#;
    for (rest, texts) in [
        (r#""months": [{"price": "800", "period": "1"}]"#, &["1.5", "800"][..]),
        (r#""years": [{"price": "8000", "period": "1"}]"#, &["1.5", "8000"]),
        (r#""hours": null, "months": [{"price": "800", "period": "1"}], "years": null"#, &["1.5", "800"]),
        (r#""months": []"#, &["1.5"]),
    ] {
        let read = Alibaba.parse(&[lists(&format!("{hourly}{rest}"))]).expect("the file reads");
        assert_eq!(read.offers.iter().map(|offer| offer.price.text.as_str()).collect::<Vec<_>>(), texts, "{rest}");
        assert!(read.skipped.is_empty(), "{rest}");
        assert_eq!(Alibaba.parse(&[lists(rest)]).expect_err("no hours in the whole file").code(), "shape_changed", "{rest}");
    }
    let none = Alibaba.parse(&[lists(&format!(r#"{hourly}"weeks": []"#))]).expect("the file reads");
    assert_eq!((none.offers.len(), none.skipped[0].reason.code()), (1, "field_missing"));
}

#[test]
fn a_city_has_the_code_that_it_has_with_other_providers() {
    for (region, provider, other) in [
        ("cn-beijing", "aws", "cn-north-1"),
        ("cn-beijing-finance-1", "aws", "cn-north-1"),
        ("cn-north-2-gov-1", "aws", "cn-north-1"),
        ("cn-hongkong", "aws", "ap-east-1"),
        ("ap-northeast-1", "aws", "ap-northeast-1"),
        ("ap-northeast-2", "aws", "ap-northeast-2"),
        ("ap-southeast-1", "aws", "ap-southeast-1"),
        ("ap-southeast-2", "aws", "ap-southeast-2"),
        ("ap-southeast-3", "azure", "malaysiawest"),
        ("ap-southeast-5", "gcp", "asia-southeast2"),
        ("ap-southeast-6", "aws", "ap-southeast-1-mnl-1"),
        ("ap-southeast-7", "gcp", "asia-southeast3"),
        ("ap-south-1", "azure", "westindia"),
        ("us-east-1", "aws", "us-east-1"),
        ("us-west-1", "azure", "westus"),
        ("eu-central-1", "aws", "eu-central-1"),
        ("eu-west-1", "aws", "eu-west-2"),
        ("me-east-1", "azure", "uaenorth"),
    ] {
        // A provider may be taken out of the collection.
        let Some(scraper) = crate::find(provider) else { continue };
        let place = scraper.manifest().regions.get(other);
        assert!(place.is_some() && MANIFEST.regions.get(region) == place, "{region}: {place:?}");
    }
}

#[test]
fn a_price_says_nothing_of_stock_and_a_missing_type_nothing_of_its_end() {
    // Invite-only and retired types keep their prices, and no file says which they are.
    assert!(dated().iter().all(|offer| offer.terms.availability.is_none() && offer.terms.valid_from.is_none()));
}

#[test]
fn a_code_of_the_vendor_is_no_name_of_a_card() {
    for (instance_type, memory_gb) in [("ecs.gn8v-8x.48xlarge", 96), ("ecs.gn8e-8x.48xlarge", 141), ("ecs.gn9t-8x.48xlarge", 32)]
    {
        let offer = &offers(&[instance_type])[0];
        assert_eq!((&offer.gpu.label, offer.gpu.memory_gb), (&None, Some(memory_gb.into())), "{instance_type}");
        assert_eq!(offer.flags, BTreeSet::from(["card_not_named"]), "{instance_type}");
    }
}

#[test]
fn every_card_of_the_table_is_one_that_the_ledger_knows() {
    let models = Path::new(env!("CARGO_MANIFEST_DIR")).join("../src/normalise/gpu_models.toml");
    let models: toml::Table = toml::from_str(&std::fs::read_to_string(models).expect("the list of models")).expect("TOML");
    let models = models["model"].as_array().expect("a list");
    let texts = |model: &toml::Value, field: &str| -> Vec<String> {
        let list = model.get(field).and_then(toml::Value::as_array).cloned().unwrap_or_default();
        list.iter().filter_map(|text| text.as_str().map(str::to_owned)).collect()
    };
    let mut known: HashSet<String> = models.iter().flat_map(|model| texts(model, "shared_spellings")).collect();
    known.extend(models.iter().filter_map(|model| model["name"].as_str().map(str::to_owned)));
    for instance_type in HARDWARE.types() {
        let (gpu, _) = HARDWARE.of(instance_type).expect("in the table");
        assert!(gpu.label.as_ref().is_none_or(|label| known.contains(label)), "{instance_type}: {:?}", gpu.label);
        assert_eq!(machines::check(instance_type), Ok(()), "{instance_type} is told from its name");
    }
}

#[test]
fn memory_is_a_cards_or_a_shares_also_where_the_vendors_answer_has_none() {
    let types = ["ecs.gn7s-c8g1.2xlarge", "ecs.vgn7i-vws-m8.2xlarge", "ecs.sgn7i-vws-m2.xlarge", "ecs.vgn5i-m8.4xlarge"];
    let found: Vec<_> = offers(&types).into_iter().map(|offer| (offer.gpu.count, offer.gpu.share, offer.gpu.memory_gb)).collect();
    let expected = [
        (Some(Ratio::new(1, 1)), GpuShare::Whole, Some(24.into())),
        (Some(Ratio::new(1, 3)), GpuShare::FixedSlice, Some(8.into())),
        (Some(Ratio::new(1, 12)), GpuShare::FixedSlice, Some(2.into())),
        (Some(Ratio::new(1, 1)), GpuShare::Whole, Some(8.into())),
    ];
    assert_eq!(found, expected);
}

#[test]
fn a_name_that_its_grammar_explains_is_still_no_machine() {
    assert!(HARDWARE.of("ecs.gn7i.8xlarge").is_err(), "a type that does not exist");
    for unknown in
        ["ecs.gn7i.8xlarge", "ecs.gn12x-8x.64xlarge", "ecs.sgn8ia-m16.8xlarge", "ecs.sgn6i-vws-m4.2xlarge", "ecs.av8m.16xlarge"]
    {
        let offer = &offers(&[unknown])[0];
        assert_eq!((offer.gpu.count, &offer.gpu.label, offer.machine.vcpus), (None, &None, None), "{unknown}");
        assert_eq!(offer.flags, BTreeSet::from([UNKNOWN_HARDWARE]), "{unknown}");
    }
    let counts: Vec<_> = offers(&["ecs.gn7i-c32g1.8xlarge", "ecs.gn7i-c32g1.32xlarge", "ecs.gn7i-4x.8xlarge"])
        .into_iter()
        .map(|o| o.gpu.count)
        .collect();
    assert_eq!(counts, [1, 4, 4].map(|count| Some(Ratio::from(count))));
}

#[test]
fn the_letters_of_a_family_are_no_generations_of_a_card() {
    for (instance_type, label) in [
        ("ecs.gn5-c4g1.xlarge", "P100 PCIe"),
        ("ecs.gn5i-c2g1.large", "P4"),
        ("ecs.gn6i-c4g1.xlarge", "T4"),
        ("ecs.gn6v-c8g1.2xlarge", "V100 SXM2 16GB"),
        ("ecs.gn6e-c12g1.3xlarge", "V100 SXM2 32GB"),
        ("ecs.gn7-c12g1.3xlarge", "A100 SXM 40GB"),
        ("ecs.gn7e-c16g1.4xlarge", "A100 SXM 80GB"),
        ("ecs.gn7i-c8g1.2xlarge", "A10"),
        ("ecs.gn7s-c8g1.2xlarge", "A30"),
        ("ecs.ebmgn7v.32xlarge", "A800 40GB"),
        ("ecs.ebmgn7vx.32xlarge", "A800 80GB"),
    ] {
        assert_eq!(offers(&[instance_type])[0].gpu.label.as_deref(), Some(label), "{instance_type}");
    }
    let metal: Vec<_> = offers(&["ecs.ebmgn7v.32xlarge", "ecs.sccgn7ex.32xlarge", "ecs.gn7i-c8g1.2xlarge"])
        .into_iter()
        .map(|o| o.machine.is_bare_metal)
        .collect();
    assert_eq!(metal, [Some(true), Some(true), Some(false)]);
}

#[test]
fn no_calculator_and_no_signed_interface_is_asked() {
    // Their prices hold a disk, and they answer a wrong token with a page of status 200.
    let mut urls: Vec<_> = MANIFEST.start(false);
    for page in recordings::newest("alibaba").expect("a dated recording").pages {
        urls.extend(Alibaba.follow(&page).expect("the page reads"));
    }
    for request in &urls {
        let host = request.url.split('/').nth(2);
        assert!(matches!(host, Some("www.alibabacloud.com" | "www.aliyun.com" | "g.alicdn.com")), "{host:?}");
        assert!(request.method == Method::Get && !request.with_key && !request.is_immutable);
    }
    assert_eq!(urls.len(), 4);
}

#[test]
fn other_networks_other_machines_and_test_types_are_counted_and_left_out() {
    let parsed = case("classic-network");
    assert_eq!(parsed.out_of_scope.get("the classic network repeats the machine"), Some(&1));
    assert_eq!(parsed.out_of_scope.get("without optimised disks the machine is repeated"), Some(&1));
    for (instance_type, reason) in [
        ("ecs.poc-test.t13", "a test type that is not sold"),
        ("ecs.f3-c8f1.2xlarge", "an FPGA machine"),
        ("ecs.g7.xlarge", "not a GPU machine"),
        ("ecs.sn1.medium", "not a GPU machine"),
        ("ecs.hfg7.large", "not a GPU machine"),
        ("ecs.sccg5.24xlarge", "not a GPU machine"),
        ("ecs.ebmi2g.24xlarge", "not a GPU machine"),
        ("ecs.video-trans.26xhevc", "not a GPU machine"),
    ] {
        assert_eq!(machines::check(instance_type), Err(crate::contract::SkipReason::OutOfScope(reason)), "{instance_type}");
    }
}

#[test]
fn old_types_that_stay_listed_are_published() {
    for old in ["ecs.gn4-c4g1.xlarge", "ecs.ga1.xlarge", "ecs.gn5t.4xlarge", "ecs.sccgn6.24xlarge"] {
        assert_eq!(offers(&[old]).len(), 1, "{old}");
    }
}

#[test]
fn no_two_offers_are_one_and_the_same() {
    let mut keys = HashSet::new();
    for offer in dated() {
        let terms = &offer.terms;
        let key = format!(
            "{:?}",
            (
                (
                    offer.site,
                    &offer.region,
                    &offer.zone,
                    &offer.instance_type,
                    &offer.offer_label,
                    &offer.gpu.label,
                    offer.gpu.count
                ),
                (terms.os, &terms.licence, terms.tenancy, terms.pricing_model, terms.commitment_months, terms.upfront),
                (&terms.plan, terms.is_promotion),
            )
        );
        assert!(keys.insert(key), "{offer:?}");
    }
    let windows = dated().iter().filter(|offer| offer.terms.os == Os::Windows).count();
    assert_eq!((keys.len(), windows), (66, 11));
}

#[test]
fn a_pricing_page_leads_to_the_newest_build_of_its_own_site() {
    let body = r#"<a href="//g.alicdn.com/aliyun/ecs-price-info-intl/2.0.99/x.js"></a> "\/ecs-price-info-intl\/2.0.421\/y" ecs-price-info-intl/${v}/z
        ecs-price-info-intl/2.0.375/ //g.alicdn.com/aliyun/ecs-price-info/2.0.430/price"#;
    let urls = |url| {
        let requests = Alibaba.follow(&index(url, body)).expect("the page names builds");
        requests.into_iter().map(|request| (request.name, request.scope, request.url)).collect::<Vec<_>>()
    };
    let request = |site: &str, folder: &str| {
        let url = format!("https://g.alicdn.com/aliyun/{folder}/price/download/instancePrice.json");
        (format!("prices-{site}"), site.to_owned(), url)
    };
    let (intl, cn) = (request("intl", "ecs-price-info-intl/2.0.421"), request("cn", "ecs-price-info/2.0.430"));
    assert_eq!(urls("pricing.html"), [intl.clone(), cn.clone()]);
    assert_eq!(urls("https://www.alibabacloud.com/en/product/ecs/pricing"), [intl]);
    let chinese = MANIFEST.start(false).pop().expect("the page of the Chinese site").url;
    assert_eq!(chinese, "https://www.aliyun.com/price/ecs/ecs-pricing/zh");
    assert_eq!(urls(&chinese), [cn]);
}

#[test]
fn slashes_of_an_address_may_be_escaped_in_either_way() {
    for slash in ["/", "\\/", "\\u002F", "\\u002f"] {
        let body = format!("\"{}\"", "https://g.alicdn.com/aliyun/ecs-price-info/2.0.430/price".replace('/', slash));
        let requests = Alibaba.follow(&index("https://www.aliyun.com/price/ecs/ecs-pricing/zh", &body)).expect("a build");
        let expected = "https://g.alicdn.com/aliyun/ecs-price-info/2.0.430/price/download/instancePrice.json";
        assert_eq!(requests.iter().map(|request| request.url.as_str()).collect::<Vec<_>>(), [expected], "{body}");
    }
}

#[test]
fn a_pricing_page_without_a_build_it_can_name_is_refused() {
    let code = |body: &str| {
        Alibaba.follow(&index("https://www.aliyun.com/price/ecs/ecs-pricing/zh", body)).expect_err("no build").code()
    };
    for body in
        ["<p>", "<p>ecs-price-info-intl/2.0.421/", "<p>ecs-price-info/${v}/", "<p>ecs-price-info/2.1.3/", "<p>ecs-price-info/3/"]
    {
        assert_eq!(code(body), "shape_changed", "{body}");
    }
    let file = file("USD", "2026-09-10", &["ecs.gn7i-c8g1.2xlarge"]);
    assert_eq!(Alibaba.follow(&file), Ok(Vec::new()), "a price file leads nowhere");
}

#[test]
fn the_scope_is_told_from_the_content() {
    let mut pages = recordings::newest("alibaba").expect("a dated recording").pages;
    for page in &mut pages {
        page.scope = "all".to_owned();
        page.url = "file".to_owned();
    }
    let (kept, refused) = assign_scopes(&Alibaba, pages);
    let scopes: Vec<_> = kept.iter().map(|page| page.scope.as_str()).collect();
    assert_eq!((scopes, refused.len()), (vec!["index", "index", "intl", "cn"], 0));
    for body in ["", "{}", "<p>", "[]", r#"{"currency": "EUR"}"#] {
        assert!(Alibaba.scope(&index("file", body)).is_err(), "{body}");
    }
}

#[test]
fn the_recorded_excerpt_of_2018_reads_as_it_was_published() {
    if !Path::new(EXCERPT).exists() {
        eprintln!("skipped: ../shared is not beside this checkout");
        return;
    }
    let excerpt = std::fs::read_to_string(EXCERPT).expect("the file was there a moment ago");
    let read = |observed_at, body: &str| Alibaba.parse(&[page("all", EXCERPT, observed_at, body.to_owned())]);
    // Its two machines have no GPU, so they are read under the name of one that has.
    assert_eq!(read("2018-10-09", &excerpt).expect_err("no GPU machine").code(), "nothing_found");
    let renamed = excerpt.replace("ecs.t5-c1m1.xlarge", "ecs.gn7i-c8g1.2xlarge");
    let offers = read("2018-10-09", &renamed).expect("the excerpt reads").offers;
    let texts: Vec<_> = offers.iter().map(|offer| (offer.price.text.as_str(), offer.terms.commitment_months)).collect();
    let years = [("466.56", 12), ("933.1", 24), ("1399.64", 36), ("1866.18", 48), ("2332.74", 60)];
    let expected: Vec<_> =
        [("0.09", None), ("45.74", Some(1))].into_iter().chain(years.map(|(text, months)| (text, Some(months)))).collect();
    assert_eq!(texts, expected);
    assert_eq!(read("2026-09-15", &renamed).expect_err("eight years old").code(), "shape_changed");
}
