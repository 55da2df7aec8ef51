//! Lambda's price page, <https://lambda.ai/pricing>: prices per GPU and hour of on-demand instances, in US dollars.
//!
//! - A strip of tabs `8x`, `4x`, `2x`, `1x`; each tab controls a panel with one table. The count of GPUs stands in the tab
//!   alone, so tab and panel are paired by `aria-controls` and never by their order.
//! - Class names end in a hash of the build; nothing is found by a whole class name.
//! - The same plan stands twice in a table with two memory sizes (A100 SXM): a row is plan, memory and count.
//! - Every table is there again inside the script that makes the page interactive. Only elements are read, and a row met
//!   twice refuses the page.
//! - Since 2025-12 the price header says `PRICE/GPU/HR*`. Before 2024 the same page printed prices per instance, so a table
//!   whose header does not say `/GPU/` is never read. The layout of 2024-11 has no tabs and is refused.
//! - 1-Click Clusters stand in a table of their own, outside the tabs, and are another product.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::LazyLock;

use num_rational::Ratio;
use rust_decimal::Decimal;
use scraper::{ElementRef, Html};

use crate::SKIPPED_PERCENT_MAX;
use crate::contract::{
    GpuShare, Machine, Page, Parsed, Place, PricePer, PriceUnit, PricingModel, PublishedGpu, PublishedOffer, PublishedPrice,
    ScrapeError, Scraper, SkipReason, Skipped, Terms,
};
use crate::manifest::Manifest;
use crate::money::{self, NumberFormat};
use crate::spot::Piece;
use crate::{cut, hardware, html};

#[cfg(test)]
mod oracles;
#[cfg(test)]
mod tests;

/// The source.
pub struct Lambda;

static MANIFEST: LazyLock<Manifest> =
    LazyLock::new(|| Manifest::parse(include_str!("manifest.toml")).expect("the manifest beside this file reads"));

const MEMORY: &str = "VRAM/GPU";
const PRICE: &str = "PRICE/GPU/HR*";
/// The headers of a table; the plan's own column has none.
const HEADERS: [&str; 5] = [MEMORY, "vCPUs", "RAM", "STORAGE", PRICE];

impl Scraper for Lambda {
    fn manifest(&self) -> &'static Manifest {
        &MANIFEST
    }

    fn pieces(&self, page: &Page, at: &str) -> Option<Vec<Piece>> {
        let (count, row) = at.strip_prefix("tab `")?.split_once("x`, row ")?;
        let (count, row): (u32, usize) = (count.parse().ok()?, row.parse().ok()?);
        let document = html::document(page).ok()?;
        let (_, tab) = tabs(page, strip(page, &document).ok()?).ok()?.into_iter().find(|(of_tab, _)| *of_tab == count)?;
        let id = tab.attr("aria-controls")?;
        let panel = document.select(&html::selector("[role=tabpanel]")).find(|panel| panel.attr("id") == Some(id))?;
        let headings = panel.select(&html::selector("thead tr")).next();
        let row = panel.select(&html::selector("tbody tr")).nth(row.checked_sub(1)?)?;
        Some(cut::rows(page.text().ok()?, &document, headings, row))
    }

    fn parse(&self, pages: &[Page]) -> Result<Parsed, ScrapeError> {
        let mut parsed = Parsed::default();
        for page in pages {
            read_page(page, &mut parsed)?;
        }
        Ok(parsed)
    }
}

fn read_page(page: &Page, parsed: &mut Parsed) -> Result<(), ScrapeError> {
    let document = html::document(page)?;
    let is_whole_page = is_whole(page)?;
    let strip = strip(page, &document)?;
    let frame = strip.parent().and_then(ElementRef::wrap).unwrap_or(strip);
    let panels: Vec<_> = frame.select(&html::selector("[role=tabpanel]")).collect();
    let tax_included = frame
        .select(&html::selector(".table-footer"))
        .any(|note| html::visible_text(note).contains("plus applicable sales tax"))
        .then_some(false);

    let mut missing = Vec::new();
    let mut places_by_row = BTreeMap::new();
    let mut panels_found = 0;
    for (count, tab) in tabs(page, strip)? {
        let id = tab.attr("aria-controls").ok_or_else(|| changed(page, &format!("tab `{count}x`"), "`aria-controls`", "none"))?;
        match panels.iter().find(|panel| panel.attr("id") == Some(id)) {
            Some(panel) => {
                panels_found += 1;
                read_panel(page, count, *panel, tax_included, &mut places_by_row, parsed)?;
            }
            None => missing.push((count, id)),
        }
    }
    if panels_found != panels.len() {
        return Err(changed(
            page,
            "`[role=tabpanel]`",
            &format!("{panels_found} panels, one for each tab"),
            &panels.len().to_string(),
        ));
    }
    if let Some((count, id)) = missing.first() {
        // An excerpt is read for the rows it has, but never so that the few missing tables slip under the limit of rows
        // not understood.
        let rows = parsed.offers.len() + parsed.skipped.len() + missing.len();
        if is_whole_page || missing.len() * 100 <= rows * SKIPPED_PERCENT_MAX {
            return Err(changed(page, &format!("tab `{count}x`"), &format!("a panel `#{id}` with a table"), "no such panel"));
        }
    }
    parsed.skipped.extend(missing.into_iter().map(|(count, id)| Skipped {
        place: Place { page: page.name.clone(), at: format!("#{id}") },
        label: format!("tab {count}x"),
        reason: SkipReason::Contradiction(format!("tab `{count}x` has no table")),
    }));
    Ok(())
}

