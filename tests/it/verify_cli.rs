//! `redial verify`: its sentence, its JSON and its exit status on ledgers with each kind of break, on a million
//! rows, and under a living writer.

use crate::ledger_read::{DDL, listing, night};
use crate::support::cli::{Ran, redial};
use redial::json::raw;
use rusqlite::Connection;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

fn verify(ledger: &Path, more: &[&str]) -> Ran {
    let mut args = vec!["verify", "--ledger", ledger.to_str().unwrap(), "--json"];
    args.extend(more);
    redial(&args)
}

/// `kind/severity: ids` of each problem.
fn problems(r: &Ran) -> Vec<String> {
    let list = r.get(&["problems"]);
    let of = |p: &&str| {
        let ids = raw::items(raw::get(p, "request_ids").unwrap()).unwrap();
        let ids: Vec<String> = ids.iter().filter_map(|i| raw::as_str(i)).collect();
        format!(
            "{}/{}: {}",
            raw::get_str(p, "kind").unwrap(),
            raw::get_str(p, "severity").unwrap(),
            ids.join(" ")
        )
    };
    raw::items(&list).unwrap().iter().map(of).collect()
}

/// A ledger in this journal mode: three requests done, each with its ticket, then `sql`.
fn made(folder: &Path, journal: &str, sql: &str) -> std::path::PathBuf {
    let path = folder.join("ledger.db");
    std::fs::remove_file(&path).ok();
    let db = Connection::open(&path).unwrap();
    db.execute_batch(&format!(
        "PRAGMA journal_mode={journal}; {DDL}
         INSERT INTO requests VALUES ('a','h1','done','{{}}','o',1.0), ('b','h2','done','{{}}','o',2.0), ('c','h3','done','{{}}','o',3.0);
         INSERT INTO tickets VALUES ('T-1','a','one','x'), ('T-2','b','two','x'), ('T-3','c','three','x'); {sql}"
    ))
    .unwrap();
    path
}

#[test]
fn the_night_ledger_breaks_nothing_and_is_not_exactly_once() {
    let dir = tempfile::tempdir().unwrap();
    let path = night(dir.path());
    let before = listing(dir.path());
    let r = verify(&path, &[]);
    assert_eq!(r.exit, 0, "{}", r.all());
    assert_eq!(r.text(&["sentence"]), "NOT exactly once: 2 unfinished, 1 suspect pair");
    assert_eq!((r.get(&["exactly_once"]), r.get(&["effects"])), ("false".into(), "5".into()));
    assert_eq!(r.get(&["requests", "done"]), "5");
    assert_eq!(r.get(&["requests", "abandoned"]), "2");
    assert_eq!(
        problems(&r),
        [
            "unfinished/warning: night-007",
            "unfinished/warning: night-005",
            "suspect_duplicate/warning: night-001 night-006",
        ],
        "the label that the pair shares is no second problem"
    );
    for (more, exit) in [
        (&["--expect", "障害報告=1"][..], 1),
        (&["--expect", "障害報告=2", "--expect", "請求修正=1"], 0),
        (&["--expect-total", "5"], 0),
        (&["--expect-total", "6"], 1),
        (&["--strict"], 1),
        (&["--expect", "nothing of that name=0"], 0),
        (&["--expect", "障害報告"], 2),
    ] {
        let r = verify(&path, more);
        assert_eq!(r.exit, exit, "{more:?}: {}", r.all());
    }
    let wrong = verify(&path, &["--expect", "障害報告=1"]);
    assert_eq!(problems(&wrong)[0], "unexpected_count/error: ");
    assert_eq!(raw::get(&wrong.get(&["labels"]), "障害報告"), Some("2"));
    let plain = redial(&["verify", "--ledger", path.to_str().unwrap()]);
    assert!(plain.stdout.ends_with("NOT exactly once: 2 unfinished, 1 suspect pair\n"));
    let mut after = listing(dir.path());
    after.remove("ledger.db-shm");
    assert_eq!(after, before, "reading leaves the ledger as it was");
}

