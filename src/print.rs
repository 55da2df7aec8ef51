//! Rows → standard output, as a table for people or as CSV, JSON and JSON lines for programs.
//!
//! What a page says may be hostile: a terminal obeys some characters and a spreadsheet some first ones. Text for a terminal
//! goes through [`harmless`] and a CSV never begins a text as a formula begins; JSON has the characters of the page. Never
//! changes a number.

use std::borrow::Cow;
use std::fmt::Write as _;

use comfy_table::{Attribute, Cell as TableCell, CellAlignment, ContentArrangement, Table, presets};
use polars::prelude::*;

use crate::frame::Cell;

/// How rows are printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, clap::ValueEnum)]
pub enum Format {
    /// Aligned columns.
    #[default]
    Table,
    /// Comma-separated values with a header.
    Csv,
    /// One JSON list.
    Json,
    /// One JSON object a line.
    Ndjson,
}

/// A column of a printed table: its name in the rows, its heading, and digits after the point for floats.
#[derive(Debug, Clone, Copy)]
pub struct Heading {
    /// Column of the rows.
    pub column: &'static str,
    /// What stands above it.
    pub heading: &'static str,
}

/// A heading.
#[must_use]
pub const fn heading(column: &'static str, heading: &'static str) -> Heading {
    Heading { column, heading }
}

/// Rows in a format. A table shows the headings' columns; the others show every column.
///
/// # Errors
/// Only on a fault of the program.
pub fn rows(frame: &DataFrame, headings: &[Heading], format: Format) -> PolarsResult<String> {
    match format {
        Format::Table => table(frame, headings),
        Format::Csv => csv(frame),
        Format::Json => {
            let objects = objects(frame)?;
            let lines = if objects.is_empty() { String::new() } else { format!("\n  {}\n", objects.join(",\n  ")) };
            Ok(format!("[{lines}]\n"))
        }
        Format::Ndjson => Ok(objects(frame)?.into_iter().fold(String::new(), |text, object| text + &object + "\n")),
    }
}

/// Text from somebody else, safe to show on a terminal: what cannot be seen, or moves the cursor, turns the direction of
/// writing or breaks the line is spelled out, such as `\u{1b}`, and a text longer than a screen is cut.
#[must_use]
pub fn harmless(text: &str) -> Cow<'_, str> {
    const LONGEST: usize = 2_000;
    cut_harmless(text, LONGEST)
}

fn cut_harmless(text: &str, longest: usize) -> Cow<'_, str> {
    // What Rust escapes in a debug print is what has no picture of its own; quotes and backslashes have one.
    let is_seen = |c: char| matches!(c, '"' | '\'' | '\\') || c.escape_debug().len() == 1;
    let end = text.char_indices().nth(longest).map_or(text.len(), |(end, _)| end);
    let start = &text[..end];
    if end == text.len() && text.chars().all(is_seen) {
        return Cow::Borrowed(text);
    }
    let mut shown = String::with_capacity(start.len());
    for c in start.chars() {
        if is_seen(c) { shown.push(c) } else { shown.extend(c.escape_debug()) }
    }
    if end < text.len() {
        shown.push('…');
    }
    Cow::Owned(shown)
}

/// A text as a cell of a CSV: one that a spreadsheet would take for a formula gets an apostrophe in front, which spreadsheets
/// take for "this is text". Numbers never come here.
fn no_formula(text: &str) -> Cow<'_, str> {
    const BEGINNINGS: [char; 12] = ['=', '+', '-', '@', '\t', '\r', '\n', '\u{0}', '＝', '＋', '－', '＠'];
    if text.trim_start_matches(' ').starts_with(BEGINNINGS) { Cow::Owned(format!("'{text}")) } else { Cow::Borrowed(text) }
}

fn table(frame: &DataFrame, headings: &[Heading]) -> PolarsResult<String> {
    let mut table = Table::new();
    table.load_style(presets::UTF8_BORDERS_ONLY).set_content_arrangement(ContentArrangement::Disabled);
    table.set_header(headings.iter().map(|heading| TableCell::new(heading.heading).add_attribute(Attribute::Bold)));
    for row in 0..frame.height() {
        let mut cells = Vec::with_capacity(headings.len());
        for heading in headings {
            let cell = Cell::at(frame, heading.column, row)?;
            let alignment = if matches!(cell, Cell::Number(_)) { CellAlignment::Right } else { CellAlignment::Left };
            let is_float = frame.column(heading.column)?.dtype().is_float();
            cells.push(TableCell::new(shown(&cell, is_float)).set_alignment(alignment));
        }
        table.add_row(cells);
    }
    for (index, heading) in headings.iter().enumerate() {
        if frame.column(heading.column)?.dtype().is_numeric()
            && let Some(column) = table.column_mut(index)
        {
            column.set_cell_alignment(CellAlignment::Right);
        }
    }
    Ok(format!("{table}\n"))
}

