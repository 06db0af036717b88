//! `redial tools`: what the server offers, sorted into the article's three classes, its hints as sent, and what the
//! gate will ask for each.

use super::args::ToolsArgs;
use super::connect::{open, settings};
use super::interrupt::{Interrupt, watched};
use super::json::{document, raw_value};
use super::plain::{Cell, Plain, Role, print_raw};
use super::report::{Done, Witness};
use crate::config::Config;
use crate::error::Exit;
use crate::journal::{Hint, Session, Tool};
use crate::judge::class::{Class, oddities};
use crate::judge::gate::{IGNORED, ToolGate, tool_gate};
use serde::Serialize;
use serde_json::value::RawValue;

#[derive(Serialize)]
struct Doc {
    schema: &'static str,
    server: Server,
    tools: Vec<ToolJson>,
    dropped: Vec<String>,
    complete: bool,
    #[serde(flatten)]
    witness: Witness,
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
    overruled: Option<Overruled>,
    gate: &'static str,
    why: String,
    takes_request_id: bool,
    class: &'static str,
    warnings: Vec<String>,
    /// Bytes of a definition that was not kept; its hints are null then.
    #[serde(skip_serializing_if = "Option::is_none")]
    not_kept: Option<u64>,
}

/// What a configuration makes of a hint; absent where it leaves it as sent.
#[derive(Serialize, Default)]
struct Overruled {
    #[serde(skip_serializing_if = "Option::is_none")]
    read_only: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    idempotent: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    destructive: Option<bool>,
}

/// A tool with what the configuration says of it.
struct Listed<'a> {
    sent: &'a Tool,
    judged: Tool,
    gate: ToolGate,
    class: Class,
    warnings: Vec<String>,
}

impl<'a> Listed<'a> {
    fn all(s: &'a Session, look_up: &str, config: &Config) -> Vec<Listed<'a>> {
        let overrides = config.hint_overrides();
        let one = |sent: &'a Tool| {
            let own = overrides.get(&sent.name).copied().unwrap_or_default();
            let judged = own.apply(sent);
            let mut warnings = oddities(&judged, look_up);
            warnings.extend(own.project.ignored.then(|| IGNORED.to_owned()));
            Listed {
                gate: tool_gate(Some(&judged), s.tools.complete),
                class: Class::of(&judged, s.tools.complete),
                sent,
                judged,
                warnings,
            }
        };
        s.tools.tools.iter().map(|t| one(t)).collect()
    }

    /// Where the configuration says otherwise than the server.
    fn overruled(&self) -> Option<Overruled> {
        let (sent, own) = (self.sent, &self.judged);
        let pick = |a: Hint, b: Hint| (a != b).then_some(b == Hint::True);
        let o = Overruled {
            read_only: pick(sent.read_only, own.read_only),
            idempotent: pick(sent.idempotent, own.idempotent),
            destructive: pick(sent.destructive, own.destructive),
        };
        (o.read_only.is_some() || o.idempotent.is_some() || o.destructive.is_some()).then_some(o)
    }
}

pub async fn run(a: ToolsArgs, config: &Config) -> Done {
    told(a, config, false).await
}

/// The same with the state of the link before it, for who would have opened a screen.
pub async fn linked(a: ToolsArgs, config: &Config) -> Done {
    told(a, config, true).await
}

async fn told(a: ToolsArgs, config: &Config, link: bool) -> Done {
    let endpoint = a.endpoint.required()?;
    let interrupt = Interrupt::listen();
    a.endpoint.configure(config);
    let client =
        open(endpoint, settings(&a.endpoint, a.endpoint.call_limit(None))?, &interrupt).await?;
    let work = async {
        client.tools().await?;
        if a.json {
            let witness = Witness::after(&client, None).await;
            print_raw(&document(&client.journal().read(|s| report(s, &a.lookup, config, witness))));
        } else {
            if link {
                let mut p = Plain::stdout();
                p.field("link", Role::Good, &format!("ready: {}", client.name()));
                p.print();
            }
            let mut p = client.journal().read(|s| plain(s, &a.lookup, config));
            // What stands between messages is the server's mistake, and often the reason for others.
            Witness::of(&client, None).noise_tail(&mut p, "");
            p.print();
        }
        Ok(Exit::Good)
    };
    watched(&client, &interrupt, "", work).await
}

fn report(s: &Session, look_up: &str, config: &Config, witness: Witness) -> Doc {
    let server = s.server.clone().unwrap_or_default();
    Doc {
        schema: "redial/tools@1",
        server: Server { name: server.name, version: server.version },
        tools: Listed::all(s, look_up, config)
            .into_iter()
            .map(|t| ToolJson {
                name: t.sent.name.clone(),
                hints: match t.sent.not_kept {
                    Some(_) => None,
                    None => raw_value(t.sent.annotations.as_deref().unwrap_or("{}")),
                },
                not_kept: t.sent.not_kept,
                overruled: t.overruled(),
                gate: t.gate.ask.word(),
                why: t.gate.why,
                takes_request_id: t.sent.takes_request_id,
                class: t.class.word(),
                warnings: t.warnings,
            })
            .collect(),
        dropped: s.tools.dropped.clone(),
        complete: s.tools.complete,
        witness,
    }
}

fn plain(s: &Session, look_up: &str, config: &Config) -> Plain {
    let mut p = Plain::stdout();
    let server = s.server.clone().unwrap_or_default();
    let protocol = s.protocol.as_deref().unwrap_or("unknown");
    p.line(Role::Strong, &format!("{} {} · protocol {protocol}", server.name, server.version));
    if s.tools.tools.is_empty() {
        p.line(Role::Dim, "it lists no tools");
    }
    let mut sorted = Listed::all(s, look_up, config);
    // Stable: within a class as the server lists them.
    sorted.sort_by_key(|t| t.class);
    let mut rows: Vec<Vec<Cell>> = vec![
        ["tool", "class", "request_id", "gate", "why"].map(|h| (Role::Dim, h.to_owned())).to_vec(),
    ];
    for t in &sorted {
        let (role, class) = match t.class {
            Class::ChangesNothing => (Role::Good, "changes nothing"),
            Class::Repeatable => (Role::Text, "repeatable"),
            Class::Unprotected => (Role::Warn, "unprotected"),
        };
        rows.push(vec![
            (Role::Strong, t.sent.name.clone()),
            (role, class.into()),
            (Role::Text, if t.sent.takes_request_id { "takes it" } else { "–" }.into()),
            (role, t.gate.ask.word().into()),
            (Role::Dim, why(t)),
        ]);
    }
    if !s.tools.tools.is_empty() {
        p.table(&rows, 0);
    }
    for t in &sorted {
        for odd in &t.warnings {
            p.line(Role::Warn, &format!("warning: {} {odd}", t.sent.name));
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

/// What the gate goes by: the hints as sent, and where a configuration says otherwise.
fn why(t: &Listed<'_>) -> String {
    let sent = hints(t.sent);
    match t.overruled() {
        _ if t.sent.not_kept.is_some() => t.gate.why.clone(),
        None => format!("{} ({sent})", t.gate.why),
        Some(_) => format!("by the configuration: {} (as sent: {sent})", hints(&t.judged)),
    }
}

/// The hints in a few words.
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
