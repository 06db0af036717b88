//! What the commands about recordings take: `record`, `show`, `replay`, `mock`.

use super::args::{EndpointArgs, LedgerArgs, ReadOnly, seconds};
use crate::config::Config;
use crate::error::{Error, Result};
use crate::record::redact::{Extra, Rules};
use clap::{Args, ValueEnum};
use std::path::PathBuf;

/// `redial record`.
#[derive(Debug, Args)]
#[command(after_help = "In .mcp.json put it before the server:
  \"command\": \"redial\", \"args\": [\"record\", \"--out\", \"/var/log/mcp/\", \"--keep\", \"50\", \"--\", \"python\", \"server.py\"]
The exit status is the server's, 128+n for a signal. Secrets are replaced before anything is written.

Example:
  redial record --out night.jsonl -- redial serve tickets")]
pub struct RecordArgs {
    /// The file to write (appended to), or a folder that gets one file for each run
    #[arg(long, value_name = "FILE|FOLDER")]
    pub out: PathBuf,
    /// With a folder: how many recordings are kept in it, the newest
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub keep: Option<u32>,
    /// The Streamable HTTP server to record, in place of a command
    #[arg(long, value_name = "URL", conflicts_with = "record_command")]
    pub http: Option<String>,
    /// The address to listen on for it, e.g. 127.0.0.1:8001
    #[arg(
        long,
        value_name = "ADDR",
        default_value = "127.0.0.1:0",
        requires = "http",
        conflicts_with = "record_command"
    )]
    pub listen: String,
    /// Let --listen be an address that other machines can reach
    #[arg(long, requires = "http", conflicts_with = "record_command")]
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

impl RedactArgs {
    /// Nothing on top of them.
    pub fn is_none(&self) -> bool {
        let RedactArgs { redact_key, redact_path, redact_pattern } = self;
        redact_key.is_empty() && redact_path.is_empty() && redact_pattern.is_empty()
    }
}

/// The redaction rules: built in, configured, and by flags; `values` are secrets that are known by their text.
///
/// # Errors
/// Exit 2 when a pattern is none.
pub fn rules(a: &RedactArgs, config: &Config, values: Vec<String>) -> Result<Rules> {
    let both = |own: &[String], more: &[String]| own.iter().chain(more).cloned().collect();
    let c = &config.record;
    Rules::new(Extra {
        keys: both(&c.redact_keys, &a.redact_key),
        paths: both(&c.redact_paths, &a.redact_path),
        patterns: both(&c.redact_patterns, &a.redact_pattern),
        values,
    })
    .map_err(Error::usage)
}

/// What the configuration wants hidden in recordings that no flag is about.
///
/// # Errors
/// Exit 2 when it can't be told, since a recording would say it.
pub fn hides(config: &Config) -> Result<Extra> {
    if let Some(e) = &config.unheard {
        return Err(e.clone());
    }
    let c = &config.record;
    let (keys, paths) = (c.redact_keys.clone(), c.redact_paths.clone());
    let extra = Extra { keys, paths, patterns: c.redact_patterns.clone(), values: Vec::new() };
    Rules::new(extra.clone()).map_err(Error::usage)?;
    Ok(extra)
}

/// `redial show`.
#[derive(Debug, Args)]
#[command(
    after_help = "Filter: words and fields, joined by blanks or & (and), | (or), ! (not), ( ).
  tool: method: id: req: state: verdict: outcome: dir:out|in|err kind: gen: text:\"…\"  age:>5m ms:>500

Example:
  redial show night.jsonl 'tool:create_ticket outcome:unknown'
  redial show night.jsonl 'kind:stderr | kind:exit | ms:>500 !tool:find*'"
)]
pub struct ShowArgs {
    /// The recording; a folder: the newest in it; latest: the one begun last
    #[arg(value_name = "FILE")]
    pub file: PathBuf,
    /// Only what matches
    #[arg(value_name = "FILTER")]
    pub filter: Vec<String>,
    /// Only the calls
    #[arg(long)]
    pub calls: bool,
    /// At most this many lines, the newest
    #[arg(long, value_name = "N")]
    pub limit: Option<usize>,
    /// Go on as the file grows
    #[arg(long, conflicts_with_all = ["json", "calls"])]
    pub follow: bool,
    /// Hide secrets in older files too: the file is written again to stdout, as a recording (any --redact-… means it)
    #[arg(long, conflicts_with_all = ["json", "follow", "calls", "limit", "ledger", "filter"])]
    pub redact: bool,
    #[command(flatten)]
    pub rules: RedactArgs,
    /// Judges the requests too: then state: and verdict: can be asked for
    #[command(flatten)]
    pub ledger: LedgerArgs,
    /// One JSON document
    #[arg(long)]
    pub json: bool,
}

/// `redial replay`.
#[derive(Debug, Args)]
pub struct ReplayArgs {
    /// The recording (`latest` works)
    #[arg(value_name = "FILE")]
    pub file: PathBuf,
    /// Print the plan and send nothing
    #[arg(long)]
    pub dry_run: bool,
    /// Let the gate pass this request_id (repeatable)
    #[arg(long, allow_hyphen_values = true, value_name = "ID")]
    pub confirm: Vec<String>,
    /// Let the gate pass calls of this tool (repeatable)
    #[arg(long, value_name = "NAME")]
    pub confirm_tool: Vec<String>,
    /// Give every request_id a fresh value: a rehearsal, not a repeat
    #[arg(long)]
    pub new_keys: bool,
    /// When each is sent
    #[arg(long, value_enum, default_value = "fast", conflicts_with = "dry_run")]
    pub pace: Pace,
    /// Leave differences at this path of an answer out, e.g. structuredContent.ticket_id; * is any step (repeatable)
    #[arg(long, value_name = "PATH", conflicts_with = "dry_run")]
    pub ignore: Vec<String>,
    /// Seconds until a call counts as unanswered
    #[arg(long, value_name = "S", default_value_t = 60.0, value_parser = seconds, conflicts_with = "dry_run")]
    pub timeout: f64,
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

/// When frames are sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Pace {
    /// With the pauses of the recording
    Recorded,
    /// One after the other
    Fast,
    /// Enter sends the next one (needs a terminal)
    Step,
}

/// `redial mock`.
#[derive(Debug, Args)]
pub struct MockArgs {
    /// The recording (`latest` works)
    #[arg(value_name = "FILE")]
    pub file: PathBuf,
    /// Speak Streamable HTTP on this loopback address (path /mcp) instead of stdio
    #[arg(long, value_name = "ADDR")]
    pub listen: Option<String>,
    /// Answer after as long as the recorded server took
    #[arg(long)]
    pub timing: bool,
    /// Die where the recorded server died, by its exit code or signal, with its stderr; FILE counts the lives that
    /// are over, so that the next start is the next life
    #[arg(long, value_name = "FILE")]
    pub deaths: Option<PathBuf>,
}
