//! `redial batch`: every line once, through every break; what happened is counted where it happened, in the ledger
//! and at the server.

use crate::support::cli::{
    EXE, FakeStdio, Ran, both, command, count_tickets, program, redial, tickets, tool,
};
use crate::support::shell::{ANSWER, script};
use crate::support::until;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};

/// A ticket to be made.
fn ticket(id: &str) -> String {
    format!(
        r#"{{"tool":"create_ticket","args":{{"request_id":"{id}","title":"t {id}","body":"b"}}}}"#
    ) + "\n"
}

/// A batch that reads its lines from here.
fn start(args: &[&str]) -> Child {
    let mut c = command(&both(&["batch"], args));
    c.stdin(Stdio::piped()).spawn().unwrap()
}

fn feed(child: &mut Child, text: &str) {
    child.stdin.as_mut().unwrap().write_all(text.as_bytes()).unwrap();
}

fn finish(mut child: Child) -> Ran {
    drop(child.stdin.take());
    Ran::from(child.wait_with_output().unwrap())
}

/// Runs these lines to the end.
fn run(lines: &str, args: &[&str]) -> Ran {
    let mut child = start(args);
    // One that ends before it has read them says what it has to say all the same.
    child.stdin.as_mut().unwrap().write_all(lines.as_bytes()).ok();
    finish(child)
}

/// Line numbers with outcomes, in the order in which they came.
fn outcomes(ran: &Ran) -> Vec<(u64, String)> {
    docs(ran)
        .iter()
        .map(|d| (d["line"].as_u64().unwrap(), d["outcome"].as_str().unwrap().to_owned()))
        .collect()
}

fn docs(ran: &Ran) -> Vec<Value> {
    let line = |l: &str| serde_json::from_str::<Value>(l).unwrap_or_else(|e| panic!("{e}: {l}"));
    let docs: Vec<Value> = ran.stdout.lines().map(line).collect();
    assert!(docs.iter().all(|d| d["schema"] == "redial/batch@1"), "{}", ran.stdout);
    docs
}

fn want(list: &[(u64, &str)]) -> Vec<(u64, String)> {
    list.iter().map(|(n, o)| (*n, (*o).to_owned())).collect()
}

/// Waits until so many requests are being worked on.
fn running(ledger: &Path, n: i64) {
    until("the claims", || {
        let db = rusqlite::Connection::open(ledger).unwrap();
        let sql = "SELECT count(*) FROM requests WHERE status = 'running'";
        let now: i64 = db.query_row(sql, [], |r| r.get(0)).unwrap_or(0);
        (now == n).then_some(())
    });
}

/// A ticket server on stdio whose process id is in a file.
struct Tickets {
    dir: tempfile::TempDir,
    ledger: PathBuf,
}

impl Tickets {
    fn new() -> Tickets {
        let dir = tempfile::tempdir().unwrap();
        let ledger = dir.path().join("ledger.db");
        Tickets { dir, ledger }
    }

    fn command(&self, work_s: &str) -> Vec<String> {
        let script = format!(
            r#"echo $$ >'{}'; exec '{EXE}' serve tickets --ledger '{}' --work-seconds {work_s}"#,
            self.dir.path().join("pid").display(),
            self.ledger.display()
        );
        ["--", "sh", "-c", &script].map(str::to_owned).to_vec()
    }

    fn kill(&self) {
        let pid = std::fs::read_to_string(self.dir.path().join("pid")).unwrap();
        let pid = Pid::from_raw(pid.trim().parse().unwrap()).unwrap();
        kill_process(pid, Signal::KILL).unwrap();
    }
}

fn strs(words: &[String]) -> Vec<&str> {
    words.iter().map(String::as_str).collect()
}

