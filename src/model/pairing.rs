//! Whether this server writes this ledger (design: "Is it the same ledger?"): a fold of look-up answers
//! and of our own calls, each against rows read afterwards. Pure.
//!
//! Each witness is to be told once, in the order of the journal: a later one may lift what an earlier one
//! said.

use super::lookup::{LookUp, is_look_up};
use crate::journal::{Call, Session};
use crate::judge::Pairing;
use crate::judge::observed::claimed_by;
use crate::ledger::Row;
use crate::time::Time;
use std::collections::BTreeMap;

/// The pairing so far, with its reason.
#[derive(Debug, Clone, Default)]
pub struct Paired {
    proven: Option<String>,
    consistent: Option<String>,
    /// Requests on which server and ledger contradict each other, with the words for it.
    denied: BTreeMap<String, String>,
    /// The newest thing that proved nothing either way.
    doubt: Option<String>,
}

/// A request as the ledger has it.
#[derive(Debug, Clone, PartialEq)]
pub struct Read {
    /// Its row.
    pub row: Option<Row>,
    /// When it was read.
    pub at: Time,
    /// When it was last looked for and not there, before `row` was.
    pub absent_at: Option<Time>,
}

impl Paired {
    /// The fold over a whole session. `read` gives what the ledger has of a request, read after
    /// everything in `session`; `None` for one that was not read.
    pub fn fold(session: &Session, look_up: &str, read: impl Fn(&str) -> Option<Read>) -> Paired {
        let mut paired = Paired::default();
        for call in session.calls.values() {
            let Some(r) = call.request_id.as_deref().and_then(&read) else { continue };
            if call.tool == look_up {
                if let Some(look) = LookUp::read(call, session.generation_n(call.generation)) {
                    paired.looked_up(&look, r.row.as_ref(), r.at);
                }
            } else if let Some(row) = &r.row
                && !is_look_up(session, look_up, call)
            {
                // Nobody else sent this request_id between the look and now, as far as anybody can see.
                let absent = r.absent_at.is_some_and(|at| at <= call.sent_at);
                paired.own_call(call, row, absent);
            }
        }
        paired
    }

    /// The word for it.
    pub fn pairing(&self) -> Pairing {
        if !self.denied.is_empty() {
            Pairing::Contradicted
        } else if self.proven.is_some() {
            Pairing::Proven
        } else if self.consistent.is_some() {
            Pairing::Consistent
        } else {
            Pairing::Unproven
        }
    }

    /// Why. May hold foreign text.
    pub fn why(&self) -> String {
        let known = self.denied.values().next().or(self.proven.as_ref());
        match known.or(self.consistent.as_ref()).or(self.doubt.as_ref()) {
            Some(why) => why.clone(),
            None => "nobody has looked up a row of this ledger yet".into(),
        }
    }

    /// The server answered a look-up; `row` is what the ledger, read at `read_at`, has of that request.
    /// Only a read that came after the answer can be held against it.
    pub fn looked_up(&mut self, look: &LookUp, row: Option<&Row>, read_at: Time) {
        let (Some(status), true) = (look.status.as_deref(), read_at >= look.at) else { return };
        let id = &look.request_id;
        match row {
            // The row must have been there when the question was asked: a later claim is no denial.
            Some(r) if status == "unknown" && r.claimed_at.is_none_or(|c| c < look.asked_at) => {
                self.denied.insert(
                    id.clone(),
                    format!("the server does not know {id}, which this ledger has"),
                );
            }
            Some(r) => match (r.status.as_str(), status) {
                ("done", "done") if results_differ(r, look) => {
                    self.doubt = Some(format!("the server has another result for {id}"));
                }
                (stored @ "running", said @ "abandoned") => self.agrees(id, said, stored),
                (stored, said) if stored == said => self.agrees(id, said, stored),
                // Either may have changed between answer and read.
                (stored, said) => {
                    self.doubt =
                        Some(format!("the server said '{said}' of {id}, this ledger '{stored}'"));
                }
            },
            // A finished row does not go away between two moments; a running one may.
            None if status == "done" => {
                self.denied.insert(
                    id.clone(),
                    format!("the server has finished {id}, of which this ledger has no row"),
                );
            }
            None => {}
        }
    }

    /// The row of a request that we sent a call for. `absent_before`: it was looked for before the call
    /// was sent, and was not there.
    pub fn own_call(&mut self, call: &Call, row: &Row, absent_before: bool) {
        let same = call.request_id.as_deref() == Some(row.request_id.as_str());
        if claimed_by(row, call) || (same && call.sent > 0 && absent_before) {
            self.proven =
                Some(format!("a call of ours made the row of {} in this ledger", row.request_id));
            // It writes this file, whatever it denied before.
            self.denied.clear();
        }
    }

    fn agrees(&mut self, id: &str, said: &str, stored: &str) {
        self.denied.remove(id);
        let ledger = match said == stored {
            true => "and so does this ledger".to_owned(),
            // A running row of another owner is what a server calls abandoned.
            false => format!("which fits this ledger's '{stored}'"),
        };
        self.consistent = Some(format!("the server says '{said}' of {id}, {ledger}"));
    }
}

