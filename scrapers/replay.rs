//! Every recording of every provider, one expectation each, beside the recording.
//!
//! Expectations change only by a person who has read the difference.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::path::Path;

use gpuledger_scrapers::contract::{Parsed, PublishedOffer, ScrapeError};
use gpuledger_scrapers::listings::Listings;
use gpuledger_scrapers::recordings::{self, Recording};
use gpuledger_scrapers::{ALL, read};

#[test]
fn every_recording_reads_as_expected() {
    for scraper in ALL {
        for recording in recordings::of(&scraper.manifest().provider) {
            let text = render(&recording, &read(*scraper, recording.pages.clone()));
            let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join(recording.provider).join("expected");
            let mut settings = insta::Settings::clone_current();
            settings.set_snapshot_path(folder);
            settings.set_prepend_module_to_snapshot(false);
            settings.set_omit_expression(true);
            settings.bind(|| insta::assert_snapshot!(recording.case, text));
        }
    }
}

#[test]
fn a_dated_recording_is_complete_and_a_crafted_one_states_its_change() {
    for scraper in ALL {
        let provider = &scraper.manifest().provider;
        let (dated, crafted): (Vec<_>, Vec<_>) = recordings::of(provider).into_iter().partition(Recording::is_dated);
        assert!(!dated.is_empty(), "{provider} has no dated recording");
        assert!(!crafted.is_empty(), "{provider} has no crafted recording");
        for recording in dated {
            for (scope, parsed) in read(*scraper, recording.pages) {
                let parsed = parsed.unwrap_or_else(|error| panic!("{provider} {} {scope}: {error}", recording.case));
                assert!(!parsed.offers.is_empty() || !parsed.rates.is_empty(), "{provider} {} {scope} is empty", recording.case);
            }
        }
        for recording in crafted {
            assert!(recording.receipt.change.is_some(), "{provider} {} does not state its change", recording.case);
        }
    }
}

#[test]
fn every_manifest_is_about_its_folder_and_the_registry_is_sorted() {
    let names: Vec<_> = ALL.iter().map(|scraper| scraper.manifest().provider.as_str()).collect();
    assert!(names.is_sorted(), "{names:?}");
    for scraper in ALL {
        let manifest = scraper.manifest();
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join(&manifest.provider);
        assert!(folder.join("manifest.toml").is_file(), "{}", manifest.provider);
        assert!(!manifest.start(false).is_empty(), "{} starts with no page", manifest.provider);
    }
}

#[test]
fn the_ways_to_buy_in_a_manifest_are_those_of_its_recordings() {
    for scraper in ALL {
        let manifest = scraper.manifest();
        let Some(published) = &manifest.published else { continue };
        let read: BTreeSet<_> = recordings::of(&manifest.provider)
            .into_iter()
            .flat_map(|recording| read(*scraper, recording.pages))
            .filter_map(|(_, parsed)| parsed.ok())
            .flat_map(|parsed| parsed.offers)
            .map(|offer| offer.terms.pricing_model)
            .collect();
        let read: Vec<_> = read.into_iter().collect();
        assert_eq!(published.pricing_models, read, "{}", manifest.provider);
    }
}

#[test]
fn cut_off_empty_and_foreign_pages_are_refused_by_every_parser() {
    for scraper in ALL {
        for recording in recordings::of(&scraper.manifest().provider).into_iter().filter(Recording::is_dated) {
            for damaged in [cut as fn(&mut Vec<u8>), empty, html, gzip] {
                let mut pages = recording.pages.clone();
                for page in &mut pages {
                    damaged(&mut page.body);
                }
                let results = read(*scraper, pages);
                assert!(results.values().all(Result::is_err), "{} {} took a damaged page", recording.provider, recording.case);
            }
        }
    }
}

fn cut(body: &mut Vec<u8>) {
    body.truncate(body.len() / 2);
}

fn empty(body: &mut Vec<u8>) {
    body.clear();
}

fn html(body: &mut Vec<u8>) {
    *body = b"<!doctype html><title>Just a moment...</title><p>Checking your browser".to_vec();
}

fn gzip(body: &mut Vec<u8>) {
    body.splice(0..0, [0x1f, 0x8b, 0x08, 0x00]);
}