#[test]
fn every_kind_of_break_is_found_in_both_journal_modes() {
    let no_unique = "ALTER TABLE tickets RENAME TO old; CREATE TABLE tickets(ticket_id TEXT PRIMARY KEY, request_id TEXT,
        title TEXT, body TEXT); INSERT INTO tickets SELECT * FROM old; DROP TABLE old;";
    let twice = format!("{no_unique} INSERT INTO tickets VALUES ('T-9','b','again','x')");
    let nameless = format!("{no_unique} INSERT INTO tickets VALUES ('T-9', NULL, 'again', 'x')");
    let no_key = "ALTER TABLE requests RENAME TO old; CREATE TABLE requests(request_id TEXT, args_hash TEXT, status TEXT,
        result TEXT, owner TEXT, claimed_at REAL); INSERT INTO requests SELECT * FROM old; DROP TABLE old;";
    let two_rows = format!("{no_key} INSERT INTO requests VALUES ('b','h9','done','{{}}','o',4.0)");
    let no_case = "ALTER TABLE requests RENAME TO old; CREATE TABLE requests(request_id TEXT COLLATE NOCASE PRIMARY KEY,
        args_hash TEXT, status TEXT, result TEXT, owner TEXT, claimed_at REAL); INSERT INTO requests SELECT * FROM old;
        DROP TABLE old; UPDATE requests SET request_id='B' WHERE request_id='b'";
    let cases: [(&str, &[&str], &str, i32); 14] = [
        ("", &[], "exactly once: 3 requests, 3 effects", 0),
        (&twice, &["duplicate_effect/error: b"], "NOT exactly once: 1 duplicate", 1),
        (
            &nameless,
            &["effect_without_request/error: "],
            "NOT exactly once: 1 effect without request",
            1,
        ),
        (
            &two_rows,
            &["several_rows/error: b", "unexpected_count/error: "],
            "NOT exactly once: 3 effects for 4 requests done",
            1,
        ),
        (
            // The column's own comparison is its server's business: two ids that differ by a byte are two ids.
            no_case,
            &["done_without_effect/error: B", "effect_without_request/error: b"],
            "NOT exactly once: 1 done without effect, 1 effect without request",
            1,
        ),
        (
            "UPDATE requests SET status='failed' WHERE request_id='c'",
            &["unfinished/warning: c"],
            "NOT exactly once: 1 failed",
            0,
        ),
        (
            "DELETE FROM requests; DELETE FROM tickets",
            &["unexpected_count/warning: "],
            "nothing to say yet: 0 requests, 0 effects",
            0,
        ),
        (
            "DELETE FROM tickets WHERE request_id='c'",
            &["done_without_effect/error: c"],
            "NOT exactly once: 1 done without effect",
            1,
        ),
        (
            "DELETE FROM requests WHERE request_id='b'",
            &["effect_without_request/error: b"],
            "NOT exactly once: 1 effect without request",
            1,
        ),
        (
            "DELETE FROM requests WHERE request_id<'c'",
            &["request_purged/warning: b", "request_purged/warning: a"],
            "can't say whether exactly once: 2 effects have no request: swept, or there never was one (1 request, 3 effects)",
            0,
        ),
        (
            "UPDATE requests SET args_hash='h1' WHERE request_id='c'",
            &["suspect_duplicate/warning: a c"],
            "NOT exactly once: 1 suspect pair",
            0,
        ),
        (
            "UPDATE tickets SET title='one' WHERE request_id='b'",
            &["suspect_duplicate/warning: a b"],
            "exactly once: 3 requests, 3 effects",
            0,
        ),
        (
            "INSERT INTO requests VALUES ('d','h4','running',NULL,'o',4.0)",
            &["unfinished/warning: d"],
            "NOT exactly once: 1 unfinished",
            0,
        ),
        (
            "DELETE FROM tickets WHERE request_id='c'; DELETE FROM requests WHERE request_id='b';
             UPDATE requests SET status='running' WHERE request_id='a'",
            &[
                "done_without_effect/error: c",
                "effect_without_request/error: b",
                "unfinished/warning: a",
            ],
            "NOT exactly once: 1 done without effect, 1 effect without request, 1 unfinished",
            1,
        ),
    ];
    let dir = tempfile::tempdir().unwrap();
    for journal in ["WAL", "DELETE"] {
        for (sql, want, sentence, exit) in &cases {
            let r = verify(&made(dir.path(), journal, sql), &[]);
            assert_eq!(problems(&r), *want, "{journal}: {sql}");
            assert_eq!((r.text(&["sentence"]).as_str(), r.exit), (*sentence, *exit), "{sql}");
            let strict = verify(&dir.path().join("ledger.db"), &["--strict"]);
            assert_eq!(strict.exit, i32::from(!want.is_empty()), "strict, {sql}");
        }
    }
}

