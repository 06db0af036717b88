//! Lines and counts: what a list of requests shows, and the facts of the top line as one sentence.

use crate::journal::{AnswerStatus, Call};
use crate::json::raw;
use crate::judge::{self, Facts, Finding, Judged, LedgerView, State, Strength, conclude};
use crate::ledger::{Row, told};
use crate::text;
use crate::time::Time;
use std::borrow::Cow;
use std::collections::BTreeMap;

/// One request in a list. A request that has calls and no row gets a row of its own with `rowid` 0 and the
/// state `NoRow`.
#[derive(Debug, Clone, PartialEq)]
pub struct Line {
    /// As stored.
    pub row: Row,
    /// As judged.
    pub judged: Judged,
    /// What is concluded.
    pub finding: Finding,
    /// What it is about; empty when nothing says so. Foreign text.
    pub label: String,
    /// How many effects it has; `None` where the ledger can't show effects, or not all of them.
    pub effects: Option<u64>,
}

impl Line {
    /// From the facts of one request.
    pub fn new(facts: &Facts, now: Time) -> Line {
        let finding = conclude(facts, now);
        let row = facts
            .row
            .clone()
            .unwrap_or_else(|| Row { request_id: facts.request_id.clone(), ..Row::default() });
        let judged = facts.judged.clone().unwrap_or_else(|| without_row(facts));
        let n = if facts.row.is_some() { row.effects.len() as u64 } else { facts.loose_effects };
        let effects = (facts.has_effects_table || n > 0).then_some(n);
        Line { label: label(&row, &facts.calls), judged, finding, effects, row }
    }

    /// Its identity in a list: the request_id.
    pub fn id(&self) -> &str {
        &self.row.request_id
    }

    /// For a list: the id, with what tells this row from others that have it. Holds foreign text.
    pub fn name(&self) -> Cow<'_, str> {
        let id = text::named(&self.row.request_id);
        match &self.row.same {
            None => id.into(),
            Some(same) => format!("{} ({})", text::head(id, 60), told(&same.tells)).into(),
        }
    }

    /// The verdicts for JSON: `suspect_duplicate`.
    pub fn verdict_words(&self) -> Vec<String> {
        self.finding.verdicts.iter().map(|v| v.json()).collect()
    }

    /// Seconds since the claim; negative when it lies in the future.
    pub fn age_s(&self, now: Time) -> Option<f64> {
        Some(self.row.claimed_at?.age_at(now))
    }
}

/// The state of a request that no row tells of. A ledger that was read is believed over the server: no row.
/// Without a ledger the server's own word is the best witness, and its strength says whose word it is.
/// How the reason begins when nobody could look for the row: it may be there.
pub const UNREADABLE: &str = "the ledger can't be read now";

fn without_row(facts: &Facts) -> Judged {
    let (state, strength, why) = match &facts.ledger {
        LedgerView::Read(_) => {
            (State::NoRow, Strength::Stored, "the ledger has no such row".to_owned())
        }
        LedgerView::Unreadable(why) => {
            (State::NoRow, Strength::Stored, format!("{UNREADABLE}: {why}"))
        }
        LedgerView::None => by_the_server(facts),
    };
    Judged::plain(state, strength, why)
}

fn by_the_server(facts: &Facts) -> (State, Strength, String) {
    let last = facts.calls.iter().filter(|c| c.sent > 0).max_by_key(|c| c.sent_at);
    // A word from before the last call says nothing of what that call did.
    let word = facts.server_says.as_ref().filter(|w| last.is_none_or(|c| c.sent_at <= w.at));
    let answer = last.and_then(|c| c.settled.as_ref()).and_then(|s| s.answer_status);
    let says = Strength::ServerSays;
    match (word, answer) {
        (Some(w), _) if w.status == "unknown" => {
            (State::NoRow, says, "the server does not know it; no ledger is attached".into())
        }
        (Some(w), _) if w.status == "abandoned" && w.started_by_us.is_some() => {
            let why = "the server says so; it was started here just now, so its word says nothing about the owner; no ledger is attached";
            (State::Abandoned, says, why.into())
        }
        (Some(w), _) => (
            judge::state::stored(&w.status),
            says,
            "the server says so; no ledger is attached".into(),
        ),
        (None, Some(AnswerStatus::Done)) => {
            (State::Done, says, "it was answered without an error; no ledger is attached".into())
        }
        (None, Some(AnswerStatus::InProgress)) => (
            State::Running,
            says,
            "the server answered that it is in progress; no ledger is attached".into(),
        ),
        (None, _) => {
            (State::NoRow, Strength::Stored, "no ledger is attached that could know it".into())
        }
    }
}

