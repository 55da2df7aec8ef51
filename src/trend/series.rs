//! Prices → the figures of each day. All arithmetic of trends stands here.

use std::collections::BTreeMap;

use chrono::NaiveDate;
use polars::prelude::*;

use super::Source;
use super::rows::{Group, Prices};
use crate::frame::Columns;
use crate::print::{Heading, heading};

/// Name and version of the index's method. It changes with every change of what is counted or how.
///
/// Of each provider the median of its on-demand prices of one whole card of the GPU, without plans, copies and Windows
/// licences, of the last night of a UTC day that has the provider; the index is the median of those. So a provider counts once,
/// however many regions and sizes it lists, and one odd price moves neither.
pub const INDEX_METHOD: &str = "median-of-provider-medians-1";

/// The lines, in order of source and name.
#[derive(Debug)]
pub(super) struct Trends {
    pub lines: Vec<Line>,
    pub is_index: bool,
}

/// One line: the figures of its days.
#[derive(Debug)]
pub(super) struct Line {
    /// Where its prices are from.
    pub source: Source,
    /// What it is of; empty where there is one line only.
    pub name: String,
    pub days: BTreeMap<NaiveDate, Day>,
}

/// The figures of a day, in USD for one GPU and hour.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Day {
    /// Offers, or of an index its providers.
    pub count: usize,
    pub providers: Vec<String>,
    pub min: f64,
    pub q1: f64,
    pub median: f64,
    pub q3: f64,
}

impl Line {
    /// What a person calls the line.
    pub(super) fn title(&self) -> String {
        if self.name.is_empty() { self.source.clone() } else { format!("{} {}", self.source, self.name) }
    }
}

impl Trends {
    pub(super) fn of(prices: &Prices) -> Self {
        let mut lines: BTreeMap<(&str, &str), BTreeMap<NaiveDate, Vec<&Group>>> = BTreeMap::new();
        for group in &prices.all {
            lines.entry((&group.source, &group.line)).or_default().entry(group.day).or_default().push(group);
        }
        let line = |((source, name), days): ((&str, &str), BTreeMap<NaiveDate, Vec<&Group>>)| Line {
            source: source.to_owned(),
            name: name.to_owned(),
            days: days.into_iter().map(|(day, groups)| (day, Day::of_groups(&groups))).collect(),
        };
        Self { lines: lines.into_iter().map(line).collect(), is_index: false }
    }

    pub(super) fn index(prices: &Prices) -> Self {
        let mut lines: BTreeMap<&str, BTreeMap<NaiveDate, BTreeMap<&str, Vec<f64>>>> = BTreeMap::new();
        for group in &prices.all {
            let day = lines.entry(&group.source).or_default().entry(group.day).or_default();
            day.entry(&group.provider).or_default().extend(&group.usd);
        }
        let day = |providers: BTreeMap<&str, Vec<f64>>| {
            let (medians, names) = providers.into_iter().map(|(name, prices)| (quantile(&sorted(prices), 0.5), name)).unzip();
            Day::of(medians, names)
        };
        let line = |(source, days): (&str, BTreeMap<NaiveDate, BTreeMap<&str, Vec<f64>>>)| Line {
            source: source.to_owned(),
            name: String::new(),
            days: days.into_iter().map(|(date, providers)| (date, day(providers))).collect(),
        };
        Self { lines: lines.into_iter().map(line).collect(), is_index: true }
    }

    /// A row a line and day, of each line the newest `limit` days.
    pub(super) fn rows(&self, limit: usize) -> PolarsResult<DataFrame> {
        let days: Vec<(&Line, NaiveDate, &Day)> = self
            .lines
            .iter()
            .flat_map(|line| {
                let skipped = line.days.len().saturating_sub(limit);
                line.days.iter().skip(skipped).map(move |(date, day)| (line, *date, day))
            })
            .collect();
        let count = |number: usize| i64::try_from(number).ok();
        let mut columns = Columns::new(days.len());
        columns.dates("date", days.iter().map(|(_, date, _)| Some(*date)));
        columns.texts("source", days.iter().map(|(line, ..)| Some(line.source.as_str())));
        if self.is_index {
            columns.texts("method", days.iter().map(|_| Some(INDEX_METHOD)));
            columns.floats("index_usd_per_gpu_hour", days.iter().map(|(.., day)| Some(day.median)));
        } else {
            let name = |line: &Line| (!line.name.is_empty()).then(|| line.name.clone());
            columns.strings("line", days.iter().map(|(line, ..)| name(line)));
            columns.longs("offers", days.iter().map(|(.., day)| count(day.count)));
        }
        columns.longs("providers", days.iter().map(|(.., day)| count(day.providers.len())));
        columns.floats("min_usd_per_gpu_hour", days.iter().map(|(.., day)| Some(day.min)));
        columns.floats("q1_usd_per_gpu_hour", days.iter().map(|(.., day)| Some(day.q1)));
        if !self.is_index {
            columns.floats("median_usd_per_gpu_hour", days.iter().map(|(.., day)| Some(day.median)));
        }
        columns.floats("q3_usd_per_gpu_hour", days.iter().map(|(.., day)| Some(day.q3)));
        if self.is_index {
            columns.strings("provider_names", days.iter().map(|(.., day)| Some(day.providers.join(","))));
        }
        columns.finish()
    }

