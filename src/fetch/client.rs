//! One page over HTTP: who asks, how often, where redirects may lead, and what counts as an answer.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant, SystemTime};

use chrono::Utc;
use gpuledger_scrapers::contract::{Method, PageRequest, Scraper};
use gpuledger_scrapers::sha256;
use reqwest::header::LOCATION;
use reqwest::{Response, StatusCode, redirect};
use url::Url;

use super::answer::{self, Got, Validators};
use super::budget::Budget;
use super::error::{FetchError, Lost};
use super::hosts;
use super::key::Key;
use super::patience::{Patience, RETRY_AFTER_MAX, retry_after};
use super::robots::Robots;
use super::wall::wall;
use crate::archive::Answer;

/// Redirects of one page that are followed.
const REDIRECTS_MAX: usize = 5;

/// Longest time in which a server that was asked may send nothing.
const SILENCE_MAX: Duration = Duration::from_secs(60);

/// What to do after a try that failed.
pub(super) struct Trouble {
    pub(super) error: FetchError,
    pub(super) again: Again,
    /// An answer that is no page and is kept all the same.
    pub(super) answer: Option<Box<Answer>>,
}

/// Whether another try may help.
#[derive(Clone, Copy)]
pub(super) enum Again {
    /// It will not get better.
    Never,
    /// It may; perhaps after a wait that the server names.
    After(Option<Duration>),
}

impl Trouble {
    pub(super) const fn lasting(error: FetchError) -> Self {
        Self { error, again: Again::Never, answer: None }
    }

    pub(super) const fn passing(error: FetchError) -> Self {
        Self { error, again: Again::After(None), answer: None }
    }
}

/// An HTTP client with this program's manners.
#[derive(Debug, Clone)]
pub struct Client {
    http: reqwest::Client,
    patience: Patience,
    silence_max: Duration,
    night_ends_at: Option<Instant>,
    robots: Arc<Mutex<HashMap<String, Robots>>>,
}

impl Client {
    /// A client that says honestly who it is.
    ///
    /// # Errors
    /// When the contact cannot stand in a header, or TLS cannot be set up.
    pub fn new(contact: Option<&str>) -> Result<Self, String> {
        Self::with_first_wait(contact, Duration::from_secs(2))
    }

    /// A client whose first wait between tries is given, for tests.
    ///
    /// # Errors
    /// As [`Client::new`].
    pub fn with_first_wait(contact: Option<&str>, first_wait: Duration) -> Result<Self, String> {
        Self::with_waits(contact, first_wait, SILENCE_MAX)
    }

    /// A client whose first wait between tries and whose longest silence of a server are given, for tests.
    ///
    /// # Errors
    /// As [`Client::new`].
    pub fn with_waits(contact: Option<&str>, first_wait: Duration, silence_max: Duration) -> Result<Self, String> {
        let http = reqwest::Client::builder()
            .user_agent(user_agent(contact))
            // Redirects are followed here, one by one: each is counted, held against robots.txt, and kept at home.
            .redirect(redirect::Policy::none())
            .connect_timeout(Duration::from_secs(20))
            .read_timeout(silence_max)
            .build();
        Ok(Self {
            http: http.map_err(|error| error.to_string())?,
            patience: Patience::new(first_wait),
            silence_max,
            night_ends_at: None,
            robots: Arc::default(),
        })
    }

    /// The same client, for a night that ends at a time.
    #[must_use]
    pub fn until(self, night_ends_at: Option<Instant>) -> Self {
        Self { night_ends_at, ..self }
    }

    /// What a provider may take of the night from now on.
    pub(super) fn budget(&self, scraper: &dyn Scraper) -> Budget {
        Budget::new(&scraper.manifest().fetch, self.night_ends_at)
    }

    /// Whether robots.txt of the host allows an address, and the pause it asks for. It is read once a night and host.
    ///
    /// # Errors
    /// When it forbids it, or cannot be read for now: then nothing is read from the host tonight.
    pub(super) async fn may_read(&self, url: &Url, budget: &Budget) -> Result<Duration, Lost> {
        let origin = url.origin().ascii_serialization();
        let known = self.robots.lock().expect("nobody panics while holding this lock").get(&origin).cloned();
        let robots = match known {
            Some(robots) => robots,
            None => {
                let robots = self.read_robots(url, budget).await?;
                self.robots.lock().expect("nobody panics while holding this lock").insert(origin, robots.clone());
                robots
            }
        };
        robots.allow(url).map_err(Lost::untried)?;
        Ok(robots.pause())
    }

