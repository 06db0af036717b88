//! Finding out the era: a verdict from every kind of answer, none from an outage, and none for ever.

use crate::support::fake_http::{FakeHttp, answer, json, modern, ok, result, stream};
use redial::client::{Client, Endpoint, Era, Settings};
use redial::journal::Outcome;
use redial::json::raw;
use std::sync::atomic::{AtomicBool, Ordering};

fn start(fake: &FakeHttp, era: Era) -> Client {
    let settings = Settings { era, probe_limit_s: 0.5, start_limit_s: 20.0, ..Settings::default() };
    Client::start(Endpoint::Http { url: fake.url(), headers: vec![] }, settings)
}

/// A server that answers the probe so; the rest of it is an older one.
fn probed(status: &'static str, error: &'static str) -> FakeHttp {
    FakeHttp::any(move |method, request, out, _| {
        if method == "server/discover" {
            let id = raw::get(&request.body, "id").unwrap();
            json(out, status, &error.replace("ID", id));
        }
        method == "server/discover"
    })
}

#[tokio::test(flavor = "multi_thread")]
async fn any_refusal_of_the_probe_leads_to_initialize() {
    // Measured answers of real servers, and some that are merely possible.
    for (status, body) in [
        (
            "400 Bad Request",
            r#"{"jsonrpc":"2.0","id":"server-error","error":{"code":-32600,"message":"Bad Request: Missing session ID"}}"#,
        ),
        (
            "400 Bad Request",
            r#"{"jsonrpc":"2.0","error":{"code":-32000,"message":"Bad Request: Server not initialized"},"id":null}"#,
        ),
        ("200 OK", r#"{"jsonrpc":"2.0","id":ID,"error":{"code":-32601,"message":"no"}}"#),
        ("200 OK", r#"{"jsonrpc":"2.0","id":ID,"error":{"code":-32602,"message":"no"}}"#),
        (
            "200 OK",
            r#"{"jsonrpc":"2.0","id":ID,"error":{"code":-32022,"message":"no","data":{"supported":["2025-11-25"]}}}"#,
        ),
        ("200 OK", r#"{"jsonrpc":"2.0","id":ID,"result":{}}"#),
        ("200 OK", r#"{"jsonrpc":"2.0","id":ID,"result":null}"#),
        ("404 Not Found", "<html>nothing</html>"),
        ("405 Method Not Allowed", ""),
    ] {
        let fake = probed(status, body);
        let client = start(&fake, Era::Auto);
        client.ready().await.unwrap_or_else(|e| panic!("{status} {body}: {e}"));
        assert_eq!(client.journal().read(|s| s.protocol.clone()).as_deref(), Some("2025-11-25"));
        assert_eq!(fake.count("initialize"), 1);
        client.close().await;
        let client = start(&fake, Era::Modern);
        let error = client.ready().await.unwrap_err();
        assert!(error.what.contains("does not speak 2026-07-28"), "{error}");
        client.close().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_outage_or_a_refusal_of_credentials_is_no_verdict() {
    for (status, body, word) in [
        ("503 Service Unavailable", "", "HTTP 503"),
        (
            "500 Internal Server Error",
            r#"{"jsonrpc":"2.0","id":ID,"error":{"code":-32601,"message":"no"}}"#,
            "HTTP 500",
        ),
        (
            "401 Unauthorized",
            r#"{"jsonrpc":"2.0","id":ID,"error":{"code":-32601,"message":"who"}}"#,
            "HTTP 401",
        ),
        ("403 Forbidden", "<html><title>Login</title></html>", "not MCP: an HTML page"),
        (
            "200 OK",
            r#"{"jsonrpc":"2.0","id":ID,"error":{"code":-32022,"message":"no","data":{"supported":["2027-01-01"]}}}"#,
            "the server offers 2027-01-01",
        ),
        (
            "400 Bad Request",
            r#"{"jsonrpc":"2.0","id":ID,"error":{"code":-32020,"message":"header mismatch"}}"#,
            "refused the probe with -32020",
        ),
    ] {
        let fake = probed(status, body);
        let client = start(&fake, Era::Auto);
        let error = client.ready().await.unwrap_err();
        assert!(error.what.contains(word), "{error}");
        assert_eq!(fake.count("initialize"), 0, "{status}");
        client.close().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_modern_version_is_tried_once_more_where_the_server_names_it() {
    let fake = modern("[]", |method, request, out, n| {
        let refuse = method == "server/discover" && n == 1;
        if refuse {
            let id = raw::get(&request.body, "id").unwrap();
            json(
                out,
                "400 Bad Request",
                &format!(
                    r#"{{"jsonrpc":"2.0","id":{id},"error":{{"code":-32022,"message":"no","data":{{"supported":["2026-07-28"],"requested":"2026-07-28"}}}}}}"#
                ),
            );
        }
        refuse
    });
    let client = start(&fake, Era::Auto);
    client.ready().await.unwrap();
    assert_eq!((fake.count("server/discover"), fake.count("initialize")), (2, 0));
    client.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_error_in_place_of_a_counter_offer_is_stepped_down_to() {
    let fake = FakeHttp::any(|method, request, out, n| {
        if method != "initialize" {
            return false;
        }
        let version = raw::get_path(&request.body, &["params", "protocolVersion"]).unwrap();
        if n == 1 {
            json(
                out,
                "400 Bad Request",
                r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32602,"message":"Unsupported protocol version. Supported versions: 2024-11-05, 2025-03-26"}}"#,
            );
        } else {
            assert_eq!(version, "\"2025-03-26\"", "the newest of what it offers");
            result(
                request,
                out,
                &format!(
                    r#"{{"protocolVersion":{version},"capabilities":{{}},"serverInfo":{{"name":"old","version":"1"}}}}"#
                ),
            );
        }
        true
    });
    let client = start(&fake, Era::Legacy);
    client.ready().await.unwrap();
    assert_eq!(client.journal().read(|s| s.protocol.clone()).as_deref(), Some("2025-03-26"));
    client.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_version_nobody_agreed_on_and_an_old_transport_are_named() {
    let fake = FakeHttp::any(|method, request, out, _| {
        if method == "initialize" {
            result(request, out, r#"{"protocolVersion":"1999-01-01","capabilities":{}}"#);
        }
        method == "initialize"
    });
    let client = start(&fake, Era::Legacy);
    let error = client.ready().await.unwrap_err();
    assert!(
        error.what.contains("the server offers 1999-01-01, redial speaks 2026-07-28"),
        "{error}"
    );
    client.close().await;
    let fake = FakeHttp::any(|method, _, out, _| {
        match method {
            "GET" => stream(out, "event: endpoint\ndata: /messages?id=1\n\n"),
            _ => answer(out, "405 Method Not Allowed", "", b""),
        }
        true
    });
    let client = start(&fake, Era::Auto);
    let error = client.ready().await.unwrap_err();
    assert!(error.what.contains("HTTP+SSE transport of 2024-11-05"), "{error}");
    client.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_old_transport_that_never_answers_a_post_is_named_and_not_waited_for() {
    let fake = FakeHttp::any(|method, _, out, _| {
        match method {
            "GET" => stream(out, "event: endpoint\ndata: /messages?id=1\n\n"),
            _ => loop {
                std::thread::park();
            },
        }
        true
    });
    for (era, start_limit_s) in [(Era::Auto, 60.0), (Era::Legacy, 0.5)] {
        let settings = Settings { era, probe_limit_s: 0.3, start_limit_s, ..Settings::default() };
        let endpoint = Endpoint::Http { url: fake.url(), headers: vec![] };
        let begun = std::time::Instant::now();
        let client = Client::start(endpoint, settings);
        let error = client.ready().await.unwrap_err();
        assert!(error.what.contains("HTTP+SSE transport of 2024-11-05"), "{error}");
        assert!(begun.elapsed().as_secs_f64() < 30.0);
        client.close().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_of_another_era_in_the_same_place_is_found_out_and_nothing_is_sent_again() {
    let old = std::sync::Arc::new(AtomicBool::new(false));
    let turned = old.clone();
    let fake = FakeHttp::any(move |method, request, out, _| {
        if !turned.load(Ordering::SeqCst) {
            match method {
                "server/discover" => result(
                    request,
                    out,
                    r#"{"resultType":"complete","supportedVersions":["2026-07-28"],"capabilities":{}}"#,
                ),
                "tools/list" => {
                    result(request, out, r#"{"resultType":"complete","tools":[{"name":"t"}]}"#)
                }
                _ => return false,
            }
            return true;
        }
        let modern = request.headers.get("mcp-protocol-version").is_some_and(|v| v == "2026-07-28");
        match method {
            _ if modern => json(
                out,
                "400 Bad Request",
                r#"{"jsonrpc":"2.0","id":"server-error","error":{"code":-32600,"message":"Bad Request: Missing session ID"}}"#,
            ),
            "tools/call" => ok(request, out, "old"),
            _ => return false,
        }
        true
    });
    let client = start(&fake, Era::Auto);
    client.ready().await.unwrap();
    old.store(true, Ordering::SeqCst);
    let id = client.call("t", "{}", None).await.unwrap();
    let s = client.settled(id).await.unwrap().settled.unwrap();
    assert_eq!(s.outcome, Outcome::Refused, "{}", s.why);
    client
        .journal()
        .wait(|s| (s.is_ready() && s.protocol.as_deref() == Some("2025-11-25")).then_some(()))
        .await;
    assert_eq!(fake.calls.load(Ordering::SeqCst), 1);
    let id = client.call("t", "{}", None).await.unwrap();
    assert_eq!(client.settled(id).await.unwrap().outcome(), Some(Outcome::Ok));
    client.close().await;
}
