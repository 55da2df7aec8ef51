//! Price histories that other people kept, as nights that the rules can judge.
//!
//! They lie beside the checkout. A night is walked from published prices through `normalise` and `validate`, each against the
//! last complete nights before it, as `collect` does, without writing a dataset.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use chrono::{DateTime, Utc};
use gpuledger::archive::Receipt;
use gpuledger::earlier::{Earlier, EarlierScope, SNAPSHOTS_LOOKED_BACK};
use gpuledger::gather::{Gathered, Input};
use gpuledger::night::SnapshotId;
use gpuledger::normalise::currency::rates_frame;
use gpuledger::normalise::gpu::GpuModels;
use gpuledger::normalise::{Observed, normalise};
use gpuledger::validate::{ScopeStatus, Verdict, validate};
use gpuledger_scrapers::contract::{
    GpuShare, Machine, Method, Parsed, Place, PricePer, PriceUnit, PricingModel, PublishedGpu, PublishedOffer, PublishedPrice,
    Terms,
};
use gpuledger_scrapers::manifest::Manifest;
use num_rational::Ratio;
use polars::prelude::DataFrame;
use rust_decimal::Decimal;

mod load;
pub mod plant;
mod rules;

pub use load::{MANY_SITES, PER_GPU_SINCE, all, shared};

/// One price of a history.
#[derive(Debug, Clone, PartialEq)]
pub struct Price {
    pub provider: String,
    pub scope: String,
    pub region: Option<String>,
    pub machine: String,
    pub card: String,
    pub gpus: Ratio<u32>,
    pub pricing_model: PricingModel,
    pub plan: Option<String>,
    pub months: Option<u32>,
    pub amount: Decimal,
    pub currency: String,
    pub unit: PriceUnit,
    pub per: PricePer,
}

/// One night of a history.
#[derive(Debug, Clone)]
pub struct Night {
    pub id: SnapshotId,
    pub prices: Vec<Price>,
}

/// A history.
pub struct History {
    pub name: &'static str,
    pub nights: Vec<Night>,
    /// Whether it takes minutes to walk.
    pub is_long: bool,
}

