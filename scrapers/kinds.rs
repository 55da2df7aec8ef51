//! Ways in which price lists are known to mislead that are no provider's own: each is tried on the recorded pages of every
//! provider. A page that is changed here may be refused; what may never come of it is another price.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use gpuledger_scrapers::contract::{GpuShare, Parsed, PublishedOffer, ScrapeError, SourceKind};
use gpuledger_scrapers::recordings::{self, Origin, Recording};
use gpuledger_scrapers::{ALL, read};
use serde_json::Value;

type Night = BTreeMap<String, Result<Parsed, ScrapeError>>;

/// The dated recordings of every provider that sells something.
fn dated() -> Vec<Recording> {
    let sellers = ALL.iter().filter(|scraper| scraper.manifest().published.is_some());
    sellers.flat_map(|scraper| recordings::of(&scraper.manifest().provider)).filter(Recording::is_dated).collect()
}

/// A recording read after a change of its pages.
fn night(recording: &Recording, change: impl Fn(&str) -> String) -> Night {
    let mut pages = recording.pages.clone();
    for page in &mut pages {
        page.body = change(page.text().expect("a recording is text")).into_bytes();
    }
    read(gpuledger_scrapers::find(recording.provider).expect("it is registered"), pages)
}

fn as_it_is(recording: &Recording) -> Vec<PublishedOffer> {
    offers(night(recording, str::to_owned))
}

fn offers(night: Night) -> Vec<PublishedOffer> {
    night.into_values().flat_map(|parsed| parsed.expect("the scope reads").offers).collect()
}

/// What is rented, where and how: everything of an offer but its price.
fn what(offer: &PublishedOffer) -> String {
    let terms = &offer.terms;
    let machine = (offer.site, &offer.region, &offer.zone, &offer.instance_type, &offer.offer_label);
    let card = (&offer.gpu.label, offer.gpu.count, offer.gpu.memory_gb);
    let how = (terms.pricing_model, terms.commitment_months, terms.upfront, terms.os, &terms.licence, &terms.plan);
    format!("{:?}", (machine, card, how, terms.tenancy, terms.is_promotion))
}

/// Offers with their prices, in an order of their own.
fn prices<'a>(offers: impl IntoIterator<Item = &'a PublishedOffer>) -> BTreeSet<String> {
    let price = |offer: &PublishedOffer| {
        let price = &offer.price;
        format!("{} {:?} {} {} {}", price.amount, price.upfront_amount, price.currency_code, price.unit, price.per)
    };
    offers.into_iter().map(|offer| format!("{} {}", what(offer), price(offer))).collect()
}

/// The page with every object and list in it changed; a page that is no JSON as it is.
fn json(text: &str, change: &dyn Fn(&mut Value)) -> String {
    fn walk(value: &mut Value, change: &dyn Fn(&mut Value)) {
        match value {
            Value::Array(items) => items.iter_mut().for_each(|item| walk(item, change)),
            Value::Object(fields) => fields.values_mut().for_each(|field| walk(field, change)),
            _ => {}
        }
        change(value);
    }
    match serde_json::from_str::<Value>(text) {
        Ok(mut document) => {
            walk(&mut document, change);
            document.to_string()
        }
        Err(_) => text.to_owned(),
    }
}

#[test]
fn fields_in_cents_and_floors_beside_a_price_move_no_price() {
    let beside = [("price_cents", 412), ("minimum_price_cents", 1), ("spot_price_cents", 87), ("bid_floor", 1)];
    let mut told = BTreeSet::new();
    for recording in dated() {
        let is_price = |name: &str| ["price", "cost", "amount"].iter().any(|word| name.to_lowercase().contains(word));
        let changed = night(&recording, |text| {
            json(text, &|value| {
                let Some(fields) = value.as_object_mut() else { return };
                if fields.iter().any(|(name, value)| is_price(name) && !value.is_object() && !value.is_array()) {
                    fields.extend(beside.map(|(name, cents)| (name.to_owned(), cents.into())));
                }
            })
        });
        let known = prices(&as_it_is(&recording));
        for parsed in changed.values().flatten() {
            let moved: Vec<_> = prices(&parsed.offers).difference(&known).cloned().collect();
            assert!(moved.is_empty(), "{}: {moved:?}", recording.provider);
            if parsed.unread_fields.iter().any(|field| field.ends_with("price_cents")) {
                told.insert(recording.provider);
            }
        }
    }
    assert!(told.len() >= 4, "told of {told:?} only");
}

