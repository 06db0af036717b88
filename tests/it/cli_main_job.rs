//! The article's four situations at the command line, against `serve tickets` over both transports: it dies in
//! the work, before the claim, after the work with the answer lost, and while the work is still running elsewhere.
//! In each of them: what the call said, what `find` says, what the gate asks, and how many tickets there are.

use crate::support::cli::{EXE, Ran, both, command, count_tickets, redial};
use crate::support::served::{Served, Transport};
use crate::support::until;
use std::path::Path;
use std::process::{Child, Command, Stdio};

const ARGS: &str = r#"{"request_id":"r-1","title":"障害報告","body":"ログイン不可"}"#;

/// Where the server is, as arguments of redial.
struct At {
    words: Vec<String>,
    http: Option<Served>,
}

impl At {
    fn start(transport: Transport, ledger: &str, work_s: &str) -> At {
        let serve = ["tickets", "--ledger", ledger, "--work-seconds", work_s];
        match transport {
            Transport::Stdio => At {
                words: both(&["--", EXE, "serve"], &serve).into_iter().map(str::to_owned).collect(),
                http: None,
            },
            Transport::Http => {
                let served = Served::start(transport, &serve);
                let url = format!("http://{}/mcp", served.address());
                At { words: vec!["--http".into(), url], http: Some(served) }
            }
        }
    }

