//! What goes into a scraper and what comes out of it.
//!
//! In: pages, untouched. Out: offers and exchange rates *as published*, rows that were not understood, and counts of
//! rows that are not ours. Nothing here converts a currency, a unit or a GPU name, and nothing here has a default price,
//! currency or unit.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use chrono::{DateTime, NaiveDate, Utc};
use num_rational::Ratio;
use rust_decimal::Decimal;
use serde::{Deserialize, Serialize};

use crate::hardware::KnownMachine;
use crate::listings::Listings;
use crate::manifest::Manifest;
pub use crate::refusal::{ScrapeError, SkipReason};
use crate::sieve::Sieve;
use crate::spot::{self, Piece, Spot};
pub use crate::words::{Availability, Os, PricePer, PriceUnit, PricingModel, Site, SourceKind, Tenancy, Upfront};

/// A source of published prices: one folder of this crate.
pub trait Scraper: Sync {
    /// The facts about the source, from the `manifest.toml` beside the code.
    fn manifest(&self) -> &'static Manifest;

    /// The pages a page leads to: pagination and index pages. Called once for every page fetched; the fetching room
    /// bounds how often.
    ///
    /// # Errors
    /// When the page does not have the shape that says what follows.
    fn follow(&self, _page: &Page) -> Result<Vec<PageRequest>, ScrapeError> {
        Ok(Vec::new())
    }

    /// The machines that somebody has read about, for a source that names machines and not their cards.
    fn machines(&self) -> Vec<KnownMachine> {
        Vec::new()
    }

    /// The sieve that a page goes through while it arrives, told from its first bytes (64, or all if there are fewer). `None`
    /// for a page that is kept whole.
    fn sieve(&self, _head: &[u8]) -> Option<&'static Sieve> {
        None
    }

    /// Names of the sieves that pages go through today.
    fn sieves(&self) -> &'static [&'static str] {
        &[]
    }

    /// The pages that say which earlier nights the provider still publishes. None when it publishes no history.
    fn history_index(&self) -> Vec<PageRequest> {
        Vec::new()
    }

    /// The earlier nights that an index of history names, and the pages of each.
    ///
    /// # Errors
    /// When the index does not have the shape that says which nights there are.
    fn history(&self, _index: &Page) -> Result<Vec<PastNight>, ScrapeError> {
        Ok(Vec::new())
    }

    /// The scope a page belongs to, told from its content, for pages that come from files. `None` when the page holds
    /// several scopes; then all pages of the provider are read together as the scope `all`.
    ///
    /// # Errors
    /// When the page cannot be read at all.
    fn scope(&self, _page: &Page) -> Result<Option<String>, ScrapeError> {
        Ok(Some(SCOPE_ALL.to_owned()))
    }

    /// The places that a price was read from, for a person who checks it: the place that its row names, and others where it
    /// was put together from several. `pages` are those of its scope, `text` is what was printed.
    fn spots(&self, _pages: &[Page], place: &Place, _sku: Option<&str>, text: &str) -> Vec<Spot> {
        vec![spot::one(place, text)]
    }

    /// The bytes at a place and around it, the place itself last. `None` when there is no such place in the page.
    fn pieces(&self, page: &Page, at: &str) -> Option<Vec<Piece>> {
        spot::pieces(page, at)
    }

    /// Turns the pages of one scope into what they publish. Pure: the same pages give the same result.
    ///
    /// # Errors
    /// When a page changed shape, holds an error, or holds nothing: then the whole scope is refused.
    fn parse(&self, pages: &[Page]) -> Result<Parsed, ScrapeError>;
}

/// The scope of a source that is complete or not as a whole.
pub const SCOPE_ALL: &str = "all";

/// Mark between a region and a part of it that is complete or not by itself: `us-east-1@plans`, `us-central1@page`. A part says
/// nothing of the rest of its region.
pub const SCOPE_PART: char = '@';

/// The scope of pages that only lead to others, such as a list of zones. They are archived and never parsed for offers.
pub const SCOPE_INDEX: &str = "index";

