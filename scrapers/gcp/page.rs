//! The pricing page of accelerator-optimised machines, for nights without a key.
//!
//! In: the page. Out: the printed prices of its one region. Never a price from a column that is not known by its heading,
//! and never the price of a GPU alone.

use std::collections::{BTreeMap, BTreeSet};

use rust_decimal::Decimal;
use scraper::{ElementRef, Html};

use super::machines;
use super::words::Plan;
use crate::contract::{
    Machine, Page, Parsed, Place, PriceUnit, PricingModel, PublishedGpu, PublishedOffer, ScrapeError, SkipReason, Skipped, Terms,
    UNKNOWN_HARDWARE, Upfront,
};
use crate::html;
use crate::money::{self, NumberFormat};

/// The region that the page shows before anybody chooses another.
pub(super) const REGION: &str = "us-central1";

/// How the page names it.
const REGION_LABEL: &str = "Iowa (us-central1)";

/// Columns that are known and hold no price: the hardware is in our own table.
const OTHER_COLUMNS: [&str; 6] = ["gpu", "gpus", "gpu type", "gpu model", "gpu memory", "region"];

/// What a column holds.
#[derive(Debug, Clone, PartialEq)]
enum Column {
    Machine,
    Components,
    Price(Box<Terms>),
    Other,
    Unknown,
}

/// Prices by what they are of, each with its number in the order of the page.
type Printed = BTreeMap<String, Vec<(usize, PublishedOffer)>>;

/// Whether a page is for people and not of the catalog.
pub(super) fn is_page(page: &Page) -> Result<bool, ScrapeError> {
    Ok(page.text()?.trim_start().starts_with('<'))
}

/// Reads the page.
pub(super) fn parse(page: &Page) -> Result<Parsed, ScrapeError> {
    let document = html::document(page)?;
    check_whole(page, &document)?;
    let mut parsed = Parsed::default();
    let mut printed = Printed::new();
    let mut rows_found = 0;
    for (index, table) in document.select(&html::selector("table")).enumerate() {
        let rows: Vec<Vec<String>> = table.select(&html::selector("tr")).map(cells).collect();
        let Some((headings, rows)) = rows.split_first() else { continue };
        let columns: Vec<Column> = headings.iter().map(|heading| column(heading)).collect();
        if !columns.contains(&Column::Machine) {
            for _ in rows.iter().filter(|_| headings.iter().any(|heading| heading.to_lowercase().starts_with("gpu price"))) {
                parsed.leave_out("a GPU without the machine that it is attached to");
            }
            continue;
        }
        let unknown = headings.iter().zip(&columns).filter(|(_, column)| **column == Column::Unknown);
        parsed.unread_fields.extend(unknown.map(|(heading, _)| heading.clone()));
        if !columns.iter().any(|column| matches!(column, Column::Price(_))) {
            let found = format!("`{}`", headings.join("`, `"));
            return Err(changed(page, &format!("table {}", index + 1), "a column of prices", found));
        }
        rows_found += rows.len();
        for (row, cells) in rows.iter().enumerate() {
            let at = format!("table {}, row {}", index + 1, row + 1);
            read_row(page, &at, headings, &columns, cells, &mut printed, &mut parsed);
        }
    }
    if rows_found == 0 {
        return Err(ScrapeError::NothingFound { page: page.name.clone(), at: "a table with `Machine type`".to_owned() });
    }
    settle(printed, &mut parsed);
    Ok(parsed)
}

/// A page that was cut off, and one of another region, are refused.
fn check_whole(page: &Page, document: &Html) -> Result<(), ScrapeError> {
    let text = page.text()?.to_ascii_lowercase();
    if !text.contains("</html>") || text.matches("<table").count() != text.matches("</table>").count() {
        return Err(changed(page, "its end", "`</html>` and every table closed", "a page that was cut off".to_owned()));
    }
    if document.select(&html::selector("table")).next().is_none() {
        return Err(ScrapeError::NothingFound { page: page.name.clone(), at: "`table`".to_owned() });
    }
    if !html::visible_text(document.root_element()).contains(REGION_LABEL) {
        return Err(changed(page, "the region", &format!("`{REGION_LABEL}`"), "no such words".to_owned()));
    }
    Ok(())
}

