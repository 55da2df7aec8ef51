//! Bad input, provider by provider: every crafted recording goes through a whole night beside a healthy provider.
//!
//! Whatever is wrong with a page costs a row or a scope of its own provider, with a reason that is written down; the
//! healthy provider is published all the same.

use std::fs;
use std::path::Path;

use clap::Parser as _;
use gpuledger::cli::{Cli, Collect, Verb};
use gpuledger::exit::Exit;
use gpuledger::run::{self, Night};
use gpuledger::validate::Severity;
use gpuledger_scrapers::ALL;
use gpuledger_scrapers::recordings::{self, Recording};
use serde_json::Value;

fn write_pages(folder: &Path, recording: &Recording) {
    let folder = folder.join(recording.provider);
    fs::create_dir_all(&folder).expect("the folder can be made");
    for page in &recording.pages {
        fs::write(folder.join(&page.name), &page.body).expect("the file can be written");
    }
}

fn collect_args(words: &[&str]) -> Collect {
    let cli = Cli::try_parse_from([&["gpuledger", "collect"], words].concat()).expect("the words are right");
    match cli.verb {
        Verb::Collect(args) => args,
        other => panic!("{other:?}"),
    }
}

/// A night of a crafted recording and the healthy pages of another provider.
fn night(recording: &Recording, healthy: &str) -> Night {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let pages = folder.path().join("pages");
    write_pages(&pages, recording);
    write_pages(&pages, &recordings::newest(healthy).expect("it has a recording"));
    let (from, output) = (pages.display().to_string(), folder.path().join("out").display().to_string());
    let args = collect_args(&["--from", &from, "--output", &output, "--at", "2026-11-01T00:00:00Z"]);
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    runtime.block_on(run::collect(&args)).unwrap_or_else(|error| panic!("{} {}: {error}", recording.provider, recording.case))
}

fn crafted(provider: &str) -> Vec<Recording> {
    recordings::of(provider).into_iter().filter(|recording| !recording.is_dated()).collect()
}

/// A night for each crafted page takes minutes: every fourth of a provider is taken, and each with `GPULEDGER_EVERY_CASE`.
fn step() -> usize {
    if std::env::var_os("GPULEDGER_EVERY_CASE").is_some() { 1 } else { 4 }
}

#[test]
fn whatever_is_wrong_with_one_provider_the_other_is_published_and_the_reason_is_kept() {
    std::thread::scope(|threads| {
        for scraper in ALL {
            threads.spawn(|| crafted(&scraper.manifest().provider).iter().step_by(step()).for_each(other_is_published));
        }
    });
}

fn other_is_published(recording: &Recording) {
    let healthy = if recording.provider == "oci" { "vultr" } else { "oci" };
    let night = night(recording, healthy);
    let name = format!("{} {}", recording.provider, recording.case);
    assert!(matches!(night.exit, Exit::Good | Exit::Partial), "{name}: {:?}", night.exit);
    let status = |provider: &str| night.record.providers.iter().find(|record| record.provider == provider).expect("it was tried");
    assert_eq!(status(healthy).status, "complete", "{name}");
    assert!(status(healthy).rows > 0, "{name}");
    let sick = status(recording.provider);
    let has_no_rates = night.findings.iter().any(|finding| finding.rule == "no_rates_at_all");
    assert_eq!(night.exit == Exit::Partial, sick.status != "complete" || has_no_rates, "{name}");
    assert!(sick.status == "complete" || sick.reason.as_ref().is_some_and(|reason| !reason.is_empty()), "{name} has no reason");
    let held = night
        .findings
        .iter()
        .filter(|finding| finding.severity == Severity::QuarantineRow && finding.provider == recording.provider);
    assert!(held.clone().all(|finding| !finding.reason.is_empty() && !finding.raw_place.is_empty()), "{name}");
    if sick.status == "complete" {
        assert_eq!(held.count(), sick.skipped + sick.quarantined, "{name}");
    }
}

#[test]
fn a_gpu_label_that_nobody_knows_is_held_back_with_its_name() {
    let mut recording = recordings::newest("lambda").expect("it has a recording");
    for page in &mut recording.pages {
        let text = String::from_utf8(page.body.clone()).expect("the page is text");
        page.body = text.replacen("NVIDIA H100 PCIe", "NVIDIA H999 PCIe", 2).into_bytes();
    }
    let night = night(&recording, "oci");
    let held: Vec<_> = night.findings.iter().filter(|finding| finding.rule == "unknown_gpu_label").collect();
    assert_eq!(held.len(), 1, "{held:?}");
    assert!(held[0].reason.contains("H999") && held[0].provider == "lambda");
    let lambda = night.record.providers.iter().find(|record| record.provider == "lambda").expect("it was tried");
    assert_eq!((lambda.status, lambda.rows, lambda.quarantined), ("complete", 21, 1));
}

#[test]
fn two_prices_of_one_offer_are_both_held_back_and_a_repeated_row_is_one() {
    let recording = recordings::newest("vultr").expect("it has a recording");
    let rows_with_a_second_plan = |price: Option<f64>| {
        let mut recording = recording.clone();
        for page in &mut recording.pages {
            let mut answer: Value = serde_json::from_slice(&page.body).expect("the page is JSON");
            let Some(plans) = answer.get_mut("plans").and_then(Value::as_array_mut) else { continue };
            let is_gpu = |plan: &&Value| plan["id"] == "vcg-a100-12c-120g-80vram";
            let mut plan = plans.iter().find(is_gpu).expect("the plan is there").clone();
            if let Some(price) = price {
                plan["hourly_cost"] = price.into();
            }
            plans.push(plan);
            let total = plans.len();
            answer["meta"]["total"] = total.into();
            page.body = serde_json::to_vec(&answer).expect("it is JSON");
        }
        let night = night(&recording, "oci");
        let record = night.record.providers.iter().find(|record| record.provider == "vultr").expect("it was tried").clone();
        assert_eq!(record.status, "complete", "{:?}", record.reason);
        let conflicts = night.findings.iter().filter(|finding| finding.rule == "key_conflict").count();
        (record.rows, record.quarantined, conflicts)
    };
    let (all, held_back, _) = rows_with_a_second_plan(None);
    assert_eq!((all, held_back), (17, 0), "the same plan twice at one price is one offer");
    let places = 17 - rows_with_a_second_plan(Some(7.5)).0;
    assert!(places >= 1);
    assert_eq!(rows_with_a_second_plan(Some(7.5)), (17 - places, 2 * places, 2 * places), "neither of two prices is chosen");
}
