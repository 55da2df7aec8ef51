//! How prices moved, asked of the program: figures that a person can work out from the lists of the nights, gaps that stay
//! gaps, and histories of other people whose trends are what their files say.
//!
//! Whole histories lie beside the checkout; without them that test says so and passes.

use std::collections::BTreeMap;
use std::io::Read as _;
use std::path::{Path, PathBuf};

use crate::support::{Dataset, write_pages};
use serde_json::Value;

fn rows(dataset: &Dataset, args: &[&str]) -> Vec<Value> {
    let said = dataset.run(&[args, &["--format", "json"]].concat());
    serde_json::from_str(&said.data).unwrap_or_else(|error| panic!("{error}: {}{}", said.data, said.talk))
}

fn number(row: &Value, column: &str) -> f64 {
    row[column].as_f64().unwrap_or_else(|| panic!("{column} of {row}"))
}

/// The middle of prices, as a person works it out.
fn middle(mut prices: Vec<f64>) -> f64 {
    prices.sort_by(f64::total_cmp);
    let half = prices.len() / 2;
    if prices.len() % 2 == 1 { prices[half] } else { (prices[half - 1] + prices[half]) / 2.0 }
}

/// Nights of Lambda and Verda at the given times, with every Lambda price of `from` changed to `to`.
fn collect(dataset: &Dataset, at: &str, from: &str, to: &str) {
    let folder = tempfile::tempdir().expect("there is room for a folder");
    for provider in ["lambda", "verda"] {
        write_pages(folder.path(), provider, |_, name| name.to_owned(), |page| page.replace(from, to));
    }
    let path = folder.path().to_str().expect("text");
    let said = dataset.run(&["collect", "--from", path, "--providers", "lambda,verda", "--at", at]);
    assert!(matches!(said.exit, Some(0 | 10)), "{}{}", said.data, said.talk);
}

#[test]
fn the_figures_of_a_day_are_those_of_its_last_night_and_a_day_without_one_is_a_gap() {
    let dataset = Dataset::new();
    for at in ["2026-08-22T06:00:00Z", "2026-08-22T18:00:00Z", "2026-08-23T18:00:00Z", "2026-08-26T18:00:00Z"] {
        let (from, to) = if at == "2026-08-22T06:00:00Z" { ("3.99", "3.89") } else { ("3.99", "3.99") };
        collect(&dataset, at, from, to);
    }
    let trend = rows(&dataset, &["trend", "--gpu", "h100"]);
    let days: Vec<&str> = trend.iter().map(|row| row["date"].as_str().expect("a day")).collect();
    assert_eq!(days, ["2026-08-22", "2026-08-23", "2026-08-26"]);
    let args = ["--gpu", "h100", "--pricing-model", "on-demand", "--os", "linux", "--limit", "10000"];
    for (day, row) in days.iter().zip(&trend) {
        let offers = rows(&dataset, &[&["offers", "--snapshot", day][..], &args].concat());
        let prices: Vec<f64> = offers
            .iter()
            .filter(|row| row["is_fractional"] == false && row["plan"].is_null() && !row["price_usd_per_gpu_hour"].is_null())
            .map(|row| number(row, "price_usd_per_gpu_hour"))
            .collect();
        assert_eq!(row["offers"].as_u64(), u64::try_from(prices.len()).ok());
        let lowest = prices.iter().copied().fold(f64::INFINITY, f64::min);
        assert!((number(row, "min_usd_per_gpu_hour") - lowest).abs() < 1e-12);
        assert!((number(row, "median_usd_per_gpu_hour") - middle(prices)).abs() < 1e-12, "{row}");
    }
    let text = dataset.run(&["trend", "--gpu", "h100", "--by", "provider"]);
    let blocks: Vec<&str> = text.data.lines().filter(|line| line.contains("│") && !line.starts_with('│')).collect();
    assert_eq!(blocks.len(), 2, "{}", text.data);
    assert!(blocks.iter().all(|line| line.contains("│▅▅  ▅│")), "two days, two gaps, a day: {}", text.data);
    let one =
        rows(&dataset, &["trend", "--gpu", "h100", "--provider", "lambda", "--since", "2026-08-23", "--until", "2026-08-25"]);
    assert_eq!(one.len(), 1);
    assert_eq!((one[0]["date"].as_str(), one[0]["providers"].as_u64()), (Some("2026-08-23"), Some(1)));
}

