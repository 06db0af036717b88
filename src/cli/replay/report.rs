//! What a replay came to, step by step: `redial/replay@1`, and words for people.

use crate::cli::json::document;
use crate::cli::plain::{Plain, Role, print_raw};
use crate::error::Exit;
use crate::replay::diff::{Change, Compared};
use crate::replay::plan::{Act, Plan, Planned};
use serde::Serialize;
use std::collections::BTreeMap;

/// Differences shown to people, a step.
const SHOWN: usize = 20;

/// One step.
#[derive(Debug, Clone, Serialize)]
pub struct Step {
    seq: u64,
    method: Option<String>,
    tool: Option<String>,
    request_id: Option<String>,
    /// `send`, `skip`.
    plan: &'static str,
    /// `planned`, `skipped`, `sent`, `same`, `differs`, `now_an_error`, `now_a_result`, `no_answer`.
    result: &'static str,
    why: Option<String>,
    gate: Option<&'static str>,
    changes: Vec<Change>,
    /// It went out, or may have.
    #[serde(skip)]
    left: bool,
    /// Its request has more than one effect now.
    #[serde(skip)]
    twice: bool,
}

impl Step {
    /// Before anything is sent.
    pub fn planned(p: &Planned) -> Step {
        let (tool, request_id) = match &p.act {
            Act::Call { tool, request_id, .. } => (Some(tool.clone()), request_id.clone()),
            _ => (p.ask.tool(), p.ask.request_id()),
        };
        let (plan, result, why) = match &p.act {
            Act::Skip(why) => ("skip", "skipped", Some(why.to_string())),
            Act::Call { .. } => ("send", "planned", Some("the gate is asked first".into())),
            _ => ("send", "planned", None),
        };
        Step {
            seq: p.ask.seq,
            method: p.ask.method.clone(),
            tool,
            request_id,
            plan,
            result,
            why,
            gate: None,
            changes: Vec::new(),
            left: false,
            twice: false,
        }
    }

    /// In a few words. May hold foreign text.
    pub fn what(&self) -> String {
        let method = self.method.as_deref().unwrap_or("an answer of the client");
        let tool = self.tool.as_deref().map(|t| format!(" {t}")).unwrap_or_default();
        let id = self.request_id.as_deref().map(|i| format!(" {i}")).unwrap_or_default();
        format!("{method}{tool}{id}")
    }

    /// Not sent.
    pub fn skipped(self, why: String) -> Step {
        Step { result: "skipped", why: Some(why), ..self }
    }

    /// The gate stopped it.
    pub fn gated(self, ask: &'static str, why: String, refused: bool) -> Step {
        let gate = if refused { "refused" } else { ask };
        Step { result: "skipped", why: Some(why), gate: Some(gate), ..self }
    }

    /// The gate let it pass.
    pub fn passed(self, ask: &'static str) -> Step {
        Step { gate: Some(ask), ..self }
    }

    /// A notification left.
    pub fn sent(self) -> Step {
        Step { result: "sent", left: true, ..self }
    }

    /// Nothing came back.
    pub fn no_answer(self, why: String) -> Step {
        Step { result: "no_answer", why: Some(why), left: true, ..self }
    }

    /// An error came back that can't be compared.
    pub fn error(self, why: String) -> Step {
        Step { result: "now_an_error", why: Some(why), left: true, ..self }
    }

    /// Something came back.
    pub fn compared(self, c: &Compared) -> Step {
        let changes = match c {
            Compared::Differs(changes) => changes.clone(),
            _ => Vec::new(),
        };
        Step { result: c.word(), changes, left: true, ..self }
    }

    /// The work of its request ran more than once, whatever was answered; `words` say so.
    pub fn twice(mut self, words: Option<String>) -> Step {
        if let Some(words) = words {
            self.twice = true;
            self.why = Some(match self.why.take().filter(|w| !w.is_empty()) {
                Some(why) => format!("{words}; {why}"),
                None => words,
            });
        }
        self
    }

    fn differs(&self) -> bool {
        self.twice
            || matches!(self.result, "differs" | "now_an_error" | "now_a_result" | "no_answer")
    }
}

/// All steps.
#[derive(Debug, Serialize)]
pub struct Report {
    schema: &'static str,
    recording: String,
    dry_run: bool,
    /// Fresh request_ids by recorded ones.
    new_keys: BTreeMap<String, String>,
    counts: BTreeMap<&'static str, usize>,
    /// Why the rest was not sent, when the server went on the way.
    broke_off: Option<String>,
    steps: Vec<Step>,
}

