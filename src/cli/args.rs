//! The command line (design: "Command line"): stable names, parsed by clap into what the commands take.
//! A flag or command is absent until it does something. Here are the commands; what each takes is beside it: `common` holds
//! what several share.

mod calls;
mod common;
pub mod id;
mod looks;
mod proofs;
mod servers;

use super::recorded::{MockArgs, RecordArgs, ReplayArgs, ShowArgs};
pub use calls::{BatchArgs, CallArgs, ReissueArgs};
use clap::{Parser, Subcommand};
pub(in crate::cli) use common::seconds;
pub use common::{Calling, EndpointArgs, EraArg, LedgerArgs, OneCall, OwnersArg, ReadOnly};
pub use looks::{AttachArgs, FindArgs, RowsArgs, ToolsArgs, VerifyArgs};
pub use proofs::{KilltestArgs, LabArgs, LabCommand, TeachArgs};
pub use servers::{ServeArgs, ServerCommand};

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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_parser_is_sound() {
        <Cli as clap::CommandFactory>::command().debug_assert();
    }
}
