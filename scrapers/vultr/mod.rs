//! Vultr's public price API: <https://api.vultr.com/v2/plans?type=all&per_page=500> for virtual machines and
//! <https://api.vultr.com/v2/plans-metal?per_page=500> for bare metal. Prices are US dollars per machine and hour, before tax.
//!
//! - `type=all` is asked for, because `type=vcg` lacks the whole machines of type `vdm`; those and bare metal do not name
//!   their cards, which `hardware.toml` does.
//! - `gpu_count` is text and may be a fraction such as `1/8`; see `cards.rs`.
//! - `hourly_cost` is filled in even where `deploy_ondemand` is false: that rate cannot be bought and is no offer.
//! - `location_cost` may hold other prices for a region; they win over the plan's own.
//! - Answers before 2026 have no `deploy_ondemand`; their on-demand prices carry the flag `ondemand_not_stated`.
//! - A plan is not offered where `locations` is empty, and an empty name may stand among the others.

mod cards;

#[cfg(test)]
mod oracles;
#[cfg(test)]
mod tests;

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::sync::LazyLock;

use rust_decimal::Decimal;

use crate::contract::{
    Machine, Page, PageRequest, Parsed, PricePer, PriceUnit, PricingModel, PublishedOffer, PublishedPrice, ScrapeError, Scraper,
    SkipReason, Terms,
};
use crate::hardware::KnownMachine;
use crate::json::{self, Object, Value};
use crate::manifest::Manifest;
use crate::money;

/// The source.
pub struct Vultr;

static MANIFEST: LazyLock<Manifest> =
    LazyLock::new(|| Manifest::parse(include_str!("manifest.toml")).expect("the manifest beside this file reads"));

/// Price by the hour, on demand and preemptible.
const PRICES: [&str; 2] = ["hourly_cost", "hourly_cost_preemptible"];
const NOT_GPU: SkipReason = SkipReason::OutOfScope("not a GPU machine");

/// Which of the two lists a page holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum List {
    Plans,
    Metal,
}

impl List {
    const BOTH: [Self; 2] = [Self::Plans, Self::Metal];

    fn key(self) -> &'static str {
        match self {
            Self::Plans => "plans",
            Self::Metal => "plans_metal",
        }
    }
}

impl Scraper for Vultr {
    fn manifest(&self) -> &'static Manifest {
        &MANIFEST
    }

    fn machines(&self) -> Vec<KnownMachine> {
        cards::HARDWARE.machines()
    }

    fn follow(&self, page: &Page) -> Result<Vec<PageRequest>, ScrapeError> {
        let Some(cursor) = next_cursor(&json::document(page)?)? else { return Ok(Vec::new()) };
        let first = page.url.split("&cursor=").next().unwrap_or(&page.url);
        let url = format!("{first}&cursor={}", percent_encoded(&cursor));
        if url == page.url {
            return Err(changed(page, "/meta/links/next", "another page", "the page itself"));
        }
        let (base, number) =
            page.name.rsplit_once('-').and_then(|(base, n)| Some((base, n.parse::<u32>().ok()?))).unwrap_or((&page.name, 1));
        let name = format!("{base}-{}", number + 1);
        Ok(vec![PageRequest::get(name, page.scope.as_str(), url)])
    }

    fn parse(&self, pages: &[Page]) -> Result<Parsed, ScrapeError> {
        let mut parsed = Parsed::default();
        let mut by_list = Vec::new();
        for page in pages {
            by_list.push((list(page)?, page));
        }
        for list in List::BOTH {
            let pages: Vec<_> = by_list.iter().filter(|(of, _)| *of == list).map(|(_, page)| *page).collect();
            read_list(list, &pages, &mut parsed)?;
        }
        Ok(parsed)
    }
}

/// Tells a page's list by its key, and an error from a list.
fn list(page: &Page) -> Result<List, ScrapeError> {
    let document = json::document(page)?;
    if let Some(list) = List::BOTH.into_iter().find(|list| document.has(list.key())) {
        return Ok(list);
    }
    match document.optional("error") {
        Some(error) => Err(ScrapeError::ErrorAnswer {
            page: page.name.clone(),
            at: "/error".to_owned(),
            text: json::start_of(error.characters()),
        }),
        None => Err(changed(page, "/", "`plans` or `plans_metal`", &document.names().collect::<Vec<_>>().join(", "))),
    }
}

