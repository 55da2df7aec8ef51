//! Huawei Cloud ECS: the answers behind the price calculator <https://www.huaweicloud.com/pricing/calculator.html#/ecs>.
//!
//! In: the calculator's menu (`menuInfo`), which only leads on, and one answer for each region (`productInfo`) with a row
//! for each machine type and operating system; both from the China site and from the international one, whose lists
//! differ. Out: prices on demand, by the month and by the year, with NPUs beside GPUs. Never a price of which it is not
//! certain whose list it is from, and never one from the rating service of accounts, which takes off discounts.
//!
//! Quirks, as documented up to 2026-08:
//! - The host is undocumented; its path has changed once, when it got the prefix `/api/calculator`.
//! - No currency is stated and both sites sell in the same regions: the China site in CNY, the international one in USD.
//! - Units are codes that are glued to the number: `32BSSUNIT.pluralUnit.102` is 32 GiB.
//! - A year's amount is the whole period's. A reserved instance has several rows for each way of paying, which nobody has
//!   decoded: they are kept as skipped. So is a use that is not measured in hours, and a year without a number of years.
//! - Every type has a Windows twin, and some have one for a licence of one's own (`.byol`). An amount of 0, or no plan at
//!   all, means that it is not on sale.
//! - The plans of one row can be of several sites. `HWC` is the only code known: it was seen at the international host and is
//!   taken for Huawei's own cloud at both. Whose list a page is of, only its address tells.
//! - A row can hold for one location of the region (`locationCode`) and not for all of it.
//! - Other clouds built on the same software use the same names of types at other prices; they are not read here.

mod card;
mod rows;
#[cfg(test)]
mod tests;

use std::collections::BTreeSet;
use std::sync::LazyLock;

use crate::contract::{Page, PageRequest, Parsed, SCOPE_ALL, SCOPE_INDEX, ScrapeError, Scraper, Site};
use crate::hardware::{Hardware, KnownMachine};
use crate::json::{self, Object, Value};
use crate::manifest::Manifest;

/// The source.
pub struct Huawei;

static MANIFEST: LazyLock<Manifest> =
    LazyLock::new(|| Manifest::parse(include_str!("manifest.toml")).expect("the manifest beside this file reads"));

static HARDWARE: LazyLock<Hardware> =
    LazyLock::new(|| Hardware::parse(include_str!("hardware.toml")).expect("the hardware table beside this file reads"));

/// One of the two sites. The same region is in both, at other prices.
#[derive(Debug)]
struct PriceList {
    site: Site,
    host: &'static str,
    language: &'static str,
    currency_code: &'static str,
}

static PRICE_LISTS: [PriceList; 2] = [
    PriceList { site: Site::Cn, host: "portal.huaweicloud.com", language: "zh-cn", currency_code: "CNY" },
    PriceList { site: Site::Intl, host: "portal-intl.huaweicloud.com", language: "en-us", currency_code: "USD" },
];

/// The product in the menu.
const PRODUCT: &str = "ecs";
const MENU: &str = "menuInfos";
/// Lists and objects of the menu in each other; nothing sensible is nested deeper.
const DEEPEST: usize = 32;

impl Scraper for Huawei {
    fn manifest(&self) -> &'static Manifest {
        &MANIFEST
    }

    fn machines(&self) -> Vec<KnownMachine> {
        HARDWARE.machines()
    }

    fn follow(&self, page: &Page) -> Result<Vec<PageRequest>, ScrapeError> {
        let answer = answer(page)?;
        if !answer.has(MENU) {
            return Ok(Vec::new());
        }
        let list = price_list(page, &answer)?;
        let mut regions = BTreeSet::new();
        find_regions(page, &answer.field(MENU)?, DEEPEST, &mut regions)?;
        if regions.is_empty() {
            return Err(nothing(page, format!("/{MENU}, regions of `{PRODUCT}`")));
        }
        Ok(regions.iter().map(|region| list.request(region)).collect())
    }

    fn scope(&self, page: &Page) -> Result<Option<String>, ScrapeError> {
        let answer = answer(page)?;
        if answer.has(MENU) {
            return Ok(Some(SCOPE_INDEX.to_owned()));
        }
        let region = code(page, &answer.field("region")?)?;
        Ok(Some(price_list(page, &answer)?.scope(&region)))
    }

    fn parse(&self, pages: &[Page]) -> Result<Parsed, ScrapeError> {
        let mut parsed = Parsed::default();
        for page in pages {
            let answer = answer(page)?;
            if !answer.has(MENU) {
                let list = price_list(page, &answer)?;
                let region = region(page, &answer, list)?;
                let machines = machines(page, &answer)?;
                let before = (parsed.offers.len(), parsed.skipped.len());
                let accelerated = rows::take(list, &region, &machines, &mut parsed);
                // Empty lists of plans, or zeros throughout, are no end of all sales: the region would lose every machine.
                let skipped = &parsed.skipped[before.1..];
                if accelerated > 0 && parsed.offers.len() == before.0 && !rows::is_explained(skipped) {
                    return Err(nothing(page, "/product/ec2_vm, prices of accelerated machines".to_owned()));
                }
                answer.report_unread(&MANIFEST.ignored_fields, &mut parsed.unread_fields);
            }
        }
        Ok(rows::without_repeats(parsed))
    }
}

