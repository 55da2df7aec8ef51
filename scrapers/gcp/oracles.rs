//! Google Cloud held against machine prices that others computed from the catalog, their hardware tables, and a capture.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::Read as _;
use std::path::Path;

use crate::contract::{Page, PricingModel, PublishedOffer, SCOPE_ALL};
use flate2::read::GzDecoder;
use rust_decimal::Decimal;

use crate::oracles::{Comparison, Oracle, shared};

const CATALOG: &str = "data/catalogs/gcp_gcosts_pricing_2026-07-30.yml.gz";
const HISTORY: &str = "data/history/gcp-gcosts";
const KARPENTER: &str = "data/history/gcp-karpenter";
const SKU_PRICES: &str = "samples/gcp/billing_catalog_gpu_sku_prices_sooddvs_2026-06-15.csv";
const CAPTURE: &str = "data/samples/gcp/gcp_compute_skus_2023-03-24.json";
const HARDWARE: &str = "data/catalogs/sparecores_gpu_servers_2026-01-31.json.gz";

const SHARE_OF_A_CARD: &str = "that source takes a share of the whole card's rates; in the catalog the share is a SKU of its own, and \
                               Google's page prints 0.64688 for g4-standard-6 in Iowa where that source has 0.55955625";

/// Machine prices by region and machine.
type Prices = BTreeMap<(String, String), BTreeMap<&'static str, Decimal>>;

inventory::submit!(Oracle(compare));

fn compare() -> Vec<Option<Comparison>> {
    vec![catalog(), history(), karpenter(), sku_prices(), capture(), hardware()]
}

fn offers(skus: &[String], day: &str) -> Vec<PublishedOffer> {
    let page = Page {
        name: "skus-0001".to_owned(),
        scope: SCOPE_ALL.to_owned(),
        url: "skus-0001.json".to_owned(),
        observed_at: format!("{day}T12:00:00Z").parse().expect("a day"),
        sha256: String::new(),
        body: format!(r#"{{"skus": [{}], "nextPageToken": ""}}"#, skus.join(",")).into_bytes(),
    };
    crate::find("gcp").expect("gcp is registered").parse(&[page]).expect("the list reads").offers
}

fn sku(number: usize, description: &str, group: &str, usage: &str, region: &str, amount: Decimal) -> String {
    let unit = match group {
        "RAM" => "GiBy.h",
        "LocalSSD" => "GiBy.mo",
        _ => "h",
    };
    let nanos = (amount * Decimal::from(1_000_000_000)).round().mantissa();
    let (units, nanos) = (nanos / 1_000_000_000, nanos % 1_000_000_000);
    format!(
        r#"{{"name":"services/6F81-5844-456A/skus/{number:08}","skuId":"{number:08}","description":"{description}","category":{{
        "serviceDisplayName":"Compute Engine","resourceFamily":"Compute","resourceGroup":"{group}","usageType":"{usage}"}},
        "serviceRegions":["{region}"],"pricingInfo":[{{"pricingExpression":{{"usageUnit":"{unit}","tieredRates":[{{"startUsageAmount":0,
        "unitPrice":{{"currencyCode":"USD","units":"{units}","nanos":{nanos}}}}}]}},"effectiveTime":"2022-01-01T00:00:00Z"}}]}}"#
    )
}

/// The description of a series' part.
type Named = fn(&str, &str) -> String;

/// A plan in that source's words and in the catalog's, for a GPU and for the other parts.
struct Way {
    column: &'static str,
    model: PricingModel,
    months: Option<u32>,
    usage: &'static str,
    gpu: fn(&str) -> String,
    part: Named,
    disk: &'static str,
}

