//! Invariants of a ledger, asked as questions: equal hashes, more than one effect, one without the other.
//!
//! Finds; never judges. Each question is one pass over a table, in bounded memory.

use super::join::Ids;
use super::reader::{Reader, marks, sql_limit};
use super::repeats::{PLACES, Repeated, Repeats};
use super::row::{Effect, Row};
use super::schema::{Effects, Source, quoted};
use super::trouble::{LedgerError, Trouble};
use super::value;
use rusqlite::types::ValueRef;
use rusqlite::{Params, params_from_iter};
use std::borrow::Cow;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::hash::{BuildHasher, RandomState};
use std::sync::Arc;

/// Requests with the same arguments hash.
#[derive(Debug, Clone, PartialEq)]
pub struct HashGroup {
    /// The hash.
    pub args_hash: String,
    /// Two rows or more, oldest first, with effects.
    pub rows: Vec<Row>,
}

/// The newest things found, and how many there are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Named<T> {
    /// At most as many as were asked for.
    pub list: Vec<T>,
    /// All of them.
    pub total: u64,
}

impl<T> Default for Named<T> {
    fn default() -> Named<T> {
        Named { list: Vec::new(), total: 0 }
    }
}

impl<T> Named<T> {
    fn absorb(&mut self, other: Named<T>, limit: usize) {
        self.total += other.total;
        self.list.extend(other.list);
        self.list.truncate(limit);
    }
}

/// What one pass over the effects has found.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Labels {
    /// Effects in all.
    pub effects: u64,
    /// How often each label that was asked for occurs.
    pub wanted: Vec<(String, u64)>,
    /// Labels that several requests' effects share, with some of those requests. Counted are also those that occur
    /// several times and were not looked at: whether they are shared is not known.
    pub shared: Named<(String, Vec<String>)>,
}

/// Effects whose request has no row: the newest of each kind by name, and how many effects there are.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Loose {
    /// Younger than the oldest effect that has a request, or in a table whose order says nothing.
    pub lost: Named<String>,
    /// Older than any that has a request: their rows may have been swept.
    pub purged: Named<String>,
    /// Effects that name no request at all.
    pub nameless: u64,
    /// In how many tables the named ones were found, and how often, where there are several tables.
    spread: BTreeMap<String, (u64, u64)>,
}

impl Loose {
    /// Each can be shown by its request's name.
    pub fn is_named(&self) -> bool {
        let whole = |n: &Named<String>| n.total == n.list.len() as u64;
        whole(&self.lost) && whole(&self.purged) && self.nameless == 0
    }

    /// The effects of this request are in different tables, one in each: no repeat.
    pub fn are_apart(&self, request_id: &str) -> bool {
        self.spread.get(request_id).is_some_and(|(tables, n)| tables == n)
    }

    /// Adds what another table has.
    fn absorb(&mut self, other: Loose, limit: usize) {
        let mut found: BTreeMap<&str, u64> = BTreeMap::new();
        for id in other.lost.list.iter().chain(&other.purged.list) {
            *found.entry(id).or_default() += 1;
        }
        for (id, n) in found {
            let spread = self.spread.entry(id.to_owned()).or_default();
            *spread = (spread.0 + 1, spread.1 + n);
        }
        self.lost.absorb(other.lost, limit);
        self.purged.absorb(other.purged, limit);
        self.nameless += other.nameless;
    }
}

/// The state of one pass for effects whose request has no row; keep it between reads.
#[derive(Debug, Clone, Default)]
pub struct LooseScan {
    /// All tables have been seen.
    pub complete: bool,
    /// Of the tables that have been seen.
    found: Loose,
    /// Which table is looked at, and what was found there.
    table: usize,
    here: Loose,
    /// Some effect of this table has a request.
    kept: bool,
    before: Option<i64>,
    /// The requests' ids, where no index answers for one of these tables: read once for the whole pass.
    ids: Option<Arc<Ids>>,
}

impl LooseScan {
    /// What a complete pass has found.
    pub fn found(self) -> Loose {
        self.found
    }

