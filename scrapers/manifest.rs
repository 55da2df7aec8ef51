//! `manifest.toml` beside each scraper: the facts about a source. Unknown keys are refused.
//!
//! A correction that can be listed belongs here, not into an `if`.

use std::collections::BTreeMap;

use chrono::NaiveDate;
use serde::Deserialize;

use crate::contract::{Method, PageRequest, PricePer, PriceUnit, PricingModel, SCOPE_ALL, Site, SourceKind};

/// The facts about a source.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Manifest {
    /// Short name, also the folder's. `azure`
    pub provider: String,
    /// Full name. `Microsoft Azure`
    pub name: String,
    /// What is read, in one line.
    pub source: String,
    /// The page a person would open.
    pub homepage: String,
    /// The price list.
    pub site: Site,
    /// Who says it.
    pub source_kind: SourceKind,
    /// Raised by one whenever the parser reads the same page differently. Stands on every row.
    pub scraper_version: u32,
    /// Whether reading is allowed.
    pub terms: TermsOfUse,
    /// When the terms were read; absent while unchecked, and always there when they restrict reading.
    pub terms_checked_on: Option<NaiveDate>,
    /// What the terms say, in a sentence.
    pub terms_note: String,
    /// What the prices mean; absent for a source of exchange rates.
    pub published: Option<Published>,
    /// How many offers a healthy night has.
    pub expect: Option<Expect>,
    /// Manners and limits.
    #[serde(default)]
    pub fetch: Fetch,
    /// The pages to start with.
    #[serde(rename = "page")]
    pub pages: Vec<PageSpec>,
    /// Fields of the answers that are known and not needed.
    #[serde(default)]
    pub ignored_fields: Vec<String>,
    /// This provider's odd GPU spellings → the canonical model's name.
    #[serde(default)]
    pub labels: BTreeMap<String, String>,
    /// Region as published → ISO country and metro. `eastus = "US-IAD"`
    #[serde(default)]
    pub regions: BTreeMap<String, String>,
}

/// Whether reading the source by machine is allowed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum TermsOfUse {
    /// Nothing speaks against it.
    Open,
    /// Nobody has read the terms yet.
    Unchecked,
    /// Forbidden or limited: runs only when the user names it.
    Restricted,
}

impl TermsOfUse {
    /// The word as written in manifests.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Open => "open",
            Self::Unchecked => "unchecked",
            Self::Restricted => "restricted",
        }
    }
}

/// What the published numbers mean.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Published {
    /// ISO 4217 code, or `row` when each row states its own.
    pub currency_code: String,
    /// The time an amount pays for, or absent when each row states its own.
    pub unit: Option<PriceUnit>,
    /// The thing an amount pays for.
    pub per: PricePer,
    /// The ways to buy whose prices are read.
    pub pricing_models: Vec<PricingModel>,
    /// Whether tax is in the amounts; absent if not stated.
    pub tax_included: Option<bool>,
    /// Shortest billed time in seconds; absent if not stated.
    pub min_billing_seconds: Option<u32>,
    /// Hours of a month where the source states its own basis; 730 otherwise.
    pub hours_per_month: Option<u32>,
}

/// Bounds of a healthy live night.
#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Expect {
    /// Fewer refuse the provider.
    pub offers_min: usize,
    /// More are noted.
    pub offers_max: usize,
}

/// Manners and limits of fetching.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Fetch {
    /// Shortest time between two requests to the host, in milliseconds.
    pub min_interval_ms: u64,
    /// Longest time for one request, in seconds.
    pub timeout_s: u64,
    /// Largest page after inflating, in MiB.
    pub max_body_mib: u64,
    /// Most pages in a night.
    pub max_pages: usize,
    /// Longest time for all pages of a night, in minutes. What is not had by then is missing tonight.
    pub max_minutes: u64,
    /// Hosts beside those of the start pages that pages may lead to. `g.alicdn.com`
    pub hosts: Vec<String>,
    /// Name of the environment variable that holds the key; absent when none is needed.
    pub key_env: Option<String>,
    /// Where the key goes; needed with `key_env`.
    pub key_in: Option<KeyPlace>,
    /// Whether some pages are open without the key. Then a night without it reads those; otherwise it is skipped.
    pub key_optional: bool,
}

