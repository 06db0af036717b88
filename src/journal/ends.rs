//! What ends a call without an answer: writes that failed, limits, processes and exchanges that are over, statuses
//! that refuse. Each says no more than it proves.

use super::call::{Call, CallId, Outcome};
use super::event::Event;
use super::exchange::Exchange;
use super::fold::Session;
use super::generation::stopped_words;
use super::refusal::{
    self, first_line, is_session_lost, proves_session_lost, refusal_words, refuses,
};
use super::settle::{answered, end, left_open};
use super::waiting::UNREAD;
use crate::time::Time;
use crate::wire::broken::broken;
use crate::wire::frame::Answer;
use crate::wire::id::Id;
use bytes::Bytes;

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
    let of = s.calls.get(&call).map(|c| c.generation);
    let stopped = of.and_then(|n| s.generation_n(n)?.stopped.clone());
    let Some(c) = s.calls.get_mut(&call).filter(|c| c.settled.is_none()) else { return };
    if c.live.task.is_some() || c.live.wants.is_some() {
        return left_open(s, at, call, &format!("not finished within {after_s} s"));
    }
    c.live.cancelled_at = Some(at);
    let so_far = match (c.live.headers_at, c.live.bytes) {
        _ if stopped.is_some() => {
            stopped.iter().map(|who| format!("; {}", stopped_words(who))).collect()
        }
        _ if c.live.unread => format!("; {UNREAD}"),
        _ if c.exchange.is_none() => String::new(),
        (None, _) => ", not even headers".into(),
        (Some(_), 0) => "; the stream was open, 0 bytes came".into(),
        (Some(_), _) => "; the stream was open".into(),
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
        if let Some(c) = s.calls.get_mut(&call) {
            c.live.lost = true;
        }
    }
}

/// Of a call that met words about a session which don't prove that it was not run.
const PERHAPS_LOST: &str = "the session may be lost, and whether this call was run is not known";

