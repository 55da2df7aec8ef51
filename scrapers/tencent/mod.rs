//! Tencent Cloud, China site: the answers behind the purchase page <https://buy.cloud.tencent.com/price/gpu>.
//!
//! In: the list of zones (`/cgi/area/queryCvmRegion`), which only leads on, and one answer for each zone
//! (`cvm/DescribeZoneInstanceConfigInfos`) with a row for each machine type and way of paying. Out: list prices, and
//! lower ones beside them as promotions. Never a price for a machine whose cards are not certain: without an answer
//! there is no price, and no built-in list stands in for it.
//!
//! Quirks, as documented up to 2026-08:
//! - The host is undocumented, and an error comes as HTTP 200 with `code` other than 0 or with `Response.Error`.
//! - No currency is stated. The China site sells in CNY, in ap-singapore or na-siliconvalley too, and at other prices
//!   than the international site does in USD. Whether tax is included is not stated either.
//! - The card is no field. It follows from the machine type; the free text `Remark` (`8 * NVIDIA A100`) is a check.
//! - `GpuCount` may be 0.25, while `Gpu` is a whole number in the same row.
//! - Sold-out rows keep their prices, some of them zero. Every zone repeats the price of a type.
//! - Machines with FPGAs, and all without GPUs, are in the same answer.

mod price;
#[cfg(test)]
mod tests;

use std::collections::BTreeSet;
use std::sync::LazyLock;

