//! From an element of a page back to the characters it stands in.
//!
//! In: a page's text, its document, and an element of it. Out: the very bytes of the element. Never gives bytes that read
//! otherwise than the element does: then it gives the element as a browser would write it, and says so.

use std::ops::Range;

use scraper::{ElementRef, Html};

use crate::html;
use crate::spot::Piece;

/// Rows of a table for a person who checks a price: the headings, if there are some, and the row itself.
#[must_use]
pub fn rows(text: &str, document: &Html, headings: Option<ElementRef<'_>>, row: ElementRef<'_>) -> Vec<Piece> {
    let headings = headings.map(|headings| element("headings", text, document, headings));
    headings.into_iter().chain([element("row", text, document, row)]).collect()
}

/// An element as the page has it. One that a browser would read otherwise than it stands there is given as a browser reads it.
#[must_use]
pub fn element(is: &'static str, text: &str, document: &Html, element: ElementRef<'_>) -> Piece {
    source(text, document, element)
        .and_then(|range| Piece::of(is, text, range))
        .unwrap_or_else(|| Piece::unpacked(is, element.html()))
}

/// The bytes of an element in the page, if they read as the element does.
fn source(text: &str, document: &Html, element: ElementRef<'_>) -> Option<Range<usize>> {
    let name = element.value().name();
    let named = |root: &Html| -> Vec<_> {
        let elements = root.tree.root().descendants().filter_map(ElementRef::wrap);
        elements.filter(|element| element.value().name() == name).map(|element| element.id()).collect()
    };
    let number = named(document).into_iter().position(|id| id == element.id())?;
    let lower = text.to_ascii_lowercase();
    let tags = tags(&lower, name);
    let (at, (start, _)) = tags.iter().copied().enumerate().filter(|(_, (_, opens))| *opens).nth(number)?;
    let end = match name {
        "tr" => end_of_row(&lower, start)?,
        _ => end(&lower, &tags[at..])?,
    };
    let source = &text[start..end];
    let alone = html::fragment(&if name == "tr" { format!("<table>{source}</table>") } else { source.to_owned() })?;
    let first = *named(&alone).first()?;
    let alone = ElementRef::wrap(alone.tree.get(first)?)?;
    (html::visible_text(alone) == html::visible_text(element)).then_some(start..end)
}

/// The end of the element that the first of these tags opens.
fn end(lower: &str, tags: &[(usize, bool)]) -> Option<usize> {
    let mut open = 0_usize;
    for (at, opens) in tags {
        open = if *opens { open + 1 } else { open.checked_sub(1)? };
        if open == 0 {
            return Some(at + lower[*at..].find('>')? + 1);
        }
    }
    None
}

/// The end of a row, which may end without saying so.
fn end_of_row(lower: &str, start: usize) -> Option<usize> {
    let lower = &lower[start..];
    let end = match (lower.find("</tr"), lower[1..].find("<tr").map(|at| at + 1), lower.find("</table")) {
        (Some(own), next, table) if next.is_none_or(|next| own < next) && table.is_none_or(|table| own < table) => {
            own + lower[own..].find('>')? + 1
        }
        (_, next, table) => next.into_iter().chain(table).min()?,
    };
    Some(start + end)
}

/// Where tags of a name begin in the characters of a page, and whether each opens; comments, scripts and the like left out.
fn tags(lower: &str, name: &str) -> Vec<(usize, bool)> {
    const RAW: [&str; 4] = ["script", "style", "textarea", "title"];
    let (mut tags, mut at) = (Vec::new(), 0);
    while let Some(found) = lower[at..].find('<') {
        let start = at + found;
        let rest = &lower[start + 1..];
        let is = |name: &str| {
            let rest = rest.strip_prefix('/').unwrap_or(rest).strip_prefix(name);
            rest.is_some_and(|rest| !rest.starts_with(|c: char| c.is_ascii_alphanumeric() || c == '-'))
        };
        let opens = !rest.starts_with('/');
        let past = |mark: &str| rest.find(mark).map_or(lower.len(), |found| start + 1 + found + mark.len());
        at = match RAW.iter().find(|name| opens && is(name)) {
            _ if rest.starts_with("!--") => past("-->"),
            Some(name) => past(&format!("</{name}")),
            None => start + 1,
        };
        if is(name) {
            tags.push((start, opens));
        }
    }
    tags
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_is_cut_out_of_the_page_as_it_stands_there() {
        let text =
            "<title><tr></title><!-- <tr> --><TABLE><tr ><th>a</th></tr><script>'<tr>'</script>\n<tr><td> $1 <td>b</TABLE>";
        let document = Html::parse_document(text);
        let rows: Vec<_> = document.select(&html::selector("tr")).collect();
        let pieces = super::rows(text, &document, rows.first().copied(), rows[1]);
        assert_eq!(pieces[0].text, "<tr ><th>a</th></tr>");
        assert_eq!(pieces[1].text, "<tr><td> $1 <td>b");
        assert_eq!(pieces[1].starts_at, text.rfind("<tr><td>"));
    }

    #[test]
    fn an_element_is_cut_out_with_all_that_is_in_it_and_never_another() {
        let text = "<body><!-- <div>$9</div> --><DIV>a</DIV><div><div-x>b</div-x><div> $1 </div>c</div><div>d<p>e</body>";
        let document = Html::parse_document(text);
        let all = html::selector("div");
        let pieces: Vec<_> = document.select(&all).map(|found| element("card", text, &document, found)).collect();
        let texts: Vec<_> = pieces.iter().map(|piece| piece.text.as_str()).collect();
        let outer = "<div><div-x>b</div-x><div> $1 </div>c</div>";
        // The last is never closed, so it is given as a browser closes it.
        assert_eq!(texts, ["<DIV>a</DIV>", outer, "<div> $1 </div>", "<div>d<p>e</p></div>"]);
        let starts: Vec<_> = pieces.iter().map(|piece| piece.starts_at).collect();
        assert_eq!(starts, [text.find("<DIV>"), text.find(outer), text.find("<div> $1"), None]);
    }
}