/// How a page is asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "UPPERCASE")]
pub enum Method {
    /// A plain read.
    Get,
    /// A read that needs a body.
    Post,
}

/// One page to fetch.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct PageRequest {
    /// The page's name within the provider, unique in a night. `retail-eastus-0002`
    pub name: String,
    /// The scope that is incomplete without it. `eastus`
    pub scope: String,
    /// The full address. Never holds a secret.
    pub url: String,
    /// How it is asked for.
    pub method: Method,
    /// What is sent along, for `POST`.
    pub body: Option<String>,
    /// Whether the bytes behind the address never change, so that an archived answer is as good as a new one.
    pub is_immutable: bool,
    /// Whether the page may not exist, which then costs nothing: a region that an earlier night did not have yet.
    pub may_be_missing: bool,
    /// Whether the provider's key is sent along. The key never stands in `url`.
    pub with_key: bool,
}

impl PageRequest {
    /// A plain read of one address.
    #[must_use]
    pub fn get(name: impl Into<String>, scope: impl Into<String>, url: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            scope: scope.into(),
            url: url.into(),
            method: Method::Get,
            body: None,
            is_immutable: false,
            may_be_missing: false,
            with_key: false,
        }
    }

    /// The same, of a page that may not exist.
    #[must_use]
    pub fn if_there(self) -> Self {
        Self { may_be_missing: true, ..self }
    }

    /// The same, of an address whose bytes never change.
    #[must_use]
    pub fn immutable(self) -> Self {
        Self { is_immutable: true, ..self }
    }

    /// The same, with the provider's key.
    #[must_use]
    pub fn keyed(self) -> Self {
        Self { with_key: true, ..self }
    }
}

/// An earlier night that a provider still publishes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PastNight {
    /// When it was published.
    pub published_at: DateTime<Utc>,
    /// Its pages.
    pub pages: Vec<PageRequest>,
}

/// One page as it came, after removing the transfer's compression and nothing else.
#[derive(Debug, Clone)]
pub struct Page {
    /// The page's name within the provider. `retail-eastus-0001`
    pub name: String,
    /// The scope it belongs to. `eastus`
    pub scope: String,
    /// Where it came from: an address, or the name of a file.
    pub url: String,
    /// When it was read from the provider.
    pub observed_at: DateTime<Utc>,
    /// SHA-256 of the bytes, in lower-case hexadecimal.
    pub sha256: String,
    /// The bytes.
    pub body: Vec<u8>,
}

impl Page {
    /// The page as text.
    ///
    /// # Errors
    /// When the bytes are not UTF-8, which also catches compressed bytes that were never inflated.
    pub fn text(&self) -> Result<&str, ScrapeError> {
        std::str::from_utf8(&self.body).map_err(|error| ScrapeError::WrongFormat {
            page: self.name.clone(),
            expected: "UTF-8 text".to_owned(),
            found: if self.body.starts_with(&[0x1f, 0x8b]) {
                "gzip bytes".to_owned()
            } else {
                format!("a byte that is not UTF-8 at offset {}", error.valid_up_to())
            },
        })
    }
}

/// A place in a page: enough to find the row again by hand.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct Place {
    /// The name of the page.
    pub page: String,
    /// JSON pointer, or table and row, or line. `/Items/12`
    pub at: String,
}

/// Everything the pages of one scope publish.
#[derive(Debug, Clone, Default)]
pub struct Parsed {
    /// Prices, in page order.
    pub offers: Vec<PublishedOffer>,
    /// Exchange rates, in page order.
    pub rates: Vec<PublishedRate>,
    /// Rows that should have been offers and were not understood.
    pub skipped: Vec<Skipped>,
    /// Rows that are deliberately not offers, counted by reason. `{"not a GPU machine": 412}`
    pub out_of_scope: BTreeMap<&'static str, u32>,
    /// Fields the pages hold that nobody read and the manifest does not list as ignored.
    pub unread_fields: BTreeSet<String>,
}

