//! Counts and invariants of a whole ledger: is there exactly one effect for each request? Pure; the
//! aggregates come from the ledger's reader, judged.

use super::words::State;
use std::collections::BTreeMap;

/// Some of what was found, and how many there are in all.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Found<T> {
    /// The newest.
    pub list: Vec<T>,
    /// All of them.
    pub total: u64,
}

impl<T> Default for Found<T> {
    fn default() -> Found<T> {
        Found { list: Vec::new(), total: 0 }
    }
}

impl<T> From<Vec<T>> for Found<T> {
    fn from(list: Vec<T>) -> Found<T> {
        Found { total: list.len() as u64, list }
    }
}

/// What a pass over the whole ledger found.
#[derive(Debug, Clone, PartialEq)]
pub struct Totals {
    /// Requests by judged state.
    pub requests: BTreeMap<State, u64>,
    /// Effects in all; `None` where the ledger has no effects table.
    pub effects: Option<u64>,
    /// Requests with more than one effect, and how many.
    pub duplicate_effects: Found<(String, u64)>,
    /// Requests that are done and have no effect.
    pub done_without_effect: Found<String>,
    /// Request ids of effects without a row, younger than the oldest effect that has one.
    pub effect_without_request: Found<String>,
    /// The same, older: their rows were swept.
    pub purged: Found<String>,
    /// Effects that name no request.
    pub nameless_effects: u64,
    /// All numbers are of one moment; `false`: a writer wrote while they were counted.
    pub one_moment: bool,
    /// Groups of requests with the same arguments hash.
    pub same_hash: Found<Vec<String>>,
    /// Labels that several requests' effects share, with those requests.
    pub same_label: Vec<(String, Vec<String>)>,
    /// Requests that are not done, with their state and their effects; all of them are counted in `requests`.
    pub unfinished: Vec<(String, State, u64)>,
    /// Effects with each label that is expected.
    pub labels: BTreeMap<String, u64>,
    /// Rows that are known to be there and could not be read (damaged pages).
    pub unread_rows: u64,
}

impl Default for Totals {
    fn default() -> Totals {
        Totals {
            requests: BTreeMap::new(),
            effects: None,
            duplicate_effects: Found::default(),
            done_without_effect: Found::default(),
            effect_without_request: Found::default(),
            purged: Found::default(),
            nameless_effects: 0,
            one_moment: true,
            same_hash: Found::default(),
            same_label: Vec::new(),
            unfinished: Vec::new(),
            labels: BTreeMap::new(),
            unread_rows: 0,
        }
    }
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

/// A foreign ledger's own end is an end, if no good one: such a request was not done.
fn is_bad_end(s: &State) -> bool {
    matches!(s, State::Failed | State::Cancelled | State::Expired)
}

fn is_unfinished(s: &State) -> bool {
    *s != State::Done && !is_bad_end(s)
}

impl Totals {
    fn count(&self, of: impl Fn(&State) -> bool) -> u64 {
        self.requests.iter().filter(|(s, _)| of(s)).map(|(_, n)| n).sum()
    }

    /// Effects without a request row that was ever there.
    fn loose(&self) -> u64 {
        self.effect_without_request.total + self.nameless_effects
    }

