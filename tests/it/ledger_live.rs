//! Reading while others write, and as somebody who may not: on real processes, since locks and
//! permissions are a process's.
#![allow(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "helpers talk over stdout; a skipped test says so"
)]

use super::ledger_read::{DDL, Listing, listing, night};
use redial::ledger::{Ledger, Mode, Trouble};
use rusqlite::{Connection, TransactionBehavior};
use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

const KIND: &str = "REDIAL_TEST_HELPER";
const FILE: &str = "REDIAL_TEST_FILE";

/// This test binary again, as a process that plays `kind` on `file`.
pub fn child(kind: &str, file: &Path) -> Command {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command
        .args(["--exact", "ledger_live::helper_process", "--ignored", "--nocapture"])
        .env(KIND, kind)
        .env(FILE, file)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null());
    command
}

/// A helper that works until told to stop.
pub struct Helper {
    child: Child,
    stdin: Option<ChildStdin>,
    out: BufReader<std::process::ChildStdout>,
}

impl Helper {
    /// Starts it and waits until it says `ready`.
    pub fn start(kind: &str, file: &Path) -> Helper {
        let mut child = child(kind, file).stdin(Stdio::piped()).spawn().unwrap();
        let (stdin, out) = (child.stdin.take(), BufReader::new(child.stdout.take().unwrap()));
        let mut helper = Helper { child, stdin, out };
        helper.wait_for("ready");
        helper
    }

    fn wait_for(&mut self, word: &str) -> String {
        let mut line = String::new();
        while self.out.read_line(&mut line).unwrap() > 0 {
            if let Some(at) = line.find(word) {
                return line.split_off(at);
            }
            line.clear();
        }
        panic!("the helper ended without saying {word}");
    }

    /// Closes its stdin, and waits for its end; what it said last.
    pub fn stop(mut self) -> String {
        self.stdin = None;
        let mut rest = String::new();
        self.out.read_to_string(&mut rest).unwrap();
        assert!(self.child.wait().unwrap().success(), "{rest}");
        rest
    }

    fn kill(mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }
}

/// Not a test of its own: what the other tests start.
#[test]
#[ignore = "started by other tests, as another process"]
fn helper_process() {
    let (Ok(kind), Ok(file)) = (std::env::var(KIND), std::env::var(FILE)) else { return };
    let file = Path::new(&file);
    match kind.as_str() {
        "hold" => {
            let conn = Connection::open(file).unwrap();
            conn.execute_batch("BEGIN EXCLUSIVE").unwrap();
            println!("ready");
            until_stdin_closes();
        }
        "write" => write_like_the_reference(file, "WAL"),
        "write-rollback" => write_like_the_reference(file, "DELETE"),
        "write-once" => {
            let conn = Connection::open(file).unwrap();
            conn.execute(
                "INSERT INTO requests VALUES ('late', 'h', 'running', NULL, 'o', 1.0)",
                [],
            )
            .unwrap();
        }
        "die" => {
            let mut conn = Connection::open(file).unwrap();
            conn.execute_batch("PRAGMA cache_size = 1; PRAGMA cache_spill = 1").unwrap();
            let tx = conn.transaction_with_behavior(TransactionBehavior::Immediate).unwrap();
            for i in 0..3000 {
                tx.execute(
                    "INSERT INTO requests VALUES (?1, 'h', 'done', NULL, 'o', 1.0)",
                    [format!("ghost-{i}")],
                )
                .unwrap();
            }
            println!("ready");
            until_stdin_closes();
        }
        "idle" => {
            let conn = Connection::open(file).unwrap();
            let n: i64 = conn.query_row("SELECT count(*) FROM requests", [], |r| r.get(0)).unwrap();
            println!("ready {n}");
            until_stdin_closes();
        }
        "read" => {
            let read = Ledger::open(file).read(|r| Ok((r.counts()?, r.how().mode)));
            match read {
                Ok((counts, mode)) => println!("read {} {} {mode:?}", counts.rows, counts.effects),
                Err(e) => println!("failed {:?}", e.trouble),
            }
        }
        "copy" => {
            let temp = std::env::temp_dir();
            let ledger = Ledger::open(file);
            let mode = ledger
                .read(move |_| {
                    let copy = fs::read_dir(&temp).unwrap().next().unwrap().unwrap();
                    Ok(copy.metadata().unwrap().permissions().mode() & 0o777)
                })
                .unwrap();
            println!("copy in a folder of mode {mode:o}");
        }
        other => panic!("{other}"),
    }
}

