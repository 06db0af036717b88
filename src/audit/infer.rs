//! Contracts proposed from a trace alone: values that first appear in a result and later as an argument, by name and
//! by value; how sure each is, and why. Writes TOML text, no files.

use super::content::{Parts, Value, value};
use super::fold::Audit;
use super::lean;
use super::names::{KEYS, is_distinctive, looks_like_handle, plain};
use std::collections::{BTreeMap, HashMap, HashSet};
use std::fmt::Write as _;

/// Values that are remembered.
const KEPT: usize = 300_000;
/// Pairs of places that are remembered.
const PAIRS: usize = 10_000;
/// Longer values are texts.
const LONGEST: usize = 200;

#[derive(Debug, Clone, Copy)]
struct Origin {
    tool: u32,
    name: u32,
    distinctive: bool,
}

/// Where a value came from and where it went: tool and name of the result, tool and name of the argument.
type Pair = (u32, u32, u32, u32);

#[derive(Debug, Clone, Default)]
struct Seen {
    times: u64,
    distinctive: u64,
    values: HashSet<u64>,
}

/// Values on their way.
#[derive(Debug, Clone, Default)]
pub(super) struct Values {
    names: Vec<String>,
    by_name: HashMap<String, u32>,
    from: HashMap<u64, Origin>,
    given: HashSet<u64>,
    pairs: HashMap<Pair, Seen>,
    /// Calls of a tool that have an argument of this name.
    with: HashMap<(u32, u32), u64>,
    /// Not all values or pairs are kept.
    pub full: bool,
}

impl Values {
    fn name(&mut self, name: &str) -> u32 {
        if let Some(n) = self.by_name.get(name) {
            return *n;
        }
        if self.names.len() >= 1 << 16 {
            return 0;
        }
        let n = u32::try_from(self.names.len()).unwrap_or(0);
        self.names.push(name.to_owned());
        self.by_name.insert(name.to_owned(), n);
        n
    }

    /// A call's arguments.
    pub fn given(&mut self, tool: u32, args: &str) {
        let mut all: Vec<(String, u64, bool)> = Vec::new();
        lean::leaves(args, |l| {
            if KEYS.contains(&l.name) || all.len() > 200 {
                return;
            }
            if let Some((number, distinctive)) = handle_value(l.raw) {
                all.push((l.name.to_owned(), number, distinctive));
            }
        });
        for (name, number, _) in all {
            let n = self.name(&name);
            *self.with.entry((tool, n)).or_default() += 1;
            match self.from.get(&number).copied() {
                Some(o) if o.tool != tool || o.name != n => {
                    let pair = (o.tool, o.name, tool, n);
                    self.full |= self.pairs.len() >= PAIRS;
                    if self.pairs.len() < PAIRS || self.pairs.contains_key(&pair) {
                        let seen = self.pairs.entry(pair).or_default();
                        seen.times += 1;
                        seen.distinctive += u64::from(o.distinctive);
                        if seen.values.len() < 1_000 {
                            seen.values.insert(number);
                        }
                    }
                }
                Some(_) => {}
                None if self.given.len() < KEPT => drop(self.given.insert(number)),
                None => self.full = true,
            }
        }
    }

    /// A call's result.
    pub fn returned(&mut self, tool: u32, _call: u64, parts: &Parts<'_>) {
        let mut all: Vec<(String, u64, bool)> = Vec::new();
        parts.scalars(&mut |name, raw| {
            if KEYS.contains(&name) || all.len() > 2_000 {
                return;
            }
            if let Some((number, distinctive)) = handle_value(raw) {
                all.push((name.to_owned(), number, distinctive));
            }
        });
        for (name, number, distinctive) in all {
            // What a caller said first did not come from here.
            if self.given.contains(&number) || self.from.contains_key(&number) {
                continue;
            }
            if self.from.len() < KEPT {
                let name = self.name(&name);
                self.from.insert(number, Origin { tool, name, distinctive });
            } else {
                self.full = true;
            }
        }
    }
}

