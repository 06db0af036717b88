//! The tap on Streamable HTTP: between the plainest possible client and the built-in server, and between redial's
//! own client and servers that break.

use crate::support::cli::{program, redial};
use crate::support::fake_http::FakeHttp;
use crate::support::served::{Served, Transport, http, request, tap};
use crate::support::until;
use redial::journal::Outcome;
use redial::recording::Recording;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command};

struct Tap {
    child: Child,
    address: SocketAddr,
    out: PathBuf,
}

impl Tap {
    fn start(upstream: &str, out: &Path) -> Tap {
        let mut command = program();
        command
            .args(["record", "--http", upstream, "--listen", "127.0.0.1:0", "--out"])
            .arg(out)
            .env("XDG_STATE_HOME", out.parent().unwrap().join("state"));
        let (child, address) = tap(&mut command);
        Tap { child, address, out: out.to_owned() }
    }

    fn url(&self) -> String {
        format!("http://{}/mcp", self.address)
    }

    fn end(mut self) -> Recording {
        Command::new("kill").args(["-TERM", &self.child.id().to_string()]).status().unwrap();
        let status = until("the tap ends", || self.child.try_wait().unwrap());
        assert_eq!(status.code(), Some(0));
        Recording::with_entries(&self.out).unwrap()
    }
}

impl Drop for Tap {
    fn drop(&mut self) {
        self.child.kill().ok();
        self.child.wait().ok();
    }
}

fn ledger(dir: &Path) -> String {
    dir.join("ledger.db").to_str().unwrap().to_owned()
}

const ARGS: &str = r#"{"request_id":"r-1","title":"a","body":"b"}"#;

#[test]
fn both_eras_pass_and_are_recorded() {
    let dir = tempfile::tempdir().unwrap();
    let served = Served::start(Transport::Http, &["tickets", "--ledger", &ledger(dir.path())]);
    for era in ["modern", "legacy"] {
        let out = dir.path().join(format!("{era}.jsonl"));
        let tap = Tap::start(&format!("http://{}/mcp", served.address()), &out);
        let call = redial(&[
            "call",
            "create_ticket",
            "--args",
            ARGS,
            "--era",
            era,
            "--json",
            "--http",
            &tap.url(),
        ]);
        assert_eq!((call.exit, call.text(&["outcome"]).as_str()), (0, "ok"), "{}", call.all());
        let r = tap.end();
        let c = r.session.calls.values().next().unwrap();
        assert_eq!((c.outcome(), c.request_id.as_deref()), (Some(Outcome::Ok), Some("r-1")));
        assert_eq!(c.args.as_deref(), Some(ARGS));
        assert_eq!(r.session.server.as_ref().unwrap().name, "ticket-ledger");
        let text = std::fs::read_to_string(&out).unwrap();
        assert!(era != "legacy" || text.contains("session-1"));
        assert_eq!(r.bad_lines().count(), 0);
    }
}

#[test]
fn two_clients_with_the_same_ids_are_told_apart_and_session_ids_stay_secret() {
    let dir = tempfile::tempdir().unwrap();
    let served = Served::start(Transport::Http, &["tickets", "--ledger", &ledger(dir.path())]);
    let tap = Tap::start(&format!("http://{}/mcp", served.address()), &dir.path().join("r.jsonl"));
    let open = || {
        let body = request(1, "initialize", crate::support::served::INITIALIZE);
        let reply = post(tap.address, "", &body);
        let head = reply.head.clone();
        let id = head.lines().find_map(|l| {
            l.to_ascii_lowercase().strip_prefix("mcp-session-id: ").map(str::to_owned)
        });
        id.unwrap()
    };
    let (a, b) = (open(), open());
    for (n, id) in [&a, &b].into_iter().enumerate() {
        let params = format!(
            r#"{{"name":"create_ticket","arguments":{{"request_id":"r-{n}","title":"t","body":"b"}}}}"#
        );
        let reply = post(
            tap.address,
            &format!("Mcp-Session-Id: {id}\r\n"),
            &request(2, "tools/call", &params),
        );
        assert_eq!(reply.status, 200, "{}", reply.body);
    }
    // A status of the server's passes as it is.
    let lost = post(tap.address, "Mcp-Session-Id: nobody\r\n", &request(3, "tools/list", "{}"));
    assert_eq!(lost.status, 404);
    assert!(lost.body.contains("Session not found"));
    let out = tap.out.clone();
    let r = tap.end();
    let calls: Vec<_> = r
        .session
        .calls
        .values()
        .map(|c| (c.generation, c.request_id.clone().unwrap(), c.outcome()))
        .collect();
    assert_eq!(calls, [(1, "r-0".into(), Some(Outcome::Ok)), (2, "r-1".into(), Some(Outcome::Ok))]);
    let text = std::fs::read_to_string(out).unwrap();
    assert!(!text.contains(&a) && !text.contains(&b) && text.contains("session-2"));
}

