//! Servers that sound as if they had settled a call, a session or a handshake, and have not. In-process servers and
//! small children; what was executed is counted where it happens.

use crate::support::fake_http::{FakeHttp, answer, json, ok, result, stream};
use crate::support::shell::{ANSWER, run, script, server};
use crate::support::until;
use redial::client::{Client, Endpoint, Era, Settings};
use redial::journal::{Call, LinkState, Outcome};
use redial::json::raw;
use std::io::{Read, Write};
use std::net::Shutdown;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

fn over_http(fake: &FakeHttp, settings: Settings) -> Client {
    Client::start(Endpoint::Http { url: fake.url(), headers: vec![] }, settings)
}

async fn ready(fake: &FakeHttp, settings: Settings) -> Client {
    let client = over_http(fake, settings);
    client.ready().await.unwrap();
    client
}

fn legacy() -> Settings {
    Settings { era: Era::Legacy, start_limit_s: 20.0, ..Settings::default() }
}

async fn call(client: &Client, args: &str, limit_s: f64) -> Call {
    let id = client.call("create_ticket", args, Some(limit_s)).await.unwrap();
    client.settled(id).await.unwrap()
}

fn id(body: &str) -> String {
    raw::get(body, "id").unwrap().to_owned()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_legacy_call_is_never_repeated_whatever_its_result_type() {
    let fake = FakeHttp::start(|request, out, _| {
        let r = r#"{"resultType":"input_required","requestState":"s","content":[{"type":"text","text":"done"}]}"#;
        result(request, out, r);
    });
    let client = ready(&fake, legacy()).await;
    let c = call(&client, "{}", 20.0).await;
    assert_eq!((c.outcome(), c.sent, c.rounds), (Some(Outcome::Ok), 1, 1), "{:?}", c.settled);
    client.close().await;
    assert_eq!(fake.calls.load(Ordering::SeqCst), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn words_about_sessions_prove_nothing_of_the_call_and_cost_no_session() {
    for (status, body, outcome) in [
        (
            "500 Internal Server Error",
            r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32603,"message":"upstream CRM: login session expired"}}"#,
            Outcome::Unknown,
        ),
        (
            "400 Bad Request",
            r#"{"jsonrpc":"2.0","id":"server-error","error":{"code":-32603,"message":"database has no session for tenant 7"}}"#,
            Outcome::RpcError,
        ),
    ] {
        let fake = FakeHttp::start(move |_, out, _| json(out, status, body));
        let client = ready(&fake, legacy()).await;
        let c = call(&client, "{}", 20.0).await;
        assert_eq!(c.outcome(), Some(outcome), "{status}: {:?}", c.settled);
        assert_eq!((fake.count("initialize"), fake.calls.load(Ordering::SeqCst)), (1, 1));
        client.close().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn neighbours_of_an_answer_on_its_stream_do_not_end_the_wait_for_it() {
    let fake = FakeHttp::start(|request, out, _| {
        let id = id(&request.body);
        stream(out, "");
        for neighbour in [
            r#"{"jsonrpc":"2.0","id":999,"error":{"code":-32000,"message":"something else"}}"#,
            r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"parse error"}}"#,
            r#"{"jsonrpc":"2.0"}"#,
            r#"[{"jsonrpc":"2.0","method":"notifications/message","params":{}}]"#,
        ] {
            out.write_all(format!("data: {neighbour}\n\n").as_bytes()).unwrap();
        }
        let r = format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{{"content":[]}}}}"#);
        out.write_all(format!("data: {r}\n\n").as_bytes()).unwrap();
    });
    let client = ready(&fake, legacy()).await;
    let c = call(&client, "{}", 20.0).await;
    let s = c.settled.unwrap();
    assert!(s.outcome == Outcome::Ok && !s.late, "{}", s.why);
    client.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_deep_batch_of_2025_03_26_is_named_and_the_next_call_works() {
    let fake = FakeHttp::any(|method, request, out, n| {
        match (method, n) {
            ("initialize", _) => result(
                request,
                out,
                r#"{"protocolVersion":"2025-03-26","capabilities":{"tools":{}}}"#,
            ),
            ("tools/call", 1) => {
                let r = format!(r#"{{"id":{},"result":{{"content":[]}}}}"#, id(&request.body));
                let deep =
                    format!("{}{r}{}", "[".repeat(2_000), r#",{"method":"x"}]"#.repeat(2_000));
                json(out, "200 OK", &deep);
            }
            // A flat one is legal there.
            ("tools/call", _) => {
                let r = format!(
                    r#"[{{"method":"x"}},{{"id":{},"result":{{"content":[]}}}}]"#,
                    id(&request.body)
                );
                json(out, "200 OK", &r);
            }
            _ => return false,
        }
        true
    });
    let client = ready(&fake, legacy()).await;
    let deep = call(&client, "{}", 20.0).await;
    assert_eq!(deep.outcome(), Some(Outcome::Unknown), "{:?}", deep.settled);
    let flat = call(&client, "{}", 20.0).await;
    assert_eq!(flat.outcome(), Some(Outcome::Ok), "{:?}", flat.settled);
    client.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_call_given_up_while_it_waits_here_is_never_sent() {
    let dir = tempfile::tempdir().unwrap();
    let (go, log) = (dir.path().join("go"), dir.path().join("log"));
    let on_call = format!(
        r#"printf '%.200s\n' "$line" >>{}; {ANSWER}; while [ ! -e {} ]; do sleep 0.05; done"#,
        log.display(),
        go.display()
    );
    let client = Client::start(server("", &on_call), legacy());
    client.ready().await.unwrap();
    let named =
        |name: &str, pad: usize| format!(r#"{{"name":"{name}","text":"{}"}}"#, "x".repeat(pad));
    assert_eq!(call(&client, &named("first", 0), 20.0).await.outcome(), Some(Outcome::Ok));
    // It does not read now: this one fills the pipe, and the others stand behind it.
    let stuck = client.call("t", &named("stuck", 200_000), Some(0.4)).await.unwrap();
    let cancelled = client.call("t", &named("cancelled", 0), Some(20.0)).await.unwrap();
    let limited = call(&client, &named("limited", 0), 0.2).await;
    client.cancel(cancelled);
    let cancelled = client.settled(cancelled).await.unwrap();
    for c in [&limited, &cancelled] {
        let s = c.settled.clone().unwrap();
        assert_eq!((s.outcome, c.sent), (Outcome::NotSent, 0), "{}", s.why);
        assert!(s.why.contains("still waited here"), "{}", s.why);
    }
    let s = client.settled(stuck).await.unwrap().settled.unwrap();
    assert_eq!(s.outcome, Outcome::Unknown);
    assert!(s.why.contains(" bytes were taken by its stdin"), "{}", s.why);
    std::fs::write(go, "").unwrap();
    assert_eq!(call(&client, &named("last", 0), 25.0).await.outcome(), Some(Outcome::Ok));
    client.close().await;
    let log = std::fs::read_to_string(log).unwrap();
    let got: Vec<bool> =
        ["first", "stuck", "last", "cancelled", "limited"].map(|n| log.contains(n)).to_vec();
    assert_eq!(got, [true, true, true, false, false], "{log}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_notification_that_has_left_is_told_as_sent() {
    let client = Client::start(server("", ANSWER), legacy());
    client.ready().await.unwrap();
    client.notify("notifications/roots/list_changed", "{}").await.unwrap();
    client.close().await;
    client.notify("notifications/roots/list_changed", "{}").await.unwrap_err();
    let fake = FakeHttp::start(|_, _, _| {});
    let client = ready(&fake, legacy()).await;
    client.notify("notifications/roots/list_changed", "{}").await.unwrap();
    assert_eq!(fake.count("notifications/roots/list_changed"), 1);
    fake.die();
    client.notify("notifications/roots/list_changed", "{}").await.unwrap_err();
    client.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_list_that_never_comes_again_holds_nobody_up_and_the_old_one_stays() {
    let fake = FakeHttp::any(|method, request, out, n| {
        match (method, n) {
            ("tools/list", 2..) => {
                // Silence, until the client leaves.
                out.read_to_end(&mut Vec::new()).ok();
            }
            ("tools/call", _) => {
                stream(out, "data: {\"method\":\"notifications/tools/list_changed\"}\n\n");
                let r = format!(r#"{{"id":{},"result":{{"content":[]}}}}"#, id(&request.body));
                out.write_all(format!("data: {r}\n\n").as_bytes()).unwrap();
            }
            _ => return false,
        }
        true
    });
    let client = ready(&fake, Settings { call_limit_s: 0.5, ..legacy() }).await;
    call(&client, "{}", 20.0).await;
    for _ in 0..3 {
        let tools = tokio::time::timeout(Duration::from_secs(10), client.tools()).await.unwrap();
        assert_eq!(tools.unwrap().tools[0].name, "create_ticket");
    }
    let (stale, told) = client.journal().read(|s| {
        (s.tools_stale, s.notes.iter().any(|(_, n)| n.contains("could not be read again")))
    });
    assert!(stale && told);
    client.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_list_of_tools_without_an_end_is_named() {
    let fake = FakeHttp::any(|method, request, out, n| {
        if method == "tools/list" {
            let r = format!(r#"{{"tools":[{{"name":"t{n}"}}],"nextCursor":"c{n}"}}"#);
            result(request, out, &r);
        }
        method == "tools/list"
    });
    let client = over_http(&fake, Settings { start_limit_s: 1.0, ..legacy() });
    let error = client.ready().await.unwrap_err().what;
    assert!(error.contains("list of tools did not end within 1 s"), "{error}");
    client.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_list_that_is_read_again_is_in_force_only_when_it_is_whole() {
    let (go, wait) = std::sync::mpsc::channel::<()>();
    let wait = Mutex::new(wait);
    let fake = FakeHttp::any(move |method, request, out, n| {
        match (method, n) {
            ("tools/list", 2) => {
                result(request, out, r#"{"tools":[{"name":"new"}],"nextCursor":"b"}"#)
            }
            ("tools/list", 3) => {
                wait.lock().unwrap().recv().unwrap();
                result(request, out, r#"{"tools":[{"name":"newer"}]}"#);
            }
            ("tools/call", _) => {
                stream(out, "data: {\"method\":\"notifications/tools/list_changed\"}\n\n");
                let r = format!(r#"{{"id":{},"result":{{"content":[]}}}}"#, id(&request.body));
                out.write_all(format!("data: {r}\n\n").as_bytes()).unwrap();
            }
            _ => return false,
        }
        true
    });
    let client = ready(&fake, legacy()).await;
    call(&client, "{}", 20.0).await;
    until("the second page is asked for", || (fake.count("tools/list") == 3).then_some(()));
    let names = |s: &redial::journal::Session| {
        s.tools.tools.iter().map(|t| t.name.clone()).collect::<Vec<_>>()
    };
    let (before, whole) = client.journal().read(|s| (names(s), s.tools.complete));
    assert_eq!((before, whole), (vec!["create_ticket".to_owned()], true));
    go.send(()).unwrap();
    let after = client.journal().wait(|s| (!s.tools_stale).then(|| names(s)));
    assert_eq!(
        tokio::time::timeout(Duration::from_secs(20), after).await.unwrap(),
        ["new", "newer"]
    );
    client.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_address_on_stderr_ends_no_slow_start() {
    let start = "echo 'Connecting to remote server: http://127.0.0.1:8080/api' >&2; \
                 echo 'proxy listening on http://127.0.0.1:8081/' >&2; sleep 1.6";
    let settings = Settings { probe_limit_s: 0.2, start_limit_s: 30.0, ..Settings::default() };
    let client = Client::start(server(start, ANSWER), settings);
    client.ready().await.unwrap();
    client.close().await;
    // At the limit it is a hint, and only where something says that it listens here.
    let mute = |line: &str| run(&format!("echo '{line}' >&2; sleep 60"));
    for (line, hint) in [
        ("Uvicorn running on http://127.0.0.1:8000", true),
        ("Connecting to remote server: http://127.0.0.1:8080/api", false),
    ] {
        let client = Client::start(mute(line), Settings { start_limit_s: 0.7, ..legacy() });
        let error = client.ready().await.unwrap_err().what;
        assert_eq!(error.contains("attach with --http"), hint, "{error}");
        client.close().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn one_cut_stream_costs_neither_the_session_nor_others_answers() {
    // Alive; its connection cut again; a gateway's own page in its place.
    for (lives, gateway) in [(true, false), (false, false), (false, true)] {
        let primed: Arc<Mutex<Option<String>>> = Arc::default();
        let fake = FakeHttp::any(move |method, request, out, n| {
            match (method, n) {
                ("tools/call", 1) => {
                    *primed.lock().unwrap() = Some(id(&request.body));
                    stream(out, "id: e-1\nretry: 1500\ndata:\n\n");
                }
                ("tools/call", 2) => out.shutdown(Shutdown::Both).unwrap(),
                ("tools/call", _) => ok(request, out, "after"),
                ("ping", _) if lives => result(request, out, "{}"),
                ("ping", _) if gateway => {
                    answer(out, "404 Not Found", "content-type: text/plain", b"404 page not found");
                }
                ("ping", _) => out.shutdown(Shutdown::Both).unwrap(),
                ("GET", _) => {
                    let id = primed.lock().unwrap().clone().unwrap();
                    let r = format!(r#"{{"id":{id},"result":{{"content":[]}}}}"#);
                    stream(out, &format!("data: {r}\n\n"));
                }
                _ => return false,
            }
            true
        });
        let client = ready(&fake, Settings { reconnect: true, ..legacy() }).await;
        let other = client.call("create_ticket", "{}", Some(25.0)).await.unwrap();
        until("its stream is open", || (fake.calls.load(Ordering::SeqCst) == 1).then_some(()));
        let cut = call(&client, "{}", 20.0).await;
        assert_eq!(cut.outcome(), Some(Outcome::Unknown), "{:?}", cut.settled);
        let other = client.settled(other).await.unwrap();
        assert_eq!(other.outcome(), Some(Outcome::Ok), "{lives}: {:?}", other.settled);
        let sessions = if lives { 1 } else { 2 };
        client
            .journal()
            .wait(|s| (s.is_ready() && s.generations.len() == sessions).then_some(()))
            .await;
        assert_eq!(call(&client, "{}", 20.0).await.outcome(), Some(Outcome::Ok));
        assert_eq!((fake.count("initialize"), fake.count("ping")), (sessions, 1));
        assert_eq!(fake.calls.load(Ordering::SeqCst), 3);
        client.close().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_session_that_is_lost_to_a_resume_is_opened_anew() {
    let fake = FakeHttp::any(|method, _, out, _| {
        match method {
            "tools/call" => stream(out, "id: e-1\nretry: 20\ndata:\n\n"),
            "GET" => json(
                out,
                "404 Not Found",
                r#"{"id":null,"error":{"code":-32001,"message":"Session not found"}}"#,
            ),
            _ => return false,
        }
        true
    });
    let client = ready(&fake, legacy()).await;
    let c = call(&client, "{}", 20.0).await;
    let s = c.settled.unwrap();
    assert!(s.outcome == Outcome::Unknown && s.why.contains("the session is lost"), "{}", s.why);
    client.journal().wait(|s| (s.is_ready() && s.generations.len() == 2).then_some(())).await;
    assert_eq!(fake.calls.load(Ordering::SeqCst), 1);
    client.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_refused_list_is_no_server_without_tools() {
    for (status, body, word) in [
        ("200 OK", r#"{"id":ID,"error":{"code":-32603,"message":"db down"}}"#, "db down"),
        ("200 OK", r#"{"id":0,"result":{"tools":[{"name":"t"}]}}"#, "under another id (0)"),
    ] {
        let fake = FakeHttp::any(move |method, request, out, _| {
            if method == "tools/list" {
                json(out, status, &body.replace("ID", &id(&request.body)));
            }
            method == "tools/list"
        });
        let client = over_http(&fake, legacy());
        let error = client.ready().await.unwrap_err().what;
        assert!(error.contains(word), "{error}");
        client.close().await;
    }
    let none = FakeHttp::any(|method, request, out, _| {
        if method == "tools/list" {
            let body = r#"{"id":ID,"error":{"code":-32601,"message":"Method not found"}}"#;
            json(out, "200 OK", &body.replace("ID", &id(&request.body)));
        }
        method == "tools/list"
    });
    let client = ready(&none, legacy()).await;
    assert!(client.tools().await.unwrap().tools.is_empty());
    client.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_revision_that_is_refused_after_all_is_stepped_down_from() {
    let fake = FakeHttp::any(|method, request, out, _| {
        let version = raw::get_path(&request.body, &["params", "protocolVersion"]).unwrap_or("");
        match method {
            "initialize" => {
                let r =
                    format!(r#"{{"protocolVersion":{version},"capabilities":{{"tools":{{}}}}}}"#);
                result(request, out, &r);
            }
            "tools/list" if request.headers["mcp-protocol-version"] == "2025-11-25" => json(
                out,
                "400 Bad Request",
                r#"{"id":"server-error","error":{"code":-32600,"message":"Bad Request: Unsupported protocol version: 2025-11-25. Supported versions: 2025-03-26, 2025-06-18"}}"#,
            ),
            _ => return false,
        }
        true
    });
    let client = ready(&fake, legacy()).await;
    assert_eq!(client.journal().read(|s| s.protocol.clone()).as_deref(), Some("2025-06-18"));
    assert_eq!(fake.count("initialize"), 2);
    client.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_error_without_an_id_ends_a_handshake_with_its_reason() {
    let refuses = r#"while IFS= read -r line; do printf '{"jsonrpc":"2.0","id":null,"error":{"code":-32000,"message":"API key FOO missing"}}\n'; done"#;
    for era in [Era::Legacy, Era::Auto] {
        let started = Instant::now();
        let client = Client::start(run(refuses), Settings { era, ..legacy() });
        let error = client.ready().await.unwrap_err().what;
        assert!(error.contains("API key FOO missing"), "{error}");
        assert!(started.elapsed() < Duration::from_secs(12), "{:?}", started.elapsed());
        client.close().await;
    }
    // On a probe any answer is a verdict, also one under an id of another type.
    let near = script("", ANSWER).replace(
        r#"printf '{"jsonrpc":"2.0","id":%s,"error""#,
        r#"printf '{"jsonrpc":"2.0","id":"%s","error""#,
    );
    assert!(near.contains(r#""id":"%s","error""#));
    let client = Client::start(run(&near), Settings { probe_limit_s: 20.0, ..Settings::default() });
    client.ready().await.unwrap();
    client.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_fresh_process_begins_when_the_spoilt_one_has_ended() {
    let dir = tempfile::tempdir().unwrap();
    let lock = dir.path().join("lock");
    let lock = lock.display();
    // One at a time; after a probe it answers nothing, and does not end by itself.
    let start = format!(
        r#"[ -e {lock} ] && kill -0 "$(cat {lock})" 2>/dev/null && {{ echo another instance holds the lock >&2; exit 3; }}
echo $$ >{lock}
IFS= read -r line
case "$line" in *discover*) while IFS= read -r line; do :; done; while :; do sleep 1; done ;; esac
id=$(printf '%s' "$line" | sed -n 's/.*"id":\([0-9]*\).*/\1/p')
printf '{{"jsonrpc":"2.0","id":%s,"result":{{"protocolVersion":"2025-11-25","capabilities":{{}}}}}}\n' "$id""#
    );
    let settings = Settings { probe_limit_s: 0.2, start_limit_s: 2.0, ..Settings::default() };
    let client = Client::start(server(&start, ANSWER), settings);
    client.ready().await.unwrap_or_else(|e| panic!("{e}"));
    assert_eq!(client.journal().read(|s| s.generations.len()), 2);
    client.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_redirect_to_itself_sends_a_call_once_and_one_elsewhere_holds_for_the_whole_generation() {
    let fake =
        FakeHttp::start(|_, out, _| answer(out, "307 Temporary Redirect", "location: /mcp", b""));
    let client = ready(&fake, legacy()).await;
    let c = call(&client, "{}", 20.0).await;
    assert_eq!((c.outcome(), c.sent), (Some(Outcome::Unknown), 1), "{:?}", c.settled);
    client.close().await;
    assert_eq!(fake.calls.load(Ordering::SeqCst), 1);
    let paths: Arc<Mutex<Vec<String>>> = Arc::default();
    let seen = paths.clone();
    let fake = FakeHttp::any(move |method, request, out, _| {
        let moved = request.path == "/mcp";
        if moved {
            answer(out, "307 Temporary Redirect", "location: /mcp/", b"");
        } else {
            seen.lock().unwrap().push(method.to_owned());
            match method {
                "tools/call" => stream(out, "id: e-1\nretry: 20\ndata:\n\n"),
                "GET" => stream(out, "data: {\"id\":3,\"result\":{\"content\":[]}}\n\n"),
                _ => return false,
            }
        }
        true
    });
    let client = ready(&fake, legacy()).await;
    let c = call(&client, "{}", 20.0).await;
    assert_eq!((c.outcome(), c.sent), (Some(Outcome::Ok), 1), "{:?}", c.settled);
    client.close().await;
    let paths = paths.lock().unwrap();
    assert!(["GET", "DELETE"].iter().all(|m| paths.iter().any(|p| p == m)), "{paths:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn one_temporary_redirect_moves_no_later_call() {
    let fake = FakeHttp::any(|method, request, out, n| {
        match (method, request.path.as_str(), n) {
            ("tools/call", "/mcp", 1) => {
                answer(out, "307 Temporary Redirect", "location: /busy", b"");
            }
            ("tools/call", "/mcp", _) => ok(request, out, "here"),
            ("tools/call", ..) => answer(out, "503 Service Unavailable", "", b"busy"),
            _ => return false,
        }
        true
    });
    let client = ready(&fake, legacy()).await;
    let first = call(&client, "{}", 20.0).await;
    assert_ne!(first.outcome(), Some(Outcome::Ok), "{:?}", first.settled);
    let second = call(&client, "{}", 20.0).await;
    assert_eq!(second.outcome(), Some(Outcome::Ok), "{:?}", second.settled);
    client.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_task_whose_server_is_gone_for_good_is_left_open_at_once() {
    let fake = FakeHttp::any(|method, request, out, _| {
        match method {
            "tools/call" => result(
                request,
                out,
                r#"{"task":{"taskId":"t-1","status":"working","pollInterval":0}}"#,
            ),
            "tasks/get" | "ping" => out.shutdown(Shutdown::Both).unwrap(),
            _ => return false,
        }
        true
    });
    let client = ready(&fake, legacy()).await;
    let started = Instant::now();
    let c = call(&client, "{}", 60.0).await;
    let s = c.settled.unwrap();
    assert!(s.why.contains("can't be looked at"), "{}", s.why);
    assert!(started.elapsed() < Duration::from_secs(20), "{:?}", started.elapsed());
    assert_eq!(client.journal().read(|s| s.link.clone().unwrap().state), LinkState::Closed);
    assert!(fake.count("tasks/get") < 10, "no storm: {}", fake.count("tasks/get"));
    client.close().await;
}