use crate::contract::{
    Availability, Machine, Method, Page, PageRequest, Parsed, Place, PublishedGpu, PublishedOffer, SCOPE_ALL, SCOPE_INDEX,
    ScrapeError, Scraper, SkipReason,
};
use crate::hardware::{self, Hardware};
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
        for row in rows(page, &response)? {
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
                for row in rows(page, &response)? {
                    take(page, &row, &mut parsed);
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

fn rows<'a>(page: &Page, response: &Object<'a>) -> Result<Vec<Value<'a>>, ScrapeError> {
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
    for region in some(page, response.field("RegionSet")?)? {
        let region = region.object()?;
        let (name, zones) = (region.field("region")?, region.field("zones")?.list()?);
        let name = code(page, &name)?;
        for zone in zones {
            let zone = code(page, &zone.object()?.field("zone")?)?;
            let fill = |text: &str| text.replace("{region}", &name).replace("{zone}", &zone);
            let request = PageRequest {
                name: format!("zone-{zone}"),
                scope: zone.clone(),
                url: fill(ZONE_URL),
                method: Method::Post,
                body: Some(fill(ZONE_BODY)),
                is_immutable: false,
                with_key: false,
            };
            if !requests.contains(&request) {
                requests.push(request);
            }
        }
    }
    Ok(requests)
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

fn take(page: &Page, value: &Value, parsed: &mut Parsed) {
    let place = value.place();
    let row = match value.object() {
        Ok(row) => row,
        Err(error) => return parsed.take("a row", place, Err(error.into())),
    };
    let label = match row.text("InstanceType") {
        Ok(text) => text.into_owned(),
        Err(_) => "a row without InstanceType".to_owned(),
    };
    match offers(page, &row, &place, parsed) {
        Ok(offers) => offers.into_iter().for_each(|offer| parsed.take(label.clone(), place.clone(), offer)),
        Err(reason) => parsed.take(label, place, Err(reason)),
    }
}

/// Everything one row offers: as many offers as it has prices.
fn offers(
    page: &Page,
    row: &Object,
    place: &Place,
    parsed: &mut Parsed,
) -> Result<Vec<Result<PublishedOffer, SkipReason>>, SkipReason> {
    let instance_type = row.text("InstanceType")?;
    if !has_gpu(row, &instance_type) {
        return Err(SkipReason::OutOfScope("not a GPU machine"));
    }
    let (zone, region) = zone_and_region(page, row)?;
    let (gpu, machine) = hardware_of(row, &instance_type)?;
    let availability = availability(row)?;
    let charge_type = row.text("InstanceChargeType")?;
    let price = row.field("Price")?.object()?;
    let prices = price::of(&charge_type, &price, row.text("Status")? == "SOLD_OUT")?;
    for object in [row, &price] {
        object.report_unread(&MANIFEST.ignored_fields, &mut parsed.unread_fields);
    }
    let offer = |price: price::Price| {
        let mut flags = price.flags;
        if gpu.label.is_none() {
            flags.insert("card_not_named");
        }
        let mut terms = price.terms;
        terms.availability = Some(availability);
        PublishedOffer {
            site: None,
            sku: Some(format!("{zone}:{instance_type}:{charge_type}")),
            instance_type: Some(instance_type.to_string()),
            offer_label: None,
            region: Some(region.clone()),
            zone: Some(zone.clone()),
            gpu: gpu.clone(),
            machine: machine.clone(),
            terms,
            price: price.price,
            place: place.clone(),
            flags,
        }
    };
    Ok(prices.into_iter().map(|price| price.map(offer)).collect())
}

/// Whether the row is of a machine with GPUs. A count that cannot be read is taken for one, so that it is reported.
fn has_gpu(row: &Object, instance_type: &str) -> bool {
    let counts = |name| !matches!(row.optional_decimal(name), Ok(count) if count.is_none_or(|count| count.is_zero()));
    counts("GpuCount") || counts("Gpu") || HARDWARE.of(instance_type).is_ok()
}

/// The zone, and the region that its code begins with. `ap-guangzhou-6`, `ap-guangzhou`
fn zone_and_region(page: &Page, row: &Object) -> Result<(String, String), SkipReason> {
    let zone = row.text("Zone")?;
    let numbered = zone.rsplit_once('-').filter(|(_, number)| !number.is_empty() && number.chars().all(|c| c.is_ascii_digit()));
    let Some((region, _)) = numbered else {
        return Err(SkipReason::UnknownWord { what: "zone", word: zone.into_owned() });
    };
    let contradiction = |what: &str| SkipReason::Contradiction(format!("a row of zone {zone} in the answer for {what}"));
    if page.scope != SCOPE_ALL && page.scope != zone {
        return Err(contradiction(&page.scope));
    }
    match page.url.split(['?', '&']).find_map(|part| part.strip_prefix("region=")) {
        Some(asked) if asked != region => Err(contradiction(asked)),
        _ => Ok((zone.to_string(), region.to_owned())),
    }
}

/// The cards from the table, and what the row says of the rest, once the row does not contradict the table.
fn hardware_of(row: &Object, instance_type: &str) -> Result<(PublishedGpu, Machine), SkipReason> {
    let (gpu, mut machine) = HARDWARE.of(instance_type)?;
    let count = row.decimal("GpuCount")?;
    if hardware::count_of(count) != gpu.count {
        let known = gpu.count.map_or_else(|| "none".to_owned(), |count| count.to_string());
        let text = format!("{instance_type}: GpuCount is {count}, the hardware table has {known}");
        return Err(SkipReason::Contradiction(text));
    }
    let remark = row.optional_text("Remark")?;
    if let (Some(named), Some(label)) = (remark.as_deref().and_then(card_in), gpu.label.as_deref())
        && label.split(' ').next().is_some_and(|card| !card.eq_ignore_ascii_case(named))
    {
        return Err(SkipReason::Contradiction(format!("{instance_type}: Remark names {named}, the hardware table {label}")));
    }
    let family = row.text("InstanceFamily")?;
    machine.vcpus = Some(row.decimal("Cpu")?);
    machine.system_memory_gib = Some(row.decimal("Memory")?);
    machine.is_bare_metal = Some(family.starts_with("BM") || family.starts_with("HCC"));
    Ok((gpu, machine))
}

/// The card that a remark such as `8 * NVIDIA Tesla V100-NVLink-32G` names; `None` where it plainly names none.
fn card_in(remark: &str) -> Option<&str> {
    let (_, after) = remark.split_once("NVIDIA")?;
    let words = after.split(|c: char| !c.is_ascii_alphanumeric()).filter(|word| !word.is_empty() && *word != "Tesla");
    words.take(1).find(|word| word.starts_with(|c: char| c.is_ascii_uppercase()) && word.contains(|c: char| c.is_ascii_digit()))
}

fn availability(row: &Object) -> Result<Availability, SkipReason> {
    let (status, stock) = (row.text("Status")?, row.optional_text("StatusCategory")?);
    match (status.as_ref(), stock.as_deref()) {
        ("SOLD_OUT", _) | ("SELL", Some("WithoutStock")) => Ok(Availability::SoldOut),
        ("SELL", Some("UnderStock")) => Ok(Availability::Low),
        ("SELL", None | Some("EnoughStock" | "NormalStock")) => Ok(Availability::Available),
        ("SELL", Some(word)) | (word, _) => Err(SkipReason::UnknownWord { what: "availability", word: word.to_owned() }),
    }
}
