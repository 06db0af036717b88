use super::*;
use crate::recording::import::{Form, form};

fn audited(text: &str, contracts: Option<&str>) -> Audit {
    let options = Options {
        contracts: contracts.map(|c| Contracts::parse("c", c).unwrap()),
        look_up: "find_request".into(),
        ..Options::default()
    };
    let mut audit = Audit::new(options);
    let mut reader = Reader::new(form(text.as_bytes()));
    for (n, line) in text.lines().enumerate() {
        reader.line(n as u64 + 1, line.as_bytes(), &mut |at, fact| audit.apply(at, fact));
    }
    audit
}

fn found(audit: &Audit) -> Vec<(String, Option<u64>, Option<String>)> {
    let all = audit.findings();
    all.list().iter().map(|f| (f.kind.word().to_owned(), f.call, f.value.clone())).collect()
}

const CONTRACTS: &str = "[tools.create_basket]\nproduces='basket_id'\n[tools.add_item]\nrequires='basket_id'\n[tools.checkout]\nrequires='basket_id'";

#[test]
fn the_articles_two_traces() {
    let ok = r#"{"tool":"create_basket","arguments":{},"result":{"basket_id":"b-781"}}
{"tool":"add_item","arguments":{"basket_id":"b-781","sku":"book-42"}}
{"tool":"checkout","arguments":{"basket_id":"b-781"}}"#;
    let unknown = r#"{"tool":"create_basket","arguments":{},"result":{"basket_id":"b-781"}}
{"tool":"add_item","arguments":{"basket_id":"b-999","sku":"book-42"}}"#;
    assert_eq!(form(ok.as_bytes()), Form::Trace);
    for contracts in [Some(CONTRACTS), None] {
        assert_eq!(found(&audited(ok, contracts)), []);
        let a = audited(unknown, contracts);
        assert_eq!(found(&a), [("unminted_handle".into(), Some(2), Some("b-999".into()))]);
        let all = a.findings();
        let f = &all.list()[0];
        assert_eq!((f.tool.as_deref(), f.handle.as_deref()), (Some("add_item"), Some("basket_id")));
        assert!(f.message.starts_with("add_item: basket_id='b-999' was not made in this trace"));
        assert_eq!(f.inferred, contracts.is_none());
    }
}

fn bytes_audited(bytes: &[u8], mut options: Options) -> Audit {
    options.look_up = "find_request".into();
    let mut audit = Audit::new(options);
    let mut reader = Reader::new(form(bytes));
    for (n, line) in bytes.split(|b| *b == b'\n').enumerate() {
        reader.line(n as u64 + 1, line, &mut |at, fact| audit.apply(at, fact));
    }
    audit
}

/// The kinds and what each is about, as `expected.json` spells them.
fn told(f: &Finding, words: &[String]) -> bool {
    let about = [f.value.clone(), f.tool.clone(), f.handle.clone(), f.call.map(|c| c.to_string())];
    f.kind.word() == words[0]
        && about.iter().flatten().any(|a| *a == words[1])
        && words.iter().skip(2).all(|w| f.message.contains(w) || about.contains(&Some(w.clone())))
}

#[test]
fn fifteen_traces_give_what_they_must_and_nothing_else() {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/audit");
    let expected = std::fs::read_to_string(folder.join("expected.json")).unwrap();
    let all: serde_json::Value = serde_json::from_str(&expected).unwrap();
    let all = all.as_object().unwrap();
    assert_eq!(all.len(), 15);
    for (name, want) in all {
        let bytes = std::fs::read(folder.join(format!("{name}.jsonl"))).unwrap();
        let audit = bytes_audited(&bytes, Options::default());
        let findings = audit.findings();
        let said: Vec<String> =
            findings.list().iter().map(|f| format!("{}: {}", f.kind.word(), f.message)).collect();
        let must: Vec<Vec<String>> = serde_json::from_value(want["findings"].clone()).unwrap();
        assert_eq!(findings.list().len(), must.len(), "{name}: {said:#?}");
        for words in &must {
            // Two that are alike need two findings; one finding may not stand for both.
            let hits = findings.list().iter().filter(|f| told(f, words)).count();
            assert_eq!(hits, 1, "{name}: {words:?} in {said:#?}");
        }
        let absent: Vec<String> = serde_json::from_value(want["absent"].clone()).unwrap();
        for kind in absent {
            assert!(!findings.list().iter().any(|f| f.kind.word() == kind), "{name}: {kind}");
        }
    }
}

