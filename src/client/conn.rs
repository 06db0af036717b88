//! One generation of an endpoint: ids, waiting answers, and the way frames go out and come in.
//!
//! Both transports share this. Nothing here decides when to connect or what to ask.

use super::driver::LinkEvent;
use super::{http, modern, stdio};
use crate::journal::event::Purpose;
use crate::journal::{Journal, Kind};
use crate::wire::frame::{self, Frame};
use crate::wire::id::Id;
use bytes::Bytes;
use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use tokio::sync::{mpsc, oneshot};

/// What came of a request that is no `tools/call`.
#[derive(Debug)]
pub(super) enum Reply {
    /// The answer, as received.
    Frame(Bytes),
    /// HTTP only: a status without a usable answer.
    Status { status: u16, body: Bytes, www_authenticate: Option<String> },
    /// HTTP only: the exchange ended without an answer. `connected: false` proves that nothing was sent.
    Gone { why: String, connected: bool },
    /// The whole generation is over; why.
    Over(String),
}

/// The protocol that the handshake settled on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Protocol {
    pub version: String,
    pub modern: bool,
}

/// Sequence numbers that outlive a generation, so that no id is ever used twice on one endpoint.
#[derive(Debug, Default)]
pub(super) struct Numbers {
    ids: AtomicU64,
    exchanges: AtomicU64,
}

pub(super) enum Transport {
    Stdio(stdio::Pipe),
    Http(Box<http::Target>),
}

pub(super) struct Conn {
    pub journal: Journal,
    pub generation: u32,
    pub transport: Transport,
    pub events: mpsc::UnboundedSender<LinkEvent>,
    numbers: Arc<Numbers>,
    protocol: OnceLock<Protocol>,
    waiters: Mutex<HashMap<Id, oneshot::Sender<Reply>>>,
    over: AtomicBool,
}

impl Conn {
    pub fn new(
        journal: Journal,
        generation: u32,
        transport: Transport,
        events: mpsc::UnboundedSender<LinkEvent>,
        numbers: Arc<Numbers>,
    ) -> Arc<Conn> {
        Arc::new(Conn {
            journal,
            generation,
            transport,
            events,
            numbers,
            protocol: OnceLock::new(),
            waiters: Mutex::default(),
            over: AtomicBool::new(false),
        })
    }

    /// Appends to the journal on this generation.
    pub fn log(&self, kind: Kind) -> u64 {
        self.journal.append(self.generation, kind)
    }

    /// The protocol in force, once agreed.
    pub fn protocol(&self) -> Option<&Protocol> {
        self.protocol.get()
    }

    pub fn is_modern(&self) -> bool {
        self.protocol().is_some_and(|p| p.modern)
    }

    /// Settles the protocol and says so in the journal. The first word stays.
    pub fn agree(&self, protocol: Protocol) {
        let version = protocol.version.clone();
        if self.protocol.set(protocol).is_ok() {
            self.log(Kind::Agreed { protocol: version });
        }
    }

    /// Sends a request under a fresh id and hands back its place in the journal and the coming answer.
    /// `modern` puts the 2026-07-28 `_meta` in whatever the agreed protocol is (probes).
    pub fn request(
        self: &Arc<Conn>,
        method: &str,
        params: Option<&str>,
        purpose: Purpose,
        modern: bool,
    ) -> (u64, oneshot::Receiver<Reply>) {
        let id = Id::from(self.numbers.ids.fetch_add(1, Ordering::Relaxed) + 1);
        let modern = modern || self.is_modern();
        let with_meta = modern.then(|| modern::with_meta(params));
        let params = with_meta.as_deref().or(params);
        let text = frame::request(&id, method, params);
        let (tx, rx) = oneshot::channel();
        self.waiters().insert(id.clone(), tx);
        let headers =
            if modern { modern::headers(method, params) } else { self.legacy_headers(method) };
        let seq = self.send(text, Some(id), purpose, headers, None);
        (seq, rx)
    }

