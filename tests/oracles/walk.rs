//! A history from its first night to its last: what is published against what the file says, and each difference of
//! neighbouring nights against the one worked out from the file.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::path::Path;

use gpuledger::diff::{self, Diff};
use gpuledger::frame::Cell;
use gpuledger::snapshot::read::{self, Snapshot};
use polars::prelude::*;
use tokio::runtime::Runtime;

use super::{Key, Price, Source, SourceNight, nano, plain, theirs};

/// Nights before and after a pair that are asked whether an absence is confirmed.
const AROUND: usize = 8;

/// What a walk comes to.
#[derive(Debug, Default)]
pub struct Account {
    /// Day of the last night.
    pub until: String,
    /// Nights of the file, and those that were published.
    pub nights: (usize, usize),
    /// Prices that stand in the dataset as they stand in the file.
    pub prices: usize,
    /// Lines that both differences have, by list.
    pub agree: BTreeMap<String, usize>,
    /// Of them, those that ours calls unconfirmed.
    pub unconfirmed: usize,
    /// Lines that one of them has, by the rule that tells why.
    pub explained: BTreeMap<&'static str, usize>,
    /// What the rules held back or refused, by rule.
    pub held: BTreeMap<String, usize>,
}

impl Account {
    /// The account as a part of a page.
    pub fn words(&self, name: &str) -> String {
        let mut text = format!("\n### {name}\n\n| | |\n|---|---:|\n");
        let (named, published) = self.nights;
        let _ = writeln!(text, "| nights in the file until {} | {named} |\n| of them published | {published} |", self.until);
        let _ = writeln!(text, "| prices published as they stand there | {} |", self.prices);
        for (list, lines) in &self.agree {
            let _ = writeln!(text, "| {list}, in both differences with both prices | {lines} |");
        }
        let _ = writeln!(text, "| of those added or removed, unconfirmed | {} |", self.unconfirmed);
        for (rule, lines) in &self.explained {
            let _ = writeln!(text, "| {rule} | {lines} |");
        }
        for (rule, rows) in &self.held {
            let _ = writeln!(text, "| findings: {rule} | {rows} |");
        }
        text
    }
}

/// What is published of a night, by what it is of.
pub type Published = BTreeMap<Key, Price>;

fn cell(rows: &DataFrame, name: &str, row: usize) -> String {
    Cell::at(rows, name, row).expect("the column is there").text()
}

/// Way to buy, with its plan or its months.
fn way(words: [String; 3]) -> String {
    words.into_iter().filter(|word| !word.is_empty()).collect::<Vec<_>>().join(" ")
}

/// What is published of a night. Column by column, since of a whole history cell by cell takes minutes.
fn published(snapshot: &Snapshot, suffix: &str) -> Published {
    let rows = read::offers(snapshot).expect("the file opens").collect().expect("the rows read");
    let texts = |name: &str| -> Vec<String> {
        let texts = rows.column(name).and_then(|column| column.cast(&DataType::String)).expect("the column is there");
        texts.str().expect("text").iter().map(|text| text.unwrap_or_default().to_owned()).collect()
    };
    let numbers = |name: &str| -> Vec<Option<f64>> {
        let numbers = rows.column(name).and_then(|column| column.cast(&DataType::Float64)).expect("the column is there");
        numbers.f64().expect("numbers").iter().collect()
    };
    let [providers, machines, labels, regions, models, plans, months, things] =
        ["provider", "instance_type", "offer_label", "region", "pricing_model", "plan", "commitment_months", "published_per"]
            .map(texts);
    let (cards, amounts) = (numbers("gpu_count"), numbers("published_amount"));
    let mut published = Published::new();
    for row in 0..rows.height() {
        let name = if machines[row].is_empty() { &labels[row] } else { &machines[row] };
        let cards = cards[row].map(|cards| cards.to_string()).unwrap_or_default();
        let way = way([models[row].clone(), plans[row].clone(), months[row].clone()]);
        let key = [theirs(&providers[row], suffix), name.clone(), regions[row].clone(), cards, way];
        let amount = amounts[row].expect("an offer has an amount").to_string();
        let other = published.insert(key.clone(), (nano(&amount), things[row] == "gpu"));
        assert!(other.is_none(), "{}: {key:?} stands there twice", snapshot.id);
    }
    published
}

/// What one difference says of one thing.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Said {
    list: String,
    amounts: (Option<i64>, Option<i64>),
    is_unconfirmed: bool,
}

fn ours(diff: &Diff, suffix: &str) -> BTreeMap<Key, Said> {
    let rows = &diff.rows;
    let mut said = BTreeMap::new();
    for row in 0..rows.height() {
        let list = cell(rows, "list", row);
        let amount = |name: &str| Some(cell(rows, name, row)).filter(|text| !text.is_empty()).map(|text| nano(&text));
        let key = |name: &str| {
            [
                theirs(&cell(rows, "provider", row), suffix),
                cell(rows, name, row),
                cell(rows, "region", row),
                plain(&cell(rows, "gpu_count", row)),
                way(["pricing_model", "plan", "commitment_months"].map(|name| cell(rows, name, row))),
            ]
        };
        let is_unconfirmed = cell(rows, "is_unconfirmed", row) == "true";
        let amounts = (amount("amount_a"), amount("amount_b"));
        // One thing under another name is one line here, and two in the file.
        if list == "renamed" {
            said.insert(key("renamed_from"), Said { list: "removed".to_owned(), amounts: (amounts.0, None), is_unconfirmed });
            said.insert(key("offer"), Said { list: "added".to_owned(), amounts: (None, amounts.1), is_unconfirmed });
        } else {
            said.insert(key("offer"), Said { list, amounts, is_unconfirmed });
        }
    }
    said
}

