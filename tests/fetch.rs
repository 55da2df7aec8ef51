//! Fetching against a server on this machine: retries, limits, robots.txt, and what a lost page costs.

use std::io::{Read as _, Write as _};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use crate::support::rough::{count, gzip, nobody, rough_server, send};
use crate::support::shop::{LIMITS, Shop, shop};
use gpuledger::fetch::{Client, Turns, fetch_provider};
use gpuledger::gather::{Delivery, gather};
use gpuledger_scrapers::sha256;
use wiremock::matchers::path;
use wiremock::{Mock, MockServer, Request, ResponseTemplate};

fn client() -> Client {
    Client::with_first_wait(None, Duration::from_millis(1)).expect("a client can be made")
}

async fn fetch(shop: &'static Shop) -> Delivery {
    fetch_provider(&client(), &Turns::default(), &shop.archive(), shop, &|_, _, _| {}).await
}

fn failures(delivery: &Delivery) -> Vec<(&str, &str)> {
    delivery.failures.iter().map(|failure| (failure.scope.as_str(), failure.code.as_str())).collect()
}

fn pages(delivery: &Delivery) -> Vec<&str> {
    delivery.pages.iter().map(|receipt| receipt.page.as_str()).collect()
}

fn bodies(shop: &Shop, delivery: &Delivery) -> Vec<Vec<u8>> {
    delivery.pages.iter().map(|receipt| shop.archive().page(receipt).expect("it is archived").body).collect()
}

/// The paths a server was asked for, in order, robots.txt apart.
async fn asked(server: &MockServer) -> Vec<String> {
    let paths = all_asked(server).await;
    paths.into_iter().filter(|path| path != "/robots.txt").collect()
}

async fn all_asked(server: &MockServer) -> Vec<String> {
    let requests = server.received_requests().await.expect("the server keeps its requests");
    requests.iter().map(|request| request.url.path().to_owned()).collect()
}

/// A server with a page at each path.
async fn server(pages: &[(&str, &str)]) -> MockServer {
    let server = MockServer::start().await;
    for (at, body) in pages {
        answer(&server, at, ResponseTemplate::new(200).set_body_string(*body)).await;
    }
    server
}

async fn answer(server: &MockServer, at: &str, response: ResponseTemplate) {
    Mock::given(path(at)).respond_with(response).mount(server).await;
}

async fn answer_first(server: &MockServer, at: &str, times: u64, response: ResponseTemplate) {
    Mock::given(path(at)).respond_with(response).up_to_n_times(times).with_priority(1).mount(server).await;
}

#[tokio::test]
async fn a_wait_that_the_server_names_is_kept_and_the_page_is_read_then() {
    let server = server(&[("/a", "a 1.25")]).await;
    answer_first(&server, "/a", 1, ResponseTemplate::new(429).insert_header("Retry-After", "1")).await;
    let started = Instant::now();
    let delivery = fetch(shop(&server.uri(), LIMITS, &[("a", "/a")])).await;
    assert_eq!((failures(&delivery), pages(&delivery)), (vec![], vec!["/a"]));
    assert!(started.elapsed() >= Duration::from_secs(1), "waited only {:?}", started.elapsed());
    assert_eq!(asked(&server).await.len(), 2);
}

#[tokio::test]
async fn a_wait_in_no_known_form_is_replaced_by_our_own() {
    let server = server(&[("/a", "a 1.25")]).await;
    answer_first(&server, "/a", 2, ResponseTemplate::new(429).insert_header("Retry-After", "soon")).await;
    let delivery = fetch(shop(&server.uri(), LIMITS, &[("a", "/a")])).await;
    assert_eq!((failures(&delivery), pages(&delivery)), (vec![], vec!["/a"]));
}

#[tokio::test]
async fn a_server_that_is_busy_for_ever_is_left_after_four_tries() {
    let server = server(&[]).await;
    answer(&server, "/a", ResponseTemplate::new(429)).await;
    let delivery = fetch(shop(&server.uri(), LIMITS, &[("a", "/a")])).await;
    assert_eq!(failures(&delivery), [("a", "http_status")]);
    let told = "page `/a`, tried 4 times, answered 429; raise `min_interval_ms` in the manifest if it happens again";
    assert_eq!(delivery.failures[0].reason, told);
    assert_eq!(asked(&server).await.len(), 4);
}

