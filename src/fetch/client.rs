//! One page over HTTP: limits, retries and the errors in words.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime};

use backon::{BackoffBuilder as _, ExponentialBuilder};
use chrono::Utc;
use gpuledger_scrapers::contract::{Method, PageRequest, Scraper};
use gpuledger_scrapers::sha256;
use reqwest::header::{ETAG, HeaderMap, HeaderValue, IF_MODIFIED_SINCE, IF_NONE_MATCH, LAST_MODIFIED, RETRY_AFTER};
use reqwest::redirect;
use reqwest::{RequestBuilder, Response, StatusCode};
use serde::{Deserialize, Serialize};
use url::Url;

use super::key::Key;
use super::robots::Robots;
use crate::archive::Answer;
use crate::intake::{Intake, IntakeError, Taken};

/// Tries of one page in all.
const TRIES_MAX: usize = 4;

/// Bytes that are handed to the worker at once: what arrives are parts of a few KiB, and waking another thread for each costs
/// more than what it does.
const CHUNK_BYTES: usize = 1 << 18;

/// Chunks that may wait for the worker.
const CHUNKS_WAITING_MAX: usize = 16;

/// Longest wait that a server may ask for before the page is given up.
const RETRY_AFTER_MAX: Duration = Duration::from_secs(120);

/// Why a page could not be had, named for what a maintainer does next.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum FetchError {
    /// The address is none: mend the manifest or `follow`.
    #[error("read address `{url}`: {reason}")]
    BadAddress {
        /// The address.
        url: String,
        /// What is wrong with it.
        reason: String,
    },
    /// No connection: look at the network.
    #[error("could not connect to {host}: {reason}")]
    NotConnected {
        /// The host.
        host: String,
        /// The innermost reason.
        reason: String,
    },
    /// The host's robots.txt forbids it: read the terms again.
    #[error("robots.txt of {host} does not allow {path}: {reason}")]
    RobotsForbid {
        /// The host.
        host: String,
        /// The path.
        path: String,
        /// Which rule.
        reason: String,
    },
    /// The host's robots.txt cannot be had, so nothing is read from it: try again tomorrow.
    #[error("robots.txt of {host} answered {status}, so nothing is read from it tonight")]
    RobotsBroken {
        /// The host.
        host: String,
        /// The status.
        status: u16,
    },
    /// The server answered with an error to the end.
    #[error("page `{page}` answered {status} after {tries} tries")]
    HttpStatus {
        /// The page.
        page: String,
        /// The status.
        status: u16,
        /// How often it was tried.
        tries: usize,
    },
    /// The page may not exist, and does not.
    #[error("page `{page}` is not part of this night")]
    NotThere {
        /// The page.
        page: String,
    },
    /// The server wants a longer wait than a night has.
    #[error("page `{page}` is rate-limited: the server asks for {wait_seconds} s")]
    RateLimited {
        /// The page.
        page: String,
        /// What it asks for.
        wait_seconds: u64,
    },
    /// No whole answer in the time given.
    #[error("page `{page}` did not arrive within {seconds} s")]
    TimedOut {
        /// The page.
        page: String,
        /// The limit.
        seconds: u64,
    },
    /// The answer is larger than it can be.
    #[error("page `{page}` is larger than {mib} MiB after inflating")]
    TooLarge {
        /// The page.
        page: String,
        /// The limit.
        mib: u64,
    },
    /// The answer broke off or could not be inflated.
    #[error("page `{page}` broke off: {reason}")]
    BrokenOff {
        /// The page.
        page: String,
        /// How.
        reason: String,
    },
    /// The answer leads to another place than it may.
    #[error("page `{page}` leads astray: {reason}")]
    LedAstray {
        /// The page.
        page: String,
        /// Where.
        reason: String,
    },
    /// The answer came and could not be kept: look at the disk.
    #[error("archive page `{page}`: {reason}")]
    NotArchived {
        /// The page.
        page: String,
        /// What the archive said.
        reason: String,
    },
}

