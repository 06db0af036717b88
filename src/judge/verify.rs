//! Counts and invariants of a whole ledger: is there exactly one effect for each request? Pure; the
//! aggregates come from the ledger's reader, judged.

use super::words::State;
use std::collections::BTreeMap;

/// What a pass over the whole ledger found.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Totals {
    /// Requests by judged state.
    pub requests: BTreeMap<State, u64>,
    /// Effects in all; `None` where the ledger has no effects table.
    pub effects: Option<u64>,
    /// Requests with more than one effect, and how many.
    pub duplicate_effects: Vec<(String, u64)>,
    /// Requests that are done and have no effect.
    pub done_without_effect: Vec<String>,
    /// Request ids of effects without a row, younger than the oldest effect that has one.
    pub effect_without_request: Vec<String>,
    /// The same, older: their rows were swept.
    pub purged: Vec<String>,
    /// Groups of requests with the same arguments hash.
    pub same_hash: Vec<Vec<String>>,
    /// Labels that several requests' effects share, with those requests.
    pub same_label: Vec<(String, Vec<String>)>,
    /// Requests that are not done, with their state.
    pub unfinished: Vec<(String, State)>,
    /// Effects by label.
    pub labels: BTreeMap<String, u64>,
    /// Rows that are known to be there and could not be read (damaged pages).
    pub unread_rows: u64,
}

/// What a person expects to find (`--expect LABEL=N`, `--expect-total N`).
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Expected {
    /// Effects with this label.
    pub labels: Vec<(String, u64)>,
    /// Effects in all.
    pub total: Option<u64>,
}

/// How bad a problem is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Severity {
    /// An invariant is broken.
    Error,
    /// Worth a look; an error when asked to be strict.
    Warning,
}

/// One thing that is not as it should be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    /// The stable word, e.g. `duplicate_effect`.
    pub kind: &'static str,
    /// How bad.
    pub severity: Severity,
    /// The requests it is about.
    pub request_ids: Vec<String>,
    /// In words. May hold foreign text.
    pub detail: String,
}

/// The result.
#[derive(Debug, Clone, PartialEq)]
pub struct Verified {
    /// Errors first.
    pub problems: Vec<Problem>,
    /// Every request is done, each with one effect, and nothing suggests that the same work was asked for
    /// twice.
    pub exactly_once: bool,
    /// The same as one plain sentence.
    pub sentence: String,
}

impl Verified {
    /// Whether the check passes.
    pub fn passes(&self) -> bool {
        self.problems.iter().all(|p| p.severity != Severity::Error)
    }
}

/// Checks the invariants. `strict`: warnings are errors.
pub fn verify(totals: &Totals, expected: &Expected, strict: bool) -> Verified {
    let mut problems = Problems { list: Vec::new(), strict };
    problems.broken(totals);
    problems.unexpected(totals, expected);
    problems.doubtful(totals);
    let problems = problems.list;
    let count = |kind: &str| problems.iter().filter(|p| p.kind == kind).count() as u64;
    let parts: Vec<String> = [
        (count("duplicate_effect"), "duplicate", "duplicates"),
        (count("done_without_effect"), "done without effect", "done without effect"),
        (count("effect_without_request"), "effect without request", "effects without request"),
        (count("unexpected_count"), "count not as expected", "counts not as expected"),
        (count("unfinished"), "unfinished", "unfinished"),
        (totals.same_hash.len() as u64, "suspect pair", "suspect pairs"),
        (totals.unread_rows, "row could not be read", "rows could not be read"),
    ]
    .into_iter()
    .filter(|(n, ..)| *n > 0)
    .map(|(n, one, many)| format!("{n} {}", if n == 1 { one } else { many }))
    .collect();
    let exactly_once = parts.is_empty() && totals.effects.is_some();
    let sentence = match totals.effects {
        _ if !parts.is_empty() => format!("NOT exactly once: {}", parts.join(", ")),
        None => "can't say whether exactly once: this ledger has no effects table".into(),
        Some(effects) => {
            let requests: u64 = totals.requests.values().sum();
            format!("exactly once: {requests} requests, {effects} effects")
        }
    };
    Verified { problems, exactly_once, sentence }
}

struct Problems {
    list: Vec<Problem>,
    strict: bool,
}

impl Problems {
    fn add(&mut self, kind: &'static str, severity: Severity, ids: &[String], detail: String) {
        let severity = if self.strict { Severity::Error } else { severity };
        self.list.push(Problem { kind, severity, request_ids: ids.to_vec(), detail });
    }

    fn broken(&mut self, t: &Totals) {
        use Severity::Error;
        for (id, n) in &t.duplicate_effects {
            let detail = format!("{id} has {n} effects");
            self.add("duplicate_effect", Error, std::slice::from_ref(id), detail);
        }
        for id in &t.done_without_effect {
            let detail = format!("{id} is done and has no effect");
            self.add("done_without_effect", Error, std::slice::from_ref(id), detail);
        }
        for id in &t.effect_without_request {
            let detail = format!("an effect of {id} has no request row");
            self.add("effect_without_request", Error, std::slice::from_ref(id), detail);
        }
    }

