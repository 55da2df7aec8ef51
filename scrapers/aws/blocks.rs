//! The page of Capacity Blocks: tables of prepaid machines by type and region.
//!
//! In: HTML, with the tables as JSON within it or, as they once were, as tables. Out: offers by the hour of a machine. The
//! fee of an operating system comes on top and is zero for Linux. Never a rate of which it is not certain whether it is
//! the machine's or one accelerator's, and never one that is announced for another time. Tables of anything else cost
//! nothing, whatever their form.

use num_rational::Ratio;
use rust_decimal::Decimal;
use scraper::{ElementRef, Html};

use super::machines::{self, Offered, Stated};
use super::{changed, places};
use crate::contract::{Os, Page, Parsed, Place, PricingModel, PublishedOffer, ScrapeError, SkipReason, Terms};
use crate::json::{self, Object};
use crate::money::{self, NumberFormat};
use crate::spot::Piece;
use crate::{cut, html};

/// A table of prices, wherever it stood.
struct Table {
    at: String,
    /// How many headings it has.
    width: usize,
    columns: Columns,
    rows: Vec<Vec<String>>,
}

/// Why a table is left out.
const OTHER_TABLE: &str = "table without type, region and hourly rate";

/// Where the columns of a table of prices stand.
struct Columns {
    instance_type: usize,
    region: usize,
    rate: usize,
    accelerator_rate: Option<usize>,
    accelerators: Option<usize>,
}

/// Reads the page.
pub(super) fn read(page: &Page, parsed: &mut Parsed) -> Result<(), ScrapeError> {
    let text = page.text()?;
    if !text.contains("</html>") {
        return Err(changed(
            page,
            "end",
            "the end of the page",
            json::start_of(&text[text.trim_end().rfind('\n').unwrap_or(0)..]),
        ));
    }
    let document = html::document(page)?;
    let tables: Vec<_> = tables_in_json(page, &document)?.into_iter().chain(tables_in_markup(page, &document)?).collect();
    let mut rows = 0;
    for table in &tables {
        let Some(table) = table else {
            parsed.leave_out(OTHER_TABLE);
            continue;
        };
        for (number, cells) in table.rows.iter().enumerate() {
            rows += 1;
            let place = Place { page: page.name.clone(), at: format!("{}, row {}", table.at, number + 1) };
            let row = if cells.len() == table.width {
                offer(&table.columns, cells, place.clone())
            } else {
                Err(SkipReason::Contradiction(format!("{} cells under {} headings", cells.len(), table.width)))
            };
            parsed.take(cells.join(" · "), place, row);
        }
    }
    if rows == 0 {
        return Err(changed(
            page,
            "tables",
            "rows of types, regions and hourly rates",
            format!("{} tables, none of them with these", tables.len()),
        ));
    }
    Ok(())
}

/// The columns of a table of prices; none for a table of something else.
fn columns(page: &Page, at: &str, headings: &[String]) -> Result<Option<Columns>, ScrapeError> {
    let headings: Vec<_> = headings.iter().map(|heading| heading.to_lowercase()).collect();
    let find = |names: &[&str]| headings.iter().position(|heading| names.contains(&heading.as_str()));
    let (Some(instance_type), Some(region)) = (find(&["instance type", "ultraserver type"]), find(&["region"])) else {
        return Ok(None);
    };
    let rates = |of_accelerator: bool| {
        let is_rate = |heading: &&String| match heading.contains("accelerator") {
            true => of_accelerator && heading.contains("hourly rate"),
            // The hourly rate of an operating system is another thing.
            false => !of_accelerator && RATES.iter().any(|name| heading.starts_with(name)),
        };
        if !headings.iter().any(|heading| is_rate(&heading)) {
            return Ok(None);
        }
        // A rate of another time may stand beside the one that holds now.
        let mut undated = headings.iter().enumerate().filter(|(_, heading)| is_rate(heading) && !is_dated(heading));
        match (undated.next(), undated.next()) {
            (Some((column, _)), None) => Ok(Some(column)),
            _ => Err(changed(page, at, "one hourly rate without a date", format!("{headings:?}"))),
        }
    };
    let Some(rate) = rates(false)? else { return Ok(None) };
    let accelerator_rate = rates(true)?;
    let accelerators = find(&["accelerator", "accelerators", "gpu", "gpus"]);
    Ok(Some(Columns { instance_type, region, rate, accelerator_rate, accelerators }))
}

