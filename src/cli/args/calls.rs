//! What the commands take that make calls: `call`, `reissue`, `batch`.

use super::common::{Calling, OneCall};
use super::id::IdArgs;
use clap::Args;
use std::path::PathBuf;

/// `redial reissue`.
#[derive(Debug, Args)]
#[command(
    after_help = "The server is asked about the request first. Then the gate: at a terminal a question, else --confirm; without it
nothing is sent and the exit status is 3. The arguments must be those of the first call: the ledger's hash tells.

Exit status: 0 done · 1 answered with an error, or refused · 3 the gate stopped it, nothing was sent · 4 outcome unknown
or in progress · 5 the endpoint never became ready, or not sent · 6 the ledger can't be read

Example:
  redial reissue r-1 --ledger ledger.db --args '{\"request_id\":\"r-1\",\"title\":\"Disk full\",\"body\":\"/var\"}' --confirm r-1 -- redial serve tickets"
)]
pub struct ReissueArgs {
    #[command(flatten)]
    pub id: IdArgs,
    /// The id that `id` means, once it was read: the repeat keeps it.
    #[arg(skip)]
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
    #[command(flatten)]
    pub one: OneCall,
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
  redial call create_ticket --args '{\"request_id\":\"r-1\",\"title\":\"Disk full\",\"body\":\"/var\"}' -- redial serve tickets"
)]
pub struct CallArgs {
    /// The tool
    pub tool: String,
    /// Its arguments, a JSON object [default: {}]
    #[arg(long, value_name = "JSON", group = "arguments")]
    pub args: Option<String>,
    /// A file that holds the arguments
    #[arg(long, value_name = "F", group = "arguments")]
    pub args_file: Option<PathBuf>,
    #[command(flatten)]
    pub one: OneCall,
}

/// `redial batch`.
#[derive(Debug, Args)]
#[command(
    after_help = "The input is JSON Lines, one call each: {\"tool\":\"T\",\"args\":{…},\"timeout_s\":S}, or a pause: {\"wait_s\":S}. What stands
there is sent over one connection, each line once, whatever breaks: what was in flight is unknown, and nothing is sent
again. HTTP connects again, and the next line waits for it as long as --start-timeout; what comes after the end of a
server on stdio is not sent, unless --respawn. A request_id that the --ledger has, or that a
line before sent, makes a line a repeat, which wants its --confirm. A bad line is told by its number, and the rest still runs.

Exit status, the worst of all lines in this order: 4 an outcome is unknown or in progress · 1 answered with an error,
or refused · 5 not sent, or the endpoint never became ready · 6 the ledger can't be read · 3 the gate stopped it ·
2 a bad line or an unknown tool · 0 all answered, and finished where they say so

Example:
  echo '{\"tool\":\"find_request\",\"args\":{\"request_id\":\"r-1\"}}' | redial batch --respawn -- redial serve tickets"
)]
pub struct BatchArgs {
    /// The calls; - is stdin
    #[arg(value_name = "FILE", default_value = "-")]
    pub file: PathBuf,
    /// So many calls in flight at once; above 1 outcomes come as they end
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..=1000))]
    pub concurrency: u16,
    /// Send it although the ledger, or a line before, has this request_id (repeatable)
    #[arg(long, value_name = "ID", allow_hyphen_values = true)]
    pub confirm: Vec<String>,
    /// Start a stdio server that ended again (a new process is an act)
    #[arg(long, conflicts_with = "http")]
    pub respawn: bool,
    /// JSON Lines: one document for each call
    #[arg(long)]
    pub json: bool,
    #[command(flatten)]
    pub calling: Calling,
}
