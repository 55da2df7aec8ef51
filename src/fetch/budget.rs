//! How much of a night one provider may take: time and requests, counted as they are spent.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use gpuledger_scrapers::manifest::Fetch;
use serde::Serialize;

use super::error::FetchError;

/// What asking a provider cost.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Traffic {
    /// Requests sent, for robots.txt, redirects and tries again as well.
    pub requests: u64,
    /// Of these, tries again of something that failed.
    pub retries: u64,
    /// Bytes of pages that arrived, after inflating, also of those that were refused.
    pub bytes: u64,
}

/// What a provider has left of a night.
#[derive(Debug)]
pub struct Budget {
    ends_at: Instant,
    limit: String,
    requests_max: u64,
    requests: AtomicU64,
    retries: AtomicU64,
    bytes: AtomicU64,
}

impl Budget {
    /// The whole of what a provider may take, from now on; less where the night itself ends before.
    #[must_use]
    pub fn new(limits: &Fetch, night_ends_at: Option<Instant>) -> Self {
        let own = Instant::now() + Duration::from_secs(limits.max_minutes * 60);
        let (ends_at, limit) = match night_ends_at {
            Some(night) if night < own => (night, "the time that was given to the whole night is over".to_owned()),
            _ => (own, format!("the {} minutes that this provider has are over", limits.max_minutes)),
        };
        Self {
            ends_at,
            limit,
            requests_max: limits.requests_max(),
            requests: AtomicU64::new(0),
            retries: AtomicU64::new(0),
            bytes: AtomicU64::new(0),
        }
    }

    /// When the time is over.
    pub(super) const fn ends_at(&self) -> Instant {
        self.ends_at
    }

    pub(super) fn out_of_time(&self) -> FetchError {
        FetchError::OutOfTime { limit: self.limit.clone() }
    }

    /// Spends a request.
    ///
    /// # Errors
    /// When there is none left.
    pub(super) fn spend_request(&self) -> Result<(), FetchError> {
        if self.requests.fetch_add(1, Ordering::Relaxed) < self.requests_max {
            return Ok(());
        }
        self.requests.fetch_sub(1, Ordering::Relaxed);
        Err(FetchError::OutOfRequests { requests: self.requests_max })
    }

    pub(super) fn count_retry(&self) {
        self.retries.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn count_bytes(&self, bytes: usize) {
        self.bytes.fetch_add(u64::try_from(bytes).expect("a chunk fits in memory"), Ordering::Relaxed);
    }

    /// What was spent so far.
    #[must_use]
    pub fn spent(&self) -> Traffic {
        Traffic {
            requests: self.requests.load(Ordering::Relaxed),
            retries: self.retries.load(Ordering::Relaxed),
            bytes: self.bytes.load(Ordering::Relaxed),
        }
    }
}