#[test]
fn through_a_kill_with_respawn_every_ticket_is_made_once() {
    let t = Tickets::new();
    let (ledger, server) = (t.ledger.to_str().unwrap(), t.command("1"));
    let flags = ["--json", "--respawn", "--ledger", ledger, "--confirm", "r-2", "--confirm", "x"];
    // The ledger must be there before it is read.
    redial(&both(&["tools"], &tickets(ledger))).expect(0, &[]);
    let mut child = start(&both(&flags, &strs(&server)));
    feed(&mut child, &(ticket("r-1") + "\n" + &ticket("r-2")));
    until("r-1", || (count_tickets(&t.ledger) == 1).then_some(()));
    running(&t.ledger, 1);
    t.kill();
    feed(&mut child, &(ticket("r-3") + &ticket("r-2") + &ticket("r-2")));
    let ran = finish(child);
    assert_eq!(
        outcomes(&ran),
        want(&[(1, "ok"), (3, "unknown"), (4, "ok"), (5, "ok"), (6, "ok")]),
        "{}",
        ran.all()
    );
    // Somebody must look at line 3, although a later line of this very batch has finished it.
    assert_eq!(ran.exit, 4, "{}", ran.all());
    let docs = docs(&ran);
    assert_eq!((&docs[1]["exit"]["signal"], &docs[1]["sent"]), (&9.into(), &1.into()));
    assert_eq!((&docs[3]["replayed"], &docs[4]["replayed"]), (&false.into(), &true.into()));
    assert_eq!((&docs[3]["effects_before"], &docs[3]["effects_after"]), (&0.into(), &1.into()));
    assert_eq!(docs[4]["effects_total_after"], 3);
    redial(&["verify", "--ledger", ledger, "--expect-total", "3"]).expect(0, &[]);
}

#[test]
fn without_respawn_what_comes_after_a_death_is_not_sent() {
    let t = Tickets::new();
    let server = t.command("30");
    let flags = ["--json", "--concurrency", "3"];
    let mut child = start(&both(&flags, &strs(&server)));
    feed(&mut child, &(ticket("r-1") + &ticket("r-2") + &ticket("r-3") + &ticket("r-4")));
    // Three at once, and no more than three.
    running(&t.ledger, 3);
    t.kill();
    feed(&mut child, &ticket("r-5"));
    let ran = finish(child);
    let mut all = outcomes(&ran);
    all.sort();
    assert_eq!(
        all,
        want(&[(1, "unknown"), (2, "unknown"), (3, "unknown"), (4, "not_sent"), (5, "not_sent")]),
        "{}",
        ran.all()
    );
    assert_eq!(ran.exit, 4);
    for d in docs(&ran) {
        let sent = u64::from(d["outcome"] == "unknown");
        assert_eq!(d["sent"], sent, "{d}");
        assert!(d["why"].as_str().is_some_and(|w| w.contains("signal 9")), "{d}");
    }
    let row = redial(&["rows", "--ledger", t.ledger.to_str().unwrap()]);
    row.expect(0, &["3 requests"]);
}

/// A ticket server over HTTP, on a port of its own or on this one.
fn http(ledger: &str, address: &str, log: &Path) -> (Child, String) {
    let err = std::fs::File::create(log).unwrap();
    let child = program()
        .args(["serve", "tickets", "--ledger", ledger, "--http", address, "--work-seconds", "1"])
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(err)
        .spawn()
        .unwrap();
    let url = until("the address", || {
        let said = std::fs::read_to_string(log).ok()?;
        let at = said.split_once("listening on ")?.1;
        Some(format!("{}/mcp", at.split_once("/mcp")?.0))
    });
    (child, url)
}

#[test]
fn over_http_the_next_line_waits_for_the_new_connection_and_nothing_is_sent_again() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("ledger.db");
    let ledger = path.to_str().unwrap();
    let (mut first, url) = http(ledger, "127.0.0.1:0", &dir.path().join("log"));
    let mut child = start(&["--json", "--http", &url]);
    feed(&mut child, &(ticket("r-1") + &ticket("r-2") + &ticket("r-3")));
    until("r-1", || (count_tickets(&path) == 1).then_some(()));
    running(&path, 1);
    first.kill().unwrap();
    first.wait().unwrap();
    let port = url.trim_start_matches("http://").trim_end_matches("/mcp");
    let (mut second, _) = http(ledger, port, &dir.path().join("log2"));
    let ran = finish(child);
    second.kill().unwrap();
    second.wait().unwrap();
    assert_eq!(outcomes(&ran), want(&[(1, "ok"), (2, "unknown"), (3, "ok")]), "{}", ran.all());
    assert!(docs(&ran).iter().all(|d| d["sent"] == 1), "{}", ran.stdout);
    // r-2 was claimed once and never asked for again.
    assert_eq!((ran.exit, count_tickets(&path)), (4, 2));
}

