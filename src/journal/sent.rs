//! The part of the fold that reads what goes out: which request begins a call, a later round of one, or waits for an
//! answer of another kind.

use super::answers::MODERN;
use super::call::Call;
use super::event::{Event, Purpose};
use super::fold::{Asked, Session};
use super::live::Live;
use super::tools::Tool;
use crate::json::loose::{at_the_place_of, loosened};
use crate::json::{key, raw};
use crate::wire::frame::Frame;
use crate::wire::id::Id;
use bytes::Bytes;

impl Session {
    pub(super) fn sent(
        &mut self,
        event: &Event,
        raw: &Bytes,
        exchange: Option<u64>,
        purpose: Purpose,
    ) {
        let written = String::from_utf8_lossy(raw);
        let loose = match Frame::parse(&written) {
            Frame::NotRpc => loosened(&written),
            _ => None,
        };
        let text = loose.as_deref().unwrap_or(&written);
        let Frame::Request { id, method, params } = Frame::parse(text) else { return };
        let asked_by = (event.generation, id.clone());
        let of = match purpose {
            Purpose::FollowUp { call } => Some(call),
            _ => None,
        };
        let mut call = None;
        let asked = match (method.as_str(), of) {
            ("tools/call", Some(of)) => {
                self.rounds.insert(event.seq, of);
                let full =
                    self.generation_n(event.generation).is_some_and(|g| g.unread_from.is_some());
                if let Some(c) = self.calls.get_mut(&of) {
                    c.rounds += 1;
                    c.rpc_id = id.clone();
                    c.generation = event.generation;
                    c.exchange = exchange;
                    c.accepted = false;
                    c.live = Live {
                        limit_s: c.live.limit_s,
                        limit_extends: c.live.limit_extends,
                        unread: full,
                        queued: full,
                        ..Live::default()
                    };
                }
                call = Some(of);
                None
            }
            ("tools/call", None) => {
                let mut new = new_call(event, &id, params, exchange);
                // As they were sent, whatever was put there to read them.
                if let (Some(loose), Some(args)) =
                    (&loose, params.and_then(|p| raw::get(p, "arguments")))
                {
                    new.args = at_the_place_of(&written, loose, args).map(str::to_owned);
                }
                // A modern request says so itself; where nobody has said anything, both forms are understood.
                new.legacy =
                    !is_modern(params) && self.protocol.as_deref().is_some_and(|p| p != MODERN);
                let listed = self.tools_generation == event.generation
                    && self.tools.complete
                    && !self.tools_stale;
                let g = self.generation_n(event.generation);
                new.live.unread = g.is_some_and(|g| g.unread_from.is_some());
                new.live.queued = new.live.unread;
                new.reads_only = listed && self.tools.find(&new.tool).is_some_and(Tool::only_reads);
                self.calls.insert(event.seq, new);
                call = Some(event.seq);
                None
            }
            ("initialize", _) => Some(Asked::Initialize),
            ("server/discover", _) => Some(Asked::Discover),
            ("tools/list", _) => {
                let first = params.and_then(|p| raw::get(p, "cursor")).is_none();
                Some(Asked::Tools { first: first.then_some(event.seq) })
            }
            ("tasks/get" | "tasks/result", Some(call)) => {
                Some(Asked::Task { call, ends: method == "tasks/result" })
            }
            _ => Some(Asked::Other),
        };
        match (asked, call) {
            (Some(w), _) => {
                self.waiting.insert(asked_by, (w, exchange));
            }
            (None, Some(call)) => {
                self.by_id.insert(asked_by, call);
            }
            (None, None) => {}
        }
        if let Some(x) = exchange {
            let with_session =
                self.generation_n(event.generation).is_some_and(|g| g.session_id.is_some());
            let entry = self.exchanges.entry(x).or_default();
            entry.call = call;
            entry.rpc_id = Some(id);
            entry.with_session = with_session;
            entry.modern = is_modern(params);
        }
    }
}

/// A request of 2026-07-28 names its revision.
fn is_modern(params: Option<&str>) -> bool {
    raw::get(params.unwrap_or(""), "_meta")
        .is_some_and(|m| m.contains("io.modelcontextprotocol/protocolVersion"))
}

fn new_call(event: &Event, id: &Id, params: Option<&str>, exchange: Option<u64>) -> Call {
    let params = params.unwrap_or("{}");
    let args = raw::get(params, "arguments").map(str::to_owned);
    let request_id = args.as_deref().and_then(key::of);
    Call {
        id: event.seq,
        generation: event.generation,
        rpc_id: id.clone(),
        tool: raw::get_str(params, "name").unwrap_or_default(),
        args,
        request_id,
        reads_only: false,
        sent_at: event.at,
        sent: 1,
        rounds: 1,
        legacy: false,
        exchange,
        accepted: false,
        settled: None,
        extra_answers: 0,
        live: Live::default(),
    }
}
