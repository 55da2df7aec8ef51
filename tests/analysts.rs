//! What analysts ask on the terminal: which offers, and which are the cheapest. Hand-checked answers on the recorded night,
//! and laws that hold for every question.

use std::collections::{BTreeMap, BTreeSet};
use std::io::Cursor;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use clap::Parser as _;
use gpuledger::cheapest::{self, Found};
use gpuledger::cli::{Cheapest, Cli, Verb};
use gpuledger::frame::Cell;
use gpuledger::offer::OFFERS;
use gpuledger::query;
use gpuledger::snapshot::read;
use polars::prelude::*;
use serde_json::Value;

use crate::support::{Dataset, Said, bytes_of, texts};

/// The morning after the recorded night.
const NOW: &str = "2026-10-31T06:00:00Z";

/// The recorded night, which the tests only read: they share it, and who comes last takes it away.
fn recorded() -> Arc<Dataset> {
    static SHARED: Mutex<Weak<Dataset>> = Mutex::new(Weak::new());
    let mut shared = SHARED.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(dataset) = shared.upgrade() {
        return dataset;
    }
    let dataset = Arc::new(Dataset::new());
    let said = dataset.run(&["collect", "--recorded"]);
    assert_eq!(said.exit, Some(0), "{}{}", said.data, said.talk);
    *shared = Arc::downgrade(&dataset);
    dataset
}

fn good(said: Said) -> Said {
    assert_eq!(said.exit, Some(0), "{}", said.talk);
    said
}

fn rows(dataset: &Dataset, args: &[&str]) -> Vec<Value> {
    let said = good(dataset.run(&[args, &["--format", "json"]].concat()));
    serde_json::from_str(&said.data).unwrap_or_else(|error| panic!("{error}: {}", said.data))
}

fn text<'a>(row: &'a Value, column: &str) -> &'a str {
    row[column].as_str().unwrap_or_default()
}

fn number(row: &Value, column: &str) -> f64 {
    row[column].as_f64().unwrap_or_else(|| panic!("{column} of {row}"))
}

/// Holds a price against the nearest float of what was worked out by hand: not a bit apart.
#[track_caller]
fn same(price: f64, by_hand: f64) {
    assert_eq!(price.to_bits(), by_hand.to_bits(), "{price} is not {by_hand}");
}

/// Providers of one ladder, in its order.
fn providers<'a>(rows: &'a [Value], ladder: &str) -> Vec<&'a str> {
    rows.iter().filter(|row| row["ladder"] == ladder).map(|row| text(row, "provider")).collect()
}

/// The one row of a provider in a ladder.
fn of<'a>(rows: &'a [Value], ladder: &str, provider: &str) -> &'a Value {
    let found: Vec<&Value> = rows.iter().filter(|row| row["ladder"] == ladder && row["provider"] == provider).collect();
    assert_eq!(found.len(), 1, "{provider} in {ladder}");
    found[0]
}

#[test]
fn a_name_means_the_cards_that_people_mean_by_it() {
    for (typed, meant) in [
        ("h100", &["H100", "H100 SXM", "H100 PCIe", "H100 NVL"][..]),
        ("H100 SXM", &["H100 SXM"]),
        ("h100sxm", &["H100 SXM"]),
        ("h100-sxm5", &["H100 SXM"]),
        ("h100 sxm 80gb", &["H100 SXM"]),
        ("H100 pcie", &["H100 PCIe"]),
        ("a100-80", &["A100 80GB", "A100 SXM 80GB", "A100 PCIe 80GB"]),
        ("a100 40gb sxm", &["A100 SXM 40GB"]),
        ("a10", &["A10"]),
        ("l4", &["L4"]),
        ("l40s", &["L40S"]),
        ("4090", &["RTX 4090", "RTX 4090 48GB mod"]),
        ("rtx 4090", &["RTX 4090", "RTX 4090 48GB mod"]),
        ("rtx4090", &["RTX 4090", "RTX 4090 48GB mod"]),
        ("mi300x", &["MI300X"]),
        ("gb200", &["GB200"]),
        ("T4", &["T4"]),
    ] {
        assert_eq!(query::is_model(typed).as_deref(), Ok(meant), "{typed}");
    }
    for typed in ["h1000", "a1", "gpu", ""] {
        assert!(query::is_model(typed).is_err(), "{typed}");
    }
}