const WAYS: [Way; 4] = [
    Way {
        column: "hour",
        model: PricingModel::OnDemand,
        months: None,
        usage: "OnDemand",
        gpu: |gpu| format!("{gpu} running in X"),
        part: |series, part| format!("{series} Instance {part} running in X"),
        disk: "SSD backed Local Storage in X",
    },
    Way {
        column: "hour_spot",
        model: PricingModel::Spot,
        months: None,
        usage: "Preemptible",
        gpu: |gpu| format!("{gpu} attached to Spot Preemptible VMs running in X"),
        part: |series, part| format!("Spot Preemptible {series} Instance {part} running in X"),
        disk: "SSD backed Local Storage attached to Spot Preemptible VMs in X",
    },
    Way {
        column: "month_1y",
        model: PricingModel::Reserved,
        months: Some(12),
        usage: "Commit1Yr",
        gpu: |gpu| format!("Commitment v1: {gpu} in X for 1 Year"),
        part: |series, part| format!("Commitment v1: {series} {part} in X for 1 Year"),
        disk: "Commitment v1: Local SSD in X for 1 Year",
    },
    Way {
        column: "month_3y",
        model: PricingModel::Reserved,
        months: Some(36),
        usage: "Commit3Yr",
        gpu: |gpu| format!("Commitment v1: {gpu} in X for 3 Years"),
        part: |series, part| format!("Commitment v1: {series} {part} in X for 3 Years"),
        disk: "Commitment v1: Local SSD in X for 3 Years",
    },
];

/// Rates of parts that follow from the smallest machines of each family, so that the price of every other machine is our
/// sum against theirs. `fitted` are the machines the rates were taken from.
fn parts_of(prices: &Prices, region: &str, way: &Way, disk: Option<Decimal>) -> (Vec<String>, Vec<&'static str>) {
    let hours = if way.column.starts_with("month") { Decimal::from(730) } else { Decimal::ONE };
    let of = |machine: &str| {
        prices.get(&(region.to_owned(), machine.to_owned())).and_then(|row| row.get(way.column)).map(|price| *price / hours)
    };
    let (mut skus, mut fitted) = (Vec::new(), Vec::new());
    let mut add = |description: String, group: &str, amount: Decimal| {
        let number = skus.len();
        skus.push(sku(number, &description, group, way.usage, region, amount));
    };
    let number = Decimal::from;
    let disk_hour = disk.unwrap_or_default() / number(730);
    if let Some(disk) = disk {
        add(way.disk.to_owned(), "LocalSSD", disk);
    }
    // A2: 16 of the small machine have 96 cores more than the one with 16 cards. Any split of what is left is as good.
    if let (Some(one), Some(mega)) = (of("a2-highgpu-1g"), of("a2-megagpu-16g")) {
        let core = (number(16) * one - mega) / number(96);
        let ram = (core / number(7)).round_dp(9);
        let core = core.round_dp(9);
        add((way.part)("A2", "Core"), "CPU", core);
        add((way.part)("A2", "Ram"), "RAM", ram);
        add((way.gpu)("Nvidia Tesla A100 GPU"), "GPU", one - number(12) * core - number(85) * ram);
        fitted.extend(["a2-highgpu-1g", "a2-megagpu-16g"]);
        if let (Some(one), Some(_)) = (of("a2-ultragpu-1g"), disk) {
            let gpu = one - number(12) * core - number(170) * ram - number(375) * disk_hour;
            add((way.gpu)("Nvidia Tesla A100 80GB GPU"), "GPU", gpu);
            fitted.push("a2-ultragpu-1g");
        }
    }
    if let (Some(one), Some(_)) = (of("a3-highgpu-1g"), disk) {
        let (core, ram) = (Decimal::new(1, 2), Decimal::new(1, 3));
        add((way.part)("A3", "Core"), "CPU", core);
        add((way.part)("A3", "Ram"), "RAM", ram);
        add((way.gpu)("Nvidia H100 80GB GPU"), "GPU", one - number(26) * core - number(234) * ram - number(750) * disk_hour);
        fitted.push("a3-highgpu-1g");
    }
    if let (Some(four), Some(eight)) = (of("g2-standard-4"), of("g2-standard-8")) {
        let ram = ((eight - four) / number(50)).round_dp(9);
        let core = ((eight - four) / number(4) - number(4) * ram).round_dp(9);
        add((way.part)("G2", "Core"), "CPU", core);
        add((way.part)("G2", "Ram"), "RAM", ram);
        add((way.gpu)("Nvidia L4 GPU"), "GPU", four - number(4) * core - number(16) * ram);
        fitted.extend(["g2-standard-4", "g2-standard-8"]);
    }
    if let Some(whole) = of("g4-standard-48") {
        let (core, ram) = (Decimal::new(1, 2), Decimal::new(1, 3));
        add((way.part)("G4", "Core"), "CPU", core);
        add((way.part)("G4", "Ram"), "RAM", ram);
        add((way.gpu)("RTX 6000 96GB"), "GPU", whole - number(48) * core - number(180) * ram);
        fitted.push("g4-standard-48");
    }
    (skus, fitted)
}

