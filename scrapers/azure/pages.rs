//! The envelope around the rows, and the chain of `NextPageLink`s.
//!
//! In: pages. Out: their rows, and the page that follows. Never takes a chain with a page missing for a complete one.

use std::borrow::Cow;
use std::collections::HashMap;

use crate::contract::{Page, PageRequest, ScrapeError};
use crate::json::{self, Object, Value};

const SITE: &str = "https://prices.azure.com/";
const SITE_WITH_PORT: &str = "https://prices.azure.com:443/";
const ENVELOPE: [&str; 6] = ["BillingCurrency", "CustomerEntityId", "CustomerEntityType", "Items", "NextPageLink", "Count"];

/// A page's outermost object.
pub(super) struct Envelope<'a> {
    pub document: Object<'a>,
    pub items: Vec<Value<'a>>,
    link: Option<Cow<'a, str>>,
}

impl<'a> Envelope<'a> {
    /// Reads the envelope and leaves the rows alone.
    pub fn read(page: &'a Page) -> Result<Self, ScrapeError> {
        let document = json::document(page)?;
        for name in ["error", "Error", "message", "Message"] {
            if let Some(error) = document.optional(name) {
                let text = json::start_of(error.characters());
                return Err(ScrapeError::ErrorAnswer { page: page.name.clone(), at: error.place().at, text });
            }
        }
        let items = document.field("Items")?.list()?;
        let link = next_link(page, &document)?;
        // `Count` counts the rows of the page. A page with fewer was cut by something on its way.
        if let Some(count) = document.optional("Count") {
            let count = count.whole()?;
            if usize::try_from(count).is_ok_and(|count| count > items.len()) {
                return Err(changed(
                    page,
                    "/Count",
                    format!("{} rows, as many as the page holds", items.len()),
                    count.to_string(),
                ));
            }
        }
        Ok(Self { document, items, link })
    }
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

/// The page a live page leads to. The site writes its port into the link, which is no different page.
pub(super) fn follow(page: &Page) -> Result<Vec<PageRequest>, ScrapeError> {
    let Some(link) = Envelope::read(page)?.link else { return Ok(Vec::new()) };
    let url = without_port(&link);
    if !url.starts_with(SITE) {
        return Err(changed(page, "/NextPageLink", format!("an address at {SITE}"), json::start_of(&link)));
    }
    if url == without_port(&page.url) {
        return Err(changed(page, "/NextPageLink", "another page".to_owned(), "the page's own address".to_owned()));
    }
    let name = match numbered(&page.name) {
        Some((stem, number)) => format!("{stem}{:04}", number + 1),
        None => format!("{}-0002", page.name),
    };
    let request = PageRequest::get(name, page.scope.as_str(), url);
    Ok(vec![request])
}

/// Checks that every link leads to one of the pages, no page is led to twice, and every page is led to from a first one.
pub(super) fn check_chain(pages: &[Page], envelopes: &[Envelope<'_>]) -> Result<(), ScrapeError> {
    let targets = Targets::of(pages, envelopes);
    let mut is_linked = vec![false; pages.len()];
    let mut next = vec![None; pages.len()];
    for (from, envelope) in envelopes.iter().enumerate() {
        let Some(link) = &envelope.link else { continue };
        let page = &pages[from];
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
                format!("`{}`", pages[to].name),
            ));
        }
        is_linked[to] = true;
        next[from] = Some(to);
    }
    let mut is_reached = vec![false; pages.len()];
    for first in (0..pages.len()).filter(|page| !is_linked[*page]) {
        let mut at = Some(first);
        while let Some(page) = at {
            is_reached[page] = true;
            at = next[page];
        }
    }
    match is_reached.iter().position(|reached| !reached) {
        Some(page) => Err(changed(&pages[page], "/NextPageLink", "a chain with a first page".to_owned(), "a circle".to_owned())),
        None => Ok(()),
    }
}

/// What a link can mean among the pages at hand.
struct Targets<'a> {
    pages: &'a [Page],
    by_url: HashMap<String, usize>,
    by_name: HashMap<&'a str, usize>,
    by_last_part: HashMap<String, usize>,
    /// Pages from files by the query they were asked with and the first row they hold.
    by_start: HashMap<(String, usize), usize>,
    /// Pages from files without a link.
    ends: Vec<usize>,
}

impl<'a> Targets<'a> {
    fn of(pages: &'a [Page], envelopes: &[Envelope<'_>]) -> Self {
        let empty = HashMap::new;
        let mut targets = Self {
            pages,
            by_url: empty(),
            by_name: HashMap::new(),
            by_last_part: empty(),
            by_start: HashMap::new(),
            ends: Vec::new(),
        };
        for (index, page) in pages.iter().enumerate() {
            let url = without_port(&page.url);
            targets.by_last_part.entry(last_part(&url)).or_insert(index);
            targets.by_url.entry(url).or_insert(index);
            targets.by_name.entry(&page.name).or_insert(index);
            if page.url.starts_with("http") {
                continue;
            }
            // A page ends where its link points, so it starts that many rows before.
            match envelopes[index].link.as_deref().map(split_skip) {
                None => targets.ends.push(index),
                Some(Some((query, end))) => {
                    if let Some(start) = end.checked_sub(envelopes[index].items.len()) {
                        targets.by_start.entry((query, start)).or_insert(index);
                    }
                }
                Some(None) => {}
            }
        }
        targets
    }

    /// The page of which the link is the address, the file beside the linking one, the name, or at least the last part
    /// of the path.
    fn named(&self, from: &Page, link: &str) -> Option<usize> {
        let link = without_port(link);
        let beside = from.url.rfind('/').map(|slash| format!("{}{link}", &from.url[..=slash]));
        let found = self.by_url.get(&link).or_else(|| self.by_url.get(&beside?));
        found.or_else(|| self.by_name.get(link.as_str())).or_else(|| self.by_last_part.get(&last_part(&link))).copied()
    }

    /// The page that a link with `$skip` means, among pages saved under file names of any kind.
    ///
    /// The last page has no link and so states no start: it is taken when no other fits, unless the numbers in the
    /// file names say that a page between is missing.
    fn skipped_to(&self, from: usize, link: &str, is_linked: &[bool]) -> Option<usize> {
        let (query, skip) = split_skip(link)?;
        let may_be_last = |page: &&usize| !is_linked[**page] && follows_in_name(&self.pages[from], &self.pages[**page], skip);
        self.by_start.get(&(query, skip)).or_else(|| self.ends.iter().find(may_be_last)).copied()
    }
}

/// Whether the file names let one page follow another: numbered one higher, by its first row, or not numbered alike.
fn follows_in_name(from: &Page, to: &Page, skip: usize) -> bool {
    let stem = |page: &Page| page.url.strip_suffix(".json").unwrap_or(&page.url).to_owned();
    let (from, to) = (stem(from), stem(to));
    match (numbered(&from), numbered(&to)) {
        (Some((from_stem, from)), Some((to_stem, to))) if from_stem == to_stem => {
            to == from + 1 || usize::try_from(to).is_ok_and(|to| to == skip)
        }
        _ => true,
    }
}

/// The link without its `$skip`, and the `$skip`.
fn split_skip(link: &str) -> Option<(String, usize)> {
    let (before, after) = link.split_once("$skip=").or_else(|| link.split_once("%24skip="))?;
    let end = after.find('&').unwrap_or(after.len());
    Some((format!("{}{}", without_port(before), &after[end..]), after[..end].parse().ok()?))
}

/// A name and the number at its end.
fn numbered(name: &str) -> Option<(&str, u64)> {
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
