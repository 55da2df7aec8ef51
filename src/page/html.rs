//! The parts of a page → its HTML.
//!
//! Everything that comes from elsewhere is escaped where it is put in; the few things that are not are made here and by
//! nothing else: the style, the script, the charts, and the data with what could end a script taken out of it. The page may
//! run its own script and style only, which it names by their hashes, and load nothing.

use std::collections::{BTreeSet, HashMap};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use maud::{DOCTYPE, Markup, PreEscaped, html};
use sha2::{Digest as _, Sha256};

use super::best::Cheapest;
use super::charts::{self, ChartError};
use super::moves;
use super::night::{self, Provider, Status};
use super::offers::{self, Offer};
use super::sections;
use super::text::{Text, Tonight};
use crate::changes::PriceChange;
use crate::gather::Input;
use crate::night::SnapshotId;
use crate::trend::Index;

const STYLE: &str = include_str!("page.css");
const SCRIPT: &str = include_str!("page.js");

/// What a page is made of.
pub(super) struct Parts {
    pub snapshot: SnapshotId,
    pub providers: Vec<Provider>,
    pub best: Cheapest,
    /// Of each GPU that has a chart.
    pub indices: Vec<(String, Index)>,
    /// `None` where there is no night to compare with.
    pub changes: Option<Vec<PriceChange>>,
    pub offers: Vec<Offer>,
    pub text: &'static Text,
}

/// Why there is no page.
#[derive(Debug, thiserror::Error)]
pub(super) enum PageError {
    /// A chart could not be drawn.
    #[error("draw the charts of the page")]
    Chart(#[from] ChartError),
    /// The data could not be written, which is a fault of the program.
    #[error("write the offers into the page")]
    Data(#[from] serde_json::Error),
}

/// The page.
///
/// # Errors
/// Only on a fault of the program.
pub(super) fn page(parts: &Parts) -> Result<String, PageError> {
    let t = parts.text;
    let charts = charts::charts(&parts.indices, t)?;
    let has_several_days = charts.iter().any(|chart| chart.svg.is_some());
    let legends = if has_several_days { charts::legends(&parts.indices, t) } else { Vec::new() };
    let names: HashMap<&str, &str> =
        parts.providers.iter().map(|provider| (provider.id.as_str(), provider.name.as_str())).collect();
    let name = |id: &str| names.get(id).map_or_else(|| super::values::shown(id), |name| (*name).to_owned());
    let groups = parts.changes.as_deref().map(|changes| moves::groups(changes, name, t));
    let data = offers::data(&parts.offers, parts.snapshot, t)?;
    let night = parts.snapshot.date();
    let page = html! {
        (DOCTYPE)
        html lang=(t.code) {
            head {
                meta charset="utf-8";
                meta http-equiv="Content-Security-Policy" content=(policy());
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta name="color-scheme" content="light dark";
                meta name="referrer" content="no-referrer";
                title { (t.title) " " (night) " – gpuledger" }
                style { (PreEscaped(STYLE)) }
            }
            body {
                a .skip href="#offers" { (t.skip) }
                (header(parts))
                main {
                    (sections::changes(groups.as_deref(), t))
                    (sections::trend(&charts, &legends, t))
                    (sections::cheapest(&parts.best, t))
                    (sections::coverage(&parts.providers, parts.snapshot, t))
                    (sections::offers(offers::first(&parts.offers), parts.offers.len(), t))
                }
                footer { p .soft { (t.made_by) } }
                script type="application/json" id="data" { (PreEscaped(data)) }
                script { (PreEscaped(SCRIPT)) }
            }
        }
    };
    let mut page = page.into_string();
    page.push('\n');
    Ok(page)
}

/// What the page may do: run what is named here, and nothing else.
fn policy() -> String {
    let hash = |text: &str| STANDARD.encode(Sha256::digest(text.as_bytes()));
    format!(
        "default-src 'none'; script-src 'sha256-{}'; style-src 'sha256-{}'; base-uri 'none'; form-action 'none'",
        hash(SCRIPT),
        hash(STYLE)
    )
}

fn header(parts: &Parts) -> Markup {
    let (t, night) = (parts.text, parts.snapshot.date());
    let links = [
        ("#changes", t.changes),
        ("#trend", t.trend),
        ("#cheapest", t.cheapest),
        ("#coverage", t.coverage),
        ("#offers", t.offers),
    ];
    let missing = night::named(&parts.providers, |provider| matches!(provider.status, Status::Failed | Status::Partial));
    let not_of_tonight = not_of_tonight(&parts.providers, t);
    html! {
        header {
            p .brand { "gpuledger" }
            h1 { (t.title) " " time datetime=(night) { (night) } }
            p .lead { (sentence(parts)) }
            @if !missing.is_empty() { p .missing { (t.missing(&missing)) } }
            @if !not_of_tonight.is_empty() {
                div .notice role="note" {
                    p { strong { (t.of_recordings) } " " (t.not_of_today) }
                    ul { @for (words, names) in not_of_tonight { li { (words) " " (names) } } }
                }
            }
            p .soft { (t.made_of(&parts.snapshot.to_string(), parts.snapshot.instant())) " " span id="days-ago" {} }
            nav aria-label=(t.sections) {
                ul { @for (link, words) in links { li { a href=(link) { (words) } } } }
                label .theme hidden {
                    (t.theme) " "
                    select id="theme" {
                        option value="" { (t.theme_auto) }
                        option value="light" { (t.theme_light) }
                        option value="dark" { (t.theme_dark) }
                    }
                }
            }
        }
    }
}

fn sentence(parts: &Parts) -> String {
    let different =
        |of: fn(&Offer) -> &str| parts.offers.iter().map(of).filter(|text| !text.is_empty()).collect::<BTreeSet<_>>().len();
    let of_status = |status: Status| parts.providers.iter().filter(|provider| provider.status == status).count();
    parts.text.tonight(&Tonight {
        night: parts.snapshot.instant(),
        offers: parts.offers.len(),
        gpus: different(|offer| &offer.gpu),
        sellers: different(|offer| &offer.provider),
        statuses: Status::ALL.map(|status| (status, of_status(status))).to_vec(),
        changes: parts.changes.as_ref().map(Vec::len),
    })
}

/// Providers whose prices are none of the night, by where they come from.
fn not_of_tonight(providers: &[Provider], text: &Text) -> Vec<(&'static str, String)> {
    let of = |input: Input| night::named(providers, |provider| provider.input == input.word() && provider.scopes_complete > 0);
    let kinds = [
        (text.recorded, of(Input::Recorded)),
        (text.typed, of(Input::Typed)),
        (text.from_files, of(Input::Files)),
        (text.from_history, of(Input::History)),
        (text.made_up, night::named(providers, |provider| provider.has_made_up_prices)),
    ];
    kinds.into_iter().filter(|(_, names)| !names.is_empty()).map(|(words, names)| (words, text.list(&names))).collect()
}