#[test]
fn no_rung_of_a_ladder_is_cheaper_than_the_one_above_it_and_a_provider_stands_once_in_each() {
    let dataset = recorded();
    let questions: [&[&str]; 8] = [
        &["--gpu", "h100"],
        &["--gpu", "h100", "--all", "--limit", "0"],
        &["--gpu", "a100,l40s", "--currency", "eur"],
        &["--min-gpu-memory", "80", "--by", "pflop"],
        &["--min-gpu-memory", "16", "--by", "gb", "--fractions", "--all", "--limit", "0"],
        &["--min-total-memory", "640", "--currency", "CNY"],
        &["--gpu", "a10", "--os", "windows"],
        &["--gpu", "t4", "--currency", "gbp", "--by", "pflop"],
    ];
    for question in questions {
        let found = rows(&dataset, &[&["cheapest"], question].concat());
        assert!(found.len() > 1, "{question:?} has {} answers", found.len());
        let lowest =
            found[0].as_object().expect("a row").keys().find(|name| name.starts_with("lowest_")).expect("a price").clone();
        let mut ladders: BTreeMap<&str, Vec<&Value>> = BTreeMap::new();
        for row in &found {
            ladders.entry(text(row, "ladder")).or_default().push(row);
        }
        for (name, ladder) in ladders {
            assert!(ladder.is_sorted_by(|a, b| number(a, &lowest) <= number(b, &lowest)), "{question:?}: {name}");
            let ranks: Vec<i64> = ladder.iter().filter_map(|row| row["ladder_rank"].as_i64()).collect();
            assert!(ranks.into_iter().eq((1..).take(ladder.len())), "{question:?}: {name}");
            let ways: BTreeSet<String> =
                ladder.iter().map(|row| format!("{} {}", row["pricing_model"], row["commitment_months"])).collect();
            assert_eq!(ways.len(), 1, "{question:?}: {name} has {ways:?}");
            let names: BTreeSet<&str> = ladder.iter().map(|row| text(row, "provider")).collect();
            assert!(question.contains(&"--all") || names.len() == ladder.len(), "{question:?}: {name}");
            assert!(ladder.iter().all(|row| number(row, &lowest) > 0.0), "{question:?}: {name}");
        }
    }
}

#[test]
fn the_line_of_a_provider_is_the_cheapest_that_it_has() {
    let dataset = recorded();
    let all = rows(&dataset, &["offers", "--gpu", "h100", "--os", "linux", "--limit", "100000"]);
    let mut best: BTreeMap<(String, String, String), f64> = BTreeMap::new();
    for row in all.iter().filter(|row| row["is_fractional"] == false && row["plan"].is_null()) {
        let way = (row["pricing_model"].to_string(), row["commitment_months"].to_string(), text(row, "provider").to_owned());
        let price = number(row, "price_usd_per_gpu_hour");
        best.entry(way).and_modify(|best| *best = best.min(price)).or_insert(price);
    }
    let found = rows(&dataset, &["cheapest", "--gpu", "h100"]);
    let plain = found.iter().filter(|row| row["plan"].is_null());
    let lines: BTreeMap<(String, String, String), f64> = plain
        .map(|row| {
            let way = (row["pricing_model"].to_string(), row["commitment_months"].to_string(), text(row, "provider").to_owned());
            (way, number(row, "lowest_usd_per_gpu_hour"))
        })
        .collect();
    assert!(lines.len() > 20 && lines == best, "{lines:?}\n{best:?}");
}

