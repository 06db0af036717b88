//! The design's JSON table field by field, with the right type, also where something went wrong; and the exit
//! statuses 0 to 6, each from the situations that it stands for.

use super::ledger_read::night;
use crate::support::cli::{
    EXE, FakeStdio, Ran, both, error, make_ledger, redial, result, tickets, tool,
};
use crate::support::fake_http::{FakeHttp, answer};
use serde_json::Value;
use std::collections::BTreeSet;

/// Checks a document against `name: type` lines. Types: `str`, `int`, `num`, `bool`, `obj`, `strs` (array of
/// strings), `list`, `any`; `?` after it allows null. Every name must be there.
fn typed(what: &str, value: &Value, shape: &str) {
    for line in shape.split(';').map(str::trim).filter(|l| !l.is_empty()) {
        let (name, kind) = line.split_once(':').unwrap();
        let (name, kind) = (name.trim(), kind.trim());
        let v = value.get(name).unwrap_or_else(|| panic!("{what}: no {name} in {value:#}"));
        let (kind, nullable) = (kind.trim_end_matches('?'), kind.ends_with('?'));
        let fits = match kind {
            _ if v.is_null() => nullable,
            "str" => v.is_string(),
            "int" => v.is_u64(),
            "num" => v.is_number(),
            "bool" => v.is_boolean(),
            "obj" => v.is_object(),
            "strs" => v.as_array().is_some_and(|a| a.iter().all(Value::is_string)),
            "list" => v.is_array(),
            "any" => true,
            other => panic!("{other}"),
        };
        assert!(fits, "{what}: {name} is {v}, not {kind}");
    }
}

const ROW: &str = "request_id: str; state: str; strength: str; stored_status: str; why: str; owner: str?; claimed_at: str?; \
                   age_s: num?; args_hash: str?; effects: int?; result: any?; verdict: strs; next: str";
const WITNESS: &str = "exit: obj?; stderr: strs; stderr_dropped: int; noise: strs; noise_dropped: int; protocol: str?";
const CALL: &str = "schema: str; tool: str; args: obj?; outcome: str; why: str; answer_status: str?; sent: int; rounds: int; \
                    result: any?; error: obj?; exit: obj?; stderr: strs; stderr_dropped: int; noise: strs; noise_dropped: int; protocol: str?;
                    elapsed_ms: int";
const REISSUE: &str = "request_id: str; hash_matches: bool?; replayed: bool?; state_after: str; pairing: str; effects_before: int?; \
                       effects_after: int?; effects_total_before: int?; effects_total_after: int?; verdict: strs; next: str";
const FIND: &str = "schema: str; request_id: str; state: str; why: str; ledger: obj?; server: obj?; server_why: str?; pairing: str; \
                    verdict: strs; next: str";
const ERROR: &str = "code: int?; message: str; data: any?; hint: str?; exit_status: int";

fn check(ran: &Ran, exit: i32, shape: &str) -> Value {
    assert_eq!(ran.exit, exit, "{}", ran.all());
    let doc = ran.doc();
    typed("document", &doc, shape);
    let of_ours = doc.get("error").filter(|e| e.get("exit_status").is_some());
    if let Some(e) = of_ours {
        typed("error", e, ERROR);
        assert_eq!(e["exit_status"], exit);
    }
    doc
}

