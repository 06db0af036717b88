//! The legacy HTTP sessions of a server: a bounded number of them. Clients go away without a word, so that the one
//! which was silent longest makes room; its client is told 404 and opens another.
//!
//! Never ends a session whose request is being worked on while an idle one is there.

use super::pending::Pending;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

/// How many sessions are kept.
const MOST: usize = 1_000;

/// All sessions by id.
#[derive(Debug, Default)]
pub struct Sessions(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    /// Goes up with each use.
    clock: u64,
    all: HashMap<String, Session>,
}

#[derive(Debug, Default)]
struct Session {
    used: u64,
    pending: Arc<Pending>,
}

impl Sessions {
    /// Opens `id`, at the cost of the one that was used longest ago when there are too many.
    pub fn open(&self, id: String) {
        self.with(|state| {
            if state.all.len() >= MOST {
                // Whoever works on a request holds the list of its session.
                let age =
                    |(_, s): &(&String, &Session)| (Arc::strong_count(&s.pending) > 1, s.used);
                let oldest = state.all.iter().min_by_key(age).map(|(id, _)| id.clone());
                oldest.map(|id| state.all.remove(&id));
            }
            state.clock += 1;
            let used = state.clock;
            state.all.insert(id, Session { used, ..Session::default() });
        });
    }

    /// What is in work on `id`, which is used now; `None` when there is no such session.
    pub fn get(&self, id: &str) -> Option<Arc<Pending>> {
        self.with(|state| {
            state.clock += 1;
            let session = state.all.get_mut(id)?;
            session.used = state.clock;
            Some(session.pending.clone())
        })
    }

    /// Ends `id`; whether there was such a session.
    pub fn close(&self, id: &str) -> bool {
        self.with(|state| state.all.remove(id).is_some())
    }

    /// Forgets them all, as a restart does.
    pub fn clear(&self) {
        self.with(|s| s.all.clear());
    }

    fn with<T>(&self, f: impl FnOnce(&mut State) -> T) -> T {
        f(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_session_that_was_silent_longest_makes_room_and_a_busy_one_stays() {
        let sessions = Sessions::default();
        for n in 0..MOST {
            sessions.open(format!("s{n}"));
        }
        let busy = sessions.get("s1").unwrap();
        (2..MOST).for_each(|n| drop(sessions.get(&format!("s{n}"))));
        sessions.get("s0").unwrap();
        sessions.open("new-1".into());
        assert!(sessions.get("s2").is_none(), "s1 is older, and busy");
        assert!(["s0", "s1", "new-1"].iter().all(|id| sessions.get(id).is_some()));
        drop(busy);
        assert!(sessions.close("s1") && !sessions.close("s1"));
        assert_eq!(sessions.with(|s| s.all.len()), MOST - 1);
    }
}
