//! The only room with a network.
//!
//! In: the pages a provider starts with and where they lead. Out: answers, untouched, and a failure for each page that
//! could not be had. Never parses for prices, never goes to a host the manifest or a page of that host does not name, and
//! never lets one provider's trouble reach another.

mod client;
mod key;
mod robots;

use std::collections::{BTreeMap, HashMap, HashSet, VecDeque};
use std::sync::Arc;
use std::time::{Duration, Instant};

use chrono::Utc;
use gpuledger_scrapers::contract::{Method, Page, PageRequest, SCOPE_INDEX, Scraper};
use tokio::sync::Mutex;
use url::Url;

use crate::archive::{Archive, ArchiveError, LastAnswer, Receipt};
use crate::gather::{Delivery, Failure, Input};
use client::Got;
pub use client::{Client, FetchError, Validators};
pub use key::Key;

/// Hosts' turns: one request at a time to a host, and not before its pause is over.
#[derive(Debug, Default, Clone)]
pub struct Turns {
    by_host: Arc<Mutex<HashMap<String, Turn>>>,
}

/// When the host was last asked; held while it is asked.
type Turn = Arc<Mutex<Option<Instant>>>;

impl Turns {
    async fn of(&self, host: &str) -> Turn {
        Arc::clone(self.by_host.lock().await.entry(host.to_owned()).or_default())
    }
}

/// Told while a provider is fetched: pages done, pages known, bytes.
pub type Progress<'a> = &'a (dyn Fn(usize, usize, u64) + Send + Sync);

/// Fetches one provider. Every answer is archived before anything reads it.
pub async fn fetch_provider(
    client: &Client,
    turns: &Turns,
    archive: &Archive,
    scraper: &'static dyn Scraper,
    progress: Progress<'_>,
) -> Delivery {
    let manifest = scraper.manifest();
    let key = Key::of(manifest);
    fetch_pages(client, turns, archive, scraper, manifest.start(key.is_some()), progress).await
}

/// Fetches given pages of a provider and those they lead to.
pub async fn fetch_pages(
    client: &Client,
    turns: &Turns,
    archive: &Archive,
    scraper: &'static dyn Scraper,
    start: Vec<PageRequest>,
    progress: Progress<'_>,
) -> Delivery {
    let started = Instant::now();
    let manifest = scraper.manifest();
    let mut delivery = Delivery { scraper, input: Input::Live, pages: Vec::new(), failures: Vec::new(), seconds: 0.0 };
    let mut waiting: VecDeque<(PageRequest, Option<Asked>)> = start.into_iter().map(|request| (request, None)).collect();
    let mut trail = Trail::default();
    let mut lost_scopes: HashSet<String> = HashSet::new();
    let mut bytes = 0;
    let mut unreachable: HashMap<String, (&str, String)> = HashMap::new();
    let mut scope_roots: BTreeMap<String, HashSet<Asked>> = BTreeMap::new();
    let mut lost_roots: HashSet<Asked> = HashSet::new();
    while let Some((request, from)) = waiting.pop_front() {
        // A scope that lost a page is absent tonight, so its other pages need not be asked for. Index pages do not stand for
        // each other: each leads to scopes of its own.
        if request.scope != SCOPE_INDEX && lost_scopes.contains(&request.scope) {
            continue;
        }
        let mut lose = |code: &str, reason: String| {
            lost_scopes.insert(request.scope.clone());
            delivery.failures.push(Failure { scope: request.scope.clone(), code: code.to_owned(), reason, is_skip: false });
        };
        // A host that cannot be reached at all is not tried again for each of its scopes.
        if let Some((code, reason)) = host_of(&request).and_then(|host| unreachable.get(&host)) {
            lose(code, reason.clone());
            continue;
        }
        let asked: Asked = (request.url.clone(), request.body.clone());
        match trail.step(&asked, from, &request.scope) {
            Step::New => {}
            Step::Done => continue,
            Step::Back => {
                let reason = format!("page `{}` leads back to a page that was asked for already: {}", request.name, request.url);
                lose("link_loop", reason);
                continue;
            }
            Step::OfAnotherScope(scope) => {
                let reason = format!("page `{}` is a page of scope `{scope}` as well: {}", request.name, request.url);
                lose("page_of_two_scopes", reason);
                continue;
            }
        }
        if trail.len() > manifest.fetch.max_pages {
            lose("too_many_pages", format!("more than the {} pages that the manifest allows", manifest.fetch.max_pages));
            continue;
        }
        match fetch_page(client, turns, archive, scraper, &request).await {
            Ok((receipt, page)) => {
                bytes += receipt.bytes;
                match scraper.follow(&page) {
                    Ok(more) => waiting.extend(more.into_iter().map(|request| (request, Some(asked.clone())))),
                    Err(error) => lose(error.code(), error.to_string()),
                }
                scope_roots.entry(request.scope.clone()).or_default().insert(trail.root(&asked));
                delivery.pages.push(receipt);
            }
            Err(error) => {
                if let FetchError::NotConnected { host, .. } | FetchError::RobotsBroken { host, .. } = &error {
                    unreachable.insert(host.clone(), (error.code(), error.to_string()));
                }
                lose(error.code(), error.to_string());
                if matches!(error, FetchError::NotThere { .. })
                    && let Some(failure) = delivery.failures.last_mut()
                {
                    failure.is_skip = true;
                }
            }
        }
        if request.scope == SCOPE_INDEX && lost_scopes.remove(SCOPE_INDEX) {
            lost_roots.insert(trail.root(&asked));
        }
        progress(delivery.pages.len() + delivery.failures.len(), trail.len() + waiting.len(), bytes);
    }
    // An index page that was lost may have led to more pages of the scopes that its start page leads to.
    for (scope, roots) in scope_roots {
        if scope != SCOPE_INDEX && !lost_scopes.contains(&scope) && !roots.is_disjoint(&lost_roots) {
            let reason = "an index page was lost, so nobody knows whether the scope has all its pages".to_owned();
            delivery.failures.push(Failure { scope, code: "index_missing".to_owned(), reason, is_skip: false });
        }
    }
    delivery.seconds = started.elapsed().as_secs_f64();
    delivery
}