/// How the heading of a machine's rate begins.
const RATES: [&str; 3] = ["effective hourly rate", "effective instance hourly rate", "hourly rate"];

/// Words of a heading that names the time of its rates.
const DATE_WORDS: [&str; 20] = [
    "from", "until", "till", "since", "before", "after", "starting", "through", "jan", "feb", "mar", "apr", "may", "jun", "jul",
    "aug", "sep", "oct", "nov", "dec",
];

/// Whether a heading in small letters names a time: `effective hourly rate from october 7`.
fn is_dated(heading: &str) -> bool {
    heading.contains(|letter: char| letter.is_ascii_digit())
        || heading.split(|letter: char| !letter.is_alphabetic()).any(|word| DATE_WORDS.iter().any(|date| word.starts_with(date)))
}

fn offer(columns: &Columns, cells: &[String], place: Place) -> Result<PublishedOffer, SkipReason> {
    let instance_type = &cells[columns.instance_type];
    if !machines::is_accelerated(instance_type.as_bytes()) {
        return Err(SkipReason::UnknownMachine { instance_type: instance_type.clone() });
    }
    let name = &cells[columns.region];
    let region = places::of_page(name).ok_or_else(|| SkipReason::UnknownWord { what: "region", word: name.clone() })?;
    let text = &cells[columns.rate];
    let (machine_text, accelerator_text) = match (text.split_once('('), columns.accelerator_rate) {
        (Some((machine, rest)), _) => (machine, Some(rest.trim().trim_end_matches(')'))),
        (None, Some(column)) => (text.as_str(), Some(cells[column].as_str())),
        (None, None) => (text.as_str(), None),
    };
    if ![machine_text, accelerator_text.unwrap_or_default()].iter().any(|text| text.contains("USD")) {
        return Err(SkipReason::UnknownWord { what: "currency", word: text.clone() });
    }
    let amount = money::positive(dollars(machine_text)?, text)?;
    let found = machines::find(instance_type, Stated::default())?;
    if let Some(stated) = columns.accelerators.and_then(|column| cells[column].split_once(" x "))
        && let Some(count) = found.gpu.count
        && stated.0.trim() != count.to_string()
    {
        return Err(SkipReason::Contradiction(format!("the row states {} accelerators, the hardware table {count}", stated.0)));
    }
    check(amount, accelerator_text, found.gpu.count)?;
    let offered = Offered {
        sku: format!("block:{region}:{instance_type}"),
        instance_type: instance_type.clone(),
        region: region.to_owned(),
        found,
        terms: Terms { os: Os::Linux, ..Terms::of(PricingModel::CapacityBlock) },
        amount,
        upfront_amount: None,
        currency_code: "USD".to_owned(),
        text: text.clone(),
        place,
    };
    Ok(offered.into())
}

fn dollars(text: &str) -> Result<Decimal, SkipReason> {
    money::printed(text, NumberFormat::PointDecimal, &["USD", "$"])
}

/// The machine's rate is that of an accelerator times their number, the latter rounded to the digits it is printed with.
/// Without it, a single rate of several accelerators may be either.
fn check(amount: Decimal, accelerator_text: Option<&str>, count: Option<Ratio<u32>>) -> Result<(), SkipReason> {
    let Some(text) = accelerator_text.filter(|text| !text.trim().is_empty()) else {
        return match count {
            Some(count) if count == Ratio::from_integer(1) => Ok(()),
            _ => Err(SkipReason::FieldMissing { field: "hourly rate of one accelerator".to_owned() }),
        };
    };
    let rate = dollars(text)?;
    let Some(count) = count else { return Ok(()) };
    let digits = text.split_once('.').map_or(0, |(_, rest)| rest.chars().take_while(char::is_ascii_digit).count());
    let last_digit = u32::try_from(digits).ok().and_then(|scale| Decimal::try_new(1, scale).ok()).unwrap_or(Decimal::ONE);
    let difference = (amount - rate * Decimal::from(*count.numer()) / Decimal::from(*count.denom())).abs();
    if difference > last_digit * Decimal::from(*count.numer()) {
        return Err(SkipReason::Contradiction(format!("{amount} an hour is not {count} times {rate}")));
    }
    Ok(())
}