#[test]
fn an_outage_that_lasts_is_waited_out_once() {
    let dir = tempfile::tempdir().unwrap();
    let ledger = dir.path().join("ledger.db");
    let (mut server, url) = http(ledger.to_str().unwrap(), "127.0.0.1:0", &dir.path().join("log"));
    let mut child = start(&["--json", "--start-timeout", "2", "--http", &url]);
    feed(&mut child, &ticket("r-1"));
    running(&ledger, 1);
    server.kill().unwrap();
    server.wait().unwrap();
    let begun = std::time::Instant::now();
    feed(&mut child, &ticket("r").repeat(20));
    let ran = finish(child);
    assert!(begun.elapsed().as_secs() < 20, "not the whole limit for each line");
    let all = outcomes(&ran);
    assert_eq!((all.len(), all[0].1.as_str(), ran.exit), (21, "unknown", 4), "{}", ran.all());
    assert!(all[1..].iter().all(|o| o.1 == "not_sent"), "{}", ran.all());
    assert!(ran.stdout.contains("no connection within 2 s"), "{}", ran.stdout);
}

#[test]
fn bad_lines_are_told_by_number_and_the_rest_runs() {
    let fake = FakeStdio::new();
    fake.tools(&format!("[{}]", tool("create_ticket", ""))).answers("call", "made");
    let server = fake.command();
    let lines = format!(
        "{}{{\"tool\":\"create_ticket\",\"arg\":{{}}}}\n\nnot json\n{{\"tool\":\"create_tiket\"}}\n{{\"wait_s\":0.01}}\n{}",
        ticket("r-1"),
        ticket("r-2").trim_end()
    );
    let ran = run(&lines, &both(&["--json"], &strs(&server)));
    let expected = [(1, "ok"), (2, "not_sent"), (4, "not_sent"), (5, "not_sent"), (7, "ok")];
    assert_eq!(outcomes(&ran), want(&expected), "{}", ran.all());
    assert_eq!((ran.exit, fake.calls()), (2, 2));
    let docs = docs(&ran);
    for (doc, word) in [(&docs[1], "\"arg\""), (&docs[2], "not JSON"), (&docs[3], "no tool")] {
        assert!(doc["why"].as_str().unwrap().contains(word), "{doc}");
        assert_eq!((&doc["exit_status"], &doc["error"]["exit_status"]), (&2.into(), &2.into()));
    }
    let plain = run(&lines, &strs(&server));
    plain.expect(
        2,
        &[
            "   1  ok  create_ticket r-1  made",
            "did you mean create_ticket",
            "5 lines · 3 bad · 2 ok",
        ],
    );
    assert_eq!(plain.stdout.lines().count(), 6, "{}", plain.stdout);
    // From a file; one that isn't there ends it before a server is started.
    let file = fake.path("calls.jsonl");
    std::fs::write(&file, ticket("r-9")).unwrap();
    redial(&both(&["batch", file.to_str().unwrap()], &strs(&server))).expect(0, &["r-9"]);
    let none = redial(&both(&["batch", "/nowhere/calls.jsonl", "--json"], &strs(&server)));
    none.expect(2, &["can't be read"]);
    assert_eq!((docs_of_one(&none)["error"]["exit_status"].clone(), fake.calls()), (2.into(), 5));
}

fn docs_of_one(ran: &Ran) -> Value {
    let docs = docs(ran);
    assert_eq!(docs.len(), 1, "{}", ran.stdout);
    docs[0].clone()
}

