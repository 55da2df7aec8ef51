//! Earlier nights that a provider still publishes, against a server on this machine that has three versions of the typed
//! price lists of AWS.

use std::process::Command;

use chrono::NaiveDate;
use gpuledger::backfill::{BackfillError, Filled, backfill_from};
use gpuledger::cli::{Cli, Verb};
use gpuledger::exit::Exit;
use gpuledger_scrapers::contract::{Page, PageRequest, Parsed, PastNight, ScrapeError, Scraper};
use gpuledger_scrapers::manifest::Manifest;
use gpuledger_scrapers::recordings;
use gpuledger_scrapers::sieve::Sieve;
use tempfile::TempDir;
use wiremock::matchers::path;
use wiremock::{Mock, MockServer, ResponseTemplate};

/// AWS, with its history at another address.
struct Here {
    aws: &'static dyn Scraper,
    index: String,
}

impl Scraper for Here {
    fn manifest(&self) -> &'static Manifest {
        self.aws.manifest()
    }

    fn sieve(&self, head: &[u8]) -> Option<&'static Sieve> {
        self.aws.sieve(head)
    }

    fn sieves(&self) -> &'static [&'static str] {
        self.aws.sieves()
    }

    fn history_index(&self) -> Vec<PageRequest> {
        vec![PageRequest { url: self.index.clone(), ..self.aws.history_index().remove(0) }]
    }

    fn history(&self, index: &Page) -> Result<Vec<PastNight>, ScrapeError> {
        self.aws.history(index)
    }

    fn parse(&self, pages: &[Page]) -> Result<Parsed, ScrapeError> {
        self.aws.parse(pages)
    }
}

const BOTH: &str = "us-east-1,eu-west-1";

const INDEX: &str = "/offers/v1.0/aws/AmazonEC2/index.json";

fn list_path(version: &str, region: &str) -> String {
    format!("/offers/v1.0/aws/AmazonEC2/{version}/{region}/index.csv")
}

/// The typed list of a region, at the prices from before the cut if asked.
fn list(region: &str, is_before_the_cut: bool) -> String {
    let recording = recordings::newest("aws").expect("there is a recording");
    let page = recording.pages.iter().find(|page| page.name == format!("prices-{region}")).expect("it has the region");
    let text = page.text().expect("it is text").to_owned();
    if is_before_the_cut {
        return text.replace("55.0400000000", "98.3200000000").replace("21.9576420000", "32.7726000000");
    }
    text
}

async fn answer(server: &MockServer, at: &str, response: ResponseTemplate) {
    Mock::given(path(at)).respond_with(response).mount(server).await;
}

/// A server with three versions: the cut lies between the first and the second, and the second is not to be had at first.
async fn server() -> MockServer {
    let server = MockServer::start().await;
    let versions = ["20260902040506", "20260909040506", "20260916040506"];
    let entry = |version: &&str| {
        let stem = format!("/offers/v1.0/aws/AmazonEC2/{version}");
        format!(
            r#""{version}":{{"versionEffectiveBeginDate":"2026-09-01T00:00:00Z","versionEffectiveEndDate":"","offerVersionUrl":"{stem}/index.json"}}"#
        )
    };
    let index = format!(
        r#"{{"formatVersion":"v1.0","disclaimer":"","publicationDate":"2026-09-16T04:05:06Z","offerCode":"AmazonEC2","currentVersion":"{}","versions":{{{}}}}}"#,
        versions[2],
        versions.iter().map(entry).collect::<Vec<_>>().join(",")
    );
    answer(&server, INDEX, ResponseTemplate::new(200).set_body_string(index)).await;
    for (number, version) in versions.iter().enumerate() {
        for region in ["us-east-1", "eu-west-1"] {
            let at = list_path(version, region);
            if number == 1 {
                let busy = Mock::given(path(at.as_str())).respond_with(ResponseTemplate::new(403));
                busy.up_to_n_times(1).with_priority(1).mount(&server).await;
            }
            answer(&server, &at, ResponseTemplate::new(200).set_body_string(list(region, number == 0))).await;
        }
    }
    server
}

