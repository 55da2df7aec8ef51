//! Which pages a night is made of: each provider asked side by side, or read from recordings or files, or not asked at all.
//!
//! In: the command line and the providers. Out: a delivery each, in order of name. Never reads a page.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Instant;

use gpuledger_scrapers::contract::{SCOPE_ALL, Scraper};
use gpuledger_scrapers::manifest::TermsOfUse;

use crate::archive::Archive;
use crate::cli::Collect;
use crate::fetch::{Client, Key, Turns, fetch_provider};
use crate::gather::{Delivery, Failure, Input};
use crate::night::SnapshotId;
use crate::progress::Bars;
use crate::run::RunError;
use crate::source;

/// The pages of a night: from the network, from recordings, or from files.
///
/// # Errors
/// When the files, the archive or the HTTP client cannot be used. A provider's failure is no error.
pub async fn deliver(
    args: &Collect,
    scrapers: &[&'static dyn Scraper],
    snapshot: SnapshotId,
    archive: &Archive,
) -> Result<Vec<Delivery>, RunError> {
    if let Some(folder) = &args.from {
        let mut deliveries = Vec::new();
        for scraper in scrapers {
            let of_provider = folder.join(&scraper.manifest().provider);
            if of_provider.is_dir() {
                deliveries.push(source::from_files(*scraper, &of_provider, snapshot.instant(), archive)?);
            } else if !args.providers.is_empty() {
                deliveries.push(skipped(*scraper, Input::Files, format!("there is no folder {}", of_provider.display())));
            }
        }
        return Ok(deliveries);
    }
    // A night longer than the clock can count is one without an end.
    let night_ends_at = args.max_minutes.and_then(|minutes| Instant::now().checked_add(minutes));
    let client = Client::new(args.contact.as_deref()).map_err(RunError::Client)?.until(night_ends_at);
    let (turns, bars) = (Turns::default(), Arc::new(Bars::new(!args.recorded)));
    let mut deliveries = Vec::new();
    let mut tasks = tokio::task::JoinSet::new();
    let mut started = HashMap::new();
    for (index, scraper) in scrapers.iter().copied().enumerate() {
        if args.recorded {
            deliveries.push((index, source::recorded(scraper, archive)?));
        } else if let Some(reason) = why_not(scraper, &args.accept_terms) {
            deliveries.push((index, skipped(scraper, Input::Live, reason)));
        } else {
            let (client, turns, archive, bars) = (client.clone(), turns.clone(), archive.clone(), Arc::clone(&bars));
            let task = tasks.spawn(async move {
                let bar = bars.provider(&scraper.manifest().provider);
                let delivery =
                    fetch_provider(&client, &turns, &archive, scraper, &|done, known, bytes| bar.update(done, known, bytes))
                        .await;
                bar.finish(&delivery);
                delivery
            });
            started.insert(task.id(), (index, scraper));
        }
    }
    while let Some(ended) = tasks.join_next_with_id().await {
        let (id, delivery) = match ended {
            Ok((id, delivery)) => (id, Some(delivery)),
            Err(error) => (error.id(), None),
        };
        let (index, scraper) = started[&id];
        // Fetching that panics is a fault of this program and costs its provider, not the night.
        let reason = || "fetching it panicked, which is a fault of this program".to_owned();
        let panicked = || nothing(scraper, Input::Live, "panicked", reason(), false);
        deliveries.push((index, delivery.unwrap_or_else(panicked)));
    }
    deliveries.sort_by_key(|(index, _)| *index);
    Ok(deliveries.into_iter().map(|(_, delivery)| delivery).collect())
}

/// Why a provider is not asked at all; `None` when it is.
#[must_use]
pub fn why_not(scraper: &dyn Scraper, accepted: &[String]) -> Option<String> {
    let manifest = scraper.manifest();
    if manifest.terms == TermsOfUse::Restricted && !accepted.contains(&manifest.provider) {
        return Some(format!(
            "its terms restrict reading by machine: {}; name it in --accept-terms to read it",
            manifest.terms_note.trim_end_matches('.')
        ));
    }
    let name = manifest.fetch.key_env.as_ref().filter(|_| !manifest.fetch.key_optional)?;
    // A key that is there and cannot be sent is told when the pages are asked for: that is a failure.
    matches!(Key::of(manifest), Ok(None)).then(|| format!("it needs a key in the environment variable {name}"))
}

fn skipped(scraper: &'static dyn Scraper, input: Input, reason: String) -> Delivery {
    nothing(scraper, input, "not_asked", reason, true)
}

/// A delivery without pages, and why.
fn nothing(scraper: &'static dyn Scraper, input: Input, code: &str, reason: String, is_skip: bool) -> Delivery {
    let failure = Failure { scope: SCOPE_ALL.to_owned(), code: code.to_owned(), reason, is_skip };
    Delivery { failures: vec![failure], ..Delivery::of(scraper, input) }
}
