//! Scenarios about the request_id: what a server with a ledger makes of a repeat.

use super::super::policy::{self, Line, replayed, ticket};
use super::super::stage::Wish;
use super::{ID, Scene, ticket_args};
use crate::client::Client;
use crate::error::Result;
use crate::inspect::Inspector;
use crate::json::raw;
use crate::judge::Rules;
use crate::judge::verify::Expected;
use std::time::Duration;

impl Scene<'_> {
    pub(super) async fn while_working(&mut self) -> Result<()> {
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

    pub(super) async fn other_arguments(&mut self) -> Result<()> {
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

    pub(super) async fn claim_left(&mut self) -> Result<()> {
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

    pub(super) async fn new_request_id(&mut self) -> Result<()> {
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

    pub(super) async fn still_working(&mut self) -> Result<()> {
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
}

/// The server's word on a request.
async fn find(client: &Client, request_id: &str) -> Result<String> {
    let args = format!(r#"{{"request_id":{}}}"#, raw::quote(request_id));
    let (a, _) = policy::attempt(client, "find_request", &args, 30.0).await?;
    Ok(a.answer.as_deref().and_then(|o| raw::get_str(o, "status")).unwrap_or_default())
}
