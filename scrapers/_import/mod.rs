//! Earlier public price histories: files of other people → offers as published, night by night.
//!
//! In: a file, and a mapping that says what its columns mean. Out: the file cut into nights, and for each seller of a night a
//! scraper that reads its rows. A history is never the seller's own word: its rows are of `source_kind` import and of a scope
//! of their own. Never fetches, and never guesses whom or what a row means.

pub mod mapping;
mod rentals;
mod table;
#[cfg(test)]
mod tests;

use std::collections::{BTreeSet, HashMap};
use std::sync::{LazyLock, Mutex};

use chrono::{DateTime, Utc};

use crate::contract::{Page, Parsed, PricePer, PublishedPrice, ScrapeError, Scraper, Site, SkipReason, SourceKind};
use crate::hardware::KnownMachine;
use crate::manifest::{Fetch, Manifest, Published, TermsOfUse};
use crate::{money, sha256};
use mapping::{Form, Mapping};

/// Name of the page that holds the mapping.
pub const MAPPING_PAGE: &str = "mapping.toml";

/// Name of the way in which a file is cut into nights: the line of names, and the lines of one night as they are.
pub const CUT: &str = "import-night-1";

/// Flag of an amount that had more digits than its mapping keeps.
pub const AMOUNT_ROUNDED: &str = "amount_rounded";

/// Most letters of a seller's name.
const NAME_MAX: usize = 40;

/// More sellers than anybody tracks: their column is another one.
const SELLERS_MAX: usize = 1_000;

/// One night of a history.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HistoryNight {
    /// When its prices were seen, as the history says.
    pub at: DateTime<Utc>,
    /// Its sellers, by the names that their rows get.
    pub sellers: BTreeSet<String>,
    /// The bytes of the night; `None` where the whole file is of one night.
    pub body: Option<Vec<u8>>,
}

/// A history cut into nights.
#[derive(Debug, Clone, Default)]
pub struct History {
    /// Its nights, oldest first.
    pub nights: Vec<HistoryNight>,
    /// Rows that are of no night, because nobody can read when they were seen: line and text.
    pub undated: Vec<(u64, String)>,
}

/// Cuts a file into nights. `at` and `seller` stand in for what the file does not say.
///
/// # Errors
/// When the file is not what the mapping says, or it is not said when or by whom its prices were asked for.
pub fn history(mapping: &Mapping, page: &Page, at: Option<DateTime<Utc>>, seller: Option<&str>) -> Result<History, ScrapeError> {
    let mut history = match mapping.form {
        Form::Csv => table::history(mapping, page, at, seller)?,
        Form::GpuRentalPrices => rentals::history(mapping, page)?,
    };
    if history.nights.is_empty() {
        return Err(ScrapeError::NothingFound { page: page.name.clone(), at: "rows with a readable time".to_owned() });
    }
    if let Some(night) = history.nights.iter().find(|night| night.sellers.len() > SELLERS_MAX) {
        let found = format!("{} on {}", night.sellers.len(), night.at.date_naive());
        return Err(ScrapeError::changed(page, "the column of sellers", format!("{SELLERS_MAX} sellers at most"), found));
    }
    history.nights.sort_by_key(|night| night.at);
    Ok(history)
}

/// Reads the rows of one seller of a history.
pub struct Importer {
    mapping: Mapping,
    manifest: &'static Manifest,
    /// Our own source of the same provider.
    ours: Option<&'static dyn Scraper>,
    machines: HashMap<String, KnownMachine>,
}

/// The name that a seller's rows get: ours where the mapping says that it is certain, and otherwise one that cannot be taken for
/// ours.
#[must_use]
pub fn provider_of(mapping: &Mapping, theirs: &str) -> String {
    if let Some(ours) = mapping.seller.ours.get(theirs) {
        return ours.clone();
    }
    let plain = theirs.trim().to_lowercase();
    let plain: Vec<&str> = plain.split(|c: char| !c.is_ascii_alphanumeric()).filter(|part| !part.is_empty()).collect();
    let mut plain = plain.join("-");
    // The name is also that of a file. What is too long or has no plain letter is told apart by the hash of the whole name.
    if plain.is_empty() || plain.len() > NAME_MAX {
        plain.truncate(NAME_MAX);
        plain = format!("seller-{plain}-{}", &sha256(theirs.as_bytes())[..8]).replace("--", "-");
    }
    let is_taken = crate::find(&plain).is_some() || mapping.seller.ours.values().any(|ours| *ours == plain);
    if is_taken { format!("{plain}-{}", mapping.name) } else { plain }
}

