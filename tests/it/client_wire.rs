//! What an answer may be wrapped in, broken by, or taken for: compressed bodies, statuses around answers, lines that
//! are no JSON, answers that are somebody else's.

use crate::support::cli::command;
use crate::support::fake_http::{FakeHttp, Request, answer, stream};
use flate2::Compression;
use flate2::write::GzEncoder;
use redial::client::{Client, Endpoint, Era, Settings};
use redial::journal::{Call, Outcome};
use redial::json::raw;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::time::{Duration, Instant};

fn gzip(text: &[u8]) -> Vec<u8> {
    let mut e = GzEncoder::new(Vec::new(), Compression::default());
    e.write_all(text).unwrap();
    e.finish().unwrap()
}

/// What became of one call with the request_id `r-1`, and how long that took.
async fn one(url: String, limit_s: f64) -> (Client, Call, Duration) {
    let client = Client::start(Endpoint::Http { url, headers: vec![] }, Settings::default());
    client.ready().await.unwrap();
    let began = Instant::now();
    let id = client.call("create_ticket", r#"{"request_id":"r-1"}"#, Some(limit_s)).await.unwrap();
    let call = client.settled(id).await.unwrap();
    (client, call, began.elapsed())
}

fn result_of(request: &Request) -> String {
    let id = raw::get(&request.body, "id").unwrap();
    format!(
        r#"{{"jsonrpc":"2.0","id":{id},"result":{{"content":[{{"type":"text","text":"made"}}]}}}}"#
    )
}

#[tokio::test(flavor = "multi_thread")]
async fn compressed_answers_are_read_and_what_cannot_be_read_is_named() {
    type Body = fn(&Request) -> Vec<u8>;
    let json: Body = |r| gzip(result_of(r).as_bytes());
    let events: Body = |r| gzip(format!("data: {}\n\n", result_of(r)).as_bytes());
    let short: Body = |r| {
        let mut whole = gzip(result_of(r).as_bytes());
        whole.truncate(30);
        whole
    };
    let plain: Body = |r| result_of(r).into_bytes();
    let (j, e) = ("content-type: application/json", "content-type: text/event-stream");
    for (kind, coding, body, outcome, why) in [
        (j, "gzip", json, Outcome::Ok, "answered"),
        (e, "GZIP", events, Outcome::Ok, "answered"),
        (j, "identity", plain, Outcome::Ok, "answered"),
        (j, "gzip", short, Outcome::Unknown, "its gzip ends in the middle"),
        (j, "gzip", plain, Outcome::Unknown, "damaged"),
        (j, "dcb", json, Outcome::Unknown, "Content-Encoding: dcb, which redial can't read"),
        (e, "dcb", events, Outcome::Unknown, "Content-Encoding: dcb, which redial can't read"),
    ] {
        let fake = FakeHttp::start(move |request, stream, _| {
            let headers = format!("{kind}\r\ncontent-encoding: {coding}");
            answer(stream, "200 OK", &headers, &body(request));
        });
        let (client, call, _) = one(fake.url(), 20.0).await;
        client.close().await;
        let s = call.settled.unwrap();
        assert_eq!(s.outcome, outcome, "{coding}: {}", s.why);
        assert!(s.why.contains(why), "{coding}: {}", s.why);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_handshake_is_read_through_its_compression() {
    let fake = FakeHttp::any(|method, request, stream, _| {
        let result = match method {
            "initialize" => r#"{"protocolVersion":"2025-11-25","capabilities":{}}"#,
            "tools/list" => r#"{"tools":[{"name":"create_ticket"}]}"#,
            _ => return false,
        };
        let id = raw::get(&request.body, "id").unwrap();
        let body = format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{result}}}"#);
        let headers = "content-type: application/json\r\ncontent-encoding: gzip";
        answer(stream, "200 OK", headers, &gzip(body.as_bytes()));
        true
    });
    let url = fake.url();
    let client = Client::start(Endpoint::Http { url, headers: vec![] }, Settings::default());
    client.ready().await.unwrap();
    assert_eq!(client.journal().read(|s| s.tools.tools.len()), 1);
    client.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_answer_counts_under_any_status() {
    for (status, code) in [
        ("401 Unauthorized", 401),
        ("403 Forbidden", 403),
        ("429 Too Many Requests", 429),
        ("503 Service Unavailable", 503),
    ] {
        let fake = FakeHttp::start(move |request, stream, _| {
            let headers = "content-type: application/json";
            answer(stream, status, headers, result_of(request).as_bytes());
        });
        let (client, call, _) = one(fake.url(), 20.0).await;
        client.close().await;
        let s = call.settled.unwrap();
        assert_eq!(s.outcome, Outcome::Ok, "{status}: {}", s.why);
        assert!(s.why.contains(&format!("HTTP {code}")), "{}", s.why);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_answer_that_names_another_request_is_not_ours() {
    let fake = FakeHttp::start(|request, s, _| {
        let id = raw::get(&request.body, "id").unwrap();
        stream(
            s,
            &format!(
                "data: {{\"jsonrpc\":\"2.0\",\"id\":{id},\"result\":{{\"content\":[],\"structuredContent\":{{\"request_id\":\"agent-77\"}}}}}}\n\n"
            ),
        );
    });
    let (client, call, _) = one(fake.url(), 20.0).await;
    client.close().await;
    let s = call.settled.unwrap();
    assert!(s.outcome == Outcome::Unknown && s.why.contains("agent-77"), "{}", s.why);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_line_that_is_no_json_ends_its_call_long_before_the_limit() {
    for (format, why) in [
        (r#"{"jsonrpc":"2.0","id":%s,"result":{"content":[],"x":NaN}}"#, "NaN at byte"),
        (r#"INFO: {"jsonrpc":"2.0","id":%s,"result":{"content":[]}}"#, "other text stands before"),
        (r#"{"jsonrpc":"2.0","id":%s,"result":{"#, "no JSON"),
    ] {
        let script = format!(
            r#"while IFS= read -r line; do
            id=$(printf '%s' "$line" | sed -n 's/.*"id":\([0-9]*\).*/\1/p')
            case "$line" in
            *'"initialize"'*) printf '{{"jsonrpc":"2.0","id":%s,"result":{{"protocolVersion":"2025-11-25","capabilities":{{}}}}}}\n' "$id" ;;
            *'"tools/list"'*) printf '{{"jsonrpc":"2.0","id":%s,"result":{{"tools":[]}}}}\n' "$id" ;;
            *'"tools/call"'*) printf '{format}\n' "$id" ;;
            esac
        done"#
        );
        let command = ["/bin/sh", "-c", &script].map(String::from).to_vec();
        let settings = Settings { era: Era::Legacy, ..Settings::default() };
        let endpoint = Endpoint::Stdio { command, env: vec![], cwd: None };
        let client = Client::start(endpoint, settings);
        client.ready().await.unwrap();
        let id = client.call("t", "{}", Some(60.0)).await.unwrap();
        let call = tokio::time::timeout(Duration::from_secs(20), client.settled(id)).await;
        let s = call.unwrap().unwrap().settled.unwrap();
        assert!(s.outcome == Outcome::Unknown && s.why.contains(why), "{format}: {}", s.why);
        client.close().await;
    }
}

/// Serves one connection after the other; its GET stream has no end but the client's.
fn one_at_a_time(listener: TcpListener) {
    for stream in listener.incoming() {
        let Ok(mut stream) = stream else { return };
        let mut reader = BufReader::new(stream.try_clone().unwrap());
        let (mut length, mut head) = (0, String::new());
        let mut line = String::new();
        while reader.read_line(&mut line).is_ok_and(|n| n > 2) {
            if let Some(n) = line.to_ascii_lowercase().strip_prefix("content-length:") {
                length = n.trim().parse().unwrap();
            }
            head.push_str(&line);
            line.clear();
        }
        if head.starts_with("GET") {
            crate::support::fake_http::stream(&mut stream, ": open\n\n");
            while stream.write_all(b": ping\n\n").is_ok() {
                std::thread::sleep(Duration::from_millis(20));
            }
            continue;
        }
        let mut body = vec![0; length];
        if reader.read_exact(&mut body).is_err() {
            continue;
        }
        let body = String::from_utf8(body).unwrap();
        let result = match raw::get_str(&body, "method").unwrap_or_default().as_str() {
            "initialize" => r#"{"protocolVersion":"2025-11-25","capabilities":{}}"#,
            "tools/list" => r#"{"tools":[{"name":"create_ticket"}]}"#,
            _ => r#"{"content":[{"type":"text","text":"made"}]}"#,
        };
        reply(&mut stream, &body, result);
    }
}

fn reply(stream: &mut TcpStream, body: &str, result: &str) {
    match raw::get(body, "id") {
        None => answer(stream, "202 Accepted", "", b""),
        Some(id) => {
            let text = format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{result}}}"#);
            answer(stream, "200 OK", "content-type: application/json", text.as_bytes());
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn our_own_stream_is_named_and_closed_where_it_holds_a_call_up() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/mcp", listener.local_addr().unwrap());
    std::thread::spawn(move || one_at_a_time(listener));
    let settings = Settings { era: Era::Legacy, listen: true, ..Settings::default() };
    let client = Client::start(Endpoint::Http { url, headers: vec![] }, settings);
    client.ready().await.unwrap();
    let id = client.call("create_ticket", r#"{"request_id":"r-1"}"#, Some(5.0)).await.unwrap();
    let named = client.journal().wait(|s| {
        let c = s.calls.get(&id)?;
        c.live.remark.clone().filter(|r| r.contains("own GET stream is open since"))
    });
    tokio::time::timeout(Duration::from_secs(4), named).await.unwrap();
    let call = client.settled(id).await.unwrap();
    assert_eq!((call.outcome(), call.sent), (Some(Outcome::Ok), 1), "{call:?}");
    let remark = call.live.remark.unwrap_or_default();
    assert!(remark.contains("closed its own GET stream"), "{remark}");
    client.close().await;
}

#[test]
fn a_proxy_leads_to_other_hosts_and_is_named_and_never_to_this_machine() {
    let proxy = FakeHttp::start(|_, _, _| {});
    let (there, here) = ("http://mcp.intra.example/mcp", proxy.url());
    let with_secret = format!("http://user:hunter2@{}", proxy.address);
    let tools = |url: &str, vars: &[(&str, &str)]| {
        let mut c = command(&["tools", "--era", "legacy", "--http", url]);
        for name in ["http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY", "no_proxy", "NO_PROXY"] {
            c.env_remove(name);
        }
        c.envs(vars.iter().copied());
        crate::support::cli::Ran::from(c.output().unwrap())
    };
    let ran = tools(there, &[("http_proxy", &with_secret)]);
    ran.expect(0, &["create_ticket", "through the proxy http://…@127.0.0.1"]);
    assert!(!ran.all().contains("hunter2"), "{}", ran.all());
    assert!(proxy.count("tools/list") == 1);
    tools(&here, &[("http_proxy", "http://127.0.0.1:9")]).expect(0, &["create_ticket"]);
    // Nothing listens there: not a bare failure to connect, and the server is not blamed.
    let ran = tools(there, &[("ALL_PROXY", "http://127.0.0.1:9")]);
    ran.expect(5, &["the proxy http://127.0.0.1:9 (ALL_PROXY)", "no_proxy"]);
    let ran = tools(there, &[("http_proxy", &with_secret), ("NO_PROXY", ".example")]);
    assert!(ran.exit == 5 && !ran.all().contains("proxy"), "{}", ran.all());
}