/// A writer that opens and closes the file for every change, as the reference does, in both journal modes.
#[test]
fn counts_and_rows_are_of_one_moment() {
    for mode in ["WAL", "DELETE"] {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("l.db");
        let conn = rusqlite::Connection::open(&path).unwrap();
        conn.query_row(&format!("PRAGMA journal_mode = {mode}"), [], |_| Ok(())).unwrap();
        conn.execute_batch(super::ledger_read::DDL).unwrap();
        drop(conn);
        let stop = std::sync::atomic::AtomicBool::new(false);
        let written = std::sync::atomic::AtomicU64::new(0);
        /// Ends the writer, also when an assertion failed.
        struct Stop<'a>(&'a std::sync::atomic::AtomicBool);
        impl Drop for Stop<'_> {
            fn drop(&mut self) {
                self.0.store(true, std::sync::atomic::Ordering::Relaxed);
            }
        }
        std::thread::scope(|scope| {
            let stopper = Stop(&stop);
            scope.spawn(|| {
                let mut n = 0;
                while !stop.load(std::sync::atomic::Ordering::Relaxed) {
                    n += 1;
                    std::thread::sleep(std::time::Duration::from_millis(3));
                    let change = |sql: String| {
                        let c = rusqlite::Connection::open(&path).unwrap();
                        c.busy_timeout(std::time::Duration::from_secs(20)).unwrap();
                        c.execute_batch(&sql).unwrap();
                    };
                    change(format!("INSERT INTO requests VALUES ('r-{n}', 'h{n}', 'running', NULL, 'A', 1.0)"));
                    change(format!("BEGIN; INSERT INTO tickets VALUES ('T-{n}', 'r-{n}', 't', 'b'); UPDATE requests SET status = 'done' WHERE request_id = 'r-{n}'; COMMIT"));
                    written.store(n, std::sync::atomic::Ordering::Relaxed);
                }
            });
            let (mut good, mut tries) = (0, 0);
            // How often the writer gets to write is the disk's affair.
            while good < 8 || written.load(std::sync::atomic::Ordering::Relaxed) < 20 {
                tries += 1;
                assert!(tries < 2_000, "{mode}: {good} good reads");
                let ran = redial(&["rows", "--ledger", path.to_str().unwrap(), "--json"]);
                // On a busy machine it may find no pause to read in; that is said, and no torn report.
                if ran.exit == 6 {
                    continue;
                }
                let doc = ran.doc();
                // Nor any that is torn and doesn't say so.
                if doc["remarks"].to_string().contains("read in pieces") {
                    assert_eq!(mode, "DELETE", "a snapshot is never in pieces");
                    continue;
                }
                good += 1;
                let rows = doc["rows"].as_array().unwrap();
                let mut states = std::collections::BTreeMap::<&str, u64>::new();
                for r in rows {
                    *states.entry(r["state"].as_str().unwrap()).or_default() += 1;
                }
                assert_eq!(serde_json::json!(states), doc["counts"], "{mode}");
                let effects: u64 = rows.iter().map(|r| r["effects"].as_u64().unwrap()).sum();
                assert_eq!(doc["effects"].as_u64(), Some(effects), "{mode}");
            }
            drop(stopper);
        });
    }
}

