//! Earlier public price histories as back-dated snapshots: `import`.
//!
//! In: files that somebody keeps, and a mapping that says what they mean. Out: one snapshot for each night of the history, oldest
//! first, through the same rooms and rules as tonight's: archived, made comparable with the rates of its day, judged, published.
//! Its rows say `import`, and no rule, list or difference takes them for the provider's own word. A night that is there is left
//! alone, so the same file twice commits once and a run that was cut off goes on. Never asks a network.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use chrono::{DateTime, Duration, NaiveDate, Utc};
use gpuledger_scrapers::ALL;
use gpuledger_scrapers::contract::{Method, Page, SCOPE_INDEX, Scraper};
use gpuledger_scrapers::import::mapping::{BUILT_IN, Form, Mapping};
use gpuledger_scrapers::import::{CUT, HistoryNight, MAPPING_PAGE, history, importer};

use crate::archive::{Answer, Archive, Receipt, Whole};
use crate::cli::{Dataset, instant};
use crate::exit::Exit;
use crate::frame::Cell;
use crate::gather::{Delivery, Input, gather};
use crate::night::SnapshotId;
use crate::normalise::currency::{RATE_AGE_DAYS_MAX, Rate};
use crate::print::harmless;
use crate::report::{Failed, Said};
use crate::run::{self, Night, RunError};
use crate::snapshot::read;
use crate::source::{self, SourceError};

/// Arguments of `import`.
#[derive(Debug, clap::Args)]
pub struct Import {
    /// The dataset.
    #[command(flatten)]
    pub dataset: Dataset,
    /// The files; .gz and .zst are inflated
    #[arg(required = true)]
    pub files: Vec<PathBuf>,
    /// A form that the program knows: skypilot, gpuhunt or gpurentalprices
    #[arg(long, value_name = "NAME", conflicts_with = "mapping", required_unless_present = "mapping")]
    pub form: Option<String>,
    /// A file that says what the columns of any other CSV mean
    #[arg(long, value_name = "FILE")]
    pub mapping: Option<PathBuf>,
    /// When the prices were seen, for files that do not say it
    #[arg(long, value_name = "TIME", value_parser = instant)]
    pub at: Option<DateTime<Utc>>,
    /// Whose prices they are in the history's words, for files that do not say it
    #[arg(long, value_name = "NAME")]
    pub provider: Option<String>,
    /// From this day on
    #[arg(long, value_name = "DATE")]
    pub since: Option<NaiveDate>,
    /// To this day
    #[arg(long, value_name = "DATE")]
    pub until: Option<NaiveDate>,
    /// Exchange rates of the European Central Bank beside those of the dataset: its file eurofxref-hist.zip, or the CSV in it
    #[arg(long, value_name = "FILE")]
    pub rates: Option<PathBuf>,
}

/// Why a history cannot be imported.
#[derive(Debug, thiserror::Error)]
pub enum ImportError {
    /// There is no such form.
    #[error("find a form `{name}`; there are {known}")]
    UnknownForm {
        /// What was typed.
        name: String,
        /// What there is.
        known: String,
    },
    /// The mapping does not say what the file means.
    #[error("read the mapping {from}: {reason}")]
    Mapping {
        /// The file, or the name of the form.
        from: String,
        /// What is wrong.
        reason: String,
    },
    /// A file is not what the mapping says.
    #[error("read {}: {reason}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        reason: String,
    },
    /// Neither the files nor the command line say it.
    #[error("know {what}: the files do not say it")]
    NotSaid {
        /// What is missing.
        what: &'static str,
        /// The option that says it.
        help: &'static str,
    },
    /// No seconds are left beside other snapshots of the same minute.
    #[error("find a time for the night of {at}: other snapshots have every second of its minute")]
    NoTimeLeft {
        /// The night.
        at: DateTime<Utc>,
    },
    /// The dataset could not be used.
    #[error(transparent)]
    Run(#[from] RunError),
}

impl From<ImportError> for Failed {
    fn from(error: ImportError) -> Self {
        match error {
            ImportError::Run(error) => error.into(),
            ImportError::NotSaid { help, .. } => Self::new(Exit::Usage, "", &error).with_help(help),
            ImportError::Mapping { .. } => Self::new(Exit::Usage, "", &error)
                .with_help("README.md, under `Price histories of other people`, shows a mapping with every key"),
            ImportError::File { .. } | ImportError::UnknownForm { .. } | ImportError::NoTimeLeft { .. } => {
                Self::new(Exit::Usage, "", &error)
            }
        }
    }
}

