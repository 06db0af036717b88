//! The kill test: exact points, the opposite, void trials, other servers; and nothing left behind.

use crate::support::cli::{Ran, redial};
use crate::support::until;
use redial::json::raw;
use std::net::TcpListener;
use std::path::Path;

const EXE: &str = env!("CARGO_BIN_EXE_redial");

fn killtest(more: &[&str]) -> Ran {
    // On a busy machine any trial may be void, and what is kept of it stays nowhere.
    let kept = tempfile::tempdir().unwrap();
    let mut args = vec!["killtest", "--json"];
    // Nothing comes late here but where a test says so.
    if !more.contains(&"--settle") {
        args.extend(["--settle", "0.1"]);
    }
    if !more.contains(&"--keep") {
        args.extend(["--keep", kept.path().to_str().unwrap()]);
    }
    args.extend(more);
    redial(&args)
}

fn number(r: &Ran, key: &str) -> u64 {
    r.get(&[key]).parse().unwrap_or_else(|_| panic!("{key}: {}", r.all()))
}

fn numbers(r: &Ran) -> [u64; 5] {
    ["trials", "void", "exactly_once", "duplicates", "lost"].map(|k| number(r, k))
}

/// Waits until no process has `needle` in its command line.
fn nothing_left(needle: &str) {
    until(&format!("no process of {needle}"), || {
        let of = |e: std::fs::DirEntry| std::fs::read(e.path().join("cmdline")).ok();
        let mut lines = std::fs::read_dir("/proc").unwrap().flatten().filter_map(of);
        let found = lines.any(|l| String::from_utf8_lossy(&l).contains(needle));
        (!found).then_some(())
    });
}

#[test]
fn each_point_ends_with_one_effect_and_says_what_the_server_found() {
    for (at, found) in [
        ("before-claim", "unknown"),
        ("during-work", "abandoned"),
        ("before-commit", "abandoned"),
        ("after-commit", "done"),
    ] {
        let dir = tempfile::tempdir().unwrap();
        let ledger = dir.path().join("ledger.db");
        let ledger = ledger.to_str().unwrap();
        let r = killtest(&["--trials", "6", "--at", at, "--ledger", ledger]);
        assert_eq!((r.exit, numbers(&r)), (0, [6, 0, 6, 0, 0]), "{at}: {}", r.all());
        assert_eq!((r.text(&["at"]), r.text(&["tool"])), (at.into(), "create_ticket".into()));
        let point = raw::items(&r.get(&["points"])).unwrap()[0].to_owned();
        assert_eq!(raw::get_path(&point, &["found", found]), Some("6"), "{point}");
        let verify = redial(&["verify", "--ledger", ledger, "--expect-total", "6", "--strict"]);
        assert_eq!(verify.exit, 0, "{}", verify.all());
        nothing_left(ledger);
    }
}

#[test]
fn what_comes_after_the_last_trial_is_counted_and_what_no_trial_explains_is_no_proof() {
    let late = "INSERT INTO tickets SELECT 'T-late', request_id, title, body FROM tickets LIMIT 1";
    let nameless = "INSERT INTO tickets VALUES ('T-none', NULL, 'x', 'y')";
    let strange = "INSERT INTO tickets VALUES ('T-other', 'of somebody else', 'x', 'y')";
    for (sql, want) in
        [(late, [3, 0, 2, 1, 0]), (nameless, [3, 0, 3, 0, 0]), (strange, [3, 0, 3, 0, 0])]
    {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("ledger.db");
        let ddl =
            crate::ledger_read::DDL.replace("request_id TEXT NOT NULL UNIQUE", "request_id TEXT");
        let db = rusqlite::Connection::open(&path).unwrap();
        db.busy_timeout(std::time::Duration::from_secs(10)).unwrap();
        db.execute_batch(&format!("PRAGMA journal_mode=WAL; {ddl}")).unwrap();
        let ledger = path.to_str().unwrap().to_owned();
        let test = std::thread::spawn(move || {
            killtest(&[
                "--trials",
                "3",
                "--at",
                "after-commit",
                "--settle",
                "3",
                "--ledger",
                &ledger,
            ])
        });
        let done =
            "SELECT count(*) FROM tickets JOIN requests USING (request_id) WHERE status = 'done'";
        until("all trials", || {
            let n: i64 = db.query_row(done, [], |r| r.get(0)).unwrap();
            (n == 3).then_some(())
        });
        db.execute_batch(sql).unwrap();
        let r = test.join().unwrap();
        assert_eq!((r.exit, numbers(&r)), (1, want), "{sql}: {}", r.all());
        assert_eq!(r.get(&["proves"]), "false", "{}", r.all());
        assert_eq!(number(&r, "nameless"), u64::from(sql == nameless), "{}", r.all());
        assert_eq!(number(&r, "strange"), u64::from(sql == strange), "{}", r.all());
    }
}

