//! The command line (design: "Command line"): stable names, parsed by clap into what the commands take.
//! A flag or command is absent until it does something.

use super::recorded::{MockArgs, RecordArgs, ReplayArgs, ShowArgs};
use crate::client::Answerer;
use crate::endpoints::Named;
use clap::{Args, Parser, Subcommand, ValueEnum};
use std::path::PathBuf;

/// What happened to each request of an MCP server, and what is safe to do now.
///
/// redial joins three witnesses of an MCP (Model Context Protocol) session: the server's idempotency ledger in
/// SQLite, the wire, and the server's stderr and exit status. Without a command it opens a demo: a real
/// incident on the built-in server.
#[derive(Debug, Parser)]
#[command(name = "redial", version, max_term_width = 110)]
#[command(
    after_help = "Exit status: 0 good · 1 found something, or the call was answered with an error or refused · 2 usage · 3 stopped \
by the gate, nothing sent · 4 outcome unknown or in progress · 5 endpoint never ready, or not sent · 6 ledger unreadable"
)]
pub struct Cli {
    /// The command; none opens the demo.
    #[command(subcommand)]
    pub command: Option<Command>,
}

/// The commands.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Open the terminal UI on a ledger, an endpoint, or both
    Attach(AttachArgs),
    /// List request rows with their state and verdict
    Rows(RowsArgs),
    /// Look one request up: the ledger's row and the server's own word
    Find(FindArgs),
    /// Repeat a request with the same request_id, behind the gate
    Reissue(ReissueArgs),
    /// List the server's tools, their hints, and what the gate will ask
    Tools(ToolsArgs),
    /// Make one call and report its outcome
    Call(CallArgs),
    /// Make many calls over one connection, through every break
    Batch(BatchArgs),
    /// Count requests and effects: did each happen exactly once?
    Verify(VerifyArgs),
    /// Kill a server in the middle of its work, many times, and count effects
    Killtest(KilltestArgs),
    /// Run the articles' claims for real and count
    Lab(LabArgs),
    /// Lessons on a terminal: make it happen, say what you expect, count
    Teach(TeachArgs),
    /// Run a built-in server
    Serve(ServeArgs),
    /// Sit in front of a server and write everything down
    Record(RecordArgs),
    /// Show a recording: frames, calls with outcomes, stderr, exits
    Show(ShowArgs),
    /// Run a recorded session against a live server and see what differs
    Replay(ReplayArgs),
    /// Serve a recording, so that a client can be tested against it
    Mock(MockArgs),
    /// Check a trace's state handles: made, used, lost, rebound; what hides in the session
    Audit(super::audit::args::AuditArgs),
}

/// Where the server is.
#[derive(Debug, Clone, Args, Default)]
#[command(next_help_heading = "Endpoint")]
pub struct EndpointArgs {
    /// A Streamable HTTP URL, e.g. http://127.0.0.1:8000/mcp
    #[arg(long, value_name = "URL", conflicts_with_all = ["endpoint_command", "server"])]
    pub http: Option<String>,
    /// A header for every request, "Name: value" (repeatable)
    #[arg(long, value_name = "K:V", requires = "http")]
    pub header: Vec<String>,
    /// A server of the .mcp.json here or in a folder above, by its name
    #[arg(long, value_name = "NAME", conflicts_with = "endpoint_command")]
    pub server: Option<String>,
    /// Protocol era: ask the server, 2026-07-28 only, or initialize first [default: auto, or what .mcp.json says]
    #[arg(long, value_enum)]
    pub era: Option<EraArg>,
    /// How long the server may take to become ready, in seconds
    #[arg(long, value_name = "S", default_value_t = 60.0, value_parser = seconds)]
    pub start_timeout: f64,
    /// A server to start on stdio, after `--`
    #[arg(last = true, value_name = "COMMAND", id = "endpoint_command")]
    pub endpoint_command: Vec<String>,
    /// What --server found, once it was looked for.
    #[arg(skip)]
    pub(super) named: std::sync::OnceLock<Named>,
}

/// See [`crate::client::Era`].
#[derive(Debug, Clone, Copy, ValueEnum, Default)]
pub enum EraArg {
    /// Ask the server
    #[default]
    Auto,
    /// 2026-07-28 only
    Modern,
    /// initialize first
    Legacy,
}

fn seconds(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(s) if s.is_finite() && s >= 0.0 => Ok(s),
        _ => Err("a number of seconds, 0 or more".into()),
    }
}