#[test]
fn a_chart_draws_no_line_over_a_gap_and_names_its_lines() {
    let dataset = Dataset::new();
    for day in ["2026-08-22", "2026-08-23", "2026-08-26"] {
        collect(&dataset, &format!("{day}T18:00:00Z"), "3.99", "3.99");
    }
    let file = tempfile::tempdir().expect("there is room for a folder");
    let path = file.path().join("h100.svg");
    let args = ["trend", "--gpu", "h100", "--by", "provider", "--svg", path.to_str().expect("text")];
    assert_eq!(dataset.run(&args).exit, Some(0));
    let svg = std::fs::read_to_string(&path).expect("the chart is there");
    let points = |line: &str| {
        line.split("points=\"").nth(1).map_or(0, |rest| rest.split('"').next().unwrap_or("").split_whitespace().count())
    };
    let drawn: Vec<usize> = svg
        .lines()
        .filter(|line| line.starts_with("<polyline") && line.contains("stroke-width=\"2\""))
        .map(points)
        .filter(|points| *points > 1)
        .collect();
    assert_eq!(drawn, [2, 2], "one line over two days for each provider");
    assert!(svg.contains("collected lambda") && svg.contains("collected verda"), "{svg}");
}

const MAPPING: &str = "name = 'kept'\nsource = 'kept'\nhomepage = 'https://kept.example'\nversion = 1\nform = 'csv'\n\
    [night]\ncolumn = 'day'\n[seller]\ncolumn = 'seller'\nours = { lambda = 'lambda' }\n[machine]\ntype = 'machine'\n[gpu]\n\
    label = 'card'\ncount = 'cards'\n[terms]\nos = 'linux'\n[[price]]\ncolumn = 'usd'\ncurrency = 'USD'\nunit = 'hour'\n\
    per = 'instance'\npricing_model = 'on_demand'\n";

fn import(dataset: &Dataset, lines: &str) {
    let folder = tempfile::tempdir().expect("there is room for a folder");
    let (mapping, file) = (folder.path().join("kept.toml"), folder.path().join("kept.csv"));
    std::fs::write(&mapping, MAPPING).expect("there is room");
    std::fs::write(&file, format!("day,seller,machine,card,cards,usd\n{lines}")).expect("there is room");
    let text = |path: &Path| path.to_str().expect("text").to_owned();
    let said = dataset.run(&["import", "--mapping", &text(&mapping), &text(&file)]);
    assert_eq!(said.exit, Some(0), "{}{}", said.data, said.talk);
}

