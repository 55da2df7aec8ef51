//! The dataset's columns in the words of Parquet and Delta, and whether a dataset's columns are this program's.
//!
//! A column that a dataset lacks is added; one that it has in another type, or that this program does not know, is never
//! written over.

use std::sync::Arc;

use deltalake_core::arrow::datatypes::{DataType as ArrowType, Field, Schema, TimeUnit};
use deltalake_core::kernel::{DataType, MetadataValue, PrimitiveType, StructField, StructType};
use polars::io::parquet::write::KeyValueMetadata;
use polars::prelude as pl;

use crate::frame;
use crate::offer::{DECIMAL_PRECISION, DECIMAL_SCALE, Kind, SCHEMA_VERSION, TABLES, Table};

fn precision() -> u8 {
    u8::try_from(DECIMAL_PRECISION).expect("38 is small")
}

fn scale() -> u8 {
    u8::try_from(DECIMAL_SCALE).expect("12 is small")
}

/// Columns of a table for the Delta log, each with its meaning as comment.
#[must_use]
pub fn delta_fields(table: &Table) -> Vec<StructField> {
    let field = |column: &crate::offer::Column| {
        let comment = MetadataValue::String(format!("{} Unit: {}.", column.meaning, column.unit));
        StructField::new(column.name, DataType::Primitive(primitive(column.kind)), true).with_metadata([("comment", comment)])
    };
    table.columns.iter().map(field).collect()
}

fn primitive(kind: Kind) -> PrimitiveType {
    match kind {
        Kind::Text => PrimitiveType::String,
        Kind::Boolean => PrimitiveType::Boolean,
        Kind::Whole => PrimitiveType::Integer,
        Kind::Long => PrimitiveType::Long,
        Kind::Decimal => PrimitiveType::decimal(precision(), scale()).expect("12 of 38 digits is a decimal"),
        Kind::Float => PrimitiveType::Double,
        Kind::Date => PrimitiveType::Date,
        Kind::Instant => PrimitiveType::Timestamp,
    }
}

/// A column whose type in the dataset is not this program's.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OtherType {
    /// Its name.
    pub column: String,
    /// Its type in the dataset.
    pub found: String,
    /// Its type in this program.
    pub expected: String,
}

/// The first column that has another type in the dataset than in this program.
#[must_use]
pub fn other_type(table: &Table, found: &StructType) -> Option<OtherType> {
    table.columns.iter().find_map(|column| {
        let field = found.field(column.name)?;
        let expected = DataType::Primitive(primitive(column.kind));
        (*field.data_type() != expected).then(|| OtherType {
            column: column.name.to_owned(),
            found: field.data_type().to_string(),
            expected: expected.to_string(),
        })
    })
}

/// Columns that this program has and the dataset has not.
#[must_use]
pub fn missing(table: &Table, found: &StructType) -> Vec<&'static str> {
    table.columns.iter().map(|column| column.name).filter(|name| found.field(name).is_none()).collect()
}

/// Columns that the dataset has and this program does not know.
#[must_use]
pub fn unknown(table: &Table, found: &StructType) -> Vec<String> {
    let is_known = |name: &str| table.columns.iter().any(|column| column.name == name);
    found.fields().map(|field| field.name().clone()).filter(|name| !is_known(name)).collect()
}

/// The columns of a dataset's files for polars: this program's, then those it does not know, as the log says they are.
/// `Err` names an unknown column of a type that it cannot read either.
///
/// # Errors
/// As said.
pub fn for_polars(table: &Table, found: &StructType) -> Result<pl::Schema, String> {
    let mut columns: pl::Schema =
        table.columns.iter().map(|column| (column.name.into(), frame::data_type(column.kind))).collect();
    for field in found.fields() {
        if columns.get(field.name()).is_none() {
            let kind = polars_type(field.data_type()).ok_or_else(|| field.name().clone())?;
            columns.with_column(field.name().as_str().into(), kind);
        }
    }
    Ok(columns)
}

