//! show, replay, mock and reissue on recordings of the built-in server, made by the tap.

use crate::support::cli::{command, program, redial};
use crate::support::until;
use redial::json::raw;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::Stdio;

const PROGRAM: &str = env!("CARGO_BIN_EXE_redial");

/// A session through the tap with the built-in ticket server: two tickets, one look-up, one mistake.
fn recorded(dir: &Path) -> PathBuf {
    let out = dir.join("r.jsonl");
    let ledger = dir.join("then.db");
    let mut tap = program()
        .args(["record", "--out"])
        .arg(&out)
        .args(["--", PROGRAM, "serve", "tickets", "--ledger"])
        .arg(&ledger)
        .env("XDG_STATE_HOME", dir.join("state"))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut stdin = tap.stdin.take().unwrap();
    let mut stdout = BufReader::new(tap.stdout.take().unwrap());
    let mut ask = |text: &str, answered: bool| {
        writeln!(stdin, "{text}").unwrap();
        let mut line = String::new();
        if answered {
            stdout.read_line(&mut line).unwrap();
        }
        line
    };
    ask(
        r#"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}"#,
        true,
    );
    ask(r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#, false);
    ask(r#"{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{}}"#, true);
    for (id, tool, args) in [
        (2, "create_ticket", r#"{"request_id":"r-1","title":"障害","body":"b"}"#),
        (3, "create_ticket", r#"{"request_id":"r-2","title":"two","body":"b"}"#),
        (4, "find_request", r#"{"request_id":"r-2"}"#),
        (5, "create_ticket", r#"{"request_id":"r-3"}"#),
    ] {
        let text = format!(
            r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/call","params":{{"name":"{tool}","arguments":{args},"_meta":{{"progressToken":{id}}}}}}}"#
        );
        assert!(ask(&text, true).contains("result"));
    }
    drop(stdin);
    assert!(until("the tap ends", || tap.try_wait().unwrap()).success());
    out
}

fn text(p: &Path) -> &str {
    p.to_str().unwrap()
}

#[test]
fn show_filters_and_counts_and_marks_mistakes() {
    let dir = tempfile::tempdir().unwrap();
    let out = recorded(dir.path());
    let all = redial(&["show", text(&out), "--json"]);
    assert_eq!(all.exit, 0, "{}", all.all());
    assert_eq!(all.text(&["schema"]), "redial/show@1");
    assert_eq!(raw::items(&all.get(&["calls"])).unwrap().len(), 4);
    let some = redial(&["show", text(&out), "tool:create_ticket", "outcome:tool_error", "--json"]);
    let frames = some.get(&["frames"]);
    // The call, and its answer.
    assert_eq!(raw::items(&frames).unwrap().len(), 2, "{frames}");
    let plain = redial(&["show", text(&out), "req:r-2", "kind:sent"]);
    assert!(
        plain.stdout.contains("2 of ") && plain.stdout.contains("create_ticket"),
        "{}",
        plain.all()
    );
    let calls = redial(&["show", text(&out), "--calls"]);
    assert!(
        calls.stdout.contains("4 of 4") && calls.stdout.contains("tool error"),
        "{}",
        calls.all()
    );
    let wrong = redial(&["show", text(&out), "tol:x"]);
    assert_eq!(wrong.exit, 2);
    assert!(wrong.stderr.contains("^^^^ no such field (did you mean tool:"), "{}", wrong.stderr);
}

#[test]
fn a_mock_replayed_against_itself_differs_in_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let out = recorded(dir.path());
    let r = redial(&[
        "replay",
        text(&out),
        "--confirm-tool",
        "create_ticket",
        "--json",
        "--era",
        "legacy",
        "--",
        PROGRAM,
        "mock",
        text(&out),
    ]);
    assert_eq!(r.exit, 0, "{}", r.all());
    assert_eq!(r.text(&["schema"]), "redial/replay@1");
    let counts = r.get(&["counts"]);
    assert_eq!(raw::get(&counts, "differs"), None, "{counts}");
    assert_eq!(raw::get(&counts, "now_an_error"), None, "{}", r.stdout);
    assert!(raw::get(&counts, "same").is_some_and(|n| n.parse::<u32>().unwrap() >= 4), "{counts}");
}

#[test]
fn the_gate_holds_in_a_replay_and_reads_pass() {
    let dir = tempfile::tempdir().unwrap();
    let out = recorded(dir.path());
    let now = dir.path().join("now.db");
    let server = [PROGRAM, "serve", "tickets", "--ledger", text(&now)];
    let run = |more: &[&str]| {
        let mut args = vec!["replay", text(&out), "--json"];
        // A ticket's number is random; all else must be as it was. (A plan compares nothing.)
        for path in ["structuredContent.ticket_id", "content.0.text.ticket_id"] {
            if !more.contains(&"--dry-run") {
                args.extend(["--ignore", path]);
            }
        }
        args.extend(more);
        args.extend(["--ledger", text(&now), "--"]);
        args.extend(server);
        redial(&args)
    };
    std::fs::File::create(&now).unwrap();
    std::fs::remove_file(&now).unwrap();
    // A ledger to read, made by the server itself.
    redial(&["tools", "--json", "--", PROGRAM, "serve", "tickets", "--ledger", text(&now)]);
    let dry = run(&["--dry-run"]);
    assert_eq!(dry.exit, 0, "{}", dry.all());
    assert!(dry.stdout.contains("the handshake is made anew"));
    let none = run(&[]);
    let step = |r: &crate::support::cli::Ran, id: &str, tool: &str| {
        let steps = r.get(&["steps"]);
        let found = raw::items(&steps).unwrap().into_iter().find(|s| {
            raw::get_str(s, "request_id").as_deref() == Some(id)
                && raw::get_str(s, "tool").as_deref() == Some(tool)
        });
        found.map(|s| (raw::get_str(s, "result").unwrap(), raw::get_str(s, "gate"))).unwrap()
    };
    assert_eq!(step(&none, "r-1", "create_ticket").0, "skipped", "{}", none.stdout);
    // It reads, so it passed; and the answer differs: nothing was made here.
    assert_eq!(step(&none, "r-2", "find_request").0, "differs");
    assert_eq!(none.exit, 1);
    let count = || {
        let db = rusqlite::Connection::open(&now).unwrap();
        db.query_row("SELECT count(*) FROM tickets", [], |r| r.get::<_, i64>(0)).unwrap()
    };
    assert_eq!(count(), 0);
    let one = run(&["--confirm", "r-1"]);
    assert_eq!(step(&one, "r-1", "create_ticket").0, "same", "{}", one.stdout);
    assert_eq!(step(&one, "r-2", "create_ticket").0, "skipped");
    assert_eq!(count(), 1);
    // A rehearsal: fresh keys, and the mapping is told.
    // Under --read-only no flag lets a call pass, and that is what the exit status says.
    let stopped = run(&["--read-only", "--confirm", "r-1", "--confirm-tool", "create_ticket"]);
    assert_eq!((stopped.exit, count()), (3, 1), "{}", stopped.all());
    assert_eq!(step(&stopped, "r-1", "create_ticket").1.as_deref(), Some("refused"));
    let fresh = run(&["--confirm", "r-1", "--new-keys"]);
    let keys = fresh.get(&["new_keys"]);
    let new = raw::get_str(&keys, "r-1").unwrap();
    assert_ne!(new, "r-1");
    assert_eq!(count(), 2);
    let db = rusqlite::Connection::open(&now).unwrap();
    let known: i64 = db
        .query_row("SELECT count(*) FROM requests WHERE request_id = ?1", [&new], |r| r.get(0))
        .unwrap();
    assert_eq!(known, 1);
}

#[test]
fn a_mock_answers_over_http_and_its_misses_are_loud() {
    let dir = tempfile::tempdir().unwrap();
    let out = recorded(dir.path());
    let mut mock = command(&["mock", text(&out), "--listen", "127.0.0.1:0"]).spawn().unwrap();
    let mut stderr = BufReader::new(mock.stderr.take().unwrap());
    let mut said = String::new();
    while !said.contains("listening on ") {
        assert!(stderr.read_line(&mut said).unwrap() > 0, "{said}");
    }
    let url = said.split_once("listening on ").unwrap().1.trim().to_owned();
    let args = r#"{"request_id":"r-1","title":"障害","body":"b"}"#;
    let hit = redial(&["call", "create_ticket", "--args", args, "--json", "--http", &url]);
    assert_eq!((hit.exit, hit.text(&["outcome"]).as_str()), (0, "ok"), "{}", hit.all());
    let miss = redial(&[
        "call",
        "create_ticket",
        "--args",
        r#"{"request_id":"r-9","title":"x","body":"b"}"#,
        "--json",
        "--http",
        &url,
    ]);
    assert_eq!(miss.text(&["outcome"]), "rpc_error");
    assert!(
        miss.stdout.contains("not in the recording") && miss.stdout.contains("nearest"),
        "{}",
        miss.stdout
    );
    // Made once then: a second time is not in the recording.
    let again = redial(&["call", "create_ticket", "--args", args, "--json", "--http", &url]);
    assert!(again.stdout.contains("2nd time"), "{}", again.stdout);
    mock.kill().unwrap();
    mock.wait().unwrap();
}

#[test]
fn a_lost_call_is_repeated_with_the_recordings_own_bytes() {
    let dir = tempfile::tempdir().unwrap();
    let out = recorded(dir.path());
    let now = dir.path().join("then.db");
    let server = ["--", PROGRAM, "serve", "tickets", "--ledger", text(&now)];
    let mut args = vec![
        "reissue",
        "r-1",
        "--recording",
        text(&out),
        "--ledger",
        text(&now),
        "--confirm",
        "r-1",
        "--json",
    ];
    args.extend(server);
    let r = redial(&args);
    assert_eq!(r.exit, 0, "{}", r.all());
    assert_eq!(
        (r.get(&["hash_matches"]).as_str(), r.get(&["replayed"]).as_str()),
        ("true", "true")
    );
    assert!(r.text(&["args_source"]).contains("from the recording"));
    assert_eq!(r.get(&["effects_total_after"]), "2");
    let mut args = vec!["reissue", "r-77", "--recording", text(&out), "--json"];
    args.extend(server);
    let none = redial(&args);
    assert_eq!(none.exit, 2, "{}", none.all());
}

#[test]
fn an_older_file_is_cleaned_on_its_way_out() {
    let dir = tempfile::tempdir().unwrap();
    let old = dir.path().join("old.jsonl");
    let line = r#"{"seq":1,"at":"2026-11-29T02:57:10.123456Z","mono":1,"gen":1,"kind":"sent","text":"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"x\",\"params\":{\"password\":\"s3cr3t\",\"keep\":\"me\"}}"}"#;
    std::fs::write(&old, format!("{line}\n{{torn\n")).unwrap();
    let r = redial(&["show", text(&old), "--redact"]);
    assert_eq!(r.exit, 0);
    assert!(!r.all().contains("s3cr3t") && r.stdout.contains("keep"), "{}", r.all());
    assert!(r.stderr.contains("line 2 is left out"), "{}", r.stderr);
    let again = dir.path().join("new.jsonl");
    std::fs::write(&again, &r.stdout).unwrap();
    assert_eq!(redial(&["show", text(&again), "--json"]).get(&["events"]), "1");
}

#[test]
fn a_recording_that_saw_the_owner_end_is_heard_by_reissue_and_replay() {
    let dir = tempfile::tempdir().unwrap();
    let (out, ledger) = (dir.path().join("killed.jsonl"), dir.path().join("then.db"));
    let mut tap = program()
        .args(["record", "--out"])
        .arg(&out)
        .args(["--", PROGRAM, "serve", "tickets", "--work-seconds", "300", "--ledger"])
        .arg(&ledger)
        .env("XDG_STATE_HOME", dir.path().join("state"))
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut stdin = tap.stdin.take().unwrap();
    // What a server says of itself before anybody asks it anything names it.
    let whole = r#""kind":"stderr","text":"boot id"#;
    let booted = || std::fs::read_to_string(&out).ok()?.contains(whole).then_some(());
    until("the server has named itself", booted);
    for line in [
        r#"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}"#,
        r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#,
        r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"create_ticket","arguments":{"request_id":"r-1","title":"t","body":"b"}}}"#,
    ] {
        writeln!(stdin, "{line}").unwrap();
    }
    let claimed = || {
        let db = rusqlite::Connection::open(&ledger).ok()?;
        let n = db.query_row("SELECT count(*) FROM requests", [], |r| r.get::<_, i64>(0)).ok()?;
        (n == 1).then_some(())
    };
    until("the request is claimed", claimed);
    let pid = until("the server is written down", || {
        let all = std::fs::read_to_string(&out).ok()?;
        let rest = all.split_once(r#""pid":"#)?.1;
        Some(rest.chars().take_while(char::is_ascii_digit).collect::<String>())
    });
    std::process::Command::new("kill").args(["-KILL", &pid]).status().unwrap();
    until("the tap ends", || tap.try_wait().unwrap());
    let server = ["--ledger", text(&ledger), "--json", "--", PROGRAM, "serve", "tickets"];
    let server = [&server[..], &["--ledger", text(&ledger)]].concat();
    let r = redial(&[&["reissue", "r-1", "--recording", text(&out)], &server[..]].concat());
    assert_eq!(r.exit, 3, "{}", r.all());
    assert_eq!(r.text(&["state_before"]), "abandoned");
    assert!(!r.get(&["gate", "reasons"]).contains("may be alive"), "{}", r.all());
    assert!(r.text(&["next"]).starts_with("repeat with the same request_id"), "{}", r.all());
    let r = redial(&[&["replay", text(&out)], &server[..]].concat());
    assert!(!r.all().contains("may be alive"), "{}", r.all());
}

/// A recording of one ticket whose title held a credential.
fn masked(dir: &Path) -> PathBuf {
    let arguments = r#""request_id":"s-2","title":"rotate Bearer [redacted]","body":"b""#;
    one_call(dir, arguments, r#""redacted":1,"#)
}

/// A recording of one call of create_ticket, never answered.
fn one_call(dir: &Path, arguments: &str, marks: &str) -> PathBuf {
    let path = dir.join("one.jsonl");
    let at = r#""at":"2026-11-29T02:57:10.123456Z","mono":1,"gen":1"#;
    let call = format!(
        r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{{"name":"create_ticket","arguments":{{{arguments}}}}}}}"#
    );
    let opened = format!(r#"{{"seq":1,{at},"kind":"opened","transport":"stdio","command":["x"]}}"#);
    let sent = format!(r#"{{"seq":2,{at},"kind":"sent",{marks}"text":{}}}"#, raw::quote(&call));
    std::fs::write(&path, format!("{opened}\n{sent}\n")).unwrap();
    path
}

#[test]
fn a_recorded_call_that_names_two_requests_is_not_repeated() {
    let dir = tempfile::tempdir().unwrap();
    let file = one_call(dir.path(), r#""request_id":"s-1","title":"t","request_id":"s-2""#, "");
    let now = dir.path().join("now.db");
    let server = ["--", PROGRAM, "serve", "tickets", "--ledger", text(&now)];
    let run = |args: &[&str]| redial(&[args, &server].concat());
    let again = run(&["reissue", "s-2", "--recording", text(&file), "--confirm", "s-2"]);
    again.expect(2, &["the arguments have request_id 2 times; nothing was sent"]);
    let replay = run(&["replay", text(&file), "--confirm-tool", "create_ticket"]);
    assert!(replay.all().contains("request_id 2 times"), "{}", replay.all());
    let db = rusqlite::Connection::open(&now).unwrap();
    let rows = db.query_row("SELECT count(*) FROM requests", [], |r| r.get::<_, i64>(0));
    assert_eq!(rows.unwrap(), 0);
}

#[test]
fn a_call_that_was_written_down_without_a_secret_is_not_sent_without_it() {
    let dir = tempfile::tempdir().unwrap();
    let file = masked(dir.path());
    let now = dir.path().join("now.db");
    let server = ["--", PROGRAM, "serve", "tickets", "--ledger", text(&now)];
    let run = |args: &[&str]| redial(&[args, &server].concat());
    let again = run(&["reissue", "s-2", "--recording", text(&file), "--confirm", "s-2", "--json"]);
    assert_eq!(again.exit, 2, "{}", again.all());
    assert!(again.all().contains("title") && again.all().contains("--args"), "{}", again.all());
    let step = |r: &crate::support::cli::Ran| {
        let steps = r.get(&["steps"]);
        let step = raw::items(&steps).unwrap()[0].to_owned();
        (raw::get_str(&step, "result").unwrap(), raw::get_str(&step, "why").unwrap())
    };
    let replay = ["replay", text(&file), "--confirm-tool", "create_ticket", "--new-keys", "--json"];
    for more in [&["--dry-run"][..], &[]] {
        let r = run(&[&replay[..], more].concat());
        let (result, why) = step(&r);
        assert!(result == "skipped" && why.contains("title"), "{result} {why}");
    }
    let db = rusqlite::Connection::open(&now).unwrap();
    let made = db.query_row("SELECT count(*) FROM tickets", [], |r| r.get::<_, i64>(0)).unwrap();
    assert_eq!(made, 0);
    // Whoever has the value gives it.
    let args = r#"{"request_id":"s-2","title":"rotate Bearer abcdefgh","body":"b"}"#;
    let whole = run(&[
        "reissue",
        "s-2",
        "--args",
        args,
        "--confirm",
        "s-2",
        "--tool",
        "create_ticket",
        "--json",
    ]);
    assert_eq!(whole.exit, 0, "{}", whole.all());
}

#[test]
fn a_replay_whose_server_dies_on_the_way_tells_what_has_left() {
    let dir = tempfile::tempdir().unwrap();
    let out = recorded(dir.path());
    let now = dir.path().join("now.db");
    let r = redial(&[
        "replay",
        text(&out),
        "--confirm-tool",
        "create_ticket",
        "--json",
        "--",
        PROGRAM,
        "serve",
        "tickets",
        "--ledger",
        text(&now),
        "--fault",
        "exit:2",
    ]);
    assert_eq!(r.exit, 1, "{}", r.all());
    let steps = r.get(&["steps"]);
    let results: Vec<String> = raw::items(&steps)
        .unwrap()
        .iter()
        .filter(|s| raw::get_str(s, "plan").as_deref() == Some("send"))
        .map(|s| raw::get_str(s, "result").unwrap())
        .collect();
    // tools/list, r-1 on which it dies (a look-up comes first), r-2, its look-up, r-3.
    assert_eq!(results.len(), 5, "{results:?}");
    let want = ["no_answer", "skipped", "skipped", "skipped"];
    assert_eq!(results[1..], want, "{}", r.stdout);
    assert_ne!(r.get(&["broke_off"]), "null");
    assert!(r.stdout.contains("not sent: "), "{}", r.stdout);
}

#[test]
fn an_imported_trace_can_be_mocked_and_rows_take_the_filter() {
    let dir = tempfile::tempdir().unwrap();
    let trace = dir.path().join("trace.json");
    let one = r#"[{"tool":"create_basket","arguments":{},"result":{"basket_id":"b-781"}}]"#;
    std::fs::write(&trace, one).unwrap();
    let call = redial(&[
        "call",
        "create_basket",
        "--args",
        "{}",
        "--confirm",
        "create_basket",
        "--json",
        "--",
        PROGRAM,
        "mock",
        text(&trace),
    ]);
    assert_eq!((call.exit, call.text(&["outcome"]).as_str()), (0, "ok"), "{}", call.all());
    assert!(call.stdout.contains("b-781"));

    recorded(dir.path());
    let ledger = dir.path().join("then.db");
    let rows = |filter: &str| redial(&["rows", "--json", "--ledger", text(&ledger), filter]);
    let ids = |filter: &str| {
        let rows = rows(filter).get(&["rows"]);
        let ids = raw::items(&rows).unwrap();
        ids.iter().map(|r| raw::get_str(r, "request_id").unwrap()).collect::<Vec<_>>()
    };
    assert_eq!(ids("req:r-2"), ["r-2"]);
    assert_eq!(ids("state:done !req:r-2"), ["r-1"]);
    assert_eq!(ids("state:running"), Vec::<String>::new());
    let wrong = rows("state:done age:");
    assert_eq!(wrong.exit, 2, "{}", wrong.all());
}

/// A session over HTTP whose answers an older tap wrote down as they passed: compressed.
fn recorded_compressed(dir: &Path) -> PathBuf {
    use base64::Engine as _;
    let sample = Path::new(env!("CARGO_MANIFEST_DIR")).join("sample-sessions/session-lost.jsonl");
    let mut out = String::new();
    for line in std::fs::read_to_string(sample).unwrap().lines() {
        let is_answer = raw::get_str(line, "kind").as_deref() == Some("received");
        let text = raw::get_str(line, "text").filter(|_| is_answer);
        let Some(text) = text.filter(|_| raw::get(line, "exchange").is_some()) else {
            out.push_str(&format!("{line}\n"));
            continue;
        };
        let mut e = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
        e.write_all(text.as_bytes()).unwrap();
        let b64 = base64::engine::general_purpose::STANDARD.encode(e.finish().unwrap());
        let of = |key: &str| raw::get(line, key).unwrap();
        out.push_str(&format!(
            r#"{{"seq":{},"at":{},"mono":{},"gen":{},"kind":"http","exchange":{},"what":"body","end":"","b64":"{b64}"}}"#,
            of("seq"), of("at"), of("mono"), of("gen"), of("exchange")
        ));
        out.push('\n');
    }
    let path = dir.join("compressed.jsonl");
    std::fs::write(&path, out).unwrap();
    path
}

#[test]
fn answers_that_were_written_down_compressed_are_read_by_everything() {
    let dir = tempfile::tempdir().unwrap();
    let old = recorded_compressed(dir.path());
    assert!(std::fs::read_to_string(&old).unwrap().contains("\"b64\":\"H4sI"));
    let sample = Path::new(env!("CARGO_MANIFEST_DIR")).join("sample-sessions/session-lost.jsonl");
    let (old, sample) = (old.to_str().unwrap(), sample.to_str().unwrap());
    for args in [&["show"][..], &["show", "--calls"], &["audit"], &["show", "--json"]] {
        let of = |file: &str| {
            let mut all = args.to_vec();
            all.push(file);
            let ran = redial(&all);
            (ran.exit, ran.stdout.replace(file, "FILE"))
        };
        assert_eq!(of(old), of(sample), "{args:?}");
    }
    // The words of the answers are in the clear where they are cleaned of secrets.
    let cleaned = redial(&["show", "--redact", old]);
    assert!(cleaned.stdout.contains("bsk-1") && !cleaned.stdout.contains("H4sI"));
}
