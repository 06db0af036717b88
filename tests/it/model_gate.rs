//! What a repeat would be and whether it still may go out, over a real ledger and a server that says exactly what
//! it is told to.

use super::support::cli::{FakeStdio, make_ledger, tool};
use redial::client::{Client, Endpoint, Settings};
use redial::error::Exit;
use redial::inspect::Inspector;
use redial::inspect::reissue::{Agreed, Wish};
use redial::judge::{Ask, Rules};
use redial::ledger::Ledger;
use redial::model::arguments::{Candidate, Source};
use redial::time::Time;

const IDEMPOTENT: &str = r#""idempotentHint":true"#;

async fn inspector(fake: &FakeStdio) -> Inspector {
    let command = fake.command().split_off(1);
    let endpoint = Endpoint::Stdio { command, env: vec![], cwd: None };
    let client = Client::start(endpoint, Settings::default());
    client.ready().await.unwrap();
    Inspector::new(Some(Ledger::open(fake.path("ledger.db"))), Some(client), Rules::default())
}

fn row(id: &str, hash: &str) -> String {
    format!("INSERT INTO requests VALUES ('{id}', '{hash}', 'done', '{{}}', 'A', 1795963560.0);")
}

fn wish(candidates: &[(&str, Option<&str>)]) -> Wish {
    let candidate = |(args, tool): &(&str, Option<&str>)| Candidate {
        args: (*args).to_owned(),
        tool: tool.map(str::to_owned),
        source: Source::Transcript("log".into()),
    };
    Wish {
        request_id: Some("r".into()),
        candidates: candidates.iter().map(candidate).collect(),
        ..Wish::default()
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_agreed_to_is_decided_again_before_it_goes_out() {
    let fake = FakeStdio::new();
    fake.tools(&format!("[{}]", tool("create_ticket", IDEMPOTENT))).answers("call", "{}");
    let args = r#"{"request_id":"r","title":"a"}"#;
    let hash = redial::ledger::hash::args_hash(args).unwrap();
    make_ledger(&fake.path("ledger.db"), &row("r", &hash));
    let inspector = inspector(&fake).await;
    let prepared = inspector.prepare(&wish(&[(args, None)])).await.unwrap();
    assert!(prepared.decision.ask < Ask::Type, "{:?}", prepared.decision);
    let agreed = Agreed {
        wish: &prepared.wish,
        tool: &prepared.tool,
        args: &prepared.args,
        ask: prepared.decision.ask,
        confirmed: Some("r"),
    };
    // While the question stood another request with these arguments was finished.
    let db = rusqlite::Connection::open(fake.path("ledger.db")).unwrap();
    db.execute_batch(&row("twin", &hash)).unwrap();
    let stopped = inspector.release(&agreed).await.unwrap_err();
    assert_eq!((stopped.exit, fake.calls()), (Exit::Gate, 0), "{stopped}");
    assert!(stopped.what.contains("things have changed"), "{stopped}");
    let released = inspector.release(&Agreed { ask: Ask::Type, ..agreed }).await.unwrap();
    assert_eq!((released.call.word(), fake.calls()), ("ok", 1));
    inspector.client().unwrap().close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn arguments_come_with_the_tool_they_were_sent_to() {
    let fake = FakeStdio::new();
    let tools = [tool("create_ticket", IDEMPOTENT), tool("close_ticket", IDEMPOTENT)].join(",");
    fake.tools(&format!("[{tools}]"));
    let (create, close) = (r#"{"request_id":"r","title":"a"}"#, r#"{"request_id":"r","id":7}"#);
    let hash = redial::ledger::hash::args_hash(close).unwrap();
    make_ledger(&fake.path("ledger.db"), &row("r", &hash));
    let inspector = inspector(&fake).await;
    let both = wish(&[(create, Some("create_ticket")), (close, Some("close_ticket"))]);
    let prepared = inspector.prepare(&both).await.unwrap();
    assert_eq!((&*prepared.tool, &*prepared.args), ("close_ticket", close));
    // A tool that was called and is no longer there is not replaced by another one.
    let gone = wish(&[(close, Some("close_tickets"))]);
    let error = inspector.prepare(&gone).await.unwrap_err();
    assert_eq!(error.exit, Exit::Usage, "{error}");
    assert!(error.hint.is_some_and(|h| h.contains("close_ticket?")));
    // No call names it, and two fit.
    let error = inspector.prepare(&wish(&[(close, None)])).await.unwrap_err();
    assert!(error.what.contains("several tools"), "{error}");
    inspector.client().unwrap().close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn rows_that_cannot_be_read_are_not_missing() {
    let fake = FakeStdio::new();
    fake.tools(&format!("[{}]", tool("create_ticket", IDEMPOTENT))).answers("call", "{}");
    make_ledger(&fake.path("ledger.db"), "");
    let inspector = inspector(&fake).await;
    let client = inspector.client().unwrap().clone();
    let call = client.call("create_ticket", r#"{"request_id":"r"}"#, None).await.unwrap();
    client.settled(call).await.unwrap();
    let lines = async || {
        let overview = inspector.overview(|| async {}).await.unwrap_or_default();
        let judging = inspector.judging(overview).await;
        inspector.rowless_lines(&judging, Time::now())
    };
    let before = lines().await;
    assert_eq!(before.iter().map(|l| l.id()).collect::<Vec<_>>(), ["r"]);
    std::fs::write(fake.path("ledger.db"), "no ledger any more").unwrap();
    assert_eq!(lines().await, [], "nobody can say that it has no row");
    client.close().await;
}
