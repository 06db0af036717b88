//! The audit's fold and the journal's are held together: the same events end the same calls in the same way.

use super::tests::bytes_audited;
use super::*;
use crate::journal::Session;
use crate::journal::event::{Http, Kind as Event, Purpose, Transport};
use crate::record::entry::{Entry, What, line};
use crate::recording::import::Form;
use crate::time::Time;

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

/// The two folds, told the same.
struct Both(Session, Audit, Reader, u64);

impl Both {
    fn new() -> Both {
        let audit = Audit::new(Options::default());
        Both(Session::default(), audit, Reader::new(Form::Recording), 0)
    }

    fn tell(&mut self, kind: Event) {
        self.3 += 1;
        let e = Entry::new(self.3, Time(self.3 as i64), self.3, 1, What::Event(kind));
        self.0.apply(&e.event().unwrap());
        let (line, audit) = (line(&e), &mut self.1);
        self.2.line(self.3, line.trim_end().as_bytes(), &mut |at, f| audit.apply(at, f));
    }

    /// A call with the id 1; `meta`: raw, for its `_meta`.
    fn call(&mut self, meta: &str, exchange: Option<u64>) {
        let call = format!(
            r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{{"name":"t","arguments":{{}},"_meta":{meta}}}}}"#
        );
        self.tell(Event::Sent { raw: call.into(), exchange, purpose: Purpose::Asked });
    }

    fn same(&self, about: &str) {
        assert_eq!(ends(&self.1), session_ends(&self.0), "{about}");
    }
}

const META: &str = r#"{"io.modelcontextprotocol/protocolVersion":"2026-07-28"}"#;
/// What was agreed on, and what the call says of its revision.
const ERAS: [(Option<&str>, &str); 4] = [
    (None, "{}"),
    (Some("2025-11-25"), "{}"),
    (Some("2025-11-25"), META),
    (Some("2026-07-28"), META),
];

