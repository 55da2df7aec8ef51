//! Real captures of one provider, published in the order of their dates, against the differences that another project
//! computed from the same captures.
//!
//! The other project joins on the provider's own ids (SKU, meter, type, term); here an offer is what is rented. Every
//! difference between the two readings is accounted for by a rule below, and none is left over. The captures lie beside
//! the checkout; without them the tests say so and pass.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::Read as _;
use std::path::{Path, PathBuf};

use clap::Parser as _;
use gpuledger::cli::{Cli, Verb};
use gpuledger::diff::{self, Diff};
use gpuledger::exit::Exit;
use gpuledger::frame::Cell;
use gpuledger::run;
use gpuledger::snapshot::read::{self, Snapshot};
use serde_json::{Value, json};

const REGIONS: [&str; 4] = ["eu-west", "francecentral", "northeurope", "swedencentral"];

fn shared() -> Option<PathBuf> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../shared/data/history/azure-radar");
    if !path.is_dir() {
        eprintln!("skipped: ../shared is not beside this checkout");
        return None;
    }
    Some(path)
}

fn unpacked(file: &Path) -> Value {
    let mut text = String::new();
    flate2::read::GzDecoder::new(fs::File::open(file).expect("the capture opens"))
        .read_to_string(&mut text)
        .expect("it inflates");
    serde_json::from_str(&text).expect("it is JSON")
}

/// Files of a folder for one region, oldest first, with their times as instants.
fn of_region(folder: &Path, region: &str) -> Vec<(String, PathBuf)> {
    let mut files = Vec::new();
    for entry in fs::read_dir(folder).expect("the folder can be read") {
        let path = entry.expect("an entry").path();
        let name = path.file_name().expect("a name").to_string_lossy().into_owned();
        if let Some(time) = name.strip_suffix(&format!("_vm-{region}.json.gz")) {
            files.push((format!("{}:{}:00Z", &time[..13], &time[13..]), path));
        }
    }
    files.sort();
    files
}

/// A capture as a page of the provider's answer. What the capture does not hold is filled in from what it does.
fn page(capture: &Value) -> Value {
    let rows = capture.as_object().expect("a capture is an object");
    let items: Vec<Value> = rows
        .iter()
        .map(|(key, row)| {
            let parts: Vec<&str> = key.split('|').collect();
            let sku_name = row["skuName"].as_str().expect("a name");
            let machine = [" Spot", " Low Priority", " Expired"].iter().fold(sku_name, |name, end| name.strip_suffix(end).unwrap_or(name));
            let machine = machine.trim().replace(' ', "_");
            let mut item = json!({
                "currencyCode": "USD", "tierMinimumUnits": 0.0, "retailPrice": row["retailPrice"], "unitPrice": row["unitPrice"],
                "armRegionName": row["armRegionName"], "meterId": parts[1], "meterName": row["meterName"],
                "productId": parts[0].split('/').next(), "skuId": parts[0], "productName": row["productName"], "skuName": sku_name,
                "serviceName": "Virtual Machines", "serviceFamily": "Compute", "unitOfMeasure": row["unitOfMeasure"], "type": parts[2],
                "isPrimaryMeterRegion": true,
                "armSkuName": if machine.starts_with("Standard_") { machine } else { format!("Standard_{machine}") },
            });
            if let Some(price) = row.get("savingsPlanPrice") {
                item["savingsPlan"] = json!([{ "unitPrice": price, "retailPrice": price, "term": "1 Year" }]);
            }
            item
        })
        .collect();
    let count = items.len();
    json!({ "BillingCurrency": "USD", "CustomerEntityId": "Default", "CustomerEntityType": "Retail", "Items": items, "NextPageLink": null, "Count": count })
}

struct Dataset {
    folder: tempfile::TempDir,
    runtime: tokio::runtime::Runtime,
}

impl Dataset {
    fn new() -> Self {
        let runtime = tokio::runtime::Runtime::new().expect("a runtime");
        Self { folder: tempfile::tempdir().expect("a temporary folder"), runtime }
    }

    fn output(&self) -> PathBuf {
        self.folder.path().join("out")
    }

