//! The traps that the source is known for, one test each, in the order in which they were written down.

use super::*;
use crate::contract::{GpuShare, Os, PriceUnit, Tenancy, UNKNOWN_HARDWARE, Upfront};
use crate::hardware::count;

fn dated() -> Vec<PublishedOffer> {
    offers("2026-09-02")
}

fn reasons(case: &str) -> Vec<&'static str> {
    let read = crate::read(&Aws, recording(case).pages);
    let skipped = read.into_values().flat_map(|parsed| parsed.expect("the scope reads").skipped);
    skipped.map(|row| row.reason.code()).collect()
}

fn left_out(case: &str, reason: &str) -> u32 {
    let read = crate::read(&Aws, recording(case).pages);
    read.into_values().filter_map(|parsed| parsed.expect("the scope reads").out_of_scope.get(reason).copied()).sum()
}

fn refused(case: &str) -> Vec<&'static str> {
    crate::read(&Aws, recording(case).pages).into_values().filter_map(|parsed| parsed.err().map(|error| error.code())).collect()
}

#[test]
fn trap_1_zero_rows_of_capacity_blocks_never_win() {
    assert!(dated().iter().all(|offer| !offer.price.amount.is_zero() || offer.price.upfront_amount.is_some()));
    assert_eq!(left_out("2026-09-02", "use of a Capacity Block"), 1);
    assert_eq!(reasons("zero-price"), ["price_zero"]);
    assert_eq!(reasons("unknown-market"), ["unknown_word"]);
}

#[test]
fn trap_2_capacity_reservations_are_no_offers() {
    assert_eq!(left_out("2026-09-02", "capacity reservation"), 2);
    assert_eq!(left_out("usage-of-a-reservation", "capacity reservation"), 1);
    for kind in ["UnusedBox:", "USW2-Reservation:", "DedicatedRes:", "EU-UnusedDed:"] {
        let page = changed_page("usage-of-a-reservation", "prices-us-east-1", |text| text.replace("UnusedBox:", kind));
        let parsed = Aws.parse(&[page]).expect("the list reads");
        assert_eq!((parsed.offers.len(), parsed.out_of_scope.get("capacity reservation")), (5, Some(&1)), "{kind}");
    }
}

#[test]
fn trap_3_windows_under_the_buyers_licence_is_not_windows() {
    let windows: Vec<_> = dated()
        .into_iter()
        .filter(|offer| offer.terms.os == Os::Windows && offer.terms.pricing_model == PricingModel::OnDemand)
        .map(|offer| offer.price.amount.to_string())
        .collect();
    assert_eq!(windows, ["0.71"]);
    assert_eq!(left_out("2026-09-02", "licence of the buyer"), 1);
}

#[test]
fn trap_4_reservations_keep_both_parts() {
    let reserved: Vec<_> = dated()
        .into_iter()
        .filter(|offer| offer.terms.upfront.is_some() && offer.terms.pricing_model == PricingModel::Reserved)
        .map(|offer| (offer.terms.upfront, offer.price.amount.to_string(), offer.price.upfront_amount.map(|fee| fee.to_string())))
        .collect();
    assert!(reserved.contains(&(Some(Upfront::None), "13.9211".to_owned(), None)));
    assert!(reserved.contains(&(Some(Upfront::Partial), "6.62911".to_owned(), Some("58071".to_owned()))));
    assert!(reserved.contains(&(Some(Upfront::All), "0".to_owned(), Some("113821".to_owned()))));
    assert_eq!(reasons("reservation-without-fee"), ["field_missing"]);
    // Of two rows that contradict each other neither is taken, and the reservation goes with them.
    for (part, from, to) in [
        ("\"Hrs\"", "6.6291100000", "1.0000000000"),
        ("\"Quantity\"", "\"58071\"", "\"5807\""),
        ("\"Quantity\"", "\"1yr\"", "\"3yr\""),
    ] {
        let page = changed_page("2026-09-02", "prices-us-east-1", |text| {
            let row =
                text.lines().find(|row| row.contains("HU7G6KETJZ") && row.contains(part)).expect("a row of the reservation");
            format!("{}\n{}\n", text.trim_end(), row.replace(from, to))
        });
        let parsed = Aws.parse(&[page]).expect("the list reads");
        let reasons: Vec<_> = parsed.skipped.iter().map(|row| row.reason.code()).collect();
        assert_eq!(reasons, ["contradiction", "contradiction"], "{to}");
        assert_eq!(parsed.offers.iter().filter(|offer| offer.price.upfront_amount.is_some()).count(), 2, "{to}");
    }
    // The two rows may come in any order.
    let turned = changed_page("2026-09-02", "prices-us-east-1", |text| {
        let (head, rows) = text.split_at(text.find("\n\"H7NGEAC6").expect("the first row") + 1);
        let mut rows: Vec<_> = rows.lines().rev().collect();
        rows.push("");
        format!("{head}{}", rows.join("\n"))
    });
    let count = |offers: &[PublishedOffer]| offers.iter().filter(|offer| offer.price.upfront_amount.is_some()).count();
    let parsed = Aws.parse(&[turned]).expect("the list reads");
    assert_eq!((count(&parsed.offers), parsed.skipped.len()), (3, 0));
}

