//! `--fresh-sessions`: the calls of a trace made again, first all on one session, then each on a session of its own,
//! with fresh request_ids and behind the gate. What works on the one and not on the other is told. Every call that
//! leaves was asked for by this flag; a third run, on one session again, is made only where an answer differs.

use super::args::AuditArgs;
use super::plain::counted;
use crate::audit::fresh::{Got, Played, Renames, Verdict, crossed, finding, is_open, judge};
use crate::audit::{Finding, Findings};
use crate::cli::connect::{known_tool, open, settings};
use crate::cli::interrupt::{Interrupt, watched};
use crate::cli::json::document;
use crate::cli::open::open_ledger;
use crate::cli::plain::{Cell, Plain, Role, print_raw};
use crate::cli::reissue::twice;
use crate::cli::report::{Done, Failure};
use crate::client::{Client, Endpoint, Era, Settings};
use crate::config::Config;
use crate::error::{Error, Exit, Result};
use crate::inspect::Inspector;
use crate::inspect::reissue::{Wish, stopped};
use crate::journal::Outcome;
use crate::json::raw;
use crate::judge::Rules;
use crate::ledger::Ledger;
use crate::model::arguments::{Candidate, Source};
use crate::record::redact::MASK;
use crate::recording::Recording;
use crate::replay::plan::{Act, Plan, Planned};
use crate::replay::script::{self, Said};
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Mutex;

/// Everything that a run needs.
struct Runs<'a> {
    a: &'a AuditArgs,
    config: &'a Config,
    endpoint: Endpoint,
    settings: Settings,
    interrupt: Interrupt,
    source: Source,
    asks: Vec<script::Ask>,
    /// Where the effects of each request are counted, if one was given.
    ledger: Option<Ledger>,
    rules: Rules,
    /// Requests with more than one effect, in words: each is sent once in a run.
    twice: Mutex<Vec<String>>,
}

/// One run's answers, and which values it had for the recorded ones.
struct Run {
    got: Vec<Got>,
    renames: Renames,
}

pub async fn run(a: &AuditArgs, config: &Config) -> Done {
    let mut r = Recording::with_entries(&a.trace)?;
    let asks = script::read(&r.take_entries());
    let calls = asks.iter().filter(|x| is_call(x)).count();
    if calls == 0 {
        let what = format!("{} holds no tool call to make again", r.path().display());
        return Err(Error::ledger(what).into());
    }
    let endpoint = a.endpoint.required()?;
    let (ledger, rules) = open_ledger(&a.ledger)?;
    let mut runs = Runs {
        a,
        config,
        settings: settings(&a.endpoint, a.timeout)?,
        endpoint,
        interrupt: Interrupt::listen(),
        source: Source::Recording(r.path().display().to_string()),
        asks,
        ledger,
        rules,
        twice: Mutex::default(),
    };
    let mut notes = Vec::new();
    if a.endpoint.era.is_none() && runs.settings.era == Era::Auto {
        // What speaks 2026-07-28 alone has no sessions; a server of both eras has them in the older one.
        runs.settings.era = Era::Legacy;
    }
    let (first, protocol) = match runs.shared().await {
        Err(f)
            if f.error.exit == Exit::Endpoint
                && a.endpoint.era.is_none()
                && runs.interrupt.seen().is_none() =>
        {
            runs.settings.era = Era::Auto;
            runs.shared().await?
        }
        done => done?,
    };
    if protocol.as_deref() == Some("2026-07-28") {
        notes.push(match runs.endpoint {
            Endpoint::Http { .. } => "this server speaks 2026-07-28, which has no sessions: each call stood alone in both runs".to_owned(),
            Endpoint::Stdio { .. } => "this server speaks 2026-07-28, which has no sessions; what it keeps in its process was still lost with each new process".into(),
        });
    } else if matches!(runs.endpoint, Endpoint::Stdio { .. }) {
        notes.push("on stdio a session is a process: what the server keeps in memory is lost with it, handles too".into());
    }
    let own = runs.own().await?;
    let mut played = runs.played(&first, &own);
    let to_own = crossed(&first.renames, &own.renames);
    let mut to_again = BTreeMap::new();
    if played.iter().any(|p| is_open(p, &to_own)) {
        let (again, _) = runs.shared().await?;
        to_again = crossed(&first.renames, &again.renames);
        for (p, got) in played.iter_mut().zip(again.got) {
            p.again = Some(got);
        }
    }
    if let Some(name) = runs.interrupt.seen() {
        let what = format!("interrupted ({name}): nothing can be told of calls that were not made");
        return Err(Error::new(Exit::Unknown, what).into());
    }
    notes.extend(runs.told_twice().iter().cloned());
    let verdicts: Vec<Verdict> = played.iter().map(|p| judge(p, &to_own, &to_again)).collect();
    Ok(report(a, &runs, &played, &verdicts, &notes))
}

