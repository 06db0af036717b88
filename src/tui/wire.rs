//! What the screen shows of an endpoint: a bounded copy of the journal's fold, so that drawing never
//! holds the journal. Whatever didn't change since the last copy is shared with it.

use crate::inspect::recorded::{RECORDED_CALLS, RECORDED_GENERATIONS, ends_here};
use crate::journal::event::Transport;
use crate::journal::fold::{Ended, Generation, Link, Session};
use crate::journal::generation::Mute;
use crate::journal::waiting::{Waiting, waiting_on};
use crate::journal::{AnswerStatus, Call, CallId, Outcome, call};
use crate::json::raw;
use crate::time::Time;
use bytes::Bytes;
use std::sync::Arc;

/// Settled calls that are copied, newest first; the journal and the CLI have them all.
const SETTLED: usize = 300;
/// Notes that are copied.
const NOTES: usize = 20;
/// Characters of an answer or a reason kept for a row.
const PREVIEW: usize = 400;

/// How the endpoint is reached.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reach {
    /// A child process, by its command line.
    Stdio(String),
    /// A URL. Its stderr and other clients' calls can't be seen from here.
    Http(String),
    /// Not at all: the agent's session, by the file of its recording.
    Recording(String),
}

/// One call, cut to what a row and a detail show.
#[derive(Debug, Clone, PartialEq)]
pub struct CallView {
    pub id: CallId,
    pub generation: u32,
    pub tool: String,
    pub request_id: Option<String>,
    pub sent_at: Time,
    /// `None` while pending.
    pub settled_at: Option<Time>,
    pub outcome: Option<Outcome>,
    /// `pending`, or the outcome's word.
    pub word: &'static str,
    /// The answer's status, for `ok`.
    pub status: Option<&'static str>,
    pub why: String,
    pub late: bool,
    pub accepted: bool,
    /// The start of what the answer said.
    pub answer: String,
    /// The status word in an answer that doesn't say it is finished: `abandoned`, `running`.
    pub says: Option<String>,
    /// The call itself while it waits, and why its server can't say anything.
    pub open: Option<Arc<(Call, Mute)>>,
}

impl CallView {
    /// It is the agent's, from a recording: nothing here waits for it.
    pub fn is_agents(&self) -> bool {
        self.id >= RECORDED_CALLS
    }

    fn of(c: &Call, mute: Mute) -> CallView {
        let s = c.settled.as_ref();
        let answer = s.and_then(|s| {
            let text = s.result.as_deref().map(call::answer_shown).filter(|t| !t.is_empty());
            text.or_else(|| s.error.clone())
        });
        let open = s.filter(|s| s.answer_status.is_some_and(|a| a != AnswerStatus::Done));
        let says = open
            .and_then(|s| call::answer_object(s.result.as_deref()?))
            .and_then(|o| raw::get_str(&o, "status"));
        CallView {
            open: c.is_pending().then(|| Arc::new((c.clone(), mute))),
            says: says.map(|s| cut(&s)),
            id: c.id,
            generation: c.generation,
            tool: cut(&c.tool),
            request_id: c.request_id.clone(),
            sent_at: c.sent_at,
            settled_at: s.map(|s| s.at),
            outcome: c.outcome(),
            word: c.word(),
            status: s.and_then(|s| s.answer_status).map(|a| a.word()),
            why: s.map(|s| cut(&s.why)).unwrap_or_default(),
            late: s.is_some_and(|s| s.late),
            accepted: c.accepted,
            answer: answer.map(|a| cut(&a)).unwrap_or_default(),
        }
    }

    fn is_of(&self, c: &Call) -> bool {
        self.id == c.id && self.is_same(c)
    }

    fn is_same(&self, c: &Call) -> bool {
        self.outcome == c.outcome()
            && self.accepted == c.accepted
            && self.settled_at == c.settled.as_ref().map(|s| s.at)
    }

    /// What it waits for at `now`, in words, and how far it is in percent.
    pub fn waiting(&self, now: Time) -> Waiting {
        self.open.as_ref().map(|o| waiting_on(&o.0, &o.1, now)).unwrap_or_default()
    }

    /// Still waiting.
    pub fn is_pending(&self) -> bool {
        self.outcome.is_none()
    }
}

