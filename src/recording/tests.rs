use super::*;
use crate::inspect::recorded::candidates;
use crate::journal::{Kind, Outcome, Session};
use crate::json::raw;
use crate::record::{Recorder, Rules};
use std::fs::OpenOptions;
use std::io::Write;
use std::time::Duration;

fn file(text: &str) -> tempfile::NamedTempFile {
    let mut f = tempfile::NamedTempFile::new().unwrap();
    f.write_all(text.as_bytes()).unwrap();
    f
}

const CALL: &str = r#"{"jsonrpc":"2.0","id":5,"method":"tools/call","params":{"name":"create_ticket","arguments":{"request_id":"r-1","title":"a"}}}"#;

#[test]
fn the_trace_list_of_a_python_program_opens() {
    let f = file(
        r#"[{"tool":"create_basket","arguments":{},"result":{"basket_id":"b-781"}},
 {"tool":"add_item","arguments":{"basket_id":"b-781","sku":"book-42"}}]"#,
    );
    let r = Recording::open(f.path()).unwrap();
    let calls: Vec<_> = r.session.calls.values().collect();
    assert_eq!((calls.len(), r.bad_lines().count()), (2, 0));
    assert_eq!(calls[0].tool, "create_basket");
    let result = calls[0].settled.as_ref().unwrap().result.as_deref().unwrap();
    assert_eq!(raw::get_path(result, &["structuredContent", "basket_id"]), Some(r#""b-781""#));
    // What came back was not kept: nothing is concluded from that.
    assert!(calls[1].is_pending());
    assert_eq!(calls[1].args.as_deref(), Some(r#"{"basket_id":"b-781","sku":"book-42"}"#));
}

#[test]
fn the_neutral_form_opens_with_its_damage_and_without_its_secrets() {
    let text = concat!(
        r#"{"t":1790000000.25,"dir":"proc","event":"start","pid":101,"argv":["server","--token","case-secret-argv-1"],"env":{"CASE_API_KEY":"case-secret-env-2"}}"#,
        "\n",
        r#"{"t":1790000000.5,"dir":"out","headers":{"Mcp-Session-Id":"case-secret-sid-4"},"msg":{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"login","arguments":{"password":"case-secret-arg-6","title":"keep me"}}}}"#,
        "\n",
        "garbage\r\n",
        r#"{"t":1790000001,"dir":"err","text":"after"}"#,
        "\r\n",
        r#"{"t":1790000001.5,"dir":"proc","event":"exit","pid":101,"code":null,"signal":9}"#,
        "\n",
        r#"{"t":1790000002,"dir":"in","msg":{"jsonrpc""#,
    );
    let f = file(text);
    let mut r = Recording::with_entries(f.path()).unwrap();
    assert_eq!(r.bad_lines().map(|b| b.line).collect::<Vec<_>>(), [3, 6]);
    let g = r.session.generation().unwrap();
    assert_eq!(
        (g.n, g.ended.unwrap().signal, g.stderr.last(1)),
        (1, Some(9), vec!["after".to_owned()])
    );
    let call = r.session.calls.values().next().unwrap();
    assert_eq!(call.outcome(), Some(Outcome::Unknown));
    let all: String = r.take_entries().iter().map(crate::record::entry::line).collect();
    assert!(all.contains("keep me") && !all.contains("case-secret"), "{all}");
}

#[test]
fn two_runs_in_one_file_count_on_and_a_torn_line_costs_itself() {
    let f = file("");
    let run = |answer: bool| {
        let out = OpenOptions::new().append(true).open(f.path()).unwrap();
        let r = Recorder::start(out, Rules::new(Default::default()).unwrap(), Header::default())
            .unwrap();
        let transport =
            crate::journal::event::Transport::Stdio { command: vec!["s".into()], pid: None };
        r.event(1, crate::journal::Kind::Opened { transport });
        let purpose = crate::journal::event::Purpose::Asked;
        r.event(1, crate::journal::Kind::Sent { raw: CALL.into(), exchange: None, purpose });
        if answer {
            r.event(
                1,
                crate::journal::Kind::Received {
                    raw: r#"{"id":5,"result":{"content":[]}}"#.into(),
                    exchange: None,
                },
            );
        }
        r.event(
            1,
            crate::journal::Kind::Exit {
                code: Some(0),
                signal: None,
                left: crate::procs::Left::Nobody,
            },
        );
        assert!(r.close(Duration::from_secs(20)));
    };
    run(false);
    OpenOptions::new()
        .append(true)
        .open(f.path())
        .unwrap()
        .write_all(b"{\"seq\":9,\"kind\":\"stde\n")
        .unwrap();
    run(true);
    let r = Recording::open(f.path()).unwrap();
    assert_eq!((r.headers.len(), r.session.generations.len(), r.bad.len()), (2, 2, 1));
    assert_eq!(r.bad[0].line, 5);
    let outcomes: Vec<_> = r.session.calls.values().map(|c| (c.generation, c.outcome())).collect();
    assert_eq!(outcomes, [(1, Some(Outcome::Unknown)), (2, Some(Outcome::Ok))]);
    let args = candidates(&r, "r-1", "find_request");
    assert_eq!(args[0].args, r#"{"request_id":"r-1","title":"a"}"#);
    assert_eq!(args.len(), 2);
}

#[test]
fn following_takes_in_what_is_new_and_only_that() {
    let f = file("");
    let out = OpenOptions::new().append(true).open(f.path()).unwrap();
    let rec =
        Recorder::start(out, Rules::new(Default::default()).unwrap(), Header::default()).unwrap();
    let mut r = Recording::with_entries(f.path()).unwrap();
    r.poll().unwrap();
    for n in 1..=3u64 {
        rec.event(1, crate::journal::Kind::Stderr { raw: format!("line {n}").into() });
        let mut got = 0;
        while got == 0 {
            got = r.poll().unwrap();
        }
        assert_eq!((got, r.take_entries().len(), r.events), (1, 1, n));
    }
}

#[test]
fn what_is_no_recording_is_said_to_be_none() {
    let f = file("hello\nworld\n");
    let e = Recording::open(f.path()).err().unwrap();
    assert_eq!(e.exit, crate::error::Exit::Ledger);
    assert!(e.what.contains("looks like plain text") && !e.to_string().contains("torn"), "{e}");
    let e = Recording::open(Path::new("/dev/zero")).err().unwrap();
    assert!(e.what.contains("is a device"), "{e}");
    // A damaged beginning is no other program.
    let f =
        file("\u{feff}half of a li\n{\"seq\":2,\"kind\":\"stderr\",\"gen\":1,\"text\":\"x\"}\n");
    assert_eq!(Recording::open(f.path()).unwrap().events, 1);
    let f = file("{\"redial\":\"recor");
    assert!(Recording::open(f.path()).is_ok());
    assert!(Recording::open(Path::new("/no/such/file")).is_err());
    assert_eq!(Recording::open(file("").path()).unwrap().events, 0);
}

#[test]
fn many_calls_are_let_go_and_none_is_forgotten() {
    let mut file = tempfile::NamedTempFile::new().unwrap();
    let mut seq = 0;
    let mut put = |kind: &str, text: String| {
        seq += 1;
        writeln!(
            file,
            r#"{{"seq":{seq},"at":"2026-11-29T02:57:10.{seq:06}Z","mono":{seq},"gen":1,"kind":"{kind}","text":{}}}"#,
            raw::quote(&text)
        )
        .unwrap();
    };
    for id in 0..60 {
        put(
            "sent",
            format!(
                r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/call","params":{{"name":"t","arguments":{{"request_id":"r-{id}"}}}}}}"#
            ),
        );
        match id {
            7 => {}
            8 => put(
                "received",
                format!(r#"{{"jsonrpc":"2.0","id":{id},"error":{{"code":1,"message":"no"}}}}"#),
            ),
            _ => put(
                "received",
                format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{{"content":[]}}}}"#),
            ),
        }
    }
    let mut r = Recording::begin(file.path()).unwrap();
    r.most_calls = 10;
    let mut let_go = 0;
    loop {
        let more = r.advance().unwrap();
        let_go += r.let_go().len();
        if !more {
            break;
        }
    }
    assert_eq!((r.calls(), let_go, r.session.calls.len()), (60, 55, 5));
    let of = |seq: u64| r.outcome(seq).map(|o| o.0);
    assert_eq!(
        (of(1), of(15), of(16)),
        (Some(Some(Outcome::Ok)), Some(None), Some(Some(Outcome::RpcError)))
    );
    assert_eq!(of(2), None, "an answer is no call");
    assert!(r.session.pending().count() == 1, "what has no answer is kept");
    assert!(candidates(&r, "r-1", "look").is_empty());
    let mut r = Recording::begin(file.path()).unwrap();
    (r.most_calls, r.asked) = (10, Some("r-1".into()));
    while r.advance().unwrap() {}
    assert!(candidates(&r, "r-2", "look").is_empty());
    assert_eq!(candidates(&r, "r-1", "look").len(), 1, "what is asked for is kept");
}

#[test]
fn answers_to_clients_that_share_a_life_and_an_id_find_their_own_question() {
    use crate::journal::event::Purpose;
    use crate::recording::rows::Rows;
    use crate::time::Time;
    let call = |tool: &str| {
        format!(
            r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{{"name":"{tool}","arguments":{{"request_id":"{tool}"}}}}}}"#
        )
    };
    let sent = |exchange, tool| {
        let raw = call(tool).into();
        What::Event(Kind::Sent { raw, exchange: Some(exchange), purpose: Purpose::Asked })
    };
    let answer = |exchange| {
        let raw = r#"{"jsonrpc":"2.0","id":1,"result":{}}"#.into();
        What::Event(Kind::Received { raw, exchange })
    };
    let session = Session::default();
    let mut rows = Rows::default();
    let mut seq = 0;
    let mut tell = |what| {
        seq += 1;
        let e = Entry::new(seq, Time(0), seq * 1000, 1, what);
        let row = rows.row(&e, &session, Time(0));
        (row.tool, row.ms)
    };
    let of = |tool: &str, ms| (Some(tool.to_owned()), Some(ms));
    tell(sent(1, "first"));
    tell(sent(2, "second"));
    assert_eq!(tell(answer(Some(1))), of("first", 2.0));
    assert_eq!(tell(answer(Some(2))), of("second", 2.0));
    // A second answer answers nothing.
    assert_eq!(tell(answer(Some(2))), (None, None));
    // A stream that was resumed has another exchange.
    tell(sent(3, "third"));
    assert_eq!(tell(answer(Some(9))), of("third", 1.0));
}

#[test]
fn gaps_of_any_size_add_up() {
    let gap = format!(
        r#"{{"seq":1,"at":"2026-11-29T02:57:10.123456Z","mono":1,"gen":1,"kind":"gap","events":{0},"bytes":{0},"why":"x"}}"#,
        u64::MAX
    );
    let f = file(&format!("{gap}\n{gap}\n"));
    assert_eq!(Recording::open(f.path()).unwrap().lost, u64::MAX);
}

#[test]
fn a_call_that_waits_when_nobody_writes_any_more_is_unknown() {
    let sent = format!(
        r#"{{"seq":1,"at":"2026-11-29T02:57:10.123456Z","mono":1,"gen":1,"kind":"sent","text":{}}}"#,
        raw::quote(CALL)
    );
    let gap = r#"{"seq":2,"at":"2026-11-29T02:57:10.123456Z","mono":1,"gen":1,"kind":"gap","events":4,"bytes":900,"why":"x"}"#;
    let f = file(&format!("{sent}\n{gap}\n"));
    let mut r = Recording::open(f.path()).unwrap();
    let held = OpenOptions::new().append(true).open(f.path()).unwrap();
    rustix::fs::flock(&held, rustix::fs::FlockOperation::LockExclusive).unwrap();
    r.end_here();
    assert!(r.session.calls[&1].is_pending(), "a tap may still write its answer");
    drop(held);
    r.end_here();
    assert_eq!(r.session.calls[&1].outcome(), Some(Outcome::Unknown));
    assert!(r.session.calls[&1].live.remark.as_deref().unwrap().contains("missing"));
}

#[test]
fn a_call_with_pythons_numbers_is_a_call_with_its_arguments_as_they_were() {
    let sent = r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"t","arguments":{"request_id":"r-1","x":[NaN,-Infinity]}}}"#;
    let recorded = format!(
        "{{\"seq\":1,\"at\":\"2026-11-29T02:57:10Z\",\"mono\":1,\"gen\":1,\"kind\":\"sent\",\"text\":{}}}\n",
        raw::quote(sent)
    );
    let neutral = format!("{{\"t\":1790000000.0,\"dir\":\"out\",\"msg\":{sent}}}\n");
    for text in [recorded, neutral] {
        let f = file(&text);
        let r = Recording::open(f.path()).unwrap();
        let call = r.session.calls.values().next().unwrap_or_else(|| panic!("{text}"));
        assert_eq!((call.tool.as_str(), call.request_id.as_deref()), ("t", Some("r-1")));
        assert_eq!(call.args.as_deref(), Some(r#"{"request_id":"r-1","x":[NaN,-Infinity]}"#));
    }
}
