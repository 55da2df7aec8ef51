//! The envelope around the rows, and the chain of `NextPageLink`s.
//!
//! In: pages. Out: their rows, the pages that follow, and the order of the chain. Never takes a chain with a page missing
//! for a complete one, and never a page for whole that is shorter than it says.
//!
//! A page says twice how many rows it has: in `Count`, and by the distance from its own `$skip` to that of the next link.
//! A live page that is shorter is looked at a second time, by the address with the port that the site itself writes. The
//! first look that adds up stands for the page. Where two looks are short, rows are missing and the region is refused; a
//! single look may be an excerpt, and only its `Count` is held against it.

use std::borrow::Cow;
use std::collections::HashMap;

use super::names::Names;
use crate::contract::{Page, PageRequest, ScrapeError};
use crate::json::{self, Object, Value};

const SITE: &str = "https://prices.azure.com/";
const SITE_WITH_PORT: &str = "https://prices.azure.com:443/";
const ENVELOPE: [&str; 6] = ["BillingCurrency", "CustomerEntityId", "CustomerEntityType", "Items", "NextPageLink", "Count"];

/// A page's outermost object.
pub(super) struct Envelope<'a> {
    pub page: &'a Page,
    pub document: Object<'a>,
    pub items: Vec<Value<'a>>,
    link: Option<Cow<'a, str>>,
    /// What the page says about its number of rows and does not have: the place, and how many there should be.
    short: Option<(&'static str, usize)>,
}

impl<'a> Envelope<'a> {
    /// Reads the envelope and leaves the rows alone.
    pub fn read(page: &'a Page) -> Result<Self, ScrapeError> {
        let (document, items) = match json::document_and_list(page, "Items") {
            Ok(read) => read,
            Err(error) => return Err(error_answer(page).unwrap_or(error)),
        };
        check_no_error(page, &document)?;
        let link = next_link(page, &document)?;
        let count = document.optional("Count").map(|count| count.whole()).transpose()?;
        let count = count.and_then(|count| usize::try_from(count).ok());
        let until_next = link.as_deref().and_then(|link| split_skip(link)?.1.checked_sub(start_of(&page.url)?));
        let short = [("/Count", count), ("/NextPageLink", until_next)];
        let short = short.into_iter().find_map(|(at, rows)| rows.filter(|rows| *rows > items.len()).map(|rows| (at, rows)));
        Ok(Self { page, document, items, link, short })
    }
}

/// The whole pages among several looks at them.
///
/// # Errors
/// When there is no look at a page that is as long as the page says.
pub(super) fn whole(envelopes: Vec<Envelope<'_>>) -> Result<Vec<Envelope<'_>>, ScrapeError> {
    let mut whole: Vec<Envelope<'_>> = Vec::with_capacity(envelopes.len());
    let mut by_url: HashMap<String, (usize, usize)> = HashMap::new();
    for envelope in envelopes {
        let (place, looks) = by_url.entry(without_port(&envelope.page.url)).or_insert((whole.len(), 0));
        *looks += 1;
        match whole.get_mut(*place) {
            Some(first) if first.short.is_some() => *first = envelope,
            Some(_) => {}
            None => whole.push(envelope),
        }
    }
    for envelope in &whole {
        let looks = by_url.get(&without_port(&envelope.page.url)).map_or(1, |(_, looks)| *looks);
        if let Some((at, rows)) = envelope.short.filter(|(at, _)| looks > 1 || *at == "/Count") {
            let expected =
                if at == "/Count" { "rows, as many as the page holds" } else { "rows up to the next page, in two looks" };
            return Err(match at {
                "/Count" => changed(envelope.page, at, format!("{} {expected}", envelope.items.len()), rows.to_string()),
                _ => changed(envelope.page, at, format!("{rows} {expected}"), envelope.items.len().to_string()),
            });
        }
    }
    Ok(whole)
}

/// The error that a page holds instead of a list.
fn error_answer(page: &Page) -> Option<ScrapeError> {
    check_no_error(page, &json::document(page).ok()?).err()
}

fn check_no_error(page: &Page, document: &Object<'_>) -> Result<(), ScrapeError> {
    for name in ["error", "Error", "message", "Message"] {
        if let Some(error) = document.optional(name) {
            let text = json::start_of(error.characters());
            return Err(ScrapeError::ErrorAnswer { page: page.name.clone(), at: error.place().at, text });
        }
    }
    Ok(())
}

/// The link to the next page. A `null`, an empty text and no such field end the walk, but a field of a new name does
/// not: it may be the link.
fn next_link<'a>(page: &Page, document: &Object<'a>) -> Result<Option<Cow<'a, str>>, ScrapeError> {
    if !document.has("NextPageLink")
        && let Some(stranger) = document.names().find(|name| !ENVELOPE.contains(name))
    {
        return Err(changed(page, "/NextPageLink", "a field of this name".to_owned(), format!("`{stranger}` instead")));
    }
    Ok(document.optional_text("NextPageLink")?.filter(|link| !link.is_empty()))
}

