//! Where the arguments of a repeat come from, and which of several is the right one. Pure: files are read
//! elsewhere. The hash proves; without one, only a single candidate is good enough.

use super::hash::{self, Proof, Shape};
use super::transcript;
use crate::journal::Call;
use crate::json::key::{self, Spelling};
use crate::json::python::python_dumps;
use crate::json::raw;
use crate::judge::HashCheck;
use crate::ledger::Row;
use crate::ledger::hash::{REQUEST_ID, Recipe};

/// Where arguments were found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Source {
    /// Typed (`--args`, the dialog).
    Given,
    /// A file that holds them (`--args-file`).
    File(String),
    /// A call that was seen on this endpoint.
    Seen,
    /// A recording.
    Recording(String),
    /// The columns of the effect with this key.
    Effect(String),
    /// A file in which an object with this request_id was found (`--args-from`, a paste).
    Transcript(String),
}

impl Source {
    /// For people. May hold foreign text.
    pub fn words(&self) -> String {
        match self {
            Source::Given => "as given".into(),
            Source::File(path) => format!("from {path}"),
            Source::Seen => "from the call that was seen".into(),
            Source::Recording(path) => format!("from the recording {path}"),
            Source::Effect(key) => format!("made from the columns of {key}"),
            Source::Transcript(path) => format!("found in {path}"),
        }
    }
}

/// Arguments that may be the right ones.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Candidate {
    /// Raw JSON, with the request_id; bytes kept where they were recorded.
    pub args: String,
    /// The tool they were sent to, where that is known.
    pub tool: Option<String>,
    /// Where they come from.
    pub source: Source,
}

/// What can be done with the candidates.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Choice {
    /// These.
    One(Candidate),
    /// Several different ones, and no hash that tells which.
    Ambiguous(Vec<Candidate>),
    /// Some were found, and the hash says that none of them is right.
    NoneFits(Vec<Candidate>),
    /// None was found.
    Nothing,
}

/// From the calls of a request (no look-ups), newest first; byte for byte.
pub fn from_calls(calls: &[&Call], source: &Source) -> Vec<Candidate> {
    let with_args = calls.iter().rev().filter_map(|c| {
        let args = c.args.clone().filter(|a| raw::is_object(a))?;
        Some(Candidate { args, tool: Some(c.tool.clone()), source: source.clone() })
    });
    with_args.collect()
}

/// From the effects of a row: only what reproduces the row's hash counts.
pub fn from_effects(row: &Row) -> Vec<Candidate> {
    let Some(row_hash) = row.args_hash.as_deref() else { return Vec::new() };
    let made = row.effects.iter().filter_map(|e| {
        let args = Recipe::ALL.iter().find_map(|r| hash::from_effect(e, *r, row_hash))?;
        let args = with_request_id(&args, &row.request_id, row.id_as)?;
        Some(Candidate { args, tool: None, source: Source::Effect(e.key.clone()) })
    });
    made.collect()
}

/// From any text, of which `name` tells the file. Answers and look-ups hold the request_id too: they are
/// left out, unless nothing else is there that looks like arguments.
pub fn from_text(text: &str, name: &str, request_id: &str, look_up: &str) -> Vec<Candidate> {
    let found: Vec<_> = transcript::find(text, request_id)
        .into_iter()
        .filter(|f| !f.tool.as_deref().is_some_and(|t| names_tool(t, look_up)))
        .filter(|f| raw::members(&f.object).is_some_and(|m| m.iter().any(|(k, _)| k != REQUEST_ID)))
        .collect();
    let any_call = found.iter().any(|f| f.is_arguments);
    let likely = found.into_iter().filter(|f| f.is_arguments || !any_call);
    likely
        .map(|f| Candidate {
            args: f.object,
            tool: f.tool.map(|t| bare_name(&t).to_owned()),
            source: Source::Transcript(name.to_owned()),
        })
        .collect()
}

