//! What a night may take: the time and the requests of a provider, waits that servers ask for, silence, and a network that
//! is not there.

use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use crate::support::rough::{count, nobody, rough_server, send};
use crate::support::shop::{LIMITS, Shop, shop};
use gpuledger::fetch::{Client, Traffic, Turns, fetch_provider};
use gpuledger::gather::Delivery;
use gpuledger_scrapers::ALL;
use gpuledger_scrapers::contract::Scraper as _;
use wiremock::matchers::path;
use wiremock::{Mock, MockServer, ResponseTemplate};

fn client() -> Client {
    Client::with_first_wait(None, Duration::from_millis(1)).expect("a client can be made")
}

async fn fetch_with(client: &Client, shop: &'static Shop) -> Delivery {
    fetch_provider(client, &Turns::default(), &shop.archive(), shop, &|_, _, _| {}).await
}

async fn fetch(shop: &'static Shop) -> Delivery {
    fetch_with(&client(), shop).await
}

fn failures(delivery: &Delivery) -> Vec<(&str, &str)> {
    delivery.failures.iter().map(|failure| (failure.scope.as_str(), failure.code.as_str())).collect()
}

fn pages(delivery: &Delivery) -> Vec<&str> {
    delivery.pages.iter().map(|receipt| receipt.page.as_str()).collect()
}

async fn answer(server: &MockServer, at: &str, response: ResponseTemplate) {
    Mock::given(path(at)).respond_with(response).mount(server).await;
}

fn text(body: impl Into<String>) -> ResponseTemplate {
    ResponseTemplate::new(200).set_body_string(body)
}

async fn asked(server: &MockServer) -> Vec<String> {
    let requests = server.received_requests().await.expect("the server keeps its requests");
    requests.iter().map(|request| request.url.path().to_owned()).collect()
}

#[tokio::test]
async fn a_wait_longer_than_a_night_is_given_up_at_once_however_it_is_written() {
    for wait in ["121", "1000000000000000000", "99999999999999999999999999", "Fri, 31 Dec 9999 23:59:59 GMT"] {
        let server = MockServer::start().await;
        answer(&server, "/a", ResponseTemplate::new(503).insert_header("retry-after", wait)).await;
        answer(&server, "/b", text("b 2.50")).await;
        let delivery = fetch(shop(&server.uri(), LIMITS, &[("a", "/a"), ("b", "/b")])).await;
        assert_eq!((failures(&delivery), pages(&delivery)), (vec![("a", "rate_limited")], vec!["/b"]), "{wait}");
        assert_eq!(asked(&server).await, ["/robots.txt", "/a", "/b"]);
    }
}

#[tokio::test]
async fn a_wait_that_is_over_or_makes_no_sense_is_replaced_by_our_own() {
    for wait in ["0", "-5", "1.5", "soon", "Thu, 01 Jan 1970 00:00:00 GMT", ""] {
        let server = MockServer::start().await;
        let busy = ResponseTemplate::new(429).insert_header("retry-after", wait);
        Mock::given(path("/a")).respond_with(busy).up_to_n_times(2).with_priority(1).mount(&server).await;
        answer(&server, "/a", text("a 1.25")).await;
        let delivery = fetch(shop(&server.uri(), LIMITS, &[("a", "/a")])).await;
        assert_eq!((failures(&delivery), pages(&delivery)), (vec![], vec!["/a"]), "{wait}");
        assert_eq!(delivery.traffic, Traffic { requests: 4, retries: 2, bytes: 6 }, "{wait}");
    }
}

#[tokio::test]
async fn no_try_comes_sooner_than_the_pace_of_the_host_allows() {
    let server = MockServer::start().await;
    let busy = Mock::given(path("/a")).respond_with(ResponseTemplate::new(500)).up_to_n_times(1).with_priority(1);
    busy.mount(&server).await;
    answer(&server, "/a", text("a 1.25")).await;
    // The builder of the small source sets a pace of its own; robots.txt asks for a slower one.
    answer(&server, "/robots.txt", text("User-agent: *\nCrawl-delay: 0.4")).await;
    let delivery = fetch(shop(&server.uri(), LIMITS, &[("a", "/a")])).await;
    assert_eq!(pages(&delivery), ["/a"]);
    assert!(delivery.seconds >= 0.4, "the second try came after {} s", delivery.seconds);
}

