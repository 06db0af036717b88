//! Plays the lab's cells, each on a stage of its own: real processes, real transports, counted effects.

use super::policy::{self, Attempt, Line, Policy, replayed, ticket};
use super::process::Server;
use super::scenario::{Cell, Kind, Run, Scenario};
use super::stage::{Stage, Wish};
use crate::client::{Client, Era};
use crate::error::Result;
use crate::inspect::Inspector;
use crate::journal::event::Transport;
use crate::journal::{Event, Kind as Happened, Note};
use crate::json::raw;
use crate::judge::Rules;
use crate::judge::verify::Expected;
use crate::time::Time;
use std::sync::Arc;
use std::time::Duration;

/// The one request of most scenarios.
const ID: &str = "lab-1";

/// What a cell has shown so far.
struct Scene<'a> {
    cell: Cell,
    limits: &'a [f64],
    policy: &'static Policy,
    stage: Stage,
    attempts: Vec<Attempt>,
    wrong: Vec<String>,
    void: Option<String>,
    detail: String,
    timeline: Vec<(f64, String)>,
    lines: Vec<Line>,
    servers: Vec<Server>,
}

/// Plays one cell in one era.
///
/// # Errors
/// When a server can't be started or its effects can't be counted.
pub async fn play(scenario: &'static Scenario, cell: Cell, era: Era) -> Result<Run> {
    let mut s = Scene {
        cell,
        limits: scenario.limits,
        policy: policy::named(cell.policy),
        stage: Stage::new(cell.tool, era)?,
        attempts: Vec::new(),
        wrong: Vec::new(),
        void: None,
        detail: String::new(),
        timeline: Vec::new(),
        lines: Vec::new(),
        servers: Vec::new(),
    };
    match cell.kind {
        Kind::Timeout { http } => s.timeout(http).await?,
        Kind::KilledAfterCommit => s.killed_after_commit().await?,
        Kind::Step { key_outside } => s.step(key_outside).await?,
        Kind::LostAnswer => s.lost_answer().await?,
        Kind::WhileWorking => s.while_working().await?,
        Kind::OtherArguments => s.other_arguments().await?,
        Kind::ClaimLeft => s.claim_left().await?,
        Kind::NewRequestId => s.new_request_id().await?,
        Kind::StillWorking => s.still_working().await?,
        Kind::DiesAtSecond => s.dies_at_second().await?,
        Kind::SessionLost { status } => {
            s.refused(Wish::default().fault(format!("lose-session:{status}")), 2).await?;
        }
        Kind::Busy { status } => {
            s.refused(Wish::default().fault(format!("busy:{status}*2")), 3).await?;
        }
        Kind::RpcError => s.rpc_error().await?,
        Kind::LostHandle { rebound } => return s.lost_handle(scenario, rebound).await,
        Kind::Order => s.order().await?,
    }
    let effects = s.stage.effects.total().await?;
    Ok(s.finish(scenario, effects).await)
}