    fn publish(&self, at: &str, pages: &[(&str, Vec<u8>)]) -> Exit {
        let from = self.folder.path().join("pages").join(at.replace(':', "-"));
        fs::create_dir_all(from.join("azure")).expect("the folder can be made");
        for (name, body) in pages {
            fs::write(from.join("azure").join(name), body).expect("the page can be written");
        }
        let (from, output) = (from.display().to_string(), self.output().display().to_string());
        let words = ["gpuledger", "collect", "--from", &from, "--output", &output, "--providers", "azure", "--at", at];
        let Verb::Collect(args) = Cli::try_parse_from(words).expect("the words are right").verb else {
            panic!("it is a collect")
        };
        self.runtime.block_on(run::collect(&args)).unwrap_or_else(|error| panic!("{at}: {error}")).exit
    }

    fn snapshots(&self) -> Vec<Snapshot> {
        self.runtime.block_on(read::snapshots(&self.output())).expect("the dataset reads")
    }

    fn diff(&self, snapshots: &[Snapshot], a: usize, b: usize) -> Vec<Line> {
        let diff =
            self.runtime.block_on(diff::diff(&self.output(), snapshots, &snapshots[a], &snapshots[b])).expect("they compare");
        lines(&diff)
    }
}

/// What is looked at in a line of a difference.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Line {
    list: String,
    is_unconfirmed: bool,
    offer_id: String,
    amount_a: String,
    amount_b: String,
    missing_in: String,
    model: String,
}

fn lines(diff: &Diff) -> Vec<Line> {
    let cell = |name: &str, row: usize| Cell::at(&diff.rows, name, row).expect("a cell").text();
    let line = |row: usize| Line {
        list: cell("list", row),
        is_unconfirmed: cell("is_unconfirmed", row) == "true",
        offer_id: cell("offer_id", row),
        amount_a: cell("amount_a", row),
        amount_b: cell("amount_b", row),
        missing_in: cell("missing_in", row),
        model: cell("pricing_model", row),
    };
    (0..diff.rows.height()).map(line).collect()
}

/// Ids of the provider → offers, of one snapshot: which rows of a capture are ours at all, and under which offer.
///
/// One offer can stand under several ids at one price; the snapshot keeps the first, so those of the others are found by
/// what they are.
fn offers_by_sku(snapshot: &Snapshot, runtime: &tokio::runtime::Runtime) -> BTreeMap<(String, String), String> {
    let _guard = runtime.enter();
    let rows = read::offers(snapshot).expect("it opens").collect().expect("it reads");
    let cell = |name: &str, row: usize| Cell::at(&rows, name, row).expect("a cell").text();
    (0..rows.height()).map(|row| ((cell("sku", row), cell("pricing_model", row)), cell("offer_id", row))).collect()
}

fn sku_of(key: &str) -> String {
    key.split('|').take(2).collect::<Vec<_>>().join("|")
}

#[test]
fn our_differences_of_real_captures_are_those_of_another_project() {
    let Some(history) = shared() else { return };
    let changed: usize = std::thread::scope(|threads| {
        let regions = REGIONS.map(|region| threads.spawn(|| compare_region(history.as_path(), region)));
        regions.map(|region| region.join().expect("the region's comparison holds")).iter().sum()
    });
    assert!(changed > 0, "no price changed in any region, so nothing was compared");
}

/// Publishes a region's captures in order and compares each step; returns how many price changes both see.
fn compare_region(history: &Path, region: &str) -> usize {
    let dataset = Dataset::new();
    let captures = of_region(&history.join("snapshots"), region);
    assert_eq!(captures.len(), 5, "{region}");
    for (at, file) in &captures {
        let body = serde_json::to_vec(&page(&unpacked(file))).expect("it is JSON");
        assert_eq!(dataset.publish(at, &[("page-0001.json", body)]), Exit::Good, "{region} {at}");
    }
    let snapshots = dataset.snapshots();
    // The first of the other's differences compares with nothing; the times of one pair differ by a minute.
    let theirs = of_region(&history.join("diffs"), region);
    assert_eq!(theirs.len(), captures.len());
    let step = |index: usize| {
        compare(&dataset, &snapshots, index, &unpacked(&theirs[index].1), &format!("{region} {}", theirs[index].0))
    };
    (1..captures.len()).map(step).sum()
}

