//! HTML of any depth: it is read or refused, and what is seen of it is no more than stands there.
#![no_main]

use gpuledger_fuzz::{limited_memory, mutate_text, page};
use gpuledger_scrapers::html;
use libfuzzer_sys::{fuzz_mutator, fuzz_target, fuzzer_mutate};

limited_memory!();

const TEXTS: &[&str] = &[
    "<table><tr><td data-price=3><s>$4.00</s> <span>$2.99</span><script>var p=9.99</script></td></tr></table>",
    "<p><b a=1></p><p><b a=2></p><p>x",
    "<svg><foreignObject><math><mi><table><select><option>x</template></svg>",
    "<!doctype html><a><div><a><div><a>",
];

fuzz_target!(|data: &[u8]| {
    let page = page(data);
    let Ok(document) = html::document(&page) else { return };
    let root = document.root_element();
    let seen = html::visible_text(root);
    assert!(!seen.contains("  ") && seen.trim() == seen, "white space is folded: {seen:?}");
    for css in ["td", "table tr", "[data-label]", "script[type=\"application/json\"]", "[role=tabpanel]"] {
        let one = html::one(&page, root, css);
        let some = html::some(&page, root, css);
        assert!(one.is_err() || some.as_ref().is_ok_and(|some| some.len() == 1));
    }
});

fuzz_mutator!(|data: &mut [u8], size: usize, max_size: usize, seed: u32| {
    let texts = if seed % 3 == 0 { TEXTS } else { &[] };
    if seed % 2 == 0 && size > 0 { fuzzer_mutate(data, size, max_size) } else { mutate_text(data, size, max_size, seed, texts) }
});