    /// Sends a notification. What comes back ends when it was delivered or could not be: a request that must
    /// follow it waits for that, since over HTTP each message has a connection of its own.
    pub fn notify(
        self: &Arc<Conn>,
        method: &str,
        params: Option<&str>,
        purpose: Purpose,
    ) -> oneshot::Receiver<()> {
        let with_meta = self.is_modern().then(|| modern::with_meta(params));
        let params = with_meta.as_deref().or(params);
        let headers = if self.is_modern() {
            modern::headers(method, params)
        } else {
            self.legacy_headers(method)
        };
        let (done, delivered) = oneshot::channel();
        self.send(frame::notification(method, params), None, purpose, headers, Some(done));
        delivered
    }

    fn legacy_headers(&self, method: &str) -> Vec<(&'static str, String)> {
        match self.protocol() {
            Some(p) if method != "initialize" => vec![("mcp-protocol-version", p.version.clone())],
            _ => Vec::new(),
        }
    }

    fn send(
        self: &Arc<Conn>,
        text: String,
        id: Option<Id>,
        purpose: Purpose,
        headers: Vec<(&'static str, String)>,
        done: Option<oneshot::Sender<()>>,
    ) -> u64 {
        let raw = Bytes::from(text);
        match &self.transport {
            Transport::Stdio(pipe) => {
                let seq = self.log(Kind::Sent { raw: raw.clone(), exchange: None, purpose });
                pipe.write(self, seq, raw);
                seq
            }
            Transport::Http(target) => {
                let exchange = self.numbers.exchanges.fetch_add(1, Ordering::Relaxed) + 1;
                let seq =
                    self.log(Kind::Sent { raw: raw.clone(), exchange: Some(exchange), purpose });
                target.post(self.clone(), http::Post { exchange, id, raw, headers, _done: done });
                seq
            }
        }
    }

    /// One JSON-RPC text came in: journal first, then whoever waits for it. `false` when it is none.
    pub fn incoming(self: &Arc<Conn>, raw: Bytes, exchange: Option<u64>) -> bool {
        let text = String::from_utf8_lossy(&raw).into_owned();
        let frame = Frame::parse(&text);
        if frame == Frame::NotRpc {
            return false;
        }
        self.log(Kind::Received { raw: raw.clone(), exchange });
        match frame {
            Frame::Response { id: Some(id), .. } | Frame::Malformed { id: Some(id), .. } => {
                self.resolve(&id, Reply::Frame(raw));
            }
            Frame::Request { id, method, .. } => self.asked(&id, &method),
            Frame::Notification { method, .. } if method == "notifications/tools/list_changed" => {
                self.events.send(LinkEvent::ToolsChanged { generation: self.generation }).ok();
            }
            _ => {}
        }
        true
    }

    /// The server asks us. `ping` is answered; everything else was not advertised and is refused at once, so
    /// that no server waits for us (field log, row 74).
    fn asked(self: &Arc<Conn>, id: &Id, method: &str) {
        let text = match method {
            "ping" => frame::result(id, "{}"),
            _ => frame::error(id, -32601, &format!("redial does not offer {method}")),
        };
        let headers = self.legacy_headers(method);
        self.send(text, None, Purpose::Reply, headers, None);
    }

    /// Hands `reply` to whoever waits for `id`.
    pub fn resolve(&self, id: &Id, reply: Reply) {
        if let Some(waiter) = self.waiters().remove(id) {
            // A receiver that went away gave up waiting; the journal has the answer all the same.
            waiter.send(reply).ok();
        }
    }

    /// The generation is over: nobody waits for it any more.
    pub fn end(&self, why: &str) {
        self.over.store(true, Ordering::SeqCst);
        for (_, waiter) in self.waiters().drain() {
            waiter.send(Reply::Over(why.to_owned())).ok();
        }
    }

    /// The process was seen to end: what is not written yet will not leave.
    pub fn mark_over(&self) {
        self.over.store(true, Ordering::SeqCst);
    }

    /// Whether the generation is over.
    pub fn is_over(&self) -> bool {
        self.over.load(Ordering::SeqCst)
    }

    fn waiters(&self) -> std::sync::MutexGuard<'_, HashMap<Id, oneshot::Sender<Reply>>> {
        self.waiters.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