#[test]
fn trap_5_families_are_whole_words() {
    let label = |instance_type: &str| machines::find(instance_type, machines::Stated::default()).map(|found| found.gpu.label);
    for (instance_type, card) in [
        ("p5.48xlarge", "H100 SXM"),
        ("p5e.48xlarge", "H200 SXM"),
        ("p5en.48xlarge", "H200 SXM"),
        ("g6.4xlarge", "L4"),
        ("g6e.4xlarge", "L40S"),
        ("g6f.4xlarge", "L4"),
        ("p3.16xlarge", "V100 SXM2 16GB"),
        ("p3dn.24xlarge", "V100 SXM2 32GB"),
        ("p4d.24xlarge", "A100 SXM 40GB"),
        ("p4de.24xlarge", "A100 SXM 80GB"),
    ] {
        assert_eq!(label(instance_type), Ok(Some(card.to_owned())));
    }
    assert_eq!(label("p5ex.48xlarge"), Ok(None));
    assert_eq!(left_out("2026-09-02", "dedicated host"), 2);
}

#[test]
fn trap_6_a_machine_without_an_on_demand_price_is_no_fault() {
    let offers = dated();
    assert_eq!(amounts(&offers, "u-p6e-gb200x72", PricingModel::OnDemand), Vec::<String>::new());
    assert_eq!(amounts(&offers, "u-p6e-gb200x72", PricingModel::CapacityBlock), ["761.904"]);
    assert_eq!(amounts(&offers, "trn2.48xlarge", PricingModel::CapacityBlock), ["35.7608"]);
}

#[test]
fn trap_7_a_price_that_falls_by_half_is_a_price() {
    let page = changed_page("2026-09-02", "prices-us-east-1", |text| text.replace("\"55.0400000000\"", "\"98.3200000000\""));
    let before = Aws.parse(&[page]).expect("the list reads");
    assert_eq!(amounts(&before.offers, "p5.48xlarge", PricingModel::OnDemand), ["98.32"]);
    assert!(before.skipped.is_empty());
}

#[test]
fn trap_8_and_9_regions_that_differ_in_the_sixth_decimal_are_two_prices() {
    let offers = dated();
    assert_eq!(amounts(&offers, "p4d.24xlarge", PricingModel::OnDemand), ["21.957642", "21.95764"]);
    let west = offers.iter().find(|offer| offer.price.text == "21.9576400000").expect("the price of us-west-2");
    assert_eq!(west.region.as_deref(), Some("us-west-2"));
    // The usage type may name any region: the region code decides.
    let page = changed_page("2026-09-02", "prices-us-west-2", |text| text.replace("USW2-", "APN1-"));
    let parsed = Aws.parse(&[page]).expect("the list reads");
    assert!(parsed.offers.iter().all(|offer| offer.region.as_deref() == Some("us-west-2")));
}

