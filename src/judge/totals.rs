//! The counts of a whole ledger that `verify` judges: requests by state, effects, and what does not go together.
//! Values and sums; finds nothing wrong with them.

use super::words::State;
use std::collections::BTreeMap;

/// Some of what was found, and how many there are in all.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Found<T> {
    /// The newest.
    pub list: Vec<T>,
    /// All of them.
    pub total: u64,
}

impl<T> Default for Found<T> {
    fn default() -> Found<T> {
        Found { list: Vec::new(), total: 0 }
    }
}

impl<T> From<Vec<T>> for Found<T> {
    fn from(list: Vec<T>) -> Found<T> {
        Found { total: list.len() as u64, list }
    }
}

/// One of several tables that hold effects.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Table {
    /// Its name. Foreign text.
    pub name: String,
    /// Effects in it.
    pub effects: u64,
    /// Done requests without one in it.
    pub bare: u64,
}

/// What a pass over the whole ledger found.
#[derive(Debug, Clone, PartialEq)]
pub struct Totals {
    /// Requests by judged state.
    pub requests: BTreeMap<State, u64>,
    /// Effects in all; `None` where the ledger has no effects table.
    pub effects: Option<u64>,
    /// Where several tables hold effects: each with its effects, and with the done requests that have none there.
    pub tables: Vec<Table>,
    /// Requests with more than one effect, and how many.
    pub duplicate_effects: Found<(String, u64)>,
    /// Requests that are done and have no effect.
    pub done_without_effect: Found<String>,
    /// Request ids of effects without a row, younger than the oldest effect that has one.
    pub effect_without_request: Found<String>,
    /// The same, older: their rows may have been swept.
    pub purged: Found<String>,
    /// Request ids that several rows have, and how many.
    pub shared_ids: Found<(String, u64)>,
    /// Effects say which of those rows they belong to.
    pub told_apart: bool,
    /// Effects that name no request.
    pub nameless_effects: u64,
    /// All numbers are of one moment; `false`: a writer wrote while they were counted.
    pub one_moment: bool,
    /// Groups of requests with the same arguments hash.
    pub same_hash: Found<Vec<String>>,
    /// Labels that several requests' effects share, with those requests; counted are also those that nobody looked at.
    pub same_label: Found<(String, Vec<String>)>,
    /// Requests that are not done, with their state and their effects; all of them are counted in `requests`.
    pub unfinished: Vec<(String, State, u64)>,
    /// Effects with each label that is expected.
    pub labels: BTreeMap<String, u64>,
    /// Rows that are known to be there and could not be read (damaged pages).
    pub unread_rows: u64,
}

impl Default for Totals {
    fn default() -> Totals {
        Totals {
            requests: BTreeMap::new(),
            effects: None,
            tables: Vec::new(),
            duplicate_effects: Found::default(),
            done_without_effect: Found::default(),
            effect_without_request: Found::default(),
            purged: Found::default(),
            shared_ids: Found::default(),
            told_apart: true,
            nameless_effects: 0,
            one_moment: true,
            same_hash: Found::default(),
            same_label: Found::default(),
            unfinished: Vec::new(),
            labels: BTreeMap::new(),
            unread_rows: 0,
        }
    }
}

/// A foreign ledger's own end is an end, if no good one: such a request was not done.
pub(super) fn is_bad_end(s: &State) -> bool {
    matches!(s, State::Failed | State::Cancelled | State::Expired)
}

pub(super) fn is_unfinished(s: &State) -> bool {
    *s != State::Done && !is_bad_end(s)
}

impl Totals {
    pub(super) fn count(&self, of: impl Fn(&State) -> bool) -> u64 {
        self.requests.iter().filter(|(s, _)| of(s)).map(|(_, n)| n).sum()
    }

    /// Effects without a request row that was ever there.
    pub(super) fn loose(&self) -> u64 {
        self.effect_without_request.total + self.nameless_effects
    }

    /// The sentence against its own numbers: with nothing else wrong each request that is done has its effect (in
    /// each of several tables, but for those that are known to have none there), and each effect its request.
    pub(super) fn adds_up(&self) -> bool {
        let done = self.count(|s| *s == State::Done);
        let one = Table { name: String::new(), effects: 0, bare: 0 };
        let tables = if self.tables.is_empty() { std::slice::from_ref(&one) } else { &self.tables };
        let wanted: u64 = tables.iter().map(|t| done.saturating_sub(t.bare)).sum();
        self.effects.is_none_or(|n| n == wanted + self.purged.total)
    }

    /// Done requests that have an effect in one table and none in another, by table.
    pub(super) fn uneven(&self) -> impl Iterator<Item = (&Table, u64)> {
        let bare = self.done_without_effect.total;
        self.tables.iter().map(move |t| (t, t.bare.saturating_sub(bare))).filter(|(_, n)| *n > 0)
    }
}
