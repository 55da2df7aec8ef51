//! What a night may use again, what it keeps of a bulk file, and where a key goes and does not go.

use std::io::Write as _;
use std::time::Duration;

use crate::support::shop::{LIMITS, Shop, shop};
use gpuledger::archive::Receipt;
use gpuledger::fetch::{Client, Turns, fetch_provider};
use gpuledger::gather::Delivery;
use gpuledger_scrapers::contract::Scraper as _;
use gpuledger_scrapers::sha256;
use wiremock::matchers::{header, path, query_param};
use wiremock::{Mock, MockServer, ResponseTemplate};

async fn fetch(shop: &'static Shop) -> Delivery {
    let client = Client::with_first_wait(None, Duration::from_millis(1)).expect("a client can be made");
    fetch_provider(&client, &Turns::default(), &shop.archive(), shop, &|_, _, _| {}).await
}

async fn answer(server: &MockServer, at: &str, response: ResponseTemplate) {
    Mock::given(path(at)).respond_with(response).mount(server).await;
}

async fn times_asked(server: &MockServer, at: &str) -> usize {
    let requests = server.received_requests().await.expect("the server keeps its requests");
    requests.iter().filter(|request| request.url.path() == at).count()
}

fn only(delivery: &Delivery) -> &Receipt {
    assert!(delivery.failures.is_empty(), "{:?}", delivery.failures);
    assert_eq!(delivery.pages.len(), 1);
    &delivery.pages[0]
}

/// Every file below a dataset that holds a text, as it is or inside an archived object.
fn files_with(shop: &Shop, text: &str) -> Vec<String> {
    let mut found = Vec::new();
    let mut folders = vec![shop.root()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(&folder).expect("the folder reads") {
            let path = entry.expect("the entry reads").path();
            if path.is_dir() {
                folders.push(path);
                continue;
            }
            let bytes = std::fs::read(&path).expect("the file reads");
            let bytes = zstd::decode_all(bytes.as_slice()).unwrap_or(bytes);
            if String::from_utf8_lossy(&bytes).contains(text) {
                found.push(path.display().to_string());
            }
        }
    }
    found
}

#[tokio::test]
async fn an_answer_that_the_server_calls_unchanged_counts_as_observed_tonight() {
    let server = MockServer::start().await;
    let unchanged = Mock::given(path("/a")).and(header("if-none-match", "\"v1\"")).respond_with(ResponseTemplate::new(304));
    unchanged.with_priority(1).mount(&server).await;
    answer(&server, "/a", ResponseTemplate::new(200).insert_header("etag", "\"v1\"").set_body_string("a 1.25")).await;
    let shop = shop(&server.uri(), LIMITS, &[("a", "/a")]);
    let (first, second) = (fetch(shop).await, fetch(shop).await);
    let (first, second) = (only(&first), only(&second));
    assert_eq!((first.unchanged_since, second.unchanged_since), (None, Some(first.observed_at)));
    assert!(second.observed_at > first.observed_at);
    assert_eq!(shop.archive().page(second).expect("it is archived").body, b"a 1.25");
    assert_eq!(times_asked(&server, "/a").await, 2);
}

#[tokio::test]
async fn an_answer_whose_archived_bytes_are_damaged_is_fetched_whole_and_mended() {
    let server = MockServer::start().await;
    let unchanged = Mock::given(path("/a")).and(header("if-none-match", "\"v1\"")).respond_with(ResponseTemplate::new(304));
    unchanged.with_priority(1).mount(&server).await;
    answer(&server, "/a", ResponseTemplate::new(200).insert_header("etag", "\"v1\"").set_body_string("a 1.25")).await;
    let shop = shop(&server.uri(), LIMITS, &[("a", "/a")]);
    let first = fetch(shop).await;
    let sha = &only(&first).sha256;
    let object = shop.root().join(format!("raw/objects/{}/{}.zst", &sha[..2], &sha[2..]));
    std::fs::write(&object, b"not what its name says").expect("the object can be damaged");
    let second = fetch(shop).await;
    assert_eq!(only(&second).unchanged_since, None);
    assert_eq!(shop.archive().read(sha).expect("it is mended"), b"a 1.25");
}

#[tokio::test]
async fn a_server_that_calls_unchanged_what_nobody_has_is_not_believed() {
    let server = MockServer::start().await;
    answer(&server, "/a", ResponseTemplate::new(304)).await;
    let delivery = fetch(shop(&server.uri(), LIMITS, &[("a", "/a")])).await;
    assert_eq!((delivery.pages.len(), delivery.failures[0].code.as_str()), (0, "http_status"));
}