fn until_stdin_closes() {
    let _ = std::io::stdin().read_to_end(&mut Vec::new());
}

/// Calls in a tight loop; opens and closes the file for each, as the Python reference does.
fn write_like_the_reference(file: &Path, journal: &str) {
    static STOP: AtomicBool = AtomicBool::new(false);
    std::thread::spawn(|| {
        until_stdin_closes();
        STOP.store(true, Ordering::Relaxed);
    });
    let (start, mut calls, mut slowest) = (Instant::now(), 0, Duration::ZERO);
    while !STOP.load(Ordering::Relaxed) {
        let began = Instant::now();
        let mut conn = Connection::open(file).unwrap();
        conn.busy_timeout(Duration::from_secs(10)).unwrap();
        conn.execute_batch(&format!(
            "PRAGMA journal_mode={journal}; PRAGMA synchronous=OFF; {DDL}"
        ))
        .unwrap();
        let id = format!("r-{calls}");
        conn.execute("INSERT INTO requests VALUES (?1, 'h', 'running', NULL, 'o', 1.0)", [&id])
            .unwrap();
        let tx = conn.transaction_with_behavior(TransactionBehavior::Immediate).unwrap();
        tx.execute(
            "INSERT INTO tickets VALUES (?1, ?2, 't', 'b')",
            [format!("T-{calls}"), id.clone()],
        )
        .unwrap();
        tx.execute(
            "UPDATE requests SET status = 'done', result = '{}' WHERE request_id = ?1",
            [&id],
        )
        .unwrap();
        tx.commit().unwrap();
        drop(conn);
        calls += 1;
        slowest = slowest.max(began.elapsed());
        match calls {
            20 => println!("ready"),
            300 => println!("measured"),
            _ => {}
        }
    }
    println!(
        "calls {calls} in {} ms, slowest {} ms",
        start.elapsed().as_millis(),
        slowest.as_millis()
    );
}

fn rate(said: &str) -> (f64, u64) {
    let numbers: Vec<u64> =
        said.split(|c: char| !c.is_ascii_digit()).filter_map(|n| n.parse().ok()).collect();
    let at = numbers.len() - 1;
    // Behind libtest's own lines nothing has digits but "finished in 0.00s".
    let calls = said.split("calls ").nth(1).unwrap();
    let n: Vec<u64> =
        calls.split(|c: char| !c.is_ascii_digit()).filter_map(|n| n.parse().ok()).take(3).collect();
    assert!(at >= 2 && n.len() == 3, "{said}");
    (n[0] as f64 * 1000.0 / n[1] as f64, n[2])
}

#[tokio::test(flavor = "multi_thread")]
async fn a_long_read_that_waits_for_a_lock_holds_up_no_quitting() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("ledger.db");
    let db = Connection::open(&path).unwrap();
    db.execute_batch(DDL).unwrap();
    db.execute_batch("BEGIN EXCLUSIVE").unwrap();
    let ledger = Ledger::open(&path);
    let long = ledger.read_within(Duration::from_secs(1800), |r| r.newest(None, 1));
    assert!(tokio::time::timeout(Duration::from_millis(200), long).await.is_err(), "it waits");
    let began = Instant::now();
    drop(ledger);
    let took = began.elapsed();
    assert!(took < Duration::from_secs(5), "quitting waited {took:?}");
}

