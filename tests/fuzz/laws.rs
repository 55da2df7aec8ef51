//! What holds of a parser whatever the pages say.
//!
//! In: a provider and pages, honest or hostile. Out: nothing, or a panic that names the law that does not hold. Looks at no
//! figure of a provider: these laws are the same for all of them.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::LazyLock;

use gpuledger_scrapers::contract::{Page, PageRequest, Parsed, PublishedOffer, ScrapeError, Scraper};
use gpuledger_scrapers::recordings::{self, Recording};
use gpuledger_scrapers::{ALL, money, read};
use rust_decimal::Decimal;

/// More than any machine has of anything: cards, processors, GB.
const LARGEST: u32 = 100_000_000;

/// Shows every page to everything a provider has that looks at pages.
pub fn hold(scraper: &dyn Scraper, pages: &[Page]) {
    for page in pages {
        for request in scraper.follow(page).unwrap_or_default() {
            request_stays_at_home(scraper, &request);
        }
        for night in scraper.history(page).unwrap_or_default() {
            night.pages.iter().for_each(|request| request_stays_at_home(scraper, request));
        }
        let _ = scraper.scope(page);
        sieve_keeps_lines(scraper, &page.body);
    }
    let scopes = read(scraper, pages.to_vec());
    for (scope, result) in &scopes {
        match result {
            Ok(parsed) => reading_is_sane(parsed, pages),
            Err(error) => assert!(error.to_string().len() < 20_000, "the reason for {scope} is a page long"),
        }
    }
    if pages.len() > 1 {
        order_does_not_matter(scraper, pages, &scopes);
    }
}

/// The hosts that each provider's manifest names, and those that its recordings were read from.
static HOSTS: LazyLock<BTreeMap<String, BTreeSet<String>>> = LazyLock::new(|| {
    let hosts = |scraper: &&dyn Scraper| {
        let manifest = scraper.manifest();
        let named = manifest.pages.iter().map(|page| page.url.clone()).chain([manifest.homepage.clone()]);
        let history = scraper.history_index().into_iter().map(|page| page.url);
        let dated = recordings::of(&manifest.provider).into_iter().filter(Recording::is_dated);
        let recorded = dated.flat_map(|recording| recording.pages).map(|page| page.url);
        let urls = named.chain(history).chain(recorded);
        (manifest.provider.clone(), urls.map(|url| host_of(&url).to_owned()).collect())
    };
    ALL.iter().map(hosts).collect()
});

/// A page leads to no other host than the source's own, and its names are names.
fn request_stays_at_home(scraper: &dyn Scraper, request: &PageRequest) {
    let host = host_of(&request.url);
    let is_own = HOSTS[&scraper.manifest().provider].contains(host);
    assert!(is_own, "a page leads to `{host}`, in {:?}", request.url);
    assert!(!request.url.contains(char::is_control), "an address with a control character: {:?}", request.url);
    for name in [&request.name, &request.scope] {
        assert!(!name.is_empty() && name.len() < 1_000 && !name.contains(char::is_control), "no name: {name:?}");
    }
}

/// The host of an address, without port and user: what stands before `@` is no host.
fn host_of(url: &str) -> &str {
    let rest = url.strip_prefix("https://").unwrap_or_default();
    let authority = rest.split(['/', '?', '#', '\\']).next().unwrap_or_default();
    assert!(!authority.contains('@'), "an address with a user in it: {url:?}");
    authority.split(':').next().unwrap_or_default()
}

/// Chunks do not matter to a sieve.
fn sieve_keeps_lines(scraper: &dyn Scraper, body: &[u8]) {
    let Some(sieve) = scraper.sieve(&body[..body.len().min(64)]) else { return };
    let kept = |bytes_at_once: usize| {
        let mut sifting = sieve.start();
        for chunk in body.chunks(bytes_at_once) {
            sifting.push(chunk).ok()?;
        }
        Some(sifting.finish())
    };
    assert!(kept(97) == kept(body.len().max(1)), "a sieve keeps other lines of other chunks");
}

fn reading_is_sane(parsed: &Parsed, pages: &[Page]) {
    let names: BTreeSet<&str> = pages.iter().map(|page| page.name.as_str()).collect();
    let places = parsed.offers.iter().map(|offer| &offer.place);
    let places = places.chain(parsed.skipped.iter().map(|row| &row.place)).chain(parsed.rates.iter().map(|rate| &rate.place));
    for place in places {
        assert!(names.contains(place.page.as_str()), "`{}` is not among the pages", place.page);
    }
    parsed.offers.iter().for_each(offer_is_sane);
    for rate in &parsed.rates {
        amount_is_exact(rate.units_per_eur);
        assert!(!rate.units_per_eur.is_zero(), "a rate of nothing");
    }
}

fn offer_is_sane(offer: &PublishedOffer) {
    let price = &offer.price;
    amount_is_exact(price.amount);
    let upfront = price.upfront_amount.unwrap_or_default();
    amount_is_exact(upfront);
    // What is paid as a whole at the start costs nothing by the hour; nothing at all is no price.
    assert!(!price.amount.is_zero() || !upfront.is_zero(), "a price of nothing: {offer:?}");
    assert!(money::currency_code(&price.currency_code).is_ok(), "currency {:?}", price.currency_code);
    assert!(!price.text.trim().is_empty(), "a price without its characters: {offer:?}");
    if let Some(count) = offer.gpu.count {
        assert!(*count.numer() > 0 && count.to_integer() < LARGEST, "{count} GPUs: {offer:?}");
    }
    let machine = &offer.machine;
    for size in [offer.gpu.memory_gb, machine.vcpus, machine.system_memory_gib, machine.local_disk_gb].into_iter().flatten() {
        assert!(!size.is_sign_negative() && size < Decimal::from(LARGEST), "a size of {size}: {offer:?}");
    }
    assert!(offer.terms.commitment_months.is_none_or(|months| (1..=120).contains(&months)), "{:?}", offer.terms);
}

fn amount_is_exact(amount: Decimal) {
    assert!(!amount.is_sign_negative(), "an amount of {amount}");
    assert_eq!(money::decimal(&amount.to_string()), Some(amount.normalize()), "an amount that does not print as itself");
}

/// What pages publish does not depend on the order in which they came.
fn order_does_not_matter(scraper: &dyn Scraper, pages: &[Page], scopes: &BTreeMap<String, Result<Parsed, ScrapeError>>) {
    let reversed = read(scraper, pages.iter().rev().cloned().collect());
    assert!(scopes.keys().eq(reversed.keys()), "the scopes depend on the order of the pages");
    for ((scope, one), other) in scopes.iter().zip(reversed.values()) {
        match (one, other) {
            (Ok(one), Ok(other)) => assert_eq!(content(one), content(other), "{scope} depends on the order of its pages"),
            (Err(_), Err(_)) => {}
            (Ok(_), Err(error)) | (Err(error), Ok(_)) => panic!("{scope} is refused in one order of its pages: {error}"),
        }
    }
}

/// What was read, without order and without the place: of a row that stands on two pages, either is named.
fn content(parsed: &Parsed) -> BTreeSet<String> {
    let mut content = BTreeSet::new();
    for offer in &parsed.offers {
        let mut offer = offer.clone();
        offer.place.at.clear();
        offer.place.page.clear();
        content.insert(format!("{offer:?}"));
    }
    content.extend(parsed.rates.iter().map(|rate| format!("{} {} {}", rate.date, rate.currency_code, rate.units_per_eur)));
    content
}