/// A JSON-RPC body under a status that is not 2xx; `id` as it came.
pub(super) fn refusing_body(
    s: &mut Session,
    at: Time,
    call: CallId,
    x: &Exchange,
    (id, answer): (Option<&Id>, &Answer<'_>),
    frame: &Bytes,
) {
    let status = x.status.unwrap_or(0);
    // Whoever gives the request's own id back has read the request: a refusal made before that has none.
    let own = matches!((id, &x.rpc_id), (Some(a), Some(b)) if a == b || a.is_near(b));
    let (code, message) = match answer {
        Answer::Error { code, message, .. } => (*code, message.as_str()),
        Answer::Result(_) => (None, ""),
    };
    let said = first_line(message);
    if is_this_answer(id, x.rpc_id.as_ref(), answer) {
        // A status never overrules an answer: whoever gives our own id back has taken the call.
        answered(s, at, call, answer, frame);
        if let Some(c) = s.calls.get_mut(&call)
            && let Some(settled) = c.settled.as_mut().filter(|s| s.answered())
        {
            settled.why.push_str(&format!(" (under HTTP {status})"));
        }
    } else if matches!(answer, Answer::Result(_)) {
        let why = format!(
            "HTTP {status} with a result in it that does not carry this call's id: not known whose it is"
        );
        end(s, at, call, Outcome::Unknown, why);
    } else if proves_session_lost(status, code, message, x.with_session, own) {
        end(s, at, call, Outcome::Refused, format!("session lost: HTTP {status}, {said}"));
    } else if !own && x.modern && refusal::wants_initialize(status, code, message) {
        let why = format!("HTTP {status}, the server does not speak 2026-07-28 any more: {said}");
        end(s, at, call, Outcome::Refused, why);
    } else if refuses(status) {
        end(s, at, call, Outcome::Refused, format!("{}: {said}", refusal_words(status, x)));
    } else if !own && is_session_lost(status, code, message, x.with_session, own) {
        let why = format!("{PERHAPS_LOST}: HTTP {status}, {said}");
        end(s, at, call, Outcome::Unknown, why);
    } else if matches!(status, 502..=504) || (status >= 500 && !own) {
        // What a gateway says of its server, or a transport of its own failure, is not the tool's answer.
        let why = format!("HTTP {status} without the tool's own answer, which said: {said}");
        end(s, at, call, Outcome::Unknown, why);
    } else {
        answered(s, at, call, answer, frame);
    }
}

/// Whether a body under a bad status is the answer to this very request: it carries its id. An error may carry it
/// nearly (`"7"` for `7`), since it claims nothing.
pub(crate) fn is_this_answer(id: Option<&Id>, asked: Option<&Id>, answer: &Answer<'_>) -> bool {
    let (Some(id), Some(asked)) = (id, asked) else { return false };
    id == asked || (matches!(answer, Answer::Error { .. }) && id.is_near(asked))
}

/// An answer that redial can't or won't read: whatever it says, what became of the call is not known.
pub(super) fn unreadable(s: &mut Session, at: Time, exchange: u64, why: &str) {
    let Some(x) = s.exchanges.get(&exchange) else { return };
    let Some((call, status)) = x.call.map(|call| (call, x.status.unwrap_or(0))) else { return };
    if !is_receipt(s, call, status) {
        end(s, at, call, Outcome::Unknown, format!("the answer was not read: {why}"));
    }
}

/// A body that is no JSON-RPC (HTML of a proxy, plain text).
pub(super) fn plain_body(s: &mut Session, at: Time, exchange: u64, body: &Bytes) {
    let Some(x) = s.exchanges.get(&exchange).cloned() else { return };
    let Some(call) = x.call else { return };
    let status = x.status.unwrap_or(0);
    if is_receipt(s, call, status) {
        return;
    }
    let text = String::from_utf8_lossy(body);
    let shown = refusal::page_title(&text).unwrap_or_else(|| first_line(&text));
    let (outcome, why) = if proves_session_lost(status, None, &text, x.with_session, false) {
        (Outcome::Refused, format!("session lost: HTTP {status}, {shown}"))
    } else if refuses(status) {
        (Outcome::Refused, format!("{}: {shown}", refusal_words(status, &x)))
    } else if is_session_lost(status, None, &text, x.with_session, false) {
        (Outcome::Unknown, format!("{PERHAPS_LOST}: HTTP {status}, {shown}"))
    } else if refusal::is_html(&text) {
        let why = format!("HTTP {status}, not MCP: an HTML page from a proxy or login ({shown})");
        (Outcome::Unknown, why)
    } else if std::str::from_utf8(body).is_err_and(|e| e.error_len().is_some()) {
        // The tap asks for none, but a server may compress all the same.
        let why = format!("HTTP {status}, a body that is no text (compressed?): it was not read");
        (Outcome::Unknown, why)
    } else if let Some(fault) = broken(&text).first() {
        (
            Outcome::Unknown,
            format!("HTTP {status}, answered with a body that is no JSON: {}", fault.why),
        )
    } else {
        (Outcome::Unknown, format!("HTTP {status}, a body that is not JSON-RPC: {shown}"))
    };
    let why = why + &refusal::by_proxy(status, &x);
    end(s, at, call, outcome, why);
}

/// A good status, whatever stands under it, where answers come on a stream of their own.
fn is_receipt(s: &Session, call: CallId, status: u16) -> bool {
    let apart = |c: &Call| s.answers_apart.contains_key(&c.generation);
    (200..300).contains(&status) && s.calls.get(&call).is_some_and(apart)
}

/// The stream that brings a generation's answers is over: what waits for one gets none.
fn stream_over(s: &mut Session, at: Time, exchange: u64, failed: Option<&String>) {
    let mut of = s.answers_apart.iter().filter(|(_, x)| **x == exchange).map(|(g, _)| *g);
    let Some(generation) = of.next() else { return };
    let waits = |c: &&Call| c.generation == generation && c.is_pending() && c.live.task.is_none();
    let calls: Vec<CallId> = s.calls.values().filter(waits).map(|c| c.id).collect();
    let what = "the stream that brings the answers ended before this one was there";
    let why = failed.map_or_else(|| what.to_owned(), |why| format!("{what}: {why}"));
    for call in calls {
        end(s, at, call, Outcome::Unknown, why.clone());
    }
}

/// The exchange ended, properly or not.
pub(super) fn exchange_over(
    s: &mut Session,
    at: Time,
    exchange: u64,
    failed: Option<(&String, bool)>,
) {
    stream_over(s, at, exchange, failed.map(|(why, _)| why));
    let Some(x) = s.exchanges.remove(&exchange) else { return };
    let Some(call) = x.call else { return };
    // Also one that the client did not wait for.
    if x.status.is_some_and(|status| is_receipt(s, call, status)) {
        return;
    }
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
    let why = why + &refusal::by_proxy(x.status.unwrap_or(0), &x);
    end(s, at, call, outcome, why);
}
