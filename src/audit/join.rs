//! Calls joined to the rows of a ledger: more than one effect, done without an answer, an answer without a row. Pure:
//! the rows are handed in.

use super::fact::At;
use super::finding::{Finding, Kind};
use super::fold::{Audit, Open};
use std::collections::HashMap;

/// request_ids that are remembered, the newest.
const KEPT: usize = 200_000;

#[derive(Debug, Clone)]
struct One {
    tool: u32,
    call: u64,
    at: At,
    calls: u64,
    answered: bool,
    unknown: bool,
}

/// What became of each request_id on the wire.
#[derive(Debug, Clone, Default)]
pub(super) struct Asked {
    all: HashMap<Box<str>, One>,
    order: std::collections::VecDeque<Box<str>>,
    dropped: u64,
}

/// What a ledger says of one request.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Row {
    /// Its stored status word; `None`: no row.
    pub status: Option<String>,
    /// It counts as done.
    pub done: bool,
    /// Its effects.
    pub effects: u64,
}

impl Asked {
    pub fn sent(&mut self, open: &Open) {
        let Some(request) = &open.request else { return };
        if let Some(one) = self.all.get_mut(request) {
            one.calls += 1;
            return;
        }
        if self.all.len() >= KEPT
            && let Some(old) = self.order.pop_front()
        {
            self.all.remove(&old);
            self.dropped += 1;
        }
        let (tool, call, at) = (open.tool, open.call, open.at);
        let one = One { tool, call, at, calls: 1, answered: false, unknown: false };
        self.all.insert(request.clone(), one);
        self.order.push_back(request.clone());
    }

    pub fn answered(&mut self, open: &Open, done: bool) {
        if let Some(one) = open.request.as_ref().and_then(|r| self.all.get_mut(r)) {
            one.answered |= done;
        }
    }

    pub fn unknown(&mut self, open: &Open) {
        if let Some(one) = open.request.as_ref().and_then(|r| self.all.get_mut(r)) {
            one.unknown = true;
        }
    }
}

impl Audit {
    /// The request_ids of this trace, in the order they were first sent, but for look-ups.
    pub fn requests(&self) -> Vec<String> {
        let order = self.asked.order.iter();
        order
            .filter(|r| self.asked.all.get(*r).is_some_and(|o| !self.looks(o.tool)))
            .map(|r| r.to_string())
            .collect()
    }

    /// request_ids that were let go: a ledger is not asked about them.
    pub fn requests_dropped(&self) -> u64 {
        self.asked.dropped
    }

    /// Joins what the ledger says of a request.
    pub fn join(&mut self, request: &str, row: &Row) {
        let Some(one) = self.asked.all.get(request).cloned() else { return };
        if row.done && row.effects > 0 {
            self.named.insert(request.into());
        }
        let mut tell = |kind, message: String| {
            let mut f = Finding::new(kind, message).value(request);
            f.call = Some(one.call);
            f.tool = Some(self.tool_of(one.tool).name.clone());
            self.add_at(one.at, f);
        };
        if row.effects > 1 {
            tell(
                Kind::DuplicateEffect,
                format!(
                    "the ledger has {} effects for {request}: the work ran more than once",
                    row.effects
                ),
            );
        }
        match (&row.status, one.answered) {
            (None, true) if row.effects == 0 => tell(
                Kind::AnsweredWithoutRow,
                format!(
                    "{request} was answered, and the ledger has no row of it: another ledger, or swept since"
                ),
            ),
            (Some(_), false) if row.done => tell(
                Kind::DoneWithoutAnswer,
                format!(
                    "the ledger says that {request} is done, and its caller never got that answer: do not send it under a new request_id"
                ),
            ),
            _ => {}
        }
    }
}
