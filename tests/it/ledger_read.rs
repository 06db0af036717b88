//! Reading a ledger leaves no trace, and says in words what is wrong with a file.

use super::ledger_live::{Helper, child};
use redial::error::{Error, Exit};
use redial::ledger::{Ledger, LedgerError, Loose, LooseScan, Mode, Reader, Survey, Trouble};
use rusqlite::Connection;
use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

pub const DDL: &str = "
    CREATE TABLE IF NOT EXISTS requests(request_id TEXT PRIMARY KEY, args_hash TEXT NOT NULL, status TEXT NOT NULL,
        result TEXT, owner TEXT NOT NULL, claimed_at REAL NOT NULL);
    CREATE TABLE IF NOT EXISTS tickets(ticket_id TEXT PRIMARY KEY, request_id TEXT NOT NULL UNIQUE,
        title TEXT NOT NULL, body TEXT NOT NULL);";

/// Name → (bytes, mtime, mode) of everything in a folder.
pub type Listing = BTreeMap<String, (Vec<u8>, i64, i64, u32)>;

pub fn listing(folder: &Path) -> Listing {
    let entries = fs::read_dir(folder).unwrap().map(|e| {
        let e = e.unwrap();
        let m = e.metadata().unwrap();
        let bytes = fs::read(e.path()).unwrap_or_default();
        (e.file_name().into_string().unwrap(), (bytes, m.mtime(), m.mtime_nsec(), m.mode()))
    });
    entries.collect()
}

/// The ledger left by four SIGKILLs: five of its rows are only in the -wal.
pub fn night(folder: &Path) -> PathBuf {
    let fixture = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/ledger/night");
    for name in ["ledger.db", "ledger.db-wal"] {
        fs::copy(fixture.join(name), folder.join(name)).unwrap();
    }
    folder.join("ledger.db")
}

fn folder() -> tempfile::TempDir {
    tempfile::tempdir().unwrap()
}

fn make(path: &Path, sql: &str) {
    Connection::open(path).unwrap().execute_batch(sql).unwrap();
}

/// `n` done requests with a ticket each.
fn filled(path: &Path, journal: &str, n: u32) {
    make(
        path,
        &format!(
            "PRAGMA journal_mode={journal}; PRAGMA synchronous=OFF; {DDL} BEGIN;
             WITH RECURSIVE c(i) AS (SELECT 1 UNION ALL SELECT i+1 FROM c WHERE i < {n})
             INSERT INTO requests SELECT 'r-'||i, printf('%064x', i), 'done', '{{}}', 'o', 1795963550.0 + i FROM c;
             INSERT INTO tickets SELECT 'T-'||rowid, request_id, 'title', 'body' FROM requests ORDER BY rowid; COMMIT;"
        ),
    );
}

type Job = (&'static str, fn(&Reader<'_>) -> Result<usize, LedgerError>);

/// Every kind of question, with the answer's size on the night ledger.
const JOBS: &[Job] = &[
    ("counts", |r| Ok(r.counts()?.rows as usize)),
    ("newest", |r| Ok(r.newest(None, 100)?.len())),
    ("newer", |r| Ok(r.newer(0, 100)?.len())),
    ("row", |r| Ok(usize::from(r.row("night-006")?.is_some()))),
    ("unfinished", |r| Ok(r.unfinished(10)?.len())),
    ("owners", |r| Ok(r.owners()?.len())),
    ("same_hash_groups", |r| Ok(r.same_hash_groups(10)?.len())),
    ("duplicate_effects", |r| Ok(r.duplicate_effects(10)?.len())),
    ("loose", |r| Ok(r.loose(10)?.lost.list.len())),
    ("done_bare", |r| Ok(r.done_bare(10)?.list.len())),
    ("effects_total", |r| Ok(r.effects_total()? as usize)),
];
const NIGHT: &[usize] = &[7, 7, 7, 1, 2, 4, 1, 0, 0, 0, 5];

