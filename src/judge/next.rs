//! The one safe next step: that of the worst verdict. A milder verdict never gets to suggest what a worse one forbids,
//! because only the worst one decides. What it is called is `words::next`'s.

use super::facts::{Facts, HashCheck, LedgerView};
use super::observed::GoesOn;
use super::verdict::{SaidBy, done_but_open, effects, state};
use super::wire::WireFacts;
use super::words::{State, Strength, Takeover, Verdict};
use crate::journal::Outcome;
use crate::ledger::Same;
use crate::time::Time;

/// What is safe to do now about a request.
#[derive(Debug, Clone, PartialEq)]
pub enum NextStep {
    /// Repeat it with the same request_id.
    Repeat(Repeat),
    /// Send it: no call of it has ever reached the server.
    Deliver,
    /// Somebody may be at work on it.
    Wait(Wait),
    /// Its owner may still be at work, though its claim is old or another's.
    Stalled(Stalled),
    /// Look, and repeat nothing.
    Look(Look),
    /// Nobody who was asked can tell: look it up by other means.
    LookUp(Unsure),
    /// Nothing is to be done.
    Nothing(Nothing),
    /// The server says that it is done and the ledger doesn't: is this the ledger that it writes?
    CompareWitnesses(SaidBy),
    /// Attach the server that writes this ledger, or the other way round.
    AttachAnother,
    /// Say which of several rows is meant.
    ChooseRow(Option<Box<Same>>),
    /// The work was done so many times: whoever owns the effects has to know.
    TellOfEffects(u64),
    /// Mend the call: it was answered with an error.
    FixCall {
        /// What the error said. May hold foreign text.
        said: Option<String>,
        /// A ledger was read, and no row was seen in it.
        no_row: bool,
    },
    /// A word of the server's own: ask what a repeat does there.
    AskServer {
        /// Whose meaning is known, and is not `done`.
        verdict: Verdict,
        /// It has an effect.
        effect: bool,
    },
    /// A word that nobody here knows; empty where the row has none. May hold foreign text.
    ExplainStatus(String),
    /// Nothing is known of it: check that this is the right request_id, and the right place to ask.
    Check(Check),
}

/// Why a repeat is safe.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Repeat {
    /// Its owner has ended, and it has no effect.
    NoEffect,
    /// Its owner has ended, and nobody here can see effects: those come first.
    LookFirst,
    /// It was answered with an error whose cause comes first.
    FixFirst,
    /// The server ended before it took the request on.
    NoClaim,
}

/// What is waited for.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Wait {
    /// The call may still be worked on.
    InFlight,
    /// Its effect is there, its row is not done.
    EffectThere,
    /// Its claim lies so many seconds in the future.
    Clocks(f64),
    /// Then look it up again.
    LookAgain,
    /// When a repeat could take over can't be told.
    NoLimit,
    /// The server says that it works on it.
    ServerWorks(Option<Takeover>),
    /// Only a restarted server lets a repeat take over.
    Restart,
    /// Until then, if it doesn't finish.
    Until(Takeover),
    /// What a repeat does is the server's own rule.
    TheirRule,
}

/// Why it may still be worked on.
#[derive(Debug, Clone, PartialEq)]
pub enum Stalled {
    /// Its owner ended, and what it started goes on.
    GoesOn(GoesOn),
    /// The ledger's own word says abandoned; nobody saw its owner end.
    Stored,
    /// Nobody saw its owner end.
    Unseen,
    /// A repeat is let in from then on, or has been since.
    Takeover {
        /// When, and how that is known.
        takeover: Takeover,
        /// That time has come.
        over: bool,
    },
}

/// What is to be looked at.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Look {
    /// Done, and what it should have left behind isn't there.
    MissingEffect,
    /// An effect that has no row.
    EffectWithoutRow,
    /// Answered as done, and no row.
    AnsweredWithoutRow,
    /// An effect whose row was swept, or never was.
    Purged,
    /// An effect, and a row that isn't done.
    EffectOfOpenRow,
    /// Its row was done and is gone.
    Swept,
    /// Its row was here and is gone.
    Vanished,
    /// Another request with the same arguments.
    Pair {
        /// Its request_id. May hold foreign text.
        other: Option<String>,
        /// That one is done.
        other_done: bool,
        /// This one is done.
        this_done: bool,
    },
}