/// The pages a live page leads to: its next one, and itself again where its rows do not add up. The site writes its port
/// into the link, which is no different page.
pub(super) fn follow(page: &Page) -> Result<Vec<PageRequest>, ScrapeError> {
    // A second look leads nowhere: the first one did.
    let is_second_look = page.url.starts_with(SITE_WITH_PORT);
    let envelope = Envelope::read(page)?;
    if is_second_look {
        return Ok(Vec::new());
    }
    let mut requests = Vec::new();
    if let Some(rest) = page.url.strip_prefix(SITE).filter(|_| envelope.short.is_some()) {
        let again = format!("{}-again", page.name);
        requests.push(PageRequest::get(again, page.scope.as_str(), format!("{SITE_WITH_PORT}{rest}")));
    }
    let Some(link) = envelope.link else { return Ok(requests) };
    let url = without_port(&link);
    if !url.starts_with(SITE) {
        return Err(changed(page, "/NextPageLink", format!("an address at {SITE}"), json::start_of(&link)));
    }
    if url == without_port(&page.url) {
        return Err(changed(page, "/NextPageLink", "another page".to_owned(), "the page's own address".to_owned()));
    }
    let name = match numbered(&page.name) {
        Some((stem, number)) => format!("{stem}{:04}", number.saturating_add(1)),
        None => format!("{}-0002", page.name),
    };
    requests.push(PageRequest::get(name, page.scope.as_str(), url));
    Ok(requests)
}

/// Puts the pages into the order of their links. Every link leads to one of the pages, no page is led to twice, and
/// every page is led to from a first one.
pub(super) fn in_order(envelopes: Vec<Envelope<'_>>) -> Result<Vec<Envelope<'_>>, ScrapeError> {
    let targets = Targets::of(&envelopes);
    let mut is_linked = vec![false; envelopes.len()];
    let mut next = vec![None; envelopes.len()];
    for (from, envelope) in envelopes.iter().enumerate() {
        let Some(link) = &envelope.link else { continue };
        let page = envelope.page;
        let Some(to) = targets.named(page, link).or_else(|| targets.skipped_to(from, link, &is_linked)) else {
            return Err(ScrapeError::PageMissing {
                page: page.name.clone(),
                at: "/NextPageLink".to_owned(),
                next: link.clone().into_owned(),
            });
        };
        if to == from || is_linked[to] {
            return Err(changed(
                page,
                "/NextPageLink",
                "a page that nothing else leads to".to_owned(),
                format!("`{}`", envelopes[to].page.name),
            ));
        }
        is_linked[to] = true;
        next[from] = Some(to);
    }
    let mut order = Vec::with_capacity(envelopes.len());
    for first in (0..envelopes.len()).filter(|page| !is_linked[*page]) {
        order.extend(std::iter::successors(Some(first), |page| next[*page]));
    }
    let mut slots: Vec<_> = envelopes.into_iter().map(Some).collect();
    let ordered = order.into_iter().filter_map(|page| slots[page].take()).collect();
    match slots.into_iter().flatten().next() {
        Some(left) => Err(changed(left.page, "/NextPageLink", "a chain with a first page".to_owned(), "a circle".to_owned())),
        None => Ok(ordered),
    }
}

/// What a link can mean among the pages at hand.
struct Targets<'a> {
    by_url: HashMap<String, usize>,
    by_name: HashMap<&'a str, usize>,
    by_last_part: HashMap<String, usize>,
    /// Pages from files by the query they were asked with and the first row they hold.
    by_start: HashMap<(String, usize), usize>,
    /// Pages from files without a link.
    ends: Vec<usize>,
    names: Names<'a>,
}

