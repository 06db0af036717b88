//! `redial batch`: calls from JSON Lines over one connection, one outcome line each, through every break.
//!
//! `lines` reads the input, `turns` keeps lines of one request apart, `deliver` makes one call; here is the order of things, and the report.

mod deliver;
mod lines;
mod turns;

use super::args::BatchArgs;
use super::connect::Opened;
use super::interrupt::{Interrupt, watched};
use super::json::line;
use super::plain::{Plain, Role, complain, print_raw};
use super::reissue::RepeatJson;
use super::report::{CallJson, Done, Witness};
use crate::client::{SESSION_LOST, Settings};
use crate::error::{Exit, Result};
use crate::journal::call::answer_shown;
use crate::text::truncate;
use deliver::{Delivered, Shared};
use lines::{Numbered, Step, Wanted};
use serde::Serialize;
use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::mpsc;
use tokio::task::{JoinError, JoinSet};

/// The exit status of a batch is the first of these that any of its lines has. What may have run and nobody knows
/// comes first; what provably did nothing comes last.
const WORST_FIRST: [Exit; 6] =
    [Exit::Unknown, Exit::Found, Exit::Endpoint, Exit::Ledger, Exit::Gate, Exit::Usage];

/// How long the end of the input is waited for, once nobody reads the outcomes.
const LAST_LINE: Duration = Duration::from_millis(200);

/// Columns of a line's words for people.
const WORDS: usize = 240;

#[derive(Serialize)]
struct Doc<'a> {
    schema: &'static str,
    line: usize,
    /// Of a repeat it stands in `repeat`.
    #[serde(skip_serializing_if = "Option::is_none")]
    request_id: Option<&'a str>,
    #[serde(flatten)]
    call: &'a CallJson,
    #[serde(flatten)]
    repeat: Option<&'a RepeatJson>,
    exit_status: u8,
}

pub async fn run(a: BatchArgs, config: &crate::config::Config) -> Done {
    let input = lines::feed(&a.file)?;
    let calling = &a.calling;
    let respawn = a.respawn;
    let change = |usual| Settings { reconnect: true, respawn, ..usual };
    let Opened { client, inspector, interrupt } = Opened::new(calling, config, change).await?;
    let call_limit_s = calling.call_limit_s();
    let shared = Arc::new(Shared {
        inspector,
        client: client.clone(),
        confirm: a.confirm,
        call_limit_s,
        start_limit_s: calling.endpoint.start_timeout,
        interrupt: interrupt.clone(),
        warned: std::sync::atomic::AtomicBool::new(false),
        outage: std::sync::Mutex::default(),
        turns: turns::Turns::default(),
    });
    let mut batch = Batch {
        shared,
        json: a.json,
        at_once: usize::from(a.concurrency),
        running: JoinSet::new(),
        counts: BTreeMap::new(),
        exits: HashSet::new(),
        told: HashSet::new(),
        notes: 0,
        read_by: true,
    };
    watched(&client, &interrupt, &calling.lookup, batch.all(input)).await
}

/// A batch on its way.
struct Batch {
    shared: Arc<Shared>,
    json: bool,
    at_once: usize,
    running: JoinSet<Delivered>,
    /// Lines by outcome, for people.
    counts: BTreeMap<&'static str, u64>,
    /// What was seen of exit statuses, as numbers.
    exits: HashSet<u8>,
    /// Generations whose end was told.
    told: HashSet<u32>,
    /// Notes of the journal that were looked at.
    notes: u64,
    /// Somebody reads what is written.
    read_by: bool,
}

impl Batch {
    async fn all(&mut self, mut input: mpsc::Receiver<Numbered>) -> Result<Exit> {
        let interrupt = self.shared.interrupt.clone();
        let (mut last, mut ended) = (0, false);
        while self.read_by {
            let free = self.running.len() < self.at_once;
            let next = tokio::select! {
                biased;
                _ = interrupt.first() => break,
                Some(done) = self.running.join_next() => {
                    self.done(done);
                    continue;
                }
                next = input.recv(), if free => next,
            };
            let Some((number, step)) = next else {
                ended = true;
                break;
            };
            last = number;
            match step {
                Ok(Step::Wait(seconds)) => self.pause(seconds, &interrupt).await,
                Ok(Step::Call(wanted)) => {
                    let shared = self.shared.clone();
                    let turn = shared.turns.enter(&wanted.args);
                    self.running.spawn(async move { shared.deliver(number, wanted, turn).await });
                }
                Err(e) => {
                    let witness = Witness::default();
                    self.report(&Delivered::never(number, &Wanted::default(), &e, witness));
                }
            }
        }
        // No new line is begun; those in flight have their outcomes.
        while let Some(done) = self.running.join_next().await {
            self.done(done);
        }
        if let Some(name) = interrupt.seen() {
            complain(&format!("interrupted ({name}) after line {last}: what follows was not sent"));
            self.exits.insert(Exit::Endpoint as u8);
        } else if !self.read_by && !ended && !self.is_over(&mut input).await {
            complain(&format!("nobody reads the outcomes: what follows line {last} was not sent"));
            self.exits.insert(Exit::Endpoint as u8);
        }
        self.summary();
        let worst = WORST_FIRST.into_iter().find(|e| self.exits.contains(&(*e as u8)));
        Ok(worst.unwrap_or(Exit::Good))
    }

