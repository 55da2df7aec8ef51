//! The Delta log of one table: create, list files, commit.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use chrono::Utc;
use deltalake_core::kernel::transaction::{CommitBuilder, CommitProperties};
use deltalake_core::kernel::{Action, Add, Transaction};
use deltalake_core::protocol::{DeltaOperation, SaveMode};
use deltalake_core::{DeltaTable, DeltaTableBuilder, DeltaTableError};
use url::Url;

use crate::night::SnapshotId;
use crate::offer::Table;
use crate::snapshot::{SnapshotError, schema};

/// Key of an `Add` action's tag that names the snapshot whose rows the file holds.
const SNAPSHOT_TAG: &str = "gpuledger.snapshot_id";

/// Key of the tag that names the snapshot which the file's own corrects.
const CORRECTS_TAG: &str = "gpuledger.corrects";

/// A file of a table, as its log knows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LoggedFile {
    /// Path below the table.
    pub path: String,
    /// Whole path.
    pub file: PathBuf,
    /// Rows, as the log says.
    pub rows: Option<usize>,
    /// The snapshot whose rows it holds, told from its name.
    pub snapshot: Option<SnapshotId>,
    /// When it was committed, in milliseconds since 1970.
    pub committed_at_ms: i64,
    /// Size in bytes.
    bytes: i64,
    /// Its partition, as the log has it.
    partition_values: HashMap<String, Option<String>>,
}

/// The log of a table.
pub struct Log {
    table: &'static Table,
    folder: PathBuf,
    delta: DeltaTable,
}

impl Log {
    /// Opens a table; `None` when it does not exist yet.
    ///
    /// # Errors
    /// When there is a log and it cannot be read.
    pub async fn open(output: &Path, table: &'static Table) -> Result<Option<Self>, SnapshotError> {
        let folder = output.join(table.name);
        if !folder.join("_delta_log").is_dir() {
            return Ok(None);
        }
        let url = table_url(&folder)?;
        let failed = |source: DeltaTableError| SnapshotError::Log { table: table.name, source: Box::new(source) };
        let builder = DeltaTableBuilder::from_url(url).map_err(failed)?;
        match builder.load().await {
            Ok(delta) => Ok(Some(Self { table, folder, delta })),
            // A log folder without a first commit is what a crash while creating leaves.
            Err(DeltaTableError::NotATable(_)) => Ok(None),
            Err(error) => Err(failed(error)),
        }
    }

    /// Opens a table and creates it if need be.
    ///
    /// # Errors
    /// When the log cannot be read or written.
    pub async fn open_or_create(output: &Path, table: &'static Table) -> Result<Self, SnapshotError> {
        if let Some(log) = Self::open(output, table).await? {
            return Ok(log);
        }
        let folder = output.join(table.name);
        let failed = |source: DeltaTableError| SnapshotError::Log { table: table.name, source: Box::new(source) };
        std::fs::create_dir_all(&folder).map_err(|source| crate::archive::ArchiveError::Io { path: folder.clone(), source })?;
        let mut create = DeltaTable::try_from_url(table_url(&folder)?)
            .await
            .map_err(failed)?
            .create()
            .with_save_mode(SaveMode::Ignore)
            .with_table_name(table.name)
            .with_comment(table.row)
            .with_columns(schema::delta_fields(table));
        if table.is_partitioned {
            create = create.with_partition_columns(["snapshot_date"]);
        }
        let delta = create.await.map_err(failed)?;
        Ok(Self { table, folder, delta })
    }