/// The one to send. `shape` gives the schema of a candidate's tool (empty when unknown).
pub fn choose(
    candidates: Vec<Candidate>,
    row_hash: Option<&str>,
    shape: impl Fn(Option<&str>) -> Shape,
    proof: Option<&Proof>,
) -> Choice {
    let mut distinct: Vec<Candidate> = Vec::new();
    for c in candidates {
        let same = |d: &Candidate| plain(&d.args) == plain(&c.args);
        match distinct.iter_mut().find(|d| same(d)) {
            Some(d) => d.tool = d.tool.take().or(c.tool),
            None => distinct.push(c),
        }
    }
    let checked = |c: &Candidate| {
        hash::check(Some(&c.args), row_hash, &shape(c.tool.as_deref()), proof).check
    };
    if let Some(i) = distinct.iter().position(|c| checked(c) == HashCheck::Equal) {
        return Choice::One(distinct.swap_remove(i));
    }
    let denied = |c: &Candidate| checked(c) == HashCheck::DiffersProven;
    match distinct.len() {
        0 => Choice::Nothing,
        _ if distinct.iter().all(denied) => Choice::NoneFits(distinct),
        1 => Choice::One(distinct.swap_remove(0)),
        _ => Choice::Ambiguous(distinct),
    }
}

/// `args` with this request_id: as they are when they have it already, whatever it is spelled as, else with it put
/// in front. `None` when `args` is not an object, or holds another request_id.
pub fn with_request_id(args: &str, request_id: &str, spelling: Spelling) -> Option<String> {
    let members = raw::members(args)?;
    match members.iter().rev().find(|(k, _)| k == REQUEST_ID) {
        Some((_, value)) => {
            (key::text(value).as_deref() == Some(request_id)).then(|| args.to_owned())
        }
        None => {
            let id = key::spelled(request_id, spelling);
            let first = std::iter::once((REQUEST_ID, id.as_str()));
            Some(hash::object(first.chain(members.iter().map(|(k, v)| (k.as_ref(), *v)))))
        }
    }
}

/// `args` with the id that they hold written as the server takes it: for arguments that nobody has sent so far.
pub fn respelled(args: &str, spelling: Spelling) -> String {
    let Some(members) = raw::members(args) else { return args.to_owned() };
    let Some(id) = key::of(args) else { return args.to_owned() };
    let id = key::spelled(&id, spelling);
    let own = |k: &str| k == REQUEST_ID;
    hash::object(members.iter().map(|(k, v)| (k.as_ref(), if own(k) { id.as_str() } else { *v })))
}

/// One spelling for equal JSON.
fn plain(args: &str) -> String {
    python_dumps(args, true, &[]).unwrap_or_else(|_| args.to_owned())
}

/// Agents name a server's tool with a prefix: `mcp__tickets__create_ticket`.
fn bare_name(tool: &str) -> &str {
    match tool.strip_prefix("mcp__") {
        Some(rest) => rest.split_once("__").map_or(tool, |(_, name)| name),
        None => tool,
    }
}

