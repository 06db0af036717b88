//! The lines that a conclusion rests on: each with its source, its time and, where it has one, its
//! strength. Says what was seen, never what to do about it.

use super::facts::{Facts, HashCheck, LedgerView, Pairing};
use super::verdict::{SaidBy, done_but_open, effects};
use super::wire::WireFacts;
use super::words::{Evidence, State, Strength};
use crate::journal::generation::generation_name;
use crate::time::Time;

pub(super) fn lines(facts: &Facts, wire: &WireFacts<'_>) -> Vec<Evidence> {
    let mut out = Lines(Vec::new());
    out.ledger(facts);
    out.effects(facts);
    out.twins(facts);
    out.calls(facts, wire);
    out.left_behind(facts);
    // Of its own look-up `server` tells.
    if done_but_open(facts, wire) == Some(SaidBy::Answer) {
        out.add("wire", wire.done_at(), "answered as done, while the row is not done".into());
    }
    out.server(facts);
    out.hash(facts);
    out.pairing(facts);
    out.0
}

fn counted(effects: u64) -> String {
    format!("{effects} effect{}", if effects == 1 { "" } else { "s" })
}

struct Lines(Vec<Evidence>);

impl Lines {
    fn add(&mut self, source: &'static str, at: Option<Time>, text: String) {
        self.0.push(Evidence { source, at, strength: None, text });
    }

    fn ledger(&mut self, facts: &Facts) {
        match (&facts.ledger, &facts.row) {
            (LedgerView::None, _) => self.add("ledger", None, "no ledger is attached".into()),
            (LedgerView::Unreadable(why), _) => {
                self.add("ledger", None, format!("the ledger can't be read now: {why}"));
            }
            (LedgerView::Read(_), Some(row)) => {
                let (word, strength, why) = match &facts.judged {
                    Some(j) => (j.state.word().to_owned(), Some(j.strength), j.why.clone()),
                    None => (row.status.clone(), None, "not judged".into()),
                };
                let text = format!("{word}: {why}");
                self.0.push(Evidence { source: "ledger", at: row.claimed_at, strength, text });
            }
            (LedgerView::Read(at), None) => self.add("ledger", Some(*at), "no row".into()),
        }
        if let (None, Some(at)) = (&facts.row, facts.row_vanished_at) {
            let was = if facts.was_done { "done" } else { "there" };
            self.add("ledger", Some(at), format!("its row was {was} and is gone"));
        }
    }

    fn effects(&mut self, facts: &Facts) {
        let n = effects(facts);
        match &facts.row {
            Some(row) if !row.effects.is_empty() => {
                for e in &row.effects {
                    let label =
                        if e.label.is_empty() { String::new() } else { format!(" ({})", e.label) };
                    self.add("ledger", None, format!("effect {}{label}", e.key));
                }
            }
            Some(_) if facts.has_effects_table => self.add("ledger", None, "no effect".into()),
            None if n > 0 && facts.purged => self.add(
                "ledger",
                None,
                format!("{} without a row, older than any that has one: swept perhaps", counted(n)),
            ),
            None if n > 0 => self.add("ledger", None, format!("{} without a row", counted(n))),
            _ => {}
        }
    }

    fn twins(&mut self, facts: &Facts) {
        for t in &facts.twins {
            let text =
                format!("{} has the same arguments hash and is {}", t.request_id, t.state.word());
            self.add("hash", None, text);
        }
    }

    fn calls(&mut self, facts: &Facts, wire: &WireFacts<'_>) {
        for c in &facts.calls {
            let (at, text) = match &c.settled {
                Some(s) => {
                    (s.at, format!("{} (id {}): {}, {}", c.tool, c.rpc_id, s.outcome.word(), s.why))
                }
                None => (c.sent_at, format!("{} (id {}): sent, no answer yet", c.tool, c.rpc_id)),
            };
            self.add("wire", Some(at), text);
        }
        for end in &facts.ended_generations {
            if facts.calls.iter().any(|c| wire.end_of(c) == Some(end)) {
                let lost = |c: &crate::journal::Call| wire.end_of(c) == Some(end) && c.is_lost();
                let when = if facts.calls.iter().any(lost) { " in this call" } else { "" };
                let whose = generation_name(end.generation);
                let text = format!("the process of {whose} ended{when}: {}", end.how);
                self.0.push(Evidence {
                    source: "exit",
                    at: Some(end.at),
                    strength: Some(Strength::Observed),
                    text,
                });
            }
        }
    }

    fn left_behind(&mut self, facts: &Facts) {
        for end in &facts.left_behind {
            let whose = generation_name(end.generation);
            let text =
                format!("the process of {whose} ended: {}, but {}", end.how, end.left_words());
            self.0.push(Evidence {
                source: "exit",
                at: Some(end.at),
                strength: Some(Strength::Presumed),
                text,
            });
        }
    }

    fn server(&mut self, facts: &Facts) {
        let Some(word) = &facts.server_says else { return };
        let row = facts.row.as_ref();
        let ours = word.started_by_us.is_some_and(|s| {
            row.is_some_and(|r| r.claimed_at.is_none_or(|c| c <= s)) && word.status == "abandoned"
        });
        let mut text = format!("its look-up said '{}'", word.status);
        if ours {
            text.push_str(
                "; it was started here after the claim, so this says nothing about the owner",
            );
        } else if word.status == "done"
            && facts.judged.as_ref().is_some_and(|j| j.state != State::Done)
        {
            text.push_str(", which the ledger does not say");
        }
        let strength = (!ours).then_some(Strength::ServerSays);
        self.0.push(Evidence { source: "server", at: Some(word.at), strength, text });
    }

    fn hash(&mut self, facts: &Facts) {
        let text = match facts.hash {
            HashCheck::NotChecked => return,
            HashCheck::Equal => "the arguments at hand have the row's hash",
            HashCheck::DiffersProven => "the arguments at hand have another hash than the row",
            HashCheck::DiffersUnproven => {
                "the arguments at hand have another hash than the row, by a recipe that nothing has proven here"
            }
        };
        self.add("hash", None, text.into());
    }

    fn pairing(&mut self, facts: &Facts) {
        let text = match facts.pairing {
            Pairing::Unproven
                if facts.row.is_none() && !facts.calls.is_empty() && facts.ledger_was_read() =>
            {
                "this ledger may not be the server's: that it has no row says nothing"
            }
            Pairing::Unproven => return,
            Pairing::Consistent => "the server's look-ups agree with this ledger",
            Pairing::Proven => "a call seen here changed this ledger",
            Pairing::Contradicted => "the server denies a row that this ledger has",
        };
        self.add("pairing", None, text.into());
    }
}
