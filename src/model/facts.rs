//! Gathers every witness's word on one request into `judge::Facts`: ledger, session, history, pairing.
//! Pure: the ledger is read elsewhere.

use super::history::Histories;
use super::lookup::{self, LookUp};
use crate::journal::{AnswerStatus, Call, Generation, Session};
use crate::judge::observed::{GoesOn, OwnerEnd, owner_end, owner_generations};
use crate::judge::{
    Facts, HashCheck, Judged, LedgerView, Observed, OwnerView, Pairing, Rules, ServerWord, Tie,
    Twin, judge_row,
};
use crate::ledger::{DONE, Row};
use crate::time::Time;
use std::collections::BTreeMap;

/// What the ledger, read once, has on one request.
#[derive(Debug, Clone, Default)]
pub struct LedgerFacts {
    /// What it could be asked.
    pub view: LedgerView,
    /// The row, effects included.
    pub row: Option<Row>,
    /// Other rows with the same arguments hash.
    pub twins: Vec<Row>,
    /// Effects that carry this request_id though it has no row.
    pub loose_effects: u64,
    /// Those are in different tables, one in each: no repeat.
    pub loose_apart: bool,
    /// Those are older (by rowid) than the oldest effect that still has a request.
    pub purged: bool,
    /// The ledger has an effects table.
    pub has_effects_table: bool,
}

/// Who is who, learned once from a session and a ledger, for all requests.
///
/// The session must have been taken **before** the ledger was read: what the wire knew then, the ledger
/// has had its time to show.
#[derive(Debug, Clone)]
pub struct Context<'a> {
    session: Option<&'a Session>,
    histories: &'a Histories,
    owners: &'a OwnerView,
    rules: Rules,
    look_up: &'a str,
    pairing: Pairing,
    now: Time,
    owner_generations: BTreeMap<String, Tie>,
}

