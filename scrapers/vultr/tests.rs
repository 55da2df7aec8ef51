//! Checks against stored answers, and of what a card count means.

use std::path::Path;

use chrono::{DateTime, Utc};
use num_rational::Ratio;

use super::*;
use crate::contract::{GpuShare, SCOPE_ALL};

const PLANS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../shared/samples/vultr/gpuhunt_vm_instances.json");
const METAL: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../shared/samples/vultr/gpuhunt_bare_metal.json");

fn page(name: &str, url: &str, body: Vec<u8>) -> Page {
    Page {
        name: name.to_owned(),
        scope: SCOPE_ALL.to_owned(),
        url: url.to_owned(),
        observed_at: DateTime::<Utc>::UNIX_EPOCH,
        sha256: crate::sha256(&body),
        body,
    }
}

fn stored(path: &str) -> Option<Page> {
    if !Path::new(path).exists() {
        eprintln!("skipped: ../shared is not beside this checkout");
        return None;
    }
    Some(page("answer", path, std::fs::read(path).expect("the answer reads")))
}

/// The offers as lines: machine, region, how it is bought, price, cards, memory of one, flags.
fn lines(parsed: &Parsed) -> Vec<String> {
    let line = |offer: &PublishedOffer| {
        let (gpu, text) = (&offer.gpu, |value: &Option<String>| value.clone().expect("every offer has it"));
        let memory_gb = gpu.memory_gb.expect("every card has a memory");
        let flags = offer.flags.iter().copied().collect::<Vec<_>>().join(" ");
        let machine = format!("{} {} {}", text(&offer.instance_type), text(&offer.region), offer.terms.pricing_model);
        format!(
            "{machine} {}: {} {:?} {memory_gb} GB {} [{flags}]",
            offer.price.amount,
            gpu.count.expect("a count"),
            gpu.share,
            text(&gpu.label)
        )
    };
    parsed.offers.iter().map(line).collect()
}

#[test]
fn stored_plans_give_one_whole_card_and_two_shares_that_have_no_price_of_a_whole_card() {
    let Some(page) = stored(PLANS) else { return };
    let parsed = Vultr.parse(&[page]).expect("the answer parses");
    assert_eq!(
        lines(&parsed),
        [
            "vcg-a100-1c-6g-4vram ewr on_demand 0.123: 1/20 Derived 4 GB NVIDIA_A100 [derived_share ondemand_not_stated]",
            "vcg-a100-12c-120g-80vram ewr on_demand 2.397: 1 Whole 80 GB NVIDIA_A100 [ondemand_not_stated]",
            "vcg-a100-6c-60g-40vram ewr on_demand 1.397: 1/2 Derived 40 GB NVIDIA_A100 [derived_share ondemand_not_stated]",
        ]
    );
    assert!(parsed.skipped.is_empty() && parsed.unread_fields.is_empty(), "{parsed:?}");
    let whole = &parsed.offers[1];
    assert_eq!(whole.machine.vcpus, Some(Decimal::from(12)));
    assert_eq!(whole.machine.system_memory_gib, Some(Decimal::from(120)));
    assert_eq!(whole.machine.local_disk_gb, Some(Decimal::from(1400)));
    assert_eq!(whole.price.text, "2.397");
}

