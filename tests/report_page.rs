//! The page of a night, made by the program: what stands on it against what the other verbs say, text of hostile pages, both
//! languages, its size, and that the same dataset gives the same bytes.
//!
//! What a browser makes of it is tested in `tests/browser`. With `GPULEDGER_BLESS=1` in the environment the sample is written
//! instead of compared.

use crate::support::blessed;
use std::fs;
use std::path::Path;

use gpuledger_scrapers::{ALL, recordings};
use serde_json::{Value, json};

use crate::support::{Dataset, Said, write_pages};

/// Longest page of twenty thousand offers.
const BYTES_MAX: usize = 6_000_000;

fn page(dataset: &Dataset, args: &[&str]) -> String {
    let said = dataset.run(&[&["report"][..], args].concat());
    assert_eq!(said.exit, Some(0), "{}", said.talk);
    said.data
}

fn collect(dataset: &Dataset, args: &[&str]) -> Said {
    let said = dataset.run(&[&["collect"][..], args].concat());
    assert!(matches!(said.exit, Some(0 | 10)), "{}{}", said.data, said.talk);
    said
}

fn rows(dataset: &Dataset, args: &[&str]) -> Vec<Value> {
    let said = dataset.run(&[args, &["--format", "json"]].concat());
    serde_json::from_str(&said.data).unwrap_or_else(|error| panic!("{error}: {}{}", said.data, said.talk))
}

/// What the script of a page reads.
fn data(page: &str) -> Value {
    let (_, rest) = page.split_once("<script type=\"application/json\" id=\"data\">").expect("the page has its data");
    serde_json::from_str(rest.split_once("</script>").expect("the script ends").0).expect("it is JSON")
}

/// The column of a page's data as words.
fn words(data: &Value, column: &str) -> Vec<String> {
    let words = data[column]["words"].as_array().expect("a list of words");
    let places = data[column]["rows"].as_array().expect("a list of places");
    let word = |place: &Value| words[usize::try_from(place.as_u64().expect("a place")).expect("a small one")].as_str();
    places.iter().map(|place| word(place).expect("a word").to_owned()).collect()
}

/// A part of a page.
fn section<'a>(page: &'a str, id: &str) -> &'a str {
    let (_, rest) = page.split_once(&format!("<section id=\"{id}\"")).unwrap_or_else(|| panic!("there is a section {id}"));
    rest.split_once("</section>").expect("a section ends").0
}

#[test]
fn the_sample_is_what_the_program_makes_today() {
    let dataset = Dataset::new();
    // Figures that nobody published stand in no sample.
    let is_published = |provider: &&str| !recordings::newest(provider).expect("it has a recording").receipt.has_made_up_prices;
    let providers = ALL.iter().map(|scraper| scraper.manifest().provider.as_str()).filter(is_published);
    collect(&dataset, &["--recorded", "--providers", &providers.collect::<Vec<_>>().join(",")]);
    let sample = page(&dataset, &[]);
    assert_eq!(sample, page(&dataset, &[]), "the same dataset gives the same bytes");
    assert!(!sample.contains("<li>Some prices among them are made up"), "it says so where they are");
    blessed::hold("output/sample/report.html", &sample);
}

#[test]
fn a_page_has_every_offer_and_says_that_recordings_are_no_prices_of_the_night() {
    let dataset = Dataset::new();
    collect(&dataset, &["--recorded"]);
    let english = page(&dataset, &[]);
    let data = data(&english);
    let offers = rows(&dataset, &["offers", "--limit", "1000000"]);
    assert_eq!(data["usd"].as_array().map(Vec::len), Some(offers.len()));
    let prices = |values: &mut dyn Iterator<Item = Option<f64>>| {
        let mut prices: Vec<String> = values.flatten().map(|usd| format!("{usd:.4}")).collect();
        prices.sort();
        prices
    };
    let on_the_page = prices(&mut data["usd"].as_array().expect("a list").iter().map(Value::as_f64));
    assert_eq!(on_the_page, prices(&mut offers.iter().map(|row| row["price_usd_per_gpu_hour"].as_f64())));
    let mut amounts = words(&data, "amount");
    amounts.sort();
    let mut printed: Vec<String> = offers.iter().map(|row| row["published_amount"].to_string()).collect();
    printed.sort();
    assert_eq!(amounts, printed);
    for said in [
        "Not all prices were read from their providers that night.",
        "Typed by hand from documented answers:",
        "Some prices among them are made up",
    ] {
        assert!(english.contains(said), "{said}");
    }
    assert!(section(&english, "changes").contains("There is no night of the two weeks before"));
    let chinese = page(&dataset, &["--lang", "zh"]);
    assert!(chinese.contains("<html lang=\"zh\">") && chinese.contains("手工录入"), "it is in Chinese");
    for english in ["Biggest price changes", ">Provider<", "How bought"] {
        assert!(!chinese.contains(english), "`{english}` in the Chinese page");
    }
}