#[test]
fn a_request_of_the_ledger_is_a_repeat_and_wants_its_own_confirmation() {
    let t = Tickets::new();
    let ledger = t.ledger.to_str().unwrap();
    let server = t.command("0");
    let with = |flags: &[&str], lines: &str| {
        run(lines, &both(&both(&["--json", "--ledger", ledger], flags), &strs(&server)))
    };
    redial(&both(&["tools"], &tickets(ledger))).expect(0, &[]);
    let ran = with(&[], &(ticket("r-1") + &ticket("r-1") + &ticket("r-2")));
    assert_eq!(outcomes(&ran), want(&[(1, "ok"), (2, "not_sent"), (3, "ok")]), "{}", ran.all());
    assert_eq!(ran.exit, 3);
    assert!(ran.stdout.contains("--confirm r-1"), "{}", ran.stdout);
    let ran = with(&["--confirm", "r-2", "--confirm", "r-1"], &(ticket("r-1") + &ticket("r-2")));
    assert_eq!((outcomes(&ran), ran.exit), (want(&[(1, "ok"), (2, "ok")]), 0), "{}", ran.all());
    assert!(docs(&ran).iter().all(|d| d["replayed"] == true && d["request_id"].is_string()));
    assert_eq!(count_tickets(&t.ledger), 2);
    let ran = with(&["--read-only"], &ticket("r-3"));
    assert_eq!((outcomes(&ran), ran.exit), (want(&[(1, "not_sent")]), 3), "{}", ran.all());
    let ran = run(&ticket("r-4"), &both(&["--read-only", "--json"], &strs(&server)));
    assert_eq!((outcomes(&ran), ran.exit), (want(&[(1, "not_sent")]), 3), "{}", ran.all());
    assert_eq!(count_tickets(&t.ledger), 2);
}

#[test]
fn a_crash_at_every_other_call_never_makes_a_call_twice() {
    let dir = tempfile::tempdir().unwrap();
    let calls = dir.path().join("calls");
    let file = calls.display();
    let die = format!(
        r#"printf '%s\n' "$line" >>'{file}'; [ $(($(wc -l <'{file}') % 2)) = 0 ] && kill -9 $$; {ANSWER}"#
    );
    let script = script("", &die);
    let lines: String =
        (1..=6).map(|n| format!("{{\"tool\":\"t\",\"args\":{{\"n\":{n}}}}}\n")).collect();
    let ran = run(&lines, &["--json", "--respawn", "--", "sh", "-c", &script]);
    let expected: Vec<(u64, String)> =
        (1..=6).map(|n| (n, if n % 2 == 0 { "unknown" } else { "ok" }.to_owned())).collect();
    assert_eq!((outcomes(&ran), ran.exit), (expected, 4), "{}", ran.all());
    let seen = std::fs::read_to_string(&calls).unwrap();
    for n in 1..=6 {
        assert_eq!(seen.matches(&format!("\"n\":{n}}}")).count(), 1, "{n}: {seen}");
    }
}

#[test]
fn a_signal_tells_what_was_sent_and_sends_nothing_more() {
    for signal in [Signal::TERM, Signal::HUP] {
        let fake = FakeStdio::new();
        fake.tools(&format!("[{}]", tool("create_ticket", "")));
        let server = fake.command();
        let mut child = start(&both(&["--json"], &strs(&server)));
        feed(&mut child, &(ticket("r-1") + &ticket("r-2")));
        until("the call", || (fake.calls() == 1).then_some(()));
        kill_process(Pid::from_raw(child.id() as i32).unwrap(), signal).unwrap();
        let ran = finish(child);
        assert_eq!((outcomes(&ran), ran.exit), (want(&[(1, "unknown")]), 4), "{}", ran.all());
        assert!(ran.stderr.contains("after line 1: what follows was not sent"), "{}", ran.stderr);
        assert_eq!(fake.calls(), 1);
    }
    // In a pause nothing is in flight.
    let fake = FakeStdio::new();
    fake.tools(&format!("[{}]", tool("create_ticket", ""))).answers("call", "made");
    let server = fake.command();
    let mut child = start(&strs(&server));
    feed(&mut child, &(ticket("r-1") + "{\"wait_s\":600}\n" + &ticket("r-2")));
    until("the call", || (fake.calls() == 1).then_some(()));
    kill_process(Pid::from_raw(child.id() as i32).unwrap(), Signal::INT).unwrap();
    let ran = finish(child);
    assert!(
        matches!(ran.exit, 4 | 5) && ran.stderr.contains("interrupted (SIGINT)"),
        "{}",
        ran.all()
    );
    assert_eq!(fake.calls(), 1);
}

