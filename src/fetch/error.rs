//! Why a page could not be had, in words that a person can act on: which page, how often it was tried, what happened and
//! what to do next.

use crate::archive::Answer;

/// Why a page could not be had, named for what a maintainer does next. The text continues "page `a`, tried 4 times, …".
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum FetchError {
    /// The address is none: mend the manifest or `follow`.
    #[error("has an address that cannot be read: {reason}")]
    BadAddress {
        /// What is wrong with it.
        reason: String,
    },
    /// The key in the environment cannot be sent: set it again.
    #[error("was not asked for: the key in the environment variable {variable} {reason}")]
    BadKey {
        /// The variable.
        variable: String,
        /// What is wrong with the key, without the key.
        reason: &'static str,
    },
    /// No connection: look at the network.
    #[error("was not had: could not connect to {host}: {reason}")]
    NotConnected {
        /// The host.
        host: String,
        /// The innermost reason.
        reason: String,
    },
    /// The host's robots.txt forbids it: read the terms again.
    #[error("is not read: robots.txt of {host} does not allow {path}: {reason}")]
    RobotsForbid {
        /// The host.
        host: String,
        /// The path.
        path: String,
        /// Which rule.
        reason: String,
    },
    /// The host's robots.txt cannot be had, so nothing is read from it: try again tomorrow.
    #[error("is not read: robots.txt of {host} {reason}, so nothing is read from it tonight")]
    RobotsBroken {
        /// The host.
        host: String,
        /// What it did. `answered 503`
        reason: String,
    },
    /// The server answered with an error to the end.
    #[error("answered {status}")]
    HttpStatus {
        /// The status.
        status: u16,
    },
    /// The page may not exist, and does not.
    #[error("is not part of this night")]
    NotThere,
    /// The server wants a longer wait than a night has.
    #[error("is rate-limited: the server asks for a wait of {wait_seconds} s, and {limit_seconds} s is the most that is waited")]
    RateLimited {
        /// What it asks for.
        wait_seconds: u64,
        /// The limit.
        limit_seconds: u64,
    },
    /// No whole answer in the time given.
    #[error("did not arrive within {seconds} s")]
    TimedOut {
        /// The limit.
        seconds: u64,
    },
    /// The server was asked and went silent.
    #[error("went silent: nothing came for {seconds} s")]
    Silent {
        /// The limit.
        seconds: u64,
    },
    /// The time of the provider or of the night is over.
    #[error("was not had in time: {limit}")]
    OutOfTime {
        /// Which limit. `the 30 minutes that this provider has are over`
        limit: String,
    },
    /// The provider was asked as often as it may be in a night.
    #[error("was not asked for: {requests} requests are the most that are made to this provider in a night")]
    OutOfRequests {
        /// The limit.
        requests: u64,
    },
    /// The answer is larger than it can be.
    #[error("is larger than {mib} MiB after inflating")]
    TooLarge {
        /// The limit.
        mib: u64,
    },
    /// The answer broke off or could not be inflated.
    #[error("broke off: {reason}")]
    BrokenOff {
        /// How.
        reason: String,
    },
    /// The answer leads to another place than it may.
    #[error("leads astray: {reason}")]
    LedAstray {
        /// Where.
        reason: String,
    },
    /// The answer is there to keep programs out, or says that too much was asked, in the place of the page.
    #[error("answered 200 with no page but {what} (`{words}`), kept as {sha256}")]
    TurnedAway {
        /// What came. `a robot check`
        what: &'static str,
        /// The words that it was told by.
        words: &'static str,
        /// The archived answer.
        sha256: String,
    },
    /// The answer repeats the key, so it cannot be archived.
    #[error("repeats the key in its answer, which is therefore not kept")]
    EchoesKey,
    /// The answer came and could not be kept: look at the disk.
    #[error("could not be archived: {reason}")]
    NotArchived {
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
            Self::BadKey { .. } => "bad_key",
            Self::NotConnected { .. } => "not_connected",
            Self::RobotsForbid { .. } => "robots_forbid",
            Self::RobotsBroken { .. } => "robots_broken",
            Self::HttpStatus { .. } => "http_status",
            Self::NotThere => "not_there",
            Self::RateLimited { .. } => "rate_limited",
            Self::TimedOut { .. } | Self::Silent { .. } => "timed_out",
            Self::OutOfTime { .. } => "out_of_time",
            Self::OutOfRequests { .. } => "out_of_requests",
            Self::TooLarge { .. } => "too_large",
            Self::BrokenOff { .. } => "broken_off",
            Self::LedAstray { .. } => "led_astray",
            Self::TurnedAway { .. } => "turned_away",
            Self::EchoesKey => "echoes_key",
            Self::NotArchived { .. } => "not_archived",
        }
    }

    /// What a person does next.
    #[must_use]
    pub const fn next_step(&self) -> &'static str {
        match self {
            Self::BadAddress { .. } => "mend the address in the manifest, or the code that follows links",
            Self::BadKey { .. } => "set the variable again, to the key alone",
            Self::NotConnected { .. } => "look at the network and at the name of the host",
            Self::RobotsForbid { .. } => "read the provider's terms again",
            Self::HttpStatus { status: 401 | 403 } => "look at the key and at the provider's terms",
            Self::HttpStatus { status: 404 | 410 } => "look whether the page has moved",
            Self::HttpStatus { status: 429 } => "raise `min_interval_ms` in the manifest if it happens again",
            Self::RobotsBroken { .. } | Self::HttpStatus { .. } => "collect again later; if it stays, open the page in a browser",
            Self::NotThere => "nothing is to be done",
            Self::RateLimited { .. } => "collect again after that time",
            Self::TimedOut { .. } | Self::Silent { .. } => "collect again later; if it stays, raise `timeout_s` in the manifest",
            Self::OutOfTime { .. } => "raise `max_minutes` in the manifest, or --max-minutes",
            Self::OutOfRequests { .. } => "see in the run record what was tried again so often",
            Self::TooLarge { .. } => "look at the page; if it is right, raise `max_body_mib` in the manifest",
            Self::BrokenOff { .. } => "collect again later",
            Self::LedAstray { .. } => "open the page in a browser; if the new place is right, name it in the manifest",
            Self::TurnedAway { .. } => "open the page in a browser, and slow down or ask the provider",
            Self::EchoesKey => "tell the provider, and change the key",
            Self::NotArchived { .. } => "look at the disk",
        }
    }
}

/// A page that was not had, and how often it was tried.
#[derive(Debug)]
pub struct Lost {
    /// Why.
    pub error: FetchError,
    /// How often it was tried; 0 when it was not asked for at all.
    pub tries: usize,
    /// An answer that is no page and is kept all the same, to be looked at.
    pub answer: Option<Box<Answer>>,
}

impl Lost {
    /// A page that was not asked for.
    pub(super) const fn untried(error: FetchError) -> Self {
        Self { error, tries: 0, answer: None }
    }

    /// The whole sentence, for people.
    #[must_use]
    pub fn told(&self, page: &str) -> String {
        let tried = match self.tries {
            0 => String::new(),
            1 => ", tried once,".to_owned(),
            tries => format!(", tried {tries} times,"),
        };
        format!("page `{page}`{tried} {}; {}", self.error, self.error.next_step())
    }
}
