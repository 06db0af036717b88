//! The fold over the stream that everything shown is made of: generations, calls, tools, link.
//!
//! Pure and total: any event in any order is taken, nothing is cleared when a server dies.
//! The rules by which a call is settled are in `settle`.

use super::call::{Call, CallId};
use super::event::{Event, Http, Kind, LinkState, Note, Transport};
use super::settle;
use super::tools::ToolList;
use crate::json::raw;
use crate::time::Time;
use crate::wire::frame::{Answer, Frame};
use crate::wire::id::Id;
use bytes::Bytes;
use std::collections::{BTreeMap, HashMap, VecDeque};

/// Lines and bytes kept of a generation's stderr, and of its noise.
const TAIL_LINES: usize = 2_000;
const TAIL_BYTES: usize = 1 << 20;
const LINE_BYTES: usize = 16 << 10;

/// A bounded tail of lines, with a count of what it let go.
#[derive(Debug, Clone, Default)]
pub struct Tail {
    lines: VecDeque<(Time, Bytes)>,
    bytes: usize,
    /// Lines that are no longer kept.
    pub dropped: u64,
}

impl Tail {
    fn push(&mut self, at: Time, raw: &Bytes) {
        let line = raw.slice(..raw.len().min(LINE_BYTES));
        self.bytes += line.len();
        self.lines.push_back((at, line));
        while self.lines.len() > TAIL_LINES || self.bytes > TAIL_BYTES {
            let Some((_, old)) = self.lines.pop_front() else { break };
            self.bytes -= old.len();
            self.dropped += 1;
        }
    }
    /// The kept lines, oldest first.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = (Time, &Bytes)> + ExactSizeIterator {
        self.lines.iter().map(|(t, b)| (*t, b))
    }
    /// How many lines are kept.
    pub fn len(&self) -> usize {
        self.lines.len()
    }
    /// Nothing kept.
    pub fn is_empty(&self) -> bool {
        self.lines.is_empty()
    }
    /// The newest `n` lines, oldest first, decoded lossily.
    pub fn last(&self, n: usize) -> Vec<String> {
        let skip = self.lines.len().saturating_sub(n);
        self.lines.iter().skip(skip).map(|(_, b)| String::from_utf8_lossy(b).into_owned()).collect()
    }
}

/// How a child ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ended {
    /// When it was noticed.
    pub at: Time,
    /// The exit code, when it exited.
    pub code: Option<i32>,
    /// The signal, when one ended it.
    pub signal: Option<i32>,
}

impl Ended {
    /// `exit code 137` or `signal 9 (SIGKILL)`: the two are told apart.
    pub fn words(self) -> String {
        match (self.code, self.signal) {
            (_, Some(9)) => "signal 9 (SIGKILL)".into(),
            (_, Some(11)) => "signal 11 (SIGSEGV)".into(),
            (_, Some(6)) => "signal 6 (SIGABRT)".into(),
            (_, Some(15)) => "signal 15 (SIGTERM)".into(),
            (_, Some(s)) => format!("signal {s}"),
            (Some(c), None) => format!("exit code {c}"),
            (None, None) => "an unknown end".into(),
        }
    }
}

/// One life of a child process, or one HTTP session.
#[derive(Debug, Clone)]
pub struct Generation {
    /// From 1.
    pub n: u32,
    /// When it was opened.
    pub opened_at: Time,
    /// How it is reached.
    pub transport: Transport,
    /// The HTTP session id, when the server gave one.
    pub session_id: Option<String>,
    /// How the child ended.
    pub ended: Option<Ended>,
    /// The child's stderr.
    pub stderr: Tail,
    /// Lines on stdout that are not JSON-RPC.
    pub noise: Tail,
    /// Noise lines seen in all.
    pub noise_seen: u64,
    /// The child closed stdout and lives on.
    pub stdout_closed: bool,
}

/// Where the link stands, since when and why.
#[derive(Debug, Clone)]
pub struct Link {
    /// The state.
    pub state: LinkState,
    /// Since when.
    pub since: Time,
    /// Why, in words.
    pub why: String,
}

