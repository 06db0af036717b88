//! One `tools/call` on the wire and what became of it (design: "Words", outcome and answer status).

use super::live::{Live, Task};
use super::text::Text;
use crate::json::raw::{self, Object};
use crate::time::Time;
use crate::wire::id::Id;

/// Names a call: the sequence number of the event that sent it.
pub type CallId = u64;

/// What became of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Outcome {
    /// Answered with a result that is no tool error.
    Ok,
    /// Answered with `isError: true`.
    ToolError,
    /// Answered with a JSON-RPC error.
    RpcError,
    /// Provably never left.
    NotSent,
    /// This very POST was answered by a status that says it will not be handled.
    Refused,
    /// Accepted or sent, and no answer.
    Unknown,
}

impl Outcome {
    /// The stable word (JSON and plain output).
    pub fn word(self) -> &'static str {
        match self {
            Outcome::Ok => "ok",
            Outcome::ToolError => "tool_error",
            Outcome::RpcError => "rpc_error",
            Outcome::NotSent => "not_sent",
            Outcome::Refused => "refused",
            Outcome::Unknown => "unknown",
        }
    }
}

/// What an `ok` answer says of the *request*.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum AnswerStatus {
    /// Finished.
    Done,
    /// The server gave up waiting; the work is not finished.
    InProgress,
    /// The answer does not say that it is finished.
    Unknown,
}

impl AnswerStatus {
    /// The stable word.
    pub fn word(self) -> &'static str {
        match self {
            AnswerStatus::Done => "done",
            AnswerStatus::InProgress => "in_progress",
            AnswerStatus::Unknown => "unknown",
        }
    }
}

/// How a call ended.
#[derive(Debug, Clone, PartialEq)]
pub struct Settled {
    /// When.
    pub at: Time,
    /// What.
    pub outcome: Outcome,
    /// The true reason, in words.
    pub why: String,
    /// The answer came after the call had been given up.
    pub late: bool,
    /// For `ok` only.
    pub answer_status: Option<AnswerStatus>,
    /// The raw result, as received; shares the bytes of its frame.
    pub result: Option<Text>,
    /// The raw JSON-RPC error object, as received.
    pub error: Option<String>,
}

impl Settled {
    /// An answer settled it, and not what did not come.
    pub(super) fn answered(&self) -> bool {
        self.result.is_some() || self.error.is_some()
    }
}

/// One `tools/call` (a request can have several).
#[derive(Debug, Clone, PartialEq)]
pub struct Call {
    /// The sequence number of its sending event.
    pub id: CallId,
    /// The generation it was sent on.
    pub generation: u32,
    /// Its JSON-RPC id.
    pub rpc_id: Id,
    /// The tool's name.
    pub tool: String,
    /// The raw arguments, as sent.
    pub args: Option<String>,
    /// The idempotency key found in the arguments.
    pub request_id: Option<String>,
    /// Its tool said then, on the connection it was sent on, that it only reads.
    pub reads_only: bool,
    /// It was sent under a revision before 2026-07-28, which knows neither rounds nor `resultType`.
    pub legacy: bool,
    /// When it was sent (or was to be).
    pub sent_at: Time,
    /// How many times this very `tools/call` left: 0 or 1, and once more for each same-origin redirect;
    /// input-required rounds count on their own.
    pub sent: u32,
    /// Rounds of an input-required exchange, 1 for a plain call.
    pub rounds: u32,
    /// The HTTP exchange it travelled on (its newest round).
    pub exchange: Option<u64>,
    /// Accepted by a 2xx status of its POST (HTTP), with the answer still to come.
    pub accepted: bool,
    /// How it ended; `None` while pending.
    pub settled: Option<Settled>,
    /// Further answers to the same id after it was settled by an answer.
    pub extra_answers: u32,
    /// What is known of it while it waits.
    pub live: Live,
}

