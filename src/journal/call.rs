//! One `tools/call` on the wire and what became of it (design: "Words", outcome and answer status).

use super::live::Live;
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
    /// It answered, and says nothing of it.
    Unsaid,
    /// Something in the answer speaks against it, or it is no answer of a tool.
    Unknown,
}

impl AnswerStatus {
    /// The stable word.
    pub fn word(self) -> &'static str {
        match self {
            AnswerStatus::Done => "done",
            AnswerStatus::InProgress => "in_progress",
            AnswerStatus::Unsaid | AnswerStatus::Unknown => "unknown",
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
    if let Some(s) = structured {
        return Some(unwrapped(s));
    }
    let content = raw::items(result.get("content")?)?;
    content.iter().find_map(|item| {
        let text = raw::get(item, "text").filter(|t| may_hold_object(t))?;
        let text = raw::as_str(text)?;
        (raw::is_object(&text) && raw::members(&text).is_some()).then(|| unwrapped(&text))
    })
}

/// The object inside the one wrapper that is looked through.
pub(super) fn unwrapped(text: &str) -> String {
    match raw::members(text) {
        Some(m) if m.len() == 1 && m[0].0 == "result" && raw::is_object(m[0].1) => {
            m[0].1.to_owned()
        }
        _ => text.to_owned(),
    }
}

/// The longest prose that is looked at for a word.
const PROSE: usize = 64;

/// The texts of a result that may say something of the request: those that may be an object, and short ones.
pub(super) fn answer_texts(result: &Object<'_>) -> Vec<String> {
    let items = result.get("content").and_then(raw::items).unwrap_or_default();
    let texts = items.into_iter().filter_map(|item| {
        let text = raw::get(item, "text").filter(|t| may_hold_object(t) || t.len() <= PROSE)?;
        raw::as_str(text)
    });
    texts.collect()
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

/// The structured part of a result, where its texts don't say the same.
pub fn structured_beside(result: &str) -> Option<&str> {
    let structured = raw::get(result, "structuredContent").filter(|s| !raw::is_null(s))?;
    let text = answer_text(result);
    let bare = |t: &str| t.chars().filter(|c| !c.is_whitespace()).collect::<String>();
    // Some frameworks wrap what a tool gave as text.
    let wrapped = raw::members(structured)
        .filter(|m| m.len() == 1)
        .and_then(|m| raw::as_str(m[0].1).or_else(|| Some(m[0].1.to_owned())));
    let same = text.contains(structured)
        || bare(&text) == bare(structured)
        || wrapped.is_some_and(|w| bare(&w) == bare(&text));
    (!same).then_some(structured)
}

/// Everything that a result says, for people: its texts, then its structured part where that says something else.
pub fn answer_shown(result: &str) -> String {
    let text = answer_text(result);
    let structured = structured_beside(result);
    let parts = [Some(text.as_str()).filter(|t| !t.is_empty()), structured];
    parts.into_iter().flatten().collect::<Vec<_>>().join("\n")
}

/// A result without content of any kind: no text, no other item, no structured object.
pub fn is_wordless(result: &str) -> bool {
    let items = raw::get(result, "content").and_then(raw::items).unwrap_or_default();
    let blank = |item: &str| raw::get_str(item, "text").is_some_and(|t| t.trim().is_empty());
    let structured = raw::get(result, "structuredContent").is_some_and(|s| !raw::is_null(s));
    items.iter().all(|i| blank(i)) && !structured
}
