//! One consistent look at a ledger: rows by id and by windows, effects, and what the look was made with.
//!
//! Owns rows and windows; `survey` owns whole-table folds and `checks` the invariants. Never OFFSET: a
//! window costs its own length. Judges nothing.

use super::open::{Mode, Opened};
use super::row::Row;
use super::schema::{NoSchema, Schema, Source, column};
use super::stamp::Stamp;
use super::trouble::{LedgerError, Trouble};
use super::value;
use crate::json::key::Spelling;
use rusqlite::types::Value;
use rusqlite::{Connection, Params, params_from_iter};
use std::cell::{Cell, RefCell};
use std::collections::{HashMap, HashSet};
use std::path::Path;
use std::time::{Duration, Instant};

/// How long a reader's lock may be held on a ledger with a rollback journal.
const PIECE: Duration = Duration::from_millis(5);
/// Rows of such a ledger looked at in one statement: well under [`PIECE`].
const PIECE_ROWS: i64 = 2000;
/// At most so many rows of one id are read.
pub const ROWS_OF_ONE: usize = 100;
/// Most values bound at once.
pub(super) const IDS_AT_ONCE: usize = 500;

/// How a look was made, and what there is to say about it.
#[derive(Debug, Clone, PartialEq)]
pub struct How {
    /// The way the file was read.
    pub mode: Mode,
    /// What the files looked like; no change since means nothing new to read.
    pub stamp: Stamp,
    /// Worth saying, nothing wrong.
    pub infos: Vec<String>,
    /// Something is wrong with the file.
    pub warnings: Vec<String>,
    /// WAL mode and no `-wal`: at rest, or a copy that lost its newest rows. Other evidence decides.
    pub wal_absent: bool,
    /// At least so many rows could not be read.
    pub unreadable: u64,
    /// Everything came from one state of the file. `false` only after a long read in pieces, while
    /// a writer wrote.
    pub whole: bool,
}

impl How {
    /// Other evidence says that rows are missing: with no `-wal` beside a ledger in WAL mode that is a warning.
    pub fn doubt_wal(&mut self, evidence: &str) {
        if self.wal_absent {
            self.warnings.push(format!(
                "there is no -wal beside it, and {evidence}: this may be a copy that lacks the newest rows"
            ));
        }
    }
}

/// One consistent snapshot of a ledger (of a rollback-journal ledger: every row with its effects is one,
/// and [`How::whole`] says whether all is).
pub struct Reader<'c> {
    conn: &'c Connection,
    path: &'c Path,
    schema: Schema,
    how: RefCell<How>,
    damaged: Cell<bool>,
    /// At least so many requests and effects could not be read.
    lost: Cell<(u64, u64)>,
    /// When the read lock was taken, where it must not be held for long.
    locked_at: Cell<Option<Instant>>,
    version: Cell<i64>,
    /// Digests of the ids that several rows have, once they were needed.
    pub(super) repeated: std::cell::OnceCell<std::collections::HashSet<u64>>,
}

