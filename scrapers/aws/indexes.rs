//! The indexes: which lists there are tonight, and which there were.
//!
//! In: the index of offers, of regions, of savings plans or of versions. Out: the pages they lead to. Addresses are read
//! from the indexes and never made up, but for the ending: beside each JSON file is a CSV of the same facts, a price a line. Where the index
//! lacks the address of one region among others, its newest list is asked for beside the index.

use std::collections::BTreeMap;

use chrono::NaiveDateTime;

use super::{changed, places, plans};
use crate::contract::{Page, PageRequest, PastNight, SCOPE_INDEX, ScrapeError};
use crate::json::{self, Object, Value, start_of};
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
    let entries: Vec<(Option<String>, Value<'_>)> = match regions.list() {
        Ok(list) => list.into_iter().map(|region| (None, region)).collect(),
        Err(_) => regions.object()?.values().map(|(code, region)| (Some(code.to_owned()), region)).collect(),
    };
    let mut requests = Vec::new();
    let mut odd = Vec::new();
    for (code, region) in entries {
        let kind = if code.is_some() { PRICES } else { PLANS };
        match list_of(page, kind, &region) {
            Ok(request) => requests.push(request),
            Err(error) => odd.push((kind, code, region, error)),
        }
    }
    if requests.is_empty() {
        let nothing = ScrapeError::NothingFound { page: page.name.clone(), at: "/regions".to_owned() };
        return Err(odd.into_iter().next().map_or(nothing, |(.., error)| error));
    }
    // A region that the index does not say the list of costs no other: its list is asked for where the newest one stands.
    for (kind, code, region, error) in odd {
        requests.push(newest_list_of(page, kind, code.as_deref(), &region).ok_or(error)?);
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

fn list_of(page: &Page, kind: &str, region: &Value<'_>) -> Result<PageRequest, ScrapeError> {
    let region = region.object()?;
    let field = if kind == PLANS { "versionUrl" } else { "currentVersionUrl" };
    let code = region.text("regionCode")?;
    let path = region.text(field)?;
    let at = format!("{}/{field}", region.place().at);
    let Some(stem) = path.strip_suffix("/index.json") else {
        return Err(changed(page, at, "the path of an `index.json`", start_of(&path)));
    };
    let request = request(kind, &code, address(page, &at, &format!("{stem}/index.csv"))?);
    let is_version = stem.split('/').any(|part| part.len() == 14 && part.bytes().all(|byte| byte.is_ascii_digit()));
    Ok(if is_version { request.immutable() } else { request })
}

fn request(kind: &str, region: &str, url: String) -> PageRequest {
    let scope = if kind == PLANS { plans::scope_of(region) } else { region.to_owned() };
    PageRequest::get(format!("{kind}{region}"), scope, url)
}

/// The newest list of a region, which stands beside the index of regions: `…/current/us-east-1/index.csv`.
fn newest_list_of(page: &Page, kind: &str, code: Option<&str>, region: &Value<'_>) -> Option<PageRequest> {
    let stated = region.object().ok().and_then(|region| region.text("regionCode").ok());
    let code = stated.as_deref().or(code)?;
    let folder = page.url.strip_suffix("/region_index.json").filter(|folder| folder.ends_with("/current"))?;
    let url = format!("{folder}/{code}/index.csv");
    (region_in(&url).as_deref() == Some(code)).then(|| request(kind, code, url))
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
/// and savings plans, spot prices and Capacity Blocks keep no versions and are other scopes.
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
            Ok::<_, ScrapeError>(request(PRICES, region, url).immutable().if_there())
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
