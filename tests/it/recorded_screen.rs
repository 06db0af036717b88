//! The agent's session on the screen, from a recording that grows: it wakes the screen, its calls and its server's
//! death stand in the panes, the time line leads to all of it, and what the agent lost is repeated with its own
//! bytes. And the same joined in `show --ledger`.

use crate::support::cli::{EXE, command, redial};
use crate::support::pty::Pty;
use crate::support::until;
use redial::json::raw;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Stdio};

/// An agent whose server is the built-in one, behind the tap.
struct Agent {
    tap: Child,
    stdin: ChildStdin,
    stdout: BufReader<ChildStdout>,
    out: PathBuf,
    ledger: PathBuf,
    state: PathBuf,
}

impl Agent {
    fn start(dir: &Path, work_seconds: &str) -> Agent {
        let (out, ledger) = (dir.join("agent.jsonl"), dir.join("l.db"));
        let state = dir.join("state");
        let server = [EXE, "serve", "tickets", "--work-seconds", work_seconds, "--ledger"];
        let mut args = vec!["record", "--out", out.to_str().unwrap(), "--"];
        args.extend(server);
        args.push(ledger.to_str().unwrap());
        let mut tap = command(&args)
            .env("XDG_STATE_HOME", &state)
            .stdin(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let stdin = tap.stdin.take().unwrap();
        let stdout = BufReader::new(tap.stdout.take().unwrap());
        let mut agent = Agent { tap, stdin, stdout, out, ledger, state };
        agent.say(r#"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"agent","version":"1"}}}"#);
        agent.hear();
        agent.say(r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#);
        // The server's own word for itself proves an owner only where it stands before the first call; it comes on
        // another pipe than the answers.
        until("its boot id is taken down", || {
            let text = std::fs::read_to_string(&agent.out).ok()?;
            text.contains("boot id ").then_some(())
        });
        agent
    }

    fn say(&mut self, text: &str) {
        writeln!(self.stdin, "{text}").unwrap();
    }

    fn hear(&mut self) -> String {
        let mut line = String::new();
        self.stdout.read_line(&mut line).unwrap();
        line
    }

    fn call(&mut self, id: u32, request_id: &str, title: &str) {
        // Odd spacing: the bytes that were sent are the bytes that are repeated.
        self.say(&format!(
            r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/call","params":{{"name":"create_ticket","arguments":{{ "request_id":"{request_id}",  "title":"{title}","body":"本文" }}}}}}"#
        ));
    }

    /// SIGKILL to the server, once the ledger has the claim.
    fn kill_server(&mut self, request_id: &str) {
        until("the claim is in the ledger", || {
            let db = rusqlite::Connection::open(&self.ledger).ok()?;
            let found = "SELECT count(*) FROM requests WHERE request_id = ?1";
            let n: i64 = db.query_row(found, [request_id], |r| r.get(0)).ok()?;
            (n == 1).then_some(())
        });
        let text = std::fs::read_to_string(&self.out).unwrap();
        let pid = text.split("\"pid\":").nth(1).unwrap();
        let pid: String = pid.chars().take_while(char::is_ascii_digit).collect();
        let killed = std::process::Command::new("kill").args(["-9", &pid]).status().unwrap();
        assert!(killed.success());
        until("the tap ends", || self.tap.try_wait().unwrap());
    }
}

impl Drop for Agent {
    fn drop(&mut self) {
        self.tap.kill().ok();
        self.tap.wait().ok();
    }
}

#[test]
fn a_recording_that_grows_wakes_the_screen_and_the_time_line_has_all_of_it() {
    let dir = tempfile::tempdir().unwrap();
    let mut agent = Agent::start(dir.path(), "600");
    let env = [("XDG_STATE_HOME", agent.state.to_str().unwrap())];
    // Nothing but the recording: only its growth can wake the screen.
    let args = ["attach", "--recording", "latest"];
    let mut pty = Pty::start(Path::new(EXE), &args, &env, (140, 40));
    pty.wait_for("the agent's session in agent.jsonl");
    agent.call(1, "night-011", "在庫差異");
    pty.wait_for("night-011");
    pty.wait("the agent's call waits in the calls pane", |s| s.contents().contains("◂create_tick"));
    agent.kill_server("night-011");
    pty.wait_for("in a call: create_ticket night-011");
    pty.send("T");
    pty.wait_for("time line of agent.jsonl");
    pty.wait_for("? unknown");
    pty.send("/outcome:unknown tol:");
    pty.wait_for("^^^^ no such field");
    pty.send("\x15outcome:unknown\r");
    pty.wait_for("1 of ");
    // The frame, as it was on the wire.
    pty.send("xx");
    pty.wait_for("7b 22 6a 73 6f 6e");
    // Jumps: the death (which the filter hides and gives way for), the stderr around, and the request itself.
    pty.send("d");
    pty.wait_for("the filter hid this");
    pty.send("s");
    pty.wait("the stderr around", |s| {
        s.contents().lines().any(|l| l.starts_with('▸') && l.contains("boot id"))
    });
    pty.send("e");
    pty.wait("the first error", |s| {
        s.contents().lines().any(|l| l.starts_with('▸') && l.contains("night-011"))
    });
    pty.send("l");
    pty.wait_for("outcome unknown");
    pty.send("q");
    assert_eq!(pty.ended(), 0);
}

#[test]
fn what_the_agent_lost_is_repeated_on_the_screen_with_its_own_bytes() {
    let dir = tempfile::tempdir().unwrap();
    let mut agent = Agent::start(dir.path(), "600");
    agent.call(1, "night-011", "在庫差異");
    agent.kill_server("night-011");
    let (ledger, out) = (agent.ledger.display().to_string(), agent.out.display().to_string());
    let args = [
        "attach",
        "--ledger",
        &ledger,
        "--recording",
        &out,
        "--",
        EXE,
        "serve",
        "tickets",
        "--work-seconds",
        "0",
        "--ledger",
        &ledger,
    ];
    let mut pty = Pty::start(Path::new(EXE), &args, &[], (140, 44));
    pty.wait_for("ready");
    pty.wait("its row is abandoned, observed", |s| {
        let text = s.contents();
        text.contains("abandoned") && text.contains("the agent's generation 1")
    });
    pty.send("r");
    // The arguments are the recording's, and have the row's hash.
    pty.wait_for("agent.jsonl");
    pty.wait_for("equal to the row's hash");
    pty.wait_for("\"title\":\"在庫差異\"");
    let asked = pty.text();
    pty.answer(if asked.contains("y send it") { "y" } else { "\r" });
    pty.wait("it is done", |_| {
        let db = rusqlite::Connection::open(&ledger).unwrap();
        let done =
            "SELECT count(*) FROM requests WHERE request_id = 'night-011' AND status = 'done'";
        db.query_row(done, [], |r| r.get::<_, i64>(0)).unwrap() == 1
    });
    let db = rusqlite::Connection::open(&ledger).unwrap();
    let tickets: i64 = db.query_row("SELECT count(*) FROM tickets", [], |r| r.get(0)).unwrap();
    assert_eq!(tickets, 1);
}

#[test]
fn show_joins_the_ledger_and_says_when_it_can_not() {
    let dir = tempfile::tempdir().unwrap();
    let mut agent = Agent::start(dir.path(), "600");
    agent.call(1, "night-011", "在庫差異");
    agent.kill_server("night-011");
    let (ledger, out) = (agent.ledger.display().to_string(), agent.out.display().to_string());
    let plain = redial(&["show", &out]);
    plain.expect(0, &["signal 9 (SIGKILL), in a call: create_ticket night-011"]);
    let with = redial(&[
        "show",
        &out,
        "--ledger",
        &ledger,
        "state:abandoned",
        "verdict:abandoned",
        "--json",
    ]);
    let calls = with.get(&["calls"]);
    let calls = raw::items(&calls).unwrap();
    assert_eq!(calls.len(), 1, "{}", with.all());
    assert_eq!(raw::get_str(calls[0], "state").as_deref(), Some("abandoned"));
    assert_eq!(with.get(&["matched"]), "1", "the frame of that call");
    assert!(with.get(&["generations"]).contains("in a call: create_ticket night-011"));
    let none = redial(&["show", &out, "--ledger", &ledger, "state:done"]);
    none.expect(0, &["0 of "]);
    assert!(none.stderr.is_empty(), "{}", none.stderr);
    let without = redial(&["show", &out, "state:abandoned"]);
    without.expect(0, &["0 of "]);
    assert!(without.stderr.contains("give --ledger FILE"), "{}", without.stderr);
}
