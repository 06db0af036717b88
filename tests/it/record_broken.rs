//! The tap on HTTP completes nothing: what breaks off before its end, on either side, is broken for the other side too.

use crate::support::cli::program;
use crate::support::served::{request, tap};
use crate::support::until;
use redial::journal::Outcome;
use redial::recording::Recording;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::path::PathBuf;
use std::process::{Child, Command};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

const CALL: &str = r#"{"name":"charge","arguments":{}}"#;

/// How many requests came whole, and how many broke off.
#[derive(Default)]
struct Counts {
    whole: AtomicUsize,
    broken: AtomicUsize,
}

/// The plainest server: reads one request a connection, counts it, and gives `answer` to a whole one.
fn server(answer: &'static str) -> (SocketAddr, Arc<Counts>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let counts = Arc::new(Counts::default());
    let of = counts.clone();
    std::thread::spawn(move || {
        for mut s in listener.incoming().flatten() {
            let of = of.clone();
            std::thread::spawn(move || match came_whole(&mut BufReader::new(&s)) {
                Some(true) => {
                    of.whole.fetch_add(1, Ordering::SeqCst);
                    s.write_all(answer.as_bytes()).ok();
                }
                _ => drop(of.broken.fetch_add(1, Ordering::SeqCst)),
            });
        }
    });
    (address, counts)
}

fn came_whole(from: &mut impl BufRead) -> Option<bool> {
    let mut length = None;
    loop {
        let mut line = String::new();
        from.read_line(&mut line).ok().filter(|n| *n > 0)?;
        let lower = line.trim_end().to_ascii_lowercase();
        if lower.is_empty() {
            break;
        }
        length = lower.strip_prefix("content-length: ").map(|n| n.parse().unwrap()).or(length);
    }
    if let Some(length) = length {
        return Some(from.read_exact(&mut vec![0; length]).is_ok());
    }
    loop {
        let mut size = String::new();
        from.read_line(&mut size).ok().filter(|n| *n > 0)?;
        let size = usize::from_str_radix(size.trim(), 16).ok()?;
        from.read_exact(&mut vec![0; size + 2]).ok()?;
        if size == 0 {
            return Some(true);
        }
    }
}

struct Tap {
    child: Child,
    address: SocketAddr,
    out: PathBuf,
    _folder: tempfile::TempDir,
}

impl Tap {
    fn before(upstream: SocketAddr) -> Tap {
        let folder = tempfile::tempdir().unwrap();
        let out = folder.path().join("r.jsonl");
        let mut command = program();
        let url = format!("http://{upstream}/mcp");
        command.args(["record", "--http", &url, "--listen", "127.0.0.1:0", "--out"]).arg(&out);
        let (child, address) = tap(command.env("XDG_STATE_HOME", folder.path()));
        Tap { child, address, out, _folder: folder }
    }

    fn has(&self, text: &str) {
        until("the recording has it", || {
            std::fs::read_to_string(&self.out).ok()?.contains(text).then_some(())
        });
    }
}

impl Drop for Tap {
    fn drop(&mut self) {
        self.child.kill().ok();
        self.child.wait().ok();
    }
}

/// A request that has all of its message and not its end.
fn unended(version: &str, chunked: bool) -> String {
    let body = request(1, "tools/call", CALL);
    let head = format!("POST /mcp {version}\r\nHost: 127.0.0.1\r\nContent-Type: application/json");
    match chunked {
        true => {
            format!("{head}\r\nTransfer-Encoding: chunked\r\n\r\n{:x}\r\n{body}\r\n", body.len())
        }
        false => format!("{head}\r\nContent-Length: {}\r\n\r\n{body}", body.len() + 1),
    }
}

