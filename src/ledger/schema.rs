//! Which tables of a database are the ledger: the default form, and any table with at least a request id
//! and a status, read with the columns it has.
//!
//! Owns names and SQL fragments; reads nothing but the schema. A view is read like a table where no table is what it
//! is looked for; virtual tables are not looked at: what they compute is a module's own code.

use super::trouble::Trouble;
use rusqlite::Connection;
use std::sync::Arc;

/// The tables redial reads.
#[derive(Debug, Clone, PartialEq)]
pub struct Schema {
    /// One row for each request.
    pub requests: Requests,
    /// What the work leaves behind: the only table beside the requests that has a `request_id`, or those that
    /// were named.
    pub effects: Vec<Effects>,
    /// The tables that could hold effects, where several could and nobody has said which do. None is taken then:
    /// a number from the wrong one would pass for a proof.
    pub undecided: Vec<String>,
    /// Other tables that might have been meant, in words.
    pub(super) infos: Vec<String>,
    /// Some column is ordered by a collation that only the server knows: no index may be trusted by its order.
    pub(super) strange_order: bool,
}

/// The requests table with the columns that it has.
#[derive(Debug, Clone, PartialEq)]
pub struct Requests {
    /// The table.
    pub table: String,
    /// The request id's column.
    pub id: String,
    /// The status column.
    pub status: String,
    /// The arguments hash.
    pub args_hash: Option<String>,
    /// The stored result.
    pub result: Option<String>,
    /// `owner`, else `worker_pid`.
    pub owner: Option<String>,
    /// `claimed_at`, else `started_at`, else `updated_at` (the last sign of life).
    pub claimed_at: Option<String>,
    /// The tool.
    pub tool: Option<String>,
    pub(super) source: Source,
    /// The request id can be looked up without a scan.
    pub(super) id_indexed: bool,
    /// The database allows one row for each request id.
    pub(super) id_unique: bool,
    /// What its column makes of what is stored in it, where an index tells that no bytes are among that.
    id_kind: Option<Kind>,
    /// What may tell rows with one id apart: the other columns of the key they are in, else all that say nothing else.
    pub(super) tells: Vec<String>,
    /// Those columns are a key with the id.
    pub(super) keyed: bool,
}

impl Requests {
    /// Table and columns are those of the reference.
    pub(super) fn is_of_the_reference(&self) -> bool {
        let columns = [&self.args_hash, &self.result, &self.owner, &self.claimed_at];
        let names = ["args_hash", "result", "owner", "claimed_at"];
        let all = columns.iter().zip(names).all(|(c, name)| c.as_deref() == Some(name));
        all && self.table == "requests" && self.id == "request_id" && self.status == "status"
    }
}

/// The effects table.
#[derive(Debug, Clone, PartialEq)]
pub struct Effects {
    /// The table, e.g. `tickets`: also the noun for what it holds.
    pub table: Arc<str>,
    /// The column that names the request.
    pub request_id: String,
    /// The effect's own key: the primary key, else the first column.
    pub key: String,
    /// What it is about: `title`, else the first text column; the key where there is none.
    pub label: String,
    /// Every other column.
    pub others: Vec<String>,
    pub(super) source: Source,
    pub(super) request_indexed: bool,
    /// The database itself allows one effect for each request.
    pub(super) request_unique: bool,
    /// Both tables' indexes can answer for the other's ids: they are in the order of the bytes, of one kind of value,
    /// and without bytes, which SQLite takes for another id than the same text.
    pub(super) joined: bool,
    /// Its columns of the names that tell requests with one id apart; none where one is missing.
    pub(super) tells: Vec<String>,
    /// Its rowids come in the order of arrival: they are SQLite's own, and no key that somebody else gives.
    pub(super) in_order: bool,
}

/// What to read a table from, in order of arrival.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Source {
    /// After FROM.
    pub from: String,
    /// The column that orders it: the rowid, or a made-up number where there is none.
    pub pos: String,
    /// `pos` is the rowid: seeking it costs nothing.
    pub rowid: bool,
}

