//! The part of the fold that reads what came in: whose answer it is, or which kind of odd it is. Near, second,
//! late and stray answers are four things, and none of them ends anything.

use super::belongs::Disowned;
use super::call::CallId;
use super::event::Event;
use super::fold::{Asked, Misfit, ServerInfo, Session};
use super::live::Progress;
use super::refusal::{self, first_line};
use super::text::Text;
use super::tools::{Tool, ToolList};
use super::{ends, settle, strange, task};
use crate::json::raw;
use crate::wire::frame::{self, Answer, Frame};
use crate::wire::id::Id;
use crate::wire::mirror;
use bytes::Bytes;

/// The first revision without sessions and with mirrored headers.
pub(crate) const MODERN: &str = "2026-07-28";

impl Session {
    pub(super) fn received(&mut self, event: &Event, raw: &Bytes, exchange: Option<u64>) {
        let text = String::from_utf8_lossy(raw);
        match Frame::parse(&text) {
            Frame::Response { id, answer } => self.response(event, raw, id, answer, exchange),
            Frame::Notification { method, params } => {
                self.notification(event, &method, params.unwrap_or("{}"))
            }
            Frame::Malformed { id: None, .. }
                if frame::may_batch(self.protocol.as_deref(), &text) =>
            {
                for item in frame::batch(&text) {
                    self.item(event, raw, item, exchange);
                }
            }
            Frame::Malformed { id, why } => {
                self.malformed(event, id, exchange, exchange, why);
                // A batch may hold answers: named so, and no success.
                for item in frame::batch(&text) {
                    if let Frame::Response { id: Some(id), .. } = Frame::parse(item) {
                        self.malformed(event, Some(id), None, exchange, why);
                    }
                }
            }
            Frame::Request { method, .. } => self.asked(method),
            Frame::NotRpc => strange::no_json(self, event, &text),
        }
    }

    /// One message of a legal batch (2025-03-26). A batch in a batch is none: depth is not the server's to choose.
    fn item(&mut self, event: &Event, raw: &Bytes, item: &str, exchange: Option<u64>) {
        match Frame::parse(item) {
            Frame::Response { id, answer } => self.response(event, raw, id, answer, exchange),
            Frame::Notification { method, params } => {
                self.notification(event, &method, params.unwrap_or("{}"));
            }
            Frame::Request { method, .. } => self.asked(method),
            Frame::Malformed { id, why } => self.malformed(event, id, exchange, exchange, why),
            Frame::NotRpc => {
                self.note(event.at, format!("in a batch, no message: {}", first_line(item)));
            }
        }
    }

    fn asked(&mut self, method: String) {
        // Methods are the server's own words: their number and their length are bounded.
        let method = refusal::short(&method, 80);
        if self.asked_of_us.len() < 64 || self.asked_of_us.contains_key(&method) {
            *self.asked_of_us.entry(method).or_default() += 1;
        }
    }

    fn notification(&mut self, event: &Event, method: &str, params: &str) {
        match method {
            "notifications/tools/list_changed" => {
                self.tools_stale = true;
                self.tools_changed = event.seq;
            }
            "notifications/progress" => {
                let token = raw::get(params, "progressToken").map(Id::from_raw);
                let call = token.and_then(|t| self.by_id.get(&(event.generation, t)));
                if let Some(c) = call.and_then(|c| self.calls.get_mut(c))
                    && let Some(mut p) = Progress::parse(params, event.at)
                {
                    p.count += c.live.progress.as_ref().map_or(0, |old| old.count);
                    c.live.progress = Some(p);
                }
            }
            "notifications/tasks/status" | "notifications/tasks" => {
                task::told(self, event.at, params);
            }
            _ => {}
        }
    }

