//! RunPod's stored list, read by our parser, held against six trackers. Our recordings are made up and cannot be.

use chrono::{DateTime, Utc};
use gpuledger_scrapers::contract::{Page, PublishedOffer, SCOPE_ALL};
use gpuledger_scrapers::{find, money, sha256};
use rust_decimal::Decimal;
use serde_json::Value;

use super::{Comparison, shared, trackers};

const LIST: &str = "samples/runpod/graphql_gputypes_2026.json";
const DAYS: &str = "data/history/lambda-runpod-daily/gpu_prices_2026-06-29_2026-08-22.csv.gz";
const TIERS: &str = "samples/_trackers/zeno_vast_runpod_daily.csv";
const DAYS_OF_IDS: &str = "data/history/hyperscaler-india-daily";
const IDS: &str = "samples/_trackers/sooddvs_gpu_pricing_raw_2026-06-15.csv";

/// Names of a card at the first tracker, at the second, and its id.
const CARDS: &[(&str, &str, &str)] = &[
    ("mi300x", "MI300X", "AMD Instinct MI300X OAM"),
    ("a100-pcie-80", "A100 PCIe", "NVIDIA A100 80GB PCIe"),
    ("a100-sxm-40", "-", "NVIDIA A100-SXM4-40GB"),
    ("a100-sxm-80", "A100 SXM", "NVIDIA A100-SXM4-80GB"),
    ("a40", "A40", "NVIDIA A40"),
    ("b200", "B200", "NVIDIA B200"),
    ("b300", "B300", "NVIDIA B300 SXM6 AC"),
    ("rtx-3090", "RTX 3090", "NVIDIA GeForce RTX 3090"),
    ("rtx-3090-ti", "-", "NVIDIA GeForce RTX 3090 Ti"),
    ("rtx-4090", "RTX 4090", "NVIDIA GeForce RTX 4090"),
    ("rtx-5080", "-", "NVIDIA GeForce RTX 5080"),
    ("rtx-5090", "RTX 5090", "NVIDIA GeForce RTX 5090"),
    ("h100-sxm", "H100 SXM", "NVIDIA H100 80GB HBM3"),
    ("h100-nvl", "H100 NVL", "NVIDIA H100 NVL"),
    ("h100-pcie", "H100 PCIe", "NVIDIA H100 PCIe"),
    ("h200", "H200", "NVIDIA H200"),
    ("h200-nvl", "-", "NVIDIA H200 NVL"),
    ("l4", "L4", "NVIDIA L4"),
    ("l40", "L40", "NVIDIA L40"),
    ("l40s", "L40S", "NVIDIA L40S"),
    ("rtx-6000-ada", "RTX 6000 Ada", "NVIDIA RTX 6000 Ada Generation"),
    ("rtx-a4000", "-", "NVIDIA RTX A4000"),
    ("rtx-a5000", "RTX A5000", "NVIDIA RTX A5000"),
    ("rtx-a6000", "RTX A6000", "NVIDIA RTX A6000"),
    ("rtx-pro-4500", "-", "NVIDIA RTX PRO 4500 Blackwell"),
    ("rtx-pro-6000-maxq", "-", "NVIDIA RTX PRO 6000 Blackwell Max-Q Workstation Edition"),
    ("rtx-pro-6000-server", "RTX Pro 6000", "NVIDIA RTX PRO 6000 Blackwell Server Edition"),
    ("rtx-pro-6000-wk", "-", "NVIDIA RTX PRO 6000 Blackwell Workstation Edition"),
    ("v100-pcie", "-", "Tesla V100-PCIE-16GB"),
    ("v100-sxm2", "-", "Tesla V100-SXM2-16GB"),
];

pub fn compare() -> Vec<Option<Comparison>> {
    vec![site(), days(), deployments(), tiers(), ids(), days_of_ids()]
}

/// What our parser reads in the stored list, once it is added that a cloud has a type whose amount is not 0, 0.5 or 1.
fn offers() -> Vec<PublishedOffer> {
    let text = std::fs::read_to_string(shared(LIST)).expect("the list reads");
    let mut list: Value = serde_json::from_str(&text).expect("the list is JSON");
    for row in list["data"]["gpuTypes"].as_array_mut().expect("a list of types") {
        for (is_there, price) in [("secureCloud", "securePrice"), ("communityCloud", "communityPrice")] {
            let is_market = !["0", "0.5", "1"].contains(&row[price].to_string().as_str());
            row[is_there] = is_market.into();
        }
    }
    let body = list.to_string().into_bytes();
    let page = Page {
        name: "gpu-types".to_owned(),
        scope: SCOPE_ALL.to_owned(),
        url: LIST.to_owned(),
        observed_at: DateTime::<Utc>::UNIX_EPOCH,
        sha256: sha256(&body),
        body,
    };
    find("runpod").expect("it is registered").parse(&[page]).expect("the list parses").offers
}