/// The sentence and the exit status.
fn said(r: &Ran) -> (String, i32) {
    (r.text(&["sentence"]), r.exit)
}

#[test]
fn which_table_holds_effects_is_asked_where_several_could() {
    let dir = tempfile::tempdir().unwrap();
    let emails = "CREATE TABLE emails(email_id INTEGER PRIMARY KEY, request_id TEXT, subject TEXT);
         INSERT INTO emails VALUES (1,'a','one'), (2,'b','two'), (3,'c','three');";
    let path = made(dir.path(), "WAL", emails);
    let asked = verify(&path, &[]);
    assert_eq!(asked.exit, 2, "{}", asked.all());
    let why = format!("{} {}", asked.text(&["error", "message"]), asked.text(&["error", "hint"]));
    assert!(why.contains("emails, tickets") && why.contains("--effects TABLE"), "{why}");
    let both: &[&str] = &["--effects", "tickets", "--effects", "emails"];
    assert_eq!(said(&verify(&path, both)), ("exactly once: 3 requests, 6 effects".into(), 0));
    let one = said(&verify(&path, &["--effects", "tickets"]));
    assert_eq!(one, ("exactly once: 3 requests, 3 effects".into(), 0));
    for (sql, sentence, exit) in [
        ("INSERT INTO emails VALUES (9,'b','two again')", "NOT exactly once: 1 duplicate", 1),
        (
            "DELETE FROM emails WHERE email_id = 3",
            "can't say whether exactly once: 1 done without one in emails (3 requests, 5 effects)",
            0,
        ),
        (
            "INSERT INTO emails VALUES (9,'gone','x')",
            "NOT exactly once: 1 effect without request",
            1,
        ),
        // Its key is the rowid, which anybody may give: old and lost look alike.
        (
            "INSERT INTO emails VALUES (-9,'gone','x')",
            "NOT exactly once: 1 effect without request",
            1,
        ),
        ("INSERT INTO emails VALUES (9,NULL,'x')", "NOT exactly once: 1 effect without request", 1),
        (
            "DELETE FROM emails WHERE email_id = 3; DELETE FROM tickets WHERE request_id='c'",
            "NOT exactly once: 1 done without effect",
            1,
        ),
    ] {
        let path = made(dir.path(), "DELETE", &format!("{emails} {sql}"));
        assert_eq!(said(&verify(&path, both)), (sentence.into(), exit), "{sql}");
    }
    for wrong in ["nothing", "requests"] {
        assert_eq!(verify(&path, &["--effects", wrong]).exit, 2, "{wrong}");
    }
    // The same choice everywhere: no number comes from a table that nobody has named.
    let rows = |more: &[&str]| {
        let mut args = vec!["rows", "--json", "--ledger", path.to_str().unwrap()];
        args.extend(more);
        redial(&args)
    };
    let plain = rows(&[]);
    assert_eq!((plain.exit, plain.get(&["effects"])), (0, "null".into()), "{}", plain.all());
    assert!(plain.get(&["remarks"]).contains("emails, tickets"), "{}", plain.all());
    assert_eq!(rows(both).get(&["effects"]), "4");
    let find = redial(&["find", "a", "--json", "--ledger", path.to_str().unwrap()]);
    assert!(find.get(&["remarks"]).contains("1 in emails, 1 in tickets"), "{}", find.all());
}

#[test]
fn effects_in_a_table_without_rowids_and_beyond_hundreds_of_tables_are_counted() {
    let dir = tempfile::tempdir().unwrap();
    let many: String = (0..600).map(|i| format!("CREATE TABLE a{i:03}(n INT);")).collect();
    let sql = format!(
        "{many} CREATE TABLE zz(ticket_id TEXT PRIMARY KEY, request_id TEXT, title TEXT, body TEXT) WITHOUT ROWID;
         INSERT INTO zz SELECT * FROM tickets; DROP TABLE tickets;"
    );
    let path = made(dir.path(), "WAL", &sql);
    assert_eq!(said(&verify(&path, &[])), ("exactly once: 3 requests, 3 effects".into(), 0));
    for (more, sentence) in [
        ("INSERT INTO zz VALUES ('T-9','b','x','y')", "NOT exactly once: 1 duplicate"),
        ("DELETE FROM requests WHERE request_id='a'", "NOT exactly once: 1 effect without request"),
        ("DELETE FROM requests WHERE request_id='c'", "NOT exactly once: 1 effect without request"),
    ] {
        let path = made(dir.path(), "WAL", &format!("{sql} {more}"));
        assert_eq!(said(&verify(&path, &[])), (sentence.into(), 1), "{more}");
    }
}

