//! Scenarios in which something is lost on the way: an answer, a process, a session, a client's patience.

use super::super::policy;
use super::super::stage::Wish;
use super::{ID, Scene, ticket_args};
use crate::error::Result;
use std::time::Duration;

impl Scene<'_> {
    pub(super) async fn timeout(&mut self, http: bool) -> Result<()> {
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

    pub(super) async fn killed_after_commit(&mut self) -> Result<()> {
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

    /// The step: make the call, get its answer, then fail. What is repeated, if the policy repeats such an error, is all
    /// of it.
    pub(super) async fn step(&mut self, key_outside: bool, error: policy::Ended) -> Result<()> {
        let mut line = self.stage.stdio(&Wish::default());
        let client = line.client().await?;
        for n in 1..=self.policy.tries {
            let id = if key_outside { ID.to_owned() } else { format!("lab-{n}") };
            let wait = if n == 1 { 0.0 } else { self.policy.wait_s(n, error, 0.0) };
            tokio::time::sleep(Duration::from_secs_f64(wait)).await;
            let args = self.args(&id);
            let (mut a, end) = policy::attempt(&client, self.cell.tool, &args, 30.0).await?;
            a.waited_s = wait;
            self.check(end == policy::Ended::Answered, "the tool should answer each time");
            self.attempts.push(a);
            if !self.policy.repeats(error, None, false) {
                break;
            }
        }
        self.lines.push(line);
        let name = if error == policy::Ended::Lost { "ConnectionError" } else { "ValueError" };
        self.detail = format!("each call was answered; the {name} came after it, in the step");
        Ok(())
    }

    /// The answer is lost; who may repeat depends on the hints of the tool.
    pub(super) async fn hinted(&mut self) -> Result<()> {
        let (server, mut line) = self.stage.http(&Wish::default().fault("drop-answer")).await?;
        self.servers.push(server);
        let n = self.play(&mut line, ID).await?;
        self.first_failed();
        let says = if self.stage.is_charge {
            self.check(n == 1, "a tool without the hint should not be repeated");
            "no hint says that charge may be repeated: it is not, and its outcome stays unknown"
        } else {
            self.check_last(true);
            "idempotentHint: true; repeated once, on a new connection"
        };
        self.detail = says.into();
        self.lines.push(line);
        Ok(())
    }

    pub(super) async fn lost_answer(&mut self) -> Result<()> {
        let (server, mut line) = self.stage.http(&Wish::default().fault("drop-answer")).await?;
        self.servers.push(server);
        self.play(&mut line, ID).await?;
        self.first_failed();
        self.check_last(true);
        self.detail = self.attempts.first().map(|a| a.why.clone()).unwrap_or_default();
        self.lines.push(line);
        Ok(())
    }

    pub(super) async fn dies_at_second(&mut self) -> Result<()> {
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
    pub(super) async fn refused(&mut self, wish: Wish, attempts: usize) -> Result<()> {
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

    pub(super) async fn rpc_error(&mut self) -> Result<()> {
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
}
