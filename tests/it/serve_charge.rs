//! `serve charge` as a process: each call is an effect, made before the call takes its time.

use crate::support::served::{BOTH, Served, Transport};
use crate::support::until;
use redial::json::raw;
use std::path::Path;

fn lines(path: &Path) -> Vec<String> {
    std::fs::read_to_string(path).unwrap().lines().map(str::to_owned).collect()
}

#[test]
fn charging_twice_charges_twice() {
    for transport in BOTH {
        let dir = tempfile::tempdir().unwrap();
        let effects = dir.path().join("charges.jsonl");
        let server = Served::start(transport, &["charge", "--effects", effects.to_str().unwrap()]);
        let list = server.ask("tools/list", "{}");
        let tools = raw::items(raw::get_path(&list, &["result", "tools"]).unwrap()).unwrap();
        assert_eq!(
            raw::get(tools[0], "annotations"),
            Some(r#"{"readOnlyHint":false,"destructiveHint":true,"idempotentHint":false}"#)
        );
        for _ in 0..2 {
            let result = server.call("charge", r#"{"amount":100}"#);
            assert!(result.contains(r#""text":"charged 100.0""#), "{result}");
        }
        let effects = lines(&effects);
        assert_eq!(effects.len(), 2);
        assert_ne!(raw::get(&effects[0], "reqId"), raw::get(&effects[1], "reqId"));
        until("both effects are on stderr", || {
            (server.stderr().matches("SIDE EFFECT COMMITTED").count() == 2).then_some(())
        });
    }
}

#[test]
fn the_effect_outlives_a_cancel_and_a_kill_before_the_answer() {
    let dir = tempfile::tempdir().unwrap();
    let effects = dir.path().join("charges.jsonl");
    let args = ["charge", "--effects", effects.to_str().unwrap(), "--work-seconds", "600"];
    let server = Served::start(Transport::Stdio, &args);
    let (id, sent) = server.begin("tools/call", r#"{"name":"charge","arguments":{"amount":0.1}}"#);
    until("the effect is there", || (lines(&effects).len() == 1).then_some(()));
    server.notify(&format!(
        r#"{{"jsonrpc":"2.0","method":"notifications/cancelled","params":{{"requestId":{id}}}}}"#
    ));
    server.ask("ping", "{}");
    server.kill();
    assert_eq!(sent.answer(), None);
    let line = &lines(&effects)[0];
    assert_eq!(
        (raw::get(line, "amount"), raw::get(line, "reqId")),
        (Some("0.1"), Some(id.to_string().as_str()))
    );
}