impl Call {
    /// Still waiting for an answer.
    pub fn is_pending(&self) -> bool {
        self.settled.is_none()
    }
    /// Its server ended, or closed its stdout, while it waited, and no answer came after that.
    pub fn is_lost(&self) -> bool {
        self.live.lost && self.outcome() == Some(Outcome::Unknown)
    }
    /// The outcome, when settled.
    pub fn outcome(&self) -> Option<Outcome> {
        self.settled.as_ref().map(|s| s.outcome)
    }
    /// The word for lists: the outcome, or `pending`.
    pub fn word(&self) -> &'static str {
        self.outcome().map_or("pending", Outcome::word)
    }
}

/// The object that a tool's result carries: `structuredContent`, else a JSON object in the first text
/// content (the Python SDK 1.x answers `dict`-returning tools as JSON text only). FastMCP 2 wraps some
/// results as `{"result": …}`; that wrapper is looked through.
pub fn answer_object(result: &str) -> Option<String> {
    object_in(&Object::read(result))
}

/// The same of a result whose members are read already.
fn object_in(result: &Object<'_>) -> Option<String> {
    let structured = result.get("structuredContent").filter(|s| raw::is_object(s));
    let unwrap = |text: &str| -> String {
        match raw::members(text) {
            Some(m) if m.len() == 1 && m[0].0 == "result" && raw::is_object(m[0].1) => {
                m[0].1.to_owned()
            }
            _ => text.to_owned(),
        }
    };
    if let Some(s) = structured {
        return Some(unwrap(s));
    }
    let content = raw::items(result.get("content")?)?;
    content.iter().find_map(|item| {
        let text = raw::get(item, "text").filter(|t| may_hold_object(t))?;
        let text = raw::as_str(text)?;
        (raw::is_object(&text) && raw::members(&text).is_some()).then(|| unwrap(&text))
    })
}

/// Whether a JSON string can begin with an object: a look at its head saves decoding megabytes of prose.
fn may_hold_object(string: &str) -> bool {
    let head = string.trim_start().trim_start_matches('"').trim_start();
    head.starts_with(['{', '\\'])
}

/// The plain text of a result's content, for people.
pub fn answer_text(result: &str) -> String {
    let Some(content) = raw::get(result, "content").and_then(raw::items) else {
        return String::new();
    };
    let texts: Vec<String> = content.iter().filter_map(|i| raw::get_str(i, "text")).collect();
    texts.join("\n")
}

/// A result without content of any kind: no text, no other item, no structured object (field log, row 47).
pub fn is_wordless(result: &str) -> bool {
    let items = raw::get(result, "content").and_then(raw::items).unwrap_or_default();
    let blank = |item: &str| raw::get_str(item, "text").is_some_and(|t| t.trim().is_empty());
    let structured = raw::get(result, "structuredContent").is_some_and(|s| !raw::is_null(s));
    items.iter().all(|i| blank(i)) && !structured
}

/// What an `ok` result says of the request. A status word decides; an answer that only says when to come
/// back is not success (field log, rows 29 and 98), and one that is no CallToolResult says nothing. `legacy`: it
/// answers a call of a revision before 2026-07-28, where `resultType` is a member like any other.
pub fn answer_status(result: &str, legacy: bool) -> AnswerStatus {
    status_in(result, &Object::read(result), legacy)
}

