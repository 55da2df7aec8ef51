//! The Delta log of one table: create, list files, commit.
//!
//! A commit is made for one version of the log and refused when that version is taken, never moved behind what another run
//! put there: who is overtaken looks again.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use chrono::{NaiveDate, Utc};
use deltalake_core::kernel::transaction::{CommitBuilder, CommitProperties};
use deltalake_core::kernel::{Action, Add, MetadataExt as _, Remove, StructType, Transaction};
use deltalake_core::logstore::object_store::ObjectStore;
use deltalake_core::protocol::{DeltaOperation, SaveMode};
use deltalake_core::{DeltaTable, DeltaTableBuilder, DeltaTableError, checkpoints};
use url::Url;

use crate::archive::ArchiveError;
use crate::night::SnapshotId;
use crate::offer::{SCHEMA_VERSION, Table};
use crate::remote;
use crate::snapshot::durable::DurableDisk;
use crate::snapshot::{SnapshotError, schema};

/// Key of an `Add` action's tag that names the snapshot whose rows the file holds.
const SNAPSHOT_TAG: &str = "gpuledger.snapshot_id";

/// Key of an `Add` action's tag that names the version of the log that added the file.
const VERSION_TAG: &str = "gpuledger.version";

/// Key of the tag that names the run which added the file.
const RUN_TAG: &str = "gpuledger.run";

/// Key of the tag that names the snapshot which the file's own corrects.
const CORRECTS_TAG: &str = "gpuledger.corrects";

/// Key of the tag of a file whose rows are all from histories that other people keep.
const IMPORT_TAG: &str = "gpuledger.is_import";

/// Key of the table's property that says which version of the columns it has.
pub const SCHEMA_VERSION_KEY: &str = "gpuledger.schema_version";

/// So many entries of the log are read one by one before they are put together in a checkpoint.
const CHECKPOINT_EVERY: u64 = 20;

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
    /// Version of the log that added it; `None` where an earlier program did not write it down.
    pub version: Option<u64>,
    /// The run that added it; `None` where an earlier program did not write it down.
    pub run: Option<String>,
    /// When it was committed, in milliseconds since 1970, by the clock of the machine that did.
    pub committed_at_ms: i64,
    /// First and last day of the exchange rates in it, where the log says so.
    pub rate_days: Option<(NaiveDate, NaiveDate)>,
    /// Whether all of its rows are from histories that other people keep.
    pub is_import: bool,
    /// Size in bytes.
    pub bytes: i64,
    /// Its partition, as the log has it.
    partition_values: HashMap<String, Option<String>>,
}

#[cfg(test)]
impl LoggedFile {
    /// A file that is not there, for tests that never open it.
    pub(crate) fn without_file(snapshot: SnapshotId) -> Self {
        Self {
            path: String::new(),
            file: PathBuf::new(),
            rows: None,
            snapshot: Some(snapshot),
            version: None,
            run: None,
            committed_at_ms: 0,
            rate_days: None,
            is_import: false,
            bytes: 0,
            partition_values: HashMap::new(),
        }
    }
}

