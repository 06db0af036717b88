//! The fold: one pass over the facts of a trace, in the order they happened, in bounded memory. Says nothing to
//! anybody; [`Audit::findings`] gives what was found.
//!
//! `calls` settles calls and judges what their ends mean, `judge` the handles in them, `http` what statuses and ends
//! of exchanges prove.

use super::bounds::Forgot;
use super::contract::Contracts;
use super::fact::{At, Fact, Speaker};
use super::finding::{Finding, Findings, Kind};
use super::handle::{Handles, Who};
use super::infer::Values;
use super::lean;
use super::lost::Unknowns;
use crate::time::Time;
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet, VecDeque};

/// Requests that wait for an answer at the same time; older ones are let go.
const WAITING: usize = 100_000;
/// Calls whose id was used again.
const SHADOWED: usize = 1_000;
/// JSON-RPC ids remembered.
const IDS: usize = 1_000_000;
/// A clock that went back by less is the order in which threads wrote.
const CLOCK_SLACK_US: i64 = 1_000_000;

/// How a trace is audited.
#[derive(Debug, Clone, Default)]
pub struct Options {
    /// What is agreed; without it handles are inferred.
    pub contracts: Option<Contracts>,
    /// The server's look-up tool.
    pub look_up: String,
    /// Values that come back as arguments are remembered, to propose contracts.
    pub propose: bool,
    /// What became of each request_id is remembered, to join a ledger to it.
    pub join: bool,
}

/// One life of the server, or one HTTP session.
#[derive(Debug, Clone, Default)]
pub(super) struct Life {
    pub http: bool,
    /// It has HTTP sessions, so that it is one client's.
    pub session: bool,
    pub client: u32,
    /// Its answers come on one stream, whatever exchange asked: this one.
    pub apart: Option<u64>,
    /// Nothing more comes on it: it died, its session was lost or closed.
    pub over: bool,
    /// Requests of the client that wait.
    pub waiting: usize,
    /// When it began and ended, for the page.
    pub opened: At,
    pub ended: Option<String>,
}

/// Names a request: the life it was sent on, its session, its id.
pub(super) type Key = (u32, u64, u64);

/// A call that waits for its answer.
#[derive(Debug, Clone)]
pub(super) struct Open {
    pub call: u64,
    pub at: At,
    pub tool: u32,
    /// Its request_id.
    pub request: Option<Box<str>>,
    /// The same, only where the arguments' top level names it: what an answer to it must not contradict.
    pub named: Option<Box<str>>,
    /// Tool and arguments without the request_id.
    pub fingerprint: u64,
    pub who: Who,
    pub uses: Vec<Use>,
    /// Numbers of all its arguments: what only comes back was not made.
    pub given: Vec<u64>,
    pub exchange: Option<u64>,
    pub rounds: u32,
    pub given_up: Option<&'static str>,
    /// It was made before 2026-07-28, where `resultType` is a member like any other.
    pub legacy: bool,
}

/// A handle among the arguments.
#[derive(Debug, Clone)]
pub(super) struct Use {
    pub name: u32,
    pub value: Box<str>,
    /// Its record.
    pub made: Option<usize>,
}

/// What waits for an answer.
#[derive(Debug, Clone)]
pub(super) enum Waits {
    Call(Box<Open>),
    Tools,
    Other,
}

/// One HTTP exchange.
#[derive(Debug, Clone, Default)]
pub(super) struct Exchange {
    pub key: Option<Key>,
    pub id: Box<str>,
    pub status: Option<u16>,
    pub with_session: bool,
    pub modern: bool,
    pub speaker: Speaker,
    pub get: bool,
    /// It asks for the rest of a stream that was cut.
    pub resumes: bool,
    /// It is answered with a stream of events, on which other messages may come as well.
    pub stream: bool,
    /// It was redirected at least once.
    pub redirected: bool,
}

/// What is known of a tool.
#[derive(Debug, Clone, Default)]
pub struct Tool {
    /// Its name.
    pub name: String,
    /// It says that it only reads.
    pub reads: bool,
    /// The server lists it.
    pub listed: bool,
    /// Calls.
    pub calls: u64,
    /// Answered with a result that is no error.
    pub ok: u64,
    /// Answered with an error.
    pub failed: u64,
    /// Not answered, or not known.
    pub unknown: u64,
    /// Calls without any handle.
    pub bare: u64,
    /// Handles that it made (or told of), by name's number, with how many values.
    pub makes: BTreeMap<u32, u64>,
    /// Handles that it was given.
    pub uses: BTreeMap<u32, u64>,
    /// It returned a value twice in one life of the server: it lists, and doesn't make.
    pub repeats: bool,
}

/// What needs a connection that stays.
#[derive(Debug, Clone)]
pub(super) struct Need {
    pub count: u64,
    pub at: At,
}

