//! Volcengine ECS: the answers behind the price page <https://www.volcengine.com/pricing?product=ECS&tab=1>.
//!
//! In: the price page's data for two products, which only lead on to a template each; the template (`ListTemplate`), which
//! describes the machines of every region, and its table of prices (`GetTable`). Out: prices on demand and prepaid ones for
//! a month or for years. Never a price of a machine of the machine learning platform, whose names are the same, and never
//! a built-in list where an answer is missing.
//!
//! Quirks, as documented up to 2026-08:
//! - The answers are undocumented, and the template's code changes with releases of the page: it is looked up, and for ECS the
//!   last known one is tried where the page is one and names none. The names of the pages then end in `last-known`, and every
//!   offer from them is flagged.
//! - Each product is a scope of its own, from its price page on, and fails as a whole. Should both price pages name the same
//!   template, the first has it: its pages belong to one scope, so the other product is left without and refused. A machine
//!   that is in both templates is published by both.
//! - The template is a text with JSON inside, and its zones are a text with JSON inside that one. Some do not read.
//! - The region of a price is only in `ChargeItemCode`, after the type written with `_`: `ecs.g3i_large_cn-beijing`.
//! - Every type stands twice, the second time with `.month`. The price of twelve, 24 or 36 months is the total; of other
//!   numbers of months nobody has read whether it is. A price of 0 means that it is not on sale.
//! - The card is no known field. It follows from the machine type, where anybody has read about it.
//! - A price is no promise of stock: many GPU types are for listed customers. CNY only; BytePlus is another product.

mod rows;
mod template;
#[cfg(test)]
mod tests;

use std::sync::LazyLock;

use crate::contract::{Method, Page, PageRequest, Parsed, SCOPE_INDEX, ScrapeError, Scraper};
use crate::hardware::{Hardware, KnownMachine};
use crate::json::{self, Object};
use crate::manifest::Manifest;
use template::Template;

/// The source.
pub struct Volcengine;

static MANIFEST: LazyLock<Manifest> =
    LazyLock::new(|| Manifest::parse(include_str!("manifest.toml")).expect("the manifest beside this file reads"));

static HARDWARE: LazyLock<Hardware> =
    LazyLock::new(|| Hardware::parse(include_str!("hardware.toml")).expect("the hardware table beside this file reads"));

/// Products of the page whose templates hold machines.
const PRODUCTS: [&str; 2] = ["ECS", "GPU_Server"];
/// The template of ECS as of 2026-08, for a page that names none.
const LAST_KNOWN_ECS: &str = "CLT7310571628986405164";
/// Ends the names of the pages that it leads to.
const LAST_KNOWN: &str = "-last-known";
/// Begins the addresses of the pages that name templates.
const PRICE_PAGE: &str = "www.volcengine.com/pricing?";
/// What every price page holds, and no other page.
const PRICE_PAGE_DATA: &str = "activeProductInfo";
const PRICE_URL: &str = "https://www.volcengine.com/anonymous-api/trade/price";

/// What a page is.
enum Kind<'a> {
    Index,
    Template(Object<'a>),
    Table(Object<'a>),
}

impl Scraper for Volcengine {
    fn manifest(&self) -> &'static Manifest {
        &MANIFEST
    }

    fn machines(&self) -> Vec<KnownMachine> {
        HARDWARE.machines()
    }

    fn follow(&self, page: &Page) -> Result<Vec<PageRequest>, ScrapeError> {
        if !page.url.contains(PRICE_PAGE) {
            kind(page)?;
            return Ok(Vec::new());
        }
        let asked = page.url.split(['?', '&']).find_map(|part| part.strip_prefix("product="));
        let Some(product) = asked.filter(|asked| PRODUCTS.contains(asked)) else {
            return Err(changed(page, "the address", &format!("product={}", PRODUCTS.join(" or ")), &page.url));
        };
        let name = product.to_lowercase().replace('_', "-");
        match template_code(page)? {
            Some(code) => Ok(requests(&name, &page.scope, &code)),
            None if product == PRODUCTS[0] => Ok(requests(&format!("{name}{LAST_KNOWN}"), &page.scope, LAST_KNOWN_ECS)),
            None => Err(nothing(page, "/activeProductInfo/TemplateInfoList, any template with tables")),
        }
    }

    fn scope(&self, page: &Page) -> Result<Option<String>, ScrapeError> {
        // Templates and tables of both products hold the same kinds of rows: nothing in them tells whose they are.
        Ok(matches!(kind(page)?, Kind::Index).then(|| SCOPE_INDEX.to_owned()))
    }

    fn parse(&self, pages: &[Page]) -> Result<Parsed, ScrapeError> {
        let (mut parsed, mut template, mut tables, mut templates) = (Parsed::default(), Template::default(), Vec::new(), 0);
        for page in pages {
            match kind(page)? {
                Kind::Index => {}
                Kind::Template(result) => {
                    templates += 1;
                    template.read(page, &result, &mut parsed)?;
                }
                Kind::Table(result) => tables.push((page, result)),
            }
        }
        let Some((page, _)) = tables.first().filter(|_| templates == tables.len()) else {
            let page = pages.first().map_or_else(String::new, |page| page.name.clone());
            let next = match templates {
                0 => "a template and its table".to_owned(),
                _ => format!("a table for each of {templates} templates ({} came)", tables.len()),
            };
            return Err(ScrapeError::PageMissing { page, at: "/Result".to_owned(), next });
        };
        if template.is_empty() {
            return Err(nothing(page, "any machine in the templates"));
        }
        let mut machines = 0;
        for (page, result) in &tables {
            machines += rows::take(page, result, &template, &mut parsed)?;
        }
        // A template of another product has a table of the right shape.
        if machines == 0 {
            return Err(nothing(page, "any row of ECS in the tables"));
        }
        let parsed = rows::without_repeats(parsed);
        // A table of machines that are not on sale, or of none with GPUs, would take every machine of the last night away.
        if parsed.offers.is_empty() && parsed.skipped.iter().all(|row| row.reason.is_stated_by_source()) {
            return Err(nothing(page, "any price of a GPU machine in the tables"));
        }
        Ok(parsed)
    }
}

