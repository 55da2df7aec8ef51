#![doc = include_str!("README.md")]

pub mod contract;
pub mod cut;
pub mod grid;
pub mod hardware;
pub mod html;
pub mod json;
pub mod listings;
pub mod manifest;
pub mod minor_units;
pub mod money;
pub mod plain;
pub mod recordings;
pub mod refusal;
pub mod sieve;
pub mod spot;
pub mod words;

mod alibaba;
mod aws;
mod azure;
mod cloudrift;
mod coreweave;
mod crusoe;
mod digitalocean;
mod ecb;
mod gcp;
mod hetzner;
mod hotaisle;
mod huawei;
mod hyperstack;
mod jarvislabs;
mod lambda;
mod modal;
mod nebius;
mod oci;
mod ovhcloud;
mod runpod;
mod scaleway;
mod seeweb;
mod tencent;
mod thundercompute;
mod together;
mod vastai;
mod verda;
mod volcengine;
mod vultr;

/// Price histories that other people keep.
#[path = "_import/mod.rs"]
pub mod import;

/// Names of other people's catalogues.
#[path = "_export/mod.rs"]
pub mod export;

#[cfg(test)]
mod oracles;
#[cfg(test)]
mod readings;
/// What a new folder starts from; it is here so that it always compiles.
#[cfg(test)]
#[path = "_template/mod.rs"]
mod template;
#[cfg(test)]
mod trackers;

use std::collections::BTreeMap;

use contract::{Page, Parsed, PublishedOffer, SCOPE_ALL, SCOPE_INDEX, ScrapeError, Scraper, SkipReason, Skipped};
use rust_decimal::Decimal;
use sha2::{Digest, Sha256};

/// Every source, in alphabetical order.
pub const ALL: &[&dyn Scraper] = &[
    &alibaba::Alibaba,
    &aws::Aws,
    &azure::Azure,
    &cloudrift::Cloudrift,
    &coreweave::Coreweave,
    &crusoe::Crusoe,
    &digitalocean::Digitalocean,
    &ecb::Ecb,
    &gcp::Gcp,
    &hetzner::Hetzner,
    &hotaisle::Hotaisle,
    &huawei::Huawei,
    &hyperstack::Hyperstack,
    &jarvislabs::Jarvislabs,
    &lambda::Lambda,
    &modal::Modal,
    &nebius::Nebius,
    &oci::Oci,
    &ovhcloud::Ovhcloud,
    &runpod::Runpod,
    &scaleway::Scaleway,
    &seeweb::Seeweb,
    &tencent::Tencent,
    &thundercompute::Thundercompute,
    &together::Together,
    &vastai::Vastai,
    &verda::Verda,
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
    by_scope.into_iter().map(|(scope, pages)| (scope, read_scope(scraper, &pages).map_err(ScrapeError::shortened))).collect()
}

fn read_scope(scraper: &dyn Scraper, pages: &[Page]) -> Result<Parsed, ScrapeError> {
    let parsed = without_impossible_sizes(scraper.parse(pages)?);
    let skipped: Vec<_> = parsed.skipped.iter().filter(|row| !row.reason.is_stated_by_source()).collect();
    // An offer of a marketplace stands for as many rows as it has listings.
    let listed =
        |offer: &PublishedOffer| offer.price.listings.map_or(1, |listings| usize::try_from(listings.count).unwrap_or(usize::MAX));
    let rows = parsed.offers.iter().map(listed).sum::<usize>() + parsed.rates.len() + skipped.len();
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

/// More than any machine has of anything that is counted or measured: processors, GiB, GB, cards.
const LARGEST_SIZE: u32 = 100_000_000;

/// Skips the offers of machines that cannot be: without a processor, with memory below zero, or with a number that nothing
/// reaches. Such a number is a placeholder or a field that means something else, and the row's price cannot be trusted either.
fn without_impossible_sizes(mut parsed: Parsed) -> Parsed {
    for offer in std::mem::take(&mut parsed.offers) {
        match impossible_size(&offer) {
            None => parsed.offers.push(offer),
            Some((field, found)) => {
                let label = offer.instance_type.or(offer.offer_label).or(offer.sku).unwrap_or_default();
                let reason = SkipReason::FieldUnreadable {
                    field: field.to_owned(),
                    expected: "a size that a machine can have",
                    found: format!("`{found}`"),
                };
                parsed.skipped.push(Skipped { place: offer.place, label, reason });
            }
        }
    }
    parsed
}

fn impossible_size(offer: &PublishedOffer) -> Option<(&'static str, String)> {
    let (gpu, machine) = (&offer.gpu, &offer.machine);
    let largest = Decimal::from(LARGEST_SIZE);
    // A machine may well have no disk of its own, and nothing else of which there is none.
    let sizes = [
        ("GPU memory", gpu.memory_gb, false),
        ("vCPUs", machine.vcpus, false),
        ("memory", machine.system_memory_gib, false),
        ("local disk", machine.local_disk_gb, true),
    ];
    let size = sizes.into_iter().find_map(|(field, size, may_be_none)| {
        let size = size?;
        let is_possible = size < largest && !size.is_sign_negative() && (may_be_none || !size.is_zero());
        (!is_possible).then(|| (field, size.to_string()))
    });
    let count = gpu.count.filter(|count| *count.numer() == 0 || hardware::believed(*count).is_none());
    size.or_else(|| count.map(|count| ("GPUs", count.to_string())))
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
