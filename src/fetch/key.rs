//! The one key of a provider: from the environment into the request, and nowhere else.

use gpuledger_scrapers::manifest::{KeyPlace, Manifest};
use reqwest::RequestBuilder;
use url::Url;

/// A provider's key. It has no `Display`, and its `Debug` does not show it.
#[derive(Clone)]
pub struct Key {
    secret: String,
    place: KeyPlace,
}

impl Key {
    /// The key in the environment; `None` where the provider needs none or there is none.
    #[must_use]
    pub fn of(manifest: &Manifest) -> Option<Self> {
        let name = manifest.fetch.key_env.as_ref()?;
        let place = manifest.fetch.key_in.clone()?;
        let secret = std::env::var(name).ok().map(|secret| secret.trim().to_owned()).filter(|secret| !secret.is_empty())?;
        Some(Self { secret, place })
    }

    /// The address to ask, for a key that goes into the query.
    pub(super) fn on_url(&self, url: &Url) -> Url {
        let mut url = url.clone();
        if let KeyPlace::Query(name) = &self.place {
            url.query_pairs_mut().append_pair(name, &self.secret);
        }
        url
    }

    /// The request, for a key that goes into a header.
    pub(super) fn on_request(&self, request: RequestBuilder) -> RequestBuilder {
        match &self.place {
            KeyPlace::Query(_) => request,
            KeyPlace::Header(name) => request.header(name, &self.secret),
            KeyPlace::Bearer => request.bearer_auth(&self.secret),
        }
    }

    /// A text without the key, as it is and as it stands in an address.
    #[must_use]
    pub fn redact(&self, text: &str) -> String {
        let encoded: String = url::form_urlencoded::byte_serialize(self.secret.as_bytes()).collect();
        text.replace(&self.secret, "(key)").replace(&encoded, "(key)")
    }
}

impl std::fmt::Debug for Key {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Key(…)")
    }
}