    /// Whether the input has no line left: an outcome that nobody read does not make of a batch that was sent one
    /// that was not. Where its writer is still to say so, there may be one.
    async fn is_over(&self, input: &mut mpsc::Receiver<Numbered>) -> bool {
        matches!(tokio::time::timeout(LAST_LINE, input.recv()).await, Ok(None))
    }

    /// No call is begun meanwhile; those in flight go on.
    async fn pause(&mut self, seconds: f64, interrupt: &Interrupt) {
        let pause = Duration::try_from_secs_f64(seconds).unwrap_or(Duration::MAX);
        let until = tokio::time::sleep(pause);
        tokio::pin!(until);
        loop {
            tokio::select! {
                () = &mut until => return,
                _ = interrupt.first() => return,
                Some(done) = self.running.join_next() => self.done(done),
            }
        }
    }

    fn done(&mut self, done: std::result::Result<Delivered, JoinError>) {
        match done {
            Ok(delivered) => self.report(&delivered),
            // A fault of ours; the call may have left.
            Err(e) => {
                complain(&format!("a call was lost sight of: {e}; its outcome is unknown"));
                self.exits.insert(Exit::Unknown as u8);
            }
        }
    }

    /// Which session took the place of which is told as it happens, also where outcomes are JSON.
    fn tell_sessions(&mut self) {
        let from = self.notes;
        let (new, seen) = self.shared.client.journal().read(|s| {
            let seen = s.notes_dropped + s.notes.len() as u64;
            let fresh = usize::try_from(seen - from).unwrap_or(usize::MAX).min(s.notes.len());
            let fresh = s.notes.iter().skip(s.notes.len() - fresh).map(|(_, n)| n);
            let new: Vec<String> = fresh.filter(|n| n.starts_with(SESSION_LOST)).cloned().collect();
            (new, seen)
        });
        self.notes = seen;
        new.iter().for_each(|words| complain(words));
    }

    fn report(&mut self, d: &Delivered) {
        self.tell_sessions();
        self.exits.insert(d.exit as u8);
        let word = if d.exit == Exit::Usage { "bad" } else { d.call.outcome };
        *self.counts.entry(word).or_default() += 1;
        self.read_by &= if self.json {
            print_raw(&line(&Doc {
                schema: "redial/batch@1",
                line: d.number,
                request_id: d.request_id.as_deref().filter(|_| d.repeat.is_none()),
                call: &d.call,
                repeat: d.repeat.as_ref(),
                exit_status: d.exit as u8,
            }))
        } else {
            self.plain(d)
        };
    }

    /// One line for people; and, once, how the process ended that the call was lost with.
    fn plain(&mut self, d: &Delivered) -> bool {
        let mut p = Plain::stdout();
        let (role, outcome) = match d.exit {
            Exit::Usage => (Role::Bad, "bad line".to_owned()),
            _ => d.call.outcome_words(),
        };
        let said = d.call.result.as_ref().map(|r| answer_shown(r.get())).unwrap_or_default();
        let words = if said.is_empty() { d.call.why.clone() } else { said };
        let mut words = words.lines().next().unwrap_or_default().to_owned();
        if let Some(against) = d.call.denied() {
            words = format!("{}; its text: {words}", against.words());
        }
        if let Some(hint) = &d.hint {
            words.push_str(&format!(" ({hint})"));
        }
        // A line that was never a call took no time.
        let took = d.generation.map(|_| format!("  {} ms", d.call.elapsed_ms)).unwrap_or_default();
        let replayed = d.repeat.as_ref().is_some_and(|r| r.replayed == Some(true));
        let name = match &d.request_id {
            Some(id) => format!("{} {id}", d.call.tool),
            None => d.call.tool.clone(),
        };
        p.parts(&[
            (Role::Dim, &format!("{:>4}  ", d.number)),
            (role, &outcome),
            (Role::Strong, &format!("  {name}{}", if name.is_empty() { "" } else { "  " })),
            (Role::Text, &truncate(&crate::text::visible(&words), WORDS, "…")),
            (Role::Dim, if replayed { "  (replayed)" } else { "" }),
            (Role::Dim, &took),
        ]);
        let lost = matches!(d.call.outcome, "unknown" | "not_sent");
        if let (true, Some(n), Some(end)) = (lost, d.generation, &d.call.witness.exit_words)
            && self.told.insert(n)
        {
            p.parts(&[(Role::Bad, &format!("      its server: {end}"))]);
            d.call.witness.tails(&mut p, "      ");
        }
        p.print()
    }

    fn summary(&self) {
        if self.json || !self.read_by {
            return;
        }
        let total: u64 = self.counts.values().sum();
        let parts: Vec<String> =
            self.counts.iter().map(|(w, n)| format!("{n} {}", w.replace('_', " "))).collect();
        let mut p = Plain::stdout();
        let lines = if total == 1 { "line" } else { "lines" };
        p.line(Role::Strong, &format!("{total} {lines} · {}", parts.join(" · ")));
        p.print();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_status_but_good_has_a_rank() {
        for exit in 1..=6_u8 {
            assert!(WORST_FIRST.iter().any(|e| *e as u8 == exit), "{exit}");
        }
        // What may have happened outranks what provably did not.
        assert_eq!(WORST_FIRST[0], Exit::Unknown);
    }
}