impl<'c> Reader<'c> {
    pub(super) fn new(
        conn: &'c Connection,
        path: &'c Path,
        opened: &Opened,
        named: &[String],
    ) -> Result<Reader<'c>, LedgerError> {
        let schema = Schema::load(conn, named).map_err(|e| match e {
            NoSchema::Trouble(t) => LedgerError::new(path, t),
            NoSchema::Sqlite(e) => LedgerError::from_sqlite(path, &e),
        })?;
        let mut infos = opened.infos.clone();
        infos.extend(schema.infos.iter().cloned());
        let how = How {
            mode: opened.mode,
            stamp: opened.stamp,
            infos,
            warnings: opened.warnings.clone(),
            wal_absent: opened.wal_absent,
            unreadable: 0,
            whole: true,
        };
        // Salvaged rows lie in a database of our own, which no writer waits for.
        let in_pieces = opened.mode == Mode::Pieces && !conn.is_autocommit();
        let reader = Reader {
            conn,
            path,
            schema,
            how: RefCell::new(how),
            damaged: Cell::new(false),
            lost: Cell::new((0, 0)),
            locked_at: Cell::new(in_pieces.then(Instant::now)),
            version: Cell::new(0),
            repeated: std::cell::OnceCell::new(),
        };
        reader.version.set(reader.data_version()?);
        Ok(reader)
    }

    /// How this look was made, as far as it has come.
    pub fn how(&self) -> How {
        self.how.borrow().clone()
    }

    /// The tables and columns that are read.
    pub fn schema(&self) -> &Schema {
        &self.schema
    }

    /// It is known where effects are and all of them can be read, so that a done request without an effect
    /// means something.
    pub fn has_effects_table(&self) -> bool {
        !self.schema.effects.is_empty() && self.lost.get().1 == 0
    }

    /// Every request can be read, so that one that isn't found isn't there.
    pub(super) fn has_all_requests(&self) -> bool {
        self.lost.get().0 == 0
    }

    /// What effects are called here: the table's name, e.g. `tickets`, where there is one.
    pub fn effects_noun(&self) -> &str {
        match self.schema.effects.as_slice() {
            [one] => &one.table,
            _ => "effects",
        }
    }

    /// The row of a request with its effects; the newest one where several rows have the id ([`Row::same`] tells).
    /// An error where the row may be among those that a damaged file has lost: that is not "no row".
    pub fn row(&self, request_id: &str) -> Result<Option<Row>, LedgerError> {
        Ok(self.rows_of(request_id)?.into_iter().next())
    }

    /// All rows with this id, newest first, at most [`ROWS_OF_ONE`].
    pub fn rows_of(&self, request_id: &str) -> Result<Vec<Row>, LedgerError> {
        self.breathe()?;
        let r = &self.schema.requests;
        let (clause, ids) = self.has_id("r", &[request_id]);
        let sql = format!(
            "{} WHERE {clause} ORDER BY r.{} DESC LIMIT {ROWS_OF_ONE}",
            self.select_rows(),
            r.source.pos
        );
        let mut rows = self.query(&sql, params_from_iter(ids), row)?;
        let exact = rows.iter().any(|row| row.request_id == request_id);
        rows.retain(|row| match exact {
            true => row.request_id == request_id,
            // A text names the row of a column of numbers as SQLite has it.
            false => {
                row.id_as == Spelling::Number && value::same_number(request_id, &row.request_id)
            }
        });
        if rows.is_empty() && !self.has_all_requests() {
            let lost =
                Trouble::RowLost { request_id: request_id.to_owned(), rows: self.lost.get().0 };
            return Err(LedgerError::new(self.path, lost));
        }
        self.complete(&mut rows)?;
        Ok(rows)
    }

    /// Adds effects, and tells rows with one id apart.
    fn complete(&self, rows: &mut [Row]) -> Result<(), LedgerError> {
        self.add_effects(rows)?;
        self.tell_apart(rows)
    }

    /// `column` holds one of these ids, byte by byte, whatever its collation; with the values to bind. The first half
    /// finds them by an index that is in another order.
    pub(super) fn is_one_of(&self, column: &str, ids: &[&str]) -> (String, Vec<Value>) {
        let (mut values, mut list) = (Vec::new(), Vec::new());
        for id in ids {
            for candidate in value::candidates(id) {
                values.push(candidate);
                list.push(format!("?{}", values.len()));
            }
            // Text that isn't UTF-8 is shown as bytes are.
            if let Some(bytes) = value::parse_blob_literal(id) {
                values.push(Value::Blob(bytes));
                list.push(format!("CAST(?{} AS TEXT)", values.len()));
            }
        }
        let list = list.join(", ");
        let exact = format!("{column} COLLATE BINARY IN ({list})");
        let clause = match self.schema.strange_order {
            true => exact,
            false => format!("({column} IN ({list}) AND {exact})"),
        };
        (clause, values)
    }

    /// The newest `limit` rows older than `before` (a [`Row::rowid`]; `None`: the newest of all),
    /// newest first.
    pub fn newest(&self, before: Option<i64>, limit: usize) -> Result<Vec<Row>, LedgerError> {
        self.window("< ?1", "DESC", before.unwrap_or(i64::MAX), limit, before.is_none())
    }

    /// The `limit` rows that came next after `after`, newest first.
    pub fn newer(&self, after: i64, limit: usize) -> Result<Vec<Row>, LedgerError> {
        let mut rows = self.window("> ?1", "ASC", after, limit, false)?;
        rows.reverse();
        Ok(rows)
    }

    fn window(
        &self,
        than: &str,
        order: &str,
        bound: i64,
        limit: usize,
        all: bool,
    ) -> Result<Vec<Row>, LedgerError> {
        self.breathe()?;
        let pos = &self.schema.requests.source.pos;
        let than = if all { "<= ?1" } else { than };
        let sql = format!(
            "{} WHERE r.{pos} {than} ORDER BY r.{pos} {order} LIMIT ?2",
            self.select_rows()
        );
        let mut rows = self.query(&sql, (bound, sql_limit(limit)), row)?;
        self.complete(&mut rows)?;
        Ok(rows)
    }

    /// The rows at these places, with effects, in the order given; places that are empty by now are
    /// left out.
    pub(super) fn rows_at(&self, places: &[i64]) -> Result<Vec<Row>, LedgerError> {
        let mut found = HashMap::new();
        // Where each look-up is a pass over a whole table, there is one for all.
        let passes = !self.schema.requests.source.rowid || self.passes_for_effects();
        let at_once = if passes { places.len().max(1) } else { IDS_AT_ONCE };
        for chunk in places.chunks(at_once) {
            self.breathe()?;
            let mut rows = self.at(chunk)?;
            self.complete(&mut rows)?;
            found.extend(rows.into_iter().map(|r| (r.rowid, r)));
        }
        Ok(places.iter().filter_map(|p| found.remove(p)).collect())
    }

    fn at(&self, places: &[i64]) -> Result<Vec<Row>, LedgerError> {
        let source = &self.schema.requests.source;
        let (select, pos) = (self.select_rows(), &source.pos);
        if source.rowid {
            let mut rows = Vec::new();
            for chunk in places.chunks(IDS_AT_ONCE) {
                let sql = format!("{select} WHERE r.{pos} IN ({})", marks(chunk.len()));
                rows.extend(self.query(&sql, params_from_iter(chunk), row)?);
            }
            return Ok(rows);
        }
        let wanted: HashSet<i64> = places.iter().copied().collect();
        let read = |r: &rusqlite::Row<'_>| match wanted.contains(&r.get(0)?) {
            true => row(r).map(Some),
            false => Ok(None),
        };
        Ok(self.query(&select, (), read)?.into_iter().flatten().collect())
    }

    /// The rows of each of these groups.
    pub(super) fn rows_of_groups(&self, groups: &[Vec<i64>]) -> Result<Vec<Vec<Row>>, LedgerError> {
        let all: Vec<i64> = groups.iter().flatten().copied().collect();
        let mut rows: HashMap<i64, Row> =
            self.rows_at(&all)?.into_iter().map(|r| (r.rowid, r)).collect();
        let group = |g: &Vec<i64>| g.iter().filter_map(|place| rows.remove(place)).collect();
        Ok(groups.iter().map(group).collect())
    }

    /// `SELECT … FROM requests AS r`, read by [`row`].
    pub(super) fn select_rows(&self) -> String {
        let r = &self.schema.requests;
        let columns = [
            Some(&r.id),
            Some(&r.status),
            r.args_hash.as_ref(),
            r.result.as_ref(),
            r.owner.as_ref(),
            r.claimed_at.as_ref(),
            r.tool.as_ref(),
        ];
        let columns = columns.map(|c| column("r", c.map(String::as_str))).join(", ");
        let takes_over = u8::from(r.is_of_the_reference());
        format!("SELECT r.{}, {columns}, {takes_over} FROM {} AS r", r.source.pos, r.source.from)
    }

    pub(super) fn query<T, P: Params>(
        &self,
        sql: &str,
        params: P,
        read: impl FnMut(&rusqlite::Row<'_>) -> rusqlite::Result<T>,
    ) -> Result<Vec<T>, LedgerError> {
        let run = || {
            let mut statement = self.conn.prepare(sql)?;
            statement.query_map(params, read)?.collect::<rusqlite::Result<Vec<T>>>()
        };
        run().map_err(|e| self.error(&e))
    }

    pub(super) fn conn(&self) -> &Connection {
        self.conn
    }

    pub(super) fn error(&self, e: &rusqlite::Error) -> LedgerError {
        let error = LedgerError::from_sqlite(self.path, e);
        if error.is_damage() {
            self.damaged.set(true);
        }
        error
    }

    pub(super) fn trouble(&self, trouble: Trouble) -> LedgerError {
        LedgerError::new(self.path, trouble)
    }

    /// Whether some statement met a broken page, even if the job went on.
    pub(super) fn met_damage(&self) -> bool {
        self.damaged.get()
    }

    /// Tells that rows were lost, in words.
    pub(super) fn set_lost(&self, requests: u64, effects: u64) {
        self.lost.set((requests, effects));
        let mut how = self.how.borrow_mut();
        how.unreadable = requests + effects;
        for (n, table) in [(requests, &*self.schema.requests.table), (effects, self.effects_noun())]
        {
            if n > 0 {
                let rows = if n == 1 { "row" } else { "rows" };
                how.warnings.push(format!(
                    "the file is damaged: these are the {table} that can be read, and at least {n} {rows} of {table} could not"
                ));
            }
        }
    }

    /// Does work whose answers must be of one moment: no writer of a rollback-journal ledger commits in it, so it
    /// must be short.
    pub fn in_one<T>(
        &self,
        work: impl FnOnce() -> Result<T, LedgerError>,
    ) -> Result<T, LedgerError> {
        self.breathe()?;
        let since = self.locked_at.take();
        let done = work();
        self.locked_at.set(since);
        done
    }

    /// Between two statements of a long read: lets a waiting writer of a rollback-journal ledger commit.
    pub(super) fn breathe(&self) -> Result<(), LedgerError> {
        let Some(since) = self.locked_at.get() else { return Ok(()) };
        if since.elapsed() < PIECE {
            return Ok(());
        }
        self.conn.execute_batch("COMMIT; BEGIN").map_err(|e| self.error(&e))?;
        let version = self.data_version()?;
        if self.version.replace(version) != version {
            self.how.borrow_mut().whole = false;
        }
        self.locked_at.set(Some(Instant::now()));
        Ok(())
    }

    /// Does work that needs nothing from the file; where a reader's lock holds a writer up, without it.
    pub(super) fn unlocked<T>(&self, work: impl FnOnce() -> T) -> Result<T, LedgerError> {
        if self.locked_at.get().is_none() {
            return Ok(work());
        }
        self.conn.execute_batch("COMMIT").map_err(|e| self.error(&e))?;
        let done = work();
        self.conn.execute_batch("BEGIN").map_err(|e| self.error(&e))?;
        let version = self.data_version()?;
        if self.version.replace(version) != version {
            self.how.borrow_mut().whole = false;
        }
        self.locked_at.set(Some(Instant::now()));
        Ok(done)
    }

    /// Also takes the read lock. Differs after another connection's commit.
    fn data_version(&self) -> Result<i64, LedgerError> {
        let _ = self.query("PRAGMA schema_version", (), |_| Ok(()))?;
        let version = self.query("PRAGMA data_version", (), |r| r.get(0))?;
        version
            .first()
            .copied()
            .ok_or_else(|| LedgerError::new(self.path, Trouble::Other("no data version".into())))
    }

    /// Calls `look` with ranges of `source.pos` (both ends included) that cover the table, newest first,
    /// until it says `false`: small ones where a read lock must not be held long and `cheap` says that
    /// a range costs no more than its rows, else one.
    pub(super) fn in_pieces(
        &self,
        source: &Source,
        cheap: bool,
        mut look: impl FnMut(i64, i64) -> Result<bool, LedgerError>,
    ) -> Result<(), LedgerError> {
        if self.locked_at.get().is_none() || !source.rowid || !cheap {
            self.breathe()?;
            return look(i64::MIN, i64::MAX).map(drop);
        }
        let (pos, from) = (&source.pos, &source.from);
        let sql = format!(
            "SELECT min(p) FROM (SELECT {pos} AS p FROM {from} WHERE {pos} <= ?1 ORDER BY {pos} DESC LIMIT ?2)"
        );
        let mut high = i64::MAX;
        loop {
            self.breathe()?;
            let low = self.query(&sql, (high, PIECE_ROWS), |r| r.get::<_, Option<i64>>(0))?;
            let Some(low) = low.first().copied().flatten() else { return Ok(()) };
            if !look(low, high)? || low == i64::MIN {
                return Ok(());
            }
            high = low - 1;
        }
    }
}

/// A row of [`Reader::select_rows`], without its effects.
pub(super) fn row(r: &rusqlite::Row<'_>) -> rusqlite::Result<Row> {
    Ok(Row {
        rowid: r.get(0)?,
        request_id: value::id(r.get_ref(1)?).unwrap_or_default(),
        id_as: value::spelling(r.get_ref(1)?),
        status: value::text(r.get_ref(2)?).unwrap_or_default(),
        args_hash: value::text(r.get_ref(3)?),
        result: value::text(r.get_ref(4)?),
        owner: value::text(r.get_ref(5)?),
        claimed_at: value::time(r.get_ref(6)?),
        tool: value::text(r.get_ref(7)?),
        takes_over: r.get(8)?,
        effects: Vec::new(),
        same: None,
    })
}

/// `?, ?, ?`
pub(super) fn marks(n: usize) -> String {
    vec!["?"; n].join(", ")
}

/// For LIMIT.
pub(super) fn sql_limit(limit: usize) -> i64 {
    i64::try_from(limit).unwrap_or(i64::MAX)
}