/// The members of an answer, and whether the call ends `ok`, `failed`, `unknown` or goes on waiting: before 2026-07-28, and
/// since.
const ANSWERS: [(&str, [&str; 2]); 16] = [
    (r#""result":{"content":[]}"#, ["ok"; 2]),
    (r#""result":{"content":[]},"error":null"#, ["ok"; 2]),
    (r#""error":null,"result":{"content":[]}"#, ["ok"; 2]),
    (r#""result":null,"error":{"code":-1,"message":"m"}"#, ["failed"; 2]),
    (r#""result":null,"error":null"#, ["unknown"; 2]),
    (r#""result":{"content":[]},"error":{"code":-1,"message":"m"}"#, ["unknown"; 2]),
    (r#""result":null"#, ["unknown"; 2]),
    (r#""error":"m""#, ["unknown"; 2]),
    (r#""x":1"#, ["unknown"; 2]),
    (r#""method":1,"result":{"content":[]}"#, ["unknown"; 2]),
    (r#""result":[]"#, ["unknown"; 2]),
    (r#""result":{"content":[],"resultType":1}"#, ["ok", "unknown"]),
    (r#""result":{"content":[],"resultType":null}"#, ["ok"; 2]),
    (r#""result":{"isError":true,"content":[],"resultType":1}"#, ["failed", "unknown"]),
    (r#""result":{"isError":"no","content":[]}"#, ["unknown"; 2]),
    (r#""result":{"content":[],"resultType":"odd"}"#, ["ok"; 2]),
];

#[test]
fn answers_mean_what_the_journal_says_they_mean() {
    for (agreed, meta) in ERAS {
        for http in [false, true] {
            for (answer, want) in ANSWERS {
                let about = format!("{answer}, agreed {agreed:?}, {meta}, http {http}");
                let mut both = Both::new();
                let exchange = http.then_some(2);
                both.tell(Event::Opened {
                    transport: match http {
                        true => Transport::Http { url: "u".into() },
                        false => Transport::Stdio { command: vec!["s".into()], pid: Some(1) },
                    },
                });
                if let Some(protocol) = agreed {
                    both.tell(Event::Agreed { protocol: protocol.into() });
                }
                both.call(meta, exchange);
                let raw = format!(r#"{{"jsonrpc":"2.0","id":1,{answer}}}"#);
                both.tell(Event::Received { raw: raw.into(), exchange });
                both.same(&about);
                let legacy = agreed.is_some() && meta != META;
                let want = want[usize::from(!legacy)];
                let end = (u64::from(want == "ok"), u64::from(want == "failed"));
                assert_eq!(
                    ends(&both.1),
                    (end.0, end.1, u64::from(want == "unknown"), 0),
                    "{about}"
                );
            }
        }
    }
    // A member like any other, before it meant something.
    let mut both = Both::new();
    both.tell(Event::Opened {
        transport: Transport::Stdio { command: vec!["s".into()], pid: Some(1) },
    });
    both.tell(Event::Agreed { protocol: "2025-11-25".into() });
    both.call("{}", None);
    let raw = r#"{"jsonrpc":"2.0","id":1,"result":{"content":[],"resultType":"input_required"}}"#;
    both.tell(Event::Received { raw: raw.into(), exchange: None });
    both.same("input_required");
    assert_eq!(ends(&both.1), (1, 0, 0, 0));
}

#[test]
fn a_doubt_about_the_session_ends_the_life_and_only_a_proof_the_call() {
    let plain = |status, text: &str| (status, Err(text.to_owned()));
    let error = |status, code: i32, m: &str| {
        let body =
            format!(r#"{{"jsonrpc":"2.0","id":null,"error":{{"code":{code},"message":"{m}"}}}}"#);
        (status, Ok(body))
    };
    for ((status, body), unknown, over) in [
        (error(400, -32000, "Bad Request: No valid session ID provided"), false, true),
        (error(400, -32000, "charged, then: no session"), true, true),
        (error(400, -32602, "bad arguments"), false, false),
        (error(500, -32000, "Session ID is required"), false, true),
        (error(401, -32000, "the upstream's session expired"), false, true),
        (plain(400, "Invalid session ID."), false, true),
        (plain(400, "database has no session for tenant 7"), true, true),
        (plain(500, "Session ID is required"), true, true),
        (plain(400, "nothing"), true, false),
    ] {
        let mut both = Both::new();
        both.tell(Event::Opened { transport: Transport::Http { url: "u".into() } });
        both.tell(Event::Http { exchange: 1, what: status_of(200, None, Some("session-1")) });
        both.call("{}", Some(2));
        both.tell(Event::Http { exchange: 2, what: status_of(status, None, None) });
        both.tell(match body.clone() {
            Ok(raw) => Event::Received { raw: raw.into(), exchange: Some(2) },
            Err(raw) => Event::Http { exchange: 2, what: Http::Body { raw: raw.into(), cut: 0 } },
        });
        both.tell(Event::Http { exchange: 2, what: Http::End });
        both.same(&format!("{status} {body:?}"));
        assert_eq!(ends(&both.1).2, u64::from(unknown), "{status} {body:?}");
        assert_eq!(both.1.lives()[&1].1.is_some(), over, "{status} {body:?}");
    }
}

fn status_of(status: u16, content_type: Option<&str>, session: Option<&str>) -> Http {
    Http::Status {
        status,
        content_type: content_type.map(str::to_owned),
        session: session.map(str::to_owned),
        www_authenticate: None,
        location: None,
    }
}

#[test]
fn http_exchanges_prove_what_the_journal_says_they_prove() {
    let rpc = |id: &str, body: &str| format!(r#"{{"jsonrpc":"2.0","id":{id},{body}}}"#);
    let error = |code: i32, m: &str| format!(r#""error":{{"code":{code},"message":"{m}"}}"#);
    let status = |status: u16| status_of(status, None, None);
    let failed = |connected| Http::Failed { why: "reset".into(), connected };
    let result = r#""result":{"content":[]}"#;
    type Step = (Option<Http>, Option<String>);
    let http = |h: Http| (Some(h), None);
    let said = |t: String| (None, Some(t));
    let stream = || http(status_of(200, Some("text/event-stream"), None));
    let redirected = || http(Http::Redirected { status: 307, to: "v".into() });
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
        ("401 result", vec![http(status(401)), said(rpc("1", result)), http(Http::End)]),
        ("429 error", vec![http(status(429)), said(rpc("1", &error(-1, "x"))), http(Http::End)]),
        ("403 near", vec![http(status(403)), said(rpc("\"1\"", &error(-1, "x"))), http(Http::End)]),
        ("413 other", vec![http(status(413)), said(rpc("7", &error(-1, "x"))), http(Http::End)]),
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
        (
            "400 doubt",
            vec![
                http(status(400)),
                said(rpc("null", &error(-32000, "charged, then: no session"))),
                http(Http::End),
            ],
        ),
        (
            "400 proof",
            vec![
                http(status(400)),
                said(rpc("null", &error(-32000, "Bad Request: No valid session ID provided"))),
                http(Http::End),
            ],
        ),
        (
            "400 own id",
            vec![
                http(status(400)),
                said(rpc("1", &error(-32000, "No valid session ID provided"))),
                http(Http::End),
            ],
        ),
        (
            "400 plain doubt",
            vec![http(status(400)), body("database has no session for tenant 7"), http(Http::End)],
        ),
        ("400 plain proof", vec![http(status(400)), body("Invalid session ID."), http(Http::End)]),
        (
            "500 proof",
            vec![
                http(status(500)),
                said(rpc("null", &error(-32000, "Session ID is required"))),
                http(Http::End),
            ],
        ),
        (
            "500 plain doubt",
            vec![http(status(500)), body("Session ID is required"), http(Http::End)],
        ),
        (
            "401 doubt",
            vec![
                http(status(401)),
                said(rpc("null", &error(-32000, "the upstream's session expired"))),
                http(Http::End),
            ],
        ),
        (
            "404 own id says so",
            vec![
                http(status(404)),
                said(rpc("1", &error(-32001, "Session not found"))),
                http(Http::End),
            ],
        ),
        (
            "404 near id says so",
            vec![
                http(status(404)),
                said(rpc("\"1\"", &error(-32001, "Session not found"))),
                http(Http::End),
            ],
        ),
        (
            "401 malformed",
            vec![http(status(401)), said(rpc("1", r#""result":null"#)), http(Http::End)],
        ),
        ("redirected, unreachable", vec![redirected(), http(failed(false))]),
        ("redirected, broke", vec![redirected(), http(failed(true))]),
        (
            "redirected, answered",
            vec![redirected(), http(status(200)), said(rpc("1", result)), http(Http::End)],
        ),
        (
            "no message",
            vec![
                http(status(200)),
                said(r#"{"id":1}"#.into()),
                said(rpc("1", result)),
                http(Http::End),
            ],
        ),
        (
            "malformed, no id",
            vec![http(status(200)), said(rpc("null", r#""result":null"#)), http(Http::End)],
        ),
        (
            "error, other id",
            vec![http(status(200)), said(rpc("7", &error(-32000, "x"))), http(Http::End)],
        ),
        (
            "stream, error without id",
            vec![
                stream(),
                said(rpc("null", &error(-32600, "x"))),
                said(rpc("1", result)),
                http(Http::End),
            ],
        ),
        (
            "stream, only an error without id",
            vec![stream(), said(rpc("null", &error(-32600, "x"))), http(Http::End)],
        ),
        (
            "stream, error of another id",
            vec![
                stream(),
                said(rpc("7", &error(-32600, "x"))),
                said(rpc("1", result)),
                http(Http::End),
            ],
        ),
        (
            "stream, near error",
            vec![stream(), said(rpc("\"1\"", &error(-32600, "x"))), http(Http::End)],
        ),
        ("stream, near result", vec![stream(), said(rpc("1.0", result)), http(Http::End)]),
        (
            "stream, malformed without id",
            vec![
                stream(),
                said(rpc("null", r#""result":null"#)),
                said(rpc("1", result)),
                http(Http::End),
            ],
        ),
        ("stream, malformed", vec![stream(), said(rpc("1", r#""result":null"#)), http(Http::End)]),
        ("stream, own error", vec![stream(), said(rpc("1", &error(-32600, "x"))), http(Http::End)]),
    ];
    for (session, meta) in [(false, "{}"), (true, "{}"), (false, META), (true, META)] {
        for (name, steps) in &table {
            let mut both = Both::new();
            both.tell(Event::Opened { transport: Transport::Http { url: "u".into() } });
            if session {
                both.tell(Event::Http {
                    exchange: 1,
                    what: status_of(200, None, Some("session-1")),
                });
            }
            both.tell(Event::Http {
                exchange: 2,
                what: Http::Request { method: "POST".into(), url: "u".into() },
            });
            both.call(meta, Some(2));
            for (what, text) in steps.clone() {
                both.tell(match (what, text) {
                    (Some(what), _) => Event::Http { exchange: 2, what },
                    (_, text) => Event::Received { raw: text.unwrap().into(), exchange: Some(2) },
                });
            }
            both.same(&format!("{name}, session {session}, {meta}"));
        }
    }
    // Where an answer may not come, or names another request, it settles none in either.
    let other = r#""result":{"content":[],"structuredContent":{"request_id":"x"}}"#;
    let get = || Http::Request { method: "GET".into(), url: "u".into() };
    for (http, on, resumes, apart, answer) in [
        (true, Some(3), false, false, result),
        (true, Some(3), true, false, result),
        (true, Some(3), false, true, result),
        (true, None, false, false, result),
        (true, Some(2), false, false, result),
        (true, Some(2), false, false, other),
        (false, None, false, false, other),
        (false, None, false, false, result),
    ] {
        let about = format!("on {on:?}, resumes {resumes}, apart {apart}, {answer}");
        let mut both = Both::new();
        both.tell(Event::Opened {
            transport: match http {
                true => Transport::Http { url: "u".into() },
                false => Transport::Stdio { command: vec!["s".into()], pid: Some(1) },
            },
        });
        let call = r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"t","arguments":{"request_id":"r"}}}"#;
        let exchange = http.then_some(2);
        both.tell(Event::Sent { raw: call.into(), exchange, purpose: Purpose::Asked });
        if http {
            both.tell(Event::Http {
                exchange: 2,
                what: status_of(200, Some("text/event-stream"), None),
            });
            if resumes {
                let what = Http::Resuming { last_event_id: "e".into(), after_ms: 0 };
                both.tell(Event::Http { exchange: 3, what });
            }
            both.tell(Event::Http { exchange: 3, what: get() });
            if apart {
                both.tell(Event::Http { exchange: 3, what: Http::Endpoint { url: "/m".into() } });
            }
        }
        both.tell(Event::Received { raw: rpc("1", answer).into(), exchange: on });
        both.same(&about);
        let good = answer == result && (!http || on == Some(2) || resumes || apart);
        assert_eq!(ends(&both.1).0, u64::from(good), "{about}");
        if http {
            both.tell(Event::Http { exchange: 2, what: Http::End });
            both.same(&about);
        }
    }
    // Where answers come on one stream the receipt of a POST is none, and its end is theirs.
    for (status, cut, count) in
        [(202, false, (1, 0, 0, 0)), (202, true, (0, 0, 1, 0)), (403, true, (0, 1, 0, 0))]
    {
        let mut both = Both::new();
        both.tell(Event::Opened { transport: Transport::Http { url: "u".into() } });
        both.tell(Event::Http { exchange: 3, what: get() });
        both.tell(Event::Http { exchange: 3, what: Http::Endpoint { url: "/m".into() } });
        both.call("{}", Some(2));
        both.tell(Event::Http { exchange: 2, what: status_of(status, Some("text/plain"), None) });
        both.tell(Event::Http { exchange: 2, what: Http::Body { raw: "Accepted".into(), cut: 0 } });
        both.tell(Event::Http {
            exchange: 2,
            what: match status {
                202 => Http::Failed { why: "cut".into(), connected: true },
                _ => Http::End,
            },
        });
        both.same(&format!("the receipt of {status}"));
        both.tell(match cut {
            true => Event::Http {
                exchange: 3,
                what: Http::Failed { why: "cut".into(), connected: true },
            },
            false => Event::Received { raw: rpc("1", result).into(), exchange: Some(3) },
        });
        both.same(&format!("{status}, cut {cut}"));
        assert_eq!(ends(&both.1), count, "{status}, cut {cut}");
    }
    // What should have been an answer and is no JSON.
    for (line, unknown) in [
        (r#"{"jsonrpc":"2.0","id":1,"result":{"v":NaN}}"#, 1),
        (r#"{"jsonrpc":"2.0","id":1,"result":{"#, 1),
        (r#"{"jsonrpc":"2.0","id":2,"result":{"#, 0),
        (r#"log {"jsonrpc":"2.0","id":1,"result":{}}"#, 0),
        (r#"{"level":"info","id":1}"#, 0),
    ] {
        for noise in [true, false] {
            let mut both = Both::new();
            both.tell(Event::Opened {
                transport: Transport::Stdio { command: vec!["s".into()], pid: Some(1) },
            });
            both.call("{}", None);
            both.tell(match noise {
                true => Event::Noise { raw: line.into(), cut: 0 },
                false => Event::Received { raw: line.into(), exchange: None },
            });
            both.same(line);
            assert_eq!(ends(&both.1).2, unknown, "{line}");
        }
    }
    let mut both = Both::new();
    both.tell(Event::Opened { transport: Transport::Http { url: "u".into() } });
    both.call("{}", None);
    both.tell(Event::Note(crate::journal::Note::NoAnswer { call: 2, why: "w".into() }));
    both.same("no answer");
    assert_eq!(ends(&both.1).2, 1);
    // An answer that could not be read.
    let mut both = Both::new();
    both.tell(Event::Opened { transport: Transport::Http { url: "u".into() } });
    both.call("{}", Some(2));
    both.tell(Event::Http { exchange: 2, what: status_of(200, None, None) });
    both.tell(Event::Http { exchange: 2, what: Http::Unreadable { why: "zipped".into() } });
    both.same("unreadable");
    assert_eq!(ends(&both.1).2, 1);
    // The answer to what is no request settles none, nor does one that is another call's.
    for (status, id) in [(400, "1"), (200, "1"), (200, "null")] {
        let mut both = Both::new();
        both.tell(Event::Opened { transport: Transport::Http { url: "u".into() } });
        both.call("{}", Some(2));
        let raw = r#"{"jsonrpc":"2.0","method":"notifications/x"}"#.into();
        both.tell(Event::Sent { raw, exchange: Some(3), purpose: Purpose::Asked });
        both.tell(Event::Http { exchange: 3, what: status_of(status, None, None) });
        let raw = rpc(id, &error(-32000, "x")).into();
        both.tell(Event::Received { raw, exchange: Some(3) });
        both.same(&format!("{status} on another exchange, id {id}"));
    }
}
