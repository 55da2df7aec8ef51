//! `diff`: which snapshots, which of the lines, in which form, and how it ends.

use std::fmt::Write as _;

use polars::prelude::*;

use super::{Diff, List, METHOD};
use crate::cli::Dataset;
use crate::exit::Exit;
use crate::frame::Cell;
use crate::harmless::line as one_line;
use crate::print::{self, Format, Heading, heading};
use crate::query::{self, QueryError};
use crate::report::{Failed, Said};
use crate::snapshot::read::{self, Snapshot};

/// Arguments of `diff`.
#[derive(Debug, clap::Args)]
pub struct DiffArgs {
    /// The dataset.
    #[command(flatten)]
    pub dataset: Dataset,
    /// How it is printed
    #[arg(long, value_enum, default_value_t)]
    pub format: DiffFormat,
    /// First snapshot: id, version, date, `latest` or `previous`
    #[arg(default_value = "previous")]
    pub a: String,
    /// Second snapshot
    #[arg(default_value = "latest")]
    pub b: String,
    /// Only changes of a price of at least so much, up or down; what came and went stays
    #[arg(long, value_name = "PERCENT", value_parser = percent)]
    pub min_change: Option<f64>,
    /// Only this GPU, as people type it
    #[arg(long)]
    pub gpu: Option<String>,
    /// Only these providers
    #[arg(long, value_name = "A,B", value_delimiter = ',')]
    pub provider: Vec<String>,
    /// End with 16 where an offer changed its price or name, came or went; another reading and a move of rates do not count
    #[arg(long)]
    pub exit_code: bool,
}

/// How a difference is printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, clap::ValueEnum)]
pub enum DiffFormat {
    /// Tables, one a list.
    #[default]
    Table,
    /// Comma-separated values with a header.
    Csv,
    /// One JSON list.
    Json,
    /// One JSON object a line.
    Ndjson,
    /// A Parquet file, with the types of the dataset.
    Parquet,
    /// Markdown tables, one a list.
    Markdown,
}

/// A percentage, with or without its sign. `1%`
fn percent(text: &str) -> Result<f64, String> {
    let number = text.strip_suffix('%').unwrap_or(text).trim();
    let number: f64 = number.parse().map_err(|_| "not a percentage; write 1%".to_owned())?;
    if number.is_finite() && number >= 0.0 { Ok(number) } else { Err("a percentage of 0 or more is needed".to_owned()) }
}

/// Two nights that nobody should compare.
#[derive(Debug, thiserror::Error)]
#[error("compare {imported} with {collected}: the first is what somebody else's history says, the second was collected")]
struct Mixed {
    imported: String,
    collected: String,
}

/// Shows what changed between two snapshots.
///
/// # Errors
/// When there is no such snapshot, GPU or provider, one of the two is imported and the other is not, or the dataset cannot be
/// read.
pub async fn difference(args: &DiffArgs) -> Result<Said, Failed> {
    let output = args.dataset.output.as_path();
    let snapshots = read::snapshots(output).await?;
    let (a, b) = (read::choose(&snapshots, &args.a)?, read::choose(&snapshots, &args.b)?);
    if a.is_import() != b.is_import() {
        let (imported, collected) = if a.is_import() { (a, b) } else { (b, a) };
        let mixed = Mixed { imported: imported.id.to_string(), collected: collected.id.to_string() };
        return Err(Failed::new(Exit::Usage, "", &mixed)
            .with_help("`gpuledger trend --include-imports` shows both beside each other, each as a line of its own"));
    }
    let whole = super::diff(output, &snapshots, a, b).await?;
    let (diff, small) = filtered(args, whole)?;
    let data = match args.format {
        DiffFormat::Table => text(&diff, a, b, &Tables)?.into(),
        DiffFormat::Markdown => text(&diff, a, b, &Markdown)?.into(),
        DiffFormat::Csv => print::rows(&diff.rows, &[], Format::Csv)?,
        DiffFormat::Json => print::rows(&diff.rows, &[], Format::Json)?,
        DiffFormat::Ndjson => print::rows(&diff.rows, &[], Format::Ndjson)?,
        DiffFormat::Parquet => print::rows(&diff.rows, &[], Format::Parquet)?,
    };
    let talk = args.min_change.filter(|_| small > 0).map(|least| format!("left out, changes of less than {least} %: {small}\n"));
    let exit = if args.exit_code && is_different(&diff)? { Exit::Differs } else { Exit::Good };
    Ok(Said { data, talk, exit })
}

