//! What a night tells people who are not there: price changes, a night that failed, a provider that stays away.
//!
//! In: a night that is over, the published tables, the table `[alerts]` of a schedule. Out: messages to webhooks, a list of
//! those that wait in `alerts/`, and how it went in `runs/<id>.alerts.json`. It comes after everything else, takes a bounded
//! time, and whatever goes wrong in it is a line of the log: a night never fails by it and never waits for it.
//!
//! A message is told at least once. It is on the disk before it is sent and is taken off after the webhook said yes, so only
//! a run that dies, or an answer that is lost, between the two makes it come twice; both then have the same id.

mod config;
mod message;
mod send;
mod spool;
mod work;

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use chrono::{DateTime, Utc};
use gpuledger_scrapers::sha256;
use serde::{Deserialize, Serialize};

use crate::archive::{drafts, read_json, write_whole};
use crate::exit::Exit;
use crate::failed::Failed;
use crate::log;
use crate::night::SnapshotId;
use crate::runs;
pub use config::{Alerts, Form, Kind, Nights, OfGpu, OfProvider, Percent, Place, Webhook, Webhooks};
pub use message::{Alert, ChangeData, LINES_MAX};
use send::{Sender, Sent};
pub use spool::{AGE_DAYS_MAX, FOLDER, Held, Spool, SpoolError, WAITING_MAX, Waiting};
pub use work::AlertsError;

/// Most lines of `runs/<id>.alerts.json`.
const RECORD_LINES_MAX: usize = 500;

/// Longest time in which what is to be told is worked out, beside the time for sending it.
const WORKING_OUT_MAX: Duration = Duration::from_secs(240);

/// How long telling may take.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// For all that is sent in one night.
    pub whole: Duration,
    /// First wait between tries; it doubles.
    pub first_wait: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self { whole: Duration::from_secs(60), first_wait: Duration::from_secs(1) }
    }
}

/// A night that is over.
#[derive(Debug, Clone)]
pub struct NightEnd {
    /// Root of the dataset.
    pub output: PathBuf,
    /// The schedule's name.
    pub schedule: String,
    /// When the night was due: what is told of a failed night is told once for each such time, however often it is tried.
    pub due_at: DateTime<Utc>,
    /// How it ended.
    pub exit: Exit,
    /// Its snapshot, published or refused; `None` where it did not come that far.
    pub snapshot: Option<SnapshotId>,
    /// Why it failed, if it did.
    pub reason: Option<String>,
}

/// How one message to one webhook went.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Delivered {
    /// The message.
    pub alert_id: String,
    /// What it is about.
    pub kind: Kind,
    /// Its title.
    pub title: String,
    /// The webhook's name, which is not its address.
    pub webhook: String,
    /// delivered, waiting or given_up.
    pub outcome: String,
    /// Tries of this night.
    pub tries: usize,
    /// Why it is not delivered.
    pub reason: Option<String>,
    /// When.
    pub at: DateTime<Utc>,
}

impl Delivered {
    fn new(alert: &Alert, webhook: &str, outcome: &str, tries: usize, reason: Option<String>) -> Self {
        Self {
            alert_id: alert.id.clone(),
            kind: alert.kind,
            title: alert.title.clone(),
            webhook: webhook.to_owned(),
            outcome: outcome.to_owned(),
            tries,
            reason,
            at: Utc::now(),
        }
    }

    /// In one line.
    #[must_use]
    pub fn told(&self) -> String {
        let reason = self.reason.as_ref().map_or_else(String::new, |reason| format!(": {reason}"));
        format!("alert {} to {}: {}, tried {} times{reason}", self.kind.word(), self.webhook, self.outcome, self.tries)
    }
}

impl Webhook {
    /// The webhook's name in files and in the log: the variable that has its address, or its host and a part of a hash.
    #[must_use]
    pub fn name(&self) -> String {
        match &self.place {
            Place::Environment(variable) => format!("{variable} ({})", self.form.word()),
            Place::Local(url) => {
                let hash = &sha256(url.as_str().as_bytes())[..8];
                format!("{} {hash} ({})", url.origin().ascii_serialization(), self.form.word())
            }
        }
    }
}

/// Tells what there is to tell of a night, and what waits since earlier ones. Never fails: what goes wrong is a line of the
/// log and of the night's record.
pub async fn after_night(alerts: &Alerts, night: &NightEnd) -> Vec<Delivered> {
    after_night_within(alerts, night, Limits::default()).await
}

