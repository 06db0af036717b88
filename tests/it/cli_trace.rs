//! Ledger, -wal and folder stay as they were under every command, also as another user: root hides permission
//! trouble.

use super::ledger_read::{DDL, Listing, listing, night};
use crate::support::cli::{EXE, both, clean, command, redial, tickets};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;

/// What the folder holds, but for the `-shm` that SQLite needs beside a `-wal`.
fn without_shm(folder: &Path) -> Listing {
    listing(folder).into_iter().filter(|(name, _)| !name.ends_with("-shm")).collect()
}

/// Every command that reads this ledger; whatever server they talk to has another one.
fn commands<'a>(ledger: &'a str, other: &'a str, effects: &'a str) -> Vec<(i32, Vec<&'a str>)> {
    let l = ["--ledger", ledger];
    let args = ["--args", r#"{"title":"x","body":"y"}"#];
    let charge = ["--", EXE, "serve", "charge", "--effects", effects];
    vec![
        (0, both(&["rows"], &l)),
        (1, both(&["verify", "--strict"], &l)),
        (0, both(&["rows", "--json", "--state", "abandoned", "--limit", "1"], &l)),
        (0, both(&["find", "night-005"], &l)),
        (1, both(&["find", "nope", "--json"], &l)),
        (1, both(&both(&["find", "night-001"], &l), &tickets(other))),
        (3, both(&both(&both(&["reissue", "night-005"], &l), &args), &tickets(other))),
        (
            3,
            both(
                &both(
                    &both(&["reissue", "night-005", "--json", "--confirm", "night-005"], &l),
                    &args,
                ),
                &tickets(other),
            ),
        ),
        (0, both(&both(&["call", "charge", "--args", r#"{"amount":1}"#], &l), &charge)),
        (5, both(&both(&["find", "night-001"], &l), &["--", "false"])),
    ]
}

#[test]
fn nothing_is_left_behind_with_a_wal_and_at_rest() {
    for at_rest in [false, true] {
        let (dir, elsewhere) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let path = night(dir.path());
        if at_rest {
            // A server's normal end: the -wal is folded in.
            rusqlite::Connection::open(&path)
                .unwrap()
                .query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(()))
                .unwrap();
            assert_eq!(listing(dir.path()).len(), 1);
        }
        let other = elsewhere.path().join("other.db");
        let effects = elsewhere.path().join("effects.jsonl");
        let before = without_shm(dir.path());
        for (exit, args) in
            commands(path.to_str().unwrap(), other.to_str().unwrap(), effects.to_str().unwrap())
        {
            let ran = redial(&args);
            assert_eq!(ran.exit, exit, "{args:?}: {}", ran.all());
            assert_eq!(without_shm(dir.path()), before, "{args:?}");
            assert!(!at_rest || listing(dir.path()).len() == 1, "{args:?}: a -shm without a -wal");
        }
    }
}

#[test]
fn another_user_leaves_nothing_either() {
    if !rustix::process::geteuid().is_root() {
        println!("skipped: not root, so no other user can be tried");
        return;
    }
    let nobody = |args: &[&str]| {
        let mut c = Command::new("setpriv");
        // A HOME that it may not look into says nothing of read_only.
        clean(&mut c).current_dir("/").env("REDIAL_READ_ONLY", "0");
        c.args(["--reuid=65534", "--regid=65534", "--clear-groups", "--", EXE]).args(args);
        c.output()
    };
    match nobody(&["--version"]) {
        Ok(out) if out.status.success() => {}
        other => {
            println!("skipped: setpriv can't start this binary as another user: {other:?}");
            return;
        }
    }
    let mode = |path: &Path, mode: u32| {
        fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
    };
    for (folder_mode, file_mode) in [(0o755, 0o644), (0o555, 0o444), (0o777, 0o644)] {
        let (dir, elsewhere) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let path = night(dir.path());
        for p in [&path, &dir.path().join("ledger.db-wal")] {
            mode(p, file_mode);
        }
        mode(dir.path(), folder_mode);
        mode(elsewhere.path(), 0o777);
        let other = elsewhere.path().join("other.db");
        let effects = elsewhere.path().join("effects.jsonl");
        let before = listing(dir.path());
        for (exit, args) in
            commands(path.to_str().unwrap(), other.to_str().unwrap(), effects.to_str().unwrap())
        {
            let out = nobody(&args).unwrap();
            let said = crate::support::cli::Ran::from(out);
            assert_eq!(said.exit, exit, "{args:?}: {}", said.all());
            assert_eq!(listing(dir.path()), before, "{args:?} {folder_mode:o}");
        }
        mode(&path, 0o600);
        let out = nobody(&["rows", "--ledger", path.to_str().unwrap()]).unwrap();
        crate::support::cli::Ran::from(out).expect(6, &["can't be read by this user"]);
    }
}

#[test]
fn a_private_copy_does_not_outlive_the_command() {
    let (dir, tmp) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let path = dir.path().join("ledger.db");
    rusqlite::Connection::open(&path).unwrap().execute_batch(super::ledger_read::DDL).unwrap();
    // A hot journal needs a copy; this one is made by hand and only looks like one: it must be read all the same,
    // or be said to be unreadable, and leave nothing.
    fs::write(dir.path().join("ledger.db-journal"), [0xd9, 0xd5, 0x05, 0xf9]).unwrap();
    let before = listing(dir.path());
    let out = command(&["rows", "--ledger", path.to_str().unwrap()])
        .env("TMPDIR", tmp.path())
        .output()
        .unwrap();
    let ran = crate::support::cli::Ran::from(out);
    assert!([0, 6].contains(&ran.exit), "{}", ran.all());
    assert_eq!(listing(dir.path()), before);
    assert!(listing(tmp.path()).is_empty(), "{:?}", listing(tmp.path()).keys());
}

#[test]
fn a_wal_that_nobody_has_open_is_named_with_its_size_and_time_beside_the_counts() {
    let (live, left) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let (at, copy) = (live.path().join("ledger.db"), left.path().join("ledger.db"));
    let db = rusqlite::Connection::open(&at).unwrap();
    db.execute_batch(&format!(
        "PRAGMA journal_mode=WAL; {DDL} INSERT INTO requests VALUES ('a','h1','done','{{}}','o',1.0);
         INSERT INTO tickets VALUES ('T-1','a','one','x');"
    ))
    .unwrap();
    for suffix in ["", "-wal"] {
        let name = format!("ledger.db{suffix}");
        // Not by this process: closing a file drops the locks that SQLite holds on it here.
        let (from, to) = (live.path().join(&name), left.path().join(&name));
        assert!(Command::new("cp").args([&from, &to]).status().unwrap().success());
    }
    let wal = left.path().canonicalize().unwrap().join("ledger.db-wal");
    let size = std::fs::metadata(&wal).unwrap().len();
    for command in ["rows", "verify"] {
        let of = |file: &Path| redial(&[command, "--ledger", file.to_str().unwrap(), "--json"]);
        let told = of(&copy).stdout;
        assert!(
            told.contains(&format!("is read with {} ({size} bytes, changed 20", wal.display()))
        );
        assert!(told.contains("which nobody has open"), "{told}");
        // A server that works has it open.
        let told = of(&at).stdout;
        assert!(!told.contains("nobody has open"), "{told}");
    }
    drop(db);
}
