//! The fold over the stream that everything shown is made of: generations, calls, tools, link.
//!
//! Pure and total: any event in any order is taken, nothing is cleared when a server dies. What came in is read
//! in `answers`, `exchange` and `task`; the rules by which a call is settled are in `settle`.

use super::belongs::Disowned;
use super::call::{Call, CallId};
use super::event::{Event, Kind, LinkState, Note, Transport};
use super::exchange::Exchange;
pub use super::generation::{Ended, Generation, Link, ServerInfo, Tail};
use super::generation::{GOES_ON, outlived_words, stopped_words};
use super::strange::Block;
use super::text::Text;
use super::tools::ToolList;
use super::{ends, refusal, settle, strange};
use crate::json::raw;
use crate::procs::Left;
use crate::time::Time;
use crate::wire::id::Id;
use std::collections::{BTreeMap, HashMap, VecDeque};

/// How many lines worth telling are kept.
const NOTES: usize = 200;
/// Characters kept of each.
const NOTE_CHARS: usize = 2_000;

/// What a server does that is not MCP and keeps its answers from being understood.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Misfit {
    /// The generation that did it.
    pub generation: u32,
    /// In words.
    pub words: String,
    /// Its ids don't match (else: its framing).
    pub ids: bool,
}

/// A request of ours that waits for an answer and is no `tools/call`.
#[derive(Debug, Clone)]
pub(super) enum Asked {
    Initialize,
    Discover,
    Tools {
        /// The first page, asked for by the event with this number; `None` for later pages.
        first: Option<u64>,
    },
    Task {
        call: CallId,
        ends: bool,
    },
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
    /// The last event that said so, and the one that asked for the first page of `tools`.
    pub(super) tools_changed: u64,
    pub(super) tools_asked: u64,
    /// A list that is being read again, as far as it has come, and the event that asked for it.
    pub(super) staged: Option<(ToolList, u64)>,
    /// The server's name and version.
    pub server: Option<ServerInfo>,
    /// The raw capabilities that it declared, as sent.
    pub capabilities: Option<Text>,
    /// The protocol revision in use.
    pub protocol: Option<String>,
    /// Answers to nothing that was asked.
    pub strays: u64,
    /// Requests of the server to us, by method.
    pub asked_of_us: BTreeMap<String, u64>,
    /// What makes this server hard or impossible to understand.
    pub misfit: Option<Misfit>,
    /// Lines worth telling, newest last (bounded); a line that repeats is counted, not listed again.
    pub notes: VecDeque<(Time, String)>,
    /// Notes that are no longer kept.
    pub notes_dropped: u64,
    /// When the server's last message came in. Over HTTP nothing else tells that it still is there.
    pub heard_at: Option<Time>,
    /// The newest sequence number folded in.
    pub seq: u64,
    last_note: (String, u64),
    /// Bytes of the results that calls keep.
    pub(super) results_bytes: usize,
    pub(super) block: Option<Block>,
    pub(super) exchanges: HashMap<u64, Exchange>,
    /// What waits for an answer and is no call, with the HTTP exchange it was sent on.
    pub(super) waiting: HashMap<(u32, Id), (Asked, Option<u64>)>,
    pub(super) by_id: HashMap<(u32, Id), CallId>,
    /// Which call a later round belongs to, by the event that sent it.
    pub(super) rounds: HashMap<u64, CallId>,
    /// Generations that speak HTTP+SSE of 2024-11-05: every answer comes on the one stream that is listened on, which
    /// is this exchange. What answers a POST there is a receipt.
    pub(super) answers_apart: HashMap<u32, u64>,
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

    /// Whether the server declared the capability at `path`, e.g. `["tools", "listChanged"]`. A member that is
    /// there and neither `false` nor null counts.
    pub fn declares(&self, path: &[&str]) -> bool {
        let value = self.capabilities.as_deref().and_then(|c| raw::get_path(c, path));
        value.is_some_and(|v| !raw::is_null(v) && raw::as_bool(v) != Some(false))
    }

