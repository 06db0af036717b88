//! What comes in on a connection: journal first, then whoever waits for it. Called by the readers, so nothing here
//! ever waits: a question that takes time is answered by a task of its own.

use super::conn::{Conn, Reply, Transport};
use super::driver::LinkEvent;
use super::modern;
use crate::journal::Kind;
use crate::journal::event::{Note, Purpose};
use crate::journal::refusal::short;
use crate::wire::broken::broken;
use crate::wire::frame::{self, Answer, Frame};
use crate::wire::id::Id;
use bytes::Bytes;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

/// How long a proper answer may take to follow one that was only quoted, or was damaged.
const QUOTED: Duration = Duration::from_millis(500);

impl Conn {
    /// A JSON-RPC text under a status that is not 2xx: kept, but it is its exchange that answers.
    pub fn record(&self, raw: &Bytes, exchange: u64) -> bool {
        let is_rpc = Frame::parse(&String::from_utf8_lossy(raw)) != Frame::NotRpc;
        if is_rpc {
            self.log(Kind::Received { raw: raw.clone(), exchange: Some(exchange) });
        }
        is_rpc
    }

    /// One JSON-RPC text came in: journal first, then whoever waits for it. `false` when it is none.
    pub fn incoming(self: &Arc<Conn>, raw: Bytes, exchange: Option<u64>) -> bool {
        let text = String::from_utf8_lossy(&raw);
        let frame = Frame::parse(&text);
        if frame == Frame::NotRpc {
            return false;
        }
        self.heard.store(true, Ordering::Relaxed);
        self.log(Kind::Received { raw: raw.clone(), exchange });
        if let Frame::Malformed { id: None, .. } = frame {
            let legal = frame::may_batch(self.protocol().map(|p| p.version.as_str()), &text);
            for item in frame::batch(&text) {
                match Frame::parse(item) {
                    one if legal => {
                        self.take(one, exchange, || Bytes::copy_from_slice(item.as_bytes()));
                    }
                    // Whoever waits learns that its answer came in a form that is none.
                    Frame::Response { id: Some(id), .. } if self.is_waiting_on(&id, exchange) => {
                        self.resolve(&id, Reply::Frame(raw.clone()));
                    }
                    _ => {}
                }
            }
            return true;
        }
        self.take(frame, exchange, || raw.clone());
        true
    }

    /// What came is no JSON-RPC: who waits for the answer that it should have been is told soon, unless that comes
    /// properly as well.
    pub fn no_json(self: &Arc<Conn>, raw: &Bytes, came: Option<u64>) {
        let text = String::from_utf8_lossy(raw);
        for found in broken(&text) {
            let waits = |id: &&Id| self.is_waiting_on(id, came);
            let mut ids = found.ids.iter().filter(waits);
            let (Some(id), None) = (ids.next(), ids.next()) else { continue };
            let (conn, id, raw) = (self.clone(), id.clone(), raw.clone());
            tokio::spawn(async move {
                tokio::time::sleep(QUOTED).await;
                if !conn.is_waiting(&id) {
                    return;
                }
                let call = conn.journal.read(|s| s.pending_under(conn.generation, &id));
                if let Some(call) = call {
                    conn.log(Kind::Note(Note::NoAnswer { call, why: found.why }));
                }
                // A call's later answer still reaches the journal.
                conn.resolve(&id, Reply::Frame(raw));
            });
        }
    }

    /// One message; `raw` gives its bytes. A batch in a batch is none: depth is not the server's to choose.
    /// An answer reaches whoever waits only where it may come: on the exchange that asked.
    fn take(self: &Arc<Conn>, frame: Frame<'_>, came: Option<u64>, raw: impl FnOnce() -> Bytes) {
        match frame {
            // Some servers can say no more than why they can't start.
            Frame::Response { id: None | Some(Id::Null), answer: Answer::Error { .. } } => {
                self.resolve_near(None, came, Reply::Frame(raw()));
            }
            Frame::Response { id: Some(id), .. } | Frame::Malformed { id: Some(id), .. } => {
                match self.is_waiting_on(&id, came) {
                    true => self.resolve(&id, Reply::Frame(raw())),
                    false => self.resolve_near(Some(&id), came, Reply::Frame(raw())),
                }
            }
            Frame::Request { id, method, params } => {
                self.asked(&id, &method, params.unwrap_or("{}"));
            }
            // A storm of them is one event until the list is read again.
            Frame::Notification { method, .. }
                if method == "notifications/tools/list_changed"
                    && !self.tools_changed.swap(true, Ordering::SeqCst) =>
            {
                self.events.send(LinkEvent::ToolsChanged { generation: self.generation }).ok();
            }
            _ => {}
        }
    }

    /// The list is about to be read: a change from here on is a new one.
    pub fn reading_tools(&self) {
        self.tools_changed.store(false, Ordering::SeqCst);
    }

    /// The server asks us. `ping` is answered, what was advertised is answered in its own time, and everything
    /// else is refused at once, so that no server waits for us.
    fn asked(self: &Arc<Conn>, id: &Id, method: &str, params: &str) {
        if self.is_modern() {
            // 2026-07-28 has no requests to a client, and a client must not send answers.
            return self.note(format!(
                "the server asked for {}, which {} does not allow; not answered",
                short(method, 80),
                modern::MODERN
            ));
        }
        if self.is_busy() {
            return self.note("the server asks more than it takes answers: not answered".into());
        }
        if method == "ping" {
            return self.reply(method, frame::result(id, "{}"));
        }
        if !self.offer.offers(method) {
            let name = short(method, 80);
            self.note(format!("the server asked for {name}: refused, it was not offered"));
            let words = format!("redial does not offer {name}");
            return self.reply(method, frame::error(id, -32601, &words));
        }
        let (conn, id) = (self.clone(), id.clone());
        let (method, params) = (method.to_owned(), params.to_owned());
        tokio::spawn(async move {
            let text = match conn.offer.answer(&method, &params, None).await {
                Ok(result) => frame::result(&id, &result),
                Err((code, words)) => frame::error(&id, code, &words),
            };
            conn.reply(&method, text);
        });
    }

    /// So much is on its way out that answering yet more questions would only fill memory.
    fn is_busy(&self) -> bool {
        match &self.transport {
            Transport::Stdio(pipe) => pipe.is_busy(),
            Transport::Http(target) => target.open() > 256,
        }
    }

    fn reply(self: &Arc<Conn>, method: &str, text: String) {
        if !self.is_over() {
            let headers = self.legacy_headers(method);
            self.send(text, None, Purpose::Reply, (headers, self.fresh_exchange()), None);
        }
    }
}
