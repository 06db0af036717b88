//! The part of the fold that follows HTTP exchanges: status, flow of bytes, resumes, how each one ended.

use super::call::{Call, CallId};
use super::ends;
use super::event::{Event, Http};
use super::fold::Session;
use super::strange;
use crate::wire::id::Id;

/// One HTTP exchange as far as the fold needs it.
#[derive(Debug, Clone, Default)]
pub(super) struct Exchange {
    pub call: Option<CallId>,
    pub rpc_id: Option<Id>,
    pub status: Option<u16>,
    pub www_authenticate: Option<String>,
    pub location: Option<String>,
    pub with_session: bool,
    /// It is answered with a stream of events, on which other messages may come as well.
    pub stream: bool,
    /// The request was one of 2026-07-28.
    pub modern: bool,
    /// It was redirected at least once.
    pub redirected: bool,
    /// It is a GET, on which the client listens.
    pub get: bool,
    /// That GET asks for the rest of a stream that was cut (`Last-Event-ID`).
    pub resumes: bool,
    /// What it goes through on its way: the proxy's name.
    pub proxy: Option<String>,
}

impl Session {
    /// Whether a call still waits for what may come on this exchange.
    pub fn is_owed(&self, exchange: u64) -> bool {
        let call = self.exchanges.get(&exchange).and_then(|x| x.call);
        call.and_then(|c| self.calls.get(&c))
            .is_some_and(|c| c.is_pending() && c.live.task.is_none())
    }

    /// The call that went out on this exchange, while that is open.
    pub fn call_on(&self, exchange: u64) -> Option<&Call> {
        self.calls.get(&self.exchanges.get(&exchange)?.call?)
    }

    pub(super) fn http(&mut self, event: &Event, exchange: u64, what: &Http) {
        let at = event.at;
        let call = self.exchanges.get(&exchange).and_then(|x| x.call);
        match what {
            Http::Request { method, .. } => {
                // Known before anything is sent on it, so that an answer there can be told to be out of place.
                self.exchanges.entry(exchange).or_default().get = method == "GET";
                if let Some(c) = call.and_then(|c| self.calls.get_mut(&c)) {
                    c.live.resumes_at = None;
                }
            }
            Http::Status { status, content_type, session, www_authenticate, location } => {
                let x = self.exchanges.entry(exchange).or_default();
                x.stream |= content_type.as_deref().is_some_and(is_event_stream);
                // A GET that resumes the stream of a POST is read for its bytes only.
                x.status.get_or_insert(*status);
                x.www_authenticate = www_authenticate.clone();
                x.location = location.clone();
                // Only a successful initialize may name the session; the client filters, the fold keeps.
                if let (Some(s), true) = (session, (200..300).contains(status))
                    && let Some(g) = self.generation_mut(event.generation)
                {
                    g.session_id.get_or_insert_with(|| s.clone());
                }
                if let Some(c) = call.and_then(|c| self.calls.get_mut(&c))
                    && c.live.headers_at.is_none()
                {
                    c.accepted = (200..300).contains(status);
                    c.live.headers_at = Some(at);
                    c.live.stream = content_type.as_deref().is_some_and(is_event_stream);
                }
                if let (Some(to), 300..=399) = (location, status) {
                    self.note(at, format!("HTTP {status} points to {to}: not followed"));
                }
            }
            Http::Flow { bytes, keepalives } => {
                if let Some(c) = call.and_then(|c| self.calls.get_mut(&c)) {
                    if *keepalives > c.live.keepalives {
                        c.live.keepalive_at = Some(at);
                    }
                    c.live.bytes = *bytes;
                    c.live.bytes_at = Some(at);
                    c.live.keepalives = *keepalives;
                }
            }
            Http::Through { proxy } => {
                self.exchanges.entry(exchange).or_default().proxy = Some(proxy.clone());
            }
            Http::Endpoint { .. } => {
                self.answers_apart.insert(event.generation, exchange);
            }
            Http::Unreadable { why } => ends::unreadable(self, at, exchange, why),
            Http::Resuming { after_ms, .. } => {
                self.exchanges.entry(exchange).or_default().resumes = true;
                if let Some(c) = call.and_then(|c| self.calls.get_mut(&c)) {
                    c.live.resumes_at = Some(at.plus_seconds(*after_ms as f64 / 1000.0));
                }
            }
            Http::Redirected { status, to } => {
                if let Some(x) = self.exchanges.get_mut(&exchange) {
                    x.redirected = true;
                }
                if let Some(c) = call.and_then(|c| self.calls.get_mut(&c)) {
                    c.sent += 1;
                }
                self.note(at, format!("HTTP {status}: redirected to {to}"));
            }
            Http::Partial { .. } => {}
            Http::Body { raw, cut } => {
                if !strange::over_the_limit_of(self, at, exchange, raw, *cut) {
                    ends::plain_body(self, at, exchange, raw);
                }
            }
            Http::End => ends::exchange_over(self, at, exchange, None),
            Http::Failed { why, connected } => {
                ends::exchange_over(self, at, exchange, Some((why, *connected)))
            }
        }
    }
}

/// Whether a content type is that of server-sent events.
pub(crate) fn is_event_stream(content_type: &str) -> bool {
    content_type.trim_start().to_ascii_lowercase().starts_with("text/event-stream")
}
