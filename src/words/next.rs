//! The one safe next step as a sentence. Times are spelled by whoever shows them.

use crate::judge::Verdict;
use crate::judge::next::{Check, Look, NextStep, Nothing, Repeat, Stalled, Unsure, Wait};
use crate::judge::verdict::SaidBy;
use crate::judge::words::Takeover;
use crate::ledger::told;
use crate::time::{Time, span};

/// Times of another day need their date.
const SAME_DAY_S: f64 = 20.0 * 3600.0;

/// How a repeat is suggested, and nothing else.
pub const REPEAT: &str = "repeat with the same request_id";
/// How a first delivery is suggested.
pub const DELIVER: &str = "sending it is a first delivery";

/// Of a server that nobody here knows.
const THEIR_RULE: &str =
    "what a repeat does before it is done is that server's own rule: find that out first";

/// The step in words, with the time of day in the local zone.
pub fn next_step(step: &NextStep, now: Time) -> String {
    next_step_in(step, now, &|t| t.clock())
}

/// As [`next_step`], with the spelling of a time of today handed in.
pub fn next_step_in(step: &NextStep, now: Time, clock: &dyn Fn(Time) -> String) -> String {
    let when = |t: Time| if t.age_at(now).abs() < SAME_DAY_S { clock(t) } else { t.rfc3339() };
    match step {
        NextStep::Repeat(why) => repeat(*why),
        NextStep::Deliver => format!("{DELIVER}: no call has reached the server"),
        NextStep::Wait(wait) => waiting(*wait, &when),
        NextStep::Stalled(why) => stalled(why, &when),
        NextStep::Look(what) => look(what),
        NextStep::LookUp(why) => unsure(why),
        NextStep::Nothing(why) => nothing(*why).into(),
        NextStep::CompareWitnesses(who) => {
            let who = match who {
                SaidBy::Answer => "an answer said",
                SaidBy::LookUp => "the server says",
            };
            format!(
                "{who} that it is done, the ledger does not: do not repeat; look whether this server writes this ledger"
            )
        }
        NextStep::AttachAnother => "attach the server that writes this ledger, or the ledger that this server writes; send nothing until they agree".into(),
        NextStep::ChooseRow(same) => {
            let words = same.as_ref().map(|s| s.words()).unwrap_or_default();
            let own = same.as_ref().map(|s| told(&s.tells)).unwrap_or_default();
            match same.as_ref().is_some_and(|s| s.chosen) {
                true => format!(
                    "{words}. {own} was named: a server that looks at another one may do the work again; find out how it tells them apart before anything is repeated"
                ),
                false => format!(
                    "{words}. This one is {own}: say which is meant (--row) before anything is repeated"
                ),
            }
        }
        NextStep::TellOfEffects(effects) => format!(
            "tell whoever owns the {effects} effects: the work was done more than once; there is nothing to repeat"
        ),
        NextStep::FixCall { said, no_row } => {
            let said = said.as_deref().unwrap_or("it was answered with an error");
            let rest = match no_row {
                true => "no row of it was seen; whether anything was done before the error is not known",
                false => "without a ledger nobody can see whether it did something before the error",
            };
            format!("fix the call: {said}; {rest}")
        }
        NextStep::AskServer { verdict, effect } => {
            let effect = if *effect { "; an effect exists: do not repeat blindly" } else { "" };
            let word = verdict.words();
            match verdict {
                Verdict::Waiting => format!("wait: the server's own word is '{word}'{effect}"),
                _ => format!(
                    "the server's own word is '{word}': ask what a repeat does there before you make one{effect}"
                ),
            }
        }
        NextStep::ExplainStatus(word) if word.is_empty() => {
            "its row holds no status (NULL or empty): ask its server what that means; it does not count as done".into()
        }
        NextStep::ExplainStatus(word) => format!(
            "find out what the status '{word}' means to its server; it does not count as done"
        ),
        NextStep::Check(what) => match what {
            Check::NoRow => "check the request_id, the ledger and how long it keeps rows: no row proves nothing about an old request_id".into(),
            Check::Unreadable(why) => format!(
                "the ledger can't be read now ({why}): that nothing is seen of it proves nothing"
            ),
            Check::NoLedger => "check the request_id, or attach the ledger that could know it".into(),
        },
    }
}

fn repeat(why: Repeat) -> String {
    match why {
        Repeat::NoEffect => format!("{REPEAT}: its owner has ended and left no effect"),
        Repeat::LookFirst => format!(
            "its owner has ended; this ledger can't show effects: look whether there is one, then {REPEAT}"
        ),
        Repeat::FixFirst => format!("fix the cause of the error, then {REPEAT}"),
        Repeat::NoClaim => format!("{REPEAT}: the server ended before it took the request on"),
    }
}

fn limit(takeover: &Takeover) -> String {
    takeover.limit_s.map_or_else(String::new, |s| format!(", if its limit is {s} s"))
}