/// The row that a place such as "table `P5 Pricing`, row 3" or "table 2, row 3" names.
pub(super) fn pieces(page: &Page, at: &str) -> Option<Vec<Piece>> {
    let (table, row) = at.strip_prefix("table ")?.rsplit_once(", row ")?;
    let row: usize = row.parse().ok()?;
    let document = html::document(page).ok()?;
    if let Some(name) = table.strip_prefix('`').and_then(|name| name.strip_suffix('`')) {
        return piece_in_json(page, &document, name, row);
    }
    let table = document.select(&html::selector("table")).nth(table.parse::<usize>().ok()?.checked_sub(1)?)?;
    let rows: Vec<_> = table.select(&html::selector("tr")).collect();
    Some(cut::rows(page.text().ok()?, &document, rows.first().copied(), *rows.get(row)?))
}

/// A row of a table in JSON, unpacked from the two layers of text that it stands in.
fn piece_in_json(page: &Page, document: &Html, name: &str, row: usize) -> Option<Vec<Piece>> {
    for script in document.select(&html::selector(r#"script[type="application/json"]"#)) {
        let inner = within(page, script.text().collect());
        let Ok(data) = json::document(&inner) else { continue };
        let items = data.optional("data").and_then(|data| data.object().ok()?.optional("items")?.list().ok());
        for item in items.into_iter().flatten() {
            let fields = item.object().ok().and_then(|item| item.optional("fields")?.object().ok());
            let is_named = |fields: &Object<'_>| fields.text("itemHeading").is_ok_and(|heading| heading.trim() == name);
            let Some(fields) = fields.filter(|fields| fields.has("itemTableData") && is_named(fields)) else { continue };
            let rows = within(page, fields.text("itemTableData").ok()?.into_owned());
            if let Some(row) = json::root(&rows).ok()?.list().ok()?.get(row.checked_sub(1)?) {
                let headings = fields.text("itemTableColumns").ok()?.into_owned();
                let row = row.characters().to_owned();
                return Some(vec![Piece::unpacked("headings", headings), Piece::unpacked("row", row)]);
            }
        }
    }
    None
}

/// The tables that the page draws itself from JSON within it.
fn tables_in_json(page: &Page, document: &Html) -> Result<Vec<Option<Table>>, ScrapeError> {
    let mut tables = Vec::new();
    for script in document.select(&html::selector(r#"script[type="application/json"]"#)) {
        let text: String = script.text().collect();
        let inner = within(page, text);
        // The page holds JSON of many other things, of which none has a table.
        let Ok(data) = json::document(&inner) else { continue };
        let Some(items) = data.optional("data").and_then(|data| data.object().ok()?.optional("items")?.list().ok()) else {
            continue;
        };
        for item in items {
            let fields = item.object().ok().and_then(|item| item.optional("fields")?.object().ok());
            if let Some(fields) = fields.filter(|fields| fields.has("itemTableData")) {
                tables.push(table(page, &fields)?);
            }
        }
    }
    Ok(tables)
}

/// A table in JSON: its parts are texts that hold JSON again, and its cells hold markup.
fn table(page: &Page, fields: &Object<'_>) -> Result<Option<Table>, ScrapeError> {
    let part = |name: &str| Ok::<_, ScrapeError>(within(page, fields.text(name)?.into_owned()));
    // Only a table of prices has to have the form of one.
    let Ok((headings, accessors)) = part("itemTableColumns").and_then(|columns| headings(&columns)) else { return Ok(None) };
    let at = format!("table `{}`", fields.text("itemHeading").unwrap_or_default().trim());
    let Some(columns) = columns(page, &at, &headings)? else { return Ok(None) };
    let (groups, data) = (part("itemTableRowGroups")?, part("itemTableData")?);
    let mut labels = Vec::new();
    for group in json::root(&groups)?.list()? {
        let group = group.object()?;
        labels.push((group.text("id")?.into_owned(), group.text("label")?.trim().to_owned()));
    }
    let mut rows = Vec::new();
    for row in json::root(&data)?.list()? {
        let row = row.object()?;
        let id = row.text("idProperty")?;
        // The column that the rows are grouped by has no cells: the group's label stands for them.
        let label = labels.iter().find(|(group, _)| *group == id).map(|(_, label)| label.clone());
        let cell = |accessor: &String| match row.optional_text(accessor)? {
            Some(markup) => match html::fragment(&markup) {
                Some(cell) => Ok(html::visible_text(cell.root_element())),
                None => Err(changed(page, at.as_str(), "cells of a few elements", json::start_of(&markup))),
            },
            None => Ok::<_, ScrapeError>(label.clone().unwrap_or_default()),
        };
        rows.push(accessors.iter().map(cell).collect::<Result<Vec<_>, _>>()?);
    }
    Ok(Some(Table { at, width: headings.len(), columns, rows }))
}

/// The headings of a table in JSON, and what its rows call their cells.
fn headings(columns: &Page) -> Result<(Vec<String>, Vec<String>), ScrapeError> {
    let mut headings = Vec::new();
    let mut accessors = Vec::new();
    for column in json::root(columns)?.list()? {
        let column = column.object()?;
        headings.push(column.text("Heading")?.trim().to_owned());
        accessors.push(column.text("accessor")?.into_owned());
    }
    Ok((headings, accessors))
}

/// Text within a page, as a page of its own for the reader of JSON.
fn within(page: &Page, text: String) -> Page {
    Page {
        name: page.name.clone(),
        scope: page.scope.clone(),
        url: page.url.clone(),
        observed_at: page.observed_at,
        sha256: String::new(),
        body: text.into_bytes(),
    }
}

/// Most cells of a row that are believed, and of a table: cells that span rows multiply.
const ROW_CELLS_MAX: usize = 1_000;
const TABLE_CELLS_MAX: usize = 100_000;

/// The tables that stand in the markup. A cell that spans rows stands in each of them.
fn tables_in_markup(page: &Page, document: &Html) -> Result<Vec<Option<Table>>, ScrapeError> {
    let cell_selector = html::selector("th, td");
    let mut tables = Vec::new();
    for (number, table) in document.select(&html::selector("table")).enumerate() {
        let mut rows: Vec<Vec<String>> = Vec::new();
        let mut spanning: Vec<(usize, usize, String)> = Vec::new();
        let mut cells_in_all = 0;
        for row in table.select(&html::selector("tr")) {
            let mut cells: Vec<String> = Vec::new();
            let mut own = row.select(&cell_selector);
            let mut next: Vec<(usize, usize, String)> = Vec::new();
            loop {
                let column = cells.len();
                if let Some((_, left, text)) = spanning.iter().find(|(at, ..)| *at == column) {
                    if *left > 1 {
                        next.push((column, left - 1, text.clone()));
                    }
                    cells.push(text.clone());
                } else if let Some(cell) = own.next() {
                    let text = html::visible_text(cell);
                    if let Some(rows) = span(cell).filter(|rows| *rows > 1) {
                        next.push((column, rows - 1, text.clone()));
                    }
                    cells.push(text);
                } else {
                    break;
                }
                cells_in_all += 1;
                if cells.len() > ROW_CELLS_MAX || cells_in_all > TABLE_CELLS_MAX {
                    return Err(changed(page, format!("table {}", number + 1), "a table of prices", "more cells than any has"));
                }
            }
            spanning = next;
            rows.push(cells);
        }
        let headings = if rows.is_empty() { Vec::new() } else { rows.remove(0) };
        let at = format!("table {}", number + 1);
        let columns = columns(page, &at, &headings)?;
        tables.push(columns.map(|columns| Table { at, width: headings.len(), columns, rows }));
    }
    Ok(tables)
}

fn span(cell: ElementRef<'_>) -> Option<usize> {
    cell.value().attr("rowspan")?.parse().ok()
}
