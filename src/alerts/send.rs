//! One message to one webhook, tried a few times within a bounded time.
//!
//! The address goes into the request and nowhere else: no error, record or line of the log has it. Redirects are not
//! followed, because they would take the message to somebody who was not named.

use std::time::{Duration, Instant, SystemTime};

use backon::{BackoffBuilder as _, ExponentialBuilder};
use reqwest::{Client, StatusCode, redirect};
use serde_json::Value;
use url::Url;

use super::config::{Form, Place, Webhook, reachable};
use super::message::Alert;
use crate::fetch::{innermost, retry_after};
use crate::harmless;

/// Longest time for one try.
const TRY_MAX: Duration = Duration::from_secs(10);

/// Tries of one message in one night.
const TRIES_MAX: usize = 3;

/// Most of an answer that is read.
const ANSWER_BYTES_MAX: usize = 64 * 1_024;

/// What sends messages.
#[derive(Debug, Clone)]
pub(super) struct Sender {
    http: Client,
    first_wait: Duration,
    ends_at: Instant,
}

/// How sending ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Sent {
    /// Tries that were made.
    pub(super) tries: usize,
    /// Why it did not arrive; `None` when it did.
    pub(super) trouble: Option<String>,
}

/// A try that failed.
struct Trouble {
    reason: String,
    /// Whether another may help, perhaps after a wait that the server names.
    again: Option<Option<Duration>>,
}

impl Trouble {
    fn lasting(reason: impl Into<String>) -> Self {
        Self { reason: reason.into(), again: None }
    }

    fn passing(reason: impl Into<String>) -> Self {
        Self { reason: reason.into(), again: Some(None) }
    }
}

impl Sender {
    /// A sender that is done by a time.
    ///
    /// # Errors
    /// When TLS cannot be set up.
    pub(super) fn new(first_wait: Duration, ends_at: Instant) -> Result<Self, String> {
        let http = Client::builder()
            .user_agent(concat!("gpuledger/", env!("CARGO_PKG_VERSION")))
            .redirect(redirect::Policy::none())
            .connect_timeout(TRY_MAX)
            .build();
        Ok(Self { http: http.map_err(|error| error.to_string())?, first_wait, ends_at })
    }

    /// Sends a message.
    pub(super) async fn send(&self, webhook: &Webhook, alert: &Alert) -> Sent {
        let url = match address(&webhook.place) {
            Ok(url) => url,
            Err(reason) => return Sent { tries: 0, trouble: Some(reason) },
        };
        let body = alert.body(webhook.form).to_string();
        let waits = ExponentialBuilder::default().with_min_delay(self.first_wait).with_max_times(TRIES_MAX - 1).with_jitter();
        let (mut waits, mut tries) = (waits.build(), 0);
        loop {
            let left = self.ends_at.saturating_duration_since(Instant::now());
            if left.is_zero() {
                let reason = "the time for telling it was over".to_owned();
                return Sent { tries, trouble: Some(reason) };
            }
            tries += 1;
            let time = left.min(TRY_MAX);
            let tried = match tokio::time::timeout(time, self.once(&url, webhook.form, &alert.id, &body)).await {
                Ok(tried) => tried,
                Err(_) => Err(Trouble::passing(format!("it did not answer within {:.0} s", time.as_secs_f64()))),
            };
            let Err(Trouble { reason, again }) = tried else { return Sent { tries, trouble: None } };
            let given_up = Sent { tries, trouble: Some(without(&reason, &url)) };
            let (Some(asked_for), Some(own)) = (again, waits.next()) else { return given_up };
            let wait = asked_for.unwrap_or(own);
            if Instant::now() + wait >= self.ends_at {
                return given_up;
            }
            tokio::time::sleep(wait).await;
        }
    }