#[test]
fn an_amount_in_another_currency_is_never_taken_for_one_in_the_usual() {
    let mut tried = BTreeSet::new();
    for recording in dated() {
        for (usual, other) in [("USD", "JPY"), ("CNY", "JPY")] {
            let states = |page: &gpuledger_scrapers::contract::Page| page.text().is_ok_and(|text| text.contains(usual));
            let scopes: BTreeSet<_> = recording.pages.iter().filter(|page| states(page)).map(|page| page.scope.clone()).collect();
            let changed = night(&recording, |text| text.replace(usual, other));
            for (scope, parsed) in changed.into_iter().filter(|(scope, _)| scopes.contains(scope)) {
                let Ok(parsed) = parsed else { continue };
                let wrong = parsed.offers.iter().find(|offer| offer.price.currency_code == usual);
                assert!(wrong.is_none(), "{} {scope}: {wrong:?}", recording.provider);
            }
            if !scopes.is_empty() {
                tried.insert(recording.provider);
            }
        }
    }
    assert!(tried.len() >= 5, "tried {tried:?} only");
}

#[test]
fn the_order_of_a_list_decides_no_price() {
    let sellers = ALL.iter().filter(|scraper| scraper.manifest().published.is_some());
    for recording in sellers.flat_map(|scraper| recordings::of(&scraper.manifest().provider)) {
        let turned = night(&recording, |text| {
            json(text, &|value| {
                if let Some(items) = value.as_array_mut().filter(|items| items.iter().all(Value::is_object)) {
                    items.reverse();
                }
            })
        });
        // Prices, or the code of the refusal.
        let read = |night: Night| -> BTreeMap<String, Result<BTreeSet<String>, &'static str>> {
            let told =
                |parsed: Result<Parsed, ScrapeError>| parsed.map(|parsed| prices(&parsed.offers)).map_err(|error| error.code());
            night.into_iter().map(|(scope, parsed)| (scope, told(parsed))).collect()
        };
        let written_anew = night(&recording, |text| json(text, &|_| {}));
        assert_eq!(read(turned), read(written_anew), "{} {}", recording.provider, recording.case);
    }
}

#[test]
fn every_source_is_the_vendors_own() {
    for manifest in ALL.iter().map(|scraper| scraper.manifest()) {
        let is_own = matches!(manifest.source_kind, SourceKind::VendorApi | SourceKind::VendorPage);
        assert!(is_own, "{} is no vendor: its rows would stand beside those of the vendor", manifest.provider);
    }
}

#[test]
fn no_price_is_kept_by_hand() {
    let collection = Path::new(env!("CARGO_MANIFEST_DIR"));
    for scraper in ALL {
        let folder = collection.join(&scraper.manifest().provider);
        for entry in fs::read_dir(&folder).expect("the folder can be read") {
            let path = entry.expect("the entry can be read").path();
            if path.extension().is_some_and(|ending| ending == "toml") {
                let text = fs::read_to_string(&path).expect("the table can be read");
                let table: toml::Table = text.parse().expect("the table reads");
                no_key_of_a_price(&toml::Value::Table(table), &path);
            }
        }
    }
    for recording in ALL.iter().flat_map(|scraper| recordings::of(&scraper.manifest().provider)) {
        let is_typed = recording.receipt.origin == Origin::Typed || !recording.receipt.has_made_up_prices;
        assert!(is_typed, "{} {}: what is recorded has no price that is made up", recording.provider, recording.case);
        assert!(!recording.receipt.note.is_empty(), "{} {} does not say where it is from", recording.provider, recording.case);
    }
}

