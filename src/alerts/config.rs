//! The table `[alerts]` of a schedule file: whom to tell, and what.
//!
//! In: TOML. Out: checked values. An address that is a secret stands in no file: the file names the environment variable
//! that has it. A word, a card or a provider that nobody knows is refused.

use std::collections::BTreeMap;

use serde::Deserialize;
use url::Url;

use crate::fetch::is_private;
use crate::query;

/// Most webhooks of one schedule.
const WEBHOOKS_MAX: usize = 8;

/// Whom to tell of a night, and what. Without a webhook nobody is told.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Alerts {
    /// Where messages go.
    pub webhooks: Webhooks,
    /// What is told.
    pub tell: Vec<Kind>,
    /// Smallest change of a price that is told, in percent, up or down.
    pub min_change_percent: Percent,
    /// The same for single GPUs, as people type them; goes before the provider's.
    pub min_change_percent_of_gpu: OfGpu,
    /// The same for single providers.
    pub min_change_percent_of_provider: OfProvider,
    /// Nights in a row without a provider after which it is told.
    pub missing_nights: Nights,
}

impl Default for Alerts {
    fn default() -> Self {
        Self {
            webhooks: Webhooks::default(),
            tell: vec![Kind::PriceChanges, Kind::FailedNight, Kind::MissingProvider],
            min_change_percent: Percent(1.0),
            min_change_percent_of_gpu: OfGpu::default(),
            min_change_percent_of_provider: OfProvider::default(),
            missing_nights: Nights(3),
        }
    }
}

impl Alerts {
    /// Whether something of a kind is told to anybody.
    #[must_use]
    pub fn tells(&self, kind: Kind) -> bool {
        !self.webhooks.0.is_empty() && self.tell.contains(&kind)
    }

    /// Smallest change that is told of a provider's price of a card, in percent.
    #[must_use]
    pub fn threshold_percent(&self, provider: &str, gpu_model: &str) -> f64 {
        let of_provider = self.min_change_percent_of_provider.0.get(provider);
        self.min_change_percent_of_gpu.0.get(gpu_model).or(of_provider).unwrap_or(&self.min_change_percent).0
    }
}

/// What can be told.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// Prices that their sources changed.
    PriceChanges,
    /// A night that published nothing.
    FailedNight,
    /// A provider that stays away.
    MissingProvider,
}

impl Kind {
    /// The word in files and messages.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::PriceChanges => "price_changes",
            Self::FailedNight => "failed_night",
            Self::MissingProvider => "missing_provider",
        }
    }
}

/// A number of percent that is not below 0.
#[derive(Debug, Clone, Copy, PartialEq, Deserialize)]
#[serde(try_from = "f64")]
pub struct Percent(pub f64);

impl Eq for Percent {}

impl TryFrom<f64> for Percent {
    type Error = String;

    fn try_from(percent: f64) -> Result<Self, String> {
        if (0.0..=1_000_000.0).contains(&percent) {
            Ok(Self(percent))
        } else {
            Err("a number of percent from 0 on is needed".to_owned())
        }
    }
}

/// A number of nights from 1 on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(try_from = "u32")]
pub struct Nights(pub usize);

impl TryFrom<u32> for Nights {
    type Error = String;

    fn try_from(nights: u32) -> Result<Self, String> {
        match usize::try_from(nights) {
            Ok(nights @ 1..=365) => Ok(Self(nights)),
            _ => Err("a number of nights from 1 to 365 is needed".to_owned()),
        }
    }
}

/// Thresholds by canonical name of the card.
#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize)]
#[serde(try_from = "BTreeMap<String, Percent>")]
pub struct OfGpu(pub BTreeMap<String, Percent>);

impl TryFrom<BTreeMap<String, Percent>> for OfGpu {
    type Error = String;

    fn try_from(typed: BTreeMap<String, Percent>) -> Result<Self, String> {
        let mut by_model: BTreeMap<String, (usize, Percent)> = BTreeMap::new();
        for (typed, percent) in typed {
            let models = query::is_model(&typed).map_err(|error| error.to_string())?;
            for model in &models {
                // "H100 PCIe" says more than "h100", which means it too.
                let known = by_model.entry((*model).to_owned()).or_insert((models.len(), percent));
                if models.len() < known.0 {
                    *known = (models.len(), percent);
                }
            }
        }
        Ok(Self(by_model.into_iter().map(|(model, (_, percent))| (model, percent)).collect()))
    }
}