#[test]
fn stored_bare_metal_gives_eight_cards_on_demand_and_preemptible() {
    let Some(page) = stored(METAL) else { return };
    let parsed = Vultr.parse(&[page]).expect("the answer parses");
    assert_eq!(
        lines(&parsed),
        [
            "vbm-256c-2048gb-8-mi300x-gpu ord on_demand 17.52: 8 Whole 192 GB MI300X [ondemand_not_stated]",
            "vbm-256c-2048gb-8-mi300x-gpu ord spot 14.72: 8 Whole 192 GB MI300X []",
            "vbm-112c-2048gb-8-h100-gpu sea on_demand 23.92: 8 Whole 80 GB H100 [ondemand_not_stated]",
            "vbm-112c-2048gb-8-h100-gpu sea spot 18.4: 8 Whole 80 GB H100 []",
        ]
    );
    assert!(parsed.skipped.is_empty() && parsed.unread_fields.is_empty(), "{parsed:?}");
    let machine = &parsed.offers[0].machine;
    assert_eq!(machine.vcpus, Some(Decimal::from(256)));
    // 2321924 MiB.
    assert_eq!(machine.system_memory_gib, Decimal::from_str_exact("2267.50390625").ok());
    assert_eq!(machine.local_disk_gb, Some(Decimal::from(28_608)));
    assert_eq!(machine.is_bare_metal, Some(true));
}

/// Reads one plan with these fields beside the usual ones.
fn plan_with(id: &str, fields: &str) -> Parsed {
    let body = format!(
        r#"{{"plans":[{{"id":"{id}","vcpu_count":12,"ram":122880,"disk":1400,"disk_count":1,"type":"vcg","locations":["ewr"],"hourly_cost":1.5,"deploy_ondemand":true,"deploy_preemptible":false,{fields}}}]}}"#
    );
    Vultr.parse(&[page("plans", "plans.json", body.into_bytes())]).expect("the page parses")
}

fn count_of(parsed: &Parsed) -> (Ratio<u32>, GpuShare, Option<Decimal>) {
    let gpu = &parsed.offers.first().unwrap_or_else(|| panic!("no offer: {:?}", parsed.skipped)).gpu;
    (gpu.count.expect("a count"), gpu.share, gpu.memory_gb)
}