/// Compares every machine that the rates were not taken from.
fn compare_machines(
    comparison: &mut Comparison,
    prices: &Prices,
    disks: &BTreeMap<String, BTreeMap<String, Decimal>>,
    day: &str,
) {
    let mut regions: Vec<&String> = prices.keys().map(|(region, _)| region).collect();
    regions.dedup();
    for region in regions {
        for way in &WAYS {
            let disk_column = if way.column == "hour" { "month" } else { way.column };
            let disk_column = if disk_column == "hour_spot" { "month_spot" } else { disk_column };
            let disk = disks.get(region).and_then(|rates| rates.get(disk_column)).copied();
            let (skus, fitted) = parts_of(prices, region, way, disk);
            if skus.is_empty() {
                continue;
            }
            let ours: BTreeMap<String, Decimal> = offers(&skus, day)
                .into_iter()
                .filter(|offer| offer.terms.pricing_model == way.model && offer.terms.commitment_months == way.months)
                .filter_map(|offer| Some((offer.instance_type?, offer.price.amount)))
                .collect();
            let hours = if way.column.starts_with("month") { Decimal::from(730) } else { Decimal::ONE };
            let here = prices.range((region.clone(), String::new())..).take_while(|((of, _), _)| of == region);
            for ((_, machine), row) in here {
                let Some(theirs) = row.get(way.column).map(|price| *price / hours) else { continue };
                if fitted.contains(&machine.as_str()) {
                    continue;
                }
                let example = || format!("{machine} in {region}, {} on {day}", way.column);
                match ours.get(machine) {
                    Some(ours) if is_near(*ours, theirs) => comparison.agree(),
                    Some(ours) => comparison.differ("not the same sum", format!("{}: {ours} against {theirs}", example())),
                    None if ["g4-standard-6", "g4-standard-12", "g4-standard-24"].contains(&machine.as_str()) => {
                        comparison.differ(SHARE_OF_A_CARD, format!("{}: {theirs}", example()));
                    }
                    None => comparison.differ(
                        "the only size of its family, or its smaller size has no price there: no rates can be taken from another machine",
                        example(),
                    ),
                }
            }
        }
    }
}

/// The rates are kept to a billionth and multiplied by up to 2,952; their sums are floats of 15 digits.
fn is_near(ours: Decimal, theirs: Decimal) -> bool {
    (ours - theirs).abs() <= Decimal::new(2, 7)
}

fn decimal(text: &str) -> Option<Decimal> {
    Decimal::from_str_exact(text.trim()).ok()
}

fn unpacked(path: &Path) -> String {
    let mut text = String::new();
    GzDecoder::new(File::open(path).expect("the file opens")).read_to_string(&mut text).expect("it unpacks");
    text
}

/// Reads the machines of ours, and the rates of local disks, from the nested lists of the file.
fn read_catalog() -> (Prices, BTreeMap<String, BTreeMap<String, Decimal>>) {
    let (mut prices, mut disks) = (Prices::new(), BTreeMap::<String, BTreeMap<String, Decimal>>::new());
    let (mut section, mut name, mut region) = (String::new(), String::new(), String::new());
    for line in unpacked(&shared(CATALOG)).lines() {
        let depth = line.len() - line.trim_start().len();
        let (key, value) = line.trim().split_once(':').unwrap_or_default();
        match depth {
            0 | 2 => section = key.to_owned(),
            4 => name = key.to_owned(),
            8 => region = key.to_owned(),
            10 => {
                let Some(amount) = decimal(value) else { continue };
                if section == "storage" && name == "local" {
                    disks.entry(region.clone()).or_default().insert(key.to_owned(), amount);
                }
                let is_ours = section == "instance" && ["a2-", "a3-", "g2-", "g4-"].iter().any(|start| name.starts_with(start));
                let way = WAYS.iter().find(|way| way.column == key);
                if let Some(way) = way.filter(|_| is_ours) {
                    prices.entry((region.clone(), name.clone())).or_default().insert(way.column, amount);
                }
            }
            _ => {}
        }
    }
    (prices, disks)
}

