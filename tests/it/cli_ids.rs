//! Request ids as they are met in the field: numbers, ids that look like flags or that no terminal shows, ids of a
//! megabyte. What a list shows can be given back to every command, and means the same request.

use crate::support::cli::{EXE, FakeStdio, redial};
use redial::json::raw;
use std::path::Path;
use std::process::Command;

const DDL: &str = "args_hash TEXT, status TEXT, result TEXT, owner TEXT, claimed_at REAL";

fn ledger(dir: &Path, sql: &str) -> String {
    let path = dir.join("ledger.db");
    rusqlite::Connection::open(&path).unwrap().execute_batch(sql).unwrap();
    path.to_str().unwrap().to_owned()
}

/// A tool that takes a number, and a look-up that takes one.
fn numbers() -> FakeStdio {
    let fake = FakeStdio::new();
    fake.tools(
        r#"[{"name":"charge","inputSchema":{"type":"object","properties":{"request_id":{"type":"integer"},"amount":{}}},"annotations":{"idempotentHint":false}},{"name":"find_request","inputSchema":{"properties":{"request_id":{"type":"integer"}}},"annotations":{"readOnlyHint":true}}]"#,
    );
    fake.answers("call", r#"{"status":"done"}"#).answers("look", r#"{"status":"done"}"#);
    fake
}

#[test]
fn a_number_names_its_row_and_is_a_repeat() {
    let dir = tempfile::tempdir().unwrap();
    let sql = format!(
        "CREATE TABLE requests(request_id INTEGER PRIMARY KEY, {DDL});
         CREATE TABLE charges(id INTEGER PRIMARY KEY, request_id INTEGER, amount REAL);
         INSERT INTO requests VALUES(5, NULL, 'done', '{{}}', 'A', 1795963550.0);
         INSERT INTO charges VALUES(1, 5, 100)"
    );
    let ledger = ledger(dir.path(), &sql);
    let server = numbers();
    for id in ["5", "\"5\"", "5.0", "5e0", "\"05\"", "\" 5\"", "\"5.0\""] {
        let args = format!(r#"{{"request_id":{id},"amount":100}}"#);
        server
            .run(&["call", "charge", "--args", &args, "--ledger", &ledger])
            .expect(3, &["nothing was sent"]);
    }
    let lines = dir.path().join("calls.jsonl");
    std::fs::write(&lines, "{\"tool\":\"charge\",\"args\":{\"request_id\":5}}\n").unwrap();
    server
        .run(&["batch", lines.to_str().unwrap(), "--ledger", &ledger])
        .expect(3, &["nothing was sent"]);
    assert_eq!(server.calls(), 0);

    // What is made here is written as the schema says; what was given keeps its bytes.
    let reissue = ["reissue", "5", "--ledger", &ledger, "--confirm", "5"];
    let sent = |more: &[&str], want: &str| {
        let all: Vec<&str> = reissue.iter().chain(more).copied().collect();
        server.run(&all);
        let calls = std::fs::read_to_string(server.path("calls")).unwrap();
        assert!(calls.lines().last().unwrap().contains(want), "{want}: {calls}");
    };
    sent(&["--args", r#"{"amount":100}"#], r#""request_id": 5"#);
    sent(&["--args", r#"{"request_id":5,"amount":100}"#], r#"{"request_id":5,"amount":100}"#);
    sent(&["--args", r#"{"request_id":"5","amount":1.0}"#], r#"{"request_id":"5","amount":1.0}"#);
    server
        .run(&[
            "reissue",
            "5",
            "--ledger",
            &ledger,
            "--confirm",
            "5",
            "--args",
            r#"{"request_id":6}"#,
        ])
        .expect(2, &["another request_id than 5"]);
}

/// Through a shell, as a person would paste it.
fn pasted(words: &str, ledger: &str) -> (Option<i32>, String) {
    let line = format!("\"$0\" find {words} --json --ledger \"$1\"");
    let out = Command::new("sh").args(["-c", &line, EXE, ledger]).output().unwrap();
    (out.status.code(), String::from_utf8(out.stdout).unwrap())
}

#[test]
fn an_id_that_looks_like_a_flag_is_found_and_help_is_not() {
    let dir = tempfile::tempdir().unwrap();
    let ids = [
        "-x9V",
        "-V1St",
        "-h9abc",
        "--json",
        "-h",
        "--help",
        "--",
        "-",
        "a b",
        "it's",
        "a\nb",
        "\u{1b}[2J",
    ];
    let rows: Vec<String> = ids
        .iter()
        .map(|id| format!("('{}', NULL, 'abandoned', NULL, 'A', 1.0)", id.replace('\'', "''")))
        .collect();
    let sql = format!(
        "CREATE TABLE requests(request_id TEXT PRIMARY KEY, {DDL}); INSERT INTO requests VALUES{}",
        rows.join(",")
    );
    let ledger = ledger(dir.path(), &sql);
    for id in &ids[..3] {
        redial(&["find", id, "--ledger", &ledger]).expect(0, &[id, "abandoned"]);
        redial(&["find", "--ledger", &ledger, id]).expect(0, &[id, "abandoned"]);
    }
    for id in ids {
        let doc = redial(&["find", &format!("--id={id}"), "--json", "--ledger", &ledger]);
        doc.expect(0, &[]);
        assert_eq!(doc.text(&["request_id"]), id);
        let json = raw::quote(id);
        redial(&["find", "--id-json", &json, "--json", "--ledger", &ledger]).expect(0, &[]);
    }
    let asked = redial(&["find", "--json", "--ledger", &ledger]);
    asked.expect(2, &["--id=VALUE"]);
    redial(&["find", "-h", "--ledger", &ledger]).expect(2, &["--id=VALUE"]);
    redial(&["call", "-h9"]).expect(2, &["unexpected"]);
    redial(&["find", "--help"]).expect(0, &["Usage"]);
    // What a refused repeat tells to type works in a shell.
    let server = FakeStdio::new();
    server.tools(r#"[{"name":"t","inputSchema":{"properties":{"request_id":{"type":"string"}}}}]"#);
    for id in ids {
        let named = format!("--id={id}");
        let stopped = server.run(&["reissue", &named, "--args", "{}", "--ledger", &ledger]);
        stopped.expect(3, &["--confirm "]);
        let all = stopped.all();
        let told = all.split("--confirm ").last().unwrap().lines().next().unwrap();
        let echo = Command::new("sh").args(["-c", &format!("printf %s {told}")]).output().unwrap();
        let word = String::from_utf8(echo.stdout).unwrap();
        let before = server.calls();
        server.run(&[
            "reissue",
            &named,
            "--args",
            "{}",
            "--ledger",
            &ledger,
            "--confirm",
            &word,
            "--timeout",
            "0.2",
        ]);
        assert_eq!(server.calls(), before + 1, "{id:?} {word:?}");
    }
    assert_eq!(pasted("--id=-x9V", &ledger).0, Some(0));
}

#[test]
fn an_id_of_a_megabyte_is_shown_short_and_found_whole() {
    let dir = tempfile::tempdir().unwrap();
    let sql = format!(
        "CREATE TABLE requests(request_id TEXT PRIMARY KEY, {DDL});
         INSERT INTO requests VALUES('r-1', NULL, 'abandoned', NULL, 'A', 1.0);
         INSERT INTO requests VALUES(printf('%.*c', 1000000, 'x'), NULL, 'abandoned', NULL, 'A', 2.0)"
    );
    let ledger = ledger(dir.path(), &sql);
    for args in [&["rows", "--ledger", &ledger][..], &["verify", "--ledger", &ledger]] {
        let ran = redial(args);
        assert!(ran.all().lines().all(|l| l.len() < 5_000), "{args:?}");
    }
    let id = dir.path().join("id");
    std::fs::write(&id, "x".repeat(1_000_000)).unwrap();
    let named = ["find", "--id-file", id.to_str().unwrap(), "--ledger", &ledger];
    redial(&named).expect(0, &["abandoned"]);
    redial(&["find", &"x".repeat(70), "--ledger", &ledger]).expect(1, &["no row"]);
}
