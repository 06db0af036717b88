//! Judging of a trace that was called again twice: all of it on one session, and each call on a session of its own.
//! What works on the one and not on the other depended on what hides in the session. Pure: answers in, words out.
//!
//! Handles are other ones in each run; [`Renames`] learns which from the answers, so that a later call is made with
//! the handle of its own run.

use super::finding::{Finding, Kind, Severity};
use super::lean;
use super::names::{is_distinctive, looks_like_handle};
use crate::json::flat::leaves;
use crate::json::raw::quote;
use crate::json::scan::{Kind as Token, Scanner, unescape};
use crate::replay::diff::{Change, Compared, Ignore, compare};
use crate::replay::script::Said;
use std::collections::{BTreeMap, HashSet};

/// So many recorded values are all looked for in texts; of more of them those that stand there as a word.
const WANTED: usize = 2_000;

/// What a call was answered in one run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Got {
    /// This.
    Said(Said),
    /// Nothing; why.
    Nothing(String),
    /// It was not made; why.
    NotMade(String),
}

/// Which value of the recording is which one of a run.
#[derive(Debug, Clone, Default)]
pub struct Renames {
    /// Values that later calls are given: only those need another name.
    wanted: HashSet<String>,
    by: BTreeMap<String, String>,
}

impl Renames {
    /// `args`: the raw arguments of all calls.
    pub fn new<'a>(args: impl Iterator<Item = &'a str>) -> Renames {
        let mut wanted = HashSet::new();
        for a in args {
            lean::leaves(a, |l| {
                if let Some(t) = lean::text(l.raw) {
                    wanted.insert(t.into_owned());
                } else if l.raw.bytes().all(|b| b.is_ascii_digit()) && looks_like_handle(l.name) {
                    wanted.insert(l.raw.to_owned());
                }
            });
        }
        Renames { wanted, by: BTreeMap::new() }
    }

    /// The pairs so far.
    pub fn pairs(&self) -> impl Iterator<Item = (&str, &str)> {
        self.by.iter().map(|(a, b)| (a.as_str(), b.as_str()))
    }

    /// Learns from the recorded answer and this run's.
    pub fn learn(&mut self, recorded: &Said, now: &Said) {
        let (Said::Result(then), Said::Result(now)) = (recorded, now) else { return };
        let (Some(then), Some(now)) = (leaves(then), leaves(now)) else { return };
        for (path, old) in &then {
            let Some(new) = now.get(path).filter(|n| *n != old) else { continue };
            let (old, new) = (plain(old), plain(new));
            let name = path.iter().rev().find(|s| !s.bytes().all(|b| b.is_ascii_digit()));
            let named = name.is_some_and(|n| looks_like_handle(n));
            if self.wanted.contains(&old) && (named || is_distinctive(&old)) {
                self.by.insert(old, new);
            } else {
                self.inside(&old, &new);
            }
        }
    }

    /// A value in a sentence: what stands where it stood.
    fn inside(&mut self, old: &str, new: &str) {
        let is_part = |c: char| c.is_alphanumeric() || "-_.:/".contains(c);
        let looked_for: Vec<&String> = match self.wanted.len() {
            0..=WANTED => self.wanted.iter().collect(),
            _ => old.split(|c| !is_part(c)).filter_map(|word| self.wanted.get(word)).collect(),
        };
        for v in looked_for.into_iter().filter(|v| is_distinctive(v)) {
            let Some((before, after)) = old.split_once(v.as_str()) else { continue };
            let now = new.strip_prefix(before).and_then(|n| n.strip_suffix(after));
            if let Some(now) = now.filter(|n| !n.is_empty() && !n.contains(char::is_whitespace)) {
                self.by.entry(v.clone()).or_insert_with(|| now.to_owned());
            }
        }
    }

    /// A raw JSON text with this run's values in place of the recorded ones, every other byte as it was.
    pub fn apply(&self, text: &str) -> String {
        swap(text, &self.by)
    }
}

/// A scalar without its quotes.
fn plain(raw: &str) -> String {
    lean::text(raw).map_or_else(|| raw.to_owned(), |t| t.into_owned())
}