/// A value that could be a handle: its number, and whether it tells itself apart.
fn handle_value(raw: &str) -> Option<(u64, bool)> {
    match value(raw) {
        Value::Is(v) if v.len() <= LONGEST && v != "true" && !v.contains(['\n', ' ']) => {
            Some((lean::hash(v.as_bytes()), is_distinctive(&v)))
        }
        _ => None,
    }
}

/// How sure.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Sure {
    /// Could be chance.
    Low,
    /// One of name and value speaks for it.
    Medium,
    /// Name and value speak for it.
    High,
}

impl Sure {
    /// The stable word.
    pub fn word(self) -> &'static str {
        match self {
            Sure::Low => "low",
            Sure::Medium => "medium",
            Sure::High => "high",
        }
    }
}

/// One line of a proposed contract.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Proposal {
    /// The tool.
    pub tool: String,
    /// It returns the handle; else it needs it.
    pub produces: bool,
    /// Under this name.
    pub name: String,
    /// What the handle is called where it is made, when that is another name.
    pub known_as: Option<String>,
    /// Not every call has it.
    pub optional: bool,
    /// How sure.
    pub sure: Sure,
    /// Why.
    pub why: String,
}

impl Audit {
    /// Contracts as this trace suggests them; by tool, surest first.
    pub fn proposals(&self) -> Vec<Proposal> {
        let Some(values) = &self.values else { return Vec::new() };
        let name = |n: u32| values.names.get(n as usize).map_or("", String::as_str);
        let mut best: BTreeMap<(String, bool, String), Proposal> = BTreeMap::new();
        let mut add = |p: Proposal| {
            let key = (p.tool.clone(), p.produces, p.name.clone());
            let old = best.get(&key).map(|o| o.sure);
            if old.is_none_or(|o| o < p.sure) {
                best.insert(key, p);
            }
        };
        let mut pairs: Vec<(&Pair, &Seen)> = values.pairs.iter().collect();
        pairs.sort_by_key(|(p, _)| **p);
        for ((from, as_name, to, as_arg), seen) in pairs {
            let (from, to) = (self.tool_of(*from), self.tool_of(*to));
            let (made, given) = (name(*as_name), name(*as_arg));
            let same = plain(made) == plain(given);
            let looks = looks_like_handle(made) || looks_like_handle(given);
            let distinctive = seen.distinctive > 0;
            let sure = match (same || looks, distinctive, seen.values.len()) {
                (true, true, _) => Sure::High,
                (true, false, 2..) => Sure::Medium,
                (false, true, _) => Sure::Medium,
                _ => Sure::Low,
            };
            let how = match (same, distinctive) {
                (true, true) => "same name, same value",
                (true, false) => "same name, and small values that could be chance",
                (false, true) => "other name, same value",
                (false, false) => "other name, and small values that could be chance",
            };
            let n = seen.values.len();
            let plural = if n == 1 { "value" } else { "values" };
            let tail = if from.reads {
                " (it says that it only reads: it lists, somebody else makes)"
            } else {
                ""
            };
            add(Proposal {
                tool: from.name.clone(),
                produces: true,
                name: made.to_owned(),
                known_as: None,
                optional: false,
                sure,
                why: format!("{n} {plural} came back as {}.{given}: {how}{tail}", to.name),
            });
            let with = values.with.get(&pair_with(&values.pairs, *as_arg, to, self)).copied();
            add(Proposal {
                tool: to.name.clone(),
                produces: false,
                name: given.to_owned(),
                known_as: (!same).then(|| made.to_owned()),
                optional: with.is_some_and(|w| w < to.calls),
                sure,
                why: format!("{n} {plural} came from {}.{made}: {how}", from.name),
            });
        }
        // By name alone: made and never used here, or used and never made.
        for t in &self.tools {
            for (n, produces) in
                t.makes.keys().map(|n| (n, true)).chain(t.uses.keys().map(|n| (n, false)))
            {
                let own = self.name_of(*n);
                if !looks_like_handle(own) {
                    continue;
                }
                let why = if produces {
                    "its name is a handle's; nothing used the value later"
                } else {
                    "its name is a handle's; nothing in this trace made the value"
                };
                add(Proposal {
                    tool: t.name.clone(),
                    produces,
                    name: own.to_owned(),
                    known_as: None,
                    optional: false,
                    sure: Sure::Low,
                    why: why.into(),
                });
            }
        }
        best.into_values().collect()
    }
}

