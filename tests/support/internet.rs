//! An internet of the tests' own: a proxy that stands for every host of the web, with certificates that a test makes up, so
//! that the program itself can be run, with its real providers and their real addresses, against whatever a test answers.

use std::io::{self, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::process::Command;
use std::sync::{Arc, Mutex};

use gpuledger_scrapers::recordings;
use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair};
use rustls::pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};
use rustls::{ServerConfig, ServerConnection, StreamOwned};
use tempfile::TempDir;

/// A request as it came.
#[derive(Debug, Clone)]
pub struct Request {
    pub host: String,
    /// Path and query.
    pub path: String,
    /// Everything before the body.
    pub head: String,
}

pub struct Internet {
    proxy: String,
    folder: TempDir,
    asked: Arc<Mutex<Vec<Request>>>,
}

/// An internet that answers as told. robots.txt is missing everywhere.
pub fn internet(answer: impl Fn(&Request) -> Vec<u8> + Send + Sync + 'static) -> Internet {
    let ca_key = KeyPair::generate().expect("a key can be made");
    let mut ca = CertificateParams::new(Vec::new()).expect("it needs no names");
    ca.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let folder = tempfile::tempdir().expect("there is room for a folder");
    let root = ca.self_signed(&ca_key).expect("it can be signed");
    std::fs::write(folder.path().join("root.pem"), root.pem()).expect("there is room for a file");
    let issuer = Arc::new(Issuer::new(ca, ca_key));
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port is free");
    let proxy = format!("http://{}", listener.local_addr().expect("it has an address"));
    let (asked, answer) = (Arc::new(Mutex::new(Vec::new())), Arc::new(answer));
    let seen = Arc::clone(&asked);
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let (issuer, answer, seen) = (Arc::clone(&issuer), Arc::clone(&answer), Arc::clone(&seen));
            std::thread::spawn(move || -> io::Result<()> {
                let mut stream = stream?;
                let head = head_of(&mut stream)?;
                let host = head.split([' ', ':']).nth(1).unwrap_or_default().to_owned();
                stream.write_all(b"HTTP/1.1 200 OK\r\n\r\n")?;
                let mut stream = secured(stream, &host, &issuer);
                let head = head_of(&mut stream)?;
                let path = head.split(' ').nth(1).unwrap_or_default().to_owned();
                let request = Request { host, path, head };
                let said = if request.path == "/robots.txt" {
                    reply(404, "", b"")
                } else {
                    seen.lock().expect("nobody panics while holding this lock").push(request.clone());
                    answer(&request)
                };
                stream.write_all(&said)?;
                stream.conn.send_close_notify();
                stream.flush()
            });
        }
    });
    Internet { proxy, folder, asked }
}

impl Internet {
    /// Lets a program have this internet and no other.
    pub fn lead(&self, command: &mut Command) {
        for name in ["HTTP_PROXY", "ALL_PROXY", "NO_PROXY", "http_proxy", "https_proxy", "all_proxy", "no_proxy", "SSL_CERT_DIR"]
        {
            command.env_remove(name);
        }
        command.env("HTTPS_PROXY", &self.proxy).env("SSL_CERT_FILE", self.folder.path().join("root.pem"));
    }

    /// What was asked for so far, robots.txt apart.
    pub fn asked(&self) -> Vec<Request> {
        self.asked.lock().expect("nobody panics while holding this lock").clone()
    }
}

/// A whole answer.
pub fn reply(status: u16, headers: &str, body: &[u8]) -> Vec<u8> {
    let mut said =
        format!("HTTP/1.1 {status} Said\r\nconnection: close\r\ncontent-length: {}\r\n{headers}\r\n", body.len()).into_bytes();
    said.extend_from_slice(body);
    said
}

/// What a provider's newest recording has for an address; for anything else a refusal, which nobody tries again.
pub fn recorded(provider: &str, request: &Request) -> Vec<u8> {
    let recording = recordings::newest(provider).expect("it has a recording");
    let url = format!("https://{}{}", request.host, request.path);
    match recording.pages.iter().find(|page| page.url == url) {
        Some(page) => reply(200, "", &page.body),
        None => reply(403, "", b"not in the recording"),
    }
}

fn secured(stream: TcpStream, host: &str, issuer: &Issuer<'_, KeyPair>) -> StreamOwned<ServerConnection, TcpStream> {
    let key = KeyPair::generate().expect("a key can be made");
    let certificate = CertificateParams::new(vec![host.to_owned()]).expect("it is a name").signed_by(&key, issuer);
    let chain = vec![certificate.expect("it can be signed").der().clone()];
    let key = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(key.serialize_der()));
    let config = ServerConfig::builder_with_provider(Arc::new(rustls::crypto::aws_lc_rs::default_provider()))
        .with_safe_default_protocol_versions()
        .expect("the versions go with the provider")
        .with_no_client_auth()
        .with_single_cert(chain, key)
        .expect("the key is that of the certificate");
    StreamOwned::new(ServerConnection::new(Arc::new(config)).expect("the settings hold"), stream)
}

fn head_of(stream: &mut impl Read) -> io::Result<String> {
    let (mut head, mut byte) = (Vec::new(), [0]);
    while !head.ends_with(b"\r\n\r\n") && head.len() < 65_536 {
        stream.read_exact(&mut byte)?;
        head.push(byte[0]);
    }
    Ok(String::from_utf8_lossy(&head).into_owned())
}
