//! The article's own `ledger.py` and `server.py` (cut out of its text by `.ci/run`, never committed) on the
//! real Python SDK over Streamable HTTP, and the same file under `redial serve tickets`.

use crate::support::cli::{redial, redial_soon};
use crate::support::until;
use redial::json::raw;
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

/// The article's server as a process of its own; ended by pid when dropped.
struct Article {
    child: Child,
    url: String,
}

impl Article {
    fn start(ledger: &Path, work_s: &str) -> Article {
        let python = std::env::var("REDIAL_INTEROP_PYTHON").expect("set by .ci/run");
        let folder =
            PathBuf::from(std::env::var("REDIAL_INTEROP_ARTICLE").expect("set by .ci/run"));
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let child = Command::new(python)
            .arg("server.py")
            .current_dir(folder)
            .env("PORT", port.to_string())
            .env("LEDGER_DB", ledger)
            .env("WORK_SECONDS", work_s)
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        until("the article's server listens", || TcpStream::connect(("127.0.0.1", port)).ok());
        Article { child, url: format!("http://127.0.0.1:{port}/mcp") }
    }

    /// SIGKILL.
    fn kill(mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }
}

impl Drop for Article {
    fn drop(&mut self) {
        self.child.kill().ok();
        self.child.wait().ok();
    }
}

fn tickets(ledger: &Path) -> usize {
    let db = rusqlite::Connection::open(ledger).unwrap();
    db.query_row("SELECT count(*) FROM tickets", [], |r| r.get::<_, i64>(0)).unwrap() as usize
}

/// Waits until the ledger has claimed `id`.
fn claimed(ledger: &str, id: &str) {
    until("the claim", || {
        let rows = redial(&["rows", "--ledger", ledger, "--json"]);
        (rows.exit == 0 && rows.stdout.contains(id)).then_some(())
    });
}

const ARGS: &str = r#"{"request_id":"r-1","title":"障害報告","body":"ログイン不可"}"#;

#[test]
#[ignore = "needs the Python SDK and the article: run by .ci/run"]
fn killed_in_mid_call_found_abandoned_and_finished_once() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("ledger.db");
    let ledger = path.to_str().unwrap();
    let server = Article::start(&path, "30");
    let url = server.url.clone();
    let call = redial_soon(&["call", "create_ticket", "--args", ARGS, "--json", "--http", &url]);
    claimed(ledger, "r-1");
    server.kill();
    let call = call.join().unwrap();
    assert_eq!((call.exit, call.text(&["outcome"]).as_str()), (4, "unknown"), "{}", call.all());
    assert_eq!(call.get(&["sent"]), "1");

    let server = Article::start(&path, "0");
    let find = redial(&["find", "r-1", "--ledger", ledger, "--json", "--http", &server.url]);
    assert_eq!(find.exit, 0, "{}", find.all());
    assert_eq!(find.text(&["state"]), "abandoned");
    assert_eq!(raw::get_str(&find.get(&["server"]), "status").as_deref(), Some("abandoned"));
    assert_eq!(find.text(&["pairing"]), "consistent");

    let base =
        ["reissue", "r-1", "--ledger", ledger, "--args", ARGS, "--json", "--http", &server.url];
    let stopped = redial(&base);
    assert_eq!((stopped.exit, stopped.get(&["sent"]).as_str()), (3, "0"), "{}", stopped.all());
    assert_eq!(tickets(&path), 0);

    let confirmed: Vec<&str> = base.iter().copied().chain(["--confirm", "r-1"]).collect();
    let first = redial(&confirmed);
    assert_eq!(first.exit, 0, "{}", first.all());
    let of = |r: &crate::support::cli::Ran, k: &str| r.text(&[k]);
    assert_eq!((of(&first, "outcome"), of(&first, "answer_status")), ("ok".into(), "done".into()));
    assert_eq!(
        (of(&first, "replayed"), of(&first, "hash_matches")),
        ("false".into(), "true".into())
    );
    assert_eq!(
        (of(&first, "effects_before"), of(&first, "effects_after")),
        ("0".into(), "1".into())
    );
    assert_eq!(
        (of(&first, "state_after"), of(&first, "pairing")),
        ("done".into(), "proven".into())
    );

    let second = redial(&confirmed);
    assert_eq!((second.exit, of(&second, "replayed")), (0, "true".into()), "{}", second.all());
    assert_eq!(
        (of(&second, "effects_total_before"), of(&second, "effects_total_after")),
        ("1".into(), "1".into())
    );
    assert_eq!(tickets(&path), 1);
}

#[test]
#[ignore = "needs the Python SDK and the article: run by .ci/run"]
fn either_server_finishes_what_the_other_claimed() {
    let exe = env!("CARGO_BIN_EXE_redial");
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("ledger.db");
    let ledger = path.to_str().unwrap();

    // Python claims and dies; ours finishes; Python replays.
    let server = Article::start(&path, "30");
    let url = server.url.clone();
    let call = redial_soon(&["call", "create_ticket", "--args", ARGS, "--json", "--http", &url]);
    claimed(ledger, "r-1");
    server.kill();
    assert_eq!(call.join().unwrap().exit, 4);
    let ours = redial(&[
        "reissue",
        "r-1",
        "--ledger",
        ledger,
        "--args",
        ARGS,
        "--json",
        "--confirm",
        "r-1",
        "--",
        exe,
        "serve",
        "tickets",
        "--ledger",
        ledger,
    ]);
    assert_eq!((ours.exit, ours.text(&["replayed"])), (0, "false".into()), "{}", ours.all());
    let server = Article::start(&path, "0");
    let python = redial(&[
        "reissue",
        "r-1",
        "--ledger",
        ledger,
        "--args",
        ARGS,
        "--json",
        "--confirm",
        "r-1",
        "--http",
        &server.url,
    ]);
    assert_eq!((python.exit, python.text(&["replayed"])), (0, "true".into()), "{}", python.all());
    assert_eq!(tickets(&path), 1);

    // Ours claims and dies; Python finishes.
    let other = ARGS.replace("r-1", "r-2");
    let mut child = Command::new(exe)
        .args([
            "serve",
            "tickets",
            "--ledger",
            ledger,
            "--work-seconds",
            "30",
            "--http",
            "127.0.0.1:0",
        ])
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = std::io::BufRead::lines(std::io::BufReader::new(child.stderr.take().unwrap()));
    let url = lines
        .by_ref()
        .map_while(Result::ok)
        .find_map(|l| l.strip_prefix("listening on ").map(str::to_owned))
        .unwrap();
    let call = redial_soon(&["call", "create_ticket", "--args", &other, "--json", "--http", &url]);
    claimed(ledger, "r-2");
    child.kill().unwrap();
    child.wait().unwrap();
    assert_eq!(call.join().unwrap().exit, 4);
    let python = redial(&[
        "reissue",
        "r-2",
        "--ledger",
        ledger,
        "--args",
        &other,
        "--json",
        "--confirm",
        "r-2",
        "--http",
        &server.url,
    ]);
    assert_eq!((python.exit, python.text(&["replayed"])), (0, "false".into()), "{}", python.all());
    assert_eq!(tickets(&path), 2);
}
