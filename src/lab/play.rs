//! Plays the lab's cells, each on a stage of its own: real processes, real transports, counted effects.

mod handle;
mod keys;
mod losses;
mod timeline;

pub use timeline::timeline;

use super::policy::{self, Attempt, Line, Policy, replayed};
use super::process::Server;
use super::scenario::{Cell, Kind, Run, Scenario};
use super::stage::{Stage, Wish};
use crate::client::Era;
use crate::error::Result;
use crate::json::raw;

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
        Kind::Step { key_outside } => s.step(key_outside, policy::Ended::Lost).await?,
        Kind::OtherError => s.step(true, policy::Ended::OtherError).await?,
        Kind::Hinted => s.hinted().await?,
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
}

fn ticket_args(request_id: &str, body: &str) -> String {
    format!(
        r#"{{"request_id":{},"title":"障害報告","body":{}}}"#,
        raw::quote(request_id),
        raw::quote(body)
    )
}