/// Which ledger, and how to judge it.
#[derive(Debug, Clone, Args, Default)]
#[command(next_help_heading = "Ledger")]
pub struct LedgerArgs {
    /// The server's ledger, a SQLite file (only ever read)
    #[arg(long, value_name = "FILE")]
    pub ledger: Option<PathBuf>,
    /// After how many seconds a claim counts as stale; it should be the server's own limit
    #[arg(long, value_name = "N", default_value_t = 120.0, value_parser = seconds)]
    pub stale_seconds: f64,
    /// How many processes write the ledger; auto tells by interleaved owners
    #[arg(long, value_enum, default_value = "auto")]
    pub owners: OwnersArg,
}

/// How many processes own rows.
#[derive(Debug, Clone, Copy, ValueEnum, Default)]
pub enum OwnersArg {
    /// Interleaved owners mean several
    #[default]
    Auto,
    /// One process at a time: a newer owner means the older one is gone
    One,
    /// Several: a newer owner means nothing
    Many,
}

/// `--read-only`.
#[derive(Debug, Clone, Args, Default)]
pub struct ReadOnly {
    /// Stop every call but those of tools that say they change nothing
    #[arg(long, env = "REDIAL_READ_ONLY", hide_env_values = true, value_parser = clap::builder::FalseyValueParser::new())]
    pub read_only: bool,
}

/// `--elicit`.
#[derive(Debug, Clone, Args, Default)]
pub struct ElicitArg {
    /// When the server asks for input: accept its own defaults [default: it is not offered, so it can't ask]
    #[arg(long, value_enum, value_name = "HOW")]
    pub elicit: Option<Elicit>,
}

/// How questions of the server are answered where nobody can be asked.
#[derive(Debug, Clone, Copy, ValueEnum)]
pub enum Elicit {
    /// The defaults of the form; declined where a required value has none
    AcceptDefaults,
}

impl ElicitArg {
    /// Who answers.
    pub fn answerer(&self) -> Answerer {
        match self.elicit {
            Some(Elicit::AcceptDefaults) => Answerer::AcceptDefaults,
            None => Answerer::Decline,
        }
    }
}

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
    #[arg(long, value_name = "TOOL", default_value = "find_request")]
    pub lookup: String,
    /// Start a stdio server that ended again by itself (a new process is an act)
    #[arg(long)]
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
    after_help = "Example:\n  redial rows --ledger ledger.db --state abandoned --state running"
)]
pub struct RowsArgs {
    /// Only rows in this state, as shown: running, done, abandoned, … (repeatable)
    #[arg(long, value_name = "S")]
    pub state: Vec<String>,
    /// At most this many rows, newest first [default: 1000; with --json all]
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
  redial find night-007 --ledger ledger.db --http http://127.0.0.1:8000/mcp"
)]
pub struct FindArgs {
    /// The request_id
    pub request_id: String,
    /// The server's look-up tool
    #[arg(long, value_name = "TOOL", default_value = "find_request")]
    pub lookup: String,
    /// One JSON document
    #[arg(long)]
    pub json: bool,
    #[command(flatten)]
    pub ledger: LedgerArgs,
    #[command(flatten)]
    pub endpoint: EndpointArgs,
}

/// `redial reissue`.
#[derive(Debug, Args)]
#[command(
    after_help = "The server is asked about the request first. Then the gate: at a terminal a question, else --confirm; without it
nothing is sent and the exit status is 3. The arguments must be those of the first call: the ledger's hash tells.

Exit status: 0 done · 1 answered with an error, or refused · 3 the gate stopped it, nothing was sent · 4 outcome unknown
or in progress · 5 the endpoint never became ready, or not sent · 6 the ledger can't be read

