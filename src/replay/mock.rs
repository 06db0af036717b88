//! A recording as a server: what it was asked then, it answers as it did then. Matched by method and parameters
//! without what is new each time; equal requests are answered in the recorded order. What was not recorded is
//! refused, loudly, with what is nearest: a mock that makes something up would prove nothing. Only a handshake that
//! is not in the recording is made up, and told.

use super::script::{Ask, Died, Said, Told, key};
use crate::journal::{Hint, ToolList};
use crate::json::raw::{self, quote};
use crate::wire::frame::{self, Frame};
use crate::wire::id::Id;
use std::collections::{BTreeSet, HashMap, HashSet};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

/// The code of a miss whose method was recorded (JSON-RPC's range for implementations).
pub const MISS: i64 = -32010;
/// JSON-RPC: method not found.
const NO_METHOD: i64 = -32601;

/// What the mock does with a message.
#[derive(Debug, Clone, PartialEq)]
pub enum Step {
    /// A notification, or an answer to a question of then.
    Nothing,
    /// This answer, after this long in the recording, with what was told around it then.
    Answer { json: String, after: Duration, around: Vec<Told> },
    /// It was recorded without an answer: the server died, or never said anything.
    Silence { words: String, around: Vec<Told>, died: Option<Died> },
    /// It was not recorded: the answer says so, and these words are for stderr.
    Miss { json: String, words: String },
}

/// A recording that answers.
pub struct Mock {
    script: Vec<Ask>,
    by_key: HashMap<String, Vec<usize>>,
    /// Tools that say they only read: asking them again is no new call.
    reads: HashSet<String>,
    /// How often each key was asked.
    asked: Mutex<HashMap<String, usize>>,
}

/// The lives of the server in a script, in order.
fn lives(script: &[Ask]) -> Vec<u32> {
    let mut all: Vec<u32> = script.iter().map(|a| a.generation).collect();
    all.sort_unstable();
    all.dedup();
    all
}

impl Mock {
    /// Of what a client said then, once so many lives of the server are over: what was asked in those is not asked
    /// again. After the last life the last one goes on.
    pub fn after(script: Vec<Ask>, over: usize) -> Mock {
        let lives = lives(&script);
        let from = lives.get(over.min(lives.len().saturating_sub(1))).copied().unwrap_or(0);
        Mock::new(script.into_iter().filter(|a| a.generation >= from).collect())
    }

    /// Of what a client said then.
    pub fn new(script: Vec<Ask>) -> Mock {
        let mut by_key: HashMap<String, Vec<usize>> = HashMap::new();
        for (i, a) in script.iter().enumerate() {
            if let (Some(method), Some(_)) = (&a.method, &a.id) {
                by_key.entry(key(method, a.params.as_deref())).or_default().push(i);
            }
        }
        let mut tools = ToolList::default();
        for ask in script.iter().filter(|a| a.method.as_deref() == Some("tools/list")) {
            if let Some(Said::Result(r)) = &ask.answer {
                tools.add_page(r);
            }
        }
        let reads =
            tools.tools.iter().filter(|t| t.read_only == Hint::True).map(|t| t.name.clone());
        Mock { script, by_key, reads: reads.collect(), asked: Mutex::default() }
    }

    /// How many requests it can answer.
    pub fn len(&self) -> usize {
        self.by_key.values().map(Vec::len).sum()
    }

    /// It knows nothing.
    pub fn is_empty(&self) -> bool {
        self.by_key.is_empty()
    }

