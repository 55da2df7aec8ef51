//! Hostile pages: every recording of every provider, changed as broken servers and hostile people would, held against the
//! laws of parsers. The fuzzer in `tests/fuzz` looks for such pages for hours; this is what runs every time.

use std::collections::BTreeSet;

use gpuledger_scrapers::ALL;
use gpuledger_scrapers::contract::{Page, PublishedOffer, Scraper};
use gpuledger_scrapers::recordings::{self, Recording};
use gpuledger_scrapers::{read, sha256};
use proptest::prelude::*;
use proptest::test_runner::RngSeed;

#[path = "../tests/fuzz/laws.rs"]
mod laws;
#[path = "../tests/fuzz/mutations.rs"]
mod mutations;

use mutations::{Chance, mutate};

/// A page that is changed grows to no more than this.
const LONGEST: usize = 1 << 17;

fn recordings_of(scraper: &dyn Scraper) -> Vec<Recording> {
    recordings::of(&scraper.manifest().provider)
}

/// Shows changed pages to a provider; a law that does not hold names the recording.
fn hold(scraper: &dyn Scraper, recording: &Recording, pages: &[Page], change: &str) {
    let held = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| laws::hold(scraper, pages)));
    assert!(held.is_ok(), "{} {}, {change}", recording.provider, recording.case);
}

