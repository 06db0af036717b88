//! What a server said: answers settle calls, and strays settle none; and the calls of a log that kept them whole. By the
//! same rules as the journal's fold (`journal::answers`, `settle`); a test holds the two together.

use super::bounds::Forgot;
use super::calls::{Envelope, number, of_exchange};
use super::content::Parts;
use super::fact::At;
use super::fold::{Audit, Exchange, Key, Open, Waits};
use super::handle::Who;
use super::lean;
use crate::journal::belongs;
use crate::json::raw;
use crate::wire::broken::{broken, fault};
use crate::wire::frame::Answer;
use crate::wire::id::Id;

/// Calls that the server wants more input for.
const ROUNDS: usize = 1_000;

/// How a call ended, with what was said.
pub(super) enum End<'a> {
    Ok(&'a Parts<'a>, &'a str),
    Failed(String),
}

impl Audit {
    pub(super) fn server_said(&mut self, at: At, frame: &str, exchange: Option<u64>) {
        // The quick reader passes over what no JSON reader takes.
        let python = frame.contains("NaN") || frame.contains("Infinity");
        if python && fault(frame).is_some() {
            return self.no_json(at, frame);
        }
        let Some(e) = Envelope::of(frame) else { return self.no_json(at, frame) };
        let x = exchange.and_then(|x| self.exchanges.get(&x)).cloned();
        let answer = match e.method.map(lean::text) {
            Some(Some(method)) => return self.server_asked(at, &method, e.id.is_some(), exchange),
            Some(None) => {
                return self.malformed(at, e.id, x.as_ref(), "its method is not a string");
            }
            None => match Answer::of(e.result, e.error) {
                Some(Ok(answer)) => answer,
                Some(Err(why)) => return self.malformed(at, e.id, x.as_ref(), why),
                None if e.jsonrpc => {
                    return self.malformed(at, e.id, x.as_ref(), "it says nothing");
                }
                None => return,
            },
        };
        if let Some(x) = &x
            && x.status.is_some_and(|s| !(200..300).contains(&s))
        {
            return self.refusing_body(at, x, e.id, &answer);
        }
        let id = e.id.filter(|i| !raw::is_null(i));
        if let Some(key) = id.and_then(|id| self.asked_under(at, id, x.as_ref())) {
            return self.answered(at, key, &answer);
        }
        // An error that is the whole body of its exchange, or near on its stream, can belong to nobody else.
        if let (Some(x), Answer::Error { .. }) = (&x, &answer)
            && let Some(key) = x.key
            && (!x.stream || id.is_some_and(|i| Id::from_raw(i).is_near(&Id::from_raw(&x.id))))
        {
            self.answered(at, key, &answer);
        }
    }

    /// What an id names: what was asked on the same exchange, else what waits under it.
    fn asked_under(&self, at: At, id: &str, x: Option<&Exchange>) -> Option<Key> {
        let n = number(id);
        let own = x.and_then(|x| x.key).filter(|k| k.2 == n);
        own.or_else(|| self.waiting_for((at.generation, 0, n)).filter(|k| self.may_come(*k, x)))
    }

    /// Whether an answer to what waits under `key` may come on another exchange than its own, as `x` is: by the
    /// journal's rule (`journal::belongs`).
    fn may_come(&self, key: Key, x: Option<&Exchange>) -> bool {
        let apart = self.lives.get(&key.0).is_some_and(|l| l.apart.is_some());
        !of_exchange(key) || apart || x.is_some_and(|x| x.resumes)
    }

    /// A text that should have been an answer, by the journal's rule (`journal::strange`).
    pub(super) fn no_json(&mut self, at: At, text: &str) {
        for found in broken(text).into_iter().filter(|b| !b.quoted) {
            let mut keys = found.ids.iter().filter_map(|id| {
                let key = self.waiting_for((at.generation, 0, number(&id.to_json())))?;
                matches!(self.waits.get(&key), Some(Waits::Call(_))).then_some(key)
            });
            if let (Some(key), None) = (keys.next(), keys.next()) {
                let why = format!("answered with a line that is no JSON: {}", found.why);
                self.not_known(key, why);
            }
        }
    }

    /// A message that is none. A plain body is the answer of its exchange, whatever its id; on a stream the answer
    /// may still follow.
    fn malformed(&mut self, at: At, id: Option<&str>, x: Option<&Exchange>, why: &str) {
        let own = x.filter(|x| !x.stream).and_then(|x| x.key);
        let id = id.filter(|i| !raw::is_null(i));
        let Some(key) = own.or_else(|| self.asked_under(at, id?, x)) else { return };
        // Whatever else waits stays unanswered all the same.
        if let Some(Waits::Call(open)) = self.take(key) {
            self.unknown(&open, format!("the answer is malformed: {why}"), false);
        }
    }

    /// What waits under this id, whatever session or exchange it was sent on where the line doesn't tell.
    pub(super) fn waiting_for(&self, key: Key) -> Option<Key> {
        if self.waits.contains_key(&key) {
            return Some(key);
        }
        // On stdio the key is whole.
        let life = self.lives.get(&key.0)?;
        if !life.http && !life.session {
            return None;
        }
        self.waits.keys().find(|k| k.0 == key.0 && k.2 == key.2).copied()
    }