struct Column {
    name: String,
    declared: String,
    pk: bool,
}

/// What a column makes of texts and numbers.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Kind {
    Text,
    Number,
}

impl Column {
    fn is_text(&self) -> bool {
        let declared = self.declared.to_ascii_uppercase();
        ["CHAR", "CLOB", "TEXT"].iter().any(|word| declared.contains(word))
    }
}

struct Table {
    name: String,
    view: bool,
    without_rowid: bool,
    columns: Vec<Column>,
}

impl Table {
    fn column(&self, names: &[&str]) -> Option<String> {
        names.iter().find_map(|wanted| {
            self.columns
                .iter()
                .find(|c| c.name.eq_ignore_ascii_case(wanted))
                .map(|c| c.name.clone())
        })
    }

    /// `None` where both stay what they are, or where bytes may be among them.
    fn kind(&self, conn: &Connection, column: &str, indexed: bool) -> Option<Kind> {
        if !indexed || self.takes_any(column) {
            return None;
        }
        let sql = format!(
            "SELECT EXISTS (SELECT 1 FROM {} WHERE {} COLLATE BINARY >= x'')",
            quoted(&self.name),
            quoted(column)
        );
        // Where the file is damaged, whoever reads what is behind the index tells.
        let bytes = conn.query_row(&sql, (), |r| r.get(0)).unwrap_or(true);
        let text = self.columns.iter().any(|c| c.name == column && c.is_text());
        (!bytes).then_some(if text { Kind::Text } else { Kind::Number })
    }

    fn is(&self, name: &str) -> bool {
        self.name.eq_ignore_ascii_case(name)
    }

    /// The column keeps a value as it comes: text, bytes, a number.
    fn takes_any(&self, column: &str) -> bool {
        let declared = self.columns.iter().find(|c| c.name == column).map(|c| c.declared.as_str());
        let declared = declared.unwrap_or_default().to_ascii_uppercase();
        // SQLite's rules for a column's affinity, in their order.
        let says = |words: &[&str]| words.iter().any(|w| declared.contains(w));
        !says(&["INT", "CHAR", "CLOB", "TEXT"]) && (declared.is_empty() || says(&["BLOB"]))
    }

    /// Its key is the rowid: whoever writes a row may give any.
    fn has_own_rowid(&self) -> bool {
        let mut keys = self.columns.iter().filter(|c| c.pk);
        let key = keys.next().filter(|_| keys.next().is_none());
        key.is_some_and(|k| k.declared.eq_ignore_ascii_case("INTEGER"))
    }

    /// `order_by` orders the rows where the table has no rowid.
    fn source(&self, order_by: &[Option<&str>]) -> Source {
        let free = ["rowid", "_rowid_", "oid"].into_iter().find(|r| self.column(&[r]).is_none());
        match free {
            Some(rowid) if !self.without_rowid && !self.view => {
                Source { from: quoted(&self.name), pos: rowid.into(), rowid: true }
            }
            _ => {
                // Rows that tie by these keep their order by the rest: pages must neither lose nor repeat one.
                let key =
                    self.columns.iter().filter(|c| c.pk || self.view).map(|c| c.name.as_str());
                let mut order: Vec<String> = Vec::new();
                for c in order_by.iter().flatten().copied().chain(key) {
                    let c = format!("{} COLLATE BINARY", quoted(c));
                    if !order.contains(&c) {
                        order.push(c);
                    }
                }
                let (order, table) = (order.join(", "), quoted(&self.name));
                Source {
                    from: format!(
                        "(SELECT row_number() OVER (ORDER BY {order}) AS redial_pos, * FROM {table})"
                    ),
                    pos: "redial_pos".into(),
                    rowid: false,
                }
            }
        }
    }
}

/// Why there is no schema: SQLite's error, or a database that is no ledger.
pub(super) enum NoSchema {
    Sqlite(rusqlite::Error),
    Trouble(Trouble),
}

impl From<rusqlite::Error> for NoSchema {
    fn from(e: rusqlite::Error) -> NoSchema {
        NoSchema::Sqlite(e)
    }
}

