//! What is told, and the form in which each service takes it.
//!
//! Texts of other people come out harmless, and without what a chat obeys: no mention of a person or a room is made of a
//! page's words. A message has a bounded number of lines and says how many more there are.

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::config::{Form, Kind};
use crate::changes::PriceChange;
use crate::harmless;

/// Most things that one message lists.
pub const LINES_MAX: usize = 20;

/// Longest line, in characters.
const LINE_MAX: usize = 200;

/// Longest title, in characters.
const TITLE_MAX: usize = 150;

/// Something to tell, with all that is needed to tell it later.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Alert {
    /// The same for every try and every webhook, so that a receiver knows again what it has had.
    pub id: String,
    /// What it is about.
    pub kind: Kind,
    /// The schedule.
    pub schedule: String,
    /// The night: its snapshot, or the time at which it was due.
    pub night: String,
    /// When it was worked out.
    pub at: DateTime<Utc>,
    /// In one line.
    pub title: String,
    /// The first of what is listed.
    pub lines: Vec<String>,
    /// How many more there are.
    pub more: usize,
    /// The listed price changes as data.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub changes: Vec<ChangeData>,
}

/// One price change as data.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ChangeData {
    /// Who sells.
    pub provider: String,
    /// Machine type or label.
    pub offer: String,
    /// Region as published.
    pub region: String,
    /// Card.
    pub gpu_model: String,
    /// Number of cards.
    pub gpu_count: String,
    /// on_demand, spot …
    pub pricing_model: String,
    /// Operating system.
    pub os: String,
    /// Amount before, with all its digits.
    pub amount_before: String,
    /// Amount now.
    pub amount_now: String,
    /// Currency.
    pub currency_code: String,
    /// What the amount is for.
    pub unit: String,
    /// Change in percent; nothing where both cannot be compared.
    pub change_percent: Option<f64>,
    /// The offer.
    pub offer_id: String,
}

impl ChangeData {
    /// A price change as data, with texts that a screen can show.
    #[must_use]
    pub fn of(change: &PriceChange) -> Self {
        let text = |text: &str| harmless::cut(text, LINE_MAX).into_owned();
        Self {
            provider: text(&change.provider),
            offer: text(&change.offer),
            region: text(&change.region),
            gpu_model: text(&change.gpu_model),
            gpu_count: change.gpu_count.clone(),
            pricing_model: text(&change.pricing_model),
            os: text(&change.os),
            amount_before: change.amount_before.clone(),
            amount_now: change.amount_now.clone(),
            currency_code: text(&change.currency_code),
            unit: text(&change.unit),
            change_percent: change.change_percent,
            offer_id: change.offer_id.clone(),
        }
    }
}

impl Alert {
    /// Something to tell, cut to what a person reads.
    #[must_use]
    pub fn new(id: String, kind: Kind, about: (&str, &str), title: &str, lines: Vec<String>) -> Self {
        let more = lines.len().saturating_sub(LINES_MAX);
        let lines = lines.iter().take(LINES_MAX).map(|line| harmless::cut(line, LINE_MAX).into_owned()).collect();
        let (schedule, night) = (harmless::cut(about.0, TITLE_MAX).into_owned(), about.1.to_owned());
        let title = harmless::cut(title, TITLE_MAX).into_owned();
        Self { id, kind, schedule, night, at: Utc::now(), title, lines, more, changes: Vec::new() }
    }

    /// The whole as text.
    #[must_use]
    pub fn text(&self) -> String {
        let mut text = format!("gpuledger: {}", self.title);
        for line in &self.lines {
            text += &format!("\n• {line}");
        }
        if self.more > 0 {
            text += &format!("\n… and {} more", self.more);
        }
        text
    }

    /// The body of a request in a service's form.
    #[must_use]
    pub fn body(&self, form: Form) -> Value {
        match form {
            Form::Json => json!({
                "id": self.id,
                "kind": self.kind,
                "schedule": self.schedule,
                "night": self.night,
                "at": self.at,
                "title": self.title,
                "text": self.text(),
                "lines": self.lines,
                "more": self.more,
                "changes": self.changes,
            }),
            // The three characters that Slack reads; with `<` gone, nothing is a mention or a link.
            Form::Slack => json!({ "text": self.text().replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;") }),
            // Feishu has no escape for its tags, which call people: the sign is replaced by its wide twin.
            Form::Feishu => json!({ "msg_type": "text", "content": { "text": self.text().replace('<', "＜") } }),
            Form::Dingtalk => {
                json!({ "msgtype": "text", "text": { "content": self.text() }, "at": { "isAtAll": false, "atMobiles": [] } })
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_calls_nobody_in_a_chat_and_moves_no_cursor() {
        let line = "<!channel> <at user_id=\"all\"></at> @here & \u{1b}[2J\u{202e}x".to_owned();
        let alert = Alert::new("1".to_owned(), Kind::PriceChanges, ("nightly", "night"), "t", vec![line]);
        let slack = alert.body(Form::Slack).to_string();
        assert!(slack.contains("&lt;!channel&gt;") && slack.contains("&amp;") && !slack.contains('<'), "{slack}");
        let feishu = alert.body(Form::Feishu).to_string();
        assert!(!feishu.contains('<') && feishu.contains("＜at"), "{feishu}");
        assert_eq!(alert.body(Form::Dingtalk)["at"]["isAtAll"], false);
        for form in [Form::Json, Form::Slack, Form::Feishu, Form::Dingtalk] {
            assert!(!alert.body(form).to_string().contains('\u{202e}'));
        }
    }

    #[test]
    fn a_long_story_is_cut_and_counted() {
        let lines = (0..57).map(|index| format!("{index} {}", "x".repeat(9_000))).collect();
        let alert = Alert::new("1".to_owned(), Kind::PriceChanges, ("s", "n"), &"t".repeat(9_000), lines);
        assert_eq!((alert.lines.len(), alert.more), (LINES_MAX, 37));
        assert!(alert.text().ends_with("… and 37 more") && alert.text().len() < 6_000);
    }
}