/// How a commit ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Committed {
    /// It is in the log.
    Done,
    /// Another run put something into the log first, and nothing was committed: look again.
    Overtaken,
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
        if let Some(remote) = remote::at(output) {
            remote.pull_log(table)?;
        }
        let folder = output.join(table.name);
        // A log folder without an entry is what a crash while creating leaves, and what another run has that is creating it
        // now. Looked at before it is loaded: an entry that comes in between would make an empty log look like one that lost
        // its beginning, over which no new one must be begun.
        if !folder.join("_delta_log").is_dir() || !has_entries(&folder) {
            return Ok(None);
        }
        let mut delta = unloaded(output, table)?;
        delta.load().await.map_err(|error| failed(table, error))?;
        Ok(Some(Self { table, folder, delta }))
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
        std::fs::create_dir_all(&folder).map_err(|source| ArchiveError::Io { path: folder.clone(), source })?;
        let properties = [
            // Without these a log forgets its old versions after a month, and a published version must stay readable.
            ("delta.enableExpiredLogCleanup", "false".to_owned()),
            ("delta.logRetentionDuration", "interval 36500 days".to_owned()),
            (SCHEMA_VERSION_KEY, SCHEMA_VERSION.to_string()),
        ];
        let mut create = unloaded(output, table)?
            .create()
            .with_save_mode(SaveMode::Ignore)
            // Of two that create it at once the library would commit the second one's table over the first one's.
            .with_commit_properties(CommitProperties::default().with_max_retries(0))
            .with_raise_if_key_not_exists(false)
            .with_configuration(properties.map(|(key, value)| (key, Some(value))))
            .with_table_name(table.name)
            .with_comment(table.row)
            .with_columns(schema::delta_fields(table));
        if table.is_partitioned {
            create = create.with_partition_columns(["snapshot_date"]);
        }
        match create.await {
            Ok(delta) => Ok(Self { table, folder, delta }),
            // Another run may have created it at the same moment.
            Err(error) => Self::open(output, table).await?.ok_or_else(|| failed(table, error)),
        }
    }

    /// The table.
    #[must_use]
    pub const fn table(&self) -> &'static Table {
        self.table
    }

    /// Where the table is.
    #[must_use]
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Newest version of the table.
    #[must_use]
    pub fn version(&self) -> Option<u64> {
        self.delta.version()
    }

    /// Reads what was committed meanwhile.
    ///
    /// # Errors
    /// When the log cannot be read.
    pub async fn refresh(&mut self) -> Result<(), SnapshotError> {
        if let Some(remote) = remote::at(&self.folder) {
            remote.pull_log(self.table)?;
        }
        self.delta.update_state().await.map_err(|error| failed(self.table, error))
    }

    /// The table's own id, which no other table has; `None` where the log does not say it.
    ///
    /// # Errors
    /// When the log is damaged.
    pub fn id(&self) -> Result<Option<String>, SnapshotError> {
        let state = self.delta.snapshot().map_err(|error| failed(self.table, error))?;
        // The library shows it in no other way.
        let metadata = serde_json::to_value(state.metadata()).unwrap_or_default();
        Ok(metadata["id"].as_str().map(str::to_owned))
    }

    /// The columns that the log says the table has.
    ///
    /// # Errors
    /// When the log is damaged.
    pub fn columns(&self) -> Result<Arc<StructType>, SnapshotError> {
        let state = self.delta.snapshot().map_err(|error| failed(self.table, error))?;
        Ok(state.schema())
    }

    /// Version of the columns that the table says it has; `None` where an earlier program did not write it down.
    ///
    /// # Errors
    /// When the log is damaged.
    pub fn schema_version(&self) -> Result<Option<u32>, SnapshotError> {
        let state = self.delta.snapshot().map_err(|error| failed(self.table, error))?;
        Ok(state.metadata().configuration().get(SCHEMA_VERSION_KEY).and_then(|version| version.parse().ok()))
    }

    /// The files of the table, oldest snapshot first.
    ///
    /// # Errors
    /// When the log is damaged.
    pub fn files(&self) -> Result<Vec<LoggedFile>, SnapshotError> {
        let state = self.delta.snapshot().map_err(|error| failed(self.table, error))?;
        let has_rate_days = self.table.bounds.contains(&"rate_date");
        let mut files: Vec<LoggedFile> = state
            .log_data()
            .iter()
            .map(|view| {
                let path = view.path().into_owned();
                #[expect(deprecated, reason = "the library shows a file's tags in no other way")]
                let tags = view.add_action().tags.unwrap_or_default();
                LoggedFile {
                    file: self.folder.join(&path),
                    rows: view.num_records(),
                    snapshot: snapshot_of(&path),
                    version: tags.get(VERSION_TAG).and_then(|version| version.as_ref()?.parse().ok()),
                    run: tags.get(RUN_TAG).cloned().flatten(),
                    is_import: tags.contains_key(IMPORT_TAG),
                    committed_at_ms: view.modification_time(),
                    rate_days: if has_rate_days { view.stats().and_then(|stats| rate_days(&stats)) } else { None },
                    bytes: view.size(),
                    partition_values: view.partition_values_map(),
                    path,
                }
            })
            .collect();
        files.sort_by(|a, b| (a.snapshot, &a.path).cmp(&(b.snapshot, &b.path)));
        Ok(files)
    }

    /// Commits one new file of a run, and takes back the files it replaces, at one moment.
    ///
    /// # Errors
    /// When the log cannot be written. What is in the log after all is no error.
    pub async fn commit(
        &mut self,
        run: &str,
        snapshot: SnapshotId,
        file: &NewFile,
        replaced: &[LoggedFile],
    ) -> Result<Committed, SnapshotError> {
        let version = self.version().map_or(0, |version| version + 1);
        let date = snapshot.date().to_string();
        let partition_values =
            if self.table.is_partitioned { HashMap::from([("snapshot_date".to_owned(), Some(date))]) } else { HashMap::new() };
        let mut tags = vec![(SNAPSHOT_TAG, snapshot.to_string()), (VERSION_TAG, version.to_string()), (RUN_TAG, run.to_owned())];
        tags.extend(snapshot.corrects().map(|corrected| (CORRECTS_TAG, corrected.to_string())));
        tags.extend(file.is_import.then(|| (IMPORT_TAG, true.to_string())));
        let mut actions: Vec<Action> = replaced.iter().map(removal).collect();
        actions.push(Action::Add(Add {
            path: file.path.clone(),
            partition_values,
            size: file.bytes,
            modification_time: Utc::now().timestamp_millis(),
            data_change: true,
            stats: Some(file.stats.clone()),
            tags: Some(tags.into_iter().map(|(key, value)| (key.to_owned(), Some(value))).collect()),
            ..Default::default()
        }));
        actions.push(Action::Txn(Transaction::new(format!("gpuledger/{snapshot}"), 0)));
        let operation = DeltaOperation::Write {
            mode: SaveMode::Append,
            partition_by: self.table.is_partitioned.then(|| vec!["snapshot_date".to_owned()]),
            predicate: None,
        };
        let path = file.path.clone();
        // The same path of another run is not this one's doing, although the rows are equal.
        let is_own = |file: &LoggedFile| file.path == path && file.run.as_deref() == Some(run);
        let ended = self.commit_actions(actions, operation, |log| Ok(log.files()?.iter().any(is_own))).await?;
        if ended == Committed::Done {
            self.checkpoint_if_due().await;
        }
        Ok(ended)
    }

    /// Takes files out of the table that belong to no published night.
    ///
    /// # Errors
    /// When the log cannot be written.
    pub async fn take_back(&mut self, files: &[LoggedFile]) -> Result<Committed, SnapshotError> {
        let actions = files.iter().map(removal).collect();
        let operation = DeltaOperation::Delete { predicate: None };
        let paths: Vec<String> = files.iter().map(|file| file.path.clone()).collect();
        let is_there = |log: &Self| Ok(log.files()?.iter().all(|file| !paths.contains(&file.path)));
        self.commit_actions(actions, operation, is_there).await
    }

    /// Adds the columns that this program has and the table has not.
    ///
    /// # Errors
    /// When the log cannot be written.
    pub async fn add_columns(&mut self) -> Result<Committed, SnapshotError> {
        let table = self.table;
        let state = self.delta.snapshot().map_err(|error| failed(table, error))?;
        let before = state.schema();
        let new: Vec<_> =
            schema::delta_fields(self.table).into_iter().filter(|field| before.field(field.name()).is_none()).collect();
        let fields = before.fields().cloned().chain(new.iter().cloned());
        let columns = StructType::try_new(fields).map_err(|error| failed(table, error.into()))?;
        let metadata = state.metadata().clone().with_schema(&columns).map_err(|error| failed(table, error.into()))?;
        let version = SCHEMA_VERSION.to_string();
        let metadata =
            metadata.add_config_key(SCHEMA_VERSION_KEY.to_owned(), version).map_err(|error| failed(table, error.into()))?;
        let operation = DeltaOperation::AddColumn { fields: new };
        let is_there = |log: &Self| Ok(schema::missing(table, log.columns()?.as_ref()).is_empty());
        self.commit_actions(vec![metadata.into()], operation, is_there).await
    }

    /// One entry at the next version. On any error the log itself is asked whether the entry is there, for an error may have
    /// come after it.
    async fn commit_actions(
        &mut self,
        actions: Vec<Action>,
        operation: DeltaOperation,
        is_there: impl Fn(&Self) -> Result<bool, SnapshotError>,
    ) -> Result<Committed, SnapshotError> {
        let before = self.version();
        // Checkpoints are made apart, so that one that cannot be written fails no commit.
        let properties =
            CommitProperties::default().with_max_retries(0).with_create_checkpoint(false).with_cleanup_expired_logs(Some(false));
        let state = self.delta.snapshot().map_err(|error| failed(self.table, error))?;
        let commit = CommitBuilder::from(properties).with_actions(actions).build(Some(state), self.delta.log_store(), operation);
        let error = commit.await.err();
        self.refresh().await?;
        match error {
            None => Ok(Committed::Done),
            Some(_) if self.version() > before => Ok(if is_there(self)? { Committed::Done } else { Committed::Overtaken }),
            Some(error) => Err(failed(self.table, error)),
        }
    }

    /// Puts the log together from time to time, so that opening it costs the same every night. It is only for speed: one
    /// that cannot be written is tried again by the next commit.
    async fn checkpoint_if_due(&self) {
        let last = std::fs::read_to_string(self.folder.join("_delta_log/_last_checkpoint")).ok();
        let last = last.and_then(|text| serde_json::from_str::<serde_json::Value>(&text).ok()?.get("version")?.as_u64());
        if self.version().is_some_and(|version| version >= last.unwrap_or(0) + CHECKPOINT_EVERY) {
            let _ = checkpoints::create_checkpoint(&self.delta, None).await;
        }
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
    /// Whether all of its rows are from histories that other people keep.
    pub is_import: bool,
}