#[tokio::test]
async fn a_wait_of_an_hour_is_given_up_at_once() {
    let server = server(&[]).await;
    answer(&server, "/a", ResponseTemplate::new(429).insert_header("Retry-After", "3600")).await;
    let started = Instant::now();
    let delivery = fetch(shop(&server.uri(), LIMITS, &[("a", "/a")])).await;
    assert_eq!(failures(&delivery), [("a", "rate_limited")]);
    assert_eq!(asked(&server).await.len(), 1);
    assert!(started.elapsed() < Duration::from_secs(10));
}

#[tokio::test]
async fn a_page_that_fails_for_ever_costs_its_scope_and_no_other() {
    let server = server(&[("/w1", "w1\nnext /w2"), ("/w2", "w2")]).await;
    for number in 1..=8 {
        let fine = ResponseTemplate::new(200).set_body_string(format!("e{number}\nnext /e{}", number + 1));
        let response = if number == 5 { ResponseTemplate::new(500) } else { fine };
        answer(&server, &format!("/e{number}"), response).await;
    }
    let shop = shop(&server.uri(), LIMITS, &[("east", "/e1"), ("west", "/w1")]);
    let delivery = fetch(shop).await;
    assert_eq!(failures(&delivery), [("east", "http_status")]);
    assert_eq!(asked(&server).await.iter().filter(|path| *path == "/e5").count(), 4);
    assert!(!asked(&server).await.contains(&"/e6".to_owned()));
    let gathered = gather(delivery, &shop.archive());
    let coverage: Vec<_> = gathered.coverage().map(|scope| (scope.scope, scope.status.word())).collect();
    assert_eq!(coverage, [("east".to_owned(), "failed"), ("west".to_owned(), "complete")]);
}

#[tokio::test]
async fn a_page_that_is_not_there_yet_is_asked_for_again() {
    let server = server(&[("/a", "a 1.25")]).await;
    answer_first(&server, "/a", 2, ResponseTemplate::new(404)).await;
    let delivery = fetch(shop(&server.uri(), LIMITS, &[("a", "/a")])).await;
    assert_eq!((failures(&delivery), pages(&delivery)), (vec![], vec!["/a"]));
    assert_eq!(asked(&server).await.len(), 3);
}

#[tokio::test]
async fn a_page_that_is_forbidden_is_asked_for_once() {
    let server = server(&[]).await;
    answer(&server, "/a", ResponseTemplate::new(403)).await;
    let delivery = fetch(shop(&server.uri(), LIMITS, &[("a", "/a")])).await;
    assert_eq!(failures(&delivery), [("a", "http_status")]);
    assert_eq!(asked(&server).await.len(), 1);
}

#[tokio::test]
async fn a_body_that_breaks_off_is_asked_for_again() {
    let (server, asked) = rough_server(|tries, stream| {
        let whole = b"a 1.25 USD";
        send(stream, "content-length: 10\r\n", if tries < 3 { &whole[..4] } else { whole })
    });
    let shop = shop(&server, LIMITS, &[("a", "/a")]);
    let delivery = fetch(shop).await;
    assert_eq!((failures(&delivery), bodies(shop, &delivery)), (vec![], vec![b"a 1.25 USD".to_vec()]));
    assert_eq!(count(&asked), 3);
}

#[tokio::test]
async fn a_body_that_breaks_off_every_time_is_no_page() {
    let (server, asked) = rough_server(|_, stream| send(stream, "content-length: 10\r\n", b"a 1."));
    let delivery = fetch(shop(&server, LIMITS, &[("a", "/a")])).await;
    assert_eq!((failures(&delivery), pages(&delivery)), (vec![("a", "broken_off")], vec![]));
    assert_eq!(count(&asked), 4);
}

