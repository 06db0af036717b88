//! Request ids that several rows have: a key that is unique only within a tenant, an endpoint, or not at all. What
//! tells those rows apart, and which effects can be given to one of them. Judges nothing.

use super::reader::{IDS_AT_ONCE, Reader};
use super::row::{Effect, Row};
use super::schema::{column, quoted};
use super::trouble::LedgerError;
use super::value;
use crate::json::raw;
use std::collections::{HashMap, HashSet};
use std::hash::{DefaultHasher, Hash, Hasher};

/// At most so many columns tell rows apart in words.
const TOLD: usize = 4;
/// At most so many rows of one id are named.
const NAMED: usize = 8;
/// Rows of one window's shared ids that are read to tell them apart.
const READ: usize = 10_000;

/// What a row shares with others: its id.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Same {
    /// How many rows have the id.
    pub rows: u64,
    /// What tells this one from the others: columns with their values. Foreign text.
    pub tells: Vec<(String, String)>,
    /// The same of all of them, as far as they are named: `tenant=acme`.
    pub all: Vec<String>,
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
        let all: Vec<String> = self.all.iter().map(|w| w.replacen('=', " ", 1)).collect();
        let effects = match self.unassigned {
            0 => String::new(),
            1 => "; 1 effect carries it and can't be given to one of them".into(),
            n => format!("; {n} effects carry it and can't be given to one of them"),
        };
        format!("{} rows have this request_id: {}{more}{effects}", self.rows, all.join(" / "))
    }

    /// Whether `said` (`COLUMN=VALUE`) names this row.
    pub fn is(&self, said: &str) -> bool {
        let Some((column, value)) = said.split_once('=') else { return false };
        self.tells.iter().any(|(c, v)| c.eq_ignore_ascii_case(column) && v == value)
    }
}

/// One of the rows with an id.
struct Member {
    place: i64,
    /// Values of [`Requests::tells`](super::schema::Requests), as text.
    values: Vec<String>,
}

impl Reader<'_> {
    /// Marks the rows whose id others have too, and takes from them the effects that can't be given to one.
    pub(super) fn tell_apart(&self, rows: &mut [Row]) -> Result<(), LedgerError> {
        let r = &self.schema().requests;
        if r.id_unique || rows.is_empty() {
            return Ok(());
        }
        let mut ids: Vec<&str> =
            rows.iter().map(|r| r.request_id.as_str()).filter(|id| !id.is_empty()).collect();
        ids.sort_unstable();
        ids.dedup();
        if !r.id_indexed {
            // One pass for each read, where a look-up would be one for each window.
            let repeated = self.repeated_ids()?;
            ids.retain(|id| repeated.contains(&digest(id)));
        }
        let mut groups: HashMap<String, Vec<Member>> = HashMap::new();
        for chunk in ids.chunks(IDS_AT_ONCE / 4) {
            for (id, member) in self.members(chunk)? {
                groups.entry(id).or_default().push(member);
            }
        }
        let told_apart = self.effects_are_told_apart();
        for row in rows {
            let group = groups.get(&row.request_id).filter(|g| g.len() > 1);
            let Some(group) = group else { continue };
            let Some(own) = group.iter().find(|m| m.place == row.rowid) else { continue };
            if told_apart {
                row.effects.retain(|e| self.is_of(e, own));
            }
            let unassigned = if told_apart { 0 } else { row.effects.len() as u64 };
            if !told_apart {
                row.effects.clear();
            }
            let differing = self.differing(group);
            let tells = self.tells(own, &differing);
            let words = |m: &Member| {
                let told: Vec<String> = self
                    .tells(m, &differing)
                    .into_iter()
                    .map(|(c, v)| format!("{c}={v}"))
                    .collect();
                told.join(", ")
            };
            row.same = Some(Box::new(Same {
                rows: group.len() as u64,
                tells,
                all: group.iter().take(NAMED).map(words).collect(),
                unassigned,
                told_apart,
                chosen: false,
            }));
        }
        Ok(())
    }

    /// The effects' tables have every column that tells the requests apart.
    pub fn effects_are_told_apart(&self) -> bool {
        let schema = self.schema();
        let n = schema.requests.tells.len();
        schema.requests.keyed && schema.effects.iter().all(|e| e.tells.len() == n)
    }

    /// Rows that can be told apart by nothing else have their place.
    fn tells(&self, m: &Member, differing: &[usize]) -> Vec<(String, String)> {
        let names = &self.schema().requests.tells;
        if differing.is_empty() {
            return vec![("rowid".into(), m.place.to_string())];
        }
        let one = |i: &usize| Some((names.get(*i)?.clone(), m.values.get(*i)?.clone()));
        differing.iter().filter_map(one).collect()
    }

    /// Which columns differ among these rows.
    fn differing(&self, group: &[Member]) -> Vec<usize> {
        let columns = 0..self.schema().requests.tells.len();
        let value = |m: &Member, i: usize| m.values.get(i).cloned();
        let differ = |i: &usize| {
            let first = group.first().and_then(|m| value(m, *i));
            group.iter().any(|m| value(m, *i) != first)
        };
        let found: Vec<usize> = columns.filter(differ).take(TOLD).collect();
        let mut seen = HashSet::new();
        let unique = group
            .iter()
            .all(|m| seen.insert(found.iter().map(|i| value(m, *i)).collect::<Vec<_>>()));
        if unique { found } else { Vec::new() }
    }

    fn is_of(&self, effect: &Effect, m: &Member) -> bool {
        let Some(e) = self.schema().effects.iter().find(|e| e.table == effect.table) else {
            return false;
        };
        e.tells.iter().zip(&m.values).all(|(name, value)| {
            if *name == e.key {
                return effect.key == *value;
            }
            let found = effect.columns.iter().find(|(c, _)| c == name);
            found.is_some_and(|(_, json)| {
                raw::as_str(json).as_deref().unwrap_or(if json == "null" { "" } else { json })
                    == value
            })
        })
    }

    fn members(&self, ids: &[&str]) -> Result<Vec<(String, Member)>, LedgerError> {
        let r = &self.schema().requests;
        let mut columns = vec![column("r", Some(&r.id))];
        columns.extend(r.tells.iter().map(|c| column("r", Some(c))));
        let (clause, values) = self.is_one_of(&format!("r.{}", quoted(&r.id)), ids);
        let sql = format!(
            "SELECT r.{pos}, {} FROM {} AS r WHERE {clause} ORDER BY r.{pos} DESC LIMIT {READ}",
            columns.join(", "),
            r.source.from,
            pos = r.source.pos,
        );
        self.query(&sql, rusqlite::params_from_iter(values), |row| {
            let text = |i: usize| row.get_ref(i).map(|v| value::text(v).unwrap_or_default());
            let values = (0..r.tells.len()).map(|i| text(i + 2));
            let member =
                Member { place: row.get(0)?, values: values.collect::<rusqlite::Result<_>>()? };
            Ok((value::id(row.get_ref(1)?).unwrap_or_default(), member))
        })
    }

    /// Digests of the ids that occur more than once: one pass, kept for this read.
    fn repeated_ids(&self) -> Result<&HashSet<u64>, LedgerError> {
        if let Some(known) = self.repeated.get() {
            return Ok(known);
        }
        let r = &self.schema().requests;
        let mut digests = Vec::new();
        self.each(&r.source, &r.id, false, |_, v| {
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
