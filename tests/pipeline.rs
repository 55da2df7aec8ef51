//! Pages → published snapshot → read back: the values that must come out, from the recordings and from real answers that
//! somebody else recorded.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;
use std::process::Command;

struct Dataset(tempfile::TempDir);

impl Dataset {
    fn new() -> Self {
        Self(tempfile::tempdir().expect("a temporary folder"))
    }

    fn run(&self, args: &[&str]) -> (i32, String) {
        let mut command = Command::new(env!("CARGO_BIN_EXE_gpuledger"));
        let output = command.args(args).env("GPULEDGER_OUTPUT", self.0.path().join("out")).output().expect("the program runs");
        let text = String::from_utf8(output.stdout).expect("it prints text");
        (output.status.code().expect("it ends by itself"), text)
    }

    /// Copies files to where `--from` looks for a provider's pages.
    fn page(&self, provider: &str, file: &Path) {
        let folder = self.0.path().join("pages").join(provider);
        fs::create_dir_all(&folder).expect("the folder can be made");
        fs::copy(file, folder.join(file.file_name().expect("a file has a name"))).expect("the file can be copied");
    }

    fn collect_pages(&self, at: &str) -> (i32, String) {
        let pages = self.0.path().join("pages").display().to_string();
        self.run(&["collect", "--from", &pages, "--at", at])
    }

    fn offers(&self, args: &[&str]) -> Vec<Value> {
        let (code, text) = self.run(&[&["offers", "--format", "json", "--limit", "100000"], args].concat());
        assert_eq!(code, 0);
        serde_json::from_str(&text).expect("it is JSON")
    }
}

/// Real answers, kept beside the checkout and never in it.
fn shared(file: &str) -> Option<PathBuf> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../shared").join(file);
    if !path.exists() {
        eprintln!("skipped: ../shared is not beside this checkout");
        return None;
    }
    Some(path)
}

fn number(row: &Value, column: &str) -> f64 {
    row[column].as_f64().unwrap_or_else(|| panic!("{column} of {row}"))
}

/// The nearest float of a decimal: comparable prices are exactly that.
#[track_caller]
fn assert_price(row: &Value, column: &str, expected: f64) {
    assert_eq!(number(row, column).to_bits(), expected.to_bits(), "{column} of {row}");
}

#[test]
fn the_recorded_night_has_every_provider_and_a_price_in_dollars_and_yuan_on_every_whole_card() {
    let dataset = Dataset::new();
    assert_eq!(dataset.run(&["collect", "--recorded"]).0, 0);
    let rows = dataset.offers(&[]);
    let mut by_provider: BTreeMap<&str, usize> = BTreeMap::new();
    for row in &rows {
        *by_provider.entry(row["provider"].as_str().expect("a provider")).or_insert(0) += 1;
        let flags = row["flags"].as_str().expect("flags are text");
        assert!(!flags.contains("rate"), "{row}");
        if flags.contains("unknown_hardware") && row["gpu_count"].is_null() {
            assert!(number(row, "price_usd_per_hour") > 0.0 && row["price_usd_per_gpu_hour"].is_null(), "{row}");
        } else if !flags.contains("derived_share") {
            assert!(number(row, "price_usd_per_gpu_hour") > 0.0 && number(row, "price_cny_per_gpu_hour") > 0.0, "{row}");
        }
    }
    let sources = gpuledger_scrapers::ALL.iter().map(|scraper| scraper.manifest());
    let sellers: Vec<_> =
        sources.filter(|manifest| manifest.published.is_some()).map(|manifest| manifest.provider.as_str()).collect();
    assert_eq!(by_provider.keys().copied().collect::<Vec<_>>(), sellers);
}

#[test]
fn a_yuan_price_is_converted_at_the_rates_of_its_own_day() {
    let dataset = Dataset::new();
    assert_eq!(dataset.run(&["collect", "--recorded", "--providers", "tencent,ecb"]).0, 0);
    let rows = dataset.offers(&["--pricing-model", "on_demand"]);
    let t4 = rows.iter().find(|row| row["instance_type"] == "GN7.2XLARGE32").expect("the machine is there");
    assert_eq!(t4["published_amount"].to_string(), "8.68");
    assert_eq!(t4["rate_date"], "2026-07-31");
    assert_price(t4, "price_cny_per_gpu_hour", 8.68);
    // 1 EUR = 1.1485 USD = 7.7539 CNY on that day, so 8.68 CNY are 8.68 × 1.1485 ÷ 7.7539 USD, rounded once.
    let rates = rates_of(&dataset, "2026-07-31");
    assert_eq!((rates["USD"].as_str(), rates["CNY"].as_str()), ("1.1485", "7.7539"));
    assert_price(t4, "price_usd_per_gpu_hour", 1.28567301615961);
    let half = rows.iter().find(|row| row["instance_type"] == "GN10X.LARGE20").expect("the slice is there");
    assert_eq!(half["gpu_count"].to_string(), "0.5");
    assert_eq!(half["is_fractional"], true);
    assert_price(half, "price_cny_per_gpu_hour", 18.04);
}

