//! Bad input at the command line: each a clear sentence with what to do, the right exit status, nothing started,
//! nothing sent, nothing changed.

use super::ledger_live::Helper;
use super::ledger_read::{listing, night};
use crate::support::cli::{FakeStdio, Ran, both, command, count_tickets, redial, tickets, tool};
use std::fs;
use std::net::TcpListener;
use std::path::Path;

/// Every command that takes `--ledger`, with a server that would leave a mark when it is started.
fn with_ledger(ledger: &str, mark: &str) -> Vec<(String, Ran)> {
    let server = ["--", "sh", "-c", &format!("touch '{mark}'; sleep 60")].map(str::to_owned);
    let server: Vec<&str> = server.iter().map(String::as_str).collect();
    let args = r#"{"request_id":"night-007","title":"x","body":"y"}"#;
    let commands: [(&[&str], bool); 7] = [
        (&["rows"], false),
        (&["verify", "--expect-total", "1"], false),
        (&["find", "night-007"], false),
        (&["find", "night-007"], true),
        (&["reissue", "night-007", "--args", args, "--confirm", "night-007"], true),
        (&["call", "create_ticket", "--args", args, "--confirm", "night-007"], true),
        (&["call", "charge"], true),
    ];
    let asked = commands.iter().flat_map(|(words, endpoint)| {
        [false, true].map(|json| {
            let mut a = words.to_vec();
            a.extend(["--ledger", ledger]);
            a.extend(json.then_some("--json"));
            a.extend(if *endpoint { server.clone() } else { Vec::new() });
            a
        })
    });
    // Side by side: each waits for a lock as long as a person would let it.
    std::thread::scope(|s| {
        let running: Vec<_> = asked.map(|a| s.spawn(move || (a.join(" "), redial(&a)))).collect();
        running.into_iter().map(|r| r.join().unwrap()).collect()
    })
}

/// All of them end with exit 6 and these words, start nothing, and change nothing in the folder.
fn refused(dir: &Path, ledger: &Path, words: &[&str]) {
    let marks = tempfile::tempdir().unwrap();
    let mark = marks.path().join("started");
    let before = listing(dir);
    for (what, ran) in with_ledger(ledger.to_str().unwrap(), mark.to_str().unwrap()) {
        assert_eq!(ran.exit, 6, "{what}: {}", ran.all());
        for w in words {
            assert!(ran.stderr.contains(w), "{what}: {w:?} not in {}", ran.stderr);
        }
        assert!(
            ran.stderr.starts_with("redial: ") && ran.stderr.lines().count() >= 2,
            "{}",
            ran.stderr
        );
        if what.contains("--json") {
            let doc = ran.doc();
            assert!(doc["schema"].as_str().unwrap().starts_with("redial/"), "{what}");
            assert_eq!(doc["error"]["exit_status"], 6, "{what}");
            assert!(ran.stderr.contains(doc["error"]["message"].as_str().unwrap()), "{what}");
        } else {
            assert_eq!(ran.stdout, "", "{what}");
        }
    }
    assert!(!mark.exists(), "a server was started");
    assert_eq!(listing(dir), before);
}

#[test]
fn a_missing_empty_or_foreign_ledger() {
    let dir = tempfile::tempdir().unwrap();
    let path = |name: &str| dir.path().join(name);
    refused(dir.path(), &path("nowhere.db"), &["there is no", "nowhere.db", "check the path"]);
    refused(dir.path(), dir.path(), &["is a folder", "give the database file itself"]);
    fs::write(path("empty.db"), "").unwrap();
    refused(dir.path(), &path("empty.db"), &["is empty (0 bytes)", "look again after it"]);
    fs::write(path("notes.txt"), "remember the milk, and then some more of it").unwrap();
    refused(dir.path(), &path("notes.txt"), &["not a SQLite database", "text"]);
    rusqlite::Connection::open(path("foreign.db"))
        .unwrap()
        .execute_batch("CREATE TABLE users(id INTEGER, name TEXT); CREATE TABLE orders(id INTEGER, total REAL);")
        .unwrap();
    refused(
        dir.path(),
        &path("foreign.db"),
        &["users(id, name)", "orders(id, total)", "request_id and status"],
    );
}

