//! Nights of two providers and exchange rates, from files that a test changes as sources do.

use std::path::PathBuf;

use gpuledger::run::Night;
use gpuledger_scrapers::recordings;

use super::Dataset;

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
        let folder = self.pages.path().join(provider);
        std::fs::create_dir_all(&folder).expect("there is room for a folder");
        // One page of exchange rates is enough: those of many days take long.
        let pages = recordings::newest(provider).expect("it has a recording").pages;
        for page in pages.into_iter().filter(|page| provider != "ecb" || page.name == "daily") {
            let body = change(String::from_utf8(page.body).expect("the page is text"));
            std::fs::write(folder.join(&page.name), body).expect("there is room for a page");
        }
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
