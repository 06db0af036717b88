//! One case for every rule by which a call is settled.

use super::call::AnswerStatus;
use super::event::{Http, Kind, Note, Purpose};
use super::testing::Tape;
use bytes::Bytes;

const OK: &str = r#"{"jsonrpc":"2.0","id":7,"result":{"content":[{"type":"text","text":"T-1"}]}}"#;

fn body(text: &str) -> Http {
    Http::Body { raw: Bytes::from(text.to_owned()), cut: 0 }
}

fn broke(why: &str, connected: bool) -> Http {
    Http::Failed { why: why.into(), connected }
}

#[test]
fn stdio_answers_and_ends() {
    let death = Kind::Exit { code: None, signal: Some(9), left: crate::procs::Left::Nobody };
    let rows: Vec<(Vec<Kind>, &str, &str)> = vec![
        (vec![received(OK)], "ok", "answered"),
        (
            vec![received(
                r#"{"id":7,"result":{"isError":true,"content":[{"type":"text","text":"\n no\nmore"}]}}"#,
            )],
            "tool_error",
            "an error: no",
        ),
        (
            vec![received(r#"{"id":7,"result":{"isError":true,"content":[]}}"#)],
            "tool_error",
            "without a word",
        ),
        (
            vec![received(r#"{"id":7,"result":{"isError":"true","content":[]}}"#)],
            "unknown",
            "isError is no boolean",
        ),
        (vec![received(r#"{"id":7,"result":{"isError":null,"content":[]}}"#)], "ok", "answered"),
        (
            vec![received(r#"{"id":7,"error":{"code":-32602,"message":"bad"}}"#)],
            "rpc_error",
            "-32602: bad",
        ),
        (
            vec![received(r#"{"id":7,"result":{},"error":{}}"#)],
            "unknown",
            "malformed: it has a result and an error",
        ),
        (vec![received(r#"{"jsonrpc":"2.0","id":7}"#)], "unknown", "malformed: it has neither"),
        (vec![received(r#"{"id":7,"result":null}"#)], "unknown", "malformed: its result is null"),
        (
            vec![received(r#"[{"jsonrpc":"2.0","id":7,"result":{}}]"#)],
            "unknown",
            "malformed: a batch",
        ),
        (vec![death.clone()], "unknown", "died (signal 9 (SIGKILL)) before it answered"),
        (
            vec![Kind::Exit { code: Some(137), signal: None, left: crate::procs::Left::Nobody }],
            "unknown",
            "exit code 137",
        ),
        (
            vec![
                Kind::Note(Note::Outlived {
                    code: Some(0),
                    signal: None,
                    left: crate::procs::Left::Perhaps,
                }),
                Kind::Exit { code: Some(0), signal: None, left: crate::procs::Left::Nobody },
            ],
            "unknown",
            "no answer: the server is gone: nothing of what was started is left (exit code 0 was its launcher's; how the server itself ended was not seen)",
        ),
        (vec![received(OK), death.clone()], "ok", "answered"),
        (vec![Kind::StdoutClosed, death.clone()], "unknown", "closed its stdout"),
        (
            vec![Kind::Exit { code: None, signal: Some(9), left: crate::procs::Left::Perhaps }],
            "unknown",
            "the process that redial started ended (signal 9 (SIGKILL)), but something it started may still run",
        ),
        (
            vec![Kind::NotWritten { sent: 2, why: "never sent: it has ended".into(), left: false }],
            "not_sent",
            "never sent",
        ),
        (
            vec![
                death.clone(),
                Kind::NotWritten { sent: 2, why: "never sent: it has ended".into(), left: false },
            ],
            "not_sent",
            "never sent",
        ),
        (
            vec![
                death.clone(),
                Kind::NotWritten {
                    sent: 2,
                    why: "the write broke after 3 of 9 bytes".into(),
                    left: true,
                },
            ],
            "unknown",
            "died",
        ),
        (
            vec![Kind::Note(Note::TimedOut { call: 2, after_s: 60.0 })],
            "unknown",
            "no answer within 60 s",
        ),
        (vec![Kind::Note(Note::Cancelled { call: 2 })], "unknown", "may finish it all the same"),
        (vec![Kind::Note(Note::StoppedWaiting { call: 2 })], "unknown", "the server was not told"),
    ];
    for (events, word, why) in rows {
        let mut t = Tape::over_stdio();
        assert_eq!(t.call(1.0, None), 2);
        let shown = format!("{events:?}");
        for e in events {
            t.at(2.0, e);
        }
        let (got, late, said) = t.said();
        assert_eq!((got, late), (word, false), "{shown}: {said}");
        assert!(said.contains(why), "{shown}: {said}");
        assert_eq!(t.it().sent, u32::from(word != "not_sent"), "{shown}");
    }
}

fn received(text: &str) -> Kind {
    Kind::Received { raw: Bytes::from(text.to_owned()), exchange: None }
}

#[test]
fn http_exchanges_end_as_they_did() {
    let t = Tape::over_http();
    let (json, html) = ("application/json", "text/html");
    let rows: Vec<(Vec<Http>, &str, &str)> = vec![
        (vec![broke("connection refused", false)], "not_sent", "never sent: connection refused"),
        (
            vec![broke("reset by peer", true)],
            "unknown",
            "sent, then the connection broke before any answer",
        ),
        (
            vec![t.status(200, json), broke("cut after 60 of 500 bytes", true)],
            "unknown",
            "accepted (HTTP 200)",
        ),
        (vec![t.stream_headers(), Http::End], "unknown", "the stream ended without an answer"),
        (vec![t.status(401, html), Http::End], "refused", "401"),
        (vec![t.status(413, html), Http::End], "refused", "too large"),
        (
            vec![t.status(502, html), body("<html><title>Bad Gateway</title>"), Http::End],
            "unknown",
            "an HTML page",
        ),
        (vec![t.status(503, html), Http::End], "unknown", "HTTP 503 without an answer"),
        (vec![t.status(200, html), body("ok"), Http::End], "unknown", "not JSON-RPC: ok"),
        (
            vec![
                t.status(200, "application/json"),
                Http::Body { raw: Bytes::from_static(b"\x1f\x8b\x08\0\xff"), cut: 0 },
            ],
            "unknown",
            "no text (compressed?)",
        ),
        (
            vec![Http::Redirected { status: 307, to: "/b".into() }, broke("refused", false)],
            "unknown",
            "redirected, and where",
        ),
    ];
    for (events, word, why) in rows {
        let mut t = Tape::over_http();
        t.call(1.0, Some(9));
        let shown = format!("{events:?}");
        events.into_iter().for_each(|e| t.http(2.0, 9, e));
        let (got, _, said) = t.said();
        assert_eq!(got, word, "{shown}: {said}");
        assert!(said.contains(why), "{shown}: {said}");
        assert_eq!(t.it().sent, u32::from(word != "not_sent"), "{shown}");
    }
}

#[test]
fn only_who_did_not_read_our_request_can_say_that_it_was_not_run() {
    // A transport's own sentence proves it; the same words in a sentence of the work's only cast doubt.
    let transports = "Bad Request: Invalid session ID";
    let works = "invalid session for billing API";
    for (message, unread) in [(transports, "refused"), (works, "unknown")] {
        let lost = r#"{"jsonrpc":"2.0","id":NO,"error":{"code":-32000,"message":"SAID"}}"#;
        let lost = lost.replace("SAID", message);
        for status in [400, 500] {
            for (frame, word) in [
                (lost.replace("NO", "7"), "rpc_error"),
                (lost.replace("NO", "\"7\""), "rpc_error"),
                (lost.replace("NO", "null"), unread),
                (lost.replace("NO", "\"server-error\""), unread),
                (lost.replace(r#""id":NO,"#, ""), unread),
            ] {
                let mut t = Tape::over_http();
                t.in_session();
                t.call(1.0, Some(9));
                t.http(2.0, 9, t.status(status, "application/json"));
                t.received(2.0, &frame, Some(9));
                t.http(2.0, 9, Http::End);
                assert_eq!(t.it().word(), word, "{status} {frame}: {}", t.said().2);
            }
        }
        for (status, word) in [(400, unread), (404, "refused"), (500, "unknown")] {
            let mut t = Tape::over_http();
            t.in_session();
            t.call(1.0, Some(9));
            t.http(2.0, 9, t.status(status, "text/plain"));
            t.http(2.0, 9, body(message));
            assert_eq!(t.it().word(), word, "{status} {message}: {}", t.said().2);
        }
    }
}

#[test]
fn a_status_never_overrules_the_answer_to_this_very_call() {
    let result = r#"{"jsonrpc":"2.0","id":7,"result":{"content":[]}}"#;
    let error = r#"{"jsonrpc":"2.0","id":7,"error":{"code":-32603,"message":"boom"}}"#;
    let foreign = error.replace(":7", ":null");
    for (status, frame, word) in [
        (500, result, "ok"),
        (400, result, "ok"),
        (429, result, "ok"),
        (401, result, "ok"),
        (403, result, "ok"),
        (413, result, "ok"),
        (503, result, "ok"),
        (302, result, "ok"),
        (401, error, "rpc_error"),
        (403, error, "rpc_error"),
        (413, error, "rpc_error"),
        (429, error, "rpc_error"),
        (502, error, "rpc_error"),
        (503, error, "rpc_error"),
        (504, error, "rpc_error"),
        (429, &error.replace(":7", ":\"7\""), "rpc_error"),
        // Under no id of ours it may be a transport's own, or somebody else's.
        (404, &result.replace(":7", ":99"), "unknown"),
        (200 + 229, &result.replace(":7", ":\"7\""), "unknown"),
        (401, &foreign, "refused"),
        (403, &foreign, "refused"),
        (413, &foreign, "refused"),
        (429, &foreign, "refused"),
        (503, &foreign, "unknown"),
        (500, &foreign, "unknown"),
        (500, error, "rpc_error"),
        (400, error, "rpc_error"),
        (400, &foreign, "rpc_error"),
    ] {
        let mut t = Tape::over_http();
        t.call(1.0, Some(9));
        t.http(2.0, 9, t.status(status, "application/json"));
        t.received(2.0, frame, Some(9));
        t.http(2.0, 9, Http::End);
        let (got, _, why) = t.said();
        assert_eq!(got, word, "{status} {frame}: {why}");
        let refers = word != "rpc_error" || *frame == *error;
        assert!(!refers || why.contains(&format!("HTTP {status}")), "{why}");
    }
}

#[test]
fn a_list_asked_for_before_a_change_leaves_it_stale() {
    let ask = |id: u32, cursor: &str| {
        format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/list","params":{{{cursor}}}}}"#)
    };
    let page = |id: u32, next: &str| {
        format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{{"tools":[{{"name":"t"}}]{next}}}}}"#)
    };
    let changed = r#"{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}"#;
    let mut t = Tape::over_stdio();
    t.sent(1.0, &ask(1, ""), None, Purpose::Handshake);
    t.received(2.0, changed, None);
    t.received(3.0, &page(1, r#","nextCursor":"b""#), None);
    assert!(t.session.tools_stale, "its first page was asked for before the change");
    t.sent(4.0, &ask(2, r#""cursor":"b""#), None, Purpose::Handshake);
    t.received(5.0, &page(2, ""), None);
    assert!(t.session.tools_stale && t.session.tools.complete, "and so is what belongs to it");
    t.sent(6.0, &ask(3, ""), None, Purpose::Handshake);
    t.received(7.0, &page(3, ""), None);
    assert!(!t.session.tools_stale, "asked for after the last change");
}

#[test]
fn late_second_near_and_stray_answers_are_four_things() {
    let mut t = Tape::over_stdio();
    let call = t.call(1.0, None);
    t.received(2.0, r#"{"jsonrpc":"2.0","id":"7","result":{}}"#, None);
    assert!(t.it().is_pending(), "a near id answers nothing");
    assert!(t.notes().contains("the id \"7\", where 7 was asked"), "{}", t.notes());
    t.at(3.0, Kind::Note(Note::TimedOut { call, after_s: 2.0 }));
    let (word, _, why) = t.said();
    assert!(
        word == "unknown" && why.contains("no answer within 2 s; an answer came with the id"),
        "{why}"
    );
    t.received(4.0, OK, None);
    let (word, late, why) = t.said();
    assert!(word == "ok" && late && why.contains("late"), "{why}");
    t.received(5.0, r#"{"jsonrpc":"2.0","id":7,"error":{"code":1,"message":"no"}}"#, None);
    assert_eq!((t.it().word(), t.it().extra_answers), ("ok", 1));
    assert!(t.notes().contains("a second answer to call 7 (create_ticket)"));
    for _ in 0..3 {
        t.received(6.0, r#"{"jsonrpc":"2.0","id":99,"result":{}}"#, None);
    }
    assert!(t.notes().contains("the id 99, which nothing asked for (×3)"), "{}", t.notes());
    assert_eq!(t.session.strays, 4);
}

#[test]
fn an_answer_with_two_ids_or_a_list_of_them_ends_the_call_that_it_names() {
    for (answer, why) in [
        (r#"{"jsonrpc":"2.0","id":7,"result":{},"id":99}"#, "it has more than one id"),
        (r#"{"jsonrpc":"2.0","id":7,"result":{},"id":null}"#, "it has more than one id"),
        (r#"{"jsonrpc":"2.0","id":[7],"result":{}}"#, "its id is a list"),
    ] {
        let mut t = Tape::over_stdio();
        t.call(1.0, None);
        t.received(2.0, answer, None);
        let (word, _, said) = t.said();
        assert!(word == "unknown" && said.contains(why), "{answer}: {said}");
        // An error that a client may not read for its own proves nothing either.
        let mut t = Tape::over_stdio();
        t.call(1.0, None);
        t.received(
            2.0,
            &answer.replace(r#""result":{}"#, r#""error":{"code":1,"message":"m"}"#),
            None,
        );
        assert_eq!(t.said().0, "unknown", "{answer}");
    }
    let mut t = Tape::over_stdio();
    t.call(1.0, None);
    t.received(2.0, r#"{"jsonrpc":"2.0","id":[8,9],"result":{},"id":"x"}"#, None);
    assert!(t.it().is_pending(), "{}", t.notes());
}

#[test]
fn an_answer_without_an_id_is_tied_to_the_only_pending_call_in_words_only() {
    let mut t = Tape::over_stdio();
    t.call(1.0, None);
    t.received(
        2.0,
        r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32603,"message":"null pointer"}}"#,
        None,
    );
    assert!(t.it().is_pending());
    assert!(t.it().live.remark.as_ref().unwrap().contains("null pointer"));
    let mut t = Tape::over_http();
    t.call(1.0, Some(9));
    t.http(2.0, 9, t.stream_headers());
    t.received(
        2.0,
        r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32603,"message":"null pointer"}}"#,
        Some(9),
    );
    assert!(t.it().is_pending(), "on a stream the answer may still follow");
    t.http(3.0, 9, Http::End);
    let (word, _, why) = t.said();
    assert!(word == "unknown" && why.contains("null pointer"), "{why}");
    let mut t = Tape::over_http();
    t.call(1.0, Some(9));
    t.http(2.0, 9, t.status(200, "application/json"));
    t.received(2.0, r#"{"id":null,"error":{"code":-32603,"message":"null pointer"}}"#, Some(9));
    assert_eq!(t.it().word(), "rpc_error", "as a whole body it can be nobody else's");
}

#[test]
fn input_rounds_keep_the_call_pending_until_somebody_leaves_it_open() {
    let wants = r#"{"jsonrpc":"2.0","id":7,"result":{"resultType":"input_required","inputRequests":{"a":{"method":"elicitation/create","params":{"message":"Sure?"}}},"requestState":"s"}}"#;
    let again = r#"{"jsonrpc":"2.0","id":8,"method":"tools/call","params":{"name":"create_ticket","arguments":{},"requestState":"s"}}"#;
    let mut t = Tape::over_stdio();
    let call = t.call(1.0, None);
    t.received(2.0, wants, None);
    assert!(t.it().is_pending() && t.it().live.wants.is_some());
    t.sent(3.0, again, None, Purpose::FollowUp { call });
    assert_eq!((t.session.calls.len(), t.it().rounds, t.it().sent), (1, 2, 1));
    t.received(4.0, &OK.replace(":7", ":8"), None);
    assert_eq!(t.it().word(), "ok");
    let mut t = Tape::over_stdio();
    let call = t.call(1.0, None);
    t.received(2.0, wants, None);
    let sent = t.sent(3.0, again, None, Purpose::FollowUp { call });
    t.at(4.0, Kind::NotWritten { sent, why: "never sent: it has ended".into(), left: false });
    let (word, _, why) = t.said();
    assert!(word == "unknown" && why.starts_with("round 2 was never sent"), "{why}");
    let mut t = Tape::over_stdio();
    let call = t.call(1.0, None);
    t.received(2.0, wants, None);
    t.at(
        3.0,
        Kind::Note(Note::LeftOpen { call, why: "nobody here answers such questions".into() }),
    );
    let s = t.it().settled.clone().unwrap();
    assert_eq!((t.it().word(), s.answer_status), ("ok", Some(AnswerStatus::InProgress)));
    assert!(s.why.contains("elicitation/create (Sure?)"), "{}", s.why);
}

#[test]
fn a_task_is_followed_to_its_end_in_both_forms() {
    let look = |id: u32| {
        format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"tasks/get","params":{{"taskId":"t-1"}}}}"#)
    };
    let rows = [
        (
            r#"{"resultType":"task","taskId":"t-1","status":"working"}"#,
            r#"{"taskId":"t-1","status":"completed","result":{"content":[]}}"#,
            "ok",
            "answered",
        ),
        (
            r#"{"resultType":"task","taskId":"t-1","status":"working"}"#,
            r#"{"taskId":"t-1","status":"failed","error":{"code":-32603,"message":"boom"}}"#,
            "rpc_error",
            "boom",
        ),
        (
            r#"{"task":{"taskId":"t-1","status":"working"}}"#,
            r#"{"taskId":"t-1","status":"cancelled","statusMessage":"by you"}"#,
            "unknown",
            "was cancelled: by you",
        ),
    ];
    for (first, last, word, why) in rows {
        let mut t = Tape::over_stdio();
        let call = t.call(1.0, None);
        t.received(2.0, &format!(r#"{{"jsonrpc":"2.0","id":7,"result":{first}}}"#), None);
        assert!(t.it().is_pending() && t.it().live.task.is_some());
        t.sent(3.0, &look(8), None, Purpose::FollowUp { call });
        t.received(
            3.0,
            r#"{"jsonrpc":"2.0","id":8,"result":{"taskId":"t-1","status":"working"}}"#,
            None,
        );
        assert!(t.it().is_pending());
        t.sent(4.0, &look(9), None, Purpose::FollowUp { call });
        t.received(4.0, &format!(r#"{{"jsonrpc":"2.0","id":9,"result":{last}}}"#), None);
        assert_eq!(t.it().word(), word, "{last}");
        assert!(t.said().2.contains(why), "{}", t.said().2);
    }
    // A task that is made after the limit had passed is no end either, in both forms; its own end is.
    for (made, ..) in rows {
        let mut t = Tape::over_stdio();
        let call = t.call(1.0, None);
        t.at(2.0, Kind::Note(Note::TimedOut { call, after_s: 1.0 }));
        t.received(3.0, &format!(r#"{{"jsonrpc":"2.0","id":7,"result":{made}}}"#), None);
        let s = t.it().settled.clone().unwrap();
        assert_eq!(
            (t.it().word(), s.answer_status),
            ("ok", Some(AnswerStatus::InProgress)),
            "{made}"
        );
        assert!(s.late && t.it().live.task.is_some(), "{made}");
        let get = r#"{"jsonrpc":"2.0","id":8,"method":"tasks/result","params":{"taskId":"t-1"}}"#;
        t.sent(4.0, get, None, Purpose::FollowUp { call });
        t.received(4.0, &OK.replace(":7", ":8"), None);
        let s = t.it().settled.clone().unwrap();
        // Nobody has called the task completed, and its result says nothing of that either.
        assert_eq!(s.answer_status, Some(AnswerStatus::Unsaid), "{made}: {}", s.why);
    }
    // The limit of the call does not end the task: not finished, and its end still counts.
    let mut t = Tape::over_stdio();
    let call = t.call(1.0, None);
    t.received(
        2.0,
        r#"{"jsonrpc":"2.0","id":7,"result":{"task":{"taskId":"t-1","status":"working"}}}"#,
        None,
    );
    t.at(60.0, Kind::Note(Note::TimedOut { call, after_s: 60.0 }));
    assert_eq!(t.it().settled.as_ref().unwrap().answer_status, Some(AnswerStatus::InProgress));
    let get = r#"{"jsonrpc":"2.0","id":8,"method":"tasks/result","params":{"taskId":"t-1"}}"#;
    t.sent(61.0, get, None, Purpose::FollowUp { call });
    t.received(61.0, &OK.replace(":7", ":8"), None);
    assert!(t.it().word() == "ok" && t.said().1, "{:?}", t.said());
}

#[test]
fn what_is_not_mcp_on_stdout_is_named() {
    let mut t = Tape::over_stdio();
    t.call(1.0, None);
    for line in [
        "{",
        "  \"jsonrpc\": \"2.0\",",
        "  \"id\": 7,",
        "  \"result\": {",
        "    \"content\": []",
        "  }",
        "}",
    ] {
        t.noise(2.0, line);
    }
    let (word, _, why) = t.said();
    assert!(word == "unknown" && why.contains("printed over 7 lines"), "{why}");
    assert!(t.session.misfit.as_ref().unwrap().words.contains("several lines"));
    let mut t = Tape::over_stdio();
    for line in ["Content-Length: 40", r#"{"id":1,"result":{}}Content-Length: 9"#] {
        t.noise(1.0, line);
    }
    assert!(t.session.misfit.as_ref().unwrap().words.contains("as LSP does"));
    assert_eq!(t.session.notes.len(), 1, "told once");
    let mut t = Tape::over_stdio();
    for line in ["{", "  \"ok\": false", "}"] {
        t.noise(1.0, line);
    }
    assert!(t.session.misfit.is_none(), "a pretty-printed log is only noise");
}

#[test]
fn a_big_answer_is_kept_once() {
    let mut t = Tape::over_stdio();
    t.call(1.0, None);
    let frame = Bytes::from(OK.replace("T-1", &"x".repeat(1 << 20)));
    t.at(2.0, Kind::Received { raw: frame.clone(), exchange: None });
    let result = t.it().settled.as_ref().unwrap().result.clone().unwrap();
    let range = frame.as_ptr() as usize..frame.as_ptr() as usize + frame.len();
    assert!(range.contains(&(result.as_ptr() as usize)));
}

#[test]
fn old_big_results_are_let_go_and_said_to_be() {
    let mut t = Tape::over_stdio();
    let text = "x".repeat(1 << 20);
    for id in 1..=5 {
        let call = format!(r#"{{"id":{id},"method":"tools/call","params":{{"name":"t"}}}}"#);
        t.sent(1.0, &call, None, Purpose::Asked);
        t.received(1.0, &format!(r#"{{"id":{id},"result":{{"content":[],"x":"{text}"}}}}"#), None);
    }
    super::settle::let_old_results_go(&mut t.session, crate::time::Time(0), 7 << 20);
    let kept = |c: &&super::call::Call| c.settled.as_ref().unwrap().result.is_some();
    assert_eq!(t.session.calls.values().filter(kept).count(), 3);
    assert!(t.it().live.result_let_go.unwrap() > 1 << 20 && t.it().word() == "ok");
    assert!(t.notes().contains("let go to bound memory"));
}

#[test]
fn a_second_answer_to_an_earlier_round_does_not_settle_the_later_one() {
    let wants = r#"{"id":7,"result":{"resultType":"input_required","requestState":"s"}}"#;
    let mut t = Tape::over_stdio();
    let call = t.call(1.0, None);
    t.received(2.0, wants, None);
    t.sent(
        3.0,
        r#"{"id":8,"method":"tools/call","params":{"name":"t"}}"#,
        None,
        Purpose::FollowUp { call },
    );
    t.received(4.0, OK, None);
    assert!(t.it().is_pending() && t.notes().contains("an earlier round"));
}