#[test]
fn a_locked_or_damaged_ledger() {
    let dir = tempfile::tempdir().unwrap();
    let locked = dir.path().join("locked.db");
    rusqlite::Connection::open(&locked).unwrap().execute_batch(super::ledger_read::DDL).unwrap();
    let holder = Helper::start("hold", &locked);
    refused(dir.path(), &locked, &["locked by another process", "wait for its writer"]);
    holder.stop();

    let dir = tempfile::tempdir().unwrap();
    let path = night(dir.path());
    fs::remove_file(dir.path().join("ledger.db-wal")).unwrap();
    let mut bytes = fs::read(&path).unwrap();
    bytes[100..].iter_mut().for_each(|b| *b ^= 0x5a);
    fs::write(&path, bytes).unwrap();
    refused(dir.path(), &path, &["is damaged", "work on a copy"]);
}

/// A copy of the night, with everything in the one file; `damage` gets its bytes.
fn spoilt_night(dir: &Path, damage: impl FnOnce(&mut Vec<u8>)) -> std::path::PathBuf {
    let path = night(dir);
    rusqlite::Connection::open(&path)
        .unwrap()
        .query_row("PRAGMA journal_mode = DELETE", [], |_| Ok(()))
        .unwrap();
    let mut bytes = fs::read(&path).unwrap();
    damage(&mut bytes);
    fs::write(&path, bytes).unwrap();
    path
}

/// Where the first page of a table begins, and how long it is.
fn page_of(path: &Path, table: &str) -> (usize, usize) {
    let conn = rusqlite::Connection::open(path).unwrap();
    let get = |sql: &str| conn.query_row(sql, [], |r| r.get::<_, i64>(0)).unwrap() as usize;
    let size = get("PRAGMA page_size");
    ((get(&format!("SELECT rootpage FROM sqlite_schema WHERE name = '{table}'")) - 1) * size, size)
}

#[test]
fn a_ledger_whose_requests_can_t_be_read_is_no_empty_ledger() {
    let dir = tempfile::tempdir().unwrap();
    let (from, size) = page_of(&spoilt_night(dir.path(), |_| {}), "requests");
    let dir = tempfile::tempdir().unwrap();
    let path = spoilt_night(dir.path(), |b| b[from..from + size].fill(0xff));
    refused(dir.path(), &path, &["is damaged", "at least", "work on a copy"]);
}

#[test]
fn effects_that_can_t_be_read_are_not_counted_as_none() {
    let dir = tempfile::tempdir().unwrap();
    let (from, size) = page_of(&spoilt_night(dir.path(), |_| {}), "tickets");
    let dir = tempfile::tempdir().unwrap();
    let path = spoilt_night(dir.path(), |b| b[from..from + size].fill(0xff));
    let ledger = path.to_str().unwrap();
    let ran = redial(&["rows", "--ledger", ledger]);
    ran.expect(0, &["damaged", "could not"]);
    let done = ran.stdout.lines().find(|l| l.contains("night-001")).unwrap();
    assert!(done.contains(" –  ") && !done.contains(" 0 "), "{done}");
    let doc = redial(&["rows", "--ledger", ledger, "--json"]).doc();
    assert!(doc["effects"].is_null() && doc["rows"][0]["effects"].is_null(), "{doc:#}");
}

