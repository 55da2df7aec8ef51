//! The comparison that buying guides get wrong, asked of the program itself: hardware by exact machine type, names that do
//! not exist, and prices per GPU-hour in dollars and yuan.

use std::path::Path;
use std::process::{Command, Output};

use serde_json::Value;

fn program(output: &Path, args: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_gpuledger"));
    command.args(args).env("GPULEDGER_OUTPUT", output).env("NO_COLOR", "1").output().expect("the program starts")
}

fn rows(output: &Output) -> Vec<Value> {
    serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{error}: {}", String::from_utf8_lossy(&output.stderr)))
}

#[test]
fn hardware_is_that_of_the_exact_machine_type() {
    for (machine, provider, model, count, memory_gb) in [
        ("p4d.24xlarge", "aws", "A100 SXM 40GB", "8", "40"),
        ("p4de.24xlarge", "aws", "A100 SXM 80GB", "8", "80"),
        ("p5.48xlarge", "aws", "H100 SXM", "8", "80"),
        ("Standard_ND96asr_v4", "azure", "A100 SXM 40GB", "8", "40"),
        ("Standard_ND96amsr_A100_v4", "azure", "A100 SXM 80GB", "8", "80"),
        ("ecs.gn7i-c8g1.2xlarge", "alibaba", "A10", "1", "24"),
        ("ecs.gn7i-c32g1.32xlarge", "alibaba", "A10", "4", "24"),
        ("GN10Xp.20XLARGE320", "tencent", "V100 SXM2 32GB", "8", "32"),
        ("a2-ultragpu-8g", "gcp", "A100 SXM 80GB", "8", "80"),
        ("BM.GPU4.8", "oci", "A100 SXM 40GB", "8", "40"),
    ] {
        let found = rows(&program(Path::new("none"), &["hardware", machine, "--format", "json"]));
        assert_eq!(found.len(), 1, "{machine}: {found:?}");
        let text = |column: &str| found[0][column].to_string().trim_matches('"').to_owned();
        let read = [text("provider"), text("gpu_model"), text("gpu_count"), text("gpu_memory_gb")];
        assert_eq!(read, [provider, model, count, memory_gb], "{machine}");
        assert!(text("source").len() > 10, "{machine} has no source");
    }
}

#[test]
fn every_machine_can_be_listed_those_with_a_third_of_a_card_too() {
    let all = rows(&program(Path::new("none"), &["hardware", "--format", "json"]));
    let known: usize = gpuledger_scrapers::ALL.iter().map(|scraper| scraper.machines().len()).sum();
    assert!(known > 400 && all.len() == known, "{} of {known}", all.len());
    let third = all.iter().find(|row| row["instance_type"] == "Standard_NV12ads_A10_v5").expect("it is in the table");
    assert_eq!(third["gpu_count"].to_string(), "0.333333333333");
    assert!(all.iter().all(|row| !row["source"].is_null()), "every line has a source");
}

#[test]
fn machines_that_do_not_exist_are_refused_with_the_nearest_that_do() {
    for (typed, near) in [
        ("ecs.gn7i.8xlarge", "ecs.gn7i-2x.8xlarge"),
        ("GN10X.20XLARGE320", "GN10Xp.20XLARGE320"),
        ("p4d.24xlarg", "p4d.24xlarge"),
        ("Standard_ND96amsr_A100_v5", "Standard_ND96amsr_A100_v4"),
    ] {
        let refused = program(Path::new("none"), &["hardware", typed]);
        let said = String::from_utf8_lossy(&refused.stderr).split_whitespace().collect::<String>();
        assert_eq!(refused.status.code(), Some(2), "{typed}");
        assert!(refused.stdout.is_empty() && said.contains(near), "{typed}: {said}");
    }
}

#[test]
fn prices_per_gpu_are_prices_per_instance_over_the_gpus_in_dollars_and_in_yuan() {
    let folder = tempfile::tempdir().expect("there is room for a folder");
    let collected = program(folder.path(), &["collect", "--recorded"]);
    assert_eq!(collected.status.code(), Some(0), "{}", String::from_utf8_lossy(&collected.stderr));
    let offers = |machine: &str| {
        let args = ["offers", "--instance-type", machine, "--pricing-model", "on-demand", "--os", "linux", "--format", "json"];
        rows(&program(folder.path(), &args))
    };
    let number = |row: &Value, column: &str| row[column].as_f64().unwrap_or_else(|| panic!("{column} of {row}"));
    let p4d = offers("p4d.24xlarge").into_iter().find(|row| row["region"] == "us-east-1").expect("it is on sale in us-east-1");
    assert_eq!(p4d["published_amount"].to_string(), "21.957642");
    assert_eq!((number(&p4d, "price_usd_per_hour"), number(&p4d, "price_usd_per_gpu_hour")), (21.957642, 2.74470525));
    // One dollar was 6.7513… yuan that day: the rates of one and the same day, and one rounding.
    let (usd, cny) = (number(&p4d, "price_usd_per_gpu_hour"), number(&p4d, "price_cny_per_gpu_hour"));
    for machine in
        ["p4d.24xlarge", "Standard_ND96amsr_A100_v4", "Standard_ND96asr_v4", "ecs.gn7i-c8g1.2xlarge", "GN10X.2XLARGE40"]
    {
        let found = offers(machine);
        assert!(!found.is_empty(), "{machine}");
        for row in &found {
            let count = number(row, "gpu_count");
            let (of_machine, of_gpu) = (number(row, "price_usd_per_hour"), number(row, "price_usd_per_gpu_hour"));
            assert!((of_gpu * count - of_machine).abs() < 1e-12 * of_machine, "{row}");
            let per_dollar = number(row, "price_cny_per_gpu_hour") / of_gpu;
            assert!((6.0..8.0).contains(&per_dollar) && (cny / usd - per_dollar).abs() < 0.2, "{row}");
            if row["published_currency_code"] == "CNY" {
                let native = number(row, "price_native_per_gpu_hour");
                assert_eq!(native.to_bits(), number(row, "price_cny_per_gpu_hour").to_bits(), "{row}");
            }
        }
    }
    let refused = program(folder.path(), &["offers", "--instance-type", "ecs.gn7i.8xlarge"]);
    assert_eq!(refused.status.code(), Some(2));
    assert!(
        String::from_utf8_lossy(&refused.stderr).contains("ecs.gn7i-c8g1.2xlarge"),
        "{}",
        String::from_utf8_lossy(&refused.stderr)
    );
}