impl Schema {
    /// `named`: the tables that hold effects, where somebody has said so.
    pub(super) fn load(conn: &Connection, named: &[String]) -> Result<Schema, NoSchema> {
        let tables = tables(conn)?;
        if tables.is_empty() {
            return Err(NoSchema::Trouble(Trouble::NoTables));
        }
        let candidate = tables
            .iter()
            .filter(|t| t.column(&["request_id"]).is_some() && t.column(&["status"]).is_some())
            .max_by_key(|t| (t.is("requests"), !t.view, t.column(&["args_hash"]).is_some()));
        let Some(found) = candidate else {
            let tables = tables
                .into_iter()
                .map(|t| (t.name, t.columns.into_iter().map(|c| c.name).collect()));
            return Err(NoSchema::Trouble(Trouble::Foreign { tables: tables.collect() }));
        };
        let requests = requests(conn, found)?;
        let beside: Vec<_> = tables
            .iter()
            .filter(|t| !std::ptr::eq(*t, found) && t.column(&["request_id"]).is_some())
            .collect();
        let beside = without_views(conn, found, beside, named);
        let (chosen, undecided) = choose(&beside, named, &tables)?;
        let mut infos = Vec::new();
        let name = |t: &&Table| t.name.clone();
        if undecided {
            let all: Vec<String> = beside.iter().map(name).collect();
            infos.push(several(&all));
        }
        for other in beside.iter().filter(|t| !undecided && !chosen.iter().any(|c| c.is(&t.name))) {
            infos.push(format!("{} has a request_id too and isn't counted", other.name));
        }
        let effects =
            chosen.iter().map(|t| effects(conn, t, &requests)).collect::<Result<_, _>>()?;
        let undecided = if undecided { beside.iter().map(name).collect() } else { Vec::new() };
        let strange_order = strange_order(conn)?;
        Ok(Schema { requests, effects, undecided, infos, strange_order })
    }
}

/// Which of the tables beside the requests hold effects, and whether nobody can say. What is called `tickets` may be
/// one of two things that the work leaves behind, and a log has a request_id too: a guess would be counted as a proof.
fn choose<'t>(
    beside: &[&'t Table],
    named: &[String],
    all: &[Table],
) -> Result<(Vec<&'t Table>, bool), NoSchema> {
    if named.is_empty() {
        let undecided = beside.len() > 1;
        return Ok((if undecided { Vec::new() } else { beside.to_vec() }, undecided));
    }
    let mut chosen: Vec<&Table> = Vec::new();
    for wanted in named {
        let Some(found) = beside.iter().find(|t| t.is(wanted)) else {
            return Err(NoSchema::Trouble(Trouble::NoSuchEffects {
                table: wanted.clone(),
                exists: all.iter().any(|t| t.is(wanted)),
                there: beside.iter().map(|t| t.name.clone()).collect(),
            }));
        };
        if !chosen.iter().any(|c| c.is(&found.name)) {
            chosen.push(found);
        }
    }
    Ok((chosen, false))
}

/// That nobody has said which tables hold effects; for people.
pub fn several(tables: &[String]) -> String {
    format!(
        "{} tables have a request_id beside the requests ({}), and nobody has said which of them hold effects: none is counted (--effects TABLE says)",
        tables.len(),
        tables.join(", ")
    )
}

