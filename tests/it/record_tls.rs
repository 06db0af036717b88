//! The tap before a server that speaks TLS: what is asked passes over a real handshake, and a certificate that
//! nobody trusts is a 502 that says so. (The certificate and its throw-away key were made for this test alone.)

use crate::support::cli::program;
use crate::support::served::tap;
use crate::support::until;
use redial::journal::Outcome;
use redial::recording::Recording;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use std::sync::Arc;

fn fixture(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/tls").join(name)
}

/// Answers every POST with a result for its id, over TLS, until the test ends.
fn server() -> SocketAddr {
    let cert = CertificateDer::from_pem_file(fixture("leaf.pem")).unwrap();
    let key = PrivateKeyDer::from_pem_file(fixture("leaf.key")).unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = rustls::ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![cert], key)
        .unwrap();
    let config = Arc::new(config);
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let config = config.clone();
            std::thread::spawn(move || answer(stream, config));
        }
    });
    address
}

fn answer(stream: TcpStream, config: Arc<rustls::ServerConfig>) -> Option<()> {
    let tls = rustls::ServerConnection::new(config).ok()?;
    let mut stream = rustls::StreamOwned::new(tls, stream);
    let mut got = Vec::new();
    let mut buf = [0; 4096];
    let body = loop {
        let n = stream.read(&mut buf).ok().filter(|n| *n > 0)?;
        got.extend_from_slice(&buf[..n]);
        let text = String::from_utf8_lossy(&got).into_owned();
        let (head, body) = match text.split_once("\r\n\r\n") {
            Some((h, b)) => (h.to_ascii_lowercase(), b.to_owned()),
            None => continue,
        };
        let length = head.lines().find_map(|l| l.strip_prefix("content-length: ")?.parse().ok());
        if body.len() >= length.unwrap_or(0usize) {
            break body;
        }
    };
    let id = redial::json::raw::get(&body, "id").unwrap_or("null");
    let json = format!(
        r#"{{"jsonrpc":"2.0","id":{id},"result":{{"content":[{{"type":"text","text":"over TLS"}}]}}}}"#
    );
    let reply = format!(
        "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n{json}",
        json.len()
    );
    stream.write_all(reply.as_bytes()).ok()?;
    stream.flush().ok()
}

struct Tap(Child, SocketAddr);

impl Tap {
    fn start(upstream: SocketAddr, trust: &Path, out: &Path) -> Tap {
        let mut command = program();
        command
            .args(["record", "--http", &format!("https://localhost:{}/mcp", upstream.port())])
            .args(["--listen", "127.0.0.1:0", "--out"])
            .arg(out)
            .env("SSL_CERT_FILE", trust)
            .env_remove("SSL_CERT_DIR")
            .env("XDG_STATE_HOME", out.parent().unwrap().join("state"));
        let (child, address) = tap(&mut command);
        Tap(child, address)
    }

    fn post(&self) -> String {
        let body = r#"{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"t","arguments":{"request_id":"r-1"}}}"#;
        let mut s = TcpStream::connect(self.1).unwrap();
        let head = format!(
            "POST /mcp HTTP/1.1\r\nHost: {}\r\nContent-Type: application/json\r\nConnection: close\r\nContent-Length: {}\r\n\r\n",
            self.1,
            body.len()
        );
        s.write_all(format!("{head}{body}").as_bytes()).unwrap();
        let mut reply = String::new();
        s.read_to_string(&mut reply).unwrap();
        reply
    }

    fn end(mut self) {
        Command::new("kill").args(["-TERM", &self.0.id().to_string()]).status().unwrap();
        until("the tap ends", || self.0.try_wait().unwrap());
    }
}

#[test]
fn a_call_passes_over_tls_and_an_untrusted_certificate_is_a_502_that_says_so() {
    let dir = tempfile::tempdir().unwrap();
    let upstream = server();
    let out = dir.path().join("trusted.jsonl");
    let tap = Tap::start(upstream, &fixture("ca.pem"), &out);
    let reply = tap.post();
    assert!(reply.starts_with("HTTP/1.1 200") && reply.contains("over TLS"), "{reply}");
    tap.end();
    let r = Recording::open(&out).unwrap();
    let outcomes: Vec<_> = r.session.calls.values().map(|c| c.outcome()).collect();
    assert_eq!(outcomes, [Some(Outcome::Ok)]);

    // Trusts only itself, which is no authority.
    let out = dir.path().join("untrusted.jsonl");
    let tap = Tap::start(upstream, &fixture("leaf.pem"), &out);
    let reply = tap.post();
    assert!(reply.starts_with("HTTP/1.1 502") && reply.contains("ertificate"), "{reply}");
    tap.end();
    let r = Recording::open(&out).unwrap();
    let call = r.session.calls.values().next().unwrap();
    assert!(matches!(call.outcome(), Some(Outcome::NotSent | Outcome::Unknown)), "{call:?}");
}

/// Lets every CONNECT through to `to`, whatever name it asks for.
fn tunnel(to: SocketAddr) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        for mut here in listener.incoming().flatten() {
            let mut head = Vec::new();
            let mut byte = [0];
            while !head.ends_with(b"\r\n\r\n") && here.read(&mut byte).is_ok_and(|n| n > 0) {
                head.extend_from_slice(&byte);
            }
            let (Ok(mut there), true) = (TcpStream::connect(to), head.starts_with(b"CONNECT "))
            else {
                continue;
            };
            here.write_all(b"HTTP/1.1 200 OK\r\n\r\n").unwrap();
            let (mut back, mut forth) = (here.try_clone().unwrap(), there.try_clone().unwrap());
            std::thread::spawn(move || std::io::copy(&mut back, &mut forth));
            std::thread::spawn(move || std::io::copy(&mut there, &mut here));
        }
    });
    address
}

#[test]
fn a_certificate_that_came_through_a_proxy_is_not_the_proxy_s_fault() {
    let tools = |proxy: SocketAddr| {
        let mut command = program();
        for name in ["HTTPS_PROXY", "all_proxy", "ALL_PROXY", "no_proxy", "NO_PROXY"] {
            command.env_remove(name);
        }
        command.args(["tools", "--http", "https://mcp.example/mcp", "--start-timeout", "20"]);
        command.env("https_proxy", format!("http://user:hunter2@{proxy}"));
        command.env("SSL_CERT_FILE", fixture("ca.pem")).env_remove("SSL_CERT_DIR");
        let out = command.output().unwrap();
        let said = String::from_utf8_lossy(&out.stderr).into_owned();
        assert!(out.status.code() == Some(5) && !said.contains("hunter2"), "{said}");
        said
    };
    let said = tools(tunnel(server()));
    assert!(said.contains("certificate") && !said.contains("refuses the way"), "{said}");
    let closed = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    assert!(tools(closed).contains("it can't be reached, or refuses the way"));
}