fn pair_with(
    pairs: &HashMap<Pair, Seen>,
    arg: u32,
    to: &super::fold::Tool,
    audit: &Audit,
) -> (u32, u32) {
    let tool = pairs.keys().find(|p| p.3 == arg && audit.tool_of(p.2).name == to.name).map(|p| p.2);
    (tool.unwrap_or(u32::MAX), arg)
}

/// Proposals as a file to edit. What is not sure stands there as a comment.
pub fn toml(proposals: &[Proposal], trace: &str) -> String {
    let mut out = String::new();
    let trace = one_line(trace);
    let _ = writeln!(
        out,
        "# Proposed by `redial audit --infer` from {trace}.\n# Edit it: a trace shows what happened, not what was agreed. What is only likely by chance is commented out."
    );
    let mut tools: BTreeMap<&str, Vec<&Proposal>> = BTreeMap::new();
    for p in proposals {
        tools.entry(&p.tool).or_default().push(p);
    }
    for (tool, list) in tools {
        let sure: Vec<&&Proposal> = list.iter().filter(|p| p.sure > Sure::Low).collect();
        let off = if sure.is_empty() { "# " } else { "" };
        let _ = writeln!(out, "\n{off}[tools.{}]", quoted(tool));
        for (key, produces) in [("produces", true), ("requires", false)] {
            let of: Vec<&&Proposal> = list.iter().filter(|p| p.produces == produces).collect();
            for p in &of {
                let _ = writeln!(
                    out,
                    "# {}, {}: {}",
                    one_line(&p.name),
                    p.sure.word(),
                    one_line(&p.why)
                );
            }
            let (good, low): (Vec<&Proposal>, Vec<&Proposal>) =
                of.into_iter().copied().partition(|p| p.sure > Sure::Low);
            for (list, off) in [(good, ""), (low, "# ")] {
                if !list.is_empty() {
                    let terms: Vec<String> = list.iter().map(|p| term(p)).collect();
                    let value = match terms.as_slice() {
                        [one] => one.clone(),
                        many => format!("[{}]", many.join(", ")),
                    };
                    let _ = writeln!(out, "{off}{key} = {value}");
                }
            }
        }
    }
    out
}

fn term(p: &Proposal) -> String {
    let name = string(&p.name);
    let known = p.known_as.as_deref().map(|k| format!(", as = {}", string(k)));
    if known.is_none() && !p.optional {
        return name;
    }
    let optional = if p.optional { ", optional = true" } else { "" };
    format!("{{ name = {name}{}{optional} }}", known.unwrap_or_default())
}

/// A key as TOML takes it.
fn quoted(key: &str) -> String {
    let bare = !key.is_empty()
        && key.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'-'));
    if bare { key.to_owned() } else { string(key) }
}

/// A TOML basic string: hidden characters as escapes, so that the file can be looked at.
fn string(text: &str) -> String {
    let mut out = String::from("\"");
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            c if c.is_control() || crate::text::is_hidden(c) => {
                let _ = write!(out, "\\U{:08X}", u32::from(c));
            }
            c => out.push(c),
        }
    }
    out.push('"');
    out
}

fn one_line(text: &str) -> String {
    crate::text::visible(text).into_owned()
}