Example:
  redial reissue night-007 --ledger ledger.db --args-from agent.log --http http://127.0.0.1:8000/mcp"
)]
pub struct ReissueArgs {
    /// The request_id; the repeat keeps it
    pub request_id: String,
    /// The tool [default: that of the call found, else the only one that takes a request_id and changes something]
    #[arg(long, value_name = "T")]
    pub tool: Option<String>,
    /// The arguments, a JSON object
    #[arg(long, value_name = "JSON", group = "arguments")]
    pub args: Option<String>,
    /// A file that holds the arguments
    #[arg(long, value_name = "F", group = "arguments")]
    pub args_file: Option<PathBuf>,
    /// A recording to find the call in: its arguments as they were, byte for byte (`latest` works)
    #[arg(long, value_name = "FILE", group = "arguments")]
    pub recording: Option<PathBuf>,
    /// Files to find the arguments in (any JSON, JSON Lines or transcript): objects with this request_id, at any depth
    #[arg(long, value_name = "F", num_args = 1.., group = "arguments")]
    pub args_from: Vec<PathBuf>,
    /// Send it: the request_id again, where nobody can be asked
    #[arg(long, value_name = "ID")]
    pub confirm: Option<String>,
    /// Seconds until the call counts as unknown [default: 60, or what .mcp.json says]
    #[arg(long, value_name = "S", value_parser = seconds)]
    pub timeout: Option<f64>,
    /// The server's look-up tool
    #[arg(long, value_name = "TOOL", default_value = "find_request")]
    pub lookup: String,
    /// One JSON document; never asks
    #[arg(long)]
    pub json: bool,
    #[command(flatten)]
    pub elicit: ElicitArg,
    #[command(flatten)]
    pub read_only: ReadOnly,
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
  redial tools --http http://127.0.0.1:8000/mcp"
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

/// `redial call`.
#[derive(Debug, Args)]
#[command(
    after_help = "What you type is sent, once. With --ledger, a request_id that the ledger already has makes it a repeat: then the gate
asks, or wants --confirm; without it nothing is sent and the exit status is 3.

Exit status: 0 answered, and finished where it says so · 1 answered with an error, or refused · 3 the gate stopped it,
nothing was sent · 4 outcome unknown or in progress · 5 the endpoint never became ready, or not sent · 6 the ledger
can't be read

Example:
  redial call create_ticket --args '{\"request_id\":\"r-1\",\"title\":\"…\",\"body\":\"…\"}' -- redial serve tickets"
)]
pub struct CallArgs {
    /// The tool
    pub tool: String,
    /// Its arguments, a JSON object
    #[arg(long, value_name = "JSON", default_value = "{}")]
    pub args: String,
    /// Seconds until the call counts as unknown [default: 60, or what .mcp.json says]
    #[arg(long, value_name = "S", value_parser = seconds)]
    pub timeout: Option<f64>,
    /// Send it although the ledger has this request_id: the request_id again
    #[arg(long, value_name = "ID")]
    pub confirm: Option<String>,
    /// The server's look-up tool
    #[arg(long, value_name = "TOOL", default_value = "find_request")]
    pub lookup: String,
    /// One JSON document; never asks
    #[arg(long)]
    pub json: bool,
    #[command(flatten)]
    pub elicit: ElicitArg,
    #[command(flatten)]
    pub read_only: ReadOnly,
    #[command(flatten)]
    pub ledger: LedgerArgs,
    #[command(flatten)]
    pub endpoint: EndpointArgs,
}

/// `redial batch`.
#[derive(Debug, Args)]
#[command(
    after_help = "The input is JSON Lines, one call each: {\"tool\":\"T\",\"args\":{…},\"timeout_s\":S}, or a pause: {\"wait_s\":S}. What stands
there is sent over one connection, each line once, whatever breaks: what was in flight is unknown, and nothing is sent
again. HTTP connects again, and the next line waits for it as long as --start-timeout; what comes after the end of a
server on stdio is not sent, unless --respawn. With --ledger, a request_id that the ledger already has makes a line a
repeat, which wants its --confirm. A bad line is told by its number, and the rest still runs.

Exit status, the worst of all lines in this order: 4 an outcome is unknown or in progress · 1 answered with an error,
or refused · 5 not sent, or the endpoint never became ready · 6 the ledger can't be read · 3 the gate stopped it ·
2 a bad line or an unknown tool · 0 all answered, and finished where they say so

Example:
  redial batch calls.jsonl --ledger ledger.db --respawn -- redial serve tickets"
)]
pub struct BatchArgs {
    /// The calls; - is stdin
    #[arg(value_name = "FILE", default_value = "-")]
    pub file: PathBuf,
    /// So many calls in flight at once; above 1 outcomes come as they end
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..=1000))]
    pub concurrency: u16,
    /// Seconds until a call counts as unknown, where its line doesn't say [default: 60, or what .mcp.json says]
    #[arg(long, value_name = "S", value_parser = seconds)]
    pub timeout: Option<f64>,
    /// Send it although the ledger has this request_id (repeatable)
    #[arg(long, value_name = "ID")]
    pub confirm: Vec<String>,
    /// Start a stdio server that ended again (a new process is an act)
    #[arg(long)]
    pub respawn: bool,
    /// JSON Lines: one document for each call
    #[arg(long)]
    pub json: bool,
    #[command(flatten)]
    pub elicit: ElicitArg,
    #[command(flatten)]
    pub read_only: ReadOnly,
    #[command(flatten)]
    pub ledger: LedgerArgs,
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

