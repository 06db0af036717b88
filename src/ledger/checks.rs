//! Invariants of a ledger, asked as questions: equal hashes, more than one effect, one without the other.
//!
//! Finds; never judges. Each question is one pass over a table.

use super::reader::{Reader, row, sql_limit};
use super::row::{Effect, Row};
use super::schema::{Source, quoted};
use super::survey::DONE;
use super::trouble::LedgerError;
use super::value;
use rusqlite::types::ValueRef;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::hash::{DefaultHasher, Hash, Hasher};

/// Requests with the same arguments hash.
#[derive(Debug, Clone, PartialEq)]
pub struct HashGroup {
    /// The hash.
    pub args_hash: String,
    /// Two rows or more, oldest first, with effects.
    pub rows: Vec<Row>,
}

/// Effects whose request_id has no row.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Loose {
    /// Newest first. Effects without any request_id don't count.
    pub effects: Vec<Effect>,
    /// The rowid of the oldest effect that still has a request: loose ones before it were swept
    /// (`request_purged`), later ones break an invariant.
    pub oldest_with_request: Option<i64>,
}

impl Loose {
    /// Whether this loose effect's request was swept rather than lost.
    pub fn is_purged(&self, effect: &Effect) -> bool {
        self.oldest_with_request.is_some_and(|oldest| effect.rowid < oldest)
    }
}

