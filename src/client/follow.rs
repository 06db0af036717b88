//! What a request brings with it after its first answer: input-required rounds (26/basic/patterns/mrtr) and
//! tasks (2025-11-25 `utilities/tasks`; SEP-2663). Only ever continues what was asked for; a `tools/call` that
//! got no such answer is never sent again from here.

use super::NoResult;
use super::calls::{Round, Stopped};
use super::conn::{Ask, Conn, Reply};
use super::driver::LinkEvent;
use super::modern::Header;
use super::offer::Offer;
use crate::journal::event::{Note, Purpose};
use crate::journal::{Call, CallId, Journal, Kind, LinkState, Outcome, Task};
use crate::json::raw;
use crate::time::Time;
use crate::wire::frame::{Answer, Frame};
use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{oneshot, watch};

/// How many rounds one request may take.
const ROUNDS: u32 = 12;
/// The pause before a round that asks for nothing; each doubles it.
const PACE: Duration = Duration::from_millis(200);
/// The shortest pause between two looks at a task, whatever the server says.
const LEAST: Duration = Duration::from_millis(100);
/// How often a task is looked at when the server doesn't say.
const POLL: Duration = Duration::from_secs(1);
/// The longest wait between looks that failed; each failure doubles it.
const SELDOM: Duration = Duration::from_secs(30);
/// Looks in a row that the server refused with a 4xx status, after which nobody looks any more.
const REFUSED: u32 = 6;

/// The connection in use; `None` while there is none. Closed when the endpoint is.
pub(super) type Live = watch::Receiver<Option<Arc<Conn>>>;

/// A `tools/call` that was just sent.
pub(super) struct Sent {
    pub call: CallId,
    pub reply: oneshot::Receiver<Reply>,
    /// As a person gave them, without `_meta`.
    pub params: String,
    pub headers: Vec<Header>,
}

/// Follows a call until it is settled by something that has no sequel.
pub(super) async fn call(conn: Arc<Conn>, sent: Sent, live: Live) {
    let Sent { call, mut reply, params, headers } = sent;
    let mut pace = PACE;
    for round in 1..=ROUNDS {
        let reply_now = reply.await;
        if refuses_headers(&reply_now) {
            // It did not run (the headers are checked first), and is not sent again: whoever asked decides. But
            // the list that the headers were made from is read again.
            conn.doubt_tools();
        }
        let Some(result) = reply_now.as_ref().ok().and_then(result_in) else { return };
        if Task::of_answer(&result, Time::now(), !conn.is_modern()).is_some() {
            return task(conn.journal.clone(), call, live).await;
        }
        if !wants_a_round(&conn, &result) {
            return;
        }
        let leave = |why: &str| {
            let note = Note::LeftOpen { call, why: why.to_owned() };
            conn.log(Kind::Note(note));
        };
        let next = match next_round(&conn.offer, &params, &result, Some(call)).await {
            Ok(next) => next,
            Err(why) => return leave(&why),
        };
        if round == ROUNDS {
            return leave(&format!("it asked {ROUNDS} times, which is enough"));
        }
        if raw::get(&result, "inputRequests").is_none() {
            // Nobody was asked anything, so nothing else keeps the rounds apart.
            tokio::time::sleep(pace).await;
            pace = (pace * 2).min(SELDOM);
        }
        let (sent, answer) = oneshot::channel();
        let next = Round { conn: conn.clone(), call, params: next, headers: headers.clone(), sent };
        conn.events.send(LinkEvent::Round(Box::new(next))).ok();
        // While a person thought about it, the call may have been given up, or the connection gone.
        reply = match answer.await {
            Ok(Ok(reply)) => reply,
            Ok(Err(Stopped::GivenUp)) => return,
            Ok(Err(Stopped::Gone)) | Err(_) => {
                return leave("the connection went before it was answered");
            }
        };
    }
}

/// Sends any other request that a person asked for, and its rounds.
///
/// # Errors
/// The reply that was no result.
pub(super) async fn request(
    conn: &Arc<Conn>,
    method: &str,
    params: &str,
) -> Result<String, Option<Reply>> {
    let mut next = params.to_owned();
    let mut pace = PACE;
    for _ in 0..ROUNDS {
        let (_, reply) = conn.ask(Ask::new(method, Some(&next), Purpose::Asked));
        let reply = reply.await;
        let Some(result) = reply.as_ref().ok().and_then(result_in) else {
            return Err(reply.ok());
        };
        let again = matches!(method, "prompts/get" | "resources/read");
        if !again || !wants_a_round(conn, &result) {
            return Ok(result);
        }
        match next_round(&conn.offer, params, &result, None).await {
            Ok(p) => next = p,
            Err(_) => return Ok(result),
        }
        if raw::get(&result, "inputRequests").is_none() {
            tokio::time::sleep(pace).await;
            pace = (pace * 2).min(SELDOM);
        }
    }
    Err(None)
}

