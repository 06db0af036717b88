//! 2026-07-28 over HTTP: mirrored headers, input-required rounds, tasks, subscriptions, cancelling by closing.

use crate::support::fake_http::{FakeHttp, Request, json, modern, result, stream};
use crate::support::until;
use redial::client::{Answerer, Choice, Client, Endpoint, Question, Settings};
use redial::journal::event::Purpose;
use redial::journal::{AnswerStatus, Call, Kind, Note, Outcome};
use redial::json::raw;
use std::collections::HashSet;
use std::io::Read;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::sync::mpsc;

const TOOLS: &str = r#"[{"name":"create_ticket","inputSchema":{"type":"object","properties":{"region":{"type":"string","x-mcp-header":"Region"}}}},{"name":"bad","inputSchema":{"type":"object","properties":{"x":{"type":"number","x-mcp-header":"X"}}}}]"#;
const DONE: &str = r#"{"resultType":"complete","content":[{"type":"text","text":"T-1"}]}"#;

async fn client(fake: &FakeHttp, settings: Settings) -> Client {
    let client = Client::start(Endpoint::Http { url: fake.url(), headers: vec![] }, settings);
    client.ready().await.unwrap();
    assert_eq!(client.journal().read(|s| s.protocol.clone()).as_deref(), Some("2026-07-28"));
    client
}

async fn call(client: &Client, args: &str) -> Call {
    let id = client.call("create_ticket", args, Some(20.0)).await.unwrap();
    client.settled(id).await.unwrap()
}

fn param<'a>(r: &'a Request, key: &str) -> Option<&'a str> {
    raw::get_path(&r.body, &["params", key])
}

