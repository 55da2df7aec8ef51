//! HTML reads that demand a count. Only what a person sees is read: no scripts, attributes or struck-out prices.
//!
//! HTML has no wrong pages, so any bytes make a tree, and a few hostile ones make a tree that is deeper than a stack or larger
//! than the memory. Such a page is refused while its tree grows.

use html5ever::driver;
use html5ever::tendril::{StrTendril, TendrilSink as _};
use scraper::{ElementRef, Html, HtmlTreeSink, Node, Selector};

use crate::contract::{Page, ScrapeError};

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
    grown(text, NODES_MAX).map_err(|reason| ScrapeError::WrongFormat {
        page: page.name.clone(),
        expected: "HTML of a price list".to_owned(),
        found: reason.to_owned(),
    })
}

/// Markup that stands within a page, such as a cell in JSON; `None` where it nests deeper than any page does.
#[must_use]
pub fn fragment(markup: &str) -> Option<Html> {
    // The parser of a document makes the same elements of what a cell holds, around them a body that adds no text.
    grown(markup, NODES_MAX).ok()
}

/// Deepest element that is believed. Browsers stop at 512; price lists have 60 at most.
const DEPTH_MAX: usize = 256;

/// Most elements and texts that are believed: a page of 32 MiB has fewer, and they fill the memory.
const NODES_MAX: usize = 2_000_000;

/// Most words within one tag. The parser compares each attribute with all before it.
const TAG_WORDS_MAX: usize = 1_000;

/// Bytes after which the tree is looked at. Elements deeper than allowed are at most a third as many.
const PIECE_BYTES: usize = 4_096;

/// The tree of a text, or why it is not grown to its end.
fn grown(text: &str, nodes_max: usize) -> Result<Html, &'static str> {
    if has_endless_tag(text) {
        return Err("a tag of more words than any tag has");
    }
    let mut parser = driver::parse_document(HtmlTreeSink::new(Html::new_document()), driver::ParseOpts::default());
    let (mut rest, mut looked_at) = (text, 0);
    while !rest.is_empty() {
        let (piece, after) = rest.split_at(rest.floor_char_boundary(PIECE_BYTES));
        parser.process(StrTendril::from_slice(piece));
        rest = after;
        let html = parser.tokenizer.sink.sink.0.borrow();
        check_nodes(&html, looked_at, nodes_max)?;
        looked_at = html.tree.nodes().len();
    }
    let html = parser.finish();
    // Elements that were looked at may have been moved into others since.
    check_nodes(&html, 0, nodes_max)?;
    Ok(html)
}

fn check_nodes(html: &Html, from: usize, nodes_max: usize) -> Result<(), &'static str> {
    if html.tree.nodes().len() > nodes_max {
        return Err("more elements than any page has");
    }
    match html.tree.nodes().skip(from).any(|node| node.ancestors().nth(DEPTH_MAX).is_some()) {
        true => Err("elements nested deeper than in any page"),
        false => Ok(()),
    }
}

/// Whether a tag goes on for longer than any tag does.
fn has_endless_tag(text: &str) -> bool {
    let (mut words, mut is_tag, mut was_blank, mut quote) = (0, false, false, None);
    let bytes = text.as_bytes();
    for (at, byte) in bytes.iter().enumerate() {
        match (quote, byte) {
            _ if !is_tag => {
                (is_tag, words) = (*byte == b'<' && bytes.get(at + 1).is_some_and(u8::is_ascii_alphabetic), 0);
                continue;
            }
            (Some(open), _) => quote = if *byte == open { None } else { quote },
            (None, b'>') => is_tag = false,
            (None, b'"' | b'\'') => quote = Some(*byte),
            (None, _) => words += usize::from(was_blank && !byte.is_ascii_whitespace()),
        }
        was_blank = quote.is_none() && (byte.is_ascii_whitespace() || matches!(byte, b'/' | b'"' | b'\''));
        if words > TAG_WORDS_MAX {
            return true;
        }
    }
    false
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

/// Whether a person sees any text of the element. Stops at the first, where [`visible_text`] would copy all of a page.
#[must_use]
pub fn has_visible_text(element: ElementRef<'_>) -> bool {
    !is_unseen(element)
        && element.children().any(|child| match child.value() {
            Node::Text(text) => !text.trim().is_empty(),
            Node::Element(_) => ElementRef::wrap(child).is_some_and(has_visible_text),
            _ => false,
        })
}

/// Whether a person sees the element: neither it nor anything around it is hidden, struck out or a script.
#[must_use]
pub fn is_seen(element: ElementRef<'_>) -> bool {
    !is_unseen(element) && !element.ancestors().filter_map(ElementRef::wrap).any(is_unseen)
}

/// The innermost elements whose visible text has all of these words, each with that text: the cards of a page whose class names
/// say nothing.
#[must_use]
pub fn innermost<'a>(root: ElementRef<'a>, words: &[&str]) -> Vec<(ElementRef<'a>, String)> {
    let text = visible_text(root);
    if !words.iter().all(|word| text.contains(word)) {
        return Vec::new();
    }
    let below: Vec<_> = root.children().filter_map(ElementRef::wrap).flat_map(|child| innermost(child, words)).collect();
    if below.is_empty() { vec![(root, text)] } else { below }
}