    /// What is to be done with one message.
    pub fn step(&self, text: &str) -> Step {
        let (id, method, params) = match Frame::parse(text) {
            Frame::Request { id, method, params } => (id, method, params),
            Frame::Notification { .. } | Frame::Response { .. } => return Step::Nothing,
            Frame::Malformed { id, why } => {
                let id = id.filter(|i| !matches!(i, Id::Odd(_))).unwrap_or(Id::Null);
                let words = format!("a malformed message: {why}");
                return Step::Miss { json: frame::error(&id, -32600, &words), words };
            }
            Frame::NotRpc => {
                let words = "a line that is no JSON-RPC".to_owned();
                return Step::Miss { json: frame::error(&Id::Null, -32700, &words), words };
            }
        };
        let key = key(&method, params);
        let Some(list) = self.by_key.get(&key) else { return self.miss(&id, &method, params) };
        let n = {
            let mut asked = self.asked.lock().unwrap_or_else(PoisonError::into_inner);
            let n = asked.entry(key).or_default();
            *n += 1;
            *n
        };
        // A call that was made twice then and is made a third time now was not recorded. What only reads the
        // server's face (initialize, lists, tools that read) may be asked again.
        let reads = || {
            params.and_then(|p| raw::get_str(p, "name")).is_some_and(|n| self.reads.contains(&n))
        };
        let at = match list.get(n - 1) {
            Some(at) => at,
            None if method == "tools/call" && !reads() => {
                let words = format!(
                    "it was recorded {} and is now asked for the {} time",
                    times(list.len()),
                    nth(n)
                );
                return self.refuse(&id, &method, params, MISS, &words);
            }
            None => match list.last() {
                Some(at) => at,
                None => return self.miss(&id, &method, params),
            },
        };
        let Some(ask) = self.script.get(*at) else { return self.miss(&id, &method, params) };
        let around = || around(ask, params);
        let after =
            Duration::from_secs_f64(ask.took_ms.unwrap_or(0.0).clamp(0.0, 86_400_000.0) / 1000.0);
        match &ask.answer {
            Some(Said::Result(r)) => {
                Step::Answer { json: frame::result(&id, r), after, around: around() }
            }
            Some(Said::Error(e)) => {
                let json = format!(r#"{{"jsonrpc":"2.0","id":{},"error":{e}}}"#, id.to_json());
                Step::Answer { json, after, around: around() }
            }
            None if method == "ping" && ask.died.is_none() => {
                Step::Answer { json: frame::result(&id, "{}"), after, around: Vec::new() }
            }
            None => Step::Silence {
                words: format!(
                    "{}: it was never answered then, and is not now",
                    told(&method, params)
                ),
                around: around(),
                died: ask.died,
            },
        }
    }

    fn miss(&self, id: &Id, method: &str, params: Option<&str>) -> Step {
        if method == "ping" {
            let json = frame::result(id, "{}");
            return Step::Answer { json, after: Duration::ZERO, around: Vec::new() };
        }
        let known =
            self.script.iter().any(|a| a.id.is_some() && a.method.as_deref() == Some(method));
        if let (false, Some(least)) = (known, self.least(method, params)) {
            let words = format!(
                "not in the recording: {method}; answered with the least that lets a client connect"
            );
            return Step::Miss { json: frame::result(id, &least), words };
        }
        let code = if known { MISS } else { NO_METHOD };
        let words = if known {
            "it was not recorded with these parameters"
        } else {
            "no such request was recorded"
        };
        self.refuse(id, method, params, code, words)
    }

    /// A handshake for a recording without one (an imported trace, a tap that came late): no client gets to a call
    /// without it.
    fn least(&self, method: &str, params: Option<&str>) -> Option<String> {
        match method {
            "initialize" => {
                let asked = params.and_then(|p| raw::get_str(p, "protocolVersion"));
                let version = asked.unwrap_or_else(|| "2025-11-25".into());
                Some(format!(
                    r#"{{"protocolVersion":{},"capabilities":{{"tools":{{}}}},"serverInfo":{{"name":"redial-mock","version":"{}"}}}}"#,
                    quote(&version),
                    env!("CARGO_PKG_VERSION")
                ))
            }
            "tools/list" => {
                let names: BTreeSet<String> = self.script.iter().filter_map(Ask::tool).collect();
                let tool = |n: &String| {
                    format!(r#"{{"name":{},"inputSchema":{{"type":"object"}}}}"#, quote(n))
                };
                let tools: Vec<String> = names.iter().map(tool).collect();
                Some(format!(r#"{{"tools":[{}]}}"#, tools.join(",")))
            }
            _ => None,
        }
    }

    fn refuse(&self, id: &Id, method: &str, params: Option<&str>, code: i64, why: &str) -> Step {
        let asked = told(method, params);
        let nearest = self.nearest(method, params);
        let near = nearest.map_or_else(String::new, |n| format!("; nearest: {n}"));
        let words = format!("not in the recording: {asked}: {why}{near}");
        let json = format!(
            r#"{{"jsonrpc":"2.0","id":{},"error":{{"code":{code},"message":{},"data":{{"asked":{}}}}}}}"#,
            id.to_json(),
            quote(&words),
            quote(&asked)
        );
        Step::Miss { json, words }
    }

    /// The recorded request that is most like this one.
    fn nearest(&self, method: &str, params: Option<&str>) -> Option<String> {
        let short = |t: &str| t.chars().take(400).collect::<String>();
        let want = short(&key(method, params));
        let name = params.and_then(|p| raw::get_str(p, "name"));
        let distance = |a: &&Ask| {
            let m = a.method.as_deref().unwrap_or_default();
            let p = a.params.as_deref();
            let same_method = m == method;
            let same_name = p.and_then(|p| raw::get_str(p, "name")) == name;
            (!same_method, !same_name, strsim::levenshtein(&short(&key(m, p)), &want))
        };
        let asked = self.script.iter().filter(|a| a.id.is_some()).take(2000);
        let best = asked.min_by_key(distance)?;
        Some(told(best.method.as_deref()?, best.params.as_deref()))
    }
}

/// What was told around it then; progress carries the token of now, and is left out where there is none.
fn around(ask: &Ask, params: Option<&str>) -> Vec<Told> {
    let meta = |p: Option<&str>| {
        raw::get(p?, "_meta").and_then(|m| raw::get(m, "progressToken")).map(str::to_owned)
    };
    let (then, now) = (meta(ask.params.as_deref()), meta(params));
    let told = ask.told.iter().filter_map(|t| {
        if t.stderr {
            return Some(t.clone());
        }
        let token = raw::get(&t.text, "params").and_then(|p| raw::get(p, "progressToken"));
        let Some(token) = token else { return Some(t.clone()) };
        // Another call's progress is not this one's.
        let now = now.as_deref().filter(|_| then.as_deref() == Some(token))?;
        let old = format!("\"progressToken\":{token}");
        let plain = t.text.replacen("\"progressToken\": ", "\"progressToken\":", 1);
        let text = plain.replacen(&old, &format!("\"progressToken\":{now}"), 1);
        Some(Told { text, ..t.clone() })
    });
    told.collect()
}

/// A request in a few words. May hold foreign text.
fn told(method: &str, params: Option<&str>) -> String {
    let params = params.unwrap_or_default();
    let what = match (raw::get_str(params, "name"), raw::get(params, "arguments")) {
        (Some(name), args) => format!("{method} {name} {}", args.unwrap_or_default()),
        (None, _) if params.is_empty() => method.to_owned(),
        (None, _) => format!("{method} {params}"),
    };
    let short: String = what.trim_end().chars().take(300).collect();
    if short.len() < what.trim_end().len() { format!("{short}…") } else { short }
}

fn times(n: usize) -> String {
    if n == 1 { "once".into() } else { format!("{n} times") }
}

fn nth(n: usize) -> String {
    let end = match (n % 10, n % 100) {
        (1, x) if x != 11 => "st",
        (2, x) if x != 12 => "nd",
        (3, x) if x != 13 => "rd",
        _ => "th",
    };
    format!("{n}{end}")
}

#[cfg(test)]
mod tests;