#[test]
fn a_request_that_its_client_broke_off_is_never_completed() {
    let (upstream, counts) = server("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n");
    for (version, chunked) in [("HTTP/1.1", true), ("HTTP/1.1", false), ("HTTP/1.0", false)] {
        for at_once in [true, false] {
            let tap = Tap::before(upstream);
            let mut s = TcpStream::connect(tap.address).unwrap();
            s.write_all(unended(version, chunked).as_bytes()).unwrap();
            if !at_once {
                // It is on its way to the server.
                tap.has(r#""kind":"part""#);
            }
            drop(s);
            tap.has("the client broke its request off");
            let r = Recording::open(&tap.out).unwrap();
            let call = r.session.calls.values().next().unwrap();
            let outcome = call.outcome().unwrap();
            assert!(matches!(outcome, Outcome::NotSent | Outcome::Unknown), "{outcome:?}");
        }
    }
    assert_eq!(counts.whole.load(Ordering::SeqCst), 0, "no request was whole");
}

#[test]
fn a_client_that_stops_in_the_middle_and_listens_is_told() {
    let (upstream, counts) = server("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n");
    let tap = Tap::before(upstream);
    for chunked in [true, false] {
        let mut s = TcpStream::connect(tap.address).unwrap();
        s.write_all(unended("HTTP/1.1", chunked).as_bytes()).unwrap();
        s.shutdown(Shutdown::Write).unwrap();
        let mut said = String::new();
        s.read_to_string(&mut said).ok();
        assert!(said.is_empty() || said.starts_with("HTTP/1.1 400"), "{said}");
    }
    assert_eq!(counts.whole.load(Ordering::SeqCst), 0);
}

#[test]
fn a_tap_that_is_ended_in_the_middle_of_a_request_ends_it_nowhere() {
    let (upstream, counts) = server("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n");
    for _ in 0..3 {
        let mut tap = Tap::before(upstream);
        let mut s = TcpStream::connect(tap.address).unwrap();
        s.write_all(unended("HTTP/1.1", true).as_bytes()).unwrap();
        tap.has(r#""kind":"part""#);
        let before = counts.broken.load(Ordering::SeqCst);
        Command::new("kill").args(["-TERM", &tap.child.id().to_string()]).status().unwrap();
        until("the tap ends", || tap.child.try_wait().unwrap());
        until("the server has met the end", || {
            (counts.broken.load(Ordering::SeqCst) > before).then_some(())
        });
    }
    assert_eq!(counts.whole.load(Ordering::SeqCst), 0);
}

#[test]
fn an_answer_that_broke_off_is_broken_for_the_client_too() {
    const JSON: &str = r#"{"jsonrpc":"2.0","id":1,"result":{}}"#;
    let chunk = format!("{:x}\r\n{JSON}\r\n", JSON.len());
    let head = "HTTP/1.1 200 OK\r\nContent-Type: application/json";
    let stream = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream";
    let event = format!("data: {JSON}\n\n");
    for (version, answer) in [
        ("HTTP/1.1", format!("{head}\r\nTransfer-Encoding: chunked\r\n\r\n{chunk}")),
        ("HTTP/1.1", format!("{head}\r\nContent-Length: {}\r\n\r\n{JSON}", JSON.len() + 1)),
        ("HTTP/1.0", format!("{head}\r\nTransfer-Encoding: chunked\r\n\r\n{chunk}")),
        ("HTTP/1.0", format!("{head}\r\nContent-Length: {}\r\n\r\n{JSON}", JSON.len() + 1)),
        (
            "HTTP/1.1",
            format!(
                "{stream}\r\nTransfer-Encoding: chunked\r\n\r\n{:x}\r\n{event}\r\n",
                event.len()
            ),
        ),
    ] {
        let (upstream, _) = server(String::leak(answer));
        let tap = Tap::before(upstream);
        let body = request(1, "tools/call", CALL);
        let mut s = TcpStream::connect(tap.address).unwrap();
        write!(
            s,
            "POST /mcp {version}\r\nHost: 127.0.0.1\r\nContent-Length: {}\r\n\r\n{body}",
            body.len()
        )
        .unwrap();
        let mut said = String::new();
        s.read_to_string(&mut said).ok();
        let (head, got) = said.split_once("\r\n\r\n").unwrap_or_default();
        let length = head.to_ascii_lowercase();
        let length = length.split_once("content-length: ").map(|(_, l)| l.lines().next().unwrap());
        let whole = match length {
            Some(n) => got.len() >= n.parse::<usize>().unwrap(),
            None => version == "HTTP/1.0" || got.ends_with("0\r\n\r\n"),
        };
        assert!(said.is_empty() || head.contains(" 502 ") || !whole, "{version}: {said}");
    }
}
