//! What a server said: the body, counted while it inflates, and what tells whether it changed.

use reqwest::header::{ETAG, HeaderMap, HeaderValue, IF_MODIFIED_SINCE, IF_NONE_MATCH, LAST_MODIFIED};
use reqwest::{RequestBuilder, Response};
use serde::{Deserialize, Serialize};

use super::client::{Ask, Trouble};
use super::error::FetchError;
use super::key::Key;
use crate::archive::Answer;
use crate::intake::{Intake, IntakeError, Taken};

/// Bytes that are handed to the worker at once: what arrives are parts of a few KiB, and waking another thread for each costs
/// more than what it does.
const CHUNK_BYTES: usize = 1 << 18;

/// Chunks that may wait for the worker.
const CHUNKS_WAITING_MAX: usize = 16;

/// What a server said.
#[derive(Debug)]
pub enum Got {
    /// The bytes that it sent, and what it needs to see whether they changed.
    Answer(Box<Answer>, Validators),
    /// The bytes of the last answer are still right.
    Unchanged,
}

/// The body, counted after inflating, so that a small answer cannot grow without end. Hashed and sieved on another thread,
/// so that a bulk file takes no longer than inflating it.
pub(super) async fn body(
    ask: &Ask<'_>,
    mut response: Response,
    trouble: impl Fn(reqwest::Error) -> Trouble,
) -> Result<Taken, Trouble> {
    let limits = &ask.scraper.manifest().fetch;
    let too_large = |mib| Trouble::lasting(FetchError::TooLarge { mib });
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
    while let Some(part) = response.chunk().await.map_err(&trouble)? {
        ask.budget.count_bytes(part.len());
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
        Err(error @ IntakeError::LineTooLong) => Err(Trouble::lasting(FetchError::BrokenOff { reason: error.to_string() })),
    }
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
    pub(super) fn of(headers: &HeaderMap) -> Self {
        let text = |name| headers.get(name).and_then(|value: &HeaderValue| value.to_str().ok()).map(str::to_owned);
        Self { etag: text(ETAG), last_modified: text(LAST_MODIFIED) }
    }

    /// Whether there are none.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.etag.is_none() && self.last_modified.is_none()
    }

    /// Whether one of them repeats the key.
    pub(super) fn hold(&self, key: &Key) -> bool {
        [&self.etag, &self.last_modified].into_iter().flatten().any(|text| key.is_in(text.as_bytes()))
    }

    pub(super) fn on_request(&self, mut request: RequestBuilder) -> RequestBuilder {
        if let Some(etag) = &self.etag {
            request = request.header(IF_NONE_MATCH, etag);
        }
        if let Some(date) = &self.last_modified {
            request = request.header(IF_MODIFIED_SINCE, date);
        }
        request
    }
}