    fn unexpected(&mut self, t: &Totals, e: &Expected) {
        let mut check = |what: String, want: u64, got: u64| {
            if want != got {
                let detail = format!("{what}: expected {want}, found {got}");
                self.add("unexpected_count", Severity::Error, &[], detail);
            }
        };
        for (label, want) in &e.labels {
            check(
                format!("effects labelled {label}"),
                *want,
                t.labels.get(label).copied().unwrap_or(0),
            );
        }
        if let Some(want) = e.total {
            check("effects in all".into(), want, t.effects.unwrap_or(0));
        }
    }

    fn doubtful(&mut self, t: &Totals) {
        use Severity::Warning;
        // A foreign ledger's own end is an end, if no good one.
        let over = |s: &State| {
            matches!(s, State::Done | State::Failed | State::Cancelled | State::Expired)
        };
        for (id, state) in t.unfinished.iter().filter(|(_, s)| !over(s)) {
            let detail = format!("{id} is {}", state.word());
            self.add("unfinished", Warning, std::slice::from_ref(id), detail);
        }
        for ids in &t.same_hash {
            self.add(
                "suspect_duplicate",
                Warning,
                ids,
                "the same arguments under several request_ids".into(),
            );
        }
        for (label, ids) in &t.same_label {
            let known = |g: &Vec<String>| ids.iter().all(|id| g.contains(id));
            if !t.same_hash.iter().any(known) {
                let detail = format!("effects of several requests share the label {label}");
                self.add("suspect_duplicate", Warning, ids, detail);
            }
        }
        for id in &t.purged {
            let detail =
                format!("the row of {id} was swept; its effect is older than any that has a row");
            self.add("request_purged", Warning, std::slice::from_ref(id), detail);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ids(list: &[&str]) -> Vec<String> {
        list.iter().map(|s| (*s).to_owned()).collect()
    }

    fn night() -> Totals {
        Totals {
            requests: [(State::Done, 5), (State::Abandoned, 2)].into(),
            effects: Some(5),
            same_hash: vec![ids(&["night-001", "night-006"])],
            same_label: vec![("障害報告".into(), ids(&["night-001", "night-006"]))],
            unfinished: vec![
                ("night-005".into(), State::Abandoned),
                ("night-007".into(), State::Abandoned),
                ("foreign".into(), State::Failed),
            ],
            labels: [("障害報告".to_owned(), 2)].into(),
            ..Totals::default()
        }
    }

    #[test]
    fn the_night_ledger_is_not_exactly_once_yet_breaks_nothing() {
        let v = verify(&night(), &Expected::default(), false);
        assert_eq!((v.exactly_once, v.passes()), (false, true));
        assert_eq!(v.sentence, "NOT exactly once: 2 unfinished, 1 suspect pair");
        let kinds: Vec<_> = v.problems.iter().map(|p| p.kind).collect();
        assert_eq!(kinds, ["unfinished", "unfinished", "suspect_duplicate"]);
        assert!(!verify(&night(), &Expected::default(), true).passes());
    }

    #[test]
    fn every_broken_invariant_is_an_error_with_its_requests() {
        let t = Totals {
            effects: Some(4),
            duplicate_effects: vec![("a".into(), 2)],
            done_without_effect: ids(&["b"]),
            effect_without_request: ids(&["c"]),
            labels: [("x".to_owned(), 2)].into(),
            ..Totals::default()
        };
        let e = Expected { labels: vec![("x".into(), 1), ("y".into(), 0)], total: Some(3) };
        let v = verify(&t, &e, false);
        let errors: Vec<_> = v.problems.iter().map(|p| (p.kind, p.request_ids.join(","))).collect();
        assert_eq!(
            errors,
            [
                ("duplicate_effect", "a".to_owned()),
                ("done_without_effect", "b".into()),
                ("effect_without_request", "c".into()),
                ("unexpected_count", String::new()),
                ("unexpected_count", String::new()),
            ]
        );
        assert!(v.problems.iter().all(|p| p.severity == Severity::Error) && !v.passes());
        assert_eq!(v.problems[3].detail, "effects labelled x: expected 1, found 2");
        assert!(v.sentence.starts_with("NOT exactly once: 1 duplicate, 1 done without effect"));
    }

    #[test]
    fn a_swept_request_or_a_shared_label_breaks_nothing_and_an_unread_row_does() {
        let t = Totals {
            requests: [(State::Done, 2)].into(),
            effects: Some(3),
            purged: ids(&["old"]),
            same_label: vec![("daily".into(), ids(&["a", "b"]))],
            ..Totals::default()
        };
        let v = verify(&t, &Expected::default(), false);
        assert_eq!(
            (v.exactly_once, v.sentence.as_str()),
            (true, "exactly once: 2 requests, 3 effects")
        );
        assert_eq!(v.problems.len(), 2);
        let v = verify(&Totals { unread_rows: 1, ..t.clone() }, &Expected::default(), false);
        assert_eq!(v.sentence, "NOT exactly once: 1 row could not be read");
        let v = verify(&Totals { effects: None, ..t }, &Expected::default(), false);
        assert!(!v.exactly_once && v.sentence.starts_with("can't say"));
    }
}