/// The whole.
#[derive(Debug, Clone)]
pub struct Audit {
    pub(super) options: Options,
    /// Of what not all is kept.
    pub forgot: BTreeSet<Forgot>,
    pub(super) names: Vec<String>,
    pub(super) names_by: HashMap<String, u32>,
    /// Tools in the order they were met.
    pub tools: Vec<Tool>,
    pub(super) tools_by: HashMap<String, u32>,
    pub(super) clients: Vec<String>,
    pub(super) lives: HashMap<u32, Life>,
    pub(super) waits: HashMap<Key, Waits>,
    /// In the order they were sent, to let the oldest go.
    order: VecDeque<Key>,
    /// Answered with a wish for more input: the next round goes on with it.
    pub(super) rounds: Vec<Open>,
    /// Calls whose id was used again before they were answered.
    pub(super) shadowed: Vec<Open>,
    /// Events that sent calls, for notes that name them.
    pub(super) sent: HashMap<u64, Key>,
    pub(super) exchanges: HashMap<u64, Exchange>,
    /// All handles.
    pub handles: Handles,
    pub(super) unknowns: Unknowns,
    /// The arguments of each request_id, by tool: their number, and which call.
    pub(super) keys: HashMap<u64, (u64, u64)>,
    pub(super) key_order: VecDeque<u64>,
    pub(super) needs: BTreeMap<(&'static str, String), Need>,
    pub(super) values: Option<Values>,
    pub(super) asked: super::join::Asked,
    /// request_ids whose work a joined ledger names.
    pub(super) named: HashSet<Box<str>>,
    pub(super) found: Findings,
    /// Values under these names were replaced when the trace was written.
    pub(super) hidden: HashSet<u32>,
    /// Calls so far.
    pub calls: u64,
    /// Events so far.
    pub events: u64,
    /// Events that the tap could not write.
    pub lost: u64,
    /// Lines that could not be read.
    pub bad: u64,
    clock: Option<Time>,
    /// The revision that was agreed on is one before 2026-07-28.
    pub(super) legacy: bool,
    /// JSON-RPC ids of the client by life, and on which line.
    ids: HashMap<u64, u64>,
    /// Unminted values that were told already.
    pub(super) told: HashSet<u64>,
}

impl Audit {
    /// Nothing folded in yet.
    pub fn new(options: Options) -> Audit {
        Audit {
            forgot: BTreeSet::new(),
            values: options.propose.then(Values::default),
            options,
            names: Vec::new(),
            names_by: HashMap::new(),
            tools: Vec::new(),
            tools_by: HashMap::new(),
            clients: Vec::new(),
            lives: HashMap::new(),
            waits: HashMap::new(),
            order: VecDeque::new(),
            rounds: Vec::new(),
            shadowed: Vec::new(),
            sent: HashMap::new(),
            exchanges: HashMap::new(),
            handles: Handles::default(),
            unknowns: Unknowns::default(),
            keys: HashMap::new(),
            key_order: VecDeque::new(),
            needs: BTreeMap::new(),
            asked: super::join::Asked::default(),
            named: HashSet::new(),
            found: Findings::default(),
            hidden: HashSet::new(),
            calls: 0,
            events: 0,
            lost: 0,
            bad: 0,
            clock: None,
            legacy: false,
            ids: HashMap::new(),
            told: HashSet::new(),
        }
    }

    /// Folds one fact in.
    pub fn apply(&mut self, at: At, fact: Fact<'_>) {
        self.events += 1;
        if let Some(t) = at.time {
            self.clock(at, t);
        }
        match fact {
            Fact::Opened { http } => self.opened(at, http),
            Fact::Sent { frame, exchange, of, speaker } => {
                self.client_said(at, &frame, exchange, of, speaker);
            }
            Fact::Received { frame, exchange } => self.server_said(at, &frame, exchange),
            Fact::Traced { tool, args, result, error } => {
                self.traced(at, &tool, args, result, error);
            }
            Fact::Request { exchange, method, speaker, resumes } => {
                if self.exchanges.len() > WAITING {
                    self.exchanges.clear();
                    self.forgot.insert(Forgot::Exchanges);
                }
                let x = self.exchanges.entry(exchange).or_default();
                (x.speaker, x.get) = (speaker, method == "GET");
                x.resumes |= resumes;
                if method == "DELETE"
                    && let Some(life) = self.lives.get_mut(&at.generation)
                {
                    life.over = true;
                    life.ended.get_or_insert_with(|| "its session was closed by the client".into());
                }
            }
            Fact::Status { exchange, status, session, stream } => {
                let x = self.exchanges.entry(exchange).or_default();
                x.status.get_or_insert(status);
                x.stream |= stream;
                if session && let Some(life) = self.lives.get_mut(&at.generation) {
                    life.session = true;
                }
            }
            Fact::Resumes { exchange } => {
                self.exchanges.entry(exchange).or_default().resumes = true;
            }
            Fact::Apart { exchange } => {
                self.lives.entry(at.generation).or_default().apart = Some(exchange);
            }
            Fact::Noise { text } => self.no_json(at, &text),
            Fact::NoAnswer { sent, why } => {
                if let Some(key) = self.sent.get(&sent).copied() {
                    self.not_known(key, format!("answered with a line that is no JSON: {why}"));
                }
            }
            Fact::Unreadable { exchange, why } => self.unreadable(exchange, why),
            Fact::Redirected { exchange } => {
                if let Some(x) = self.exchanges.get_mut(&exchange) {
                    x.redirected = true;
                }
            }
            Fact::Agreed { legacy } => self.legacy = legacy,
            Fact::Body { exchange, text } => self.plain_body(at, exchange, &text),
            Fact::Over { exchange, failed } => self.exchange_over(at, exchange, failed),
            Fact::Ended(why) => self.life_over(at, &why),
            Fact::NotWritten { sent, left } => self.not_written(at, sent, left),
            Fact::GivenUp { sent, why } => {
                if let Some(key) = self.sent.get(&sent).copied() {
                    self.given_up(key, why);
                }
            }
            Fact::Lost(n) => self.lost += n,
            Fact::Bad(why) => {
                self.events -= 1;
                self.bad += 1;
                let message = format!("line {} could not be read: {why}", at.line);
                let mut f = Finding::new(Kind::BadLine, message).value(at.line.to_string());
                f.line = at.line;
                self.found.add(f);
            }
            Fact::Other => {}
        }
    }

