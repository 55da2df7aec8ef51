//! Datasets on an object store: `s3://BUCKET/PREFIX` in the place of a folder.
//!
//! The program works on a folder, the *working copy*. What it writes there whole is put into the store first, in the same
//! order; what it reads and the copy has not is fetched then. So the store sees what a disk would see, and of two writers the
//! store decides by the entries of the Delta log, each of which is put only where nothing stands. In: the address that a
//! command line or a schedule names, and credentials from the environment. Out: the folder to work in. Never changes or
//! removes a published file, and never shows a secret.

#[cfg(feature = "cloud")]
mod connect;
mod copy;
mod pull;
mod wait;

use std::path::{Path, PathBuf};
use std::sync::{Arc, PoisonError, RwLock};

use url::Url;

use crate::archive::ArchiveError;
use crate::failed::Failed;
pub use copy::Remote;

/// Where working copies are, before the usual places are looked at.
const CACHE: &str = "GPULEDGER_CACHE";

/// The schemes of stores, and how to say what they are.
const SCHEMES: [&str; 3] = ["s3", "gs", "az"];

/// Why an address is of no use as a dataset. None of them repeats an address in which a password may stand.
#[derive(Debug, Clone, thiserror::Error)]
pub enum AddressError {
    /// The program was built without stores.
    #[error("use {url} as the dataset: this program is built without object stores, which are its feature `cloud`")]
    NotBuiltIn {
        /// The address.
        url: String,
    },
    /// No store has such an address.
    #[error("use an address that begins with `{scheme}:` as the dataset: {reason}")]
    NoStore {
        /// What it begins with.
        scheme: String,
        /// Why not.
        reason: &'static str,
    },
    /// There is no folder for working copies.
    #[error("find a folder for the working copy of {url}: neither {CACHE} nor XDG_CACHE_HOME nor HOME names one")]
    NoCache {
        /// The address.
        url: String,
    },
    /// The environment does not lead to the store.
    #[error("reach {url}: {reason}")]
    NoConnection {
        /// The address.
        url: String,
        /// What is missing or wrong, in words without values.
        reason: String,
    },
    /// A working copy is named as if it were a dataset.
    #[error("use {} as the dataset: it is the working copy of {url}", folder.display())]
    IsCopy {
        /// The folder.
        folder: PathBuf,
        /// Whose copy it is.
        url: String,
    },
}

impl AddressError {
    /// What to do about it.
    #[must_use]
    pub fn help(&self) -> String {
        match self {
            Self::NotBuiltIn { .. } => "build it with them: `cargo build --release --features cloud`".to_owned(),
            Self::NoStore { .. } => {
                "name a folder, or s3://BUCKET/PREFIX; keys come from AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY".to_owned()
            }
            Self::NoCache { .. } => format!("name a folder in {CACHE}"),
            Self::NoConnection { .. } => {
                "look at AWS_REGION, AWS_ENDPOINT_URL, and AWS_ALLOW_HTTP=true for a server without TLS".to_owned()
            }
            Self::IsCopy { url, .. } => format!("name the dataset itself: --output {url}"),
        }
    }
}

impl From<AddressError> for Failed {
    fn from(error: AddressError) -> Self {
        Self::new(crate::exit::Exit::Usage, "", &error).with_help(&error.help())
    }
}

/// The stores that this process has been told of.
static OPEN: RwLock<Vec<Arc<Remote>>> = RwLock::new(Vec::new());

/// The scheme of what is meant as an address; `None` for what is a folder.
fn scheme(text: &str) -> Option<String> {
    let (scheme, rest) = text.split_once(':')?;
    let is_scheme = scheme.len() > 1 && scheme.chars().all(|letter| letter.is_ascii_alphanumeric() || "+-.".contains(letter));
    let scheme = scheme.to_ascii_lowercase();
    let is_meant = rest.starts_with('/') || SCHEMES.contains(&scheme.as_str());
    (is_scheme && is_meant).then_some(scheme)
}

/// The folder to work in for what somebody named as a dataset: itself, or the working copy of an address, which is not
/// looked at yet.
///
/// # Errors
/// When it is an address that this program cannot use, or a working copy.
pub fn folder_of(named: &Path) -> Result<PathBuf, AddressError> {
    let text = named.to_string_lossy();
    let Some(scheme) = scheme(&text) else {
        // What is written into a copy past its store would stand in nobody's way to be lost.
        return match copy::url_of(named).filter(|_| at(named).is_none()) {
            Some(url) => Err(AddressError::IsCopy { folder: named.to_owned(), url }),
            None => Ok(named.to_owned()),
        };
    };
    let url = checked(&text, &scheme)?;
    open(&url)
}

