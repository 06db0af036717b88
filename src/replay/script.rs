//! The conversation in a recording: what the client asked, in order, and what it was answered.

use crate::journal::Kind;
use crate::json::python::python_dumps;
use crate::json::{key, raw};
use crate::record::entry::{Entry, What};
use crate::wire::frame::{Answer, Frame};
use crate::wire::id::Id;
use std::collections::{HashMap, HashSet};

/// An answer, as it was.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Said {
    /// The raw result.
    Result(String),
    /// The raw JSON-RPC error.
    Error(String),
}

/// What the server said by itself around an answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Told {
    /// The raw notification; for stderr its line.
    pub text: String,
    /// It is a line of stderr.
    pub stderr: bool,
    /// It came before the answer.
    pub before: bool,
    /// How long after the request, in microseconds.
    pub after_us: u64,
}

/// The server's end, before it answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Died {
    /// The exit code.
    pub code: Option<i32>,
    /// The signal.
    pub signal: Option<i32>,
    /// How long after the request, in microseconds.
    pub after_us: u64,
}

/// One message of the client.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Ask {
    /// Its event.
    pub seq: u64,
    /// Which life of the server.
    pub generation: u32,
    /// Microseconds since the recording began.
    pub mono_us: u64,
    /// `None` for a notification, or an answer of the client's.
    pub id: Option<Id>,
    /// Its method; `None` for an answer of the client's.
    pub method: Option<String>,
    /// Its raw parameters.
    pub params: Option<String>,
    /// What came back; `None` when nothing did.
    pub answer: Option<Said>,
    /// How long that took, in milliseconds.
    pub took_ms: Option<f64>,
    /// What the server said by itself since, until the next message of the client.
    pub told: Vec<Told>,
    /// The server ended while this waited.
    pub died: Option<Died>,
    /// Values in it were replaced when it was written down.
    pub redacted: bool,
}

impl Ask {
    /// The tool of a `tools/call`.
    pub fn tool(&self) -> Option<String> {
        (self.method.as_deref() == Some("tools/call"))
            .then(|| raw::get_str(self.params.as_deref()?, "name"))
            .flatten()
    }

    /// The raw arguments of a `tools/call`.
    pub fn arguments(&self) -> Option<&str> {
        raw::get(self.params.as_deref()?, "arguments")
    }

    /// The request_id among them.
    pub fn request_id(&self) -> Option<String> {
        key::of(self.arguments()?)
    }
}

/// All the client said.
pub fn read(entries: &[Entry]) -> Vec<Ask> {
    let mut r = Reading::default();
    for e in entries {
        match &e.what {
            What::Event(Kind::Sent { raw, exchange, .. }) => r.sent(e, raw, *exchange),
            What::Event(Kind::Received { raw, exchange }) => r.received(e, raw, *exchange),
            What::Event(Kind::Stderr { raw }) => {
                r.told(e, String::from_utf8_lossy(raw).into_owned(), true);
            }
            What::Event(Kind::Exit { code, signal, .. }) => r.died(e, *code, *signal),
            _ => {}
        }
    }
    r.asks
}

#[derive(Default)]
struct Reading {
    asks: Vec<Ask>,
    by_id: HashMap<(u32, Id), usize>,
    by_exchange: HashMap<u64, usize>,
    /// Given up by the client: nobody waits for these when the server ends.
    cancelled: HashSet<usize>,
}

impl Reading {
    fn sent(&mut self, e: &Entry, raw_bytes: &[u8], exchange: Option<u64>) {
        let text = String::from_utf8_lossy(raw_bytes);
        let (id, method, params) = match Frame::parse(&text) {
            Frame::Request { id, method, params } => (Some(id), Some(method), params),
            Frame::Notification { method, params } => (None, Some(method), params),
            Frame::Response { .. } => (None, None, None),
            Frame::Malformed { .. } | Frame::NotRpc => return,
        };
        if method.as_deref() == Some("notifications/cancelled") {
            let of = params.and_then(|p| raw::get(p, "requestId")).map(Id::from_raw);
            let of = of.and_then(|id| self.by_id.get(&(e.generation, id)));
            self.cancelled.extend(of);
        }
        if let Some(id) = &id {
            self.by_id.insert((e.generation, id.clone()), self.asks.len());
        }
        if let Some(x) = exchange {
            self.by_exchange.insert(x, self.asks.len());
        }
        self.asks.push(Ask {
            seq: e.seq,
            generation: e.generation,
            mono_us: e.mono_us,
            id,
            method,
            params: params.map(str::to_owned),
            redacted: e.wire.redacted > 0,
            ..Ask::default()
        });
    }

    fn received(&mut self, e: &Entry, raw_bytes: &[u8], exchange: Option<u64>) {
        let text = String::from_utf8_lossy(raw_bytes);
        let (id, answer) = match Frame::parse(&text) {
            Frame::Response { id, answer } => (id, answer),
            Frame::Notification { .. } => return self.told(e, text.into_owned(), false),
            _ => return,
        };
        let said = match answer {
            Answer::Result(r) => Said::Result(r.to_owned()),
            Answer::Error { raw, .. } => Said::Error(raw.to_owned()),
        };
        // An exchange knows whose answer it carries, whatever id the answer has.
        let own = exchange.and_then(|x| self.by_exchange.get(&x)).copied();
        let own = own.filter(|i| {
            self.asks.get(*i).is_some_and(|a| a.id == id || matches!(said, Said::Error(_)))
        });
        let at = own.or_else(|| self.by_id.get(&(e.generation, id?)).copied());
        if let Some(ask) = at.and_then(|i| self.asks.get_mut(i)).filter(|a| a.answer.is_none()) {
            ask.answer = Some(said);
            ask.took_ms = Some(e.mono_us.saturating_sub(ask.mono_us) as f64 / 1000.0);
        }
    }

    /// Belongs to what the client asked last in this life.
    fn told(&mut self, e: &Entry, text: String, stderr: bool) {
        let of = |a: &&mut Ask| a.generation == e.generation && a.id.is_some();
        if let Some(ask) = self.asks.iter_mut().rev().take(TOLD).find(of) {
            let after_us = e.mono_us.saturating_sub(ask.mono_us);
            ask.told.push(Told { text, stderr, before: ask.answer.is_none(), after_us });
        }
    }

    fn died(&mut self, e: &Entry, code: Option<i32>, signal: Option<i32>) {
        for (i, a) in self.asks.iter_mut().enumerate() {
            let waits = a.generation == e.generation && a.id.is_some() && a.answer.is_none();
            if waits && !self.cancelled.contains(&i) {
                let after_us = e.mono_us.saturating_sub(a.mono_us);
                a.died = Some(Died { code, signal, after_us });
            }
        }
    }
}

/// How far back the request is looked for that a notification belongs to.
const TOLD: usize = 64;

/// What is compared of a request: its method, and its parameters without what is new each time (`_meta`, and
/// with it tokens and trace ids); of `initialize` the method alone.
pub fn key(method: &str, params: Option<&str>) -> String {
    if matches!(method, "initialize" | "server/discover" | "ping") {
        return method.to_owned();
    }
    let params = params.unwrap_or("{}");
    let plain = python_dumps(params, true, &["_meta"]).unwrap_or_else(|_| params.to_owned());
    format!("{method} {plain}")
}
