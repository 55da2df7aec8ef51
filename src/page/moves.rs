//! The price changes of a night → the biggest of them, those that somebody decided before those of a market.

use super::text::Text;
use super::values::{count, shown};
use crate::changes::PriceChange;

/// Changes that are shown of prices that a provider sets, and of those of a market.
const SHOWN_MAX: [usize; 2] = [20, 10];

/// Some changes under one heading.
#[derive(Debug)]
pub(super) struct Group {
    pub caption: &'static str,
    /// How many of how many are shown, where it is not all.
    pub shown_of: String,
    pub rows: Vec<Move>,
}

/// One change as the page shows it.
#[derive(Debug)]
pub(super) struct Move {
    /// `−10.0`; nothing where both prices cannot be compared.
    pub percent: String,
    pub is_lower: bool,
    pub provider: String,
    pub offer: String,
    pub region: String,
    pub gpus: String,
    pub way: String,
    pub before: String,
    pub now: String,
    pub unit: String,
    /// The night that it is compared with.
    pub since: String,
    /// What is to be known of it.
    pub remark: &'static str,
}

/// The biggest changes.
pub(super) fn groups(changes: &[PriceChange], names: impl Fn(&str) -> String, text: &Text) -> Vec<Group> {
    let (market, set): (Vec<&PriceChange>, Vec<&PriceChange>) = changes.iter().partition(|change| change.is_of_market());
    [(text.list_prices, set), (text.market_prices, market)]
        .into_iter()
        .zip(SHOWN_MAX)
        .filter(|((_, changes), _)| !changes.is_empty())
        .map(|((caption, mut changes), most)| {
            let size = |change: &PriceChange| change.change_percent.map_or(f64::NEG_INFINITY, f64::abs);
            // The order of equals is that of the changes, which is one of provider, place and offer.
            changes.sort_by(|a, b| size(b).total_cmp(&size(a)));
            let shown = changes.len().min(most);
            let shown_of = if shown < changes.len() { text.shown_of(shown, changes.len()) } else { String::new() };
            Group { caption, shown_of, rows: changes[..shown].iter().map(|change| Move::of(change, &names, text)).collect() }
        })
        .collect()
}

impl Move {
    fn of(change: &PriceChange, names: &impl Fn(&str) -> String, text: &Text) -> Self {
        let gpus = match (change.gpu_count.as_str(), change.gpu_model.as_str()) {
            (_, "") => String::new(),
            ("" | "1", model) => shown(model),
            (count, model) => format!("{} × {}", shown(count), shown(model)),
        };
        Self {
            percent: change.change_percent.map_or_else(String::new, percent),
            is_lower: change.change_percent.is_some_and(|percent| percent < 0.0),
            provider: names(&change.provider),
            offer: shown(&change.offer),
            region: shown(&change.region),
            gpus,
            way: text.way(&change.pricing_model, &change.plan, &change.commitment_months, ""),
            before: shown(&change.amount_before),
            now: shown(&change.amount_now),
            unit: text.amount_unit(&change.currency_code, &change.unit),
            since: change.before.instant().format("%Y-%m-%d").to_string(),
            remark: match change.change_percent {
                None => text.not_comparable,
                Some(_) if change.amount_before == change.amount_now => text.other_terms,
                Some(_) => "",
            },
        }
    }
}

/// A change with its sign. `−10.0`
fn percent(percent: f64) -> String {
    let (size, sign) = (percent.abs(), if percent < 0.0 { "−" } else { "+" });
    // A factor of a hundred is no matter of tenths; and rounded to nothing, a change has no direction.
    let text = if size < 1_000.0 { format!("{size:.1}") } else { count(rounded(size)) };
    if text == "0.0" { text } else { format!("{sign}{text}") }
}

#[expect(
    clippy::cast_possible_truncation,
    reason = "a percentage for people; what is larger than a whole number stays the largest"
)]
fn rounded(number: f64) -> i64 {
    number.round() as i64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_change_has_its_sign_and_none_where_it_rounds_to_nothing() {
        let shown = [-10.04, 12.5, -0.01, 0.04, 123_456.0].map(percent);
        assert_eq!(shown, ["−10.0", "+12.5", "0.0", "0.0", "+123\u{202f}456"]);
    }
}