#[tokio::test(flavor = "multi_thread")]
async fn arguments_are_mirrored_and_tools_that_may_not_are_dropped() {
    let fake = modern(TOOLS, |method, request, out, _| {
        if method == "tools/call" {
            assert_eq!(request.headers["mcp-param-region"], "=?base64?5pel?=");
            assert_eq!(request.headers["mcp-name"], "create_ticket");
            assert_eq!(request.headers["mcp-protocol-version"], "2026-07-28");
            result(request, out, DONE);
        }
        method == "tools/call"
    });
    let client = client(&fake, Settings::default()).await;
    let tools = client.tools().await.unwrap();
    assert_eq!(tools.tools.len(), 1);
    assert!(
        tools.dropped[0].starts_with("bad: x-mcp-header \"X\" of x is on a value of type number"),
        "{:?}",
        tools.dropped
    );
    let call = call(&client, r#"{"region":"日"}"#).await;
    assert_eq!(call.outcome(), Some(Outcome::Ok), "{:?}", call.settled);
    client.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn refused_headers_read_the_list_again_and_send_nothing_again() {
    let fake = modern(TOOLS, |method, request, out, _| {
        if method == "tools/call" {
            let id = raw::get(&request.body, "id").unwrap();
            let body = format!(
                r#"{{"jsonrpc":"2.0","id":{id},"error":{{"code":-32020,"message":"Mcp-Param-Region is missing"}}}}"#
            );
            json(out, "400 Bad Request", &body);
        }
        method == "tools/call"
    });
    let client = client(&fake, Settings::default()).await;
    let call = call(&client, "{}").await;
    let s = call.settled.unwrap();
    assert_eq!(s.outcome, Outcome::RpcError);
    assert!(s.why.contains("this call did not run"), "{}", s.why);
    until("the list is read again", || (fake.count("tools/list") == 2).then_some(()));
    assert_eq!(fake.calls.load(Ordering::SeqCst), 1);
    client.close().await;
}

const ASKS: &str = r#"{"resultType":"input_required","inputRequests":{"k":{"method":"elicitation/create","params":{"message":"Really?","requestedSchema":{"properties":{}}}}},"requestState":"a\u0062/\"c"}"#;

#[tokio::test(flavor = "multi_thread")]
async fn rounds_echo_the_state_byte_for_byte_under_a_new_id() {
    let ids: Arc<Mutex<Vec<String>>> = Arc::default();
    let seen = ids.clone();
    let fake = modern(TOOLS, move |method, request, out, n| {
        if method != "tools/call" {
            return false;
        }
        seen.lock().unwrap().push(raw::get(&request.body, "id").unwrap().to_owned());
        if n == 1 {
            assert_eq!(param(request, "requestState"), None);
            result(request, out, ASKS);
        } else {
            assert_eq!(param(request, "requestState"), Some(r#""a\u0062/\"c""#));
            let want = r#"{"k":{"action":"accept","content":{"yes":true}}}"#;
            assert_eq!(param(request, "inputResponses"), Some(want));
            assert_eq!(param(request, "arguments"), Some(r#"{"region":"x"}"#));
            assert_eq!(request.headers["mcp-param-region"], "x");
            result(request, out, DONE);
        }
        true
    });
    let (asks, mut questions) = mpsc::unbounded_channel::<Question>();
    tokio::spawn(async move {
        while let Some(q) = questions.recv().await {
            assert_eq!(raw::get_str(&q.params, "message").as_deref(), Some("Really?"));
            q.reply.send(Choice::Accept(r#"{"yes":true}"#.into())).unwrap();
        }
    });
    let settings = Settings { answerer: Answerer::Ask(asks), ..Settings::default() };
    let client = client(&fake, settings).await;
    let call = call(&client, r#"{"region":"x"}"#).await;
    assert_eq!(call.outcome(), Some(Outcome::Ok), "{:?}", call.settled);
    assert_eq!((call.sent, call.rounds, fake.calls.load(Ordering::SeqCst)), (1, 2, 2));
    let ids = ids.lock().unwrap().clone();
    assert_ne!(ids[0], ids[1]);
    client.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn no_round_leaves_after_its_call_was_given_up() {
    let fake = modern(TOOLS, |method, request, out, n| {
        match method {
            "tools/call" if n <= 12 => result(request, out, ASKS),
            "tools/call" => result(request, out, DONE),
            _ => return false,
        }
        true
    });
    let (asks, mut questions) = mpsc::unbounded_channel::<Question>();
    let settings = Settings { answerer: Answerer::Ask(asks), ..Settings::default() };
    let client = client(&fake, settings).await;
    // Fewer than the questions that may be open at once.
    let mut open = Vec::new();
    for _ in 0..12 {
        client.call("create_ticket", "{}", Some(20.0)).await.unwrap();
    }
    while open.len() < 12 {
        open.push(questions.recv().await.unwrap());
    }
    // One hand gives up while the other one answers.
    for q in open {
        client.cancel(q.call.unwrap());
        q.reply.send(Choice::Accept("{}".into())).unwrap();
    }
    client.journal().wait(|s| s.pending().next().is_none().then_some(())).await;
    client.close().await;
    let mut given_up = HashSet::new();
    for event in client.journal().events_from(1).0 {
        match event.kind {
            Kind::Note(Note::Cancelled { call }) => drop(given_up.insert(call)),
            Kind::Sent { purpose: Purpose::FollowUp { call }, .. } => {
                assert!(!given_up.contains(&call), "a round of call {call} left after its end");
            }
            _ => {}
        }
    }
    assert!(!given_up.is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn without_anybody_to_answer_a_call_is_left_in_progress_with_what_it_wants() {
    let fake = modern(TOOLS, |method, request, out, _| {
        if method == "tools/call" {
            result(request, out, ASKS);
        }
        method == "tools/call"
    });
    let client = client(&fake, Settings::default()).await;
    let s = call(&client, "{}").await.settled.unwrap();
    assert_eq!((s.outcome, s.answer_status), (Outcome::Ok, Some(AnswerStatus::InProgress)));
    assert!(s.why.contains("elicitation/create (Really?); nothing here answers"), "{}", s.why);
    assert_eq!(fake.calls.load(Ordering::SeqCst), 1);
    client.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_task_is_looked_at_until_it_is_over() {
    let fake = modern(TOOLS, |method, request, out, n| {
        match method {
            "tools/call" => result(
                request,
                out,
                r#"{"resultType":"task","taskId":"t-1","status":"working","pollIntervalMs":100}"#,
            ),
            "tasks/get" => {
                assert_eq!(request.headers["mcp-name"], "t-1");
                match n {
                    1 => result(
                        request,
                        out,
                        r#"{"resultType":"complete","taskId":"t-1","status":"working","statusMessage":"half"}"#,
                    ),
                    _ => result(
                        request,
                        out,
                        &format!(
                            r#"{{"resultType":"complete","taskId":"t-1","status":"completed","result":{DONE}}}"#
                        ),
                    ),
                }
            }
            _ => return false,
        }
        true
    });
    let client = client(&fake, Settings::default()).await;
    let call = call(&client, "{}").await;
    assert_eq!(call.outcome(), Some(Outcome::Ok), "{:?}", call.settled);
    assert_eq!(call.live.task.unwrap().status, "completed");
    assert_eq!((fake.count("tasks/get"), fake.calls.load(Ordering::SeqCst)), (2, 1));
    client.close().await;
    assert_eq!(fake.count("tasks/get"), 2, "it is over");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_task_that_the_server_will_not_tell_of_is_left_open_after_a_few_looks() {
    let fake = modern(TOOLS, |method, request, out, _| {
        match method {
            "tools/call" => result(
                request,
                out,
                r#"{"resultType":"task","taskId":"t-1","status":"working","pollIntervalMs":10}"#,
            ),
            "tasks/get" => json(out, "403 Forbidden", "no"),
            _ => return false,
        }
        true
    });
    let client = client(&fake, Settings::default()).await;
    let s = call(&client, "{}").await.settled.unwrap();
    assert_eq!((s.outcome, s.answer_status), (Outcome::Ok, Some(AnswerStatus::InProgress)));
    assert!(s.why.contains("refused 6 times in a row") && s.why.contains("403"), "{}", s.why);
    client.close().await;
    assert_eq!((fake.count("tasks/get"), fake.calls.load(Ordering::SeqCst)), (6, 1));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_task_outlives_the_limit_of_its_call_and_is_cancelled_only_by_a_person() {
    let fake = modern(TOOLS, |method, request, out, _| {
        let task = |s: &str| {
            format!(
                r#"{{"resultType":"complete","taskId":"t-1","status":"{s}","pollIntervalMs":100}}"#
            )
        };
        match method {
            "tools/call" => result(request, out, &task("working").replace("complete", "task")),
            "tasks/get" => result(request, out, &task("working")),
            "tasks/cancel" => result(request, out, r#"{"resultType":"complete"}"#),
            _ => return false,
        }
        true
    });
    let client = client(&fake, Settings::default()).await;
    let id = client.call("create_ticket", "{}", Some(0.3)).await.unwrap();
    let s = client.settled(id).await.unwrap().settled.unwrap();
    assert_eq!((s.outcome, s.answer_status), (Outcome::Ok, Some(AnswerStatus::InProgress)));
    assert!(s.why.contains("task t-1 (working)"), "{}", s.why);
    let before = fake.count("tasks/get");
    until("it is still followed", || (fake.count("tasks/get") > before + 1).then_some(()));
    assert_eq!((fake.count("tasks/cancel"), fake.count("notifications/cancelled")), (0, 0));
    client.cancel(id);
    until("it is cancelled", || (fake.count("tasks/cancel") == 1).then_some(()));
    client.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_modern_call_is_cancelled_by_closing_its_stream() {
    let closed = Arc::new(std::sync::atomic::AtomicBool::new(false));
    let seen = closed.clone();
    let fake = modern(TOOLS, move |method, _, out, _| {
        if method == "tools/call" {
            stream(out, ": working\n\n");
            // Ends when the other side closes.
            let n = out.read(&mut [0; 16]).unwrap_or(0);
            seen.store(n == 0, Ordering::SeqCst);
        }
        method == "tools/call"
    });
    let client = client(&fake, Settings::default()).await;
    let s = call_with_limit(&client, 0.3).await.settled.unwrap();
    assert_eq!(s.outcome, Outcome::Unknown);
    until("the stream is closed", || closed.load(Ordering::SeqCst).then_some(()));
    assert_eq!(fake.count("notifications/cancelled"), 0);
    client.close().await;
}

async fn call_with_limit(client: &Client, limit_s: f64) -> Call {
    let id = client.call("create_ticket", "{}", Some(limit_s)).await.unwrap();
    client.settled(id).await.unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn changes_of_the_list_are_subscribed_to_and_read() {
    let fake = modern(TOOLS, |method, request, out, n| {
        if method == "subscriptions/listen" && n == 1 {
            let id = raw::get(&request.body, "id").unwrap();
            assert_eq!(param(request, "notifications"), Some(r#"{"toolsListChanged":true}"#));
            let meta = format!(r#""_meta":{{"io.modelcontextprotocol/subscriptionId":{id}}}"#);
            stream(
                out,
                &format!(
                    "data: {{\"jsonrpc\":\"2.0\",\"method\":\"notifications/subscriptions/acknowledged\",\"params\":{{{meta}}}}}\n\ndata: {{\"jsonrpc\":\"2.0\",\"method\":\"notifications/tools/list_changed\",\"params\":{{{meta}}}}}\n\n"
                ),
            );
            // Open until the client closes it.
            out.read_to_end(&mut Vec::new()).ok();
        }
        method == "subscriptions/listen"
    });
    let client = client(&fake, Settings { listen: true, ..Settings::default() }).await;
    until("the list is read again", || (fake.count("tools/list") == 2).then_some(()));
    tokio::time::timeout(
        Duration::from_secs(20),
        client.journal().wait(|s| (!s.tools_stale).then_some(())),
    )
    .await
    .unwrap();
    client.close().await;
}