/// The lines that are asked for, and how many changes are too small.
fn filtered(args: &DiffArgs, diff: Diff) -> Result<(Diff, usize), Failed> {
    // A rate belongs to no offer: it stays whatever offers are asked for.
    let is_rate = || col("list").eq(lit(List::ExchangeRate.word()));
    let mut rows = diff.rows.lazy();
    if let Some(typed) = &args.gpu {
        rows = rows.filter(is_rate().or(query::is_gpu(typed)?));
    }
    if !args.provider.is_empty() {
        for typed in args.provider.iter().filter(|typed| gpuledger_scrapers::find(typed).is_none()) {
            let of_it = rows.clone().filter(col("provider").eq(lit(typed.clone()))).collect()?;
            if of_it.height() == 0 {
                let known = gpuledger_scrapers::ALL.iter().map(|scraper| scraper.manifest().provider.as_str());
                let known = known.collect::<Vec<_>>().join(", ");
                return Err(QueryError::UnknownValue { what: "provider", typed: typed.clone(), known }.into());
            }
        }
        let is_one = args.provider.iter().map(|name| col("provider").eq(lit(name.clone()))).reduce(Expr::or);
        rows = rows.filter(is_rate().or(is_one.expect("there is at least one name")));
    }
    let rows = rows.collect()?;
    let before = rows.height();
    let Some(least) = args.min_change else { return Ok((Diff { rows }, 0)) };
    // Where nobody can say by how much, such as with another currency, it is no small change.
    let percent = col("change_percent");
    let is_small = percent.clone().gt(lit(-least)).and(percent.lt(lit(least)));
    let rows = rows.lazy().filter(is_small.fill_null(lit(false)).not()).collect()?;
    let small = before - rows.height();
    Ok((Diff { rows }, small))
}

/// Whether an offer changed its price or name, came or went.
pub(super) fn is_different(diff: &Diff) -> PolarsResult<bool> {
    for row in 0..diff.rows.height() {
        let cell = |name: &str| Cell::at(&diff.rows, name, row).map(|cell| cell.text());
        let is_of_offers = ![List::NotObserved, List::ExchangeRate].map(List::word).contains(&cell("list")?.as_str());
        if is_of_offers && cell("cause")? != METHOD {
            return Ok(true);
        }
    }
    Ok(false)
}

/// How a heading and a table are written.
pub(super) trait Style {
    fn head(&self, text: &str) -> String;
    fn rows(&self, rows: &DataFrame, headings: &[Heading]) -> PolarsResult<String>;
}

pub(super) struct Tables;

impl Style for Tables {
    fn head(&self, text: &str) -> String {
        format!("\n{text}\n")
    }

    fn rows(&self, rows: &DataFrame, headings: &[Heading]) -> PolarsResult<String> {
        print::table(rows, headings)
    }
}

struct Markdown;

impl Style for Markdown {
    fn head(&self, text: &str) -> String {
        format!("\n### {text}\n\n")
    }

    fn rows(&self, rows: &DataFrame, headings: &[Heading]) -> PolarsResult<String> {
        let mut text = String::from("|");
        for heading in headings {
            let _ = write!(text, " {} |", heading.heading);
        }
        text.push_str("\n|");
        for heading in headings {
            text.push_str(if rows.column(heading.column)?.dtype().is_numeric() { "---:|" } else { "---|" });
        }
        text.push('\n');
        for row in 0..rows.height() {
            text.push('|');
            for heading in headings {
                let shown = match Cell::at(rows, heading.column, row)? {
                    Cell::Number(number) if rows.column(heading.column)?.dtype().is_float() => {
                        number.parse::<f64>().map_or(number, |number| format!("{number:.2}"))
                    }
                    Cell::Text(text) => in_markdown(&text),
                    other => other.text(),
                };
                let _ = write!(text, " {shown} |");
            }
            text.push('\n');
        }
        Ok(text)
    }
}

