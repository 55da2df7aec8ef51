//! The indexes: which lists there are tonight, and which there were.
//!
//! In: the index of offers, of regions, of savings plans or of versions. Out: the pages they lead to. Addresses are read
//! from the indexes and never made up, but for the ending: beside each JSON file is a CSV of the same facts, a price a line.

use std::collections::BTreeMap;

use chrono::NaiveDateTime;

use super::{changed, places};
use crate::contract::{Page, PageRequest, PastNight, SCOPE_INDEX, SCOPE_PART, ScrapeError};
use crate::json::{self, Object, start_of};
use crate::manifest::Manifest;

/// How the names of pages with prices begin.
pub(super) const PRICES: &str = "prices-";

/// How the names of pages with savings plans begin.
pub(super) const PLANS: &str = "plans-";

const VERSIONS: &str = "https://pricing.us-east-1.amazonaws.com/offers/v1.0/aws/AmazonEC2/index.json";

/// The pages that an index leads to.
pub(super) fn follow(page: &Page) -> Result<Vec<PageRequest>, ScrapeError> {
    let document = json::document(page)?;
    if document.has("offers") {
        return offers(page, &document);
    }
    if !document.has("regions") {
        return Ok(Vec::new());
    }
    // Prices are listed as an object by region, savings plans as a list.
    let regions = document.field("regions")?;
    let mut requests = Vec::new();
    if let Ok(list) = regions.list() {
        for region in list {
            requests.push(list_of(page, PLANS, &region.object()?, "versionUrl")?);
        }
    } else {
        for (_, region) in regions.object()?.values() {
            requests.push(list_of(page, PRICES, &region.object()?, "currentVersionUrl")?);
        }
    }
    if requests.is_empty() {
        return Err(ScrapeError::NothingFound { page: page.name.clone(), at: "/regions".to_owned() });
    }
    Ok(requests)
}

/// The indexes of regions that the index of offers names. Only China may be without savings plans: nobody has seen
/// whether its index has them.
fn offers(page: &Page, document: &Object<'_>) -> Result<Vec<PageRequest>, ScrapeError> {
    let ec2 = document.field("offers")?.object()?.field("AmazonEC2")?.object()?;
    let regions = ec2.text("currentRegionIndexUrl")?;
    let is_china = regions.starts_with("/offers/v1.0/cn/");
    let suffix = if is_china { "-cn" } else { "" };
    let index = |name: &str, path: &str| {
        let url = address(page, "/offers/AmazonEC2", path)?;
        Ok::<_, ScrapeError>(PageRequest::get(format!("{name}{suffix}"), SCOPE_INDEX, url))
    };
    let mut requests = vec![index("regions", &regions)?];
    match ec2.optional_text("currentSavingsPlanIndexUrl")? {
        Some(path) => requests.push(index("savings", &path)?),
        None if is_china => {}
        None => drop(ec2.text("currentSavingsPlanIndexUrl")?),
    }
    Ok(requests)
}

fn list_of(page: &Page, kind: &str, region: &Object<'_>, field: &str) -> Result<PageRequest, ScrapeError> {
    let code = region.text("regionCode")?;
    let path = region.text(field)?;
    let at = format!("{}/{field}", region.place().at);
    let Some(stem) = path.strip_suffix("/index.json") else {
        return Err(changed(page, at, "the path of an `index.json`", start_of(&path)));
    };
    let request = PageRequest::get(format!("{kind}{code}"), &*code, address(page, &at, &format!("{stem}/index.csv"))?);
    let is_version = stem.split('/').any(|part| part.len() == 14 && part.bytes().all(|byte| byte.is_ascii_digit()));
    Ok(if is_version { request.immutable() } else { request })
}

/// The address of a path on the host of the index that names it.
fn address(page: &Page, at: &str, path: &str) -> Result<String, ScrapeError> {
    let host = page.url.split_once("://").map(|(scheme, rest)| (scheme, rest.split('/').next().unwrap_or(rest)));
    match host {
        Some((scheme, host)) if path.starts_with('/') && !path.starts_with("//") => Ok(format!("{scheme}://{host}{path}")),
        _ => Err(changed(page, at, "a path on the host of the index", start_of(path))),
    }
}

/// The region whose list an address is of. `…/AmazonEC2/20260901120000/us-east-1/index.csv`
pub(super) fn region_in(url: &str) -> Option<String> {
    let mut parts = url.rsplit('/');
    let (_, region) = (parts.next()?, parts.next()?);
    let is_code = region.split('-').count() >= 3 && region.bytes().all(|byte| byte == b'-' || byte.is_ascii_alphanumeric());
    is_code.then(|| region.to_owned())
}

/// The index of versions.
pub(super) fn versions() -> PageRequest {
    PageRequest::get("versions", SCOPE_INDEX, VERSIONS)
}

/// The nights of earlier versions, oldest first: the prices of every region that is known. Local zones have come and gone,
/// and savings plans, spot prices and Capacity Blocks keep no versions, so the scope of a page is that part of its region.
pub(super) fn history(index: &Page, manifest: &Manifest) -> Result<Vec<PastNight>, ScrapeError> {
    let document = json::document(index)?;
    let regions: Vec<&str> =
        manifest.regions.keys().map(String::as_str).filter(|code| !places::is_zone(code) && !code.starts_with("cn-")).collect();
    let mut nights = BTreeMap::new();
    for (version, about) in document.field("versions")?.object()?.values() {
        let at = about.place().at;
        let Ok(published_at) = NaiveDateTime::parse_from_str(version, "%Y%m%d%H%M%S") else {
            return Err(changed(index, at, "a version of 14 digits", start_of(version)));
        };
        let path = about.object()?.text("offerVersionUrl")?;
        let Some(stem) = path.strip_suffix("/index.json").filter(|stem| stem.ends_with(version)) else {
            return Err(changed(index, at, format!("the path of the `index.json` of version {version}"), start_of(&path)));
        };
        let page = |region: &&str| {
            let url = address(index, &at, &format!("{stem}/{region}/index.csv"))?;
            let scope = format!("{region}{SCOPE_PART}prices");
            Ok::<_, ScrapeError>(PageRequest::get(format!("{PRICES}{region}"), scope, url).immutable())
        };
        let pages = regions.iter().map(page).collect::<Result<_, _>>()?;
        let published_at = published_at.and_utc();
        nights.insert(published_at, PastNight { published_at, pages });
    }
    if nights.is_empty() {
        return Err(ScrapeError::NothingFound { page: index.name.clone(), at: "/versions".to_owned() });
    }
    Ok(nights.into_values().collect())
}
