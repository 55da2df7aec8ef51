//! The catalog's pages: the list of SKUs, and the token that leads to the next page.
//!
//! In: pages. Out: their SKUs, and the page that follows. Never takes a list with a page missing for a whole one, and never
//! puts a key into an address.

use std::collections::HashMap;

use super::cut;
use crate::contract::{Page, PageRequest, ScrapeError};
use crate::json::{self, Object, Value};

const TOKEN: &str = "pageToken=";

/// What a page holds.
pub(super) struct Envelope<'a> {
    /// The SKUs' characters, in the order of the page.
    pub skus: Vec<&'a str>,
    /// Names of the fields beside the list.
    pub names: Vec<String>,
    /// Leads to the next page; `None` on the last one.
    token: Option<String>,
}

impl<'a> Envelope<'a> {
    /// Reads the envelope and leaves the SKUs alone.
    pub fn read(page: &'a Page) -> Result<Self, ScrapeError> {
        // A page as it should be is cut into its SKUs in one go; the slower way finds the words for one that is not.
        if let Some((skus, rest)) = cut::skus(page.text()?) {
            let rest = with_body(page, rest.into_bytes());
            if let Ok(document) = json::document(&rest) {
                return Self::of(page, skus, &document);
            }
        }
        let document = json::document(page)?;
        check_no_error(page, &document)?;
        let skus = document.field("skus")?.list()?.iter().map(Value::characters).collect();
        Self::of(page, skus, &document)
    }

    fn of(page: &Page, skus: Vec<&'a str>, document: &Object<'_>) -> Result<Self, ScrapeError> {
        check_no_error(page, document)?;
        let token = next_token(page, document)?;
        Ok(Self { skus, names: document.names().map(str::to_owned).collect(), token })
    }
}

/// The same page with other bytes.
fn with_body(page: &Page, body: Vec<u8>) -> Page {
    Page {
        name: page.name.clone(),
        scope: page.scope.clone(),
        url: page.url.clone(),
        observed_at: page.observed_at,
        sha256: page.sha256.clone(),
        body,
    }
}

fn check_no_error(page: &Page, document: &Object<'_>) -> Result<(), ScrapeError> {
    match document.optional("error") {
        Some(error) => {
            let text = json::start_of(error.characters());
            Err(ScrapeError::ErrorAnswer { page: page.name.clone(), at: error.place().at, text })
        }
        None => Ok(()),
    }
}

/// The token for the next page. An empty one and none at all end the walk, but a field of a new name does not: it may be
/// the token.
fn next_token(page: &Page, document: &Object<'_>) -> Result<Option<String>, ScrapeError> {
    if !document.has("nextPageToken")
        && let Some(stranger) = document.names().find(|name| *name != "skus")
    {
        return Err(changed(page, "/nextPageToken", "a field of this name", format!("`{stranger}` instead")));
    }
    Ok(document.optional_text("nextPageToken")?.filter(|token| !token.is_empty()).map(std::borrow::Cow::into_owned))
}

/// The page that a page leads to, asked for with the key, which the fetching room adds.
pub(super) fn follow(page: &Page) -> Result<Vec<PageRequest>, ScrapeError> {
    let Some(token) = Envelope::read(page)?.token else { return Ok(Vec::new()) };
    if token_of(&page.url).is_some_and(|own| own == escaped(&token)) {
        return Err(changed(page, "/nextPageToken", "the token of another page", "the page's own".to_owned()));
    }
    let base = page.url.find(TOKEN).map_or(page.url.as_str(), |at| page.url[..at].trim_end_matches(['&', '?']));
    let joint = if base.contains('?') { '&' } else { '?' };
    let url = format!("{base}{joint}{TOKEN}{}", escaped(&token));
    let stem = page.name.trim_end_matches(|c: char| c.is_ascii_digit());
    let name = match page.name[stem.len()..].parse::<u32>() {
        Ok(number) => format!("{stem}{:04}", number + 1),
        Err(_) => format!("{}-0002", page.name),
    };
    Ok(vec![PageRequest::get(name, page.scope.as_str(), url).keyed()])
}

/// Checks that every token leads to a page at hand and no page is led to twice.
///
/// A page from the site states the token it was asked with in its address. Pages from files do not: among these there must
/// be one without a token, the last, and no token may stand twice.
pub(super) fn check_chain(pages: &[Page], envelopes: &[Envelope<'_>]) -> Result<(), ScrapeError> {
    let is_from_site = |page: &Page| page.url.starts_with("http");
    let mut page_by_token: HashMap<&str, &Page> = HashMap::new();
    for page in pages.iter().filter(|page| is_from_site(page)) {
        if let Some(first) = page_by_token.insert(token_of(&page.url).unwrap_or_default(), page) {
            return Err(changed(page, "its address", "another page", format!("that of `{}`", first.name)));
        }
    }
    // The first page is the one that was asked for without a token.
    if let Some(page) = pages.iter().find(|page| is_from_site(page))
        && !page_by_token.contains_key("")
    {
        let next = "the first page".to_owned();
        return Err(ScrapeError::PageMissing { page: page.name.clone(), at: "its address".to_owned(), next });
    }
    let mut seen: HashMap<&str, &Page> = HashMap::new();
    let mut last = None;
    for (page, envelope) in pages.iter().zip(envelopes) {
        let Some(token) = &envelope.token else {
            if let Some(first) = last.replace(page) {
                return Err(changed(page, "/nextPageToken", "one last page", format!("`{}` is one already", first.name)));
            }
            continue;
        };
        if let Some(first) = seen.insert(token.as_str(), page) {
            return Err(changed(page, "/nextPageToken", "the token of another page", format!("that of `{}`", first.name)));
        }
        if is_from_site(page) && !page_by_token.contains_key(escaped(token).as_str()) {
            return Err(missing(page, token));
        }
    }
    match (last, pages.first().zip(envelopes.first().and_then(|envelope| envelope.token.as_ref()))) {
        (None, Some((page, token))) => Err(missing(page, token)),
        _ => Ok(()),
    }
}

/// The token a page was asked with.
fn token_of(url: &str) -> Option<&str> {
    let (_, rest) = url.split_once(TOKEN)?;
    rest.split('&').next()
}

/// A token as it stands in an address.
fn escaped(token: &str) -> String {
    let mut text = String::with_capacity(token.len());
    for byte in token.bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
            text.push(char::from(byte));
        } else {
            text.push_str(&format!("%{byte:02X}"));
        }
    }
    text
}

fn missing(page: &Page, token: &str) -> ScrapeError {
    ScrapeError::PageMissing { page: page.name.clone(), at: "/nextPageToken".to_owned(), next: token.to_owned() }
}

fn changed(page: &Page, at: &str, expected: &str, found: String) -> ScrapeError {
    ScrapeError::ShapeChanged { page: page.name.clone(), at: at.to_owned(), expected: expected.to_owned(), found }
}
