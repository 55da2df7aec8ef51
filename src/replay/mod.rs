//! A published night again from the archive: `replay`.
//!
//! In: the kept receipts of a night and the pages that they name. Out: whether today's code derives the same rows, and with
//! `--publish` a correction, which is a new snapshot of the same time. Never asks a network, never lets a night know an
//! exchange rate that was published after it, and never changes anything that is published.

mod compare;

use std::collections::BTreeSet;
use std::fmt::Write as _;

use chrono::Utc;
use gpuledger_scrapers::contract::{SCOPE_INDEX, Scraper};
use gpuledger_scrapers::sha256;
use polars::prelude::*;

use crate::archive::{Archive, ArchiveError, Receipt};
use crate::cli::Replay;
use crate::exit::Exit;
use crate::frame::Cell;
use crate::gather::{Delivery, Gathered, Input, gather_again};
use crate::kept::{self, KeptError};
use crate::night::SnapshotId;
use crate::print::{self, Format};
use crate::prune::when_pruned;
use crate::remote;
use crate::report::{Failed, Said};
use crate::run::{self, Judged, RunError, Started};
use crate::snapshot::publish::offers_file;
use crate::snapshot::read::{self, Snapshot};
use crate::validate::{ScopeCoverage, Severity};
use compare::{Compared, HEADINGS, compare};

/// Pages that are named when several are missing.
const MISSING_SHOWN: usize = 20;

/// Why a night cannot be derived again.
#[derive(Debug, thiserror::Error)]
pub enum ReplayError {
    /// It is not known what it was made of.
    #[error(transparent)]
    Kept(#[from] KeptError),
    /// Pages are missing or damaged.
    #[error("have the pages of night {night}: {pages}")]
    PagesMissing {
        /// The night.
        night: SnapshotId,
        /// Each page and what is wrong with it.
        pages: String,
        /// What to do.
        help: String,
    },
    /// Today's rules refuse it.
    #[error("derive night {night} again: today's rules refuse it: {reasons}")]
    RefusedToday {
        /// The night.
        night: SnapshotId,
        /// Why.
        reasons: String,
    },
    /// A correction is of what is newest.
    #[error("correct {night}: {newest} corrects it already")]
    CorrectedAlready {
        /// What was asked for.
        night: SnapshotId,
        /// Its newest correction.
        newest: SnapshotId,
    },
    /// There are as many corrections as there can be.
    #[error("correct {night}: a night has at most nine corrections")]
    TooManyCorrections {
        /// The last one.
        night: SnapshotId,
    },
}

impl From<ReplayError> for Failed {
    fn from(error: ReplayError) -> Self {
        let failed = |exit| Self::new(exit, "", &error);
        match &error {
            ReplayError::PagesMissing { help, .. } => failed(Exit::NotBorneOut).with_help(help),
            ReplayError::RefusedToday { .. } => {
                failed(Exit::Refused).with_help("what is published stays; mend the parser or the rule and replay it again")
            }
            ReplayError::CorrectedAlready { newest, .. } => {
                failed(Exit::Usage).with_help(&format!("`gpuledger replay {newest} --publish` corrects the newest"))
            }
            ReplayError::TooManyCorrections { .. } => failed(Exit::Usage),
            ReplayError::Kept(KeptError::NoReceipts { .. }) => {
                failed(Exit::NotBorneOut).with_help("restore raw/receipts from a copy of the dataset; nothing else has them")
            }
            ReplayError::Kept(_) => failed(Exit::NotBorneOut),
        }
    }
}

/// Derives a night again, says what differs, and publishes a correction if asked.
///
/// # Errors
/// When there is no such night, or its pages are not there any more.
pub async fn replay(args: &Replay) -> Result<Said, Failed> {
    replay_with(args, &gpuledger_scrapers::find).await
}

/// The same, with parsers of one's own.
///
/// # Errors
/// As [`replay`].
pub async fn replay_with(args: &Replay, find: &dyn Fn(&str) -> Option<&'static dyn Scraper>) -> Result<Said, Failed> {
    let started_at = Utc::now();
    let output = args.dataset.output.as_path();
    let _lock = if args.publish { Some(run::open_for_writing(output).await.map_err(Failed::from)?) } else { None };
    let snapshots = read::snapshots(output).await?;
    let chosen = read::choose(&snapshots, &args.snapshot)?;
    let newest = read::newest_of_night(&snapshots, chosen.id).map_or(chosen.id, |newest| newest.id);
    if args.publish && newest != chosen.id {
        return Err(ReplayError::CorrectedAlready { night: chosen.id, newest }.into());
    }
    let night = Night::gather(output, &snapshots, chosen, find).await?;
    let again = night.judge(chosen.id).await?;
    let seen = seen(&night, &again)?;

    let mut data = print::Data::Text(String::new());
    if !seen.compared.is_same() || args.printing.format != Format::Table {
        data = print::rows(&seen.compared.rows, &HEADINGS, args.printing.format)?;
    }
    let mut talk = seen.words(&night);
    let mut exit = if seen.compared.is_same() { Exit::Good } else { Exit::NotBorneOut };
    if args.publish && seen.compared.is_same() {
        talk.push_str("There is nothing to correct: nothing was published.\n");
        exit = Exit::NothingDue;
    } else if args.publish {
        let correction = chosen.id.next_correction().ok_or(ReplayError::TooManyCorrections { night: chosen.id })?;
        let judged = night.judge(correction).await?;
        let sidecars = kept::beside(correction, &night.deliveries);
        let started = Started { snapshot: correction, started_at, scheduled: None, is_published: false, sidecars };
        let ended = run::conclude(output, started, judged).await?;
        exit = ended.exit;
        let _ = writeln!(
            talk,
            "Published snapshot {correction}: {} offers. It corrects {}, which stays as it is.",
            ended.record.offers, chosen.id
        );
    }
    Ok(Said { data, talk: Some(talk), exit })
}

/// A past night, gathered again.
struct Night<'a> {
    output: &'a std::path::Path,
    chosen: &'a Snapshot,
    /// The nights that had been published when the night was published first, itself among them: what it could see.
    known: BTreeSet<SnapshotId>,
    coverage: DataFrame,
    deliveries: Vec<Delivery>,
    gathered: Vec<Gathered>,
    is_from_coverage: bool,
}

