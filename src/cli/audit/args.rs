//! What `redial audit` takes.

use crate::cli::args::{EndpointArgs, LedgerArgs, ReadOnly, seconds};
use clap::Args;
use std::path::PathBuf;

/// `redial audit`.
#[derive(Debug, Args)]
#[command(after_help = "Contracts are TOML; a name, a JSON Pointer, or a list of them:
  [tools.create_basket]
  produces = \"basket_id\"
  pattern = 'basket (\\S+)'          # in plain text; optional = true: it may be missing
  [tools.add_item]
  requires = \"basket_id\"
Without --contracts the contracts.toml beside the nearest .mcp.json is taken; without one handles are inferred.

Exit status: 0 nothing found · 1 findings · 2 usage, or a contracts file with mistakes · 3 the gate stopped all of
--fresh-sessions · 5 its endpoint never became ready · 6 the trace or the ledger can't be read

Example:
  redial audit night.jsonl --junit > audit.xml")]
pub struct AuditArgs {
    /// The trace: a recording (`latest` works), a list [{tool, arguments, result}], lines {t, dir, msg}
    #[arg(value_name = "TRACE")]
    pub trace: PathBuf,
    /// Which tools return handles and which need them, a TOML file
    #[arg(long, value_name = "FILE")]
    pub contracts: Option<PathBuf>,
    /// Propose contracts from the trace, and write them as a file to edit
    #[arg(long, conflicts_with_all = ["report", "fresh_sessions", "junit", "ledger", "contracts"])]
    pub infer: bool,
    /// Where --infer writes; a file that is there is never overwritten [default: contracts.toml, or the next free name]
    #[arg(long, value_name = "FILE", requires = "infer")]
    pub out: Option<PathBuf>,
    /// One page in Markdown: who makes state, who uses it, what became of it, where authorization must be checked
    #[arg(long, conflicts_with_all = ["json", "junit", "fresh_sessions"])]
    pub report: bool,
    /// Call each recorded call again on a session of its own, with fresh request_ids, and name the tools that need another
    #[arg(long, conflicts_with = "contracts")]
    pub fresh_sessions: bool,
    /// With --fresh-sessions: let the gate pass calls of this tool (repeatable)
    #[arg(long, value_name = "NAME", requires = "fresh_sessions")]
    pub confirm_tool: Vec<String>,
    /// With --fresh-sessions: seconds until a call counts as unanswered
    #[arg(long, value_name = "S", default_value_t = 60.0, value_parser = seconds, requires = "fresh_sessions")]
    pub timeout: f64,
    /// The server's look-up tool
    #[arg(long, value_name = "TOOL", default_value = "find_request")]
    pub lookup: String,
    /// JUnit XML: a test case a tool
    #[arg(long, conflicts_with = "json")]
    pub junit: bool,
    /// One JSON document
    #[arg(long)]
    pub json: bool,
    #[command(flatten)]
    pub ledger: LedgerArgs,
    #[command(flatten)]
    pub endpoint: EndpointArgs,
    #[command(flatten)]
    pub read_only: ReadOnly,
}
