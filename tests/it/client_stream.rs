//! Server-sent events of a legacy session: what a pending call waits for, resumes, the optional GET stream, the
//! server's questions on it.

use crate::support::fake_http::{FakeHttp, Request, answer, json, ok, stream};
use redial::client::{Answerer, Client, Endpoint, Settings};
use redial::journal::{Outcome, waiting};
use redial::json::raw;
use redial::time::Time;
use std::io::Write;
use std::net::TcpStream;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, mpsc};
use std::time::{Duration, Instant};

async fn client(fake: &FakeHttp, settings: Settings) -> Client {
    let client = Client::start(Endpoint::Http { url: fake.url(), headers: vec![] }, settings);
    client.ready().await.unwrap();
    client
}

fn result_of(id: &str) -> String {
    format!(
        r#"{{"jsonrpc":"2.0","id":{id},"result":{{"content":[{{"type":"text","text":"T-1"}}]}}}}"#
    )
}

fn id(request: &Request) -> String {
    raw::get(&request.body, "id").unwrap().to_owned()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stream_that_ends_early_is_resumed_after_the_servers_own_wait() {
    let asked: Arc<Mutex<Option<(String, Instant)>>> = Arc::default();
    let resumed: Arc<Mutex<Option<Duration>>> = Arc::default();
    let (a, r) = (asked.clone(), resumed.clone());
    let fake = FakeHttp::any(move |method, request, out, _| {
        match method {
            "tools/call" => {
                stream(out, "id: e-1\nretry: 300\ndata:\n\n");
                *a.lock().unwrap() = Some((id(request), Instant::now()));
            }
            "GET" => {
                let (call, at) = a.lock().unwrap().clone().unwrap();
                assert_eq!(request.headers["last-event-id"], "e-1");
                assert_eq!(request.headers["mcp-session-id"], "s1-session");
                *r.lock().unwrap() = Some(at.elapsed());
                stream(out, &format!("id: e-2\ndata: {}\n\n", result_of(&call)));
            }
            _ => return false,
        }
        true
    });
    let client = client(&fake, Settings::default()).await;
    let call = client.call("create_ticket", "{}", None).await.unwrap();
    let call = client.settled(call).await.unwrap();
    assert_eq!((call.outcome(), call.sent), (Some(Outcome::Ok), 1), "{:?}", call.settled);
    assert!(resumed.lock().unwrap().unwrap() >= Duration::from_millis(300));
    assert_eq!(fake.calls.load(Ordering::SeqCst), 1);
    client.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stream_that_can_not_be_resumed_says_so_and_one_without_ids_is_not_asked_for() {
    for (events, gets, words) in [
        (
            "id: e-1\nretry: 10\ndata:\n\n",
            1,
            "resuming it failed: the server answered with HTTP 405",
        ),
        (": hello\n\n", 0, "the stream ended without an answer"),
        ("data: {\"jsonrpc\":\"2.0\",", 0, "in the middle of an event, after 23 bytes"),
    ] {
        let fake = FakeHttp::start(move |_, out, _| stream(out, events));
        let client = client(&fake, Settings::default()).await;
        let call = client.call("create_ticket", "{}", None).await.unwrap();
        let s = client.settled(call).await.unwrap().settled.unwrap();
        assert_eq!(s.outcome, Outcome::Unknown);
        assert!(s.why.contains(words), "{}", s.why);
        assert_eq!((fake.count("GET"), fake.calls.load(Ordering::SeqCst)), (gets, 1), "{words}");
        client.close().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_pending_call_says_what_it_waits_for() {
    let (next, steps) = mpsc::channel::<()>();
    let steps = Mutex::new(steps);
    let fake = FakeHttp::start(move |request, out, _| {
        let wait = || steps.lock().unwrap().recv().unwrap();
        wait();
        stream(out, "");
        wait();
        out.write_all(b": keep-alive\n\n").unwrap();
        wait();
        let id = id(request);
        let progress = format!(
            r#"{{"jsonrpc":"2.0","method":"notifications/progress","params":{{"progressToken":{id},"progress":2,"total":5,"message":"two of five"}}}}"#
        );
        out.write_all(format!("data: {progress}\n\n").as_bytes()).unwrap();
        wait();
        out.write_all(format!("data: {}\n\n", result_of(&id)).as_bytes()).unwrap();
    });
    let client = client(&fake, Settings::default()).await;
    let call = client.call("create_ticket", "{}", None).await.unwrap();
    let says = async |word: &str| {
        let found = client.journal().wait(|s| {
            let w = waiting(&s.calls[&call], s, Time::now());
            w.to_string().contains(word).then_some(w)
        });
        tokio::time::timeout(Duration::from_secs(20), found).await.expect(word)
    };
    says("no headers yet").await;
    assert!(says("call limit 1 m 00 s in").await.percent.is_none());
    next.send(()).unwrap();
    says("stream open, 0 bytes for").await;
    next.send(()).unwrap();
    says("last keep-alive").await;
    next.send(()).unwrap();
    assert_eq!(says("progress 40 % (2 of 5)").await.percent, Some(40.0));
    next.send(()).unwrap();
    assert_eq!(client.settled(call).await.unwrap().outcome(), Some(Outcome::Ok));
    client.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn stopping_to_wait_tells_the_server_nothing_and_the_answer_is_still_taken() {
    let (go, wait) = mpsc::channel::<()>();
    let wait = Mutex::new(wait);
    let fake = FakeHttp::start(move |request, out, _| {
        wait.lock().unwrap().recv().unwrap();
        ok(request, out, "it did finish");
    });
    let client = client(&fake, Settings::default()).await;
    let id = client.call("create_ticket", "{}", None).await.unwrap();
    client.stop_waiting(id);
    let call = client.settled(id).await.unwrap();
    assert_eq!(call.outcome(), Some(Outcome::Unknown));
    go.send(()).unwrap();
    client.journal().wait(|s| s.calls[&id].settled.clone().filter(|s| s.late)).await;
    assert_eq!(fake.count("notifications/cancelled"), 0);
    client.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_without_a_get_stream_is_asked_once() {
    for status in ["405 Method Not Allowed", "404 Not Found", "400 Bad Request", "200 OK"] {
        let fake = FakeHttp::any(move |method, _, out, _| {
            if method == "GET" {
                answer(out, status, "content-type: text/html", b"<html>");
            }
            method == "GET"
        });
        let client = client(&fake, Settings { listen: true, ..Settings::default() }).await;
        crate::support::until("the one GET", || (fake.count("GET") == 1).then_some(()));
        let id = client.call("create_ticket", "{}", Some(0.3)).await.unwrap();
        client.settled(id).await.unwrap();
        assert_eq!((fake.count("GET"), fake.count("initialize")), (1, 1), "{status}");
        client.close().await;
        assert_eq!(fake.count("DELETE"), 1, "the session is ended");
    }
}

fn asks(out: &mut TcpStream, id: &str, method: &str, params: &str) {
    let ask = format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"{method}","params":{params}}}"#);
    out.write_all(format!("data: {ask}\n\n").as_bytes()).unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn the_servers_questions_are_answered_at_once_or_refused_at_once() {
    let answers: Arc<Mutex<Vec<String>>> = Arc::default();
    let (seen, done) = (answers.clone(), Arc::new(Mutex::new(None::<TcpStream>)));
    let fake = FakeHttp::any(move |method, request, out, _| {
        match method {
            "tools/call" => {
                stream(out, "");
                asks(out, "\"s-1\"", "ping", "{}");
                asks(out, "\"s-2\"", "sampling/createMessage", "{}");
                asks(
                    out,
                    "3",
                    "elicitation/create",
                    r#"{"message":"?","requestedSchema":{"properties":{"n":{"type":"integer","default":7}}}}"#,
                );
                asks(out, &id(request), "x/unknown", "{}");
                *done.lock().unwrap() = Some(out.try_clone().unwrap());
            }
            // A response of ours has no method.
            "POST" => {
                seen.lock().unwrap().push(request.body.clone());
                answer(out, "202 Accepted", "", b"");
                let all = seen.lock().unwrap().len() == 4;
                if let Some(call) = done.lock().unwrap().take_if(|_| all) {
                    call.shutdown(std::net::Shutdown::Both).ok();
                }
            }
            _ => return false,
        }
        true
    });
    let settings = Settings { answerer: Answerer::AcceptDefaults, ..Settings::default() };
    let client = client(&fake, settings).await;
    let call = client.call("create_ticket", "{}", Some(20.0)).await.unwrap();
    client.settled(call).await.unwrap();
    let got = answers.lock().unwrap().clone();
    let of = |id: &str| {
        let mut all = got.iter().filter(|a| raw::get(a, "id") == Some(id));
        all.next().unwrap_or_else(|| panic!("{id}: {got:?}")).clone()
    };
    assert_eq!(raw::get(&of("\"s-1\""), "result"), Some("{}"));
    assert_eq!(raw::get_path(&of("\"s-2\""), &["error", "code"]), Some("-32601"));
    assert_eq!(raw::get_path(&of("3"), &["result", "content"]), Some(r#"{"n":7}"#));
    assert_eq!(got.iter().filter(|a| a.contains("x/unknown")).count(), 1);
    let asked = client.journal().read(|s| s.asked_of_us.clone());
    assert_eq!(asked["sampling/createMessage"], 1);
    client.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn sessions_that_are_lost_again_and_again_are_not_made_without_end() {
    let lost =
        r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32001,"message":"Session not found"}}"#;
    // Every session is gone before it has answered anything: that is no recovery.
    let fake = FakeHttp::any(move |method, _, out, n| {
        let gone = method == "tools/call" || (method == "tools/list" && n > 1);
        if gone {
            json(out, "404 Not Found", lost);
        }
        gone
    });
    let client = client(&fake, Settings::default()).await;
    let call = client.call("create_ticket", "{}", None).await.unwrap();
    let s = client.settled(call).await.unwrap().settled.unwrap();
    assert_eq!(s.outcome, Outcome::Refused, "{}", s.why);
    let closed = client.journal().wait(|s| {
        let link = s.link.clone()?;
        (link.state == redial::journal::LinkState::Closed).then_some(link.why)
    });
    let why = tokio::time::timeout(Duration::from_secs(20), closed).await.unwrap();
    assert!(why.contains("gone at once"), "{why}");
    assert_eq!((fake.count("initialize"), fake.calls.load(Ordering::SeqCst)), (2, 1));
    client.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_new_session_is_shown_beside_the_old_one() {
    let fake = FakeHttp::start(|request, out, n| match n {
        1 => json(out, "404 Not Found", "{}"),
        _ => ok(request, out, "after"),
    });
    let client = client(&fake, Settings::default()).await;
    let call = client.call("create_ticket", "{}", None).await.unwrap();
    assert_eq!(client.settled(call).await.unwrap().outcome(), Some(Outcome::Refused));
    let told = client
        .journal()
        .wait(|s| s.notes.iter().find(|(_, n)| n.contains("→")).map(|(_, n)| n.clone()));
    let told = tokio::time::timeout(Duration::from_secs(20), told).await.unwrap();
    assert_eq!(told, "session lost (HTTP 404): s1-sessi… → s2-sessi…");
    client.close().await;
}