fn from_the_file(a: &SourceNight, b: &SourceNight) -> BTreeMap<Key, Said> {
    let mut said = BTreeMap::new();
    for key in a.prices.keys().chain(b.prices.keys()).collect::<BTreeSet<_>>() {
        let (before, after) = (a.price(key), b.price(key));
        let list = match (before, after) {
            (Some(before), Some(after)) if before != after => "changed",
            (None, Some(_)) => "added",
            (Some(_), None) => "removed",
            _ => continue,
        };
        let amounts = (before.map(|price| price.0), after.map(|price| price.0));
        said.insert(key.clone(), Said { list: list.to_owned(), amounts, is_unconfirmed: false });
    }
    said
}

/// Why the two differences do not say the same of a thing. Each rule looks at what it says.
fn rule(
    key: &Key,
    (theirs, ours): (Option<&Said>, Option<&Said>),
    files: (&SourceNight, &SourceNight),
    nights: (&Published, &Published),
) -> Option<&'static str> {
    let is_in_file = |night: &SourceNight| night.prices.contains_key(key);
    let is_held = |file: &SourceNight, night: &Published| is_in_file(file) && !night.contains_key(key);
    let has_seller = |night: &Published| night.keys().any(|other| other[0] == key[0]);
    let held = (is_held(files.0, nights.0), is_held(files.1, nights.1));
    if ours.is_some_and(|said| said.list == "not_observed") {
        let missing = if nights.0.contains_key(key) { nights.1 } else { nights.0 };
        return (!has_seller(missing))
            .then_some("not observed: the seller was refused, or not in the file, in one of the nights");
    }
    match (theirs, ours) {
        (Some(_), None) if !nights.0.contains_key(key) && !nights.1.contains_key(key) && (held.0 || held.1) => {
            Some("in the file's difference alone: held back in every night that has it")
        }
        (_, Some(said)) if said.list == "added" && held.0 => Some("added: it stood in the file before and was held back"),
        (_, Some(said)) if said.list == "removed" && held.1 => Some("removed: it still stands in the file and is held back"),
        _ => None,
    }
}

/// Walks a history, and returns what is published of each night as well. Whatever no rule explains ends the test.
pub fn walk(source: &Source, root: &Path, runtime: &Runtime) -> (Account, BTreeMap<String, Published>) {
    let last = source.nights.keys().next_back().expect("a history has nights");
    let mut snapshots = runtime.block_on(read::snapshots(root)).expect("the log reads");
    snapshots.retain(|snapshot| snapshot.id.to_string() <= *last);
    let mut account =
        Account { until: last[..10].to_owned(), nights: (source.nights.len(), snapshots.len()), ..Account::default() };
    let file = |snapshot: &Snapshot| {
        let id = snapshot.id.to_string();
        source.nights.get(&id).unwrap_or_else(|| panic!("{}: no night of the file is {id}", source.name))
    };
    let mut nights: BTreeMap<String, Published> = BTreeMap::new();
    for (at, snapshot) in snapshots.iter().enumerate() {
        let night = published(snapshot, source.suffix);
        for (key, price) in &night {
            assert_eq!(file(snapshot).price(key), Some(*price), "{} {} {key:?}", source.name, snapshot.id);
        }
        account.prices += night.len();
        if let Some(before) = at.checked_sub(1).map(|before| &nights[&snapshots[before].id.to_string()]) {
            let around = &snapshots[(at - 1).saturating_sub(AROUND)..snapshots.len().min(at + AROUND)];
            let (a, b) = (&snapshots[at - 1], snapshot);
            let diff = runtime.block_on(diff::diff(root, around, a, b)).expect("they compare");
            let (ours, theirs) = (ours(&diff, source.suffix), from_the_file(file(a), file(b)));
            for key in ours.keys().chain(theirs.keys()).collect::<BTreeSet<_>>() {
                let both = (theirs.get(key), ours.get(key));
                if let (Some(theirs), Some(ours)) = both
                    && theirs.list == ours.list
                    && theirs.amounts == ours.amounts
                {
                    *account.agree.entry(ours.list.clone()).or_default() += 1;
                    account.unconfirmed += usize::from(ours.is_unconfirmed);
                    continue;
                }
                let why = rule(key, both, (file(a), file(b)), (before, &night));
                let why = why.unwrap_or_else(|| panic!("{}: {} to {}: {key:?}: {both:?}", source.name, a.id, b.id));
                *account.explained.entry(why).or_default() += 1;
            }
        }
        nights.insert(snapshot.id.to_string(), night);
    }
    account.held = held(root, source);
    (account, nights)
}

/// What the rules held back or refused in all nights, refused ones too.
fn held(root: &Path, source: &Source) -> BTreeMap<String, usize> {
    let mut held = BTreeMap::new();
    for entry in std::fs::read_dir(root.join("runs")).expect("the runs can be listed") {
        let path = entry.expect("an entry").path();
        let name = path.file_name().expect("a file has a name").to_string_lossy().into_owned();
        if !name.strip_suffix(".findings.parquet").is_some_and(|night| source.nights.contains_key(night)) {
            continue;
        }
        let rows = ParquetReader::new(std::fs::File::open(&path).expect("it opens")).finish().expect("it reads");
        for row in 0..rows.height() {
            let severity = cell(&rows, "severity", row);
            if severity != "note" {
                *held.entry(format!("{} {severity}", cell(&rows, "rule", row))).or_default() += 1;
            }
        }
    }
    held
}
