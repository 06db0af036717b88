//! Concludes from all witnesses: verdicts worst first, evidence, one next step (design: "Verdicts").
//!
//! Pure. One verdict says where the request stands; above it come those that warn. `unknown` never
//! becomes anything better here: what no witness knows stays unknown.

use super::evidence;
use super::facts::HashCheck;
use super::facts::{Facts, LedgerView, Pairing};
use super::next;
use super::wire::{Wire, WireFacts};
use super::words::{Finding, Seal, State, Strength, Verdict};
use crate::ledger::is_repeated;
use crate::time::Time;

/// Concludes for one request.
pub fn conclude(facts: &Facts, now: Time) -> Finding {
    let wire = WireFacts::new(facts, now);
    let mut verdicts = warnings(facts, &wire);
    match &facts.row {
        Some(_) => verdicts.push(of_row(facts)),
        None => without_row(facts, &wire, &mut verdicts),
    }
    verdicts.sort();
    verdicts.dedup();
    let worst = verdicts.first().unwrap_or(&Verdict::NotKnown);
    let next = next::step(facts, &wire, worst, now);
    Finding { evidence: evidence::lines(facts, &wire), next, verdicts, seal: Seal }
}

/// Effects of this request, with or without a row.
pub(super) fn effects(facts: &Facts) -> u64 {
    facts.row.as_ref().map_or(facts.loose_effects, |r| r.effects.len() as u64)
}

/// Some table has two effects of this request or more.
fn repeated(facts: &Facts) -> bool {
    match &facts.row {
        Some(row) => is_repeated(&row.effects),
        None => facts.loose_effects > 1 && !facts.loose_apart,
    }
}

/// The judged state, or the stored word where nobody judged.
pub(super) fn state(facts: &Facts) -> State {
    match (&facts.judged, &facts.row) {
        (Some(j), _) => j.state.clone(),
        (None, Some(row)) => State::Unmapped(row.status.clone()),
        (None, None) => State::NoRow,
    }
}

/// Who said that a request is done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SaidBy {
    /// The answer to a call of it.
    Answer,
    /// The server's own look-up.
    LookUp,
}

/// For so many seconds a ledger that is followed may lag behind an answer.
const LAG_S: f64 = 2.0;

/// Somebody said "done" after this claim, and the ledger does not: one of the two is not what it seems, and the newest
/// word wins.
pub(super) fn done_but_open(facts: &Facts, wire: &WireFacts<'_>) -> Option<SaidBy> {
    let (Some(row), LedgerView::Read(read)) = (&facts.row, &facts.ledger) else { return None };
    // A word that nothing here explains may mean done.
    if matches!(state(facts), State::Done | State::Unmapped(_) | State::NoRow) {
        return None;
    }
    let of_this_claim = |at: Time| row.claimed_at.is_none_or(|claimed| claimed <= at);
    let answered = |at: Time| of_this_claim(at) && (at <= *read || at.age_at(wire.now()) >= LAG_S);
    if wire.done_at().is_some_and(answered) {
        return Some(SaidBy::Answer);
    }
    let word = facts.server_says.as_ref().filter(|w| w.status == "done" && of_this_claim(w.at));
    word.map(|_| SaidBy::LookUp)
}

/// The verdicts that hold whatever the state is.
fn warnings(facts: &Facts, wire: &WireFacts<'_>) -> Vec<Verdict> {
    let mut out = Vec::new();
    if repeated(facts) {
        out.push(Verdict::Duplicate);
    }
    if facts.pairing == Pairing::Contradicted || done_but_open(facts, wire).is_some() {
        out.push(Verdict::EndpointMismatch);
    }
    if facts.row.as_ref().is_some_and(|r| r.same.is_some()) {
        out.push(Verdict::SeveralRows);
    }
    if facts.hash == HashCheck::DiffersProven {
        out.push(Verdict::Conflict);
    }
    if !facts.twins.is_empty() {
        out.push(Verdict::SuspectDuplicate);
    }
    out
}

fn of_row(facts: &Facts) -> Verdict {
    match state(facts) {
        State::Done if facts.has_effects_table && effects(facts) == 0 => Verdict::DoneWithoutEffect,
        State::Done => Verdict::Finished,
        State::Abandoned if effects(facts) > 0 => Verdict::AbandonedWithEffect,
        State::Abandoned => match facts.judged.as_ref().map(|j| j.strength) {
            Some(Strength::Observed) => Verdict::Abandoned,
            // The server's own stored word is its word: it does not say that the first run is over.
            _ => Verdict::Stalled,
        },
        State::Running => Verdict::Working,
        other => of_foreign(&other),
    }
}

