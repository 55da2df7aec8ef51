//! How long a bulk file takes from a server to the archive, beside inflating the same bytes and hashing them,
//! each alone and doing nothing with the result.
//!
//! `GPULEDGER_BULK_AWS` names the price list. It is compressed once and served from memory by a server on this machine; what
//! is fetched is inflated, hashed, sieved and archived as in a night.

#![expect(clippy::print_stdout, reason = "the table is what the bench is for")]

use std::hint::black_box;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpListener;
use std::sync::Arc;
use std::time::{Duration, Instant};

use gpuledger::archive::Archive;
use gpuledger::fetch::{Client, Turns, fetch_pages};
use gpuledger_scrapers::contract::PageRequest;
use gpuledger_scrapers::find;
use sha2::{Digest as _, Sha256};

/// Every measurement is the fastest of this many.
const ROUNDS: usize = 5;

fn main() {
    let Some(path) = std::env::var_os("GPULEDGER_BULK_AWS") else {
        println!("left out: GPULEDGER_BULK_AWS does not name a price list");
        return;
    };
    let whole = std::fs::read(path).expect("the list reads");
    let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
    gzip.write_all(&whole).expect("it is compressed");
    let (bytes, packed) = (whole.len(), Arc::new(gzip.finish().expect("it is compressed")));
    let server = serve(Arc::clone(&packed));
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().expect("a runtime");
    let (mut inflating, mut hashing, mut fetching) = (Duration::MAX, Duration::MAX, Duration::MAX);
    for _ in 0..ROUNDS {
        let started = Instant::now();
        let mut decoder = flate2::read::GzDecoder::new(packed.as_slice());
        let mut chunk = vec![0; 1 << 16];
        while decoder.read(black_box(&mut chunk)).expect("it inflates") > 0 {}
        inflating = inflating.min(started.elapsed());

        let started = Instant::now();
        black_box(Sha256::digest(black_box(&whole)));
        hashing = hashing.min(started.elapsed());

        let folder = tempfile::tempdir().expect("there is room for a folder");
        let (archive, client) = (Archive::below(folder.path()), Client::new(None).expect("a client"));
        let scraper = find("aws").expect("the scraper is there");
        let page = PageRequest::get("prices", "all", format!("{server}/index.csv"));
        let started = Instant::now();
        let delivery = runtime.block_on(fetch_pages(&client, &Turns::default(), &archive, scraper, vec![page], &|_, _, _| {}));
        fetching = fetching.min(started.elapsed());
        assert!(delivery.failures.is_empty(), "{:?}", delivery.failures);
        assert_eq!(delivery.pages[0].whole.as_ref().map(|whole| whole.bytes), u64::try_from(bytes).ok());
    }
    println!("{:.0} MB as {:.0} MB of gzip", bytes as f64 / 1e6, packed.len() as f64 / 1e6);
    println!("inflating alone                         {:>7.0} ms", inflating.as_secs_f64() * 1e3);
    println!("SHA-256 of the whole alone              {:>7.0} ms", hashing.as_secs_f64() * 1e3);
    println!("fetching, hashing, sieving, archiving   {:>7.0} ms", fetching.as_secs_f64() * 1e3);
    let times = |of: Duration| fetching.as_secs_f64() / of.as_secs_f64();
    println!("{:.2} times as long as inflating, {:.2} times as long as hashing", times(inflating), times(hashing));
}

/// A server that has no robots.txt and one file.
fn serve(packed: Arc<Vec<u8>>) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port is free");
    let address = format!("http://{}", listener.local_addr().expect("it has an address"));
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.expect("a client connects");
            let mut lines = BufReader::new(stream.try_clone().expect("the stream is shared")).lines();
            let asked = lines.next().and_then(Result::ok).unwrap_or_default();
            while lines.next().is_some_and(|line| line.is_ok_and(|line| !line.is_empty())) {}
            let sent = if asked.contains("robots.txt") {
                stream.write_all(b"HTTP/1.1 404 Not Found\r\ncontent-length: 0\r\nconnection: close\r\n\r\n")
            } else {
                let head = format!(
                    "HTTP/1.1 200 OK\r\ncontent-encoding: gzip\r\ncontent-length: {}\r\nconnection: close\r\n\r\n",
                    packed.len()
                );
                stream.write_all(head.as_bytes()).and_then(|()| stream.write_all(&packed))
            };
            sent.expect("the client takes it");
        }
    });
    address
}
