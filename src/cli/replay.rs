//! `redial replay`: a recorded session against a live server, one message after the other, tool calls behind the
//! gate one by one, each answer compared with the recorded one.

mod report;

use super::connect::{known_tool, open, settings};
use super::interrupt::{Interrupt, watched};
use super::open::open_ledger;
use super::plain::complain;
use super::recorded::{Pace, ReplayArgs};
use super::report::Done;
use crate::client::NoResult;
use crate::error::{Error, Exit, Result};
use crate::inspect::Inspector;
use crate::inspect::recorded::Recorded;
use crate::inspect::reissue::{Wish, stopped};
use crate::journal::Outcome;
use crate::json::raw;
use crate::judge::Ask;
use crate::model::arguments::{Candidate, Source};
use crate::recording::Recording;
use crate::replay::diff::{Compared, Ignore, compare};
use crate::replay::plan::{Act, Plan, Planned};
use crate::replay::script::{self, Said};
use crate::shell;
use report::{Report, Step};
use std::io::IsTerminal;
use std::time::{Duration, Instant};

pub async fn run(a: ReplayArgs, config: &crate::config::Config) -> Done {
    let mut r = Recording::with_entries(&a.file)?;
    let asks = script::read(&r.take_entries());
    if asks.is_empty() {
        return Err(
            Error::ledger(format!("{} holds nothing a client said", r.path().display())).into()
        );
    }
    let mut fresh = |_: &str| fresh_key();
    let plan = Plan::new(asks, a.new_keys.then_some(&mut fresh as &mut dyn FnMut(&str) -> String));
    let mut report = Report::new(r.path().display().to_string(), &plan, a.dry_run);
    if a.dry_run {
        for p in &plan.steps {
            report.add(Step::planned(p));
        }
        report.print(a.json);
        return Ok(Exit::Good);
    }
    let at_terminal = std::io::stdin().is_terminal() && std::io::stderr().is_terminal();
    if a.pace == Pace::Step && (a.json || !at_terminal) {
        return Err(Error::usage(
            "--pace step asks before each message, and there is no terminal here",
        )
        .into());
    }
    let endpoint = a.endpoint.required()?;
    let (ledger, rules) = open_ledger(&a.ledger)?;
    let interrupt = Interrupt::listen();
    let client = open(endpoint, settings(&a.endpoint, a.timeout)?, &interrupt).await?;
    let mut inspector = Inspector::new(ledger, Some(client.clone()), rules);
    inspector.read_only = a.read_only.read_only;
    inspector.look_up.clone_from(&config.server.lookup);
    inspector.hints = config.hint_overrides();
    let look_up = inspector.look_up.clone();
    let source = Source::Recording(r.path().display().to_string());
    let ignored: Vec<String> = config.replay.ignore.iter().chain(&a.ignore).cloned().collect();
    // What it saw of its own calls and of their server bears on each repeat.
    inspector.recording = Some(Recorded::new(r));
    let play = Play { inspector: &inspector, a: &a, source, ignore: Ignore::new(&ignored) };
    let work = async {
        play.all(&plan, &mut report, &interrupt).await;
        Ok(report.finish(a.json, a.read_only.read_only))
    };
    watched(&client, &interrupt, &look_up, work).await
}

/// A request_id that nobody has had: a random UUID's 32 digits.
fn fresh_key() -> String {
    let mut bytes = [0u8; 16];
    match getrandom::fill(&mut bytes) {
        Ok(()) => bytes.iter().map(|b| format!("{b:02x}")).collect(),
        // Time is the next best thing; the gate still asks.
        Err(_) => format!("redial-{}", crate::time::Time::now().0),
    }
}

struct Play<'a> {
    inspector: &'a Inspector,
    a: &'a ReplayArgs,
    source: Source,
    ignore: Ignore,
}