/// Why nobody can tell.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Unsure {
    /// So old that its row may have been swept.
    TooOld,
    /// The ledger may not be the server's; what an error said, where there was one. May hold foreign text.
    OtherLedger(Option<String>),
    /// The ledger has no row.
    NoRow,
    /// The ledger can't be read.
    Unreadable,
    /// There is no ledger.
    NoLedger,
}

/// Why nothing is to be done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Nothing {
    /// A repeat returns the stored result.
    Stored,
    /// This request_id was used with other arguments.
    Conflict,
    /// Done, and the newest call had other arguments.
    OtherArguments,
    /// Done, and the newest call was answered with an error all the same.
    ErrorAllTheSame,
    /// The server says that it is done.
    ServerSays,
    /// It was answered without an error.
    Answered,
}

/// What is checked where nothing is known.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Check {
    /// No row proves nothing about an old request_id.
    NoRow,
    /// Why the ledger can't be read. May hold foreign text.
    Unreadable(String),
    /// There is no ledger.
    NoLedger,
}

/// What a key or a command does for a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Act {
    /// Send it, once more or for the first time, behind the gate.
    Send,
    /// Look it up at the server.
    LookUp,
}

impl NextStep {
    /// What can be done for it here.
    pub fn act(&self) -> Option<Act> {
        match self {
            NextStep::Repeat(_) | NextStep::Deliver => Some(Act::Send),
            NextStep::Wait(_)
            | NextStep::LookUp(_)
            | NextStep::Check(_)
            | NextStep::CompareWitnesses(_) => Some(Act::LookUp),
            NextStep::Look(Look::Swept | Look::Vanished) => Some(Act::LookUp),
            _ => None,
        }
    }
}

/// A takeover that is further away is no prospect.
const DAY_S: f64 = 24.0 * 3600.0;

pub(super) fn step(facts: &Facts, wire: &WireFacts<'_>, worst: &Verdict, now: Time) -> NextStep {
    // The row's state alone is not enough where the wire says that the work is done.
    let by_word =
        matches!(worst, Verdict::EndpointMismatch) || *worst >= Verdict::AbandonedWithEffect;
    if let Some(who) = done_but_open(facts, wire).filter(|_| by_word) {
        return NextStep::CompareWitnesses(who);
    }
    match worst {
        Verdict::Duplicate => NextStep::TellOfEffects(effects(facts)),
        Verdict::EndpointMismatch => NextStep::AttachAnother,
        // Which of the rows with this id is meant has to be said before anything is repeated.
        Verdict::SeveralRows => {
            NextStep::ChooseRow(facts.row.as_ref().and_then(|r| r.same.clone()))
        }
        Verdict::Conflict => NextStep::Nothing(Nothing::Conflict),
        Verdict::SuspectDuplicate => NextStep::Look(pair(facts)),
        Verdict::DoneWithoutEffect => NextStep::Look(Look::MissingEffect),
        Verdict::EffectWithoutRequest => NextStep::Look(Look::EffectWithoutRow),
        Verdict::AnsweredWithoutRow => NextStep::Look(Look::AnsweredWithoutRow),
        Verdict::RequestPurged => NextStep::Look(Look::Purged),
        Verdict::AbandonedWithEffect => NextStep::Look(Look::EffectOfOpenRow),
        Verdict::Abandoned if facts.has_effects_table => NextStep::Repeat(Repeat::NoEffect),
        Verdict::Abandoned => NextStep::Repeat(Repeat::LookFirst),
        Verdict::Stalled => NextStep::Stalled(stalled(facts, now)),
        Verdict::Released => NextStep::Repeat(Repeat::FixFirst),
        // What the error says is all that is known: a server may have done a part of the work, and taken its row back.
        Verdict::Rejected => NextStep::FixCall {
            said: wire.error_words().map(str::to_owned),
            no_row: matches!(facts.ledger, LedgerView::Read(_)),
        },
        Verdict::NoClaim => NextStep::Repeat(Repeat::NoClaim),
        Verdict::NeverArrived => NextStep::Deliver,
        Verdict::InFlight => NextStep::Wait(Wait::InFlight),
        Verdict::Working => NextStep::Wait(working(facts, now)),
        Verdict::OutcomeUnknown => unknown(facts, wire),
        Verdict::Failed | Verdict::Waiting | Verdict::Cancelled | Verdict::Expired => {
            NextStep::AskServer { verdict: worst.clone(), effect: effects(facts) > 0 }
        }
        Verdict::Unmapped => NextStep::ExplainStatus(match state(facts) {
            State::Unmapped(word) => word,
            other => other.word().to_owned(),
        }),
        Verdict::Finished if facts.row.is_some() => NextStep::Nothing(finished(facts)),
        Verdict::Finished if facts.server_says.is_some() => NextStep::Nothing(Nothing::ServerSays),
        Verdict::Finished => NextStep::Nothing(Nothing::Answered),
        Verdict::NotKnown => not_known(facts),
    }
}

