//! Effects, read by the request they belong to.

use super::reader::{IDS_AT_ONCE, Reader};
use super::row::{Effect, Row};
use super::schema::{Effects, column, quoted};
use super::trouble::LedgerError;
use super::value::{self, Number};
use crate::json::key::Spelling;
use rusqlite::params_from_iter;
use rusqlite::types::{Value, ValueRef};
use std::collections::HashMap;

/// More ids than this are looked for in one pass over a table that has no index for them.
const LOOKED_UP: usize = 100;

impl Reader<'_> {
    /// The effects that carry this request_id, oldest first, whether it has a row or not.
    pub fn effects_of(&self, request_id: &str) -> Result<Vec<Effect>, LedgerError> {
        self.breathe()?;
        let asked = Asked::of(std::iter::once((request_id, Spelling::Text)));
        Ok(self.effects_of_all(&asked)?.into_iter().map(|(_, effect)| effect).collect())
    }

    /// How many effects there are, in all tables.
    pub fn effects_total(&self) -> Result<u64, LedgerError> {
        let by_table = self.effects_by_table()?;
        Ok(by_table.iter().map(|(_, n)| n).sum())
    }

    /// How many effects there are, by table.
    pub fn effects_by_table(&self) -> Result<Vec<(String, u64)>, LedgerError> {
        let count = |e: &Effects| {
            self.breathe()?;
            let sql = format!("SELECT count(*) FROM {}", quoted(&e.table));
            let n: Vec<i64> = self.query(&sql, (), |r| r.get(0))?;
            Ok((e.table.to_string(), n.first().map_or(0, |n| n.unsigned_abs())))
        };
        self.schema().effects.iter().map(count).collect()
    }

    /// Effects that name no request.
    pub fn nameless_effects(&self) -> Result<u64, LedgerError> {
        let mut all = 0;
        for e in &self.schema().effects {
            self.breathe()?;
            let (from, id) = (quoted(&e.table), quoted(&e.request_id));
            let sql = format!(
                "SELECT count(*) FROM {from} WHERE {id} IS NULL OR {id} COLLATE BINARY = ''"
            );
            let n: Vec<i64> = self.query(&sql, (), |r| r.get(0))?;
            all += n.first().map_or(0, |n| n.unsigned_abs());
        }
        Ok(all)
    }

    /// How many rows of each table that could hold effects carry this request_id, where nobody has said which do.
    pub fn undecided_rows(&self, request_id: &str) -> Result<Vec<(String, u64)>, LedgerError> {
        let (clause, ids) = self.is_one_of("request_id", &[request_id]);
        let count = |table: &String| {
            self.breathe()?;
            let from = quoted(table);
            let sql = format!("SELECT count(*) FROM {from} WHERE {clause}");
            let n: Vec<i64> = self.query(&sql, params_from_iter(&ids), |r| r.get(0))?;
            Ok((table.clone(), n.first().map_or(0, |n| n.unsigned_abs())))
        };
        self.schema().undecided.iter().map(count).collect()
    }

    pub(super) fn add_effects(&self, rows: &mut [Row]) -> Result<(), LedgerError> {
        // Without an index each look-up passes over the whole table: one for all rows, then.
        let at_once = if self.passes_for_effects() { rows.len().max(1) } else { IDS_AT_ONCE / 4 };
        for chunk in rows.chunks_mut(at_once) {
            let ids = chunk.iter().map(|r| (r.request_id.as_str(), r.id_as));
            let mut by_id: HashMap<String, Vec<Effect>> = HashMap::new();
            for (id, effect) in self.effects_of_all(&Asked::of(ids))? {
                by_id.entry(id).or_default().push(effect);
            }
            for row in chunk {
                row.effects = by_id.remove(&row.request_id).unwrap_or_default();
            }
        }
        Ok(())
    }

    /// Some effects are found by a pass over their whole table only.
    pub(super) fn passes_for_effects(&self) -> bool {
        self.schema().effects.iter().any(|e| !e.request_indexed)
    }

    /// Each with the id that it was asked for by. No [`Reader::breathe`] in here: rows and their effects must come
    /// from one state.
    fn effects_of_all(&self, asked: &Asked<'_>) -> Result<Vec<(String, Effect)>, LedgerError> {
        let mut all = Vec::new();
        for e in &self.schema().effects {
            let read = |r: &rusqlite::Row<'_>| {
                let Some(id) = asked.whose(r.get_ref(2)?) else { return Ok(None) };
                Ok(Some((id.to_owned(), effect(e, r)?)))
            };
            let (select, pos) = (select_effects(e), &e.source.pos);
            let found = if !e.request_indexed && asked.ids.len() > LOOKED_UP {
                self.query(&format!("{select} ORDER BY e.{pos}"), (), read)?
            } else {
                let id = format!("e.{}", quoted(&e.request_id));
                let ids: Vec<&str> = asked.ids.keys().copied().collect();
                let (mut clause, mut values) = self.is_one_of(&id, &ids);
                // A column of texts has a number as SQLite writes a real one down (`5.0`).
                let mut reals = Vec::new();
                for real in asked.stored_as_numbers().filter_map(|n| n.parse::<f64>().ok()) {
                    values.push(Value::Real(real));
                    reals.push(format!("CAST(?{} AS TEXT)", values.len()));
                }
                if !reals.is_empty() {
                    clause = format!("({clause} OR {id} IN ({}))", reals.join(", "));
                }
                let sql = format!("{select} WHERE {clause} ORDER BY e.{pos}");
                self.query(&sql, params_from_iter(&values), read)?
            };
            all.extend(found.into_iter().flatten());
        }
        Ok(all)
    }
}

