//! robots.txt of a host, read once a night: missing allows, forbidding is obeyed, broken means not tonight.

use std::time::Duration;

use reqwest::Response;
use reqwest::header::LOCATION;
use texting_robots::Robot;
use url::Url;

use super::budget::Budget;
use super::client::{innermost, not_connected};
use super::error::FetchError;
use super::hosts::is_private;

/// The name robots.txt knows this program by.
const AGENT: &str = "gpuledger";

/// Longest file that is read; the rest of a longer one does not count, as the standard says.
const BYTES_MAX: usize = 500 * 1_024;

/// Redirects that are followed, to other hosts as well, as the standard says. A file behind more counts as missing.
const REDIRECTS_MAX: usize = 5;

/// Longest time for the file.
const TIMEOUT: Duration = Duration::from_secs(30);

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
    pub(super) async fn read(http: &reqwest::Client, page: &Url, budget: &Budget) -> Result<Self, FetchError> {
        let broken = |reason: &str| FetchError::RobotsBroken { host: host_of(page), reason: reason.to_owned() };
        match tokio::time::timeout(TIMEOUT, Self::read_whole(http, page, budget)).await {
            Ok(read) => read,
            Err(_) => Err(broken("did not arrive within 30 s")),
        }
    }

    async fn read_whole(http: &reqwest::Client, page: &Url, budget: &Budget) -> Result<Self, FetchError> {
        let broken = |reason: String| FetchError::RobotsBroken { host: host_of(page), reason };
        let mut url = page.clone();
        url.set_path("/robots.txt");
        url.set_query(None);
        url.set_fragment(None);
        for _ in 0..=REDIRECTS_MAX {
            budget.spend_request()?;
            let response = http.get(url.clone()).send().await.map_err(|error| {
                let reason = innermost(&error.without_url());
                if url.host() == page.host() { not_connected(&url, reason) } else { broken(format!("leads to {reason}")) }
            })?;
            let status = response.status();
            if status.is_redirection() {
                let to = response.headers().get(LOCATION).and_then(|to| to.to_str().ok()).and_then(|to| url.join(to).ok());
                match to {
                    None => return Ok(Self::Missing),
                    Some(to) if !may_lead(page, &to) => return Err(broken("leads to a place that may not be asked".to_owned())),
                    Some(to) => url = to,
                }
                continue;
            }
            if status.is_server_error() || status.as_u16() == 429 {
                return Err(broken(format!("answered {}", status.as_u16())));
            }
            if !status.is_success() {
                return Ok(Self::Missing);
            }
            return Self::rules(response).await.map_err(|error| broken(format!("broke off: {}", innermost(&error))));
        }
        Ok(Self::Missing)
    }

    async fn rules(mut response: Response) -> Result<Self, reqwest::Error> {
        let mut body = Vec::new();
        while let Some(chunk) = response.chunk().await.map_err(reqwest::Error::without_url)? {
            body.extend_from_slice(&chunk);
            if body.len() > BYTES_MAX {
                // A rule that is cut in two would be another rule.
                let whole_lines = body[..BYTES_MAX].iter().rposition(|byte| *byte == b'\n').unwrap_or(0);
                body.truncate(whole_lines);
                break;
            }
        }
        let text = String::from_utf8_lossy(&body).trim_start_matches('\u{feff}').to_owned();
        // A page for people where robots.txt should be holds no rules.
        Ok(if text.trim_start().starts_with('<') { Self::Missing } else { Self::Rules(text) })
    }

    /// Whether a page may be read.
    pub(super) fn allow(&self, url: &Url) -> Result<(), FetchError> {
        let forbid = |reason: &str| {
            Err(FetchError::RobotsForbid { host: host_of(url), path: url.path().to_owned(), reason: reason.to_owned() })
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

    /// The pause between two requests that the file asks for.
    pub(super) fn pause(&self) -> Duration {
        let Self::Rules(text) = self else { return Duration::ZERO };
        let seconds = Robot::new(AGENT, text.as_bytes()).ok().and_then(|robot| robot.delay).unwrap_or(0.0);
        // A pause longer than a night is one that no night has.
        Duration::try_from_secs_f32(seconds.clamp(0.0, 86_400.0)).unwrap_or(Duration::ZERO)
    }
}

/// Whether robots.txt of a page's host may be read at another address: anywhere on the web, and inside only from inside.
fn may_lead(page: &Url, to: &Url) -> bool {
    ["http", "https"].contains(&to.scheme()) && to.host().is_some() && (is_private(page) || !is_private(to))
}

fn host_of(url: &Url) -> String {
    url.host_str().map_or_else(String::new, str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn robots_txt_may_move_to_another_host_of_the_web_and_not_into_a_private_network() {
        let may = |page: &str, to: &str| may_lead(&Url::parse(page).expect("a"), &Url::parse(to).expect("b"));
        assert!(may("https://prices.azure.com/a", "https://www.microsoft.com/robots.txt"));
        assert!(may("http://127.0.0.1:8080/a", "http://localhost:8081/robots.txt"));
        for to in ["http://127.0.0.1/robots.txt", "http://169.254.169.254/", "http://[::1]/", "http://localhost/", "ftp://a.com/"]
        {
            assert!(!may("https://prices.azure.com/a", to), "{to}");
        }
    }
}
