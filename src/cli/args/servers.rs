//! What the built-in servers take.

use super::common::seconds;
use clap::{Args, Subcommand};
use std::path::PathBuf;

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
