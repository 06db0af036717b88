//! Whose an answer is: where it came, and what it names.

use super::*;
use crate::journal::event::{Http, Kind, Purpose};
use crate::journal::testing::Tape;
use crate::json::raw::quote;

const OK: &str = r#"{"jsonrpc":"2.0","id":7,"result":{"content":[{"type":"text","text":"T-1"}]}}"#;

fn get() -> Http {
    Http::Request { method: "GET".into(), url: "u".into() }
}

/// A call on exchange 9 whose stream is open, and a GET on exchange 3.
fn listening() -> Tape {
    let mut t = Tape::over_http();
    t.http(0.5, 3, get());
    t.http(0.5, 3, t.stream_headers());
    t.call(1.0, Some(9));
    t.http(1.5, 9, t.stream_headers());
    t
}

#[test]
fn an_answer_on_a_stream_where_none_may_come_settles_nothing_and_is_marked() {
    // Live, the listening stream has no exchange of its own in what is received.
    for came in [Some(3), None] {
        for frame in [OK, r#"{"jsonrpc":"2.0","id":7,"result":null}"#] {
            let mut t = listening();
            t.received(2.0, frame, came);
            assert!(t.it().is_pending(), "{frame} on {came:?}: {:?}", t.said());
            let marked = t.it().live.disowned.clone();
            assert_eq!(marked, Some(Disowned::Misplaced(Place::Listening)));
            assert!(t.notes().contains("listening stream"), "{}", t.notes());
            let now = Time(0).plus_seconds(3.0);
            let words = crate::journal::waiting(t.it(), &t.session, now).to_string();
            assert!(words.contains("listening stream"), "{words}");
            // Its own answer still counts, and tells of the other one.
            t.received(3.0, OK, Some(9));
            let (word, late, why) = t.said();
            assert!(word == "ok" && !late && why.contains("listening stream"), "{why}");
        }
    }
    let mut t = listening();
    t.received(2.0, OK, Some(3));
    t.http(4.0, 9, Http::End);
    let (word, _, why) = t.said();
    assert!(word == "unknown" && why.contains("listening stream"), "{why}");
}

#[test]
fn an_answer_on_the_stream_of_another_exchange_settles_nothing() {
    let other =
        r#"{"jsonrpc":"2.0","id":8,"method":"tools/call","params":{"name":"close_ticket"}}"#;
    let mut t = listening();
    t.sent(1.6, other, Some(10), Purpose::Asked);
    t.http(1.7, 10, t.stream_headers());
    t.received(2.0, OK, Some(10));
    let named = Disowned::Misplaced(Place::OtherCall("close_ticket".into()));
    assert_eq!((t.it().is_pending(), &t.it().live.disowned), (true, &Some(named)));
    // And nothing that is no call: a list from nowhere would lie about hints.
    let list = r#"{"jsonrpc":"2.0","id":2,"method":"tools/list","params":{}}"#;
    t.sent(2.5, list, Some(11), Purpose::Handshake);
    let tools = r#"{"jsonrpc":"2.0","id":2,"result":{"tools":[{"name":"x"}]}}"#;
    t.received(2.6, tools, Some(3));
    assert_eq!(t.session.tools.tools.len(), 0);
    t.received(2.7, tools, Some(11));
    assert_eq!(t.session.tools.tools.len(), 1);
}

#[test]
fn what_resumes_a_cut_stream_may_bring_its_answer() {
    let mut t = listening();
    t.http(2.0, 9, Http::Failed { why: "cut".into(), connected: true });
    let resuming = Http::Resuming { last_event_id: "e-1".into(), after_ms: 0 };
    t.http(2.5, 12, resuming);
    t.http(2.5, 12, get());
    t.received(3.0, OK, Some(12));
    assert_eq!((t.said().0, t.said().1), ("ok", true));
    // HTTP+SSE of 2024-11-05 has one stream for all answers.
    let mut t = listening();
    t.http(1.8, 3, Http::Endpoint { url: "/messages?id=1".into() });
    t.received(2.0, OK, Some(3));
    assert_eq!(t.said().0, "ok");
}

/// HTTP+SSE of 2024-11-05: a stream that names where messages go, a call, and the receipt of its POST.
fn receipted(status: u16, text: &str) -> Tape {
    let mut t = Tape::over_http();
    t.http(0.5, 3, get());
    t.http(0.5, 3, t.stream_headers());
    t.http(0.6, 3, Http::Endpoint { url: "/messages?id=1".into() });
    t.call(1.0, Some(9));
    t.http(1.5, 9, t.status(status, "text/plain"));
    if !text.is_empty() {
        t.http(1.6, 9, Http::Body { raw: text.as_bytes().to_vec().into(), cut: 0 });
    }
    t.http(1.7, 9, Http::End);
    t
}

