//! The one safe next step, as a sentence: that of the worst verdict. A milder verdict never gets to
//! suggest what a worse one forbids, because only the worst one speaks.

use super::facts::{Facts, HashCheck, LedgerView};
use super::state::seconds;
use super::verdict::{SaidBy, done_but_open, effects, state};
use super::wire::WireFacts;
use super::words::{State, Strength, Takeover, Verdict};
use crate::journal::Outcome;
use crate::time::Time;

/// How a repeat is suggested, and only suggested by sentences that hold these words.
pub(super) const REPEAT: &str = "repeat with the same request_id";
/// How a first delivery is suggested.
pub(super) const DELIVER: &str = "sending it is a first delivery";

/// Of a request whose row was done and is gone.
const SWEPT: &str = "do not repeat: its row was done when it was last seen here, and is gone since; a repeat would do the work again";

/// Of a server that nobody here knows.
const THEIR_RULE: &str =
    "what a repeat does before it is done is that server's own rule: find that out first";

/// A takeover that is further away is no prospect.
const DAY_S: f64 = 24.0 * 3600.0;

/// Times of another day need their date.
const SAME_DAY_S: f64 = 20.0 * 3600.0;

pub(super) fn step(
    facts: &Facts,
    wire: &WireFacts<'_>,
    verdicts: &[Verdict],
    now: Time,
    clock: &dyn Fn(Time) -> String,
) -> String {
    let Some(worst) = verdicts.first() else { return String::new() };
    let when = |t: Time| if t.age_at(now).abs() < SAME_DAY_S { clock(t) } else { t.rfc3339() };
    // The row's state alone is not enough where the wire says that the work is done.
    let by_word =
        matches!(worst, Verdict::EndpointMismatch) || *worst >= Verdict::AbandonedWithEffect;
    if let Some(who) = done_but_open(facts, wire).filter(|_| by_word) {
        let who = match who {
            SaidBy::Answer => "an answer said",
            SaidBy::LookUp => "the server says",
        };
        return format!(
            "{who} that it is done, the ledger does not: do not repeat; look whether this server writes this ledger"
        );
    }
    match worst {
        Verdict::Duplicate => format!(
            "tell whoever owns the {} effects: the work was done more than once; there is nothing to repeat",
            effects(facts)
        ),
        Verdict::EndpointMismatch => "attach the server that writes this ledger, or the ledger that this \
                                      server writes; send nothing until they agree"
            .into(),
        Verdict::SeveralRows => several(facts),
        Verdict::Conflict => "nothing to repeat: this request_id was used with other arguments".into(),
        Verdict::SuspectDuplicate => pair(facts),
        Verdict::DoneWithoutEffect => {
            "look for what it should have left behind; do not repeat: it counts as done".into()
        }
        Verdict::EffectWithoutRequest => {
            "look at the effect; do not repeat: without its row the server would do the work again".into()
        }
        Verdict::AnsweredWithoutRow => "look: it was answered as done, and this ledger has no row (another \
                                        ledger, or a row swept since); do not repeat"
            .into(),
        Verdict::RequestPurged => {
            "its effect is there and its row is not (swept, or there never was one): look at the effect; do not repeat".into()
        }
        Verdict::AbandonedWithEffect => {
            "do not repeat blindly: its effect exists though its row is not done; look at the effect first".into()
        }
        Verdict::Abandoned if facts.has_effects_table => {
            format!("{REPEAT}: its owner has ended and left no effect")
        }
        Verdict::Abandoned => format!(
            "its owner has ended; this ledger can't show effects: look whether there is one, then {REPEAT}"
        ),
        Verdict::Stalled => stalled(facts, now, &when),
        Verdict::Released => format!("fix the cause of the error, then {REPEAT}"),
        Verdict::Rejected => rejected(facts, wire),
        Verdict::NoClaim => format!("{REPEAT}: the server ended before it took the request on"),
        Verdict::NeverArrived => format!("{DELIVER}: no call has reached the server"),
        Verdict::InFlight => {
            "wait: the call may still be worked on, and its row may still appear; then look again".into()
        }
        Verdict::Working => working(facts, now, &when),
        Verdict::OutcomeUnknown => unknown(facts, wire),
        Verdict::Failed | Verdict::Waiting | Verdict::Cancelled | Verdict::Expired => foreign(facts, worst),
        Verdict::Unmapped if matches!(state(facts), State::Unmapped(word) if word.is_empty()) => {
            "its row holds no status (NULL or empty): ask its server what that means; it does not count as done".into()
        }
        Verdict::Unmapped => format!(
            "find out what the status '{}' means to its server; it does not count as done",
            state(facts).word()
        ),
        Verdict::Finished if facts.row.is_some() => finished(facts),
        Verdict::Finished if facts.server_says.is_some() => {
            "nothing to do: the server says that it is done".into()
        }
        Verdict::Finished => "nothing to do: it was answered, and without an error".into(),
        Verdict::NotKnown => not_known(facts),
    }
}