/// Holds one difference of ours against the other's; returns how many price changes both see.
fn compare(dataset: &Dataset, snapshots: &[Snapshot], index: usize, theirs: &Value, name: &str) -> usize {
    let ours = dataset.diff(snapshots, index - 1, index);
    let (before, after) =
        (offers_by_sku(&snapshots[index - 1], &dataset.runtime), offers_by_sku(&snapshots[index], &dataset.runtime));
    let of_list = |list: &str| -> Vec<&Line> { ours.iter().filter(|line| line.list == list).collect() };

    // Changed: their rows that are ours and whose price moved. A row that only gained a field (a savings plan) is a
    // changed row for them and no changed price for us.
    let mut their_changes: BTreeSet<(String, String, String)> = BTreeSet::new();
    for change in theirs["changed"].as_array().expect("a list") {
        let sku = sku_of(change["key"].as_str().expect("a key"));
        let (old, new) = (&change["before"]["retailPrice"], &change["after"]["retailPrice"]);
        for ((of, model), offer) in &before {
            if *of == sku && model != "savings_plan" && old != new {
                their_changes.insert((offer.clone(), plain(old), plain(new)));
            }
        }
    }
    let our_changes: BTreeSet<_> = of_list("changed")
        .iter()
        .filter(|line| line.model != "savings_plan")
        .map(|line| (line.offer_id.clone(), line.amount_a.clone(), line.amount_b.clone()))
        .collect();
    assert_eq!(our_changes, their_changes, "{name}: changed");

    // Added and removed: their rows that are ours, once for each offer, unless another id holds the offer on the other side.
    let their_ids =
        |list: &str, side: &BTreeMap<(String, String), String>, other: &BTreeMap<(String, String), String>| -> BTreeSet<String> {
            let keys: BTreeSet<String> =
                theirs[list].as_array().expect("a list").iter().map(|row| sku_of(row["key"].as_str().expect("a key"))).collect();
            let still: BTreeSet<&String> = other.values().collect();
            side.iter()
                .filter(|((sku, _), offer)| keys.contains(sku) && !still.contains(offer))
                .map(|(_, offer)| offer.clone())
                .collect()
        };
    let our_ids = |list: &str| -> BTreeSet<String> {
        of_list(list).iter().filter(|line| line.model != "savings_plan").map(|line| line.offer_id.clone()).collect()
    };
    let without_plans = |ids: BTreeSet<String>, side: &BTreeMap<(String, String), String>| -> BTreeSet<String> {
        let plans: BTreeSet<&String> =
            side.iter().filter(|((_, model), _)| model == "savings_plan").map(|(_, offer)| offer).collect();
        ids.into_iter().filter(|id| !plans.contains(id)).collect()
    };
    assert_eq!(our_ids("added"), without_plans(their_ids("added", &after, &before), &after), "{name}: added");
    assert_eq!(our_ids("removed"), without_plans(their_ids("removed", &before, &after), &before), "{name}: removed");

    // Savings plans appear as a field of a row that they call changed; for us each is an offer that was added.
    let gained: BTreeSet<String> = theirs["changed"]
        .as_array()
        .expect("a list")
        .iter()
        .filter(|change| change["before"].get("savingsPlanPrice").is_none() && change["after"].get("savingsPlanPrice").is_some())
        .map(|change| sku_of(change["key"].as_str().expect("a key")))
        .collect();
    for line in of_list("added").iter().filter(|line| line.model == "savings_plan") {
        let is_known =
            after.iter().any(|((sku, model), offer)| model == "savings_plan" && *offer == line.offer_id && gained.contains(sku));
        let came_with_its_row = their_ids("added", &after, &before).contains(&line.offer_id);
        assert!(is_known || came_with_its_row, "{name}: {line:?}");
    }
    assert!(of_list("not_observed").is_empty(), "{name}");

    // Laws: nothing differs from itself, and the way back mirrors the way there.
    assert!(dataset.diff(snapshots, index, index).is_empty(), "{name}");
    let mirrored: BTreeSet<Line> = dataset.diff(snapshots, index, index - 1).into_iter().map(mirror).collect();
    assert_eq!(mirrored, ours.iter().cloned().collect(), "{name}: mirror");
    our_changes.len()
}

