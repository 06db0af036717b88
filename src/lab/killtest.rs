//! The kill test: start the server, call, SIGKILL it, start it again, look the request up, repeat it with the
//! same request_id, count the effects.
//!
//! A trial counts only if the kill hit: the server's own process died by signal 9 **and** the first attempt
//! failed. Everything else is void, since a published test once killed the launcher, retried a call that had
//! succeeded, and proved nothing.

use super::Dice;
use super::effects::Effects;
use super::keep::keep;
use super::process::{self, Server};
use crate::client::{Client, Endpoint, Era, Settings};
use crate::error::{Error, Result};
use crate::journal::call::answer_object;
use crate::journal::event::Transport;
use crate::journal::{AnswerStatus, Call, Hint, Kind, Note, Outcome, Tool};
use crate::json::raw;
use crate::ledger::Ledger;
use crate::serve::KillPoint;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::sync::{Semaphore, mpsc};
use tokio::task::JoinSet;

/// Where the server is killed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum At {
    /// Exactly here (built-in servers).
    Point(KillPoint),
    /// Built-in: one of the points, by the seed. Others: a moment of the measured work, by the seed.
    Random,
}

/// Which server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Target {
    /// `redial serve`, this very program.
    BuiltIn,
    /// A command that speaks on stdio.
    Command(Vec<String>),
    /// A command that listens at this URL.
    Http { url: String, start: Vec<String> },
}

/// What to do.
#[derive(Debug, Clone)]
pub struct Plan {
    /// How many trials.
    pub trials: u32,
    /// Where the dice begin.
    pub seed: u64,
    /// Where to kill.
    pub at: At,
    /// The tool; else the only one that takes a request_id and is not read-only.
    pub tool: Option<String>,
    /// Where recordings of trials that were not exactly once go.
    pub keep: PathBuf,
    /// The ledger that is counted in; a fresh one for the built-in server.
    pub ledger: Option<PathBuf>,
    /// The server.
    pub target: Target,
    /// The protocol.
    pub era: Era,
}

/// What a trial showed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    /// It proved nothing, and why.
    Void(String),
    /// The request ended with so many effects.
    Effects(u64),
}

/// One trial.
#[derive(Debug, Clone)]
pub struct Trial {
    /// Which, from 1.
    pub n: u32,
    /// Its request.
    pub request_id: String,
    /// Where it was killed, in words.
    pub at: String,
    /// What it showed.
    pub verdict: Verdict,
    /// What the restarted server said of the request; empty when it was not asked.
    pub found: String,
    /// The repeat's answer was the stored one.
    pub replayed: Option<bool>,
    /// What became of the repeat, in words.
    pub repeat: String,
    /// The recording, if one was kept.
    pub recording: Option<PathBuf>,
}

/// All trials.
#[derive(Debug, Clone, Default)]
pub struct Report {
    /// In the order they ended.
    pub trials: Vec<Trial>,
    /// The tool that was called.
    pub tool: String,
    /// How long all took.
    pub took_s: f64,
}

impl Report {
    /// Trials that proved nothing.
    pub fn void(&self) -> u64 {
        self.count(|v| matches!(v, Verdict::Void(_)))
    }
    /// Requests with exactly one effect.
    pub fn exactly_once(&self) -> u64 {
        self.count(|v| *v == Verdict::Effects(1))
    }
    /// Requests with more than one.
    pub fn duplicates(&self) -> u64 {
        self.count(|v| matches!(v, Verdict::Effects(n) if *n > 1))
    }
    /// Requests with none.
    pub fn lost(&self) -> u64 {
        self.count(|v| *v == Verdict::Effects(0))
    }
    /// Some trial counted and all that did ended with one effect.
    pub fn proves(&self) -> bool {
        self.exactly_once() > 0 && self.duplicates() + self.lost() == 0
    }
    fn count(&self, of: impl Fn(&Verdict) -> bool) -> u64 {
        self.trials.iter().filter(|t| of(&t.verdict)).count() as u64
    }
}

