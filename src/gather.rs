//! What one provider gave tonight: pages in, offers and rates out, each failure with the scope it costs.
//!
//! The pages come from the archive, whether they were fetched, recorded or given as files. Never fetches.

use std::collections::BTreeMap;
use std::panic::AssertUnwindSafe;
use std::time::Instant;

use gpuledger_scrapers::contract::{Parsed, SCOPE_INDEX, ScrapeError, Scraper};
use gpuledger_scrapers::manifest::Manifest;
use gpuledger_scrapers::read;
use serde::{Deserialize, Serialize};

use crate::archive::{Archive, Receipt};
use crate::fetch::Traffic;
use crate::normalise::Observed;
use crate::normalise::currency::Rate;
use crate::print::harmless;
use crate::validate::{Finding, ScopeCoverage, ScopeStatus, Severity};

/// Where the pages of a night come from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Input {
    /// From the provider, now.
    Live,
    /// From a recording made by the program.
    Recorded,
    /// From a recording typed by a person.
    Typed,
    /// From files that somebody keeps.
    Files,
    /// From the provider, of an earlier night.
    History,
    /// From a price history that somebody else keeps.
    Import,
}

impl Input {
    /// Every one.
    pub const ALL: [Self; 6] = [Self::Live, Self::Recorded, Self::Typed, Self::Files, Self::History, Self::Import];

    /// The word in the `coverage` table.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Live => "live",
            Self::Recorded => "recorded",
            Self::Typed => "typed",
            Self::Files => "files",
            Self::History => "history",
            Self::Import => "import",
        }
    }
}

/// A scope that could not be had, with a stable code and a reason for people.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Failure {
    /// The scope it costs.
    pub scope: String,
    /// What happened. `http_status`
    pub code: String,
    /// For people.
    pub reason: String,
    /// Whether it was left out on purpose: no key, restricted terms.
    pub is_skip: bool,
}

/// The archived pages of one provider and what could not be had.
#[derive(Clone)]
pub struct Delivery {
    /// The provider.
    pub scraper: &'static dyn Scraper,
    /// Where the pages come from.
    pub input: Input,
    /// Receipts of the archived pages.
    pub pages: Vec<Receipt>,
    /// Receipts of what came in the place of a page, kept to be looked at and never read.
    pub turned_away: Vec<Receipt>,
    /// Scopes that could not be had.
    pub failures: Vec<Failure>,
    /// Time spent on getting the pages.
    pub seconds: f64,
    /// What the network was asked for; nothing where the pages are from elsewhere.
    pub traffic: Traffic,
}

impl Delivery {
    /// A delivery with nothing in it yet.
    #[must_use]
    pub fn of(scraper: &'static dyn Scraper, input: Input) -> Self {
        let (pages, turned_away, failures) = (Vec::new(), Vec::new(), Vec::new());
        Self { scraper, input, pages, turned_away, failures, seconds: 0.0, traffic: Traffic::default() }
    }
}

/// What one provider gave tonight.
pub struct Gathered {
    /// The provider's facts.
    pub manifest: &'static Manifest,
    /// What the network was asked for.
    pub traffic: Traffic,
    input: Input,
    scopes: BTreeMap<String, Scope>,
}

#[derive(Default)]
struct Scope {
    parsed: Parsed,
    pages: Vec<Receipt>,
    failure: Option<Failure>,
    /// Whether the failure is the parser's word on the pages.
    is_refused: bool,
    seconds: f64,
}

/// Reads a provider's pages scope by scope, so that only one scope's bytes are in memory. A scope with a page missing is not
/// read at all.
///
/// What was refused is asked for again by the next night, even where its address is said never to change.
#[must_use]
pub fn gather(delivery: Delivery, archive: &Archive) -> Gathered {
    let gathered = gather_again(delivery, archive);
    for page in gathered.scopes.values().filter(|scope| scope.is_refused).flat_map(|scope| &scope.pages) {
        // That it cannot be forgotten adds nothing to the refusal.
        let _ = archive.forget(&page.url);
    }
    gathered
}