#[tokio::test]
async fn compressed_answers_arrive_inflated() {
    let text = "Standard_ND96isr_H100_v5,98.32\n".repeat(500);
    let server = server(&[]).await;
    let packed = |encoding: &str, body: Vec<u8>| {
        ResponseTemplate::new(200).insert_header("content-encoding", encoding).set_body_bytes(body)
    };
    answer(&server, "/gzip", packed("gzip", gzip(text.as_bytes()))).await;
    let zstd = zstd::encode_all(text.as_bytes(), 3).expect("memory takes it");
    answer(&server, "/zstd", packed("zstd", zstd)).await;
    // Five bytes stored as they are: brotli has no encoder among the dependencies.
    answer(&server, "/br", packed("br", vec![0x0b, 0x02, 0x80, b'h', b'e', b'l', b'l', b'o', 0x03])).await;
    let shop = shop(&server.uri(), LIMITS, &[("a", "/gzip"), ("b", "/zstd"), ("c", "/br")]);
    let delivery = fetch(shop).await;
    assert_eq!(failures(&delivery), []);
    assert_eq!(bodies(shop, &delivery), [text.as_bytes(), text.as_bytes(), b"hello"]);
}

#[tokio::test]
async fn a_compressed_answer_that_is_cut_off_is_no_page() {
    let text = "Standard_ND96isr_H100_v5,98.32\n".repeat(500);
    let server = server(&[]).await;
    let zstd = zstd::encode_all(text.as_bytes(), 3).expect("memory takes it");
    for (at, encoding, body) in [("/gzip", "gzip", gzip(text.as_bytes())), ("/zstd", "zstd", zstd)] {
        let cut = body[..body.len() - 10].to_vec();
        answer(&server, at, ResponseTemplate::new(200).insert_header("content-encoding", encoding).set_body_bytes(cut)).await;
    }
    let delivery = fetch(shop(&server.uri(), LIMITS, &[("a", "/gzip"), ("b", "/zstd")])).await;
    assert_eq!((failures(&delivery), pages(&delivery)), (vec![("a", "broken_off"), ("b", "broken_off")], vec![]));
    assert_eq!(asked(&server).await.len(), 8);
}

#[tokio::test]
async fn a_small_answer_that_inflates_without_end_is_refused_on_the_way() {
    // The answer never ends, so only a reader that counts while it inflates can get away from it in time.
    let packed = gzip(&vec![0; 64 * 1_024 * 1_024]);
    let (server, asked) = rough_server(move |_, stream| {
        let most = &packed[..packed.len() / 2];
        let headers = "content-encoding: gzip\r\ntransfer-encoding: chunked\r\n";
        send(stream, headers, format!("{:x}\r\n", most.len()).as_bytes())?;
        stream.write_all(most)?;
        stream.read(&mut [0]).map(|_| ())
    });
    let delivery = fetch(shop(&server, LIMITS, &[("a", "/a")])).await;
    assert_eq!((failures(&delivery), pages(&delivery)), (vec![("a", "too_large")], vec![]));
    assert_eq!(count(&asked), 1);
}

#[tokio::test]
async fn an_answer_that_announces_ten_gigabytes_is_not_read() {
    let (server, asked) = rough_server(|_, stream| {
        send(stream, "content-length: 10000000000\r\n", b"a 1.25")?;
        stream.read(&mut [0]).map(|_| ())
    });
    let delivery = fetch(shop(&server, LIMITS, &[("a", "/a")])).await;
    assert_eq!(failures(&delivery), [("a", "too_large")]);
    assert_eq!(count(&asked), 1);
}

#[tokio::test]
async fn a_redirect_to_another_host_is_not_followed() {
    let other = server(&[("/a", "somebody else's price")]).await;
    let server = server(&[]).await;
    let elsewhere = format!("http://localhost:{}/a", other.address().port());
    answer(&server, "/a", ResponseTemplate::new(302).insert_header("Location", elsewhere)).await;
    let delivery = fetch(shop(&server.uri(), LIMITS, &[("a", "/a")])).await;
    assert_eq!(failures(&delivery), [("a", "led_astray")]);
    assert_eq!((asked(&server).await.len(), all_asked(&other).await), (1, vec![]));
}

#[tokio::test]
async fn a_redirect_on_the_same_host_is_followed() {
    let server = server(&[("/b", "a 1.25")]).await;
    answer(&server, "/a", ResponseTemplate::new(302).insert_header("Location", "/b")).await;
    let shop = shop(&server.uri(), LIMITS, &[("a", "/a")]);
    let delivery = fetch(shop).await;
    assert_eq!((failures(&delivery), bodies(shop, &delivery)), (vec![], vec![b"a 1.25".to_vec()]));
}