fn no_key_of_a_price(value: &toml::Value, path: &Path) {
    match value {
        toml::Value::Table(fields) => {
            for (name, value) in fields {
                let is_price = ["price", "amount", "cost", "usd", "cny"].iter().any(|word| name.to_lowercase().contains(word));
                // How much disk of a machine is paid for beside it, in GiB, is a size.
                assert!(!is_price || name.ends_with("_gib"), "{}: `{name}`", path.display());
                no_key_of_a_price(value, path);
            }
        }
        toml::Value::Array(items) => items.iter().for_each(|item| no_key_of_a_price(item, path)),
        _ => {}
    }
}

#[test]
fn a_machine_has_the_same_disks_in_its_price_however_it_is_bought() {
    for recording in dated() {
        let mut disks = BTreeMap::new();
        for offer in as_it_is(&recording) {
            let name = (offer.instance_type.clone(), offer.offer_label.clone(), offer.gpu.memory_gb);
            let machine = (offer.site, offer.region.clone(), name);
            let known = disks.entry(machine.clone()).or_insert(offer.machine.local_disk_gb);
            assert_eq!(*known, offer.machine.local_disk_gb, "{} {machine:?}", recording.provider);
        }
    }
}

#[test]
fn no_zone_is_a_name_that_means_another_place_to_every_account() {
    for recording in dated() {
        for offer in as_it_is(&recording) {
            // `us-east-1a` is whatever an account was told; `ap-guangzhou-6` and `use1-az4` are the same for everybody.
            let (region, zone) = (offer.region.as_deref().unwrap_or_default(), offer.zone.as_deref().unwrap_or_default());
            let letter = zone.strip_prefix(region).filter(|_| !region.is_empty()).unwrap_or_default();
            let is_name = letter.len() == 1 && letter.chars().all(|c| c.is_ascii_lowercase());
            assert!(!is_name, "{}: {zone} of {region}", recording.provider);
        }
    }
}

#[test]
fn no_amount_is_sold_under_two_ways_of_buying() {
    for recording in dated() {
        let mut ways = BTreeMap::new();
        for offer in as_it_is(&recording) {
            // A place is one field of one row, or the row of a price made of parts, which name their way of buying.
            let place = (offer.place.clone(), what_machine(&offer));
            let way = (offer.terms.pricing_model, offer.price.text.clone(), offer.price.upfront_amount);
            let known = ways.entry(place.clone()).or_insert_with(|| way.clone());
            assert!(known.0 == way.0 || known.1 != way.1, "{} {place:?}: {known:?} and {way:?}", recording.provider);
        }
    }
}

fn what_machine(offer: &PublishedOffer) -> String {
    format!("{:?}", (&offer.region, &offer.zone, &offer.instance_type, &offer.offer_label, offer.terms.os, offer.terms.tenancy))
}

#[test]
fn machines_of_one_gpu_and_of_many_never_cost_the_same() {
    for recording in dated() {
        let mut by_count: BTreeMap<String, BTreeMap<String, u32>> = BTreeMap::new();
        for offer in as_it_is(&recording).into_iter().filter(|offer| offer.gpu.share == GpuShare::Whole) {
            let Some(count) = offer.gpu.count.map(|count| *count.numer()) else { continue };
            if offer.price.per != gpuledger_scrapers::contract::PricePer::Instance || count == 0 {
                continue;
            }
            let terms = &offer.terms;
            let family = format!(
                "{:?}",
                (&offer.region, &offer.zone, &offer.gpu.label, offer.gpu.memory_gb, terms.pricing_model, terms.commitment_months)
            );
            let rest = format!("{family} {:?} {:?} {:?} {:?}", terms.os, terms.plan, terms.upfront, terms.tenancy);
            let amount = format!("{} {:?}", offer.price.amount, offer.price.upfront_amount);
            let known = by_count.entry(rest.clone()).or_default().entry(amount.clone()).or_insert(count);
            assert_eq!(*known, count, "{}: {rest} costs {amount} with either number of GPUs", recording.provider);
        }
    }
}