#[test]
fn the_night_ledger_is_read_and_stays_as_it_was() {
    let dir = folder();
    let path = night(dir.path());
    let before = listing(dir.path());
    let ledger = Ledger::open(&path);
    for ((what, job), want) in JOBS.iter().zip(NIGHT) {
        assert_eq!(ledger.read(*job).unwrap(), *want, "{what}");
        let mut after = listing(dir.path());
        // What SQLite needs beside a -wal.
        after.remove("ledger.db-shm");
        assert_eq!(after, before, "after {what}");
    }
    let how = ledger.read(|r| Ok(r.how())).unwrap();
    assert_eq!((how.mode, how.wal_absent, how.whole), (Mode::ReadOnly, false, true));
    assert_eq!(how.warnings, Vec::<String>::new());
}

#[test]
fn the_night_ledger_says_what_happened() {
    let dir = folder();
    let ledger = Ledger::open(night(dir.path()));
    ledger
        .read(|r| {
            let counts = r.counts()?;
            assert_eq!(
                counts.by_status,
                BTreeMap::from([("done".into(), 5), ("running".into(), 2)])
            );
            assert_eq!(r.effects_noun(), "tickets");
            let ids: Vec<_> = r.newest(None, 3)?.into_iter().map(|r| r.request_id).collect();
            assert_eq!(ids, ["night-007", "night-006", "night-005"], "newest first by rowid");
            let older: Vec<_> = r.newest(Some(3), 9)?.into_iter().map(|r| r.rowid).collect();
            assert_eq!(older, [2, 1]);
            let newer: Vec<_> = r.newer(3, 2)?.into_iter().map(|r| r.rowid).collect();
            assert_eq!(newer, [5, 4], "the next ones, not the newest ones");

            let row = r.row("night-004")?.unwrap();
            assert_eq!(row.claimed_at.unwrap().rfc3339(), "2026-11-29T14:45:57.834Z");
            assert_eq!(row.effects[0].key, "T-0967b8e2");
            assert_eq!(row.effects[0].label, "在庫差異 倉庫B");
            let body = ("body".to_owned(), "\"数量が合わない\"".to_owned());
            assert!(row.effects[0].columns.contains(&body));
            assert_eq!(r.row("night-404")?, None);
            assert_eq!(r.row("NIGHT-004")?, None);

            let first = r.row("night-001")?.unwrap();
            let twins = r.twins(first.args_hash.as_deref().unwrap(), "night-001", 10)?;
            assert_eq!(twins.iter().map(|t| &*t.request_id).collect::<Vec<_>>(), ["night-006"]);
            assert_eq!(r.equal_hashes(0)?.total, 1);

            let owners = r.owners()?;
            assert_eq!(Some(&owners[0].owner), r.row("night-007")?.unwrap().owner.as_ref());
            assert_eq!(owners.iter().map(|o| o.rows).collect::<Vec<_>>(), [1, 2, 1, 3]);
            assert!(owners.windows(2).all(|w| w[1].last < w[0].first), "one process after another");
            Ok(())
        })
        .unwrap();
}

#[test]
fn each_journal_mode_is_read_its_own_way_and_leaves_nothing() {
    for (journal, mode) in
        [("WAL", Mode::Immutable), ("DELETE", Mode::Pieces), ("PERSIST", Mode::Pieces)]
    {
        let dir = folder();
        let path = dir.path().join("odd name?#%.db");
        filled(&path, journal, 5000);
        let before = listing(dir.path());
        let ledger = Ledger::open(&path);
        let (counts, how) = ledger.read(|r| Ok((r.counts()?, r.how()))).unwrap();
        assert_eq!((counts.rows, counts.effects, how.mode), (5000, 5000, mode), "{journal}");
        for (what, job) in JOBS {
            ledger.read(*job).unwrap_or_else(|e| panic!("{journal} {what}: {e}"));
        }
        assert_eq!(listing(dir.path()), before, "{journal}");
        assert_eq!(how.wal_absent, journal == "WAL");
        assert_eq!(how.infos.iter().any(|i| i.contains("odd name?#%.db-wal")), journal == "WAL");
    }
}