impl Parsed {
    /// Counts a row that is deliberately not an offer.
    pub fn leave_out(&mut self, reason: &'static str) {
        *self.out_of_scope.entry(reason).or_insert(0) += 1;
    }

    /// Keeps one of rows that repeat an offer, and none of an offer that has two prices. `key` is what makes two rows the same
    /// offer.
    #[must_use]
    pub fn with_one_price_each<K: Eq + std::hash::Hash>(mut self, key: impl Fn(&PublishedOffer) -> K) -> Self {
        let mut amounts: HashMap<K, BTreeSet<Decimal>> = HashMap::new();
        for offer in &self.offers {
            amounts.entry(key(offer)).or_default().insert(offer.price.amount);
        }
        let mut taken = HashSet::new();
        for offer in std::mem::take(&mut self.offers) {
            let key = key(&offer);
            let prices = amounts.get(&key).map_or(0, BTreeSet::len);
            if prices > 1 {
                let reason = SkipReason::Contradiction(format!("{prices} prices for the same machine, region and terms"));
                let label = offer.sku.or(offer.instance_type).or(offer.offer_label).unwrap_or_default();
                self.skipped.push(Skipped { place: offer.place, label, reason });
            } else if taken.insert(key) {
                self.offers.push(offer);
            } else {
                self.leave_out("repeated price");
            }
        }
        self
    }

    /// Adds what a row turned out to be.
    pub fn take(&mut self, label: impl Into<String>, place: Place, row: Result<PublishedOffer, SkipReason>) {
        match row {
            Ok(offer) => self.offers.push(offer),
            Err(SkipReason::OutOfScope(reason)) => self.leave_out(reason),
            Err(reason) => self.skipped.push(Skipped { place, label: label.into(), reason }),
        }
    }
}

/// A row that was not understood, kept with its reason.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Skipped {
    /// Where it stands.
    pub place: Place,
    /// What the row calls itself. `Standard_NC99_B500_v9`
    pub label: String,
    /// Why it was not taken.
    pub reason: SkipReason,
}

/// How much of a card a machine has, and whether that fraction is a fixed share the source states.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum GpuShare {
    /// Whole cards only.
    Whole,
    /// A fixed share that the source states, such as 1/6 of an A10: a price per whole card follows from it.
    FixedSlice,
    /// A share worked out from memory sizes: no price per whole card follows from it.
    Derived,
}

/// The GPUs of a machine.
#[derive(Debug, Clone, PartialEq)]
pub struct PublishedGpu {
    /// As printed, or as the provider's hardware table names it; `None` where the provider does not name the card.
    /// `NVIDIA H100 SXM`
    pub label: Option<String>,
    /// How many, exactly: 8, or 1/6. `None` where nobody has read how many the machine has: then there is no price per GPU.
    pub count: Option<Ratio<u32>>,
    /// Whether the count is whole cards.
    pub share: GpuShare,
    /// Marketed memory of one card in GB (of the slice, for a slice). 80
    pub memory_gb: Option<Decimal>,
    /// Form of the card where the source tells it apart from the label. `SXM5`
    pub form_factor: Option<String>,
    /// Links between the cards. `NVLink 4`
    pub interconnect: Option<String>,
    /// Network between machines in Gbit/s, whole machine. 3200
    pub fabric_gbit_per_s: Option<u32>,
}

/// Flag of an offer whose machine is not in the provider's hardware table: published with its price and nothing guessed.
pub const UNKNOWN_HARDWARE: &str = "unknown_hardware";

impl PublishedGpu {
    /// The GPUs of a machine that nobody has read about.
    #[must_use]
    pub const fn unknown() -> Self {
        Self {
            label: None,
            count: None,
            share: GpuShare::Whole,
            memory_gb: None,
            form_factor: None,
            interconnect: None,
            fabric_gbit_per_s: None,
        }
    }
}