/// A call, and not a later round of one.
fn is_call(ask: &script::Ask) -> bool {
    let params = ask.params.as_deref().unwrap_or("{}");
    ask.tool().is_some()
        && raw::get(params, "inputResponses").is_none()
        && raw::get(params, "requestState").is_none()
}

fn fresh_key() -> String {
    let mut bytes = [0u8; 16];
    match getrandom::fill(&mut bytes) {
        Ok(()) => bytes.iter().map(|b| format!("{b:02x}")).collect(),
        Err(_) => format!("redial-{}", crate::time::Time::now().0),
    }
}

impl Runs<'_> {
    /// The calls, with request_ids that nobody has had.
    fn plan(&self) -> Vec<Planned> {
        let mut fresh = |_: &str| fresh_key();
        let plan = Plan::new(self.asks.clone(), Some(&mut fresh));
        plan.steps.into_iter().filter(|p| is_call(&p.ask)).collect()
    }

    fn renames(&self) -> Renames {
        Renames::new(self.asks.iter().filter(|a| is_call(a)).filter_map(script::Ask::arguments))
    }

    fn inspector(&self, client: &Client) -> Inspector {
        let mut i = Inspector::new(self.ledger.clone(), Some(client.clone()), self.rules);
        i.read_only = self.a.read_only.read_only;
        i.look_up.clone_from(&self.a.lookup);
        i.hints = self.config.hint_overrides();
        i
    }

    /// All on one session; the protocol that was spoken.
    async fn shared(&self) -> Result<(Run, Option<String>), Failure> {
        let client = open(self.endpoint.clone(), self.settings.clone(), &self.interrupt).await?;
        let inspector = self.inspector(&client);
        let run = Mutex::new(Run { got: Vec::new(), renames: self.renames() });
        let work = async {
            for p in self.plan() {
                let args = locked(&run).renames.clone();
                let got = self.one(&inspector, &p, &args).await;
                keep(&run, &p, got);
            }
            Ok(Exit::Good)
        };
        watched(&client, &self.interrupt, &self.a.lookup, work).await?;
        let protocol = client.journal().read(|s| s.protocol.clone());
        let run = run.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner);
        Ok((run, protocol))
    }

    /// Each on a session of its own.
    async fn own(&self) -> Result<Run, Failure> {
        let run = Mutex::new(Run { got: Vec::new(), renames: self.renames() });
        for p in self.plan() {
            if self.interrupt.seen().is_some() {
                keep(&run, &p, Got::NotMade("interrupted".into()));
                continue;
            }
            let client =
                open(self.endpoint.clone(), self.settings.clone(), &self.interrupt).await?;
            let inspector = self.inspector(&client);
            let args = locked(&run).renames.clone();
            let work = async {
                let got = self.one(&inspector, &p, &args).await;
                keep(&run, &p, got);
                Ok(Exit::Good)
            };
            watched(&client, &self.interrupt, &self.a.lookup, work).await?;
        }
        Ok(run.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner))
    }

    fn told_twice(&self) -> std::sync::MutexGuard<'_, Vec<String>> {
        self.twice.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }

    /// One call, behind the gate, made once.
    async fn one(&self, inspector: &Inspector, p: &Planned, renames: &Renames) -> Got {
        match self.call(inspector, p, renames).await {
            Ok(got) => got,
            Err(e) => Got::NotMade(e.what),
        }
    }

    async fn call(&self, inspector: &Inspector, p: &Planned, renames: &Renames) -> Result<Got> {
        let Act::Call { tool, args, request_id } = &p.act else {
            let Act::Skip(why) = &p.act else { return Ok(Got::NotMade("no call".into())) };
            return Ok(Got::NotMade(why.to_string()));
        };
        if args.contains(MASK) {
            let why = "a value of its arguments was replaced when the trace was written";
            return Ok(Got::NotMade(why.into()));
        }
        let args = renames.apply(args);
        if raw::members(&args).is_none() {
            return Ok(Got::NotMade("its arguments are no object".into()));
        }
        let client = inspector.client()?;
        if let Err(e) = known_tool(&client.tools().await?, tool) {
            return Ok(Got::NotMade(e.what));
        }
        let candidate =
            Candidate { args: args.clone(), tool: Some(tool.clone()), source: self.source.clone() };
        let wish = Wish {
            request_id: request_id.clone(),
            tool: Some(tool.clone()),
            candidates: vec![candidate],
            first_delivery: false,
            limit_s: Some(self.a.timeout),
        };
        let prepared = inspector.prepare(&wish).await?;
        if prepared.args != args {
            return Ok(Got::NotMade("its arguments can't be sent as they were".into()));
        }
        let d = &prepared.decision;
        let named = self.a.confirm_tool.iter().any(|t| t == tool);
        let confirmed = named.then(|| d.confirm.clone());
        if !d.passes(confirmed.as_deref()) {
            return Ok(Got::NotMade(format!(
                "{GATE}{}",
                if d.refused.is_some() || named {
                    stopped(d).what
                } else {
                    format!("--confirm-tool {tool} lets it pass")
                }
            )));
        }
        let released = inspector.carry_out(&prepared, confirmed.as_deref()).await?;
        if let Some(n) = released.twice() {
            let words = twice(n, &released.after.noun);
            let id = request_id.as_deref().unwrap_or_default();
            self.told_twice().push(format!("{tool} {id}: {words}"));
        }
        let call = released.call;
        let Some(s) = call.settled else { return Ok(Got::Nothing("not settled".into())) };
        Ok(match (&s.result, &s.error, s.outcome) {
            (Some(r), _, Outcome::Ok | Outcome::ToolError) => {
                Got::Said(Said::Result(r.to_string()))
            }
            (_, Some(e), Outcome::RpcError) => Got::Said(Said::Error(e.clone())),
            _ => Got::Nothing(s.why),
        })
    }

    fn played(&self, shared: &Run, own: &Run) -> Vec<Played> {
        let calls = self.asks.iter().filter(|a| is_call(a));
        calls
            .zip(shared.got.iter().zip(&own.got))
            .zip(1u64..)
            .map(|((ask, (shared, own)), call)| Played {
                call,
                seq: ask.seq,
                tool: ask.tool().unwrap_or_default(),
                recorded: ask.answer.clone(),
                shared: shared.clone(),
                own: own.clone(),
                again: None,
            })
            .collect()
    }
}

