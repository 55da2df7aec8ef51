//! The numbered traps of the source, one by one.

use std::collections::{BTreeMap, BTreeSet};

use super::super::words::{self, Card, Part, Plan};
use super::*;
use crate::recordings;

#[test]
fn trap_1_units_and_nanos_are_read_together() {
    let parsed = parse(&a2(&["us-central1"]));
    let amount = |machine| price(&parsed, machine, "us-central1", PricingModel::OnDemand).map(|offer| offer.price.amount);
    assert_eq!(amount("a2-highgpu-1g"), Some(dec("3.673385")));
    assert_eq!(amount("a2-highgpu-8g"), Some(dec("29.38708")));
    assert_eq!(amount("a2-megagpu-16g"), Some(dec("55.739504")));
    let whole =
        sku("A4 Nvidia B200 (1 gpu slice) running in Americas", "GPU", "OnDemand", &["us-central1"], "h", r#""units": "16""#);
    assert_eq!(parse(&[whole]).offers[0].price.amount, dec("128"));
}

#[test]
fn trap_2_the_two_a100_are_told_apart() {
    let read = |text: &str| words::read(text, "GPU", "OnDemand");
    assert_eq!(read("Nvidia Tesla A100 GPU running in Americas"), Ok((Part::Gpu(Card::A100), Plan::OnDemand)));
    assert_eq!(read("Nvidia Tesla A100 80GB GPU running in Americas"), Ok((Part::Gpu(Card::A100Of80), Plan::OnDemand)));
    let machines = machines::families().flat_map(|(family, shapes)| shapes.iter().map(move |shape| (family.card, shape)));
    for (card, shape) in machines.filter(|(card, _)| matches!(card, Card::A100 | Card::A100Of80)) {
        assert_eq!(shape.gpu.memory_gb, Some(Decimal::from(if card == Card::A100 { 40 } else { 80 })), "{}", shape.name);
    }
}

#[test]
fn trap_3_a_rate_by_the_month_is_divided_by_its_hours_and_only_disks_have_one() {
    let mut skus = a2(&["us-central1"]);
    skus[0] = sku(
        "Nvidia Tesla A100 80GB GPU running in Americas",
        "GPU",
        "OnDemand",
        &["us-central1"],
        "h",
        r#""units": "3", "nanos": 928080000"#,
    );
    let disk = |unit| sku("SSD backed Local Storage", "LocalSSD", "OnDemand", &["us-central1"], unit, r#""nanos": 80000000"#);
    let amount = |unit| {
        let parsed = parse(&[skus.as_slice(), &[disk(unit)]].concat());
        price(&parsed, "a2-ultragpu-1g", "us-central1", PricingModel::OnDemand).map(|offer| offer.price.amount)
    };
    assert_eq!(amount("GiBy.mo"), Some(dec("5.068797890411")));
    assert_eq!(amount("GiBy.h"), Some(dec("35.027702")));
    assert_eq!(amount("GiBy.d"), None);
    skus[0] = skus[0].replace(r#""usageUnit": "h""#, r#""usageUnit": "mo""#);
    let parsed = parse(&[skus.as_slice(), &[disk("GiBy.mo")]].concat());
    assert_eq!((parsed.offers.len(), parsed.skipped[0].reason.code()), (0, "unknown_word"));
}

/// What the words of a description mean, read by hand and by other means than the parser's.
fn expected_plan(description: &str) -> Plan {
    let has = |word: &str| description.contains(word);
    match (has("Calendar Mode"), has("DWS Defined Duration"), has("Spot"), has("for 1 Year"), has("for 3 Year")) {
        (true, false, false, false, false) => Plan::Calendar,
        (false, true, false, false, false) => Plan::FlexStart,
        (false, false, true, false, false) => Plan::Spot,
        (false, false, false, true, false) => Plan::OneYear,
        (false, false, false, false, true) => Plan::ThreeYears,
        (false, false, false, false, false) => Plan::OnDemand,
        _ => panic!("`{description}` says two things"),
    }
}

#[test]
fn trap_4_flex_start_and_calendar_mode_are_no_commitments_in_69_real_descriptions() {
    let Some(path) = shared("samples/gcp/billing_catalog_gpu_sku_prices_sooddvs_2026-06-15.csv") else { return };
    let mut rows = csv::Reader::from_path(path).expect("the file reads");
    let mut plans: BTreeMap<(Plan, String), usize> = BTreeMap::new();
    for row in rows.records() {
        let row = row.expect("a row");
        let (gpu, tier, description) = (&row[0], &row[2], &row[7]);
        let expected = expected_plan(description);
        let usage = match expected {
            Plan::OneYear => "Commit1Yr",
            Plan::ThreeYears => "Commit3Yr",
            Plan::Spot => "Preemptible",
            _ => "OnDemand",
        };
        let (part, plan) = words::read(description, "GPU", usage).unwrap_or_else(|error| panic!("{description}: {error}"));
        assert_eq!(plan, expected, "{description}");
        let card = match gpu {
            "A100" if description.contains("80GB") => vec![Card::A100Of80],
            "A100" => vec![Card::A100],
            "B200" => vec![Card::B200Slice],
            "H100 SXM" if description.contains("Plus") || description.contains("Mega") => vec![Card::H100Mega],
            "H100 SXM" => vec![Card::H100],
            "H200 SXM" => vec![Card::H200],
            "L4" => vec![Card::L4],
            other => panic!("a GPU `{other}`"),
        };
        assert!(card.iter().any(|card| part == Part::Gpu(*card)), "{description}: {part:?}");
        let terms = machines::terms(plan);
        let is_scheduled = matches!(plan, Plan::FlexStart | Plan::Calendar);
        assert_eq!(terms.pricing_model == PricingModel::CapacityBlock, is_scheduled, "{description}");
        assert_eq!(terms.commitment_months.is_some(), matches!(plan, Plan::OneYear | Plan::ThreeYears), "{description}");
        *plans.entry((plan, tier.to_owned())).or_default() += 1;
    }
    // The file's own column is wrong for the two that are no commitment, and right for all others.
    let tiers: BTreeSet<_> = plans.keys().map(|(plan, tier)| (*plan, tier.as_str())).collect();
    let expected = [
        (Plan::OnDemand, "on_demand"),
        (Plan::Spot, "spot"),
        (Plan::OneYear, "12mo"),
        (Plan::ThreeYears, "36mo"),
        (Plan::FlexStart, "12mo"),
        (Plan::Calendar, "36mo"),
    ];
    assert_eq!(tiers, BTreeSet::from(expected));
    assert_eq!(plans.values().sum::<usize>(), 69);
}

#[test]
fn trap_5_the_price_of_a_gpu_alone_is_never_a_machines() {
    for part in a2(&["us-central1"]) {
        assert!(parse(&[part]).offers.is_empty());
    }
    for offer in
        recordings::of("gcp").iter().filter(|case| case.is_dated()).flat_map(|case| Gcp.parse(&case.pages)).flat_map(|p| p.offers)
    {
        assert_eq!(offer.price.per, crate::contract::PricePer::Instance);
        let is_slice = offer.price.text.contains("slice");
        assert!(is_slice || offer.price.text.contains("vCPU ×") && offer.price.text.contains("GiB ×"), "{}", offer.price.text);
    }
}

#[test]
fn trap_6_a_regions_own_sku_goes_before_a_wider_one_and_two_of_its_own_contradict() {
    let core = |place: &str, regions: &[&str], nanos: u32| {
        sku(&format!("A2 Instance Core running in {place}"), "CPU", "OnDemand", regions, "h", &format!(r#""nanos": {nanos}"#))
    };
    let amount = |cores: &[String]| {
        let mut skus = a2(&["asia-northeast1"]);
        skus.remove(1);
        let parsed = parse(&[skus.as_slice(), cores].concat());
        let code = parsed.skipped.first().map(|row| row.reason.code());
        (price(&parsed, "a2-highgpu-1g", "asia-northeast1", PricingModel::OnDemand).map(|offer| offer.price.amount), code)
    };
    let (tokyo, japan) =
        (core("Tokyo", &["asia-northeast1"], 31_611_000), core("Japan", &["asia-northeast1", "asia-northeast2"], 40_000_000));
    assert_eq!(amount(&[japan, tokyo.clone()]), (Some(dec("3.673385")), None));
    assert_eq!(amount(&[tokyo.clone(), core("Japan", &["asia-northeast1"], 40_000_000)]), (None, Some("contradiction")));
    assert_eq!(amount(&[tokyo.clone(), core("Japan", &["asia-northeast1"], 31_611_000)]), (Some(dec("3.673385")), None));
}

#[test]
fn trap_7_a_machine_with_a_part_missing_has_no_price_and_the_part_is_named() {
    for (missing, name) in [(1, "core of A2"), (2, "RAM of A2")] {
        let mut skus = a2(&["us-central1", "us-east1"]);
        skus[missing] = skus[missing].replace(r#""us-central1", "us-east1""#, r#""us-east1""#);
        let parsed = parse(&skus);
        let regions: BTreeSet<_> = parsed.offers.iter().filter_map(|offer| offer.region.clone()).collect();
        assert_eq!(regions, BTreeSet::from(["us-east1".to_owned()]));
        assert_eq!(parsed.skipped.len(), 1);
        assert_eq!(parsed.skipped[0].reason, SkipReason::FieldMissing { field: name.to_owned() });
        assert!(parsed.skipped[0].label.contains("us-central1"), "{}", parsed.skipped[0].label);
    }
    let parsed = parse(&a2(&["us-central1"])[..1]);
    assert_eq!(parsed.skipped[0].reason, SkipReason::FieldMissing { field: "core of A2` and `RAM of A2".to_owned() });
}

#[test]
fn trap_8_a_list_price_of_what_is_not_sold_on_demand_is_marked() {
    let recording = recordings::newest("gcp").expect("a dated recording");
    for offer in Gcp.parse(&recording.pages).expect("it reads").offers {
        let machine = offer.instance_type.as_deref().unwrap_or_default();
        let not_sold =
            ["a3-highgpu-1g", "a3-highgpu-2g", "a3-highgpu-4g", "a3-ultragpu-8g", "a3-ultragpu-8g-nolssd", "a4-highgpu-8g"];
        let is_marked = offer.flags.contains(machines::ON_DEMAND_LISTED);
        assert_eq!(is_marked, not_sold.contains(&machine) && offer.terms.pricing_model == PricingModel::OnDemand, "{machine}");
        assert_eq!(offer.terms.availability, None);
    }
}

#[test]
fn trap_8_no_sum_is_made_for_a_machine_that_nobody_says_where_it_is_sold() {
    let recording = recordings::newest("gcp").expect("a dated recording");
    let parsed = Gcp.parse(&recording.pages).expect("it reads");
    let composed: BTreeSet<_> = parsed.offers.iter().filter_map(|offer| offer.instance_type.as_deref()).collect();
    for machine in ["a3-edgegpu-8g", "a3-edgegpu-8g-nolssd", "a3-ultragpu-8g-nolssd"] {
        assert!(!composed.contains(machine), "{machine}");
        assert!(machines::hardware(machine).is_some(), "{machine}");
    }
    assert!(["a3-highgpu-8g", "a3-ultragpu-8g"].iter().all(|machine| composed.contains(machine)));
}

#[test]
fn trap_9_a_card_that_nobody_knows_is_skipped_and_none_is_taken_for_it() {
    for description in [
        "A4X Nvidia GB200 (1 gpu slice) running in Americas",
        "Nvidia L40 GPU running in Americas",
        "Nvidia T4 GPU running in Iowa",
    ] {
        let parsed = parse(
            &[a2(&["us-central1"]).as_slice(), &[sku(description, "GPU", "OnDemand", &["us-central1"], "h", r#""units": "9""#)]]
                .concat(),
        );
        assert_eq!((parsed.skipped.len(), parsed.skipped[0].reason.code()), (1, "unknown_word"), "{description}");
    }
}

#[test]
fn trap_10_disks_that_are_part_of_a_machine_are_part_of_its_price_under_the_same_plan() {
    let disks: BTreeMap<_, _> = machines::families()
        .flat_map(|(_, shapes)| shapes)
        .filter(|shape| shape.priced_disk_gib > 0)
        .map(|shape| (shape.name.as_str(), shape.priced_disk_gib))
        .collect();
    let expected = [
        ("a2-ultragpu-1g", 375),
        ("a2-ultragpu-2g", 750),
        ("a2-ultragpu-4g", 1500),
        ("a2-ultragpu-8g", 3000),
        ("a3-highgpu-1g", 750),
        ("a3-highgpu-2g", 1500),
        ("a3-highgpu-4g", 3000),
        ("a3-highgpu-8g", 6000),
        ("a3-edgegpu-8g", 6000),
        ("a3-megagpu-8g", 6000),
        ("a3-ultragpu-8g", 12000),
    ];
    assert_eq!(disks, BTreeMap::from(expected));
    // A commitment needs the commitment for disks, and the plain price is no stand-in.
    let commit = |description: &str, group, unit, money| sku(description, group, "Commit1Yr", &["us-central1"], unit, money);
    let mut skus = vec![
        commit(
            "Commitment v1: Nvidia Tesla A100 80GB GPU running in Americas for 1 Year",
            "GPU",
            "h",
            r#""units": "3", "nanos": 481090000"#,
        ),
        commit("Commitment v1: A2 Cpu in Americas for 1 Year", "CPU", "h", r#""nanos": 19915000"#),
        commit("Commitment v1: A2 Ram in Americas for 1 Year", "RAM", "GiBy.h", r#""nanos": 2669000"#),
        sku("SSD backed Local Storage", "LocalSSD", "OnDemand", &["us-central1"], "GiBy.mo", r#""nanos": 80000000"#),
    ];
    assert!(parse(&skus).offers.is_empty());
    skus.push(commit("Commitment v1: Local SSD in Americas for 1 Year", "LocalSSD", "GiBy.mo", r#""nanos": 50400000"#));
    let parsed = parse(&skus);
    let offer = price(&parsed, "a2-ultragpu-1g", "us-central1", PricingModel::Reserved).expect("a price");
    assert_eq!((offer.price.amount, offer.terms.commitment_months), (dec("4.199690410959"), Some(12)));
}

#[test]
fn trap_11_other_machines_are_left_out_and_not_reported() {
    let other = |description: &str, group: &str| sku(description, group, "OnDemand", &["us-central1"], "h", r#""units": "1""#);
    let skus = [
        other("E2 Instance Core running in Americas", "CPU"),
        other("N2D AMD Instance Ram running in Americas", "RAM"),
        other("Custom Instance Core running in Americas", "CPU"),
        other("Compute optimized Core running in Americas", "CPU"),
        other("C4 Instance Local SSD running in Americas", "LocalSSD"),
        other("TpuV6e running in Columbus", "TPU"),
        other("Sole Tenancy Premium for A2 Sole Tenancy Instance Core running in Americas", "CPU"),
        other("G2 Custom Instance Core running in Americas", "CPU"),
        other("Nvidia L4 Virtual Workstation GPU running in Americas", "GPU"),
        other("Reserved A2 Ram in Netherlands", "RAM"),
        other("A4 Instance Core running in Americas", "CPU"),
    ];
    let parsed = parse(&[a2(&["us-central1"]).as_slice(), &skus].concat());
    assert!(parsed.skipped.is_empty(), "{:?}", parsed.skipped);
    assert_eq!(parsed.out_of_scope.values().sum::<u32>(), 11);
    // A machine of ours that is described in a new way is another matter.
    let parsed =
        parse(&[a2(&["us-central1"]).as_slice(), &[other("A3 Super Instance Core running in Americas", "CPU")]].concat());
    assert_eq!(parsed.skipped[0].reason.code(), "unknown_word");
}

#[test]
fn trap_12_the_last_price_that_holds_is_read_and_a_scale_of_rates_is_refused() {
    let tier = r#"{"startUsageAmount": 0, "unitPrice": {"currencyCode": "USD", "units": "1"}}"#;
    let info = |from: &str, units: u32| {
        format!(
            r#"{{"pricingExpression": {{"usageUnit": "h", "tieredRates": [{{"startUsageAmount": 0, "unitPrice":
            {{"currencyCode": "USD", "units": "{units}"}}}}]}}, "effectiveTime": "{from}"}}"#
        )
    };
    let slice =
        sku("A4 Nvidia B200 (1 gpu slice) running in Americas", "GPU", "OnDemand", &["us-central1"], "h", r#""units": "1""#);
    let at = slice.find("[{\"summary\"").expect("the list of prices");
    let with = |infos: &[String]| format!("{}[{}]}}", &slice[..at], infos.join(", "));
    let amount = |sku: String| parse(&[sku]).offers.first().map(|offer| offer.price.amount);
    let (old, new, announced) =
        (info("2026-01-01T00:00:00Z", 1), info("2026-07-01T00:00:00Z", 2), info("2026-09-01T00:00:00Z", 3));
    assert_eq!(amount(with(&[old.clone(), new.clone()])), Some(dec("16")));
    assert_eq!(amount(with(&[old, new, announced.clone()])), Some(dec("16")));
    assert_eq!(amount(with(&[announced])), None);
    // The price that holds is dated by the answer itself, which a clock that is behind must not take for the future.
    assert_eq!(amount(with(&[info("2026-07-30T06:13:18Z", 2)])), Some(dec("16")));
    assert_eq!(amount(slice.replace(tier, &format!("{tier}, {}", tier.replace(": 0", ": 100")))), None);
    assert_eq!(amount(slice.replace(r#""startUsageAmount": 0"#, r#""startUsageAmount": 100"#)), None);
    assert_eq!(amount(slice), Some(dec("8")));
}

#[test]
fn trap_12_a_price_of_tomorrow_is_announced_and_one_of_the_next_minutes_holds() {
    let mut skus = a2(&["us-central1"]);
    skus[0] = skus[0].replace(
        r#""pricingInfo": [{"#,
        r#""pricingInfo": [{"pricingExpression": {"usageUnit": "h", "tieredRates": [{"startUsageAmount": 0, "unitPrice":
        {"currencyCode": "USD", "units": "3"}}]}, "effectiveTime": "2026-07-01T00:00:00Z"}, {"#,
    );
    let text = |from: &str| {
        let parsed = parse(&[&[skus[0].replace("2026-07-30T06:12:44.101Z", from)], &skus[1..]].concat());
        price(&parsed, "a2-highgpu-1g", "us-central1", PricingModel::OnDemand)
            .map(|offer| (offer.price.amount, offer.price.text.clone()))
    };
    let (old, new) = ((dec("3.739477"), "1 GPU × 3"), (dec("3.673385"), "1 GPU × 2.933908"));
    for (from, (amount, gpu)) in [
        ("2026-07-31T06:00:00Z", old),
        ("2026-07-30T06:29:00Z", old),
        ("2026-07-30T06:28:00Z", new),
        ("2026-07-30T06:12:00Z", new),
    ] {
        let (found, words) = text(from).expect("a price");
        assert!(found == amount && words.ends_with(gpu), "{from}: {found}, {words}");
    }
}

#[test]
fn trap_13_no_discount_is_ever_applied() {
    let n1 = |part: &str, unit, money| {
        sku(
            &format!("N1 Predefined Instance {part} running in Americas"),
            "N1Standard",
            "OnDemand",
            &["us-central1"],
            unit,
            money,
        )
    };
    let parsed = parse(&[
        sku("Nvidia Tesla T4 GPU running in Americas", "GPU", "OnDemand", &["us-central1"], "h", r#""nanos": 350000000"#),
        n1("Core", "h", r#""nanos": 31611000"#),
        n1("Ram", "GiBy.h", r#""nanos": 4237000"#),
    ]);
    let offer = price(&parsed, "n1-standard-4+1xnvidia-tesla-t4", "us-central1", PricingModel::OnDemand).expect("a price");
    assert_eq!(offer.price.amount, dec("0.539999"));
    assert_eq!(offer.price.text, "4 vCPU × 0.031611 + 15 GiB × 0.004237 + 1 GPU × 0.35");
    assert_eq!(offer.place.at, "/skus/0");
    // Up to 48 cores with one or two cards, and any size with four.
    assert_eq!(parsed.offers.len(), 6 + 6 + 8);
}

#[test]
fn trap_13_commitments_of_n1_name_no_series() {
    let read = |text: &str, usage: &str| words::read(text, if text.contains("Ram") { "RAM" } else { "CPU" }, usage);
    assert_eq!(
        read("Commitment v1: Cpu in Americas for 1 Year", "Commit1Yr"),
        Ok((Part::Core(words::Series::N1), Plan::OneYear))
    );
    assert_eq!(
        read("Commitment v1: Ram in Americas for 3 Years", "Commit3Yr"),
        Ok((Part::Ram(words::Series::N1), Plan::ThreeYears))
    );
    assert!(matches!(read("Commitment v1: N2 Cpu in Americas for 1 Year", "Commit1Yr"), Err(SkipReason::OutOfScope(_))));
    assert!(read("Commitment v1: Cpu in Americas for 1 Year", "Commit3Yr").is_err());
}

#[test]
fn trap_14_links_and_networks_are_of_the_table_of_machines() {
    let slice =
        sku("A4 Nvidia B200 (1 gpu slice) running in Americas", "GPU", "OnDemand", &["us-central1"], "h", r#""units": "1""#);
    let network = sku("Network Interconnect NVLink Egress", "GPU", "OnDemand", &["us-central1"], "h", r#""units": "1""#);
    let parsed = parse(&[slice, network]);
    assert_eq!(parsed.offers[0].gpu.fabric_gbit_per_s, Some(3200));
    assert_eq!(parsed.skipped.len(), 1);
}

#[test]
fn trap_15_only_regions_have_machines() {
    let parsed = parse(&a2(&["us-central1", "global", "us", "nam4", "europe", "asia1"]));
    let regions: BTreeSet<_> = parsed.offers.iter().filter_map(|offer| offer.region.as_deref()).collect();
    assert_eq!(regions, BTreeSet::from(["us-central1"]));
    let everywhere = a2(&["global"]);
    let parsed = parse(&[a2(&["us-central1"]).as_slice(), &everywhere].concat());
    assert_eq!((parsed.offers.len(), parsed.out_of_scope.get("for no single region")), (5, Some(&3)));
    let body = format!(r#"{{"skus": [{}], "nextPageToken": ""}}"#, everywhere.join(", "));
    assert_eq!(Gcp.parse(&[page("p", BASE, body)]).map(drop).map_err(|error| error.code()), Err("nothing_found"));
}

#[test]
fn trap_16_a_page_is_read_by_its_headings_and_none_is_a_failure() {
    let refused = |body: &str| {
        let page = Page { scope: page::REGION.to_owned(), ..page("p", "p.html", body) };
        Gcp.parse(&[page]).map(|parsed| parsed.offers.len()).map_err(|error| error.code())
    };
    let body = |table: &str| format!("<html><p>Iowa (us-central1)</p>{table}</html>");
    let row = "<tr><td>g2-standard-4</td><td>$0.7 / 1 hour</td></tr>";
    let table = |headings: &str, row: &str| format!("<table><tr>{headings}</tr>{row}</table>");
    let headings = "<th>Machine type</th><th>Price (USD)</th>";
    assert_eq!(refused(&body(&table(headings, row))), Ok(1));
    assert_eq!(refused(&body(&table(&headings.replace("Machine type", "Name"), row))), Err("nothing_found"));
    assert_eq!(refused(&body(&table(&headings.replace("Price", "Cost"), row))), Err("shape_changed"));
    assert_eq!(refused(&body(&table(headings, ""))), Err("nothing_found"));
    assert_eq!(refused(&body("")), Err("nothing_found"));
    assert_eq!(refused("<html><title>Just a moment...</title></html>"), Err("nothing_found"));
}

#[test]
fn trap_17_only_dollars_are_read() {
    let mut skus = a2(&["us-central1"]);
    skus[0] = skus[0].replace("\"USD\"", "\"EUR\"");
    assert_eq!(parse(&skus).skipped[0].reason.code(), "unknown_word");
    skus[0] = a2(&["us-central1"])[0].replace(r#""currencyConversionRate": 1"#, r#""currencyConversionRate": 0.92"#);
    assert_eq!(parse(&skus).skipped[0].reason.code(), "contradiction");
}