/// What the server calls itself.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ServerInfo {
    /// Its name.
    pub name: String,
    /// Its version.
    pub version: String,
}

/// One HTTP exchange as far as the fold needs it.
#[derive(Debug, Clone, Default)]
pub(super) struct Exchange {
    pub call: Option<CallId>,
    pub rpc_id: Option<Id>,
    pub status: Option<u16>,
    pub content_type: Option<String>,
    pub www_authenticate: Option<String>,
    pub with_session: bool,
}

/// A request of ours that waits for an answer and is no `tools/call`.
#[derive(Debug, Clone)]
enum Waiting {
    Initialize,
    Discover,
    Tools { first: bool },
    Other,
}

/// Everything redial knows of an endpoint. See the module's head.
#[derive(Debug, Clone, Default)]
pub struct Session {
    /// All lives, oldest first.
    pub generations: Vec<Generation>,
    /// All calls by id (the sequence number of their sending).
    pub calls: BTreeMap<CallId, Call>,
    /// The link; `None` before anything happened.
    pub link: Option<Link>,
    /// The tools as this connection lists them.
    pub tools: ToolList,
    /// The generation `tools` was listed on; 0 when never.
    pub tools_generation: u32,
    /// The server said that its list changed and it hasn't been read again.
    pub tools_stale: bool,
    /// The server's name and version.
    pub server: Option<ServerInfo>,
    /// The protocol revision in use.
    pub protocol: Option<String>,
    /// The server's instructions or capabilities are not kept; its answers to nothing are counted.
    pub strays: u64,
    /// Lines worth telling, newest last (bounded).
    pub notes: VecDeque<(Time, String)>,
    /// The newest sequence number folded in.
    pub seq: u64,
    pub(super) exchanges: HashMap<u64, Exchange>,
    waiting: HashMap<(u32, Id), Waiting>,
    by_id: HashMap<(u32, Id), CallId>,
}

impl Session {
    /// The current generation.
    pub fn generation(&self) -> Option<&Generation> {
        self.generations.last()
    }

    /// The generation numbered `n`.
    pub fn generation_n(&self, n: u32) -> Option<&Generation> {
        self.generations.iter().find(|g| g.n == n)
    }

    /// Calls without an answer yet, oldest first.
    pub fn pending(&self) -> impl Iterator<Item = &Call> {
        self.calls.values().filter(|c| c.is_pending())
    }

    /// The calls of one request, oldest first.
    pub fn calls_of<'a>(&'a self, request_id: &'a str) -> impl Iterator<Item = &'a Call> {
        self.calls.values().filter(move |c| c.request_id.as_deref() == Some(request_id))
    }

    /// The link is in `Ready`.
    pub fn is_ready(&self) -> bool {
        self.link.as_ref().is_some_and(|l| l.state == LinkState::Ready)
    }

    /// Folds one event in.
    pub fn apply(&mut self, event: &Event) {
        self.seq = event.seq;
        match &event.kind {
            Kind::Opened { transport } => self.open(event, transport),
            Kind::Sent { raw, exchange, .. } => self.sent(event, raw, *exchange),
            Kind::NotWritten { sent, why, left } => {
                settle::not_written(self, event.at, *sent, why, *left)
            }
            Kind::Received { raw, exchange } => self.received(event, raw, *exchange),
            Kind::Noise { raw, .. } => {
                if let Some(g) = self.generation_mut(event.generation) {
                    g.noise_seen += 1;
                    g.noise.push(event.at, raw);
                }
            }
            Kind::Stderr { raw } => {
                if let Some(g) = self.generation_mut(event.generation) {
                    g.stderr.push(event.at, raw);
                }
            }
            Kind::Http { exchange, what } => self.http(event, *exchange, what),
            Kind::StdoutClosed => {
                if let Some(g) = self.generation_mut(event.generation) {
                    g.stdout_closed = true;
                }
                settle::generation_over(
                    self,
                    event,
                    "the server closed its stdout without answering",
                );
            }
            Kind::Exit { code, signal } => {
                let ended = Ended { at: event.at, code: *code, signal: *signal };
                if let Some(g) = self.generation_mut(event.generation) {
                    g.ended = Some(ended);
                }
                let why = format!("the server process died ({}) before it answered", ended.words());
                settle::generation_over(self, event, &why);
            }
            Kind::Agreed { protocol } => self.protocol = Some(protocol.clone()),
            Kind::State { state, why } => {
                self.link = Some(Link { state: *state, since: event.at, why: why.clone() });
            }
            Kind::Note(Note::TimedOut { call, after_s }) => {
                settle::given_up(self, event.at, *call, &format!("no answer within {after_s} s"));
            }
            Kind::Note(Note::Cancelled { call }) => {
                settle::given_up(
                    self,
                    event.at,
                    *call,
                    "cancelled here; the server may finish it all the same",
                );
            }
            Kind::Note(Note::Text(text)) => self.note(event.at, text.clone()),
        }
    }

