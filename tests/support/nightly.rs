//! Nights of two providers and exchange rates, from files that a test changes as sources do.

use std::path::PathBuf;

use gpuledger::run::Night;

use crate::support::{Dataset, write_pages};

pub struct Nights {
    pub dataset: Dataset,
    pages: tempfile::TempDir,
}

impl Nights {
    /// Pages as they were recorded.
    pub fn new() -> Self {
        let nights = Self { dataset: Dataset::new(), pages: tempfile::tempdir().expect("there is room for a folder") };
        nights.publishes("lambda", |text| text);
        nights.publishes("modal", |text| text);
        nights.publishes("ecb", |text| text);
        nights
    }

    /// What a provider publishes from now on, made of its recording.
    pub fn publishes(&self, provider: &str, change: impl Fn(String) -> String) {
        self.is_away(provider);
        write_pages(self.pages.path(), provider, |index, name| format!("{index}-{name}"), change);
    }

    /// A provider whose pages say nothing from now on.
    pub fn is_broken(&self, provider: &str) {
        self.publishes(provider, |_| "<html>We are down for maintenance.</html>".to_owned());
    }

    /// A provider that is not asked from now on.
    pub fn is_away(&self, provider: &str) {
        let folder = self.pages.path().join(provider);
        if folder.exists() {
            std::fs::remove_dir_all(folder).expect("the folder can be removed");
        }
    }

    pub async fn night(&self, at: &str) -> Night {
        self.dataset.collect(&["--at", at, "--from", self.from()]).await.expect("the night runs")
    }

    pub fn from(&self) -> &str {
        self.pages.path().to_str().expect("a temporary folder's name is text")
    }

    pub fn file(&self, path: &str) -> PathBuf {
        self.dataset.root().join(path)
    }
}