#[test]
fn rows() {
    let dir = tempfile::tempdir().unwrap();
    let ledger = night(dir.path());
    let ledger = ledger.to_str().unwrap();
    let doc = check(
        &redial(&["rows", "--ledger", ledger, "--json"]),
        0,
        "schema: str; counts: obj; effects: int; rows: list",
    );
    assert_eq!(doc["schema"], "redial/rows@1");
    assert_eq!(doc["counts"], serde_json::json!({"done": 5, "abandoned": 2}));
    assert_eq!(doc["effects"], 5);
    let rows = doc["rows"].as_array().unwrap();
    rows.iter().for_each(|r| typed("row", r, ROW));
    let ids: Vec<&str> = rows.iter().map(|r| r["request_id"].as_str().unwrap()).collect();
    assert_eq!(
        ids,
        ["night-007", "night-006", "night-005", "night-004", "night-003", "night-002", "night-001"]
    );
    let one = &rows[6];
    assert_eq!(
        (&one["state"], &one["stored_status"], &one["effects"]),
        (&"done".into(), &"done".into(), &1.into())
    );
    assert_eq!(one["claimed_at"], "2026-11-29T14:45:50.611Z");
    assert_eq!(one["result"]["title"], "障害報告");
    assert_eq!(one["verdict"], serde_json::json!(["suspect_duplicate", "finished"]));
    assert_eq!(
        one["args_hash"],
        "8d8e68f2a12b9561ac972825dd64440466c9b33603b341137342b9254f15deb1"
    );
    let gone = &rows[0];
    assert_eq!(
        (&gone["state"], &gone["stored_status"], &gone["strength"]),
        (&"abandoned".into(), &"running".into(), &"presumed".into())
    );
    assert!(gone["result"].is_null() && gone["age_s"].as_f64().unwrap() > 0.0);

    let far = redial(&["rows", "--ledger", ledger, "--stale-seconds", "999999999", "--json"]).doc();
    assert_eq!(far["counts"], serde_json::json!({"done": 5, "abandoned": 1, "running": 1}));
    let few =
        redial(&["rows", "--ledger", ledger, "--state", "abandoned", "--limit", "1", "--json"])
            .doc();
    assert_eq!(
        (few["rows"].as_array().unwrap().len(), &few["rows"][0]["request_id"]),
        (1, &"night-007".into())
    );
    assert_eq!(few["counts"]["done"], 5, "the counts are the ledger's, whatever is listed");
    let none = redial(&["rows", "--ledger", ledger, "--state", "failed", "--json"]).doc();
    assert_eq!(none["rows"], serde_json::json!([]));

    let lost = check(
        &redial(&["rows", "--ledger", "/nowhere.db", "--json"]),
        6,
        "schema: str; error: obj; counts: obj?; effects: int?; rows: list?",
    );
    assert!(lost["rows"].is_null() && lost["counts"].is_null(), "no rows are no empty ledger");
}

#[test]
fn rows_without_effects_owner_or_times() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("bare.db");
    rusqlite::Connection::open(&path)
        .unwrap()
        .execute_batch("CREATE TABLE jobs(request_id TEXT, status TEXT); INSERT INTO jobs VALUES('a','done'),('b','PAUSED');")
        .unwrap();
    let doc = check(
        &redial(&["rows", "--ledger", path.to_str().unwrap(), "--json"]),
        0,
        "effects: int?; rows: list",
    );
    assert_eq!(doc["counts"], serde_json::json!({"done": 1, "PAUSED": 1}));
    assert!(doc["effects"].is_null(), "no effects table is not no effects");
    doc["rows"].as_array().unwrap().iter().for_each(|r| typed("row", r, ROW));
    assert_eq!(
        (&doc["rows"][0]["state"], &doc["rows"][0]["verdict"][0]),
        (&"PAUSED".into(), &"unmapped".into())
    );
}

