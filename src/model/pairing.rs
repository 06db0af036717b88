//! Whether this server writes this ledger (design: "Is it the same ledger?"): a fold of look-up answers
//! and of our own calls, each against rows read afterwards. Pure.
//!
//! Each witness is to be told once, in the order of the journal: a later one may lift what an earlier one
//! said.

use super::lookup::{LookUp, is_look_up};
use crate::journal::call::answer_object;
use crate::journal::{AnswerStatus, Call, CallId, Generation, Outcome, Session, Settled};
use crate::json::raw;
use crate::judge::Pairing;
use crate::judge::observed::{answer_of, claimed_by, is_named, prompt, replayed};
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
    /// When the read began.
    pub at: Time,
    /// When it was last looked for and not there, before `row` was.
    pub absent_at: Option<Time>,
    /// Since when its row is known to be there, or was there before it went.
    pub there_since: Option<Time>,
    /// Since when its row, as it is, is known to be done.
    pub done_since: Option<Time>,
}

/// What the ledger had when it was first read after each look-up's answer. Later reads say nothing of that
/// answer: rows are swept, and made.
pub type FirstReads = BTreeMap<CallId, Read>;

impl Paired {
    /// The fold over a whole session. `read` gives what the ledger has of a request, read after
    /// everything in `session`; `None` for one that was not read. `first` is kept between folds.
    pub fn fold(
        session: &Session,
        look_up: &str,
        first: &mut FirstReads,
        read: impl Fn(&str) -> Option<Read>,
    ) -> Paired {
        Paired::fold_since(None, session, look_up, first, read)
    }

    /// The same, of a ledger that was put there at `since`: what was asked or sent before says nothing of it.
    pub fn fold_since(
        since: Option<Time>,
        session: &Session,
        look_up: &str,
        first: &mut FirstReads,
        read: impl Fn(&str) -> Option<Read>,
    ) -> Paired {
        let mut paired = Paired::default();
        let after = |call: &&Call| since.is_none_or(|since| call.sent_at >= since);
        for call in session.calls.values().filter(after) {
            let read = || call.request_id.as_deref().and_then(&read);
            if call.tool == look_up {
                let Some(look) = LookUp::read(call, session.generation_n(call.generation)) else {
                    continue;
                };
                if !first.contains_key(&call.id)
                    && let Some(r) = read().filter(|r| r.at >= look.at)
                {
                    first.insert(call.id, r);
                }
                if let Some(r) = first.get(&call.id) {
                    paired.looked_up(&look, r);
                }
            } else if !is_look_up(look_up, call)
                && let Some(r) = read()
                && let Some(row) = &r.row
            {
                // Nobody else sent this request_id between the look and now, as far as anybody can see; and nobody
                // had seen its row before the call.
                let absent = r.absent_at.is_some_and(|at| at <= call.sent_at)
                    && r.there_since.is_none_or(|since| since > call.sent_at);
                paired.own_call(call, row, absent, session.generation_n(call.generation));
            }
        }
        paired
    }

