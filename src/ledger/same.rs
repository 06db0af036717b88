//! Request ids that several rows have: a key that is unique only within a tenant, an endpoint, or not at all. What
//! tells those rows apart, and which effects can be given to one of them. Judges nothing.

use super::reader::{IDS_AT_ONCE, ROWS_OF_ONE, Reader};
use super::row::{Effect, Row};
use super::schema::{column, quoted};
use super::trouble::LedgerError;
use super::value::{self, text};
use crate::json::raw;
use rusqlite::types::Value;
use std::collections::{HashMap, HashSet};
use std::hash::{DefaultHasher, Hash, Hasher};

/// At most so many columns tell rows apart in words.
const TOLD: usize = 4;
/// How a column that holds nothing is named.
const NULL: &str = "NULL";
/// At most so many rows of one id are named.
const NAMED: usize = 8;
/// Rows of one window's shared ids that are read together; beyond that each id is read by itself.
const READ: usize = 10_000;

/// Columns with their values, as text. Foreign text.
pub type Tells = Vec<(String, String)>;

/// For people, and as `--row` takes them: `tenant=acme, user=7`.
pub fn told(tells: &Tells) -> String {
    tells.iter().map(|(c, v)| format!("{c}={v}")).collect::<Vec<_>>().join(", ")
}

/// What a row shares with others: its id.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Same {
    /// How many rows have the id.
    pub rows: u64,
    /// What tells this one from the others.
    pub tells: Tells,
    /// The same of all of them, as far as they are named.
    pub all: Vec<Tells>,
    /// Effects that carry the id and can't be given to one of the rows: charged to none.
    pub unassigned: u64,
    /// The effects of each row can be told.
    pub told_apart: bool,
    /// Somebody has said that this row is meant.
    pub chosen: bool,
}

impl Same {
    /// For people: `2 rows have this request_id: tenant acme / tenant globex`. Holds foreign text.
    pub fn words(&self) -> String {
        let more = if self.all.len() as u64 == self.rows { "" } else { " / …" };
        let one = |t: &Tells| {
            t.iter().map(|(c, v)| format!("{c} {v}").trim_end().to_owned()).collect::<Vec<_>>()
        };
        let all: Vec<String> = self.all.iter().map(|t| one(t).join(", ")).collect();
        let effects = match self.unassigned {
            0 => String::new(),
            1 => "; 1 effect carries it and can't be given to one of them".into(),
            n => format!("; {n} effects carry it and can't be given to one of them"),
        };
        format!("{} rows have this request_id: {}{more}{effects}", self.rows, all.join(" / "))
    }
}

/// One of the rows with an id.
struct Member {
    place: i64,
    /// Values of [`Requests::tells`](super::schema::Requests), as text.
    values: Vec<Option<String>>,
}

/// The rows with one id.
struct Group {
    /// All of them, or the newest.
    members: Vec<Member>,
    rows: u64,
    /// Which columns tell them apart; none where only their places do.
    differing: Vec<usize>,
    told_apart: bool,
    /// The effects that carry the id and are nobody's yet.
    effects: Vec<Effect>,
}