fn removal(file: &LoggedFile) -> Action {
    Action::Remove(Remove {
        path: file.path.clone(),
        data_change: true,
        deletion_timestamp: Some(Utc::now().timestamp_millis()),
        partition_values: Some(file.partition_values.clone()),
        size: Some(file.bytes),
        ..Default::default()
    })
}

/// The first and last day of rates in a file, from what its log entry says of it.
fn rate_days(stats: &str) -> Option<(NaiveDate, NaiveDate)> {
    let stats: serde_json::Value = serde_json::from_str(stats).ok()?;
    let day = |bound: &str| stats.get(bound)?.get("rate_date")?.as_str()?.parse().ok();
    Some((day("minValues")?, day("maxValues")?))
}

/// The snapshot a file is of: its name is the id and a hash.
fn snapshot_of(path: &str) -> Option<SnapshotId> {
    let name = path.rsplit('/').next()?;
    name.rsplit_once('-')?.0.parse().ok()
}

fn failed(table: &Table, source: DeltaTableError) -> SnapshotError {
    SnapshotError::Log { table: table.name, source: Box::new(source) }
}

/// Whether a log folder holds anything that a run wrote as an entry.
fn has_entries(folder: &Path) -> bool {
    let Ok(entries) = std::fs::read_dir(folder.join("_delta_log")) else { return true };
    let is_entry = |name: &str| name.starts_with(|digit: char| digit.is_ascii_digit()) && !name.contains('#');
    entries.filter_map(Result::ok).any(|entry| is_entry(&entry.file_name().to_string_lossy()))
}

fn unloaded(output: &Path, table: &'static Table) -> Result<DeltaTable, SnapshotError> {
    let url = table_url(&output.join(table.name))?;
    let disk: Arc<dyn ObjectStore> = Arc::new(DurableDisk::of(output));
    let builder = DeltaTableBuilder::from_url(url.clone()).map_err(|error| failed(table, error))?;
    builder.with_storage_backend(disk, url).build().map_err(|error| failed(table, error))
}

fn table_url(folder: &Path) -> Result<Url, SnapshotError> {
    let bad = || SnapshotError::BadPath { path: folder.to_owned() };
    let folder = std::path::absolute(folder).map_err(|_| bad())?;
    Url::from_directory_path(&folder).map_err(|()| bad())
}