#[test]
fn a_ledger_that_somebody_holds_is_said_to_be_locked_at_once() {
    let dir = tempfile::tempdir().unwrap();
    for journal in ["WAL", "DELETE"] {
        let path = made(dir.path(), journal, "");
        let holder = Connection::open(&path).unwrap();
        holder
            .execute_batch("PRAGMA locking_mode=EXCLUSIVE; BEGIN EXCLUSIVE; DELETE FROM tickets")
            .unwrap();
        let begin = std::time::Instant::now();
        let r = verify(&path, &[]);
        assert_eq!(r.exit, 6, "{journal}: {}", r.all());
        assert!(r.text(&["error", "message"]).contains("locked"), "{journal}: {}", r.all());
        assert!(begin.elapsed().as_secs() < 5, "{journal}: {:?}", begin.elapsed());
    }
}

#[test]
fn a_label_may_hold_an_equals_sign_and_hostile_text_stays_text() {
    let dir = tempfile::tempdir().unwrap();
    let path = made(
        dir.path(),
        "WAL",
        "UPDATE tickets SET title='a=b=1' WHERE request_id='a'; UPDATE tickets SET title=char(27)||'[2J' WHERE request_id>'a'",
    );
    assert_eq!(verify(&path, &["--expect", "a=b=1=1"]).exit, 0);
    assert_eq!(verify(&path, &["--expect", "a=b=1"]).exit, 1);
    let plain = redial(&["verify", "--ledger", path.to_str().unwrap()]);
    assert!(!plain.stdout.contains('\u{1b}') && plain.stdout.contains("suspect duplicate"));
}

#[test]
fn what_is_no_ledger_ends_with_six_and_no_ledger_with_two() {
    let dir = tempfile::tempdir().unwrap();
    let text = dir.path().join("a.txt");
    std::fs::write(&text, "hello").unwrap();
    for path in [text, dir.path().join("missing.db")] {
        assert_eq!(verify(&path, &[]).exit, 6);
    }
    let none = redial(&["verify", "--json"]);
    assert_eq!((none.exit, none.text(&["schema"]).as_str()), (2, "redial/verify@1"));
}

#[test]
fn a_million_rows_are_counted_and_their_breaks_named() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("ledger.db");
    let db = Connection::open(&path).unwrap();
    db.execute_batch(&format!(
        "PRAGMA journal_mode=WAL; PRAGMA synchronous=OFF; {DDL} BEGIN;
         WITH RECURSIVE c(i) AS (SELECT 1 UNION ALL SELECT i+1 FROM c WHERE i < 1000000)
         INSERT INTO requests SELECT 'r-'||i, printf('%064x', i % 999998), 'done', '{{}}', 'o', 1.0 + i FROM c;
         INSERT INTO tickets SELECT 'T-'||rowid, request_id, 'ticket '||(rowid % 999999), 'x' FROM requests ORDER BY rowid;
         UPDATE requests SET status='running' WHERE rowid % 100000 = 0;
         DELETE FROM tickets WHERE rowid % 100000 = 0 OR rowid = 77;
         DELETE FROM requests WHERE rowid <= 50 OR rowid = 500000; COMMIT;"
    ))
    .unwrap();
    drop(db);
    let r = verify(&path, &["--expect", "ticket 123=1", "--expect-total", "999989"]);
    assert_eq!(r.exit, 1, "{}", r.stderr);
    // 500,000 was running and had no ticket; its row is gone with it.
    assert_eq!(r.get(&["requests", "done"]), (1_000_000 - 10 - 50).to_string());
    assert_eq!(r.get(&["effects"]), "999989");
    // Equal hashes are (i, i + 999998) for i = 1 and 2, and those rows were swept.
    assert_eq!(r.text(&["sentence"]), "NOT exactly once: 1 done without effect, 9 unfinished");
    let found = problems(&r);
    let purged = found.iter().filter(|p| p.starts_with("request_purged/warning")).count();
    assert_eq!((found[0].as_str(), purged), ("done_without_effect/error: r-77", 50));
    assert_eq!(found.iter().filter(|p| p.starts_with("unfinished")).count(), 9);
}