/// The same of a night that is over: the archive stays as it is.
#[must_use]
pub fn gather_again(delivery: Delivery, archive: &Archive) -> Gathered {
    let manifest = delivery.scraper.manifest();
    let mut scopes: BTreeMap<String, Scope> = BTreeMap::new();
    for receipt in delivery.pages {
        scopes.entry(receipt.scope.clone()).or_default().pages.push(receipt);
    }
    for failure in delivery.failures {
        scopes.entry(failure.scope.clone()).or_default().failure.get_or_insert(failure);
    }
    // An index page leads to scopes and is none itself, unless it failed: then nobody knows what is missing.
    if scopes.get(SCOPE_INDEX).is_some_and(|index| index.failure.is_none()) {
        scopes.remove(SCOPE_INDEX);
    }
    let share = delivery.seconds / f64::from(u32::try_from(scopes.len().max(1)).expect("there are few scopes"));
    for (name, scope) in &mut scopes {
        let started = Instant::now();
        if scope.failure.is_none() {
            match read_scope(delivery.scraper, name, &scope.pages, archive) {
                Ok(parsed) => scope.parsed = parsed,
                Err(failure) => {
                    scope.is_refused = failure.code != NOT_ARCHIVED;
                    scope.failure = Some(failure);
                }
            }
        }
        scope.seconds = share + started.elapsed().as_secs_f64();
    }
    Gathered { manifest, traffic: delivery.traffic, input: delivery.input, scopes }
}

/// Code of a page that the archive does not have, or not as it was.
const NOT_ARCHIVED: &str = "not_archived";

fn read_scope(scraper: &dyn Scraper, scope: &str, pages: &[Receipt], archive: &Archive) -> Result<Parsed, Failure> {
    let pages = pages.iter().map(|receipt| archive.page(receipt)).collect::<Result<Vec<_>, _>>().map_err(|error| Failure {
        scope: scope.to_owned(),
        code: NOT_ARCHIVED.to_owned(),
        reason: error.to_string(),
        is_skip: false,
    })?;
    // A parser that panics is a fault of this program and costs its scope, not the night.
    let result = std::panic::catch_unwind(AssertUnwindSafe(|| read(scraper, pages).remove(scope)));
    Err(match result {
        Ok(Some(Ok(parsed))) => return Ok(parsed),
        Ok(None) => return Ok(Parsed::default()),
        Ok(Some(Err(error))) => refused(scope.to_owned(), &error),
        Err(_) => Failure {
            scope: scope.to_owned(),
            code: "parser_panicked".to_owned(),
            reason: "the parser panicked, which is a fault of this program".to_owned(),
            is_skip: false,
        },
    })
}

/// A scope that was refused by its parser.
#[must_use]
pub fn refused(scope: String, error: &ScrapeError) -> Failure {
    Failure { scope, code: error.code().to_owned(), reason: harmless(&error.to_string()).into_owned(), is_skip: false }
}

impl Gathered {
    /// The same of scopes that were read already: their names, the receipts of their pages and what stands on them.
    #[must_use]
    pub fn of_read(
        manifest: &'static Manifest,
        input: Input,
        scopes: impl Iterator<Item = (String, Vec<Receipt>, Parsed)>,
    ) -> Self {
        let scope = |(name, pages, parsed)| (name, Scope { parsed, pages, ..Scope::default() });
        Self { manifest, input, scopes: scopes.map(scope).collect(), traffic: Traffic::default() }
    }

    /// Whether the pages were fetched tonight.
    #[must_use]
    pub fn is_live(&self) -> bool {
        self.input == Input::Live
    }