/// What a run imported.
#[derive(Debug, Default)]
pub struct Imported {
    /// Nights of the files in the time asked for.
    pub named: usize,
    /// Nights that were there before.
    pub there_before: usize,
    /// The nights of this run, oldest first.
    pub nights: Vec<Night>,
    /// Rows of no night: file, line, and what stands where a time should.
    pub undated: Vec<(PathBuf, u64, String)>,
}

/// Told of each night as it ends.
pub type Told<'a> = &'a (dyn Fn(&Night) + Sync);

/// Imports files and says what came of it.
///
/// # Errors
/// When a file or its mapping does not read, or the dataset cannot be used.
pub async fn run(args: &Import) -> Result<Said, Failed> {
    let told = |night: &Night| {
        let counts = format!("{} offers, {} findings", night.record.offers, night.findings.len());
        eprintln!("{}  {:17}  {counts}", night.snapshot, night.record.outcome);
    };
    let imported = import(args, &told).await?;
    let published = imported.nights.iter().filter(|night| night.exit != Exit::Refused).count();
    let partial = imported.nights.iter().filter(|night| night.exit == Exit::Partial).count();
    let data = format!(
        "{} nights: {} were there before and stay as they are, {published} published now ({partial} of them without some provider), \
         {} refused\n",
        imported.named,
        imported.there_before,
        imported.nights.len() - published
    );
    let mut talk = String::new();
    if let Some((path, line, text)) = imported.undated.first() {
        let rows = imported.undated.len();
        let _ = writeln!(
            talk,
            "{rows} rows are of no night, since nobody can read when they were seen; first {} line {line}: `{}`",
            path.display(),
            harmless(text)
        );
    }
    if partial > 0 || published < imported.nights.len() {
        talk.push_str("`gpuledger findings NIGHT` lists what the rules held back or refused in a night, with reasons.\n");
    }
    let is_whole = imported.undated.is_empty() && imported.nights.iter().all(|night| night.exit == Exit::Good);
    let exit = match (published, is_whole) {
        (0, true) => Exit::NothingDue,
        (0, false) if imported.nights.is_empty() => Exit::NothingDue,
        (0, false) => Exit::Refused,
        (_, true) => Exit::Good,
        (_, false) => Exit::Partial,
    };
    Ok(Said { data: data.into(), talk: (!talk.is_empty()).then_some(talk), exit })
}

/// Imports files.
///
/// # Errors
/// As [`run`]. A night that is refused is no error.
pub async fn import(args: &Import, told: Told<'_>) -> Result<Imported, ImportError> {
    let (from, text) = mapping_text(args)?;
    let mapping = Mapping::parse(&text).map_err(|reason| ImportError::Mapping { from: from.clone(), reason })?;
    check_said(args, &mapping)?;
    let output = args.dataset.output.as_path();
    let files = args.files.iter().map(|path| read_file(args, &mapping, &text, path)).collect::<Result<Vec<_>, _>>()?;
    let mut imported = Imported::default();
    let mut nights: Vec<(&HistoryNight, &File)> = Vec::new();
    for file in &files {
        nights.extend(file.nights.iter().map(|night| (night, file)));
        imported.undated.extend(file.undated.iter().map(|(line, text)| (file.path.clone(), *line, text.clone())));
    }
    let is_asked_for = |night: &HistoryNight| {
        let day = night.at.date_naive();
        args.since.is_none_or(|since| since <= day) && args.until.is_none_or(|until| day <= until)
    };
    nights.retain(|(night, _)| is_asked_for(night));
    nights.sort_by_key(|(night, _)| night.at);
    imported.named = nights.len();

    let _lock = run::open_for_writing(output).await?;
    let archive = Archive::below(output);
    let mut known = Known::read(output, &mapping.scope()).await?;
    let mut planned = Vec::new();
    for (night, file) in nights {
        match known.place(night.at)? {
            Some(snapshot) => planned.push((snapshot, night, file)),
            None => imported.there_before += 1,
        }
    }
    let rates = match &args.rates {
        Some(path) if !planned.is_empty() => rates_of(path, &archive)?,
        _ => Vec::new(),
    };
    if planned.is_empty() {
        return Ok(imported);
    }
    let mut shelf = Shelf::new(&archive, &mapping, &text)?;
    for (snapshot, night, file) in planned {
        let started_at = Utc::now();
        let mut deliveries = Vec::with_capacity(night.sellers.len());
        let pages = shelf.receipts(night, file)?;
        for provider in &night.sellers {
            let scraper = importer(&text, provider).map_err(|reason| ImportError::Mapping { from: from.clone(), reason })?;
            deliveries.push(Delivery { pages: pages.clone(), ..Delivery::of(scraper, Input::Import) });
        }
        let day = snapshot.date();
        let first = day - chrono::Days::new(2 * RATE_AGE_DAYS_MAX);
        let of_day = |rate: &&Rate| (first..=day).contains(&rate.date);
        let mut more: Vec<Rate> = Vec::new();
        for (source, receipt, rates) in &rates {
            archive.keep_receipts(snapshot, source, std::slice::from_ref(receipt)).map_err(RunError::from)?;
            more.extend(rates.iter().filter(of_day).cloned());
        }
        let night = run::judge_and_publish(output, &archive, snapshot, (started_at, None), deliveries, &more).await?;
        told(&night);
        imported.nights.push(night);
    }
    Ok(imported)
}