#[test]
fn a_copy_without_its_wal_shows_less_and_says_why_that_may_be() {
    let dir = folder();
    let path = night(dir.path());
    fs::remove_file(dir.path().join("ledger.db-wal")).unwrap();
    let before = listing(dir.path());
    let ledger = Ledger::open(&path);
    for _ in 0..2 {
        let (counts, how) = ledger.read(|r| Ok((r.counts()?, r.how()))).unwrap();
        assert!(counts.rows < 7 || counts.by_status.get("running") > Some(&2), "{counts:?}");
        assert!(how.wal_absent && how.infos.iter().any(|i| i.contains("ledger.db-wal")));
        assert_eq!(how.warnings, Vec::<String>::new(), "no other evidence speaks against it");
        assert_eq!(
            listing(dir.path()),
            before,
            "no new -wal that would hide it at the second look"
        );
    }
}

#[test]
fn through_a_symbolic_link_the_wal_is_found_where_the_file_is() {
    let dir = folder();
    let path = night(dir.path());
    let elsewhere = folder();
    let link = elsewhere.path().join("link.db");
    std::os::unix::fs::symlink(path, &link).unwrap();
    assert_eq!(Ledger::open(&link).read(|r| r.counts()).unwrap().rows, 7);
    assert_eq!(fs::read_dir(elsewhere.path()).unwrap().count(), 1);
}

#[test]
fn a_hot_journal_is_rolled_back_in_a_copy_only() {
    for journal in ["DELETE", "PERSIST"] {
        let dir = folder();
        let path = dir.path().join("ledger.db");
        filled(&path, journal, 50);
        // As a writer killed in mid-transaction leaves it: pages already in the file, journal beside it.
        let hot = folder();
        let (file, left) = (hot.path().join("ledger.db"), hot.path().join("ledger.db-journal"));
        {
            let conn = Connection::open(&path).unwrap();
            conn.execute_batch(
                "PRAGMA cache_size = 1; PRAGMA cache_spill = 1; BEGIN IMMEDIATE;
                 WITH RECURSIVE c(i) AS (SELECT 1 UNION ALL SELECT i+1 FROM c WHERE i < 3000)
                 INSERT INTO requests SELECT 'ghost-'||i, 'h', 'done', NULL, 'o', 1.0 FROM c;",
            )
            .unwrap();
            fs::copy(&path, &file).unwrap();
            fs::copy(dir.path().join("ledger.db-journal"), &left).unwrap();
        }
        assert!(fs::metadata(&file).unwrap().len() > 100_000, "the uncommitted rows were spilled");
        let before = listing(hot.path());
        let ledger = Ledger::open(&file);
        for _ in 0..2 {
            let (counts, how) = ledger.read(|r| Ok((r.counts()?, r.how()))).unwrap();
            assert_eq!((counts.rows, how.mode), (50, Mode::PrivateCopy));
            assert!(how.infos.iter().any(|i| i.contains("ledger.db-journal")), "{:?}", how.infos);
        }
        assert_eq!(ledger.read(|r| r.row("ghost-1")).unwrap(), None);
        assert_eq!(listing(hot.path()), before);
        drop(ledger);
        // The next writer rolls it back in place; the ledger is then read directly.
        make(&file, "DELETE FROM requests WHERE request_id = 'r-1'");
        let (counts, how) = Ledger::open(&file).read(|r| Ok((r.counts()?, r.how()))).unwrap();
        assert_eq!((counts.rows, how.mode), (49, Mode::Pieces));
    }
}