/// The same within other limits.
pub async fn after_night_within(alerts: &Alerts, night: &NightEnd, limits: Limits) -> Vec<Delivered> {
    if alerts.webhooks.0.is_empty() {
        return Vec::new();
    }
    let (alerts, night) = (alerts.clone(), night.clone());
    // A fault of this program in here must not be one of the night.
    let telling = tokio::spawn(async move { tell(&alerts, &night, limits).await });
    let told = match tokio::time::timeout(limits.whole + WORKING_OUT_MAX, telling).await {
        Ok(Ok(Ok(told))) => return told,
        Ok(Ok(Err(error))) => Failed::new(Exit::Refused, "", &error).to_string(),
        Ok(Err(_)) => "fail at telling, which is a fault of this program".to_owned(),
        Err(_) => format!("finding out what to tell took longer than {} s; the next night tells it", WORKING_OUT_MAX.as_secs()),
    };
    log::warn("alerts_failed", &told);
    Vec::new()
}

async fn tell(alerts: &Alerts, night: &NightEnd, limits: Limits) -> Result<Vec<Delivered>, AlertsError> {
    let mut held = Held::take(&night.output, &night.schedule)?;
    if held.was_damaged {
        log::warn("alerts_lost", "the list of alerts that wait could not be read and is begun anew");
    }
    // What cannot be worked out tonight is worked out at the next night; what waits is sent all the same.
    let new = match work::out(alerts, night, &mut held.spool).await {
        Ok(new) => new,
        Err(error) => {
            log::warn("alerts_failed", &Failed::new(Exit::Refused, "", &error).to_string());
            Vec::new()
        }
    };
    let names: Vec<String> = alerts.webhooks.0.iter().map(Webhook::name).collect();
    for alert in &new {
        names.iter().for_each(|name| held.spool.add(name, alert));
    }
    let mut told = Vec::new();
    for (waiting, reason) in held.spool.give_up(&names, Utc::now()) {
        told.push(Delivered::new(&waiting.alert, &waiting.webhook, "given_up", 0, Some(reason)));
    }
    // On the disk before anything is sent: a run that dies now tells it next time.
    held.save()?;
    let sender = Sender::new(limits.first_wait, Instant::now() + limits.whole).map_err(AlertsError::Client)?;
    send_all(alerts, &sender, &mut held, &mut told).await?;
    for delivered in &told {
        let level = if delivered.outcome == "delivered" { log::Level::Info } else { log::Level::Warn };
        let fields = serde_json::to_value(delivered).expect("it is plain data");
        log::say(level, "alert", &delivered.told(), &fields);
    }
    keep(&night.output, night.snapshot.unwrap_or_else(|| SnapshotId::at(night.due_at)), &told)?;
    Ok(told)
}

/// Sends what waits, to all webhooks side by side. A webhook that fails is left alone until the next night.
async fn send_all(alerts: &Alerts, sender: &Sender, held: &mut Held, told: &mut Vec<Delivered>) -> Result<(), AlertsError> {
    let (results, mut arriving) = tokio::sync::mpsc::channel::<(String, Alert, Sent)>(16);
    for webhook in alerts.webhooks.0.clone() {
        let (name, sender, results) = (webhook.name(), sender.clone(), results.clone());
        let waiting = held.spool.waiting.iter().filter(|waiting| waiting.webhook == name);
        let messages: Vec<Alert> = waiting.map(|waiting| waiting.alert.clone()).collect();
        tokio::spawn(async move {
            let mut messages = messages.into_iter();
            let mut trouble = None;
            for alert in messages.by_ref() {
                let sent = sender.send(&webhook, &alert).await;
                trouble.clone_from(&sent.trouble);
                let is_heard = results.send((name.clone(), alert, sent)).await.is_ok();
                if trouble.is_some() || !is_heard {
                    break;
                }
            }
            for alert in messages {
                let sent = Sent { tries: 0, trouble: trouble.clone() };
                let _ = results.send((name.clone(), alert, sent)).await;
            }
        });
    }
    drop(results);
    while let Some((webhook, alert, Sent { tries, trouble })) = arriving.recv().await {
        let outcome = if trouble.is_none() { "delivered" } else { "waiting" };
        if trouble.is_none() {
            held.spool.arrived(&webhook, &alert.id);
            held.save()?;
        }
        told.push(Delivered::new(&alert, &webhook, outcome, tries, trouble));
    }
    told.sort_by(|a, b| (&a.webhook, a.at).cmp(&(&b.webhook, b.at)));
    Ok(())
}

/// Adds to the record of a night how its messages went.
fn keep(output: &Path, night: SnapshotId, told: &[Delivered]) -> Result<(), AlertsError> {
    if told.is_empty() {
        return Ok(());
    }
    let path = runs::path(output, night, "alerts.json");
    let mut lines: Vec<Delivered> = read_json(&path).ok().flatten().unwrap_or_default();
    lines.extend_from_slice(told);
    lines.drain(..lines.len().saturating_sub(RECORD_LINES_MAX));
    let text = serde_json::to_vec_pretty(&lines).expect("it is plain data");
    Ok(write_whole(&drafts(output), &path, &text).map_err(SpoolError::from)?)
}