/// The reader of a provider's rows in a history, made once. `mapping` is the text of [`MAPPING_PAGE`].
///
/// # Errors
/// When the text is no mapping.
pub fn importer(mapping: &str, provider: &str) -> Result<&'static Importer, String> {
    static MADE: LazyLock<Mutex<HashMap<(String, String), &'static Importer>>> = LazyLock::new(Mutex::default);
    let key = (mapping.to_owned(), provider.to_owned());
    let mut made = MADE.lock().expect("nobody panics while a reader is made");
    if let Some(importer) = made.get(&key) {
        return Ok(importer);
    }
    // There are as many as a history has sellers, and the program ends with its verb.
    let importer: &'static Importer = Box::leak(Box::new(Importer::of(Mapping::parse(mapping)?, provider)));
    made.insert(key, importer);
    Ok(importer)
}

impl Importer {
    fn of(mapping: Mapping, provider: &str) -> Self {
        let ours = mapping.seller.ours.values().find(|ours| *ours == provider).and_then(|ours| crate::find(ours));
        let known = ours.map(Scraper::manifest);
        let mut labels = known.map(|manifest| manifest.labels.clone()).unwrap_or_default();
        labels.extend(mapping.gpu.iter().flat_map(|gpu| gpu.labels.clone()));
        let published = Published {
            currency_code: "row".to_owned(),
            unit: None,
            per: PricePer::Instance,
            pricing_models: Vec::new(),
            tax_included: None,
            min_billing_seconds: None,
            hours_per_month: mapping.hours_per_month,
        };
        let manifest = Manifest {
            provider: provider.to_owned(),
            name: known.map_or_else(|| provider.to_owned(), |manifest| manifest.name.clone()),
            source: mapping.source.clone(),
            homepage: mapping.homepage.clone(),
            site: known.map_or(Site::Global, |manifest| manifest.site),
            source_kind: SourceKind::Import,
            scraper_version: mapping.version,
            terms: TermsOfUse::Unchecked,
            terms_checked_on: None,
            terms_note: "a file that somebody else keeps".to_owned(),
            published: Some(published),
            expect: None,
            fetch: Fetch { max_body_mib: 512, ..Fetch::default() },
            pages: Vec::new(),
            ignored_fields: Vec::new(),
            labels,
            regions: known.map(|manifest| manifest.regions.clone()).unwrap_or_default(),
        };
        let machines = ours.map(Scraper::machines).unwrap_or_default();
        let machines = machines.into_iter().map(|machine| (machine.instance_type.to_lowercase(), machine)).collect();
        Self { mapping, manifest: Box::leak(Box::new(manifest)), ours, machines }
    }

    /// Whether rows of a name are this provider's.
    fn sells_as(&self, theirs: &str) -> bool {
        provider_of(&self.mapping, theirs) == self.manifest.provider
    }

    /// A price from its characters, rounded if the mapping says so; the second value is whether it was.
    fn price(&self, text: &str, model: PublishedPrice) -> Result<(PublishedPrice, bool), SkipReason> {
        let amount = money::decimal(text).ok_or_else(|| SkipReason::PriceUnreadable { text: text.to_owned() })?;
        let amount = money::positive(amount, text)?;
        let kept = self.mapping.digits.map_or(amount, |digits| amount.round_dp(digits).normalize());
        let kept = money::positive(kept, text)?;
        Ok((PublishedPrice { amount: kept, text: text.to_owned(), ..model }, kept != amount))
    }
}

impl Scraper for Importer {
    fn manifest(&self) -> &'static Manifest {
        self.manifest
    }

    fn machines(&self) -> Vec<KnownMachine> {
        self.ours.map(Scraper::machines).unwrap_or_default()
    }

    fn parse(&self, pages: &[Page]) -> Result<Parsed, ScrapeError> {
        let mut parsed = Parsed::default();
        for page in pages.iter().filter(|page| page.name != MAPPING_PAGE) {
            match self.mapping.form {
                Form::Csv => table::read(self, page, &mut parsed)?,
                Form::GpuRentalPrices => rentals::read(self, page, &mut parsed)?,
            }
        }
        Ok(parsed)
    }
}
