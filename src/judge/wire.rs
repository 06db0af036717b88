//! What the calls of one request say together, as far as no row says it better.
//!
//! One attempt may still be under way while another never left: what is least certain decides, so that
//! no attempt's good news hides another's open question.

use super::facts::{Facts, LedgerView};
use super::observed::Observed;
use crate::journal::{AnswerStatus, Call, Outcome};
use crate::time::Time;

/// Rows are never swept younger than this (design: "Retention"), in seconds; past it a missing row proves
/// nothing.
pub const RETENTION_S: f64 = 1800.0;

/// What the calls come to, least certain first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Wire {
    /// No call is known.
    Silent,
    /// Waiting for an answer, or given up with a receiver that may be alive.
    InFlight,
    /// An answer said that it is not finished, and nothing is newer.
    InProgress,
    /// An answer said that it is finished.
    Done,
    /// No answer, and the receiver was seen to end.
    ReceiverEnded,
    /// No answer that says anything, or too old for a missing row to mean something.
    Unknown,
    /// Every call that arrived was answered with an error.
    Error,
    /// No call ever arrived.
    NeverArrived,
}

/// The calls of a request, summed up.
pub(super) struct WireFacts<'a> {
    facts: &'a Facts,
    now: Time,
}

impl<'a> WireFacts<'a> {
    pub(super) fn new(facts: &'a Facts, now: Time) -> WireFacts<'a> {
        WireFacts { facts, now }
    }

    pub(super) fn now(&self) -> Time {
        self.now
    }

    /// What the newest answer with an error said.
    pub(super) fn error_words(&self) -> Option<&'a str> {
        let errors = self.facts.calls.iter().filter(|c| is_error(c));
        errors.filter_map(|c| c.settled.as_ref()).max_by_key(|s| s.at).map(|s| s.why.as_str())
    }

    pub(super) fn sum(&self) -> Wire {
        let arrived: Vec<&Call> = self.facts.calls.iter().filter(|c| arrived(c)).collect();
        if arrived.is_empty() {
            return if self.facts.calls.is_empty() { Wire::Silent } else { Wire::NeverArrived };
        }
        if arrived.iter().any(|c| is_done(c)) {
            return Wire::Done;
        }
        if arrived.iter().any(|c| self.may_be_under_way(c)) {
            return Wire::InFlight;
        }
        if arrived
            .iter()
            .any(|c| answer(c) == Some(AnswerStatus::InProgress) && self.end_of(c).is_none())
        {
            return Wire::InProgress;
        }
        let open: Vec<&&Call> = arrived.iter().filter(|c| !is_error(c)).collect();
        if open.is_empty() {
            return Wire::Error;
        }
        if open.iter().all(|c| is_unanswered(c) && self.end_of(c).is_some()) && !self.too_old() {
            Wire::ReceiverEnded
        } else {
            Wire::Unknown
        }
    }

    /// Something is still waiting for its answer.
    pub(super) fn pending(&self) -> bool {
        self.facts.calls.iter().any(|c| c.is_pending() && self.end_of(c).is_none())
    }

    /// The first call that arrived was sent so long before the ledger was read that its row may have been
    /// swept since.
    pub(super) fn too_old(&self) -> bool {
        let read = match self.facts.ledger {
            LedgerView::Read(at) => at,
            LedgerView::None | LedgerView::Unreadable(_) => self.now,
        };
        let first = self.facts.calls.iter().filter(|c| arrived(c)).map(|c| c.sent_at).min();
        first.is_some_and(|at| at.age_at(read) >= RETENTION_S)
    }

    /// The ledger was last read before the wire's news: its silence about them says nothing.
    pub(super) fn read_before_news(&self) -> bool {
        let LedgerView::Read(read) = self.facts.ledger else { return false };
        let news = |c: &Call| {
            let settled =
                c.settled.as_ref().filter(|s| s.outcome != Outcome::Unknown).map(|s| s.at);
            settled.max(self.end_of(c).map(|e| e.at))
        };
        self.facts.calls.iter().filter_map(news).any(|at| at > read)
    }

    /// When the newest answer that says "done" came.
    pub(super) fn done_at(&self) -> Option<Time> {
        let done = self.facts.calls.iter().filter(|c| is_done(c));
        done.filter_map(|c| c.settled.as_ref()).map(|s| s.at).max()
    }

    /// The seen end of the process that `call` was sent to.
    pub(super) fn end_of(&self, call: &Call) -> Option<&'a Observed> {
        self.facts.ended_generations.iter().find(|e| e.generation == call.generation)
    }

    fn may_be_under_way(&self, call: &Call) -> bool {
        if self.end_of(call).is_some() {
            return false;
        }
        // Without an end that was seen (HTTP has none), a lost call may still reach the ledger; but not
        // for ever.
        call.is_pending() || (is_unanswered(call) && !self.too_old())
    }
}

fn arrived(c: &Call) -> bool {
    !matches!(c.outcome(), Some(Outcome::NotSent | Outcome::Refused))
}

fn is_unanswered(c: &Call) -> bool {
    matches!(c.outcome(), None | Some(Outcome::Unknown)) || is_wordless(c)
}

fn is_error(c: &Call) -> bool {
    matches!(c.outcome(), Some(Outcome::ToolError | Outcome::RpcError)) && !is_wordless(c)
}

/// An error without a word may be a bridge's that lost its server: it says nothing of the work.
///
fn is_wordless(c: &Call) -> bool {
    let result = c.settled.as_ref().filter(|s| s.outcome == Outcome::ToolError);
    result.and_then(|s| s.result.as_ref()).is_some_and(|r| crate::journal::call::is_wordless(r))
}

fn answer(c: &Call) -> Option<AnswerStatus> {
    c.settled.as_ref()?.answer_status
}

fn is_done(c: &Call) -> bool {
    c.outcome() == Some(Outcome::Ok) && answer(c) == Some(AnswerStatus::Done)
}
