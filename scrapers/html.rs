//! HTML reads that demand a count. Only what a person sees is read: no scripts, attributes or struck-out prices.

use scraper::{ElementRef, Html, Node, Selector};

use crate::contract::{Page, ScrapeError};
use crate::spot::Piece;

/// The page as a document.
///
/// # Errors
/// When the page is not text or holds no markup at all.
pub fn document(page: &Page) -> Result<Html, ScrapeError> {
    let text = page.text()?;
    if !text.contains('<') {
        return Err(ScrapeError::WrongFormat {
            page: page.name.clone(),
            expected: "HTML".to_owned(),
            found: crate::json::start_of(text),
        });
    }
    Ok(Html::parse_document(text))
}

/// A selector that is part of the program.
///
/// # Panics
/// When it is not a CSS selector, which is a bug.
#[must_use]
pub fn selector(css: &'static str) -> Selector {
    Selector::parse(css).expect("selectors in this crate are valid CSS")
}

/// The one element below `from` that matches.
///
/// # Errors
/// When there is none or more than one.
pub fn one<'a>(page: &Page, from: ElementRef<'a>, css: &'static str) -> Result<ElementRef<'a>, ScrapeError> {
    let found: Vec<_> = from.select(&selector(css)).collect();
    match found.as_slice() {
        [element] => Ok(*element),
        _ => Err(wrong_count(page, css, "exactly one", found.len())),
    }
}

/// The elements below `from` that match: at least one.
///
/// # Errors
/// When there is none.
pub fn some<'a>(page: &Page, from: ElementRef<'a>, css: &'static str) -> Result<Vec<ElementRef<'a>>, ScrapeError> {
    let found: Vec<_> = from.select(&selector(css)).collect();
    if found.is_empty() { Err(wrong_count(page, css, "at least one", 0)) } else { Ok(found) }
}

fn wrong_count(page: &Page, css: &str, expected: &str, found: usize) -> ScrapeError {
    ScrapeError::ShapeChanged {
        page: page.name.clone(),
        at: format!("`{css}`"),
        expected: format!("{expected} element"),
        found: found.to_string(),
    }
}

/// The text a person sees: white space folded, without scripts, styles, hidden and struck-out parts.
#[must_use]
pub fn visible_text(element: ElementRef<'_>) -> String {
    let mut words = String::new();
    collect(element, &mut words);
    words.split_whitespace().collect::<Vec<_>>().join(" ")
}

fn collect(element: ElementRef<'_>, words: &mut String) {
    const UNSEEN: [&str; 7] = ["script", "style", "template", "noscript", "s", "del", "strike"];
    let value = element.value();
    let is_hidden = value.attr("hidden").is_some()
        || value.attr("aria-hidden") == Some("true")
        || value.attr("style").is_some_and(|style| style.replace(' ', "").contains("display:none"));
    if is_hidden || UNSEEN.contains(&value.name()) {
        return;
    }
    for child in element.children() {
        match child.value() {
            Node::Text(text) => words.push_str(text),
            Node::Element(_) => {
                if let Some(inner) = ElementRef::wrap(child) {
                    collect(inner, words);
                    words.push(' ');
                }
            }
            _ => {}
        }
    }
}

/// Rows of a table for a person who checks a price: the headings, if there are some, and the row itself.
///
/// They are as the page has them. A row that a browser would read otherwise than it stands there is given as a browser reads
/// it.
#[must_use]
pub fn pieces_of_rows(text: &str, document: &Html, headings: Option<ElementRef<'_>>, row: ElementRef<'_>) -> Vec<Piece> {
    let piece = |is, row: ElementRef<'_>| {
        source_of_row(text, document, row)
            .and_then(|range| Piece::of(is, text, range))
            .unwrap_or_else(|| Piece::unpacked(is, row.html()))
    };
    headings.map(|headings| piece("headings", headings)).into_iter().chain([piece("row", row)]).collect()
}

/// The bytes of a row in the page, if they read as the row does.
fn source_of_row(text: &str, document: &Html, row: ElementRef<'_>) -> Option<std::ops::Range<usize>> {
    let rows = selector("tr");
    let number = document.select(&rows).position(|known| known.id() == row.id())?;
    let start = *starts_of_rows(text).get(number)?;
    let lower = text.get(start..)?.to_ascii_lowercase();
    let end = match (lower.find("</tr"), lower[1..].find("<tr").map(|at| at + 1), lower.find("</table")) {
        (Some(own), next, table) if next.is_none_or(|next| own < next) && table.is_none_or(|table| own < table) => {
            own + lower[own..].find('>')? + 1
        }
        // A row may end without saying so.
        (_, next, table) => next.into_iter().chain(table).min()?,
    };
    let alone = Html::parse_fragment(&format!("<table>{}</table>", &text[start..start + end]));
    let reads_the_same = alone.select(&rows).next().is_some_and(|alone| visible_text(alone) == visible_text(row));
    reads_the_same.then_some(start..start + end)
}

/// Where rows begin in the characters of a page, comments, scripts and the like left out.
fn starts_of_rows(text: &str) -> Vec<usize> {
    const RAW: [&str; 4] = ["script", "style", "textarea", "title"];
    let lower = text.to_ascii_lowercase();
    let (mut starts, mut at) = (Vec::new(), 0);
    while let Some(found) = lower[at..].find('<') {
        let start = at + found;
        let rest = &lower[start + 1..];
        let is = |name: &str| rest.strip_prefix(name).is_some_and(|rest| !rest.starts_with(|c: char| c.is_ascii_alphanumeric()));
        let past = |mark: &str| rest.find(mark).map_or(lower.len(), |found| start + 1 + found + mark.len());
        at = match RAW.iter().find(|name| is(name)) {
            _ if rest.starts_with("!--") => past("-->"),
            Some(name) => past(&format!("</{name}")),
            None => start + 1,
        };
        if is("tr") {
            starts.push(start);
        }
    }
    starts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_is_cut_out_of_the_page_as_it_stands_there() {
        let text =
            "<title><tr></title><!-- <tr> --><TABLE><tr ><th>a</th></tr><script>'<tr>'</script>\n<tr><td> $1 <td>b</TABLE>";
        let document = Html::parse_document(text);
        let rows: Vec<_> = document.select(&selector("tr")).collect();
        let pieces = pieces_of_rows(text, &document, rows.first().copied(), rows[1]);
        assert_eq!(pieces[0].text, "<tr ><th>a</th></tr>");
        assert_eq!(pieces[1].text, "<tr><td> $1 <td>b");
        assert_eq!(pieces[1].starts_at, text.rfind("<tr><td>"));
    }

    #[test]
    fn struck_out_hidden_and_attribute_prices_are_never_read() {
        let html = Html::parse_fragment(
            r#"<table><tr><td data-price="3.49"><s>$4.00</s> <span>$2.99</span><script>var p=9.99</script><i style="display: none">$1</i></td></tr></table>"#,
        );
        let cell = html.select(&selector("td")).next().expect("the cell");
        assert_eq!(visible_text(cell), "$2.99");
    }
}