fn price(offers: &[PublishedOffer], id: &str, plan: &str) -> Option<Decimal> {
    let is_it = |offer: &&PublishedOffer| offer.offer_label.as_deref() == Some(id) && offer.terms.plan.as_deref() == Some(plan);
    offers.iter().find(is_it).map(|offer| offer.price.amount)
}

const PLACEHOLDER: &str = "0.5 or 1 stands where there is no market, and they take it for a price";
const ROSE: &str = "the price before a rise, and the stored list is of after it";
const FELL: &str = "the price before a fall, and the stored list is of after it";

/// Counts a price that is ours, that ours has risen from, or that is none.
fn hold(comparison: &mut Comparison, line: String, theirs: Decimal, ours: Option<Decimal>) {
    let is_placeholder = theirs == Decimal::ONE || theirs == Decimal::new(5, 1);
    match ours {
        Some(ours) if ours == theirs => comparison.agree(),
        Some(ours) if ours > theirs => comparison.differ(ROSE, line),
        None if is_placeholder => comparison.differ(PLACEHOLDER, line),
        _ => panic!("{line}: {theirs}, ours {ours:?}"),
    }
}

fn site() -> Option<Comparison> {
    let what = "Prices in either cloud of the stored list, after it is stated which cloud has which type, against a tracker's reading of the page on 2026-08-22.";
    let mut comparison = Comparison::with("runpod", trackers::NEWEST, what)?;
    let offers = offers();
    let text = std::fs::read_to_string(shared(trackers::NEWEST)).expect("the day reads");
    let day: Value = serde_json::from_str(&text).expect("the day is JSON");
    for theirs in day["offers"].as_array().expect("prices").iter().filter(|offer| offer["provider"] == "runpod") {
        let (gpu, kind) = (theirs["gpu"].as_str().expect("a card"), theirs["kind"].as_str().expect("a cloud"));
        let id = CARDS.iter().find(|(name, ..)| *name == gpu).unwrap_or_else(|| panic!("{gpu} is not in the table of names")).2;
        let usd = money::decimal(&theirs["usd_hr"].to_string()).expect("a price");
        hold(&mut comparison, format!("{gpu} {kind}"), usd, price(&offers, id, &format!("{kind}_cloud")));
    }
    Some(comparison)
}

fn days() -> Option<Comparison> {
    let what = "The same list against what another tracker read of the page on each of 54 days, which shows the secure cloud.";
    let mut comparison = Comparison::with("runpod", DAYS, what)?;
    let offers = offers();
    let text = trackers::inflated(&shared(DAYS));
    for row in
        csv::Reader::from_reader(text.as_bytes()).records().map(|row| row.expect("a row")).filter(|row| &row[1] == "Runpod")
    {
        let id = CARDS.iter().find(|(_, name, _)| *name == &row[7]).unwrap_or_else(|| panic!("{} is not known", &row[7])).2;
        let usd = money::decimal(&row[4]).expect("a price");
        hold(&mut comparison, format!("{} on {}", &row[7], &row[0][..10]), usd, price(&offers, id, "secure_cloud"));
    }
    Some(comparison)
}

fn tiers() -> Option<Comparison> {
    let what = "The same list against a tracker that makes one price of all cards of a family in either cloud: of the B200 there is one card, of the H200 two.";
    let mut comparison = Comparison::with("runpod", TIERS, what)?;
    let offers = offers();
    let text = std::fs::read_to_string(shared(TIERS)).expect("the days read");
    for row in
        csv::Reader::from_reader(text.as_bytes()).records().map(|row| row.expect("a row")).filter(|row| &row[1] == "runpod")
    {
        let (plan, usd) = (&row[3], money::decimal(&row[4]).expect("a price"));
        let line = format!("{} {plan} on {}", &row[2], &row[0]);
        match &row[2] {
            "B200" => hold(&mut comparison, line, usd, price(&offers, "NVIDIA B200", plan)),
            "H200" if plan == "community_cloud" => {
                let true_one = price(&offers, "NVIDIA H200", plan).expect("the community has the H200");
                assert_eq!(price(&offers, "NVIDIA H200 NVL", plan), None, "and not its NVL form");
                assert_eq!(usd, (true_one + Decimal::new(5, 1)) / Decimal::TWO, "{line}");
                comparison.differ("the mean of a price and of the 0.5 that stands for none", line);
            }
            _ => comparison.differ("a middle of several cards, of which some have risen since", line),
        }
    }
    Some(comparison)
}