/// Text of a page as text in Markdown: nothing that ends a cell, marks up, or is HTML.
fn in_markdown(text: &str) -> String {
    let mut safe = String::with_capacity(text.len());
    for c in one_line(text).chars() {
        match c {
            '<' => safe.push_str("&lt;"),
            '&' => safe.push_str("&amp;"),
            '\\' | '|' | '`' | '*' | '_' | '[' | ']' | '!' | '#' | '~' => {
                safe.push('\\');
                safe.push(c);
            }
            c => safe.push(c),
        }
    }
    safe
}

const HEADINGS: [Heading; 15] = [
    heading("provider", "provider"),
    heading("region", "region"),
    heading("offer", "offer"),
    heading("gpu_model", "GPU"),
    heading("os", "os"),
    heading("tenancy", "tenancy"),
    heading("pricing_model", "model"),
    heading("plan", "plan"),
    heading("commitment_months", "months"),
    heading("upfront", "up front"),
    heading("amount_a", "a"),
    heading("amount_b", "b"),
    heading("currency_code", "currency"),
    heading("unit", "per"),
    heading("change_percent", "change %"),
];

const RENAMED: [Heading; 8] = [
    heading("provider", "provider"),
    heading("region", "region"),
    heading("renamed_from", "a"),
    heading("offer", "b"),
    heading("gpu_model", "GPU"),
    heading("pricing_model", "model"),
    heading("amount_b", "amount"),
    heading("currency_code", "currency"),
];

const RATES: [Heading; 4] = [
    heading("currency_code", "currency"),
    heading("amount_a", "USD a"),
    heading("amount_b", "USD b"),
    heading("change_percent", "change %"),
];

pub(super) fn text(diff: &Diff, a: &Snapshot, b: &Snapshot, style: &dyn Style) -> Result<String, Failed> {
    let mut text = format!("a = {}, b = {}\n", a.id, b.id);
    let titles = [
        (List::Changed, "changed", &HEADINGS[..]),
        (List::Renamed, "renamed, and the same in everything else", &RENAMED[..]),
        (List::Added, "added", &HEADINGS[..]),
        (List::Removed, "removed", &HEADINGS[..]),
        (List::NotObserved, "not observed: the scope is not complete on one side", &HEADINGS[..]),
    ];
    let is_method = || col("cause").eq_missing(lit(METHOD));
    for (list, title, headings) in titles {
        let rows = diff.list(list)?;
        for (is_unconfirmed, note) in [(false, ""), (true, ", unconfirmed: one crawl alone lacks them")] {
            let is_part = col("is_unconfirmed").eq(lit(is_unconfirmed)).and(is_method().not());
            let part = rows.clone().lazy().filter(is_part).collect()?;
            let is_always_told = !is_unconfirmed && list != List::Renamed;
            if is_always_told || part.height() > 0 {
                text.push_str(&style.head(&format!("{title}{note}: {}", part.height())));
            }
            if part.height() > 0 {
                text.push_str(&style.rows(&part, headings)?);
            }
        }
        let method = rows.lazy().filter(is_method()).collect()?;
        if method.height() > 0 {
            text.push_str(&style.head(&format!(
                "{}, by another reading (method) and not by the source: {}",
                list.word(),
                method.height()
            )));
            text.push_str(&style.rows(&method, headings)?);
        }
    }
    let rates = diff.list(List::ExchangeRate)?;
    text.push_str(&style.head(&format!("exchange rates that moved: {}", rates.height())));
    if rates.height() > 0 {
        text.push_str(&style.rows(&rates, &RATES)?);
    }
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_percentage_is_a_number_of_0_or_more() {
        assert_eq!((percent("1%"), percent("0.5"), percent("2 %")), (Ok(1.0), Ok(0.5), Ok(2.0)));
        assert!(["-1%", "x", "", "%", "NaN", "inf"].into_iter().all(|text| percent(text).is_err()));
    }

    #[test]
    fn a_pages_text_marks_nothing_up_in_markdown() {
        assert_eq!(
            in_markdown("a|b\n<img src=x> [l](j) `c` _H100_"),
            "a\\|b\\n&lt;img src=x> \\[l\\](j) \\`c\\` \\_H100\\_".replace("\\n", "\\\\n")
        );
    }
}