/// What every trial of a run shares.
struct Run {
    plan: Plan,
    program: String,
    /// Makes the request ids of this run differ from those of any other.
    tag: String,
    folder: tempfile::TempDir,
    ledger: Option<Ledger>,
    is_charge: bool,
    /// How long one undisturbed call takes (servers without kill points).
    work: Duration,
}

/// Runs the test; each trial is handed to `seen` when it ends.
///
/// # Errors
/// Exit 2 when the plan can't be carried out, exit 5 when the server can't be started or has no fitting tool,
/// exit 6 when effects can't be counted.
pub async fn run(plan: Plan, mut seen: impl FnMut(&Trial)) -> Result<Report> {
    let begin = Instant::now();
    let mut run = prepare(plan).await?;
    let tool = run.measure().await?;
    let run = Arc::new(run);
    let tool = Arc::new(tool);
    // Kill points are exact whatever the load; a moment of the measured work is not, and one server is enough
    // for somebody else's port and ledger.
    let built_in = run.plan.target == Target::BuiltIn;
    let cores = std::thread::available_parallelism().map_or(2, usize::from);
    let side_by_side = if built_in { cores * 2 } else { 1 };
    let places = Arc::new(Semaphore::new(side_by_side));
    let (done, mut results) = mpsc::channel(side_by_side);
    let mut tasks = JoinSet::new();
    for n in 1..=run.plan.trials {
        let (run, tool, places, done) = (run.clone(), tool.clone(), places.clone(), done.clone());
        tasks.spawn(async move {
            // Never closed.
            let Ok(_place) = places.acquire().await else { return };
            done.send(run.trial(n, &tool).await).await.ok();
        });
    }
    drop(done);
    let mut report = Report { tool: tool.name.clone(), ..Report::default() };
    while let Some(trial) = results.recv().await {
        // An error of one trial ends all: dropping the set ends the others' servers.
        let trial = trial?;
        seen(&trial);
        report.trials.push(trial);
    }
    report.took_s = begin.elapsed().as_secs_f64();
    Ok(report)
}

async fn prepare(plan: Plan) -> Result<Run> {
    let is_charge = plan.tool.as_deref() == Some("charge") && plan.target == Target::BuiltIn;
    if plan.target != Target::BuiltIn {
        if let At::Point(point) = plan.at {
            return Err(Error::usage(format!(
                "only the built-in server can be killed exactly {}: for any other it is --at random",
                point.word()
            )));
        }
        if plan.ledger.is_none() {
            return Err(Error::usage(
                "effects are counted in the server's ledger, and none was named",
            )
            .hint("--ledger FILE names the SQLite file that this server writes"));
        }
    }
    let folder = tempfile::Builder::new()
        .prefix("redial-killtest-")
        .tempdir()
        .map_err(|e| Error::usage(format!("no temporary folder: {e}")))?;
    let path = plan.ledger.clone().unwrap_or_else(|| folder.path().join("ledger.db"));
    let mut tag = [0; 4];
    getrandom::fill(&mut tag).map_err(|e| Error::usage(format!("no randomness: {e}")))?;
    let program = std::env::current_exe().map_err(|e| {
        Error::usage(format!("this program can't find itself, to run its server: {e}"))
    })?;
    Ok(Run {
        program: program.to_string_lossy().into_owned(),
        tag: format!("{:08x}", u32::from_be_bytes(tag)),
        ledger: (!is_charge).then(|| Ledger::open(path)),
        is_charge,
        folder,
        work: Duration::ZERO,
        plan,
    })
}

impl Run {
    fn settings(&self) -> Settings {
        Settings { era: self.plan.era, ..Settings::default() }
    }

    /// The effects of trial `n`: its own file of charges, or the one ledger.
    fn effects(&self, n: u32) -> Effects {
        match &self.ledger {
            Some(ledger) => Effects::Ledger(ledger.clone()),
            None => Effects::Lines(self.folder.path().join(format!("charges-{n}.jsonl"))),
        }
    }

