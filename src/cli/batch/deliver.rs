//! One line of a batch: waits for its turn and a connection, asks the gate where the ledger or this very run knows the
//! request, sends once.
//! Never sends anything a second time: what a break made of a call is its outcome.

use super::lines::Wanted;
use super::turns::{Turn, Turns};
use crate::cli::connect::known_tool;
use crate::cli::interrupt::Interrupt;
use crate::cli::open::ledger_error;
use crate::cli::plain::complain;
use crate::cli::reissue::{RepeatJson, repeat};
use crate::cli::report::{CallJson, Witness, exit_of};
use crate::client::Client;
use crate::error::{Error, Exit, Result};
use crate::inspect::Inspector;
use crate::inspect::reissue::{Prepared, Wish, short_limit, stopped};
use crate::inspect::release::Again;
use crate::journal::{Call, LinkState, Outcome};
use crate::judge::Ask;
use crate::judge::gate::{Decision, tool_gate};
use crate::model::arguments::{Candidate, Source};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// How long the link may take to notice a break that a call has met already.
const NOTICE: Duration = Duration::from_millis(100);

/// What all lines share.
pub struct Shared {
    /// The witnesses.
    pub inspector: Inspector,
    /// The endpoint.
    pub client: Client,
    /// The requests that may be repeated.
    pub confirm: Vec<String>,
    /// Seconds until a call counts as unknown.
    pub call_limit_s: f64,
    /// How long an outage may last before lines are given up, in seconds.
    pub start_limit_s: f64,
    /// The signals.
    pub interrupt: Interrupt,
    /// A limit that is shorter than the server's own wait was told.
    pub warned: AtomicBool,
    /// Since when there has been no connection, for the lines that found none.
    pub outage: Mutex<Option<Instant>>,
    /// The requests that are under way or were sent.
    pub turns: Turns,
}

/// What became of one line.
pub struct Delivered {
    /// Its number.
    pub number: usize,
    /// The idempotency key.
    pub request_id: Option<String>,
    /// The call and its outcome.
    pub call: CallJson,
    /// A repeat: what it changed in the ledger.
    pub repeat: Option<RepeatJson>,
    /// The generation it was sent on.
    pub generation: Option<u32>,
    /// What it adds to the exit status.
    pub exit: Exit,
    /// What to do about it.
    pub hint: Option<String>,
}

impl Delivered {
    /// A line that was never sent.
    pub fn never(number: usize, wanted: &Wanted, error: &Error, witness: Witness) -> Delivered {
        let args = (!wanted.args.is_empty()).then_some(wanted.args.as_str());
        Delivered {
            number,
            request_id: wanted.request_id.clone(),
            call: CallJson::failed(&wanted.tool, args, error, witness),
            repeat: None,
            generation: None,
            exit: error.exit,
            hint: error.hint.clone(),
        }
    }
}

impl Shared {
    /// Delivers one line, and says what became of it.
    pub async fn deliver(&self, number: usize, wanted: Wanted, mut turn: Turn) -> Delivered {
        match self.prepared(&wanted, &mut turn).await {
            Ok(ready) => match self.send(number, &wanted, ready, &turn).await {
                Ok(delivered) => delivered,
                Err(e) => {
                    Delivered::never(number, &wanted, &e, Witness::of(&self.client, None).short())
                }
            },
            Err(e) => {
                Delivered::never(number, &wanted, &e, Witness::of(&self.client, None).short())
            }
        }
    }

    /// Everything before the sending; only a look-up may leave here.
    async fn prepared(&self, wanted: &Wanted, turn: &mut Turn) -> Result<Ready> {
        self.connected().await?;
        if !self.inspector.reads_only(&wanted.tool) {
            // The first line's outcome says what this one is.
            tokio::select! {
                () = turn.comes() => {}
                name = self.interrupt.first() => return Err(Interrupt::stopped(name, Exit::Endpoint)),
            }
            // It may have broken the connection.
            self.connected().await?;
        }
        let again = self.turns.was_sent(turn);
        let longest = duration(self.start_limit_s + self.call_limit_s);
        tokio::select! {
            ready = self.judged(wanted, again) => ready,
            // The connection broke again just now.
            () = tokio::time::sleep(longest) => Err(Error::endpoint("no connection; nothing was sent")),
            name = self.interrupt.first() => Err(Interrupt::stopped(name, Exit::Endpoint)),
        }
    }