/// Replaces scalars that are one of the values, and values inside of strings.
fn swap(text: &str, by: &BTreeMap<String, String>) -> String {
    let mut out = String::with_capacity(text.len());
    let mut done = 0;
    for token in Scanner::new(text) {
        let Ok(t) = token else { return text.to_owned() };
        let new = match t.kind {
            Token::String => {
                let old = String::from_utf8_lossy(&unescape(t.raw)).into_owned();
                let mut new = by.get(&old).cloned().unwrap_or_else(|| old.clone());
                if new == old {
                    for (a, b) in by.iter().filter(|(a, _)| is_distinctive(a)) {
                        if new.contains(a.as_str()) {
                            new = new.replace(a.as_str(), b);
                        }
                    }
                }
                (new != old).then(|| quote(&new))
            }
            Token::Number => by.get(t.raw).cloned().filter(|n| n.parse::<f64>().is_ok()),
            _ => None,
        };
        if let Some(new) = new {
            out.push_str(text.get(done..t.at).unwrap_or_default());
            out.push_str(&new);
            done = t.at + t.raw.len();
        }
    }
    out.push_str(text.get(done..).unwrap_or_default());
    out
}

fn swapped(said: &Said, by: &BTreeMap<String, String>) -> Said {
    match said {
        Said::Result(r) => Said::Result(swap(r, by)),
        Said::Error(e) => Said::Error(swap(e, by)),
    }
}

/// One call, as recorded and in the runs.
#[derive(Debug, Clone)]
pub struct Played {
    /// Which call of the trace, from 1.
    pub call: u64,
    /// Its event.
    pub seq: u64,
    /// The tool.
    pub tool: String,
    /// What it was answered then.
    pub recorded: Option<Said>,
    /// On the session of all.
    pub shared: Got,
    /// On one of its own.
    pub own: Got,
    /// On the session of all once more, after that.
    pub again: Option<Got>,
}

/// How one call came out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    /// The same on both: it needs no session.
    Independent,
    /// It failed on a session of its own; what it said.
    Fails(String),
    /// It answered otherwise on a session of its own.
    Differs(Vec<Change>),
    /// Nothing can be told; why.
    NotJudged(String),
}

impl Verdict {
    /// The stable word.
    pub fn word(&self) -> &'static str {
        match self {
            Verdict::Independent => "independent",
            Verdict::Fails(_) => "fails",
            Verdict::Differs(_) => "differs",
            Verdict::NotJudged(_) => "not_judged",
        }
    }
}

/// Which values of the shared run are which of the other.
pub fn crossed(shared: &Renames, other: &Renames) -> BTreeMap<String, String> {
    let pairs = shared.by.iter().filter_map(|(old, a)| {
        let b = other.by.get(old).unwrap_or(old);
        (a != b).then(|| (a.clone(), b.clone()))
    });
    // A value that only the other run renamed keeps its recorded name in the shared one.
    let only = other.by.iter().filter(|(old, _)| !shared.by.contains_key(*old));
    pairs.chain(only.map(|(a, b)| (a.clone(), b.clone()))).collect()
}

