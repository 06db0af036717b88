//! What rows ask the fold of their stream: outcomes, deaths, what was lost with them.

use super::took_ms;
use crate::journal::{Call, Journal, Outcome, Session};

/// What the fold of the same stream knows: rows ask it, so that no list has an opinion of its own on an outcome.
pub trait Knows {
    /// How the call came out that this event sent, and its milliseconds; `None`: no call, or not folded yet.
    fn outcome(&self, seq: u64) -> Option<(Option<Outcome>, Option<f64>)>;
    /// What waited when this life of the server ended, in words.
    fn death(&self, generation: u32) -> Option<String>;
    /// What ended in that generation was a launcher: its server outlived it.
    fn is_launcher(&self, _generation: u32) -> bool {
        false
    }
    /// Each call that waited then, in words.
    fn lost(&self, generation: u32) -> Vec<String>;
}

/// The calls that waited when a life of the server ended, each in words. Foreign text.
fn lost(s: &Session, generation: u32) -> Vec<String> {
    let ended = s.generation_n(generation).and_then(|g| g.ended);
    let words = |c: &Call| {
        let id = c.request_id.as_deref().map(|i| format!(" {i}")).unwrap_or_default();
        let waited = ended.map_or(0.0, |e| c.sent_at.age_at(e.at));
        let waited = crate::time::span(waited.max(0.0));
        format!("{}{id} (id {}), sent {}, waited {waited}", c.tool, c.rpc_id, c.sent_at.clock())
    };
    s.lost_with(generation).map(words).collect()
}

impl Knows for Session {
    fn outcome(&self, seq: u64) -> Option<(Option<Outcome>, Option<f64>)> {
        self.calls.get(&seq).map(|c| (c.outcome(), took_ms(c)))
    }
    fn death(&self, generation: u32) -> Option<String> {
        Session::death(self, generation)
    }
    fn is_launcher(&self, generation: u32) -> bool {
        self.generation_n(generation).and_then(|g| g.ended).is_some_and(|e| e.launcher)
    }
    fn lost(&self, generation: u32) -> Vec<String> {
        lost(self, generation)
    }
}

impl Knows for Journal {
    fn outcome(&self, seq: u64) -> Option<(Option<Outcome>, Option<f64>)> {
        self.read(|s| s.outcome(seq))
    }
    fn death(&self, generation: u32) -> Option<String> {
        self.read(|s| s.death(generation))
    }
    fn is_launcher(&self, generation: u32) -> bool {
        self.read(|s| s.is_launcher(generation))
    }
    fn lost(&self, generation: u32) -> Vec<String> {
        self.read(|s| lost(s, generation))
    }
}
