//! What the commands that touch a server say beside the outcome: its last words, what was told to it, warnings, and
//! mistakes in what was asked.

use crate::support::cli::{FakeStdio, both, count_tickets, make_ledger, redial, tickets, tool};
use crate::support::shell::{ANSWER, script};

#[test]
fn the_last_words_of_a_server_are_in_the_report_and_what_is_left_out_is_counted() {
    // Its last line is written after the answer, as a slow pipe would bring it.
    let noise =
        "i=0; while [ $i -lt 130 ]; do echo \"noise $i\"; echo \"line $i\" >&2; i=$((i+1)); done";
    let script = script(noise, &format!("{ANSWER}; echo 'end of it' >&2"));
    for command in [&["call", "t", "--json"][..], &["tools", "--json"]] {
        let ran = redial(&both(command, &["--", "sh", "-c", &script]));
        ran.expect(0, &[]);
        let doc = ran.doc();
        let lines = |k: &str| doc[k].as_array().unwrap().len();
        assert_eq!((lines("noise"), &doc["noise_dropped"]), (100, &30.into()), "{doc}");
        assert_eq!(doc["noise"][99], "noise 129");
        let said = if command[0] == "call" { 131 } else { 130 };
        assert_eq!(doc["stderr_dropped"], said - 100, "{doc}");
        let last = if command[0] == "call" { "end of it" } else { "line 129" };
        assert_eq!(doc["stderr"][99], last);
    }
}

#[test]
fn folders_are_told_to_a_server_that_asks_and_only_when_named() {
    let ask = r#"printf '{"jsonrpc":"2.0","id":"r","method":"roots/list"}\n'; IFS= read -r answer; printf '%s\n' "$answer" >&2"#;
    let script = script("", &format!("{ask}; {ANSWER}"));
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().canonicalize().unwrap();
    let server = ["--", "sh", "-c", &script];
    let call = |more: &[&str]| {
        let ran = redial(&both(&both(&["call", "t", "--json"], more), &server));
        ran.expect(0, &[]);
        ran.doc()["stderr"][0].as_str().unwrap().to_owned()
    };
    assert!(call(&[]).contains("-32601"));
    let told = call(&["--root", path.to_str().unwrap()]);
    assert!(told.contains(&format!(r#""uri":"file://{}""#, path.display())), "{told}");
    redial(&both(&["call", "t", "--root", "/nowhere/at/all"], &server))
        .expect(2, &["/nowhere/at/all", "nothing was sent"]);
}

#[test]
fn arguments_of_a_call_may_stand_in_a_file() {
    let dir = tempfile::tempdir().unwrap();
    let (ledger, args) = (dir.path().join("l.db"), dir.path().join("args.json"));
    std::fs::write(&args, r#"{"request_id":"r-1","title":"t","body":"b"}"#).unwrap();
    let (ledger, args) = (ledger.to_str().unwrap(), args.to_str().unwrap());
    let call = ["call", "create_ticket", "--args-file", args, "--json"];
    let ran = redial(&both(&call, &tickets(ledger)));
    assert_eq!((ran.exit, ran.text(&["outcome"])), (0, "ok".into()), "{}", ran.all());
    assert_eq!(ran.text(&["args", "request_id"]), "r-1");
    assert_eq!(count_tickets(ledger.as_ref()), 1);
    redial(&both(&both(&call, &["--args", "{}"]), &tickets(ledger))).expect(2, &[]);
    let missing = ["call", "create_ticket", "--args-file", "/nowhere.json"];
    redial(&both(&missing, &tickets(ledger))).expect(2, &["/nowhere.json", "nothing was sent"]);
    std::fs::write(args, "[1]").unwrap();
    redial(&both(&call, &tickets(ledger))).expect(2, &["is JSON, but not an object"]);
    assert_eq!(count_tickets(ledger.as_ref()), 1);
}

#[test]
fn a_state_that_nobody_knows_is_a_mistake_and_a_word_of_the_ledger_is_none() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("l.db");
    make_ledger(&path, "INSERT INTO requests VALUES ('a', 'h', 'weird', NULL, 'o', 1.0);");
    let rows =
        |state: &str| redial(&["rows", "--ledger", path.to_str().unwrap(), "--state", state]);
    rows("abandonned").expect(2, &["no state of a request", "did you mean abandoned?"]);
    rows("nonsense").expect(2, &["there are: running, done"]);
    rows("weird").expect(0, &["a  "]);
    rows("Done").expect(0, &["no row is in the state Done"]);
}

#[test]
fn a_batch_warns_once_of_a_limit_that_is_shorter_than_the_server_s_own_wait() {
    let fake = FakeStdio::new();
    fake.tools(&format!("[{}]", tool("create_ticket", r#""idempotentHint":true"#)));
    fake.answers("call", "made");
    let file = fake.path("lines");
    let line =
        |id: &str| format!("{{\"tool\":\"create_ticket\",\"args\":{{\"request_id\":\"{id}\"}}}}\n");
    std::fs::write(&file, line("a") + &line("b")).unwrap();
    let run = |limit: &str| fake.run(&["batch", file.to_str().unwrap(), "--timeout", limit]);
    let (short, long) = (run("10"), run("60"));
    assert_eq!(
        short.stderr.matches("a server may wait itself for work that still runs").count(),
        1,
        "{}",
        short.all()
    );
    assert!(!long.stderr.contains("wait itself"), "{}", long.all());
}

#[test]
fn without_a_ledger_nothing_is_said_of_one() {
    let dir = tempfile::tempdir().unwrap();
    let l = dir.path().join("l.db");
    let server = tickets(l.to_str().unwrap());
    let args = r#"{"title":"t","body":"b"}"#;
    for command in [
        &["find", "r-1"][..],
        &["find", "r-1", "--json"],
        &["reissue", "r-1", "--args", args],
        &["reissue", "r-1", "--args", args, "--json"],
    ] {
        let all = redial(&both(command, &server)).all();
        assert!(all.contains("no ledger is attached"), "{all}");
        let told = all.replace("attach the ledger that could know it", "");
        assert!(!told.contains("this ledger") && !told.contains("the ledger"), "{all}");
    }
}
