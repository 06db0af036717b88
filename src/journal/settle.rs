//! The rules that settle a call: from what came (or didn't) to an outcome and its true reason.
//!
//! A wrong `ok` or `failed` is the worst bug there is: whatever is not proven here stays `unknown`.
//! An answer always beats an earlier `unknown`, and is then marked late.

use super::call::{AnswerStatus, CallId, Outcome, Settled, answer_status, answer_text};
use super::event::Event;
use super::fold::{Exchange, Session};
use crate::json::raw;
use crate::time::Time;
use crate::wire::frame::Answer;
use crate::wire::id::Id;
use bytes::Bytes;

/// The answer to a call has come.
pub(super) fn answered(s: &mut Session, at: Time, call: CallId, answer: &Answer<'_>) {
    let (outcome, why, status, result, error) = match answer {
        Answer::Result(r) if raw::get(r, "isError").and_then(raw::as_bool) == Some(true) => {
            let text = answer_text(r);
            let why = if text.trim().is_empty() {
                "the tool answered with an error without a word; a bridge may have lost its server"
                    .into()
            } else {
                format!("the tool answered with an error: {}", first_line(&text))
            };
            (Outcome::ToolError, why, None, Some((*r).to_owned()), None)
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
            (Outcome::Ok, why.into(), Some(status), Some((*r).to_owned()), None)
        }
        Answer::Error { raw, code, message } => {
            let code = code.map_or("without a code".into(), |c| c.to_string());
            let why =
                format!("the server answered with JSON-RPC error {code}: {}", first_line(message));
            (Outcome::RpcError, why, None, None, Some((*raw).to_owned()))
        }
    };
    let Some(c) = s.calls.get_mut(&call) else { return };
    let late = match &c.settled {
        None => false,
        Some(old) if old.outcome == Outcome::Unknown => true,
        Some(_) => {
            c.extra_answers += 1;
            s.note(at, "a second answer to a call that was already answered".into());
            return;
        }
    };
    let why = if late { format!("{why} (late: it had been given up)") } else { why };
    c.settled = Some(Settled { at, outcome, why, late, answer_status: status, result, error });
}

