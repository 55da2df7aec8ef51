//! Ways in which a series of nights is known to mislead, each played through the whole program: pages of several nights in,
//! the published rows and the differences between the nights out.

use std::collections::BTreeMap;
use std::fs;

use crate::support::{Dataset, texts, write_pages};
use gpuledger::cheapest;
use gpuledger::diff;
use gpuledger::exit::Exit;
use gpuledger::frame::Cell;
use gpuledger::run::Night;
use gpuledger::snapshot::read;
use gpuledger_scrapers::recordings;
use polars::prelude::{DataFrame, IntoLazy as _, col, lit};
use serde_json::Value;

/// Nights of pages written by hand.
struct Nights {
    dataset: Dataset,
    pages: tempfile::TempDir,
}

impl Nights {
    fn new() -> Self {
        Self { dataset: Dataset::new(), pages: tempfile::tempdir().expect("there is room for a folder") }
    }

    /// A night of these pages, `(provider, file, text)`.
    async fn collect(&self, at: &str, pages: &[(&str, &str, String)]) -> Night {
        let from = self.pages.path().join(at.replace([':', '+'], "-"));
        for (provider, file, text) in pages {
            let folder = from.join(provider);
            fs::create_dir_all(&folder).expect("there is room for a folder");
            fs::write(folder.join(file), text).expect("there is room for a page");
        }
        let from = from.to_str().expect("a temporary folder's name is text");
        self.dataset.collect(&["--from", from, "--at", at]).await.unwrap_or_else(|error| panic!("{at}: {error}"))
    }

    /// A whole night: nothing is missing.
    async fn whole(&self, at: &str, pages: &[(&str, &str, String)]) {
        let night = self.collect(at, pages).await;
        assert_eq!(night.exit, Exit::Good, "{at}: {:?}", night.findings);
    }

    /// What differs between two nights, counted from 0.
    async fn diff(&self, a: usize, b: usize) -> Vec<Change> {
        let root = self.dataset.root();
        let snapshots = read::snapshots(&root).await.expect("the log reads");
        let diff = diff::diff(&root, &snapshots, &snapshots[a], &snapshots[b]).await.expect("they compare");
        (0..diff.rows.height()).map(|row| Change::of(&diff.rows, row)).collect()
    }
}

/// A line of a difference.
#[derive(Debug, Clone, PartialEq)]
struct Change {
    list: String,
    is_unconfirmed: bool,
    offer: String,
    amounts: [String; 2],
    percent: String,
}

impl Change {
    fn of(rows: &DataFrame, row: usize) -> Self {
        let text = |column: &str| Cell::at(rows, column, row).expect("the column exists").text();
        Self {
            list: text("list"),
            is_unconfirmed: text("is_unconfirmed") == "true",
            offer: text("offer"),
            amounts: ["amount_a", "amount_b"].map(text),
            percent: text("change_percent"),
        }
    }
}

fn words(changes: &[Change]) -> Vec<(&str, &str, bool)> {
    changes.iter().map(|change| (change.list.as_str(), change.offer.as_str(), change.is_unconfirmed)).collect()
}

/// A plan of one A100 in one region.
fn plan(id: &str, price: &str) -> String {
    plan_of(id, price, r#""gpu_type": "NVIDIA_A100", "gpu_vram_gb": 80, "gpu_count": "1""#)
}

fn plan_of(id: &str, price: &str, cards: &str) -> String {
    format!(
        r#"{{"id": "vcg-{id}", "vcpu_count": 12, "ram": 122880, "disk": 1400, "disk_count": 1, "type": "vcg", "locations": ["ewr"],
        "hourly_cost": {price}, "deploy_ondemand": true, "deploy_preemptible": false, {cards}}}"#
    )
}