#[test]
fn a_row_that_a_damaged_file_lost_is_not_missing() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("ledger.db");
    let conn = rusqlite::Connection::open(&path).unwrap();
    conn.execute_batch(super::ledger_read::DDL).unwrap();
    for n in 0..200 {
        let id = format!("r-{n:03}");
        conn.execute(
            "INSERT INTO requests VALUES (?1, 'h', 'done', ?2, 'A', 1.0)",
            [&id, &"x".repeat(200)],
        )
        .unwrap();
    }
    let last: i64 = conn.query_row("PRAGMA page_count", [], |r| r.get(0)).unwrap();
    drop(conn);
    let size = 4096;
    let mut bytes = fs::read(&path).unwrap();
    // The leaves of the table hold the long results; the first of them is lost.
    let leaf = (1..last as usize)
        .find(|p| {
            bytes[p * size] == 13 && bytes[p * size..][..size].windows(4).any(|w| w == b"xxxx")
        })
        .unwrap();
    let text = String::from_utf8_lossy(&bytes[leaf * size..][..size]).into_owned();
    let lost = &text[text.find("r-").unwrap()..][..5];
    bytes[leaf * size..][..size].fill(0xff);
    fs::write(&path, bytes).unwrap();
    let ledger = path.to_str().unwrap();
    let ran = redial(&["find", lost, "--ledger", ledger]);
    ran.expect(6, &["the ledger can't be read", "damaged"]);
    assert!(!ran.all().contains("no row") && !ran.all().contains("read it again"), "{}", ran.all());
    let doc = redial(&["find", lost, "--ledger", ledger, "--json"]).doc();
    assert_eq!(doc["error"]["exit_status"], 6, "{doc:#}");
    redial(&["rows", "--ledger", ledger]).expect(0, &["at least", "could not"]);
}

/// Commands that need an endpoint.
const ENDPOINT: [&[&str]; 4] = [
    &["tools"],
    &["call", "create_ticket"],
    &["reissue", "r-1", "--args", "{}", "--confirm", "r-1"],
    &["find", "r-1"],
];

fn never_ready(endpoint: &[&str], words: &[&str]) {
    for base in ENDPOINT {
        let plain = redial(&both(base, endpoint));
        plain.expect(5, words);
        assert_eq!(plain.stdout, "", "{base:?}");
        let json = redial(&both(&both(base, &["--json"]), endpoint));
        json.expect(5, words);
        let doc = json.doc();
        assert_eq!(doc["error"]["exit_status"], 5, "{base:?}");
        assert!(doc["stderr"].is_array() && doc["noise"].is_array(), "{base:?}");
        if matches!(base[0], "call" | "reissue") {
            assert_eq!((&doc["outcome"], &doc["sent"]), (&"not_sent".into(), &0.into()));
            assert_eq!(doc["why"], doc["error"]["message"]);
        }
    }
}

#[test]
fn no_such_command() {
    never_ready(&["--", "redial-no-such-server"], &["no such command", "redial-no-such-server"]);
}

#[test]
fn a_command_that_dies_at_once_is_told_at_once_with_its_last_words() {
    let began = std::time::Instant::now();
    let script = "echo one >&2; echo 'ModuleNotFoundError: no module mcp' >&2; echo hello; exit 3";
    never_ready(
        &["--", "sh", "-c", script],
        &["exit code 3", "ModuleNotFoundError: no module mcp", "hello"],
    );
    never_ready(&["--", "sh", "-c", "echo boom >&2; kill -9 $$"], &["signal 9", "boom"]);
    // Sixteen runs; a time-out of any of them would show.
    assert!(began.elapsed().as_secs() < 25, "{:?}", began.elapsed());
    let doc = redial(&["tools", "--json", "--", "sh", "-c", script]).doc();
    assert_eq!((&doc["exit"]["code"], &doc["exit"]["signal"]), (&3.into(), &().into()));
    assert_eq!(doc["noise"][0], "hello");
    let doc = redial(&["tools", "--json", "--", "sh", "-c", "kill -9 $$"]).doc();
    assert_eq!((&doc["exit"]["code"], &doc["exit"]["signal"]), (&().into(), &9.into()));
}

