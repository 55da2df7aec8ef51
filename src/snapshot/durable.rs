//! The disk as the Delta log sees it: what it writes is on the disk before anybody sees it.
//!
//! The library's own store links a commit into place before its bytes are on the disk; after a power cut the log could
//! hold an empty entry that no reader gets past. Reading and listing are the library's.

use std::fmt;
use std::ops::Range;
use std::path::{Path as FilePath, PathBuf};

use async_trait::async_trait;
use deltalake_core::logstore::object_store::local::LocalFileSystem;
use deltalake_core::logstore::object_store::path::Path;
use deltalake_core::logstore::object_store::{
    CopyOptions, Error, GetOptions, GetResult, ListResult, MultipartUpload, ObjectMeta, ObjectStore, PutMode,
    PutMultipartOptions, PutOptions, PutPayload, PutResult, Result, UploadPart,
};
use futures::stream::BoxStream;

use crate::archive::{ArchiveError, drafts, write_new, write_whole};

/// The local disk, with drafts in the dataset's folder for them.
#[derive(Debug, Clone)]
pub struct DurableDisk {
    files: std::sync::Arc<LocalFileSystem>,
    drafts: PathBuf,
}

impl DurableDisk {
    /// The disk for a dataset's logs.
    #[must_use]
    pub fn of(output: &FilePath) -> Self {
        Self { files: std::sync::Arc::new(LocalFileSystem::new()), drafts: drafts(output) }
    }

    async fn put(&self, location: &Path, payload: PutPayload, mode: PutMode) -> Result<PutResult> {
        let path = self.files.path_to_filesystem(location)?;
        let bytes: Vec<u8> = payload.iter().flat_map(|chunk| chunk.iter().copied()).collect();
        let written = match mode {
            PutMode::Create => write_new(&self.drafts, &path, &bytes),
            PutMode::Overwrite => write_whole(&self.drafts, &path, &bytes),
            PutMode::Update(_) => {
                return Err(Error::NotImplemented { operation: "conditional update".to_owned(), implementer: self.to_string() });
            }
        };
        match written {
            Ok(()) => Ok(PutResult { e_tag: None, version: None }),
            Err(ArchiveError::Io { source, .. }) if source.kind() == std::io::ErrorKind::AlreadyExists => {
                Err(Error::AlreadyExists { path: path.display().to_string(), source: Box::new(source) })
            }
            Err(error) => Err(Error::Generic { store: "disk", source: Box::new(error) }),
        }
    }
}

impl fmt::Display for DurableDisk {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the local disk")
    }
}

#[async_trait]
impl ObjectStore for DurableDisk {
    async fn put_opts(&self, location: &Path, payload: PutPayload, opts: PutOptions) -> Result<PutResult> {
        self.put(location, payload, opts.mode).await
    }

    async fn put_multipart_opts(&self, location: &Path, _: PutMultipartOptions) -> Result<Box<dyn MultipartUpload>> {
        Ok(Box::new(Upload { disk: self.clone(), location: location.clone(), parts: Vec::new() }))
    }

    async fn get_opts(&self, location: &Path, options: GetOptions) -> Result<GetResult> {
        self.files.get_opts(location, options).await
    }

    async fn get_ranges(&self, location: &Path, ranges: &[Range<u64>]) -> Result<Vec<bytes::Bytes>> {
        self.files.get_ranges(location, ranges).await
    }

    fn delete_stream(&self, locations: BoxStream<'static, Result<Path>>) -> BoxStream<'static, Result<Path>> {
        self.files.delete_stream(locations)
    }

    fn list(&self, prefix: Option<&Path>) -> BoxStream<'static, Result<ObjectMeta>> {
        self.files.list(prefix)
    }

    fn list_with_offset(&self, prefix: Option<&Path>, offset: &Path) -> BoxStream<'static, Result<ObjectMeta>> {
        self.files.list_with_offset(prefix, offset)
    }

    async fn list_with_delimiter(&self, prefix: Option<&Path>) -> Result<ListResult> {
        self.files.list_with_delimiter(prefix).await
    }

    async fn copy_opts(&self, from: &Path, to: &Path, options: CopyOptions) -> Result<()> {
        self.files.copy_opts(from, to, options).await
    }
}

/// A file in parts, such as a large checkpoint: held until it is whole, since half of one helps nobody.
#[derive(Debug)]
struct Upload {
    disk: DurableDisk,
    location: Path,
    parts: Vec<PutPayload>,
}

#[async_trait]
impl MultipartUpload for Upload {
    fn put_part(&mut self, data: PutPayload) -> UploadPart {
        self.parts.push(data);
        Box::pin(std::future::ready(Ok(())))
    }

    async fn complete(&mut self) -> Result<PutResult> {
        let whole: PutPayload = std::mem::take(&mut self.parts).into_iter().flatten().collect();
        self.disk.put(&self.location, whole, PutMode::Overwrite).await
    }

    async fn abort(&mut self) -> Result<()> {
        self.parts.clear();
        Ok(())
    }
}