#[test]
fn the_cheapest_of_the_page_are_those_of_the_verb() {
    let dataset = Dataset::new();
    collect(&dataset, &["--recorded"]);
    let english = page(&dataset, &[]);
    let table = section(&english, "cheapest");
    let mut compared = 0;
    for row in table.split("<tr>").skip(2).take(24) {
        let cell = |from: &str, to: &str| {
            row.split_once(from).and_then(|(_, rest)| rest.split_once(to)).map(|(cell, _)| cell.to_owned())
        };
        let gpu = cell("data-l=\"GPU\">", "</th>").expect("a row names its GPU");
        let ladders = rows(&dataset, &["cheapest", "--gpu", &gpu, "--all", "--limit", "0"]);
        for (heading, ladder) in [("On demand", "on demand"), ("Spot", "spot")] {
            // A name may mean several models; one that is sold out counts where its provider has no other.
            let rungs: Vec<&Value> =
                ladders.iter().filter(|row| row["ladder"] == ladder && row["gpu_model"] == gpu.as_str()).collect();
            let has_stock =
                |provider: &Value| rungs.iter().any(|row| row["provider"] == *provider && row["availability"] != "sold_out");
            let first = rungs.iter().find(|row| row["availability"] != "sold_out" || !has_stock(&row["provider"]));
            let wanted = first.map(|row| format!("{:.4}", row["lowest_usd_per_gpu_hour"].as_f64().expect("a price")));
            assert_eq!(cell(&format!("data-l=\"{heading}\">"), "</td>"), wanted, "{gpu} {ladder}");
            compared += usize::from(first.is_some());
        }
    }
    assert!(compared > 24, "{compared} prices were compared");
    for said in ["of a part of a card", "with another operating system than Linux in the price"] {
        assert!(table.contains(said), "{said}");
    }
}

/// A night of Lambda and Verda with one text of their pages changed.
fn night(dataset: &Dataset, at: &str, from: &str, to: &str) {
    let folder = tempfile::tempdir().expect("there is room for a folder");
    for provider in ["lambda", "verda"] {
        write_pages(folder.path(), provider, |_, name| name.to_owned(), |page| page.replace(from, to));
    }
    let path = folder.path().to_str().expect("text");
    collect(dataset, &["--from", path, "--providers", "lambda,verda", "--at", at]);
}

#[test]
fn what_a_source_changed_is_told_and_a_page_of_an_earlier_night_knows_nothing_of_later_ones() {
    let dataset = Dataset::new();
    night(&dataset, "2026-08-22T06:00:00Z", "3.99", "3.99");
    let before = page(&dataset, &[]);
    night(&dataset, "2026-08-23T06:00:00Z", "3.99", "3.59");
    night(&dataset, "2026-08-26T06:00:00Z", "3.99", "3.59");
    assert_eq!(before, page(&dataset, &["--snapshot", "2026-08-22"]));
    let second = page(&dataset, &["--snapshot", "2026-08-23"]);
    let changes = section(&second, "changes");
    assert!(
        changes.contains("−10.0") && changes.contains("<strong>3.59</strong>") && changes.contains("2026-08-22"),
        "{changes}"
    );
    let diff = rows(&dataset, &["diff", "2026-08-22", "2026-08-23"]);
    let changed = diff.iter().filter(|row| row["list"] == "changed").count();
    assert_eq!(changes.matches("−10.0").count(), changed, "{changes}");
    assert!(section(&page(&dataset, &[]), "changes").contains("No source changed a price."));
    // Two days that follow each other are a line, the third is a dot behind a gap.
    let trend = section(&page(&dataset, &[]), "trend").to_owned();
    let charts = trend.matches("<figure>").count();
    assert!(charts > 3, "{trend}");
    let legend = 1;
    assert_eq!(trend.matches("<polyline class=\"line0\"").count(), charts, "{trend}");
    assert_eq!(trend.matches("class=\"line0 solid\"").count(), charts + legend, "{trend}");
}

#[test]
fn a_provider_that_is_missing_is_named_with_its_reason_and_its_last_night() {
    let dataset = Dataset::new();
    night(&dataset, "2026-08-22T06:00:00Z", "3.99", "3.99");
    let folder = tempfile::tempdir().expect("there is room for a folder");
    write_pages(folder.path(), "lambda", |_, name| name.to_owned(), |page| page);
    write_pages(folder.path(), "verda", |_, name| name.to_owned(), |_| "<title>Just a moment</title>".to_owned());
    collect(&dataset, &["--from", folder.path().to_str().expect("text"), "--at", "2026-08-24T06:00:00Z"]);
    let page = page(&dataset, &[]);
    let coverage = section(&page, "coverage");
    let row = coverage.split("<tr>").find(|row| row.contains("Verda")).expect("the provider is there").replace('\u{a0}', " ");
    assert!(row.contains("class=\"status failed\"") && row.contains("last had 2026-08-22, 2 d before"), "{row}");
    assert!(row.contains("<span lang=\"en\">"), "a reason: {row}");
    assert!(page.contains("<p class=\"missing\">Not there, or not wholly: Verda"), "it is told first");
}

