//! robots.txt of a host, read once a night: missing allows, forbidding is obeyed, broken means not tonight.

use std::time::Duration;

use texting_robots::Robot;
use url::Url;

use super::client::{FetchError, innermost, not_connected};

/// The name robots.txt knows this program by.
const AGENT: &str = "gpuledger";

/// Longest file that is read; the rest of a longer one does not count, as the standard says.
const BYTES_MAX: usize = 500 * 1_024;

/// What a host's robots.txt says.
#[derive(Debug, Clone)]
pub(super) enum Robots {
    /// There is none.
    Missing,
    /// These rules.
    Rules(String),
}

impl Robots {
    /// Reads the file once. It is broken, or the host is out of reach, as an error.
    pub(super) async fn read(http: &reqwest::Client, page: &Url) -> Result<Self, FetchError> {
        let mut url = page.clone();
        url.set_path("/robots.txt");
        url.set_query(None);
        let response = http.get(url.clone()).timeout(Duration::from_secs(30)).send().await;
        let mut response = match response {
            Ok(response) => response,
            Err(error) if error.is_redirect() => return Ok(Self::Missing),
            Err(error) => return Err(not_connected(&url, innermost(&error))),
        };
        let status = response.status();
        if status.is_server_error() || status.as_u16() == 429 {
            let host = url.host_str().map_or_else(String::new, str::to_owned);
            return Err(FetchError::RobotsBroken { host, status: status.as_u16() });
        }
        if !status.is_success() {
            return Ok(Self::Missing);
        }
        let mut body = Vec::new();
        while let Some(chunk) = response.chunk().await.map_err(|error| not_connected(&url, innermost(&error)))? {
            body.extend_from_slice(&chunk);
            if body.len() > BYTES_MAX {
                body.truncate(BYTES_MAX);
                break;
            }
        }
        let text = String::from_utf8_lossy(&body).into_owned();
        // A page for people where robots.txt should be holds no rules.
        Ok(if text.trim_start().starts_with('<') { Self::Missing } else { Self::Rules(text) })
    }

    pub(super) fn allow(&self, url: &Url) -> Result<(), FetchError> {
        let forbid = |reason: &str| {
            Err(FetchError::RobotsForbid {
                host: url.host_str().map_or_else(String::new, str::to_owned),
                path: url.path().to_owned(),
                reason: reason.to_owned(),
            })
        };
        match self {
            Self::Missing => Ok(()),
            Self::Rules(text) => match Robot::new(AGENT, text.as_bytes()) {
                Ok(robot) if robot.allowed(url.as_str()) => Ok(()),
                Ok(_) => forbid("a rule for this program or for all"),
                Err(_) => forbid("it cannot be read"),
            },
        }
    }
}
