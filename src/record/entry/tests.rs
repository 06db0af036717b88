use super::*;
use crate::journal::event::{Http, LinkState, Purpose, Transport};
use crate::procs::{Left, Process};
use proptest::prelude::*;

fn entry(what: What) -> Entry {
    Entry::new(3, Time(1_795_963_550_611_770), 42, 2, what)
}

fn kinds() -> Vec<What> {
    let b = |s: &str| Bytes::copy_from_slice(s.as_bytes());
    let k = What::Event;
    vec![
        k(Kind::Opened {
            transport: Transport::Stdio { command: vec!["a b".into(), "\"".into()], pid: Some(7) },
        }),
        k(Kind::Opened { transport: Transport::Http { url: "http://127.0.0.1:1/mcp".into() } }),
        k(Kind::Sent {
            raw: b(r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#),
            exchange: Some(4),
            purpose: Purpose::Probe,
        }),
        k(Kind::Received { raw: b(r#"{"jsonrpc":"2.0","id":1,"result":{}}"#), exchange: None }),
        k(Kind::Received { raw: Bytes::from_static(b"\xff\x00{"), exchange: None }),
        k(Kind::Noise { raw: b("日本\u{1b}[2J"), cut: 9 }),
        k(Kind::Stderr { raw: b("") }),
        k(Kind::NotWritten { sent: 2, why: "w".into(), left: false }),
        k(Kind::Http {
            exchange: 1,
            what: Http::Request { method: "POST".into(), url: "u".into() },
        }),
        k(Kind::Http {
            exchange: 1,
            what: Http::Status {
                status: 404,
                content_type: Some("c".into()),
                session: None,
                www_authenticate: Some("w".into()),
                location: None,
            },
        }),
        k(Kind::Http { exchange: 1, what: Http::Body { raw: b("<html>"), cut: 0 } }),
        k(Kind::Http { exchange: 1, what: Http::Redirected { status: 307, to: "t".into() } }),
        k(Kind::Http { exchange: 1, what: Http::End }),
        k(Kind::Http { exchange: 1, what: Http::Failed { why: "w".into(), connected: false } }),
        k(Kind::Http { exchange: 1, what: Http::Flow { bytes: 5, keepalives: 2 } }),
        k(Kind::Http {
            exchange: 1,
            what: Http::Resuming { last_event_id: "e".into(), after_ms: 9 },
        }),
        k(Kind::Http { exchange: 1, what: Http::Partial { raw: b("{\"a") } }),
        k(Kind::Sent { raw: b("{}"), exchange: None, purpose: Purpose::FollowUp { call: 2 } }),
        k(Kind::Note(Note::StoppedWaiting { call: 3 })),
        k(Kind::Note(Note::Limit { call: 3, limit_s: 0.5, extends: true })),
        k(Kind::Note(Note::LeftOpen { call: 3, why: "w".into() })),
        k(Kind::StdoutClosed),
        k(Kind::Exit { code: None, signal: Some(9), left: crate::procs::Left::Nobody }),
        k(Kind::Exit { code: Some(137), signal: None, left: crate::procs::Left::Perhaps }),
        k(Kind::Agreed { protocol: "2025-11-25".into() }),
        k(Kind::State {
            state: LinkState::Waiting { until: Time(5_000_001), attempt: 2 },
            why: "w".into(),
        }),
        k(Kind::State { state: LinkState::Ready, why: "w".into() }),
        k(Kind::Note(Note::TimedOut { call: 3, after_s: 1.5 })),
        k(Kind::Note(Note::Cancelled { call: 3 })),
        k(Kind::Note(Note::Text("t".into()))),
        What::Part { side: Side::Sent, raw: b("{\"a\":") },
        What::StdinClosed,
        What::Gap { events: 2, bytes: 30, why: "disk full".into() },
    ]
}

/// What came after the golden file was written down.
fn younger_kinds() -> Vec<What> {
    let notes = [
        Note::Ending { why: "w".into() },
        Note::Stdin { from: 3, full: true },
        Note::Stopped { who: Some(Process { pid: 4711, name: "s.py".into() }) },
        Note::Outlived {
            code: Some(0),
            signal: None,
            left: Left::These(vec![Process { pid: 7, name: "w".into() }]),
        },
        Note::Outlived { code: None, signal: Some(9), left: Left::Perhaps },
        Note::Stopped { who: None },
        Note::Remark { call: 3, text: "r".into() },
        Note::NoAnswer { call: 3, why: "w".into() },
    ];
    let steps = [
        Http::Through { proxy: "p".into() },
        Http::Endpoint { url: "/m".into() },
        Http::Unreadable { why: "w".into() },
    ];
    let steps = steps.map(|what| What::Event(Kind::Http { exchange: 1, what }));
    let worker = Process { pid: 4711, name: "wor\"ker.py".into() };
    let left = Left::These(vec![worker]);
    let exit = What::Event(Kind::Exit { code: None, signal: Some(9), left });
    notes.map(|n| What::Event(Kind::Note(n))).into_iter().chain(steps).chain([exit]).collect()
}

#[test]
fn every_kind_comes_back_as_it_was() {
    for what in kinds().into_iter().chain(younger_kinds()) {
        let mut e = entry(what);
        if matches!(e.what, What::Event(Kind::Noise { .. })) {
            e.wire.cut = 9;
        }
        let text = line(&e);
        assert!(text.ends_with("}\n") && text.matches('\n').count() == 1, "{text}");
        assert_eq!(decode(text.trim_end().as_bytes()), Line::Entry(e), "{text}");
    }
}

#[test]
fn a_bare_certain_proves_nothing() {
    let read = |exit: &str| {
        let line = format!(
            r#"{{"seq":3,"at":"2026-11-29T02:59:10.611770Z","mono_us":42,"generation":2,"kind":"exit","signal":9{exit}}}"#
        );
        match decode(line.as_bytes()) {
            Line::Entry(Entry { what: What::Event(Kind::Exit { left, .. }), .. }) => left,
            other => panic!("{other:?}"),
        }
    };
    assert_eq!(read(r#","certain":true,"left":[]"#), Left::Nobody);
    let one = Left::These(vec![Process { pid: 7, name: "w".into() }]);
    assert_eq!(read(r#","certain":true,"left":[{"pid":7,"name":"w"}]"#), one);
    for exit in [r#","certain":true"#, "", r#","left":[]"#, r#","certain":true,"left":{}"#] {
        assert_eq!(read(exit), Left::Perhaps, "{exit}");
    }
}

/// One line of each kind, as version 1 spells it. A change here breaks every recording there is.
#[test]
fn the_golden_file() {
    let mut all = header(&Header {
        run: "5f0c2d1e".into(),
        at: Time(1_795_963_550_000_001),
        tap: "stdio".into(),
        program: "redial 0.1.0".into(),
        server: "tickets".into(),
        command: vec!["python".into(), "server.py".into()],
        redaction: r#"{"statement":"s"}"#.into(),
        ..Header::default()
    });
    for (n, what) in kinds().into_iter().enumerate() {
        let mut e = entry(what);
        e.seq = n as u64 + 1;
        all += &line(&e);
    }
    let golden = include_str!("../../../tests/fixtures/recording/v1.jsonl");
    assert!(all == golden, "{all}");
    assert!(golden.lines().all(|l| !matches!(decode(l.as_bytes()), Line::Bad(_) | Line::Other)));
}

#[test]
fn the_golden_line() {
    let raw = r#"{"jsonrpc":"2.0","id":5,"method":"tools/call","params":{"name":"t","arguments":{"request_id":"r"}}}"#;
    let mut e = entry(What::Event(Kind::Sent {
        raw: Bytes::from(raw),
        exchange: None,
        purpose: Purpose::Asked,
    }));
    e.wire.end = End::CrLf;
    assert_eq!(
        line(&e),
        concat!(
            r#"{"seq":3,"at":"2026-11-29T14:45:50.611770Z","mono":42,"gen":2,"kind":"sent","rpc":"request","id":5,"#,
            r#""method":"tools/call","tool":"t","request_id":"r","end":"\r\n","text":"{\"jsonrpc\":\"2.0\",\"id\":5,"#,
            r#"\"method\":\"tools/call\",\"params\":{\"name\":\"t\",\"arguments\":{\"request_id\":\"r\"}}}"}"#,
            "\n"
        )
    );
}

#[test]
fn damage_is_told_from_the_future() {
    assert!(matches!(decode(br#"{"seq":1,"kind":"sent","te"#), Line::Bad(w) if w.contains("torn")));
    assert!(matches!(decode(b"\xff\xfe"), Line::Bad(_)));
    assert!(matches!(decode(b"[1]"), Line::Bad(_)));
    assert!(matches!(decode(br#"{"a":1}"#), Line::Bad(_)));
    assert_eq!(decode(br#"{"seq":1,"kind":"telepathy"}"#), Line::Other);
    let got = decode(br#"{"seq":1,"kind":"stderr","text":"x","new":[1]}"#);
    assert!(matches!(got, Line::Entry(e) if e.raw().is_some_and(|r| r == "x")));
}

proptest! {
    #[test]
    fn bytes_and_times_survive(raw in proptest::collection::vec(any::<u8>(), 0..60), at in -60_000_000_000_000_000i64..250_000_000_000_000_000,
                               seq in any::<u64>(), mono in any::<u64>(), generation in any::<u32>(), bom in any::<bool>(), cut in any::<u64>(),
                               headers in proptest::collection::vec((any::<String>(), any::<String>()), 0..3)) {
        let mut e = Entry::new(seq, Time(at), mono, generation, What::Event(Kind::Stderr { raw: raw.into() }));
        e.wire = Wire { end: End::None, bom, cut, redacted: 1, headers };
        prop_assert_eq!(decode(line(&e).trim_end().as_bytes()), Line::Entry(e));
    }

    #[test]
    fn no_line_panics(line in proptest::collection::vec(any::<u8>(), 0..200), text in "\\PC{0,80}") {
        decode(&line);
        decode(text.as_bytes());
        decode(format!(r#"{{"seq":1,"kind":{text}}}"#).as_bytes());
    }
}
