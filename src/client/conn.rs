//! One generation of an endpoint: ids, waiting answers, and the way frames go out and come in.
//!
//! Both transports share this. Nothing here decides when to connect or what to ask. What comes in is in
//! `incoming`.

use super::driver::LinkEvent;
use super::modern::{self, Header};
use super::offer::Offer;
use super::{http, stdio};
use crate::journal::event::{Note, Purpose};
use crate::journal::{Journal, Kind};
use crate::wire::frame;
use crate::wire::id::Id;
use bytes::Bytes;
use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use tokio::sync::{mpsc, oneshot};

/// What came of a request.
#[derive(Debug)]
pub(super) enum Reply {
    /// The answer, as received.
    Frame(Bytes),
    /// HTTP only: a status without a usable answer.
    Status { status: u16, body: Bytes, www_authenticate: Option<String>, location: Option<String> },
    /// HTTP only: the exchange ended without an answer. `connected: false` proves that nothing was sent.
    Gone { why: String },
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

/// A request to send.
pub(super) struct Ask<'a> {
    pub method: &'a str,
    pub params: Option<&'a str>,
    pub purpose: Purpose,
    /// 2026-07-28 on top, whatever the agreed protocol is (probes).
    pub modern: bool,
    /// With a progress token, which is the request's own id.
    pub progress: bool,
    /// Further headers, used on HTTP.
    pub headers: Vec<Header>,
}

impl<'a> Ask<'a> {
    pub fn new(method: &'a str, params: Option<&'a str>, purpose: Purpose) -> Ask<'a> {
        Ask { method, params, purpose, modern: false, progress: false, headers: Vec::new() }
    }
}

/// Who waits for an answer, and to what kind of request.
struct Waiter {
    kind: Kin,
    /// The HTTP exchange it was asked on: an answer that comes anywhere else is somebody else's.
    exchange: Option<u64>,
    reply: oneshot::Sender<Reply>,
}

/// How closely an answer must be tied to a request.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kin {
    /// Whatever comes of it is a verdict.
    Probe,
    /// The only thing that is waited for.
    Handshake,
    Other,
}

pub(super) struct Conn {
    pub journal: Journal,
    pub generation: u32,
    pub transport: Transport,
    pub events: mpsc::UnboundedSender<LinkEvent>,
    pub offer: Arc<Offer>,
    numbers: Arc<Numbers>,
    protocol: OnceLock<Protocol>,
    waiters: Mutex<HashMap<Id, Waiter>>,
    /// Why the generation is over; set under the waiters' lock, so that nobody begins to wait after it.
    ended: OnceLock<String>,
    over: AtomicBool,
    pub(super) heard: AtomicBool,
    pub(super) tools_changed: AtomicBool,
    /// The last try to read the list of tools again came to nothing.
    pub(super) list_given_up: AtomicBool,
    /// HTTP: the stream that is listened on, and what waits beside it.
    pub(super) beside: http::beside::Beside,
    /// Pages of the list of tools that came so far.
    pub(super) pages: AtomicUsize,
}

impl Conn {
    pub fn new(
        journal: Journal,
        generation: u32,
        transport: Transport,
        events: mpsc::UnboundedSender<LinkEvent>,
        offer: Arc<Offer>,
        numbers: Arc<Numbers>,
    ) -> Arc<Conn> {
        Arc::new(Conn {
            journal,
            generation,
            transport,
            events,
            offer,
            numbers,
            protocol: OnceLock::new(),
            waiters: Mutex::default(),
            ended: OnceLock::new(),
            over: AtomicBool::new(false),
            heard: AtomicBool::new(false),
            tools_changed: AtomicBool::new(false),
            list_given_up: AtomicBool::new(false),
            beside: http::beside::Beside::default(),
            pages: AtomicUsize::new(0),
        })
    }

    /// Appends to the journal on this generation.
    pub fn log(&self, kind: Kind) -> u64 {
        self.journal.append(self.generation, kind)
    }

    /// A line for people.
    pub fn note(&self, text: String) {
        self.log(Kind::Note(Note::Text(text)));
    }

    /// The protocol in force, once agreed.
    pub fn protocol(&self) -> Option<&Protocol> {
        self.protocol.get()
    }

    pub fn is_modern(&self) -> bool {
        self.protocol().is_some_and(|p| p.modern)
    }

    pub fn is_http(&self) -> bool {
        matches!(self.transport, Transport::Http(_))
    }

    /// Settles the protocol and says so in the journal. The first word stays.
    pub fn agree(&self, protocol: Protocol) {
        let version = protocol.version.clone();
        if self.protocol.set(protocol).is_ok() {
            self.log(Kind::Agreed { protocol: version });
        }
    }

    /// Sends a request under a fresh id; hands back its place in the journal and the coming answer.
    pub fn ask(self: &Arc<Conn>, ask: Ask<'_>) -> (u64, oneshot::Receiver<Reply>) {
        let id = Id::from(self.numbers.ids.fetch_add(1, Ordering::Relaxed) + 1);
        let modern = ask.modern || self.is_modern();
        let token = ask.progress.then_some(&id);
        let dressed = match (modern, token) {
            (true, _) => Some(modern::with_meta(ask.params, &self.offer.capabilities(true), token)),
            (false, Some(t)) => Some(modern::with_token(ask.params, t)),
            (false, None) => None,
        };
        let params = dressed.as_deref().or(ask.params);
        let text = frame::request(&id, ask.method, params);
        let (tx, rx) = oneshot::channel();
        let kind = match (ask.purpose, ask.method) {
            (Purpose::Probe, _) => Kin::Probe,
            // It waits as long as the connection lives.
            (_, "subscriptions/listen") => Kin::Other,
            (Purpose::Handshake, _) => Kin::Handshake,
            _ => Kin::Other,
        };
        let exchange = self.fresh_exchange();
        self.wait_for(&id, Waiter { kind, exchange, reply: tx });
        let mut headers = ask.headers;
        headers.extend(match modern {
            true => modern::headers(ask.method, params),
            false => self.legacy_headers(ask.method),
        });
        let seq = self.send(text, Some(id), ask.purpose, (headers, exchange), None);
        (seq, rx)
    }