/// Which of the rows with this id is meant has to be said before anything is repeated.
fn several(facts: &Facts) -> String {
    let same = facts.row.as_ref().and_then(|r| r.same.as_deref());
    let words = same.map(|s| s.words()).unwrap_or_default();
    let own = same.map(|s| crate::ledger::told(&s.tells)).unwrap_or_default();
    if same.is_some_and(|s| s.chosen) {
        return format!(
            "{words}. {own} was named: a server that looks at another one may do the work again; find out how it tells them apart before anything is repeated"
        );
    }
    format!("{words}. This one is {own}: say which is meant (--row) before anything is repeated")
}

/// The row is done. The newest call may have been answered with an error all the same: by other arguments, say.
fn finished(facts: &Facts) -> String {
    let newest = facts.calls.iter().rev().find(|c| c.sent > 0 && !c.is_pending());
    let error =
        newest.is_some_and(|c| matches!(c.outcome(), Some(Outcome::ToolError | Outcome::RpcError)));
    let other = matches!(facts.hash, HashCheck::DiffersProven | HashCheck::DiffersUnproven);
    match (error, other) {
        (false, _) => "nothing to do: a repeat returns the stored result",
        (true, true) => {
            "nothing to repeat: the request is done, with other arguments than those of the newest call, which was answered with an error; other work wants a request_id of its own"
        }
        (true, false) => {
            "nothing to do: the request is done, though the newest call was answered with an error; its words say why"
        }
    }
    .into()
}

fn pair(facts: &Facts) -> String {
    let finished = facts.twins.iter().find(|t| t.state == State::Done);
    let this_done = state(facts) == State::Done;
    match (finished, facts.twins.first()) {
        (Some(t), _) if !this_done => {
            format!(
                "{} has the same arguments and is done: it did this already; do not finish this one",
                t.request_id
            )
        }
        (Some(t), _) => {
            format!("look at the pair: {} has the same arguments and is done too", t.request_id)
        }
        (None, Some(t)) if this_done => format!(
            "look at the pair: {} has the same arguments; this one is done, do not finish that one",
            t.request_id
        ),
        (None, t) => format!(
            "look at the pair: {} has the same arguments; find out which one is meant before you finish any",
            t.map_or("another request", |t| &t.request_id)
        ),
    }
}

fn stalled(facts: &Facts, now: Time, when: &dyn Fn(Time) -> String) -> String {
    if let Some(end) = &facts.owner_goes_on {
        return format!(
            "may still be working: its owner ended, but {}; look what it does, or wait for its end",
            end.left_words()
        );
    }
    let judged = facts.judged.as_ref();
    if judged.is_some_and(|j| j.strength == Strength::Stored) {
        return "the ledger's own word is 'abandoned', and nobody here has seen its owner end: ask what a repeat does there before you make one".into();
    }
    let Some(takeover) = judged.and_then(|j| j.takeover) else {
        return "may still be working; nobody has seen its owner end: look at what it was to do first".into();
    };
    let Takeover { at, limit_s, known, by_word } = takeover;
    let at_words = when(at);
    let limit = limit_s.map(seconds);
    match (known, at <= now, limit) {
        (true, true, Some(limit)) => format!(
            "may still be working; the server lets a repeat take over since {at_words}, if its limit is {limit}"
        ),
        (true, true, None) => format!(
            "may still be working; the server lets a repeat take over since {at_words}, if it is the only one on this ledger"
        ),
        (true, false, limit) => {
            let at_once = if by_word {
                "this server lets a repeat take over at once, any other"
            } else {
                "the server lets a repeat take over"
            };
            let limit = limit.map_or_else(String::new, |l| format!(", if its limit is {l}"));
            format!("may still be working; {at_once} from {at_words}{limit}")
        }
        (false, true, Some(limit)) => format!(
            "may still be working, though its claim is older than {limit} since {at_words}; {THEIR_RULE}"
        ),
        (false, true, None) => format!(
            "may still be working, though another owner has claimed since {at_words}; {THEIR_RULE}"
        ),
        (false, false, _) => format!("may still be working; {THEIR_RULE}"),
    }
}

