//! What goes with a list of prices: what it leaves out and why, how old its prices are, and where it goes.
//!
//! In: rows of a snapshot. Out: words for standard error, and the rows in a form. Never says that something is left out
//! without a number.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::path::Path;

use chrono::{DateTime, NaiveDate, Utc};
use gpuledger_scrapers::contract::SCOPE_ALL;
use polars::prelude::*;

use crate::archive::write_whole;
use crate::cli::Destination;
use crate::exit::Exit;
use crate::findings;
use crate::frame::Cell;
use crate::gather::Input;
use crate::measure::{Price, Unpriced};
use crate::print::{Data, Format};
use crate::report::{Failed, Said};
use crate::run::RunError;
use crate::snapshot::read::{self, Snapshot};
use crate::validate::ScopeStatus;

/// Age in days from which prices are called old.
const OLD_DAYS: i64 = 7;

/// What a list leaves out, and why.
#[derive(Debug, Default)]
pub struct LeftOut(Vec<(usize, String)>);

impl LeftOut {
    /// So many offers are left out; of none nothing is said.
    pub fn add(&mut self, offers: usize, why: impl Into<String>) {
        if offers > 0 {
            self.0.push((offers, why.into()));
        }
    }

    /// Offers without a price, by reason.
    pub fn add_unpriced(&mut self, prices: &[Price]) {
        let mut reasons: Vec<Unpriced> = prices.iter().filter_map(|price| price.err()).collect();
        reasons.sort_unstable();
        for of_reason in reasons.chunk_by(|a, b| a == b) {
            self.add(of_reason.len(), of_reason[0].words());
        }
    }

    /// The lines, one a reason, behind a title.
    #[must_use]
    pub fn words(&self, title: &str) -> String {
        let (mut text, indent) = (String::new(), title.chars().count());
        let width = self.0.iter().map(|(offers, _)| offers.to_string().len()).max().unwrap_or(0);
        for (index, (offers, why)) in self.0.iter().enumerate() {
            let title = if index == 0 { title } else { "" };
            let _ = writeln!(text, "{title:indent$} {offers:>width$} {why}");
        }
        text
    }
}

/// When each row was seen.
///
/// # Errors
/// Only on a fault of the program.
pub fn seen(rows: &DataFrame) -> PolarsResult<Vec<Option<DateTime<Utc>>>> {
    let micros = rows.column("observed_at")?.cast(&DataType::Int64)?;
    Ok(micros.i64()?.iter().map(|at| at.and_then(DateTime::from_timestamp_micros)).collect())
}

/// How long ago it was, for people. `31 d`
#[must_use]
pub fn age(seen: DateTime<Utc>, now: DateTime<Utc>) -> String {
    let age = now - seen;
    let (age, in_future) = if age < chrono::Duration::zero() { (-age, "in ") } else { (age, "") };
    match (age.num_minutes(), age.num_hours(), age.num_days()) {
        (minutes, 0..=1, _) if minutes < 120 => format!("{in_future}{minutes} min"),
        (_, hours, _) if hours < 48 => format!("{in_future}{hours} h"),
        (_, _, days) => format!("{in_future}{days} d"),
    }
}

/// Rows seen at most so many days ago, and how many are older.
///
/// # Errors
/// Only on a fault of the program.
pub fn not_older(rows: DataFrame, max_age_days: Option<u32>, now: DateTime<Utc>) -> PolarsResult<(DataFrame, usize)> {
    let Some(days) = max_age_days else { return Ok((rows, 0)) };
    let since = now - chrono::Duration::days(i64::from(days));
    let is_new: BooleanChunked = seen(&rows)?.into_iter().map(|seen| seen.is_some_and(|seen| seen >= since)).collect();
    let kept = rows.filter(&is_new)?;
    let older = rows.height() - kept.height();
    Ok((kept, older))
}

/// How old the prices of the rows are, where some are old: the days of each provider's oldest price, with the age.
///
/// # Errors
/// Only on a fault of the program.
pub fn ages(rows: &DataFrame, now: DateTime<Utc>) -> PolarsResult<String> {
    let mut oldest: BTreeMap<String, DateTime<Utc>> = BTreeMap::new();
    for (row, seen) in seen(rows)?.into_iter().enumerate() {
        let Some(seen) = seen else { continue };
        let provider = Cell::at(rows, "provider", row)?.text();
        oldest.entry(provider).and_modify(|oldest| *oldest = seen.min(*oldest)).or_insert(seen);
    }
    let all = oldest.len();
    oldest.retain(|_, seen| (now - *seen).num_days() >= OLD_DAYS);
    if oldest.is_empty() {
        return Ok(String::new());
    }
    let mut days: BTreeMap<NaiveDate, (DateTime<Utc>, Vec<&str>)> = BTreeMap::new();
    for (provider, seen) in &oldest {
        days.entry(seen.date_naive()).or_insert((*seen, Vec::new())).1.push(provider);
    }
    let each = days.iter().map(|(day, (seen, providers))| format!("{day} ({}) {}", age(*seen, now), providers.join(", ")));
    let each = each.collect::<Vec<_>>().join("; ");
    Ok(format!("old: prices of {} of {all} providers were seen {OLD_DAYS} days ago or earlier: {each}\n", oldest.len()))
}