fn post(address: SocketAddr, headers: &str, body: &str) -> crate::support::served::Reply {
    http(
        address,
        &format!(
            "POST /mcp HTTP/1.1\r\nHost: {address}\r\nContent-Type: application/json\r\nAccept: application/json, text/event-stream\r\n{headers}Content-Length: {}\r\nConnection: close\r\n\r\n{body}",
            body.len()
        ),
    )
    .unwrap()
}

#[test]
fn strangers_are_refused_and_a_dead_upstream_is_said_to_be_dead() {
    let dir = tempfile::tempdir().unwrap();
    let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let tap = Tap::start(&format!("http://127.0.0.1:{port}/mcp"), &dir.path().join("r.jsonl"));
    let dead = post(
        tap.address,
        "",
        &request(1, "tools/call", r#"{"name":"t","arguments":{"request_id":"r"}}"#),
    );
    assert_eq!(dead.status, 502);
    assert!(
        dead.body.contains("can't be reached") && dead.body.contains(&port.to_string()),
        "{}",
        dead.body
    );
    for (host, origin) in [("evil.example", ""), ("127.0.0.1", "Origin: https://evil.example\r\n")]
    {
        let r = http(tap.address, &format!("POST /mcp HTTP/1.1\r\nHost: {host}\r\n{origin}Content-Length: 2\r\nConnection: close\r\n\r\n{{}}")).unwrap();
        assert_eq!(r.status, 403);
    }
    let r = tap.end();
    let c = r.session.calls.values().next().unwrap();
    assert_eq!(c.outcome(), Some(Outcome::NotSent));
    let bad = redial(&[
        "record",
        "--http",
        "http://127.0.0.1:1/mcp",
        "--listen",
        "0.0.0.0:0",
        "--out",
        dir.path().join("x").to_str().unwrap(),
    ]);
    assert_eq!(bad.exit, 2);
    assert!(bad.all().contains("--listen-anywhere"));
}

/// A server that answers one POST with events, each only when it is told to.
fn slow_events()
-> (SocketAddr, std::sync::mpsc::Sender<&'static str>, std::thread::JoinHandle<String>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let (tell, told) = std::sync::mpsc::channel::<&'static str>();
    let served = std::thread::spawn(move || {
        let (mut s, _) = listener.accept().unwrap();
        let mut got = Vec::new();
        let mut buf = [0; 4096];
        while !got.ends_with(b"}") {
            let n = s.read(&mut buf).unwrap();
            got.extend_from_slice(&buf[..n]);
        }
        s.write_all(b"HTTP/1.1 200 Fine\r\nContent-Type: text/event-stream\r\nX-Odd: 1\r\nTransfer-Encoding: chunked\r\n\r\n").unwrap();
        for text in told {
            s.write_all(format!("{:x}\r\n{text}\r\n", text.len()).as_bytes()).unwrap();
        }
        s.write_all(b"0\r\n\r\n").unwrap();
        String::from_utf8(got).unwrap()
    });
    (address, tell, served)
}

#[test]
fn events_pass_one_by_one_and_headers_as_they_are() {
    let dir = tempfile::tempdir().unwrap();
    let (upstream, tell, served) = slow_events();
    let tap = Tap::start(&format!("http://{upstream}/mcp"), &dir.path().join("r.jsonl"));
    let mut s = TcpStream::connect(tap.address).unwrap();
    let body = request(1, "tools/call", r#"{"name":"t","arguments":{}}"#);
    write!(s, "POST /mcp?q=1 HTTP/1.1\r\nHost: 127.0.0.1\r\nx-CUSTOM: Kept\r\nAuthorization: Bearer s3cr3t-token-9\r\nConnection: close, X-Hop\r\nX-Hop: gone\r\nContent-Length: {}\r\n\r\n{body}", body.len()).unwrap();
    let mut seen = String::new();
    let mut buf = [0; 4096];
    for text in [
        "id: 1\ndata: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/progress\"}\n\n",
        ": alive\n\n",
        "data: {\"jsonrpc\":\"2.0\",\"id\":1,\ndata: \"result\":{}}\n\n",
    ] {
        tell.send(text).unwrap();
        // It is here before the next one is even written.
        let before = seen.len();
        while !seen[before..].contains(text.trim_end()) {
            let n = s.read(&mut buf).unwrap();
            assert!(n > 0, "{seen}");
            seen.push_str(&String::from_utf8_lossy(&buf[..n]));
        }
    }
    drop(tell);
    s.read_to_string(&mut seen).unwrap();
    let got = served.join().unwrap();
    let lower = got.to_ascii_lowercase();
    assert!(
        got.starts_with("POST /mcp?q=1 HTTP/1.1")
            && lower.contains("x-custom: kept")
            && got.contains("s3cr3t-token-9"),
        "{got}"
    );
    assert!(
        !lower.contains("x-hop")
            && lower.contains(&format!("host: {upstream}"))
            && got.ends_with(&body),
        "{got}"
    );
    assert!(seen.to_ascii_lowercase().contains("x-odd: 1"));
    let out = tap.out.clone();
    let r = tap.end();
    assert_eq!(r.session.calls.values().next().unwrap().outcome(), Some(Outcome::Ok));
    let text = std::fs::read_to_string(out).unwrap();
    assert!(!text.contains("s3cr3t") && text.contains("[redacted]") && text.contains("Kept"));
    assert!(text.contains(r#""what":"end""#));
}

#[test]
fn what_breaks_upstream_breaks_here_and_is_told() {
    let dir = tempfile::tempdir().unwrap();
    // Accepts the call, says that an answer comes, and dies.
    let fake = FakeHttp::start(|_, stream, _| {
        stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 500\r\n\r\n{\"jsonrpc\"").unwrap();
    });
    let tap = Tap::start(&fake.url(), &dir.path().join("r.jsonl"));
    let call = redial(&["call", "create_ticket", "--args", ARGS, "--json", "--http", &tap.url()]);
    assert_eq!(call.text(&["outcome"]), "unknown", "{}", call.all());
    let r = tap.end();
    let c = r.session.calls.values().next().unwrap();
    assert_eq!(c.outcome(), Some(Outcome::Unknown));
    assert_eq!(fake.calls.load(std::sync::atomic::Ordering::SeqCst), 1, "the tap repeats nothing");
}

#[test]
fn a_message_that_comes_slowly_passes_as_it_comes_and_is_recorded_whole() {
    let dir = tempfile::tempdir().unwrap();
    let served = Served::start(Transport::Http, &["tickets", "--ledger", &ledger(dir.path())]);
    let tap = Tap::start(&format!("http://{}/mcp", served.address()), &dir.path().join("r.jsonl"));
    let params = format!(
        r#"{{"name":"create_ticket","arguments":{ARGS},"_meta":{{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{{}}}}}}"#
    );
    let body = request(1, "tools/call", &params);
    for chunked in [false, true] {
        let mut s = TcpStream::connect(tap.address).unwrap();
        let length = if chunked {
            "Transfer-Encoding: chunked".into()
        } else {
            format!("Content-Length: {}", body.len())
        };
        write!(s, "POST /mcp HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\nAccept: application/json\r\nMCP-Protocol-Version: 2026-07-28\r\nMcp-Method: tools/call\r\nMcp-Name: create_ticket\r\nConnection: close\r\n{length}\r\n\r\n").unwrap();
        let parts = body.len() / 3 + 1;
        for (n, piece) in body.as_bytes().chunks(parts).enumerate() {
            if n > 0 {
                // The piece before is in the file already: it was passed on before this one is written.
                until("the piece is down", || {
                    let text = std::fs::read_to_string(&tap.out).ok()?;
                    (text.matches(r#""kind":"part""#).count() >= n).then_some(())
                });
            }
            if chunked {
                write!(s, "{:x}\r\n{}\r\n", piece.len(), std::str::from_utf8(piece).unwrap())
                    .unwrap();
            } else {
                s.write_all(piece).unwrap();
            }
        }
        if chunked {
            s.write_all(b"0\r\n\r\n").unwrap();
        }
        let mut answer = String::new();
        s.read_to_string(&mut answer).unwrap();
        assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    }
    let r = tap.end();
    let calls: Vec<_> =
        r.session.calls.values().map(|c| (c.args.clone().unwrap(), c.outcome())).collect();
    assert_eq!(calls, [(ARGS.to_owned(), Some(Outcome::Ok)), (ARGS.to_owned(), Some(Outcome::Ok))]);
}
