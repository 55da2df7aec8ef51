//! Nights of any size, made of the offers of all recordings.
//!
//! A night is the machines of each recording in each region of its manifest, as a price list has them, and again under other
//! names where that is not enough. Regions are of five tiers with list prices of their own, market prices differ from region to
//! region; in a night two of a hundred prices move, and one offer of five hundred is not there. Nothing is random: the same size
//! and number give the same night.

use std::collections::{BTreeMap, BTreeSet};
use std::hash::{DefaultHasher, Hasher as _};

use chrono::{DateTime, Days, Utc};
use gpuledger::archive::Receipt;
use gpuledger::gather::{Gathered, Input};
use gpuledger::night::SnapshotId;
use gpuledger::normalise::currency::{Rate, newest_rate_day};
use gpuledger::normalise::gpu::GpuModels;
use gpuledger_scrapers::contract::{GpuShare, Method, Parsed, PricingModel, PublishedOffer, Terms};
use gpuledger_scrapers::manifest::Manifest;
use gpuledger_scrapers::{ALL, read, recordings, sha256};
use rust_decimal::Decimal;

/// Offers of a page.
const PAGE_OFFERS: usize = 1_000;

/// Providers of fewer regions are not repeated under other names.
const REGIONS_OF_A_LARGE_PROVIDER: usize = 10;

/// Tiers of regions: the regions of one have the same list prices.
const TIERS: u64 = 5;

/// Nights between two prices of a machine.
const NIGHTS_OF_A_PRICE: u64 = 50;

/// The offers of all recordings, each machine and way to buy it once.
pub struct Book {
    providers: Vec<Provider>,
    rates: Vec<Rate>,
}

struct Provider {
    manifest: &'static Manifest,
    /// Address of a page.
    url: String,
    /// Each with the scope it was recorded in.
    offers: Vec<(String, PublishedOffer)>,
    regions: Vec<String>,
}

impl Book {
    /// Reads all recordings.
    pub fn of_recordings() -> Self {
        let mut book = Self { providers: Vec::new(), rates: Vec::new() };
        for scraper in ALL {
            let manifest = scraper.manifest();
            let Some(recording) = recordings::newest(&manifest.provider) else { continue };
            let url = recording.pages.first().map_or_else(String::new, |page| page.url.clone());
            let (mut offers, mut seen) = (Vec::new(), BTreeSet::new());
            for (scope, parsed) in read(*scraper, recording.pages) {
                let Ok(parsed) = parsed else { continue };
                for offer in parsed.offers {
                    let what = what(manifest, &offer);
                    if seen.insert(what) {
                        offers.push((scope.clone(), offer));
                    }
                }
                book.rates.extend(parsed.rates.into_iter().map(|rate| Rate {
                    date: rate.date,
                    currency_code: rate.currency_code,
                    units_per_eur: rate.units_per_eur,
                    observed_at: DateTime::UNIX_EPOCH,
                    source_url: url.clone(),
                    raw_sha256: String::new(),
                    raw_place: rate.place.at,
                }));
            }
            let regions = manifest.regions.keys().cloned().collect();
            book.providers.push(Provider { manifest, url, offers, regions });
        }
        let newest = book.rates.iter().map(|rate| rate.date).max();
        book.rates.retain(|rate| Some(rate.date) == newest);
        book
    }

    /// Offers of the recordings that differ in more than their region.
    pub fn offers(&self) -> usize {
        self.providers.iter().map(|provider| provider.offers.len()).sum()
    }

    /// What a night of about so many rows gathers.
    pub fn night(&self, number: u64, rows: usize) -> Vec<Gathered> {
        let at = time(number);
        let mut scopes: Vec<BTreeMap<String, Vec<PublishedOffer>>> = self.providers.iter().map(|_| BTreeMap::new()).collect();
        let mut made = 0;
        for copy in 0.. {
            let before = made;
            for (provider, scopes) in self.providers.iter().zip(&mut scopes) {
                let regions = provider.regions.len().max(1);
                if copy >= regions && regions < REGIONS_OF_A_LARGE_PROVIDER {
                    continue;
                }
                for (scope, offer) in &provider.offers {
                    if made == rows {
                        break;
                    }
                    if let Some((scope, offer)) = provider.copy(scope, offer, copy, number) {
                        scopes.entry(scope).or_default().push(offer);
                        made += 1;
                    }
                }
            }
            if made == rows || made == before {
                break;
            }
        }
        let gathered = |(provider, scopes): (&Provider, BTreeMap<String, Vec<PublishedOffer>>)| {
            let scopes = scopes.into_iter().map(|(scope, offers)| {
                let (pages, parsed) = provider.pages(&scope, offers, number, at);
                (scope, pages, parsed)
            });
            Gathered::of_read(provider.manifest, Input::Files, scopes)
        };
        self.providers.iter().zip(scopes).filter(|(_, scopes)| !scopes.is_empty()).map(gathered).collect()
    }

    /// The exchange rates of a night: those of the newest recorded day, a little moved.
    pub fn rates(&self, number: u64) -> Vec<Rate> {
        let at = time(number);
        let move_of = |rate: &Rate| Decimal::new(10_000 + i64::from(hash((&rate.currency_code, number)) as u8), 4);
        let of_night = |rate: &Rate| Rate {
            date: newest_rate_day(at),
            units_per_eur: (rate.units_per_eur * move_of(rate)).round_dp(6),
            observed_at: at,
            ..rate.clone()
        };
        self.rates.iter().map(of_night).collect()
    }
}

/// The id of a night: one a day.
pub fn id(number: u64) -> SnapshotId {
    SnapshotId::at(time(number))
}

