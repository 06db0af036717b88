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
    /// Where messages of HTTP+SSE (2024-11-05) are posted: each stream has a place of its own.
    by_place: HashMap<String, u32>,
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

    /// The stream of this generation names `place` for its messages: its generation from now on, and how that begins,
    /// where it is a new one.
    pub fn endpoint(
        &self,
        place: String,
        generation: u32,
        url: impl Fn() -> String,
    ) -> (u32, Option<Kind>) {
        let mut k = self.lock();
        if let Some(known) = k.by_place.get(&place) {
            return (*known, None);
        }
        let taken = k.by_place.values().any(|g| *g == generation);
        let (generation, opened) = if taken {
            k.generations += 1;
            (k.generations, Some(Kind::Opened { transport: Transport::Http { url: url() } }))
        } else {
            (generation, None)
        };
        // Another client's stream is another life.
        k.alone = k.alone.filter(|alone| *alone != generation);
        k.by_place.insert(place, generation);
        (generation, opened)
    }

    /// By its session id, by where it goes, or by what it says. `first` is what has come of its body.
    pub fn of_request(
        &self,
        id: Option<&str>,
        first: &[u8],
        place: &str,
        url: impl Fn() -> String,
    ) -> Client {
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
        if let Some(generation) = k.by_place.get(place) {
            return client(*generation, None, None);
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
        let ask = |id: Option<&str>, body: &[u8]| s.of_request(id, body, "/", || "u".into());
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
        let c = s.of_request(None, INIT, "/", || "u".into());
        s.of_answer(&c, None, true);
        assert_eq!(s.of_request(None, CALL, "/", || "u".into()).generation, c.generation);
    }

    #[test]
    fn a_stream_that_names_a_place_has_what_is_posted_there() {
        let s = Sessions::default();
        let ask = |body: &[u8], at: &str| s.of_request(None, body, at, || "u".into()).generation;
        let url = || "u".to_owned();
        let first = ask(b"", "/sse?");
        assert_eq!(s.endpoint("/m?id=1".into(), first, url), (first, None));
        assert_eq!((ask(INIT, "/m?id=1"), ask(CALL, "/m?id=1")), (first, first));
        // Another client's stream, and one that came before the first had named its place.
        let second = ask(b"", "/sse?");
        assert_ne!(second, first);
        assert_eq!(s.endpoint("/m?id=2".into(), second, url).0, second);
        let (third, opened) = s.endpoint("/m?id=3".into(), second, url);
        assert!(third > second && opened.is_some());
        assert_eq!((ask(CALL, "/m?id=2"), ask(CALL, "/m?id=3")), (second, third));
    }
}