impl<'a> Night<'a> {
    async fn gather(
        output: &'a std::path::Path,
        snapshots: &'a [Snapshot],
        chosen: &'a Snapshot,
        find: &dyn Fn(&str) -> Option<&'static dyn Scraper>,
    ) -> Result<Self, Failed> {
        let archive = Archive::below(output);
        let coverage = read::coverage(output, std::slice::from_ref(chosen)).await?;
        let again = kept::again(&archive, chosen.id, &coverage, find).map_err(ReplayError::from)?;
        check_pages(&archive, chosen.id, &again.deliveries)?;
        let original = snapshots.iter().find(|known| known.id == chosen.id.original()).unwrap_or(chosen);
        let known = snapshots.iter().filter(|night| night.version <= original.version).map(|night| night.id).collect();
        let kept::Again { deliveries, is_from_coverage } = again;
        let gathered = deliveries.iter().map(|delivery| gather_again(delivery.clone(), &archive)).collect();
        Ok(Self { output, chosen, known, coverage, deliveries, gathered, is_from_coverage })
    }

    /// The night under an id, with the exchange rates that it could see.
    async fn judge(&self, id: SnapshotId) -> Result<Judged, Failed> {
        Ok(run::judge(self.output, id, &self.gathered, &[], Some(&self.known)).await?)
    }
}

/// What came of deriving a night again.
struct Seen {
    compared: Compared,
    sha256_published: String,
    sha256_again: String,
    scopes: Vec<String>,
}

fn seen(night: &Night<'_>, again: &Judged) -> Result<Seen, Failed> {
    let Some(validated) = &again.verdict.night else {
        let refusals = again.verdict.findings.iter().filter(|finding| finding.severity >= Severity::RefuseScope);
        let reasons: Vec<&str> = refusals.map(|finding| finding.reason.as_str()).collect();
        return Err(ReplayError::RefusedToday { night: night.chosen.id, reasons: reasons.join("; ") }.into());
    };
    let path = night.chosen.path();
    remote::have(path).map_err(RunError::Archive)?;
    let published =
        std::fs::read(path).map_err(|source| RunError::Archive(ArchiveError::Io { path: path.to_owned(), source }))?;
    let (offers, bytes) = offers_file(validated)?;
    Ok(Seen {
        compared: compare(read::offers(night.chosen)?, offers.lazy())?,
        sha256_published: sha256(&published),
        sha256_again: sha256(&bytes),
        scopes: scopes_that_differ(&night.coverage, &again.verdict.coverage)?,
    })
}