/// Calls by how they ended: ok, failed or not run, unknown, waiting.
fn ends(audit: &Audit) -> (u64, u64, u64, u64) {
    let sum = |f: fn(&fold::Tool) -> u64| audit.tools.iter().map(f).sum();
    (sum(|t| t.ok), sum(|t| t.failed), sum(|t| t.unknown), audit.unanswered() as u64)
}

fn session_ends(s: &crate::journal::Session) -> (u64, u64, u64, u64) {
    use crate::journal::Outcome;
    let n =
        |f: fn(Option<Outcome>) -> bool| s.calls.values().filter(|c| f(c.outcome())).count() as u64;
    (
        n(|o| o == Some(Outcome::Ok)),
        n(|o| {
            matches!(
                o,
                Some(Outcome::ToolError | Outcome::RpcError | Outcome::NotSent | Outcome::Refused)
            )
        }),
        n(|o| o == Some(Outcome::Unknown)),
        n(|o| o.is_none()),
    )
}

#[test]
fn calls_end_as_the_journals_fold_ends_them() {
    let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut seen = 0;
    for folder in ["sample-sessions", "tests/fixtures/audit"] {
        for file in std::fs::read_dir(root.join(folder)).unwrap() {
            let path = file.unwrap().path();
            if path.extension().is_none_or(|e| e != "jsonl") {
                continue;
            }
            let audit = bytes_audited(&std::fs::read(&path).unwrap(), Options::default());
            let recording = crate::recording::Recording::open(&path).unwrap();
            let mut want = session_ends(&recording.session);
            if path.ends_with("input-required.jsonl") {
                // Two rounds are one call for both.
                assert_eq!(audit.calls, recording.session.calls.len() as u64);
            }
            // An earlier call whose id was used again waits for ever there, and here.
            want.3 = want.3.max(ends(&audit).3);
            assert_eq!(ends(&audit), want, "{}", path.display());
            seen += 1;
        }
    }
    assert!(seen >= 24, "{seen}");
}

