//! The command line (design: "Command line"): stable names, parsed by clap into what the commands take.
//! A flag or command is absent until it does something.

use crate::client::{Endpoint, Era};
use crate::error::{Error, Result};
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
    /// Run a built-in server
    Serve(ServeArgs),
    /// Sit in front of a server and write everything down
    Record(RecordArgs),
}

/// Where the server is.
#[derive(Debug, Clone, Args, Default)]
#[command(next_help_heading = "Endpoint")]
pub struct EndpointArgs {
    /// A Streamable HTTP URL, e.g. http://127.0.0.1:8000/mcp
    #[arg(long, value_name = "URL", conflicts_with = "endpoint_command")]
    pub http: Option<String>,
    /// A header for every request, "Name: value" (repeatable)
    #[arg(long, value_name = "K:V", requires = "http")]
    pub header: Vec<String>,
    /// Protocol era: ask the server, 2026-07-28 only, or initialize first
    #[arg(long, value_enum, default_value = "auto")]
    pub era: EraArg,
    /// How long the server may take to become ready, in seconds
    #[arg(long, value_name = "S", default_value_t = 60.0, value_parser = seconds)]
    pub start_timeout: f64,
    /// A server to start on stdio, after `--`
    #[arg(last = true, value_name = "COMMAND", id = "endpoint_command")]
    pub endpoint_command: Vec<String>,
}

/// See [`Era`].
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

impl EndpointArgs {
    /// The endpoint, if one was named.
    ///
    /// # Errors
    /// Exit 2 when a header isn't `Name: value`.
    pub fn endpoint(&self) -> Result<Option<Endpoint>> {
        if let Some(url) = &self.http {
            let headers = self.header.iter().map(|h| header(h)).collect::<Result<_>>()?;
            return Ok(Some(Endpoint::Http { url: url.clone(), headers }));
        }
        if self.endpoint_command.is_empty() {
            return Ok(None);
        }
        Ok(Some(Endpoint::Stdio {
            command: self.endpoint_command.clone(),
            env: Vec::new(),
            cwd: None,
        }))
    }

    /// The endpoint, which must be there.
    ///
    /// # Errors
    /// Exit 2 when none was named.
    pub fn required(&self) -> Result<Endpoint> {
        self.endpoint()?.ok_or_else(|| {
            Error::usage("no endpoint was named")
                .hint("give --http URL, or a server to start: -- COMMAND ARGS…")
        })
    }

    /// The era asked for.
    pub fn era(&self) -> Era {
        match self.era {
            EraArg::Auto => Era::Auto,
            EraArg::Modern => Era::Modern,
            EraArg::Legacy => Era::Legacy,
        }
    }
}

fn header(text: &str) -> Result<(String, String)> {
    match text.split_once(':') {
        Some((k, v)) if !k.trim().is_empty() => Ok((k.trim().to_owned(), v.trim().to_owned())),
        // The value may be a secret: it is not repeated.
        _ => Err(Error::usage("a --header must be \"Name: value\"")),
    }
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
    #[arg(long, env = "REDIAL_READ_ONLY", value_parser = clap::builder::FalseyValueParser::new())]
    pub read_only: bool,
}

/// `redial attach`.
#[derive(Debug, Args)]
pub struct AttachArgs {
    #[command(flatten)]
    pub ledger: LedgerArgs,
    #[command(flatten)]
    pub endpoint: EndpointArgs,
    #[command(flatten)]
    pub read_only: ReadOnly,
    /// Start a stdio server that ended again by itself (a new process is an act)
    #[arg(long)]
    pub respawn: bool,
}

/// `redial rows`.
#[derive(Debug, Args)]
pub struct RowsArgs {
    #[command(flatten)]
    pub ledger: LedgerArgs,
    /// Only rows in this state: running, done, abandoned, … (repeatable)
    #[arg(long, value_name = "S")]
    pub state: Vec<String>,
    /// At most this many rows, newest first
    #[arg(long, value_name = "N")]
    pub limit: Option<usize>,
    /// One JSON document
    #[arg(long)]
    pub json: bool,
}

/// `redial find`.
#[derive(Debug, Args)]
pub struct FindArgs {
    /// The request
    pub request_id: String,
    #[command(flatten)]
    pub ledger: LedgerArgs,
    #[command(flatten)]
    pub endpoint: EndpointArgs,
    /// The server's look-up tool
    #[arg(long, value_name = "TOOL", default_value = "find_request")]
    pub lookup: String,
    /// One JSON document
    #[arg(long)]
    pub json: bool,
}