fn read_list(list: List, pages: &[&Page], parsed: &mut Parsed) -> Result<(), ScrapeError> {
    let (mut rows_read, mut total, mut unfollowed) = (0, None, None);
    let mut is_last_there = pages.is_empty();
    for page in pages {
        let document = json::document(page)?;
        let rows = document.field(list.key())?.list()?;
        if rows.is_empty() {
            return Err(ScrapeError::NothingFound { page: page.name.clone(), at: format!("/{}", list.key()) });
        }
        rows_read += rows.len();
        for row in rows {
            read_row(list, &row, parsed);
        }
        match next_cursor(&document)? {
            Some(cursor) => unfollowed = Some((*page, cursor)),
            None => is_last_there = true,
        }
        if let Some(meta) = document.optional("meta") {
            total = Some((*page, meta.object()?.field("total")?.whole()?));
        }
    }
    if let (false, Some((page, next))) = (is_last_there, unfollowed) {
        return Err(ScrapeError::PageMissing { page: page.name.clone(), at: "/meta/links/next".to_owned(), next });
    }
    match total {
        Some((page, total)) if usize::try_from(total) != Ok(rows_read) => {
            Err(changed(page, "/meta/total", &format!("{total} rows of `{}`", list.key()), &rows_read.to_string()))
        }
        _ => Ok(()),
    }
}

/// The cursor of the next page. An empty text is the end.
fn next_cursor(document: &Object<'_>) -> Result<Option<String>, ScrapeError> {
    let Some(meta) = document.optional("meta") else { return Ok(None) };
    let links = meta.object()?.field("links")?.object()?;
    let next = links.optional_text("next")?.map(std::borrow::Cow::into_owned);
    Ok(next.filter(|cursor| !cursor.is_empty()))
}

fn read_row(list: List, value: &Value<'_>, parsed: &mut Parsed) {
    let row = match value.object() {
        Ok(row) => row,
        Err(error) => return parsed.take("a row", value.place(), Err(error.into())),
    };
    let label = match row.text("id") {
        Ok(id) => id.into_owned(),
        Err(error) => return parsed.take("a row without id", row.place(), Err(error.into())),
    };
    let plan = match plan(list, &row, &label) {
        Ok(plan) => plan,
        Err(reason) => return parsed.take(label, row.place(), Err(reason)),
    };
    for region in &plan.regions {
        let before = (parsed.offers.len(), parsed.skipped.len());
        for model in [PricingModel::OnDemand, PricingModel::Spot] {
            match offer(list, &row, &plan, region, model) {
                Ok(Some(offer)) => parsed.offers.push(offer),
                Ok(None) => {}
                Err(reason) => parsed.take(format!("{label} {region} {model}"), row.place(), Err(reason)),
            }
        }
        if before == (parsed.offers.len(), parsed.skipped.len()) {
            let is_sold = plan.is_ondemand != Some(false) || plan.is_preemptible == Some(true);
            let reason = if is_sold {
                SkipReason::PriceZero
            } else {
                SkipReason::OutOfScope("deployed neither on demand nor preemptible")
            };
            parsed.take(format!("{label} {region}"), row.place(), Err(reason));
        }
    }
    row.report_unread(&MANIFEST.ignored_fields, &mut parsed.unread_fields);
    for prices in plan.own_prices.iter().flat_map(Object::values).filter_map(|(_, prices)| prices.object().ok()) {
        PRICES.iter().for_each(|field| drop(prices.optional(field)));
        prices.report_unread(&MANIFEST.ignored_fields, &mut parsed.unread_fields);
    }
}

/// What all offers of a row have in common.
struct Plan<'a> {
    id: &'a str,
    cards: cards::Cards,
    machine: Machine,
    regions: Vec<String>,
    /// The field `location_cost` where it holds anything.
    own_prices: Option<Object<'a>>,
    is_ondemand: Option<bool>,
    is_preemptible: Option<bool>,
}

fn plan<'a>(list: List, row: &Object<'a>, id: &'a str) -> Result<Plan<'a>, SkipReason> {
    let kind = row.text("type")?;
    let is_named = row.optional_text("gpu_type")?.is_some_and(|name| !name.is_empty());
    let is_gpu = match list {
        List::Plans => is_named || id.starts_with("vcg-") || ["vcg", "vdm"].contains(&kind.as_ref()),
        List::Metal => is_named || id.contains("gpu"),
    };
    if !is_gpu {
        return Err(NOT_GPU);
    }
    if let Some(word) = row.optional_text("invoice_type")?.filter(|word| word != "hourly") {
        return Err(SkipReason::UnknownWord { what: "invoice type", word: word.into_owned() });
    }
    // No row states a currency so far; one that does is not read as dollars.
    if let Some(word) = row.optional_text("currency")?.filter(|word| *word != MANIFEST.published().currency_code) {
        return Err(SkipReason::UnknownWord { what: "currency", word: word.into_owned() });
    }
    let own_prices = match row.optional("location_cost") {
        // A list without elements is how an empty object is written at times.
        Some(value) if value.characters().starts_with('[') && value.list()?.is_empty() => None,
        Some(value) => Some(value.object()?),
        None => None,
    };
    let mut regions = Vec::new();
    for region in row.field("locations")?.list()? {
        regions.push(region.text()?.into_owned());
    }
    regions.retain(|region| !region.is_empty());
    if regions.is_empty() {
        return Err(SkipReason::OutOfScope("offered in no region"));
    }
    Ok(Plan {
        id,
        cards: cards::of(row, id)?,
        machine: machine(list, row)?,
        regions,
        own_prices,
        is_ondemand: row.optional("deploy_ondemand").map(|value| value.truth()).transpose()?,
        is_preemptible: row.optional("deploy_preemptible").map(|value| value.truth()).transpose()?,
    })
}

