//! The entries of one night: a provider's price changes, a provider that stays away, a night that was refused.

use std::fmt::Write as _;

use atom_syndication::{Category, Content, Entry, Text};

use super::at;
use crate::changes::{Missing, PriceChange};
use crate::harmless;
use crate::night::SnapshotId;
use crate::runs::KeptRun;

/// Most price changes, or providers of a refused night, that one entry lists.
const LINES_MAX: usize = 50;

/// Longest line, in characters.
const LINE_MAX: usize = 300;

/// The entries of a published night: one for each provider that changed prices, and one for each that has been missing.
pub(super) fn of_night<'a>(
    feed: &str,
    night: SnapshotId,
    changes: &[PriceChange],
    missing: impl Iterator<Item = &'a Missing>,
) -> Vec<Entry> {
    let mut entries = Vec::new();
    // They are in order of provider.
    for of_provider in changes.chunk_by(|a, b| a.provider == b.provider) {
        let provider = &of_provider[0].provider;
        let title = match of_provider {
            [only] => format!("{provider}: {} {}", only.what(), only.how()),
            several => match several.iter().filter(|change| change.is_of_market()).count() {
                0 => format!("{provider}: {} prices changed", several.len()),
                spot => format!("{provider}: {} prices changed, {spot} of them spot prices", several.len()),
            },
        };
        let intro = format!("In the night of {night}, compared with the newest night before that has the offer:");
        let (of_market, of_lists): (Vec<_>, Vec<_>) = of_provider.iter().partition(|change| change.is_of_market());
        let lines = of_lists.into_iter().chain(of_market).map(|change| format!("{}: {}", change.what(), change.how()));
        let id = format!("{feed}/night/{}/changes/{provider}", night.original());
        entries.push(entry(id, night, &title, "price_changes", &intro, lines));
    }
    for gone in missing {
        let provider = &gone.provider;
        let title = format!("{provider}: missing for {} nights", gone.nights);
        let intro = format!("The last night that has it is {}. Why it is missing in the night of {night}:", gone.last_seen);
        let id = format!("{feed}/night/{}/missing/{provider}", gone.last_seen.original());
        entries.push(entry(id, night, &title, "provider_missing", &intro, std::iter::once(gone.reason.clone())));
    }
    entries
}

/// The id of the entry of a refused night.
pub(super) fn refused_id(feed: &str, night: SnapshotId) -> String {
    format!("{feed}/night/{night}/refused")
}

/// The entry of a refused night.
pub(super) fn refused(feed: &str, night: SnapshotId, run: &KeptRun) -> Entry {
    let title = format!("Night {night} was refused: nothing was published");
    let intro = "What was published before stays as it was. What was wrong with each provider:";
    let bad = run.providers.iter().filter(|provider| provider.status != "complete");
    let lines = bad.map(|provider| {
        format!("{}: {}, {}", provider.provider, provider.status, provider.reason.as_deref().unwrap_or("no reason recorded"))
    });
    entry(refused_id(feed, night), night, &title, "night_refused", intro, lines)
}

fn entry(id: String, night: SnapshotId, title: &str, kind: &str, intro: &str, lines: impl Iterator<Item = String>) -> Entry {
    let mut html = format!("<p>{}</p>\n<ul>\n", escaped(intro));
    let mut lines = lines;
    for line in lines.by_ref().take(LINES_MAX) {
        let _ = writeln!(html, "<li>{}</li>", escaped(&harmless::cut(&line, LINE_MAX)));
    }
    html.push_str("</ul>");
    let more = lines.count();
    if more > 0 {
        let _ = write!(html, "\n<p>… and {more} more: gpuledger diff shows all.</p>");
    }
    let mut entry = Entry::default();
    entry.set_id(id);
    entry.set_title(Text::plain(harmless::cut(title, LINE_MAX).into_owned()));
    entry.set_updated(at(night.instant()));
    entry.set_published(Some(at(night.instant())));
    entry.set_categories(vec![Category { term: kind.to_owned(), scheme: None, label: None }]);
    let content = Content { value: Some(html), content_type: Some("html".to_owned()), ..Content::default() };
    entry.set_content(Some(content));
    entry
}

/// Text as HTML shows it. The feed's XML is made of this, by the library.
fn escaped(text: &str) -> String {
    harmless::line(text).replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::changes::PriceChange;

    fn change(label: &str) -> PriceChange {
        PriceChange {
            provider: "acme".to_owned(),
            offer: label.to_owned(),
            region: "<b>eu</b>".to_owned(),
            gpu_model: "H100 SXM".to_owned(),
            gpu_count: "8".to_owned(),
            os: "linux".to_owned(),
            pricing_model: "on_demand".to_owned(),
            plan: String::new(),
            commitment_months: String::new(),
            currency_code: "USD".to_owned(),
            unit: "hour".to_owned(),
            amount_before: "2".to_owned(),
            amount_now: "3".to_owned(),
            change_percent: Some(50.0),
            offer_id: "1".to_owned(),
            before: "2026-11-01T02-00-00Z".parse().expect("an id"),
        }
    }

    #[test]
    fn prices_of_lists_stand_before_those_of_a_market() {
        let night: SnapshotId = "2026-11-02T02-00-00Z".parse().expect("an id");
        let spot = |_| PriceChange { pricing_model: "spot".to_owned(), ..change("a market") };
        let mut changes: Vec<PriceChange> = (0..LINES_MAX).map(spot).collect();
        changes.push(change("a list"));
        let entry = of_night("tag:x", night, &changes, std::iter::empty()).remove(0);
        assert_eq!(entry.title().as_str(), format!("acme: {} prices changed, {LINES_MAX} of them spot prices", LINES_MAX + 1));
        let html = entry.content().and_then(|content| content.value()).expect("it has text");
        assert!(html.find("a list").expect("it is there") < html.find("a market").expect("it is there"), "{html}");
    }

    #[test]
    fn what_a_page_says_is_text_in_the_feed_and_in_the_html_within() {
        let night: SnapshotId = "2026-11-02T02-00-00Z".parse().expect("an id");
        let hostile = "</li><script>alert(1)</script>]]>&lt;\u{0}\u{1b}[2J\u{202e}\u{ffff}\"'";
        let many: Vec<PriceChange> = (0..LINES_MAX + 37).map(|_| change(hostile)).collect();
        let mut feed = atom_syndication::Feed::default();
        feed.set_entries(of_night("tag:x", night, &many, std::iter::empty()));
        let xml = String::from_utf8(feed.write_to(Vec::new()).expect("it is written")).expect("it is text");
        let document = roxmltree::Document::parse(&xml).expect("another parser reads it");
        let content = document.descendants().find(|node| node.has_tag_name(("http://www.w3.org/2005/Atom", "content")));
        let html = content.and_then(|node| node.text()).expect("it has text").to_owned();
        assert_eq!(html.matches("<li>").count(), LINES_MAX);
        assert!(html.contains("&lt;/li&gt;&lt;script&gt;") && !html.contains("<script") && !html.contains("<b>"), "{html}");
        assert!(html.contains("\\u{1b}[2J\\u{202e}\\u{ffff}") && html.contains("and 37 more"), "{html}");
    }
}