#[test]
fn where_answers_come_on_one_stream_the_receipt_of_a_post_ends_no_call() {
    for text in ["", "Accepted", "<html><title>ok</title></html>"] {
        let mut t = receipted(202, text);
        assert!(t.it().is_pending(), "{text}: {:?}", t.said());
        t.received(2.0, OK, Some(3));
        assert_eq!((t.said().0, t.said().1), ("ok", false), "{text}");
    }
    // Nor does its break, once it was there.
    let mut t = receipted(202, "Accepted");
    t.call(3.0, Some(11));
    t.http(3.1, 11, t.status(202, "text/plain"));
    t.http(3.2, 11, Http::Failed { why: "cut".into(), connected: true });
    assert!(t.session.calls.values().all(|c| c.is_pending()), "{:?}", t.session.calls);
    // A status that is none is the answer, and the end of the stream leaves nobody to wait for.
    for (status, word) in [(403, "refused"), (500, "unknown"), (501, "unknown")] {
        assert_eq!(receipted(status, "no").said().0, word);
    }
    let mut t = receipted(202, "Accepted");
    t.http(2.0, 3, Http::Failed { why: "cut".into(), connected: true });
    let (word, _, why) = t.said();
    assert!(word == "unknown" && why.contains("the stream that brings the answers"), "{why}");
}

