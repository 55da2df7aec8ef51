//! Our reading held against other people's, price by price.
//!
//! Each provider's `oracles.rs` compares with sources that nobody here wrote, kept beside the checkout. What agrees is
//! counted, and what does not is counted by the reason why it differs. The sum is `tests/oracles/README.md`, which is
//! compared with what the comparisons find, or written when `GPULEDGER_BLESS=1` is in the environment.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use crate::ALL;

/// The comparisons of one provider, found wherever its folder hands them in with `inventory::submit!`.
pub struct Oracle(pub fn() -> Vec<Option<Comparison>>);

inventory::collect!(Oracle);

/// The comparison with one source.
#[derive(Debug, Default)]
pub struct Comparison {
    /// Provider. `aws`
    provider: &'static str,
    /// Folder or file of the source below the shared folder. `data/history/aws-capacity-blocks`
    pub source: &'static str,
    /// What was compared with what, in a sentence.
    what: &'static str,
    /// Values that are equal.
    agree: usize,
    /// Values that differ, or stand on one side only: by the reason why, with one example.
    differ: BTreeMap<&'static str, (usize, String)>,
}

impl Comparison {
    /// Starts a comparison; `None`, saying so, when the source is not beside the checkout.
    pub fn with(provider: &'static str, source: &'static str, what: &'static str) -> Option<Self> {
        if shared(source).exists() {
            return Some(Self { provider, source, what, ..Self::default() });
        }
        eprintln!("skipped: {source} is not in ../shared beside this checkout");
        None
    }

    /// Counts a value that is equal.
    pub fn agree(&mut self) {
        self.agree += 1;
    }

    /// Counts a value that is not, with the reason why ours is right or why the two cannot be equal.
    pub fn differ(&mut self, reason: &'static str, example: impl Into<String>) {
        self.differ.entry(reason).or_insert_with(|| (0, example.into())).0 += 1;
    }
}

/// A file or folder of the shared folder beside the checkout.
pub fn shared(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../shared").join(path)
}

/// All comparisons whose sources are here, in the order of the providers; of one provider in the order it names them.
fn comparisons() -> Vec<Comparison> {
    let mut all: Vec<_> = inventory::iter::<Oracle>().flat_map(|oracle| (oracle.0)()).flatten().collect();
    all.sort_by_key(|comparison| comparison.provider);
    all
}

/// What follows in the file is another test's: whole histories, walked from night to night.
const HISTORIES: &str = "\n# Whole histories, walked from night to night\n";

#[test]
fn every_source_agrees_or_its_differences_have_reasons() {
    let comparisons = comparisons();
    for comparison in &comparisons {
        assert!(comparison.agree > 0, "{} agrees with nothing of {}", comparison.provider, comparison.source);
    }
    if !shared("").exists() {
        eprintln!("skipped: ../shared is not beside this checkout");
        return;
    }
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/oracles/README.md");
    let found = std::fs::read_to_string(&path).expect("there is a file of comparisons");
    let (found, of_histories) = found.split_once(HISTORIES).expect("the file has the heading of the histories");
    let text = render(&comparisons);
    if std::env::var_os("GPULEDGER_BLESS").is_some() {
        std::fs::write(&path, format!("{text}{HISTORIES}{of_histories}")).expect("the file can be written");
        return;
    }
    assert_eq!(found, text, "tests/oracles/README.md is not what the comparisons find; bless it and read the difference");
}

fn render(comparisons: &[Comparison]) -> String {
    let mut text = String::from(
        "# Held against other people's readings\n\n\
         Written by `cargo test -p gpuledger-scrapers oracles`, from sources that nobody of this project wrote. They are\n\
         not part of it; without them the test says `skipped`. A price counts once for each source.\n",
    );
    let compared: BTreeSet<_> = comparisons.iter().map(|comparison| comparison.provider).collect();
    let of_prices = ALL.iter().map(|scraper| scraper.manifest()).filter(|manifest| manifest.published.is_some());
    let names = of_prices.filter(|manifest| !compared.contains(manifest.provider.as_str()));
    let names: Vec<_> = names.map(|manifest| manifest.name.as_str()).collect();
    let _ = writeln!(text, "\nNobody's reading was at hand of: {}.", names.join(", "));
    for comparison in comparisons {
        let differ: usize = comparison.differ.values().map(|(count, _)| count).sum();
        let compared = comparison.agree + differ;
        let _ = write!(
            text,
            "\n## {}: `{}`\n\n{}\n\n| | values |\n|---|---:|\n| compared | {compared} |\n| agree | {} |\n",
            comparison.provider, comparison.source, comparison.what, comparison.agree
        );
        for (reason, (count, example)) in &comparison.differ {
            let _ = writeln!(text, "| {reason} (such as {example}) | {count} |");
        }
    }
    text
}
