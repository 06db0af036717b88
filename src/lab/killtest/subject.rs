//! Whom the kill test calls: the tool, the arguments its schema asks for, and how long its work takes when
//! nobody disturbs it. Kills nothing.

use super::{Run, Target};
use crate::client::{Client, Endpoint};
use crate::error::{Error, Exit, Result};
use crate::inspect::tool::known_tool;
use crate::journal::{Call, Hint, Outcome, Tool, ToolList};
use crate::json::key::{self, REQUEST_ID, Spelling};
use crate::json::raw;
use crate::judge::gate::not_kept;
use crate::model::hash::Shape;
use std::time::Instant;

impl Run {
    /// The id of one trial, as the tool takes it.
    pub(super) fn request_id(&self, tool: &Tool, n: u32) -> String {
        match Shape::of(tool).spelling() {
            Some(Spelling::Number) => {
                let tag = u64::from_str_radix(&self.tag, 16).unwrap_or_default();
                (tag * 100_000 + u64::from(n)).to_string()
            }
            _ => format!("kt-{}-{n}", self.tag),
        }
    }

    /// Finds the tool and, for a server without kill points, how long its work takes: one call that is left alone.
    pub(super) async fn measure(&mut self) -> Result<Tool> {
        let wanted = self.plan.tool.clone();
        let (client, server) = match &self.plan.target {
            Target::BuiltIn => {
                let name = wanted.unwrap_or_else(|| "create_ticket".into());
                let known = if self.is_charge { "charge" } else { "create_ticket" };
                if name != known {
                    return Err(Error::usage(format!(
                        "the built-in servers have no tool {name} to kill in"
                    ))
                    .hint("create_ticket (with a request_id) or charge (without)"));
                }
                let text = match self.is_charge {
                    true => {
                        r#"{"name":"charge","inputSchema":{"properties":{"amount":{"type":"number"}},"required":["amount"]}}"#
                    }
                    false => {
                        r#"{"name":"create_ticket","inputSchema":{"properties":{"request_id":{"type":"string"},"title":{"type":"string"},"body":{"type":"string"}},"required":["request_id","title","body"]}}"#
                    }
                };
                return Tool::parse(text).ok_or_else(|| Error::usage("no such tool"));
            }
            Target::Command(command) => {
                let command = command.clone();
                let endpoint = Endpoint::Stdio { command, env: Vec::new(), cwd: None };
                (Client::start(endpoint, self.settings()), None)
            }
            Target::Http { url, start } => {
                let (server, client) = self.over_http(url, start).await?;
                (client, Some(server))
            }
        };
        client.ready().await?;
        let list = client.tools().await?;
        let tool = choose(&list, wanted.as_deref())?;
        let id = self.request_id(&tool, 0);
        self.undisturbed = Some(id.clone());
        let begin = Instant::now();
        let call = client.call(&tool.name, &arguments(&tool, &id, 0, &self.tag), None).await?;
        let settled = client.settled(call).await;
        self.work = begin.elapsed();
        let outcome = settled.as_ref().and_then(Call::outcome);
        client.close().await;
        if let Some(server) = server {
            server.end().await;
        }
        match outcome {
            Some(Outcome::Ok) => self.counts(&id).await.map(|()| tool),
            _ => Err(Error::endpoint(format!(
                "a call that nobody disturbed was not answered well: {}",
                settled.and_then(|c| c.settled).map(|s| s.why).unwrap_or_default()
            ))),
        }
    }

    /// A call that nobody disturbed must have left exactly one effect under its name: else what is counted is not this
    /// server's ledger, or effects don't say which request made them, and every number that follows would be made up.
    async fn counts(&self, id: &str) -> Result<()> {
        // A queue's worker may be a moment behind its front.
        let until = Instant::now() + self.plan.settle;
        let n = loop {
            match self.effects(0).of(id).await? {
                1 => return Ok(()),
                0 if Instant::now() < until => {
                    tokio::time::sleep(std::time::Duration::from_millis(50)).await;
                }
                n => break n,
            }
        };
        let ledger = self.plan.ledger.clone().unwrap_or_default();
        let ledger = ledger.display();
        if n > 1 {
            // One call, nothing killed: that is the finding, and kills could only hide it.
            let what = format!(
                "NOT exactly once: the call {id}, which nobody disturbed, left {n} effects under its name in {ledger}; nothing was killed"
            );
            return Err(Error::new(Exit::Found, what).hint(
                "where one call makes several rows of one effect, --effects names the table that has one for each call",
            ));
        }
        let settle = self.plan.settle.as_secs_f64();
        Err(Error::usage(format!(
            "the call {id} was answered well and left 0 effects under its name in {ledger} within {settle} s: nothing can be counted there"
        ))
        .hint("--ledger must be the file that this server writes, and --tool one whose effects carry its request_id; an effect that comes later wants a longer --settle"))
    }
}