/// Both have a result and they are not the same JSON.
fn results_differ(row: &Row, look: &LookUp) -> bool {
    let (Some(stored), Some(said)) = (&row.result, &look.result) else { return false };
    let plain = |text: &str| crate::json::python::python_dumps(text, true, &[]).ok();
    match (plain(stored), plain(said)) {
        (Some(a), Some(b)) => a != b,
        // Not JSON: nothing to compare by.
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::judge::testing::{call, row, t};

    fn look(id: &str, status: &str, at: f64) -> LookUp {
        LookUp {
            request_id: id.into(),
            asked_at: t(at - 0.1),
            at: t(at),
            generation: 1,
            started_by_us: None,
            status: Some(status.into()),
            answer: "{}".into(),
            result: None,
        }
    }

    fn after(looks: &[(&LookUp, Option<&Row>)]) -> Pairing {
        let mut p = Paired::default();
        for (l, r) in looks {
            p.looked_up(l, *r, t(100.0));
        }
        p.pairing()
    }

    #[test]
    fn a_known_row_answered_alike_is_consistent() {
        for (stored, said, want) in [
            ("done", "done", Pairing::Consistent),
            ("running", "running", Pairing::Consistent),
            ("running", "abandoned", Pairing::Consistent),
            ("failed", "failed", Pairing::Consistent),
            ("running", "done", Pairing::Unproven),
            ("done", "running", Pairing::Unproven),
            ("done", "unknown", Pairing::Contradicted),
            ("running", "unknown", Pairing::Contradicted),
        ] {
            let r = row("r", stored, "A", 1.0);
            assert_eq!(after(&[(&look("r", said, 50.0), Some(&r))]), want, "{stored} {said}");
        }
    }

    #[test]
    fn what_came_later_is_no_denial() {
        let claimed_later = row("r", "running", "A", 60.0);
        assert_eq!(
            after(&[(&look("r", "unknown", 50.0), Some(&claimed_later))]),
            Pairing::Unproven
        );
        let mut p = Paired::default();
        p.looked_up(&look("r", "unknown", 50.0), Some(&row("r", "done", "A", 1.0)), t(49.0));
        assert_eq!(p.pairing(), Pairing::Unproven, "read before the answer");
        assert_eq!(after(&[(&look("r", "unknown", 50.0), None)]), Pairing::Unproven);
        assert_eq!(after(&[(&look("r", "running", 50.0), None)]), Pairing::Unproven);
        assert_eq!(after(&[(&look("r", "done", 50.0), None)]), Pairing::Contradicted);
    }

    #[test]
    fn other_rows_that_agree_do_not_outweigh_a_denial() {
        // An older copy of the ledger: old rows agree, new ones are denied.
        let (old, new) = (row("old", "done", "A", 1.0), row("new", "done", "A", 2.0));
        let denial = look("new", "unknown", 50.0);
        let agreed = look("old", "done", 51.0);
        assert_eq!(after(&[(&denial, Some(&new)), (&agreed, Some(&old))]), Pairing::Contradicted);
        let better = look("new", "done", 52.0);
        assert_eq!(after(&[(&denial, Some(&new)), (&better, Some(&new))]), Pairing::Consistent);
    }

    #[test]
    fn another_result_for_the_same_request_is_no_agreement() {
        let r =
            Row { result: Some(r#"{"ticket_id": "T-1"}"#.into()), ..row("r", "done", "A", 1.0) };
        let with = |result: &str| LookUp { result: Some(result.into()), ..look("r", "done", 50.0) };
        assert_eq!(after(&[(&with(r#"{"ticket_id":"T-1"}"#), Some(&r))]), Pairing::Consistent);
        assert_eq!(after(&[(&with(r#"{"ticket_id":"T-2"}"#), Some(&r))]), Pairing::Unproven);
    }

    #[test]
    fn a_call_of_ours_that_changed_the_file_proves_it() {
        let mut p = Paired::default();
        p.own_call(&call("r", 1, 9.0), &row("r", "running", "A", 2.0), false);
        assert_eq!(p.pairing(), Pairing::Unproven, "claimed before it was sent");
        p.looked_up(&look("x", "unknown", 5.0), Some(&row("x", "done", "A", 1.0)), t(6.0));
        p.own_call(&call("r", 1, 9.0), &row("r", "running", "A", 10.0), false);
        assert_eq!(p.pairing(), Pairing::Proven);
        assert!(p.why().contains("made the row of r"), "{}", p.why());
        // A server whose clock is behind: its claim time is of no use, but the row was not there before.
        let mut p = Paired::default();
        p.own_call(&call("r", 1, 9.0), &row("r", "running", "A", 2.0), true);
        assert_eq!(p.pairing(), Pairing::Proven);
        let mut p = Paired::default();
        p.own_call(&call("r", 1, 9.0).not_sent(9.0), &row("r", "running", "A", 10.0), true);
        assert_eq!(p.pairing(), Pairing::Unproven);
    }
}