#[test]
fn under_a_tight_loop_writer_no_wrong_row_is_shown_and_it_is_not_held_up() {
    for (kind, reads) in [("write", 500), ("write-rollback", 150)] {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("ledger.db");
        let mut alone = Helper::start(kind, &path);
        // Enough calls to tell a rate by.
        alone.wait_for("measured");
        let (alone, _) = rate(&alone.stop());
        for name in ["ledger.db", "ledger.db-wal", "ledger.db-shm"] {
            let _ = fs::remove_file(dir.path().join(name));
        }

        let writer = Helper::start(kind, &path);
        let ledger = Ledger::open(&path);
        let (mut rows, mut newest_seen, mut modes) = (0, 0, Vec::new());
        let mut busy = Duration::ZERO;
        for n in 0..reads {
            let began = Instant::now();
            // A whole pass costs more with every call the writer makes: now and then is enough.
            let pass = n % 5 == 0;
            let (newest, counts, how) = ledger
                .read(move |r| {
                    let counts = if pass { Some(r.counts()?) } else { None };
                    Ok((r.newest(None, 50)?, counts, r.how()))
                })
                .unwrap_or_else(|e| panic!("{kind}, read {n}: {e}"));
            busy += began.elapsed();
            for row in &newest {
                let effects = usize::from(row.status == "done");
                assert_eq!(row.effects.len(), effects, "{kind}: {row:?}");
            }
            let top = newest.first().map_or(0, |r| r.rowid);
            assert!(top >= newest_seen, "{kind}: rows never go away: {newest_seen}, then {top}");
            newest_seen = top;
            if let Some(counts) = counts.filter(|_| how.whole) {
                let done = counts.by_status.get("done").copied().unwrap_or(0);
                assert_eq!(done, counts.effects, "{kind}: {counts:?} {how:?}");
                assert!(counts.rows >= rows, "{kind}: {rows}, then {}", counts.rows);
                rows = counts.rows;
            }
            assert_eq!((how.unreadable, how.warnings.len()), (0, 0), "{how:?}");
            if !modes.contains(&how.mode) {
                modes.push(how.mode);
            }
        }
        let (beside, slowest) = rate(&writer.stop());
        eprintln!(
            "{kind}: {alone:.0} calls/s alone, {beside:.0} while read; {reads} reads in {busy:?}, {modes:?}; slowest call {slowest} ms"
        );
        assert!(slowest < 3000, "{kind}: a call took {slowest} ms");
        assert!(beside > alone / 8.0, "{kind}: {alone:.0} calls/s alone, {beside:.0} while read");
        assert!(!modes.contains(&Mode::PrivateCopy), "{modes:?}");

        // The next writer's close tidies what a read overlapped.
        Connection::open(&path)
            .unwrap()
            .execute_batch("UPDATE requests SET status = status")
            .unwrap();
        let left: Vec<_> = listing(dir.path()).into_keys().collect();
        assert_eq!(left, ["ledger.db"], "{kind}");
    }
}

#[test]
fn a_writer_that_comes_and_goes_during_a_read_is_noticed() {
    // At rest, and beside a -wal: the two ways a WAL ledger is read.
    for (at_rest, rows) in [(true, 7), (false, 7)] {
        let dir = tempfile::tempdir().unwrap();
        let path = night(dir.path());
        if at_rest {
            // The last writer's close folds the -wal in.
            let conn = Connection::open(&path).unwrap();
            let _: i64 = conn.query_row("SELECT count(*) FROM requests", [], |r| r.get(0)).unwrap();
        }
        let wal = dir.path().join("ledger.db-wal");
        assert_eq!(wal.exists(), !at_rest);
        let runs = std::sync::atomic::AtomicUsize::new(0);
        let file = path.clone();
        let (before, after, mode, runs) = Ledger::open(&path)
            .read(move |r| {
                let before = r.counts()?.rows;
                if runs.fetch_add(1, Ordering::Relaxed) == 0 {
                    assert!(child("write-once", &file).output().unwrap().status.success());
                    assert!(wal.exists(), "its close could not fold the -wal in under a reader");
                }
                Ok((before, r.counts()?.rows, r.how().mode, runs.load(Ordering::Relaxed)))
            })
            .unwrap();
        assert_eq!(before, after, "one snapshot");
        assert_eq!(mode, Mode::ReadOnly);
        // An unlocked read of a file at rest is thrown away; beside a -wal the snapshot stays true.
        let want = if at_rest { (rows + 1, 2) } else { (rows, 1) };
        assert_eq!((after, runs), want, "at rest: {at_rest}");
    }
}

