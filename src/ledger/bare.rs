//! Requests that are done and have no effect: in none of the tables, or in one of several.

use super::checks::Named;
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
        let mut out = Named::default();
        let cheap = tables.iter().all(|e| e.joined);
        if tables.len() <= JOINED {
            let sql = self.select_bare(tables, &quoted(&r.id));
            self.in_pieces(&r.source, cheap, |low, high| {
                self.name_ids(&sql, (low, high, DONE), limit, &mut out)?;
                Ok(true)
            })?;
            return Ok(out);
        }
        // Without one in these and without one in those: without one in all.
        let parts: Vec<String> =
            tables.chunks(JOINED).map(|some| self.select_bare(some, &r.source.pos)).collect();
        let named =
            format!("SELECT {} FROM {} WHERE {} = ?1", quoted(&r.id), r.source.from, r.source.pos);
        self.in_pieces(&r.source, cheap, |low, high| {
            let mut left: Option<BTreeSet<i64>> = None;
            for sql in &parts {
                let found = self.query(sql, (low, high, DONE), |row| row.get::<_, i64>(0))?;
                let found: BTreeSet<i64> = found.into_iter().collect();
                left = Some(left.map_or_else(|| found.clone(), |l| &l & &found));
            }
            for place in left.unwrap_or_default().into_iter().rev() {
                match out.list.len() < limit {
                    true => drop(self.name_ids(&named, [place], limit, &mut out)?),
                    false => out.total += 1,
                }
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
            if !e.joined && !told {
                let rid = quoted(&e.request_id);
                none.push_str(&format!(
                    " AND {}",
                    listed(false, &format!("r.{id}"), &rid, &e.table)
                ));
                continue;
            }
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
            "SELECT r.{what} FROM {} AS r{joins}
             WHERE r.{pos} BETWEEN ?1 AND ?2 AND r.{} COLLATE BINARY = ?3{none} ORDER BY r.{pos} DESC",
            r.source.from,
            quoted(&r.status),
        )
    }
}

/// Whether the id `one` is in a column of another table. The list is made once for a statement, whatever indexes there
/// are; a join that no index can answer would look at each row of the one table for each of the other.
pub(super) fn listed(is: bool, one: &str, column: &str, table: &str) -> String {
    let list = format!(
        "{one} COLLATE BINARY {} (SELECT {column} FROM {} WHERE {column} IS NOT NULL)",
        if is { "IN" } else { "NOT IN" },
        quoted(table)
    );
    if is { list } else { format!("({one} IS NULL OR {list})") }
}