    /// The table.
    #[must_use]
    pub const fn table(&self) -> &'static Table {
        self.table
    }

    /// Newest version of the table.
    #[must_use]
    pub fn version(&self) -> Option<u64> {
        self.delta.version()
    }

    /// The files of the table, oldest snapshot first.
    ///
    /// # Errors
    /// When the log is damaged.
    pub fn files(&self) -> Result<Vec<LoggedFile>, SnapshotError> {
        let state = self.delta.snapshot().map_err(|error| self.failed(error))?;
        let mut files: Vec<LoggedFile> = state
            .log_data()
            .iter()
            .map(|view| {
                let path = view.path().into_owned();
                LoggedFile {
                    file: self.folder.join(&path),
                    rows: view.num_records(),
                    snapshot: snapshot_of(&path),
                    committed_at_ms: view.modification_time(),
                    bytes: view.size(),
                    partition_values: view.partition_values_map(),
                    path,
                }
            })
            .collect();
        files.sort_by(|a, b| (a.snapshot, &a.path).cmp(&(b.snapshot, &b.path)));
        Ok(files)
    }

    /// Commits one new file, and takes back the files it replaces, at one moment.
    ///
    /// # Errors
    /// When the log cannot be written, or another run committed the same night first.
    pub async fn commit(&mut self, snapshot: SnapshotId, file: NewFile, replaced: &[LoggedFile]) -> Result<(), SnapshotError> {
        let id = snapshot.to_string();
        let date = snapshot.date().to_string();
        let partition_values =
            if self.table.is_partitioned { HashMap::from([("snapshot_date".to_owned(), Some(date))]) } else { HashMap::new() };
        let now = Utc::now().timestamp_millis();
        let mut actions: Vec<Action> = Vec::new();
        for old in replaced {
            let mut remove = deltalake_core::kernel::Remove {
                path: old.path.clone(),
                data_change: true,
                deletion_timestamp: Some(now),
                ..Default::default()
            };
            remove.partition_values = Some(old.partition_values.clone());
            remove.size = Some(old.bytes);
            actions.push(Action::Remove(remove));
        }
        let mut tags = HashMap::from([(SNAPSHOT_TAG.to_owned(), Some(id.clone()))]);
        tags.extend(snapshot.corrects().map(|corrected| (CORRECTS_TAG.to_owned(), Some(corrected.to_string()))));
        actions.push(Action::Add(Add {
            path: file.path,
            partition_values,
            size: file.bytes,
            modification_time: now,
            data_change: true,
            stats: Some(file.stats),
            tags: Some(tags),
            ..Default::default()
        }));
        // A night that was already committed to this table by the same id is refused by the log itself.
        let transaction =
            Transaction::new(format!("gpuledger/{id}"), i64::try_from(replaced.len()).expect("few files are replaced"));
        let properties = CommitProperties::default().with_application_transaction(transaction);
        let operation = DeltaOperation::Write {
            mode: SaveMode::Append,
            partition_by: self.table.is_partitioned.then(|| vec!["snapshot_date".to_owned()]),
            predicate: None,
        };
        let state = self.delta.snapshot().map_err(|error| self.failed(error))?;
        let commit = CommitBuilder::from(properties).with_actions(actions).build(Some(state), self.delta.log_store(), operation);
        commit.await.map_err(|error| self.failed(error))?;
        let update = self.delta.update_state().await;
        update.map_err(|error| self.failed(error))
    }

    fn failed(&self, source: DeltaTableError) -> SnapshotError {
        SnapshotError::Log { table: self.table.name, source: Box::new(source) }
    }
}

/// A file that is written and not yet part of its table.
#[derive(Debug)]
pub struct NewFile {
    /// Path below the table.
    pub path: String,
    /// Size in bytes.
    pub bytes: i64,
    /// Rows and bounds, as Delta's JSON.
    pub stats: String,
}

/// The snapshot a file is of: its name is the id and a hash.
fn snapshot_of(path: &str) -> Option<SnapshotId> {
    let name = path.rsplit('/').next()?;
    name.rsplit_once('-')?.0.parse().ok()
}

fn table_url(folder: &Path) -> Result<Url, SnapshotError> {
    let bad = || SnapshotError::BadPath { path: folder.to_owned() };
    let folder = std::path::absolute(folder).map_err(|_| bad())?;
    Url::from_directory_path(&folder).map_err(|()| bad())
}