    /// robots.txt of a host, tried as often as a page.
    async fn read_robots(&self, url: &Url, budget: &Budget) -> Result<Robots, Lost> {
        let (mut waits, mut tries) = (self.patience.waits(), 0);
        loop {
            tries += 1;
            let began_at = Instant::now();
            let error = match Robots::read(&self.http, url, budget).await {
                Ok(robots) => {
                    self.patience.connected();
                    return Ok(robots);
                }
                Err(error) => error,
            };
            match waits.next() {
                Some(wait) if self.may_heal(&error, tries, began_at) => {
                    budget.count_retry();
                    tokio::time::sleep(wait).await;
                }
                _ => return Err(Lost { error, tries, answer: None }),
            }
        }
    }

    /// Whether what failed is worth another try as far as the network goes.
    fn may_heal(&self, error: &FetchError, tries: usize, began_at: Instant) -> bool {
        match error {
            FetchError::NotConnected { .. } => self.patience.is_worth_connecting_again(tries, began_at),
            FetchError::OutOfRequests { .. } => false,
            _ => true,
        }
    }

    /// Fetches one page, trying again where that may help. `pause` is the shortest time between two requests.
    ///
    /// # Errors
    /// When no try brought a whole answer.
    pub(super) async fn get(&self, ask: &Ask<'_>, pause: Duration) -> Result<Got, Lost> {
        let timeout_s = ask.scraper.manifest().fetch.timeout_s;
        let (mut waits, mut tries) = (self.patience.waits(), 0);
        loop {
            tries += 1;
            let began_at = Instant::now();
            let tried = match tokio::time::timeout(Duration::from_secs(timeout_s), self.try_once(ask)).await {
                Ok(tried) => tried,
                Err(_) => Err(Trouble::passing(FetchError::TimedOut { seconds: timeout_s })),
            };
            let Trouble { error, again, answer } = match tried {
                Ok(got) => return Ok(got),
                Err(trouble) => trouble,
            };
            let lost = |error| Err(Lost { error, tries, answer });
            let Again::After(asked_for) = again else { return lost(error) };
            let Some(own) = waits.next().filter(|_| self.may_heal(&error, tries, began_at)) else { return lost(error) };
            if let Some(wait) = asked_for.filter(|wait| *wait > RETRY_AFTER_MAX) {
                let (wait_seconds, limit_seconds) = (wait.as_secs(), RETRY_AFTER_MAX.as_secs());
                return lost(FetchError::RateLimited { wait_seconds, limit_seconds });
            }
            ask.budget.count_retry();
            // A wait of nothing is no wait to keep, and no try comes sooner than the pace of the host allows.
            tokio::time::sleep(asked_for.filter(|wait| !wait.is_zero()).unwrap_or(own).max(pause)).await;
        }
    }

    async fn try_once(&self, ask: &Ask<'_>) -> Result<Got, Trouble> {
        let mut url = ask.key.filter(|_| ask.request.with_key).map_or_else(|| ask.url.clone(), |key| key.on_url(ask.url));
        for _ in 0..=REDIRECTS_MAX {
            ask.budget.spend_request().map_err(Trouble::lasting)?;
            let response = self.request(ask, &url).send().await.map_err(|error| self.trouble(ask, error))?;
            self.patience.connected();
            match response.status() {
                StatusCode::MOVED_PERMANENTLY
                | StatusCode::FOUND
                | StatusCode::SEE_OTHER
                | StatusCode::TEMPORARY_REDIRECT
                | StatusCode::PERMANENT_REDIRECT => url = self.redirected(ask, &url, &response).await?,
                StatusCode::NOT_MODIFIED => return Ok(Got::Unchanged),
                // Any other kind of success is a part of the page, or none of it.
                StatusCode::OK => return self.take(ask, response).await,
                status => return Err(refused(ask, status, &response)),
            }
        }
        let reason = format!("it is redirected more than {REDIRECTS_MAX} times");
        Err(Trouble::lasting(FetchError::LedAstray { reason }))
    }

    /// Where a redirect leads, if it stays where it was asked: a price list that moved is a change for a person to see.
    async fn redirected(&self, ask: &Ask<'_>, from: &Url, response: &Response) -> Result<Url, Trouble> {
        let astray = |reason: String| Trouble::lasting(FetchError::LedAstray { reason });
        let status = response.status().as_u16();
        let to = response.headers().get(LOCATION).and_then(|to| to.to_str().ok()).and_then(|to| from.join(to).ok());
        let Some(to) = to else { return Err(astray(format!("it answered {status} and not where to"))) };
        if !hosts::is_at_home(from, &to) {
            // The rest of the address may repeat the key.
            let origin = to.origin().ascii_serialization();
            let what = if hosts::is_private(&to) && !hosts::is_private(from) { "a private address" } else { "another host" };
            return Err(astray(format!("it is redirected to {what}: {origin}")));
        }
        if ask.request.method == Method::Post && [301, 302, 303].contains(&status) {
            return Err(astray(format!("it was asked for with a body and answered {status}, which would drop the body")));
        }
        self.may_read(&to, ask.budget).await.map_err(|lost| Trouble::lasting(lost.error))?;
        Ok(to)
    }

