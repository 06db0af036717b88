//! The repeat: one call again with the same request_id, a new JSON-RPC id and arguments equal by hash,
//! behind the gate; and the effects before and after it.
//!
//! `prepare` looks and decides; `release` (its own file) sends, once, and only what was agreed to. Nothing here
//! confirms for a person.

use super::Inspector;
use super::look::Looked;
use super::pick::pick_arguments;
use super::release::Again;
use super::request::Request;
use super::tool::{known_tool, named_once};
use crate::error::{Error, Exit, Result};
use crate::journal::{Tool, ToolList};
use crate::judge::agreement::Terms;
use crate::judge::gate::{Ask, Decision, Earlier, GateFacts, Refusal, gate, tool_gate};
use crate::model::arguments::{Candidate, Source};
use crate::model::hash::Shape;
use crate::shell;
use crate::time::Time;
use std::collections::BTreeSet;

/// What a person asks for.
#[derive(Debug, Clone, Default)]
pub struct Wish {
    /// The request; `None` for a call of a tool that has none.
    pub request_id: Option<String>,
    /// The tool, when named.
    pub tool: Option<String>,
    /// Arguments given or found elsewhere (files, a paste), to be tried before what redial has seen itself.
    pub candidates: Vec<Candidate>,
    /// `redial call`: what was typed is sent as a first delivery, unless the ledger has the request.
    pub first_delivery: bool,
    /// Seconds until the call counts as unknown; `None`: the endpoint's default.
    pub limit_s: Option<f64>,
}

/// A call that is ready to be sent, with what stands before it.
#[derive(Debug, Clone)]
pub struct Prepared {
    /// What was asked for: the gate is asked again by it.
    pub wish: Wish,
    /// The tool.
    pub tool: String,
    /// The exact arguments.
    pub args: String,
    /// Where they come from.
    pub source: Source,
    /// Everything known of the request before.
    pub before: Request,
    /// What the server's own look-up said, when it was asked.
    pub looked: Option<Looked>,
    /// The gate's decision.
    pub decision: Decision,
    /// Its answer speaks only of others: the tool says that it reads.
    pub reads_only: bool,
    /// The limit is shorter than what the server may take by design.
    pub warning: Option<String>,
    /// All of this, as an answer is held to it.
    pub terms: Terms,
    /// When the row was seen to become what it is.
    pub since: Time,
}

impl Inspector {
    /// Looks the request up, picks tool and arguments, and asks the gate. Sends nothing but the look-up.
    ///
    /// # Errors
    /// Exit 2 when tool or arguments can't be told; exit 5 when the endpoint is not ready.
    pub async fn prepare(&self, wish: &Wish) -> Result<Prepared> {
        self.again(Again::Aged).await?;
        let client = self.client()?;
        let tools = client.tools().await?;
        let id = wish.request_id.as_deref().unwrap_or("");
        let first_look = self.request(id, None).await;
        if let Some(why) = unclear(&first_look) {
            return Err(why);
        }
        let (tool, candidate) = self.pick(wish, &tools, &first_look)?;
        named_once(&candidate.args, &candidate.source.words())?;
        // A look-up before a repeat: it proves that this server writes this ledger, or that it doesn't.
        let looked = match &wish.request_id {
            Some(id) if !wish.first_delivery || first_look.facts.row.is_some() => {
                Some(self.look_up(id).await?)
            }
            _ => None,
        };
        self.prepared(wish, &tool, candidate.args, candidate.source, looked).await
    }

    /// Reads everything but the server's own look-up, and asks the gate.
    pub(super) async fn prepared(
        &self,
        wish: &Wish,
        tool: &str,
        args: String,
        source: Source,
        looked: Option<Looked>,
    ) -> Result<Prepared> {
        let id = wish.request_id.as_deref().unwrap_or("");
        let before = self.request(id, Some(&args)).await;
        let decision = self.decide(wish, tool, &before);
        let reads_only = self.reads_only(tool);
        let warning = wish.limit_s.filter(|_| !id.is_empty() && !reads_only).and_then(short_limit);
        let (terms, since) = self.terms(tool, &args, &before, &decision);
        let (wish, tool) = (wish.clone(), tool.to_owned());
        Ok(Prepared {
            wish,
            tool,
            args,
            source,
            before,
            looked,
            decision,
            reads_only,
            warning,
            terms,
            since,
        })
    }

    /// The tools of this connection, and whether that is all it has to say of them.
    pub(super) fn listed(&self) -> (ToolList, bool) {
        let list = self.client.as_ref().map(|c| {
            c.journal().read(|s| {
                let current = s.generation().map_or(0, |g| g.n) == s.tools_generation;
                (s.tools.clone(), current && s.tools.complete && !s.tools_stale)
            })
        });
        list.unwrap_or_default()
    }

    /// The tool needs no gate: by its hints it only reads.
    pub fn reads_only(&self, tool: &str) -> bool {
        let (tools, complete) = self.listed();
        let tool = tools.find(tool).map(|t| self.hint_override(tool).apply(t));
        tool_gate(tool.as_ref(), complete).ask == Ask::None
    }

    /// The gate's decision on exactly this call, as things stand now.
    pub fn decide(&self, wish: &Wish, tool: &str, before: &Request) -> Decision {
        let list = self.listed();
        gate(&GateFacts {
            name: tool,
            tool: list.0.find(tool),
            list_complete: list.1,
            hints: self.hint_override(tool),
            request_id: wish.request_id.as_deref(),
            facts: &before.facts,
            finding: &before.line.finding,
            earlier: match wish.candidates.first().map(|c| &c.source) {
                // Found in somebody's transcript: it was sent once, nobody knows when.
                Some(Source::Transcript(_) | Source::Recording(_)) => Earlier::Sometime,
                _ => Earlier::None,
            },
            first_delivery: wish.first_delivery,
            read_only_mode: self.read_only,
            now: Time::now(),
        })
    }