/// Whether a result asks for another round. Older revisions have none: there the member is one like any other.
fn wants_a_round(conn: &Conn, result: &str) -> bool {
    conn.is_modern() && raw::get_str(result, "resultType").as_deref() == Some("input_required")
}

/// A reply that is no result, as it came.
pub(super) fn no_result(reply: &Reply) -> NoResult {
    let body = match reply {
        Reply::Frame(raw) => Some(raw),
        Reply::Status { body, .. } => Some(body),
        Reply::Gone { .. } | Reply::Over(_) => None,
    };
    let text = body.map(|b| String::from_utf8_lossy(b));
    let error = text.and_then(|t| match Frame::parse(&t) {
        Frame::Response { answer: Answer::Error { raw, .. }, .. } => Some(raw.to_owned()),
        _ => None,
    });
    NoResult { words: words(reply), answered: body.is_some(), error }
}

/// A reply that is no result, in words.
pub(super) fn words(reply: &Reply) -> String {
    match reply {
        Reply::Gone { why } | Reply::Over(why) => why.clone(),
        Reply::Status { status, body, www_authenticate, location } => super::http::status_words(
            *status,
            body,
            www_authenticate.as_deref(),
            location.as_deref(),
        ),
        Reply::Frame(raw) => match Frame::parse(&String::from_utf8_lossy(raw)) {
            Frame::Response { answer: Answer::Error { code, message, .. }, .. } => {
                let code = code.map_or("without a code".into(), |c| c.to_string());
                format!("JSON-RPC error {code}: {message}")
            }
            Frame::Malformed { why, .. } => format!("a malformed answer: {why}"),
            _ => "an answer that is none".into(),
        },
    }
}

fn refuses_headers(reply: &Result<Reply, oneshot::error::RecvError>) -> bool {
    let (Ok(Reply::Frame(raw)) | Ok(Reply::Status { body: raw, .. })) = reply else { return false };
    let text = String::from_utf8_lossy(raw);
    matches!(
        Frame::parse(&text),
        Frame::Response { answer: Answer::Error { code: Some(-32020), .. }, .. }
    )
}

fn result_in(reply: &Reply) -> Option<String> {
    let Reply::Frame(frame) = reply else { return None };
    let text = String::from_utf8_lossy(frame);
    match Frame::parse(&text) {
        Frame::Response { answer: Answer::Result(r), .. } => Some(r.to_owned()),
        _ => None,
    }
}

