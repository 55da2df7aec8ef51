//! What the rules found in a night, listed: also of a night that was refused.
//!
//! In: `runs/<id>.findings.parquet`. Out: rows, the gravest first. Judges nothing again.

use std::fmt::Write as _;
use std::path::Path;

use polars::prelude::*;

use crate::archive::Archive;
use crate::cli::Findings;
use crate::exit::Exit;
use crate::frame::Cell;
use crate::night::SnapshotId;
use crate::print::{self, Format, Heading, heading};
use crate::report::{Failed, Said};
use crate::runs::ids_with;
use crate::snapshot::{SnapshotError, read};
use crate::validate::Severity;

/// Why findings cannot be listed.
#[derive(Debug, thiserror::Error)]
pub enum FindingsError {
    /// No run has left findings.
    #[error("find a run below {runs}: nothing has been collected yet")]
    NoRun {
        /// The folder.
        runs: String,
    },
    /// The night left none.
    #[error("find the findings of `{wanted}`; {known}")]
    NoSuchRun {
        /// What was asked for.
        wanted: String,
        /// What there is.
        known: String,
    },
    /// A filter names what no finding has.
    #[error("find {what} `{typed}` among the findings of {night}; there are {known}")]
    NoSuchValue {
        /// What it should be. `rule`
        what: &'static str,
        /// What was typed.
        typed: String,
        /// The night.
        night: SnapshotId,
        /// What there is.
        known: String,
    },
}

impl From<FindingsError> for Failed {
    fn from(error: FindingsError) -> Self {
        let help = match &error {
            FindingsError::NoRun { .. } => "`gpuledger collect` collects tonight's prices",
            FindingsError::NoSuchRun { .. } => "a run is named by its id, its day, a version, `latest` or `previous`",
            FindingsError::NoSuchValue { .. } => "leave the filter out to see all",
        };
        Self::new(Exit::Usage, "", &error).with_help(help)
    }
}

const HEADINGS: [Heading; 7] = [
    heading("severity", "severity"),
    heading("rule", "rule"),
    heading("provider", "provider"),
    heading("scope", "scope"),
    heading("label", "what"),
    heading("reason", "reason"),
    heading("raw_place", "place"),
];

/// Lists the findings of a night.
///
/// # Errors
/// When there is no such night, or a filter names what no finding has.
pub async fn findings(args: &Findings) -> Result<Said, Failed> {
    let output = args.dataset.output.as_path();
    let night = choose(output, &args.night).await?;
    let all = of_night(output, night)?;
    let rows = filtered(&all, night, args)?;
    let talk = told(&all, &rows, night, output)?;
    let rows = if args.limit == 0 { rows } else { rows.head(Some(args.limit)) };
    let data = if args.printing.format == Format::Table {
        let mut text = print::table(&rows, &HEADINGS)?;
        text.push_str(&pages(&rows, &Archive::below(output))?);
        text.into()
    } else {
        print::rows(&rows, &[], args.printing.format)?
    };
    Ok(Said { data, talk: Some(talk), exit: Exit::Good })
}

/// The night a person means. A refused night has no version and is named by its id or its day.
async fn choose(output: &Path, wanted: &str) -> Result<SnapshotId, Failed> {
    let nights = ids_with(output, "findings.parquet");
    let (Some(first), Some(last)) = (nights.first(), nights.last()) else {
        return Err(FindingsError::NoRun { runs: output.join("runs").display().to_string() }.into());
    };
    let found = match wanted {
        "latest" => Some(*last),
        "previous" => nights.len().checked_sub(2).map(|index| nights[index]),
        _ => nights.iter().rfind(|night| night.to_string() == wanted || night.date().to_string() == wanted).copied(),
    };
    if let Some(night) = found {
        return Ok(night);
    }
    let published = read::snapshots(output).await?;
    match read::choose(&published, wanted) {
        Ok(snapshot) if nights.contains(&snapshot.id) => Ok(snapshot.id),
        _ => {
            let known = format!("there are {} runs, from {first} to {last}", nights.len());
            Err(FindingsError::NoSuchRun { wanted: wanted.to_owned(), known }.into())
        }
    }
}

/// A night's findings, the gravest first.
fn of_night(output: &Path, night: SnapshotId) -> Result<DataFrame, Failed> {
    let path = output.join("runs").join(format!("{night}.findings.parquet"));
    let unreadable = |source| SnapshotError::Parquet { path: path.clone(), source };
    let options = ScanArgsParquet { glob: false, hive_options: HiveOptions::new_disabled(), ..ScanArgsParquet::default() };
    let rows = LazyFrame::scan_parquet(PlRefPath::new(path.to_string_lossy()), options).map_err(unreadable)?;
    let rows = rows.collect().map_err(unreadable)?;
    let severities = rows.column("severity")?.str()?;
    let grave: Vec<usize> = SEVERITIES
        .iter()
        .flat_map(|severity| {
            let of = severities.iter().enumerate().filter(|(_, word)| *word == Some(severity.word()));
            of.map(|(row, _)| row).collect::<Vec<_>>()
        })
        .collect();
    let order: IdxCa = grave.into_iter().map(|row| IdxSize::try_from(row).ok()).collect();
    Ok(rows.take(&order)?)
}

