//! Counts and invariants of a whole ledger: is there exactly one effect for each request? Pure; the
//! aggregates come from the ledger's reader, judged.

pub use super::totals::{Found, Table, Totals};
use super::totals::{is_bad_end, is_unfinished};
use super::words::State;
use crate::ledger::PLACES;
use crate::text;

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
    let mut problems = Problems { list: Vec::new(), strict, unnamed: 0 };
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
        parts.push(many(problems.list.len() as u64 + problems.unnamed, "doubt"));
    }
    let requests = totals.count(|_| true);
    let unexplained = unexplained(totals);
    let exactly_once = parts.is_empty()
        && sums.is_none()
        && requests > 0
        && totals.effects.is_some()
        && totals.one_moment
        && unexplained.is_empty();
    let sentence = match totals.effects {
        _ if !parts.is_empty() => format!("NOT exactly once: {}", parts.join(", ")),
        None => "can't say whether exactly once: this ledger has no effects table".into(),
        Some(effects) => {
            let about = if totals.one_moment { "" } else { "about " };
            let counts =
                format!("{about}{}, {about}{}", many(requests, "request"), many(effects, "effect"));
            if exactly_once {
                format!("exactly once: {counts}")
            } else if requests == 0 {
                let what = "no requests: nothing is proven".to_owned();
                problems.add("unexpected_count", Severity::Warning, &[], what);
                format!("nothing to say yet: {counts}")
            } else if sums.is_none() && !unexplained.is_empty() {
                format!("can't say whether exactly once: {} ({counts})", unexplained.join(", "))
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

/// What breaks nothing that is known, and leaves open what it stands for.
fn unexplained(t: &Totals) -> Vec<String> {
    let purged = Some(t.purged.total).filter(|n| *n > 0).map(|n| {
        let have = if n == 1 { "has" } else { "have" };
        format!("{} {have} no request: swept, or there never was one", many(n, "effect"))
    });
    let shared = Some(t.shared_ids.total).filter(|n| *n > 0 && !t.told_apart).map(|n| {
        let have = if n == 1 { "has" } else { "have" };
        format!(
            "{} {have} several rows, and effects can't be given to one of them",
            many(n, "request_id")
        )
    });
    let uneven = t.uneven().map(|(t, n)| format!("{n} done without one in {}", t.name));
    purged.into_iter().chain(shared).chain(uneven).collect()
}

fn many(n: u64, one: &str) -> String {
    format!("{n} {one}{}", if n == 1 { "" } else { "s" })
}

struct Problems {
    list: Vec<Problem>,
    strict: bool,
    /// Counted in the list as one where they are several.
    unnamed: u64,
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
            self.unnamed += more - 1;
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
        // Where nobody can tell whose an effect is, nothing below is checked for these.
        let severity = if t.told_apart { Severity::Warning } else { Error };
        for (id, n) in &t.shared_ids.list {
            let detail = format!("{id} has {n} rows: this key is not unique by itself");
            self.add("several_rows", severity, std::slice::from_ref(id), detail);
        }
        self.rest("several_rows", severity, t.shared_ids.total, t.shared_ids.list.len());
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
            // Of several rows with the id another one may be done.
            let whose = match t.shared_ids.list.iter().any(|(shared, _)| shared == id) {
                true => format!("a row of {}", text::named(id)),
                false => text::named(id).to_owned(),
            };
            let detail = match (is_bad_end(state), effects) {
                (true, 0) => format!("{whose} is {word}: it ended, and not as done"),
                (false, 0) => format!("{whose} is {word}"),
                (_, n) => format!(
                    "{whose} is {word} and has {}: look at it before anything is repeated",
                    many(*n, "effect")
                ),
            };
            self.add("unfinished", Warning, std::slice::from_ref(id), detail);
        }
        let all = t.count(|s| *s != State::Done);
        self.rest("unfinished", Warning, all, named);
        for ids in &t.same_hash.list {
            let many = match ids.len() {
                PLACES.. => format!("at least {PLACES} request_ids, the newest of which are named"),
                n => format!("{n} request_ids"),
            };
            let detail = format!("the same arguments under {many}");
            self.add("suspect_duplicate", Warning, ids, detail);
        }
        self.rest("suspect_duplicate", Warning, t.same_hash.total, t.same_hash.list.len());
        for (label, ids) in &t.same_label.list {
            let known = |g: &Vec<String>| ids.iter().all(|id| g.contains(id));
            if !t.same_hash.list.iter().any(known) {
                let detail = format!("effects of several requests share the label {label}");
                self.add("suspect_duplicate", Warning, ids, detail);
            }
        }
        let unread = t.same_label.total.saturating_sub(t.same_label.list.len() as u64);
        if unread > 0 {
            let what = many(unread, "label");
            let detail = format!(
                "{what} more occur several times: whether several requests share them was not looked at"
            );
            self.add("suspect_duplicate", Warning, &[], detail);
            self.unnamed += unread - 1;
        }
        self.one_each("request_purged", Warning, &t.purged, |id| {
            format!(
                "no row for the effect of {id}, which is older than any that has one: swept perhaps"
            )
        });
        for (table, n) in t.uneven() {
            let what = if n == 1 { "request is" } else { "requests are" };
            let detail = format!("{n} {what} done with an effect, and with none in {}", table.name);
            self.add("effects_differ", Warning, &[], detail);
        }
    }
}

#[cfg(test)]
#[path = "verify_tests.rs"]
mod tests;
