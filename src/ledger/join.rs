//! Which ids of two tables are one, where no index can answer: by the rule that gives a row its effects
//! ([`value::id`]), and not by what SQLite makes of two columns' types.

use super::reader::Reader;
use super::schema::{Source, quoted};
use super::trouble::LedgerError;
use super::value;
use crate::json::key::Spelling;
use std::collections::HashSet;
use std::hash::{BuildHasher, RandomState};

/// The ids of a table, or of several, by their digests; with what tells rows with one id apart.
#[derive(Debug, Default)]
pub(super) struct Ids {
    tells: usize,
    all: HashSet<u64>,
    /// Those that are stored as numbers, and the texts that a column of numbers would take for one.
    numbers: HashSet<u64>,
    spelled: HashSet<u64>,
    state: RandomState,
}

impl Ids {
    /// The id is the first column of a row, and behind it are `tells` columns.
    pub fn telling(tells: usize) -> Ids {
        Ids { tells, ..Ids::default() }
    }

    fn add(&mut self, row: &rusqlite::Row<'_>) -> rusqlite::Result<()> {
        let stored = row.get_ref(0)?;
        let Some(id) = value::id(stored) else { return Ok(()) };
        let tells = self.told(row)?;
        self.all.insert(self.state.hash_one((&id, &tells)));
        if let Some(number) = value::number(&id) {
            let digest = self.state.hash_one((number, &tells));
            match value::spelling(stored) {
                Spelling::Number => self.numbers.insert(digest),
                Spelling::Text => self.spelled.insert(digest),
            };
        }
        Ok(())
    }

    /// Whether the id of this row is among them.
    pub fn has(&self, row: &rusqlite::Row<'_>) -> rusqlite::Result<bool> {
        let stored = row.get_ref(0)?;
        let Some(id) = value::id(stored) else { return Ok(false) };
        let tells = self.told(row)?;
        if self.all.contains(&self.state.hash_one((&id, &tells))) {
            return Ok(true);
        }
        let Some(number) = value::number(&id) else { return Ok(false) };
        let others = match value::spelling(stored) {
            Spelling::Number => &self.spelled,
            Spelling::Text => &self.numbers,
        };
        Ok(others.contains(&self.state.hash_one((number, &tells))))
    }

    fn told(&self, row: &rusqlite::Row<'_>) -> rusqlite::Result<Vec<Option<String>>> {
        (1..=self.tells).map(|i| row.get_ref(i).map(value::text)).collect()
    }
}

impl Reader<'_> {
    /// All requests' ids.
    pub(super) fn ids_of_requests(&self) -> Result<Ids, LedgerError> {
        let (r, mut ids) = (&self.schema().requests, Ids::default());
        self.add_ids(&mut ids, &r.source, &r.table, &[quoted(&r.id)])?;
        Ok(ids)
    }

    /// `columns`: the id, and what tells apart.
    pub(super) fn add_ids(
        &self,
        ids: &mut Ids,
        source: &Source,
        table: &str,
        columns: &[String],
    ) -> Result<(), LedgerError> {
        // The order doesn't matter here: none is made up.
        let here = match source.rowid {
            true => format!("{} BETWEEN ?1 AND ?2", source.pos),
            false => "?1 <= ?2".into(),
        };
        let sql = format!("SELECT {} FROM {} WHERE {here}", columns.join(", "), quoted(table));
        self.in_pieces(source, true, |low, high| {
            self.query(&sql, (low, high), |row| ids.add(row)).map(|_: Vec<()>| true)
        })
    }
}
