//! `parse`: a provider's pages from files, shown as offers. Publishes nothing.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use gpuledger_scrapers::assign_scopes;
use gpuledger_scrapers::contract::{Page, Parsed, SCOPE_INDEX, ScrapeError, Scraper};
use polars::prelude::*;

use crate::cli::Parse;
use crate::exit::Exit;
use crate::frame::{self, Columns};
use crate::night::SnapshotId;
use crate::normalise::{Observed, normalise};
use crate::offer::RATES;
use crate::print::{self, Heading, harmless, heading};
use crate::report::{Failed, Said};
use crate::{query, run, source};

/// Reads pages of a provider from files.
///
/// # Errors
/// When a file does not read, or its pages are refused.
pub fn parse(args: &Parse) -> Result<Said, Failed> {
    let scraper = *run::providers(std::slice::from_ref(&args.provider))?.first().expect("the provider exists");
    let at = args.at.unwrap_or_else(chrono::Utc::now);
    let mut pages = Vec::new();
    for file in &args.files {
        pages.push(
            source::page_of(scraper, file, at).map(|(page, _)| page).map_err(|error| Failed::new(Exit::Usage, "", &error))?,
        );
    }
    let (pages, unreadable) = assign_scopes(scraper, pages);
    if let Some((_, error)) = unreadable.first() {
        return Err(shape(error, &args.provider));
    }
    let parsed = parsed_by_scope(scraper, &pages).map_err(|error| shape(&error, &args.provider))?;
    let talk = parse_talk(&parsed);
    let rows = if parsed.offers.is_empty() { rate_rows(&parsed)? } else { offer_rows(scraper, &pages, &parsed, at)? };
    let headings: &[Heading] = if parsed.offers.is_empty() { &RATE_HEADINGS } else { &query::HEADINGS };
    let data = print::rows(&rows, headings, args.printing.format)?;
    Ok(Said { data, talk: Some(talk), exit: Exit::Good })
}

/// What stands on the pages, each scope read by itself as in a night.
fn parsed_by_scope(scraper: &dyn Scraper, pages: &[Page]) -> Result<Parsed, ScrapeError> {
    let mut by_scope: BTreeMap<&str, Vec<Page>> = BTreeMap::new();
    for page in pages.iter().filter(|page| page.scope != SCOPE_INDEX) {
        by_scope.entry(&page.scope).or_default().push(page.clone());
    }
    let mut all = Parsed::default();
    for pages in by_scope.into_values() {
        let of_scope = scraper.parse(&pages)?;
        all.offers.extend(of_scope.offers);
        all.rates.extend(of_scope.rates);
        all.skipped.extend(of_scope.skipped);
        all.unread_fields.extend(of_scope.unread_fields);
        for (reason, rows) in of_scope.out_of_scope {
            *all.out_of_scope.entry(reason).or_insert(0) += rows;
        }
    }
    Ok(all)
}

const RATE_HEADINGS: [Heading; 3] =
    [heading("rate_date", "day"), heading("currency_code", "currency"), heading("units_per_eur", "units per EUR")];

fn shape(error: &ScrapeError, provider: &str) -> Failed {
    let help =
        format!("the parser is scrapers/{provider}/mod.rs; the facts about the page are in scrapers/{provider}/manifest.toml");
    Failed::new(Exit::Refused, "read the pages", error).with_help(&help)
}

fn parse_talk(parsed: &Parsed) -> String {
    let mut talk = String::new();
    for skipped in &parsed.skipped {
        let [label, page, at] = [&skipped.label, &skipped.place.page, &skipped.place.at].map(|text| harmless(text));
        let _ = writeln!(talk, "skipped {label} ({page} {at}): {}", harmless(&skipped.reason.to_string()));
    }
    for (reason, rows) in &parsed.out_of_scope {
        let _ = writeln!(talk, "left out {rows} rows: {reason}");
    }
    for field in &parsed.unread_fields {
        let _ = writeln!(talk, "field `{}` is new: nobody reads it", harmless(field));
    }
    let _ = writeln!(talk, "{} offers, {} rates, {} rows skipped", parsed.offers.len(), parsed.rates.len(), parsed.skipped.len());
    talk
}

fn offer_rows(
    scraper: &'static dyn Scraper,
    pages: &[Page],
    parsed: &Parsed,
    at: chrono::DateTime<chrono::Utc>,
) -> PolarsResult<DataFrame> {
    let mut observed = Vec::with_capacity(parsed.offers.len());
    for offer in &parsed.offers {
        let page = pages.iter().find(|page| page.name == offer.place.page).expect("a parser names only pages it was given");
        observed.push(Observed {
            manifest: scraper.manifest(),
            scope: &page.scope,
            source_url: &page.url,
            raw_sha256: &page.sha256,
            observed_at: at,
            offer,
        });
    }
    let rows = normalise(SnapshotId::at(at), &observed, &frame::empty(&RATES))?;
    let reason = col(crate::normalise::HELD_BACK).alias("held_back");
    rows.0
        .lazy()
        .with_column(col("instance_type").fill_null(col("offer_label")).alias("instance_type"))
        .with_column(reason)
        .drop(by_name([crate::normalise::HELD_BACK], true, false))
        .collect()
}

fn rate_rows(parsed: &Parsed) -> PolarsResult<DataFrame> {
    let mut columns = Columns::new(parsed.rates.len());
    columns.dates("rate_date", parsed.rates.iter().map(|rate| Some(rate.date)));
    columns.texts("currency_code", parsed.rates.iter().map(|rate| Some(rate.currency_code.as_str())));
    columns.decimals("units_per_eur", parsed.rates.iter().map(|rate| Some(rate.units_per_eur)))?;
    columns.finish()
}