    fn built_in(&self, n: u32, point: KillPoint) -> Vec<String> {
        let path = match (&self.ledger, self.effects(n)) {
            (Some(ledger), _) => ledger.path().to_owned(),
            (None, Effects::Lines(path)) => path,
            (None, Effects::Ledger(ledger)) => ledger.path().to_owned(),
        };
        let once = self.folder.path().join(format!("killed-{n}"));
        let [server, file] = match self.is_charge {
            true => ["charge", "--effects"],
            false => ["tickets", "--ledger"],
        };
        let work = if point == KillPoint::DuringWork { "0.02" } else { "0" };
        [
            self.program.as_str(),
            "serve",
            "--die-with-parent",
            server,
            file,
            &path.to_string_lossy(),
            "--work-seconds",
            work,
            "--fault",
            &format!("kill:{}", point.word()),
            "--fault",
            &format!("once:{}", once.display()),
        ]
        .map(str::to_owned)
        .to_vec()
    }

    /// Finds the tool and, for a server without kill points, how long its work takes: one call that is left alone.
    async fn measure(&mut self) -> Result<Tool> {
        let wanted = self.plan.tool.clone();
        let (client, server) = match &self.plan.target {
            Target::BuiltIn => {
                let name = wanted.unwrap_or_else(|| "create_ticket".into());
                let known = if self.is_charge { "charge" } else { "create_ticket" };
                if name != known {
                    return Err(Error::usage(format!(
                        "the built-in servers have no tool {name} to kill in"
                    ))
                    .hint("create_ticket (with a request_id) or charge (without)"));
                }
                let text = match self.is_charge {
                    true => {
                        r#"{"name":"charge","inputSchema":{"properties":{"amount":{"type":"number"}},"required":["amount"]}}"#
                    }
                    false => {
                        r#"{"name":"create_ticket","inputSchema":{"properties":{"request_id":{"type":"string"},"title":{"type":"string"},"body":{"type":"string"}},"required":["request_id","title","body"]}}"#
                    }
                };
                return Tool::parse(text).ok_or_else(|| Error::usage("no such tool"));
            }
            Target::Command(command) => {
                let command = command.clone();
                let endpoint = Endpoint::Stdio { command, env: Vec::new(), cwd: None };
                (Client::start(endpoint, self.settings()), None)
            }
            Target::Http { url, start } => {
                let server = Server::start(start)?;
                (self.over_http(url).await?, Some(server))
            }
        };
        client.ready().await?;
        let list = client.tools().await?;
        let tool = choose(&list.tools, wanted.as_deref())?;
        let id = format!("kt-{}-0", self.tag);
        let begin = Instant::now();
        let call = client.call(&tool.name, &arguments(&tool, &id, 0, &self.tag), None).await?;
        let settled = client.settled(call).await;
        self.work = begin.elapsed();
        let outcome = settled.as_ref().and_then(Call::outcome);
        client.close().await;
        if let Some(server) = server {
            server.end().await;
        }
        match outcome {
            Some(Outcome::Ok) => Ok(tool),
            _ => Err(Error::endpoint(format!(
                "a call that nobody disturbed was not answered well: {}",
                settled.and_then(|c| c.settled).map(|s| s.why).unwrap_or_default()
            ))),
        }
    }

    /// A client for a server that may still be starting.
    async fn over_http(&self, url: &str) -> Result<Client> {
        let until = Instant::now() + Duration::from_secs_f64(self.settings().start_limit_s);
        loop {
            let endpoint = Endpoint::Http { url: url.to_owned(), headers: Vec::new() };
            let client = Client::start(endpoint, self.settings());
            match client.ready().await {
                Ok(()) => return Ok(client),
                Err(e) if Instant::now() > until => return Err(e),
                Err(_) => {
                    client.close().await;
                    tokio::time::sleep(Duration::from_millis(50)).await;
                }
            }
        }
    }