const MAPPING: &str = "name = 'kept'\nsource = 'kept'\nhomepage = 'https://kept.example'\nversion = 1\nform = 'csv'\n\
    [night]\ncolumn = 'day'\n[seller]\ncolumn = 'seller'\nours = { lambda = 'lambda' }\n[machine]\ntype = 'machine'\n[gpu]\n\
    label = 'card'\ncount = 'cards'\n[terms]\nos = 'linux'\n[[price]]\ncolumn = 'usd'\ncurrency = 'USD'\nunit = 'hour'\n\
    per = 'instance'\npricing_model = 'on_demand'\n";

#[test]
fn what_was_imported_is_history_and_no_night() {
    let dataset = Dataset::new();
    let folder = tempfile::tempdir().expect("there is room for a folder");
    let (mapping, file) = (folder.path().join("kept.toml"), folder.path().join("kept.csv"));
    fs::write(&mapping, MAPPING).expect("there is room");
    let lines = ["2026-08-19", "2026-08-20", "2026-08-23"].map(|day| format!("{day},lambda,a,H100 SXM,1,0.5\n")).concat();
    fs::write(&file, format!("day,seller,machine,card,cards,usd\n{lines}")).expect("there is room");
    let text = |path: &Path| path.to_str().expect("text").to_owned();
    assert_eq!(dataset.run(&["import", "--mapping", &text(&mapping), &text(&file)]).exit, Some(0));
    for args in [&["report"][..], &["report", "--snapshot", "2026-08-20"]] {
        let said = dataset.run(args);
        assert_eq!((said.exit, said.data.as_str()), (Some(2), ""), "{}", said.talk);
        assert!(said.talk.contains("imported"), "{}", said.talk);
    }
    night(&dataset, "2026-08-22T06:00:00Z", "3.99", "3.99");
    let page = page(&dataset, &[]);
    assert!(!section(&page, "cheapest").contains("0.5000"), "history is not among the cheapest");
    assert!(!words(&data(&page), "machine").contains(&"a".to_owned()), "nor among the offers");
    let trend = section(&page, "trend");
    assert!(trend.contains("history kept by others: kept") && trend.contains("0.5000"), "{trend}");
    assert!(trend.contains("class=\"line1\"") && !trend.contains("2026-08-23"), "what came later is not there: {trend}");
}

#[test]
fn hostile_text_is_text_on_the_page_and_addresses_lead_to_the_web_only() {
    let hostile = [
        "<script>alert(1)</script>",
        "</script><script>alert(2)</script>",
        "\" onmouseover=\"alert(3)",
        "' onfocus='alert(4)",
        "<img src=x onerror=alert(5)>",
        "javascript:alert(6)",
        "{{ 7 * 7 }}",
        "\u{202e}tsew-su",
        "<!--",
        "]]>",
    ];
    let dataset = Dataset::new();
    let folder = dataset.root().with_file_name("pages").join("vultr");
    fs::create_dir_all(&folder).expect("there is room for a folder");
    for page in recordings::newest("vultr").expect("it has a recording").pages {
        let mut answer: Value = serde_json::from_slice(&page.body).expect("the page is JSON");
        if let Some(plans) = answer.get_mut("plans").and_then(Value::as_array_mut) {
            let plan = plans.iter_mut().find(|plan| plan["id"] == "vcg-a100-12c-120g-80vram").expect("the machine is there");
            plan["locations"] = hostile.to_vec().into();
        }
        fs::write(folder.join(&page.name), serde_json::to_vec(&answer).expect("it is JSON")).expect("there is room for a page");
    }
    let pages = folder.parent().expect("a folder has a parent").display().to_string();
    collect(&dataset, &["--from", &pages, "--at", "2026-11-01T00:00:00Z"]);
    for lang in ["en", "zh"] {
        let page = page(&dataset, &["--lang", lang]);
        assert_eq!(page.matches("<script").count(), 2, "only the page's own scripts");
        assert_eq!(page.matches("</script").count(), 2);
        for bad in ["<img", "<!--", "onmouseover=\"", "\u{202e}", "alert(1)</script>"] {
            assert!(!page.contains(bad), "{bad}");
        }
        for part in page.split("href=\"").skip(1) {
            assert!(part.starts_with('#') || part.starts_with("https://") || part.starts_with("http://"), "{}", &part[..60]);
        }
        let links = page.matches("<a href=\"http").count();
        assert!(links > 0 && page.matches("rel=\"noopener\"").count() == links, "{links} links");
        let regions = words(&data(&page), "region");
        for text in hostile.iter().filter(|text| !text.contains('\u{202e}')) {
            assert!(regions.iter().any(|region| region == text), "{text} is text of the page");
        }
        assert!(regions.iter().any(|region| region == "\\u{202e}tsew-su"), "what turns words around is spelled out");
    }
}