fn rates_of(dataset: &Dataset, day: &str) -> BTreeMap<String, String> {
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    let day: chrono::NaiveDate = day.parse().expect("a day");
    let rates =
        runtime.block_on(gpuledger::snapshot::read::rates(&dataset.0.path().join("out"), day, day)).expect("there are rates");
    let cell = |column: &str, row: usize| gpuledger::frame::Cell::at(&rates, column, row).expect("a cell").text();
    (0..rates.height()).map(|row| (cell("currency_code", row), cell("units_per_eur", row))).collect()
}

#[test]
fn without_rates_a_foreign_price_is_kept_and_no_dollar_price_is_made_up() {
    let dataset = Dataset::new();
    let (code, _) = dataset.run(&["collect", "--recorded", "--providers", "tencent"]);
    assert_eq!(code, 10, "a provider of which no price can be compared makes the night partial");
    for row in dataset.offers(&[]) {
        assert_eq!(row["published_currency_code"], "CNY");
        assert!(
            row["price_usd_per_gpu_hour"].is_null() && row["usd_per_native"].is_null() && row["rate_date"].is_null(),
            "{row}"
        );
        assert!(row["flags"].as_str().expect("text").contains("rate_missing"), "{row}");
        assert!(number(&row, "price_native_per_hour") > 0.0);
    }
}

#[test]
fn real_azure_answer_of_east_us() {
    let Some(file) = shared("samples/azure/retail_prices_eastus_nd_2026-07-27.json") else { return };
    let dataset = Dataset::new();
    dataset.page("azure", &file);
    assert_eq!(dataset.collect_pages("2026-07-27T12:00:00Z").0, 0);
    let rows = dataset.offers(&[]);
    let of = |model: &str, months: Option<i64>| -> Vec<&Value> {
        let is_meant = |row: &&Value| {
            row["instance_type"] == "Standard_ND96isr_H100_v5"
                && row["pricing_model"] == model
                && row["commitment_months"].as_i64() == months
        };
        rows.iter().filter(is_meant).collect()
    };
    let on_demand = of("on_demand", None);
    assert_eq!(on_demand.len(), 1);
    assert_eq!(on_demand[0]["published_amount"].to_string(), "98.32");
    assert_price(on_demand[0], "price_usd_per_hour", 98.32);
    assert_price(on_demand[0], "price_usd_per_gpu_hour", 12.29);
    let (one, three) = (of("reserved", Some(12)), of("reserved", Some(36)));
    assert_eq!(one[0]["published_amount"].to_string(), "551221");
    assert_eq!(one[0]["published_unit"], "term");
    assert_price(one[0], "price_usd_per_hour", 551_221.0 / 8_760.0);
    assert_price(one[0], "price_usd_per_gpu_hour", 551_221.0 / 70_080.0);
    assert_price(three[0], "price_usd_per_hour", 1_134_310.0 / 26_280.0);
    // Dev/test and low-priority rows are neither on demand nor spot.
    let low: Vec<String> =
        rows.iter().filter(|row| row["pricing_model"] == "low_priority").map(|row| row["published_amount"].to_string()).collect();
    assert_eq!(low.len(), 2);
    assert!(low.contains(&"12.645".to_owned()) && low.contains(&"6.554".to_owned()), "{low:?}");
    assert!(rows.iter().all(|row| row["published_amount"] != 4.071514 && row["published_amount"] != 5.439));
}

#[test]
fn real_oci_list_joined_with_its_shapes() {
    let Some(file) = shared("samples/oci/products_gpu_usd_2026-08-22.json") else { return };
    let dataset = Dataset::new();
    dataset.page("oci", &file);
    assert_eq!(dataset.collect_pages("2026-08-22T12:00:00Z").0, 0);
    let rows = dataset.offers(&[]);
    let row = |shape: &str| rows.iter().find(|row| row["instance_type"] == shape).unwrap_or_else(|| panic!("{shape}"));
    for (shape, per_gpu, per_hour) in [
        ("BM.GPU.H100.8", 10.0, 80.0),
        ("BM.GPU.L40S.4", 3.5, 14.0),
        ("BM.GPU.B200.8", 14.0, 112.0),
        ("BM.GPU.GB200.4", 16.0, 64.0),
    ] {
        assert_price(row(shape), "price_usd_per_gpu_hour", per_gpu);
        assert_price(row(shape), "price_usd_per_hour", per_hour);
    }
    assert_eq!(row("BM.GPU.GB200.4")["gpu_model"], "GB200");
    assert_eq!(rows.len(), 21);
}

#[test]
fn real_oci_list_of_an_earlier_year_as_a_gzip_file() {
    let Some(file) = shared("data/samples/oci/oci_products_usd_full.json.gz") else { return };
    let dataset = Dataset::new();
    dataset.page("oci", &file);
    assert_eq!(dataset.collect_pages("2024-03-01T00:00:00Z").0, 0);
    let rows = dataset.offers(&[]);
    assert_eq!(rows.len(), 12);
    assert!(rows.iter().any(|row| row["instance_type"] == "BM.GPU.H100.8" && row["published_amount"] == 10));
}