    async fn take(&self, ask: &Ask<'_>, response: Response) -> Result<Got, Trouble> {
        let (status, asked_for) = (response.status(), retry_after(response.headers(), SystemTime::now()));
        let validators = Validators::of(response.headers());
        let taken = answer::body(ask, response, |error| self.trouble(ask, error)).await?;
        if ask.key.is_some_and(|key| key.is_in(&taken.body) || validators.hold(key)) {
            return Err(Trouble::lasting(FetchError::EchoesKey));
        }
        let request = ask.request;
        let blocked = if taken.whole.is_none() { wall(&taken.body) } else { None };
        let answer = Box::new(Answer {
            page: request.name.clone(),
            scope: request.scope.clone(),
            url: request.url.clone(),
            method: request.method,
            request_body_sha256: request.body.as_ref().map(|body| sha256(body.as_bytes())),
            http_status: Some(status.as_u16()),
            observed_at: Utc::now(),
            body: taken.body,
            whole: taken.whole,
        });
        match blocked {
            None => Ok(Got::Answer(answer, validators)),
            Some((what, words)) => {
                let error = FetchError::TurnedAway { what, words, sha256: sha256(&answer.body) };
                Err(Trouble { error, again: Again::After(asked_for), answer: Some(answer) })
            }
        }
    }

    fn request(&self, ask: &Ask<'_>, url: &Url) -> reqwest::RequestBuilder {
        let request = ask.request;
        let mut http = match request.method {
            Method::Get => self.http.get(url.clone()),
            Method::Post => self
                .http
                .post(url.clone())
                .header("Content-Type", "application/json; charset=UTF-8")
                .body(request.body.as_ref().map_or_else(String::new, String::clone)),
        };
        if let Some(validators) = ask.validators {
            http = validators.on_request(http);
        }
        match ask.key.filter(|_| request.with_key) {
            Some(key) => key.on_request(http),
            None => http,
        }
    }

    fn trouble(&self, ask: &Ask<'_>, error: reqwest::Error) -> Trouble {
        // The address may hold the key, and the reason is told.
        let error = error.without_url();
        let reason = innermost(&error);
        Trouble::passing(if error.is_connect() {
            not_connected(ask.url, reason)
        } else if error.is_timeout() {
            FetchError::Silent { seconds: self.silence_max.as_secs() }
        } else {
            FetchError::BrokenOff { reason }
        })
    }
}

/// One page to ask for, with all that belongs to it.
pub(super) struct Ask<'a> {
    pub(super) scraper: &'static dyn Scraper,
    pub(super) request: &'a PageRequest,
    pub(super) url: &'a Url,
    pub(super) validators: Option<&'a Validators>,
    /// The provider's key, whether it is sent along or not: no answer may repeat it.
    pub(super) key: Option<&'a Key>,
    pub(super) budget: &'a Budget,
}

/// An answer that is no whole page.
fn refused(ask: &Ask<'_>, status: StatusCode, response: &Response) -> Trouble {
    if status == StatusCode::NOT_FOUND && ask.request.may_be_missing {
        return Trouble::lasting(FetchError::NotThere);
    }
    let error = FetchError::HttpStatus { status: status.as_u16() };
    let again = if may_pass(status) { Again::After(retry_after(response.headers(), SystemTime::now())) } else { Again::Never };
    Trouble { error, again, answer: None }
}

/// Whether a status may heal: overload, faults of the server, and a 404 of a file that an index has just named.
fn may_pass(status: StatusCode) -> bool {
    status.is_server_error()
        || [StatusCode::TOO_MANY_REQUESTS, StatusCode::REQUEST_TIMEOUT, StatusCode::NOT_FOUND].contains(&status)
}

/// The error for a host that cannot be reached.
pub(super) fn not_connected(url: &Url, reason: String) -> FetchError {
    FetchError::NotConnected { host: url.host_str().map_or_else(String::new, str::to_owned), reason }
}

/// The innermost reason of an error: the outer ones only say that something failed.
pub(crate) fn innermost(error: &dyn std::error::Error) -> String {
    let mut inner = error;
    while let Some(source) = inner.source() {
        inner = source;
    }
    inner.to_string()
}

fn user_agent(contact: Option<&str>) -> String {
    let contact = contact.map_or_else(String::new, |contact| format!("; contact: {contact}"));
    format!("gpuledger/{} (reads published GPU prices once a night{contact})", env!("CARGO_PKG_VERSION"))
}
