//! The conversation in a recording: what the client asked, in order, and what it was answered.

use crate::journal::Kind;
use crate::json::python::python_dumps;
use crate::json::raw;
use crate::record::entry::{Entry, Side, What};
use crate::wire::frame::{Answer, Frame};
use crate::wire::id::Id;
use std::collections::HashMap;

/// An answer, as it was.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Said {
    /// The raw result.
    Result(String),
    /// The raw JSON-RPC error.
    Error(String),
}

/// One message of the client.
#[derive(Debug, Clone, PartialEq)]
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
        raw::get_str(self.arguments()?, "request_id")
    }
}

/// All the client said.
pub fn read(entries: &[Entry]) -> Vec<Ask> {
    let mut asks: Vec<Ask> = Vec::new();
    let mut by_id: HashMap<(u32, Id), usize> = HashMap::new();
    let mut by_exchange: HashMap<u64, usize> = HashMap::new();
    for e in entries {
        let (raw_bytes, exchange) = match &e.what {
            What::Event(Kind::Sent { raw, exchange, .. } | Kind::Received { raw, exchange }) => {
                (raw, *exchange)
            }
            _ => continue,
        };
        let text = String::from_utf8_lossy(raw_bytes);
        let frame = Frame::parse(&text);
        if e.side() == Some(Side::Sent) {
            let (id, method, params) = match frame {
                Frame::Request { id, method, params } => (Some(id), Some(method), params),
                Frame::Notification { method, params } => (None, Some(method), params),
                Frame::Response { .. } => (None, None, None),
                Frame::Malformed { .. } | Frame::NotRpc => continue,
            };
            if let Some(id) = &id {
                by_id.insert((e.generation, id.clone()), asks.len());
            }
            if let Some(x) = exchange {
                by_exchange.insert(x, asks.len());
            }
            asks.push(Ask {
                seq: e.seq,
                generation: e.generation,
                mono_us: e.mono_us,
                id,
                method,
                params: params.map(str::to_owned),
                answer: None,
                took_ms: None,
            });
        } else if let Frame::Response { id, answer } = frame {
            let said = match answer {
                Answer::Result(r) => Said::Result(r.to_owned()),
                Answer::Error { raw, .. } => Said::Error(raw.to_owned()),
            };
            // An exchange knows whose answer it carries, whatever id the answer has.
            let own = exchange.and_then(|x| by_exchange.get(&x)).copied();
            let own = own.filter(|i| {
                asks.get(*i).is_some_and(|a| a.id == id || matches!(said, Said::Error(_)))
            });
            let at = own.or_else(|| by_id.get(&(e.generation, id?)).copied());
            if let Some(ask) = at.and_then(|i| asks.get_mut(i)).filter(|a| a.answer.is_none()) {
                ask.answer = Some(said);
                ask.took_ms = Some(e.mono_us.saturating_sub(ask.mono_us) as f64 / 1000.0);
            }
        }
    }
    asks
}

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