#[test]
fn a_stated_fraction_is_a_fixed_slice_with_the_memory_of_the_slice() {
    for count in [r#""1/8""#, r#""1/24""#] {
        let parsed = plan_with("vcg-a40-1c-5g-2vram", &format!(r#""gpu_type":"NVIDIA_A40","gpu_vram_gb":2,"gpu_count":{count}"#));
        let (count, share, memory_gb) = count_of(&parsed);
        assert!(count < Ratio::from(1) && share == GpuShare::FixedSlice && memory_gb == Some(Decimal::TWO), "{count}");
        assert!(parsed.offers[0].flags.is_empty());
    }
}

#[test]
fn memory_is_of_the_whole_plan_and_divided_by_the_count() {
    let b200 = r#""gpu_type":"NVIDIA_B200","gpu_vram_gb":1536,"gpu_count":8"#;
    assert_eq!(
        count_of(&plan_with("vcg-b200-248c-2826g-1536vram", b200)),
        (Ratio::from(8), GpuShare::Whole, Some(Decimal::from(192)))
    );
    let l40s = r#""gpu_type":"NVIDIA_L40S","gpu_vram_gb":384"#;
    assert_eq!(
        count_of(&plan_with("vcg-l40s-128c-1500g-384vram", l40s)),
        (Ratio::from(8), GpuShare::Whole, Some(Decimal::from(48)))
    );
    let a16 = r#""type":"vdm""#;
    assert_eq!(
        count_of(&plan_with("vcg-a16-96c-878g-256vram", a16)),
        (Ratio::from(16), GpuShare::Whole, Some(Decimal::from(16)))
    );
    let a100 = r#""gpu_type":"NVIDIA_A100","gpu_vram_gb":320"#;
    assert_eq!(
        count_of(&plan_with("vcg-a100-48c-480g-320vram", a100)),
        (Ratio::from(4), GpuShare::Whole, Some(Decimal::from(80)))
    );
}

#[test]
fn six_cards_that_follow_from_memory_alone_have_no_price_of_one_card() {
    let id = "vcg-mi325x-252c-2872g-1536vram";
    for fields in [r#""gpu_brand":"amd""#, r#""gpu_type":"AMD_MI325X","gpu_vram_gb":1536"#] {
        let parsed = plan_with(id, fields);
        assert_eq!(count_of(&parsed), (Ratio::from(6), GpuShare::Derived, Some(Decimal::from(256))), "{fields}");
        assert!(parsed.offers[0].flags.contains("derived_share"));
    }
    let stated = plan_with(id, r#""gpu_type":"AMD_MI325X","gpu_vram_gb":2048,"gpu_count":"8""#);
    assert_eq!(count_of(&stated), (Ratio::from(8), GpuShare::Whole, Some(Decimal::from(256))));
    assert_eq!(plan_with(id, r#""gpu_type":"AMD_MI325X","gpu_vram_gb":1536,"gpu_count":"8""#).skipped.len(), 1);
}

#[test]
fn counts_that_contradict_memory_or_the_table_are_skipped() {
    for (id, fields) in [
        ("vcg-a100-1c-6g-4vram", r#""gpu_type":"NVIDIA_A100","gpu_vram_gb":4,"gpu_count":1"#),
        ("vcg-a100-12c-120g-120vram", r#""gpu_type":"NVIDIA_A100","gpu_vram_gb":120"#),
        ("vcg-h100-216c-1914gb-640vram", r#""gpu_count":"4""#),
        ("vcg-h100-216c-1914gb-640vram", r#""gpu_vram_gb":320"#),
        ("vcg-a40-2c", r#""gpu_type":"NVIDIA_A40","gpu_vram_gb":72,"gpu_count":"3/2""#),
        ("vcg-a40-2c", r#""gpu_type":"NVIDIA_A40","gpu_vram_gb":24,"gpu_count":"0.5""#),
    ] {
        let parsed = plan_with(id, fields);
        assert!(parsed.offers.is_empty() && parsed.skipped.len() == 1, "{fields}: {parsed:?}");
    }
}

#[test]
fn an_empty_cursor_ends_and_any_other_leads_on() {
    let url = "https://api.vultr.com/v2/plans?type=all&per_page=500";
    let answer =
        |next: &str| format!(r#"{{"plans":[],"meta":{{"total":0,"links":{{"next":"{next}","prev":""}}}}}}"#).into_bytes();
    assert_eq!(Vultr.follow(&page("plans", url, answer(""))), Ok(Vec::new()));
    let second = Vultr.follow(&page("plans", url, answer("bmV4dA=="))).expect("the page leads on");
    assert_eq!(
        (second[0].name.as_str(), second[0].url.as_str()),
        ("plans-2", "https://api.vultr.com/v2/plans?type=all&per_page=500&cursor=bmV4dA%3D%3D")
    );
    let third = Vultr.follow(&page("plans-2", &second[0].url, answer("bmV4dDI="))).expect("the page leads on");
    assert_eq!(
        (third[0].name.as_str(), third[0].url.as_str()),
        ("plans-3", "https://api.vultr.com/v2/plans?type=all&per_page=500&cursor=bmV4dDI%3D")
    );
    assert!(Vultr.follow(&page("plans-2", &second[0].url, answer("bmV4dA=="))).is_err(), "a page that leads to itself");
}

#[test]
fn a_list_whose_last_page_is_missing_is_refused() {
    let row = r#"{"id":"vc2-1c-1gb","type":"vc2"}"#;
    let answer =
        |next: &str| format!(r#"{{"plans":[{row}],"meta":{{"total":2,"links":{{"next":"{next}","prev":""}}}}}}"#).into_bytes();
    let first = page("plans", "plans.json", answer("bmV4dA=="));
    assert!(matches!(Vultr.parse(std::slice::from_ref(&first)), Err(ScrapeError::PageMissing { .. })));
    let last = page("plans-2", "plans-2.json", answer(""));
    assert!(matches!(Vultr.parse(std::slice::from_ref(&last)), Err(ScrapeError::ShapeChanged { .. })));
    assert_eq!(Vultr.parse(&[first, last]).map(|parsed| parsed.out_of_scope["not a GPU machine"]), Ok(2));
}