fn requests(conn: &Connection, t: &Table) -> Result<Requests, NoSchema> {
    let id = t.column(&["request_id"]).unwrap_or_default();
    let claimed_at = t.column(&["claimed_at", "started_at", "updated_at"]);
    let (id_indexed, id_unique) = index(conn, t, &id)?;
    let id_kind = t.kind(conn, &id, id_indexed);
    // Text, bytes and numbers that read alike are different to a column of any type, and one id to whoever reads them.
    let id_unique = id_unique && !t.takes_any(&id) && (id_kind.is_some() || !id_indexed);
    let key = if id_unique { None } else { wider_key(conn, t, &id)? };
    let known = [
        "status",
        "args_hash",
        "result",
        "owner",
        "worker_pid",
        "claimed_at",
        "started_at",
        "updated_at",
    ];
    let says_nothing =
        |c: &&Column| c.name != id && !known.iter().any(|k| c.name.eq_ignore_ascii_case(k));
    let rest = if id_unique {
        Vec::new()
    } else {
        t.columns.iter().filter(says_nothing).map(|c| c.name.clone()).collect()
    };
    Ok(Requests {
        status: t.column(&["status"]).unwrap_or_default(),
        args_hash: t.column(&["args_hash"]),
        result: t.column(&["result"]),
        owner: t.column(&["owner", "worker_pid"]),
        tool: t.column(&["tool"]),
        source: t.source(&[claimed_at.as_deref(), Some(&id)]),
        id_indexed,
        id_kind,
        id_unique,
        keyed: key.is_some(),
        tells: key.unwrap_or(rest),
        table: t.name.clone(),
        claimed_at,
        id,
    })
}

fn effects(conn: &Connection, t: &Table, r: &Requests) -> Result<Effects, NoSchema> {
    let request_id = t.column(&["request_id"]).unwrap_or_default();
    let key = t.columns.iter().find(|c| c.pk).or(t.columns.first()).map(|c| c.name.clone());
    let key = key.unwrap_or_default();
    let is_text = |c: &&Column| c.is_text() && c.name != key && c.name != request_id;
    let label =
        t.column(&["title"]).or_else(|| t.columns.iter().find(is_text).map(|c| c.name.clone()));
    let others = t.columns.iter().map(|c| c.name.clone());
    let (request_indexed, request_unique) = index(conn, t, &request_id)?;
    let kind = t.kind(conn, &request_id, request_indexed);
    let source = t.source(&[Some(&key)]);
    Ok(Effects {
        others: others.filter(|c| *c != key && *c != request_id).collect(),
        label: label.unwrap_or_else(|| key.clone()),
        in_order: source.rowid && !t.has_own_rowid(),
        joined: kind.is_some() && kind == r.id_kind,
        source,
        table: t.name.as_str().into(),
        request_indexed,
        request_unique: request_unique
            && (kind.is_some() || !request_indexed)
            && !t.takes_any(&request_id),
        tells: r.tells.iter().filter(|_| r.keyed).map_while(|c| t.column(&[c])).collect(),
        request_id,
        key,
    })
}

fn tables(conn: &Connection) -> Result<Vec<Table>, NoSchema> {
    let mut list = conn.prepare(
        "SELECT name, wr, type = 'view' FROM pragma_table_list
         WHERE schema = 'main' AND type IN ('table', 'view') AND name NOT LIKE 'sqlite\\_%' ESCAPE '\\' ORDER BY name",
    )?;
    let mut info = conn.prepare(
        "SELECT name, type, pk FROM pragma_table_xinfo(?1) WHERE hidden <> 1 ORDER BY cid",
    )?;
    let names = list.query_map([], |r| {
        Ok((r.get::<_, String>(0)?, r.get::<_, bool>(1)?, r.get::<_, bool>(2)?))
    })?;
    let mut out = Vec::new();
    for found in names {
        let (name, without_rowid, view) = found?;
        let columns = info.query_map([&name], |r| {
            Ok(Column { name: r.get(0)?, declared: r.get(1)?, pk: r.get::<_, i64>(2)? > 0 })
        })?;
        let columns = match columns.collect::<Result<_, _>>() {
            Ok(columns) => columns,
            // A view of what is gone: nobody can read it, and it is no reason to read nothing.
            Err(_) if view => continue,
            Err(e) => return Err(e.into()),
        };
        out.push(Table { name, view, without_rowid, columns });
    }
    Ok(out)
}