/// The providers beside each other: each takes its time.
fn for_all(look: impl Fn(&'static dyn Scraper) + Sync) {
    let look = &look;
    std::thread::scope(|threads| {
        let looks: Vec<_> = ALL.iter().map(|scraper| threads.spawn(move || look(*scraper))).collect();
        for (look, scraper) in looks.into_iter().zip(ALL) {
            assert!(look.join().is_ok(), "{}", scraper.manifest().provider);
        }
    });
}

#[test]
fn the_laws_hold_of_every_recording() {
    for_all(|scraper| recordings_of(scraper).iter().for_each(|recording| hold(scraper, recording, &recording.pages, "as it is")));
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2, rng_seed: RngSeed::Fixed(0x6770_756c), max_shrink_iters: 0, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn the_laws_hold_of_every_recording_with_a_few_changes(seed: u64) {
        for_all(|scraper| {
            for (number, recording) in (0_u64..).zip(recordings_of(scraper)) {
                let mut chance = Chance::new(seed ^ number);
                let mut pages = recording.pages.clone();
                for _ in 0..=chance.below(3) {
                    let page = chance.below(pages.len());
                    mutate(&mut pages[page].body, &mut chance, LONGEST);
                }
                hold(scraper, &recording, &pages, &format!("seed {seed}"));
            }
        });
    }
}

/// Deep enough for the stack of any function that calls itself, and then some.
const DEEP: usize = 20_000;

/// Whole pages that are no pages, of any provider.
fn bombs() -> Vec<(&'static str, Vec<u8>)> {
    let deep = |open: &str, close: &str| format!("{}{}", open.repeat(DEEP), close.repeat(DEEP)).into_bytes();
    let laughs: String =
        (1..10).map(|number| format!("<!ENTITY l{number} \"{}\">", format!("&l{};", number - 1).repeat(10))).collect();
    vec![
        ("brackets", [vec![b'['; 5 * DEEP], vec![b']'; 5 * DEEP]].concat()),
        ("brackets without an end", vec![b'['; 5 * DEEP]),
        ("objects", deep("{\"a\":", "}")),
        ("a list of prices in brackets", [b"{\"Items\":".to_vec(), deep("[", "]"), b"}".to_vec()].concat()),
        ("elements", deep("<div>", "</div>")),
        ("tables", format!("<html>{}", "<table><tr><td>".repeat(DEEP)).into_bytes()),
        ("elements that are opened again", "<p><b>x<i>".repeat(DEEP / 2).into_bytes()),
        ("XML", deep("<a>", "</a>")),
        (
            "a billion laughs",
            format!("<?xml version=\"1.0\"?><!DOCTYPE l [<!ENTITY l0 \"lol\">{laughs}]><l>&l9;</l>").into_bytes(),
        ),
        ("ten million characters", vec![b'x'; 10_000_000]),
        ("a text of ten million characters", [vec![b'"'], vec![b'x'; 10_000_000], vec![b'"']].concat()),
        ("a number of 100,000 digits", vec![b'1'; 100_000]),
        ("zeros", vec![0; 100_000]),
        ("commas", vec![b','; 100_000]),
        ("lines", vec![b'\n'; 100_000]),
    ]
}

#[test]
fn a_page_that_is_a_bomb_is_refused_and_harms_nobody() {
    for_all(|scraper| {
        let Some(recording) = recordings::newest(&scraper.manifest().provider) else { return };
        for (name, bomb) in bombs() {
            let mut pages = recording.pages.clone();
            let (page, scope) = (&mut pages[0], recording.pages[0].scope.clone());
            page.sha256 = sha256(&bomb);
            page.body = bomb;
            let _ = (scraper.follow(page), scraper.history(page), scraper.scope(page));
            let is_refused = read(scraper, pages).remove(&scope).is_none_or(|result| result.is_err());
            assert!(is_refused, "{} took {name}", recording.provider);
        }
    });
}

#[test]
fn a_bomb_in_the_place_of_a_value_costs_the_page_or_its_row_and_no_more() {
    let bombs = [
        ("brackets", "[".repeat(5 * DEEP) + &"]".repeat(5 * DEEP)),
        ("objects", "{\"a\":".repeat(DEEP) + "1" + &"}".repeat(DEEP)),
        ("a long number", "9".repeat(100_000)),
        ("a small number", "1e-99999999999".to_owned()),
        ("a large number", "1e308".to_owned()),
        ("elements", "<b><i>".repeat(DEEP)),
        ("a long text", "x".repeat(200_000)),
    ];
    for_all(|scraper| {
        let Some(recording) = recordings::newest(&scraper.manifest().provider) else { return };
        for (name, bomb) in &bombs {
            let mut pages = recording.pages.clone();
            let mut chance = Chance::new(u64::try_from(name.len()).expect("a name is short"));
            let number = chance.below(pages.len());
            let body = &mut pages[number].body;
            // A value begins after a colon, a comma or a `>`.
            let from = chance.below(body.len());
            let Some(at) = body[from..].iter().position(|byte| b":,>".contains(byte)).map(|at| from + at + 1) else { continue };
            let end = body[at..].iter().position(|byte| b",}<\n".contains(byte)).map_or(body.len(), |end| at + end);
            body.splice(at..end, bomb.bytes());
            hold(scraper, &recording, &pages, name);
        }
    });
}

#[test]
fn what_stands_before_a_page_or_ends_its_lines_changes_no_price() {
    for_all(|scraper| {
        for recording in recordings_of(scraper).into_iter().filter(Recording::is_dated) {
            let prices = |pages: Vec<Page>| -> Option<Vec<String>> {
                let parsed = read(scraper, pages).into_values().collect::<Result<Vec<_>, _>>().ok()?;
                Some(parsed.iter().flat_map(|parsed| &parsed.offers).map(|offer| format!("{:?}", offer.price.amount)).collect())
            };
            let plain = prices(recording.pages.clone()).expect("a dated recording reads");
            type Change = fn(&str) -> String;
            let changes: [(&str, Change); 4] = [
                ("a byte order mark", |text| format!("\u{feff}{text}")),
                ("lines that end as on Windows", |text| text.replace("\r\n", "\n").replace('\n', "\r\n")),
                ("zeros at the end", |text| format!("{text}\0\0")),
                ("blank lines around", |text| format!("\n\n{text}\n\n")),
            ];
            for (name, change) in changes {
                let mut pages = recording.pages.clone();
                for page in &mut pages {
                    if let Ok(text) = std::str::from_utf8(&page.body) {
                        page.body = change(text).into_bytes();
                    }
                }
                hold(scraper, &recording, &pages, name);
                // It is read as before, or refused; never read as something else.
                if let Some(prices) = prices(pages) {
                    assert_eq!(prices, plain, "{} {}: {name}", recording.provider, recording.case);
                }
            }
        }
    });
}

/// The words of a page: what stands in quotes or between tags and begins with a letter.
fn words(text: &str) -> Vec<&str> {
    let mut words: Vec<&str> = text
        .split(['"', '<', '>', '\n'])
        .filter(|word| word.len() < 60 && word.starts_with(char::is_alphabetic) && !word.contains(['{', '}', ':', ',', ';', '=']))
        .collect();
    words.sort_unstable();
    words.dedup();
    words
}

/// What an offer is and costs, without what may be unknown: then it is null, which is honest.
fn essence(offer: &PublishedOffer) -> String {
    let (gpu, terms, price) = (&offer.gpu, &offer.terms, &offer.price);
    let what = (&offer.instance_type, &offer.offer_label, &offer.region, &offer.zone, &gpu.label, gpu.count);
    let how =
        (terms.os, &terms.licence, terms.pricing_model, terms.commitment_months, terms.upfront, &terms.plan, terms.is_promotion);
    format!(
        "{what:?} {how:?} {price:?}",
        price = (price.amount, price.upfront_amount, &price.currency_code, price.unit, price.per)
    )
}

#[test]
fn a_word_that_nobody_knows_never_becomes_one_that_is_known() {
    const UNKNOWN: &str = "zyxwv";
    for_all(|scraper| {
        for recording in recordings_of(scraper).into_iter().filter(Recording::is_dated) {
            let offers = |pages: &[Page]| -> Vec<(String, BTreeSet<&str>)> {
                let parsed = read(scraper, pages.to_vec()).into_values().filter_map(Result::ok);
                let offers = parsed.flat_map(|parsed| parsed.offers);
                // An offer that is marked says of itself what it lacks.
                offers.map(|offer| (essence(&offer), offer.flags)).collect()
            };
            let known = offers(&recording.pages);
            for number in 0..recording.pages.len() {
                let Ok(text) = std::str::from_utf8(&recording.pages[number].body) else { continue };
                let words = words(text);
                for word in words.iter().step_by(1 + words.len() / 40) {
                    let mut pages = recording.pages.clone();
                    pages[number].body = text
                        .replace(&format!("\"{word}\""), &format!("\"{UNKNOWN}\""))
                        .replace(&format!(">{word}<"), &format!(">{UNKNOWN}<"))
                        .into_bytes();
                    for (offer, flags) in offers(&pages) {
                        let is_known = known.iter().any(|(known, _)| *known == offer);
                        let is_honest = is_known || !flags.is_empty() || offer.contains(UNKNOWN);
                        assert!(is_honest, "{}: without the word {word:?} there is another offer: {offer}", recording.provider);
                    }
                }
            }
        }
    });
}