    /// `again`: a call of this request was sent in this very run, and may have been run.
    async fn judged(&self, wanted: &Wanted, again: bool) -> Result<Ready> {
        if self.inspector.read_only {
            // What decides is what the server that gets the call says of its tools.
            self.inspector.again(Again::Now).await?;
        }
        let tools = self.client.tools().await?;
        let tool = known_tool(&tools, &wanted.tool)?;
        // With what the configuration says of its hints, as everywhere.
        let reads_only = self.inspector.reads_only(&wanted.tool);
        let again = again && !reads_only;
        if !again && !self.is_repeat(wanted.request_id.as_deref()).await? {
            if self.inspector.read_only && !reads_only {
                let gate = tool_gate(tool, tools.complete);
                let why = match gate.ask {
                    Ask::None => "the configuration says that it does not only read".to_owned(),
                    _ => gate.why,
                };
                let why = format!("--read-only lets only read-only tools run: {why}");
                return Err(Error::new(Exit::Gate, format!("{why}; nothing was sent")));
            }
            if wanted.request_id.is_some() && !reads_only {
                self.warn(short_limit(wanted.timeout_s.unwrap_or(self.call_limit_s)));
            }
            return Ok(Ready::First { reads_only });
        }
        let wish = Wish {
            request_id: wanted.request_id.clone(),
            tool: Some(wanted.tool.clone()),
            candidates: vec![Candidate {
                args: wanted.args.clone(),
                tool: Some(wanted.tool.clone()),
                source: Source::Given,
            }],
            first_delivery: !again,
            limit_s: Some(wanted.timeout_s.unwrap_or(self.call_limit_s)),
        };
        let named = |d: &Decision| self.confirm.iter().find(|c| d.passes(Some(c))).cloned();
        // No look-up makes a call pass that nobody has named: what is stopped anyway needs none.
        let id = wanted.request_id.as_deref().unwrap_or_default();
        let seen = self.inspector.request(id, Some(&wanted.args)).await;
        let decision = self.inspector.decide(&wish, &wanted.tool, &seen);
        if decision.ask != Ask::None && named(&decision).is_none() {
            return Err(stopped(&decision));
        }
        let prepared = self.inspector.prepare(&wish).await?;
        self.warn(prepared.warning.clone());
        let confirmed = named(&prepared.decision);
        if !prepared.decision.passes(confirmed.as_deref()) {
            return Err(stopped(&prepared.decision));
        }
        Ok(Ready::Judged { prepared: Box::new(prepared), confirmed })
    }

    /// Whether the ledger has the request. A ledger that can't be read can't say so: nothing is sent then.
    ///
    /// The whole judgement is only made of repeats: it looks at every call so far, which is too much for each of
    /// thousands of lines.
    async fn is_repeat(&self, id: Option<&str>) -> Result<bool> {
        let (Some(ledger), Some(id)) = (&self.inspector.ledger, id) else { return Ok(false) };
        let id = id.to_owned();
        let row = ledger.read_async(move |r| r.row(&id)).await.map_err(ledger_error)?;
        Ok(row.is_some())
    }