    pub(super) fn note(&mut self, at: Time, text: String) {
        if self.notes.len() >= 200 {
            self.notes.pop_front();
        }
        self.notes.push_back((at, text));
    }

    fn generation_mut(&mut self, n: u32) -> Option<&mut Generation> {
        self.generations.iter_mut().rev().find(|g| g.n == n)
    }

    fn open(&mut self, event: &Event, transport: &Transport) {
        self.generations.push(Generation {
            n: event.generation,
            opened_at: event.at,
            transport: transport.clone(),
            session_id: None,
            ended: None,
            stderr: Tail::default(),
            noise: Tail::default(),
            noise_seen: 0,
            stdout_closed: false,
        });
        self.tools = ToolList::default();
        self.tools_generation = 0;
        self.tools_stale = false;
    }

    fn sent(&mut self, event: &Event, raw: &Bytes, exchange: Option<u64>) {
        let text = String::from_utf8_lossy(raw);
        let Frame::Request { id, method, params } = Frame::parse(&text) else { return };
        let key = (event.generation, id.clone());
        let mut call = None;
        let waiting = match method.as_str() {
            "tools/call" => {
                let params = params.unwrap_or("{}");
                let args = raw::get(params, "arguments").map(str::to_owned);
                let request_id = args.as_deref().and_then(|a| raw::get_str(a, "request_id"));
                self.calls.insert(
                    event.seq,
                    Call {
                        id: event.seq,
                        generation: event.generation,
                        rpc_id: id.clone(),
                        tool: raw::get_str(params, "name").unwrap_or_default(),
                        args,
                        request_id,
                        sent_at: event.at,
                        sent: 1,
                        rounds: 1,
                        exchange,
                        accepted: false,
                        settled: None,
                        extra_answers: 0,
                    },
                );
                self.by_id.insert(key.clone(), event.seq);
                call = Some(event.seq);
                None
            }
            "initialize" => Some(Waiting::Initialize),
            "server/discover" => Some(Waiting::Discover),
            "tools/list" => {
                let first = params.and_then(|p| raw::get(p, "cursor")).is_none();
                Some(Waiting::Tools { first })
            }
            _ => Some(Waiting::Other),
        };
        if let Some(w) = waiting {
            self.waiting.insert(key, w);
        }
        if let Some(x) = exchange {
            let with_session =
                self.generation_n(event.generation).is_some_and(|g| g.session_id.is_some());
            let entry = self.exchanges.entry(x).or_default();
            entry.call = call;
            entry.rpc_id = Some(id);
            entry.with_session = with_session;
        }
    }

    fn received(&mut self, event: &Event, raw: &Bytes, exchange: Option<u64>) {
        let text = String::from_utf8_lossy(raw);
        match Frame::parse(&text) {
            Frame::Response { id, answer } => self.response(event, id, answer, exchange),
            Frame::Notification { method, .. } if method == "notifications/tools/list_changed" => {
                self.tools_stale = true;
            }
            Frame::Malformed { id, why } => settle::malformed(self, event, id, exchange, why),
            Frame::Request { .. } | Frame::Notification { .. } | Frame::NotRpc => {}
        }
    }

