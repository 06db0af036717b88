//! What must be asked before a `tools/call` is repeated (design: "The gate"). Pure: facts in, decision out.
//!
//! The stricter of tool and row decides. A hint is the server's word and nothing more; what is missing,
//! ill typed or contradictory asks for the most.

use super::facts::{Facts, HashCheck, LedgerView, Pairing};
use super::gate_row;
use super::words::Finding;
use crate::journal::tools::DEFINITIONS;
use crate::journal::{Hint, Tool};
use crate::shell;
use crate::size::size;
use crate::time::Time;

/// What is asked, mildest first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Ask {
    /// Nothing.
    None,
    /// The exact call is shown; Enter sends it.
    Preview,
    /// The exact call, why it isn't certain, `y`.
    Ask,
    /// The request_id (the tool's name where there is none) must be typed; default No.
    Type,
}

impl Ask {
    /// The stable word (JSON `gate`).
    pub fn word(self) -> &'static str {
        match self {
            Ask::None => "none",
            Ask::Preview => "preview",
            Ask::Ask => "ask",
            Ask::Type => "type",
        }
    }
}

/// The tool's part alone, as `tools` reports it: never [`Ask::Ask`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ToolGate {
    /// `none`, `preview` or `type`.
    pub ask: Ask,
    /// Why, in words.
    pub why: String,
}

/// Hints as a person overrules them in the configuration, for one tool.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct HintOverride {
    /// In place of `readOnlyHint`.
    pub read_only: Option<bool>,
    /// In place of `idempotentHint`.
    pub idempotent: Option<bool>,
    /// In place of `destructiveHint`.
    pub destructive: Option<bool>,
    /// What the project's own file says of the tool. It comes with the project, like the server: it counts where it
    /// makes the gate stricter, and nowhere else.
    pub project: ProjectHints,
}

/// See [`HintOverride::project`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ProjectHints {
    /// Not read-only, whatever it says.
    pub not_read_only: bool,
    /// Not idempotent, whatever it says.
    pub not_idempotent: bool,
    /// Destructive, whatever it says.
    pub destructive: bool,
    /// It says something that would make the gate milder, and is not heard.
    pub ignored: bool,
}

/// What is said where a project's word is not heard.
pub const IGNORED: &str = "the project's redial.toml says otherwise of this tool, which is not heard: a project's file can only make \
the gate stricter; your own config.toml can say it";

impl HintOverride {
    /// The tool with these hints in place of the sent ones. Once a person has said what the tool is, the
    /// server's contradictions about it no longer count; hints nobody overruled stay as they were sent.
    pub fn apply(self, tool: &Tool) -> Tool {
        let own = self.apply_own(tool);
        let mut strict = own.clone();
        for (says, hint, word) in [
            (self.project.not_read_only, &mut strict.read_only, Hint::False),
            (self.project.not_idempotent, &mut strict.idempotent, Hint::False),
            (self.project.destructive, &mut strict.destructive, Hint::True),
        ] {
            if says {
                *hint = word;
            }
        }
        // Even a stricter hint can lift a contradiction, and with it the question.
        if tool_gate(Some(&strict), true).ask >= tool_gate(Some(&own), true).ask {
            strict
        } else {
            own
        }
    }

    fn apply_own(self, tool: &Tool) -> Tool {
        let pick = |sent: Hint, own: Option<bool>| match own {
            Some(true) => Hint::True,
            Some(false) => Hint::False,
            None => sent,
        };
        let mut out = tool.clone();
        out.read_only = pick(tool.read_only, self.read_only);
        out.idempotent = pick(tool.idempotent, self.idempotent);
        out.destructive = pick(tool.destructive, self.destructive);
        if self.read_only == Some(true) && self.destructive.is_none() {
            out.destructive = Hint::Absent;
        }
        if self.read_only.is_some() || self.idempotent.is_some() {
            out.listed_twice = false;
        }
        out
    }
}

/// What the server says of a tool, as listed on this connection. `list_complete`: all pages came, on this
/// connection, and the list has not been called changed since.
pub fn tool_gate(tool: Option<&Tool>, list_complete: bool) -> ToolGate {
    let gate = |ask, why: &str| ToolGate { ask, why: why.to_owned() };
    let Some(t) = tool else { return gate(Ask::Type, "the server does not list this tool") };
    if !list_complete {
        return gate(Ask::Type, "the tool list of this connection is not complete");
    }
    if let Some(bytes) = t.not_kept {
        return gate(Ask::Type, &not_kept(bytes));
    }
    if t.listed_twice {
        return gate(Ask::Type, "the server lists this tool twice, differently");
    }
    if t.read_only == Hint::WrongType {
        return gate(Ask::Type, "its readOnlyHint is not a boolean");
    }
    if t.destructive == Hint::WrongType {
        return gate(Ask::Type, "its destructiveHint is not a boolean");
    }
    if t.read_only == Hint::True {
        // Beside a read-only hint the idempotent one means nothing (schema.ts, ToolAnnotations).
        return if t.destructive == Hint::True {
            gate(Ask::Type, "it contradicts itself: read-only and destructive")
        } else {
            gate(Ask::None, "the server says that it is read-only")
        };
    }
    match t.idempotent {
        Hint::True => gate(Ask::Preview, "the server says that it is idempotent"),
        Hint::False => gate(Ask::Type, "the server says that it is not idempotent"),
        Hint::WrongType => gate(Ask::Type, "its idempotentHint is not a boolean"),
        Hint::Absent => gate(Ask::Type, "the server gives no hint that it may be repeated"),
    }
}

/// Why a tool is none of which anything is known but the name; `bytes` are those of its definition.
pub fn not_kept(bytes: u64) -> String {
    format!(
        "redial did not keep its definition ({}): those of this server's tools come to more than {}",
        size(bytes),
        size(DEFINITIONS as u64)
    )
}