/// What identifies a price from night to night.
pub type Key = (String, String, String, String, &'static str, Option<String>, Option<u32>);

impl Price {
    pub fn key(&self) -> Key {
        let model = self.pricing_model.word();
        let region = self.region.clone().unwrap_or_default();
        (self.provider.clone(), region, self.machine.clone(), self.gpus.to_string(), model, self.plan.clone(), self.months)
    }
}

/// The complete scopes of a night.
type Complete = Vec<((String, String), EarlierScope)>;

/// The nights that were complete, newest last, as far back as a run looks.
#[derive(Default, Clone)]
pub struct Past {
    nights: Vec<(Complete, DataFrame)>,
}

impl Past {
    pub fn earlier(&self) -> Earlier {
        let mut earlier = Earlier::none();
        for (scopes, rows) in &self.nights {
            earlier.over(scopes.clone(), rows).expect("the columns are there");
        }
        earlier
    }

    /// Adds a night if it was published, and forgets what a run would not look at any more.
    pub fn add(&mut self, id: SnapshotId, verdict: &Verdict) {
        let Some(night) = &verdict.night else { return };
        let scopes = verdict.coverage.iter().filter(|scope| scope.status == ScopeStatus::Complete).map(|scope| {
            let key = (scope.provider.clone(), scope.scope.clone());
            (key, EarlierScope { snapshot: id, rows: scope.rows, scraper_version: scope.scraper_version })
        });
        self.nights.push((scopes.collect(), night.offers().clone()));
        let excess = self.nights.len().saturating_sub(SNAPSHOTS_LOOKED_BACK);
        self.nights.drain(..excess);
    }
}

/// Judges a night as `collect` would.
pub fn judge(night: &Night, earlier: &Earlier) -> Verdict {
    let offers = night.prices.iter().enumerate().map(|(at, price)| Seen::of(price, at)).collect();
    judge_offers(night.id, offers, earlier)
}

/// An offer of a scope of a provider.
#[derive(Clone)]
pub struct Seen {
    pub provider: String,
    pub scope: String,
    pub offer: PublishedOffer,
}

impl Seen {
    pub fn of(price: &Price, at: usize) -> Self {
        let (provider, scope) = (price.provider.clone(), price.scope.clone());
        Self { provider, offer: offer(price, &scope, at), scope }
    }
}

/// Judges offers of any kind, as read from files.
pub fn judge_offers(id: SnapshotId, offers: Vec<Seen>, earlier: &Earlier) -> Verdict {
    judge_gathered(id, &gather(id, offers), earlier)
}

/// Judges what was gathered, without exchange rates.
pub fn judge_gathered(id: SnapshotId, gathered: &[Gathered], earlier: &Earlier) -> Verdict {
    let observed: Vec<Observed> = gathered.iter().flat_map(Gathered::offers).collect();
    let no_rates = rates_frame("", &[]).expect("an empty table");
    let rows = normalise(id, &observed, &no_rates).expect("the night is comparable");
    validate(id, rows, gathered, earlier).expect("the night can be judged")
}

fn gather(id: SnapshotId, offers: Vec<Seen>) -> Vec<Gathered> {
    let mut providers: BTreeMap<String, BTreeMap<String, Parsed>> = BTreeMap::new();
    for Seen { provider, scope, offer } in offers {
        providers.entry(provider).or_default().entry(scope).or_default().offers.push(offer);
    }
    let provider = |(provider, scopes): (String, BTreeMap<String, Parsed>)| {
        let read = scopes.into_iter().map(|(scope, parsed)| {
            let receipt = receipt(&scope, id.instant());
            (scope, vec![receipt], parsed)
        });
        Gathered::of_read(manifest(&provider), Input::Files, read)
    };
    providers.into_iter().map(provider).collect()
}

pub fn receipt(scope: &str, observed_at: DateTime<Utc>) -> Receipt {
    Receipt {
        page: scope.to_owned(),
        scope: scope.to_owned(),
        url: "a history".to_owned(),
        method: Method::Get,
        request_body_sha256: None,
        http_status: None,
        observed_at,
        read_at: None,
        sha256: gpuledger_scrapers::sha256(scope.as_bytes()),
        bytes: 0,
        whole: None,
        unchanged_since: None,
    }
}

fn offer(price: &Price, scope: &str, at: usize) -> PublishedOffer {
    let mut terms = Terms::of(price.pricing_model);
    terms.commitment_months = price.months;
    terms.plan.clone_from(&price.plan);
    PublishedOffer {
        site: None,
        sku: None,
        instance_type: Some(price.machine.clone()),
        offer_label: None,
        region: price.region.clone(),
        zone: None,
        gpu: PublishedGpu {
            label: Some(price.card.clone()),
            count: Some(price.gpus),
            share: if price.gpus.is_integer() { GpuShare::Whole } else { GpuShare::FixedSlice },
            ..PublishedGpu::unknown()
        },
        machine: Machine::default(),
        terms,
        price: PublishedPrice {
            amount: price.amount.round_dp(12),
            upfront_amount: None,
            currency_code: price.currency.clone(),
            unit: price.unit,
            per: price.per,
            text: price.amount.to_string(),
            listings: None,
            tax_included: None,
        },
        place: Place { page: scope.to_owned(), at: format!("price {at}") },
        flags: BTreeSet::new(),
    }
}

/// A manifest for a provider of a history, made once.
pub fn manifest(provider: &str) -> &'static Manifest {
    static MADE: Mutex<Option<HashMap<String, &'static Manifest>>> = Mutex::new(None);
    let mut made = MADE.lock().expect("nobody panics while a manifest is made");
    made.get_or_insert_default().entry(provider.to_owned()).or_insert_with(|| {
        let text = format!(
            "provider = '{provider}'\nname = '{provider}'\nsource = 'a history'\nhomepage = 'https://history.example'\n\
             site = 'global'\nsource_kind = '{}'\nscraper_version = 1\nterms = 'open'\nterms_note = 'kept by others'\npage = []\n\
             [published]\ncurrency_code = 'row'\nper = 'instance'\npricing_models = []\n",
            // A market's prices are those of many sellers.
            if provider.contains("vast") { "aggregator" } else { "vendor_page" }
        );
        Box::leak(Box::new(Manifest::parse(&text).expect("the manifest reads")))
    })
}

/// The canonical name of a card as trackers write it; `None` where they leave open which it is.
pub fn card(label: &str) -> Option<&'static str> {
    let label = label.replace(['_', '-'], " ").to_lowercase();
    let label = match label.as_str() {
        "h200" => "h200 sxm",
        "rtx pro 6000 wk" => "rtx pro 6000 workstation",
        "rtx pro 6000 maxq" => "rtx pro 6000 max-q",
        other => other,
    };
    let found = GpuModels::built_in().resolve(label, &BTreeMap::new(), None, None, false).ok()?;
    Some(found.model.name.as_str())
}

/// A file of text, inflated if need be.
pub fn read(path: &Path) -> String {
    let bytes = std::fs::read(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let mut text = String::new();
    match flate2::read::GzDecoder::new(bytes.as_slice()).read_to_string(&mut text) {
        Ok(_) => text,
        Err(_) => String::from_utf8(bytes).expect("the file is text"),
    }
}

/// Files of a folder in order of name, with an ending.
pub fn files(folder: &Path, ending: &str) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    let mut files: Vec<PathBuf> = entries.map(|entry| entry.expect("an entry").path()).collect();
    files.retain(|path| path.to_string_lossy().ends_with(ending));
    files.sort();
    files
}
