//! What is known of a call while it waits: how far its answer got, its progress, its task.
//!
//! Facts only, folded from the journal; the words for them are in `waiting`.

use super::belongs::Disowned;
use super::refusal::short;
use super::text::Text;
use crate::json::raw::{self, Object};
use crate::time::Time;

/// Characters kept of what a server says of its progress.
const MESSAGE_CHARS: usize = 2_000;

/// The facts of a call that is (or was) waiting.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Live {
    /// Seconds until it counts as unknown, when there is a limit.
    pub limit_s: Option<f64>,
    /// Progress moves the limit.
    pub limit_extends: bool,
    /// Stdio: it waits in a full pipe, since the server does not read its stdin.
    pub unread: bool,
    /// The same, and not a byte of it is in the pipe: it stands behind another frame here.
    pub queued: bool,
    /// HTTP: when the headers of the answer came.
    pub headers_at: Option<Time>,
    /// HTTP: the answer is a stream of events.
    pub stream: bool,
    /// HTTP: bytes of the answer so far.
    pub bytes: u64,
    /// HTTP: when the last bytes came.
    pub bytes_at: Option<Time>,
    /// HTTP: when the last keep-alive came.
    pub keepalive_at: Option<Time>,
    /// Keep-alives so far.
    pub keepalives: u64,
    /// HTTP: the stream ended early; when the rest is asked for.
    pub resumes_at: Option<Time>,
    /// The newest progress.
    pub progress: Option<Progress>,
    /// The task that the server made of it.
    pub task: Option<Task>,
    /// The raw input-required result that the server waits on.
    pub wants: Option<Text>,
    /// A person or a limit asked the server to stop it, when.
    pub cancelled_at: Option<Time>,
    /// Its server ended, or closed its stdout, while it waited.
    pub lost: bool,
    /// Its result had so many bytes and was let go, to bound memory.
    pub result_let_go: Option<u64>,
    /// Something odd that may be its answer (a near id, an answer without an id), in words.
    pub remark: Option<String>,
    /// An answer came under its id that is not counted as its own; why (the newest).
    pub disowned: Option<Disowned>,
}

/// One `notifications/progress`.
#[derive(Debug, Clone, PartialEq)]
pub struct Progress {
    /// When it came.
    pub at: Time,
    /// How far, in the server's own unit.
    pub done: f64,
    /// Of how much.
    pub total: Option<f64>,
    /// The server's words.
    pub message: Option<String>,
    /// How many came so far.
    pub count: u64,
}

impl Progress {
    /// From the params of the notification.
    pub(super) fn parse(params: &str, at: Time) -> Option<Progress> {
        let number = |key: &str| raw::get(params, key)?.trim().parse::<f64>().ok();
        let done = number("progress").filter(|d| d.is_finite())?;
        let total = number("total").filter(|t| t.is_finite() && *t > 0.0);
        let message = raw::get_str(params, "message").map(|m| short(&m, MESSAGE_CHARS));
        Some(Progress { at, done, total, message, count: 1 })
    }

    /// 0 to 100, when the server said of how much.
    pub fn percent(&self) -> Option<f64> {
        self.total.map(|t| (100.0 * self.done / t).clamp(0.0, 100.0))
    }
}

/// A task as the server last described it (2025-11-25 `utilities/tasks`; SEP-2663 for 2026-07-28).
#[derive(Debug, Clone, PartialEq)]
pub struct Task {
    /// The receiver-generated id.
    pub id: String,
    /// `working`, `input_required`, `completed`, `failed`, `cancelled`, or whatever the server said.
    pub status: String,
    /// The server's words about it.
    pub message: Option<String>,
    /// How often the server wants to be asked, in milliseconds.
    pub poll_ms: Option<u64>,
    /// When it was last heard of.
    pub at: Time,
}

impl Task {
    /// From a raw object that has at least a `taskId`.
    pub fn parse(object: &str, at: Time) -> Option<Task> {
        let number = |key: &str| raw::get(object, key)?.trim().parse::<f64>().ok();
        let poll = number("pollIntervalMs").or_else(|| number("pollInterval"));
        Some(Task {
            id: raw::get_str(object, "taskId")?,
            status: raw::get_str(object, "status").unwrap_or_else(|| "working".into()),
            message: raw::get_str(object, "statusMessage")
                .filter(|m| !m.is_empty())
                .map(|m| short(&m, MESSAGE_CHARS)),
            poll_ms: poll.filter(|p| p.is_finite() && *p >= 0.0).map(|p| p as u64),
            at,
        })
    }

    /// From the answer to a `tools/call`: `{task: {…}}` (2025-11-25) or, unless that is all there is (`legacy`),
    /// `{resultType: "task", taskId, …}`.
    pub fn of_answer(result: &str, at: Time, legacy: bool) -> Option<Task> {
        Task::of_result(result, &Object::read(result), at, legacy)
    }

    /// The same of a result whose members are read already.
    pub(super) fn of_result(
        text: &str,
        result: &Object<'_>,
        at: Time,
        legacy: bool,
    ) -> Option<Task> {
        if !legacy && result.get_str("resultType").as_deref() == Some("task") {
            return Task::parse(text, at).or_else(|| Task::parse(result.get("task")?, at));
        }
        // A plain result may well have a member named task: only without content is it a CreateTaskResult.
        let task = result.get("task").filter(|t| raw::is_object(t))?;
        result.get("content").is_none().then(|| Task::parse(task, at))?
    }

    /// The server will say nothing new about it.
    pub fn is_over(&self) -> bool {
        matches!(self.status.as_str(), "completed" | "failed" | "cancelled")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_forms_of_a_task_are_read_and_a_plain_result_is_none() {
        let legacy =
            r#"{"task":{"taskId":"t-1","status":"working","ttl":60000,"pollInterval":500}}"#;
        let modern =
            r#"{"resultType":"task","taskId":"t-1","status":"working","pollIntervalMs":500}"#;
        for text in [legacy, modern] {
            let t = Task::of_answer(text, Time(0), false).unwrap();
            assert_eq!((t.id.as_str(), t.poll_ms, t.is_over()), ("t-1", Some(500), false));
        }
        assert!(Task::of_answer(legacy, Time(0), true).is_some());
        for (none, legacy) in [
            (modern, true),
            (r#"{"content":[],"task":{"taskId":"x"}}"#, false),
            (r#"{"content":[]}"#, false),
        ] {
            assert_eq!(Task::of_answer(none, Time(0), legacy), None, "{none}");
        }
    }

    #[test]
    fn progress_without_a_number_is_none_and_percent_stays_in_bounds() {
        let p = |t: &str| Progress::parse(t, Time(0));
        assert!(p(r#"{"progressToken":1}"#).is_none() && p(r#"{"progress":"x"}"#).is_none());
        assert_eq!(p(r#"{"progress":2,"total":5}"#).unwrap().percent(), Some(40.0));
        assert_eq!(p(r#"{"progress":9,"total":5}"#).unwrap().percent(), Some(100.0));
        assert_eq!(p(r#"{"progress":9,"total":0}"#).unwrap().percent(), None);
    }
}