    fn clock(&mut self, at: At, now: Time) {
        if let Some(before) = self.clock
            && before.0 - now.0 > CLOCK_SLACK_US
        {
            let seconds = ((before.0 - now.0) as f64 / 1e6).round();
            let message = format!(
                "the clock of the trace went back by {seconds} s here: times before and after don't compare; the order of lines counts"
            );
            let f = Finding::new(Kind::ClockWentBack, message).value(format!("{seconds}"));
            self.add_at(at, f);
        }
        self.clock = Some(now);
    }

    pub(super) fn add_at(&mut self, at: At, mut f: Finding) {
        (f.line, f.seq, f.generation) = (at.line, at.seq, at.generation);
        self.found.add(f);
    }

    fn opened(&mut self, at: At, http: bool) {
        if !http {
            // One process at a time sits behind a tap on stdio: what an earlier one owes it can't pay any more.
            let older: Vec<u32> =
                self.lives.iter().filter(|(_, l)| !l.http && !l.over).map(|(n, _)| *n).collect();
            for n in older {
                let why = "another server process took its place, and its end was not recorded";
                self.life_over(At { generation: n, ..at }, why);
            }
        }
        let life = self.lives.entry(at.generation).or_default();
        (life.http, life.opened) = (http, at);
    }

    pub(super) fn put(&mut self, key: Key, waits: Waits) {
        if let Some(life) = self.lives.get_mut(&key.0) {
            life.waiting += 1;
        }
        if let Waits::Call(open) = &waits {
            if self.sent.len() >= WAITING {
                self.sent.clear();
                self.forgot.insert(Forgot::Waiting);
            }
            self.sent.insert(open.at.seq, key);
        }
        if let Some(old) = self.waits.insert(key, waits) {
            // Its id was used again: no answer can be told to be its.
            if let Some(life) = self.lives.get_mut(&key.0) {
                life.waiting = life.waiting.saturating_sub(1);
            }
            if let Waits::Call(old) = old {
                if self.shadowed.len() < SHADOWED {
                    self.sent.remove(&old.at.seq);
                    self.shadowed.push(*old);
                } else {
                    self.forgot.insert(Forgot::Shadowed);
                }
            }
        }
        self.order.push_back(key);
        while self.waits.len() > WAITING
            && let Some(old) = self.order.pop_front()
        {
            if self.take(old).is_some() {
                self.forgot.insert(Forgot::Waiting);
            }
        }
        // What was answered stands there too.
        if self.order.len() > 4 * WAITING {
            self.order.retain(|k| self.waits.contains_key(k));
        }
    }

    pub(super) fn take(&mut self, key: Key) -> Option<Waits> {
        let waits = self.waits.remove(&key)?;
        if let Some(life) = self.lives.get_mut(&key.0) {
            life.waiting = life.waiting.saturating_sub(1);
        }
        if let Waits::Call(open) = &waits {
            self.sent.remove(&open.at.seq);
        }
        Some(waits)
    }

    /// Notes a JSON-RPC id of the client.
    pub(super) fn used_id(&mut self, at: At, key: Key, raw_id: &str) {
        let Some(life) = self.lives.get(&key.0) else { return };
        // Without sessions clients share this: their ids say nothing.
        if life.http && !life.session {
            return;
        }
        if self.ids.len() >= IDS {
            self.ids.clear();
            self.forgot.insert(Forgot::Ids);
        }
        let number = lean::mix(u64::from(key.0), lean::mix(key.1, key.2));
        let earlier = self.ids.insert(number, at.line);
        if let Some(line) = earlier {
            let id = lean::text(raw_id).unwrap_or(raw_id.into());
            let message = format!(
                "the JSON-RPC id {id} was used before on this life of the server (line {line}): an answer can't be told from the other's"
            );
            let f = Finding::new(Kind::DuplicateRequestId, message).value(id.into_owned());
            self.add_at(at, f);
        }
    }
}
