//! The rules that settle a call: from what came (or didn't) to an outcome and its true reason.
//!
//! A wrong `ok` or `failed` is the worst bug there is: whatever is not proven here stays `unknown`.
//! An answer always beats an earlier `unknown`, and is then marked late.

use super::call::{AnswerStatus, Call, CallId, Outcome, Settled, answer_status, answer_text};
use super::event::Event;
use super::exchange::Exchange;
use super::fold::Session;
use super::live::Task;
use super::refusal::{self, first_line, is_session_lost, refusal_words, refuses};
use super::text::Text;
use crate::json::raw;
use crate::time::Time;
use crate::wire::frame::Answer;
use bytes::Bytes;

/// The answer to a call has come.
pub(super) fn answered(
    s: &mut Session,
    at: Time,
    call: CallId,
    answer: &Answer<'_>,
    frame: &Bytes,
) {
    let Some(c) = s.calls.get_mut(&call) else { return };
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
    let mut settled = read(at, answer, frame);
    if let Answer::Result(r) = answer {
        if let Some(task) = Task::of_answer(r, at) {
            c.live.task = Some(task);
            if !late {
                return; // Its end settles the call.
            }
        } else if raw::get_str(r, "resultType").as_deref() == Some("input_required") {
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
    c.settled = Some(settled);
}

/// What an answer says, taken by itself.
fn read(at: Time, answer: &Answer<'_>, frame: &Bytes) -> Settled {
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
        Answer::Result(r) if raw::get(r, "isError").and_then(raw::as_bool) == Some(true) => {
            let text = answer_text(r);
            let why = if text.trim().is_empty() {
                "the tool answered with an error without a word; a bridge may have lost its server"
                    .into()
            } else {
                format!("the tool answered with an error: {}", first_line(&text))
            };
            let result = Some(Text::part(frame, r));
            Settled { outcome: Outcome::ToolError, why, result, ..base }
        }
        Answer::Result(r) => {
            let status = answer_status(r);
            let why = match status {
                AnswerStatus::Done => "answered",
                AnswerStatus::InProgress => "answered: not finished yet",
                AnswerStatus::Unknown => {
                    "answered, but the answer does not say that it is finished"
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

/// Settled as not finished, with an end that may still come.
fn is_open(c: &Call) -> bool {
    let unfinished = |s: &Settled| s.answer_status == Some(AnswerStatus::InProgress);
    c.settled.as_ref().is_some_and(unfinished) && (c.live.task.is_some() || c.live.wants.is_some())
}

/// Settles a pending call; leaves a settled one alone.
pub(super) fn end(s: &mut Session, at: Time, call: CallId, outcome: Outcome, mut why: String) {
    let Some(c) = s.calls.get_mut(&call).filter(|c| c.settled.is_none()) else { return };
    let mut outcome = outcome;
    if outcome == Outcome::NotSent && c.rounds > 1 {
        // Its first round was taken: that the next one never left is no proof for the whole.
        why = format!("round {} was {why}", c.rounds);
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

/// The write failed. That nothing left is a proof: it also corrects an `unknown` that the process's end had
/// given the call a moment before.
pub(super) fn not_written(s: &mut Session, at: Time, call: CallId, why: &str, left: bool) {
    let outcome = if left { Outcome::Unknown } else { Outcome::NotSent };
    if !left
        && let Some(c) = s.calls.get_mut(&call)
        && c.outcome() == Some(Outcome::Unknown)
    {
        c.settled = None;
    }
    end(s, at, call, outcome, why.to_owned());
}

/// A limit passed. A task goes on by itself; anything else is not known.
pub(super) fn timed_out(s: &mut Session, at: Time, call: CallId, after_s: f64) {
    let Some(c) = s.calls.get_mut(&call).filter(|c| c.settled.is_none()) else { return };
    if c.live.task.is_some() || c.live.wants.is_some() {
        return left_open(s, at, call, &format!("not finished within {after_s} s"));
    }
    c.live.cancelled_at = Some(at);
    let so_far = match (c.live.headers_at, c.live.bytes) {
        _ if c.exchange.is_none() => "",
        (None, _) => ", not even headers",
        (Some(_), 0) => "; the stream was open, 0 bytes came",
        (Some(_), _) => "; the stream was open",
    };
    end(s, at, call, Outcome::Unknown, format!("no answer within {after_s} s{so_far}"));
}

/// A person gave up.
pub(super) fn given_up(s: &mut Session, at: Time, call: CallId, why: &str) {
    if let Some(c) = s.calls.get_mut(&call)
        && why.starts_with("cancelled")
    {
        c.live.cancelled_at = Some(at);
    }
    end(s, at, call, Outcome::Unknown, why.to_owned());
}

/// The child ended or closed its stdout: nothing more can come on this generation.
pub(super) fn generation_over(s: &mut Session, event: &Event, why: &str) {
    let open: Vec<(CallId, Option<String>)> = s
        .calls
        .values()
        .filter(|c| c.generation == event.generation && c.is_pending() && c.exchange.is_none())
        .map(|c| (c.id, c.live.task.as_ref().map(|t| t.id.clone())))
        .collect();
    for (call, task) in open {
        let why = match task {
            Some(id) => format!("{why}; its task was {id}"),
            None => why.to_owned(),
        };
        end(s, event.at, call, Outcome::Unknown, why);
    }
}

/// An answer that is no legal answer. It may be the work's own, so the outcome is not known from it.
pub(super) fn malformed(s: &mut Session, at: Time, call: CallId, why: &str) {
    if s.calls.get(&call).is_some_and(|c| !c.is_pending()) {
        return s.note(at, format!("a malformed answer to a settled call: {why}"));
    }
    end(s, at, call, Outcome::Unknown, format!("the answer is malformed: {why}"));
}

/// A JSON-RPC body under a status that is not 2xx.
pub(super) fn refusing_body(
    s: &mut Session,
    at: Time,
    call: CallId,
    x: &Exchange,
    answer: &Answer<'_>,
    frame: &Bytes,
) {
    let status = x.status.unwrap_or(0);
    let (code, message) = match answer {
        Answer::Error { code, message, .. } => (*code, message.as_str()),
        Answer::Result(_) => (None, ""),
    };
    let said = first_line(message);
    if is_session_lost(status, code, message, x.with_session) {
        end(s, at, call, Outcome::Refused, format!("session lost: HTTP {status}, {said}"));
    } else if x.modern && refusal::wants_initialize(status, code, message) {
        let why = format!("HTTP {status}, the server does not speak 2026-07-28 any more: {said}");
        end(s, at, call, Outcome::Refused, why);
    } else if refuses(status) {
        end(s, at, call, Outcome::Refused, format!("{}: {said}", refusal_words(status, x)));
    } else {
        answered(s, at, call, answer, frame);
    }
}

/// A body that is no JSON-RPC (HTML of a proxy, plain text).
pub(super) fn plain_body(s: &mut Session, at: Time, exchange: u64, body: &Bytes) {
    let Some(x) = s.exchanges.get(&exchange).cloned() else { return };
    let Some(call) = x.call else { return };
    let status = x.status.unwrap_or(0);
    let text = String::from_utf8_lossy(body);
    let shown = refusal::page_title(&text).unwrap_or_else(|| first_line(&text));
    let (outcome, why) = if is_session_lost(status, None, &text, x.with_session) {
        (Outcome::Refused, format!("session lost: HTTP {status}, {shown}"))
    } else if refuses(status) {
        (Outcome::Refused, format!("{}: {shown}", refusal_words(status, &x)))
    } else if refusal::is_html(&text) {
        let why = format!("HTTP {status}, not MCP: an HTML page from a proxy or login ({shown})");
        (Outcome::Unknown, why)
    } else {
        (Outcome::Unknown, format!("HTTP {status}, a body that is not JSON-RPC: {shown}"))
    };
    end(s, at, call, outcome, why);
}

/// The exchange ended, properly or not.
pub(super) fn exchange_over(
    s: &mut Session,
    at: Time,
    exchange: u64,
    failed: Option<(&String, bool)>,
) {
    let Some(x) = s.exchanges.remove(&exchange) else { return };
    let Some(call) = x.call else { return };
    // What the server took on as a task, or asks more for, does not hang on this stream.
    if s.calls.get(&call).is_none_or(|c| c.live.task.is_some() || c.live.wants.is_some()) {
        return;
    }
    let (outcome, why) = match (failed, x.status) {
        (Some((why, false)), _) if x.redirected => {
            if let Some(c) = s.calls.get_mut(&call) {
                c.sent = c.sent.saturating_sub(1);
            }
            let why = format!("redirected, and where it was sent to can't be reached: {why}");
            (Outcome::Unknown, why)
        }
        (Some((why, false)), _) => (Outcome::NotSent, format!("never sent: {why}")),
        (Some((why, true)), None) => {
            (Outcome::Unknown, format!("sent, then the connection broke before any answer: {why}"))
        }
        (Some((why, true)), Some(status)) => (
            Outcome::Unknown,
            format!(
                "accepted (HTTP {status}), then the connection broke before the answer was there: {why}"
            ),
        ),
        (None, Some(status)) if refuses(status) => (Outcome::Refused, refusal_words(status, &x)),
        (None, Some(404)) if x.with_session => (Outcome::Refused, "session lost: HTTP 404".into()),
        (None, Some(status)) if (200..300).contains(&status) => {
            let stream = s.calls.get(&call).is_some_and(|c| c.live.stream);
            let what = if stream { "the stream" } else { "the server's answer" };
            (Outcome::Unknown, format!("{what} ended without an answer to this call"))
        }
        (None, Some(status)) => {
            let to = x.location.as_ref().map(|l| format!(" (it points to {l}: not followed)"));
            (Outcome::Unknown, format!("HTTP {status} without an answer{}", to.unwrap_or_default()))
        }
        (None, None) => (Outcome::Unknown, "the exchange ended without a status".into()),
    };
    end(s, at, call, outcome, why);
}