#[test]
fn unfinished_rows_beyond_those_that_are_named_are_judged_all_the_same() {
    let dir = tempfile::tempdir().unwrap();
    let sql = "WITH RECURSIVE c(i) AS (SELECT 1 UNION ALL SELECT i+1 FROM c WHERE i < 25000)
         INSERT INTO requests SELECT 'r-'||i, 'x'||i, 'running', NULL, 'owner-'||i, 1.0 + i FROM c";
    let r = verify(&made(dir.path(), "WAL", sql), &[]);
    assert_eq!(r.get(&["requests", "abandoned"]), "25000", "{}", r.get(&["requests"]));
    assert_eq!(r.text(&["sentence"]), "NOT exactly once: 25000 unfinished");
    let named = problems(&r).iter().filter(|p| p.starts_with("unfinished/warning: r-")).count();
    assert_eq!(named, 1000);
}

struct Ending<'a>(&'a AtomicBool);

impl Drop for Ending<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

#[test]
fn under_a_living_writer_nothing_is_called_broken() {
    for journal in ["WAL", "DELETE"] {
        let dir = tempfile::tempdir().unwrap();
        let path = made(dir.path(), journal, "");
        let stop = AtomicBool::new(false);
        let written = std::thread::scope(|scope| {
            let writer = scope.spawn(|| {
                let mut n = 0;
                while !stop.load(Ordering::Relaxed) {
                    // As the reference does: a connection of its own for each call, a claim, then both in one.
                    let db = Connection::open(&path).unwrap();
                    db.busy_timeout(std::time::Duration::from_secs(10)).unwrap();
                    let (id, hash) = (format!("w-{n}"), format!("w{n}"));
                    db.execute("INSERT INTO requests VALUES (?1, ?2, 'running', NULL, 'w', 9.0)", (&id, hash))
                        .unwrap();
                    db.execute_batch(&format!(
                        "BEGIN IMMEDIATE; INSERT INTO tickets VALUES ('W-{n}', '{id}', 'label {n}', 'x');
                         UPDATE requests SET status='done', result='{{}}' WHERE request_id='{id}'; COMMIT"
                    ))
                    .unwrap();
                    n += 1;
                }
                n
            });
            // A check that fails must end the writer too, or the scope would wait for ever.
            let ending = Ending(&stop);
            for _ in 0..12 {
                let r = verify(&path, &[]);
                assert_eq!(r.exit, 0, "{journal}: {}", r.all());
                assert!(problems(&r).iter().all(|p| p.starts_with("unfinished")), "{}", r.stdout);
            }
            drop(ending);
            writer.join().unwrap()
        });
        assert!(written > 0);
        let total = (written + 3).to_string();
        let r = verify(&path, &["--expect-total", &total, "--strict"]);
        assert_eq!((r.exit, r.get(&["exactly_once"]).as_str()), (0, "true"), "{}", r.all());
    }
}

#[test]
fn eighty_tables_of_effects_are_counted_together() {
    let dir = tempfile::tempdir().unwrap();
    let names: Vec<String> = (0..80).map(|n| format!("fx_{n}")).collect();
    let table = |name: &String| {
        format!(
            "CREATE TABLE {name}(id INTEGER PRIMARY KEY, request_id TEXT);
             INSERT INTO {name}(request_id) VALUES ('a'), ('b');"
        )
    };
    let sql: String = names.iter().map(table).collect();
    // One in the last table alone is none without an effect; c has one nowhere.
    let more = "INSERT INTO requests VALUES ('d','h4','done','{}','o',4.0); INSERT INTO fx_79(request_id) VALUES ('d');";
    let path = made(dir.path(), "WAL", &format!("{sql}{more}"));
    let flags: Vec<&str> = names.iter().flat_map(|n| ["--effects", n.as_str()]).collect();
    let r = verify(&path, &flags);
    assert_eq!(r.exit, 1, "{}", r.all());
    let bare: Vec<String> =
        problems(&r).into_iter().filter(|p| p.starts_with("done_without_effect")).collect();
    assert_eq!(bare, ["done_without_effect/error: c"]);
    assert_eq!(r.get(&["effects"]), "161");
}