impl Report {
    /// Of a plan.
    pub fn new(recording: String, plan: &Plan, dry_run: bool) -> Report {
        Report {
            schema: "redial/replay@1",
            recording,
            dry_run,
            new_keys: plan.keys.clone(),
            counts: BTreeMap::new(),
            broke_off: None,
            steps: Vec::new(),
        }
    }

    /// Adds a step.
    pub fn add(&mut self, step: Step) {
        *self.counts.entry(step.result).or_default() += 1;
        self.steps.push(step);
    }

    /// The server is gone: what is left is not sent. The first reason stays.
    pub fn break_off(&mut self, why: String) {
        self.broke_off.get_or_insert(why);
    }

    /// Why the rest is not sent.
    pub fn broke_off(&self) -> Option<&str> {
        self.broke_off.as_deref()
    }

    /// Calls that the gate stopped.
    fn gated(&self) -> usize {
        self.steps.iter().filter(|s| s.result == "skipped" && s.gate.is_some()).count()
    }

    /// Prints it, and says the exit status. `read_only`: what it stopped is no proof that nothing differs.
    pub fn finish(&self, json: bool, read_only: bool) -> Exit {
        self.print(json);
        let none_left = !self.steps.iter().any(|s| s.left);
        if self.steps.iter().any(|s| s.twice) {
            return Exit::Found;
        }
        match &self.broke_off {
            Some(_) if none_left => Exit::Endpoint,
            None if read_only && self.gated() > 0 => Exit::Gate,
            // Nothing that the recording did was done: that is no proof that nothing differs.
            None if self.gated() > 0 && !self.steps.iter().any(|s| s.left && s.tool.is_some()) => {
                match self.steps.iter().any(Step::differs) {
                    true => Exit::Found,
                    false => Exit::Gate,
                }
            }
            None if !self.steps.iter().any(Step::differs) => Exit::Good,
            _ => Exit::Found,
        }
    }

    /// Prints it.
    pub fn print(&self, json: bool) {
        if json {
            print_raw(&document(self));
            return;
        }
        let mut p = Plain::stdout();
        p.field("recording", Role::Strong, &self.recording);
        p.gap();
        for s in &self.steps {
            let role = match s.result {
                _ if s.twice => Role::Bad,
                "same" => Role::Good,
                "skipped" => Role::Dim,
                "planned" | "sent" => Role::Text,
                _ => Role::Bad,
            };
            let why = s.why.as_deref().map(|w| format!("  {w}")).unwrap_or_default();
            p.parts(&[
                (Role::Dim, &format!("{:>6}  ", s.seq)),
                (role, &format!("{:<13}", s.result.replace('_', " "))),
                (Role::Strong, &s.what()),
                (Role::Dim, &why),
            ]);
            for c in s.changes.iter().take(SHOWN) {
                let value = |v: &Option<String>| v.clone().unwrap_or_else(|| "(nothing)".into());
                p.parts(&[
                    (Role::Dim, "          "),
                    (Role::Warn, &c.path),
                    (Role::Text, &format!(": {} → {}", value(&c.recorded), value(&c.now))),
                ]);
            }
            if s.changes.len() > SHOWN {
                p.line(Role::Dim, &format!("          … {} more", s.changes.len() - SHOWN));
            }
        }
        p.gap();
        let counts: Vec<String> =
            self.counts.iter().map(|(k, n)| format!("{n} {}", k.replace('_', " "))).collect();
        p.line(Role::Strong, &counts.join(" · "));
        if self.gated() > 0 {
            let n = self.gated();
            let calls = if n == 1 { "call was" } else { "calls were" };
            p.line(
                Role::Warn,
                &format!(
                    "{n} {calls} stopped by the gate: --confirm REQUEST_ID or --confirm-tool NAME lets them pass"
                ),
            );
        }
        if let Some(why) = &self.broke_off {
            p.line(Role::Bad, &format!("broken off: {why}"));
        }
        if !self.new_keys.is_empty() {
            p.line(Role::Dim, "fresh request_ids (a rehearsal, not a repeat):");
            for (old, new) in &self.new_keys {
                p.parts(&[
                    (Role::Dim, "  "),
                    (Role::Text, old),
                    (Role::Dim, " → "),
                    (Role::Text, new),
                ]);
            }
        }
        p.print();
    }
}