/// Whether it is a page and not an excerpt of one. A page that was cut off, and an excerpt cut inside a table, are refused.
fn is_whole(page: &Page) -> Result<bool, ScrapeError> {
    let text = page.text()?.to_ascii_lowercase();
    let is_page = text.contains("<html") || text.contains("<!doctype");
    if is_page && !text.contains("</html>") {
        return Err(changed(page, "its end", "`</html>`", "a page that was cut off"));
    }
    if !is_page && text.matches("<table").count() != text.matches("</table>").count() {
        return Err(changed(page, "its end", "`</table>`", "a table that was cut off"));
    }
    Ok(is_page)
}

/// The strip of tabs that are numbers of GPUs. Other strips of tabs may stand on the page.
fn strip<'a>(page: &Page, document: &'a Html) -> Result<ElementRef<'a>, ScrapeError> {
    let holds_counts = |strip: &ElementRef<'_>| strip.select(&html::selector("[role=tab]")).any(|tab| count_of(tab).is_some());
    let strips: Vec<_> = document.select(&html::selector("[role=tablist]")).filter(holds_counts).collect();
    match strips.as_slice() {
        [strip] => Ok(*strip),
        _ => Err(changed(page, "`[role=tablist]`", "one strip of tabs such as `8x`", &strips.len().to_string())),
    }
}

fn tabs<'a>(page: &Page, strip: ElementRef<'a>) -> Result<Vec<(u32, ElementRef<'a>)>, ScrapeError> {
    let mut seen = BTreeSet::new();
    let read = |tab: ElementRef<'a>| match count_of(tab) {
        Some(count) if seen.insert(count) => Ok((count, tab)),
        _ => Err(changed(page, "`[role=tab]`", "each number of GPUs once, such as `8x`", &html::visible_text(tab))),
    };
    html::some(page, strip, "[role=tab]")?.into_iter().map(read).collect()
}

/// 8 from `8x`.
fn count_of(tab: ElementRef<'_>) -> Option<u32> {
    hardware::count(html::visible_text(tab).strip_suffix('x')?).filter(Ratio::is_integer).map(|count| count.to_integer())
}

fn read_panel(
    page: &Page,
    count: u32,
    panel: ElementRef<'_>,
    tax_included: Option<bool>,
    places_by_row: &mut BTreeMap<(String, Option<String>, u32), Place>,
    parsed: &mut Parsed,
) -> Result<(), ScrapeError> {
    let at = format!("tab `{count}x`");
    let table = html::one(page, panel, "table[class*=_pricingTable]")?;
    let headers: Vec<_> = html::some(page, table, "thead th")?.into_iter().map(html::visible_text).collect();
    for expected in HEADERS {
        if !headers.iter().any(|header| header == expected) {
            return Err(changed(
                page,
                &format!("{at}, table header"),
                &format!("`{expected}`"),
                &format!("`{}`", headers.join("`, `")),
            ));
        }
    }
    let is_known = |header: &String| header.is_empty() || header == "Plan" || HEADERS.contains(&header.as_str());
    parsed.unread_fields.extend(headers.iter().filter(|header| !is_known(header)).cloned());

    let rows: Vec<_> = table.select(&html::selector("tbody tr")).collect();
    if rows.is_empty() {
        return Err(ScrapeError::NothingFound { page: page.name.clone(), at: format!("{at}, table") });
    }
    for (index, row) in rows.into_iter().enumerate() {
        let place = Place { page: page.name.clone(), at: format!("{at}, row {}", index + 1) };
        let label = row.attr("data-plan").unwrap_or("a row without `data-plan`").to_owned();
        let key = (label.clone(), cell(row, MEMORY).ok(), count);
        if let Some(first) = places_by_row.insert(key, place.clone()) {
            return Err(changed(page, &place.at, "another plan or memory size", &format!("`{label}` again, as in {}", first.at)));
        }
        parsed.take(label, place.clone(), offer(count, row, tax_included, place));
    }
    Ok(())
}

