//! From an address and the environment to a store. No request is made here.

use std::sync::Arc;
use std::time::Duration;

use deltalake_core::logstore::object_store::aws::{AmazonS3Builder, AmazonS3ConfigKey};
use deltalake_core::logstore::object_store::azure::MicrosoftAzureBuilder;
use deltalake_core::logstore::object_store::gcp::GoogleCloudStorageBuilder;
use deltalake_core::logstore::object_store::path::Path;
use deltalake_core::logstore::object_store::prefix::PrefixStore;
use deltalake_core::logstore::object_store::{ClientConfigKey, ObjectStore, Result, RetryConfig};

use super::AddressError;

/// How often a request is tried again that the server could not serve, and for how long at most.
const RETRIES_MAX: usize = 8;
const RETRY: Duration = Duration::from_secs(90);

/// How long one request may take: a bulk file on a slow line.
const REQUEST: &str = "300 seconds";

/// A store below its prefix.
pub(super) struct Connection {
    pub store: Arc<dyn ObjectStore>,
    /// Which server it is on, where that is not the usual one.
    pub server: String,
}

/// Makes the connection of an address that was checked.
///
/// # Errors
/// When the environment lacks something that the store needs.
pub(super) fn connect(url: &str) -> std::result::Result<Connection, AddressError> {
    let no_connection = |reason: &str| AddressError::NoConnection { url: url.to_owned(), reason: reason.to_owned() };
    let environment = |name: &str| std::env::var(name).ok().filter(|value| !value.is_empty());
    let server = ["AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL", "AWS_ENDPOINT"].into_iter().find_map(environment);
    let server = server.filter(|_| url.starts_with("s3:")).unwrap_or_default();
    let may_be_plain = environment("AWS_ALLOW_HTTP").is_some_and(|value| value.eq_ignore_ascii_case("true") || value == "1");
    if server.starts_with("http:") && !may_be_plain {
        return Err(no_connection("AWS_ENDPOINT_URL is an http:// address, which is used only with AWS_ALLOW_HTTP=true"));
    }
    let (_, rest) = url.split_once("://").expect("a checked address has a scheme");
    let prefix = rest.split_once('/').map_or("", |(_, prefix)| prefix);
    let store = build(url).map_err(|error| no_connection(&super::copy::told(&error)))?;
    Ok(Connection { store: Arc::new(PrefixStore::new(store, Path::from(prefix))), server })
}

fn build(url: &str) -> Result<Arc<dyn ObjectStore>> {
    let retry = RetryConfig { max_retries: RETRIES_MAX, retry_timeout: RETRY, ..RetryConfig::default() };
    Ok(if url.starts_with("s3:") {
        // An entry of the log is put only where nothing stands, which is how this store does so unless it is told otherwise.
        let s3 = AmazonS3Builder::from_env().with_config(AmazonS3ConfigKey::Client(ClientConfigKey::Timeout), REQUEST);
        Arc::new(s3.with_url(url).with_retry(retry).build()?)
    } else if url.starts_with("gs:") {
        Arc::new(GoogleCloudStorageBuilder::from_env().with_url(url).with_retry(retry).build()?)
    } else {
        Arc::new(MicrosoftAzureBuilder::from_env().with_url(url).with_retry(retry).build()?)
    })
}