#[test]
fn the_same_seed_kills_at_the_same_points() {
    let points = |seed: &str| killtest(&["--trials", "8", "--seed", seed]).get(&["points"]);
    assert_eq!(points("7"), points("7"));
}

#[test]
fn charge_shows_the_opposite_and_keeps_a_recording_of_each() {
    let dir = tempfile::tempdir().unwrap();
    let keep = dir.path().join("kept");
    let keep = keep.to_str().unwrap();
    let r =
        killtest(&["--trials", "4", "--tool", "charge", "--at", "after-commit", "--keep", keep]);
    assert_eq!((r.exit, numbers(&r)), (1, [4, 0, 0, 4, 0]), "{}", r.all());
    for f in raw::items(&r.get(&["failures"])).unwrap() {
        assert_eq!(raw::get(f, "effects"), Some("2"));
        let recording = raw::get_str(f, "recording").unwrap();
        let text = std::fs::read_to_string(&recording).unwrap();
        let kinds: Vec<_> = text.lines().filter_map(|l| raw::get_str(l, "kind")).collect();
        assert!(text.lines().all(|l| raw::members(l).is_some()));
        assert_eq!(kinds.iter().filter(|k| *k == "opened").count(), 2, "both lives are in it");
        assert!(text.contains("\"signal\":9") && text.contains("tools/call"));
        let show = redial(&["show", &recording, "--json"]);
        assert_eq!(show.exit, 0, "it opens as any recording: {}", show.all());
    }
    let r = killtest(&["--trials", "3", "--tool", "charge", "--at", "before-claim"]);
    assert_eq!((r.exit, numbers(&r)), (0, [3, 0, 3, 0, 0]), "nothing was done before the kill");
}

fn served(ledger: &Path, http: Option<u16>) -> String {
    let http = http.map_or(String::new(), |p| format!(" --http 127.0.0.1:{p}"));
    format!("{EXE} serve tickets --ledger {} --work-seconds 0.3{http}", ledger.display())
}

fn free_port() -> u16 {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}

#[test]
fn another_server_is_killed_at_random_moments_on_stdio_and_over_http() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("ledger.db");
    let ledger = path.to_str().unwrap();
    let mut args = vec!["--trials", "3", "--seed", "2", "--ledger", ledger, "--"];
    let command = served(&path, None);
    args.extend(command.split(' '));
    let r = killtest(&args);
    assert_eq!(r.exit, 0, "{}", r.all());
    assert_eq!((number(&r, "exactly_once") + number(&r, "void"), number(&r, "trials")), (3, 3));

    let port = free_port();
    let (url, start) = (format!("http://127.0.0.1:{port}/mcp"), served(&path, Some(port)));
    let r = killtest(&["--trials", "2", "--ledger", ledger, "--http", &url, "--start", &start]);
    assert_eq!(r.exit, 0, "{}", r.all());
    assert_eq!(number(&r, "exactly_once") + number(&r, "void"), 2);
    let verify = redial(&["verify", "--ledger", ledger]);
    assert!(verify.stdout.contains("exactly once"), "{}", verify.all());
    nothing_left(ledger);
}

#[test]
fn a_launcher_that_is_killed_in_the_servers_place_proves_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("ledger.db");
    let ledger = path.to_str().unwrap();
    // The shell starts the server as its child and is what dies.
    let script = format!("{}; true", served(&path, None));
    let r = killtest(&["--trials", "2", "--ledger", ledger, "--", "sh", "-c", &script]);
    assert_eq!((r.exit, numbers(&r)), (1, [2, 2, 0, 0, 0]), "{}", r.all());
    assert!(r.get(&["voids"]).contains("launcher"), "{}", r.all());
    nothing_left(ledger);

    let port = free_port();
    let url = format!("http://127.0.0.1:{port}/mcp");
    let start = format!("sh -c '{}; true'", served(&path, Some(port)));
    let r = killtest(&["--trials", "2", "--ledger", ledger, "--http", &url, "--start", &start]);
    assert_eq!((r.exit, numbers(&r)), (1, [2, 2, 0, 0, 0]), "{}", r.all());
    nothing_left(ledger);
}

