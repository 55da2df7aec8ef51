//! `providers`: the sources, what they say about being read, and how their last night went.
//!
//! In: the manifests and the dataset's coverage. Out: rows. Asks no network.

use gpuledger_scrapers::ALL;
use gpuledger_scrapers::manifest::{Manifest, TermsOfUse};
use polars::prelude::*;

use crate::cli::Listing;
use crate::exit::Exit;
use crate::failed::Failed;
use crate::frame::{Cell, Columns};
use crate::gather::Input;
use crate::print::{self, Heading, heading};
use crate::report::Said;
use crate::snapshot::read;

/// Lists the sources.
///
/// # Errors
/// When the dataset cannot be read.
pub async fn providers(args: &Listing) -> Result<Said, Failed> {
    let output = args.dataset.output.as_path();
    let snapshots = read::snapshots(output).await?;
    let coverage = read::coverage(output, &snapshots).await?;
    let manifests: Vec<_> = ALL.iter().map(|scraper| scraper.manifest()).collect();
    let mut columns = Columns::new(manifests.len());
    columns.texts("provider", manifests.iter().map(|manifest| Some(manifest.provider.as_str())));
    columns.texts("name", manifests.iter().map(|manifest| Some(manifest.name.as_str())));
    columns.texts("source", manifests.iter().map(|manifest| Some(manifest.source.as_str())));
    columns.texts(
        "currency",
        manifests.iter().map(|manifest| {
            let code = manifest.published.as_ref()?.currency_code.as_str();
            Some(if code == "row" { "by row" } else { code })
        }),
    );
    columns.texts("key", manifests.iter().map(|manifest| manifest.fetch.key_env.as_deref()));
    columns.texts("terms", manifests.iter().map(|manifest| Some(manifest.terms.word())));
    let models: Vec<_> = manifests.iter().map(|manifest| models_of(manifest)).collect();
    columns.texts("pricing_models", models.iter().map(Option::as_deref));
    columns.dates("terms_checked_on", manifests.iter().map(|manifest| manifest.terms_checked_on));
    columns.texts("terms_note", manifests.iter().map(|manifest| Some(manifest.terms_note.as_str())));
    columns.texts("homepage", manifests.iter().map(|manifest| Some(manifest.homepage.as_str())));
    let last: PolarsResult<Vec<_>> = manifests.iter().map(|manifest| last_status(&coverage, &manifest.provider)).collect();
    let last = last?;
    columns.texts("last_snapshot", last.iter().map(|last| last.as_ref().map(|(id, _)| id.as_str())));
    columns.texts("last_status", last.iter().map(|last| last.as_ref().map(|(_, status)| status.as_str())));
    const HEADINGS: [Heading; 8] = [
        heading("provider", "provider"),
        heading("source", "source"),
        heading("pricing_models", "pricing models"),
        heading("currency", "currency"),
        heading("key", "key"),
        heading("terms", "terms"),
        heading("last_snapshot", "last snapshot"),
        heading("last_status", "status"),
    ];
    let restricted: Vec<_> = manifests.iter().filter_map(|manifest| only_when_accepted(manifest)).collect();
    let data = print::rows(&columns.finish()?, &HEADINGS, args.printing.format)?;
    Ok(Said { data, talk: (!restricted.is_empty()).then(|| restricted.join("\n") + "\n"), exit: Exit::Good })
}

/// What a provider's terms restrict, and what reads it nevertheless; `None` when they restrict nothing.
#[must_use]
pub fn only_when_accepted(manifest: &Manifest) -> Option<String> {
    if manifest.terms != TermsOfUse::Restricted {
        return None;
    }
    let (name, note) = (&manifest.provider, manifest.terms_note.trim_end_matches('.'));
    let date = manifest.terms_checked_on.map_or_else(String::new, |date| format!(" (terms read on {date})"));
    Some(format!("{name} is asked only with `--accept-terms {name}`: {note}{date}"))
}

/// The ways to buy whose prices are read, as one text.
fn models_of(manifest: &Manifest) -> Option<String> {
    let models = manifest.published.as_ref()?.pricing_models.iter().map(|model| model.word());
    Some(models.collect::<Vec<_>>().join(", "))
}

/// The newest snapshot a provider was tried in, and how it went.
fn last_status(coverage: &DataFrame, provider: &str) -> PolarsResult<Option<(String, String)>> {
    let of_provider =
        coverage.clone().lazy().filter(col("provider").eq(lit(provider)).and(col("input").neq(lit(Input::Import.word()))));
    let newest = of_provider.clone().select([col("snapshot_id").max()]).collect()?;
    let Cell::Text(id) = Cell::at(&newest, "snapshot_id", 0)? else { return Ok(None) };
    let rows = of_provider.filter(col("snapshot_id").eq(lit(id.as_str()))).collect()?;
    let complete = rows.column("status")?.str()?.iter().filter(|status| *status == Some("complete")).count();
    let status = match (complete, rows.height()) {
        (complete, all) if complete == all => "complete",
        (0, _) => "failed or skipped",
        _ => "partial",
    };
    Ok(Some((id, status.to_owned())))
}
