//! Tencent Cloud, China site: the answers behind the purchase page <https://buy.cloud.tencent.com/price/gpu>.
//!
//! In: the list of zones (`/cgi/area/queryCvmRegion`), which only leads on, and one answer for each zone
//! (`cvm/DescribeZoneInstanceConfigInfos`) with a row for each machine type and way of paying. Out: list prices, and
//! lower ones beside them as promotions. Never a card read out of a free text, and never a price without an answer: no
//! built-in list stands in for it.
//!
//! Quirks, as documented up to 2026-08:
//! - The host is undocumented, and an error comes as HTTP 200 with `code` other than 0 or with `Response.Error`.
//! - No currency is stated. The China site sells in CNY, in ap-singapore or na-siliconvalley too, and at other prices
//!   than the international site does in USD. Whether tax is included is not stated either.
//! - The card is no field. It follows from the machine type; the free text `Remark` (`8 * NVIDIA A100`) is a check, and
//!   does not tell 40 GB from 80. A type that the table lacks is published without a card.
//! - `GpuCount` may be 0.25, while `Gpu` is a whole number in the same row.
//! - An hourly price may fall after 96 and after 360 hours of continuous use; the later steps are plans of their own.
//! - Sold-out rows keep their prices, some of them zero. Every zone repeats the price of a type, or has its own.
//! - The list of zones may hold regions without zones; they are passed over.
//! - Families that are sold by invitation are listed for everybody, and so are machines with FPGAs and without GPUs.
//! - Only Linux is asked for: what the answers are to another platform is not documented.

mod price;
mod rows;
#[cfg(test)]
mod tests;

use std::collections::BTreeSet;
use std::sync::LazyLock;

use crate::contract::{Method, Page, PageRequest, Parsed, SCOPE_INDEX, ScrapeError, Scraper};
use crate::hardware::{Hardware, KnownMachine};
use crate::json::{self, Object, Value};
use crate::manifest::Manifest;

/// The source.
pub struct Tencent;

static MANIFEST: LazyLock<Manifest> =
    LazyLock::new(|| Manifest::parse(include_str!("manifest.toml")).expect("the manifest beside this file reads"));

static HARDWARE: LazyLock<Hardware> =
    LazyLock::new(|| Hardware::parse(include_str!("hardware.toml")).expect("the hardware table beside this file reads"));

const ROWS: &str = "InstanceTypeQuotaSet";
const ZONE_URL: &str = "https://workbench.cloud.tencent.com/cgi/api?i=cvm/DescribeZoneInstanceConfigInfos&uin=&region={region}";
const ZONE_BODY: &str = r#"{"serviceType":"cvm","action":"DescribeZoneInstanceConfigInfos","region":"{region}","cgiName":"api","data":{"Version":"2017-03-12","Platform":"LINUX","Filters":[{"Name":"zone","Values":["{zone}"]},{"Name":"instance-charge-type","Values":["PREPAID","POSTPAID_BY_HOUR","SPOTPAID"]}]}}"#;

impl Scraper for Tencent {
    fn manifest(&self) -> &'static Manifest {
        &MANIFEST
    }

    fn machines(&self) -> Vec<KnownMachine> {
        HARDWARE.machines()
    }

    fn follow(&self, page: &Page) -> Result<Vec<PageRequest>, ScrapeError> {
        let response = response(page)?;
        if response.has("RegionSet") { zone_requests(page, &response) } else { Ok(Vec::new()) }
    }

    fn scope(&self, page: &Page) -> Result<Option<String>, ScrapeError> {
        let response = response(page)?;
        if response.has("RegionSet") {
            return Ok(Some(SCOPE_INDEX.to_owned()));
        }
        let mut zones = BTreeSet::new();
        for row in quota_rows(page, &response)? {
            if let Ok(zone) = row.object().and_then(|row| row.text("Zone").map(|zone| zone.into_owned())) {
                zones.insert(zone);
            }
        }
        Ok(if zones.len() == 1 { zones.pop_first() } else { None })
    }

    fn parse(&self, pages: &[Page]) -> Result<Parsed, ScrapeError> {
        let mut parsed = Parsed::default();
        for page in pages {
            let response = response(page)?;
            if !response.has("RegionSet") {
                for row in quota_rows(page, &response)? {
                    rows::take(page, &row, &mut parsed);
                }
            }
        }
        Ok(parsed)
    }
}

/// What an answer holds, once it is none of its two kinds of error.
fn response(page: &Page) -> Result<Object<'_>, ScrapeError> {
    let error = |at: &str, text: String| ScrapeError::ErrorAnswer { page: page.name.clone(), at: at.to_owned(), text };
    let document = json::document(page)?;
    if document.field("code")?.characters() != "0" {
        return Err(error("/code", json::start_of(page.text()?)));
    }
    let response = document.field("data")?.object()?.field("Response")?.object()?;
    match response.optional("Error") {
        Some(stated) => Err(error("/data/Response/Error", json::start_of(stated.characters()))),
        None => Ok(response),
    }
}

fn quota_rows<'a>(page: &Page, response: &Object<'a>) -> Result<Vec<Value<'a>>, ScrapeError> {
    some(page, response.field(ROWS)?)
}

fn some<'a>(page: &Page, list: Value<'a>) -> Result<Vec<Value<'a>>, ScrapeError> {
    let elements = list.list()?;
    if elements.is_empty() {
        Err(ScrapeError::NothingFound { page: page.name.clone(), at: list.place().at })
    } else {
        Ok(elements)
    }
}

fn zone_requests(page: &Page, response: &Object) -> Result<Vec<PageRequest>, ScrapeError> {
    let mut requests: Vec<PageRequest> = Vec::new();
    let regions = response.field("RegionSet")?;
    let place = regions.place();
    for region in some(page, regions)? {
        let region = region.object()?;
        // A region without zones, or a zone without a name, sells nothing and costs no other zone.
        let Some(zones) = region.optional("zones") else { continue };
        for zone in zones.list()? {
            let zone = zone.object()?.field("zone")?;
            if zone.is_null() || zone.text()?.is_empty() {
                continue;
            }
            let (name, zone) = (code(page, &region.field("region")?)?, code(page, &zone)?);
            let fill = |text: &str| text.replace("{region}", &name).replace("{zone}", &zone);
            let request = PageRequest {
                method: Method::Post,
                body: Some(fill(ZONE_BODY)),
                ..PageRequest::get(format!("zone-{zone}"), zone.as_str(), fill(ZONE_URL))
            };
            if !requests.contains(&request) {
                requests.push(request);
            }
        }
    }
    // Regions without a single zone are no list of zones.
    if requests.is_empty() { Err(ScrapeError::NothingFound { page: page.name.clone(), at: place.at }) } else { Ok(requests) }
}

/// A region or zone, which goes into an address and a body and so may hold nothing that means something there.
fn code(page: &Page, value: &Value) -> Result<String, ScrapeError> {
    let text = value.text()?;
    if !text.is_empty() && text.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-') {
        return Ok(text.into_owned());
    }
    Err(ScrapeError::ShapeChanged {
        page: page.name.clone(),
        at: value.place().at,
        expected: "the code of a region or zone".to_owned(),
        found: json::start_of(value.characters()),
    })
}