/// A value for people: floats to four digits, nothing as a dot, text without what a terminal obeys and no wider than a screen.
fn shown(cell: &Cell, is_float: bool) -> String {
    match cell {
        Cell::Null => "·".to_owned(),
        Cell::Number(number) if is_float => match number.parse::<f64>() {
            Ok(number) => format!("{number:.4}"),
            Err(_) => number.clone(),
        },
        Cell::Text(text) => cut_harmless(text, CELL_WIDTH_MAX).into_owned(),
        other => other.text(),
    }
}

/// Characters of the widest cell of a table: one long label must not push every other column off the screen.
const CELL_WIDTH_MAX: usize = 120;

fn csv(frame: &DataFrame) -> PolarsResult<String> {
    let mut writer = csv::Writer::from_writer(Vec::new());
    let failed = |error: csv::Error| polars_err!(ComputeError: "{error}");
    writer.write_record(frame.get_column_names().iter().map(|name| name.as_str())).map_err(failed)?;
    for row in 0..frame.height() {
        let mut cells = Vec::new();
        for name in frame.get_column_names() {
            cells.push(match Cell::at(frame, name, row)? {
                Cell::Text(text) => no_formula(&text).into_owned(),
                other => other.text(),
            });
        }
        writer.write_record(&cells).map_err(failed)?;
    }
    let bytes = writer.into_inner().map_err(|error| polars_err!(ComputeError: "{error}"))?;
    String::from_utf8(bytes).map_err(|error| polars_err!(ComputeError: "{error}"))
}

fn objects(frame: &DataFrame) -> PolarsResult<Vec<String>> {
    let names = frame.get_column_names();
    let mut objects = Vec::with_capacity(frame.height());
    for row in 0..frame.height() {
        let mut object = String::from("{");
        for (index, name) in names.iter().enumerate() {
            let comma = if index == 0 { "" } else { ", " };
            let _ = write!(object, "{comma}\"{name}\": {}", Cell::at(frame, name, row)?.json());
        }
        object.push('}');
        objects.push(object);
    }
    Ok(objects)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_terminal_obeys_nothing_that_a_page_says() {
        for (text, shown) in [
            ("8x H100 SXM (80 GB), 华北2 ¥3 \"é\" \\ 'x'", "8x H100 SXM (80 GB), 华北2 ¥3 \"é\" \\ 'x'"),
            ("\u{1b}[31mred\u{1b}[0m", "\\u{1b}[31mred\\u{1b}[0m"),
            ("\u{1b}]8;;http://x\u{7}link", "\\u{1b}]8;;http://x\\u{7}link"),
            ("\u{9b}2J", "\\u{9b}2J"),
            ("a\nb\tc\rd\u{8}", "a\\nb\\tc\\rd\\u{8}"),
            ("a\u{202e}b\u{2066}c\u{2069}d\u{200b}\u{feff}", "a\\u{202e}b\\u{2066}c\\u{2069}d\\u{200b}\\u{feff}"),
            ("a\u{0}\u{2028}\u{e0041}", "a\\0\\u{2028}\\u{e0041}"),
        ] {
            assert_eq!(harmless(text), shown);
        }
        assert!(matches!(harmless("plain"), Cow::Borrowed("plain")));
        assert_eq!(harmless(&"x".repeat(5_000)).chars().count(), 2_001);
    }

    #[test]
    fn a_spreadsheet_sees_no_formula_and_a_number_stays_a_number() {
        let texts = ["=HYPERLINK(\"x\")", "+1", "-1", "@SUM(A1)", "\t=1", "\r=1", " =1", "plain", "1"];
        let mut columns = crate::frame::Columns::new(texts.len());
        columns.texts("text", texts.iter().map(|text| Some(*text)));
        columns.longs("number", (0..texts.len()).map(|_| Some(-1)));
        let printed = rows(&columns.finish().expect("two columns"), &[], Format::Csv).expect("it prints");
        let mut reader = csv::Reader::from_reader(printed.as_bytes());
        let read: Vec<(String, String)> = reader
            .records()
            .map(|row| row.map(|row| (row[0].to_owned(), row[1].to_owned())))
            .collect::<Result<_, _>>()
            .expect("CSV");
        let expected = |text: &&str| if ["plain", "1"].contains(text) { (*text).to_owned() } else { format!("'{text}") };
        assert_eq!(read, texts.iter().map(|text| (expected(text), "-1".to_owned())).collect::<Vec<_>>());
    }
}