    fn server_asked(&mut self, at: At, method: &str, request: bool, exchange: Option<u64>) {
        let inside = match exchange.and_then(|x| self.exchanges.get(&x)) {
            Some(x) => !x.get && x.key.is_some_and(|k| self.waits.contains_key(&k)),
            None => self.lives.get(&at.generation).is_some_and(|l| l.waiting > 0),
        };
        match method {
            // Signs of life and of a call's own progress.
            "ping" | "notifications/progress" | "notifications/cancelled" => {}
            _ if request => self.needs(at, "the server asks the client", method),
            "notifications/resources/updated" => {
                self.needs(at, "the server notifies a subscriber", method);
            }
            _ if inside => {}
            _ => self.needs(at, "the server notifies outside of any call", method),
        }
    }

    pub(super) fn answered(&mut self, at: At, key: Key, answer: &Answer<'_>) {
        if let (Some(Waits::Call(open)), Answer::Result(r)) = (self.waits.get(&key), answer)
            && names_another(open, r)
        {
            // Somebody else's: its own may still come while its exchange is open.
            if !open.exchange.is_some_and(|x| self.exchanges.contains_key(&x)) {
                let why = "an answer came that names another request";
                self.not_known(key, why.into());
            }
            return;
        }
        match (self.take(key), answer) {
            (None | Some(Waits::Other), _) | (Some(Waits::Tools), Answer::Error { .. }) => {}
            (Some(Waits::Tools), Answer::Result(r)) => self.listed(r),
            (Some(Waits::Call(open)), Answer::Result(r)) => self.result(at, *open, r),
            (Some(Waits::Call(open)), Answer::Error { message, .. }) => {
                self.settled(*open, End::Failed(message.clone()));
            }
        }
    }

    fn result(&mut self, at: At, mut open: Open, result: &str) {
        let Some(parts) = Parts::of(result) else {
            return self.unknown(&open, "the answer is malformed".into(), false);
        };
        // Members that decide what it means, of another type.
        if parts.is_error.is_some_and(|e| raw::as_bool(e).is_none()) {
            let why = "answered, but its isError is no boolean";
            return self.unknown(&open, why.into(), false);
        }
        if !open.legacy && parts.result_type.is_some_and(|t| raw::as_str(t).is_none()) {
            let why = "the answer is malformed: its resultType is no string";
            return self.unknown(&open, why.into(), false);
        }
        if parts.is_error == Some("true") {
            let said = parts.texts().join("\n");
            return self.settled(open, End::Failed(said));
        }
        if !open.legacy
            && parts.result_type.and_then(raw::as_str).as_deref() == Some("input_required")
        {
            if self.rounds.len() >= ROUNDS {
                self.rounds.remove(0);
                self.forgot.insert(Forgot::Rounds);
            }
            open.who.generation = at.generation;
            self.rounds.push(open);
            return;
        }
        self.settled(open, End::Ok(&parts, result));
    }

    pub(super) fn traced(
        &mut self,
        at: At,
        tool: &str,
        args: &str,
        result: Option<&str>,
        error: Option<&str>,
    ) {
        let tool = self.tool(tool);
        let who = Who { generation: at.generation, ..Who::default() };
        let mut open = self.open(at, tool, args, who, None);
        self.begins(&mut open, args);
        match (result, error) {
            (Some(r), _) => {
                let parts = Parts::of_trace(r);
                if parts.is_error == Some("true") {
                    let said = parts.texts().join("\n");
                    self.settled(open, End::Failed(said));
                } else {
                    self.settled(open, End::Ok(&parts, r));
                }
            }
            (None, Some(e)) => {
                let said = lean::get(e, "message").and_then(lean::text);
                let said = said.or_else(|| lean::text(e)).unwrap_or_default().into_owned();
                self.settled(open, End::Failed(said));
            }
            // A trace list keeps what was returned: nothing was, as far as it tells.
            (None, None) => self.returned_nothing(&open),
        }
    }

    /// A call is answered.
    fn settled(&mut self, open: Open, end: End<'_>) {
        let ok = matches!(end, End::Ok(..));
        // The answer beats that it was given up.
        let late = open.given_up.is_some();
        if late {
            self.unknowns.answered(open.call);
        }
        if let Some(t) = self.tool_mut(open.tool) {
            if ok {
                t.ok += 1
            } else {
                t.failed += 1
            }
            if late {
                t.unknown = t.unknown.saturating_sub(1);
            }
        }
        self.looked_up(&open, &end);
        if self.options.join {
            self.asked.answered(
                &open,
                ok && !matches!(&end, End::Ok(_, r) if unfinished(r, open.legacy)),
            );
        }
        match &end {
            End::Ok(parts, result) => {
                self.used_well(&open);
                self.returned(&open, parts, result);
                if let Some(values) = &mut self.values {
                    values.returned(open.tool, open.call, parts);
                    if values.full {
                        self.forgot.insert(Forgot::Values);
                    }
                }
            }
            End::Failed(said) => self.used_badly(&open, said),
        }
    }
}

/// Whether the answer's own object names another request than the call.
fn names_another(open: &Open, result: &str) -> bool {
    let another = |own: &str| belongs::names_another(own, result, &raw::Object::read(result));
    open.named.as_deref().and_then(another).is_some()
}

/// The answer says that the work goes on, or that nothing is known of it.
pub(super) fn unfinished(result: &str, legacy: bool) -> bool {
    // A foreign trace may hold the bare object that a tool gave, which is no CallToolResult and says nothing of that.
    let bare = ["content", "structuredContent", "resultType", "task"]
        .iter()
        .all(|key| raw::get(result, key).is_none());
    !bare && crate::journal::says::unfinished(result, legacy)
}