/// The params of the next round: the same request, every question answered, `requestState` byte for byte when
/// one was given and none otherwise.
///
/// # Errors
/// Why nobody here can answer.
async fn next_round(
    offer: &Offer,
    params: &str,
    result: &str,
    call: Option<CallId>,
) -> Result<String, String> {
    let responses = responses(offer, result, call).await?;
    let mut extra = Vec::new();
    extra.extend(responses.map(|r| format!(r#""inputResponses":{r}"#)));
    let state = raw::get(result, "requestState").filter(|s| !raw::is_null(s));
    extra.extend(state.map(|s| format!(r#""requestState":{s}"#)));
    if extra.is_empty() {
        return Err("it asks for nothing and gives no state to come back with".into());
    }
    let kept = raw::members(params).unwrap_or_default();
    let kept = kept
        .iter()
        .filter(|(k, _)| !matches!(k.as_ref(), "inputResponses" | "requestState"))
        .map(|(k, v)| format!("{}:{v}", raw::quote(k)));
    let all: Vec<String> = kept.chain(extra).collect();
    Ok(format!("{{{}}}", all.join(",")))
}

/// The `inputResponses` for the `inputRequests` of a result; `None` when it has none.
async fn responses(
    offer: &Offer,
    result: &str,
    call: Option<CallId>,
) -> Result<Option<String>, String> {
    let Some(asks) = raw::get(result, "inputRequests").and_then(raw::members) else {
        return Ok(None);
    };
    // All or nothing: half an answer would be one that nobody gave.
    let methods: Vec<String> =
        asks.iter().map(|(_, a)| raw::get_str(a, "method").unwrap_or_default()).collect();
    if let Some(m) = methods.iter().find(|m| !offer.offers(m)) {
        return Err(format!("nothing here answers {m}"));
    }
    let mut out = Vec::new();
    for ((key, ask), method) in asks.iter().zip(&methods) {
        let params = raw::get(ask, "params").unwrap_or("{}");
        let answer = offer.answer(method, params, call).await.map_err(|(_, why)| why)?;
        out.push(format!("{}:{answer}", raw::quote(key)));
    }
    Ok(Some(format!("{{{}}}", out.join(","))))
}

/// Looks at a task at its interval until it is over, on whatever connection there is: it outlives them.
async fn task(journal: Journal, call: CallId, mut live: Live) {
    let mut answered = HashSet::new();
    let (mut failed, mut refused) = (0, 0);
    loop {
        let Some(task) = wait_for_turn(&journal, call).await else { return };
        let conn = match live.wait_for(Option::is_some).await {
            Ok(conn) => conn.clone(),
            Err(_) => return,
        };
        let Some(conn) = conn else { return };
        let params = format!(r#"{{"taskId":{}}}"#, raw::quote(&task.id));
        let look = |method| conn.ask(Ask::new(method, Some(&params), Purpose::FollowUp { call })).1;
        // 2025-11-25: the result is fetched, and what a task asks for comes while it is being waited for.
        let fetch = !conn.is_modern() && (task.is_over() || task.status == "input_required");
        let reply = look(if fetch { "tasks/result" } else { "tasks/get" }).await;
        let Ok(Reply::Frame(frame)) = &reply else {
            // The link's trouble, not the task's: the next connection is asked, ever more seldom.
            failed += 1;
            refused = match &reply {
                Ok(Reply::Status { status: 400..=499, .. }) => refused + 1,
                _ => 0,
            };
            if let (Ok(reply), true) = (&reply, refused == REFUSED) {
                let said =
                    format!("the server refused {REFUSED} times in a row ({})", words(reply));
                return give_task_up(&journal, conn.generation, call, &task, &said);
            }
            if let (Ok(reply), Some(link)) = (&reply, for_good(&journal)) {
                let said = format!("{}; {link}", words(reply));
                return give_task_up(&journal, conn.generation, call, &task, &said);
            }
            let pause = task.poll_ms.map_or(POLL, Duration::from_millis).max(LEAST);
            tokio::time::sleep(pause.saturating_mul(1 << failed.min(8)).min(SELDOM)).await;
            continue;
        };
        (failed, refused) = (0, 0);
        let text = String::from_utf8_lossy(frame);
        match Frame::parse(&text) {
            Frame::Response { answer: Answer::Result(r), .. } if conn.is_modern() => {
                update(&conn, call, &task, r, &mut answered).await;
            }
            Frame::Response {
                answer: Answer::Error { code: Some(-32602 | -32601), .. }, ..
            } => {
                return; // It is not known there; the fold has said so.
            }
            _ => {}
        }
        if fetch {
            return;
        }
    }
}

/// The link is down and nobody brings it back by itself; why.
fn for_good(journal: &Journal) -> Option<String> {
    journal.read(|s| {
        let link = s.link.as_ref()?;
        matches!(link.state, LinkState::Closed | LinkState::Dead).then(|| link.why.clone())
    })
}

/// Nobody looks at the task any more; what became of it is not known from here.
fn give_task_up(journal: &Journal, generation: u32, call: CallId, task: &Task, said: &str) {
    let why = format!("it can't be looked at: {said}, and nobody asks any more");
    let waits = journal.read(|s| s.calls.get(&call).is_some_and(Call::is_pending));
    let note = match waits {
        true => Note::LeftOpen { call, why },
        false => Note::Text(format!("task {}: {why}", task.id)),
    };
    journal.append(generation, Kind::Note(note));
}

/// Answers what a task of 2026-07-28 asks for, each question once.
async fn update(
    conn: &Arc<Conn>,
    call: CallId,
    task: &Task,
    result: &str,
    answered: &mut HashSet<String>,
) {
    if raw::get_str(result, "status").as_deref() != Some("input_required") {
        return;
    }
    let asked = raw::get(result, "inputRequests").unwrap_or("{}").to_owned();
    if answered.insert(asked)
        && let Ok(Some(all)) = responses(&conn.offer, result, Some(call)).await
    {
        let params = format!(r#"{{"taskId":{},"inputResponses":{all}}}"#, raw::quote(&task.id));
        let ask = Ask::new("tasks/update", Some(&params), Purpose::FollowUp { call });
        conn.ask(ask).1.await.ok();
    }
}

/// Waits until the task is to be looked at: its interval, or a notification that it is over. `None` when there
/// is nothing left to learn.
async fn wait_for_turn(journal: &Journal, call: CallId) -> Option<Task> {
    let state = |c: &Call| {
        let open = c.settled.as_ref().is_none_or(|s| {
            s.outcome == Outcome::Unknown
                || s.answer_status == Some(crate::journal::AnswerStatus::InProgress)
        });
        c.live.task.clone().filter(|_| open)
    };
    let task = journal.read(|s| s.calls.get(&call).and_then(state))?;
    let settled_end = journal.read(|s| s.calls.get(&call).is_some_and(|c| !c.is_pending()));
    if task.is_over() && settled_end {
        return None;
    }
    let pause = task.poll_ms.map_or(POLL, Duration::from_millis);
    let pause = pause.clamp(LEAST, Duration::from_secs(3600));
    if !task.is_over() {
        let told = journal.wait(|s| {
            let c = s.calls.get(&call)?;
            let over = c.live.task.as_ref().is_none_or(|t| t.is_over() || t.status != task.status);
            over.then_some(())
        });
        tokio::time::timeout(pause, told).await.ok();
    }
    journal.read(|s| s.calls.get(&call).and_then(state))
}
