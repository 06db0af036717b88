//! What an HTTP exchange proves of its call when no answer came under a 2xx: the journal's rules (`journal::ends`),
//! on what this fold keeps.

use super::fact::At;
use super::fold::{Audit, Exchange, Key, Waits};
use crate::journal::ends::is_this_answer;
use crate::journal::refusal::{
    is_session_lost, page_title, proves_session_lost, refuses, wants_initialize,
};
use crate::wire::frame::Answer;
use crate::wire::id::Id;

impl Audit {
    /// Provably never left, or answered by a status that says it will not be handled: it did nothing.
    fn not_run(&mut self, key: Key) {
        if let Some(Waits::Call(open)) = self.take(key) {
            if open.rounds > 1 {
                let why = "a later round of it never left, or was refused";
                self.unknown(&open, why.into(), false);
            } else {
                self.unknowns.answered(open.call);
                if let Some(t) = self.tool_mut(open.tool) {
                    t.failed += 1;
                }
            }
        }
    }

    pub(super) fn unreadable(&mut self, exchange: u64, why: String) {
        let Some(x) = self.exchanges.get(&exchange) else { return };
        if let Some(key) = x.key
            && !self.is_receipt(key, x.status.unwrap_or(0))
        {
            self.not_known(key, format!("the answer was not read: {why}"));
        }
    }

    /// A good status, whatever stands under it, where answers come on a stream of their own.
    fn is_receipt(&self, key: Key, status: u16) -> bool {
        (200..300).contains(&status) && self.lives.get(&key.0).is_some_and(|l| l.apart.is_some())
    }

    pub(super) fn not_known(&mut self, key: Key, why: String) {
        if let Some(Waits::Call(open)) = self.take(key) {
            self.unknown(&open, why, false);
        }
    }

    /// A doubt is enough: whoever met it opens a new session.
    fn session_lost(&mut self, at: At, proven: bool) {
        if let Some(life) = self.lives.get_mut(&at.generation) {
            life.over = true;
            let words = if proven { "its session was lost" } else { "its session may be lost" };
            life.ended.get_or_insert_with(|| words.into());
        }
    }

    /// A JSON-RPC body under a status that is not 2xx.
    pub(super) fn refusing_body(
        &mut self,
        at: At,
        x: &Exchange,
        id: Option<&str>,
        answer: &Answer<'_>,
    ) {
        let (Some(key), Some(status)) = (x.key, x.status) else { return };
        // A status never overrules an answer.
        let asked = Id::from_raw(&x.id);
        let is_this = is_this_answer(id.map(Id::from_raw).as_ref(), Some(&asked), answer);
        if is_this && matches!(answer, Answer::Result(_)) {
            return self.answered(at, key, answer);
        }
        let Answer::Error { code, message, .. } = answer else {
            return self.not_known(key, format!("HTTP {status} with a result in it"));
        };
        // Whoever gives the request's own id back has read the request: a refusal made before that has none.
        let own = id.is_some_and(|id| {
            let (id, asked) = (Id::from_raw(id), Id::from_raw(&x.id));
            id == asked || id.is_near(&asked)
        });
        let proven = proves_session_lost(status, *code, message, x.with_session, own);
        let doubted = is_session_lost(status, *code, message, x.with_session, own);
        if proven || doubted {
            self.session_lost(at, proven);
        }
        if is_this {
            self.answered(at, key, answer);
        } else if proven
            || (!own && x.modern && wants_initialize(status, *code, message))
            || refuses(status)
        {
            self.not_run(key);
        } else if !own && doubted {
            self.not_known(key, perhaps_lost(status));
        } else if matches!(status, 502..=504) || (status >= 500 && !own) {
            self.not_known(key, format!("HTTP {status} without the tool's own answer"));
        } else {
            self.answered(at, key, answer);
        }
    }

    pub(super) fn plain_body(&mut self, at: At, exchange: u64, text: &str) {
        let Some(x) = self.exchanges.get(&exchange).cloned() else { return };
        let (Some(key), status) = (x.key, x.status.unwrap_or(0)) else { return };
        if self.is_receipt(key, status) {
            return;
        }
        let proven = proves_session_lost(status, None, text, x.with_session, false);
        let doubted = is_session_lost(status, None, text, x.with_session, false);
        if proven || doubted {
            self.session_lost(at, proven);
        }
        if proven || refuses(status) {
            self.not_run(key);
        } else if doubted {
            self.not_known(key, perhaps_lost(status));
        } else {
            let what = match page_title(text) {
                Some(_) => "an HTML page from a proxy or login",
                None => "a body that is not JSON-RPC",
            };
            self.not_known(key, format!("HTTP {status}, {what}"));
        }
    }

    pub(super) fn exchange_over(&mut self, at: At, exchange: u64, failed: Option<(String, bool)>) {
        if self.lives.get(&at.generation).is_some_and(|l| l.apart == Some(exchange)) {
            self.life_over(at, "the stream that brings its answers ended");
        }
        let Some(x) = self.exchanges.remove(&exchange) else { return };
        if matches!(failed, Some((_, false)))
            && !x.redirected
            && let Some(life) = self.lives.get_mut(&at.generation)
        {
            // Nobody listens any more: what opens later is opened after a restart.
            life.over = true;
            life.ended.get_or_insert_with(|| "the server could not be reached".into());
        }
        let Some(key) = x.key else { return };
        if x.status.is_some_and(|status| self.is_receipt(key, status)) {
            return;
        }
        match (failed, x.status) {
            (Some((why, false)), _) if x.redirected => {
                // The first server took it in, if only to send it on.
                let why = format!("redirected, and where it was sent to can't be reached: {why}");
                self.not_known(key, why);
            }
            (Some((_, false)), _) => self.not_run(key),
            (Some((why, true)), _) => {
                self.not_known(key, format!("the connection broke before the answer: {why}"));
            }
            (None, Some(status)) if refuses(status) => self.not_run(key),
            (None, Some(404)) if x.with_session => {
                self.session_lost(at, true);
                self.not_run(key);
            }
            (None, Some(status)) if (200..300).contains(&status) => {
                self.not_known(key, "the stream ended without an answer to this call".into());
            }
            (None, Some(status)) => self.not_known(key, format!("HTTP {status} without an answer")),
            (None, None) => self.not_known(key, "the exchange ended without a status".into()),
        }
    }

    pub(super) fn not_written(&mut self, _at: At, sent: u64, left: bool) {
        let Some(key) = self.sent.get(&sent).copied() else {
            // The end of its process had made it unknown a moment before; that nothing left is a proof.
            if !left {
                self.unknowns.never_left(sent);
            }
            return;
        };
        if left {
            self.not_known(key, "its writing broke off".into());
        } else {
            self.not_run(key);
        }
    }
}

/// Words about a session that don't prove that the call was not run.
fn perhaps_lost(status: u16) -> String {
    format!("HTTP {status}: the session may be lost, and whether this call was run is not known")
}