fn working(facts: &Facts, now: Time, when: &dyn Fn(Time) -> String) -> String {
    if effects(facts) > 0 {
        return "wait: its effect is there and its row is not done yet; do not repeat blindly, look at the effect first"
            .into();
    }
    let Some(judged) = &facts.judged else { return "wait, then look it up again".into() };
    if let Some(skew) = judged.skew_s {
        return format!(
            "wait, and check the clocks: its claim lies {} in the future",
            crate::time::span(skew)
        );
    }
    let Some(Takeover { at, limit_s, known, .. }) = judged.takeover else {
        return match facts.row {
            Some(_) => "wait; when a repeat could take over can't be told from this ledger".into(),
            None => "wait, then look it up again".into(),
        };
    };
    let limit = limit_s.map_or_else(String::new, |s| format!(", if its limit is {}", seconds(s)));
    let by_word = judged.strength == Strength::ServerSays;
    match (known, at <= now && by_word) {
        (true, true) => format!(
            "wait: the server says that it works on it (a repeat could take over since {}{limit})",
            when(at)
        ),
        (false, true) => "wait: the server says that it works on it; then look it up again".into(),
        // A limit of years is a way to say that there is none.
        (true, false) if -at.age_at(now) > DAY_S => {
            "wait; the server lets a repeat take over once it is restarted".into()
        }
        (true, false) => format!(
            "wait; if it does not finish, the server lets a repeat take over from {}{limit}; a restarted server at once",
            when(at)
        ),
        (false, false) => format!("wait, then look it up again; {THEIR_RULE}"),
    }
}

/// What the error says is all that is known: a server may have done a part of the work, and taken its row back.
fn rejected(facts: &Facts, wire: &WireFacts<'_>) -> String {
    let said = wire.error_words().unwrap_or("it was answered with an error");
    let rest = match facts.ledger {
        LedgerView::Read(_) => {
            "no row of it was seen; whether anything was done before the error is not known"
        }
        _ => "without a ledger nobody can see whether it did something before the error",
    };
    format!("fix the call: {said}; {rest}")
}

fn unknown(facts: &Facts, wire: &WireFacts<'_>) -> String {
    match &facts.ledger {
        LedgerView::Read(_) if facts.was_done => SWEPT.into(),
        LedgerView::Read(_) if wire.too_old() => "look it up by other means: the call is so old that its row \
                                                  may have been swept; repeating it may run the work again"
            .into(),
        LedgerView::Read(_) if !facts.ledger_is_the_servers() => {
            let said = wire.error_words().map_or_else(String::new, |why| format!("{why}; "));
            format!(
                "{said}this ledger may not be the server's, and says nothing without a row: look it up by other means before anything is repeated"
            )
        }
        LedgerView::Read(_) => "look it up by other means before anything is repeated: this ledger has no row \
                                that could tell"
            .into(),
        LedgerView::Unreadable(_) => {
            "read the ledger again; until then look it up by other means before anything is repeated".into()
        }
        LedgerView::None => {
            "look it up by other means before anything is repeated: no ledger is attached that could know".into()
        }
    }
}

fn foreign(facts: &Facts, verdict: &Verdict) -> String {
    let effect = if effects(facts) > 0 { "; an effect exists: do not repeat blindly" } else { "" };
    let word = verdict.words();
    match verdict {
        Verdict::Waiting => format!("wait: the server's own word is '{word}'{effect}"),
        _ => format!(
            "the server's own word is '{word}': ask what a repeat does there before you make one{effect}"
        ),
    }
}

fn not_known(facts: &Facts) -> String {
    match &facts.ledger {
        LedgerView::Read(_) if facts.was_done => SWEPT.into(),
        LedgerView::Read(_) if facts.row_vanished_at.is_some() => {
            "its row was here and is gone (released or swept): find out why; a repeat may run the work again".into()
        }
        LedgerView::Read(_) => "check the request_id, the ledger and how long it keeps rows: no row proves \
                                nothing about an old request_id"
            .into(),
        LedgerView::Unreadable(why) => {
            format!("the ledger can't be read now ({why}): that nothing is seen of it proves nothing")
        }
        LedgerView::None => "check the request_id, or attach the ledger that could know it".into(),
    }
}
