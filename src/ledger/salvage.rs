//! What can still be read of a damaged ledger, taken row by row into a nameless temporary database.
//!
//! Every question then runs on that, so no other code needs to know of damage.

use super::schema::{Schema, quoted};
use rusqlite::types::ToSqlOutput;
use rusqlite::{Connection, params_from_iter};

/// The rows that could be read.
pub(super) struct Salvage {
    /// Tables of the same names and columns, with the same rowids. SQLite's own temporary file:
    /// it has no name and vanishes when closed.
    pub conn: Connection,
    /// Requests that could be read.
    pub requests_kept: u64,
    /// At least so many requests could not be read.
    pub requests_lost: u64,
    /// At least so many effects could not be read.
    pub effects_lost: u64,
}

/// Most places where a scan stops and finds its way past: a file worse than that is given up there.
const MAX_GAPS: u64 = 2000;

/// Reads what can be read. Fails only when the schema can't be.
pub(super) fn salvage(from: &Connection, schema: &Schema) -> rusqlite::Result<Salvage> {
    let conn = Connection::open("")?;
    conn.execute_batch("PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF; BEGIN")?;
    let requests_lost = table(from, &conn, &schema.requests.table)?;
    let mut effects_lost = 0;
    for effects in &schema.effects {
        effects_lost += table(from, &conn, &effects.table)?;
    }
    // So that they stay undecided there.
    for name in &schema.undecided {
        table(from, &conn, name)?;
    }
    let index = |table: &str, column: &str, n: usize| {
        let (table, column) = (quoted(table), quoted(column));
        conn.execute_batch(&format!("CREATE INDEX redial_{n} ON {table}({column});"))
    };
    index(&schema.requests.table, &schema.requests.id, 1)?;
    for (n, effects) in schema.effects.iter().enumerate() {
        index(&effects.table, &effects.request_id, n + 2)?;
    }
    conn.execute_batch("COMMIT")?;
    let count = format!("SELECT count(*) FROM {}", quoted(&schema.requests.table));
    let requests_kept = conn.query_row(&count, [], |r| r.get::<_, i64>(0))?.unsigned_abs();
    Ok(Salvage { conn, requests_kept, requests_lost, effects_lost })
}

/// Copies one table; how many rows were lost, at least.
fn table(from: &Connection, to: &Connection, name: &str) -> rusqlite::Result<u64> {
    let mut info = from.prepare(
        "SELECT name, type, pk FROM pragma_table_xinfo(?1) WHERE hidden <> 1 ORDER BY cid",
    )?;
    let columns: Vec<(String, String, i64)> = info
        .query_map([name], |r| Ok((r.get(0)?, r.get(1)?, r.get(2)?)))?
        .collect::<Result<_, _>>()?;
    let free = ["rowid", "_rowid_", "oid"]
        .into_iter()
        .find(|r| columns.iter().all(|(c, ..)| !c.eq_ignore_ascii_case(r)));
    let keys = columns.iter().filter(|(.., pk)| *pk > 0).count();
    // The type decides how values compare; the key, which column the schema takes for the key.
    let definitions: Vec<String> = columns
        .iter()
        .map(|(c, declared, pk)| {
            let key = if *pk > 0 && keys == 1 { " PRIMARY KEY" } else { "" };
            let declared: String =
                declared.chars().filter(|c| c.is_ascii_alphanumeric() || *c == ' ').collect();
            format!("{} {declared}{key}", quoted(c))
        })
        .collect();
    let table = quoted(name);
    to.execute_batch(&format!("CREATE TABLE {table}({})", definitions.join(", ")))?;

    let list: Vec<String> = columns.iter().map(|(c, ..)| quoted(c)).collect();
    let list = list.join(", ");
    let Some(rowid) =
        free.filter(|rowid| from.prepare(&format!("SELECT {rowid} FROM {table}")).is_ok())
    else {
        let insert =
            format!("INSERT OR IGNORE INTO {table}({list}) VALUES ({})", marks(columns.len()));
        return without_rowid(from, to, &format!("SELECT {list} FROM {table}"), &insert);
    };
    let insert = format!(
        "INSERT OR IGNORE INTO {table}({rowid}, {list}) VALUES ({})",
        marks(columns.len() + 1)
    );
    let mut source = Rows {
        select: format!(
            "SELECT {rowid}, {list} FROM {table} NOT INDEXED WHERE {rowid} >= ?1 ORDER BY {rowid}"
        ),
        from,
    };
    let mut put = to.prepare(&insert)?;
    let (mut kept, mut gaps) = (0, 0);
    let mut at = Some(i64::MIN);
    while let Some(start) = at {
        let (stopped_at, n) = source.copy(start, &mut put)?;
        kept += n;
        let Some(broken) = stopped_at else { break };
        gaps += 1;
        at = if gaps < MAX_GAPS { source.past(broken) } else { None };
    }
    Ok(lost(from, name, kept, gaps))
}

