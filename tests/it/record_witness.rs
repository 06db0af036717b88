//! A recording beside the ledger: the agent's own call, killed in mid-work, judged and repeated from what the tap
//! wrote down, while this program only looks on.

use crate::support::until;
use redial::inspect::Inspector;
use redial::inspect::recorded::{RECORDED_CALLS, Recorded};
use redial::judge::Rules;
use redial::ledger::Ledger;
use redial::model::arguments::Source;
use redial::recording::Recording;
use std::io::Write;
use std::process::{Command, Stdio};

const ARGS: &str = r#"{ "request_id":"r-1", "title":"a","body":"b" }"#;

#[tokio::test(flavor = "multi_thread")]
async fn the_agents_death_is_seen_and_its_bytes_are_kept() {
    let dir = tempfile::tempdir().unwrap();
    let (out, ledger) = (dir.path().join("r.jsonl"), dir.path().join("l.db"));
    let program = env!("CARGO_BIN_EXE_redial");
    let mut tap = Command::new(program)
        .args(["record", "--out"])
        .arg(&out)
        .args(["--", program, "serve", "tickets", "--work-seconds", "60", "--ledger"])
        .arg(&ledger)
        .env("XDG_STATE_HOME", dir.path())
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut stdin = tap.stdin.take().unwrap();
    writeln!(stdin, r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{{"name":"create_ticket","arguments":{ARGS}}}}}"#).unwrap();
    let recorded = until("the recording", || {
        Recording::open(&out).ok().filter(|r| !r.session.calls.is_empty())
    });
    assert!(recorded.is_being_written());
    let pid = recorded.session.generations[0].transport.clone();
    let redial::journal::event::Transport::Stdio { pid: Some(pid), .. } = pid else {
        panic!("{pid:?}")
    };
    let mut inspector = Inspector::new(Some(Ledger::open(&ledger)), None, Rules::default());
    inspector.recording = Some(Recorded::new(recorded));
    let verdict = async |want: &str| {
        loop {
            let r = inspector.request("r-1", None).await;
            let words = r.line.verdict_words();
            if words.iter().any(|w| w == want) {
                return r;
            }
            tokio::time::sleep(std::time::Duration::from_millis(20)).await;
        }
    };
    // Claimed, and its owner alive.
    tokio::time::timeout(crate::support::LIMIT, verdict("working")).await.unwrap();
    Command::new("kill").args(["-9", &pid.to_string()]).status().unwrap();
    assert_eq!(until("the tap ends", || tap.try_wait().unwrap()).code(), Some(137));
    // The tap saw the end: observed, not presumed.
    let r = tokio::time::timeout(crate::support::LIMIT, verdict("abandoned")).await.unwrap();
    let call = &r.facts.calls[0];
    assert!(call.id > RECORDED_CALLS && call.settled.as_ref().unwrap().why.contains("SIGKILL"));
    assert_eq!(r.candidates[0].args, ARGS, "byte for byte");
    assert!(matches!(&r.candidates[0].source, Source::Recording(p) if p.ends_with("r.jsonl")));
    assert_eq!(redial::inspect::request::hash_matches(r.hash.check), Some(true));
    drop(stdin);
}

#[tokio::test]
async fn a_call_that_waits_in_a_file_nobody_writes_is_unknown() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("r.jsonl");
    let text = r#"{"seq":1,"at":"2026-11-29T02:57:10.123456Z","mono":1,"gen":1,"kind":"opened","transport":"stdio","command":["s"]}
{"seq":2,"at":"2026-11-29T02:57:11.123456Z","mono":2,"gen":1,"kind":"sent","text":"{\"id\":1,\"method\":\"tools/call\",\"params\":{\"name\":\"t\",\"arguments\":{\"request_id\":\"r-1\"}}}"}
"#;
    std::fs::write(&path, text).unwrap();
    let recorded = Recorded::new(Recording::open(&path).unwrap());
    let s = recorded.session();
    let call = s.calls.values().next().unwrap();
    assert_eq!(call.word(), "unknown");
    assert!(call.settled.as_ref().unwrap().why.contains("the recording ends"));
}