#[test]
fn trap_10_zones_keep_their_code_and_are_marked() {
    let offers = dated();
    let zones: BTreeSet<_> = offers
        .iter()
        .filter(|offer| offer.flags.contains(places::LOCAL_ZONE))
        .filter_map(|offer| offer.region.as_deref())
        .collect();
    assert_eq!(zones.into_iter().collect::<Vec<_>>(), ["us-east-1-atl-2a", "us-east-1-dfw-2a", "us-west-2-lax-1"]);
    let lists: Vec<_> =
        super::offers("rows-of-a-zone").into_iter().map(|offer| (offer.region, offer.flags.into_iter().collect())).collect();
    let entry = |region: &str, flags: &[&'static str]| (Some(region.to_owned()), flags.to_vec());
    let marked = entry("us-west-2-lax-1", &[places::LOCAL_ZONE]);
    assert_eq!(lists, [entry("us-west-2", &[]), entry("us-west-2", &[]), marked]);
    assert_eq!(Aws.scope(&recording("rows-of-a-zone").pages.remove(0)), Ok(Some("us-west-2".to_owned())));
    assert_eq!(refused("another-region"), ["shape_changed"]);
    let renamed = changed_page("2026-09-02", "prices-eu-west-1", |text| text.replace("EU (Ireland)", "Europe (Ireland)"));
    assert_eq!(Aws.parse(&[renamed]).map(|parsed| parsed.offers.len()), Ok(2));
    // A place without a code is no region, whatever its name.
    let nameless = changed_page("2026-09-02", "prices-eu-west-1", |text| text.replace("\"eu-west-1\"", "\"\""));
    let nameless = Aws.parse(&[nameless]).expect("the list reads");
    assert_eq!((nameless.offers.len(), nameless.skipped[0].reason.code()), (0, "field_missing"));
}

#[test]
fn trap_11_a_zone_that_has_no_list_yet_costs_no_other_scope() {
    let mut pages = recording("2026-09-02").pages;
    pages.retain(|page| page.name != "prices-us-west-2-lax-1");
    let read = crate::read(&Aws, pages);
    assert!(read.values().all(Result::is_ok) && !read.contains_key("us-west-2-lax-1"));
    let empty = crate::read(&Aws, recording("no-accelerated-machine").pages);
    assert!(matches!(empty.get("us-west-2-lax-1"), Some(Ok(parsed)) if parsed.offers.is_empty()));
}

#[test]
fn trap_12_and_13_memory_and_names_are_those_of_the_table() {
    let memory = |instance_type: &str| {
        let gpu = machines::find(instance_type, machines::Stated::default()).expect("a known machine").gpu;
        (gpu.label.unwrap_or_default(), gpu.memory_gb.map(|memory| memory.to_string()).unwrap_or_default())
    };
    for (instance_type, label, gb) in [
        ("g6.xlarge", "L4", "24"),
        ("g5.xlarge", "A10G", "24"),
        ("g6e.xlarge", "L40S", "48"),
        ("p6-b200.48xlarge", "B200", "180"),
        ("p6-b300.48xlarge", "B300", "288"),
        ("g7e.2xlarge", "RTX PRO 6000 Server", "96"),
        ("p5en.48xlarge", "H200 SXM", "141"),
        ("p4de.24xlarge", "A100 SXM 80GB", "80"),
    ] {
        assert_eq!(memory(instance_type), (label.to_owned(), gb.to_owned()), "{instance_type}");
    }
}

#[test]
fn trap_14_fractions_are_fixed_slices() {
    for (instance_type, share, gb) in
        [("g6f.large", "1/8", "3"), ("g6f.xlarge", "1/8", "3"), ("g6f.2xlarge", "1/4", "6"), ("g6f.4xlarge", "1/2", "12")]
    {
        let stated = machines::Stated { gpus: "0", ..machines::Stated::default() };
        let gpu = machines::find(instance_type, stated).expect("a known machine").gpu;
        assert_eq!((gpu.count, gpu.share), (count(share), GpuShare::FixedSlice), "{instance_type}");
        assert_eq!(gpu.memory_gb.map(|memory| memory.to_string()).as_deref(), Some(gb), "{instance_type}");
    }
}

#[test]
fn trap_15_the_gpu_column_is_believed_only_of_gpus() {
    assert_eq!(reasons("wrong-gpu-count"), ["contradiction"]);
    for instance_type in ["trn1.32xlarge", "inf2.48xlarge", "dl1.24xlarge", "dl2q.24xlarge"] {
        let stated = machines::Stated { gpus: "1", ..machines::Stated::default() };
        assert!(machines::find(instance_type, stated).is_ok_and(|found| found.gpu.label.is_some()), "{instance_type}");
    }
    // An UltraServer is several machines, and its rows may state the GPUs of one.
    let stated = machines::Stated { gpus: "4", ..machines::Stated::default() };
    assert!(machines::find("u-p6e-gb200x72", stated).is_ok_and(|found| found.gpu.count == count("72")));
    let unknown = offers("unknown-machine").into_iter().find(|offer| offer.flags.contains(UNKNOWN_HARDWARE));
    let unknown = unknown.expect("the machine nobody has read about");
    assert_eq!((unknown.gpu.label, unknown.gpu.count), (None, None));
    let machine = unknown.machine;
    let texts = [machine.vcpus, machine.system_memory_gib, machine.local_disk_gb].map(|value| value.map(|v| v.to_string()));
    assert_eq!(texts, ["256", "4096", "60800"].map(|text| Some(text.to_owned())));
}

#[test]
fn trap_16_the_spot_feed_has_old_names_and_no_prices_for_some() {
    for (name, code) in [
        ("us-east", "us-east-1"),
        ("us-west", "us-west-1"),
        ("us-west-2", "us-west-2"),
        ("eu-ireland", "eu-west-1"),
        ("apac-sin", "ap-southeast-1"),
        ("apac-syd", "ap-southeast-2"),
        ("apac-tokyo", "ap-northeast-1"),
        ("eu-north-1", "eu-north-1"),
    ] {
        assert_eq!(places::of_spot(name), code);
    }
    assert_eq!(left_out("2026-09-02", "no spot price in the region"), 6);
    assert_eq!(reasons("spot-zero"), ["price_zero"]);
    assert_eq!(refused("spot-per-day"), ["shape_changed"]);
    let spot: Vec<_> = dated().into_iter().filter(|offer| offer.terms.pricing_model == PricingModel::Spot).collect();
    assert!(spot.len() == 8 && spot.iter().all(|offer| offer.flags.contains("cheapest_zone") && offer.zone.is_none()));
}

#[test]
fn trap_17_retired_machines_are_read_from_lists_of_their_time() {
    let offers = offers("list-of-2017");
    assert_eq!(amounts(&offers, "p2.xlarge", PricingModel::OnDemand), ["0.9", "1.084"]);
    assert!(offers.iter().all(|offer| offer.region.as_deref() == Some("us-east-1")));
    // Today the same list would be one whose columns were renamed.
    let page = changed_page("list-of-2017", "prices-us-east-1", |text| text.replace("2017-10-20T", "2026-09-01T"));
    assert_eq!(Aws.parse(&[page]).map_err(|error| error.code()).map(drop), Err("shape_changed"));
    assert_eq!(refused("renamed-field"), ["shape_changed"]);
}

#[test]
fn trap_18_savings_plans_are_read_by_usage_and_operation() {
    let plans: Vec<_> = dated()
        .into_iter()
        .filter(|offer| offer.terms.pricing_model == PricingModel::SavingsPlan)
        .map(|offer| (offer.terms.plan.unwrap_or_default(), offer.terms.tenancy, offer.price.amount.to_string()))
        .collect();
    let entry = |plan: &str, amount: &str| (plan.to_owned(), Some(Tenancy::Shared), amount.to_owned());
    let expected =
        [("compute", "16.0291"), ("compute", "10.1005"), ("instance", "13.9211"), ("instance", "9.0165"), ("instance", "0.5154")];
    assert_eq!(plans, expected.map(|(plan, amount)| entry(plan, amount)));
    assert_eq!(left_out("2026-09-02", "savings plan for a capacity reservation"), 1);
    assert_eq!(left_out("2026-09-02", "savings plan for another operation than running plain machines"), 1);
    let first = |from: &str, to: &str| {
        let page = changed_page("2026-09-02", "plans-us-east-1", |text| {
            let rows = text.lines().filter(|line| !line.contains(".H7NGEAC6") || line.starts_with("CSP1YR"));
            rows.map(|line| format!("{}\n", line.replacen(from, to, 1))).collect()
        });
        let parsed = Aws.parse(&[page]).expect("the list reads");
        let mut skipped = parsed.skipped.iter().map(|row| row.reason.code());
        let offer = parsed.offers.into_iter().find(|offer| offer.instance_type.as_deref() == Some("p4d.24xlarge"));
        (offer.map(|offer| (offer.terms.tenancy, offer.terms.os)), skipped.next(), parsed.out_of_scope)
    };
    let usage = ",BoxUsage:p4d.24xlarge,RunInstances,";
    for (to, tenancy, os) in [
        (",USE1-BoxUsage:p4d.24xlarge,RunInstances,", Tenancy::Shared, Os::Linux),
        (",USE1-DFW1-BoxUsage:p4d.24xlarge,RunInstances:0002,", Tenancy::Shared, Os::Windows),
        (",DedicatedUsage:p4d.24xlarge,RunInstances,", Tenancy::Dedicated, Os::Linux),
    ] {
        assert_eq!((first(usage, to).0, first(usage, to).1), (Some((Some(tenancy), os)), None), "{to}");
    }
    for (to, reason) in [
        (",HostBoxUsage:p4d.24xlarge,RunInstances,", "savings plan for a dedicated host"),
        (",DedicatedRes:p4d.24xlarge,RunInstances,", "savings plan for a capacity reservation"),
        (",Reservation:p4d.24xlarge,RunInstances,", "savings plan for a capacity reservation"),
        (",SomethingNew:p4d.24xlarge,RunInstances,", "savings plan for another usage"),
        (",BoxUsage:p4d.24xlarge,RunInstances:0800,", "savings plan for another operation than running plain machines"),
    ] {
        let (offer, skipped, out_of_scope) = first(usage, to);
        assert!(offer.is_none() && skipped.is_none() && out_of_scope.contains_key(reason), "{to}: {out_of_scope:?}");
    }
    assert_eq!(first(usage, ",BoxUsage:p5.48xlarge,RunInstances,").1, Some("contradiction"));
    assert_eq!(first(",us-east-1,p4d", ",eu-west-1,p4d").1, Some("contradiction"));
}

#[test]
fn savings_plans_that_change_their_form_cost_no_price_of_the_region() {
    let read = crate::read(&Aws, recording("plans-renamed-field").pages);
    let sizes: Vec<_> = read.iter().map(|(scope, read)| (scope.as_str(), read.as_ref().map(|read| read.offers.len()))).collect();
    assert!(matches!(sizes.as_slice(), [("us-east-1", Ok(5)), ("us-east-1@plans", Err(_))]), "{sizes:?}");
    assert_eq!(refused("plans-renamed-field"), ["shape_changed"]);
}

#[test]
fn savings_plans_announced_for_later_are_no_prices_yet() {
    let later = |text: &str| text.replace("2026-08-31T", "2026-12-31T");
    let parsed = Aws.parse(&[changed_page("2026-09-02", "plans-us-east-1", later)]).expect("the list reads");
    assert_eq!((parsed.offers.len(), parsed.out_of_scope.get("price announced for later")), (0, Some(&5)));
    // Beside the price that holds, the later one contradicts nothing.
    let both = changed_page("2026-09-02", "plans-us-east-1", |text| {
        let row = text.lines().find(|line| line.starts_with("CSP1YR")).expect("the first rate");
        format!("{text}{}\n", later(row).replace("16.0291", "15.5"))
    });
    let parsed = Aws.parse(&[both]).expect("the list reads");
    assert_eq!((parsed.offers.len(), parsed.skipped.len()), (5, 0));
    assert_eq!(amounts(&parsed.offers, "p4d.24xlarge", PricingModel::SavingsPlan)[0], "16.0291");
}

#[test]
fn trap_19_capacity_blocks_are_priced_by_the_machine() {
    for offer in dated().iter().filter(|offer| offer.terms.pricing_model == PricingModel::CapacityBlock) {
        assert_eq!((offer.price.unit, offer.terms.os), (PriceUnit::Hour, Os::Linux));
    }
    assert_eq!(reasons("blocks-rate-of-one-accelerator"), ["field_missing"]);
    assert_eq!(reasons("blocks-that-do-not-add-up"), ["contradiction"]);
    assert_eq!(reasons("blocks-unknown-region"), ["unknown_word"]);
    assert_eq!(refused("blocks-renamed-heading"), ["shape_changed"]);
    assert_eq!(amounts(&offers("blocks-as-markup"), "p5.48xlarge", PricingModel::CapacityBlock), ["39.33", "39.33"]);
}

#[test]
fn trap_20_china_is_a_site_of_its_own_in_its_own_currency() {
    let china: Vec<_> = dated().into_iter().filter(|offer| offer.site == Some(Site::Cn)).collect();
    assert_eq!(china.len(), 1);
    assert_eq!((china[0].price.currency_code.as_str(), china[0].price.tax_included), ("CNY", None));
}

#[test]
fn disks_have_a_figure_only_where_the_text_has_whole_gigabytes() {
    for (storage, gb) in [("8 x 1.9 NVMe SSD", None), ("8 x 3800 NVMe SSD", Some("30400")), ("8 x 1000 SSD", Some("8000"))] {
        let stated = machines::Stated { storage, ..machines::Stated::default() };
        let disk = machines::find("p9.48xlarge", stated).expect("an unknown machine").machine.local_disk_gb;
        assert_eq!(disk.map(|disk| disk.to_string()).as_deref(), gb, "{storage}");
    }
}

#[test]
fn prices_other_than_on_demand_that_contradict_each_other_are_both_left() {
    let page = changed_page("2026-09-02", "plans-us-east-1", |text| {
        let row = text.lines().find(|line| line.starts_with("CSP1YRNOUPFRONT1")).expect("the first rate");
        format!("{text}{}\n", row.replace("16.0291", "12.0000"))
    });
    let parsed = Aws.parse(&[page]).expect("the plans read");
    assert_eq!(parsed.skipped.iter().map(|row| row.reason.code()).collect::<Vec<_>>(), ["contradiction", "contradiction"]);
    assert!(parsed.offers.iter().all(|offer| !["16.0291", "12"].contains(&offer.price.amount.to_string().as_str())));
}
