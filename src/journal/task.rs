//! The part of the fold that follows tasks: their status while a call waits, and how their end settles it.
//!
//! 2025-11-25: `tasks/get` tells the status, `tasks/result` gives what the call would have given.
//! 2026-07-28 (SEP-2663): `tasks/get` carries the final `result` or `error` itself.

use super::call::{AnswerStatus, CallId, Outcome};
use super::fold::Session;
use super::live::Task;
use super::{refusal, settle};
use crate::json::raw;
use crate::time::Time;
use crate::wire::frame::Answer;
use bytes::Bytes;

/// A notification told a task's status.
pub(super) fn told(s: &mut Session, at: Time, params: &str) {
    let Some(task) = Task::parse(params, at) else { return };
    let is_its = |t: &Task| t.id == task.id;
    if let Some(c) = s.calls.values_mut().rev().find(|c| c.live.task.as_ref().is_some_and(is_its)) {
        keep(&mut c.live.task, task);
    }
}

/// The server answered `tasks/get` or, with `ends`, `tasks/result`.
pub(super) fn answered(
    s: &mut Session,
    at: Time,
    call: CallId,
    ends: bool,
    answer: &Answer<'_>,
    frame: &Bytes,
) {
    match answer {
        Answer::Result(r) if ends => {
            let related = ["_meta", "io.modelcontextprotocol/related-task", "taskId"];
            let id = raw::get_path(r, &related).and_then(raw::as_str);
            if id.is_none_or(|id| is_its(s, at, call, &id)) {
                let over = is_completed(s, call);
                settle::answered(s, at, call, answer, frame);
                completed(s, call, over);
            }
        }
        Answer::Error { code, message, .. } if ends => {
            no_result(s, at, call, *code, message, answer, frame);
        }
        Answer::Result(r) => looked_at(s, at, call, r, frame),
        // The task is gone; any other error says nothing of it, and it is asked for again.
        Answer::Error { code: Some(code @ (-32602 | -32601)), message, .. } => {
            let why = format!(
                "the server does not know its task {} any more ({code}): {}",
                id_of(s, call),
                refusal::first_line(message)
            );
            settle::end(s, at, call, Outcome::Unknown, why);
        }
        Answer::Error { message, .. } => {
            let id = id_of(s, call);
            s.note(at, format!("task {id}: {}", refusal::first_line(message)));
        }
    }
}

/// `tasks/result` was answered with an error. Of a task that failed that is the call's own; of any other it only
/// says that the result can't be had, whatever the work came to.
fn no_result(
    s: &mut Session,
    at: Time,
    call: CallId,
    code: Option<i64>,
    message: &str,
    answer: &Answer<'_>,
    frame: &Bytes,
) {
    let task = s.calls.get(&call).and_then(|c| c.live.task.as_ref());
    let (id, status) = task.map(|t| (t.id.clone(), t.status.clone())).unwrap_or_default();
    let about_the_task = matches!(code, Some(-32602 | -32601))
        && (message.to_ascii_lowercase().contains("task") || message.contains(&id));
    if status == "failed" && !about_the_task {
        return settle::answered(s, at, call, answer, frame);
    }
    let number = code.map_or("without a code".into(), |c| c.to_string());
    let said = refusal::first_line(message);
    let why = format!(
        "the server said that its task {id} is {status}, and its result can't be had (error {number}: {said})"
    );
    settle::end(s, at, call, Outcome::Unknown, why);
}

/// Whether `id` names the task that the server made of the call; an answer about another one settles nothing.
fn is_its(s: &mut Session, at: Time, call: CallId, id: &str) -> bool {
    let Some(c) = s.calls.get_mut(&call) else { return false };
    let Some(own) = c.live.task.as_ref().filter(|t| t.id != id) else { return true };
    let text = format!(
        "asked for its task {}, the server told of the task {}, which says nothing of this call",
        refusal::short(&own.id, 64),
        refusal::short(id, 64)
    );
    c.live.remark = Some(text.clone());
    s.note(at, text);
    false
}

/// `completed` is the task's own word for done, where its result says nothing else.
fn completed(s: &mut Session, call: CallId, over: bool) {
    let settled = s.calls.get_mut(&call).and_then(|c| c.settled.as_mut()).filter(|_| over);
    if let Some(settled) = settled.filter(|s| s.answer_status == Some(AnswerStatus::Unsaid)) {
        settled.answer_status = Some(AnswerStatus::Done);
        settled.why = settled.why.replacen(settle::UNSAID, settle::DONE, 1);
    }
}

fn is_completed(s: &Session, call: CallId) -> bool {
    let task = s.calls.get(&call).and_then(|c| c.live.task.as_ref());
    task.is_some_and(|t| t.status == "completed")
}

fn looked_at(s: &mut Session, at: Time, call: CallId, result: &str, frame: &Bytes) {
    // SEP-2663 puts the task's members flat; a server that nests them is understood too.
    let parsed = Task::parse(result, at).or_else(|| Task::parse(raw::get(result, "task")?, at));
    let Some(task) = parsed else { return };
    if !is_its(s, at, call, &task.id) {
        return;
    }
    let Some(c) = s.calls.get_mut(&call) else { return };
    let (id, status, over) = (task.id.clone(), task.status.clone(), task.is_over());
    let said = task.message.clone().map(|m| format!(": {}", refusal::first_line(&m)));
    let said = said.unwrap_or_default();
    keep(&mut c.live.task, task);
    if !over {
        return;
    }
    if let Some(r) = raw::get(result, "result").filter(|r| raw::is_object(r)) {
        settle::answered(s, at, call, &Answer::Result(r), frame);
        return completed(s, call, status == "completed");
    }
    if let Some(e) = raw::get(result, "error").filter(|e| raw::is_object(e)) {
        return settle::answered(s, at, call, &Answer::error(e), frame);
    }
    let modern = s.protocol.as_deref() == Some("2026-07-28");
    match status.as_str() {
        "cancelled" => {
            let why = format!("the server says that its task {id} was cancelled{said}");
            settle::end(s, at, call, Outcome::Unknown, why);
        }
        _ if modern => {
            let why = format!(
                "the server says that its task {id} is {status}, and gives no result{said}"
            );
            settle::end(s, at, call, Outcome::Unknown, why);
        }
        // 2025-11-25: what it gave is asked for with tasks/result.
        _ => {}
    }
}

/// Takes the newer word; an interval that was given once stays in force.
fn keep(old: &mut Option<Task>, new: Task) {
    let poll_ms = new.poll_ms.or(old.as_ref().and_then(|t| t.poll_ms));
    *old = Some(Task { poll_ms, ..new });
}

fn id_of(s: &Session, call: CallId) -> String {
    let task = s.calls.get(&call).and_then(|c| c.live.task.as_ref());
    task.map(|t| t.id.clone()).unwrap_or_default()
}
