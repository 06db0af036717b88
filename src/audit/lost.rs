//! Calls of which nobody knew what became, and what was learnt of them later.

use super::answers::{End, unfinished};
use super::bounds::Forgot;
use super::fact::At;
use super::finding::{Finding, Findings, Kind};
use super::fold::{Audit, Open};
use crate::journal::call::{answer_object, answer_text};
use crate::json::raw;
use std::collections::HashMap;

/// So many are remembered.
const KEPT: usize = 50_000;

/// One of them.
#[derive(Debug, Clone)]
struct Lost {
    call: u64,
    at: At,
    tool: u32,
    request: Option<Box<str>>,
    why: String,
    /// It still waits, though the client gave it up.
    open: bool,
    /// Looked up, or sent again: by which call, in words.
    resolved: Option<(u64, At, String)>,
    /// The same arguments under another request_id.
    twins: Vec<(u64, At, Box<str>)>,
    gone: bool,
}

/// All of them, by what later calls may share.
#[derive(Debug, Clone, Default)]
pub(super) struct Unknowns {
    all: Vec<Lost>,
    by_call: HashMap<u64, usize>,
    by_seq: HashMap<u64, usize>,
    by_request: HashMap<Box<str>, Vec<usize>>,
    by_arguments: HashMap<u64, Vec<usize>>,
    dropped: u64,
}

impl Unknowns {
    /// It was answered after all, or did nothing.
    pub fn answered(&mut self, call: u64) {
        if let Some(l) = self.by_call.get(&call).and_then(|i| self.all.get_mut(*i)) {
            l.gone = true;
        }
    }

    /// What this event sent provably never left.
    pub fn never_left(&mut self, seq: u64) {
        if let Some(l) = self.by_seq.get(&seq).and_then(|i| self.all.get_mut(*i)) {
            l.gone = true;
        }
    }
}

impl Audit {
    /// Nobody knows what became of it. `open`: its answer may still come.
    pub(super) fn unknown(&mut self, open: &Open, why: String, waits: bool) {
        if let Some(l) =
            self.unknowns.by_call.get(&open.call).and_then(|i| self.unknowns.all.get_mut(*i))
        {
            // It was given up, and now nothing can come any more.
            l.open &= waits;
            return;
        }
        if let Some(t) = self.tool_mut(open.tool) {
            t.unknown += 1;
        }
        if self.options.join {
            self.asked.unknown(open);
        }
        self.used_unanswered(open);
        let u = &mut self.unknowns;
        if u.all.len() >= KEPT {
            u.dropped += 1;
            self.forgot.insert(Forgot::Unknown);
            return;
        }
        let i = u.all.len();
        u.by_call.insert(open.call, i);
        u.by_seq.insert(open.at.seq, i);
        if let Some(r) = &open.request {
            u.by_request.entry(r.clone()).or_default().push(i);
        }
        u.by_arguments.entry(open.fingerprint).or_default().push(i);
        u.all.push(Lost {
            call: open.call,
            at: open.at,
            tool: open.tool,
            request: open.request.clone(),
            why,
            open: waits,
            resolved: None,
            twins: Vec::new(),
            gone: false,
        });
    }

    /// A new call with the arguments of one that is lost, under another request_id. Without any argument but that,
    /// nothing tells two calls apart or says that they mean the same.
    pub(super) fn same_arguments(&mut self, open: &Open) {
        let Some(request) =
            open.request.clone().filter(|_| !open.given.is_empty() && !self.looks(open.tool))
        else {
            return;
        };
        let Some(same) = self.unknowns.by_arguments.get(&open.fingerprint) else { return };
        let earlier = same.iter().rev().find_map(|i| {
            let l = self.unknowns.all.get(*i)?;
            let other = l.request.as_ref().is_some_and(|r| *r != request);
            (other && !l.gone && l.tool == open.tool).then_some(*i)
        });
        if let Some(l) = earlier.and_then(|i| self.unknowns.all.get_mut(i))
            && l.twins.len() < 100
        {
            l.twins.push((open.call, open.at, request));
        }
    }

