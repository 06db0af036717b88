//! The gate at the command line: without a terminal a flag, at a terminal a question whose default is No. What
//! was sent is counted at the server.

use crate::support::cli::{
    EXE, FakeStdio, Ran, both, command, count_tickets, make_ledger, redial, tool,
};
use crate::support::pty::Pty;
use crate::support::served::{Served, Transport};
use std::path::Path;

const ARGS: &str = r#"{"request_id":"r-1","title":"t","body":"b"}"#;

struct Ticket {
    _dir: tempfile::TempDir,
    ledger: String,
    url: String,
    served: Served,
}

/// A server that has done r-1.
fn done() -> Ticket {
    let dir = tempfile::tempdir().unwrap();
    let ledger = dir.path().join("ledger.db").to_str().unwrap().to_owned();
    let served =
        Served::start(Transport::Http, &["tickets", "--ledger", &ledger, "--wait-seconds", "0.2"]);
    served.call("create_ticket", ARGS);
    let url = format!("http://{}/mcp", served.address());
    Ticket { _dir: dir, ledger, url, served }
}

impl Ticket {
    fn reissue<'a>(&'a self, more: &[&'a str]) -> Vec<&'a str> {
        both(
            &["reissue", "r-1", "--args", ARGS, "--ledger", &self.ledger, "--http", &self.url],
            more,
        )
    }
}

fn at_terminal(args: &[&str]) -> Pty {
    Pty::start(Path::new(EXE), args, &[], (80, 100))
}

/// Runs at a terminal, answers the question with `keys`; the exit status and the screen.
fn answered(args: &[&str], question: &str, keys: &str) -> (u32, String) {
    let mut pty = at_terminal(args);
    pty.wait_for(question);
    pty.answer(keys);
    let exit = pty.ended();
    pty.drained();
    (exit, pty.text())
}

#[test]
fn a_preview_is_sent_with_enter_alone() {
    let t = done();
    let reissue = t.reissue(&[]);
    let question = "Enter sends it (anything else: no): ";
    for no in ["n\r", "no\r", "r-2\r", "\u{4}"] {
        let (exit, text) = answered(&reissue, question, no);
        assert_eq!(exit, 3, "{no:?}: {text}");
        assert!(
            text.contains("not confirmed; nothing was sent") && !text.contains("outcome"),
            "{text}"
        );
        assert!(text.contains("will send     create_ticket"), "the exact call is shown: {text}");
    }
    let (exit, text) = answered(&reissue, question, "\r");
    assert_eq!(exit, 0, "{text}");
    assert!(text.contains("replayed      yes"), "{text}");
    assert_eq!(count_tickets(Path::new(&t.ledger)), 1);
}

#[test]
fn what_is_typed_before_a_question_could_be_read_is_no_answer_at_any_level() {
    let fake = FakeStdio::new();
    fake.answers("call", "made");
    let server = fake.command();
    let server: Vec<&str> = server.iter().map(String::as_str).collect();
    let reissue = both(&["reissue", "r-1", "--args", ARGS], &server);
    for (hints, question, yes) in [
        ("", "Type r-1 to send it (anything else: no): ", "r-1\r"),
        (r#""idempotentHint":true"#, "Send it? y (anything else: no): ", "y\r"),
    ] {
        fake.tools(&format!("[{}]", tool("create_ticket", hints)));
        let mut pty = at_terminal(&reissue);
        // Ahead of everything, and again as soon as the question is there.
        pty.send(yes);
        pty.wait_for(question);
        pty.send(&yes.repeat(3));
        pty.wait("it is asked once more", |s| s.contents().matches(question.trim()).count() >= 2);
        assert!(pty.text().contains("typed before the question could be read"), "{}", pty.text());
        pty.answer("n\r");
        assert_eq!((pty.ended(), fake.calls()), (3, 0), "{}", pty.text());
        // A stream that never pauses is none either; and the same line, typed after a look, is.
        let mut pty = at_terminal(&reissue);
        pty.wait_for(question);
        for _ in 0..30 {
            pty.send(yes);
            std::thread::sleep(std::time::Duration::from_millis(33));
        }
        pty.wait("it is asked once more", |s| s.contents().matches(question.trim()).count() >= 2);
        assert_eq!(fake.calls(), 0, "{}", pty.text());
        // An early No is a No; the terminal is as it was.
        pty.send("\u{4}");
        assert_eq!((pty.ended(), fake.calls()), (3, 0), "{}", pty.text());
    }
    let t = done();
    let mut pty = at_terminal(&t.reissue(&[]));
    pty.send("\r");
    pty.wait_for("Enter sends it (anything else: no): ");
    for _ in 0..30 {
        pty.send("\r");
        std::thread::sleep(std::time::Duration::from_millis(16));
    }
    pty.wait("it is asked once more", |s| s.contents().matches("Enter sends it").count() >= 2);
    assert!(!pty.text().contains("outcome"), "{}", pty.text());
    pty.answer("n\r");
    assert_eq!(pty.ended(), 3);
}

#[test]
fn an_ask_wants_a_y() {
    let t = done();
    // Somebody else works on it, for all that can be seen.
    rusqlite::Connection::open(&t.ledger)
        .unwrap()
        .execute_batch(
            "UPDATE requests SET status = 'running', result = NULL, owner = 'somebody', claimed_at = unixepoch();
             DELETE FROM tickets;",
        )
        .unwrap();
    let reissue = t.reissue(&["--timeout", "5"]);
    let question = "Send it? y (anything else: no): ";
    for no in ["\r", "r-1\r", "ok\r", "\u{4}"] {
        let (exit, text) = answered(&reissue, question, no);
        assert_eq!(exit, 3, "{no:?}: {text}");
        assert!(text.contains("its owner may be alive"), "{text}");
    }
    let row = redial(&["find", "r-1", "--ledger", &t.ledger, "--json"]);
    assert_eq!(row.text(&["ledger", "owner"]), "somebody", "nothing was taken over");
    let (exit, text) = answered(&reissue, question, "y\r");
    // The other owner is nobody the server knows: it takes over and does it now.
    assert_eq!(exit, 0, "{text}");
    assert_eq!(count_tickets(Path::new(&t.ledger)), 1);
    drop(t.served);
}

#[test]
fn a_tool_without_hints_wants_the_request_id_typed() {
    let fake = FakeStdio::new();
    fake.tools(&format!("[{}]", tool("create_ticket", ""))).answers("call", "made");
    let server = fake.command();
    let server: Vec<&str> = server.iter().map(String::as_str).collect();
    let reissue = both(&["reissue", "r-1", "--args", ARGS], &server);
    let question = "Type r-1 to send it (anything else: no): ";
    for no in ["\r", "y\r", "yes\r", "R-1\r", "r-12\r", "\u{4}"] {
        let (exit, text) = answered(&reissue, question, no);
        assert_eq!(exit, 3, "{no:?}: {text}");
        assert!(text.contains("the work may run twice"), "{text}");
    }
    assert_eq!(fake.calls(), 0);
    let (exit, text) = answered(&reissue, question, "r-1\r");
    assert_eq!((exit, fake.calls()), (0, 1), "{text}");
    // Ctrl-C at the question is a No, too.
    let (exit, text) = answered(&reissue, question, "\u{3}");
    assert_eq!((exit, fake.calls()), (3, 1), "{text}");
    assert!(text.contains("interrupted (SIGINT); nothing was sent"), "{text}");
}

#[test]
fn json_never_asks_and_a_flag_is_no_question() {
    let t = done();
    let mut pty = at_terminal(&t.reissue(&["--json"]));
    assert_eq!(pty.ended(), 3);
    pty.drained();
    assert!(!pty.text().contains("Enter sends it"), "{}", pty.text());
    let mut pty = at_terminal(&t.reissue(&["--confirm", "r-1"]));
    assert_eq!(pty.ended(), 0);
    pty.drained();
    assert!(
        !pty.text().contains("Enter sends it") && pty.text().contains("replayed      yes"),
        "{}",
        pty.text()
    );
    let mut pty = at_terminal(&t.reissue(&["--confirm", "r-2"]));
    assert_eq!(pty.ended(), 3);
}

#[test]
fn a_first_delivery_needs_no_gate_and_a_tool_without_a_key_wants_its_name() {
    let fake = FakeStdio::new();
    fake.tools(&format!("[{}]", tool("charge", r#""idempotentHint":false"#)))
        .answers("call", "charged");
    fake.run(&["call", "charge", "--args", r#"{"amount":3}"#]).expect(0, &["charged"]);
    fake.run(&["call", "charge", "--args", r#"{"request_id":"r-1"}"#]).expect(0, &[]);
    assert_eq!(fake.calls(), 2, "what a person typed is sent, without the gate");
}

#[test]
fn read_only_stops_every_call_but_those_that_say_they_read() {
    let t = done();
    let call = [
        "call",
        "create_ticket",
        "--args",
        r#"{"request_id":"r-9","title":"t","body":"b"}"#,
        "--http",
        &t.url,
    ];
    let look = ["call", "find_request", "--args", r#"{"request_id":"r-1"}"#, "--http", &t.url];
    let env = |args: &[&str], value: &str| {
        let out = command(args).env("REDIAL_READ_ONLY", value).output().unwrap();
        crate::support::cli::Ran::from(out)
    };
    for args in
        [both(&call, &[]), both(&call, &["--confirm", "r-9"]), t.reissue(&["--confirm", "r-1"])]
    {
        let words = ["--read-only lets only read-only tools run", "nothing was sent"];
        redial(&both(&args, &["--read-only"])).expect(3, &words);
        env(&args, "1").expect(3, &words);
        let json = redial(&both(&args, &["--read-only", "--json"]));
        assert_eq!((json.exit, json.text(&["sent"])), (3, "0".into()), "{}", json.all());
    }
    redial(&both(&look, &["--read-only"])).expect(0, &["done"]);
    env(&look, "1").expect(0, &["done"]);
    redial(&["find", "r-1", "--http", &t.url]).expect(0, &["done"]);
    assert_eq!(count_tickets(Path::new(&t.ledger)), 1);
    env(&call, "0").expect(0, &[]);
    assert_eq!(count_tickets(Path::new(&t.ledger)), 2);
}

#[test]
fn read_only_starts_nothing_that_is_there_to_do_work() {
    let fake = FakeStdio::new();
    fake.tools(&format!("[{}]", tool("create_ticket", ""))).answers("call", "made");
    make_ledger(&fake.path("ledger.db"), "");
    let ledger = fake.path("ledger.db").to_str().unwrap().to_owned();
    let server = fake.command();
    let server: Vec<&str> = server.iter().map(String::as_str).collect();
    let killtest = ["killtest", "--trials", "1", "--ledger", &ledger];
    for args in [
        both(&killtest, &server),
        both(&killtest, &["--http", "http://127.0.0.1:9/mcp", "--start", "sh server.sh"]),
        killtest.to_vec(),
        vec!["lab", "run", "all"],
        vec!["teach"],
    ] {
        let out = command(&args).env("REDIAL_READ_ONLY", "1").output().unwrap();
        crate::support::cli::Ran::from(out)
            .expect(3, &["--read-only", "nothing was started or sent"]);
        let mut flag = args.clone();
        flag.insert(args.iter().position(|a| *a == "--").unwrap_or(args.len()), "--read-only");
        redial(&flag).expect(3, &["nothing was started or sent"]);
    }
    assert_eq!((fake.pid(), fake.calls()), (None, 0));
    redial(&["lab", "list"]).expect(0, &[]);
    // On its own server and ledger nothing of anybody's is touched.
    let kept = fake.path("kept").to_str().unwrap().to_owned();
    let own = ["killtest", "--trials", "1", "--at", "before-commit", "--keep", &kept];
    redial(&[&own[..], &["--read-only"]].concat()).expect(0, &[]);
}

#[test]
fn a_question_whose_facts_changed_is_asked_anew_and_the_old_answer_sends_nothing() {
    let fake = FakeStdio::new();
    fake.tools(&format!("[{}]", tool("create_ticket", ""))).answers("call", "made");
    let hash = redial::ledger::hash::args_hash(ARGS).unwrap();
    let running = format!(
        "INSERT INTO requests VALUES ('r-1', '{hash}', 'running', NULL, 'A', 1795963560.0);"
    );
    make_ledger(&fake.path("ledger.db"), &running);
    let ledger = fake.path("ledger.db").to_str().unwrap().to_owned();
    let server = fake.command();
    let server: Vec<&str> = server.iter().map(String::as_str).collect();
    let reissue = both(&["reissue", "r-1", "--args", ARGS, "--ledger", &ledger], &server);
    let mut pty = Pty::start(Path::new(EXE), &reissue, &[], (100, 60));
    pty.wait_for("Type r-1 to send it");
    let db = rusqlite::Connection::open(&ledger).unwrap();
    db.execute_batch(
        "UPDATE requests SET status = 'done', result = '{}'; INSERT INTO tickets VALUES ('T-1', 'r-1', 't', 'b');",
    )
    .unwrap();
    pty.answer("r-1\r");
    pty.wait_for("Things have changed since you were asked; nothing was sent");
    pty.wait_for("effects of this request: 0 → 1");
    assert!(pty.screen(|s| s.contents().contains("done since")), "{}", pty.text());
    assert_eq!(fake.calls(), 0);
    // Here nothing is typed, and that is No.
    pty.answer("\r");
    assert_eq!((pty.ended(), fake.calls()), (3, 0));
}

#[test]
fn a_script_can_insist_on_the_row_that_it_saw() {
    let t = done();
    let found = redial(&["find", "r-1", "--ledger", &t.ledger, "--json"]);
    let version = found.text(&["row_version"]);
    assert_eq!(found.text(&["ledger", "row_version"]), version);
    let rows = redial(&["rows", "--ledger", &t.ledger, "--json"]).doc();
    assert_eq!(rows["rows"][0]["row_version"], version.as_str());
    let insist = |version: &str, more: &[&str]| {
        redial(&t.reissue(&both(&["--confirm", "r-1", "--if-row", version], more)))
    };
    insist(&version, &[]).expect(0, &["replayed      yes"]);
    // The very same row still: a repeat that only replays changes nothing of it.
    let json = insist(&version, &["--json"]);
    assert_eq!((json.exit, json.text(&["row_version"])), (0, version.clone()), "{}", json.all());
    let db = rusqlite::Connection::open(&t.ledger).unwrap();
    db.execute_batch("UPDATE requests SET owner = 'somebody'").unwrap();
    insist(&version, &[]).expect(3, &["--if-row names", "nothing was sent"]);
    let json = insist(&version, &["--json"]);
    assert_eq!((json.exit, json.text(&["sent"])), (3, "0".into()), "{}", json.all());
    let now = json.text(&["row_version"]);
    assert_ne!(now, version);
    insist(&now, &[]).expect(0, &[]);
    // A request that nobody knows has a version, too: that it isn't there.
    let none = redial(&["find", "r-9", "--ledger", &t.ledger, "--json"]).text(&["row_version"]);
    let nine = r#"{"request_id":"r-9","title":"t","body":"b"}"#;
    let call = ["call", "create_ticket", "--args", nine, "--ledger", &t.ledger, "--http", &t.url];
    let call = both(&call, &["--if-row", &none]);
    redial(&call).expect(0, &[]);
    redial(&both(&call, &["--confirm", "r-9"])).expect(3, &["--if-row names"]);
    assert_eq!(count_tickets(Path::new(&t.ledger)), 2);
    redial(&["reissue", "r-1", "--args", ARGS, "--if-row", "x", "--http", &t.url])
        .expect(2, &["--ledger"]);
}

#[test]
fn a_repeat_that_ends_with_two_effects_says_so_and_is_not_good() {
    let t = done();
    let db = rusqlite::Connection::open(&t.ledger).unwrap();
    // A ledger that has no rule against it.
    db.execute_batch(
        "CREATE TABLE t2 (ticket_id TEXT PRIMARY KEY, request_id TEXT, title TEXT, body TEXT);
         INSERT INTO t2 SELECT ticket_id, request_id, title, body FROM tickets; DROP TABLE tickets;
         ALTER TABLE t2 RENAME TO tickets; INSERT INTO tickets VALUES ('T-x', 'r-1', 't', 'b');",
    )
    .unwrap();
    let ran = redial(&t.reissue(&["--confirm", "r-1"]));
    ran.expect(1, &["this request has 2 tickets now: its work ran more than once"]);
    let ran = redial(&t.reissue(&["--confirm", "r-1", "--json"]));
    assert_eq!((ran.exit, ran.text(&["effects_after"])), (1, "2".into()), "{}", ran.all());
    // A recorded session made again says it, too, though each answer is the recorded one.
    let tape = Path::new(&t.ledger).with_file_name("one.jsonl");
    let at = r#""t":"2026-11-29T03:00:00Z","mono_us":0,"gen":1"#;
    let call = redial::json::raw::quote(&format!(
        r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{{"name":"create_ticket","arguments":{ARGS}}}}}"#
    ));
    let opened = format!(r#"{{"seq":1,{at},"kind":"opened","transport":"stdio","command":["x"]}}"#);
    let sent = format!(r#"{{"seq":2,{at},"kind":"sent","text":{call}}}"#);
    std::fs::write(&tape, format!("{opened}\n{sent}\n")).unwrap();
    let path = tape.to_str().unwrap();
    let replay = ["replay", path, "--confirm-tool", "create_ticket", "--ledger", &t.ledger];
    let ran = redial(&both(&replay, &["--http", &t.url]));
    ran.expect(1, &["this request has 2 tickets now: its work ran more than once"]);
}

#[test]
fn long_arguments_show_both_their_ends() {
    let fake = FakeStdio::new();
    fake.tools(&format!("[{}]", tool("create_ticket", ""))).answers("call", "made");
    let server = fake.command();
    let server: Vec<&str> = server.iter().map(String::as_str).collect();
    let long =
        format!(r#"{{"request_id":"r-1","body":"{}","last":"and-delete-it"}}"#, "x".repeat(20_000));
    let reissue = both(&["reissue", "r-1", "--args", &long], &server);
    let mut pty = Pty::start(Path::new(EXE), &reissue, &[], (100, 80));
    pty.wait_for("Type r-1 to send it");
    let text = pty.screen(|s| s.contents()).replace('\n', "");
    for words in ["request_id", "characters are not shown", "and-delete-it"] {
        assert!(text.contains(words), "{words}: {text}");
    }
    pty.answer("\u{4}");
    pty.ended();
}

#[test]
fn a_call_is_not_sent_while_a_file_that_may_stop_it_could_not_be_looked_for() {
    let server = FakeStdio::new();
    server.tools(r#"[{"name":"t","annotations":{"idempotentHint":true}}]"#);
    for (name, place) in [("HOME", "/nowhere/at/all"), ("XDG_CONFIG_HOME", "here")] {
        let run = |said: Option<&str>| {
            let mut c = command(&["call", "t", "--args", "{}", "--timeout", "0.2"]);
            c.args(server.command()).env(name, place);
            said.map(|said| c.env("REDIAL_READ_ONLY", said));
            Ran::from(c.output().unwrap())
        };
        let before = server.calls();
        for said in [None, Some("")] {
            run(said).expect(2, &[name, "REDIAL_READ_ONLY=0"]);
        }
        run(Some("1")).expect(3, &[]);
        assert_eq!(server.calls(), before);
        run(Some("0")).expect(4, &["could not be looked for"]);
        assert_eq!(server.calls(), before + 1);
    }
}