fn render(recording: &Recording, scopes: &BTreeMap<String, Result<Parsed, ScrapeError>>) -> String {
    let mut text = String::new();
    if let Some(change) = &recording.receipt.change {
        let _ = writeln!(text, "change: {change}\n");
    }
    for (scope, result) in scopes {
        let _ = writeln!(text, "== {scope}");
        match result {
            Err(error) => {
                let _ = writeln!(text, "refused [{}]: {error}", error.code());
            }
            Ok(parsed) => render_parsed(&mut text, parsed),
        }
    }
    text
}

fn render_parsed(text: &mut String, parsed: &Parsed) {
    let rows: Vec<Vec<String>> = parsed.offers.iter().map(offer_cells).collect();
    aligned(text, &rows);
    for rate in &parsed.rates {
        let _ = writeln!(
            text,
            "{}  1 EUR = {} {}  {} {}",
            rate.date, rate.units_per_eur, rate.currency_code, rate.place.page, rate.place.at
        );
    }
    for skipped in &parsed.skipped {
        let _ = writeln!(
            text,
            "skipped [{}] {}: {}  {} {}",
            skipped.reason.code(),
            skipped.label,
            skipped.reason,
            skipped.place.page,
            skipped.place.at
        );
    }
    for (reason, rows) in &parsed.out_of_scope {
        let _ = writeln!(text, "left out: {rows} × {reason}");
    }
    for field in &parsed.unread_fields {
        let _ = writeln!(text, "unread field: {field}");
    }
}

fn offer_cells(offer: &PublishedOffer) -> Vec<String> {
    let opt = |value: &Option<String>| value.clone().unwrap_or_else(|| "·".to_owned());
    let number = |value: Option<rust_decimal::Decimal>| value.map_or_else(|| "·".to_owned(), |value| value.to_string());
    let (gpu, machine, terms, price) = (&offer.gpu, &offer.machine, &offer.terms, &offer.price);
    let mut marks: Vec<String> = offer.flags.iter().map(ToString::to_string).collect();
    marks.extend(terms.upfront.map(|upfront| format!("upfront={upfront}")));
    marks.extend(terms.availability.map(|word| word.to_string()));
    marks.extend(terms.tenancy.map(|word| word.to_string()));
    marks.extend(terms.licence.clone());
    marks.extend(terms.plan.clone());
    marks.extend(terms.valid_from.map(|at| format!("from={}", at.format("%Y-%m-%d"))));
    let span = |listings: Listings| format!("{} listings {} to {}", listings.count, listings.amount_min, listings.amount_max);
    marks.extend(price.listings.map(span));
    if terms.is_promotion {
        marks.push("promotion".to_owned());
    }
    if machine.is_bare_metal == Some(true) {
        marks.push("bare_metal".to_owned());
    }
    vec![
        opt(&offer.region),
        opt(&offer.zone),
        offer.instance_type.clone().or_else(|| offer.offer_label.clone()).unwrap_or_else(|| "·".to_owned()),
        format!("{} × {}", gpu.count.map_or_else(|| "?".to_owned(), |count| count.to_string()), opt(&gpu.label)),
        format!("{} GB", number(gpu.memory_gb)),
        format!("{} vCPU", number(machine.vcpus)),
        format!("{} GiB", number(machine.system_memory_gib)),
        format!("disk {}", number(machine.local_disk_gb)),
        format!("{} {}", terms.os, terms.pricing_model),
        terms.commitment_months.map_or_else(|| "·".to_owned(), |months| format!("{months} months")),
        format!("{} {}/{}/{}", price.amount, price.currency_code, price.per, price.unit),
        price.upfront_amount.map_or_else(|| "·".to_owned(), |amount| format!("+ {amount}")),
        format!("“{}”", price.text),
        format!("tax={}", price.tax_included.map_or("?".to_owned(), |tax| tax.to_string())),
        opt(&offer.sku),
        marks.join(","),
        format!("{} {}", offer.place.page, offer.place.at),
    ]
}

fn aligned(text: &mut String, rows: &[Vec<String>]) {
    let columns = rows.first().map_or(0, Vec::len);
    let width = |column: usize| rows.iter().map(|row| row[column].chars().count()).max().expect("a table has rows");
    let widths: Vec<usize> = (0..columns).map(width).collect();
    for row in rows {
        let cells = row.iter().zip(&widths).map(|(cell, width)| format!("{cell:width$}"));
        let _ = writeln!(text, "{}", cells.collect::<Vec<_>>().join("  ").trim_end());
    }
}
