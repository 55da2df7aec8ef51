//! Pages that need no network: the recordings built in, and files that somebody keeps.
//!
//! They go through the archive like any answer, so that everything after it is the same.

use std::collections::HashMap;
use std::fs::{self, File};
use std::io::{self, BufRead as _, Read};
use std::path::{Path, PathBuf};

use bytes::Bytes;
use chrono::{DateTime, Utc};
use gpuledger_scrapers::contract::{Method, Page, SCOPE_ALL, Scraper};
use gpuledger_scrapers::recordings::{self, Origin};
use gpuledger_scrapers::{assign_scopes, sha256, sieve};

use crate::archive::{Answer, Archive, ArchiveError, Whole};
use crate::gather::{Delivery, Failure, Input, refused};
use crate::intake::{Intake, Taken};

/// Why files could not be taken.
#[derive(Debug, thiserror::Error)]
pub enum SourceError {
    /// The disk said no.
    #[error("read {}", path.display())]
    Io {
        /// The file or folder.
        path: PathBuf,
        /// What it said.
        #[source]
        source: io::Error,
    },
    /// The archive refused.
    #[error("archive what was read")]
    Archive(#[from] ArchiveError),
}

/// A provider's newest recording.
///
/// # Errors
/// When the archive refuses.
pub fn recorded(scraper: &'static dyn Scraper, archive: &Archive) -> Result<Delivery, ArchiveError> {
    let mut delivery = Delivery::of(scraper, Input::Typed);
    let Some(recording) = recordings::newest(&scraper.manifest().provider) else {
        delivery.failures.push(Failure {
            scope: SCOPE_ALL.to_owned(),
            code: "no_recording".to_owned(),
            reason: "there is no recording of it".to_owned(),
            is_skip: true,
        });
        return Ok(delivery);
    };
    if recording.receipt.origin == Origin::Recorded {
        delivery.input = Input::Recorded;
    }
    for page in recording.pages {
        delivery.pages.push(archive.keep(answer_of(page))?.0);
    }
    Ok(delivery)
}

/// A provider's pages from the files of a folder, in order of their names.
///
/// # Errors
/// When a file cannot be read, or the archive refuses.
pub fn from_files(
    scraper: &'static dyn Scraper,
    folder: &Path,
    at: DateTime<Utc>,
    archive: &Archive,
) -> Result<Delivery, SourceError> {
    let mut delivery = Delivery::of(scraper, Input::Files);
    let mut pages = Vec::new();
    let mut wholes = HashMap::new();
    for path in files_of(folder)? {
        let (page, whole) = page_of(scraper, &path, at)?;
        wholes.extend(whole.map(|whole| (page.name.clone(), whole)));
        pages.push(page);
    }
    let keep = |page: Page| {
        let whole = wholes.get(&page.name).cloned();
        archive.keep(Answer { whole, ..answer_of(page) }).map(|(receipt, _)| receipt)
    };
    if pages.is_empty() {
        delivery.failures.push(Failure {
            scope: SCOPE_ALL.to_owned(),
            code: "no_files".to_owned(),
            reason: format!("there is no file in {}", folder.display()),
            is_skip: false,
        });
    }
    let (pages, unreadable) = assign_scopes(scraper, pages);
    for (mut page, error) in unreadable {
        // Nobody can tell which scope an unreadable file is of, so it is one of its own.
        page.scope = format!("file:{}", page.name);
        delivery.failures.push(refused(page.scope.clone(), &error));
        delivery.pages.push(keep(page)?);
    }
    for page in pages {
        delivery.pages.push(keep(page)?);
    }
    Ok(delivery)
}

/// A file as a page. A `.gz` or `.zst` file is inflated; one that breaks off is an error, never a short page. Of a bulk file
/// only the lines that matter are held.
///
/// # Errors
/// When the file cannot be read or inflated.
pub fn page_of(scraper: &'static dyn Scraper, path: &Path, at: DateTime<Utc>) -> Result<(Page, Option<Whole>), SourceError> {
    let io = |source| SourceError::Io { path: path.to_owned(), source };
    let reader = inflated(File::open(path).map_err(io)?).map_err(io)?;
    let mut intake = Intake::new(scraper, &scraper.manifest().fetch);
    sieve::chunks(reader, |chunk| intake.push(Bytes::copy_from_slice(chunk)).map_err(io::Error::other)).map_err(io)?;
    let Taken { body, whole } = intake.finish().map_err(|error| io(io::Error::other(error)))?;
    let name = path.file_name().map_or_else(String::new, |name| name.to_string_lossy().into_owned());
    let page =
        Page { scope: SCOPE_ALL.to_owned(), url: path.display().to_string(), observed_at: at, sha256: sha256(&body), name, body };
    Ok((page, whole))
}

/// Bytes of a file read at once.
const CHUNK_BYTES: usize = 1 << 18;

fn inflated(file: File) -> io::Result<Box<dyn Read + Send>> {
    let mut head = [0; 4];
    let mut file = io::BufReader::with_capacity(CHUNK_BYTES, file);
    let known = {
        let start = file.fill_buf()?;
        let known = start.len().min(head.len());
        head[..known].copy_from_slice(&start[..known]);
        &head[..known]
    };
    Ok(if known.starts_with(&[0x1f, 0x8b]) {
        Box::new(flate2::bufread::MultiGzDecoder::new(file))
    } else if known.starts_with(&[0x28, 0xb5, 0x2f, 0xfd]) {
        Box::new(zstd::stream::read::Decoder::with_buffer(file)?)
    } else {
        Box::new(file)
    })
}

/// The files of a folder in order of their names; hidden ones are nobody's pages.
fn files_of(folder: &Path) -> Result<Vec<PathBuf>, SourceError> {
    let io = |source| SourceError::Io { path: folder.to_owned(), source };
    let mut files = Vec::new();
    for entry in fs::read_dir(folder).map_err(io)? {
        let path = entry.map_err(io)?.path();
        let is_hidden = path.file_name().is_some_and(|name| name.to_string_lossy().starts_with('.'));
        if path.is_file() && !is_hidden {
            files.push(path);
        }
    }
    files.sort();
    Ok(files)
}

fn answer_of(page: Page) -> Answer {
    Answer {
        page: page.name,
        scope: page.scope,
        url: page.url,
        method: Method::Get,
        request_body_sha256: None,
        http_status: None,
        observed_at: page.observed_at,
        body: page.body,
        whole: None,
    }
}