/// Judges one call. `to_own` and `to_again`: see [`crossed`].
pub fn judge(
    p: &Played,
    to_own: &BTreeMap<String, String>,
    to_again: &BTreeMap<String, String>,
) -> Verdict {
    let shared = match &p.shared {
        Got::NotMade(why) => return Verdict::NotJudged(why.clone()),
        Got::Nothing(why) => {
            return Verdict::NotJudged(format!("not answered on one session either: {why}"));
        }
        Got::Said(s) => s,
    };
    let own = match &p.own {
        Got::NotMade(why) => return Verdict::NotJudged(why.clone()),
        Got::Nothing(why) => return Verdict::Fails(format!("no answer: {why}")),
        Got::Said(s) => s,
    };
    let none = Ignore::default();
    match compare(&swapped(shared, to_own), own, &none) {
        Compared::Same => match p.recorded.as_ref().map(|r| compare(r, own, &none)) {
            Some(Compared::NowAnError) => Verdict::NotJudged(format!(
                "it fails on one session too, where it was good when recorded: {}",
                words(own)
            )),
            // An error that comes either way shows neither that the session is needed nor that it isn't.
            _ if is_error(own) => Verdict::NotJudged(format!(
                "it fails on one session too, as it did when recorded: {}",
                words(own)
            )),
            _ => Verdict::Independent,
        },
        Compared::NowAnError => Verdict::Fails(words(own)),
        Compared::NowAResult => Verdict::Differs(vec![Change {
            path: "isError".into(),
            recorded: Some(words(shared)),
            now: None,
        }]),
        Compared::Differs(changes) => {
            // What differs from run to run on one and the same kind of session has another cause.
            let moves = |a: &Said, b: &Said, by: &BTreeMap<String, String>| -> Vec<String> {
                match compare(&swapped(a, by), b, &none) {
                    Compared::Differs(c) => c.into_iter().map(|c| c.path).collect(),
                    _ => Vec::new(),
                }
            };
            let mut volatile = match &p.again {
                Some(Got::Said(again)) => moves(shared, again, to_again),
                _ => Vec::new(),
            };
            if let Some(r) = &p.recorded {
                volatile.extend(moves(r, shared, &BTreeMap::new()));
            }
            let left: Vec<Change> =
                changes.into_iter().filter(|c| !volatile.contains(&c.path)).collect();
            if left.is_empty() { Verdict::Independent } else { Verdict::Differs(left) }
        }
    }
}

/// Whether another run on one session is needed to judge it.
pub fn is_open(p: &Played, to_own: &BTreeMap<String, String>) -> bool {
    p.again.is_none() && matches!(judge(p, to_own, &BTreeMap::new()), Verdict::Differs(_))
}

fn is_error(said: &Said) -> bool {
    match said {
        Said::Result(r) => {
            let flag = crate::json::raw::get(r, "isError");
            flag.and_then(crate::json::raw::as_bool) == Some(true)
        }
        Said::Error(_) => true,
    }
}

/// What an answer says, in a line.
fn words(said: &Said) -> String {
    let text = match said {
        Said::Result(r) => crate::journal::call::answer_text(r),
        Said::Error(e) => crate::json::raw::get_str(e, "message").unwrap_or_default(),
    };
    let line: String = text.lines().next().unwrap_or_default().chars().take(160).collect();
    if line.is_empty() { "an error without words".into() } else { line }
}

/// The finding of a call that needs its session; `None` when there is none.
pub fn finding(p: &Played, v: &Verdict) -> Option<Finding> {
    let message = match v {
        Verdict::Fails(said) => format!(
            "{} works on a session with the calls before it, and fails on one of its own: {said}. What it needs hides in the session",
            p.tool
        ),
        Verdict::Differs(changes) => {
            let some: Vec<String> = changes.iter().take(3).map(change).collect();
            format!(
                "{} answers otherwise on a session of its own ({}): what it tells hangs on the session",
                p.tool,
                some.join("; ")
            )
        }
        _ => return None,
    };
    let mut f = Finding::new(Kind::SessionState, message);
    f.severity = Severity::Error;
    (f.call, f.seq, f.line) = (Some(p.call), p.seq, p.call);
    f.tool = Some(p.tool.clone());
    Some(f)
}

