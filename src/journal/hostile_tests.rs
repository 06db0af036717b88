//! What a server can say that sounds like an outcome and is none: each case ends in no more than it proves.

use super::call::AnswerStatus;
use super::event::{Http, Kind, Purpose};
use super::testing::Tape;

const OK: &str = r#"{"jsonrpc":"2.0","id":7,"result":{"content":[{"type":"text","text":"T-1"}]}}"#;

fn result(id: u32, result: &str) -> String {
    format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{result}}}"#)
}

fn agreed(version: &str) -> Kind {
    Kind::Agreed { protocol: version.into() }
}

#[test]
fn an_older_revision_knows_neither_rounds_nor_result_types() {
    for r in [
        r#"{"resultType":"input_required","requestState":"s","content":[]}"#,
        r#"{"resultType":"task","taskId":"t","status":"working","content":[]}"#,
        r#"{"resultType":7,"content":[]}"#,
    ] {
        for (version, pending) in [("2025-11-25", false), ("2026-07-28", true)] {
            let mut t = Tape::over_stdio();
            t.at(0.5, agreed(version));
            t.call(1.0, None);
            t.received(2.0, &result(7, r), None);
            let odd = r.contains(":7");
            assert_eq!(t.it().is_pending(), pending && !odd, "{version} {r}: {:?}", t.said());
            if !pending {
                let s = t.it().settled.clone().unwrap();
                assert_eq!((t.it().word(), s.answer_status), ("ok", Some(AnswerStatus::Unsaid)));
                assert!(t.it().live.wants.is_none() && t.it().live.task.is_none());
            } else if odd {
                assert_eq!(t.it().word(), "unknown", "{:?}", t.said());
            }
        }
    }
}

