//! Which life of the server, as the clients see it, an HTTP message belongs to. Each legacy session is one
//! generation; requests that stand alone (2026-07-28, or a server without sessions) share one.
//!
//! Session ids are secrets: outside this module they have names.

use crate::journal::Kind;
use crate::journal::event::Transport;
use crate::record::summary;
use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

#[derive(Debug, Default)]
pub(super) struct Sessions(Mutex<Known>);

#[derive(Debug, Default)]
struct Known {
    by_id: HashMap<String, (u32, String)>,
    generations: u32,
    /// Where messages without a session go.
    alone: Option<u32>,
}

/// Where one request belongs.
#[derive(Debug)]
pub(super) struct Client {
    pub generation: u32,
    /// The name of its session.
    pub session: Option<String>,
    /// The generation begins with it.
    pub opened: Option<Kind>,
    /// It asks for a session.
    initializes: bool,
}

impl Sessions {
    fn lock(&self) -> MutexGuard<'_, Known> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// By its session id, or by what it says. `first` is what has come of its body.
    pub fn of_request(&self, id: Option<&str>, first: &[u8], url: impl Fn() -> String) -> Client {
        let mut k = self.lock();
        let opened = || Some(Kind::Opened { transport: Transport::Http { url: url() } });
        let client = |generation, session, opened| Client {
            generation,
            session,
            opened,
            initializes: false,
        };
        if let Some(id) = id {
            if let Some((generation, name)) = k.by_id.get(id) {
                return client(*generation, Some(name.clone()), None);
            }
            // A session that is older than this tap.
            let (generation, name) = k.open(id);
            return client(generation, Some(name), opened());
        }
        let method = std::str::from_utf8(first).ok().and_then(summary::of).and_then(|s| s.method);
        if method.as_deref() == Some("initialize") {
            k.generations += 1;
            return Client { initializes: true, ..client(k.generations, None, opened()) };
        }
        match k.alone {
            Some(generation) => client(generation, None, None),
            None => {
                k.generations += 1;
                k.alone = Some(k.generations);
                client(k.generations, None, opened())
            }
        }
    }

    /// The session's name, for the status line of an answer.
    pub fn of_answer(&self, c: &Client, given: Option<&str>, good: bool) -> Option<String> {
        if !c.initializes {
            return c.session.clone().filter(|_| good);
        }
        let mut k = self.lock();
        match given.filter(|_| good) {
            Some(id) => {
                let name = k.name();
                k.by_id.insert(id.to_owned(), (c.generation, name.clone()));
                Some(name)
            }
            None => {
                // A server without sessions: what follows belongs to the newest client.
                if good {
                    k.alone = Some(c.generation);
                }
                None
            }
        }
    }
}

impl Known {
    fn name(&self) -> String {
        format!("session-{}", self.by_id.len() + 1)
    }

    fn open(&mut self, id: &str) -> (u32, String) {
        self.generations += 1;
        let entry = (self.generations, self.name());
        self.by_id.insert(id.to_owned(), entry.clone());
        entry
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const INIT: &[u8] = br#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{}}"#;
    const CALL: &[u8] = br#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{}}"#;

    #[test]
    fn sessions_are_told_apart_and_their_ids_never_come_out() {
        let s = Sessions::default();
        let ask = |id: Option<&str>, body: &[u8]| s.of_request(id, body, || "u".into());
        let (a, b) = (ask(None, INIT), ask(None, INIT));
        assert_eq!((a.generation, b.generation, a.opened.is_some()), (1, 2, true));
        assert_eq!(s.of_answer(&b, Some("id-b"), true).as_deref(), Some("session-1"));
        assert_eq!(s.of_answer(&a, Some("id-a"), true).as_deref(), Some("session-2"));
        assert_eq!(ask(Some("id-a"), CALL).generation, 1);
        assert_eq!(ask(Some("id-b"), CALL).generation, 2);
        let old = ask(Some("older"), CALL);
        assert_eq!((old.generation, old.session.as_deref()), (3, Some("session-3")));
        // Modern requests stand alone, together.
        assert_eq!((ask(None, CALL).generation, ask(None, CALL).generation), (4, 4));
        // A refused initialize makes no session, whatever its headers say.
        let c = ask(None, INIT);
        assert_eq!(s.of_answer(&c, Some("bad"), false), None);
        assert_ne!(ask(Some("bad"), CALL).generation, c.generation);
    }

    #[test]
    fn without_sessions_what_follows_belongs_to_the_newest_client() {
        let s = Sessions::default();
        let c = s.of_request(None, INIT, || "u".into());
        s.of_answer(&c, None, true);
        assert_eq!(s.of_request(None, CALL, || "u".into()).generation, c.generation);
    }
}