/// A list of these plans and of twelve others, so that one that is held back costs its own row alone.
fn plans(of_interest: &[String]) -> (&'static str, &'static str, String) {
    let others = (0..12).map(|number| plan(&format!("other-{number}"), "1.5"));
    let rows: Vec<_> = others.chain(of_interest.iter().cloned()).collect();
    ("vultr", "plans.json", format!(r#"{{"plans": [{}]}}"#, rows.join(",")))
}

/// Rates of some days, units for one euro.
fn rates(rows: &str) -> (&'static str, &'static str, String) {
    ("ecb", "eurofxref-hist.csv", rows.to_owned())
}

/// One T4 in one zone, at a price as the vendor writes it.
fn t4(price: &str) -> (&'static str, &'static str, String) {
    let row = format!(
        r#"{{"Zone": "ap-guangzhou-6", "InstanceType": "GN7.2XLARGE32", "InstanceFamily": "GN7", "InstanceChargeType":
        "POSTPAID_BY_HOUR", "Cpu": 8, "Memory": 32, "Gpu": 1, "GpuCount": 1, "Status": "SELL", "Price": {price}}}"#
    );
    let body = format!(r#"{{"code": 0, "data": {{"Response": {{"InstanceTypeQuotaSet": [{row}]}}}}}}"#);
    ("tencent", "zone.json", body)
}

/// Columns of the rows of a night, one tuple a row, in file order.
async fn columns(nights: &Nights, night: usize, names: &[&str]) -> Vec<Vec<String>> {
    let rows = nights.dataset.offers().await.remove(night);
    let cells: Vec<_> = names.iter().map(|name| texts(&rows, name)).collect();
    (0..rows.height()).map(|row| cells.iter().map(|column| column[row].clone()).collect()).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_move_of_an_exchange_rate_is_no_change_of_a_price() {
    let nights = Nights::new();
    let price = || t4(r#"{"ChargeUnit": "HOUR", "UnitPrice": 8.68}"#);
    nights.whole("2026-01-06T02:00:00Z", &[price(), rates("Date,USD,CNY,\n2026-01-05,1.08,7.8,\n")]).await;
    nights.whole("2026-01-07T02:00:00Z", &[price(), rates("Date,USD,CNY,\n2026-01-06,1.16,7.8,\n")]).await;
    let changes = nights.diff(0, 1).await;
    assert_eq!(words(&changes), [("exchange_rate", "", false)]);
    let percent: f64 = changes[0].percent.parse().expect("a number");
    assert!((percent - 7.407).abs() < 0.001, "{percent}");
    let usd = [columns(&nights, 0, &["price_usd_per_gpu_hour"]).await, columns(&nights, 1, &["price_usd_per_gpu_hour"]).await];
    assert_ne!(usd[0], usd[1], "the price in dollars moves");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_currency_without_a_rate_has_no_price_in_dollars_and_a_dollar_none_in_yuan() {
    let nights = Nights::new();
    let price = t4(r#"{"ChargeUnit": "HOUR", "UnitPrice": 34.53}"#);
    let night =
        nights.collect("2026-01-06T02:00:00Z", &[price, plans(&[]), rates("Date,USD,JPY,\n2026-01-05,1.08,180,\n")]).await;
    assert!(matches!(night.exit, Exit::Good | Exit::Partial), "the prices are published: {:?}", night.findings);
    let names = [
        "published_amount",
        "published_currency_code",
        "price_usd_per_gpu_hour",
        "price_cny_per_gpu_hour",
        "usd_per_native",
        "flags",
    ];
    let rows = columns(&nights, 0, &names).await;
    let yuan: Vec<_> = rows.iter().filter(|row| row[1] == "CNY").collect();
    assert_eq!(yuan, [&["34.53", "CNY", "", "34.53", "", "rate_missing"].map(str::to_owned).to_vec()]);
    let dollar = rows.iter().find(|row| row[1] == "USD").expect("a plan in dollars");
    assert_eq!(dollar[2..], ["1.5", "", "1", "rate_missing"].map(str::to_owned)[..].to_vec()[..], "{dollar:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn on_a_sunday_the_rates_of_friday_hold_and_an_empty_answer_is_no_rate() {
    let days = "Date,USD,CNY,\n2026-01-05,1.2,8,\n2026-01-02,1.1,7.7,\n";
    let price = || t4(r#"{"ChargeUnit": "HOUR", "UnitPrice": 7.7}"#);
    let nights = Nights::new();
    nights.whole("2026-01-04T12:00:00Z", &[price(), rates(days)]).await;
    let found = columns(&nights, 0, &["rate_date", "price_usd_per_gpu_hour", "flags"]).await;
    assert_eq!(found, [["2026-01-02", "1.1", ""].map(str::to_owned).to_vec()]);
    // Nothing came: the rates that are kept hold for a week, and then none does.
    for (night, at, expected) in
        [(1, "2026-01-12T12:00:00Z", ["2026-01-05", "1.155", ""]), (2, "2026-01-13T12:00:00Z", ["", "", "rate_stale"])]
    {
        let found = nights.collect(at, &[price(), rates("")]).await;
        assert_eq!(found.exit, Exit::Partial, "an empty page is a failure: {:?}", found.findings);
        let row = columns(&nights, night, &["rate_date", "price_usd_per_gpu_hour", "flags"]).await;
        assert_eq!(row, [expected.map(str::to_owned).to_vec()], "{at}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_plan_that_is_withdrawn_is_removed_once_and_never_comes_along() {
    let nights = Nights::new();
    let with = [plans(&[plan("withdrawn", "2")])];
    for at in ["2026-01-05T02:00:00Z", "2026-01-06T02:00:00Z"] {
        nights.whole(at, &with).await;
    }
    for at in ["2026-01-07T02:00:00Z", "2026-01-08T02:00:00Z"] {
        nights.whole(at, &[plans(&[])]).await;
    }
    assert_eq!(nights.diff(0, 1).await, []);
    let removed = nights.diff(1, 2).await;
    assert_eq!(words(&removed), [("removed", "vcg-withdrawn", false)], "two crawls agree");
    assert_eq!((removed[0].amounts[1].as_str(), removed[0].percent.as_str()), ("", ""));
    assert_eq!(nights.diff(2, 3).await, [], "it is removed once");
    let rows = columns(&nights, 2, &["instance_type"]).await;
    assert!(rows.len() == 12 && !rows.contains(&vec!["vcg-withdrawn".to_owned()]));
    // As long as one crawl alone lacks it, nobody knows.
    nights.whole("2026-01-09T02:00:00Z", &with).await;
    assert_eq!(words(&nights.diff(3, 4).await), [("added", "vcg-withdrawn", false)]);
    nights.whole("2026-01-10T02:00:00Z", &[plans(&[])]).await;
    assert_eq!(words(&nights.diff(4, 5).await), [("removed", "vcg-withdrawn", true)]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_provider_that_is_out_for_a_night_has_nothing_removed_and_nothing_added() {
    let nights = Nights::new();
    let healthy = || {
        let folder = tempfile::tempdir().expect("there is room for a folder");
        write_pages(folder.path(), "oci", |_, name| name.to_owned(), |text| text);
        let page = |name: &str| fs::read_to_string(folder.path().join("oci").join(name)).expect("the page was written");
        [("oci", "products", page("products")), ("oci", "shapes", page("shapes"))]
    };
    let night = |plans: (&'static str, &'static str, String)| healthy().into_iter().chain([plans]).collect::<Vec<_>>();
    let broken = ("vultr", "plans.json", "{}".to_owned());
    nights.whole("2026-01-05T02:00:00Z", &night(plans(&[]))).await;
    let out = nights.collect("2026-01-06T02:00:00Z", &night(broken)).await;
    assert_eq!(out.exit, Exit::Partial);
    nights.whole("2026-01-07T02:00:00Z", &night(plans(&[]))).await;
    for (a, b) in [(0, 1), (1, 2)] {
        let changes = nights.diff(a, b).await;
        assert!(changes.len() == 12 && changes.iter().all(|change| change.list == "not_observed"), "{changes:?}");
    }
    assert_eq!(nights.diff(0, 2).await, []);
    let rows = columns(&nights, 1, &["provider"]).await;
    assert!(!rows.is_empty() && rows.iter().all(|row| row[0] == "oci"), "nothing is carried over");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_price_out_of_nothing_or_zero_has_no_percent() {
    let nights = Nights::new();
    let rows = |null: &str, zero: &str| [plan("null", null), plan("zero", zero), plan("same", "2.00"), plan("dearer", "2")];
    nights.whole("2026-01-05T02:00:00Z", &[plans(&rows("null", "0"))]).await;
    let mut later = rows("2.00", "2").to_vec();
    later[3] = plan("dearer", "2.5");
    later.push(plan("new", "2.00"));
    nights.whole("2026-01-06T02:00:00Z", &[plans(&later)]).await;
    let mut changes = nights.diff(0, 1).await;
    changes.sort_by(|a, b| a.offer.cmp(&b.offer));
    let found: Vec<_> =
        changes.iter().map(|c| (c.list.as_str(), c.offer.as_str(), c.amounts[0].as_str(), c.percent.as_str())).collect();
    assert_eq!(
        found,
        [
            ("changed", "vcg-dearer", "2", "25"),
            ("added", "vcg-new", "", ""),
            ("added", "vcg-null", "", ""),
            ("added", "vcg-zero", "", ""),
        ]
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn another_spelling_of_a_number_is_no_change_and_the_last_digit_is_one() {
    let nights = Nights::new();
    let night = |a: &str, b: &str, c: &str| [plans(&[plan("a", a), plan("b", b), plan("c", c)])];
    nights.whole("2026-01-05T02:00:00Z", &night("0.3", "2.99", "1.000000000001")).await;
    nights.whole("2026-01-06T02:00:00Z", &night("3.0e-1", "2.990", "1.000000000001")).await;
    assert_eq!(nights.diff(0, 1).await, []);
    nights.whole("2026-01-07T02:00:00Z", &night("0.30", "2.99", "1.000000000002")).await;
    let changes = nights.diff(1, 2).await;
    assert_eq!(words(&changes), [("changed", "vcg-c", false)]);
    // What a float of 32 bits prints is no price of this list, and is held back rather than cut.
    let noise = nights.collect("2026-01-08T02:00:00Z", &night("0.3", "2.990000009536743", "1.000000000002")).await;
    let held: Vec<_> = noise.findings.iter().filter(|finding| finding.rule == "too_many_digits").collect();
    assert_eq!(held.len(), 1, "{:?}", noise.findings);
    assert_eq!(words(&nights.diff(2, 3).await), [("removed", "vcg-b", true)], "one night without it is no removal yet");
}

#[tokio::test(flavor = "multi_thread")]
async fn prices_are_sorted_as_numbers_with_nothing_last_and_ties_by_their_id() {
    let nights = Nights::new();
    let slice = plan_of("a100-1c-6g-4vram", "0.123", r#""gpu_type": "NVIDIA_A100", "gpu_vram_gb": 4"#);
    let h100 = |id: &str, price: &str| plan_of(id, price, r#""gpu_type": "NVIDIA_H100", "gpu_vram_gb": 80, "gpu_count": "1""#);
    let rows = [h100("dear", "100.0"), h100("low", "9.80"), h100("middle", "12.29"), h100("twin", "9.80"), slice];
    nights.whole("2026-01-05T02:00:00Z", &[plans(&rows)]).await;
    for (sort, expected) in
        [("price", ["9.8", "9.8", "12.29", "100", "null"]), ("-price", ["100", "12.29", "9.8", "9.8", "null"])]
    {
        let said = nights.dataset.run(&["offers", "--sort", sort, "--format", "json", "--limit", "100"]);
        assert_eq!(said.exit, Some(0), "{}", said.talk);
        let all: Vec<Value> = serde_json::from_str(&said.data).expect("it is JSON");
        let ours: Vec<&Value> =
            all.iter().filter(|row| !row["instance_type"].as_str().unwrap_or_default().contains("other")).collect();
        let prices: Vec<_> = ours.iter().map(|row| row["price_usd_per_gpu_hour"].to_string()).collect();
        assert_eq!(prices, expected, "{sort}");
        assert!(all.last().is_some_and(|row| row["price_usd_per_gpu_hour"].is_null()), "{sort}");
        let twins: Vec<_> =
            ours.iter().filter(|row| row["price_usd_per_gpu_hour"] == 9.8).map(|row| row["offer_id"].as_str()).collect();
        assert!(twins.len() == 2 && twins.is_sorted(), "{twins:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_night_has_the_day_in_utc_of_its_beginning() {
    let nights = Nights::new();
    nights.whole("2026-01-05T07:59:50+08:00", &[plans(&[])]).await;
    let rows = columns(&nights, 0, &["snapshot_id", "snapshot_date"]).await;
    assert!(rows.iter().all(|row| row[0] == "2026-01-04T23-59-50Z" && row[1] == "2026-01-04"), "{rows:?}");
    let [(path, _)] = &nights.dataset.files("offers")[..] else { panic!("a night is one file") };
    assert!(path.starts_with("2026-01-04"), "{}", path.display());
    assert!(nights.dataset.logged("offers").contains(path));
}

/// A row of a machine of eight cards, with these fields beside the usual ones.
fn azure(rows: &[&str]) -> (&'static str, &'static str, String) {
    let row = |(index, fields): (usize, &&str)| {
        format!(
            r#"{{"currencyCode": "USD", "tierMinimumUnits": 0.0, "armRegionName": "eastus", "meterId": "m", "meterName": "ND96isr H100 v5",
            "productId": "p", "skuId": "p/{index}", "productName": "Virtual Machines NDsrH100v5 Series", "skuName": "ND96isr H100 v5",
            "serviceName": "Virtual Machines", "serviceFamily": "Compute", "unitOfMeasure": "1 Hour", "isPrimaryMeterRegion": true,
            "armSkuName": "Standard_ND96isr_H100_v5", {fields}}}"#
        )
    };
    let rows: Vec<_> = rows.iter().enumerate().map(row).collect();
    ("azure", "retail.json", format!(r#"{{"Items": [{}], "NextPageLink": null}}"#, rows.join(",")))
}

#[tokio::test(flavor = "multi_thread")]
async fn a_price_announced_for_later_is_one_change_on_the_day_it_begins() {
    let nights = Nights::new();
    let of = |from: &str, price: &str| {
        azure(&[&format!(r#""type": "Consumption", "retailPrice": {price}, "effectiveStartDate": "{from}T00:00:00Z""#)]).2
    };
    // The same SKU twice, as the list has it once a price is announced.
    let page = || {
        let (now, later) = (of("2025-12-01", "3.10"), of("2026-02-01", "2.80"));
        let row = later.trim_start_matches(r#"{"Items": ["#).trim_end_matches(r#"], "NextPageLink": null}"#);
        ("azure", "retail.json", now.replace(r#"], "NextPageLink""#, &format!(r#", {row}], "NextPageLink""#)))
    };
    for at in ["2026-01-15T02:00:00Z", "2026-01-31T23:59:59Z", "2026-02-01T00:00:00Z", "2026-02-02T00:00:00Z"] {
        nights.whole(at, &[page()]).await;
    }
    for (night, amount) in ["3.1", "3.1", "2.8", "2.8"].iter().enumerate() {
        assert_eq!(columns(&nights, night, &["published_amount"]).await, [[(*amount).to_owned()]]);
    }
    assert_eq!((nights.diff(0, 1).await, nights.diff(2, 3).await), (Vec::new(), Vec::new()));
    let changes = nights.diff(1, 2).await;
    assert_eq!(words(&changes), [("changed", "Standard_ND96isr_H100_v5", false)]);
    assert_eq!(changes[0].amounts, ["3.1", "2.8"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_total_of_a_term_is_spread_over_it_and_never_on_demand() {
    let nights = Nights::new();
    let reserved = r#""type": "Reservation", "reservationTerm": "1 Year", "retailPrice": 525600.0"#;
    nights.whole("2026-01-05T02:00:00Z", &[azure(&[reserved])]).await;
    let names = [
        "pricing_model",
        "commitment_months",
        "published_unit",
        "published_amount",
        "price_native_per_hour",
        "price_usd_per_gpu_hour",
    ];
    let rows = columns(&nights, 0, &names).await;
    assert_eq!(rows, [["reserved", "12", "term", "525600", "60", "7.5"].map(str::to_owned)]);
}

#[tokio::test(flavor = "multi_thread")]
async fn fewer_days_of_exchange_rates_are_no_lost_page() {
    let nights = Nights::new();
    let price = || t4(r#"{"ChargeUnit": "HOUR", "UnitPrice": 7.8}"#);
    let days: String = (1..=28).rev().map(|day| format!("2025-12-{day:02},1.1,7.8,\n")).collect();
    nights.whole("2025-12-29T02:00:00Z", &[price(), rates(&format!("Date,USD,CNY,\n{days}"))]).await;
    nights.whole("2025-12-30T02:00:00Z", &[price(), rates("Date,USD,CNY,\n2025-12-29,1.2,7.8,\n")]).await;
    let found = columns(&nights, 1, &["rate_date", "price_usd_per_gpu_hour"]).await;
    assert_eq!(found, [["2025-12-29", "1.2"].map(str::to_owned).to_vec()]);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_end_of_a_promotion_is_no_change_of_the_list_price() {
    let nights = Nights::new();
    // Nobody has exchange rates here, so the nights are partial and all that is compared is yuan.
    let first = nights
        .collect("2026-01-05T02:00:00Z", &[t4(r#"{"ChargeUnit": "HOUR", "UnitPrice": 34.53, "UnitPriceDiscount": 20.72}"#)])
        .await;
    let second = nights.collect("2026-01-06T02:00:00Z", &[t4(r#"{"ChargeUnit": "HOUR", "UnitPrice": 34.53}"#)]).await;
    assert_eq!([first.exit, second.exit], [Exit::Partial; 2]);
    let both: BTreeMap<_, _> = columns(&nights, 0, &["is_promotion", "published_amount"])
        .await
        .into_iter()
        .map(|row| (row[0].clone(), row[1].clone()))
        .collect();
    assert_eq!(both, BTreeMap::from([("false", "34.53"), ("true", "20.72")].map(|(a, b)| (a.to_owned(), b.to_owned()))));
    let changes = nights.diff(0, 1).await;
    let found: Vec<_> = changes.iter().map(|change| (change.list.as_str(), change.amounts[0].as_str())).collect();
    assert_eq!(found, [("removed", "20.72")]);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_person_typed_is_never_called_live() {
    let dataset = Dataset::new();
    dataset.collect(&["--recorded"]).await.expect("the recordings read");
    let snapshots = read::snapshots(&dataset.root()).await.expect("the log reads");
    let coverage = read::coverage(&dataset.root(), &snapshots).await.expect("the table reads");
    for (provider, input) in texts(&coverage, "provider").iter().zip(texts(&coverage, "input")) {
        let receipt = recordings::newest(provider).expect("it has a recording").receipt;
        assert_eq!(input, format!("{:?}", receipt.origin).to_lowercase(), "{provider}");
    }
    let rows = dataset.offers().await.remove(0);
    for (provider, observed_at) in texts(&rows, "provider").iter().zip(texts(&rows, "observed_at")) {
        let seen = recordings::newest(provider).expect("it has a recording").receipt.observed_at;
        assert_eq!(observed_at, seen.format("%Y-%m-%dT%H:%M:%SZ").to_string(), "{provider}: a price is as old as its page");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_price_that_somebody_else_copies_is_never_the_cheapest() {
    let nights = Nights::new();
    nights.whole("2026-01-05T02:00:00Z", &[plans(&[])]).await;
    let rows = nights.dataset.offers().await.remove(0).lazy();
    let root = nights.dataset.root();
    let vendors = cheapest::on_demand(&root, &rows, "a100").await.expect("there is one");
    assert_eq!(vendors.height(), 1);
    let copied = rows.with_columns([
        lit("aggregator").alias("source_kind"),
        lit("somebody").alias("provider"),
        (col("price_usd_per_gpu_hour") / lit(2.0)).alias("price_usd_per_gpu_hour"),
    ]);
    let all = polars::prelude::concat([nights.dataset.offers().await.remove(0).lazy(), copied], Default::default());
    let all = all.expect("the columns are the same");
    let with = cheapest::on_demand(&root, &all, "a100").await.expect("there is one");
    assert_eq!((texts(&with, "provider"), texts(&with, "offer_id")), (texts(&vendors, "provider"), texts(&vendors, "offer_id")));
}
