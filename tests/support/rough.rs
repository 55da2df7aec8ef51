//! Servers on this machine for what a well-behaved one does not do, answer by answer, and an address where nobody is.

use std::io::{self, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};

/// Paths a hand-written server was asked for, robots.txt apart.
pub type Asked = Arc<Mutex<Vec<String>>>;

/// A server for what a well-behaved one does not do. It has no robots.txt, closes after every answer and ends after 64.
pub fn rough_server(answer: impl Fn(usize, &mut TcpStream) -> io::Result<()> + Send + Sync + 'static) -> (String, Asked) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port is free");
    let address = format!("http://{}", listener.local_addr().expect("it has an address"));
    let (asked, answer) = (Asked::default(), Arc::new(answer));
    let seen = Arc::clone(&asked);
    std::thread::spawn(move || {
        for stream in listener.incoming().take(64) {
            let (answer, seen) = (Arc::clone(&answer), Arc::clone(&seen));
            std::thread::spawn(move || -> io::Result<()> {
                let mut stream = stream?;
                let path = path_of(&mut stream)?;
                if path == "/robots.txt" {
                    return stream.write_all(b"HTTP/1.1 404 Not Found\r\ncontent-length: 0\r\nconnection: close\r\n\r\n");
                }
                let tries = {
                    let mut seen = seen.lock().expect("nobody panics while holding this lock");
                    seen.push(path);
                    seen.len()
                };
                answer(tries, &mut stream)
            });
        }
    });
    (address, asked)
}

fn path_of(stream: &mut TcpStream) -> io::Result<String> {
    let (mut head, mut byte) = (Vec::new(), [0]);
    while !head.ends_with(b"\r\n\r\n") && head.len() < 8_192 {
        stream.read_exact(&mut byte)?;
        head.push(byte[0]);
    }
    let head = String::from_utf8_lossy(&head).into_owned();
    Ok(head.split(' ').nth(1).map_or_else(String::new, str::to_owned))
}

pub fn send(stream: &mut TcpStream, headers: &str, body: &[u8]) -> io::Result<()> {
    stream.write_all(format!("HTTP/1.1 200 OK\r\nconnection: close\r\n{headers}\r\n").as_bytes())?;
    stream.write_all(body)
}

pub fn count(asked: &Asked) -> usize {
    asked.lock().expect("nobody panics while holding this lock").len()
}

pub fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut packed = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    packed.write_all(bytes).and_then(|()| packed.finish()).expect("memory takes it")
}

/// A server's address where nothing listens.
pub fn nobody() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port is free");
    format!("http://{}", listener.local_addr().expect("it has an address"))
}