fn cut(text: &str) -> String {
    match text.char_indices().nth(PREVIEW) {
        Some((at, _)) => format!("{}…", &text[..at]),
        None => text.to_owned(),
    }
}

/// One life of the endpoint.
#[derive(Debug, Clone, PartialEq)]
pub struct GenerationView {
    pub n: u32,
    pub opened_at: Time,
    pub pid: Option<u32>,
    pub session: Option<String>,
    pub ended: Option<Ended>,
    /// The process of it that the kernel has stopped.
    pub stopped: Option<crate::procs::Process>,
    /// What it left behind then.
    pub left: crate::procs::Left,
    /// The kept stderr lines, oldest first.
    pub stderr: Arc<[(Time, Bytes)]>,
    /// Older stderr lines that are no longer kept.
    pub dropped: u64,
    /// What waited when it ended: `while idle`, `in a call: create_ticket night-011`.
    pub death: Option<String>,
    /// Lines on stdout that were no JSON-RPC.
    pub noise: u64,
    /// The last of those.
    pub last_noise: Option<Bytes>,
}

impl GenerationView {
    fn of(g: &Generation, session: &Session, before: Option<&GenerationView>) -> GenerationView {
        let same =
            before.filter(|b| b.dropped == g.stderr.dropped && b.stderr.len() == g.stderr.len());
        let stderr = match same {
            Some(b) => b.stderr.clone(),
            None => g.stderr.iter().map(|(at, line)| (at, line.clone())).collect(),
        };
        GenerationView {
            n: g.n,
            opened_at: g.opened_at,
            pid: match &g.transport {
                Transport::Stdio { pid, .. } => *pid,
                Transport::Http { .. } => None,
            },
            session: g.session_id.clone(),
            ended: g.ended,
            stopped: g.stopped.clone(),
            left: g.left.clone(),
            stderr,
            dropped: g.stderr.dropped,
            death: session.death(g.n),
            noise: g.noise_seen,
            last_noise: g.noise.iter().next_back().map(|(_, line)| line.clone()),
        }
    }
}

/// The endpoint as the screen shows it.
#[derive(Debug, Clone)]
pub struct WireView {
    pub reach: Reach,
    pub link: Option<Link>,
    /// The server's name and version.
    pub server: Option<String>,
    pub protocol: Option<String>,
    /// Oldest first.
    pub generations: Vec<GenerationView>,
    /// Pending ones oldest first, then settled ones newest first.
    pub calls: Vec<Arc<CallView>>,
    /// How many calls the journal has.
    pub calls_total: usize,
    /// How many tools are listed.
    pub tools: usize,
    /// When the server's last message came in.
    pub heard_at: Option<Time>,
    /// Lines worth telling, newest last, and how many older ones there were.
    pub notes: Vec<(Time, String)>,
    pub notes_dropped: u64,
    /// What the server asked of redial, and how often.
    pub asked_of_us: Vec<(String, u64)>,
    /// Answers to nothing that was asked.
    pub strays: u64,
}

impl WireView {
    /// Copies what is shown. `before` is the last copy. Costs the pending and the newest calls, not the text
    /// of all.
    pub fn of(session: &Session, reach: Reach, before: Option<&WireView>) -> WireView {
        let old = |c: &Call| {
            if c.is_pending() {
                return None;
            }
            let found = before?.calls.iter().find(|v| v.is_of(c))?;
            Some(found.clone())
        };
        let mute =
            |c: &Call| session.generation_n(c.generation).map(Generation::mute).unwrap_or_default();
        let view = |c: &Call| old(c).unwrap_or_else(|| Arc::new(CallView::of(c, mute(c))));
        let settled = session.calls.values().rev().filter(|c| !c.is_pending()).take(SETTLED);
        let calls = session.pending().map(view).chain(settled.map(view)).collect();
        let generations = session
            .generations
            .iter()
            .map(|g| {
                let b = before.and_then(|b| b.generations.iter().find(|v| v.n == g.n));
                GenerationView::of(g, session, b)
            })
            .collect();
        let skip = session.notes.len().saturating_sub(NOTES);
        WireView {
            reach,
            link: session.link.clone(),
            server: session.server.as_ref().map(|s| format!("{} {}", s.name, s.version)),
            protocol: session.protocol.clone(),
            generations,
            calls,
            calls_total: session.calls.len(),
            tools: session.tools.tools.len(),
            heard_at: session.heard_at,
            notes: session.notes.iter().skip(skip).cloned().collect(),
            notes_dropped: session.notes_dropped + skip as u64,
            asked_of_us: session.asked_of_us.iter().map(|(m, n)| (m.clone(), *n)).collect(),
            strays: session.strays,
        }
    }