#[test]
fn find() {
    let dir = tempfile::tempdir().unwrap();
    let path = night(dir.path());
    let ledger = path.to_str().unwrap();
    let by_ledger = check(&redial(&["find", "night-001", "--ledger", ledger, "--json"]), 0, FIND);
    typed("ledger", &by_ledger["ledger"], ROW);
    assert_eq!((&by_ledger["state"], &by_ledger["pairing"]), (&"done".into(), &"unproven".into()));
    assert!(by_ledger["server"].is_null() && by_ledger["server_why"].is_string());

    let unknown = check(&redial(&["find", "nope", "--ledger", ledger, "--json"]), 1, FIND);
    assert_eq!((&unknown["state"], &unknown["ledger"]), (&"unknown".into(), &Value::Null));
    assert_eq!(unknown["verdict"], serde_json::json!(["not_known"]));

    let both_say = check(
        &redial(&both(&["find", "night-001", "--ledger", ledger, "--json"], &tickets(ledger))),
        0,
        FIND,
    );
    typed("witness", &both_say, WITNESS);
    assert_eq!(
        (&both_say["server"]["status"], &both_say["pairing"]),
        (&"done".into(), &"consistent".into())
    );
    assert_eq!(
        (&both_say["server"]["result"], &both_say["exit"]),
        (&both_say["ledger"]["result"], &Value::Null)
    );

    // Without a ledger the server's own word is the best witness there is.
    let by_server =
        check(&redial(&both(&["find", "night-001", "--json"], &tickets(ledger))), 0, FIND);
    assert_eq!((&by_server["state"], &by_server["ledger"]), (&"done".into(), &Value::Null));
    assert_eq!(by_server["strength"], "server_says");
    let nobody = check(&redial(&both(&["find", "nope", "--json"], &tickets(ledger))), 1, FIND);
    assert_eq!(
        (&nobody["state"], &nobody["server"]["status"]),
        (&"unknown".into(), &"unknown".into())
    );

    // Another server than the ledger's: it denies a row, or has finished one that the ledger never had.
    let other = dir.path().join("other.db");
    let denied = check(
        &redial(&both(
            &["find", "night-001", "--ledger", ledger, "--json"],
            &tickets(other.to_str().unwrap()),
        )),
        1,
        FIND,
    );
    assert_eq!(
        (&denied["pairing"], &denied["verdict"][0]),
        (&"contradicted".into(), &"endpoint_mismatch".into())
    );
    assert_eq!(denied["state"], "done", "the state is the ledger's");
    make_ledger(&dir.path().join("fresh.db"), "");
    let fresh = dir.path().join("fresh.db");
    let more = check(
        &redial(&both(
            &["find", "night-001", "--ledger", fresh.to_str().unwrap(), "--json"],
            &tickets(ledger),
        )),
        1,
        FIND,
    );
    assert_eq!((&more["state"], &more["pairing"]), (&"unknown".into(), &"contradicted".into()));

    // The ledger's word is worth having without the server's.
    let dead = check(
        &redial(&[
            "find",
            "night-001",
            "--ledger",
            ledger,
            "--json",
            "--",
            "sh",
            "-c",
            "echo bye >&2; exit 7",
        ]),
        5,
        FIND,
    );
    assert_eq!(
        (&dead["state"], &dead["exit"]["code"], &dead["stderr"][0]),
        (&"done".into(), &7.into(), &"bye".into())
    );
    assert_eq!(dead["error"]["exit_status"], 5);
    let nothing =
        check(&redial(&["find", "night-001", "--json", "--", "sh", "-c", "exit 7"]), 5, FIND);
    assert_eq!(
        (&nothing["state"], &nothing["request_id"]),
        (&"unknown".into(), &"night-001".into())
    );
    check(&redial(&["find", "night-001", "--ledger", "/nowhere.db", "--json"]), 6, FIND);
}