    /// A table has been seen to its end.
    fn next_table(&mut self, limit: usize) {
        let mut here = std::mem::take(&mut self.here);
        if !self.kept {
            // Nothing tells that they are old.
            let swept = std::mem::take(&mut here.purged);
            here.lost.absorb(swept, limit);
        }
        self.found.absorb(here, limit);
        (self.kept, self.before) = (false, None);
        self.table += 1;
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
            "SELECT r.{pos}, r.{} FROM {} AS r WHERE r.{pos} BETWEEN ?1 AND ?2 AND r.{} COLLATE BINARY = ?3 ORDER BY r.{pos} DESC",
            quoted(&r.id),
            r.source.from,
            quoted(hash),
        );
        let mut places = Vec::new();
        self.in_pieces(&r.source, true, |low, high| {
            let found = self.query(&sql, (low, high, args_hash), |r| {
                Ok((r.get::<_, i64>(0)?, value::id(r.get_ref(1)?)))
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
        Ok(self.named_hash_groups(limit)?.list)
    }

    /// The same, and how many groups there are.
    pub fn named_hash_groups(&self, limit: usize) -> Result<Named<HashGroup>, LedgerError> {
        let r = &self.schema().requests;
        let Some(hash) = &r.args_hash else { return Ok(Named::default()) };
        let mut out = Vec::new();
        let found = self.repeated(&r.source, hash, limit)?;
        let (kept, total) = (found.groups.len(), found.total);
        let oldest_first = |(places, _): (Vec<i64>, u64)| places.into_iter().rev().collect();
        let places: Vec<Vec<i64>> = found.groups.into_iter().map(oldest_first).collect();
        for mut rows in self.rows_of_groups(&places)? {
            // Read again, after the pass: what is no longer equal was changed meanwhile.
            let args_hash = rows.first().and_then(|r| r.args_hash.clone()).unwrap_or_default();
            rows.retain(|r| r.args_hash.as_deref() == Some(&args_hash));
            if rows.iter().any(|r| r.request_id != rows[0].request_id) {
                out.push(HashGroup { args_hash, rows });
            }
        }
        Ok(Named { total: total - (kept - out.len()) as u64, list: out })
    }

    /// Groups of requests with equal hashes: the request ids of the `limit` groups with the newest rows, oldest
    /// first, at most 100 of each.
    pub fn equal_hashes(&self, limit: usize) -> Result<Named<Vec<String>>, LedgerError> {
        let r = &self.schema().requests;
        let Some(hash) = &r.args_hash else { return Ok(Named::default()) };
        let found = self.repeated(&r.source, hash, limit)?;
        let groups = self.confirmed(&r.source, hash, &r.id, &found)?;
        let mut gone = (found.groups.len() - groups.len()) as u64;
        let mut list = Vec::new();
        for (_, ids) in groups {
            // Rows that share their id as well are no two requests under two ids, if those are all there are.
            if ids.iter().any(|id| Some(id) != ids.first()) {
                list.push(ids);
            } else if ids.len() < PLACES {
                gone += 1;
            }
        }
        Ok(Named { total: found.total - gone, list })
    }

    /// Request ids with two effects or more, with how many; newest first, at most `limit`.
    pub fn duplicate_effects(&self, limit: usize) -> Result<Vec<(String, u64)>, LedgerError> {
        Ok(self.repeated_effects(limit)?.list)
    }

    /// The same, and how many such requests there are. One in each of two tables is no repeat.
    pub fn repeated_effects(&self, limit: usize) -> Result<Named<(String, u64)>, LedgerError> {
        let mut out = Named::default();
        for e in self.schema().effects.iter().filter(|e| !e.request_unique) {
            if !self.schema().requests.id_unique {
                out.absorb(self.repeated_of_shared(e, limit)?, limit);
                continue;
            }
            let found = self.repeated(&e.source, &e.request_id, limit)?;
            let ids = self.confirmed(&e.source, &e.request_id, &e.request_id, &found)?;
            let gone = (found.groups.len() - ids.len()) as u64;
            let sizes = found.groups.iter().map(|(_, n)| *n).zip(&ids);
            // At most 100 places of a group are read again; a larger one is as large as it was found.
            let list = sizes.map(|(n, (id, again))| (id.clone(), n.max(again.len() as u64)));
            out.absorb(Named { list: list.collect(), total: found.total - gone }, limit);
        }
        Ok(out)
    }

    /// The same where several rows may have one id: one row's effects are counted where they can be told, and else no
    /// more are too many than there are rows.
    fn repeated_of_shared(
        &self,
        e: &Effects,
        limit: usize,
    ) -> Result<Named<(String, u64)>, LedgerError> {
        self.breathe()?;
        let r = &self.schema().requests;
        let (id, rid) = (quoted(&r.id), format!("e.{}", quoted(&e.request_id)));
        let from = quoted(&e.table);
        let told: Vec<(String, String)> = match self.effects_are_told_apart() {
            true => r.tells.iter().zip(&e.tells).map(|(a, b)| (quoted(a), quoted(b))).collect(),
            false => Vec::new(),
        };
        let list = |one: &dyn Fn(&(String, String)) -> String| -> String {
            told.iter().map(one).collect()
        };
        let sql = format!(
            "WITH m AS (SELECT {id} AS id{}, count(*) AS n FROM {} GROUP BY {id} COLLATE BINARY{} HAVING count(*) > 1)
             SELECT {rid}, count(*) FROM {from} AS e LEFT JOIN m ON m.id = {rid} COLLATE BINARY{}
             WHERE {rid} IS NOT NULL AND {rid} COLLATE BINARY <> ''
             GROUP BY {rid} COLLATE BINARY{} HAVING count(*) > coalesce(max(m.n), 1)",
            list(&|(a, _)| format!(", {a}")),
            quoted(&r.table),
            list(&|(a, _)| format!(", {a} COLLATE BINARY")),
            list(&|(a, b)| format!(" AND m.{a} IS e.{b} COLLATE BINARY")),
            list(&|(_, b)| format!(", e.{b} COLLATE BINARY")),
        );
        let found = self.query(&sql, (), |row| {
            Ok((
                value::id(row.get_ref(0)?).unwrap_or_default(),
                row.get::<_, i64>(1)?.unsigned_abs(),
            ))
        })?;
        let total = found.len() as u64;
        Ok(Named { list: found.into_iter().take(limit).collect(), total })
    }

    /// Request ids that several rows have, with how many; the `limit` newest.
    pub fn shared_ids(&self, limit: usize) -> Result<Named<(String, u64)>, LedgerError> {
        let r = &self.schema().requests;
        if r.id_unique {
            return Ok(Named::default());
        }
        let found = self.repeated(&r.source, &r.id, limit)?;
        let ids = self.confirmed(&r.source, &r.id, &r.id, &found)?;
        let gone = (found.groups.len() - ids.len()) as u64;
        let sizes = found.groups.iter().map(|(_, n)| *n).zip(&ids);
        let list = sizes.map(|(n, (id, again))| (id.clone(), n.max(again.len() as u64)));
        Ok(Named { list: list.collect(), total: found.total - gone })
    }

    /// One pass over the effects: how many, how often each label of `wanted` occurs, and which labels the
    /// effects of several requests share (the `limit` newest of each table, at most 100 requests of each).
    pub fn labels(&self, wanted: &[String], limit: usize) -> Result<Labels, LedgerError> {
        let mut out =
            Labels { wanted: wanted.iter().map(|w| (w.clone(), 0)).collect(), ..Labels::default() };
        for e in &self.schema().effects {
            self.labels_of(e, limit, &mut out)?;
        }
        Ok(out)
    }

    fn labels_of(&self, e: &Effects, limit: usize, out: &mut Labels) -> Result<(), LedgerError> {
        let (mut repeats, state) = (Repeats::default(), RandomState::new());
        self.each(&e.source, &e.label, true, |place, value| {
            out.effects += 1;
            let bytes = bytes(value);
            if !out.wanted.is_empty() {
                let label = value::text(value);
                let asked = out.wanted.iter_mut().filter(|(w, _)| Some(w) == label.as_ref());
                asked.for_each(|(_, n)| *n += 1);
            }
            // An effect's own key says nothing of what it is about, and an empty label is none.
            let tells = e.label != e.key && !bytes.is_empty();
            if tells { repeats.push(state.hash_one(bytes), place) } else { Ok(()) }
        })?;
        let found = self.unlocked(|| repeats.finish(limit))?.map_err(|e| self.no_room(&e))?;
        let mut unread = found.total - found.groups.len() as u64;
        for group in found.groups {
            let (all, looked_at) = (group.1, group.0.len() as u64);
            let one = Repeated { groups: vec![group], ..Repeated::default() };
            for (label, mut ids) in self.confirmed(&e.source, &e.label, &e.request_id, &one)? {
                ids.sort_unstable();
                ids.dedup();
                match ids.len() {
                    2.. => {
                        out.shared.list.push((label, ids));
                        out.shared.total += 1;
                    }
                    // The newest are one request's; whose the others are is not known.
                    _ => unread += u64::from(all > looked_at),
                }
            }
        }
        out.shared.total += unread;
        Ok(())
    }

    /// All of these effects of a request without a row are older than any that has one: the row may have been
    /// swept. Never where the order of a table says nothing, nor where a damaged file has lost rows.
    pub fn may_be_swept(&self, effects: &[Effect]) -> Result<bool, LedgerError> {
        for e in &self.schema().effects {
            let newest = effects.iter().filter(|x| x.table == e.table).map(|x| x.rowid).max();
            let Some(newest) = newest else { continue };
            if self.oldest_with_request(e)?.is_none_or(|oldest| newest >= oldest) {
                return Ok(false);
            }
        }
        Ok(!effects.is_empty())
    }

    /// The place of the oldest effect that still has a request, where places are in order.
    fn oldest_with_request(&self, e: &Effects) -> Result<Option<i64>, LedgerError> {
        if !e.in_order || !self.has_all_requests() {
            return Ok(None);
        }
        let mut oldest = None;
        if !e.joined {
            let (ids, sql) = (self.ids_of_requests()?, select_ids(e));
            self.in_pieces(&e.source, true, |low, high| {
                self.query(&sql, (low, high), |r| {
                    if ids.has(r)? {
                        oldest = Some(r.get(1)?);
                    }
                    Ok(())
                })
                .map(|_: Vec<()>| true)
            })?;
            return Ok(oldest);
        }
        let sql = self.first_with_request(e);
        self.in_pieces(&e.source, true, |low, high| {
            let first = self.query(&sql, (low, high), |r| r.get::<_, i64>(0))?;
            oldest = first.first().copied().or(oldest);
            Ok(true)
        })?;
        Ok(oldest)
    }

    /// CROSS JOIN keeps this order of the tables: the first hit is the oldest.
    fn first_with_request(&self, e: &Effects) -> String {
        let r = &self.schema().requests;
        let (pos, id, rid) = (&e.source.pos, quoted(&r.id), quoted(&e.request_id));
        format!(
            "SELECT e.{pos} FROM {} AS e CROSS JOIN {} AS r ON r.{id} = e.{rid} COLLATE BINARY
             WHERE e.{pos} BETWEEN ?1 AND ?2 ORDER BY e.{pos} LIMIT 1",
            e.source.from, r.source.from,
        )
    }

    /// Effects whose request has no row: lost ones, and those that may have been swept (older than the oldest
    /// effect that still has a request); the newest `limit` of each. None where a damaged file has lost rows.
    pub fn loose(&self, limit: usize) -> Result<Loose, LedgerError> {
        let mut scan = LooseScan::default();
        for e in self.schema().effects.iter().filter(|_| self.has_all_requests()) {
            self.in_pieces(&e.source, true, |low, high| {
                self.loose_between(e, (low, high), limit, &mut scan).map(|()| true)
            })?;
            scan.next_table(limit);
        }
        Ok(scan.found())
    }

    /// The next `budget` effects of such a pass, newest first, one table after the other; keep `scan` between reads.
    /// (Where a table has no rowid a piece is the whole table.)
    pub fn loose_step(
        &self,
        scan: &mut LooseScan,
        limit: usize,
        budget: usize,
    ) -> Result<(), LedgerError> {
        let e = self.schema().effects.get(scan.table).filter(|_| self.has_all_requests());
        let (Some(e), false) = (e, scan.complete) else {
            scan.complete = true;
            return Ok(());
        };
        self.breathe()?;
        let high = match scan.before {
            None => i64::MAX,
            Some(before) => before - 1,
        };
        let (pos, from) = (&e.source.pos, &e.source.from);
        let low = if e.source.rowid {
            let sql = format!(
                "SELECT min(p), count(*) FROM (SELECT {pos} AS p FROM {from} WHERE {pos} <= ?1 ORDER BY {pos} DESC LIMIT ?2)"
            );
            let found = self.query(&sql, (high, sql_limit(budget.max(1))), |r| {
                Ok((r.get::<_, Option<i64>>(0)?, r.get::<_, i64>(1)?))
            })?;
            let full = found.first().filter(|(_, n)| *n >= sql_limit(budget.max(1)));
            full.and_then(|(low, _)| *low).unwrap_or(i64::MIN)
        } else {
            i64::MIN
        };
        self.loose_between(e, (low, high), limit, scan)?;
        scan.before = Some(low);
        if low == i64::MIN {
            scan.next_table(limit);
            scan.complete = scan.table >= self.schema().effects.len();
        }
        Ok(())
    }

    fn loose_between(
        &self,
        e: &Effects,
        (low, high): (i64, i64),
        limit: usize,
        scan: &mut LooseScan,
    ) -> Result<(), LedgerError> {
        if !e.joined {
            return self.loose_without_index(e, (low, high), limit, scan);
        }
        let r = &self.schema().requests;
        let (pos, id, rid) = (&e.source.pos, quoted(&r.id), quoted(&e.request_id));
        let joined = format!(
            "SELECT e.{rid} FROM {} AS e LEFT JOIN {} AS r ON r.{id} = e.{rid} COLLATE BINARY
             WHERE e.{pos} BETWEEN ?1 AND ?2 AND r.{id} IS NULL ORDER BY e.{pos} DESC",
            e.source.from, r.source.from,
        );
        let first = self.first_with_request(e);
        // Below the oldest effect with a request all are loose: no join needed.
        let all = format!(
            "SELECT e.{rid} FROM {} AS e WHERE e.{pos} BETWEEN ?1 AND ?2 ORDER BY e.{pos} DESC",
            e.source.from,
        );
        let here = &mut scan.here;
        if !e.in_order {
            here.nameless +=
                self.name_ids(&joined, (low, high), limit, &mut here.lost, |_| Ok(true))?;
            return Ok(());
        }
        let oldest = self.query(&first, (low, high), |r| r.get::<_, i64>(0))?.first().copied();
        match oldest {
            Some(oldest) => {
                // Newest first: what looked swept is lost after all once an older effect has a request.
                scan.kept = true;
                let swept = std::mem::take(&mut here.purged);
                here.lost.absorb(swept, limit);
                here.nameless +=
                    self.name_ids(&joined, (oldest, high), limit, &mut here.lost, |_| Ok(true))?;
                if let Some(below) = oldest.checked_sub(1).filter(|b| *b >= low) {
                    here.nameless +=
                        self.name_ids(&all, (low, below), limit, &mut here.purged, |_| Ok(true))?;
                }
            }
            None => {
                here.nameless +=
                    self.name_ids(&all, (low, high), limit, &mut here.purged, |_| Ok(true))?;
            }
        }
        Ok(())
    }

    /// The same by a look at each effect, newest first.
    fn loose_without_index(
        &self,
        e: &Effects,
        (low, high): (i64, i64),
        limit: usize,
        scan: &mut LooseScan,
    ) -> Result<(), LedgerError> {
        let ids = match &scan.ids {
            Some(ids) => ids.clone(),
            None => Arc::new(self.ids_of_requests()?),
        };
        scan.ids = Some(ids.clone());
        let (here, kept) = (&mut scan.here, &mut scan.kept);
        self.query(&select_ids(e), (low, high), |r| {
            if ids.has(r)? {
                *kept = true;
                let swept = std::mem::take(&mut here.purged);
                here.lost.absorb(swept, limit);
                return Ok(());
            }
            let Some(id) = value::id(r.get_ref(0)?) else {
                here.nameless += 1;
                return Ok(());
            };
            let found = if e.in_order { &mut here.purged } else { &mut here.lost };
            found.absorb(Named { list: vec![id], total: 1 }, limit);
            Ok(())
        })
        .map(|_: Vec<()>| ())
    }

    /// Adds the ids that a query gives, of the rows to `keep`; returns how many were NULL, which are no ids.
    pub(super) fn name_ids(
        &self,
        sql: &str,
        params: impl Params,
        limit: usize,
        out: &mut Named<String>,
        keep: impl Fn(&rusqlite::Row<'_>) -> rusqlite::Result<bool>,
    ) -> Result<u64, LedgerError> {
        let pass = || -> rusqlite::Result<u64> {
            let mut statement = self.conn().prepare(sql)?;
            let mut rows = statement.query(params)?;
            let mut none = 0;
            while let Some(row) = rows.next()? {
                if !keep(row)? {
                    continue;
                }
                if row.get_ref(0)? == ValueRef::Null {
                    none += 1;
                    continue;
                }
                out.total += 1;
                if out.list.len() < limit {
                    out.list.push(value::id(row.get_ref(0)?).unwrap_or_default());
                }
            }
            Ok(none)
        };
        pass().map_err(|e| self.error(&e))
    }

    /// Values of a column that occur more than once. NULL and empty values don't count.
    fn repeated(&self, source: &Source, name: &str, limit: usize) -> Result<Repeated, LedgerError> {
        let (mut repeats, state) = (Repeats::default(), RandomState::new());
        self.each(source, name, false, |place, value| {
            repeats.push(state.hash_one(bytes(value)), place)
        })?;
        self.unlocked(|| repeats.finish(limit))?.map_err(|e| self.no_room(&e))
    }

    /// Reads the groups again: the value they share, and the column `id` of each place, oldest first. What a
    /// writer changed since the pass, and what only had the same digest, is no group.
    fn confirmed(
        &self,
        source: &Source,
        name: &str,
        id: &str,
        found: &Repeated,
    ) -> Result<Vec<(String, Vec<String>)>, LedgerError> {
        let (pos, from) = (&source.pos, &source.from);
        let mut out = Vec::new();
        let select = format!("SELECT {}, {}, {pos} FROM {from}", quoted(name), quoted(id));
        let read = |r: &rusqlite::Row<'_>| {
            let value = value::id(r.get_ref(0)?).unwrap_or_default();
            Ok((value, value::id(r.get_ref(1)?).unwrap_or_default()))
        };
        let mut all = HashMap::new();
        if !source.rowid && !found.groups.is_empty() {
            // A look-up by place is a pass over the table: one for all groups.
            let wanted: HashSet<i64> = found.groups.iter().flat_map(|(p, _)| p).copied().collect();
            let one = |r: &rusqlite::Row<'_>| {
                let place = r.get(2)?;
                wanted.contains(&place).then(|| Ok((place, read(r)?))).transpose()
            };
            all.extend(self.query(&select, (), one)?.into_iter().flatten());
        }
        for (places, _) in &found.groups {
            self.breathe()?;
            let rows: Vec<(String, String)> = match source.rowid {
                true => {
                    let at = marks(places.len());
                    let sql = format!("{select} WHERE {pos} IN ({at}) ORDER BY {pos}");
                    self.query(&sql, params_from_iter(places), read)?
                }
                false => places.iter().rev().filter_map(|p| all.remove(p)).collect(),
            };
            let mut by_value: BTreeMap<String, Vec<String>> = BTreeMap::new();
            for (value, id) in rows {
                by_value.entry(value).or_default().push(id);
            }
            out.extend(
                by_value
                    .into_iter()
                    .max_by_key(|(_, ids)| ids.len())
                    .filter(|(_, ids)| ids.len() > 1),
            );
        }
        Ok(out)
    }

    fn no_room(&self, e: &std::io::Error) -> LedgerError {
        self.trouble(Trouble::Other(format!("no temporary file to count repeats in: {e}")))
    }

    /// Every value of a column with its place, newest first; NULL and empty ones where `all` says so.
    pub(super) fn each(
        &self,
        source: &Source,
        name: &str,
        all: bool,
        mut look: impl FnMut(i64, ValueRef<'_>) -> std::io::Result<()>,
    ) -> Result<(), LedgerError> {
        let (pos, from, name) = (&source.pos, &source.from, quoted(name));
        let some = if all { String::new() } else { format!("AND {name} COLLATE BINARY <> ''") };
        let sql = format!(
            "SELECT {pos}, {name} FROM {from} WHERE {pos} BETWEEN ?1 AND ?2 {some} ORDER BY {pos} DESC"
        );
        self.in_pieces(source, true, |low, high| {
            let mut full = Ok(());
            let mut pass = || -> rusqlite::Result<()> {
                let mut statement = self.conn().prepare(&sql)?;
                let mut rows = statement.query((low, high))?;
                while let (Some(row), Ok(())) = (rows.next()?, &full) {
                    full = look(row.get(0)?, row.get_ref(1)?);
                }
                Ok(())
            };
            pass().map_err(|e| self.error(&e))?;
            full.map_err(|e| self.no_room(&e))?;
            Ok(true)
        })
    }
}

/// The ids of the effects between two places, newest first, with their places.
fn select_ids(e: &Effects) -> String {
    let (pos, rid) = (&e.source.pos, quoted(&e.request_id));
    format!(
        "SELECT e.{rid}, e.{pos} FROM {} AS e WHERE e.{pos} BETWEEN ?1 AND ?2 ORDER BY e.{pos} DESC",
        e.source.from
    )
}

/// The bytes that two equal values share, whatever their type.
fn bytes(value: ValueRef<'_>) -> Cow<'_, [u8]> {
    match value {
        ValueRef::Text(bytes) | ValueRef::Blob(bytes) => Cow::Borrowed(bytes),
        other => Cow::Owned(value::id(other).unwrap_or_default().into_bytes()),
    }
}