/// The one way of writing an address.
fn checked(text: &str, scheme: &str) -> Result<String, AddressError> {
    let no_store = |reason| AddressError::NoStore { scheme: scheme.to_owned(), reason };
    if !SCHEMES.contains(&scheme) {
        return Err(no_store("there are s3://, gs:// and az://, and folders"));
    }
    let url = Url::parse(text).map_err(|_| no_store("it does not read as SCHEME://BUCKET/PREFIX"))?;
    if !url.username().is_empty() || url.password().is_some() || url.query().is_some() || url.fragment().is_some() {
        return Err(no_store("it may have a bucket and a prefix alone, and no keys"));
    }
    let bucket = url.host_str().filter(|bucket| !bucket.is_empty() && url.port().is_none());
    let bucket = bucket.ok_or_else(|| no_store("it names no bucket: SCHEME://BUCKET/PREFIX"))?;
    let prefix = url.path().trim_matches('/');
    let is_plain = |letter: char| letter.is_ascii_alphanumeric() || "-_./=".contains(letter);
    if !prefix.chars().all(is_plain) || prefix.contains("//") || text.contains("/.") {
        return Err(no_store("a prefix may have letters, digits and - _ . = / alone"));
    }
    Ok(format!("{scheme}://{bucket}/{prefix}").trim_end_matches('/').to_owned())
}

#[cfg(not(feature = "cloud"))]
fn open(url: &str) -> Result<PathBuf, AddressError> {
    Err(AddressError::NotBuiltIn { url: url.to_owned() })
}

#[cfg(feature = "cloud")]
fn open(url: &str) -> Result<PathBuf, AddressError> {
    let connection = connect::connect(url)?;
    // One bucket name on two servers is two buckets.
    let name = gpuledger_scrapers::sha256(format!("{url}\n{}", connection.server).as_bytes());
    let folder = cache(url)?.join(format!("{}-{}", url.rsplit('/').next().unwrap_or("dataset"), &name[..16]));
    Ok(register(Remote::new(connection.store, url, folder)))
}

/// Has everything below a store's working copy go by the store; the working copy.
pub fn register(remote: Remote) -> PathBuf {
    let folder = remote.folder().to_owned();
    let mut open = OPEN.write().unwrap_or_else(PoisonError::into_inner);
    if !open.iter().any(|known| known.folder() == folder) {
        open.push(Arc::new(remote));
    }
    folder
}

#[cfg(feature = "cloud")]
fn cache(url: &str) -> Result<PathBuf, AddressError> {
    let named = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    let folder = named(CACHE)
        .or_else(|| Some(named("XDG_CACHE_HOME").filter(|folder| folder.is_absolute())?.join("gpuledger")))
        .or_else(|| Some(named("HOME")?.join(".cache/gpuledger")));
    let folder = folder.and_then(|folder| std::path::absolute(folder).ok());
    folder.ok_or_else(|| AddressError::NoCache { url: url.to_owned() })
}

/// The store whose working copy a path is in; `None` for a dataset on a disk.
#[must_use]
pub fn at(path: &Path) -> Option<Arc<Remote>> {
    let open = OPEN.read().unwrap_or_else(PoisonError::into_inner);
    open.iter().find(|remote| path.starts_with(remote.folder())).cloned()
}

/// Makes a working copy and brings its small files up to date; does nothing for a dataset on a disk.
///
/// # Errors
/// When the store cannot be read, or the disk refuses.
pub fn prepare(output: &Path) -> Result<(), ArchiveError> {
    at(output).map_or(Ok(()), |remote| remote.prepare())
}

/// Fetches a file that the working copy should have and has not. What the store has not either stays away.
///
/// # Errors
/// When the store cannot be read.
pub fn have(path: &Path) -> Result<(), ArchiveError> {
    at(path).map_or(Ok(()), |remote| remote.have(&[path]))
}

/// How the dataset of a folder is named to people: by the address that they gave.
#[must_use]
pub fn shown(output: &Path) -> String {
    at(output).map_or_else(|| output.display().to_string(), |remote| remote.url().to_owned())
}

#[cfg(test)]
mod tests {
    use deltalake_core::logstore::object_store::memory::InMemory;

    use super::*;
    use crate::archive::{drafts, write_new, write_whole};
    use crate::offer::OFFERS;

