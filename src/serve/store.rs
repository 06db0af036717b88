//! The ledger of the reference server (the Qiita article on retry-safe MCP servers, its `ledger.py`), statement
//! for statement: claim by primary key, takeover, effect and completion in one transaction, waiting, release.
//! A Python server and this one can share a file; each finishes or replays what the other claimed.
//!
//! Blocks, and opens a connection for each call, as the reference does. Knows nothing of tools or JSON-RPC.

use super::faults::{Faults, KillPoint};
use super::stop::{Stop, Stopped};
use crate::files;
use crate::json::python::python_dumps;
use crate::json::raw::{is_object, quote};
use crate::ledger::hash::{HashError, args_hash};
use crate::time::Time;
use rusqlite::{Connection, ErrorCode, OptionalExtension, TransactionBehavior, params};
use std::path::PathBuf;
use std::time::{Duration, Instant};

/// A `running` row older than this may be taken over by its own owner too (`STALE_SECONDS`).
const STALE_SECONDS: f64 = 120.0;
/// Between two looks at a request that another call carries out.
const POLL: Duration = Duration::from_millis(200);
/// How long a statement waits for another writer's lock.
const LOCK_WAIT: Duration = Duration::from_secs(10);

const SCHEMA: &str = "PRAGMA journal_mode=WAL;
CREATE TABLE IF NOT EXISTS requests(
    request_id TEXT PRIMARY KEY,
    args_hash  TEXT NOT NULL,
    status     TEXT NOT NULL,
    result     TEXT,
    owner      TEXT NOT NULL,
    claimed_at REAL NOT NULL);
CREATE TABLE IF NOT EXISTS tickets(
    ticket_id  TEXT PRIMARY KEY,
    request_id TEXT NOT NULL UNIQUE,
    title      TEXT NOT NULL,
    body       TEXT NOT NULL);";

/// The ledger and the one process that works on it through this value.
#[derive(Debug)]
pub struct Store {
    pub path: PathBuf,
    /// The boot id: who claims.
    pub owner: String,
    /// How long the work of a ticket takes.
    pub work: Duration,
    /// How long a call waits for another that carries out the same request.
    pub wait: Duration,
    /// Work on a ticket of this title fails, inside its transaction.
    pub fail_title: Option<String>,
    pub stop: Stop,
    /// Where it kills itself, if told to.
    pub faults: Faults,
}