/// What begins the reason of a call that the gate stopped.
const GATE: &str = "the gate stopped it: ";

fn locked(run: &Mutex<Run>) -> std::sync::MutexGuard<'_, Run> {
    run.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}

fn keep(run: &Mutex<Run>, p: &Planned, got: Got) {
    let mut run = locked(run);
    if let (Got::Said(now), Some(then)) = (&got, &p.ask.answer) {
        run.renames.learn(then, now);
    }
    run.got.push(got);
}

#[derive(Serialize)]
struct Doc<'a> {
    schema: &'static str,
    trace: String,
    endpoint: String,
    /// Tools that need their session.
    session_tools: Vec<&'a str>,
    /// Tools with calls that were not judged: nothing is known of these.
    not_judged_tools: Vec<&'a str>,
    calls: Vec<CallJson<'a>>,
    findings: Vec<FindingJson>,
    counts: BTreeMap<&'static str, u64>,
    warnings: &'a [String],
}

#[derive(Serialize)]
struct CallJson<'a> {
    call: u64,
    tool: &'a str,
    verdict: &'static str,
    why: Option<String>,
}

#[derive(Serialize)]
struct FindingJson {
    kind: &'static str,
    severity: &'static str,
    call: Option<u64>,
    tool: Option<String>,
    handle: Option<String>,
    value: Option<String>,
    message: String,
}

fn why(v: &Verdict) -> Option<String> {
    match v {
        Verdict::Independent => None,
        Verdict::Fails(w) | Verdict::NotJudged(w) => Some(w.clone()),
        Verdict::Differs(changes) => {
            let paths: Vec<&str> = changes.iter().take(5).map(|c| c.path.as_str()).collect();
            Some(paths.join(", "))
        }
    }
}