    async fn trial(&self, n: u32, tool: &Tool) -> Result<Trial> {
        let mut dice = Dice(self.plan.seed ^ u64::from(n).wrapping_mul(0xA076_1D64_78BD_642F));
        let mut trial = Trial {
            n,
            request_id: format!("kt-{}-{n}", self.tag),
            at: String::new(),
            verdict: Verdict::Effects(0),
            found: String::new(),
            replayed: None,
            repeat: String::new(),
            recording: None,
        };
        let args = arguments(tool, &trial.request_id, n, &self.tag);
        let clients = match &self.plan.target {
            Target::BuiltIn => {
                let point = match self.plan.at {
                    At::Point(point) => point,
                    At::Random => dice.pick(&KillPoint::ALL).unwrap_or(KillPoint::AfterCommit),
                };
                trial.at = point.word().into();
                self.on_stdio(&mut trial, tool, &args, self.built_in(n, point), None).await?
            }
            Target::Command(command) => {
                let after = self.work.mul_f64(dice.part());
                trial.at = format!("after {:.0} ms", after.as_secs_f64() * 1000.0);
                self.on_stdio(&mut trial, tool, &args, command.clone(), Some(after)).await?
            }
            Target::Http { url, start } => {
                let after = self.work.mul_f64(dice.part());
                trial.at = format!("after {:.0} ms", after.as_secs_f64() * 1000.0);
                self.on_http(&mut trial, tool, &args, url, start, after).await?
            }
        };
        if matches!(trial.verdict, Verdict::Effects(_)) {
            let effects = self.effects(n);
            trial.verdict = Verdict::Effects(effects.of(&trial.request_id).await?);
        }
        if !matches!(trial.verdict, Verdict::Effects(1) | Verdict::Void(_)) {
            let path = self.plan.keep.join(format!("{}.jsonl", trial.request_id));
            let journals: Vec<_> = clients.iter().map(|c| c.journal().clone()).collect();
            let name = clients.first().map(|c| c.endpoint().name()).unwrap_or_default();
            keep(&path, &name, &journals).map_err(|e| {
                Error::usage(format!("the recording {} can't be written: {e}", path.display()))
            })?;
            trial.recording = Some(path);
        }
        Ok(trial)
    }

    /// `after`: kill then; else the server kills itself.
    async fn on_stdio(
        &self,
        trial: &mut Trial,
        tool: &Tool,
        args: &str,
        command: Vec<String>,
        after: Option<Duration>,
    ) -> Result<Vec<Client>> {
        let endpoint = Endpoint::Stdio { command, env: Vec::new(), cwd: None };
        let client = Client::start(endpoint, self.settings());
        client.ready().await?;
        let pid = client.journal().read(|s| match s.generation().map(|g| &g.transport) {
            Some(Transport::Stdio { pid: Some(pid), .. }) => *pid,
            _ => 0,
        });
        let call = client.call(&tool.name, args, None).await?;
        let mut family = Vec::new();
        if let Some(after) = after {
            tokio::time::sleep(after).await;
            family = process::descendants(pid);
            note(&client, "SIGKILL to the server's process");
            process::kill_pid(pid);
        }
        let first_life = client.journal().wait(|s| s.generation_n(1).and_then(|g| g.ended));
        let ended = tokio::time::timeout(Duration::from_secs(10), first_life).await.ok();
        let void = match ended {
            None => Some("the server did not die".to_owned()),
            Some(e) if e.signal != Some(9) => {
                Some(format!("the process ended by {}, not by signal 9", e.words()))
            }
            Some(_) => {
                let first = client.settled(call).await;
                let mut left = process::survivors(&family, pid).await;
                // Somebody else still holds the pipes, in whatever group.
                let gone =
                    client.journal().wait(|s| s.generation_n(1).and_then(|g| g.ended?.gone_at));
                if tokio::time::timeout(Duration::from_secs(1), gone).await.is_err() {
                    left.push(pid);
                }
                void_reason(first.as_ref(), &left)
            }
        };
        process::end_survivors(&family, pid);
        if let Some(why) = void {
            trial.verdict = Verdict::Void(why);
            client.close().await;
            return Ok(vec![client]);
        }
        client.reconnect();
        client.journal().wait(|s| (s.generations.len() > 1).then_some(())).await;
        client.ready().await?;
        finish(&client, trial, tool, args).await?;
        client.close().await;
        Ok(vec![client])
    }

