//! The dataset's columns in the words of Parquet and Delta.

use std::sync::Arc;

use deltalake_core::arrow::datatypes::{DataType as ArrowType, Field, Schema, TimeUnit};
use deltalake_core::kernel::{DataType, MetadataValue, PrimitiveType, StructField};
use polars::io::parquet::write::KeyValueMetadata;

use crate::offer::{DECIMAL_PRECISION, DECIMAL_SCALE, Kind, SCHEMA_VERSION, Table};

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
        let kind = match column.kind {
            Kind::Text => PrimitiveType::String,
            Kind::Boolean => PrimitiveType::Boolean,
            Kind::Whole => PrimitiveType::Integer,
            Kind::Long => PrimitiveType::Long,
            Kind::Decimal => PrimitiveType::decimal(precision(), scale()).expect("12 of 38 digits is a decimal"),
            Kind::Float => PrimitiveType::Double,
            Kind::Date => PrimitiveType::Date,
            Kind::Instant => PrimitiveType::Timestamp,
        };
        let comment = MetadataValue::String(format!("{} Unit: {}.", column.meaning, column.unit));
        StructField::new(column.name, DataType::Primitive(kind), true).with_metadata([("comment", comment)])
    };
    table.columns.iter().map(field).collect()
}

/// Key-value metadata of a table's Parquet files.
///
/// polars embeds an Arrow schema of view types, which some readers refuse; the one given here takes its place.
#[must_use]
pub fn parquet_metadata(table: &Table) -> KeyValueMetadata {
    let field = |column: &crate::offer::Column| {
        let kind = match column.kind {
            Kind::Text => ArrowType::Utf8,
            Kind::Boolean => ArrowType::Boolean,
            Kind::Whole => ArrowType::Int32,
            Kind::Long => ArrowType::Int64,
            Kind::Decimal => ArrowType::Decimal128(precision(), i8::try_from(DECIMAL_SCALE).expect("12 is small")),
            Kind::Float => ArrowType::Float64,
            Kind::Date => ArrowType::Date32,
            Kind::Instant => ArrowType::Timestamp(TimeUnit::Microsecond, Some(Arc::from("UTC"))),
        };
        let facts = [("unit", column.unit), ("meaning", column.meaning)];
        Field::new(column.name, kind, true).with_metadata(facts.map(|(key, value)| (key.to_owned(), value.to_owned())).into())
    };
    let schema = Schema::new(table.columns.iter().map(field).collect::<Vec<_>>());
    KeyValueMetadata::from_static(vec![
        ("ARROW:schema".to_owned(), parquet::arrow::encode_arrow_schema(&schema)),
        ("gpuledger.table".to_owned(), table.name.to_owned()),
        ("gpuledger.schema_version".to_owned(), SCHEMA_VERSION.to_string()),
    ])
}
