//! Values → typed polars columns, and back to cells for printing. Knows the dataset's types and nothing of its meaning.

use chrono::{DateTime, Datelike as _, NaiveDate, Utc};
use num_traits::ToPrimitive as _;
use polars::prelude::*;
use rust_decimal::Decimal;

use crate::offer::{DECIMAL_PRECISION, DECIMAL_SCALE, Kind, Table};

/// The dataset's one decimal type.
pub const DECIMAL: DataType = DataType::Decimal(DECIMAL_PRECISION, DECIMAL_SCALE);

/// The dataset's one type of instants.
#[must_use]
pub fn instant() -> DataType {
    DataType::Datetime(TimeUnit::Microseconds, Some(TimeZone::UTC))
}

/// The polars type of a kind of column.
#[must_use]
pub fn data_type(kind: Kind) -> DataType {
    match kind {
        Kind::Text => DataType::String,
        Kind::Boolean => DataType::Boolean,
        Kind::Whole => DataType::Int32,
        Kind::Long => DataType::Int64,
        Kind::Decimal => DECIMAL,
        Kind::Float => DataType::Float64,
        Kind::Date => DataType::Date,
        Kind::Instant => instant(),
    }
}

/// A frame of a table's columns without rows.
#[must_use]
pub fn empty(table: &Table) -> DataFrame {
    let columns = table.columns.iter().map(|column| Column::new_empty(column.name.into(), &data_type(column.kind))).collect();
    DataFrame::new(0, columns).expect("a table's columns have different names")
}

/// Whether two texts are one. Those of a page or a list are in one place of the memory, and need not be read.
fn is_same(a: Option<&str>, b: Option<&str>) -> bool {
    match (a, b) {
        (Some(a), Some(b)) => std::ptr::eq(a, b) || a == b,
        (a, b) => a.is_none() && b.is_none(),
    }
}

/// Columns in the making.
pub struct Columns {
    rows: usize,
    columns: Vec<Column>,
}

impl Columns {
    /// Starts a frame of so many rows.
    #[must_use]
    pub const fn new(rows: usize) -> Self {
        Self { rows, columns: Vec::new() }
    }

    fn push(&mut self, column: impl IntoColumn) {
        self.columns.push(column.into_column());
    }

    /// Adds text. The bytes of neighbours that are alike are kept once.
    pub fn texts<'a>(&mut self, name: &str, values: impl Iterator<Item = Option<&'a str>>) {
        let mut kept: Vec<Option<&str>> = Vec::new();
        let mut place_of = |value: Option<&'a str>| -> IdxSize {
            if !kept.last().is_some_and(|last| is_same(*last, value)) {
                kept.push(value);
            }
            IdxSize::try_from(kept.len() - 1).expect("a night has fewer rows than that")
        };
        let places: Vec<IdxSize> = values.map(&mut place_of).collect();
        let texts = StringChunked::from_iter_options(name.into(), kept.iter().copied());
        if texts.len() == places.len() {
            self.push(texts);
        } else {
            let places = IdxCa::from_vec(name.into(), places);
            self.push(texts.take(&places).expect("every place is one of a text that is kept"));
        }
    }

    /// Adds text that is made row by row.
    pub fn strings(&mut self, name: &str, values: impl Iterator<Item = Option<String>>) {
        self.push(StringChunked::from_iter_options(name.into(), values));
    }

    /// Adds true or false.
    pub fn truths(&mut self, name: &str, values: impl Iterator<Item = Option<bool>>) {
        self.push(BooleanChunked::from_iter_options(name.into(), values));
    }

    /// Adds 32-bit whole numbers.
    pub fn wholes(&mut self, name: &str, values: impl Iterator<Item = Option<i32>>) {
        self.push(Int32Chunked::from_iter_options(name.into(), values));
    }

    /// Adds 64-bit whole numbers.
    pub fn longs(&mut self, name: &str, values: impl Iterator<Item = Option<i64>>) {
        self.push(Int64Chunked::from_iter_options(name.into(), values));
    }

    /// Adds floats.
    pub fn floats(&mut self, name: &str, values: impl Iterator<Item = Option<f64>>) {
        self.push(Float64Chunked::from_iter_options(name.into(), values));
    }

    /// Adds days.
    pub fn dates(&mut self, name: &str, values: impl Iterator<Item = Option<NaiveDate>>) {
        let days = values.map(|day| day.map(days_since_epoch));
        self.push(Int32Chunked::from_iter_options(name.into(), days).into_date().into_series());
    }

    /// Adds instants.
    pub fn instants(&mut self, name: &str, values: impl Iterator<Item = Option<DateTime<Utc>>>) {
        let micros = values.map(|at| at.map(|at| at.timestamp_micros()));
        let series = Int64Chunked::from_iter_options(name.into(), micros);
        self.push(series.into_datetime(TimeUnit::Microseconds, Some(TimeZone::UTC)).into_series());
    }

    /// Adds exact decimals.
    ///
    /// # Errors
    /// When a value has more digits after the point than the dataset keeps: nothing is rounded.
    pub fn decimals(&mut self, name: &str, values: impl Iterator<Item = Option<Decimal>>) -> PolarsResult<()> {
        let mut scaled = Vec::with_capacity(self.rows);
        for value in values {
            scaled.push(match value {
                None => None,
                Some(value) => Some(
                    to_scaled(value)
                        .ok_or_else(|| polars_err!(ComputeError: "{name}: {value} has more digits than the dataset keeps"))?,
                ),
            });
        }
        self.scaled(name, scaled.into_iter());
        Ok(())
    }

    /// Adds decimals given as whole multiples of the dataset's last digit.
    pub fn scaled(&mut self, name: &str, values: impl Iterator<Item = Option<i128>>) {
        let series = Int128Chunked::from_iter_options(name.into(), values);
        self.push(series.into_decimal_unchecked(DECIMAL_PRECISION, DECIMAL_SCALE).into_series());
    }

    /// The frame.
    ///
    /// # Errors
    /// When columns differ in length, which is a bug.
    pub fn finish(self) -> PolarsResult<DataFrame> {
        DataFrame::new(self.rows, self.columns)
    }
}