fn catalog() -> Option<Comparison> {
    let what = "Every machine price of 2026-07-30 that our sum gives from rates taken from other machines of its family: on \
                demand, spot, 1 and 3 years, in every region. Disks are that file's own rates.";
    let mut comparison = Comparison::with("gcp", CATALOG, what)?;
    let (prices, disks) = read_catalog();
    compare_machines(&mut comparison, &prices, &disks, "2026-07-30");
    Some(comparison)
}

fn history() -> Option<Comparison> {
    let what = "The same for the last snapshot of every half-year since 2022, without machines that have disks, whose rates the \
                table does not have.";
    let mut comparison = Comparison::with("gcp", HISTORY, what)?;
    let text = unpacked(&shared(HISTORY).join("gcp_gpu_machine_prices.csv.gz"));
    let half = |day: &str| (day[..4].to_owned(), &day[5..7] > "06");
    let mut last: BTreeMap<_, &str> = BTreeMap::new();
    for line in text.lines().skip(1) {
        let day = &line[..10];
        let newest = last.entry(half(day)).or_insert(day);
        *newest = day.max(*newest);
    }
    let mut by_day: BTreeMap<&str, Prices> = BTreeMap::new();
    for line in text.lines().skip(1).filter(|line| last[&half(&line[..10])] == &line[..10]) {
        let cells: Vec<&str> = line.split(',').collect();
        let [day, _, machine, _, region, hour, spot, _, one, three, ..] = cells.as_slice() else { continue };
        if machine.starts_with("a3-") || machine.starts_with("a2-ultra") {
            continue;
        }
        let row = by_day.entry(day).or_default().entry(((*region).to_owned(), (*machine).to_owned())).or_default();
        for (column, text) in [("hour", hour), ("hour_spot", spot), ("month_1y", one), ("month_3y", three)] {
            if let Some(amount) = decimal(text).filter(|amount| !amount.is_zero()) {
                row.insert(column, amount);
            }
        }
    }
    for (day, prices) in by_day {
        compare_machines(&mut comparison, &prices, &BTreeMap::new(), day);
    }
    Some(comparison)
}

fn karpenter() -> Option<Comparison> {
    let what =
        "On-demand machine prices of 2026-07-23, computed by somebody else, against our sums from the rates of 2026-07-30.";
    let mut comparison = Comparison::with("gcp", KARPENTER, what)?;
    let text = unpacked(&shared(KARPENTER).join("2026-07-23_initial-prices.json.gz"));
    let file: serde_json::Value = serde_json::from_str(&text).expect("the file reads");
    let (prices, disks) = read_catalog();
    for (region, lists) in file["prices"].as_object().expect("regions") {
        let disk = disks.get(region).and_then(|rates| rates.get("month")).copied();
        let ours: BTreeMap<String, Decimal> = offers(&parts_of(&prices, region, &WAYS[0], disk).0, "2026-07-30")
            .into_iter()
            .filter_map(|offer| Some((offer.instance_type?, offer.price.amount)))
            .collect();
        for (machine, price) in lists["on_demand"].as_object().into_iter().flatten() {
            if !["a2-", "a3-", "g2-", "g4-"].iter().any(|start| machine.starts_with(start)) {
                continue;
            }
            let theirs = decimal(&price.to_string()).expect("a number");
            match ours.get(machine) {
                Some(ours) if is_near(*ours, theirs) => comparison.agree(),
                Some(ours) => comparison
                    .differ("the price changed within the week", format!("{machine} in {region}: {theirs}, then {ours}")),
                None if machine.starts_with("g4-") => {
                    comparison.differ(SHARE_OF_A_CARD, format!("{machine} in {region}: {theirs}"))
                }
                None => comparison.differ(
                    "the only size of its family: no rates can be taken from another machine",
                    format!("{machine} in {region}"),
                ),
            }
        }
    }
    Some(comparison)
}

