//! The scenario of the order of events around a timeout, and how a session is told as a time line.

use super::super::policy;
use super::super::stage::Wish;
use super::{ID, Scene};
use crate::client::Client;
use crate::error::Result;
use crate::journal::event::{Http, Transport};
use crate::journal::{Event, Kind as Happened, Note};
use crate::json::raw;
use crate::time::Time;
use std::sync::Arc;
use std::time::Duration;

impl Scene<'_> {
    pub(super) async fn order(&mut self) -> Result<()> {
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
        Happened::Opened { transport: Transport::Http { .. } } => "a new session".into(),
        Happened::Http { what: Http::Status { status: s @ 400.., .. }, .. } => format!("HTTP {s}"),
        Happened::Http { what: Http::Failed { .. } | Http::Partial { .. }, .. } => {
            "the connection broke".into()
        }
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