/// A decimal as a whole multiple of the dataset's last digit; `None` when it has more digits.
#[must_use]
pub fn to_scaled(value: Decimal) -> Option<i128> {
    let value = value.normalize();
    let missing = u32::try_from(DECIMAL_SCALE).ok()?.checked_sub(value.scale())?;
    value.mantissa().checked_mul(10_i128.pow(missing))
}

/// A day as polars counts it.
fn days_since_epoch(day: NaiveDate) -> i32 {
    const EPOCH: NaiveDate = NaiveDate::from_ymd_opt(1970, 1, 1).expect("the epoch is a day");
    day.num_days_from_ce() - EPOCH.num_days_from_ce()
}

/// A value as it is printed.
#[derive(Debug, Clone, PartialEq)]
pub enum Cell {
    /// Nothing.
    Null,
    /// True or false.
    Truth(bool),
    /// A number, in its shortest exact form.
    Number(String),
    /// Anything else.
    Text(String),
}

impl Cell {
    /// The value at a place of a frame.
    ///
    /// # Errors
    /// When there is no such column or row.
    pub fn at(frame: &DataFrame, column: &str, row: usize) -> PolarsResult<Self> {
        Self::of(frame.column(column)?, row)
    }

    /// The value at a place of a column.
    ///
    /// # Errors
    /// When there is no such row.
    pub fn of(column: &Column, row: usize) -> PolarsResult<Self> {
        Ok(match column.get(row)? {
            AnyValue::Null => Self::Null,
            AnyValue::Boolean(truth) => Self::Truth(truth),
            AnyValue::String(text) => Self::Text(text.to_owned()),
            AnyValue::StringOwned(text) => Self::Text(text.to_string()),
            AnyValue::Float64(number) => Self::Number(number.to_string()),
            AnyValue::Decimal(scaled, _, scale) => Self::Number(print_scaled(scaled, scale)),
            AnyValue::Date(days) => Self::Text(day_from(days).map_or_else(String::new, |day| day.to_string())),
            AnyValue::Datetime(micros, TimeUnit::Microseconds, _) => Self::Text(print_instant(micros)),
            AnyValue::DatetimeOwned(micros, TimeUnit::Microseconds, _) => Self::Text(print_instant(micros)),
            other => match other.extract::<i64>() {
                Some(number) => Self::Number(number.to_string()),
                None => Self::Text(other.to_string()),
            },
        })
    }

    /// The value as text, empty for nothing.
    #[must_use]
    pub fn text(&self) -> String {
        match self {
            Self::Null => String::new(),
            Self::Truth(truth) => truth.to_string(),
            Self::Number(text) | Self::Text(text) => text.clone(),
        }
    }

