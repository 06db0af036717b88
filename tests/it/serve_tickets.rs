//! `serve tickets` as a process: the reference article's situations over both transports, with real kills.

use crate::support::cli::program;
use crate::support::served::{BOTH, Served, Transport, request};
use crate::support::until;
use redial::json::raw;
use std::io::Write;
use std::path::{Path, PathBuf};

const ARGS: &str = r#"{"request_id":"req-1","title":"障害報告","body":"ログイン不可"}"#;

struct Ledger {
    _dir: tempfile::TempDir,
    path: PathBuf,
}

impl Ledger {
    fn new() -> Ledger {
        let dir = tempfile::tempdir().unwrap();
        Ledger { path: dir.path().join("ledger.db"), _dir: dir }
    }

    fn serve(&self, transport: Transport, more: &[&str]) -> Served {
        let path = self.path.to_str().unwrap();
        Served::start(transport, &[&["tickets", "--ledger", path], more].concat())
    }

    fn tickets(&self) -> i64 {
        sql(&self.path, "SELECT count(*) FROM tickets").unwrap().parse().unwrap()
    }

    /// `status` of a row, if it is there.
    fn status(&self, request_id: &str) -> Option<String> {
        sql(&self.path, &format!("SELECT status FROM requests WHERE request_id = '{request_id}'"))
    }

    fn await_running(&self, request_id: &str) {
        until("the row is running", || self.status(request_id).filter(|s| s == "running"));
    }
}

/// The first column of the first row as text.
fn sql(path: &Path, query: &str) -> Option<String> {
    use rusqlite::{Connection, OptionalExtension};
    let conn = Connection::open(path).unwrap();
    conn.busy_timeout(std::time::Duration::from_secs(10)).unwrap();
    conn.query_row(query, [], |r| r.get::<_, rusqlite::types::Value>(0)).optional().unwrap().map(
        |v| match v {
            rusqlite::types::Value::Integer(i) => i.to_string(),
            rusqlite::types::Value::Text(t) => t,
            other => format!("{other:?}"),
        },
    )
}

/// For what takes seconds: both transports at once.
fn on_both(test: impl Fn(Transport) + Sync) {
    std::thread::scope(|scope| {
        for transport in BOTH {
            let test = &test;
            scope.spawn(move || test(transport));
        }
    });
}

/// A member of the structured content, which the text content must repeat.
fn field(result: &str, key: &str) -> String {
    assert_eq!(raw::get(result, "isError"), Some("false"), "{result}");
    let structured = raw::get(result, "structuredContent").unwrap();
    let content = raw::items(raw::get(result, "content").unwrap()).unwrap();
    assert_eq!(raw::get_str(content[0], "text").as_deref(), Some(structured));
    let value = raw::get(structured, key).unwrap_or_else(|| panic!("no {key}: {structured}"));
    raw::as_str(value).unwrap_or_else(|| value.to_owned())
}

fn error_text(result: &str) -> String {
    assert_eq!(raw::get(result, "isError"), Some("true"), "{result}");
    raw::get_str(raw::items(raw::get(result, "content").unwrap()).unwrap()[0], "text").unwrap()
}