    /// Arguments first: they say which tool they were sent to.
    fn pick(&self, wish: &Wish, tools: &ToolList, seen: &Request) -> Result<(String, Candidate)> {
        let named: BTreeSet<&str> = match &wish.tool {
            Some(name) => [name.as_str()].into(),
            None => {
                let all = wish.candidates.iter().chain(&seen.candidates);
                all.filter_map(|c| c.tool.as_deref()).collect()
            }
        };
        let one = named.first().copied().filter(|_| named.len() == 1);
        let sole = named.is_empty().then(|| self.only_taker(tools).ok()).flatten();
        let shape = |of: Option<&str>| {
            let name = wish.tool.as_deref().or(of).or(one).or(sole.as_deref());
            name.and_then(|n| tools.find(n)).map(Shape::of).unwrap_or_default()
        };
        let candidate = pick_arguments(wish, seen, shape)?;
        let name = match wish.tool.as_ref().or(candidate.tool.as_ref()) {
            Some(name) => name.clone(),
            None if named.len() > 1 => {
                let names: Vec<&str> = named.into_iter().collect();
                return Err(several(&names));
            }
            None => match one {
                Some(name) => name.to_owned(),
                None => self.only_taker(tools)?,
            },
        };
        known_tool(tools, &name)?;
        Ok((name, candidate))
    }

    /// The endpoint's only tool that takes a request_id and changes something.
    fn only_taker(&self, tools: &ToolList) -> Result<String> {
        let takers: Vec<&Tool> = tools
            .tools
            .iter()
            .map(|t| &**t)
            .filter(|t| t.takes_request_id && !self.reads_only(&t.name))
            .collect();
        match takers.as_slice() {
            // What is not on an incomplete list may be there all the same.
            [] | [_] if !tools.complete => {
                Err(Error::usage("the tool list of this server is not complete; nothing was sent")
                    .hint("name the tool with --tool"))
            }
            [one] => Ok(one.name.clone()),
            [] => Err(Error::usage(
                "no tool of this server takes a request_id and changes something; nothing was sent",
            )
            .hint("name the tool with --tool")),
            many => {
                let names: Vec<&str> = many.iter().map(|t| t.name.as_str()).collect();
                Err(several(&names))
            }
        }
    }
}

/// Several rows have the id, and nobody has said which one is meant.
fn unclear(seen: &Request) -> Option<Error> {
    if let Some(why) = &seen.row_unmatched {
        return Some(Error::usage(format!("{why}; nothing was sent")));
    }
    let same = seen.facts.row.as_ref()?.same.as_ref().filter(|s| !s.chosen)?;
    let ways: Vec<String> = same
        .all
        .iter()
        .map(|tells| {
            let said =
                |(c, v): &(String, String)| format!("--row {}", shell::word(&format!("{c}={v}")));
            tells.iter().map(said).collect::<Vec<_>>().join(" ")
        })
        .collect();
    let what = format!("{}: {}; nothing was sent", seen.facts.request_id, same.words());
    Some(Error::usage(what).hint(format!("say which one is meant: {}", ways.join(" or "))))
}

/// How long the reference waits for work that another call does, in seconds. What any other server does is not known.
const SERVER_WAITS_S: f64 = 20.0;

/// The limit is shorter than what a server may take by design; in words.
pub fn short_limit(limit_s: f64) -> Option<String> {
    (limit_s <= SERVER_WAITS_S).then(|| {
        format!(
            "the limit ({limit_s} s) is short: a server may wait itself for work that still runs ({SERVER_WAITS_S} s in the reference), and a repeat may be given up before it can say so"
        )
    })
}

fn several(names: &[&str]) -> Error {
    Error::usage(format!("several tools take a request_id: {}; nothing was sent", names.join(", ")))
        .hint("name the one that this request was made with: --tool NAME")
}

/// Why the gate stopped a call.
pub fn stopped(d: &Decision) -> Error {
    match &d.refused {
        Some(r) => {
            let error = Error::new(exit_of(r), format!("{}; nothing was sent", r.why()));
            match what_then(r) {
                Some(hint) => error.hint(hint),
                None => error,
            }
        }
        None => Error::new(
            Exit::Gate,
            format!(
                "the gate wants a confirmation ({}): {}; nothing was sent",
                d.ask.word(),
                d.reasons.join("; ")
            ),
        )
        .hint(format!(
            "if that is what you want, repeat the command with --confirm {}",
            shell::confirm(&d.confirm)
        )),
    }
}

/// What can be done about a refusal.
fn exit_of(r: &Refusal) -> Exit {
    match r {
        Refusal::NoSuchTool(_) => Exit::Usage,
        Refusal::ReadOnly(_) | Refusal::Conflict(_) | Refusal::Mismatch(_) => Exit::Gate,
    }
}

fn what_then(r: &Refusal) -> Option<&'static str> {
    match r {
        Refusal::Conflict(_) => Some(
            "if it is the same work, give the arguments of its first call (--args-from finds them in the agent's log); other work wants a request_id of its own",
        ),
        Refusal::Mismatch(_) => Some(
            "attach the server that writes this ledger, or the ledger that this server writes; `redial find` with both shows what each says",
        ),
        Refusal::ReadOnly(_) => Some(
            "without --read-only (REDIAL_READ_ONLY, read_only in the configuration) the gate asks instead",
        ),
        Refusal::NoSuchTool(_) => None,
    }
}
