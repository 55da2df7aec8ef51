//! Rows → standard output, as a table for people or as CSV, JSON and JSON lines for programs.

use std::fmt::Write as _;

use comfy_table::{Attribute, Cell as TableCell, CellAlignment, ContentArrangement, Table, presets};
use polars::prelude::*;

use crate::frame::Cell;
use crate::harmless;

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

/// A value for people: floats to four digits, nothing as a dot.
fn shown(cell: &Cell, is_float: bool) -> String {
    match cell {
        Cell::Null => "·".to_owned(),
        Cell::Number(number) if is_float => match number.parse::<f64>() {
            Ok(number) => format!("{number:.4}"),
            Err(_) => number.clone(),
        },
        other => harmless::line(&other.text()),
    }
}

fn csv(frame: &DataFrame) -> PolarsResult<String> {
    let mut writer = csv::Writer::from_writer(Vec::new());
    let failed = |error: csv::Error| polars_err!(ComputeError: "{error}");
    writer.write_record(frame.get_column_names().iter().map(|name| name.as_str())).map_err(failed)?;
    for row in 0..frame.height() {
        let mut cells = Vec::new();
        for name in frame.get_column_names() {
            cells.push(Cell::at(frame, name, row)?.text());
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