fn of_foreign(state: &State) -> Verdict {
    match state {
        State::Waiting => Verdict::Waiting,
        State::Failed => Verdict::Failed,
        State::Cancelled => Verdict::Cancelled,
        State::Expired => Verdict::Expired,
        _ => Verdict::Unmapped,
    }
}

fn without_row(facts: &Facts, wire: &WireFacts<'_>, out: &mut Vec<Verdict>) {
    let read = matches!(facts.ledger, LedgerView::Read(_));
    let before = out.len();
    if facts.loose_effects > 0 {
        out.push(if facts.purged { Verdict::RequestPurged } else { Verdict::EffectWithoutRequest });
    }
    let base = if read { beside_a_ledger(facts, wire) } else { of_server(facts).or(of_wire(wire)) };
    // Where an effect exists, "it did nothing" and "it never came" are about some other attempt.
    let denies_effect =
        |v: &Verdict| matches!(v, Verdict::Rejected | Verdict::NoClaim | Verdict::NeverArrived);
    out.extend(base.filter(|v| facts.loose_effects == 0 || !denies_effect(v)));
    if wire.pending() && !out.contains(&Verdict::Finished) {
        out.push(Verdict::InFlight);
    }
    if out.len() == before {
        out.push(Verdict::NotKnown);
    }
}

/// The ledger was read and has no such row.
fn beside_a_ledger(facts: &Facts, wire: &WireFacts<'_>) -> Option<Verdict> {
    let gone = facts.row_vanished_at.is_some();
    // What another server's ledger has not says nothing.
    let strange = !facts.ledger_is_the_servers();
    Some(match wire.sum() {
        Wire::NeverArrived | Wire::Silent | Wire::ReceiverEnded | Wire::Unknown | Wire::Error
            if of_server(facts) == Some(Verdict::Finished) =>
        {
            Verdict::AnsweredWithoutRow
        }
        Wire::Silent => return None,
        Wire::Done if wire.read_before_news() => Verdict::Finished,
        Wire::Done => Verdict::AnsweredWithoutRow,
        Wire::InFlight | Wire::InProgress => Verdict::InFlight,
        Wire::ReceiverEnded if gone || strange || wire.read_before_news() => {
            Verdict::OutcomeUnknown
        }
        Wire::ReceiverEnded => Verdict::NoClaim,
        Wire::Unknown => Verdict::OutcomeUnknown,
        // An error that came before the row was done, or after: no call of it took the row back.
        Wire::Error if strange || facts.was_done => Verdict::OutcomeUnknown,
        Wire::Error if gone => Verdict::Released,
        Wire::Error => Verdict::Rejected,
        // No call of ours came there; somebody's did.
        Wire::NeverArrived if gone => Verdict::OutcomeUnknown,
        Wire::NeverArrived => Verdict::NeverArrived,
    })
}

/// No ledger to ask: the wire alone.
fn of_wire(wire: &WireFacts<'_>) -> Option<Verdict> {
    Some(match wire.sum() {
        Wire::Silent => return None,
        Wire::Done => Verdict::Finished,
        Wire::InFlight if wire.pending() => Verdict::InFlight,
        Wire::InProgress => Verdict::Working,
        Wire::InFlight | Wire::ReceiverEnded | Wire::Unknown => Verdict::OutcomeUnknown,
        Wire::Error => Verdict::Rejected,
        Wire::NeverArrived => Verdict::NeverArrived,
    })
}

/// No ledger to ask, but the server's own look-up, where it is newer than the last call.
fn of_server(facts: &Facts) -> Option<Verdict> {
    let word = facts.server_says.as_ref()?;
    let last_sent = facts.calls.iter().filter(|c| c.sent > 0).map(|c| c.sent_at).max();
    if last_sent.is_some_and(|sent| sent > word.at) {
        return None;
    }
    Some(match word.status.as_str() {
        "done" => Verdict::Finished,
        "running" => Verdict::Working,
        "abandoned" => Verdict::Stalled,
        "waiting" => Verdict::Waiting,
        "failed" => Verdict::Failed,
        "cancelled" | "canceled" => Verdict::Cancelled,
        "expired" => Verdict::Expired,
        // `unknown` is the server's word for "no row": the wire says more.
        _ => return None,
    })
}

#[cfg(test)]
#[path = "verdict_tests.rs"]
mod tests;

#[cfg(test)]
#[path = "verdict_product.rs"]
mod product;
