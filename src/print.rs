//! Rows → standard output, as a table for people or as CSV, JSON, JSON lines and Parquet for programs.
//!
//! What a page says may be hostile: a terminal obeys some characters and a spreadsheet some first ones. Text for a terminal
//! goes through [`harmless`] and a CSV never begins a text as a formula begins; JSON and Parquet have the characters of the
//! page. Never changes a number.

use std::borrow::Cow;
use std::fmt::Write as _;

use comfy_table::{Attribute, Cell as TableCell, CellAlignment, ContentArrangement, Table, presets};
use polars::prelude::*;

use crate::frame::Cell;
use crate::harmless::cut;
pub use crate::harmless::harmless;
use crate::snapshot::file::bytes_of_rows;

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
    /// A Parquet file, with the types of the dataset.
    Parquet,
}

/// What goes to standard output.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Data {
    /// Text.
    Text(String),
    /// Bytes that are no text, such as a Parquet file.
    Bytes(Vec<u8>),
}

impl Data {
    /// Its bytes.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        match self {
            Self::Text(text) => text.as_bytes(),
            Self::Bytes(bytes) => bytes,
        }
    }

    /// Its text; `None` for bytes.
    #[must_use]
    pub fn text(&self) -> Option<&str> {
        match self {
            Self::Text(text) => Some(text),
            Self::Bytes(_) => None,
        }
    }
}

impl From<String> for Data {
    fn from(text: String) -> Self {
        Self::Text(text)
    }
}

/// Digits after the point of a float in a table, where the heading says nothing else.
const DIGITS: usize = 4;

/// A column of a printed table: its name in the rows, its heading, and how it is set.
#[derive(Debug, Clone, Copy)]
pub struct Heading<'a> {
    /// Column of the rows.
    pub column: &'a str,
    /// What stands above it, with the unit of a number.
    pub heading: &'a str,
    /// Digits after the point of a float.
    pub digits: usize,
    /// Whether texts stand at the right, as numbers always do.
    pub is_right: bool,
}

/// A heading.
#[must_use]
pub const fn heading<'a>(column: &'a str, heading: &'a str) -> Heading<'a> {
    Heading { column, heading, digits: DIGITS, is_right: false }
}

/// Rows in a format. A table shows the headings' columns; the others show every column.
///
/// # Errors
/// Only on a fault of the program.
pub fn rows(frame: &DataFrame, headings: &[Heading], format: Format) -> PolarsResult<Data> {
    Ok(match format {
        Format::Table => Data::Text(table(frame, headings)?),
        Format::Csv => Data::Text(csv(frame)?),
        Format::Json => {
            let objects = objects(frame)?;
            let lines = if objects.is_empty() { String::new() } else { format!("\n  {}\n", objects.join(",\n  ")) };
            Data::Text(format!("[{lines}]\n"))
        }
        Format::Ndjson => Data::Text(objects(frame)?.into_iter().fold(String::new(), |text, object| text + &object + "\n")),
        Format::Parquet => Data::Bytes(bytes_of_rows(frame)?),
    })
}

/// A text as a cell of a CSV: one that a spreadsheet would take for a formula gets an apostrophe in front, which spreadsheets
/// take for "this is text". Numbers never come here.
fn no_formula(text: &str) -> Cow<'_, str> {
    const BEGINNINGS: [char; 12] = ['=', '+', '-', '@', '\t', '\r', '\n', '\u{0}', '＝', '＋', '－', '＠'];
    if text.trim_start_matches(' ').starts_with(BEGINNINGS) { Cow::Owned(format!("'{text}")) } else { Cow::Borrowed(text) }
}

/// Rows as a table for people, with the headings' columns.
///
/// # Errors
/// Only on a fault of the program.
pub fn table(frame: &DataFrame, headings: &[Heading]) -> PolarsResult<String> {
    let mut table = Table::new();
    table.load_style(presets::UTF8_BORDERS_ONLY).set_content_arrangement(ContentArrangement::Disabled);
    table.set_header(headings.iter().map(|heading| TableCell::new(heading.heading).add_attribute(Attribute::Bold)));
    for row in 0..frame.height() {
        let mut cells = Vec::with_capacity(headings.len());
        for heading in headings {
            let cell = Cell::at(frame, heading.column, row)?;
            let is_right = heading.is_right || matches!(cell, Cell::Number(_));
            let alignment = if is_right { CellAlignment::Right } else { CellAlignment::Left };
            let digits = frame.column(heading.column)?.dtype().is_float().then_some(heading.digits);
            cells.push(TableCell::new(shown(&cell, digits)).set_alignment(alignment));
        }
        table.add_row(cells);
    }
    for (index, heading) in headings.iter().enumerate() {
        if (heading.is_right || frame.column(heading.column)?.dtype().is_numeric())
            && let Some(column) = table.column_mut(index)
        {
            column.set_cell_alignment(CellAlignment::Right);
        }
    }
    Ok(format!("{table}\n"))
}

/// A value for people: floats to so many digits, nothing as a dot, text without what a terminal obeys and no wider than a
/// screen.
fn shown(cell: &Cell, digits: Option<usize>) -> String {
    match (cell, digits) {
        (Cell::Null, _) => "·".to_owned(),
        (Cell::Number(number), Some(digits)) => match number.parse::<f64>() {
            Ok(number) => format!("{number:.digits$}"),
            Err(_) => number.clone(),
        },
        (Cell::Text(text), _) => cut(text, CELL_WIDTH_MAX).into_owned(),
        (other, _) => other.text(),
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
    fn a_spreadsheet_sees_no_formula_and_a_number_stays_a_number() {
        let texts = ["=HYPERLINK(\"x\")", "+1", "-1", "@SUM(A1)", "\t=1", "\r=1", " =1", "plain", "1"];
        let mut columns = crate::frame::Columns::new(texts.len());
        columns.texts("text", texts.iter().map(|text| Some(*text)));
        columns.longs("number", (0..texts.len()).map(|_| Some(-1)));
        let printed = rows(&columns.finish().expect("two columns"), &[], Format::Csv).expect("it prints");
        let mut reader = csv::Reader::from_reader(printed.bytes());
        let read: Vec<(String, String)> = reader
            .records()
            .map(|row| row.map(|row| (row[0].to_owned(), row[1].to_owned())))
            .collect::<Result<_, _>>()
            .expect("CSV");
        let expected = |text: &&str| if ["plain", "1"].contains(text) { (*text).to_owned() } else { format!("'{text}") };
        assert_eq!(read, texts.iter().map(|text| (expected(text), "-1".to_owned())).collect::<Vec<_>>());
    }
}