fn cells(row: ElementRef<'_>) -> Vec<String> {
    row.select(&html::selector("th, td")).map(html::visible_text).collect()
}

fn column(heading: &str) -> Column {
    let heading = heading.to_lowercase().replace('*', "");
    let heading = heading.trim();
    let price = |plan| Column::Price(Box::new(machines::terms(plan)));
    let years = || match (heading.contains("1 year"), heading.contains("3 year")) {
        (true, false) => Some((Plan::OneYear, 12)),
        (false, true) => Some((Plan::ThreeYears, 36)),
        _ => None,
    };
    if heading == "machine type" {
        Column::Machine
    } else if heading == "components" {
        Column::Components
    } else if OTHER_COLUMNS.contains(&heading) {
        Column::Other
    } else if heading.starts_with("compute resource cud") {
        years().map_or(Column::Unknown, |(plan, _)| price(plan))
    } else if heading.starts_with("compute flexible cud") {
        // What is promised is an hourly spend on any machine that takes part.
        let terms = |months| Terms {
            commitment_months: Some(months),
            upfront: Some(Upfront::None),
            plan: Some("compute_flexible".to_owned()),
            ..Terms::of(PricingModel::SavingsPlan)
        };
        years().map_or(Column::Unknown, |(_, months)| Column::Price(Box::new(terms(months))))
    } else if heading.starts_with("dws flex-start") || heading.starts_with("flex-start") {
        price(Plan::FlexStart)
    } else if heading.starts_with("dws calendar") || heading.starts_with("calendar") {
        price(Plan::Calendar)
    } else if heading.starts_with("current spot") || heading.starts_with("spot") {
        price(Plan::Spot)
    } else if heading == "price (usd)" || heading == "default (usd)" {
        price(Plan::OnDemand)
    } else {
        Column::Unknown
    }
}

fn read_row(
    page: &Page,
    at: &str,
    headings: &[String],
    columns: &[Column],
    cells: &[String],
    printed: &mut Printed,
    parsed: &mut Parsed,
) {
    let place = |what: &str| Place { page: page.name.clone(), at: format!("{at}, `{what}`") };
    let cell = |wanted: &Column| columns.iter().zip(cells).find(|(column, _)| *column == wanted).map(|(_, text)| text.as_str());
    let name = cell(&Column::Machine).unwrap_or_default();
    if cells.len() != columns.len() {
        let reason = SkipReason::Contradiction(format!("{} cells under {} headings", cells.len(), columns.len()));
        parsed.take(name, place("Machine type"), Err(reason));
        return;
    }
    // Machines with accelerators are the series A and G.
    if !name.starts_with(['a', 'g']) || !name.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-') {
        let reason = SkipReason::UnknownWord { what: "machine type", word: name.to_owned() };
        parsed.take(name, place("Machine type"), Err(reason));
        return;
    }
    let (gpu, machine) = match hardware(name, cell(&Column::Components)) {
        Ok(hardware) => hardware,
        Err(reason) => return parsed.take(name, place("Components"), Err(reason)),
    };
    for ((heading, column), text) in headings.iter().zip(columns).zip(cells) {
        let Column::Price(terms) = column else { continue };
        if text == "N/A" {
            parsed.leave_out("not sold on these terms");
            continue;
        }
        match price(text) {
            Ok((amount, unit)) => {
                let place = place(heading);
                let parts = (name, gpu.clone(), machine.clone());
                let mut offer = machines::offer(parts, REGION, (**terms).clone(), (amount, unit, text.clone()), place);
                if offer.gpu.count.is_none() {
                    offer.flags.insert(UNKNOWN_HARDWARE);
                }
                let terms = &offer.terms;
                let key = format!("{name} {} {:?} {:?}", terms.pricing_model, terms.commitment_months, terms.plan);
                let number = printed.values().map(Vec::len).sum();
                printed.entry(key).or_default().push((number, offer));
            }
            Err(reason) => parsed.take(format!("{name}, {heading}"), place(heading), Err(reason)),
        }
    }
}

