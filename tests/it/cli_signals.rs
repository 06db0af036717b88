//! SIGINT, SIGTERM and SIGHUP while an endpoint is open: the child is ended with its group, what was sent is told, and
//! nothing is left to guess.

use crate::support::cli::{FakeStdio, Ran, both, command, make_ledger, redial, tickets, tool};
use crate::support::served::{Served, Transport};
use crate::support::until;
use rustix::process::{Pid, Signal, kill_process, test_kill_process};
use std::process::Child;

fn pid(child: &Child) -> Pid {
    Pid::from_raw(child.id() as i32).unwrap()
}

fn finish(child: Child) -> Ran {
    Ran::from(child.wait_with_output().unwrap())
}

fn gone(pid: Pid) {
    until("the server is gone", || test_kill_process(pid).is_err().then_some(()));
}

fn spawn(fake: &FakeStdio, args: &[&str]) -> Child {
    let server = fake.command();
    let server: Vec<&str> = server.iter().map(String::as_str).collect();
    command(&both(args, &server)).spawn().unwrap()
}

#[test]
fn a_call_that_is_interrupted_is_unknown_and_its_server_is_gone() {
    let more =
        [Signal::QUIT, Signal::ABORT, Signal::USR1, Signal::ALARM, Signal::XCPU, Signal::SYS];
    #[cfg(target_os = "linux")]
    let more = more.into_iter().chain([Signal::POWER, Signal::IO]);
    for signal in [Signal::INT, Signal::TERM, Signal::HUP].into_iter().chain(more) {
        let fake = FakeStdio::new();
        fake.tools(&format!("[{}]", tool("create_ticket", ""))).file("stderr", "boot id 1");
        let child =
            spawn(&fake, &["call", "create_ticket", "--args", r#"{"request_id":"r-1"}"#, "--json"]);
        until("the call", || (fake.calls() == 1).then_some(()));
        kill_process(pid(&child), signal).unwrap();
        let ran = finish(child);
        assert_eq!(
            (ran.exit, ran.text(&["outcome"]), ran.text(&["sent"])),
            (4, "unknown".into(), "1".into()),
            "{}",
            ran.all()
        );
        assert!(ran.stderr.contains("interrupted (SIG"), "{}", ran.stderr);
        let why = ran.text(&["why"]);
        assert!(
            why.starts_with("given up (SIG")
                && why.contains("redial ended the server before it answered"),
            "{why}"
        );
        gone(fake.pid().unwrap());
        assert_eq!(fake.calls(), 1);
    }
}

#[test]
fn an_interrupted_ticket_is_seen_to_be_abandoned() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("ledger.db");
    let ledger = path.to_str().unwrap();
    let serve = both(&tickets(ledger), &["--work-seconds", "60"]);
    let args = r#"{"request_id":"r-1","title":"t","body":"b"}"#;
    let call =
        both(&["call", "create_ticket", "--args", args, "--json", "--ledger", ledger], &serve);
    redial(&both(&["tools"], &tickets(ledger))).expect(0, &[]);
    let child = command(&call).spawn().unwrap();
    until("the claim", || {
        redial(&["rows", "--ledger", ledger]).stdout.contains("1 running").then_some(())
    });
    kill_process(pid(&child), Signal::INT).unwrap();
    let ran = finish(child);
    assert_eq!((ran.exit, ran.text(&["outcome"])), (4, "unknown".into()), "{}", ran.all());
    // Its server's end was seen before the ledger was read again: the next step is the right one.
    assert_eq!(ran.text(&["state_after"]), "abandoned", "{}", ran.all());
    assert!(ran.text(&["next"]).starts_with("repeat with the same request_id"), "{}", ran.all());
    assert_ne!(ran.get(&["exit"]), "null");
}

#[test]
fn over_http_the_call_is_given_up_and_the_server_lives_on() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("ledger.db");
    let ledger = path.to_str().unwrap();
    let served =
        Served::start(Transport::Http, &["tickets", "--ledger", ledger, "--work-seconds", "60"]);
    let url = format!("http://{}/mcp", served.address());
    let args = r#"{"request_id":"r-1","title":"t","body":"b"}"#;
    let call =
        ["call", "create_ticket", "--args", args, "--json", "--ledger", ledger, "--http", &url];
    let child = command(&call).spawn().unwrap();
    until("the claim", || {
        redial(&["rows", "--ledger", ledger]).stdout.contains("1 running").then_some(())
    });
    kill_process(pid(&child), Signal::TERM).unwrap();
    let ran = finish(child);
    assert_eq!(
        (ran.exit, ran.text(&["outcome"]), ran.text(&["sent"])),
        (4, "unknown".into(), "1".into()),
        "{}",
        ran.all()
    );
    assert_eq!(ran.text(&["state_after"]), "running", "{}", ran.all());
    redial(&["tools", "--http", &url]).expect(0, &["create_ticket"]);
}