#[tokio::test]
async fn a_page_that_is_never_there_costs_its_scope_alone() {
    let server = MockServer::start().await;
    answer(&server, "/index", text("next /r8\nnext /r9")).await;
    answer(&server, "/r8", text("r8 1.25")).await;
    let delivery = fetch(shop(&server.uri(), LIMITS, &[("index", "/index")])).await;
    assert_eq!((failures(&delivery), pages(&delivery)), (vec![("/r9", "http_status")], vec!["/index", "/r8"]));
    let told = "page `/r9`, tried 4 times, answered 404; look whether the page has moved";
    assert_eq!(delivery.failures[0].reason, told);
}

#[tokio::test]
async fn a_region_that_never_answers_costs_itself_alone() {
    let (server, asked) = rough_server(|tries, stream| {
        if tries == 2 || tries > 3 {
            std::thread::sleep(Duration::from_secs(3));
        }
        send(stream, "content-length: 4\r\n", b"1.25")
    });
    let limits = "timeout_s = 1\nmax_body_mib = 1\nmax_pages = 20";
    let pages_of_shop = [("east", "/east"), ("silent", "/silent")];
    let delivery = fetch(shop(&server, limits, &pages_of_shop[..1])).await;
    assert_eq!(pages(&delivery), ["/east"]);
    let delivery = fetch(shop(&server, limits, &[("silent", "/silent"), ("west", "/west")])).await;
    // The second answer is late and the third is not: one silence costs nothing.
    assert_eq!((failures(&delivery), count(&asked)), (vec![("west", "timed_out")], 7));
    assert_eq!(pages(&delivery), ["/silent"]);
}

#[tokio::test]
async fn a_server_that_sends_headers_and_then_nothing_is_left_before_the_time_of_the_page_is_over() {
    let (server, asked) = rough_server(|_, stream| {
        send(stream, "content-length: 1000\r\n", b"")?;
        std::thread::sleep(Duration::from_secs(5));
        Ok(())
    });
    let client = Client::with_waits(None, Duration::from_millis(1), Duration::from_millis(200)).expect("a client can be made");
    let delivery = fetch_with(&client, shop(&server, LIMITS, &[("a", "/a")])).await;
    assert_eq!((failures(&delivery), count(&asked)), (vec![("a", "timed_out")], 4));
    assert!(delivery.failures[0].reason.contains("went silent"), "{}", delivery.failures[0].reason);
    assert!(delivery.seconds < 4.0, "it took {} s", delivery.seconds);
}

#[tokio::test]
async fn when_the_time_is_over_what_was_had_stays_whole_and_the_rest_is_named() {
    let server = MockServer::start().await;
    answer(&server, "/a", text("a 1.25")).await;
    answer(&server, "/b", text("next /b2").set_delay(Duration::from_secs(4))).await;
    answer(&server, "/c", text("c 2.50")).await;
    let client = client().until(Some(Instant::now() + Duration::from_secs(1)));
    let limits = "timeout_s = 10\nmax_body_mib = 1\nmax_pages = 20";
    let delivery = fetch_with(&client, shop(&server.uri(), limits, &[("a", "/a"), ("b", "/b"), ("c", "/c")])).await;
    assert_eq!(pages(&delivery), ["/a"]);
    assert_eq!(failures(&delivery), [("b", "out_of_time"), ("c", "out_of_time")]);
    assert!(delivery.failures[1].reason.contains("the time that was given to the whole night is over"));
    assert!(delivery.seconds < 3.0, "it took {} s", delivery.seconds);
    assert!(!asked(&server).await.contains(&"/c".to_owned()));
}

#[tokio::test]
async fn a_provider_without_time_is_not_asked() {
    let server = MockServer::start().await;
    let limits = format!("{LIMITS}\nmax_minutes = 0");
    let delivery = fetch(shop(&server.uri(), &limits, &[("a", "/a"), ("b", "/b")])).await;
    assert_eq!(failures(&delivery), [("a", "out_of_time"), ("b", "out_of_time")]);
    assert!(delivery.failures[0].reason.contains("the 0 minutes that this provider has are over; raise `max_minutes`"));
    assert_eq!((delivery.traffic, asked(&server).await), (Traffic::default(), vec![]));
}