    pub(super) fn headings(&self) -> &'static [Heading<'static>] {
        const TREND: [Heading; 9] = [
            heading("date", "day"),
            heading("source", "source"),
            heading("line", "line"),
            heading("offers", "offers"),
            heading("providers", "providers"),
            heading("min_usd_per_gpu_hour", "lowest"),
            heading("q1_usd_per_gpu_hour", "quarter below"),
            heading("median_usd_per_gpu_hour", "median USD/GPU-hour"),
            heading("q3_usd_per_gpu_hour", "quarter above"),
        ];
        const INDEX: [Heading; 7] = [
            heading("date", "day"),
            heading("source", "source"),
            heading("index_usd_per_gpu_hour", "index USD/GPU-hour"),
            heading("providers", "providers"),
            heading("min_usd_per_gpu_hour", "lowest"),
            heading("q3_usd_per_gpu_hour", "quarter above"),
            heading("method", "method"),
        ];
        if self.is_index { &INDEX } else { &TREND }
    }
}

impl Day {
    /// The figures of groups of prices, each of at least one.
    fn of_groups(groups: &[&Group]) -> Self {
        let prices = groups.iter().flat_map(|group| group.usd.iter().copied()).collect();
        Self::of(prices, groups.iter().map(|group| group.provider.as_str()).collect())
    }

    /// The figures of prices, of which there is at least one, and their providers.
    fn of(prices: Vec<f64>, mut providers: Vec<&str>) -> Self {
        providers.sort_unstable();
        providers.dedup();
        let prices = sorted(prices);
        Self {
            count: prices.len(),
            providers: providers.into_iter().map(str::to_owned).collect(),
            min: prices[0],
            q1: quantile(&prices, 0.25),
            median: quantile(&prices, 0.5),
            q3: quantile(&prices, 0.75),
        }
    }
}

fn sorted(mut prices: Vec<f64>) -> Vec<f64> {
    prices.sort_unstable_by(f64::total_cmp);
    prices
}

/// A quantile of sorted prices, between two of them in proportion: the median of two is their mean.
#[expect(clippy::cast_precision_loss, clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a place in a list")]
fn quantile(sorted: &[f64], share: f64) -> f64 {
    let place = share * (sorted.len() - 1) as f64;
    let (below, rest) = (place.floor(), place - place.floor());
    let low = sorted[below as usize];
    let high = sorted[(below as usize + 1).min(sorted.len() - 1)];
    low + (high - low) * rest
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn price(day: &str, provider: &str, usd: f64) -> Group {
        let day = day.parse().expect("a day");
        Group { source: "collected".to_owned(), day, provider: provider.to_owned(), line: String::new(), usd: vec![usd] }
    }

    #[test]
    fn a_provider_counts_once_in_the_index_however_much_it_lists() {
        let mut all: Vec<Group> = (0..50).map(|_| price("2026-03-01", "dear", 9.0)).collect();
        all.extend([price("2026-03-01", "cheap", 2.0), price("2026-03-01", "fair", 3.0), price("2026-03-01", "fair", 5.0)]);
        let prices = Prices::plain("h100", all);
        let index = Trends::index(&prices);
        let day = index.lines[0].days.values().next().expect("a day");
        assert_eq!((day.median, day.count), (4.0, 3));
        assert_eq!(day.providers, ["cheap", "dear", "fair"]);
    }

    #[test]
    #[expect(clippy::float_cmp, reason = "they are exact")]
    fn quartiles_are_those_of_a_spreadsheet() {
        let prices = [1.0, 2.0, 4.0, 8.0];
        assert_eq!([0.0, 0.25, 0.5, 0.75, 1.0].map(|share| quantile(&prices, share)), [1.0, 1.75, 3.0, 5.0, 8.0]);
        assert_eq!(quantile(&[7.0], 0.75), 7.0);
    }

    proptest! {
        #[test]
        fn figures_stay_in_order_and_within_the_prices(prices in prop::collection::vec(0.01..500.0_f64, 1..60)) {
            let day = Day::of(prices.clone(), vec!["a"]);
            let max = prices.iter().copied().fold(f64::MIN, f64::max);
            prop_assert!(day.min <= day.q1 && day.q1 <= day.median && day.median <= day.q3 && day.q3 <= max);
            prop_assert!(prices.contains(&day.min));
            let below = prices.iter().filter(|usd| **usd < day.median).count();
            prop_assert!(below * 2 <= prices.len());
        }
    }
}
