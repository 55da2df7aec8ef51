//! The recordings built into the program: pages of each provider with a receipt.
//!
//! A recording's receipt says whether it was recorded from the source or typed from its documented shape; the two are
//! never mixed up. A case named by a date is the page of that day; any other name is a dated case with one stated
//! change, made to be refused or skipped.

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};

use crate::contract::{Page, SCOPE_ALL};

struct RawRecording {
    provider: &'static str,
    case: &'static str,
    files: &'static [(&'static str, &'static [u8])],
}

const RAW: &[RawRecording] = include!(concat!(env!("OUT_DIR"), "/recordings.rs"));

/// How a recording came to be.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Origin {
    /// By the program, from the source.
    Recorded,
    /// By a person, from the documented shape with real figures.
    Typed,
}

/// `receipt.toml` of a recording.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Receipt {
    /// How it came to be.
    pub origin: Origin,
    /// When the figures were seen at the source.
    pub observed_at: DateTime<Utc>,
    /// Where the figures are from, or what was trimmed.
    pub note: String,
    /// Whether some prices in it are made up because nobody has seen a real one; the note says which.
    #[serde(default)]
    pub has_made_up_prices: bool,
    /// For a crafted case: the one change, and what must come of it.
    pub change: Option<String>,
    /// The pages.
    #[serde(rename = "page")]
    pub pages: Vec<ReceiptPage>,
}

/// One page of a recording.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ReceiptPage {
    /// Name within the provider.
    pub name: String,
    /// File beside the receipt.
    pub file: String,
    /// Address at the source.
    pub url: String,
    /// Scope; `all` when absent.
    pub scope: Option<String>,
}

/// A recording.
#[derive(Debug, Clone)]
pub struct Recording {
    /// Provider's short name.
    pub provider: &'static str,
    /// `2026-08-20`, or the name of a crafted case.
    pub case: &'static str,
    /// The receipt.
    pub receipt: Receipt,
    /// The pages, in receipt order.
    pub pages: Vec<Page>,
}

impl Recording {
    /// Whether it is the page of a day, not a crafted case.
    #[must_use]
    pub fn is_dated(&self) -> bool {
        self.case.starts_with(|c: char| c.is_ascii_digit())
    }
}

/// All recordings of a provider, by name of case.
///
/// # Panics
/// When a receipt built into the program does not read, or names a file that is not there, which is a bug.
#[must_use]
pub fn of(provider: &str) -> Vec<Recording> {
    RAW.iter().filter(|raw| raw.provider == provider).map(read).collect()
}

/// The newest dated recording of a provider.
#[must_use]
pub fn newest(provider: &str) -> Option<Recording> {
    of(provider).into_iter().filter(Recording::is_dated).max_by_key(|recording| recording.case)
}

fn read(raw: &RawRecording) -> Recording {
    let name = format!("{}/fixtures/{}", raw.provider, raw.case);
    let file = |wanted: &str| raw.files.iter().find(|(file, _)| *file == wanted).map(|(_, bytes)| *bytes);
    let receipt = file("receipt.toml").unwrap_or_else(|| panic!("{name} has no receipt.toml"));
    let receipt = std::str::from_utf8(receipt).unwrap_or_else(|error| panic!("{name}/receipt.toml: {error}"));
    let receipt: Receipt = toml::from_str(receipt).unwrap_or_else(|error| panic!("{name}/receipt.toml: {error}"));
    let page = |page: &ReceiptPage| {
        let body = file(&page.file).unwrap_or_else(|| panic!("{name} has no file {}", page.file)).to_vec();
        Page {
            name: page.name.clone(),
            scope: page.scope.clone().unwrap_or_else(|| SCOPE_ALL.to_owned()),
            url: page.url.clone(),
            observed_at: receipt.observed_at,
            sha256: crate::sha256(&body),
            body,
        }
    };
    let pages = receipt.pages.iter().map(page).collect();
    Recording { provider: raw.provider, case: raw.case, receipt, pages }
}