/// A requests table or view, and an effects table or view, of every shape: the columns, and what comes behind them.
const SHAPES: &[(&str, &str)] = &[
    (
        "indexed",
        "CREATE TABLE requests(request_id TEXT PRIMARY KEY, status TEXT, args_hash TEXT);
         CREATE TABLE tickets(ticket_id TEXT PRIMARY KEY, request_id TEXT); CREATE INDEX i ON tickets(request_id)",
    ),
    (
        "no index",
        "CREATE TABLE requests(request_id TEXT, status TEXT, args_hash TEXT);
         CREATE TABLE tickets(ticket_id TEXT, request_id TEXT)",
    ),
    (
        "no type",
        "CREATE TABLE requests(request_id PRIMARY KEY, status, args_hash);
         CREATE TABLE tickets(ticket_id TEXT PRIMARY KEY, request_id)",
    ),
    (
        "no rowid",
        "CREATE TABLE requests(request_id TEXT PRIMARY KEY, status TEXT, args_hash TEXT) WITHOUT ROWID;
         CREATE TABLE tickets(ticket_id TEXT PRIMARY KEY, request_id TEXT) WITHOUT ROWID",
    ),
    (
        "collation",
        "CREATE TABLE requests(request_id TEXT COLLATE NOCASE PRIMARY KEY, status TEXT, args_hash TEXT);
         CREATE TABLE tickets(ticket_id TEXT PRIMARY KEY, request_id TEXT COLLATE NOCASE);
         CREATE INDEX i ON tickets(request_id)",
    ),
    (
        "views",
        "CREATE TABLE r(id TEXT PRIMARY KEY, s TEXT, h TEXT); CREATE TABLE t(ticket_id TEXT PRIMARY KEY, rid TEXT);
         CREATE VIEW requests AS SELECT DISTINCT id AS request_id, s AS status, h AS args_hash FROM r;
         CREATE VIEW tickets AS SELECT ticket_id, rid AS request_id FROM t",
    ),
];

#[test]
fn tables_of_every_shape_give_the_same_answer() {
    let dir = tempfile::tempdir().unwrap();
    let mut all = Vec::new();
    for (n, (shape, ddl)) in SHAPES.iter().enumerate() {
        let path = dir.path().join(format!("{n}.db"));
        let (r, t) = if *shape == "views" { ("r", "t") } else { ("requests", "tickets") };
        let db = Connection::open(&path).unwrap();
        db.execute_batch(&format!(
            "{ddl}; INSERT INTO {r} VALUES ('a','done','h1'), ('b','done','h2'), ('c','done','h1'), ('d','running','h3');
             INSERT INTO {t} VALUES ('T-1','c'), ('T-2','a'), ('T-3','a'), ('T-4','B');"
        ))
        .unwrap();
        let r = verify(&path, &[]);
        let sentence = "NOT exactly once: 1 duplicate, 1 done without effect, 1 effect without request, 1 unfinished, 1 suspect pair";
        assert_eq!(said(&r), (sentence.into(), 1), "{shape}: {}", r.all());
        all.push((shape, problems(&r)));
        let rows = redial(&["rows", "--json", "--ledger", path.to_str().unwrap()]);
        assert_eq!(rows.get(&["duplicates"]), "1", "{shape}: {}", rows.all());
        assert_eq!(rows.get(&["effects_without_request"]), "1", "{shape}");
        assert_eq!(rows.get(&["suspect_pairs"]), "1", "{shape}");
    }
    for (shape, found) in &all {
        assert_eq!(found, &all[0].1, "{shape}");
    }
}