fn report(
    a: &AuditArgs,
    runs: &Runs<'_>,
    played: &[Played],
    verdicts: &[Verdict],
    notes: &[String],
) -> Exit {
    let mut all = Findings::default();
    played.iter().zip(verdicts).filter_map(|(p, v)| finding(p, v)).for_each(|f| all.add(f));
    let mut tools: Vec<&str> = all.list().iter().filter_map(|f| f.tool.as_deref()).collect();
    tools.sort_unstable();
    tools.dedup();
    let stopped = verdicts
        .iter()
        .filter(|v| matches!(v, Verdict::NotJudged(w) if w.starts_with(GATE)))
        .count();
    // What was not judged is not cleared: the rest is no all-clear.
    let exit = match all.total() {
        _ if !runs.told_twice().is_empty() => Exit::Found,
        _ if a.read_only.read_only && stopped > 0 => Exit::Gate,
        1.. => Exit::Found,
        0 if stopped > 0 => Exit::Gate,
        0 if verdicts.iter().all(|v| matches!(v, Verdict::NotJudged(_))) => Exit::Unknown,
        0 => Exit::Good,
    };
    let open = not_judged(played, verdicts);
    if a.json {
        let doc = Doc {
            schema: "redial/audit@1",
            trace: a.trace.display().to_string(),
            endpoint: runs.settings.name(&runs.endpoint),
            session_tools: tools,
            not_judged_tools: open,
            calls: played
                .iter()
                .zip(verdicts)
                .map(|(p, v)| CallJson {
                    call: p.call,
                    tool: &p.tool,
                    verdict: v.word(),
                    why: why(v),
                })
                .collect(),
            findings: all.list().iter().map(told).collect(),
            counts: all.counts().iter().map(|(k, n)| (k.word(), *n)).collect(),
            warnings: notes,
        };
        print_raw(&document(&doc));
    } else {
        plain(a, runs, played, verdicts, (&tools, notes));
    }
    exit
}

/// Tools of which no call was judged, or some were stopped by the gate.
fn not_judged<'a>(played: &'a [Played], verdicts: &[Verdict]) -> Vec<&'a str> {
    let of = |want: &dyn Fn(&Verdict) -> bool| -> BTreeSet<&'a str> {
        let some = played.iter().zip(verdicts).filter(|(_, v)| want(v));
        some.map(|(p, _)| p.tool.as_str()).collect()
    };
    let judged = of(&|v| !matches!(v, Verdict::NotJudged(_)));
    let stopped = of(&|v| matches!(v, Verdict::NotJudged(w) if w.starts_with(GATE)));
    let open = of(&|v| matches!(v, Verdict::NotJudged(_)));
    open.into_iter().filter(|t| !judged.contains(t) || stopped.contains(t)).collect()
}

fn told(f: &Finding) -> FindingJson {
    FindingJson {
        kind: f.kind.word(),
        severity: f.severity.word(),
        call: f.call,
        tool: f.tool.clone(),
        handle: f.handle.clone(),
        value: f.value.clone(),
        message: f.message.clone(),
    }
}

fn plain(
    a: &AuditArgs,
    runs: &Runs<'_>,
    played: &[Played],
    verdicts: &[Verdict],
    (tools, notes): (&[&str], &[String]),
) {
    let mut p = Plain::stdout();
    p.field("trace", Role::Strong, &a.trace.display().to_string());
    p.field("endpoint", Role::Text, &runs.settings.name(&runs.endpoint));
    for n in notes {
        p.field("note", Role::Warn, n);
    }
    p.gap();
    let row = |(call, v): (&Played, &Verdict)| -> Vec<Cell> {
        let (role, word) = match v {
            Verdict::Independent => (Role::Good, "needs no session"),
            Verdict::Fails(_) => (Role::Bad, "fails alone"),
            Verdict::Differs(_) => (Role::Bad, "differs alone"),
            Verdict::NotJudged(_) => (Role::Dim, "not judged"),
        };
        vec![
            (role, word.to_owned()),
            (Role::Strong, format!("call {}", call.call)),
            (Role::Strong, call.tool.clone()),
            (Role::Text, why(v).unwrap_or_default()),
        ]
    };
    let rows: Vec<Vec<Cell>> = played.iter().zip(verdicts).map(row).collect();
    p.table(&rows, 2);
    p.gap();
    let judged = verdicts.iter().filter(|v| !matches!(v, Verdict::NotJudged(_))).count();
    let open = not_judged(played, verdicts);
    let (role, last) = match (tools, judged) {
        ([], n) if n > 0 && !open.is_empty() => {
            (Role::Warn, format!("{} judged, and nothing found in them", counted(n as u64, "call")))
        }
        ([], 0) => (Role::Warn, "nothing was judged".to_owned()),
        ([], n) => (
            Role::Good,
            format!(
                "{} on sessions of their own: none of the tools hides state in the session",
                counted(n as u64, "call")
            ),
        ),
        (some, _) => {
            (Role::Bad, format!("these tools hide state in the session: {}", some.join(", ")))
        }
    };
    p.line(role, &last);
    if !open.is_empty() {
        p.line(Role::Warn, &format!("not judged, so not cleared: {}", open.join(", ")));
    }
    p.print();
}
