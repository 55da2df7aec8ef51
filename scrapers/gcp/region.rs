//! Which region the pricing page shows.
//!
//! In: the page as a document. Out: that its tables are of the wanted region, or what stands there instead. Never from a name
//! that is only one of several to choose from.

use scraper::{ElementRef, Html, Node};

use super::skus;
use crate::html;

/// Where a table starts and ends in the words of the page.
const TABLE_START: char = '\u{1}';
const TABLE_END: char = '\u{2}';

/// Checks that the region of this code is the one shown: it is named before the first table as `Iowa (us-central1)`, outside
/// a list to choose from or marked as the chosen one in it, and up to the end of the last table no other is.
pub(super) fn check(document: &Html, wanted: &str) -> Result<(), String> {
    let mut words = String::new();
    seen(document.root_element(), &mut words, &as_shown);
    let first = words.find(TABLE_START).unwrap_or(words.len());
    let last = words.rfind(TABLE_END).unwrap_or(words.len());
    if let Some(other) = regions(&words[..last]).find(|region| *region != wanted) {
        return Err(format!("`{other}`"));
    }
    match regions(&words[..first]).next() {
        Some(_) => Ok(()),
        None => Err("no region that is recognisable as the chosen one".to_owned()),
    }
}

/// The codes in brackets: `us-central1` of `Iowa (us-central1)`.
fn regions(words: &str) -> impl Iterator<Item = &str> {
    let codes = words.split('(').skip(1).filter_map(|rest| rest.split_once(')'));
    codes.map(|(code, _)| code.trim()).filter(|code| skus::is_region(code))
}

/// An entry of a list to choose from is left out unless it is the chosen one; tables are marked.
fn as_shown(element: ElementRef<'_>) -> Option<String> {
    let value = element.value();
    let is_entry = ["option", "li"].contains(&value.name())
        || value.attr("role").is_some_and(|role| ["option", "menuitem", "menuitemradio", "radio"].contains(&role));
    let is_chosen = value.attr("selected").is_some()
        || ["aria-selected", "aria-checked", "aria-current"].iter().any(|name| value.attr(name) == Some("true"));
    if is_entry && !is_chosen && element.select(&html::selector("table")).next().is_none() {
        return Some(String::new());
    }
    (value.name() == "table").then(|| {
        let mut words = String::from(TABLE_START);
        seen(element, &mut words, &as_shown);
        words.push(TABLE_END);
        words
    })
}

/// The words that a person sees in an element, with others in the place of the elements that `instead` has some for.
pub(super) fn seen(element: ElementRef<'_>, words: &mut String, instead: &dyn Fn(ElementRef<'_>) -> Option<String>) {
    for child in element.children() {
        if let Node::Text(text) = child.value() {
            words.push_str(text);
        }
        // What is hidden has no visible text, and neither has anything inside it.
        let Some(inner) = ElementRef::wrap(child).filter(|inner| html::has_visible_text(*inner)) else { continue };
        match instead(inner) {
            Some(other) => words.push_str(&other),
            None => seen(inner, words, instead),
        }
        words.push(' ');
    }
}