#[tokio::test]
async fn a_redirect_that_goes_in_a_circle_is_left() {
    let server = server(&[]).await;
    answer(&server, "/a", ResponseTemplate::new(302).insert_header("Location", "/a")).await;
    let delivery = fetch(shop(&server.uri(), LIMITS, &[("a", "/a")])).await;
    assert_eq!(failures(&delivery), [("a", "led_astray")]);
    assert!(asked(&server).await.len() < 10);
}

#[tokio::test]
async fn pages_that_lead_back_end_as_a_link_loop() {
    let server = server(&[("/self", "1\nnext /self"), ("/a", "1\nnext /b"), ("/b", "2\nnext /a")]).await;
    let delivery = fetch(shop(&server.uri(), LIMITS, &[("one", "/self"), ("two", "/a")])).await;
    assert_eq!(failures(&delivery), [("one", "link_loop"), ("two", "link_loop")]);
    assert_eq!(asked(&server).await, ["/self", "/a", "/b"]);
}

#[tokio::test]
async fn more_pages_than_the_manifest_allows_are_no_success() {
    let server = MockServer::start().await;
    let numbered = |request: &Request| {
        let number: u32 = request.url.path().trim_start_matches("/page").parse().expect("a number follows");
        ResponseTemplate::new(200).set_body_string(format!("next /page{}", number + 1))
    };
    Mock::given(wiremock::matchers::path_regex("^/page")).respond_with(numbered).mount(&server).await;
    let limits = "timeout_s = 5\nmax_body_mib = 1\nmax_pages = 3";
    let delivery = fetch(shop(&server.uri(), limits, &[("all", "/page1")])).await;
    assert_eq!(failures(&delivery), [("all", "too_many_pages")]);
    assert_eq!(asked(&server).await.len(), 3);
}

#[tokio::test]
async fn a_page_that_robots_txt_forbids_is_never_asked_for() {
    let rules = "User-agent: *\nDisallow: /prices";
    let server = server(&[("/robots.txt", rules), ("/prices", "1"), ("/list", "2")]).await;
    let delivery = fetch(shop(&server.uri(), LIMITS, &[("a", "/prices"), ("b", "/list")])).await;
    assert_eq!((failures(&delivery), pages(&delivery)), (vec![("a", "robots_forbid")], vec!["/list"]));
    assert_eq!(all_asked(&server).await, ["/robots.txt", "/list"]);
}

#[tokio::test]
async fn nothing_is_read_from_a_host_whose_robots_txt_fails() {
    let server = server(&[("/a", "1"), ("/b", "2")]).await;
    answer(&server, "/robots.txt", ResponseTemplate::new(503)).await;
    let delivery = fetch(shop(&server.uri(), LIMITS, &[("a", "/a"), ("b", "/b")])).await;
    assert_eq!(failures(&delivery), [("a", "robots_broken"), ("b", "robots_broken")]);
    assert_eq!(all_asked(&server).await, ["/robots.txt"; 4]);
}

#[tokio::test]
async fn a_page_for_people_in_the_place_of_robots_txt_forbids_nothing() {
    let server = server(&[("/robots.txt", "<!doctype html>\nUser-agent: *\nDisallow: /"), ("/a", "1")]).await;
    let delivery = fetch(shop(&server.uri(), LIMITS, &[("a", "/a")])).await;
    assert_eq!((failures(&delivery), pages(&delivery)), (vec![], vec!["/a"]));
}

#[tokio::test]
async fn a_host_without_robots_txt_may_be_read_and_is_told_who_reads() {
    let server = server(&[("/a", "1")]).await;
    let shop = shop(&server.uri(), LIMITS, &[("a", "/a")]);
    let client = Client::with_first_wait(Some("ops@example.org"), Duration::from_millis(1)).expect("a client can be made");
    let delivery = fetch_provider(&client, &Turns::default(), &shop.archive(), shop, &|_, _, _| {}).await;
    assert_eq!((failures(&delivery), pages(&delivery)), (vec![], vec!["/a"]));
    let requests = server.received_requests().await.expect("the server keeps its requests");
    assert_eq!(requests.len(), 2);
    for request in requests {
        let agent = request.headers["user-agent"].to_str().expect("it is text");
        assert!(agent.starts_with("gpuledger/") && agent.contains("contact: ops@example.org"), "{agent}");
    }
}