    /// Receipts of a scope's pages.
    pub fn pages(&self, scope: &str) -> impl Iterator<Item = &Receipt> + '_ {
        self.scopes.get(scope).into_iter().flat_map(|scope| &scope.pages)
    }

    /// Rows of a scope that should have been offers and were not understood. Where the source itself says that there is no
    /// price, nothing was misunderstood.
    #[must_use]
    pub fn not_understood(&self, scope: &str) -> usize {
        let skipped = self.scopes.get(scope).into_iter().flat_map(|scope| &scope.parsed.skipped);
        skipped.filter(|row| !row.reason.is_stated_by_source()).count()
    }

    /// Where the pages come from.
    #[must_use]
    pub const fn input(&self) -> Input {
        self.input
    }

    /// Offers of the scopes that could be read.
    pub fn offers(&self) -> impl Iterator<Item = Observed<'_>> + '_ {
        self.scopes.iter().flat_map(move |(name, scope)| {
            // Neighbours mostly stand on one page.
            let mut last: Option<&Receipt> = None;
            scope.parsed.offers.iter().map(move |offer| {
                let page = last.filter(|page| page.page == offer.place.page).unwrap_or_else(|| scope.page(&offer.place.page));
                last = Some(page);
                Observed {
                    manifest: self.manifest,
                    scope: name,
                    source_url: &page.url,
                    raw_sha256: &page.sha256,
                    observed_at: page.observed_at,
                    offer,
                }
            })
        })
    }

    /// Exchange rates of the scopes that could be read.
    pub fn rates(&self) -> impl Iterator<Item = Rate> + '_ {
        self.scopes.values().flat_map(|scope| {
            scope.parsed.rates.iter().map(|rate| {
                let page = scope.page(&rate.place.page);
                Rate {
                    date: rate.date,
                    currency_code: rate.currency_code.clone(),
                    units_per_eur: rate.units_per_eur,
                    observed_at: page.observed_at,
                    source_url: page.url.clone(),
                    raw_sha256: page.sha256.clone(),
                    raw_place: rate.place.at.clone(),
                }
            })
        })
    }

    /// What each scope covers before the night is judged.
    pub fn coverage(&self) -> impl Iterator<Item = ScopeCoverage> + '_ {
        self.scopes.iter().map(|(name, scope)| ScopeCoverage {
            provider: self.manifest.provider.clone(),
            scope: name.clone(),
            status: match &scope.failure {
                None => ScopeStatus::Complete,
                Some(failure) if failure.is_skip => ScopeStatus::Skipped,
                Some(_) => ScopeStatus::Failed,
            },
            rows: scope.parsed.rates.len(),
            skipped: scope.parsed.skipped.len(),
            quarantined: 0,
            left_out: scope.parsed.out_of_scope.values().map(|rows| u64::from(*rows)).sum(),
            bytes: scope.pages.iter().map(|page| page.bytes).sum(),
            seconds: scope.seconds,
            reason: scope.failure.as_ref().map(|failure| failure.reason.clone()),
            input: self.input.word(),
            scraper_version: self.manifest.scraper_version,
        })
    }

    /// What reading found: scopes refused, rows not understood, fields nobody reads, rows left out.
    #[must_use]
    pub fn findings(&self) -> Vec<Finding> {
        let mut findings = Vec::new();
        for (name, scope) in &self.scopes {
            let finding = |severity, rule: &str, label: &str, reason: String| Finding {
                severity,
                rule: rule.to_owned(),
                provider: self.manifest.provider.clone(),
                scope: name.clone(),
                label: label.to_owned(),
                raw_sha256: String::new(),
                raw_place: String::new(),
                reason,
            };
            if let Some(failure) = &scope.failure {
                let severity = if failure.is_skip { Severity::Note } else { Severity::RefuseScope };
                findings.push(finding(severity, &failure.code, "", failure.reason.clone()));
            }
            for skipped in &scope.parsed.skipped {
                let mut found =
                    finding(Severity::QuarantineRow, skipped.reason.code(), &skipped.label, skipped.reason.to_string());
                found.raw_sha256.clone_from(&scope.page(&skipped.place.page).sha256);
                found.raw_place.clone_from(&skipped.place.at);
                findings.push(found);
            }
            for (reason, rows) in &scope.parsed.out_of_scope {
                findings.push(finding(Severity::Note, "left_out", "", format!("{rows} rows: {reason}")));
            }
            for field in &scope.parsed.unread_fields {
                findings.push(finding(Severity::Note, "unread_field", field, format!("field `{field}` is new: nobody reads it")));
            }
        }
        findings
    }
}

impl Scope {
    fn page(&self, name: &str) -> &Receipt {
        self.pages.iter().find(|page| page.page == name).expect("a parser names only pages it was given")
    }
}
