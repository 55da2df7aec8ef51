//! The newest build of each site's price file, read from the source of its pricing page.
//!
//! In: a pricing page. Out: the request for the price file. Never counts upwards from a number it knows, and never takes an
//! older number because the page shows no newer one.

use crate::contract::{Page, PageRequest, ScrapeError, Site};

use super::changed;

/// What every address of a build begins with, behind the host.
const FOLDER: &str = "ecs-price-info";
const SITES: [Site; 2] = [Site::Intl, Site::Cn];

/// The requests a pricing page leads to: the price file of its own site, or those of all sites it mentions when its address
/// does not tell its site.
pub(super) fn requests(page: &Page) -> Result<Vec<PageRequest>, ScrapeError> {
    // Addresses inside a script's string have their slashes escaped, in one of two ways.
    let text = page.text()?.replace("\\/", "/").replace("\\u002F", "/").replace("\\u002f", "/");
    let own = if page.url.contains("alibabacloud.com/") {
        &SITES[..1]
    } else if page.url.contains("aliyun.com/") {
        &SITES[1..]
    } else {
        &SITES[..]
    };
    let mut requests = Vec::new();
    for site in own {
        if let Some(number) = newest(page, &text, *site)? {
            requests.push(PageRequest::get(format!("prices-{site}"), site.word(), address(*site, number)));
        }
    }
    if requests.is_empty() {
        let wanted: Vec<_> = own.iter().map(|site| format!("`{}2.0.N/`", folder(*site))).collect();
        return Err(changed(page, "/", format!("an address with {}", wanted.join(" or ")), "none"));
    }
    Ok(requests)
}

/// The address of a build. Its bytes do not change, but it is asked for every night all the same: an unchanged answer costs
/// nothing, and the time it was seen decides whether the build is still maintained.
fn address(site: Site, number: u32) -> String {
    format!("https://g.alicdn.com/aliyun/{}2.0.{number}/price/download/instancePrice.json", folder(site))
}

/// The folder of a site's builds. `ecs-price-info-intl/`
pub(super) fn folder(site: Site) -> String {
    if site == Site::Intl { format!("{FOLDER}-intl/") } else { format!("{FOLDER}/") }
}

/// The highest build number of a site that the page mentions.
fn newest(page: &Page, text: &str, site: Site) -> Result<Option<u32>, ScrapeError> {
    let mut newest = None;
    for (at, found) in text.match_indices(&folder(site)) {
        let rest = &text[at + found.len()..];
        let version = rest.split(|c: char| !c.is_ascii_digit() && c != '.').next().unwrap_or_default();
        // A template of an address (`${version}/price`) names no build.
        if version.is_empty() {
            continue;
        }
        let number = version.strip_prefix("2.0.").and_then(|number| number.parse::<u32>().ok());
        let number = number.ok_or_else(|| changed(page, format!("byte {at}"), "a build `2.0.N`", format!("`{version}`")))?;
        newest = newest.max(Some(number));
    }
    Ok(newest)
}
