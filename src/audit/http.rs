//! What an HTTP exchange proves of its call when no answer came under a 2xx: the journal's rules (`journal::ends`),
//! on what this fold keeps.

use super::calls::number;
use super::fact::At;
use super::fold::{Audit, Exchange, Key, Waits};
use super::lean;
use crate::journal::refusal::{is_session_lost, page_title, refuses, wants_initialize};

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

    fn not_known(&mut self, key: Key, why: String) {
        if let Some(Waits::Call(open)) = self.take(key) {
            self.unknown(&open, why, false);
        }
    }

    fn session_lost(&mut self, at: At) {
        if let Some(life) = self.lives.get_mut(&at.generation) {
            life.over = true;
            life.ended.get_or_insert_with(|| "its session was lost".into());
        }
    }

    /// A JSON-RPC body under a status that is not 2xx.
    pub(super) fn refusing_body(
        &mut self,
        at: At,
        x: &Exchange,
        id: Option<&str>,
        result: Option<&str>,
        error: Option<&str>,
    ) {
        let (Some(key), Some(status)) = (x.key, x.status) else { return };
        let own = id.is_some_and(|i| is_near(i, &x.id) || number(i) == key.2);
        let code = error.and_then(|e| lean::get(e, "code")).and_then(|c| c.parse::<i64>().ok());
        let message = error.and_then(|e| lean::get(e, "message")).and_then(lean::text);
        let message = message.unwrap_or_default();
        if result.is_some() {
            self.not_known(key, format!("HTTP {status} with a result in it"));
        } else if !own && is_session_lost(status, code, &message, x.with_session, own) {
            self.session_lost(at);
            self.not_run(key);
        } else if refuses(status) || (!own && x.modern && wants_initialize(status, code, &message))
        {
            self.not_run(key);
        } else if matches!(status, 502..=504) || (status >= 500 && !own) {
            self.not_known(key, format!("HTTP {status} without the tool's own answer"));
        } else {
            self.answered(at, key, None, error);
        }
    }

    pub(super) fn plain_body(&mut self, at: At, exchange: u64, text: &str) {
        let Some(x) = self.exchanges.get(&exchange).cloned() else { return };
        let (Some(key), status) = (x.key, x.status.unwrap_or(0)) else { return };
        if status != 500 && is_session_lost(status, None, text, x.with_session, false) {
            self.session_lost(at);
            self.not_run(key);
        } else if refuses(status) {
            self.not_run(key);
        } else {
            let what = match page_title(text) {
                Some(_) => "an HTML page from a proxy or login",
                None => "a body that is not JSON-RPC",
            };
            self.not_known(key, format!("HTTP {status}, {what}"));
        }
    }

    pub(super) fn exchange_over(&mut self, at: At, exchange: u64, failed: Option<(String, bool)>) {
        let Some(x) = self.exchanges.remove(&exchange) else { return };
        if matches!(failed, Some((_, false)))
            && let Some(life) = self.lives.get_mut(&at.generation)
        {
            // Nobody listens any more: what opens later is opened after a restart.
            life.over = true;
            life.ended.get_or_insert_with(|| "the server could not be reached".into());
        }
        let Some(key) = x.key else { return };
        match (failed, x.status) {
            (Some((_, false)), _) => self.not_run(key),
            (Some((why, true)), _) => {
                self.not_known(key, format!("the connection broke before the answer: {why}"));
            }
            (None, Some(status)) if refuses(status) => self.not_run(key),
            (None, Some(404)) if x.with_session => {
                self.session_lost(at);
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

/// The same digits under another type or spelling.
fn is_near(a: &str, b: &str) -> bool {
    let plain = |t: &str| t.trim_matches('"').trim_end_matches(".0").to_owned();
    plain(a) == plain(b)
}
