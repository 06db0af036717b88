//! Every way an HTTP call can break, by real bytes on a real socket: the outcome, the true reason, and that
//! nothing was ever sent a second time.

use crate::support::fake_http::{FakeHttp, answer, json, ok};
use crate::support::until;
use redial::client::{Client, Endpoint, Settings};
use redial::journal::{Call, Outcome};
use redial::json::raw;
use std::io::Write;
use std::net::Shutdown;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

fn client(url: String, settings: Settings) -> Client {
    Client::start(
        Endpoint::Http { url, headers: vec![("X-Team".into(), "night".into())] },
        settings,
    )
}

async fn one_call(fake: &FakeHttp, limit_s: f64) -> (Client, Call) {
    let client = client(fake.url(), Settings::default());
    client.ready().await.unwrap();
    let id = client.call("create_ticket", r#"{"request_id":"r-1"}"#, Some(limit_s)).await.unwrap();
    let call = client.settled(id).await.unwrap();
    (client, call)
}

/// The outcome and reason of one call that is answered with `status`, `headers`, `body`.
async fn answered(
    status: &'static str,
    headers: &'static str,
    body: &'static str,
) -> (Outcome, String, FakeHttp) {
    let fake =
        FakeHttp::start(move |_, stream, _| answer(stream, status, headers, body.as_bytes()));
    let (client, call) = one_call(&fake, 20.0).await;
    client.close().await;
    let s = call.settled.unwrap();
    (s.outcome, s.why, fake)
}

const JSON: &str = "content-type: application/json";

#[tokio::test(flavor = "multi_thread")]
async fn a_status_says_only_what_it_proves() {
    use Outcome::{Refused, RpcError, Unknown};
    let rows: [(&str, &str, &str, Outcome, &str); 15] = [
        (
            "401 Unauthorized",
            "www-authenticate: Bearer error=\"invalid_token\"",
            "no",
            Refused,
            "invalid_token",
        ),
        ("403 Forbidden", "", "", Refused, "403"),
        ("413 Payload Too Large", "", "", Refused, "too large"),
        ("429 Too Many Requests", "", "slow down", Refused, "too many"),
        (
            "502 Bad Gateway",
            "content-type: text/html",
            "<html><title>Bad Gateway</title></html>",
            Unknown,
            "HTML page",
        ),
        ("503 Service Unavailable", "", "", Unknown, "503"),
        ("500 Internal Server Error", "", "boom", Unknown, "500"),
        ("302 Found", "location: /login", "", Unknown, "302"),
        ("307 Temporary Redirect", "location: http://localhost:9/mcp", "", Unknown, "307"),
        (
            "200 OK",
            "content-type: text/html",
            "<!doctype html><title>Sign in</title>",
            Unknown,
            "Sign in",
        ),
        (
            "200 OK",
            "content-type: text/event-stream",
            ": keep-alive\n\n",
            Unknown,
            "the stream ended without an answer",
        ),
        ("202 Accepted", "", "", Unknown, "ended without an answer"),
        (
            "404 Not Found",
            JSON,
            r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32601,"message":"Method not found"}}"#,
            RpcError,
            "-32601",
        ),
        (
            "400 Bad Request",
            JSON,
            r#"{"jsonrpc":"2.0","id":"server-error","error":{"code":-32602,"message":"bad args"}}"#,
            RpcError,
            "bad args",
        ),
        (
            "400 Bad Request",
            JSON,
            r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"Bad Request: Unsupported protocol version: x"}}"#,
            RpcError,
            "protocol version",
        ),
    ];
    for (status, headers, body, outcome, word) in rows {
        let (got, why, fake) = answered(status, headers, body).await;
        assert_eq!(got, outcome, "{status} {body}: {why}");
        assert!(why.contains(word), "{status}: {why}");
        assert_eq!(fake.calls.load(Ordering::SeqCst), 1, "{status}: sent once");
        assert_eq!(fake.count("initialize"), 1, "{status}: no new session");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_lost_session_is_refused_and_a_new_one_is_opened_without_sending_again() {
    let rows = [
        (
            "404 Not Found",
            r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32001,"message":"Session not found"}}"#,
        ),
        ("404 Not Found", "Not Found: Session not found"),
        (
            "400 Bad Request",
            r#"{"jsonrpc":"2.0","error":{"code":-32000,"message":"Bad Request: No valid session ID provided"}}"#,
        ),
        // What a restarted server of one transport answers.
        (
            "400 Bad Request",
            r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32000,"message":"Bad Request: Server not initialized"}}"#,
        ),
        (
            "401 Unauthorized",
            r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32000,"message":"Unauthorized: Session not found"}}"#,
        ),
        (
            "500 Internal Server Error",
            r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32000,"message":"Session ID is required"}}"#,
        ),
    ];
    for (status, body) in rows {
        let fake = FakeHttp::start(move |request, stream, n| match n {
            1 => json(stream, status, body),
            _ => {
                assert_eq!(request.headers["mcp-session-id"], "s2-session");
                ok(request, stream, "after");
            }
        });
        let (client, call) = one_call(&fake, 20.0).await;
        let s = call.settled.unwrap();
        assert_eq!(s.outcome, Outcome::Refused, "{status}: {}", s.why);
        assert!(s.why.starts_with("session lost"), "{}", s.why);
        client.journal().wait(|s| (s.is_ready() && s.generations.len() == 2).then_some(())).await;
        assert_eq!(fake.calls.load(Ordering::SeqCst), 1, "{status}: never sent again by itself");
        let again = client.call("create_ticket", "{}", None).await.unwrap();
        assert_eq!(client.settled(again).await.unwrap().outcome(), Some(Outcome::Ok));
        assert_eq!(fake.count("initialize"), 2);
        client.close().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn no_call_leaves_while_a_new_session_is_only_being_opened() {
    let go = Arc::new(AtomicBool::new(false));
    let gate = go.clone();
    let lost =
        r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32001,"message":"Session not found"}}"#;
    let fake = FakeHttp::any(move |method, request, stream, n| {
        match (method, n) {
            ("tools/call", 1) => json(stream, "404 Not Found", lost),
            ("tools/call", _) => ok(request, stream, "after"),
            // The new session's list is long in coming: nothing is known of its tools until then.
            ("tools/list", 2..) => {
                until("the list may come", || gate.load(Ordering::SeqCst).then_some(()));
                return false;
            }
            _ => return false,
        }
        true
    });
    let (client, call) = one_call(&fake, 20.0).await;
    assert_eq!(call.outcome(), Some(Outcome::Refused));
    until("the new session's tools are asked for", || {
        (fake.count("tools/list") == 2).then_some(())
    });
    let early = client.call("create_ticket", "{}", None).await.unwrap();
    let s = client.settled(early).await.unwrap().settled.unwrap();
    assert_eq!(s.outcome, Outcome::NotSent, "{}", s.why);
    assert!(s.why.contains("only being opened"), "{}", s.why);
    go.store(true, Ordering::SeqCst);
    client.journal().wait(|s| (s.is_ready() && s.generations.len() == 2).then_some(())).await;
    let again = client.call("create_ticket", "{}", None).await.unwrap();
    assert_eq!(client.settled(again).await.unwrap().outcome(), Some(Outcome::Ok));
    assert_eq!(fake.calls.load(Ordering::SeqCst), 2);
    client.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cut_answer_is_unknown_and_its_bytes_are_kept() {
    let fake = FakeHttp::start(|_, stream, _| {
        let part = br#"{"jsonrpc":"2.0","id":4,"result":{"content":[{"type":"text"#;
        stream
            .write_all(
                b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 500\r\n\r\n",
            )
            .unwrap();
        stream.write_all(part).unwrap();
        stream.shutdown(Shutdown::Both).unwrap();
    });
    let (client, call) = one_call(&fake, 20.0).await;
    let s = call.settled.unwrap();
    assert_eq!(s.outcome, Outcome::Unknown);
    assert!(s.why.contains("cut after 58 of 500 bytes"), "{}", s.why);
    let kept = client
        .journal()
        .events_from(0)
        .0
        .iter()
        .any(|e| format!("{:?}", e.kind).contains("Partial { raw: b\"{\\\"jsonrpc"));
    assert!(kept, "the 58 bytes are evidence");
    client.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_listening_is_proof_that_nothing_was_sent() {
    let fake = FakeHttp::start(|request, stream, _| ok(request, stream, "x"));
    let client = client(fake.url(), Settings::default());
    client.ready().await.unwrap();
    fake.die();
    let id = client.call("create_ticket", "{}", None).await.unwrap();
    let call = client.settled(id).await.unwrap();
    assert_eq!((call.outcome(), call.sent), (Some(Outcome::NotSent), 0), "{:?}", call.settled);
    client.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_call_given_up_is_cancelled_and_its_late_answer_is_taken() {
    let (go, wait) = std::sync::mpsc::channel::<()>();
    let wait = std::sync::Mutex::new(wait);
    let fake = FakeHttp::start(move |request, stream, _| {
        wait.lock().unwrap().recv().unwrap();
        ok(request, stream, "it did finish");
    });
    let (client, call) = one_call(&fake, 0.2).await;
    assert_eq!(call.outcome(), Some(Outcome::Unknown));
    assert!(call.settled.as_ref().unwrap().why.contains("no answer within 0.2 s"));
    crate::support::until("the cancellation arrives", || {
        (fake.count("notifications/cancelled") == 1).then_some(())
    });
    go.send(()).unwrap();
    let late =
        client.journal().wait(|s| s.calls[&call.id].settled.clone().filter(|s| s.late)).await;
    assert_eq!(late.outcome, Outcome::Ok);
    assert!(late.why.contains("late"));
    assert_eq!(fake.calls.load(Ordering::SeqCst), 1);
    client.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_same_origin_redirect_of_the_post_is_followed_and_counted() {
    let fake = FakeHttp::start(|request, stream, _| match request.path.as_str() {
        "/mcp" => answer(stream, "307 Temporary Redirect", "location: /mcp/", b""),
        _ => {
            assert_eq!(
                (request.method.as_str(), request.headers["x-team"].as_str()),
                ("POST", "night")
            );
            assert!(raw::get(&request.body, "params").is_some());
            ok(request, stream, "moved");
        }
    });
    let (client, call) = one_call(&fake, 20.0).await;
    assert_eq!((call.outcome(), call.sent), (Some(Outcome::Ok), 2));
    assert!(client.journal().read(|s| s.notes.iter().any(|(_, n)| n.contains("redirected to"))));
    client.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_comes_back_is_found_again_and_nothing_is_repeated() {
    // The call is cut, and so is the look whether the server is still there.
    let fake = FakeHttp::any(|method, _, stream, _| {
        let cut = matches!(method, "tools/call" | "ping");
        if cut {
            stream.shutdown(Shutdown::Both).unwrap();
        }
        cut
    });
    let settings = Settings { reconnect: true, ..Settings::default() };
    let client = client(fake.url(), settings);
    client.ready().await.unwrap();
    let id = client.call("create_ticket", "{}", None).await.unwrap();
    let call = client.settled(id).await.unwrap();
    assert_eq!(call.outcome(), Some(Outcome::Unknown), "{:?}", call.settled);
    let waited = client.journal().wait(|s| {
        let link = s.link.as_ref()?;
        matches!(link.state, redial::journal::LinkState::Waiting { attempt: 1, .. })
            .then(|| link.why.clone())
    });
    waited.await;
    client.journal().wait(|s| (s.is_ready() && s.generations.len() == 2).then_some(())).await;
    assert_eq!(fake.calls.load(Ordering::SeqCst), 1);
    client.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_in_the_answer_to_a_notification_matters() {
    // Field log, row 80; and a stream that stays open holds nothing up.
    for (status, headers, body) in [
        ("200 OK", JSON, "null"),
        ("200 OK", "", ""),
        ("204 No Content", "", ""),
        ("200 OK", "content-type: text/html", "<html><title>x</title></html>"),
        ("500 Internal Server Error", "", "boom"),
        (
            "200 OK",
            "content-type: text/event-stream\r\ntransfer-encoding: chunked\r\nx: ",
            "5\r\n: a\n\n\r\n",
        ),
    ] {
        let fake = FakeHttp::any(move |method, request, stream, _| {
            match method {
                "notifications/initialized" if headers.contains("chunked") => {
                    let head = format!("HTTP/1.1 {status}\r\n{headers}\r\n\r\n{body}");
                    stream.write_all(head.as_bytes()).unwrap();
                    // Open until the client leaves.
                    std::io::Read::read_to_end(stream, &mut Vec::new()).ok();
                }
                "notifications/initialized" => answer(stream, status, headers, body.as_bytes()),
                "tools/call" => ok(request, stream, "fine"),
                _ => return false,
            }
            true
        });
        let started = std::time::Instant::now();
        let (client, call) = one_call(&fake, 20.0).await;
        assert_eq!(call.outcome(), Some(Outcome::Ok), "{status} {body}");
        assert!(started.elapsed().as_secs() < 4, "{status}");
        client.close().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_call_in_flight_when_redial_leaves_is_unknown() {
    let fake = FakeHttp::start(|_, stream, _| {
        std::io::Read::read_to_end(stream, &mut Vec::new()).ok();
    });
    let client = client(fake.url(), Settings::default());
    client.ready().await.unwrap();
    let id = client.call("create_ticket", "{}", None).await.unwrap();
    client.close().await;
    let s = client.settled(id).await.unwrap().settled.unwrap();
    assert_eq!(s.outcome, Outcome::Unknown);
    assert!(s.why.contains("redial was closed"), "{}", s.why);
}

#[tokio::test(flavor = "multi_thread")]
async fn another_origin_is_shown_and_never_gets_a_request() {
    let other = FakeHttp::start(|request, stream, _| ok(request, stream, "stolen"));
    let to = other.url();
    let fake = FakeHttp::start(move |_, stream, _| {
        answer(stream, "307 Temporary Redirect", &format!("location: {to}"), b"");
    });
    let (client, call) = one_call(&fake, 20.0).await;
    let s = call.settled.unwrap();
    assert_eq!((s.outcome, call.sent), (Outcome::Unknown, 1));
    assert!(s.why.contains(&other.url()) && s.why.contains("not followed"), "{}", s.why);
    assert!(other.seen.lock().unwrap().is_empty(), "neither the call nor its headers");
    client.close().await;
}