#[tokio::test]
async fn a_provider_that_needs_too_many_requests_is_left() {
    // Every try is redirected five times and then fails, so two pages would take 48 requests.
    let server = MockServer::start().await;
    for page in ["a", "b", "c"] {
        for number in 0..5 {
            let to = format!("/{page}{}", number + 1);
            answer(&server, &format!("/{page}{number}"), ResponseTemplate::new(302).insert_header("location", to.as_str())).await;
        }
        answer(&server, &format!("/{page}5"), ResponseTemplate::new(500)).await;
    }
    let limits = "timeout_s = 5\nmax_body_mib = 1\nmax_pages = 3";
    let shop = shop(&server.uri(), limits, &[("a", "/a0"), ("b", "/b0"), ("c", "/c0")]);
    assert_eq!(shop.manifest().fetch.requests_max(), 26);
    let delivery = fetch(shop).await;
    assert_eq!(failures(&delivery), [("a", "http_status"), ("b", "out_of_requests"), ("c", "out_of_requests")]);
    assert_eq!((delivery.traffic.requests, asked(&server).await.len()), (26, 26));
}

#[test]
fn every_provider_can_be_asked_for_all_its_pages_at_its_pace_in_its_time() {
    for scraper in ALL {
        let (provider, limits) = (&scraper.manifest().provider, &scraper.manifest().fetch);
        let pace_s = limits.min_interval_ms * u64::try_from(limits.max_pages).expect("there are few pages") / 1_000;
        assert!(pace_s <= limits.max_minutes * 60 * 3 / 4, "{provider}: {pace_s} s of pauses alone");
        assert!((1..=180).contains(&limits.max_minutes), "{provider}: {} minutes", limits.max_minutes);
    }
}

#[test]
fn the_readme_says_how_many_minutes_each_provider_has() {
    let usual = gpuledger_scrapers::manifest::Fetch::default().max_minutes;
    let others = ALL.iter().map(|scraper| (&scraper.manifest().provider, scraper.manifest().fetch.max_minutes));
    let others: Vec<String> =
        others.filter(|(_, minutes)| *minutes != usual).map(|(provider, minutes)| format!("{provider} {minutes}")).collect();
    let readme = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/README.md")).expect("there is a README");
    let words = format!("of minutes ({usual}; {})", others.join(", "));
    assert!(readme.contains(&words), "README.md does not say `{words}`");
}

#[tokio::test]
async fn a_network_that_comes_back_within_seconds_costs_nothing() {
    let address = nobody();
    let port: u16 = address.rsplit(':').next().and_then(|port| port.parse().ok()).expect("it has a port");
    let shop = shop(&address, LIMITS, &[("a", "/a")]);
    let comes_back = std::thread::spawn(move || {
        std::thread::sleep(Duration::from_millis(150));
        std::net::TcpListener::bind(("127.0.0.1", port))
    });
    let client = Client::with_first_wait(None, Duration::from_millis(200)).expect("a client can be made");
    let listening = tokio::task::spawn_blocking(move || {
        let listener = comes_back.join().expect("it does not panic").expect("the port is still free");
        for stream in listener.incoming().take(2) {
            let mut stream = stream.expect("somebody calls");
            let _ = std::io::Read::read(&mut stream, &mut [0; 1_024]);
            let _ = send(&mut stream, "content-length: 5\r\n", b"a 1.5");
        }
    });
    let delivery = fetch_with(&client, shop).await;
    listening.await.expect("the server does not panic");
    assert_eq!((failures(&delivery), pages(&delivery)), (vec![], vec!["/a"]));
}

/// The program, on an internet where nobody answers.
fn offline(args: &[&str]) -> (Option<i32>, String, Duration) {
    let folder = tempfile::tempdir().expect("there is room for a folder");
    let mut command = Command::new(env!("CARGO_BIN_EXE_gpuledger"));
    command.arg("collect").args(args).arg("--output").arg(folder.path()).env("HTTPS_PROXY", nobody());
    for name in ["NO_PROXY", "no_proxy", "https_proxy", "GCP_API_KEY"] {
        command.env_remove(name);
    }
    let started = Instant::now();
    let output = command.stdin(Stdio::null()).output().expect("the program starts");
    (output.status.code(), String::from_utf8_lossy(&output.stdout).into_owned(), started.elapsed())
}

#[test]
fn a_night_without_a_network_is_over_soon_and_says_so() {
    let (exit, data, took) = offline(&[]);
    assert_eq!(exit, Some(11), "{data}");
    assert!(data.contains("could not connect to") && data.contains("look at the network"), "{data}");
    assert!(took < Duration::from_secs(30), "it took {took:?}");
}

#[test]
fn a_night_with_a_limit_ends_in_time() {
    let (exit, data, took) = offline(&["--max-minutes", "0.01"]);
    assert_eq!(exit, Some(11), "{data}");
    assert!(took < Duration::from_secs(8), "it took {took:?}");
    assert!(data.contains("the time that was given to the whole night is over"), "{data}");
}