#[test]
fn an_answer_that_names_another_request_is_somebody_elses() {
    let text = |t: &str| format!(r#"{{"content":[{{"type":"text","text":{}}}]}}"#, quote(t));
    let rows = [
        (text(r#"{"request_id":"agent-77","ticket_id":"T"}"#), "unknown"),
        (text(r#"{"result":{"request_id":"agent-77"}}"#), "unknown"),
        (r#"{"content":[],"structuredContent":{"request_id":"agent-77"}}"#.into(), "unknown"),
        (r#"{"content":[],"structuredContent":{"result":{"request_id":77}}}"#.into(), "unknown"),
        (
            format!(
                r#"{{"structuredContent":{{"request_id":"r-1"}},{}"#,
                &text(r#"{"request_id":"agent-77"}"#)[1..]
            ),
            "unknown",
        ),
        (
            r#"{"isError":true,"content":[],"structuredContent":{"request_id":"x"}}"#.into(),
            "unknown",
        ),
        (text(r#"{"request_id":"r-1","ticket_id":"T"}"#), "ok"),
        // Only the object's own member says whose it is.
        (text(r#"{"recent":[{"request_id":"agent-77"}],"request_id":"r-1"}"#), "ok"),
        (text(r#"{"recent":[{"request_id":"agent-77"}]}"#), "ok"),
        (text(r#"{"request_id":null}"#), "ok"),
        (text(r#"{"request_id":""}"#), "ok"),
        (text("see request_id agent-77"), "ok"),
        (text("T-1"), "ok"),
    ];
    for (result, word) in rows {
        let frame = format!(r#"{{"jsonrpc":"2.0","id":7,"result":{result}}}"#);
        for http in [false, true] {
            let mut t = if http { Tape::over_http() } else { Tape::over_stdio() };
            let x = http.then_some(9);
            t.call(1.0, x);
            if http {
                t.http(1.5, 9, t.stream_headers());
            }
            t.received(2.0, &frame, x);
            if http && word == "unknown" {
                // Its own may still come.
                assert!(t.it().is_pending(), "{result}");
                t.http(3.0, 9, Http::End);
            }
            let (got, _, why) = t.said();
            assert_eq!(got, word, "{result}: {why}");
            assert_eq!(word == "unknown", why.contains("not r-1"), "{why}");
            if word == "unknown" {
                assert!(t.it().settled.as_ref().is_some_and(|s| s.answer_status.is_none()));
                // Whatever comes as its own after that counts, as late.
                t.received(4.0, OK, x);
                assert_eq!((t.said().0, t.said().1), ("ok", !http || t.said().1));
            }
        }
    }
}

#[test]
fn an_error_that_names_another_request_is_somebody_elses_too() {
    for (data, word) in [
        (r#"{"request_id":"agent-77"}"#, "unknown"),
        (r#"{"request_id":"r-1"}"#, "rpc_error"),
        (r#"{"seen":[{"request_id":"agent-77"}]}"#, "rpc_error"),
        (r#""request_id agent-77""#, "rpc_error"),
    ] {
        let frame = format!(
            r#"{{"jsonrpc":"2.0","id":7,"error":{{"code":-32000,"message":"no","data":{data}}}}}"#
        );
        let mut t = Tape::over_stdio();
        t.call(1.0, None);
        t.received(2.0, &frame, None);
        assert_eq!(t.said().0, word, "{data}: {}", t.said().2);
    }
}

#[test]
fn numbers_and_strings_name_the_same_request() {
    let named = |o: &str| request_named(o);
    assert_eq!(named(r#"{"request_id":5}"#), named(r#"{"request_id":"5"}"#));
    for none in [r#"{"request_id":[5]}"#, r#"{"request_id":true}"#, r#"{"id":"5"}"#, "[1]", "x"] {
        assert_eq!(named(none), None, "{none}");
    }
    let call = r#"{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"t","arguments":{"request_id":5}}}"#;
    let answer = |id: &str| {
        format!(
            r#"{{"jsonrpc":"2.0","id":7,"result":{{"content":[],"structuredContent":{{"request_id":{id}}}}}}}"#
        )
    };
    for (id, word) in [("5", "ok"), ("\"5\"", "ok"), ("6", "unknown"), ("\"r\"", "unknown")] {
        let mut t = Tape::over_stdio();
        t.sent(1.0, call, None, Purpose::Asked);
        t.received(2.0, &answer(id), None);
        assert_eq!(t.said().0, word, "{id}");
    }
    // A call that names no request is contradicted by nothing.
    let mut t = Tape::over_stdio();
    let call = r#"{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"t"}}"#;
    t.sent(1.0, call, None, Purpose::Asked);
    t.received(2.0, &answer("\"made-by-the-server\""), None);
    assert_eq!(t.said().0, "ok");
    t.at(3.0, Kind::StdoutClosed);
    assert_eq!(t.said().0, "ok");
}

#[test]
fn an_answer_that_is_no_json_ends_its_call_at_once_and_one_that_is_quoted_is_marked() {
    let nan = r#"{"jsonrpc":"2.0","id":7,"result":{"content":[],"x":NaN}}"#;
    for http in [false, true] {
        let mut t = if http { Tape::over_http() } else { Tape::over_stdio() };
        t.call(1.0, http.then_some(9));
        if http {
            t.http(1.5, 9, t.stream_headers());
        }
        t.noise(2.0, nan);
        let (word, _, why) = t.said();
        assert!(word == "unknown" && why.contains("no JSON: NaN at byte 51"), "{word} {why}");
        // One that comes properly after it counts, as late.
        t.received(3.0, OK, http.then_some(9));
        assert_eq!((t.said().0, t.said().1), ("ok", true));
    }
    let quoted = format!("INFO: sent {OK}");
    let mut t = Tape::over_stdio();
    let call = t.call(1.0, None);
    t.noise(2.0, &quoted);
    assert!(t.it().is_pending() && t.notes().contains("other text stands before"), "{}", t.notes());
    t.received(2.1, OK, None);
    assert_eq!((t.said().0, t.said().1), ("ok", false), "a log of what was sent properly too");
    let mut t = Tape::over_stdio();
    t.call(1.0, None);
    t.noise(2.0, &quoted);
    t.at(2.5, Kind::Note(crate::journal::Note::NoAnswer { call, why: "quoted".into() }));
    assert_eq!(t.said().0, "unknown");
    // Over several lines, whole or not.
    for lines in [
        vec![r#"{"jsonrpc":"2.0","id":7,"#, r#""result":{"content":[]}}"#],
        vec![r#"{"jsonrpc":"2.0","#, r#""id":7,"result":"#, r#"{"content":[]}}"#],
        vec!["{", r#""jsonrpc":"2.0","id":7,"result":{}"#, "}"],
    ] {
        let mut t = Tape::over_stdio();
        t.call(1.0, None);
        lines.iter().for_each(|l| t.noise(2.0, l));
        assert_eq!(t.said().0, "unknown", "{lines:?}");
    }
    // Ids of others, and logs that only have one, mark nothing.
    let mut t = Tape::over_stdio();
    t.call(1.0, None);
    for line in [&nan.replace(":7", ":8"), r#"{"level":"info","id":7}"#, r#"{"id":7,"msg":"cut"#] {
        t.noise(2.0, line);
        assert!(t.it().is_pending() && t.it().live.disowned.is_none(), "{line}");
    }
}