/// Why a call has no result.
#[derive(Debug, thiserror::Error)]
pub enum Failure {
    #[error("request_id must have 1 to 64 characters")]
    BadRequestId,
    #[error("request_id {0} was already used with other arguments")]
    Conflict(String),
    #[error("the work failed: tickets with the title {0} are told to fail")]
    Work(String),
    #[error("the stored result of {0} can't be read as a JSON object")]
    StoredResult(String),
    #[error("the ledger: {0}")]
    Sqlite(#[from] rusqlite::Error),
    #[error("the arguments have no hash: {0}")]
    Hash(#[from] HashError),
    #[error("no randomness for a ticket id: {0}")]
    Random(#[from] getrandom::Error),
    #[error(transparent)]
    Stopped(#[from] Stopped),
}

fn is_busy(e: &rusqlite::Error) -> bool {
    e.sqlite_error_code() == Some(rusqlite::ErrorCode::DatabaseBusy)
}

impl Store {
    /// A new connection, with the tables there and WAL on.
    pub fn connect(&self) -> Result<Connection, rusqlite::Error> {
        // Opening a pipe would wait for its other end.
        if files::ordinary(&self.path).is_err() {
            let code = rusqlite::ffi::Error::new(rusqlite::ffi::SQLITE_CANTOPEN);
            return Err(rusqlite::Error::SqliteFailure(code, None));
        }
        let conn = Connection::open(&self.path)?;
        conn.busy_timeout(LOCK_WAIT)?;
        // Turning WAL on, and the recovery after a killed writer, answer "busy" at once, whatever the timeout is: several
        // servers that start on one fresh file meet each other there.
        let until = Instant::now() + LOCK_WAIT;
        loop {
            match conn.execute_batch(SCHEMA) {
                Err(e) if is_busy(&e) && Instant::now() < until => {
                    std::thread::sleep(Duration::from_millis(10));
                }
                done => return done.map(|()| conn),
            }
        }
    }

    /// Makes the ticket of this request, once: the result is a JSON object as Python spells it, with
    /// `replayed`, or says `in_progress`. Characters of the request_id are code points.
    pub fn create_ticket(
        &self,
        request_id: &str,
        title: &str,
        body: &str,
    ) -> Result<String, Failure> {
        if !(1..=64).contains(&request_id.chars().count()) {
            return Err(Failure::BadRequestId);
        }
        let hash =
            args_hash(&format!(r#"{{"title": {}, "body": {}}}"#, quote(title), quote(body)))?;
        let mut conn = self.connect()?;
        self.faults.reached(KillPoint::BeforeClaim);
        if self.claim(&conn, request_id, &hash)? {
            match self.work(&mut conn, request_id, title, body) {
                Ok(result) => return replayed(request_id, &result, false),
                // Another worker finished it first (a takeover while this one was at work).
                Err(Failure::Sqlite(e))
                    if e.sqlite_error_code() == Some(ErrorCode::ConstraintViolation) => {}
                // The end of the process is no failure of the work: the claim stays, as after a crash.
                Err(Failure::Stopped(s)) => return Err(s.into()),
                Err(failed) => {
                    conn.execute(
                        "DELETE FROM requests WHERE request_id = ? AND status = 'running' AND owner = ?",
                        params![request_id, self.owner],
                    )?;
                    return Err(failed);
                }
            }
        }
        match self.wait_done(&conn, request_id)? {
            Some(result) => replayed(request_id, &result, true),
            None => Ok(format!(
                r#"{{"request_id": {}, "status": "in_progress", "next": "look it up with find_request, then call again with the same request_id"}}"#,
                quote(request_id)
            )),
        }
    }

    /// What the ledger says of this request: done, running, abandoned or unknown.
    pub fn find_request(&self, request_id: &str) -> Result<String, Failure> {
        let row = self
            .connect()?
            .query_row(
                "SELECT status, result, owner FROM requests WHERE request_id = ?",
                [request_id],
                |r| {
                    Ok((
                        r.get::<_, String>(0)?,
                        r.get::<_, Option<String>>(1)?,
                        r.get::<_, String>(2)?,
                    ))
                },
            )
            .optional()?;
        let id = quote(request_id);
        let Some((status, result, owner)) = row else {
            return Ok(format!(r#"{{"request_id": {id}, "status": "unknown"}}"#));
        };
        // Of a process that was restarted: its owner can't come back.
        let status = if status == "running" && owner != self.owner { "abandoned" } else { &status };
        let result = match result.as_deref() {
            None | Some("") => "null".into(),
            Some(r) => {
                python_dumps(r, false, &[]).map_err(|_| Failure::StoredResult(request_id.into()))?
            }
        };
        Ok(format!(r#"{{"request_id": {id}, "status": {}, "result": {result}}}"#, quote(status)))
    }

    /// Whether this call carries the request out.
    fn claim(&self, conn: &Connection, request_id: &str, hash: &str) -> Result<bool, Failure> {
        let now = Time::now().seconds();
        let inserted = conn.execute(
            "INSERT INTO requests VALUES (?, ?, 'running', NULL, ?, ?)",
            params![request_id, hash, self.owner, now],
        );
        match inserted {
            Ok(_) => return Ok(true),
            Err(e) if e.sqlite_error_code() == Some(ErrorCode::ConstraintViolation) => {}
            Err(e) => return Err(e.into()),
        }
        let stored: Option<String> = conn
            .query_row("SELECT args_hash FROM requests WHERE request_id = ?", [request_id], |r| {
                r.get(0)
            })
            .optional()?;
        match stored {
            None => return Ok(false), // released between the two statements
            Some(stored) if stored != hash => return Err(Failure::Conflict(request_id.into())),
            Some(_) => {}
        }
        // The condition is in the statement, so of several calls one takes over.
        let taken = conn.execute(
            "UPDATE requests SET owner = ?, claimed_at = ? \
             WHERE request_id = ? AND status = 'running' AND (owner <> ? OR claimed_at < ?)",
            params![self.owner, now, request_id, self.owner, now - STALE_SECONDS],
        )?;
        Ok(taken == 1)
    }

    /// The work, then its effect and its completion in one transaction.
    fn work(
        &self,
        conn: &mut Connection,
        request_id: &str,
        title: &str,
        body: &str,
    ) -> Result<String, Failure> {
        self.stop.pause(self.work / 2)?;
        self.faults.reached(KillPoint::DuringWork);
        self.stop.pause(self.work - self.work / 2)?;
        let uuid = super::uuid_hex()?;
        let ticket_id = format!("T-{}", &uuid[..8]);
        let result =
            format!(r#"{{"ticket_id": {}, "title": {}}}"#, quote(&ticket_id), quote(title));
        let tx = conn.transaction_with_behavior(TransactionBehavior::Immediate)?;
        tx.execute(
            "INSERT INTO tickets VALUES (?, ?, ?, ?)",
            params![ticket_id, request_id, title, body],
        )?;
        if self.fail_title.as_deref() == Some(title) {
            return Err(Failure::Work(title.into()));
        }
        tx.execute(
            "UPDATE requests SET status = 'done', result = ? WHERE request_id = ?",
            params![result, request_id],
        )?;
        self.faults.reached(KillPoint::BeforeCommit);
        tx.commit()?;
        self.faults.reached(KillPoint::AfterCommit);
        Ok(result)
    }

    /// The stored result once another call has finished the request; `None` when it is gone, or the wait over.
    fn wait_done(&self, conn: &Connection, request_id: &str) -> Result<Option<String>, Failure> {
        let deadline = Instant::now() + self.wait;
        loop {
            let row: Option<(String, Option<String>)> = conn
                .query_row(
                    "SELECT status, result FROM requests WHERE request_id = ?",
                    [request_id],
                    |r| Ok((r.get(0)?, r.get(1)?)),
                )
                .optional()?;
            match row {
                None => return Ok(None),
                Some((status, result)) if status == "done" => {
                    return Ok(Some(result.unwrap_or_default()));
                }
                // At least one look, so that a finished request is replayed even with no time to wait.
                Some(_) if Instant::now() >= deadline => return Ok(None),
                Some(_) => self.stop.pause(POLL)?,
            }
        }
    }
}

/// Python's `{**result, "replayed": …}`.
fn replayed(request_id: &str, result: &str, replayed: bool) -> Result<String, Failure> {
    let fields = is_object(result)
        .then(|| python_dumps(result, false, &["replayed"]).ok())
        .flatten()
        .ok_or_else(|| Failure::StoredResult(request_id.into()))?;
    let fields = fields.strip_prefix('{').unwrap_or(&fields);
    let fields = fields.strip_suffix('}').unwrap_or(fields);
    let comma = if fields.is_empty() { "" } else { ", " };
    Ok(format!(r#"{{{fields}{comma}"replayed": {replayed}}}"#))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn store(dir: &tempfile::TempDir, owner: &str) -> Store {
        Store {
            path: dir.path().join("ledger.db"),
            owner: owner.into(),
            work: Duration::ZERO,
            wait: Duration::from_millis(300),
            fail_title: Some("fails".into()),
            stop: Stop::default(),
            faults: Faults::default(),
        }
    }

    fn status(s: &Store, request_id: &str) -> String {
        crate::json::raw::get_str(&s.find_request(request_id).unwrap(), "status").unwrap()
    }

    fn tickets(s: &Store) -> i64 {
        s.connect().unwrap().query_row("SELECT count(*) FROM tickets", [], |r| r.get(0)).unwrap()
    }

    fn claim_by(s: &Store, request_id: &str, owner: &str, age: f64) {
        let hash = args_hash(r#"{"title":"t","body":"b"}"#).unwrap();
        s.connect()
            .unwrap()
            .execute(
                "INSERT INTO requests VALUES (?, ?, 'running', NULL, ?, ?)",
                params![request_id, hash, owner, Time::now().seconds() - age],
            )
            .unwrap();
    }

    #[test]
    fn results_are_stored_as_python_writes_them() {
        let dir = tempfile::tempdir().unwrap();
        let s = store(&dir, "me");
        let answer = s.create_ticket("r", "障害\n\"x\"", "\u{1}").unwrap();
        let stored: String = s
            .connect()
            .unwrap()
            .query_row("SELECT result FROM requests", [], |r| r.get(0))
            .unwrap();
        assert_eq!(stored, python_dumps(&stored, false, &[]).unwrap());
        assert!(
            stored.starts_with(r#"{"ticket_id": "T-"#)
                && stored.ends_with(r#"", "title": "障害\n\"x\""}"#)
        );
        assert_eq!(answer, format!(r#"{}, "replayed": false}}"#, &stored[..stored.len() - 1]));
        assert_eq!(
            s.find_request("r").unwrap(),
            format!(r#"{{"request_id": "r", "status": "done", "result": {stored}}}"#)
        );
        assert_eq!(s.find_request("x").unwrap(), r#"{"request_id": "x", "status": "unknown"}"#);
    }

    #[test]
    fn only_anothers_or_a_stale_claim_is_taken_over() {
        let dir = tempfile::tempdir().unwrap();
        let s = store(&dir, "me");
        claim_by(&s, "mine", "me", 100.0);
        claim_by(&s, "mine-stale", "me", 121.0);
        claim_by(&s, "theirs", "old", 0.0);
        assert_eq!(
            ["mine", "mine-stale", "theirs", "no"].map(|r| status(&s, r)),
            ["running", "running", "abandoned", "unknown"]
        );
        let waited = s.create_ticket("mine", "t", "b").unwrap();
        assert!(waited.contains(r#""status": "in_progress""#), "{waited}");
        for request in ["mine-stale", "theirs"] {
            let answer = s.create_ticket(request, "t", "b").unwrap();
            assert!(answer.ends_with(r#""replayed": false}"#), "{answer}");
            assert_eq!(status(&s, request), "done");
        }
        assert_eq!(status(&s, "mine"), "running");
        assert_eq!(tickets(&s), 2);
    }

    #[test]
    fn the_one_overtaken_reads_the_winners_result() {
        let dir = tempfile::tempdir().unwrap();
        let (mut slow, fast) = (store(&dir, "slow"), store(&dir, "fast"));
        slow.work = Duration::from_millis(700);
        std::thread::scope(|scope| {
            let first = scope.spawn(|| slow.create_ticket("r", "t", "b").unwrap());
            while status(&slow, "r") != "running" {
                std::thread::yield_now();
            }
            let won = fast.create_ticket("r", "t", "b").unwrap();
            assert!(won.ends_with(r#""replayed": false}"#), "{won}");
            assert_eq!(first.join().unwrap(), won.replace("false}", "true}"));
        });
        assert_eq!(tickets(&fast), 1);
    }

    #[test]
    fn failed_work_leaves_neither_effect_nor_claim_but_a_stop_leaves_the_claim() {
        let dir = tempfile::tempdir().unwrap();
        let s = store(&dir, "me");
        assert!(matches!(s.create_ticket("r", "fails", "b"), Err(Failure::Work(_))));
        assert_eq!((status(&s, "r").as_str(), tickets(&s)), ("unknown", 0));
        s.stop.stop();
        assert!(matches!(s.create_ticket("r", "t", "b"), Err(Failure::Stopped(_))));
        assert_eq!((status(&s, "r").as_str(), tickets(&s)), ("running", 0));
    }

    #[test]
    fn a_conflict_names_the_request_and_changes_nothing() {
        let dir = tempfile::tempdir().unwrap();
        let s = store(&dir, "me");
        s.create_ticket("r", "t", "b").unwrap();
        let e = s.create_ticket("r", "t", "other").unwrap_err();
        assert_eq!(e.to_string(), "request_id r was already used with other arguments");
        assert_eq!(tickets(&s), 1);
    }

    #[test]
    fn replayed_replaces_and_needs_an_object() {
        assert_eq!(
            replayed("r", r#"{"replayed":0,"a":1}"#, true).unwrap(),
            r#"{"a": 1, "replayed": true}"#
        );
        assert_eq!(replayed("r", "{}", false).unwrap(), r#"{"replayed": false}"#);
        assert_eq!(replayed("r", r#"{"a":{}}"#, true).unwrap(), r#"{"a": {}, "replayed": true}"#);
        for bad in ["", "[1]", "{", "null"] {
            assert!(matches!(replayed("r", bad, true), Err(Failure::StoredResult(_))), "{bad}");
        }
    }
}
