//! All integration tests in one binary (one link instead of many). A module a subject.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod cli_bad_input;
mod cli_gate;
mod cli_hostile;
mod cli_json;
mod cli_main_job;
mod cli_output;
mod cli_signals;
mod cli_trace;
mod client_era;
mod client_flood;
mod client_http;
mod client_modern;
mod client_odd;
mod client_stdio;
mod client_stream;
mod client_task;
mod interop;
mod keys;
mod keys_more;
mod ledger_live;
mod ledger_read;
mod model;
mod pictures;
mod pty_demo;
mod pty_more;
mod pty_restore;
mod screens;
mod serve_charge;
mod serve_mcp;
mod serve_tickets;
mod support;
mod verify_cli;
