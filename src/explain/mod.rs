//! A row back to its bytes: `explain`.
//!
//! In: an offer of a snapshot, its receipt and archived pages, the published exchange rates. Out: where the price stands, the
//! very bytes, and each step from there to USD per GPU-hour, worked out once more and held against what is stored. Never
//! changes anything, and never takes a number on trust that it can work out.

mod bytes;
mod facts;
mod show;
mod work;

use std::path::Path;

use gpuledger_scrapers::contract::{Scraper, SourceKind};
use polars::prelude::*;
use serde::Serialize;

use crate::archive::Archive;
use crate::cli::{Explain, ExplainFormat};
use crate::exit::Exit;
use crate::frame::{Cell, Row};
use crate::harmless;
use crate::import;
use crate::print::{self, Heading, heading};
use crate::report::{Failed, Said};
use crate::snapshot::read::{self, Snapshot};
pub use bytes::{Proof, Seen, SeenPiece, State};
pub use facts::FieldSource;
pub use show::text;
pub use work::{Check, RateUsed, Work};

/// Everything that is known of one price.
#[derive(Debug, Serialize)]
pub struct Explanation {
    /// The snapshot.
    pub snapshot_id: String,
    /// The snapshot that it corrects.
    pub corrects: Option<String>,
    /// The row as it is published: every column that is not null, as text.
    pub row: serde_json::Map<String, serde_json::Value>,
    /// The archived answer and the bytes at the place.
    pub proof: Proof,
    /// From the printed amount to the comparable prices.
    pub work: Work,
    /// What did not come from the printed row.
    pub sources: Vec<FieldSource>,
    /// Whether the bytes are verified and every stored price is what is worked out.
    pub is_borne_out: bool,
}

/// Why an offer cannot be explained.
#[derive(Debug, thiserror::Error)]
pub enum ExplainError {
    /// There is none of that id.
    #[error("find an offer whose id begins with `{typed}` in snapshot {snapshot}")]
    NoSuchOffer {
        /// What was typed.
        typed: String,
        /// The snapshot.
        snapshot: String,
    },
    /// Its source is not known to this program any more.
    #[error("explain an offer of {provider}: this program has no parser of it")]
    NoScraper {
        /// The provider.
        provider: String,
    },
}

impl From<ExplainError> for Failed {
    fn from(error: ExplainError) -> Self {
        let failed = Self::new(Exit::Usage, "", &error);
        match error {
            ExplainError::NoSuchOffer { .. } => {
                failed.with_help("`gpuledger offers --format csv` shows the column offer_id; its first characters are enough")
            }
            ExplainError::NoScraper { .. } => failed,
        }
    }
}

const MATCHES: [Heading; 8] = [
    heading("offer_id", "offer_id"),
    heading("provider", "provider"),
    heading("region", "region"),
    heading("instance_type", "machine"),
    heading("os", "os"),
    heading("pricing_model", "model"),
    heading("commitment_months", "months"),
    heading("price_usd_per_gpu_hour", "USD/GPU-hour"),
];

/// Explains an offer.
///
/// # Errors
/// When there is none of that id, or the dataset cannot be read.
pub async fn explain(args: &Explain) -> Result<Said, Failed> {
    let output = args.dataset.output.as_path();
    let snapshots = read::snapshots(output).await?;
    let snapshot = read::choose(&snapshots, &args.snapshot)?;
    let begins = col("offer_id").str().starts_with(lit(args.offer_id.to_lowercase()));
    let rows = read::offers(snapshot)?.filter(begins).sort(["offer_id"], SortMultipleOptions::default()).collect()?;
    match rows.height() {
        0 => Err(ExplainError::NoSuchOffer { typed: args.offer_id.clone(), snapshot: snapshot.id.to_string() }.into()),
        1 => {
            let explained = of_row(output, snapshot, &rows, 0, &gpuledger_scrapers::find).await?;
            let data = match args.format {
                ExplainFormat::Text => text(&explained),
                ExplainFormat::Json => {
                    let json = serde_json::to_string_pretty(&explained).expect("an explanation is plain data");
                    format!("{}\n", harmless::json(&json))
                }
            };
            let exit = if explained.is_borne_out { Exit::Good } else { Exit::NotBorneOut };
            Ok(Said { data: data.into(), talk: None, exit })
        }
        several => {
            let rows = rows.lazy().with_column(col("instance_type").fill_null(col("offer_label")).alias("instance_type"));
            let talk = format!("{several} offers begin with `{}`: type more of one\n", harmless::line(&args.offer_id));
            let data = print::table(&rows.collect()?, &MATCHES)?;
            Ok(Said { data: data.into(), talk: Some(talk), exit: Exit::Usage })
        }
    }
}

/// Explains one row of a snapshot.
///
/// # Errors
/// When the dataset cannot be read, or there is no parser of the row's provider.
pub async fn of_row(
    output: &Path,
    snapshot: &Snapshot,
    rows: &DataFrame,
    row: usize,
    find: &(dyn Fn(&str) -> Option<&'static dyn Scraper> + Sync),
) -> Result<Explanation, Failed> {
    let row = Row { rows, row };
    let provider = row.text("provider")?;
    let archive = Archive::below(output);
    let scraper = if row.text("source_kind")? == SourceKind::Import.word() {
        // What a history says is read by its mapping, whose word its provider's own parser is not.
        let receipts = archive.receipts(snapshot.id, &provider).ok().flatten().unwrap_or_default();
        import::reader(&archive, &provider, &receipts).ok()
    } else {
        find(&provider)
    };
    let scraper = scraper.ok_or(ExplainError::NoScraper { provider })?;
    let proof = bytes::prove(&archive, snapshot.id, scraper, &row)?;
    let work = work::work(output, scraper.manifest(), &row).await?;
    let is_borne_out = proof.is_borne_out() && work.is_borne_out();
    Ok(Explanation {
        snapshot_id: snapshot.id.to_string(),
        corrects: snapshot.id.corrects().map(|corrected| corrected.to_string()),
        sources: facts::sources(scraper, &row)?,
        row: all(&row)?,
        proof,
        work,
        is_borne_out,
    })
}

/// Every column of a row that is not null, as text.
fn all(row: &Row) -> PolarsResult<serde_json::Map<String, serde_json::Value>> {
    let mut all = serde_json::Map::new();
    for name in row.rows.get_column_names() {
        let cell = row.cell(name)?;
        if cell != Cell::Null {
            all.insert(name.to_string(), cell.text().into());
        }
    }
    Ok(all)
}