    async fn on_http(
        &self,
        trial: &mut Trial,
        tool: &Tool,
        args: &str,
        url: &str,
        start: &[String],
        after: Duration,
    ) -> Result<Vec<Client>> {
        let mut server = Server::start(start)?;
        let client = self.over_http(url).await?;
        let call = client.call(&tool.name, args, None).await?;
        tokio::time::sleep(after).await;
        let family = process::descendants(server.pid);
        note(&client, "SIGKILL to the server's process");
        server.kill();
        let ended = server.ended().await;
        let void = match ended {
            None => Some("the server did not die".to_owned()),
            Some(e) if e.signal != Some(9) => {
                Some(format!("the process ended by {}, not by signal 9", e.words()))
            }
            Some(_) => {
                let left = process::survivors(&family, server.pid).await;
                // Somebody who still answers is asked for the truth about the call first.
                let first = match left.is_empty() {
                    true => client.settled(call).await,
                    false => tokio::time::timeout(Duration::from_secs(2), client.settled(call))
                        .await
                        .ok()
                        .flatten(),
                };
                void_reason(first.as_ref(), &left)
            }
        };
        process::end_survivors(&family, server.pid);
        drop(server);
        if let Some(why) = void {
            trial.verdict = Verdict::Void(why);
            client.close().await;
            return Ok(vec![client]);
        }
        let server = Server::start(start)?;
        let second = self.over_http(url).await?;
        finish(&second, trial, tool, args).await?;
        second.close().await;
        client.close().await;
        server.end().await;
        Ok(vec![client, second])
    }
}

/// Why a trial whose process died by signal 9 proves nothing all the same.
fn void_reason(first: Option<&Call>, left: &[u32]) -> Option<String> {
    if !left.is_empty() {
        return Some(
            "only a launcher died: what it had started lived on (name the server itself)".into(),
        );
    }
    match first.and_then(Call::outcome) {
        Some(Outcome::Unknown) => None,
        Some(outcome) => Some(format!("the first attempt did not fail: {}", outcome.word())),
        None => Some("the first attempt never ended".into()),
    }
}