/// `redial reissue`.
#[derive(Debug, Args)]
pub struct ReissueArgs {
    /// The request to repeat, with this same request_id
    pub request_id: String,
    /// The tool; else the endpoint's only tool that takes a request_id and is not read-only
    #[arg(long, value_name = "T")]
    pub tool: Option<String>,
    /// The arguments, a JSON object
    #[arg(long, value_name = "JSON", group = "arguments")]
    pub args: Option<String>,
    /// A file that holds the arguments
    #[arg(long, value_name = "F", group = "arguments")]
    pub args_file: Option<PathBuf>,
    /// Files to find the arguments in: any JSON, JSON Lines or transcript
    #[arg(long, value_name = "F", num_args = 1.., group = "arguments")]
    pub args_from: Vec<PathBuf>,
    /// What the gate asks to be typed: the request_id (the tool's name where there is none)
    #[arg(long, value_name = "ID")]
    pub confirm: Option<String>,
    /// Seconds until the call counts as unknown
    #[arg(long, value_name = "S", default_value_t = 60.0, value_parser = seconds)]
    pub timeout: f64,
    #[command(flatten)]
    pub ledger: LedgerArgs,
    #[command(flatten)]
    pub endpoint: EndpointArgs,
    #[command(flatten)]
    pub read_only: ReadOnly,
    /// The server's look-up tool
    #[arg(long, value_name = "TOOL", default_value = "find_request")]
    pub lookup: String,
    /// One JSON document; never asks
    #[arg(long)]
    pub json: bool,
}

/// `redial tools`.
#[derive(Debug, Args)]
pub struct ToolsArgs {
    #[command(flatten)]
    pub endpoint: EndpointArgs,
    /// One JSON document
    #[arg(long)]
    pub json: bool,
}

/// `redial call`.
#[derive(Debug, Args)]
pub struct CallArgs {
    /// The tool
    pub tool: String,
    /// Its arguments, a JSON object
    #[arg(long, value_name = "JSON", default_value = "{}")]
    pub args: String,
    /// Seconds until the call counts as unknown
    #[arg(long, value_name = "S", default_value_t = 60.0, value_parser = seconds)]
    pub timeout: f64,
    /// What the gate asks to be typed, when the ledger already has this request_id
    #[arg(long, value_name = "ID")]
    pub confirm: Option<String>,
    #[command(flatten)]
    pub ledger: LedgerArgs,
    #[command(flatten)]
    pub endpoint: EndpointArgs,
    #[command(flatten)]
    pub read_only: ReadOnly,
    /// One JSON document; never asks
    #[arg(long)]
    pub json: bool,
}

/// `redial serve`.
#[derive(Debug, Args)]
pub struct ServeArgs {
    /// Which server
    #[command(subcommand)]
    pub server: ServerCommand,
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
    },
}

/// `redial record`.
#[derive(Debug, Args)]
#[command(after_help = "In .mcp.json put it before the server:
  \"command\": \"redial\", \"args\": [\"record\", \"--out\", \"/var/log/mcp/\", \"--keep\", \"50\", \"--\", \"python\", \"server.py\"]
The exit status is the server's, 128+n for a signal. Secrets are replaced before anything is written.")]
pub struct RecordArgs {
    /// The file to write (appended to), or a folder that gets one file for each run
    #[arg(long, value_name = "FILE|FOLDER")]
    pub out: PathBuf,
    /// With a folder: how many recordings are kept in it, the newest
    #[arg(long, value_name = "N")]
    pub keep: Option<usize>,
    /// The Streamable HTTP server to record, in place of a command
    #[arg(long, value_name = "URL", conflicts_with = "record_command")]
    pub http: Option<String>,
    /// The address to listen on for it, e.g. 127.0.0.1:8001
    #[arg(long, value_name = "ADDR", default_value = "127.0.0.1:0")]
    pub listen: String,
    /// Let --listen be an address that other machines can reach
    #[arg(long)]
    pub listen_anywhere: bool,
    #[command(flatten)]
    pub redact: RedactArgs,
    /// The server to start on stdio, after `--`
    #[arg(last = true, value_name = "COMMAND", id = "record_command")]
    pub command: Vec<String>,
}

/// What is hidden on top of the built-in rules.
#[derive(Debug, Clone, Args, Default)]
#[command(next_help_heading = "Redaction (credentials are always hidden)")]
pub struct RedactArgs {
    /// Hide values of members, headers and options of this name (repeatable)
    #[arg(long, value_name = "NAME")]
    pub redact_key: Vec<String>,
    /// Hide values at this path of a frame, e.g. params.arguments.card; * is any step (repeatable)
    #[arg(long, value_name = "PATH")]
    pub redact_path: Vec<String>,
    /// Hide what matches this regular expression, or its group (repeatable)
    #[arg(long, value_name = "REGEX")]
    pub redact_pattern: Vec<String>,
}