/// The row is done. The newest call may have been answered with an error all the same: by other arguments, say.
fn finished(facts: &Facts) -> Nothing {
    let newest = facts.calls.iter().rev().find(|c| c.sent > 0 && !c.is_pending());
    let error =
        newest.is_some_and(|c| matches!(c.outcome(), Some(Outcome::ToolError | Outcome::RpcError)));
    let other = matches!(facts.hash, HashCheck::DiffersProven | HashCheck::DiffersUnproven);
    match (error, other) {
        (false, _) => Nothing::Stored,
        (true, true) => Nothing::OtherArguments,
        (true, false) => Nothing::ErrorAllTheSame,
    }
}

fn pair(facts: &Facts) -> Look {
    let finished = facts.twins.iter().find(|t| t.state == State::Done);
    Look::Pair {
        other: finished.or(facts.twins.first()).map(|t| t.request_id.clone()),
        other_done: finished.is_some(),
        this_done: state(facts) == State::Done,
    }
}

fn stalled(facts: &Facts, now: Time) -> Stalled {
    if let Some(end) = &facts.owner_goes_on {
        return Stalled::GoesOn(end.clone());
    }
    let judged = facts.judged.as_ref();
    if judged.is_some_and(|j| j.strength == Strength::Stored) {
        return Stalled::Stored;
    }
    match judged.and_then(|j| j.takeover) {
        Some(takeover) => Stalled::Takeover { takeover, over: takeover.at <= now },
        None => Stalled::Unseen,
    }
}

fn working(facts: &Facts, now: Time) -> Wait {
    if effects(facts) > 0 {
        return Wait::EffectThere;
    }
    let Some(judged) = &facts.judged else { return Wait::LookAgain };
    if let Some(skew) = judged.skew_s {
        return Wait::Clocks(skew);
    }
    let Some(takeover) = judged.takeover else {
        return if facts.row.is_some() { Wait::NoLimit } else { Wait::LookAgain };
    };
    let by_word = judged.strength == Strength::ServerSays;
    match (takeover.known, takeover.at <= now && by_word) {
        (known, true) => Wait::ServerWorks(known.then_some(takeover)),
        // A limit of years is a way to say that there is none.
        (true, false) if -takeover.at.age_at(now) > DAY_S => Wait::Restart,
        (true, false) => Wait::Until(takeover),
        (false, false) => Wait::TheirRule,
    }
}

fn unknown(facts: &Facts, wire: &WireFacts<'_>) -> NextStep {
    NextStep::LookUp(match &facts.ledger {
        LedgerView::Read(_) if facts.was_done => return NextStep::Look(Look::Swept),
        LedgerView::Read(_) if wire.too_old() => Unsure::TooOld,
        LedgerView::Read(_) if !facts.ledger_is_the_servers() => {
            Unsure::OtherLedger(wire.error_words().map(str::to_owned))
        }
        LedgerView::Read(_) => Unsure::NoRow,
        LedgerView::Unreadable(_) => Unsure::Unreadable,
        LedgerView::None => Unsure::NoLedger,
    })
}

fn not_known(facts: &Facts) -> NextStep {
    NextStep::Check(match &facts.ledger {
        LedgerView::Read(_) if facts.was_done => return NextStep::Look(Look::Swept),
        LedgerView::Read(_) if facts.row_vanished_at.is_some() => {
            return NextStep::Look(Look::Vanished);
        }
        LedgerView::Read(_) => Check::NoRow,
        LedgerView::Unreadable(why) => Check::Unreadable(why.clone()),
        LedgerView::None => Check::NoLedger,
    })
}