    /// Folds one event in.
    pub fn apply(&mut self, event: &Event) {
        self.seq = event.seq;
        let at = event.at;
        match &event.kind {
            Kind::Opened { transport } => self.open(event, transport),
            Kind::Sent { raw, exchange, purpose } => self.sent(event, raw, *exchange, *purpose),
            Kind::NotWritten { sent, why, left } => {
                let call = self.rounds.get(sent).copied().unwrap_or(*sent);
                ends::not_written(self, at, call, why, *left);
            }
            Kind::Received { raw, exchange } => {
                self.heard_at = Some(at);
                self.received(event, raw, *exchange);
            }
            Kind::Noise { raw, cut } => {
                if let Some(g) = self.generation_mut(event.generation) {
                    g.noise_seen += 1;
                    g.noise.push(at, raw);
                }
                strange::noise(self, event, raw, *cut);
            }
            Kind::Stderr { raw } => {
                let newest = self.calls.values().next_back();
                let called = newest.is_some_and(|c| c.generation >= event.generation);
                if let Some(g) = self.generation_mut(event.generation) {
                    if !called {
                        g.booting(at, raw);
                    }
                    g.stderr.push(at, raw);
                }
            }
            Kind::Http { exchange, what } => self.http(event, *exchange, what),
            Kind::StdoutClosed => {
                if let Some(g) = self.generation_mut(event.generation) {
                    g.stdout_closed = true;
                }
                let why = "the server closed its stdout without answering; its process still runs";
                ends::generation_over(self, event, why);
            }
            Kind::Exit { code, signal, left } => {
                let g = self.generation_mut(event.generation);
                let elsewhere = g.as_ref().is_some_and(|g| g.is_elsewhere());
                let left = match left {
                    Left::Nobody if elsewhere => Left::Perhaps,
                    left => left.clone(),
                };
                let launcher = g.as_ref().is_some_and(|g| g.outlived);
                let gone_at = (left == Left::Nobody && !launcher).then_some(at);
                let ended = Ended { at, code: *code, signal: *signal, gone_at, launcher };
                let mut ending = None;
                let sentence = ended.sentence(&left);
                if let Some(g) = g {
                    g.ended = Some(ended);
                    g.left = left;
                    ending.clone_from(&g.ending);
                }
                let why = match (ending, gone_at) {
                    (Some(why), _) => {
                        format!(
                            "{why}: redial ended the server before it answered ({})",
                            ended.how()
                        )
                    }
                    (None, Some(_)) => {
                        format!("the server process died ({}) before it answered", ended.words())
                    }
                    (None, None) => format!("no answer: {sentence}"),
                };
                ends::generation_over(self, event, &why);
            }
            Kind::AllGone => {
                let g = self.generation_mut(event.generation).filter(|g| !g.is_elsewhere());
                // Of somebody who held its pipes and was never seen no end was seen either.
                if let Some(g) = g.filter(|g| g.left != Left::Perhaps)
                    && let Some(ended) = &mut g.ended
                {
                    ended.launcher |= matches!(g.left, Left::These(_));
                    ended.gone_at.get_or_insert(at);
                    g.left = Left::Nobody;
                }
            }
            Kind::Agreed { protocol } => self.protocol = Some(protocol.clone()),
            Kind::State { state, why } => {
                self.link = Some(Link { state: *state, since: at, why: why.clone() });
            }
            Kind::Note(note) => self.noted(event, note),
        }
    }