fn names_tool(named: &str, tool: &str) -> bool {
    named == tool || bare_name(named) == tool
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::judge::testing::{call, effect, row};

    const ARGS: &str = r#"{"request_id":"r","title":"a","body":"1"}"#;

    fn hash_of(args: &str) -> String {
        Recipe::Python.hash(args).unwrap()
    }

    fn candidate(args: &str) -> Candidate {
        Candidate { args: args.into(), tool: None, source: Source::Given }
    }

    fn chosen(list: &[&str], hash: Option<&str>, proof: Option<&Proof>) -> Choice {
        choose(list.iter().map(|a| candidate(a)).collect(), hash, |_| Shape::default(), proof)
    }

    #[test]
    fn the_hash_picks_and_without_it_only_one_is_good_enough() {
        let other = r#"{"request_id":"r","title":"b","body":"1"}"#;
        let respelled = r#"{ "body":"1", "title":"\u0061", "request_id":"r" }"#;
        let proof = Proof { recipe: Recipe::Python, request_id: "x".into() };
        let hash = hash_of(ARGS);
        assert_eq!(chosen(&[other, ARGS], Some(&hash), None), Choice::One(candidate(ARGS)));
        assert_eq!(chosen(&[ARGS, respelled], None, None), Choice::One(candidate(ARGS)));
        assert!(matches!(chosen(&[other, ARGS], None, None), Choice::Ambiguous(c) if c.len() == 2));
        assert!(matches!(chosen(&[other], Some(&hash), Some(&proof)), Choice::NoneFits(_)));
        // An unproven recipe may be wrong: the gate asks, nothing is thrown away.
        assert_eq!(chosen(&[other], Some(&hash), None), Choice::One(candidate(other)));
        assert_eq!(chosen(&[], Some(&hash), None), Choice::Nothing);
    }

    #[test]
    fn seen_calls_keep_their_bytes_and_the_newest_comes_first() {
        let with = |sent: f64, args: &str| {
            let mut c = call("r", 1, sent);
            c.args = Some(args.into());
            c
        };
        let (a, b, odd) =
            (with(1.0, ARGS), with(2.0, "{ \"request_id\":\"r\" }"), with(3.0, "[1]"));
        let got: Vec<String> =
            from_calls(&[&a, &b, &odd], &Source::Seen).into_iter().map(|c| c.args).collect();
        assert_eq!(got, ["{ \"request_id\":\"r\" }", ARGS]);
    }

    #[test]
    fn an_effects_columns_become_arguments_again() {
        let mut e = effect("r", "a");
        e.columns = [("title", r#""a""#), ("body", r#""1""#), ("at", "5")]
            .map(|(k, v)| (k.to_owned(), v.to_owned()))
            .into();
        let r = crate::ledger::Row {
            args_hash: Some(hash_of(ARGS)),
            effects: vec![e],
            ..row("r", "running", "A", 1.0)
        };
        let got = from_effects(&r);
        assert_eq!(got[0].args, r#"{"request_id": "r", "title": "a", "body": "1"}"#);
        assert_eq!(hash_of(&got[0].args), hash_of(ARGS));
        let unknown = crate::ledger::Row { args_hash: Some("0".repeat(64)), ..r };
        assert!(from_effects(&unknown).is_empty());
    }

    #[test]
    fn a_transcript_gives_the_call_not_its_look_up_nor_its_answer() {
        let text = format!(
            r#"{{"name":"mcp__tickets__create_ticket","input":{ARGS}}}
               {{"name":"mcp__tickets__find_request","input":{{"request_id":"r"}}}}
               {{"structuredContent":{{"request_id":"r","status":"in_progress"}}}}"#
        );
        let got = from_text(&text, "log.jsonl", "r", "find_request");
        assert_eq!(got.len(), 1);
        assert_eq!((got[0].args.as_str(), got[0].tool.as_deref()), (ARGS, Some("create_ticket")));
        // Bare arguments, as a person would paste them.
        assert_eq!(from_text(&format!("see: {ARGS}"), "paste", "r", "find_request")[0].args, ARGS);
    }

    #[test]
    fn the_request_id_is_put_in_and_never_replaced() {
        assert_eq!(with_request_id(ARGS, "r", Spelling::Text).as_deref(), Some(ARGS));
        assert_eq!(
            with_request_id(r#"{"n":1.0}"#, "r", Spelling::Number).as_deref(),
            Some(r#"{"request_id": "r", "n": 1.0}"#)
        );
        assert_eq!(
            with_request_id("{}", "r\"", Spelling::Text).as_deref(),
            Some(r#"{"request_id": "r\""}"#)
        );
        // A number stays one, and names the same request.
        let (text, number) = (r#"{"request_id":"5","n":1}"#, r#"{"request_id": 5.0 ,"n":1}"#);
        assert_eq!(with_request_id(text, "5", Spelling::Number).as_deref(), Some(text));
        assert_eq!(with_request_id(number, "5", Spelling::Text).as_deref(), Some(number));
        assert_eq!(with_request_id(number, "6", Spelling::Text), None);
        assert_eq!(
            with_request_id(r#"{"n":1}"#, "5", Spelling::Number).as_deref(),
            Some(r#"{"request_id": 5, "n": 1}"#)
        );
        assert_eq!(respelled(text, Spelling::Number), r#"{"request_id": 5, "n": 1}"#);
        assert_eq!(respelled(r#"{"n":1}"#, Spelling::Number), r#"{"n":1}"#);
        assert_eq!(with_request_id(ARGS, "other", Spelling::Text), None);
        assert_eq!(with_request_id("[1]", "r", Spelling::Text), None);
    }
}