#[test]
fn a_server_that_never_was_there_is_told_at_once_in_one_line() {
    for endpoint in
        [&["--http", "http://127.0.0.1:9/mcp"][..], &["--respawn", "--", "sh", "-c", "exit 3"]]
    {
        let ran = run(&ticket("r-1"), &both(&["--json"], endpoint));
        assert_eq!(ran.exit, 5, "{}", ran.all());
        assert_eq!(docs_of_one(&ran)["error"]["exit_status"], 5);
    }
}

#[test]
fn a_question_of_the_server_is_answered_only_when_asked_for() {
    let dir = tempfile::tempdir().unwrap();
    let replies = dir.path().join("replies");
    let ask = r#"printf '{"jsonrpc":"2.0","id":77,"method":"elicitation/create","params":{"message":"?","requestedSchema":{"type":"object","properties":{"n":{"type":"integer","default":7}},"required":["n"]}}}\n'; IFS= read -r reply"#;
    let on_call = format!(r#"{ask}; printf '%s\n' "$reply" >>'{}'; {ANSWER}"#, replies.display());
    let script = script("", &on_call);
    let server = ["--", "sh", "-c", &script];
    run("{\"tool\":\"t\"}\n", &server).expect(0, &[]);
    run("{\"tool\":\"t\"}\n", &both(&["--elicit", "accept-defaults"], &server)).expect(0, &[]);
    redial(&both(&["call", "t", "--elicit", "accept-defaults"], &server)).expect(0, &[]);
    redial(&both(&["call", "t", "--elicit", "yes"], &server)).expect(2, &["accept-defaults"]);
    let said = std::fs::read_to_string(&replies).unwrap();
    let said: Vec<&str> = said.lines().collect();
    assert_eq!(said.len(), 3, "{said:?}");
    assert!(said[0].contains(r#""result":{"action":"decline"}"#), "{said:?}");
    for accepted in &said[1..] {
        assert!(accepted.contains(r#""action":"accept","content":{"n":7}"#), "{said:?}");
    }
}

#[test]
fn read_only_follows_the_configured_hints() {
    let server = FakeStdio::new();
    server.tools(&format!("[{}]", tool("t", r#""readOnlyHint":true"#))).answers("call", "done");
    server.file("redial.toml", "[hints.t]\nread_only = false");
    let args = server.command();
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    let run = |flags: &[&str]| {
        let mut c = command(&both(&["batch", "--json"], &both(flags, &args)));
        c.stdin(Stdio::piped()).current_dir(server.dir.path());
        let mut child = c.spawn().unwrap();
        feed(&mut child, "{\"tool\":\"t\",\"args\":{}}\n");
        finish(child)
    };
    run(&["--read-only"]).expect(3, &["does not only read"]);
    assert_eq!(server.calls(), 0);
    run(&[]).expect(0, &["done"]);
    assert_eq!(server.calls(), 1);
}

/// A server in sh that takes its time over each call, so that lines can overtake each other; the calls are counted.
fn slow(seconds: &str) -> FakeStdio {
    let fake = FakeStdio::new();
    let tools = [
        tool("create_ticket", r#""idempotentHint":false"#),
        tool("other", r#""idempotentHint":true"#),
        tool("get_ticket", r#""readOnlyHint":true"#),
    ];
    fake.tools(&format!("[{}]", tools.join(","))).answers("call", "made");
    let script = std::fs::read_to_string(fake.path("server.sh")).unwrap();
    let begun = r#">>calls; answer=call ;;"#;
    assert!(script.contains(begun));
    let sleeps = format!(">>calls; answer=call; sleep {seconds} ;;");
    fake.file("server.sh", &script.replace(begun, &sleeps));
    fake
}

fn line(tool: &str, id: &str, more: &str) -> String {
    format!("{{\"tool\":\"{tool}\",\"args\":{{\"request_id\":{id}}}{more}}}\n")
}

#[test]
fn a_request_of_this_very_run_is_a_repeat() {
    // Beside each other, a number and its digits, and under another tool's name.
    for (second, id) in [
        (line("create_ticket", "5", ""), "5"),
        (line("create_ticket", r#""5""#, ""), "5"),
        (line("other", "5.0", ""), "5"),
    ] {
        let fake = slow("0.3");
        let server = fake.command();
        let lines = line("create_ticket", id, "") + &second + &line("create_ticket", r#""6""#, "");
        let ran = run(&lines, &both(&["--json", "--concurrency", "3"], &strs(&server)));
        let mut all = outcomes(&ran);
        all.sort();
        assert_eq!(all, want(&[(1, "ok"), (2, "not_sent"), (3, "ok")]), "{}", ran.all());
        assert_eq!((ran.exit, fake.calls()), (3, 2), "{}", ran.all());
    }
    // What is only looked at waits for nobody and is no repeat.
    let fake = slow("0");
    let server = fake.command();
    let lines = line("create_ticket", r#""r""#, "") + &line("get_ticket", r#""r""#, "");
    let ran = run(&lines, &both(&["--json", "--concurrency", "3"], &strs(&server)));
    assert_eq!((ran.exit, fake.calls()), (0, 2), "{}", ran.all());
}

#[test]
fn a_line_that_became_unknown_is_not_sent_again_by_the_next() {
    let fake = slow("1");
    let server = fake.command();
    let lines = line("create_ticket", r#""r""#, r#","timeout_s":0.2"#)
        + &line("create_ticket", r#""r""#, "");
    let ran = run(&lines, &both(&["--json"], &strs(&server)));
    assert_eq!(outcomes(&ran), want(&[(1, "unknown"), (2, "not_sent")]), "{}", ran.all());
    assert_eq!((ran.exit, fake.calls()), (4, 1), "{}", ran.all());
    // Who names it gets it, once the first is over.
    let fake = slow("0");
    let server = fake.command();
    let lines = line("create_ticket", r#""r""#, "").repeat(2);
    let ran =
        run(&lines, &both(&["--json", "--concurrency", "2", "--confirm", "r"], &strs(&server)));
    assert_eq!((ran.exit, fake.calls()), (0, 2), "{}", ran.all());
}

#[test]
fn a_report_that_cannot_be_written_changes_no_outcome() {
    if !std::path::Path::new("/dev/full").exists() {
        return;
    }
    let fake = slow("0");
    let server = fake.command();
    let full = |args: &[&str], text: &str| {
        let mut child = crate::support::cli::command(&both(args, &strs(&server)))
            .stdin(Stdio::piped())
            .stdout(std::fs::OpenOptions::new().write(true).open("/dev/full").unwrap())
            .spawn()
            .unwrap();
        child.stdin.take().unwrap().write_all(text.as_bytes()).unwrap();
        Ran::from(child.wait_with_output().unwrap())
    };
    let args = r#"{"request_id":"r"}"#;
    for json in [&[][..], &["--json"]] {
        let call = both(&["call", "create_ticket", "--args", args], json);
        full(&call, "").expect(0, &["the report could not be written"]);
        let again = both(
            &["reissue", "r", "--args", args, "--tool", "create_ticket", "--confirm", "r"],
            json,
        );
        full(&again, "").expect(0, &["the report could not be written"]);
        full(&both(&["batch"], json), &line("create_ticket", r#""r""#, "")).expect(0, &[]);
    }
    assert_eq!(fake.calls(), 6);
    // What sent nothing is no report at all.
    full(&["tools"], "").expect(2, &["the report could not be written"]);
}