    /// The value as JSON. Exact decimals are written as numbers with all their digits.
    #[must_use]
    pub fn json(&self) -> String {
        match self {
            Self::Null => "null".to_owned(),
            Self::Truth(truth) => truth.to_string(),
            Self::Number(number) => number.clone(),
            Self::Text(text) => serde_json::Value::from(text.as_str()).to_string(),
        }
    }
}

/// One row of a frame.
#[derive(Debug, Clone, Copy)]
pub struct Row<'a> {
    /// The frame.
    pub rows: &'a DataFrame,
    /// Its place in it.
    pub row: usize,
}

impl Row<'_> {
    /// A value.
    ///
    /// # Errors
    /// When there is no such column or row.
    pub fn cell(&self, column: &str) -> PolarsResult<Cell> {
        Cell::at(self.rows, column, self.row)
    }

    /// A value as text; `None` where it is null or empty.
    ///
    /// # Errors
    /// As [`Row::cell`].
    pub fn optional(&self, column: &str) -> PolarsResult<Option<String>> {
        Ok(Some(self.text(column)?).filter(|text| !text.is_empty()))
    }

    /// A value as text, empty where it is null.
    ///
    /// # Errors
    /// As [`Row::cell`].
    pub fn text(&self, column: &str) -> PolarsResult<String> {
        self.cell(column).map(|cell| cell.text())
    }

    /// Whether a value's text is this.
    ///
    /// # Errors
    /// As [`Row::cell`].
    pub fn is(&self, column: &str, value: &str) -> PolarsResult<bool> {
        Ok(self.text(column)? == value)
    }

    /// A decimal as a whole multiple of the dataset's last digit.
    ///
    /// # Errors
    /// When there is no such column of decimals.
    pub fn scaled(&self, column: &str) -> PolarsResult<Option<i128>> {
        self.rows.column(column)?.decimal().map(|decimals| decimals.physical().get(self.row))
    }

    /// A float.
    ///
    /// # Errors
    /// When there is no such column of floats.
    pub fn float(&self, column: &str) -> PolarsResult<Option<f64>> {
        self.rows.column(column)?.f64().map(|floats| floats.get(self.row))
    }
}

/// A day from polars' count.
#[must_use]
pub fn day_from(days_since_epoch: i32) -> Option<NaiveDate> {
    DateTime::from_timestamp(i64::from(days_since_epoch) * 86_400, 0).map(|at| at.date_naive())
}

fn print_instant(micros: i64) -> String {
    DateTime::from_timestamp_micros(micros).map_or_else(String::new, |at| at.format("%Y-%m-%dT%H:%M:%SZ").to_string())
}

/// The shortest exact form of a scaled decimal. `98.32`
#[must_use]
pub fn print_scaled(scaled: i128, scale: usize) -> String {
    let power = 10_u128.pow(scale.to_u32().expect("the scale of a decimal is small"));
    let (whole, fraction) = (scaled.unsigned_abs() / power, scaled.unsigned_abs() % power);
    let sign = if scaled < 0 { "-" } else { "" };
    let fraction = format!("{fraction:0scale$}");
    match fraction.trim_end_matches('0') {
        "" => format!("{sign}{whole}"),
        digits => format!("{sign}{whole}.{digits}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn decimals_are_exact_or_refused() {
        let mut columns = Columns::new(2);
        columns.decimals("amount", [Some(Decimal::new(14_320_417, 5)), None].into_iter()).expect("twelve digits are enough");
        let frame = columns.finish().expect("one column");
        assert_eq!(Cell::at(&frame, "amount", 0).expect("a cell"), Cell::Number("143.20417".to_owned()));
        assert_eq!(Cell::at(&frame, "amount", 1).expect("a cell"), Cell::Null);
        assert!(Columns::new(1).decimals("amount", [Some(Decimal::new(1, 13))].into_iter()).is_err());
    }

    #[test]
    fn cells_print_as_people_write_them() {
        assert_eq!(print_scaled(98_320_000_000_000, 12), "98.32");
        assert_eq!(print_scaled(-1, 12), "-0.000000000001");
        assert_eq!(print_scaled(0, 12), "0");
        assert_eq!(Cell::Text("a \"b\"".to_owned()).json(), r#""a \"b\"""#);
    }
}