/// Whether some index begins with `column` in the order of its bytes, and whether one makes it unique on its own.
fn index(conn: &Connection, t: &Table, column: &str) -> Result<(bool, bool), NoSchema> {
    let pk: Vec<_> = t.columns.iter().filter(|c| c.pk).collect();
    let own_rowid = t.has_own_rowid() && !t.without_rowid && !t.view;
    if own_rowid && matches!(pk.as_slice(), [c] if c.name == column) {
        return Ok((true, true));
    }
    let mut first = conn.prepare(
        "SELECT l.\"unique\" AND (SELECT count(*) FROM pragma_index_info(l.name)) = 1, i.coll = 'BINARY'
         FROM pragma_index_list(?1) AS l, pragma_index_xinfo(l.name) AS i
         WHERE i.seqno = 0 AND i.name = ?2 AND NOT l.partial",
    )?;
    let found = first
        .query_map([&t.name, column], |r| Ok((r.get::<_, bool>(0)?, r.get::<_, bool>(1)?)))?
        .collect::<Result<Vec<_>, _>>()?;
    Ok((found.iter().any(|(_, binary)| *binary), found.iter().any(|(unique, _)| *unique)))
}

/// The other columns of a key that has this one among them.
fn wider_key(conn: &Connection, t: &Table, column: &str) -> Result<Option<Vec<String>>, NoSchema> {
    let mut keys = conn.prepare(
        "SELECT l.name, i.name FROM pragma_index_list(?1) AS l, pragma_index_info(l.name) AS i
         WHERE l.\"unique\" AND NOT l.partial
           AND NOT EXISTS (SELECT 1 FROM pragma_index_info(l.name) AS x WHERE x.name IS NULL)
         ORDER BY l.origin = 'pk' DESC, l.seq, i.seqno",
    )?;
    let found = keys
        .query_map([&t.name], |r| Ok((r.get::<_, String>(0)?, r.get::<_, String>(1)?)))?
        .collect::<Result<Vec<_>, _>>()?;
    let key = found.chunk_by(|a, b| a.0 == b.0).find(|k| k.iter().any(|(_, c)| c == column));
    let others = key.map(|k| k.iter().map(|(_, c)| c.clone()).filter(|c| c != column).collect());
    Ok(others.filter(|c: &Vec<String>| !c.is_empty()))
}

/// Tables beside the requests, and views of what is none of those: effects are often behind one. A view of the
/// requests, or of a table that is there itself, is no effect of anything more; where one is named, it is meant.
fn without_views<'t>(
    conn: &Connection,
    requests: &Table,
    beside: Vec<&'t Table>,
    named: &[String],
) -> Vec<&'t Table> {
    let own = reads(conn, &requests.name);
    let (views, mut tables): (Vec<&Table>, Vec<&Table>) = beside.into_iter().partition(|t| t.view);
    // Behind a view of requests there is a table, which has the same ids.
    tables.retain(|t| !own.contains(&t.name));
    let derived = |t: &&Table| {
        let read = reads(conn, &t.name);
        read.is_empty() || read.iter().any(|name| own.contains(name))
    };
    let alone = tables.is_empty();
    let there: Vec<&str> = tables.iter().map(|t| t.name.as_str()).collect();
    let of_one =
        |t: &&Table| reads(conn, &t.name).iter().any(|name| there.contains(&name.as_str()));
    let meant: Vec<&Table> = views
        .into_iter()
        .filter(|t| {
            let named = named.iter().any(|n| t.is(n));
            named || (alone && t.is("tickets")) || (!derived(t) && !of_one(t))
        })
        .collect();
    tables.extend(meant);
    tables
}

/// The tables that reading this one, or this view, reads; none where that can't be told.
fn reads(conn: &Connection, name: &str) -> Vec<String> {
    let found = || -> rusqlite::Result<Vec<String>> {
        let mut plan = conn.prepare(&format!("EXPLAIN SELECT * FROM {}", quoted(name)))?;
        let steps = plan.query_map([], |r| Ok((r.get::<_, String>(1)?, r.get::<_, i64>(3)?)))?;
        let steps = steps.collect::<Result<Vec<_>, _>>()?;
        let mut of = conn.prepare("SELECT tbl_name FROM sqlite_schema WHERE rootpage = ?1")?;
        let mut out = Vec::new();
        for (_, root) in steps.into_iter().filter(|(op, _)| op == "OpenRead") {
            out.extend(of.query_map([root], |r| r.get(0))?.collect::<Result<Vec<String>, _>>()?);
        }
        Ok(out)
    };
    found().unwrap_or_default()
}