#[test]
fn an_http_server_started_as_stdio_names_its_address() {
    let dir = tempfile::tempdir().unwrap();
    let ledger = dir.path().join("ledger.db");
    let server = tickets(ledger.to_str().unwrap());
    let tools = ["tools", "--start-timeout", "2"];
    let ran = redial(&both(&tools, &both(&server, &["--http", "127.0.0.1:0"])));
    ran.expect(5, &["it may speak HTTP", "--http http://127.0.0.1:"]);
}

#[test]
fn a_refused_connection() {
    let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let url = format!("http://127.0.0.1:{port}/mcp");
    never_ready(&["--http", &url], &[&url, "refused"]);
}

#[test]
fn an_unknown_tool_is_never_called() {
    let fake = FakeStdio::new();
    let list = [tool("create_ticket", ""), tool("close_ticket", ""), tool("zap", "")].join(",");
    fake.tools(&format!("[{list}]")).answers("call", "done").answers("look", "{}");
    for (args, words) in [
        (
            &["call", "create_tiket"][..],
            &["no tool", "create_tiket", "did you mean create_ticket", "nothing was sent"][..],
        ),
        (&["call", "ticket"], &["create_ticket", "close_ticket"]),
        (&["call", "reboot"], &["no tool \"reboot\"", "it has", "zap"]),
        (
            &["reissue", "r-1", "--tool", "zapp", "--args", "{}", "--confirm", "r-1"],
            &["did you mean zap?"],
        ),
    ] {
        fake.run(args).expect(2, words);
    }
    assert_eq!(fake.calls(), 0);
    let doc = fake.run(&["call", "create_tiket", "--json"]).doc();
    assert_eq!(
        (&doc["sent"], &doc["outcome"], &doc["tool"]),
        (&0.into(), &"not_sent".into(), &"create_tiket".into())
    );
}

/// Ends with exit 2 and these words before any server is started.
fn never_started(args: &[&str], words: &[&str]) {
    let dir = tempfile::tempdir().unwrap();
    let mark = dir.path().join("started");
    let script = format!("touch '{}'; sleep 60", mark.display());
    let ran = redial(&both(args, &["--", "sh", "-c", &script]));
    ran.expect(2, words);
    assert_eq!(ran.stdout, "", "{args:?}");
    assert!(!mark.exists(), "{args:?}: a server was started");
}

#[test]
fn arguments_that_are_no_object() {
    for bad in ["[1]", "\"x\"", "7", "null"] {
        never_started(
            &["call", "create_ticket", "--args", bad],
            &["not an object", "nothing was sent"],
        );
        never_started(&["reissue", "r-1", "--args", bad], &["not an object", "nothing was sent"]);
    }
    for bad in ["{", "", "{\"a\":1}}", "title=x"] {
        never_started(&["call", "create_ticket", "--args", bad], &["not JSON", "nothing was sent"]);
    }
    never_started(
        &["reissue", "r-1", "--args", "{}", "--args-file", "x"],
        &["cannot be used with"],
    );
}

