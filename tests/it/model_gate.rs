//! What a repeat would be and whether it still may go out, over a real ledger and a server that says exactly what
//! it is told to.

use super::support::cli::{FakeStdio, make_ledger, tool};
use super::support::fake_http::{FakeHttp, result};
use redial::client::{Client, Endpoint, Settings};
use redial::error::Exit;
use redial::inspect::Inspector;
use redial::inspect::reissue::Wish;
use redial::inspect::release::{Again, Anew, Release};
use redial::judge::agreement::Fact;
use redial::judge::{Ask, Rules};
use redial::ledger::Ledger;
use redial::model::arguments::{Candidate, Source};
use redial::time::Time;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex};

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
    // While the question stood another request with these arguments was finished.
    let db = rusqlite::Connection::open(fake.path("ledger.db")).unwrap();
    db.execute_batch(&row("twin", &hash)).unwrap();
    let anew = anew(inspector.release(&prepared.agreed(Some("r"), true)).await.unwrap());
    assert_eq!((anew.prepared.decision.ask, fake.calls()), (Ask::Type, 0));
    assert_eq!(facts(&anew)[0], Fact::Twins);
    // Who shows nothing is stopped, with the same words.
    let stopped = inspector.carry_out(&prepared, Some("r")).await.unwrap_err();
    assert_eq!((stopped.exit, fake.calls()), (Exit::Gate, 0), "{stopped}");
    assert!(stopped.what.contains("things have changed"), "{stopped}");
    let Release::Sent(released) =
        inspector.release(&anew.prepared.agreed(Some("r"), true)).await.unwrap()
    else {
        panic!("nothing has changed since")
    };
    assert_eq!((released.call.word(), fake.calls()), ("ok", 1));
    inspector.client().unwrap().close().await;
}

fn anew(release: Release) -> Anew {
    match release {
        Release::Changed(anew) => *anew,
        Release::Sent(sent) => panic!("it was sent: {:?}", sent.call),
    }
}