/// The reader of an imported night's pages, as the archive has its mapping.
///
/// # Errors
/// When the mapping is not among the pages, or does not read any more.
pub fn reader(archive: &Archive, provider: &str, receipts: &[Receipt]) -> Result<&'static dyn Scraper, String> {
    let receipt = receipts.iter().find(|receipt| receipt.page == MAPPING_PAGE).ok_or("its mapping is not among its pages")?;
    let text = archive.read(&receipt.sha256).map_err(|error| error.to_string())?;
    let text = String::from_utf8(text).map_err(|error| error.to_string())?;
    Ok(importer(&text, provider)?)
}

/// Looks whether it is known when and by whom the prices were asked for, before any file is read.
fn check_said(args: &Import, mapping: &Mapping) -> Result<(), ImportError> {
    if mapping.form != Form::Csv {
        return Ok(());
    }
    if mapping.night.is_none() && args.at.is_none() {
        return Err(ImportError::NotSaid { what: "when the prices were seen", help: "say it with --at 2026-08-01" });
    }
    if mapping.seller.name.is_none() && mapping.seller.column.is_none() && args.provider.is_none() {
        return Err(ImportError::NotSaid {
            what: "whose prices they are",
            help: "say it with --provider, in the words of the history",
        });
    }
    Ok(())
}

/// The mapping that is asked for: where it is from, and its text.
fn mapping_text(args: &Import) -> Result<(String, String), ImportError> {
    if let Some(path) = &args.mapping {
        let from = path.display().to_string();
        let text = std::fs::read_to_string(path);
        return match text {
            Ok(text) => Ok((from, text)),
            Err(error) => Err(ImportError::Mapping { from, reason: error.to_string() }),
        };
    }
    let name = args.form.clone().unwrap_or_default();
    let known = || BUILT_IN.map(|(name, _)| name).join(", ");
    match BUILT_IN.iter().find(|(known, _)| *known == name) {
        Some((_, text)) => Ok((name, (*text).to_owned())),
        None => Err(ImportError::UnknownForm { known: known(), name }),
    }
}

/// A file, cut into nights.
struct File {
    path: PathBuf,
    page: Page,
    nights: Vec<HistoryNight>,
    undated: Vec<(u64, String)>,
}

fn read_file(args: &Import, mapping: &Mapping, text: &str, path: &Path) -> Result<File, ImportError> {
    let failed = |reason: String| ImportError::File { path: path.to_owned(), reason };
    // Only for the bounds of a page: nothing is parsed here.
    let scraper = importer(text, &mapping.name).map_err(failed)?;
    let (page, _) = source::page_of(scraper, path, Utc::now()).map_err(|error| match error {
        SourceError::Io { source, .. } => failed(source.to_string()),
        error => ImportError::Run(error.into()),
    })?;
    let cut = history(mapping, &page, args.at, args.provider.as_deref()).map_err(|error| failed(error.to_string()))?;
    Ok(File { path: path.to_owned(), page, nights: cut.nights, undated: cut.undated })
}

/// What every night of a run shares: the archive, the history, and the receipts of its mapping and of whole files.
struct Shelf<'a> {
    archive: &'a Archive,
    mapping: &'a Mapping,
    mapping_kept: Receipt,
    whole_kept: BTreeMap<PathBuf, Receipt>,
}

