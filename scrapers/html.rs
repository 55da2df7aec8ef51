//! HTML reads that demand a count. Only what a person sees is read: no scripts, attributes or struck-out prices.

use scraper::{ElementRef, Html, Node, Selector};

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
    }
}
