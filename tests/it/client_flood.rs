//! Floods and sizes: memory stays bounded, what is let go is counted, and calls are answered all the while.

use crate::support::fake_http::{FakeHttp, json, result};
use crate::support::shell::{ANSWER, server};
use redial::client::{Client, Endpoint, Era, Settings};
use redial::journal::Outcome;
use redial::json::raw;
use std::io::Write;
use std::time::{Duration, Instant};

async fn ready(endpoint: Endpoint) -> Client {
    let client = Client::start(endpoint, Settings { era: Era::Legacy, ..Settings::default() });
    client.ready().await.unwrap();
    client
}

async fn call(client: &Client) -> Option<Outcome> {
    let id = client.call("t", "{}", Some(60.0)).await.unwrap();
    client.settled(id).await.unwrap().outcome()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_flood_of_notifications_and_stderr_hides_no_answer_and_its_gap_is_counted() {
    let flood = r#"awk 'BEGIN { for (i = 0; i < 50000; i++) { print "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/message\",\"params\":{\"data\":" i "}}"; print "line " i > "/dev/stderr" } }'"#;
    let client = ready(server("", &format!("{flood}; {ANSWER}"))).await;
    assert_eq!(call(&client).await, Some(Outcome::Ok));
    let counted = client.journal().wait(|s| {
        let g = s.generation()?;
        (g.stderr.dropped + g.stderr.len() as u64 == 50_000).then_some(g.stderr.len())
    });
    let kept = tokio::time::timeout(Duration::from_secs(30), counted).await.unwrap();
    assert!(kept <= 2_000, "{kept}");
    let (events, forgotten) = client.journal().events_from(0);
    assert!(events.len() as u64 + forgotten >= 50_000);
    client.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_storm_of_list_changes_asks_for_the_list_a_few_times() {
    let storm = r#"awk 'BEGIN { for (i = 0; i < 5000; i++) print "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/tools/list_changed\"}" }'"#;
    let client = ready(server("", &format!("{storm}; {ANSWER}"))).await;
    for _ in 0..3 {
        assert_eq!(call(&client).await, Some(Outcome::Ok));
    }
    client.tools().await.unwrap();
    let asked = client
        .journal()
        .events_from(0)
        .0
        .iter()
        .filter(|e| format!("{:?}", e.kind).contains("\\\"method\\\":\\\"tools/list\\\""))
        .count();
    assert!((2..=8).contains(&asked), "{asked}");
    client.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn ten_thousand_tools_come_over_many_pages_and_a_cursor_that_stands_still_ends() {
    let fake = FakeHttp::any(|method, request, out, _| {
        if method != "tools/list" {
            return false;
        }
        let page: usize = raw::get_path(&request.body, &["params", "cursor"])
            .and_then(raw::as_str)
            .map_or(0, |c| c.parse().unwrap());
        let tools: Vec<String> = (0..500)
            .map(|i| {
                format!(
                    r#"{{"name":"t-{}","description":"d","inputSchema":{{"type":"object"}}}}"#,
                    page * 500 + i
                )
            })
            .collect();
        let next =
            if page < 19 { format!(r#","nextCursor":"{}""#, page + 1) } else { String::new() };
        result(request, out, &format!(r#"{{"tools":[{}]{next}}}"#, tools.join(",")));
        true
    });
    let client = ready(Endpoint::Http { url: fake.url(), headers: vec![] }).await;
    let tools = client.tools().await.unwrap();
    assert_eq!((tools.tools.len(), tools.complete), (10_000, true));
    client.close().await;
    let fake = FakeHttp::any(|method, request, out, n| {
        if method == "tools/list" {
            assert!(n < 5, "endless paging");
            result(request, out, r#"{"tools":[{"name":"a"}],"nextCursor":"same"}"#);
        }
        method == "tools/list"
    });
    let client = ready(Endpoint::Http { url: fake.url(), headers: vec![] }).await;
    assert!(!client.tools().await.unwrap().complete);
    client.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_result_of_fifty_megabytes_comes_whole_and_a_larger_one_than_the_limit_is_said_to_be() {
    let fake = FakeHttp::start(|request, out, n| {
        let id = raw::get(&request.body, "id").unwrap();
        let text = "x".repeat(if n == 1 { 50 << 20 } else { 65 << 20 });
        json(
            out,
            "200 OK",
            &format!(
                r#"{{"jsonrpc":"2.0","id":{id},"result":{{"content":[{{"type":"text","text":"{text}"}}]}}}}"#
            ),
        );
    });
    let client = ready(Endpoint::Http { url: fake.url(), headers: vec![] }).await;
    let started = Instant::now();
    let id = client.call("t", "{}", Some(60.0)).await.unwrap();
    let s = client.settled(id).await.unwrap().settled.unwrap();
    assert_eq!(s.outcome, Outcome::Ok, "{}", s.why);
    assert!(s.result.unwrap().len() > 50 << 20);
    assert!(started.elapsed() < Duration::from_secs(30));
    let id = client.call("t", "{}", Some(60.0)).await.unwrap();
    let s = client.settled(id).await.unwrap().settled.unwrap();
    assert_eq!(s.outcome, Outcome::Unknown);
    assert!(s.why.contains("its limit of 64 MiB"), "{}", s.why);
    client.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_event_over_the_limit_that_never_ends_is_told_while_it_still_comes() {
    let fake = FakeHttp::start(|_, out, _| {
        let head =
            "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\ndata: ";
        let more = vec![b'x'; 1 << 20];
        out.write_all(head.as_bytes()).ok();
        while out.write_all(&more).is_ok() {}
    });
    let client = ready(Endpoint::Http { url: fake.url(), headers: vec![] }).await;
    let id = client.call("t", "{}", Some(300.0)).await.unwrap();
    let s = client.settled(id).await.unwrap().settled.unwrap();
    assert_eq!(s.outcome, Outcome::Unknown);
    assert!(s.why.contains("its limit of 64 MiB, and more was coming"), "{}", s.why);
    client.close().await;
}