/// A night of so many offers of one provider, in regions that there are not: cards, machines and prices differ.
fn write_many_offers(into: &Path, regions: usize) {
    let machines = [
        ("Standard_NC4as_T4_v3", 0.53),
        ("Standard_NC6s_v3", 3.06),
        ("Standard_NC12s_v3", 6.12),
        ("Standard_NC24ads_A100_v4", 3.67),
        ("Standard_NC48ads_A100_v4", 7.35),
        ("Standard_ND96amsr_A100_v4", 32.77),
        ("Standard_NC40ads_H100_v5", 6.98),
        ("Standard_ND96isr_H100_v5", 98.32),
        ("Standard_ND96isr_H200_v5", 84.8),
        ("Standard_ND96isr_MI300X_v5", 48.0),
        ("Standard_NV36ads_A10_v5", 3.2),
    ];
    let folder = into.join("azure");
    fs::create_dir_all(&folder).expect("there is room for a folder");
    for region in 0..regions {
        let mut items = Vec::new();
        let name = format!("region-{region:03}");
        for (place, (machine, usd)) in machines.iter().enumerate() {
            let short = machine.trim_start_matches("Standard_").replace('_', "");
            for (kind, share) in [("", 1.0), (" Spot", 0.4), (" Low Priority", 0.45)] {
                let spread = 1.0 + f64::from(u32::try_from((region * 7 + place * 3) % 50).expect("a small number")) / 100.0;
                let price = (usd * share * spread * 1e5).round() / 1e5;
                items.push(json!({
                    "currencyCode": "USD", "tierMinimumUnits": 0.0, "retailPrice": price, "unitPrice": price,
                    "armRegionName": name, "location": name, "effectiveStartDate": "2023-12-01T00:00:00Z",
                    "meterId": format!("{region}-{place}{kind}"), "meterName": format!("{short}{kind}"),
                    "productId": format!("P{place}"), "skuId": format!("P{place}/{region}{kind}"),
                    "productName": format!("Virtual Machines {short} Series"), "skuName": format!("{short}{kind}"),
                    "serviceName": "Virtual Machines", "serviceId": "DZH313Z7MMC8", "serviceFamily": "Compute",
                    "unitOfMeasure": "1 Hour", "type": "Consumption", "isPrimaryMeterRegion": true, "armSkuName": machine,
                }));
            }
        }
        let answer = json!({
            "BillingCurrency": "USD", "CustomerEntityId": "Default", "CustomerEntityType": "Retail",
            "Items": items, "NextPageLink": null, "Count": items.len(),
        });
        fs::write(folder.join(format!("retail-{name}-0001.json")), answer.to_string()).expect("there is room for a page");
    }
}

#[test]
fn a_page_of_twenty_thousand_offers_is_below_six_megabytes() {
    let dataset = Dataset::new();
    let folder = tempfile::tempdir().expect("there is room for a folder");
    write_many_offers(folder.path(), 606);
    collect(&dataset, &["--from", folder.path().to_str().expect("text"), "--at", "2026-11-01T00:00:00Z"]);
    let file = folder.path().join("report.html");
    let said = dataset.run(&["report", "--to", file.to_str().expect("text")]);
    assert_eq!((said.exit, said.data.as_str()), (Some(0), ""), "{}", said.talk);
    let page = fs::read_to_string(&file).expect("the page is there");
    let offers = data(&page)["usd"].as_array().map_or(0, Vec::len);
    eprintln!("{offers} offers are a page of {} bytes", page.len());
    assert!(offers >= 19_900, "{offers} offers");
    assert!(page.len() < BYTES_MAX, "{} bytes", page.len());
    assert_eq!(fs::read_dir(folder.path()).expect("the folder can be read").count(), 2, "no draft is left behind");
    let nowhere = folder.path().join("nowhere/report.html");
    let said = dataset.run(&["report", "--to", nowhere.to_str().expect("text")]);
    assert_eq!(said.exit, Some(2), "{}", said.talk);
}

#[test]
fn a_dataset_without_a_night_is_refused_in_words() {
    let dataset = Dataset::new();
    let said = dataset.run(&["report"]);
    assert_eq!((said.exit, said.data.as_str()), (Some(2), ""));
    assert!(said.talk.contains("nothing has been published yet"), "{}", said.talk);
}