fn sku_prices() -> Option<Comparison> {
    let what = "What each of 69 real descriptions is: the tier that project made of it against the terms of the machine that is \
                made with the SKU.";
    let mut comparison = Comparison::with("gcp", SKU_PRICES, what)?;
    let text = fs::read_to_string(shared(SKU_PRICES)).expect("the file reads");
    for line in text.lines().skip(1) {
        let cells: Vec<&str> = line.split(',').collect();
        let (tier, amount, region, description) = (cells[2], decimal(cells[3]).expect("a price"), cells[5], cells[7]);
        let usage = match tier {
            "spot" => "Preemptible",
            _ if description.contains("for 1 Year") => "Commit1Yr",
            _ if description.contains("for 3 Year") => "Commit3Yr",
            _ => "OnDemand",
        };
        let mut skus = vec![sku(0, description, "GPU", usage, region, amount)];
        let ways = WAYS.iter().map(|way| (way.part, way.disk, way.usage));
        let flex = |series: &str, part: &str| format!("DWS Defined Duration {series} {part} running in X");
        let calendar = |series: &str, part: &str| format!("DWS Calendar Mode {series} {part} in X");
        let dws: [(Named, &str, &str); 2] = [
            (flex, "DWS Defined Duration SSD backed Local Storage running in X", "OnDemand"),
            (calendar, "DWS Calendar Mode SSD backed Local Storage in X", "OnDemand"),
        ];
        for (part, disk, usage) in ways.chain(dws) {
            for series in ["A2", "A3", "A3Plus", "A3Ultra", "G2"] {
                for (word, group) in [("Core", "CPU"), ("Ram", "RAM")] {
                    skus.push(sku(skus.len(), &part(series, word), group, usage, region, Decimal::new(1, 2)));
                }
            }
            skus.push(sku(skus.len(), disk, "LocalSSD", usage, region, Decimal::new(8, 2)));
        }
        let offers = offers(&skus, "2026-06-15");
        let tiers: Vec<String> = offers.iter().map(ours_as_tier).collect();
        match tiers.first() {
            Some(first) if tiers.iter().all(|tier| tier == first) && first == tier => comparison.agree(),
            Some(first) if tier == "12mo" && first == "dws_flex_start" => comparison.differ(
                "that project takes flex-start for a commitment of a year; it is a queue and then up to seven days",
                description,
            ),
            Some(first) if tier == "36mo" && first == "dws_calendar" => comparison.differ(
                "that project takes calendar mode for a commitment of three years; it is days reserved in advance",
                description,
            ),
            _ => comparison.differ("not the same", format!("{description}: {tiers:?}")),
        }
    }
    Some(comparison)
}

fn ours_as_tier(offer: &PublishedOffer) -> String {
    let terms = &offer.terms;
    match (terms.pricing_model, terms.commitment_months) {
        (PricingModel::Reserved, Some(months)) => format!("{months}mo"),
        (PricingModel::CapacityBlock, None) => terms.plan.clone().unwrap_or_default(),
        (model, None) => model.to_string(),
        other => format!("{other:?}"),
    }
}

