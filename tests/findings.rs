//! Nights judged against earlier ones, in datasets of their own: what is refused is written down and can be listed, and a night
//! that is judged again is compared with what it was compared with first.

use crate::support;
use crate::support::Dataset;
use gpuledger::exit::Exit;
use gpuledger::run::Night;
use serde_json::Value;

/// Collects a night of one provider from its recorded pages, with its list of plans changed.
async fn night(dataset: &Dataset, day: u32, change: fn(&mut Vec<Value>)) -> Night {
    // The same folder each time: where a page came from stands on every row.
    let pages = dataset.root().with_file_name("pages");
    support::write_pages(
        &pages,
        "vultr",
        |_, name| format!("{name}.json"),
        |body| {
            let mut answer: Value = serde_json::from_str(&body).expect("the page is JSON");
            if let Some(plans) = answer.get_mut("plans").and_then(Value::as_array_mut) {
                change(plans);
                let total = plans.len();
                answer["meta"]["total"] = total.into();
            }
            answer.to_string()
        },
    );
    let (from, at) = (pages.display().to_string(), format!("2026-10-{day:02}T02:00:00Z"));
    dataset.collect(&["--from", &from, "--at", &at, "--providers", "vultr"]).await.expect("the dataset can be used")
}

fn as_it_is(_: &mut Vec<Value>) {}

/// One of the virtual machines with GPUs, and those of bare metal: whoever had all of them lost most.
fn a_third(plans: &mut Vec<Value>) {
    let id = |plan: &Value| plan["id"].as_str().unwrap_or_default().to_owned();
    plans.retain(|plan| !id(plan).starts_with("vcg") || id(plan).starts_with("vcg-b200"));
}

fn in_cents(plans: &mut Vec<Value>) {
    for plan in plans {
        for field in ["hourly_cost", "monthly_cost", "hourly_cost_preemptible", "monthly_cost_preemptible"] {
            if let Some(cost) = plan.get(field).and_then(Value::as_f64) {
                plan[field] = (cost * 100.0).into();
            }
        }
    }
}

fn rules(night: &Night) -> Vec<(&str, &str)> {
    night.findings.iter().map(|finding| (finding.severity.word(), finding.rule.as_str())).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_refused_night_can_be_listed_and_the_next_is_compared_with_the_last_complete_one() {
    let dataset = Dataset::new();
    assert_ne!(night(&dataset, 1, as_it_is).await.exit, Exit::Refused);
    let refused = night(&dataset, 2, a_third).await;
    assert_eq!(refused.exit, Exit::Refused);
    assert!(rules(&refused).contains(&("refuse_scope", "scope_shrank")), "{:?}", refused.findings);

    let listed = dataset.run(&["findings", "--format", "json", "--severity", "refuse_scope,refuse_night"]);
    assert_eq!(listed.exit, Some(0), "{}", listed.talk);
    assert!(listed.talk.contains("2026-10-02T02-00-00Z") && listed.talk.contains("The night was refused"), "{}", listed.talk);
    let rows: Vec<Value> = serde_json::from_str(&listed.data).expect("it is JSON");
    let said: Vec<&str> = rows.iter().filter_map(|row| row["rule"].as_str()).collect();
    assert_eq!(said, ["nothing_complete", "scope_shrank"], "the gravest first");
    assert!(rows[1]["reason"].as_str().is_some_and(|reason| reason.contains("in 2026-10-01T02-00-00Z")), "{}", rows[1]);

    let next = night(&dataset, 3, as_it_is).await;
    assert_ne!(next.exit, Exit::Refused, "{:?}", next.findings);
    assert!(!rules(&next).iter().any(|(_, rule)| ["scope_grew", "price_jumped"].contains(rule)), "{:?}", rules(&next));
    assert_eq!(dataset.offers().await.len(), 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn prices_in_cents_are_held_back_with_place_and_page_and_a_hint_shows_the_bytes() {
    let dataset = Dataset::new();
    night(&dataset, 1, as_it_is).await;
    assert_eq!(night(&dataset, 2, in_cents).await.exit, Exit::Refused);
    let listed = dataset.run(&["findings", "2026-10-02", "--rule", "price_out_of_bounds"]);
    assert_eq!(listed.exit, Some(0), "{}", listed.talk);
    assert!(listed.data.contains("USD per GPU-hour") && listed.data.contains("/plans/"), "{}", listed.data);
    let command =
        listed.data.lines().find_map(|line| line.strip_prefix("the bytes of a page: zstd -dc ")).expect("there is a hint");
    let bytes = std::fs::read(command.trim()).expect("the hint names a file");
    let text = zstd::decode_all(bytes.as_slice()).expect("it is packed with zstd");
    assert!(String::from_utf8(text).expect("the page is text").contains("hourly_cost"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_night_judged_again_is_compared_with_the_night_it_was_compared_with_first() {
    let dataset = Dataset::new();
    night(&dataset, 1, a_third).await;
    let first = night(&dataset, 3, a_third).await;
    assert_eq!(first.record.outcome, "published");
    assert_eq!(night(&dataset, 2, as_it_is).await.record.outcome, "published", "a night that came later, of a time before");
    let again = night(&dataset, 3, a_third).await;
    assert_eq!(again.record.outcome, "already_published", "{:?}", again.findings);
    assert_eq!(rules(&first), rules(&again));
    assert_eq!(night(&dataset, 4, as_it_is).await.record.outcome, "published");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_stays_changed_for_two_weeks_is_taken_as_it_is() {
    let dataset = Dataset::new();
    night(&dataset, 1, as_it_is).await;
    assert_eq!(night(&dataset, 15, a_third).await.exit, Exit::Refused);
    assert_ne!(night(&dataset, 16, a_third).await.exit, Exit::Refused);
}

#[test]
fn a_filter_that_names_what_is_not_there_is_a_mistake_of_the_command_line() {
    let dataset = Dataset::new();
    assert_eq!(dataset.run(&["findings"]).exit, Some(2), "nothing was collected yet");
    dataset.run(&["collect", "--recorded", "--providers", "vultr"]);
    assert_eq!(dataset.run(&["findings"]).exit, Some(0));
    assert_eq!(dataset.run(&["findings", "1"]).exit, Some(0), "by version");
    for words in [["--severity", "bad"], ["--rule", "no_such_rule"], ["--provider", "acme"]] {
        let said = dataset.run(&[&["findings"], &words[..]].concat());
        assert_eq!(said.exit, Some(2), "{words:?}");
        assert!(said.talk.contains("there are"), "{}", said.talk);
    }
    assert_eq!(dataset.run(&["findings", "2020-01-01"]).exit, Some(2));
    assert_eq!(dataset.run(&["findings", "--severity", "refuse_night"]).exit, Some(0), "none of a kind is an answer");
}
