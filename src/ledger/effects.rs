//! Effects, read by the request they belong to.

use super::reader::{IDS_AT_ONCE, Reader};
use super::row::{Effect, Row};
use super::schema::{Effects, column, quoted};
use super::trouble::LedgerError;
use super::value;
use crate::json::key::Spelling;
use rusqlite::params_from_iter;
use rusqlite::types::Value;
use std::collections::{HashMap, HashSet};

/// More ids than this are looked for in one pass over a table that has no index for them.
const LOOKED_UP: usize = 100;

impl Reader<'_> {
    /// The effects that carry this request_id, oldest first, whether it has a row or not.
    pub fn effects_of(&self, request_id: &str) -> Result<Vec<Effect>, LedgerError> {
        self.breathe()?;
        self.effects_of_all(&[request_id], &[])
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
            let ids: Vec<&str> = chunk.iter().map(|r| r.request_id.as_str()).collect();
            let known: HashSet<&str> = ids.iter().copied().collect();
            let mut by_id: HashMap<String, Vec<Effect>> = HashMap::new();
            let numbers: Vec<&str> = chunk
                .iter()
                .filter(|r| r.id_as == Spelling::Number)
                .map(|r| r.request_id.as_str())
                .collect();
            let by_number = ByNumber::of(&numbers);
            for effect in self.effects_of_all(&ids, &numbers)? {
                let id = effect.request_id.as_deref().unwrap_or_default();
                let id = if known.contains(id) { id } else { by_number.same(id).unwrap_or(id) };
                by_id.entry(id.to_owned()).or_default().push(effect);
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

    /// No [`Reader::breathe`] in here: rows and their effects must come from one state.
    /// `numbers`: those of the ids that are stored as numbers. A column of texts has them as SQLite writes a real one
    /// down (`5.0`), which is equal to the number when a server joins the two.
    fn effects_of_all(&self, ids: &[&str], numbers: &[&str]) -> Result<Vec<Effect>, LedgerError> {
        let mut all = Vec::new();
        let known: HashSet<&str> = ids.iter().copied().collect();
        let by_number = ByNumber::of(numbers);
        let asked = |id: &str| known.contains(id) || by_number.same(id).is_some();
        for e in &self.schema().effects {
            if !e.request_indexed && ids.len() > LOOKED_UP {
                let sql = format!("{} ORDER BY e.{}", select_effects(e), e.source.pos);
                let found = self.query(&sql, (), |r| {
                    let id = value::id(r.get_ref(2)?);
                    if id.as_deref().is_some_and(asked) { effect(e, r).map(Some) } else { Ok(None) }
                })?;
                all.extend(found.into_iter().flatten());
                continue;
            }
            let id = format!("e.{}", quoted(&e.request_id));
            let (mut clause, mut values) = self.is_one_of(&id, ids);
            let mut reals = Vec::new();
            for real in numbers.iter().filter_map(|n| n.parse::<f64>().ok()) {
                values.push(Value::Real(real));
                reals.push(format!("CAST(?{} AS TEXT)", values.len()));
            }
            if !reals.is_empty() {
                clause = format!("({clause} OR {id} IN ({}))", reals.join(", "));
            }
            let sql = format!("{} WHERE {clause} ORDER BY e.{}", select_effects(e), e.source.pos);
            all.extend(self.query(&sql, params_from_iter(&values), |r| effect(e, r))?);
        }
        all.retain(|x: &Effect| x.request_id.as_deref().is_some_and(asked));
        Ok(all)
    }
}

/// Ids that are stored as numbers, by their value.
struct ByNumber<'a>(HashMap<u64, Vec<&'a str>>);

impl<'a> ByNumber<'a> {
    fn of(numbers: &[&'a str]) -> ByNumber<'a> {
        let mut all: HashMap<u64, Vec<&'a str>> = HashMap::new();
        for id in numbers {
            if let Some(n) = value::about(id) {
                all.entry(n).or_default().push(id);
            }
        }
        ByNumber(all)
    }

    /// The number that a column of numbers would take this text for.
    fn same(&self, id: &str) -> Option<&'a str> {
        if self.0.is_empty() {
            return None;
        }
        let near = self.0.get(&value::about(id)?)?;
        near.iter().find(|n| value::same_number(id, n)).copied()
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