fn deployments() -> Option<Comparison> {
    let what = "The same list against a comparison site, February to July 2026, which names the secure cloud and the community (calling it spot), or takes the cheaper of both for any number of GPUs.";
    let mut comparison = Comparison::with("runpod", trackers::DEPLOYING, what)?;
    let offers = offers();
    for row in trackers::OBSERVATIONS.iter().filter(|row| &row[1] == "runpod") {
        let (gpu, count, region, kind) = (&row[2], &row[3], &row[4], &row[5]);
        let id = match gpu {
            "A100_PCIE_80GB" => "NVIDIA A100 80GB PCIe",
            "A100_SXM_40GB" => "NVIDIA A100-SXM4-40GB",
            "A100_SXM_80GB" => "NVIDIA A100-SXM4-80GB",
            "B200" => "NVIDIA B200",
            "B300" => "NVIDIA B300 SXM6 AC",
            "H100_NVL" => "NVIDIA H100 NVL",
            "H100_PCIE" => "NVIDIA H100 PCIe",
            "H100_SXM" => "NVIDIA H100 80GB HBM3",
            "H200" => "NVIDIA H200",
            "L40" => "NVIDIA L40",
            "L40S" => "NVIDIA L40S",
            "MI300X" => "AMD Instinct MI300X OAM",
            "RTX_4090" => "NVIDIA GeForce RTX 4090",
            "RTX_5090" => "NVIDIA GeForce RTX 5090",
            "RTX_PRO_6000" => "NVIDIA RTX PRO 6000 Blackwell Server Edition",
            _ => panic!("{gpu} is not in the table of names"),
        };
        let [secure, community] = ["secure_cloud", "community_cloud"].map(|plan| price(&offers, id, plan));
        let theirs = money::decimal(&row[6]).expect("a price");
        let line = format!("{count} × {gpu} {region} {kind} on {}", &row[0]);
        let is_placeholder = theirs == Decimal::ONE || theirs == Decimal::new(5, 1);
        let ours = match (region, kind) {
            ("secure", "on_demand") => secure,
            ("community", "spot") | ("any", "spot") => community,
            ("global" | "any", "on_demand") if community.is_some() => community.min(secure.or(community)),
            ("global" | "any", "on_demand") => secure.filter(|_| !is_placeholder),
            ("global", "spot") => {
                comparison.differ("a spot price of its own, of which the stored list has none", line);
                continue;
            }
            _ => panic!("{line} is in no cloud"),
        };
        match ours {
            Some(ours) if ours < theirs => comparison.differ(FELL, line),
            Some(_) if is_placeholder => comparison.differ(PLACEHOLDER, line),
            _ => hold(&mut comparison, line, theirs, ours),
        }
    }
    Some(comparison)
}

fn ids() -> Option<Comparison> {
    let what = "The same list against a table of 2026-06-15 that keeps RunPod's own ids.";
    let mut comparison = Comparison::with("runpod", IDS, what)?;
    let text = std::fs::read_to_string(shared(IDS)).expect("the table reads");
    hold_ids(&mut comparison, &text);
    Some(comparison)
}

fn days_of_ids() -> Option<Comparison> {
    let what = "The same list against thirteen such tables of May and June 2026.";
    let mut comparison = Comparison::with("runpod", DAYS_OF_IDS, what)?;
    let files =
        std::fs::read_dir(shared(DAYS_OF_IDS)).expect("the folder reads").map(|entry| entry.expect("the entry reads").path());
    let mut files: Vec<_> = files.filter(|path| path.to_string_lossy().ends_with("_raw.csv.gz")).collect();
    files.sort();
    assert_eq!(files.len(), 13);
    for file in files {
        hold_ids(&mut comparison, &trackers::inflated(&file));
    }
    Some(comparison)
}

fn hold_ids(comparison: &mut Comparison, table: &str) {
    let offers = offers();
    for row in
        csv::Reader::from_reader(table.as_bytes()).records().map(|row| row.expect("a row")).filter(|row| &row[1] == "RunPod")
    {
        let (id, tier, usd) = (&row[7], &row[2], money::decimal(&row[3]).expect("a price"));
        let line = format!("{id} {tier}");
        match tier {
            "on_demand" => hold(comparison, line, usd, price(&offers, id, "secure_cloud")),
            // What they call spot is the community cloud on demand.
            "spot" => hold(comparison, line, usd, price(&offers, id, "community_cloud")),
            _ => comparison.differ("the stored list has no prices for a term", line),
        }
    }
}