#[test]
fn prices_in_another_currency_are_worked_out_by_hand_the_same() {
    let dataset = recorded();
    let ask = |args: &[&str]| rows(&dataset, &[&["cheapest", "--gpu", "h100"], args].concat());
    let usd = ask(&[]);
    assert_eq!(providers(&usd, "on demand")[..3], ["seeweb", "hyperstack", "jarvislabs"]);
    same(number(of(&usd, "on demand", "aws"), "lowest_usd_per_gpu_hour"), 55.04 / 8.0);

    let eur = ask(&["--currency", "EUR"]);
    let price = |provider: &str| number(of(&eur, "on demand", provider), "lowest_eur_per_gpu_hour");
    // A price in euros is what is printed: 1.89 for a GPU-hour, and 0.047775 for a minute, sixty times.
    same(price("seeweb"), 1.89);
    same(price("scaleway"), 2.8665);
    // 6.88 dollars at the 1.1590 dollars for one euro of the day before, and 3.85 at 1.1551.
    assert_eq!(of(&eur, "on demand", "aws")["rate_date"], "2026-09-01");
    same(price("aws"), 68_800.0_f64 / 11_590.0);
    same(price("nebius"), 38_500.0_f64 / 11_551.0);

    // Yen for one euro over dollars for one euro, of one and the same day.
    let jpy = ask(&["--currency", "jpy"]);
    same(number(of(&jpy, "on demand", "aws"), "lowest_jpy_per_gpu_hour"), 688.0 * 18_563.0 / 11_590.0);

    let per_gb = ask(&["--by", "gb"]);
    same(number(of(&per_gb, "on demand", "aws"), "lowest_usd_per_gpu_gb_hour"), 0.086);
    // An H100 SXM does 989 dense FP16 TFLOPS.
    let per_pflop = ask(&["--by", "pflop", "--provider", "aws", "--currency", "eur"]);
    let expected = 6_880_000.0_f64 / (1_159.0 * 989.0);
    same(number(of(&per_pflop, "on demand", "aws"), "lowest_eur_per_pflop_hour"), expected);

    let cny = rows(&dataset, &["offers", "--gpu", "h100", "--currency", "cny", "--limit", "1"]);
    assert!(number(&cny[0], "price_cny_per_gpu_hour") > number(&cny[0], "price_usd_per_gpu_hour") * 6.0, "{}", cny[0]);
    let table = good(dataset.run(&["offers", "--gpu", "h100", "--currency", "chf", "--limit", "1"])).data;
    assert!(table.contains("CHF/GPU-hour") && !table.contains("USD/GPU-hour"), "{table}");
}

#[test]
fn a_currency_without_a_rate_is_refused_and_names_those_that_have_one() {
    let dataset = recorded();
    for verb in ["offers", "cheapest"] {
        let said = dataset.run(&[verb, "--gpu", "h100", "--currency", "xyz"]);
        assert_eq!((said.exit, said.data.as_str()), (Some(2), ""), "{}", said.talk);
        assert!(said.talk.contains("exchange rate of XYZ") && said.talk.contains("GBP"), "{}", said.talk);
        let said = dataset.run(&[verb, "--gpu", "h100", "--currency", "euro"]);
        assert!(said.exit == Some(2) && said.talk.contains("ISO 4217"), "{}", said.talk);
    }
}

#[test]
fn without_the_nights_rates_a_price_stands_in_its_own_currency_only() {
    let dataset = Dataset::new();
    let said = dataset.run(&["collect", "--recorded", "--providers", "seeweb,lambda"]);
    assert!(matches!(said.exit, Some(0 | 10)), "{}{}", said.data, said.talk);
    let said = good(dataset.run(&["cheapest", "--gpu", "h100"]));
    assert!(said.data.contains("lambda") && !said.data.contains("seeweb"), "{}", said.data);
    assert!(said.talk.contains("without an exchange rate of their day"), "{}", said.talk);
    let said = good(dataset.run(&["cheapest", "--gpu", "h100", "--currency", "eur"]));
    assert!(said.data.contains("seeweb") && !said.data.contains("lambda"), "{}", said.data);
    assert!(said.talk.contains("without an exchange rate of their day"), "{}", said.talk);
}