fn capture() -> Option<Comparison> {
    let what = "Machine prices from a real capture of seven SKUs of 2023-03-24 against those of the nearest day in data/history/gcp-gcosts.";
    let mut comparison = Comparison::with("gcp", CAPTURE, what)?;
    let page = Page {
        name: "capture".to_owned(),
        scope: SCOPE_ALL.to_owned(),
        url: "capture.json".to_owned(),
        observed_at: "2023-03-24T12:00:00Z".parse().expect("a literal time"),
        sha256: String::new(),
        // The token of the capture was blanked, so it stands as the last page.
        body: fs::read(shared(CAPTURE)).expect("the file reads"),
    };
    let offers = crate::find("gcp").expect("gcp is registered").parse(&[page]).expect("the capture reads").offers;
    let text = unpacked(&shared(HISTORY).join("gcp_gpu_machine_prices.csv.gz"));
    let day = text.lines().skip(1).map(|line| &line[..10]).filter(|day| *day <= "2023-03-24").max().expect("a day before");
    let of_day: Vec<Vec<&str>> =
        text.lines().filter(|line| line.starts_with(day)).map(|line| line.split(',').collect()).collect();
    for offer in offers {
        let (machine, region) = (offer.instance_type.as_deref().unwrap_or_default(), offer.region.as_deref().unwrap_or_default());
        let row = of_day.iter().find(|cells| cells[2] == machine && cells[4] == region);
        match row.and_then(|cells| decimal(cells[5])) {
            Some(theirs) if theirs == offer.price.amount => comparison.agree(),
            theirs => {
                comparison.differ("not the same", format!("{machine} in {region}: {} against {theirs:?}", offer.price.amount))
            }
        }
    }
    Some(comparison)
}

fn hardware() -> Option<Comparison> {
    let what = "GPUs, cores, memory and disks of the machines both know.";
    let mut comparison = Comparison::with("gcp", HARDWARE, what)?;
    let (prices, disks) = read_catalog();
    let mut ours: BTreeMap<String, PublishedOffer> = BTreeMap::new();
    let disk = disks.get("us-central1").and_then(|rates| rates.get("month")).copied();
    let (mut skus, _) = parts_of(&prices, "us-central1", &WAYS[0], disk);
    for (series, gpu) in
        [("A3Plus", "Nvidia H100 80GB Plus GPU"), ("A3Ultra", "H200 141GB GPU"), ("", "A4 Nvidia B200 (1 gpu slice)")]
    {
        for (description, group) in
            [((WAYS[0].gpu)(gpu), "GPU"), ((WAYS[0].part)(series, "Core"), "CPU"), ((WAYS[0].part)(series, "Ram"), "RAM")]
        {
            skus.push(sku(skus.len(), &description, group, "OnDemand", "us-central1", Decimal::ONE));
        }
    }
    for offer in offers(&skus, "2026-07-30") {
        ours.insert(offer.instance_type.clone().unwrap_or_default(), offer);
    }
    // No price is made for these, so their hardware is that of the table, which has no disks.
    let known = crate::find("gcp").expect("gcp is registered").machines();
    let servers: Vec<serde_json::Value> = serde_json::from_str(&unpacked(&shared(HARDWARE))).expect("the file reads");
    for server in servers.iter().filter(|server| server["vendor_id"] == "gcp") {
        let name = server["api_reference"].as_str().expect("a name");
        let offer = ours.get(name).map(|offer| (&offer.gpu, &offer.machine));
        let Some((gpu, machine)) =
            offer.or_else(|| known.iter().find(|known| known.instance_type == name).map(|known| (&known.gpu, &known.machine)))
        else {
            comparison.differ("TPUs are out of scope", name);
            continue;
        };
        let number = |field: &str| decimal(&server[field].to_string()).unwrap_or_default();
        let gib = Decimal::new(1_073_741_824, 9);
        let disk = machine.local_disk_gb.map_or(Decimal::ZERO, |disk| (disk / gib).round_dp(6));
        let facts = [
            ("vcpus", machine.vcpus.unwrap_or_default()),
            ("memory_amount", machine.system_memory_gib.unwrap_or_default() * Decimal::from(1024)),
            ("gpu_count", gpu.count.map_or(Decimal::ZERO, |count| Decimal::from(count.to_integer()))),
            ("storage_size", disk),
        ];
        for (field, value) in facts.into_iter().filter(|(field, _)| offer.is_some() || *field != "storage_size") {
            match (field, number(field)) {
                (_, theirs) if theirs == value => comparison.agree(),
                ("storage_size", theirs) if theirs.is_zero() && name == "a4-highgpu-8g" => comparison
                    .differ("that source lists no disks for a machine whose page says 12,000 GiB", format!("{name}: {value}")),
                (_, theirs) => comparison.differ("not the same", format!("{name}, {field}: {value} against {theirs}")),
            }
        }
    }
    Some(comparison)
}