    /// The sentence against its own numbers: with nothing else wrong each request that is done has its effect, and
    /// each effect its request or a row that was swept.
    fn adds_up(&self) -> bool {
        let done = self.count(|s| *s == State::Done);
        self.effects.is_none_or(|n| n == done + self.purged.total)
    }
}

/// Checks the invariants. `strict`: warnings are errors.
pub fn verify(totals: &Totals, expected: &Expected, strict: bool) -> Verified {
    let mut problems = Problems { list: Vec::new(), strict };
    problems.broken(totals);
    let wrong = problems.unexpected(totals, expected);
    problems.doubtful(totals);
    let mut parts = parts(totals, wrong);
    let sums = totals.effects.filter(|_| parts.is_empty() && !totals.adds_up());
    let done = totals.count(|s| *s == State::Done);
    if let (Some(effects), true) = (sums, totals.one_moment) {
        let what = format!("{} for {} done", many(effects, "effect"), many(done, "request"));
        problems.add("unexpected_count", Severity::Error, &[], what.clone());
        parts.push(what);
    }
    if parts.is_empty() && strict && !problems.list.is_empty() {
        // Nothing is broken, and a doubt counts as an error today.
        parts.push(many(problems.list.len() as u64, "doubt"));
    }
    let requests = totals.count(|_| true);
    let exactly_once =
        parts.is_empty() && sums.is_none() && requests > 0 && totals.effects.is_some();
    let sentence = match totals.effects {
        _ if !parts.is_empty() => format!("NOT exactly once: {}", parts.join(", ")),
        None => "can't say whether exactly once: this ledger has no effects table".into(),
        Some(effects) => {
            let counts = format!("{}, {}", many(requests, "request"), many(effects, "effect"));
            if exactly_once {
                format!("exactly once: {counts}")
            } else if requests == 0 {
                let what = "no requests: nothing is proven".to_owned();
                problems.add("unexpected_count", Severity::Warning, &[], what);
                format!("nothing to say yet: {counts}")
            } else {
                format!(
                    "can't say whether exactly once: a writer wrote while this was counted ({counts}); count again"
                )
            }
        }
    };
    let mut problems = problems.list;
    problems.sort_by_key(|p| p.severity);
    Verified { problems, exactly_once, sentence }
}

/// What speaks against "exactly once", counted.
fn parts(t: &Totals, wrong: u64) -> Vec<String> {
    let of = |state: State| t.count(|s| *s == state);
    [
        (t.duplicate_effects.total, "duplicate", "duplicates"),
        (t.done_without_effect.total, "done without effect", "done without effect"),
        (t.loose(), "effect without request", "effects without request"),
        (wrong, "count not as expected", "counts not as expected"),
        (t.count(is_unfinished), "unfinished", "unfinished"),
        (of(State::Failed), "failed", "failed"),
        (of(State::Cancelled), "cancelled", "cancelled"),
        (of(State::Expired), "expired", "expired"),
        (t.same_hash.total, "suspect pair", "suspect pairs"),
        (t.unread_rows, "row could not be read", "rows could not be read"),
    ]
    .into_iter()
    .filter(|(n, ..)| *n > 0)
    .map(|(n, one, many)| format!("{n} {}", if n == 1 { one } else { many }))
    .collect()
}

fn many(n: u64, one: &str) -> String {
    format!("{n} {one}{}", if n == 1 { "" } else { "s" })
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

    /// What is counted and not named.
    fn rest(&mut self, kind: &'static str, severity: Severity, total: u64, named: usize) {
        let more = total.saturating_sub(named as u64);
        if more > 0 {
            self.add(kind, severity, &[], format!("{more} more, not named here"));
        }
    }

    fn one_each(
        &mut self,
        kind: &'static str,
        severity: Severity,
        found: &Found<String>,
        detail: impl Fn(&str) -> String,
    ) {
        for id in &found.list {
            self.add(kind, severity, std::slice::from_ref(id), detail(id));
        }
        self.rest(kind, severity, found.total, found.list.len());
    }

    fn broken(&mut self, t: &Totals) {
        use Severity::Error;
        let twice = &t.duplicate_effects;
        for (id, n) in &twice.list {
            let detail = format!("{id} has {n} effects");
            self.add("duplicate_effect", Error, std::slice::from_ref(id), detail);
        }
        self.rest("duplicate_effect", Error, twice.total, twice.list.len());
        self.one_each("done_without_effect", Error, &t.done_without_effect, |id| {
            format!("{id} is done and has no effect")
        });
        self.one_each("effect_without_request", Error, &t.effect_without_request, |id| {
            format!("an effect of {id} has no request row")
        });
        if t.nameless_effects > 0 {
            let detail = match t.nameless_effects {
                1 => "an effect names no request at all".to_owned(),
                n => format!("{n} effects name no request at all"),
            };
            self.add("effect_without_request", Error, &[], detail);
        }
        if t.unread_rows > 0 {
            let detail =
                format!("at least {} rows could not be read: the file is damaged", t.unread_rows);
            self.add("unreadable_rows", Error, &[], detail);
        }
    }

    /// How many counts are not as expected.
    fn unexpected(&mut self, t: &Totals, e: &Expected) -> u64 {
        let mut wrong = 0;
        let mut check = |what: String, want: u64, got: u64| {
            let detail = match t.effects {
                Some(_) if want == got => return,
                Some(_) => format!("{what}: expected {want}, found {got}"),
                None => format!("{what}: expected {want}, and this ledger has no effects table"),
            };
            wrong += 1;
            self.add("unexpected_count", Severity::Error, &[], detail);
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
        wrong
    }

    fn doubtful(&mut self, t: &Totals) {
        use Severity::Warning;
        let mut named = 0;
        for (id, state, effects) in &t.unfinished {
            named += 1;
            let word = state.word();
            let detail = match (is_bad_end(state), effects) {
                (true, 0) => format!("{id} is {word}: it ended, and not as done"),
                (false, 0) => format!("{id} is {word}"),
                (_, n) => format!(
                    "{id} is {word} and has {}: look at it before anything is repeated",
                    many(*n, "effect")
                ),
            };
            self.add("unfinished", Warning, std::slice::from_ref(id), detail);
        }
        let all = t.count(|s| *s != State::Done);
        self.rest("unfinished", Warning, all, named);
        for ids in &t.same_hash.list {
            let detail = format!("the same arguments under {} request_ids", ids.len());
            self.add("suspect_duplicate", Warning, ids, detail);
        }
        self.rest("suspect_duplicate", Warning, t.same_hash.total, t.same_hash.list.len());
        for (label, ids) in &t.same_label {
            let known = |g: &Vec<String>| ids.iter().all(|id| g.contains(id));
            if !t.same_hash.list.iter().any(known) {
                let detail = format!("effects of several requests share the label {label}");
                self.add("suspect_duplicate", Warning, ids, detail);
            }
        }
        self.one_each("request_purged", Warning, &t.purged, |id| {
            format!("the row of {id} was swept; its effect is older than any that has a row")
        });
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
            same_hash: vec![ids(&["night-001", "night-006"])].into(),
            same_label: vec![("障害報告".into(), ids(&["night-001", "night-006"]))],
            unfinished: vec![
                ("night-005".into(), State::Abandoned, 0),
                ("night-007".into(), State::Abandoned, 1),
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
        assert!(v.problems[1].detail.contains("has 1 effect"), "{:?}", v.problems[1]);
        assert!(!verify(&night(), &Expected::default(), true).passes());
    }

    #[test]
    fn every_broken_invariant_is_an_error_with_its_requests() {
        let t = Totals {
            effects: Some(4),
            duplicate_effects: vec![("a".into(), 2)].into(),
            done_without_effect: ids(&["b"]).into(),
            effect_without_request: ids(&["c"]).into(),
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
            purged: ids(&["old"]).into(),
            same_label: vec![("daily".into(), ids(&["a", "b"]))],
            ..Totals::default()
        };
        let v = verify(&t, &Expected::default(), false);
        assert_eq!(
            (v.exactly_once, v.sentence.as_str()),
            (true, "exactly once: 2 requests, 3 effects")
        );
        assert_eq!(v.problems.len(), 2);
        // A sentence that says all is well beside an exit status that says the contrary would help nobody.
        let strict = verify(&t, &Expected::default(), true);
        assert_eq!(
            (strict.passes(), strict.exactly_once, strict.sentence.as_str()),
            (false, false, "NOT exactly once: 2 doubts")
        );
        let v = verify(&Totals { unread_rows: 1, ..t.clone() }, &Expected::default(), false);
        assert_eq!(v.sentence, "NOT exactly once: 1 row could not be read");
        assert!(!v.passes(), "what could not be read was not checked");
        let none = Totals { effects: None, ..t };
        let v = verify(&none, &Expected::default(), false);
        assert!(!v.exactly_once && v.sentence.starts_with("can't say"));
        let v = verify(&none, &Expected { total: Some(0), ..Expected::default() }, false);
        assert!(!v.passes(), "no effects table is not zero effects");
    }

    #[test]
    fn what_ended_otherwise_than_done_was_not_done() {
        let t = Totals {
            requests: [(State::Done, 1), (State::Failed, 1), (State::Expired, 1)].into(),
            effects: Some(2),
            unfinished: vec![("f".into(), State::Failed, 0), ("x".into(), State::Expired, 0)],
            ..Totals::default()
        };
        let v = verify(&t, &Expected::default(), false);
        assert_eq!(
            (v.exactly_once, v.sentence.as_str()),
            (false, "NOT exactly once: 1 failed, 1 expired")
        );
        assert_eq!(v.problems[0].detail, "f is failed: it ended, and not as done");
    }

    #[test]
    fn the_sentence_is_held_against_its_own_numbers() {
        let t =
            Totals { requests: [(State::Done, 2)].into(), effects: Some(1), ..Totals::default() };
        let v = verify(&t, &Expected::default(), false);
        assert_eq!(v.sentence, "NOT exactly once: 1 effect for 2 requests done");
        assert!(!v.passes() && !v.exactly_once);
        // Counted while somebody wrote, two numbers may not fit and nothing is wrong; nor is anything shown.
        let v = verify(&Totals { one_moment: false, ..t.clone() }, &Expected::default(), false);
        assert!(v.passes() && !v.exactly_once && v.sentence.starts_with("can't say"), "{v:?}");
        let nameless = Totals { nameless_effects: 1, effects: Some(3), ..t };
        let v = verify(&nameless, &Expected::default(), false);
        assert_eq!(v.sentence, "NOT exactly once: 1 effect without request");
        assert_eq!(v.problems[0].detail, "an effect names no request at all");
    }

    #[test]
    fn an_empty_ledger_proves_nothing() {
        let t = Totals { effects: Some(0), ..Totals::default() };
        let v = verify(&t, &Expected::default(), false);
        assert!(v.passes() && !v.exactly_once, "{v:?}");
        assert_eq!(v.sentence, "nothing to say yet: 0 requests, 0 effects");
        assert!(!verify(&t, &Expected::default(), true).passes());
    }

    #[test]
    fn what_is_not_named_is_counted() {
        let t = Totals {
            requests: [(State::Done, 9), (State::Running, 7)].into(),
            effects: Some(9),
            done_without_effect: Found { list: ids(&["a"]), total: 5 },
            unfinished: vec![("r".into(), State::Running, 0)],
            ..Totals::default()
        };
        let v = verify(&t, &Expected::default(), false);
        assert_eq!(v.sentence, "NOT exactly once: 5 done without effect, 7 unfinished");
        let details: Vec<&str> = v.problems.iter().map(|p| p.detail.as_str()).collect();
        assert_eq!(
            details,
            [
                "a is done and has no effect",
                "4 more, not named here",
                "r is running",
                "6 more, not named here"
            ]
        );
    }
}