    #[test]
    fn what_one_copy_writes_another_reads_and_an_entry_is_put_once() {
        let (store, folder) = (Arc::new(InMemory::new()), tempfile::tempdir().expect("there is room for a folder"));
        let copies = ["one", "two"].map(|copy| register(Remote::new(store.clone(), "s3://b/p", folder.path().join(copy))));
        let [one, two] = copies.map(|copy| {
            prepare(&copy).expect("the copy is made");
            copy
        });
        let entry = |copy: &Path, version: u64| copy.join(format!("offers/_delta_log/{version:020}.json"));
        for version in [0, 1, 3] {
            write_new(&drafts(&one), &entry(&one, version), format!("{version}").as_bytes()).expect("nothing stands there");
        }
        let second = write_new(&drafts(&two), &entry(&two, 1), b"another");
        let is_taken = |error: ArchiveError| matches!(error, ArchiveError::Io { source, .. } if source.kind() == std::io::ErrorKind::AlreadyExists);
        assert!(second.is_err_and(is_taken) && !entry(&two, 1).exists());
        at(&two).expect("it is registered").pull_log(&OFFERS).expect("the store reads");
        // What comes after a gap is of no use.
        assert_eq!([0, 1, 3].map(|version| entry(&two, version).exists()), [true, true, false]);
        let page = |copy: &Path| copy.join("raw/objects/ab/cd.zst");
        write_whole(&drafts(&one), &page(&one), b"page").expect("it is put");
        // A file whose bytes never change is never put over.
        write_whole(&drafts(&two), &page(&two), b"damaged").expect("it is there");
        std::fs::remove_file(page(&two)).expect("it was written");
        have(&page(&two)).expect("the store reads");
        assert_eq!(std::fs::read(page(&two)).expect("it is fetched"), b"page");
        for text in ["first", "second"] {
            write_whole(&drafts(&one), &one.join("runs/a.json"), text.as_bytes()).expect("it is put");
            prepare(&two).expect("the store reads");
            assert_eq!(std::fs::read_to_string(two.join("runs/a.json")).expect("it is brought"), text);
        }
        // A store that was emptied and filled again is another dataset.
        let other = Arc::new(InMemory::new());
        let third = register(Remote::new(other, "s3://b/p", folder.path().join("three")));
        std::fs::create_dir_all(entry(&third, 0).parent().expect("it stands in a folder")).expect("there is room");
        std::fs::write(entry(&third, 0), b"0").expect("there is room");
        let told = at(&third)
            .expect("it is registered")
            .pull_log(&OFFERS)
            .map_err(|error| Failed::new(crate::exit::Exit::Refused, "", &error));
        assert!(told.is_err_and(|failed| failed.to_string().contains("which is a copy")));
    }

    #[test]
    fn a_path_is_a_folder_unless_it_begins_like_an_address() {
        for folder in ["output", "./s3", "/srv/s3:x/output", "C:/output", "a:b", "", "s3/output"] {
            assert_eq!(scheme(folder), None, "{folder}");
        }
        for address in ["s3://b/p", "S3://b/p", "s3:/b", "s3:b", "gs://b", "az://b", "http://b/p", "file:///b"] {
            assert!(scheme(address).is_some(), "{address}");
        }
    }

    #[test]
    fn an_address_is_written_in_one_way_and_nothing_but_bucket_and_prefix_may_stand_in_it() {
        let of = |text: &str| checked(text, &scheme(text).expect("it begins like an address"));
        for (text, written) in [("s3://b/p/q/", "s3://b/p/q"), ("S3://b", "s3://b"), ("az://b/p", "az://b/p")] {
            assert_eq!(of(text).expect("it is an address"), written);
        }
        for text in ["s3:b", "s3://", "s3:///p", "s3://b:9/p", "s3://b/p?versionId=1", "s3://b/../p", "s3://b/a b", "http://b/p"]
        {
            assert!(of(text).is_err(), "{text}");
        }
        let told = Failed::from(of("s3://AKIAEXAMPLE:geheim@b/p").expect_err("keys stand in it")).to_string();
        assert!(!told.contains("geheim") && !told.contains("AKIAEXAMPLE"), "{told}");
    }

    #[cfg(not(feature = "cloud"))]
    #[test]
    fn without_the_feature_an_address_is_refused_with_its_name() {
        let told = folder_of(Path::new("s3://b/p")).expect_err("it is not built in").to_string();
        assert!(told.contains("s3://b/p") && told.contains("feature `cloud`"), "{told}");
    }
}