fn facts(anew: &Anew) -> Vec<Fact> {
    anew.changes.iter().map(|c| c.fact).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn whatever_changes_while_a_question_stands_is_asked_about_anew() {
    let fake = FakeStdio::new();
    fake.tools(&format!("[{}]", tool("create_ticket", ""))).answers("call", "{}");
    let args = r#"{"request_id":"r","title":"a"}"#;
    let hash = redial::ledger::hash::args_hash(args).unwrap();
    make_ledger(
        &fake.path("ledger.db"),
        &format!(
            "INSERT INTO requests VALUES ('r', '{hash}', 'running', NULL, 'A', {});",
            Time::now().0 / 1_000_000 - 300
        ),
    );
    let inspector = inspector(&fake).await;
    let db = rusqlite::Connection::open(fake.path("ledger.db")).unwrap();
    let mut prepared = inspector.prepare(&wish(&[(args, None)])).await.unwrap();
    for (sql, fact) in [
        ("UPDATE requests SET owner = 'B'", Fact::Owner),
        ("UPDATE requests SET claimed_at = claimed_at + 1", Fact::Owner),
        ("UPDATE requests SET args_hash = 'other'", Fact::Row),
        ("INSERT INTO tickets VALUES ('T-1', 'r', 't', 'b')", Fact::Effects),
        ("INSERT INTO tickets VALUES ('T-2', 'somebody', 't', 'b')", Fact::Total),
        ("UPDATE requests SET status = 'done', result = '{}'", Fact::State),
        ("UPDATE requests SET result = '{\"x\":1}'", Fact::Row),
        ("DELETE FROM requests", Fact::State),
    ] {
        db.execute_batch(sql).unwrap();
        let anew = anew(inspector.release(&prepared.agreed(Some("r"), true)).await.unwrap());
        assert!(facts(&anew).contains(&fact), "{sql}: {:?}", anew.changes);
        prepared = anew.prepared;
        // Asked anew, and nothing more has come.
        let terms = prepared.terms.clone();
        let again = inspector.prepare(&prepared.wish).await.unwrap();
        assert_eq!(terms.changes(&again.terms, again.since), [], "{sql}");
    }
    assert_eq!(fake.calls(), 0);
    // Others that go on writing are told of once, and then no longer asked about.
    db.execute_batch("INSERT INTO tickets VALUES ('T-3', 'another', 't', 'b')").unwrap();
    let sent = inspector.release(&prepared.agreed(Some("r"), true)).await.unwrap();
    assert!(matches!(sent, Release::Sent(_)), "{sent:?}");
    assert_eq!(fake.calls(), 1);
    inspector.client().unwrap().close().await;
}

/// A server over HTTP that another one can take the place of: what it says of itself and of its tool is read from here.
struct Swapped {
    fake: FakeHttp,
    says: Arc<Mutex<(&'static str, &'static str)>>,
}

const NAMED: &str = r#"{"name":"first","version":"1"}"#;
const REPEATABLE: &str = r#"[{"name":"create_ticket","inputSchema":{"type":"object","properties":{"request_id":{"type":"string"}}},"annotations":{"idempotentHint":true}}]"#;
const UNSAFE: &str = r#"[{"name":"create_ticket","inputSchema":{"type":"object","properties":{"request_id":{"type":"string"}}},"annotations":{"idempotentHint":false}}]"#;
const OTHER_SCHEMA: &str = r#"[{"name":"create_ticket","inputSchema":{"type":"object","properties":{"request_id":{"type":"string"},"n":{}}},"annotations":{"idempotentHint":true}}]"#;

impl Swapped {
    fn new(modern: bool) -> Swapped {
        let says = Arc::new(Mutex::new((NAMED, REPEATABLE)));
        let now = says.clone();
        let fake = FakeHttp::any(move |method, request, out, _| {
            let (name, tools) = *now.lock().unwrap();
            let r = match (method, modern) {
                ("initialize", false) => format!(
                    r#"{{"protocolVersion":"2025-11-25","capabilities":{{"tools":{{}}}},"serverInfo":{name}}}"#
                ),
                ("server/discover", true) => format!(
                    r#"{{"resultType":"complete","supportedVersions":["2026-07-28"],"capabilities":{{"tools":{{}}}},"ttlMs":0,"cacheScope":"private","_meta":{{"io.modelcontextprotocol/serverInfo":{name}}}}}"#
                ),
                ("tools/list", _) => format!(
                    r#"{{"resultType":"complete","tools":{tools},"ttlMs":0,"cacheScope":"private"}}"#
                ),
                ("tools/call", _) => {
                    r#"{"resultType":"complete","content":[{"type":"text","text":"{}"}]}"#.into()
                }
                _ => return false,
            };
            result(request, out, &r);
            true
        });
        Swapped { fake, says }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_took_the_place_of_another_is_asked_about_anew() {
    for modern in [false, true] {
        let server = Swapped::new(modern);
        let endpoint = Endpoint::Http { url: server.fake.url(), headers: vec![] };
        let client = Client::start(endpoint, Settings::default());
        client.ready().await.unwrap();
        let inspector = Inspector::new(None, Some(client.clone()), Rules::default());
        let args = r#"{"request_id":"r","title":"a"}"#;
        let mut prepared = inspector.prepare(&wish(&[(args, None)])).await.unwrap();
        assert!(prepared.decision.ask < Ask::Type, "{:?}", prepared.decision);
        for (says, fact) in [
            ((NAMED, UNSAFE), Fact::Hints),
            ((NAMED, OTHER_SCHEMA), Fact::Tool),
            ((r#"{"name":"second","version":"1"}"#, OTHER_SCHEMA), Fact::Server),
            ((NAMED, r#"[]"#), Fact::Tool),
            ((NAMED, REPEATABLE), Fact::Tool),
        ] {
            *server.says.lock().unwrap() = says;
            let released = inspector.release(&prepared.agreed(Some("r"), true)).await.unwrap();
            let anew = anew(released);
            assert!(facts(&anew).contains(&fact), "{modern} {says:?}: {:?}", anew.changes);
            prepared = anew.prepared;
        }
        assert_eq!(server.fake.calls.load(Ordering::SeqCst), 0, "modern: {modern}");
        let sent = inspector.release(&prepared.agreed(Some("r"), true)).await.unwrap();
        assert!(matches!(sent, Release::Sent(_)), "{sent:?}");
        // A tool that only read when it was listed, in a mode that lets nothing else run.
        let mut reading = inspector.clone();
        reading.read_only = true;
        let reads = r#"[{"name":"create_ticket","annotations":{"readOnlyHint":true}}]"#;
        *server.says.lock().unwrap() = (NAMED, reads);
        reading.again(Again::Now).await.unwrap();
        let prepared = reading.prepare(&wish(&[(args, None)])).await.unwrap();
        assert_eq!(prepared.decision.ask, Ask::None);
        *server.says.lock().unwrap() = (NAMED, UNSAFE);
        let stopped = reading.carry_out(&prepared, None).await.unwrap_err();
        assert_eq!(stopped.exit, Exit::Gate, "{stopped}");
        assert_eq!(server.fake.calls.load(Ordering::SeqCst), 1);
        client.close().await;
    }
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
