//! Tasks of 2025-11-25: asked for where a tool only runs so, followed over a lost session, fetched at their end.

use crate::support::fake_http::{FakeHttp, json, result};
use crate::support::until;
use redial::client::{Client, Endpoint, Era, Settings};
use redial::journal::Outcome;
use redial::json::raw;
use std::sync::atomic::Ordering;

#[tokio::test(flavor = "multi_thread")]
async fn a_task_survives_its_session_and_its_result_is_fetched() {
    let fake = FakeHttp::any(|method, request, out, n| {
        let task =
            |status: &str| format!(r#"{{"taskId":"t-1","status":"{status}","pollInterval":100}}"#);
        let session = request.headers.get("mcp-session-id").cloned().unwrap_or_default();
        match method {
            "tools/list" => result(
                request,
                out,
                r#"{"tools":[{"name":"long","execution":{"taskSupport":"required"}}]}"#,
            ),
            "initialize" if n == 1 => {
                let id = raw::get(&request.body, "id").unwrap();
                let body = format!(
                    r#"{{"jsonrpc":"2.0","id":{id},"result":{{"protocolVersion":"2025-11-25","capabilities":{{"tools":{{}},"tasks":{{"requests":{{"tools":{{"call":{{}}}}}}}}}}}}}}"#
                );
                crate::support::fake_http::answer(
                    out,
                    "200 OK",
                    "content-type: application/json\r\nmcp-session-id: s1-session",
                    body.as_bytes(),
                );
            }
            "tools/call" => {
                assert_eq!(raw::get_path(&request.body, &["params", "task"]), Some("{}"));
                result(request, out, &format!(r#"{{"task":{}}}"#, task("working")));
            }
            "tasks/get" if session == "s1-session" && n == 2 => {
                json(
                    out,
                    "404 Not Found",
                    r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32001,"message":"Session not found"}}"#,
                );
            }
            "tasks/get" => result(request, out, &task(if n > 3 { "completed" } else { "working" })),
            "tasks/result" => {
                assert_eq!(session, "s2-session");
                result(request, out, r#"{"content":[{"type":"text","text":"done at last"}]}"#);
            }
            _ => return false,
        }
        true
    });
    let settings = Settings { era: Era::Legacy, ..Settings::default() };
    let client = Client::start(Endpoint::Http { url: fake.url(), headers: vec![] }, settings);
    client.ready().await.unwrap();
    let id = client.call("long", "{}", Some(30.0)).await.unwrap();
    let call = client.settled(id).await.unwrap();
    assert_eq!(call.outcome(), Some(Outcome::Ok), "{:?}", call.settled);
    assert!(call.settled.unwrap().result.unwrap().contains("done at last"));
    assert_eq!((fake.calls.load(Ordering::SeqCst), fake.count("tasks/result")), (1, 1));
    until("two sessions", || (fake.count("initialize") == 2).then_some(()));
    client.close().await;
    assert_eq!(fake.count("tasks/cancel"), 0, "leaving cancels nothing");
}
