//! A recording beside the ledger: the agent's own call, killed in mid-work, judged and repeated from what the tap
//! wrote down, while this program only looks on.

use crate::support::cli::{EXE, program};
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

/// What a tap writes down of the end of a server that runs `script`.
#[cfg(target_os = "linux")]
fn recorded_end(script: &str) -> redial::journal::Generation {
    let dir = tempfile::tempdir().unwrap();
    let out = dir.path().join("r.jsonl");
    let status = program()
        .args(["record", "--out"])
        .arg(&out)
        .args(["--", "sh", "-c", script])
        .env("XDG_STATE_HOME", dir.path())
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .unwrap();
    assert_eq!(status.code(), Some(7));
    Recording::open(&out).unwrap().session.generations[0].clone()
}

#[cfg(target_os = "linux")]
#[test]
fn a_tap_writes_down_who_goes_on_behind_it() {
    use redial::procs::Left;
    let alone = recorded_end("exit 7");
    assert_eq!(alone.left, Left::Nobody);
    assert!(alone.ended.unwrap().gone_at.is_some());
    // Without a variable to know it by: it comes to the tap as an orphan.
    let worker = "(env -i /usr/bin/setsid /bin/sleep 300 </dev/null >/dev/null 2>&1 &); exit 7";
    let Left::These(all) = recorded_end(worker).left else { panic!("somebody is left") };
    let pid = all[0].pid.to_string();
    Command::new("kill").args(["-9", &pid]).status().unwrap();
    assert_eq!(all.len(), 1, "{all:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_agents_death_is_seen_and_its_bytes_are_kept() {
    let dir = tempfile::tempdir().unwrap();
    let (out, ledger) = (dir.path().join("r.jsonl"), dir.path().join("l.db"));
    let mut tap = program()
        .args(["record", "--out"])
        .arg(&out)
        .args(["--", EXE, "serve", "tickets", "--work-seconds", "60", "--ledger"])
        .arg(&ledger)
        .env("XDG_STATE_HOME", dir.path())
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut stdin = tap.stdin.take().unwrap();
    // As behind any handshake, the server has said who it is before it is asked for anything.
    until("its boot id", || {
        let said =
            |r: &Recording| r.session.generations.first().is_some_and(|g| !g.boot.is_empty());
        Recording::open(&out).ok().filter(said)
    });
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
