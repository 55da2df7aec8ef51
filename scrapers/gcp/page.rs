//! The pricing page of accelerator-optimised machines, for nights without a key.
//!
//! In: the page. Out: the printed prices of its one region. Never a price from a column that is not known by its heading,
//! and never the price of a GPU alone.

use std::collections::{BTreeMap, BTreeSet};

use rust_decimal::Decimal;
use scraper::{ElementRef, Html};

use super::machines;
use super::region;
use super::words::Plan;
use crate::contract::{
    Machine, Page, Parsed, Place, PriceUnit, PricingModel, PublishedGpu, PublishedOffer, ScrapeError, SkipReason, Skipped, Terms,
    UNKNOWN_HARDWARE, Upfront,
};
use crate::html;
use crate::money::{self, NumberFormat};

/// The region that the page shows before anybody chooses another.
pub(super) const REGION: &str = "us-central1";

/// What the page has of the region: less than the catalog, so that a night of the page says nothing of the rest.
pub(super) const SCOPE: &str = "us-central1@page";

/// By which a price by the month, beside one by the hour, is held against it. It may be 1 % off, and no more.
const HOURS_PER_MONTH: Decimal = Decimal::from_parts(730, 0, 0, false, 0);

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
    let mut without_prices = None;
    for (index, table) in document.select(&html::selector("table")).enumerate() {
        // The region is read from what is shown, so a table that is not shown may be of another.
        let mut around = table.ancestors().filter_map(ElementRef::wrap).chain([table]);
        if around.any(|element| !html::has_visible_text(element)) {
            parsed.leave_out("a table that is not shown");
            continue;
        }
        let rows: Vec<Vec<String>> = table.select(&html::selector("tr")).map(cells).collect();
        if !rows.iter().any(|row| is_heading(row)) {
            let is_of_gpus = |row: &Vec<String>| row.iter().any(|heading| heading.to_lowercase().starts_with("gpu price"));
            for _ in rows.iter().skip_while(|row| !is_of_gpus(row)).skip(1) {
                parsed.leave_out("a GPU without the machine that it is attached to");
            }
            continue;
        }
        // Rows above the headings only group columns, and a table may have headings again further down.
        let (mut headings, mut columns, mut number) = (Vec::new(), Vec::new(), 0);
        for row in rows.iter().skip_while(|row| !is_heading(row)) {
            if is_heading(row) {
                headings = row.iter().map(|heading| unmarked(heading).to_owned()).collect();
                columns = headings.iter().map(|heading| column(heading)).collect();
                let unknown = headings.iter().zip(&columns).filter(|(_, column)| **column == Column::Unknown);
                parsed.unread_fields.extend(unknown.map(|(heading, _)| heading.clone()));
                continue;
            }
            number += 1;
            if columns.iter().any(|column| matches!(column, Column::Price(_))) {
                rows_found += 1;
                let at = format!("table {}, row {number}", index + 1);
                read_row(page, &at, &headings, &columns, row, &mut printed, &mut parsed);
            } else {
                without_prices.get_or_insert_with(|| (index + 1, format!("`{}`", headings.join("`, `"))));
                parsed.leave_out("a machine in a table without a known column of prices");
            }
        }
    }
    if let Some((number, headings)) = without_prices.filter(|_| rows_found == 0) {
        return Err(changed(page, &format!("table {number}"), "a column of prices", headings));
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
    region::check(document, REGION).map_err(|found| changed(page, "the region", &format!("`{REGION}` as the chosen one"), found))
}

/// The cells of a row. A footnote's mark stands apart in brackets, so that its digits never join a name or an amount.
pub(super) fn cells(row: ElementRef<'_>) -> Vec<String> {
    let mark = |element: ElementRef<'_>| (element.value().name() == "sup").then(|| format!(" [{}]", html::visible_text(element)));
    let text = |cell| {
        let mut words = String::new();
        if html::has_visible_text(cell) {
            region::seen(cell, &mut words, &mark);
        }
        words.split_whitespace().collect::<Vec<_>>().join(" ")
    };
    row.select(&html::selector("th, td")).map(text).collect()
}

/// A text without the marks of footnotes behind it.
fn unmarked(text: &str) -> &str {
    match text.rsplit_once(" [") {
        Some((before, mark)) if mark.ends_with(']') => unmarked(before),
        _ => text,
    }
}

pub(super) fn is_heading(row: &[String]) -> bool {
    row.iter().any(|heading| column(unmarked(heading)) == Column::Machine)
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
    let name = unmarked(cell(&Column::Machine).unwrap_or_default());
    if cells.len() != columns.len() {
        let reason = SkipReason::Contradiction(format!("{} cells under {} headings", cells.len(), columns.len()));
        parsed.take(name, place("Machine type"), Err(reason));
        return;
    }
    // Machines with accelerators are the series A and G.
    let is_plain = name.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-');
    if !name.starts_with(['a', 'g']) || !is_plain || is_known_with_digits(name) {
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
        if unmarked(text) == "N/A" {
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

/// Whether an unknown name is a known one with digits behind it, which is how a footnote's mark may come out.
fn is_known_with_digits(name: &str) -> bool {
    let digits = name.len() - name.trim_end_matches(|c: char| c.is_ascii_digit()).len();
    machines::hardware(name).is_none() && (1..=digits).any(|cut| machines::hardware(&name[..name.len() - cut]).is_some())
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
        let of_unit = |unit| same.iter().filter(move |(_, offer)| offer.price.unit == unit).map(|(_, offer)| offer.price.amount);
        let is_month_of = |month: Decimal, hour: Decimal| {
            (month - hour * HOURS_PER_MONTH).abs() * Decimal::ONE_HUNDRED <= hour * HOURS_PER_MONTH
        };
        let is_one_price = of_unit(PriceUnit::Hour).all(|hour| of_unit(PriceUnit::Month).all(|month| is_month_of(month, hour)));
        if is_one_price && of_unit(PriceUnit::Hour).next().is_some() {
            let before = same.len();
            same.retain(|(_, offer)| offer.price.unit == PriceUnit::Hour);
            (same.len()..before).for_each(|_| parsed.leave_out("the same price by the month"));
        }
        let amounts: BTreeSet<Decimal> = same.iter().map(|(_, offer)| offer.price.amount).collect();
        if is_one_price && amounts.len() == 1 {
            (1..same.len()).for_each(|_| parsed.leave_out("a price that came before"));
            offers.extend(same.into_iter().take(1));
            continue;
        }
        let texts: BTreeSet<&str> = same.iter().map(|(_, offer)| offer.price.text.as_str()).collect();
        let printed = texts.into_iter().collect::<Vec<_>>().join(" and ");
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