    /// The agent's session, from its recording, numbered apart; `all` counts calls that are no longer kept too.
    /// `over`: nobody writes it any more, so that what waits will get no answer there.
    pub fn of_agent(
        session: &Session,
        all: usize,
        path: &std::path::Path,
        over: bool,
        before: Option<&WireView>,
    ) -> WireView {
        let reach = Reach::Recording(path.display().to_string());
        let kept = |id: CallId| before?.calls.iter().find(|v| v.id == id + RECORDED_CALLS);
        let mute =
            |c: &Call| session.generation_n(c.generation).map(Generation::mute).unwrap_or_default();
        let view = |c: &Call| {
            if let Some(v) = kept(c.id).filter(|v| !c.is_pending() && v.is_same(c)) {
                return v.clone();
            }
            let mut c = c.clone();
            if over && c.is_pending() {
                c.settled = Some(ends_here(&c));
            }
            let mute = mute(&c);
            c.id += RECORDED_CALLS;
            c.generation = c.generation.saturating_add(RECORDED_GENERATIONS);
            Arc::new(CallView::of(&c, mute))
        };
        let settled = session.calls.values().rev().filter(|c| !c.is_pending()).take(SETTLED);
        let calls = session.pending().map(view).chain(settled.map(view)).collect();
        let generations = session.generations.iter().map(|g| {
            let n = g.n.saturating_add(RECORDED_GENERATIONS);
            let b = before.and_then(|b| b.generations.iter().find(|v| v.n == n));
            GenerationView { n, ..GenerationView::of(g, session, b) }
        });
        let skip = session.notes.len().saturating_sub(NOTES);
        WireView {
            reach,
            link: None,
            server: session.server.as_ref().map(|s| format!("{} {}", s.name, s.version)),
            protocol: session.protocol.clone(),
            generations: generations.collect(),
            calls,
            calls_total: all,
            tools: session.tools.tools.len(),
            heard_at: None,
            notes: session.notes.iter().skip(skip).cloned().collect(),
            notes_dropped: session.notes_dropped + skip as u64,
            asked_of_us: Vec::new(),
            strays: session.strays,
        }
    }

    /// Our own with the agent's before it.
    pub fn beside(&self, agent: &WireView) -> WireView {
        let (waiting, settled): (Vec<_>, Vec<_>) =
            self.calls.iter().chain(&agent.calls).cloned().partition(|c| c.is_pending());
        let mut calls = waiting;
        calls.sort_by_key(|c| c.sent_at);
        let mut settled = settled;
        settled.sort_by_key(|c| std::cmp::Reverse(c.sent_at));
        calls.append(&mut settled);
        let generations = agent.generations.iter().chain(&self.generations).cloned().collect();
        WireView {
            calls,
            generations,
            calls_total: self.calls_total + agent.calls_total,
            ..self.clone()
        }
    }

    /// Our own newest generation.
    pub fn own_generation(&self) -> Option<&GenerationView> {
        self.generations.iter().rfind(|g| g.n < RECORDED_GENERATIONS)
    }

    /// Calls that wait for an answer, oldest first.
    pub fn pending(&self) -> impl Iterator<Item = &CallView> {
        self.calls.iter().map(|c| &**c).take_while(|c| c.is_pending())
    }

    /// The calls of one request, in the order of `calls`.
    pub fn calls_of<'a>(&'a self, request_id: &'a str) -> impl Iterator<Item = &'a CallView> {
        self.calls.iter().map(|c| &**c).filter(move |c| c.request_id.as_deref() == Some(request_id))
    }

    /// Server processes that have ended, as far as they were seen.
    pub fn deaths(&self) -> usize {
        self.generations.iter().filter(|g| g.ended.is_some()).count()
    }

    /// Lines of the stderr pane: for each generation a head, its lines, and its end as a line.
    pub fn stderr_len(&self) -> usize {
        self.generations.iter().map(|g| 1 + g.stderr.len() + usize::from(g.ended.is_some())).sum()
    }
}