#[test]
fn what_is_no_ledger_is_said_in_words_with_exit_status_6() {
    let dir = folder();
    let at = |name: &str| dir.path().join(name);
    fs::write(at("empty.db"), "").unwrap();
    fs::write(at("left.db"), "").unwrap();
    fs::write(at("left.db-wal"), [7; 90]).unwrap();
    fs::write(at("notes.txt"), "dear diary\n").unwrap();
    fs::write(at("short.db"), b"SQLite format 3\0").unwrap();
    fs::write(at("noise.db"), [0x9c; 4096]).unwrap();
    fs::write(at("zeros.db"), [0; 4096]).unwrap();
    fs::create_dir(at("folder")).unwrap();
    make(&at("none.db"), "PRAGMA user_version = 1");
    make(
        &at("foreign.db"),
        "CREATE TABLE jobs(id INTEGER PRIMARY KEY, state TEXT); CREATE TABLE logs(line)",
    );
    night(dir.path());
    rustix::fs::mknodat(
        rustix::fs::CWD,
        at("pipe"),
        rustix::fs::FileType::Fifo,
        rustix::fs::Mode::from_raw_mode(0o600),
        0,
    )
    .unwrap();
    let before = listing_but_pipe(dir.path());
    for (name, word) in [
        ("absent.db", "there is no "),
        ("empty.db", "is empty (0 bytes)"),
        ("left.db", "a left.db-wal of 90 bytes"),
        ("notes.txt", "its first bytes are text"),
        ("short.db", "breaks off"),
        ("noise.db", "not a SQLite database"),
        ("zeros.db", "are zeros"),
        ("folder", "is a folder"),
        ("pipe", "is a pipe"),
        ("none.db", "holds no table yet"),
        ("foreign.db", "found jobs(id, state), logs(line)"),
        ("ledger.db-wal", "is only a part of"),
    ] {
        let error: Error = Ledger::open(at(name)).read(|r| r.counts()).unwrap_err().into();
        assert_eq!(error.exit, Exit::Ledger, "{name}");
        assert!(error.what.contains(word), "{name}: {error}");
        assert!(error.hint.is_some_and(|h| !h.is_empty()), "{name}");
    }
    assert_eq!(listing_but_pipe(dir.path()), before);
}

fn listing_but_pipe(folder: &Path) -> Vec<(String, u64, i64)> {
    let mut all: Vec<_> = fs::read_dir(folder)
        .unwrap()
        .map(|e| {
            let e = e.unwrap();
            let m = e.metadata().unwrap();
            (e.file_name().into_string().unwrap(), m.len(), m.mtime_nsec())
        })
        .collect();
    all.sort();
    all
}

#[test]
fn a_foreign_table_with_a_request_id_and_a_status_is_read_with_what_it_has() {
    let dir = folder();
    let path = dir.path().join("w.db");
    make(
        &path,
        "CREATE TABLE work(Request_Id BLOB, status, worker_pid INT, started_at TEXT, tool TEXT);
         INSERT INTO work VALUES (x'ff00', 'done', 7, '2026-11-29 14:45:50', 't'), (12, 'WEIRD', NULL, 'soon', NULL),
                                 ('txt', NULL, 9, 1795963550, 't'), (NULL, 'running', 9, NULL, 't'),
                                 (CAST(x'61ff62' AS TEXT), 'running', 9, NULL, 't');",
    );
    Ledger::open(&path)
        .read(|r| {
            assert!(!r.has_effects_table());
            assert_eq!(r.done_bare(9)?.total, 0);
            let blob = r.row("x'ff00'")?.unwrap();
            assert_eq!(blob.owner.as_deref(), Some("7"));
            assert_eq!(blob.claimed_at.unwrap().rfc3339(), "2026-11-29T14:45:50.000Z");
            let number = r.row("12")?.unwrap();
            assert_eq!((&*number.status, number.claimed_at), ("WEIRD", None));
            assert_eq!(r.row("txt")?.unwrap().status, "");
            let unfinished: Vec<_> = r.unfinished(9)?.into_iter().map(|r| r.request_id).collect();
            assert_eq!(unfinished, ["x'61ff62'", "", "txt", "12"]);
            Ok(())
        })
        .unwrap();
}