    /// Nothing can be compared, and why.
    pub fn in_doubt(why: String) -> Paired {
        Paired { doubt: Some(why), ..Paired::default() }
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

    /// The server answered a look-up; `read` is what the ledger has of that request. Only a read that came
    /// after the answer can be held against it.
    pub fn looked_up(&mut self, look: &LookUp, read: &Read) {
        let (Some(status), true) = (look.status.as_deref(), read.at >= look.at) else { return };
        let id = &look.request_id;
        // The row must have been there when the question was asked: a later claim is no denial.
        let there =
            |r: &Row| r.claimed_at.or(read.there_since).is_some_and(|since| since < look.asked_at);
        match &read.row {
            Some(r) if status == "unknown" && there(r) => {
                self.denied.insert(
                    id.clone(),
                    format!("the server does not know {id}, which this ledger has"),
                );
            }
            Some(r) => match (r.status.as_str(), status) {
                // Done does not end: a server that has the same row can't say otherwise afterwards.
                ("done", said @ ("running" | "abandoned"))
                    if read.done_since.is_some_and(|since| since < look.asked_at) =>
                {
                    self.denied.insert(
                        id.clone(),
                        format!("the server says '{said}' of {id}, which this ledger had finished"),
                    );
                }
                ("done", "done") if names_another(r, look) => {
                    self.denied.insert(
                        id.clone(),
                        format!("the server has another result for {id} than this ledger, and names another thing"),
                    );
                }
                ("done", "done") if results_differ(r, look) => {
                    self.doubt = Some(format!("the server has another result for {id}"));
                }
                // Read after the answer, a finished row says so.
                ("running", "done") if there(r) => {
                    self.denied.insert(
                        id.clone(),
                        format!(
                            "the server has finished {id}, of which this ledger says that it runs"
                        ),
                    );
                }
                (stored @ "running", said @ "abandoned") => self.agrees(id, said, stored),
                (stored, said) if stored == said => self.agrees(id, said, stored),
                // Either may have changed between answer and read.
                (stored, said) => {
                    self.doubt =
                        Some(format!("the server said '{said}' of {id}, this ledger '{stored}'"));
                }
            },
            // A finished row does not go away between two moments; a running one may. One that was seen here
            // was swept.
            None if status == "done" && read.there_since.is_none() => {
                self.denied.insert(
                    id.clone(),
                    format!("the server has finished {id}, of which this ledger has no row"),
                );
            }
            None => {}
        }
    }

    /// The row of a request that we sent a call for, to `generation`. `absent_before`: it was looked for before the
    /// call was sent, and was not there. That it was made just then proves nothing: somebody else may have been asked
    /// too. What only this server can have put there does: its owner's own value, or the answer's own ids.
    pub fn own_call(
        &mut self,
        call: &Call,
        row: &Row,
        absent_before: bool,
        generation: Option<&Generation>,
    ) {
        if worked_elsewhere(row, call) {
            let why = format!(
                "a call seen here did the work of {} anew, which this ledger had finished before: its effect went elsewhere",
                row.request_id
            );
            self.denied.insert(row.request_id.clone(), why);
            return;
        }
        if (claimed_by(row, call) && !answered_otherwise(row, call))
            || (absent_before && made(row, call))
        {
            let named = generation.zip(row.owner.as_deref().zip(row.claimed_at));
            let by_owner = named.is_some_and(|(g, (owner, at))| is_named(g, owner, at));
            let by_answer = replayed(call) != Some(true) && answer_of(row, call);
            let did = if absent_before { "made" } else { "claimed" };
            if by_owner || by_answer {
                self.proven = Some(format!(
                    "a call seen here {did} the row of {} in this ledger",
                    row.request_id
                ));
                // Whatever it denied of this request before; what it denies of others still stands.
                self.denied.remove(&row.request_id);
            } else {
                self.doubt = Some(format!(
                    "the row of {} was {did} when a call seen here was under way; that may have been another server",
                    row.request_id
                ));
            }
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

/// Whether `call` can have made a row that was not there before it was sent. The server's clock may be
/// behind, so a claim from before the sending doesn't speak against it; what was answered does.
fn made(row: &Row, call: &Call) -> bool {
    let in_time = |s: &Settled| row.claimed_at.is_some_and(|claimed| claimed <= s.at);
    call.request_id.as_deref() == Some(row.request_id.as_str())
        && call.sent > 0
        && call.settled.as_ref().is_none_or(|s| match s.outcome {
            Outcome::NotSent | Outcome::Refused => false,
            // A claim long after it is another one's, a takeover that nobody saw.
            Outcome::Unknown => row.claimed_at.is_none_or(|claimed| prompt(call, claimed)),
            Outcome::ToolError | Outcome::RpcError => in_time(s),
            Outcome::Ok => {
                let said = s.result.as_deref().and_then(answer_object);
                let same = said.zip(row.result.as_ref()).and_then(|(said, r)| differ(r, &said));
                s.answer_status != Some(AnswerStatus::InProgress)
                    && replayed(call) != Some(true)
                    && (in_time(s) || same == Some(false))
            }
        })
}

/// The server says that it did the work for this call now, and the row stands as it was claimed and finished before the
/// call was sent (clocks of one machine may differ by a second).
fn worked_elsewhere(row: &Row, call: &Call) -> bool {
    row.status == "done"
        && call.outcome() == Some(Outcome::Ok)
        && replayed(call) == Some(false)
        && row.claimed_at.is_some_and(|claimed| claimed.plus_seconds(1.0) < call.sent_at)
        && answered_otherwise(row, call)
}

/// Both results are objects and name different things: a member whose name ends in `id` differs.
fn names_another(row: &Row, look: &LookUp) -> bool {
    let Some((stored, said)) = row.result.as_ref().zip(look.result.as_ref()) else { return false };
    let said = raw::as_str(said).unwrap_or_else(|| said.clone());
    let ids = |text: &str| -> BTreeMap<String, String> {
        let members = raw::members(text).unwrap_or_default().into_iter();
        let named = members.filter(|(name, _)| name.to_ascii_lowercase().ends_with("id"));
        named.filter_map(|(name, v)| Some((name.to_string(), raw::as_str(v)?))).collect()
    };
    let (stored, said) = (ids(stored), ids(&said));
    stored.iter().any(|(name, value)| said.get(name).is_some_and(|other| other != value))
}

/// Its answer holds another result than the row, so somebody else did what the row says.
fn answered_otherwise(row: &Row, call: &Call) -> bool {
    let said = call.settled.as_ref().and_then(|s| answer_object(s.result.as_deref()?));
    said.zip(row.result.as_ref()).and_then(|(said, stored)| differ(stored, &said)) == Some(true)
}

/// Both have a result and they are not the same JSON.
fn results_differ(row: &Row, look: &LookUp) -> bool {
    let both = row.result.as_ref().zip(look.result.as_ref());
    both.is_some_and(|(stored, said)| {
        // Some servers hand out the stored text as it is, as one JSON string.
        let text = crate::json::raw::as_str(said);
        let same = text.is_some_and(|t| t == *stored || differ(stored, &t) == Some(false));
        !same && differ(stored, said) == Some(true)
    })
}

/// Whether two results differ, but for the remark that one is replayed; `None` where one is not JSON.
fn differ(a: &str, b: &str) -> Option<bool> {
    let plain = |text: &str| crate::json::python::python_dumps(text, true, &["replayed"]).ok();
    Some(plain(a)? != plain(b)?)
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

    fn read(row: Option<&Row>, at: f64) -> Read {
        Read { row: row.cloned(), at: t(at), absent_at: None, there_since: None, done_since: None }
    }

    fn after(looks: &[(&LookUp, Option<&Row>)]) -> Pairing {
        let mut p = Paired::default();
        for (l, r) in looks {
            p.looked_up(l, &read(*r, 100.0));
        }
        p.pairing()
    }

    #[test]
    fn what_was_seen_here_was_swept_and_what_has_no_claim_time_may_be_new() {
        let judged = |status: &str, r: Read| {
            let mut p = Paired::default();
            p.looked_up(&look("r", status, 50.0), &r);
            p.pairing()
        };
        let seen = |since| Read { there_since: Some(t(since)), ..read(None, 100.0) };
        assert_eq!(judged("done", seen(1.0)), Pairing::Unproven);
        let timeless = Row { claimed_at: None, ..row("r", "done", "A", 0.0) };
        let known = |since| Read { row: Some(timeless.clone()), ..seen(since) };
        assert_eq!(judged("unknown", read(Some(&timeless), 100.0)), Pairing::Unproven);
        assert_eq!(judged("unknown", known(60.0)), Pairing::Unproven);
        assert_eq!(judged("unknown", known(1.0)), Pairing::Contradicted);
    }

    #[test]
    fn a_known_row_answered_alike_is_consistent() {
        for (stored, said, want) in [
            ("done", "done", Pairing::Consistent),
            ("running", "running", Pairing::Consistent),
            ("running", "abandoned", Pairing::Consistent),
            ("failed", "failed", Pairing::Consistent),
            ("running", "done", Pairing::Contradicted),
            ("done", "running", Pairing::Unproven),
            ("done", "unknown", Pairing::Contradicted),
            ("running", "unknown", Pairing::Contradicted),
        ] {
            let r = row("r", stored, "A", 1.0);
            assert_eq!(after(&[(&look("r", said, 50.0), Some(&r))]), want, "{stored} {said}");
        }
    }

    #[test]
    fn a_result_that_is_the_stored_text_as_a_string_is_the_same_result() {
        let stored = r#"{"ticket_id": "T-1"}"#;
        let r = Row { result: Some(stored.into()), ..row("r", "done", "A", 1.0) };
        let said = |result: String| LookUp { result: Some(result), ..look("r", "done", 50.0) };
        let as_text = said(crate::json::raw::quote(stored));
        assert_eq!(after(&[(&as_text, Some(&r))]), Pairing::Consistent);
        let other = said(crate::json::raw::quote(r#"{"ticket_id": "T-2"}"#));
        assert_eq!(after(&[(&other, Some(&r))]), Pairing::Contradicted);
    }

    #[test]
    fn what_came_later_is_no_denial() {
        let claimed_later = row("r", "running", "A", 60.0);
        assert_eq!(
            after(&[(&look("r", "unknown", 50.0), Some(&claimed_later))]),
            Pairing::Unproven
        );
        let mut p = Paired::default();
        p.looked_up(&look("r", "unknown", 50.0), &read(Some(&row("r", "done", "A", 1.0)), 49.0));
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
        // It is another thing that was made: somewhere else.
        assert_eq!(after(&[(&with(r#"{"ticket_id":"T-2"}"#), Some(&r))]), Pairing::Contradicted);
        // Another form of the same thing, perhaps.
        assert_eq!(after(&[(&with(r#"{"ticket":"T-2"}"#), Some(&r))]), Pairing::Unproven);
    }

    #[test]
    fn done_does_not_end() {
        let r = row("r", "done", "A", 1.0);
        let said = |status: &str, done_since: Option<f64>| {
            let mut p = Paired::default();
            let read = Read { done_since: done_since.map(t), ..read(Some(&r), 100.0) };
            p.looked_up(&look("r", status, 50.0), &read);
            p.pairing()
        };
        for status in ["running", "abandoned"] {
            assert_eq!(said(status, Some(10.0)), Pairing::Contradicted, "{status}");
            assert_eq!(said(status, Some(60.0)), Pairing::Unproven, "{status}, done since");
            assert_eq!(said(status, None), Pairing::Unproven, "{status}");
        }
        assert_eq!(said("done", Some(10.0)), Pairing::Consistent);
    }

    #[test]
    fn work_done_anew_for_a_row_that_was_finished_went_elsewhere() {
        let stored = r#"{"ticket_id": "T-1"}"#;
        let with = |claimed: f64, object: &str| {
            let r = Row { result: Some(stored.into()), ..row("r", "done", "A", claimed) };
            let mut c = call("r", 1, 9.0).ok(15.0, AnswerStatus::Done);
            if let Some(s) = c.settled.as_mut() {
                s.result = Some(format!(r#"{{"structuredContent":{object}}}"#).into());
            }
            let mut p = Paired::default();
            p.own_call(&c, &r, false, None);
            p.pairing()
        };
        let anew = r#"{"ticket_id":"T-2","replayed":false}"#;
        assert_eq!(with(1.0, anew), Pairing::Contradicted);
        assert_ne!(with(10.0, anew), Pairing::Contradicted, "claimed after it was sent");
        let again = r#"{"ticket_id":"T-1","replayed":true}"#;
        assert_ne!(with(1.0, again), Pairing::Contradicted);
    }

    #[test]
    fn a_row_that_only_this_server_can_have_made_proves_it() {
        use crate::judge::testing::generation;
        let mut g = generation(1, 0.0);
        g.boot.push((t(1.0), "boot id 9f0c2d1e".into()));
        let ours = |claimed| row("r", "running", "9f0c2d1e", claimed);
        let mut p = Paired::default();
        p.own_call(&call("r", 1, 9.0), &ours(2.0), false, Some(&g));
        assert_eq!(p.pairing(), Pairing::Unproven, "claimed before it was sent");
        p.own_call(&call("r", 1, 9.0), &ours(10.0), false, Some(&g));
        assert_eq!(p.pairing(), Pairing::Proven);
        assert!(p.why().contains("claimed the row of r"), "{}", p.why());
        // A denial of the same request is answered by that; one of another request is not.
        for (id, want) in [("r", Pairing::Proven), ("x", Pairing::Contradicted)] {
            let mut p = Paired::default();
            p.looked_up(&look(id, "unknown", 5.0), &read(Some(&row(id, "done", "A", 1.0)), 6.0));
            p.own_call(&call("r", 1, 9.0), &ours(10.0), false, Some(&g));
            assert_eq!(p.pairing(), want, "{id}");
        }
        // A server whose clock is behind: its claim time is of no use, but the row was not there before.
        let mut p = Paired::default();
        p.own_call(&call("r", 1, 9.0), &ours(2.0), true, Some(&g));
        assert_eq!(p.pairing(), Pairing::Proven);
        let mut p = Paired::default();
        p.own_call(&call("r", 1, 9.0).not_sent(9.0), &ours(10.0), true, Some(&g));
        assert_eq!(p.pairing(), Pairing::Unproven);
        // Another server may have been asked for the same: that a row was made just then proves nothing.
        for absent in [true, false] {
            let mut p = Paired::default();
            p.own_call(&call("r", 1, 9.0), &row("r", "running", "serverB", 10.0), absent, Some(&g));
            assert_eq!(p.pairing(), Pairing::Unproven);
            assert!(p.why().contains("may have been another server"), "{}", p.why());
        }
    }

    #[test]
    fn who_only_finished_a_row_did_not_make_it() {
        use crate::journal::Session;
        // Looked for at 1 and not there; a first call made it at 9 and died; the second one took it over.
        let (first, second) = (call("r", 1, 8.9).unknown(12.0), call("r", 1, 20.0));
        let mut session = Session::default();
        session.calls = [(1, first.clone()), (2, second.clone())].into();
        let why = |there_since, claimed| {
            let read = Read {
                row: Some(row("r", "running", "B", claimed)),
                at: t(30.0),
                absent_at: Some(t(1.0)),
                there_since,
                done_since: None,
            };
            Paired::fold(&session, "find_request", &mut FirstReads::new(), |_| Some(read.clone()))
                .why()
        };
        assert!(
            why(Some(t(12.5)), 20.1).contains("was claimed when"),
            "{}",
            why(Some(t(12.5)), 20.1)
        );
        assert!(why(Some(t(9.5)), 9.0).contains("was made when"));
        // Claimed by somebody long after either call.
        assert!(why(Some(t(12.5)), 28.0).contains("nobody has looked up"));
    }

    #[test]
    fn a_call_that_did_nothing_proves_nothing() {
        // The row was not there before; the agent's own server made it after ours had answered.
        let with = |c: Call, r: &Row| {
            let mut p = Paired::default();
            p.own_call(&c, r, true, None);
            p.pairing()
        };
        let later = Row {
            result: Some(r#"{"ticket_id": "T-000002"}"#.into()),
            ..row("r", "done", "B", 30.0)
        };
        let ok = |object: &str| {
            let mut c = call("r", 1, 9.0).ok(15.0, AnswerStatus::Done);
            if let Some(s) = c.settled.as_mut() {
                s.result = Some(format!(r#"{{"structuredContent":{object}}}"#).into());
            }
            c
        };
        let refused = call("r", 1, 9.0).settle(9.5, Outcome::Refused, "429");
        let failed = call("r", 1, 9.0).settle(15.0, Outcome::ToolError, "boom");
        for (name, c, want) in [
            ("refused", refused, Pairing::Unproven),
            ("failed before the claim", failed, Pairing::Unproven),
            (
                "another result",
                ok(r#"{"ticket_id":"T-000001","replayed":false}"#),
                Pairing::Unproven,
            ),
            ("replayed", ok(r#"{"ticket_id":"T-000002","replayed":true}"#), Pairing::Unproven),
            ("its own result", ok(r#"{"ticket_id":"T-000002","replayed":false}"#), Pairing::Proven),
        ] {
            assert_eq!(with(c, &later), want, "{name}");
        }
    }
}