/// What a request is about: its effect's label, else the title in its result, else one among the arguments
/// of a call.
pub fn label(row: &Row, calls: &[Call]) -> String {
    let of_effect = row.effects.iter().map(|e| e.label.clone()).find(|l| !l.is_empty());
    let of_result = || row.result.as_deref().and_then(title);
    let of_call = || calls.iter().rev().find_map(|c| title(c.args.as_deref()?));
    of_effect.or_else(of_result).or_else(of_call).unwrap_or_default()
}

/// Names under which things say what they are about, in this order.
const TITLES: [&str; 5] = ["title", "subject", "name", "summary", "label"];

fn title(object: &str) -> Option<String> {
    let members = raw::members(object)?;
    TITLES.iter().find_map(|key| {
        let value =
            members.iter().rev().find(|(k, _)| k == key).and_then(|(_, v)| raw::as_str(v))?;
        (!value.trim().is_empty()).then_some(value)
    })
}

/// The facts of the top line, as of one moment.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Counts {
    /// Requests by judged state.
    pub states: BTreeMap<State, u64>,
    /// Rows in all.
    pub rows: u64,
    /// Effects in all; `None` where the ledger has no effects table.
    pub effects: Option<u64>,
    /// What an effect is called, plural: the table's name.
    pub effects_noun: String,
    /// Groups of requests with the same arguments hash.
    pub suspect_pairs: u64,
    /// Requests with more than one effect.
    pub duplicates: u64,
    /// Effects whose request has no row and was not swept.
    pub effects_without_request: u64,
    /// Effects whose request was swept.
    pub requests_purged: u64,
    /// Rows that are not done and were too many to judge each: in no state.
    pub not_judged: u64,
    /// Somebody wrote while rows, states and effects were counted: they are not of one moment.
    pub about: bool,
    /// The same of suspect pairs, duplicates and effects without a request.
    pub parts_about: bool,
    /// When the ledger was read.
    pub as_of: Time,
    /// All rows were read; otherwise the numbers are what could be read.
    pub complete: bool,
}

impl Counts {
    /// `7 requests · 5 done · 2 abandoned · 5 tickets · 1 suspect pair`. May hold foreign text (an
    /// unmapped status, a table's name).
    pub fn headline(&self) -> String {
        let requests = if self.rows == 1 { "request" } else { "requests" };
        let about = |about: bool| if about { "about " } else { "" };
        let least = if self.complete { about(self.about) } else { "at least " };
        let mut parts = vec![format!("{least}{} {requests}", self.rows)];
        // Done first, then what is not finished.
        let done = self.states.get(&State::Done).map(|n| (&State::Done, n));
        let rest = self.states.iter().filter(|(s, _)| **s != State::Done);
        for (state, n) in done.into_iter().chain(rest).filter(|(_, n)| **n > 0) {
            parts.push(format!("{n} {}", state.word()));
        }
        if self.not_judged > 0 {
            parts.push(format!("{} not judged", self.not_judged));
        }
        if let Some(n) = self.effects {
            parts.push(format!("{}{}", about(self.about), count(n, &self.effects_noun)));
        }
        let about = about(self.parts_about);
        for (n, one) in [(self.suspect_pairs, "suspect pair"), (self.duplicates, "duplicate")] {
            if n > 0 {
                parts.push(format!("{about}{n} {one}{}", if n == 1 { "" } else { "s" }));
            }
        }
        for (n, one, many) in [
            (self.effects_without_request, "effect without request", "effects without request"),
            (self.requests_purged, "request purged", "requests purged"),
        ] {
            if n > 0 {
                parts.push(format!("{about}{n} {}", if n == 1 { one } else { many }));
            }
        }
        parts.join(" · ")
    }
}