/// The same of a result whose members are read already.
pub(super) fn status_in(text: &str, result: &Object<'_>, legacy: bool) -> AnswerStatus {
    if Task::of_result(text, result, Time(0), legacy).is_some() {
        return AnswerStatus::InProgress;
    }
    match result.get_str("resultType").as_deref() {
        _ if legacy => {}
        None | Some("complete") => {}
        Some("input_required" | "task") => return AnswerStatus::InProgress,
        Some(_) => return AnswerStatus::Unknown,
    }
    let has_content = result.get("content").is_some_and(|c| c.trim_start().starts_with('['));
    let structured = result.get("structuredContent").is_some_and(|s| !raw::is_null(s));
    if !has_content && !structured {
        return AnswerStatus::Unknown;
    }
    let Some(object) = object_in(result) else { return AnswerStatus::Done };
    let status = raw::get_str(&object, "status");
    let status = status.map(|s| s.trim().to_ascii_lowercase().replace(['-', ' '], "_"));
    match status.as_deref() {
        Some(
            "in_progress" | "inprogress" | "running" | "pending" | "processing" | "working"
            | "queued" | "started" | "waiting" | "accepted" | "submitted" | "scheduled"
            | "retrying" | "input_required",
        ) => AnswerStatus::InProgress,
        // An end without the work, or none at all: nothing here says that it is done.
        Some(
            "unknown" | "abandoned" | "outcome_unknown" | "failed" | "failure" | "error"
            | "expired" | "cancelled" | "canceled" | "aborted" | "rejected" | "timeout"
            | "timed_out",
        ) => AnswerStatus::Unknown,
        // Any other word may be that of the thing made (a ticket that is "open").
        Some(_) => AnswerStatus::Done,
        None => {
            let members = raw::members(&object).unwrap_or_default();
            let only_waits = !members.is_empty()
                && members.iter().all(|(k, _)| {
                    matches!(
                        k.as_ref(),
                        "retryAfterMs" | "retry_after_ms" | "retryAfter" | "retry_after"
                    )
                });
            if only_waits { AnswerStatus::InProgress } else { AnswerStatus::Done }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn status_is_read_from_structured_and_from_text() {
        let text =
            |t: &str| format!(r#"{{"content":[{{"type":"text","text":{}}}]}}"#, raw::quote(t));
        let cases = [
            (text(r#"{"request_id":"r","status":"in_progress"}"#), AnswerStatus::InProgress),
            (text(r#"{"ticket_id":"T-1","replayed":false}"#), AnswerStatus::Done),
            (text("charged 100.0"), AnswerStatus::Done),
            (text(r#"{"retryAfterMs":500}"#), AnswerStatus::InProgress),
            (
                r#"{"structuredContent":{"result":{"status":"in_progress"}},"content":[]}"#.into(),
                AnswerStatus::InProgress,
            ),
            (
                r#"{"resultType":"input_required","inputRequests":{}}"#.into(),
                AnswerStatus::InProgress,
            ),
            (r#"{"resultType":"surprise"}"#.into(), AnswerStatus::Unknown),
            ("{}".into(), AnswerStatus::Unknown),
            (r#"{"toolResult":"done"}"#.into(), AnswerStatus::Unknown),
            (r#"{"content":"done"}"#.into(), AnswerStatus::Unknown),
            (r#"{"structuredContent":{"ticket_id":"T-1"}}"#.into(), AnswerStatus::Done),
            (r#"{"resultType":"complete","content":[]}"#.into(), AnswerStatus::Done),
            (r#"{"task":{"taskId":"t-1","status":"working"}}"#.into(), AnswerStatus::InProgress),
            (text(r#"{"status":"unknown"}"#), AnswerStatus::Unknown),
            (text(r#"{"status":"In-Progress"}"#), AnswerStatus::InProgress),
            (text(r#"{"status":"waiting"}"#), AnswerStatus::InProgress),
            (text(r#"{"status":"accepted"}"#), AnswerStatus::InProgress),
            (text(r#"{"status":"failed"}"#), AnswerStatus::Unknown),
            (text(r#"{"status":"expired"}"#), AnswerStatus::Unknown),
            (text(r#"{"status":"cancelled"}"#), AnswerStatus::Unknown),
            (text(r#"{"status":"open"}"#), AnswerStatus::Done),
        ];
        for (result, want) in cases {
            assert_eq!(answer_status(&result, false), want, "{result}");
        }
        // Before 2026-07-28 nobody has given the member a meaning.
        for word in ["input_required", "task", "surprise"] {
            let r = format!(r#"{{"resultType":"{word}","taskId":"t","content":[]}}"#);
            assert_eq!(answer_status(&r, true), AnswerStatus::Done, "{word}");
        }
    }
}
