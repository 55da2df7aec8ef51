//! The page for people: whose region it is, footnotes, tables of other shapes, and prices by the month.

use super::*;
use crate::recordings;

const TABLE: &str = "<table><tr><th>Machine type</th><th>Price (USD)</th></tr>\
    <tr><td>g2-standard-4</td><td>$0.706832276 / 1 hour</td></tr></table>";
const IOWA: &str = "<div>Iowa (us-central1)</div>";
const OREGON: &str = "<div>Oregon (us-west1)</div>";
const BELGIUM: &str = "<div>Belgium (europe-west1)</div>";

/// The prices of a page, or how it is refused.
fn read(body: &str) -> Result<Parsed, &'static str> {
    Gcp.parse(&[page("p", "p.html", format!("<html><body>{body}</body></html>"))]).map_err(|error| error.code())
}

fn texts(body: &str) -> Vec<(String, String)> {
    let parsed = read(body).expect("the page reads");
    parsed.offers.into_iter().map(|offer| (offer.instance_type.expect("a machine"), offer.price.text)).collect()
}

#[test]
fn a_page_of_another_region_is_refused_and_one_that_does_not_say_is_too() {
    let list = |items: &str| format!("<ul>{items}</ul>");
    let (iowa, oregon) = ("<li>Iowa (us-central1)</li>", "<li>Oregon (us-west1)</li>");
    let count = |body: &str| read(body).map(|parsed| parsed.offers.len());
    for read in [
        format!("{IOWA}{TABLE}"),
        format!("<p>Prices in <b>Iowa</b> (us-central1)</p>{TABLE}"),
        format!("{IOWA}{}{TABLE}", list(&[iowa, oregon].concat())),
        format!("{IOWA}{TABLE}{IOWA}{TABLE}{OREGON}"),
        format!("<div hidden>Oregon (us-west1)</div>{IOWA}{TABLE}"),
        format!("<select><option>Oregon (us-west1)</option><option selected>Iowa (us-central1)</option></select>{TABLE}"),
        format!(r#"<ul><li role="option" aria-selected="true">Iowa (us-central1)</li>{oregon}</ul>{TABLE}"#),
    ] {
        assert_eq!(count(&read), Ok(1), "{read}");
    }
    for refused in [
        TABLE.to_owned(),
        format!("{OREGON}{}{TABLE}", list(&[iowa, oregon].concat())),
        format!("{OREGON}{IOWA}{TABLE}"),
        format!("{IOWA}{TABLE}{BELGIUM}{TABLE}"),
        format!("{BELGIUM}{TABLE}{IOWA}{TABLE}"),
        format!("{TABLE}{IOWA}{TABLE}"),
        format!("{}{TABLE}", list(&[iowa, oregon].concat())),
        format!("<select><option>Iowa (us-central1)</option><option>Oregon (us-west1)</option></select>{TABLE}"),
        format!("<select><option>Iowa (us-central1)</option><option selected>Oregon (us-west1)</option></select>{TABLE}"),
        format!(r#"{IOWA}<ul>{iowa}<li role="option" aria-selected="true">Oregon (us-west1)</li></ul>{TABLE}"#),
        format!("{IOWA}{}", TABLE.replace("g2-standard-4<", "g2-standard-4 Belgium (europe-west1)<")),
        format!("<script>var region = 'Iowa (us-central1)'</script>{TABLE}"),
    ] {
        assert_eq!(count(&refused), Err("shape_changed"), "{refused}");
    }
    // What is not shown may be of another region, and is neither refused nor read.
    let hidden = TABLE.replace("g2-standard-4", "g2-standard-8");
    let parsed = read(&format!("{IOWA}{TABLE}<div hidden>{OREGON}{hidden}</div>")).expect("the page reads");
    assert_eq!((parsed.offers.len(), parsed.out_of_scope.get("a table that is not shown")), (1, Some(&1)));
    // The same with the whole page as it was recorded.
    let recording = recordings::of("gcp").into_iter().find(|case| case.case == "without-key").expect("the case");
    let changed = |from: &str, to: &str| {
        let mut page = recording.pages[0].clone();
        let text = page.text().expect("a text").to_owned();
        assert!(text.contains(from), "{from}");
        page.body = text.replacen(from, to, 1).into_bytes();
        Gcp.parse(&[page]).map(|parsed| parsed.offers.len()).map_err(|error| error.code())
    };
    assert_eq!(changed(IOWA, IOWA), Ok(23));
    assert_eq!(changed(IOWA, &format!("{OREGON}<ul>{iowa}{oregon}</ul>")), Err("shape_changed"));
    assert_eq!(changed("</table>", &format!("</table>{BELGIUM}")), Err("shape_changed"));
}

#[test]
fn the_mark_of_a_footnote_joins_no_name_and_no_amount() {
    let body = |machine: &str, heading: &str, price: &str| {
        format!(
            "{IOWA}<table><tr><th>Machine type<sup>2</sup></th><th>{heading}</th></tr><tr><td>{machine}</td><td>{price}</td></tr></table>"
        )
    };
    let price = "$16.11 / 1 hour";
    let expected = vec![("a4-highgpu-8g".to_owned(), price.to_owned())];
    assert_eq!(texts(&body("a4-highgpu-8g<sup>1</sup>", "Price (USD)", price)), expected);
    assert_eq!(texts(&body("a4-highgpu-8g<sup>1</sup><sup>, 2</sup>", "Price (USD) <sup>3</sup>", price)), expected);
    assert_eq!(texts(&body("a4-highgpu-8g <a><sup>1</sup></a>", "Price (USD)", price)), expected);
    let skipped = |body: &str| {
        let parsed = read(body).expect("the page reads");
        assert!(parsed.offers.is_empty(), "{:?}", parsed.offers);
        parsed.skipped.first().map(|row| row.reason.code())
    };
    assert_eq!(skipped(&body("a4-highgpu-8g1", "Price (USD)", price)), Some("unknown_word"));
    assert_eq!(skipped(&body("g2-standard-4812", "Price (USD)", price)), Some("unknown_word"));
    assert_eq!(skipped(&body("a4-highgpu-8g", "Price (USD)", "$16.11<sup>1</sup> / 1 hour")), Some("price_unreadable"));
    assert_eq!(skipped(&body("a4-highgpu-8g", "Price (USD)", "N/A<sup>1</sup>")), None);
    // A new machine whose name ends otherwise is no known one.
    assert_eq!(texts(&body("a5-highgpu-16g", "Price (USD)", price)), [("a5-highgpu-16g".to_owned(), price.to_owned())]);
}

#[test]
fn a_table_without_prices_is_left_out_and_only_a_page_of_such_is_refused() {
    let hardware = "<table><tr><th>Machine type</th><th>GPU</th></tr><tr><td>a4-highgpu-8g</td><td>B200</td></tr></table>";
    for body in [format!("{IOWA}{hardware}{TABLE}"), format!("{IOWA}{TABLE}{hardware}")] {
        let parsed = read(&body).expect("the page reads");
        assert_eq!((parsed.offers.len(), parsed.skipped.len()), (1, 0));
        assert_eq!(parsed.out_of_scope.get("a machine in a table without a known column of prices"), Some(&1));
    }
    assert_eq!(read(&format!("{IOWA}{hardware}")).map(drop), Err("shape_changed"));
}

#[test]
fn rows_above_the_headings_hide_no_table_and_headings_may_come_again() {
    let group = "<table><tr><th colspan=2>Machine</th><th colspan=9>Prices</th></tr><tr><th>Machine type";
    let expected = [("g2-standard-4".to_owned(), "$0.706832276 / 1 hour".to_owned())];
    assert_eq!(texts(&format!("{IOWA}{}", TABLE.replace("<table><tr><th>Machine type", group))), expected);
    let again =
        "<tr><th>Machine type</th><th>Current Spot (USD)</th></tr><tr><td>g2-standard-4</td><td>$0.3 / 1 hour</td></tr></table>";
    let parsed = read(&format!("{IOWA}{}", TABLE.replace("</table>", again))).expect("the page reads");
    let models: Vec<_> = parsed.offers.iter().map(|offer| (offer.terms.pricing_model, offer.price.amount)).collect();
    assert_eq!(models, [(PricingModel::OnDemand, dec("0.706832276")), (PricingModel::Spot, dec("0.3"))]);
}

#[test]
fn a_price_by_the_month_is_held_against_the_one_by_the_hour() {
    let with = |hour: &str, month: &str| {
        let hourly = TABLE.replace("$0.706832276", hour);
        let monthly = TABLE.replace("$0.706832276 / 1 hour", &format!("{month} / 1 month"));
        let parsed = read(&format!("{IOWA}{hourly}{monthly}")).expect("the page reads");
        let texts: Vec<String> = parsed.offers.into_iter().map(|offer| offer.price.text).collect();
        (texts, parsed.skipped.iter().map(|row| row.reason.code()).collect::<Vec<_>>())
    };
    for month in ["$730", "$737.3", "$722.7"] {
        assert_eq!(with("$1", month), (vec!["$1 / 1 hour".to_owned()], vec![]), "{month}");
    }
    for month in ["$100", "$737.31", "$722.69", "$744", "$1"] {
        assert_eq!(with("$1", month), (vec![], vec!["contradiction"; 2]), "{month}");
    }
}
