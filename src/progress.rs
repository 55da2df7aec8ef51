//! A bar a provider while a night is fetched, for somebody who watches. Elsewhere the lines of the log tell how it ended.
//! Writes to stderr only.

use indicatif::{HumanBytes, MultiProgress, ProgressBar, ProgressStyle};

use crate::gather::Delivery;
use crate::log;
use crate::print::harmless;

/// The bars of a night.
#[derive(Debug)]
pub struct Bars {
    on_terminal: Option<MultiProgress>,
}

/// The bar of a provider.
#[derive(Debug)]
pub struct Bar {
    bar: Option<ProgressBar>,
}

impl Bars {
    /// Bars, where somebody watches and there is something to wait for.
    #[must_use]
    pub fn new(is_talkative: bool) -> Self {
        Self { on_terminal: (is_talkative && log::is_watched()).then(MultiProgress::new) }
    }

    /// The bar of a provider.
    ///
    /// # Panics
    /// Never: the template is part of the program.
    #[must_use]
    pub fn provider(&self, provider: &str) -> Bar {
        let style = || {
            ProgressStyle::with_template("{prefix:>14} {bar:30} {pos:>3}/{len:3} pages  {msg}")
                .expect("the template is well-formed")
        };
        let bar = self
            .on_terminal
            .as_ref()
            .map(|bars| bars.add(ProgressBar::new(1).with_style(style()).with_prefix(provider.to_owned())));
        Bar { bar }
    }
}

impl Bar {
    /// Pages done, pages known, bytes so far.
    pub fn update(&self, done: usize, known: usize, bytes: u64) {
        if let Some(bar) = &self.bar {
            bar.set_length(u64::try_from(known).unwrap_or(u64::MAX));
            bar.set_position(u64::try_from(done).unwrap_or(u64::MAX));
            bar.set_message(HumanBytes(bytes).to_string());
        }
    }

    /// The provider is done.
    pub fn finish(&self, delivery: &Delivery) {
        let outcome = match delivery.failures.first() {
            None => format!("{} pages in {:.1} s", delivery.pages.len(), delivery.seconds),
            Some(failure) if delivery.pages.is_empty() => harmless(&failure.reason).into_owned(),
            Some(failure) => {
                let first = harmless(&failure.reason);
                format!("{} pages, {} failed, first {first}", delivery.pages.len(), delivery.failures.len())
            }
        };
        if let Some(bar) = &self.bar {
            bar.finish_with_message(outcome);
        }
    }
}
