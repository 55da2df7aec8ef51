//! What reading JSON gives, and that the quick ways give the same.

use super::*;

fn page(body: &str) -> Page {
    Page {
        name: "p".to_owned(),
        scope: "all".to_owned(),
        url: "p.json".to_owned(),
        observed_at: "2026-08-20T00:00:00Z".parse().expect("a literal time"),
        sha256: String::new(),
        body: body.as_bytes().to_vec(),
    }
}

#[test]
fn a_list_split_while_it_is_read_is_the_list_of_the_document() {
    let page = page(r#" {"a/b": 1, "items": [{"x": "1"}, null, [2]], "next": null} "#);
    let (document, items) = document_and_list(&page, "items").expect("the page reads");
    let listed = super::document(&page).expect("the page reads").field("items").expect("a list").list().expect("a list");
    let seen =
        |values: &[Value]| values.iter().map(|value| (value.characters().to_owned(), value.place().at)).collect::<Vec<_>>();
    assert_eq!(seen(&items), seen(&listed));
    assert_eq!(document.names().collect::<Vec<_>>(), ["a/b", "next"]);
    assert_eq!(items[0].object().expect("an object").field("x").expect("a field").place().at, "/items/0/x");
    assert_eq!(document.field("a/b").expect("a field").place().at, "/a~1b");
}

#[test]
fn a_page_without_the_list_is_refused_in_the_same_words() {
    let bodies = ["", "<html>", "[]", "{}", r#"{"items": 3}"#, r#"{"items": [1"#, r#"{"items": []} x"#, r#"{"other": []}"#];
    for body in bodies {
        let page = page(body);
        let by_hand = super::document(&page).and_then(|document| Ok(document.field("items")?.list()?.len()));
        assert_eq!(document_and_list(&page, "items").map(|(_, items)| items.len()), by_hand, "{body}");
        assert!(by_hand.is_err(), "{body}");
    }
    // Of two lists of one name the first is the one that is found, as with every field.
    let twice = page(r#"{"items": [1], "items": [2, 3]}"#);
    assert_eq!(document_and_list(&twice, "items").map(|(_, items)| items.len()), Ok(1));
}

#[test]
fn a_field_is_seen_in_the_characters_where_its_text_is_plain() {
    let name = FieldName::new("kind");
    let seen = |json| name.peek(json).map(|(text, _)| text);
    assert_eq!(seen(r#"{"a": "kind", "kind" : "x", "kind": "y"}"#), Some("x"));
    for json in [r#"{"kind": 3}"#, r#"{"kind": "a\"b"}"#, r#"{"kinds": "x"}"#, r#"{"a": "kind"}"#, ""] {
        assert_eq!(seen(json), None, "{json}");
    }
    assert!(name.is_in(r#"["kind"]"#) && !name.is_in(r#"{"kinds": 1}"#));
}

#[test]
fn text_is_read_with_and_without_escapes() {
    let page = page(r#"{"plain": "a b", "escaped": "a\u0020\"b", "empty": "", "number": 1, "null": null}"#);
    let document = super::document(&page).expect("the page reads");
    let text = |name| document.text(name).map(Cow::into_owned);
    assert_eq!(
        (text("plain"), text("escaped"), text("empty")),
        (Ok("a b".to_owned()), Ok("a \"b".to_owned()), Ok(String::new()))
    );
    assert!(text("number").is_err() && text("null").is_err());
}

#[test]
fn a_number_may_be_written_as_text_and_as_nothing_else() {
    let page =
        page(r#"{"n": [3.5, "3.5", "3.50 ", 3, ["3.5"], {"v": 3.5}, null, "", "N/A", "NaN", "-", true, "3,5", "$3.5", 1e400]}"#);
    let numbers = super::document(&page).expect("the page reads").field("n").expect("a list").list().expect("a list");
    let read: Vec<Option<String>> = numbers.iter().map(|value| Some(value.decimal().ok()?.to_string())).collect();
    let some = |text: &str| Some(text.to_owned());
    assert_eq!(read[..4], [some("3.5"), some("3.5"), some("3.5"), some("3")]);
    assert!(read[4..].iter().all(Option::is_none), "{read:?}");
}

#[test]
fn a_text_of_any_length_has_a_short_start() {
    assert_eq!(start_of("  two\n words "), "`two words`");
    assert_eq!(start_of(&"x".repeat(10_000_000)).chars().count(), 63);
    assert_eq!(start_of(&format!("x{}y", " ".repeat(5_000))), "`x…`");
    assert!(start_of(&"é ".repeat(5_000)).ends_with("…`"));
}
