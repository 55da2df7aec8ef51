//! What a run tells on standard error: lines for people, or one JSON object a line for programs.
//!
//! The form is chosen once, when the program starts, and holds for all that is told with [`say`]. Texts of other people come
//! out harmless in both forms. Never writes to standard output, which is data, and never decides how a run ends.

use std::io::{IsTerminal as _, Write as _};
use std::sync::OnceLock;

use chrono::{SecondsFormat, Utc};
use indicatif::HumanBytes;
use serde_json::{Value, json};

use crate::exit::Exit;
use crate::harmless;
use crate::record::ProviderRecord;
use crate::run::Night;

/// How a run tells what it does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, clap::ValueEnum)]
pub enum LogForm {
    /// Lines for people.
    #[default]
    Plain,
    /// One JSON object a line.
    Json,
}

/// How much a line matters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    /// As it should be.
    Info,
    /// Something is not as it should be, and the run goes on.
    Warn,
    /// What was asked for was not done.
    Error,
}

impl Level {
    /// The word in the output.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Info => "info",
            Self::Warn => "warn",
            Self::Error => "error",
        }
    }
}

static FORM: OnceLock<LogForm> = OnceLock::new();

/// Chooses the form for the rest of the run; the first choice holds. Before it nothing is told: this is a library too.
pub fn choose(form: LogForm) {
    // Whoever chose first has told lines already.
    let _ = FORM.set(form);
}

/// The form that was chosen; plain where none was.
#[must_use]
pub fn form() -> LogForm {
    FORM.get().copied().unwrap_or_default()
}

/// Whether lines are drawn and redrawn for somebody who watches.
#[must_use]
pub fn is_watched() -> bool {
    form() == LogForm::Plain && std::io::stderr().is_terminal()
}

/// Tells one thing that happened: `plain` to people, `event` with its fields to programs.
///
/// # Panics
/// Never: fields are a JSON object wherever this is called.
pub fn say(level: Level, event: &str, plain: &str, fields: &Value) {
    let line = match FORM.get() {
        None => return,
        Some(LogForm::Plain) => harmless::line(plain),
        Some(LogForm::Json) => json_line(level, event, fields),
    };
    // A reader that closes the pipe ends no night.
    let _ = writeln!(std::io::stderr(), "{line}");
}

/// Tells a failure that costs nothing but what it says.
pub fn warn(event: &str, reason: &str) {
    say(Level::Warn, event, reason, &json!({ "reason": reason }));
}

fn json_line(level: Level, event: &str, fields: &Value) -> String {
    let ts = Utc::now().to_rfc3339_opts(SecondsFormat::Millis, true);
    // Written by hand so that these three come first: people read such lines too.
    let mut text = format!(r#"{{"ts":"{ts}","level":"{}","event":{}"#, level.word(), Value::from(event));
    for (name, value) in fields.as_object().expect("fields are an object") {
        text += &format!(",{}:{value}", Value::from(name.as_str()));
    }
    text.push('}');
    harmless::json(&text)
}

/// Tells that a night begins.
pub fn night_began(snapshot: &str, output: &std::path::Path) {
    let output = crate::remote::shown(output);
    if !is_watched() {
        let plain = format!("night {snapshot} begins, into {output}");
        say(Level::Info, "night_began", &plain, &json!({ "snapshot_id": snapshot, "output": output }));
    }
}

/// Tells how a night ended: one line a provider, and one of the whole. A person at a terminal has the table instead.
pub fn night_ended(night: &Night) {
    if is_watched() {
        return;
    }
    for provider in &night.record.providers {
        let level = if provider.status == "complete" { Level::Info } else { Level::Warn };
        say(level, "provider", &plain(provider), &fields(&night.record.snapshot_id, provider));
    }
    let record = &night.record;
    let seconds = (record.ended_at - record.started_at).as_seconds_f64();
    let complete = record.providers.iter().filter(|provider| provider.status == "complete").count();
    let level = match night.exit {
        Exit::Good => Level::Info,
        Exit::Partial => Level::Warn,
        _ => Level::Error,
    };
    let plain = format!(
        "night {}: {}, {} offers, {complete} of {} providers complete, {} findings, {seconds:.1} s, exit code {}",
        record.snapshot_id,
        record.outcome,
        record.offers,
        record.providers.len(),
        night.findings.len(),
        night.exit as u8
    );
    let fields = json!({
        "snapshot_id": record.snapshot_id,
        "outcome": record.outcome,
        "exit_code": night.exit as u8,
        "offers": record.offers,
        "rates": record.rates,
        "providers": record.providers.len(),
        "providers_complete": complete,
        "findings": night.findings.len(),
        "seconds": seconds,
        "program_version": record.program_version,
        "schema_version": record.schema_version,
    });
    say(level, "night", &plain, &fields);
}

/// Tells what a verb says beside its data.
pub fn said(talk: &str) {
    say(Level::Info, "said", talk, &json!({ "text": talk.trim_end() }));
}

/// Tells that a verb could not be done.
pub fn failed(exit: Exit, reason: &str, help: Option<&str>) {
    say(Level::Error, "failed", reason, &json!({ "exit_code": exit as u8, "reason": reason, "help": help }));
}

fn plain(provider: &ProviderRecord) -> String {
    let network = provider.network;
    let mut text = format!(
        "{}: {}, {} {}, {} skipped, {} held back, {}/{} scopes, {} requests ({} again), {}, {:.1} s",
        provider.provider,
        provider.status,
        provider.rows,
        if is_of_rates(&provider.provider) { "rates" } else { "offers" },
        provider.skipped,
        provider.quarantined,
        provider.scopes_complete,
        provider.scopes,
        network.requests,
        network.retries,
        HumanBytes(provider.bytes),
        provider.seconds
    );
    if let Some(reason) = &provider.reason {
        text += &format!("; {}", harmless::harmless(reason));
    }
    text
}

/// Whether a source has exchange rates and no offers.
fn is_of_rates(provider: &str) -> bool {
    gpuledger_scrapers::find(provider).is_some_and(|scraper| scraper.manifest().published.is_none())
}

/// The fields of a provider's line. Their names stay as they are.
fn fields(snapshot: &str, provider: &ProviderRecord) -> Value {
    let (offers, rates) = if is_of_rates(&provider.provider) { (0, provider.rows) } else { (provider.rows, 0) };
    json!({
        "snapshot_id": snapshot,
        "provider": provider.provider,
        "status": provider.status,
        "input": provider.input,
        "offers": offers,
        "rates": rates,
        "skipped": provider.skipped,
        "held_back": provider.quarantined,
        "scopes": provider.scopes,
        "scopes_complete": provider.scopes_complete,
        "requests": provider.network.requests,
        "retries": provider.network.retries,
        "network_bytes": provider.network.bytes,
        "bytes": provider.bytes,
        "seconds": provider.seconds,
        "scraper_version": provider.scraper_version,
        "reason": provider.reason,
    })
}