/// Ids whose effects are wanted, and what they are stored as.
struct Asked<'a> {
    ids: HashMap<&'a str, Spelling>,
    by_number: HashMap<Number, &'a str>,
}

impl<'a> Asked<'a> {
    fn of(ids: impl Iterator<Item = (&'a str, Spelling)>) -> Asked<'a> {
        let ids: HashMap<&str, Spelling> = ids.collect();
        let numbers = ids.keys().filter_map(|id| Some((value::number(id)?, *id)));
        Asked { by_number: numbers.collect(), ids }
    }

    fn stored_as_numbers(&self) -> impl Iterator<Item = &str> {
        self.ids.iter().filter(|(_, s)| **s == Spelling::Number).map(|(id, _)| *id)
    }

    /// The id that an effect's value is: the same, or, where one of both is stored as a number, the same number.
    fn whose(&self, stored: ValueRef<'_>) -> Option<&'a str> {
        let id = value::id(stored)?;
        if let Some((known, _)) = self.ids.get_key_value(id.as_str()) {
            return Some(known);
        }
        let same = *self.by_number.get(&value::number(&id)?)?;
        let as_number = |s: Option<&Spelling>| s == Some(&Spelling::Number);
        (as_number(Some(&value::spelling(stored))) || as_number(self.ids.get(same))).then_some(same)
    }
}

/// `SELECT … FROM effects AS e`, read by [`effect`].
fn select_effects(e: &Effects) -> String {
    let mut columns = vec![&e.key, &e.request_id, &e.label];
    columns.extend(&e.others);
    let columns: Vec<_> = columns.into_iter().map(|c| column("e", Some(c))).collect();
    format!("SELECT e.{}, {} FROM {} AS e", e.source.pos, columns.join(", "), e.source.from)
}

fn effect(e: &Effects, r: &rusqlite::Row<'_>) -> rusqlite::Result<Effect> {
    let columns = e
        .others
        .iter()
        .enumerate()
        .map(|(i, name)| Ok((name.clone(), value::json(r.get_ref(i + 4)?))));
    Ok(Effect {
        table: e.table.clone(),
        rowid: r.get(0)?,
        key: value::text(r.get_ref(1)?).unwrap_or_default(),
        request_id: value::id(r.get_ref(2)?),
        label: value::text(r.get_ref(3)?).unwrap_or_default(),
        columns: columns.collect::<rusqlite::Result<_>>()?,
    })
}
