//! The kill test: start the server, call, SIGKILL it, start it again, look the request up, repeat it with the
//! same request_id, count the effects.
//!
//! A trial counts only if the kill hit: the server's own process died by signal 9 **and** the first attempt
//! failed. Everything else is void, since a published test once killed the launcher, retried a call that had
//! succeeded, and proved nothing.

mod settle;
mod subject;
mod trial;

pub use settle::Settled;

use super::effects::Effects;
use super::process::Server;
use crate::client::{Client, Endpoint, Era, Settings};
use crate::error::{Error, Result};
use crate::ledger::Ledger;
use crate::record::redact::Extra;
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
    /// What they must not say, besides what no recording says.
    pub hides: Extra,
    /// The ledger that is counted in; a fresh one for the built-in server.
    pub ledger: Option<PathBuf>,
    /// Its tables that hold effects, where several could.
    pub effects: Vec<String>,
    /// For how long nothing may change before the last count.
    pub settle: Duration,
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
    /// It was first counted with so many effects, and ended with others.
    pub late_from: Option<u64>,
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
    /// What the count after a quiet time showed; `None` while it is to come.
    pub settled: Option<Settled>,
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
    /// Some trial counted, all that did ended with one effect, counted again after a quiet time, and no other effect
    /// came.
    pub fn proves(&self) -> bool {
        let explains = self.settled.as_ref().is_some_and(Settled::explains);
        self.exactly_once() > 0 && self.duplicates() + self.lost() == 0 && explains
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
    /// The request_id of that call.
    undisturbed: Option<String>,
}

/// Runs the test; each trial is handed to `seen` when it ends.
///
/// # Errors
/// Exit 2 when the plan can't be carried out, exit 5 when the server can't be started or has no fitting tool,
/// exit 6 when effects can't be counted.
pub async fn run(plan: Plan, mut seen: impl FnMut(&Trial)) -> Result<Report> {
    let begin = Instant::now();
    let mut run = prepare(plan).await?;
    let before = run.before().await?;
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
    report.settled = Some(run.settle(&mut report, before).await?);
    report.took_s = begin.elapsed().as_secs_f64();
    Ok(report)
}

/// Whether somebody takes connections at this URL.
async fn listens(url: &str) -> bool {
    let Ok(url) = reqwest::Url::parse(url) else { return false };
    let (Some(host), Some(port)) = (url.host_str(), url.port_or_known_default()) else {
        return false;
    };
    let connect = tokio::net::TcpStream::connect((host.trim_matches(['[', ']']), port));
    matches!(tokio::time::timeout(Duration::from_secs(1), connect).await, Ok(Ok(_)))
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
        ledger: (!is_charge).then(|| Ledger::counting(path, &plan.effects)),
        is_charge,
        folder,
        work: Duration::ZERO,
        undisturbed: None,
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

    /// Starts the server of an URL, and a client for it. Nothing is sent to anybody else: whoever listens there before
    /// is not the server that was started, nor is whoever answers when that one has ended.
    async fn over_http(&self, url: &str, start: &[String]) -> Result<(Server, Client)> {
        // What the server of the trial before left behind was ended, and may take a moment to be gone.
        let free = Instant::now() + Duration::from_secs(3);
        while listens(url).await && Instant::now() < free {
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        if listens(url).await {
            return Err(Error::endpoint(format!(
                "something listens at {url} already, and it is not the server that is to be killed: nothing was sent"
            ))
            .hint("end it, or name another port in --http and --start"));
        }
        let mut server = Server::start_guarded(start)?;
        let until = Instant::now() + Duration::from_secs_f64(self.settings().start_limit_s);
        loop {
            let endpoint = Endpoint::Http { url: url.to_owned(), headers: Vec::new() };
            let client = Client::start(endpoint, self.settings());
            let ready = client.ready().await;
            if let Some(end) = server.over() {
                client.close().await;
                let last = server.last(3).join(" | ");
                return Err(Error::endpoint(format!(
                    "the started server ended ({}) before it could be called: {last}",
                    end.words()
                ))
                .hint("--start must name the server itself: what it starts and leaves behind can't be killed"));
            }
            match ready {
                Ok(()) => return Ok((server, client)),
                Err(e) if Instant::now() > until => return Err(e),
                Err(_) => {
                    client.close().await;
                    tokio::time::sleep(Duration::from_millis(50)).await;
                }
            }
        }
    }
}