fn machine(list: List, row: &Object<'_>) -> Result<Machine, SkipReason> {
    let threads = match list {
        List::Plans => "vcpu_count",
        List::Metal => "cpu_threads",
    };
    let disks = (row.optional_decimal("disk")?, row.optional_decimal("disk_count")?);
    Ok(Machine {
        vcpus: row.optional_decimal(threads)?,
        system_memory_gib: row.optional_decimal("ram")?.map(|mib| (mib / Decimal::from(1024)).normalize()),
        local_disk_gb: if let (Some(disk_gb), Some(count)) = disks { Some(disk_gb * count) } else { None },
        is_bare_metal: Some(list == List::Metal),
    })
}

/// The offer of one plan in one region, or `None` where it is not sold this way.
fn offer(
    list: List,
    row: &Object<'_>,
    plan: &Plan<'_>,
    region: &str,
    model: PricingModel,
) -> Result<Option<PublishedOffer>, SkipReason> {
    let (field, is_stated) = match model {
        PricingModel::OnDemand => (PRICES[0], plan.is_ondemand),
        _ => (PRICES[1], plan.is_preemptible),
    };
    // Marked as read even where it is not sold this way.
    let general = row.optional(field);
    let is_older_answer_about_preemptible = model == PricingModel::Spot && is_stated.is_none();
    if is_stated == Some(false) || is_older_answer_about_preemptible && (list == List::Plans || general.is_none()) {
        return Ok(None);
    }
    let regional =
        plan.own_prices.as_ref().and_then(|prices| prices.optional(region)).map(|prices| prices.object()).transpose()?;
    let (value, is_there) = match regional.filter(|prices| prices.has(field)) {
        Some(prices) => (prices.optional(field), true),
        None => (general, row.has(field)),
    };
    let Some(value) = value else {
        return Err(if is_there { SkipReason::PriceMissing } else { SkipReason::FieldMissing { field: field.to_owned() } });
    };
    let text = value.characters();
    let amount = match money::positive(value.decimal()?, text) {
        // Zero says that there is no such price, except where the source says that it is sold on demand.
        Err(SkipReason::PriceZero) if model == PricingModel::Spot || is_stated.is_none() => return Ok(None),
        amount => amount?,
    };
    let mut flags = BTreeSet::new();
    if plan.cards.is_worked_out {
        flags.insert("derived_share");
    }
    if model == PricingModel::OnDemand && is_stated.is_none() {
        flags.insert("ondemand_not_stated");
    }
    Ok(Some(PublishedOffer {
        site: None,
        sku: Some(plan.id.to_owned()),
        instance_type: Some(plan.id.to_owned()),
        offer_label: None,
        region: Some(region.to_owned()),
        zone: None,
        gpu: plan.cards.gpu.clone(),
        machine: plan.machine.clone(),
        terms: Terms::of(model),
        price: PublishedPrice {
            amount,
            upfront_amount: None,
            currency_code: MANIFEST.published().currency_code.clone(),
            unit: PriceUnit::Hour,
            per: PricePer::Instance,
            text: text.to_owned(),
            tax_included: MANIFEST.published().tax_included,
            listings: None,
        },
        place: value.place(),
        flags,
    }))
}

/// A cursor is opaque, so every character with a meaning in an address is written by its code.
fn percent_encoded(text: &str) -> String {
    let mut encoded = String::new();
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
            encoded.push(char::from(byte));
        } else {
            let _ = write!(encoded, "%{byte:02X}");
        }
    }
    encoded
}

fn changed(page: &Page, at: &str, expected: &str, found: &str) -> ScrapeError {
    ScrapeError::ShapeChanged {
        page: page.name.clone(),
        at: at.to_owned(),
        expected: expected.to_owned(),
        found: found.to_owned(),
    }
}