    fn response(
        &mut self,
        event: &Event,
        frame: &Bytes,
        id: Option<Id>,
        answer: Answer<'_>,
        exchange: Option<u64>,
    ) {
        let x = exchange.and_then(|x| self.exchanges.get(&x)).cloned();
        // A POST refused with a status carries a body whose id is null, wrong or missing: the exchange tells
        // whose answer it is.
        if let Some(x) = &x
            && x.status.is_some_and(|s| !(200..300).contains(&s))
        {
            if let Some(call) = x.call {
                ends::refusing_body(self, event.at, call, x, (id.as_ref(), &answer), frame);
            } else if let Some(id) = &x.rpc_id {
                self.waiting.remove(&(event.generation, id.clone()));
            }
            return;
        }
        let Some(id) = id.filter(|i| *i != Id::Null) else {
            return self.stray(event, frame, None, exchange, &answer);
        };
        // Clients that share a generation (2026-07-28 through a tap) may use the same ids at the same time: the
        // exchange tells whose answer it is.
        let own = exchange.and_then(|x| self.exchanges.get(&x)).and_then(|x| x.call);
        if let Some(call) = own.filter(|c| self.calls.get(c).is_some_and(|c| c.rpc_id == id)) {
            return settle::answered(self, event.at, call, &answer, frame);
        }
        let key = (event.generation, id.clone());
        if x.is_some_and(|x| x.call.is_none() && x.rpc_id.as_ref() == Some(&id)) {
            // The answer to this exchange's own request, whatever call of somebody else carries the same id.
            if let Some((asked, _)) = self.waiting.remove(&key) {
                self.other_answer(event, frame, asked, answer);
            }
            return;
        }
        if let Some(call) = self.by_id.get(&key).copied() {
            if let Some(c) = self.calls.get_mut(&call).filter(|c| c.rpc_id != id) {
                // An earlier round was answered already, which is why there is a later one.
                c.extra_answers += 1;
                let text = format!("a second answer to an earlier round of call {} ({id})", c.tool);
                return self.note(event.at, text);
            }
            let asked = self.calls.get(&call).and_then(|c| c.exchange);
            if let Some(place) = self.misplaced(event.generation, asked, exchange) {
                return self.disown(event.at, call, Disowned::Misplaced(place));
            }
            return settle::answered(self, event.at, call, &answer, frame);
        }
        if let Some((_, asked)) = self.waiting.get(&key)
            && let Some(place) = self.misplaced(event.generation, *asked, exchange)
        {
            let why = Disowned::Misplaced(place);
            return self.note(event.at, format!("request {}: {why}", shown(&id)));
        }
        match self.waiting.remove(&key) {
            Some((asked, _)) => self.other_answer(event, frame, asked, answer),
            None => self.stray(event, frame, Some(id), exchange, &answer),
        }
    }

    fn other_answer(&mut self, event: &Event, frame: &Bytes, asked: Asked, answer: Answer<'_>) {
        if let Asked::Task { call, ends } = asked {
            return task::answered(self, event.at, call, ends, &answer, frame);
        }
        let Answer::Result(result) = answer else { return };
        match asked {
            Asked::Initialize => {
                self.server = raw::get(result, "serverInfo").map(server_info);
                self.capabilities = raw::get(result, "capabilities").map(|c| Text::part(frame, c));
            }
            Asked::Discover => {
                let info = raw::get_path(result, &["_meta", "io.modelcontextprotocol/serverInfo"]);
                self.server = info.map(server_info).or(self.server.take());
                self.capabilities = raw::get(result, "capabilities").map(|c| Text::part(frame, c));
            }
            Asked::Tools { first } => {
                // While a list that is known is read again, it stays in force until the new one is whole.
                let (mut list, asked) = match (first, self.staged.take()) {
                    (Some(asked), _) => (ToolList::default(), asked),
                    (None, Some(staged)) => staged,
                    (None, None) => (std::mem::take(&mut self.tools), self.tools_asked),
                };
                let mirrored = self.protocol.as_deref() == Some(MODERN)
                    && self.generation_n(event.generation).is_some_and(|g| g.is_http());
                let check = |tool: &Tool| match (&tool.input_schema, mirrored) {
                    (Some(schema), true) => mirror::annotations(schema).err(),
                    _ => None,
                };
                list.add_page_checked(result, check);
                // Without a session each answer may come from another server, and says from which.
                let info = raw::get_path(result, &["_meta", "io.modelcontextprotocol/serverInfo"]);
                if let (Some(info), true) = (info, self.protocol.as_deref() == Some(MODERN)) {
                    self.server = Some(server_info(info));
                }
                list.complete = !list.cut
                    // One of another type can't be followed: what it leads to is missing.
                    && raw::get(result, "nextCursor").is_none_or(|c| {
                        raw::is_null(c) || raw::as_str(c).is_some_and(|c| c.is_empty())
                    });
                let known = self.tools_generation == event.generation && self.tools.complete;
                if known && !list.complete {
                    self.staged = Some((list, asked));
                    return;
                }
                self.tools = list;
                self.tools_asked = asked;
                self.tools_generation = event.generation;
                // A list that was asked for before the change may be the one from before it.
                self.tools_stale = self.tools_asked < self.tools_changed;
            }
            Asked::Task { .. } | Asked::Other => {}
        }
    }