#[test]
fn a_table_without_rowids_is_read_in_the_order_of_its_claims() {
    let dir = folder();
    let path = dir.path().join("w.db");
    make(
        &path,
        "CREATE TABLE requests(request_id TEXT PRIMARY KEY, status TEXT, claimed_at REAL) WITHOUT ROWID;
         CREATE TABLE effects(request_id TEXT, n INT, PRIMARY KEY(request_id, n)) WITHOUT ROWID;
         INSERT INTO requests VALUES ('z', 'done', 1), ('a', 'running', 3), ('m', 'done', 2);
         INSERT INTO effects VALUES ('z', 1), ('z', 2), ('gone', 1);",
    );
    Ledger::open(&path)
        .read(|r| {
            let window = r.newest(None, 2)?;
            assert_eq!(window.iter().map(|r| &*r.request_id).collect::<Vec<_>>(), ["a", "m"]);
            let older = r.newest(Some(window[1].rowid), 9)?;
            assert_eq!(older[0].request_id, "z");
            assert_eq!(older[0].effects.len(), 2);
            assert_eq!(r.newer(older[0].rowid, 1)?[0].request_id, "m");
            assert_eq!(r.unfinished(9)?[0].request_id, "a");
            assert_eq!(r.duplicate_effects(9)?, [("z".to_owned(), 2)]);
            assert_eq!(r.done_bare(9)?.list, ["m"]);
            let loose = r.loose(9)?;
            assert_eq!((loose.lost.total, loose.purged.total), (1, 0), "its order says nothing");
            Ok(())
        })
        .unwrap();
}

#[test]
fn swept_requests_are_told_from_lost_ones() {
    for journal in ["WAL", "DELETE"] {
        let dir = folder();
        let path = dir.path().join("ledger.db");
        filled(&path, journal, 10_000);
        make(
            &path,
            "DELETE FROM requests WHERE rowid <= 3000 OR rowid = 7000; DELETE FROM tickets WHERE rowid = 9000",
        );
        Ledger::open(&path)
            .read(|r| {
                let Loose { lost, purged, nameless, .. } = r.loose(2)?;
                assert_eq!(nameless, 0);
                assert_eq!((lost.list, lost.total), (vec!["r-7000".to_owned()], 1));
                assert_eq!((purged.list.len(), purged.total), (2, 3000));
                // The same in pieces, wherever they end.
                for budget in [1_000, 999, 20_000] {
                    let mut scan = LooseScan::default();
                    while !scan.complete {
                        r.loose_step(&mut scan, 2, budget)?;
                    }
                    assert_eq!(scan.found(), r.loose(2)?, "{budget}");
                }
                for (id, swept) in [("r-3000", true), ("r-7000", false)] {
                    assert_eq!(r.may_be_swept(&r.effects_of(id)?)?, swept, "{id}");
                }
                assert_eq!(r.done_bare(9)?.list, ["r-9000"]);
                assert_eq!(r.effects_of("r-7000")?.len(), 1);
                Ok(())
            })
            .unwrap();
    }
}

/// Numbers of the leaf pages (0x0d begins one) of the table whose rows hold `word`.
fn leaves(bytes: &[u8], word: &[u8]) -> Vec<usize> {
    let is = |p: &[u8]| p[0] == 0x0d && p.windows(word.len()).any(|w| w == word);
    bytes.chunks(4096).enumerate().filter(|(_, p)| is(p)).map(|(i, _)| i).collect()
}

fn break_page(bytes: &mut [u8], page: usize) {
    bytes[page * 4096..page * 4096 + 200].fill(0xee);
}

