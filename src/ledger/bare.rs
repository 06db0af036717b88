//! Requests that are done and have no effect: in none of the tables, or in one of several.

use super::checks::Named;
use super::join::Ids;
use super::reader::Reader;
use super::schema::{Effects, quoted};
use super::survey::DONE;
use super::trouble::LedgerError;
use std::collections::BTreeSet;

/// So many tables are joined at once: SQLite joins 64, and a view may be several.
const JOINED: usize = 16;

impl Reader<'_> {
    /// Done requests without an effect in any table: the newest `limit` ids, and how many there are.
    pub fn done_bare(&self, limit: usize) -> Result<Named<String>, LedgerError> {
        if !self.has_effects_table() {
            return Ok(Named::default());
        }
        let all: Vec<&Effects> = self.schema().effects.iter().collect();
        self.bare(&all, limit)
    }

    /// Where there are several tables: done requests that lack an effect in this one, by table.
    pub fn done_bare_in_each(&self) -> Result<Vec<(String, u64)>, LedgerError> {
        let all = &self.schema().effects;
        if all.len() < 2 || !self.has_effects_table() {
            return Ok(Vec::new());
        }
        all.iter().map(|e| Ok((e.table.to_string(), self.bare(&[e], 0)?.total))).collect()
    }

    fn bare(&self, tables: &[&Effects], limit: usize) -> Result<Named<String>, LedgerError> {
        let r = &self.schema().requests;
        let (joined, others): (Vec<&Effects>, Vec<&Effects>) =
            tables.iter().copied().partition(|e| e.joined);
        let told: &[String] = if self.effects_are_told_apart() { &r.tells } else { &[] };
        let mut ids = Ids::telling(told.len());
        for e in others {
            let columns = std::iter::once(&e.request_id).chain(e.tells.iter().take(told.len()));
            let columns: Vec<String> = columns.map(|c| quoted(c)).collect();
            self.add_ids(&mut ids, &e.source, &e.table, &columns)?;
        }
        let bare = |row: &rusqlite::Row<'_>| ids.has(row).map(|has| !has);
        let columns: Vec<String> =
            std::iter::once(&r.id).chain(told).map(|c| format!("r.{}", quoted(c))).collect();
        let columns = columns.join(", ");
        let mut out = Named::default();
        if joined.len() <= JOINED {
            let sql = self.select_bare(&joined, &columns);
            self.in_pieces(&r.source, true, |low, high| {
                self.name_ids(&sql, (low, high, DONE), limit, &mut out, bare)?;
                Ok(true)
            })?;
            return Ok(out);
        }
        // Without one in these and without one in those: without one in all.
        let pos = format!("r.{}", r.source.pos);
        let parts: Vec<String> =
            joined.chunks(JOINED).map(|some| self.select_bare(some, &pos)).collect();
        let named = format!("SELECT {columns} FROM {} AS r WHERE {pos} = ?1", r.source.from);
        self.in_pieces(&r.source, true, |low, high| {
            let mut left: Option<BTreeSet<i64>> = None;
            for sql in &parts {
                let found = self.query(sql, (low, high, DONE), |row| row.get::<_, i64>(0))?;
                let found: BTreeSet<i64> = found.into_iter().collect();
                left = Some(left.map_or_else(|| found.clone(), |l| &l & &found));
            }
            for place in left.unwrap_or_default().into_iter().rev() {
                self.name_ids(&named, [place], limit, &mut out, bare)?;
            }
            Ok(true)
        })?;
        Ok(out)
    }

    /// `what` of the done requests between two places that have an effect in none of these tables.
    fn select_bare(&self, tables: &[&Effects], what: &str) -> String {
        let r = &self.schema().requests;
        let (pos, id) = (&r.source.pos, quoted(&r.id));
        let (mut joins, mut none) = (String::new(), String::new());
        let told = self.effects_are_told_apart();
        for (n, e) in tables.iter().enumerate() {
            let apart = |e: &Effects| -> String {
                let pairs = r.tells.iter().zip(&e.tells).filter(|_| told);
                pairs.map(|(a, b)| format!(" AND r.{} IS e{n}.{}", quoted(a), quoted(b))).collect()
            };
            let rid = quoted(&e.request_id);
            joins.push_str(&format!(
                " LEFT JOIN {} AS e{n} ON r.{id} = e{n}.{rid} COLLATE BINARY{}",
                e.source.from,
                apart(e)
            ));
            none.push_str(&format!(" AND e{n}.{rid} IS NULL"));
        }
        format!(
            "SELECT {what} FROM {} AS r{joins}
             WHERE r.{pos} BETWEEN ?1 AND ?2 AND r.{} COLLATE BINARY = ?3{none} ORDER BY r.{pos} DESC",
            r.source.from,
            quoted(&r.status),
        )
    }
}