/// What makes two requests the same: the address and what is sent along.
type Asked = (String, Option<String>);

/// What was asked for so far: from which page, and for which scope.
#[derive(Default)]
struct Trail(HashMap<Asked, (Option<Asked>, String)>);

/// What a request is in the trail.
enum Step {
    /// Not asked for yet.
    New,
    /// Asked for already, from a page beside the way here.
    Done,
    /// On the way here already: a loop.
    Back,
    /// Asked for already, for another scope.
    OfAnotherScope(String),
}

impl Trail {
    fn step(&mut self, asked: &Asked, from: Option<Asked>, scope: &str) -> Step {
        let Some((_, of)) = self.0.get(asked) else {
            self.0.insert(asked.clone(), (from, scope.to_owned()));
            return Step::New;
        };
        let of = of.clone();
        let mut before = from.as_ref();
        while let Some(page) = before {
            if page == asked {
                return Step::Back;
            }
            before = self.0.get(page).and_then(|(from, _)| from.as_ref());
        }
        if of == scope { Step::Done } else { Step::OfAnotherScope(of) }
    }

    /// The start page that leads to a page.
    fn root(&self, asked: &Asked) -> Asked {
        let mut page = asked;
        while let Some((Some(from), _)) = self.0.get(page) {
            page = from;
        }
        page.clone()
    }

    fn len(&self) -> usize {
        self.0.len()
    }
}

fn host_of(request: &PageRequest) -> Option<String> {
    Url::parse(&request.url).ok()?.host_str().map(str::to_owned)
}

async fn fetch_page(
    client: &Client,
    turns: &Turns,
    archive: &Archive,
    scraper: &'static dyn Scraper,
    request: &PageRequest,
) -> Result<(Receipt, Page), FetchError> {
    let not_archived = |error: ArchiveError| FetchError::NotArchived { page: request.name.clone(), reason: error.to_string() };
    // What depends on a body or on a key is not the same to everybody who asks for the address.
    let is_plain = request.body.is_none() && !request.with_key;
    let last = if is_plain { archive.recall(&request.url).filter(|(last, _)| is_sieved_alike(scraper, last)) } else { None };
    let last = match last {
        Some((last, body)) if request.is_immutable => return Ok(again(&last, body, request)),
        last => last,
    };
    let limits = &scraper.manifest().fetch;
    let url = Url::parse(&request.url)
        .map_err(|error| FetchError::BadAddress { url: request.url.clone(), reason: error.to_string() })?;
    let host = url.host_str().ok_or_else(|| FetchError::BadAddress { url: request.url.clone(), reason: "no host".to_owned() })?;
    let turn = turns.of(host).await;
    let mut asked_at = turn.lock().await;
    client.may_read(&url).await?;
    if let Some(asked_at) = *asked_at {
        let pause = Duration::from_millis(limits.min_interval_ms);
        tokio::time::sleep(pause.saturating_sub(asked_at.elapsed())).await;
    }
    let validators = last.as_ref().map(|(last, _)| &last.validators);
    let answer = client.get(scraper, request, &url, validators).await;
    *asked_at = Some(Instant::now());
    drop(asked_at);
    match (answer?, last) {
        (Got::Unchanged, Some((last, body))) if !last.validators.is_empty() => Ok(again(&last, body, request)),
        (Got::Unchanged, _) => Err(FetchError::HttpStatus { page: request.name.clone(), status: 304, tries: 1 }),
        (Got::Answer(answer, validators), _) => {
            let (receipt, page) = archive.keep(*answer).map_err(not_archived)?;
            if is_plain && (request.is_immutable || !validators.is_empty()) {
                archive.remember(&LastAnswer { receipt: receipt.clone(), validators }).map_err(not_archived)?;
            }
            Ok((receipt, page))
        }
    }
}

/// An archived answer that is still that of its address.
fn again(last: &LastAnswer, body: Vec<u8>, request: &PageRequest) -> (Receipt, Page) {
    let receipt = Receipt {
        page: request.name.clone(),
        scope: request.scope.clone(),
        observed_at: Utc::now(),
        unchanged_since: Some(last.receipt.unchanged_since.unwrap_or(last.receipt.observed_at)),
        ..last.receipt.clone()
    };
    let page = receipt.page_of(body);
    (receipt, page)
}

/// Whether an archived answer went through the sieve that its page would go through today.
fn is_sieved_alike(scraper: &dyn Scraper, last: &LastAnswer) -> bool {
    last.receipt.method == Method::Get
        && last.receipt.whole.as_ref().is_none_or(|whole| scraper.sieves().contains(&whole.sieve.as_str()))
}
