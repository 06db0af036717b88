//! What the commands take that look: at a ledger, a server, or both. They make no call but a read-only look-up.

use super::common::{EndpointArgs, LedgerArgs, ReadOnly, column_value};
use super::id::IdArgs;
use clap::Args;
use std::path::PathBuf;

/// `redial attach`.
#[derive(Debug, Args)]
pub struct AttachArgs {
    /// A recording of the agent's own session, followed as it grows (`latest`: the one begun last)
    #[arg(long, value_name = "FILE")]
    pub recording: Option<PathBuf>,
    #[command(flatten)]
    pub ledger: LedgerArgs,
    #[command(flatten)]
    pub endpoint: EndpointArgs,
    #[command(flatten)]
    pub read_only: ReadOnly,
    /// The server's look-up tool
    #[arg(long, value_name = "TOOL", default_value = "find_request", requires = "where")]
    pub lookup: String,
    /// Start a stdio server that ended again by itself (a new process is an act)
    #[arg(long, requires = "where", conflicts_with = "http")]
    pub respawn: bool,
    /// The server's stderr, where it goes into a file: followed, rotation included
    #[arg(long, value_name = "FILE")]
    pub stderr_file: Option<PathBuf>,
    /// The theme: dark, light, high-contrast, mono, gruvbox, catppuccin, or one of your own (NO_COLOR: mono)
    #[arg(long, value_name = "NAME")]
    pub theme: Option<String>,
}

/// `redial rows`.
#[derive(Debug, Args)]
#[command(
    after_help = "Example:\n  redial rows --ledger ledger.db --state abandoned --state running\n  redial rows --ledger ledger.db 'state:abandoned age:>5m'"
)]
pub struct RowsArgs {
    /// Only what matches, in the language of `redial show`: state: verdict: req: tool: text: 'age:>5m', words
    #[arg(value_name = "FILTER")]
    pub filter: Vec<String>,
    /// Only rows in this state, as shown: running, done, abandoned, … (repeatable)
    #[arg(long, value_name = "S")]
    pub state: Vec<String>,
    /// At most this many rows, from the end of the table [default: 1000; with --json all]
    #[arg(long, value_name = "N")]
    pub limit: Option<usize>,
    /// One JSON document
    #[arg(long)]
    pub json: bool,
    #[command(flatten)]
    pub ledger: LedgerArgs,
}

/// `redial find`.
#[derive(Debug, Args)]
#[command(
    after_help = "A ledger, an endpoint, or both. The server is asked only if its look-up tool says that it is read-only. The state is
the ledger's (no row: unknown); without a ledger it is the server's own word.

Exit status: 0 known · 1 server and ledger contradict each other, or nobody knows it · 4 the look-up got no answer ·
5 the endpoint never became ready · 6 the ledger can't be read

Example:
  redial find r-1 --ledger ledger.db -- redial serve tickets"
)]
pub struct FindArgs {
    #[command(flatten)]
    pub id: IdArgs,
    /// Which row is meant, where several have the request_id (another tenant); repeatable, and all must be so
    #[arg(long, value_name = "COLUMN=VALUE", requires = "ledger", value_parser = column_value)]
    pub row: Vec<String>,
    /// The id that `id` means, once it was read.
    #[arg(skip)]
    pub request_id: String,
    /// The server's look-up tool
    #[arg(long, value_name = "TOOL", default_value = "find_request", requires = "where")]
    pub lookup: String,
    /// One JSON document
    #[arg(long)]
    pub json: bool,
    #[command(flatten)]
    pub ledger: LedgerArgs,
    #[command(flatten)]
    pub endpoint: EndpointArgs,
}

/// `redial tools`.
#[derive(Debug, Args)]
#[command(
    after_help = "Classes, by the server's own hints: changes nothing (read-only) · repeatable (idempotent) · unprotected (nothing is said to
stop a second run). A hint is the server's word and no proof.

Example:
  redial tools -- redial serve tickets"
)]
pub struct ToolsArgs {
    /// The server's look-up tool
    #[arg(long, value_name = "TOOL", default_value = "find_request")]
    pub lookup: String,
    /// One JSON document
    #[arg(long)]
    pub json: bool,
    #[command(flatten)]
    pub endpoint: EndpointArgs,
}

/// `redial verify`.
#[derive(Debug, Args)]
pub struct VerifyArgs {
    #[command(flatten)]
    pub ledger: LedgerArgs,
    /// So many effects must have this label, e.g. 'Disk almost full=1' (repeatable; the last = splits)
    #[arg(long, value_name = "LABEL=N")]
    pub expect: Vec<String>,
    /// So many effects there must be in all
    #[arg(long, value_name = "N")]
    pub expect_total: Option<u64>,
    /// Warnings are errors too: unfinished, suspect duplicates, swept rows
    #[arg(long)]
    pub strict: bool,
    /// One JSON document
    #[arg(long)]
    pub json: bool,
}