impl<'a> Shelf<'a> {
    fn new(archive: &'a Archive, mapping: &'a Mapping, text: &str) -> Result<Self, RunError> {
        let answer = answer(MAPPING_PAGE, SCOPE_INDEX, &mapping.homepage, text.as_bytes().to_vec());
        Ok(Self { archive, mapping, mapping_kept: archive.keep(answer)?.0, whole_kept: BTreeMap::new() })
    }

    /// Receipts of a night's pages: the mapping, the whole file, and the night's own lines.
    fn receipts(&mut self, night: &HistoryNight, file: &File) -> Result<Vec<Receipt>, RunError> {
        let (scope, whole) = (self.mapping.scope(), &file.page);
        let mut receipts = vec![self.mapping_kept.clone()];
        let body = match &night.body {
            None => answer(&whole.name, &scope, &whole.url, whole.body.clone()),
            Some(body) => {
                if !self.whole_kept.contains_key(&file.path) {
                    let answer = answer(&format!("whole {}", whole.name), SCOPE_INDEX, &whole.url, whole.body.clone());
                    self.whole_kept.insert(file.path.clone(), self.archive.keep(answer)?.0);
                }
                receipts.extend(self.whole_kept.get(&file.path).cloned());
                let bytes = u64::try_from(whole.body.len()).expect("a page fits in memory");
                let cut = Whole { sieve: CUT.to_owned(), sha256: whole.sha256.clone(), bytes };
                Answer { whole: Some(cut), ..answer(&whole.name, &scope, &whole.url, body.clone()) }
            }
        };
        receipts.push(self.archive.keep(body)?.0);
        for receipt in &mut receipts {
            receipt.read_at = Some(receipt.observed_at);
            receipt.observed_at = night.at;
        }
        Ok(receipts)
    }
}

/// Bytes that are read now.
fn answer(page: &str, scope: &str, url: &str, body: Vec<u8>) -> Answer {
    Answer {
        page: page.to_owned(),
        scope: scope.to_owned(),
        url: url.to_owned(),
        method: Method::Get,
        request_body_sha256: None,
        http_status: None,
        observed_at: Utc::now(),
        body,
        whole: None,
    }
}

/// The snapshots that the dataset has, and which of them are of this history.
struct Known {
    taken: BTreeSet<SnapshotId>,
    own: BTreeSet<SnapshotId>,
}

impl Known {
    async fn read(output: &Path, scope: &str) -> Result<Self, RunError> {
        let snapshots = read::snapshots(output).await?;
        let coverage = read::coverage(output, &snapshots).await?;
        let mut own = BTreeSet::new();
        for row in 0..coverage.height() {
            let cell = |name: &str| Cell::at(&coverage, name, row).map(|cell| cell.text());
            if cell("scope")? == scope
                && let Ok(id) = cell("snapshot_id")?.parse::<SnapshotId>()
            {
                own.insert(id);
            }
        }
        Ok(Self { taken: snapshots.iter().map(|snapshot| snapshot.id).collect(), own })
    }

    /// The id for a night; `None` when it is there. Where other snapshots have its second, it is the next one that is free.
    fn place(&mut self, at: DateTime<Utc>) -> Result<Option<SnapshotId>, ImportError> {
        for second in 0..60 {
            let id = SnapshotId::at(at + Duration::seconds(second));
            if self.own.contains(&id) {
                return Ok(None);
            }
            if self.taken.insert(id) {
                self.own.insert(id);
                return Ok(Some(id));
            }
        }
        Err(ImportError::NoTimeLeft { at })
    }
}

/// Exchange rates from a file, with the source and the receipt of each file.
fn rates_of(path: &Path, archive: &Archive) -> Result<Vec<(String, Receipt, Vec<Rate>)>, ImportError> {
    let failed = |reason: String| ImportError::File { path: path.to_owned(), reason };
    let mut all = Vec::new();
    for scraper in ALL.iter().copied().filter(|scraper| scraper.manifest().published.is_none()) {
        let (page, _) = source::page_of(scraper, path, Utc::now()).map_err(|error| failed(error.to_string()))?;
        let (receipt, _) = archive.keep(answer(&page.name, &page.scope, &page.url, page.body)).map_err(RunError::from)?;
        let delivery = Delivery { pages: vec![receipt.clone()], ..Delivery::of(scraper, Input::Files) };
        let gathered = gather(delivery, archive);
        if let Some(reason) = gathered.coverage().find_map(|scope| scope.reason) {
            return Err(failed(reason));
        }
        all.push((scraper.manifest().provider.clone(), receipt, gathered.rates().collect()));
    }
    Ok(all)
}
