//! Sources whose terms restrict reading by machine are asked only when the user agrees to it by name.

use std::collections::BTreeSet;
use std::process::{Command, Stdio};

use crate::support::internet::{Internet, internet, reply};
use crate::support::{Dataset, Said};
use gpuledger_scrapers::ALL;
use gpuledger_scrapers::manifest::{Manifest, TermsOfUse};

fn restricted() -> Vec<&'static Manifest> {
    let manifests = ALL.iter().map(|scraper| scraper.manifest());
    let found: Vec<_> = manifests.filter(|manifest| manifest.terms == TermsOfUse::Restricted).collect();
    assert!(found.len() >= 4, "there are four such sources at least");
    found
}

/// An internet that turns everybody away, so that a night is over soon.
fn closed() -> Internet {
    internet(|_| reply(403, "", b"not today"))
}

fn run(world: &Internet, dataset: &Dataset, args: &[&str]) -> Said {
    let mut command = dataset.command(args);
    world.lead(&mut command);
    Said::of(&command.stdin(Stdio::null()).output().expect("the program starts"))
}

/// Hosts that a provider's first pages are on.
fn hosts_of(manifest: &Manifest) -> BTreeSet<String> {
    let addresses = [true, false].into_iter().flat_map(|has_key| manifest.start(has_key));
    addresses.map(|page| page.url.split('/').nth(2).unwrap_or_default().to_owned()).collect()
}

fn asked(world: &Internet) -> BTreeSet<String> {
    world.asked().into_iter().map(|request| request.host).collect()
}

#[test]
fn a_night_of_all_providers_asks_no_restricted_one_and_says_why() {
    let (world, dataset) = (closed(), Dataset::new());
    let said = run(&world, &dataset, &["collect", "--max-minutes", "0.1"]);
    let asked = asked(&world);
    assert!(!asked.is_empty(), "{}{}", said.data, said.talk);
    for manifest in restricted() {
        assert!(asked.is_disjoint(&hosts_of(manifest)), "{} was asked", manifest.provider);
        let date = manifest.terms_checked_on.expect("somebody has read the terms").to_string();
        let line = said.data.lines().find(|line| line.starts_with(&format!("{}: ", manifest.provider)));
        let line = line.unwrap_or_else(|| panic!("nothing is said of {}: {}", manifest.provider, said.data));
        assert!(line.contains(&format!("--accept-terms {}", manifest.provider)) && line.contains(&date), "{line}");
    }
}

#[test]
fn naming_a_restricted_provider_is_no_agreement_to_its_terms() {
    for manifest in restricted() {
        let (world, dataset) = (closed(), Dataset::new());
        let said = run(&world, &dataset, &["collect", "--providers", &manifest.provider]);
        assert_eq!(said.exit, Some(11), "{}{}", said.data, said.talk);
        assert!(asked(&world).is_empty(), "{} was asked", manifest.provider);
        let into = dataset.root().join("recordings");
        let mut record = Command::new(env!("CARGO_BIN_EXE_gpuledger"));
        world.lead(record.args(["record", &manifest.provider, "--into"]).arg(&into));
        let said = Said::of(&record.stdin(Stdio::null()).output().expect("the program starts"));
        assert_ne!(said.exit, Some(0), "{}{}", said.data, said.talk);
        assert!(said.talk.contains("--accept-terms"), "{}", said.talk);
        assert!(asked(&world).is_empty(), "{} was asked by `record`", manifest.provider);
    }
}

#[test]
fn agreeing_to_the_terms_of_one_is_no_agreement_to_those_of_another() {
    for accepted in restricted() {
        let names: Vec<&str> = restricted().iter().map(|manifest| manifest.provider.as_str()).collect();
        let (world, dataset) = (closed(), Dataset::new());
        let accepting = ["--providers", &names.join(","), "--accept-terms", &accepted.provider];
        run(&world, &dataset, &[&["collect", "--max-minutes", "0.1"], &accepting[..]].concat());
        let asked = asked(&world);
        assert!(!asked.is_empty() && asked.is_subset(&hosts_of(accepted)), "{}: {asked:?}", accepted.provider);
    }
}

#[test]
fn terms_are_accepted_of_providers_that_there_are() {
    let (world, dataset) = (closed(), Dataset::new());
    let said = run(&world, &dataset, &["collect", "--providers", "lambda", "--accept-terms", "nobody"]);
    assert_eq!(said.exit, Some(2), "{}{}", said.data, said.talk);
    assert!(asked(&world).is_empty() && said.talk.contains("nobody"), "{}", said.talk);
}

#[test]
fn a_restricted_source_is_in_the_recorded_night_and_says_what_its_terms_are() {
    let dataset = Dataset::new();
    let names: Vec<&str> = restricted().iter().map(|manifest| manifest.provider.as_str()).collect();
    let said = dataset.run(&["collect", "--recorded", "--providers", &format!("ecb,{}", names.join(","))]);
    assert_eq!(said.exit, Some(0), "{}{}", said.data, said.talk);
    let said = dataset.run(&["providers", "--format", "json"]);
    let rows: serde_json::Value = serde_json::from_str(&said.data).expect("it is JSON");
    for manifest in restricted() {
        let row = rows.as_array().expect("a list").iter().find(|row| row["provider"] == manifest.provider.as_str());
        let row = row.expect("it is listed");
        assert_eq!((&row["terms"], &row["last_status"]), (&"restricted".into(), &"complete".into()), "{row}");
        let date = manifest.terms_checked_on.expect("somebody has read the terms").to_string();
        assert_eq!((&row["terms_checked_on"], &row["terms_note"]), (&date.into(), &manifest.terms_note.as_str().into()));
        assert!(said.talk.contains(&format!("--accept-terms {}", manifest.provider)), "{}", said.talk);
    }
}