#[tokio::test]
async fn an_answer_that_drips_is_timed_out() {
    let (server, asked) = rough_server(|_, stream| {
        send(stream, "content-length: 1000\r\n", b"")?;
        for _ in 0..40 {
            stream.write_all(b".")?;
            std::thread::sleep(Duration::from_millis(100));
        }
        Ok(())
    });
    let delivery = fetch(shop(&server, "timeout_s = 1\nmax_body_mib = 1\nmax_pages = 20", &[("a", "/a")])).await;
    assert_eq!(failures(&delivery), [("a", "timed_out")]);
    assert_eq!(count(&asked), 4);
    assert!(delivery.seconds < 10.0, "it took {} s", delivery.seconds);
}

#[tokio::test]
async fn a_host_that_cannot_be_reached_is_tried_once_for_all_its_scopes() {
    let nobody = nobody();
    let shop = shop(&nobody, LIMITS, &[("a", "/a"), ("b", "/b")]);
    let told = AtomicUsize::new(0);
    let progress = |_, _, _| {
        told.fetch_add(1, Ordering::SeqCst);
    };
    let delivery = fetch_provider(&client(), &Turns::default(), &shop.archive(), shop, &progress).await;
    assert_eq!(failures(&delivery), [("a", "not_connected"), ("b", "not_connected")]);
    assert_eq!(delivery.failures[0].reason.replace("`/a`", "`/b`"), delivery.failures[1].reason);
    assert!(delivery.failures[0].reason.contains("127.0.0.1"));
    // Progress is told after each page, had or not.
    assert_eq!(told.into_inner(), 2);
    assert!(delivery.traffic.requests <= 3, "{:?}", delivery.traffic);
}

#[tokio::test]
async fn a_host_that_cannot_be_reached_costs_no_page_of_another_host() {
    let server = server(&[("/b", "b 1.25")]).await;
    let here = format!("http://localhost:{}/b", server.address().port());
    let delivery = fetch(shop(&nobody(), LIMITS, &[("a", "/a"), ("b", &here)])).await;
    assert_eq!((failures(&delivery), pages(&delivery)), (vec![("a", "not_connected")], vec![here.as_str()]));
}

#[tokio::test]
async fn two_requests_to_one_host_are_never_under_way_at_once() {
    let (now, most) = (AtomicUsize::new(0), Arc::new(AtomicUsize::new(0)));
    let seen = Arc::clone(&most);
    let (server, asked) = rough_server(move |_, stream| {
        seen.fetch_max(now.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
        std::thread::sleep(Duration::from_millis(20));
        now.fetch_sub(1, Ordering::SeqCst);
        send(stream, "content-length: 1\r\n", b"1")
    });
    let (client, turns) = (client(), Turns::default());
    let tasks: tokio::task::JoinSet<Delivery> = (0..4)
        .map(|number| {
            let (client, turns, page) = (client.clone(), turns.clone(), format!("/{number}"));
            let shop = shop(&server, LIMITS, &[("a", &page), ("b", &format!("{page}/b"))]);
            async move { fetch_provider(&client, &turns, &shop.archive(), shop, &|_, _, _| {}).await }
        })
        .collect();
    let deliveries = tasks.join_all().await;
    assert!(deliveries.iter().all(|delivery| delivery.pages.len() == 2));
    assert_eq!((count(&asked), most.load(Ordering::SeqCst)), (8, 1));
}

#[tokio::test]
async fn the_archive_holds_the_bytes_that_came() {
    let server = server(&[("/a", "a 1.25\nnext /b"), ("/b", "b 2.50")]).await;
    let shop = shop(&server.uri(), LIMITS, &[("all", "/a")]);
    let delivery = fetch(shop).await;
    assert_eq!(bodies(shop, &delivery), [b"a 1.25\nnext /b".as_slice(), b"b 2.50"]);
    for receipt in &delivery.pages {
        let page = shop.archive().page(receipt).expect("it is archived");
        assert_eq!((receipt.sha256.as_str(), page.sha256.as_str()), (sha256(&page.body).as_str(), receipt.sha256.as_str()));
        assert_eq!((receipt.http_status, receipt.bytes), (Some(200), u64::try_from(page.body.len()).expect("it is small")));
        assert_eq!(receipt.url, format!("{}{}", server.uri(), page.name));
        assert_eq!(shop.archive().read(&receipt.sha256).expect("it is kept"), page.body);
    }
}