fn offer(count: u32, row: ElementRef<'_>, tax_included: Option<bool>, place: Place) -> Result<PublishedOffer, SkipReason> {
    let plan = cell(row, "Plan")?;
    let named = row.attr("data-plan").ok_or_else(|| missing_field("data-plan"))?;
    if plan != named {
        return Err(SkipReason::Contradiction(format!("the row is of plan `{named}` and says `{plan}`")));
    }
    let memory_text = cell(row, MEMORY)?;
    let memory_gb = quantity(&memory_text, MEMORY, &[("GB", Decimal::ONE)])?.ok_or(SkipReason::FieldUnreadable {
        field: MEMORY.to_owned(),
        expected: "a memory size",
        found: memory_text,
    })?;
    if plan.ends_with("RTX 6000") && memory_gb != Decimal::from(24) {
        return Err(SkipReason::Contradiction(format!("`{plan}` is the card with 24 GB here, and the row says {memory_gb} GB")));
    }
    let text = cell(row, PRICE)?;
    let amount = money::positive(money::printed(&text, NumberFormat::PointDecimal, &["$"])?, &text)?;
    let gib = Decimal::new(1_073_741_824, 9);
    let tib = Decimal::new(1_099_511_627_776, 9);
    Ok(PublishedOffer {
        site: None,
        sku: None,
        instance_type: None,
        offer_label: Some(format!("{count}x {plan}")),
        region: None,
        zone: None,
        gpu: PublishedGpu {
            label: Some(plan),
            count: Some(Ratio::from(count)),
            share: GpuShare::Whole,
            memory_gb: Some(memory_gb),
            form_factor: None,
            interconnect: None,
            fabric_gbit_per_s: None,
        },
        machine: Machine {
            vcpus: quantity(&cell(row, "vCPUs")?, "vCPUs", &[("", Decimal::ONE)])?,
            system_memory_gib: quantity(&cell(row, "RAM")?, "RAM", &[("GiB", Decimal::ONE), ("TiB", Decimal::from(1024))])?,
            local_disk_gb: quantity(&cell(row, "STORAGE")?, "STORAGE", &[("GiB SSD", gib), ("TiB SSD", tib)])?,
            is_bare_metal: None,
        },
        terms: Terms::of(PricingModel::OnDemand),
        price: PublishedPrice {
            amount,
            upfront_amount: None,
            currency_code: MANIFEST.published().currency_code.clone(),
            unit: PriceUnit::Hour,
            per: PricePer::Gpu,
            text,
            tax_included,
            listings: None,
        },
        place,
        flags: BTreeSet::new(),
    })
}

/// The visible text of a row's cell.
fn cell(row: ElementRef<'_>, label: &str) -> Result<String, SkipReason> {
    let labelled = html::selector("[data-label]");
    let cells: Vec<_> = row.select(&labelled).filter(|cell| cell.attr("data-label") == Some(label)).collect();
    match cells.as_slice() {
        [cell] => Ok(html::visible_text(*cell)),
        [] => Err(missing_field(label)),
        _ => Err(SkipReason::Contradiction(format!("two cells `{label}`"))),
    }
}

/// A number and its unit, `19.5 TiB SSD`; `None` where a dash stands. Factors are exact.
fn quantity(text: &str, field: &'static str, factor_by_unit: &[(&str, Decimal)]) -> Result<Option<Decimal>, SkipReason> {
    let (number, unit) = text.split_once(' ').unwrap_or((text, ""));
    let amount = match money::printed(number, NumberFormat::PointDecimal, &[]) {
        Ok(amount) => amount,
        Err(SkipReason::PriceMissing) => return Ok(None),
        Err(_) => {
            return Err(SkipReason::FieldUnreadable {
                field: field.to_owned(),
                expected: "a number and its unit",
                found: text.to_owned(),
            });
        }
    };
    match factor_by_unit.iter().find(|(known, _)| *known == unit) {
        Some((_, factor)) => Ok(Some((amount * factor).normalize())),
        None => Err(SkipReason::UnknownWord { what: "unit", word: text.to_owned() }),
    }
}

fn missing_field(field: &str) -> SkipReason {
    SkipReason::FieldMissing { field: field.to_owned() }
}

fn changed(page: &Page, at: &str, expected: &str, found: &str) -> ScrapeError {
    ScrapeError::ShapeChanged {
        page: page.name.clone(),
        at: at.to_owned(),
        expected: expected.to_owned(),
        found: found.to_owned(),
    }
}
