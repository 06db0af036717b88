//! The rules that settle a call: from what came (or didn't) to an outcome and its true reason.
//!
//! A wrong `ok` or `failed` is the worst bug there is: whatever is not proven here stays `unknown`.
//! An answer always beats an earlier `unknown`, and is then marked late. What settles a call without an answer is
//! in `ends`.

use super::belongs;
use super::call::{AnswerStatus, Call, CallId, Outcome, Settled, answer_text, is_wordless};
use super::fold::Session;
use super::live::Task;
use super::refusal::first_line;
use super::says::status_in;
use super::text::Text;
use crate::json::raw::{self, Object};
use crate::time::Time;
use crate::wire::frame::Answer;
use bytes::Bytes;

/// Of an answer that says that the work is done.
pub(super) const DONE: &str = "answered";
/// Of one that does not say so.
pub(super) const UNSAID: &str = "answered; it does not say that the work is done";

/// The answer to a call has come.
pub(super) fn answered(
    s: &mut Session,
    at: Time,
    call: CallId,
    answer: &Answer<'_>,
    frame: &Bytes,
) {
    let Some(c) = s.calls.get_mut(&call) else { return };
    let legacy = c.legacy;
    let late = match &c.settled {
        None => false,
        Some(old) if old.outcome == Outcome::Unknown || is_open(c) => true,
        Some(_) => {
            c.extra_answers += 1;
            let text = format!(
                "a second answer to call {} ({}), which was answered before: the first one counts",
                c.rpc_id, c.tool
            );
            return s.note(at, text);
        }
    };
    let members = match answer {
        Answer::Result(r) => Object::read(r),
        Answer::Error { .. } => Object::default(),
    };
    if let Answer::Result(r) = answer
        && let Some(why) = belongs::other_request(c, r, &members)
    {
        return s.disown(at, call, why);
    }
    if let Answer::Error { raw, .. } = answer
        && let Some(why) = belongs::other_error(c, raw)
    {
        return s.disown(at, call, why);
    }
    let mut settled = read(at, answer, &members, frame, legacy);
    if let (Answer::Result(r), Outcome::Ok) = (answer, settled.outcome) {
        if let Some(task) = Task::of_result(r, &members, at, legacy) {
            c.live.task = Some(task);
            if !late {
                return; // Its end settles the call.
            }
        } else if !legacy && members.get_str("resultType").as_deref() == Some("input_required") {
            c.live.wants = Some(Text::part(frame, r));
            if !late {
                return; // The next round does, or whoever leaves it open.
            }
            settled.why = format!("answered: not finished, the server wants {}", wanted(r));
        } else {
            c.live.wants = None;
        }
    }
    if late {
        settled.late = true;
        settled.why.push_str(" (late: it already counted as ");
        settled.why.push_str(if is_open(c) { "not finished)" } else { "unknown)" });
    }
    if let Some(before) = &c.live.disowned {
        settled.why = format!("{}; before that {before}", settled.why);
    }
    let size = settled.result.as_ref().map_or(0, |r| r.len());
    c.settled = Some(settled);
    s.results_bytes += size;
    if s.results_bytes > RESULTS {
        let_old_results_go(s, at, RESULTS);
    }
}

/// How many bytes of results are kept in all.
const RESULTS: usize = 192 << 20;
/// A result smaller than this is never let go: it costs little more than what is kept of its call anyway.
const SMALL: usize = 4 << 10;

/// The newest results are kept, up to `limit` bytes; of older ones only what they said. Down to half of it, so that
/// this is not done for every answer.
pub(super) fn let_old_results_go(s: &mut Session, at: Time, limit: usize) {
    let size = |c: &Call| c.settled.as_ref().and_then(|s| s.result.as_ref()).map_or(0, |r| r.len());
    let mut kept = 0;
    let mut gone = 0;
    for c in s.calls.values_mut().rev() {
        let n = size(c);
        if n < SMALL {
            kept += n;
        } else if kept + n > limit / 2 && kept > 0 {
            if let Some(settled) = &mut c.settled {
                settled.result = None;
            }
            c.live.result_let_go = Some(n as u64);
            gone += 1;
        } else {
            kept += n;
        }
    }
    s.results_bytes = kept;
    if gone > 0 {
        s.note(at, format!("{gone} old results were let go to bound memory"));
    }
}