/// Our own table's hardware, held against what the row says of the machine's cores; or what the row says and nothing else.
fn hardware(name: &str, components: Option<&str>) -> Result<(PublishedGpu, Machine), SkipReason> {
    let stated = |what: &str| components.and_then(|text| number_after(text, what));
    let vcpus = stated("vCPUs:");
    let Some((gpu, machine)) = machines::hardware(name) else {
        let machine = Machine { vcpus, system_memory_gib: stated("Memory:"), ..Machine::default() };
        return Ok((PublishedGpu::unknown(), machine));
    };
    match (vcpus, machine.vcpus) {
        (Some(stated), Some(known)) if stated != known => {
            Err(SkipReason::Contradiction(format!("the row says {stated} vCPUs, and `{name}` has {known}")))
        }
        _ => Ok((gpu, machine)),
    }
}

/// 85 from `vCPUs: 12 Memory: 85 GB`. What Google writes as GB of memory is GiB: the catalog prices it so.
fn number_after(text: &str, what: &str) -> Option<Decimal> {
    let rest = text[text.find(what)? + what.len()..].trim_start();
    let end = rest.find(|c: char| !c.is_ascii_digit() && c != ',' && c != '.').unwrap_or(rest.len());
    money::printed(&rest[..end], NumberFormat::PointDecimal, &[]).ok()
}

/// `$84.806908493 / 1 hour`
fn price(text: &str) -> Result<(Decimal, PriceUnit), SkipReason> {
    let (amount, unit) = text.split_once('/').map_or((text, ""), |(amount, unit)| (amount.trim(), unit.trim()));
    let amount = money::positive(money::printed(amount, NumberFormat::PointDecimal, &["$"])?, text)?;
    match unit {
        "1 hour" => Ok((amount, PriceUnit::Hour)),
        "1 month" => Ok((amount, PriceUnit::Month)),
        _ => Err(SkipReason::UnknownWord { what: "unit", word: text.to_owned() }),
    }
}

/// One offer for each price: the page repeats prices by the month, and may print one twice.
fn settle(printed: Printed, parsed: &mut Parsed) {
    let mut offers = Vec::new();
    for mut same in printed.into_values() {
        if same.iter().any(|(_, offer)| offer.price.unit == PriceUnit::Hour) {
            let before = same.len();
            same.retain(|(_, offer)| offer.price.unit == PriceUnit::Hour);
            (same.len()..before).for_each(|_| parsed.leave_out("the same price by the month"));
        }
        let amounts: BTreeSet<String> = same.iter().map(|(_, offer)| offer.price.amount.to_string()).collect();
        if amounts.len() == 1 {
            (1..same.len()).for_each(|_| parsed.leave_out("a price that came before"));
            offers.extend(same.into_iter().take(1));
            continue;
        }
        let printed = amounts.into_iter().collect::<Vec<_>>().join(" and ");
        parsed.skipped.extend(same.into_iter().map(|(_, offer)| Skipped {
            label: offer.instance_type.unwrap_or_default(),
            reason: SkipReason::Contradiction(format!("printed as {printed}")),
            place: offer.place,
        }));
    }
    offers.sort_by_key(|(number, _)| *number);
    parsed.offers = offers.into_iter().map(|(_, offer)| offer).collect();
}

fn changed(page: &Page, at: &str, expected: &str, found: String) -> ScrapeError {
    ScrapeError::ShapeChanged { page: page.name.clone(), at: at.to_owned(), expected: expected.to_owned(), found }
}