#[test]
fn before_the_server_is_ready_nothing_was_sent() {
    let dir = tempfile::tempdir().unwrap();
    let mark = dir.path().join("pid");
    let script = format!("echo $$ >'{}'; exec sleep 300", mark.display());
    for base in
        [&["tools"][..], &["call", "x"], &["reissue", "r-1", "--args", "{}"], &["find", "r-1"]]
    {
        std::fs::remove_file(&mark).ok();
        let child = command(&both(base, &["--json", "--", "sh", "-c", &script])).spawn().unwrap();
        let server = until("the server", || {
            std::fs::read_to_string(&mark).ok()?.trim().parse().ok().and_then(Pid::from_raw)
        });
        kill_process(pid(&child), Signal::INT).unwrap();
        let ran = finish(child);
        ran.expect(5, &["interrupted (SIGINT); nothing was sent"]);
        assert_eq!(ran.doc()["error"]["exit_status"], 5);
        gone(server);
    }
}

#[test]
fn a_second_signal_kills_a_server_that_will_not_go() {
    let fake = FakeStdio::new();
    fake.tools(&format!("[{}]", tool("create_ticket", ""))).file("stay", "");
    let child = spawn(&fake, &["call", "create_ticket", "--json"]);
    until("the call", || (fake.calls() == 1).then_some(()));
    kill_process(pid(&child), Signal::INT).unwrap();
    kill_process(pid(&child), Signal::TERM).unwrap();
    let ran = finish(child);
    assert_eq!((ran.exit, ran.text(&["outcome"])), (4, "unknown".into()), "{}", ran.all());
    gone(fake.pid().unwrap());
}

#[test]
fn a_private_copy_of_a_ledger_is_gone_after_a_signal_even_when_nobody_reads_the_report() {
    let (dir, tmp) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let path = dir.path().join("ledger.db");
    let rows = "WITH RECURSIVE c(i) AS (SELECT 1 UNION ALL SELECT i+1 FROM c WHERE i < 5000)
        INSERT INTO requests SELECT 'r-'||i, 'h', 'done', NULL, 'o', 1.0 FROM c;";
    make_ledger(&path, rows);
    // It looks like one of a writer that died, so the ledger is read in a copy.
    std::fs::write(dir.path().join("ledger.db-journal"), [0xd9, 0xd5, 0x05, 0xf9]).unwrap();
    let copies = || std::fs::read_dir(tmp.path()).unwrap().count();
    for signal in [Signal::INT, Signal::TERM, Signal::HUP] {
        // Its stdout is a pipe that nobody reads: it is full soon.
        let mut c = command(&["rows", "--json", "--ledger", path.to_str().unwrap()]);
        let mut child = c.env("TMPDIR", tmp.path()).spawn().unwrap();
        until("the copy", || (copies() == 1).then_some(()));
        // Handlers are in place before the ledger is opened.
        kill_process(pid(&child), signal).unwrap();
        let status = until("the end", || child.try_wait().unwrap());
        assert_eq!(status.code(), Some(6), "{signal:?}");
        let ran = finish(child);
        assert!(ran.stderr.contains("interrupted (SIG"), "{}", ran.stderr);
        assert_eq!(copies(), 0, "{signal:?}");
    }
}