    async fn once(&self, url: &Url, form: Form, id: &str, body: &str) -> Result<(), Trouble> {
        let request = self.http.post(url.clone()).header("Content-Type", "application/json; charset=utf-8");
        // What JSON services know as a mark that the same message may come twice.
        let request = request.header("Idempotency-Key", id).body(body.to_owned());
        let mut response = request.send().await.map_err(|error| {
            let error = error.without_url();
            Trouble::passing(if error.is_connect() {
                format!("cannot connect: {}", innermost(&error))
            } else {
                innermost(&error)
            })
        })?;
        let status = response.status();
        if status.is_redirection() {
            return Err(Trouble::lasting(format!("it answered {}, and redirects are not followed", status.as_u16())));
        }
        if !status.is_success() {
            let may_pass =
                status.is_server_error() || [StatusCode::TOO_MANY_REQUESTS, StatusCode::REQUEST_TIMEOUT].contains(&status);
            let again = may_pass.then(|| retry_after(response.headers(), SystemTime::now()));
            return Err(Trouble { reason: format!("it answered {}", status.as_u16()), again });
        }
        let mut answer = Vec::new();
        while let Ok(Some(part)) = response.chunk().await {
            answer.extend_from_slice(&part);
            if answer.len() > ANSWER_BYTES_MAX {
                break;
            }
        }
        refusal(form, &answer).map_or(Ok(()), |code| Err(Trouble::lasting(format!("it refused the message with code {code}"))))
    }
}

/// The code with which a service refuses a message in an answer that says 200.
fn refusal(form: Form, answer: &[u8]) -> Option<i64> {
    let names: &[&str] = match form {
        Form::Json | Form::Slack => return None,
        Form::Feishu => &["code", "StatusCode"],
        Form::Dingtalk => &["errcode"],
    };
    let answer: Value = serde_json::from_slice(answer).ok()?;
    names.iter().find_map(|name| answer[*name].as_i64()).filter(|code| *code != 0)
}

/// The address, from where it stands.
fn address(place: &Place) -> Result<Url, String> {
    match place {
        Place::Local(url) => Ok(url.clone()),
        Place::Environment(name) => {
            let text = std::env::var(name).map_err(|error| match error {
                std::env::VarError::NotPresent => format!("the environment variable {name} is not set"),
                std::env::VarError::NotUnicode(_) => format!("the environment variable {name} is not text"),
            })?;
            let url = Url::parse(text.trim()).map_err(|_| format!("what stands in {name} is no address"))?;
            reachable(&url).map_err(|reason| format!("what stands in {name} {reason}"))?;
            Ok(url)
        }
    }
}

/// A reason without any part of the address that may be a secret.
fn without(reason: &str, url: &Url) -> String {
    let parts = url.path_segments().into_iter().flatten().chain(url.query());
    let repeats = parts.filter(|part| part.len() >= 6).any(|part| reason.contains(part));
    if repeats { "a reason that repeats the address".to_owned() } else { harmless::cut(reason, 300).into_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_that_says_200_and_means_no_is_known() {
        assert_eq!(refusal(Form::Feishu, br#"{"code":19024,"msg":"Key Words Not Found"}"#), Some(19024));
        assert_eq!(refusal(Form::Feishu, br#"{"StatusCode":0,"StatusMessage":"success","code":0}"#), None);
        assert_eq!(refusal(Form::Dingtalk, br#"{"errcode":310000,"errmsg":"keywords not in content"}"#), Some(310_000));
        assert_eq!(refusal(Form::Dingtalk, br#"{"errcode":0,"errmsg":"ok"}"#), None);
        for form in [Form::Json, Form::Slack, Form::Feishu, Form::Dingtalk] {
            assert_eq!(refusal(form, b"ok"), None);
        }
    }

    #[test]
    fn a_reason_that_repeats_the_address_is_not_told() {
        let url =
            Url::parse("https://hooks.example.com/services/T000/B000/secretsecret?token=anothersecret").expect("an address");
        assert_eq!(without("it answered 500", &url), "it answered 500");
        for reason in ["no route to /services/T000/B000/secretsecret", "bad token=anothersecret"] {
            assert_eq!(without(reason, &url), "a reason that repeats the address");
        }
    }
}
