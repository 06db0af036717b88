//! `redial tools`: what the server offers, sorted into the article's three classes, its hints as sent, and what the
//! gate will ask for each.

use super::args::ToolsArgs;
use super::connect::{open, settings};
use super::interrupt::{Interrupt, watched};
use super::json::{document, raw_value};
use super::plain::{Cell, Plain, Role, print_raw};
use super::report::Done;
use crate::error::Exit;
use crate::journal::{Hint, Session, Tool};
use crate::judge::class::{Class, oddities};
use crate::judge::gate::tool_gate;
use serde::Serialize;
use serde_json::value::RawValue;

#[derive(Serialize)]
struct Doc {
    schema: &'static str,
    protocol: Option<String>,
    server: Server,
    tools: Vec<ToolJson>,
    dropped: Vec<String>,
    complete: bool,
}

#[derive(Serialize, Default)]
struct Server {
    name: String,
    version: String,
}

#[derive(Serialize)]
struct ToolJson {
    name: String,
    hints: Option<Box<RawValue>>,
    gate: &'static str,
    why: String,
    takes_request_id: bool,
    class: &'static str,
    warnings: Vec<String>,
}

pub async fn run(a: ToolsArgs) -> Done {
    let endpoint = a.endpoint.required()?;
    let interrupt = Interrupt::listen();
    let client =
        open(endpoint, settings(&a.endpoint, a.endpoint.call_limit(None))?, &interrupt).await?;
    let work = async {
        client.tools().await?;
        if a.json {
            print_raw(&document(&client.journal().read(|s| report(s, &a.lookup))));
        } else {
            client.journal().read(|s| plain(s, &a.lookup)).print();
        }
        Ok(Exit::Good)
    };
    watched(&client, &interrupt, "", work).await
}

fn report(s: &Session, look_up: &str) -> Doc {
    let server = s.server.clone().unwrap_or_default();
    Doc {
        schema: "redial/tools@1",
        protocol: s.protocol.clone(),
        server: Server { name: server.name, version: server.version },
        tools: s
            .tools
            .tools
            .iter()
            .map(|t| {
                let gate = tool_gate(Some(t), s.tools.complete);
                ToolJson {
                    name: t.name.clone(),
                    hints: raw_value(t.annotations.as_deref().unwrap_or("{}")),
                    gate: gate.ask.word(),
                    why: gate.why,
                    takes_request_id: t.takes_request_id(),
                    class: Class::of(t, s.tools.complete).word(),
                    warnings: oddities(t, look_up),
                }
            })
            .collect(),
        dropped: s.tools.dropped.clone(),
        complete: s.tools.complete,
    }
}

fn plain(s: &Session, look_up: &str) -> Plain {
    let mut p = Plain::stdout();
    let server = s.server.clone().unwrap_or_default();
    let protocol = s.protocol.as_deref().unwrap_or("unknown");
    p.line(Role::Strong, &format!("{} {} · protocol {protocol}", server.name, server.version));
    if s.tools.tools.is_empty() {
        p.line(Role::Dim, "it lists no tools");
    }
    let mut sorted: Vec<(Class, &Tool)> =
        s.tools.tools.iter().map(|t| (Class::of(t, s.tools.complete), t)).collect();
    // Stable: within a class as the server lists them.
    sorted.sort_by_key(|(class, _)| *class);
    let mut rows: Vec<Vec<Cell>> = vec![
        ["tool", "class", "request_id", "gate", "why"].map(|h| (Role::Dim, h.to_owned())).to_vec(),
    ];
    for (class, t) in &sorted {
        let gate = tool_gate(Some(t), s.tools.complete);
        let (role, class) = match class {
            Class::ChangesNothing => (Role::Good, "changes nothing"),
            Class::Repeatable => (Role::Text, "repeatable"),
            Class::Unprotected => (Role::Warn, "unprotected"),
        };
        rows.push(vec![
            (Role::Strong, t.name.clone()),
            (role, class.into()),
            (Role::Text, if t.takes_request_id() { "takes it" } else { "–" }.into()),
            (role, gate.ask.word().into()),
            (Role::Dim, format!("{} ({})", gate.why, hints(t))),
        ]);
    }
    if !s.tools.tools.is_empty() {
        p.table(&rows, 0);
    }
    for (_, t) in &sorted {
        for odd in oddities(t, look_up) {
            p.line(Role::Warn, &format!("warning: {} {odd}", t.name));
        }
    }
    for d in &s.tools.dropped {
        p.line(Role::Warn, &format!("dropped: {d}"));
    }
    if !s.tools.complete {
        p.line(Role::Warn, "the list is not complete: the gate trusts none of its hints");
    }
    p.gap();
    p.line(Role::Dim, "class, by the server's hints: repeatable = the same arguments again have no further effect · unprotected = nothing is said to stop a second run");
    p.line(Role::Dim, "gate of a repeat: none = sent as it is · preview = the exact call, then Enter · type = the request_id must be typed; what the ledger shows can ask for more");
    p
}

/// The hints as sent, in a few words.
fn hints(t: &Tool) -> String {
    let word = |hint: Hint, yes: &str, no: &str| match hint {
        Hint::Absent => None,
        Hint::True => Some(yes.to_owned()),
        Hint::False => Some(no.to_owned()),
        Hint::WrongType => Some(format!("{yes}?!")),
    };
    let all = [
        word(t.read_only, "read-only", "not read-only"),
        word(t.idempotent, "idempotent", "not idempotent"),
        word(t.destructive, "destructive", "not destructive"),
        word(t.open_world, "open world", "closed world"),
    ];
    let said: Vec<String> = all.into_iter().flatten().collect();
    if said.is_empty() { "no hints".into() } else { format!("hints: {}", said.join(", ")) }
}