/// What an answer says, taken by itself; `members` are those of its result.
fn read(
    at: Time,
    answer: &Answer<'_>,
    members: &Object<'_>,
    frame: &Bytes,
    legacy: bool,
) -> Settled {
    let base = Settled {
        at,
        outcome: Outcome::Ok,
        why: String::new(),
        late: false,
        answer_status: None,
        result: None,
        error: None,
    };
    match answer {
        Answer::Result(r) if odd(r, members, legacy).is_some() => {
            let why = odd(r, members, legacy).unwrap_or_default();
            let result = Some(Text::part(frame, r));
            Settled { outcome: Outcome::Unknown, why: why.into(), result, ..base }
        }
        Answer::Result(r) if members.get("isError").and_then(raw::as_bool) == Some(true) => {
            let text = answer_text(r);
            let why = if is_wordless(r) {
                "the tool answered with an error without a word; a bridge may have lost its server"
                    .into()
            } else {
                format!("the tool answered with an error: {}", first_line(&text))
            };
            let result = Some(Text::part(frame, r));
            Settled { outcome: Outcome::ToolError, why, result, ..base }
        }
        Answer::Result(r) => {
            let status = status_in(r, members, legacy);
            let why = match status {
                AnswerStatus::Done => DONE,
                AnswerStatus::InProgress => "answered: not finished yet",
                AnswerStatus::Unsaid => UNSAID,
                AnswerStatus::Unknown => {
                    "answered, but the answer speaks against it that the work is done"
                }
            };
            let result = Some(Text::part(frame, r));
            Settled { why: why.into(), answer_status: Some(status), result, ..base }
        }
        Answer::Error { raw, code, message } => {
            let number = code.map_or("without a code".into(), |c| c.to_string());
            let mut why = format!(
                "the server answered with JSON-RPC error {number}: {}",
                first_line(message)
            );
            if *code == Some(-32020) {
                why.push_str(
                    "; it checks the headers before it runs anything, so this call did not run. Nothing is sent again by itself",
                );
            }
            Settled { outcome: Outcome::RpcError, why, error: Some((*raw).to_owned()), ..base }
        }
    }
}

/// Why a result can't be understood as that of a tool at all: it is no object, or a member that decides what it
/// means is of another type.
fn odd(text: &str, result: &Object<'_>, legacy: bool) -> Option<&'static str> {
    let there = |key: &str| result.get(key).filter(|v| !raw::is_null(v));
    if !raw::is_object(text) {
        Some("the answer is malformed: its result is no object")
    } else if there("isError").is_some_and(|v| raw::as_bool(v).is_none()) {
        Some("answered, but its isError is no boolean: not known whether the tool failed")
    } else if !legacy && there("resultType").is_some_and(|v| raw::as_str(v).is_none()) {
        Some("the answer is malformed: its resultType is no string")
    } else {
        None
    }
}

/// Settled as not finished, with an end that may still come.
fn is_open(c: &Call) -> bool {
    let unfinished = |s: &Settled| s.answer_status == Some(AnswerStatus::InProgress);
    c.settled.as_ref().is_some_and(unfinished) && (c.live.task.is_some() || c.live.wants.is_some())
}

/// Settles a pending call; leaves a settled one alone.
pub(super) fn end(s: &mut Session, at: Time, call: CallId, outcome: Outcome, mut why: String) {
    let Some(c) = s.calls.get_mut(&call).filter(|c| c.settled.is_none()) else { return };
    let mut outcome = outcome;
    if matches!(outcome, Outcome::NotSent | Outcome::Refused) && c.rounds > 1 {
        // Its first round was taken: that the next one never left, or was refused, is no proof for the whole.
        why = match outcome {
            Outcome::Refused => format!("round {} was refused: {why}", c.rounds),
            _ => format!("round {} was {why}", c.rounds),
        };
        outcome = Outcome::Unknown;
    }
    if outcome == Outcome::NotSent {
        c.sent = 0;
    }
    if outcome == Outcome::Unknown
        && let Some(remark) = &c.live.remark
    {
        why = format!("{why}; {remark}");
    }
    if outcome == Outcome::Unknown
        && let Some(disowned) = &c.live.disowned
    {
        why = format!("{why}; {disowned}");
    }
    c.settled = Some(Settled {
        at,
        outcome,
        why,
        late: false,
        answer_status: None,
        result: None,
        error: None,
    });
}

/// Settles a pending call as answered and not finished: the server has it as a task, or waits for more input.
pub(super) fn left_open(s: &mut Session, at: Time, call: CallId, why: &str) {
    let Some(c) = s.calls.get_mut(&call).filter(|c| c.settled.is_none()) else { return };
    let what = match (&c.live.wants, &c.live.task) {
        (Some(r), _) => format!("the server wants {}", wanted(r)),
        (None, Some(t)) => format!("the server has it as task {} ({})", t.id, t.status),
        (None, None) => "the server has not finished it".into(),
    };
    c.settled = Some(Settled {
        at,
        outcome: Outcome::Ok,
        why: format!("answered: not finished, {what}; {why}"),
        late: false,
        answer_status: Some(AnswerStatus::InProgress),
        result: c.live.wants.clone(),
        error: None,
    });
}

/// What an input-required result asks for, in words.
pub(super) fn wanted(result: &str) -> String {
    let asks = raw::get(result, "inputRequests").and_then(raw::members).unwrap_or_default();
    let words: Vec<String> = asks
        .iter()
        .map(|(_, ask)| {
            let method = raw::get_str(ask, "method").unwrap_or_default();
            match raw::get_path(ask, &["params", "message"]).and_then(raw::as_str) {
                Some(m) => format!("{method} ({})", first_line(&m)),
                None => method,
            }
        })
        .collect();
    if words.is_empty() { "to be asked again".into() } else { words.join(", ") }
}

/// An answer that is no legal answer. It may be the work's own, so the outcome is not known from it.
pub(super) fn malformed(s: &mut Session, at: Time, call: CallId, why: &str) {
    if s.calls.get(&call).is_some_and(|c| !c.is_pending()) {
        return s.note(at, format!("a malformed answer to a settled call: {why}"));
    }
    end(s, at, call, Outcome::Unknown, format!("the answer is malformed: {why}"));
}