fn choose(list: &ToolList, wanted: Option<&str>) -> Result<Tool> {
    let tool = match wanted {
        Some(name) => match known_tool(list, name)? {
            Some(tool) => tool,
            None => {
                let why =
                    format!("the tool list of this server is not complete, and has no {name}");
                return Err(Error::usage(why));
            }
        },
        None => {
            let all = || list.tools.iter().map(|t| t.name.as_str());
            let fits = |t: &&Tool| t.takes_request_id && t.read_only != Hint::True;
            let fitting: Vec<&Tool> = list.tools.iter().map(|t| &**t).filter(fits).collect();
            match fitting.as_slice() {
                [one] => *one,
                [] => {
                    let why = match list.complete {
                        true => "no tool of this server takes a request_id and changes something",
                        false => {
                            "the tool list of this server is not complete; no tool on it takes a request_id and changes something"
                        }
                    };
                    return Err(Error::usage(why).hint(name_one(all())));
                }
                several => {
                    return Err(Error::usage("several tools of this server take a request_id")
                        .hint(name_one(several.iter().map(|t| t.name.as_str()))));
                }
            }
        }
    };
    match tool.not_kept {
        None => Ok(tool.clone()),
        Some(bytes) => Err(Error::usage(format!(
            "{}: {}, so nobody knows which arguments to call it with",
            tool.name,
            not_kept(bytes)
        ))),
    }
}

/// Some names are enough for a sentence.
fn name_one<'a>(names: impl Iterator<Item = &'a str>) -> String {
    let mut names: Vec<&str> = names.take(LISTED + 1).collect();
    let more = if names.len() > LISTED { ", …" } else { "" };
    names.truncate(LISTED);
    format!("name one with --tool: {}{more}", names.join(", "))
}

/// How many tools are named.
const LISTED: usize = 20;

/// Arguments that the tool's schema asks for, different in each trial, so that no two requests look alike.
pub(super) fn arguments(tool: &Tool, request_id: &str, n: u32, tag: &str) -> String {
    let schema = tool.input_schema.as_deref().unwrap_or("{}");
    let required = raw::get(schema, "required").and_then(raw::items).unwrap_or_default();
    let id = key::spelled(request_id, Shape::of(tool).spelling().unwrap_or_default());
    let mut out = Vec::new();
    for name in required.iter().filter_map(|r| raw::as_str(r)) {
        let kind = raw::get_path(schema, &["properties", &name, "type"]).and_then(raw::as_str);
        let value = match (name.as_str(), kind.as_deref()) {
            (REQUEST_ID, _) => id.clone(),
            (_, Some("number" | "integer")) => n.max(1).to_string(),
            (_, Some("boolean")) => "false".into(),
            (_, Some("array")) => "[]".into(),
            (_, Some("object")) => "{}".into(),
            (name, _) => raw::quote(&format!("kill test {tag}, trial {n}: {name}")),
        };
        out.push(format!("{}:{value}", raw::quote(&name)));
    }
    if tool.takes_request_id
        && !required.iter().any(|r| raw::as_str(r).as_deref() == Some(REQUEST_ID))
    {
        out.push(format!("\"{REQUEST_ID}\":{id}"));
    }
    format!("{{{}}}", out.join(","))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_follow_the_schema_and_always_carry_the_key() {
        let tool = Tool::parse(
            r#"{"name":"t","inputSchema":{"properties":{"request_id":{"type":"string"},"n":{"type":"integer"},"title":{"type":"string"},"x":{"type":"array"}},"required":["n","title","x"]}}"#,
        )
        .unwrap();
        let args = arguments(&tool, "kt-1-7", 7, "1");
        assert_eq!(raw::get_str(&args, "request_id").as_deref(), Some("kt-1-7"));
        assert_eq!((raw::get(&args, "n"), raw::get(&args, "x")), (Some("7"), Some("[]")));
        assert!(raw::get_str(&args, "title").unwrap().contains("trial 7"));
    }
}
