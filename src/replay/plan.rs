//! What a replay sends of a recording and what it leaves out, each with its reason.

use super::script::Ask;
use crate::json::key::{self, REQUEST_ID, Spelling};
use crate::json::python::python_dumps_where;
use crate::json::raw::{self, quote};
use crate::record::redact::{MASK, masked};
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hash, Hasher};

/// What happens to one message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Act {
    /// A tool is called, behind the gate.
    Call { tool: String, args: String, request_id: Option<String> },
    /// A request that only asks.
    Request { method: String, params: String },
    /// A notification.
    Notify { method: String, params: String },
    /// It is not sent; why.
    Skip(Cow<'static, str>),
}

impl Act {
    /// It asks or tells, and by the protocol changes nothing at the server. A method that the protocol does not know
    /// may do anything.
    pub fn only_reads(&self) -> bool {
        match self {
            Act::Skip(_) => true,
            Act::Call { .. } => false,
            Act::Request { method, .. } => matches!(
                method.as_str(),
                "tools/list"
                    | "resources/list"
                    | "resources/read"
                    | "resources/templates/list"
                    | "prompts/list"
                    | "prompts/get"
                    | "completion/complete"
            ),
            Act::Notify { method, .. } => matches!(
                method.as_str(),
                "notifications/roots/list_changed"
                    | "notifications/message"
                    | "notifications/elicitation/complete"
            ),
        }
    }
}

/// One step of a plan.
#[derive(Debug, Clone, PartialEq)]
pub struct Planned {
    /// What the client said then.
    pub ask: Ask,
    /// What is done with it.
    pub act: Act,
}

/// A plan.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Plan {
    /// In the recorded order.
    pub steps: Vec<Planned>,
    /// Fresh request_ids by recorded ones, when new ones were asked for.
    pub keys: BTreeMap<String, String>,
}

impl Plan {
    /// From a script. `fresh` makes a new request_id for each recorded one, or keeps them.
    pub fn new(script: Vec<Ask>, fresh: Option<&mut dyn FnMut(&str) -> String>) -> Plan {
        let mut plan = Plan::default();
        if let Some(fresh) = fresh {
            for id in script.iter().filter_map(Ask::request_id) {
                plan.keys.entry(id).or_insert_with_key(|id| new_key(id, fresh(id)));
            }
        }
        plan.steps = script
            .into_iter()
            .map(|ask| {
                let act = whole(act(&ask, &plan.keys), &ask);
                Planned { ask, act }
            })
            .collect();
        plan
    }
}

/// A message of which values were replaced by the mask is another one: it is not sent.
fn whole(act: Act, ask: &Ask) -> Act {
    let text = match &act {
        Act::Call { args, .. } => args,
        Act::Request { params, .. } | Act::Notify { params, .. } => params,
        Act::Skip(_) => return act,
    };
    let missing = if ask.redacted { masked(text) } else { Vec::new() };
    if missing.is_empty() {
        return act;
    }
    let (values, was) = if missing.len() == 1 { ("a value", "was") } else { ("values", "were") };
    Act::Skip(
        format!(
            "{values} of it {was} replaced by {MASK} when it was recorded: {}",
            missing.join(", ")
        )
        .into(),
    )
}

fn skip(why: &'static str) -> Act {
    Act::Skip(Cow::Borrowed(why))
}

fn act(ask: &Ask, keys: &BTreeMap<String, String>) -> Act {
    let Some(method) = ask.method.as_deref() else {
        return skip(
            "an answer to the server's own question: only the question can bring it up again",
        );
    };
    let params = ask.params.as_deref().unwrap_or("{}");
    match method {
        "initialize" | "notifications/initialized" | "server/discover" => {
            return skip("the handshake is made anew");
        }
        "ping" => return skip("a sign of life, of then"),
        "notifications/cancelled" => {
            return skip("it names a request id of then");
        }
        "notifications/progress" => return skip("it names a progress token of then"),
        m if m.starts_with("notifications/") => {
            return Act::Notify { method: m.to_owned(), params: without_meta(params) };
        }
        "subscriptions/listen" | "resources/subscribe" | "resources/unsubscribe" => {
            return skip("a subscription of then");
        }
        m if m.starts_with("tasks/") => return skip("it names a task of then"),
        _ => {}
    }
    if raw::get(params, "inputResponses").is_some() || raw::get(params, "requestState").is_some() {
        return skip(
            "a continuation of an input-required round is never sent alone: its first leg is",
        );
    }
    if method != "tools/call" {
        return Act::Request { method: method.to_owned(), params: without_meta(params) };
    }
    let Some(tool) = ask.tool() else { return skip("a call that names no tool") };
    let args = ask.arguments().unwrap_or("{}");
    let request_id = ask.request_id();
    let new = request_id.as_ref().and_then(|id| keys.get(id));
    let (args, request_id) = match new {
        Some(new) => (with_key(args, new), Some(new.clone())),
        None => (args.to_owned(), request_id),
    };
    Act::Call { tool, args, request_id }
}