impl Reader<'_> {
    /// Marks the rows whose id others have too, and takes from them the effects that can't be given to one.
    pub(super) fn tell_apart(&self, rows: &mut [Row]) -> Result<(), LedgerError> {
        let r = &self.schema().requests;
        // A unique column may still be NULL in many rows.
        let may_repeat = |id: &&str| !r.id_unique || id.is_empty();
        let mut ids: Vec<&str> =
            rows.iter().map(|r| r.request_id.as_str()).filter(may_repeat).collect();
        ids.sort_unstable();
        ids.dedup();
        if ids.is_empty() {
            return Ok(());
        }
        if !r.id_indexed {
            // One pass for each read, where a look-up would be one for each window.
            let repeated = self.repeated_ids()?;
            ids.retain(|id| repeated.contains(&digest(id)));
        }
        let mut groups: HashMap<String, Group> = HashMap::new();
        for chunk in ids.chunks(IDS_AT_ONCE / 4) {
            self.group(chunk, &mut groups)?;
        }
        for row in rows.iter_mut() {
            if let Some(group) = groups.get_mut(&row.request_id)
                && group.effects.is_empty()
            {
                group.effects = std::mem::take(&mut row.effects);
            }
        }
        for row in rows {
            let Some(group) = groups.get_mut(&row.request_id) else { continue };
            let known = group.members.iter().position(|m| m.place == row.rowid);
            let fetched = if known.is_none() { self.member_at(row.rowid)? } else { None };
            let Some(own) = known.and_then(|i| group.members.get(i)).or(fetched.as_ref()) else {
                continue;
            };
            row.effects = match group.told_apart {
                true => group.effects.extract_if(.., |e| self.is_of(e, own)).collect(),
                false => Vec::new(),
            };
            let unassigned = if group.told_apart { 0 } else { group.effects.len() as u64 };
            let named = group.members.iter().take(NAMED);
            row.same = Some(Box::new(Same {
                rows: group.rows,
                tells: self.tells(own, &group.differing),
                all: named.map(|m| self.tells(m, &group.differing)).collect(),
                unassigned,
                told_apart: group.told_apart,
                chosen: false,
            }));
        }
        Ok(())
    }

    /// Groups of two rows and more with one of these ids.
    fn group(&self, ids: &[&str], out: &mut HashMap<String, Group>) -> Result<(), LedgerError> {
        let found = self.members(ids, READ)?;
        let mut groups: HashMap<String, Vec<Member>> = HashMap::new();
        let whole = found.len() < READ;
        if whole {
            for (id, member) in found {
                groups.entry(id).or_default().push(member);
            }
        } else {
            for id in ids {
                let found = self.members(&[id], ROWS_OF_ONE)?;
                groups.insert((*id).to_owned(), found.into_iter().map(|(_, m)| m).collect());
            }
        }
        for (id, members) in groups.into_iter().filter(|(_, m)| m.len() > 1) {
            let rows = match whole {
                true => members.len() as u64,
                false => self.count_of(&id)?,
            };
            let mut seen = HashSet::new();
            let distinct = members.iter().all(|m| seen.insert(&m.values));
            let told_apart =
                self.effects_are_told_apart() && distinct && rows == members.len() as u64;
            let differing = if distinct { self.differing(&members) } else { Vec::new() };
            out.insert(id, Group { members, rows, differing, told_apart, effects: Vec::new() });
        }
        Ok(())
    }

    /// The effects' tables have every column that tells the requests apart.
    pub fn effects_are_told_apart(&self) -> bool {
        let schema = self.schema();
        let n = schema.requests.tells.len();
        schema.requests.keyed && n > 0 && schema.effects.iter().all(|e| e.tells.len() == n)
    }

    /// The same, and no two rows with one id have the same in these columns: a key lets NULL repeat.
    pub fn all_effects_are_told_apart(&self) -> Result<bool, LedgerError> {
        let r = &self.schema().requests;
        if !self.effects_are_told_apart() {
            return Ok(false);
        }
        self.breathe()?;
        let columns: Vec<String> =
            std::iter::once(&r.id).chain(&r.tells).map(|c| quoted(c)).collect();
        let sql = format!(
            "SELECT 1 FROM {} WHERE {} GROUP BY {} HAVING count(*) > 1 LIMIT 1",
            quoted(&r.table),
            columns.iter().map(|c| format!("{c} IS NULL")).collect::<Vec<_>>().join(" OR "),
            columns.iter().map(|c| format!("{c} COLLATE BINARY")).collect::<Vec<_>>().join(", "),
        );
        Ok(self.query(&sql, (), |r| r.get::<_, i64>(0))?.is_empty())
    }

    /// Whether every `COLUMN=VALUE` is so in the row at this place.
    pub fn row_is(&self, place: i64, said: &[String]) -> Result<bool, LedgerError> {
        let r = &self.schema().requests;
        let sql = format!("SELECT * FROM {} WHERE {} = ?1", r.source.from, r.source.pos);
        let found = self.query(&sql, [place], |row| {
            let names: Vec<&str> = row.as_ref().column_names().collect();
            let mut all = true;
            for said in said {
                let Some((column, value)) = said.split_once('=') else { return Ok(false) };
                let is = |name: &str| name.eq_ignore_ascii_case(column);
                let found = names.iter().position(|n| is(n));
                all &= match found {
                    Some(i) => text(row.get_ref(i)?).as_deref().unwrap_or(NULL) == value,
                    None => is("rowid") && value == place.to_string(),
                };
            }
            Ok(all)
        })?;
        Ok(found.first() == Some(&true))
    }

    /// Rows that can be told apart by nothing else have their place.
    fn tells(&self, m: &Member, differing: &[usize]) -> Tells {
        let names = &self.schema().requests.tells;
        if differing.is_empty() {
            return vec![("rowid".into(), m.place.to_string())];
        }
        let one = |i: &usize| {
            let value = m.values.get(*i)?.as_deref().unwrap_or(NULL);
            Some((names.get(*i)?.clone(), value.to_owned()))
        };
        differing.iter().filter_map(one).collect()
    }

    /// Which columns differ among these rows, and are enough.
    fn differing(&self, group: &[Member]) -> Vec<usize> {
        let columns = 0..self.schema().requests.tells.len();
        let differ = |i: &usize| {
            let first = group.first().and_then(|m| m.values.get(*i));
            group.iter().any(|m| m.values.get(*i) != first)
        };
        let found: Vec<usize> = columns.filter(differ).take(TOLD).collect();
        let mut seen = HashSet::new();
        let unique = group
            .iter()
            .all(|m| seen.insert(found.iter().map(|i| m.values.get(*i)).collect::<Vec<_>>()));
        if unique { found } else { Vec::new() }
    }

    fn is_of(&self, effect: &Effect, m: &Member) -> bool {
        let Some(e) = self.schema().effects.iter().find(|e| e.table == effect.table) else {
            return false;
        };
        e.tells.iter().zip(&m.values).all(|(name, value)| {
            if *name == e.key {
                return Some(&effect.key) == value.as_ref();
            }
            let found = effect.columns.iter().find(|(c, _)| c == name);
            found.is_some_and(|(_, json)| match value {
                None => json == "null",
                Some(value) => raw::as_str(json).as_deref().unwrap_or(json) == value,
            })
        })
    }

    fn members(&self, ids: &[&str], most: usize) -> Result<Vec<(String, Member)>, LedgerError> {
        let r = &self.schema().requests;
        let (clause, values) = self.has_id("r", ids);
        let sql = format!(
            "{} WHERE {clause} ORDER BY r.{} DESC LIMIT {most}",
            self.select_members(),
            r.source.pos,
        );
        self.query(&sql, rusqlite::params_from_iter(values), |row| self.member(row))
    }

    fn member_at(&self, place: i64) -> Result<Option<Member>, LedgerError> {
        let sql =
            format!("{} WHERE r.{} = ?1", self.select_members(), self.schema().requests.source.pos);
        Ok(self.query(&sql, [place], |row| self.member(row))?.pop().map(|(_, m)| m))
    }

    fn select_members(&self) -> String {
        let r = &self.schema().requests;
        let mut columns = vec![column("r", Some(&r.id))];
        columns.extend(r.tells.iter().map(|c| column("r", Some(c))));
        format!("SELECT r.{}, {} FROM {} AS r", r.source.pos, columns.join(", "), r.source.from)
    }

    fn member(&self, row: &rusqlite::Row<'_>) -> rusqlite::Result<(String, Member)> {
        let count = self.schema().requests.tells.len();
        let values = (0..count).map(|i| row.get_ref(i + 2).map(value::text));
        let member =
            Member { place: row.get(0)?, values: values.collect::<rusqlite::Result<_>>()? };
        Ok((value::id(row.get_ref(1)?).unwrap_or_default(), member))
    }

    fn count_of(&self, id: &str) -> Result<u64, LedgerError> {
        let (clause, values) = self.has_id("r", &[id]);
        let table = quoted(&self.schema().requests.table);
        let sql = format!("SELECT count(*) FROM {table} AS r WHERE {clause}");
        let n: Vec<i64> = self.query(&sql, rusqlite::params_from_iter(values), |r| r.get(0))?;
        Ok(n.first().map_or(0, |n| n.unsigned_abs()))
    }

    /// The requests table's id is one of these; the empty one is NULL too.
    pub(super) fn has_id(&self, alias: &str, ids: &[&str]) -> (String, Vec<Value>) {
        let id = column(alias, Some(&self.schema().requests.id));
        let (clause, values) = self.is_one_of(&id, ids);
        match ids.contains(&"") {
            true => (format!("({clause} OR {id} IS NULL)"), values),
            false => (clause, values),
        }
    }

    /// Digests of the ids that occur more than once: one pass, kept for this read.
    fn repeated_ids(&self) -> Result<&HashSet<u64>, LedgerError> {
        if let Some(known) = self.repeated.get() {
            return Ok(known);
        }
        let r = &self.schema().requests;
        let mut digests = Vec::new();
        self.each(&r.source, &r.id, true, |_, v| {
            digests.push(digest(&value::id(v).unwrap_or_default()));
            Ok(())
        })?;
        digests.sort_unstable();
        let found = digests.windows(2).filter(|w| w[0] == w[1]).map(|w| w[0]).collect();
        Ok(self.repeated.get_or_init(|| found))
    }
}

fn digest(id: &str) -> u64 {
    let mut hasher = DefaultHasher::new();
    id.hash(&mut hasher);
    hasher.finish()
}
