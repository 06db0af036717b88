//! Numbers that stand together are of one moment, or say that they are about so much: a writer that adds a request and
//! its ticket in one transaction, again and again, and readers that must never see more of one than of the other.

use crate::ledger_read::DDL;
use redial::inspect::Inspector;
use redial::inspect::list::Overview;
use redial::judge::Rules;
use redial::judge::verify::Expected;
use redial::ledger::Ledger;
use redial::ledger::trouble::Trouble;
use redial::time::Time;
use rusqlite::Connection;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

fn made(folder: &Path, journal: &str, rows: u64) -> PathBuf {
    let path = folder.join("ledger.db");
    Connection::open(&path)
        .unwrap()
        .execute_batch(&format!(
            "PRAGMA journal_mode={journal}; {DDL} BEGIN;
             WITH RECURSIVE c(i) AS (SELECT 1 UNION ALL SELECT i+1 FROM c WHERE i < {rows})
             INSERT INTO requests SELECT 'r-'||i, 'h'||i, 'done', '{{}}', 'o', 1.0 + i FROM c;
             INSERT INTO tickets SELECT 'T-'||rowid, request_id, 'ticket '||rowid, 'x' FROM requests; COMMIT;"
        ))
        .unwrap();
    path
}

/// Ends the writer, also when a check fails.
struct Ending<'a>(&'a AtomicBool);

impl Drop for Ending<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

fn write(path: &Path, stop: &AtomicBool, written: &AtomicU64) {
    let db = Connection::open(path).unwrap();
    db.busy_timeout(Duration::from_secs(20)).unwrap();
    while !stop.load(Ordering::Relaxed) {
        let n = written.fetch_add(1, Ordering::Relaxed);
        db.execute_batch(&format!(
            "BEGIN IMMEDIATE; INSERT INTO requests VALUES ('w-{n}', 'w{n}', 'done', '{{}}', 'o', 9.0);
             INSERT INTO tickets VALUES ('W-{n}', 'w-{n}', 'label {n}', 'x'); COMMIT"
        ))
        .unwrap();
    }
}

async fn read(path: &Path, inspector: &Inspector, wal: bool) {
    let overview = overview(inspector).await;
    let counts = inspector.counts(&inspector.judging(overview).await, Time::now());
    let line = counts.headline();
    assert!(counts.about || counts.effects == Some(counts.rows), "{}: {line}", path.display());
    assert!(!(wal && counts.about), "one read of a WAL is one moment: {line}");
    assert_eq!(counts.about, line.starts_with("about "), "{line}");
    assert_eq!(counts.states.values().sum::<u64>() + counts.not_judged, counts.rows, "{line}");
    let (totals, v, _) = inspector.verify_with(&Expected::default(), false, true).await.unwrap();
    let requests: u64 = totals.requests.values().sum();
    assert!(!totals.one_moment || totals.effects == Some(requests), "{}", v.sentence);
    assert!(totals.one_moment || v.sentence.starts_with("can't say"), "{}", v.sentence);
    assert!(totals.one_moment || !wal, "{}", v.sentence);
    assert!(v.passes(), "{:?}", v.problems);
    let one = inspector.request("r-1", None).await;
    assert!(one.effects_total.is_some_and(|n| n >= counts.rows || counts.about));
}

/// In rollback mode a writer without a pause can keep a reader out for a while, which is told and no fault: asked again.
async fn overview(inspector: &Inspector) -> Overview {
    for _ in 0..50 {
        match inspector.overview(|| async {}).await {
            Err(e) if matches!(e.trouble, Trouble::Locked { .. }) => {}
            read => return read.unwrap(),
        }
    }
    panic!("locked every time");
}

fn reads(journal: &str, rows: u64, times: usize) {
    let dir = tempfile::tempdir().unwrap();
    let path = made(dir.path(), journal, rows);
    let inspector = Inspector::new(Some(Ledger::open(&path)), None, Rules::default());
    let (stop, written) = (AtomicBool::new(false), AtomicU64::new(0));
    std::thread::scope(|scope| {
        let ending = Ending(&stop);
        scope.spawn(|| write(&path, &stop, &written));
        crate::support::until("the writer writes", || {
            (written.load(Ordering::Relaxed) > 3).then_some(())
        });
        let reading = async {
            for _ in 0..times {
                read(&path, &inspector, journal == "WAL").await;
            }
        };
        tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .unwrap()
            .block_on(reading);
        drop(ending);
    });
}

#[test]
fn beside_a_busy_writer_the_numbers_of_a_small_ledger_are_of_one_moment() {
    reads("WAL", 200, 10);
    reads("DELETE", 200, 10);
}

#[test]
fn beside_a_busy_writer_the_numbers_of_a_large_ledger_are_of_one_moment_or_about() {
    reads("WAL", 60_000, 2);
    reads("DELETE", 60_000, 2);
}
