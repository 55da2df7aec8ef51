//! Where pages may not lead, whoever says so: strangers, private addresses, loops; and where robots.txt may be read.

use std::time::Duration;

use crate::support::rough::{count, rough_server, send};
use crate::support::shop::{LIMITS, Shop, shop};
use gpuledger::fetch::{Client, Hosts, Turns, fetch_provider};
use gpuledger::gather::Delivery;
use gpuledger_scrapers::{ALL, recordings};
use wiremock::matchers::path;
use wiremock::{Mock, MockServer, ResponseTemplate};

async fn fetch(shop: &'static Shop) -> Delivery {
    let client = Client::with_first_wait(None, Duration::from_millis(1)).expect("a client can be made");
    fetch_provider(&client, &Turns::default(), &shop.archive(), shop, &|_, _, _| {}).await
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

fn redirect(status: u16, to: &str) -> ResponseTemplate {
    ResponseTemplate::new(status).insert_header("location", to)
}

async fn asked(server: &MockServer) -> Vec<String> {
    let requests = server.received_requests().await.expect("the server keeps its requests");
    requests.iter().map(|request| request.url.path().to_owned()).collect()
}

#[tokio::test]
async fn a_page_leads_only_to_hosts_that_the_manifest_names() {
    let (other, of_other) = rough_server(|_, stream| send(stream, "content-length: 4\r\n", b"1.25"));
    let server = MockServer::start().await;
    let port = server.address().port();
    for to in [
        other.as_str(),
        "https://prices.example.com",
        "http://10.1.2.3",
        "http://192.168.0.1",
        "http://169.254.169.254/latest/meta-data",
        "http://[::1]",
        "http://2130706433",
        "http://metadata.google.internal",
        &format!("http://localhost:{port}"),
        &format!("https://127.0.0.1:{port}"),
        &format!("http://user:word@127.0.0.1:{port}"),
        "file:///etc/passwd",
        "ftp://127.0.0.1/a",
    ] {
        server.reset().await;
        answer(&server, "/a", text(format!("next {to}/b"))).await;
        answer(&server, "/c", text("c 2.50")).await;
        let delivery = fetch(shop(&server.uri(), LIMITS, &[("east", "/a"), ("west", "/c")])).await;
        assert_eq!(failures(&delivery), [("east", "led_astray")], "{to}");
        assert_eq!(pages(&delivery), ["/a", "/c"]);
        assert_eq!(asked(&server).await.iter().filter(|path| *path == "/b").count(), 0, "{to}");
    }
    assert_eq!(count(&of_other), 0);
}

#[tokio::test]
async fn an_address_that_is_none_is_told_with_its_page() {
    let server = MockServer::start().await;
    answer(&server, "/a", text("next http://[nowhere/b")).await;
    let delivery = fetch(shop(&server.uri(), LIMITS, &[("east", "/a")])).await;
    assert_eq!(failures(&delivery), [("east", "bad_address")]);
    assert!(delivery.failures[0].reason.starts_with("page `http://[nowhere/b` has an address that cannot be read"));
}

#[test]
fn every_page_that_a_provider_leads_to_is_on_a_host_of_its_manifest() {
    let mut led_to = 0;
    for scraper in ALL {
        let hosts = Hosts::of(*scraper);
        let recordings = recordings::of(&scraper.manifest().provider).into_iter().filter(recordings::Recording::is_dated);
        for page in recordings.flat_map(|recording| recording.pages) {
            let Ok(requests) = scraper.follow(&page) else { continue };
            for request in requests {
                led_to += 1;
                if let Err(error) = hosts.address(&request.url) {
                    panic!("{}: page `{}` {error}", scraper.manifest().provider, request.name);
                }
            }
        }
    }
    assert!(led_to > 15, "only {led_to} pages were led to");
}

#[tokio::test]
async fn a_redirect_leads_to_no_other_host_port_or_private_address() {
    let (other, of_other) = rough_server(|_, stream| send(stream, "content-length: 4\r\n", b"1.25"));
    let server = MockServer::start().await;
    for to in
        [other.as_str(), "http://10.1.2.3/", "http://169.254.169.254/", "http://[::1]/", "//prices.example.com/", "file:///a"]
    {
        server.reset().await;
        answer(&server, "/a", redirect(301, to)).await;
        let delivery = fetch(shop(&server.uri(), LIMITS, &[("a", "/a")])).await;
        assert_eq!(failures(&delivery), [("a", "led_astray")], "{to}");
        assert!(delivery.failures[0].reason.contains("page `/a`, tried once, leads astray"), "{}", delivery.failures[0].reason);
    }
    assert_eq!(count(&of_other), 0);
}

#[tokio::test]
async fn a_redirect_without_a_place_is_no_page() {
    let server = MockServer::start().await;
    answer(&server, "/a", ResponseTemplate::new(302)).await;
    let delivery = fetch(shop(&server.uri(), LIMITS, &[("a", "/a")])).await;
    assert_eq!(failures(&delivery), [("a", "led_astray")]);
}

#[tokio::test]
async fn a_redirect_to_what_robots_txt_forbids_is_not_followed() {
    let server = MockServer::start().await;
    answer(&server, "/robots.txt", text("User-agent: *\nDisallow: /hidden")).await;
    answer(&server, "/a", redirect(302, "/hidden/a")).await;
    let delivery = fetch(shop(&server.uri(), LIMITS, &[("a", "/a")])).await;
    assert_eq!(failures(&delivery), [("a", "robots_forbid")]);
    assert_eq!(asked(&server).await, ["/robots.txt", "/a"]);
}

#[tokio::test]
async fn five_redirects_are_followed_and_six_are_not() {
    let server = MockServer::start().await;
    for number in 0..6 {
        answer(&server, &format!("/a{number}"), redirect(302, &format!("/a{}", number + 1))).await;
    }
    answer(&server, "/a6", text("a 1.25")).await;
    let delivery = fetch(shop(&server.uri(), LIMITS, &[("six", "/a0"), ("five", "/a1")])).await;
    assert_eq!((failures(&delivery), pages(&delivery)), (vec![("six", "led_astray")], vec!["/a1"]));
}

#[tokio::test]
async fn a_request_with_a_body_is_never_turned_into_one_without() {
    let server = MockServer::start().await;
    answer(&server, "/b", text("somebody else's price")).await;
    for status in [301, 302, 303] {
        answer(&server, &format!("/a{status}"), redirect(status, "/b")).await;
        let page = format!("posted:/a{status}");
        let delivery = fetch(shop(&server.uri(), LIMITS, &[("a", &page)])).await;
        assert_eq!(failures(&delivery), [("a", "led_astray")]);
        assert!(delivery.failures[0].reason.contains("would drop the body"), "{}", delivery.failures[0].reason);
    }
    assert!(!asked(&server).await.contains(&"/b".to_owned()));
}

#[tokio::test]
async fn a_request_with_a_body_keeps_it_where_the_server_says_so() {
    let server = MockServer::start().await;
    answer(&server, "/a", redirect(308, "/b")).await;
    Mock::given(path("/b")).and(wiremock::matchers::method("POST")).respond_with(text("b 2.50")).mount(&server).await;
    let delivery = fetch(shop(&server.uri(), LIMITS, &[("a", "posted:/a")])).await;
    assert_eq!((failures(&delivery), pages(&delivery)), (vec![], vec!["/a"]));
    let requests = server.received_requests().await.expect("the server keeps its requests");
    assert_eq!(requests.last().map(|request| request.body.as_slice()), Some(b"{}".as_slice()));
}

#[tokio::test]
async fn an_index_page_over_the_limit_costs_the_scopes_that_its_start_page_leads_to() {
    let server = MockServer::start().await;
    answer(&server, "/world", text("next /east\nindex /more")).await;
    answer(&server, "/east", text("east 1.25")).await;
    answer(&server, "/more", text("next /west")).await;
    let limits = "timeout_s = 5\nmax_body_mib = 1\nmax_pages = 2";
    let delivery = fetch(shop(&server.uri(), limits, &[("index", "/world")])).await;
    assert_eq!(failures(&delivery), [("index", "too_many_pages"), ("/east", "index_missing")]);
}

#[tokio::test]
async fn robots_txt_is_read_where_it_has_moved_to_another_host_as_well() {
    let other = MockServer::start().await;
    answer(&other, "/there", text("User-agent: *\nDisallow: /a")).await;
    let server = MockServer::start().await;
    let elsewhere = format!("http://localhost:{}/there", other.address().port());
    answer(&server, "/robots.txt", redirect(301, "/robots")).await;
    answer(&server, "/robots", redirect(302, &elsewhere)).await;
    answer(&server, "/a", text("a 1.25")).await;
    answer(&server, "/b", text("b 2.50")).await;
    let delivery = fetch(shop(&server.uri(), LIMITS, &[("a", "/a"), ("b", "/b")])).await;
    assert_eq!((failures(&delivery), pages(&delivery)), (vec![("a", "robots_forbid")], vec!["/b"]));
    assert_eq!(asked(&server).await, ["/robots.txt", "/robots", "/b"]);
}

#[tokio::test]
async fn robots_txt_that_moves_on_and_on_counts_as_missing() {
    let server = MockServer::start().await;
    answer(&server, "/robots.txt", redirect(302, "/robots.txt")).await;
    answer(&server, "/a", text("a 1.25")).await;
    let delivery = fetch(shop(&server.uri(), LIMITS, &[("a", "/a")])).await;
    assert_eq!((failures(&delivery), pages(&delivery)), (vec![], vec!["/a"]));
    assert_eq!(asked(&server).await.len(), 7);
}

#[tokio::test]
async fn robots_txt_of_more_than_500_kib_counts_up_to_there_and_no_rule_is_cut_in_two() {
    let server = MockServer::start().await;
    let rules = "User-agent: *\nDisallow: /a\n";
    // The limit falls into the middle of a rule that would forbid everything if it were cut after its first character.
    let filler = "# a comment that fills the file up\n".repeat(15_000);
    let room = 500 * 1_024 - rules.len() - "Disallow: /".len();
    let text_of_file = format!("{rules}{}\nDisallow: /b/only\nDisallow: /c\n", &filler[..room - 1]);
    answer(&server, "/robots.txt", text(text_of_file)).await;
    answer(&server, "/a", text("a 1.25")).await;
    answer(&server, "/b", text("b 2.50")).await;
    answer(&server, "/c", text("c 2.50")).await;
    let delivery = fetch(shop(&server.uri(), LIMITS, &[("a", "/a"), ("b", "/b"), ("c", "/c")])).await;
    assert_eq!((failures(&delivery), pages(&delivery)), (vec![("a", "robots_forbid")], vec!["/b", "/c"]));
}

#[tokio::test]
async fn robots_txt_that_breaks_off_or_is_too_busy_means_not_tonight() {
    for status in [429, 500] {
        let server = MockServer::start().await;
        answer(&server, "/robots.txt", ResponseTemplate::new(status)).await;
        let delivery = fetch(shop(&server.uri(), LIMITS, &[("a", "/a")])).await;
        assert_eq!(failures(&delivery), [("a", "robots_broken")]);
        assert!(
            delivery.failures[0]
                .reason
                .contains(&format!("tried 4 times, is not read: robots.txt of 127.0.0.1 answered {status}"))
        );
        assert!(!asked(&server).await.contains(&"/a".to_owned()));
    }
    let server = MockServer::start().await;
    let cut = ResponseTemplate::new(200).insert_header("content-encoding", "gzip").set_body_string("User-agent: *");
    answer(&server, "/robots.txt", cut).await;
    let delivery = fetch(shop(&server.uri(), LIMITS, &[("a", "/a")])).await;
    assert_eq!(failures(&delivery), [("a", "robots_broken")]);
}

#[tokio::test]
async fn a_pause_that_robots_txt_asks_for_is_kept() {
    let server = MockServer::start().await;
    answer(&server, "/robots.txt", text("User-agent: *\nCrawl-delay: 0.5")).await;
    answer(&server, "/a", text("next /b")).await;
    answer(&server, "/b", text("next /c")).await;
    answer(&server, "/c", text("c 2.50")).await;
    let delivery = fetch(shop(&server.uri(), LIMITS, &[("a", "/a")])).await;
    assert_eq!(pages(&delivery), ["/a", "/b", "/c"]);
    assert!(delivery.seconds >= 1.0, "three pages took {} s", delivery.seconds);
}
