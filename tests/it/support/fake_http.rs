//! A Streamable HTTP server that breaks on command: raw bytes on a real socket, so that it can do what no
//! HTTP library would. Answers the handshake properly unless the test does; a `tools/call` is counted.

use redial::json::raw;
use std::collections::HashMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

/// One request as it came in.
pub struct Request {
    pub method: String,
    pub path: String,
    pub headers: HashMap<String, String>,
    pub body: String,
}

/// Gets each request with its JSON-RPC method (or HTTP method) and the how-manieth of that method it is, from 1;
/// `false` leaves it to the proper server below.
type OnAny = dyn Fn(&str, &Request, &mut TcpStream, usize) -> bool + Send + Sync;

pub struct FakeHttp {
    pub address: SocketAddr,
    pub seen: Arc<Mutex<Vec<String>>>,
    /// How many `tools/call` came in: what a person asked for, never more.
    pub calls: Arc<AtomicUsize>,
    stop: Arc<AtomicBool>,
}

impl FakeHttp {
    /// `on_call` gets each `tools/call` with its number from 1 and writes the raw answer.
    pub fn start(
        on_call: impl Fn(&Request, &mut TcpStream, usize) + Send + Sync + 'static,
    ) -> FakeHttp {
        FakeHttp::any(move |method, request, stream, n| {
            if method == "tools/call" {
                on_call(request, stream, n);
            }
            method == "tools/call"
        })
    }

    /// `on_any` gets every request.
    pub fn any(
        on_any: impl Fn(&str, &Request, &mut TcpStream, usize) -> bool + Send + Sync + 'static,
    ) -> FakeHttp {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let fake = FakeHttp {
            address: listener.local_addr().unwrap(),
            seen: Arc::default(),
            calls: Arc::default(),
            stop: Arc::default(),
        };
        let (seen, calls, stop) = (fake.seen.clone(), fake.calls.clone(), fake.stop.clone());
        let on_any: Arc<OnAny> = Arc::new(on_any);
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                if stop.load(Ordering::SeqCst) {
                    return;
                }
                let (seen, calls, on_any) = (seen.clone(), calls.clone(), on_any.clone());
                std::thread::spawn(move || serve(stream, &seen, &calls, &*on_any));
            }
        });
        fake
    }

    pub fn url(&self) -> String {
        format!("http://{}/mcp", self.address)
    }

    /// How often a method came in.
    pub fn count(&self, method: &str) -> usize {
        self.seen.lock().unwrap().iter().filter(|m| *m == method).count()
    }

    /// No further connection is taken: the port refuses, as a dead server's does.
    pub fn die(&self) {
        self.stop.store(true, Ordering::SeqCst);
        // What is in the backlog when the listener goes is reset, which is not the same: it has to be gone.
        let gone = || TcpStream::connect(self.address).is_err();
        for _ in 0..1_000 {
            if gone() {
                return;
            }
            std::thread::sleep(std::time::Duration::from_millis(2));
        }
    }
}

impl Drop for FakeHttp {
    fn drop(&mut self) {
        self.die();
    }
}

fn serve(mut stream: TcpStream, seen: &Mutex<Vec<String>>, calls: &AtomicUsize, on_any: &OnAny) {
    let Some(request) = read(&stream) else { return };
    let method = raw::get_str(&request.body, "method").unwrap_or_else(|| request.method.clone());
    let n = {
        let mut seen = seen.lock().unwrap();
        seen.push(method.clone());
        seen.iter().filter(|m| **m == method).count()
    };
    if method == "tools/call" {
        calls.fetch_add(1, Ordering::SeqCst);
    }
    if on_any(&method, &request, &mut stream, n) {
        return;
    }
    let id = raw::get(&request.body, "id").unwrap_or("null");
    match method.as_str() {
        "server/discover" => json(
            &mut stream,
            "200 OK",
            &format!(
                r#"{{"jsonrpc":"2.0","id":{id},"error":{{"code":-32601,"message":"Method not found"}}}}"#
            ),
        ),
        "initialize" => {
            let body = format!(
                r#"{{"jsonrpc":"2.0","id":{id},"result":{{"protocolVersion":"2025-11-25","capabilities":{{"tools":{{}}}},"serverInfo":{{"name":"fake","version":"1"}}}}}}"#
            );
            let session = format!("content-type: application/json\r\nmcp-session-id: s{n}-session");
            answer(&mut stream, "200 OK", &session, body.as_bytes());
        }
        "tools/list" => json(
            &mut stream,
            "200 OK",
            &format!(
                r#"{{"jsonrpc":"2.0","id":{id},"result":{{"tools":[{{"name":"create_ticket","inputSchema":{{"type":"object","properties":{{"request_id":{{}}}}}}}}]}}}}"#
            ),
        ),
        "GET" => answer(&mut stream, "405 Method Not Allowed", "", b""),
        _ => answer(&mut stream, "202 Accepted", "", b""),
    }
}

