//! What a ledger holds: one row for each request, and the effects beside it.

use super::same::Same;
use crate::json::key::Spelling;
use crate::time::Time;
use std::sync::Arc;

/// One request as stored. Texts are as found (hostile until they pass `text`).
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Row {
    /// SQLite's rowid: the order of arrival, not an identity (it is reused after a release).
    pub rowid: i64,
    /// The idempotency key.
    pub request_id: String,
    /// What the id is stored as: the type of the column where the server's words don't tell what it takes.
    pub id_as: Spelling,
    /// The stored status word.
    pub status: String,
    /// The stored arguments hash.
    pub args_hash: Option<String>,
    /// The stored result, raw.
    pub result: Option<String>,
    /// Who claimed it.
    pub owner: Option<String>,
    /// When it was claimed (or started).
    pub claimed_at: Option<Time>,
    /// The tool, where the table has such a column.
    pub tool: Option<String>,
    /// The table is the reference's: its server is known to let a repeat take over a running row.
    pub takes_over: bool,
    /// Effects that carry this request_id, oldest first; of an id that several rows have, those that are this row's.
    pub effects: Vec<Effect>,
    /// Other rows have the same id.
    pub same: Option<Box<Same>>,
}

impl Row {
    /// Which effects are this row's can be told.
    pub fn has_own_effects(&self) -> bool {
        self.same.as_ref().is_none_or(|s| s.told_apart)
    }

    /// Whether calls, look-ups and hashes of its request_id are about this row: nobody can tell which of several is meant.
    pub fn is_meant(&self) -> bool {
        self.same.as_ref().is_none_or(|s| s.chosen)
    }
}

/// Some table holds two or more of these effects of one request. One in each of two tables is no repeat.
pub fn is_repeated(effects: &[Effect]) -> bool {
    let again = |(i, e): (usize, &Effect)| effects[..i].iter().any(|other| other.table == e.table);
    effects.iter().enumerate().any(again)
}

/// What the work left behind: one row of an effects table.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Effect {
    /// The table it is in.
    pub table: Arc<str>,
    /// SQLite's rowid.
    pub rowid: i64,
    /// The effect's own key, e.g. the ticket_id.
    pub key: String,
    /// The request it belongs to; `None` where the column is null.
    pub request_id: Option<String>,
    /// What it is about, e.g. the ticket's title.
    pub label: String,
    /// Every column but the key and the request_id, by name, as JSON text: the arguments can be made
    /// from these.
    pub columns: Vec<(String, String)>,
}