fn time(number: u64) -> DateTime<Utc> {
    let first: DateTime<Utc> = "2024-01-01T02:00:00Z".parse().expect("a time");
    first + Days::new(number)
}

impl Provider {
    /// An offer in another region, or of a machine of another name; `None` where it is not there tonight.
    fn copy(&self, scope: &str, offer: &PublishedOffer, copy: usize, number: u64) -> Option<(String, PublishedOffer)> {
        let (regions, recorded) = (self.regions.len().max(1), offer.region.as_deref());
        let (region, generation) = (self.regions.get(copy % regions).filter(|_| recorded.is_some()), copy / regions);
        if region.is_none() && copy >= regions || recorded.is_none() && copy > 0 {
            return None;
        }
        let machine = hash((name(offer), copy, self.manifest.provider.as_str()));
        if hash((machine, &offer.sku)) % 500 == number % 500 {
            return None;
        }
        let mut offer = offer.clone();
        let recorded_region = std::mem::replace(&mut offer.region, region.cloned());
        offer.zone = None;
        let scope = match (&recorded_region, region) {
            (Some(old), Some(new)) => scope.replacen(old.as_str(), new, 1),
            _ => scope.to_owned(),
        };
        if generation > 0 {
            let named = offer.instance_type.as_mut().or(offer.offer_label.as_mut())?;
            named.push_str(&format!("-g{generation}"));
        }
        if let Some(sku) = &mut offer.sku {
            *sku = sku_of(sku, machine);
        }
        let is_market = matches!(offer.terms.pricing_model, PricingModel::Spot | PricingModel::LowPriority);
        // A list price is that of its region's tier, a market's that of the region.
        let tier = hash(region) % TIERS;
        let place = if is_market { machine } else { hash((name(&offer), tier, generation)) };
        let revision = (number + place % NIGHTS_OF_A_PRICE) / NIGHTS_OF_A_PRICE;
        let hundredths = 100 + 5 * tier + if is_market { place % 10 } else { 0 } + hash((place, revision)) % 6;
        let factor = Decimal::new(i64::try_from(hundredths).expect("it is small"), 2);
        let price = &mut offer.price;
        price.amount = (price.amount * factor).round_dp(6).normalize();
        price.upfront_amount = price.upfront_amount.map(|amount| (amount * factor).round_dp(6).normalize());
        price.text = price.amount.to_string();
        Some((scope, offer))
    }

    /// Receipts of the pages that offers stand on, and the offers with their places.
    fn pages(&self, scope: &str, mut offers: Vec<PublishedOffer>, number: u64, at: DateTime<Utc>) -> (Vec<Receipt>, Parsed) {
        let mut pages = Vec::new();
        for (index, chunk) in offers.chunks_mut(PAGE_OFFERS).enumerate() {
            let page = format!("{scope}-{index:04}");
            for (row, offer) in chunk.iter_mut().enumerate() {
                offer.place.page.clone_from(&page);
                offer.place.at = place(&offer.place.at, row);
            }
            pages.push(Receipt {
                sha256: sha256(format!("{} {page} {number}", self.manifest.provider).as_bytes()),
                url: format!("{}#{page}", self.url),
                page,
                scope: scope.to_owned(),
                method: Method::Get,
                request_body_sha256: None,
                http_status: Some(200),
                observed_at: at,
                read_at: None,
                bytes: 1_000_000,
                whole: None,
                unchanged_since: None,
            });
        }
        (pages, Parsed { offers, ..Parsed::default() })
    }
}

/// What makes an offer another one than the next, but for its place.
fn what(manifest: &Manifest, offer: &PublishedOffer) -> impl Ord + use<> {
    let gpu = &offer.gpu;
    let is_slice = gpu.share != GpuShare::Whole;
    let model = |label: &String| {
        GpuModels::built_in().resolve(label, &manifest.labels, gpu.memory_gb, gpu.form_factor.as_deref(), is_slice).ok()
    };
    let model = gpu.label.as_ref().and_then(model).map(|resolved| resolved.model.name.clone());
    let terms = Terms { valid_from: None, availability: None, min_billing_seconds: None, ..offer.terms.clone() };
    (name(offer).to_owned(), model, gpu.count, offer.site.map(|site| site.word()), format!("{terms:?}"))
}

fn name(offer: &PublishedOffer) -> &str {
    offer.instance_type.as_deref().or(offer.offer_label.as_deref()).unwrap_or_default()
}

/// A place with its last number changed. `/Items/7` → `/Items/412`
fn place(at: &str, row: usize) -> String {
    let Some(last) = at.rfind(|letter: char| letter.is_ascii_digit()) else { return format!("{at}/{row}") };
    let before = at[..last].trim_end_matches(|letter: char| letter.is_ascii_digit());
    format!("{before}{row}{}", &at[last + 1..])
}

/// An id of the same form, with other letters and digits in its first part.
fn sku_of(recorded: &str, machine: u64) -> String {
    const SIGNS: &[u8] = b"ABCDEFGHJKLMNPQRSTUVWXYZ23456789";
    let mut bits = machine;
    let other = |(at, letter): (usize, char)| {
        if at >= 12 || !letter.is_ascii_alphanumeric() {
            return letter;
        }
        let sign = SIGNS[usize::try_from(bits % 32).expect("it is small")];
        bits /= 32;
        char::from(sign)
    };
    recorded.chars().enumerate().map(other).collect()
}

fn hash(what: impl std::hash::Hash) -> u64 {
    let mut hasher = DefaultHasher::new();
    what.hash(&mut hasher);
    hasher.finish()
}