/// `redial killtest`.
#[derive(Debug, Args)]
pub struct KilltestArgs {
    /// How many times
    #[arg(long, value_name = "N", default_value_t = 40, value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    pub trials: u32,
    /// The same seed kills at the same moments
    #[arg(long, value_name = "S", default_value_t = 1)]
    pub seed: u64,
    /// Where: before-claim, during-work, before-commit, after-commit (the built-in server), or random
    #[arg(long, value_name = "POINT", default_value = "random", value_parser = ["before-claim", "during-work", "before-commit", "after-commit", "random"])]
    pub at: String,
    /// The tool: create_ticket has a request_id, charge has none and shows what that means
    #[arg(long, value_name = "T")]
    pub tool: Option<String>,
    /// Where recordings of trials that were not exactly once are kept
    #[arg(long, value_name = "DIR")]
    pub keep: Option<PathBuf>,
    /// The ledger that the server writes and effects are counted in; needed for any server but the built-in one
    #[arg(long, value_name = "FILE")]
    pub ledger: Option<PathBuf>,
    /// Where the server listens, if it speaks HTTP; it is started with --start
    #[arg(long, value_name = "URL", conflicts_with = "command")]
    pub http: Option<String>,
    /// How the server of --http is started, e.g. "python server.py" (no shell; NAME=VALUE first for the environment)
    #[arg(long, value_name = "COMMAND")]
    pub start: Option<String>,
    /// Protocol era: ask the server, 2026-07-28 only, or initialize first
    #[arg(long, value_enum, default_value = "auto")]
    pub era: EraArg,
    /// One JSON document
    #[arg(long)]
    pub json: bool,
    /// A server to start on stdio and kill, after `--`; none: the built-in one
    #[arg(last = true, value_name = "COMMAND")]
    pub command: Vec<String>,
}

/// `redial lab`.
#[derive(Debug, Args)]
pub struct LabArgs {
    /// What to do
    #[command(subcommand)]
    pub command: LabCommand,
}

impl LabArgs {
    /// Asked for JSON.
    pub fn json(&self) -> bool {
        match &self.command {
            LabCommand::List { json } | LabCommand::Run { json, .. } => *json,
        }
    }
}

/// `redial lab list|run`.
#[derive(Debug, Subcommand)]
pub enum LabCommand {
    /// The scenarios, and how the clients in them repeat
    List {
        /// One JSON document
        #[arg(long)]
        json: bool,
    },
    /// Play one scenario, or all
    Run {
        /// The scenario's name, or all
        name: String,
        /// One protocol era only; auto plays both where both make sense
        #[arg(long, value_enum, default_value = "auto")]
        era: EraArg,
        /// Keep a recording of each run here
        #[arg(long, value_name = "DIR")]
        keep: Option<PathBuf>,
        /// One JSON document
        #[arg(long)]
        json: bool,
    },
}

/// `redial teach`.
#[derive(Debug, Args)]
pub struct TeachArgs {
    /// The lesson to begin with; none opens the menu
    pub lesson: Option<String>,
}

/// `redial serve`.
#[derive(Debug, Args)]
pub struct ServeArgs {
    /// Which server
    #[command(subcommand)]
    pub server: ServerCommand,
    /// End when the process that started it ends (Linux)
    #[arg(long, hide = true)]
    pub die_with_parent: bool,
}

/// The built-in servers.
#[derive(Debug, Subcommand)]
pub enum ServerCommand {
    /// A ticket server with an idempotency ledger
    Tickets {
        /// Speak Streamable HTTP on this loopback address (path /mcp) instead of stdio
        #[arg(long, value_name = "ADDR")]
        http: Option<String>,
        /// Its ledger, made when it isn't there
        #[arg(long, value_name = "FILE", default_value = "ledger.db")]
        ledger: PathBuf,
        /// How long the work of a ticket takes, in seconds
        #[arg(long, value_name = "S", default_value_t = 0.0, value_parser = seconds)]
        work_seconds: f64,
        /// How long a repeat waits for the running one, in seconds
        #[arg(long, value_name = "S", default_value_t = 20.0, value_parser = seconds)]
        wait_seconds: f64,
        /// The work of a ticket with this title raises an error
        #[arg(long, value_name = "TITLE", hide = true)]
        fail_title: Option<String>,
        /// What is to go wrong: kill:POINT, once:FILE, exit:N, drop-answer, lose-session:STATUS, busy:STATUS*N, rpc-error
        #[arg(long, value_name = "FAULT", hide = true)]
        fault: Vec<String>,
    },
    /// A server whose tool can't be repeated safely
    Charge {
        /// Speak Streamable HTTP on this loopback address (path /mcp) instead of stdio
        #[arg(long, value_name = "ADDR")]
        http: Option<String>,
        /// The file its effects are appended to
        #[arg(long, value_name = "FILE", default_value = "charges.jsonl")]
        effects: PathBuf,
        /// How long a charge sleeps after its effect, in seconds
        #[arg(long, value_name = "S", default_value_t = 0.0, value_parser = seconds)]
        work_seconds: f64,
        /// What is to go wrong; see `tickets`
        #[arg(long, value_name = "FAULT", hide = true)]
        fault: Vec<String>,
    },
    /// Handles that live in the process, for the lab
    #[command(hide = true)]
    Baskets,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_parser_is_sound() {
        <Cli as clap::CommandFactory>::command().debug_assert();
    }
}