/// Rows that were held back in a night; `None` where its findings are not there.
#[must_use]
pub fn held_back(output: &Path, night: SnapshotId) -> Option<usize> {
    let rows = of_night(output, night).ok()?;
    let severities = rows.column("severity").ok()?.str().ok()?.clone();
    Some(severities.iter().filter(|word| *word == Some(Severity::QuarantineRow.word())).count())
}

/// Severities, the gravest first.
const SEVERITIES: [Severity; 5] =
    [Severity::RefuseNight, Severity::RefuseProvider, Severity::RefuseScope, Severity::QuarantineRow, Severity::Note];

/// The findings that the filters let through. A word that no finding has is an error, but a severity may be absent for good.
fn filtered(all: &DataFrame, night: SnapshotId, args: &Findings) -> Result<DataFrame, Failed> {
    let mut rows = all.clone();
    for (column, what, words) in
        [("severity", "severity", &args.severity), ("rule", "rule", &args.rule), ("provider", "provider", &args.provider)]
    {
        if words.is_empty() {
            continue;
        }
        let present: Vec<String> = known(all, column)?;
        for word in words {
            let is_known = if column == "severity" {
                SEVERITIES.iter().any(|severity| severity.word() == word)
            } else {
                present.contains(word)
            };
            if !is_known {
                let known = if column == "severity" { SEVERITIES.map(Severity::word).join(", ") } else { present.join(", ") };
                return Err(FindingsError::NoSuchValue { what, typed: word.clone(), night, known }.into());
            }
        }
        let is_wanted: BooleanChunked = rows
            .column(column)?
            .str()?
            .iter()
            .map(|word| word.is_some_and(|word| words.iter().any(|known| known == word)))
            .collect();
        rows = rows.filter(&is_wanted)?;
    }
    Ok(rows)
}

/// The values of a column, each once, in order.
fn known(rows: &DataFrame, column: &str) -> Result<Vec<String>, Failed> {
    let values: std::collections::BTreeSet<&str> =
        rows.column(column)?.str()?.iter().flatten().filter(|value| !value.is_empty()).collect();
    Ok(values.into_iter().map(str::to_owned).collect())
}

/// What there is in all, and what became of the night.
fn told(all: &DataFrame, rows: &DataFrame, night: SnapshotId, output: &Path) -> Result<String, Failed> {
    let severities = all.column("severity")?.str()?;
    let count = |severity: Severity| severities.iter().filter(|word| *word == Some(severity.word())).count();
    let counts: Vec<String> = SEVERITIES
        .iter()
        .filter(|severity| count(**severity) > 0)
        .map(|severity| format!("{} {}", count(*severity), severity.word()))
        .collect();
    let mut text = format!("{} of {} findings of {night}: {}\n", rows.height(), all.height(), counts.join(", "));
    let record = std::fs::read_to_string(output.join("runs").join(format!("{night}.json"))).unwrap_or_default();
    let outcome = serde_json::from_str::<serde_json::Value>(&record).ok();
    if let Some(outcome) = outcome.as_ref().and_then(|record| record["outcome"].as_str()) {
        let _ = writeln!(text, "The night was {outcome}.", outcome = outcome.replace('_', " "));
    }
    Ok(text)
}

/// The pages of the rows that are shown, each once, and how to see their bytes.
fn pages(rows: &DataFrame, archive: &Archive) -> Result<String, Failed> {
    let mut pages: Vec<(String, usize)> = Vec::new();
    for row in 0..rows.height() {
        let sha256 = Cell::at(rows, "raw_sha256", row)?.text();
        match pages.iter_mut().find(|(known, _)| *known == sha256) {
            Some((_, rows)) => *rows += 1,
            None if !sha256.is_empty() => pages.push((sha256, 1)),
            None => {}
        }
    }
    let Some((first, _)) = pages.first() else { return Ok(String::new()) };
    let mut text = String::from("\npages of these rows, by SHA-256:\n");
    for (sha256, rows) in &pages {
        let _ = writeln!(text, "  {sha256}  {rows} rows");
    }
    let _ = writeln!(text, "the bytes of a page: zstd -dc {}", archive.object(first).display());
    Ok(text)
}