/// What is known of calls with this request_id before the one to be sent, beyond those in the facts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Earlier {
    /// Nothing.
    #[default]
    None,
    /// One was sent then.
    At(Time),
    /// One was sent, nobody knows when (a transcript, a paste).
    Sometime,
}

/// All that the gate looks at.
#[derive(Debug, Clone)]
pub struct GateFacts<'a> {
    /// The tool's name.
    pub name: &'a str,
    /// The tool as this connection lists it.
    pub tool: Option<&'a Tool>,
    /// See [`tool_gate`].
    pub list_complete: bool,
    /// The configuration's word on its hints.
    pub hints: HintOverride,
    /// The idempotency key of the call, where it has one.
    pub request_id: Option<&'a str>,
    /// Every witness's word on that request; the hash check is of the very arguments to be sent.
    pub facts: &'a Facts,
    /// What was concluded from them.
    pub finding: &'a Finding,
    /// Calls known from elsewhere: a recording, a transcript.
    pub earlier: Earlier,
    /// `redial call` and `batch`: what a person typed is sent, unless the ledger already has the request.
    pub first_delivery: bool,
    /// `--read-only`: only calls that the server calls read-only leave.
    pub read_only_mode: bool,
    /// The time of the decision.
    pub now: Time,
}

/// Why nothing will be sent, whatever a person confirms.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Refusal {
    /// `--read-only`, and the tool isn't read-only by the server's word.
    ReadOnly(String),
    /// A complete list doesn't have the tool.
    NoSuchTool(String),
    /// Other arguments than the request's, by a proven recipe.
    Conflict(String),
    /// This server doesn't write this ledger.
    Mismatch(String),
}

impl Refusal {
    /// The reason, as a sentence. May hold foreign text.
    pub fn why(&self) -> &str {
        match self {
            Refusal::ReadOnly(w)
            | Refusal::NoSuchTool(w)
            | Refusal::Conflict(w)
            | Refusal::Mismatch(w) => w,
        }
    }
}

/// What stands between the person and the call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Decision {
    /// What is asked, unless it is refused.
    pub ask: Ask,
    /// Nothing is sent, whatever is confirmed.
    pub refused: Option<Refusal>,
    /// What `--confirm` (or the typed word) must equal: the request_id, or the tool's name.
    pub confirm: String,
    /// Why it asks what it asks, strictest first.
    pub reasons: Vec<String>,
    /// What the dialog tells: ledger, last look-up, effects, and that the work may run twice.
    pub tells: Vec<String>,
}

impl Decision {
    /// Whether `confirmed` lets the call pass. With [`Ask::None`] nothing need be said.
    pub fn passes(&self, confirmed: Option<&str>) -> bool {
        self.refused.is_none()
            && (self.ask == Ask::None || confirmed.is_some_and(|c| shell::names(c, &self.confirm)))
    }
}

/// Decides. See the module's head.
pub fn gate(g: &GateFacts<'_>) -> Decision {
    let tool = g.tool.map(|t| g.hints.apply(t));
    let by_tool = tool_gate(tool.as_ref(), g.list_complete);
    let confirm = g.request_id.unwrap_or(g.name).to_owned();
    let pass = |why: &str| Decision {
        ask: Ask::None,
        refused: None,
        confirm: confirm.clone(),
        reasons: vec![why.to_owned()],
        tells: Vec::new(),
    };
    if let Some(refused) = refuse_tool(g, &by_tool) {
        return Decision { refused: Some(refused), ..pass("refused") };
    }
    if by_tool.ask == Ask::None {
        return pass(&by_tool.why);
    }
    // A ledger that can't be read now may have the request: it is no first delivery as far as anybody knows.
    let maybe_known = g.request_id.is_some() && matches!(g.facts.ledger, LedgerView::Unreadable(_));
    let repeat = !g.first_delivery || g.facts.row.is_some() || maybe_known || gate_row::was_sent(g);
    if !repeat {
        return pass("a first delivery");
    }
    let mut all = vec![(by_tool.ask, by_tool.why)];
    if g.hints.project.ignored {
        all.push((by_tool.ask, IGNORED.to_owned()));
    }
    all.extend(gate_row::reasons(g, tool.as_ref()));
    // Stable: of equally strict reasons the tool's own comes first.
    all.sort_by_key(|(ask, _)| std::cmp::Reverse(*ask));
    let ask = all.first().map_or(Ask::Type, |(ask, _)| *ask);
    Decision {
        ask,
        refused: refuse_row(g),
        confirm,
        reasons: all.into_iter().map(|(_, why)| why).collect(),
        tells: gate_row::tells(g, ask),
    }
}

fn refuse_tool(g: &GateFacts<'_>, by_tool: &ToolGate) -> Option<Refusal> {
    if g.tool.is_none() && g.list_complete {
        return Some(Refusal::NoSuchTool(format!("the server has no tool named {}", g.name)));
    }
    (g.read_only_mode && by_tool.ask != Ask::None).then(|| {
        Refusal::ReadOnly(format!("--read-only lets only read-only tools run: {}", by_tool.why))
    })
}

fn refuse_row(g: &GateFacts<'_>) -> Option<Refusal> {
    if g.facts.hash == HashCheck::DiffersProven {
        return Some(Refusal::Conflict(
            "this request_id was used with other arguments: their hash differs from the row's"
                .into(),
        ));
    }
    (g.facts.pairing == Pairing::Contradicted && g.facts.ledger != LedgerView::None).then(|| {
        Refusal::Mismatch("this server denies a row of this ledger: it writes another one".into())
    })
}

#[cfg(test)]
#[path = "gate_tests.rs"]
mod tests;