#[test]
fn a_request_id_of_any_length_but_none() {
    never_started(&["reissue", ""], &["empty"]);
    never_started(&["call", "create_ticket", "--args", r#"{"request_id":""}"#], &["empty"]);
    // How long one may be is the server's rule.
    let dir = tempfile::tempdir().unwrap();
    let path = night(dir.path());
    redial(&["find", &"é".repeat(65), "--ledger", path.to_str().unwrap()]).expect(1, &["no row"]);
}

#[test]
fn arguments_of_another_request_or_from_nowhere() {
    let other = r#"{"request_id":"r-2","title":"x"}"#;
    never_started(
        &["reissue", "r-1", "--args", other, "--confirm", "r-1"],
        &["another request_id than r-1"],
    );
    let dir = tempfile::tempdir().unwrap();
    let file = |name: &str, text: &str| {
        fs::write(dir.path().join(name), text).unwrap();
        dir.path().join(name).to_str().unwrap().to_owned()
    };
    let (other, array) = (file("other.json", other), file("array.json", "[]"));
    never_started(&["reissue", "r-1", "--args-file", &other], &["another request_id than r-1"]);
    never_started(&["reissue", "r-1", "--args-file", &array], &["array.json", "not an object"]);
    never_started(
        &["reissue", "r-1", "--args-file", "/nowhere/args.json"],
        &["/nowhere/args.json can't be read"],
    );
    never_started(
        &["reissue", "r-1", "--args-from", "/nowhere/agent.log"],
        &["/nowhere/agent.log can't be read"],
    );
    let log = file("agent.log", "nothing of that kind\n{\"request_id\":\"r-9\"}\n");
    never_started(
        &["reissue", "r-1", "--args-from", &log, &log],
        &["no arguments with request_id r-1", "agent.log"],
    );
}

#[test]
fn of_several_candidates_only_the_hash_tells_which_is_right() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("ledger.db");
    let ledger = path.to_str().unwrap();
    let right = r#"{"request_id":"r-1","title":"right","body":"b"}"#;
    redial(&both(&["call", "create_ticket", "--args", right], &tickets(ledger))).expect(0, &[]);
    let log = dir.path().join("agent.jsonl");
    let call = |args: &str| format!(r#"{{"name":"mcp__tickets__create_ticket","input":{args}}}"#);
    let wrong = right.replace("right", "wrong");
    fs::write(&log, format!("{}\n{}\n", call(&wrong), call(right))).unwrap();
    let from =
        ["reissue", "r-1", "--args-from", log.to_str().unwrap(), "--confirm", "r-1", "--json"];

    let proven = redial(&both(&both(&from, &["--ledger", ledger]), &tickets(ledger)));
    proven.expect(0, &[]);
    assert_eq!(
        (proven.text(&["replayed"]), proven.text(&["hash_matches"])),
        ("true".into(), "true".into())
    );
    assert_eq!(raw_title(&proven), "right");

    // Without the ledger nothing tells, and nothing is sent.
    let blind = redial(&both(&from, &tickets(ledger)));
    blind.expect(2, &["2 different sets of arguments of r-1", "nothing was sent"]);
    assert_eq!(count_tickets(&path), 1);
    let row = redial(&["find", "r-1", "--ledger", ledger, "--json"]);
    assert_eq!(row.text(&["state"]), "done");
}

fn raw_title(ran: &Ran) -> String {
    redial::json::raw::get_str(&ran.get(&["args"]), "title").unwrap()
}

#[test]
fn headers_and_urls_that_are_none() {
    let url = ["tools", "--http", "http://127.0.0.1:9/mcp"];
    for bad in ["secret-without-colon", ": secret", "Bad Name: secret", "X: secret\u{7}"] {
        let ran = redial(&both(&url, &["--header", bad]));
        ran.expect(2, &["--header", "Name: value"]);
        assert!(!ran.all().contains("secret"), "{}", ran.all());
    }
    for bad in ["localhost:8000", "ftp://x/", "http://", "/mcp"] {
        redial(&["tools", "--http", bad]).expect(2, &["is no URL"]);
    }
    redial(&["tools"]).expect(2, &["no endpoint was named", "--http URL"]);
    redial(&["find", "r-1"]).expect(2, &["needs somebody to ask"]);
    redial(&["rows"]).expect(2, &["--ledger FILE"]);
    redial(&["tools", "--http", "http://x/", "--", "y"]).expect(2, &["cannot be used with"]);
    redial(&["frobnicate"]).expect(2, &["unrecognized subcommand"]);
    redial(&["rows", "--ledger", "x", "--stale-seconds", "soon"])
        .expect(2, &["a number of seconds"]);
}

#[test]
fn arguments_that_are_no_utf8_and_files_named_so() {
    use std::os::unix::ffi::OsStrExt;
    let odd = std::ffi::OsStr::from_bytes(b"r-\xff");
    let ran = Ran::from(command(&["find"]).arg(odd).args(["--ledger", "x"]).output().unwrap());
    ran.expect(2, &["UTF-8"]);
    let dir = tempfile::tempdir().unwrap();
    let path = night(dir.path());
    let named = dir.path().join(std::ffi::OsStr::from_bytes(b"led\xffger.db"));
    fs::rename(dir.path().join("ledger.db-wal"), {
        let mut wal = named.clone().into_os_string();
        wal.push("-wal");
        wal
    })
    .unwrap();
    fs::rename(path, &named).unwrap();
    let ran = Ran::from(command(&["rows", "--ledger"]).arg(&named).output().unwrap());
    ran.expect(0, &["7 requests"]);
}

#[test]
fn arguments_of_ten_megabytes_from_a_file() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("ledger.db");
    let ledger = path.to_str().unwrap();
    let file = dir.path().join("args.json");
    let body = "x".repeat(10 << 20);
    fs::write(&file, format!(r#"{{"title":"large","body":"{body}"}}"#)).unwrap();
    let base = ["reissue", "r-1", "--ledger", ledger, "--args-file", file.to_str().unwrap()];
    // No row yet and no call known: the gate asks for a preview; the answer is a flag here.
    redial(&both(&["tools"], &tickets(ledger))).expect(0, &[]);
    let ran = redial(&both(&both(&base, &["--confirm", "r-1"]), &tickets(ledger)));
    ran.expect(0, &["of this request 0 → 1 ticket"]);
    assert!(ran.all().len() < 100_000, "a dump of {} bytes", ran.all().len());
    let found = redial(&["find", "r-1", "--ledger", ledger]);
    found.expect(0, &["done"]);
}

#[test]
fn a_pipe_that_nobody_fills_a_device_and_a_folder_are_refused_at_once_where_a_file_is_meant() {
    let dir = tempfile::tempdir().unwrap();
    let path = |name: &str| dir.path().join(name).to_str().unwrap().to_owned();
    let (pipe, ledger) = (path("pipe"), path("ledger.db"));
    assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    for (named, what) in [(pipe.as_str(), "pipe"), ("/dev/zero", "device")] {
        let server = tickets(&ledger);
        let with_server = |args: &[&str]| redial(&both(args, &server));
        for (exit, ran) in [
            (6, redial(&["serve", "tickets", "--ledger", named])),
            (6, redial(&["serve", "charge", "--effects", named])),
            (6, redial(&["find", "a", "--ledger", named])),
            (6, redial(&["show", named])),
            (6, redial(&["audit", named])),
            (6, redial(&["mock", named])),
            (2, redial(&["find", "--id-file", named, "--ledger", &ledger])),
            (2, redial(&["killtest", "--keep", named])),
            (2, redial(&["lab", "run", "all", "--keep", named])),
            (2, with_server(&["call", "create_ticket", "--args-file", named])),
            (2, with_server(&["reissue", "a", "--ledger", &ledger, "--args-from", named])),
            (2, with_server(&["batch", named])),
        ] {
            let is = format!("is a {what}");
            assert!(ran.exit == exit && ran.stderr.contains(&is), "{exit} {is}: {}", ran.all());
        }
    }
    // What lies beside a ledger is opened by SQLite, which would wait, too.
    rusqlite::Connection::open(&ledger).unwrap().execute_batch("CREATE TABLE t(a)").unwrap();
    std::fs::rename(&pipe, path("ledger.db-wal")).unwrap();
    let ran = redial(&["rows", "--ledger", &ledger]);
    assert!(ran.exit == 6 && ran.stderr.contains("-wal: it is a pipe"), "{}", ran.all());
}
