//! Our reading held against other people's, price by price.
//!
//! Each provider's `oracles.rs` compares with sources that nobody here wrote, kept beside the checkout. What agrees is
//! counted, and what does not is counted by the reason why it differs. The sum is `tests/oracles/README.md`, which is
//! compared with what the comparisons find, or written when `GPULEDGER_BLESS=1` is in the environment.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

#[path = "alibaba/oracles.rs"]
mod alibaba;
#[path = "aws/oracles.rs"]
mod aws;
#[path = "azure/oracles.rs"]
mod azure;
#[path = "digitalocean/oracles.rs"]
mod digitalocean;
#[path = "gcp/oracles.rs"]
mod gcp;
#[path = "hotaisle/oracles.rs"]
mod hotaisle;
#[path = "hyperstack/oracles.rs"]
mod hyperstack;
#[path = "jarvislabs/oracles.rs"]
mod jarvislabs;
#[path = "modal/oracles.rs"]
mod modal;
#[path = "nebius/oracles.rs"]
mod nebius;
#[path = "oci/oracles.rs"]
mod oci;
#[path = "ovhcloud/oracles.rs"]
mod ovhcloud;
mod readings;
#[path = "runpod/oracles.rs"]
mod runpod;
#[path = "scaleway/oracles.rs"]
mod scaleway;
#[path = "seeweb/oracles.rs"]
mod seeweb;
#[path = "thundercompute/oracles.rs"]
mod thundercompute;
#[path = "together/oracles.rs"]
mod together;
mod trackers;
#[path = "verda/oracles.rs"]
mod verda;

/// The comparison with one source.
#[derive(Debug, Default)]
pub struct Comparison {
    /// Provider. `aws`
    provider: &'static str,
    /// Folder or file of the source below the shared folder. `data/history/aws-capacity-blocks`
    source: &'static str,
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

fn comparisons() -> Vec<Comparison> {
    let all = [
        alibaba::compare(),
        aws::compare(),
        azure::compare(),
        digitalocean::compare(),
        gcp::compare(),
        hotaisle::compare(),
        hyperstack::compare(),
        jarvislabs::compare(),
        modal::compare(),
        nebius::compare(),
        oci::compare(),
        ovhcloud::compare(),
        runpod::compare(),
        scaleway::compare(),
        seeweb::compare(),
        thundercompute::compare(),
        together::compare(),
        verda::compare(),
    ];
    all.into_iter().flatten().flatten().collect()
}

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
    let text = render(&comparisons);
    if std::env::var_os("GPULEDGER_BLESS").is_some() {
        std::fs::write(&path, &text).expect("the file can be written");
    }
    let found = std::fs::read_to_string(&path).expect("there is a file of comparisons");
    assert_eq!(found, text, "tests/oracles/README.md is not what the comparisons find; bless it and read the difference");
}

fn render(comparisons: &[Comparison]) -> String {
    let mut text = String::from(
        "# Held against other people's readings\n\n\
         Written by `cargo test -p gpuledger-scrapers --test oracles`, from sources that nobody of this project wrote. They are\n\
         not part of it; without them the test says `skipped`. A price counts once for each source. Of Tencent Cloud, Huawei Cloud,\n\
         Volcengine, CloudRift and Hetzner nobody's reading was at hand, and of Vast.ai's listings none of the same minute.\n",
    );
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