#[test]
fn http_exchanges_prove_what_the_journal_says_they_prove() {
    use crate::journal::event::{Http, Kind as Event, Purpose, Transport};
    use crate::record::entry::{Entry, What, line};
    use crate::time::Time;
    let rpc = |id: &str, body: &str| format!(r#"{{"jsonrpc":"2.0","id":{id},{body}}}"#);
    let error = |code: i32, m: &str| format!(r#""error":{{"code":{code},"message":"{m}"}}"#);
    let status = |status: u16| Http::Status {
        status,
        content_type: None,
        session: None,
        www_authenticate: None,
        location: None,
    };
    let failed = |connected| Http::Failed { why: "reset".into(), connected };
    let result = r#""result":{"content":[]}"#;
    type Step = (Option<Http>, Option<String>);
    let http = |h: Http| (Some(h), None);
    let said = |t: String| (None, Some(t));
    let body = |t: &str| http(Http::Body { raw: t.to_owned().into(), cut: 0 });
    let table: Vec<(&str, Vec<Step>)> = vec![
        ("answered", vec![http(status(200)), said(rpc("1", result)), http(Http::End)]),
        ("never sent", vec![http(failed(false))]),
        ("broke before", vec![http(failed(true))]),
        ("broke after", vec![http(status(200)), http(failed(true))]),
        ("ended empty", vec![http(status(200)), http(Http::End)]),
        ("401", vec![http(status(401)), http(Http::End)]),
        ("429 plain", vec![http(status(429)), body("slow down"), http(Http::End)]),
        (
            "lost",
            vec![
                http(status(404)),
                said(rpc("null", &error(-32001, "Session not found"))),
                http(Http::End),
            ],
        ),
        (
            "lost, other id",
            vec![
                http(status(404)),
                said(rpc("\"server-error\"", &error(-32600, "Session not found"))),
                http(Http::End),
            ],
        ),
        (
            "404 own id",
            vec![
                http(status(404)),
                said(rpc("1", &error(-32601, "Method not found"))),
                http(Http::End),
            ],
        ),
        ("lost, plain", vec![http(status(404)), body("no session"), http(Http::End)]),
        (
            "500 own",
            vec![http(status(500)), said(rpc("1", &error(-32603, "boom"))), http(Http::End)],
        ),
        (
            "500 other",
            vec![http(status(500)), said(rpc("null", &error(-32603, "boom"))), http(Http::End)],
        ),
        (
            "502 page",
            vec![http(status(502)), body("<html><title>Bad gateway</title>"), http(Http::End)],
        ),
        (
            "503 rpc",
            vec![http(status(503)), said(rpc("1", &error(-32000, "busy"))), http(Http::End)],
        ),
        ("400 result", vec![http(status(400)), said(rpc("1", result)), http(Http::End)]),
        (
            "400 params",
            vec![http(status(400)), said(rpc("1", &error(-32602, "bad"))), http(Http::End)],
        ),
        (
            "error, no id",
            vec![http(status(200)), said(rpc("null", &error(-32000, "x"))), http(Http::End)],
        ),
        ("other id", vec![http(status(200)), said(rpc("7", result)), http(Http::End)]),
        ("near id", vec![http(status(200)), said(rpc("\"1\"", result)), http(Http::End)]),
        (
            "null result",
            vec![http(status(200)), said(rpc("1", r#""result":null"#)), http(Http::End)],
        ),
        (
            "odd isError",
            vec![
                http(status(200)),
                said(rpc("1", r#""result":{"isError":"no"}"#)),
                http(Http::End),
            ],
        ),
        (
            "tool error",
            vec![
                http(status(200)),
                said(rpc("1", r#""result":{"isError":true,"content":[]}"#)),
                http(Http::End),
            ],
        ),
        ("redirect", vec![http(status(307)), http(Http::End)]),
        (
            "answer twice",
            vec![
                http(status(200)),
                said(rpc("1", result)),
                said(rpc("1", result)),
                http(Http::End),
            ],
        ),
    ];
    for session in [false, true] {
        for (name, steps) in &table {
            let (mut session_fold, mut audit) =
                (crate::journal::Session::default(), Audit::new(Options::default()));
            let mut reader = Reader::new(Form::Recording);
            let mut seq = 0;
            let mut tell = |kind: Event| {
                seq += 1;
                let e = Entry::new(seq, Time(seq as i64), seq, 1, What::Event(kind));
                session_fold.apply(&e.event().unwrap());
                reader.line(seq, line(&e).trim_end().as_bytes(), &mut |at, f| audit.apply(at, f));
            };
            tell(Event::Opened { transport: Transport::Http { url: "u".into() } });
            if session {
                let named = Http::Status {
                    status: 200,
                    content_type: None,
                    session: Some("session-1".into()),
                    www_authenticate: None,
                    location: None,
                };
                tell(Event::Http { exchange: 1, what: named });
            }
            let call = r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"t","arguments":{}}}"#;
            tell(Event::Http {
                exchange: 2,
                what: Http::Request { method: "POST".into(), url: "u".into() },
            });
            tell(Event::Sent { raw: call.into(), exchange: Some(2), purpose: Purpose::Asked });
            for (what, text) in steps.clone() {
                tell(match (what, text) {
                    (Some(what), _) => Event::Http { exchange: 2, what },
                    (_, text) => Event::Received { raw: text.unwrap().into(), exchange: Some(2) },
                });
            }
            assert_eq!(ends(&audit), session_ends(&session_fold), "{name}, session {session}");
        }
    }
}

#[test]
fn forty_thousand_lines_and_nothing_to_say() {
    use std::fmt::Write;
    let mut text = String::from(
        "{\"t\": 1790000000.25, \"dir\": \"proc\", \"event\": \"start\", \"pid\": 101}\n",
    );
    for n in 0..20_000 {
        let t = 1_790_000_001.0 + f64::from(n);
        writeln!(text, r#"{{"t": {t}, "dir": "out", "msg": {{"jsonrpc": "2.0", "id": {n}, "method": "tools/call", "params": {{"name": "lookup_ticket", "arguments": {{"id": {n}}}}}}}}}"#).unwrap();
        writeln!(text, r#"{{"t": {t}, "dir": "in", "msg": {{"jsonrpc": "2.0", "id": {n}, "result": {{"content": [{{"type": "text", "text": "ticket {n}"}}], "isError": false}}}}}}"#).unwrap();
    }
    let audit = bytes_audited(text.as_bytes(), Options::default());
    assert_eq!((audit.calls, audit.findings().total()), (20_000, 0));
}