fn find(server: &Served, request_id: &str) -> String {
    field(&server.call("find_request", &format!(r#"{{"request_id":"{request_id}"}}"#)), "status")
}

#[test]
fn an_answer_that_got_lost_is_replayed_and_other_arguments_are_refused() {
    for transport in BOTH {
        let ledger = Ledger::new();
        let server = ledger.serve(transport, &[]);
        let first = server.call("create_ticket", ARGS);
        let again = server.call("create_ticket", ARGS);
        assert_eq!(
            (field(&first, "replayed"), field(&again, "replayed")),
            ("false".into(), "true".into())
        );
        assert_eq!(field(&first, "ticket_id"), field(&again, "ticket_id"));
        assert_eq!(field(&first, "title"), "障害報告");
        let id = field(&first, "ticket_id");
        assert!(
            id.len() == 10
                && id.starts_with("T-")
                && id[2..].chars().all(|c| c.is_ascii_hexdigit()),
            "{id}"
        );
        assert_eq!(ledger.tickets(), 1);

        let other = server
            .call("create_ticket", r#"{"request_id":"req-1","title":"別件","body":"別の本文"}"#);
        assert!(
            error_text(&other).contains("request_id req-1 was already used with other arguments")
        );
        assert_eq!(ledger.tickets(), 1);
        assert_eq!(
            (find(&server, "req-1"), find(&server, "req-404")),
            ("done".into(), "unknown".into())
        );
        // The hash is Python's: sha256 of {"body": "ログイン不可", "title": "障害報告"}.
        assert_eq!(
            sql(&ledger.path, "SELECT args_hash FROM requests").as_deref(),
            Some("8d8e68f2a12b9561ac972825dd64440466c9b33603b341137342b9254f15deb1")
        );
        assert_eq!(sql(&ledger.path, "SELECT owner FROM requests"), Some(server.boot_id()));
    }
}

#[test]
fn a_repeat_that_arrives_during_the_work_waits_for_it() {
    on_both(|transport| {
        let ledger = Ledger::new();
        let server = ledger.serve(transport, &["--work-seconds", "2"]);
        let first = server.begin_call("create_ticket", ARGS);
        ledger.await_running("req-1");
        assert_eq!(find(&server, "req-1"), "running");
        let second = server.call("create_ticket", ARGS);
        let first = first.answer().unwrap();
        let first = raw::get(&first, "result").unwrap();
        assert_eq!(
            (field(first, "replayed"), field(&second, "replayed")),
            ("false".into(), "true".into())
        );
        assert_eq!(field(first, "ticket_id"), field(&second, "ticket_id"));
        assert_eq!(ledger.tickets(), 1);
    });
}

#[test]
fn killed_in_the_work_it_is_abandoned_and_a_repeat_finishes_it_once() {
    for transport in BOTH {
        let ledger = Ledger::new();
        let server = ledger.serve(transport, &["--work-seconds", "600"]);
        let old = server.boot_id();
        let lost = server.begin_call("create_ticket", ARGS);
        ledger.await_running("req-1");
        server.kill();
        assert_eq!(lost.answer(), None);
        assert_eq!((ledger.status("req-1").as_deref(), ledger.tickets()), (Some("running"), 0));

        let server = ledger.serve(transport, &[]);
        assert_ne!(server.boot_id(), old);
        assert_eq!(find(&server, "req-1"), "abandoned");
        assert_eq!(field(&server.call("create_ticket", ARGS), "replayed"), "false");
        assert_eq!(field(&server.call("create_ticket", ARGS), "replayed"), "true");
        assert_eq!((find(&server, "req-1").as_str(), ledger.tickets()), ("done", 1));
    }
}

#[test]
fn a_wait_that_ends_first_says_in_progress() {
    for transport in BOTH {
        let ledger = Ledger::new();
        let server = ledger.serve(transport, &["--work-seconds", "600", "--wait-seconds", "0.3"]);
        let _first = server.begin_call("create_ticket", ARGS);
        ledger.await_running("req-1");
        let second = server.call("create_ticket", ARGS);
        assert_eq!(
            (field(&second, "request_id"), field(&second, "status")),
            ("req-1".into(), "in_progress".into())
        );
        assert!(field(&second, "next").contains("find_request"));
        drop(server); // killed: the first call of HTTP ends too
    }
}

#[test]
fn failed_work_releases_its_claim() {
    let ledger = Ledger::new();
    let server = ledger.serve(Transport::Stdio, &["--fail-title", "障害報告"]);
    assert!(error_text(&server.call("create_ticket", ARGS)).contains("the work failed"));
    assert_eq!((ledger.status("req-1"), ledger.tickets()), (None, 0));
    assert_eq!(find(&server, "req-1"), "unknown");
    let fixed = ARGS.replace("障害報告", "x");
    assert_eq!(field(&server.call("create_ticket", &fixed), "replayed"), "false");
    assert_eq!(ledger.tickets(), 1);
}

#[test]
fn request_ids_are_counted_in_code_points_and_arguments_checked() {
    let ledger = Ledger::new();
    let server = ledger.serve(Transport::Stdio, &[]);
    let create = |id: &str| {
        server.call("create_ticket", &format!(r#"{{"request_id":"{id}","title":"t","body":"b"}}"#))
    };
    assert_eq!(field(&create(&"🎉".repeat(64)), "replayed"), "false");
    for id in ["🎉".repeat(65), "x".repeat(65), String::new()] {
        assert!(error_text(&create(&id)).contains("1 to 64 characters"));
    }
    let wrong = error_text(&server.call("create_ticket", r#"{"request_id":5,"title":"t"}"#));
    assert!(
        wrong.contains("request_id must be a string") && wrong.contains("body is required"),
        "{wrong}"
    );
    // What the schema doesn't know is dropped before the hash, as FastMCP does.
    let known = r#"{"request_id":"r","title":"t","body":"b"}"#;
    server.call("create_ticket", known);
    assert_eq!(
        field(&server.call("create_ticket", &known.replace("}", r#","extra":1}"#)), "replayed"),
        "true"
    );
    assert_eq!(ledger.tickets(), 2);
}

#[test]
fn a_cancelled_call_is_not_answered_but_its_work_is_done() {
    on_both(|transport| {
        let ledger = Ledger::new();
        let server = ledger.serve(transport, &["--work-seconds", "2"]);
        let params = format!(r#"{{"name":"create_ticket","arguments":{ARGS}}}"#);
        let (id, sent) = server.begin("tools/call", &params);
        ledger.await_running("req-1");
        server.notify(&format!(
            r#"{{"jsonrpc":"2.0","method":"notifications/cancelled","params":{{"requestId":{id}}}}}"#
        ));
        until("the work is done all the same", || ledger.status("req-1").filter(|s| s == "done"));
        assert_eq!(field(&server.call("create_ticket", ARGS), "replayed"), "true");
        match transport {
            Transport::Http => assert_eq!(sent.answer(), None),
            Transport::Stdio => {
                let mut server = server;
                server.close_stdin();
                assert!(server.wait().success());
                assert_eq!(sent.answer(), None);
            }
        }
    });
}

#[test]
fn a_client_that_goes_away_does_not_stop_the_work() {
    const MODERN: &str =
        "MCP-Protocol-Version: 2026-07-28\r\nMcp-Method: tools/call\r\nMcp-Name: create_ticket\r\n";
    const META: &str = r#","_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}"#;
    let ledger = Ledger::new();
    let server = ledger.serve(Transport::Http, &["--work-seconds", "1"]);
    let legacy = format!("Mcp-Session-Id: {}\r\n", server.session());
    for (request_id, headers, meta) in [("legacy", legacy.as_str(), ""), ("modern", MODERN, META)] {
        let params = format!(
            r#"{{"name":"create_ticket","arguments":{{"request_id":"{request_id}","title":"t","body":"b"}}{meta}}}"#
        );
        let body = request(1, "tools/call", &params);
        let mut stream = std::net::TcpStream::connect(server.address()).unwrap();
        write!(
            stream,
            "POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n{headers}Content-Length: {}\r\n\r\n{body}",
            body.len()
        )
        .unwrap();
        ledger.await_running(request_id);
        drop(stream);
        until("it is done all the same", || ledger.status(request_id).filter(|s| s == "done"));
    }
    assert_eq!(ledger.tickets(), 2);
}

#[test]
fn the_end_does_not_wait_for_work_but_for_answers_that_are_ready() {
    let ledger = Ledger::new();
    let mut server = ledger.serve(Transport::Stdio, &["--work-seconds", "600"]);
    let lost = server.begin_call("create_ticket", ARGS);
    ledger.await_running("req-1");
    let listed = server.begin("tools/list", "{}").1;
    server.close_stdin();
    assert_eq!(server.wait().code(), Some(0));
    assert!(listed.answer().is_some());
    assert_eq!(lost.answer(), None);
    assert_eq!((ledger.status("req-1").as_deref(), ledger.tickets()), (Some("running"), 0));
}

#[test]
fn sigterm_ends_both_transports_well() {
    for transport in BOTH {
        let ledger = Ledger::new();
        let mut server = ledger.serve(transport, &["--work-seconds", "600"]);
        let lost = server.begin_call("create_ticket", ARGS);
        ledger.await_running("req-1");
        let pid = rustix::process::Pid::from_raw(server.pid() as i32).unwrap();
        rustix::process::kill_process(pid, rustix::process::Signal::TERM).unwrap();
        assert_eq!(server.wait().code(), Some(0));
        drop(lost);
        assert_eq!((ledger.status("req-1").as_deref(), ledger.tickets()), (Some("running"), 0));
    }
}

#[test]
fn a_ledger_that_cannot_be_one_ends_the_server_with_words() {
    let dir = tempfile::tempdir().unwrap();
    let text = dir.path().join("text");
    std::fs::write(
        &text,
        "not a database, but long enough to have a header of some sort".repeat(20),
    )
    .unwrap();
    for path in [text, dir.path().join("none/ledger.db"), dir.path().to_owned()] {
        let out = program().args(["serve", "tickets", "--ledger"]).arg(&path).output().unwrap();
        assert_eq!((out.status.code(), out.stdout.len()), (Some(6), 0));
        assert!(String::from_utf8(out.stderr).unwrap().contains("can't be used"));
    }
}

#[test]
fn a_server_that_is_merely_started_changes_nothing_in_the_file() {
    let dir = tempfile::tempdir().unwrap();
    let foreign = dir.path().join("foreign.db");
    rusqlite::Connection::open(&foreign).unwrap().execute_batch("CREATE TABLE other(x)").unwrap();
    let before = std::fs::read(&foreign).unwrap();
    let new = dir.path().join("new.db");
    for path in [&foreign, &new] {
        let ran =
            crate::support::cli::redial(&["serve", "tickets", "--ledger", path.to_str().unwrap()]);
        assert_eq!(ran.exit, 0, "{}", ran.all());
    }
    assert_eq!(std::fs::read(&foreign).unwrap(), before);
    // A new one can be attached to at once.
    assert_eq!(sql(&new, "SELECT count(*) FROM requests").as_deref(), Some("0"));
    let text = dir.path().join("notes.txt");
    std::fs::write(&text, "some text that is longer than a header").unwrap();
    let gone = dir.path().join("no/such/folder.db");
    for path in [&text, &gone] {
        let ran =
            crate::support::cli::redial(&["serve", "tickets", "--ledger", path.to_str().unwrap()]);
        assert_eq!(ran.exit, 6, "{}", ran.all());
    }
}
