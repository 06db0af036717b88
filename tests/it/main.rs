//! All integration tests in one binary (one link instead of many). A module a subject.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod cli_bad_input;
mod cli_json;
mod cli_main_job;
mod client_era;
mod client_flood;
mod client_http;
mod client_modern;
mod client_odd;
mod client_stdio;
mod client_stream;
mod interop;
mod keys;
mod ledger_live;
mod ledger_read;
mod model;
mod pty_demo;
mod pty_restore;
mod record_http;
mod record_stdio;
mod record_witness;
mod replay_mock;
mod sample_sessions;
mod screens;
mod serve_charge;
mod serve_mcp;
mod serve_tickets;
mod support;