#[test]
fn damaged_pages_cost_their_rows_and_no_more() {
    let dir = folder();
    let path = dir.path().join("ledger.db");
    filled(&path, "DELETE", 3000);
    let mut bytes = fs::read(&path).unwrap();
    let pages = leaves(&bytes, b"done");
    break_page(&mut bytes, pages[0]);
    break_page(&mut bytes, pages[pages.len() / 2]);
    fs::write(&path, &bytes).unwrap();
    let before = listing(dir.path());
    let ledger = Ledger::open(&path);
    let (counts, how, kept) = ledger
        .read(|r| {
            let kept: Vec<i64> = r.newest(None, 3000)?.iter().map(|r| r.rowid).collect();
            Ok((r.counts()?, r.how(), kept))
        })
        .unwrap();
    assert_eq!(kept.len() as u64, counts.rows);
    let lost: Vec<i64> = (1..=3000).filter(|n| !kept.contains(n)).collect();
    let runs = lost.windows(2).filter(|w| w[1] != w[0] + 1).count() + 1;
    assert_eq!(runs, 2, "what lies on the two pages, and nothing beside: {lost:?}");
    assert!(lost.len() < 100, "{lost:?}");
    assert_eq!(how.unreadable, lost.len() as u64, "the index knows how many there were");
    let words = format!("at least {} rows of requests", lost.len());
    assert!(how.warnings.iter().any(|w| w.contains(&words)), "{how:?}");

    let readable = format!("r-{}", kept[0]);
    assert_eq!(ledger.read(move |r| r.row(&readable)).unwrap().unwrap().effects.len(), 1);
    let gone = format!("r-{}", lost[0]);
    let error = ledger.read(move |r| r.row(&gone)).unwrap_err();
    assert!(matches!(error.trouble, Trouble::RowLost { .. }), "not the same as no row: {error:?}");
    assert_eq!(ledger.read(|r| r.loose(9)).unwrap().lost.total, 0);
    assert_eq!(listing(dir.path()), before);
}

#[test]
fn damaged_effects_prove_nothing_about_done_requests() {
    let dir = folder();
    let path = dir.path().join("ledger.db");
    filled(&path, "WAL", 3000);
    let mut bytes = fs::read(&path).unwrap();
    let pages = leaves(&bytes, b"titlebody");
    break_page(&mut bytes, pages[pages.len() / 2]);
    fs::write(&path, &bytes).unwrap();
    let (bare, has, how) = Ledger::open(&path)
        .read(|r| {
            // Effects whose column values are asked for: the index alone is whole.
            r.newest(None, 3000)?;
            Ok((r.done_bare(9)?.total, r.has_effects_table(), r.how()))
        })
        .unwrap();
    assert_eq!((bare, has), (0, false));
    assert!(how.warnings.iter().any(|w| w.contains("rows of tickets")), "{how:?}");
}

#[test]
fn a_copy_that_broke_off_gives_what_it_has() {
    let dir = folder();
    let path = dir.path().join("ledger.db");
    filled(&path, "WAL", 3000);
    let whole = fs::read(&path).unwrap();
    fs::write(&path, &whole[..whole.len() / 2]).unwrap();
    let (counts, how) = Ledger::open(&path).read(|r| Ok((r.counts()?, r.how()))).unwrap();
    assert!(counts.rows > 0 && counts.rows < 3000, "{counts:?}");
    assert!(how.unreadable > 0);
    assert!(how.warnings[0].contains(&format!("should have {}", whole.len())), "{how:?}");
    // Nothing but the header: nothing to read.
    fs::write(&path, &whole[..100]).unwrap();
    let error = Ledger::open(&path).read(|r| r.counts()).unwrap_err();
    assert!(matches!(error.trouble, Trouble::HalfCopied { has: 100, .. }), "{error:?}");
}

#[test]
fn a_locked_ledger_says_for_how_long() {
    let dir = folder();
    let path = dir.path().join("ledger.db");
    filled(&path, "DELETE", 10);
    // Another process: locks of this one would be no obstacle to it.
    let holder = Helper::start("hold", &path);
    let ledger = Ledger::open(&path);
    let first = ledger.read(|r| r.counts()).unwrap_err();
    assert!(matches!(first.trouble, Trouble::Locked { .. }), "{first:?}");
    let second = ledger.read(|r| r.counts()).unwrap_err();
    let Trouble::Locked { for_s } = second.trouble else { panic!("{second:?}") };
    assert!(for_s >= 0.25, "{for_s}");
    holder.stop();
    assert_eq!(ledger.read(|r| r.counts()).unwrap().rows, 10);
}