fn change(c: &Change) -> String {
    let value = |v: &Option<String>| {
        let v = v.as_deref().unwrap_or("nothing");
        let short: String = v.chars().take(60).collect();
        short
    };
    format!("{}: {} → {}", c.path, value(&c.recorded), value(&c.now))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ok(text: &str) -> Said {
        Said::Result(format!(r#"{{"content":[],"structuredContent":{text}}}"#))
    }
    fn bad(text: &str) -> Said {
        Said::Result(format!(r#"{{"content":[{{"type":"text","text":"{text}"}}],"isError":true}}"#))
    }
    fn played(shared: Said, own: Said) -> Played {
        Played {
            call: 2,
            seq: 5,
            tool: "t".into(),
            recorded: Some(ok(r#"{"n":1}"#)),
            shared: Got::Said(shared),
            own: Got::Said(own),
            again: None,
        }
    }

    #[test]
    fn a_trace_of_many_values_has_none_that_is_not_looked_for() {
        let many: Vec<String> =
            (0..3 * WANTED).map(|n| format!(r#"{{"basket_id":"bsk-{n}-x"}}"#)).collect();
        let mut r = Renames::new(many.iter().map(String::as_str));
        let text = |id: &str| {
            Said::Result(format!(r#"{{"content":[{{"type":"text","text":"made {id}, empty"}}]}}"#))
        };
        let last = format!("bsk-{}-x", 3 * WANTED - 1);
        r.learn(&text(&last), &text("bsk-7-now"));
        assert_eq!(r.pairs().collect::<Vec<_>>(), [(last.as_str(), "bsk-7-now")]);
    }

    #[test]
    fn handles_of_each_run_take_the_recorded_ones_place() {
        let mut r =
            Renames::new([r#"{"basket_id":"b-781","sku":"x"}"#, r#"{"order_id":7}"#].into_iter());
        r.learn(
            &ok(r#"{"basket_id":"b-781","at":"noon"}"#),
            &ok(r#"{"basket_id":"b-3","at":"one"}"#),
        );
        r.learn(&ok(r#"{"order_id":7}"#), &ok(r#"{"order_id":9}"#));
        assert_eq!(r.pairs().collect::<Vec<_>>(), [("7", "9"), ("b-781", "b-3")]);
        assert_eq!(
            r.apply(r#"{ "basket_id":"b-781", "n":7, "why":"for b-781!","k":70}"#),
            r#"{ "basket_id":"b-3", "n":9, "why":"for b-3!","k":70}"#
        );
        let text =
            |t: &str| Said::Result(format!(r#"{{"content":[{{"type":"text","text":"{t}"}}]}}"#));
        let mut r = Renames::new([r#"{"id":"bsk_a1"}"#].into_iter());
        r.learn(&text("Created basket bsk_a1."), &text("Created basket bsk_zz9."));
        assert_eq!(r.pairs().collect::<Vec<_>>(), [("bsk_a1", "bsk_zz9")]);
    }

    #[test]
    fn only_what_works_on_one_session_and_not_alone_hangs_on_it() {
        let none = BTreeMap::new();
        let j = |p: &Played| judge(p, &none, &none);
        assert_eq!(j(&played(ok(r#"{"n":1}"#), ok(r#"{"n":1}"#))), Verdict::Independent);
        assert_eq!(
            j(&played(ok(r#"{"n":1}"#), bad("no basket yet"))),
            Verdict::Fails("no basket yet".into())
        );
        assert!(matches!(j(&played(ok(r#"{"n":1}"#), ok(r#"{"n":0}"#))), Verdict::Differs(_)));
        // It fails anyway: a handle that is not this server's, a tool that is gone.
        assert!(matches!(
            j(&played(bad("unknown b-781"), bad("unknown b-781"))),
            Verdict::NotJudged(_)
        ));
        // It was no better when recorded.
        let mut p = played(bad("no"), bad("no"));
        p.recorded = Some(bad("no"));
        assert!(matches!(j(&p), Verdict::NotJudged(_)), "that proves nothing");
        // A counter of the whole server moves from run to run.
        let mut p = played(ok(r#"{"n":1}"#), ok(r#"{"n":2}"#));
        assert!(is_open(&p, &none));
        p.again = Some(Got::Said(ok(r#"{"n":3}"#)));
        assert_eq!(j(&p), Verdict::Independent);
        p.again = Some(Got::Said(ok(r#"{"n":1}"#)));
        assert!(matches!(j(&p), Verdict::Differs(_)));
        let mut p = played(ok(r#"{"n":1}"#), ok(r#"{"n":1}"#));
        p.own = Got::Nothing("died".into());
        assert!(matches!(j(&p), Verdict::Fails(_)));
    }
}