/// Where a request carries the key.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "snake_case")]
pub enum KeyPlace {
    /// In the query, under this name. `key`
    Query(String),
    /// In this header, as it is. `x-api-key`
    Header(String),
    /// In `Authorization`, after `Bearer `.
    Bearer,
}

impl Default for Fetch {
    fn default() -> Self {
        Self {
            min_interval_ms: 1_000,
            timeout_s: 60,
            max_body_mib: 32,
            max_pages: 50,
            max_minutes: 20,
            hosts: Vec::new(),
            key_env: None,
            key_in: None,
            key_optional: false,
        }
    }
}

impl Fetch {
    /// Most requests in a night, with those for robots.txt, redirects and tries again: every page twice, and some.
    #[must_use]
    pub fn requests_max(&self) -> u64 {
        2 * u64::try_from(self.max_pages).unwrap_or(u64::MAX / 4) + 20
    }
}

/// One page, or one page for each scope.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PageSpec {
    /// Name within the provider. With scopes it must hold `{scope}`.
    pub name: String,
    /// Address. With scopes it must hold `{scope}`.
    pub url: String,
    /// How it is asked for; `GET` when absent.
    pub method: Option<Method>,
    /// What is sent along.
    pub body: Option<String>,
    /// The scope it belongs to; `all` when absent.
    pub scope: Option<String>,
    /// One page for each of these scopes.
    #[serde(default)]
    pub scopes: Vec<String>,
    /// `true`: asked for with the key, and only when there is one. `false`: only when there is none. Absent: always, without.
    pub with_key: Option<bool>,
}

impl Manifest {
    /// Reads a manifest.
    ///
    /// # Errors
    /// When the text is not TOML, has an unknown key, a page with scopes does not say where they go, or terms restrict reading
    /// and nobody says when they were read.
    pub fn parse(text: &str) -> Result<Self, String> {
        let manifest: Self = toml::from_str(text).map_err(|error| error.to_string())?;
        for page in &manifest.pages {
            let wants_scope = page.url.contains("{scope}") || page.body.as_deref().is_some_and(|b| b.contains("{scope}"));
            if wants_scope == page.scopes.is_empty() {
                return Err(format!("page `{}`: `{{scope}}` in the address or body and a list `scopes` go together", page.name));
            }
        }
        if manifest.fetch.key_env.is_some() != manifest.fetch.key_in.is_some() {
            return Err("`key_env` and `key_in` go together".to_owned());
        }
        if manifest.terms == TermsOfUse::Restricted && manifest.terms_checked_on.is_none() {
            return Err("`terms = \"restricted\"` goes with the day of `terms_checked_on`".to_owned());
        }
        Ok(manifest)
    }

    /// The pages to start a night with, with or without a key at hand.
    #[must_use]
    pub fn start(&self, has_key: bool) -> Vec<PageRequest> {
        let is_asked = |page: &&PageSpec| page.with_key.is_none_or(|with_key| with_key == has_key);
        self.pages.iter().filter(is_asked).flat_map(PageSpec::requests).collect()
    }

    /// What the prices mean.
    ///
    /// # Panics
    /// When a scraper of prices has no `[published]` table, which its own tests show.
    #[must_use]
    pub fn published(&self) -> &Published {
        self.published.as_ref().expect("a manifest of prices has a [published] table")
    }
}

impl PageSpec {
    fn requests(&self) -> Vec<PageRequest> {
        let request = |scope: &str, fill: &dyn Fn(&str) -> String| PageRequest {
            name: fill(&self.name),
            scope: scope.to_owned(),
            url: fill(&self.url),
            method: self.method.unwrap_or(Method::Get),
            body: self.body.as_deref().map(fill),
            is_immutable: false,
            may_be_missing: false,
            with_key: self.with_key == Some(true),
        };
        if self.scopes.is_empty() {
            return vec![request(self.scope.as_deref().unwrap_or(SCOPE_ALL), &str::to_owned)];
        }
        self.scopes.iter().map(|scope| request(scope, &|text| text.replace("{scope}", scope))).collect()
    }
}