/// The polars type of a column that only a newer program knows.
fn polars_type(found: &DataType) -> Option<pl::DataType> {
    let DataType::Primitive(primitive) = found else { return None };
    Some(match primitive {
        PrimitiveType::String => pl::DataType::String,
        PrimitiveType::Boolean => pl::DataType::Boolean,
        PrimitiveType::Integer => pl::DataType::Int32,
        PrimitiveType::Long => pl::DataType::Int64,
        PrimitiveType::Float => pl::DataType::Float32,
        PrimitiveType::Double => pl::DataType::Float64,
        PrimitiveType::Date => pl::DataType::Date,
        PrimitiveType::Timestamp => frame::instant(),
        PrimitiveType::Decimal(kind) => pl::DataType::Decimal(usize::from(kind.precision()), usize::from(kind.scale())),
        _ => return None,
    })
}

/// Key-value metadata of a table's Parquet files.
///
/// polars embeds an Arrow schema of view types, which some readers refuse; the one given here takes its place.
#[must_use]
pub fn parquet_metadata(table: &Table) -> KeyValueMetadata {
    let mut metadata = vec![arrow_schema(table.columns.iter().map(|column| (column.name, column.kind, Some(column))).collect())];
    metadata.push(("gpuledger.table".to_owned(), table.name.to_owned()));
    metadata.push(("gpuledger.schema_version".to_owned(), SCHEMA_VERSION.to_string()));
    KeyValueMetadata::from_static(metadata)
}

/// Key-value metadata of a file of rows that are no table's, such as an answer to a question: what is known of the columns
/// that the tables have too.
///
/// # Errors
/// When a column is of a type that no table has: names it.
pub fn rows_metadata(rows: &pl::DataFrame) -> Result<KeyValueMetadata, String> {
    let mut fields = Vec::new();
    for column in rows.columns() {
        let name = column.name().as_str();
        let kind = KINDS.iter().copied().find(|kind| frame::data_type(*kind) == *column.dtype());
        let kind = kind.ok_or_else(|| format!("{name} of type {}", column.dtype()))?;
        let known = TABLES.iter().flat_map(|table| table.columns).find(|known| known.name == name && known.kind == kind);
        fields.push((name, kind, known));
    }
    Ok(KeyValueMetadata::from_static(vec![arrow_schema(fields)]))
}

/// Every type that a column of a table has.
const KINDS: [Kind; 8] =
    [Kind::Text, Kind::Boolean, Kind::Whole, Kind::Long, Kind::Decimal, Kind::Float, Kind::Date, Kind::Instant];

/// The Arrow schema of a file as its metadata holds it, with unit and meaning of each column that is a table's.
fn arrow_schema(columns: Vec<(&str, Kind, Option<&crate::offer::Column>)>) -> (String, String) {
    let field = |(name, kind, known): (&str, Kind, Option<&crate::offer::Column>)| {
        let kind = match kind {
            Kind::Text => ArrowType::Utf8,
            Kind::Boolean => ArrowType::Boolean,
            Kind::Whole => ArrowType::Int32,
            Kind::Long => ArrowType::Int64,
            Kind::Decimal => ArrowType::Decimal128(precision(), i8::try_from(DECIMAL_SCALE).expect("12 is small")),
            Kind::Float => ArrowType::Float64,
            Kind::Date => ArrowType::Date32,
            Kind::Instant => ArrowType::Timestamp(TimeUnit::Microsecond, Some(Arc::from("UTC"))),
        };
        let facts = known.map(|column| [("unit", column.unit), ("meaning", column.meaning)]).into_iter().flatten();
        Field::new(name, kind, true).with_metadata(facts.map(|(key, value)| (key.to_owned(), value.to_owned())).collect())
    };
    let schema = Schema::new(columns.into_iter().map(field).collect::<Vec<_>>());
    ("ARROW:schema".to_owned(), parquet::arrow::encode_arrow_schema(&schema))
}
