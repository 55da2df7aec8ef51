//! What a mapping may say, how a file is cut into nights, and whose rows are whose.

use chrono::{DateTime, Utc};

use super::mapping::{BUILT_IN, Mapping};
use super::{history, importer, provider_of};
use crate::contract::{Page, Parsed, PricePer, PricingModel, Scraper as _};
use crate::sha256;

const TRACKER: &str = r#"
name = "tracker"
source = "a tracker"
homepage = "https://tracker.example"
version = 1
form = "csv"
[night]
column = "day"
table = "commit"
[seller]
column = "seller"
ours = { oracle = "oci" }
[machine]
label = ["card", "count"]
region = "region"
everywhere = ["any"]
[gpu]
label = "card"
count = "count"
[terms]
os = "linux"
pricing_model = { column = "kind", words = { od = "on_demand", sp = "spot" } }
[[price]]
column = "usd"
currency = "USD"
unit = "hour"
per = "instance"
per_since = { 2026-02-19 = "gpu" }
none = [""]
"#;

fn page(body: &str, at: &str) -> Page {
    Page {
        name: "prices.csv".to_owned(),
        scope: "import-tracker".to_owned(),
        url: "prices.csv".to_owned(),
        observed_at: at.parse().expect("a time"),
        sha256: sha256(body.as_bytes()),
        body: body.as_bytes().to_vec(),
    }
}

fn read(provider: &str, body: &str, at: &str) -> Parsed {
    importer(TRACKER, provider).expect("the mapping reads").parse(&[page(body, at)]).expect("the rows read")
}

#[test]
fn every_mapping_that_is_built_in_reads() {
    for (name, text) in BUILT_IN {
        assert_eq!(Mapping::parse(text).unwrap_or_else(|error| panic!("{name}: {error}")).name, name);
    }
}

#[test]
fn a_file_is_cut_into_nights_with_the_lines_as_they_are() {
    let body = "day,commit,seller,card,count,region,kind,usd\r\n2026-02-11,a,oracle,H100,8,any,od,32\r\n\
                2026-02-12,b,oracle,H100,8,any,od,33\r\n2026-02-11,a,civo,\"L40S\",1,eu,od,1.5\r\n2026-02-11,c,civo,L40S,1,eu,od,1.6\r\n\
                soon,c,civo,L40S,1,eu,od,1.7";
    let cut =
        history(&Mapping::parse(TRACKER).expect("it reads"), &page(body, "2026-11-30T00:00:00Z"), None, None).expect("it cuts");
    let at = |text: &str| text.parse::<DateTime<Utc>>().expect("a time");
    assert_eq!(
        cut.nights.iter().map(|night| night.at).collect::<Vec<_>>(),
        [at("2026-02-11T12:00:00Z"), at("2026-02-11T12:01:00Z"), at("2026-02-12T12:00:00Z")]
    );
    let first = String::from_utf8(cut.nights[0].body.clone().expect("a body")).expect("text");
    assert_eq!(
        first,
        "day,commit,seller,card,count,region,kind,usd\r\n2026-02-11,a,oracle,H100,8,any,od,32\r\n2026-02-11,a,civo,\"L40S\",1,eu,od,1.5\r\n"
    );
    assert_eq!(cut.nights[0].sellers.iter().collect::<Vec<_>>(), ["civo", "oci"]);
    assert_eq!(cut.undated, [(6, "soon".to_owned())]);
}

#[test]
fn a_seller_is_ours_only_where_the_mapping_says_so() {
    let mapping = Mapping::parse(TRACKER).expect("it reads");
    for (theirs, named) in [
        ("oracle", "oci"),
        ("vast.ai", "vast-ai"),
        ("Massed Compute", "massed-compute"),
        // Nobody has said that their Lambda is ours, and that their `oci` is Oracle.
        ("lambda", "lambda-tracker"),
        ("oci", "oci-tracker"),
        ("../..", "seller-0cfd1c96"),
    ] {
        assert_eq!(provider_of(&mapping, theirs), named);
    }
    let [a, b] = ["x".repeat(5_000), "x".repeat(5_001)].map(|long| provider_of(&mapping, &long));
    assert!(a != b && a.len() < 64, "{a}");
}

