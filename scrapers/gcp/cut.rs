//! A page of the catalog cut into its SKUs, in one go over its bytes.
//!
//! In: the text of a page. Out: the characters of each SKU, and the page with an empty list in their place. Never says what
//! is wrong with a page: one that is not as expected is not cut, and is read in the slower way that does.

use memchr::{memchr2, memchr3, memmem};

/// The SKUs of a page, and what the page is without them.
pub(super) fn skus(text: &str) -> Option<(Vec<&str>, String)> {
    let bytes = text.as_bytes();
    let open = list_start(bytes)?;
    let mut skus = Vec::with_capacity(bytes.len() / 1_024);
    let mut at = blank(bytes, open + 1);
    while bytes.get(at) == Some(&b'{') {
        let end = object_end(bytes, at)?;
        skus.push(&text[at..end]);
        at = blank(bytes, end);
        match bytes.get(at)? {
            b',' => at = blank(bytes, at + 1),
            b']' => break,
            _ => return None,
        }
    }
    (bytes.get(at) == Some(&b']') && !ends_with_comma(&bytes[..at])).then(|| (skus, format!("{}[{}", &text[..open], &text[at..])))
}

/// Where the list of SKUs opens: behind the first field of its name, which stands outside any other value.
fn list_start(bytes: &[u8]) -> Option<usize> {
    let name = memmem::find(bytes, b"\"skus\"")?;
    // The fields before it must be plain: with a bracket among them the name may stand inside something else.
    if bytes[..name].iter().filter(|byte| matches!(byte, b'{' | b'[' | b'\\')).count() != 1 {
        return None;
    }
    let colon = blank(bytes, name + b"\"skus\"".len());
    let open = blank(bytes, colon + 1);
    (bytes.get(colon) == Some(&b':') && bytes.get(open) == Some(&b'[')).then_some(open)
}

fn ends_with_comma(bytes: &[u8]) -> bool {
    bytes.trim_ascii_end().ends_with(b",")
}

fn blank(bytes: &[u8], mut at: usize) -> usize {
    while bytes.get(at).is_some_and(u8::is_ascii_whitespace) {
        at += 1;
    }
    at
}

/// The place behind the object that opens here. Lists need no counting: an object ends with its brace.
fn object_end(bytes: &[u8], open: usize) -> Option<usize> {
    let (mut at, mut depth) = (open, 0_u32);
    loop {
        at += memchr3(b'"', b'{', b'}', bytes.get(at..)?)?;
        match bytes[at] {
            b'{' => depth += 1,
            b'}' if depth == 1 => return Some(at + 1),
            b'}' => depth -= 1,
            _ => at = text_end(bytes, at + 1)?,
        }
        at += 1;
    }
}

/// The closing quote of the text that starts here.
fn text_end(bytes: &[u8], mut at: usize) -> Option<usize> {
    loop {
        at += memchr2(b'"', b'\\', bytes.get(at..)?)?;
        if bytes[at] == b'"' {
            return Some(at);
        }
        at += 2;
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    #[test]
    fn a_page_is_cut_where_its_skus_begin_and_end() {
        let text = r#"{ "nextPageToken": "T", "skus": [ {"a": "}\"]{", "b": [1, {"c": 2}]} ,{"d": {}}
        ], "x": 1 }"#;
        let (skus, rest) = super::skus(text).expect("a page as it should be");
        assert_eq!(skus, [r#"{"a": "}\"]{", "b": [1, {"c": 2}]}"#, r#"{"d": {}}"#]);
        assert_eq!(rest, r#"{ "nextPageToken": "T", "skus": [], "x": 1 }"#);
        assert_eq!(super::skus(r#"{"skus": []}"#), Some((vec![], r#"{"skus": []}"#.to_owned())));
        for odd in [
            "",
            "{}",
            r#"{"skus": {}}"#,
            r#"{"skus": [1]}"#,
            r#"{"skus": [{}, ]}"#,
            r#"{"a": {"skus": []}}"#,
            r#"{"skus": [{"a": "]}"#,
        ] {
            assert_eq!(super::skus(odd), None, "{odd}");
        }
    }

    proptest! {
        #[test]
        fn the_slower_way_agrees(names in proptest::collection::vec("[a-z{}\\[\\]\"\\\\, ]{0,12}", 0..6), token in "[a-zA-Z0-9]{0,8}") {
            let skus: Vec<serde_json::Value> = names.iter().map(|name| serde_json::json!({"n": name, "l": [name, {"m": 1}]})).collect();
            let page = serde_json::json!({"skus": skus, "nextPageToken": token});
            for text in [page.to_string(), serde_json::to_string_pretty(&page).expect("a page")] {
                let (cut, rest) = super::skus(&text).expect("a page as it should be");
                let read: Vec<serde_json::Value> = cut.iter().map(|sku| serde_json::from_str(sku).expect("a SKU")).collect();
                prop_assert_eq!(&read, &skus);
                let rest: serde_json::Value = serde_json::from_str(&rest).expect("the rest");
                prop_assert_eq!(rest["nextPageToken"].as_str(), Some(token.as_str()));
            }
        }
    }
}