#[test]
fn a_plan_with_conditions_is_never_the_cheapest_plain_price() {
    let dataset = recorded();
    let found = rows(&dataset, &["cheapest", "--min-gpu-memory", "16"]);
    let (mut plain, mut by_plan) = (0, 0);
    for row in &found {
        let ladder = text(row, "ladder");
        if ladder.ends_with("by a plan of the provider's own") {
            assert!(!row["plan"].is_null(), "{row}");
            by_plan += 1;
        } else if ["on demand", "spot", "low priority"].contains(&ladder) {
            assert!(row["plan"].is_null(), "{row}");
            plain += 1;
        }
    }
    assert!(plain > 10 && by_plan > 2, "{plain} plain, {by_plan} by a plan");
    // Modal's price is of the GPU alone; its line says so.
    let table = good(dataset.run(&["cheapest", "--gpu", "h100", "--provider", "modal"])).data;
    assert!(table.contains("serverless") && table.contains("gpu part only"), "{table}");
}

#[test]
fn what_is_left_out_is_said_with_its_number_and_how_to_have_it() {
    let dataset = recorded();
    let all = rows(&dataset, &["offers", "--gpu", "a10", "--limit", "100000"]);
    let count = |test: &dyn Fn(&Value) -> bool| all.iter().filter(|row| test(row)).count();
    let windows = count(&|row| row["os"] == "windows");
    let parts = count(&|row| row["os"] == "linux" && row["is_fractional"] == true);
    assert!(windows > 0 && parts > 0);
    let said = good(dataset.run(&["cheapest", "--gpu", "a10", "--now", NOW]));
    for words in [
        format!("{windows} with another operating system than Linux in the price (--os)"),
        format!("{parts} of a part of a card (--fractions)"),
        "dearer than another of the same provider (--all shows every offer)".to_owned(),
        "rows of that night; `gpuledger findings 2026-10-30T".to_owned(),
        "typed, not read from the provider that night: ".to_owned(),
        "2026-08-01 (91 d) volcengine; ".to_owned(),
    ] {
        assert!(said.talk.contains(&words), "no `{words}` in\n{}", said.talk);
    }
    assert!(!said.data.contains("part of a card"), "{}", said.data);
    let with_parts = good(dataset.run(&["cheapest", "--gpu", "a10", "--fractions"]));
    assert!(with_parts.data.contains("part of a card") && !with_parts.talk.contains("(--fractions)"), "{}", with_parts.data);

    let new = rows(&dataset, &["cheapest", "--gpu", "h100", "--max-age-days", "60", "--now", NOW]);
    assert!(!new.is_empty() && new.iter().all(|row| text(row, "observed_at") >= "2026-09-01T06:00:00Z"), "{new:?}");
    let none = good(dataset.run(&["cheapest", "--gpu", "h100", "--max-age-days", "1", "--now", NOW]));
    assert!(
        none.talk.contains("Nothing of snapshot") && none.talk.contains("seen earlier than the days asked for"),
        "{}",
        none.talk
    );
}