#[test]
fn a_look_up_that_is_not_run_not_answered_or_answered_with_an_error() {
    let dir = tempfile::tempdir().unwrap();
    let path = night(dir.path());
    let ledger = path.to_str().unwrap();
    let find = ["find", "night-001", "--ledger", ledger, "--json"];
    let fake = FakeStdio::new();
    fake.tools(&format!("[{}]", tool("find_request", ""))).answers("look", r#"{"status":"done"}"#);
    let silent = check(&fake.run(&find), 0, FIND);
    assert!(silent["server"].is_null());
    assert!(silent["server_why"].as_str().unwrap().contains("does not say that it is read-only"));

    fake.tools(&format!("[{}]", tool("find_request", r#""readOnlyHint":true"#)));
    assert_eq!(check(&fake.run(&find), 0, FIND)["server"]["status"], "done");
    fake.file("look", &error(-32000, "database is locked"));
    let failed = check(&fake.run(&find), 1, FIND);
    assert!(failed["server_why"].as_str().unwrap().contains("database is locked"), "{failed}");
    fake.file("look", &result(r#"{"content":[],"isError":true}"#));
    check(&fake.run(&find), 1, FIND);
    fake.tools("[]");
    let none = check(&fake.run(&find), 0, FIND);
    assert!(
        none["server_why"].as_str().unwrap().contains("no look-up tool find_request"),
        "{none}"
    );
}

#[test]
fn tools() {
    let dir = tempfile::tempdir().unwrap();
    let ledger = dir.path().join("l.db");
    let shape = "schema: str; protocol: str?; server: obj; tools: list; dropped: strs";
    let doc =
        check(&redial(&both(&["tools", "--json"], &tickets(ledger.to_str().unwrap()))), 0, shape);
    typed("server", &doc["server"], "name: str; version: str");
    assert_eq!(
        (&doc["schema"], &doc["protocol"]),
        (&"redial/tools@1".into(), &"2026-07-28".into())
    );
    let gates: Vec<_> = doc["tools"]
        .as_array()
        .unwrap()
        .iter()
        .map(|t| {
            typed("tool", t, "name: str; hints: obj; gate: str; takes_request_id: bool");
            (
                t["name"].as_str().unwrap(),
                t["gate"].as_str().unwrap(),
                t["takes_request_id"].as_bool().unwrap(),
            )
        })
        .collect();
    assert_eq!(gates, [("create_ticket", "preview", true), ("find_request", "none", true)]);
    assert_eq!(doc["tools"][1]["hints"]["readOnlyHint"], true);

    // Hints as sent, whatever they are; what is no tool is dropped, and said.
    let fake = FakeStdio::new();
    let list = [
        tool("none", ""),
        tool("odd", r#""idempotentHint":"yes","x":1.50"#),
        tool("both", r#""readOnlyHint":true,"destructiveHint":true"#),
        r#"{"name":"bare"}"#.into(),
        r#"{"inputSchema":{}}"#.into(),
    ];
    fake.tools(&format!("[{}]", list.join(",")));
    let doc = check(&fake.run(&["tools", "--json"]), 0, shape);
    let named = |n: &str| doc["tools"].as_array().unwrap().iter().find(|t| t["name"] == n).unwrap();
    for name in ["none", "odd", "both", "bare"] {
        assert_eq!(named(name)["gate"], "type", "{name}");
    }
    assert_eq!(named("odd")["hints"]["idempotentHint"], "yes");
    assert_eq!(
        (&named("none")["hints"], &named("bare")["hints"]),
        (&serde_json::json!({}), &serde_json::json!({}))
    );
    assert_eq!(named("bare")["takes_request_id"], false);
    assert_eq!(doc["dropped"].as_array().unwrap().len(), 1, "{doc}");
    let dead = check(
        &redial(&["tools", "--json", "--", "sh", "-c", "exit 3"]),
        5,
        "schema: str; error: obj; tools: list?; server: obj?",
    );
    assert!(dead["tools"].is_null(), "no list is no empty list");
}

#[test]
fn calls_and_their_exit_statuses() {
    let fake = FakeStdio::new();
    fake.tools(&format!("[{}]", tool("create_ticket", "")));
    fake.file("stderr", "boot id 1\nready").file("noise", "Welcome!");
    let base = ["call", "create_ticket", "--args", r#"{"request_id":"r-1","n":1.50}"#, "--json"];
    let cases = [
        (result(r#"{"content":[{"type":"text","text":"done"}]}"#), 0, "ok", Some("done")),
        // It says nothing of the work: nothing went wrong, and nothing is claimed.
        (result(r#"{"content":[{"type":"text","text":"fine"}]}"#), 0, "ok", Some("unknown")),
        (
            result(r#"{"structuredContent":{"status":"done","ok":false},"content":[]}"#),
            4,
            "ok",
            Some("unknown"),
        ),
        (
            result(r#"{"structuredContent":{"status":"in_progress"},"content":[]}"#),
            4,
            "ok",
            Some("in_progress"),
        ),
        (
            result(r#"{"structuredContent":{"status":"unknown"},"content":[]}"#),
            4,
            "ok",
            Some("unknown"),
        ),
        (
            result(r#"{"content":[{"type":"text","text":"no room"}],"isError":true}"#),
            1,
            "tool_error",
            None,
        ),
        (error(-32602, "bad arguments"), 1, "rpc_error", None),
    ];
    for (said, exit, outcome, status) in &cases {
        fake.file("call", said);
        let doc = check(&fake.run(&base), *exit, CALL);
        assert_eq!(
            (&doc["outcome"], doc["answer_status"].as_str()),
            (&(*outcome).into(), *status),
            "{said}"
        );
        assert_eq!(
            (&doc["sent"], &doc["rounds"], &doc["tool"]),
            (&1.into(), &1.into(), &"create_ticket".into())
        );
        assert_eq!(
            (&doc["exit"], &doc["stderr"], &doc["noise"]),
            (
                &Value::Null,
                &serde_json::json!(["boot id 1", "ready"]),
                &serde_json::json!(["Welcome!"])
            )
        );
        assert_eq!(doc["protocol"], "2025-11-25");
    }
    assert_eq!(fake.calls(), cases.len());
    let doc = fake.run(&base).doc();
    assert_eq!(
        (&doc["error"]["code"], &doc["error"]["message"]),
        (&(-32602).into(), &"bad arguments".into())
    );
    assert!(
        fake.run(&base).stdout.contains(r#""args": {"request_id":"r-1","n":1.50}"#),
        "as sent, to the byte"
    );

    // It dies with the call: unknown, never sent again.
    let before = fake.calls();
    fake.file("die", "out of memory");
    let doc = check(&fake.run(&base), 4, CALL);
    assert_eq!((&doc["outcome"], &doc["sent"]), (&"unknown".into(), &1.into()));
    assert_eq!((&doc["exit"]["signal"], &doc["exit"]["code"]), (&9.into(), &Value::Null));
    assert!(doc["stderr"].as_array().unwrap().contains(&"out of memory".into()), "{doc}");
    fake.run(&base[..4]).expect(
        4,
        &[
            "outcome       unknown: ",
            "signal 9",
            "out of memory",
            "next          look it up by other means",
        ],
    );
    assert_eq!(fake.calls(), before + 2);

    // No answer within the limit.
    std::fs::remove_file(fake.path("die")).unwrap();
    std::fs::remove_file(fake.path("call")).unwrap();
    let doc = check(&fake.run(&both(&base, &["--timeout", "0.3"])), 4, CALL);
    assert_eq!(doc["outcome"], "unknown");
    assert!(doc["elapsed_ms"].as_u64().unwrap() >= 300);
}

#[test]
fn a_refused_call_and_one_that_never_left_over_http() {
    let fake = FakeHttp::start(|_, stream, _| answer(stream, "403 Forbidden", "", b"not you"));
    let url = fake.url();
    let base =
        ["call", "create_ticket", "--args", r#"{"request_id":"r-1"}"#, "--json", "--http", &url];
    let doc = check(&redial(&base), 1, CALL);
    assert_eq!(
        (&doc["outcome"], &doc["sent"], &doc["exit"]),
        (&"refused".into(), &1.into(), &Value::Null)
    );
    let gone = FakeHttp::start(|_, stream, _| drop(stream.shutdown(std::net::Shutdown::Both)));
    let url = gone.url();
    let doc = check(&redial(&["call", "create_ticket", "--json", "--http", &url]), 4, CALL);
    assert_eq!((&doc["outcome"], &doc["sent"]), (&"unknown".into(), &1.into()));
    assert_eq!(
        gone.calls.load(std::sync::atomic::Ordering::SeqCst),
        1,
        "sent once, whatever became of it"
    );
}

#[test]
fn reissue() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("ledger.db");
    let ledger = path.to_str().unwrap();
    let args = r#"{"request_id":"r-1","title":"t","body":"b"}"#;
    let server = tickets(ledger);
    redial(&both(&["call", "create_ticket", "--args", args], &server)).expect(0, &[]);
    let base = both(&["reissue", "r-1", "--ledger", ledger, "--args", args, "--json"], &[]);
    let shape = format!("{CALL}; {REISSUE}");
    // Stopped by the gate: all the fields, and nothing sent.
    let doc = check(&redial(&both(&base, &server)), 3, &shape);
    assert_eq!(
        (&doc["schema"], &doc["outcome"], &doc["sent"]),
        (&"redial/reissue@1".into(), &"not_sent".into(), &0.into())
    );
    assert_eq!(
        (&doc["hash_matches"], &doc["replayed"], &doc["state_after"]),
        (&true.into(), &Value::Null, &"done".into())
    );
    let doc = check(&redial(&both(&both(&base, &["--confirm", "r-1"]), &server)), 0, &shape);
    assert_eq!(
        (&doc["replayed"], &doc["hash_matches"], &doc["pairing"]),
        (&true.into(), &true.into(), &"consistent".into())
    );
    for name in ["effects_before", "effects_after", "effects_total_before", "effects_total_after"] {
        assert_eq!(doc[name], 1, "{name}");
    }
    // Other arguments, by a recipe that another row proves: refused whatever is confirmed.
    redial(&both(
        &["call", "create_ticket", "--args", &args.replace("r-1", "r-2").replace("\"t\"", "\"u\"")],
        &server,
    ))
    .expect(0, &[]);
    let other = args.replace("\"t\"", "\"other\"");
    let doc = check(
        &redial(&both(
            &["reissue", "r-1", "--ledger", ledger, "--args", &other, "--json", "--confirm", "r-1"],
            &server,
        )),
        3,
        &shape,
    );
    assert_eq!(
        (&doc["hash_matches"], &doc["sent"], &doc["verdict"][0]),
        (&false.into(), &0.into(), &"conflict".into())
    );
    // Without a ledger: nothing is counted, and the server's answer is the state.
    let doc = check(
        &redial(&both(&["reissue", "r-1", "--args", args, "--json", "--confirm", "r-1"], &server)),
        0,
        &shape,
    );
    assert_eq!(
        (&doc["effects_before"], &doc["hash_matches"], &doc["state_after"]),
        (&Value::Null, &Value::Null, &"done".into())
    );
    // Failures on the way: the same fields.
    check(&redial(&both(&["reissue", "r-1", "--json"], &server)), 2, &shape);
    check(&redial(&both(&base, &["--", "sh", "-c", "exit 1"])), 5, &shape);
    check(
        &redial(&both(
            &["reissue", "r-1", "--ledger", "/nowhere.db", "--args", args, "--json"],
            &server,
        )),
        6,
        &shape,
    );
}

/// With `--json` there is one document on stdout, never a word beside it; and every line of every document is JSON.
#[test]
fn stdout_holds_nothing_but_the_document() {
    let dir = tempfile::tempdir().unwrap();
    let path = night(dir.path());
    let ledger = path.to_str().unwrap();
    let charges = dir.path().join("charges.jsonl");
    let charges = charges.to_str().unwrap();
    let mut seen = BTreeSet::new();
    for (exit, args) in [
        (0, vec!["rows", "--ledger", ledger, "--json"]),
        (1, vec!["find", "nope", "--ledger", ledger, "--json"]),
        (2, vec!["rows", "--json"]),
        (
            3,
            both(
                &["call", "charge", "--json", "--read-only"],
                &["--", EXE, "serve", "charge", "--effects", charges],
            ),
        ),
        (5, vec!["tools", "--json", "--", "/nowhere/server"]),
        (6, vec!["rows", "--ledger", "/nowhere.db", "--json"]),
    ] {
        let ran = redial(&args);
        assert_eq!(ran.exit, exit, "{}", ran.all());
        assert!(ran.doc()["schema"].as_str().unwrap().starts_with("redial/"));
        seen.insert(exit);
    }
    assert_eq!(seen.len(), 6);
}