async fn run(dataset: &TempDir, server: &MockServer, scopes: &str, more: &[&str]) -> Result<Filled, BackfillError> {
    use clap::Parser as _;
    let output = dataset.path().display().to_string();
    let args = ["gpuledger", "backfill", "aws", "--output", &output, "--scopes", scopes];
    let Verb::Backfill(args) = Cli::parse_from(args.iter().chain(more)).verb else { unreachable!("it is a backfill") };
    let aws = gpuledger_scrapers::find("aws").expect("the scraper is there");
    let here: &'static Here = Box::leak(Box::new(Here { aws, index: format!("{}{INDEX}", server.uri()) }));
    backfill_from(here, &[], &args, &|_, _| {}).await
}

async fn times_asked(server: &MockServer, at: &str) -> usize {
    let requests = server.received_requests().await.expect("the server keeps its requests");
    requests.iter().filter(|request| request.url.path() == at).count()
}

fn outcomes(filled: &Filled) -> Vec<(String, &'static str, Exit)> {
    filled.nights.iter().map(|night| (night.snapshot.to_string(), night.record.outcome, night.exit)).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn past_nights_become_snapshots_of_their_own_time_and_a_broken_run_goes_on() {
    let (server, dataset) = (server().await, tempfile::tempdir().expect("there is room for a folder"));
    let first = run(&dataset, &server, BOTH, &["--since", "2026-09-01"]).await.expect("it runs");
    assert_eq!(
        outcomes(&first),
        [
            ("2026-09-02T04-05-06Z".to_owned(), "published", Exit::Good),
            ("2026-09-16T04-05-06Z".to_owned(), "published", Exit::Good),
        ]
    );
    // A night of which a page could not be had is not published with a hole, so that it can be had whole later.
    assert_eq!(first.not_had.len(), 1);
    assert!(
        first.not_had[0].0.to_string() == "2026-09-09T04-05-06Z" && first.not_had[0].1.contains("403"),
        "{:?}",
        first.not_had
    );
    let second = run(&dataset, &server, BOTH, &["--since", "2026-09-01"]).await.expect("it runs");
    assert_eq!((second.named, second.there_before), (3, 2));
    assert_eq!(outcomes(&second), [("2026-09-09T04-05-06Z".to_owned(), "published", Exit::Good)]);
    // What was there is not asked for again; a page that never changes is not even asked for twice.
    assert_eq!(times_asked(&server, &list_path("20260902040506", "us-east-1")).await, 1);
    let third = run(&dataset, &server, BOTH, &["--since", "2026-09-01"]).await.expect("it runs");
    assert_eq!((third.named, third.there_before, third.nights.len()), (3, 3, 0));
    for night in ["2026-09-02", "2026-09-09", "2026-09-16"] {
        let mut command = Command::new(env!("CARGO_BIN_EXE_gpuledger"));
        let again = command.args(["replay", night, "--output"]).arg(dataset.path()).output().expect("the program runs");
        let talk = String::from_utf8_lossy(&again.stderr).into_owned();
        assert!(again.status.code() == Some(0) && talk.contains("identical"), "{talk}");
    }

    let price = |snapshot: &str| {
        let args = ["offers", "--snapshot", snapshot, "--instance-type", "p5.48xlarge", "--region", "us-east-1"];
        let mut command = Command::new(env!("CARGO_BIN_EXE_gpuledger"));
        command.args(args).args(["--pricing-model", "on-demand", "--format", "json", "--output"]).arg(dataset.path());
        let output = command.output();
        let rows: Vec<serde_json::Value> =
            serde_json::from_slice(&output.expect("the program runs").stdout).expect("it prints JSON");
        assert_eq!(rows.len(), 1, "{rows:?}");
        (rows[0]["published_amount"].to_string(), rows[0]["price_usd_per_gpu_hour"].as_f64(), rows[0]["observed_at"].to_string())
    };
    let (amount, per_gpu, observed_at) = price("2026-09-02");
    assert!(amount.contains("98.32") && per_gpu == Some(12.29) && observed_at.contains("2026-09-02"), "{amount} {observed_at}");
    let (amount, per_gpu, _) = price("2026-09-09");
    assert!(amount.contains("55.04") && per_gpu == Some(6.88), "{amount}");
    let (amount, ..) = price("2026-09-16");
    assert!(amount.contains("55.04"), "{amount}");
}

#[tokio::test(flavor = "multi_thread")]
async fn only_the_nights_and_regions_asked_for_are_filled_in() {
    let (server, dataset) = (server().await, tempfile::tempdir().expect("there is room for a folder"));
    let filled = run(&dataset, &server, "eu-west-1", &["--since", "2026-09-10", "--until", "2026-09-30"]).await;
    let filled = filled.expect("it runs");
    assert_eq!(outcomes(&filled), [("2026-09-16T04-05-06Z".to_owned(), "published", Exit::Good)]);
    let night = filled.nights.first().expect("one night");
    assert_eq!((night.snapshot.date(), night.record.providers.len()), (NaiveDate::from_ymd_opt(2026, 9, 16).expect("a day"), 1));
    assert_eq!(night.record.providers[0].input, "history");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_index_that_changed_its_shape_fills_in_nothing() {
    let (server, dataset) = (MockServer::start().await, tempfile::tempdir().expect("there is room for a folder"));
    answer(&server, INDEX, ResponseTemplate::new(200).set_body_string(r#"{"editions":{}}"#)).await;
    let refused =
        run(&dataset, &server, BOTH, &["--since", "2026-09-01"]).await.expect_err("nothing says which nights there are");
    assert!(matches!(&refused, BackfillError::NoIndex { reason, .. } if reason.contains("versions")), "{refused}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_region_that_a_night_did_not_have_yet_is_no_failure_and_is_not_asked_for_again() {
    let (server, dataset) = (server().await, tempfile::tempdir().expect("there is room for a folder"));
    // This region has a list in no version here.
    let filled = run(&dataset, &server, "us-east-1,ap-southeast-6", &["--since", "2026-09-16"]).await.expect("it runs");
    assert_eq!(outcomes(&filled), [("2026-09-16T04-05-06Z".to_owned(), "published", Exit::Good)]);
    assert_eq!(times_asked(&server, &list_path("20260916040506", "ap-southeast-6")).await, 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn nights_since_the_first_live_one_are_left_alone() {
    let (server, dataset) = (server().await, tempfile::tempdir().expect("there is room for a folder"));
    let mut command = Command::new(env!("CARGO_BIN_EXE_gpuledger"));
    let live = command.args(["collect", "--recorded", "--at", "2026-09-10T00:00:00Z", "--output"]).arg(dataset.path()).output();
    assert!(live.is_ok_and(|live| live.status.success()));
    let filled = run(&dataset, &server, BOTH, &["--since", "2026-09-01"]).await.expect("it runs");
    assert_eq!((filled.named, filled.since_live, filled.not_had.len()), (3, 1, 1));
    assert_eq!(outcomes(&filled), [("2026-09-02T04-05-06Z".to_owned(), "published", Exit::Good)]);
    let mut command = Command::new(env!("CARGO_BIN_EXE_gpuledger"));
    let listed = command.args(["snapshots", "--format", "json", "--output"]).arg(dataset.path()).output().expect("it runs");
    let listed: Vec<serde_json::Value> = serde_json::from_slice(&listed.stdout).expect("it prints JSON");
    // In order of time, with numbers in order of publishing.
    let numbers: Vec<_> = listed.iter().map(|row| (row["version"].as_i64(), row["snapshot_id"].to_string())).collect();
    assert_eq!(numbers, [(Some(2), "\"2026-09-02T04-05-06Z\"".to_owned()), (Some(1), "\"2026-09-10T00-00-00Z\"".to_owned())]);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_cannot_be_filled_in_is_said_before_anything_is_fetched() {
    let (server, dataset) = (server().await, tempfile::tempdir().expect("there is room for a folder"));
    for (scopes, more, words) in [
        ("us-esat-1", vec!["--since", "2026-09-01"], "us-esat-1"),
        (BOTH, vec!["--since", "2026-09-10", "--until", "2026-09-01"], "before"),
    ] {
        let refused = run(&dataset, &server, scopes, &more).await.expect_err("it cannot be");
        assert!(matches!(&refused, BackfillError::NotAsked { reason, .. } if reason.contains(words)), "{refused}");
    }
}
