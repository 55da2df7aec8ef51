//! How long to wait, and whether to try again: our own growing waits, what a server asks for, and a network that is away.

use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant, SystemTime};

use backon::{BackoffBuilder as _, ExponentialBuilder};
use reqwest::header::{HeaderMap, RETRY_AFTER};

/// Tries of one page in all.
pub(super) const TRIES_MAX: usize = 4;

/// Tries of a host that cannot be connected to.
const CONNECT_TRIES_MAX: usize = 3;

/// Longest wait that a server may ask for before the page is given up.
pub(super) const RETRY_AFTER_MAX: Duration = Duration::from_secs(120);

/// The waits of a night, and what is known of the network.
#[derive(Debug, Clone)]
pub(super) struct Patience {
    first_wait: Duration,
    reach: Arc<Mutex<Reach>>,
}

#[derive(Debug, Default)]
struct Reach {
    has_connected: bool,
    first_in_vain: Option<Instant>,
}

impl Patience {
    pub(super) fn new(first_wait: Duration) -> Self {
        Self { first_wait, reach: Arc::default() }
    }

    /// Waits between the tries of one page.
    pub(super) fn waits(&self) -> impl Iterator<Item = Duration> + use<> {
        ExponentialBuilder::default().with_min_delay(self.first_wait).with_max_times(TRIES_MAX - 1).with_jitter().build()
    }

    /// A server has answered: the network is there.
    pub(super) fn connected(&self) {
        self.reach.lock().expect("nobody panics while holding this lock").has_connected = true;
    }

    /// Whether it makes sense to try to connect again. While nothing has answered tonight, all hosts share one short time to
    /// wait for the network; after that each is tried once, so that a night without a network is over soon.
    pub(super) fn is_worth_connecting_again(&self, tries: usize, began_at: Instant) -> bool {
        let mut reach = self.reach.lock().expect("nobody panics while holding this lock");
        let first_in_vain = *reach.first_in_vain.get_or_insert(began_at);
        tries < CONNECT_TRIES_MAX && (reach.has_connected || first_in_vain.elapsed() < self.first_wait * 4)
    }
}

/// The wait a server asks for, in seconds or until a date. `None` when it asks for none, or in no known form.
pub(crate) fn retry_after(headers: &HeaderMap, now: SystemTime) -> Option<Duration> {
    let text = headers.get(RETRY_AFTER)?.to_str().ok()?.trim();
    if !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit()) {
        // More seconds than can be counted are no less of a wait.
        return Some(Duration::from_secs(text.parse().unwrap_or(u64::MAX)));
    }
    let until = httpdate::parse_http_date(text).ok()?;
    Some(until.duration_since(now).unwrap_or(Duration::ZERO))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn retry_after_is_read_in_seconds_and_as_a_date_and_nothing_else_is_guessed() {
        let now = httpdate::parse_http_date("Wed, 14 Jan 2026 02:04:30 GMT").expect("a date");
        let wait = |text: &str| {
            let mut headers = HeaderMap::new();
            headers.insert(RETRY_AFTER, text.parse().expect("a header"));
            retry_after(&headers, now)
        };
        assert_eq!(wait("7"), Some(Duration::from_secs(7)));
        assert_eq!(wait("Wed, 14 Jan 2026 02:05:00 GMT"), Some(Duration::from_secs(30)));
        assert_eq!(wait("Wed, 14 Jan 2026 02:00:00 GMT"), Some(Duration::ZERO));
        assert_eq!(wait("Thu, 01 Jan 1970 00:00:00 GMT"), Some(Duration::ZERO));
        assert_eq!(wait("1000000000000000000"), Some(Duration::from_secs(1_000_000_000_000_000_000)));
        assert_eq!(wait("1000000000000000000000000000000"), Some(Duration::from_secs(u64::MAX)));
        assert!(wait("Fri, 31 Dec 9999 23:59:59 GMT").is_some_and(|wait| wait > RETRY_AFTER_MAX));
        for text in ["soon", "-5", "7.5", "", "7 s", "2026-01-14T02:05:00Z", "+7"] {
            assert_eq!(wait(text), None, "{text}");
        }
    }

    #[test]
    fn a_network_that_is_away_is_waited_for_once_and_not_by_every_host() {
        let patience = Patience::new(Duration::from_millis(50));
        let now = Instant::now();
        assert!(patience.is_worth_connecting_again(1, now));
        assert!(!patience.is_worth_connecting_again(3, now));
        std::thread::sleep(Duration::from_millis(210));
        assert!(!patience.is_worth_connecting_again(1, Instant::now()));
        // One host that answers shows that the network is there.
        patience.connected();
        assert!(patience.is_worth_connecting_again(1, Instant::now()));
    }
}