impl Reader<'_> {
    /// Other requests with this arguments hash, newest first, with effects.
    pub fn twins(
        &self,
        args_hash: &str,
        except_request_id: &str,
        limit: usize,
    ) -> Result<Vec<Row>, LedgerError> {
        let r = &self.schema().requests;
        let Some(hash) = &r.args_hash else { return Ok(Vec::new()) };
        let pos = &r.source.pos;
        let sql = format!(
            "SELECT r.{pos}, r.{} FROM {} AS r WHERE r.{pos} BETWEEN ?1 AND ?2 AND r.{} = ?3 ORDER BY r.{pos} DESC",
            quoted(&r.id),
            r.source.from,
            quoted(hash),
        );
        let mut places = Vec::new();
        self.in_pieces(&r.source, true, |low, high| {
            let found = self.query(&sql, (low, high, args_hash), |r| {
                Ok((r.get::<_, i64>(0)?, value::text(r.get_ref(1)?)))
            })?;
            let others =
                found.into_iter().filter(|(_, id)| id.as_deref() != Some(except_request_id));
            places.extend(others.map(|(place, _)| place));
            Ok(places.len() < limit)
        })?;
        places.truncate(limit);
        self.rows_at(&places)
    }

    /// Groups of requests with equal hashes; the `limit` groups with the newest rows, at most 100 rows
    /// of each.
    pub fn same_hash_groups(&self, limit: usize) -> Result<Vec<HashGroup>, LedgerError> {
        let r = &self.schema().requests;
        let Some(hash) = &r.args_hash else { return Ok(Vec::new()) };
        let groups = self.repeated(&r.source, hash)?.into_iter().take(limit);
        let groups = groups.map(|(args_hash, mut places)| {
            places.truncate(100);
            places.reverse();
            Ok(HashGroup { args_hash, rows: self.rows_at(&places)? })
        });
        groups.collect()
    }

    /// How many pairs of requests have equal hashes, and how many requests are in such a group.
    pub fn same_hash_counts(&self) -> Result<(u64, u64), LedgerError> {
        let r = &self.schema().requests;
        let Some(hash) = &r.args_hash else { return Ok((0, 0)) };
        let sizes =
            self.repeated(&r.source, hash)?.into_iter().map(|(_, places)| places.len() as u64);
        Ok(sizes.fold((0, 0), |(pairs, rows), n| (pairs + n * (n - 1) / 2, rows + n)))
    }

    /// Request ids with two effects or more, with how many; newest first, at most `limit`.
    pub fn duplicate_effects(&self, limit: usize) -> Result<Vec<(String, u64)>, LedgerError> {
        let Some(e) = &self.schema().effects else { return Ok(Vec::new()) };
        if e.request_unique {
            return Ok(Vec::new());
        }
        let found = self.repeated(&e.source, &e.request_id)?.into_iter().take(limit);
        Ok(found.map(|(id, places)| (id, places.len() as u64)).collect())
    }

    /// Effects whose request_id has no row, at most `limit`. None where a damaged file has lost rows.
    pub fn effects_without_request(&self, limit: usize) -> Result<Loose, LedgerError> {
        let effects = self.schema().effects.as_ref().filter(|_| self.has_all_requests());
        let Some(e) = effects else { return Ok(Loose::default()) };
        let r = &self.schema().requests;
        let (pos, id) = (&e.source.pos, quoted(&r.id));
        let on = format!("{} AS r ON r.{id} = e.{}", r.source.from, quoted(&e.request_id));
        let loose = format!(
            "{} LEFT JOIN {on} WHERE e.{pos} BETWEEN ?1 AND ?2 AND r.{id} IS NULL AND e.{} IS NOT NULL
             ORDER BY e.{pos} DESC LIMIT ?3",
            self.select_effects(),
            quoted(&e.request_id),
        );
        // CROSS JOIN keeps this order of the tables: the first hit is the oldest.
        let oldest = format!(
            "SELECT e.{pos} FROM {} AS e CROSS JOIN {on} WHERE e.{pos} BETWEEN ?1 AND ?2 ORDER BY e.{pos} LIMIT 1",
            e.source.from,
        );
        let mut out = Loose::default();
        self.in_pieces(&e.source, r.id_indexed, |low, high| {
            let left = sql_limit(limit - out.effects.len());
            if left > 0 {
                out.effects.extend(self.query(&loose, (low, high, left), |r| self.effect(r))?);
            }
            let first = self.query(&oldest, (low, high), |r| r.get::<_, i64>(0))?;
            out.oldest_with_request = first.first().copied().or(out.oldest_with_request);
            Ok(true)
        })?;
        Ok(out)
    }

    /// Done requests without an effect, newest first, at most `limit`. None where
    /// [`Reader::has_effects_table`] says no.
    pub fn done_without_effect(&self, limit: usize) -> Result<Vec<Row>, LedgerError> {
        let effects = self.schema().effects.as_ref().filter(|_| self.has_effects_table());
        let Some(e) = effects else { return Ok(Vec::new()) };
        let r = &self.schema().requests;
        let (pos, rid) = (&r.source.pos, quoted(&e.request_id));
        let sql = format!(
            "{} LEFT JOIN {} AS e ON e.{rid} = r.{} WHERE r.{pos} BETWEEN ?1 AND ?2 AND r.{} = ?3 AND e.{rid} IS NULL
             ORDER BY r.{pos} DESC LIMIT ?4",
            self.select_rows(),
            e.source.from,
            quoted(&r.id),
            quoted(&r.status),
        );
        let mut out: Vec<Row> = Vec::new();
        self.in_pieces(&r.source, e.request_indexed, |low, high| {
            let left = sql_limit(limit - out.len());
            out.extend(self.query(&sql, (low, high, DONE, left), row)?);
            Ok(out.len() < limit)
        })?;
        Ok(out)
    }

    /// Values of a column that occur more than once, with their places newest first; the value with the
    /// newest place first. NULL and empty values don't count. Two passes: the first one keeps 8 bytes for each row
    /// instead of the value.
    fn repeated(
        &self,
        source: &Source,
        name: &str,
    ) -> Result<Vec<(String, Vec<i64>)>, LedgerError> {
        let (mut once, mut often) = (HashSet::new(), HashSet::new());
        self.each(source, name, |_, value| {
            let digest = digest(value);
            if !once.insert(digest) {
                often.insert(digest);
            }
        })?;
        drop(once);
        if often.is_empty() {
            return Ok(Vec::new());
        }
        let mut places: HashMap<String, Vec<i64>> = HashMap::new();
        self.each(source, name, |place, value| {
            if often.contains(&digest(value)) {
                places.entry(value::text(value).unwrap_or_default()).or_default().push(place);
            }
        })?;
        let groups = places.into_iter().filter(|(_, p)| p.len() > 1);
        let by_newest: BTreeMap<_, _> =
            groups.map(|(v, p)| (std::cmp::Reverse(p.first().copied()), (v, p))).collect();
        Ok(by_newest.into_values().collect())
    }

    fn each(
        &self,
        source: &Source,
        name: &str,
        mut look: impl FnMut(i64, ValueRef<'_>),
    ) -> Result<(), LedgerError> {
        let (pos, from, name) = (&source.pos, &source.from, quoted(name));
        let sql = format!(
            "SELECT {pos}, {name} FROM {from} WHERE {pos} BETWEEN ?1 AND ?2 AND {name} <> '' ORDER BY {pos} DESC"
        );
        self.in_pieces(source, true, |low, high| {
            let mut pass = || -> rusqlite::Result<()> {
                let mut statement = self.conn().prepare(&sql)?;
                let mut rows = statement.query((low, high))?;
                while let Some(row) = rows.next()? {
                    look(row.get(0)?, row.get_ref(1)?);
                }
                Ok(())
            };
            pass().map_err(|e| self.error(&e))?;
            Ok(true)
        })
    }
}

fn digest(value: ValueRef<'_>) -> u64 {
    let mut hasher = DefaultHasher::new();
    match value {
        ValueRef::Text(bytes) | ValueRef::Blob(bytes) => bytes.hash(&mut hasher),
        other => value::text(other).hash(&mut hasher),
    }
    hasher.finish()
}