/// Settles a pending call; leaves a settled one alone.
fn end(s: &mut Session, at: Time, call: CallId, outcome: Outcome, why: String) {
    if let Some(c) = s.calls.get_mut(&call)
        && c.settled.is_none()
    {
        if outcome == Outcome::NotSent {
            c.sent = 0;
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

/// A limit passed or a person gave up.
pub(super) fn given_up(s: &mut Session, at: Time, call: CallId, why: &str) {
    end(s, at, call, Outcome::Unknown, why.to_owned());
}

/// The child ended or closed its stdout: nothing more can come on this generation.
pub(super) fn generation_over(s: &mut Session, event: &Event, why: &str) {
    let open: Vec<CallId> = s
        .calls
        .values()
        .filter(|c| c.generation == event.generation && c.is_pending() && c.exchange.is_none())
        .map(|c| c.id)
        .collect();
    for call in open {
        end(s, event.at, call, Outcome::Unknown, why.to_owned());
    }
}

/// An answer that is no legal answer. It may be the work's own, so the outcome is not known from it.
pub(super) fn malformed(
    s: &mut Session,
    event: &Event,
    id: Option<Id>,
    exchange: Option<u64>,
    why: &str,
) {
    let by_exchange = exchange.and_then(|x| s.exchanges.get(&x)).and_then(|x| x.call);
    let call = by_exchange.or_else(|| {
        let id = id?;
        s.calls.values().find(|c| c.generation == event.generation && c.rpc_id == id).map(|c| c.id)
    });
    match call {
        Some(call) => {
            end(s, event.at, call, Outcome::Unknown, format!("the answer is malformed: {why}"))
        }
        None => s.note(event.at, format!("a malformed message: {why}")),
    }
}

/// A JSON-RPC body under a status that is not 2xx.
pub(super) fn refusing_body(
    s: &mut Session,
    at: Time,
    call: CallId,
    x: &Exchange,
    answer: &Answer<'_>,
) {
    let status = x.status.unwrap_or(0);
    let message = match answer {
        Answer::Error { message, .. } => message.clone(),
        Answer::Result(_) => String::new(),
    };
    let code = match answer {
        Answer::Error { code, .. } => *code,
        Answer::Result(_) => None,
    };
    if is_session_lost(status, code, &message, x.with_session) {
        let why = format!("session lost: HTTP {status}, {}", first_line(&message));
        end(s, at, call, Outcome::Refused, why);
    } else if refuses(status) {
        let why = format!("{}: {}", refusal_words(status, x), first_line(&message));
        end(s, at, call, Outcome::Refused, why);
    } else {
        answered(s, at, call, answer);
    }
}

/// A body that is no JSON-RPC (HTML of a proxy, plain text).
pub(super) fn plain_body(s: &mut Session, at: Time, exchange: u64, body: &Bytes) {
    let Some(x) = s.exchanges.get(&exchange).cloned() else { return };
    let Some(call) = x.call else { return };
    let status = x.status.unwrap_or(0);
    let text = String::from_utf8_lossy(body);
    let shown = page_title(&text).unwrap_or_else(|| first_line(&text));
    if is_session_lost(status, None, &text, x.with_session) {
        end(s, at, call, Outcome::Refused, format!("session lost: HTTP {status}, {shown}"));
    } else if refuses(status) {
        end(s, at, call, Outcome::Refused, format!("{}: {shown}", refusal_words(status, &x)));
    } else if is_html(&text) {
        end(
            s,
            at,
            call,
            Outcome::Unknown,
            format!("HTTP {status}, not MCP: an HTML page from a proxy or login ({shown})"),
        );
    } else {
        end(
            s,
            at,
            call,
            Outcome::Unknown,
            format!("HTTP {status}, a body that is not JSON-RPC: {shown}"),
        );
    }
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
    let (outcome, why) = match (failed, x.status) {
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
            (Outcome::Unknown, "the server ended its answer without answering this call".into())
        }
        (None, Some(status)) => (Outcome::Unknown, format!("HTTP {status} without an answer")),
        (None, None) => (Outcome::Unknown, "the exchange ended without a status".into()),
    };
    end(s, at, call, outcome, why);
}

/// Statuses that say that this very POST was not handled (design: `refused`).
pub fn refuses(status: u16) -> bool {
    matches!(status, 401 | 403 | 413 | 429)
}

fn refusal_words(status: u16, x: &Exchange) -> String {
    let mut words = match status {
        401 => "HTTP 401: the server wants other credentials".to_owned(),
        403 => "HTTP 403: the server does not allow this".to_owned(),
        413 => "HTTP 413: the request is too large for the server".to_owned(),
        429 => "HTTP 429: too many requests, the server did not take this one".to_owned(),
        _ => format!("HTTP {status}"),
    };
    if let Some(w) = &x.www_authenticate {
        words.push_str(&format!(" ({w})"));
    }
    words
}

/// Whether an HTTP answer says that the session is gone (protocol.md, section 9). A 404 with -32601 is an
/// unknown method; a 400 about the protocol version is not a lost session.
pub fn is_session_lost(status: u16, code: Option<i64>, text: &str, session_sent: bool) -> bool {
    let text = text.to_ascii_lowercase();
    let says_session = text.contains("session") && !text.contains("protocol version");
    match status {
        404 if code == Some(-32601) => false,
        404 => session_sent || says_session,
        400 | 401 | 500 => session_sent && says_session,
        _ => false,
    }
}

fn is_html(text: &str) -> bool {
    let t = text.trim_start().to_ascii_lowercase();
    t.starts_with("<!doctype html") || t.starts_with("<html")
}

/// The title of an HTML page; nothing else of a proxy's page is worth a line.
fn page_title(text: &str) -> Option<String> {
    if !is_html(text) {
        return None;
    }
    let lower = text.to_ascii_lowercase();
    let start = lower.find("<title>")? + 7;
    let end = start + lower.get(start..)?.find("</title>")?;
    text.get(start..end).map(|t| t.trim().to_owned())
}

/// The first line that holds something, at most 300 characters of it.
pub fn first_line(text: &str) -> String {
    let line = text.lines().map(str::trim).find(|l| !l.is_empty()).unwrap_or("");
    if line.chars().count() > 300 {
        line.chars().take(300).collect::<String>() + "…"
    } else {
        line.to_owned()
    }
}
