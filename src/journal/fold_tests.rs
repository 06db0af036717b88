//! Any events in any order: the fold takes them, and an answered call stays answered.

use super::call::AnswerStatus;
use super::event::{Http, Kind, Note, Purpose};
use super::testing::Tape;
use bytes::Bytes;
use proptest::prelude::*;

/// Frames of every kind, legal or not, that meet a call with the id 7 and its neighbours.
const FRAMES: [&str; 16] = [
    r#"{"jsonrpc":"2.0","id":7,"result":{"content":[]}}"#,
    r#"{"id":"7","result":{}}"#,
    r#"{"id":7,"result":null}"#,
    r#"{"id":7,"result":{},"error":{}}"#,
    r#"{"id":null,"error":{"code":-1,"message":"m"}}"#,
    r#"{"id":7,"error":"text"}"#,
    r#"[{"id":7,"result":{}},{"id":8}]"#,
    r#"{"id":7,"result":{"resultType":"input_required","requestState":"s"}}"#,
    r#"{"id":7,"result":{"resultType":"task","taskId":"t","status":"working"}}"#,
    r#"{"id":8,"result":{"taskId":"t","status":"completed","result":{"content":[]}}}"#,
    r#"{"method":"notifications/progress","params":{"progressToken":7,"progress":1e400,"total":-1}}"#,
    r#"{"method":"notifications/tasks","params":{"taskId":"t","status":"failed"}}"#,
    r#"{"id":7,"method":"tools/call"}"#,
    r#"{"jsonrpc":"2.0"}"#,
    "{",
    "}",
];

fn kind() -> impl Strategy<Value = Kind> {
    let frame = (0..FRAMES.len()).prop_map(|i| Bytes::from_static(FRAMES[i].as_bytes()));
    let exchange = proptest::option::of(8u64..11);
    let status = prop_oneof![Just(200u16), Just(202), Just(400), Just(404), Just(502)];
    prop_oneof![
        (frame.clone(), exchange.clone())
            .prop_map(|(raw, exchange)| Kind::Received { raw, exchange }),
        (frame.clone(), 0u64..9).prop_map(|(raw, cut)| Kind::Noise { raw, cut }),
        (frame.clone(), exchange, 0u64..4).prop_map(|(raw, exchange, call)| {
            let purpose = if call == 0 { Purpose::Asked } else { Purpose::FollowUp { call } };
            Kind::Sent { raw, exchange, purpose }
        }),
        (8u64..11, frame)
            .prop_map(|(exchange, raw)| Kind::Http { exchange, what: Http::Body { raw, cut: 0 } }),
        (8u64..11, status).prop_map(|(exchange, status)| {
            let what = Http::Status {
                status,
                content_type: None,
                session: Some("s".into()),
                www_authenticate: None,
                location: None,
            };
            Kind::Http { exchange, what }
        }),
        (8u64..11, any::<bool>()).prop_map(|(exchange, c)| Kind::Http {
            exchange,
            what: Http::Failed { why: "x".into(), connected: c }
        }),
        (8u64..11).prop_map(|exchange| Kind::Http { exchange, what: Http::End }),
        (1u64..4).prop_map(|call| Kind::Note(Note::TimedOut { call, after_s: 1.0 })),
        (1u64..4).prop_map(|call| Kind::Note(Note::LeftOpen { call, why: "w".into() })),
        (1u64..4, any::<bool>()).prop_map(|(sent, left)| Kind::NotWritten {
            sent,
            why: "w".into(),
            left
        }),
        Just(Kind::StdoutClosed),
        Just(Kind::Exit { code: None, signal: Some(9), left: crate::procs::Left::Perhaps }),
        Just(Kind::AllGone),
        Just(Kind::Exit { code: Some(1), signal: None, left: crate::procs::Left::Nobody }),
    ]
}

proptest! {
    /// Whatever comes in whatever order: no panic, an answered call stays answered, `not_sent` never left.
    #[test]
    fn nothing_breaks_the_fold(kinds in proptest::collection::vec(kind(), 0..40), http in any::<bool>()) {
        let mut t = if http { Tape::over_http() } else { Tape::over_stdio() };
        let call = t.call(1.0, http.then_some(9));
        let mut answered = false;
        for (i, k) in kinds.into_iter().enumerate() {
            t.at(2.0 + i as f64, k);
            let c = &t.session.calls[&call];
            let word = c.word();
            prop_assert!(word != "not_sent" || c.sent == 0);
            let open = c.settled.as_ref().is_some_and(|s| s.answer_status == Some(AnswerStatus::InProgress));
            prop_assert!(!answered || matches!(word, "ok" | "tool_error" | "rpc_error"), "{word}");
            answered |= !open && matches!(word, "ok" | "tool_error" | "rpc_error");
            super::waiting::waiting(c, &t.session, crate::time::Time(i64::MAX / 2));
        }
    }
}
