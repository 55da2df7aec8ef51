//! A snapshot as other programs read it: `export`.
//!
//! In: a snapshot, and the form. Out: a folder with gpuhunt's catalogue, SkyPilot's catalogues, or whole rows as CSV or JSON
//! lines. A catalogue gets only what it can say truthfully; everything else is counted by reason. The same snapshot gives the
//! same bytes. Never exports what was imported unless it is asked for by name.

use std::fmt::Write as _;
use std::path::PathBuf;

use gpuledger_scrapers::export::Names;
use polars::prelude::*;

use crate::answer::{self, LeftOut};
use crate::cli::Dataset;
use crate::exit::Exit;
use crate::frame::Columns;
use crate::print::{self, Format, heading};
use crate::report::{Failed, Said};
use crate::snapshot::read::{self, Snapshot};
use folder::{Files, FolderError};

pub mod folder;
pub mod gpuhunt;
pub mod sift;
pub mod skypilot;

/// Arguments of `export`.
#[derive(Debug, clap::Args)]
pub struct Export {
    /// The dataset.
    #[command(flatten)]
    pub dataset: Dataset,
    /// The folder to write; an earlier export in it is replaced, anything else is left alone
    #[arg(value_name = "DIR")]
    pub folder: PathBuf,
    /// Who is to read it
    #[arg(long, value_enum)]
    pub format: ExportFormat,
    /// Snapshot: id, version, date, `latest` or `previous` [default: the newest that was collected]
    #[arg(long)]
    pub snapshot: Option<String>,
}

/// Who reads an export.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum ExportFormat {
    /// gpuhunt's catalogue
    Gpuhunt,
    /// SkyPilot's catalogues
    Skypilot,
    /// Whole rows, offers.csv
    Csv,
    /// Whole rows, one JSON object a line, offers.ndjson
    Ndjson,
}

impl ExportFormat {
    const fn word(self) -> &'static str {
        match self {
            Self::Gpuhunt => "gpuhunt",
            Self::Skypilot => "skypilot",
            Self::Csv => "csv",
            Self::Ndjson => "ndjson",
        }
    }
}

/// Why there is no export.
#[derive(Debug, thiserror::Error)]
pub enum ExportError {
    /// Rows did not become the form.
    #[error("write the rows in that form: {0}")]
    Form(String),
    /// The folder was not written.
    #[error(transparent)]
    Folder(#[from] FolderError),
}

impl From<csv::Error> for ExportError {
    fn from(error: csv::Error) -> Self {
        Self::Form(error.to_string())
    }
}

impl From<ExportError> for Failed {
    fn from(error: ExportError) -> Self {
        match &error {
            ExportError::Form(_) => Self::new(Exit::Bug, "", &error),
            ExportError::Folder(FolderError::Disk { .. }) => {
                Self::new(Exit::Refused, "", &error).with_help("nothing was exported; look at the disk, or name another folder")
            }
            ExportError::Folder(FolderError::NotAnExport { .. } | FolderError::NoName { .. }) => {
                Self::new(Exit::Usage, "", &error).with_help("name a folder that is not there yet, or that only exports are in")
            }
        }
    }
}

/// Writes an export and lists its tables.
///
/// # Errors
/// When there is no such snapshot, or the folder cannot be written; then it is as it was.
pub async fn export(args: &Export) -> Result<Said, Failed> {
    let output = args.dataset.output.as_path();
    let snapshots = read::snapshots(output).await?;
    let snapshot = choose(&snapshots, args.snapshot.as_deref())?;
    let rows = read::offers(snapshot)?.collect()?;
    let id = snapshot.id.to_string();
    let mut left_out = LeftOut::default();
    let mut shown = rows.clone();
    let files = match args.format {
        ExportFormat::Gpuhunt => {
            let names = Names::gpuhunt();
            let sifted = sift::sift(&rows, &names)?;
            (left_out, shown) = (sifted.left_out, sifted.rows);
            gpuhunt::files(&sifted.items, &names, &id)?
        }
        ExportFormat::Skypilot => {
            let sifted = sift::sift(&rows, &Names::skypilot())?;
            (left_out, shown) = (sifted.left_out, sifted.rows);
            skypilot::files(&sifted.items, &mut left_out)?
        }
        ExportFormat::Csv => whole_rows(&rows, "offers.csv", Format::Csv)?,
        ExportFormat::Ndjson => whole_rows(&rows, "offers.ndjson", Format::Ndjson)?,
    };
    folder::write(&args.folder, args.format.word(), &id, &files).map_err(ExportError::from)?;
    let tables: Vec<(&str, usize)> = files.tables().collect();
    let mut columns = Columns::new(tables.len());
    columns.texts("file", tables.iter().map(|(path, _)| Some(*path)));
    columns.longs("rows", tables.iter().map(|(_, rows)| i64::try_from(*rows).ok()));
    let data = print::table(&columns.finish()?, &[heading("file", "file"), heading("rows", "rows")])?;
    let mut talk = format!("snapshot {id} is in {} for {}\n", args.folder.display(), args.format.word());
    if snapshot.is_import() {
        let _ = writeln!(talk, "imported: its prices are what somebody else kept, and no word of the sellers");
    }
    talk.push_str(&left_out.words("left out:"));
    talk.push_str(&answer::of_night(output, snapshot, &shown).await?);
    Ok(Said { data: data.into(), talk: Some(talk), exit: Exit::Good })
}

fn whole_rows(rows: &DataFrame, name: &str, format: Format) -> PolarsResult<Files> {
    let mut files = Files::default();
    files.add(name.to_owned(), Some(rows.height()), print::rows(rows, &[], format)?.bytes().to_vec());
    Ok(files)
}

/// The snapshot that is meant: without a word the newest that was collected.
fn choose<'a>(snapshots: &'a [Snapshot], wanted: Option<&str>) -> Result<&'a Snapshot, Failed> {
    if let Some(wanted) = wanted {
        return Ok(read::choose(snapshots, wanted)?);
    }
    let latest = read::choose(snapshots, "latest")?;
    if latest.is_import() {
        return Err(Failed::of("find a night that was collected: there are only imported ones")
            .with_help("name one with --snapshot; `gpuledger snapshots` lists them"));
    }
    Ok(latest)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::normalise::gpu::GpuModels;

    #[test]
    fn every_card_and_maker_of_a_catalogue_is_one_that_the_program_knows() {
        for names in [Names::gpuhunt(), Names::skypilot()] {
            let of_sellers = names.cards_of.values().flat_map(|cards| cards.keys());
            for card in names.cards.keys().chain(of_sellers).chain(names.processors.keys()) {
                let model = GpuModels::built_in().get(card).unwrap_or_else(|| panic!("{}: {card}", names.name));
                assert!(names.makers.contains_key(&model.vendor), "{}: {card}", names.name);
            }
        }
    }
}