/// What a client does that found its call unknown: look up, repeat with the same request_id.
async fn finish(client: &Client, trial: &mut Trial, tool: &Tool, args: &str) -> Result<()> {
    let id = raw::quote(&trial.request_id);
    for _ in 0..5 {
        let tools = client.tools().await?;
        if tool.takes_request_id() && tools.find("find_request").is_some() {
            let look =
                client.call("find_request", &format!(r#"{{"request_id":{id}}}"#), None).await?;
            let status = answer(client, look).await.and_then(|o| raw::get_str(&o, "status"));
            if trial.found.is_empty() {
                trial.found = status.unwrap_or_else(|| "no answer".into());
            }
        }
        let call = client.call(&tool.name, args, None).await?;
        let settled = client.settled(call).await.and_then(|c| c.settled);
        let Some(settled) = settled else { break };
        trial.repeat = format!("{}: {}", settled.outcome.word(), settled.why);
        if let Some(result) = settled.result.as_deref().and_then(answer_object) {
            trial.replayed = raw::get(&result, "replayed").and_then(|r| r.parse().ok());
        }
        // Not finished yet is no answer: the reference asks to look again and repeat.
        let waits = settled.outcome == Outcome::Ok
            && settled.answer_status == Some(AnswerStatus::InProgress);
        if !waits {
            break;
        }
        tokio::time::sleep(Duration::from_millis(500)).await;
    }
    Ok(())
}

async fn answer(client: &Client, call: u64) -> Option<String> {
    client.settled(call).await?.settled?.result.as_deref().and_then(answer_object)
}

fn note(client: &Client, text: &str) {
    let generation = client.journal().read(|s| s.generation().map_or(0, |g| g.n));
    client.journal().append(generation, Kind::Note(Note::Text(text.into())));
}

fn choose(tools: &[Tool], wanted: Option<&str>) -> Result<Tool> {
    if let Some(name) = wanted {
        let found = tools.iter().find(|t| t.name == name);
        return found.cloned().ok_or_else(|| {
            Error::usage(format!("the server has no tool {name}"))
                .hint(format!("it has {}", names(tools.iter())))
        });
    }
    let fitting: Vec<&Tool> =
        tools.iter().filter(|t| t.takes_request_id() && t.read_only != Hint::True).collect();
    match fitting.as_slice() {
        [one] => Ok((*one).clone()),
        [] => Err(Error::usage("no tool of this server takes a request_id and changes something")
            .hint(format!("name one with --tool: {}", names(tools.iter())))),
        several => Err(Error::usage("several tools of this server take a request_id")
            .hint(format!("name one with --tool: {}", names(several.iter().copied())))),
    }
}

fn names<'a>(tools: impl Iterator<Item = &'a Tool>) -> String {
    tools.map(|t| t.name.as_str()).collect::<Vec<_>>().join(", ")
}

/// Arguments that the tool's schema asks for, different in each trial, so that no two requests look alike.
fn arguments(tool: &Tool, request_id: &str, n: u32, tag: &str) -> String {
    let schema = tool.input_schema.as_deref().unwrap_or("{}");
    let required = raw::get(schema, "required").and_then(raw::items).unwrap_or_default();
    let mut out = Vec::new();
    for name in required.iter().filter_map(|r| raw::as_str(r)) {
        let kind = raw::get_path(schema, &["properties", &name, "type"]).and_then(raw::as_str);
        let value = match (name.as_str(), kind.as_deref()) {
            ("request_id", _) => raw::quote(request_id),
            (_, Some("number" | "integer")) => n.max(1).to_string(),
            (_, Some("boolean")) => "false".into(),
            (_, Some("array")) => "[]".into(),
            (_, Some("object")) => "{}".into(),
            (name, _) => raw::quote(&format!("kill test {tag}, trial {n}: {name}")),
        };
        out.push(format!("{}:{value}", raw::quote(&name)));
    }
    if tool.takes_request_id()
        && !required.iter().any(|r| raw::as_str(r).as_deref() == Some("request_id"))
    {
        out.push(format!("\"request_id\":{}", raw::quote(request_id)));
    }
    format!("{{{}}}", out.join(","))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_follow_the_schema_and_always_carry_the_key() {
        let tool = Tool::parse(
            r#"{"name":"t","inputSchema":{"properties":{"request_id":{"type":"string"},"n":{"type":"integer"},"title":{"type":"string"},"x":{"type":"array"}},"required":["n","title","x"]}}"#,
        )
        .unwrap();
        let args = arguments(&tool, "kt-1-7", 7, "1");
        assert_eq!(raw::get_str(&args, "request_id").as_deref(), Some("kt-1-7"));
        assert_eq!((raw::get(&args, "n"), raw::get(&args, "x")), (Some("7"), Some("[]")));
        assert!(raw::get_str(&args, "title").unwrap().contains("trial 7"));
    }

    #[test]
    fn a_launcher_that_survives_or_an_answer_that_came_makes_a_trial_void() {
        assert!(void_reason(None, &[4]).unwrap().contains("launcher"));
        assert!(void_reason(None, &[]).is_some());
    }
}
