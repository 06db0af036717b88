//! What several commands take: the endpoint, the ledger, and how calls are made.

use crate::client::Answerer;
use crate::endpoints::Named;
use crate::error::{Error, Exit};
use clap::{Args, ValueEnum};
use std::path::PathBuf;

/// `COLUMN=VALUE`, as it was said.
///
/// # Errors
/// What is wanted instead.
pub fn column_value(said: &str) -> Result<String, String> {
    match said.split_once('=') {
        Some((column, _)) if !column.is_empty() => Ok(said.to_owned()),
        _ => Err("a column and its value are wanted: tenant=acme".into()),
    }
}

/// Where the server is.
#[derive(Debug, Clone, Args, Default)]
#[command(next_help_heading = "Endpoint")]
pub struct EndpointArgs {
    /// A Streamable HTTP URL, e.g. http://127.0.0.1:8000/mcp
    #[arg(long, value_name = "URL", conflicts_with_all = ["endpoint_command", "server"], group = "where")]
    pub http: Option<String>,
    /// A header for every request, "Name: value" (repeatable)
    #[arg(long, value_name = "K:V", requires = "http", conflicts_with_all = ["endpoint_command", "server"])]
    pub header: Vec<String>,
    /// A server of the .mcp.json here or in a folder above, by its name
    #[arg(long, value_name = "NAME", conflicts_with = "endpoint_command", group = "where")]
    pub server: Option<String>,
    /// Protocol era: ask the server, 2026-07-28 only, or initialize first [default: auto, or what .mcp.json says]
    #[arg(long, value_enum, requires = "where")]
    pub era: Option<EraArg>,
    /// How long the server may take to become ready, in seconds
    #[arg(long, value_name = "S", default_value_t = 60.0, value_parser = seconds, requires = "where")]
    pub start_timeout: f64,
    /// A folder to tell a server that asks for roots (repeatable) [default: it is not offered]
    #[arg(long, value_name = "FOLDER", requires = "where")]
    pub root: Vec<String>,
    /// A server to start on stdio, after `--`
    #[arg(last = true, value_name = "COMMAND", id = "endpoint_command", group = "where")]
    pub endpoint_command: Vec<String>,
    /// What --server found, once it was looked for.
    #[arg(skip)]
    pub(in crate::cli) named: std::sync::OnceLock<Named>,
    /// The configured call limit, in seconds, once it is known.
    #[arg(skip)]
    pub(in crate::cli) configured: std::sync::OnceLock<f64>,
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

/// A number of seconds, 0 or more.
pub(in crate::cli) fn seconds(text: &str) -> Result<f64, String> {
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
    /// A table of it that holds effects, where several could (repeatable) [default: the only one with a request_id]
    #[arg(long, value_name = "TABLE", requires = "ledger")]
    pub effects: Vec<String>,
    /// After how many seconds a claim counts as stale; it should be the server's own limit
    #[arg(long, value_name = "N", default_value_t = 120.0, value_parser = seconds, requires = "ledger")]
    pub stale_seconds: f64,
    /// How many processes write the ledger; auto tells by interleaved owners
    #[arg(long, value_enum, default_value = "auto", requires = "ledger")]
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

impl ReadOnly {
    /// Stops a command that would do work; `what` says what it does.
    ///
    /// # Errors
    /// Exit 3 under `--read-only`.
    pub fn stops(&self, what: &str) -> crate::error::Result<()> {
        if !self.read_only {
            return Ok(());
        }
        Err(Error::new(Exit::Gate, format!("--read-only: {what}; nothing was started or sent"))
            .hint("without --read-only (REDIAL_READ_ONLY, read_only in the configuration) it runs"))
    }
}

/// `--elicit`.
#[derive(Debug, Clone, Args, Default)]
pub struct ElicitArg {
    /// When the server asks for input: accept its own defaults [default: decline]
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

/// How calls are made, one or many.
#[derive(Debug, Args)]
pub struct Calling {
    /// Seconds until a call counts as unknown, where nothing else is said of it [default: 60, or what .mcp.json says]
    #[arg(long, value_name = "S", value_parser = seconds)]
    pub timeout: Option<f64>,
    /// The server's look-up tool
    #[arg(long, value_name = "TOOL", default_value = "find_request")]
    pub lookup: String,
    /// Which row is meant, where several have the request_id (another tenant); repeatable, and all must be so
    #[arg(long, value_name = "COLUMN=VALUE", requires = "ledger", value_parser = column_value)]
    pub row: Vec<String>,
    #[command(flatten)]
    pub elicit: ElicitArg,
    #[command(flatten)]
    pub read_only: ReadOnly,
    #[command(flatten)]
    pub ledger: LedgerArgs,
    #[command(flatten)]
    pub endpoint: EndpointArgs,
}

/// How one call is made and reported.
#[derive(Debug, Args)]
pub struct OneCall {
    /// Let a repeat pass the gate where nobody can be asked: the request_id again (without one: the tool's name)
    #[arg(long, value_name = "ID", allow_hyphen_values = true)]
    pub confirm: Option<String>,
    /// Send it only while the request's part of the ledger is this version: the row_version of `redial find --json`
    #[arg(long, value_name = "VERSION", requires = "ledger")]
    pub if_row: Option<String>,
    /// One JSON document; never asks
    #[arg(long)]
    pub json: bool,
    #[command(flatten)]
    pub calling: Calling,
}
