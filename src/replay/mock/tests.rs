use super::*;

fn ask(method: &str, params: &str, answer: Option<&str>) -> Ask {
    Ask {
        seq: 1,
        generation: 1,
        mono_us: 0,
        id: Some(Id::from(1)),
        method: Some(method.into()),
        params: Some(params.into()),
        answer: answer.map(|a| Said::Result(a.into())),
        took_ms: Some(20.0),
        ..Ask::default()
    }
}

fn call(args: &str) -> String {
    format!(
        r#"{{"jsonrpc":"2.0","id":"x","method":"tools/call","params":{{"name":"t","arguments":{args},"_meta":{{"progressToken":9}}}}}}"#
    )
}

#[test]
fn a_recording_without_a_handshake_can_be_connected_to_and_nothing_else_is_made_up() {
    let mock = Mock::new(vec![ask("tools/call", r#"{"name":"t","arguments":{}}"#, Some("{}"))]);
    let said = |text: &str| match mock.step(text) {
        Step::Miss { json, words } => (json, words),
        other => (format!("{other:?}"), String::new()),
    };
    let (hello, words) = said(
        r#"{"id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{}}}"#,
    );
    assert!(hello.contains(r#""result":{"protocolVersion":"2025-06-18","#), "{hello}");
    assert!(words.contains("not in the recording: initialize"), "{words}");
    let (tools, _) = said(r#"{"id":2,"method":"tools/list"}"#);
    assert!(tools.contains(r#"{"tools":[{"name":"t","inputSchema""#), "{tools}");
    assert!(said(r#"{"id":3,"method":"prompts/list"}"#).0.contains("-32601"));
    // What was recorded is not made up: other parameters are a miss.
    let listed = Mock::new(vec![ask("tools/list", r#"{"cursor":"c"}"#, Some("{}"))]);
    let Step::Miss { json, .. } = listed.step(r#"{"id":2,"method":"tools/list"}"#) else {
        panic!()
    };
    assert!(json.contains("-32010"), "{json}");
}

#[test]
fn answers_come_in_the_recorded_order_and_misses_are_loud() {
    let p = r#"{"_meta":{"progressToken":1},"arguments":{"a":1,"b":2},"name":"t"}"#;
    let mock = Mock::new(vec![
        ask("initialize", r#"{"clientInfo":1}"#, Some(r#"{"i":1}"#)),
        ask("tools/call", p, Some(r#"{"n":1}"#)),
        ask("tools/call", p, Some(r#"{"n":2}"#)),
        ask("tools/call", r#"{"name":"t","arguments":{"lost":1}}"#, None),
    ]);
    let said = |text: &str| match mock.step(text) {
        Step::Answer { json, .. } => json,
        Step::Miss { json, .. } => json,
        other => format!("{other:?}"),
    };
    let again = call(r#"{ "b":2, "a":1 }"#);
    assert_eq!(said(&again), r#"{"jsonrpc":"2.0","id":"x","result":{"n":1}}"#);
    assert_eq!(said(&again), r#"{"jsonrpc":"2.0","id":"x","result":{"n":2}}"#);
    assert!(said(&again).contains("recorded 2 times and is now asked for the 3rd time"));
    assert!(matches!(mock.step(&call(r#"{"lost":1}"#)), Step::Silence { died: None, .. }));
    let miss = said(&call(r#"{"a":1,"b":3}"#));
    assert!(
        miss.contains("-32010") && miss.contains(r#"nearest: tools/call t {\"a\":1,\"b\":2}"#),
        "{miss}"
    );
    assert!(said(r#"{"id":1,"method":"resources/list"}"#).contains("-32601"));
    for _ in 0..3 {
        assert!(
            said(r#"{"id":1,"method":"initialize","params":{"clientInfo":2}}"#)
                .contains(r#""i":1"#)
        );
    }
    assert!(said(r#"{"id":1,"method":"ping"}"#).contains(r#""result":{}"#));
    assert_eq!(mock.step(r#"{"method":"notifications/initialized"}"#), Step::Nothing);
}

#[test]
fn what_stood_around_an_answer_comes_with_it_and_progress_has_the_token_of_now() {
    let told = |text: &str, before| Told { text: text.into(), stderr: false, before, after_us: 5 };
    let mut one = ask(
        "tools/call",
        r#"{"name":"t","arguments":{"a":1},"_meta":{"progressToken":7}}"#,
        Some("{}"),
    );
    one.told = vec![
        told(
            r#"{"method":"notifications/progress","params":{"progressToken": 7,"progress":1}}"#,
            true,
        ),
        told(
            r#"{"method":"notifications/progress","params":{"progressToken":70,"progress":1}}"#,
            true,
        ),
        told(r#"{"method":"notifications/message","params":{"data":"x"}}"#, false),
    ];
    let mock = Mock::new(vec![one]);
    let Step::Answer { around, .. } = mock.step(&call(r#"{"a":1}"#)) else { panic!() };
    let texts: Vec<_> = around.iter().map(|t| (t.text.as_str(), t.before)).collect();
    assert_eq!(
        texts,
        [
            (
                r#"{"method":"notifications/progress","params":{"progressToken":9,"progress":1}}"#,
                true
            ),
            (r#"{"method":"notifications/message","params":{"data":"x"}}"#, false),
        ]
    );
}

#[test]
fn a_life_that_is_over_is_not_lived_again() {
    let p = r#"{"name":"t","arguments":{"a":1}}"#;
    let died = Some(Died { code: None, signal: Some(9), after_us: 1 });
    let first = Ask { generation: 1, died, ..ask("tools/call", p, None) };
    let second = Ask { generation: 2, ..ask("tools/call", p, Some(r#"{"n":2}"#)) };
    let script = vec![first, second];
    let step = |over| Mock::after(script.clone(), over).step(&call(r#"{"a":1}"#));
    assert!(matches!(step(0), Step::Silence { died: Some(d), .. } if d.signal == Some(9)));
    for over in [1, 2, 9] {
        assert!(matches!(step(over), Step::Answer { json, .. } if json.contains(r#"{"n":2}"#)));
    }
}
