//! The page of Capacity Blocks beside tables of something else, and with rates of another time.

use super::*;

fn read(change: impl Fn(&str) -> String) -> Result<Parsed, &'static str> {
    Aws.parse(&[changed_page("2026-09-02", "capacity-blocks", change)]).map_err(|error| error.code())
}

/// A second rate beside that of the P5 tables.
fn with_second_rate(heading: &str) -> Result<Parsed, &'static str> {
    read(|text| {
        let own = r#"{\"Heading\": \"Effective Hourly Rate\", \"accessor\": \"3\"}"#;
        let both = format!(r#"{{\"Heading\": \"{heading}\", \"accessor\": \"9\"}}, {own}"#);
        let rows = |line: &str| {
            assert!(line.contains(own));
            line.replace(own, &both).replace(r#"\"3\": "#, r#"\"9\": \"<p>$47.76 USD ($5.970 USD)</p>\", \"3\": "#)
        };
        let line = |line: &str| if line.contains("P5 Pricing") { rows(line) } else { line.to_owned() };
        text.lines().map(line).collect::<Vec<_>>().join("\n")
    })
}

#[test]
fn a_rate_of_another_time_beside_the_one_that_holds_is_not_taken() {
    for heading in ["Effective Hourly Rate from October 7", "Effective Hourly Rate (October)", "Hourly rate 2026-10-07"] {
        let parsed = with_second_rate(heading).expect("the page reads");
        let virginia = parsed
            .offers
            .iter()
            .find(|offer| offer.instance_type.as_deref() == Some("p5.48xlarge") && offer.region.as_deref() == Some("us-east-1"));
        assert_eq!(virginia.map(|offer| offer.price.amount.to_string()).as_deref(), Some("41.528"), "{heading}");
        assert_eq!((parsed.offers.len(), parsed.skipped.len()), (13, 0), "{heading}");
    }
    assert_eq!(with_second_rate("Hourly Rate").map(drop), Err("shape_changed"));
    let only = read(|text| text.replace("Effective Hourly Rate", "Effective Hourly Rate from October 7"));
    assert_eq!(only.map(drop), Err("shape_changed"));
}

#[test]
fn tables_of_something_else_cost_nothing_in_any_form() {
    let os = r#""itemTableRowGroups":"[]","itemTableData":"[]"}}]}}"#;
    let row = r#"[{\"id\":0,\"1\":\"p5.4xlarge\",\"2\":\"$0.13\"}]"#;
    for (from, to) in [
        (r#""itemTableRowGroups":"[]","#.to_owned(), String::new()),
        (r#""itemTableRowGroups":"[]""#.to_owned(), r#""itemTableRowGroups":"""#.to_owned()),
        (os.to_owned(), format!(r#""itemTableRowGroups":"[]","itemTableData":"{row}"}}}}]}}}}"#)),
        (r#"\"Heading\":\"RHEL\""#.to_owned(), r#"\"Heading\":\"RHEL hourly rate\""#.to_owned()),
        (r#"\"RHEL\",\"accessor\":\"2\""#.to_owned(), r#"\"RHEL hourly rate\"}, {\"Heading\":\"Region\""#.to_owned()),
        (r#""itemHeading":"OS pricing across Instance Types","#.to_owned(), String::new()),
        (
            "</body>".to_owned(),
            "<table><tr><th>Instance type</th><th>New hourly rate per instance</th></tr>\
             <tr><td>p5.48xlarge</td><td>$47.76 USD</td></tr></table></body>"
                .to_owned(),
        ),
        (
            "</body>".to_owned(),
            "<table><tr><th>Instance type</th><th>Region</th><th>RHEL hourly rate</th></tr>\
             <tr><td>p5.4xlarge</td><td>US East (N. Virginia)</td><td>$0.13 USD</td></tr></table></body>"
                .to_owned(),
        ),
    ] {
        let parsed = read(|text| {
            assert!(text.contains(&from), "{from}");
            text.replace(&from, &to)
        });
        let parsed = parsed.expect("the page reads");
        assert_eq!((parsed.offers.len(), parsed.skipped.len()), (13, 0), "{to}");
        let tables = 1 + u32::from(from == "</body>");
        assert_eq!(parsed.out_of_scope.get("table without type, region and hourly rate"), Some(&tables), "{to}");
    }
}

#[test]
fn tables_of_prices_keep_their_form() {
    for (from, to) in
        [("itemTableRowGroups", "rowGroups"), (r#"\"idProperty\": \"row1\", \"2\""#, r#"\"group\": \"row1\", \"2\""#)]
    {
        assert_eq!(read(|text| text.replacen(from, to, 1)).map(drop), Err("shape_changed"), "{from}");
    }
}

#[test]
fn the_same_rate_printed_in_another_way_is_a_repetition() {
    let parsed = read(|text| {
        let table = "<table><tr><th>Instance type</th><th>Region</th><th>Effective Hourly Rate</th></tr>\
                     <tr><td>p5.48xlarge</td><td>US East (N. Virginia)</td><td>$41.5280 ($5.191 USD)</td></tr></table></body>";
        text.replace("</body>", table)
    });
    let parsed = parsed.expect("the page reads");
    assert_eq!((parsed.offers.len(), parsed.skipped.len(), parsed.out_of_scope.get("repeated row")), (13, 0, Some(&1)));
}