/// Whether the schema names a collation that is not SQLite's own.
fn strange_order(conn: &Connection) -> Result<bool, NoSchema> {
    let mut all = conn.prepare("SELECT sql FROM sqlite_schema WHERE sql LIKE '%collate%'")?;
    let texts = all.query_map([], |r| r.get::<_, String>(0))?.collect::<Result<Vec<_>, _>>()?;
    let own =
        |name: &str| ["BINARY", "NOCASE", "RTRIM"].iter().any(|n| n.eq_ignore_ascii_case(name));
    Ok(texts.iter().any(|sql| {
        let lower = sql.to_ascii_lowercase();
        lower.match_indices("collate").any(|(at, word)| {
            let rest = lower[at + word.len()..].trim_start();
            let name = rest.trim_start_matches(['"', '\'', '`', '[']);
            let end = name.find(|c: char| !(c.is_alphanumeric() || c == '_')).unwrap_or(name.len());
            !own(&name[..end])
        })
    }))
}

/// An identifier in SQL.
pub(super) fn quoted(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}

/// `alias.column`, or NULL where the table has no such column.
pub(super) fn column(alias: &str, name: Option<&str>) -> String {
    name.map_or_else(|| "NULL".into(), |n| format!("{alias}.{}", quoted(n)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn load(ddl: &str) -> Result<Schema, Trouble> {
        load_with(ddl, &[])
    }

    fn load_with(ddl: &str, named: &[&str]) -> Result<Schema, Trouble> {
        let conn = Connection::open_in_memory().unwrap();
        conn.execute_batch(ddl).unwrap();
        let named: Vec<String> = named.iter().map(|n| (*n).to_owned()).collect();
        match Schema::load(&conn, &named) {
            Ok(s) => Ok(s),
            Err(NoSchema::Trouble(t)) => Err(t),
            Err(NoSchema::Sqlite(e)) => panic!("{e}"),
        }
    }

    #[test]
    fn the_default_form() {
        let s = load(
            "CREATE TABLE requests(request_id TEXT PRIMARY KEY, args_hash TEXT NOT NULL, status TEXT NOT NULL,
               result TEXT, owner TEXT NOT NULL, claimed_at REAL NOT NULL);
             CREATE TABLE tickets(ticket_id TEXT PRIMARY KEY, request_id TEXT NOT NULL UNIQUE, title TEXT NOT NULL, body TEXT NOT NULL);",
        )
        .unwrap();
        assert_eq!(s.requests.claimed_at.as_deref(), Some("claimed_at"));
        assert!(s.requests.id_indexed && s.requests.source.rowid);
        let [e] = s.effects.as_slice() else { panic!("one") };
        assert_eq!((&*e.table, &*e.key, &*e.label), ("tickets", "ticket_id", "title"));
        assert!(e.in_order);
        assert_eq!(e.others, ["title", "body"]);
        assert!(e.request_unique);
    }

    #[test]
    fn a_table_is_read_with_what_it_has() {
        let s = load(
            "CREATE TABLE work(\"Request_ID\" TEXT, STATUS TEXT, worker_pid INT, started_at INT, rowid TEXT) ;
             CREATE TABLE charges(amount INT, note TEXT, request_id TEXT, status TEXT);
             CREATE TABLE log(request_id TEXT, line TEXT)",
        )
        .unwrap();
        // Neither has an args_hash and none is called requests: any of the two with a status may serve.
        assert!(["work", "charges"].contains(&s.requests.table.as_str()));
        let s = load("CREATE TABLE w(request_id, status, worker_pid, updated_at, rowid)").unwrap();
        assert_eq!(s.requests.owner.as_deref(), Some("worker_pid"));
        assert_eq!(s.requests.claimed_at.as_deref(), Some("updated_at"));
        assert_eq!(s.requests.source.pos, "_rowid_", "a column called rowid hides the rowid");
        assert!(s.effects.is_empty() && !s.requests.id_indexed);
    }

    const TWO: &str = "CREATE TABLE a(request_id, status, args_hash); CREATE TABLE requests(request_id, status);
             CREATE TABLE zlog(request_id, line); CREATE TABLE tickets(id INTEGER PRIMARY KEY, request_id, n INT, name VARCHAR(9))";

    #[test]
    fn requests_is_preferred_and_no_effects_are_chosen_among_several() {
        let s = load(TWO).unwrap();
        assert_eq!(s.requests.table, "requests");
        assert!(s.effects.is_empty());
        assert_eq!(s.undecided, ["a", "tickets", "zlog"]);
        assert!(s.infos.len() == 1 && s.infos[0].contains("a, tickets, zlog"), "{:?}", s.infos);
        let s = load_with(TWO, &["Tickets", "tickets"]).unwrap();
        let [e] = s.effects.as_slice() else { panic!("one") };
        assert_eq!((&*e.table, &*e.key, &*e.label), ("tickets", "id", "name"));
        assert!(!e.in_order, "its key is the rowid: anybody may give it");
        assert_eq!((s.infos.len(), s.undecided.len()), (2, 0));
        let s = load_with(TWO, &["zlog", "tickets"]).unwrap();
        let names: Vec<&str> = s.effects.iter().map(|e| &*e.table).collect();
        assert_eq!(names, ["zlog", "tickets"]);
    }

    #[test]
    fn a_view_of_what_is_no_table_here_may_hold_effects_too() {
        let base = "CREATE TABLE requests(request_id TEXT PRIMARY KEY, status TEXT);
             CREATE TABLE tickets(id INTEGER PRIMARY KEY, request_id TEXT); CREATE TABLE raw(id INTEGER PRIMARY KEY, rid TEXT);";
        let of = |view: &str| load(&format!("{base} CREATE VIEW emails AS SELECT {view}")).unwrap();
        assert_eq!(of("id, rid AS request_id FROM raw").undecided, ["tickets", "emails"]);
        for derived in [
            "* FROM tickets",
            "t.request_id, r.id FROM tickets t JOIN raw r",
            "request_id FROM requests",
        ] {
            let s = of(derived);
            assert_eq!((s.effects.len(), s.undecided.len()), (1, 0), "{derived}");
        }
        let meant =
            load_with(&format!("{base} CREATE VIEW emails AS SELECT * FROM tickets"), &["emails"]);
        assert_eq!(&*meant.unwrap().effects[0].table, "emails");
    }

    #[test]
    fn a_named_table_that_is_not_there_is_said_to_be_none() {
        for (name, exists) in [("nothing", false), ("requests", true)] {
            let found = load_with(TWO, &[name]);
            let there = ["a", "tickets", "zlog"].map(str::to_owned).to_vec();
            assert_eq!(found, Err(Trouble::NoSuchEffects { table: name.into(), exists, there }));
        }
    }

    #[test]
    fn the_number_of_tables_has_no_bound() {
        let mut ddl: String = (0..600).map(|i| format!("CREATE TABLE a{i:03}(n INT);")).collect();
        ddl.push_str("CREATE TABLE zz_requests(request_id TEXT, status TEXT);");
        ddl.push_str("CREATE TABLE zz_effects(request_id TEXT);");
        let s = load(&ddl).unwrap();
        assert_eq!((&*s.requests.table, &*s.effects[0].table), ("zz_requests", "zz_effects"));
    }

    #[test]
    fn anything_else_is_listed() {
        assert_eq!(load(""), Err(Trouble::NoTables));
        assert_eq!(
            load("CREATE TABLE jobs(id INTEGER PRIMARY KEY, state TEXT)"),
            Err(Trouble::Foreign {
                tables: vec![("jobs".into(), vec!["id".into(), "state".into()])]
            })
        );
    }

    #[test]
    fn hostile_names_stay_names() {
        let s = load("CREATE TABLE \"a\"\"; DROP TABLE x\"(request_id, status)").unwrap();
        assert_eq!(s.requests.source.from, "\"a\"\"; DROP TABLE x\"");
    }
}