fn waiting(wait: Wait, when: &dyn Fn(Time) -> String) -> String {
    match wait {
        Wait::InFlight => {
            "wait: the call may still be worked on, and its row may still appear; then look again".into()
        }
        Wait::EffectThere => {
            "wait: its effect is there and its row is not done yet; do not repeat blindly, look at the effect first".into()
        }
        Wait::Clocks(skew) => format!(
            "wait, and check the clocks: its claim lies {} in the future",
            span(skew)
        ),
        Wait::LookAgain => "wait, then look it up again".into(),
        Wait::NoLimit => "wait; when a repeat could take over can't be told from this ledger".into(),
        Wait::ServerWorks(Some(t)) => format!(
            "wait: the server says that it works on it (a repeat could take over since {}{})",
            when(t.at),
            limit(&t)
        ),
        Wait::ServerWorks(None) => {
            "wait: the server says that it works on it; then look it up again".into()
        }
        Wait::Restart => "wait; the server lets a repeat take over once it is restarted".into(),
        Wait::Until(t) => format!(
            "wait; if it does not finish, the server lets a repeat take over from {}{}; a restarted server at once",
            when(t.at),
            limit(&t)
        ),
        Wait::TheirRule => format!("wait, then look it up again; {THEIR_RULE}"),
    }
}

fn stalled(why: &Stalled, when: &dyn Fn(Time) -> String) -> String {
    let (t, over) = match why {
        Stalled::GoesOn(end) => {
            return format!(
                "may still be working: its owner ended, but {}; look what it does, or wait for its end",
                end.left_words()
            );
        }
        Stalled::Stored => {
            return "the ledger's own word is 'abandoned', and nobody here has seen its owner end: ask what a repeat does there before you make one".into();
        }
        Stalled::Unseen => {
            return "may still be working; nobody has seen its owner end: look at what it was to do first".into();
        }
        Stalled::Takeover { takeover, over } => (takeover, *over),
    };
    let at = when(t.at);
    match (t.known, over, t.limit_s) {
        (true, true, Some(_)) => format!(
            "may still be working; the server lets a repeat take over since {at}{}",
            limit(t)
        ),
        (true, true, None) => format!(
            "may still be working; the server lets a repeat take over since {at}, if it is the only one on this ledger"
        ),
        (true, false, _) => {
            let who = match t.by_word {
                true => "this server lets a repeat take over at once, any other",
                false => "the server lets a repeat take over",
            };
            format!("may still be working; {who} from {at}{}", limit(t))
        }
        (false, true, Some(s)) => format!(
            "may still be working, though its claim is older than {s} s since {at}; {THEIR_RULE}"
        ),
        (false, true, None) => format!(
            "may still be working, though another owner has claimed since {at}; {THEIR_RULE}"
        ),
        (false, false, _) => format!("may still be working; {THEIR_RULE}"),
    }
}

fn look(what: &Look) -> String {
    match what {
        Look::MissingEffect => {
            "look for what it should have left behind; do not repeat: it counts as done".into()
        }
        Look::EffectWithoutRow => {
            "look at the effect; do not repeat: without its row the server would do the work again".into()
        }
        Look::AnsweredWithoutRow => "look: it was answered as done, and this ledger has no row (another ledger, or a row swept since); do not repeat".into(),
        Look::Purged => {
            "its effect is there and its row is not (swept, or there never was one): look at the effect; do not repeat".into()
        }
        Look::EffectOfOpenRow => {
            "do not repeat blindly: its effect exists though its row is not done; look at the effect first".into()
        }
        Look::Swept => "do not repeat: its row was done when it was last seen here, and is gone since; a repeat would do the work again".into(),
        Look::Vanished => {
            "its row was here and is gone (released or swept): find out why; a repeat may run the work again".into()
        }
        Look::Pair { other, other_done, this_done } => {
            let other = other.as_deref().unwrap_or("another request");
            match (other_done, this_done) {
                (true, false) => format!(
                    "{other} has the same arguments and is done: it did this already; do not finish this one"
                ),
                (true, true) => {
                    format!("look at the pair: {other} has the same arguments and is done too")
                }
                (false, true) => format!(
                    "look at the pair: {other} has the same arguments; this one is done, do not finish that one"
                ),
                (false, false) => format!(
                    "look at the pair: {other} has the same arguments; find out which one is meant before you finish any"
                ),
            }
        }
    }
}

fn unsure(why: &Unsure) -> String {
    const BEFORE: &str = "look it up by other means before anything is repeated";
    match why {
        Unsure::TooOld => "look it up by other means: the call is so old that its row may have been swept; repeating it may run the work again".into(),
        Unsure::OtherLedger(said) => {
            let said = said.as_ref().map_or_else(String::new, |why| format!("{why}; "));
            format!("{said}this ledger may not be the server's, and says nothing without a row: {BEFORE}")
        }
        Unsure::NoRow => format!("{BEFORE}: this ledger has no row that could tell"),
        Unsure::Unreadable => format!("read the ledger again; until then {BEFORE}"),
        Unsure::NoLedger => format!("{BEFORE}: no ledger is attached that could know"),
    }
}

fn nothing(why: Nothing) -> &'static str {
    match why {
        Nothing::Stored => "nothing to do: a repeat returns the stored result",
        Nothing::Conflict => "nothing to repeat: this request_id was used with other arguments",
        Nothing::OtherArguments => {
            "nothing to repeat: the request is done, with other arguments than those of the newest call, which was answered with an error; other work wants a request_id of its own"
        }
        Nothing::ErrorAllTheSame => {
            "nothing to do: the request is done, though the newest call was answered with an error; its words say why"
        }
        Nothing::ServerSays => "nothing to do: the server says that it is done",
        Nothing::Answered => "nothing to do: it was answered, and without an error",
    }
}