#[test]
fn a_row_is_read_as_its_mapping_says_and_by_the_thing_it_paid_for_on_that_day() {
    let body = "day,commit,seller,card,count,region,kind,usd\n2026-02-18,a,oracle,H100,8,any,od,32\n\
                2026-02-18,a,civo,L40S,1,eu,sp,1.5\n2026-02-18,a,oracle,H100,8,FR,rented,9\n2026-02-18,a,oracle,H100,8,FR,od,\n\
                2026-02-18,a,oracle,,0,FR,od,1\n2026-02-18,a,oracle,A10,0.167,FR,od,0.5\n";
    let parsed = read("oci", body, "2026-02-18T12:00:00Z");
    assert_eq!(parsed.offers.len(), 2);
    let whole = &parsed.offers[0];
    assert_eq!(
        (whole.price.per, whole.terms.pricing_model, whole.region.as_deref()),
        (PricePer::Instance, PricingModel::OnDemand, None)
    );
    assert_eq!((whole.offer_label.as_deref(), whole.place.at.as_str()), (Some("H100 8"), "line 2, usd"));
    assert!(parsed.offers[1].flags.contains("derived_share"), "0.167 of a card is no stated part of one");
    assert_eq!(parsed.skipped.len(), 1, "a way to buy that nobody knows is no on-demand price: {:?}", parsed.skipped);
    assert_eq!(parsed.out_of_scope.values().sum::<u32>(), 2, "a machine without a GPU, and a row without a price");
    assert_eq!(read("oci", body, "2026-02-19T12:00:00Z").offers[0].price.per, PricePer::Gpu);
    // A person counts lines whatever their ends are, and counts those that are empty.
    for (ends, lines) in [
        ("\n", ["line 2, usd", "line 7, usd"]),
        ("\r\n", ["line 2, usd", "line 7, usd"]),
        ("\n\n", ["line 3, usd", "line 13, usd"]),
    ] {
        let parsed = read("oci", &body.replace('\n', ends), "2026-02-18T12:00:00Z");
        assert_eq!(parsed.offers.iter().map(|offer| offer.place.at.as_str()).collect::<Vec<_>>(), lines, "{ends:?}");
    }
    assert_eq!(read("civo", body, "2026-02-18T12:00:00Z").offers[0].terms.pricing_model, PricingModel::Spot);
}

#[test]
fn what_a_mapping_leaves_open_is_refused_by_name() {
    for (from, to, why) in [
        ("currency = \"USD\"\n", "", "currency"),
        ("currency = \"USD\"", "currency = \"US$\"", "US$"),
        ("unit = \"hour\"\n", "", "unit"),
        ("per = \"instance\"\n", "", "per"),
        ("os = \"linux\"\n", "", "os"),
        ("oracle = \"oci\"", "oracle = \"orakel\"", "orakel"),
        ("count = \"count\"\n", "", "count_of_every_row"),
        ("name = \"tracker\"", "name = \"../tracker\"", "small letters"),
        ("pricing_model = {", "pricing_modell = {", "pricing_modell"),
    ] {
        let text = TRACKER.replacen(from, to, 1);
        assert_ne!(text, TRACKER, "{from}");
        let error = Mapping::parse(&text).expect_err(from);
        assert!(error.contains(why), "{from}: {error}");
    }
}

#[test]
fn a_file_without_the_column_or_the_time_that_is_needed_is_refused() {
    let mapping = Mapping::parse(TRACKER).expect("it reads");
    let refused = |body: &str| history(&mapping, &page(body, "2026-11-30T00:00:00Z"), None, None).expect_err(body).to_string();
    assert!(refused("day,commit,seller,card,count,region,kind\n2026-02-11,a,b\n").contains("`usd`"));
    assert!(refused("day,commit,seller,card,count,region,kind,usd\nsoon,a,b\n").contains("readable time"));
    let many: String = (0..1_001).map(|seller| format!("2026-02-11,a,seller {seller}\n")).collect();
    assert!(refused(&format!("day,commit,seller,card,count,region,kind,usd\n{many}")).contains("1000 sellers at most"));
    let skypilot = Mapping::parse(BUILT_IN[0].1).expect("it reads");
    let body = page(
        "InstanceType,AcceleratorName,AcceleratorCount,vCPUs,MemoryGiB,Price,SpotPrice,Region\na,H100\n",
        "2026-11-30T00:00:00Z",
    );
    let unsaid = |at, seller| history(&skypilot, &body, at, seller).expect_err("something is not said").to_string();
    assert!(unsaid(None, Some("verda")).contains("--at"));
    assert!(unsaid(Some(body.observed_at), None).contains("--provider"));
}
