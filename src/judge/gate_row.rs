//! The row's part of the gate: what ledger, wire and pairing ask on top of the tool's hint, and what the
//! dialog tells.

use super::facts::{HashCheck, LedgerView, Pairing};
use super::gate::{Ask, Earlier, GateFacts};
use super::verdict::effects;
use super::wire::RETENTION_S;
use super::words::{State, Strength, Verdict};
use crate::journal::{Outcome, Tool};

/// Everything about this request that asks for more than a preview.
pub(super) fn reasons(g: &GateFacts<'_>, tool: Option<&Tool>) -> Vec<(Ask, String)> {
    let mut out = Vec::new();
    let mut add = |ask, why: &str| out.push((ask, why.to_owned()));
    let f = g.facts;
    if g.finding.verdicts.contains(&Verdict::SuspectDuplicate) {
        add(Ask::Type, "another request with the same arguments exists (suspect duplicate)");
    }
    if g.finding.verdicts.contains(&Verdict::EndpointMismatch) && f.pairing != Pairing::Contradicted
    {
        add(
            Ask::Type,
            "it was said to be done, and the ledger does not say so: a repeat may do the work again",
        );
    }
    if g.finding.verdicts.contains(&Verdict::SeveralRows) {
        add(Ask::Type, "several rows have this request_id: the server may look at another one");
    }
    if f.hash == HashCheck::DiffersUnproven {
        add(
            Ask::Type,
            "the arguments' hash differs from the row's, by a recipe nothing has proven here",
        );
    }
    if f.row.is_none() && f.ledger_was_read() {
        match earlier(g) {
            Known::Old => {
                add(Ask::Type, "an old request_id without a row: it may have been done and swept");
            }
            Known::Recent => add(Ask::Ask, "an earlier call is known that left no row"),
            Known::Nothing => {}
        }
    }
    if f.row.is_some() && f.hash == HashCheck::NotChecked {
        add(Ask::Ask, "the arguments' hash can't be checked against the row's");
    }
    if tool.is_some_and(|t| !t.takes_request_id) {
        add(Ask::Ask, "the tool's schema has no request_id argument");
    }
    match (&f.ledger, f.pairing) {
        (LedgerView::None, _) => add(Ask::Ask, "no ledger is attached"),
        (LedgerView::Unreadable(why), _) => {
            add(Ask::Ask, &format!("the ledger can't be read now: {why}"))
        }
        (LedgerView::Read(_), Pairing::Unproven) => {
            add(Ask::Ask, "nothing has shown yet that this server writes this ledger");
        }
        (LedgerView::Read(_), _) => {}
    }
    // A server that takes such a row over does the work once more.
    if effects(f) > 0 && f.judged.as_ref().is_some_and(|j| j.state == State::Running) {
        add(Ask::Ask, "an effect of this request exists, though its row is not done");
    }
    if let Some(why) = owner_may_live(g) {
        add(Ask::Ask, why);
    }
    for v in [Verdict::DoneWithoutEffect, Verdict::AbandonedWithEffect, Verdict::Duplicate] {
        if g.finding.verdicts.contains(&v) {
            add(Ask::Ask, &format!("what is known warns against it: {}", v.words()));
        }
    }
    out
}

fn owner_may_live(g: &GateFacts<'_>) -> Option<&'static str> {
    let judged = g.facts.judged.as_ref();
    let by_row = judged.is_some_and(|j| match j.state {
        State::Running => true,
        State::Abandoned => j.strength != Strength::Observed,
        _ => false,
    });
    let verdicts = &g.finding.verdicts;
    if judged.is_some_and(|j| j.state == State::Abandoned && j.strength == Strength::Stored) {
        return Some(
            "the ledger says that it is abandoned, and nobody here has seen its owner end",
        );
    }
    if by_row || verdicts.iter().any(|v| matches!(v, Verdict::Stalled | Verdict::Working)) {
        return Some("its owner may be alive and still working on it");
    }
    verdicts.contains(&Verdict::InFlight).then_some("an earlier call may still be under way")
}

/// A call of this request was sent already and may have been run: pending, unknown or answered.
pub(super) fn was_sent(g: &GateFacts<'_>) -> bool {
    let never = |o| matches!(o, Some(Outcome::NotSent | Outcome::Refused));
    g.request_id.is_some() && g.facts.calls.iter().any(|c| !c.reads_only && !never(c.outcome()))
}

enum Known {
    Nothing,
    Recent,
    Old,
}

/// Whether this request_id was ever used, as far as anybody remembers. An effect, a vanished row or a
/// call from before the shortest retention makes a missing row worthless.
fn earlier(g: &GateFacts<'_>) -> Known {
    let f = g.facts;
    if f.loose_effects > 0 || f.was_done {
        return Known::Old;
    }
    let sent = f
        .calls
        .iter()
        .filter(|c| !matches!(c.outcome(), Some(Outcome::NotSent | Outcome::Refused)))
        .map(|c| c.sent_at);
    let first = match g.earlier {
        Earlier::Sometime => return Known::Old,
        Earlier::At(t) => sent.chain([t]).min(),
        Earlier::None => sent.min(),
    };
    match first {
        Some(t) if t.age_at(g.now) >= RETENTION_S => Known::Old,
        Some(_) => Known::Recent,
        None if f.row_vanished_at.is_some() => Known::Recent,
        None => Known::Nothing,
    }
}

/// What the dialog says: ledger, last look-up, effects, and what a repeat can do.
pub(super) fn tells(g: &GateFacts<'_>, ask: Ask) -> Vec<String> {
    let f = g.facts;
    let ledger = match (&f.ledger, &f.row, &f.judged) {
        (LedgerView::None, ..) => "ledger: none is attached".to_owned(),
        (LedgerView::Unreadable(why), ..) => format!("ledger: can't be read now ({why})"),
        (LedgerView::Read(_), None, _) => "ledger: no row".into(),
        (LedgerView::Read(_), Some(_), Some(j)) => {
            // The strength says it already.
            let why = j.why.strip_prefix("presumed: ").unwrap_or(&j.why);
            format!("ledger: {} ({}): {why}", j.state.word(), j.strength.word())
        }
        (LedgerView::Read(_), Some(row), None) => format!("ledger: {}", row.status),
    };
    let look_up = match &f.server_says {
        // A time and no age: what is told here is read for as long as somebody needs.
        Some(w) => format!("last look-up: {}, at {}", w.status, w.at.clock()),
        None => "last look-up: none that still holds".into(),
    };
    let effects = match (&f.ledger, f.has_effects_table) {
        (LedgerView::Read(_), true) => format!("effects of this request: {}", effects(f)),
        _ => "effects of this request: can't be seen".into(),
    };
    let finished = f.judged.as_ref().is_some_and(|j| j.state == State::Done);
    let twice = if finished && f.hash == HashCheck::Equal {
        "a server that keeps its word returns the stored result; if it does not, the work runs twice"
    } else if ask == Ask::Preview {
        "a server that keeps its word ends with one effect; if it does not, the work may run twice"
    } else {
        "the work may run twice"
    };
    vec![ledger, look_up, effects, twice.into()]
}