#[test]
fn windows_of_many_rows_cost_their_own_length() {
    let dir = folder();
    let path = dir.path().join("ledger.db");
    filled(&path, "WAL", 200_000);
    make(&path, "UPDATE requests SET status='running' WHERE rowid IN (5, 199999)");
    let ledger = Ledger::open(&path);
    let start = Instant::now();
    let mut place = None;
    for _ in 0..50 {
        place = ledger.read(move |r| Ok(r.newest(place, 60)?.last().map(|r| r.rowid))).unwrap();
    }
    assert_eq!(place, Some(200_000 - 50 * 60 + 1));
    let middle = ledger.read(|r| Ok(r.newer(100_000, 60)?.last().map(|r| r.rowid))).unwrap();
    assert_eq!(middle, Some(100_001));
    assert!(start.elapsed() < Duration::from_secs(2), "{:?}", start.elapsed());

    // The background scan, a piece for each read.
    let mut pass = Survey::keeping(10);
    while !pass.complete {
        pass = ledger
            .read(move |r| {
                let mut pass = pass.clone();
                r.survey(&mut pass, 30_000)?;
                Ok(pass)
            })
            .unwrap();
    }
    assert_eq!(pass.rows, 200_000);
    assert_eq!(pass.unfinished.iter().map(|r| r.rowid).collect::<Vec<_>>(), [199_999, 5]);
}

#[test]
fn a_moved_over_ledger_is_noticed() {
    let dir = folder();
    let path = dir.path().join("ledger.db");
    filled(&path, "DELETE", 3);
    let ledger = Ledger::open(&path);
    assert_eq!(ledger.read(|r| r.counts()).unwrap().rows, 3);
    let stamp = ledger.stamp();
    filled(&dir.path().join("other.db"), "DELETE", 8);
    fs::rename(dir.path().join("other.db"), &path).unwrap();
    assert_ne!(ledger.stamp(), stamp);
    // Whoever reads first is not the only one who is told.
    for _ in 0..2 {
        let (counts, how) = ledger.read(|r| Ok((r.counts()?, r.how()))).unwrap();
        assert_eq!(counts.rows, 8);
        assert!(how.warnings.iter().any(|w| w.contains("another file")), "{how:?}");
    }
}

/// What happened to a ledger between two reads, and whether the second one is of another life of it.
#[test]
fn a_ledger_that_was_replaced_is_another_one_and_a_used_one_is_not() {
    type Act = fn(&Path, &Path);
    let insert = |path: &Path, id: &str| {
        make(path, &format!("INSERT INTO requests VALUES('{id}','h','running',NULL,'A',1.0)"));
    };
    let cases: &[(&str, bool, Act)] = &[
        ("moved over", true, |path, backup| fs::rename(backup, path).unwrap()),
        ("copied over", true, |path, backup| fs::write(path, fs::read(backup).unwrap()).unwrap()),
        // As a restore through SQLite does; a harmless change of the schema is taken for one.
        ("another schema version", true, |path, _| {
            make(path, "CREATE INDEX by_owner ON requests(owner)");
        }),
        ("vacuumed into another and moved", true, |path, _| {
            let new = path.with_extension("new");
            make(path, &format!("VACUUM INTO '{}'", new.display()));
            fs::rename(new, path).unwrap();
        }),
        ("left alone", false, |_, _| {}),
        ("written to", false, |path, _| {
            make(path, "INSERT INTO requests VALUES('more','h','done','{}','A',2.0)");
        }),
        ("a row taken back", false, |path, _| make(path, "DELETE FROM requests WHERE owner='A'")),
        ("checkpointed", false, |path, _| make(path, "PRAGMA wal_checkpoint(TRUNCATE)")),
    ];
    for mode in ["WAL", "DELETE"] {
        for (what, another, act) in cases {
            let dir = folder();
            let (path, backup) = (dir.path().join("ledger.db"), dir.path().join("backup.db"));
            filled(&path, mode, 3);
            fs::copy(&path, &backup).unwrap();
            insert(&path, "newer");
            let ledger = Ledger::open(&path);
            let first = ledger.read(|r| r.counts()).unwrap();
            assert_eq!((first.rows, ledger.life()), (4, 0));
            // Times of one clock tick can't be told apart.
            while ledger.stamp().is_fresh() {
                std::thread::yield_now();
            }
            ledger.read(|r| r.counts()).unwrap();
            act(&path, &backup);
            ledger.read(|r| r.counts()).unwrap();
            assert_eq!(ledger.life() > 0, *another, "{what}, {mode}");
        }
    }
}

