//! The only room with a network.
//!
//! In: the pages a provider starts with and where they lead. Out: answers, untouched, and a failure for each page that
//! could not be had. Never parses for prices, never asks a host that the manifest does not name, never takes more of a
//! night than the manifest gives, and never lets one provider's trouble reach another.

mod answer;
mod budget;
mod client;
mod error;
mod hosts;
mod key;
mod patience;
mod robots;
mod room;
mod trail;
mod wall;

use std::collections::{BTreeMap, HashMap, HashSet, VecDeque};
use std::sync::Arc;
use std::time::Instant;

use gpuledger_scrapers::contract::{PageRequest, SCOPE_INDEX, Scraper};
use tokio::sync::Mutex;

use crate::archive::Archive;
use crate::gather::{Delivery, Failure, Input};
use crate::print::harmless;
pub use answer::Validators;
pub use budget::Traffic;
pub use client::Client;
pub(crate) use client::innermost;
pub use error::FetchError;
use error::Lost;
pub use hosts::Hosts;
pub(crate) use hosts::is_private;
pub use key::Key;
pub(crate) use patience::retry_after;
use room::Room;
use trail::{Asked, Step, Trail};

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
    // A key that cannot be sent costs the pages that need it; `fetch_pages` says so.
    let has_key = Key::of(scraper.manifest()).map_or(true, |key| key.is_some());
    fetch_pages(client, turns, archive, scraper, scraper.manifest().start(has_key), progress).await
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
    let known = Key::of(scraper.manifest());
    let key = known.as_ref().ok().and_then(Option::as_ref);
    let mut walk = Walk { delivery: Delivery::of(scraper, Input::Live), lost_scopes: HashSet::new(), key };
    match &known {
        Ok(_) => walk.go(Room::new(client, turns, archive, scraper, key), start, progress).await,
        // Such a key is no better the second time, so nothing is asked for.
        Err(error) => start.iter().for_each(|page| walk.lose(page, &Loss::of(page, Lost::untried(error.clone())))),
    }
    Delivery { seconds: started.elapsed().as_secs_f64(), ..walk.delivery }
}

/// Why a scope is lost.
struct Loss {
    code: &'static str,
    reason: String,
    is_skip: bool,
}

impl Loss {
    fn of(request: &PageRequest, lost: Lost) -> Self {
        let is_skip = lost.error == FetchError::NotThere;
        Self { code: lost.error.code(), reason: lost.told(&request.name), is_skip }
    }

    fn new(code: &'static str, reason: String) -> Self {
        Self { code, reason, is_skip: false }
    }
}

/// The walk from a provider's start pages to all they lead to.
struct Walk<'a> {
    delivery: Delivery,
    lost_scopes: HashSet<String>,
    key: Option<&'a Key>,
}

impl Walk<'_> {
    async fn go(&mut self, mut room: Room<'_>, start: Vec<PageRequest>, progress: Progress<'_>) {
        let scraper = self.delivery.scraper;
        let mut waiting: VecDeque<(PageRequest, Option<Asked>)> = start.into_iter().map(|request| (request, None)).collect();
        let mut trail = Trail::default();
        let mut scope_roots: BTreeMap<String, HashSet<Asked>> = BTreeMap::new();
        let mut lost_roots: HashSet<Asked> = HashSet::new();
        while let Some((request, from)) = waiting.pop_front() {
            // A scope that lost a page is absent tonight, so its other pages need not be asked for. Index pages do not stand
            // for each other: each leads to scopes of its own.
            if request.scope != SCOPE_INDEX && self.lost_scopes.contains(&request.scope) {
                continue;
            }
            let asked: Asked = (request.url.clone(), request.body.clone());
            let root = from.as_ref().map_or_else(|| asked.clone(), |from| trail.root(from));
            let lost = match may_ask(&mut trail, &asked, from.as_ref(), &request, scraper.manifest().fetch.max_pages) {
                Ok(false) => continue,
                Err(loss) => Some(loss),
                Ok(true) => match room.page(&request).await {
                    Ok((receipt, page)) => {
                        scope_roots.entry(request.scope.clone()).or_default().insert(root.clone());
                        self.delivery.pages.push(receipt);
                        match scraper.follow(&page) {
                            Ok(more) => {
                                waiting.extend(more.into_iter().map(|request| (request, Some(asked.clone()))));
                                None
                            }
                            Err(error) => Some(Loss::new(error.code(), error.to_string())),
                        }
                    }
                    Err((lost, kept)) => {
                        self.delivery.turned_away.extend(kept);
                        Some(Loss::of(&request, lost))
                    }
                },
            };
            if let Some(loss) = lost {
                self.lose(&request, &loss);
                if request.scope == SCOPE_INDEX {
                    lost_roots.insert(root);
                }
            }
            self.delivery.traffic = room.spent();
            let done = self.delivery.pages.len() + self.delivery.failures.len();
            progress(done, trail.len() + waiting.len(), self.delivery.traffic.bytes);
        }
        // An index page that was lost may have led to more pages of the scopes that its start page leads to.
        for (scope, roots) in scope_roots {
            if scope != SCOPE_INDEX && !self.lost_scopes.contains(&scope) && !roots.is_disjoint(&lost_roots) {
                let reason = "an index page was lost, so nobody knows whether the scope has all its pages".to_owned();
                self.delivery.failures.push(Failure { scope, code: "index_missing".to_owned(), reason, is_skip: false });
            }
        }
    }

    fn lose(&mut self, request: &PageRequest, loss: &Loss) {
        let Loss { code, reason, is_skip } = loss;
        // What a server wrote is told, and it may have written the key or what upsets a terminal.
        let reason = self.key.map_or_else(|| reason.clone(), |key| key.redact(reason));
        let (scope, reason) = (request.scope.clone(), harmless(&reason).into_owned());
        self.lost_scopes.insert(scope.clone());
        self.delivery.failures.push(Failure { scope, code: (*code).to_owned(), reason, is_skip: *is_skip });
    }
}

/// Whether a page is to be asked for, or was already.
fn may_ask(
    trail: &mut Trail,
    asked: &Asked,
    from: Option<&Asked>,
    request: &PageRequest,
    pages_max: usize,
) -> Result<bool, Loss> {
    let of_page = |what: String| format!("page `{}` {what}: {}", request.name, request.url);
    match trail.step(asked, from, request) {
        Step::New if trail.len() > pages_max => {
            let reason = format!(
                "page `{}` is one more than the {pages_max} pages that the manifest allows; if the provider has grown, raise \
                 `max_pages` in the manifest",
                request.name
            );
            Err(Loss::new("too_many_pages", reason))
        }
        Step::New => Ok(true),
        Step::Done => Ok(false),
        Step::Back => Err(Loss::new("link_loop", of_page("leads back to a page that was asked for already".to_owned()))),
        Step::OfAnotherScope(scope) => {
            Err(Loss::new("page_of_two_scopes", of_page(format!("is a page of scope `{scope}` as well"))))
        }
    }
}