impl<'a> Context<'a> {
    /// With a ledger's owners and what was seen of it. Without a ledger, give empty ones.
    pub fn new(
        histories: &'a Histories,
        owners: &'a OwnerView,
        rules: Rules,
        now: Time,
    ) -> Context<'a> {
        Context {
            session: None,
            histories,
            owners,
            rules,
            look_up: lookup::LOOK_UP,
            pairing: Pairing::Unproven,
            now,
            owner_generations: BTreeMap::new(),
        }
    }

    /// Adds an endpoint. `known`: the rows of the requests that have calls in `session` (any others help
    /// too): they tell which owner is which process.
    pub fn with_session<'r>(
        mut self,
        session: &'a Session,
        look_up: &'a str,
        pairing: Pairing,
        known: impl IntoIterator<Item = &'r Row>,
    ) -> Context<'a> {
        let calls: Vec<&Call> =
            session.calls.values().filter(|c| !lookup::is_look_up(look_up, c)).collect();
        self.owner_generations = owner_generations(
            known.into_iter().filter(|r| r.is_meant()),
            &calls,
            &session.generations,
            self.owners,
            |row| self.histories.other_owner_at(&row.request_id),
        );
        self.session = Some(session);
        self.look_up = look_up;
        self.pairing = pairing;
        self
    }

    /// The calls of a request that may have done something, oldest first.
    pub fn calls_of(&self, request_id: &str) -> Vec<Call> {
        let Some(s) = self.session else { return Vec::new() };
        let work = s.calls.values().filter(|c| c.request_id.as_deref() == Some(request_id));
        let mut calls: Vec<Call> =
            work.filter(|c| !lookup::is_look_up(self.look_up, c)).cloned().collect();
        // Recorded calls are numbered apart from our own: time orders them.
        calls.sort_by_key(|c| c.sent_at);
        calls
    }

    /// The server's newest word on a request. That a process works on something ends with the process.
    pub fn server_word(&self, request_id: &str) -> Option<ServerWord> {
        let s = self.session?;
        let look: LookUp = lookup::newest(s, self.look_up, request_id)?;
        let ended = s.generation_n(look.generation).and_then(Observed::of).is_some();
        look.word().filter(|w| !(ended && w.status == "running"))
    }

    /// Judges a row by everything that is known.
    pub fn judge(&self, row: &Row) -> Judged {
        let end = self.owner_end(row);
        let word = self.server_word(&row.request_id).filter(|_| row.is_meant());
        judge_row(row, self.owners, self.rules, end.as_ref(), word.as_ref(), self.now)
    }

    fn owner_end(&self, row: &Row) -> Option<OwnerEnd> {
        self.session.and_then(|s| owner_end(row, &self.owner_generations, &s.generations))
    }

    /// The facts of one request. `hash`: of the arguments at hand, where there are any.
    pub fn gather(&self, request_id: &str, ledger: LedgerFacts, hash: HashCheck) -> Facts {
        // Of several rows with the id nobody can say which one a call or a look-up was about.
        let meant = ledger.row.as_ref().is_none_or(Row::is_meant);
        let calls = if meant { self.calls_of(request_id) } else { Vec::new() };
        let hash = if meant { hash } else { HashCheck::NotChecked };
        let own_effects = ledger.row.as_ref().is_none_or(Row::has_own_effects);
        let read = matches!(ledger.view, LedgerView::Read(_));
        let judged = ledger.row.as_ref().map(|r| self.judge(r));
        let server_says = self
            .server_word(request_id)
            .filter(|w| meant && holds(w, &ledger) && !overtaken(w, &calls));
        let twins = ledger
            .twins
            .iter()
            .filter(|t| t.request_id != request_id)
            .map(|t| Twin { request_id: t.request_id.clone(), state: self.judge(t).state });
        let owner_goes_on = match ledger.row.as_ref().and_then(|r| self.owner_end(r)) {
            Some(OwnerEnd::GoesOn(end)) => Some(end),
            _ => None,
        };
        Facts {
            request_id: request_id.to_owned(),
            twins: twins.collect(),
            judged,
            was_done: read && ledger.row.is_none() && self.histories.went_done(request_id),
            row_vanished_at: self
                .histories
                .vanished_at(request_id)
                .filter(|_| read && ledger.row.is_none()),
            loose_effects: ledger.loose_effects,
            loose_apart: ledger.loose_apart,
            purged: ledger.purged,
            has_effects_table: ledger.has_effects_table && own_effects,
            row: ledger.row,
            ledger: ledger.view,
            ended_generations: self.ends(&calls, Observed::of),
            left_behind: self.ends(&calls, GoesOn::of),
            owner_goes_on,
            calls,
            hash,
            pairing: self.pairing,
            server_says,
        }
    }

    fn ends<T>(&self, calls: &[Call], of: impl Fn(&Generation) -> Option<T>) -> Vec<T> {
        let Some(s) = self.session else { return Vec::new() };
        let of_calls = s.generations.iter().filter(|g| calls.iter().any(|c| c.generation == g.n));
        of_calls.filter_map(of).collect()
    }
}

/// A call was answered as done since: whoever was at work then, it is not being worked on now.
fn overtaken(word: &ServerWord, calls: &[Call]) -> bool {
    let done = |c: &Call| {
        c.settled
            .as_ref()
            .is_some_and(|s| s.at > word.at && s.answer_status == Some(AnswerStatus::Done))
    };
    matches!(&*word.status, "running" | "abandoned" | "unknown") && calls.iter().any(done)
}

/// Whether the server can still mean what it said: not when the row was claimed since, nor when it is done by now.
fn holds(word: &ServerWord, ledger: &LedgerFacts) -> bool {
    let Some(row) = &ledger.row else { return true };
    let read_since = matches!(ledger.view, LedgerView::Read(at) if at >= word.at);
    let claimed_since = row.claimed_at.is_some_and(|claimed| claimed > word.at);
    let done_since = row.status == DONE && matches!(&*word.status, "running" | "abandoned");
    !read_since || !(claimed_since || done_since)
}

#[cfg(test)]
#[path = "facts_tests.rs"]
mod tests;