/// `1 ticket`, `2 tickets`: a number with its noun, given in the plural. May hold foreign text.
pub fn count(n: u64, plural: &str) -> String {
    let plural = if plural.is_empty() { "effects" } else { plural };
    match plural.strip_suffix('s') {
        Some(one) if n == 1 => format!("{n} {one}"),
        _ => format!("{n} {plural}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::judge::testing::{call, effect, row, t};
    use crate::judge::{LedgerView, Verdict};

    fn night() -> Counts {
        Counts {
            states: [(State::Done, 5), (State::Abandoned, 2)].into(),
            rows: 7,
            effects: Some(5),
            effects_noun: "tickets".into(),
            suspect_pairs: 1,
            complete: true,
            ..Counts::default()
        }
    }

    #[test]
    fn the_headline_is_one_sentence_of_facts() {
        assert_eq!(
            night().headline(),
            "7 requests · 5 done · 2 abandoned · 5 tickets · 1 suspect pair"
        );
        let one = Counts {
            states: [(State::Done, 1), (State::Running, 0)].into(),
            rows: 1,
            effects: Some(1),
            suspect_pairs: 0,
            ..night()
        };
        assert_eq!(one.headline(), "1 request · 1 done · 1 ticket");
        let odd = Counts { effects: None, duplicates: 2, complete: false, ..night() };
        assert_eq!(
            odd.headline(),
            "at least 7 requests · 5 done · 2 abandoned · 1 suspect pair · 2 duplicates"
        );
        let moving = Counts { about: true, parts_about: true, not_judged: 3, ..night() };
        assert_eq!(
            moving.headline(),
            "about 7 requests · 5 done · 2 abandoned · 3 not judged · about 5 tickets · about 1 suspect pair"
        );
        let loose =
            Counts { effects_without_request: 1, requests_purged: 2, suspect_pairs: 0, ..night() };
        assert!(loose.headline().ends_with(" · 1 effect without request · 2 requests purged"));
    }

    #[test]
    fn a_label_comes_from_the_effect_then_the_result_then_the_call() {
        let mut c = call("r", 1, 1.0);
        c.args = Some(r#"{"request_id":"r","title":"from the call"}"#.into());
        let bare = row("r", "running", "A", 1.0);
        assert_eq!(label(&bare, &[]), "");
        assert_eq!(label(&bare, std::slice::from_ref(&c)), "from the call");
        let result =
            Row { result: Some(r#"{"ticket_id": "T-1", "title": "障害報告"}"#.into()), ..bare };
        assert_eq!(label(&result, std::slice::from_ref(&c)), "障害報告");
        let full = Row { effects: vec![effect("r", "on the ticket")], ..result };
        assert_eq!(label(&full, &[c]), "on the ticket");
    }

    #[test]
    fn a_request_without_a_row_has_a_line_too() {
        let f = Facts {
            request_id: "r".into(),
            ledger: LedgerView::Read(t(9.0)),
            calls: vec![call("r", 1, 8.0)],
            ..Facts::default()
        };
        let line = Line::new(&f, t(9.0));
        assert_eq!(
            (line.row.request_id.as_str(), line.row.rowid, line.judged.state.word()),
            ("r", 0, "unknown")
        );
        assert_eq!(
            (line.finding.verdicts.as_slice(), line.age_s(t(9.0))),
            (&[Verdict::InFlight][..], None)
        );
        assert_eq!(line.verdict_words(), ["in_flight"]);
    }
}