    async fn send(
        &self,
        number: usize,
        wanted: &Wanted,
        ready: Ready,
        turn: &Turn,
    ) -> Result<Delivered> {
        if let Some(name) = self.interrupt.seen() {
            return Err(Interrupt::stopped(name, Exit::Endpoint));
        }
        let limit = wanted.timeout_s.unwrap_or(self.call_limit_s);
        let id = wanted.request_id.as_deref();
        let mut twice = None;
        let (call, reads_only, repeat) = match ready {
            Ready::First { reads_only } => {
                let sent = self.client.call(&wanted.tool, &wanted.args, Some(limit)).await?;
                let settled = self.client.settled(sent).await;
                self.remember(turn, settled.as_ref(), reads_only);
                let call = settled.ok_or_else(|| {
                    Error::new(Exit::Unknown, "the call is not in the journal: outcome unknown")
                })?;
                (call, reads_only, None)
            }
            Ready::Judged { prepared, confirmed } => {
                let p = &*prepared;
                let released = self.inspector.carry_out(p, confirmed.as_deref()).await?;
                self.remember(turn, Some(&released.call), p.reads_only);
                let changed = repeat(p, Some(&released), id);
                twice =
                    released.twice().map(|n| crate::cli::reissue::twice(n, &released.after.noun));
                (released.call, p.reads_only, Some(changed))
            }
        };
        self.notice(&call).await;
        Ok(Delivered {
            number,
            request_id: wanted.request_id.clone(),
            exit: if twice.is_some() { Exit::Found } else { exit_of(&call, reads_only) },
            generation: Some(call.generation),
            call: CallJson::new(&call, Witness::of(&self.client, Some(call.generation)).short()),
            repeat,
            hint: twice,
        })
    }

    /// From now on its request is one that may have been run, unless it provably was not.
    fn remember(&self, turn: &Turn, call: Option<&Call>, reads_only: bool) {
        let never =
            matches!(call.and_then(|c| c.outcome()), Some(Outcome::NotSent | Outcome::Refused));
        if !never && !reads_only {
            self.turns.sent(turn);
        }
    }

    /// Waits for a connection, at most the start limit since it was first missed.
    async fn connected(&self) -> Result<()> {
        let usable = self.client.journal().wait(|s| {
            let link = s.link.as_ref()?;
            // An end that the journal has, and the link has not drawn its conclusion from yet, is no readiness.
            let ended = s.generation().is_some_and(|g| g.ended.is_some());
            match link.state {
                LinkState::Ready if !ended => Some(Ok(())),
                LinkState::Dead | LinkState::Closed => Some(Err(link.why.clone())),
                _ => None,
            }
        });
        let since = *self.outage().get_or_insert_with(Instant::now);
        let left = duration(self.start_limit_s).saturating_sub(since.elapsed());
        tokio::select! {
            biased;
            usable = usable => match usable {
                Ok(()) => {
                    *self.outage() = None;
                    Ok(())
                }
                Err(why) => Err(Error::endpoint(format!("{why}; nothing was sent"))),
            },
            name = self.interrupt.first() => Err(Interrupt::stopped(name, Exit::Endpoint)),
            () = tokio::time::sleep(left) => {
                let why = self.client.journal().read(|s| s.link.as_ref().map(|l| l.why.clone()));
                let why = why.unwrap_or_default();
                Err(Error::endpoint(format!(
                    "no connection within {} s ({why}); nothing was sent", self.start_limit_s
                )))
            }
        }
    }

    /// Lets the link notice what a call has met, so that the next line waits for a new connection and does not run
    /// into the old one.
    async fn notice(&self, call: &Call) {
        let met =
            matches!(call.outcome(), Some(Outcome::Unknown | Outcome::NotSent | Outcome::Refused));
        if met && self.client.endpoint().is_http() {
            let noticed = self.client.journal().wait(|s| {
                let moved = s.generation().is_some_and(|g| g.n != call.generation);
                (moved || !s.is_ready()).then_some(())
            });
            tokio::time::timeout(NOTICE, noticed).await.ok();
        }
    }

    /// Once for the whole batch.
    fn warn(&self, warning: Option<String>) {
        if let Some(words) = warning
            && !self.warned.swap(true, Ordering::Relaxed)
        {
            complain(&words);
        }
    }

    fn outage(&self) -> std::sync::MutexGuard<'_, Option<Instant>> {
        self.outage.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A line that may be sent.
enum Ready {
    /// No ledger has it: what is typed is sent.
    First { reads_only: bool },
    /// A repeat: judged, and confirmed where that was asked for.
    Judged { prepared: Box<Prepared>, confirmed: Option<String> },
}

fn duration(seconds: f64) -> Duration {
    Duration::try_from_secs_f64(seconds).unwrap_or(Duration::MAX)
}