    /// What an answer says of an earlier call of the same request.
    pub(super) fn looked_up(&mut self, open: &Open, end: &End<'_>) {
        let (Some(request), End::Ok(_, result)) = (&open.request, end) else { return };
        let Some(all) = self.unknowns.by_request.get(request).cloned() else { return };
        let looks = self.looks(open.tool);
        let tool = self.tool_of(open.tool).name.clone();
        let words = if looks {
            match said(result) {
                Some(word) => format!("{tool} said {word}"),
                None => return,
            }
        } else if unfinished(result, open.legacy) {
            return;
        } else {
            "sent again under the same request_id, and answered".to_owned()
        };
        for i in all {
            let Some(l) = self.unknowns.all.get_mut(i) else { continue };
            if l.gone || l.call == open.call || (!looks && l.tool != open.tool) {
                continue;
            }
            match &mut l.resolved {
                None => l.resolved = Some((open.call, open.at, words.clone())),
                Some((_, _, so_far)) if so_far.len() < 400 => {
                    so_far.push_str(", then ");
                    so_far.push_str(&words);
                }
                Some(_) => {}
            }
        }
    }

    /// Adds what is known of them now.
    pub(super) fn unknown_findings(&self, all: &mut Findings) {
        for l in &self.unknowns.all {
            if l.gone {
                continue;
            }
            let tool = self.tool_of(l.tool);
            let about = l.request.as_deref().map(|r| format!(" {r}")).unwrap_or_default();
            let make = |kind, call, at: At, message: String| {
                let mut f = Finding::new(kind, message);
                (f.call, f.line, f.seq, f.generation) =
                    (Some(call), at.line, at.seq, at.generation);
                f.tool = Some(tool.name.clone());
                f.value = l.request.as_deref().map(str::to_owned);
                f
            };
            let name = &tool.name;
            let message = format!(
                "{name}{about} was sent and never answered ({}): nobody knows from the wire whether it ran",
                l.why
            );
            all.add(make(Kind::OutcomeUnknown, l.call, l.at, message));
            if let Some((call, at, words)) = &l.resolved {
                let message = format!(
                    "what became of call {} ({name}{about}) was found out: {words}",
                    l.call
                );
                all.add(make(Kind::Resolved, *call, *at, message).with(l.call));
            } else if let Some(makes) = self.makes_words(l.tool)
                // A ledger that was joined says what it made.
                && !l.request.as_deref().is_some_and(|r| self.named.contains(r))
            {
                let message = format!(
                    "{name}{about} makes state ({makes}) and was never answered: what it made, if it ran, nobody can name"
                );
                let mut f = make(Kind::MaybeOrphanState, l.call, l.at, message);
                f.inferred = self.inferring();
                f.handle = Some(makes);
                all.add(f);
            }
            for (call, at, request) in &l.twins {
                let message = format!(
                    "{name} {request} has the arguments of {} (call {}), of which nobody knew what became, under a new request_id: the work may have run twice",
                    l.request.as_deref().unwrap_or_default(),
                    l.call
                );
                all.add(make(Kind::SuspectDuplicate, *call, *at, message).with(l.call));
            }
        }
    }

    /// The handles that a tool makes, in words; `None` when it makes none, as far as is known.
    pub(super) fn makes_words(&self, tool: u32) -> Option<String> {
        let t = self.tool_of(tool);
        if let Some(c) = &self.options.contracts {
            let names: Vec<&str> =
                c.of(&t.name)?.produces.iter().map(|p| p.name.as_str()).collect();
            return (!names.is_empty()).then(|| names.join(", "));
        }
        if t.reads || t.repeats || t.makes.is_empty() {
            return None;
        }
        let names: Vec<&str> = t.makes.keys().map(|n| self.name_of(*n)).collect();
        Some(names.join(", "))
    }
}

/// What a look-up says of a request; `None` when that is nothing: in work, or not known.
fn said(result: &str) -> Option<String> {
    let object = answer_object(result);
    let status = object.as_deref().and_then(|o| {
        let word = raw::get_str(o, "status").or_else(|| raw::get_str(o, "state"))?;
        Some(word)
    });
    match status {
        Some(word) => {
            let plain = word.trim().to_ascii_lowercase().replace(['-', ' '], "_");
            let open = matches!(
                plain.as_str(),
                "unknown"
                    | "not_found"
                    | "running"
                    | "in_progress"
                    | "pending"
                    | "working"
                    | "queued"
            );
            (!open).then_some(word)
        }
        None => {
            let text = answer_text(result);
            let line = text.lines().next().unwrap_or_default().trim();
            (!line.is_empty()).then(|| quoted(line))
        }
    }
}

fn quoted(line: &str) -> String {
    let short: String = line.chars().take(80).collect();
    format!("\u{201c}{short}\u{201d}")
}