/// Tells the pages apart by what they hold, once they are no error.
fn kind(page: &Page) -> Result<Kind<'_>, ScrapeError> {
    let document = answer(page)?;
    if document.has(PRICE_PAGE_DATA) {
        return Ok(Kind::Index);
    }
    let result = document.field("Result")?.object()?;
    if result.has("TableList") {
        Ok(Kind::Table(result))
    } else if result.has("List") {
        Ok(Kind::Template(result))
    } else {
        Err(changed(page, "/Result", "a List of templates or a TableList", page.text()?))
    }
}

/// The outermost object, once it is no error.
fn answer(page: &Page) -> Result<Object<'_>, ScrapeError> {
    let document = json::document(page)?;
    let metadata = document.optional("ResponseMetadata").map(|metadata| metadata.object()).transpose()?;
    if let Some(error) = metadata.and_then(|metadata| metadata.optional("Error")) {
        let (page, at) = (page.name.clone(), error.place().at);
        return Err(ScrapeError::ErrorAnswer { page, at, text: json::start_of(error.characters()) });
    }
    Ok(document)
}

/// The code of the template of the product's prices: one of type 1 that has tables, else the first that has some, else the
/// same among those of which the page does not say. `None` for a price page that names none; anything else is an error.
fn template_code(page: &Page) -> Result<Option<String>, ScrapeError> {
    let product = answer(page)?.field(PRICE_PAGE_DATA)?;
    if product.is_null() {
        return Ok(None);
    }
    let Some(templates) = product.object()?.optional("TemplateInfoList") else { return Ok(None) };
    let mut best = None;
    for template in templates.list()? {
        let template = template.object()?;
        let is_of_prices = template.optional("Type").is_some_and(|kind| kind.whole() == Ok(1));
        let tables = template.optional("TableCodeList").map(|tables| tables.list()).transpose()?;
        let rank = match tables.map(|tables| tables.len()) {
            None if !template.has("TableCodeList") => u8::from(is_of_prices),
            None | Some(0) => continue,
            Some(_) => 2 + u8::from(is_of_prices),
        };
        if best.as_ref().is_none_or(|(other, _)| *other < rank) {
            best = Some((rank, template));
        }
    }
    let Some((_, template)) = best else { return Ok(None) };
    let code = template.field("TemplateCode")?;
    let text = code.text()?;
    if !text.is_empty() && text.chars().all(|c| c.is_ascii_alphanumeric()) {
        return Ok(Some(text.into_owned()));
    }
    Err(changed(page, &code.place().at, "the code of a template", code.characters()))
}

fn requests(name: &str, scope: &str, code: &str) -> Vec<PageRequest> {
    let template = format!("{PRICE_URL}?Action=ListTemplate&Version=2020-01-01&TemplateCode={code}");
    let table = format!("{PRICE_URL}?Action=GetTable&Version=2020-01-01");
    vec![
        PageRequest::get(format!("template-{name}"), scope, template),
        PageRequest {
            method: Method::Post,
            body: Some(format!(r#"{{"TemplateCode":"{code}"}}"#)),
            ..PageRequest::get(format!("table-{name}"), scope, table)
        },
    ]
}

fn changed(page: &Page, at: &str, expected: &str, found: &str) -> ScrapeError {
    ScrapeError::ShapeChanged {
        page: page.name.clone(),
        at: at.to_owned(),
        expected: expected.to_owned(),
        found: json::start_of(found),
    }
}

fn nothing(page: &Page, at: &str) -> ScrapeError {
    ScrapeError::NothingFound { page: page.name.clone(), at: at.to_owned() }
}
