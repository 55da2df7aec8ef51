//! A small source made for tests of fetching: a page leads to another where it has a line `next /path`, to one whose
//! bytes never change where it has a line `for-ever /path`, and to an index where it has a line `index /path`; what follows
//! may be a whole address as well. A page that begins with `bulk` is a bulk file. Whenever it is shown a page it looks the
//! bytes up in the archive first, so every test also shows that they were kept before they were read.

use std::path::PathBuf;
use std::sync::LazyLock;

use gpuledger::archive::Archive;
use gpuledger_scrapers::contract::{Page, PageRequest, Parsed, SCOPE_INDEX, ScrapeError, Scraper};
use gpuledger_scrapers::manifest::Manifest;
use gpuledger_scrapers::sieve::Sieve;
use tempfile::TempDir;

/// A source whose pages say in plain text what follows.
pub struct Shop {
    manifest: &'static Manifest,
    folder: TempDir,
}

impl Shop {
    pub fn root(&self) -> PathBuf {
        self.folder.path().to_owned()
    }

    pub fn archive(&self) -> Archive {
        Archive::below(&self.root())
    }
}

impl Scraper for Shop {
    fn manifest(&self) -> &'static Manifest {
        self.manifest
    }

    fn follow(&self, page: &Page) -> Result<Vec<PageRequest>, ScrapeError> {
        let kept = self.archive().read(&page.sha256).expect("a page is archived before anything reads it");
        assert_eq!(kept, page.body);
        let base = self.manifest.homepage.as_str();
        let url = |path: &str| if path.starts_with('/') { format!("{base}{path}") } else { path.to_owned() };
        let of = |scope: &str, path: &str| PageRequest::get(path, scope, url(path));
        // What an index leads to is of a scope of its own.
        let request = |path: &str| of(if page.scope == SCOPE_INDEX { path } else { &page.scope }, path);
        let text = page.text()?;
        let next = text.lines().filter_map(|line| line.strip_prefix("next ")).map(request);
        let index = text.lines().filter_map(|line| line.strip_prefix("index ")).map(|path| of(SCOPE_INDEX, path));
        let for_ever = text.lines().filter_map(|line| line.strip_prefix("for-ever ")).map(|path| request(path).immutable());
        Ok(next.chain(index).chain(for_ever).collect())
    }

    fn sieve(&self, head: &[u8]) -> Option<&'static Sieve> {
        static BULK: LazyLock<Sieve> = LazyLock::new(|| Sieve::new("bulk-1", 1, &["\"gpu"]));
        head.starts_with(b"bulk\n").then_some(&BULK)
    }

    fn sieves(&self) -> &'static [&'static str] {
        &["bulk-1"]
    }

    fn parse(&self, pages: &[Page]) -> Result<Parsed, ScrapeError> {
        match pages.iter().find(|page| page.body.starts_with(b"refuse")) {
            Some(page) => Err(ScrapeError::NothingFound { page: page.name.clone(), at: "the first word".to_owned() }),
            None => Ok(Parsed::default()),
        }
    }
}

pub const LIMITS: &str = "timeout_s = 5\nmax_body_mib = 1\nmax_pages = 20";

/// A shop of pages with a scope each; a page is a path of the server or a whole address, after `keyed:` if it needs the key
/// and after `posted:` if a body is sent along.
pub fn shop(server: &str, limits: &str, pages: &[(&str, &str)]) -> &'static Shop {
    let mut text = format!(
        "provider = 'shop'\nname = 'Shop'\nsource = 'pages of a test'\nhomepage = '{server}'\nsite = 'global'\n\
         source_kind = 'vendor_api'\nscraper_version = 1\nterms = 'open'\nterms_note = 'ours'\n\
         [fetch]\nmin_interval_ms = 1\n{limits}\n"
    );
    for (scope, page) in pages {
        let (page, key) = page.strip_prefix("keyed:").map_or((*page, ""), |page| (page, "with_key = true\n"));
        let (page, post) = page.strip_prefix("posted:").map_or((page, ""), |page| (page, "method = 'POST'\nbody = '{}'\n"));
        let url = if page.starts_with('/') { format!("{server}{page}") } else { page.to_owned() };
        text.push_str(&format!("[[page]]\nname = '{page}'\nurl = '{url}'\nscope = '{scope}'\n{key}{post}"));
    }
    let manifest = Box::leak(Box::new(Manifest::parse(&text).expect("the manifest reads")));
    Box::leak(Box::new(Shop { manifest, folder: tempfile::tempdir().expect("there is room for a folder") }))
}