/// Tokens, trace ids and versions are of then.
fn without_meta(params: &str) -> String {
    if raw::get(params, "_meta").is_none() {
        return params.to_owned();
    }
    python_dumps_where(params, false, |key| key != b"_meta").unwrap_or_else(|_| params.to_owned())
}

/// A new id in place of `old`: a number where that is one, since its server may take nothing else.
fn new_key(old: &str, new: String) -> String {
    if key::spelled(old, Spelling::Number) != old {
        return new;
    }
    let mut hasher = DefaultHasher::new();
    new.hash(&mut hasher);
    // Whole in every language: under 2^53.
    (hasher.finish() >> 12).to_string()
}

/// The arguments with another request_id, every other byte as it was.
fn with_key(args: &str, new: &str) -> String {
    let Some(members) = raw::members(args) else { return args.to_owned() };
    let parts = members.iter().map(|(k, v)| {
        let own = key::spelling(v).filter(|_| k == REQUEST_ID);
        format!("{}:{}", quote(k), own.map_or_else(|| (*v).to_owned(), |s| key::spelled(new, s)))
    });
    format!("{{{}}}", parts.collect::<Vec<_>>().join(","))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::id::Id;

    fn ask(method: Option<&str>, params: &str) -> Ask {
        Ask {
            seq: 1,
            generation: 1,
            mono_us: 0,
            id: Some(Id::from(1)),
            method: method.map(str::to_owned),
            params: Some(params.into()),
            ..Ask::default()
        }
    }

    #[test]
    fn what_is_sent_and_what_is_not() {
        let call =
            r#"{"name":"t","arguments":{"request_id":"r-1","n":1.0},"_meta":{"progressToken":1}}"#;
        let leg = r#"{"name":"t","arguments":{},"inputResponses":{},"requestState":"s"}"#;
        let script = vec![
            ask(Some("initialize"), "{}"),
            ask(Some("tools/call"), call),
            ask(Some("tools/call"), leg),
            ask(Some("resources/read"), r#"{"uri":"u","_meta":{}}"#),
            ask(None, "{}"),
            ask(Some("tools/call"), call),
        ];
        let mut n = 0;
        let mut fresh = |_: &str| {
            n += 1;
            format!("new-{n}")
        };
        let plan = Plan::new(script.clone(), Some(&mut fresh));
        let acts: Vec<_> = plan.steps.iter().map(|s| s.act.clone()).collect();
        let again = Act::Call {
            tool: "t".into(),
            args: r#"{"request_id":"new-1","n":1.0}"#.into(),
            request_id: Some("new-1".into()),
        };
        assert!(
            matches!(acts[0], Act::Skip(_))
                && matches!(&acts[2], Act::Skip(w) if w.contains("first leg"))
        );
        assert_eq!(acts[1], again);
        assert_eq!(
            acts[3],
            Act::Request { method: "resources/read".into(), params: r#"{"uri": "u"}"#.into() }
        );
        assert!(matches!(acts[4], Act::Skip(_)));
        // The same request keeps the same fresh key.
        assert_eq!(acts[5], again);
        assert_eq!(plan.keys.len(), 1);
        let same = Plan::new(script, None);
        assert!(
            matches!(&same.steps[1].act, Act::Call { args, .. } if args == r#"{"request_id":"r-1","n":1.0}"#)
        );
    }

    #[test]
    fn a_message_with_replaced_values_is_not_sent() {
        let call =
            r#"{"name":"t","arguments":{"request_id":"r-1","title":"rotate Bearer [redacted]"}}"#;
        let of = |redacted, method: &str, params: &str| {
            let plan = Plan::new(vec![Ask { redacted, ..ask(Some(method), params) }], None);
            match &plan.steps[0].act {
                Act::Skip(why) => why.to_string(),
                _ => "sent".into(),
            }
        };
        assert_eq!(
            of(true, "tools/call", call),
            "a value of it was replaced by [redacted] when it was recorded: title"
        );
        assert!(of(true, "resources/read", r#"{"uri":"x://[redacted]@h"}"#).ends_with(": uri"));
        assert_ne!(of(true, "notifications/x", r#"{"a":"[redacted]","b":"[redacted]"}"#), "sent");
        // Somebody said so; and what was replaced is not sent again anyway.
        assert_eq!(of(false, "tools/call", call), "sent");
        let meta = r#"{"name":"t","arguments":{},"_meta":{"token":"[redacted]"}}"#;
        assert_eq!(of(true, "tools/call", meta), "sent");
    }
}