#[tokio::test]
async fn what_was_seen_in_a_replaced_ledger_proves_nothing() {
    use redial::inspect::Inspector;
    use redial::judge::Rules;
    let dir = folder();
    let (path, backup) = (dir.path().join("ledger.db"), dir.path().join("backup.db"));
    filled(&path, "WAL", 3);
    fs::copy(&path, &backup).unwrap();
    make(&path, "INSERT INTO requests VALUES('newer','h','running',NULL,'A',1.0)");
    let inspector = Inspector::new(Some(Ledger::open(&path)), None, Rules::default());
    assert!(inspector.request("newer", None).await.facts.row.is_some());
    fs::rename(&backup, &path).unwrap();
    let now = inspector.request("newer", None).await.facts;
    assert_eq!(
        (now.row, now.row_vanished_at),
        (None, None),
        "it was not released: it never was here"
    );
    // In the same file it would have been.
    make(&path, "INSERT INTO requests VALUES('gone','h','running',NULL,'A',1.0)");
    assert!(inspector.request("gone", None).await.facts.row.is_some());
    make(&path, "DELETE FROM requests WHERE request_id='gone'");
    assert!(inspector.request("gone", None).await.facts.row_vanished_at.is_some());
}

#[tokio::test]
async fn a_watcher_hears_of_changes() {
    let dir = folder();
    let path = dir.path().join("ledger.db");
    filled(&path, "DELETE", 3);
    let ledger = Ledger::open(&path);
    let mut changes = ledger.watch();
    // The file was made just now: told once more, in case more came within the same clock tick.
    tokio::time::timeout(Duration::from_secs(5), changes.changed()).await.unwrap().unwrap();
    let quiet = tokio::time::timeout(Duration::from_millis(300), changes.changed()).await;
    assert!(quiet.is_err(), "nothing changes, nothing is told");
    make(&path, "UPDATE requests SET status = 'running' WHERE rowid = 1");
    tokio::time::timeout(Duration::from_secs(5), changes.changed()).await.unwrap().unwrap();
    let counts = ledger.read_async(|r| r.counts()).await.unwrap();
    assert_eq!(counts.by_status.get("running"), Some(&1));
}

#[test]
fn private_copies_are_private_and_go_with_the_handle() {
    let dir = folder();
    let path = night(dir.path());
    // WAL mode, and a -journal but no -wal: no open of the file itself would be without a trace.
    fs::write(dir.path().join("ledger.db-journal"), "").unwrap();
    fs::remove_file(dir.path().join("ledger.db-wal")).unwrap();
    let before = listing(dir.path());
    // In a process with a temporary folder of its own, so that nothing else is there.
    let temp = folder();
    let out = child("copy", &path).env("TMPDIR", temp.path()).output().unwrap();
    let said = String::from_utf8_lossy(&out.stdout).into_owned();
    assert!(said.contains("copy in a folder of mode 700"), "{said}");
    assert_eq!(fs::read_dir(temp.path()).unwrap().count(), 0);
    assert_eq!(listing(dir.path()), before);
}
