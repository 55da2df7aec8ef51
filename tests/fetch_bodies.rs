//! Bodies that are not what their headers say, connections that end in the middle, and walls in the place of pages.

use std::io::{self, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::time::Duration;

use crate::support::rough::{count, gzip, rough_server, send};
use crate::support::shop::{LIMITS, Shop, shop};
use gpuledger::fetch::{Client, Turns, fetch_provider};
use gpuledger::gather::{Delivery, gather};
use wiremock::matchers::path;
use wiremock::{Mock, MockServer, ResponseTemplate};

async fn fetch(shop: &'static Shop) -> Delivery {
    let client = Client::with_first_wait(None, Duration::from_millis(1)).expect("a client can be made");
    fetch_provider(&client, &Turns::default(), &shop.archive(), shop, &|_, _, _| {}).await
}

fn failures(delivery: &Delivery) -> Vec<(&str, &str)> {
    delivery.failures.iter().map(|failure| (failure.scope.as_str(), failure.code.as_str())).collect()
}

fn bodies(shop: &Shop, delivery: &Delivery) -> Vec<Vec<u8>> {
    delivery.pages.iter().map(|receipt| shop.archive().page(receipt).expect("it is archived").body).collect()
}

async fn answer(server: &MockServer, at: &str, response: ResponseTemplate) {
    Mock::given(path(at)).respond_with(response).mount(server).await;
}

fn text(body: impl Into<String>) -> ResponseTemplate {
    ResponseTemplate::new(200).set_body_string(body)
}

#[tokio::test]
async fn a_body_that_is_not_packed_as_its_header_says_is_no_page() {
    let server = MockServer::start().await;
    let plain = "Standard_ND96isr_H100_v5,98.32\n".repeat(50);
    let packed = gzip(plain.as_bytes());
    let labelled =
        |encoding: &str, body: &[u8]| ResponseTemplate::new(200).insert_header("content-encoding", encoding).set_body_bytes(body);
    answer(&server, "/plain", labelled("gzip", plain.as_bytes())).await;
    answer(&server, "/brotli", labelled("br", &packed)).await;
    answer(&server, "/zstd", labelled("zstd", &packed)).await;
    let twice = gzip(&packed);
    answer(&server, "/other", labelled("gzip", &twice[..twice.len() / 2])).await;
    let pages = [("a", "/plain"), ("b", "/brotli"), ("c", "/zstd"), ("d", "/other")];
    let delivery = fetch(shop(&server.uri(), LIMITS, &pages)).await;
    assert_eq!(failures(&delivery), ["a", "b", "c", "d"].map(|scope| (scope, "broken_off")));
    assert!(delivery.pages.is_empty());
}

#[tokio::test]
async fn a_packed_body_without_a_header_is_kept_as_it_came_and_not_read_as_text() {
    let server = MockServer::start().await;
    let packed = gzip("next /b\n".repeat(50).as_bytes());
    answer(&server, "/a", ResponseTemplate::new(200).set_body_bytes(packed.as_slice())).await;
    let shop = shop(&server.uri(), LIMITS, &[("a", "/a")]);
    let delivery = fetch(shop).await;
    assert_eq!(failures(&delivery), [("a", "wrong_format")]);
    assert!(delivery.failures[0].reason.contains("gzip"), "{}", delivery.failures[0].reason);
    assert_eq!(bodies(shop, &delivery), [packed]);
}

#[tokio::test]
async fn a_part_of_a_page_that_nobody_asked_for_is_no_page() {
    let server = MockServer::start().await;
    for status in [201, 202, 203, 204, 206] {
        answer(&server, &format!("/{status}"), ResponseTemplate::new(status).set_body_string("a 1.25")).await;
        let delivery = fetch(shop(&server.uri(), LIMITS, &[("a", &format!("/{status}"))])).await;
        assert_eq!((failures(&delivery), delivery.pages.len()), (vec![("a", "http_status")], 0), "{status}");
    }
}

#[tokio::test]
async fn a_connection_that_is_reset_in_the_middle_is_tried_again() {
    // What is closed with bytes of the request unread is reset.
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port is free");
    let address = format!("http://{}", listener.local_addr().expect("it has an address"));
    std::thread::spawn(move || {
        let mut tries = 0;
        for stream in listener.incoming().take(8) {
            let mut stream = stream.expect("somebody calls");
            let line = line_of(&mut stream).expect("it asks");
            if line.contains("/robots.txt") {
                let _ = stream.read(&mut [0; 4_096]);
                let _ = stream.write_all(b"HTTP/1.1 404 None\r\ncontent-length: 0\r\nconnection: close\r\n\r\n");
                continue;
            }
            tries += 1;
            if tries < 3 {
                let _ = send(&mut stream, "content-length: 1000\r\n", b"a 1.");
            } else {
                let _ = stream.read(&mut [0; 4_096]);
                let _ = send(&mut stream, "content-length: 6\r\n", b"a 1.25");
            }
        }
    });
    let shop = shop(&address, LIMITS, &[("a", "/a")]);
    let delivery = fetch(shop).await;
    assert_eq!((failures(&delivery), bodies(shop, &delivery)), (vec![], vec![b"a 1.25".to_vec()]));
    assert_eq!(delivery.traffic.retries, 2);
}

fn line_of(stream: &mut TcpStream) -> io::Result<String> {
    let (mut line, mut byte) = (Vec::new(), [0]);
    while !line.ends_with(b"\n") && line.len() < 8_192 {
        stream.read_exact(&mut byte)?;
        line.push(byte[0]);
    }
    Ok(String::from_utf8_lossy(&line).into_owned())
}

#[tokio::test]
async fn bytes_beyond_the_announced_length_get_into_no_page() {
    // The connection stays open, so what is too much would stand before the next answer.
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port is free");
    let address = format!("http://{}", listener.local_addr().expect("it has an address"));
    std::thread::spawn(move || {
        for stream in listener.incoming().take(8) {
            std::thread::spawn(move || -> io::Result<()> {
                let mut stream = stream?;
                loop {
                    let mut line = line_of(&mut stream)?;
                    let path = line.split(' ').nth(1).unwrap_or_default().to_owned();
                    while line.trim() != "" {
                        line = line_of(&mut stream)?;
                    }
                    stream.write_all(match path.as_str() {
                        "/a" => {
                            b"HTTP/1.1 200 OK\r\ncontent-length: 7\r\n\r\nnext /bHTTP/1.1 200 OK\r\ncontent-length: 4\r\n\r\n9.99"
                        }
                        "/b" => b"HTTP/1.1 200 OK\r\ncontent-length: 6\r\n\r\nb 2.50",
                        _ => b"HTTP/1.1 404 None\r\ncontent-length: 0\r\n\r\n".as_slice(),
                    })?;
                }
            });
        }
    });
    let shop = shop(&address, LIMITS, &[("a", "/a")]);
    let delivery = fetch(shop).await;
    assert_eq!((failures(&delivery), bodies(shop, &delivery)), (vec![], vec![b"next /b".to_vec(), b"b 2.50".to_vec()]));
}

#[tokio::test]
async fn a_wall_in_the_place_of_a_page_is_tried_again_kept_and_named() {
    for (wall, words) in [
        ("<!DOCTYPE html><html><head><title>Just a moment...</title></head></html>", "just a moment"),
        (r#"{"Response":"Error","Message":"over your rate limit","Data":{}}"#, "rate limit"),
    ] {
        let server = MockServer::start().await;
        answer(&server, "/a", text(wall)).await;
        answer(&server, "/b", text("b 2.50")).await;
        let shop = shop(&server.uri(), LIMITS, &[("a", "/a"), ("b", "/b")]);
        let delivery = fetch(shop).await;
        assert_eq!(failures(&delivery), [("a", "turned_away")]);
        let reason = delivery.failures[0].reason.clone();
        assert!(reason.starts_with("page `/a`, tried 4 times, answered 200 with no page but"), "{reason}");
        assert!(reason.contains(words) && reason.contains(&delivery.turned_away[0].sha256), "{reason}");
        assert_eq!(shop.archive().page(&delivery.turned_away[0]).expect("it is archived").body, wall.as_bytes());
        assert_eq!(bodies(shop, &delivery), [b"b 2.50"]);
        let gathered = gather(delivery, &shop.archive());
        let coverage: Vec<_> = gathered.coverage().map(|scope| (scope.scope, scope.status.word())).collect();
        assert_eq!(coverage, [("a".to_owned(), "failed"), ("b".to_owned(), "complete")]);
    }
}

#[tokio::test]
async fn a_wall_that_goes_away_costs_nothing_and_its_wait_is_kept() {
    let server = MockServer::start().await;
    let wall = text("Too many requests").insert_header("retry-after", "1");
    Mock::given(path("/a")).respond_with(wall).up_to_n_times(1).with_priority(1).mount(&server).await;
    answer(&server, "/a", text("a 1.25")).await;
    let shop = shop(&server.uri(), LIMITS, &[("a", "/a")]);
    let delivery = fetch(shop).await;
    assert_eq!((failures(&delivery), bodies(shop, &delivery)), (vec![], vec![b"a 1.25".to_vec()]));
    assert!(delivery.seconds >= 1.0, "it took {} s", delivery.seconds);
}

#[tokio::test]
async fn what_a_server_writes_does_nothing_to_a_terminal() {
    let server = MockServer::start().await;
    answer(&server, "/a", text("next http://evil.example/\u{1b}[2J\u{202e}\u{7}")).await;
    let delivery = fetch(shop(&server.uri(), LIMITS, &[("a", "/a")])).await;
    let reason = &delivery.failures[0].reason;
    assert!(reason.contains("\\u{1b}[2J\\u{202e}\\u{7}") && !reason.contains(char::is_control), "{reason}");
}

#[tokio::test]
async fn a_page_that_is_larger_than_it_may_be_is_left_however_it_comes() {
    let (server, asked) = rough_server(|_, stream| {
        send(stream, "transfer-encoding: chunked\r\n", b"")?;
        let chunk = vec![b'1'; 64 * 1_024];
        // Without end: the reader leaves, and writing to it fails.
        loop {
            stream.write_all(format!("{:x}\r\n", chunk.len()).as_bytes())?;
            stream.write_all(&chunk)?;
            stream.write_all(b"\r\n")?;
        }
    });
    let delivery = fetch(shop(&server, LIMITS, &[("a", "/a")])).await;
    assert_eq!((failures(&delivery), count(&asked)), (vec![("a", "too_large")], 1));
    // The limit, and what may wait for the worker that finds it passed: 18 chunks of 256 KiB.
    assert!(delivery.traffic.bytes < 8 * 1_024 * 1_024, "{:?}", delivery.traffic);
}