#[test]
fn each_filter_lets_through_what_it_says() {
    let dataset = recorded();
    let all = rows(&dataset, &["offers", "--limit", "100000"]);
    let total = |row: &Value| {
        let gpus = if row["is_fractional"] == true { 1.0 } else { row["gpu_count"].as_f64()? };
        Some(gpus * row["gpu_memory_gb"].as_f64()?)
    };
    type Test<'a> = &'a dyn Fn(&Value) -> bool;
    let questions: [(&[&str], Test<'_>); 9] = [
        (&["--min-total-memory", "640"], &|row| total(row) >= Some(640.0)),
        (&["--gpu-count", "2,4"], &|row| [2, 4].map(Some).contains(&row["gpu_count"].as_i64())),
        (&["--continent", "Europe,north-america"], &|row| ["europe", "north_america"].contains(&text(row, "continent"))),
        (&["--country", "germany,FR"], &|row| ["DE", "FR"].contains(&text(row, "country"))),
        (&["--commitment-months", "12"], &|row| row["commitment_months"] == 12),
        (&["--commitment-months", "0,1"], &|row| row["commitment_months"].is_null() || row["commitment_months"] == 1),
        (&["--max-commitment-months", "12"], &|row| row["commitment_months"].as_i64().unwrap_or(0) <= 12),
        (&["--gpu", "h100,4090"], &|row| {
            text(row, "gpu_model").starts_with("H100") || text(row, "gpu_model").starts_with("RTX 4090")
        }),
        (&["--pricing-model", "On-Demand", "--os", "Linux"], &|row| row["pricing_model"] == "on_demand" && row["os"] == "linux"),
    ];
    for (question, test) in questions {
        let found = rows(&dataset, &[&["offers", "--limit", "100000"], question].concat());
        let expected = all.iter().filter(|row| test(row)).count();
        assert!(!found.is_empty() && found.len() < all.len() && found.iter().all(test), "{question:?}");
        assert_eq!(found.len(), expected, "{question:?}");
    }
    let said = good(dataset.run(&["offers", "--gpu", "h100", "--continent", "asia"]));
    assert!(said.talk.contains("whose region, country or continent is not stated"), "{}", said.talk);
    // A card without a stated memory may have enough or not.
    let unknown = all.iter().filter(|row| row["gpu_memory_gb"].is_null()).count();
    let said = good(dataset.run(&["offers", "--min-gpu-memory", "80"]));
    assert!(unknown > 0 && said.talk.contains(&format!("{unknown} whose memory of a GPU is not stated")), "{}", said.talk);
    for (args, words) in [
        (["--continent", "atlantis"], "north_america"),
        (["--country", "UK"], "there are"),
        (["--gpu-count", "none"], "above 0"),
        (["--min-gpu-memory", "nan"], "above 0"),
    ] {
        let said = dataset.run(&[&["offers"][..], &args].concat());
        assert!(said.exit == Some(2) && said.talk.contains(words), "{args:?}: {}", said.talk);
    }
    // What exists and does not go together is no mistake.
    let said = good(dataset.run(&["cheapest", "--gpu", "mi300x", "--provider", "aws"]));
    assert!(said.talk.contains("Nothing of snapshot"), "{}{}", said.data, said.talk);
    let said = dataset.run(&["cheapest"]);
    assert!(said.exit == Some(2) && said.talk.contains("--min-gpu-memory"), "{}", said.talk);
}

fn frame(bytes: Vec<u8>) -> DataFrame {
    ParquetReader::new(Cursor::new(bytes)).finish().expect("it is Parquet")
}

#[test]
fn every_format_holds_the_same_whole_rows() {
    let dataset = recorded();
    let question = ["cheapest", "--gpu", "h100", "--currency", "eur"];
    let run = |format: &str| good(dataset.run(&[&question[..], &["--format", format]].concat())).data;
    let list: Vec<Value> = serde_json::from_str(&run("json")).expect("it is JSON");
    let lines: Vec<Value> = run("ndjson").lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    assert_eq!(list, lines);
    let csv = run("csv");
    let mut reader = csv::Reader::from_reader(csv.as_bytes());
    let names: Vec<String> = reader.headers().expect("a header").iter().map(str::to_owned).collect();
    let added = ["ladder", "ladder_rank", "lowest_eur_per_gpu_hour"];
    let expected: Vec<&str> = OFFERS.columns.iter().map(|column| column.name).chain(added).collect();
    assert_eq!(names, expected);

    let output = dataset.command(&[&question[..], &["--format", "parquet"]].concat()).output().expect("the program starts");
    let printed = frame(output.stdout.clone());
    let file = dataset.root().with_file_name("answer.parquet");
    let to = file.display().to_string();
    let said = good(dataset.run(&[&question[..], &["--format", "parquet", "--to", &to]].concat()));
    assert!(said.data.is_empty() && said.talk.contains(&format!("{} rows are in ", list.len())), "{}", said.talk);
    assert_eq!(bytes_of(&file), output.stdout);
    assert!(printed.get_column_names().into_iter().eq(&expected));
    for (column, row) in OFFERS.columns.iter().zip(printed.columns()) {
        assert_eq!(*row.dtype(), gpuledger::frame::data_type(column.kind), "{}", column.name);
    }
    for (index, row) in list.iter().enumerate() {
        for name in &expected {
            let cell = Cell::at(&printed, name, index).expect("a cell").json();
            assert_eq!(serde_json::from_str::<Value>(&cell).expect("JSON"), row[*name], "{name}");
        }
    }
    let said = dataset.run(&[&question[..], &["--to", &to]].concat());
    assert!(said.exit == Some(2) && said.talk.contains("--format parquet"), "{}", said.talk);
    let said = dataset.run(&[&question[..], &["--to", "/nowhere/at/all.txt"]].concat());
    assert!(said.exit == Some(2) && said.data.is_empty(), "{}", said.talk);
}

#[test]
fn rows_come_out_as_parquet_wherever_rows_come_out() {
    let dataset = recorded();
    for args in [&["snapshots"][..], &["providers"], &["findings"], &["diff", "latest", "latest"], &["offers", "--limit", "3"]] {
        let output = dataset.command(&[args, &["--format", "parquet"]].concat()).output().expect("the program starts");
        assert_eq!(output.status.code(), Some(0), "{args:?}: {}", String::from_utf8_lossy(&output.stderr));
        let json = rows(&dataset, args);
        assert_eq!(frame(output.stdout).height(), json.len(), "{args:?}");
    }
}

/// The arguments of `cheapest`.
fn question(args: &[&str]) -> Cheapest {
    match Cli::try_parse_from([&["gpuledger", "cheapest"], args].concat()).expect("the command line reads").verb {
        Verb::Cheapest(cheapest) => cheapest,
        other => unreachable!("{other:?} is not what was typed"),
    }
}

/// The ladders of the recorded night with some rows changed.
async fn changed(dataset: &Dataset, change: impl Fn(LazyFrame) -> LazyFrame, args: &[&str]) -> Found {
    let snapshots = read::snapshots(&dataset.root()).await.expect("the log reads");
    let rows = read::offers(&snapshots[0]).expect("the file opens");
    cheapest::find(&dataset.root(), &change(rows), &question(args)).await.expect("there are ladders")
}

fn of_provider(name: &str) -> Expr {
    col("provider").eq(lit(name))
}

fn price_of(found: &Found, provider: &str, ladder: &str) -> f64 {
    let is_it = of_provider(provider).and(col("ladder").eq(lit(ladder)));
    let row = found.rows.clone().lazy().filter(is_it).collect().expect("the rows read");
    assert_eq!(row.height(), 1, "{provider} in {ladder}");
    Cell::at(&row, &found.lowest, 0).expect("a price").text().parse().expect("a number")
}

#[tokio::test(flavor = "multi_thread")]
async fn a_marketplace_is_compared_by_its_lowest_listing() {
    let dataset = recorded();
    // Two providers become marketplaces, one that publishes dollars for a machine and one that publishes euros for a GPU.
    let listed = |rows: LazyFrame| {
        let is_market = of_provider("aws").or(of_provider("seeweb"));
        let amount = |number: i128| lit(Scalar::new(gpuledger::frame::DECIMAL, AnyValue::Decimal(number, 38, 12)));
        let of_one = when(of_provider("aws")).then(amount(40_000_000_000_000)).otherwise(amount(1_234_500_000_000));
        rows.with_columns([
            when(is_market.clone()).then(lit(12)).otherwise(lit(NULL)).cast(DataType::Int32).alias("listing_count"),
            when(is_market).then(of_one).otherwise(lit(NULL)).alias("listing_amount_min"),
        ])
    };
    let usd = changed(&dataset, listed, &["--gpu", "h100", "--pricing-model", "on_demand"]).await;
    // 40 dollars for eight GPUs.
    same(price_of(&usd, "aws", "on demand"), 5.0);
    // 1.2345 euros, at the 1.1699 dollars of the day before.
    same(price_of(&usd, "seeweb", "on demand"), 12_345.0_f64 * 11_699.0 / 1e8);
    let eur = changed(&dataset, listed, &["--gpu", "h100", "--pricing-model", "on_demand", "--currency", "eur"]).await;
    same(price_of(&eur, "seeweb", "on demand"), 1.2345);
    same(price_of(&eur, "aws", "on demand"), 50_000.0_f64 / 11_590.0);
    // The others stay where they were, and the row itself still has the price of the middle listing.
    let before = changed(&dataset, |rows| rows, &["--gpu", "h100", "--pricing-model", "on_demand"]).await;
    same(price_of(&usd, "nebius", "on demand"), price_of(&before, "nebius", "on demand"));
    same(price_of(&before, "aws", "on demand"), 6.88);
    let told = cheapest::tables(&usd, NOW.parse().expect("an instant"), "").expect("they print");
    assert!(told.contains("lowest of 12 listings, the middle one at 55.04") && told.contains("40 USD/machine-hour"), "{told}");
}

#[tokio::test(flavor = "multi_thread")]
async fn somebodys_copy_of_a_vendors_price_is_not_another_provider() {
    let dataset = recorded();
    let copied = |rows: LazyFrame| {
        let kind = when(of_provider("hyperstack")).then(lit("aggregator")).otherwise(col("source_kind"));
        rows.with_column(kind.alias("source_kind"))
    };
    let found = changed(&dataset, copied, &["--gpu", "h100", "--all"]).await;
    assert!(!texts(&found.rows, "provider").contains(&"hyperstack".to_owned()));
    assert!(found.left_out.words("left out:").contains("somebody's copy of a vendor's price"));
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_sold_out_stands_for_a_provider_only_where_it_has_nothing_else() {
    let dataset = recorded();
    let is_machine = |name: &str| col("offer_label").eq(lit(name)).or(col("instance_type").eq(lit(name)));
    let sold = move |rows: LazyFrame| {
        let is_sold = is_machine("p5.48xlarge").and(col("region").eq(lit("us-west-2"))).or(of_provider("verda"));
        rows.with_column(when(is_sold).then(lit("sold_out")).otherwise(col("availability")).alias("availability"))
    };
    let args = ["--gpu", "h100", "--pricing-model", "on_demand"];
    let (before, after) = (changed(&dataset, |rows| rows, &args).await, changed(&dataset, sold, &args).await);
    same(price_of(&before, "verda", "on demand"), price_of(&after, "verda", "on demand"));
    let aws = |found: &Found| price_of(found, "aws", "on demand");
    assert!(aws(&after) >= aws(&before), "{} and {}", aws(&after), aws(&before));
    assert!(after.left_out.words("left out:").contains("sold out, of providers that have another"));
    let all = changed(&dataset, sold, &["--gpu", "h100", "--pricing-model", "on_demand", "--all", "--limit", "0"]).await;
    assert!(texts(&all.rows, "availability").contains(&"sold_out".to_owned()));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stored_price_that_does_not_follow_from_its_amount_is_not_converted() {
    let dataset = recorded();
    let wrong = |rows: LazyFrame| {
        let price =
            when(of_provider("aws")).then(col("price_native_per_hour") * lit(2.0)).otherwise(col("price_native_per_hour"));
        rows.with_column(price.alias("price_native_per_hour"))
    };
    let found = changed(&dataset, wrong, &["--gpu", "h100", "--currency", "eur"]).await;
    assert!(!texts(&found.rows, "provider").contains(&"aws".to_owned()));
    assert!(found.left_out.words("left out:").contains("cannot be worked out again"));
}

#[test]
fn the_ladder_after_a_night_is_that_of_the_verb() {
    let dataset = Dataset::new();
    let told = good(dataset.run(&["collect", "--recorded"])).data;
    let found = rows(&dataset, &["cheapest", "--gpu", "h100"]);
    let lines: Vec<&str> = told.lines().filter(|line| line.starts_with("│ H100")).collect();
    let ladder: Vec<&Value> = found.iter().filter(|row| row["ladder"] == "on demand").collect();
    assert_eq!(lines.len(), ladder.len());
    for (line, row) in lines.iter().zip(ladder) {
        let price = format!("{:.4}", number(row, "lowest_usd_per_gpu_hour"));
        assert!(line.contains(text(row, "provider")) && line.contains(&price), "{line}\n{row}");
    }
}