    /// A message that is none. A plain body is the answer of its exchange, whatever its id; on a stream other
    /// messages come as well, and the answer may still follow.
    /// `came`: where it came, also where it is not the whole of what came.
    fn malformed(
        &mut self,
        event: &Event,
        id: Option<Id>,
        exchange: Option<u64>,
        came: Option<u64>,
        why: &str,
    ) {
        let x = exchange.and_then(|x| self.exchanges.get(&x));
        let by_exchange = x.filter(|x| !x.stream).and_then(|x| x.call);
        let around = x.and_then(|x| x.call);
        let call =
            by_exchange.or_else(|| self.by_id.get(&(event.generation, id.clone()?)).copied());
        let asked = call.and_then(|c| self.calls.get(&c)).and_then(|c| c.exchange);
        let misplaced = self.misplaced(event.generation, asked, came);
        if let (Some(call), Some(place)) = (call, misplaced) {
            return self.disown(event.at, call, Disowned::Misplaced(place));
        }
        if let Some(call) = call {
            return settle::malformed(self, event.at, call, why);
        }
        let text = match id {
            Some(id) => format!("a malformed message (id {}): {why}", shown(&id)),
            None => format!("a malformed message: {why}"),
        };
        if let Some(c) = around.and_then(|c| self.calls.get_mut(&c)) {
            c.live.remark = Some(text.clone());
        }
        self.note(event.at, text);
    }

    /// An answer that matches no id. It settles nothing but an error that is the whole body of its HTTP exchange, or
    /// is near on its stream; otherwise it is tied in words to the call it came beside, or to the only one pending.
    fn stray(
        &mut self,
        event: &Event,
        raw: &Bytes,
        id: Option<Id>,
        exchange: Option<u64>,
        answer: &Answer<'_>,
    ) {
        self.strays += 1;
        // Whose it would be, if its id were one: that call waits for nothing else.
        let (ids, why) = frame::odd_ids(&String::from_utf8_lossy(raw));
        let mut meant =
            ids.into_iter().filter(|i| self.pending_under(event.generation, i).is_some());
        if let (Some(id), None) = (meant.next(), meant.next()) {
            return self.malformed(event, Some(id), exchange, exchange, why);
        }
        let x = exchange.and_then(|x| self.exchanges.get(&x));
        let own = x.and_then(|x| x.call);
        let is_near = |a: Option<&Id>, b: Option<&Id>| a.zip(b).is_some_and(|(a, b)| a.is_near(b));
        let alone = x.is_some_and(|x| !x.stream || is_near(id.as_ref(), x.rpc_id.as_ref()));
        if let (Some(call), true, Answer::Error { .. }) = (own, alone, answer) {
            // It can belong to nobody else.
            return settle::answered(self, event.at, call, answer, raw);
        }
        let said = match answer {
            Answer::Error { message, .. } => format!(": {}", refusal::first_line(message)),
            Answer::Result(_) => String::new(),
        };
        let near = id.as_ref().and_then(|id| self.near(event.generation, id));
        let (text, call) = match (&id, near) {
            (Some(id), Some((asked, call))) => {
                let id = shown(id);
                let text = format!(
                    "an answer came with the id {id}, where {asked} was asked: another id by JSON-RPC, so it answers nothing{said}"
                );
                // A probe is not worth giving a server up for: `initialize` may be answered as it should.
                let probe = self.waiting.get(&(event.generation, asked.clone()));
                if call.is_none() && !matches!(probe, Some((Asked::Discover, _))) {
                    let words = format!(
                        "the server answers with ids of another type ({id} for {asked}), so no answer can be matched"
                    );
                    self.misfit = Some(Misfit { generation: event.generation, words, ids: true });
                }
                (text, call)
            }
            (Some(id), None) => {
                let text =
                    format!("an answer with the id {}, which nothing asked for{said}", shown(id));
                (text, own)
            }
            (None, _) => {
                (format!("an answer without an id{said}"), own.or_else(|| self.only_pending(event)))
            }
        };
        if let Some(c) = call.and_then(|c| self.calls.get_mut(&c)) {
            c.live.remark = Some(text.clone());
        }
        self.note(event.at, text);
    }

    /// What waits under an id that only differs in type or spelling.
    fn near(&self, generation: u32, id: &Id) -> Option<(Id, Option<CallId>)> {
        let pending = self.pending().find(|c| c.generation == generation && c.rpc_id.is_near(id));
        if let Some(c) = pending {
            return Some((c.rpc_id.clone(), Some(c.id)));
        }
        let (_, asked) =
            self.waiting.keys().find(|(g, asked)| *g == generation && asked.is_near(id))?;
        Some((asked.clone(), None))
    }

    fn only_pending(&self, event: &Event) -> Option<CallId> {
        let mut pending = self.pending().filter(|c| c.generation == event.generation);
        let only = pending.next()?.id;
        pending.next().is_none().then_some(only)
    }
}

/// An id for a sentence: others may send one of any length.
fn shown(id: &Id) -> String {
    refusal::short(&id.to_json(), 64)
}

/// Names are for people, and kept in many places: one of megabytes is cut, with a sign.
fn server_info(text: &str) -> ServerInfo {
    let word = |key: &str| refusal::short(&raw::get_str(text, key).unwrap_or_default(), 500);
    ServerInfo { name: word("name"), version: word("version") }
}