/// A number as a decimal prints: without a trailing `.0`.
fn plain(number: &Value) -> String {
    let text = number.to_string();
    text.strip_suffix(".0").map_or(text.clone(), str::to_owned)
}

fn mirror(line: Line) -> Line {
    let swap = |word: String, one: &str, other: &str| {
        if word == one {
            other.to_owned()
        } else if word == other {
            one.to_owned()
        } else {
            word
        }
    };
    Line {
        list: swap(line.list, "added", "removed"),
        missing_in: swap(line.missing_in, "a", "b"),
        amount_a: line.amount_b,
        amount_b: line.amount_a,
        ..line
    }
}

#[test]
fn rows_that_one_crawl_alone_lacks_are_unconfirmed_both_ways() {
    let Some(history) = shared() else { return };
    // North Europe's last crawl lost 295 rows, which were all back the next morning: eight of them are offers of ours.
    let captures = of_region(&history.join("snapshots"), "northeurope");
    let dataset = Dataset::new();
    let body = |file: &Path| serde_json::to_vec(&page(&unpacked(file))).expect("it is JSON");
    for (at, file) in &captures[2..] {
        dataset.publish(at, &[("page-0001.json", body(file))]);
    }
    let snapshots = dataset.snapshots();
    let gone = dataset.diff(&snapshots, 1, 2);
    assert_eq!(gone.len(), 8);
    assert!(gone.iter().all(|line| line.list == "removed" && line.is_unconfirmed), "{gone:?}");
    // The next morning's list is the one before the fault.
    dataset.publish("2026-08-20T06:00:00Z", &[("page-0001.json", body(&captures[3].1))]);
    let snapshots = dataset.snapshots();
    let back = dataset.diff(&snapshots, 2, 3);
    assert_eq!(back.len(), 8);
    assert!(back.iter().all(|line| line.list == "added" && line.is_unconfirmed), "{back:?}");
    assert!(dataset.diff(&snapshots, 1, 2).iter().all(|line| line.is_unconfirmed), "the crawl after it has them again");
    assert!(dataset.diff(&snapshots, 1, 3).is_empty());
    // Had they stayed away, a second complete crawl would have confirmed it.
    dataset.publish("2026-08-21T06:00:00Z", &[("page-0001.json", body(&captures[4].1))]);
    dataset.publish("2026-08-22T06:00:00Z", &[("page-0001.json", body(&captures[4].1))]);
    let snapshots = dataset.snapshots();
    let gone = dataset.diff(&snapshots, 3, 5);
    assert!(gone.len() == 8 && gone.iter().all(|line| line.list == "removed" && !line.is_unconfirmed), "{gone:?}");
}

#[test]
fn offers_of_a_region_that_could_not_be_read_are_not_observed() {
    let Some(history) = shared() else { return };
    let bodies: Vec<Vec<u8>> = ["francecentral", "swedencentral"]
        .iter()
        .map(|region| {
            serde_json::to_vec(&page(&unpacked(&of_region(&history.join("snapshots"), region)[0].1))).expect("it is JSON")
        })
        .collect();
    let dataset = Dataset::new();
    let whole = [("france.json", bodies[0].clone()), ("sweden.json", bodies[1].clone())];
    let broken = [("france.json", bodies[0].clone()), ("sweden.json", bodies[1][..bodies[1].len() / 2].to_vec())];
    assert_eq!(dataset.publish("2026-08-01T02:00:00Z", &whole), Exit::Good);
    assert_eq!(dataset.publish("2026-08-02T02:00:00Z", &broken), Exit::Partial);
    assert_eq!(dataset.publish("2026-08-03T02:00:00Z", &whole), Exit::Good);
    let snapshots = dataset.snapshots();
    let rows: Vec<usize> = snapshots.iter().filter_map(Snapshot::rows).collect();
    assert_eq!(rows, [361, 172, 361]);
    for (a, b, missing) in [(0, 1, "b"), (1, 2, "a")] {
        let lines = dataset.diff(&snapshots, a, b);
        assert_eq!(lines.len(), 189);
        assert!(lines.iter().all(|line| line.list == "not_observed" && line.missing_in == missing), "{a} {b}");
    }
    assert!(dataset.diff(&snapshots, 0, 2).is_empty());
}