impl Seen {
    fn words(&self, night: &Night<'_>) -> String {
        let Compared { added, removed, changed, .. } = &self.compared;
        let mut text = format!("{}: derived again from the archive, without a network\n", night.chosen.id);
        if self.sha256_published == self.sha256_again {
            let _ =
                writeln!(text, "identical: the offers' file is byte for byte the published one, sha256 {}", self.sha256_again);
        } else if self.compared.is_same() {
            let _ = writeln!(text, "every row is the same; the file's bytes are not, because it was written by another version");
            let _ = writeln!(text, "published sha256 {}\nagain     sha256 {}", self.sha256_published, self.sha256_again);
        } else {
            let _ = writeln!(
                text,
                "differs: {added} added, {removed} removed, {changed} changed; the cause is the method, since the pages are the same"
            );
            let _ = writeln!(text, "published sha256 {}\nagain     sha256 {}", self.sha256_published, self.sha256_again);
        }
        for scope in &self.scopes {
            let _ = writeln!(text, "{scope}");
        }
        if night.is_from_coverage {
            text.push_str(
                "The night is from before it was kept what could not be had: its scopes that were not complete stay out.\n",
            );
        }
        text
    }
}

/// Scopes whose status is another one now.
fn scopes_that_differ(published: &DataFrame, again: &[ScopeCoverage]) -> PolarsResult<Vec<String>> {
    let mut words = Vec::new();
    let mut known = std::collections::BTreeMap::new();
    for row in 0..published.height() {
        let cell = |name: &str| Cell::at(published, name, row).map(|cell| cell.text());
        known.insert((cell("provider")?, cell("scope")?), cell("status")?);
    }
    for scope in again {
        let then = known.remove(&(scope.provider.clone(), scope.scope.clone()));
        let then = then.as_deref().unwrap_or("not there");
        if then != scope.status.word() {
            let reason = scope.reason.as_ref().map_or_else(String::new, |reason| format!(": {reason}"));
            words.push(format!("scope {}/{}: {then} then, {} now{reason}", scope.provider, scope.scope, scope.status.word()));
        }
    }
    words.extend(
        known.into_iter().map(|((provider, scope), then)| format!("scope {provider}/{scope}: {then} then, not there now")),
    );
    Ok(words)
}

/// Looks at every page that will be read, so that a night with a hole in it is not taken for one that differs.
fn check_pages(archive: &Archive, night: SnapshotId, deliveries: &[Delivery]) -> Result<(), ReplayError> {
    let mut missing: Vec<(&Delivery, String)> = Vec::new();
    for delivery in deliveries {
        let was_had = |scope: &str| !delivery.failures.iter().any(|failure| failure.scope == scope);
        for receipt in delivery.pages.iter().filter(|receipt| receipt.scope != SCOPE_INDEX && was_had(&receipt.scope)) {
            if let Err(error) = archive.page(receipt) {
                missing.push((
                    delivery,
                    format!("{} of {}: {}", receipt.page, delivery.scraper.manifest().provider, why(archive, receipt, &error)),
                ));
            }
        }
    }
    let Some((first, _)) = missing.first() else { return Ok(()) };
    let help = help(night, first);
    let mut words: Vec<String> = missing.iter().take(MISSING_SHOWN).map(|(_, words)| words.clone()).collect();
    if missing.len() > MISSING_SHOWN {
        words.push(format!("and {} more", missing.len() - MISSING_SHOWN));
    }
    Err(ReplayError::PagesMissing { night, pages: words.join("; "), help })
}

/// What is wrong with an archived page.
fn why(archive: &Archive, receipt: &Receipt, error: &ArchiveError) -> String {
    match (error, when_pruned(archive, &receipt.sha256)) {
        (ArchiveError::Damaged { .. }, _) => format!("page {} is damaged", receipt.sha256),
        (_, Some(at)) => format!("page {} was pruned on {}", receipt.sha256, at.date_naive()),
        (ArchiveError::Io { path, .. }, None) if !path.exists() => format!("page {} is missing", receipt.sha256),
        (ArchiveError::Io { .. }, None) => format!("page {} is damaged: it cannot be inflated", receipt.sha256),
    }
}

/// The command that brings a page back, as far as there is one.
fn help(night: SnapshotId, delivery: &Delivery) -> String {
    let (provider, time) = (&delivery.scraper.manifest().provider, night.instant().format("%Y-%m-%dT%H:%M:%SZ"));
    let copy = "restore its file in raw/objects from a copy of the dataset";
    match delivery.input {
        Input::Recorded | Input::Typed => {
            format!("`gpuledger collect --recorded --at {time}` archives the built-in pages again, if they are still the same")
        }
        Input::Files => format!("`gpuledger collect --from DIR --at {time}` archives the same files again"),
        Input::Live => format!(
            "{copy}; `gpuledger collect --providers {provider}` archives it again only if the source still answers the same bytes"
        ),
        Input::Import => {
            "`gpuledger import` with the same file and mapping into another folder archives the same pages".to_owned()
        }
        // A night of history that is there is not asked for again.
        Input::History => copy.to_owned(),
    }
}