/// With a look at every effect for each request this takes minutes.
#[test]
fn ids_of_another_type_without_an_index_are_joined_in_one_pass() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("ledger.db");
    let db = Connection::open(&path).unwrap();
    db.execute_batch(
        "CREATE TABLE requests(request_id INTEGER PRIMARY KEY, status TEXT);
         CREATE TABLE t(ticket_id INTEGER PRIMARY KEY, rid TEXT);
         CREATE VIEW tickets AS SELECT ticket_id, rid AS request_id FROM t;
         WITH RECURSIVE c(i) AS (SELECT 1 UNION ALL SELECT i+1 FROM c WHERE i < 50000)
         INSERT INTO requests SELECT i, CASE WHEN i % 5 THEN 'done' ELSE 'running' END FROM c;
         INSERT INTO t SELECT request_id, CASE request_id WHEN 7 THEN '8' ELSE request_id END FROM requests;",
    )
    .unwrap();
    let begin = std::time::Instant::now();
    let r = verify(&path, &[]);
    let sentence = "NOT exactly once: 1 duplicate, 1 done without effect, 10000 unfinished";
    assert_eq!(said(&r), (sentence.into(), 1), "{}", r.all());
    assert_eq!(r.get(&["effects"]), "50000");
    assert!(begin.elapsed().as_secs() < 40, "{:?}", begin.elapsed());
}

/// SQLite takes bytes for another id than the same text, and may take a text for a number: what gives a row its effects
/// takes them for one, and the two must agree.
#[test]
fn an_id_is_one_whatever_it_is_stored_as() {
    let dir = tempfile::tempdir().unwrap();
    let types = ["TEXT", "INTEGER", "REAL", "BLOB"];
    let pairs = [
        ("'5'", "x'35'"),
        ("x'616263'", "'abc'"),
        ("CAST(x'ff' AS TEXT)", "x'ff'"),
        ("5", "5.0"),
        ("5.0", "5"),
        ("5", "'5'"),
        ("'5.0'", "5"),
    ];
    let mut n = 0;
    for of_request in types {
        for of_effect in types {
            for (request, effect) in pairs {
                let (key, unique) = if n % 2 == 0 { ("PRIMARY KEY", "UNIQUE") } else { ("", "") };
                n += 1;
                let path = dir.path().join(format!("{n}.db"));
                let db = Connection::open(&path).unwrap();
                let ddl = format!(
                        "PRAGMA synchronous=OFF;
                         CREATE TABLE requests(request_id {of_request} {key}, status TEXT, claimed_at REAL);
                         CREATE TABLE tickets(ticket_id TEXT PRIMARY KEY, request_id {of_effect} {unique});"
                    );
                db.execute_batch(&ddl).unwrap();
                let insert = format!("INSERT INTO requests VALUES ({request}, 'done', 1.0)");
                if db.execute_batch(&insert).is_err() {
                    continue; // A key of whole numbers takes nothing else.
                }
                db.execute_batch(&format!("INSERT INTO tickets VALUES ('T-1', {effect})")).unwrap();
                drop(db);
                let what = format!("{of_request} {request} {key}, {of_effect} {effect}");
                let ledger = path.to_str().unwrap();
                let rows = redial(&["rows", "--json", "--ledger", ledger]);
                let list = rows.get(&["rows"]);
                let row = raw::items(&list).unwrap()[0];
                let one = raw::get(row, "effects") == Some("1");
                assert_eq!(
                    rows.get(&["effects_without_request"]),
                    if one { "0" } else { "1" },
                    "{what}"
                );
                let id = raw::get_str(row, "request_id").unwrap();
                let find = redial(&["find", "--json", "--ledger", ledger, &id]);
                assert_eq!(find.get(&["ledger", "effects"]) == "1", one, "{what}: {}", find.all());
                let all = verify(&path, &[]);
                assert_eq!(
                    all.text(&["sentence"]) == "exactly once: 1 request, 1 effect",
                    one,
                    "{what}: {}",
                    all.all()
                );
                // Two texts are two ids; all else here is one.
                let is_text = |column: &str, value: &str| {
                    column == "TEXT" || (column == "BLOB" && value.starts_with('\''))
                };
                let texts = is_text(of_request, request) && is_text(of_effect, effect);
                let two = texts && (request.contains(".0") || effect.contains(".0"));
                assert_eq!(one, !two, "{what}");
            }
        }
    }
}

#[test]
fn an_effect_under_a_text_and_one_under_its_bytes_are_two_of_one_request() {
    let dir = tempfile::tempdir().unwrap();
    for journal in ["WAL", "DELETE"] {
        let r = verify(
            &made(dir.path(), journal, "INSERT INTO tickets VALUES ('T-9', x'62', 'again', 'x')"),
            &[],
        );
        assert_eq!(problems(&r), ["duplicate_effect/error: b"], "{}", r.all());
    }
}