impl FetchError {
    /// A stable code for counting. `timed_out`
    #[must_use]
    pub const fn code(&self) -> &'static str {
        match self {
            Self::BadAddress { .. } => "bad_address",
            Self::NotConnected { .. } => "not_connected",
            Self::RobotsForbid { .. } => "robots_forbid",
            Self::RobotsBroken { .. } => "robots_broken",
            Self::HttpStatus { .. } => "http_status",
            Self::NotThere { .. } => "not_there",
            Self::RateLimited { .. } => "rate_limited",
            Self::TimedOut { .. } => "timed_out",
            Self::TooLarge { .. } => "too_large",
            Self::BrokenOff { .. } => "broken_off",
            Self::LedAstray { .. } => "led_astray",
            Self::NotArchived { .. } => "not_archived",
        }
    }
}

/// What to do after a try that failed.
enum Trouble {
    /// It will not get better.
    Lasting(FetchError),
    /// It may; perhaps after a wait that the server names.
    Passing(FetchError, Option<Duration>),
}

/// An HTTP client with this program's manners.
#[derive(Debug, Clone)]
pub struct Client {
    http: reqwest::Client,
    first_wait: Duration,
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
        // Redirects stay on the host that was asked: a price list that moved is a change for a person to see.
        let same_host = redirect::Policy::custom(|attempt| {
            let is_at_home = attempt.previous().first().is_some_and(|first| {
                let to = attempt.url();
                let is_upgrade = first.scheme() == "http" && to.scheme() == "https" && to.port().is_none();
                first.host_str() == to.host_str() && (first.origin() == to.origin() || is_upgrade)
            });
            if attempt.previous().len() > 5 {
                attempt.error("more than five redirects")
            } else if is_at_home {
                attempt.follow()
            } else {
                // The rest of the address may repeat the key.
                let to = attempt.url().origin().ascii_serialization();
                attempt.error(format!("redirected to another host: {to}"))
            }
        });
        let http = reqwest::Client::builder()
            .user_agent(user_agent(contact))
            .redirect(same_host)
            .connect_timeout(Duration::from_secs(20))
            .build();
        Ok(Self { http: http.map_err(|error| error.to_string())?, first_wait, robots: Arc::default() })
    }

    /// Whether robots.txt of the host allows an address. It is read once a night and host.
    ///
    /// # Errors
    /// When it forbids it, or cannot be read for now: then nothing is read from the host tonight.
    pub async fn may_read(&self, url: &Url) -> Result<(), FetchError> {
        let origin = url.origin().ascii_serialization();
        let known = self.robots.lock().expect("nobody panics while holding this lock").get(&origin).cloned();
        let robots = match known {
            Some(robots) => robots,
            None => {
                let robots = self.read_robots(url).await?;
                self.robots.lock().expect("nobody panics while holding this lock").insert(origin, robots.clone());
                robots
            }
        };
        robots.allow(url)
    }

    /// robots.txt of a host, tried as often as a page.
    async fn read_robots(&self, url: &Url) -> Result<Robots, FetchError> {
        let mut waits = self.waits();
        loop {
            let error = match Robots::read(&self.http, url).await {
                Ok(robots) => return Ok(robots),
                Err(error) => error,
            };
            match waits.next() {
                Some(wait) => tokio::time::sleep(wait).await,
                None => return Err(error),
            }
        }
    }

    /// Waits between the tries of one page.
    fn waits(&self) -> impl Iterator<Item = Duration> + use<> {
        ExponentialBuilder::default().with_min_delay(self.first_wait).with_max_times(TRIES_MAX - 1).with_jitter().build()
    }

    /// Fetches one page, trying again where that may help.
    ///
    /// # Errors
    /// When no try brought a whole answer.
    pub async fn get(
        &self,
        scraper: &'static dyn Scraper,
        request: &PageRequest,
        url: &Url,
        validators: Option<&Validators>,
    ) -> Result<Got, FetchError> {
        let limits = &scraper.manifest().fetch;
        let ask = Ask { scraper, request, url, validators, key: Key::of(scraper.manifest()).filter(|_| request.with_key) };
        let mut waits = self.waits();
        let mut tries = 0;
        loop {
            tries += 1;
            let limit = Duration::from_secs(limits.timeout_s);
            let tried = match tokio::time::timeout(limit, self.try_once(&ask, tries)).await {
                Ok(tried) => tried,
                Err(_) => {
                    Err(Trouble::Passing(FetchError::TimedOut { page: request.name.clone(), seconds: limits.timeout_s }, None))
                }
            };
            match tried {
                Ok(answer) => return Ok(answer),
                Err(Trouble::Lasting(error)) => return Err(error),
                Err(Trouble::Passing(error, asked_for)) => match (waits.next(), asked_for) {
                    (None, _) => return Err(error),
                    (Some(_), Some(asked_for)) if asked_for > RETRY_AFTER_MAX => {
                        return Err(FetchError::RateLimited { page: request.name.clone(), wait_seconds: asked_for.as_secs() });
                    }
                    // A wait of nothing is no wait to keep.
                    (Some(own), asked_for) => tokio::time::sleep(asked_for.filter(|wait| !wait.is_zero()).unwrap_or(own)).await,
                },
            }
        }
    }

    async fn try_once(&self, ask: &Ask<'_>, tries: usize) -> Result<Got, Trouble> {
        let Ask { request, .. } = ask;
        let response = self.request(ask).send().await.map_err(|error| trouble(ask, error))?;
        let status = response.status();
        if status == StatusCode::NOT_MODIFIED {
            return Ok(Got::Unchanged);
        }
        if !status.is_success() {
            let error = FetchError::HttpStatus { page: request.name.clone(), status: status.as_u16(), tries };
            if status == StatusCode::NOT_FOUND && request.may_be_missing {
                return Err(Trouble::Lasting(FetchError::NotThere { page: request.name.clone() }));
            }
            return Err(if may_pass(status) {
                Trouble::Passing(error, retry_after(response.headers(), SystemTime::now()))
            } else {
                Trouble::Lasting(error)
            });
        }
        let validators = Validators::of(response.headers());
        let taken = body(ask, response).await?;
        let answer = Answer {
            page: request.name.clone(),
            scope: request.scope.clone(),
            url: request.url.clone(),
            method: request.method,
            request_body_sha256: request.body.as_ref().map(|body| sha256(body.as_bytes())),
            http_status: Some(status.as_u16()),
            observed_at: Utc::now(),
            body: taken.body,
            whole: taken.whole,
        };
        Ok(Got::Answer(Box::new(answer), validators))
    }

    fn request(&self, ask: &Ask<'_>) -> RequestBuilder {
        let Ask { request, url, validators, key, .. } = ask;
        let url = key.as_ref().map_or_else(|| (*url).clone(), |key| key.on_url(url));
        let mut http = match request.method {
            Method::Get => self.http.get(url),
            Method::Post => self
                .http
                .post(url)
                .header("Content-Type", "application/json; charset=UTF-8")
                .body(request.body.as_ref().map_or_else(String::new, String::clone)),
        };
        if let Some(validators) = validators {
            http = validators.on_request(http);
        }
        match key {
            Some(key) => key.on_request(http),
            None => http,
        }
    }
}