    fn args<'a>(&'a self, base: &[&'a str]) -> Vec<&'a str> {
        let words: Vec<&str> = self.words.iter().map(String::as_str).collect();
        both(base, &words)
    }

    fn run(&self, base: &[&str]) -> Ran {
        redial(&self.args(base))
    }

    fn spawn(&self, base: &[&str]) -> Child {
        command(&self.args(base)).spawn().unwrap()
    }

    /// SIGKILL to the server; over stdio the child of `client`.
    fn kill(self, client: &Child) {
        match self.http {
            Some(served) => served.kill(),
            None => {
                let ours = client.id().to_string();
                let pid = until("the server's pid", || {
                    let out = Command::new("pgrep").args(["-P", &ours]).output().unwrap();
                    String::from_utf8(out.stdout).unwrap().trim().parse::<i32>().ok()
                });
                let pid = rustix::process::Pid::from_raw(pid).unwrap();
                rustix::process::kill_process(pid, rustix::process::Signal::KILL).unwrap();
            }
        }
    }
}

fn claimed(ledger: &str) {
    until("the claim", || {
        let rows = redial(&["rows", "--ledger", ledger, "--json", "--state", "running"]);
        (rows.exit == 0 && rows.stdout.contains("\"r-1\"")).then_some(())
    });
}

fn finish(child: Child) -> Ran {
    Ran::from(child.wait_with_output().unwrap())
}

fn field(ran: &Ran, name: &str) -> String {
    ran.text(&[name])
}

/// `reissue` without the flag sends nothing; with it, once. What the second run said.
fn reissue(at: &At, ledger: &str, path: &Path, tickets_before: usize) -> Ran {
    let base = ["reissue", "r-1", "--ledger", ledger, "--args", ARGS, "--json"];
    let stopped = at.run(&base);
    assert_eq!((stopped.exit, field(&stopped, "sent")), (3, "0".into()), "{}", stopped.all());
    assert_eq!(field(&stopped, "outcome"), "not_sent");
    assert_eq!(count_tickets(path), tickets_before);
    let done = at.run(&both(&base, &["--confirm", "r-1"]));
    assert_eq!(done.exit, 0, "{}", done.all());
    assert_eq!(
        (field(&done, "outcome"), field(&done, "answer_status")),
        ("ok".into(), "done".into())
    );
    assert_eq!(
        (field(&done, "state_after"), field(&done, "hash_matches")),
        ("done".into(), "true".into())
    );
    assert_eq!((field(&done, "sent"), field(&done, "effects_after")), ("1".into(), "1".into()));
    assert_eq!(count_tickets(path), 1);
    done
}

/// One test that calls, kills, finds, re-issues and counts one ticket.
fn killed_in_the_middle_of_the_work(transport: Transport) {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("ledger.db");
    let ledger = path.to_str().unwrap();
    let at = At::start(transport, ledger, "60");
    let call = at.spawn(&["call", "create_ticket", "--args", ARGS, "--json"]);
    claimed(ledger);
    at.kill(&call);
    let call = finish(call);
    assert_eq!((call.exit, field(&call, "outcome")), (4, "unknown".into()), "{}", call.all());
    assert_eq!(field(&call, "sent"), "1");
    if transport == Transport::Stdio {
        assert_eq!(call.text(&["exit", "signal"]), "9");
        assert!(field(&call, "stderr").contains("boot id"));
    }

    let at = At::start(transport, ledger, "0");
    let find = at.run(&["find", "r-1", "--ledger", ledger, "--json"]);
    // A server that redial itself has just started is no witness of the owner's end: the row is young, and nobody
    // here saw that process die.
    let state = if transport == Transport::Stdio { "running" } else { "abandoned" };
    assert_eq!((find.exit, field(&find, "state")), (0, state.into()), "{}", find.all());
    assert_eq!(find.text(&["server", "status"]), "abandoned");
    assert_eq!(
        (field(&find, "pairing"), find.text(&["ledger", "effects"])),
        ("consistent".into(), "0".into())
    );

    let first = reissue(&at, ledger, &path, 0);
    assert_eq!(field(&first, "replayed"), "false");
    assert_eq!(
        (field(&first, "effects_before"), field(&first, "effects_total_before")),
        ("0".into(), "0".into())
    );
    assert_eq!(field(&first, "pairing"), "proven");
    let second = reissue(&at, ledger, &path, 1);
    assert_eq!(field(&second, "replayed"), "true");
    assert_eq!(
        (field(&second, "effects_total_before"), field(&second, "effects_total_after")),
        ("1".into(), "1".into())
    );
    let rows = redial(&["rows", "--ledger", ledger]);
    rows.expect(0, &["1 request · 1 done · 1 ticket\n"]);
}

#[test]
fn killed_in_the_middle_of_the_work_over_stdio() {
    killed_in_the_middle_of_the_work(Transport::Stdio);
}

#[test]
fn killed_in_the_middle_of_the_work_over_http() {
    killed_in_the_middle_of_the_work(Transport::Http);
}

/// The client gave up; the work went on and was done. The repeat returns what is there.
fn the_answer_is_lost(transport: Transport) {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("ledger.db");
    let ledger = path.to_str().unwrap();
    let http =
        Served::start(Transport::Http, &["tickets", "--ledger", ledger, "--work-seconds", "1"]);
    let url = format!("http://{}/mcp", http.address());
    let call =
        ["call", "create_ticket", "--args", ARGS, "--timeout", "0.2", "--json", "--http", &url];
    let lost = redial(&call);
    assert_eq!((lost.exit, field(&lost, "outcome")), (4, "unknown".into()), "{}", lost.all());
    until("the work is done all the same", || {
        redial(&["find", "r-1", "--ledger", ledger]).all().contains("✓ done").then_some(())
    });
    drop(http);
    let at = At::start(transport, ledger, "0");
    let find = at.run(&["find", "r-1", "--ledger", ledger, "--json"]);
    assert_eq!((find.exit, field(&find, "state")), (0, "done".into()), "{}", find.all());
    assert_eq!(find.text(&["server", "status"]), "done");
    let again = reissue(&at, ledger, &path, 1);
    assert_eq!(
        (field(&again, "replayed"), field(&again, "effects_before")),
        ("true".into(), "1".into())
    );
}

#[test]
fn the_answer_is_lost_over_stdio() {
    the_answer_is_lost(Transport::Stdio);
}

#[test]
fn the_answer_is_lost_over_http() {
    the_answer_is_lost(Transport::Http);
}

/// The call never reached a server: nothing to repeat, the first delivery is the first.
fn it_never_arrived(transport: Transport) {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("ledger.db");
    let ledger = path.to_str().unwrap();
    let call = ["call", "create_ticket", "--args", ARGS, "--json"];
    let dead: &[&str] = match transport {
        Transport::Stdio => &["--", "sh", "-c", "exit 1"],
        Transport::Http => &["--http", "http://127.0.0.1:9/mcp"],
    };
    let lost = redial(&both(&call, dead));
    assert_eq!((lost.exit, field(&lost, "outcome")), (5, "not_sent".into()), "{}", lost.all());
    let at = At::start(transport, ledger, "0");
    at.run(&["tools"]).expect(0, &["create_ticket"]);
    let find = at.run(&["find", "r-1", "--ledger", ledger, "--json"]);
    assert_eq!((find.exit, field(&find, "state")), (1, "unknown".into()), "{}", find.all());
    assert_eq!(
        (find.get(&["ledger"]), find.text(&["server", "status"])),
        ("null".into(), "unknown".into())
    );
    let done = at.run(&both(&call, &["--ledger", ledger]));
    assert_eq!((done.exit, field(&done, "effects_after")), (0, "1".into()), "{}", done.all());
    assert_eq!(count_tickets(&path), 1);
}

#[test]
fn it_never_arrived_over_stdio() {
    it_never_arrived(Transport::Stdio);
}

#[test]
fn it_never_arrived_over_http() {
    it_never_arrived(Transport::Http);
}

/// Another process still works on it: a repeat waits for it, gives up in time, and runs nothing twice.
fn it_is_still_running(transport: Transport) {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("ledger.db");
    let ledger = path.to_str().unwrap();
    let serve = ["tickets", "--ledger", ledger, "--work-seconds", "60", "--wait-seconds", "0.3"];
    let busy = Served::start(Transport::Http, &serve);
    let working = busy.begin_call("create_ticket", ARGS);
    claimed(ledger);
    let url = format!("http://{}/mcp", busy.address());
    // The very server that works on it answers that it is in progress: exit 4, nothing new.
    let base = ["reissue", "r-1", "--ledger", ledger, "--args", ARGS, "--json"];
    let at_http = ["--http", url.as_str()];
    let find = redial(&both(&["find", "r-1", "--ledger", ledger, "--json"], &at_http));
    assert_eq!((find.exit, field(&find, "state")), (0, "running".into()), "{}", find.all());
    assert_eq!(field(&find, "strength"), "server_says");
    assert!(field(&find, "next").starts_with("wait"), "{}", find.all());
    let stopped = redial(&both(&base, &at_http));
    assert_eq!(
        (stopped.exit, stopped.text(&["gate", "ask"])),
        (3, "ask".into()),
        "{}",
        stopped.all()
    );
    let repeat = redial(&both(&both(&base, &["--confirm", "r-1"]), &at_http));
    assert_eq!(
        (repeat.exit, field(&repeat, "outcome"), field(&repeat, "answer_status")),
        (4, "ok".into(), "in_progress".into()),
        "{}",
        repeat.all()
    );
    assert_eq!(count_tickets(&path), 0);
    busy.kill();
    assert_eq!(working.answer(), None);
    let at = At::start(transport, ledger, "0");
    let done = reissue(&at, ledger, &path, 0);
    assert_eq!(field(&done, "replayed"), "false");
}

#[test]
fn it_is_still_running_over_http_and_finished_over_stdio() {
    it_is_still_running(Transport::Stdio);
}

#[test]
fn it_is_still_running_over_http_and_finished_there() {
    it_is_still_running(Transport::Http);
}

/// A first delivery is sent as typed; with the ledger a known request_id makes it a repeat, behind the gate.
#[test]
fn a_call_of_a_known_request_is_a_repeat() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("ledger.db");
    let ledger = path.to_str().unwrap();
    let at = At::start(Transport::Http, ledger, "0");
    let base = ["call", "create_ticket", "--args", ARGS, "--json", "--ledger", ledger];
    let first = at.run(&base);
    assert_eq!((first.exit, field(&first, "replayed")), (0, "false".into()), "{}", first.all());
    let stopped = at.run(&base);
    assert_eq!((stopped.exit, field(&stopped, "sent")), (3, "0".into()), "{}", stopped.all());
    at.run(&both(&base, &["--confirm", "r-2"])).expect(3, &["--confirm says", "nothing was sent"]);
    let again = at.run(&both(&base, &["--confirm", "r-1"]));
    assert_eq!((again.exit, field(&again, "replayed")), (0, "true".into()), "{}", again.all());
    // Reading needs nothing.
    let look = at.run(&[
        "call",
        "find_request",
        "--args",
        r#"{"request_id":"r-1"}"#,
        "--json",
        "--ledger",
        ledger,
    ]);
    assert_eq!((look.exit, field(&look, "sent")), (0, "1".into()), "{}", look.all());
    assert_eq!(count_tickets(&path), 1);
}

#[test]
fn stdin_at_its_end_is_no_answer_to_anything() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("ledger.db");
    let ledger = path.to_str().unwrap();
    let at = At::start(Transport::Stdio, ledger, "0");
    at.run(&["call", "create_ticket", "--args", ARGS]).expect(0, &[]);
    let mut c = command(&at.args(&["reissue", "r-1", "--ledger", ledger, "--args", ARGS]));
    c.stdin(Stdio::piped());
    let mut child = c.spawn().unwrap();
    std::io::Write::write_all(&mut child.stdin.take().unwrap(), b"r-1\ny\n").ok();
    finish(child).expect(3, &["the gate wants a confirmation", "--confirm r-1"]);
}