#[tokio::test]
async fn a_page_whose_address_never_changes_is_fetched_once_for_ever() {
    let server = MockServer::start().await;
    answer(&server, "/index", ResponseTemplate::new(200).set_body_string("for-ever /v7")).await;
    answer(&server, "/v7", ResponseTemplate::new(200).set_body_string("v7 1.25")).await;
    let shop = shop(&server.uri(), LIMITS, &[("a", "/index")]);
    let (first, second) = (fetch(shop).await, fetch(shop).await);
    assert_eq!((times_asked(&server, "/index").await, times_asked(&server, "/v7").await), (2, 1));
    assert_eq!((first.pages.len(), second.pages.len()), (2, 2));
    assert_eq!(second.pages[1].unchanged_since, Some(first.pages[1].observed_at));
    assert_eq!(second.pages[1].sha256, first.pages[1].sha256);
}

#[tokio::test]
async fn a_bulk_file_is_kept_as_its_lines_with_the_hash_and_size_of_the_whole() {
    let rows: String = (0..20_000).map(|row| format!("{row},\"{}\"\n", if row % 1_000 == 7 { "gpu" } else { "cpu" })).collect();
    let text = format!("bulk\n{rows}");
    let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    gzip.write_all(text.as_bytes()).expect("it is compressed");
    let server = MockServer::start().await;
    let packed = gzip.finish().expect("it is compressed");
    answer(&server, "/a", ResponseTemplate::new(200).insert_header("content-encoding", "gzip").set_body_bytes(packed)).await;
    let shop = shop(&server.uri(), LIMITS, &[("a", "/a")]);
    let delivery = fetch(shop).await;
    let receipt = only(&delivery);
    let kept: String =
        text.lines().filter(|line| *line == "bulk" || line.contains("gpu")).map(|line| format!("{line}\n")).collect();
    assert_eq!(shop.archive().page(receipt).expect("it is archived").body, kept.into_bytes());
    let whole = receipt.whole.as_ref().expect("it is a bulk file");
    assert_eq!((whole.sieve.as_str(), whole.bytes), ("bulk-1", u64::try_from(text.len()).expect("it is small")));
    assert_eq!(whole.sha256, sha256(text.as_bytes()));
}

/// A variable that is set while tests run and that no page of theirs holds: it plays the key.
const KEY: &str = "CARGO_MANIFEST_DIR";

fn keyed(place: &str) -> String {
    format!("{LIMITS}\nkey_env = '{KEY}'\nkey_in = {place}")
}

#[tokio::test]
async fn a_key_goes_to_the_server_and_nowhere_else() {
    let secret = std::env::var(KEY).expect("it is set");
    for (place, given) in [
        ("{ query = 'key' }", Mock::given(path("/a")).and(query_param("key", secret.as_str()))),
        ("{ header = 'x-key' }", Mock::given(path("/a")).and(header("x-key", secret.as_str()))),
        ("'bearer'", Mock::given(path("/a")).and(header("authorization", format!("Bearer {secret}").as_str()))),
    ] {
        let server = MockServer::start().await;
        given
            .respond_with(ResponseTemplate::new(200).insert_header("etag", "\"1\"").set_body_string("a 1.25"))
            .mount(&server)
            .await;
        let shop = shop(&server.uri(), &keyed(place), &[("a", "keyed:/a")]);
        assert_eq!(shop.manifest().start(false).len(), 0);
        let delivery = fetch(shop).await;
        assert_eq!(only(&delivery).url, format!("{}/a", server.uri()));
        assert_eq!(files_with(shop, &secret), Vec::<String>::new());
    }
}

#[tokio::test]
async fn a_key_stands_in_no_error_not_even_in_one_that_repeats_the_address() {
    let secret = std::env::var(KEY).expect("it is set");
    let server = MockServer::start().await;
    let astray = format!("http://elsewhere.invalid/?key={secret}");
    answer(&server, "/astray", ResponseTemplate::new(302).insert_header("location", astray.as_str())).await;
    answer(&server, "/broken", ResponseTemplate::new(500).set_body_string(secret.as_str())).await;
    let cut = ResponseTemplate::new(200).insert_header("content-encoding", "gzip").set_body_string(secret.as_str());
    answer(&server, "/cut", cut).await;
    let shop =
        shop(&server.uri(), &keyed("{ query = 'key' }"), &[("a", "keyed:/astray"), ("b", "keyed:/broken"), ("c", "keyed:/cut")]);
    let delivery = fetch(shop).await;
    let codes: Vec<_> = delivery.failures.iter().map(|failure| failure.code.as_str()).collect();
    assert_eq!(codes, ["led_astray", "http_status", "broken_off"]);
    let told = format!("{:?}", delivery.failures);
    assert!(!told.contains(&secret) && told.contains("http://elsewhere.invalid"), "{told}");
}

#[test]
fn a_key_does_not_show_when_it_is_printed() {
    let shop = shop("http://127.0.0.1:1", &keyed("'bearer'"), &[("a", "/a")]);
    let key = gpuledger::fetch::Key::of(shop.manifest()).expect("it can be sent").expect("it is set");
    assert_eq!(format!("{key:?}"), "Key(…)");
}