#[test]
fn what_was_imported_is_left_out_unless_asked_for_and_then_stands_beside() {
    let dataset = Dataset::new();
    collect(&dataset, "2026-08-22T18:00:00Z", "3.99", "3.99");
    let before = rows(&dataset, &["trend", "--gpu", "h100"]);
    import(&dataset, "2026-08-22,lambda,a,H100 SXM,1,0.9\n2026-08-21,lambda,a,H100 SXM,2,1.8\n");
    assert_eq!(rows(&dataset, &["trend", "--gpu", "h100"]), before, "a history changes no line of what was collected");
    let said = dataset.run(&["trend", "--gpu", "h100"]);
    assert!(said.talk.contains("left out: 2 imported nights (--include-imports)"), "{}", said.talk);
    let both = rows(&dataset, &["trend", "--gpu", "h100", "--include-imports"]);
    let lines: Vec<String> = both.iter().map(|row| format!("{} {}", row["source"], row["date"])).collect();
    assert_eq!(lines, [r#""collected" "2026-08-22""#, r#""import-kept" "2026-08-21""#, r#""import-kept" "2026-08-22""#]);
    assert_eq!(both[0], before[0]);
    assert!(both[1..].iter().all(|row| (number(row, "median_usd_per_gpu_hour") - 0.9).abs() < 1e-12));
}

#[test]
fn an_index_has_one_value_of_each_provider_and_says_by_which_method() {
    let dataset = Dataset::new();
    import(
        &dataset,
        "2026-08-22,lambda,a,H100 SXM,1,2\n2026-08-22,lambda,b,H100 SXM,2,8\n2026-08-22,lambda,c,H100 SXM,4,16\n\
         2026-08-22,one,a,H100 SXM,1,1\n2026-08-22,two,a,H100 PCIe,1,9\n2026-08-23,one,a,H100 SXM,1,1\n",
    );
    let index = rows(&dataset, &["trend", "--index", "h100", "--include-imports"]);
    let of = |row: &Value| (number(row, "index_usd_per_gpu_hour"), row["provider_names"].as_str().expect("names").to_owned());
    // Medians are 4, 1 and 9; the next day has one provider, and says so.
    assert_eq!(index.iter().map(of).collect::<Vec<_>>(), [(4.0, "lambda,one,two".to_owned()), (1.0, "one".to_owned())]);
    assert!(index.iter().all(|row| row["method"] == "median-of-provider-medians-1"));
    let both = dataset.run(&["trend", "--index", "h100", "--gpu", "h100"]);
    assert_eq!(both.exit, Some(2), "an index is of one kind of price");
}

#[test]
fn what_is_not_there_is_said() {
    let dataset = Dataset::new();
    assert_eq!(dataset.run(&["trend", "--gpu", "h100"]).exit, Some(2));
    collect(&dataset, "2026-08-22T18:00:00Z", "3.99", "3.99");
    for (args, words) in [
        (["--gpu", "q900"], "q900"),
        (["--provider", "nobody"], "there are lambda, verda"),
        (["--pricing-model", "rented"], "capacity_block"),
    ] {
        let gpu: &[&str] = if args[0] == "--gpu" { &[] } else { &["--gpu", "h100"] };
        let said = dataset.run(&[&["trend"][..], gpu, &args].concat());
        let talk = said.talk.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(said.exit == Some(2) && talk.contains(words), "{args:?}: {talk}");
    }
    let said = dataset.run(&["trend", "--gpu", "MI300X"]);
    assert_eq!(said.exit, Some(0));
    assert!(said.talk.contains("no day has such a price of MI300X"), "{}", said.talk);
}

/// A file of the histories; `None` where they are not there.
fn history(name: &str) -> Option<PathBuf> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../shared/data/history").join(name);
    if !path.is_file() {
        eprintln!("skipped: ../shared is not beside this checkout");
        return None;
    }
    Some(path)
}

fn table(path: &Path) -> Vec<BTreeMap<String, String>> {
    let mut text = String::new();
    let file = std::fs::File::open(path).expect("the file opens");
    flate2::read::GzDecoder::new(file).read_to_string(&mut text).expect("it inflates");
    csv::Reader::from_reader(text.as_bytes()).deserialize().map(|row| row.expect("the table reads")).collect()
}

#[test]
fn the_trend_of_a_history_is_what_its_file_says() {
    let Some(file) = history("gcp-gcosts/gcp_gpu_machine_prices.csv.gz") else { return };
    let until = if std::env::var_os("GPULEDGER_LONG_HISTORIES").is_some() { "2030-01-01" } else { "2022-03-08" };
    let dataset = Dataset::new();
    let mapping = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/mappings/gcosts.toml");
    let args = ["import", "--mapping", mapping.to_str().expect("text"), "--until", until, file.to_str().expect("text")];
    assert!(matches!(dataset.run(&args).exit, Some(0 | 10)));
    // Of several tables of a day the last; machines with 1, 2, 4, 8 and 16 cards of 40 GB. Those of 80 GB are another card.
    let is_of_card = |row: &&BTreeMap<String, String>| {
        row["snapshot_date"].as_str() <= until && !row["a100_count"].is_empty() && !row["machine_type"].starts_with("a2-ultragpu")
    };
    let mut days: BTreeMap<String, (String, BTreeMap<String, Vec<f64>>)> = BTreeMap::new();
    for row in table(&file).iter().filter(is_of_card) {
        let day = days.entry(row["snapshot_date"].clone()).or_default();
        if day.0 != row["commit"] {
            *day = (row["commit"].clone(), BTreeMap::new());
        }
        let cards: f64 = row["a100_count"].parse().expect("a count");
        if let Ok(price) = row["hour"].parse::<f64>() {
            day.1.entry(format!("gcp {}", row["region"])).or_default().push(price / cards);
        }
    }
    let trend = rows(&dataset, &["trend", "--gpu", "a100 sxm 40gb", "--by", "region", "--include-imports"]);
    let (mut seen, lines) = (0, days.values().map(|(_, regions)| regions.len()).sum::<usize>());
    for row in &trend {
        let prices = &days[row["date"].as_str().expect("a day")].1[row["line"].as_str().expect("a line")];
        // A region of whose rows some were held back has another median.
        if row["offers"].as_u64() != u64::try_from(prices.len()).ok() {
            continue;
        }
        assert!((number(row, "median_usd_per_gpu_hour") - middle(prices.clone())).abs() < 1e-8, "{row}");
        let lowest = prices.iter().copied().fold(f64::INFINITY, f64::min);
        assert!((number(row, "min_usd_per_gpu_hour") - lowest).abs() < 1e-8, "{row}");
        seen += 1;
    }
    eprintln!("gcosts: {seen} of {lines} medians of a day and region are those of the file; of the others rows were held back");
    assert!(seen * 10 >= lines * 9 && seen <= lines, "{seen} of {lines}");
}