#[test]
fn real_vultr_answers() {
    let (Some(vms), Some(metal)) =
        (shared("samples/vultr/gpuhunt_vm_instances.json"), shared("samples/vultr/gpuhunt_bare_metal.json"))
    else {
        return;
    };
    let dataset = Dataset::new();
    dataset.page("vultr", &vms);
    dataset.page("vultr", &metal);
    assert_eq!(dataset.collect_pages("2026-08-22T12:00:00Z").0, 0);
    let rows = dataset.offers(&[]);
    let row = |id: &str, model: &str| {
        rows.iter()
            .find(|row| row["instance_type"] == id && row["pricing_model"] == model)
            .unwrap_or_else(|| panic!("{id} {model}"))
    };
    assert_price(row("vcg-a100-12c-120g-80vram", "on_demand"), "price_usd_per_gpu_hour", 2.397);
    assert_price(row("vbm-112c-2048gb-8-h100-gpu", "on_demand"), "price_usd_per_gpu_hour", 2.99);
    assert_price(row("vbm-112c-2048gb-8-h100-gpu", "spot"), "price_usd_per_gpu_hour", 2.3);
    assert_price(row("vbm-256c-2048gb-8-mi300x-gpu", "on_demand"), "price_usd_per_gpu_hour", 2.19);
    let slice = row("vcg-a100-1c-6g-4vram", "on_demand");
    assert!(slice["price_usd_per_gpu_hour"].is_null() && slice["is_fractional"] == true, "{slice}");
}

#[test]
fn real_lambda_excerpt_reads_row_by_row_and_is_refused_as_a_night() {
    let Some(file) = shared("samples/lambda/lambda_20260109103934.html") else { return };
    let dataset = Dataset::new();
    let (code, text) = dataset.run(&["parse", "lambda", &file.display().to_string(), "--format", "json"]);
    assert_eq!(code, 0);
    let rows: Vec<Value> = serde_json::from_str(&text).expect("it is JSON");
    let found: Vec<(String, f64, f64)> = rows
        .iter()
        .map(|row| {
            (
                row["gpu_model"].as_str().expect("a model").to_owned(),
                number(row, "price_usd_per_gpu_hour"),
                number(row, "price_usd_per_hour"),
            )
        })
        .collect();
    let expected = [
        ("B200", 4.99, 39.92),
        ("H100 SXM", 2.99, 23.92),
        ("A100 SXM 80GB", 1.79, 14.32),
        ("A100 SXM 40GB", 1.29, 10.32),
        ("V100 SXM2 16GB", 0.55, 4.4),
    ];
    assert_eq!(found, expected.map(|(model, gpu, machine)| (model.to_owned(), gpu, machine)));
    dataset.page("lambda", &file);
    let (code, text) = dataset.collect_pages("2026-01-09T12:00:00Z");
    assert_eq!(code, 11);
    assert!(text.contains("tab `4x` has no table"), "{text}");
}

#[test]
fn real_exchange_rates_on_a_sunday_a_holiday_and_in_a_gap() {
    let Some(file) = shared("data/fx/eurofxref-hist_2023-01-02_2026-10-30.csv") else { return };
    let Some(azure) = shared("samples/azure/retail_prices_eastus_nd_2026-07-27.json") else { return };
    let dataset = Dataset::new();
    dataset.page("ecb", &file);
    dataset.page("azure", &azure);
    // Price seen at … → the day whose rates hold: a Sunday, Easter Monday, a morning before and an evening after four.
    let cases = [
        ("2026-08-23T12:00:00Z", Some("2026-08-21")),
        ("2026-04-06T12:00:00Z", Some("2026-04-02")),
        ("2026-10-30T08:00:00Z", Some("2026-10-29")),
        ("2026-10-30T20:00:00Z", Some("2026-10-30")),
        ("2026-11-06T12:00:00Z", Some("2026-10-30")),
        ("2026-11-07T12:00:00Z", None),
    ];
    for (at, day) in cases {
        let (code, text) = dataset.collect_pages(at);
        assert_eq!(code, 0, "{text}");
        for row in dataset.offers(&["--snapshot", &at.replace(':', "-")]) {
            assert_eq!(row["rate_date"].as_str(), day, "{at}");
            assert_eq!(row["price_cny_per_gpu_hour"].is_null(), day.is_none(), "{at}");
            assert_eq!(row["flags"].as_str().expect("text").contains("rate_stale"), day.is_none(), "{at}");
            assert!(number(&row, "price_usd_per_gpu_hour") > 0.0, "a dollar needs no rate");
        }
    }
    let (_, text) = dataset.run(&["snapshots", "--format", "json"]);
    assert_eq!(serde_json::from_str::<Vec<Value>>(&text).expect("it is JSON").len(), cases.len());
    assert_eq!(rates_of(&dataset, "2026-10-30").len(), 29);
    assert!(rates_of(&dataset, "2026-08-23").is_empty(), "a Sunday has no rates");
    assert!(!rates_of(&dataset, "2026-10-30").contains_key("BGN"), "N/A is no rate");
}