/// The body, counted after inflating, so that a small answer cannot grow without end. Hashed and sieved on another thread,
/// so that a bulk file takes no longer than inflating it.
async fn body(ask: &Ask<'_>, mut response: Response) -> Result<Taken, Trouble> {
    let limits = &ask.scraper.manifest().fetch;
    let too_large = |mib| Trouble::Lasting(FetchError::TooLarge { page: ask.request.name.clone(), mib });
    if response.content_length().is_some_and(|announced| announced > limits.max_body_mib * 1_024 * 1_024) {
        return Err(too_large(limits.max_body_mib));
    }
    let mut intake = Intake::new(ask.scraper, limits);
    let (chunks, mut arriving) = tokio::sync::mpsc::channel::<Vec<u8>>(CHUNKS_WAITING_MAX);
    let worker = tokio::task::spawn_blocking(move || {
        while let Some(chunk) = arriving.blocking_recv() {
            intake.push(chunk.into())?;
        }
        intake.finish()
    });
    let mut waiting = Vec::with_capacity(2 * CHUNK_BYTES);
    while let Some(part) = response.chunk().await.map_err(|error| trouble(ask, error))? {
        waiting.extend_from_slice(&part);
        // The worker goes away early only when it has refused the page.
        if waiting.len() >= CHUNK_BYTES
            && chunks.send(std::mem::replace(&mut waiting, Vec::with_capacity(2 * CHUNK_BYTES))).await.is_err()
        {
            break;
        }
    }
    // As above.
    let _ = chunks.send(waiting).await;
    drop(chunks);
    match worker.await.expect("the worker does not panic") {
        Ok(taken) => Ok(taken),
        Err(IntakeError::TooLarge { mib }) => Err(too_large(mib)),
        Err(error @ IntakeError::LineTooLong) => {
            Err(Trouble::Lasting(FetchError::BrokenOff { page: ask.request.name.clone(), reason: error.to_string() }))
        }
    }
}