/// Checks that a page did not break off. An excerpt, which has no frame, passes.
///
/// # Errors
/// When a page begins and does not end.
pub fn ends(page: &Page) -> Result<(), ScrapeError> {
    let text = page.text()?.to_ascii_lowercase();
    if (text.contains("<html") || text.contains("<!doctype")) && !text.contains("</html>") {
        return Err(ScrapeError::changed(page, "its end", "`</html>`", "a page that was cut off"));
    }
    Ok(())
}

fn is_unseen(element: ElementRef<'_>) -> bool {
    const UNSEEN: [&str; 7] = ["script", "style", "template", "noscript", "s", "del", "strike"];
    let value = element.value();
    value.attr("hidden").is_some()
        || value.attr("aria-hidden") == Some("true")
        || value.attr("style").is_some_and(|style| style.replace(' ', "").contains("display:none"))
        || UNSEEN.contains(&value.name())
}

fn collect(element: ElementRef<'_>, words: &mut String) {
    if is_unseen(element) {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_innermost_elements_with_all_words_are_found() {
        let html = Html::parse_document("<div><div><b>A</b><i>$1</i></div><div><b>B</b><i>$2</i></div><p>A</p></div>");
        let texts: Vec<_> = innermost(html.root_element(), &["A", "$"]).into_iter().map(|(_, text)| text).collect();
        assert_eq!(texts, ["A $1"]);
    }

    #[test]
    fn struck_out_hidden_and_attribute_prices_are_never_read() {
        let html = Html::parse_fragment(
            r#"<table><tr><td data-price="3.49"><s>$4.00</s> <span>$2.99</span><script>var p=9.99</script><i style="display: none">$1</i></td></tr></table>"#,
        );
        let cell = html.select(&selector("td")).next().expect("the cell");
        assert_eq!(visible_text(cell), "$2.99");
        assert!(has_visible_text(cell));
        let hidden = fragment("<div><p hidden>$1</p><s>$2</s> <!-- $3 --></div>").expect("it is shallow");
        assert!(!has_visible_text(hidden.root_element()) && visible_text(hidden.root_element()).is_empty());
    }

    fn refusal(html: &str) -> String {
        let page = Page {
            name: "p".to_owned(),
            scope: "all".to_owned(),
            url: "p.html".to_owned(),
            observed_at: std::time::UNIX_EPOCH.into(),
            sha256: String::new(),
            body: html.as_bytes().to_vec(),
        };
        document(&page).map_or_else(|error| error.to_string(), |_| "it was read".to_owned())
    }

    #[test]
    fn a_tree_deeper_than_the_stack_or_larger_than_the_memory_is_refused_while_it_grows() {
        assert!(refusal(&"<div>".repeat(100_000)).contains("nested deeper"));
        assert!(refusal(&"<b><i>x".repeat(50_000)).contains("nested deeper"));
        // Every piece ends in a comment that stands outside of everything.
        let piece = format!("{}</body><!---->", "<div>".repeat(816));
        assert!(refusal(&piece.repeat(100)).contains("nested deeper"));
        // Each paragraph opens again what the ones before it left open.
        let open: String = (0..20_000).map(|number| format!("<p><b id={number}>x</p>")).collect();
        assert!(refusal(&open).contains("nested deeper"));
        let open: String = (0..200).map(|number| format!("<b id={number}>")).collect();
        let many = grown(&format!("<p>{open}{}", "<p>x".repeat(1_000)), 20_000);
        assert!(many.is_err_and(|reason| reason.contains("more elements")));
        let attributes: String = (0..100_000).map(|number| format!(" a{number}")).collect();
        assert!(refusal(&format!("<p{attributes}>")).contains("more words"));
        assert!(refusal(&format!("<p{}>", attributes.replace(' ', "/"))).contains("more words"));
        assert!(
            refusal(&format!("<p title='{}'>", "a ".repeat(100_000))).contains("was read"),
            "one word after another in quotes"
        );
        assert!(refusal(&format!("<p {}>", "a='".repeat(100_000))).contains("more words"), "in quotes and out of them");
        assert_eq!(fragment(&"<div>".repeat(1_000)).map(|_| ()), None);
    }

    #[test]
    fn a_usual_page_is_read_whole_whatever_the_pieces_split() {
        let cells: String = (0..2_000).map(|number| format!("<tr><td class='é'>{number} €</td></tr>\n")).collect();
        let html =
            format!("<!doctype html><title>ü</title><script>if (a<b && c) {{ d = \"<p \" }}</script><table>{cells}</table>");
        let whole = Html::parse_document(&html);
        let grown = grown(&html, NODES_MAX).expect("a usual page");
        assert_eq!(grown.select(&selector("td")).count(), 2_000);
        assert_eq!(visible_text(grown.root_element()), visible_text(whole.root_element()));
    }
}
