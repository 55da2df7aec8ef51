//! The one key of a provider: from the environment into the request, and nowhere else.
//!
//! Also knows the key again when somebody else repeats it, as it is or written in another way, so that an answer with the
//! key in it is not kept and a text with the key in it is not told.

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE};
use gpuledger_scrapers::manifest::{KeyPlace, Manifest};
use reqwest::RequestBuilder;
use reqwest::header::HeaderValue;
use url::Url;

use super::error::FetchError;

/// Fewest characters of a key: anything shorter stands in pages by chance.
const CHARACTERS_MIN: usize = 8;

/// A provider's key. It has no `Display`, and its `Debug` does not show it.
#[derive(Clone)]
pub struct Key {
    secret: String,
    place: KeyPlace,
    /// Every way of writing it that is looked for, in lower case.
    forms: Vec<String>,
}

impl Key {
    /// The key in the environment; `None` where the provider needs none or there is none.
    ///
    /// # Errors
    /// When what stands there cannot be sent as a key. The error does not show it.
    pub fn of(manifest: &Manifest) -> Result<Option<Self>, FetchError> {
        let (Some(variable), Some(place)) = (manifest.fetch.key_env.as_ref(), manifest.fetch.key_in.clone()) else {
            return Ok(None);
        };
        let bad = |reason| FetchError::BadKey { variable: variable.clone(), reason };
        let secret = match std::env::var(variable) {
            Ok(secret) => secret.trim().to_owned(),
            Err(std::env::VarError::NotPresent) => return Ok(None),
            Err(std::env::VarError::NotUnicode(_)) => return Err(bad("is not text")),
        };
        if secret.is_empty() {
            return Ok(None);
        }
        if secret.chars().any(char::is_control) {
            return Err(bad("has a line break or another control character in it"));
        }
        let is_in_query = matches!(place, KeyPlace::Query(_));
        if !is_in_query && (!secret.is_ascii() || HeaderValue::from_str(&secret).is_err()) {
            return Err(bad("has a character that cannot stand in a header"));
        }
        if secret.chars().count() < CHARACTERS_MIN {
            return Err(bad("is too short to be one"));
        }
        let forms = forms(&secret);
        Ok(Some(Self { secret, place, forms }))
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

    /// Whether bytes hold the key: as it is, in any case of letters, escaped for JSON, a page or an address, or as base64.
    #[must_use]
    pub fn is_in(&self, bytes: &[u8]) -> bool {
        let text = String::from_utf8_lossy(bytes).to_lowercase();
        let is_there = |text: &str| self.forms.iter().any(|form| text.contains(form.as_str()));
        is_there(&text) || (text.contains('%') && is_there(&unescaped(&text)))
    }

    /// A text without the key. Nothing is left of a text that hides the key in a way that cannot be cut out.
    #[must_use]
    pub fn redact(&self, text: &str) -> String {
        let mut rest = text.to_owned();
        for form in &self.forms {
            // Lower case of ASCII keeps every byte in its place.
            while let Some(at) = rest.to_ascii_lowercase().find(form.as_str()) {
                rest.replace_range(at..at + form.len(), "(key)");
            }
        }
        if self.is_in(rest.as_bytes()) { "(a text that repeats the key)".to_owned() } else { rest }
    }
}

fn unescaped(text: &str) -> String {
    // Two rounds, for an address within an address.
    let once = |text: &str| percent_encoding::percent_decode_str(text).decode_utf8_lossy().into_owned();
    once(&once(text)).to_lowercase()
}

/// The ways a server writes a key that it repeats, the longest first.
fn forms(secret: &str) -> Vec<String> {
    let json = serde_json::to_string(secret).expect("a text is JSON");
    let json = json.trim_matches('"').to_owned();
    let html = secret.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;");
    let query: String = url::form_urlencoded::byte_serialize(secret.as_bytes()).collect();
    let hex: String = secret.bytes().map(|byte| format!("{byte:02x}")).collect();
    let mut forms = vec![secret.to_owned(), json.replace('/', "\\/"), json, html.replace('\'', "&#39;"), html, query, hex];
    // Base64 of a text with the key somewhere in it has one of three cores, by where the key begins.
    for before in 0..3 {
        let padded = [&vec![0; before], secret.as_bytes()].concat();
        let (first, end) = ([0, 2, 3][before], padded.len() * 8 / 6);
        forms.extend([STANDARD, URL_SAFE].map(|engine| engine.encode(&padded)[first..end].to_owned()));
    }
    let mut forms: Vec<String> = forms.into_iter().map(|form| form.to_lowercase()).collect();
    forms.sort_by_key(|form| (std::cmp::Reverse(form.len()), form.clone()));
    forms.dedup();
    forms
}

impl std::fmt::Debug for Key {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Key(…)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(secret: &str) -> Key {
        Key { secret: secret.to_owned(), place: KeyPlace::Bearer, forms: forms(secret) }
    }

    #[test]
    fn a_key_is_known_again_however_it_is_written() {
        let key = key("sk-Live/9f+Q&2 'x=");
        for text in [
            "error: sk-Live/9f+Q&2 'x= is not valid",
            "SK-LIVE/9F+Q&2 'X=",
            "key=sk-Live%2F9f%2BQ%262+%27x%3D",
            "key=sk-Live%2f9f%2bQ%262%20'x%3d",
            "key=%73%6b-Live/9f%2BQ%262%20%27x%3D",
            "next=https%3A%2F%2Fa%2F%3Fkey%3Dsk-Live%252F9f%252BQ%25262%2520%2527x%253D",
            r#"{"key":"sk-Live\/9f+Q&2 'x="}"#,
            "<p>sk-Live/9f+Q&amp;2 &#39;x=</p>",
        ] {
            assert!(key.is_in(text.as_bytes()), "{text}");
            let told = key.redact(text);
            assert!(!key.is_in(told.as_bytes()) && told.contains("key"), "{told}");
        }
        for before in ["", "a", "ab", "abc", "user:", "Bearer "] {
            let packed = STANDARD.encode(format!("{before}sk-Live/9f+Q&2 'x= and more"));
            assert!(key.is_in(packed.as_bytes()), "{before}: {packed}");
        }
        assert!(!key.is_in(b"sk-Live/9f+Q"));
        assert_eq!(key.redact("nothing of it %2F"), "nothing of it %2F");
    }

    #[test]
    fn a_key_of_other_letters_than_ascii_is_known_again() {
        let key = key("schlüssel-ÄÖÜ");
        assert!(key.is_in("schlüssel-ÄÖÜ".as_bytes()) && key.is_in(b"schl%C3%BCssel-%C3%84%C3%96%C3%9C"));
        assert!(!key.is_in(key.redact("told: schlüssel-ÄÖÜ").as_bytes()));
    }
}