/// What of the night is in no list: rows that were held back, and scopes that could not be had; and which of the rows were not
/// read from a provider that night.
///
/// # Errors
/// When the coverage cannot be read.
pub async fn of_night(output: &Path, snapshot: &Snapshot, rows: &DataFrame) -> Result<String, Failed> {
    let mut text = match findings::held_back(output, snapshot.id) {
        None => "held back: not known, for the findings of that night are not here\n".to_owned(),
        Some(0) => String::new(),
        Some(rows) => format!(
            "held back: {rows} rows of that night; `gpuledger findings {} --severity quarantine_row` says why\n",
            snapshot.id
        ),
    };
    let coverage = read::coverage(output, std::slice::from_ref(snapshot)).await?;
    let coverage = coverage.lazy().sort(["provider", "scope"], SortMultipleOptions::default()).collect()?;
    let shown: BTreeSet<&str> = rows.column("provider")?.str()?.iter().flatten().collect();
    let (mut missing, mut not_live) = (Vec::new(), BTreeMap::<String, BTreeSet<String>>::new());
    for row in 0..coverage.height() {
        let cell = |column: &str| Cell::at(&coverage, column, row).map(|cell| cell.text());
        let (provider, scope, input) = (cell("provider")?, cell("scope")?, cell("input")?);
        if cell("status")? != ScopeStatus::Complete.word() {
            missing.push(if scope == SCOPE_ALL { provider } else { format!("{provider}/{scope}") });
        } else if input != Input::Live.word() && shown.contains(provider.as_str()) {
            not_live.entry(input).or_default().insert(provider);
        }
    }
    if !missing.is_empty() {
        let _ = writeln!(text, "not had that night: {}", missing.join(", "));
    }
    for (input, providers) in not_live {
        let providers: Vec<String> = providers.into_iter().collect();
        let _ = writeln!(text, "{input}, not read from the provider that night: {}", providers.join(", "));
    }
    Ok(text)
}

/// The rows, on standard output or in a file.
///
/// # Errors
/// When the file cannot be written, or its name is that of another form.
pub fn said(data: Data, rows: usize, mut talk: String, destination: &Destination, format: Format) -> Result<Said, Failed> {
    let Some(file) = &destination.to else { return Ok(Said { data, talk: Some(talk), exit: Exit::Good }) };
    let ending = file.extension().map(|ending| ending.to_string_lossy().to_lowercase());
    if let Some(other) = ending.as_deref().and_then(form_of).filter(|form| *form != format) {
        let help = format!("say `--format {}` as well, or give the file another name", word(other));
        return Err(Failed::of(&format!("write {} rows into {}", word(format), file.display())).with_help(&help));
    }
    write(file, data.bytes())?;
    let _ = writeln!(talk, "{rows} rows are in {}", file.display());
    Ok(Said { data: Data::Text(String::new()), talk: Some(talk), exit: Exit::Good })
}

/// Writes what was asked for into a file, whole or not at all.
///
/// # Errors
/// When there is no folder of it, or the disk refuses.
pub fn write(file: &Path, bytes: &[u8]) -> Result<(), Failed> {
    let file = Path::new(".").join(file);
    let folder = file.parent().filter(|folder| folder.is_dir());
    let Some(folder) = folder else {
        return Err(Failed::of(&format!("find the folder of {}", file.display())).with_help("make it first"));
    };
    Ok(write_whole(folder, &file, bytes).map_err(RunError::Archive)?)
}

/// The form that a file's ending names.
fn form_of(ending: &str) -> Option<Format> {
    match ending {
        "csv" => Some(Format::Csv),
        "json" => Some(Format::Json),
        "ndjson" | "jsonl" => Some(Format::Ndjson),
        "parquet" => Some(Format::Parquet),
        _ => None,
    }
}

const fn word(form: Format) -> &'static str {
    match form {
        Format::Table => "table",
        Format::Csv => "csv",
        Format::Json => "json",
        Format::Ndjson => "ndjson",
        Format::Parquet => "parquet",
    }
}

/// The day of an instant, for a table.
#[must_use]
pub fn day(seen: Option<DateTime<Utc>>) -> Option<NaiveDate> {
    seen.map(|seen| seen.date_naive())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_age_is_told_in_minutes_hours_or_days() {
        let now: DateTime<Utc> = "2026-10-31T06:00:00Z".parse().expect("an instant");
        for (seen, words) in [
            ("2026-10-31T06:00:00Z", "0 min"),
            ("2026-10-31T04:00:01Z", "119 min"),
            ("2026-10-31T04:00:00Z", "2 h"),
            ("2026-10-29T06:00:01Z", "47 h"),
            ("2026-10-29T06:00:00Z", "2 d"),
            ("2026-09-30T06:00:00Z", "31 d"),
            ("2026-10-31T09:00:00Z", "in 3 h"),
        ] {
            assert_eq!(age(seen.parse().expect("an instant"), now), words, "{seen}");
        }
    }

    #[test]
    fn what_is_left_out_is_counted_and_nothing_is_said_of_nothing() {
        let mut left_out = LeftOut::default();
        left_out.add(0, "of nothing");
        assert_eq!(left_out.words("left out:"), "");
        left_out.add(12, "of twelve");
        left_out.add_unpriced(&[Ok(1.0), Err(Unpriced::NoRate), Err(Unpriced::NoWholeGpu), Err(Unpriced::NoRate)]);
        let words = left_out.words("left out:");
        let lines: Vec<&str> = words.lines().collect();
        assert_eq!(lines.len(), 3, "{words}");
        assert_eq!(lines[0], "left out: 12 of twelve");
        assert!(lines[1].starts_with("           1 without a price of a whole GPU"), "{words}");
        assert_eq!(lines[2], "           2 without an exchange rate of their day");
    }
}