impl Scene<'_> {
    async fn finish(self, scenario: &'static Scenario, effects: u64) -> Run {
        let journals: Vec<_> = self.lines.iter().flat_map(Line::journals).collect();
        for line in &self.lines {
            line.close().await;
        }
        for server in self.servers {
            server.end().await;
        }
        let protocol = journals.first().and_then(|j| j.read(|s| s.protocol.clone()));
        Run {
            scenario: scenario.name,
            cell: self.cell,
            protocol: protocol.unwrap_or_default(),
            attempts: self.attempts,
            effects,
            void: self.void,
            wrong: self.wrong,
            detail: self.detail,
            timeline: self.timeline,
            journals,
        }
    }

    /// The arguments of the request; a charge has no request_id to give.
    fn args(&self, request_id: &str) -> String {
        match self.stage.is_charge {
            true => r#"{"amount":100}"#.into(),
            false => ticket_args(request_id, "ログイン不可"),
        }
    }

    fn check(&mut self, holds: bool, what: &str) {
        if !holds {
            self.wrong.push(what.to_owned());
        }
    }

    /// The last attempt was answered; for a ticket, as `stored` says.
    fn check_last(&mut self, stored: bool) {
        let Some(last) = self.attempts.last() else { return };
        let (ok, was) = (last.outcome == "ok", replayed(last));
        self.check(ok, "the last attempt was not answered well");
        if !self.stage.is_charge {
            self.check(was == Some(stored), "the last answer's replayed is not as expected");
        }
    }

    async fn play(&mut self, line: &mut Line, request_id: &str) -> Result<usize> {
        let args = self.args(request_id);
        let made =
            policy::play(self.policy, line, self.cell.tool, |_| args.clone(), self.limits).await?;
        let n = made.len();
        self.attempts.extend(made);
        Ok(n)
    }

    /// The first attempt must have failed, or nothing is shown.
    fn first_failed(&mut self) {
        let first = self.attempts.first().map_or("none", |a| a.outcome);
        if first != "unknown" {
            self.void = Some(format!("the first attempt did not fail: {first}"));
        }
    }

    async fn timeout(&mut self, http: bool) -> Result<()> {
        let wish = Wish::work(3.0);
        let mut line = match http {
            true => {
                let (server, line) = self.stage.http(&wish).await?;
                self.servers.push(server);
                line
            }
            false => self.stage.stdio(&wish),
        };
        let n = self.play(&mut line, ID).await?;
        self.lines.push(line);
        self.first_failed();
        self.check(n == 2, "there should be two attempts");
        self.check_last(true);
        let why = self.attempts.first().map(|a| a.why.clone()).unwrap_or_default();
        self.check(why.contains("no answer within"), "the first attempt should time out");
        self.detail = format!("the client was told: {why}");
        Ok(())
    }

    async fn killed_after_commit(&mut self) -> Result<()> {
        let wish = Wish::default().fault("kill:after-commit").fault(self.stage.once());
        let mut line = self.stage.stdio(&wish);
        self.play(&mut line, ID).await?;
        self.first_failed();
        let by_nine = line.journals().first().is_some_and(|j| {
            j.read(|s| s.generation_n(1).and_then(|g| g.ended).is_some_and(|e| e.signal == Some(9)))
        });
        if !by_nine {
            self.void = Some("the server's process did not end by signal 9".into());
        }
        self.lines.push(line);
        self.check_last(true);
        let ids: Vec<&str> = self.attempts.iter().map(|a| a.rpc_id.as_str()).collect();
        self.detail = format!("JSON-RPC ids of the attempts: {}", ids.join(" and "));
        let same = ids.windows(2).all(|w| w[0] == w[1]);
        self.check(same, "both attempts should carry the same JSON-RPC id");
        Ok(())
    }

    /// The step: make the call, get its answer, then fail with a ConnectionError. What is repeated is all of it.
    async fn step(&mut self, key_outside: bool) -> Result<()> {
        let mut line = self.stage.stdio(&Wish::default());
        let client = line.client().await?;
        for n in 1..=self.policy.tries {
            let id = if key_outside { ID.to_owned() } else { format!("lab-{n}") };
            let wait = if n == 1 { 0.0 } else { self.policy.wait_s(n, policy::Ended::Lost, 0.0) };
            tokio::time::sleep(Duration::from_secs_f64(wait)).await;
            let args = self.args(&id);
            let (mut a, end) = policy::attempt(&client, self.cell.tool, &args, 30.0).await?;
            a.waited_s = wait;
            self.check(end == policy::Ended::Answered, "the tool should answer each time");
            self.attempts.push(a);
        }
        self.lines.push(line);
        self.detail =
            "each call was answered; the ConnectionError came after it, in the step".into();
        Ok(())
    }

    async fn lost_answer(&mut self) -> Result<()> {
        let (server, mut line) = self.stage.http(&Wish::default().fault("drop-answer")).await?;
        self.servers.push(server);
        self.play(&mut line, ID).await?;
        self.first_failed();
        self.check_last(true);
        self.detail = self.attempts.first().map(|a| a.why.clone()).unwrap_or_default();
        self.lines.push(line);
        Ok(())
    }

    async fn while_working(&mut self) -> Result<()> {
        let (server, mut first) = self.stage.http(&Wish::work(1.0)).await?;
        let mut second = Line::new(first.endpoint.clone(), first.era);
        self.servers.push(server);
        let (one, two) = (first.client().await?, second.client().await?);
        let args = self.args(ID);
        let tool = self.cell.tool;
        let later = async {
            self.stage.wait_for_work(ID).await;
            policy::attempt(&two, tool, &args, 30.0).await
        };
        let (a, b) = tokio::join!(policy::attempt(&one, tool, &args, 30.0), later);
        let ((a, _), (b, _)) = (a?, b?);
        if !self.stage.is_charge {
            let same = ticket(&a).is_some() && ticket(&a) == ticket(&b);
            self.check(same, "both should get the same ticket");
            self.check(
                (replayed(&a), replayed(&b)) == (Some(false), Some(true)),
                "the first does the work, the second gets the stored result",
            );
            self.detail = format!("both got {}", ticket(&a).unwrap_or_default());
        }
        self.attempts.extend([a, b]);
        self.lines.extend([first, second]);
        Ok(())
    }

    async fn other_arguments(&mut self) -> Result<()> {
        let mut line = self.stage.stdio(&Wish::default());
        self.play(&mut line, ID).await?;
        let client = line.client().await?;
        let other = ticket_args(ID, "something else");
        let (a, _) = policy::attempt(&client, self.cell.tool, &other, 30.0).await?;
        self.check(a.outcome == "tool_error", "the second should be refused");
        self.detail = format!("the second was answered with an error: {}", a.why);
        self.attempts.push(a);
        self.lines.push(line);
        Ok(())
    }

    async fn claim_left(&mut self) -> Result<()> {
        let wish = Wish::work(0.2).fault("kill:during-work").fault(self.stage.once());
        let mut line = self.stage.stdio(&wish);
        let client = line.client().await?;
        let (a, _) = policy::attempt(&client, self.cell.tool, &self.args(ID), 30.0).await?;
        self.attempts.push(a);
        self.first_failed();
        let client = line.fresh().await?;
        let said = find(&client, ID).await?;
        self.check(said == "abandoned", "find_request should say abandoned");
        let (a, _) = policy::attempt(&client, self.cell.tool, &self.args(ID), 30.0).await?;
        self.attempts.push(a);
        self.check_last(false);
        let after = find(&client, ID).await?;
        self.check(after == "done", "find_request should say done");
        self.detail = format!("find_request said {said}, after the repeat {after}");
        self.lines.push(line);
        Ok(())
    }

    async fn new_request_id(&mut self) -> Result<()> {
        let (server, mut line) = self.stage.http(&Wish::default().fault("drop-answer")).await?;
        self.servers.push(server);
        let made = policy::play(
            self.policy,
            &mut line,
            self.cell.tool,
            |n| ticket_args(&format!("lab-{n}"), "ログイン不可"),
            self.limits,
        )
        .await?;
        self.attempts = made;
        self.first_failed();
        self.lines.push(line);
        let inspector = Inspector::new(self.stage.ledger().cloned(), None, Rules::default());
        let (_, verified) = inspector.verify(&Expected::default(), false).await?;
        let pair = verified.problems.iter().find(|p| p.kind == "suspect_duplicate");
        self.check(
            pair.is_some_and(|p| p.request_ids == ["lab-1", "lab-2"]),
            "verify should point at the pair",
        );
        self.detail = format!("verify: {}", verified.sentence);
        Ok(())
    }

    async fn still_working(&mut self) -> Result<()> {
        let wish = Wish { wait_s: Some(0.3), ..Wish::work(1.5) };
        let (server, mut first) = self.stage.http(&wish).await?;
        let mut second = Line::new(first.endpoint.clone(), first.era);
        self.servers.push(server);
        let (one, two) = (first.client().await?, second.client().await?);
        let args = self.args(ID);
        let (a, _) = policy::attempt(&one, self.cell.tool, &args, 0.3).await?;
        self.attempts.push(a);
        self.first_failed();
        let (b, _) = policy::attempt(&two, self.cell.tool, &args, 30.0).await?;
        let status = b.answer.as_deref().and_then(|o| raw::get_str(o, "status"));
        self.check(status.as_deref() == Some("in_progress"), "the repeat should say in_progress");
        self.attempts.push(b);
        let said = find(&two, ID).await?;
        self.check(said == "running", "find_request should say running");
        let mut rounds = 1;
        while find(&two, ID).await? == "running" {
            rounds += 1;
            tokio::time::sleep(Duration::from_millis(200)).await;
        }
        let (c, _) = policy::attempt(&two, self.cell.tool, &args, 30.0).await?;
        self.attempts.push(c);
        self.check_last(true);
        self.detail = format!("in_progress, looked up {rounds} times, then the stored result");
        self.lines.extend([first, second]);
        Ok(())
    }

    async fn dies_at_second(&mut self) -> Result<()> {
        let mut line = self.stage.stdio(&Wish::default().fault("exit:2"));
        let mut answered = 0;
        for n in 1..=self.cell.logical {
            let args = match self.stage.is_charge {
                true => format!(r#"{{"amount":{n}}}"#),
                false => ticket_args(&format!("lab-{n}"), &format!("job {n}")),
            };
            let made =
                policy::play(self.policy, &mut line, self.cell.tool, |_| args.clone(), self.limits)
                    .await?;
            answered += u32::from(made.last().is_some_and(|a| a.outcome == "ok"));
            self.attempts.extend(made);
        }
        let ends: Vec<String> = line
            .journals()
            .iter()
            .filter_map(|j| j.read(|s| s.generation().and_then(|g| g.ended)))
            .map(|e| e.words())
            .collect();
        let fatal = line.journals().iter().any(|j| {
            j.read(|s| {
                s.generation().is_some_and(|g| g.stderr.last(3).iter().any(|l| l.contains("FATAL")))
            })
        });
        self.check(answered == self.cell.logical, "every call should be answered in the end");
        self.check(
            ends.iter().all(|e| e == "exit code 137") && !ends.is_empty(),
            "each death should be exit code 137",
        );
        self.check(fatal, "the server should say FATAL on stderr");
        self.detail = format!(
            "{answered} of {} answered; the server died {} times: {}",
            self.cell.logical,
            ends.len(),
            ends.join(", ")
        );
        self.lines.push(line);
        Ok(())
    }

    /// The server refuses the call at first, without running it.
    async fn refused(&mut self, wish: Wish, attempts: usize) -> Result<()> {
        let (server, mut line) = self.stage.http(&wish).await?;
        self.servers.push(server);
        let n = self.play(&mut line, ID).await?;
        self.check(n == attempts, "the number of attempts is not as expected");
        self.check_last(false);
        let waits: Vec<String> =
            self.attempts.iter().skip(1).map(|a| format!("{:.1} s", a.waited_s)).collect();
        let why = self.attempts.first().map(|a| a.why.clone()).unwrap_or_default();
        self.detail = format!("{why}; waited {}", waits.join(", then "));
        self.lines.push(line);
        Ok(())
    }

    async fn rpc_error(&mut self) -> Result<()> {
        let mut line = self.stage.stdio(&Wish::default().fault("rpc-error"));
        let n = self.play(&mut line, ID).await?;
        self.check(n == 1, "a JSON-RPC error should not be repeated");
        let first = self.attempts.last().map_or("none", |a| a.outcome);
        self.check(first == "rpc_error", "the first call should be answered with a JSON-RPC error");
        // The next job is other work, and goes well.
        self.play(&mut line, "lab-2").await?;
        self.check_last(false);
        self.detail = "the error was not repeated; the next call was answered".into();
        self.lines.push(line);
        Ok(())
    }

    async fn lost_handle(mut self, scenario: &'static Scenario, rebound: bool) -> Result<Run> {
        let mut line = self.stage.other("baskets");
        let owner = |name: &str| format!(r#"{{"owner":"{name}"}}"#);
        let first = line.client().await?;
        let (a, _) = policy::attempt(&first, "create_basket", &owner("Mori"), 30.0).await?;
        let handle =
            a.answer.as_deref().and_then(|o| raw::get_str(o, "basket_id")).unwrap_or_default();
        self.attempts.push(a);
        first.close().await;
        let second = line.fresh().await?;
        if rebound {
            let (a, _) = policy::attempt(&second, "create_basket", &owner("Sato"), 30.0).await?;
            self.attempts.push(a);
        }
        let item = format!(r#"{{"basket_id":{},"sku":"book-42"}}"#, raw::quote(&handle));
        let (a, _) = policy::attempt(&second, "add_item", &item, 30.0).await?;
        let whose = a.answer.as_deref().and_then(|o| raw::get_str(o, "owner"));
        let effects = u64::from(a.outcome == "ok");
        self.detail = match (&whose, a.outcome) {
            (Some(whose), _) => format!(
                "flagged: {handle} was Mori's before the restart; the item went into {whose}'s basket, and no error told"
            ),
            (None, outcome) => format!("flagged: {handle} is gone after the restart ({outcome})"),
        };
        let expected = rebound.then(|| "Sato".to_owned());
        self.check(whose == expected, "the handle should be gone, or another's");
        self.attempts.push(a);
        self.lines.push(line);
        Ok(self.finish(scenario, effects).await)
    }

    async fn order(&mut self) -> Result<()> {
        let mut line = self.stage.stdio(&Wish::work(3.0));
        let client = line.client().await?;
        let (a, _) = policy::attempt(&client, self.cell.tool, &self.args(ID), 1.0).await?;
        self.attempts.push(a);
        self.first_failed();
        // The handler finishes 2 s after the client was told.
        let finished = client.journal().wait(|s| {
            let g = s.generation()?;
            g.stderr.iter().any(|(_, l)| l.starts_with(b"handler finishing")).then_some(())
        });
        if tokio::time::timeout(Duration::from_secs(20), finished).await.is_err() {
            self.wrong.push("the handler never finished".into());
        }
        self.timeline = timeline(&client);
        let place = |what: &str| self.timeline.iter().position(|(_, t)| t.contains(what));
        let order = [
            place("SIDE EFFECT COMMITTED"),
            place("the client is told"),
            place("INBOUND notifications/cancelled"),
            place("handler finishing"),
        ];
        let right = order.iter().all(Option::is_some) && order.is_sorted();
        self.check(right, "the order of events is not as expected");
        self.detail = "effect, then the client is told, then the cancel reaches the server, then the handler finishes all the same".into();
        self.lines.push(line);
        Ok(())
    }
}

impl Stage {
    /// Waits until the work has begun: a claim in the ledger, a line among the charges.
    pub(super) async fn wait_for_work(&self, request_id: &str) {
        for _ in 0..2000 {
            let begun = match self.is_charge {
                true => self.effects.total().await.unwrap_or(0) > 0,
                false => self.effects.stored(request_id).await.is_some(),
            };
            if begun {
                return;
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }
}

fn ticket_args(request_id: &str, body: &str) -> String {
    format!(
        r#"{{"request_id":{},"title":"障害報告","body":{}}}"#,
        raw::quote(request_id),
        raw::quote(body)
    )
}

/// The server's word on a request.
async fn find(client: &Client, request_id: &str) -> Result<String> {
    let args = format!(r#"{{"request_id":{}}}"#, raw::quote(request_id));
    let (a, _) = policy::attempt(client, "find_request", &args, 30.0).await?;
    Ok(a.answer.as_deref().and_then(|o| raw::get_str(o, "status")).unwrap_or_default())
}

/// What was sent, told and said, in seconds from the sending of the first call.
pub fn timeline(client: &Client) -> Vec<(f64, String)> {
    let (events, _) = client.journal().events_from(0);
    let mut all: Vec<(Time, u64, String)> =
        events.iter().filter_map(|e| Some((e.at, e.seq, words(e)?))).collect();
    client.journal().read(|s| {
        for g in &s.generations {
            for (at, line) in g.stderr.iter() {
                let text = String::from_utf8_lossy(line).into_owned();
                if !text.starts_with("boot id") {
                    all.push((at, u64::MAX, format!("server: {text}")));
                }
            }
        }
    });
    all.sort_by_key(|(at, seq, _)| (*at, *seq));
    let start = all.iter().find(|(_, _, t)| t.contains("tools/call")).map(|(at, ..)| *at);
    let start = start.unwrap_or_default();
    all.into_iter()
        .filter(|(at, ..)| *at >= start)
        .map(|(at, _, text)| (start.age_at(at), text))
        .collect()
}

fn words(e: &Arc<Event>) -> Option<String> {
    Some(match &e.kind {
        Happened::Sent { raw: bytes, .. } => {
            let text = String::from_utf8_lossy(bytes);
            let method = raw::get_str(&text, "method")?;
            let id = raw::get(&text, "id").map(|id| format!(" (id {id})")).unwrap_or_default();
            format!("client sends {method}{id}")
        }
        Happened::Received { raw: bytes, .. } => {
            let text = String::from_utf8_lossy(bytes);
            format!("client receives the answer to id {}", raw::get(&text, "id")?)
        }
        Happened::Opened { transport: Transport::Stdio { .. } } => "the server is started".into(),
        Happened::Exit { code, signal, .. } => match signal {
            Some(s) => format!("the server's process ends: signal {s}"),
            None => format!("the server's process ends: exit code {}", code.unwrap_or(0)),
        },
        Happened::Note(Note::TimedOut { after_s, .. }) => {
            format!("the client is told: no answer within {after_s} s")
        }
        Happened::Note(Note::Text(t)) => t.clone(),
        _ => return None,
    })
}
