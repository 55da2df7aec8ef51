//! The only room that knows Parquet and the Delta log.
//!
//! A night is published by one commit a table; the commit to `offers` is the moment the snapshot begins to exist. A
//! published file never changes.

pub mod log;
pub mod publish;
pub mod read;
pub mod schema;

use std::path::PathBuf;

/// What can go wrong between frames and files.
#[derive(Debug, thiserror::Error)]
pub enum SnapshotError {
    /// The log refused.
    #[error("use the log of table `{table}`")]
    Log {
        /// The table.
        table: &'static str,
        /// What it said.
        #[source]
        source: Box<deltalake_core::DeltaTableError>,
    },
    /// A file could not be written or read.
    #[error("use the Parquet file {}", path.display())]
    Parquet {
        /// The file.
        path: PathBuf,
        /// What polars said.
        #[source]
        source: polars::error::PolarsError,
    },
    /// The disk refused.
    #[error("write to the dataset")]
    Disk(#[from] crate::archive::ArchiveError),
    /// A folder of the dataset cannot be named as a table.
    #[error("use {} as a table", path.display())]
    BadPath {
        /// The folder.
        path: PathBuf,
    },
    /// The snapshot exists with other rows, and a published version never changes.
    #[error("publish snapshot {snapshot}: it exists already, with other rows")]
    ExistsOtherwise {
        /// The snapshot.
        snapshot: String,
    },
    /// There is no such snapshot.
    #[error("find snapshot `{wanted}`: {help}")]
    NotFound {
        /// What was asked for.
        wanted: String,
        /// What there is.
        help: String,
    },
    /// Another run is writing.
    #[error("lock the dataset: {owner}")]
    Locked {
        /// Who holds it.
        owner: String,
    },
}