/// Thresholds by provider.
#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize)]
#[serde(try_from = "BTreeMap<String, Percent>")]
pub struct OfProvider(pub BTreeMap<String, Percent>);

impl TryFrom<BTreeMap<String, Percent>> for OfProvider {
    type Error = String;

    fn try_from(typed: BTreeMap<String, Percent>) -> Result<Self, String> {
        match typed.keys().find(|name| gpuledger_scrapers::find(name).is_none()) {
            Some(name) => Err(format!("there is no provider `{name}`; `gpuledger providers` lists them")),
            None => Ok(Self(typed)),
        }
    }
}

/// A few webhooks.
#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize)]
#[serde(try_from = "Vec<Webhook>")]
pub struct Webhooks(pub Vec<Webhook>);

impl TryFrom<Vec<Webhook>> for Webhooks {
    type Error = String;

    fn try_from(webhooks: Vec<Webhook>) -> Result<Self, String> {
        if webhooks.len() > WEBHOOKS_MAX {
            return Err(format!("there are {} webhooks, and {WEBHOOKS_MAX} at most are told", webhooks.len()));
        }
        let twice = webhooks.iter().enumerate().find(|(index, webhook)| webhooks[..*index].contains(webhook));
        twice.map_or(Ok(Self(webhooks.clone())), |(index, _)| Err(format!("webhook {} is there twice", index + 1)))
    }
}

/// Somebody who is told.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(try_from = "Written")]
pub struct Webhook {
    /// Where the address stands.
    pub place: Place,
    /// The form in which that service takes messages.
    pub form: Form,
}

/// Where an address stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Place {
    /// In this environment variable, because it is a secret.
    Environment(String),
    /// In the file: one of this machine or its own network, which is no secret.
    Local(Url),
}

/// The form of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, serde::Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Form {
    /// All facts as JSON, for programs.
    Json,
    /// Slack, and services that understand its messages.
    Slack,
    /// Feishu and Lark.
    Feishu,
    /// DingTalk.
    Dingtalk,
}

impl Form {
    /// The word in files and records.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Json => "json",
            Self::Slack => "slack",
            Self::Feishu => "feishu",
            Self::Dingtalk => "dingtalk",
        }
    }
}

/// A webhook as it is written.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
struct Written {
    url_env: Option<String>,
    url: Option<String>,
    form: Form,
}

impl TryFrom<Written> for Webhook {
    type Error = String;

    fn try_from(written: Written) -> Result<Self, String> {
        let place = match (written.url_env, written.url) {
            (Some(name), None) if is_variable(&name) => Place::Environment(name),
            // What was written in the place of a name may be the secret itself.
            (Some(_), None) => {
                return Err("`url_env` is the name of an environment variable, such as GPULEDGER_ALERTS_URL".to_owned());
            }
            (None, Some(url)) => Place::Local(local(&url)?),
            _ => return Err("a webhook has either `url_env` or `url`".to_owned()),
        };
        Ok(Self { place, form: written.form })
    }
}

fn is_variable(name: &str) -> bool {
    let is_letter = |letter: char| letter.is_ascii_alphanumeric() || letter == '_';
    !name.is_empty()
        && name.len() <= 100
        && name.chars().all(is_letter)
        && !name.starts_with(|first: char| first.is_ascii_digit())
}

fn local(text: &str) -> Result<Url, String> {
    let url = Url::parse(text).map_err(|_| "`url` is no address".to_owned())?;
    match reachable(&url) {
        Ok(()) if is_private(&url) => Ok(url),
        Ok(()) => Err("`url` is for an address in your own network; the address of a service is a secret: put it into an \
                       environment variable and name that in `url_env`"
            .to_owned()),
        Err(reason) => Err(format!("`url` {reason}")),
    }
}

/// Whether an address may be sent to: the web, and what is a secret only under a lock.
///
/// # Errors
/// What is wrong with it, without the address.
pub(super) fn reachable(url: &Url) -> Result<(), String> {
    if !url.username().is_empty() || url.password().is_some() {
        return Err("has a user name or a password in it".to_owned());
    }
    match url.scheme() {
        "https" => Ok(()),
        "http" if is_private(url) => Ok(()),
        "http" => Err("is http, which everybody on the way reads; use https".to_owned()),
        _ => Err("is no address of the web".to_owned()),
    }
}
