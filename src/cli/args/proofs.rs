//! What the proofs and lessons take: `killtest`, `lab`, `teach`.

use super::common::{EraArg, ReadOnly};
use clap::{Args, Subcommand};
use std::path::PathBuf;

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
    /// A table of that ledger that holds effects, where several could (repeatable)
    #[arg(long, value_name = "TABLE", requires = "ledger")]
    pub effects: Vec<String>,
    /// After the last trial: count again once nothing has changed for so many seconds
    #[arg(long, value_name = "SECONDS", default_value_t = 5.0, value_parser = super::common::seconds)]
    pub settle: f64,
    /// Where the server listens, if it speaks HTTP; it is started with --start
    #[arg(long, value_name = "URL", conflicts_with = "command")]
    pub http: Option<String>,
    /// How the server of --http is started, e.g. "python server.py" (no shell; NAME=VALUE first for the environment)
    #[arg(long, value_name = "COMMAND")]
    pub start: Option<String>,
    /// Protocol era: ask the server, 2026-07-28 only, or initialize first
    #[arg(long, value_enum, default_value = "auto")]
    pub era: EraArg,
    #[command(flatten)]
    pub read_only: ReadOnly,
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
        #[command(flatten)]
        read_only: ReadOnly,
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
    #[command(flatten)]
    pub read_only: ReadOnly,
}
