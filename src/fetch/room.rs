//! One provider at work: its hosts, its time and requests, and each page from the archive or the network.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use chrono::Utc;
use gpuledger_scrapers::contract::{Method, Page, PageRequest, Scraper};
use url::Url;

use super::Turns;
use super::answer::{Got, Validators};
use super::budget::{Budget, Traffic};
use super::client::{Ask, Client};
use super::error::{FetchError, Lost};
use super::hosts::Hosts;
use super::key::Key;
use crate::archive::{Archive, ArchiveError, LastAnswer, Receipt};

/// Everything that the pages of one provider share.
pub(super) struct Room<'a> {
    client: &'a Client,
    turns: &'a Turns,
    archive: &'a Archive,
    scraper: &'static dyn Scraper,
    key: Option<&'a Key>,
    hosts: Hosts,
    budget: Budget,
    /// Hosts that cannot be read at all tonight, and why: they are not tried again for each of their pages.
    closed: HashMap<String, (FetchError, usize)>,
}

/// A page that was not had, and the receipt of what came in its place.
type NotHad = (Lost, Option<Receipt>);

impl<'a> Room<'a> {
    pub(super) fn new(
        client: &'a Client,
        turns: &'a Turns,
        archive: &'a Archive,
        scraper: &'static dyn Scraper,
        key: Option<&'a Key>,
    ) -> Self {
        let (hosts, budget) = (Hosts::of(scraper), client.budget(scraper));
        Self { client, turns, archive, scraper, key, hosts, budget, closed: HashMap::new() }
    }

    /// What was asked so far.
    pub(super) fn spent(&self) -> Traffic {
        self.budget.spent()
    }

    /// One page, archived.
    pub(super) async fn page(&mut self, request: &PageRequest) -> Result<(Receipt, Page), NotHad> {
        // What depends on a body or on a key is not the same to everybody who asks for the address.
        let is_plain = request.body.is_none() && !request.with_key;
        let last = if is_plain { self.archive.recall(&request.url) } else { None };
        let last = last.filter(|(last, _)| is_sieved_alike(self.scraper, last));
        let last = match last {
            Some((last, body)) if request.is_immutable => return Ok(again(&last, body, request)),
            last => last,
        };
        let had = self.ask(request, last.as_ref().map(|(last, _)| &last.validators)).await;
        let not_archived = |error: ArchiveError| {
            let reason = error.to_string();
            (Lost { error: FetchError::NotArchived { reason }, tries: 1, answer: None }, None)
        };
        match (had, last) {
            (Err(mut lost), _) => {
                // What came in the place of a page is kept, so that a person can look at it.
                let kept = lost.answer.take().map(|answer| self.archive.keep(*answer)).transpose().map_err(not_archived)?;
                Err((lost, kept.map(|(receipt, _)| receipt)))
            }
            (Ok(Got::Unchanged), Some((last, body))) if !last.validators.is_empty() => Ok(again(&last, body, request)),
            (Ok(Got::Unchanged), _) => {
                Err((Lost { error: FetchError::HttpStatus { status: 304 }, tries: 1, answer: None }, None))
            }
            (Ok(Got::Answer(answer, validators)), _) => {
                let (receipt, page) = self.archive.keep(*answer).map_err(not_archived)?;
                if is_plain && (request.is_immutable || !validators.is_empty()) {
                    self.archive.remember(&LastAnswer { receipt: receipt.clone(), validators }).map_err(not_archived)?;
                }
                Ok((receipt, page))
            }
        }
    }

    /// The network's part of a page, as long as there is time.
    async fn ask(&mut self, request: &PageRequest, validators: Option<&Validators>) -> Result<Got, Lost> {
        let url = self.hosts.address(&request.url).map_err(Lost::untried)?;
        let host = url.host_str().map_or_else(String::new, str::to_owned);
        if let Some((error, tries)) = self.closed.get(&host) {
            return Err(Lost { error: error.clone(), tries: *tries, answer: None });
        }
        let ends_at = self.budget.ends_at();
        let out_of_time = || Err(Lost::untried(self.budget.out_of_time()));
        if ends_at <= Instant::now() {
            return out_of_time();
        }
        let in_turn = self.in_turn(request, &url, &host, validators);
        let had = match tokio::time::timeout_at(ends_at.into(), in_turn).await {
            Ok(had) => had,
            Err(_) => out_of_time(),
        };
        if let Err(Lost { error: error @ (FetchError::NotConnected { .. } | FetchError::RobotsBroken { .. }), tries, .. }) = &had
        {
            self.closed.insert(host, (error.clone(), *tries));
        }
        had
    }

    async fn in_turn(&self, request: &PageRequest, url: &Url, host: &str, validators: Option<&Validators>) -> Result<Got, Lost> {
        let turn = self.turns.of(host).await;
        let mut asked_at = turn.lock().await;
        let pause = Duration::from_millis(self.scraper.manifest().fetch.min_interval_ms);
        let pause = pause.max(self.client.may_read(url, &self.budget).await?);
        if let Some(asked_at) = *asked_at {
            tokio::time::sleep(pause.saturating_sub(asked_at.elapsed())).await;
        }
        let (scraper, key, budget) = (self.scraper, self.key, &self.budget);
        let got = self.client.get(&Ask { scraper, request, url, validators, key, budget }, pause).await;
        *asked_at = Some(Instant::now());
        got
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