fn read(stream: &TcpStream) -> Option<Request> {
    let mut reader = BufReader::new(stream);
    let mut line = String::new();
    reader.read_line(&mut line).ok()?;
    let mut words = line.split_whitespace();
    let (method, path) = (words.next()?.to_owned(), words.next()?.to_owned());
    let mut headers = HashMap::new();
    loop {
        line.clear();
        reader.read_line(&mut line).ok()?;
        match line.trim_end().split_once(':') {
            Some((k, v)) => headers.insert(k.to_ascii_lowercase(), v.trim().to_owned()),
            None => break,
        };
    }
    let length = headers.get("content-length").and_then(|l| l.parse().ok()).unwrap_or(0);
    let mut body = vec![0; length];
    reader.read_exact(&mut body).ok()?;
    Some(Request { method, path, headers, body: String::from_utf8(body).ok()? })
}

/// A whole answer.
pub fn answer(stream: &mut TcpStream, status: &str, headers: &str, body: &[u8]) {
    let gap = if headers.is_empty() { "" } else { "\r\n" };
    let head = format!(
        "HTTP/1.1 {status}\r\n{headers}{gap}content-length: {}\r\nconnection: close\r\n\r\n",
        body.len()
    );
    // The client may have gone away: that is its right.
    stream.write_all(head.as_bytes()).and_then(|()| stream.write_all(body)).ok();
}

pub fn json(stream: &mut TcpStream, status: &str, body: &str) {
    answer(stream, status, "content-type: application/json", body.as_bytes());
}

/// The proper answer to a call.
pub fn ok(request: &Request, stream: &mut TcpStream, text: &str) {
    let id = raw::get(&request.body, "id").unwrap();
    json(
        stream,
        "200 OK",
        &format!(
            r#"{{"jsonrpc":"2.0","id":{id},"result":{{"content":[{{"type":"text","text":"{text}"}}]}}}}"#
        ),
    );
}

/// The head of a stream of events, and what stands in it so far; the connection stays open.
pub fn stream(stream: &mut TcpStream, events: &str) {
    let head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n";
    stream.write_all(head.as_bytes()).and_then(|()| stream.write_all(events.as_bytes())).ok();
}

/// A result for `request`.
pub fn result(request: &Request, stream: &mut TcpStream, result: &str) {
    let id = raw::get(&request.body, "id").unwrap();
    json(stream, "200 OK", &format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{result}}}"#));
}

/// A server of 2026-07-28 with these tools; `on_any` goes first.
pub fn modern(
    tools: &'static str,
    on_any: impl Fn(&str, &Request, &mut TcpStream, usize) -> bool + Send + Sync + 'static,
) -> FakeHttp {
    FakeHttp::any(move |method, request, out, n| {
        if on_any(method, request, out, n) {
            return true;
        }
        match method {
            "server/discover" => {
                let r = r#"{"resultType":"complete","supportedVersions":["2026-07-28"],"capabilities":{"tools":{"listChanged":true}},"ttlMs":0,"cacheScope":"private"}"#;
                result(request, out, r);
            }
            "tools/list" => {
                let r = format!(
                    r#"{{"resultType":"complete","tools":{tools},"ttlMs":0,"cacheScope":"private"}}"#
                );
                result(request, out, &r);
            }
            _ => return false,
        }
        true
    })
}
