//! JSON reads: the quick ways and the plain ways say the same, and no number changes.
#![no_main]

use std::collections::BTreeSet;

use gpuledger_fuzz::{limited_memory, mutate_text, page};
use gpuledger_scrapers::json::{self, FieldName, Value};
use gpuledger_scrapers::money;
use libfuzzer_sys::{fuzz_mutator, fuzz_target, fuzzer_mutate};

limited_memory!();

/// Reads a value and everything in it, down to a depth that a price list has.
fn walk(value: &Value<'_>, depth: usize) {
    let characters = value.characters();
    if let Ok(text) = value.text() {
        let plain: String = serde_json::from_str(characters).expect("a text is a text");
        assert_eq!(text, plain);
    }
    if let Ok(amount) = value.decimal() {
        assert_eq!(money::decimal(&amount.to_string()), Some(amount.normalize()), "{characters}");
    }
    if let Ok(whole) = value.whole() {
        assert!(characters.parse() == Ok(whole));
    }
    let _ = (value.truth(), value.is_null(), value.place());
    if depth == 0 {
        return;
    }
    if let Ok(list) = value.list() {
        list.iter().for_each(|element| walk(element, depth - 1));
    }
    if let Ok(object) = value.object() {
        for (name, value) in object.values() {
            assert!(object.has(name));
            walk(&value, depth - 1);
        }
        let mut unread = BTreeSet::new();
        object.report_unread(&[], &mut unread);
        assert!(unread.is_empty(), "every field was read");
    }
}

fuzz_target!(|data: &[u8]| {
    let page = page(data);
    let root = json::root(&page);
    let document = json::document(&page);
    assert!(document.is_err() || root.is_ok());
    if let Ok(root) = &root {
        walk(root, 5);
    }
    for list in ["items", "Items", "plans", "data"] {
        let plain = document.as_ref().ok().and_then(|document| document.field(list).ok()?.list().ok());
        let quick = json::document_and_list(&page, list).ok().map(|(_, elements)| elements);
        let seen = |values: &Vec<Value<'_>>| values.iter().map(|value| (value.characters().to_owned(), value.place())).collect::<Vec<_>>();
        assert_eq!(plain.as_ref().map(seen), quick.as_ref().map(seen), "{list}");
    }
    if let Ok(text) = page.text() {
        let name = FieldName::new("name");
        let mut rest = text;
        while let Some((_, after)) = name.peek(rest) {
            assert!(after.len() < rest.len());
            rest = after;
        }
        assert!(json::start_of(text).chars().count() <= 64);
    }
});

fuzz_mutator!(|data: &mut [u8], size: usize, max_size: usize, seed: u32| {
    if seed % 4 == 0 && size > 0 { fuzzer_mutate(data, size, max_size) } else { mutate_text(data, size, max_size, seed, &[]) }
});
