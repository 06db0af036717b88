//! What keeps the fold of a very large recording small: answered calls are let go, oldest first, when they are
//! many. What has no answer is never let go: it is what somebody looks for.

use super::call::{Call, CallId, Outcome};
use super::fold::Session;

impl Session {
    /// The calls that waited when this generation's server ended or closed its stdout, oldest first; none: it
    /// died idle.
    pub fn lost_with(&self, generation: u32) -> impl Iterator<Item = &Call> {
        self.calls.values().filter(move |c| c.generation == generation && c.is_lost())
    }

    /// What waited at the end of a generation, in words; `None` while it lives.
    pub fn death(&self, generation: u32) -> Option<String> {
        self.generation_n(generation)?.ended?;
        let lost: Vec<&Call> = self.lost_with(generation).collect();
        let open = self.calls.values().rfind(|c| {
            c.generation == generation
                && c.live.cancelled_at.is_some()
                && c.outcome() == Some(Outcome::Unknown)
        });
        Some(match open {
            // Whether the server was still at it nobody knows: it owes no answer any more.
            Some(c) if lost.is_empty() => {
                format!("with a call that was given up and never answered: {}", name(c))
            }
            _ => death_words(&lost),
        })
    }

    /// Events are missing here: what waits may have been answered by them.
    pub fn missing(&mut self) {
        for c in self.calls.values_mut().filter(|c| c.is_pending()) {
            let words =
                "events are missing from the recording before that, its answer may be among them";
            c.live.remark.get_or_insert_with(|| words.into());
        }
    }

    /// Lets the oldest answered calls go when more than `most` calls are kept, or more than `bytes` of their
    /// arguments and answers; they are handed over. Nothing that could still change is among them, and no call of the
    /// request that somebody asks for.
    pub fn let_answered_go(&mut self, most: usize, bytes: usize, asked: Option<&str>) -> Vec<Call> {
        let size = |c: &Call| {
            let s = c.settled.as_ref();
            let text = c.args.as_ref().map_or(0, String::len)
                + s.and_then(|s| s.result.as_ref()).map_or(0, |r| r.len())
                + s.and_then(|s| s.error.as_ref()).map_or(0, String::len);
            text + 512
        };
        let mut kept: usize = self.calls.values().map(size).sum();
        let mut count = self.calls.len();
        if count <= most && kept <= bytes {
            return Vec::new();
        }
        // More than needed, so that this is not done for every event.
        let (most, bytes) = (most / 2, bytes / 2);
        let mut going: Vec<CallId> = Vec::new();
        let wanted = |c: &Call| asked.is_some() && c.request_id.as_deref() == asked;
        for c in self.calls.values().filter(|c| is_over(c) && !wanted(c)) {
            if count <= most && kept <= bytes {
                break;
            }
            count -= 1;
            kept -= size(c);
            going.push(c.id);
        }
        let gone: Vec<Call> = going.iter().filter_map(|id| self.calls.remove(id)).collect();
        self.by_id.retain(|_, call| self.calls.contains_key(call));
        self.forget_rounds();
        gone
    }
}

/// Answered for good: nothing that still comes could change it.
fn is_over(c: &Call) -> bool {
    let answered =
        matches!(c.outcome(), Some(Outcome::Ok | Outcome::ToolError | Outcome::RpcError));
    answered && c.live.task.is_none() && c.live.wants.is_none()
}

/// Nothing waited.
pub const IDLE: &str = "while idle";

/// [`IDLE`], or with what.
pub fn death_words(lost: &[&Call]) -> String {
    match lost {
        [] => IDLE.into(),
        [one] => format!("in a call: {}", name(one)),
        [first, rest @ ..] => {
            format!("with {} calls in flight: {} and {} more", lost.len(), name(first), rest.len())
        }
    }
}

fn name(c: &Call) -> String {
    match &c.request_id {
        Some(id) => format!("{} {id}", c.tool),
        None => c.tool.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::journal::event::{Kind, Purpose};
    use crate::journal::testing::Tape;

    #[test]
    fn answered_calls_go_and_lost_ones_stay() {
        let mut t = Tape::over_stdio();
        for id in 1..=40 {
            let call = format!(
                r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/call","params":{{"name":"t","arguments":{{"request_id":"r-{id}"}}}}}}"#
            );
            let seq = t.sent(1.0, &call, None, Purpose::Asked);
            match id {
                3 => {}
                4 => drop(t.at(1.0, Kind::Note(crate::journal::Note::Cancelled { call: seq }))),
                _ => t.received(
                    2.0,
                    &format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{{"content":[]}}}}"#),
                    None,
                ),
            }
        }
        let s = &mut t.session;
        assert!(s.let_answered_go(40, 1 << 20, None).is_empty());
        let gone = s.let_answered_go(39, 1 << 20, None);
        assert_eq!((gone.len(), s.calls.len()), (21, 19));
        assert!(gone.iter().all(|c| c.outcome() == Some(Outcome::Ok)));
        assert_eq!(s.calls.values().filter(|c| c.is_pending()).count(), 1);
        assert_eq!(s.death(1), None);
        t.at(3.0, Kind::Exit { code: None, signal: Some(9), left: crate::procs::Left::Nobody });
        assert_eq!(t.session.death(1).as_deref(), Some("in a call: t r-3"));
        // An answer that was still in the pipe.
        t.received(3.1, r#"{"jsonrpc":"2.0","id":3,"result":{"content":[]}}"#, None);
        let words = "with a call that was given up and never answered: t r-4";
        assert_eq!(t.session.death(1).as_deref(), Some(words));
        t.received(3.2, r#"{"jsonrpc":"2.0","id":4,"result":{"content":[]}}"#, None);
        assert_eq!(t.session.death(1).as_deref(), Some("while idle"));
    }

    #[test]
    fn a_gap_before_the_end_may_have_held_the_answer() {
        for missing in [false, true] {
            let mut t = Tape::over_stdio();
            t.call(1.0, None);
            if missing {
                t.session.missing();
            }
            t.at(3.0, Kind::Exit { code: None, signal: Some(9), left: crate::procs::Left::Nobody });
            let (outcome, _, why) = t.said();
            assert_eq!(outcome, "unknown");
            assert_eq!(why.contains("events are missing"), missing, "{why}");
        }
    }
}