#[test]
fn a_call_that_works_twice_undisturbed_is_the_finding_and_no_wrong_use() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("ledger.db");
    let ddl = crate::ledger_read::DDL.replace("request_id TEXT NOT NULL UNIQUE", "request_id TEXT");
    let db = rusqlite::Connection::open(&path).unwrap();
    db.execute_batch(&format!(
        "{ddl}; CREATE TRIGGER twice AFTER INSERT ON tickets WHEN NEW.ticket_id NOT LIKE 'X%' BEGIN \
         INSERT INTO tickets SELECT 'X' || NEW.ticket_id, NEW.request_id, NEW.title, NEW.body; END"
    ))
    .unwrap();
    drop(db);
    let command = served(&path, None);
    let words: Vec<&str> = command.split(' ').collect();
    let ledger = path.to_str().unwrap();
    let r = killtest(&[&["--trials", "1", "--ledger", ledger, "--"][..], &words].concat());
    assert_eq!(r.exit, 1, "{}", r.all());
    assert!(r.stderr.contains("NOT exactly once") && r.stderr.contains("2 effects"), "{}", r.all());
    nothing_left(ledger);
}

#[test]
fn a_stranger_on_the_port_is_not_called_and_a_foreign_ledger_is_not_counted_in() {
    let dir = tempfile::tempdir().unwrap();
    let (theirs, ours) = (dir.path().join("theirs.db"), dir.path().join("ours.db"));
    let port = free_port();
    let url = format!("http://127.0.0.1:{port}/mcp");
    let theirs_on = served(&theirs, Some(port));
    let words: Vec<&str> = theirs_on.split(' ').skip(1).collect();
    let mut stranger = crate::support::cli::command(&words).spawn().unwrap();
    until("the stranger listens", || std::net::TcpStream::connect(("127.0.0.1", port)).ok());
    let start = served(&ours, Some(port));
    let ledger = ours.to_str().unwrap();
    let r = killtest(&["--trials", "1", "--ledger", ledger, "--http", &url, "--start", &start]);
    stranger.kill().unwrap();
    stranger.wait().unwrap();
    assert_eq!(r.exit, 5, "{}", r.all());
    assert!(r.stderr.contains("something listens"), "{}", r.stderr);
    let rows = redial(&["rows", "--ledger", theirs.to_str().unwrap(), "--json"]);
    assert_eq!(rows.get(&["rows"]), "[]", "a call reached the stranger: {}", rows.all());

    // Another file than the server's: no number that is counted there would say anything.
    rusqlite::Connection::open(&ours).unwrap().execute_batch(crate::ledger_read::DDL).unwrap();
    let command = served(&theirs, None);
    let words: Vec<&str> = command.split(' ').collect();
    let args = [&["--trials", "1", "--ledger", ledger, "--"][..], &words].concat();
    let r = killtest(&args);
    assert_eq!(r.exit, 2, "{}", r.all());
    assert!(r.stderr.contains("left 0 effects under its name"), "{}", r.stderr);
    nothing_left(theirs.to_str().unwrap());
}

#[test]
fn what_can_not_be_tested_is_said_before_anything_is_started() {
    for args in [
        &["--", "cat"][..],
        &["--http", "http://127.0.0.1:1/mcp", "--ledger", "x"],
        &["--start", "cat"],
        &["--at", "after-commit", "--ledger", "x", "--", "cat"],
        &["--tool", "nothing"],
        &["--at", "later"],
    ] {
        assert_eq!(killtest(args).exit, 2, "{args:?}");
    }
}

#[test]
fn ended_from_outside_it_leaves_no_server_behind() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("ledger.db");
    let ledger = path.to_str().unwrap();
    for signal in [rustix::process::Signal::TERM, rustix::process::Signal::KILL] {
        let mut child = crate::support::cli::command(&[
            "killtest",
            "--trials",
            "1000",
            "--at",
            "during-work",
            "--ledger",
            ledger,
        ])
        .spawn()
        .unwrap();
        until("trials", || std::fs::metadata(&path).ok().filter(|m| m.len() > 0));
        let pid = rustix::process::Pid::from_raw(i32::try_from(child.id()).unwrap()).unwrap();
        rustix::process::kill_process(pid, signal).unwrap();
        child.wait().unwrap();
        nothing_left(ledger);
    }
}