impl<'a> Targets<'a> {
    fn of(envelopes: &[Envelope<'a>]) -> Self {
        let (mut by_url, mut by_name, mut by_last_part) = (HashMap::new(), HashMap::new(), HashMap::new());
        let (mut by_start, mut ends, mut starts) = (HashMap::new(), Vec::new(), Vec::new());
        for (index, envelope) in envelopes.iter().enumerate() {
            let page = envelope.page;
            let url = without_port(&page.url);
            by_last_part.entry(last_part(&url)).or_insert(index);
            by_url.entry(url).or_insert(index);
            by_name.entry(page.name.as_str()).or_insert(index);
            if page.url.starts_with("http") {
                continue;
            }
            // A page ends where its link points, so it starts that many rows before.
            let mut start = None;
            match envelope.link.as_deref().map(split_skip) {
                None => ends.push(index),
                Some(Some((query, end))) => {
                    start = end.checked_sub(envelope.items.len()).map(|start| (start, end));
                    if let Some((start, _)) = start {
                        by_start.entry((query, start)).or_insert(index);
                    }
                }
                Some(None) => {}
            }
            starts.push((index, page.url.as_str(), start));
        }
        Self { by_url, by_name, by_last_part, by_start, ends, names: Names::of(&starts) }
    }

    /// The page of which the link is the address, the file beside the linking one, the name, or at least the last part
    /// of the path.
    fn named(&self, from: &Page, link: &str) -> Option<usize> {
        let link = without_port(link);
        let beside = from.url.rfind('/').map(|slash| format!("{}{link}", &from.url[..=slash]));
        let found = self.by_url.get(&link).or_else(|| self.by_url.get(&beside?));
        found.or_else(|| self.by_name.get(link.as_str())).or_else(|| self.by_last_part.get(&last_part(&link))).copied()
    }

    /// The page that a link with `$skip` means, among pages saved under file names of any kind: the one that starts
    /// there. The last page has no link and so states no start: it is taken when no other fits, unless the file names
    /// say that a page before it is missing.
    fn skipped_to(&self, from: usize, link: &str, is_linked: &[bool]) -> Option<usize> {
        let (query, skip) = split_skip(link)?;
        let may_be_last = |page: &&usize| !is_linked[**page] && self.names.let_follow(from, **page, skip);
        self.by_start.get(&(query, skip)).or_else(|| self.ends.iter().find(may_be_last)).copied()
    }
}

/// The number of the first row of a page, by the address it was asked for. `None` for pages from files.
fn start_of(url: &str) -> Option<usize> {
    if !url.starts_with("http") {
        return None;
    }
    Some(split_skip(url).map_or(0, |(_, skip)| skip))
}

/// The link without its `$skip`, and the `$skip`.
fn split_skip(link: &str) -> Option<(String, usize)> {
    let (before, after) = link.split_once("$skip=").or_else(|| link.split_once("%24skip="))?;
    let end = after.find('&').unwrap_or(after.len());
    Some((format!("{}{}", without_port(before), &after[end..]), after[..end].parse().ok()?))
}

/// A name and the number at its end.
pub(super) fn numbered(name: &str) -> Option<(&str, u64)> {
    let stem = name.trim_end_matches(|c: char| c.is_ascii_digit());
    Some((stem, name[stem.len()..].parse().ok()?))
}

fn last_part(path: &str) -> String {
    path.rsplit('/').next().unwrap_or(path).to_owned()
}

fn without_port(url: &str) -> String {
    url.strip_prefix(SITE_WITH_PORT).map_or_else(|| url.to_owned(), |rest| format!("{SITE}{rest}"))
}

/// A page without rows.
pub(super) fn nothing(page: &Page) -> ScrapeError {
    ScrapeError::NothingFound { page: page.name.clone(), at: "/Items".to_owned() }
}

/// A row of a region that was not asked for: the filter did not work.
pub(super) fn another_region(page: &Page, item: &Value<'_>, region: &str) -> ScrapeError {
    changed(page, &item.place().at, format!("rows of the region `{}`", page.scope), format!("`{region}`"))
}

fn changed(page: &Page, at: &str, expected: String, found: String) -> ScrapeError {
    ScrapeError::ShapeChanged { page: page.name.clone(), at: at.to_owned(), expected, found }
}
