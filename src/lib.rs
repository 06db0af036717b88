//! redial: a terminal inspector and replayer for MCP sessions that joins a server's idempotency ledger to
//! the wire. See ARCHITECTURE.md for the map.
#![forbid(unsafe_code)]

mod apart;
pub mod audit;
pub mod cli;
pub mod client;
pub mod config;
pub mod demo;
pub mod endpoints;
pub mod error;
pub mod files;
pub mod filter;
pub mod inspect;
pub mod journal;
pub mod json;
pub mod judge;
pub mod keys;
pub mod lab;
pub mod ledger;
mod loopback;
mod magic;
pub mod model;
mod near;
pub mod procs;
pub mod record;
pub mod recording;
pub mod replay;
pub mod serve;
mod shell;
mod signals;
pub mod size;
pub mod text;
pub mod time;
pub mod tui;
mod urls;
pub mod wire;
pub mod words;
