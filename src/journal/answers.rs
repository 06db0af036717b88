//! The part of the fold that reads what came in: whose answer it is, or which kind of odd it is. Near, second,
//! late and stray answers are four things (field log, row 17), and none of them ends anything.

use super::call::CallId;
use super::event::Event;
use super::fold::{Asked, Misfit, ServerInfo, Session};
use super::live::Progress;
use super::text::Text;
use super::tools::{Tool, ToolList};
use super::{ends, refusal, settle, task};
use crate::json::raw;
use crate::wire::frame::{Answer, Frame};
use crate::wire::id::Id;
use crate::wire::mirror;
use bytes::Bytes;

/// The first revision without sessions and with mirrored headers.
const MODERN: &str = "2026-07-28";

impl Session {
    pub(super) fn received(&mut self, event: &Event, raw: &Bytes, exchange: Option<u64>) {
        let text = String::from_utf8_lossy(raw);
        match Frame::parse(&text) {
            Frame::Response { id, answer } => self.response(event, raw, id, answer, exchange),
            Frame::Notification { method, params } => {
                self.notification(event, &method, params.unwrap_or("{}"))
            }
            Frame::Malformed { id, why } => {
                self.malformed(event, id, exchange, why);
                // A batch may hold answers: named so, and no success.
                for item in raw::items(text.trim()).unwrap_or_default() {
                    if let Frame::Response { id: Some(id), .. } = Frame::parse(item) {
                        self.malformed(event, Some(id), None, why);
                    }
                }
            }
            Frame::Request { method, .. } => {
                // Methods are the server's own words: their number is bounded.
                if self.asked_of_us.len() < 64 || self.asked_of_us.contains_key(&method) {
                    *self.asked_of_us.entry(method).or_default() += 1;
                }
            }
            Frame::NotRpc => {}
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
        // whose answer it is (protocol.md, section 9).
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
        if let Some(call) = self.by_id.get(&key).copied() {
            if let Some(c) = self.calls.get_mut(&call).filter(|c| c.rpc_id != id) {
                // An earlier round was answered already, which is why there is a later one.
                c.extra_answers += 1;
                let text = format!("a second answer to an earlier round of call {} ({id})", c.tool);
                return self.note(event.at, text);
            }
            return settle::answered(self, event.at, call, &answer, frame);
        }
        match self.waiting.remove(&key) {
            Some(asked) => self.other_answer(event, frame, asked, answer),
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
                if let Some(asked) = first {
                    self.tools = ToolList::default();
                    self.tools_asked = asked;
                }
                let mirrored = self.protocol.as_deref() == Some(MODERN)
                    && self.generation_n(event.generation).is_some_and(|g| g.is_http());
                let check = |tool: &Tool| match (&tool.input_schema, mirrored) {
                    (Some(schema), true) => mirror::annotations(schema).err(),
                    _ => None,
                };
                self.tools.add_page_checked(result, check);
                self.tools_generation = event.generation;
                // A list that was asked for before the change may be the one from before it.
                self.tools_stale = self.tools_asked < self.tools_changed;
                self.tools.complete =
                    // One of another type can't be followed: what it leads to is missing.
                    raw::get(result, "nextCursor").is_none_or(|c| {
                        raw::is_null(c) || raw::as_str(c).is_some_and(|c| c.is_empty())
                    });
            }
            Asked::Task { .. } | Asked::Other => {}
        }
    }

    fn malformed(&mut self, event: &Event, id: Option<Id>, exchange: Option<u64>, why: &str) {
        let by_exchange = exchange.and_then(|x| self.exchanges.get(&x)).and_then(|x| x.call);
        let call =
            by_exchange.or_else(|| self.by_id.get(&(event.generation, id.clone()?)).copied());
        match (call, id) {
            (Some(call), _) => settle::malformed(self, event.at, call, why),
            (None, Some(id)) => {
                self.note(event.at, format!("a malformed message (id {id}): {why}"))
            }
            (None, None) => self.note(event.at, format!("a malformed message: {why}")),
        }
    }

    /// An answer that matches no id. It settles nothing but an error on its own HTTP exchange; with one call
    /// pending it is tied to that call in words.
    fn stray(
        &mut self,
        event: &Event,
        frame: &Bytes,
        id: Option<Id>,
        exchange: Option<u64>,
        answer: &Answer<'_>,
    ) {
        self.strays += 1;
        let own = exchange.and_then(|x| self.exchanges.get(&x)).and_then(|x| x.call);
        if let (Some(call), Answer::Error { .. }) = (own, answer) {
            // On its own HTTP exchange an error can belong to nobody else.
            return settle::answered(self, event.at, call, answer, frame);
        }
        let said = match answer {
            Answer::Error { message, .. } => format!(": {}", refusal::first_line(message)),
            Answer::Result(_) => String::new(),
        };
        let near = id.as_ref().and_then(|id| self.near(event.generation, id));
        let (text, call) = match (&id, near) {
            (Some(id), Some((asked, call))) => {
                let text = format!(
                    "an answer came with the id {id}, where {asked} was asked: another id by JSON-RPC, so it answers nothing{said}"
                );
                if call.is_none() {
                    let words = format!(
                        "the server answers with ids of another type ({id} for {asked}), so no answer can be matched"
                    );
                    self.misfit = Some(Misfit { generation: event.generation, words, ids: true });
                }
                (text, call)
            }
            (Some(id), None) => {
                (format!("an answer with the id {id}, which nothing asked for{said}"), None)
            }
            (None, _) => (format!("an answer without an id{said}"), self.only_pending(event)),
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

fn server_info(text: &str) -> ServerInfo {
    ServerInfo {
        name: raw::get_str(text, "name").unwrap_or_default(),
        version: raw::get_str(text, "version").unwrap_or_default(),
    }
}