fn trouble(ask: &Ask<'_>, error: reqwest::Error) -> Trouble {
    // The address may hold the key, and the reason is told.
    let error = error.without_url();
    let reason = innermost(&error);
    let reason = ask.key.as_ref().map_or(reason.clone(), |key| key.redact(&reason));
    if error.is_redirect() {
        return Trouble::Lasting(FetchError::LedAstray { page: ask.request.name.clone(), reason });
    }
    if error.is_connect() {
        return Trouble::Passing(not_connected(ask.url, reason), None);
    }
    Trouble::Passing(FetchError::BrokenOff { page: ask.request.name.clone(), reason }, None)
}

/// One page to ask for, with all that belongs to it.
struct Ask<'a> {
    scraper: &'static dyn Scraper,
    request: &'a PageRequest,
    url: &'a Url,
    validators: Option<&'a Validators>,
    key: Option<Key>,
}

/// What a server said.
#[derive(Debug)]
pub enum Got {
    /// The bytes that it sent, and what it needs to see whether they changed.
    Answer(Box<Answer>, Validators),
    /// The bytes of the last answer are still right.
    Unchanged,
}

/// What a server needs to see whether its answer changed.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Validators {
    /// `ETag`, as sent.
    pub etag: Option<String>,
    /// `Last-Modified`, as sent.
    pub last_modified: Option<String>,
}

impl Validators {
    fn of(headers: &HeaderMap) -> Self {
        let text = |name| headers.get(name).and_then(|value: &HeaderValue| value.to_str().ok()).map(str::to_owned);
        Self { etag: text(ETAG), last_modified: text(LAST_MODIFIED) }
    }

    /// Whether there are none.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.etag.is_none() && self.last_modified.is_none()
    }

    fn on_request(&self, mut request: RequestBuilder) -> RequestBuilder {
        if let Some(etag) = &self.etag {
            request = request.header(IF_NONE_MATCH, etag);
        }
        if let Some(date) = &self.last_modified {
            request = request.header(IF_MODIFIED_SINCE, date);
        }
        request
    }
}

/// The error for a host that cannot be reached.
pub(super) fn not_connected(url: &Url, reason: String) -> FetchError {
    FetchError::NotConnected { host: url.host_str().map_or_else(String::new, str::to_owned), reason }
}

/// The innermost reason of an error: the outer ones only say that something failed.
pub(super) fn innermost(error: &dyn std::error::Error) -> String {
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

/// Whether a status may heal: overload, faults of the server, and a 404 of a file that an index has just named.
fn may_pass(status: StatusCode) -> bool {
    status.is_server_error()
        || [StatusCode::TOO_MANY_REQUESTS, StatusCode::REQUEST_TIMEOUT, StatusCode::NOT_FOUND].contains(&status)
}

/// The wait a server asks for, in seconds or until a date. `None` when it asks for none, or in no known form.
fn retry_after(headers: &HeaderMap, now: SystemTime) -> Option<Duration> {
    let text = headers.get(RETRY_AFTER)?.to_str().ok()?.trim();
    if let Ok(seconds) = text.parse() {
        return Some(Duration::from_secs(seconds));
    }
    let until = httpdate::parse_http_date(text).ok()?;
    Some(until.duration_since(now).unwrap_or(Duration::ZERO))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn retry_after_is_read_in_seconds_and_as_a_date() {
        let now = httpdate::parse_http_date("Wed, 14 Jan 2026 02:04:30 GMT").expect("a date");
        let wait = |text: &str| {
            let mut headers = HeaderMap::new();
            headers.insert(RETRY_AFTER, text.parse().expect("a header"));
            retry_after(&headers, now)
        };
        assert_eq!(wait("7"), Some(Duration::from_secs(7)));
        assert_eq!(wait("Wed, 14 Jan 2026 02:05:00 GMT"), Some(Duration::from_secs(30)));
        assert_eq!(wait("Wed, 14 Jan 2026 02:00:00 GMT"), Some(Duration::ZERO));
        assert_eq!(wait("soon"), None);
    }
}