#[tokio::test]
async fn a_lost_index_page_does_not_stand_for_another_and_a_page_that_two_lead_to_is_fetched_once() {
    let server = MockServer::start().await;
    answer(&server, "/first", ResponseTemplate::new(403)).await;
    answer(&server, "/second", ResponseTemplate::new(200).set_body_string("next /a")).await;
    answer(&server, "/third", ResponseTemplate::new(200).set_body_string("next /a")).await;
    answer(&server, "/a", ResponseTemplate::new(200).set_body_string("a 1.25")).await;
    let index = [("index", "/first"), ("index", "/second"), ("index", "/third")];
    let delivery = fetch(shop(&server.uri(), LIMITS, &index)).await;
    let lost: Vec<_> = delivery.failures.iter().map(|failure| (failure.scope.as_str(), failure.code.as_str())).collect();
    assert_eq!((lost, times_asked(&server, "/a").await), (vec![("index", "http_status")], 1));
}

#[tokio::test]
async fn a_page_of_two_scopes_costs_the_second_and_says_so() {
    let server = MockServer::start().await;
    answer(&server, "/one", ResponseTemplate::new(200).set_body_string("next /a")).await;
    answer(&server, "/two", ResponseTemplate::new(200).set_body_string("next /a")).await;
    answer(&server, "/a", ResponseTemplate::new(200).set_body_string("a 1.25")).await;
    let delivery = fetch(shop(&server.uri(), LIMITS, &[("one", "/one"), ("two", "/two")])).await;
    let lost: Vec<_> = delivery.failures.iter().map(|failure| (failure.scope.as_str(), failure.code.as_str())).collect();
    assert_eq!(lost, [("two", "page_of_two_scopes")]);
}

#[tokio::test]
async fn a_lost_index_page_costs_every_scope_that_its_start_page_leads_to_and_no_other() {
    let server = MockServer::start().await;
    answer(&server, "/world", ResponseTemplate::new(200).set_body_string("index /prices\nindex /plans")).await;
    answer(&server, "/prices", ResponseTemplate::new(200).set_body_string("next /east")).await;
    answer(&server, "/plans", ResponseTemplate::new(403)).await;
    answer(&server, "/east", ResponseTemplate::new(200).set_body_string("east 1.25")).await;
    answer(&server, "/china", ResponseTemplate::new(200).set_body_string("next /north")).await;
    answer(&server, "/north", ResponseTemplate::new(200).set_body_string("north 8.68")).await;
    let delivery = fetch(shop(&server.uri(), LIMITS, &[("index", "/world"), ("index", "/china")])).await;
    let lost: Vec<_> = delivery.failures.iter().map(|failure| (failure.scope.as_str(), failure.code.as_str())).collect();
    // A page of the small source is of the scope of its path, if an index leads to it.
    assert_eq!(lost, [("index", "http_status"), ("/east", "index_missing")]);
    let had: Vec<_> = delivery.pages.iter().map(|receipt| receipt.page.as_str()).collect();
    assert_eq!(had, ["/world", "/china", "/prices", "/north", "/east"]);
}

#[tokio::test]
async fn one_hiccup_of_robots_txt_costs_nothing() {
    let server = MockServer::start().await;
    Mock::given(path("/robots.txt"))
        .respond_with(ResponseTemplate::new(503))
        .up_to_n_times(2)
        .with_priority(1)
        .mount(&server)
        .await;
    answer(&server, "/a", ResponseTemplate::new(200).set_body_string("a 1.25")).await;
    let delivery = fetch(shop(&server.uri(), LIMITS, &[("a", "/a")])).await;
    assert_eq!((only(&delivery).page.as_str(), times_asked(&server, "/robots.txt").await), ("/a", 3));
}

#[tokio::test]
async fn what_a_parser_refused_is_asked_for_again_even_if_its_address_never_changes() {
    let server = MockServer::start().await;
    answer(&server, "/index", ResponseTemplate::new(200).set_body_string("for-ever /v7")).await;
    let busy = Mock::given(path("/v7")).respond_with(ResponseTemplate::new(200).set_body_string("refuse: try later"));
    busy.up_to_n_times(1).with_priority(1).mount(&server).await;
    answer(&server, "/v7", ResponseTemplate::new(200).set_body_string("v7 1.25")).await;
    let shop = shop(&server.uri(), LIMITS, &[("a", "/index")]);
    let statuses = |delivery: Delivery| {
        let gathered = gpuledger::gather::gather(delivery, &shop.archive());
        gathered.coverage().map(|scope| scope.status.word()).collect::<Vec<_>>()
    };
    assert_eq!(statuses(fetch(shop).await), ["failed"]);
    assert_eq!(statuses(fetch(shop).await), ["complete"]);
    assert_eq!(statuses(fetch(shop).await), ["complete"]);
    assert_eq!(times_asked(&server, "/v7").await, 2);
}