struct Rows<'c> {
    select: String,
    from: &'c Connection,
}

impl Rows<'_> {
    /// Copies from `start` on. Gives the first place that can't be read, if any, and the rows copied.
    fn copy(
        &mut self,
        start: i64,
        put: &mut rusqlite::Statement<'_>,
    ) -> rusqlite::Result<(Option<i64>, u64)> {
        let (mut next, mut kept) = (start, 0);
        let mut statement = self.from.prepare(&self.select)?;
        let width = statement.column_count();
        let mut rows = statement.query([start])?;
        loop {
            match rows.next() {
                Ok(Some(row)) => {
                    let values = values(row, width)?;
                    next = row.get::<_, i64>(0)?.saturating_add(1);
                    put.execute(params_from_iter(values))?;
                    kept += 1;
                }
                Ok(None) => return Ok((None, kept)),
                Err(e) if is_damage(&e) => return Ok((Some(next), kept)),
                Err(e) => return Err(e),
            }
        }
    }

    fn readable(&self, start: i64) -> bool {
        let first = || {
            let mut statement = self.from.prepare(&self.select)?;
            statement.query([start])?.next().map(drop)
        };
        first().is_ok()
    }

    /// The first place after `broken` from which reading goes on: far steps out, then halves back. It may
    /// skip good rows between two broken pages, so the count of lost rows says "at least".
    fn past(&self, broken: i64) -> Option<i64> {
        let mut step: i64 = 1;
        // A table read from its very start has no last good place to step from.
        let base = if broken == i64::MIN { 0 } else { broken };
        let mut far = loop {
            let place = base.checked_add(step)?;
            if self.readable(place) {
                break place;
            }
            step = step.checked_mul(2)?;
        };
        let mut near = base + step / 2;
        while far - near > 1 {
            let middle = near + (far - near) / 2;
            if self.readable(middle) {
                far = middle;
            } else {
                near = middle;
            }
        }
        Some(far)
    }
}

/// A table without rowids can't be sought by number: from both ends until it breaks.
fn without_rowid(
    from: &Connection,
    to: &Connection,
    select: &str,
    insert: &str,
) -> rusqlite::Result<u64> {
    let mut put = to.prepare(insert)?;
    let mut broken = 0;
    for order in ["1", "1 DESC"] {
        let mut statement = from.prepare(&format!("{select} ORDER BY {order}"))?;
        let width = statement.column_count();
        let mut rows = statement.query([])?;
        loop {
            match rows.next() {
                Ok(Some(row)) => {
                    let values = values(row, width)?;
                    put.execute(params_from_iter(values))?;
                }
                Ok(None) => break,
                Err(e) if is_damage(&e) => {
                    broken = 1;
                    break;
                }
                Err(e) => return Err(e),
            }
        }
    }
    Ok(broken)
}

/// The table's own index may know how many rows there were.
fn lost(from: &Connection, name: &str, kept: u64, gaps: u64) -> u64 {
    let counted = || -> rusqlite::Result<u64> {
        let mut list = from.prepare("SELECT name FROM pragma_index_list(?1) WHERE NOT partial")?;
        let names: Vec<String> = list.query_map([name], |r| r.get(0))?.collect::<Result<_, _>>()?;
        let mut most = 0;
        for index in names {
            let sql =
                format!("SELECT count(*) FROM {} INDEXED BY {}", quoted(name), quoted(&index));
            let n = from.query_row(&sql, [], |r| r.get::<_, i64>(0));
            most = most.max(n.map_or(0, i64::unsigned_abs));
        }
        Ok(most)
    };
    counted().unwrap_or(0).saturating_sub(kept).max(gaps)
}

/// As they are: text need not be UTF-8.
fn values<'r>(row: &'r rusqlite::Row<'_>, width: usize) -> rusqlite::Result<Vec<ToSqlOutput<'r>>> {
    (0..width).map(|i| row.get_ref(i).map(ToSqlOutput::Borrowed)).collect()
}

fn is_damage(e: &rusqlite::Error) -> bool {
    use rusqlite::ErrorCode as Code;
    match e.sqlite_error_code() {
        Some(Code::DatabaseCorrupt | Code::TooBig | Code::NotADatabase) => true,
        Some(Code::SystemIoFailure) => e
            .sqlite_error()
            .is_some_and(|e| e.extended_code == rusqlite::ffi::SQLITE_IOERR_SHORT_READ),
        _ => false,
    }
}

fn marks(n: usize) -> String {
    vec!["?"; n].join(", ")
}