#[test]
fn what_is_no_result_of_a_tool_is_no_success() {
    for (r, word, status) in [
        ("5", "unknown", None),
        (r#""done""#, "unknown", None),
        ("[]", "unknown", None),
        ("true", "unknown", None),
        ("{}", "ok", Some(AnswerStatus::Unknown)),
        (r#"{"ok":true}"#, "ok", Some(AnswerStatus::Unknown)),
        (r#"{"content":"done"}"#, "ok", Some(AnswerStatus::Unknown)),
        (r#"{"content":[]}"#, "ok", Some(AnswerStatus::Unsaid)),
        (r#"{"resultType":7,"content":[]}"#, "unknown", None),
    ] {
        let mut t = Tape::over_stdio();
        t.call(1.0, None);
        t.received(2.0, &result(7, r), None);
        let s = t.it().settled.clone().unwrap();
        assert_eq!((t.it().word(), s.answer_status), (word, status), "{r}: {}", s.why);
        assert!(word == "ok" || s.why.contains("malformed"), "{r}: {}", s.why);
        assert_eq!(s.result.as_deref(), Some(r), "the evidence is kept");
    }
    // The habit of JSON-RPC 1: the unused member is there as null.
    for (frame, word) in [
        (r#"{"id":7,"result":{"content":[]},"error":null}"#, "ok"),
        (r#"{"id":7,"result":null,"error":{"code":1,"message":"no"}}"#, "rpc_error"),
        (r#"{"id":7,"result":null,"error":null}"#, "unknown"),
    ] {
        let mut t = Tape::over_stdio();
        t.call(1.0, None);
        t.received(2.0, frame, None);
        assert_eq!(t.it().word(), word, "{frame}: {:?}", t.said());
    }
}

#[test]
fn neighbours_on_a_stream_settle_nothing_and_the_answer_counts() {
    for neighbour in [
        r#"{"jsonrpc":"2.0","id":999,"error":{"code":-32000,"message":"something else"}}"#,
        r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"parse error"}}"#,
        r#"{"jsonrpc":"2.0"}"#,
        r#"{"jsonrpc":"2.0","method":null,"params":{}}"#,
        r#"[{"jsonrpc":"2.0","method":"notifications/message","params":{}}]"#,
        r#"{"id":999,"result":null}"#,
        r#"{"error":"text"}"#,
    ] {
        let mut t = Tape::over_http();
        t.call(1.0, Some(9));
        t.http(2.0, 9, t.stream_headers());
        t.received(2.0, neighbour, Some(9));
        assert!(t.it().is_pending(), "{neighbour}: {:?}", t.said());
        assert!(!t.notes().is_empty(), "{neighbour} is told");
        let mut cut = Tape::over_http();
        cut.call(1.0, Some(9));
        cut.http(2.0, 9, t.stream_headers());
        cut.received(2.0, neighbour, Some(9));
        cut.http(3.0, 9, Http::End);
        let (word, _, why) = cut.said();
        assert_eq!(word, "unknown", "{neighbour}: {why}");
        assert!(why.contains("malformed") || why.contains("an answer with"), "{neighbour}: {why}");
        t.received(3.0, OK, Some(9));
        assert_eq!((t.it().word(), t.it().extra_answers), ("ok", 0), "{neighbour}");
    }
    // As the whole body of its exchange it is the answer, such as it is.
    for (body, word) in [
        (r#"{"jsonrpc":"2.0"}"#, "unknown"),
        (r#"{"id":999,"error":{"code":1,"message":"m"}}"#, "rpc_error"),
    ] {
        let mut t = Tape::over_http();
        t.call(1.0, Some(9));
        t.http(2.0, 9, t.status(200, "application/json"));
        t.received(2.0, body, Some(9));
        assert_eq!(t.it().word(), word, "{body}");
    }
    // The same digits in another type are nobody else's, also there.
    let mut t = Tape::over_http();
    t.call(1.0, Some(9));
    t.http(2.0, 9, t.stream_headers());
    t.received(2.0, r#"{"id":"7","error":{"code":1,"message":"m"}}"#, Some(9));
    assert_eq!(t.it().word(), "rpc_error");
}

/// A call that became the task t-1, which is `status` when it is looked at.
fn task(status: &str) -> (Tape, u64) {
    let mut t = Tape::over_stdio();
    t.at(0.5, agreed("2025-11-25"));
    let call = t.call(1.0, None);
    t.received(2.0, &result(7, r#"{"task":{"taskId":"t-1","status":"working"}}"#), None);
    ask(&mut t, call, 8, "tasks/get");
    t.received(3.0, &result(8, &format!(r#"{{"taskId":"t-1","status":"{status}"}}"#)), None);
    (t, call)
}

fn ask(t: &mut Tape, call: u64, id: u32, method: &str) {
    let ask =
        format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"{method}","params":{{"taskId":"t-1"}}}}"#);
    t.sent(3.0, &ask, None, Purpose::FollowUp { call });
}

#[test]
fn an_error_instead_of_a_task_s_result_is_the_call_s_own_only_when_the_task_failed() {
    for (status, code, message, word) in [
        ("completed", -32602, "Task not found (expired)", "unknown"),
        ("completed", -32601, "Method not found", "unknown"),
        ("completed", -32603, "upstream timeout", "unknown"),
        ("input_required", -32602, "no such task", "unknown"),
        ("failed", -32602, "title is missing", "rpc_error"),
        ("failed", -32603, "boom", "rpc_error"),
        ("failed", -32602, "Task not found", "unknown"),
    ] {
        let (mut t, call) = task(status);
        ask(&mut t, call, 9, "tasks/result");
        let error = format!(r#"{{"id":9,"error":{{"code":{code},"message":"{message}"}}}}"#);
        t.received(4.0, &error, None);
        let (got, _, why) = t.said();
        assert_eq!(got, word, "{status} {code} {message}: {why}");
        assert!(word != "unknown" || why.contains(&format!("is {status}")), "{why}");
        assert!(why.contains(message), "{why}");
    }
}

#[test]
fn what_is_said_of_another_task_settles_nothing() {
    let (mut t, call) = task("working");
    ask(&mut t, call, 9, "tasks/get");
    let other = r#"{"taskId":"OTHER","status":"completed","result":{"content":[]}}"#;
    t.received(4.0, &result(9, other), None);
    assert!(t.it().is_pending() && t.notes().contains("the task OTHER"), "{}", t.notes());
    assert_eq!(t.it().live.task.as_ref().unwrap().id, "t-1");
    ask(&mut t, call, 10, "tasks/result");
    let other =
        r#"{"content":[],"_meta":{"io.modelcontextprotocol/related-task":{"taskId":"OTHER"}}}"#;
    t.received(5.0, &result(10, other), None);
    assert!(t.it().is_pending(), "{:?}", t.said());
    ask(&mut t, call, 11, "tasks/result");
    t.received(6.0, &result(11, &other.replace("OTHER", "t-1")), None);
    assert_eq!(t.it().word(), "ok");
}

#[test]
fn a_later_round_that_is_refused_says_nothing_of_the_first() {
    for status in [401, 429, 404] {
        let mut t = Tape::over_http();
        t.in_session();
        let call = t.call(1.0, Some(9));
        t.http(2.0, 9, t.status(200, "application/json"));
        t.received(
            2.0,
            &result(7, r#"{"resultType":"input_required","requestState":"s"}"#),
            Some(9),
        );
        t.http(2.0, 9, Http::End);
        let again = r#"{"id":8,"method":"tools/call","params":{"name":"create_ticket"}}"#;
        t.sent(3.0, again, Some(10), Purpose::FollowUp { call });
        t.http(4.0, 10, t.status(status, "text/plain"));
        t.http(4.0, 10, Http::End);
        let (word, _, why) = t.said();
        assert_eq!(word, "unknown", "{status}: {why}");
        assert!(why.starts_with("round 2 was refused: "), "{why}");
    }
}

#[test]
fn a_legal_batch_is_read_one_level_deep_and_kept_as_it_came() {
    let notification = r#"{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}"#;
    let batch = format!("[{notification},{OK},5]");
    let mut t = Tape::over_stdio();
    t.at(0.5, agreed("2025-03-26"));
    t.call(1.0, None);
    t.received(2.0, &batch, None);
    assert_eq!(t.it().word(), "ok", "{:?}", t.said());
    assert!(t.session.tools_stale && t.notes().contains("in a batch, no message: 5"));
    // Depth is not the server's to choose.
    let deep = format!("{}{OK}{}", "[".repeat(2000), format!(",{notification}]").repeat(2000));
    for version in ["2025-03-26", "2025-11-25"] {
        let mut t = Tape::over_stdio();
        t.at(0.5, agreed(version));
        t.call(1.0, None);
        t.received(2.0, &deep, None);
        assert!(t.it().is_pending(), "{version}");
        assert!(t.notes().contains("a malformed message: a batch"), "{version}: {}", t.notes());
    }
}

#[test]
fn others_words_are_bounded_where_they_are_kept() {
    let long = "x".repeat(1 << 20);
    let mut t = Tape::over_stdio();
    t.call(1.0, None);
    t.received(2.0, &format!(r#"{{"id":"{long}","method":"{long}"}}"#), None);
    t.received(2.0, &format!(r#"{{"id":"{long}","result":{{}}}}"#), None);
    t.received(2.0, &format!(r#"{{"id":null,"error":{{"code":1,"message":"{long}"}}}}"#), None);
    t.received(2.0, &format!(r#"{{"id":"{long}","result":null}}"#), None);
    t.at(3.0, Kind::Note(super::Note::Text(long.clone())));
    let kept: usize = t.session.notes.iter().map(|(_, n)| n.len()).sum::<usize>()
        + t.session.asked_of_us.keys().map(String::len).sum::<usize>()
        + t.it().live.remark.as_ref().map_or(0, String::len);
    assert!(kept < 10_000, "{kept}");
    let progress = format!(
        r#"{{"method":"notifications/progress","params":{{"progressToken":7,"progress":1,"message":"{long}"}}}}"#
    );
    t.received(4.0, &progress, None);
    assert!(t.it().live.progress.as_ref().unwrap().message.as_ref().unwrap().len() < 10_000);
}

#[test]
fn many_results_are_bounded_in_all_however_small_each_is() {
    let mut t = Tape::over_stdio();
    let text = "x".repeat(200 << 10);
    for id in 1..=20 {
        let call = format!(r#"{{"id":{id},"method":"tools/call","params":{{"name":"t"}}}}"#);
        t.sent(1.0, &call, None, Purpose::Asked);
        t.received(1.0, &result(id, &format!(r#"{{"content":[],"x":"{text}"}}"#)), None);
    }
    super::settle::let_old_results_go(&mut t.session, crate::time::Time(0), 2 << 20);
    let kept = |s: &super::Session| {
        s.calls.values().filter(|c| c.settled.as_ref().unwrap().result.is_some()).count()
    };
    assert_eq!(kept(&t.session), 5, "the newest ones, half of the limit");
    assert!(t.session.calls.values().rev().take(5).all(|c| c.live.result_let_go.is_none()));
}

#[test]
fn the_answer_to_another_client_s_request_of_the_same_id_settles_no_call() {
    // Two clients share a generation through a tap, and both count from 1: 7 is a call here and a list there.
    let list = r#"{"jsonrpc":"2.0","id":7,"method":"tools/list"}"#;
    let tools = r#"{"jsonrpc":"2.0","id":7,"result":{"tools":[],"content":[]}}"#;
    let mut t = Tape::over_http();
    t.call(1.0, Some(9));
    t.sent(1.1, list, Some(10), Purpose::Asked);
    t.http(1.2, 10, t.status(200, "application/json"));
    t.received(1.3, tools, Some(10));
    // Told a second time, it is still no answer to the call.
    t.received(1.4, tools, Some(10));
    t.http(1.5, 10, Http::End);
    assert!(t.it().is_pending(), "{:?}", t.said());
    t.http(2.0, 9, t.status(200, "application/json"));
    t.received(2.1, OK, Some(9));
    assert_eq!((t.it().word(), t.it().extra_answers), ("ok", 0), "{:?}", t.said());
}
