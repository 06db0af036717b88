//! Short ways to the facts that the tests of judgement need. Times are seconds after a fixed instant.

use super::facts::ServerWord;
use crate::journal::event::Transport;
use crate::journal::fold::{Ended, Tail};
use crate::journal::{AnswerStatus, Call, Generation, Outcome, Settled};
use crate::ledger::{Effect, Row};
use crate::time::Time;
use crate::wire::id::Id;

/// `s` seconds after 2026-11-29T02:57:00Z.
pub(crate) fn t(s: f64) -> Time {
    Time(1_795_921_020_000_000).plus_seconds(s)
}

pub(crate) fn row(request_id: &str, status: &str, owner: &str, claimed: f64) -> Row {
    Row {
        request_id: request_id.into(),
        status: status.into(),
        owner: Some(owner.into()),
        claimed_at: Some(t(claimed)),
        args_hash: Some("h".into()),
        takes_over: true,
        ..Row::default()
    }
}

pub(crate) fn effect(request_id: &str, label: &str) -> Effect {
    Effect {
        key: format!("T-{label}"),
        request_id: Some(request_id.into()),
        label: label.into(),
        ..Effect::default()
    }
}

pub(crate) fn call(request_id: &str, generation: u32, sent: f64) -> Call {
    Call {
        id: (sent.abs() * 1000.0) as u64 + 1,
        generation,
        rpc_id: Id::from(7),
        tool: "create_ticket".into(),
        args: None,
        request_id: Some(request_id.into()),
        reads_only: false,
        sent_at: t(sent),
        sent: 1,
        rounds: 1,
        legacy: false,
        exchange: None,
        accepted: false,
        settled: None,
        extra_answers: 0,
        live: Default::default(),
    }
}

impl Call {
    pub(crate) fn settle(mut self, at: f64, outcome: Outcome, why: &str) -> Call {
        if outcome == Outcome::NotSent {
            self.sent = 0;
        }
        self.settled = Some(Settled {
            at: t(at),
            outcome,
            why: why.into(),
            late: false,
            answer_status: None,
            result: None,
            error: None,
        });
        self
    }
    pub(crate) fn ok(self, at: f64, status: AnswerStatus) -> Call {
        let mut c = self.settle(at, Outcome::Ok, "answered");
        if let Some(s) = c.settled.as_mut() {
            s.answer_status = Some(status);
            s.result = Some(r#"{"content":[]}"#.into());
        }
        c
    }
    pub(crate) fn not_sent(self, at: f64) -> Call {
        self.settle(at, Outcome::NotSent, "never sent: connection refused")
    }
    pub(crate) fn unknown(self, at: f64) -> Call {
        self.settle(
            at,
            Outcome::Unknown,
            "the server process died (signal 9 (SIGKILL)) before it answered",
        )
    }
}

pub(crate) fn generation(n: u32, opened: f64) -> Generation {
    Generation {
        n,
        opened_at: t(opened),
        transport: Transport::Stdio { command: vec!["server".into()], pid: Some(1) },
        session_id: None,
        ended: None,
        left: crate::procs::Left::Perhaps,
        outlived: false,
        boot: Vec::new(),
        stderr: Tail::default(),
        noise: Tail::default(),
        noise_seen: 0,
        ending: None,
        unread_from: None,
        stdout_closed: false,
        stopped: None,
    }
}

pub(crate) fn ended(g: Generation, at: f64) -> Generation {
    let gone_at = Some(t(at));
    let ended = Some(Ended { at: t(at), code: None, signal: Some(9), gone_at, launcher: false });
    Generation { ended, left: crate::procs::Left::Nobody, ..g }
}

pub(crate) fn says(status: &str, at: f64) -> ServerWord {
    ServerWord { at: t(at), status: status.into(), started_by_us: None }
}
