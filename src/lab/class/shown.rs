//! What each side of a lesson knows, in three columns: the client, the wire, the server's ledger and effects. Reads;
//! does no step.

use super::super::effects::Effects;
use super::super::play::timeline;
use super::{Known, lock};
use crate::client::Client;
use crate::ledger::Ledger;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::sync::watch;

/// How a line is to be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Tone {
    /// As it is.
    Plain,
    /// Good news.
    Good,
    /// A doubt.
    Doubt,
    /// Bad news.
    Bad,
    /// Beside the point.
    Dim,
}

/// What each side knows now.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Shown {
    /// What the client knows.
    pub client: Vec<(Tone, String)>,
    /// What went over the wire.
    pub wire: Vec<(Tone, String)>,
    /// What the server's ledger and effects say.
    pub server: Vec<(Tone, String)>,
    /// Effects so far; `None` when they can't be counted now.
    pub effects: Option<u64>,
    /// A step is being done.
    pub busy: bool,
    /// Steps done.
    pub done: usize,
    /// Redial's own verdict, when asked for.
    pub verdict: String,
    /// What went wrong with a step, in words.
    pub trouble: String,
    /// The lesson shows something else now: what was to go unanswered was answered before the key.
    pub too_late: bool,
}

/// Keeps what is shown fresh, until the class is gone.
pub(super) async fn show(known: Arc<Mutex<Known>>, effects: Effects, tell: watch::Sender<Shown>) {
    let mut beat = tokio::time::interval(Duration::from_millis(80));
    loop {
        beat.tick().await;
        let mut next = Shown::default();
        let (clients, http_dead) = {
            let k = lock(&known);
            next.client.clone_from(&k.client);
            (next.busy, next.done, next.too_late) = (k.busy, k.done, k.too_late);
            next.verdict.clone_from(&k.verdict);
            next.trouble.clone_from(&k.trouble);
            (k.clients.clone(), k.http_dead)
        };
        let mut wire = Vec::new();
        let mut alive = None;
        for (life, c) in clients.iter().enumerate() {
            if life > 0 {
                wire.push((Tone::Dim, "── a new connection ──".to_owned()));
            }
            wire.extend(wire_lines(c));
            let over =
                |s: &crate::journal::Session| s.generation().is_some_and(|g| g.ended.is_some());
            alive = Some(!http_dead && !c.journal().read(over));
        }
        let (mut server, total) = stored(&effects).await;
        match alive {
            Some(true) => server.insert(0, (Tone::Good, "process: alive".into())),
            Some(false) => server.insert(0, (Tone::Bad, "process: dead".into())),
            None => server.insert(0, (Tone::Dim, "process: not started".into())),
        }
        (next.wire, next.server, next.effects) = (wire, server, total);
        if tell.send_if_modified(|now| {
            let differs = *now != next;
            if differs {
                *now = next;
            }
            differs
        }) {
            continue;
        }
        if tell.is_closed() {
            return;
        }
    }
}

/// What went over the wire, calls and cancellations only: a lesson is not about the handshake.
fn wire_lines(client: &Client) -> Vec<(Tone, String)> {
    let mut calls = std::collections::HashSet::new();
    let mut out = Vec::new();
    for (_, text) in timeline(client) {
        let id = text.rsplit_once(' ').map(|(_, id)| id.trim_end_matches(')').to_owned());
        if let Some(what) = text.strip_prefix("client sends ") {
            if what.starts_with("tools/call") {
                calls.extend(id);
            } else if !what.contains("cancelled") {
                continue;
            }
            out.push((Tone::Plain, format!("→ {}", what.replace("notifications/", ""))));
        } else if text.starts_with("client receives") {
            if id.as_ref().is_some_and(|id| calls.contains(id)) {
                out.push((Tone::Plain, format!("← answer to id {}", id.unwrap_or_default())));
            }
        } else if !text.starts_with("server: ") {
            let bad = text.contains("process ends") || text.contains("kill -9");
            out.push((if bad { Tone::Bad } else { Tone::Doubt }, text));
        }
    }
    out
}

async fn stored(effects: &Effects) -> (Vec<(Tone, String)>, Option<u64>) {
    let total = match effects {
        Effects::Lines(_) => effects.total().await.ok(),
        Effects::Ledger(ledger) => {
            return rows(ledger).await;
        }
    };
    let n = total.unwrap_or(0);
    let tone = if n > 1 { Tone::Bad } else { Tone::Plain };
    (
        vec![
            (Tone::Dim, "no ledger: charge has no key".into()),
            (tone, format!("charges made: {n}")),
        ],
        total,
    )
}

async fn rows(ledger: &Ledger) -> (Vec<(Tone, String)>, Option<u64>) {
    let read = ledger.read_async(|r| Ok((r.newest(None, 8)?, r.effects_total()?))).await;
    // No file yet, or between two states: nothing is known just now.
    let Ok((mut rows, total)) = read else {
        return (vec![(Tone::Dim, "ledger: empty".into())], Some(0));
    };
    rows.reverse();
    let mut out = Vec::new();
    for row in rows {
        let tone = if row.status == "done" { Tone::Good } else { Tone::Doubt };
        out.push((tone, format!("{}: {}", row.request_id, row.status)));
        for effect in row.effects {
            out.push((Tone::Plain, format!("  ticket {}", effect.key)));
        }
    }
    out.push((if total > 1 { Tone::Bad } else { Tone::Plain }, format!("tickets made: {total}")));
    (out, Some(total))
}