impl PriceList {
    fn request(&self, region: &str) -> PageRequest {
        let path = "api/calculator/rest/cbc/portalcalculatornodeservice/v4/api/productInfo";
        let asked = format!("urlPath={PRODUCT}&tag=general.online.portal&region={region}&tab=calc&sign=common");
        let scope = self.scope(region);
        PageRequest::get(scope.clone(), scope, format!("https://{}/{path}?{asked}&language={}", self.host, self.language))
    }

    fn scope(&self, region: &str) -> String {
        format!("{}-{region}", self.site)
    }
}

/// The outermost object, once it is no error.
fn answer(page: &Page) -> Result<Object<'_>, ScrapeError> {
    let answer = json::document(page)?;
    if !answer.has(MENU) && !answer.has("product") {
        let error = ["error_code", "errorCode", "error", "code"].iter().find(|name| answer.has(name));
        if let Some(name) = error {
            let (page, at) = (page.name.clone(), format!("/{name}"));
            return Err(ScrapeError::ErrorAnswer { page, at, text: json::start_of(answer.field(name)?.characters()) });
        }
    }
    Ok(answer)
}

/// The list an answer is from: its address tells, or the currency it states. Nothing else in an answer does.
fn price_list(page: &Page, answer: &Object) -> Result<&'static PriceList, ScrapeError> {
    let by_address = PRICE_LISTS.iter().find(|list| page.url.split(['/', '\\', ':']).any(|part| part == list.host));
    let stated = answer.optional("currency").map(|currency| currency.text().map(|code| (currency.place(), code))).transpose()?;
    let by_currency = |code: &str| PRICE_LISTS.iter().find(|list| list.currency_code == code);
    let changed = |at: String, expected: String, found: String| {
        Err(ScrapeError::ShapeChanged { page: page.name.clone(), at, expected, found: json::start_of(&found) })
    };
    match (by_address, stated) {
        (Some(list), None) => Ok(list),
        (Some(list), Some((place, code))) if list.currency_code != code => {
            changed(place.at, format!("{}, the currency of {}", list.currency_code, list.host), code.into_owned())
        }
        (Some(list), Some(_)) => Ok(list),
        (None, Some((place, code))) => match by_currency(&code) {
            Some(list) => Ok(list),
            None => changed(place.at, "CNY or USD".to_owned(), code.into_owned()),
        },
        (None, None) => {
            let hosts = PRICE_LISTS.each_ref().map(|list| list.host).join(" or ");
            changed("the address".to_owned(), format!("one at {hosts}, which tells whose list it is"), page.url.clone())
        }
    }
}

/// The region of an answer, which must be the one asked for.
fn region(page: &Page, answer: &Object, list: &PriceList) -> Result<String, ScrapeError> {
    let stated = answer.field("region")?;
    let region = code(page, &stated)?;
    let asked = page.url.split(['?', '&']).find_map(|part| part.strip_prefix("region="));
    let is_of_scope = page.scope == SCOPE_ALL || page.scope == list.scope(&region);
    match asked.filter(|asked| *asked != region).or_else(|| (!is_of_scope).then_some(page.scope.as_str())) {
        None => Ok(region),
        Some(expected) => Err(ScrapeError::ShapeChanged {
            page: page.name.clone(),
            at: stated.place().at,
            expected: expected.to_owned(),
            found: json::start_of(&region),
        }),
    }
}

/// The rows of machines. If none of them has the field that tells accelerators, nothing tells them any more.
fn machines<'a>(page: &Page, answer: &Object<'a>) -> Result<Vec<Value<'a>>, ScrapeError> {
    let list = answer.field("product")?.object()?.field("ec2_vm")?;
    let machines = list.list()?;
    if machines.is_empty() {
        return Err(nothing(page, list.place().at));
    }
    if machines.iter().any(|row| row.object().is_ok_and(|row| row.has(card::FIELD))) {
        return Ok(machines);
    }
    Err(ScrapeError::ShapeChanged {
        page: page.name.clone(),
        at: list.place().at,
        expected: format!("rows with a field `{}`", card::FIELD),
        found: "none".to_owned(),
    })
}

/// Collects the regions of the product from wherever it stands in the menu, which is nested differently at every place.
fn find_regions(page: &Page, menu: &Value, depth: usize, regions: &mut BTreeSet<String>) -> Result<(), ScrapeError> {
    if depth == 0 {
        return Err(nothing(page, format!("{}, which is nested too deeply", menu.place().at)));
    }
    if menu.characters().starts_with('[') {
        return menu.list()?.iter().try_for_each(|entry| find_regions(page, entry, depth - 1, regions));
    }
    if !menu.characters().starts_with('{') {
        return Ok(());
    }
    let entry = menu.object()?;
    if entry.optional("urlPath").and_then(|path| path.text().ok()).as_deref() == Some(PRODUCT) {
        for region in entry.field("regionOnline")?.object()?.field("regionList")?.list()? {
            regions.insert(code(page, &region)?);
        }
    }
    entry.values().try_for_each(|(_, inner)| find_regions(page, &inner, depth - 1, regions))
}

/// A region, which goes into an address and so may hold nothing that means something there.
fn code(page: &Page, value: &Value) -> Result<String, ScrapeError> {
    let text = value.text()?;
    if !text.is_empty() && text.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-') {
        return Ok(text.into_owned());
    }
    Err(ScrapeError::ShapeChanged {
        page: page.name.clone(),
        at: value.place().at,
        expected: "the code of a region".to_owned(),
        found: json::start_of(value.characters()),
    })
}

fn nothing(page: &Page, at: String) -> ScrapeError {
    ScrapeError::NothingFound { page: page.name.clone(), at }
}
