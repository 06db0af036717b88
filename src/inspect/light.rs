//! A session as judgement needs it: without the tails and large results, so that a copy is cheap.

use crate::journal::fold::Tail;
use crate::journal::{Journal, Session};

/// Results over this size say nothing to a judge that their outcome doesn't.
const RESULT_BYTES: usize = 64 << 10;

/// A copy of the journal's session for judging.
pub fn session(journal: &Journal) -> Session {
    journal.read(copy)
}

/// A copy of any session for judging.
#[allow(clippy::field_reassign_with_default)] // its folding state is private to the fold, rightly
pub fn copy(s: &Session) -> Session {
    {
        let mut calls = s.calls.clone();
        for call in calls.values_mut() {
            if let Some(settled) = &mut call.settled
                && settled.result.as_ref().is_some_and(|r| r.len() > RESULT_BYTES)
            {
                settled.result = None;
            }
        }
        let generations = s.generations.iter().map(|g| crate::journal::Generation {
            stderr: Tail::default(),
            noise: Tail::default(),
            stopped: g.stopped.clone(),
            transport: g.transport.clone(),
            session_id: g.session_id.clone(),
            ending: g.ending.clone(),
            left: g.left.clone(),
            boot: g.boot.clone(),
            ..*g
        });
        let mut light = Session::default();
        light.generations = generations.collect();
        light.calls = calls;
        light.link = s.link.clone();
        light.tools = s.tools.clone();
        light.tools_generation = s.tools_generation;
        light.tools_stale = s.tools_stale;
        light.server = s.server.clone();
        light.protocol = s.protocol.clone();
        light.seq = s.seq;
        light
    }
}
