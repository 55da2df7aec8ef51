//! `record`: a provider's pages fetched politely and stored as a dated recording with its receipt.
//!
//! The first thing to run for a source that no live page was seen of: it brings the bytes home before anything judges
//! them, and then says whether the parser can read them.

use std::fmt::Write as _;
use std::path::PathBuf;

use chrono::Utc;
use gpuledger_scrapers::read;

use crate::archive::{self, Archive, ArchiveError, write_whole};
use crate::cli::Record;
use crate::deliver::why_not;
use crate::fetch::{Client, Turns, fetch_provider};
use crate::print::harmless;
use crate::run::{self, RunError};

/// Why there is no recording.
#[derive(Debug, thiserror::Error)]
pub enum RecordError {
    /// The provider is not to be read.
    #[error("record {provider}: {reason}")]
    NotAsked {
        /// The provider.
        provider: String,
        /// Why.
        reason: String,
    },
    /// No page could be had.
    #[error("record {provider}: {reason}")]
    NothingFetched {
        /// The provider.
        provider: String,
        /// Why.
        reason: String,
    },
    /// The run could not start.
    #[error(transparent)]
    Run(#[from] RunError),
    /// The disk refused.
    #[error("store the recording")]
    Disk(#[from] ArchiveError),
}

/// Records a provider; says what was stored and whether it reads.
///
/// # Errors
/// When nothing could be fetched or stored.
pub async fn record(args: &Record) -> Result<String, RecordError> {
    let scraper = *run::providers(std::slice::from_ref(&args.provider))?.first().expect("the provider exists");
    let manifest = scraper.manifest();
    if let Some(reason) = why_not(scraper, &args.accept_terms) {
        return Err(RecordError::NotAsked { provider: args.provider.clone(), reason });
    }
    let client = Client::new(args.contact.as_deref()).map_err(RunError::Client)?;
    let at = Utc::now();
    let folder: PathBuf = args.into.join(&args.provider).join("fixtures").join(at.format("%Y-%m-%d").to_string());
    let scratch = folder.join(".archive");
    let archive = Archive::below(&scratch);
    let delivery = fetch_provider(&client, &Turns::default(), &archive, scraper, &|_, _, _| {}).await;
    let failures: Vec<String> =
        delivery.failures.iter().map(|failure| format!("{}: {}", failure.scope, failure.reason)).collect();
    let pages = delivery.pages.iter().map(|receipt| archive.page(receipt)).collect::<Result<Vec<_>, _>>();
    // The scratch archive only served the fetching; the recording holds the bytes as plain files.
    let _ = std::fs::remove_dir_all(&scratch);
    let pages = pages?;
    if delivery.pages.is_empty() {
        let _ = std::fs::remove_dir(&folder);
        return Err(RecordError::NothingFetched { provider: args.provider.clone(), reason: failures.join("; ") });
    }

    let is_sieved = delivery.pages.iter().any(|receipt| receipt.whole.is_some());
    let how = if is_sieved { "as fetched, of bulk files the lines that the sieve keeps," } else { "as fetched, untrimmed," };
    let mut receipt = format!(
        "origin = \"recorded\"\nobserved_at = \"{}\"\nnote = \"{how} by gpuledger {}\"\n",
        at.format("%Y-%m-%dT%H:%M:%SZ"),
        env!("CARGO_PKG_VERSION")
    );
    let mut told = String::new();
    let drafts = archive::drafts(&folder);
    for (index, (page_receipt, page)) in delivery.pages.iter().zip(&pages).enumerate() {
        let file = format!("{}.{}", file_stem(&page.name, index), ending(&page.body));
        write_whole(&drafts, &folder.join(&file), &page.body)?;
        let text = |text: &str| toml::Value::from(text).to_string();
        let _ = write!(
            receipt,
            "\n[[page]]\nname = {}\nfile = {}\nurl = {}\nscope = {}\n",
            text(&page.name),
            text(&file),
            text(&page.url),
            text(&page.scope)
        );
        let _ =
            writeln!(told, "{:>12} bytes  {}  {}", page_receipt.bytes, &page_receipt.sha256[..12], folder.join(&file).display());
    }
    write_whole(&drafts, &folder.join("receipt.toml"), receipt.as_bytes())?;
    for failure in failures {
        let _ = writeln!(told, "not recorded: {}", harmless(&failure));
    }
    let _ = std::fs::remove_dir(&drafts);
    for (scope, result) in read(scraper, pages) {
        let scope = harmless(&scope);
        let _ = match result {
            Ok(parsed) => writeln!(
                told,
                "{scope}: reads, {} offers, {} rates, {} rows skipped",
                parsed.offers.len(),
                parsed.rates.len(),
                parsed.skipped.len()
            ),
            Err(error) => writeln!(
                told,
                "{scope}: does not read: {}\n  mend scrapers/{}/mod.rs against the stored page",
                harmless(&error.to_string()),
                manifest.provider
            ),
        };
    }
    Ok(told)
}

/// The name of a page as the name of a file. A page may be named after what another page says, such as a region, so no sign
/// of it leads out of the folder; one that had to be changed has its number, so that two pages never share a file.
fn file_stem(page: &str, index: usize) -> String {
    const LONGEST: usize = 100;
    let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.' | '@' | '+' | '=');
    if page.chars().all(is_plain) && page.starts_with(|c: char| c.is_ascii_alphanumeric()) && page.len() <= LONGEST {
        return page.to_owned();
    }
    let plain: String = page.chars().filter(|c| is_plain(*c) && *c != '.').take(LONGEST).collect();
    format!("page-{:04}-{plain}", index + 1)
}

/// The ending of a file's name that fits its first byte.
fn ending(body: &[u8]) -> &'static str {
    match body.iter().find(|byte| !byte.is_ascii_whitespace()) {
        Some(b'{' | b'[') => "json",
        Some(b'<') if body.windows(5).take(200).any(|start| start.eq_ignore_ascii_case(b"<html")) => "html",
        Some(b'<') => "xml",
        _ => "bin",
    }
}

#[cfg(test)]
mod tests {
    use super::file_stem;

    #[test]
    fn the_name_of_a_page_leads_out_of_no_folder() {
        for name in ["prices-eastus-0001", "us-central1@page", "hist.2026"] {
            assert_eq!(file_stem(name, 0), name);
        }
        let long = "x".repeat(5_000);
        for name in ["../../x", "/etc/x", ".archive", "a\0b", "", "..", "c:\\x", "x/../../y", long.as_str(), "\u{202e}x"] {
            let stem = file_stem(name, 6);
            assert!(stem.starts_with("page-0007-") && stem.len() < 120 && !stem.contains(['/', '\\', '.', '\0']), "{stem}");
        }
    }
}