    fn noted(&mut self, event: &Event, note: &Note) {
        let at = event.at;
        match note {
            Note::Ending { why } => {
                if let Some(g) = self.generation_mut(event.generation) {
                    g.ending.get_or_insert_with(|| why.clone());
                }
            }
            Note::Outlived { code, signal, left } => {
                self.note(at, outlived_words(*code, *signal, left));
                if let Some(g) = self.generation_mut(event.generation) {
                    g.outlived = true;
                }
            }
            Note::Stopped { who } => {
                let words = who.as_ref().map(stopped_words);
                if let Some(g) = self.generation_mut(event.generation) {
                    g.stopped.clone_from(who);
                }
                self.note(at, words.unwrap_or_else(|| GOES_ON.into()));
            }
            Note::Stdin { from, full } => self.stdin(event.generation, *from, *full),
            Note::TimedOut { call, after_s } => ends::timed_out(self, at, *call, *after_s),
            Note::Cancelled { call } => {
                ends::given_up(
                    self,
                    at,
                    *call,
                    "cancelled here; the server may finish it all the same",
                );
            }
            Note::StoppedWaiting { call } => {
                let why = "no longer waited for here; the server was not told, and a late answer is still taken";
                ends::given_up(self, at, *call, why);
            }
            Note::Limit { call, limit_s, extends } => {
                if let Some(c) = self.calls.get_mut(call) {
                    c.live.limit_s = Some(*limit_s);
                    c.live.limit_extends = *extends;
                }
            }
            Note::NoAnswer { call, why } => {
                self.disown(at, *call, Disowned::NoJson(why.clone()));
            }
            Note::LeftOpen { call, why } => settle::left_open(self, at, *call, why),
            Note::Remark { call, text } => {
                if let Some(c) = self.calls.get_mut(call) {
                    c.live.remark = Some(text.clone());
                }
            }
            Note::Text(text) => self.note(at, text.clone()),
        }
    }

    /// The pipe to the server's stdin is full from that frame on, or that frame went through.
    fn stdin(&mut self, generation: u32, from: u64, full: bool) {
        if let Some(g) = self.generation_mut(generation) {
            g.unread_from = full.then_some(from);
        }
        let newest: HashMap<CallId, u64> =
            self.rounds.iter().fold(HashMap::new(), |mut all, (seq, call)| {
                let newest = all.entry(*call).or_default();
                *newest = (*seq).max(*newest);
                all
            });
        for c in self.calls.values_mut().filter(|c| c.generation == generation && c.is_pending()) {
            let seq = newest.get(&c.id).copied().unwrap_or(c.id);
            c.live.unread = full && seq >= from;
            c.live.queued = full && seq > from;
        }
    }

    /// The event that sent the newest round of a call.
    pub fn newest_frame(&self, call: CallId) -> u64 {
        let rounds = self.rounds.iter().filter(|(_, of)| **of == call);
        rounds.map(|(seq, _)| *seq).max().unwrap_or(call)
    }

    /// Tells a line; one that was told just before is counted instead. What others wrote may be in it: it is bounded.
    pub(super) fn note(&mut self, at: Time, text: String) {
        let text = refusal::short(&text, NOTE_CHARS);
        if self.last_note.0 == text
            && let Some(last) = self.notes.back_mut()
        {
            self.last_note.1 += 1;
            *last = (at, format!("{text} (×{})", self.last_note.1));
            return;
        }
        if self.notes.len() >= NOTES {
            self.notes.pop_front();
            self.notes_dropped += 1;
        }
        self.last_note = (text.clone(), 1);
        self.notes.push_back((at, text));
    }

    /// Rounds of calls that are no longer kept.
    pub(super) fn forget_rounds(&mut self) {
        let calls = &self.calls;
        self.rounds.retain(|_, call| calls.contains_key(call));
    }

    pub(super) fn generation_mut(&mut self, n: u32) -> Option<&mut Generation> {
        self.generations.iter_mut().rev().find(|g| g.n == n)
    }

    /// The list that is being read is longer than what is kept of it: its other pages need not be asked for.
    pub fn tools_cut(&self) -> bool {
        self.staged.as_ref().map_or(&self.tools, |(list, _)| list).cut
    }

    fn open(&mut self, event: &Event, transport: &Transport) {
        self.generations.push(Generation {
            n: event.generation,
            opened_at: event.at,
            transport: transport.clone(),
            session_id: None,
            ended: None,
            left: Left::Perhaps,
            outlived: false,
            boot: Vec::new(),
            stderr: Tail::default(),
            noise: Tail::default(),
            noise_seen: 0,
            ending: None,
            unread_from: None,
            stdout_closed: false,
            stopped: None,
        });
        self.tools = ToolList::default();
        self.tools_generation = 0;
        self.tools_stale = false;
        self.staged = None;
        self.capabilities = None;
        self.block = None;
        // What an earlier life still says of its tools or its name is of no use now.
        self.waiting.retain(|_, (w, _)| matches!(w, Asked::Task { .. }));
    }
}
