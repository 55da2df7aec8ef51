//! Each way in which this list is known to mislead, and what must come of it. Amounts are those of 2026, of East US and
//! West Europe.

use super::tests::{page, row};
use super::*;
use crate::contract::{GpuShare, Os, PricingModel, PublishedOffer, Site, UNKNOWN_HARDWARE};
use crate::recordings;

/// One row with some fields replaced: `("armSkuName", "\"Standard_NC6\"")`. A field that is not there is added.
fn changed(fields: &[(&str, &str)]) -> String {
    let mut text = row(1, "eastus", "0.526");
    for (name, value) in fields {
        let quoted = format!("\"{name}\": ");
        match text.find(&quoted) {
            Some(start) => {
                let end = start + text[start..].find([',', '}']).expect("a value ends");
                text.replace_range(start..end, &format!("{quoted}{value}"));
            }
            None => text = text.replacen('{', &format!("{{{quoted}{value}, "), 1),
        }
    }
    text
}

fn read_all(rows: &[String]) -> Result<Parsed, ScrapeError> {
    Azure.parse(&[page("p", SCOPE_ALL, "p.json", &format!(r#"{{"Items": [{}], "NextPageLink": null}}"#, rows.join(",")))])
}

fn read(fields: &[(&str, &str)]) -> Parsed {
    read_all(&[changed(fields), changed(&[("skuId", "\"other\"")])]).expect("the page reads")
}

fn offer(fields: &[(&str, &str)]) -> PublishedOffer {
    let parsed = read(fields);
    assert_eq!(parsed.offers.len(), 2, "{fields:?}: {parsed:?}");
    parsed.offers[0].clone()
}

fn machine(name: &str) -> PublishedOffer {
    offer(&[("armSkuName", &format!("\"{name}\""))])
}

/// What a row that is no offer is counted under.
fn left_out(fields: &[(&str, &str)]) -> &'static str {
    let parsed = read(fields);
    assert_eq!((parsed.offers.len(), parsed.out_of_scope.len()), (1, 1), "{fields:?}: {parsed:?}");
    parsed.out_of_scope.into_keys().next().expect("a reason")
}

fn dated() -> Vec<PublishedOffer> {
    let pages = recordings::newest("azure").expect("a dated recording").pages;
    crate::read(&Azure, pages).into_values().flat_map(|parsed| parsed.expect("the recording reads").offers).collect()
}

/// Trap 1.
#[test]
fn a_reservation_costs_its_term_though_its_unit_says_an_hour() {
    for (term, months) in [("1 Year", 12), ("3 Years", 36), ("5 Years", 60)] {
        let reserved = [("type", "\"Reservation\""), ("reservationTerm", &*format!("\"{term}\"")), ("retailPrice", "551221.0")];
        let offer = offer(&reserved);
        assert_eq!((offer.terms.pricing_model, offer.terms.commitment_months), (PricingModel::Reserved, Some(months)));
        assert_eq!((offer.price.unit, offer.price.text.as_str()), (crate::contract::PriceUnit::Term, "551221.0"));
    }
}

/// Trap 2.
#[test]
fn low_priority_is_not_spot_and_neither_is_on_demand() {
    let mut prices: Vec<_> = dated()
        .iter()
        .filter(|offer| offer.instance_type.as_deref() == Some("Standard_NC40ads_H100_v5") && offer.terms.os == Os::Linux)
        .map(|offer| (offer.terms.pricing_model, offer.price.amount.to_string()))
        .collect();
    prices.sort();
    let expected = [
        (PricingModel::OnDemand, "9.08"),
        (PricingModel::Spot, "5.23008"),
        (PricingModel::LowPriority, "1.816"),
        (PricingModel::SavingsPlan, "7.553652"),
    ];
    assert_eq!(prices, expected.map(|(model, amount)| (model, amount.to_owned())));
}

/// Trap 3.
#[test]
fn the_last_word_of_the_product_says_the_operating_system() {
    let names = [
        ("Virtual Machines NCasT4 v3 Series Windows", Os::Windows),
        ("Virtual Machines NCCadsv5 Srs Win", Os::Windows),
        ("Virtual Machines NDamsr A100 v4 Series Linux", Os::Linux),
        ("Virtual Machines NCCadsv5 Srs", Os::Linux),
        ("Virtual Machines Windows-like NC Series", Os::Linux),
        ("Virtual Machines NCdsxlRTX6kv6", Os::Linux),
    ];
    for (name, os) in names {
        assert_eq!(offer(&[("productName", &format!("\"{name}\""))]).terms.os, os, "{name}");
    }
}

/// Traps 4 and 12, and what else is not sold here.
#[test]
fn rows_that_are_no_list_price_of_a_machine_are_counted_with_their_reason() {
    let rows: [(&[(&str, &str)], &str); 7] = [
        (&[("type", "\"DevTestConsumption\"")], "dev/test licence"),
        (&[("armRegionName", "\"eastus2euap\"")], "canary region"),
        (&[("armRegionName", "\"centraluseuap\"")], "canary region"),
        (&[("productName", "\"NVSv3 Series Dedicated Host\"")], "dedicated host"),
        (&[("productName", "\"NCasT4 v3 Series Cloud Services\"")], "Cloud Services"),
        (&[("isPrimaryMeterRegion", "false")], "not the primary meter"),
        (&[("armSkuName", "\"Standard_NC6_Promo\"")], "promotion"),
    ];
    for (fields, reason) in rows {
        assert_eq!(left_out(fields), reason, "{fields:?}");
    }
    assert_eq!(read(&[("armRegionName", "\"\"")]).skipped[0].reason.code(), "field_unreadable");
    assert_eq!(offer(&[("armRegionName", "\"usgovvirginia\"")]).site, Some(Site::Gov));
}

/// Traps 5, 14, 15 and 17: the hardware is that of `armSkuName` and of the table, whatever meters and capabilities say.
#[test]
fn machines_have_the_cards_of_the_table() {
    let cards = [
        ("Standard_ND96asr_v4", "8", "A100 SXM 40GB", 40, "900"),
        ("Standard_ND96asr_A100_v4", "8", "A100 SXM 40GB", 40, "900"),
        ("Standard_ND96amsr_A100_v4", "8", "A100 SXM 80GB", 80, "1900"),
        ("Standard_ND96is_H100_v5", "8", "H100 SXM", 80, "1900"),
        ("Standard_ND96isr_H200_v5", "8", "H200 SXM", 141, "1850"),
        ("Standard_ND96isr_MI300X_v5", "8", "MI300X", 192, "1850"),
        ("Standard_ND128isr_NDR_GB200_v6", "4", "GB200", 192, "900"),
        ("Standard_ND128isrf_NDR_GB200_v6", "4", "GB200", 192, "900"),
        ("Standard_NC128lds_xl_RTXPRO6000BSE_v6", "1", "RTX PRO 6000 Server", 96, "256"),
        ("Standard_NV6ads_A10_v5", "1/6", "A10", 4, "55"),
        ("Standard_NV24ads_V710_v5", "1", "Radeon Pro V710", 24, "128"),
        ("Standard_NV24s_v2", "4", "M60", 8, "448"),
    ];
    for (name, count, label, memory_gb, system_memory_gib) in cards {
        let offer = machine(name);
        let number = |value: Option<rust_decimal::Decimal>| value.map(|value| value.to_string());
        let found = (offer.gpu.count.map(|count| count.to_string()), offer.gpu.label.as_deref(), number(offer.gpu.memory_gb));
        assert_eq!(found, (Some(count.to_owned()), Some(label), Some(memory_gb.to_string())), "{name}");
        assert_eq!(number(offer.machine.system_memory_gib).as_deref(), Some(system_memory_gib), "{name}");
        let share = if count.contains('/') { GpuShare::FixedSlice } else { GpuShare::Whole };
        assert_eq!(offer.gpu.share, share, "{name}");
    }
    // With InfiniBand and without are two machines.
    assert_ne!(machine("Standard_ND96isr_H100_v5").gpu, machine("Standard_ND96is_H100_v5").gpu);
    assert_eq!(machine("Standard_ND40s_v2").gpu.memory_gb, None);
}

/// Trap 5, and 13: machines that are not in the table.
#[test]
fn a_machine_that_is_not_in_the_table_is_published_without_its_cards() {
    for (name, vcpus) in
        [("Standard_NC8ads_A10_v4", "8"), ("Standard_NC24lds_xl_RTXPRO6000BSE_v6", "24"), ("Standard_NC99-33_B500_v9", "33")]
    {
        let offer = machine(name);
        assert_eq!((offer.gpu.label, offer.gpu.count), (None, None), "{name}");
        assert_eq!(offer.machine.vcpus.map(|vcpus| vcpus.to_string()).as_deref(), Some(vcpus), "{name}");
        assert_eq!(offer.flags.into_iter().collect::<Vec<_>>(), [UNKNOWN_HARDWARE], "{name}");
    }
    let unknown_family = read(&[("armSkuName", "\"Standard_NX8_v1\"")]);
    assert_eq!(unknown_family.skipped[0].reason.code(), "unknown_machine");
}

/// Traps 6 and 16.
#[test]
fn names_are_trimmed_and_those_of_other_accelerators_are_no_gpus() {
    let untidy = offer(&[("armSkuName", "\"Standard_NC6s_v3  \""), ("armRegionName", "\"WestUS3\"")]);
    assert_eq!((untidy.instance_type.as_deref(), untidy.region.as_deref()), (Some("Standard_NC6s_v3"), Some("westus3")));
    assert_eq!(left_out(&[("armSkuName", "\"Standard_NM16ads_MA35D  \"")]), "media accelerator (NM)");
    assert_eq!(left_out(&[("armSkuName", "\"Standard_NP10s\"")]), "FPGA machine (NP)");
    assert_eq!(left_out(&[("armSkuName", "\"Standard_D2s_v3\"")]), "not a GPU machine");
    assert_eq!(read(&[("armSkuName", "\"NDasrA100v4_Type1\"")]).skipped[0].reason.code(), "field_unreadable");
}

/// Trap 7.
#[test]
fn of_several_dates_the_latest_that_has_come_holds() {
    let from =
        |date: &str, price: &str| changed(&[("effectiveStartDate", &format!("\"{date}T00:00:00Z\"")), ("retailPrice", price)]);
    let rows = [from("2025-12-01", "3.10"), from("2026-02-01", "2.80"), from("2027-01-01", "2.50")];
    let parsed = read_all(&rows).expect("the page reads");
    assert_eq!(parsed.offers.iter().map(|offer| offer.price.text.as_str()).collect::<Vec<_>>(), ["2.80"]);
    assert_eq!(parsed.out_of_scope.into_iter().collect::<Vec<_>>(), [("price announced for later", 1), ("superseded price", 1)]);
}

/// Trap 8.
#[test]
fn a_zero_is_no_price_and_a_price_before_the_launch_is_one() {
    assert_eq!(read(&[("retailPrice", "0.0")]).skipped[0].reason.code(), "price_zero");
    let early = [("armSkuName", "\"Standard_ND128isr_NDR_GB200_v6\""), ("retailPrice", "108.16")];
    assert_eq!((offer(&early).price.amount.to_string(), offer(&early).terms.availability), ("108.16".to_owned(), None));
}

/// Trap 9: a region that lost every family is a failure. One that lost some is told by its number of rows, later.
#[test]
fn a_region_without_any_gpu_machine_is_no_empty_night() {
    let others = read_all(&[changed(&[("armSkuName", "\"Standard_NP10s\"")]), changed(&[("armSkuName", "\"Standard_D2s_v3\"")])]);
    assert_eq!(others.map(|parsed| parsed.offers.len()).map_err(|error| error.code()), Err("nothing_found"));
    assert!(MANIFEST.expect.is_some_and(|expect| expect.offers_min > 0));
}

/// Trap 10: rows that come twice while the list moves count once, and rows that differ count for nothing.
#[test]
fn repeated_rows_count_once() {
    let twice = read_all(&[changed(&[]), changed(&[])]).expect("the page reads");
    assert_eq!((twice.offers.len(), twice.out_of_scope.get("repeated row")), (1, Some(&1)));
    let unlike = read_all(&[changed(&[]), changed(&[("retailPrice", "0.6")])]).expect("the page reads");
    assert_eq!((unlike.offers.len(), unlike.skipped.len()), (0, 2));
}

/// Trap 18 and 11: a savings plan is where the row has one, and spot is as the list states it.
#[test]
fn savings_plans_are_never_made_up() {
    let plan = r#"[{"unitPrice": 0.4, "retailPrice": 0.4, "term": "1 Year"}]"#;
    let parsed = read(&[("savingsPlan", plan)]);
    let models: Vec<_> = parsed.offers.iter().map(|offer| (offer.terms.pricing_model, offer.price.text.as_str())).collect();
    let expected = [(PricingModel::OnDemand, "0.526"), (PricingModel::SavingsPlan, "0.4"), (PricingModel::OnDemand, "0.526")];
    assert_eq!(models, expected);
    let spot = offer(&[("skuName", "\"NC4as T4 v3 Spot\""), ("meterName", "\"NC4as T4 v3 Spot\""), ("retailPrice", "0.1")]);
    assert_eq!((spot.terms.pricing_model, spot.price.text.as_str()), (PricingModel::Spot, "0.1"));
}

/// Trap 19.
#[test]
fn only_the_list_in_dollars_is_a_list() {
    for code in ["EUR", "CNY"] {
        assert_eq!(read(&[("currencyCode", &format!("\"{code}\""))]).skipped[0].reason.code(), "unknown_word");
    }
    assert!(MANIFEST.pages.iter().all(|page| page.url.contains("currencyCode=%27USD%27")));
}

/// Trap 20.
#[test]
fn a_retired_machine_that_has_a_price_is_published_and_never_called_available() {
    let retired = machine("Standard_NC6");
    assert_eq!((retired.gpu.label.as_deref(), retired.terms.availability), (Some("K80"), None));
}

#[test]
fn the_number_in_a_name_is_that_of_the_virtual_cpus() {
    for name in rows::HARDWARE.types() {
        let (_, machine) = rows::HARDWARE.of(name).expect("it is in the table");
        let stated = machine.vcpus.map(|vcpus| vcpus.to_string());
        assert!(stated.is_none() || stated == rows::vcpus(name).map(|vcpus| vcpus.to_string()), "{name}");
    }
}

#[test]
fn no_two_offers_of_the_dated_case_are_the_same_thing() {
    let offers = dated();
    let mut keys: Vec<_> = offers
        .iter()
        .map(|offer| {
            let terms = &offer.terms;
            format!(
                "{:?}",
                (&offer.region, &offer.instance_type, terms.pricing_model, terms.commitment_months, terms.os, terms.is_promotion)
            )
        })
        .collect();
    keys.sort();
    keys.dedup();
    assert_eq!(keys.len(), offers.len());
}

#[test]
fn a_page_that_is_shorter_than_it_says_is_looked_at_again() {
    let url = "https://prices.azure.com/api/retail/prices?a=b";
    let rows = |skus: &[u32]| skus.iter().map(|sku| row(*sku, "eastus", "0.526")).collect::<Vec<_>>().join(",");
    let at = |name: &str, url: &str, skus: &[u32], count: usize, next: &str| {
        page(name, "eastus", url, &format!(r#"{{"Items": [{}], "NextPageLink": {next}, "Count": {count}}}"#, rows(skus)))
    };
    let next = r#""https://prices.azure.com:443/api/retail/prices?a=b&$skip=3""#;
    let again = "https://prices.azure.com:443/api/retail/prices?a=b";
    let last = at("retail-eastus-0002", "https://prices.azure.com/api/retail/prices?a=b&$skip=3", &[4], 1, "null");
    // Shorter than its link to the next page says, and shorter than its own count.
    for (count, code) in [(2, "shape_changed"), (3, "shape_changed")] {
        let short = at("retail-eastus-0001", url, &[1, 2], count, next);
        let requests = Azure.follow(&short).expect("the page reads");
        let asked: Vec<_> = requests.iter().map(|request| (request.name.as_str(), request.url.as_str())).collect();
        let following = ("retail-eastus-0002", "https://prices.azure.com/api/retail/prices?a=b&$skip=3");
        assert_eq!(asked, [("retail-eastus-0001-again", again), following]);
        let whole = at("retail-eastus-0001-again", again, &[1, 2, 3], 3, next);
        assert_eq!(Azure.follow(&whole), Ok(Vec::new()));
        for pages in [[short.clone(), last.clone(), whole.clone()], [whole, short.clone(), last.clone()]] {
            let parsed = Azure.parse(&pages).expect("the second look is whole");
            assert_eq!((parsed.offers.len(), parsed.out_of_scope.len()), (4, 0));
        }
        let still_short = at("retail-eastus-0001-again", again, &[1, 3], count, next);
        assert_eq!(Azure.parse(&[short, last.clone(), still_short]).map(drop).map_err(|error| error.code()), Err(code));
    }
    // One look at a page may be an excerpt, as far as its own count allows.
    let excerpt = at("p", url, &[1, 2], 2, next);
    assert_eq!(Azure.parse(&[excerpt, last.clone()]).map(|parsed| parsed.offers.len()), Ok(3));
    let cut = at("p", url, &[1, 2], 3, next);
    assert_eq!(Azure.parse(&[cut, last]).map(drop).map_err(|error| error.code()), Err("shape_changed"));
}

#[test]
fn a_price_holds_from_its_first_instant_in_whatever_zone_that_is_written() {
    // The page was read at two in the night of 20 August.
    let found = |from: &str| {
        let parsed = read(&[("effectiveStartDate", &format!("\"{from}\""))]);
        let first = parsed.offers.iter().find(|offer| offer.terms.valid_from.is_some());
        let valid_from = first.and_then(|offer| offer.terms.valid_from).map(|at| at.to_rfc3339());
        (valid_from, parsed.out_of_scope.contains_key("price announced for later"), parsed.skipped.len())
    };
    let holds = |at: &str| (Some(at.to_owned()), false, 0);
    assert_eq!(found("2026-08-20T02:00:00Z"), holds("2026-08-20T02:00:00+00:00"));
    assert_eq!(found("2026-08-20T10:00:00+08:00"), holds("2026-08-20T02:00:00+00:00"));
    assert_eq!(found("2026-01-05T00:30:00+08:00"), holds("2026-01-04T16:30:00+00:00"));
    for later in ["2026-08-20T02:00:01Z", "2026-08-20T01:30:00-01:00"] {
        assert_eq!(found(later), (None, true, 0), "{later}");
    }
    // No zone is a default: a time without one is not understood.
    for zoneless in ["2026-01-05 00:30", "2026-01-05T00:30:00", "2026-01-05"] {
        assert_eq!(found(zoneless), (None, false, 1), "{zoneless}");
    }
}