    fn response(
        &mut self,
        event: &Event,
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
                settle::refusing_body(self, event.at, call, x, &answer);
            } else if let Some(id) = &x.rpc_id {
                self.waiting.remove(&(event.generation, id.clone()));
            }
            return;
        }
        let Some(id) = id else {
            return self.stray(event, "an error without an id", exchange, &answer);
        };
        // Clients that share a generation (2026-07-28 over HTTP) may use the same ids at the same time: the
        // exchange tells whose answer it is.
        if let Some(call) = x.as_ref().and_then(|x| x.call)
            && self.calls.get(&call).is_some_and(|c| c.rpc_id == id)
        {
            return settle::answered(self, event.at, call, &answer);
        }
        let key = (event.generation, id);
        if let Some(call) = self.by_id.get(&key).copied() {
            return settle::answered(self, event.at, call, &answer);
        }
        let Some(waiting) = self.waiting.remove(&key) else {
            return self.stray(event, "an answer to nothing that was asked", exchange, &answer);
        };
        let Answer::Result(result) = answer else { return };
        match waiting {
            Waiting::Initialize => {
                self.server = raw::get(result, "serverInfo").map(server_info);
            }
            Waiting::Discover => {
                self.server =
                    raw::get_path(result, &["_meta", "io.modelcontextprotocol/serverInfo"])
                        .map(server_info)
                        .or(self.server.take());
            }
            Waiting::Tools { first } => {
                if first {
                    self.tools = ToolList::default();
                }
                self.tools.add_page(result);
                self.tools_generation = event.generation;
                self.tools_stale = false;
                self.tools.complete =
                    raw::get_str(result, "nextCursor").is_none_or(|c| c.is_empty());
            }
            Waiting::Other => {}
        }
    }

    /// An answer that matches no id. With one call pending and nothing else to tie it to, an error is tied to
    /// that call only in words: it settles nothing.
    fn stray(&mut self, event: &Event, what: &str, exchange: Option<u64>, answer: &Answer<'_>) {
        self.strays += 1;
        if let Some(call) = exchange.and_then(|x| self.exchanges.get(&x)).and_then(|x| x.call)
            && let Answer::Error { .. } = answer
        {
            // On its own HTTP exchange an error can belong to nobody else.
            return settle::answered(self, event.at, call, answer);
        }
        let said = match answer {
            Answer::Error { message, .. } => format!("{what}: {message}"),
            Answer::Result(_) => what.to_owned(),
        };
        self.note(event.at, said);
    }

    fn http(&mut self, event: &Event, exchange: u64, what: &Http) {
        match what {
            Http::Request { .. } => {}
            Http::Status { status, content_type, session, www_authenticate, .. } => {
                let call = {
                    let x = self.exchanges.entry(exchange).or_default();
                    x.status = Some(*status);
                    x.content_type = content_type.clone();
                    x.www_authenticate = www_authenticate.clone();
                    x.call
                };
                // Only a successful initialize may name the session; the client says so with a state event.
                if let (Some(s), true) = (session, (200..300).contains(status))
                    && let Some(g) = self.generation_mut(event.generation)
                {
                    g.session_id.get_or_insert_with(|| s.clone());
                }
                if let Some(c) = call.and_then(|c| self.calls.get_mut(&c)) {
                    c.accepted = (200..300).contains(status);
                }
            }
            Http::Redirected { status, to } => {
                let call = self.exchanges.get(&exchange).and_then(|x| x.call);
                if let Some(c) = call.and_then(|c| self.calls.get_mut(&c)) {
                    c.sent += 1;
                }
                self.note(event.at, format!("HTTP {status}: redirected to {to}"));
            }
            Http::Body { raw } => settle::plain_body(self, event.at, exchange, raw),
            Http::End => settle::exchange_over(self, event.at, exchange, None),
            Http::Failed { why, connected } => {
                settle::exchange_over(self, event.at, exchange, Some((why, *connected)))
            }
        }
    }
}

fn server_info(text: &str) -> ServerInfo {
    ServerInfo {
        name: raw::get_str(text, "name").unwrap_or_default(),
        version: raw::get_str(text, "version").unwrap_or_default(),
    }
}