    /// Sends a notification. What comes back is told when it has left (stdio: all of it is in the pipe; HTTP: a status
    /// came), and dropped when it could not: a request that must follow it waits for that, since over HTTP each
    /// message has a connection of its own.
    pub fn notify(
        self: &Arc<Conn>,
        method: &str,
        params: Option<&str>,
        purpose: Purpose,
    ) -> oneshot::Receiver<()> {
        let modern = self.is_modern();
        let dressed =
            modern.then(|| modern::with_meta(params, &self.offer.capabilities(true), None));
        let params = dressed.as_deref().or(params);
        let headers = match modern {
            true => modern::headers(method, params),
            false => self.legacy_headers(method),
        };
        let (done, delivered) = oneshot::channel();
        let to = (headers, self.fresh_exchange());
        self.send(frame::notification(method, params), None, purpose, to, Some(done));
        delivered
    }

    pub(super) fn legacy_headers(&self, method: &str) -> Vec<Header> {
        match self.protocol() {
            Some(p) if method != "initialize" => {
                vec![("mcp-protocol-version".into(), p.version.clone())]
            }
            _ => Vec::new(),
        }
    }

    pub(super) fn send(
        self: &Arc<Conn>,
        text: String,
        id: Option<Id>,
        purpose: Purpose,
        (headers, exchange): (Vec<Header>, Option<u64>),
        done: Option<oneshot::Sender<()>>,
    ) -> u64 {
        let raw = Bytes::from(text);
        match &self.transport {
            Transport::Stdio(pipe) => {
                let seq = self.log(Kind::Sent { raw: raw.clone(), exchange: None, purpose });
                pipe.write(self, seq, &raw, done);
                seq
            }
            Transport::Http(target) => {
                let exchange = exchange.unwrap_or_else(|| self.next_exchange());
                let seq =
                    self.log(Kind::Sent { raw: raw.clone(), exchange: Some(exchange), purpose });
                target.post(self.clone(), http::Post { exchange, id, raw, headers, done });
                seq
            }
        }
    }

    /// A number for the HTTP exchange of the next message; none on stdio.
    pub fn fresh_exchange(&self) -> Option<u64> {
        self.is_http().then(|| self.next_exchange())
    }

    /// A number for an HTTP exchange.
    pub fn next_exchange(&self) -> u64 {
        self.numbers.exchanges.fetch_add(1, Ordering::Relaxed) + 1
    }

    /// Notes who waits for `id`. On a generation that is over the answer is there at once: a child that died
    /// between the look and the request must not be waited for.
    fn wait_for(&self, id: &Id, waiter: Waiter) {
        let mut waiters = self.waiters();
        match self.ended.get() {
            Some(why) => drop(waiter.reply.send(Reply::Over(why.clone()))),
            None => drop(waiters.insert(id.clone(), waiter)),
        }
    }

    /// Hands `reply` to whoever waits for `id`.
    pub fn resolve(&self, id: &Id, reply: Reply) {
        let waiter = self.waiters().remove(id);
        if let Some(waiter) = waiter {
            // A receiver that went away gave up waiting; the journal has the answer all the same.
            waiter.reply.send(reply).ok();
        }
    }

    /// The same where the answer's id is not that of a request: one under a near id is an answer to a probe, since
    /// any is; an error without an id belongs to the handshake's request, when that is all that is waited for.
    pub fn resolve_near(&self, id: Option<&Id>, came: Option<u64>, reply: Reply) {
        let found = {
            let waiters = self.waiters();
            let mut here = waiters.iter().filter(|(_, w)| w.exchange == came);
            let found = match id {
                Some(id) => here.find(|(asked, w)| w.kind == Kin::Probe && asked.is_near(id)),
                None if waiters.len() == 1 => here.find(|(_, w)| w.kind != Kin::Other),
                None => None,
            };
            found.map(|(asked, _)| asked.clone())
        };
        if let Some(id) = found {
            self.resolve(&id, reply);
        }
    }

    /// Whether `id` was neither answered nor given up by the link.
    pub fn is_waiting(&self, id: &Id) -> bool {
        self.waiters().contains_key(id)
    }

    /// Who waits for `id`, and may be answered on that exchange.
    pub fn is_waiting_on(&self, id: &Id, came: Option<u64>) -> bool {
        self.waiters().get(id).is_some_and(|w| w.exchange == came)
    }

    /// Whether `id` is that of a request which is neither a probe nor of the handshake.
    pub fn is_other(&self, id: &Id) -> bool {
        self.waiters().get(id).is_some_and(|w| w.kind == Kin::Other)
    }

    /// The generation is over: nobody waits for it any more.
    pub fn end(&self, why: &str) {
        self.over.store(true, Ordering::SeqCst);
        let waiters: Vec<_> = {
            let mut waiters = self.waiters();
            // The first reason stays.
            self.ended.set(why.to_owned()).ok();
            waiters.drain().collect()
        };
        for (_, waiter) in waiters {
            waiter.reply.send(Reply::Over(why.to_owned())).ok();
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

    /// Whether any JSON-RPC ever came in.
    pub fn has_heard(&self) -> bool {
        self.heard.load(Ordering::Relaxed)
    }

    fn waiters(&self) -> std::sync::MutexGuard<'_, HashMap<Id, Waiter>> {
        self.waiters.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
