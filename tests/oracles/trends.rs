//! Trends of a history, worked out a second time from its file: count, lowest and middle price of one card, by day.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;
use std::process::Command;

use serde_json::Value;

use super::walk::Published;
use super::{Key, Source, SourceNight, theirs};

/// One card of a history: as people type it, and the rows that are of it.
pub struct Card {
    pub typed: &'static str,
    /// `region` or `provider`.
    pub by: &'static str,
    pub is_of: fn(&Key) -> bool,
}

/// How many days of lines agree, and why the others do not.
#[derive(Debug, Default)]
pub struct Account {
    pub agree: usize,
    pub explained: BTreeMap<&'static str, usize>,
}

impl Account {
    /// A line of a page.
    pub fn words(&self, card: &Card) -> String {
        let mut text =
            format!("| trend of {}, days of a {}: count, lowest and middle agree | {} |\n", card.typed, card.by, self.agree);
        for (rule, days) in &self.explained {
            let _ = writeln!(text, "| trend of {}: {rule} | {days} |", card.typed);
        }
        text
    }
}

/// Prices of one card and hour, in dollars, by line.
fn lines(night: &SourceNight, card: &Card, is_taken: impl Fn(&Key) -> bool) -> BTreeMap<String, Vec<f64>> {
    let mut lines: BTreeMap<String, Vec<f64>> = BTreeMap::new();
    for key in night.prices.keys().filter(|key| (card.is_of)(key) && is_taken(key)) {
        let cards: f64 = key[3].parse().expect("a count of cards");
        let Some((nano, is_of_card)) = night.price(key).filter(|_| key[4] == "on_demand" && cards.fract() == 0.0) else {
            continue;
        };
        #[expect(clippy::cast_precision_loss, reason = "prices are small")]
        let usd = nano as f64 / 1e9 / if is_of_card { 1.0 } else { cards };
        let place = if key[2].is_empty() { "everywhere" } else { &key[2] };
        let line = if card.by == "region" { format!("{} {place}", key[0]) } else { key[0].clone() };
        lines.entry(line).or_default().push(usd);
    }
    lines
}

/// Whether a day's figures are those of prices.
fn agrees(row: &Value, prices: &[f64]) -> bool {
    let mut prices = prices.to_vec();
    prices.sort_by(f64::total_cmp);
    let half = prices.len() / 2;
    let middle = if prices.len() % 2 == 1 { prices[half] } else { (prices[half - 1] + prices[half]) / 2.0 };
    let is = |name: &str, wanted: f64| row[name].as_f64().is_some_and(|found| (found - wanted).abs() < 1e-8);
    row["offers"].as_u64() == u64::try_from(prices.len()).ok()
        && is("min_usd_per_gpu_hour", prices[0])
        && is("median_usd_per_gpu_hour", middle)
}

/// Holds the program's trend of a card against the file.
pub fn compare(source: &Source, root: &Path, published: &BTreeMap<String, Published>, card: &Card) -> Account {
    let last = source.nights.keys().next_back().expect("a history has nights");
    let done = Command::new(env!("CARGO_BIN_EXE_gpuledger"))
        .args([
            "trend",
            "--gpu",
            card.typed,
            "--by",
            card.by,
            "--include-imports",
            "--until",
            &last[..10],
            "--format",
            "json",
            "--output",
        ])
        .arg(root)
        .output()
        .expect("the program starts");
    let rows: Vec<Value> = serde_json::from_slice(&done.stdout)
        .unwrap_or_else(|error| panic!("{}: {error}: {}", source.name, String::from_utf8_lossy(&done.stderr)));
    // Day, line → what the day's last night with the seller says, whole and without what was held back.
    type Figures = BTreeMap<(String, String), (Vec<f64>, Option<Vec<f64>>)>;
    let mut figures = Figures::new();
    for (id, night) in &source.nights {
        let rows = published.get(id);
        // A later night of the day takes the place of the earlier ones, whatever lines it has.
        let is_of_night = |line: &str| {
            let seller = line.split(' ').next().unwrap_or_default();
            rows.is_some_and(|rows| rows.keys().any(|key| key[0] == seller))
        };
        figures.retain(|(day, line), _| *day != id[..10] || !is_of_night(line));
        let mut without = lines(night, card, |key| rows.is_some_and(|rows| rows.contains_key(key)));
        for (line, prices) in lines(night, card, |_| true) {
            let place = (id[..10].to_owned(), line.clone());
            if is_of_night(&line) {
                figures.insert(place, (prices, without.remove(&line)));
            } else {
                figures.entry(place).or_insert((prices, None));
            }
        }
    }
    let mut account = Account::default();
    for row in &rows {
        let line = row["line"].as_str().expect("a line");
        let (provider, rest) = line.split_once(' ').map_or((line, None), |(provider, rest)| (provider, Some(rest)));
        let line =
            rest.map_or_else(|| theirs(provider, source.suffix), |rest| format!("{} {rest}", theirs(provider, source.suffix)));
        let place = (row["date"].as_str().expect("a day").to_owned(), line);
        let Some((prices, without)) = figures.remove(&place) else { panic!("{}: {place:?} is not in the file", source.name) };
        if agrees(row, &prices) {
            account.agree += 1;
        } else if without.is_some_and(|prices| agrees(row, &prices)) {
            *account.explained.entry("days without what was held back").or_default() += 1;
        } else {
            panic!("{} {}: {place:?}: {row} is not {prices:?}", source.name, card.typed);
        }
    }
    for (place, (_, without)) in figures {
        assert!(without.is_none(), "{} {}: {place:?} is missing", source.name, card.typed);
        *account.explained.entry("days that are gaps: all of it was held back, or the seller refused").or_default() += 1;
    }
    account
}
