//! Effects, read by the request they belong to.

use super::reader::{IDS_AT_ONCE, Reader, marks};
use super::row::{Effect, Row};
use super::schema::{column, quoted};
use super::trouble::LedgerError;
use super::value;
use rusqlite::params_from_iter;
use rusqlite::types::Value;
use std::collections::HashMap;

impl Reader<'_> {
    /// The effects that carry this request_id, oldest first, whether it has a row or not.
    pub fn effects_of(&self, request_id: &str) -> Result<Vec<Effect>, LedgerError> {
        self.breathe()?;
        self.effects_of_all(&[request_id])
    }

    /// How many effects there are.
    pub fn effects_total(&self) -> Result<u64, LedgerError> {
        let Some(e) = &self.schema().effects else { return Ok(0) };
        self.breathe()?;
        let sql = format!("SELECT count(*) FROM {}", quoted(&e.table));
        let n: Vec<i64> = self.query(&sql, (), |r| r.get(0))?;
        Ok(n.first().map_or(0, |n| n.unsigned_abs()))
    }

    pub(super) fn add_effects(&self, rows: &mut [Row]) -> Result<(), LedgerError> {
        for chunk in rows.chunks_mut(IDS_AT_ONCE / 4) {
            let ids: Vec<&str> = chunk.iter().map(|r| r.request_id.as_str()).collect();
            let mut by_id: HashMap<String, Vec<Effect>> = HashMap::new();
            for effect in self.effects_of_all(&ids)? {
                by_id
                    .entry(effect.request_id.clone().unwrap_or_default())
                    .or_default()
                    .push(effect);
            }
            for row in chunk {
                row.effects = by_id.remove(&row.request_id).unwrap_or_default();
            }
        }
        Ok(())
    }

    /// No [`Reader::breathe`] in here: rows and their effects must come from one state.
    fn effects_of_all(&self, ids: &[&str]) -> Result<Vec<Effect>, LedgerError> {
        let Some(e) = &self.schema().effects else { return Ok(Vec::new()) };
        let values: Vec<Value> = ids.iter().flat_map(|id| value::candidates(id)).collect();
        let sql = format!(
            "{} WHERE e.{} IN ({}) ORDER BY e.{}",
            self.select_effects(),
            quoted(&e.request_id),
            marks(values.len()),
            e.source.pos
        );
        let mut effects = self.query(&sql, params_from_iter(values), |r| self.effect(r))?;
        effects.retain(|x| x.request_id.as_deref().is_some_and(|id| ids.contains(&id)));
        Ok(effects)
    }

    /// `SELECT … FROM effects AS e`, read by [`Reader::effect`].
    pub(super) fn select_effects(&self) -> String {
        let Some(e) = &self.schema().effects else { return String::new() };
        let mut columns = vec![&e.key, &e.request_id, &e.label];
        columns.extend(&e.others);
        let columns: Vec<_> = columns.into_iter().map(|c| column("e", Some(c))).collect();
        format!("SELECT e.{}, {} FROM {} AS e", e.source.pos, columns.join(", "), e.source.from)
    }

    pub(super) fn effect(&self, r: &rusqlite::Row<'_>) -> rusqlite::Result<Effect> {
        let others = self.schema().effects.as_ref().map_or(&[][..], |e| &e.others);
        let columns = others
            .iter()
            .enumerate()
            .map(|(i, name)| Ok((name.clone(), value::json(r.get_ref(i + 4)?))));
        Ok(Effect {
            rowid: r.get(0)?,
            key: value::text(r.get_ref(1)?).unwrap_or_default(),
            request_id: value::text(r.get_ref(2)?),
            label: value::text(r.get_ref(3)?).unwrap_or_default(),
            columns: columns.collect::<rusqlite::Result<_>>()?,
        })
    }
}
