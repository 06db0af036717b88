//! One trial of the kill test: call, SIGKILL, was it a hit?, start again, look up, repeat with the same request_id,
//! count. Decides nothing about the run as a whole.

use super::super::Dice;
use super::super::keep::keep;
use super::super::process;
use super::subject::arguments;
use super::{At, Run, Target, Trial, Verdict};
use crate::client::{Client, Endpoint};
use crate::error::Result;
use crate::journal::call::answer_object;
use crate::journal::event::Transport;
use crate::journal::{AnswerStatus, Call, Kind, Note, Outcome, Tool};
use crate::json::{key, raw};
use crate::model::hash::Shape;
use crate::procs;
use crate::serve::KillPoint;
use std::time::{Duration, Instant};

impl Run {
    pub(super) async fn trial(&self, n: u32, tool: &Tool) -> Result<Trial> {
        let mut dice = Dice(self.plan.seed ^ u64::from(n).wrapping_mul(0xA076_1D64_78BD_642F));
        let mut trial = Trial {
            n,
            request_id: self.request_id(tool, n),
            at: String::new(),
            verdict: Verdict::Effects(0),
            found: String::new(),
            replayed: None,
            repeat: String::new(),
            recording: None,
            late_from: None,
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
            let name = clients.first().map(|c| c.name()).unwrap_or_default();
            // The trial was made, whatever can be kept of it.
            match keep(&path, &name, &journals, &self.plan.hides) {
                Ok(()) => trial.recording = Some(path),
                Err(e) => {
                    let why = format!("; the recording {} can't be written: {e}", path.display());
                    trial.repeat.push_str(&why);
                }
            }
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
            family = procs::descendants(pid);
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
        let (mut server, client) = self.over_http(url, start).await?;
        let call = client.call(&tool.name, args, None).await?;
        tokio::time::sleep(after).await;
        let family = procs::descendants(server.pid);
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
        let (server, second) = self.over_http(url, start).await?;
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

/// How long a server may say `in_progress` before the trial is given up as void.
const UNFINISHED: Duration = Duration::from_secs(30);

/// What a client does that found its call unknown: look up, repeat with the same request_id. A trial whose request the
/// server never called finished is void: its effects may still come.
async fn finish(client: &Client, trial: &mut Trial, tool: &Tool, args: &str) -> Result<()> {
    let until = Instant::now() + UNFINISHED;
    loop {
        let tools = client.tools().await?;
        if tool.takes_request_id && tools.find("find_request").is_some() {
            let spelling = tools.find("find_request").and_then(|t| Shape::of(t).spelling());
            let id = key::spelled(&trial.request_id, spelling.unwrap_or_default());
            let look =
                client.call("find_request", &format!(r#"{{"request_id":{id}}}"#), None).await?;
            let status = answer(client, look).await.and_then(|o| raw::get_str(&o, "status"));
            if trial.found.is_empty() {
                trial.found = status.unwrap_or_else(|| "no answer".into());
            }
        }
        let call = client.call(&tool.name, args, None).await?;
        let settled = client.settled(call).await.and_then(|c| c.settled);
        let Some(settled) = settled else { return Ok(()) };
        trial.repeat = format!("{}: {}", settled.outcome.word(), settled.why);
        if let Some(result) = settled.result.as_deref().and_then(answer_object) {
            trial.replayed = raw::get(&result, "replayed").and_then(|r| r.parse().ok());
        }
        // Not finished yet is no answer: the reference asks to look again and repeat.
        let waits = settled.outcome == Outcome::Ok
            && settled.answer_status == Some(AnswerStatus::InProgress);
        if !waits {
            return Ok(());
        }
        if Instant::now() > until {
            let s = UNFINISHED.as_secs();
            trial.verdict =
                Verdict::Void(format!("the server still said in_progress after {s} s of asking"));
            return Ok(());
        }
        tokio::time::sleep(Duration::from_millis(500)).await;
    }
}

async fn answer(client: &Client, call: u64) -> Option<String> {
    client.settled(call).await?.settled?.result.as_deref().and_then(answer_object)
}

fn note(client: &Client, text: &str) {
    let generation = client.journal().read(|s| s.generation().map_or(0, |g| g.n));
    client.journal().append(generation, Kind::Note(Note::Text(text.into())));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_launcher_that_survives_or_an_answer_that_came_makes_a_trial_void() {
        assert!(void_reason(None, &[4]).unwrap().contains("launcher"));
        assert!(void_reason(None, &[]).is_some());
    }
}
