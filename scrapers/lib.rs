#![doc = include_str!("README.md")]

pub mod contract;
pub mod grid;
pub mod hardware;
pub mod html;
pub mod json;
pub mod manifest;
pub mod money;
pub mod plain;
pub mod recordings;
pub mod refusal;
pub mod sieve;
pub mod words;

mod alibaba;
mod aws;
mod azure;
mod ecb;
mod gcp;
mod hotaisle;
mod huawei;
mod hyperstack;
mod jarvislabs;
mod lambda;
mod modal;
mod nebius;
mod oci;
mod tencent;
mod thundercompute;
mod together;
mod volcengine;
mod vultr;

use std::collections::BTreeMap;

use contract::{Page, Parsed, SCOPE_ALL, SCOPE_INDEX, ScrapeError, Scraper};
use sha2::{Digest, Sha256};

/// Every source, in alphabetical order.
pub const ALL: &[&dyn Scraper] = &[
    &alibaba::Alibaba,
    &aws::Aws,
    &azure::Azure,
    &ecb::Ecb,
    &gcp::Gcp,
    &hotaisle::Hotaisle,
    &huawei::Huawei,
    &hyperstack::Hyperstack,
    &jarvislabs::Jarvislabs,
    &lambda::Lambda,
    &modal::Modal,
    &nebius::Nebius,
    &oci::Oci,
    &tencent::Tencent,
    &thundercompute::Thundercompute,
    &together::Together,
    &volcengine::Volcengine,
    &vultr::Vultr,
];

/// The source of a name.
#[must_use]
pub fn find(provider: &str) -> Option<&'static dyn Scraper> {
    ALL.iter().find(|scraper| scraper.manifest().provider == provider).copied()
}

/// Share of rows not understood above which a scope is refused, in percent. The rows that were understood are of a page
/// that has become something else.
pub const SKIPPED_PERCENT_MAX: usize = 20;

/// Reads pages scope by scope: one scope that cannot be read costs that scope and no other.
#[must_use]
pub fn read(scraper: &dyn Scraper, pages: Vec<Page>) -> BTreeMap<String, Result<Parsed, ScrapeError>> {
    let mut by_scope: BTreeMap<String, Vec<Page>> = BTreeMap::new();
    for page in pages {
        by_scope.entry(page.scope.clone()).or_default().push(page);
    }
    by_scope.remove(SCOPE_INDEX);
    by_scope.into_iter().map(|(scope, pages)| (scope, read_scope(scraper, &pages))).collect()
}

fn read_scope(scraper: &dyn Scraper, pages: &[Page]) -> Result<Parsed, ScrapeError> {
    let parsed = scraper.parse(pages)?;
    let skipped: Vec<_> = parsed.skipped.iter().filter(|row| !row.reason.is_stated_by_source()).collect();
    let rows = parsed.offers.len() + parsed.rates.len() + skipped.len();
    if let Some(first) = skipped.first()
        && skipped.len() * 100 > rows * SKIPPED_PERCENT_MAX
    {
        return Err(ScrapeError::TooManySkipped {
            skipped: skipped.len(),
            rows,
            first: first.label.clone(),
            reason: first.reason.to_string(),
        });
    }
    Ok(parsed)
}

/// Sets the scope of pages that came from files, told from their content.
///
/// # Errors
/// The pages that cannot be read at all, each with its reason; the others are returned beside them.
#[must_use]
pub fn assign_scopes(scraper: &dyn Scraper, mut pages: Vec<Page>) -> (Vec<Page>, Vec<(Page, ScrapeError)>) {
    let mut refused = Vec::new();
    let mut all_together = false;
    let mut kept = Vec::new();
    for mut page in pages.drain(..) {
        match scraper.scope(&page) {
            Ok(Some(scope)) => {
                page.scope = scope;
                kept.push(page);
            }
            Ok(None) => {
                all_together = true;
                kept.push(page);
            }
            Err(error) => refused.push((page, error)),
        }
    }
    if all_together {
        for page in kept.iter_mut().filter(|page| page.scope != SCOPE_INDEX) {
            SCOPE_ALL.clone_into(&mut page.scope);
        }
    }
    (kept, refused)
}

/// SHA-256 in lower-case hexadecimal.
#[must_use]
pub fn sha256(bytes: &[u8]) -> String {
    hex(&Sha256::digest(bytes))
}

/// Bytes in lower-case hexadecimal.
#[must_use]
pub fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