impl Play<'_> {
    /// Whatever happens on the way, every step is told of: what has left may have been done.
    async fn all(&self, plan: &Plan, report: &mut Report, interrupt: &Interrupt) {
        let began = Instant::now();
        let zero = plan.steps.first().map_or(0, |s| s.ask.mono_us);
        for p in &plan.steps {
            if interrupt.seen().is_some() {
                report.add(Step::planned(p).skipped("interrupted".into()));
                continue;
            }
            if let (Some(why), false) = (report.broke_off(), matches!(p.act, Act::Skip(_))) {
                let why = format!("not sent: {why}");
                report.add(Step::planned(p).skipped(why));
                continue;
            }
            if !matches!(p.act, Act::Skip(_)) && !self.pace(p, zero, began, interrupt).await {
                report.add(Step::planned(p).skipped("not wanted".into()));
                continue;
            }
            match self.one(p).await {
                Ok(step) => report.add(step),
                Err(e) => {
                    report.add(Step::planned(p).skipped(format!("not sent: {}", e.what)));
                    report.break_off(e.what);
                }
            }
        }
    }

    /// Waits for the moment; whether it is to be sent at all.
    async fn pace(&self, p: &Planned, zero: u64, began: Instant, interrupt: &Interrupt) -> bool {
        match self.a.pace {
            Pace::Fast => true,
            Pace::Recorded => {
                let due = began + Duration::from_micros(p.ask.mono_us.saturating_sub(zero));
                tokio::select! {
                    () = tokio::time::sleep_until(due.into()) => {}
                    _ = interrupt.first() => {}
                }
                true
            }
            Pace::Step => {
                let what = Step::planned(p).what();
                let show = || {
                    complain(&format!("next: {what}  (Enter sends it, anything else skips it)"));
                };
                super::answer::to(show).await.is_some_and(|line| line.is_empty())
            }
        }
    }

    /// Fails only where this step was not sent and no other can be.
    async fn one(&self, p: &Planned) -> Result<Step> {
        let step = Step::planned(p);
        match &p.act {
            Act::Skip(_) => Ok(step),
            // A call's tool says itself whether it reads.
            act @ (Act::Request { .. } | Act::Notify { .. })
                if self.inspector.read_only && !act.only_reads() =>
            {
                let why = "--read-only lets only what reads run; nothing was sent";
                Ok(step.gated("none", why.into(), true))
            }
            Act::Notify { method, params } => {
                let sent = self.inspector.client()?.notify(method, params).await;
                Ok(match sent {
                    Ok(()) => step.sent(),
                    Err(e) => step.no_answer(e.what),
                })
            }
            Act::Request { method, params } => self.request(p, step, method, params).await,
            Act::Call { tool, args, request_id } => {
                self.call(p, step, tool, args, request_id.as_deref()).await
            }
        }
    }

    async fn request(&self, p: &Planned, step: Step, method: &str, params: &str) -> Result<Step> {
        let client = self.inspector.client()?;
        let limit = Duration::from_secs_f64(self.a.timeout.clamp(0.0, 86_400.0));
        let Ok(answer) = tokio::time::timeout(limit, client.asked(method, params)).await else {
            return Ok(step.no_answer(format!("no answer within {} s", self.a.timeout)));
        };
        let now = match answer {
            Ok(result) => Said::Result(result),
            Err(NoResult { error: Some(raw), .. }) => Said::Error(raw),
            Err(NoResult { answered: true, words, .. }) => return Ok(step.error(words)),
            Err(NoResult { words, .. }) => return Ok(step.no_answer(words)),
        };
        Ok(self.compared(step, p, &now))
    }

    fn compared(&self, step: Step, p: &Planned, now: &Said) -> Step {
        step.compared(&match (&p.ask.answer, now) {
            (Some(then), now) => compare(then, now, &self.ignore),
            (None, Said::Result(_)) => Compared::NowAResult,
            (None, Said::Error(_)) => Compared::NowAnError,
        })
    }

    async fn call(
        &self,
        p: &Planned,
        step: Step,
        tool: &str,
        args: &str,
        id: Option<&str>,
    ) -> Result<Step> {
        let tools = self.inspector.client()?.tools().await?;
        if let Err(e) = known_tool(&tools, tool) {
            // What was an error then is no loss now.
            let failed = match &p.ask.answer {
                Some(Said::Result(r)) => {
                    raw::get(r, "isError").and_then(raw::as_bool) == Some(true)
                }
                Some(Said::Error(_)) | None => true,
            };
            return Ok(if failed { step.skipped(e.what) } else { step.error(e.what) });
        }
        if raw::members(args).is_none() {
            return Ok(step.skipped("its arguments are no object".into()));
        }
        let candidate = Candidate {
            args: args.to_owned(),
            tool: Some(tool.to_owned()),
            source: self.source.clone(),
        };
        let wish = Wish {
            request_id: id.map(str::to_owned),
            tool: Some(tool.to_owned()),
            candidates: vec![candidate],
            first_delivery: false,
            limit_s: Some(self.a.timeout),
        };
        let prepared = match self.inspector.prepare(&wish).await {
            Ok(p) => p,
            Err(e) if e.exit == Exit::Endpoint => return Err(e),
            Err(e) => return Ok(step.skipped(e.what)),
        };
        let d = &prepared.decision;
        // Another spelling of the same arguments would be another call.
        if prepared.args != args {
            return Ok(step.skipped("its arguments can't be sent as they were".into()));
        }
        let recorded_id = p.ask.request_id();
        let named = self.a.confirm.iter().any(|c| {
            recorded_id.as_deref().is_some_and(|id| shell::names(c, id))
                || shell::names(c, &d.confirm)
        }) || self.a.confirm_tool.iter().any(|t| t == tool);
        let confirmed = named.then(|| d.confirm.clone());
        if !d.passes(confirmed.as_deref()) {
            return Ok(step.gated(d.ask.word(), stopped(d).what, d.refused.is_some()));
        }
        let asked = if d.ask == Ask::None { "none" } else { d.ask.word() };
        let released = match self.inspector.carry_out(&prepared, confirmed.as_deref()).await {
            Ok(released) => released,
            // Sent, and lost sight of.
            Err(e) if e.exit == Exit::Unknown => return Ok(step.passed(asked).no_answer(e.what)),
            Err(e) if e.exit == Exit::Gate => return Ok(step.gated(asked, e.what, true)),
            Err(e) => return Err(e),
        };
        let twice = released.twice().map(|n| super::reissue::twice(n, &released.after.noun));
        let step = step.passed(asked);
        let Some(s) = &released.call.settled else {
            return Ok(step.no_answer(String::new()).twice(twice));
        };
        let now = match (&s.result, &s.error, s.outcome) {
            (Some(r), _, Outcome::Ok | Outcome::ToolError) => Said::Result(r.to_string()),
            (_, Some(e), Outcome::RpcError) => Said::Error(e.clone()),
            // Nothing left, and there is no connection that anything could leave on.
            (_, _, Outcome::NotSent) => return Err(Error::endpoint(s.why.clone())),
            _ => return Ok(step.no_answer(s.why.clone()).twice(twice)),
        };
        Ok(self.compared(step, p, &now).twice(twice))
    }
}