#[test]
fn a_writer_killed_in_its_transaction_leaves_no_ghost_rows() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("ledger.db");
    Connection::open(&path)
        .unwrap()
        .execute_batch(&format!(
            "{DDL} INSERT INTO requests VALUES ('r', 'h', 'running', NULL, 'o', 1.0)"
        ))
        .unwrap();
    let writer = Helper::start("die", &path);
    // Alive, with its pages already in the file: its lock says that the journal isn't hot, and the
    // spilled pages keep readers out.
    let during = Ledger::open(&path).read(|r| r.counts());
    assert!(matches!(during.unwrap_err().trouble, Trouble::Locked { .. }));
    writer.kill();
    let before = listing(dir.path());
    assert!(before.contains_key("ledger.db-journal"));
    let (counts, how) = Ledger::open(&path).read(|r| Ok((r.counts()?, r.how()))).unwrap();
    assert_eq!((counts.rows, how.mode), (1, Mode::PrivateCopy));
    assert_eq!(listing(dir.path()), before);
}

/// Reads as `nobody`; what it said. `None` where that can't be tried.
fn read_as_nobody(path: &Path) -> Option<String> {
    if !rustix::process::geteuid().is_root() {
        println!("skipped: not root, so no other user can be tried");
        return None;
    }
    let exe = child("read", path);
    let mut command = Command::new("setpriv");
    command.args(["--reuid=65534", "--regid=65534", "--clear-groups", "--"]).arg(exe.get_program());
    command.args(exe.get_args()).stdin(Stdio::null());
    for (key, value) in exe.get_envs() {
        command.env(key, value?);
    }
    let out = match command.output() {
        Ok(out) if out.status.success() => out,
        other => {
            println!("skipped: setpriv can't start this binary as another user: {other:?}");
            return None;
        }
    };
    let said = String::from_utf8_lossy(&out.stdout).into_owned();
    let line = said
        .lines()
        .find_map(|l| l.find("read ").or(l.find("failed ")).map(|at| l[at..].to_owned()));
    Some(line.unwrap_or_else(|| panic!("{said}")))
}

fn mode_of(path: &Path, mode: u32) {
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
}

#[test]
fn another_user_reads_it_too_and_leaves_nothing() {
    for (folder_mode, file_mode) in [(0o755, 0o644), (0o755, 0o444), (0o777, 0o644)] {
        let dir = tempfile::tempdir().unwrap();
        mode_of(dir.path(), folder_mode);
        let path = night(dir.path());
        mode_of(&path, file_mode);
        mode_of(&dir.path().join("ledger.db-wal"), file_mode);
        let before: Listing = listing(dir.path());
        let Some(said) = read_as_nobody(&path) else { return };
        // A -shm made by another user would lock the server out: also where the folder allows it.
        assert_eq!(said, "read 7 5 PrivateCopy", "{folder_mode:o} {file_mode:o}");
        assert_eq!(listing(dir.path()), before, "{folder_mode:o} {file_mode:o}");
    }
}

#[test]
fn another_user_reads_beside_a_living_server_and_at_rest() {
    let dir = tempfile::tempdir().unwrap();
    mode_of(dir.path(), 0o755);
    let path = night(dir.path());
    mode_of(&path, 0o644);
    let server = Helper::start("idle", &path);
    let before = listing(dir.path());
    assert!(before.contains_key("ledger.db-shm"), "the server's own");
    if let Some(said) = read_as_nobody(&path) {
        assert_eq!(said, "read 7 5 ReadOnly");
        assert_eq!(listing(dir.path()), before);
    }
    server.stop();

    assert_eq!(listing(dir.path()).len(), 1, "the server folded its -wal in");
    mode_of(&path, 0o444);
    let before = listing(dir.path());
    if let Some(said) = read_as_nobody(&path) {
        assert_eq!(said, "read 7 5 Immutable");
        assert_eq!(listing(dir.path()), before);
    }
    mode_of(&path, 0o600);
    if let Some(said) = read_as_nobody(&path) {
        assert_eq!(said, "failed NotReadable");
    }
}