/// The rest of the machine.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Machine {
    /// Virtual CPUs of the whole machine.
    pub vcpus: Option<Decimal>,
    /// Main memory of the whole machine in GiB.
    pub system_memory_gib: Option<Decimal>,
    /// Local disks of the whole machine in GB, included in the price.
    pub local_disk_gb: Option<Decimal>,
    /// Whether it is a machine without a hypervisor; `None` if not stated.
    pub is_bare_metal: Option<bool>,
}

/// What is agreed.
#[derive(Debug, Clone, PartialEq)]
pub struct Terms {
    /// How it is bought.
    pub pricing_model: PricingModel,
    /// Months promised; `None` where nothing is.
    pub commitment_months: Option<u32>,
    /// What is paid at the start; `None` where not stated or no commitment.
    pub upfront: Option<Upfront>,
    /// The operating system included.
    pub os: Os,
    /// A licence that changes the price. `byol`
    pub licence: Option<String>,
    /// The provider's own plan, where several stand side by side under the same terms: `convertible`, `compute`.
    pub plan: Option<String>,
    /// Whose hardware it is; `None` if not stated.
    pub tenancy: Option<Tenancy>,
    /// Whether it is a promotion beside the list price.
    pub is_promotion: bool,
    /// From when the price holds.
    pub valid_from: Option<DateTime<Utc>>,
    /// Whether it can be had now; `None` if not stated.
    pub availability: Option<Availability>,
    /// Shortest billed time in seconds, where it differs from the manifest's.
    pub min_billing_seconds: Option<u32>,
}

impl Terms {
    /// The plain case: Linux, no commitment, nothing stated beyond the model.
    #[must_use]
    pub fn of(pricing_model: PricingModel) -> Self {
        Self {
            pricing_model,
            commitment_months: None,
            upfront: None,
            os: Os::Linux,
            licence: None,
            plan: None,
            tenancy: None,
            is_promotion: false,
            valid_from: None,
            availability: None,
            min_billing_seconds: None,
        }
    }
}

/// The price as published.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PublishedPrice {
    /// The amount, exactly as printed; of a marketplace the middle one of its listings.
    pub amount: Decimal,
    /// What is paid once at the start of the term, beside the recurring amount.
    pub upfront_amount: Option<Decimal>,
    /// ISO 4217 code. `USD`
    pub currency_code: String,
    /// The time the amount pays for.
    pub unit: PriceUnit,
    /// The thing the amount pays for.
    pub per: PricePer,
    /// The characters on the page. `$2.99`
    pub text: String,
    /// Whether tax is in it; `None` if not stated.
    pub tax_included: Option<bool>,
    /// The listings behind it, of a marketplace; then the amount is the middle one of theirs. `None` for a vendor's price.
    pub listings: Option<Listings>,
}

/// One price as published.
#[derive(Debug, Clone, PartialEq)]
pub struct PublishedOffer {
    /// The price list it is from; `None` = the manifest's.
    pub site: Option<Site>,
    /// The provider's own id for the price, never our identity.
    pub sku: Option<String>,
    /// The provider's name for the machine. `Standard_ND96isr_H100_v5`
    pub instance_type: Option<String>,
    /// What the page calls the offer, where it is not a machine type. `8x NVIDIA H100 SXM`
    pub offer_label: Option<String>,
    /// Region as published; `None` where the price holds everywhere.
    pub region: Option<String>,
    /// Zone as published.
    pub zone: Option<String>,
    /// The GPUs.
    pub gpu: PublishedGpu,
    /// The rest of the machine.
    pub machine: Machine,
    /// What is agreed.
    pub terms: Terms,
    /// The price.
    pub price: PublishedPrice,
    /// Where it stands.
    pub place: Place,
    /// Marks that a reader of the row must know. `derived_share`
    pub flags: BTreeSet<&'static str>,
}

/// One exchange rate as published.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PublishedRate {
    /// The day the rate is of.
    pub date: NaiveDate,
    /// ISO 4217 code of the other currency. `USD`
    pub currency_code: String,
    /// Units of that currency for one euro.
    pub units_per_eur: Decimal,
    /// Where it stands.
    pub place: Place,
}
