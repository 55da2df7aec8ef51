//! The only room that knows Parquet and the Delta log.
//!
//! A night is published by one commit a table; the commit to `offers` is the moment the snapshot begins to exist. A
//! published file never changes.

pub mod durable;
pub mod file;
pub mod journal;
pub mod log;
pub mod publish;
pub mod read;
pub mod recover;
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
    /// A file could not be read.
    #[error("read the Parquet file {}", path.display())]
    Parquet {
        /// The file.
        path: PathBuf,
        /// What polars said.
        #[source]
        source: polars::error::PolarsError,
    },
    /// Rows could not be put in order or made a file of, which is a fault of this program.
    #[error("make a file of table `{table}`, which is a fault of this program")]
    Rows {
        /// The table.
        table: &'static str,
        /// What polars said.
        #[source]
        source: polars::error::PolarsError,
    },
    /// The disk refused.
    #[error("use the dataset")]
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
    /// Another run publishes the same night at this moment, with other rows.
    #[error("publish snapshot {snapshot}: another run is publishing it at this moment, with other rows")]
    BeingPublished {
        /// The snapshot.
        snapshot: String,
    },
    /// The snapshot is published; what belongs beside it could not be written, and the next run does so.
    #[error("finish snapshot {snapshot}, which is published")]
    Unfinished {
        /// The snapshot.
        snapshot: String,
        /// What stood in the way.
        #[source]
        source: Box<SnapshotError>,
    },
    /// Other runs put something into the log each time this one was about to.
    #[error("publish snapshot {snapshot}: other runs were quicker {attempts} times")]
    Overtaken {
        /// The snapshot.
        snapshot: String,
        /// How often it was tried.
        attempts: u32,
    },
    /// A column has another type in the dataset than in this program.
    #[error("use column `{column}` of table `{table}`: it is {found} in the dataset and {expected} in this program")]
    OtherType {
        /// The table.
        table: &'static str,
        /// The column.
        column: String,
        /// Its type in the dataset.
        found: String,
        /// Its type in this program.
        expected: String,
    },
    /// The dataset was written by a newer program, and this one would leave out what it does not know.
    #[error("write to table `{table}`: a newer program made it, {difference}")]
    Newer {
        /// The table.
        table: &'static str,
        /// What is newer.
        difference: String,
    },
    /// Another run is writing.
    #[error("lock the dataset, which is locked by {owner}")]
    Locked {
        /// Who holds it.
        owner: String,
    },
}
